/*
 * The interpreter: runs a kernel (never a schedule) stage by stage, each expression over strips of points.
 *   DLC_STRICT  rounds every node to its type, sums in index order, elementary functions by their expansion (ir/expr/expand.c):
 *               constant folding and shape arithmetic; the bits of generated maps
 *   DLC_WIDE    keeps float64 and libm, rounds only at casts and stores: the tests' oracle for reductions
 */
#ifndef DLC_IR_INTERP_INTERP_H
#define DLC_IR_INTERP_INTERP_H

#include "ir/kernel/kernel.h"

typedef enum { DLC_STRICT, DLC_WIDE } dlc_interp_mode;

/*
 * buffers[i]: memory of kernel buffer i in its layout (bytes as the dtype says); symbols[i] by kernel symbol.
 * In DLC_WIDE, wide[i] may point to a float64 array for a float buffer, used instead of buffers[i] (both IN and OUT), so
 * that nothing is rounded between kernels; wide or its entries may be NULL.
 * DLC_INVALID: a checked load was out of range (node named by origin id). DLC_LIMIT: scratch above budget_bytes (0: none).
 */
typedef struct {
    void *const *buffers;
    double *const *wide;
    const int64_t *symbols;
    size_t budget_bytes;
} dlc_interp_args;
DLC_NODISCARD dlc_status dlc_interp_run(const dlc_kernel *kernel, dlc_interp_mode mode, const dlc_interp_args *args,
                                        dlc_diag *diag);

#endif

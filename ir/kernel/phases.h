/*
 * The recogniser of windows whose taps are of use at every s-th point alone, as those of a transposed convolution:
 *
 *     y[q] = sum(k) x[(q + c - k) floordiv s if (q + c - k) mod s = 0] * w[k]
 *
 * What a remainder leaves out is no product with 0, so it is one only where its factor makes the whole value 0.
 */
#ifndef DLC_IR_KERNEL_PHASES_H
#define DLC_IR_KERNEL_PHASES_H

#include "ir/kernel/kernel.h"

typedef struct {
    dlc_kernel *kernel;
    uint32_t stage;
    uint32_t tap, point;          /* axes: k and q */
    int64_t stride, ntaps, shift; /* s; of the window; c */
    dlc_expr distance;            /* q + c - k */
} dlc_phases;

/* The first of them that `takes` takes, in stages that are read at the reader's own points and none of which minds their order. The
 * kernel's pool grows. */
int dlc_phases_find(dlc_kernel *kernel, int (*takes)(const dlc_phases *phases), dlc_phases *result);

#endif

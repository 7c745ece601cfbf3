/* Kernels taken apart and rewritten: what lowering, rewrites and schedules share. Memory from the kernel's arena. */
#ifndef DLC_IR_KERNEL_ALGEBRA_H
#define DLC_IR_KERNEL_ALGEBRA_H

#include "ir/kernel/kernel.h"

/* The i-th expression a stage computes (values, then store indices), or NULL behind the last. */
dlc_expr *dlc_stage_root(dlc_stage *stage, uint32_t i);
/* marks[id] = 1 for every expression some stage computes; pool->nodes.n bytes. */
uint8_t *dlc_kernel_marks(const dlc_kernel *kernel, dlc_arena *arena);
/* Some stage changes what others have stored in the buffer. */
int dlc_is_updated(const dlc_kernel *kernel, uint32_t buffer);
/* A scatter of whole rows along this axis, its last: neighbours go to neighbours, wherever data says that the row lies. */
int dlc_scatters_rows(const dlc_kernel *kernel, const dlc_stage *stage, uint32_t axis);
uint8_t *dlc_stage_marks(const dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *arena);

/* Bit sets of the axes each marked expression depends on: `words` words per id. */
uint64_t *dlc_kernel_axes_of(const dlc_kernel *kernel, const uint8_t *marks, dlc_arena *arena, uint32_t *words);

/* True when the axis is in the list; *position (may be NULL) says where. */
int dlc_ids_find(const dlc_ids *ids, uint32_t id, uint32_t *position);
void dlc_ids_remove(dlc_ids *ids, uint32_t position);
/* The axis an expression is, or DLC_NO_AXIS. */
uint32_t dlc_bare_axis(const dlc_pool *pool, dlc_expr expr);
/* The load, of a stage, is of the stage's own points, by its axes themselves, and always made. */
int dlc_reads_in_place(const dlc_kernel *kernel, dlc_expr load);
int dlc_const_extent(const dlc_kernel *kernel, uint32_t axis, int64_t *extent);

/*
 * Rewrites every expression of the kernel: axes are substituted (0: kept), and `index` (may be NULL) gives a load's or
 * store's new index list, returning its length; it gets the indices with the axes already substituted.
 */
typedef struct {
    const dlc_expr *axes;
    uint32_t (*index)(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result);
    void *user;
} dlc_reindex;
void dlc_stage_reindex(dlc_kernel *kernel, dlc_stage *stage, const dlc_reindex *reindex);
void dlc_kernel_reindex(dlc_kernel *kernel, const dlc_reindex *reindex);
enum { DLC_MAX_INDEX = 32 }; /* indices of one access */

/* A copy of which everything may change: its pool grows, stages, axes and buffers can be added. */
dlc_kernel *dlc_kernel_clone(const dlc_kernel *kernel, dlc_arena *arena);

#endif

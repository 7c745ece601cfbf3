/* The steps of dlc_group_lower (passes/fuse/fuse.h), in the order it runs them. Memory from the kernel's arena. */
#ifndef DLC_PASSES_LOWER_LOWER_H
#define DLC_PASSES_LOWER_LOWER_H

#include "passes/fuse/fuse.h"

/* The i-th expression a stage computes (values, then store indices), or NULL behind the last. */
dlc_expr *dlc_stage_root(dlc_stage *stage, uint32_t i);
/* marks[id] = 1 for every expression some stage computes; pool->nodes.n bytes. */
uint8_t *dlc_kernel_marks(const dlc_kernel *kernel, dlc_arena *arena);
uint8_t *dlc_stage_marks(const dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *arena);

/* Bit sets of the axes each marked expression depends on: `words` words per id. */
uint64_t *dlc_kernel_axes_of(const dlc_kernel *kernel, const uint8_t *marks, dlc_arena *arena, uint32_t *words);

/* True when the axis is in the list; *position (may be NULL) says where. */
int dlc_ids_find(const dlc_ids *ids, uint32_t id, uint32_t *position);
void dlc_ids_remove(dlc_ids *ids, uint32_t position);
/* The axis an expression is, or DLC_NO_AXIS. */
uint32_t dlc_bare_axis(const dlc_pool *pool, dlc_expr expr);
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
void dlc_kernel_reindex(dlc_kernel *kernel, const dlc_reindex *reindex);
enum { DLC_MAX_INDEX = 32 }; /* indices of one access */

void dlc_lower_inline(dlc_kernel *kernel);  /* lower_inline.c: maps become part of their readers */
void dlc_lower_axes(dlc_kernel *kernel);    /* lower_axes.c: unit axes, one axis for what is one, splits */
void dlc_lower_merge(dlc_kernel *kernel);   /* lower_merge.c: buffers in physical order, contiguous axes become one */
void dlc_lower_unify(dlc_kernel *kernel);   /* lower_axes.c: axes of stages that read each other become one */
void dlc_lower_guards(dlc_kernel *kernel);  /* lower_axes.c: guards on values that are there anyway become selects */

/*
 * The module's constants (constants.c): each value once per layout its readers want. One table per pass; what the module has
 * is found again.
 */
typedef struct {
    dlc_module *module;
    dlc_arena *scratch;
    uint32_t *slots; /* open addressing, index + 1 */
    uint32_t nslots;
} dlc_constants;
void dlc_constants_init(dlc_constants *constants, dlc_module *module, dlc_arena *scratch);
/* `buffer` (of `pool`) says how it is to lie: its dimensions are the value's elements row-major in another shape, its layout
 * where each goes; NULL: as the value lies. */
uint32_t dlc_constants_add(dlc_constants *constants, dlc_value *value, dlc_pool *pool, const dlc_buffer *buffer);

#endif

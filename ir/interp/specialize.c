/*
 * A stage for one run: symbols become their values, so extents and strides are constants and the
 * pool folds the rest; indices become one element offset through the layout; ranges of the axes
 * decide guards; strict mode expands elementary functions.
 */
#include "ir/interp/program.h"

#include <assert.h>

const dlc_interp_memory *dlc_interp_source(const dlc_interp *interp, dlc_source source, int second)
{
    uint32_t index = DLC_SOURCE_INDEX(source);
    return DLC_SOURCE_IS_STAGE(source) ? &interp->temps[second][index] : &interp->buffers[index];
}

static dlc_expr visit_symbol(void *ctx, dlc_pool *pool, const dlc_expr_node *node,
                             const dlc_expr *args)
{
    (void)args;
    const dlc_interp *interp = ctx;
    return node->op == DLC_EXPR_SYM ? dlc_expr_i64(pool, interp->args->symbols[node->imm.id]) : 0;
}

dlc_expr dlc_interp_local(dlc_interp *interp, dlc_expr expr)
{
    return dlc_expr_rewrite(interp->pool, interp->kernel->pool, expr, visit_symbol, interp);
}

/* Dimensions of a source as constants of the private pool; returns their number. */
static uint32_t source_dims(dlc_interp *interp, dlc_source source, dlc_expr *dims)
{
    const dlc_kernel *kernel = interp->kernel;
    uint32_t index = DLC_SOURCE_INDEX(source);
    if (DLC_SOURCE_IS_STAGE(source)) {
        const dlc_ids *axes = &kernel->stages.data[index].axes;
        for (uint32_t d = 0; d < axes->n; d++)
            dims[d] = dlc_expr_i64(interp->pool, interp->extents[axes->data[d]]);
        return axes->n;
    }
    const dlc_type *type = &kernel->buffers.data[index].type;
    for (uint32_t d = 0; d < type->rank; d++)
        dims[d] = dlc_interp_local(interp, type->dims[d]);
    return type->rank;
}

/* Element offset of index[rank] in a source. */
static dlc_expr offset_in(dlc_interp *interp, dlc_source source, const dlc_expr *dims,
                          const dlc_expr *index, uint32_t rank)
{
    if (!DLC_SOURCE_IS_STAGE(source))
        return dlc_layout_offset(interp->pool,
                                 &interp->kernel->buffers.data[DLC_SOURCE_INDEX(source)].layout,
                                 (uint8_t)rank, dims, index);
    dlc_expr offset = dlc_expr_i64(interp->pool, 0);
    for (uint32_t d = 0; d < rank; d++)
        offset = dlc_add(interp->pool, dlc_mul(interp->pool, offset, dims[d]), index[d]);
    return offset;
}

static dlc_expr all_inside(dlc_pool *pool, const dlc_expr *dims, const dlc_expr *index,
                           uint32_t rank)
{
    dlc_expr inside = 0;
    for (uint32_t d = 0; d < rank; d++)
        inside = dlc_and(pool, inside, dlc_in_range(pool, index[d], dims[d]));
    return inside ? inside : dlc_expr_bool(pool, 1);
}

/* A load keeps one index, its element offset; a checked one has a second: 1 where the indices are
 * inside. */
static dlc_expr visit(void *ctx, dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    dlc_interp *interp = ctx;
    if (node->op != DLC_EXPR_LOAD)
        return visit_symbol(ctx, pool, node, args);
    dlc_expr dims[UINT8_MAX], index[2];
    dlc_source source = node->imm.id;
    uint32_t rank = source_dims(interp, source, dims), nindices = 1;
    assert(rank == node->nargs - 2u);
    index[0] = offset_in(interp, source, dims, args, rank);
    if (node->flags & DLC_LOAD_CHECKED)
        index[nindices++] = dlc_select(pool, all_inside(pool, dims, args, rank),
                                       dlc_expr_i64(pool, 1), dlc_expr_i64(pool, 0));
    return dlc_expr_load(pool, (dlc_dtype)node->dtype, source, index, nindices, args[rank],
                         args[rank + 1], node->flags);
}

static dlc_expr specialize(dlc_interp *interp, dlc_expr root, const dlc_ranges *ranges)
{
    if (!root)
        return 0;
    dlc_expr expr = dlc_expr_rewrite(interp->pool, interp->kernel->pool, root, visit, interp);
    if (ranges)
        expr = dlc_expr_simplify(interp->pool, expr, ranges);
    return interp->is_wide ? expr : dlc_expr_expand(interp->pool, expr);
}

/* Where the stage stores: the offset in its buffer and, where that depends on data, whether it is
 * inside. */
static void specialize_store(dlc_interp *interp, const dlc_stage *stage, dlc_interp_exprs *to,
                             const dlc_ranges *ranges)
{
    dlc_expr dims[UINT8_MAX], index[UINT8_MAX];
    uint32_t rank = source_dims(interp, stage->buffer, dims);
    for (uint32_t d = 0; d < rank; d++)
        index[d] = specialize(interp, stage->store.data[d], ranges);
    to->store = offset_in(interp, stage->buffer, dims, index, rank);
    if (stage->update != DLC_UPDATE_NONE)
        to->check = all_inside(interp->pool, dims, index, rank);
    int64_t is_always = 0;
    if (to->check && dlc_expr_is_int(interp->pool, to->check, &is_always) && is_always)
        to->check = 0;
}

void dlc_interp_specialize(dlc_interp *interp, uint32_t index)
{
    const dlc_kernel *kernel = interp->kernel;
    const dlc_stage *stage = &kernel->stages.data[index];
    dlc_interp_exprs *to = &interp->stages[index];
    dlc_interval *intervals = dlc_new_array(interp->arena, dlc_interval, kernel->axes.n);
    dlc_ranges ranges = {.axes = intervals, .naxes = kernel->axes.n}, *known = &ranges;
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        intervals[a].hi = interp->extents[a] - 1;
        if (interp->extents[a] == 0)
            known = NULL; /* no point to reason about */
    }
    for (int v = 0; v < 2; v++)
        to->value[v] = specialize(interp, stage->value[v], known);
    if (stage->buffer != DLC_NO_BUFFER)
        specialize_store(interp, stage, to, known);
    if (!interp->temps[0][index].base && !interp->temps[1][index].base)
        return;
    dlc_expr dims[UINT8_MAX], coordinates[UINT8_MAX];
    source_dims(interp, DLC_STAGE_SOURCE(index), dims);
    for (uint32_t d = 0; d < stage->axes.n; d++)
        coordinates[d] = dlc_expr_axis(interp->pool, stage->axes.data[d]);
    to->temp = offset_in(interp, DLC_STAGE_SOURCE(index), dims, coordinates, stage->axes.n);
}

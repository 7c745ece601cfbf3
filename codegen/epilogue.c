/*
 * The epilogue of a contraction at one point: the maps that follow it read the sum as a value, never from memory, and each
 * other likewise. The point is given by what each axis of the kernel is there.
 */
#include "codegen/nest.h"

typedef struct {
    const dlc_nest *nest;
    dlc_expr *values; /* by stage, 0: not computed yet */
} forwarded;

static dlc_expr forward(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const forwarded *f = ctx;
    (void)to;
    (void)args;
    if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
        return 0;
    uint32_t s = DLC_SOURCE_INDEX(node->imm.id);
    return s < f->nest->kernel->stages.n ? f->values[s] : 0;
}

dlc_expr dlc_nest_substitute(dlc_nest *nest, dlc_expr expr, const dlc_expr *with)
{
    dlc_pool *pool = nest->kernel->pool;
    return dlc_expr_simplify(pool, dlc_expr_substitute(pool, expr, with, nest->kernel->axes.n), &nest->ranges);
}

static void store_stage(dlc_nest *nest, const dlc_stage *stage, dlc_expr value, const dlc_expr *with)
{
    dlc_expr index[DLC_MAX_RANK];
    uint32_t width;
    for (uint32_t i = 0; i < stage->store.n; i++)
        index[i] = dlc_nest_substitute(nest, stage->store.data[i], with);
    dlc_val result = dlc_nest_value(nest, value, &width);
    dlc_nest_store(nest, stage->buffer, index, result, width, DLC_UPDATE_NONE);
}

void dlc_nest_epilogue(dlc_nest *nest, uint32_t first, dlc_expr sum, dlc_expr scale, const dlc_expr *with)
{
    dlc_pool *pool = nest->kernel->pool;
    forwarded f = {nest, dlc_new_array(nest->arena, dlc_expr, nest->kernel->stages.n)};
    f.values[first] = scale ? dlc_mul(pool, sum, dlc_nest_substitute(nest, scale, with)) : sum;
    for (uint32_t s = first; s < nest->kernel->stages.n; s++) {
        const dlc_stage *stage = &nest->kernel->stages.data[s];
        if (s > first)
            f.values[s] = dlc_nest_substitute(nest, dlc_expr_rewrite(pool, pool, stage->value[0], forward, &f), with);
        if (stage->buffer != DLC_NO_BUFFER)
            store_stage(nest, stage, f.values[s], with);
    }
}

/*
 * Elementary functions as plain arithmetic: replaces each exp, log, tanh, … of an expression by its
 * expansion. The functions themselves are in expand_exp.c, expand_log.c, expand_trig.c and
 * expand_pow.c, their coefficients in expand_table.h, and their measured errors in
 * docs/numerics.md. One source for the strict interpreter and every target: their bits agree.
 */
#include "ir/expr/expand.h"

static const dlc_expander expanders[DLC_EXPR_COUNT] = {
#define DLC_EXPANDER(id, name) [DLC_EXPR_##id] = dlc_expand_##name,
    DLC_EXPANDERS(DLC_EXPANDER)
#undef DLC_EXPANDER
};

static dlc_expr expand_node(void *ctx, dlc_pool *pool, const dlc_expr_node *node,
                            const dlc_expr *args)
{
    (void)ctx;
    dlc_expander expander = expanders[node->op];
    dlc_dtype dtype = (dlc_dtype)node->dtype;
    uint8_t nargs = node->nargs;
    if (!expander || !dlc_is_float(dtype)) /* rem and mod of integers are rows of their own right */
        return 0;
    dlc_dtype type = dtype == DLC_F64 ? DLC_F64 : DLC_F32;
    dlc_expand e = dlc_expand_as(pool, type);
    dlc_expr operands[2] = {0};
    for (uint8_t i = 0; i < nargs; i++)
        operands[i] = dlc_expr_cast(pool, type, args[i]);
    return dlc_expr_cast(pool, dtype, expander(&e, operands));
}

dlc_expr dlc_expr_expand(dlc_pool *pool, dlc_expr root)
{
    return dlc_expr_rewrite(pool, pool, root, expand_node, NULL);
}

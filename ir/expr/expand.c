/*
 * Elementary functions as plain arithmetic: replaces each exp, log, tanh, … of an expression by its
 * expansion. The functions themselves are in expand_exp.c, expand_log.c, expand_trig.c and
 * expand_pow.c, their coefficients in expand_table.h, and their measured errors in
 * docs/numerics.md. One source for the strict interpreter and every target: their bits agree.
 */
#include "ir/expr/expand.h"

dlc_expand dlc_expand_as(dlc_pool *pool, dlc_dtype type)
{
    int single = type == DLC_F32;
    return (dlc_expand){
        .pool = pool,
        .type = type,
        .bits = single ? DLC_I32 : DLC_I64,
        .single = (uint8_t)single,
        .fraction = single ? 23 : 52,
        .magic = single ? 0x1.8p23 : 0x1.8p52,
    };
}

dlc_expr dlc_expand_poly(const dlc_expand *e, const double *table, uint32_t n, dlc_expr x)
{
    dlc_expr sum = dlc_x_num(e, table[n - 1]);
    for (uint32_t i = n - 1; i-- > 0;)
        sum = dlc_x_muladd(e, sum, x, dlc_x_num(e, table[i]));
    return sum;
}

dlc_expr dlc_x_with_sign(const dlc_expand *e, dlc_expr magnitude, dlc_expr x)
{
    dlc_expr sign = dlc_x_int2(e, DLC_EXPR_AND, dlc_x_bits(e, x), dlc_x_sign_bit(e));
    return dlc_x_float(e, dlc_expr2(e->pool, DLC_EXPR_OR, dlc_x_bits(e, magnitude), sign));
}

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

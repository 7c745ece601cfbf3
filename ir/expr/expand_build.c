/* What expansions are written with, beside the one-liners of expand.h. */
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

/*
 * Remainders of floats, exactly. Long division in base 2^29 (f32, in f64 arithmetic, where every product is exact) or 2^50
 * (f64, by fma): r starts as |a|; for each power of the base from the top, q = trunc(r / (|b| base^s)) and r -= q |b| base^s.
 * Every r is a multiple of an ulp of the divisor's scale and smaller than it, so no step rounds; a quotient that rounding
 * made one too large leaves a negative r, which one addition mends.
 */
#include "ir/expr/expand.h"

static dlc_expr divide_step(const dlc_expand *w, dlc_expr r, dlc_expr divisor)
{
    dlc_expr q = dlc_expr1(w->pool, DLC_EXPR_TRUNC, dlc_x_div(w, r, divisor));
    dlc_expr less = dlc_expr3(w->pool, DLC_EXPR_FMA, dlc_x_neg(w, q), divisor, r);
    less = dlc_x_select(w, dlc_x_lt(w, less, dlc_x_num(w, 0)), dlc_x_add(w, less, divisor), less);
    return dlc_x_select(w, dlc_x_eq(w, q, dlc_x_num(w, 0)), r, less); /* q = 0 too where the divisor overflowed */
}

/* |a| rem |b| for finite a and b != 0, in w's type (f64); `base` and `steps` cover every ratio of the operands' type. */
static dlc_expr divide(const dlc_expand *w, dlc_expr a, dlc_expr b, int base_log2, int steps)
{
    dlc_expr r = dlc_x_abs(w, a), divisor = dlc_x_abs(w, b);
    for (int s = steps - 1; s >= 0; s--) {
        dlc_expr scaled = divisor;
        for (int left = s * base_log2; left > 0; left -= 1000) /* the scale itself may pass f64's range */
            scaled = dlc_x_mul(w, scaled, dlc_x_num(w, __builtin_ldexp(1, left > 1000 ? 1000 : left)));
        r = divide_step(w, r, scaled);
    }
    return r;
}

dlc_expr dlc_expand_rem(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expand wide = dlc_expand_as(e->pool, DLC_F64);
    dlc_expr a = dlc_expr_cast(e->pool, DLC_F64, args[0]), b = dlc_expr_cast(e->pool, DLC_F64, args[1]);
    dlc_expr r = e->single ? divide(&wide, a, b, 29, 10) : divide(&wide, a, b, 50, 43);
    dlc_expr inf = dlc_x_num(&wide, __builtin_inf());
    r = dlc_x_select(&wide, dlc_x_eq(&wide, dlc_x_abs(&wide, b), inf), dlc_x_abs(&wide, a), r);
    r = dlc_x_with_sign(&wide, r, a);
    /* NaN for an infinite a, b = 0 and NaN operands: a - a is NaN or 0 */
    dlc_expr is_zero = dlc_x_eq(&wide, b, dlc_x_num(&wide, 0));
    dlc_expr bad = dlc_x_select(&wide, is_zero, dlc_x_num(&wide, __builtin_nan("")),
                                dlc_x_add(&wide, dlc_x_sub(&wide, a, a), dlc_x_mul(&wide, b, dlc_x_num(&wide, 0))));
    dlc_expr is_bad = dlc_expr2(e->pool, DLC_EXPR_NE, bad, bad);
    dlc_expr b_is_inf = dlc_x_eq(&wide, dlc_x_abs(&wide, b), inf);
    dlc_expr a_is_finite = dlc_x_lt(&wide, dlc_x_abs(&wide, a), inf);
    is_bad = dlc_expr2(e->pool, DLC_EXPR_AND, is_bad,
                       dlc_expr1(e->pool, DLC_EXPR_NOT, dlc_expr2(e->pool, DLC_EXPR_AND, b_is_inf, a_is_finite)));
    return dlc_expr_cast(e->pool, e->type, dlc_x_select(&wide, is_bad, dlc_x_num(&wide, __builtin_nan("")), r));
}

/* The sign of the divisor: the remainder moved by one divisor where the signs differ; a zero takes the divisor's sign. */
dlc_expr dlc_expand_mod(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr r = dlc_expand_rem(e, args), b = args[1], zero = dlc_x_num(e, 0);
    dlc_expr differs = dlc_expr2(e->pool, DLC_EXPR_NE, dlc_x_lt(e, r, zero), dlc_x_lt(e, b, zero));
    dlc_expr moved = dlc_x_select(e, differs, dlc_x_add(e, r, b), r);
    return dlc_x_select(e, dlc_x_eq(e, r, zero), dlc_x_with_sign(e, zero, b), moved);
}

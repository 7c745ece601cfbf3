/*
 * log and the inverse hyperbolic functions. x = 2^k m with m in [sqrt(1/2), sqrt(2)): the bits of x
 * minus those of sqrt(1/2), shifted, are k. f = m - 1 is exact, so log is right near 1 too.
 */
#include "ir/expr/expand.h"
#include "ir/expr/expand_table.h"

#include <math.h>

static const double ln2 = 0x1.62e42fefa39efp-1;

/* x times 2^lift where x is subnormal, so that its exponent field counts. */
static dlc_expr lifted(const dlc_expand *e, dlc_expr x, dlc_expr is_small)
{
    return dlc_x_select(e, is_small, dlc_x_mul(e, x, dlc_x_pick(e, 0x1p23, 0x1p52)), x);
}

/* log(1 + f) + k ln2 in f32: the tail of the sum of k ln2's high part and f is kept, which is half
 * an ulp. */
static dlc_expr combine_f32(const dlc_expand *e, dlc_expr k, dlc_expr f)
{
    dlc_expr p = dlc_x_muladd(e, DLC_POLY(e, log, f), f, dlc_x_num(e, -0.5));
    dlc_expr y = dlc_x_muladd(e, dlc_x_mul(e, f, f), p,
                              dlc_x_mul(e, k, dlc_x_num(e, -0x1.bd0105c610ca8p-13)));
    dlc_expr big = dlc_x_mul(e, k, dlc_x_num(e, 0x1.63p-1)); /* exact */
    dlc_expr sum = dlc_x_add(e, big, f);
    dlc_expr tail = dlc_x_sub(e, f, dlc_x_sub(e, sum, big));
    return dlc_x_add(e, sum, dlc_x_add(e, tail, y));
}

/* In f64: s = f / (2 + f), log(1 + f) = f - (f^2/2 - s (f^2/2 + z P(z))), z = s^2. */
static dlc_expr combine_f64(const dlc_expand *e, dlc_expr k, dlc_expr f)
{
    dlc_expr s = dlc_x_div(e, f, dlc_x_add(e, f, dlc_x_num(e, 2)));
    dlc_expr z = dlc_x_mul(e, s, s);
    dlc_expr half_square = dlc_x_mul(e, dlc_x_mul(e, f, f), dlc_x_num(e, 0.5));
    dlc_expr inner = dlc_x_muladd(e, z, DLC_POLY(e, log, z), half_square);
    dlc_expr low = dlc_x_mul(e, k, dlc_x_num(e, 0x1.a39ef35793c76p-33));
    dlc_expr small = dlc_x_sub(e, half_square, dlc_x_muladd(e, s, inner, low));
    return dlc_x_muladd(e, k, dlc_x_num(e, 0x1.62e42fee00000p-1), dlc_x_sub(e, f, small));
}

dlc_expr dlc_expand_log_of(const dlc_expand *e, dlc_expr x)
{
    dlc_expr is_small = dlc_x_lt(e, x, dlc_x_pick(e, 0x1p-126, 0x1p-1022));
    int64_t root_half = e->single ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
    dlc_expr bits = dlc_x_bits(e, lifted(e, x, is_small));
    dlc_expr exponent =
        dlc_x_int2(e, DLC_EXPR_SHR, dlc_x_int2(e, DLC_EXPR_SUB, bits, root_half), e->fraction);
    dlc_expr field = dlc_x_int2(e, DLC_EXPR_SHL, exponent, e->fraction);
    dlc_expr m = dlc_x_float(e, dlc_expr2(e->pool, DLC_EXPR_SUB, bits, field));
    dlc_expr k = dlc_expr_cast(e->pool, e->type, exponent);
    k = dlc_x_select(e, is_small, dlc_x_sub(e, k, dlc_x_num(e, e->fraction)), k);
    dlc_expr f = dlc_x_sub(e, m, dlc_x_num(e, 1));
    dlc_expr result = e->single ? combine_f32(e, k, f) : combine_f64(e, k, f);
    dlc_expr zero = dlc_x_num(e, 0), inf = dlc_x_num(e, INFINITY);
    dlc_expr finite = dlc_x_select(e, dlc_x_lt(e, x, inf), result, x);
    dlc_expr edge =
        dlc_x_select(e, dlc_x_eq(e, x, zero), dlc_x_num(e, -INFINITY), dlc_x_num(e, NAN));
    return dlc_x_select(e, dlc_x_lt(e, zero, x), finite, edge);
}

dlc_expr dlc_expand_log(const dlc_expand *e, const dlc_expr *args)
{
    return dlc_expand_log_of(e, args[0]);
}

/*
 * log(1 + t) from L = log(u), u = 1 + t rounded: L t / (u - 1) undoes the rounding of u (Kahan).
 * Where u = 1 the result is t, and where t is infinite there is nothing to undo.
 */
static dlc_expr undo_rounding(const dlc_expand *e, dlc_expr l, dlc_expr u, dlc_expr t)
{
    dlc_expr one = dlc_x_num(e, 1);
    dlc_expr corrected = dlc_x_mul(e, l, dlc_x_div(e, t, dlc_x_sub(e, u, one)));
    dlc_expr as_is = dlc_expr2(e->pool, DLC_EXPR_OR, dlc_x_eq(e, u, one),
                               dlc_x_eq(e, t, dlc_x_num(e, INFINITY)));
    return dlc_x_select(e, as_is, t, corrected);
}

dlc_expr dlc_expand_log1p(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr u = dlc_x_add(e, args[0], dlc_x_num(e, 1));
    return undo_rounding(e, dlc_expand_log_of(e, u), u, args[0]);
}

/* log(1 + t), or log(a) + ln2 where a is so large that it is the same and t may have overflowed. */
static dlc_expr log_1p_or_2a(const dlc_expand *e, dlc_expr t, dlc_expr a)
{
    dlc_expr is_big = dlc_x_lt(e, dlc_x_pick(e, 0x1p13, 0x1p28), a);
    dlc_expr u = dlc_x_select(e, is_big, a, dlc_x_add(e, t, dlc_x_num(e, 1)));
    dlc_expr l = dlc_expand_log_of(e, u);
    return dlc_x_select(e, is_big, dlc_x_add(e, l, dlc_x_num(e, ln2)), undo_rounding(e, l, u, t));
}

/* asinh a = log(1 + t), t = a + a^2 / (1 + sqrt(1 + a^2)) */
dlc_expr dlc_expand_asinh(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr one = dlc_x_num(e, 1), a = dlc_x_abs(e, args[0]);
    dlc_expr z = dlc_x_mul(e, a, a);
    dlc_expr root = dlc_x_sqrt(e, dlc_x_add(e, z, one));
    dlc_expr t = dlc_x_add(e, a, dlc_x_div(e, z, dlc_x_add(e, root, one)));
    return dlc_x_with_sign(e, log_1p_or_2a(e, t, a), args[0]);
}

/* acosh x = log(1 + t + sqrt(t (t + 2))), t = x - 1 */
dlc_expr dlc_expand_acosh(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr one = dlc_x_num(e, 1), x = args[0];
    dlc_expr t = dlc_x_sub(e, x, one);
    dlc_expr root = dlc_x_sqrt(e, dlc_x_mul(e, t, dlc_x_add(e, t, dlc_x_num(e, 2))));
    dlc_expr result = log_1p_or_2a(e, dlc_x_add(e, t, root), x);
    return dlc_x_select(e, dlc_x_lt(e, x, one), dlc_x_num(e, NAN), result);
}

/* atanh a = log(1 + 2a / (1 - a)) / 2 */
dlc_expr dlc_expand_atanh(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr one = dlc_x_num(e, 1), a = dlc_x_abs(e, args[0]);
    dlc_expr t = dlc_x_div(e, dlc_x_add(e, a, a), dlc_x_sub(e, one, a));
    dlc_expr u = dlc_x_add(e, t, one);
    dlc_expr size =
        dlc_x_mul(e, undo_rounding(e, dlc_expand_log_of(e, u), u, t), dlc_x_num(e, 0.5));
    return dlc_x_with_sign(e, size, args[0]);
}

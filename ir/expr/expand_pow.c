/*
 * pow(x, y) = 2^(y log2 |x|). The product has the exponent's bits in front of the point, so log2
 * needs about 12 bits more than the result: f32 takes f64; f64 takes sums of two f64, their high
 * parts cut to 26 bits so that products are exact without fma (the scheme of fdlibm's e_pow.c).
 * C99's special cases are selects at the end.
 */
#include "ir/expr/expand.h"
#include "ir/expr/expand_table.h"

#include <math.h>

/* x = 2^k m, m in [sqrt(1/2), sqrt(2)); in f64, x normal. */
static dlc_expr split(const dlc_expand *e, dlc_expr x, dlc_expr *m)
{
    dlc_expr bits = dlc_x_bits(e, x);
    dlc_expr exponent =
        dlc_x_int2(e, DLC_EXPR_SHR, dlc_x_int2(e, DLC_EXPR_SUB, bits, 0x3fe6a09e667f3bcd), 52);
    *m = dlc_x_float(
        e, dlc_expr2(e->pool, DLC_EXPR_SUB, bits, dlc_x_int2(e, DLC_EXPR_SHL, exponent, 52)));
    return dlc_expr_cast(e->pool, DLC_F64, exponent);
}

/* |x|^y of f32 operands already in f64; the cast back rounds, overflows and makes subnormals. */
static dlc_expr power_f32(const dlc_expand *e, dlc_expr a, dlc_expr y)
{
    dlc_expr m, k = split(e, a, &m), one = dlc_x_num(e, 1);
    dlc_expr s = dlc_x_div(e, dlc_x_sub(e, m, one), dlc_x_add(e, m, one));
    dlc_expr z = dlc_x_mul(e, s, s);
    dlc_expr log2 = dlc_x_muladd(
        e, s, dlc_expand_poly(e, log2_wide, sizeof log2_wide / sizeof *log2_wide, z), k);
    dlc_expr w = dlc_x_clamp(e, -200, 200, dlc_x_mul(e, y, log2)),
             magic = dlc_x_num(e, e->magic + 1023);
    dlc_expr shifted = dlc_x_add(e, w, magic);
    dlc_expr r = dlc_x_sub(e, w, dlc_x_sub(e, shifted, magic));
    dlc_expr p = dlc_x_muladd(
        e, r, dlc_expand_poly(e, exp2_wide, sizeof exp2_wide / sizeof *exp2_wide, r), one);
    return dlc_x_mul(e, p, dlc_x_float(e, dlc_x_int2(e, DLC_EXPR_SHL, dlc_x_bits(e, shifted), 52)));
}

/* high + low */
typedef struct {
    dlc_expr high, low;
} pair;

/* The upper 26 of 53 bits. */
static dlc_expr cut(const dlc_expand *e, dlc_expr x)
{
    return dlc_x_float(e, dlc_x_int2(e, DLC_EXPR_AND, dlc_x_bits(e, x), -(INT64_C(1) << 27)));
}

/* s = (m - 1) / (m + 1), high part cut, and log((1+s)/(1-s)) = 2/3 s (3 + z + z^2 P(z)) as the pair
 * 3/2 of it. */
static pair log_of_ratio(const dlc_expand *e, dlc_expr m)
{
    dlc_expr one = dlc_x_num(e, 1), three = dlc_x_num(e, 3);
    dlc_expr f = dlc_x_sub(e, m, one), d = dlc_x_add(e, m, one);
    dlc_expr s = dlc_x_div(e, f, d);
    dlc_expr s_high = cut(e, s), d_high = cut(e, d);
    dlc_expr d_low = dlc_x_sub(e, m, dlc_x_sub(e, d_high, one));
    dlc_expr left =
        dlc_x_sub(e, dlc_x_sub(e, f, dlc_x_mul(e, s_high, d_high)), dlc_x_mul(e, s_high, d_low));
    dlc_expr s_low = dlc_x_div(e, left, d);

    dlc_expr z = dlc_x_mul(e, s, s), square = dlc_x_mul(e, s_high, s_high); /* exact */
    dlc_expr tail = dlc_x_mul(e, dlc_x_mul(e, z, z),
                              dlc_expand_poly(e, log_tail, sizeof log_tail / sizeof *log_tail, z));
    tail = dlc_x_muladd(e, s_low, dlc_x_add(e, s_high, s), tail);
    dlc_expr t_high = cut(e, dlc_x_add(e, dlc_x_add(e, three, square), tail));
    dlc_expr t_low = dlc_x_sub(e, tail, dlc_x_sub(e, dlc_x_sub(e, t_high, three), square));
    dlc_expr u = dlc_x_mul(e, s_high, t_high); /* exact */
    dlc_expr v = dlc_x_muladd(e, s_low, t_high, dlc_x_mul(e, t_low, s));
    dlc_expr high = cut(e, dlc_x_add(e, u, v));
    return (pair){high, dlc_x_sub(e, v, dlc_x_sub(e, high, u))};
}

static pair log2_f64(const dlc_expand *e, dlc_expr a)
{
    dlc_expr is_small = dlc_x_lt(e, a, dlc_x_num(e, 0x1p-1022));
    dlc_expr m,
        k = split(e, dlc_x_select(e, is_small, dlc_x_mul(e, a, dlc_x_num(e, 0x1p52)), a), &m);
    k = dlc_x_select(e, is_small, dlc_x_sub(e, k, dlc_x_num(e, 52)), k);
    pair p = log_of_ratio(e, m);
    /* times 2 / (3 ln2) = 0x1.ec709d8p-1 + rest */
    dlc_expr high = dlc_x_mul(e, p.high, dlc_x_num(e, 0x1.ec709d8000000p-1)); /* exact */
    dlc_expr low = dlc_x_muladd(e, p.high, dlc_x_num(e, 0x1.0e80ff5d27f05p-27),
                                dlc_x_mul(e, p.low, dlc_x_num(e, 0x1.ec709dc3a03fdp-1)));
    dlc_expr sum = cut(e, dlc_x_add(e, dlc_x_add(e, high, low), k));
    return (pair){sum, dlc_x_sub(e, low, dlc_x_sub(e, dlc_x_sub(e, sum, k), high))};
}

/* 2^(high + low), high exact */
static dlc_expr exp2_f64(const dlc_expand *e, pair x)
{
    dlc_expr is_small = dlc_x_lt(e, x.high, dlc_x_num(e, -1000));
    dlc_expr magic = dlc_x_select(e, is_small, dlc_x_num(e, e->magic + 1022 + 512),
                                  dlc_x_num(e, e->magic + 1022));
    dlc_expr shifted = dlc_x_add(e, dlc_x_add(e, x.high, x.low), magic);
    dlc_expr rest = dlc_x_sub(e, x.high, dlc_x_sub(e, shifted, magic));
    dlc_expr t = cut(e, dlc_x_add(e, rest, x.low));
    dlc_expr t_low = dlc_x_sub(e, x.low, dlc_x_sub(e, t, rest));
    dlc_expr u = dlc_x_mul(e, t, dlc_x_num(e, 0x1.62e42f8000000p-1)); /* exact */
    dlc_expr v = dlc_x_muladd(e, t_low, dlc_x_num(e, 0x1.62e42fefa39efp-1),
                              dlc_x_mul(e, t, dlc_x_num(e, 0x1.be8e7bcd5e4f2p-27)));
    dlc_expr r = dlc_x_add(e, u, v);
    dlc_expr r_low = dlc_x_sub(e, v, dlc_x_sub(e, r, u));
    dlc_expr tail = dlc_x_muladd(e, dlc_x_mul(e, r, r), DLC_POLY(e, exp, r), r_low);
    dlc_expr two = dlc_x_num(e, 2);
    dlc_expr p =
        dlc_x_muladd(e, dlc_x_add(e, r, tail), two, two); /* 2 exp(r): as in expand_exp.c */
    dlc_expr result =
        dlc_x_mul(e, p, dlc_x_float(e, dlc_x_int2(e, DLC_EXPR_SHL, dlc_x_bits(e, shifted), 52)));
    return dlc_x_select(e, is_small, dlc_x_mul(e, result, dlc_x_num(e, 0x1p-512)), result);
}

static dlc_expr power_f64(const dlc_expand *e, dlc_expr a, dlc_expr y)
{
    pair log2 = log2_f64(e, a);
    dlc_expr y_high = cut(e, y);
    dlc_expr low = dlc_x_muladd(e, dlc_x_sub(e, y, y_high), log2.high, dlc_x_mul(e, y, log2.low));
    dlc_expr high = dlc_x_mul(e, y_high, log2.high); /* exact */
    return exp2_f64(e,
                    (pair){dlc_x_clamp(e, -1080, 1024.5, high), dlc_x_clamp(e, -0.25, 0.25, low)});
}

/* size = |x|^y for finite |x| > 0; y_finite is y within +-2^80, which saturates every power but
 * that of 1. */
static dlc_expr special_cases(const dlc_expand *e, dlc_expr x, dlc_expr y, dlc_expr y_finite,
                              dlc_expr size)
{
    dlc_expr a = dlc_x_abs(e, x), zero = dlc_x_num(e, 0), one = dlc_x_num(e, 1),
             inf = dlc_x_num(e, INFINITY);
    dlc_expr nothing = dlc_x_abs(e, dlc_x_mul(e, y_finite, zero)); /* 0, NaN for NaN */
    dlc_expr of_zero = dlc_x_select(e, dlc_x_lt(e, y_finite, zero), inf, nothing);
    dlc_expr of_inf = dlc_x_select(e, dlc_x_lt(e, zero, y_finite), inf, nothing);
    size = dlc_x_select(e, dlc_x_eq(e, a, zero), of_zero, size);
    size = dlc_x_select(e, dlc_x_eq(e, a, inf), of_inf, size);
    size = dlc_x_select(e, dlc_expr2(e->pool, DLC_EXPR_NE, a, a), a, size);

    dlc_expr half = dlc_x_mul(e, y, dlc_x_num(e, 0.5));
    dlc_expr is_whole = dlc_x_eq(e, dlc_expr1(e->pool, DLC_EXPR_RINT, y), y);
    dlc_expr is_odd =
        dlc_expr2(e->pool, DLC_EXPR_AND, is_whole,
                  dlc_expr2(e->pool, DLC_EXPR_NE, dlc_expr1(e->pool, DLC_EXPR_RINT, half), half));
    dlc_expr result = dlc_x_select(e, is_odd, dlc_x_with_sign(e, size, x), size);
    dlc_expr is_negative =
        dlc_expr2(e->pool, DLC_EXPR_AND, dlc_x_lt(e, x, zero), dlc_x_lt(e, a, inf));
    dlc_expr is_undefined =
        dlc_expr2(e->pool, DLC_EXPR_AND, is_negative, dlc_expr1(e->pool, DLC_EXPR_NOT, is_whole));
    result = dlc_x_select(e, is_undefined, dlc_x_num(e, NAN), result);
    dlc_expr is_one = dlc_expr2(e->pool, DLC_EXPR_OR, dlc_x_eq(e, y, zero), dlc_x_eq(e, x, one));
    return dlc_x_select(e, is_one, one, result);
}

dlc_expr dlc_expand_pow(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr x = args[0], y = args[1];
    dlc_expr y_finite = dlc_x_clamp(e, -0x1p80, 0x1p80, y);
    if (!e->single)
        return special_cases(e, x, y, y_finite, power_f64(e, dlc_x_abs(e, x), y_finite));
    dlc_expand d = dlc_expand_as(e->pool, DLC_F64);
    dlc_expr size = power_f32(&d, dlc_expr_cast(e->pool, DLC_F64, dlc_x_abs(e, x)),
                              dlc_expr_cast(e->pool, DLC_F64, y_finite));
    return special_cases(e, x, y, y_finite, dlc_expr_cast(e->pool, DLC_F32, size));
}

/*
 * exp and what is made of it. x = n ln2 + r with |r| <= ln2 / 2; n is read from the low bits of x /
 * ln2 + magic, whose shift to the exponent's place gives 2^n in one instruction. ln2 is split so
 * that n * high is exact without fma.
 */
#include "ir/expr/expand.h"
#include "ir/expr/expand_table.h"

#include <math.h>

static const double log2e = 0x1.71547652b82fep0;
static const double ln2_high_f32 = 0x1.63p-1, ln2_low_f32 = -0x1.bd0105c610ca8p-13;
static const double ln2_high_f64 = 0x1.62e42fee00000p-1, ln2_low_f64 = 0x1.a39ef35793c76p-33;

/* x = n ln2 + r; `shifted` holds n + bias in its low bits, magic = e->magic + bias. */
typedef struct {
    dlc_expr shifted, r;
} reduction;

static reduction reduce(const dlc_expand *e, dlc_expr x, dlc_expr magic)
{
    dlc_expr shifted = dlc_x_muladd(e, x, dlc_x_num(e, log2e), magic);
    dlc_expr n = dlc_x_sub(e, shifted, magic);
    dlc_expr r = dlc_x_muladd(e, n, dlc_x_pick(e, -ln2_high_f32, -ln2_high_f64), x);
    return (reduction){shifted, dlc_x_muladd(e, n, dlc_x_pick(e, -ln2_low_f32, -ln2_low_f64), r)};
}

/* The low bits of `shifted` as a float's exponent field. */
static dlc_expr power_of_two(const dlc_expand *e, dlc_expr shifted)
{
    return dlc_x_float(e, dlc_x_int2(e, DLC_EXPR_SHL, dlc_x_bits(e, shifted), e->fraction));
}

/*
 * 2 exp(r) times 2^(n - 1 + scale): the spare factor of 2 lets n reach 128 (1024) without an
 * infinite power. Results that may be subnormal get 2^lift more and are multiplied back, so that
 * they are rounded once.
 */
static dlc_expr scaled(const dlc_expand *e, dlc_expr x, dlc_expr bias)
{
    reduction by = reduce(e, x, bias);
    /* 2 + r (2 + r 2 P(r)): doubling the coefficients is exact */
    double table[16] = {2, 2};
    uint32_t n = e->single ? sizeof exp_f32 / sizeof *exp_f32 : sizeof exp_f64 / sizeof *exp_f64;
    for (uint32_t i = 0; i < n; i++)
        table[i + 2] = 2 * (e->single ? exp_f32[i] : exp_f64[i]);
    return dlc_x_mul(e, dlc_expand_poly(e, table, n + 2, by.r), power_of_two(e, by.shifted));
}

static double bias_of(const dlc_expand *e, int scale)
{
    return e->magic + (e->single ? 126 : 1022) + scale;
}

/*
 * The same by `scale`, which rounds once and has no exponent too large or too small for it, infinities included: x needs no limits. Where it
 * is so large that n is no longer exact, or that r is NaN, 2^n is 0 or infinite whatever P(r) is, if that is positive: of such an r the
 * exponent's highest bit goes, which leaves less than 2 of it and is 0 in all others. NaN comes back through n.
 */
static dlc_expr scaled_by_row(const dlc_expand *e, dlc_expr x, int scale)
{
    const int64_t exponent = e->single ? (int64_t)1 << 30 : (int64_t)1 << 62;
    dlc_expr magic = dlc_x_num(e, e->magic), n, r;
    double table[16] = {1, 1};
    uint32_t ncoefficients = e->single ? sizeof exp_f32 / sizeof *exp_f32 : sizeof exp_f64 / sizeof *exp_f64;
    n = dlc_x_sub(e, dlc_x_muladd(e, x, dlc_x_num(e, log2e), magic), magic);
    r = dlc_x_muladd(e, n, dlc_x_pick(e, -ln2_high_f32, -ln2_high_f64), x);
    r = dlc_x_muladd(e, n, dlc_x_pick(e, -ln2_low_f32, -ln2_low_f64), r);
    r = dlc_x_float(e, dlc_x_int2(e, DLC_EXPR_AND, dlc_x_bits(e, r), ~exponent));
    for (uint32_t i = 0; i < ncoefficients; i++)
        table[i + 2] = e->single ? exp_f32[i] : exp_f64[i];
    for (uint32_t i = 0; i < ncoefficients + 2; i++)
        table[i] = ldexp(table[i], scale);
    return dlc_expr2(e->pool, DLC_EXPR_SCALE, dlc_expand_poly(e, table, ncoefficients + 2, r), n);
}

dlc_expr dlc_expand_exp_scaled(const dlc_expand *e, dlc_expr x, int scale)
{
    if (e->scales)
        return scaled_by_row(e, x, scale);
    double margin = scale * 0.69, bias = bias_of(e, scale);
    x = dlc_x_clamp(e, e->single ? -104 : -746, (e->single ? 89.0 : 709.8) - margin, x);
    int lift = e->single ? 64 : 512;
    dlc_expr is_small = dlc_x_lt(e, x, dlc_x_pick(e, -86, -700));
    dlc_expr result = scaled(e, x, dlc_x_select(e, is_small, dlc_x_num(e, bias + lift), dlc_x_num(e, bias)));
    return dlc_x_select(e, is_small, dlc_x_mul(e, result, dlc_x_num(e, ldexp(1, -lift))), result);
}

dlc_expr dlc_expand_exp_beside(const dlc_expand *e, dlc_expr x)
{
    x = dlc_x_clamp(e, e->single ? -86 : -700, e->single ? 89.0 : 709.8, x);
    return scaled(e, x, dlc_x_num(e, bias_of(e, 0)));
}

dlc_expr dlc_expand_exp(const dlc_expand *e, const dlc_expr *args)
{
    return dlc_expand_exp_scaled(e, args[0], 0);
}

/* exp(x) - 1 for x well within the exponents' range, right near 0 too: s (r + r^2 P) + (s - 1), s =
 * 2^n. */
static dlc_expr exp_minus_one(const dlc_expand *e, dlc_expr x)
{
    reduction by = reduce(e, x, dlc_x_num(e, e->magic + (e->single ? 127 : 1023)));
    dlc_expr s = power_of_two(e, by.shifted);
    dlc_expr q = dlc_x_muladd(e, dlc_x_mul(e, by.r, by.r), DLC_POLY(e, exp, by.r), by.r);
    return dlc_x_muladd(e, s, q, dlc_x_sub(e, s, dlc_x_num(e, 1)));
}

/* tanh a = E / (E + 2), E = exp(2a) - 1: one formula, right near 0 and near 1. */
dlc_expr dlc_expand_tanh(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr a = dlc_expr2(e->pool, DLC_EXPR_MIN, dlc_x_pick(e, 9.1, 20), dlc_x_abs(e, args[0]));
    dlc_expr em1 = exp_minus_one(e, dlc_x_add(e, a, a));
    return dlc_x_with_sign(e, dlc_x_div(e, em1, dlc_x_add(e, em1, dlc_x_num(e, 2))), args[0]);
}

/* erf a = 1 - exp(log erfc a), and log erfc is a tame polynomial. */
dlc_expr dlc_expand_erf(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr b = dlc_expr2(e->pool, DLC_EXPR_MAX, dlc_x_pick(e, -3.93, -5.95),
                           dlc_x_neg(e, dlc_x_abs(e, args[0])));
    dlc_expr log_erfc = dlc_x_muladd(e, b, DLC_POLY(e, erf, b), b);
    return dlc_x_with_sign(e, dlc_x_abs(e, exp_minus_one(e, log_erfc)), args[0]);
}

/* exp(a) / 2 and what follows from it: 1 / (4 h) = exp(-a) / 2 */
static void half_exps(const dlc_expand *e, dlc_expr a, dlc_expr *plus, dlc_expr *minus)
{
    *plus = dlc_expand_exp_scaled(e, a, -1);
    *minus = dlc_x_div(e, dlc_x_num(e, 0.25), *plus);
}

dlc_expr dlc_expand_sinh(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr a = dlc_x_abs(e, args[0]), plus, minus;
    half_exps(e, a, &plus, &minus);
    dlc_expr z = dlc_x_mul(e, a, a);
    dlc_expr near_zero = dlc_x_muladd(e, dlc_x_mul(e, a, z), DLC_POLY(e, sinh, z), a);
    dlc_expr size =
        dlc_x_select(e, dlc_x_lt(e, a, dlc_x_num(e, 1)), near_zero, dlc_x_sub(e, plus, minus));
    return dlc_x_with_sign(e, size, args[0]);
}

dlc_expr dlc_expand_cosh(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr plus, minus;
    half_exps(e, dlc_x_abs(e, args[0]), &plus, &minus);
    return dlc_x_add(e, plus, minus);
}

/*
 * a 2^floor(b) with a rounding for the result alone: what b has beyond the exponents of one factor goes first, by factors that leave a normal
 * number normal, or so small that the result is 0 whatever is rounded.
 */
dlc_expr dlc_expand_scale(const dlc_expand *e, const dlc_expr *args)
{
    const double most = e->single ? 127 : 1023, least = 1 - most, down = least + e->fraction + 1;
    dlc_expr a = args[0], b = dlc_x_clamp(e, 4 * least, 4 * most, dlc_expr1(e->pool, DLC_EXPR_FLOOR, args[1]));
    for (int i = 0; i < 3; i++) {
        dlc_expr is_high = dlc_x_lt(e, dlc_x_num(e, most), b), is_low = dlc_x_lt(e, b, dlc_x_num(e, least));
        dlc_expr step = dlc_x_select(e, is_high, dlc_x_num(e, most), dlc_x_select(e, is_low, dlc_x_num(e, down), dlc_x_num(e, 0)));
        dlc_expr factor = dlc_x_select(e, is_high, dlc_x_num(e, ldexp(1, (int)most)),
                                       dlc_x_select(e, is_low, dlc_x_num(e, ldexp(1, (int)down)), dlc_x_num(e, 1)));
        a = dlc_x_mul(e, a, factor);
        b = dlc_x_sub(e, b, step);
    }
    b = dlc_x_clamp(e, least, most, b);
    dlc_expr result = dlc_x_mul(e, a, power_of_two(e, dlc_x_add(e, b, dlc_x_num(e, e->magic + most))));
    dlc_expr is_infinite = dlc_x_eq(e, dlc_x_abs(e, args[1]), dlc_x_num(e, INFINITY));
    dlc_expr at_end = dlc_x_mul(e, args[0], dlc_expr2(e->pool, DLC_EXPR_MAX, dlc_x_num(e, 0), args[1]));
    result = dlc_x_select(e, is_infinite, at_end, result);
    return dlc_x_select(e, dlc_x_eq(e, args[1], args[1]), result, args[1]);
}

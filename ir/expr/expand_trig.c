/*
 * sin, cos, tan and their inverses. |x| = n pi/2 + r, |r| <= pi/4; the low two bits of n choose the
 * polynomial and the sign.
 *
 *   f32  exact for every finite x: 1/(2 pi) in seven pieces of 29 bits, whose products with x are
 * exact in f64; each product loses its whole turns, also exactly, and what is left is summed from
 * the smallest up. (Payne and Hanek's idea without a table: pieces that are too large for x to see
 * vanish by themselves.) f64  three parts of pi/2 of 33, 33 and 53 bits: full precision for |x| <=
 * 2^20; beyond, the absolute error grows as |x| 2^-52, and the result stays within [-1, 1].
 */
#include "ir/expr/expand.h"
#include "ir/expr/expand_table.h"

#include <math.h>

/* 29 bits each: with the 24 of x a product has at most 53. */
static const double turns[] = {
    0x1.45f306d000000p-3,   0x1.9391054000000p-32,  0x1.4fe13ab000000p-61,  0x1.d1f534d000000p-90,
    0x1.b81b6c5000000p-119, 0x1.5993c40000000p-150, 0x1.c820ff2000000p-177,
};
static const double half_pi_parts[] = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34,
                                       0x1.3198a2e037073p-69};
static const double half_pi = 0x1.921fb54442d18p+0;

typedef struct {
    dlc_expr r, n; /* n: integer of e->bits, its low two bits count */
} quadrant;

static quadrant reduce_f32(const dlc_expand *e, dlc_expr a)
{
    dlc_expand d = dlc_expand_as(e->pool, DLC_F64);
    dlc_expr x = dlc_expr_cast(e->pool, DLC_F64, a), sum = 0;
    for (uint32_t i = sizeof turns / sizeof *turns; i-- > 0;) {
        dlc_expr piece = dlc_x_mul(&d, x, dlc_x_num(&d, turns[i]));
        dlc_expr rest = dlc_x_sub(&d, piece, dlc_expr1(e->pool, DLC_EXPR_RINT, piece));
        sum = sum ? dlc_x_add(&d, sum, rest) : rest;
    }
    dlc_expr quarters = dlc_x_mul(&d, sum, dlc_x_num(&d, 4)), magic = dlc_x_num(&d, d.magic);
    dlc_expr shifted = dlc_x_add(&d, quarters, magic);
    dlc_expr rest = dlc_x_sub(&d, quarters, dlc_x_sub(&d, shifted, magic));
    return (quadrant){
        .r = dlc_expr_cast(e->pool, DLC_F32, dlc_x_mul(&d, rest, dlc_x_num(&d, half_pi))),
        .n = dlc_expr_cast(e->pool, DLC_I32, dlc_x_bits(&d, shifted)),
    };
}

static quadrant reduce_f64(const dlc_expand *e, dlc_expr a)
{
    dlc_expr magic = dlc_x_num(e, e->magic);
    dlc_expr shifted = dlc_x_muladd(e, a, dlc_x_num(e, 1 / half_pi), magic);
    dlc_expr n = dlc_x_sub(e, shifted, magic), r = a;
    for (uint32_t i = 0; i < 3; i++)
        r = dlc_x_muladd(e, n, dlc_x_num(e, -half_pi_parts[i]), r);
    return (quadrant){.r = dlc_x_clamp(e, -1, 1, r), .n = dlc_x_bits(e, shifted)};
}

/* Both polynomials at |x|, and whether they change places. */
typedef struct {
    dlc_expr sin, cos, is_odd, n;
} circle;

static circle on_circle(const dlc_expand *e, dlc_expr x)
{
    dlc_expr a = dlc_x_abs(e, x);
    quadrant q = e->single ? reduce_f32(e, a) : reduce_f64(e, a);
    dlc_expr z = dlc_x_mul(e, q.r, q.r);
    dlc_expr cos_tail = dlc_x_muladd(e, DLC_POLY(e, cos, z), z, dlc_x_num(e, -0.5));
    dlc_expr odd = dlc_x_int2(e, DLC_EXPR_AND, q.n, 1);
    return (circle){
        .sin = dlc_x_muladd(e, dlc_x_mul(e, q.r, z), DLC_POLY(e, sin, z), q.r),
        .cos = dlc_x_muladd(e, cos_tail, z, dlc_x_num(e, 1)),
        .is_odd = dlc_expr2(e->pool, DLC_EXPR_NE, odd, dlc_x_int(e, 0)),
        .n = q.n,
    };
}

/* x with its sign flipped where bit 1 of n is set. */
static dlc_expr flip_by(const dlc_expand *e, dlc_expr x, dlc_expr n)
{
    dlc_expr flip =
        dlc_x_int2(e, DLC_EXPR_SHL, dlc_x_int2(e, DLC_EXPR_AND, n, 2), e->single ? 30 : 62);
    return dlc_x_float(e, dlc_expr2(e->pool, DLC_EXPR_XOR, dlc_x_bits(e, x), flip));
}

/* y with its sign flipped where x is negative: odd functions are computed at |x|. */
static dlc_expr flip_like(const dlc_expand *e, dlc_expr y, dlc_expr x)
{
    dlc_expr sign = dlc_x_int2(e, DLC_EXPR_AND, dlc_x_bits(e, x), dlc_x_sign_bit(e));
    return dlc_x_float(e, dlc_expr2(e->pool, DLC_EXPR_XOR, dlc_x_bits(e, y), sign));
}

dlc_expr dlc_expand_sin(const dlc_expand *e, const dlc_expr *args)
{
    circle at = on_circle(e, args[0]);
    return flip_like(e, flip_by(e, dlc_x_select(e, at.is_odd, at.cos, at.sin), at.n), args[0]);
}

dlc_expr dlc_expand_cos(const dlc_expand *e, const dlc_expr *args)
{
    circle at = on_circle(e, args[0]);
    dlc_expr next = dlc_x_int2(e, DLC_EXPR_ADD, at.n, 1);
    return flip_by(e, dlc_x_select(e, at.is_odd, at.sin, at.cos), next);
}

dlc_expr dlc_expand_tan(const dlc_expand *e, const dlc_expr *args)
{
    circle at = on_circle(e, args[0]);
    dlc_expr over = dlc_x_select(e, at.is_odd, dlc_x_neg(e, at.cos), at.sin);
    dlc_expr under = dlc_x_select(e, at.is_odd, at.sin, at.cos);
    return flip_like(e, dlc_x_div(e, over, under), args[0]);
}

/* --- inverses --- */

/* multiple * pi / 4 - x, pi in two parts. */
static dlc_expr from_pi(const dlc_expand *e, double quarters, dlc_expr x)
{
    double high = (e->single ? 0x1.921fb6p-1 : 0x1.921fb54442d18p-1) * quarters;
    double low = (e->single ? -0x1.777a5cf72cecep-26 : 0x1.1a62633145c07p-55) * quarters;
    return dlc_x_sub(e, dlc_x_num(e, high), dlc_x_sub(e, x, dlc_x_num(e, low)));
}

/* asin of a <= 1/2, and of sqrt((1 - a) / 2) for larger a, of which asin a = pi/2 - 2 asin(that).
 */
typedef struct {
    dlc_expr is_big, value;
} half_angle;

static half_angle asin_half(const dlc_expand *e, dlc_expr a)
{
    dlc_expr half = dlc_x_num(e, 0.5);
    dlc_expr is_big = dlc_x_lt(e, half, a);
    dlc_expr rest = dlc_x_mul(e, dlc_x_sub(e, dlc_x_num(e, 1), a), half);
    dlc_expr z = dlc_x_select(e, is_big, rest, dlc_x_mul(e, a, a));
    dlc_expr w = dlc_x_select(e, is_big, dlc_x_sqrt(e, rest), a);
    return (half_angle){is_big, dlc_x_muladd(e, dlc_x_mul(e, w, z), DLC_POLY(e, asin, z), w)};
}

dlc_expr dlc_expand_asin(const dlc_expand *e, const dlc_expr *args)
{
    half_angle h = asin_half(e, dlc_x_abs(e, args[0]));
    dlc_expr size =
        dlc_x_select(e, h.is_big, from_pi(e, 2, dlc_x_add(e, h.value, h.value)), h.value);
    return dlc_x_with_sign(e, size, args[0]);
}

dlc_expr dlc_expand_acos(const dlc_expand *e, const dlc_expr *args)
{
    half_angle h = asin_half(e, dlc_x_abs(e, args[0]));
    dlc_expr twice = dlc_x_add(e, h.value, h.value);
    dlc_expr is_negative = dlc_x_lt(e, args[0], dlc_x_num(e, 0));
    dlc_expr far = dlc_x_select(e, is_negative, from_pi(e, 4, twice), twice);
    return dlc_x_select(e, h.is_big, far, from_pi(e, 2, dlc_x_with_sign(e, h.value, args[0])));
}

/* atan a = base + atan t: t = a below tan(pi/8), (a - 1) / (a + 1) below tan(3 pi/8), else -1 / a.
 */
dlc_expr dlc_expand_atan(const dlc_expand *e, const dlc_expr *args)
{
    dlc_expr a = dlc_x_abs(e, args[0]), one = dlc_x_num(e, 1), zero = dlc_x_num(e, 0);
    dlc_expr is_middle = dlc_x_lt(e, dlc_x_num(e, 0x1.a82799p-2), a);
    dlc_expr is_big = dlc_x_lt(e, dlc_x_num(e, 0x1.3504f3p+1), a);
    dlc_expr over = dlc_x_select(e, is_middle, dlc_x_sub(e, a, one), a);
    dlc_expr under = dlc_x_select(e, is_middle, dlc_x_add(e, a, one), one);
    dlc_expr t = dlc_x_div(e, dlc_x_select(e, is_big, dlc_x_num(e, -1), over),
                           dlc_x_select(e, is_big, a, under));
    dlc_expr base =
        dlc_x_select(e, is_middle, dlc_x_pick(e, 0x1.921fb6p-1, 0x1.921fb54442d18p-1), zero);
    base = dlc_x_select(e, is_big, dlc_x_pick(e, 0x1.921fb6p+0, 0x1.921fb54442d18p+0), base);
    double low = e->single ? -0x1.777a5cf72cecep-26 : 0x1.1a62633145c07p-55;
    dlc_expr rest = dlc_x_select(e, is_big, dlc_x_num(e, 2 * low),
                                 dlc_x_select(e, is_middle, dlc_x_num(e, low), zero));
    dlc_expr z = dlc_x_mul(e, t, t);
    dlc_expr tail = dlc_x_muladd(e, dlc_x_mul(e, t, z), DLC_POLY(e, atan, z), rest);
    return dlc_x_with_sign(e, dlc_x_add(e, base, dlc_x_add(e, t, tail)), args[0]);
}

/*
 * Meanings of pointwise operators: one element of the result from the elements at the same place. A
 * line of algebra each; f16 and bf16 are computed in f32 and rounded once.
 */
#include "ir/graph/mean.h"

#include <string.h>

/* What a formula needs to know beside its operands. */
typedef struct {
    dlc_pool *pool;
    const dlc_node *node;
    dlc_dtype dtype; /* of the operands as given here: widened */
} point;

static dlc_expr number(const point *p, double value)
{
    return dlc_expr_const(p->pool, p->dtype, value);
}

static dlc_expr alpha(const point *p)
{
    return number(p, dlc_node_float(p->node, DLC_ATTR_ALPHA, 1));
}

static dlc_expr beta(const point *p)
{
    return number(p, dlc_node_float(p->node, DLC_ATTR_BETA, 0));
}

static dlc_expr call(const point *p, dlc_expr_op op, dlc_expr x)
{
    return dlc_expr1(p->pool, op, x);
}

static dlc_expr quotient(const point *p, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(p->pool, DLC_EXPR_DIV, a, b);
}

static dlc_expr is_negative(const point *p, dlc_expr x)
{
    return dlc_lt(p->pool, x, number(p, 0));
}

/* --- one input --- */

typedef dlc_expr (*formula)(const point *p, dlc_expr x);

static dlc_status map_of_one(dlc_mean *mean, formula value, int is_widened)
{
    const dlc_type *type = dlc_mean_in(mean, 0);
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK];
    point p = {mean->kernel->pool, mean->node,
               is_widened ? dlc_mean_wide(type->dtype) : type->dtype};
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    dlc_expr x = dlc_expr_cast(p.pool, p.dtype, dlc_mean_load(mean, 0, index));
    return dlc_mean_finish(mean, &axes, value(&p, x));
}

#define POINTWISE(name)                                                                            \
    dlc_status dlc_mean_##name(dlc_mean *mean)                                                     \
    {                                                                                              \
        return map_of_one(mean, of_##name, 1);                                                     \
    }
/* An operator that is a row of expr.def. */
#define ROW(name, op)                                                                              \
    static dlc_expr of_##name(const point *p, dlc_expr x)                                          \
    {                                                                                              \
        return call(p, DLC_EXPR_##op, x);                                                          \
    }                                                                                              \
    POINTWISE(name)

ROW(neg, NEG)
ROW(floor, FLOOR)
ROW(ceil, CEIL)
ROW(round, RINT)
ROW(sqrt, SQRT)
ROW(exp, EXP)
ROW(log, LOG)
ROW(sin, SIN)
ROW(cos, COS)
ROW(tan, TAN)
ROW(asin, ASIN)
ROW(acos, ACOS)
ROW(atan, ATAN)
ROW(sinh, SINH)
ROW(cosh, COSH)
ROW(asinh, ASINH)
ROW(acosh, ACOSH)
ROW(atanh, ATANH)
ROW(tanh, TANH)
ROW(erf, ERF)
ROW(not, NOT)

static dlc_expr of_abs(const point *p, dlc_expr x)
{
    return dlc_is_unsigned(p->dtype) ? x : call(p, DLC_EXPR_ABS, x);
}
POINTWISE(abs)

/* Zeros and NaN are their own sign. */
static dlc_expr of_sign(const point *p, dlc_expr x)
{
    dlc_expr zero = number(p, 0),
             positive = dlc_select(p->pool, dlc_lt(p->pool, zero, x), number(p, 1), x);
    if (dlc_is_unsigned(p->dtype))
        return positive;
    return dlc_select(p->pool, is_negative(p, x), number(p, -1), positive);
}
POINTWISE(sign)

static dlc_expr of_reciprocal(const point *p, dlc_expr x)
{
    return quotient(p, number(p, 1), x);
}
POINTWISE(reciprocal)

/* 1 / (1 + exp(-x)): where exp overflows the quotient is the right 0. */
static dlc_expr of_sigmoid(const point *p, dlc_expr x)
{
    dlc_expr e = call(p, DLC_EXPR_EXP, call(p, DLC_EXPR_NEG, x));
    return quotient(p, number(p, 1), dlc_add(p->pool, number(p, 1), e));
}
POINTWISE(sigmoid)

static dlc_expr of_relu(const point *p, dlc_expr x)
{
    return dlc_max(p->pool, number(p, 0), x);
}
POINTWISE(relu)

static dlc_expr of_leaky_relu(const point *p, dlc_expr x)
{
    return dlc_select(p->pool, is_negative(p, x), dlc_mul(p->pool, alpha(p), x), x);
}
POINTWISE(leaky_relu)

static dlc_expr of_thresholded_relu(const point *p, dlc_expr x)
{
    return dlc_select(p->pool, dlc_lt(p->pool, alpha(p), x), x, number(p, 0));
}
POINTWISE(thresholded_relu)

/* x near 0, never beyond alpha: the logits of Attention and of the models that cap them. */
static dlc_expr of_soft_cap(const point *p, dlc_expr x)
{
    return dlc_mul(p->pool, alpha(p), call(p, DLC_EXPR_TANH, quotient(p, x, alpha(p))));
}
POINTWISE(soft_cap)

/* alpha * (exp(x / scale) - 1) for x <= 0; exp never sees the positive side, so it cannot overflow
 * there. */
static dlc_expr exponential_side(const point *p, dlc_expr x, dlc_expr scale)
{
    dlc_expr low = dlc_min(p->pool, number(p, 0), x);
    dlc_expr e = call(p, DLC_EXPR_EXP, scale ? quotient(p, low, scale) : low);
    return dlc_mul(p->pool, alpha(p), dlc_sub(p->pool, e, number(p, 1)));
}

static dlc_expr of_elu(const point *p, dlc_expr x)
{
    return dlc_select(p->pool, is_negative(p, x), exponential_side(p, x, 0), x);
}
POINTWISE(elu)

static dlc_expr of_selu(const point *p, dlc_expr x)
{
    return dlc_mul(p->pool, number(p, dlc_node_float(p->node, DLC_ATTR_GAMMA, 1)), of_elu(p, x));
}
POINTWISE(selu)

static dlc_expr of_celu(const point *p, dlc_expr x)
{
    return dlc_select(p->pool, is_negative(p, x), exponential_side(p, x, alpha(p)), x);
}
POINTWISE(celu)

/* max(x, 0) + log(1 + exp(-|x|)): exp stays within [0, 1]. */
static dlc_expr of_softplus(const point *p, dlc_expr x)
{
    dlc_expr e = call(p, DLC_EXPR_EXP, call(p, DLC_EXPR_NEG, call(p, DLC_EXPR_ABS, x)));
    return dlc_add(p->pool, dlc_max(p->pool, number(p, 0), x), call(p, DLC_EXPR_LOG1P, e));
}
POINTWISE(softplus)

static dlc_expr of_softsign(const point *p, dlc_expr x)
{
    return quotient(p, x, dlc_add(p->pool, number(p, 1), call(p, DLC_EXPR_ABS, x)));
}
POINTWISE(softsign)

/* max(0, min(1, slope * x + offset)) */
static dlc_expr ramp(const point *p, dlc_expr x, dlc_expr slope, dlc_expr offset)
{
    dlc_expr line = dlc_add(p->pool, dlc_mul(p->pool, slope, x), offset);
    return dlc_max(p->pool, number(p, 0), dlc_min(p->pool, number(p, 1), line));
}

static dlc_expr of_hard_sigmoid(const point *p, dlc_expr x)
{
    return ramp(p, x, alpha(p), beta(p));
}
POINTWISE(hard_sigmoid)

static dlc_expr of_hard_swish(const point *p, dlc_expr x)
{
    return dlc_mul(p->pool, x, ramp(p, x, number(p, 1.0 / 6), number(p, 0.5)));
}
POINTWISE(hard_swish)

static dlc_expr of_mish(const point *p, dlc_expr x)
{
    return dlc_mul(p->pool, x, call(p, DLC_EXPR_TANH, of_softplus(p, x)));
}
POINTWISE(mish)

static dlc_expr of_swish(const point *p, dlc_expr x)
{
    return dlc_mul(p->pool, x, of_sigmoid(p, dlc_mul(p->pool, alpha(p), x)));
}
POINTWISE(swish)

/* x/2 * (1 + erf(x / sqrt 2)), or with mode tanh x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
 */
static dlc_expr of_gelu(const point *p, dlc_expr x)
{
    dlc_pool *pool = p->pool;
    dlc_expr t;
    if (dlc_node_text(p->node, DLC_ATTR_MODE, "none")[0] == 't') {
        dlc_expr cube = dlc_mul(pool, dlc_mul(pool, x, x), x);
        dlc_expr inner = dlc_add(pool, x, dlc_mul(pool, number(p, 0.044715), cube));
        t = call(p, DLC_EXPR_TANH, dlc_mul(pool, number(p, 0.79788456080286535588), inner));
    } else {
        t = call(p, DLC_EXPR_ERF, dlc_mul(pool, x, number(p, 0.70710678118654752440)));
    }
    return dlc_mul(pool, dlc_mul(pool, number(p, 0.5), x), dlc_add(pool, number(p, 1), t));
}
POINTWISE(gelu)

/* x + alpha below -beta, x - alpha above beta, else 0; integers are compared and shifted as f64. */
static dlc_expr of_shrink(const point *given, dlc_expr value)
{
    point wide = {given->pool, given->node, dlc_is_float(given->dtype) ? given->dtype : DLC_F64};
    const point *p = &wide;
    dlc_expr x = dlc_expr_cast(p->pool, p->dtype, value), limit = beta(p);
    dlc_expr above =
        dlc_select(p->pool, dlc_lt(p->pool, limit, x), dlc_sub(p->pool, x, alpha(p)), number(p, 0));
    return dlc_select(p->pool, dlc_lt(p->pool, x, call(p, DLC_EXPR_NEG, limit)),
                      dlc_add(p->pool, x, alpha(p)), above);
}
POINTWISE(shrink)

static dlc_expr of_is_nan(const point *p, dlc_expr x)
{
    return dlc_expr2(p->pool, DLC_EXPR_NE, x, x);
}
POINTWISE(is_nan)

static dlc_expr of_is_inf(const point *p, dlc_expr x)
{
    dlc_expr up = dlc_eq(p->pool, x, number(p, __builtin_inf()));
    dlc_expr down = dlc_eq(p->pool, x, number(p, -__builtin_inf()));
    switch (dlc_node_text(p->node, DLC_ATTR_MODE, "both")[0]) {
    case 'p':
        return up;
    case 'n':
        return down;
    default:
        return dlc_expr2(p->pool, DLC_EXPR_OR, up, down);
    }
}
POINTWISE(is_inf)

/* Straight from the input's own type: one rounding. */
static dlc_expr of_cast(const point *p, dlc_expr x)
{
    dlc_dtype to = (dlc_dtype)dlc_node_int(p->node, DLC_ATTR_DTYPE, 0);
    if (dlc_is_code(p->dtype) && to != p->dtype)
        x = dlc_narrow_decode(p->pool, p->dtype, x);
    if (dlc_is_code(to) && to != p->dtype)
        return dlc_narrow_encode(p->pool, to, x, dlc_node_int(p->node, DLC_ATTR_SATURATE, 0) != 0,
                                 dlc_node_text(p->node, DLC_ATTR_MODE, "up")[0]);
    if (!strcmp(dlc_node_text(p->node, DLC_ATTR_MODE, "up"), "ftz"))
        return dlc_expr_cast_ftz(p->pool, to, x);
    return dlc_node_int(p->node, DLC_ATTR_SATURATE, 0) ? dlc_expr_cast_sat(p->pool, to, x)
                                                       : dlc_expr_cast(p->pool, to, x);
}
dlc_status dlc_mean_cast(dlc_mean *mean)
{
    return map_of_one(mean, of_cast, 0);
}

static dlc_expr of_bitcast(const point *p, dlc_expr x)
{
    return dlc_expr_bitcast(p->pool, (dlc_dtype)dlc_node_int(p->node, DLC_ATTR_DTYPE, 0), x);
}
dlc_status dlc_mean_bitcast(dlc_mean *mean)
{
    return map_of_one(mean, of_bitcast, 0);
}

/* --- two inputs of one dtype --- */

typedef dlc_expr (*formula_of_two)(const point *p, dlc_expr a, dlc_expr b);

static dlc_status map_of_two(dlc_mean *mean, formula_of_two value)
{
    dlc_dtype wide = dlc_mean_wide(dlc_mean_in(mean, 0)->dtype);
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK];
    point p = {mean->kernel->pool, mean->node, wide};
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    dlc_expr a = dlc_expr_cast(p.pool, wide, dlc_mean_load_broadcast(mean, 0, index, axes.n));
    dlc_expr b = dlc_expr_cast(p.pool, wide, dlc_mean_load_broadcast(mean, 1, index, axes.n));
    return dlc_mean_finish(mean, &axes, value(&p, a, b));
}

#define POINTWISE_2(name)                                                                          \
    dlc_status dlc_mean_##name(dlc_mean *mean)                                                     \
    {                                                                                              \
        return map_of_two(mean, of_##name);                                                        \
    }
#define ROW_2(name, op)                                                                            \
    static dlc_expr of_##name(const point *p, dlc_expr a, dlc_expr b)                              \
    {                                                                                              \
        return dlc_expr2(p->pool, DLC_EXPR_##op, a, b);                                            \
    }                                                                                              \
    POINTWISE_2(name)

ROW_2(add, ADD)
ROW_2(sub, SUB)
ROW_2(mul, MUL)
ROW_2(div, DIV)
ROW_2(mod, MOD)
ROW_2(rem, REM)
ROW_2(min, MIN)
ROW_2(max, MAX)
ROW_2(and, AND)
ROW_2(or, OR)
ROW_2(xor, XOR)
ROW_2(shl, SHL)
ROW_2(shr, SHR)
ROW_2(lt, LT)
ROW_2(le, LE)
ROW_2(eq, EQ)

static dlc_expr of_prelu(const point *p, dlc_expr x, dlc_expr slope)
{
    dlc_expr scaled = dlc_mul(p->pool, slope, x);
    return dlc_is_unsigned(p->dtype) ? x : dlc_select(p->pool, is_negative(p, x), scaled, x);
}
POINTWISE_2(prelu)

/* --- pow: result and base have one dtype, the exponent its own --- */

/* Small constant exponents as products, exact or nearer than pow. */
static dlc_expr power_float(const point *p, dlc_expr x, dlc_expr e)
{
    double constant;
    if (dlc_expr_is_float(p->pool, e, &constant)) {
        if (constant == 1)
            return x;
        if (constant == 2)
            return dlc_mul(p->pool, x, x);
        if (constant == 3)
            return dlc_mul(p->pool, dlc_mul(p->pool, x, x), x);
        if (constant == -1)
            return quotient(p, number(p, 1), x);
    }
    return dlc_expr2(p->pool, DLC_EXPR_POW, x, e);
}

/* Of negative exponents only 1 and -1 have an integer power; the rest is 0. */
static dlc_expr power_negative(const point *p, dlc_expr x, dlc_expr is_odd)
{
    dlc_expr one = number(p, 1),
             of_one = dlc_select(p->pool, dlc_eq(p->pool, x, one), one, number(p, 0));
    if (dlc_is_unsigned(p->dtype))
        return of_one;
    dlc_expr minus = number(p, -1), signs = dlc_select(p->pool, is_odd, minus, one);
    return dlc_select(p->pool, dlc_eq(p->pool, x, minus), signs, of_one);
}

/*
 * Square and multiply over every bit of the exponent: right for all of them, overflow wraps as
 * products do. i64 is computed as u64, which has the same bits: as index arithmetic, 64 squarings
 * would be multiplied out.
 */
static dlc_expr power_int(const point *p, dlc_expr x, dlc_dtype exponent, dlc_expr e)
{
    dlc_pool *pool = p->pool;
    uint32_t nbits = dlc_dtypes[exponent].bits - !dlc_is_unsigned(exponent);
    dlc_dtype work = p->dtype == DLC_I64 ? DLC_U64 : p->dtype;
    dlc_expr result = dlc_expr_const(pool, work, 1), square = dlc_expr_cast(pool, work, x);
    dlc_expr one = dlc_expr_const_i(pool, exponent, 1), is_odd = 0;
    for (uint32_t bit = 0; bit < nbits; bit++) {
        dlc_expr shifted = dlc_expr2(pool, DLC_EXPR_SHR, e, dlc_expr_const_i(pool, exponent, bit));
        dlc_expr is_set = dlc_eq(pool, dlc_expr2(pool, DLC_EXPR_AND, shifted, one), one);
        is_odd = bit ? is_odd : is_set;
        result = dlc_select(pool, is_set, dlc_mul(pool, result, square), result);
        square = dlc_mul(pool, square, square);
    }
    result = dlc_expr_cast(pool, p->dtype, result);
    if (dlc_is_unsigned(exponent))
        return result;
    dlc_expr is_below = dlc_lt(pool, e, dlc_expr_const_i(pool, exponent, 0));
    return dlc_select(pool, is_below, power_negative(p, x, is_odd), result);
}

/* Floats in the wider of base and exponent; an integer base with a float exponent in f64. */
static dlc_dtype power_dtype(dlc_dtype base, dlc_dtype exponent)
{
    if (!dlc_is_float(base))
        return dlc_is_float(exponent) ? DLC_F64 : base;
    return base == DLC_F64 || exponent == DLC_F64 ? DLC_F64 : DLC_F32;
}

dlc_status dlc_mean_pow(dlc_mean *mean)
{
    dlc_dtype base = dlc_mean_in(mean, 0)->dtype, exponent = dlc_mean_in(mean, 1)->dtype;
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK];
    point p = {mean->kernel->pool, mean->node, power_dtype(base, exponent)};
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    dlc_expr x = dlc_expr_cast(p.pool, p.dtype, dlc_mean_load_broadcast(mean, 0, index, axes.n));
    dlc_expr e = dlc_mean_load_broadcast(mean, 1, index, axes.n);
    if (dlc_is_float(p.dtype))
        return dlc_mean_finish(mean, &axes, power_float(&p, x, dlc_expr_cast(p.pool, p.dtype, e)));
    return dlc_mean_finish(mean, &axes, power_int(&p, x, exponent, e));
}

/* --- more inputs --- */

/* min(high, max(low, x)): high wins over low, NaN in x stays. */
dlc_status dlc_mean_clip(dlc_mean *mean)
{
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK];
    dlc_pool *pool = mean->kernel->pool;
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    dlc_expr x = dlc_mean_load(mean, 0, index);
    if (dlc_mean_has(mean, 1))
        x = dlc_max(pool, dlc_mean_load_scalar(mean, 1), x);
    if (dlc_mean_has(mean, 2))
        x = dlc_min(pool, dlc_mean_load_scalar(mean, 2), x);
    return dlc_mean_finish(mean, &axes, x);
}

/* In registers of the operands' own width or wider, so that f16 and bf16 are rounded once, too. */
dlc_status dlc_mean_muladd(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_dtype wide = dlc_mean_wide(dlc_mean_in(mean, 0)->dtype);
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK], operand[3];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    for (uint32_t i = 0; i < 3; i++)
        operand[i] = dlc_expr_cast(pool, wide, dlc_mean_load_broadcast(mean, i, index, axes.n));
    return dlc_mean_finish(mean, &axes, dlc_expr3(pool, DLC_EXPR_MULADD, operand[0], operand[1], operand[2]));
}

dlc_status dlc_mean_where(dlc_mean *mean)
{
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK], operand[3];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    for (uint32_t i = 0; i < 3; i++)
        operand[i] = dlc_mean_load_broadcast(mean, i, index, axes.n);
    return dlc_mean_finish(mean, &axes,
                           dlc_select(mean->kernel->pool, operand[0], operand[1], operand[2]));
}

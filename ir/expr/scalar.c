/*
 * What each operator of expr.def does to values: the single definition that folding, the
 * interpreter and every generated kernel agree on. Integers are guarded (no division traps, no
 * shift is undefined); floats narrower than f64 are computed in f64, whose second rounding is
 * harmless (p >= 2q + 2 for + - * / sqrt), and fused multiply-adds in f32 (f16 and bf16 round
 * twice: their meanings compute in f32).
 */
#include "ir/expr/expr.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* `value` to `dtype`'s width: sign-extended for signed types, zero-extended for unsigned ones, 0 or
 * 1 for bool. */
static int64_t wrap(dlc_dtype dtype, uint64_t value)
{
    if (dtype == DLC_BOOL)
        return value & 1;
    unsigned drop = 64 - dlc_dtypes[dtype].bits;
    if (dlc_is_unsigned(dtype) || dlc_is_code(dtype))
        return (int64_t)(value << drop >> drop);
    return (int64_t)(value << drop) >> drop;
}

/* --- rounding --- */

/* To a format of `precision` bits whose smallest exponent is `emin` and whose first value that
 * rounds to inf is `limit`. */
static double round_to_format(double value, int precision, int emin, double limit)
{
    if (!isfinite(value) || value == 0)
        return value;
    if (fabs(value) >= limit)
        return copysign(INFINITY, value);
    int exponent;
    frexp(value, &exponent); /* 2^(exponent-1) <= |value| */
    exponent = exponent - 1 < emin ? emin : exponent - 1;
    int quantum = exponent - (precision - 1);
    return copysign(ldexp(nearbyint(ldexp(value, -quantum)), quantum), value);
}

double dlc_round_to(dlc_dtype dtype, double value)
{
    if (isnan(value))
        return NAN;
    switch (dtype) {
    case DLC_F32:
        return (float)value;
    case DLC_F16:
        return round_to_format(value, 11, -14, 65520.0);
    case DLC_BF16:
        return round_to_format(value, 8, -126, 0x1.ffp127);
    default:
        return value;
    }
}

/* The bits of a 16-bit float with `fraction` bits of fraction and exponents from `emin`; value is
 * rounded already. */
static uint16_t encode16(double value, int fraction, int emin)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    unsigned all_ones = (0x7fffu >> fraction);
    if (isnan(value))
        return (uint16_t)(all_ones << fraction | 1u << (fraction - 1));
    if (isinf(value))
        return (uint16_t)(sign | all_ones << fraction);
    double size = fabs(value);
    if (size < ldexp(1, emin))
        return (uint16_t)(sign | (unsigned)ldexp(size, fraction - emin));
    int exponent;
    frexp(size, &exponent);
    exponent--;
    unsigned bits = (unsigned)ldexp(size, fraction - exponent) - (1u << fraction);
    return (uint16_t)(sign | (unsigned)(exponent - emin + 1) << fraction | bits);
}

static double decode16(uint16_t bits, int fraction, int emin)
{
    unsigned all_ones = (0x7fffu >> fraction);
    unsigned exponent = (bits & 0x7fffu) >> fraction, rest = bits & ((1u << fraction) - 1);
    double size;
    if (exponent == all_ones)
        size = rest ? NAN : INFINITY;
    else if (exponent == 0)
        size = ldexp(rest, emin - fraction);
    else
        size = ldexp(rest + (1u << fraction), (int)exponent - 1 + emin - fraction);
    return isnan(size) ? NAN : bits & 0x8000 ? -size : size;
}

/* --- conversions --- */

/* Rounded to odd at 53 bits, so that one further rounding to a narrower format is exact. */
static double odd_double(uint64_t size)
{
    if (size >> 53 == 0)
        return (double)size;
    int drop = 64 - 53 - __builtin_clzll(size);
    uint64_t kept = size >> drop;
    if (kept << drop != size)
        kept |= 1;
    return ldexp((double)kept, drop);
}

static double int_to_float(dlc_dtype from, dlc_dtype to, int64_t value)
{
    int negative = !dlc_is_unsigned(from) && value < 0;
    uint64_t size = negative ? magnitude(value) : (uint64_t)value;
    if (to == DLC_F64)
        return negative ? -(double)size : (double)size;
    double exact = odd_double(size);
    return dlc_round_to(to, negative ? -exact : exact);
}

static int64_t float_to_int(dlc_dtype to, double value)
{
    if (isnan(value))
        return 0;
    if (value <= (double)dlc_dtype_lowest(to))
        return dlc_dtype_lowest(to);
    if (value >=
        (double)dlc_dtype_highest(to)) /* 2^63 and 2^64 where the limit itself is no double */
        return (int64_t)dlc_dtype_highest(to);
    return value < 0 ? (int64_t)value : (int64_t)(uint64_t)value;
}

static int64_t int_clamp(dlc_dtype from, dlc_dtype to, int64_t value)
{
    if (!dlc_is_unsigned(from) && value < dlc_dtype_lowest(to))
        return dlc_dtype_lowest(to);
    if ((dlc_is_unsigned(from) || value > 0) && (uint64_t)value > dlc_dtype_highest(to))
        return (int64_t)dlc_dtype_highest(to);
    return value;
}

static dlc_scalar convert(dlc_dtype from, dlc_dtype to, dlc_scalar value, dlc_expr_op op)
{
    int float_from = dlc_is_float(from);
    if (op == DLC_EXPR_CAST_FTZ && from != to && float_from && dlc_is_float(to) && fabs(value.f) < FLT_MIN)
        value.f = copysign(0, value.f);
    if (dlc_is_float(to))
        return (dlc_scalar){.f = float_from ? dlc_round_to(to, value.f)
                                            : int_to_float(from, to, value.i)};
    if (to == DLC_BOOL)
        return (dlc_scalar){.i = float_from ? value.f != 0 : value.i != 0};
    if (float_from)
        return (dlc_scalar){.i = float_to_int(to, value.f)};
    if (op == DLC_EXPR_CAST_SAT)
        return (dlc_scalar){.i = int_clamp(from, to, value.i)};
    return (dlc_scalar){.i = wrap(to, (uint64_t)value.i)};
}

static dlc_scalar reinterpret(dlc_dtype from, dlc_dtype to, dlc_scalar value)
{
    uint64_t bytes = 0;
    dlc_scalar_write(from, &bytes, value);
    return dlc_scalar_read(to, &bytes);
}

/* --- memory --- */

dlc_scalar dlc_scalar_read(dlc_dtype dtype, const void *element)
{
    uint64_t bits = 0;
    memcpy(&bits, element, dlc_dtype_bytes(dtype)); /* little-endian hosts and targets only */
    float single;
    double wide;
    switch (dtype) {
    case DLC_F64:
        memcpy(&wide, element, 8);
        return (dlc_scalar){.f = wide};
    case DLC_F32:
        memcpy(&single, element, 4);
        return (dlc_scalar){.f = single};
    case DLC_F16:
        return (dlc_scalar){.f = decode16((uint16_t)bits, 10, -14)};
    case DLC_BF16:
        return (dlc_scalar){.f = decode16((uint16_t)bits, 7, -126)};
    case DLC_BOOL:
        return (dlc_scalar){.i = bits != 0};
    default:
        return (dlc_scalar){.i = wrap(dtype, bits)};
    }
}

void dlc_scalar_write(dlc_dtype dtype, void *element, dlc_scalar value)
{
    uint64_t bits = (uint64_t)value.i;
    float single = 0;
    switch (dtype) {
    case DLC_F64:
        memcpy(element, &value.f, 8);
        return;
    case DLC_F32:
        single = (float)value.f;
        memcpy(element, &single, 4);
        return;
    case DLC_F16:
        bits = encode16(dlc_round_to(dtype, value.f), 10, -14);
        break;
    case DLC_BF16:
        bits = encode16(dlc_round_to(dtype, value.f), 7, -126);
        break;
    case DLC_BOOL:
        bits = value.i != 0;
        break;
    default:
        break;
    }
    memcpy(element, &bits, dlc_dtype_bytes(dtype));
}

/* --- arithmetic --- */

static double float_mod(double a, double b)
{
    double rest = fmod(a, b);
    if (rest == 0)
        return isnan(rest) ? rest : copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double fused(dlc_dtype dtype, double a, double b, double c)
{
    if (dtype == DLC_F64)
        return fma(a, b, c);
    return fmaf((float)a, (float)b, (float)c);
}

static double scaled(double a, double b)
{
    enum { FAR = 4096 }; /* takes the least number to infinity */
    if (isnan(b) || isinf(b))
        return isnan(b) ? b : a * fmax(b, 0);
    return scalbn(a, b > FAR ? FAR : b < -FAR ? -FAR : (int)floor(b));
}

/* Rows whose operands and result are floats of one type; the caller rounds. Elementary functions
 * are libm's here: the wide interpreter's reference. Everything strict expands them first
 * (ir/expr/expand.c). */
static double float_apply(dlc_expr_op op, dlc_dtype dtype, const dlc_scalar *args)
{
    double a = args[0].f, b = dlc_exprs[op].nargs > 1 ? args[1].f : 0;
    switch (op) {
    case DLC_EXPR_ADD:
        return a + b;
    case DLC_EXPR_SUB:
        return a - b;
    case DLC_EXPR_MUL:
        return a * b;
    case DLC_EXPR_DIV:
        return a / b;
    case DLC_EXPR_REM:
        return fmod(a, b);
    case DLC_EXPR_MOD:
        return float_mod(a, b);
    case DLC_EXPR_NEG:
        return -a;
    case DLC_EXPR_ABS:
        return fabs(a);
    case DLC_EXPR_FMA:
    case DLC_EXPR_MULADD:
        return fused(dtype, a, b, args[2].f);
    case DLC_EXPR_MIN:
        return a < b || isnan(a) ? a : b;
    case DLC_EXPR_MAX:
        return a > b || isnan(a) ? a : b;
    case DLC_EXPR_FLOOR:
        return floor(a);
    case DLC_EXPR_CEIL:
        return ceil(a);
    case DLC_EXPR_RINT:
        return nearbyint(a);
    case DLC_EXPR_TRUNC:
        return trunc(a);
    case DLC_EXPR_SQRT:
        return sqrt(a);
    case DLC_EXPR_SCALE:
        return scaled(a, b);
    case DLC_EXPR_EXP:
        return exp(a);
    case DLC_EXPR_LOG:
        return log(a);
    case DLC_EXPR_LOG1P:
        return log1p(a);
    case DLC_EXPR_TANH:
        return tanh(a);
    case DLC_EXPR_ERF:
        return erf(a);
    case DLC_EXPR_SIN:
        return sin(a);
    case DLC_EXPR_COS:
        return cos(a);
    case DLC_EXPR_TAN:
        return tan(a);
    case DLC_EXPR_ASIN:
        return asin(a);
    case DLC_EXPR_ACOS:
        return acos(a);
    case DLC_EXPR_ATAN:
        return atan(a);
    case DLC_EXPR_SINH:
        return sinh(a);
    case DLC_EXPR_COSH:
        return cosh(a);
    case DLC_EXPR_ASINH:
        return asinh(a);
    case DLC_EXPR_ACOSH:
        return acosh(a);
    case DLC_EXPR_ATANH:
        return atanh(a);
    case DLC_EXPR_POW:
        return pow(a, b);
    default:
        assert(!"no row of floats");
        return 0;
    }
}

static int int_less(dlc_dtype dtype, int64_t a, int64_t b)
{
    return dlc_is_unsigned(dtype) ? (uint64_t)a < (uint64_t)b : a < b;
}

static int64_t divide(dlc_dtype dtype, int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (dlc_is_unsigned(dtype))
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t) - (uint64_t)a : a / b; /* the caller wraps: MIN / -1 = MIN */
}

static int64_t remainder_of(dlc_dtype dtype, int64_t a, int64_t b)
{
    if (b == 0 || (b == -1 && !dlc_is_unsigned(dtype)))
        return 0;
    return dlc_is_unsigned(dtype) ? (int64_t)((uint64_t)a % (uint64_t)b) : a % b;
}

static int64_t floor_divide(dlc_dtype dtype, int64_t a, int64_t b)
{
    int64_t rest = remainder_of(dtype, a, b);
    return divide(dtype, a, b) - (!dlc_is_unsigned(dtype) && rest != 0 && (rest < 0) != (b < 0));
}

static int64_t floor_modulo(dlc_dtype dtype, int64_t a, int64_t b)
{
    int64_t rest = remainder_of(dtype, a, b);
    return !dlc_is_unsigned(dtype) && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t shift(dlc_expr_op op, dlc_dtype dtype, int64_t a, int64_t by)
{
    int is_past = by < 0 || by >= dlc_dtypes[dtype].bits;
    if (op == DLC_EXPR_SHL)
        return is_past ? 0 : (int64_t)((uint64_t)a << by);
    if (dlc_is_unsigned(dtype))
        return is_past ? 0 : (int64_t)((uint64_t)a >> by);
    return a >> (is_past ? 63 : by);
}

/* Rows on integers and bool; the caller wraps. */
static int64_t int_apply(dlc_expr_op op, dlc_dtype dtype, int64_t a, int64_t b)
{
    switch (op) {
    case DLC_EXPR_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case DLC_EXPR_SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case DLC_EXPR_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case DLC_EXPR_NEG:
        return (int64_t) - (uint64_t)a;
    case DLC_EXPR_ABS:
        return dlc_is_unsigned(dtype) ? a : (int64_t)magnitude(a);
    case DLC_EXPR_MIN:
        return int_less(dtype, a, b) ? a : b;
    case DLC_EXPR_MAX:
        return int_less(dtype, b, a) ? a : b;
    case DLC_EXPR_DIV:
        return divide(dtype, a, b);
    case DLC_EXPR_REM:
        return remainder_of(dtype, a, b);
    case DLC_EXPR_FLOORDIV:
        return floor_divide(dtype, a, b);
    case DLC_EXPR_MOD:
        return floor_modulo(dtype, a, b);
    case DLC_EXPR_SHL:
    case DLC_EXPR_SHR:
        return shift(op, dtype, a, b);
    case DLC_EXPR_AND:
        return a & b;
    case DLC_EXPR_OR:
        return a | b;
    case DLC_EXPR_XOR:
        return a ^ b;
    case DLC_EXPR_NOT:
        return ~a;
    default:
        assert(!"no row of integers");
        return 0;
    }
}

static int compare(dlc_expr_op op, dlc_dtype dtype, dlc_scalar a, dlc_scalar b)
{
    int is_float = dlc_is_float(dtype);
    switch (op) {
    case DLC_EXPR_LT:
        return is_float ? a.f < b.f : int_less(dtype, a.i, b.i);
    case DLC_EXPR_LE:
        return is_float ? a.f <= b.f : !int_less(dtype, b.i, a.i);
    case DLC_EXPR_EQ:
        return is_float ? a.f == b.f : a.i == b.i;
    default:
        return is_float ? a.f != b.f : a.i != b.i;
    }
}

dlc_scalar dlc_scalar_apply(dlc_expr_op op, dlc_dtype dtype, dlc_dtype to, const dlc_scalar *args)
{
    switch (op) {
    case DLC_EXPR_LT:
    case DLC_EXPR_LE:
    case DLC_EXPR_EQ:
    case DLC_EXPR_NE:
        return (dlc_scalar){.i = compare(op, dtype, args[0], args[1])};
    case DLC_EXPR_SELECT:
        return args[0].i ? args[1] : args[2];
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_SAT:
    case DLC_EXPR_CAST_FTZ:
        return convert(dtype, to, args[0], op);
    case DLC_EXPR_BITCAST:
        return reinterpret(dtype, to, args[0]);
    default:
        break;
    }
    if (dlc_is_float(dtype))
        return (dlc_scalar){.f = dlc_round_to(dtype, float_apply(op, dtype, args))};
    int64_t b = dlc_exprs[op].nargs > 1 ? args[1].i : 0;
    return (dlc_scalar){.i = wrap(dtype, (uint64_t)int_apply(op, dtype, args[0].i, b))};
}

/*
 * Casts from and to narrow types: small floats and integers below 8 bits, which a buffer holds as
 * codes of a byte each. They are moved as they are; only a cast knows what a code means. A small
 * float is sign, exponent e, mantissa m: its magnitude as a number is monotonous in the value, so
 * rounding to a quantum of 2^(exponent - mantissa bits) gives the code with the carry in place:
 *
 *     code = ((exponent - least exponent) << mantissa bits) + rint(value / quantum)
 */
#include "ir/graph/mean.h"

/* What the highest codes are: numbers; all ones NaN; infinity, then NaN; minus zero NaN. */
typedef enum { FINITE, ONE_NAN, IEEE, ZERO_NAN, POWER, SIGNED, UNSIGNED } kind;

typedef struct {
    uint8_t exponent, mantissa, bias; /* integers: bits, 0, 0 */
    uint8_t kind;
} format;

static const format formats[DLC_DTYPE_COUNT] = {
    [DLC_F8E4M3FN] = {4, 3, 7, ONE_NAN},    [DLC_F8E4M3FNUZ] = {4, 3, 8, ZERO_NAN},
    [DLC_F8E5M2] = {5, 2, 15, IEEE},        [DLC_F8E5M2FNUZ] = {5, 2, 16, ZERO_NAN},
    [DLC_F8E8M0] = {8, 0, 127, POWER},      [DLC_F4E2M1] = {2, 1, 1, FINITE},
    [DLC_F6E2M3] = {2, 3, 1, FINITE},       [DLC_F6E3M2] = {3, 2, 3, FINITE},
    [DLC_I4] = {4, 0, 0, SIGNED},           [DLC_U4] = {4, 0, 0, UNSIGNED},
    [DLC_I2] = {2, 0, 0, SIGNED},           [DLC_U2] = {2, 0, 0, UNSIGNED},
};

/* A float type as bits: its integer type, mantissa bits, bias. */
typedef struct {
    dlc_pool *pool;
    dlc_dtype real, bits;
    int64_t mantissa, bias;
} work;

static const work in_f32 = {NULL, DLC_F32, DLC_I32, 23, 127};
static const work in_f64 = {NULL, DLC_F64, DLC_I64, 52, 1023};

static dlc_expr num(const work *w, int64_t value)
{
    return dlc_expr_const_i(w->pool, w->bits, value);
}

static dlc_expr real(const work *w, double value)
{
    return dlc_expr_const(w->pool, w->real, value);
}

static dlc_expr both(const work *w, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(w->pool, op, a, b);
}

static dlc_expr part(const work *w, dlc_expr bits, int64_t from, int64_t mask)
{
    return both(w, DLC_EXPR_AND, both(w, DLC_EXPR_SHR, bits, num(w, from)), num(w, mask));
}

static dlc_expr is(const work *w, dlc_expr a, int64_t value)
{
    return dlc_eq(w->pool, a, num(w, value));
}

static dlc_expr as_real(const work *w, dlc_expr bits)
{
    return dlc_expr_bitcast(w->pool, w->real, bits);
}

/* --- from codes --- */

/* value where it is not special, by what the format makes of its highest codes */
static dlc_expr specials(const work *w, const format *f, dlc_expr sign, dlc_expr size,
                         dlc_expr value)
{
    int64_t top = (1 << f->exponent) - 1;
    dlc_expr nan = real(w, __builtin_nan("")), inf = real(w, __builtin_inf());
    if (f->kind == ONE_NAN)
        return dlc_select(w->pool, is(w, size, (1 << (f->exponent + f->mantissa)) - 1), nan, value);
    if (f->kind == IEEE) {
        value = dlc_select(w->pool, dlc_le(w->pool, num(w, top << f->mantissa), size), nan, value);
        return dlc_select(w->pool, is(w, size, top << f->mantissa), inf, value);
    }
    if (f->kind == ZERO_NAN)
        return dlc_select(w->pool, both(w, DLC_EXPR_AND, is(w, sign, 1), is(w, size, 0)), nan,
                          value);
    return value;
}

static dlc_expr decode_float(const work *w, const format *f, dlc_expr code)
{
    uint32_t nbits = f->exponent + f->mantissa;
    dlc_expr size = part(w, code, 0, (1 << nbits) - 1), sign = part(w, code, nbits, 1);
    dlc_expr e = part(w, size, f->mantissa, 255), m = part(w, size, 0, (1 << f->mantissa) - 1);
    dlc_expr exponent = dlc_add(w->pool, e, num(w, w->bias - f->bias));
    dlc_expr bits = both(w, DLC_EXPR_OR, both(w, DLC_EXPR_SHL, exponent, num(w, w->mantissa)),
                         both(w, DLC_EXPR_SHL, m, num(w, w->mantissa - f->mantissa)));
    dlc_expr least = real(w, __builtin_ldexp(1, 1 - f->bias - f->mantissa));
    dlc_expr small = dlc_mul(w->pool, dlc_expr_cast(w->pool, w->real, m), least);
    dlc_expr value = dlc_select(w->pool, is(w, e, 0), small, as_real(w, bits));
    value = specials(w, f, sign, size, value);
    return dlc_select(w->pool, is(w, sign, 1), dlc_expr1(w->pool, DLC_EXPR_NEG, value), value);
}

/* 2^(code - 127): the exponent of f32 itself, but for the least, which is subnormal there */
static dlc_expr decode_power(const work *w, dlc_expr code)
{
    dlc_expr value = as_real(w, both(w, DLC_EXPR_SHL, code, num(w, w->mantissa)));
    value = dlc_select(w->pool, is(w, code, 0), real(w, 0x1p-127), value);
    return dlc_select(w->pool, is(w, code, 255), real(w, __builtin_nan("")), value);
}

static dlc_expr keep_bits(const work *w, const format *f, dlc_expr value)
{
    dlc_expr low = part(w, value, 0, (1 << f->exponent) - 1), top = num(w, 1 << (f->exponent - 1));
    return f->kind == UNSIGNED ? low : dlc_sub(w->pool, both(w, DLC_EXPR_XOR, low, top), top);
}

dlc_expr dlc_narrow_decode(dlc_pool *pool, dlc_dtype from, dlc_expr code)
{
    const format *f = &formats[from];
    work w = in_f32;
    w.pool = pool;
    code = dlc_expr_cast(pool, w.bits, dlc_expr_bitcast(pool, DLC_U8, code));
    if (f->kind == POWER)
        return decode_power(&w, code);
    return f->kind >= SIGNED ? keep_bits(&w, f, code) : decode_float(&w, f, code);
}

/* --- to codes --- */

static dlc_expr highest_code(const work *w, const format *f)
{
    int64_t all = (1 << (f->exponent + f->mantissa)) - 1, top = (1 << f->exponent) - 1;
    return num(w, f->kind == ONE_NAN ? all - 1 : f->kind == IEEE ? (top << f->mantissa) - 1 : all);
}

static dlc_expr overflow_code(const work *w, const format *f, int saturate)
{
    int64_t all = (1 << (f->exponent + f->mantissa)) - 1, top = (1 << f->exponent) - 1;
    if (saturate || f->kind == FINITE)
        return highest_code(w, f);
    return num(w, f->kind == ONE_NAN ? all : f->kind == IEEE ? top << f->mantissa : all + 1);
}

static dlc_expr nan_code(const work *w, const format *f)
{
    int64_t all = (1 << (f->exponent + f->mantissa)) - 1;
    int64_t quiet = f->kind == IEEE ? all - (1 << (f->mantissa - 1)) + 1 : all;
    return num(w, f->kind == ZERO_NAN || f->kind == FINITE ? all + 1 : quiet);
}

/* The magnitude's code, before NaN and what is too large. */
static dlc_expr rounded_code(const work *w, const format *f, dlc_expr size)
{
    int64_t least = 1 - f->bias, beyond = (1 << f->exponent) - f->bias;
    dlc_pool *pool = w->pool;
    dlc_expr limited = dlc_min(pool, as_real(w, size), real(w, __builtin_ldexp(1, (int)beyond)));
    dlc_expr bits = dlc_expr_bitcast(pool, w->bits, limited);
    dlc_expr e = dlc_sub(pool, both(w, DLC_EXPR_SHR, bits, num(w, w->mantissa)), num(w, w->bias));
    e = dlc_max(pool, e, num(w, least));
    dlc_expr inverse = as_real(w, both(w, DLC_EXPR_SHL,
                                       dlc_sub(pool, num(w, f->mantissa + w->bias), e),
                                       num(w, w->mantissa)));
    dlc_expr quanta = dlc_expr1(pool, DLC_EXPR_RINT, dlc_mul(pool, limited, inverse));
    return dlc_add(pool, both(w, DLC_EXPR_SHL, dlc_sub(pool, e, num(w, least)), num(w, f->mantissa)),
                   dlc_expr_cast(pool, w->bits, quanta));
}

static dlc_expr encode_float(const work *w, const format *f, dlc_expr x, int saturate)
{
    dlc_pool *pool = w->pool;
    dlc_expr raw = dlc_expr_bitcast(pool, w->bits, x), zero = num(w, 0);
    int64_t most = (int64_t)(UINT64_MAX >> (65 - dlc_dtypes[w->bits].bits));
    dlc_expr size = both(w, DLC_EXPR_AND, raw, num(w, most));
    dlc_expr infinity = num(w, (2 * w->bias + 1) << w->mantissa);
    dlc_expr code = rounded_code(w, f, size), sign = num(w, 1 << (f->exponent + f->mantissa));
    code = dlc_select(pool, dlc_lt(pool, highest_code(w, f), code), overflow_code(w, f, saturate),
                      code);
    code = dlc_select(pool, dlc_lt(pool, infinity, size), nan_code(w, f), code);
    dlc_expr is_minus = dlc_lt(pool, raw, zero);
    if (f->kind == ZERO_NAN)
        is_minus = both(w, DLC_EXPR_AND, is_minus,
                        dlc_expr2(pool, DLC_EXPR_NE, code, zero));
    return both(w, DLC_EXPR_OR, code, dlc_select(pool, is_minus, sign, zero));
}

/* The exponent, rounded by what follows it; the sign is not asked for. */
static dlc_expr encode_power(const work *w, dlc_expr x, int saturate, char mode)
{
    dlc_pool *pool = w->pool;
    dlc_expr size = both(w, DLC_EXPR_AND, dlc_expr_bitcast(pool, w->bits, x), num(w, 0x7fffffff));
    dlc_expr e = part(w, size, 23, 255), rest = part(w, size, 0, 0x7fffff);
    /* of subnormals, 2^-127 is the half */
    dlc_expr least = dlc_select(pool, is(w, e, 0), num(w, 0x400001), num(w, 1));
    if (mode == 'n')
        least = dlc_select(pool, is(w, e, 0), num(w, 0x600000), num(w, 0x400000));
    dlc_expr up = dlc_select(pool, dlc_le(pool, least, rest), num(w, 1), num(w, 0));
    dlc_expr code = mode == 'd' ? e : dlc_add(pool, e, up);
    code = dlc_select(pool, dlc_lt(pool, num(w, 254), code), num(w, saturate ? 254 : 255), code);
    return dlc_select(pool, dlc_lt(pool, num(w, 0x7f800000), size), num(w, 255), code);
}

dlc_expr dlc_narrow_encode(dlc_pool *pool, dlc_dtype to, dlc_expr x, int saturate, char mode)
{
    const format *f = &formats[to];
    dlc_dtype from = (dlc_dtype)dlc_node_of(pool, x)->dtype;
    int is_exact = from == DLC_F32 || dlc_dtypes[from].bits <= 16;
    work w = is_exact || f->kind == POWER ? in_f32 : in_f64;
    dlc_expr code;
    w.pool = pool;
    if (f->kind >= SIGNED)
        code = keep_bits(&w, f, dlc_expr_cast(pool, w.bits, x));
    else if (f->kind == POWER)
        code = encode_power(&w, dlc_expr_cast(pool, w.real, x), saturate, mode);
    else
        code = encode_float(&w, f, dlc_expr_cast(pool, w.real, x), saturate);
    return dlc_expr_bitcast(pool, to, dlc_expr_cast(pool, DLC_U8, code));
}

/*
 * Between the files that expand elementary functions (expand.c, expand_exp.c, expand_log.c,
 * expand_trig.c, expand_pow.c); nobody else includes it. An expander takes its operand as an
 * expression of type F32 or F64 and returns arithmetic of expr.def: no branch, no table in memory,
 * no fma that accuracy depends on (a target without it multiplies, then adds), but in expand_quotient.c, where the target has it.
 */
#ifndef DLC_IR_EXPR_EXPAND_H
#define DLC_IR_EXPR_EXPAND_H

#include "ir/expr/expr.h"

typedef struct {
    dlc_pool *pool;
    dlc_dtype type;   /* F32 or F64 */
    dlc_dtype bits;   /* the integer type of its width */
    uint8_t single;   /* type is F32 */
    uint8_t fraction; /* bits of fraction: 23 or 52 */
    uint8_t scales;   /* the target has `scale` */
    uint8_t fuses;    /* fma is an instruction of the target */
    double magic;     /* 1.5 * 2^fraction: magic + x has rint(x) in its low bits */
} dlc_expand;

typedef dlc_expr (*dlc_expander)(const dlc_expand *e, const dlc_expr *args);
dlc_expand dlc_expand_as(dlc_pool *pool, dlc_dtype type);

/* The row of a coefficient table for the type at hand. */
#define DLC_POLY(e, name, x)                                                                       \
    ((e)->single ? dlc_expand_poly((e), name##_f32, sizeof name##_f32 / sizeof(double), (x))       \
                 : dlc_expand_poly((e), name##_f64, sizeof name##_f64 / sizeof(double), (x)))
/* table[0] + x (table[1] + x (…)) */
dlc_expr dlc_expand_poly(const dlc_expand *e, const double *table, uint32_t n, dlc_expr x);

/* --- arithmetic, one call per row of expr.def --- */
static inline dlc_expr dlc_x_num(const dlc_expand *e, double value)
{
    return dlc_expr_const(e->pool, e->type, value);
}
static inline dlc_expr dlc_x_pick(const dlc_expand *e, double f32, double f64)
{
    return dlc_x_num(e, e->single ? f32 : f64);
}
static inline dlc_expr dlc_x_int(const dlc_expand *e, int64_t value)
{
    return dlc_expr_const_i(e->pool, e->bits, value);
}
static inline dlc_expr dlc_x_add(const dlc_expand *e, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(e->pool, DLC_EXPR_ADD, a, b);
}
static inline dlc_expr dlc_x_sub(const dlc_expand *e, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(e->pool, DLC_EXPR_SUB, a, b);
}
static inline dlc_expr dlc_x_mul(const dlc_expand *e, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(e->pool, DLC_EXPR_MUL, a, b);
}
static inline dlc_expr dlc_x_div(const dlc_expand *e, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(e->pool, DLC_EXPR_DIV, a, b);
}
/* a*b + c */
static inline dlc_expr dlc_x_muladd(const dlc_expand *e, dlc_expr a, dlc_expr b, dlc_expr c)
{
    return dlc_expr3(e->pool, DLC_EXPR_MULADD, a, b, c);
}
static inline dlc_expr dlc_x_abs(const dlc_expand *e, dlc_expr a)
{
    return dlc_expr1(e->pool, DLC_EXPR_ABS, a);
}
static inline dlc_expr dlc_x_neg(const dlc_expand *e, dlc_expr a)
{
    return dlc_expr1(e->pool, DLC_EXPR_NEG, a);
}
static inline dlc_expr dlc_x_sqrt(const dlc_expand *e, dlc_expr a)
{
    return dlc_expr1(e->pool, DLC_EXPR_SQRT, a);
}
static inline dlc_expr dlc_x_select(const dlc_expand *e, dlc_expr condition, dlc_expr yes,
                                    dlc_expr no)
{
    return dlc_expr3(e->pool, DLC_EXPR_SELECT, condition, yes, no);
}
static inline dlc_expr dlc_x_lt(const dlc_expand *e, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(e->pool, DLC_EXPR_LT, a, b);
}
static inline dlc_expr dlc_x_eq(const dlc_expand *e, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(e->pool, DLC_EXPR_EQ, a, b);
}
/* Limited to [lo, hi]; the constants go first, so a NaN passes. */
static inline dlc_expr dlc_x_clamp(const dlc_expand *e, double lo, double hi, dlc_expr x)
{
    return dlc_expr2(e->pool, DLC_EXPR_MIN, dlc_x_num(e, hi),
                     dlc_expr2(e->pool, DLC_EXPR_MAX, dlc_x_num(e, lo), x));
}
static inline dlc_expr dlc_x_int2(const dlc_expand *e, dlc_expr_op op, dlc_expr a, int64_t b)
{
    return dlc_expr2(e->pool, op, a, dlc_x_int(e, b));
}
static inline dlc_expr dlc_x_bits(const dlc_expand *e, dlc_expr a)
{
    return dlc_expr_bitcast(e->pool, e->bits, a);
}
static inline dlc_expr dlc_x_float(const dlc_expand *e, dlc_expr bits)
{
    return dlc_expr_bitcast(e->pool, e->type, bits);
}
static inline int64_t dlc_x_sign_bit(const dlc_expand *e)
{
    return e->single ? (int64_t)INT32_MIN : INT64_MIN;
}
/* magnitude (not negative) with the sign of x */
dlc_expr dlc_x_with_sign(const dlc_expand *e, dlc_expr magnitude, dlc_expr x);

/* --- shared steps --- */
/* 2^scale * exp(x), scale in {0, -1}, without overflow before the result does. */
dlc_expr dlc_expand_exp_scaled(const dlc_expand *e, dlc_expr x, int scale);
/* exp(x) for a sum with a number of at least 2^-60: what is smaller than 2^-124 (f64: 2^-1009) may be that, and needs no steps of its own. */
dlc_expr dlc_expand_exp_beside(const dlc_expand *e, dlc_expr x);
/* log(x) for x > 0 normal or not, inf and NaN included; 0 and negative x give what log gives. */
dlc_expr dlc_expand_log_of(const dlc_expand *e, dlc_expr x);

/* rint(x / divisor) without a division, to its bits; 0: there is none. */
dlc_expr dlc_expand_rounded_quotient(const dlc_expand *e, dlc_expr x, double divisor);

/* --- the functions --- */
#define DLC_EXPANDERS(row)                                                                         \
    row(EXP, exp) row(LOG, log) row(LOG1P, log1p) row(TANH, tanh) row(ERF, erf) row(SIN, sin)      \
        row(COS, cos) row(TAN, tan) row(ASIN, asin) row(ACOS, acos) row(ATAN, atan)                \
            row(SINH, sinh) row(COSH, cosh) row(ASINH, asinh) row(ACOSH, acosh) row(ATANH, atanh)  \
                row(POW, pow) row(REM, rem) row(MOD, mod) row(SCALE, scale)
#define DLC_EXPANDER(id, name)                                                                     \
    dlc_expr dlc_expand_##name(const dlc_expand *e, const dlc_expr *args);
DLC_EXPANDERS(DLC_EXPANDER)
#undef DLC_EXPANDER

#endif

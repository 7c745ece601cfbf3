/* Between the files that build expressions (expr.c, ir/expr/fold.c, ir/expr/sum.c, ir/expr/range.c); nobody else includes it. */
#ifndef DLC_IR_EXPR_BUILD_H
#define DLC_IR_EXPR_BUILD_H

#include "ir/expr/expr.h"

/* The node itself, shared: no rule is applied. */
dlc_expr dlc_pool_intern(dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args);
dlc_expr dlc_pool_op(dlc_pool *pool, dlc_expr_op op, dlc_dtype dtype, const dlc_expr *args, uint32_t nargs);
dlc_expr dlc_pool_op2(dlc_pool *pool, dlc_expr_op op, dlc_dtype dtype, dlc_expr a, dlc_expr b);
/* The node over other operands, through the builders. */
dlc_expr dlc_pool_rebuild(dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args);
dlc_scalar dlc_const_scalar(const dlc_pool *pool, dlc_expr expr);
dlc_expr dlc_expr_scalar(dlc_pool *pool, dlc_dtype dtype, dlc_scalar value);

static inline dlc_expr_op dlc_op_of(const dlc_pool *pool, dlc_expr expr)
{
    return (dlc_expr_op)pool->nodes.data[expr].op;
}
static inline dlc_dtype dlc_dtype_of(const dlc_pool *pool, dlc_expr expr)
{
    return (dlc_dtype)pool->nodes.data[expr].dtype;
}
static inline int dlc_is_data_free(const dlc_pool *pool, dlc_expr expr)
{
    return !pool->facts.data[expr].has_data;
}

static inline uint64_t dlc_magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}
static inline uint64_t dlc_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
static inline int64_t dlc_floor_ratio(int64_t a, int64_t b)
{
    dlc_scalar args[] = {{.i = a}, {.i = b}};
    return dlc_scalar_apply(DLC_EXPR_FLOORDIV, DLC_I64, DLC_I64, args).i;
}

/* --- sums (ir/expr/sum.c): i64 operands --- */
dlc_expr dlc_sum_add(dlc_pool *pool, dlc_expr a, dlc_expr b, int64_t scale_b);
dlc_expr dlc_sum_mul(dlc_pool *pool, dlc_expr a, dlc_expr b);
/* Pushes the terms of scale * expr on pool->work, its constant as a term with monomial 0; returns how many. */
uint32_t dlc_sum_push(dlc_pool *pool, dlc_expr expr, int64_t scale);
/* The canonical sum of the terms on pool->work from `base` on, which are popped. */
dlc_expr dlc_sum_pop(dlc_pool *pool, uint32_t base);
uint32_t dlc_sum_nterms(const dlc_pool *pool, dlc_expr expr); /* 0 for the constant 0 */
dlc_expr dlc_mono_mul(dlc_pool *pool, dlc_expr a, dlc_expr b);
/* False when `by` is no factor; *quotient 0: the monomial 1. */
int dlc_mono_div(dlc_pool *pool, dlc_expr mono, dlc_expr by, dlc_expr *quotient);
uint32_t dlc_mono_push(dlc_pool *pool, dlc_expr mono); /* its factors as terms on pool->work */

/* --- quotients (ir/expr/div.c): i64 operands, not both constant --- */
dlc_expr dlc_div_floor(dlc_pool *pool, dlc_expr x, dlc_expr k);
dlc_expr dlc_div_mod(dlc_pool *pool, dlc_expr x, dlc_expr k);
/* x = quotient * k + rest, as many terms of x in the quotient as possible. False when the quotient is 0. */
int dlc_div_split(dlc_pool *pool, dlc_expr x, dlc_expr k, dlc_expr *quotient, dlc_expr *rest);
/* Of the sum on pool->work from `base` on: k * floordiv(x, k) + mod(x, k) becomes x. True when something did. */
int dlc_div_recombine(dlc_pool *pool, uint32_t base);

/* --- comparisons (ir/expr/compare.c): i64 operands, not both constant --- */
dlc_expr dlc_compare_i64(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b);
/* Load-free LT or LE: a sum that is below 0 exactly when the comparison holds; 0 for other expressions. */
dlc_expr dlc_compare_slack(dlc_pool *pool, dlc_expr comparison);
/* AND and OR of bools: a set of operands. */
dlc_expr dlc_logic_make(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b);
/* a - b when that is constant and its sign decides between them. */
int dlc_compare_const(dlc_pool *pool, dlc_expr a, dlc_expr b, int64_t *difference);

#endif

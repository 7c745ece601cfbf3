/*
 * Comparisons of i64 and connectives of bool, in one form each. A comparison of load-free sums is
 * the sign of their difference: common terms cancel, the common divisor leaves, positive terms
 * stand left, negative ones and the constant right. Conjunctions are sets.
 */
#include "ir/expr/build.h"

int dlc_compare_const(dlc_pool *pool, dlc_expr a, dlc_expr b, int64_t *difference)
{
    return dlc_is_data_free(pool, a) && dlc_is_data_free(pool, b) &&
           dlc_expr_is_int(pool, dlc_sum_add(pool, a, b, -1), difference);
}

dlc_expr dlc_compare_slack(dlc_pool *pool, dlc_expr comparison)
{
    dlc_expr_op op = dlc_op_of(pool, comparison);
    if (op != DLC_EXPR_LT && op != DLC_EXPR_LE)
        return 0;
    dlc_expr a = dlc_arg(pool, comparison, 0), b = dlc_arg(pool, comparison, 1);
    if (dlc_dtype_of(pool, a) != DLC_I64 || !dlc_is_data_free(pool, comparison))
        return 0;
    return dlc_addi(pool, dlc_sum_add(pool, a, b, -1), op == DLC_EXPR_LE ? -1 : 0);
}

/* The difference, taken apart: left - right + constant, both sides with positive coefficients
 * without common divisor. */
typedef struct {
    dlc_expr left, right;
    uint32_t nleft, nright;
    int64_t divisor, constant; /* the constant is not divided */
} balance;

static dlc_expr collect(dlc_pool *pool, uint32_t base, uint32_t n, int64_t divisor,
                        uint32_t *nterms)
{
    uint32_t first = pool->work.n;
    *nterms = 0;
    for (uint32_t i = 0; i < n; i++) {
        dlc_term term = pool->work.data[base + i];
        if (!term.mono || (term.coef < 0) != (divisor < 0))
            continue;
        term.coef = divisor == -1 ? (int64_t)(0 - (uint64_t)term.coef) : term.coef / divisor;
        dlc_vec_push(pool->arena, &pool->work, term);
        ++*nterms;
    }
    return dlc_sum_pop(pool, first);
}

static balance balance_of(dlc_pool *pool, dlc_expr difference)
{
    uint32_t base = pool->work.n, n = dlc_sum_push(pool, difference, 1);
    uint64_t divisor = 0;
    balance result = {.divisor = 1};
    for (uint32_t i = 0; i < n; i++) {
        dlc_term term = pool->work.data[base + i];
        if (!term.mono)
            result.constant = term.coef;
        else
            divisor = dlc_gcd(divisor, dlc_magnitude(term.coef));
    }
    if (divisor > 0 && divisor <= INT64_MAX)
        result.divisor = (int64_t)divisor;
    result.left = collect(pool, base, n, result.divisor, &result.nleft);
    result.right = collect(pool, base, n, -result.divisor, &result.nright);
    pool->work.n = base;
    return result;
}

static dlc_expr comparison(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    return dlc_pool_op2(pool, op, DLC_BOOL, a, b);
}

/* -value modulo 2^64 */
static int64_t negative(int64_t value)
{
    return (int64_t)(0 - (uint64_t)value);
}

/* difference < 0 */
static dlc_expr less(dlc_pool *pool, dlc_expr difference)
{
    int64_t value;
    if (dlc_expr_is_int(pool, difference, &value))
        return dlc_expr_bool(pool, value < 0);
    balance d = balance_of(pool, difference);
    int64_t ratio = dlc_floor_ratio(d.constant, d.divisor);
    int64_t bound = negative(ratio); /* left - right < bound */
    if (!d.nright) /* -INT64_MIN is more than any i64 */
        return ratio == INT64_MIN ? dlc_expr_bool(pool, 1)
                                  : comparison(pool, DLC_EXPR_LT, d.left, dlc_expr_i64(pool, bound));
    if (!d.nleft)
        return ratio == INT64_MAX ? dlc_expr_bool(pool, 0)
                                  : comparison(pool, DLC_EXPR_LE, dlc_expr_i64(pool, 1 + ratio), d.right);
    if (bound == 1)
        return comparison(pool, DLC_EXPR_LE, d.left, d.right);
    return comparison(pool, DLC_EXPR_LT, d.left, dlc_addi(pool, d.right, bound));
}

static dlc_expr equal(dlc_pool *pool, dlc_expr_op op, dlc_expr difference)
{
    balance d = balance_of(pool, difference);
    if (d.constant % d.divisor != 0)
        return dlc_expr_bool(pool, op == DLC_EXPR_NE);
    int64_t bound = negative(d.constant / d.divisor); /* left == right + bound */
    if (!d.nleft || (d.nright && dlc_expr_order(pool, d.right, d.left) < 0))
        return comparison(pool, op, d.right, dlc_addi(pool, d.left, negative(bound)));
    return comparison(pool, op, d.left, dlc_addi(pool, d.right, bound));
}

dlc_expr dlc_compare_i64(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    int is_equality = op == DLC_EXPR_EQ || op == DLC_EXPR_NE;
    if (a == b)
        return dlc_expr_bool(pool, op == DLC_EXPR_EQ || op == DLC_EXPR_LE);
    dlc_expr difference = dlc_sum_add(pool, a, b, -1);
    int64_t value;
    if (is_equality &&
        dlc_expr_is_int(pool, difference, &value)) /* holds modulo 2^64, loads or not */
        return dlc_expr_bool(pool, (value == 0) == (op == DLC_EXPR_EQ));
    if (!dlc_is_data_free(pool, a) || !dlc_is_data_free(pool, b)) {
        if (is_equality && dlc_expr_order(pool, b, a) < 0)
            return comparison(pool, op, b, a);
        return comparison(pool, op, a, b);
    }
    if (is_equality)
        return equal(pool, op, difference);
    return less(pool, op == DLC_EXPR_LE ? dlc_addi(pool, difference, -1) : difference);
}

/* --- and, or --- */

static void push_operands(dlc_pool *pool, dlc_expr_op op, dlc_expr expr)
{
    for (; dlc_op_of(pool, expr) == op; expr = dlc_arg(pool, expr, 0))
        dlc_vec_push(pool->arena, &pool->work, ((dlc_term){0, dlc_arg(pool, expr, 1)}));
    dlc_vec_push(pool->arena, &pool->work, ((dlc_term){0, expr}));
}

/* Sorted, each once, without the neutral constant; true when one operand decides the whole. */
static int settle(dlc_pool *pool, uint32_t base, int neutral)
{
    uint32_t n = base;
    for (uint32_t i = base; i < pool->work.n; i++) {
        dlc_expr operand = pool->work.data[i].mono;
        int64_t value;
        if (dlc_expr_is_int(pool, operand, &value)) {
            if (value != neutral)
                return 1;
            continue;
        }
        uint32_t at = n;
        while (at > base && dlc_expr_order(pool, operand, pool->work.data[at - 1].mono) < 0)
            at--;
        if (at > base && pool->work.data[at - 1].mono == operand)
            continue;
        for (uint32_t j = n++; j > at; j--)
            pool->work.data[j] = pool->work.data[j - 1];
        pool->work.data[at].mono = operand;
    }
    pool->work.n = n;
    return 0;
}

static uint32_t count_operands(const dlc_pool *pool, dlc_expr_op op, dlc_expr expr)
{
    uint32_t n = 1;
    for (; dlc_op_of(pool, expr) == op; expr = dlc_arg(pool, expr, 0))
        n++;
    return n;
}

/* p and not p, p or not p: asked of those that join the others, which by themselves have none. */
static int has_complement(dlc_pool *pool, dlc_expr_op op, uint32_t base, dlc_expr joining)
{
    for (uint32_t n = count_operands(pool, op, joining); n; n--, joining = dlc_arg(pool, joining, 0)) {
        dlc_expr opposite = dlc_expr1(pool, DLC_EXPR_NOT, n > 1 ? dlc_arg(pool, joining, 1) : joining);
        for (uint32_t i = base; i < pool->work.n; i++)
            if (pool->work.data[i].mono == opposite)
                return 1;
    }
    return 0;
}

dlc_expr dlc_logic_make(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    int neutral = op == DLC_EXPR_AND;
    uint32_t base = pool->work.n;
    push_operands(pool, op, a);
    push_operands(pool, op, b);
    int is_b_shorter = count_operands(pool, op, b) <= count_operands(pool, op, a);
    int is_decided = settle(pool, base, neutral) || has_complement(pool, op, base, is_b_shorter ? b : a);
    dlc_expr result = is_decided ? dlc_expr_bool(pool, !neutral) : 0;
    for (uint32_t i = base; i < pool->work.n && !is_decided; i++) {
        dlc_expr operand = pool->work.data[i].mono;
        result = result ? dlc_pool_op2(pool, op, DLC_BOOL, result, operand) : operand;
    }
    pool->work.n = base;
    return result ? result : dlc_expr_bool(pool, neutral);
}

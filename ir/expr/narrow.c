/*
 * i64 arithmetic in 32 bits: a vector has twice the lanes of it, and gathers take such indices as they are. What is rewritten is
 * an expression under bounds, those of axes and symbols and those that a guard gives:
 *
 *     i64(x) * 64 + i   where 0 <= i64(x) and i64(x) < 64       becomes     i32(x) * 64 + i32(i)
 *
 * The condition: every operand lies within i32, by dlc_node_range over its operands' ranges, so that each has the same value in both
 * types and no operation overflows. A sum alone may leave them in between: sums are the same modulo 2^32, and the whole one lies within.
 * A float becomes an i32 as it is where what it becomes as an i64 lies within, since both casts truncate. Without bounds it saturates,
 * as the wide one does, but earlier; a comparison with what lies strictly within i32 does not see the difference. With a constant added
 * the wide one may wrap: of two limits on both sides one is then missed, as it is without wrapping.
 */
#include "ir/expr/range.h"

enum { MOST_NODES = 96, MOST_TERMS = 16 };

typedef struct {
    dlc_pool *pool;
    const dlc_ranges *ranges;
    const dlc_bounds *bounds;
    uint32_t axis;
    uint32_t nvisited;
    int pays; /* something is computed, not only cut off */
} narrowing;

/* expr: of i32; 0: it does not fit, or is not known to */
typedef struct {
    dlc_expr expr;
    dlc_interval range;
} narrowed;

static const narrowed none = {0};

static int fits(dlc_interval range)
{
    return range.lo >= INT32_MIN && range.hi <= INT32_MAX;
}

static dlc_interval both(dlc_interval a, dlc_interval b)
{
    return (dlc_interval){a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

/* --- bounds --- */

/* expr = base + *constant */
static dlc_expr base_of(const dlc_pool *pool, dlc_expr expr, int64_t *constant)
{
    *constant = 0;
    if (dlc_op_of(pool, expr) != DLC_EXPR_ADD)
        return expr;
    for (uint32_t i = 0; i < 2; i++)
        if (dlc_expr_is_int(pool, dlc_arg(pool, expr, i), constant))
            return dlc_arg(pool, expr, 1 - i);
    return expr;
}

static void bound(dlc_bounds *bounds, const dlc_pool *pool, dlc_expr expr, dlc_interval range)
{
    int64_t constant;
    dlc_expr base = base_of(pool, expr, &constant);
    if (range.lo != INT64_MIN && __builtin_sub_overflow(range.lo, constant, &range.lo))
        range.lo = INT64_MIN;
    if (range.hi != INT64_MAX && __builtin_sub_overflow(range.hi, constant, &range.hi))
        range.hi = INT64_MAX;
    for (uint32_t i = 0; i < bounds->n; i++)
        if (bounds->of[i] == base) {
            bounds->range[i] = both(bounds->range[i], range);
            return;
        }
    if (bounds->n == DLC_MOST_BOUNDS)
        return;
    bounds->of[bounds->n] = base;
    bounds->range[bounds->n++] = range;
}

void dlc_bounds_add(dlc_bounds *bounds, const dlc_pool *pool, dlc_expr guard, const dlc_ranges *ranges)
{
    if (!guard)
        return;
    const dlc_expr_node *node = dlc_node_of(pool, guard);
    if (node->op == DLC_EXPR_AND && node->dtype == DLC_BOOL) {
        dlc_bounds_add(bounds, pool, dlc_arg(pool, guard, 0), ranges);
        dlc_bounds_add(bounds, pool, dlc_arg(pool, guard, 1), ranges);
        return;
    }
    if (node->op != DLC_EXPR_LT && node->op != DLC_EXPR_LE)
        return;
    dlc_expr a = dlc_arg(pool, guard, 0), b = dlc_arg(pool, guard, 1);
    if (dlc_dtype_of(pool, a) != DLC_I64)
        return;
    int64_t strictly = node->op == DLC_EXPR_LT;
    if (dlc_is_data_free(pool, b)) {
        int64_t most = dlc_expr_range(pool, b, ranges).hi;
        bound(bounds, pool, a, (dlc_interval){INT64_MIN, most == INT64_MAX ? most : most - strictly});
    }
    if (dlc_is_data_free(pool, a)) {
        int64_t least = dlc_expr_range(pool, a, ranges).lo;
        bound(bounds, pool, b, (dlc_interval){least == INT64_MIN ? least : least + strictly, INT64_MAX});
    }
}

static dlc_interval bounds_of(const narrowing *n, dlc_expr expr, dlc_interval range)
{
    for (uint32_t i = 0; n->bounds && i < n->bounds->n; i++)
        if (n->bounds->of[i] == expr)
            range = both(range, n->bounds->range[i]);
    return range;
}

/* --- expressions --- */

static narrowed narrow(narrowing *n, dlc_expr expr);

/* The same for all lanes: computed once, as it is. */
static int is_uniform(const narrowing *n, dlc_expr expr)
{
    return !dlc_expr_has_load(n->pool, expr) && !dlc_expr_uses_axis(n->pool, expr, n->axis);
}

static narrowed cut_off(narrowing *n, dlc_expr expr, dlc_interval range)
{
    range = bounds_of(n, expr, range);
    return fits(range) ? (narrowed){dlc_expr_cast(n->pool, DLC_I32, expr), range} : none;
}

static int take_terms(const narrowing *n, dlc_expr expr, dlc_expr *uniform, dlc_expr *terms, uint32_t *nterms)
{
    if (is_uniform(n, expr)) {
        *uniform = *uniform ? dlc_add(n->pool, *uniform, expr) : expr;
        return 1;
    }
    if (dlc_op_of(n->pool, expr) == DLC_EXPR_ADD) {
        dlc_expr a = dlc_arg(n->pool, expr, 0), b = dlc_arg(n->pool, expr, 1);
        return take_terms(n, a, uniform, terms, nterms) && take_terms(n, b, uniform, terms, nterms);
    }
    if (*nterms == MOST_TERMS)
        return 0;
    terms[(*nterms)++] = expr;
    return 1;
}

/* Terms that lanes share are added up first. */
static narrowed sum(narrowing *n, dlc_expr expr)
{
    dlc_expr uniform = 0, terms[MOST_TERMS];
    uint32_t nterms = 0;
    narrowed all = {0};
    if (!take_terms(n, expr, &uniform, terms, &nterms))
        return none;
    for (uint32_t i = 0; i < nterms + (uniform != 0); i++) {
        narrowed term = narrow(n, i < nterms ? terms[i] : uniform);
        if (!term.expr)
            return none;
        all.expr = all.expr ? dlc_add(n->pool, all.expr, term.expr) : term.expr;
        all.range.lo += term.range.lo; /* few terms of 32 bits: no overflow */
        all.range.hi += term.range.hi;
    }
    all.range = bounds_of(n, expr, all.range);
    return fits(all.range) ? all : none;
}

static narrowed of_operands(narrowing *n, dlc_expr expr)
{
    dlc_pool *pool = n->pool;
    const dlc_expr_node node = *dlc_node_of(pool, expr);
    uint32_t first = node.op == DLC_EXPR_SELECT; /* its condition stays */
    dlc_interval ranges[3] = {{0, 1}};
    dlc_expr args[3] = {0};
    for (uint32_t i = 0; i < node.nargs; i++)
        args[i] = dlc_arg(pool, expr, i);
    for (uint32_t i = first; i < node.nargs; i++) {
        narrowed arg = narrow(n, args[i]);
        if (!arg.expr)
            return none;
        args[i] = arg.expr;
        ranges[i] = arg.range;
    }
    dlc_interval range = bounds_of(n, expr, dlc_node_range(pool, expr, ranges, n->ranges));
    n->pays = 1;
    return fits(range) ? (narrowed){dlc_expr_make(pool, (dlc_expr_op)node.op, DLC_NONE, args, node.nargs), range} : none;
}

static narrowed of_cast(narrowing *n, dlc_expr expr)
{
    dlc_expr of = dlc_arg(n->pool, expr, 0);
    dlc_interval range = bounds_of(n, expr, dlc_expr_range(n->pool, expr, n->ranges));
    n->pays = 1;
    return fits(range) ? (narrowed){dlc_expr_cast(n->pool, DLC_I32, of), range} : none;
}

static int is_of_float(const dlc_pool *pool, dlc_expr expr)
{
    return dlc_op_of(pool, expr) == DLC_EXPR_CAST && dlc_is_float(dlc_dtype_of(pool, dlc_arg(pool, expr, 0)));
}

/* A limit of i64(x) + c, as one of i32(x); 0: where that saturates may matter. */
static narrowed limit_of(narrowing *n, dlc_expr base, dlc_expr limit, int64_t constant)
{
    if (!is_of_float(n->pool, base) || constant < INT32_MIN || constant > INT32_MAX || !dlc_is_data_free(n->pool, limit))
        return none;
    narrowed result = narrow(n, dlc_addi(n->pool, limit, -constant));
    return result.range.lo == INT32_MIN || result.range.hi == INT32_MAX ? none : result;
}

/* max(a, min(b, i64(x))) = max(a, min(b, i32(x))), and the other way round: what saturates is outside of the limits. */
static narrowed clamped(narrowing *n, dlc_expr expr)
{
    dlc_pool *pool = n->pool;
    dlc_expr_op outer = dlc_op_of(pool, expr), inner = outer == DLC_EXPR_MIN ? DLC_EXPR_MAX : DLC_EXPR_MIN;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < 2; k++) {
            dlc_expr within = dlc_arg(pool, expr, i), a = dlc_arg(pool, expr, 1 - i);
            if (dlc_op_of(pool, within) != inner)
                break;
            dlc_expr base = dlc_arg(pool, within, k);
            narrowed limits[] = {limit_of(n, base, a, 0), limit_of(n, base, dlc_arg(pool, within, 1 - k), 0)};
            dlc_interval range = dlc_expr_range(pool, expr, n->ranges);
            if (!limits[0].expr || !limits[1].expr || !fits(range))
                continue;
            dlc_expr value = dlc_expr2(pool, inner, limits[1].expr, dlc_expr_cast(pool, DLC_I32, dlc_arg(pool, base, 0)));
            n->pays = 1;
            return (narrowed){dlc_expr2(pool, outer, limits[0].expr, value), range};
        }
    return none;
}

static narrowed narrow(narrowing *n, dlc_expr expr)
{
    int64_t value;
    narrowed between;
    if (n->nvisited++ == MOST_NODES)
        return none;
    if (dlc_expr_is_int(n->pool, expr, &value))
        return value >= INT32_MIN && value <= INT32_MAX ? (narrowed){dlc_expr_const_i(n->pool, DLC_I32, value), {value, value}} : none;
    if (is_uniform(n, expr))
        return cut_off(n, expr, dlc_expr_range(n->pool, expr, n->ranges));
    switch (dlc_op_of(n->pool, expr)) {
    case DLC_EXPR_ADD:
        return sum(n, expr);
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
        between = clamped(n, expr);
        return between.expr ? between : of_operands(n, expr);
    case DLC_EXPR_SUB:
    case DLC_EXPR_MUL:
    case DLC_EXPR_NEG:
    case DLC_EXPR_FLOORDIV:
    case DLC_EXPR_MOD:
    case DLC_EXPR_SELECT:
        return of_operands(n, expr);
    case DLC_EXPR_CAST:
        return of_cast(n, expr);
    case DLC_EXPR_AXIS:
        n->pays = 1;
        return cut_off(n, expr, dlc_expr_range(n->pool, expr, n->ranges));
    case DLC_EXPR_LOAD:
        return cut_off(n, expr, (dlc_interval){INT64_MIN, INT64_MAX});
    default:
        return cut_off(n, expr, dlc_expr_range(n->pool, expr, n->ranges));
    }
}

dlc_expr dlc_expr_narrow(dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges, const dlc_bounds *bounds, uint32_t axis)
{
    narrowing n = {pool, ranges, bounds, axis, 0, 0};
    narrowed result = narrow(&n, expr);
    return n.pays ? result.expr : 0;
}

/* --- conditions and casts --- */

/* i64(x) + c < k is i32(x) < k - c: what saturates is on the same side of it, and what wraps is no number within. 0: it is not so. */
static dlc_expr saturated(narrowing *n, dlc_expr_op op, dlc_expr a, dlc_expr b, int is_swapped, int may_wrap)
{
    int64_t constant;
    dlc_expr base = base_of(n->pool, a, &constant), limit = limit_of(n, base, b, constant).expr;
    if (!limit || (constant && !may_wrap && op != DLC_EXPR_EQ && op != DLC_EXPR_NE))
        return 0;
    dlc_expr value = dlc_expr_cast(n->pool, DLC_I32, dlc_arg(n->pool, base, 0));
    return is_swapped ? dlc_expr2(n->pool, op, limit, value) : dlc_expr2(n->pool, op, value, limit);
}

/* may_wrap, by operand: another comparison that is asked for too is false where that wraps. */
static dlc_expr comparison(narrowing *n, dlc_expr expr, const int may_wrap[2])
{
    dlc_expr_op op = dlc_op_of(n->pool, expr);
    dlc_expr a = dlc_arg(n->pool, expr, 0), b = dlc_arg(n->pool, expr, 1);
    narrowed left = narrow(n, a), right = left.expr ? narrow(n, b) : none;
    if (right.expr)
        return n->pays ? dlc_expr2(n->pool, op, left.expr, right.expr) : 0;
    dlc_expr result = saturated(n, op, a, b, 0, may_wrap[0]);
    return result ? result : saturated(n, op, b, a, 1, may_wrap[1]);
}

static int is_order(const dlc_pool *pool, dlc_expr expr)
{
    dlc_expr_op op = dlc_op_of(pool, expr);
    return (op == DLC_EXPR_LT || op == DLC_EXPR_LE) && dlc_dtype_of(pool, dlc_arg(pool, expr, 0)) == DLC_I64;
}

static int take_conjuncts(const dlc_pool *pool, dlc_expr expr, dlc_expr *terms, uint32_t *nterms)
{
    if (dlc_op_of(pool, expr) == DLC_EXPR_AND)
        return take_conjuncts(pool, dlc_arg(pool, expr, 0), terms, nterms) &&
               take_conjuncts(pool, dlc_arg(pool, expr, 1), terms, nterms);
    if (*nterms == MOST_TERMS)
        return 0;
    terms[(*nterms)++] = expr;
    return 1;
}

/* Another term has a limit within i32 on the operand's other side. */
static int is_limited(narrowing *n, const dlc_expr *terms, uint32_t nterms, dlc_expr operand, uint32_t side)
{
    int64_t constant;
    dlc_expr base = base_of(n->pool, operand, &constant);
    for (uint32_t i = 0; i < nterms; i++)
        if (is_order(n->pool, terms[i]) && dlc_arg(n->pool, terms[i], 1 - side) == operand &&
            limit_of(n, base, dlc_arg(n->pool, terms[i], side), constant).expr)
            return 1;
    return 0;
}

static dlc_expr conjunction(narrowing *n, dlc_expr expr)
{
    dlc_expr terms[MOST_TERMS], all = 0;
    uint32_t nterms = 0, nchanged = 0;
    if (!take_conjuncts(n->pool, expr, terms, &nterms))
        return 0;
    for (uint32_t i = 0; i < nterms; i++) {
        dlc_expr term = 0;
        if (is_order(n->pool, terms[i])) {
            int may_wrap[2];
            for (uint32_t side = 0; side < 2; side++)
                may_wrap[side] = is_limited(n, terms, nterms, dlc_arg(n->pool, terms[i], side), side);
            term = comparison(n, terms[i], may_wrap);
        }
        nchanged += term != 0;
        all = dlc_and(n->pool, all, term ? term : terms[i]);
    }
    return nchanged ? all : 0;
}

dlc_expr dlc_expr_narrow_operands(dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges, uint32_t axis)
{
    const dlc_expr_node node = *dlc_node_of(pool, expr);
    narrowing n = {pool, ranges, NULL, axis, 0, 0};
    if (node.op == DLC_EXPR_AND && node.dtype == DLC_BOOL)
        return conjunction(&n, expr);
    if (!node.nargs || node.op == DLC_EXPR_LOAD || dlc_dtype_of(pool, dlc_arg(pool, expr, 0)) != DLC_I64)
        return 0;
    if (node.op == DLC_EXPR_LT || node.op == DLC_EXPR_LE || node.op == DLC_EXPR_EQ || node.op == DLC_EXPR_NE)
        return comparison(&n, expr, (const int[2]){0, 0});
    dlc_expr of = dlc_arg(pool, expr, 0);
    if (node.op != DLC_EXPR_CAST || (node.dtype == DLC_I32 && dlc_op_of(pool, of) == DLC_EXPR_AXIS)) /* which is what others become */
        return 0;
    dlc_expr small = dlc_expr_narrow(pool, of, ranges, NULL, axis), result = small ? dlc_expr_cast(pool, (dlc_dtype)node.dtype, small) : 0;
    return result == expr ? 0 : result; /* of two casts to fewer bits one is left */
}

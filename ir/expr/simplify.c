/*
 * Simplification under ranges. Everything rests on one question, is e >= 0 at every point: asked
 * first of e's interval, then of a lower bound of e over symbols alone, got by putting each axis
 * (and quotient) at its end: t < s holds for an axis of extent s because s - 1 - t is at least s -
 * 1 - (s - 1) = 0. Quotients by k look for a common factor g of k and some terms of x whose
 * remaining terms lie in [0, g): x = g*a + r gives x / (g*j) = a / j and x mod (g*j) = g * (a mod
 * j) + r.
 */
#include "ir/expr/range.h"

#include <string.h>

/* Quotients nest as deep as a shape was reshaped; a bound gives up beyond. */
enum { MAX_DEPTH = 8 };

typedef struct {
    dlc_interval range;
    dlc_expr simple, slack; /* 0: not asked for yet */
    uint8_t is_known;
} known;

enum { DLC_NO_SLACK = 0xffffffff };

/* Pages of what is known: one expression asks about few of a pool's, which lie close together. */
enum { PAGE = 32 };
typedef struct {
    uint32_t wanted; /* a bit each */
    known of[PAGE];
} page;

struct dlc_known {
    const dlc_ranges *ranges;
    dlc_arena *scratch;
    page **pages; /* by id / PAGE; NULL: nothing is known of these */
    uint32_t npages;
    dlc_ids pending;
};

typedef dlc_known context;

static page *page_of(context *ctx, dlc_expr expr)
{
    uint32_t number = expr / PAGE;
    if (number >= ctx->npages) {
        uint32_t n = number + number / 2 + 1;
        page **grown = dlc_new_array(ctx->scratch, page *, n);
        if (ctx->npages)
            memcpy(grown, ctx->pages, ctx->npages * sizeof *grown);
        ctx->pages = grown;
        ctx->npages = n;
    }
    if (!ctx->pages[number])
        ctx->pages[number] = dlc_new(ctx->scratch, page);
    return ctx->pages[number];
}

static known *known_of(context *ctx, dlc_expr expr)
{
    return &page_of(ctx, expr)->of[expr % PAGE];
}

static dlc_interval range_of(context *ctx, const dlc_pool *pool, dlc_expr expr)
{
    ctx->pending.n = 0;
    dlc_vec_push(ctx->scratch, &ctx->pending, expr);
    while (ctx->pending.n) {
        dlc_expr id = ctx->pending.data[ctx->pending.n - 1];
        known *of = known_of(ctx, id);
        uint32_t n = ctx->pending.n, nargs = of->is_known ? 0 : dlc_node_of(pool, id)->nargs;
        dlc_interval args[3] = {{0, 0}};
        for (uint32_t i = 0; i < nargs && dlc_op_of(pool, id) != DLC_EXPR_LOAD; i++) {
            dlc_expr arg = dlc_arg(pool, id, i);
            args[i] = known_of(ctx, arg)->range;
            if (!known_of(ctx, arg)->is_known)
                dlc_vec_push(ctx->scratch, &ctx->pending, arg);
        }
        if (ctx->pending.n > n)
            continue;
        if (!of->is_known)
            of->range = dlc_node_range(pool, id, args, ctx->ranges), of->is_known = 1;
        ctx->pending.n--;
    }
    return known_of(ctx, expr)->range;
}

/* --- bounds over symbols --- */

static dlc_expr bound_of(context *ctx, dlc_pool *pool, dlc_expr expr, int upper, int depth);

static dlc_expr numeric_bound(context *ctx, dlc_pool *pool, dlc_expr expr, int upper)
{
    dlc_interval range = range_of(ctx, pool, expr);
    int64_t bound = upper ? range.hi : range.lo;
    return bound == INT64_MIN || bound == INT64_MAX ? 0 : dlc_expr_i64(pool, bound);
}

static dlc_expr atom_bound(context *ctx, dlc_pool *pool, dlc_expr atom, int upper, int depth)
{
    const dlc_expr_node node = *dlc_node_of(pool, atom);
    dlc_expr bound = 0;
    if (node.op == DLC_EXPR_SYM)
        return atom;
    if (node.op == DLC_EXPR_AXIS && upper && ctx->ranges->extents &&
        node.imm.id < ctx->ranges->naxes && ctx->ranges->extents[node.imm.id])
        return dlc_addi(pool, ctx->ranges->extents[node.imm.id], -1);
    if (node.op == DLC_EXPR_MOD && upper && dlc_is_data_free(pool, atom))
        return dlc_addi(pool, dlc_arg(pool, atom, 1), -1);
    if (node.op == DLC_EXPR_FLOORDIV && dlc_is_data_free(pool, atom) && depth < MAX_DEPTH) {
        bound = bound_of(ctx, pool, dlc_arg(pool, atom, 0), upper, depth + 1);
        if (bound)
            return dlc_floordiv(pool, bound, dlc_arg(pool, atom, 1));
    }
    return numeric_bound(ctx, pool, atom, upper);
}

/* Whether the bound times `at` stays so small that sums of such terms do not wrap: products of sizes come near to what i64 holds. */
static int is_small(const dlc_pool *pool, dlc_expr at, int64_t *coef)
{
    const int64_t most = (int64_t)1 << 53;
    int64_t value = 1;
    (void)dlc_expr_is_int(pool, at, &value);
    return !__builtin_mul_overflow(*coef, value, coef) && *coef >= -most && *coef <= most;
}

/* coef * symbols * (at most one other atom), symbols not negative */
static dlc_expr term_bound(context *ctx, dlc_pool *pool, dlc_term term, int upper, int depth)
{
    uint32_t first = pool->work.n, n = dlc_mono_push(pool, term.mono);
    int64_t coef = term.coef;
    dlc_expr bound = dlc_expr_i64(pool, term.coef);
    int nothers = 0;
    for (uint32_t i = 0; i < n && bound; i++) {
        dlc_expr factor = pool->work.data[first + i].mono, at = factor;
        if (dlc_op_of(pool, factor) != DLC_EXPR_SYM) {
            at =
                ++nothers == 1 ? atom_bound(ctx, pool, factor, (term.coef > 0) == upper, depth) : 0;
        } else if (range_of(ctx, pool, factor).lo < 0) {
            at = 0;
        }
        bound = at && is_small(pool, at, &coef) ? dlc_mul(pool, bound, at) : 0;
    }
    pool->work.n = first;
    return bound;
}

static dlc_expr bound_of(context *ctx, dlc_pool *pool, dlc_expr expr, int upper, int depth)
{
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, expr, 1);
    dlc_expr part = 1;
    for (uint32_t i = 0; i < n && part; i++) { /* parts go behind the terms and are added up once: each may be as long as expr */
        part = term_bound(ctx, pool, pool->work.data[first + i], upper, depth);
        if (part)
            dlc_sum_push(pool, part, 1);
    }
    dlc_expr bound = part ? dlc_sum_pop(pool, first + n) : 0;
    pool->work.n = first;
    return bound;
}

/* A lower bound of the term m * k * (x floordiv k), without the quotient: m * x, less m * (k - 1) where m is positive. 0: it is no such term. */
static dlc_expr below_multiple(dlc_pool *pool, dlc_term term)
{
    int64_t k, m;
    if (!term.mono || dlc_op_of(pool, term.mono) != DLC_EXPR_FLOORDIV || !dlc_is_data_free(pool, term.mono) ||
        !dlc_expr_is_int(pool, dlc_arg(pool, term.mono, 1), &k) || k < 2 || term.coef % k)
        return 0;
    dlc_expr x = dlc_arg(pool, term.mono, 0);
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, x, 1);
    int64_t rest = m = term.coef / k;
    int fits = is_small(pool, dlc_expr_i64(pool, k), &rest);
    for (uint32_t i = 0; i < n && fits; i++)
        rest = m, fits = is_small(pool, dlc_expr_i64(pool, pool->work.data[first + i].coef), &rest);
    pool->work.n = first;
    return fits ? dlc_addi(pool, dlc_muli(pool, x, m), m > 0 ? -m * (k - 1) : 0) : 0;
}

/* A lower bound of the sum without such quotients, as the extents of convolutions in steps have them: H + 1 - 2 * ((H + 1) floordiv 2) is 0 or
 * more, while H and the quotient by themselves may be anything. The sum itself: there are none. */
static dlc_expr below_multiples(dlc_pool *pool, dlc_expr sum)
{
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, sum, 1);
    for (uint32_t i = 0; i < n; i++) {
        dlc_term term = pool->work.data[first + i];
        dlc_expr below = below_multiple(pool, term);
        if (below)
            sum = dlc_add(pool, sum, dlc_sub(pool, below, dlc_muli(pool, term.mono, term.coef)));
    }
    pool->work.n = first;
    return sum;
}

static int is_nonnegative(context *ctx, dlc_pool *pool, dlc_expr expr)
{
    if (range_of(ctx, pool, expr).lo >= 0)
        return 1;
    if (!dlc_is_data_free(pool, expr))
        return 0;
    dlc_expr bound = bound_of(ctx, pool, expr, 0, 0), before = 0;
    for (int depth = 0; bound && bound != before && depth < MAX_DEPTH; depth++) {
        if (range_of(ctx, pool, bound).lo >= 0)
            return 1;
        before = bound;
        bound = below_multiples(pool, bound);
    }
    return 0;
}

/* The axis is one of this extent, whatever that is made of. */
static int has_extent(const context *ctx, const dlc_pool *pool, dlc_expr axis, dlc_expr extent)
{
    const dlc_expr_node *node = dlc_node_of(pool, axis);
    return node->op == DLC_EXPR_AXIS && ctx->ranges->extents && node->imm.id < ctx->ranges->naxes &&
           ctx->ranges->extents[node->imm.id] == extent;
}

/* 0 <= expr < size */
static int is_inside(context *ctx, dlc_pool *pool, dlc_expr expr, dlc_expr size)
{
    if (has_extent(ctx, pool, expr, size))
        return 1;
    return is_nonnegative(ctx, pool, expr) &&
           is_nonnegative(ctx, pool, dlc_addi(pool, dlc_sub(pool, size, expr), -1));
}

/* --- quotients --- */

/* The part of k that a term shares: the common divisor of the coefficients times the common
 * symbols; 0 when it is 1. */
static dlc_expr shared_factor(dlc_pool *pool, dlc_term term, dlc_expr k)
{
    uint32_t first = pool->work.n, nk = dlc_sum_push(pool, k, 1);
    uint64_t number = dlc_magnitude(term.coef);
    dlc_expr mono = pool->work.data[first].mono, shared;
    for (uint32_t i = 0; i < nk; i++)
        number = dlc_gcd(number, dlc_magnitude(pool->work.data[first + i].coef));
    shared = dlc_expr_i64(pool, (int64_t)number);
    uint32_t factors = pool->work.n, n = nk == 1 ? dlc_mono_push(pool, mono) : 0;
    for (uint32_t i = 0; i < n; i++) {
        dlc_expr factor = pool->work.data[factors + i].mono, rest;
        if (dlc_mono_div(pool, term.mono, factor, &rest)) {
            term.mono = rest;
            shared = dlc_mul(pool, shared, factor);
        }
    }
    pool->work.n = first;
    int64_t value;
    return dlc_expr_is_int(pool, shared, &value) && value <= 1 ? 0 : shared;
}

/* x = g*a + r with 0 <= r < g and k = g*j, for some shared factor g other than k */
static int split_quotient(context *ctx, dlc_pool *pool, dlc_expr x, dlc_expr k, dlc_expr *g,
                          dlc_expr *a, dlc_expr *r, dlc_expr *j)
{
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, x, 1);
    int found = 0;
    dlc_expr rest;
    for (uint32_t i = 0; i < n && !found; i++) {
        if (!pool->work.data[first + i].mono)
            continue;
        *g = shared_factor(pool, pool->work.data[first + i], k);
        found = *g && *g != k && dlc_div_split(pool, k, *g, j, &rest) &&
                dlc_sum_nterms(pool, rest) == 0 && dlc_div_split(pool, x, *g, a, r) &&
                is_inside(ctx, pool, *r, *g);
    }
    pool->work.n = first;
    return found;
}

static int is_quotient(const dlc_pool *pool, dlc_expr expr)
{
    dlc_expr_op op = dlc_op_of(pool, expr);
    return (op == DLC_EXPR_FLOORDIV || op == DLC_EXPR_MOD) && dlc_dtype_of(pool, expr) == DLC_I64 &&
           dlc_is_data_free(pool, expr);
}

static dlc_expr simplify_quotients(context *ctx, dlc_pool *pool, dlc_expr expr, int depth);

/* x = k * *whole + *rest, where what terms are known to be multiples of makes them multiples of k: as tiles' beginnings. */
static int take_multiples(const context *ctx, dlc_pool *pool, dlc_expr x, int64_t k, dlc_expr *whole, dlc_expr *rest)
{
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, x, 1);
    int found = 0;
    *whole = dlc_expr_i64(pool, 0);
    *rest = x;
    for (uint32_t i = 0; i < n && n > 1; i++) {
        dlc_term term = pool->work.data[first + i];
        int64_t by = k / (int64_t)dlc_gcd(dlc_magnitude(term.coef), (uint64_t)k); /* of the term's atoms, to be taken */
        if (!term.mono || by == 1 || dlc_expr_multiple(pool, term.mono, ctx->ranges) % by)
            continue;
        dlc_expr part = dlc_floordiv(pool, term.mono, dlc_expr_i64(pool, by));
        *whole = dlc_add(pool, *whole, dlc_muli(pool, part, term.coef / (k / by)));
        *rest = dlc_sub(pool, *rest, dlc_muli(pool, term.mono, term.coef));
        found = 1;
    }
    pool->work.n = first;
    return found;
}

/* Without such terms, where the quotient of what is left is no quotient any more; or the node as it is. */
static dlc_expr without_multiples(context *ctx, dlc_pool *pool, dlc_expr node, int depth)
{
    dlc_expr_op op = dlc_op_of(pool, node);
    dlc_expr x = dlc_arg(pool, node, 0), whole, rest;
    int64_t k;
    if (!dlc_expr_is_int(pool, dlc_arg(pool, node, 1), &k) || k < 2 || !take_multiples(ctx, pool, x, k, &whole, &rest))
        return node;
    dlc_expr left = dlc_expr2(pool, op, rest, dlc_arg(pool, node, 1)), simple = simplify_quotients(ctx, pool, left, depth + 1);
    if (simple == left && is_quotient(pool, left))
        return node;
    return op == DLC_EXPR_FLOORDIV ? dlc_add(pool, whole, simple) : simple;
}

static dlc_expr simplify_quotient(context *ctx, dlc_pool *pool, dlc_expr node, int depth)
{
    dlc_expr_op op = dlc_op_of(pool, node);
    int is_floor = op == DLC_EXPR_FLOORDIV;
    dlc_expr x = dlc_arg(pool, node, 0), k = dlc_arg(pool, node, 1), g, a, r, j;
    if (is_inside(ctx, pool, x, k))
        return is_floor ? dlc_expr_i64(pool, 0) : x;
    if (depth == MAX_DEPTH)
        return node;
    if (!split_quotient(ctx, pool, x, k, &g, &a, &r, &j))
        return without_multiples(ctx, pool, node, depth);
    dlc_expr inner = simplify_quotients(ctx, pool, dlc_expr2(pool, op, a, j), depth + 1);
    return is_floor ? inner : dlc_add(pool, dlc_mul(pool, g, inner), r);
}

/* The quotients that are terms of a sum, as building one may leave them. */
static dlc_expr simplify_quotients(context *ctx, dlc_pool *pool, dlc_expr expr, int depth)
{
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, expr, 1);
    dlc_expr sum = expr;
    for (uint32_t i = 0; i < n; i++) {
        dlc_term term = pool->work.data[first + i];
        dlc_expr instead = term.mono && is_quotient(pool, term.mono)
                               ? simplify_quotient(ctx, pool, term.mono, depth)
                               : term.mono;
        if (instead != term.mono)
            sum = dlc_add(pool, sum, dlc_muli(pool, dlc_sub(pool, instead, term.mono), term.coef));
    }
    pool->work.n = first;
    return sum;
}

/* div and rem of what is not negative */
static dlc_expr truncating(context *ctx, dlc_pool *pool, dlc_expr_op op, dlc_expr x, dlc_expr k)
{
    if (range_of(ctx, pool, k).lo < 1 || !is_nonnegative(ctx, pool, x))
        return 0;
    dlc_expr_op flooring = op == DLC_EXPR_DIV ? DLC_EXPR_FLOORDIV : DLC_EXPR_MOD;
    return simplify_quotients(ctx, pool, dlc_expr2(pool, flooring, x, k), 0);
}

/* --- comparisons --- */

/* k * q + rest < 0 asks about q alone where the rest decides nothing: 3 * i + j < 681 is i < 227 for j below 3. */
static dlc_expr without_rest(context *ctx, dlc_pool *pool, dlc_expr slack, int64_t k)
{
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, slack, 1), nrest = 0;
    dlc_expr q = dlc_expr_i64(pool, 0);
    for (uint32_t i = 0; i < n; i++) {
        dlc_term term = pool->work.data[first + i];
        if (term.mono && term.coef % k == 0)
            q = dlc_add(pool, q, dlc_muli(pool, term.mono, term.coef / k));
        else
            nrest += term.mono != 0;
    }
    pool->work.n = first;
    if (!nrest)
        return 0;
    dlc_interval rest = range_of(ctx, pool, dlc_sub(pool, slack, dlc_muli(pool, q, k)));
    if (rest.lo <= -INT64_MAX || rest.hi == INT64_MAX)
        return 0;
    int64_t most = dlc_floor_ratio(rest.hi, k);
    return most == dlc_floor_ratio(rest.lo, k) ? dlc_lt(pool, q, dlc_expr_i64(pool, -most)) : 0;
}

/* By the first of the terms' coefficients that serves. */
static dlc_expr coarser(context *ctx, dlc_pool *pool, dlc_expr comparison, dlc_expr slack)
{
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, slack, 1);
    dlc_expr result = 0;
    for (uint32_t i = 0; i < n && !result; i++) {
        dlc_term term = pool->work.data[first + i];
        if (term.mono && (term.coef > 1 || term.coef < -1) && term.coef != INT64_MIN)
            result = without_rest(ctx, pool, slack, term.coef < 0 ? -term.coef : term.coef);
    }
    pool->work.n = first;
    return result ? result : comparison;
}

static dlc_expr decide(context *ctx, dlc_pool *pool, dlc_expr comparison)
{
    dlc_interval range = range_of(ctx, pool, comparison);
    if (range.lo == range.hi)
        return dlc_expr_bool(pool, (int)range.lo);
    if (dlc_op_of(pool, comparison) == DLC_EXPR_LT && has_extent(ctx, pool, dlc_arg(pool, comparison, 0), dlc_arg(pool, comparison, 1)))
        return dlc_expr_bool(pool, 1);
    dlc_expr slack = dlc_compare_slack(pool, comparison);
    if (!slack)
        return comparison;
    if (is_nonnegative(ctx, pool, dlc_addi(pool, dlc_muli(pool, slack, -1), -1)))
        return dlc_expr_bool(pool, 1);
    return is_nonnegative(ctx, pool, slack) ? dlc_expr_bool(pool, 0) : coarser(ctx, pool, comparison, slack);
}

static dlc_expr decide_equality(context *ctx, dlc_pool *pool, dlc_expr comparison)
{
    dlc_interval range = range_of(ctx, pool, comparison);
    if (range.lo == range.hi)
        return dlc_expr_bool(pool, (int)range.lo);
    dlc_expr a = dlc_arg(pool, comparison, 0), b = dlc_arg(pool, comparison, 1);
    if (dlc_dtype_of(pool, a) != DLC_I64 || !dlc_is_data_free(pool, comparison))
        return comparison;
    if (is_nonnegative(ctx, pool, dlc_addi(pool, dlc_sub(pool, a, b), -1)) ||
        is_nonnegative(ctx, pool, dlc_addi(pool, dlc_sub(pool, b, a), -1)))
        return dlc_expr_bool(pool, dlc_op_of(pool, comparison) == DLC_EXPR_NE);
    return comparison;
}

/* Conjuncts p < 0 and q < 0: q follows from p when q <= p; they exclude each other when p + q >=
 * -1. */
typedef enum { UNRELATED, IMPLIES, EXCLUDES } relation;

static relation relation_of(context *ctx, dlc_pool *pool, dlc_expr p, dlc_expr q)
{
    if (range_of(ctx, pool, dlc_sub(pool, q, p)).hi <= 0)
        return IMPLIES;
    return range_of(ctx, pool, dlc_add(pool, p, q)).lo >= -1 ? EXCLUDES : UNRELATED;
}

typedef struct {
    dlc_expr holds, slack; /* slack 0: no comparison of sums */
    uint8_t is_new;
} conjunct;

static dlc_expr slack_of(context *ctx, dlc_pool *pool, dlc_expr comparison)
{
    known *of = known_of(ctx, comparison);
    if (!of->slack) {
        dlc_expr slack = dlc_compare_slack(pool, comparison);
        of->slack = slack ? slack : DLC_NO_SLACK;
    }
    return of->slack == DLC_NO_SLACK ? 0 : of->slack;
}

/* Conjuncts stand in one order in every conjunction, so those of `settled` are met one after the other. */
static void push_conjunct(context *ctx, dlc_pool *pool, dlc_expr holds, dlc_expr *settled, conjunct *to)
{
    int is_set = dlc_op_of(pool, *settled) == DLC_EXPR_AND;
    *to = (conjunct){holds, slack_of(ctx, pool, holds), (is_set ? dlc_arg(pool, *settled, 1) : *settled) != holds};
    if (!to->is_new)
        *settled = is_set ? dlc_arg(pool, *settled, 0) : 0;
}

/* `settled` is a conjunction that came out of here, of which nothing follows from the rest: only what joins it is compared. */
static dlc_expr conjunction(context *ctx, dlc_pool *pool, dlc_expr expr, dlc_expr settled)
{
    uint32_t n = 1;
    for (dlc_expr at = expr; dlc_op_of(pool, at) == DLC_EXPR_AND; at = dlc_arg(pool, at, 0))
        n++;
    conjunct *parts = dlc_new_array(ctx->scratch, conjunct, n);
    n = 0;
    for (; dlc_op_of(pool, expr) == DLC_EXPR_AND; expr = dlc_arg(pool, expr, 0))
        push_conjunct(ctx, pool, dlc_arg(pool, expr, 1), &settled, &parts[n++]);
    push_conjunct(ctx, pool, expr, &settled, &parts[n++]);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; parts[i].slack && j < n; j++) {
            if (j == i || !parts[j].slack || !(parts[i].is_new || parts[j].is_new))
                continue;
            relation ij = relation_of(ctx, pool, parts[i].slack, parts[j].slack);
            if (ij == EXCLUDES)
                return dlc_expr_bool(pool, 0);
            if (ij == IMPLIES)
                parts[j] = (conjunct){0};
        }
    dlc_expr result = 0;
    for (uint32_t i = 0; i < n; i++)
        result = dlc_and(pool, result, parts[i].holds);
    return result;
}

/* --- the rewrite --- */

static int is_extreme(const dlc_pool *pool, dlc_expr expr)
{
    return dlc_op_of(pool, expr) == DLC_EXPR_MIN || dlc_op_of(pool, expr) == DLC_EXPR_MAX;
}

/* x and k of k * x; k is 1 where none is to be seen. */
static dlc_expr scaled(const dlc_pool *pool, dlc_expr expr, int64_t *k)
{
    *k = 1;
    return dlc_op_of(pool, expr) == DLC_EXPR_MUL && dlc_expr_is_int(pool, dlc_arg(pool, expr, 1), k) ? dlc_arg(pool, expr, 0) : expr;
}

/*
 * A size that is cut and repeated again and again stays what it is: min(k * min(x, d), c) = min(k * x, k * d, c), for max as well, and
 * min(k * x, c) = min(c * x, c) for k > c, where x is not negative. A product that might pass i64 stays as it is.
 */
static dlc_expr unnested(context *ctx, dlc_pool *pool, dlc_expr expr)
{
    dlc_expr_op op = dlc_op_of(pool, expr);
    int64_t k, c, d, end;
    if (!dlc_expr_is_int(pool, dlc_arg(pool, expr, 1), &c) || !dlc_is_data_free(pool, expr))
        return expr;
    dlc_expr x = scaled(pool, dlc_arg(pool, expr, 0), &k);
    if (k < 1)
        return expr;
    if (op == DLC_EXPR_MIN && c >= 1 && k > c && range_of(ctx, pool, x).lo >= 0)
        return dlc_expr2(pool, op, dlc_muli(pool, x, c), dlc_expr_i64(pool, c));
    if (dlc_op_of(pool, x) != op || !dlc_expr_is_int(pool, dlc_arg(pool, x, 1), &d) || __builtin_mul_overflow(k, d, &d))
        return expr;
    dlc_interval inner = range_of(ctx, pool, dlc_arg(pool, x, 0));
    if (__builtin_mul_overflow(inner.lo, k, &end) || __builtin_mul_overflow(inner.hi, k, &end))
        return expr;
    dlc_expr rest = dlc_expr2(pool, op, dlc_expr_i64(pool, d), dlc_expr_i64(pool, c));
    return dlc_expr2(pool, op, dlc_muli(pool, dlc_arg(pool, x, 0), k), rest);
}

static dlc_expr extreme(context *ctx, dlc_pool *pool, dlc_expr expr)
{
    for (dlc_expr before = 0; before != expr && is_extreme(pool, expr);) {
        before = expr;
        expr = unnested(ctx, pool, expr);
    }
    if (!is_extreme(pool, expr))
        return expr;
    dlc_expr a = dlc_arg(pool, expr, 0), b = dlc_arg(pool, expr, 1);
    int is_min = dlc_op_of(pool, expr) == DLC_EXPR_MIN;
    dlc_interval x = range_of(ctx, pool, a), y = range_of(ctx, pool, b);
    int is_free = dlc_is_data_free(pool, expr);
    if (x.hi <= y.lo || (is_free && is_nonnegative(ctx, pool, dlc_sub(pool, b, a))))
        return is_min ? a : b;
    if (y.hi <= x.lo || (is_free && is_nonnegative(ctx, pool, dlc_sub(pool, a, b))))
        return is_min ? b : a;
    return expr;
}

/* i64(i32(x)) = x when x fits */
static dlc_expr round_trip(context *ctx, dlc_pool *pool, dlc_expr expr)
{
    dlc_expr inner = dlc_arg(pool, expr, 0);
    if (dlc_op_of(pool, inner) != DLC_EXPR_CAST || !dlc_is_int(dlc_dtype_of(pool, inner)))
        return expr;
    dlc_expr x = dlc_arg(pool, inner, 0);
    if (dlc_dtype_of(pool, x) != DLC_I64 || dlc_dtype_of(pool, inner) == DLC_U64)
        return expr;
    dlc_interval range = range_of(ctx, pool, x), kept = range_of(ctx, pool, inner);
    return range.lo == kept.lo && range.hi == kept.hi && range.lo != INT64_MIN &&
                   range.hi != INT64_MAX
               ? x
               : expr;
}

static dlc_expr simplify_i64(context *ctx, dlc_pool *pool, dlc_expr expr)
{
    dlc_expr_op op = dlc_op_of(pool, expr);
    dlc_expr result = 0;
    switch (op) {
    case DLC_EXPR_DIV:
    case DLC_EXPR_REM:
        result = truncating(ctx, pool, op, dlc_arg(pool, expr, 0), dlc_arg(pool, expr, 1));
        return result ? result : expr;
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
        return extreme(ctx, pool, expr);
    case DLC_EXPR_ABS:
        return is_nonnegative(ctx, pool, dlc_arg(pool, expr, 0)) ? dlc_arg(pool, expr, 0) : expr;
    case DLC_EXPR_CAST:
        return round_trip(ctx, pool, expr);
    default:
        return expr;
    }
}

/* An expression with its operands simplified, which came of one that had the operator `from` and now has the first operand `first`. */
static dlc_expr simplify_node(context *ctx, dlc_pool *pool, dlc_expr expr, dlc_expr_op from, dlc_expr first)
{
    dlc_expr_op op = dlc_op_of(pool, expr);
    if (from == DLC_EXPR_FLOORDIV || from == DLC_EXPR_MOD)
        return dlc_dtype_of(pool, expr) == DLC_I64 ? simplify_quotients(ctx, pool, expr, 0) : expr;
    if (dlc_dtype_of(pool, expr) == DLC_I64)
        return simplify_i64(ctx, pool, expr);
    if (op == DLC_EXPR_LT || op == DLC_EXPR_LE)
        return decide(ctx, pool, expr);
    if (op == DLC_EXPR_EQ || op == DLC_EXPR_NE)
        return decide_equality(ctx, pool, expr);
    return op == DLC_EXPR_AND && dlc_dtype_of(pool, expr) == DLC_BOOL ? conjunction(ctx, pool, expr, from == op ? first : 0)
                                                                      : expr;
}

/* One whose operands stay is as it was built. */
static dlc_expr simplify_operands(context *ctx, dlc_pool *pool, dlc_expr expr)
{
    const dlc_expr_node node = *dlc_node_of(pool, expr);
    dlc_expr args[UINT8_MAX];
    int is_same = 1;
    for (uint32_t i = 0; i < node.nargs; i++) {
        dlc_expr arg = dlc_arg(pool, expr, i);
        args[i] = arg ? known_of(ctx, arg)->simple : 0;
        is_same &= args[i] == arg;
    }
    return is_same ? expr : dlc_pool_rebuild(pool, &node, args);
}

static void set_wanted(context *ctx, dlc_expr expr, int is_wanted)
{
    page *in = page_of(ctx, expr);
    uint32_t bit = UINT32_C(1) << expr % PAGE;
    in->wanted = is_wanted ? in->wanted | bit : in->wanted & ~bit;
}

/* The next wanted one from `expr` downwards, or upwards; 0: there is none down to, or up to, `end`, whose page there is. */
static dlc_expr wanted_below(const context *ctx, dlc_expr expr, dlc_expr end)
{
    uint32_t number = expr / PAGE, bits = ctx->pages[number] ? ctx->pages[number]->wanted << (PAGE - 1 - expr % PAGE) : 0;
    if (bits)
        return expr - (uint32_t)__builtin_clz(bits);
    while (number-- > end / PAGE)
        if (ctx->pages[number] && ctx->pages[number]->wanted)
            return number * PAGE + (PAGE - 1 - (uint32_t)__builtin_clz(ctx->pages[number]->wanted));
    return 0;
}

static dlc_expr wanted_above(const context *ctx, dlc_expr expr, dlc_expr end)
{
    uint32_t number = expr / PAGE, bits = ctx->pages[number] ? ctx->pages[number]->wanted >> expr % PAGE : 0;
    if (bits)
        return expr + (uint32_t)__builtin_ctz(bits);
    while (++number <= end / PAGE)
        if (ctx->pages[number] && ctx->pages[number]->wanted)
            return number * PAGE + (uint32_t)__builtin_ctz(ctx->pages[number]->wanted);
    return 0;
}

/* Marks what root is made of and was not asked for before; returns the lowest id of it. */
static dlc_expr want(context *ctx, const dlc_pool *pool, dlc_expr root)
{
    dlc_expr lowest = root;
    set_wanted(ctx, root, 1);
    for (dlc_expr id = root; id >= lowest; id = wanted_below(ctx, id - 1, lowest))
        for (uint32_t i = 0; i < dlc_node_of(pool, id)->nargs; i++) {
            dlc_expr arg = dlc_arg(pool, id, i);
            if (!arg || known_of(ctx, arg)->simple)
                continue;
            set_wanted(ctx, arg, 1);
            lowest = arg < lowest ? arg : lowest;
        }
    return lowest;
}

static dlc_expr simplify(context *ctx, dlc_pool *pool, dlc_expr root)
{
    if (known_of(ctx, root)->simple)
        return known_of(ctx, root)->simple;
    for (dlc_expr id = want(ctx, pool, root); id && id <= root; id = wanted_above(ctx, id, root)) {
        dlc_expr first = dlc_node_of(pool, id)->nargs ? known_of(ctx, dlc_arg(pool, id, 0))->simple : 0;
        dlc_expr simple = simplify_node(ctx, pool, simplify_operands(ctx, pool, id), dlc_op_of(pool, id), first);
        known_of(ctx, id)->simple = simple;
        set_wanted(ctx, id, 0);
    }
    return known_of(ctx, root)->simple;
}

dlc_known *dlc_known_create(dlc_arena *arena)
{
    dlc_known *created = dlc_new(arena, dlc_known);
    created->scratch = arena;
    return created;
}

dlc_expr dlc_expr_simplify(dlc_pool *pool, dlc_expr root, const dlc_ranges *ranges)
{
    if (!root || !dlc_node_of(pool, root)->nargs)
        return root;
    if (ranges->known) {
        ranges->known->ranges = ranges;
        return simplify(ranges->known, pool, root);
    }
    context ctx = {.ranges = ranges, .scratch = dlc_arena_create(0)};
    dlc_expr result = simplify(&ctx, pool, root);
    dlc_arena_destroy(ctx.scratch);
    return result;
}

/*
 * Quotients of sizes and positions: what reshapes and flattened tiles are made of. x = k *
 * floordiv(x, k) + mod(x, k), used in both directions: going down, the part of x that k divides
 * leaves the quotient; going up, a sum that holds both halves gets x back. Between them delinearise
 * and linearise cancel, whatever the order in which dimensions were split. k is a positive constant
 * or a polynomial over symbols (a size); other divisors make plain nodes.
 */
#include "ir/expr/build.h"

static dlc_expr quotient_node(dlc_pool *pool, dlc_expr_op op, dlc_expr x, dlc_expr k)
{
    return dlc_pool_op2(pool, op, DLC_I64, x, k);
}

static int is_size(const dlc_pool *pool, dlc_expr k)
{
    int64_t value;
    return dlc_expr_is_int(pool, k, &value) ? value > 0 : dlc_is_data_free(pool, k);
}

/* a * b of two sizes; false when both are constants and the product is none. */
static int size_product(dlc_pool *pool, dlc_expr a, dlc_expr b, dlc_expr *product)
{
    int64_t x, y, xy;
    if (dlc_expr_is_int(pool, a, &x) && dlc_expr_is_int(pool, b, &y) && !dlc_mul_i64(x, y, &xy))
        return 0;
    *product = dlc_sum_mul(pool, a, b);
    return 1;
}

/* --- division with rest --- */

static dlc_term lead_term(dlc_pool *pool, dlc_expr k)
{
    uint32_t base = pool->work.n, n = dlc_sum_push(pool, k, 1);
    dlc_term lead = pool->work.data[base + n - 1]; /* pushed last: the first of the chain */
    pool->work.n = base;
    return lead;
}

static dlc_expr expr_of_term(dlc_pool *pool, dlc_term term)
{
    uint32_t base = pool->work.n;
    dlc_vec_push(pool->arena, &pool->work, term);
    return dlc_sum_pop(pool, base);
}

/* The multiple of k that takes `term` of x away, 0 if none does. */
static dlc_expr multiple_for(dlc_pool *pool, dlc_term term, dlc_term lead)
{
    if (!lead.mono && !term.mono) { /* constants: floor, so that the rest lies in [0, k) */
        int64_t part = dlc_floor_ratio(term.coef, lead.coef);
        return part ? dlc_expr_i64(pool, part) : 0;
    }
    dlc_expr mono;
    if (lead.coef == -1 || term.coef % lead.coef != 0 ||
        !dlc_mono_div(pool, term.mono, lead.mono, &mono))
        return 0;
    return expr_of_term(pool, (dlc_term){term.coef / lead.coef, mono});
}

int dlc_div_split(dlc_pool *pool, dlc_expr x, dlc_expr k, dlc_expr *quotient, dlc_expr *rest)
{
    uint32_t base = pool->work.n, n = dlc_sum_push(pool, x, 1), size_k = dlc_sum_nterms(pool, k);
    dlc_term lead = lead_term(pool, k);
    *quotient = dlc_expr_i64(pool, 0);
    *rest = x;
    for (uint32_t i = 0; i < n; i++) {
        dlc_expr part = multiple_for(pool, pool->work.data[base + i], lead);
        if (!part)
            continue;
        dlc_expr less = dlc_sum_add(pool, *rest, dlc_sum_mul(pool, part, k), -1);
        if (size_k > 1 && dlc_sum_nterms(pool, less) + size_k > dlc_sum_nterms(pool, *rest))
            continue; /* x holds the leading term of part * k but not all of it */
        *quotient = dlc_sum_add(pool, *quotient, part, 1);
        *rest = less;
    }
    pool->work.n = base;
    return dlc_sum_nterms(pool, *quotient) != 0;
}

static int divides(dlc_pool *pool, dlc_expr k, dlc_expr x, dlc_expr *quotient)
{
    dlc_expr rest;
    return dlc_div_split(pool, x, k, quotient, &rest) && dlc_sum_nterms(pool, rest) == 0;
}

/* --- common factors --- */

/* Every term from `base` on divided by the symbol; false, and nothing changed, when one is no
 * multiple. */
static int divide_terms(dlc_pool *pool, uint32_t base, uint32_t end, dlc_expr symbol)
{
    dlc_expr quotient;
    for (uint32_t i = base; i < end; i++)
        if (!dlc_mono_div(pool, pool->work.data[i].mono, symbol, &quotient))
            return 0;
    for (uint32_t i = base; i < end; i++) {
        dlc_mono_div(pool, pool->work.data[i].mono, symbol, &quotient);
        pool->work.data[i].mono = quotient;
    }
    return 1;
}

/* The greatest common factor (a constant times symbols) of the terms in [base, end), which are
 * divided by it. */
static dlc_expr take_common(dlc_pool *pool, uint32_t base, uint32_t end)
{
    uint64_t number = 0;
    for (uint32_t i = base; i < end; i++)
        number = dlc_gcd(number, dlc_magnitude(pool->work.data[i].coef));
    if (number == 0 || number > INT64_MAX)
        number = 1;
    for (uint32_t i = base; i < end; i++)
        pool->work.data[i].coef /= (int64_t)number;
    dlc_expr common = dlc_expr_i64(pool, (int64_t)number);
    uint32_t factors = pool->work.n, nfactors = dlc_mono_push(pool, pool->work.data[base].mono);
    for (uint32_t i = 0; i < nfactors; i++) {
        dlc_expr factor = pool->work.data[factors + i].mono;
        if (dlc_op_of(pool, factor) == DLC_EXPR_SYM && divide_terms(pool, base, end, factor))
            common = dlc_sum_mul(pool, common, factor);
    }
    pool->work.n = factors;
    return common;
}

/* Divides both by their common factor, which is returned; 0 when it is 1. */
static dlc_expr cancel(dlc_pool *pool, dlc_expr *x, dlc_expr *k)
{
    uint32_t base = pool->work.n, nx = dlc_sum_push(pool, *x, 1), nk = dlc_sum_push(pool, *k, 1);
    dlc_expr common = take_common(pool, base, base + nx + nk);
    int64_t value;
    int is_one = dlc_expr_is_int(pool, common, &value) && value == 1;
    if (!is_one) {
        *k = dlc_sum_pop(pool, base + nx);
        *x = dlc_sum_pop(pool, base);
    }
    pool->work.n = base;
    return is_one ? 0 : common;
}

/* --- floordiv and mod --- */

static int are_ints(const dlc_pool *pool, dlc_expr a, dlc_expr b, int64_t *x, int64_t *y)
{
    return dlc_expr_is_int(pool, a, x) && dlc_expr_is_int(pool, b, y);
}

static int is_quotient(const dlc_pool *pool, dlc_expr expr, dlc_expr_op op)
{
    return dlc_op_of(pool, expr) == op && dlc_dtype_of(pool, expr) == DLC_I64 &&
           is_size(pool, dlc_arg(pool, expr, 1));
}

dlc_expr dlc_div_floor(dlc_pool *pool, dlc_expr x, dlc_expr k)
{
    int64_t a, b;
    dlc_expr quotient, rest, product;
    if ((dlc_expr_is_int(pool, k, &b) && b == 0) || (dlc_expr_is_int(pool, x, &a) && a == 0))
        return dlc_expr_i64(pool, 0);
    if (dlc_expr_is_int(pool, k, &b) && b == 1)
        return x;
    if (!is_size(pool, k) || !dlc_is_data_free(pool, x))
        return quotient_node(pool, DLC_EXPR_FLOORDIV, x, k);
    if (dlc_div_split(pool, x, k, &quotient, &rest))
        return dlc_sum_add(pool, quotient, dlc_floordiv(pool, rest, k), 1);
    if (dlc_expr_is_int(pool, x, &a) && a == -1)
        return x;
    if (cancel(pool, &x, &k)) /* (g*x) / (g*k) = x / k */
        return dlc_floordiv(pool, x, k);
    /* (y / a) / k = y / (a*k) */
    if (is_quotient(pool, x, DLC_EXPR_FLOORDIV) &&
        size_product(pool, dlc_arg(pool, x, 1), k, &product))
        return dlc_floordiv(pool, dlc_arg(pool, x, 0), product);
    if (is_quotient(pool, x, DLC_EXPR_MOD)) {
        dlc_expr y = dlc_arg(pool, x, 0), m = dlc_arg(pool, x, 1);
        if (are_ints(pool, m, k, &a, &b) && a <= b)
            return dlc_expr_i64(pool, 0);
        if (divides(pool, k, m, &quotient)) /* (y mod (k*j)) / k = (y / k) mod j */
            return dlc_mod(pool, dlc_floordiv(pool, y, k), quotient);
    }
    return quotient_node(pool, DLC_EXPR_FLOORDIV, x, k);
}

dlc_expr dlc_div_mod(dlc_pool *pool, dlc_expr x, dlc_expr k)
{
    int64_t a, b;
    dlc_expr quotient, rest, common;
    if ((dlc_expr_is_int(pool, k, &b) && (b == 0 || b == 1 || b == -1)) ||
        (dlc_expr_is_int(pool, x, &a) && a == 0))
        return dlc_expr_i64(pool, 0);
    if (!is_size(pool, k) || !dlc_is_data_free(pool, x))
        return quotient_node(pool, DLC_EXPR_MOD, x, k);
    if (dlc_div_split(pool, x, k, &quotient, &rest))
        return dlc_mod(pool, rest, k);
    if (dlc_expr_is_int(pool, x, &a) && a == -1)
        return dlc_addi(pool, k, -1);
    common = cancel(pool, &x, &k);
    if (common) /* (g*x) mod (g*k) = g * (x mod k) */
        return dlc_sum_mul(pool, common, dlc_mod(pool, x, k));
    if (is_quotient(pool, x, DLC_EXPR_MOD)) {
        dlc_expr y = dlc_arg(pool, x, 0), m = dlc_arg(pool, x, 1);
        if ((are_ints(pool, m, k, &a, &b) && a <= b) || divides(pool, m, k, &quotient))
            return x;
        if (divides(pool, k, m, &quotient)) /* (y mod (k*j)) mod k = y mod k */
            return dlc_mod(pool, y, k);
    }
    return quotient_node(pool, DLC_EXPR_MOD, x, k);
}

/* --- recombination --- */

/* Whether every term of `part` stands in the sum on pool->work from `base` on, `except` aside. */
static int holds(dlc_pool *pool, uint32_t base, uint32_t end, uint32_t except, dlc_expr part)
{
    uint32_t first = pool->work.n, n = dlc_sum_push(pool, part, 1);
    int all = 1;
    for (uint32_t i = 0; i < n && all; i++) {
        dlc_term wanted = pool->work.data[first + i];
        uint32_t at = base;
        while (at < end && (at == except || pool->work.data[at].mono != wanted.mono ||
                            pool->work.data[at].coef != wanted.coef))
            at++;
        all = at < end;
    }
    pool->work.n = first;
    return all;
}

/* The sum without term `at` and without `part`, with `instead`. */
static void exchange(dlc_pool *pool, uint32_t end, uint32_t at, dlc_expr part, dlc_expr instead)
{
    pool->work.n = end;
    pool->work.data[at].coef = 0;
    dlc_sum_push(pool, part, -1);
    dlc_sum_push(pool, instead, 1);
}

typedef struct {
    uint32_t base, end; /* the sum */
    uint32_t at;        /* its term scale * mod(x, k) */
    dlc_expr scale, x, k;
    dlc_expr quotient; /* floordiv(x, k) */
} remainder_term;

/* scale*k * mod(floordiv(x, k), j) + scale * mod(x, k) = scale * mod(x, k*j) */
static int recombine_mod(dlc_pool *pool, const remainder_term *r, dlc_expr other)
{
    dlc_expr kj;
    if (!is_quotient(pool, other, DLC_EXPR_MOD) || dlc_arg(pool, other, 0) != r->quotient ||
        !size_product(pool, r->k, dlc_arg(pool, other, 1), &kj))
        return 0;
    dlc_expr part = dlc_sum_mul(pool, dlc_sum_mul(pool, r->scale, r->k), other);
    if (!holds(pool, r->base, r->end, r->at, part))
        return 0;
    exchange(pool, r->end, r->at, part, dlc_sum_mul(pool, r->scale, dlc_mod(pool, r->x, kj)));
    return 1;
}

/* scale*k * floordiv(x, k) + scale * mod(x, k) = scale * x */
static int recombine_floor(dlc_pool *pool, const remainder_term *r)
{
    if (dlc_op_of(pool, r->quotient) == DLC_EXPR_CONST)
        return 0;
    dlc_expr part = dlc_sum_mul(pool, dlc_sum_mul(pool, r->scale, r->k), r->quotient);
    if (!holds(pool, r->base, r->end, r->at, part))
        return 0;
    exchange(pool, r->end, r->at, part, dlc_sum_mul(pool, r->scale, r->x));
    return 1;
}

/* Looks in every other term for a mod that continues this one. */
static int recombine_factors(dlc_pool *pool, const remainder_term *r)
{
    for (uint32_t i = r->base; i < r->end; i++) {
        if (i == r->at)
            continue;
        uint32_t first = pool->work.n, n = dlc_mono_push(pool, pool->work.data[i].mono);
        for (uint32_t f = 0; f < n; f++)
            if (recombine_mod(pool, r, pool->work.data[first + f].mono))
                return 1;
        pool->work.n = first;
    }
    return 0;
}

static int recombine_at(dlc_pool *pool, uint32_t base, uint32_t end, uint32_t at,
                        dlc_expr remainder)
{
    dlc_term term = pool->work.data[at];
    dlc_expr others;
    if (!is_quotient(pool, remainder, DLC_EXPR_MOD) ||
        !dlc_mono_div(pool, term.mono, remainder, &others))
        return 0;
    remainder_term r = {.base = base,
                        .end = end,
                        .at = at,
                        .x = dlc_arg(pool, remainder, 0),
                        .k = dlc_arg(pool, remainder, 1)};
    r.scale = expr_of_term(pool, (dlc_term){term.coef, others});
    r.quotient = dlc_floordiv(pool, r.x, r.k);
    return recombine_floor(pool, &r) || recombine_factors(pool, &r);
}

int dlc_div_recombine(dlc_pool *pool, uint32_t base)
{
    uint32_t end = pool->work.n;
    if (end - base < 2)
        return 0;
    for (uint32_t at = base; at < end; at++) {
        uint32_t n = dlc_mono_push(pool, pool->work.data[at].mono);
        for (uint32_t f = 0; f < n; f++)
            if (recombine_at(pool, base, end, at, pool->work.data[end + f].mono))
                return 1;
        pool->work.n = end;
    }
    return 0;
}

/*
 * Sums of i64: a polynomial over atoms (axes, symbols, loads, quotients, …), modulo 2^64 like the
 * arithmetic itself. One form for each: terms in structural order, then the constant, as a chain of
 * ADD; a term is MUL(monomial, coefficient), a monomial a chain of MUL over factors in structural
 * order. The builders work on pool->work, a stack of terms.
 */
#include "ir/expr/build.h"

#include <string.h>

/*
 * Beyond this many terms a product of two sums is not multiplied out: the sums become factors.
 * Beyond this many factors monomials are not merged: squaring a value again and again doubles them
 * each time.
 */
enum { MAX_PRODUCT_TERMS = 64, MAX_FACTORS = 32 };

static int is_i64(const dlc_pool *pool, dlc_expr expr, dlc_expr_op op)
{
    return dlc_op_of(pool, expr) == op && dlc_dtype_of(pool, expr) == DLC_I64;
}

static void push(dlc_pool *pool, int64_t coef, dlc_expr mono)
{
    dlc_vec_push(pool->arena, &pool->work, ((dlc_term){coef, mono}));
}

static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static void push_part(dlc_pool *pool, dlc_expr part, int64_t scale)
{
    int64_t value;
    if (dlc_expr_is_int(pool, part, &value))
        push(pool, times(scale, value), 0);
    else if (is_i64(pool, part, DLC_EXPR_MUL) &&
             dlc_expr_is_int(pool, dlc_arg(pool, part, 1), &value))
        push(pool, times(scale, value), dlc_arg(pool, part, 0));
    else
        push(pool, scale, part);
}

uint32_t dlc_sum_push(dlc_pool *pool, dlc_expr expr, int64_t scale)
{
    uint32_t n = 1;
    for (; is_i64(pool, expr, DLC_EXPR_ADD); expr = dlc_arg(pool, expr, 0), n++)
        push_part(pool, dlc_arg(pool, expr, 1), scale);
    push_part(pool, expr, scale);
    return n;
}

uint32_t dlc_sum_nterms(const dlc_pool *pool, dlc_expr expr)
{
    int64_t value;
    if (dlc_expr_is_int(pool, expr, &value) && value == 0)
        return 0;
    uint32_t n = 1;
    for (; is_i64(pool, expr, DLC_EXPR_ADD); expr = dlc_arg(pool, expr, 0))
        n++;
    return n;
}

/* The constant (monomial 0) stands last. */
static int is_before(const dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    return a && (!b || dlc_expr_order(pool, a, b) < 0);
}

static void sort_run(const dlc_pool *pool, dlc_term *terms, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        dlc_term term = terms[i];
        uint32_t at = i;
        for (; at && is_before(pool, term.mono, terms[at - 1].mono); at--)
            terms[at] = terms[at - 1];
        terms[at] = term;
    }
}

/* Two sorted runs, which stand one behind the other; `spare` holds the first meanwhile. */
static void merge_runs(const dlc_pool *pool, dlc_term *terms, uint32_t first, uint32_t n, dlc_term *spare)
{
    memcpy(spare, terms, first * sizeof *terms);
    for (uint32_t a = 0, b = first, at = 0; a < first; at++)
        terms[at] = b < n && is_before(pool, terms[b].mono, spare[a].mono) ? terms[b++] : spare[a++];
}

static void sort_work(dlc_pool *pool, uint32_t base)
{
    enum { RUN = 16 };
    dlc_term *terms = pool->work.data + base;
    uint32_t n = pool->work.n - base;
    for (uint32_t at = 0; at < n; at += RUN)
        sort_run(pool, terms + at, n - at < RUN ? n - at : RUN);
    if (n <= RUN)
        return;
    dlc_mark mark = dlc_arena_mark(pool->arena);
    dlc_term *spare = dlc_new_array(pool->arena, dlc_term, n);
    for (uint32_t run = RUN; run < n; run *= 2)
        for (uint32_t at = 0; at + run < n; at += 2 * run)
            merge_runs(pool, terms + at, run, n - at < 2 * run ? n - at : 2 * run, spare);
    dlc_arena_release(pool->arena, mark);
}

/* Sorts, adds up equal monomials, drops zeros. */
static void normalise(dlc_pool *pool, uint32_t base)
{
    sort_work(pool, base);
    dlc_term *terms = pool->work.data;
    uint32_t n = base;
    for (uint32_t i = base; i < pool->work.n;) {
        dlc_term total = terms[i++];
        for (; i < pool->work.n && terms[i].mono == total.mono; i++)
            total.coef = (int64_t)((uint64_t)total.coef + (uint64_t)terms[i].coef);
        if (total.coef)
            terms[n++] = total;
    }
    pool->work.n = n;
}

static dlc_expr term_expr(dlc_pool *pool, dlc_term term)
{
    if (!term.mono)
        return dlc_expr_i64(pool, term.coef);
    if (term.coef == 1)
        return term.mono;
    return dlc_pool_op2(pool, DLC_EXPR_MUL, DLC_I64, term.mono, dlc_expr_i64(pool, term.coef));
}

dlc_expr dlc_sum_pop(dlc_pool *pool, uint32_t base)
{
    normalise(pool, base);
    while (dlc_div_recombine(pool, base))
        normalise(pool, base);
    dlc_expr sum = 0;
    for (uint32_t i = base; i < pool->work.n; i++) {
        dlc_expr term = term_expr(pool, pool->work.data[i]);
        sum = sum ? dlc_pool_op2(pool, DLC_EXPR_ADD, DLC_I64, sum, term) : term;
    }
    pool->work.n = base;
    return sum ? sum : dlc_expr_i64(pool, 0);
}

static dlc_term pop_part(dlc_pool *pool, dlc_expr part, int64_t scale)
{
    push_part(pool, part, scale);
    return pool->work.data[--pool->work.n];
}

/* Whether b is one term that stands behind all of a: sums are put together that way when they are rewritten. Without a remainder
 * nothing recombines. */
static int is_behind(dlc_pool *pool, dlc_expr a, dlc_expr b, int64_t scale_b, dlc_term *last)
{
    if (is_i64(pool, b, DLC_EXPR_ADD) || pool->facts.data[a].has_mod || pool->facts.data[b].has_mod)
        return 0;
    dlc_term first = pop_part(pool, is_i64(pool, a, DLC_EXPR_ADD) ? dlc_arg(pool, a, 1) : a, 1);
    *last = pop_part(pool, b, scale_b);
    return last->coef && is_before(pool, first.mono, last->mono);
}

dlc_expr dlc_sum_add(dlc_pool *pool, dlc_expr a, dlc_expr b, int64_t scale_b)
{
    dlc_term last;
    if (is_behind(pool, a, b, scale_b, &last))
        return dlc_pool_op2(pool, DLC_EXPR_ADD, DLC_I64, a, term_expr(pool, last));
    uint32_t base = pool->work.n;
    dlc_sum_push(pool, a, 1);
    dlc_sum_push(pool, b, scale_b);
    return dlc_sum_pop(pool, base);
}

/* --- monomials --- */

/* The factors of a monomial as terms of pool->work. */
static uint32_t push_factors(dlc_pool *pool, dlc_expr mono)
{
    uint32_t n = 0;
    for (; mono; n++) {
        int is_product = is_i64(pool, mono, DLC_EXPR_MUL);
        push(pool, 1, is_product ? dlc_arg(pool, mono, 1) : mono);
        mono = is_product ? dlc_arg(pool, mono, 0) : 0;
    }
    return n;
}

static dlc_expr pop_factors(dlc_pool *pool, uint32_t base)
{
    sort_work(pool, base);
    dlc_expr mono = 0;
    for (uint32_t i = base; i < pool->work.n; i++) {
        dlc_expr factor = pool->work.data[i].mono;
        mono = mono ? dlc_pool_op2(pool, DLC_EXPR_MUL, DLC_I64, mono, factor) : factor;
    }
    pool->work.n = base;
    return mono;
}

dlc_expr dlc_mono_mul(dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    uint32_t base = pool->work.n;
    push_factors(pool, a);
    push_factors(pool, b);
    if (pool->work.n - base <= MAX_FACTORS || !a || !b)
        return pop_factors(pool, base);
    pool->work.n = base;
    int is_sorted = dlc_expr_order(pool, a, b) <= 0;
    return dlc_pool_op2(pool, DLC_EXPR_MUL, DLC_I64, is_sorted ? a : b, is_sorted ? b : a);
}

uint32_t dlc_mono_push(dlc_pool *pool, dlc_expr mono)
{
    return push_factors(pool, mono);
}

int dlc_mono_div(dlc_pool *pool, dlc_expr mono, dlc_expr by, dlc_expr *quotient)
{
    uint32_t base = pool->work.n;
    push_factors(pool, mono);
    uint32_t end = pool->work.n;
    uint32_t nby = push_factors(pool, by);
    for (uint32_t i = 0; i < nby; i++) {
        dlc_expr factor = pool->work.data[end + i].mono;
        uint32_t at = base;
        while (at < end && pool->work.data[at].mono != factor)
            at++;
        if (at == end) {
            pool->work.n = base;
            return 0;
        }
        pool->work.data[at].mono = 0; /* taken */
    }
    uint32_t n = base;
    for (uint32_t i = base; i < end; i++)
        if (pool->work.data[i].mono)
            pool->work.data[n++] = pool->work.data[i];
    pool->work.n = n;
    *quotient = pop_factors(pool, base);
    return 1;
}

/* --- products --- */

/* Multiplying out keeps indices linear; sums of loaded data would only be computed twice. */
static int is_multiplied_out(const dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    uint32_t na = dlc_sum_nterms(pool, a), nb = dlc_sum_nterms(pool, b);
    if (na <= 1 && nb <= 1)
        return 1;
    return (dlc_is_data_free(pool, a) || dlc_is_data_free(pool, b)) &&
           (uint64_t)na * nb <= MAX_PRODUCT_TERMS;
}

static uint32_t push_factor_sum(dlc_pool *pool, dlc_expr expr, int is_open)
{
    if (is_open || dlc_sum_nterms(pool, expr) <= 1)
        return dlc_sum_push(pool, expr, 1);
    push(pool, 1, expr);
    return 1;
}

dlc_expr dlc_sum_mul(dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    uint32_t base = pool->work.n;
    int64_t scale;
    if (dlc_expr_is_int(pool, a, &scale) || dlc_expr_is_int(pool, b, &scale)) {
        dlc_sum_push(pool, dlc_op_of(pool, a) == DLC_EXPR_CONST ? b : a, scale);
        return dlc_sum_pop(pool, base);
    }
    int is_open = is_multiplied_out(pool, a, b);
    uint32_t na = push_factor_sum(pool, a, is_open);
    uint32_t nb = push_factor_sum(pool, b, is_open);
    uint32_t products = pool->work.n;
    for (uint32_t i = 0; i < na; i++)
        for (uint32_t j = 0; j < nb; j++) {
            dlc_term x = pool->work.data[base + i], y = pool->work.data[base + na + j];
            dlc_expr mono = dlc_mono_mul(pool, x.mono, y.mono);
            push(pool, times(x.coef, y.coef), mono);
        }
    for (uint32_t i = products; i < pool->work.n; i++)
        pool->work.data[base + i - products] = pool->work.data[i];
    pool->work.n -= products - base;
    return dlc_sum_pop(pool, base);
}

int dlc_expr_linear(dlc_pool *pool, dlc_expr expr, uint32_t axis, dlc_expr *coefficient,
                    dlc_expr *rest)
{
    dlc_expr leaf = dlc_expr_axis(pool, axis);
    uint32_t base = pool->work.n, n = dlc_sum_push(pool, expr, 1), nrest = 0;
    *coefficient = *rest = dlc_expr_i64(pool, 0);
    int is_linear = 1;
    for (uint32_t i = 0; i < n && is_linear; i++) {
        dlc_term term = pool->work.data[base + i];
        dlc_expr others;
        if (!term.mono || !dlc_expr_uses_axis(pool, term.mono, axis)) {
            pool->work.data[base + nrest++] = term; /* added up at once: a sum is made anew whenever something joins it in front */
            continue;
        }
        is_linear = dlc_mono_div(pool, term.mono, leaf, &others) &&
                    (!others || !dlc_expr_uses_axis(pool, others, axis));
        if (is_linear)
            *coefficient =
                dlc_sum_add(pool, *coefficient, term_expr(pool, (dlc_term){term.coef, others}), 1);
    }
    pool->work.n = base + nrest;
    if (is_linear)
        *rest = dlc_sum_pop(pool, base);
    pool->work.n = base;
    return is_linear;
}

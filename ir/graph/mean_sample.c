/*
 * Sampling. The one idea: along each dimension a sample is a sum of neighbours with weights that
 * depend on the distance only, and the dimensions multiply; so a sample in r dimensions is a sum
 * over the product of their taps.
 */
#include "ir/graph/mean_sample.h"

enum { WRITTEN_OUT = 64 }; /* most taps of all dimensions together that are written out */

/* Mirrored at 0 and n - 1 (centres of the outer elements), or at -1/2 and n - 1/2 (their outer
 * edges). */
static dlc_expr mirrored(dlc_pool *pool, dlc_expr i, dlc_expr n, int at_centers)
{
    dlc_expr turn = at_centers ? dlc_muli(pool, dlc_addi(pool, n, -1), 2)
                               : dlc_addi(pool, dlc_muli(pool, n, 2), -1);
    dlc_expr period =
        at_centers ? dlc_max(pool, dlc_expr_i64(pool, 1), turn) : dlc_muli(pool, n, 2);
    dlc_expr phase = dlc_mod(pool, i, period);
    return dlc_min(pool, phase, dlc_sub(pool, turn, phase));
}

dlc_expr dlc_taps_index(dlc_mean *mean, const dlc_taps *taps, dlc_expr k, dlc_expr *guard)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr i = dlc_add(pool, taps->first, k);
    if (taps->edge == DLC_EDGE_ZERO) {
        *guard = dlc_and(pool, *guard, dlc_in_range(pool, i, taps->extent));
        return i;
    }
    if (taps->edge != DLC_EDGE_CLAMP)
        i = mirrored(pool, i, taps->extent, taps->edge == DLC_EDGE_MIRROR_CENTERS);
    return dlc_max(pool, dlc_expr_i64(pool, 0), dlc_min(pool, dlc_addi(pool, taps->extent, -1), i));
}

/* --- weights --- */

static dlc_expr number(dlc_pool *pool, dlc_expr like, double value)
{
    return dlc_expr_const(pool, (dlc_dtype)dlc_node_of(pool, like)->dtype, value);
}

static dlc_expr horner(dlc_pool *pool, dlc_expr t, const double *coefficients, int n)
{
    dlc_expr sum = number(pool, t, coefficients[0]);
    for (int i = 1; i < n; i++)
        sum = dlc_add(pool, dlc_mul(pool, sum, t), number(pool, t, coefficients[i]));
    return sum;
}

/* Keys' cubic convolution: one cubic up to distance 1, another up to 2, then 0. */
static dlc_expr cubic_weight(dlc_pool *pool, const dlc_taps *taps, dlc_expr t)
{
    double a = taps->cubic_a;
    double inner[] = {a + 2, -(a + 3), 0, 1}, outer[] = {a, -5 * a, 8 * a, -4 * a};
    dlc_expr far = dlc_select(pool, dlc_lt(pool, t, number(pool, t, 2)), horner(pool, t, outer, 4),
                              number(pool, t, 0));
    return dlc_select(pool, dlc_le(pool, t, number(pool, t, 1)), horner(pool, t, inner, 4), far);
}

static dlc_expr raw_weight(dlc_mean *mean, const dlc_taps *taps, dlc_expr k)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_dtype dtype = (dlc_dtype)dlc_node_of(pool, taps->distance)->dtype;
    dlc_expr away =
        dlc_expr1(pool, DLC_EXPR_ABS, dlc_sub(pool, dlc_expr_cast(pool, dtype, k), taps->distance));
    dlc_expr t = taps->stretch ? dlc_mul(pool, away, taps->stretch) : away, weight;
    if (taps->is_cubic)
        weight = cubic_weight(pool, taps, t);
    else
        weight = dlc_max(pool, number(pool, t, 0), dlc_sub(pool, number(pool, t, 1), t));
    if (!taps->drops_outside)
        return weight;
    dlc_expr is_inside = dlc_in_range(pool, dlc_add(pool, taps->first, k), taps->extent);
    return dlc_select(pool, is_inside, weight, number(pool, t, 0));
}

dlc_expr dlc_taps_weight(dlc_mean *mean, const dlc_taps *taps, dlc_expr k)
{
    dlc_expr weight = raw_weight(mean, taps, k);
    return taps->total ? dlc_expr2(mean->kernel->pool, DLC_EXPR_DIV, weight, taps->total) : weight;
}

/* An axis over the taps. */
static dlc_expr taps_axis(dlc_mean *mean, const dlc_taps *taps, uint8_t d, dlc_ids *reduce)
{
    char name[] = {'k', (char)('0' + d), 0};
    dlc_expr count = taps->count ? taps->count : dlc_expr_i64(mean->kernel->pool, taps->ntaps);
    return dlc_mean_axis(mean, name, count, reduce);
}

void dlc_taps_normalise(dlc_mean *mean, dlc_taps *taps, dlc_expr o)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr total = 0;
    if (taps->count) {
        dlc_ids axes = {0}, reduce = {0};
        dlc_vec_push(mean->kernel->arena, &axes, dlc_node_of(pool, o)->imm.id);
        dlc_expr weight = raw_weight(mean, taps, taps_axis(mean, taps, 9, &reduce));
        uint32_t sum = dlc_mean_reduce(mean, "total", &axes, &reduce, DLC_REDUCE_SUM, weight, 0);
        taps->total = dlc_mean_stage(mean, sum, &o);
        return;
    }
    for (int64_t k = 0; k < taps->ntaps; k++) {
        dlc_expr weight = raw_weight(mean, taps, dlc_expr_i64(pool, k));
        total = total ? dlc_add(pool, total, weight) : weight;
    }
    taps->total = total;
}

/* --- the sum --- */

static dlc_expr weighted_element(dlc_mean *mean, const dlc_taps *taps, uint8_t rank,
                                 dlc_dtype dtype, const dlc_expr *k)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr at[DLC_MAX_RANK] = {0}, guard = 0, weight = 0;
    for (uint8_t d = 0; d < rank; d++) {
        at[d] = taps[d].ntaps ? dlc_taps_index(mean, &taps[d], k[d], &guard) : taps[d].first;
        if (dlc_expr_has_load(pool, at[d])) /* whatever the data, nothing outside is touched */
            guard = dlc_and(pool, guard, dlc_in_range(pool, at[d], taps[d].extent));
        if (taps[d].ntaps < 2)
            continue;
        dlc_expr factor = dlc_taps_weight(mean, &taps[d], k[d]);
        weight = weight ? dlc_mul(pool, weight, factor) : factor;
    }
    dlc_expr element = dlc_expr_cast(pool, dtype, dlc_mean_load_if(mean, 0, at, guard, 0));
    return weight ? dlc_mul(pool, weight, element) : element;
}

/* Counts through all combinations of taps, the last dimension fastest. False after the last one. */
static int next_combination(const dlc_taps *taps, uint8_t rank, int64_t *k)
{
    for (uint8_t d = rank; d-- > 0;) {
        if (++k[d] < taps[d].ntaps)
            return 1;
        k[d] = 0;
    }
    return 0;
}

static dlc_expr written_out(dlc_mean *mean, const dlc_taps *taps, uint8_t rank, dlc_dtype dtype)
{
    int64_t count[DLC_MAX_RANK] = {0};
    dlc_expr sum = 0, k[DLC_MAX_RANK];
    do {
        for (uint8_t d = 0; d < rank; d++)
            k[d] = dlc_expr_i64(mean->kernel->pool, count[d]);
        dlc_expr term = weighted_element(mean, taps, rank, dtype, k);
        sum = sum ? dlc_add(mean->kernel->pool, sum, term) : term;
    } while (next_combination(taps, rank, count));
    return sum;
}

dlc_expr dlc_taps_sample(dlc_mean *mean, const dlc_taps *taps, uint8_t rank, dlc_dtype dtype,
                         dlc_ids *reduce)
{
    int64_t ntaps = 1;
    dlc_expr k[DLC_MAX_RANK], zero = dlc_expr_i64(mean->kernel->pool, 0);
    for (uint8_t d = 0; d < rank && ntaps <= WRITTEN_OUT; d++)
        ntaps *= taps[d].count ? WRITTEN_OUT + 1 : taps[d].ntaps ? taps[d].ntaps : 1;
    if (ntaps <= WRITTEN_OUT)
        return written_out(mean, taps, rank, dtype);
    for (uint8_t d = 0; d < rank; d++)
        k[d] = taps[d].ntaps < 2 ? zero : taps_axis(mean, &taps[d], d, reduce);
    return weighted_element(mean, taps, rank, dtype, k);
}

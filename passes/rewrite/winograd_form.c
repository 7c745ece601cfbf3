/*
 * Transforms of Winograd's tiles, one direction of them.
 *
 * The points that the polynomials are taken at are 0, infinity and pairs of ±f. 5/8 and 3/2 make errors a third of those of the
 * usual 1 and 2, and all of their products are exact in f32. Sums over pairs share their even and odd parts.
 *
 * Of windows two apart, even elements meet the outer taps of both results, which are a filter of two taps at neighbours: its two results take
 * three products (points 0, -1 and infinity). Odd elements meet the middle tap of one result each.
 *
 *     y0 = (d0 - d2) g0 + d2 (g0 + g2) + d1 g1        y1 = d2 (g0 + g2) - (d2 - d4) g2 + d3 g1
 *
 * Whole numbers have points 1 and 2, and no rounding. Rows of G are multiplied by 24, but for the last one, which is one tap: 24² of that is more
 * than 16 bits hold, so its point of the results is multiplied by 4 of it; of weights beyond 227, so are those of the first pair, whose rows add
 * up to 12 taps. So results are 24² = 9 * 2^6 times as large. Sums and products
 * modulo 2^32 are right whatever overflows; there 9 has an inverse, and what is left of the result are 26 bits.
 */
#include "passes/rewrite/winograd_form.h"

#include "ir/expr/build.h"

#include <math.h>

enum { MOST_PAIRS = DLC_WINOGRAD_PAIRS };

const dlc_winograd_form dlc_winograd_forms[DLC_WINOGRAD_FORMS] = {
    {1, 1, 1, 1, 0, {0}, 1, 0, {1, 1}, 1},
    {2, 3, 1, 4, 1, {1}, 2, 0, {1, 1}, 1.21},
    {4, 3, 1, 6, 2, {0.625, 1.5}, 0, 0, {1, 1}, 1.89},
    {3, 4, 1, 6, 2, {0.625, 1.5}, 0, 0, {1, 1}, 1.88},
    {2, 3, 2, 5, 0, {0}, 0, 0, {1, 1}, 1.21},
    {4, 3, 1, 6, 2, {1, 2}, 24, 1, {1, 4}, 1},
    {4, 3, 1, 6, 2, {1, 2}, 24, 1, {4, 4}, 1},
};

static int is_plain(uint32_t form)
{
    return form == DLC_WINOGRAD_PLAIN;
}

static int is_strided(uint32_t form)
{
    return dlc_winograd_forms[form].stride == 2;
}

/* y + k * x */
static dlc_expr plus(dlc_pool *pool, dlc_expr y, double k, dlc_expr x)
{
    dlc_dtype dtype = (dlc_dtype)dlc_node_of(pool, x)->dtype;
    if (k == 1)
        return y ? dlc_add(pool, y, x) : x;
    if (k == -1 && y)
        return dlc_sub(pool, y, x);
    if (dlc_is_float(dtype)) {
        dlc_expr by = dlc_expr_const(pool, dtype, k);
        return y ? dlc_expr3(pool, DLC_EXPR_MULADD, by, x, y) : dlc_mul(pool, by, x);
    }
    x = dlc_mul(pool, x, dlc_expr_const_i(pool, dtype, (int64_t)k));
    return y ? dlc_add(pool, y, x) : x;
}

/* Coefficients of the product of X - f² over the form's pairs but `without`; returns how many. */
static uint32_t polynomial(uint32_t form, uint32_t without, double *of)
{
    uint32_t n = 1;
    of[0] = 1;
    for (uint32_t j = 0; j < dlc_winograd_forms[form].npairs; j++) {
        double root = dlc_winograd_forms[form].pair[j] * dlc_winograd_forms[form].pair[j];
        if (j == without)
            continue;
        of[n] = 0;
        for (uint32_t i = n++; i > 0; i--)
            of[i] = of[i - 1] - root * of[i];
        of[0] *= -root;
    }
    return n;
}

/* What a row of G is divided by: of pair j, or of 0 where there is no such. */
static double divisor(uint32_t form, uint32_t j)
{
    const dlc_winograd_form *f = &dlc_winograd_forms[form];
    double by = j < f->npairs ? 2 * f->pair[j] * f->pair[j] : 1;
    for (uint32_t k = 0; k < f->npairs; k++)
        by *= j == f->npairs ? -f->pair[k] * f->pair[k] : k == j ? 1 : f->pair[j] * f->pair[j] - f->pair[k] * f->pair[k];
    return by;
}

/* sum(i) of[i] * d[first + 2 i]; the last coefficient is 1 */
static dlc_expr every_second(dlc_pool *pool, const double *of, uint32_t n, const dlc_expr *d, uint32_t first)
{
    dlc_expr sum = d[first + 2 * (n - 1)];
    for (uint32_t i = n - 1; i-- > 0;)
        sum = plus(pool, sum, of[i], d[first + 2 * i]);
    return sum;
}

void dlc_winograd_input(dlc_pool *pool, uint32_t form, const dlc_expr *d, dlc_expr *points)
{
    double of[MOST_PAIRS + 1];
    uint32_t n = polynomial(form, MOST_PAIRS, of), npairs = dlc_winograd_forms[form].npairs;
    if (is_plain(form)) {
        points[0] = d[0];
        return;
    }
    if (is_strided(form)) {
        points[0] = dlc_sub(pool, d[0], d[2]);
        points[1] = d[2];
        points[2] = dlc_sub(pool, d[2], d[4]);
        points[3] = d[1];
        points[4] = d[3];
        return;
    }
    points[0] = every_second(pool, of, n, d, 0);
    points[2 * npairs + 1] = every_second(pool, of, n, d, 1);
    for (uint32_t j = 0; j < npairs; j++) {
        n = polynomial(form, j, of);
        dlc_expr even = every_second(pool, of, n, d, 2), odd = every_second(pool, of, n, d, 1);
        points[1 + 2 * j] = plus(pool, even, dlc_winograd_forms[form].pair[j], odd);
        points[2 + 2 * j] = plus(pool, even, -dlc_winograd_forms[form].pair[j], odd);
    }
}

void dlc_winograd_output(dlc_pool *pool, uint32_t form, const dlc_expr *z, dlc_expr *results)
{
    uint32_t npairs = dlc_winograd_forms[form].npairs;
    double power[MOST_PAIRS];
    if (is_plain(form)) {
        results[0] = z[0];
        return;
    }
    if (is_strided(form)) {
        results[0] = dlc_add(pool, dlc_add(pool, z[0], z[1]), z[3]);
        results[1] = dlc_add(pool, dlc_sub(pool, z[1], z[2]), z[4]);
        return;
    }
    for (int64_t i = 0; i < dlc_winograd_forms[form].m; i++) {
        dlc_expr sum = 0;
        if (i == 0)
            sum = z[0];
        else if (i == dlc_winograd_forms[form].m - 1)
            sum = plus(pool, 0, (double)dlc_winograd_forms[form].left[1], z[2 * npairs + 1]);
        for (uint32_t j = 0; j < npairs; j++) {
            power[j] = i ? power[j] * dlc_winograd_forms[form].pair[j] : j ? 1 : (double)dlc_winograd_forms[form].left[0];
            sum = plus(pool, sum, power[j], plus(pool, z[1 + 2 * j], i % 2 ? -1 : 1, z[2 + 2 * j]));
        }
        results[i] = sum;
    }
}

void dlc_winograd_filter(uint32_t form, double times, double (*g)[DLC_WINOGRAD_TAPS])
{
    static const double strided[][DLC_WINOGRAD_TAPS] = {{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}, {0, 1, 0}};
    uint32_t npairs = dlc_winograd_forms[form].npairs;
    int64_t taps = dlc_winograd_forms[form].taps;
    for (int64_t i = 0; i < dlc_winograd_forms[form].npoints * DLC_WINOGRAD_TAPS; i++)
        g[i / DLC_WINOGRAD_TAPS][i % DLC_WINOGRAD_TAPS] = is_strided(form) ? times * strided[i / DLC_WINOGRAD_TAPS][i % DLC_WINOGRAD_TAPS] : 0;
    if (is_strided(form))
        return;
    for (uint32_t j = 0; j < npairs; j++) {
        double f = dlc_winograd_forms[form].pair[j], power[2] = {1, 1};
        double by = divisor(form, j) * (j ? 1 : (double)dlc_winograd_forms[form].left[0]);
        for (int64_t k = 0; k < taps; k++, power[0] *= f, power[1] *= -f)
            for (uint32_t i = 0; i < 2; i++)
                g[1 + 2 * j + i][k] = times * power[i] / by;
    }
    g[0][0] = times / divisor(form, npairs);
    if (!is_plain(form))
        g[2 * npairs + 1][taps - 1] = times / (double)dlc_winograd_forms[form].left[1];
}

double dlc_winograd_growth(uint32_t form, double times)
{
    double g[DLC_WINOGRAD_POINTS][DLC_WINOGRAD_TAPS], most = 0;
    dlc_winograd_filter(form, times, g);
    for (int64_t p = 0; p < dlc_winograd_forms[form].npoints; p++) {
        double sum = 0;
        for (uint32_t k = 0; k < DLC_WINOGRAD_TAPS; k++)
            sum += fabs(g[p][k]);
        most = fmax(most, sum);
    }
    return most;
}

dlc_expr dlc_winograd_weigh(dlc_pool *pool, const double *by, const dlc_expr *of)
{
    dlc_expr sum = 0;
    for (uint32_t i = 0; i < DLC_WINOGRAD_TAPS; i++)
        if (by[i] != 0)
            sum = plus(pool, sum, by[i], of[i]);
    return sum;
}

uint32_t dlc_winograd_bits(int64_t times)
{
    return (uint32_t)__builtin_ctzll((uint64_t)times);
}

dlc_expr dlc_winograd_divided(dlc_pool *pool, int64_t times, dlc_expr z)
{
    uint32_t bits = dlc_winograd_bits(times), odd = (uint32_t)(times >> bits), inverse = odd;
    for (int i = 0; i < 4; i++) /* Newton: each step has twice as many right bits, of which an odd number has three */
        inverse *= 2 - odd * inverse;
    z = inverse == 1 ? z : dlc_mul(pool, z, dlc_expr_const_i(pool, DLC_I32, (int32_t)inverse));
    return bits ? dlc_expr2(pool, DLC_EXPR_SHR, z, dlc_expr_const_i(pool, DLC_I32, bits)) : z;
}

/*
 * A range is [s * least, s * most] for some s of at most 1: codes that span less are finer, and cut
 * off what lies outside. mse takes the s whose squared error is least, entropy the one whose
 * coded distribution tells least from the one that was seen (Kullback and Leibler), percentile the
 * one that keeps 99.99 % of all numbers.
 */
#include "cli/ranges.h"

#include <math.h>
#include <string.h>

enum { CODES = 256, LEAST_PERCENT = 10 };
static const double kept_share = 0.9999;

const char *const dlc_range_methods[DLC_RANGE_COUNT] = {"mse", "minmax", "percentile", "entropy"};

void dlc_seen_bounds(dlc_seen *seen, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        seen->least = values[i] < seen->least ? values[i] : seen->least;
        seen->most = values[i] > seen->most ? values[i] : seen->most;
    }
}

static double width_of(const dlc_seen *seen)
{
    return (seen->most - seen->least) / DLC_RANGE_BINS;
}

void dlc_seen_count(dlc_seen *seen, const float *values, size_t n)
{
    double width = width_of(seen);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        int bin = width > 0 ? (int)((values[i] - seen->least) / width) : 0;
        seen->bins[bin < 0 ? 0 : bin < DLC_RANGE_BINS ? bin : DLC_RANGE_BINS - 1]++;
        seen->n++;
    }
}

static double middle_of(const dlc_seen *seen, int bin)
{
    return seen->least + (bin + 0.5) * width_of(seen);
}

double dlc_seen_noise(const dlc_seen *seen, double lo, double hi, double *cut)
{
    double step = (hi - lo) / (CODES - 1), noise = 0, signal = 0;
    *cut = 0;
    for (int i = 0; i < DLC_RANGE_BINS; i++) {
        double x = middle_of(seen, i), over = x < lo ? lo - x : x > hi ? x - hi : 0;
        noise += seen->bins[i] * (over > 0 ? over * over : step * step / 12);
        signal += seen->bins[i] * x * x;
        *cut += over > 0 ? seen->bins[i] : 0;
    }
    *cut /= seen->n ? (double)seen->n : 1;
    return signal > 0 ? noise / signal : 0;
}

/* Divergence of the coded distribution from the one seen, what is cut off standing at the ends. */
static double divergence(const dlc_seen *seen, double lo, double hi)
{
    double codes[CODES] = {0}, sum = 0;
    int filled[CODES] = {0}, ends[2] = {DLC_RANGE_BINS, -1};
    double clipped[DLC_RANGE_BINS] = {0};
    for (int i = 0; i < DLC_RANGE_BINS; i++)
        if (middle_of(seen, i) >= lo && middle_of(seen, i) <= hi) {
            ends[0] = i < ends[0] ? i : ends[0];
            ends[1] = i;
        }
    for (int i = 0; i < DLC_RANGE_BINS && ends[1] >= 0; i++)
        clipped[i < ends[0] ? ends[0] : i > ends[1] ? ends[1] : i] += seen->bins[i];
    for (int i = ends[0]; i <= ends[1]; i++) {
        int code = (int)((middle_of(seen, i) - lo) / (hi - lo) * (CODES - 1) + 0.5);
        codes[code] += seen->bins[i];
        filled[code] += clipped[i] > 0;
    }
    for (int i = ends[0]; i <= ends[1]; i++) {
        int code = (int)((middle_of(seen, i) - lo) / (hi - lo) * (CODES - 1) + 0.5);
        double coded = filled[code] ? codes[code] / filled[code] : 0;
        if (clipped[i] > 0)
            sum += clipped[i] * log(clipped[i] / (coded > 1e-3 ? coded : 1e-3));
    }
    return ends[1] >= ends[0] ? sum : INFINITY;
}

static double cost_of(const dlc_seen *seen, dlc_range_method method, double lo, double hi)
{
    double cut, noise = dlc_seen_noise(seen, lo, hi, &cut);
    switch (method) {
    case DLC_RANGE_MSE:
        return noise;
    case DLC_RANGE_ENTROPY:
        return divergence(seen, lo, hi);
    case DLC_RANGE_PERCENTILE: /* the least that keeps enough */
        return cut > 1 - kept_share ? INFINITY : hi - lo;
    default:
        return -(hi - lo);
    }
}

void dlc_seen_range(const dlc_seen *seen, dlc_range_method method, double *lo, double *hi)
{
    double best = INFINITY;
    *lo = seen->least;
    *hi = seen->most;
    if (method == DLC_RANGE_MINMAX || seen->most <= seen->least)
        return;
    for (int percent = 100; percent >= LEAST_PERCENT; percent--) {
        double cost = cost_of(seen, method, seen->least * percent / 100, seen->most * percent / 100);
        if (cost < best) {
            best = cost;
            *lo = seen->least * percent / 100;
            *hi = seen->most * percent / 100;
        }
    }
}

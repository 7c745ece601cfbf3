/* What a convolution takes as it is, and by tiles of Winograd's. */
#include "passes/rewrite/winograd.h"

#include "ir/kernel/algebra.h"
#include "passes/fuse/fuse.h"

#include <math.h>

typedef dlc_winograd_site site;

/* Products of a lane at a step, of what the exact row and that of pairs multiply. */
static double products_at_once(const site *at, dlc_dot exact, int is_pairs)
{
    return dlc_dot_products(dlc_winograd_is_exact(at) ? exact : is_pairs ? DLC_DOT_VDPBF16PS : DLC_DOT_FMA);
}

/* As it is, in tile registers: half of what they multiply at most, for they are loaded from L2. 0: it is not done in such. */
static double products_in_tiles(const site *at)
{
    const dlc_target *target = at->in->target;
    int is_bf16 = dlc_winograd_buffer(at, at->x)->type.dtype == DLC_BF16 && dlc_winograd_buffer(at, at->w)->type.dtype == DLC_BF16;
    return is_bf16 && dlc_dot_pays(target, DLC_DOT_TDPBF16PS) ? dlc_dot_products_in_tiles(target, DLC_DOT_TDPBF16PS) / 2 : 0;
}

static double tiles_along(const site *at, uint32_t d)
{
    int64_t m = dlc_winograd_results(at, d), phases = at->along[d].step, size = (at->along[d].nominal + phases - 1) / phases;
    return (double)(phases * ((size + m - 1) / m));
}

/* Taps along the direction that a result has on average, without those that are padding for all of a register tile, which are left out
 * (passes/schedule/choose_padding.c): the outer ones, where the image is as large as the results. */
static double taps_read(const site *at, uint32_t d)
{
    enum { SHARED = 2 }; /* results at the border's edge that share a tile with one that reads the tap */
    double size = (double)at->along[d].nominal, taps = (double)at->along[d].window;
    for (int64_t k = 0; dlc_load_guard(at->kernel->pool, at->x) && k < at->along[d].window; k++) {
        double from_middle = fabs((double)k - (double)(at->along[d].window - 1) / 2) * (double)at->along[d].step;
        double outside = (from_middle < size ? from_middle : size) - SHARED;
        taps -= outside > 0 ? outside / size : 0;
    }
    return taps;
}

/* The kept axis by which the load goes along the reduced one's direction, or DLC_NO_AXIS. */
static uint32_t axis_along(const site *at, uint32_t other)
{
    const dlc_pool *pool = at->kernel->pool;
    const dlc_ids *axes = &at->kernel->stages.data[0].axes;
    for (uint32_t i = 0; i < dlc_load_rank(pool, at->x); i++)
        for (uint32_t j = 0; dlc_expr_uses_axis(pool, dlc_arg(pool, at->x, i), other) && j < axes->n; j++)
            if (dlc_expr_uses_axis(pool, dlc_arg(pool, at->x, i), axes->data[j]))
                return axes->data[j];
    return DLC_NO_AXIS;
}

/* The share of a further axis' taps that are no padding, which are left out as it is, in the middle of the image. */
static double share_read(const site *at, uint32_t other)
{
    enum { MOST_POINTS = 64 };
    dlc_pool *pool = at->kernel->pool;
    uint32_t along = axis_along(at, other), naxes = at->kernel->axes.n;
    int64_t size, taps, is_read, nread = 0;
    dlc_expr guard = dlc_load_guard(pool, at->x), *with = dlc_new_array(at->in->scratch, dlc_expr, naxes);
    if (!guard || along == DLC_NO_AXIS || !dlc_const_extent(at->kernel, along, &size) || size > MOST_POINTS ||
        !dlc_const_extent(at->kernel, other, &taps) || taps > MOST_POINTS)
        return 1;
    for (uint32_t a = 0; a < naxes; a++)
        with[a] = dlc_floordiv(pool, at->kernel->axes.data[a].extent, dlc_expr_i64(pool, 2));
    for (int64_t i = 0; i < size * taps; i++) {
        with[along] = dlc_expr_i64(pool, i / taps);
        with[other] = dlc_expr_i64(pool, i % taps);
        nread += !dlc_expr_is_int(pool, dlc_expr_substitute(pool, guard, with, naxes), &is_read) || is_read;
    }
    return (double)nread / (double)(size * taps);
}

/* Filters of so many taps or points. */
static double filter_bytes(const site *at, double points, dlc_dtype dtype)
{
    return points * (double)at->inputs * (double)at->nothers * (double)at->outputs * dlc_dtype_bytes(dtype);
}

/* Products of a tile, for each pair of channels. */
static double points_of_tile(const site *at)
{
    double n = 1;
    for (uint32_t d = 0; d < 2; d++)
        n *= (double)(dlc_winograd_points(at, d) * dlc_winograd_groups(at, d));
    return n;
}

double dlc_winograd_filter_bytes(const site *at)
{
    return filter_bytes(at, points_of_tile(at), dlc_winograd_point_type(at));
}

double dlc_winograd_filter_bytes_before(const site *at)
{
    return filter_bytes(at, (double)(at->along[0].window * at->along[1].window), (dlc_dtype)dlc_winograd_buffer(at, at->w)->type.dtype);
}

/* Cycles of so many products, `at_once` of them in each lane of a vector's step, or `in_tiles` of them a cycle where that is more. */
static double product_cycles(const site *at, double nproducts, double at_once, double in_tiles)
{
    enum { LOSS_PERCENT = 10 };
    const dlc_target *target = at->in->target;
    double width = target->vector_bytes / sizeof(float), steps = target->facts & DLC_HAS_FMA || dlc_winograd_is_exact(at) ? 2 : 1;
    double per_cycle = steps * width * at_once;
    return nproducts / (in_tiles > per_cycle ? in_tiles : per_cycle) * (100 + LOSS_PERCENT) / 100;
}

/* Products that take about as long as memory or less are hidden by half (Emerald Rapids, 16 tiles of 512 channels: 1.92 ms, where memory takes
 * 1.16 and products .95). */
#define BESIDE 0.5
static double time_of(const site *at, double cycles, double bytes)
{
    const dlc_machine *machine = at->in->target->machine;
    double computing = cycles / machine->cycles_per_us, moving = bytes / machine->far_bytes_per_us;
    return fmax(dlc_estimate_hidden(computing, moving), moving + computing * BESIDE);
}

static double channel_pairs(const site *at)
{
    return (double)at->inputs * (double)at->nothers * (double)at->outputs;
}

double dlc_winograd_time(const site *at)
{
    enum { INPUT_CYCLES = 3, OUTPUT_CYCLES = 2 }; /* a vector's way through a transform of two directions, by point */
    const dlc_target *target = at->in->target;
    double width = target->vector_bytes / sizeof(float), tiles = at->images, ndirections = 0;
    double at_once = products_at_once(at, dlc_dot_of_words(target), dlc_winograd_point_type(at) == DLC_BF16), groups = 1;
    for (uint32_t d = 0; d < 2; d++) {
        tiles *= tiles_along(at, d);
        groups *= (double)dlc_winograd_groups(at, d);
        ndirections += at->along[d].form != DLC_WINOGRAD_PLAIN;
    }
    double points = tiles * points_of_tile(at), inputs = points * (double)at->inputs * (double)at->nothers;
    double cycles = product_cycles(at, points * channel_pairs(at), at_once, 0);
    cycles += ndirections / 2 / width *
              (INPUT_CYCLES * inputs * dlc_dtype_bytes(dlc_winograd_row_type(at)) / sizeof(float) + OUTPUT_CYCLES * points / groups * (double)at->outputs);
    return time_of(at, cycles, dlc_winograd_filter_bytes(at));
}

double dlc_winograd_time_before(const site *at)
{
    dlc_dot bytes = dlc_dot_fact(at->in->target, DLC_DOT_VPDPBUSD) ? DLC_DOT_VPDPBUSD : dlc_dot_of_words(at->in->target);
    double products = at->images * taps_read(at, 0) * taps_read(at, 1);
    for (uint32_t d = 0; d < 2; d++)
        products *= (double)at->along[d].nominal;
    for (uint32_t i = 0; i < at->others.n; i++)
        products *= share_read(at, at->others.data[i]);
    double cycles = product_cycles(at, products * channel_pairs(at), products_at_once(at, bytes, dlc_winograd_has_pairs(at)), products_in_tiles(at));
    return time_of(at, cycles, dlc_winograd_filter_bytes_before(at));
}

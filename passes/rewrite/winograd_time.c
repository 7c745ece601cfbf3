/* What a 3x3 convolution takes as it is, and by tiles of Winograd's. */
#include "passes/rewrite/winograd.h"

#include "ir/kernel/algebra.h"
#include "passes/fuse/fuse.h"

typedef dlc_winograd_site site;

/* Products of a lane at a step; m: results in a row, 1: as it is. */
static double products_at_once(const site *at, int64_t m)
{
    const dlc_target *target = at->in->target;
    int is_pairs = m == 1 ? dlc_winograd_has_pairs(at) : dlc_winograd_point_type(at, m) == DLC_BF16;
    if (dlc_winograd_is_exact(at))
        return dlc_dot_products(m == 1 && dlc_dot_fact(target, DLC_DOT_VPDPBUSD) ? DLC_DOT_VPDPBUSD : dlc_dot_of_words(target));
    return dlc_dot_products(is_pairs ? DLC_DOT_VDPBF16PS : DLC_DOT_FMA);
}

/* As it is, in tile registers: half of what they multiply at most, for they are loaded from L2. 0: it is not done in such. */
static double products_in_tiles(const site *at)
{
    const dlc_target *target = at->in->target;
    int is_bf16 = dlc_winograd_buffer(at, at->x)->type.dtype == DLC_BF16 && dlc_winograd_buffer(at, at->w)->type.dtype == DLC_BF16;
    return is_bf16 && dlc_dot_pays(target, DLC_DOT_TDPBF16PS) ? dlc_dot_products_in_tiles(target, DLC_DOT_TDPBF16PS) / 2 : 0;
}

static double tiles_along(const site *at, uint32_t d, int64_t m)
{
    int64_t phases = m == 1 ? 1 : at->step[d], size = (at->nominal[d] + phases - 1) / phases;
    return (double)(phases * ((size + m - 1) / m));
}

/* Taps along the dimension that a result has on average, without those that are padding for all of a register tile, which are left out
 * (passes/schedule/choose_padding.c): the first and the last, where the image is as large as the results. */
static double taps_read(const site *at, uint32_t d)
{
    enum { SHARED = 2 }; /* results at the border's edge that share a tile with one that reads the tap */
    double size = (double)at->nominal[d], outside = (double)(at->step[d] < at->nominal[d] ? at->step[d] : at->nominal[d]) - SHARED;
    return dlc_load_guard(at->kernel->pool, at->x) && outside > 0 ? DLC_WINOGRAD_TAPS - 2 * outside / size : DLC_WINOGRAD_TAPS;
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

double dlc_winograd_filter_bytes(const site *at, uint32_t form)
{
    int is_tiled = form < DLC_WINOGRAD_FORMS;
    double points = is_tiled ? (double)dlc_winograd_forms[form].npoints : DLC_WINOGRAD_TAPS;
    dlc_dtype dtype = is_tiled ? dlc_winograd_point_type(at, dlc_winograd_forms[form].m) : (dlc_dtype)dlc_winograd_buffer(at, at->w)->type.dtype;
    return points * points * (double)at->inputs * (double)at->nothers * (double)at->outputs * dlc_dtype_bytes(dtype);
}

double dlc_winograd_time(const site *at, uint32_t form)
{
    enum { LOSS_PERCENT = 10, INPUT_CYCLES = 3, OUTPUT_CYCLES = 2 }; /* a vector's way through a transform, by point */
    const dlc_target *target = at->in->target;
    int64_t m = form < DLC_WINOGRAD_FORMS ? dlc_winograd_forms[form].m : 1;
    double n = (double)(m == 1 ? DLC_WINOGRAD_TAPS : dlc_winograd_forms[form].npoints), width = target->vector_bytes / sizeof(float);
    double tiles = at->images * tiles_along(at, 0, m) * tiles_along(at, 1, m);
    double per_cycle = (target->facts & DLC_HAS_FMA || dlc_winograd_is_exact(at) ? 2 : 1) * width * products_at_once(at, m);
    if (m == 1 && products_in_tiles(at) > per_cycle)
        per_cycle = products_in_tiles(at);
    double inputs = (double)at->inputs * (double)at->nothers, channels = inputs * (double)at->outputs;
    double products = m > 1 ? n * n : taps_read(at, 0) * taps_read(at, 1);
    for (uint32_t i = 0; m == 1 && i < at->others.n; i++)
        products *= share_read(at, at->others.data[i]);
    double cycles = tiles * products * channels / per_cycle * (100 + LOSS_PERCENT) / 100;
    if (m > 1)
        cycles += tiles * n * n / width *
                  (INPUT_CYCLES * inputs * dlc_dtype_bytes(dlc_winograd_row_type(at)) / sizeof(float) + OUTPUT_CYCLES * (double)at->outputs);
    return dlc_estimate_hidden(cycles / target->machine->cycles_per_us, dlc_winograd_filter_bytes(at, form) / target->machine->far_bytes_per_us);
}

/*
 * Meaning of grid_sample: the places to sample are data. grid[n, o…, :] holds coordinates in [-1,
 * 1], the last dimension of the input first; they are scaled to indices (or are indices), brought
 * inside as the padding says, and sampled as resize samples. An image that is not there is zeros.
 */
#include "ir/graph/mean_sample.h"

#include <string.h>

typedef struct {
    dlc_pool *pool;
    dlc_dtype dtype;
    dlc_expr extent; /* of the dimension, as a float */
    int align;       /* -1 and 1 are centres of the outer elements, not their outer edges */
    int is_index;    /* coordinates are indices */
} span;

static dlc_expr real(const span *s, double value)
{
    return dlc_expr_const(s->pool, s->dtype, value);
}

/* Coordinate -> index: (v + 1) / 2 * (n - 1), or ((v + 1) * n - 1) / 2, or as it is. */
static dlc_expr denormalised(const span *s, dlc_expr v)
{
    dlc_pool *pool = s->pool;
    if (s->is_index)
        return v;
    dlc_expr up = dlc_add(pool, v, real(s, 1)), half = real(s, 0.5);
    if (s->align)
        return dlc_mul(pool, dlc_mul(pool, up, half), dlc_sub(pool, s->extent, real(s, 1)));
    return dlc_mul(pool, dlc_sub(pool, dlc_mul(pool, up, s->extent), real(s, 1)), half);
}

/* Mirrored at the borders until inside; a border that is one point maps everything to it. */
static dlc_expr reflected(const span *s, dlc_expr x)
{
    dlc_pool *pool = s->pool;
    dlc_expr low = real(s, s->align ? 0 : -0.5),
             width = s->align ? dlc_sub(pool, s->extent, real(s, 1)) : s->extent;
    dlc_expr period = dlc_mul(pool, real(s, 2), width);
    dlc_expr phase = dlc_expr2(pool, DLC_EXPR_MOD, dlc_sub(pool, x, low), period);
    dlc_expr inside = dlc_add(pool, low, dlc_min(pool, phase, dlc_sub(pool, period, phase)));
    return dlc_select(pool, dlc_eq(pool, width, real(s, 0)), low, inside);
}

/* Only what lies outside the borders is moved: between a border and the centre next to it, cubic
 * weights need the place. */
static dlc_expr brought_inside(const span *s, const char *padding, dlc_expr x)
{
    dlc_pool *pool = s->pool;
    if (padding[0] == 'z')
        return x;
    dlc_expr low = real(s, s->align ? 0 : -0.5),
             high = dlc_sub(pool, s->extent, real(s, s->align ? 1 : 0.5));
    dlc_expr is_out = dlc_expr2(pool, DLC_EXPR_OR, dlc_lt(pool, x, low), dlc_lt(pool, high, x)),
             moved;
    if (padding[0] == 'b')
        moved = dlc_max(pool, real(s, 0), dlc_min(pool, dlc_sub(pool, s->extent, real(s, 1)), x));
    else
        moved = reflected(s, x);
    return dlc_select(pool, is_out, moved, x);
}

static dlc_edge edge_of(const char *padding, int align)
{
    if (padding[0] == 'b')
        return DLC_EDGE_CLAMP;
    if (padding[0] == 'r')
        return align ? DLC_EDGE_MIRROR_CENTERS : DLC_EDGE_MIRROR;
    return DLC_EDGE_ZERO;
}

/* Taps around index x of dimension d. */
static dlc_taps taps_at(dlc_mean *mean, const span *s, uint8_t d, dlc_expr x, dlc_dtype dtype)
{
    dlc_pool *pool = mean->kernel->pool;
    const char *mode = dlc_node_text(mean->node, DLC_ATTR_MODE, "linear");
    const char *padding = dlc_node_text(mean->node, DLC_ATTR_COORD, "zeros");
    dlc_taps taps = {.ntaps = 1,
                     .cubic_a = -0.75,
                     .extent = dlc_mean_in_dim(mean, 0, d),
                     .edge = (uint8_t)edge_of(padding, s->align)};
    if (mode[0] == 'n') {
        x = brought_inside(s, padding, dlc_expr1(pool, DLC_EXPR_RINT, x));
        taps.first = dlc_expr_cast(pool, DLC_I64, x);
        return taps;
    }
    x = brought_inside(s, padding, x);
    taps.is_cubic = mode[0] == 'c';
    taps.ntaps = taps.is_cubic ? 4 : 2;
    dlc_expr first =
        dlc_sub(pool, dlc_expr1(pool, DLC_EXPR_FLOOR, x), real(s, taps.is_cubic ? 1 : 0));
    taps.first = dlc_expr_cast(pool, DLC_I64, first);
    taps.distance = dlc_expr_cast(pool, dtype, dlc_sub(pool, x, first));
    return taps;
}

dlc_status dlc_mean_grid_sample(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    const dlc_type *y = dlc_mean_result(mean);
    dlc_dtype dtype = dlc_mean_wide(y->dtype);
    span s = {.pool = pool,
              .dtype = dlc_mean_wide(dlc_mean_in(mean, 1)->dtype),
              .align = dlc_node_int(mean->node, DLC_ATTR_ALIGN_CORNERS, 0) != 0,
              .is_index = dlc_node_text(mean->node, DLC_ATTR_UNIT, "relative")[0] == 'p'};
    dlc_ids axes = {0}, reduce = {0};
    dlc_expr o[DLC_MAX_RANK], place[DLC_MAX_RANK];
    dlc_taps taps[DLC_MAX_RANK] = {0};
    dlc_mean_axes(mean, y, &axes, o);
    taps[0].first = place[0] = o[0];
    taps[1].first = o[1];
    if (dlc_mean_has(mean, 2)) {
        taps[0].extent = dlc_mean_in_dim(mean, 0, 0);
        taps[0].first = dlc_mean_wrap(mean, dlc_mean_load(mean, 2, o), taps[0].extent);
    }
    memcpy(place + 1, o + 2, (y->rank - 2u) * sizeof *place);
    for (uint8_t d = 2; d < y->rank; d++) {
        place[y->rank - 1] = dlc_expr_i64(pool, y->rank - 1 - d);
        s.extent = dlc_expr_cast(pool, s.dtype, dlc_mean_in_dim(mean, 0, d));
        dlc_expr v = dlc_expr_cast(pool, s.dtype, dlc_mean_load(mean, 1, place));
        taps[d] = taps_at(mean, &s, d, denormalised(&s, v), dtype);
    }
    dlc_expr value = dlc_taps_sample(mean, taps, y->rank, dtype, &reduce);
    if (reduce.n) {
        uint32_t sum = dlc_mean_reduce(mean, "sum", &axes, &reduce, DLC_REDUCE_SUM, value, 0);
        value = dlc_mean_stage(mean, sum, o);
    }
    return dlc_mean_finish(mean, &axes, value);
}

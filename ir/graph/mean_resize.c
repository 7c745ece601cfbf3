/*
 * Meaning of resize. Per dimension: where output index o lies in the input (coordinate modes, in
 * f64 so that roundings and ties come out as defined), which neighbours it takes, with which
 * weights. Dimensions that keep their size are plain axes.
 */
#include "ir/graph/mean_sample.h"

#include <math.h>
#include <string.h>

typedef struct {
    dlc_pool *pool;
    const char *coord;
    dlc_expr o;               /* output index, f64 */
    dlc_expr scale;           /* f64 */
    dlc_expr in, out, scaled; /* sizes as f64; scaled = scale * in, which need not be whole */
    dlc_expr start, end;      /* roi, f64 */
} place;

static dlc_expr real(const place *p, double value)
{
    return dlc_expr_const(p->pool, DLC_F64, value);
}

static dlc_expr over(const place *p, dlc_expr a, dlc_expr b)
{
    return dlc_expr2(p->pool, DLC_EXPR_DIV, a, b);
}

/* (o + 1/2) / scale - 1/2 */
static dlc_expr half_pixel(const place *p)
{
    return dlc_sub(p->pool, over(p, dlc_add(p->pool, p->o, real(p, 0.5)), p->scale), real(p, 0.5));
}

/* o * (in - 1) / (out - 1), `alone` where the output has one element */
static dlc_expr corners(const place *p, dlc_expr width, dlc_expr out, dlc_expr alone)
{
    dlc_pool *pool = p->pool;
    dlc_expr span = dlc_mul(pool, width, dlc_sub(pool, p->in, real(p, 1)));
    dlc_expr at = over(p, dlc_mul(pool, p->o, span), dlc_sub(pool, out, real(p, 1)));
    return dlc_select(pool, dlc_eq(pool, out, real(p, 1)), alone, at);
}

/* The output's centre stays the input's centre when their sizes are not in the ratio of the scale.
 */
static dlc_expr symmetric(const place *p)
{
    dlc_expr adjustment = over(p, p->out, p->scaled), center = over(p, p->in, real(p, 2));
    dlc_expr offset = dlc_mul(p->pool, center, dlc_sub(p->pool, real(p, 1), adjustment));
    return dlc_add(p->pool, offset, half_pixel(p));
}

static dlc_expr crop(const place *p)
{
    dlc_expr last = dlc_sub(p->pool, p->in, real(p, 1)), width = dlc_sub(p->pool, p->end, p->start);
    dlc_expr alone = dlc_mul(p->pool, last, dlc_mul(p->pool, width, real(p, 0.5)));
    return dlc_add(p->pool, corners(p, width, p->out, alone), dlc_mul(p->pool, last, p->start));
}

/* tf_half_pixel_for_nn is (o + 1/2) / scale: half a pixel to the right. */
static dlc_expr place_of(const place *p)
{
    if (strcmp(p->coord, "asymmetric") == 0)
        return over(p, p->o, p->scale);
    if (strcmp(p->coord, "align_corners") == 0)
        return corners(p, real(p, 1), p->scaled, real(p, 0));
    if (strcmp(p->coord, "half_pixel_symmetric") == 0)
        return symmetric(p);
    if (strcmp(p->coord, "tf_crop_and_resize") == 0)
        return crop(p);
    if (strcmp(p->coord, "tf_half_pixel_for_nn") == 0)
        return dlc_add(p->pool, half_pixel(p), real(p, 0.5));
    if (strcmp(p->coord, "pytorch_half_pixel") == 0)
        return dlc_select(p->pool, dlc_eq(p->pool, p->out, real(p, 1)), real(p, 0), half_pixel(p));
    return half_pixel(p);
}

static dlc_expr nearest(dlc_mean *mean, dlc_expr x)
{
    dlc_pool *pool = mean->kernel->pool;
    const char *rounding = dlc_node_text(mean->node, DLC_ATTR_NEAREST, "round_prefer_floor");
    dlc_expr half = dlc_expr_const(pool, DLC_F64, 0.5);
    if (strcmp(rounding, "floor") == 0)
        x = dlc_expr1(pool, DLC_EXPR_FLOOR, x);
    else if (strcmp(rounding, "ceil") == 0)
        x = dlc_expr1(pool, DLC_EXPR_CEIL, x);
    else if (strcmp(rounding, "round_prefer_ceil") == 0)
        x = dlc_expr1(pool, DLC_EXPR_FLOOR, dlc_add(pool, x, half));
    else
        x = dlc_expr1(pool, DLC_EXPR_CEIL, dlc_sub(pool, x, half));
    return dlc_expr_cast(pool, DLC_I64, x);
}

/* --- integer form of nearest --- */

/* The expression of floats and casts where the axis is `o`, by substitution, which folds. False: a scale that the run gives decides it. */
static int index_at(dlc_pool *pool, dlc_expr index, uint32_t axis, int64_t o, dlc_expr *with, int64_t *value)
{
    with[axis] = dlc_expr_i64(pool, o);
    return dlc_expr_is_int(pool, dlc_expr_substitute(pool, index, with, axis + 1), value);
}

/*
 * Upscaling by whole factors is (o * a + b) floordiv c for some b: quasi-affine, which code
 * generation likes better than arithmetic on floats. Tried on every o, so it is the same function
 * or not used.
 */
static dlc_expr as_integers(dlc_mean *mean, dlc_expr index, dlc_expr o, int64_t in, int64_t out)
{
    enum { LONGEST = 4096 };
    dlc_pool *pool = mean->kernel->pool;
    uint32_t axis = dlc_node_of(pool, o)->imm.id;
    if (out > LONGEST || in > LONGEST || out % in != 0 || dlc_node_of(pool, o)->op != DLC_EXPR_AXIS)
        return index;
    int64_t c = out / in;
    dlc_arena *scratch = dlc_arena_create(0);
    dlc_pool *tables =
        dlc_pool_create(scratch); /* constants of every o stay out of the kernel's pool */
    dlc_expr copy = dlc_expr_rewrite(tables, pool, index, NULL, NULL);
    dlc_expr *with = dlc_new_array(scratch, dlc_expr, axis + 1);
    int64_t *table = dlc_new_array(scratch, int64_t, (size_t)out);
    int is_known = 1, is_same = 0;
    for (int64_t i = 0; i < out && is_known; i++)
        is_known = index_at(tables, copy, axis, i, with, &table[i]);
    int64_t b = 0;
    for (; b < c && is_known && !is_same; b++) {
        is_same = 1;
        for (int64_t i = 0; i < out && is_same; i++)
            is_same = (i + b) / c == table[i];
    }
    dlc_arena_destroy(scratch);
    return is_same ? dlc_floordiv(pool, dlc_addi(pool, o, b - 1), dlc_expr_i64(pool, c)) : index;
}

/* --- one dimension --- */

static double float_of(const dlc_mean *mean, dlc_attr_id id, uint32_t i, double otherwise)
{
    const dlc_attr *attr = dlc_node_attr(mean->node, id);
    return attr ? attr->as.floats[i] : otherwise;
}

/* Element i of an input, where the run knows it, or of the attribute, in f64. */
static dlc_expr number_of(dlc_mean *mean, uint32_t input, dlc_attr_id id, uint32_t i,
                          double otherwise)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr at = dlc_expr_i64(pool, i);
    if (dlc_mean_has(mean, input))
        return dlc_expr_cast(pool, DLC_F64, dlc_mean_load(mean, input, &at));
    return dlc_expr_const(pool, DLC_F64, float_of(mean, id, i, otherwise));
}

static place place_in(dlc_mean *mean, uint8_t d, dlc_expr o)
{
    dlc_pool *pool = mean->kernel->pool;
    uint8_t rank = dlc_mean_result(mean)->rank;
    place p = {.pool = pool, .coord = dlc_node_text(mean->node, DLC_ATTR_COORD, "half_pixel")};
    p.o = dlc_expr_cast(pool, DLC_F64, o);
    p.in = dlc_expr_cast(pool, DLC_F64, dlc_mean_in_dim(mean, 0, d));
    p.out = dlc_expr_cast(pool, DLC_F64, dlc_mean_dim(mean, dlc_mean_result(mean)->dims[d]));
    int is_scaled = dlc_node_attr(mean->node, DLC_ATTR_SCALES) || dlc_mean_has(mean, 1);
    p.scale = is_scaled ? number_of(mean, 1, DLC_ATTR_SCALES, d, 1) : over(&p, p.out, p.in);
    p.scaled = is_scaled ? dlc_mul(pool, p.scale, p.in) : p.out;
    p.start = number_of(mean, 2, DLC_ATTR_ROI, d, 0);
    p.end = number_of(mean, 2, DLC_ATTR_ROI, (uint32_t)rank + d, 1);
    return p;
}

static int is_crop(const dlc_mean *mean)
{
    return strcmp(dlc_node_text(mean->node, DLC_ATTR_COORD, ""), "tf_crop_and_resize") == 0;
}

/* Same size, scale 1, and no crop: the index itself. */
static int is_kept(const dlc_mean *mean, uint8_t d)
{
    uint8_t rank = dlc_mean_result(mean)->rank;
    if (dlc_mean_has(mean, 1) || dlc_mean_has(mean, 2))
        return 0;
    int is_whole = !is_crop(mean) || (float_of(mean, DLC_ATTR_ROI, d, 0) == 0 &&
                                      float_of(mean, DLC_ATTR_ROI, (uint32_t)rank + d, 1) == 1);
    return dlc_mean_in(mean, 0)->dims[d] == dlc_mean_result(mean)->dims[d] && is_whole &&
           fabs(float_of(mean, DLC_ATTR_SCALES, d, 1) - 1) < 1e-9;
}

/*
 * The filter reaches 1 (linear) or 2 (cubic) to each side, more by the factor an antialiased image
 * shrinks. Where only the run knows that, the attribute `taps` has the number of taps.
 */
static void set_filter(dlc_mean *mean, dlc_taps *taps, const place *p, uint8_t d, dlc_dtype dtype)
{
    uint32_t n;
    double scale, stretch = 1, reach = taps->is_cubic ? 2 : 1;
    const dlc_expr *counts = dlc_node_dims(mean->node, DLC_ATTR_TAPS, &n);
    int is_antialiased = dlc_node_int(mean->node, DLC_ATTR_ANTIALIAS, 0) != 0;
    if (is_antialiased && dlc_expr_is_float(p->pool, p->scale, &scale) && scale > 0 && scale < 1)
        stretch = scale;
    taps->ntaps = 2 - 2 * (int64_t)(floor(-reach / stretch) + 1);
    if (stretch != 1) {
        taps->stretch = dlc_expr_const(p->pool, dtype, stretch);
    } else if (is_antialiased && counts && !dlc_expr_is_float(p->pool, p->scale, &scale)) {
        dlc_expr shrunk = dlc_min(p->pool, p->scale, real(p, 1));
        taps->stretch = dlc_expr_cast(p->pool, dtype, shrunk);
        taps->count = dlc_mean_dim(mean, counts[d]);
    }
}

/* The taps to the left of the place and at it. */
static dlc_expr half_of(const place *p, const dlc_taps *taps)
{
    if (!taps->count)
        return real(p, (double)(taps->ntaps / 2 - 1));
    dlc_expr half = dlc_floordiv(p->pool, taps->count, dlc_expr_i64(p->pool, 2));
    return dlc_expr_cast(p->pool, DLC_F64, dlc_addi(p->pool, half, -1));
}

static void set_neighbours(dlc_mean *mean, dlc_taps *taps, const place *p, uint8_t d, dlc_expr o,
                           dlc_expr x, dlc_dtype dtype)
{
    dlc_pool *pool = p->pool;
    taps->is_cubic = dlc_node_text(mean->node, DLC_ATTR_MODE, "")[0] == 'c';
    taps->cubic_a = dlc_node_float(mean->node, DLC_ATTR_CUBIC_A, -0.75);
    taps->drops_outside = dlc_node_int(mean->node, DLC_ATTR_EXCLUDE_OUTSIDE, 0) != 0;
    set_filter(mean, taps, p, d, dtype);
    /* the element left of x, or of x itself when it is whole, is in the middle */
    dlc_expr left = dlc_sub(pool, dlc_expr1(pool, DLC_EXPR_CEIL, x), real(p, 1));
    dlc_expr first = dlc_sub(pool, left, half_of(p, taps));
    taps->first = dlc_expr_cast(pool, DLC_I64, first);
    taps->distance = dlc_expr_cast(pool, dtype, dlc_sub(pool, x, first));
    if (taps->drops_outside || taps->stretch)
        dlc_taps_normalise(mean, taps, o);
}

/* Taps of dimension d at output index o; *outside gains a term where a crop leaves the input. */
static dlc_taps taps_of(dlc_mean *mean, uint8_t d, dlc_expr o, dlc_dtype dtype, dlc_expr *outside)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_taps taps = {.first = o, .extent = dlc_mean_in_dim(mean, 0, d), .edge = DLC_EDGE_CLAMP};
    if (is_kept(mean, d))
        return taps;
    place p = place_in(mean, d, o);
    dlc_expr x = place_of(&p);
    if (is_crop(mean)) {
        dlc_expr last = dlc_sub(pool, p.in, real(&p, 1));
        dlc_expr leaves =
            dlc_expr2(pool, DLC_EXPR_OR, dlc_lt(pool, x, real(&p, 0)), dlc_lt(pool, last, x));
        *outside = *outside ? dlc_expr2(pool, DLC_EXPR_OR, *outside, leaves) : leaves;
    }
    if (dlc_node_text(mean->node, DLC_ATTR_MODE, "")[0] != 'n') {
        set_neighbours(mean, &taps, &p, d, o, x, dtype);
        return taps;
    }
    int64_t in, out;
    taps.ntaps = 1;
    taps.first = nearest(mean, x);
    if (dlc_expr_is_int(pool, taps.extent, &in) && in > 0 &&
        dlc_expr_is_int(pool, dlc_mean_dim(mean, dlc_mean_result(mean)->dims[d]), &out)) {
        dlc_expr clamped = dlc_taps_index(mean, &taps, dlc_expr_i64(pool, 0), &(dlc_expr){0});
        taps.first = as_integers(mean, clamped, o, in, out);
        taps.ntaps = 0;
    }
    return taps;
}

/* Integers are sampled in f64 and rounded to the nearest one, halves to even. */
static dlc_dtype sampling_dtype(dlc_dtype dtype)
{
    return dlc_is_int(dtype) ? DLC_F64 : dlc_mean_wide(dtype);
}

static dlc_expr rounded(dlc_pool *pool, dlc_dtype to, dlc_expr value)
{
    return dlc_is_int(to) ? dlc_expr_cast(pool, to, dlc_expr1(pool, DLC_EXPR_RINT, value)) : value;
}

dlc_status dlc_mean_resize(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    const dlc_type *y = dlc_mean_result(mean);
    int is_nearest = dlc_node_text(mean->node, DLC_ATTR_MODE, "")[0] == 'n';
    dlc_dtype dtype = is_nearest ? y->dtype : sampling_dtype(y->dtype);
    dlc_ids axes = {0}, reduce = {0};
    dlc_expr o[DLC_MAX_RANK], outside = 0;
    dlc_taps taps[DLC_MAX_RANK];
    dlc_mean_axes(mean, y, &axes, o);
    for (uint8_t d = 0; d < y->rank; d++)
        taps[d] = taps_of(mean, d, o[d], dtype, &outside);
    dlc_expr value = dlc_taps_sample(mean, taps, y->rank, dtype, &reduce);
    if (reduce.n) {
        uint32_t sum = dlc_mean_reduce(mean, "sum", &axes, &reduce, DLC_REDUCE_SUM, value, 0);
        value = dlc_mean_stage(mean, sum, o);
    }
    if (outside) {
        double given = dlc_node_float(mean->node, DLC_ATTR_EXTRAPOLATION, 0);
        value = dlc_select(pool, outside, dlc_expr_const(pool, dtype, given), value);
    }
    return dlc_mean_finish(mean, &axes, is_nearest ? value : rounded(pool, y->dtype, value));
}

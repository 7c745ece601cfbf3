/*
 * What samples its input at places that are data, or puts it back at places that are: RoiAlign and
 * DeformConv are grid_sample in pixels with a sum behind it, MaxUnpool is a scatter.
 */
#include "frontend/import_window.h"

#include <inttypes.h>
#include <math.h>

static dlc_value *sample(dlc_import *im, dlc_value *x, dlc_value *grid, dlc_value *images,
                         const char *mode, const char *padding)
{
    const dlc_attr attrs[3] = {dlc_attr_text(DLC_ATTR_MODE, mode),
                               dlc_attr_text(DLC_ATTR_COORD, padding),
                               dlc_attr_text(DLC_ATTR_UNIT, "pixels")};
    dlc_value *const inputs[3] = {x, grid, images};
    return f_node(im, DLC_OP_GRID_SAMPLE, inputs, images ? 3 : 2, attrs, 3);
}

/* --- RoiAlign --- */

typedef struct {
    dlc_value *start, *size; /* of each region along the dimension, [r] */
    dlc_value *counts;       /* samples of a bin, of each region: floats [r] */
    dlc_expr nbins, most;    /* bins; the most samples of any bin */
    dlc_expr extent;         /* of the dimension */
    dlc_value *at, *weight;  /* [r, bins, most]: places within the image; 0 where there is none */
} span;

/* [r] -> [r, 1, 1] */
static dlc_value *column(dlc_import *im, dlc_value *v)
{
    return v ? f_insert_axis(im, f_insert_axis(im, v, 1), 1) : NULL;
}

/* start + (bin + (sample + 1/2) / count) * size / bins, and whether it lies within a pixel of the
 * image; what does is moved onto it. */
static void place_samples(dlc_import *im, span *s)
{
    dlc_dtype dtype = s->start->type.dtype;
    dlc_value *zero = f_scalar(im, dtype, 0), *one = f_scalar(im, dtype, 1);
    dlc_value *bin = f_insert_axis(im, f_iota(im, dtype, s->nbins), 1);
    dlc_value *i = f_iota(im, dtype, s->most);
    dlc_value *width = f_div(im, s->size, f_dim(im, dtype, s->nbins));
    dlc_value *inner = f_div(im, f_mul(im, f_add(im, i, f_scalar(im, dtype, 0.5)), column(im, width)),
                             column(im, s->counts));
    dlc_value *at = f_add(im, column(im, s->start), f_mul(im, bin, column(im, width)));
    at = f_add(im, at, inner);
    dlc_value *extent = f_dim(im, dtype, s->extent);
    dlc_value *is_near = f_binary(im, DLC_OP_AND,
                                  f_binary(im, DLC_OP_LE, f_scalar(im, dtype, -1), at),
                                  f_binary(im, DLC_OP_LE, at, extent));
    dlc_value *is_sample = f_binary(im, DLC_OP_LT, i, column(im, s->counts));
    s->weight = f_where(im, f_binary(im, DLC_OP_AND, is_near, is_sample), one, zero);
    s->at = f_where(im, is_sample, f_min(im, f_max(im, at, zero), f_sub(im, extent, one)), zero);
}

/* [r, 1, bins, most, 1, 1] of rows, [r, 1, 1, 1, bins, most] of columns */
static dlc_value *spread(dlc_import *im, dlc_value *v, int is_row)
{
    if (!v)
        return NULL;
    const dlc_expr *d = v->type.dims, one = im_i64(im, 1);
    const dlc_expr rows[6] = {d[0], one, d[1], d[2], one, one},
                   columns[6] = {d[0], one, one, one, d[1], d[2]};
    return f_reshape(im, v, is_row ? rows : columns, 6);
}

/* [r, 1, b, m, b', m'] as the grid's [r, b * m, b' * m', 1] */
static dlc_value *coordinate(dlc_import *im, dlc_value *v, const dlc_expr *all)
{
    dlc_value *x = f_expand(im, v, all, 6);
    const dlc_expr dims[4] = {all[0], dlc_mul(im->pool, all[2], all[3]),
                              dlc_mul(im->pool, all[4], all[5]), im_i64(im, 1)};
    return f_reshape(im, x, dims, 4);
}

/* Neighbours of a place: the one before it and its weight, or the one behind. */
static dlc_value *neighbour(dlc_import *im, dlc_value *at, int is_behind, dlc_value **weight)
{
    dlc_value *low = f_unary(im, DLC_OP_FLOOR, at), *part = f_sub(im, at, low);
    *weight = is_behind ? part : f_sub(im, f_like(im, part, 1), part);
    return is_behind ? f_add(im, low, f_like(im, low, 1)) : low;
}

/* Samples at the places, [r, c, b, m, b', m']. */
static dlc_value *samples_at(dlc_import *im, dlc_value *x, dlc_value *images, dlc_value *y_at,
                             dlc_value *x_at, const dlc_expr *all, const char *mode)
{
    dlc_value *parts[2] = {coordinate(im, spread(im, x_at, 0), all),
                           coordinate(im, spread(im, y_at, 1), all)};
    dlc_value *y = sample(im, x, f_concat(im, parts, 2, 3), images, mode, "border");
    dlc_expr dims[6] = {all[0], x->type.dims[1], all[2], all[3], all[4], all[5]};
    return y ? f_reshape(im, y, dims, 6) : NULL;
}

/* The mean over a bin's samples of what bilinear weights make of four neighbours. */
static dlc_value *mean_of(dlc_import *im, dlc_value *x, dlc_value *images, const span *s,
                          const dlc_expr *all)
{
    static const uint8_t axes[2] = {3, 5};
    dlc_value *y = samples_at(im, x, images, s[0].at, s[1].at, all, "linear");
    y = f_mul(im, y, f_mul(im, spread(im, s[0].weight, 1), spread(im, s[1].weight, 0)));
    dlc_value *count = f_mul(im, s[0].counts, s[1].counts);
    count = column(im, f_max(im, count, f_like(im, count, 1)));
    y = f_reduce(im, DLC_OP_REDUCE_SUM, y, axes, 2, 0);
    return count ? f_div(im, y, f_insert_axis(im, count, 1)) : NULL;
}

/* The largest of the neighbours times their weights, each by itself, as the operator is defined. */
static dlc_value *largest_of(dlc_import *im, dlc_value *x, dlc_value *images, const span *s,
                             const dlc_expr *all)
{
    static const uint8_t axes[2] = {3, 5};
    dlc_value *best = NULL;
    for (int corner = 0; corner < 4; corner++) {
        dlc_value *wy, *wx, *y_at = neighbour(im, s[0].at, corner & 1, &wy),
                            *x_at = neighbour(im, s[1].at, corner >> 1, &wx);
        wy = f_mul(im, spread(im, wy, 1), spread(im, s[0].weight, 1));
        wx = f_mul(im, spread(im, wx, 0), spread(im, s[1].weight, 0));
        dlc_value *y = f_mul(im, samples_at(im, x, images, y_at, x_at, all, "nearest"),
                             f_mul(im, wy, wx));
        best = best ? f_max(im, best, y) : y;
    }
    /* a place that only a larger region has, is no candidate */
    dlc_value *i = f_iota(im, best ? best->type.dtype : DLC_F32, all[3]),
              *j = f_iota(im, best ? best->type.dtype : DLC_F32, all[5]);
    dlc_value *is_row = spread(im, f_binary(im, DLC_OP_LT, i, column(im, s[0].counts)), 1);
    dlc_value *is_column = spread(im, f_binary(im, DLC_OP_LT, j, column(im, s[1].counts)), 0);
    best = f_where(im, f_binary(im, DLC_OP_AND, is_row, is_column), best, f_like(im, best, -INFINITY));
    dlc_value *largest = f_reduce(im, DLC_OP_REDUCE_MAX, best, axes, 2, 0);
    return f_where(im, f_binary(im, DLC_OP_EQ, largest, f_like(im, largest, -INFINITY)),
                   f_like(im, largest, 0), largest);
}

/* Samples per bin: as given, else one for every pixel that a bin begins. */
static void count_samples(dlc_import *im, span *s, int64_t given)
{
    static const uint8_t axis[1] = {0};
    uint32_t n;
    if (given > 0) {
        s->most = im_i64(im, given);
        s->counts = f_expand(im, f_like(im, s->size, (double)given), s->size->type.dims, 1);
        return;
    }
    s->counts = f_unary(im, DLC_OP_CEIL, f_div(im, s->size, f_dim(im, s->size->type.dtype, s->nbins)));
    s->counts = f_max(im, s->counts, f_like(im, s->counts, 0));
    dlc_value *one = f_like(im, s->counts, 1), *padded[2] = {s->counts, NULL};
    const dlc_expr vector = im_i64(im, 1);
    padded[1] = f_reshape(im, one, &vector, 1); /* of no regions: one */
    dlc_value *most = f_reduce(im, DLC_OP_REDUCE_MAX, f_concat(im, padded, 2, 0), axis, 1, 1);
    const dlc_expr *elements = most ? im_elements(im, f_cast(im, most, DLC_I64), 0, 65536, &n) : NULL;
    s->most = elements ? elements[0] : 0;
}

/* Where regions start and how long they are, in pixels: columns d (0: x) and d + 2 of the boxes. */
static void read_span(dlc_import *im, dlc_value *boxes, uint32_t d, double scale, int is_half,
                      span *s)
{
    dlc_expr one = im_i64(im, 1);
    dlc_value *ends[2];
    for (uint32_t e = 0; e < 2; e++) {
        dlc_value *v = f_drop_axis(im, f_slice(im, boxes, 1, im_i64(im, d + 2 * e), one), 1);
        ends[e] = v ? f_sub(im, f_mul(im, v, f_like(im, v, scale)), f_like(im, v, is_half ? 0.5 : 0))
                    : NULL;
    }
    s->start = ends[0];
    s->size = f_sub(im, ends[1], ends[0]);
    if (!is_half)
        s->size = f_max(im, s->size, f_like(im, s->size, 1));
}

void import_roi_align(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *boxes = im_in(im, 1), *images = im_in(im, 2);
    const char *mode = im_choice(im, "mode", "avg", "avg|max");
    const char *coord = im->opset < 16 ? "output_half_pixel"
                                       : im_choice(im, "coordinate_transformation_mode", "half_pixel",
                                                   "half_pixel|output_half_pixel");
    double scale = im_float(im, "spatial_scale", 1);
    int64_t ratio = im_int(im, "sampling_ratio", 0), sizes[2] = {im_int(im, "output_height", 1),
                                                                 im_int(im, "output_width", 1)};
    if (im_rank(x) != 4 || im_rank(boxes) != 2 || im_rank(images) != 1 || sizes[0] < 1 || sizes[1] < 1)
        im_fail(im, DLC_INVALID, "input of rank 4, boxes [r, 4], their images [r] and sizes of 1 "
                                 "and more are wanted");
    int64_t corners;
    if (im_ok(im) && dlc_expr_is_int(im->pool, boxes->type.dims[1], &corners) && corners != 4)
        im_fail(im, DLC_INVALID, "boxes have %" PRId64 " numbers each; 4 are wanted", corners);
    if (!mode || !coord || !im_ok(im))
        return;
    span s[2];
    for (uint32_t d = 0; d < 2; d++) { /* 0: y, 1: x */
        s[d] = (span){.nbins = im_i64(im, sizes[d]), .extent = x->type.dims[d + 2]};
        read_span(im, boxes, 1 - d, scale, coord[0] == 'h', &s[d]);
        if (s[d].size)
            count_samples(im, &s[d], ratio);
        if (!s[d].most)
            return;
        place_samples(im, &s[d]);
    }
    const dlc_expr all[6] = {boxes->type.dims[0], im_i64(im, 1), s[0].nbins, s[0].most,
                             s[1].nbins, s[1].most};
    images = f_cast(im, images, DLC_I64);
    im->out[0] = mode[0] == 'a' ? mean_of(im, x, images, s, all) : largest_of(im, x, images, s, all);
}

/* --- MaxRoiPool --- */

/* Which of `extent` pixels lie in which bin of a region: [r, bins, extent]. Ends are rounded to whole pixels and belong to it; bins
 * may share pixels. */
static dlc_value *in_bins(dlc_import *im, dlc_value *boxes, uint32_t d, double scale, dlc_expr nbins, dlc_expr extent)
{
    dlc_value *ends[2];
    for (uint32_t e = 0; e < 2; e++) {
        dlc_value *v = f_drop_axis(im, f_slice(im, boxes, 1, im_i64(im, 1 + d + 2 * e), im_i64(im, 1)), 1);
        if (!v)
            return NULL;
        v = f_add(im, f_mul(im, v, f_like(im, v, scale)), f_like(im, v, 0.5));
        ends[e] = column(im, f_unary(im, DLC_OP_FLOOR, v));
    }
    dlc_dtype dtype = boxes->type.dtype;
    dlc_value *one = f_scalar(im, dtype, 1), *bins = f_dim(im, dtype, nbins), *pixel = f_iota(im, dtype, extent);
    dlc_value *size = f_max(im, f_add(im, f_sub(im, ends[1], ends[0]), one), one);
    dlc_value *bin = f_insert_axis(im, f_iota(im, dtype, nbins), 1);
    dlc_value *first = f_unary(im, DLC_OP_FLOOR, f_div(im, f_mul(im, bin, size), bins));
    dlc_value *end = f_unary(im, DLC_OP_CEIL, f_div(im, f_mul(im, f_add(im, bin, one), size), bins));
    return f_binary(im, DLC_OP_AND, f_binary(im, DLC_OP_LE, f_add(im, ends[0], first), pixel),
                    f_binary(im, DLC_OP_LT, pixel, f_add(im, ends[0], end)));
}

/* The largest along the last dimension but one of [r, c, .., n, ..] within each bin, in the place of that dimension. */
static dlc_value *largest_in(dlc_import *im, dlc_value *x, dlc_value *is_in)
{
    if (!x || !is_in)
        return NULL;
    is_in = f_insert_axis(im, f_insert_axis(im, is_in, 1), 2); /* [r, 1, 1, bins, n] */
    dlc_value *some = f_where(im, is_in, f_insert_axis(im, x, 3), f_like(im, x, -INFINITY));
    return f_reduce_last(im, DLC_OP_REDUCE_MAX, some, 1, 0);
}

void import_max_roi_pool(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *boxes = im_in(im, 1);
    uint32_t n = 0;
    const int64_t *sizes = im_ints(im, "pooled_shape", &n);
    double scale = im_float(im, "spatial_scale", 1);
    if (!sizes || n != 2 || sizes[0] < 1 || sizes[1] < 1 || im_rank(x) != 4 || im_rank(boxes) != 2) {
        im_fail(im, DLC_INVALID, "an input of rank 4, boxes [r, 5] and pooled_shape of two sizes are wanted");
        return;
    }
    dlc_value *image = f_drop_axis(im, f_slice(im, boxes, 1, im_i64(im, 0), im_i64(im, 1)), 1);
    dlc_value *columns = in_bins(im, boxes, 0, scale, im_i64(im, sizes[1]), x->type.dims[3]),
              *rows = in_bins(im, boxes, 1, scale, im_i64(im, sizes[0]), x->type.dims[2]);
    dlc_value *y = largest_in(im, f_gather(im, x, f_cast(im, image, DLC_I64), 0), columns); /* [r, c, h, bins] */
    y = largest_in(im, y ? f_swap_last(im, y) : NULL, rows);
    if (y)
        y = f_swap_last(im, y);
    im->out[0] = f_where(im, f_binary(im, DLC_OP_EQ, y, f_like(im, x, -INFINITY)), f_like(im, x, 0), y);
}

/* --- DeformConv --- */

typedef struct {
    im_window w;
    int64_t group, offset_group, npoints; /* points of the filter */
    dlc_expr out[DLC_MAX_RANK], noutputs;
    dlc_expr batch; /* images times groups of offsets */
} deform;

/* Coordinates along dimension s: output * stride - pad + point * dilation + offset, [batch, points,
 * out…] */
static dlc_value *deformed(dlc_import *im, const deform *d, dlc_value *offsets, uint32_t s)
{
    int64_t inner = 1, points[1024];
    for (uint32_t t = s + 1; t < d->w.rank; t++)
        inner *= d->w.kernel[t];
    for (int64_t p = 0; p < d->npoints; p++)
        points[p] = p / inner % d->w.kernel[s] * d->w.dilations[s];
    dlc_value *offset = f_drop_axis(im, f_slice(im, offsets, 2, im_i64(im, s), im_i64(im, 1)), 2);
    if (!offset)
        return NULL;
    dlc_dtype dtype = offset->type.dtype;
    dlc_value *o = f_iota(im, DLC_I64, d->out[s]);
    o = f_sub(im, f_mul(im, o, f_like(im, o, (double)d->w.strides[s])),
              f_dim(im, DLC_I64, d->w.pads[s]));
    dlc_value *p = dlc_graph_ints(im->graph, points, (uint32_t)d->npoints);
    o = f_add(im, f_channel(im, o, d->w.rank, s), f_channel(im, p, d->w.rank + 1, 0));
    return f_add(im, offset, f_cast(im, o, dtype));
}

/* Places [batch, points * out0, out1…, coordinates], the last dimension's coordinate first. */
static dlc_value *deformed_grid(dlc_import *im, const deform *d, dlc_value *offsets)
{
    dlc_expr dims[DLC_MAX_RANK] = {d->batch, im_i64(im, d->npoints), im_i64(im, d->w.rank)};
    dlc_value *parts[DLC_MAX_RANK];
    for (uint32_t s = 0; s < d->w.rank; s++)
        dims[3 + s] = d->out[s];
    offsets = f_reshape(im, offsets, dims, d->w.rank + 3);
    dims[1] = dlc_muli(im->pool, d->out[0], d->npoints);
    for (uint32_t s = 1; s < d->w.rank; s++)
        dims[1 + s] = d->out[s];
    dims[d->w.rank + 1] = im_i64(im, 1);
    for (uint32_t s = 0; s < d->w.rank; s++)
        parts[d->w.rank - 1 - s] = f_reshape(im, deformed(im, d, offsets, s), dims, d->w.rank + 2);
    return f_concat(im, parts, d->w.rank, d->w.rank + 1);
}

/* Samples times the mask, as columns [n, group, channels * points, outputs]. */
static dlc_value *deformed_columns(dlc_import *im, const deform *d, dlc_value *x, dlc_value *grid,
                                   dlc_value *mask)
{
    dlc_expr dims[DLC_MAX_RANK] = {d->batch}, n = x->type.dims[0], channels = x->type.dims[1];
    dims[1] = im_size(im, dlc_floordiv(im->pool, channels, im_i64(im, d->offset_group)));
    for (uint32_t s = 0; s < d->w.rank; s++)
        dims[2 + s] = x->type.dims[2 + s];
    dlc_value *y = sample(im, f_reshape(im, x, dims, d->w.rank + 2), grid, NULL, "linear", "zeros");
    if (!y)
        return NULL;
    for (uint32_t s = 0; s < d->w.rank; s++)
        dims[2 + s] = y->type.dims[2 + s];
    dims[1] = im_i64(im, 1);
    if (mask)
        y = f_mul(im, y, f_reshape(im, mask, dims, d->w.rank + 2));
    dlc_expr depth = im_size(im, dlc_floordiv(im->pool, channels, im_i64(im, d->group)));
    const dlc_expr columns[4] = {n, im_i64(im, d->group), dlc_muli(im->pool, depth, d->npoints),
                                 d->noutputs};
    return f_reshape(im, y, columns, 4);
}

void import_deform_conv(dlc_import *im)
{
    deform d = {.group = im_int(im, "group", 1), .offset_group = im_int(im, "offset_group", 1)};
    dlc_value *x = im_in(im, 0), *filter = im_in(im, 1), *offsets = im_in(im, 2);
    int64_t channels;
    if (!im_read_window(im, x, filter, 1, &d.w))
        return;
    if (im_rank(offsets) != im_rank(x) || d.group < 1 || d.offset_group < 1)
        im_fail(im, DLC_INVALID, "groups or offsets do not fit an input of rank %" PRIu32, im_rank(x));
    d.npoints = 1;
    for (uint32_t s = 0; s < d.w.rank && d.npoints <= 1024; s++)
        d.npoints *= d.w.kernel[s];
    if (d.npoints > 1024 || 2 * d.w.rank > DLC_MAX_RANK)
        im_fail(im, DLC_UNSUPPORTED, "a filter of %" PRId64 " points; up to 1024 are possible",
                d.npoints);
    if (!im_is_const(im, filter->type.dims[0], &channels))
        im_fail(im, DLC_UNSUPPORTED, "a number of output channels that only the run knows");
    if (!im_ok(im))
        return;
    d.batch = dlc_muli(im->pool, x->type.dims[0], d.offset_group);
    for (uint32_t s = 0; s < d.w.rank; s++)
        d.out[s] = offsets->type.dims[s + 2];
    d.noutputs = im_product(im, d.out, d.w.rank);
    dlc_value *columns = deformed_columns(im, &d, x, deformed_grid(im, &d, offsets), im_in(im, 4));
    if (!columns)
        return;
    const dlc_expr weights[3] = {im_i64(im, d.group), im_i64(im, channels / d.group),
                                 columns->type.dims[2]};
    dlc_value *y = f_matmul(im, f_reshape(im, filter, weights, 3), columns);
    dlc_expr dims[DLC_MAX_RANK] = {x->type.dims[0], im_i64(im, channels)};
    for (uint32_t s = 0; s < d.w.rank; s++)
        dims[2 + s] = d.out[s];
    y = f_reshape(im, y, dims, d.w.rank + 2);
    im->out[0] = im_in(im, 3) ? f_add(im, y, f_channel(im, im_in(im, 3), d.w.rank + 2, 1)) : y;
}

/* --- MaxUnpool, Col2Im --- */

/* Each element goes where its index says in zeros of the size that pooling came from; output_shape
 * may be larger. */
void import_max_unpool(dlc_import *im)
{
    im_window w;
    dlc_pool *pool = im->pool;
    dlc_value *x = im_in(im, 0), *indices = im_in(im, 1);
    dlc_expr dims[DLC_MAX_RANK], pads[2 * DLC_MAX_RANK];
    uint32_t n = 0, rank = im_rank(x);
    if (!im_read_window(im, x, NULL, 0, &w))
        return;
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = x->type.dims[d];
        if (d < 2)
            continue;
        dlc_expr last = dlc_muli(pool, dlc_addi(pool, dims[d], -1), w.strides[d - 2]);
        dlc_expr pad = dlc_add(pool, w.pads[d - 2], w.pads[w.rank + d - 2]);
        dims[d] = im_size(im, dlc_sub(pool, dlc_addi(pool, last, w.kernel[d - 2]), pad));
    }
    dlc_expr all = im_product(im, dims, rank), given = im_product(im, x->type.dims, rank);
    dlc_value *zeros = f_expand(im, f_like(im, x, 0), &all, 1);
    dlc_value *y = f_node(im, DLC_OP_SCATTER_ELEMENTS,
                          F_IN(zeros, f_reshape(im, indices, &given, 1), f_reshape(im, x, &given, 1)),
                          F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 0)));
    y = f_reshape(im, y, dims, rank);
    const dlc_expr *sizes = im_in(im, 2) ? im_elements(im, im_in(im, 2), 0, INT32_MAX, &n) : NULL;
    if (sizes && n != rank)
        im_fail(im, DLC_INVALID, "output_shape has %" PRIu32 " entries; %" PRIu32 " are wanted", n, rank);
    if (sizes && im_ok(im)) {
        for (uint32_t d = 0; d < rank; d++) {
            pads[d] = im_i64(im, 0);
            pads[rank + d] = im_size(im, dlc_sub(pool, sizes[d], dims[d]));
        }
        y = f_node(im, DLC_OP_PAD, F_IN(y), F_ATTRS(dlc_attr_dims(DLC_ATTR_PADS, pads, 2 * rank)));
    }
    im->out[0] = y;
}

static void read_ints(dlc_import *im, const char *name, uint32_t n, int64_t otherwise, int64_t *out)
{
    uint32_t given;
    const int64_t *list = im_ints(im, name, &given);
    if (list && given != n)
        im_fail(im, DLC_INVALID, "%s has %" PRIu32 " entries; %" PRIu32 " are wanted", name, given, n);
    for (uint32_t i = 0; i < n && im_ok(im); i++)
        out[i] = list ? list[i] : otherwise;
}

/* x [n, c * block, windows]: the windows of an image, which are added up where they overlap. */
void import_col2im(dlc_import *im)
{
    dlc_pool *pool = im->pool;
    dlc_value *x = im_in(im, 0);
    uint32_t n, m;
    const dlc_expr *sizes = im_elements(im, im_in(im, 1), 0, INT32_MAX, &n);
    const dlc_expr *block = im_elements(im, im_in(im, 2), 1, INT32_MAX, &m);
    if (!sizes || !block)
        return;
    if (n != m || !n || 2 * n + 2 > DLC_MAX_RANK || im_rank(x) != 3) {
        im_fail(im, DLC_UNSUPPORTED, "an image of %" PRIu32 " dimensions, blocks of %" PRIu32
                " and an input of rank %" PRIu32 "; up to 3 dimensions and rank 3 are possible",
                n, m, im_rank(x));
        return;
    }
    int64_t strides[DLC_MAX_RANK], dilations[DLC_MAX_RANK], pads[2 * DLC_MAX_RANK];
    read_ints(im, "strides", n, 1, strides);
    read_ints(im, "dilations", n, 1, dilations);
    read_ints(im, "pads", 2 * n, 0, pads);
    if (!im_ok(im))
        return;
    dlc_expr dims[DLC_MAX_RANK] = {x->type.dims[0]};
    dims[1] = im_size(im, dlc_floordiv(pool, x->type.dims[1], im_product(im, block, n)));
    for (uint32_t d = 0; d < n; d++) {
        dlc_expr reach = dlc_muli(pool, dlc_addi(pool, block[d], -1), dilations[d]);
        dlc_expr room = dlc_sub(pool, dlc_addi(pool, sizes[d], pads[d] + pads[n + d] - 1), reach);
        dims[2 + d] = block[d];
        dims[2 + n + d] = im_size(im, dlc_addi(
            pool, dlc_floordiv(pool, room, im_i64(im, strides[d])), 1));
    }
    im->out[0] = f_node(im, DLC_OP_COL2IM, F_IN(f_reshape(im, x, dims, 2 * n + 2)),
                        F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, sizes, n),
                                dlc_attr_ints(im->graph, DLC_ATTR_STRIDES, strides, n),
                                dlc_attr_ints(im->graph, DLC_ATTR_DILATIONS, dilations, n),
                                dlc_attr_ints(im->graph, DLC_ATTR_PADS, pads, 2 * n)));
}

/*
 * Windows over spatial dimensions: convolution, its transpose, pooling. What ONNX leaves implicit
 * (auto_pad, ceil_mode, output_shape) becomes explicit pads and sizes here; both may be expressions
 * over symbols.
 */
#include "frontend/import_window.h"

#include <inttypes.h>
#include <string.h>

/* Any of n outside of [least, 2^31). */
static int has_value_below(const int64_t *values, uint32_t n, int64_t least)
{
    for (uint32_t i = 0; i < n; i++) {
        if (values[i] < least || values[i] > INT32_MAX)
            return 1;
    }
    return 0;
}

/* An attribute of n entries, each at least `least`, or all `otherwise`. */
static void read_list(dlc_import *im, const char *name, uint32_t n, int64_t least,
                      int64_t otherwise, int64_t *out)
{
    uint32_t found;
    const int64_t *given = im_ints(im, name, &found);
    for (uint32_t i = 0; i < n; i++)
        out[i] = given && i < found ? given[i] : otherwise;
    if (given && found != n)
        im_fail(im, DLC_INVALID, "%s has %" PRIu32 " entries; %" PRIu32 " are wanted", name, found,
                n);
    else if (given && has_value_below(given, n, least))
        im_fail(im, DLC_INVALID, "%s has an entry outside of [%" PRId64 ", 2^31)", name, least);
}

dlc_expr im_window_extent(dlc_import *im, const im_window *w, uint32_t i)
{
    return im_i64(im, (w->kernel[i] - 1) * w->dilations[i] + 1);
}

static dlc_expr ceil_div(dlc_import *im, dlc_expr a, int64_t b)
{
    return dlc_floordiv(im->pool, dlc_addi(im->pool, a, b - 1), im_i64(im, b));
}

/* SAME: as many outputs as the stride allows; the odd element of padding goes to the end (UPPER) or
 * the beginning. */
static void same_pads(dlc_import *im, const dlc_value *x, im_window *w)
{
    dlc_pool *pool = im->pool;
    for (uint32_t i = 0; i < w->rank; i++) {
        dlc_expr in = x->type.dims[i + 2], out = ceil_div(im, in, w->strides[i]);
        dlc_expr span = dlc_add(pool, dlc_muli(pool, dlc_addi(pool, out, -1), w->strides[i]),
                                im_window_extent(im, w, i));
        dlc_expr total = dlc_max(pool, dlc_sub(pool, span, in), im_i64(im, 0));
        dlc_expr less = dlc_floordiv(pool, total, im_i64(im, 2)), more = dlc_sub(pool, total, less);
        w->pads[i] = im_size(im, w->is_lower ? more : less);
        w->pads[w->rank + i] = im_size(im, w->is_lower ? less : more);
    }
}

static void explicit_pads(dlc_import *im, im_window *w)
{
    int64_t pads[2 * DLC_MAX_RANK];
    read_list(im, "pads", 2 * w->rank, 0, 0, pads);
    for (uint32_t i = 0; i < 2 * w->rank; i++)
        w->pads[i] = im_i64(im, pads[i]);
}

static void read_kernel(dlc_import *im, const dlc_value *filter, im_window *w)
{
    read_list(im, "kernel_shape", w->rank, 1, 1, w->kernel);
    if (!filter && !im_has(im, "kernel_shape"))
        im_fail(im, DLC_INVALID, "attribute 'kernel_shape' is required");
    for (uint32_t i = 0; filter && i < w->rank && i + 2 < im_rank(filter); i++) {
        int64_t size;
        if (!im_is_const(im, filter->type.dims[i + 2], &size))
            im_fail(im, DLC_UNSUPPORTED, "the filter's spatial sizes must be known");
        else if (im_has(im, "kernel_shape") && size != w->kernel[i])
            im_fail(im, DLC_INVALID,
                    "kernel_shape[%" PRIu32 "] is %" PRId64 "; the filter has %" PRId64, i,
                    w->kernel[i], size);
        else
            w->kernel[i] = size;
    }
}

int im_read_window(dlc_import *im, const dlc_value *x, const dlc_value *filter, int has_dilations,
                   im_window *w)
{
    const char *mode = im_choice(im, "auto_pad", "NOTSET", "NOTSET|SAME_UPPER|SAME_LOWER|VALID");
    *w = (im_window){.rank = im_rank(x) >= 2 ? im_rank(x) - 2 : 0};
    if (im_rank(x) < 3)
        im_fail(im, DLC_INVALID,
                "the input has rank %" PRIu32 "; n, c and spatial dimensions are wanted",
                im_rank(x));
    else if (filter && im_rank(filter) != im_rank(x))
        im_fail(im, DLC_INVALID, "the filter has rank %" PRIu32 ", the input %" PRIu32,
                im_rank(filter), im_rank(x));
    if (!im_ok(im) || !mode)
        return 0;
    w->is_same = mode[0] == 'S';
    w->is_lower = strcmp(mode, "SAME_LOWER") == 0;
    read_list(im, "strides", w->rank, 1, 1, w->strides);
    for (uint32_t i = 0; i < w->rank; i++)
        w->dilations[i] = 1;
    if (has_dilations)
        read_list(im, "dilations", w->rank, 1, 1, w->dilations);
    read_kernel(im, filter, w);
    explicit_pads(im, w);
    if (!im_ok(im))
        return 0;
    for (uint32_t i = 0; mode[0] == 'V' && i < 2 * w->rank; i++)
        w->pads[i] = im_i64(im, 0); /* auto_pad overrules pads */
    if (w->is_same)
        same_pads(im, x, w);
    return 1;
}

uint32_t im_window_attrs(dlc_import *im, const im_window *w, dlc_attr *attrs)
{
    attrs[0] = dlc_attr_dims(DLC_ATTR_PADS, w->pads, 2 * w->rank);
    attrs[1] = dlc_attr_ints(im->graph, DLC_ATTR_STRIDES, w->strides, w->rank);
    attrs[2] = dlc_attr_ints(im->graph, DLC_ATTR_DILATIONS, w->dilations, w->rank);
    return 3;
}

/* --- convolution --- */

dlc_value *im_conv(dlc_import *im, const im_window *w, dlc_value *x, dlc_value *filter,
                   int64_t group)
{
    dlc_attr attrs[4];
    uint32_t n = im_window_attrs(im, w, attrs);
    attrs[n++] = dlc_attr_int(DLC_ATTR_GROUP, group);
    return f_node(im, DLC_OP_CONV, F_IN(x, filter), attrs, n);
}

static dlc_value *add_bias(dlc_import *im, dlc_value *y, dlc_value *bias)
{
    if (!bias || !y)
        return y;
    if (im_rank(bias) != 1 ||
        !im_same_dim(im, bias->type.dims[0], y->type.dims[1], "bias and output channels")) {
        if (im_ok(im))
            im_fail(im, DLC_INVALID, "the bias has rank %" PRIu32 "; 1 is wanted", im_rank(bias));
        return NULL;
    }
    return f_add(im, y, f_channel(im, bias, im_rank(y), 1));
}

void import_conv(dlc_import *im)
{
    im_window w;
    int64_t group = im_int(im, "group", 1);
    if (im_read_window(im, im_in(im, 0), im_in(im, 1), 1, &w))
        im->out[0] = add_bias(im, im_conv(im, &w, im_in(im, 0), im_in(im, 1), group), im_in(im, 2));
}

/* Pads such that the output has the size asked for: total = stride * (in - 1) + extra + extent -
 * out, which extend() keeps from being negative. */
static void pads_for_shape(dlc_import *im, const dlc_value *x, const int64_t *shape,
                           const int64_t *extra, im_window *w)
{
    dlc_pool *pool = im->pool;
    for (uint32_t i = 0; i < w->rank; i++) {
        dlc_expr out =
            shape ? im_i64(im, shape[i]) : dlc_muli(pool, x->type.dims[i + 2], w->strides[i]);
        dlc_expr reach = dlc_muli(pool, dlc_addi(pool, x->type.dims[i + 2], -1), w->strides[i]);
        dlc_expr full = dlc_addi(pool, dlc_add(pool, reach, im_window_extent(im, w, i)), extra[i]);
        dlc_expr total = im_simple(im, dlc_sub(pool, full, out));
        dlc_expr less = dlc_floordiv(pool, total, im_i64(im, 2)), more = dlc_sub(pool, total, less);
        w->pads[i] = im_size(im, w->is_same && !w->is_lower ? less : more);
        w->pads[w->rank + i] = im_size(im, w->is_same && !w->is_lower ? more : less);
    }
}

/* The output may be asked to be larger than input and filter reach; the rest is output_padding. It
 * has no symbols, so a size that is only known at run time must reach the output_shape by itself;
 * SAME asks for stride * in, whatever that is. */
static void extend(dlc_import *im, const dlc_value *x, const int64_t *shape, int64_t *extra,
                   const im_window *w)
{
    for (uint32_t i = 0; i < w->rank; i++) {
        int64_t lacking;
        dlc_expr in = x->type.dims[i + 2],
                 out = shape ? im_i64(im, shape[i]) : dlc_muli(im->pool, in, w->strides[i]);
        dlc_expr steps = dlc_muli(im->pool, dlc_addi(im->pool, in, -1), w->strides[i]);
        dlc_expr reach =
            dlc_addi(im->pool, dlc_add(im->pool, steps, im_window_extent(im, w, i)), extra[i]);
        if (!im_is_const(im, im_simple(im, dlc_sub(im->pool, out, reach)), &lacking))
            dlc_graph_require(im->graph, dlc_le(im->pool, out, reach),
                              "node '%s': output_shape[%" PRIu32 "] is more than its input reaches",
                              im->origin->name, i);
        else if (lacking > 0)
            extra[i] += lacking;
    }
}

void import_conv_transpose(dlc_import *im)
{
    im_window w;
    dlc_value *x = im_in(im, 0);
    uint32_t n;
    int64_t group = im_int(im, "group", 1), extra[DLC_MAX_RANK];
    if (!im_read_window(im, x, im_in(im, 1), 1, &w))
        return;
    read_list(im, "output_padding", w.rank, 0, 0, extra);
    const int64_t *shape = im_ints(im, "output_shape", &n);
    if (shape && n == w.rank + 2) /* with batch and channels, as some exporters write it */
        shape += 2;
    else if (shape && n != w.rank)
        im_fail(im, DLC_INVALID, "output_shape has %" PRIu32 " entries; %" PRIu32 " are wanted", n,
                w.rank);
    if (!im_ok(im))
        return;
    if (shape && has_value_below(shape, w.rank, 0))
        im_fail(im, DLC_INVALID, "output_shape has an entry outside of [0, 2^31)");
    if (!im_ok(im))
        return;
    if (shape || w.is_same) {
        extend(im, x, shape, extra, &w);
        pads_for_shape(im, x, shape, extra, &w);
    }
    dlc_attr attrs[5];
    uint32_t nattrs = im_window_attrs(im, &w, attrs);
    attrs[nattrs++] = dlc_attr_int(DLC_ATTR_GROUP, group);
    attrs[nattrs++] = dlc_attr_ints(im->graph, DLC_ATTR_OUTPUT_PADDING, extra, w.rank);
    im->out[0] = add_bias(
        im, f_node(im, DLC_OP_CONV_TRANSPOSE, F_IN(x, im_in(im, 1)), attrs, nattrs), im_in(im, 2));
}

/* --- pooling --- */

/* How many windows: floor, or ceil without a last window that would start in the padding behind the
 * input. A window that lacks no more than a stride fits no time. */
static void pool_sizes(dlc_import *im, const dlc_value *x, const im_window *w, int is_ceil,
                       dlc_expr *sizes)
{
    dlc_pool *pool = im->pool;
    for (uint32_t i = 0; i < w->rank; i++) {
        dlc_expr in = x->type.dims[i + 2], before = dlc_add(pool, in, w->pads[i]);
        dlc_expr room =
            dlc_sub(pool, dlc_add(pool, before, w->pads[w->rank + i]), im_window_extent(im, w, i));
        dlc_expr stride = im_i64(im, w->strides[i]);
        int64_t known;
        if (w->is_same) {
            sizes[i] = im_size(im, ceil_div(im, in, w->strides[i]));
            continue;
        }
        dlc_expr n = dlc_addi(
            pool, is_ceil ? ceil_div(im, room, w->strides[i]) : dlc_floordiv(pool, room, stride),
            1);
        if (is_ceil) {
            dlc_expr last = dlc_mul(pool, dlc_addi(pool, n, -1), stride);
            n = dlc_select(pool, dlc_le(pool, before, last), dlc_addi(pool, n, -1), n);
        }
        if (im_is_const(im, n, &known) && known < 0)
            im_fail(im, DLC_INVALID,
                    "spatial dimension %" PRIu32 ": the window is larger than the padded input", i);
        dlc_graph_require(im->graph, dlc_le(pool, im_i64(im, 0), n),
                          "node '%s': its window is larger than the padded input",
                          im->origin->name);
        sizes[i] = im_size(im, n);
    }
}

static uint32_t pool_attrs(dlc_import *im, const im_window *w, int is_ceil, dlc_expr *sizes,
                           dlc_attr *attrs)
{
    uint32_t n = im_window_attrs(im, w, attrs);
    pool_sizes(im, im_in(im, 0), w, is_ceil, sizes);
    attrs[n++] = dlc_attr_ints(im->graph, DLC_ATTR_KERNEL, w->kernel, w->rank);
    attrs[n++] = dlc_attr_dims(DLC_ATTR_DIMS, sizes, w->rank);
    return n;
}

void import_max_pool(dlc_import *im)
{
    im_window w;
    dlc_attr attrs[8];
    dlc_expr sizes[DLC_MAX_RANK];
    int64_t is_ceil = im->opset >= 10 ? im_int(im, "ceil_mode", 0) : 0;
    int64_t order = im->opset >= 8 ? im_int(im, "storage_order", 0) : 0;
    dlc_value *x = im_in(im, 0);
    if (order != 0 && order != 1)
        im_fail(im, DLC_INVALID, "storage_order is %" PRId64 "; 0 and 1 are possible", order);
    if (!im_read_window(im, x, NULL, im->opset >= 10, &w))
        return;
    uint32_t n = pool_attrs(im, &w, is_ceil != 0, sizes, attrs);
    attrs[n++] = dlc_attr_text(DLC_ATTR_MODE, order ? "column" : "row");
    dlc_node *node =
        im_ok(im) ? f_node_with(im, DLC_OP_MAX_POOL, &x, 1, im_wants(im, 1) ? 2 : 1, attrs, n)
                  : NULL;
    for (uint32_t i = 0; node && i < node->noutputs; i++)
        im->out[i] = node->outputs[i];
}

void import_average_pool(dlc_import *im)
{
    im_window w;
    dlc_attr attrs[8];
    dlc_expr sizes[DLC_MAX_RANK];
    int64_t is_ceil = im->opset >= 10 ? im_int(im, "ceil_mode", 0) : 0,
            count_pad = im_int(im, "count_include_pad", 0);
    if (!im_read_window(im, im_in(im, 0), NULL, im->opset >= 19, &w))
        return;
    uint32_t n = pool_attrs(im, &w, is_ceil != 0, sizes, attrs);
    attrs[n++] = dlc_attr_int(DLC_ATTR_COUNT_PAD, count_pad != 0);
    if (im_ok(im))
        im->out[0] = f_node(im, DLC_OP_AVG_POOL, F_IN(im_in(im, 0)), attrs, n);
}

/* Which norm; a float in opset 1, where fractions are not supported. */
static int64_t read_p(dlc_import *im)
{
    double p = im->opset >= 2 ? (double)im_int(im, "p", 2) : im_float(im, "p", 2);
    if (p >= 1 && p <= 1 << 20 && p == (double)(int64_t)p)
        return (int64_t)p;
    im_fail(im, p < 1 ? DLC_INVALID : DLC_UNSUPPORTED, "p is %g; whole numbers from 1 on are supported", p);
    return 0;
}

void import_lp_pool(dlc_import *im)
{
    im_window w;
    dlc_attr attrs[8];
    dlc_expr sizes[DLC_MAX_RANK];
    int64_t is_ceil = im->opset >= 18 ? im_int(im, "ceil_mode", 0) : 0, p = read_p(im);
    if (!p || !im_read_window(im, im_in(im, 0), NULL, im->opset >= 18, &w))
        return;
    uint32_t n = pool_attrs(im, &w, is_ceil != 0, sizes, attrs);
    attrs[n++] = dlc_attr_int(DLC_ATTR_P, p);
    if (im_ok(im))
        im->out[0] = f_node(im, DLC_OP_LP_POOL, F_IN(im_in(im, 0)), attrs, n);
}

static dlc_value *reduce_spatial(dlc_import *im, dlc_opcode op, dlc_value *x)
{
    if (x && im_rank(x) < 3) {
        im_fail(im, DLC_INVALID,
                "the input has rank %" PRIu32 "; n, c and spatial dimensions are wanted",
                im_rank(x));
        return NULL;
    }
    return x ? f_reduce_last(im, op, x, im_rank(x) - 2, 1) : NULL;
}

void import_global_pool(dlc_import *im)
{
    im->out[0] = reduce_spatial(im, (dlc_opcode)im->row->argument, im_in(im, 0));
}

void import_global_lp_pool(dlc_import *im)
{
    int64_t p = read_p(im);
    dlc_value *x = p ? f_unary(im, DLC_OP_ABS, im_in(im, 0)) : NULL;
    if (p == 1)
        im->out[0] = reduce_spatial(im, DLC_OP_REDUCE_SUM, x);
    else if (x && p == 2)
        im->out[0] =
            f_unary(im, DLC_OP_SQRT, reduce_spatial(im, DLC_OP_REDUCE_SUM, f_mul(im, x, x)));
    else if (x)
        im->out[0] = f_binary(im, DLC_OP_POW,
                              reduce_spatial(im, DLC_OP_REDUCE_SUM,
                                             f_binary(im, DLC_OP_POW, x, f_like(im, x, (double)p))),
                              f_like(im, x, 1.0 / (double)p));
}

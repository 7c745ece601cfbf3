/*
 * Result types of what slides a window over the spatial dimensions of n,c,s…: convolution, its
 * transpose, pooling. One dimension: out = (in + before + after - (dilation * (kernel - 1) + 1))
 * floordiv stride + 1.
 */
#include "ir/graph/infer.h"

enum { MAX_SPATIAL = DLC_MAX_RANK - 3 }; /* groups of a convolution take one dimension more */
#define SIZE_LIMIT                                                                                 \
    ((int64_t)INT32_MAX) /* kernels, strides, dilations, pads: products of two fit an i64 */

typedef struct {
    uint8_t rank; /* spatial dimensions */
    int64_t strides[MAX_SPATIAL], dilations[MAX_SPATIAL];
    const dlc_expr *pads; /* NULL: none; before[rank], after[rank] */
} window;

static dlc_status read_window(dlc_graph *graph, const dlc_node *node, window *w)
{
    const dlc_type *x = dlc_infer_in(node, 0);
    if (x->rank < 3)
        return DLC_REFUSE("input 0 is %s; %s takes n,c and one spatial dimension or more",
                          dlc_type_text(graph, x), dlc_ops[node->op].text);
    if (x->rank - 2 > MAX_SPATIAL)
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "%d spatial dimensions; up to %d are possible", x->rank - 2, MAX_SPATIAL);
    *w = (window){.rank = (uint8_t)(x->rank - 2)};
    uint32_t n;
    DLC_TRY(dlc_infer_ints(graph, node, DLC_ATTR_STRIDES, w->rank, 1, SIZE_LIMIT, 1, w->strides));
    DLC_TRY(
        dlc_infer_ints(graph, node, DLC_ATTR_DILATIONS, w->rank, 1, SIZE_LIMIT, 1, w->dilations));
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_PADS, 2u * w->rank, 0, SIZE_LIMIT));
    w->pads = dlc_node_dims(node, DLC_ATTR_PADS, &n);
    return DLC_OK;
}

static dlc_expr total_pad(dlc_graph *graph, const window *w, uint8_t s)
{
    return w->pads ? dlc_add(graph->pool, w->pads[s], w->pads[w->rank + s])
                   : dlc_expr_i64(graph->pool, 0);
}

/* dilation * (kernel - 1) + 1 */
static dlc_expr window_extent(dlc_graph *graph, const window *w, uint8_t s, dlc_expr kernel)
{
    return dlc_addi(graph->pool,
                    dlc_muli(graph->pool, dlc_addi(graph->pool, kernel, -1), w->dilations[s]), 1);
}

/* How many windows fit into dimension s of the input. */
static dlc_status count_windows(dlc_graph *graph, const dlc_node *node, const window *w, uint8_t s,
                                dlc_expr kernel, dlc_expr *result)
{
    dlc_pool *pool = graph->pool;
    dlc_expr in = dlc_infer_in(node, 0)->dims[s + 2], pad = total_pad(graph, w, s);
    dlc_expr extent = window_extent(graph, w, s, kernel);
    dlc_expr room = dlc_sub(pool, dlc_add(pool, in, pad), extent);
    int64_t known;
    if (dlc_expr_is_int(pool, room, &known) && known < 0)
        return DLC_REFUSE("spatial dimension %d: a window of %s is larger than the %s of the input "
                          "plus %s of padding",
                          s, dlc_dim_text(graph, extent), dlc_dim_text(graph, in),
                          dlc_dim_text(graph, pad));
    if (!dlc_expr_is_int(pool, room, &known))
        dlc_graph_require(graph, dlc_le(pool, dlc_expr_i64(pool, 0), room),
                          "node '%.200s': spatial dimension %d: a window of %s must fit into %s "
                          "plus %s of padding",
                          dlc_infer_name(node), s, dlc_dim_text(graph, extent),
                          dlc_dim_text(graph, in), dlc_dim_text(graph, pad));
    *result = dlc_addi(pool, dlc_floordiv(pool, room, dlc_expr_i64(pool, w->strides[s])), 1);
    return DLC_OK;
}

/* A constant number, positive, of a filter's dimension. */
static dlc_status filter_dim(dlc_graph *graph, const dlc_node *node, uint8_t d, int64_t lo,
                             int64_t *result)
{
    const dlc_type *w = dlc_infer_in(node, 1);
    if (!dlc_expr_is_int(graph->pool, w->dims[d], result))
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "filter dimension %d is %s; a constant size is wanted", d,
                        dlc_dim_text(graph, w->dims[d]));
    if (*result < lo || *result > SIZE_LIMIT)
        return DLC_REFUSE("filter dimension %d is %" PRId64 "; at least %" PRId64 " is wanted", d,
                          *result, lo);
    return DLC_OK;
}

/* Channels of the input; where only the run knows them, as many as the filter takes. of_group: its dimension 1 has those of a group;
 * else its dimension 0 all. */
static dlc_status input_channels(dlc_graph *graph, const dlc_node *node, int of_group, int64_t group, int64_t *channels)
{
    dlc_expr dim = dlc_infer_in(node, 0)->dims[1], same;
    if (dlc_expr_is_int(graph->pool, dim, channels))
        return DLC_OK;
    DLC_TRY(filter_dim(graph, node, of_group ? 1 : 0, 0, channels));
    if (of_group && (group < 1 || !dlc_mul_i64(*channels, group, channels)))
        return DLC_REFUSE("group = %" PRId64 "; at least 1 is wanted", group);
    return dlc_infer_equal(graph, node, dim, dlc_expr_i64(graph->pool, *channels), "channels of the input and those that the filter takes",
                           &same);
}

/* Ranks agree, kernel sizes are positive constants, group divides what it splits. of_group as above. */
static dlc_status check_filter(dlc_graph *graph, const dlc_node *node, int of_group, int64_t *channels,
                               int64_t *group)
{
    const dlc_type *x = dlc_infer_in(node, 0), *w = dlc_infer_in(node, 1);
    int64_t dim;
    dlc_dtype dtype;
    DLC_TRY(dlc_infer_sum(graph, node, 2, &dtype));
    if (x->rank != w->rank)
        return DLC_REFUSE("the filter has %d dimensions; the input has %d", w->rank, x->rank);
    for (uint8_t d = 0; d < w->rank; d++)
        DLC_TRY(filter_dim(graph, node, d, d >= 2, &dim));
    *group = dlc_node_int(node, DLC_ATTR_GROUP, 1);
    DLC_TRY(input_channels(graph, node, of_group, *group, channels));
    if (*group < 1 || *channels % *group != 0)
        return DLC_REFUSE("group = %" PRId64 " does not divide the %" PRId64 " input channels",
                          *group, *channels);
    return DLC_OK;
}

dlc_status dlc_infer_conv(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0), *w = dlc_infer_in(node, 1);
    window win;
    int64_t channels, group, oc, ic;
    DLC_TRY(read_window(graph, node, &win));
    DLC_TRY(check_filter(graph, node, 1, &channels, &group));
    DLC_TRY(filter_dim(graph, node, 0, 0, &oc));
    DLC_TRY(filter_dim(graph, node, 1, 0, &ic));
    if (oc % group != 0)
        return DLC_REFUSE("group = %" PRId64 " does not divide the %" PRId64 " output channels",
                          group, oc);
    if (ic != channels / group)
        return DLC_REFUSE("the filter takes %" PRId64 " channels per group; the input has %" PRId64
                          " in %" PRId64 " groups",
                          ic, channels, group);
    *result = (dlc_type){.rank = x->rank, .dims = {x->dims[0], w->dims[0]}};
    DLC_TRY(dlc_infer_sum(graph, node, 2, &result->dtype));
    for (uint8_t s = 0; s < win.rank; s++)
        DLC_TRY(count_windows(graph, node, &win, s, w->dims[s + 2], &result->dims[s + 2]));
    return DLC_OK;
}

/* out = (in - 1) * stride + output_padding + dilation * (kernel - 1) + 1 - before - after */
static dlc_status transposed_dim(dlc_graph *graph, const dlc_node *node, const window *win,
                                 uint8_t s, int64_t extra, dlc_expr *result)
{
    dlc_pool *pool = graph->pool;
    dlc_expr in = dlc_infer_in(node, 0)->dims[s + 2], kernel = dlc_infer_in(node, 1)->dims[s + 2];
    dlc_expr reach = dlc_muli(pool, dlc_addi(pool, in, -1), win->strides[s]);
    dlc_expr full =
        dlc_addi(pool, dlc_add(pool, reach, window_extent(graph, win, s, kernel)), extra);
    *result = dlc_sub(pool, full, total_pad(graph, win, s));
    int64_t known;
    if (dlc_expr_is_int(pool, *result, &known) && known < 0)
        return DLC_REFUSE(
            "spatial dimension %d: %s of padding is more than the %s that the input spans", s,
            dlc_dim_text(graph, total_pad(graph, win, s)), dlc_dim_text(graph, full));
    if (!dlc_expr_is_int(pool, *result, &known))
        dlc_graph_require(graph, dlc_le(pool, dlc_expr_i64(pool, 0), *result),
                          "node '%.200s': spatial dimension %d: an output of %s elements, at an input of %s, must have 0 or more",
                          dlc_infer_name(node), s, dlc_dim_text(graph, *result), dlc_dim_text(graph, in));
    return DLC_OK;
}

dlc_status dlc_infer_conv_transpose(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0);
    window win;
    int64_t channels, group, oc, ic, extra[MAX_SPATIAL];
    DLC_TRY(read_window(graph, node, &win));
    DLC_TRY(
        dlc_infer_ints(graph, node, DLC_ATTR_OUTPUT_PADDING, win.rank, 0, SIZE_LIMIT, 0, extra));
    DLC_TRY(check_filter(graph, node, 0, &channels, &group));
    DLC_TRY(filter_dim(graph, node, 0, 0, &ic));
    DLC_TRY(filter_dim(graph, node, 1, 0, &oc));
    if (ic != channels)
        return DLC_REFUSE("the filter takes %" PRId64 " channels; the input has %" PRId64, ic,
                          channels);
    if (!dlc_mul_i64(oc, group, &oc))
        return DLC_REFUSE("%" PRId64 " output channels in each of %" PRId64 " groups are too many",
                          oc, group);
    *result = (dlc_type){
        .dtype = x->dtype, .rank = x->rank, .dims = {x->dims[0], dlc_expr_i64(graph->pool, oc)}};
    for (uint8_t s = 0; s < win.rank; s++)
        DLC_TRY(transposed_dim(graph, node, &win, s, extra[s], &result->dims[s + 2]));
    return DLC_OK;
}

/*
 * The importer says how many windows there are (floor, ceil and SAME differ); what is possible: the
 * last one starts before the padded end, so that none lies wholly in what is not there.
 */
static dlc_status check_stated(dlc_graph *graph, const dlc_node *node, const window *win, uint8_t s,
                               dlc_expr stated)
{
    dlc_pool *pool = graph->pool;
    dlc_expr in = dlc_infer_in(node, 0)->dims[s + 2],
             padded = dlc_add(pool, in, total_pad(graph, win, s));
    int64_t count, size;
    if (!dlc_expr_is_int(pool, stated, &count) || !dlc_expr_is_int(pool, padded, &size) ||
        count == 0)
        return DLC_OK;
    if (count > SIZE_LIMIT || (count - 1) * win->strides[s] >= size)
        return DLC_REFUSE("spatial dimension %d: %" PRId64 " windows at stride %" PRId64
                          " leave the %s of the padded input",
                          s, count, win->strides[s], dlc_dim_text(graph, padded));
    return DLC_OK;
}

dlc_status dlc_infer_pool(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0);
    window win;
    int64_t kernel[MAX_SPATIAL];
    uint32_t ndims;
    DLC_TRY(read_window(graph, node, &win));
    DLC_TRY(dlc_infer_ints(graph, node, DLC_ATTR_KERNEL, win.rank, 1, SIZE_LIMIT, 1, kernel));
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_DIMS, win.rank, 0, SIZE_LIMIT));
    if (dlc_node_attr(node, DLC_ATTR_P) && dlc_node_int(node, DLC_ATTR_P, 0) < 1)
        return DLC_REFUSE("p = %" PRId64 "; a norm has p >= 1", dlc_node_int(node, DLC_ATTR_P, 0));
    const dlc_expr *stated = dlc_node_dims(node, DLC_ATTR_DIMS, &ndims);
    *result = (dlc_type){.dtype = x->dtype, .rank = x->rank, .dims = {x->dims[0], x->dims[1]}};
    for (uint8_t s = 0; s < win.rank; s++) {
        if (stated) {
            result->dims[s + 2] = stated[s];
            DLC_TRY(check_stated(graph, node, &win, s, stated[s]));
            continue;
        }
        DLC_TRY(count_windows(graph, node, &win, s, dlc_expr_i64(graph->pool, kernel[s]),
                              &result->dims[s + 2]));
    }
    if (node->noutputs > 1) {
        result[1] = result[0];
        result[1].dtype = DLC_I64;
    }
    return DLC_OK;
}

/* x n,c,k…,o…: as many places o as windows k fit into the padded image. */
dlc_status dlc_infer_col2im(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0);
    dlc_pool *pool = graph->pool;
    uint32_t n;
    const dlc_expr *dims = dlc_node_dims(node, DLC_ATTR_DIMS, &n);
    window win = {.rank = (uint8_t)n};
    if (n > MAX_SPATIAL || x->rank != 2 * n + 2)
        return DLC_REFUSE("%" PRIu32 " dimensions of an image whose windows have rank %d", n, x->rank);
    DLC_TRY(dlc_infer_ints(graph, node, DLC_ATTR_STRIDES, n, 1, SIZE_LIMIT, 1, win.strides));
    DLC_TRY(dlc_infer_ints(graph, node, DLC_ATTR_DILATIONS, n, 1, SIZE_LIMIT, 1, win.dilations));
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_PADS, 2 * n, 0, SIZE_LIMIT));
    win.pads = dlc_node_dims(node, DLC_ATTR_PADS, &n);
    *result = (dlc_type){
        .dtype = x->dtype, .rank = (uint8_t)(win.rank + 2), .dims = {x->dims[0], x->dims[1]}};
    for (uint8_t s = 0; s < win.rank; s++) {
        dlc_expr extent = window_extent(graph, &win, s, x->dims[2 + s]), same;
        dlc_expr room = dlc_sub(pool, dlc_add(pool, dims[s], total_pad(graph, &win, s)), extent);
        dlc_expr count = dlc_floordiv(pool, room, dlc_expr_i64(pool, win.strides[s]));
        DLC_TRY(dlc_infer_equal(graph, node, x->dims[2 + win.rank + s], dlc_addi(pool, count, 1),
                                "numbers of windows", &same));
        result->dims[2 + s] = dims[s];
    }
    return DLC_OK;
}

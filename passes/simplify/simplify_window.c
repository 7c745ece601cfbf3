/*
 * Windows of constant weights that are something simpler.
 *
 * Taps of a convolution that meet nothing but padding wherever the window stands, as those of wide dilations on small images do,
 * are cut off its weights: a 3x3 convolution of dilation 24 over 6x6 is one of 1x1. A transposed convolution whose windows do not
 * step apart is a convolution by the taps the other way round; of an image of one point it is a product, by the taps that the result has
 * room for. A convolution of few channels in f16 is one in f32, whose image becomes that once, with its border, and is read where it lies; its
 * sums are of f32 either way.
 */
#include "passes/simplify/const_fold.h"
#include "passes/simplify/simplify.h"

#include <string.h>

/* A spatial dimension: the taps first to last of `taps` stay. */
typedef struct {
    int64_t taps, first, last, before, after, stride, dilation;
} window;

/* All taps from the first to the last that meets the image; none is cut where padding would have to be negative. */
static void find_taps(window *w, int64_t image, int64_t places)
{
    int64_t reach = (places - 1) * w->stride;
    while (w->first < w->last && (w->first + 1) * w->dilation <= w->before && w->first * w->dilation - w->before + reach < 0)
        w->first++;
    while (w->last > w->first && (w->taps - w->last) * w->dilation <= w->after && w->last * w->dilation - w->before >= image)
        w->last--;
}

enum { MOST = 1 << 20 }; /* sizes beyond are nobody's, and products of them would not fit */

/* All taps along dimension d of the image; false: a number is not known. */
static int read_window(const dlc_graph *graph, const dlc_node *node, uint32_t d, window *w)
{
    uint32_t rank = node->inputs[0]->type.rank - 2u;
    *w = (window){.before = dlc_node_number(graph, node, DLC_ATTR_PADS, d, 0), .after = dlc_node_number(graph, node, DLC_ATTR_PADS, rank + d, 0),
                  .stride = dlc_node_number(graph, node, DLC_ATTR_STRIDES, d, 1),
                  .dilation = dlc_node_number(graph, node, DLC_ATTR_DILATIONS, d, 1)};
    w->taps = dlc_expr_value(graph->pool, node->inputs[1]->type.dims[d + 2]);
    w->last = w->taps - 1;
    return w->before >= 0 && w->after >= 0 && w->stride > 0 && w->dilation > 0 && w->taps > 0 && w->before < MOST && w->after < MOST &&
           w->stride < MOST && w->dilation < MOST && w->taps < MOST;
}

/* What stays along dimension d of the image; all of it where sizes are not known. */
static window window_of(const dlc_graph *graph, const dlc_node *node, uint32_t d)
{
    const dlc_type *image = &node->inputs[0]->type, *result = &node->outputs[0]->type;
    int64_t size, places;
    window w;
    if (read_window(graph, node, d, &w) && dlc_expr_is_int(graph->pool, image->dims[d + 2], &size) &&
        dlc_expr_is_int(graph->pool, result->dims[d + 2], &places) && size > 0 && places > 0 && size < MOST && places < MOST)
        find_taps(&w, size, places);
    return w;
}

/* A weight that is not would make a NaN of the zeros around the image. */
static int is_finite(const dlc_graph *graph, const dlc_value *weights)
{
    dlc_dtype dtype = weights->type.dtype;
    return dlc_is_int(dtype) || ((dtype == DLC_F32 || dtype == DLC_F64) && dlc_are_finite(graph, weights));
}

static int has_all_taps(const window *windows, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++)
        if (windows[d].first > 0 || windows[d].last + 1 < windows[d].taps)
            return 0;
    return 1;
}

/* Taps first to last of each spatial dimension, in steps of 1, or of -1 from last to first. */
static dlc_value *taps_of(dlc_pass_ctx *ctx, dlc_node *node, const window *windows, int64_t step)
{
    dlc_value *weights = node->inputs[1];
    if (step > 0 && has_all_taps(windows, weights->type.rank - 2u))
        return weights;
    int64_t starts[DLC_MAX_RANK] = {0}, steps[DLC_MAX_RANK];
    dlc_expr dims[DLC_MAX_RANK];
    for (uint32_t d = 0; d < weights->type.rank; d++) {
        const window *w = d < 2 ? NULL : &windows[d - 2];
        starts[d] = !w ? 0 : step > 0 ? w->first : w->last;
        steps[d] = w ? step : 1;
        dims[d] = w ? dlc_expr_i64(ctx->graph->pool, w->last - w->first + 1) : weights->type.dims[d];
    }
    dlc_attr attrs[] = {dlc_attr_ints(ctx->graph, DLC_ATTR_STARTS, starts, weights->type.rank),
                        dlc_attr_ints(ctx->graph, DLC_ATTR_STEPS, steps, weights->type.rank),
                        dlc_attr_dims(DLC_ATTR_DIMS, dims, weights->type.rank)};
    return dlc_build_folded(ctx, dlc_build(ctx->graph, node, DLC_OP_SLICE, &weights, 1, attrs, 3));
}

/* conv(x, w) = conv(x, taps of w that meet x): the others add zeros, if they are finite */
dlc_value *dlc_rule_taps_in_sight(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    window windows[DLC_MAX_RANK];
    int64_t pads[2 * DLC_MAX_RANK];
    uint32_t rank = node->inputs[0]->type.rank - 2u, nattrs = 0;
    dlc_attr attrs[DLC_ATTR_COUNT];
    if (!dlc_is_constant(node->inputs[1]) || dlc_is_constant(node->inputs[0]))
        return NULL;
    for (uint32_t d = 0; d < rank; d++) {
        windows[d] = window_of(graph, node, d);
        pads[d] = windows[d].before - windows[d].first * windows[d].dilation;
        pads[rank + d] = windows[d].after - (windows[d].taps - 1 - windows[d].last) * windows[d].dilation;
    }
    dlc_value *weights = !has_all_taps(windows, rank) && is_finite(graph, node->inputs[1]) ? taps_of(ctx, node, windows, 1) : NULL;
    if (!weights)
        return NULL;
    for (uint32_t i = 0; i < node->nattrs; i++)
        if (node->attrs[i].id != DLC_ATTR_PADS)
            attrs[nattrs++] = node->attrs[i];
    attrs[nattrs++] = dlc_attr_ints(graph, DLC_ATTR_PADS, pads, 2 * rank);
    return dlc_build(graph, node, DLC_OP_CONV, (dlc_value *[]){node->inputs[0], weights}, 2, attrs, nattrs);
}

/* --- transposed convolutions --- */

/* ic, oc of a group, taps to oc, ic of a group, taps: of groups one after another. */
static dlc_value *turned_channels(dlc_pass_ctx *ctx, dlc_node *node, dlc_value *weights, int64_t group)
{
    dlc_graph *graph = ctx->graph;
    uint32_t rank = weights->type.rank;
    int64_t perm[DLC_MAX_RANK];
    dlc_expr dims[DLC_MAX_RANK + 1] = {dlc_expr_i64(graph->pool, group)};
    if (rank == DLC_MAX_RANK)
        return NULL;
    for (uint32_t d = 0; d < rank; d++)
        dims[d + 1] = weights->type.dims[d];
    dims[1] = dlc_expr_i64(graph->pool, dlc_expr_value(graph->pool, dims[1]) / group);
    for (uint32_t d = 0; d <= rank; d++)
        perm[d] = d == 1 ? 2 : d == 2 ? 1 : d;
    weights = dlc_build_folded(ctx, dlc_build_reshape(graph, node, weights, dims, rank + 1));
    weights = weights ? dlc_build_folded(ctx, dlc_build_transpose(graph, node, weights, perm)) : NULL;
    dims[0] = dlc_expr_i64(graph->pool, dlc_expr_value(graph->pool, dims[2]) * group);
    dims[1] = dlc_expr_i64(graph->pool, dlc_expr_value(graph->pool, dims[1]));
    for (uint32_t d = 2; d < rank; d++)
        dims[d] = dims[d + 1];
    return weights ? dlc_build_folded(ctx, dlc_build_reshape(graph, node, weights, dims, rank)) : NULL;
}

/* conv_transpose(x, w) = conv(x, w from its last tap to its first), where windows do not step apart */
dlc_value *dlc_rule_conv_of_transposed(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    window windows[DLC_MAX_RANK];
    int64_t pads[2 * DLC_MAX_RANK], dilations[DLC_MAX_RANK], group = dlc_node_int(node, DLC_ATTR_GROUP, 1);
    uint32_t rank = node->inputs[0]->type.rank - 2u;
    if (!dlc_is_constant(node->inputs[1]) || dlc_is_constant(node->inputs[0]))
        return NULL;
    for (uint32_t d = 0; d < rank; d++) {
        window *w = &windows[d];
        if (!read_window(graph, node, d, w) || w->stride != 1)
            return NULL;
        int64_t reach = w->dilation * (w->taps - 1), extra = dlc_node_number(graph, node, DLC_ATTR_OUTPUT_PADDING, d, 0);
        pads[d] = reach - w->before;
        pads[rank + d] = reach - w->after + extra;
        dilations[d] = w->dilation;
        if (extra < 0 || pads[d] < 0 || pads[rank + d] < 0)
            return NULL;
    }
    dlc_value *weights = taps_of(ctx, node, windows, -1);
    weights = weights ? turned_channels(ctx, node, weights, group) : NULL;
    if (!weights)
        return NULL;
    dlc_attr attrs[] = {dlc_attr_ints(graph, DLC_ATTR_PADS, pads, 2 * rank), dlc_attr_ints(graph, DLC_ATTR_DILATIONS, dilations, rank),
                        dlc_attr_int(DLC_ATTR_GROUP, group)};
    return dlc_build(graph, node, DLC_OP_CONV, (dlc_value *[]){node->inputs[0], weights}, 2, attrs, 3);
}

/* The taps that the image's one point brings to the result, a tap to an element; false: some element has none, or there are more points. */
static int find_taps_of_point(const dlc_graph *graph, const dlc_node *node, uint32_t d, window *w)
{
    int64_t image, result;
    if (!read_window(graph, node, d, w) || w->dilation != 1 || !dlc_expr_is_int(graph->pool, node->inputs[0]->type.dims[d + 2], &image) ||
        image != 1 || !dlc_expr_is_int(graph->pool, node->outputs[0]->type.dims[d + 2], &result) || result < 1)
        return 0;
    w->first = w->before;
    w->last = w->before + result - 1;
    return w->last < w->taps;
}

/* conv_transpose(x, w) = x @ w, where x has one point: the other taps add zeros, if they are finite */
dlc_value *dlc_rule_product_of_point(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    const dlc_type *image = &node->inputs[0]->type, *result = &node->outputs[0]->type;
    window windows[DLC_MAX_RANK];
    if (!dlc_is_constant(node->inputs[1]) || dlc_is_constant(node->inputs[0]) || dlc_node_int(node, DLC_ATTR_GROUP, 1) != 1)
        return NULL;
    dlc_expr columns = result->dims[1];
    for (uint32_t d = 0; d + 2 < image->rank; d++) {
        if (!find_taps_of_point(graph, node, d, &windows[d]))
            return NULL;
        columns = dlc_mul(graph->pool, columns, result->dims[d + 2]);
    }
    dlc_value *weights = is_finite(graph, node->inputs[1]) ? taps_of(ctx, node, windows, 1) : NULL;
    if (weights)
        weights = dlc_build_folded(ctx, dlc_build_reshape(graph, node, weights, (dlc_expr[]){image->dims[1], columns}, 2));
    dlc_value *rows = weights ? dlc_build_reshape(graph, node, node->inputs[0], image->dims, 2) : NULL;
    dlc_value *product = rows ? dlc_build2(graph, node, DLC_OP_MATMUL, rows, weights) : NULL;
    return product ? dlc_build_reshape(graph, node, product, result->dims, result->rank) : NULL;
}

/* conv(x, w) = f16(conv(f32(x), f32(w))). Weights take twice the bytes, which is little of a window over few channels; processors that multiply f16
 * themselves are none of those known here, and a GPU's are faster. */
dlc_value *dlc_rule_few_halves(dlc_pass_ctx *ctx, dlc_node *node)
{
    enum { MOST_CHANNELS = 7, MOST_WEIGHTS = 1 << 15 };
    dlc_graph *graph = ctx->graph;
    const dlc_value *image = node->inputs[0], *weights = node->inputs[1];
    int64_t channels, elems, filters;
    if (!ctx->target || ctx->target->kind != DLC_TARGET_CPU || image->type.dtype != DLC_F16 || weights->type.dtype != DLC_F16 ||
        !dlc_is_constant(weights) || dlc_is_constant(image) || node->outputs[0]->type.dtype != DLC_F16 ||
        dlc_node_attr(node, DLC_ATTR_DTYPE) || node->ninputs != 2 ||
        dlc_node_int(node, DLC_ATTR_GROUP, 1) != 1 || !dlc_expr_is_int(graph->pool, weights->type.dims[1], &channels) ||
        !dlc_expr_is_int(graph->pool, weights->type.dims[0], &filters) || !dlc_type_elems(graph->pool, &weights->type, &elems))
        return NULL;
    if (channels > MOST_CHANNELS || elems > MOST_WEIGHTS || elems == channels * filters)
        return NULL;
    dlc_value *wide = dlc_build_cast(graph, node, node->inputs[1], DLC_F32), *folded = wide ? dlc_fold_weights(ctx, wide->def) : NULL;
    if (wide)
        dlc_graph_erase(graph, wide->def);
    dlc_value *inputs[] = {folded ? dlc_build_cast(graph, node, node->inputs[0], DLC_F32) : NULL, folded};
    if (!inputs[0])
        return NULL;
    dlc_value *sum = dlc_build(graph, node, DLC_OP_CONV, inputs, 2, node->attrs, node->nattrs);
    return sum ? dlc_build_cast(graph, node, sum, DLC_F16) : NULL;
}

/*
 * Taps of a convolution that meet nothing but padding wherever the window stands, as those of wide dilations on small images do,
 * are cut off its weights: a 3x3 convolution of dilation 24 over 6x6 is one of 1x1.
 */
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

/* What stays along dimension d of the image; all of it where sizes are not known. */
static window window_of(const dlc_graph *graph, const dlc_node *node, uint32_t d)
{
    enum { MOST = 1 << 20 }; /* sizes beyond are nobody's, and products of them would not fit */
    const dlc_type *image = &node->inputs[0]->type, *result = &node->outputs[0]->type;
    uint32_t rank = image->rank - 2u;
    int64_t size, places;
    window w = {.before = dlc_node_number(graph, node, DLC_ATTR_PADS, d, 0), .after = dlc_node_number(graph, node, DLC_ATTR_PADS, rank + d, 0),
                .stride = dlc_node_number(graph, node, DLC_ATTR_STRIDES, d, 1),
                .dilation = dlc_node_number(graph, node, DLC_ATTR_DILATIONS, d, 1)};
    w.taps = dlc_expr_value(graph->pool, node->inputs[1]->type.dims[d + 2]);
    w.last = w.taps - 1;
    if (dlc_expr_is_int(graph->pool, image->dims[d + 2], &size) && dlc_expr_is_int(graph->pool, result->dims[d + 2], &places) &&
        size > 0 && places > 0 && w.before >= 0 && w.after >= 0 && w.stride > 0 && w.dilation > 0 && w.before < MOST &&
        w.after < MOST && size < MOST && places < MOST && w.stride < MOST && w.dilation < MOST && w.taps < MOST)
        find_taps(&w, size, places);
    return w;
}

/* A weight that is not would make a NaN of the zeros around the image. */
static int is_finite(const dlc_graph *graph, const dlc_value *weights)
{
    dlc_dtype dtype = weights->type.dtype;
    return dlc_is_int(dtype) || ((dtype == DLC_F32 || dtype == DLC_F64) && dlc_are_finite(graph, weights));
}

static dlc_value *cut_weights(dlc_pass_ctx *ctx, dlc_node *node, const window *windows)
{
    dlc_value *weights = node->inputs[1];
    int64_t starts[DLC_MAX_RANK] = {0}, steps[DLC_MAX_RANK];
    dlc_expr dims[DLC_MAX_RANK];
    for (uint32_t d = 0; d < weights->type.rank; d++) {
        const window *w = d < 2 ? NULL : &windows[d - 2];
        starts[d] = w ? w->first : 0;
        steps[d] = 1;
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
    int is_cut = 0;
    if (!dlc_is_constant(node->inputs[1]) || dlc_is_constant(node->inputs[0]))
        return NULL;
    for (uint32_t d = 0; d < rank; d++) {
        windows[d] = window_of(graph, node, d);
        pads[d] = windows[d].before - windows[d].first * windows[d].dilation;
        pads[rank + d] = windows[d].after - (windows[d].taps - 1 - windows[d].last) * windows[d].dilation;
        is_cut |= windows[d].last - windows[d].first + 1 < windows[d].taps;
    }
    dlc_value *weights = is_cut && is_finite(graph, node->inputs[1]) ? cut_weights(ctx, node, windows) : NULL;
    if (!weights)
        return NULL;
    for (uint32_t i = 0; i < node->nattrs; i++)
        if (node->attrs[i].id != DLC_ATTR_PADS)
            attrs[nattrs++] = node->attrs[i];
    attrs[nattrs++] = dlc_attr_ints(graph, DLC_ATTR_PADS, pads, 2 * rank);
    return dlc_build(graph, node, DLC_OP_CONV, (dlc_value *[]){node->inputs[0], weights}, 2, attrs, nattrs);
}

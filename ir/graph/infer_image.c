/* Result types of resize and grid_sample. */
#include "ir/graph/infer.h"

#include <math.h>
#include <string.h>

/* A dimension that is sampled has an element; symbols are checked by the run. */
static dlc_status check_not_empty(dlc_graph *graph, const dlc_node *node, uint8_t d)
{
    dlc_expr dim = dlc_infer_in(node, 0)->dims[d];
    int64_t known;
    if (dlc_expr_is_int(graph->pool, dim, &known) && known == 0)
        return DLC_REFUSE("dimension %d of the input is empty; there is nothing to sample", d);
    if (!dlc_expr_is_int(graph->pool, dim, &known))
        dlc_graph_require(graph, dlc_lt(graph->pool, dlc_expr_i64(graph->pool, 0), dim),
                          "node '%.200s': dimension %s must not be empty, it is sampled",
                          dlc_infer_name(node), dlc_dim_text(graph, dim));
    return DLC_OK;
}

static dlc_status check_floats(dlc_graph *graph, const dlc_node *node, dlc_attr_id id, uint32_t n)
{
    const dlc_attr *attr = dlc_node_attr(node, id);
    if (attr && attr->n != n)
        return DLC_REFUSE("%s has %" PRIu32 " entries; %" PRIu32 " are wanted", dlc_attrs[id].text,
                          attr->n, n);
    for (uint32_t i = 0; attr && i < n; i++)
        if (!isfinite(attr->as.floats[i]))
            return DLC_REFUSE("%s[%" PRIu32 "] is not finite", dlc_attrs[id].text, i);
    return DLC_OK;
}

/* Numbers of the run: a vector of n floats. */
static dlc_status check_vector(dlc_graph *graph, const dlc_node *node, uint32_t input, uint32_t n)
{
    int64_t elems;
    if (input >= node->ninputs || !node->inputs[input])
        return DLC_OK;
    const dlc_type *type = dlc_infer_in(node, input);
    if (dlc_is_float(type->dtype) && type->rank == 1 &&
        dlc_type_elems(graph->pool, type, &elems) && elems == n)
        return DLC_OK;
    return DLC_REFUSE("input %" PRIu32 " is %s; a vector of %" PRIu32 " floats is wanted", input,
                      dlc_type_text(graph, type), n);
}

static dlc_status check_scales(dlc_graph *graph, const dlc_node *node, uint8_t rank)
{
    DLC_TRY(check_floats(graph, node, DLC_ATTR_SCALES, rank));
    const dlc_attr *scales = dlc_node_attr(node, DLC_ATTR_SCALES);
    for (uint8_t d = 0; scales && d < rank; d++)
        if (!(scales->as.floats[d] > 0))
            return DLC_REFUSE("scales[%d] = %g; a scale is positive", d, scales->as.floats[d]);
    return DLC_OK;
}

static dlc_status check_words(dlc_graph *graph, const dlc_node *node)
{
    int is_nearest = strcmp(dlc_node_text(node, DLC_ATTR_MODE, ""), "nearest") == 0;
    if (strcmp(dlc_node_text(node, DLC_ATTR_COORD, ""), "tf_crop_and_resize") == 0 &&
        !dlc_node_attr(node, DLC_ATTR_ROI) && (node->ninputs < 3 || !node->inputs[2]))
        return DLC_REFUSE("coord tf_crop_and_resize needs roi");
    if (is_nearest && dlc_node_int(node, DLC_ATTR_ANTIALIAS, 0))
        return DLC_REFUSE("antialias with mode nearest; linear and cubic are possible");
    if (is_nearest && dlc_node_int(node, DLC_ATTR_EXCLUDE_OUTSIDE, 0))
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "exclude_outside with mode nearest; linear and cubic are possible");
    return DLC_OK;
}

/* An antialiasing filter is as wide as the input is larger than the output: that must be known, and
 * is limited, or be given as a number of taps. */
static dlc_status check_filter_width(dlc_graph *graph, const dlc_node *node, const dlc_type *out)
{
    const dlc_attr *scales = dlc_node_attr(node, DLC_ATTR_SCALES);
    if (dlc_node_attr(node, DLC_ATTR_TAPS))
        return dlc_infer_list(graph, node, DLC_ATTR_TAPS, out->rank, 2, INT32_MAX);
    for (uint8_t d = 0; d < out->rank && dlc_node_int(node, DLC_ATTR_ANTIALIAS, 0); d++) {
        int64_t from, to;
        double scale = scales ? scales->as.floats[d] : 0;
        if (!scales && dlc_expr_is_int(graph->pool, dlc_infer_in(node, 0)->dims[d], &from) &&
            dlc_expr_is_int(graph->pool, out->dims[d], &to) && from > 0)
            scale = (double)to / (double)from;
        else if (!scales)
            return dlc_fail(graph, node, DLC_UNSUPPORTED,
                            "antialias with dimension %d from %s to %s; constants are wanted", d,
                            dlc_dim_text(graph, dlc_infer_in(node, 0)->dims[d]),
                            dlc_dim_text(graph, out->dims[d]));
        if (scale > 0 && scale < 1.0 / DLC_RESIZE_SHRINK)
            return dlc_fail(graph, node, DLC_UNSUPPORTED,
                            "antialias with scale %g in dimension %d; 1/%d or more is possible",
                            scale, d, DLC_RESIZE_SHRINK);
    }
    return DLC_OK;
}

dlc_status dlc_infer_resize(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    DLC_TRY(check_scales(graph, node, in->rank));
    DLC_TRY(check_floats(graph, node, DLC_ATTR_ROI, 2u * in->rank));
    DLC_TRY(check_vector(graph, node, 1, in->rank));
    DLC_TRY(check_vector(graph, node, 2, 2u * in->rank));
    DLC_TRY(check_words(graph, node));
    result->dtype = in->dtype;
    DLC_TRY(dlc_infer_dims(graph, node, result));
    if (result->rank != in->rank)
        return DLC_REFUSE("dims has %d entries; the input has %d dimensions", result->rank,
                          in->rank);
    for (uint8_t d = 0; d < in->rank; d++)
        if (in->dims[d] != result->dims[d] && result->dims[d] != dlc_expr_i64(graph->pool, 0))
            DLC_TRY(check_not_empty(graph, node, d));
    return check_filter_width(graph, node, result);
}

/* Which image each grid samples: i64 of as many elements as there are grids. */
static dlc_status check_images(dlc_graph *graph, const dlc_node *node, dlc_expr *count)
{
    const dlc_type *images = dlc_infer_in(node, 2);
    if (images->dtype != DLC_I64 || images->rank != 1)
        return DLC_REFUSE("the images are %s; an i64 vector is wanted",
                          dlc_type_text(graph, images));
    return dlc_infer_equal(graph, node, *count, images->dims[0], "numbers of grids and images",
                           count);
}

dlc_status dlc_infer_grid_sample(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0), *grid = dlc_infer_in(node, 1);
    int64_t coords;
    if (x->rank < 3 || grid->rank != x->rank)
        return DLC_REFUSE(
            "input and grid have %d and %d dimensions; equal ranks of 3 or more are wanted",
            x->rank, grid->rank);
    if (!dlc_is_float(grid->dtype))
        return DLC_REFUSE("the grid is %s; a float is wanted", dlc_dtypes[grid->dtype].text);
    if (!dlc_expr_is_int(graph->pool, grid->dims[grid->rank - 1], &coords) || coords != x->rank - 2)
        return DLC_REFUSE("the grid's last dimension is %s; %d coordinates are wanted",
                          dlc_dim_text(graph, grid->dims[grid->rank - 1]), x->rank - 2);
    *result = (dlc_type){.dtype = x->dtype, .rank = x->rank, .dims = {grid->dims[0]}};
    if (node->ninputs < 3 || !node->inputs[2])
        DLC_TRY(dlc_infer_equal(graph, node, x->dims[0], grid->dims[0],
                                "batches of input and grid", &result->dims[0]));
    else
        DLC_TRY(check_images(graph, node, &result->dims[0]));
    result->dims[1] = x->dims[1];
    for (uint8_t s = 2; s < x->rank; s++) {
        DLC_TRY(check_not_empty(graph, node, s));
        result->dims[s] = grid->dims[s - 1];
    }
    return DLC_OK;
}

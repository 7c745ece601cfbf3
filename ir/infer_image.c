/* Result types of resize and grid_sample. */
#include "ir/infer.h"

#include <math.h>
#include <string.h>

static dlc_status check_floats(dlc_graph *graph, const dlc_node *node, dlc_attr_id id, uint32_t n)
{
    const dlc_attr *attr = dlc_node_attr(node, id);
    if (attr && attr->n != n)
        return DLC_REFUSE("%s has %" PRIu32 " entries; %" PRIu32 " are wanted", dlc_attrs[id].text, attr->n, n);
    for (uint32_t i = 0; attr && i < n; i++)
        if (!isfinite(attr->as.floats[i]))
            return DLC_REFUSE("%s[%" PRIu32 "] is not finite", dlc_attrs[id].text, i);
    return DLC_OK;
}

static dlc_status check_scales(dlc_graph *graph, const dlc_node *node, uint8_t rank)
{
    DLC_TRY(check_floats(graph, node, DLC_ATTR_SCALES, rank));
    const dlc_attr *scales = dlc_node_attr(node, DLC_ATTR_SCALES);
    for (uint8_t d = 0; d < rank; d++)
        if (!(scales->as.floats[d] > 0))
            return DLC_REFUSE("scales[%d] = %g; a scale is positive", d, scales->as.floats[d]);
    return DLC_OK;
}

dlc_status dlc_infer_resize(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    const char *coord = dlc_node_text(node, DLC_ATTR_COORD, "half_pixel");
    DLC_TRY(check_scales(graph, node, in->rank));
    DLC_TRY(check_floats(graph, node, DLC_ATTR_ROI, 2u * in->rank));
    if (strcmp(coord, "tf_crop_and_resize") == 0 && !dlc_node_attr(node, DLC_ATTR_ROI))
        return DLC_REFUSE("coord tf_crop_and_resize needs roi");
    if (dlc_node_int(node, DLC_ATTR_ANTIALIAS, 0) && strcmp(dlc_node_text(node, DLC_ATTR_MODE, ""), "nearest") == 0)
        return DLC_REFUSE("antialias with mode nearest; linear and cubic are possible");
    result->dtype = in->dtype;
    DLC_TRY(dlc_infer_dims(graph, node, result));
    if (result->rank != in->rank)
        return DLC_REFUSE("dims has %d entries; the input has %d dimensions", result->rank, in->rank);
    for (uint8_t d = 0; d < in->rank; d++) {
        int64_t from, to;
        if (dlc_expr_is_int(graph->pool, in->dims[d], &from) && from == 0 &&
            !(dlc_expr_is_int(graph->pool, result->dims[d], &to) && to == 0))
            return DLC_REFUSE("dimension %d of the input is empty; there is nothing to sample", d);
    }
    return DLC_OK;
}

dlc_status dlc_infer_grid_sample(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0), *grid = dlc_infer_in(node, 1);
    int64_t coords, dim;
    if (x->rank < 3 || grid->rank != x->rank)
        return DLC_REFUSE("input and grid have %d and %d dimensions; equal ranks of 3 or more are wanted", x->rank,
                          grid->rank);
    if (!dlc_is_float(grid->dtype))
        return DLC_REFUSE("the grid is %s; a float is wanted", dlc_dtypes[grid->dtype].text);
    if (!dlc_expr_is_int(graph->pool, grid->dims[grid->rank - 1], &coords) || coords != x->rank - 2)
        return DLC_REFUSE("the grid's last dimension is %s; %d coordinates are wanted",
                          dlc_dim_text(graph, grid->dims[grid->rank - 1]), x->rank - 2);
    *result = (dlc_type){.dtype = x->dtype, .rank = x->rank};
    DLC_TRY(dlc_infer_equal(graph, node, x->dims[0], grid->dims[0], "batches of input and grid", &result->dims[0]));
    result->dims[1] = x->dims[1];
    for (uint8_t s = 2; s < x->rank; s++) {
        if (dlc_expr_is_int(graph->pool, x->dims[s], &dim) && dim == 0)
            return DLC_REFUSE("dimension %d of the input is empty; there is nothing to sample", s);
        result->dims[s] = grid->dims[s - 1];
    }
    return DLC_OK;
}

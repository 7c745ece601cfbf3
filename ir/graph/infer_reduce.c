/* Result types of reductions and of recurrences along an axis. */
#include "ir/graph/infer.h"

/* The input's shape without the axes marked, or with 1 in their place. */
static void drop_axes(dlc_graph *graph, const dlc_type *in, const uint8_t *reduced, int keepdims,
                      dlc_type *result)
{
    *result = (dlc_type){.dtype = in->dtype};
    for (uint8_t d = 0; d < in->rank; d++) {
        if (!reduced[d])
            result->dims[result->rank++] = in->dims[d];
        else if (keepdims)
            result->dims[result->rank++] = dlc_expr_i64(graph->pool, 1);
    }
}

dlc_status dlc_infer_reduce(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    int arithmetic = node->op == DLC_OP_REDUCE_SUM || node->op == DLC_OP_REDUCE_MEAN ||
                     node->op == DLC_OP_REDUCE_PROD;
    if (arithmetic && in->dtype == DLC_BOOL)
        return DLC_REFUSE("input 0 is bool; %s takes a number", dlc_ops[node->op].text);
    uint32_t naxes;
    dlc_node_dims(node, DLC_ATTR_AXES, &naxes);
    if (naxes > in->rank)
        return DLC_REFUSE("%" PRIu32 " axes are named; the input has %d dimensions", naxes,
                          in->rank);
    int64_t axes[DLC_MAX_RANK];
    uint8_t reduced[DLC_MAX_RANK] = {0};
    DLC_TRY(dlc_infer_ints(graph, node, DLC_ATTR_AXES, naxes, 0, in->rank - 1, 0, axes));
    for (uint32_t i = 0; i < naxes; i++) {
        if (i && axes[i] <= axes[i - 1])
            return DLC_REFUSE("axes[%" PRIu32 "] = %" PRId64 " does not follow %" PRId64
                              "; axes ascend",
                              i, axes[i], axes[i - 1]);
        reduced[axes[i]] = 1;
    }
    drop_axes(graph, in, reduced, dlc_node_int(node, DLC_ATTR_KEEPDIMS, 0) != 0, result);
    return dlc_infer_sum(graph, node, 1, &result->dtype);
}

dlc_status dlc_infer_arg_reduce(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, 0), dim;
    uint8_t reduced[DLC_MAX_RANK] = {0};
    DLC_TRY(dlc_infer_axis(graph, node, axis, in->rank));
    if (dlc_expr_is_int(graph->pool, in->dims[axis], &dim) && dim == 0)
        return DLC_REFUSE("dimension %" PRId64 " of %s is empty; it has no %s", axis,
                          dlc_type_text(graph, in), dlc_ops[node->op].text);
    reduced[axis] = 1;
    drop_axes(graph, in, reduced, dlc_node_int(node, DLC_ATTR_KEEPDIMS, 0) != 0, result);
    result->dtype = DLC_I64;
    return DLC_OK;
}

dlc_status dlc_infer_cumsum(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    DLC_TRY(dlc_infer_axis(graph, node, dlc_node_int(node, DLC_ATTR_AXIS, 0),
                           dlc_infer_in(node, 0)->rank));
    *result = *dlc_infer_in(node, 0);
    return DLC_OK;
}

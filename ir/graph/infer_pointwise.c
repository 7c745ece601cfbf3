/* Result types of pointwise operators: the shapes of all inputs broadcast together, the dtype as
 * the row says. */
#include "ir/graph/infer.h"

dlc_status dlc_infer_same(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    (void)graph;
    *result = *dlc_infer_in(node, 0);
    return DLC_OK;
}

dlc_status dlc_infer_to_bool(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    (void)graph;
    *result = *dlc_infer_in(node, 0);
    result->dtype = DLC_BOOL;
    return DLC_OK;
}

/* cast and bitcast */
dlc_status dlc_infer_cast(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    int64_t dtype = dlc_node_int(node, DLC_ATTR_DTYPE, 0);
    if (dtype <= DLC_NONE || dtype >= DLC_DTYPE_COUNT)
        return DLC_REFUSE("dtype = %" PRId64 " is no element type", dtype);
    *result = *dlc_infer_in(node, 0);
    if (node->op == DLC_OP_BITCAST && dlc_dtypes[result->dtype].bits != dlc_dtypes[dtype].bits)
        return DLC_REFUSE("%s and %s differ in size; a bitcast keeps the bits",
                          dlc_dtypes[result->dtype].text, dlc_dtypes[dtype].text);
    if (node->op == DLC_OP_CAST && (dlc_is_text(result->dtype) || dlc_is_text((dlc_dtype)dtype)))
        return DLC_REFUSE("%s to %s; strings are read and written by %s and %s", dlc_dtypes[result->dtype].text,
                          dlc_dtypes[dtype].text, dlc_ops[DLC_OP_TEXT_READ].text, dlc_ops[DLC_OP_TEXT_WRITE].text);
    result->dtype = (dlc_dtype)dtype;
    return DLC_OK;
}

/* Shapes of inputs first.. broadcast into *result, whose dtype is kept. */
static dlc_status broadcast_all(dlc_graph *graph, const dlc_node *node, uint32_t first,
                                dlc_type *result)
{
    for (uint32_t i = first; i < node->ninputs; i++)
        DLC_TRY(dlc_infer_broadcast_dims(graph, node, result, dlc_infer_in(node, i), result));
    return DLC_OK;
}

dlc_status dlc_infer_broadcast(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    for (uint32_t i = 1; i < node->ninputs; i++)
        DLC_TRY(dlc_infer_same_dtype(graph, node, 0, i));
    *result = *dlc_infer_in(node, 0);
    return broadcast_all(graph, node, 1, result);
}

dlc_status dlc_infer_compare(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    DLC_TRY(dlc_infer_broadcast(graph, node, result));
    result->dtype = DLC_BOOL;
    return DLC_OK;
}

/* The exponent may have a dtype of its own; the result has the base's. */
dlc_status dlc_infer_pow(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    if (dlc_infer_in(node, 1)->dtype == DLC_BOOL)
        return DLC_REFUSE("the exponent is bool; pow takes a number");
    *result = *dlc_infer_in(node, 0);
    return broadcast_all(graph, node, 1, result);
}

dlc_status dlc_infer_clip(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    for (uint32_t i = 1; i < node->ninputs; i++) {
        if (!node->inputs[i])
            continue;
        DLC_TRY(dlc_infer_same_dtype(graph, node, 0, i));
        DLC_TRY(dlc_infer_scalar(graph, node, i));
    }
    *result = *dlc_infer_in(node, 0);
    return DLC_OK;
}

dlc_status dlc_infer_where(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    DLC_TRY(dlc_infer_same_dtype(graph, node, 1, 2));
    *result = *dlc_infer_in(node, 0);
    result->dtype = dlc_infer_in(node, 1)->dtype;
    return broadcast_all(graph, node, 1, result);
}

/* Result types of generators, of trilu, and of opaque operators. */
#include "ir/graph/infer.h"

/* The tensor's own type: dlc_graph_constant is the only maker of constants. */
dlc_status dlc_infer_constant(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    if (!node->outputs[0] || !node->outputs[0]->data)
        return DLC_REFUSE("a constant has data");
    *result = node->outputs[0]->type;
    return DLC_OK;
}

dlc_status dlc_infer_symbols(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    uint32_t n;
    dlc_node_dims(node, DLC_ATTR_DIMS, &n);
    *result = (dlc_type){.dtype = DLC_I64, .rank = 1, .dims = {dlc_expr_i64(graph->pool, n)}};
    if (dlc_node_text(node, DLC_ATTR_MODE, "vector")[0] == 's') {
        if (n != 1)
            return DLC_REFUSE("dims has %" PRIu32 " entries; a scalar has one", n);
        *result = (dlc_type){.dtype = DLC_I64};
    }
    return DLC_OK;
}

dlc_status dlc_infer_range(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    uint32_t n;
    DLC_TRY(dlc_infer_same_dtype(graph, node, 0, 1));
    DLC_TRY(dlc_infer_scalar(graph, node, 0));
    DLC_TRY(dlc_infer_scalar(graph, node, 1));
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_DIMS, 1, 0, DLC_MAX_ELEMS));
    *result = (dlc_type){.dtype = dlc_infer_in(node, 0)->dtype, .rank = 1};
    result->dims[0] = dlc_node_dims(node, DLC_ATTR_DIMS, &n)[0];
    return DLC_OK;
}

dlc_status dlc_infer_trilu(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    if (in->rank < 2)
        return DLC_REFUSE("the input has %d dimensions; a triangle has two or more", in->rank);
    if (node->ninputs > 1 && node->inputs[1]) {
        DLC_TRY(dlc_infer_index(graph, node, 1));
        DLC_TRY(dlc_infer_scalar(graph, node, 1));
    }
    *result = *in;
    return DLC_OK;
}

dlc_status dlc_infer_eye(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    int64_t dtype = dlc_node_int(node, DLC_ATTR_DTYPE, 0);
    if (dtype <= DLC_NONE || dtype >= DLC_DTYPE_COUNT)
        return DLC_REFUSE("dtype = %" PRId64 " is no element type", dtype);
    result->dtype = (dlc_dtype)dtype;
    DLC_TRY(dlc_infer_dims(graph, node, result));
    if (result->rank != 2)
        return DLC_REFUSE("dims has %d entries; rows and columns are wanted", result->rank);
    return DLC_OK;
}

dlc_status dlc_infer_topk(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, 0), k, dim;
    uint32_t n;
    DLC_TRY(dlc_infer_axis(graph, node, axis, in->rank));
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_DIMS, 1, 0, DLC_MAX_ELEMS));
    dlc_expr wanted = dlc_node_dims(node, DLC_ATTR_DIMS, &n)[0];
    if (dlc_expr_is_int(graph->pool, wanted, &k) &&
        dlc_expr_is_int(graph->pool, in->dims[axis], &dim) && k > dim)
        return DLC_REFUSE("k = %" PRId64 " is more than the %" PRId64
                          " elements of dimension %" PRId64,
                          k, dim, axis);
    dlc_graph_require(graph, dlc_le(graph->pool, wanted, in->dims[axis]),
                      "node '%.200s': k = %s must not exceed the %s elements of dimension %" PRId64,
                      dlc_infer_name(node), dlc_dim_text(graph, wanted),
                      dlc_dim_text(graph, in->dims[axis]), axis);
    result[0] = *in;
    result[0].dims[axis] = wanted;
    if (node->noutputs > 1) {
        result[1] = result[0];
        result[1].dtype = DLC_I64;
    }
    return DLC_OK;
}

/* i64[rank, count]; count is the symbol the step binds. */
dlc_status dlc_infer_nonzero(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    int64_t symbol = dlc_node_int(node, DLC_ATTR_SYMBOL, -1);
    if (symbol < 0 || symbol >= graph->symbols.n ||
        graph->symbols.data[symbol].bind != DLC_BIND_OPAQUE)
        return DLC_REFUSE("symbol = %" PRId64 " is no symbol that a step binds", symbol);
    *result = (dlc_type){.dtype = DLC_I64, .rank = 2};
    result->dims[0] = dlc_expr_i64(graph->pool, dlc_infer_in(node, 0)->rank);
    result->dims[1] = dlc_expr_sym(graph->pool, (uint32_t)symbol);
    return DLC_OK;
}

dlc_status dlc_infer_suppress(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *boxes = dlc_infer_in(node, 0), *scores = dlc_infer_in(node, 1);
    dlc_expr same;
    uint32_t n;
    if (boxes->dtype != DLC_F32 || scores->dtype != DLC_F32 || boxes->rank != 3 || scores->rank != 3)
        return DLC_REFUSE("f32 boxes b,n,4 and f32 scores b,c,n are wanted");
    for (uint32_t i = 2; i < 4; i++) {
        DLC_TRY(dlc_infer_scalar(graph, node, i));
        if (dlc_infer_in(node, i)->dtype != DLC_F32)
            return DLC_REFUSE("input %" PRIu32 " is %s; f32 is wanted", i, dlc_dtypes[dlc_infer_in(node, i)->dtype].text);
    }
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_DIMS, 1, 0, DLC_MAX_ELEMS));
    DLC_TRY(dlc_infer_equal(graph, node, boxes->dims[2], dlc_expr_i64(graph->pool, 4), "numbers of a box", &same));
    DLC_TRY(dlc_infer_equal(graph, node, boxes->dims[0], scores->dims[0], "batches", &same));
    DLC_TRY(dlc_infer_equal(graph, node, boxes->dims[1], scores->dims[2], "boxes and their scores", &same));
    *result = (dlc_type){.dtype = DLC_I64, .rank = 3, .dims = {scores->dims[0], scores->dims[1], dlc_node_dims(node, DLC_ATTR_DIMS, &n)[0]}};
    return DLC_OK;
}

/* Result types of operators on strings. */
#include "ir/graph/infer.h"

dlc_status dlc_infer_text_join(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0), *y = dlc_infer_in(node, 1);
    DLC_TRY(dlc_infer_same_dtype(graph, node, 0, 1));
    if (x->rank != y->rank)
        return DLC_REFUSE("the inputs have %d and %d dimensions; both have one shape", x->rank, y->rank);
    *result = *x;
    for (uint8_t d = 0; d < x->rank; d++)
        DLC_TRY(dlc_infer_equal(graph, node, x->dims[d], y->dims[d], "dimensions of the inputs", &result->dims[d]));
    return DLC_OK;
}

/* The symbol that the step binds. */
static dlc_status bound_size(dlc_graph *graph, const dlc_node *node, dlc_expr *size)
{
    int64_t symbol = dlc_node_int(node, DLC_ATTR_SYMBOL, -1);
    if (symbol < 0 || symbol >= graph->symbols.n || graph->symbols.data[symbol].bind != DLC_BIND_OPAQUE)
        return DLC_REFUSE("symbol = %" PRId64 " is no symbol that a step binds", symbol);
    *size = dlc_expr_sym(graph->pool, (uint32_t)symbol);
    return DLC_OK;
}

dlc_status dlc_infer_text_split(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0);
    DLC_TRY(dlc_infer_same_dtype(graph, node, 0, 1));
    DLC_TRY(dlc_infer_scalar(graph, node, 1));
    if (x->rank == DLC_MAX_RANK)
        return dlc_fail(graph, node, DLC_UNSUPPORTED, "the result has %d dimensions; up to %d are possible", x->rank + 1, DLC_MAX_RANK);
    if (dlc_node_int(node, DLC_ATTR_MOST, -1) < -1)
        return DLC_REFUSE("most = %" PRId64 " cuts", dlc_node_int(node, DLC_ATTR_MOST, -1));
    result[0] = *x;
    DLC_TRY(bound_size(graph, node, &result[0].dims[result[0].rank++]));
    if (node->noutputs > 1) {
        result[1] = *x;
        result[1].dtype = DLC_I64;
    }
    return DLC_OK;
}

dlc_status dlc_infer_text_normalize(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0), *words = dlc_infer_in(node, 1);
    DLC_TRY(dlc_infer_same_dtype(graph, node, 0, 1));
    if (x->rank != 1 || words->rank != 1)
        return DLC_REFUSE("inputs of %d and %d dimensions; lists are wanted", x->rank, words->rank);
    *result = *x;
    return bound_size(graph, node, &result->dims[0]);
}

dlc_status dlc_infer_text_match(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *program = dlc_infer_in(node, 1);
    int64_t rows, three;
    if (program->dtype != DLC_I64 || program->rank != 2 || !dlc_expr_is_int(graph->pool, program->dims[0], &rows) ||
        !dlc_expr_is_int(graph->pool, program->dims[1], &three) || three != 3 || rows < 1 || rows > DLC_MATCH_MOST)
        return DLC_REFUSE("the program is %s; i64[n,3] of 1 to %d rows is wanted", dlc_type_text(graph, program), DLC_MATCH_MOST);
    *result = *dlc_infer_in(node, 0);
    result->dtype = DLC_BOOL;
    return DLC_OK;
}

dlc_status dlc_infer_text_read(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    int64_t dtype = dlc_node_int(node, DLC_ATTR_DTYPE, 0);
    if (dtype <= DLC_NONE || dtype >= DLC_DTYPE_COUNT ||
        (!dlc_is_int((dlc_dtype)dtype) && dtype != DLC_F32 && dtype != DLC_F64))
        return DLC_REFUSE("dtype = %" PRId64 "; strings are read as integers, f32 and f64", dtype);
    *result = *dlc_infer_in(node, 0);
    result->dtype = (dlc_dtype)dtype;
    return DLC_OK;
}

dlc_status dlc_infer_text_write(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    (void)graph;
    *result = *dlc_infer_in(node, 0);
    result->dtype = DLC_STR;
    return DLC_OK;
}

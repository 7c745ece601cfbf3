/* Result types of operators whose indices are data: gather, scatter, reverse_sequence, one_hot. */
#include "ir/graph/infer.h"

dlc_status dlc_infer_gather(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0), *index = dlc_infer_in(node, 1);
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, 0);
    DLC_TRY(dlc_infer_axis(graph, node, axis, in->rank));
    DLC_TRY(dlc_infer_index(graph, node, 1));
    if (in->rank - 1 + index->rank > DLC_MAX_RANK)
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "the result has %d dimensions; up to %d are possible",
                        in->rank - 1 + index->rank, DLC_MAX_RANK);
    *result = (dlc_type){.dtype = in->dtype};
    for (int64_t d = 0; d < axis; d++)
        result->dims[result->rank++] = in->dims[d];
    for (uint8_t d = 0; d < index->rank; d++)
        result->dims[result->rank++] = index->dims[d];
    for (int64_t d = axis + 1; d < in->rank; d++)
        result->dims[result->rank++] = in->dims[d];
    return DLC_OK;
}

/* Outside the axis the index may be smaller than the data, never larger. */
static dlc_status check_covered(dlc_graph *graph, const dlc_node *node, const dlc_type *in,
                                const dlc_type *index, int64_t axis)
{
    for (uint8_t d = 0; d < in->rank; d++) {
        dlc_expr spare = dlc_sub(graph->pool, in->dims[d], index->dims[d]);
        int64_t known;
        if (d == axis)
            continue;
        if (dlc_expr_is_int(graph->pool, spare, &known) && known < 0)
            return DLC_REFUSE("dimension %d: %s indices; the data has %s", d,
                              dlc_dim_text(graph, index->dims[d]),
                              dlc_dim_text(graph, in->dims[d]));
        if (!dlc_expr_is_int(graph->pool, spare, &known))
            dlc_graph_require(
                graph, dlc_le(graph->pool, index->dims[d], in->dims[d]),
                "node '%.200s': dimension %d: %s indices must not exceed %s of the data",
                dlc_infer_name(node), d, dlc_dim_text(graph, index->dims[d]),
                dlc_dim_text(graph, in->dims[d]));
    }
    return DLC_OK;
}

dlc_status dlc_infer_gather_elements(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0), *index = dlc_infer_in(node, 1);
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, 0);
    DLC_TRY(dlc_infer_axis(graph, node, axis, in->rank));
    DLC_TRY(dlc_infer_index(graph, node, 1));
    if (index->rank != in->rank)
        return DLC_REFUSE("the indices have %d dimensions; the data has %d", index->rank, in->rank);
    DLC_TRY(check_covered(graph, node, in, index, axis));
    *result = *index;
    result->dtype = in->dtype;
    return DLC_OK;
}

/* Keeps the meaning's text and code small: what is deeper is a loop around it. */
enum { MOST_LEVELS = 64 };

dlc_status dlc_infer_descend(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *x = dlc_infer_in(node, 0), *records = dlc_infer_in(node, 1), *places = dlc_infer_in(node, 2);
    int64_t levels = dlc_node_int(node, DLC_ATTR_LEVELS, 0), bits = dlc_node_int(node, DLC_ATTR_BITS, 0), n;
    if (levels < 1 || levels > MOST_LEVELS || bits < 1 || bits > DLC_MOST_FEATURE_BITS)
        return DLC_REFUSE("levels is %" PRId64 ", bits %" PRId64 "; 1 to %d and 1 to %d are possible", levels, bits, MOST_LEVELS,
                          DLC_MOST_FEATURE_BITS);
    if (x->dtype != DLC_F32 || x->rank != 2 || !dlc_expr_is_int(graph->pool, x->dims[1], &n) || n < 1)
        return DLC_REFUSE("input 0 is %s; rows of f32, of a known number of features, are possible", dlc_type_text(graph, x));
    if (records->dtype != DLC_U32 || records->rank != 1 || !dlc_expr_is_int(graph->pool, records->dims[0], &n) || n < 4)
        return DLC_REFUSE("input 1 is %s; u32, two words a record and two records at least, are possible",
                          dlc_type_text(graph, records));
    if (places->dtype != DLC_U32 || places->rank != 2)
        return DLC_REFUSE("input 2 is %s; u32 of two dimensions is possible", dlc_type_text(graph, places));
    *result = *places;
    if (dlc_expr_is_int(graph->pool, places->dims[0], &n) && n == 1) {
        result->dims[0] = x->dims[0];
        return DLC_OK;
    }
    return dlc_infer_equal(graph, node, x->dims[0], places->dims[0], "rows of x and of places", &result->dims[0]);
}

/* Length of the index tuples of gather_nd and scatter_nd: the last dimension of the indices, a
 * constant. */
static dlc_status tuple_length(dlc_graph *graph, const dlc_node *node, uint8_t batch,
                               int64_t *length)
{
    const dlc_type *in = dlc_infer_in(node, 0), *index = dlc_infer_in(node, 1);
    DLC_TRY(dlc_infer_index(graph, node, 1));
    if (index->rank < 1)
        return DLC_REFUSE("the indices have no dimension; the last one holds the tuples");
    if (!dlc_expr_is_int(graph->pool, index->dims[index->rank - 1], length))
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "index tuples have %s entries; a constant number is wanted",
                        dlc_dim_text(graph, index->dims[index->rank - 1]));
    if (*length < 1 || *length > in->rank - batch)
        return DLC_REFUSE("index tuples have %" PRId64 " entries; 1 to %d are possible for %s",
                          *length, in->rank - batch, dlc_type_text(graph, in));
    return DLC_OK;
}

dlc_status dlc_infer_gather_nd(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0), *index = dlc_infer_in(node, 1);
    int64_t batch = dlc_node_int(node, DLC_ATTR_BATCH_DIMS, 0), length;
    if (batch < 0 || batch >= in->rank || batch >= index->rank)
        return DLC_REFUSE("batch_dims = %" PRId64 " is outside [0, %d]", batch,
                          (in->rank < index->rank ? in->rank : index->rank) - 1);
    DLC_TRY(tuple_length(graph, node, (uint8_t)batch, &length));
    if (index->rank - 1 + in->rank - batch - length > DLC_MAX_RANK)
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "the result has %" PRId64 " dimensions; up to %d are possible",
                        index->rank - 1 + in->rank - batch - length, DLC_MAX_RANK);
    *result = (dlc_type){.dtype = in->dtype};
    for (uint8_t d = 0; d + 1 < index->rank; d++)
        result->dims[result->rank++] = index->dims[d];
    for (int64_t d = 0; d < batch; d++)
        DLC_TRY(dlc_infer_equal(graph, node, in->dims[d], index->dims[d], "batch dimensions",
                                &result->dims[d]));
    for (int64_t d = batch + length; d < in->rank; d++)
        result->dims[result->rank++] = in->dims[d];
    return DLC_OK;
}

static dlc_status check_scatter_elements(dlc_graph *graph, const dlc_node *node)
{
    const dlc_type *in = dlc_infer_in(node, 0), *index = dlc_infer_in(node, 1),
                   *updates = dlc_infer_in(node, 2);
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, 0);
    dlc_expr same;
    DLC_TRY(dlc_infer_axis(graph, node, axis, in->rank));
    DLC_TRY(dlc_infer_index(graph, node, 1));
    if (index->rank != in->rank || updates->rank != in->rank)
        return DLC_REFUSE(
            "data, indices and updates have %d, %d and %d dimensions; one rank is wanted", in->rank,
            index->rank, updates->rank);
    for (uint8_t d = 0; d < in->rank; d++)
        DLC_TRY(dlc_infer_equal(graph, node, index->dims[d], updates->dims[d],
                                "dimensions of indices and updates", &same));
    return check_covered(graph, node, in, index, axis);
}

/* updates: the indices' shape without the tuple, then what a tuple leaves of the data. */
static dlc_status check_scatter_nd(dlc_graph *graph, const dlc_node *node)
{
    const dlc_type *in = dlc_infer_in(node, 0), *index = dlc_infer_in(node, 1),
                   *updates = dlc_infer_in(node, 2);
    int64_t length;
    dlc_expr same;
    DLC_TRY(tuple_length(graph, node, 0, &length));
    if (updates->rank != index->rank - 1 + in->rank - length)
        return DLC_REFUSE("the updates have %d dimensions; %" PRId64
                          " are wanted: %d of the indices, %" PRId64 " of the data",
                          updates->rank, index->rank - 1 + in->rank - length, index->rank - 1,
                          in->rank - length);
    for (uint8_t d = 0; d < updates->rank; d++) {
        dlc_expr wanted =
            d + 1 < index->rank ? index->dims[d] : in->dims[d - (index->rank - 1) + length];
        DLC_TRY(dlc_infer_equal(graph, node, updates->dims[d], wanted, "dimensions of the updates",
                                &same));
    }
    return DLC_OK;
}

dlc_status dlc_infer_scatter(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    const char *reduction = dlc_node_text(node, DLC_ATTR_REDUCTION, "none");
    DLC_TRY(dlc_infer_same_dtype(graph, node, 0, 2));
    if (in->dtype == DLC_BOOL && reduction[0] != 'n')
        return DLC_REFUSE("reduction %s of bool; none is possible", reduction);
    if (node->op == DLC_OP_SCATTER_ND)
        DLC_TRY(check_scatter_nd(graph, node));
    else
        DLC_TRY(check_scatter_elements(graph, node));
    *result = *in;
    return DLC_OK;
}

dlc_status dlc_infer_reverse_sequence(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0), *lengths = dlc_infer_in(node, 1);
    int64_t axes[2];
    dlc_expr same;
    DLC_TRY(dlc_infer_ints(graph, node, DLC_ATTR_AXES, 2, 0, in->rank - 1, 0, axes));
    DLC_TRY(dlc_infer_index(graph, node, 1));
    if (axes[0] == axes[1])
        return DLC_REFUSE("time and batch are both axis %" PRId64, axes[0]);
    if (lengths->rank != 1)
        return DLC_REFUSE("the lengths have %d dimensions; one is wanted", lengths->rank);
    DLC_TRY(dlc_infer_equal(graph, node, lengths->dims[0], in->dims[axes[1]],
                            "lengths and the batch dimension", &same));
    *result = *in;
    return DLC_OK;
}

dlc_status dlc_infer_one_hot(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *index = dlc_infer_in(node, 0), *values = dlc_infer_in(node, 1);
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, 0), pair;
    uint32_t n;
    if (index->rank >= DLC_MAX_RANK)
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "the result has %d dimensions; up to %d are possible", index->rank + 1,
                        DLC_MAX_RANK);
    DLC_TRY(dlc_infer_axis(graph, node, axis, index->rank + 1));
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_DIMS, 1, 0, DLC_MAX_ELEMS));
    if (values->rank != 1 || !dlc_expr_is_int(graph->pool, values->dims[0], &pair) || pair != 2)
        return DLC_REFUSE("the values are %s; two are wanted: off and on",
                          dlc_type_text(graph, values));
    *result = (dlc_type){.dtype = values->dtype, .rank = index->rank + 1};
    for (uint8_t d = 0; d <= index->rank; d++)
        result->dims[d] =
            d == axis ? dlc_node_dims(node, DLC_ATTR_DIMS, &n)[0] : index->dims[d - (d > axis)];
    return DLC_OK;
}

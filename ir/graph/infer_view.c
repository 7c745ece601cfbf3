/* Result types of views: the same elements under other indices. */
#include "ir/graph/infer.h"

dlc_status dlc_infer_reshape(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    result->dtype = in->dtype;
    DLC_TRY(dlc_infer_dims(graph, node, result));
    dlc_expr before = dlc_dims_product(graph->pool, in->dims, in->rank);
    dlc_expr after = dlc_dims_product(graph->pool, result->dims, result->rank), elems;
    int64_t before_elems, after_elems;
    if (dlc_type_elems(graph->pool, in, &before_elems) &&
        dlc_type_elems(graph->pool, result, &after_elems) && before_elems != after_elems)
        return DLC_REFUSE("the input has %" PRId64 " elements, the shape %s has %" PRId64,
                          before_elems, dlc_type_text(graph, result), after_elems);
    return dlc_infer_equal(graph, node, before, after, "elements before and after", &elems);
}

dlc_status dlc_infer_transpose(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    int64_t perm[DLC_MAX_RANK];
    uint8_t seen[DLC_MAX_RANK] = {0};
    DLC_TRY(dlc_infer_ints(graph, node, DLC_ATTR_PERM, in->rank, 0, in->rank - 1, 0, perm));
    *result = *in;
    for (uint8_t d = 0; d < in->rank; d++) {
        if (seen[perm[d]]++)
            return DLC_REFUSE("perm names dimension %" PRId64 " twice", perm[d]);
        result->dims[d] = in->dims[perm[d]];
    }
    return DLC_OK;
}

dlc_status dlc_infer_expand(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    dlc_expr one = dlc_expr_i64(graph->pool, 1);
    result->dtype = in->dtype;
    DLC_TRY(dlc_infer_dims(graph, node, result));
    if (result->rank < in->rank)
        return DLC_REFUSE("the shape has %d dimensions; the input has %d", result->rank, in->rank);
    for (uint8_t d = 0; d < in->rank; d++) {
        dlc_expr wanted = result->dims[d + result->rank - in->rank], same;
        int64_t known;
        if (dlc_dim_has_part(graph, wanted, in->dims[d]) ||
            (dlc_dim_may_broadcast(graph, in->dims[d]) &&
             (dlc_expr_is_int(graph->pool, wanted, &known) || dlc_dim_may_broadcast(graph, wanted))))
            dlc_infer_broadcast_to(graph, node, in->dims[d], wanted);
        else if (in->dims[d] != one)
            DLC_TRY(dlc_infer_equal(graph, node, in->dims[d], wanted,
                                    "dimensions of the input and of the shape", &same));
    }
    return DLC_OK;
}

/* Every index start + step * i of dimension d lies in the input; constants are checked here,
 * symbols (of steps too) by the importer. */
static dlc_status check_slice(dlc_graph *graph, const dlc_node *node, uint8_t d, dlc_expr start,
                              int64_t step, dlc_expr count)
{
    int64_t first, n, dim, last;
    if (!dlc_expr_is_int(graph->pool, start, &first) || !dlc_expr_is_int(graph->pool, count, &n) ||
        !dlc_expr_is_int(graph->pool, dlc_infer_in(node, 0)->dims[d], &dim) || n == 0)
        return DLC_OK;
    if (dlc_mul_i64(n - 1, step, &last) && !__builtin_add_overflow(last, first, &last) &&
        first >= 0 && first < dim && last >= 0 && last < dim)
        return DLC_OK;
    return DLC_REFUSE("dimension %d: %" PRId64 " elements from %" PRId64 " at step %" PRId64
                      " leave the %" PRId64 " of the input",
                      d, n, first, step, dim);
}

dlc_status dlc_infer_slice(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    uint32_t n;
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_STEPS, in->rank, INT64_MIN, INT64_MAX));
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_STARTS, in->rank, 0, INT64_MAX));
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_DIMS, in->rank, 0, DLC_MAX_ELEMS));
    const dlc_expr *starts = dlc_node_dims(node, DLC_ATTR_STARTS, &n),
                   *dims = dlc_node_dims(node, DLC_ATTR_DIMS, &n),
                   *steps = dlc_node_dims(node, DLC_ATTR_STEPS, &n);
    *result = (dlc_type){.dtype = in->dtype, .rank = in->rank};
    for (uint8_t d = 0; d < in->rank; d++) {
        int64_t step = 1;
        int is_known = !steps || dlc_expr_is_int(graph->pool, steps[d], &step);
        if (is_known && step == 0)
            return DLC_REFUSE("steps[%d] = 0; a step is positive or negative", d);
        if (is_known)
            DLC_TRY(check_slice(graph, node, d, starts[d], step, dims[d]));
        result->dims[d] = dims[d];
    }
    return DLC_OK;
}

static dlc_status concat_one(dlc_graph *graph, const dlc_node *node, uint32_t input, int64_t axis,
                             dlc_type *result)
{
    DLC_TRY(dlc_infer_present(graph, node, input));
    DLC_TRY(dlc_infer_same_dtype(graph, node, 0, input));
    const dlc_type *in = dlc_infer_in(node, input);
    if (in->rank != result->rank)
        return DLC_REFUSE("input %" PRIu32 " has %d dimensions; input 0 has %d", input, in->rank,
                          result->rank);
    for (uint8_t d = 0; d < in->rank; d++) {
        if (d != axis)
            DLC_TRY(dlc_infer_equal(
                graph, node, result->dims[d], in->dims[d],
                dlc_arena_printf(graph->arena, "dimension %d of inputs 0 and %" PRIu32, d, input),
                &result->dims[d]));
    }
    result->dims[axis] = dlc_add(graph->pool, result->dims[axis], in->dims[axis]);
    return DLC_OK;
}

dlc_status dlc_infer_concat(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, 0);
    *result = *dlc_infer_in(node, 0);
    DLC_TRY(dlc_infer_axis(graph, node, axis, result->rank));
    for (uint32_t i = 1; i < node->ninputs; i++)
        DLC_TRY(concat_one(graph, node, i, axis, result));
    return DLC_OK;
}

/* Only a constant may be put around nothing: what negative pads leave of the input has an element.
 */
static dlc_status check_pad_source(dlc_graph *graph, const dlc_node *node, uint8_t d,
                                   const char *mode, dlc_expr before, dlc_expr after)
{
    dlc_expr zero = dlc_expr_i64(graph->pool, 0), dim = dlc_infer_in(node, 0)->dims[d];
    int64_t known;
    dim = dlc_add(graph->pool, dim, dlc_min(graph->pool, before, zero));
    dim = dlc_add(graph->pool, dim, dlc_min(graph->pool, after, zero));
    if (dlc_expr_is_int(graph->pool, dim, &known)) {
        if (known <= 0)
            return DLC_REFUSE(
                "dimension %d of the input is empty; mode %s needs an element to repeat", d, mode);
        return DLC_OK;
    }
    dlc_graph_require(graph, dlc_lt(graph->pool, dlc_expr_i64(graph->pool, 0), dim),
                      "node '%.200s': dimension %s must not be empty, mode %s repeats its elements",
                      dlc_infer_name(node), dlc_dim_text(graph, dim), mode);
    return DLC_OK;
}

/* Negative pads cut off no more than there is. */
static dlc_status check_pad_result(dlc_graph *graph, const dlc_node *node, uint8_t d, dlc_expr dim)
{
    dlc_ranges ranges = dlc_graph_ranges(graph);
    dlc_interval found = dlc_expr_range(graph->pool, dim, &ranges);
    if (found.hi < 0)
        return DLC_REFUSE("dimension %d would have %s elements", d, dlc_dim_text(graph, dim));
    if (found.lo < 0)
        dlc_graph_require(graph, dlc_le(graph->pool, dlc_expr_i64(graph->pool, 0), dim),
                          "node '%.200s': dimension %d, %s behind its padding, must not be negative",
                          dlc_infer_name(node), d, dlc_dim_text(graph, dim));
    return DLC_OK;
}

dlc_status dlc_infer_pad(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    const char *mode = dlc_node_text(node, DLC_ATTR_MODE, "constant");
    uint32_t n;
    DLC_TRY(
        dlc_infer_list(graph, node, DLC_ATTR_PADS, 2u * in->rank, -DLC_MAX_ELEMS, DLC_MAX_ELEMS));
    if (node->ninputs > 1 && node->inputs[1]) {
        DLC_TRY(dlc_infer_same_dtype(graph, node, 0, 1));
        DLC_TRY(dlc_infer_scalar(graph, node, 1));
    }
    const dlc_expr *pads = dlc_node_dims(node, DLC_ATTR_PADS, &n);
    dlc_expr zero = dlc_expr_i64(graph->pool, 0);
    *result = *in;
    for (uint8_t d = 0; d < in->rank; d++) {
        if (mode[0] != 'c' && (pads[d] != zero || pads[in->rank + d] != zero))
            DLC_TRY(check_pad_source(graph, node, d, mode, pads[d], pads[in->rank + d]));
        result->dims[d] =
            dlc_add(graph->pool, in->dims[d], dlc_add(graph->pool, pads[d], pads[in->rank + d]));
        DLC_TRY(check_pad_result(graph, node, d, result->dims[d]));
    }
    return DLC_OK;
}

dlc_status dlc_infer_tile(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    result->dtype = in->dtype;
    DLC_TRY(dlc_infer_dims(graph, node, result));
    if (result->rank != in->rank)
        return DLC_REFUSE("the shape has %d dimensions; the input has %d", result->rank, in->rank);
    for (uint8_t d = 0; d < in->rank; d++) {
        int64_t from, to;
        if (dlc_expr_is_int(graph->pool, in->dims[d], &from) &&
            dlc_expr_is_int(graph->pool, result->dims[d], &to) && (from ? to % from != 0 : to != 0))
            return DLC_REFUSE("dimension %d: %" PRId64 " is no multiple of %" PRId64, d, to, from);
    }
    return DLC_OK;
}

dlc_status dlc_infer_unpack(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *in = dlc_infer_in(node, 0);
    int64_t bits = dlc_node_int(node, DLC_ATTR_BITS, 0);
    if (in->dtype != DLC_U8)
        return DLC_REFUSE("the input is %s; bytes (u8) are unpacked", dlc_dtypes[in->dtype].text);
    if (bits != 1 && bits != 2 && bits != 4)
        return DLC_REFUSE("bits is %" PRId64 "; 1, 2 and 4 are possible", bits);
    if (!in->rank || in->rank == DLC_MAX_RANK)
        return DLC_REFUSE("the input has %d dimensions; 1 to %d are possible", in->rank, DLC_MAX_RANK - 1);
    *result = *in;
    result->rank++;
    result->dims[in->rank] = in->dims[in->rank - 1];
    result->dims[in->rank - 1] = dlc_expr_i64(graph->pool, 8 / bits);
    return DLC_OK;
}

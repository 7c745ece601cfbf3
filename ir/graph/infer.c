/*
 * Checks shared by all infer_*.c. The one idea: attributes, ranks and dtypes are checked against
 * plain numbers before any arithmetic on dimensions, and each refusal says what was found and what
 * is possible.
 */
#include "ir/graph/infer.h"

const char *dlc_dim_text(const dlc_graph *graph, dlc_expr dim)
{
    dlc_str text = {0};
    dlc_dim_print_brief(graph, dim, &text);
    const char *copy = dlc_arena_strdup(graph->arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

const char *dlc_type_text(const dlc_graph *graph, const dlc_type *type)
{
    dlc_str text = {0};
    dlc_type_print(graph, type, &text);
    const char *copy = dlc_arena_strdup(graph->arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

dlc_status dlc_infer_present(dlc_graph *graph, const dlc_node *node, uint32_t input)
{
    if (input < node->ninputs && node->inputs[input])
        return DLC_OK;
    return DLC_REFUSE("input %" PRIu32 " is absent; %s needs it", input, dlc_ops[node->op].text);
}

dlc_status dlc_infer_same_dtype(dlc_graph *graph, const dlc_node *node, uint32_t a, uint32_t b)
{
    dlc_dtype first = dlc_infer_in(node, a)->dtype, second = dlc_infer_in(node, b)->dtype;
    if (first == second)
        return DLC_OK;
    return DLC_REFUSE("inputs %" PRIu32 " and %" PRIu32
                      " are %s and %s; they must have one element type",
                      a, b, dlc_dtypes[first].text, dlc_dtypes[second].text);
}

dlc_status dlc_infer_sum(dlc_graph *graph, const dlc_node *node, uint32_t nfactors, dlc_dtype *result)
{
    int64_t dtype = dlc_node_int(node, DLC_ATTR_DTYPE, DLC_NONE);
    *result = dlc_infer_in(node, 0)->dtype;
    if (dtype == DLC_NONE)
        return nfactors > 1 ? dlc_infer_same_dtype(graph, node, 0, 1) : DLC_OK;
    *result = dtype > DLC_NONE && dtype < DLC_DTYPE_COUNT ? (dlc_dtype)dtype : DLC_NONE;
    for (uint32_t i = 0; i < nfactors; i++) {
        dlc_dtype own = dlc_infer_in(node, i)->dtype;
        int is_alike = dlc_is_int(*result) ? dlc_is_int(own) : dlc_is_float(*result) && dlc_is_float(own);
        if (!is_alike || dlc_dtypes[own].bits > dlc_dtypes[*result].bits)
            return DLC_REFUSE("input %" PRIu32 " is %s and dtype is %s; integers, or floats, that are no wider than dtype are wanted", i,
                              dlc_dtypes[own].text, dlc_dtypes[*result].text);
    }
    return DLC_OK;
}

dlc_status dlc_infer_index(dlc_graph *graph, const dlc_node *node, uint32_t input)
{
    dlc_dtype dtype = dlc_infer_in(node, input)->dtype;
    if (dtype == DLC_I32 || dtype == DLC_I64)
        return DLC_OK;
    return DLC_REFUSE("input %" PRIu32 " is %s; indices are i32 or i64", input,
                      dlc_dtypes[dtype].text);
}

dlc_status dlc_infer_scalar(dlc_graph *graph, const dlc_node *node, uint32_t input)
{
    const dlc_type *type = dlc_infer_in(node, input);
    int64_t elems;
    if (dlc_type_elems(graph->pool, type, &elems) && elems == 1)
        return DLC_OK;
    return DLC_REFUSE("input %" PRIu32 " is %s; one element is wanted", input,
                      dlc_type_text(graph, type));
}

dlc_status dlc_infer_axis(dlc_graph *graph, const dlc_node *node, int64_t axis, uint8_t rank)
{
    if (axis >= 0 && axis < rank)
        return DLC_OK;
    return DLC_REFUSE("axis = %" PRId64 " is outside [0, %d]", axis, (int)rank - 1);
}

static dlc_status wrong_count(dlc_graph *graph, const dlc_node *node, dlc_attr_id id,
                              uint32_t found, uint32_t wanted)
{
    return DLC_REFUSE("%s has %" PRIu32 " entries; %" PRIu32 " are wanted", dlc_attrs[id].text,
                      found, wanted);
}

dlc_status dlc_infer_list(dlc_graph *graph, const dlc_node *node, dlc_attr_id id, uint32_t n,
                          int64_t lo, int64_t hi)
{
    uint32_t found;
    const dlc_expr *dims = dlc_node_dims(node, id, &found);
    if (!dlc_node_attr(node, id))
        return DLC_OK;
    if (found != n)
        return wrong_count(graph, node, id, found, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t value;
        if (dlc_expr_is_int(graph->pool, dims[i], &value) && (value < lo || value > hi))
            return DLC_REFUSE("%s[%" PRIu32 "] = %" PRId64 " is outside [%" PRId64 ", %" PRId64 "]",
                              dlc_attrs[id].text, i, value, lo, hi);
    }
    return DLC_OK;
}

dlc_status dlc_infer_ints(dlc_graph *graph, const dlc_node *node, dlc_attr_id id, uint32_t n,
                          int64_t lo, int64_t hi, int64_t otherwise, int64_t *out)
{
    uint32_t found;
    const dlc_expr *dims = dlc_node_dims(node, id, &found);
    DLC_TRY(dlc_infer_list(graph, node, id, n, lo, hi));
    for (uint32_t i = 0; i < n; i++) {
        out[i] = otherwise;
        if (dims && !dlc_expr_is_int(graph->pool, dims[i], &out[i]))
            return DLC_REFUSE("%s[%" PRIu32 "] is %s; a constant is wanted", dlc_attrs[id].text, i,
                              dlc_dim_text(graph, dims[i]));
    }
    return DLC_OK;
}

dlc_status dlc_infer_dims(dlc_graph *graph, const dlc_node *node, dlc_type *type)
{
    uint32_t n;
    const dlc_expr *dims = dlc_node_dims(node, DLC_ATTR_DIMS, &n);
    if (n > DLC_MAX_RANK)
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "the result has %" PRIu32 " dimensions; up to %d are possible", n,
                        DLC_MAX_RANK);
    DLC_TRY(dlc_infer_list(graph, node, DLC_ATTR_DIMS, n, 0, DLC_MAX_ELEMS));
    type->rank = (uint8_t)n;
    for (uint32_t d = 0; d < n; d++)
        type->dims[d] = dims[d];
    return DLC_OK;
}

dlc_status dlc_infer_equal(dlc_graph *graph, const dlc_node *node, dlc_expr a, dlc_expr b,
                           const char *what, dlc_expr *result)
{
    if (a == b) {
        *result = a;
        return DLC_OK;
    }
    const char *left = dlc_dim_text(graph, a), *right = dlc_dim_text(graph, b);
    const char *name = dlc_infer_name(node);
    const char *text = dlc_arena_printf(graph->arena, "node '%.200s': %s: %s and %s must be equal",
                                        name, what, left, right);
    if (dlc_graph_equal(graph, a, b, text, result))
        return DLC_OK;
    return DLC_REFUSE("%s: %s and %s differ", what, left, right);
}

dlc_expr dlc_infer_broadcast_to(dlc_graph *graph, const dlc_node *node, dlc_expr small, dlc_expr dim)
{
    dlc_pool *pool = graph->pool;
    dlc_expr is_one = dlc_eq(pool, small, dlc_expr_i64(pool, 1)), fits = dlc_expr2(pool, DLC_EXPR_OR, is_one, dlc_eq(pool, small, dim));
    if (dlc_node_of(pool, dim)->op == DLC_EXPR_SELECT && dim == dlc_select(pool, is_one, dlc_arg(pool, dim, 1), small))
        return dim; /* it says so by itself */
    dlc_graph_require(graph, fits, "node '%.200s': broadcast dimensions: %s must be 1 or %s", dlc_infer_name(node),
                      dlc_dim_text(graph, small), dlc_dim_text(graph, dim));
    return dim;
}

/* Either is 1, or they are equal, says the run: the other one where the left is 1. */
static dlc_expr broadcast_both(dlc_graph *graph, const dlc_node *node, dlc_expr left, dlc_expr right)
{
    dlc_pool *pool = graph->pool;
    dlc_expr one = dlc_expr_i64(pool, 1), left_is_one = dlc_eq(pool, left, one);
    dlc_expr is_one = dlc_expr2(pool, DLC_EXPR_OR, left_is_one, dlc_eq(pool, right, one));
    dlc_graph_require(graph, dlc_expr2(pool, DLC_EXPR_OR, is_one, dlc_eq(pool, left, right)),
                      "node '%.200s': broadcast dimensions: %s and %s must be equal, or one of them 1", dlc_infer_name(node),
                      dlc_dim_text(graph, left), dlc_dim_text(graph, right));
    return dlc_select(pool, left_is_one, right, left);
}

/* What dimensions that are not 1 for certain are broadcast to. Those that are computed from others are taken for equal. */
static dlc_status broadcast_dim(dlc_graph *graph, const dlc_node *node, dlc_expr left, dlc_expr right, dlc_expr *result)
{
    int left_is_one = dlc_dim_broadcasts(graph, left), right_is_one = dlc_dim_broadcasts(graph, right);
    int left_may = dlc_dim_may_broadcast(graph, left), right_may = dlc_dim_may_broadcast(graph, right);
    int64_t known;
    if (left == right)
        *result = left;
    else if (left_is_one != right_is_one)
        *result = left_is_one ? dlc_infer_broadcast_to(graph, node, left, right)
                              : dlc_infer_broadcast_to(graph, node, right, left);
    else if ((left_may && dlc_expr_is_int(graph->pool, right, &known)) || dlc_dim_has_part(graph, right, left))
        *result = dlc_infer_broadcast_to(graph, node, left, right);
    else if ((right_may && dlc_expr_is_int(graph->pool, left, &known)) || dlc_dim_has_part(graph, left, right))
        *result = dlc_infer_broadcast_to(graph, node, right, left);
    else if (left_may && right_may)
        *result = broadcast_both(graph, node, left, right);
    else
        return dlc_infer_equal(graph, node, left, right, "broadcast dimensions", result);
    return DLC_OK;
}

dlc_status dlc_infer_broadcast_dims(dlc_graph *graph, const dlc_node *node, const dlc_type *a,
                                    const dlc_type *b, dlc_type *result)
{
    dlc_expr one = dlc_expr_i64(graph->pool, 1);
    dlc_type shape = {.dtype = result->dtype, .rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint8_t d = 0; d < shape.rank; d++) {
        dlc_expr left = d + a->rank >= shape.rank ? a->dims[d + a->rank - shape.rank] : one;
        dlc_expr right = d + b->rank >= shape.rank ? b->dims[d + b->rank - shape.rank] : one;
        if (left == one || right == one)
            shape.dims[d] = left == one ? right : left;
        else
            DLC_TRY(broadcast_dim(graph, node, left, right, &shape.dims[d]));
    }
    *result = shape;
    return DLC_OK;
}

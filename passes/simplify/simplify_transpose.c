/*
 * Transposes sink: what follows one is computed on its input instead, and the transpose comes
 * after. So the pairs that exporters put around every convolution meet and cancel
 * (transpose_of_transpose), and what is left stands as late as possible. A transpose costs nothing
 * by itself, so the rules need no profit, only an end: each moves one transpose past one node
 * towards the outputs.
 */
#include "ir/graph/form.h"
#include "passes/simplify/simplify.h"

#include <string.h>

typedef struct {
    uint32_t rank;
    int64_t perm[DLC_MAX_RANK];    /* of the transposes: result dimension i is dimension perm[i] of
                                      their input */
    int64_t inverse[DLC_MAX_RANK]; /* inverse[perm[i]] = i */
} order;

static order order_of(const dlc_graph *graph, const dlc_node *transpose)
{
    order result = {.rank = transpose->outputs[0]->type.rank};
    dlc_transpose_perm(graph, transpose, result.perm);
    for (uint32_t d = 0; d < result.rank; d++)
        result.inverse[result.perm[d]] = d;
    return result;
}

static int has_order(const dlc_graph *graph, const dlc_value *value, const order *wanted)
{
    if (!dlc_is_op(value, DLC_OP_TRANSPOSE) || value->type.rank != wanted->rank)
        return 0;
    order found = order_of(graph, value->def);
    return !memcmp(found.perm, wanted->perm, wanted->rank * sizeof *wanted->perm);
}

static int has_one_element(const dlc_graph *graph, const dlc_value *value)
{
    int64_t elems;
    return dlc_type_elems(graph->pool, &value->type, &elems) && elems == 1;
}

/* A constant operand as it is met by the untransposed ones: brought to full rank, dimensions put
 * back. NULL: not foldable. */
static dlc_value *untranspose_constant(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *constant,
                                       const order *moved)
{
    dlc_graph *graph = ctx->graph;
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t missing = moved->rank - constant->type.rank;
    for (uint32_t d = 0; d < moved->rank; d++)
        dims[d] = d < missing ? dlc_expr_i64(graph->pool, 1) : constant->type.dims[d - missing];
    if (missing)
        constant = dlc_build_folded(ctx, dlc_build_reshape(graph, at, constant, dims, moved->rank));
    return constant
               ? dlc_build_folded(ctx, dlc_build_transpose(graph, at, constant, moved->inverse))
               : NULL;
}

/* The operand before the transposes; NULL when it does not go along. */
static dlc_value *untranspose(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *operand,
                              const order *moved)
{
    if (has_order(ctx->graph, operand, moved))
        return operand->def->inputs[0];
    if (has_one_element(ctx->graph, operand) && operand->type.rank <= 1)
        return operand;
    if (!dlc_is_constant(operand) || operand->type.rank > moved->rank)
        return NULL;
    return untranspose_constant(ctx, at, operand, moved);
}

/* Something that could not go along, found before anything is built. */
static int goes_along(const dlc_graph *graph, const dlc_value *operand, const order *moved)
{
    return !operand || has_order(graph, operand, moved) ||
           (dlc_is_constant(operand) && operand->type.rank <= moved->rank) ||
           (has_one_element(graph, operand) && operand->type.rank <= 1);
}

static const dlc_node *first_transpose(const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (dlc_is_op(node->inputs[i], DLC_OP_TRANSPOSE) &&
            node->inputs[i]->type.rank == node->outputs[0]->type.rank)
            return node->inputs[i]->def;
    return NULL;
}

/* f(transpose(x), transpose(y)) = transpose(f(x, y)); constants are transposed back at compile time
 */
dlc_value *dlc_rule_transpose_below_map(dlc_pass_ctx *ctx, dlc_node *node)
{
    const dlc_node *transpose = first_transpose(node);
    if (!transpose || node->ninputs > DLC_MOST_OPERANDS)
        return NULL;
    order moved = order_of(ctx->graph, transpose);
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (!goes_along(ctx->graph, node->inputs[i], &moved))
            return NULL;
    if (!dlc_form_of(ctx->graph, node, ctx->scratch).is_pointwise)
        return NULL;
    dlc_value *inputs[DLC_MOST_OPERANDS];
    for (uint32_t i = 0; i < node->ninputs; i++) {
        inputs[i] = node->inputs[i] ? untranspose(ctx, node, node->inputs[i], &moved) : NULL;
        if (node->inputs[i] && !inputs[i])
            return NULL;
    }
    dlc_value *result = dlc_build_map_like(ctx, node, inputs);
    result = result ? dlc_build_transpose(ctx->graph, node, result, moved.perm) : NULL;
    /* What reads nothing of an input (a pad of no elements) is pointwise too, and its shape need not be the input's. */
    return result && dlc_same_type(&result->type, &node->outputs[0]->type) ? result : NULL;
}

/* The input dimensions a reduction over the transposed `axes` folds, ascending. */
static dlc_attr reduced_axes(dlc_graph *graph, const dlc_node *node, const order *moved)
{
    uint32_t n;
    int64_t axes[DLC_MAX_RANK];
    uint8_t is_reduced[DLC_MAX_RANK] = {0};
    const dlc_expr *given = dlc_node_dims(node, DLC_ATTR_AXES, &n);
    for (uint32_t i = 0; i < n; i++)
        is_reduced[moved->perm[dlc_expr_value(graph->pool, given[i])]] = 1;
    n = 0;
    for (uint32_t d = 0; d < moved->rank; d++)
        if (is_reduced[d])
            axes[n++] = d;
    return dlc_attr_ints(graph, DLC_ATTR_AXES, axes, n);
}

/* Where the kept dimensions go once the reduced ones are gone. */
static void kept_perm(const dlc_graph *graph, const dlc_node *node, const order *moved,
                      int64_t *perm)
{
    uint32_t n, nkept = 0;
    uint8_t is_reduced[DLC_MAX_RANK] = {0}; /* by dimension of the transposed value */
    const dlc_expr *given = dlc_node_dims(node, DLC_ATTR_AXES, &n);
    for (uint32_t i = 0; i < n; i++)
        is_reduced[dlc_expr_value(graph->pool, given[i])] = 1;
    for (uint32_t d = 0; d < moved->rank; d++) {
        if (is_reduced[d])
            continue;
        int64_t from = 0; /* kept dimensions of the input before perm[d] */
        for (uint32_t other = 0; other < moved->rank; other++)
            from += !is_reduced[other] && moved->perm[other] < moved->perm[d];
        perm[nkept++] = from;
    }
}

/* reduce(transpose(x), axes) = transpose(reduce(x, perm[axes])) */
dlc_value *dlc_rule_transpose_below_reduce(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!node->ninputs || !dlc_is_op(node->inputs[0], DLC_OP_TRANSPOSE) ||
        !dlc_form_of(ctx->graph, node, ctx->scratch).is_reduction)
        return NULL;
    dlc_graph *graph = ctx->graph;
    order moved = order_of(graph, node->inputs[0]->def);
    int64_t keepdims = dlc_node_int(node, DLC_ATTR_KEEPDIMS, 0), perm[DLC_MAX_RANK];
    dlc_attr attrs[3] = {reduced_axes(graph, node, &moved)};
    uint32_t nattrs = 1;
    if (dlc_node_attr(node, DLC_ATTR_KEEPDIMS))
        attrs[nattrs++] = dlc_attr_int(DLC_ATTR_KEEPDIMS, keepdims);
    if (dlc_node_attr(node, DLC_ATTR_DTYPE))
        attrs[nattrs++] = dlc_attr_int(DLC_ATTR_DTYPE, dlc_node_int(node, DLC_ATTR_DTYPE, 0));
    dlc_value *x = node->inputs[0]->def->inputs[0];
    dlc_value *result = dlc_build(graph, node, node->op, &x, 1, attrs, nattrs);
    if (!result || !dlc_is_same_formula(ctx, node, result->def))
        return NULL;
    if (result->type.rank == moved.rank)
        return dlc_build_transpose(graph, node, result, moved.perm);
    kept_perm(graph, node, &moved, perm);
    return dlc_build_transpose(graph, node, result, perm);
}

/* concat(transpose(x), transpose(y)) = transpose(concat(x, y)) */
dlc_value *dlc_rule_transpose_below_concat(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    if (!dlc_is_op(node->inputs[0], DLC_OP_TRANSPOSE))
        return NULL;
    order moved = order_of(graph, node->inputs[0]->def);
    dlc_value **inputs = dlc_new_array(ctx->scratch, dlc_value *, node->ninputs);
    for (uint32_t i = 0; i < node->ninputs; i++) {
        if (!has_order(graph, node->inputs[i], &moved))
            return NULL;
        inputs[i] = node->inputs[i]->def->inputs[0];
    }
    dlc_attr axis = dlc_attr_int(DLC_ATTR_AXIS, moved.perm[dlc_node_int(node, DLC_ATTR_AXIS, 0)]);
    dlc_value *result = dlc_build(graph, node, DLC_OP_CONCAT, inputs, node->ninputs, &axis, 1);
    return result ? dlc_build_transpose(graph, node, result, moved.perm) : NULL;
}

/* pad(transpose(x)) = transpose(pad(x)) */
dlc_value *dlc_rule_transpose_below_pad(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    if (!dlc_is_op(node->inputs[0], DLC_OP_TRANSPOSE))
        return NULL;
    order moved = order_of(graph, node->inputs[0]->def);
    uint32_t npads;
    const dlc_expr *pads = dlc_node_dims(node, DLC_ATTR_PADS, &npads);
    dlc_expr back[2 * DLC_MAX_RANK];
    dlc_attr attrs[2];
    uint32_t nattrs = 0;
    for (uint32_t d = 0; d < moved.rank; d++) {
        back[moved.perm[d]] = pads[d];
        back[moved.rank + moved.perm[d]] = pads[moved.rank + d];
    }
    attrs[nattrs++] = dlc_attr_dims(DLC_ATTR_PADS, back, npads);
    if (dlc_node_attr(node, DLC_ATTR_MODE))
        attrs[nattrs++] = *dlc_node_attr(node, DLC_ATTR_MODE);
    dlc_value *inputs[2] = {node->inputs[0]->def->inputs[0],
                            node->ninputs > 1 ? node->inputs[1] : NULL};
    dlc_value *result = dlc_build(graph, node, DLC_OP_PAD, inputs, node->ninputs, attrs, nattrs);
    return result ? dlc_build_transpose(graph, node, result, moved.perm) : NULL;
}

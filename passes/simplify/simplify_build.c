/* What rules are written with: reading patterns, and building right sides. */
#include "ir/graph/form.h"
#include "passes/simplify/const_fold.h"
#include "passes/simplify/simplify.h"

#include <math.h>
#include <string.h>

/* --- patterns --- */

int dlc_same_type(const dlc_type *a, const dlc_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

int dlc_is_filled(const dlc_value *value, dlc_scalar *element)
{
    if (dlc_is_op(value, DLC_OP_EXPAND))
        value = value->def->inputs[0];
    if (!dlc_is_constant(value) || !value->data->size_bytes)
        return 0;
    const uint8_t *bytes = value->data->bytes;
    uint32_t size = dlc_dtype_bytes(value->type.dtype);
    if (memcmp(bytes, bytes + size, value->data->size_bytes - size))
        return 0;
    *element = dlc_scalar_read(value->type.dtype, bytes);
    return 1;
}

int dlc_is_filled_with(const dlc_value *value, double number)
{
    dlc_scalar element;
    if (!value || !dlc_is_filled(value, &element))
        return 0;
    if (dlc_is_float(value->type.dtype))
        return element.f == number && !signbit(element.f) == !signbit(number);
    return value->type.dtype != DLC_BOOL && element.i == (int64_t)number;
}

void dlc_transpose_perm(const dlc_graph *graph, const dlc_node *transpose,
                        int64_t perm[DLC_MAX_RANK])
{
    uint32_t rank;
    const dlc_expr *dims = dlc_node_dims(transpose, DLC_ATTR_PERM, &rank);
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = dlc_expr_value(graph->pool, dims[d]);
}

/* --- right sides --- */

dlc_value *dlc_build(dlc_graph *graph, dlc_node *at, dlc_opcode op, dlc_value *const *inputs,
                     uint32_t ninputs, const dlc_attr *attrs, uint32_t nattrs)
{
    dlc_node_spec spec = {.op = op,
                          .origin = at->origin,
                          .name = at->outputs[0]->name,
                          .inputs = inputs,
                          .ninputs = ninputs,
                          .attrs = attrs,
                          .nattrs = nattrs,
                          .before = at};
    dlc_node *node = dlc_graph_node(graph, &spec);
    return node ? node->outputs[0] : NULL;
}

dlc_value *dlc_build2(dlc_graph *graph, dlc_node *at, dlc_opcode op, dlc_value *a, dlc_value *b)
{
    dlc_value *inputs[2] = {a, b};
    return dlc_build(graph, at, op, inputs, 2, NULL, 0);
}

dlc_value *dlc_build_like(dlc_graph *graph, dlc_node *node, dlc_value *const *inputs)
{
    return dlc_build(graph, node, node->op, inputs, node->ninputs, node->attrs, node->nattrs);
}

int dlc_is_same_formula(dlc_pass_ctx *ctx, dlc_node *a, dlc_node *b)
{
    dlc_form first = dlc_form_of(ctx->graph, a, ctx->scratch),
             second = dlc_form_of(ctx->graph, b, ctx->scratch);
    return dlc_form_equal(&first, &second);
}

dlc_value *dlc_build_map_like(dlc_pass_ctx *ctx, dlc_node *node, dlc_value *const *inputs)
{
    if (!dlc_form_of(ctx->graph, node, ctx->scratch).is_pointwise)
        return NULL;
    dlc_value *result = dlc_build_like(ctx->graph, node, inputs);
    return result && dlc_is_same_formula(ctx, node, result->def) ? result : NULL;
}

dlc_value *dlc_build_reshape(dlc_graph *graph, dlc_node *at, dlc_value *value, const dlc_expr *dims,
                             uint32_t rank)
{
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_DIMS, dims, rank);
    return dlc_build(graph, at, DLC_OP_RESHAPE, &value, 1, &attr, 1);
}

dlc_value *dlc_build_cast(dlc_graph *graph, dlc_node *at, dlc_value *value, dlc_dtype dtype)
{
    dlc_attr attr = dlc_attr_int(DLC_ATTR_DTYPE, dtype);
    return dlc_build(graph, at, DLC_OP_CAST, &value, 1, &attr, 1);
}

dlc_value *dlc_build_transpose(dlc_graph *graph, dlc_node *at, dlc_value *value,
                               const int64_t *perm)
{
    dlc_attr attr = dlc_attr_ints(graph, DLC_ATTR_PERM, perm, value->type.rank);
    return dlc_build(graph, at, DLC_OP_TRANSPOSE, &value, 1, &attr, 1);
}

dlc_value *dlc_build_folded(dlc_pass_ctx *ctx, dlc_value *built)
{
    if (!built)
        return NULL;
    dlc_value *constant = dlc_fold(ctx, built->def);
    dlc_graph_erase(ctx->graph, built->def);
    return constant;
}

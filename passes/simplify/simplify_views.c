/*
 * Rules of views: reshape, transpose, expand, slice, concat, pad, tile. Views cost nothing by
 * themselves, but each one that goes makes the index arithmetic of its reader simpler, and brings
 * together nodes that other rules look at.
 */
#include "passes/simplify/simplify.h"

#include <string.h>

enum { MOST_UNPACKING = 4 }; /* nodes from codes to numbers */

static int is_int(const dlc_graph *graph, dlc_expr expr, int64_t *value)
{
    return dlc_expr_is_int(graph->pool, expr, value);
}

static int is_number(const dlc_graph *graph, dlc_expr expr, int64_t wanted)
{
    int64_t value;
    return is_int(graph, expr, &value) && value == wanted;
}

/* All of an attribute's numbers are `wanted`; an absent attribute is. */
static int are_all(const dlc_graph *graph, const dlc_node *node, dlc_attr_id id, int64_t wanted)
{
    uint32_t n;
    const dlc_expr *dims = dlc_node_dims(node, id, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!is_number(graph, dims[i], wanted))
            return 0;
    return 1;
}

static int is_identity_perm(const dlc_graph *graph, const dlc_node *node)
{
    int64_t perm[DLC_MAX_RANK];
    dlc_transpose_perm(graph, node, perm);
    for (uint32_t d = 0; d < node->outputs[0]->type.rank; d++)
        if (perm[d] != d)
            return 0;
    return 1;
}

/* A reshape, expand or tile to the shape it has, a transpose that moves nothing, a slice of all, a
 * pad by nothing */
dlc_value *dlc_rule_view_same(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *x = node->ninputs ? node->inputs[0] : NULL;
    if (!x || !dlc_same_type(&x->type, &node->outputs[0]->type))
        return NULL;
    switch (node->op) {
    case DLC_OP_RESHAPE:
    case DLC_OP_EXPAND:
    case DLC_OP_TILE:
        return x;
    case DLC_OP_TRANSPOSE:
        return is_identity_perm(ctx->graph, node) ? x : NULL;
    case DLC_OP_SLICE:
        return are_all(ctx->graph, node, DLC_ATTR_STARTS, 0) &&
                       are_all(ctx->graph, node, DLC_ATTR_STEPS, 1)
                   ? x
                   : NULL;
    case DLC_OP_PAD:
        return are_all(ctx->graph, node, DLC_ATTR_PADS, 0) ? x : NULL;
    default:
        return NULL;
    }
}

/* An expand of one element. */
static int is_fill(const dlc_graph *graph, const dlc_value *value)
{
    int64_t elems;
    return dlc_is_op(value, DLC_OP_EXPAND) &&
           dlc_type_elems(graph->pool, &value->def->inputs[0]->type, &elems) && elems == 1;
}

/* A view of a fill is a fill */
dlc_value *dlc_rule_view_of_fill(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    const dlc_type *type = &node->outputs[0]->type;
    if (node->op != DLC_OP_RESHAPE && node->op != DLC_OP_TRANSPOSE && node->op != DLC_OP_SLICE &&
        node->op != DLC_OP_TILE)
        return NULL;
    if (!is_fill(graph, node->inputs[0]))
        return NULL;
    dlc_value *element = node->inputs[0]->def->inputs[0];
    if (element->type.rank > type->rank)
        element = dlc_build_reshape(graph, node, element, NULL, 0);
    dlc_attr dims = dlc_attr_dims(DLC_ATTR_DIMS, type->dims, type->rank);
    return element ? dlc_build(graph, node, DLC_OP_EXPAND, &element, 1, &dims, 1) : NULL;
}

/* reshape(reshape(x)) = reshape(x) */
dlc_value *dlc_rule_reshape_of_reshape(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!dlc_is_op(node->inputs[0], DLC_OP_RESHAPE))
        return NULL;
    dlc_value *x = node->inputs[0]->def->inputs[0];
    return dlc_same_type(&x->type, &node->outputs[0]->type) ? x
                                                            : dlc_build_like(ctx->graph, node, &x);
}

/* expand(expand(x)) = expand(x) */
dlc_value *dlc_rule_expand_of_expand(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!dlc_is_op(node->inputs[0], DLC_OP_EXPAND))
        return NULL;
    return dlc_build_like(ctx->graph, node, &node->inputs[0]->def->inputs[0]);
}

/* transpose(transpose(x, p), q) = transpose(x, r), r[i] = p[q[i]] */
dlc_value *dlc_rule_transpose_of_transpose(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!dlc_is_op(node->inputs[0], DLC_OP_TRANSPOSE))
        return NULL;
    int64_t inner[DLC_MAX_RANK], outer[DLC_MAX_RANK], both[DLC_MAX_RANK];
    dlc_value *x = node->inputs[0]->def->inputs[0];
    int moves = 0;
    dlc_transpose_perm(ctx->graph, node->inputs[0]->def, inner);
    dlc_transpose_perm(ctx->graph, node, outer);
    for (uint32_t d = 0; d < x->type.rank; d++) {
        both[d] = inner[outer[d]];
        moves |= both[d] != d;
    }
    return moves ? dlc_build_transpose(ctx->graph, node, x, both) : x;
}

/* A transpose that keeps the order of all dimensions but those of extent 1 moves no element */
dlc_value *dlc_rule_transpose_of_units(dlc_pass_ctx *ctx, dlc_node *node)
{
    const dlc_type *type = &node->outputs[0]->type;
    int64_t perm[DLC_MAX_RANK], last = -1;
    dlc_transpose_perm(ctx->graph, node, perm);
    for (uint32_t d = 0; d < type->rank; d++) {
        if (is_number(ctx->graph, type->dims[d], 1))
            continue;
        if (perm[d] < last)
            return NULL;
        last = perm[d];
    }
    if (is_identity_perm(ctx->graph, node))
        return NULL; /* view_same's */
    return dlc_build_reshape(ctx->graph, node, node->inputs[0], type->dims, type->rank);
}

/* --- slices --- */

static dlc_expr attr_or(const dlc_graph *graph, const dlc_node *node, dlc_attr_id id, uint32_t i,
                        int64_t otherwise)
{
    uint32_t n;
    const dlc_expr *dims = dlc_node_dims(node, id, &n);
    return dims ? dims[i] : dlc_expr_i64(graph->pool, otherwise);
}

typedef struct {
    dlc_expr starts[DLC_MAX_RANK], steps[DLC_MAX_RANK], dims[DLC_MAX_RANK];
} slice;

static slice slice_of(const dlc_graph *graph, const dlc_node *node)
{
    slice result;
    for (uint32_t d = 0; d < node->outputs[0]->type.rank; d++) {
        result.starts[d] = attr_or(graph, node, DLC_ATTR_STARTS, d, 0);
        result.steps[d] = attr_or(graph, node, DLC_ATTR_STEPS, d, 1);
        result.dims[d] = node->outputs[0]->type.dims[d];
    }
    return result;
}

static dlc_value *build_slice(dlc_graph *graph, dlc_node *at, dlc_value *x, const slice *what)
{
    dlc_attr attrs[3] = {dlc_attr_dims(DLC_ATTR_STARTS, what->starts, x->type.rank),
                         dlc_attr_dims(DLC_ATTR_STEPS, what->steps, x->type.rank),
                         dlc_attr_dims(DLC_ATTR_DIMS, what->dims, x->type.rank)};
    return dlc_build(graph, at, DLC_OP_SLICE, &x, 1, attrs, 3);
}

/* slice(slice(x)): starts s1 + t1 * s2, steps t1 * t2 */
dlc_value *dlc_rule_slice_of_slice(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!dlc_is_op(node->inputs[0], DLC_OP_SLICE))
        return NULL;
    dlc_pool *pool = ctx->graph->pool;
    slice inner = slice_of(ctx->graph, node->inputs[0]->def), outer = slice_of(ctx->graph, node);
    for (uint32_t d = 0; d < node->outputs[0]->type.rank; d++) {
        outer.starts[d] =
            dlc_add(pool, inner.starts[d], dlc_mul(pool, inner.steps[d], outer.starts[d]));
        outer.steps[d] = dlc_mul(pool, inner.steps[d], outer.steps[d]);
    }
    return build_slice(ctx->graph, node, node->inputs[0]->def->inputs[0], &outer);
}

/* First and last index a slice reads along a dimension, in ascending order. False when empty or not
 * static. */
static int slice_span(const dlc_graph *graph, const slice *what, uint32_t axis, int64_t *lo,
                      int64_t *hi)
{
    int64_t start, step, count, length;
    if (!is_int(graph, what->starts[axis], &start) || !is_int(graph, what->steps[axis], &step) ||
        !is_int(graph, what->dims[axis], &count) || count < 1 ||
        !dlc_mul_i64(step, count - 1, &length))
        return 0;
    *lo = length < 0 ? start + length : start;
    *hi = length < 0 ? start : start + length;
    return 1;
}

/* slice(concat(x, y)) = slice(y) when it reads nothing of x */
dlc_value *dlc_rule_slice_of_concat(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!dlc_is_op(node->inputs[0], DLC_OP_CONCAT))
        return NULL;
    const dlc_graph *graph = ctx->graph;
    const dlc_node *concat = node->inputs[0]->def;
    uint32_t axis = (uint32_t)dlc_node_int(concat, DLC_ATTR_AXIS, 0);
    slice what = slice_of(graph, node);
    int64_t lo, hi, offset = 0, extent;
    if (!slice_span(graph, &what, axis, &lo, &hi))
        return NULL;
    for (uint32_t i = 0; i < concat->ninputs; i++, offset += extent) {
        if (!is_int(graph, concat->inputs[i]->type.dims[axis], &extent) || lo < offset)
            return NULL;
        if (hi >= offset + extent)
            continue;
        what.starts[axis] = dlc_addi(graph->pool, what.starts[axis], -offset);
        return build_slice(ctx->graph, node, concat->inputs[i], &what);
    }
    return NULL;
}

/* Element i of a constant of integers. */
static int64_t int_at(const dlc_value *constant, uint32_t i)
{
    const uint8_t *bytes = constant->data->bytes;
    return dlc_scalar_read(constant->type.dtype,
                           bytes + (size_t)i * dlc_dtype_bytes(constant->type.dtype))
        .i;
}

/* The constant's elements as start, start + step, ...; negative ones count from the end. False when
 * one is out of range. */
static int is_progression(const dlc_value *indices, int64_t nindices, int64_t extent,
                          int64_t *start, int64_t *step)
{
    *step = 1;
    for (int64_t i = 0, previous = 0; i < nindices; i++) {
        int64_t index = int_at(indices, (uint32_t)i);
        index += index < 0 ? extent : 0;
        if (index < 0 || index >= extent)
            return 0;
        if (i == 0)
            *start = index;
        else if (i == 1)
            *step = index - previous;
        if (i > 0 && (index - previous != *step || *step == 0))
            return 0;
        previous = index;
    }
    return 1;
}

/* gather(x, [i, i + s, i + 2 s, ...]) = slice(x); a scalar index also drops the dimension */
dlc_value *dlc_rule_gather_of_constant(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    dlc_value *x = node->inputs[0], *indices = node->inputs[1];
    uint32_t axis = (uint32_t)dlc_node_int(node, DLC_ATTR_AXIS, 0);
    int64_t extent, nindices, start, step;
    if (!dlc_is_constant(indices) || indices->type.rank > 1 ||
        !is_int(graph, x->type.dims[axis], &extent) ||
        !dlc_type_elems(graph->pool, &indices->type, &nindices) || nindices < 1 ||
        nindices > INT32_MAX)
        return NULL;
    if (!is_progression(indices, nindices, extent, &start, &step))
        return NULL;
    slice what;
    for (uint32_t d = 0; d < x->type.rank; d++) {
        what.starts[d] = dlc_expr_i64(graph->pool, d == axis ? start : 0);
        what.steps[d] = dlc_expr_i64(graph->pool, d == axis ? step : 1);
        what.dims[d] = d == axis ? dlc_expr_i64(graph->pool, nindices) : x->type.dims[d];
    }
    dlc_value *cut = build_slice(graph, node, x, &what);
    const dlc_type *type = &node->outputs[0]->type;
    return cut && !indices->type.rank ? dlc_build_reshape(graph, node, cut, type->dims, type->rank)
                                      : cut;
}

/* The constant of fewer bits that casts, differences and products of its shape made this of; NULL: none. */
static const dlc_value *codes_of(const dlc_value *wide)
{
    const dlc_value *at = wide;
    for (int n = 0; n < MOST_UNPACKING; n++) {
        const dlc_node *map = at->def;
        if (!map || (map->op != DLC_OP_CAST && map->op != DLC_OP_SUB && map->op != DLC_OP_ADD && map->op != DLC_OP_MUL))
            return NULL;
        const dlc_value *table = map->inputs[0];
        if (table->type.rank != wide->type.rank ||
            memcmp(table->type.dims, wide->type.dims, wide->type.rank * sizeof *wide->type.dims) != 0)
            return NULL;
        if (dlc_is_constant(table))
            return dlc_dtypes[table->type.dtype].bits < dlc_dtypes[wide->type.dtype].bits ? table : NULL;
        at = table;
    }
    return NULL;
}

/* gather(f(codes, s), i) = f(gather(codes, i), s): only what is looked up is widened. s: behind the axis, or of its length */
dlc_value *dlc_rule_gather_of_codes(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *x = node->inputs[0], *indices = node->inputs[1], *inputs[2];
    uint32_t axis = (uint32_t)dlc_node_int(node, DLC_ATTR_AXIS, 0), ninputs = x->def ? x->def->ninputs : 0;
    if (!codes_of(x) || ninputs > 2)
        return NULL;
    dlc_value *scale = ninputs == 2 ? x->def->inputs[1] : NULL;
    int is_behind = !scale || scale->type.rank + axis < x->type.rank;
    if (scale && (!dlc_is_constant(scale) ||
                  (!is_behind && (scale->type.rank != x->type.rank || scale->type.dims[axis] != x->type.dims[axis]))))
        return NULL;
    for (uint32_t i = 0; i < ninputs; i++)
        inputs[i] = i && is_behind ? scale
                                   : dlc_build(ctx->graph, node, DLC_OP_GATHER, (dlc_value *[]){x->def->inputs[i], indices}, 2, node->attrs,
                                               node->nattrs);
    if (!inputs[0] || (scale && !inputs[1]))
        return NULL;
    return dlc_build(ctx->graph, node, x->def->op, inputs, ninputs, x->def->attrs, x->def->nattrs);
}

/* --- concat --- */

/* concat(x) = x; parts of extent 0 are left out */
dlc_value *dlc_rule_concat_of_one(dlc_pass_ctx *ctx, dlc_node *node)
{
    uint32_t axis = (uint32_t)dlc_node_int(node, DLC_ATTR_AXIS, 0), nparts = 0;
    dlc_value **parts = dlc_new_array(ctx->scratch, dlc_value *, node->ninputs);
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (!is_number(ctx->graph, node->inputs[i]->type.dims[axis], 0))
            parts[nparts++] = node->inputs[i];
    if (node->ninputs == 1 || nparts == 0)
        return dlc_same_type(&node->inputs[0]->type, &node->outputs[0]->type) ? node->inputs[0]
                                                                              : NULL;
    if (nparts == node->ninputs)
        return NULL;
    if (nparts == 1)
        return dlc_same_type(&parts[0]->type, &node->outputs[0]->type) ? parts[0] : NULL;
    return dlc_build(ctx->graph, node, DLC_OP_CONCAT, parts, nparts, node->attrs, node->nattrs);
}

static int is_concat_along(const dlc_value *value, int64_t axis)
{
    return dlc_is_op(value, DLC_OP_CONCAT) && dlc_node_int(value->def, DLC_ATTR_AXIS, 0) == axis;
}

/* concat(concat(x, y), z) = concat(x, y, z): where the inner one has other readers too it is
 * written for them alone, so only one that has none is opened. */
dlc_value *dlc_rule_concat_of_concat(dlc_pass_ctx *ctx, dlc_node *node)
{
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, 0);
    dlc_vec(dlc_value *) parts = {0};
    for (uint32_t i = 0; i < node->ninputs; i++) {
        dlc_value *input = node->inputs[i];
        if (!is_concat_along(input, axis) || dlc_value_nuses(input) != 1) {
            dlc_vec_push(ctx->scratch, &parts, input);
            continue;
        }
        for (uint32_t j = 0; j < input->def->ninputs; j++)
            dlc_vec_push(ctx->scratch, &parts, input->def->inputs[j]);
    }
    if (parts.n == node->ninputs)
        return NULL;
    return dlc_build(ctx->graph, node, DLC_OP_CONCAT, parts.data, parts.n, node->attrs,
                     node->nattrs);
}

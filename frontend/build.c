/* The builder: core nodes in one line each. A NULL operand (something failed before) gives NULL
 * without a further report. */
#include "frontend/import.h"

#include <string.h>

dlc_node *f_node_with(dlc_import *im, dlc_opcode op, dlc_value *const *inputs, uint32_t ninputs,
                      uint32_t noutputs, const dlc_attr *attrs, uint32_t nattrs)
{
    for (uint32_t i = 0; i < ninputs; i++) {
        if (im_list_of(im, inputs[i])) {
            im_fail(im, DLC_UNSUPPORTED, "a sequence or an optional, where a tensor is wanted");
            return NULL;
        }
    }
    return dlc_graph_node(im->graph, &(dlc_node_spec){.op = op,
                                                      .origin = im->origin,
                                                      .inputs = inputs,
                                                      .ninputs = ninputs,
                                                      .noutputs = noutputs,
                                                      .attrs = attrs,
                                                      .nattrs = nattrs});
}

dlc_value *f_node(dlc_import *im, dlc_opcode op, dlc_value *const *inputs, uint32_t ninputs,
                  const dlc_attr *attrs, uint32_t nattrs)
{
    for (uint32_t i = 0; i < ninputs; i++) {
        if (!inputs[i])
            return NULL;
    }
    dlc_node *node = f_node_with(im, op, inputs, ninputs, 1, attrs, nattrs);
    return node ? node->outputs[0] : NULL;
}

dlc_value *f_scalar(dlc_import *im, dlc_dtype dtype, double value)
{
    return dlc_graph_scalar(im->graph, dtype, value);
}

dlc_value *f_like(dlc_import *im, const dlc_value *like, double value)
{
    return like ? f_scalar(im, like->type.dtype, value) : NULL;
}

dlc_value *f_floats(dlc_import *im, const float *values, uint32_t n)
{
    dlc_type type = {.dtype = DLC_F32, .rank = 1, .dims = {dlc_expr_i64(im->pool, n)}};
    return dlc_graph_constant(im->graph, "floats", &type,
                              dlc_arena_copy(im->arena, values, n * sizeof *values),
                              n * sizeof *values);
}

dlc_value *f_unary(dlc_import *im, dlc_opcode op, dlc_value *x)
{
    return f_node(im, op, F_IN(x), F_PLAIN);
}

dlc_value *f_binary(dlc_import *im, dlc_opcode op, dlc_value *a, dlc_value *b)
{
    return f_node(im, op, F_IN(a, b), F_PLAIN);
}

dlc_value *f_add(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return f_binary(im, DLC_OP_ADD, a, b);
}

dlc_value *f_sub(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return f_binary(im, DLC_OP_SUB, a, b);
}

dlc_value *f_mul(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return f_binary(im, DLC_OP_MUL, a, b);
}

dlc_value *f_div(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return f_binary(im, DLC_OP_DIV, a, b);
}

dlc_value *f_min(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return f_binary(im, DLC_OP_MIN, a, b);
}

dlc_value *f_max(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return f_binary(im, DLC_OP_MAX, a, b);
}

dlc_value *f_clip(dlc_import *im, dlc_value *x, double lo, double hi)
{
    return f_node(im, DLC_OP_CLIP, F_IN(x, f_like(im, x, lo), f_like(im, x, hi)), F_PLAIN);
}

dlc_value *f_cast(dlc_import *im, dlc_value *x, dlc_dtype dtype)
{
    if (!x || x->type.dtype == dtype)
        return x;
    return f_node(im, DLC_OP_CAST, F_IN(x), F_ATTRS(dlc_attr_int(DLC_ATTR_DTYPE, dtype)));
}

dlc_value *f_encode(dlc_import *im, dlc_value *x, dlc_dtype dtype, int64_t saturate,
                    const char *mode)
{
    if (!x || x->type.dtype == dtype || !dlc_is_code(dtype))
        return f_cast(im, x, dtype);
    return f_node(im, DLC_OP_CAST, F_IN(x),
                  F_ATTRS(dlc_attr_int(DLC_ATTR_DTYPE, dtype),
                          dlc_attr_int(DLC_ATTR_SATURATE, saturate != 0),
                          dlc_attr_text(DLC_ATTR_MODE, mode)));
}

dlc_value *f_saturate(dlc_import *im, dlc_value *x, dlc_dtype dtype)
{
    if (!x || x->type.dtype == dtype)
        return x;
    return f_node(im, DLC_OP_CAST, F_IN(x),
                  F_ATTRS(dlc_attr_int(DLC_ATTR_DTYPE, dtype), dlc_attr_int(DLC_ATTR_SATURATE, 1)));
}

dlc_value *f_where(dlc_import *im, dlc_value *condition, dlc_value *yes, dlc_value *no)
{
    return f_node(im, DLC_OP_WHERE, F_IN(condition, yes, no), F_PLAIN);
}

static int has_dims(const dlc_value *x, const dlc_expr *dims, uint32_t rank)
{
    return x && x->type.rank == rank &&
           (!rank || memcmp(x->type.dims, dims, rank * sizeof *dims) == 0);
}

dlc_value *f_reshape(dlc_import *im, dlc_value *x, const dlc_expr *dims, uint32_t rank)
{
    if (has_dims(x, dims, rank))
        return x;
    return f_node(im, DLC_OP_RESHAPE, F_IN(x), F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, dims, rank)));
}

dlc_value *f_transpose(dlc_import *im, dlc_value *x, const uint8_t *perm)
{
    int64_t order[DLC_MAX_RANK];
    uint32_t moved = 0;
    if (!x)
        return NULL;
    for (uint32_t i = 0; i < im_rank(x); i++) {
        order[i] = perm[i];
        moved += perm[i] != i;
    }
    if (!moved)
        return x;
    return f_node(im, DLC_OP_TRANSPOSE, F_IN(x),
                  F_ATTRS(dlc_attr_ints(im->graph, DLC_ATTR_PERM, order, im_rank(x))));
}

dlc_value *f_swap_last(dlc_import *im, dlc_value *x)
{
    uint8_t perm[DLC_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (!x)
        return NULL;
    perm[im_rank(x) - 1] = (uint8_t)(im_rank(x) - 2);
    perm[im_rank(x) - 2] = (uint8_t)(im_rank(x) - 1);
    return f_transpose(im, x, perm);
}

dlc_value *f_expand(dlc_import *im, dlc_value *x, const dlc_expr *dims, uint32_t rank)
{
    if (has_dims(x, dims, rank))
        return x;
    return f_node(im, DLC_OP_EXPAND, F_IN(x), F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, dims, rank)));
}

dlc_value *f_insert_axis(dlc_import *im, dlc_value *x, uint32_t axis)
{
    dlc_expr dims[DLC_MAX_RANK + 1];
    if (!x)
        return NULL;
    for (uint32_t i = 0, from = 0; i <= im_rank(x); i++)
        dims[i] = i == axis ? dlc_expr_i64(im->pool, 1) : x->type.dims[from++];
    return f_reshape(im, x, dims, im_rank(x) + 1);
}

dlc_value *f_drop_axis(dlc_import *im, dlc_value *x, uint32_t axis)
{
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t n = 0;
    if (!x)
        return NULL;
    for (uint32_t i = 0; i < im_rank(x); i++) {
        if (i != axis)
            dims[n++] = x->type.dims[i];
    }
    return f_reshape(im, x, dims, n);
}

static dlc_value *slice_axis(dlc_import *im, dlc_value *x, uint32_t axis, dlc_expr start,
                             dlc_expr extent, int64_t step)
{
    dlc_expr starts[DLC_MAX_RANK], dims[DLC_MAX_RANK], steps[DLC_MAX_RANK];
    if (!x)
        return NULL;
    for (uint32_t i = 0; i < im_rank(x); i++) {
        starts[i] = i == axis ? start : dlc_expr_i64(im->pool, 0);
        dims[i] = i == axis ? extent : x->type.dims[i];
        steps[i] = dlc_expr_i64(im->pool, i == axis ? step : 1);
    }
    return f_node(im, DLC_OP_SLICE, F_IN(x),
                  F_ATTRS(dlc_attr_dims(DLC_ATTR_STARTS, starts, im_rank(x)),
                          dlc_attr_dims(DLC_ATTR_STEPS, steps, im_rank(x)),
                          dlc_attr_dims(DLC_ATTR_DIMS, dims, im_rank(x))));
}

dlc_value *f_slice(dlc_import *im, dlc_value *x, uint32_t axis, dlc_expr start, dlc_expr extent)
{
    int64_t first;
    if (x && dlc_expr_is_int(im->pool, start, &first) && first == 0 && extent == x->type.dims[axis])
        return x;
    return slice_axis(im, x, axis, start, extent, 1);
}

dlc_value *f_reverse(dlc_import *im, dlc_value *x, uint32_t axis)
{
    return x ? slice_axis(im, x, axis, dlc_addi(im->pool, x->type.dims[axis], -1),
                          x->type.dims[axis], -1)
             : NULL;
}

dlc_value *f_concat(dlc_import *im, dlc_value *const *parts, uint32_t n, uint32_t axis)
{
    return n == 1 ? parts[0]
                  : f_node(im, DLC_OP_CONCAT, parts, n, F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis)));
}

dlc_value *f_gather(dlc_import *im, dlc_value *x, dlc_value *indices, uint32_t axis)
{
    return f_node(im, DLC_OP_GATHER, F_IN(x, indices), F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis)));
}

dlc_value *f_matmul(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return f_binary(im, DLC_OP_MATMUL, a, b);
}

dlc_value *f_reduce(dlc_import *im, dlc_opcode op, dlc_value *x, const uint8_t *axes,
                    uint32_t naxes, int keepdims)
{
    int64_t list[DLC_MAX_RANK];
    for (uint32_t i = 0; i < naxes; i++)
        list[i] = axes[i];
    if (!naxes)
        return x;
    return f_node(im, op, F_IN(x),
                  F_ATTRS(dlc_attr_ints(im->graph, DLC_ATTR_AXES, list, naxes),
                          dlc_attr_int(DLC_ATTR_KEEPDIMS, keepdims)));
}

dlc_value *f_reduce_last(dlc_import *im, dlc_opcode op, dlc_value *x, uint32_t n, int keepdims)
{
    uint8_t axes[DLC_MAX_RANK];
    if (!x)
        return NULL;
    for (uint32_t i = 0; i < n && i < DLC_MAX_RANK; i++)
        axes[i] = (uint8_t)(im_rank(x) - n + i);
    return f_reduce(im, op, x, axes, n, keepdims);
}

dlc_value *f_iota(dlc_import *im, dlc_dtype dtype, dlc_expr n)
{
    return f_node(im, DLC_OP_RANGE, F_IN(f_scalar(im, dtype, 0), f_scalar(im, dtype, 1)),
                  F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, &n, 1)));
}

dlc_value *f_dim(dlc_import *im, dlc_dtype dtype, dlc_expr dim)
{
    int64_t value;
    if (dlc_expr_is_int(im->pool, dim, &value))
        return f_scalar(im, dtype, (double)value);
    return f_cast(im,
                  f_node(im, DLC_OP_SYMBOLS, NULL, 0,
                         F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, &dim, 1),
                                 dlc_attr_text(DLC_ATTR_MODE, "scalar"))),
                  dtype);
}

dlc_value *f_channel(dlc_import *im, dlc_value *v, uint32_t rank, uint32_t axis)
{
    dlc_expr dims[DLC_MAX_RANK];
    if (!v)
        return NULL;
    if (im_rank(v) != 1) {
        im_fail(im, DLC_INVALID, "'%s' has rank %d; a vector is wanted", v->name, v->type.rank);
        return NULL;
    }
    dims[0] = v->type.dims[0];
    for (uint32_t i = 1; i < rank - axis; i++)
        dims[i] = dlc_expr_i64(im->pool, 1);
    return f_reshape(im, v, dims, rank - axis);
}

dlc_value *f_softmax(dlc_import *im, dlc_value *x, uint32_t axis)
{
    const uint8_t axes[1] = {(uint8_t)axis};
    dlc_value *e =
        f_unary(im, DLC_OP_EXP, f_sub(im, x, f_reduce(im, DLC_OP_REDUCE_MAX, x, axes, 1, 1)));
    return f_div(im, e, f_reduce(im, DLC_OP_REDUCE_SUM, e, axes, 1, 1));
}

dlc_value *f_add_all(dlc_import *im, dlc_opcode op, dlc_value *const *values, uint32_t n)
{
    dlc_value *result = values[0];
    for (uint32_t i = 1; i < n; i++)
        result = f_binary(im, op, result, values[i]);
    return result;
}

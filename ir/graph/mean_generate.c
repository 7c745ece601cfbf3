/* Meanings of generators and of trilu. */
#include "ir/graph/mean.h"

/* Constants are buffers, or one element written where it is used; only a filled one is an equation.
 */
dlc_status dlc_mean_constant(dlc_mean *mean)
{
    const dlc_value *value = mean->node->outputs[0];
    uint32_t size = dlc_dtype_bytes(value->type.dtype);
    const char *bytes = value->data->bytes;
    if (!value->data->size_bytes ||
        __builtin_memcmp(bytes, bytes + size, value->data->size_bytes - size) != 0)
        return dlc_fail(mean->graph, mean->node, DLC_UNSUPPORTED,
                        "a constant with different elements is no equation");
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK];
    dlc_scalar scalar = dlc_scalar_read(value->type.dtype, bytes);
    dlc_mean_axes(mean, &value->type, &axes, index);
    return dlc_mean_finish(mean, &axes,
                           dlc_is_float(value->type.dtype)
                               ? dlc_expr_const(mean->kernel->pool, value->type.dtype, scalar.f)
                               : dlc_expr_const_i(mean->kernel->pool, value->type.dtype, scalar.i));
}

/* y[i] = dims[i] */
dlc_status dlc_mean_symbols(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    uint32_t n;
    const dlc_expr *dims = dlc_node_dims(mean->node, DLC_ATTR_DIMS, &n);
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    dlc_expr value = n ? dlc_mean_dim(mean, dims[n - 1]) : dlc_expr_i64(pool, 0);
    for (uint32_t i = n ? n - 1 : 0; i-- > 0;)
        value = dlc_select(pool, dlc_eq(pool, index[0], dlc_expr_i64(pool, i)),
                           dlc_mean_dim(mean, dims[i]), value);
    return dlc_mean_finish(mean, &axes, value);
}

/* y[i] = start + i * delta */
dlc_status dlc_mean_range(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_dtype dtype = dlc_mean_wide(dlc_mean_result(mean)->dtype);
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    dlc_expr start = dlc_expr_cast(pool, dtype, dlc_mean_load_scalar(mean, 0));
    dlc_expr delta = dlc_expr_cast(pool, dtype, dlc_mean_load_scalar(mean, 1));
    dlc_expr steps = dlc_mul(pool, dlc_expr_cast(pool, dtype, index[0]), delta);
    return dlc_mean_finish(mean, &axes, dlc_add(pool, start, steps));
}

/* Upper: kept where column - row >= k; lower: where column - row <= k. */
dlc_status dlc_mean_trilu(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    uint8_t rank = dlc_mean_result(mean)->rank;
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK], k = dlc_expr_i64(pool, 0);
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    if (dlc_mean_has(mean, 1))
        k = dlc_expr_cast(pool, DLC_I64, dlc_mean_load_scalar(mean, 1));
    dlc_expr diagonal = dlc_sub(pool, at[rank - 1], at[rank - 2]);
    int upper = dlc_node_int(mean->node, DLC_ATTR_UPPER, 1) != 0;
    dlc_expr kept = upper ? dlc_le(pool, k, diagonal) : dlc_le(pool, diagonal, k);
    dlc_expr zero = dlc_expr_const(pool, dlc_mean_result(mean)->dtype, 0);
    return dlc_mean_finish(mean, &axes, dlc_select(pool, kept, dlc_mean_load(mean, 0, at), zero));
}

/* 1 where column - row is the diagonal's offset. */
dlc_status dlc_mean_eye(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_dtype dtype = dlc_mean_result(mean)->dtype;
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK],
        offset = dlc_expr_i64(pool, dlc_node_int(mean->node, DLC_ATTR_AXIS, 0));
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    dlc_expr is_on = dlc_eq(pool, dlc_sub(pool, at[1], at[0]), offset);
    return dlc_mean_finish(
        mean, &axes,
        dlc_select(pool, is_on, dlc_expr_const(pool, dtype, 1), dlc_expr_const(pool, dtype, 0)));
}

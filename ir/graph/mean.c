/*
 * What every meaning is made of: axes for the result, loads of the inputs at some index, stages. A
 * meaning says what one element of the result is; nothing here or in mean_*.c knows loops, layouts
 * or targets.
 */
#include "ir/graph/mean.h"

#include <assert.h>
#include <string.h>

/* --- dimensions --- */

static dlc_expr kernel_symbol(dlc_mean *mean, uint32_t symbol)
{
    dlc_kernel *kernel = mean->kernel;
    const dlc_symbol *from = &mean->graph->symbols.data[symbol];
    dlc_expr outer = dlc_expr_sym(mean->graph->pool, symbol);
    for (uint32_t s = 0; s < kernel->symbols.n; s++)
        if (kernel->symbols.data[s].outer == outer)
            return dlc_expr_sym(kernel->pool, s);
    uint32_t made = dlc_kernel_symbol_add(kernel, from->name, from->lo, from->hi, outer);
    kernel->symbols.data[made].usual = dlc_graph_usual(mean->graph, symbol);
    return dlc_expr_sym(kernel->pool, made);
}

static dlc_expr rename_symbol(void *ctx, dlc_pool *to, const dlc_expr_node *node,
                              const dlc_expr *args)
{
    (void)to;
    (void)args;
    return node->op == DLC_EXPR_SYM ? kernel_symbol(ctx, node->imm.id) : 0;
}

dlc_expr dlc_mean_dim(dlc_mean *mean, dlc_expr graph_expr)
{
    int64_t value;
    if (dlc_expr_is_int(mean->graph->pool, graph_expr, &value))
        return dlc_expr_i64(mean->kernel->pool, value);
    dlc_expr same = dlc_graph_same(mean->graph, graph_expr);
    return dlc_expr_rewrite(mean->kernel->pool, mean->graph->pool, same, rename_symbol, mean);
}

dlc_expr dlc_mean_in_dim(dlc_mean *mean, uint32_t input, uint32_t dim)
{
    return dlc_mean_dim(mean, dlc_mean_in(mean, input)->dims[dim]);
}

void dlc_mean_dims(dlc_mean *mean, const dlc_type *type, dlc_expr *dims)
{
    for (uint8_t d = 0; d < type->rank; d++)
        dims[d] = dlc_mean_dim(mean, type->dims[d]);
}

void dlc_mean_list(dlc_mean *mean, dlc_attr_id id, uint32_t n, int64_t otherwise, dlc_expr *out)
{
    uint32_t found;
    const dlc_expr *dims = dlc_node_dims(mean->node, id, &found);
    assert(!dims || found == n);
    for (uint32_t i = 0; i < n; i++)
        out[i] = dims ? dlc_mean_dim(mean, dims[i]) : dlc_expr_i64(mean->kernel->pool, otherwise);
}

/* --- axes --- */

dlc_expr dlc_mean_axis(dlc_mean *mean, const char *name, dlc_expr extent, dlc_ids *axes)
{
    uint32_t axis = dlc_kernel_axis(mean->kernel, name, extent);
    dlc_vec_push(mean->kernel->arena, axes, axis);
    return dlc_expr_axis(mean->kernel->pool, axis);
}

void dlc_mean_axes(dlc_mean *mean, const dlc_type *type, dlc_ids *axes, dlc_expr *index)
{
    for (uint8_t d = 0; d < type->rank; d++) {
        char name[] = {'i', (char)('0' + d), 0};
        index[d] = dlc_mean_axis(mean, name, dlc_mean_dim(mean, type->dims[d]), axes);
    }
}

/* --- loads --- */

int dlc_input_is_inline(const dlc_node *node, uint32_t input)
{
    const dlc_value *value = node->inputs[input];
    return value && !dlc_input_is_indexed(node, input) && value->data &&
           value->data->size_bytes <= dlc_dtype_bytes(value->type.dtype);
}

/* Of no element: any number, since nothing can come to load it. */
static dlc_expr inline_constant(dlc_mean *mean, const dlc_value *value)
{
    dlc_dtype dtype = value->type.dtype;
    if (!value->data->size_bytes)
        return dlc_expr_const_i(mean->kernel->pool, dtype, 0);
    dlc_scalar scalar = dlc_scalar_read(dtype, value->data->bytes);
    if (dlc_is_float(dtype))
        return dlc_expr_const(mean->kernel->pool, dtype, scalar.f);
    return dlc_expr_const_i(mean->kernel->pool, dtype, scalar.i);
}

static dlc_expr load(dlc_mean *mean, uint32_t input, const dlc_expr *index, dlc_expr guard,
                     dlc_expr otherwise, uint8_t flags)
{
    const dlc_value *value = mean->node->inputs[input];
    dlc_pool *pool = mean->kernel->pool;
    if (!dlc_input_is_inline(mean->node, input))
        return dlc_expr_load(pool, value->type.dtype, mean->in[input], index, value->type.rank,
                             guard, otherwise, flags);
    dlc_expr constant = inline_constant(mean, value);
    if (!guard)
        return constant;
    return dlc_select(pool, guard, constant,
                      otherwise ? otherwise : dlc_expr_const(pool, value->type.dtype, 0));
}

dlc_expr dlc_mean_load(dlc_mean *mean, uint32_t input, const dlc_expr *index)
{
    return load(mean, input, index, 0, 0, 0);
}

dlc_expr dlc_mean_load_if(dlc_mean *mean, uint32_t input, const dlc_expr *index, dlc_expr guard,
                          dlc_expr otherwise)
{
    return load(mean, input, index, guard, otherwise, 0);
}

dlc_expr dlc_mean_load_scalar(dlc_mean *mean, uint32_t input)
{
    dlc_expr zeros[DLC_MAX_RANK];
    for (uint32_t d = 0; d < DLC_MAX_RANK; d++)
        zeros[d] = dlc_expr_i64(mean->kernel->pool, 0);
    return dlc_mean_load(mean, input, zeros);
}

dlc_expr dlc_mean_load_checked(dlc_mean *mean, uint32_t input, const dlc_expr *index)
{
    return load(mean, input, index, 0, 0, DLC_LOAD_CHECKED);
}

int dlc_mean_may_broadcast(const dlc_mean *mean, dlc_expr in, dlc_expr out)
{
    return !dlc_dim_broadcasts(mean->graph, in) && dlc_graph_same(mean->graph, in) != dlc_graph_same(mean->graph, out) &&
           (dlc_dim_may_broadcast(mean->graph, in) || dlc_dim_has_part(mean->graph, out, in));
}

dlc_expr dlc_mean_broadcast_index(dlc_mean *mean, dlc_expr in, dlc_expr out, dlc_expr index)
{
    dlc_expr zero = dlc_expr_i64(mean->kernel->pool, 0), one = dlc_expr_i64(mean->kernel->pool, 1);
    if (dlc_dim_broadcasts(mean->graph, in))
        return zero;
    if (!dlc_mean_may_broadcast(mean, in, out))
        return index;
    return dlc_select(mean->kernel->pool, dlc_eq(mean->kernel->pool, dlc_mean_dim(mean, in), one), zero, index);
}

/* Where only the run knows whether the last dimension is 1, both rows are written: each is one that vectors are read from. */
dlc_expr dlc_mean_load_broadcast(dlc_mean *mean, uint32_t input, const dlc_expr *index, uint32_t rank)
{
    const dlc_type *type = dlc_mean_in(mean, input), *result = dlc_mean_result(mean);
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr at[DLC_MAX_RANK], zero = dlc_expr_i64(pool, 0);
    uint32_t last = type->rank - 1u, shift = rank - type->rank;
    for (uint8_t d = 0; d < type->rank; d++)
        at[d] = dlc_mean_broadcast_index(mean, type->dims[d], result->dims[d + shift], index[d + shift]);
    if (!type->rank || !dlc_mean_may_broadcast(mean, type->dims[last], result->dims[last + shift]))
        return dlc_mean_load(mean, input, at);
    dlc_expr is_one = dlc_eq(pool, dlc_mean_dim(mean, type->dims[last]), dlc_expr_i64(pool, 1));
    at[last] = index[last + shift];
    dlc_expr row = dlc_mean_load_if(mean, input, at, dlc_expr1(pool, DLC_EXPR_NOT, is_one), 0);
    at[last] = zero;
    return dlc_select(pool, is_one, dlc_mean_load(mean, input, at), row);
}

dlc_expr dlc_mean_stage(dlc_mean *mean, uint32_t stage, const dlc_expr *index)
{
    const dlc_stage *from = &mean->kernel->stages.data[stage];
    return dlc_expr_load(mean->kernel->pool, from->dtype[0], DLC_STAGE_SOURCE(stage), index,
                         from->axes.n, 0, 0, 0);
}

dlc_expr dlc_mean_wrap(dlc_mean *mean, dlc_expr index, dlc_expr extent)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr i = dlc_expr_cast(pool, DLC_I64, index);
    return dlc_select(pool, dlc_lt(pool, i, dlc_expr_i64(pool, 0)), dlc_add(pool, i, extent), i);
}

/* --- stages --- */

static void copy_ids(dlc_mean *mean, const dlc_ids *from, dlc_ids *to)
{
    for (uint32_t i = 0; i < from->n; i++)
        dlc_vec_push(mean->kernel->arena, to, from->data[i]);
}

static dlc_dtype dtype_of(const dlc_mean *mean, dlc_expr value)
{
    return (dlc_dtype)dlc_node_of(mean->kernel->pool, value)->dtype;
}

uint32_t dlc_mean_reduce(dlc_mean *mean, const char *name, const dlc_ids *axes,
                         const dlc_ids *reduce, dlc_reduce combine, dlc_expr value, dlc_expr second)
{
    dlc_stage *stage = dlc_kernel_stage(mean->kernel, name);
    copy_ids(mean, axes, &stage->axes);
    if (reduce)
        copy_ids(mean, reduce, &stage->reduce);
    stage->combine = (uint8_t)combine;
    stage->value[0] = value;
    stage->dtype[0] = dtype_of(mean, value);
    if (second) {
        stage->value[1] = second;
        stage->dtype[1] = dtype_of(mean, second);
    }
    dlc_vec_push(mean->kernel->arena, &stage->origin, mean->node->id);
    return mean->kernel->stages.n - 1;
}

uint32_t dlc_mean_map(dlc_mean *mean, const char *name, const dlc_ids *axes, dlc_expr value)
{
    return dlc_mean_reduce(mean, name, axes, NULL, DLC_REDUCE_NONE, value, 0);
}

dlc_dtype dlc_mean_wide(dlc_dtype dtype)
{
    return dtype == DLC_F16 || dtype == DLC_BF16 ? DLC_F32 : dtype;
}

static const char *result_name(const dlc_mean *mean)
{
    return dlc_ops[mean->node->op].text;
}

dlc_status dlc_mean_finish(dlc_mean *mean, const dlc_ids *axes, dlc_expr value)
{
    dlc_expr cast = dlc_expr_cast(mean->kernel->pool, dlc_mean_result(mean)->dtype, value);
    mean->out[0] = dlc_mean_map(mean, result_name(mean), axes, cast);
    return DLC_OK;
}

/* A result that is one of what were bf16, as one again: nothing is rounded. */
static dlc_expr as_before(const dlc_mean *mean, dlc_expr value, dlc_expr result)
{
    dlc_pool *pool = mean->kernel->pool;
    if (dlc_node_of(pool, value)->op != DLC_EXPR_CAST || dtype_of(mean, dlc_arg(pool, value, 0)) != DLC_BF16 ||
        dtype_of(mean, value) != DLC_F32 || dlc_mean_result(mean)->dtype != DLC_BF16)
        return result;
    dlc_expr upper = dlc_expr2(pool, DLC_EXPR_SHR, dlc_expr_bitcast(pool, DLC_U32, result), dlc_expr_const_i(pool, DLC_U32, 16));
    return dlc_expr_bitcast(pool, DLC_BF16, dlc_expr_cast(pool, DLC_U16, upper));
}

dlc_status dlc_mean_finish_reduce(dlc_mean *mean, const dlc_ids *axes, const dlc_ids *reduce,
                                  dlc_reduce combine, dlc_expr value)
{
    if (!reduce->n)
        return dlc_mean_finish(mean, axes, value);
    uint32_t stage = dlc_mean_reduce(mean, result_name(mean), axes, reduce, combine, value, 0);
    if (dtype_of(mean, value) == dlc_mean_result(mean)->dtype) {
        mean->out[0] = stage;
        return DLC_OK;
    }
    dlc_expr index[DLC_MAX_RANK];
    for (uint32_t i = 0; i < axes->n; i++)
        index[i] = dlc_expr_axis(mean->kernel->pool, axes->data[i]);
    dlc_expr result = dlc_mean_stage(mean, stage, index);
    int is_one_of_them = combine == DLC_REDUCE_MAX || combine == DLC_REDUCE_MIN;
    return dlc_mean_finish(mean, axes, is_one_of_them ? as_before(mean, value, result) : result);
}

/* Limits of a type as its expression: floats have infinities. */
static dlc_expr limit(dlc_pool *pool, dlc_dtype dtype, int largest)
{
    if (dlc_is_float(dtype))
        return dlc_expr_const(pool, dtype, largest ? __builtin_inf() : -__builtin_inf());
    if (dtype == DLC_BOOL)
        return dlc_expr_bool(pool, largest);
    return dlc_expr_const_i(pool, dtype,
                            largest ? (int64_t)dlc_dtype_highest(dtype) : dlc_dtype_lowest(dtype));
}

dlc_expr dlc_mean_lowest(dlc_pool *pool, dlc_dtype dtype)
{
    return limit(pool, dtype, 0);
}

dlc_expr dlc_mean_highest(dlc_pool *pool, dlc_dtype dtype)
{
    return limit(pool, dtype, 1);
}

/* --- outputs --- */

static void store_at_axes(dlc_mean *mean, dlc_stage *stage, uint32_t buffer)
{
    stage->buffer = buffer;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        dlc_vec_push(mean->kernel->arena, &stage->store,
                     dlc_expr_axis(mean->kernel->pool, stage->axes.data[i]));
}

void dlc_mean_store(dlc_mean *mean, uint32_t output, uint32_t buffer)
{
    dlc_kernel *kernel = mean->kernel;
    uint32_t at = mean->out[output];
    store_at_axes(mean, &kernel->stages.data[at], buffer);
    if (at + 1 < kernel->stages.n && kernel->stages.data[at + 1].update != DLC_UPDATE_NONE)
        kernel->stages.data[at + 1].buffer = buffer;
}

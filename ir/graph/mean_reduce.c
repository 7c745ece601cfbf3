/*
 * Meanings of reductions and of cumsum. A result index has an axis per kept dimension (extent 1
 * where keepdims leaves a dimension behind); the reduced dimensions get axes of their own. Sums of
 * f16 and bf16 are f32 and rounded at the end.
 */
#include "ir/graph/mean.h"

typedef struct {
    dlc_ids axes, reduce;
    dlc_expr at[DLC_MAX_RANK]; /* index into the input */
    dlc_expr count;            /* elements reduced, i64 */
} reduction;

static int is_reduced(const dlc_mean *mean, const dlc_expr *axes, uint32_t naxes, uint8_t d)
{
    for (uint32_t i = 0; i < naxes; i++)
        if (dlc_expr_value(mean->graph->pool, axes[i]) == d)
            return 1;
    return 0;
}

static reduction reduction_over(dlc_mean *mean, const dlc_expr *axes, uint32_t naxes)
{
    const dlc_type *in = dlc_mean_in(mean, 0);
    reduction r = {.count = dlc_expr_i64(mean->kernel->pool, 1)};
    int keepdims = dlc_mean_result(mean)->rank == in->rank;
    for (uint8_t d = 0; d < in->rank; d++) {
        char name[] = {'i', (char)('0' + d), 0};
        dlc_expr extent = dlc_mean_in_dim(mean, 0, d);
        if (!is_reduced(mean, axes, naxes, d)) {
            r.at[d] = dlc_mean_axis(mean, name, extent, &r.axes);
            continue;
        }
        if (keepdims)
            dlc_mean_axis(mean, name, dlc_expr_i64(mean->kernel->pool, 1), &r.axes);
        name[0] = 'r';
        r.at[d] = dlc_mean_axis(mean, name, extent, &r.reduce);
        r.count = dlc_mul(mean->kernel->pool, r.count, extent);
    }
    return r;
}

static reduction reduction_of(dlc_mean *mean)
{
    uint32_t naxes;
    const dlc_expr *axes = dlc_node_dims(mean->node, DLC_ATTR_AXES, &naxes);
    return reduction_over(mean, axes, naxes);
}

static dlc_expr widened(dlc_mean *mean, const reduction *r, dlc_dtype dtype)
{
    dlc_expr x = dlc_mean_load(mean, 0, r->at);
    return dlc_expr_cast(mean->kernel->pool, dlc_mean_wide(dtype), x);
}

static dlc_status reduce_with(dlc_mean *mean, dlc_reduce combine)
{
    reduction r = reduction_of(mean);
    return dlc_mean_finish_reduce(mean, &r.axes, &r.reduce, combine, widened(mean, &r, dlc_mean_result(mean)->dtype));
}

dlc_status dlc_mean_reduce_sum(dlc_mean *mean)
{
    return reduce_with(mean, DLC_REDUCE_SUM);
}

dlc_status dlc_mean_reduce_prod(dlc_mean *mean)
{
    return reduce_with(mean, DLC_REDUCE_PROD);
}

dlc_status dlc_mean_reduce_min(dlc_mean *mean)
{
    return reduce_with(mean,
                       dlc_mean_in(mean, 0)->dtype == DLC_BOOL ? DLC_REDUCE_ALL : DLC_REDUCE_MIN);
}

dlc_status dlc_mean_reduce_max(dlc_mean *mean)
{
    return reduce_with(mean,
                       dlc_mean_in(mean, 0)->dtype == DLC_BOOL ? DLC_REDUCE_ANY : DLC_REDUCE_MAX);
}

static void axes_index(dlc_mean *mean, const dlc_ids *axes, dlc_expr *index)
{
    for (uint32_t i = 0; i < axes->n; i++)
        index[i] = dlc_expr_axis(mean->kernel->pool, axes->data[i]);
}

/* sum / count. Integers are summed in i64, so that only the mean must fit; the mean of nothing is
 * NaN (0 for integers). */
dlc_status dlc_mean_reduce_mean(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_dtype dtype = dlc_mean_in(mean, 0)->dtype,
              sum = dlc_is_int(dtype) ? DLC_I64 : dlc_mean_wide(dtype);
    dlc_expr index[DLC_MAX_RANK];
    reduction r = reduction_of(mean);
    if (dtype == DLC_U64)
        sum = DLC_U64;
    dlc_expr x = dlc_expr_cast(pool, sum, dlc_mean_load(mean, 0, r.at));
    if (!r.reduce.n)
        return dlc_mean_finish(mean, &r.axes, x);
    uint32_t total = dlc_mean_reduce(mean, "sum", &r.axes, &r.reduce, DLC_REDUCE_SUM, x, 0);
    axes_index(mean, &r.axes, index);
    dlc_expr count = dlc_expr_cast(pool, sum, r.count);
    return dlc_mean_finish(
        mean, &r.axes, dlc_expr2(pool, DLC_EXPR_DIV, dlc_mean_stage(mean, total, index), count));
}

/* The pair (value, index); the result is the second accumulator. */
static dlc_status arg_with(dlc_mean *mean, dlc_reduce first, dlc_reduce last)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr axis = dlc_expr_i64(mean->graph->pool, dlc_node_int(mean->node, DLC_ATTR_AXIS, 0)),
             index[DLC_MAX_RANK];
    reduction r = reduction_over(mean, &axis, 1);
    dlc_reduce combine = dlc_node_int(mean->node, DLC_ATTR_LAST, 0) ? last : first;
    uint32_t pair = dlc_mean_reduce(mean, "best", &r.axes, &r.reduce, combine, widened(mean, &r, dlc_mean_in(mean, 0)->dtype),
                                    dlc_expr_axis(pool, r.reduce.data[0]));
    axes_index(mean, &r.axes, index);
    dlc_expr found = dlc_expr_load(pool, DLC_I64, DLC_STAGE_SOURCE(pair), index, r.axes.n, 0, 0,
                                   DLC_LOAD_SECOND);
    return dlc_mean_finish(mean, &r.axes, found);
}

dlc_status dlc_mean_argmin(dlc_mean *mean)
{
    return arg_with(mean, DLC_REDUCE_ARGMIN, DLC_REDUCE_ARGMIN_LAST);
}

dlc_status dlc_mean_argmax(dlc_mean *mean)
{
    return arg_with(mean, DLC_REDUCE_ARGMAX, DLC_REDUCE_ARGMAX_LAST);
}

/*
 * A recurrence: run[t] = run[t - 1] + x[t] (or times), from 0 (1) and along the axis in the order
 * asked for; exclusive adds x[t - 1]. Backwards, step t stands for index n - 1 - t.
 */
static dlc_status running(dlc_mean *mean, dlc_expr_op op, double neutral)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_dtype sum = dlc_mean_wide(dlc_mean_in(mean, 0)->dtype);
    int64_t axis = dlc_node_int(mean->node, DLC_ATTR_AXIS, 0);
    int exclusive = dlc_node_int(mean->node, DLC_ATTR_EXCLUSIVE, 0) != 0;
    int reverse = dlc_node_int(mean->node, DLC_ATTR_REVERSE, 0) != 0;
    uint8_t rank = dlc_mean_result(mean)->rank;
    dlc_ids axes = {0}, result_axes = {0};
    dlc_expr index[DLC_MAX_RANK], previous[DLC_MAX_RANK], at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    dlc_expr extent = dlc_mean_in_dim(mean, 0, (uint32_t)axis), step = index[axis];
    for (uint8_t d = 0; d < rank; d++)
        previous[d] = at[d] = index[d];
    previous[axis] = dlc_addi(pool, step, -1);
    dlc_expr later = dlc_lt(pool, dlc_expr_i64(pool, 0), step),
             taken = exclusive ? previous[axis] : step;
    at[axis] = reverse ? dlc_addi(pool, dlc_sub(pool, extent, taken), -1) : taken;
    dlc_expr first = dlc_expr_const(pool, sum, neutral);
    dlc_expr x = dlc_expr_cast(
        pool, sum,
        dlc_mean_load_if(mean, 0, at, exclusive ? later : 0,
                         exclusive ? dlc_expr_const(pool, dlc_mean_in(mean, 0)->dtype, neutral) : 0));
    dlc_source self = DLC_STAGE_SOURCE(mean->kernel->stages.n);
    dlc_expr before = dlc_expr_load(pool, sum, self, previous, rank, later, first, 0);
    uint32_t run = dlc_mean_map(mean, "run", &axes, dlc_expr2(pool, op, before, x));
    if (!reverse && sum == dlc_mean_result(mean)->dtype) {
        mean->out[0] = run;
        return DLC_OK;
    }
    dlc_mean_axes(mean, dlc_mean_result(mean), &result_axes, index);
    if (reverse)
        index[axis] = dlc_addi(pool, dlc_sub(pool, extent, index[axis]), -1);
    return dlc_mean_finish(mean, &result_axes, dlc_mean_stage(mean, run, index));
}

dlc_status dlc_mean_cumsum(dlc_mean *mean)
{
    return running(mean, DLC_EXPR_ADD, 0);
}

dlc_status dlc_mean_cumprod(dlc_mean *mean)
{
    return running(mean, DLC_EXPR_MUL, 1);
}

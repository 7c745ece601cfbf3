/* Meanings of views: the result at an index is the input at another; nothing is computed but the
 * index. */
#include "ir/graph/mean.h"

/* --- reshape --- */

/* A run of input and output dimensions with equal products: indices inside depend on no others. */
typedef struct {
    uint8_t in_first, in_end, out_first, out_end;
} run;

/* A product of dimensions as constant * rest, to tell which of two is smaller where that can be
 * known. */
typedef struct {
    dlc_expr rest;
    int64_t factor;
} product;

static product times(dlc_pool *pool, product p, dlc_expr dim)
{
    int64_t value;
    if (dlc_expr_is_int(pool, dim, &value) && dlc_mul_i64(p.factor, value, &value)) {
        p.factor = value;
        return p;
    }
    p.rest = dlc_mul(pool, p.rest, dim);
    return p;
}

/*
 * The shortest run from in_first and out_first. The side whose product is behind takes its next
 * dimension; when symbols leave that open the run takes all that is left, which is always right,
 * and slower.
 */
static run next_run(dlc_mean *mean, const dlc_expr *in, uint8_t nin, const dlc_expr *out,
                    uint8_t nout, run r)
{
    dlc_pool *pool = mean->kernel->pool;
    product a = {dlc_expr_i64(pool, 1), 1}, b = a;
    while (r.in_end < nin || r.out_end < nout) {
        int take_in = a.rest == b.rest ? a.factor <= b.factor : a.rest == dlc_expr_i64(pool, 1);
        int take_out = a.rest == b.rest ? b.factor <= a.factor : b.rest == dlc_expr_i64(pool, 1);
        if ((!take_in && !take_out) || (take_in && !take_out && r.in_end == nin) ||
            (take_out && !take_in && r.out_end == nout))
            return (run){r.in_first, nin, r.out_first, nout};
        if (take_in && r.in_end < nin)
            a = times(pool, a, in[r.in_end++]);
        if (take_out && r.out_end < nout)
            b = times(pool, b, out[r.out_end++]);
        if (a.rest == b.rest && a.factor == b.factor && a.factor != 0)
            break;
    }
    return r;
}

/* in[d] of one run from the out index: linear over the run's output dimensions, then split by its
 * input dimensions. */
static void map_run(dlc_mean *mean, const dlc_expr *in, const dlc_expr *out, run r,
                    const dlc_expr *index, dlc_expr *at)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_layout row_major = {0};
    dlc_expr linear = dlc_layout_offset(pool, &row_major, (uint8_t)(r.out_end - r.out_first),
                                        out + r.out_first, index + r.out_first);
    for (uint8_t d = r.in_end; d-- > r.in_first;) {
        at[d] = d == r.in_first ? linear : dlc_mod(pool, linear, in[d]);
        linear = dlc_floordiv(pool, linear, in[d]);
    }
}

dlc_status dlc_mean_reshape(dlc_mean *mean)
{
    const dlc_type *from = dlc_mean_in(mean, 0), *to = dlc_mean_result(mean);
    dlc_ids axes = {0};
    dlc_expr in[DLC_MAX_RANK], out[DLC_MAX_RANK], index[DLC_MAX_RANK], at[DLC_MAX_RANK];
    dlc_mean_dims(mean, from, in);
    dlc_mean_dims(mean, to, out);
    dlc_mean_axes(mean, to, &axes, index);
    for (run r = {0}; r.in_end < from->rank || r.out_end < to->rank;) {
        r.in_first = r.in_end;
        r.out_first = r.out_end;
        r = next_run(mean, in, from->rank, out, to->rank, r);
        map_run(mean, in, out, r, index, at);
    }
    return dlc_mean_finish(mean, &axes, dlc_mean_load(mean, 0, at));
}

/* --- the others --- */

dlc_status dlc_mean_transpose(dlc_mean *mean)
{
    uint32_t n;
    const dlc_expr *perm = dlc_node_dims(mean->node, DLC_ATTR_PERM, &n);
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK], at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    for (uint32_t d = 0; d < n; d++)
        at[dlc_expr_value(mean->graph->pool, perm[d])] = index[d];
    return dlc_mean_finish(mean, &axes, dlc_mean_load(mean, 0, at));
}

dlc_status dlc_mean_expand(dlc_mean *mean)
{
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, index);
    return dlc_mean_finish(mean, &axes, dlc_mean_load_broadcast(mean, 0, index, axes.n));
}

dlc_status dlc_mean_slice(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    uint8_t rank = dlc_mean_result(mean)->rank;
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK], starts[DLC_MAX_RANK], steps[DLC_MAX_RANK];
    dlc_mean_list(mean, DLC_ATTR_STARTS, rank, 0, starts);
    dlc_mean_list(mean, DLC_ATTR_STEPS, rank, 1, steps);
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    for (uint8_t d = 0; d < rank; d++)
        at[d] = dlc_add(pool, dlc_mul(pool, at[d], steps[d]), starts[d]);
    return dlc_mean_finish(mean, &axes, dlc_mean_load(mean, 0, at));
}

/* The bits of a byte, a part for each index of the dimension before the last. */
dlc_status dlc_mean_unpack(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    int64_t bits = dlc_node_int(mean->node, DLC_ATTR_BITS, 0);
    uint8_t rank = dlc_mean_result(mean)->rank;
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK], operands[2];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    operands[1] = dlc_expr_cast(pool, DLC_U8, dlc_muli(pool, at[rank - 2], bits));
    at[rank - 2] = at[rank - 1];
    operands[0] = dlc_mean_load(mean, 0, at);
    operands[0] = dlc_expr_make(pool, DLC_EXPR_SHR, DLC_U8, operands, 2);
    operands[1] = dlc_expr_const_i(pool, DLC_U8, (1 << bits) - 1);
    return dlc_mean_finish(mean, &axes, dlc_expr_make(pool, DLC_EXPR_AND, DLC_U8, operands, 2));
}

/* A chain of selects between loads that are each guarded by their own part of the axis. */
dlc_status dlc_mean_concat(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    int64_t axis = dlc_node_int(mean->node, DLC_ATTR_AXIS, 0);
    uint32_t ninputs = mean->node->ninputs;
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK], zero = dlc_expr_i64(pool, 0), start = zero;
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    dlc_expr i = at[axis], *ends = dlc_new_array(mean->kernel->arena, dlc_expr, ninputs);
    dlc_expr *parts = dlc_new_array(mean->kernel->arena, dlc_expr, ninputs);
    for (uint32_t k = 0; k < ninputs; k++) {
        ends[k] = dlc_add(pool, start, dlc_mean_in_dim(mean, k, (uint32_t)axis));
        dlc_expr after = k ? dlc_le(pool, start, i) : 0,
                 before = k + 1 < ninputs ? dlc_lt(pool, i, ends[k]) : 0;
        at[axis] = dlc_sub(pool, i, start);
        parts[k] = dlc_mean_load_if(mean, k, at, dlc_and(pool, after, before), 0);
        start = ends[k];
    }
    dlc_expr value = parts[ninputs - 1];
    for (uint32_t k = ninputs - 1; k-- > 0;)
        value = dlc_select(pool, dlc_lt(pool, i, ends[k]), parts[k], value);
    return dlc_mean_finish(mean, &axes, value);
}

/* Within [0, n): what a formula keeps there anyway, in a form that ranges can prove. */
static dlc_expr clamped(dlc_pool *pool, dlc_expr i, dlc_expr n)
{
    return dlc_max(pool, dlc_expr_i64(pool, 0), dlc_min(pool, dlc_addi(pool, n, -1), i));
}

/* Mirrored at both ends as often as needed: the period is 2 (n - 1). */
static dlc_expr reflected(dlc_pool *pool, dlc_expr i, dlc_expr n)
{
    dlc_expr last = dlc_addi(pool, n, -1);
    dlc_expr period = dlc_max(pool, dlc_expr_i64(pool, 1), dlc_muli(pool, last, 2));
    dlc_expr phase = dlc_mod(pool, i, period);
    return clamped(pool, dlc_min(pool, phase, dlc_sub(pool, dlc_muli(pool, last, 2), phase)), n);
}

/* Of modes edge, reflect and wrap. */
static dlc_expr padded_index(dlc_pool *pool, const char *mode, dlc_expr i, dlc_expr n)
{
    switch (mode[0]) {
    case 'e':
        return clamped(pool, i, n);
    case 'r':
        return reflected(pool, i, n);
    default:
        return dlc_mod(pool, i, n);
    }
}

/* Index of dimension d that the padded index i repeats: cropped first, where a pad is negative,
 * then padded. */
static dlc_expr repeated_index(dlc_mean *mean, const char *mode, uint8_t d, dlc_expr i,
                               dlc_expr before, dlc_expr after)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr zero = dlc_expr_i64(pool, 0), cropped = dlc_min(pool, before, zero);
    dlc_expr n = dlc_add(pool, dlc_mean_in_dim(mean, 0, d),
                         dlc_add(pool, cropped, dlc_min(pool, after, zero)));
    dlc_expr at = padded_index(pool, mode, dlc_sub(pool, i, dlc_max(pool, before, zero)), n);
    return dlc_sub(pool, at, cropped);
}

dlc_status dlc_mean_pad(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    const char *mode = dlc_node_text(mean->node, DLC_ATTR_MODE, "constant");
    uint8_t rank = dlc_mean_result(mean)->rank;
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK], pads[2 * DLC_MAX_RANK], guard = 0, zero = dlc_expr_i64(pool, 0);
    dlc_mean_list(mean, DLC_ATTR_PADS, 2u * rank, 0, pads);
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    for (uint8_t d = 0; d < rank; d++) {
        if (pads[d] == zero && pads[rank + d] == zero)
            continue;
        if (mode[0] != 'c') {
            at[d] = repeated_index(mean, mode, d, at[d], pads[d], pads[rank + d]);
            continue;
        }
        at[d] = dlc_sub(pool, at[d], pads[d]);
        guard = dlc_and(pool, guard, dlc_in_range(pool, at[d], dlc_mean_in_dim(mean, 0, d)));
    }
    dlc_expr value = guard && dlc_mean_has(mean, 1) ? dlc_mean_load_scalar(mean, 1) : 0;
    return dlc_mean_finish(mean, &axes, dlc_mean_load_if(mean, 0, at, guard, value));
}

dlc_status dlc_mean_tile(dlc_mean *mean)
{
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    for (uint8_t d = 0; d < axes.n; d++)
        if (dlc_mean_in(mean, 0)->dims[d] != dlc_mean_result(mean)->dims[d])
            at[d] = dlc_mod(mean->kernel->pool, at[d], dlc_mean_in_dim(mean, 0, d));
    return dlc_mean_finish(mean, &axes, dlc_mean_load(mean, 0, at));
}

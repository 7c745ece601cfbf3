/*
 * Meanings of convolution and its transpose.
 *   conv            y[n,oc,oh,ow] = sum(ic,kh,kw) x[n, ic, oh*s + kh*d - p, … else 0] *
 * w[oc,ic,kh,kw] conv_transpose  y[n,oc,oh,ow] = sum(ic,kh,kw) x[n, ic, (oh + p - kh*d) / s, … if s
 * divides it else 0] * w[ic,oc,kh,kw] Groups: the channels are (g, oc) and (g, ic); the sum has
 * axes n,g,oc,…, so that a group is a batch of the contraction, and a map on top reads it at oc
 * floordiv and mod the channels of a group. One channel in and out per group needs no such split.
 */
#include "ir/graph/mean_window.h"

typedef struct {
    dlc_window window;
    int64_t group, ocg, icg; /* channels of one group */
    dlc_ids axes, reduce;
    dlc_expr n, g, oc,
        ic; /* g: 0 expression when channels are not split; oc, ic within the group */
    dlc_expr o[DLC_WINDOW_RANK], k[DLC_WINDOW_RANK];
} conv;

static int is_split(const conv *c)
{
    return c->group > 1 && (c->ocg > 1 || c->icg > 1);
}

/* One channel per group and no split: the group is the channel. */
static int is_depthwise(const conv *c)
{
    return c->group > 1 && !is_split(c);
}

static conv conv_axes(dlc_mean *mean, int64_t oc, int64_t ic)
{
    dlc_pool *pool = mean->kernel->pool;
    conv c = {.group = dlc_node_int(mean->node, DLC_ATTR_GROUP, 1)};
    c.ocg = oc / c.group;
    c.icg = ic / c.group;
    dlc_window_read(mean, &c.window);
    c.n = dlc_mean_axis(mean, "n", dlc_mean_dim(mean, dlc_mean_result(mean)->dims[0]), &c.axes);
    if (is_split(&c))
        c.g = dlc_mean_axis(mean, "g", dlc_expr_i64(pool, c.group), &c.axes);
    c.oc = dlc_mean_axis(mean, "oc", dlc_expr_i64(pool, is_split(&c) ? c.ocg : oc), &c.axes);
    dlc_window_out_axes(mean, &c.window, &c.axes, c.o);
    if (is_depthwise(&c))
        c.ic = c.oc;
    else if (is_split(&c) && c.icg == 1)
        c.ic = dlc_expr_i64(pool, 0);
    else
        c.ic = dlc_mean_axis(mean, "ic", dlc_expr_i64(pool, c.icg), &c.reduce);
    dlc_window_kernel_axes(mean, &c.window, &c.reduce, c.k);
    return c;
}

/* Channel within the whole tensor: g * channels + channel. */
static dlc_expr whole_channel(dlc_mean *mean, const conv *c, dlc_expr channel, int64_t channels)
{
    return c->g ? dlc_add(mean->kernel->pool, dlc_muli(mean->kernel->pool, c->g, channels), channel)
                : channel;
}

static dlc_expr product(dlc_mean *mean, const dlc_expr *x_at, dlc_expr guard, const dlc_expr *w_at)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_dtype wide = dlc_mean_wide(dlc_mean_result(mean)->dtype);
    dlc_expr x = dlc_expr_cast(pool, wide, dlc_mean_load_if(mean, 0, x_at, guard, 0));
    return dlc_mul(pool, x, dlc_expr_cast(pool, wide, dlc_mean_load(mean, 1, w_at)));
}

/* The sum, and above a split one the map that joins g and oc. */
static dlc_status finish(dlc_mean *mean, const conv *c, dlc_expr value)
{
    dlc_pool *pool = mean->kernel->pool;
    if (!c->g)
        return dlc_mean_finish_reduce(mean, &c->axes, &c->reduce, DLC_REDUCE_SUM, value);
    uint32_t sum = dlc_mean_reduce(mean, "groups", &c->axes, &c->reduce, DLC_REDUCE_SUM, value, 0);
    dlc_ids axes = {0};
    dlc_expr y[DLC_MAX_RANK], at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, y);
    dlc_expr ocg = dlc_expr_i64(pool, c->ocg);
    at[0] = y[0];
    at[1] = dlc_floordiv(pool, y[1], ocg);
    at[2] = dlc_mod(pool, y[1], ocg);
    for (uint8_t s = 0; s < c->window.rank; s++)
        at[s + 3] = y[s + 2];
    return dlc_mean_finish(mean, &axes, dlc_mean_stage(mean, sum, at));
}

static int64_t dim_value(const dlc_mean *mean, uint32_t input, uint8_t d)
{
    return dlc_expr_value(mean->graph->pool, dlc_mean_in(mean, input)->dims[d]);
}

dlc_status dlc_mean_conv(dlc_mean *mean)
{
    dlc_expr x_at[DLC_MAX_RANK], w_at[DLC_MAX_RANK], zero = dlc_expr_i64(mean->kernel->pool, 0);
    int64_t group = dlc_node_int(mean->node, DLC_ATTR_GROUP, 1); /* the filter's channels: the input's may be known to the run alone */
    conv c = conv_axes(mean, dim_value(mean, 1, 0), dim_value(mean, 1, 1) * group);
    x_at[0] = c.n;
    x_at[1] = whole_channel(mean, &c, c.ic, c.icg);
    w_at[0] = whole_channel(mean, &c, c.oc, c.ocg);
    w_at[1] = is_depthwise(&c) ? zero : c.ic;
    for (uint8_t s = 0; s < c.window.rank; s++)
        w_at[s + 2] = c.k[s];
    dlc_expr guard = dlc_window_index(mean, &c.window, c.o, c.k, x_at + 2);
    return finish(mean, &c, product(mean, x_at, guard, w_at));
}

/* Index (o + before - k * dilation) floordiv stride of the input, and the guard that stride divides
 * it and it lies inside. */
static dlc_expr transposed_index(dlc_mean *mean, const conv *c, uint8_t s, dlc_expr guard,
                                 dlc_expr *index)
{
    dlc_pool *pool = mean->kernel->pool;
    const dlc_window *w = &c->window;
    dlc_expr stride = dlc_expr_i64(pool, w->stride[s]);
    dlc_expr at = dlc_sub(pool, dlc_add(pool, c->o[s], w->before[s]),
                          dlc_muli(pool, c->k[s], w->dilation[s]));
    *index = dlc_floordiv(pool, at, stride);
    if (w->stride[s] > 1)
        guard =
            dlc_and(pool, guard, dlc_eq(pool, dlc_mod(pool, at, stride), dlc_expr_i64(pool, 0)));
    return dlc_and(pool, guard, dlc_in_range(pool, *index, w->in[s]));
}

dlc_status dlc_mean_conv_transpose(dlc_mean *mean)
{
    dlc_expr x_at[DLC_MAX_RANK], w_at[DLC_MAX_RANK], guard = 0,
                                                     zero = dlc_expr_i64(mean->kernel->pool, 0);
    conv c = conv_axes(mean, dlc_expr_value(mean->graph->pool, dlc_mean_result(mean)->dims[1]),
                       dim_value(mean, 1, 0));
    x_at[0] = c.n;
    x_at[1] = w_at[0] = whole_channel(mean, &c, c.ic, c.icg);
    w_at[1] = is_depthwise(&c) ? zero : c.oc;
    for (uint8_t s = 0; s < c.window.rank; s++) {
        guard = transposed_index(mean, &c, s, guard, &x_at[s + 2]);
        w_at[s + 2] = c.k[s];
    }
    return finish(mean, &c, product(mean, x_at, guard, w_at));
}

static int64_t entry(const dlc_mean *mean, dlc_attr_id id, uint32_t i)
{
    uint32_t n;
    return dlc_expr_value(mean->graph->pool, dlc_node_dims(mean->node, id, &n)[i]);
}

/* y[n,c,i…] = sum(k…) x[n, c, k…, (i + p - k*d) / s, … if s divides it else 0] */
dlc_status dlc_mean_col2im(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    const dlc_type *x = dlc_mean_in(mean, 0), *y = dlc_mean_result(mean);
    uint8_t rank = (uint8_t)(y->rank - 2);
    dlc_ids axes = {0}, reduce = {0};
    dlc_expr i[DLC_MAX_RANK], at[DLC_MAX_RANK], guard = 0, zero = dlc_expr_i64(pool, 0);
    dlc_mean_axes(mean, y, &axes, i);
    at[0] = i[0];
    at[1] = i[1];
    for (uint8_t s = 0; s < rank; s++) {
        char name[] = {'k', (char)('0' + s), 0};
        dlc_expr stride = dlc_expr_i64(pool, entry(mean, DLC_ATTR_STRIDES, s));
        at[2 + s] = dlc_mean_axis(mean, name, dlc_mean_in_dim(mean, 0, (uint32_t)(2 + s)), &reduce);
        dlc_expr from = dlc_addi(pool, i[2 + s], entry(mean, DLC_ATTR_PADS, s));
        from = dlc_sub(pool, from,
                       dlc_muli(pool, at[2 + s], entry(mean, DLC_ATTR_DILATIONS, s)));
        at[2 + rank + s] = dlc_floordiv(pool, from, stride);
        guard = dlc_and(pool, guard, dlc_eq(pool, dlc_mod(pool, from, stride), zero));
        guard = dlc_and(pool, guard,
                        dlc_in_range(pool, at[2 + rank + s],
                                     dlc_mean_in_dim(mean, 0, (uint32_t)(2 + rank + s))));
    }
    dlc_expr value = dlc_mean_load_if(mean, 0, at, guard, 0);
    value = dlc_expr_cast(pool, dlc_mean_wide(x->dtype), value);
    return dlc_mean_finish_reduce(mean, &axes, &reduce, DLC_REDUCE_SUM, value);
}

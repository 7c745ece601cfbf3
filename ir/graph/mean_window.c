/*
 * Windows. The one idea: element k of window o is the input at o * stride + k * dilation - before;
 * what lies outside is a guarded load, so padding is never a tensor.
 */
#include "ir/graph/mean_window.h"

static int64_t int_of(dlc_mean *mean, dlc_attr_id id, uint8_t s)
{
    uint32_t n;
    const dlc_expr *list = dlc_node_dims(mean->node, id, &n);
    return list ? dlc_expr_value(mean->graph->pool, list[s]) : 1;
}

void dlc_window_read(dlc_mean *mean, dlc_window *window)
{
    const dlc_type *x = dlc_mean_in(mean, 0), *y = dlc_mean_result(mean);
    dlc_expr pads[2 * DLC_WINDOW_RANK];
    *window = (dlc_window){.rank = (uint8_t)(x->rank - 2)};
    dlc_mean_list(mean, DLC_ATTR_PADS, 2u * window->rank, 0, pads);
    for (uint8_t s = 0; s < window->rank; s++) {
        window->stride[s] = int_of(mean, DLC_ATTR_STRIDES, s);
        window->dilation[s] = int_of(mean, DLC_ATTR_DILATIONS, s);
        window->kernel[s] =
            dlc_mean_has(mean, 1)
                ? dlc_expr_value(mean->graph->pool, dlc_mean_in(mean, 1)->dims[s + 2])
                : int_of(mean, DLC_ATTR_KERNEL, s);
        window->before[s] = pads[s];
        window->after[s] = pads[window->rank + s];
        window->in[s] = dlc_mean_dim(mean, x->dims[s + 2]);
        window->out[s] = dlc_mean_dim(mean, y->dims[s + 2]);
    }
}

/* The words for one, two and three spatial dimensions; past them a letter and a number. */
static const char *axis_name(const dlc_window *window, uint8_t s, char first, char *text)
{
    static const char letters[] = "dhw";
    text[0] = first;
    text[1] = window->rank <= 3 ? letters[3 - window->rank + s] : (char)('0' + s);
    text[2] = 0;
    return text;
}

void dlc_window_out_axes(dlc_mean *mean, const dlc_window *window, dlc_ids *axes, dlc_expr *at)
{
    char name[3];
    for (uint8_t s = 0; s < window->rank; s++)
        at[s] = dlc_mean_axis(mean, axis_name(window, s, 'o', name), window->out[s], axes);
}

void dlc_window_kernel_axes(dlc_mean *mean, const dlc_window *window, dlc_ids *axes, dlc_expr *at)
{
    char name[3];
    for (uint8_t s = 0; s < window->rank; s++)
        at[s] = dlc_mean_axis(mean, axis_name(window, s, 'k', name),
                              dlc_expr_i64(mean->kernel->pool, window->kernel[s]), axes);
}

/* Whether constants show that every window lies inside dimension s. */
static int is_inside(dlc_mean *mean, const dlc_window *w, uint8_t s)
{
    const dlc_pool *pool = mean->kernel->pool;
    int64_t before, in, out;
    if (!dlc_expr_is_int(pool, w->before[s], &before) || before != 0)
        return 0;
    if (w->stride[s] == 1 && w->kernel[s] == 1 && w->in[s] == w->out[s])
        return 1;
    return dlc_expr_is_int(pool, w->in[s], &in) && dlc_expr_is_int(pool, w->out[s], &out) &&
           (out - 1) * w->stride[s] + (w->kernel[s] - 1) * w->dilation[s] < in;
}

dlc_expr dlc_window_index(dlc_mean *mean, const dlc_window *w, const dlc_expr *o, const dlc_expr *k,
                          dlc_expr *index)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr guard = 0;
    for (uint8_t s = 0; s < w->rank; s++) {
        dlc_expr from = dlc_sub(pool, dlc_muli(pool, o[s], w->stride[s]), w->before[s]);
        index[s] = dlc_add(pool, from, dlc_muli(pool, k[s], w->dilation[s]));
        if (!is_inside(mean, w, s))
            guard = dlc_and(pool, guard, dlc_in_range(pool, index[s], w->in[s]));
    }
    return guard;
}

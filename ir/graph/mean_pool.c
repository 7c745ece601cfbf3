/*
 * Meanings of pooling: reductions over a window of input 0. Outside the input a max sees the type's
 * least value and a sum 0; an average divides by the cells of the window that count.
 */
#include "ir/graph/mean_window.h"

typedef struct {
    dlc_window window;
    dlc_ids axes, reduce;
    dlc_expr at[DLC_MAX_RANK]; /* index into the input */
    dlc_expr o[DLC_WINDOW_RANK];
    dlc_expr guard;
    uint8_t rank; /* of input and result */
} pool_window;

static pool_window read_pool(dlc_mean *mean)
{
    pool_window p = {.rank = dlc_mean_result(mean)->rank};
    dlc_expr k[DLC_WINDOW_RANK];
    dlc_window_read(mean, &p.window);
    p.at[0] = dlc_mean_axis(mean, "n", dlc_mean_dim(mean, dlc_mean_result(mean)->dims[0]), &p.axes);
    p.at[1] = dlc_mean_axis(mean, "c", dlc_mean_dim(mean, dlc_mean_result(mean)->dims[1]), &p.axes);
    dlc_window_out_axes(mean, &p.window, &p.axes, p.o);
    dlc_window_kernel_axes(mean, &p.window, &p.reduce, k);
    p.guard = dlc_window_index(mean, &p.window, p.o, k, p.at + 2);
    return p;
}

static dlc_expr load_cell(dlc_mean *mean, const pool_window *p, dlc_expr otherwise)
{
    dlc_expr x = dlc_mean_load_if(mean, 0, p->at, p->guard, p->guard ? otherwise : 0);
    return dlc_expr_cast(mean->kernel->pool, dlc_mean_wide(dlc_mean_in(mean, 0)->dtype), x);
}

static void own_index(dlc_mean *mean, const pool_window *p, dlc_expr *index)
{
    for (uint8_t d = 0; d < p->rank; d++)
        index[d] = dlc_expr_axis(mean->kernel->pool, p->axes.data[d]);
}

/* Row-major number of the cell in the unpadded input. */
static dlc_expr cell_number(dlc_mean *mean, const pool_window *p)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr dims[DLC_MAX_RANK];
    dlc_layout row_major = {0};
    dlc_mean_dims(mean, dlc_mean_in(mean, 0), dims);
    dlc_expr number = dlc_layout_offset(pool, &row_major, p->rank, dims, p->at);
    return p->guard ? dlc_select(pool, p->guard, number, dlc_expr_i64(pool, INT64_MAX)) : number;
}

/* The same cell where the last spatial dimension is the outermost one: the channel's base, then
 * columns first. */
static dlc_expr column_major(dlc_mean *mean, const pool_window *p, dlc_expr number)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr area = dlc_dims_product(pool, p->window.in, p->window.rank);
    dlc_expr rest = dlc_mod(pool, number, area), result = dlc_sub(pool, number, rest);
    dlc_expr place[DLC_WINDOW_RANK];
    for (uint8_t s = p->window.rank; s-- > 0;) {
        place[s] = dlc_mod(pool, rest, p->window.in[s]);
        rest = dlc_floordiv(pool, rest, p->window.in[s]);
    }
    dlc_expr stride = dlc_expr_i64(pool, 1);
    for (uint8_t s = 0; s < p->window.rank; s++) {
        result = dlc_add(pool, result, dlc_mul(pool, place[s], stride));
        stride = dlc_mul(pool, stride, p->window.in[s]);
    }
    return result;
}

/* With indices: the pair (value, number of the cell); ties go to the cell met first. */
static dlc_status max_with_index(dlc_mean *mean, const pool_window *p, dlc_expr cell)
{
    dlc_pool *pool = mean->kernel->pool;
    dlc_expr index[DLC_MAX_RANK];
    uint32_t pair = dlc_mean_reduce(mean, "best", &p->axes, &p->reduce, DLC_REDUCE_ARGMAX, cell,
                                    cell_number(mean, p));
    own_index(mean, p, index);
    dlc_expr number =
        dlc_expr_load(pool, DLC_I64, DLC_STAGE_SOURCE(pair), index, p->rank, 0, 0, DLC_LOAD_SECOND);
    if (dlc_node_text(mean->node, DLC_ATTR_MODE, "row")[0] == 'c')
        number = column_major(mean, p, number);
    mean->out[1] = dlc_mean_map(mean, "index", &p->axes, number);
    return dlc_mean_finish(mean, &p->axes, dlc_mean_stage(mean, pair, index));
}

dlc_status dlc_mean_max_pool(dlc_mean *mean)
{
    pool_window p = read_pool(mean);
    dlc_expr cell =
        load_cell(mean, &p, dlc_mean_lowest(mean->kernel->pool, dlc_mean_in(mean, 0)->dtype));
    if (mean->node->noutputs > 1)
        return max_with_index(mean, &p, cell);
    return dlc_mean_finish_reduce(mean, &p.axes, &p.reduce, DLC_REDUCE_MAX, cell);
}

static dlc_expr ceil_div(dlc_pool *pool, dlc_expr a, int64_t b)
{
    return dlc_floordiv(pool, dlc_addi(pool, a, b - 1), dlc_expr_i64(pool, b));
}

/*
 * Cells of window o in dimension s that count: k with lo <= o * stride - before + k * dilation <
 * hi, where [lo, hi) is the input, or with count_pad the padded input.
 */
static dlc_expr counted_cells(dlc_mean *mean, const pool_window *p, uint8_t s, int count_pad)
{
    dlc_pool *pool = mean->kernel->pool;
    const dlc_window *w = &p->window;
    dlc_expr zero = dlc_expr_i64(pool, 0), size = dlc_expr_i64(pool, w->kernel[s]);
    dlc_expr from = dlc_sub(pool, dlc_muli(pool, p->o[s], w->stride[s]), w->before[s]);
    dlc_expr hi = count_pad ? dlc_add(pool, w->in[s], w->after[s]) : w->in[s];
    dlc_expr end = dlc_min(pool, size, ceil_div(pool, dlc_sub(pool, hi, from), w->dilation[s]));
    if (count_pad)
        return dlc_max(pool, zero, end);
    dlc_expr first = dlc_max(pool, zero, ceil_div(pool, dlc_sub(pool, zero, from), w->dilation[s]));
    return dlc_max(pool, zero, dlc_sub(pool, end, first));
}

/* Whether every window counts all its cells, so that the divisor is one number. */
static int counts_all(dlc_mean *mean, const pool_window *p, int count_pad)
{
    const dlc_pool *pool = mean->kernel->pool;
    const dlc_window *w = &p->window;
    int64_t in, out, before, after;
    if (!p->guard)
        return 1;
    for (uint8_t s = 0; s < w->rank; s++)
        if (!count_pad || !dlc_expr_is_int(pool, w->in[s], &in) ||
            !dlc_expr_is_int(pool, w->out[s], &out) ||
            !dlc_expr_is_int(pool, w->before[s], &before) ||
            !dlc_expr_is_int(pool, w->after[s], &after) ||
            (out - 1) * w->stride[s] + (w->kernel[s] - 1) * w->dilation[s] >= before + in + after)
            return 0;
    return 1;
}

dlc_status dlc_mean_avg_pool(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    pool_window p = read_pool(mean);
    int count_pad = dlc_node_int(mean->node, DLC_ATTR_COUNT_PAD, 0) != 0;
    int is_constant = counts_all(mean, &p, count_pad);
    dlc_expr count = dlc_expr_i64(pool, 1), index[DLC_MAX_RANK];
    for (uint8_t s = 0; s < p.window.rank; s++)
        count = dlc_mul(pool, count,
                        is_constant ? dlc_expr_i64(pool, p.window.kernel[s])
                                    : counted_cells(mean, &p, s, count_pad));
    uint32_t sum =
        dlc_mean_reduce(mean, "sum", &p.axes, &p.reduce, DLC_REDUCE_SUM, load_cell(mean, &p, 0), 0);
    own_index(mean, &p, index);
    dlc_expr total = dlc_mean_stage(mean, sum, index);
    dlc_dtype dtype = (dlc_dtype)dlc_node_of(pool, total)->dtype;
    return dlc_mean_finish(mean, &p.axes,
                           dlc_expr2(pool, DLC_EXPR_DIV, total, dlc_expr_cast(pool, dtype, count)));
}

/* |x|^p summed, and its root */
static dlc_expr norm_term(dlc_pool *pool, dlc_expr x, int64_t p)
{
    dlc_dtype dtype = (dlc_dtype)dlc_node_of(pool, x)->dtype;
    if (p == 2)
        return dlc_mul(pool, x, x);
    dlc_expr size = dlc_expr1(pool, DLC_EXPR_ABS, x);
    return p == 1 ? size
                  : dlc_expr2(pool, DLC_EXPR_POW, size, dlc_expr_const(pool, dtype, (double)p));
}

static dlc_expr norm_root(dlc_pool *pool, dlc_expr sum, int64_t p)
{
    dlc_dtype dtype = (dlc_dtype)dlc_node_of(pool, sum)->dtype;
    if (p == 1)
        return sum;
    if (p == 2)
        return dlc_expr1(pool, DLC_EXPR_SQRT, sum);
    return dlc_expr2(pool, DLC_EXPR_POW, sum, dlc_expr_const(pool, dtype, 1.0 / (double)p));
}

dlc_status dlc_mean_lp_pool(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    pool_window p = read_pool(mean);
    int64_t norm = dlc_node_int(mean->node, DLC_ATTR_P, 2);
    dlc_expr index[DLC_MAX_RANK], term = norm_term(pool, load_cell(mean, &p, 0), norm);
    uint32_t sum = dlc_mean_reduce(mean, "sum", &p.axes, &p.reduce, DLC_REDUCE_SUM, term, 0);
    own_index(mean, &p, index);
    return dlc_mean_finish(mean, &p.axes, norm_root(pool, dlc_mean_stage(mean, sum, index), norm));
}

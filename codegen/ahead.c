/*
 * What a register tile asks for while it multiplies: the next panel of its columns' factor, which is the next columns' or, where all rows go
 * through several panels of the same columns, as for the points of Winograd's tiles, the next point's (resnet50's layers at 14x14 .83 of the
 * time, at 7x7 .78); behind the last of these nobody asks. Weights come from beyond L2, and the first tile of rows that meets a panel would
 * wait for all of it. Where several tiles of rows meet a panel, one after the other or dealt to threads, each asks for its share of the next
 * one, so that memory has the time of all of them to bring it (Emerald Rapids, one thread, 197 x 768 by 3072 of f32 from memory: 149 GFLOP/s
 * where the first asks for all, 171 by shares, 142 where nothing is asked for). What lies behind each other in memory is asked for in that
 * order, whichever point of the sum is being multiplied: a step goes on by a part of a line, and asks for most lines several times, which
 * costs less than to count.
 */
#include "codegen/dot.h"

static const dlc_schedule_node *node_of(const dlc_dot_tile *d, uint32_t n)
{
    return &d->nest->schedule->nodes.data[n];
}

/* Iterations of loop n, the most where they depend. */
static dlc_expr turns_of(const dlc_dot_tile *d, uint32_t n)
{
    int64_t points = dlc_schedule_most_points(d->nest->schedule, n), tile = node_of(d, n)->tile;
    return points < 0 ? dlc_loop_count(d->nest->kernel, node_of(d, n)->axis, tile) : dlc_expr_i64(d->pool, (points + tile - 1) / tile);
}

/* The loop that takes all tiles of rows to another panel of the same columns, as of Winograd's points; DLC_ROOT_NODE: there is none. */
static uint32_t loop_of_panels(const dlc_dot_tile *d, dlc_expr right)
{
    const dlc_schedule *schedule = d->nest->schedule;
    uint32_t leaf = (uint32_t)(d->leaf - schedule->nodes.data), columns = dlc_schedule_columns(schedule, leaf);
    uint32_t rows = dlc_schedule_rows(schedule, leaf);
    if (columns == DLC_ROOT_NODE || rows == DLC_ROOT_NODE || !dlc_schedule_is_inside(schedule, rows, columns))
        return DLC_ROOT_NODE;
    for (uint32_t n = dlc_schedule_parent(schedule, rows); n != columns; n = dlc_schedule_parent(schedule, n))
        if (dlc_expr_uses_axis(d->pool, right, node_of(d, n)->axis))
            return node_of(d, n)->kind == DLC_LOOP_FOR && node_of(d, n)->tile == 1 ? n : DLC_ROOT_NODE;
    return DLC_ROOT_NODE;
}

dlc_expr *dlc_dot_factors_ahead(const dlc_dot_tile *d, dlc_expr right)
{
    while (dlc_node_of(d->pool, right)->op == DLC_EXPR_CAST) /* what is read, before it is widened */
        right = dlc_arg(d->pool, right, 0);
    uint32_t loop = loop_of_panels(d, right), axis = loop == DLC_ROOT_NODE ? DLC_NO_AXIS : node_of(d, loop)->axis;
    if (axis == DLC_NO_AXIS)
        return dlc_dot_factors_at_columns(d, right, d->nvectors);
    dlc_expr before = d->nest->with[axis];
    dlc_nest_replace(d->nest, axis, dlc_addi(d->pool, before ? before : dlc_dot_axis(d, axis), 1));
    dlc_expr *factors = dlc_dot_factors_at_columns(d, right, 0);
    dlc_nest_replace(d->nest, axis, before);
    return factors;
}

/* How many tiles of rows meet a panel one after the other, and the number of this one among them. */
static dlc_expr tiles_of_panel(const dlc_dot_tile *d, dlc_expr *number)
{
    const dlc_schedule *schedule = d->nest->schedule;
    uint32_t leaf = (uint32_t)(d->leaf - schedule->nodes.data), columns = dlc_schedule_columns(schedule, leaf);
    dlc_expr all = dlc_expr_i64(d->pool, 1);
    *number = dlc_expr_i64(d->pool, 0);
    if (columns == DLC_ROOT_NODE || !dlc_schedule_is_inside(schedule, leaf, columns))
        return all;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != columns; n = dlc_schedule_parent(schedule, n)) {
        if (!d->nest->numbers[n] || dlc_expr_uses_axis(d->pool, d->right, node_of(d, n)->axis))
            break;
        *number = dlc_add(d->pool, *number, dlc_mul(d->pool, d->nest->numbers[n], all));
        all = dlc_mul(d->pool, all, turns_of(d, n));
    }
    return dlc_dot_simplified(d, all);
}

/* The number of the present step among those of the panel, by `stride` elements each, and how many these are; 0: they do not lie so. */
static int64_t steps_of_panel(const dlc_dot_tile *d, int64_t stride, dlc_expr *number)
{
    int64_t last = 0;
    *number = dlc_expr_i64(d->pool, 0);
    for (uint32_t i = 0; i < d->loops.n; i++) {
        int64_t own = dlc_nest_stride(d->nest, d->ahead[0], d->loops.data[i]), points = d->mosts.data[i];
        dlc_expr point = dlc_sub(d->pool, dlc_dot_axis(d, d->loops.data[i]), d->lows.data[i]);
        if (own < 0 || own % stride || points < 1)
            return 0;
        *number = dlc_add(d->pool, *number, dlc_muli(d->pool, point, own / stride));
        last += (points - 1) / d->steps.data[i] * d->steps.data[i] * (own / stride);
    }
    return last + 1;
}

/* Elements by `parts`, rounded up. */
static dlc_expr part_of(const dlc_dot_tile *d, int64_t elements, dlc_expr parts)
{
    return dlc_dot_simplified(d, dlc_floordiv(d->pool, dlc_addi(d->pool, parts, elements - 1), parts));
}

void dlc_dot_find_share(dlc_dot_tile *d)
{
    dlc_pool *pool = d->pool;
    dlc_expr tile, step, one = dlc_expr_i64(pool, 1), all = d->ahead && d->loops.n ? tiles_of_panel(d, &tile) : one;
    if (all == one)
        return;
    const dlc_expr_node *load = dlc_node_of(pool, d->ahead[0]);
    int64_t bytes = dlc_dtype_bytes(load->dtype), element = load->flags & DLC_LOAD_GRANULE ? bytes / d->row->granule : bytes, elements;
    int64_t stride = dlc_nest_stride(d->nest, d->ahead[0], d->loops.data[d->loops.n - 1]);
    int is_dense = stride > 0 && stride * element == d->nvectors * d->width * bytes; /* steps of the tile are the panel */
    int64_t steps = is_dense && element <= DLC_LINE_BYTES ? steps_of_panel(d, stride, &step) : 0;
    if (!steps)
        return;
    /* elements a step; more tiles than they are ask for the last ones again, and where only the run knows how many, steps have lines for all */
    dlc_expr share = part_of(d, stride, dlc_max(pool, all, one)), last = dlc_addi(pool, part_of(d, stride, share), -1);
    dlc_expr first = dlc_muli(pool, dlc_min(pool, tile, last), steps);
    d->share = dlc_sub(pool, dlc_mul(pool, dlc_add(pool, first, step), share), dlc_muli(pool, step, stride));
    d->line = DLC_LINE_BYTES / element;
    d->nlines = (uint32_t)(((dlc_expr_is_int(pool, share, &elements) ? elements : stride) + d->line - 1) / d->line);
}

void dlc_dot_fetch_ahead(const dlc_dot_tile *d)
{
    for (uint32_t i = 0; i < d->nlines; i++)
        dlc_nest_fetch(d->nest, d->ahead[0], dlc_addi(d->pool, d->share, i * d->line));
    for (uint32_t v = 0; v < d->nvectors && d->ahead && !d->nlines; v++) /* all that the next panel has here */
        if (v * d->width * dlc_dtype_bytes(dlc_node_of(d->pool, d->ahead[v])->dtype) % DLC_LINE_BYTES == 0)
            dlc_nest_fetch(d->nest, d->ahead[v], 0);
}

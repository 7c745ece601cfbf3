/*
 * Root loops: a unit of parallel work is one iteration of the first npar loops, numbered with the outermost slowest; the
 * others are loops inside the unit.
 */
#include "codegen/nest.h"

#include <assert.h>

dlc_expr dlc_root_extent(dlc_nest *nest, uint32_t l)
{
    const dlc_loop *loop = &nest->schedule->loops.data[l];
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr extent = dlc_expr_i64(pool, 1);
    for (uint32_t i = 0; i < loop->axes.n; i++)
        extent = dlc_mul(pool, extent, nest->kernel->axes.data[loop->axes.data[i]].extent);
    return extent;
}

void dlc_root_delinearise(dlc_nest *nest, uint32_t l, dlc_expr point, dlc_expr *with)
{
    const dlc_loop *loop = &nest->schedule->loops.data[l];
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr inner = dlc_expr_i64(pool, 1);
    for (uint32_t i = loop->axes.n; i-- > 0;) {
        dlc_expr extent = nest->kernel->axes.data[loop->axes.data[i]].extent;
        dlc_expr value = dlc_floordiv(pool, point, inner);
        if (i > 0)
            value = dlc_mod(pool, value, extent);
        with[loop->axes.data[i]] = dlc_expr_simplify(pool, value, &nest->ranges);
        inner = dlc_mul(pool, inner, extent);
    }
}

static int is_lane_loop(const dlc_nest *nest, uint32_t l)
{
    return nest->schedule->lane != DLC_NO_AXIS && l + 1 == nest->schedule->loops.n;
}

/* Binds the axes of a tile of one point. */
static void bind_point(dlc_nest *nest, uint32_t l)
{
    const dlc_loop *loop = &nest->schedule->loops.data[l];
    if (loop->tile != 1 || is_lane_loop(nest, l))
        return;
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    dlc_root_delinearise(nest, l, nest->roots[l].first, with);
    for (uint32_t i = 0; i < loop->axes.n; i++)
        dlc_nest_bind(nest, loop->axes.data[i], dlc_nest_uniform(nest, with[loop->axes.data[i]]), 1);
}

static void set_tile(dlc_nest *nest, uint32_t l, dlc_expr first)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr extent = dlc_root_extent(nest, l);
    int64_t tile = nest->schedule->loops.data[l].tile, known;
    nest->roots[l].first = first;
    if (dlc_expr_is_int(pool, extent, &known) && known % tile == 0)
        nest->roots[l].last = dlc_addi(pool, first, tile);
    else
        nest->roots[l].last = dlc_min(pool, dlc_addi(pool, first, tile), extent);
}

/* The unit's number taken apart, innermost loop first. */
static void decode_unit(dlc_nest *nest, uint32_t unit_axis)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr rest = dlc_expr_axis(pool, unit_axis);
    for (uint32_t l = nest->schedule->npar; l-- > 0;) {
        const dlc_loop *loop = &nest->schedule->loops.data[l];
        dlc_expr count = dlc_loop_count(nest->kernel, loop);
        dlc_expr index = l ? dlc_mod(pool, rest, count) : rest;
        rest = dlc_floordiv(pool, rest, count);
        index = dlc_expr_simplify(pool, index, &nest->ranges);
        dlc_nest_bind(nest, nest->roots[l].axis, dlc_nest_uniform(nest, dlc_muli(pool, index, loop->tile)), 1);
        set_tile(nest, l, dlc_expr_axis(pool, nest->roots[l].axis));
    }
}

void dlc_root_open(dlc_nest *nest, uint32_t l)
{
    dlc_pool *pool = nest->kernel->pool;
    if (l >= nest->schedule->npar && is_lane_loop(nest, l)) { /* all of it: the lane loop is made by the lanes */
        nest->roots[l].first = dlc_expr_i64(pool, 0);
        nest->roots[l].last = dlc_root_extent(nest, l);
        return;
    }
    if (l >= nest->schedule->npar) {
        dlc_nest_loop(nest, nest->roots[l].axis, dlc_nest_i64(nest, 0),
                      dlc_nest_uniform(nest, dlc_root_extent(nest, l)), nest->schedule->loops.data[l].tile);
        set_tile(nest, l, dlc_expr_axis(pool, nest->roots[l].axis));
    }
    bind_point(nest, l);
}

void dlc_root_close(dlc_nest *nest, uint32_t l)
{
    if (l >= nest->schedule->npar && !is_lane_loop(nest, l))
        dlc_nest_loop_end(nest);
}

static void lane_body(dlc_nest *nest, void *ctx)
{
    (void)ctx;
    dlc_lanes_stages(nest);
}

static dlc_status lanes_kernel(dlc_nest *nest)
{
    const dlc_schedule *schedule = nest->schedule;
    for (uint32_t l = 0; l < schedule->loops.n; l++)
        dlc_root_open(nest, l);
    if (schedule->lane != DLC_NO_AXIS) {
        const dlc_root *root = &nest->roots[schedule->loops.n - 1];
        dlc_lanes_loop(nest, schedule->lane, root->first, root->last, schedule->width, lane_body, NULL);
    } else {
        dlc_lanes_stages(nest);
    }
    for (uint32_t l = schedule->loops.n; l-- > 0;)
        dlc_root_close(nest, l);
    return DLC_OK;
}

static dlc_status kernel_by(dlc_nest *nest, dlc_method method)
{
    if (method == DLC_METHOD_LANES)
        return lanes_kernel(nest);
    if (nest->emit->methods[method])
        return nest->emit->methods[method](nest->emit, nest);
    return dlc_diag_fail(nest->diag, DLC_INTERNAL, nest->kernel->name, "target %s has no code for the schedule's method %d",
                         nest->schedule->target->name, method);
}

dlc_status dlc_nest_kernel(dlc_nest *nest, dlc_val begin, dlc_val end)
{
    const dlc_schedule *schedule = nest->schedule;
    nest->roots = dlc_new_array(nest->arena, dlc_root, schedule->loops.n + 1);
    for (uint32_t l = 0; l < schedule->loops.n; l++)
        nest->roots[l].axis = dlc_nest_stepped_axis(nest, dlc_root_extent(nest, l), schedule->loops.data[l].tile);
    uint32_t unit = dlc_nest_axis(nest, dlc_schedule_units(nest->kernel, schedule));
    dlc_nest_loop(nest, unit, begin, end, 1);
    decode_unit(nest, unit);
    dlc_status status = kernel_by(nest, dlc_schedule_method(nest->kernel, schedule));
    dlc_nest_loop_end(nest);
    return status;
}

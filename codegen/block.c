/*
 * Forms of a whole CUDA block: a unit of parallel work is one iteration of all root loops, numbered with the outermost slowest.
 * What a block does in it is the target's.
 */
#include "codegen/nest.h"

#include <assert.h>

dlc_expr dlc_root_extent(dlc_nest *nest, uint32_t l)
{
    const dlc_root_loop *loop = &nest->schedule->block.loops.data[l];
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr extent = dlc_expr_i64(pool, 1);
    for (uint32_t i = 0; i < loop->axes.n; i++)
        extent = dlc_mul(pool, extent, nest->kernel->axes.data[loop->axes.data[i]].extent);
    return extent;
}

void dlc_root_delinearise(dlc_nest *nest, uint32_t l, dlc_expr point, dlc_expr *with)
{
    const dlc_root_loop *loop = &nest->schedule->block.loops.data[l];
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

/* Binds the axes of a tile of one point. */
static void bind_point(dlc_nest *nest, uint32_t l)
{
    const dlc_root_loop *loop = &nest->schedule->block.loops.data[l];
    if (loop->tile != 1)
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
    int64_t tile = nest->schedule->block.loops.data[l].tile, known;
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
    for (uint32_t l = nest->schedule->block.loops.n; l-- > 0;) {
        const dlc_root_loop *loop = &nest->schedule->block.loops.data[l];
        dlc_expr count = dlc_floordiv(pool, dlc_addi(pool, dlc_root_extent(nest, l), loop->tile - 1), dlc_expr_i64(pool, loop->tile));
        dlc_expr index = l ? dlc_mod(pool, rest, count) : rest;
        rest = dlc_floordiv(pool, rest, count);
        index = dlc_expr_simplify(pool, index, &nest->ranges);
        dlc_nest_bind(nest, nest->roots[l].axis, dlc_nest_uniform(nest, dlc_muli(pool, index, loop->tile)), 1);
        set_tile(nest, l, dlc_expr_axis(pool, nest->roots[l].axis));
    }
}

void dlc_root_open(dlc_nest *nest, uint32_t l)
{
    bind_point(nest, l);
}

dlc_status dlc_nest_block(dlc_nest *nest, uint32_t unit)
{
    const dlc_block_form *block = &nest->schedule->block;
    nest->roots = dlc_new_array(nest->arena, dlc_root, block->loops.n + 1);
    for (uint32_t l = 0; l < block->loops.n; l++)
        nest->roots[l].axis = dlc_nest_stepped_axis(nest, dlc_root_extent(nest, l), block->loops.data[l].tile);
    decode_unit(nest, unit);
    if (!nest->emit->methods[block->method])
        return dlc_diag_fail(nest->diag, DLC_INTERNAL, nest->kernel->name, "target %s has no code for the schedule's block",
                             nest->schedule->target->name);
    return nest->emit->methods[block->method](nest->emit, nest);
}

/*
 * Each lane's own sum over a granule of a row of dot.def: `unroll kh:2, kw { sum = dot vdpbf16ps over [kh] }` is a step of the fold. Granules
 * are put together of vectors, each of its neighbours along the axis; windows that share these have them from the same ones. What is left
 * of the axis is filled with zeros, which change no sum.
 */
#include "codegen/nest.h"

enum { MOST_GRANULE = 4 };

typedef struct {
    dlc_nest *nest;
    const dlc_stage *stage;
    uint32_t axis, npoints;
    dlc_expr first;
    dlc_dot row;
} own_sum;

/* Part of the stage's value at a point of the axis. */
static dlc_expr at_point(const own_sum *o, dlc_expr of, uint32_t i)
{
    dlc_tile tile = o->nest->tiles[o->axis];
    o->nest->tiles[o->axis] = (dlc_tile){0};
    dlc_nest_replace(o->nest, o->axis, dlc_nest_here(o->nest, dlc_addi(o->nest->kernel->pool, o->first, i)));
    dlc_expr here = dlc_nest_here(o->nest, of);
    dlc_nest_replace(o->nest, o->axis, 0);
    o->nest->tiles[o->axis] = tile;
    return here;
}

/* The load of a granule that lies together, lane by lane, in a constant: what is left of the axis has zeros behind it there. 0: it does not. */
static dlc_expr whole_granule(const own_sum *o, dlc_expr factor)
{
    dlc_nest *nest = o->nest;
    const dlc_pool *pool = nest->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, factor);
    uint32_t granule = dlc_dots[o->row].granule;
    if (node->op != DLC_EXPR_LOAD || node->flags || DLC_SOURCE_IS_STAGE(node->imm.id) || dlc_load_guard(pool, factor))
        return 0;
    const dlc_buffer *buffer = &nest->kernel->buffers.data[node->imm.id];
    const dlc_layout *layout = &buffer->layout;
    uint32_t last = layout->nparts - 1u;
    if (buffer->role != DLC_ROLE_CONST || !layout->nparts || !layout->part[last].inner || (uint32_t)layout->part[last].block != granule ||
        dlc_bare_axis(pool, dlc_arg(pool, factor, layout->part[last].dim)) != o->axis)
        return 0;
    dlc_expr load = at_point(o, factor, 0);
    return dlc_nest_stride(nest, load, nest->lane) == granule ? dlc_granule_load(nest->kernel->pool, load, granule) : 0;
}

/* The granule of a factor without its cast. */
static dlc_val granule_of(const own_sum *o, dlc_expr factor)
{
    dlc_expr whole = whole_granule(o, factor);
    if (whole)
        return dlc_granule_value(o->nest, o->row, whole, factor);
    dlc_dtype dtype = (dlc_dtype)dlc_node_of(o->nest->kernel->pool, factor)->dtype;
    if (dlc_dot_widens(o->row, dtype))
        factor = dlc_expr_cast(o->nest->kernel->pool, dtype = DLC_I16, factor);
    dlc_val elements[MOST_GRANULE] = {0};
    for (uint32_t i = 0; i < o->npoints; i++)
        elements[i] = dlc_nest_value_at(o->nest, at_point(o, factor, i));
    return o->nest->emit->interleave(o->nest->emit, dtype, o->nest->width, dlc_dots[o->row].granule, elements);
}

/* acc and the products, one after the other. */
static dlc_val add_plainly(const own_sum *o, dlc_val acc)
{
    const dlc_dot_info *row = &dlc_dots[o->row];
    dlc_pool *pool = o->nest->kernel->pool;
    dlc_dtype type = (dlc_dtype)row->acc;
    for (uint32_t i = 0; i < o->npoints; i++) {
        uint32_t at = row->order == DLC_ORDER_PAIRS ? o->npoints - 1 - i : i;
        dlc_val args[] = {dlc_nest_value_at(o->nest, at_point(o, dlc_arg(pool, o->stage->value[0], 0), at)),
                          dlc_nest_value_at(o->nest, at_point(o, dlc_arg(pool, o->stage->value[0], 1), at)), acc};
        acc = o->nest->emit->arith(o->nest->emit, type == DLC_F32 ? DLC_EXPR_FMA : DLC_EXPR_MULADD, type, type, o->nest->width, args);
    }
    return acc;
}

dlc_val dlc_own_dot(dlc_nest *nest, uint32_t leaf, dlc_val acc)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = &nest->schedule->nodes.data[leaf];
    own_sum o = {.nest = nest, .stage = &nest->kernel->stages.data[node->stage], .axis = node->over.data[0], .row = (dlc_dot)node->own};
    dlc_dot_operands operands;
    dlc_tile tile = nest->tiles[o.axis];
    int64_t npoints = 0;
    dlc_expr_is_int(pool, dlc_expr_simplify(pool, dlc_sub(pool, tile.last, tile.first), &nest->ranges), &npoints);
    o.first = tile.first;
    o.npoints = (uint32_t)npoints;
    dlc_dot_takes_own(o.row, pool, o.stage, o.stage->value[0], &operands);
    if (nest->emit->dot_step && nest->emit->interleave && dlc_dot_fact(nest->emit->target, o.row)) {
        dlc_val a = granule_of(&o, operands.is_swapped ? operands.columns : operands.rows);
        dlc_val b = granule_of(&o, operands.is_swapped ? operands.rows : operands.columns);
        dlc_val sum = nest->emit->dot_step(nest->emit, o.row, nest->width, a, b, acc);
        if (sum)
            return sum;
    }
    return add_plainly(&o, acc);
}

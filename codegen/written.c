/*
 * Loops that are written out: point by point, granule by granule where a leaf is a lane's own sum (codegen/own.c), and where it is so of
 * neighbours, with what they fold side by side (codegen/jam.c) or with what they load or store turned in registers (codegen/turn.c).
 */
#include "codegen/nest.h"

static const dlc_schedule_node *node_of(const dlc_nest *nest, uint32_t n)
{
    return &nest->schedule->nodes.data[n];
}

static dlc_expr simplified(dlc_nest *nest, dlc_expr expr)
{
    return dlc_expr_simplify(nest->kernel->pool, expr, &nest->ranges);
}

static uint32_t count_leaves(const dlc_nest *nest, uint32_t n)
{
    uint32_t leaves = 0;
    for (uint32_t i = n; i < node_of(nest, n)->end; i++)
        leaves += node_of(nest, i)->kind == DLC_LOOP_LEAF;
    return leaves;
}

/* What was computed last in the loop is no value behind it. */
void dlc_walk_forget(dlc_nest *nest, uint32_t n)
{
    for (uint32_t i = n; i < node_of(nest, n)->end; i++)
        if (node_of(nest, i)->kind == DLC_LOOP_LEAF)
            nest->states[node_of(nest, i)->stage].value[0].set = nest->states[node_of(nest, i)->stage].value[1].set = 0;
}

/* The same number, known inside the present branch alone: what depends on it and could not be read outside is computed in there. */
static dlc_expr known_here(dlc_nest *nest, uint32_t n, dlc_expr point)
{
    uint32_t own = dlc_nest_axis(nest, nest->kernel->axes.data[node_of(nest, n)->axis].extent);
    dlc_nest_bind(nest, own, dlc_nest_uniform(nest, point), 1);
    return dlc_expr_axis(nest->kernel->pool, own);
}

void dlc_walk_enter_written(dlc_nest *nest, uint32_t n, const dlc_span *s, int64_t i)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = node_of(nest, n);
    int64_t end = i + node->tile < s->length ? i + node->tile : s->length;
    if (node->tile == 1)
        dlc_nest_replace(nest, node->axis, dlc_nest_here(nest, dlc_addi(pool, s->lo, i)));
    else
        nest->tiles[node->axis] = (dlc_tile){simplified(nest, dlc_addi(pool, s->lo, i)), simplified(nest, dlc_addi(pool, s->lo, end))};
}

void dlc_walk_leave_written(dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = node_of(nest, n);
    nest->tiles[node->axis] = (dlc_tile){0};
    if (node->tile == 1)
        dlc_nest_replace(nest, node->axis, 0);
}

/* Of a leaf's own sum: granule by granule. */
static void walk_granules(dlc_nest *nest, uint32_t n, const dlc_span *s)
{
    for (int64_t i = 0; i < s->length; i += node_of(nest, n)->tile) {
        dlc_walk_enter_written(nest, n, s, i);
        dlc_walk_children(nest, n);
        dlc_walk_leave_written(nest, n);
    }
}

/* The loop's points from lo on; hi: where it ends, for each of them to ask, or 0. */
static void walk_points(dlc_nest *nest, uint32_t n, dlc_expr lo, int64_t count, dlc_expr hi)
{
    uint32_t axis = node_of(nest, n)->axis;
    int many = count_leaves(nest, n) > 1; /* what one computes is not what the same expression gave in the iteration before */
    dlc_turned turned[DLC_MOST_TURNED];
    if (!hi && dlc_turn_granules(nest, n, lo, count))
        return;
    uint32_t nturned = count == nest->width ? dlc_turn_begin(nest, n, lo, hi, turned) : 0;
    int is_woven = !hi && dlc_turn_woven_begin(nest, n, count);
    int holds = !hi && dlc_held_begin(nest, DLC_HOLD_BYTES, nest->level + (many ? 1 : 0));
    for (int64_t i = 0; i < count; i++) {
        dlc_expr point = simplified(nest, dlc_addi(nest->kernel->pool, lo, i));
        if (many || hi) {
            dlc_val yes = !hi ? nest->emit->konst(nest->emit, DLC_BOOL, (dlc_scalar){.i = 1}, 1)
                              : dlc_nest_uniform(nest, simplified(nest, dlc_lt(nest->kernel->pool, point, hi)));
            nest->emit->if_begin(nest->emit, yes);
            dlc_nest_enter(nest);
        }
        dlc_nest_replace(nest, axis, hi ? known_here(nest, n, point) : point);
        dlc_turn_know(nest, turned, nturned, (uint32_t)i);
        dlc_walk_children(nest, n);
        dlc_nest_replace(nest, axis, 0);
        if (many || hi) {
            dlc_nest_leave(nest);
            nest->emit->if_end(nest->emit);
        }
        dlc_walk_forget(nest, n);
    }
    if (holds)
        dlc_held_end(nest);
    if (is_woven)
        dlc_turn_rows_end(nest);
}

/* As many points as are turned at once; or, where the axis ends, those that are left, each of which asks. */
static void walk_square(dlc_nest *nest, uint32_t n, const dlc_span *s, int64_t size)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr whole = dlc_addi(pool, s->lo, size);
    for (int is_part = 0; is_part < 2; is_part++) {
        dlc_expr condition = is_part ? dlc_lt(pool, s->hi, whole) : dlc_le(pool, whole, s->hi);
        nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, simplified(nest, condition)));
        dlc_nest_enter(nest);
        if (is_part || !dlc_turn_granules(nest, n, s->lo, size))
            walk_points(nest, n, known_here(nest, n, s->lo), size, is_part ? s->hi : 0);
        dlc_nest_leave(nest);
        nest->emit->if_end(nest->emit);
    }
}

static void jam_points(dlc_nest *nest, uint32_t n, const dlc_span *s)
{
    dlc_jam_walk(nest, n, s->lo, s->length, dlc_jam_end(nest, n, s->length));
    dlc_walk_forget(nest, n);
}

void dlc_walk_written(dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_span s = dlc_walk_span(nest, n);
    int64_t size = s.length;
    dlc_tile before = nest->tiles[node->axis];
    if (s.length < 0 && !dlc_expr_is_int(nest->kernel->pool, nest->schedule->ranges[n].size, &size))
        size = dlc_schedule_most_points(nest->schedule, n);
    nest->tiles[node->axis] = (dlc_tile){0};
    if (s.length < 0 && ((size == nest->width && dlc_turn_fits(nest, n)) || dlc_turn_fits_granules(nest, n, s.lo, size)))
        walk_square(nest, n, &s, size);
    else if (s.length >= 0 && dlc_jam_end(nest, n, s.length) > n + 1)
        jam_points(nest, n, &s);
    else if (node->tile > 1)
        walk_granules(nest, n, &s);
    else
        walk_points(nest, n, s.lo, size, s.length < 0 ? s.hi : 0);
    nest->tiles[node->axis] = before;
}

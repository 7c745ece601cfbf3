/*
 * Sums of neighbours side by side: of a loop that is written out around folds, each of its points has accumulators of its own, and the
 * loops of the fold run once for all of them. What neighbours read alike, taps of a window and its weights, is then read once.
 *
 *     unroll ow { for kh { unroll kw { a } } y }    for each ow: acc = identity
 *                                                   for kh { for each ow { unroll kw { a } } }
 *                                                   for each ow: a = acc; y
 *
 * The innermost of several loops of the fold is walked point by point. Each sum has its terms in the order that the text says.
 */
#include "codegen/nest.h"

#include <string.h>

enum { MOST_JAMMED = 32 };

static const dlc_schedule_node *node_of(const dlc_nest *nest, uint32_t n)
{
    return &nest->schedule->nodes.data[n];
}

static const dlc_stage *stage_of(const dlc_nest *nest, uint32_t leaf)
{
    return &nest->kernel->stages.data[node_of(nest, leaf)->stage];
}

/* The leaf reads some stage in the loop; of those that are in memory alone. */
static int reads_inside(const dlc_nest *nest, uint32_t leaf, uint32_t loop, int in_memory)
{
    const dlc_pool *pool = nest->kernel->pool;
    const uint8_t *marks = dlc_stage_marks(nest->kernel, stage_of(nest, leaf), nest->arena);
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id] || node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
            continue;
        const dlc_home *home = &nest->schedule->homes[DLC_SOURCE_INDEX(node->imm.id)];
        if (dlc_schedule_is_inside(nest->schedule, home->leaf, loop) && (!in_memory || home->place != DLC_PLACE_REG))
            return 1;
    }
    return 0;
}

/* The fold's own loops, each of which holds the next alone and the last one leaf: whole axes, point by point, two at least. */
static int is_jammed(const dlc_nest *nest, uint32_t fold, uint32_t loop)
{
    uint32_t n = fold, end = node_of(nest, fold)->end, nloops = 0;
    for (; n < end && node_of(nest, n)->kind != DLC_LOOP_LEAF; n++, nloops++) {
        const dlc_schedule_node *node = node_of(nest, n);
        if ((node->kind != DLC_LOOP_FOR && node->kind != DLC_LOOP_UNROLL) || node->tile != 1 || node->end != end)
            return 0;
    }
    if (n + 1 != end || nloops < 2 || node_of(nest, n)->row != DLC_DOT_NONE)
        return 0;
    const dlc_home *home = &nest->schedule->homes[node_of(nest, n)->stage];
    for (uint32_t i = fold; i < n; i++)
        if (!dlc_ids_find(&stage_of(nest, n)->reduce, node_of(nest, i)->axis, NULL))
            return 0;
    return home->fold == fold && !dlc_leaf_is_long(nest, n) && !reads_inside(nest, n, loop, 0);
}

/* What one point leaves in memory is nothing that another one reads. */
static int keeps_apart(const dlc_nest *nest, uint32_t loop)
{
    for (uint32_t n = loop + 1; n < node_of(nest, loop)->end; n++) {
        if (node_of(nest, n)->kind == DLC_LOOP_LEAF &&
            (stage_of(nest, n)->update != DLC_UPDATE_NONE || reads_inside(nest, n, loop, 1)))
            return 0;
    }
    return 1;
}

uint32_t dlc_jam_end(const dlc_nest *nest, uint32_t loop, int64_t count)
{
    uint32_t n = loop + 1, end = node_of(nest, loop)->end;
    if (nest->schedule->target->kind != DLC_TARGET_CPU || count < 2 || count > MOST_JAMMED)
        return n;
    while (n < end && is_jammed(nest, n, loop))
        n = node_of(nest, n)->end;
    return keeps_apart(nest, loop) ? n : loop + 1;
}

/* --- the walk --- */

typedef struct {
    uint32_t loop, axis, nstages;
    int64_t count;
    dlc_expr points[MOST_JAMMED];
    dlc_stage_state *states; /* by point, those of the loop's leaves in order */
} jam;

static void take_states(dlc_nest *nest, const jam *j, int64_t p, int keep)
{
    dlc_stage_state *own = j->states + p * j->nstages;
    for (uint32_t n = j->loop + 1; n < node_of(nest, j->loop)->end; n++)
        if (node_of(nest, n)->kind == DLC_LOOP_LEAF) {
            dlc_stage_state *state = &nest->states[node_of(nest, n)->stage];
            *(keep ? own : state) = *(keep ? state : own);
            own++;
        }
}

static void enter_point(dlc_nest *nest, const jam *j, int64_t p)
{
    dlc_nest_replace(nest, j->axis, j->points[p]);
    take_states(nest, j, p, 0);
}

static void leave_point(dlc_nest *nest, const jam *j, int64_t p)
{
    take_states(nest, j, p, 1);
    dlc_nest_replace(nest, j->axis, 0);
}

static void walk_fold(dlc_nest *nest, const jam *j, uint32_t n);

/* The loop's body: for each point where the body is the innermost loop or the leaf. */
static void walk_inner(dlc_nest *nest, const jam *j, uint32_t n)
{
    if (node_of(nest, n + 1)->kind != DLC_LOOP_LEAF && node_of(nest, n + 2)->kind != DLC_LOOP_LEAF) {
        walk_fold(nest, j, n + 1);
        return;
    }
    for (int64_t p = 0; p < j->count; p++) {
        enter_point(nest, j, p);
        dlc_walk_children(nest, n);
        leave_point(nest, j, p);
    }
}

static void walk_fold(dlc_nest *nest, const jam *j, uint32_t n)
{
    uint32_t axis = node_of(nest, n)->axis, before = nest->node;
    dlc_span s = dlc_walk_span(nest, n);
    dlc_tile tile = nest->tiles[axis];
    nest->node = n;
    nest->tiles[axis] = (dlc_tile){0};
    if (node_of(nest, n)->kind == DLC_LOOP_FOR) {
        dlc_nest_loop(nest, axis, dlc_nest_uniform(nest, s.lo), dlc_nest_uniform(nest, s.hi), 1);
        walk_inner(nest, j, n);
        dlc_nest_loop_end(nest);
    } else {
        for (int64_t i = 0; i < s.length; i++) {
            dlc_nest_replace(nest, axis, dlc_nest_here(nest, dlc_addi(nest->kernel->pool, s.lo, i)));
            walk_inner(nest, j, n);
            dlc_nest_replace(nest, axis, 0);
        }
    }
    nest->tiles[axis] = tile;
    nest->node = before;
}

/* What follows the folds, with their values, point by point: computed in a branch, so that it is not known behind it. */
static void walk_rest(dlc_nest *nest, const jam *j, uint32_t rest)
{
    dlc_emitter *emit = nest->emit;
    for (int64_t p = 0; p < j->count; p++) {
        emit->if_begin(emit, emit->konst(emit, DLC_BOOL, (dlc_scalar){.i = 1}, 1));
        dlc_nest_enter(nest);
        enter_point(nest, j, p);
        for (uint32_t n = j->loop + 1; n < rest; n = node_of(nest, n)->end)
            dlc_leaf_end_folds(nest, n);
        dlc_walk_body(nest, j->loop, rest, node_of(nest, j->loop)->end);
        leave_point(nest, j, p);
        dlc_nest_leave(nest);
        emit->if_end(emit);
    }
}

/* --- tiles that are written out --- */

static void walk_tile(dlc_nest *nest, uint32_t n, dlc_expr first, dlc_expr last)
{
    uint32_t axis = node_of(nest, n)->axis;
    dlc_tile before = nest->tiles[axis];
    nest->tiles[axis] = (dlc_tile){first, last};
    nest->firsts[n] = first;
    dlc_walk_children(nest, n);
    nest->tiles[axis] = before;
}

/* What is computed in a branch is not known behind it. axis: what the first point is called there, or DLC_NO_AXIS: what depends on it is
 * read there alone. */
static void walk_tile_if(dlc_nest *nest, uint32_t n, dlc_val condition, uint32_t axis, dlc_expr first, dlc_expr last)
{
    nest->emit->if_begin(nest->emit, condition);
    dlc_nest_enter(nest);
    if (axis != DLC_NO_AXIS) {
        dlc_nest_bind(nest, axis, dlc_nest_uniform(nest, first), 1);
        first = dlc_expr_axis(nest->kernel->pool, axis);
        last = dlc_addi(nest->kernel->pool, first, node_of(nest, n)->tile);
    }
    walk_tile(nest, n, first, last);
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
}

/* A loop in it over the tile that it leaves open is written out. */
static int is_written_out(const dlc_nest *nest, uint32_t n)
{
    for (uint32_t i = n + 1; i < node_of(nest, n)->end; i++)
        if (node_of(nest, i)->kind == DLC_LOOP_UNROLL && node_of(nest, i)->axis == node_of(nest, n)->axis)
            return 1;
    return 0;
}

int dlc_jam_cut(dlc_nest *nest, uint32_t n, const dlc_span *s)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_emitter *emit = nest->emit;
    const dlc_schedule_node *node = node_of(nest, n);
    int64_t lo, hi, tile = node->tile;
    if (nest->schedule->target->kind != DLC_TARGET_CPU || tile == 1 || !dlc_expr_is_int(pool, s->lo, &lo) ||
        !dlc_expr_is_int(pool, s->hi, &hi) || (hi - lo) % tile == 0 || lo % tile || !is_written_out(nest, n))
        return 0;
    int64_t whole = hi - (hi - lo) % tile;
    uint32_t axis = dlc_nest_stepped_axis(nest, dlc_expr_i64(pool, whole > lo ? whole : 1), tile);
    dlc_expr first = dlc_expr_axis(pool, axis), rest = dlc_expr_i64(pool, whole), end = dlc_expr_i64(pool, hi);
    if (node->kind == DLC_LOOP_PAR) {
        dlc_expr number = dlc_muli(pool, dlc_expr_axis(pool, nest->par[n]), tile);
        dlc_val is_whole = dlc_nest_uniform(nest, dlc_lt(pool, number, rest));
        dlc_val is_rest = emit->arith(emit, DLC_EXPR_NOT, DLC_BOOL, DLC_BOOL, 1, &is_whole);
        walk_tile_if(nest, n, is_whole, axis, number, end);
        walk_tile_if(nest, n, is_rest, DLC_NO_AXIS, rest, end);
        return 1;
    }
    if (whole > lo) {
        dlc_nest_loop(nest, axis, dlc_nest_i64(nest, lo), dlc_nest_i64(nest, whole), tile);
        walk_tile(nest, n, first, dlc_addi(pool, first, tile));
        dlc_nest_loop_end(nest);
    }
    walk_tile_if(nest, n, emit->konst(emit, DLC_BOOL, (dlc_scalar){.i = 1}, 1), DLC_NO_AXIS, rest, end);
    return 1;
}

/* --- the loop --- */

void dlc_jam_walk(dlc_nest *nest, uint32_t loop, dlc_expr lo, int64_t count, uint32_t rest)
{
    jam j = {.loop = loop, .axis = node_of(nest, loop)->axis, .count = count};
    for (uint32_t n = loop + 1; n < node_of(nest, loop)->end; n++)
        j.nstages += node_of(nest, n)->kind == DLC_LOOP_LEAF;
    j.states = dlc_arena_array(nest->arena, (size_t)count * j.nstages, sizeof *j.states, sizeof(void *));
    for (int64_t p = 0; p < count; p++) {
        j.points[p] = dlc_nest_here(nest, dlc_addi(nest->kernel->pool, lo, p));
        take_states(nest, &j, p, 1);
    }
    for (uint32_t n = loop + 1; n < rest; n = node_of(nest, n)->end) {
        for (int64_t p = 0; p < count; p++) {
            enter_point(nest, &j, p);
            dlc_leaf_begin_folds(nest, n);
            leave_point(nest, &j, p);
        }
        nest->open[nest->nopen].node = loop;
        nest->open[nest->nopen++].level = nest->level;
        walk_fold(nest, &j, n);
        nest->nopen--;
    }
    walk_rest(nest, &j, rest);
}

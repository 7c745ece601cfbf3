/*
 * Sums of neighbours side by side: of a loop that is written out around folds, each of its points has accumulators of its own, and the
 * loops of the fold run once for all of them. What neighbours read alike, taps of a window and its weights, is then read once.
 *
 *     unroll ow { for kh { unroll kw { a } } y }    for each ow: acc = identity
 *                                                   for kh { for each ow { unroll kw { a } } }
 *                                                   for each ow: a = acc; y
 *
 * The innermost of several loops of the fold is walked point by point. Each sum has its terms in the order that the text says.
 *
 * Vectors of lanes are such points, too: `lane i:16 x 8 { for r { sum } }` goes down the rows once for all eight, by whole lines.
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

/* The fold's own loops, each of which holds the next alone and the last one leaf: whole axes, point by point. Of points that are written
 * out two loops at least, of vectors one. Of long sums the parts end for all points together. */
static int is_jammed(const dlc_nest *nest, uint32_t fold, uint32_t loop)
{
    uint32_t n = fold, end = node_of(nest, fold)->end, nloops = 0;
    int is_lanes = node_of(nest, loop)->kind == DLC_LOOP_LANE;
    for (; n < end && node_of(nest, n)->kind != DLC_LOOP_LEAF; n++, nloops++) {
        const dlc_schedule_node *node = node_of(nest, n);
        if ((node->kind != DLC_LOOP_FOR && node->kind != DLC_LOOP_UNROLL) || (node->kind == DLC_LOOP_FOR && node->tile != 1) || node->end != end)
            return 0;
    }
    if (n + 1 != end || nloops < (is_lanes ? 1 : 2) || node_of(nest, n)->row != DLC_DOT_NONE)
        return 0;
    const dlc_home *home = &nest->schedule->homes[node_of(nest, n)->stage];
    for (uint32_t i = fold; i < n; i++)
        if (!dlc_ids_find(&stage_of(nest, n)->reduce, node_of(nest, i)->axis, NULL))
            return 0;
    return home->fold == fold && !reads_inside(nest, n, loop, 0);
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

/* What dlc_leaf_part says of the points, which are alike. */
static int64_t turns_of_part(dlc_nest *nest, const jam *j, uint32_t n)
{
    enter_point(nest, j, 0);
    int64_t turns = dlc_leaf_part(nest, n);
    leave_point(nest, j, 0);
    return turns;
}

static void end_part(dlc_nest *nest, const jam *j, uint32_t n)
{
    for (int64_t p = 0; p < j->count; p++) {
        enter_point(nest, j, p);
        dlc_leaf_end_part(nest, n);
        leave_point(nest, j, p);
    }
}

static void walk_fold(dlc_nest *nest, const jam *j, uint32_t n)
{
    uint32_t axis = node_of(nest, n)->axis, before = nest->node;
    dlc_span s = dlc_walk_span(nest, n), part = s;
    int64_t turns = node_of(nest, n)->kind == DLC_LOOP_FOR ? turns_of_part(nest, j, n) : 0;
    dlc_tile tile = nest->tiles[axis];
    nest->node = n;
    nest->tiles[axis] = (dlc_tile){0};
    if (node_of(nest, n)->kind == DLC_LOOP_FOR) {
        if (turns)
            part = dlc_walk_begin_part(nest, n, &s, turns);
        dlc_nest_loop(nest, axis, dlc_nest_uniform(nest, part.lo), dlc_nest_uniform(nest, part.hi), 1);
        walk_inner(nest, j, n);
        dlc_nest_loop_end(nest);
        if (turns) {
            dlc_walk_end_part_begin(nest, &part, s.hi);
            end_part(nest, j, n);
            dlc_walk_end_part_end(nest);
        }
    } else {
        for (int64_t i = 0; i < s.length; i += node_of(nest, n)->tile) {
            dlc_walk_enter_written(nest, n, &s, i);
            walk_inner(nest, j, n);
            dlc_walk_leave_written(nest, n);
        }
    }
    nest->tiles[axis] = tile;
    nest->node = before;
}

/* What follows the folds, with their values, point by point: computed in a branch, so that it is not known behind it; bytes are stored when there
 * are enough of them. */
static void walk_rest(dlc_nest *nest, const jam *j, uint32_t rest)
{
    dlc_emitter *emit = nest->emit;
    int holds = dlc_held_begin(nest, DLC_HOLD_BYTES, nest->level + 1);
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
    if (holds)
        dlc_held_end(nest);
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

/* Tiles up to `whole`, then what is left up to the end. */
static void walk_cut(dlc_nest *nest, uint32_t n, const dlc_span *s, dlc_expr whole)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_emitter *emit = nest->emit;
    const dlc_schedule_node *node = node_of(nest, n);
    int64_t tile = node->tile, known;
    int is_known = dlc_expr_is_int(pool, whole, &known);
    dlc_expr extent = is_known ? dlc_expr_i64(pool, known > 0 ? known : 1) : nest->kernel->axes.data[node->axis].extent;
    uint32_t axis = dlc_nest_stepped_axis(nest, extent, tile);
    dlc_expr first = dlc_expr_axis(pool, axis);
    if (node->kind == DLC_LOOP_PAR) {
        dlc_expr number = dlc_muli(pool, dlc_expr_axis(pool, nest->par[n]), tile);
        dlc_val is_whole = dlc_nest_uniform(nest, dlc_lt(pool, number, whole));
        dlc_val is_rest = emit->arith(emit, DLC_EXPR_NOT, DLC_BOOL, DLC_BOOL, 1, &is_whole);
        walk_tile_if(nest, n, is_whole, axis, number, s->hi);
        walk_tile_if(nest, n, is_rest, DLC_NO_AXIS, is_known ? whole : number, s->hi);
        return;
    }
    if (whole != s->lo) {
        dlc_nest_loop(nest, axis, dlc_nest_uniform(nest, s->lo), dlc_nest_uniform(nest, whole), tile);
        walk_tile(nest, n, first, dlc_addi(pool, first, tile));
        dlc_nest_loop_end(nest);
    }
    walk_tile_if(nest, n, dlc_nest_uniform(nest, dlc_lt(pool, whole, s->hi)), DLC_NO_AXIS, whole, s->hi);
}

int dlc_jam_cut(dlc_nest *nest, uint32_t n, const dlc_span *s)
{
    dlc_pool *pool = nest->kernel->pool;
    int64_t lo, hi, tile = node_of(nest, n)->tile;
    if (nest->schedule->target->kind != DLC_TARGET_CPU || tile == 1 || !dlc_expr_is_int(pool, s->lo, &lo) || lo % tile || !is_written_out(nest, n))
        return 0;
    dlc_expr rest = dlc_mod(pool, dlc_addi(pool, s->hi, -lo), dlc_expr_i64(pool, tile));
    if (dlc_expr_is_int(pool, s->hi, &hi) && (hi - lo) % tile == 0)
        return 0;
    walk_cut(nest, n, s, dlc_expr_simplify(pool, dlc_sub(pool, s->hi, rest), &nest->ranges));
    return 1;
}

/* --- guards --- */
/*
 * Of a window most points lie inside of what it reads: there no element is asked for. Where each guard of the folds holds on intervals of
 * the axes around, the loop is there twice, in a branch for these intervals and in another for what is left. Where the run alone knows a size,
 * so that an interval's end is no number, the branch asks for the strongest of the conditions, and the others follow from it.
 */
typedef struct {
    uint32_t axis, fresh; /* around the loop; what it is called in the branch: its values there alone */
    int64_t lo, hi;       /* of the branch */
} inside;

enum { MOST_INSIDE = 4, MOST_TRIED = 16, MOST_TWICE = 128 };

typedef struct {
    inside of[MOST_INSIDE];
    uint32_t n;
    dlc_expr slack[MOST_INSIDE]; /* not negative in the branch */
    uint32_t nslacks;
} insides;

static int is_true(dlc_nest *nest, dlc_expr condition)
{
    int64_t value;
    return dlc_expr_is_int(nest->kernel->pool, dlc_expr_simplify(nest->kernel->pool, condition, &nest->ranges), &value) && value;
}

/* Narrows the axis' interval from one side until the condition holds on it. */
static int narrow_side(dlc_nest *nest, uint32_t axis, dlc_expr condition, int is_upper)
{
    dlc_interval *own = &nest->axis_ranges.data[axis], before = *own;
    int64_t step = nest->axis_multiples.data[axis];
    for (int i = 0; i < MOST_TRIED && own->lo <= own->hi; i++) {
        if (is_true(nest, condition))
            return 1;
        *(is_upper ? &own->hi : &own->lo) += is_upper ? -step : step;
    }
    nest->axis_ranges.data[axis] = before;
    return 0;
}

/* The axis, not of the kernel's reduced ones or the lanes, that a comparison depends on; DLC_NO_AXIS: none or several. */
static uint32_t axis_around(const dlc_nest *nest, const dlc_stage *stage, dlc_expr comparison)
{
    uint32_t found = DLC_NO_AXIS;
    for (uint32_t a = 0; a < nest->axes.n; a++) {
        if (!dlc_expr_uses_axis(nest->kernel->pool, comparison, a) || dlc_ids_find(&stage->reduce, a, NULL))
            continue;
        if (a == nest->lane || a == nest->lane_base || found != DLC_NO_AXIS)
            return DLC_NO_AXIS;
        found = a;
    }
    return found;
}

/* The least that the expression is over the stage's reduced axes, in which it is linear; 0: that is not known. */
static dlc_expr least_over(dlc_nest *nest, const dlc_stage *stage, dlc_expr slack)
{
    dlc_pool *pool = nest->kernel->pool;
    for (uint32_t i = 0; i < stage->reduce.n; i++) {
        uint32_t axis = stage->reduce.data[i];
        const dlc_interval *range = &nest->axis_ranges.data[axis];
        dlc_expr coefficient, rest;
        int64_t by;
        if (!dlc_expr_uses_axis(pool, slack, axis))
            continue;
        if (!dlc_expr_linear(pool, slack, axis, &coefficient, &rest) || !dlc_expr_is_int(pool, coefficient, &by))
            return 0;
        slack = dlc_addi(pool, rest, by * (by < 0 ? range->hi : range->lo));
    }
    return slack;
}

/* The comparison's other side is of a size that the run alone knows. */
static int ask_for(dlc_nest *nest, const dlc_stage *stage, uint32_t axis, dlc_expr comparison, insides *in)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr slack = dlc_nest_slack(pool, comparison), coefficient, rest;
    int64_t number;
    if (!slack || !(slack = least_over(nest, stage, slack)) || !dlc_expr_linear(pool, slack, axis, &coefficient, &rest) ||
        dlc_expr_is_int(pool, rest, &number) || dlc_expr_has_load(pool, rest))
        return 0;
    slack = dlc_expr_simplify(pool, slack, &nest->ranges);
    for (uint32_t i = 0; i < in->nslacks; i++)
        if (dlc_expr_is_int(pool, dlc_expr_simplify(pool, dlc_sub(pool, slack, in->slack[i]), &nest->ranges), &number)) {
            in->slack[i] = number < 0 ? slack : in->slack[i];
            return 1;
        }
    if (in->nslacks == MOST_INSIDE)
        return 0;
    in->slack[in->nslacks++] = slack;
    return 1;
}

static void narrow(dlc_nest *nest, const dlc_stage *stage, dlc_expr comparison, insides *in)
{
    uint32_t axis = axis_around(nest, stage, comparison), i = 0;
    while (i < in->n && in->of[i].axis != axis)
        i++;
    if (axis == DLC_NO_AXIS || i == MOST_INSIDE || is_true(nest, comparison))
        return;
    if (!ask_for(nest, stage, axis, comparison, in) && !narrow_side(nest, axis, comparison, 0) && !narrow_side(nest, axis, comparison, 1))
        return;
    in->of[i].axis = axis;
    in->n += i == in->n;
}

static void narrow_all(dlc_nest *nest, const dlc_stage *stage, dlc_expr guard, insides *in)
{
    const dlc_pool *pool = nest->kernel->pool;
    dlc_ids todo = {0};
    dlc_vec_push(nest->arena, &todo, guard);
    while (todo.n) {
        dlc_expr expr = todo.data[--todo.n];
        if (dlc_node_of(pool, expr)->op != DLC_EXPR_AND) {
            narrow(nest, stage, expr, in);
            continue;
        }
        for (uint32_t i = 0; i < 2; i++)
            dlc_vec_push(nest->arena, &todo, dlc_arg(pool, expr, i));
    }
}

/* The intervals on which guards of the jammed folds hold; the axes' ranges are as before. */
static insides find_insides(dlc_nest *nest, const jam *j, uint32_t rest)
{
    insides in = {0};
    dlc_interval *before = dlc_new_array(nest->arena, dlc_interval, nest->axis_ranges.n);
    memcpy(before, nest->axis_ranges.data, nest->axis_ranges.n * sizeof *before);
    for (uint32_t n = j->loop + 1; n < rest; n++) {
        if (node_of(nest, n)->kind != DLC_LOOP_LEAF)
            continue;
        const dlc_stage *stage = stage_of(nest, n);
        const uint8_t *marks = dlc_stage_marks(nest->kernel, stage, nest->arena);
        uint32_t nnodes = nest->kernel->pool->nodes.n; /* what is simplified makes more */
        for (dlc_expr id = 1; id < nnodes && id <= stage->value[0]; id++)
            for (int64_t p = 0; marks[id] && dlc_node_of(nest->kernel->pool, id)->op == DLC_EXPR_LOAD && p < j->count; p++) {
                dlc_expr guard = dlc_load_guard(nest->kernel->pool, id);
                if (!guard)
                    break;
                dlc_nest_replace(nest, j->axis, j->points[p]);
                narrow_all(nest, stage, dlc_nest_here(nest, guard), &in);
                dlc_nest_replace(nest, j->axis, 0);
            }
    }
    for (uint32_t i = 0; i < in.n; i++) {
        in.of[i].lo = nest->axis_ranges.data[in.of[i].axis].lo;
        in.of[i].hi = nest->axis_ranges.data[in.of[i].axis].hi;
        if (in.of[i].lo > in.of[i].hi)
            in.n = 0;
    }
    memcpy(nest->axis_ranges.data, before, nest->axis_ranges.n * sizeof *before);
    return in;
}

/* The run's point lies in the intervals. */
static dlc_val is_inside(dlc_nest *nest, const insides *in)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr all = dlc_expr_bool(pool, 1);
    for (uint32_t i = 0; i < in->n; i++) {
        dlc_expr axis = dlc_expr_axis(pool, in->of[i].axis);
        all = dlc_and(pool, all, dlc_le(pool, dlc_expr_i64(pool, in->of[i].lo), axis));
        all = dlc_and(pool, all, dlc_le(pool, axis, dlc_expr_i64(pool, in->of[i].hi)));
    }
    for (uint32_t i = 0; i < in->nslacks; i++)
        all = dlc_and(pool, all, dlc_le(pool, dlc_expr_i64(pool, 0), in->slack[i]));
    return dlc_nest_uniform(nest, dlc_expr_simplify(pool, all, &nest->ranges));
}

/* In the branch the axes are others, of these values alone: what depends on them is read there alone. */
static void rename_axes(dlc_nest *nest, insides *in, jam *j)
{
    dlc_pool *pool = nest->kernel->pool;
    uint32_t naxes = nest->axes.n;
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, naxes);
    for (uint32_t i = 0; i < in->n; i++) {
        inside *own = &in->of[i];
        own->fresh = dlc_nest_stepped_axis(nest, nest->axis_extents.data[own->axis], nest->axis_multiples.data[own->axis]);
        nest->axis_ranges.data[own->fresh] = (dlc_interval){own->lo, own->hi};
        dlc_nest_bind(nest, own->fresh, dlc_nest_uniform(nest, dlc_expr_axis(pool, own->axis)), 1);
        with[own->axis] = dlc_expr_axis(pool, own->fresh);
        if (own->axis < nest->kernel->axes.n)
            dlc_nest_replace(nest, own->axis, with[own->axis]);
    }
    for (int64_t p = 0; p < j->count; p++)
        j->points[p] = dlc_expr_simplify(pool, dlc_expr_substitute(pool, j->points[p], with, naxes), &nest->ranges);
    for (uint32_t i = 0; i < in->nslacks; i++)
        dlc_vec_push(nest->arena, &nest->known, dlc_expr_simplify(pool, dlc_expr_substitute(pool, in->slack[i], with, naxes), &nest->ranges));
}

/* --- the loop --- */

static void walk_points(dlc_nest *nest, const jam *j, uint32_t rest)
{
    for (uint32_t n = j->loop + 1; n < rest; n = node_of(nest, n)->end) {
        for (int64_t p = 0; p < j->count; p++) {
            enter_point(nest, j, p);
            dlc_leaf_begin_folds(nest, n);
            leave_point(nest, j, p);
        }
        nest->open[nest->nopen].node = j->loop;
        nest->open[nest->nopen++].level = nest->level;
        walk_fold(nest, j, n);
        nest->nopen--;
    }
    walk_rest(nest, j, rest);
}

/* Few terms are written out: of more (5x5) the guards are a small part, and what is there twice wants more registers and space. */
static int is_short(const dlc_nest *nest, const jam *j, uint32_t rest)
{
    int64_t terms = 0;
    for (uint32_t n = j->loop + 1; n < rest; n = node_of(nest, n)->end) {
        int64_t own = j->count;
        for (uint32_t i = n; node_of(nest, i)->kind != DLC_LOOP_LEAF; i++)
            own *= node_of(nest, i)->kind == DLC_LOOP_UNROLL
                       ? (dlc_schedule_most_points(nest->schedule, i) + node_of(nest, i)->tile - 1) / node_of(nest, i)->tile
                       : 1;
        terms += own;
    }
    return terms <= MOST_TWICE;
}

static void walk_inside(dlc_nest *nest, const jam *j, insides *in, uint32_t rest)
{
    jam own = *j;
    rename_axes(nest, in, &own);
    walk_points(nest, &own, rest);
    nest->known.n -= in->nslacks;
    for (uint32_t i = 0; i < in->n; i++)
        if (in->of[i].axis < nest->kernel->axes.n)
            dlc_nest_replace(nest, in->of[i].axis, 0);
}

void dlc_jam_walk(dlc_nest *nest, uint32_t loop, dlc_expr lo, int64_t count, uint32_t rest)
{
    jam j = {.loop = loop, .axis = node_of(nest, loop)->axis, .count = count};
    dlc_emitter *emit = nest->emit;
    for (uint32_t n = loop + 1; n < node_of(nest, loop)->end; n++)
        j.nstages += node_of(nest, n)->kind == DLC_LOOP_LEAF;
    j.states = dlc_arena_array(nest->arena, (size_t)count * j.nstages, sizeof *j.states, sizeof(void *));
    for (int64_t p = 0; p < count; p++) {
        j.points[p] = dlc_nest_here(nest, dlc_addi(nest->kernel->pool, lo, p));
        take_states(nest, &j, p, 1);
    }
    insides in = is_short(nest, &j, rest) ? find_insides(nest, &j, rest) : (insides){0};
    if (!in.n) {
        walk_points(nest, &j, rest);
        return;
    }
    dlc_val yes = is_inside(nest, &in), no = emit->arith(emit, DLC_EXPR_NOT, DLC_BOOL, DLC_BOOL, 1, &yes);
    for (int i = 0; i < 2; i++) {
        emit->if_begin(emit, i ? no : yes);
        dlc_nest_enter(nest);
        if (i)
            walk_points(nest, &j, rest);
        else
            walk_inside(nest, &j, &in, rest);
        dlc_nest_leave(nest);
        emit->if_end(emit);
    }
}

int dlc_jam_vectors(dlc_nest *nest, uint32_t loop, uint32_t nvectors)
{
    dlc_pool *pool = nest->kernel->pool;
    uint32_t rest = dlc_jam_end(nest, loop, nvectors), axis = node_of(nest, loop)->axis;
    jam j = {.loop = loop, .axis = axis, .count = nvectors};
    if (rest == loop + 1)
        return 0;
    for (uint32_t n = loop + 1; n < node_of(nest, loop)->end; n++)
        j.nstages += node_of(nest, n)->kind == DLC_LOOP_LEAF;
    j.states = dlc_arena_array(nest->arena, (size_t)nvectors * j.nstages, sizeof *j.states, sizeof(void *));
    for (uint32_t p = 0; p < nvectors; p++) {
        j.points[p] = dlc_addi(pool, dlc_expr_axis(pool, axis), p * node_of(nest, loop)->tile);
        take_states(nest, &j, p, 1);
    }
    walk_points(nest, &j, rest);
    return 1;
}

/*
 * The walk of a schedule's tree. A loop runs over the open tile of its axis, or over the region that its stages need; tiles of
 * one point bind the axis, larger ones stay open for loops inside. Two kinds of tiles are left to register tiles:
 *
 *   rows     are cut into near-equal heights, so that none is a remainder of a few; what depends on the height is emitted once
 *            for each. Where the number of rows is a symbol, the last tile takes the next larger of a few heights and repeats
 *            its last row (the repeated stores write the same values). Of blocks it has what they leave over.
 *   columns  whole panels, then what is left over with lanes masked.
 */
#include "codegen/nest.h"
#include "ir/schedule/resolve.h"

#include <assert.h>
#include <string.h>

static void walk(dlc_nest *nest, uint32_t n);

static const dlc_schedule_node *node_of(const dlc_nest *nest, uint32_t n)
{
    return &nest->schedule->nodes.data[n];
}

static dlc_expr simplified(dlc_nest *nest, dlc_expr expr)
{
    return dlc_expr_simplify(nest->kernel->pool, expr, &nest->ranges);
}

static dlc_expr i64(dlc_nest *nest, int64_t value)
{
    return dlc_expr_i64(nest->kernel->pool, value);
}

static dlc_expr axis_expr(dlc_nest *nest, uint32_t axis)
{
    return dlc_expr_axis(nest->kernel->pool, axis);
}

/* --- what lies inside --- */

/* A register tile among the nodes [n, end) whose rows (columns) the loop leaves open. */
static int has_dot(const dlc_nest *nest, uint32_t n, uint32_t end, uint32_t loop, int columns)
{
    for (; n < end; n++) {
        const dlc_schedule_node *leaf = node_of(nest, n);
        if (leaf->kind == DLC_LOOP_LEAF && leaf->row != DLC_DOT_NONE &&
            (columns ? dlc_schedule_columns(nest->schedule, n) : dlc_schedule_rows(nest->schedule, n)) == loop)
            return 1;
    }
    return 0;
}

/* The child, or what runs over a tile in it, depends on the height of the loop's tile. */
static int depends_on_height(const dlc_nest *nest, uint32_t child, uint32_t loop)
{
    uint32_t end = node_of(nest, child)->end;
    if (has_dot(nest, child, end, loop, 0))
        return 1;
    const dlc_schedule_node *node = node_of(nest, child);
    return node->kind == DLC_LOOP_AS && dlc_schedule_rows(nest->schedule, nest->schedule->homes[node->stage].leaf) == loop;
}

/* --- what lanes of a warp wait for --- */

static int reads(const dlc_nest *nest, uint32_t reader, uint32_t s)
{
    const dlc_kernel *kernel = nest->kernel;
    const uint8_t *marks = dlc_stage_marks(kernel, &kernel->stages.data[reader], nest->arena);
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->op == DLC_EXPR_LOAD && node->imm.id == DLC_STAGE_SOURCE(s))
            return 1;
    }
    return 0;
}

/* Do lanes read what others of them stored of stage s? Not from registers, nor along an axis that all of them share: there each keeps
 * to its own points. */
static int passes_between_lanes(const dlc_nest *nest, uint32_t s)
{
    const dlc_home *home = &nest->schedule->homes[s];
    if (!home->is_read || home->place == DLC_PLACE_REG)
        return 0;
    for (uint32_t n = home->at; n != DLC_ROOT_NODE; n = dlc_schedule_parent(nest->schedule, n))
        if (node_of(nest, n)->kind == DLC_LOOP_LANE)
            return 0;
    return 1;
}

static void find_meetings(dlc_nest *nest, uint32_t s)
{
    int is_update = nest->kernel->stages.data[s].update != DLC_UPDATE_NONE, is_changed = is_update;
    int is_passed = passes_between_lanes(nest, s);
    for (uint32_t t = s + 1; t < nest->kernel->stages.n; t++) /* a later stage changes what this one stored */
        is_changed |= nest->kernel->stages.data[t].update != DLC_UPDATE_NONE;
    nest->states[s].is_met = is_changed || is_passed;
    nest->states[s].is_met_within = is_update || (is_passed && reads(nest, s, s));
}

static int in_lanes(const dlc_nest *nest)
{
    for (uint32_t i = 0; i < nest->nopen; i++)
        if (node_of(nest, nest->open[i].node)->kind == DLC_LOOP_LANE)
            return 1;
    return 0;
}

/* After child [c, end) of the loop: is something in it read or changed by the loop's other children, or its next iteration? */
static int meets_here(const dlc_nest *nest, uint32_t c, uint32_t end, uint32_t loop)
{
    for (uint32_t n = c; n < end; n++) {
        if (node_of(nest, n)->kind != DLC_LOOP_LEAF || !nest->states[node_of(nest, n)->stage].is_met)
            continue;
        uint32_t s = node_of(nest, n)->stage;
        if (nest->states[s].is_met_within)
            return 1;
        for (uint32_t t = 0; t < nest->kernel->stages.n; t++) {
            uint32_t leaf = nest->schedule->homes[t].leaf;
            int is_outside = (leaf < c || leaf >= end) && dlc_schedule_is_inside(nest->schedule, leaf, loop);
            if (is_outside && (nest->kernel->stages.data[t].update != DLC_UPDATE_NONE || reads(nest, t, s)))
                return 1;
        }
    }
    return 0;
}

/* A parallel loop is one iteration of a unit; what lanes go through at the same time has no barrier inside. */
static int is_repeated(const dlc_nest *nest, uint32_t loop)
{
    return loop != DLC_ROOT_NODE && node_of(nest, loop)->kind != DLC_LOOP_PAR;
}

/* After child [c, end) of a repeated loop: the next iteration stores anew what something in it has read. */
static int is_stored_again(const dlc_nest *nest, uint32_t c, uint32_t end, uint32_t loop)
{
    if (!is_repeated(nest, loop))
        return 0;
    for (uint32_t n = c; n < end; n++)
        for (uint32_t s = 0; node_of(nest, n)->kind == DLC_LOOP_LEAF && s < nest->kernel->stages.n; s++) {
            uint32_t leaf = nest->schedule->homes[s].leaf;
            int is_shared = nest->schedule->threads ? nest->deal == DLC_LOOP_LEAF || dlc_schedule_is_of_warp(nest->schedule, s)
                                                    : nest->states[s].is_met;
            int is_outside = (leaf < c || leaf >= end) && dlc_schedule_is_inside(nest->schedule, leaf, loop);
            if (is_outside && is_shared && nest->schedule->homes[s].place != DLC_PLACE_REG &&
                reads(nest, node_of(nest, n)->stage, s))
                return 1;
        }
    return 0;
}

/* After child [c, end) of the loop: what something in it has read is overwritten by a later child. */
static int is_overwritten(const dlc_nest *nest, uint32_t c, uint32_t end, uint32_t loop)
{
    for (uint32_t s = 0; s < nest->kernel->stages.n; s++) {
        const dlc_home *home = &nest->schedule->homes[s];
        if (home->place != DLC_PLACE_SCRATCH || home->takes == DLC_NO_STAGE || home->leaf < end ||
            !dlc_schedule_is_inside(nest->schedule, home->leaf, loop))
            continue;
        for (uint32_t n = c; n < end; n++)
            if (node_of(nest, n)->kind == DLC_LOOP_LEAF && reads(nest, node_of(nest, n)->stage, home->takes))
                return 1;
    }
    return 0;
}

void dlc_walk_sync(dlc_nest *nest)
{
    nest->emit->sync(nest->emit, nest->schedule->threads && nest->deal == DLC_LOOP_LEAF);
}

static void walk_range(dlc_nest *nest, uint32_t n, uint32_t end, uint32_t loop)
{
    int is_cuda = nest->schedule->target->kind == DLC_TARGET_CUDA;
    while (n < end) {
        uint32_t next = node_of(nest, n)->end;
        walk(nest, n);
        if (is_cuda && nest->deal != DLC_LOOP_THREAD && !in_lanes(nest) &&
            (meets_here(nest, n, next, loop) || is_stored_again(nest, n, next, loop) || is_overwritten(nest, n, next, loop)))
            dlc_walk_sync(nest);
        n = next;
    }
}

/* The body of a loop, at the present level. */
void dlc_walk_body(dlc_nest *nest, uint32_t loop, uint32_t n, uint32_t end)
{
    nest->open[nest->nopen].node = loop;
    nest->open[nest->nopen++].level = nest->level;
    walk_range(nest, n, end, loop);
    nest->nopen--;
}

void dlc_walk_children(dlc_nest *nest, uint32_t node)
{
    dlc_walk_body(nest, node, node + 1, node_of(nest, node)->end);
}

/* --- ranges --- */

dlc_span dlc_walk_span(dlc_nest *nest, uint32_t n)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_range *range = &nest->schedule->ranges[n];
    uint32_t axis = node_of(nest, n)->axis;
    dlc_expr extent = nest->kernel->axes.data[axis].extent;
    dlc_span s = {nest->tiles[axis].first, nest->tiles[axis].last, -1};
    int64_t begin, end;
    if (!s.hi) {
        s.lo = dlc_nest_first(nest, dlc_schedule_parent(nest->schedule, n), range->first);
        s.hi = range->size == extent ? extent : dlc_min(pool, dlc_add(pool, s.lo, range->size), extent);
        s.lo = simplified(nest, dlc_max(pool, s.lo, i64(nest, 0)));
        s.hi = simplified(nest, s.hi);
    }
    if (dlc_expr_is_int(pool, s.lo, &begin) && begin > 0 && !dlc_expr_is_int(pool, s.hi, &end))
        s.hi = simplified(nest, dlc_max(pool, s.hi, s.lo)); /* there may be nothing, and no rest behind it */
    if (!dlc_expr_is_int(pool, simplified(nest, dlc_sub(pool, s.hi, s.lo)), &s.length))
        s.length = -1;
    return s;
}

static int is_par(const dlc_nest *nest, uint32_t n)
{
    return node_of(nest, n)->kind == DLC_LOOP_PAR;
}

/* --- plain loops --- */

static void open_tile(dlc_nest *nest, uint32_t n, dlc_expr first, const dlc_span *s)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_tile tile = {first, dlc_addi(pool, first, node->tile)};
    if (s->length >= 0 && s->length < node->tile) /* its one iteration: what is inside knows how much that is */
        tile = (dlc_tile){s->lo, s->hi};
    else if (s->length < 0 || s->length % node->tile)
        tile.last = dlc_min(pool, tile.last, s->hi);
    nest->tiles[node->axis] = tile;
    nest->firsts[n] = tile.first;
}

dlc_span dlc_walk_begin_part(dlc_nest *nest, uint32_t n, const dlc_span *s, int64_t step)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = node_of(nest, n);
    int64_t multiple = dlc_expr_multiple(pool, s->lo, &nest->ranges) % node->tile ? 1 : node->tile;
    uint32_t axis = dlc_nest_stepped_axis(nest, nest->kernel->axes.data[node->axis].extent, multiple);
    dlc_nest_loop(nest, axis, dlc_nest_uniform(nest, s->lo), dlc_nest_uniform(nest, s->hi), step);
    dlc_span part = {axis_expr(nest, axis), dlc_addi(pool, axis_expr(nest, axis), step), step};
    if (s->length < 0 || s->length % step)
        part = (dlc_span){part.lo, simplified(nest, dlc_min(pool, part.hi, s->hi)), -1};
    return part;
}

void dlc_walk_end_part_begin(dlc_nest *nest, const dlc_span *part, dlc_expr hi)
{
    nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, dlc_lt(nest->kernel->pool, part->hi, hi)));
    dlc_nest_enter(nest);
}

void dlc_walk_end_part_end(dlc_nest *nest)
{
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
    dlc_nest_loop_end(nest);
}

static void end_part(dlc_nest *nest, uint32_t n, const dlc_span *part, dlc_expr hi)
{
    dlc_walk_end_part_begin(nest, part, hi);
    dlc_leaf_end_part(nest, n);
    dlc_walk_end_part_end(nest);
}

static void walk_plain(dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_span s = dlc_walk_span(nest, n), part = s;
    int64_t turns = is_par(nest, n) ? 0 : dlc_leaf_part(nest, n);
    dlc_tile before = nest->tiles[node->axis];
    uint32_t axis = node->axis;
    if (!turns && dlc_jam_cut(nest, n, &s))
        return;
    if (turns)
        part = dlc_walk_begin_part(nest, n, &s, turns * node->tile);
    if (node->tile > 1) {
        int64_t multiple = dlc_expr_multiple(nest->kernel->pool, s.lo, &nest->ranges) % node->tile ? 1 : node->tile;
        axis = dlc_nest_stepped_axis(nest, nest->kernel->axes.data[node->axis].extent, multiple);
    }
    if (is_par(nest, n))
        dlc_nest_bind(nest, axis, dlc_nest_uniform(nest, dlc_muli(nest->kernel->pool, axis_expr(nest, nest->par[n]), node->tile)),
                      1);
    else
        dlc_nest_loop(nest, axis, dlc_nest_uniform(nest, part.lo), dlc_nest_uniform(nest, part.hi), node->tile);
    if (node->tile > 1)
        open_tile(nest, n, axis_expr(nest, axis), &s);
    else
        nest->tiles[node->axis] = (dlc_tile){0};
    nest->numbers[n] = dlc_floordiv(nest->kernel->pool, dlc_sub(nest->kernel->pool, axis_expr(nest, axis), s.lo), i64(nest, node->tile));
    dlc_walk_children(nest, n);
    nest->tiles[node->axis] = before;
    if (!is_par(nest, n))
        dlc_nest_loop_end(nest);
    if (turns)
        end_part(nest, n, &part, s.hi);
}

/* --- rows of register tiles --- */

/* The children up to the first that depends on the height are walked by the caller; then they, for this height. `limit` (or 0)
 * clamps rows past the end to the last row. */
static void walk_height(dlc_nest *nest, uint32_t n, uint32_t from, uint32_t to, uint32_t height, dlc_expr condition,
                        dlc_expr limit)
{
    dlc_pool *pool = nest->kernel->pool;
    uint32_t axis = node_of(nest, n)->axis;
    dlc_expr extent = nest->kernel->axes.data[axis].extent;
    dlc_tile before = nest->tiles[axis];
    dlc_register_axis *outer = nest->registers[axis], *rows = dlc_new(nest->arena, dlc_register_axis);
    if (condition) {
        dlc_val first = dlc_nest_uniform(nest, before.first);
        nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, simplified(nest, condition)));
        dlc_nest_enter(nest);
        uint32_t m0 = dlc_nest_axis(nest, extent); /* bound in here: rows that are not there are not read outside */
        dlc_nest_bind(nest, m0, first, 1);
        nest->tiles[axis].first = axis_expr(nest, m0);
        nest->tiles[axis].last = limit ? before.last : dlc_addi(pool, axis_expr(nest, m0), height);
    }
    rows->n = height;
    for (uint32_t r = 0; r < height; r++) {
        rows->points[r] = dlc_addi(pool, nest->tiles[axis].first, r);
        if (limit && r > 0) {
            uint32_t clamped = dlc_nest_axis(nest, extent);
            dlc_nest_bind(nest, clamped, dlc_nest_uniform(nest, dlc_min(pool, rows->points[r], limit)), 1);
            rows->points[r] = axis_expr(nest, clamped);
        }
    }
    nest->registers[axis] = rows;
    nest->firsts[n] = nest->tiles[axis].first;
    dlc_walk_body(nest, n, from, to);
    nest->registers[axis] = outer;
    nest->tiles[axis] = before;
    nest->firsts[n] = before.first;
    if (condition) {
        dlc_nest_leave(nest);
        nest->emit->if_end(nest->emit);
    }
}

enum { MOST_RESTS = 3 };

static int64_t *end_of(int64_t *list, int64_t *end, int64_t value)
{
    for (int64_t *at = list; at < end; at++)
        if (*at == value)
            return end;
    *end = value;
    return end + 1;
}

/* How many points loop n runs over, of all that this may be; 0: it is not known. Loops around it over its axis cut all of that plainly. */
static uint32_t lengths_of(const dlc_nest *nest, uint32_t n, int64_t lengths[MOST_RESTS])
{
    const dlc_schedule_node *node = node_of(nest, n);
    uint32_t outer = dlc_schedule_loop_over(nest->schedule, dlc_schedule_parent(nest->schedule, n), node->axis);
    dlc_expr extent = nest->kernel->axes.data[node->axis].extent;
    int64_t of_outer[MOST_RESTS], found[2 * MOST_RESTS], *end = found;
    if (outer == DLC_ROOT_NODE)
        return nest->schedule->ranges[n].size == extent && dlc_expr_is_int(nest->kernel->pool, extent, &lengths[0]);
    if (has_dot(nest, outer + 1, node_of(nest, outer)->end, outer, 0))
        return 0;
    int64_t tile = node_of(nest, outer)->tile;
    uint32_t nouter = lengths_of(nest, outer, of_outer);
    for (uint32_t i = 0; i < nouter; i++) {
        if (of_outer[i] >= tile)
            end = end_of(found, end, tile);
        if (of_outer[i] % tile)
            end = end_of(found, end, of_outer[i] % tile);
    }
    if (end - found > MOST_RESTS)
        return 0;
    memcpy(lengths, found, (size_t)(end - found) * sizeof *found);
    return (uint32_t)(end - found);
}

/* What tiles of m rows may leave over, most first; a 0 ends the list. False: that is not known. */
static int find_rests(const dlc_nest *nest, uint32_t n, int64_t m, int64_t rests[MOST_RESTS + 1])
{
    int64_t lengths[MOST_RESTS], *end = rests;
    uint32_t nlengths = lengths_of(nest, n, lengths);
    for (int64_t rest = m - 1; rest > 0; rest--)
        for (uint32_t i = 0; i < nlengths; i++)
            end = lengths[i] % m == rest ? end_of(rests, end, rest) : end;
    *end = 0;
    return nlengths > 0;
}

/* A number of rows that only the run knows: full tiles, and a few heights for the last one; its own, where blocks leave over so many. */
static void walk_symbolic_heights(dlc_nest *nest, uint32_t n, uint32_t from, uint32_t to, dlc_expr end)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr left = dlc_sub(pool, end, nest->tiles[node_of(nest, n)->axis].first), limit = dlc_addi(pool, end, -1);
    int64_t m = node_of(nest, n)->tile, heights[] = {m, (2 * m + 2) / 3, (m + 2) / 3, 1, 0}, rests[MOST_RESTS + 1];
    int is_known = find_rests(nest, n, m, rests);
    const int64_t *list = is_known ? rests : heights;
    walk_height(nest, n, from, to, (uint32_t)m, dlc_le(pool, i64(nest, m), left), 0);
    for (uint32_t i = 0; list[i]; i++) {
        int64_t most = list[i] < m ? list[i] : m - 1; /* full tiles are done: sums that go on would count twice */
        if (most <= list[i + 1])
            continue; /* the next height covers it */
        dlc_expr fits = dlc_and(pool, dlc_le(pool, left, i64(nest, most)), dlc_lt(pool, i64(nest, list[i + 1]), left));
        walk_height(nest, n, from, to, (uint32_t)list[i], fits, is_known ? 0 : limit);
    }
}

typedef struct {
    int64_t height, tall, ntiles; /* the first `tall` tiles have `height` rows, the others one less */
    dlc_expr is_tall;             /* 0: all are */
} balance;

/* What does not depend on the height is there once, with the height as a value. */
static void walk_heights(dlc_nest *nest, uint32_t n, const balance *b, dlc_expr end)
{
    uint32_t from = n + 1, to, last = node_of(nest, n)->end;
    nest->firsts[n] = nest->tiles[node_of(nest, n)->axis].first;
    nest->tallest[n] = b ? (uint32_t)b->height : 0;
    while (from < last && !depends_on_height(nest, from, n))
        from = node_of(nest, from)->end;
    to = from;
    for (uint32_t c = from; c < last; c = node_of(nest, c)->end)
        if (depends_on_height(nest, c, n))
            to = node_of(nest, c)->end;
    dlc_walk_body(nest, n, n + 1, from);
    if (!b) {
        walk_symbolic_heights(nest, n, from, to, end);
    } else if (!b->is_tall) {
        walk_height(nest, n, from, to, (uint32_t)b->height, 0, 0);
    } else {
        walk_height(nest, n, from, to, (uint32_t)b->height, b->is_tall, 0);
        if (b->height > 1)
            walk_height(nest, n, from, to, (uint32_t)b->height - 1,
                        dlc_expr1(nest->kernel->pool, DLC_EXPR_NOT, b->is_tall), 0);
    }
    dlc_walk_body(nest, n, to, last);
}

/* The first row of a tile, where tiles are `height` rows apart: a multiple of that if that of the first one is. */
static uint32_t first_row(dlc_nest *nest, uint32_t n, const dlc_span *s, int64_t height)
{
    int64_t multiple = dlc_expr_multiple(nest->kernel->pool, s->lo, &nest->ranges) % height ? 1 : height;
    return dlc_nest_stepped_axis(nest, nest->kernel->axes.data[node_of(nest, n)->axis].extent, multiple);
}

/* ntiles near-equal heights, the taller ones first; the open tile follows from the tile's number. */
static balance balanced(dlc_nest *nest, uint32_t n, const dlc_span *s, dlc_expr number)
{
    dlc_pool *pool = nest->kernel->pool;
    int64_t m = node_of(nest, n)->tile;
    balance b = {.ntiles = (s->length + m - 1) / m};
    b.height = (s->length + b.ntiles - 1) / b.ntiles;
    b.tall = s->length - b.ntiles * (b.height - 1);
    dlc_expr first = dlc_muli(pool, number, b.height), height = i64(nest, b.height);
    uint32_t m0 = first_row(nest, n, s, b.tall < b.ntiles ? 1 : b.height);
    if (b.tall < b.ntiles) {
        first = dlc_sub(pool, first, dlc_max(pool, i64(nest, 0), dlc_addi(pool, number, -b.tall)));
        b.is_tall = dlc_lt(pool, number, i64(nest, b.tall));
        height = dlc_select(pool, b.is_tall, height, i64(nest, b.height - 1));
    }
    dlc_nest_bind(nest, m0, dlc_nest_uniform(nest, simplified(nest, dlc_add(pool, s->lo, first))), 1);
    nest->tiles[node_of(nest, n)->axis] = (dlc_tile){axis_expr(nest, m0), dlc_add(pool, axis_expr(nest, m0), height)};
    return b;
}

static void walk_rows(dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_pool *pool = nest->kernel->pool;
    dlc_span s = dlc_walk_span(nest, n);
    dlc_tile before = nest->tiles[node->axis];
    uint32_t number = nest->par[n];
    if (s.length == 0)
        return;
    if (s.length > 0) {
        if (!is_par(nest, n)) {
            dlc_expr count = i64(nest, (s.length + node->tile - 1) / node->tile);
            number = dlc_nest_axis(nest, count);
            dlc_nest_loop(nest, number, dlc_nest_i64(nest, 0), dlc_nest_uniform(nest, count), 1);
        }
        balance b = balanced(nest, n, &s, axis_expr(nest, number));
        nest->numbers[n] = axis_expr(nest, number);
        walk_heights(nest, n, &b, 0);
    } else {
        uint32_t m0 = first_row(nest, n, &s, node->tile);
        if (is_par(nest, n))
            dlc_nest_bind(nest, m0, dlc_nest_uniform(nest, dlc_muli(pool, axis_expr(nest, number), node->tile)), 1);
        else
            dlc_nest_loop(nest, m0, dlc_nest_uniform(nest, s.lo), dlc_nest_uniform(nest, s.hi), node->tile);
        dlc_expr height = dlc_min(pool, dlc_sub(pool, s.hi, axis_expr(nest, m0)), i64(nest, node->tile));
        nest->tiles[node->axis] = (dlc_tile){axis_expr(nest, m0), dlc_add(pool, axis_expr(nest, m0), height)};
        nest->numbers[n] = dlc_floordiv(pool, dlc_sub(pool, axis_expr(nest, m0), s.lo), i64(nest, node->tile));
        walk_heights(nest, n, NULL, s.hi);
    }
    nest->tiles[node->axis] = before;
    if (!is_par(nest, n))
        dlc_nest_loop_end(nest);
}

/* --- columns of register tiles --- */

/* left: columns where they are fewer than the tile's, or 0. */
static uint32_t lanes_of(const dlc_nest *nest, uint32_t loop, int64_t left)
{
    for (uint32_t n = loop + 1; n < node_of(nest, loop)->end; n++)
        if (has_dot(nest, n, n + 1, loop, 1))
            return left > 0 ? dlc_schedule_rest_lanes(nest->schedule, n, left) : dlc_schedule_dot_lanes(nest->schedule, n);
    return 1;
}

/* One panel, whose number is bound; `left`: of the last one, fewer columns than the tile, or 0. */
static void walk_panel(dlc_nest *nest, uint32_t n, uint32_t panel, dlc_expr end, int is_ragged, int64_t left)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = node_of(nest, n);
    uint32_t lanes = lanes_of(nest, n, left);
    dlc_register_axis *outer = nest->registers[node->axis], *columns = dlc_new(nest->arena, dlc_register_axis);
    dlc_expr first = dlc_muli(pool, axis_expr(nest, panel), node->tile);
    columns->first = first;
    columns->lanes = lanes;
    columns->count = left > 0 ? left : is_ragged ? 0 : node->tile;
    columns->n = (uint32_t)(((left > 0 ? left : node->tile) + lanes - 1) / lanes);
    for (uint32_t v = left > 0 ? (uint32_t)(left / lanes) : 0; v < columns->n && is_ragged; v++) { /* those before are whole */
        int64_t before = (int64_t)v * lanes;
        dlc_expr rest = left > 0 ? i64(nest, left - before) : simplified(nest, dlc_sub(pool, end, dlc_addi(pool, first, before)));
        columns->masks[v] = dlc_lanes_below(nest, dlc_nest_uniform(nest, rest), lanes);
    }
    nest->registers[node->axis] = columns;
    nest->firsts[n] = first;
    nest->tiles[node->axis] = (dlc_tile){first, is_ragged ? end : dlc_addi(pool, first, node->tile)};
    dlc_walk_children(nest, n);
    nest->registers[node->axis] = outer;
}

static void panel_if(dlc_nest *nest, uint32_t n, uint32_t panel, dlc_expr condition, dlc_expr end, int is_ragged, int64_t left)
{
    dlc_val number = dlc_nest_uniform(nest, axis_expr(nest, panel));
    nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, simplified(nest, condition)));
    dlc_nest_enter(nest);
    uint32_t inner = dlc_nest_axis(nest, dlc_loop_count(nest->kernel, node_of(nest, n)->axis, 1));
    dlc_nest_bind(nest, inner, number, 1);
    walk_panel(nest, n, inner, end, is_ragged, left);
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
}

static void walk_par_columns(dlc_nest *nest, uint32_t n, const dlc_span *s)
{
    dlc_pool *pool = nest->kernel->pool;
    int64_t tile = node_of(nest, n)->tile;
    dlc_expr first = dlc_muli(pool, axis_expr(nest, nest->par[n]), tile);
    if (s->length >= 0 && s->length % tile == 0) {
        walk_panel(nest, n, nest->par[n], s->hi, 0, 0);
    } else if (s->length >= 0 && s->length < tile) {
        walk_panel(nest, n, nest->par[n], s->hi, 1, s->length);
    } else {
        dlc_expr is_whole = dlc_le(pool, dlc_addi(pool, first, tile), s->hi);
        panel_if(nest, n, nest->par[n], is_whole, s->hi, 0, 0);
        panel_if(nest, n, nest->par[n], dlc_expr1(pool, DLC_EXPR_NOT, is_whole), s->hi, 1, s->length > 0 ? s->length % tile : 0);
    }
}

static void walk_for_columns(dlc_nest *nest, uint32_t n, const dlc_span *s)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_expr tile = i64(nest, node->tile), extent = nest->kernel->axes.data[node->axis].extent;
    dlc_expr first = simplified(nest, dlc_floordiv(pool, s->lo, tile));
    dlc_expr whole = simplified(nest, dlc_floordiv(pool, s->hi, tile));
    uint32_t panel = dlc_nest_axis(nest, dlc_addi(pool, dlc_floordiv(pool, extent, tile), 1));
    if (s->length < 0 || s->length >= node->tile) {
        dlc_nest_loop(nest, panel, dlc_nest_uniform(nest, first), dlc_nest_uniform(nest, whole), 1);
        walk_panel(nest, n, panel, s->hi, 0, 0);
        dlc_nest_loop_end(nest);
    }
    int64_t end = 0;
    if (dlc_expr_multiple(pool, s->hi, &nest->ranges) % node->tile == 0)
        return;
    dlc_expr_is_int(pool, s->hi, &end); /* 0: any number may be left */
    uint32_t last = dlc_nest_axis(nest, dlc_addi(pool, dlc_floordiv(pool, extent, tile), 1));
    dlc_nest_bind(nest, last, dlc_nest_uniform(nest, whole), 1);
    panel_if(nest, n, last, dlc_lt(pool, dlc_mul(pool, whole, tile), s->hi), s->hi, 1, end % node->tile);
}

static void walk_columns(dlc_nest *nest, uint32_t n)
{
    uint32_t axis = node_of(nest, n)->axis;
    dlc_tile before = nest->tiles[axis];
    dlc_span s = dlc_walk_span(nest, n);
    if (is_par(nest, n))
        walk_par_columns(nest, n, &s);
    else
        walk_for_columns(nest, n, &s);
    nest->tiles[axis] = before;
}

/* --- by lanes --- */

static void lane_body(dlc_nest *nest, void *ctx)
{
    uint32_t n = *(const uint32_t *)ctx;
    nest->firsts[n] = axis_expr(nest, nest->lane_base);
    dlc_walk_children(nest, n);
}

/* Vectors side by side from the point on that `base` is; mask: of the last one. */
static void walk_vectors(dlc_nest *nest, uint32_t n, uint32_t base, uint32_t nvectors, dlc_val mask)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = node_of(nest, n);
    nest->lane = node->axis;
    nest->lane_base = base;
    nest->width = (uint32_t)node->tile;
    dlc_tile before = nest->tiles[node->axis];
    nest->tiles[node->axis] = (dlc_tile){axis_expr(nest, base), axis_expr(nest, base)};
    dlc_leaf_read_together(nest, n, nvectors, mask);
    nest->firsts[n] = axis_expr(nest, base);
    int is_jammed = !mask && dlc_jam_vectors(nest, n, nvectors);
    for (uint32_t p = 0; p < nvectors && !is_jammed; p++) {
        nest->partial = p;
        nest->mask = p + 1 == nvectors ? mask : NULL;
        nest->firsts[n] = dlc_addi(pool, axis_expr(nest, base), p * node->tile); /* scratch of an iteration holds one vector */
        if (p)
            dlc_nest_replace(nest, node->axis, dlc_addi(pool, axis_expr(nest, node->axis), p * node->tile));
        dlc_walk_children(nest, n);
    }
    dlc_nest_replace(nest, node->axis, 0);
    nest->partial = 0;
    nest->mask = NULL;
    nest->tiles[node->axis] = before;
    nest->lane = DLC_NO_AXIS;
    nest->width = 1;
}

/* Several vectors a step, each with accumulators of its own: the latency of one is hidden behind the others. Returns where
 * what is left begins. */
static dlc_expr walk_partials(dlc_nest *nest, uint32_t n, const dlc_span *s)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = node_of(nest, n);
    int64_t step = node->tile * node->count;
    dlc_expr length = simplified(nest, dlc_sub(pool, s->hi, s->lo));
    dlc_expr whole = dlc_muli(pool, dlc_floordiv(pool, length, i64(nest, step)), step);
    dlc_expr end = simplified(nest, dlc_add(pool, s->lo, whole));
    dlc_val hi = dlc_nest_uniform(nest, end);
    int64_t multiple = dlc_expr_multiple(pool, s->lo, &nest->ranges) % node->tile ? 1 : node->tile;
    uint32_t base = dlc_nest_stepped_axis(nest, nest->kernel->axes.data[node->axis].extent, multiple);
    int64_t turns = dlc_leaf_part(nest, n);
    dlc_span all = {s->lo, end, s->length < 0 ? -1 : s->length / step * step}, part = all;
    if (turns)
        part = dlc_walk_begin_part(nest, n, &all, turns * step);
    dlc_nest_loop(nest, base, dlc_nest_uniform(nest, part.lo), dlc_nest_uniform(nest, part.hi), step);
    walk_vectors(nest, n, base, node->count, NULL);
    dlc_nest_loop_end(nest);
    if (turns)
        end_part(nest, n, &part, s->hi);
    return s->length >= 0 ? end : dlc_nest_pseudo(nest, DLC_I64, hi, 1);
}

static int holds_maps_alone(const dlc_nest *nest, uint32_t n)
{
    for (uint32_t i = n + 1; i < node_of(nest, n)->end; i++)
        if (node_of(nest, i)->kind != DLC_LOOP_LEAF || nest->kernel->stages.data[node_of(nest, i)->stage].combine != DLC_REDUCE_NONE)
            return 0;
    return 1;
}

/* What several vectors a step leave over is more than one: side by side too, lanes of the last one masked. False: it is not. */
static int walk_rest_together(dlc_nest *nest, uint32_t n, const dlc_span *s)
{
    const dlc_schedule_node *node = node_of(nest, n);
    int64_t length;
    if (node->count < 2 || !dlc_expr_is_int(nest->kernel->pool, simplified(nest, dlc_sub(nest->kernel->pool, s->hi, s->lo)), &length) ||
        length <= node->tile || !holds_maps_alone(nest, n))
        return 0;
    uint32_t nvectors = (uint32_t)((length + node->tile - 1) / node->tile), width = (uint32_t)node->tile;
    dlc_emitter *emit = nest->emit;
    emit->if_begin(emit, emit->konst(emit, DLC_BOOL, (dlc_scalar){.i = 1}, 1)); /* what is computed in here is not known behind it */
    dlc_nest_enter(nest);
    uint32_t base = dlc_nest_stepped_axis(nest, nest->kernel->axes.data[node->axis].extent, 1);
    dlc_nest_bind(nest, base, dlc_nest_uniform(nest, s->lo), 1);
    dlc_val last = dlc_nest_i64(nest, length - (nvectors - 1) * node->tile);
    walk_vectors(nest, n, base, nvectors, length % node->tile ? dlc_lanes_below(nest, last, width) : NULL);
    dlc_nest_leave(nest);
    emit->if_end(emit);
    return 1;
}

/* A map, which is all that the lanes have, goes by single points where a vector would be nearly empty. */
static uint32_t width_of_piece(const dlc_nest *nest, uint32_t n, int64_t length)
{
    int is_map = node_of(nest, n)->end == n + 2 && holds_maps_alone(nest, n) && nest->schedule->target->kind == DLC_TARGET_CPU;
    return is_map && length * DLC_BORDER <= node_of(nest, n)->tile ? 1 : (uint32_t)node_of(nest, n)->tile;
}

/* The points at which the loop over the span is cut. */
static uint32_t find_turns(const dlc_nest *nest, uint32_t n, const dlc_span *s, int64_t *turns)
{
    int64_t lo, hi;
    if (!dlc_expr_is_int(nest->kernel->pool, s->lo, &lo) || !dlc_expr_is_int(nest->kernel->pool, s->hi, &hi))
        return 0;
    return dlc_schedule_turns(nest->schedule, nest->kernel, n, lo, hi, nest->arena, turns);
}

static void walk_lanes(dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_span s = dlc_walk_span(nest, n);
    int64_t turns[DLC_MOST_TURNS];
    uint32_t nturns = find_turns(nest, n, &s, turns);
    if (node->count > 1 && (s.length < 0 || s.length >= node->tile * node->count))
        s.lo = walk_partials(nest, n, &s);
    if (walk_rest_together(nest, n, &s))
        return;
    int64_t part_turns = node->count > 1 ? 0 : dlc_leaf_part(nest, n);
    if (part_turns) {
        dlc_span part = dlc_walk_begin_part(nest, n, &s, part_turns * node->tile);
        dlc_lanes_loop(nest, node->axis, part.lo, part.hi, (uint32_t)node->tile, lane_body, &n);
        end_part(nest, n, &part, s.hi);
        return;
    }
    if (!nturns || nest->with[node->axis]) {
        dlc_lanes_loop(nest, node->axis, s.lo, s.hi, (uint32_t)node->tile, lane_body, &n);
        return;
    }
    dlc_nest_replace(nest, node->axis, axis_expr(nest, node->axis)); /* so that what is computed is simplified here */
    for (uint32_t i = 0; i <= nturns; i++) {
        dlc_interval before = nest->axis_ranges.data[node->axis];
        dlc_expr from = i ? i64(nest, turns[i - 1]) : s.lo, to = i < nturns ? i64(nest, turns[i]) : s.hi;
        dlc_interval *here = &nest->axis_ranges.data[node->axis];
        *here = (dlc_interval){dlc_expr_value(nest->kernel->pool, from), dlc_expr_value(nest->kernel->pool, to) - 1};
        dlc_lanes_loop(nest, node->axis, from, to, width_of_piece(nest, n, here->hi - here->lo + 1), lane_body, &n);
        nest->axis_ranges.data[node->axis] = before;
    }
    dlc_nest_replace(nest, node->axis, 0);
}

/* --- nodes --- */

static void walk_loop(dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_leaf_begin_folds(nest, n);
    if (node->kind == DLC_LOOP_LANE && nest->deal == DLC_LOOP_THREAD)
        dlc_deal_lanes(nest, n);
    else if (node->kind == DLC_LOOP_LANE)
        walk_lanes(nest, n);
    else if (node->kind == DLC_LOOP_WARP || node->kind == DLC_LOOP_THREAD)
        dlc_deal_walk(nest, n);
    else if (node->kind == DLC_LOOP_UNROLL)
        dlc_walk_written(nest, n);
    else if (node->kind == DLC_LOOP_FOR && dlc_deal_is_ahead(nest, n))
        dlc_deal_walk_ahead(nest, n);
    else if (has_dot(nest, n + 1, node->end, n, 0))
        walk_rows(nest, n);
    else if (has_dot(nest, n + 1, node->end, n, 1))
        walk_columns(nest, n);
    else
        walk_plain(nest, n);
    dlc_leaf_end_folds(nest, n);
}

/* What units begin with alike: loops that fill scratch, unless the thread's last unit has left it filled for this one. */
static void walk_kept(dlc_nest *nest)
{
    const dlc_kept *kept = &nest->schedule->kept;
    dlc_kept_begin(nest);
    for (uint32_t n = kept->first; n < kept->end; n = node_of(nest, n)->end) {
        nest->node = n;
        walk_loop(nest, n);
        dlc_walk_forget(nest, n);
    }
    dlc_kept_end(nest);
}

static void walk(dlc_nest *nest, uint32_t n)
{
    uint32_t before = nest->node;
    if (dlc_kept_has(nest, n)) {
        if (n == nest->schedule->kept.first)
            walk_kept(nest);
        nest->node = before;
        return;
    }
    nest->node = n;
    if (node_of(nest, n)->kind == DLC_LOOP_LEAF) {
        dlc_leaf_emit(nest, n);
    } else if (node_of(nest, n)->kind == DLC_LOOP_AS) {
        dlc_dot_elements(nest, n);
        dlc_walk_forget(nest, n);
    } else if (!dlc_late_keep(nest, n)) {
        walk_loop(nest, n);
    }
    nest->node = before;
}

void dlc_walk_node(dlc_nest *nest, uint32_t n)
{
    walk(nest, n);
}

/* --- units --- */

/* The unit's number taken apart, innermost parallel loop first. */
static void decode_unit(dlc_nest *nest, uint32_t unit)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr rest = axis_expr(nest, unit);
    uint32_t npar = 0;
    while (npar < nest->schedule->nodes.n && is_par(nest, npar))
        npar++;
    for (uint32_t n = npar; n-- > 0;) {
        dlc_expr count = dlc_loop_count(nest->kernel, node_of(nest, n)->axis, node_of(nest, n)->tile);
        dlc_expr number = n ? dlc_mod(pool, rest, count) : rest;
        rest = dlc_floordiv(pool, rest, count);
        nest->par[n] = dlc_nest_axis(nest, count);
        dlc_nest_bind(nest, nest->par[n], dlc_nest_uniform(nest, simplified(nest, number)), 1);
    }
}

static void bind_workers(dlc_nest *nest)
{
    enum { WARP = 32 };
    for (uint32_t w = 0; w < 2; w++) {
        nest->worker[w] = dlc_nest_axis(nest, i64(nest, w ? nest->schedule->threads / WARP : nest->schedule->threads));
        dlc_nest_bind(nest, nest->worker[w], nest->emit->worker(nest->emit, w ? DLC_LOOP_WARP : DLC_LOOP_THREAD), 1);
    }
}

void dlc_nest_kernel(dlc_nest *nest, dlc_val begin, dlc_val end)
{
    uint32_t unit = dlc_nest_axis(nest, dlc_schedule_units(nest->kernel, nest->schedule));
    if (nest->schedule->threads)
        bind_workers(nest);
    dlc_late_begin(nest);
    dlc_nest_loop(nest, unit, begin, end, 1);
    nest->unit = unit;
    decode_unit(nest, unit);
    for (uint32_t s = 0; s < nest->kernel->stages.n; s++)
        find_meetings(nest, s);
    walk_range(nest, 0, nest->schedule->nodes.n, DLC_ROOT_NODE);
    dlc_nest_loop_end(nest);
    dlc_late_end(nest);
}

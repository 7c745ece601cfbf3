/*
 * Loops that are dealt. The iterations of thread loops that follow each other are numbered, the innermost fastest, and thread t
 * of N has number t, t + N, …: written out where these are few, so that addresses are computed once and loads stand together;
 * warps go through theirs in a loop. Iterations are counted over whole tiles; what lies behind the end of an axis is guarded.
 *
 * A copy is loaded whole before any of it is stored, and filled with 0 where its axes end: tiles of products run over it without
 * a test. One that is loaded ahead goes around the loop it stands in:
 *
 *     load(first)
 *     for …: store; sync; load(next) if there is one; the other children; sync
 */
#include "codegen/nest.h"

#include <assert.h>

enum { MOST_LOOPS = 16 };

typedef struct {
    dlc_nest *nest;
    dlc_pool *pool;
    uint32_t outer, inner;   /* nodes: its loops are outer … inner */
    dlc_expr count[MOST_LOOPS], whole[MOST_LOOPS], lo[MOST_LOOPS], hi[MOST_LOOPS];
    uint8_t is_whole[MOST_LOOPS]; /* no iteration lies behind the end, nor is cut by it */
    dlc_tile before[MOST_LOOPS];
    dlc_expr with[MOST_LOOPS];
    dlc_register_axis *registers[MOST_LOOPS];
    int64_t total;           /* iterations, or -1: not known */
    dlc_expr all;
    uint32_t tile;           /* the leaf of the register tile that is dealt, or DLC_NO_STAGE */
} deal;

static const dlc_schedule_node *node_of(const dlc_nest *nest, uint32_t n)
{
    return &nest->schedule->nodes.data[n];
}

static dlc_expr simplified(dlc_nest *nest, dlc_expr expr)
{
    return dlc_expr_simplify(nest->kernel->pool, expr, &nest->ranges);
}

static void replace(dlc_nest *nest, uint32_t axis, dlc_expr with)
{
    nest->nwith += (with != 0);
    nest->nwith -= (nest->with[axis] != 0);
    nest->with[axis] = with;
}

/* --- the deal --- */

static uint32_t tile_in(const dlc_nest *nest, uint32_t loop)
{
    for (uint32_t n = loop + 1; n < node_of(nest, loop)->end; n++) {
        if (node_of(nest, n)->kind == DLC_LOOP_AS)
            return nest->schedule->homes[node_of(nest, n)->stage].leaf;
        if (node_of(nest, n)->kind == DLC_LOOP_LEAF && node_of(nest, n)->row != DLC_DOT_NONE)
            return n;
    }
    return DLC_NO_STAGE;
}

static int64_t times(int64_t a, int64_t b)
{
    return a < 0 || b < 0 || (a && b > INT32_MAX / a) ? -1 : a * b;
}

/* A warp's register tile: its lanes have their own of it. */
static int is_matrix(const deal *d)
{
    return d->tile != DLC_NO_STAGE && dlc_schedule_is_matrix(d->nest->schedule, d->tile);
}

/* Iterations of warp loops are those that are there, of thread loops those of whole tiles: then a digit is a constant's. */
static void find_loop(deal *d, uint32_t i)
{
    dlc_nest *nest = d->nest;
    uint32_t n = d->outer + i;
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_span span = dlc_walk_span(nest, n);
    int64_t trips = node->kind == DLC_LOOP_THREAD || is_matrix(d) ? dlc_schedule_trips(nest->schedule, n) : -1;
    dlc_expr tile = dlc_expr_i64(d->pool, node->tile);
    d->lo[i] = span.lo;
    d->hi[i] = span.hi;
    dlc_expr further = dlc_addi(d->pool, dlc_sub(d->pool, span.hi, span.lo), node->tile - 1);
    d->count[i] = trips >= 0 ? dlc_expr_i64(d->pool, trips) : simplified(nest, dlc_floordiv(d->pool, further, tile));
    d->is_whole[i] = (uint8_t)(trips >= 0         ? span.length == trips * node->tile
                               : span.length >= 0 ? span.length % node->tile == 0
                                                  : node->tile == 1);
    if (trips < 0)
        dlc_expr_is_int(d->pool, d->count[i], &trips);
    d->total = times(d->total, trips);
    d->all = dlc_mul(d->pool, d->all, d->count[i]);
    d->before[i] = nest->tiles[node->axis];
    d->with[i] = nest->with[node->axis];
    d->registers[i] = nest->registers[node->axis];
}

static void deal_begin(deal *d, dlc_nest *nest, uint32_t outer)
{
    *d = (deal){.nest = nest, .pool = nest->kernel->pool, .outer = outer, .total = 1};
    d->inner = dlc_schedule_deal_end(nest->schedule, outer);
    assert(d->inner - d->outer < MOST_LOOPS);
    d->all = dlc_expr_i64(d->pool, 1);
    d->tile = tile_in(nest, d->inner);
    for (uint32_t i = 0; i <= d->inner - d->outer; i++)
        find_loop(d, i);
    d->all = simplified(nest, d->all);
}

static void deal_end(const deal *d)
{
    for (uint32_t i = 0; i <= d->inner - d->outer; i++) {
        uint32_t axis = node_of(d->nest, d->outer + i)->axis;
        d->nest->tiles[axis] = d->before[i];
        d->nest->registers[axis] = d->registers[i];
        replace(d->nest, axis, d->with[i]);
    }
}

/* A register tile stays whole: what it reads behind the end is there, and what it stores is guarded by element. */
static int is_of_tile(const deal *d, uint32_t i)
{
    uint32_t axis = node_of(d->nest, d->outer + i)->axis;
    return d->tile != DLC_NO_STAGE && (axis == node_of(d->nest, d->tile)->rows || axis == node_of(d->nest, d->tile)->columns);
}

/* The rows or columns of the tile that loop i leaves to a register tile. */
static void open_registers(const deal *d, uint32_t i, dlc_expr first)
{
    dlc_nest *nest = d->nest;
    const dlc_schedule_node *node = node_of(nest, d->outer + i), *leaf = node_of(nest, d->tile);
    dlc_register_axis *open = dlc_new(nest->arena, dlc_register_axis);
    int is_columns = node->axis == leaf->columns;
    open->first = first;
    open->end = d->is_whole[i] ? 0 : d->hi[i];
    if (is_matrix(d)) {
        open->n = (uint32_t)node->tile / DLC_FRAGMENT;
        dlc_matrix_open(nest, first, is_columns, open);
        nest->registers[node->axis] = open;
        return;
    }
    open->n = (uint32_t)node->tile / (is_columns ? dlc_schedule_dot_lanes(nest->schedule, d->tile) : 1);
    for (uint32_t r = 0; !is_columns && r < open->n; r++)
        open->points[r] = dlc_addi(d->pool, first, r);
    nest->registers[node->axis] = open;
}

/* The loops at iteration `number`; `is_cut`: tiles end with their axes. */
static void open_iteration(const deal *d, dlc_expr number, int is_cut)
{
    dlc_nest *nest = d->nest;
    dlc_expr rest = number;
    for (uint32_t i = d->inner - d->outer + 1; i-- > 0;) {
        const dlc_schedule_node *node = node_of(nest, d->outer + i);
        dlc_expr digit = i ? dlc_mod(d->pool, rest, d->count[i]) : rest;
        rest = simplified(nest, dlc_floordiv(d->pool, rest, d->count[i]));
        dlc_expr first = simplified(nest, dlc_add(d->pool, d->lo[i], dlc_muli(d->pool, digit, node->tile)));
        dlc_expr last = dlc_addi(d->pool, first, node->tile);
        nest->firsts[d->outer + i] = first;
        nest->tiles[node->axis] = (dlc_tile){0};
        if (node->tile > 1)
            nest->tiles[node->axis] = (dlc_tile){first, d->is_whole[i] || !is_cut ? last : dlc_min(d->pool, last, d->hi[i])};
        replace(nest, node->axis, node->tile > 1 ? 0 : first);
        if (is_of_tile(d, i))
            open_registers(d, i, first);
    }
}

static dlc_expr worker(const deal *d)
{
    return dlc_expr_axis(d->pool, d->nest->worker[node_of(d->nest, d->outer)->kind == DLC_LOOP_WARP]);
}

static uint32_t nworkers(const deal *d)
{
    enum { WARP = 32 };
    return d->nest->schedule->threads / (node_of(d->nest, d->outer)->kind == DLC_LOOP_WARP ? WARP : 1);
}

static uint32_t pieces_of(const deal *d)
{
    uint32_t n = nworkers(d);
    return d->total < 0 || d->total > (int64_t)DLC_MOST_PIECES * n ? 0 : (uint32_t)((d->total + n - 1) / n);
}

/* --- guards --- */

/* What must hold for iteration `number` to be there; 0: it always is. */
static dlc_expr condition_of(const deal *d, dlc_expr number, int with_ends)
{
    dlc_expr condition = 0;
    dlc_interval range = dlc_expr_range(d->pool, number, &d->nest->ranges);
    if (d->total < 0 || range.hi >= d->total)
        condition = dlc_lt(d->pool, number, d->all);
    open_iteration(d, number, 0);
    for (uint32_t i = 0; with_ends && i <= d->inner - d->outer; i++)
        if (!d->is_whole[i] && !is_of_tile(d, i))
            condition = dlc_and(d->pool, condition, dlc_lt(d->pool, d->nest->firsts[d->outer + i], d->hi[i]));
    return condition ? simplified(d->nest, condition) : 0;
}

/* Opens the iteration, under a guard where it may not be there; what it reads is not read outside of the guard. A vector of a
 * thread's own lanes is the same expression wherever it begins: it has a level of its own. */
static int guard_begin(const deal *d, dlc_expr number, int with_ends)
{
    dlc_nest *nest = d->nest;
    dlc_expr condition = condition_of(d, number, with_ends);
    if (!condition && d->inner + 1 < nest->schedule->nodes.n && node_of(nest, d->inner + 1)->kind == DLC_LOOP_LANE)
        condition = dlc_expr_bool(d->pool, 1);
    if (condition) {
        dlc_val value = dlc_nest_uniform(nest, number);
        nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, condition));
        dlc_nest_enter(nest);
        uint32_t own = dlc_nest_axis(nest, d->all);
        dlc_nest_bind(nest, own, value, 1);
        number = dlc_expr_axis(d->pool, own);
    }
    open_iteration(d, number, 1);
    return condition != 0;
}

static void guard_end(const deal *d, int is_guarded)
{
    if (!is_guarded)
        return;
    dlc_nest_leave(d->nest);
    d->nest->emit->if_end(d->nest->emit);
}

/* --- lanes of a thread --- */

typedef struct {
    dlc_tile tile;
    uint32_t lane, base, width;
} lanes;

static lanes lanes_begin(dlc_nest *nest, const dlc_schedule_node *node)
{
    lanes before = {nest->tiles[node->axis], nest->lane, nest->lane_base, nest->width};
    uint32_t base = dlc_nest_stepped_axis(nest, nest->kernel->axes.data[node->axis].extent, node->tile);
    dlc_nest_bind(nest, base, dlc_nest_uniform(nest, simplified(nest, before.tile.first)), 1);
    nest->tiles[node->axis] = (dlc_tile){dlc_expr_axis(nest->kernel->pool, base), dlc_expr_axis(nest->kernel->pool, base)};
    nest->lane = node->axis;
    nest->lane_base = base;
    nest->width = (uint32_t)node->tile;
    return before;
}

static void lanes_end(dlc_nest *nest, const dlc_schedule_node *node, const lanes *before)
{
    nest->tiles[node->axis] = before->tile;
    nest->lane = before->lane;
    nest->lane_base = before->base;
    nest->width = before->width;
}

void dlc_deal_lanes(dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = node_of(nest, n);
    lanes before = lanes_begin(nest, node);
    nest->firsts[n] = dlc_expr_axis(nest->kernel->pool, nest->lane_base);
    dlc_walk_children(nest, n);
    lanes_end(nest, node, &before);
}

/* --- copies --- */

typedef void (*copy_body)(dlc_nest *nest, uint32_t stage, dlc_var *piece);

static void clear(dlc_nest *nest, uint32_t s, dlc_var *piece)
{
    dlc_dtype dtype = nest->kernel->stages.data[s].dtype[0];
    nest->emit->var_set(nest->emit, *piece, nest->emit->konst(nest->emit, dtype, (dlc_scalar){0}, nest->width));
}

static void load(dlc_nest *nest, uint32_t s, dlc_var *piece)
{
    nest->emit->var_set(nest->emit, *piece, dlc_nest_value_at(nest, dlc_nest_here(nest, nest->kernel->stages.data[s].value[0])));
}

static void store(dlc_nest *nest, uint32_t s, dlc_var *piece)
{
    const dlc_stage *stage = &nest->kernel->stages.data[s];
    dlc_expr index[DLC_MAX_INDEX];
    for (uint32_t i = 0; i < stage->axes.n; i++)
        index[i] = dlc_nest_here(nest, dlc_expr_axis(nest->kernel->pool, stage->axes.data[i]));
    dlc_nest_store_scratch(nest, s, index, nest->emit->var_get(nest->emit, *piece), nest->width, 0);
}

/* Each copy of the deal, by its lanes if it has some. */
static void over_copies(const deal *d, uint32_t p, copy_body body)
{
    dlc_nest *nest = d->nest;
    for (uint32_t n = d->inner + 1; n < node_of(nest, d->inner)->end; n++) {
        const dlc_schedule_node *leaf = node_of(nest, n), *around = node_of(nest, dlc_schedule_parent(nest->schedule, n));
        if (leaf->kind != DLC_LOOP_LEAF)
            continue;
        lanes before = {0};
        if (around->kind == DLC_LOOP_LANE)
            before = lanes_begin(nest, around);
        dlc_var *piece = &nest->states[leaf->stage].pieces[p];
        if (!*piece)
            *piece = nest->emit->var_new(nest->emit, nest->kernel->stages.data[leaf->stage].dtype[0], nest->width);
        body(nest, leaf->stage, piece);
        if (around->kind == DLC_LOOP_LANE)
            lanes_end(nest, around, &before);
    }
}

static dlc_expr number_of(const deal *d, uint32_t p)
{
    return dlc_addi(d->pool, worker(d), (int64_t)p * nworkers(d));
}

static void load_copies(deal *d)
{
    d->nest->emit->deal(d->nest->emit, DLC_LOOP_THREAD);
    for (uint32_t p = 0; p < pieces_of(d); p++) {
        if (condition_of(d, number_of(d, p), 1))
            over_copies(d, p, clear);
        int is_guarded = guard_begin(d, number_of(d, p), 1);
        over_copies(d, p, load);
        guard_end(d, is_guarded);
    }
}

static void store_copies(deal *d)
{
    d->nest->emit->deal(d->nest->emit, DLC_LOOP_THREAD);
    for (uint32_t p = 0; p < pieces_of(d); p++) {
        int is_guarded = guard_begin(d, number_of(d, p), 0);
        over_copies(d, p, store);
        guard_end(d, is_guarded);
    }
}

/* --- all others --- */

static void walk_iteration(dlc_nest *nest, uint32_t inner)
{
    dlc_walk_children(nest, inner);
}

static void forget_values(const deal *d)
{
    for (uint32_t n = d->inner; n < node_of(d->nest, d->inner)->end; n++)
        if (node_of(d->nest, n)->kind == DLC_LOOP_LEAF) {
            dlc_stage_state *state = &d->nest->states[node_of(d->nest, n)->stage];
            state->value[0].set = state->value[1].set = 0;
        }
}

static void walk_pieces(deal *d, dlc_deal_body body, uint32_t node)
{
    dlc_nest *nest = d->nest;
    for (uint32_t p = 0; p < pieces_of(d); p++) {
        nest->emit->if_begin(nest->emit, nest->emit->konst(nest->emit, DLC_BOOL, (dlc_scalar){.i = 1}, 1));
        dlc_nest_enter(nest); /* what one piece computes is not what the same expression gave in another */
        int is_guarded = guard_begin(d, number_of(d, p), 1);
        body(nest, node);
        guard_end(d, is_guarded);
        forget_values(d);
        dlc_nest_leave(nest);
        nest->emit->if_end(nest->emit);
    }
}

static void walk_all(deal *d, dlc_deal_body body, uint32_t node)
{
    dlc_nest *nest = d->nest;
    uint32_t number = dlc_nest_axis(nest, d->all);
    dlc_nest_loop(nest, number, dlc_nest_uniform(nest, worker(d)), dlc_nest_uniform(nest, d->all), nworkers(d));
    int is_guarded = guard_begin(d, dlc_expr_axis(d->pool, number), node_of(nest, d->outer)->kind == DLC_LOOP_THREAD);
    body(nest, node);
    guard_end(d, is_guarded);
    dlc_nest_loop_end(nest);
    forget_values(d);
}

void dlc_deal_open(dlc_nest *nest, uint32_t outer, dlc_deal_body body, uint32_t node)
{
    deal d;
    deal_begin(&d, nest, outer);
    dlc_loop_kind kind = is_matrix(&d) ? DLC_LOOP_THREAD : (dlc_loop_kind)node_of(nest, outer)->kind;
    nest->deal = (uint8_t)kind;
    nest->emit->deal(nest->emit, kind);
    if (kind == DLC_LOOP_THREAD && pieces_of(&d))
        walk_pieces(&d, body, node);
    else
        walk_all(&d, body, node);
    nest->deal = DLC_LOOP_LEAF;
    deal_end(&d);
}

void dlc_deal_walk(dlc_nest *nest, uint32_t outer)
{
    deal d;
    deal_begin(&d, nest, outer);
    if (dlc_schedule_is_copying(nest->schedule, outer)) {
        load_copies(&d);
        store_copies(&d);
        deal_end(&d);
    } else {
        dlc_deal_open(nest, outer, walk_iteration, d.inner);
    }
}

/* --- loaded ahead --- */

static int has_ahead(const dlc_nest *nest, uint32_t n)
{
    for (uint32_t i = n; i < node_of(nest, n)->end; i++)
        if (node_of(nest, i)->kind == DLC_LOOP_LEAF)
            return node_of(nest, i)->ahead;
    return 0;
}

int dlc_deal_is_ahead(const dlc_nest *nest, uint32_t loop)
{
    return node_of(nest, loop + 1)->kind == DLC_LOOP_THREAD && has_ahead(nest, loop + 1);
}

/* The loop's tile from `first` on. */
static void open_step(dlc_nest *nest, uint32_t n, dlc_expr first, const dlc_span *span)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = node_of(nest, n);
    nest->firsts[n] = first;
    nest->tiles[node->axis] = (dlc_tile){0};
    if (node->tile > 1) {
        dlc_expr last = dlc_addi(pool, first, node->tile);
        nest->tiles[node->axis] =
            (dlc_tile){first, span->length >= 0 && span->length % node->tile == 0 ? last : dlc_min(pool, last, span->hi)};
    }
    replace(nest, node->axis, node->tile > 1 ? 0 : first);
}

static uint32_t walk_copies(dlc_nest *nest, uint32_t loop, void (*body)(deal *d))
{
    uint32_t n = loop + 1, end = node_of(nest, loop)->end;
    for (; n < end && node_of(nest, n)->kind == DLC_LOOP_THREAD && has_ahead(nest, n); n = node_of(nest, n)->end) {
        deal d;
        deal_begin(&d, nest, n);
        body(&d);
        deal_end(&d);
    }
    return n;
}

/* Loads the step from `first` on, if it is there; only a loop that runs at least once need not ask. */
static void load_step(dlc_nest *nest, uint32_t n, dlc_expr first, const dlc_span *span, int is_there)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_val value = dlc_nest_uniform(nest, first);
    if (!is_there) {
        nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, simplified(nest, dlc_lt(pool, first, span->hi))));
        dlc_nest_enter(nest);
    }
    int64_t multiple = dlc_expr_multiple(pool, first, &nest->ranges) % node_of(nest, n)->tile ? 1 : node_of(nest, n)->tile;
    uint32_t own = dlc_nest_stepped_axis(nest, nest->kernel->axes.data[node_of(nest, n)->axis].extent, multiple);
    dlc_nest_bind(nest, own, value, 1);
    open_step(nest, n, dlc_expr_axis(pool, own), span);
    walk_copies(nest, n, load_copies);
    if (!is_there) {
        dlc_nest_leave(nest);
        nest->emit->if_end(nest->emit);
    }
}

void dlc_deal_walk_ahead(dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = node_of(nest, n);
    dlc_pool *pool = nest->kernel->pool;
    dlc_span span = dlc_walk_span(nest, n);
    dlc_tile before = nest->tiles[node->axis];
    dlc_expr with = nest->with[node->axis];
    int64_t multiple = dlc_expr_multiple(pool, span.lo, &nest->ranges) % node->tile ? 1 : node->tile;
    load_step(nest, n, span.lo, &span, span.length > 0);
    uint32_t step = dlc_nest_stepped_axis(nest, nest->kernel->axes.data[node->axis].extent, multiple);
    dlc_nest_loop(nest, step, dlc_nest_uniform(nest, span.lo), dlc_nest_uniform(nest, span.hi), node->tile);
    open_step(nest, n, dlc_expr_axis(pool, step), &span);
    uint32_t others = walk_copies(nest, n, store_copies);
    dlc_walk_sync(nest);
    load_step(nest, n, dlc_addi(pool, dlc_expr_axis(pool, step), node->tile), &span, 0);
    open_step(nest, n, dlc_expr_axis(pool, step), &span);
    dlc_walk_body(nest, n, others, node->end);
    dlc_nest_loop_end(nest);
    nest->tiles[node->axis] = before;
    replace(nest, node->axis, with);
}

/*
 * A register tile in tile registers (dot.def: family TILE), each of 16 rows of 64 bytes. The sums lie in a block of memory before the
 * product and behind it, where elements are taken from it:
 *
 *     c = 0, or the block;  for k by 16 granules: a = rows of A;  b = granules of B;  c += a * b;  the block = c
 *
 * Where rows, columns or granules are fewer, registers are, or the last one begins earlier: nothing that is not there is read. Registers
 * change their shape as a whole and lose what they have, so the sums pass through the block between slices of K and what K leaves over.
 * Fewer points than a granule are multiplied one by one. Without the instruction all is done on the block, chunk by chunk, in the instruction's order.
 *
 * Of factors in parts a chunk has several products, in an order in which a register's part serves as many of them as it can.
 */
#include "codegen/nest.h"

#include <assert.h>

enum { GRANULE_BYTES = 4, CHUNK = DLC_TILE_BYTES / GRANULE_BYTES, LOOPS = 16 };

typedef struct {
    dlc_nest *nest;
    dlc_pool *pool;
    const dlc_schedule_node *leaf;
    dlc_stage_state *state;
    const dlc_dot_info *row;
    const dlc_register_axis *rows, *columns;
    dlc_expr a, b;           /* loads of a granule's first element, by number of the granule */
    uint8_t a_part, b_part;  /* their indices that count parts */
    uint32_t width;
    uint32_t high, wide;     /* registers of sums */
    uint32_t height;         /* rows of one */
    uint32_t tallest;        /* rows that they are shaped for, those of the loop's tallest tile; 0: the tile's own */
    int64_t chunk;           /* granules that are multiplied at once */
    int64_t a_bytes, b_bytes; /* from row to row, from granule to granule */
    uint32_t loops[LOOPS], nloops; /* the last one counts granules */
    dlc_expr lows[LOOPS], ends[LOOPS], granules; /* granules: more than the last one ever counts to */
    dlc_expr rest, end;      /* points that are no granule, or 0 */
    dlc_expr pass;           /* tiles of rows that the panel has met before this one */
    int64_t npasses;         /* that share the fetching of the next panel: a power of 2 */
    int is_shared_by_all;    /* every tile of rows fetches a share, or all of it */
} tiles;

static dlc_expr i64(const tiles *t, int64_t value)
{
    return dlc_expr_i64(t->pool, value);
}

static dlc_expr axis_of(const tiles *t, uint32_t axis)
{
    return dlc_expr_axis(t->pool, axis);
}

static dlc_expr simplified(const tiles *t, dlc_expr expr)
{
    return dlc_expr_simplify(t->pool, expr, &t->nest->ranges);
}

static dlc_val uniform(const tiles *t, dlc_expr expr)
{
    return dlc_nest_uniform(t->nest, simplified(t, expr));
}

/* --- parts --- */

enum { MOST_PAIRS = DLC_PARTS * (DLC_PARTS + 1) / 2 };
/* By number of parts: those of a and b whose products are added up, the smallest first but where a register still has its part. */
static const uint8_t pairs[DLC_PARTS + 1][MOST_PAIRS][2] = {
    [1] = {{0, 0}}, [3] = {{2, 0}, {1, 0}, {1, 1}, {0, 2}, {0, 1}, {0, 0}}};

static dlc_expr part_at(const tiles *t, dlc_expr load, uint8_t dim, uint32_t part)
{
    return t->row->parts == 1 ? load : dlc_dot_part(t->pool, load, dim, i64(t, part));
}

/* With pair p of the factors' parts as the factors. */
static tiles of_pair(const tiles *t, uint32_t p)
{
    tiles of = *t;
    of.a = part_at(t, t->a, t->a_part, pairs[t->row->parts][p][0]);
    of.b = part_at(t, t->b, t->b_part, pairs[t->row->parts][p][1]);
    return of;
}

/* --- whole panels --- */

/* Chunks of the sum, each of the points that a register's row has; 0: only the run knows. */
static int64_t chunks_of(const dlc_nest *nest, const dlc_schedule_node *leaf)
{
    int64_t points = 1, extent;
    for (uint32_t i = 0; i < leaf->over.n; i++) {
        if (!dlc_expr_is_int(nest->kernel->pool, nest->kernel->axes.data[leaf->over.data[i]].extent, &extent))
            return 0;
        points *= extent;
    }
    return points / (CHUNK * (int64_t)dlc_dots[leaf->row].granule) + 1;
}

/* The factor lies in panels of one tile or more, which begin where tiles do: memory is there behind the last column. */
static int lies_in_panels(dlc_nest *nest, const dlc_schedule_node *leaf, int64_t tile)
{
    dlc_dot_factors factors;
    if (!dlc_dot_factors_of(nest->kernel, leaf, nest->arena, &factors))
        return 0;
    const dlc_pool *pool = nest->kernel->pool;
    const dlc_expr load = factors.operands.columns;
    const dlc_expr_node *node = dlc_node_of(pool, load);
    uint32_t source = DLC_SOURCE_INDEX(node->imm.id);
    if (node->op != DLC_EXPR_LOAD || (DLC_SOURCE_IS_STAGE(node->imm.id) && source >= DLC_FIRST_PSEUDO))
        return 0;
    const dlc_layout *layout = DLC_SOURCE_IS_STAGE(node->imm.id) ? &nest->schedule->homes[source].layout
                                                                 : &nest->kernel->buffers.data[source].layout;
    int found = 0;
    for (uint32_t p = 0; p < layout->nparts; p++) {
        dlc_expr index = dlc_arg(pool, load, layout->part[p].dim);
        if (!dlc_expr_uses_axis(pool, index, leaf->columns))
            continue;
        if (dlc_bare_axis(pool, index) != leaf->columns || layout->part[p].block % tile)
            return 0;
        found |= layout->part[p].inner;
    }
    return found;
}

/*
 * Columns that registers are made for: those of the loop's whole tiles, though the last one has fewer, where the panel's memory goes on. What
 * is computed behind the end goes nowhere, and costs less than another shape (see row_of) but where a long sum has a register more for it.
 */
static uint32_t columns_of(dlc_nest *nest, uint32_t node, uint32_t width)
{
    enum { MOST_CHUNKS = 24 };
    const dlc_schedule_node *leaf = &nest->schedule->nodes.data[node];
    uint32_t own = nest->registers[leaf->columns]->n * width, loop = dlc_schedule_columns(nest->schedule, node);
    int64_t tile = loop == DLC_ROOT_NODE ? 0 : nest->schedule->nodes.data[loop].tile;
    if (tile <= own || !lies_in_panels(nest, leaf, tile))
        return own;
    int has_less = own <= (uint32_t)tile - DLC_TILE_COLUMNS;
    int64_t chunks = chunks_of(nest, leaf);
    return has_less && (!chunks || chunks > MOST_CHUNKS) ? own : (uint32_t)tile;
}

/* --- the block --- */

static dlc_val index_of(const dlc_nest *nest, const dlc_stage_state *state, dlc_expr row, uint32_t v)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr index = dlc_addi(pool, dlc_muli(pool, row, state->pitch), (int64_t)v * state->width);
    return dlc_nest_uniform((dlc_nest *)nest, dlc_expr_simplify(pool, index, &nest->ranges));
}

void dlc_tile_open(dlc_nest *nest, uint32_t leaf, uint32_t width)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[leaf];
    dlc_stage_state *state = &nest->states[node->stage];
    const dlc_tile_emitter *emit = nest->emit->tiles;
    uint32_t columns = columns_of(nest, leaf, width);
    state->is_padded = (uint8_t)lies_in_panels(nest, node, columns);
    state->pitch = (columns + DLC_TILE_COLUMNS - 1) / DLC_TILE_COLUMNS * DLC_TILE_COLUMNS;
    state->width = width;
    uint32_t rows = (nest->registers[node->rows]->n + DLC_TILE_ROWS - 1) / DLC_TILE_ROWS * DLC_TILE_ROWS;
    state->block = emit->block_new(nest->emit, nest->kernel->stages.data[node->stage].dtype[0], rows * state->pitch);
    state->lanes = dlc_nest_axis(nest, dlc_expr_i64(nest->kernel->pool, width));
    state->zero = dlc_nest_axis(nest, dlc_expr_i64(nest->kernel->pool, 1));
}

void dlc_tile_rows_begin(dlc_nest *nest, uint32_t leaf)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[leaf];
    const dlc_tile *tile = &nest->tiles[node->rows];
    dlc_stage_state *state = &nest->states[node->stage];
    uint32_t row = dlc_nest_axis(nest, nest->kernel->axes.data[node->rows].extent);
    state->row_before = nest->with[node->rows];
    dlc_nest_loop(nest, row, dlc_nest_uniform(nest, dlc_expr_simplify(nest->kernel->pool, tile->first, &nest->ranges)),
                  dlc_nest_uniform(nest, dlc_expr_simplify(nest->kernel->pool, tile->last, &nest->ranges)), 1);
    dlc_nest_replace(nest, node->rows, dlc_expr_axis(nest->kernel->pool, row));
    state->row = dlc_sub(nest->kernel->pool, dlc_expr_axis(nest->kernel->pool, row), tile->first);
}

void dlc_tile_rows_end(dlc_nest *nest, uint32_t leaf)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[leaf];
    dlc_nest_replace(nest, node->rows, nest->states[node->stage].row_before);
    dlc_nest_loop_end(nest);
}

dlc_val dlc_tile_get(dlc_nest *nest, uint32_t leaf, uint32_t v)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[leaf];
    const dlc_stage_state *state = &nest->states[node->stage];
    return nest->emit->tiles->block_get(nest->emit, state->block, nest->kernel->stages.data[node->stage].dtype[0], state->width,
                                        index_of(nest, state, state->row, v));
}

void dlc_tile_set(dlc_nest *nest, uint32_t leaf, uint32_t v, dlc_val value)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[leaf];
    const dlc_stage_state *state = &nest->states[node->stage];
    nest->emit->tiles->block_set(nest->emit, state->block, index_of(nest, state, state->row, v), value);
}

/* --- loops over what is reduced --- */

static dlc_expr first_of(const tiles *t, uint32_t axis)
{
    const dlc_tile *tile = &t->nest->tiles[axis];
    return tile->last ? tile->first : i64(t, 0);
}

static dlc_expr end_of(const tiles *t, uint32_t axis)
{
    const dlc_tile *tile = &t->nest->tiles[axis];
    return tile->last ? tile->last : t->nest->kernel->axes.data[axis].extent;
}

/* One loop in place of the two innermost where both factors stay linear. */
static int merge_loops(tiles *t)
{
    uint32_t n = t->nloops;
    dlc_nest *nest = t->nest;
    if (n < 2 || t->rest || t->lows[n - 1] != i64(t, 0) || t->lows[n - 2] != i64(t, 0))
        return 0;
    dlc_expr inner = t->ends[n - 1], extent = dlc_mul(t->pool, t->ends[n - 2], inner);
    uint32_t merged = dlc_nest_axis(nest, extent);
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    with[t->loops[n - 2]] = dlc_floordiv(t->pool, axis_of(t, merged), inner);
    with[t->loops[n - 1]] = dlc_mod(t->pool, axis_of(t, merged), inner);
    dlc_expr a = simplified(t, dlc_expr_substitute(t->pool, t->a, with, nest->axes.n));
    dlc_expr b = simplified(t, dlc_expr_substitute(t->pool, t->b, with, nest->axes.n));
    if (dlc_nest_stride(nest, a, merged) != t->row->granule || dlc_nest_stride(nest, b, merged) == INT64_MIN)
        return 0;
    t->a = a;
    t->b = b;
    t->loops[n - 2] = merged;
    t->ends[n - 2] = t->granules = extent;
    t->nloops--;
    return 1;
}

static void find_loops(tiles *t)
{
    dlc_nest *nest = t->nest;
    uint32_t last = t->leaf->over.n - 1, axis = t->leaf->over.data[last];
    assert(last < LOOPS);
    for (uint32_t i = 0; i <= last; i++) {
        t->loops[i] = t->leaf->over.data[i];
        t->lows[i] = first_of(t, t->loops[i]);
        t->ends[i] = end_of(t, t->loops[i]);
    }
    t->nloops = last + 1;
    dlc_expr by = i64(t, t->row->granule), end = simplified(t, t->ends[last]);
    t->granules = dlc_addi(t->pool, dlc_floordiv(t->pool, nest->kernel->axes.data[axis].extent, by), 1);
    uint32_t number = dlc_nest_axis(nest, t->granules);
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    with[axis] = dlc_muli(t->pool, axis_of(t, number), t->row->granule);
    t->a = simplified(t, dlc_expr_substitute(t->pool, t->a, with, nest->axes.n));
    t->b = simplified(t, dlc_expr_substitute(t->pool, t->b, with, nest->axes.n));
    if (dlc_expr_multiple(t->pool, end, &nest->ranges) % t->row->granule) {
        t->rest = simplified(t, dlc_muli(t->pool, dlc_floordiv(t->pool, end, by), t->row->granule));
        t->end = end;
    }
    t->loops[last] = number;
    t->lows[last] = dlc_floordiv(t->pool, t->lows[last], by);
    t->ends[last] = simplified(t, dlc_floordiv(t->pool, end, by));
}

/* Registers are full, but where as many chunks of fewer granules leave nothing over: another shape is worth some chunks. */
static int64_t chunk_of(const tiles *t)
{
    uint32_t last = t->nloops - 1;
    int64_t granules, chunks;
    if (!dlc_expr_is_int(t->pool, simplified(t, dlc_sub(t->pool, t->ends[last], t->lows[last])), &granules) || granules < 1)
        return CHUNK;
    chunks = (granules + CHUNK - 1) / CHUNK;
    return granules % chunks ? CHUNK : granules / chunks;
}

static void open_loops(const tiles *t)
{
    for (uint32_t i = 0; i + 1 < t->nloops; i++)
        dlc_nest_loop(t->nest, t->loops[i], uniform(t, t->lows[i]), uniform(t, t->ends[i]), 1);
}

/* A load at a row or column, and at a granule. */
static dlc_expr load_at(const tiles *t, dlc_expr load, uint32_t axis, dlc_expr point, dlc_expr granule)
{
    dlc_expr *with = dlc_new_array(t->nest->arena, dlc_expr, t->nest->axes.n);
    with[axis] = point;
    with[t->loops[t->nloops - 1]] = granule;
    return simplified(t, dlc_expr_substitute(t->pool, load, with, t->nest->axes.n));
}

/* --- by the instruction --- */

/* Of `count` rows or columns (0: as many as the tile that is open has) those in register i: at least one. */
static dlc_expr part_of(const tiles *t, const dlc_tile *open, int64_t count, uint32_t i, int64_t most)
{
    dlc_expr all = count ? i64(t, count) : dlc_sub(t->pool, open->last, open->first);
    all = dlc_addi(t->pool, all, -(int64_t)i * most);
    return simplified(t, dlc_max(t->pool, i64(t, 1), dlc_min(t->pool, all, i64(t, most))));
}

/* Sums first, then rows, then columns. */
static void shape(const tiles *t, dlc_expr granules)
{
    dlc_tile_shape s = {.n = t->high * t->wide + t->high + t->wide};
    const dlc_tile *rows = &t->nest->tiles[t->leaf->rows], *columns = &t->nest->tiles[t->leaf->columns];
    dlc_expr height[DLC_TILES], width[DLC_TILES], bytes = dlc_muli(t->pool, granules, GRANULE_BYTES);
    for (uint32_t i = 0; i < t->high; i++)
        height[i] = part_of(t, rows, t->tallest, i, t->height);
    for (uint32_t c = 0; c < t->wide; c++)
        width[c] = dlc_muli(t->pool, t->state->is_padded ? i64(t, DLC_TILE_COLUMNS) : part_of(t, columns, t->columns->count, c, DLC_TILE_COLUMNS),
                            GRANULE_BYTES);
    for (uint32_t i = 0; i < t->high; i++) {
        for (uint32_t c = 0; c < t->wide; c++) {
            s.rows[i * t->wide + c] = uniform(t, height[i]);
            s.bytes[i * t->wide + c] = uniform(t, width[c]);
        }
        s.rows[t->high * t->wide + i] = uniform(t, height[i]);
        s.bytes[t->high * t->wide + i] = uniform(t, bytes);
    }
    for (uint32_t c = 0; c < t->wide; c++) {
        s.rows[t->high * t->wide + t->high + c] = uniform(t, granules);
        s.bytes[t->high * t->wide + t->high + c] = uniform(t, width[c]);
    }
    t->nest->emit->tiles->shape(t->nest->emit, (dlc_dot)t->leaf->row, &s);
}

/*
 * The first row of register i. Another shape is worth more than a tile's products (ldtilecfg: 120 ns on Emerald Rapids), so a tile with fewer
 * rows than others of its loop has registers of the same shape, the last of which begins within the one before: rows that both have are the
 * same numbers.
 */
static uint32_t row_of(const tiles *t, uint32_t i)
{
    uint32_t first = i * t->height;
    if (!t->tallest)
        return first;
    uint32_t rows = t->tallest - first < t->height ? t->tallest - first : t->height;
    return first + rows > t->rows->n ? t->rows->n - rows : first;
}

static void move_sums(const tiles *t, int is_store)
{
    for (uint32_t i = 0; i < t->high; i++)
        for (uint32_t c = 0; c < t->wide; c++)
            t->nest->emit->tiles->move(t->nest->emit, i * t->wide + c, t->state->block,
                                       (int64_t)(row_of(t, i) * t->state->pitch + c * DLC_TILE_COLUMNS) * GRANULE_BYTES,
                                       (int64_t)t->state->pitch * GRANULE_BYTES, is_store);
}

/* The first column of register c: none is behind the last. */
static dlc_expr column_of(const tiles *t, uint32_t c)
{
    dlc_expr column = dlc_addi(t->pool, t->columns->first, (int64_t)c * DLC_TILE_COLUMNS);
    if (t->columns->count || t->state->is_padded || !c)
        return column;
    return dlc_min(t->pool, column, dlc_addi(t->pool, t->nest->tiles[t->leaf->columns].last, -1));
}

static void load_rows(const tiles *t, dlc_expr granule)
{
    uint32_t first = t->high * t->wide;
    for (uint32_t i = 0; i < t->high; i++)
        dlc_nest_tile(t->nest, load_at(t, t->a, t->leaf->rows, t->rows->points[row_of(t, i)], granule), first + i, t->a_bytes);
}

static void load_columns(const tiles *t, dlc_expr granule)
{
    uint32_t first = t->high * t->wide + t->high;
    for (uint32_t c = 0; c < t->wide; c++)
        dlc_nest_tile(t->nest, load_at(t, t->b, t->leaf->columns, column_of(t, c), granule), first + c, t->b_bytes);
}

static void multiply_loaded(const tiles *t)
{
    uint32_t a = t->high * t->wide, b = a + t->high;
    for (uint32_t c = 0; c < t->wide; c++)
        for (uint32_t i = 0; i < t->high; i++)
            t->nest->emit->tiles->multiply(t->nest->emit, (dlc_dot)t->leaf->row, i * t->wide + c, a + i, b + c);
}

/* A part that the registers have is not loaded again. */
static void multiply_chunk(const tiles *t, dlc_expr granule)
{
    dlc_expr a = 0, b = 0;
    for (uint32_t p = 0; p < dlc_dot_pairs((dlc_dot)t->leaf->row); p++) {
        tiles of = of_pair(t, p);
        if (of.a != a)
            load_rows(&of, granule);
        if (of.b != b)
            load_columns(&of, granule);
        multiply_loaded(&of);
        a = of.a, b = of.b;
    }
}

/* --- the next panel --- */

/*
 * Tiles of rows that meet a panel one after the other fetch equal shares of the next one. Each share is as many streams as it has lines
 * for a chunk, evenly apart: what fetches in hardware follows several pages at once, and a single stream waits for it at each page
 * (Emerald Rapids, 49 x 2048 by 512 of bf16 from memory: 192 us by lines that each tile fetches in turn, 140 by streams).
 */
static void find_passes(tiles *t, uint32_t leaf)
{
    enum { MOST_PASSES = 4 };
    const dlc_schedule *schedule = t->nest->schedule;
    uint32_t rows = dlc_schedule_rows(schedule, leaf), columns = dlc_schedule_columns(schedule, leaf);
    t->pass = i64(t, 0);
    t->npasses = 1;
    t->is_shared_by_all = 1;
    if (rows == DLC_ROOT_NODE || columns == DLC_ROOT_NODE || !t->nest->numbers[rows] || !dlc_schedule_is_inside(schedule, rows, columns))
        return;
    uint32_t around = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, rows), t->leaf->rows);
    int64_t tile = schedule->nodes.data[rows].tile, points = dlc_schedule_most_points(schedule, rows);
    if (points < 0 || (around != DLC_ROOT_NODE && !dlc_schedule_is_inside(schedule, columns, around))) /* it cuts what a tile of columns meets */
        return;
    int64_t all = (points + tile - 1) / tile;
    while (t->npasses < MOST_PASSES && t->npasses * 2 <= all && t->chunk % (t->npasses * 2) == 0)
        t->npasses *= 2;
    t->pass = simplified(t, t->nest->numbers[rows]);
    t->is_shared_by_all = all == t->npasses;
}

/* The lines of granules of the next panel, by streams. */
static void fetch_share(const tiles *t, dlc_expr granule, dlc_expr chunks)
{
    int64_t panel = (int64_t)t->columns->n * t->width;
    dlc_expr low = t->lows[t->nloops - 1], chunk = dlc_floordiv(t->pool, dlc_sub(t->pool, granule, low), i64(t, t->chunk));
    for (int64_t i = 0; i < t->chunk / t->npasses; i++) {
        dlc_expr stream = dlc_addi(t->pool, t->pass, i * t->npasses);
        dlc_expr line = dlc_add(t->pool, low, dlc_add(t->pool, dlc_mul(t->pool, stream, chunks), chunk));
        for (uint32_t part = 0; part < t->row->parts; part++)
            for (uint32_t c = 0; c < t->wide; c++)
                dlc_nest_fetch(t->nest, load_at(t, part_at(t, t->b, t->b_part, part), t->leaf->columns,
                                                dlc_addi(t->pool, column_of(t, c), panel), line), 0);
    }
}

static void fetch_columns(const tiles *t, dlc_expr granule, dlc_expr chunks)
{
    if (!t->is_shared_by_all) {
        t->nest->emit->if_begin(t->nest->emit, uniform(t, dlc_lt(t->pool, t->pass, i64(t, t->npasses))));
        dlc_nest_enter(t->nest);
    }
    fetch_share(t, granule, chunks);
    if (!t->is_shared_by_all) {
        dlc_nest_leave(t->nest);
        t->nest->emit->if_end(t->nest->emit);
    }
}

/* Fewer granules than a register has rows. */
static void multiply_left(const tiles *t, dlc_expr from, dlc_expr left)
{
    dlc_nest *nest = t->nest;
    int64_t known;
    int is_known = dlc_expr_is_int(t->pool, left, &known);
    if (is_known && !known)
        return;
    if (!is_known) {
        nest->emit->if_begin(nest->emit, uniform(t, dlc_lt(t->pool, i64(t, 0), left)));
        dlc_nest_enter(nest);
    }
    move_sums(t, 1);
    shape(t, left);
    move_sums(t, 0);
    multiply_chunk(t, from);
    move_sums(t, 1);
    shape(t, i64(t, t->chunk));
    move_sums(t, 0);
    if (!is_known) {
        dlc_nest_leave(nest);
        nest->emit->if_end(nest->emit);
    }
}

static void multiply_by_registers(const tiles *t, int is_zero)
{
    const dlc_tile_emitter *emit = t->nest->emit->tiles;
    uint32_t last = t->nloops - 1;
    dlc_expr size = dlc_sub(t->pool, t->ends[last], t->lows[last]), chunk = i64(t, t->chunk);
    dlc_expr left = simplified(t, dlc_mod(t->pool, size, chunk));
    dlc_expr whole = simplified(t, dlc_sub(t->pool, t->ends[last], left));
    shape(t, chunk);
    for (uint32_t i = 0; i < t->high * t->wide && is_zero; i++)
        emit->zero(t->nest->emit, i);
    if (!is_zero)
        move_sums(t, 0);
    open_loops(t);
    dlc_nest_loop(t->nest, t->loops[last], uniform(t, t->lows[last]), uniform(t, whole), t->chunk);
    if (t->leaf->ahead)
        fetch_columns(t, axis_of(t, t->loops[last]), dlc_floordiv(t->pool, dlc_sub(t->pool, whole, t->lows[last]), chunk));
    multiply_chunk(t, axis_of(t, t->loops[last]));
    dlc_nest_loop_end(t->nest);
    multiply_left(t, whole, left);
    for (uint32_t i = 0; i < last; i++)
        dlc_nest_loop_end(t->nest);
    move_sums(t, 1);
    emit->end(t->nest->emit);
}

/* --- on the block --- */

static void enter_lanes(const tiles *t)
{
    t->nest->lane = t->state->lanes;
    t->nest->lane_base = t->state->zero;
    t->nest->width = t->width;
}

static void leave_lanes(dlc_nest *nest)
{
    nest->lane = DLC_NO_AXIS;
    nest->width = 1;
    nest->mask = NULL;
}

static dlc_expr column_lanes(const tiles *t, uint32_t v)
{
    return dlc_add(t->pool, t->columns->first, dlc_addi(t->pool, axis_of(t, t->state->lanes), (int64_t)v * t->width));
}

/* A chunk's sums, by vector: of first elements and of second ones where the row has them apart; else all go on in one. */
typedef struct {
    dlc_var sums[DLC_MAX_VECTORS][2];
} partial;

static void begin_chunk(const tiles *t, uint32_t leaf, partial *p)
{
    dlc_nest *nest = t->nest;
    dlc_dtype type = (dlc_dtype)t->row->acc;
    int is_apart = t->row->order == DLC_ORDER_CHUNKS;
    for (uint32_t v = 0; v < t->columns->n; v++)
        for (int i = 0; i <= is_apart; i++) {
            p->sums[v][i] = nest->emit->var_new(nest->emit, type, t->width);
            nest->emit->var_set(nest->emit, p->sums[v][i],
                                is_apart ? dlc_nest_identity(nest, DLC_REDUCE_SUM, type, 0, t->width) : dlc_tile_get(nest, leaf, v));
        }
}

static void end_chunk(const tiles *t, uint32_t leaf, const partial *p)
{
    dlc_emitter *emit = t->nest->emit;
    dlc_dtype type = (dlc_dtype)t->row->acc;
    for (uint32_t v = 0; v < t->columns->n; v++) {
        dlc_val sum = emit->var_get(emit, p->sums[v][0]);
        if (t->row->order == DLC_ORDER_CHUNKS) {
            sum = emit->arith(emit, DLC_EXPR_ADD, type, type, t->width, (dlc_val[]){sum, emit->var_get(emit, p->sums[v][1])});
            sum = emit->arith(emit, DLC_EXPR_ADD, type, type, t->width, (dlc_val[]){dlc_tile_get(t->nest, leaf, v), sum});
        }
        dlc_tile_set(t->nest, leaf, v, sum);
    }
}

/* The granules [from, to) of one row. */
static void multiply_row(const tiles *t, dlc_expr from, dlc_expr to, const partial *p)
{
    dlc_nest *nest = t->nest;
    int is_apart = t->row->order == DLC_ORDER_CHUNKS;
    uint32_t g = dlc_nest_axis(nest, t->granules);
    dlc_nest_loop(nest, g, uniform(t, from), uniform(t, to), 1);
    enter_lanes(t);
    dlc_val a = dlc_nest_value_at(nest, dlc_granule_load(t->pool, load_at(t, t->a, t->leaf->rows, nest->with[t->leaf->rows], axis_of(t, g)), t->row->granule));
    for (uint32_t v = 0; v < t->columns->n; v++) {
        nest->mask = t->columns->masks[v];
        dlc_val b = dlc_nest_value_at(nest, dlc_granule_load(t->pool, load_at(t, t->b, t->leaf->columns, column_lanes(t, v), axis_of(t, g)), t->row->granule));
        for (uint32_t i = 0; i < t->row->granule; i++) {
            dlc_var sum = p->sums[v][is_apart ? i : 0];
            nest->emit->var_set(nest->emit, sum, dlc_granule_multiply(nest, (dlc_dot)t->leaf->row, t->width, a, b, i,
                                                                      nest->emit->var_get(nest->emit, sum)));
        }
    }
    leave_lanes(nest);
    dlc_nest_loop_end(nest);
}

static void multiply_on_block(const tiles *t, uint32_t leaf)
{
    uint32_t last = t->nloops - 1;
    partial sums;
    open_loops(t);
    dlc_nest_loop(t->nest, t->loops[last], uniform(t, t->lows[last]), uniform(t, t->ends[last]), t->chunk);
    dlc_expr from = axis_of(t, t->loops[last]);
    dlc_tile_rows_begin(t->nest, leaf);
    for (uint32_t p = 0; p < dlc_dot_pairs((dlc_dot)t->leaf->row); p++) {
        tiles of = of_pair(t, p);
        begin_chunk(&of, leaf, &sums);
        multiply_row(&of, from, dlc_min(t->pool, t->ends[last], dlc_addi(t->pool, from, t->chunk)), &sums);
        end_chunk(&of, leaf, &sums);
    }
    dlc_tile_rows_end(t->nest, leaf);
    for (uint32_t i = 0; i < t->nloops; i++)
        dlc_nest_loop_end(t->nest);
}

/* --- point by point --- */

static void multiply_point(const tiles *t, uint32_t leaf, uint32_t v, dlc_expr left, dlc_expr right)
{
    dlc_nest *nest = t->nest;
    dlc_dtype type = (dlc_dtype)t->row->acc;
    enter_lanes(t);
    dlc_val a = dlc_nest_value_at(nest, dlc_nest_here(nest, left));
    nest->mask = t->columns->masks[v];
    dlc_nest_replace(nest, t->leaf->columns, column_lanes(t, v));
    dlc_val b = dlc_nest_value_at(nest, dlc_nest_here(nest, right));
    dlc_nest_replace(nest, t->leaf->columns, 0);
    leave_lanes(nest);
    dlc_val args[] = {a, b, dlc_tile_get(nest, leaf, v)};
    dlc_expr_op op = t->row->parts > 1 ? DLC_EXPR_FMA : DLC_EXPR_MULADD; /* products of parts' sums are not exact in f32 */
    dlc_tile_set(nest, leaf, v, nest->emit->arith(nest->emit, op, type, type, t->width, args));
}

/* Points of the innermost axis, at all of the outer ones, by the factors' casts. */
static void multiply_points(const tiles *t, uint32_t leaf, const dlc_tile_factors *factors, dlc_expr low, dlc_expr end)
{
    dlc_nest *nest = t->nest;
    uint32_t n = t->leaf->over.n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis = t->leaf->over.data[i];
        dlc_nest_loop(nest, axis, uniform(t, i + 1 < n ? first_of(t, axis) : low), uniform(t, i + 1 < n ? end_of(t, axis) : end), 1);
    }
    dlc_tile_rows_begin(nest, leaf);
    for (uint32_t v = 0; v < t->columns->n; v++)
        multiply_point(t, leaf, v, factors->left, factors->right);
    dlc_tile_rows_end(nest, leaf);
    for (uint32_t i = 0; i < n; i++)
        dlc_nest_loop_end(nest);
}

/* --- infinities --- */

static dlc_val words(const tiles *t, dlc_expr_op op, dlc_val a, dlc_val b)
{
    return t->nest->emit->arith(t->nest->emit, op, DLC_I32, DLC_I32, t->width, (dlc_val[]){a, b});
}

/* The largest of all lanes in each. */
static dlc_val largest_lane(const tiles *t, dlc_val value)
{
    for (uint32_t by = t->width / 2; by; by /= 2)
        value = words(t, DLC_EXPR_MAX, value, t->nest->emit->rotate(t->nest->emit, DLC_I32, value, t->width, by));
    return value;
}

/* The largest magnitudes of vector v's columns, as bits; those that are not there are 0. */
static dlc_val largest_of(const tiles *t, uint32_t v, dlc_var largest)
{
    dlc_emitter *emit = t->nest->emit;
    dlc_val zero = dlc_granule_word(t->nest, t->width, 0), mask = t->columns->masks[v], value = emit->var_get(emit, largest);
    return mask ? emit->arith(emit, DLC_EXPR_SELECT, DLC_I32, DLC_I32, t->width, (dlc_val[]){mask, value, zero}) : value;
}

/* --- the leaf --- */

int dlc_tile_is_plain(const dlc_nest *nest, uint32_t leaf)
{
    return !nest->emit->tiles->has(nest->emit, (dlc_dot)nest->schedule->nodes.data[leaf].row);
}

/* 0: the tile's own, which may be known to the run only. */
static uint32_t tallest_of(const tiles *t, uint32_t leaf)
{
    uint32_t rows = dlc_schedule_rows(t->nest->schedule, leaf), tallest = rows == DLC_ROOT_NODE ? 0 : t->nest->tallest[rows];
    int is_same_number = (tallest + t->height - 1) / t->height == t->high;
    return tallest > t->rows->n && t->rows->n >= t->height && is_same_number ? tallest : 0;
}

static tiles tiles_at(dlc_nest *nest, uint32_t leaf)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[leaf];
    tiles t = {.nest = nest, .pool = nest->kernel->pool, .leaf = node, .state = &nest->states[node->stage],
               .row = &dlc_dots[node->row], .rows = nest->registers[node->rows], .columns = nest->registers[node->columns]};
    t.width = t.state->width;
    t.height = dlc_schedule_register_rows(nest->schedule, leaf);
    t.high = (t.rows->n + t.height - 1) / t.height;
    t.tallest = tallest_of(&t, leaf);
    t.wide = t.state->pitch / DLC_TILE_COLUMNS;
    return t;
}

/* From row to row. In whole tiles a register begins at a multiple of its rows, so that axes that are one number count on within it. */
static int64_t row_stride(const tiles *t)
{
    dlc_nest *nest = t->nest;
    if (!dlc_schedule_has_whole_tiles(nest->schedule, dlc_schedule_rows(nest->schedule, (uint32_t)(t->leaf - nest->schedule->nodes.data))))
        return dlc_nest_stride(nest, t->a, t->leaf->rows);
    uint32_t number = dlc_nest_axis(nest, nest->kernel->axes.data[t->leaf->rows].extent), row = dlc_nest_axis(nest, i64(t, t->height));
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    with[t->leaf->rows] = dlc_add(t->pool, dlc_muli(t->pool, axis_of(t, number), t->height), axis_of(t, row));
    return dlc_nest_stride(nest, simplified(t, dlc_expr_substitute(t->pool, t->a, with, nest->axes.n)), row);
}

void dlc_tile_multiply(dlc_nest *nest, uint32_t leaf, const dlc_tile_factors *factors, int is_zero)
{
    tiles t = tiles_at(nest, leaf);
    t.a = factors->a, t.a_part = factors->a_part;
    t.b = factors->b, t.b_part = factors->b_part;
    find_loops(&t);
    while (merge_loops(&t))
        ;
    t.chunk = chunk_of(&t);
    find_passes(&t, leaf);
    int64_t element = GRANULE_BYTES / t.row->granule;
    int64_t apart = row_stride(&t);
    assert(apart >= 0);
    t.a_bytes = apart * element;
    t.b_bytes = dlc_nest_stride(nest, t.b, t.loops[t.nloops - 1]) * element;
    if (dlc_tile_is_plain(nest, leaf))
        multiply_on_block(&t, leaf);
    else
        multiply_by_registers(&t, is_zero);
    if (t.rest)
        multiply_points(&t, leaf, factors, t.rest, t.end);
}

dlc_val dlc_tile_is_infinite(dlc_nest *nest, uint32_t leaf)
{
    enum { MAGNITUDE = 0x7fffffff, INFINITE = 0x7f800000 };
    tiles t = tiles_at(nest, leaf);
    dlc_emitter *emit = nest->emit;
    dlc_var largest[DLC_MAX_VECTORS];
    for (uint32_t v = 0; v < t.columns->n; v++) {
        largest[v] = emit->var_new(emit, DLC_I32, t.width);
        emit->var_set(emit, largest[v], dlc_granule_word(nest, t.width, 0));
    }
    dlc_tile_rows_begin(nest, leaf);
    for (uint32_t v = 0; v < t.columns->n; v++) {
        dlc_val value = dlc_tile_get(nest, leaf, v), bits = emit->arith(emit, DLC_EXPR_BITCAST, DLC_F32, DLC_I32, t.width, &value);
        bits = words(&t, DLC_EXPR_AND, bits, dlc_granule_word(nest, t.width, MAGNITUDE));
        emit->var_set(emit, largest[v], words(&t, DLC_EXPR_MAX, emit->var_get(emit, largest[v]), bits));
    }
    dlc_tile_rows_end(nest, leaf);
    dlc_val all = largest_of(&t, 0, largest[0]);
    for (uint32_t v = 1; v < t.columns->n; v++)
        all = words(&t, DLC_EXPR_MAX, all, largest_of(&t, v, largest[v]));
    all = emit->lane(emit, DLC_I32, largest_lane(&t, all), t.width, 0);
    return emit->arith(emit, DLC_EXPR_LE, DLC_I32, DLC_BOOL, 1, (dlc_val[]){dlc_granule_word(nest, 1, INFINITE), all});
}

void dlc_tile_multiply_points(dlc_nest *nest, uint32_t leaf, const dlc_tile_factors *factors)
{
    tiles t = tiles_at(nest, leaf);
    uint32_t axis = t.leaf->over.data[t.leaf->over.n - 1];
    multiply_points(&t, leaf, factors, first_of(&t, axis), end_of(&t, axis));
}

/*
 * Loads that cross: neighbours in memory are points of an unrolled loop, while lanes around it stride. Where the loop has as many points
 * as there are lanes, they are read as rows, a vector each, and the square is turned in registers; its columns are then known values of
 * the loads, which nothing gathers any more.
 *
 * Copies into granules (dot.def), whose points of the loop lie side by side, go by words of one granule each: those of loads that cross are
 * turned as the squares above, others are put together of the loop's vectors.
 *
 * Stores that cross: neighbours in memory are rows of a register tile, while its vectors stride. They wait for all rows of a vector, which
 * are turned then, and a line of memory is written once instead of once for every row. Where only the run knows whether the rows lie
 * together (they may go on in the next image), it asks.
 *
 * Woven stores: neighbours in memory are the few points of an unrolled loop, and the next lane's come right behind them (planes of an image
 * that become its channels). They wait for all points, whose lanes are put in turns then.
 */
#include "codegen/nest.h"

enum { LEAST_LANES = 4, MOST_LANES = 32, LEAST_ROWS = 4, MOST_WOVEN_LANES = 64 };

static int can_turn(const dlc_nest *nest)
{
    uint32_t w = nest->width;
    return nest->emit->turn && w >= LEAST_LANES && w <= MOST_LANES && !(w & (w - 1));
}

/* --- loads --- */

/* The loads of a plain map's value that cross, or none where the loop holds anything else. */
static uint32_t find_loads(dlc_nest *nest, uint32_t loop, dlc_expr *loads)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[loop], *leaf = node + 1;
    uint32_t n = 0;
    if (!can_turn(nest) || nest->lane >= nest->kernel->axes.n)
        return 0;
    if (node->end != loop + 2 || leaf->kind != DLC_LOOP_LEAF || leaf->row != DLC_DOT_NONE)
        return 0;
    const dlc_stage *stage = &nest->kernel->stages.data[leaf->stage];
    if (stage->combine != DLC_REDUCE_NONE)
        return 0;
    const uint8_t *marks = dlc_stage_marks(nest->kernel, stage, nest->arena);
    uint32_t nnodes = nest->kernel->pool->nodes.n; /* asking for strides makes more */
    for (dlc_expr id = 1; id < nnodes && id <= stage->value[0] && n < DLC_MOST_TURNED; id++)
        if (marks[id] && dlc_nest_crosses(nest, id, node->axis) &&
            dlc_node_of(nest->kernel->pool, id)->imm.id != DLC_STAGE_SOURCE(leaf->stage))
            loads[n++] = id;
    return n;
}

int dlc_turn_fits(dlc_nest *nest, uint32_t loop)
{
    dlc_expr loads[DLC_MOST_TURNED];
    return find_loads(nest, loop, loads) > 0;
}

/* The load's rows: for each lane, every so many of its points along the loop, below hi (0: all); for lanes that are off, those of the last. */
static void read_rows(dlc_nest *nest, dlc_expr load, uint32_t axis, uint32_t base, int64_t every, dlc_expr hi, dlc_val *rows)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->kernel->axes.n), lanes = dlc_expr_axis(pool, nest->lane_base);
    uint32_t lane = nest->lane, lane_base = nest->lane_base;
    dlc_val mask = nest->mask;
    dlc_expr last = dlc_addi(pool, nest->kernel->axes.data[lane].extent, -1);
    uint32_t along = dlc_nest_axis(nest, nest->kernel->axes.data[axis].extent); /* not the axis: what was computed of it is forgotten */
    load = dlc_nest_here(nest, load);
    nest->lane = along;
    nest->lane_base = base;
    nest->mask = hi ? dlc_nest_value_at(nest, dlc_lt(pool, dlc_expr_axis(pool, along), hi)) : NULL;
    for (uint32_t r = 0; r < nest->width; r++) {
        with[lane] = mask ? dlc_min(pool, dlc_addi(pool, lanes, r), last) : dlc_addi(pool, lanes, r);
        with[axis] = dlc_muli(pool, dlc_expr_axis(pool, along), every);
        rows[r] = dlc_nest_value_at(nest, dlc_nest_substitute(nest, load, with));
    }
    nest->lane = lane;
    nest->lane_base = lane_base;
    nest->mask = mask;
}

uint32_t dlc_turn_begin(dlc_nest *nest, uint32_t loop, dlc_expr lo, dlc_expr hi, dlc_turned *turned)
{
    dlc_expr loads[DLC_MOST_TURNED];
    uint32_t axis = nest->schedule->nodes.data[loop].axis, n = find_loads(nest, loop, loads);
    if (!n)
        return 0;
    uint32_t base = dlc_nest_axis(nest, nest->kernel->axes.data[axis].extent);
    dlc_nest_bind(nest, base, dlc_nest_uniform(nest, lo), 1);
    for (uint32_t i = 0; i < n; i++) {
        dlc_val rows[MOST_LANES];
        turned[i].load = loads[i];
        turned[i].columns = dlc_new_array(nest->arena, dlc_val, nest->width);
        read_rows(nest, loads[i], axis, base, 1, hi, rows);
        nest->emit->turn(nest->emit, nest->width, rows, turned[i].columns);
    }
    return n;
}

void dlc_turn_know(dlc_nest *nest, const dlc_turned *turned, uint32_t n, uint32_t point)
{
    for (uint32_t i = 0; i < n; i++) {
        dlc_expr here = dlc_nest_here(nest, turned[i].load);
        if (dlc_node_of(nest->kernel->pool, here)->op == DLC_EXPR_LOAD) /* else its guard is false here: a number */
            dlc_nest_know(nest, here, turned[i].columns[point]);
    }
}

/* --- granules --- */

enum { WORD_BYTES = 4 };

typedef struct {
    uint32_t stage, axis;
    uint32_t granule, base; /* points of one; an axis that counts them */
    dlc_expr load, words;   /* an element, and the granule that begins there */
    int crosses;            /* a granule is one piece of memory */
} granules;

/* Point `r` of the granule that the expression counts. */
static dlc_expr point_of(const dlc_nest *nest, const granules *g, dlc_expr number, int64_t r)
{
    return dlc_addi(nest->kernel->pool, dlc_muli(nest->kernel->pool, number, g->granule), r);
}

static dlc_expr at_point(dlc_nest *nest, const granules *g, dlc_expr load, dlc_expr point)
{
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->kernel->axes.n);
    with[g->axis] = point;
    return dlc_nest_here(nest, dlc_nest_substitute(nest, load, with));
}

static dlc_expr element_of(dlc_nest *nest, uint32_t s)
{
    const dlc_ids *axes = &nest->kernel->stages.data[s].axes;
    dlc_expr index[DLC_MAX_INDEX];
    for (uint32_t i = 0; i < axes->n; i++)
        index[i] = dlc_expr_axis(nest->kernel->pool, axes->data[i]);
    return dlc_nest_reload(nest, s, index);
}

/* Of the stage's memory a granule's points are neighbours, and so are the lanes' granules. */
static int is_stored_so(dlc_nest *nest, const granules *g)
{
    dlc_pool *pool = nest->kernel->pool;
    uint32_t r = dlc_nest_axis(nest, dlc_expr_i64(pool, g->granule));
    dlc_expr element = element_of(nest, g->stage), number = dlc_expr_axis(pool, g->base);
    dlc_expr inner = at_point(nest, g, element, dlc_add(pool, point_of(nest, g, number, 0), dlc_expr_axis(pool, r)));
    return dlc_nest_stride(nest, inner, r) == 1 &&
           dlc_nest_is_vector(nest, at_point(nest, g, dlc_granule_load(pool, element, g->granule), point_of(nest, g, number, 0)));
}

static int find_granules(dlc_nest *nest, uint32_t loop, dlc_expr lo, int64_t count, granules *g)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_schedule_node *node = &nest->schedule->nodes.data[loop], *leaf = node + 1;
    if (!can_turn(nest) || nest->lane >= nest->kernel->axes.n || node->end != loop + 2 || leaf->kind != DLC_LOOP_LEAF ||
        leaf->row != DLC_DOT_NONE || nest->schedule->homes[leaf->stage].place != DLC_PLACE_SCRATCH)
        return 0;
    const dlc_stage *stage = &nest->kernel->stages.data[leaf->stage];
    const dlc_expr_node *load = dlc_node_of(pool, stage->value[0]);
    uint32_t bytes = dlc_dtype_bytes((dlc_dtype)stage->dtype[0]);
    *g = (granules){.stage = leaf->stage, .axis = node->axis, .granule = WORD_BYTES / bytes, .load = stage->value[0]};
    if (stage->combine != DLC_REDUCE_NONE || stage->buffer != DLC_NO_BUFFER || load->op != DLC_EXPR_LOAD || load->flags ||
        load->dtype != stage->dtype[0] || stage->dtype[0] == DLC_BOOL || dlc_load_guard(pool, stage->value[0]) || g->granule < 2 ||
        count % g->granule || dlc_expr_multiple(pool, dlc_nest_here(nest, lo), &nest->ranges) % g->granule)
        return 0;
    g->base = dlc_nest_axis(nest, nest->kernel->axes.data[node->axis].extent);
    g->words = dlc_granule_load(pool, g->load, g->granule);
    g->crosses = dlc_nest_stride(nest, g->load, node->axis) == 1;
    int is_of_stage = DLC_SOURCE_IS_STAGE(dlc_node_of(pool, g->load)->imm.id);
    if (!is_stored_so(nest, g) || (g->crosses && nest->mask && is_of_stage)) /* rows of lanes that are off are not there */
        return 0;
    return g->crosses ? count == (int64_t)g->granule * nest->width
                      : dlc_nest_is_vector(nest, at_point(nest, g, g->load, point_of(nest, g, dlc_expr_axis(pool, g->base), 0)));
}

int dlc_turn_fits_granules(dlc_nest *nest, uint32_t loop, dlc_expr lo, int64_t count)
{
    granules g;
    return find_granules(nest, loop, lo, count, &g);
}

static void store_words(dlc_nest *nest, const granules *g, int64_t number, dlc_val words)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_ids *axes = &nest->kernel->stages.data[g->stage].axes;
    dlc_expr index[DLC_MAX_INDEX], before = nest->with[g->axis];
    dlc_nest_replace(nest, g->axis, point_of(nest, g, dlc_addi(pool, dlc_expr_axis(pool, g->base), number), 0));
    for (uint32_t i = 0; i < axes->n; i++)
        index[i] = dlc_nest_here(nest, dlc_expr_axis(pool, axes->data[i]));
    dlc_nest_store_scratch(nest, g->stage, index, words, nest->width, g->granule);
    dlc_nest_replace(nest, g->axis, before);
}

static dlc_val word_arith(dlc_nest *nest, dlc_expr_op op, dlc_val a, dlc_val b)
{
    return nest->emit->arith(nest->emit, op, DLC_I32, DLC_I32, nest->width, (dlc_val[]){a, b});
}

/* The bits of the element at the point, in a word. */
static dlc_val bits_at(dlc_nest *nest, const granules *g, dlc_expr point)
{
    dlc_pool *pool = nest->kernel->pool;
    uint32_t bits = 8 * WORD_BYTES / g->granule;
    dlc_expr load = at_point(nest, g, g->load, point);
    dlc_dtype dtype = bits == 16 ? DLC_I16 : (dlc_dtype)dlc_node_of(pool, load)->dtype;
    dlc_val value = dlc_nest_value_at(nest, bits == 16 ? dlc_granule_load(pool, load, 1) : load);
    value = nest->emit->arith(nest->emit, DLC_EXPR_CAST, dtype, DLC_I32, nest->width, &value);
    return word_arith(nest, DLC_EXPR_AND, value, dlc_granule_word(nest, nest->width, (1u << bits) - 1));
}

static dlc_val words_at(dlc_nest *nest, const granules *g, int64_t number)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr granule = dlc_addi(pool, dlc_expr_axis(pool, g->base), number);
    dlc_val words = bits_at(nest, g, point_of(nest, g, granule, 0));
    for (uint32_t r = 1; r < g->granule; r++) {
        dlc_val by = dlc_granule_word(nest, nest->width, 8 * WORD_BYTES / g->granule * r);
        dlc_val bits = word_arith(nest, DLC_EXPR_SHL, bits_at(nest, g, point_of(nest, g, granule, r)), by);
        words = word_arith(nest, DLC_EXPR_OR, words, bits);
    }
    return words;
}

int dlc_turn_granules(dlc_nest *nest, uint32_t loop, dlc_expr lo, int64_t count)
{
    granules g;
    dlc_val rows[MOST_LANES], columns[MOST_LANES];
    if (!find_granules(nest, loop, lo, count, &g))
        return 0;
    dlc_expr first = dlc_floordiv(nest->kernel->pool, dlc_nest_here(nest, lo), dlc_expr_i64(nest->kernel->pool, g.granule));
    dlc_nest_bind(nest, g.base, dlc_nest_uniform(nest, first), 1);
    if (g.crosses) {
        read_rows(nest, g.words, g.axis, g.base, g.granule, 0, rows);
        nest->emit->turn(nest->emit, nest->width, rows, columns);
    }
    for (int64_t i = 0; i < count / g.granule; i++)
        store_words(nest, &g, i, g.crosses ? columns[i] : words_at(nest, &g, i));
    return 1;
}

/* --- stores --- */

/* What one stage stores of the rows so far. */
typedef struct {
    uint32_t stage, n;
    dlc_expr (*index)[DLC_MAX_RANK]; /* of the buffer, by row */
    dlc_expr *first;                 /* by row: where lane 0 lies, in elements */
    dlc_expr apart;                  /* from lane to lane */
    dlc_val *value;
    uint32_t *width;
    dlc_waiting **held; /* of woven rows */
} crossing;

struct dlc_turned_rows {
    uint32_t nrows, level;
    uint8_t are_woven; /* a lane's rows are neighbours, and the next lane's come behind them */
    dlc_vec(crossing) stages;
};

void dlc_turn_rows_begin(dlc_nest *nest, uint32_t nrows)
{
    if (nrows < LEAST_ROWS || !can_turn(nest) || nest->mask)
        return;
    nest->rows = dlc_new(nest->arena, dlc_turned_rows);
    nest->rows->nrows = nrows;
    nest->rows->level = nest->level;
}

int dlc_turn_woven_begin(dlc_nest *nest, uint32_t loop, int64_t count)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[loop], *leaf = node + 1;
    if (!nest->emit->store_woven || nest->rows || nest->mask || nest->lane >= nest->kernel->axes.n || count < 2 || count > DLC_MOST_WOVEN ||
        nest->width > MOST_WOVEN_LANES || node->end != loop + 2 || leaf->kind != DLC_LOOP_LEAF || leaf->row != DLC_DOT_NONE || leaf->nontemporal ||
        nest->kernel->stages.data[leaf->stage].combine != DLC_REDUCE_NONE)
        return 0;
    nest->rows = dlc_new(nest->arena, dlc_turned_rows);
    nest->rows->nrows = (uint32_t)count;
    nest->rows->level = nest->level;
    nest->rows->are_woven = 1;
    return 1;
}

static crossing *crossing_of(dlc_nest *nest, uint32_t stage)
{
    dlc_turned_rows *rows = nest->rows;
    for (uint32_t i = 0; i < rows->stages.n; i++)
        if (rows->stages.data[i].stage == stage)
            return &rows->stages.data[i];
    crossing new = {.stage = stage};
    new.index = dlc_arena_array(nest->arena, rows->nrows, sizeof *new.index, sizeof(dlc_expr));
    new.first = dlc_new_array(nest->arena, dlc_expr, rows->nrows);
    new.value = dlc_new_array(nest->arena, dlc_val, rows->nrows);
    new.width = dlc_new_array(nest->arena, uint32_t, rows->nrows);
    new.held = dlc_new_array(nest->arena, dlc_waiting *, rows->nrows);
    dlc_vec_push(nest->arena, &rows->stages, new);
    return &rows->stages.data[rows->stages.n - 1];
}

/* The next row, all of whose lanes may be one value. */
static dlc_waiting *hold_woven(dlc_nest *nest, const crossing *c, dlc_val value, uint32_t width)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_access access = {.mem = DLC_MEM_BUFFER, .mode = DLC_ACCESS_VECTOR, .width = nest->width};
    access.buffer = nest->kernel->stages.data[c->stage].buffer;
    access.dtype = nest->kernel->buffers.data[access.buffer].type.dtype;
    dlc_expr lanes = dlc_mul(pool, c->apart, dlc_expr_axis(pool, nest->lane_base));
    access.offset = dlc_nest_uniform(nest, dlc_expr_simplify(pool, dlc_add(pool, c->first[0], lanes), &nest->ranges));
    return nest->emit->hold(nest->emit, &access, width == nest->width ? value : nest->emit->splat(nest->emit, access.dtype, value, nest->width));
}

int dlc_turn_waits(dlc_nest *nest, uint32_t s, const dlc_expr *index, dlc_val value, uint32_t width)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_stage *stage = &nest->kernel->stages.data[s];
    const dlc_buffer *buffer = &nest->kernel->buffers.data[stage->buffer];
    dlc_expr apart, first;
    int64_t number;
    if (!nest->rows || nest->level != nest->rows->level || stage->update != DLC_UPDATE_NONE)
        return 0;
    if (nest->rows->are_woven ? width != nest->width && width != 1
                              : width != nest->width || !dlc_turns_rows(nest->emit->target, (dlc_dtype)buffer->type.dtype))
        return 0;
    dlc_expr offset = dlc_layout_offset(pool, &buffer->layout, buffer->type.rank, buffer->type.dims, index);
    offset = dlc_expr_simplify(pool, offset, &nest->ranges);
    if (!dlc_expr_linear(pool, offset, nest->lane, &apart, &first))
        return 0;
    int is_known = dlc_expr_is_int(pool, apart, &number);
    if (nest->rows->are_woven ? !is_known || number != nest->rows->nrows : is_known && number <= 1)
        return 0;
    crossing *c = crossing_of(nest, s);
    if (c->n == nest->rows->nrows || (c->n && c->apart != apart))
        return 0;
    for (uint32_t d = 0; d < buffer->type.rank; d++)
        c->index[c->n][d] = index[d];
    c->apart = apart;
    c->first[c->n] = first;
    if (nest->rows->are_woven)
        c->held[c->n] = hold_woven(nest, c, value, width);
    c->width[c->n] = width;
    c->value[c->n++] = value;
    return 1;
}

/* How far behind the first row this one lies. */
static dlc_expr distance_of(dlc_nest *nest, const crossing *c, uint32_t r)
{
    return dlc_expr_simplify(nest->kernel->pool, dlc_sub(nest->kernel->pool, c->first[r], c->first[0]), &nest->ranges);
}

/* That each row lies behind the one before it, but for those behind the last one there is, which repeat it; 0: it is known not to. */
static dlc_expr are_together(dlc_nest *nest, const crossing *c, uint32_t nrows)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr all = dlc_expr_bool(pool, c->n == nrows), last = c->n ? distance_of(nest, c, c->n - 1) : 0;
    for (uint32_t r = 0; r < c->n; r++)
        all = dlc_and(pool, all, dlc_eq(pool, distance_of(nest, c, r), dlc_min(pool, dlc_expr_i64(pool, r), last)));
    all = dlc_expr_simplify(pool, all, &nest->ranges);
    return all == dlc_expr_bool(pool, 0) ? 0 : all;
}

static void store_one_by_one(dlc_nest *nest, const crossing *c)
{
    for (uint32_t r = 0; r < c->n; r++)
        dlc_nest_store(nest, c->stage, c->index[r], c->value[r], c->width[r]);
}

/* The rows from `from` on, as many as there are lanes or as are left. */
static void store_turned(dlc_nest *nest, const crossing *c, uint32_t from)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_emitter *emit = nest->emit;
    uint32_t n = c->n - from < nest->width ? c->n - from : nest->width;
    dlc_val rows[MOST_LANES], columns[MOST_LANES];
    for (uint32_t r = 0; r < nest->width; r++)
        rows[r] = c->value[from + (r < n ? r : n - 1)];
    emit->turn(emit, nest->width, rows, columns);
    dlc_access access = {.mem = DLC_MEM_BUFFER, .mode = DLC_ACCESS_VECTOR, .width = nest->width};
    access.buffer = nest->kernel->stages.data[c->stage].buffer;
    access.dtype = nest->kernel->buffers.data[access.buffer].type.dtype;
    dlc_expr there = dlc_expr_simplify(pool, dlc_addi(pool, distance_of(nest, c, c->n - 1), 1 - (int64_t)from), &nest->ranges);
    if (n < nest->width || there != dlc_expr_i64(pool, c->n - from))
        access.mask = dlc_lanes_below(nest, dlc_nest_uniform(nest, there), nest->width);
    for (uint32_t l = 0; l < nest->width; l++) {
        dlc_expr at = dlc_add(pool, dlc_addi(pool, c->first[0], from), dlc_muli(pool, c->apart, l));
        access.offset = dlc_nest_uniform(nest, dlc_expr_simplify(pool, at, &nest->ranges));
        emit->store(emit, &access, columns[l]);
    }
}

static void store_turned_rows(dlc_nest *nest, const crossing *c)
{
    for (uint32_t from = 0; from < c->n; from += nest->width)
        store_turned(nest, c, from);
}

static void store_if(dlc_nest *nest, const crossing *c, dlc_expr condition, void (*store)(dlc_nest *, const crossing *))
{
    nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, condition));
    dlc_nest_enter(nest);
    store(nest, c);
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
}

void dlc_turn_rows_end(dlc_nest *nest)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_turned_rows *rows = nest->rows;
    nest->rows = NULL;
    for (uint32_t i = 0; rows && i < rows->stages.n; i++) {
        const crossing *c = &rows->stages.data[i];
        dlc_expr together = are_together(nest, c, rows->nrows);
        if (together == dlc_expr_bool(pool, 1) && rows->are_woven) {
            nest->emit->store_woven(nest->emit, c->n, c->held);
        } else if (together == dlc_expr_bool(pool, 1)) {
            store_turned_rows(nest, c);
        } else if (together && !rows->are_woven) {
            store_if(nest, c, together, store_turned_rows);
            store_if(nest, c, dlc_expr1(pool, DLC_EXPR_NOT, together), store_one_by_one);
        } else {
            store_one_by_one(nest, c);
        }
    }
}

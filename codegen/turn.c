/*
 * Loads that cross: neighbours in memory are points of an unrolled loop, while lanes around it stride. Where the loop has as many points
 * as there are lanes, they are read as rows, a vector each, and the square is turned in registers; its columns are then known values of
 * the loads, which nothing gathers any more.
 *
 * Stores that cross: neighbours in memory are rows of a register tile, while its vectors stride. They wait for all rows of a vector, which
 * are turned then, and a line of memory is written once instead of once for every row. Where only the run knows whether the rows lie
 * together (they may go on in the next image), it asks.
 */
#include "codegen/nest.h"

enum { LEAST_LANES = 4, MOST_LANES = 32, LEAST_ROWS = 4 };

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

/* The load's rows: for each lane, its points along the loop, below hi (0: all); for lanes that are off, those of the last one. */
static void read_rows(dlc_nest *nest, dlc_expr load, uint32_t axis, uint32_t base, dlc_expr hi, dlc_val *rows)
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
        with[axis] = dlc_expr_axis(pool, along);
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
        read_rows(nest, loads[i], axis, base, hi, rows);
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

/* --- stores --- */

/* What one stage stores of the rows so far. */
typedef struct {
    uint32_t stage, n;
    dlc_expr (*index)[DLC_MAX_RANK]; /* of the buffer, by row */
    dlc_expr *first;                 /* by row: where lane 0 lies, in elements */
    dlc_expr apart;                  /* from lane to lane */
    dlc_val *value;
} crossing;

struct dlc_turned_rows {
    uint32_t nrows, level;
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
    dlc_vec_push(nest->arena, &rows->stages, new);
    return &rows->stages.data[rows->stages.n - 1];
}

int dlc_turn_waits(dlc_nest *nest, uint32_t s, const dlc_expr *index, dlc_val value, uint32_t width)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_stage *stage = &nest->kernel->stages.data[s];
    const dlc_buffer *buffer = &nest->kernel->buffers.data[stage->buffer];
    dlc_expr apart, first;
    int64_t number;
    if (!nest->rows || nest->level != nest->rows->level || width != nest->width || stage->update != DLC_UPDATE_NONE ||
        dlc_dtype_bytes(buffer->type.dtype) != 4)
        return 0;
    dlc_expr offset = dlc_layout_offset(pool, &buffer->layout, buffer->type.rank, buffer->type.dims, index);
    offset = dlc_expr_simplify(pool, offset, &nest->ranges);
    if (!dlc_expr_linear(pool, offset, nest->lane, &apart, &first) || (dlc_expr_is_int(pool, apart, &number) && number <= 1))
        return 0;
    crossing *c = crossing_of(nest, s);
    if (c->n == nest->rows->nrows || (c->n && c->apart != apart))
        return 0;
    for (uint32_t d = 0; d < buffer->type.rank; d++)
        c->index[c->n][d] = index[d];
    c->apart = apart;
    c->first[c->n] = first;
    c->value[c->n++] = value;
    return 1;
}

/* That each row lies behind the one before it; 0: it is known not to. */
static dlc_expr are_together(dlc_nest *nest, const crossing *c, uint32_t nrows)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr all = dlc_expr_bool(pool, c->n == nrows);
    for (uint32_t r = 1; r < c->n; r++) {
        dlc_expr distance = dlc_expr_simplify(pool, dlc_sub(pool, c->first[r], c->first[0]), &nest->ranges);
        all = dlc_and(pool, all, dlc_eq(pool, distance, dlc_expr_i64(pool, r)));
    }
    all = dlc_expr_simplify(pool, all, &nest->ranges);
    return all == dlc_expr_bool(pool, 0) ? 0 : all;
}

static void store_one_by_one(dlc_nest *nest, const crossing *c)
{
    for (uint32_t r = 0; r < c->n; r++)
        dlc_nest_store(nest, c->stage, c->index[r], c->value[r], nest->width);
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
    if (n < nest->width)
        access.mask = dlc_lanes_below(nest, dlc_nest_i64(nest, n), nest->width);
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
        if (together == dlc_expr_bool(pool, 1)) {
            store_turned_rows(nest, c);
        } else if (together) {
            store_if(nest, c, together, store_turned_rows);
            store_if(nest, c, dlc_expr1(pool, DLC_EXPR_NOT, together), store_one_by_one);
        } else {
            store_one_by_one(nest, c);
        }
    }
}

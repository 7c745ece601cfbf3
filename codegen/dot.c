/*
 * A register tile of a contraction, for every target whose vectors are values: the loops around it have left rows and columns
 * open.
 *
 *     acc[rows][vectors] = 0
 *     for k: b = vectors of B;  for each row: acc += splat(A[row][k]) * b
 *     store, or let `as` run over the elements
 *
 * Of a padded image, points of the outer reduced axes at which every row is padding are left out (`skip`): a test stands inside their
 * loops. Loops over the reduced axes are merged where every factor stays linear: fewer, longer loops. Where the leaf's sum is one of
 * partial sums, each begins at zero and is added to the total when it is complete: errors grow with the terms of a part and the
 * number of parts, not with all terms. Totals are variables that the inner loops do not touch; where registers do not hold them,
 * too, they lie in memory, and the first part, whose sum is the total as it is, has none.
 *
 * A row of dot.def with a granule goes by so many points of the innermost reduced axis at once: a value is the bits of a granule.
 * Where there is no instruction it is taken apart by shifts. What the axis leaves over, fewer than a granule, is multiplied
 * point by point with the factors' casts, so nothing behind the end is read and no padding is counted on.
 */
#include "codegen/dot.h"

#include <assert.h>

typedef dlc_dot_tile dot;

dot dlc_dot_at(dlc_nest *nest, uint32_t node)
{
    const dlc_schedule_node *leaf = &nest->schedule->nodes.data[node];
    dot d = {.nest = nest, .pool = nest->kernel->pool, .leaf = leaf, .s = leaf->stage};
    d.stage = &nest->kernel->stages.data[d.s];
    d.state = &nest->states[d.s];
    d.dtype = d.stage->dtype[0];
    d.width = nest->registers[leaf->columns]->lanes ? nest->registers[leaf->columns]->lanes : dlc_schedule_dot_lanes(nest->schedule, node);
    d.apart = dlc_schedule_is_matrix(nest->schedule, node) ? DLC_FRAGMENT : d.width;
    d.is_dealt = nest->schedule->threads != 0;
    d.is_tile = (uint8_t)dlc_schedule_is_tile(nest->schedule, node);
    d.rows = leaf->rows == DLC_NO_AXIS ? NULL : nest->registers[leaf->rows];
    d.columns = nest->registers[leaf->columns];
    d.nrows = d.rows ? d.rows->n : 1;
    d.nvectors = d.columns->n;
    d.row_before = d.rows ? nest->with[leaf->rows] : 0;
    d.column_before = nest->with[leaf->columns];
    d.row = &dlc_dots[leaf->row];
    return d;
}

/* --- factors --- */

static void factors_of(const dot *d, dlc_expr left, dlc_expr right, dlc_expr **a, dlc_expr **b)
{
    *a = dlc_new_array(d->nest->arena, dlc_expr, d->nrows);
    for (uint32_t r = 0; r < d->nrows; r++) {
        dlc_dot_at_row(d, r);
        (*a)[r] = dlc_nest_here(d->nest, left);
    }
    dlc_dot_leave_point(d);
    *b = dlc_dot_factors_at_columns(d, right, 0);
}

static int is_filled(const dot *d, dlc_expr factor)
{
    const dlc_expr_node *node = dlc_node_of(d->pool, factor);
    return node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id) &&
           DLC_SOURCE_INDEX(node->imm.id) < DLC_FIRST_PSEUDO &&
           dlc_schedule_is_filled(d->nest->schedule, DLC_SOURCE_INDEX(node->imm.id));
}

/* Rows behind the end read the last one: nobody has written others. */
static const dlc_register_axis *clamped_rows(const dot *d)
{
    dlc_nest *nest = d->nest;
    dlc_register_axis *rows = dlc_arena_copy(nest->arena, d->rows, sizeof *d->rows);
    for (uint32_t r = 0; r < rows->n; r++) {
        dlc_expr row = dlc_min(d->pool, rows->points[r], dlc_addi(d->pool, rows->end, -1));
        uint32_t clamped = dlc_nest_axis(nest, nest->kernel->axes.data[d->leaf->rows].extent);
        dlc_nest_bind(nest, clamped, dlc_nest_uniform(nest, dlc_dot_simplified(d, row)), 1);
        rows->points[r] = dlc_dot_axis(d, clamped);
    }
    return rows;
}

int dlc_dot_find_operands(dot *d)
{
    dlc_dot_factors factors;
    if (!dlc_dot_factors_of(d->nest->kernel, d->leaf, d->nest->arena, &factors))
        return 0;
    d->scale = factors.scale;
    d->left = factors.rows;
    d->right = factors.columns;
    d->operands = factors.operands;
    return 1;
}

static void find_factors(dot *d)
{
    int found = dlc_dot_find_operands(d);
    assert(found); /* verified */
    (void)found;
    const dlc_register_axis *rows = d->rows;
    if (d->is_dealt && rows && rows->end && !is_filled(d, d->left))
        d->rows = clamped_rows(d);
    factors_of(d, d->left, d->right, &d->a, &d->b);
    d->ahead = d->leaf->ahead ? dlc_dot_factors_ahead(d, d->right) : NULL;
    d->rows = rows;
}

static void add_loop(dot *d, uint32_t axis, dlc_expr low, dlc_expr end, dlc_expr whole, int64_t step, int64_t most)
{
    dlc_vec_push(d->nest->arena, &d->loops, axis);
    dlc_vec_push(d->nest->arena, &d->lows, low);
    dlc_vec_push(d->nest->arena, &d->extents, end);
    dlc_vec_push(d->nest->arena, &d->wholes, whole);
    dlc_vec_push(d->nest->arena, &d->steps, step);
    dlc_vec_push(d->nest->arena, &d->mosts, most);
}

static void substitute_factors(dot *d, const dlc_expr *with, uint32_t naxes)
{
    for (uint32_t r = 0; r < d->nrows; r++)
        d->a[r] = dlc_dot_simplified(d, dlc_expr_substitute(d->pool, d->a[r], with, naxes));
    for (uint32_t v = 0; v < d->nvectors; v++) {
        d->b[v] = dlc_dot_simplified(d, dlc_expr_substitute(d->pool, d->b[v], with, naxes));
        if (d->ahead)
            d->ahead[v] = dlc_dot_simplified(d, dlc_expr_substitute(d->pool, d->ahead[v], with, naxes));
    }
}

/* The loop over an axis with whose tiles partial sums begin; in it one that counts within the tile. */
static void add_cut_loops(dot *d, uint32_t axis, dlc_expr low, dlc_expr end, int64_t most)
{
    dlc_nest *nest = d->nest;
    dlc_expr whole = nest->kernel->axes.data[axis].extent, part = dlc_expr_i64(d->pool, d->leaf->part);
    int is_stepped = dlc_expr_multiple(d->pool, dlc_dot_simplified(d, low), &nest->ranges) % d->leaf->part == 0;
    uint32_t first = d->leaf->part == 1 ? axis : dlc_nest_stepped_axis(nest, whole, is_stepped ? d->leaf->part : 1);
    add_loop(d, first, low, end, whole, d->leaf->part, most);
    d->nouter = d->loops.n;
    if (first == axis)
        return;
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n + 1);
    uint32_t within = dlc_nest_axis(nest, part);
    int is_whole = dlc_expr_multiple(d->pool, dlc_dot_simplified(d, dlc_sub(d->pool, end, low)), &nest->ranges) % d->leaf->part == 0;
    dlc_expr rest = dlc_sub(d->pool, end, dlc_dot_axis(d, first));
    add_loop(d, within, dlc_expr_i64(d->pool, 0), is_whole ? part : dlc_min(d->pool, part, rest), part, 1, d->leaf->part);
    with[axis] = dlc_add(d->pool, dlc_dot_axis(d, first), dlc_dot_axis(d, within));
    substitute_factors(d, with, nest->axes.n);
}

/* Points of a reduced axis that the loops around leave to the tile. */
static int64_t most_points(const dot *d, uint32_t axis)
{
    uint32_t loop = dlc_schedule_loop_over(d->nest->schedule, (uint32_t)(d->leaf - d->nest->schedule->nodes.data), axis);
    int64_t extent;
    if (d->nest->tiles[axis].last && loop != DLC_ROOT_NODE)
        return d->nest->schedule->nodes.data[loop].tile;
    return dlc_expr_is_int(d->pool, d->nest->kernel->axes.data[axis].extent, &extent) ? extent : -1;
}

static void find_loops(dot *d)
{
    dlc_nest *nest = d->nest;
    for (uint32_t i = 0; i < d->leaf->over.n; i++) {
        uint32_t axis = d->leaf->over.data[i];
        const dlc_tile *tile = &nest->tiles[axis];
        dlc_expr whole = nest->kernel->axes.data[axis].extent, low = tile->last ? tile->first : dlc_expr_i64(d->pool, 0);
        int64_t most = most_points(d, axis);
        if (d->leaf->part && d->leaf->cut == axis)
            add_cut_loops(d, axis, low, tile->last ? tile->last : whole, most);
        else
            add_loop(d, axis, low, tile->last ? tile->last : whole, whole, 1, most);
    }
}

/* Loops of a thread's tile count from 0: over all of an open tile where both factors are filled behind the end. */
static void find_dealt_loops(dot *d)
{
    dlc_nest *nest = d->nest;
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n + d->leaf->over.n);
    int is_whole = is_filled(d, d->left) && is_filled(d, d->right);
    uint32_t naxes = nest->axes.n;
    for (uint32_t i = 0; i < d->leaf->over.n; i++) {
        uint32_t axis = d->leaf->over.data[i];
        const dlc_tile *tile = &nest->tiles[axis];
        dlc_expr first = tile->last ? tile->first : dlc_expr_i64(d->pool, 0), size = nest->kernel->axes.data[axis].extent;
        uint32_t loop = dlc_schedule_loop_over(nest->schedule, nest->node, axis);
        if (tile->last && is_whole)
            size = dlc_expr_i64(d->pool, nest->schedule->nodes.data[loop].tile);
        else if (tile->last)
            size = dlc_dot_simplified(d, dlc_sub(d->pool, tile->last, tile->first));
        uint32_t step = dlc_nest_axis(nest, size);
        with[axis] = dlc_add(d->pool, first, dlc_dot_axis(d, step));
        add_loop(d, step, dlc_expr_i64(d->pool, 0), size, size, 1, -1);
    }
    substitute_factors(d, with, naxes);
}

/* The factors with two reduced axes as digits of one; false: one of them is not linear in it. */
static int merged_factors(const dot *d, uint32_t merged, const dlc_expr *with, dlc_expr *factors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        factors[i] = dlc_dot_simplified(d, dlc_expr_substitute(d->pool, factors[i], with, d->nest->axes.n));
        if (!dlc_nest_is_linear(d->nest, factors[i], merged))
            return 0;
    }
    return 1;
}

/* One axis in place of the two innermost reduced ones where every factor stays linear. */
static int merge_loops(dot *d)
{
    uint32_t n = d->loops.n;
    dlc_expr inner = n ? d->extents.data[n - 1] : 0;
    dlc_expr zero = dlc_expr_i64(d->pool, 0);
    if (n < d->nouter + 2 || n < d->leaf->nskipped + 2 || d->lows.data[n - 1] != zero || d->lows.data[n - 2] != zero ||
        inner != d->wholes.data[n - 1])
        return 0;
    dlc_expr whole = dlc_mul(d->pool, d->wholes.data[n - 2], inner);
    uint32_t merged = dlc_nest_axis(d->nest, whole);
    dlc_expr *with = dlc_new_array(d->nest->arena, dlc_expr, d->nest->axes.n);
    dlc_expr *a = dlc_arena_copy(d->nest->arena, d->a, d->nrows * sizeof *d->a);
    dlc_expr *b = dlc_arena_copy(d->nest->arena, d->b, d->nvectors * sizeof *d->b);
    dlc_expr *ahead = d->ahead ? dlc_arena_copy(d->nest->arena, d->ahead, d->nvectors * sizeof *d->ahead) : NULL;
    with[d->loops.data[n - 2]] = dlc_floordiv(d->pool, dlc_dot_axis(d, merged), inner);
    with[d->loops.data[n - 1]] = dlc_mod(d->pool, dlc_dot_axis(d, merged), inner);
    if (!merged_factors(d, merged, with, a, d->nrows) || !merged_factors(d, merged, with, b, d->nvectors))
        return 0;
    d->a = a;
    d->b = b;
    d->ahead = ahead && merged_factors(d, merged, with, ahead, d->nvectors) ? ahead : NULL;
    d->loops.data[n - 2] = merged;
    d->extents.data[n - 2] = dlc_mul(d->pool, d->extents.data[n - 2], inner);
    d->wholes.data[n - 2] = whole;
    d->mosts.data[n - 2] = d->mosts.data[n - 2] < 0 || d->mosts.data[n - 1] < 0 ? -1 : d->mosts.data[n - 2] * d->mosts.data[n - 1];
    d->loops.n = n - 1;
    return 1;
}

/* --- granules --- */

static void to_granules(const dot *d, const dlc_expr *with, dlc_expr *loads, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        loads[i] = dlc_dot_simplified(d, dlc_granule_load(d->pool, dlc_expr_substitute(d->pool, loads[i], with, d->nest->axes.n), d->row->granule));
}

/* Codes of few bits: those of a granule, once its bytes are loaded. */
static void unpack_granules(const dot *d, const dlc_expr *with)
{
    dlc_expr shift = dlc_expr_substitute(d->pool, dlc_nest_here(d->nest, d->operands.shift), with, d->nest->axes.n);
    for (uint32_t v = 0; v < d->nvectors; v++)
        d->b[v] = dlc_dot_simplified(d, dlc_granule_codes(d->pool, d->b[v], shift, d->operands.mask));
}

/* Granules lie together, as the verifier found them to. */
static int has_granules(const dot *d, const dlc_expr *with, uint32_t within)
{
    dlc_expr a = dlc_dot_simplified(d, dlc_expr_substitute(d->pool, d->a[0], with, d->nest->axes.n));
    dlc_expr b = dlc_dot_simplified(d, dlc_expr_substitute(d->pool, d->b[0], with, d->nest->axes.n));
    return dlc_nest_stride(d->nest, a, within) == 1 && dlc_nest_stride(d->nest, b, within) == 1 &&
           dlc_nest_stride(d->nest, b, d->state->lanes) == d->row->granule;
}

/* The innermost loop goes by granules; what is behind the last whole one goes by points. */
static void find_granules(dot *d)
{
    dlc_nest *nest = d->nest;
    uint32_t last = d->loops.n - 1, axis = d->loops.data[last];
    int64_t granule = d->row->granule;
    dlc_expr by = dlc_expr_i64(d->pool, granule), end = dlc_dot_simplified(d, d->extents.data[last]);
    uint32_t number = dlc_nest_axis(nest, dlc_addi(d->pool, dlc_floordiv(d->pool, nest->kernel->axes.data[axis].extent, by), 1));
    uint32_t within = dlc_nest_axis(nest, by);
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    d->points_a = d->a;
    d->points_b = d->b;
    factors_of(d, d->operands.rows, d->operands.columns, &d->a, &d->b);
    d->ahead = d->leaf->ahead ? dlc_dot_factors_ahead(d, d->operands.columns) : NULL;
    with[axis] = dlc_add(d->pool, dlc_muli(d->pool, dlc_dot_axis(d, number), granule), dlc_dot_axis(d, within));
    int found = has_granules(d, with, within);
    assert(found);
    (void)found;
    with[axis] = dlc_muli(d->pool, dlc_dot_axis(d, number), granule);
    to_granules(d, with, d->a, d->nrows);
    to_granules(d, with, d->b, d->nvectors);
    if (d->operands.mask)
        unpack_granules(d, with);
    if (d->ahead)
        to_granules(d, with, d->ahead, d->nvectors);
    if (dlc_expr_multiple(d->pool, end, &nest->ranges) % granule) {
        d->rest = dlc_dot_simplified(d, dlc_muli(d->pool, dlc_floordiv(d->pool, end, by), granule));
        d->end = end;
    }
    d->loops.data[last] = number;
    d->lows.data[last] = dlc_floordiv(d->pool, d->lows.data[last], by);
    d->extents.data[last] = dlc_floordiv(d->pool, end, by);
    d->wholes.data[last] = dlc_floordiv(d->pool, d->wholes.data[last], by);
    d->mosts.data[last] = d->mosts.data[last] < 0 ? -1 : (d->mosts.data[last] + granule - 1) / granule;
}

static dlc_val word(const dot *d, uint32_t bits)
{
    return dlc_granule_word(d->nest, d->width, bits);
}

static dlc_val arith2(const dot *d, dlc_expr_op op, dlc_dtype dtype, dlc_val a, dlc_val b)
{
    return d->nest->emit->arith(d->nest->emit, op, dtype, dtype, d->width, (dlc_val[]){a, b});
}

/* acc + a * b by granules, in the row's order of its operands. */
static dlc_val step(const dot *d, dlc_val a, dlc_val b, dlc_val acc)
{
    dlc_emitter *emit = d->nest->emit;
    dlc_val result = emit->dot_step ? emit->dot_step(emit, (dlc_dot)d->leaf->row, d->width, a, b, acc) : NULL;
    if (result)
        return result;
    for (uint32_t i = 0; i < d->row->granule; i++) {
        uint32_t at = d->row->order == DLC_ORDER_PAIRS ? d->row->granule - 1u - i : i;
        acc = dlc_granule_multiply(d->nest, (dlc_dot)d->leaf->row, d->width, a, b, at, acc);
    }
    return acc;
}

/* What a changed sign adds to a factor of the rows, times the columns' sum, is 128 times that: of unsigned factors taken off. */
static void start_sums(dot *d)
{
    if (!d->operands.is_flipped)
        return;
    d->sums = dlc_arena_array(d->nest->arena, d->nvectors, sizeof *d->sums, sizeof(void *));
    for (uint32_t v = 0; v < d->nvectors; v++) {
        d->sums[v] = d->nest->emit->var_new(d->nest->emit, DLC_I32, d->width);
        d->nest->emit->var_set(d->nest->emit, d->sums[v], word(d, 0));
    }
}

static dlc_val ordered_step(const dot *d, dlc_val rows, dlc_val columns, dlc_val acc)
{
    return d->operands.is_swapped ? step(d, columns, rows, acc) : step(d, rows, columns, acc);
}

static void multiply_granules(const dot *d)
{
    dlc_nest *nest = d->nest;
    dlc_val b[DLC_MAX_VECTORS];
    for (uint32_t v = 0; v < d->nvectors; v++) {
        nest->mask = d->columns->masks[v];
        b[v] = dlc_granule_value(nest, (dlc_dot)d->leaf->row, d->b[v], d->operands.columns);
        if (d->sums)
            nest->emit->var_set(nest->emit, d->sums[v],
                                ordered_step(d, word(d, 0x01010101), b[v], nest->emit->var_get(nest->emit, d->sums[v])));
    }
    nest->mask = NULL;
    for (uint32_t r = 0; r < d->nrows; r++) {
        dlc_val a = dlc_granule_value(nest, (dlc_dot)d->leaf->row, d->a[r], d->operands.rows);
        if (d->operands.is_flipped)
            a = arith2(d, DLC_EXPR_XOR, DLC_I32, a, word(d, 0x80808080u));
        for (uint32_t v = 0; v < d->nvectors; v++) {
            dlc_var acc = *dlc_dot_accumulator(d, r, v);
            nest->emit->var_set(nest->emit, acc, ordered_step(d, a, b[v], nest->emit->var_get(nest->emit, acc)));
        }
    }
}

static void put_sums_right(const dot *d)
{
    enum { LOG2_128 = 7 };
    int was_signed = dlc_node_of(d->pool, d->operands.rows)->dtype == DLC_I8;
    dlc_emitter *emit = d->nest->emit;
    for (uint32_t v = 0; v < d->nvectors && d->sums; v++) {
        dlc_val by = arith2(d, DLC_EXPR_SHL, DLC_I32, emit->var_get(emit, d->sums[v]), word(d, LOG2_128));
        for (uint32_t r = 0; r < d->nrows; r++) {
            dlc_var acc = *dlc_dot_accumulator(d, r, v);
            emit->var_set(emit, acc,
                          arith2(d, was_signed ? DLC_EXPR_SUB : DLC_EXPR_ADD, DLC_I32, emit->var_get(emit, acc), by));
        }
    }
}

/* --- the sum --- */

/* The point of element (r, v), by axis of the stage. */
static void point_of(const dot *d, dlc_expr *index)
{
    for (uint32_t i = 0; i < d->stage->axes.n; i++)
        index[i] = dlc_nest_here(d->nest, dlc_dot_axis(d, d->stage->axes.data[i]));
}

/* The loops around the leaf that cut its sum are at their first iterations; 0: none cuts it. */
static dlc_expr is_first(const dot *d, uint32_t node)
{
    const dlc_schedule *schedule = d->nest->schedule;
    uint32_t fold = schedule->homes[d->s].fold;
    dlc_expr first = 0, position;
    if (fold == DLC_ROOT_NODE)
        return 0;
    for (uint32_t n = dlc_schedule_parent(schedule, node); n != DLC_ROOT_NODE && n >= fold; n = dlc_schedule_parent(schedule, n)) {
        uint32_t axis = schedule->nodes.data[n].axis;
        if (!dlc_ids_find(&d->stage->reduce, axis, NULL))
            continue;
        position = d->nest->tiles[axis].last ? d->nest->tiles[axis].first : dlc_dot_axis(d, axis);
        first = dlc_and(d->pool, first, dlc_eq(d->pool, position, dlc_expr_i64(d->pool, 0)));
    }
    return first;
}

/* Zero, or what the iterations before have left in scratch. */
static dlc_val start_of(const dot *d, uint32_t r, uint32_t v, dlc_val first)
{
    dlc_nest *nest = d->nest;
    dlc_val zero = dlc_nest_identity(nest, DLC_REDUCE_SUM, d->dtype, 0, d->width);
    dlc_expr index[DLC_MAX_RANK];
    if (!first)
        return zero;
    dlc_dot_enter_lanes(d, d->columns->masks[v]);
    dlc_dot_at_row(d, r);
    dlc_dot_at_column(d, v);
    point_of(d, index);
    dlc_val before = dlc_nest_value_at(nest, dlc_nest_reload(nest, d->s, index));
    dlc_dot_leave_point(d);
    dlc_val condition = nest->emit->splat(nest->emit, DLC_BOOL, first, d->width);
    before = nest->emit->arith(nest->emit, DLC_EXPR_SELECT, d->dtype, d->dtype, d->width, (dlc_val[]){condition, zero, before});
    dlc_dot_leave_lanes(nest);
    return before;
}

/* Returns whether all begin at zero. */
static int start(const dot *d, uint32_t node)
{
    dlc_nest *nest = d->nest;
    dlc_expr condition = d->is_dealt ? 0 : is_first(d, node);
    dlc_val first = condition ? dlc_nest_uniform(nest, dlc_dot_simplified(d, condition)) : NULL;
    for (uint32_t r = 0; r < d->nrows; r++)
        for (uint32_t v = 0; v < d->nvectors; v++) {
            *dlc_dot_accumulator(d, r, v) = nest->emit->var_new(nest->emit, d->dtype, d->width);
            nest->emit->var_set(nest->emit, *dlc_dot_accumulator(d, r, v), start_of(d, r, v, first));
        }
    return !first;
}

/* A thread's sums stay in registers while loops outside cut them. */
static int is_kept_between(const dot *d)
{
    return d->is_dealt && d->nest->schedule->homes[d->s].fold != DLC_ROOT_NODE;
}

static void multiply(const dot *d, const dlc_expr *rows, const dlc_expr *columns)
{
    dlc_nest *nest = d->nest;
    dlc_val b[DLC_MAX_VECTORS];
    for (uint32_t v = 0; v < d->nvectors; v++) {
        nest->mask = d->columns->masks[v];
        b[v] = dlc_nest_value_at(nest, columns[v]);
    }
    nest->mask = NULL;
    for (uint32_t r = 0; r < d->nrows; r++) {
        dlc_val a = dlc_nest_value_at(nest, rows[r]);
        for (uint32_t v = 0; v < d->nvectors; v++) {
            dlc_val args[] = {a, b[v], nest->emit->var_get(nest->emit, *dlc_dot_accumulator(d, r, v))};
            nest->emit->var_set(nest->emit, *dlc_dot_accumulator(d, r, v),
                                nest->emit->arith(nest->emit, DLC_EXPR_MULADD, d->dtype, d->dtype, d->width, args));
        }
    }
}

/* How many points of the innermost axis are written out: those of a short one along which the columns' factor is computed in a way of
 * its own, such as the part of a byte that codes are. 1: it has a loop. */
static int64_t written_out(const dot *d)
{
    enum { MOST = 8 };
    uint32_t last = d->loops.n - 1;
    int64_t n;
    dlc_expr factor = d->b[0];
    while (dlc_node_of(d->pool, factor)->op == DLC_EXPR_CAST)
        factor = dlc_arg(d->pool, factor, 0);
    int is_free = d->row->granule == 1 && !d->is_dealt && !d->rest && !d->ahead && d->loops.n > d->nouter && d->loops.n > d->leaf->nskipped;
    if (!is_free || !dlc_expr_is_int(d->pool, dlc_dot_simplified(d, d->extents.data[last]), &n) || n > MOST ||
        d->lows.data[last] != dlc_expr_i64(d->pool, 0) || !dlc_expr_uses_axis(d->pool, d->b[0], d->loops.data[last]))
        return 1;
    return dlc_node_of(d->pool, factor)->op == DLC_EXPR_LOAD ? 1 : n;
}

static void multiply_written_out(dot *d, int64_t n)
{
    dlc_expr *with = dlc_new_array(d->nest->arena, dlc_expr, d->nest->axes.n), *a = d->a, *b = d->b;
    for (int64_t i = 0; i < n; i++) {
        with[d->loops.data[d->loops.n]] = dlc_expr_i64(d->pool, i);
        d->a = dlc_arena_copy(d->nest->arena, a, d->nrows * sizeof *a);
        d->b = dlc_arena_copy(d->nest->arena, b, d->nvectors * sizeof *b);
        substitute_factors(d, with, d->nest->axes.n);
        multiply(d, d->a, d->b);
    }
}

static void open_loop(const dot *d, uint32_t i)
{
    dlc_nest_loop(d->nest, d->loops.data[i], dlc_nest_uniform(d->nest, dlc_dot_simplified(d, d->lows.data[i])),
                  dlc_nest_uniform(d->nest, dlc_dot_simplified(d, d->extents.data[i])), d->steps.data[i]);
}

/* Closes what is done on a condition. */
static void end_if(const dot *d)
{
    dlc_nest_leave(d->nest);
    d->nest->emit->if_end(d->nest->emit);
}

/* --- partial sums --- */

static int keeps_totals(const dot *d)
{
    const dlc_target *target = d->nest->emit->target;
    uint32_t of_vector = (d->width * dlc_dtype_bytes(d->dtype) + target->vector_bytes - 1) / target->vector_bytes;
    return dlc_dot_keeps_totals(target, d->nrows, d->nvectors * of_vector);
}

/* is_zero: accumulators begin so. */
static void declare_totals(dot *d, int is_zero)
{
    uint32_t n = d->nrows * d->nvectors;
    dlc_emitter *emit = d->nest->emit;
    if (!d->nouter)
        return;
    int is_aside = emit->var_aside && !keeps_totals(d);
    d->skips_first = is_aside && is_zero;
    d->totals = dlc_arena_array(d->nest->arena, n, sizeof *d->totals, sizeof(void *));
    for (uint32_t i = 0; i < n; i++)
        d->totals[i] = (is_aside ? emit->var_aside : emit->var_new)(emit, d->dtype, d->width);
}

/* What is done with totals in memory, but for the first part, whose sum is the total as it is. */
static void begin_behind_first(const dot *d)
{
    dlc_expr is_behind = dlc_expr_bool(d->pool, 0);
    if (!d->skips_first)
        return;
    for (uint32_t i = 0; i < d->nouter; i++)
        is_behind = dlc_expr2(d->pool, DLC_EXPR_OR, is_behind, dlc_lt(d->pool, d->lows.data[i], dlc_dot_axis(d, d->loops.data[i])));
    d->nest->emit->if_begin(d->nest->emit, dlc_nest_uniform(d->nest, dlc_dot_simplified(d, is_behind)));
    dlc_nest_enter(d->nest);
}

static void end_behind_first(const dot *d)
{
    if (d->skips_first)
        end_if(d);
}

/* Between parts the accumulators have the total so far; it is set aside only while they add up a part. */
static void start_part(const dot *d)
{
    dlc_emitter *emit = d->nest->emit;
    begin_behind_first(d);
    for (uint32_t i = 0; i < d->nrows * d->nvectors; i++) {
        emit->var_set(emit, d->totals[i], emit->var_get(emit, d->state->tile[i]));
        emit->var_set(emit, d->state->tile[i], dlc_nest_identity(d->nest, DLC_REDUCE_SUM, d->dtype, 0, d->width));
    }
    end_behind_first(d);
}

static void end_part(const dot *d)
{
    dlc_emitter *emit = d->nest->emit;
    begin_behind_first(d);
    for (uint32_t i = 0; i < d->nrows * d->nvectors; i++) {
        dlc_val args[] = {emit->var_get(emit, d->totals[i]), emit->var_get(emit, d->state->tile[i])};
        emit->var_set(emit, d->state->tile[i], emit->arith(emit, DLC_EXPR_ADD, d->dtype, d->dtype, d->width, args));
    }
    end_behind_first(d);
}

static void multiply_rest(const dot *d)
{
    dlc_nest *nest = d->nest;
    uint32_t axis = d->leaf->over.data[d->leaf->over.n - 1];
    dlc_nest_loop(nest, axis, dlc_nest_uniform(nest, d->rest), dlc_nest_uniform(nest, d->end), 1);
    dlc_dot_enter_lanes(d, NULL);
    multiply(d, d->points_a, d->points_b);
    dlc_dot_leave_lanes(nest);
    dlc_nest_loop_end(nest);
}

/* --- padding --- */

/* Opens what is done at points of the axes so far at which some row is no padding. */
static void begin_inside(const dot *d)
{
    dlc_nest *nest = d->nest;
    dlc_expr inside = dlc_dot_inside(nest->kernel, nest->schedule, d->leaf, nest->arena), any = dlc_expr_bool(d->pool, 0);
    for (uint32_t r = 0; r < d->nrows; r++) {
        dlc_dot_at_row(d, r);
        any = dlc_expr2(d->pool, DLC_EXPR_OR, any, dlc_dot_simplified(d, dlc_nest_here(nest, inside)));
    }
    dlc_dot_leave_point(d);
    nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, dlc_dot_simplified(d, any)));
    dlc_nest_enter(nest);
}

static void accumulate_matrices(dot *d, uint32_t node)
{
    if (!dlc_dot_find_operands(d))
        return;
    if (!is_kept_between(d))
        (void)start(d, node);
    dlc_matrix_multiply(d->nest, node, dlc_nest_here(d->nest, d->operands.rows), dlc_nest_here(d->nest, d->operands.columns));
}

/* A block of memory in place of variables. */
static void start_block(const dot *d, uint32_t node, dlc_val first)
{
    dlc_tile_rows_begin(d->nest, node);
    for (uint32_t v = 0; v < d->nvectors; v++)
        dlc_tile_set(d->nest, node, v, start_of(d, 0, v, first));
    dlc_tile_rows_end(d->nest, node);
}

/* Infinities, and NaN: of parts these would meet parts of 0 and of the other sign, so floats are multiplied instead. */
static void multiply_whole(const dot *d, uint32_t node, const dlc_tile_factors *factors, dlc_val first)
{
    dlc_nest *nest = d->nest;
    nest->emit->if_begin(nest->emit, dlc_tile_is_infinite(nest, node));
    dlc_nest_enter(nest);
    start_block(d, node, first);
    dlc_tile_multiply_points(nest, node, factors);
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
}

static void accumulate_tiles(dot *d, uint32_t node)
{
    dlc_expr condition = is_first(d, node);
    if (!dlc_dot_find_operands(d))
        return;
    dlc_val first = condition ? dlc_nest_uniform(d->nest, dlc_dot_simplified(d, condition)) : NULL;
    dlc_tile_factors factors = {.a = dlc_nest_here(d->nest, d->operands.rows), .b = dlc_nest_here(d->nest, d->operands.columns),
                                .left = d->left, .right = d->right, .a_part = d->operands.rows_part, .b_part = d->operands.columns_part};
    if (condition || dlc_tile_is_plain(d->nest, node))
        start_block(d, node, first);
    dlc_tile_multiply(d->nest, node, &factors, !condition);
    if (d->row->parts > 1)
        multiply_whole(d, node, &factors, first);
}

static void accumulate(dot *d, uint32_t node)
{
    dlc_nest *nest = d->nest;
    if (dlc_schedule_is_matrix(nest->schedule, node)) {
        accumulate_matrices(d, node);
        return;
    }
    if (d->is_tile) {
        accumulate_tiles(d, node);
        return;
    }
    int is_by_granules = d->row->granule > 1;
    find_factors(d);
    if (d->ahead && dlc_node_of(d->pool, d->ahead[0])->op != DLC_EXPR_LOAD) /* computed of several loads */
        d->ahead = NULL;
    if (d->is_dealt)
        find_dealt_loops(d);
    else
        find_loops(d);
    if (is_by_granules)
        find_granules(d);
    while (!d->rest && !d->is_dealt && merge_loops(d))
        ;
    dlc_dot_find_share(d);
    int64_t npoints = written_out(d);
    d->loops.n -= npoints > 1;
    int is_zero = !is_kept_between(d) && start(d, node);
    start_sums(d);
    declare_totals(d, is_zero);
    for (uint32_t i = 0; i < d->loops.n; i++) {
        open_loop(d, i);
        if (i + 1 == d->leaf->nskipped)
            begin_inside(d);
        if (i + 1 == d->nouter)
            start_part(d);
    }
    dlc_dot_enter_lanes(d, NULL);
    dlc_dot_fetch_ahead(d);
    if (is_by_granules)
        multiply_granules(d);
    else if (npoints > 1)
        multiply_written_out(d, npoints);
    else
        multiply(d, d->a, d->b);
    dlc_dot_leave_lanes(nest);
    for (uint32_t i = 0; i < d->loops.n; i++) {
        if (i == d->loops.n - d->nouter && d->nouter)
            end_part(d);
        if (i == d->loops.n - d->leaf->nskipped && d->leaf->nskipped)
            end_if(d);
        dlc_nest_loop_end(nest);
        if (i == 0 && d->rest)
            multiply_rest(d);
    }
    put_sums_right(d);
}

/* --- the tile --- */

static void make_tile(const dot *d)
{
    if (d->is_tile) {
        dlc_tile_open(d->nest, (uint32_t)(d->leaf - d->nest->schedule->nodes.data), d->width);
        return;
    }
    d->state->tile = dlc_arena_array(d->nest->arena, (size_t)d->nrows * d->nvectors, sizeof *d->state->tile, sizeof(void *));
    d->state->nrows = d->nrows;
    d->state->nvectors = d->nvectors;
    d->state->lanes = dlc_nest_axis(d->nest, dlc_expr_i64(d->pool, d->width));
    d->state->zero = dlc_nest_stepped_axis(d->nest, dlc_expr_i64(d->pool, 1), d->is_dealt ? d->width : 1);
}

void dlc_dot_emit(dlc_nest *nest, uint32_t node)
{
    dot d = dlc_dot_at(nest, node);
    if (!is_kept_between(&d))
        make_tile(&d);
    dlc_nest_bind(nest, d.state->zero, dlc_nest_i64(nest, 0), 1);
    accumulate(&d, node);
    if (!is_kept_between(&d))
        dlc_dot_keep(&d, node);
}

static void begin_tile(dlc_nest *nest, uint32_t node)
{
    dot d = dlc_dot_at(nest, node);
    make_tile(&d);
    start(&d, node);
}

void dlc_dot_begin(dlc_nest *nest, uint32_t node)
{
    const dlc_schedule *schedule = nest->schedule;
    const dlc_schedule_node *leaf = &schedule->nodes.data[node];
    uint32_t rows = dlc_schedule_rows(schedule, node);
    dlc_register_axis open = {.n = rows == DLC_ROOT_NODE ? 1 : (uint32_t)schedule->nodes.data[rows].tile}, columns = {.n = 0};
    uint32_t all = (uint32_t)schedule->nodes.data[dlc_schedule_columns(schedule, node)].tile;
    columns.n = all / dlc_schedule_dot_lanes(schedule, node);
    if (dlc_schedule_is_matrix(schedule, node)) {
        open.n /= DLC_FRAGMENT;
        columns.n = all / DLC_FRAGMENT;
    }
    if (leaf->rows != DLC_NO_AXIS)
        nest->registers[leaf->rows] = &open;
    nest->registers[leaf->columns] = &columns;
    begin_tile(nest, node);
    if (leaf->rows != DLC_NO_AXIS)
        nest->registers[leaf->rows] = NULL;
    nest->registers[leaf->columns] = NULL;
}

static void end_tile(dlc_nest *nest, uint32_t node)
{
    dot d = dlc_dot_at(nest, node);
    dlc_dot_find_operands(&d);
    dlc_nest_bind(nest, d.state->zero, dlc_nest_i64(nest, 0), 1);
    dlc_dot_keep(&d, node);
}

void dlc_dot_end(dlc_nest *nest, uint32_t node)
{
    const dlc_schedule_node *leaf = &nest->schedule->nodes.data[node];
    if (leaf->place != DLC_PLACE_REG || nest->kernel->stages.data[leaf->stage].buffer != DLC_NO_BUFFER)
        dlc_deal_open(nest, dlc_schedule_deal(nest->schedule, dlc_schedule_parent(nest->schedule, node)), end_tile, node);
}

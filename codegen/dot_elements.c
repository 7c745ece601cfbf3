/*
 * The elements of a register tile (dot.c) once they are summed up: stored, or a value that the leaves of `as` take, element by element.
 * Where the tile is a thread's, or the end lies within a vector, an element may not be there.
 */
#include "codegen/dot.h"

typedef dlc_dot_tile dot;

/* The element's value: the sum, times what is free of rows, columns and K. */
static dlc_val element(const dot *d, uint32_t r, uint32_t v)
{
    uint32_t leaf = (uint32_t)(d->leaf - d->nest->schedule->nodes.data);
    dlc_val sum = d->is_tile ? dlc_tile_get(d->nest, leaf, v) : d->nest->emit->var_get(d->nest->emit, *dlc_dot_accumulator(d, r, v));
    if (!d->scale)
        return sum;
    dlc_expr value = dlc_nest_pseudo(d->nest, d->dtype, sum, d->width);
    return dlc_nest_value_at(d->nest, dlc_mul(d->pool, value, dlc_nest_here(d->nest, d->scale)));
}

typedef void (*element_body)(const dot *d, uint32_t node, uint32_t r, uint32_t v);

/* Where an element of a thread's tile is there; 0: it always is. */
static dlc_expr condition_of(const dot *d, dlc_expr row, dlc_expr column)
{
    dlc_expr inside = 0;
    if (d->rows && d->rows->end)
        inside = dlc_lt(d->pool, row, d->rows->end);
    if (d->columns->end)
        inside = dlc_and(d->pool, inside, dlc_lt(d->pool, column, d->columns->end));
    return inside ? dlc_dot_simplified(d, inside) : 0;
}

/* Opens a guard, in which the point is not known outside: nothing that depends on it is read there. */
static void guard_begin(const dot *d, dlc_expr inside, dlc_expr *row, dlc_expr *column)
{
    dlc_nest *nest = d->nest;
    const dlc_kernel *kernel = nest->kernel;
    dlc_val at_row = *row ? dlc_nest_uniform(nest, dlc_dot_simplified(d, *row)) : NULL;
    dlc_val at_column = dlc_nest_uniform(nest, dlc_dot_simplified(d, *column));
    nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, inside));
    dlc_nest_enter(nest);
    uint32_t own = dlc_nest_stepped_axis(nest, kernel->axes.data[d->leaf->columns].extent, d->width);
    dlc_nest_bind(nest, own, at_column, 1);
    *column = dlc_dot_axis(d, own);
    if (!*row)
        return;
    own = dlc_nest_axis(nest, kernel->axes.data[d->leaf->rows].extent);
    dlc_nest_bind(nest, own, at_row, 1);
    *row = dlc_dot_axis(d, own);
}

/* The end of the axis, or of what is computed of it, may lie within a vector. */
static int is_ragged(const dot *d)
{
    const dlc_schedule *schedule = d->nest->schedule;
    uint32_t loop = (uint32_t)(d->leaf - schedule->nodes.data), outer = loop;
    int64_t size;
    if (d->width == 1 || !d->columns->end)
        return 0;
    while ((outer = dlc_schedule_loop_over(schedule, outer, d->leaf->columns)) != DLC_ROOT_NODE) {
        loop = outer;
        outer = dlc_schedule_parent(schedule, outer);
    }
    return !dlc_expr_is_int(d->pool, schedule->ranges[loop].size, &size) || size % d->width ||
           dlc_expr_multiple(d->pool, schedule->ranges[loop].first, &d->nest->ranges) % d->width;
}

static void visit_dealt(const dot *d, uint32_t node, uint32_t r, uint32_t v, element_body body)
{
    dlc_nest *nest = d->nest;
    dlc_expr row = d->rows ? d->rows->points[r] : 0, column = dlc_addi(d->pool, d->columns->first, (int64_t)v * d->apart);
    dlc_expr inside = condition_of(d, row, column);
    if (inside)
        guard_begin(d, inside, &row, &column);
    if (row)
        dlc_nest_replace(nest, d->leaf->rows, row);
    dlc_nest_replace(nest, d->leaf->columns, d->width > 1 ? dlc_add(d->pool, column, dlc_dot_axis(d, d->state->lanes)) : column);
    dlc_dot_enter_lanes(d, NULL);
    if (is_ragged(d))
        nest->mask = dlc_nest_value_at(nest, dlc_lt(d->pool, nest->with[d->leaf->columns], d->columns->end));
    body(d, node, r, v);
    dlc_dot_leave_lanes(nest);
    dlc_dot_leave_point(d);
    if (inside) {
        dlc_nest_leave(nest);
        nest->emit->if_end(nest->emit);
    }
    d->state->value[0].set = 0;
}

/* Rows of three vectors lie in two of four each: that is no better than vectors of four rows. */
static dlc_hold holds_of(const dot *d)
{
    if (d->is_tile || d->is_dealt)
        return d->is_tile ? DLC_HOLD_NEIGHBOURS : DLC_HOLD_NONE;
    return DLC_MOST_PACKED % d->nvectors ? DLC_HOLD_BYTES : DLC_HOLD_TILE;
}

static void over_elements(const dot *d, uint32_t node, element_body body)
{
    if (d->is_tile)
        dlc_tile_rows_begin(d->nest, (uint32_t)(d->leaf - d->nest->schedule->nodes.data));
    int holds = dlc_held_begin(d->nest, holds_of(d), d->nest->level);
    for (uint32_t v = 0; v < d->nvectors && !d->is_dealt; v++) {
        dlc_dot_enter_lanes(d, d->columns->masks[v]);
        dlc_dot_at_column(d, v);
        d->nest->vector = v;
        dlc_turn_rows_begin(d->nest, d->is_tile ? 1 : d->nrows);
        for (uint32_t r = 0; r < (d->is_tile ? 1 : d->nrows); r++) {
            dlc_dot_at_row(d, r);
            body(d, node, r, v);
        }
        dlc_turn_rows_end(d->nest);
        dlc_dot_leave_point(d);
        dlc_dot_leave_lanes(d->nest);
    }
    d->nest->vector = 0;
    if (holds)
        dlc_held_end(d->nest);
    if (d->is_tile)
        dlc_tile_rows_end(d->nest, (uint32_t)(d->leaf - d->nest->schedule->nodes.data));
    for (uint32_t r = 0; r < d->nrows && d->is_dealt; r++)
        for (uint32_t v = 0; v < d->nvectors; v++)
            visit_dealt(d, node, r, v, body);
    d->state->value[0].set = 0;
}

static void keep_element(const dot *d, uint32_t node, uint32_t r, uint32_t v)
{
    dlc_val value = element(d, r, v);
    (void)node;
    dlc_leaf_keep(d->nest, d->s, &value, d->width);
}

void dlc_dot_keep(const dot *d, uint32_t node)
{
    if (d->nest->schedule->homes[d->s].place != DLC_PLACE_REG || d->stage->buffer != DLC_NO_BUFFER)
        over_elements(d, node, keep_element);
}

static void walk_element(const dot *d, uint32_t node, uint32_t r, uint32_t v)
{
    d->state->value[0] = dlc_nest_remember(d->nest, element(d, r, v), d->width);
    dlc_walk_children(d->nest, node);
}

/* Leaves at each element of the tile: the sum is a value, and so is what they make of it for each other. */
void dlc_dot_elements(dlc_nest *nest, uint32_t node)
{
    const dlc_schedule_node *as = &nest->schedule->nodes.data[node];
    dot d = dlc_dot_at(nest, nest->schedule->homes[as->stage].leaf);
    dlc_dot_find_operands(&d);
    if (d.is_dealt)
        dlc_nest_bind(nest, d.state->zero, dlc_nest_i64(nest, 0), 1);
    over_elements(&d, node, walk_element);
}

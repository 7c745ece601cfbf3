/* Between dot.c, which multiplies, ahead.c, which asks for what comes next, and dot_elements.c, which takes the sums: a register tile of a
 * contraction while it is emitted. */
#ifndef DLC_CODEGEN_DOT_H
#define DLC_CODEGEN_DOT_H

#include "codegen/nest.h"

typedef struct {
    dlc_nest *nest;
    dlc_pool *pool;
    const dlc_schedule_node *leaf;
    const dlc_stage *stage;
    dlc_stage_state *state;
    dlc_dtype dtype;
    uint32_t s, width, nrows, nvectors;
    uint32_t apart;                /* columns from vector to vector */
    uint8_t is_dealt;              /* a thread's */
    uint8_t is_tile;               /* in tile registers: rows are a loop over their block */
    dlc_expr row_before, column_before; /* what the loops around have replaced the tile's axes by */
    dlc_expr left, right, scale;   /* the rows' factor, the columns'; free of both */
    const dlc_register_axis *rows, *columns; /* rows NULL: one row */
    dlc_expr *a, *b;               /* factors over the reduced axes, by row, by vector */
    dlc_expr *ahead;               /* the columns' factor of the next panel, by vector; NULL: nothing is fetched */
    dlc_expr share;                /* of the next panel, that this tile asks for: elements behind ahead[0] at the present step */
    int64_t line;                  /* elements of a line of the cache */
    uint32_t nlines;               /* that a step goes on by; 0: tiles have no shares */
    dlc_ids loops, extents, lows, wholes; /* over the reduced axes: axis, end, begin, the axis's extent */
    dlc_vec(int64_t) steps, mosts;  /* mosts: points, the most where they depend; -1: only a run knows */
    uint32_t nouter;               /* loops around a partial sum */
    dlc_var *totals;               /* with partial sums: by row and vector */
    uint8_t skips_first;           /* what is done with totals, of the first part: they lie in memory, and its sum is the total */
    const dlc_dot_info *row;
    dlc_dot_operands operands;
    dlc_expr *points_a, *points_b; /* granules: the factors point by point, for what is left over */
    dlc_expr rest, end;            /* where that begins and ends, or 0: nothing is ever left */
    dlc_var *sums;                 /* changed signs: sums of columns, by vector */
} dlc_dot_tile;

static inline dlc_expr dlc_dot_axis(const dlc_dot_tile *d, uint32_t axis)
{
    return dlc_expr_axis(d->pool, axis);
}

static inline dlc_expr dlc_dot_simplified(const dlc_dot_tile *d, dlc_expr expr)
{
    return dlc_expr_simplify(d->pool, expr, &d->nest->ranges);
}

/* Column of lane l of vector v of the open panel; of the next one from nvectors on. */
static inline dlc_expr dlc_dot_column(const dlc_dot_tile *d, uint32_t v)
{
    if (d->width == 1)
        return dlc_addi(d->pool, d->columns->first, v);
    return dlc_add(d->pool, d->columns->first, dlc_addi(d->pool, dlc_dot_axis(d, d->state->lanes), (int64_t)v * d->apart));
}

static inline void dlc_dot_at_row(const dlc_dot_tile *d, uint32_t r)
{
    if (d->rows && !d->is_tile)
        dlc_nest_replace(d->nest, d->leaf->rows, d->rows->points[r]);
}

static inline void dlc_dot_at_column(const dlc_dot_tile *d, uint32_t v)
{
    dlc_nest_replace(d->nest, d->leaf->columns, dlc_dot_column(d, v));
}

static inline void dlc_dot_leave_point(const dlc_dot_tile *d)
{
    if (d->rows && !d->is_tile)
        dlc_nest_replace(d->nest, d->leaf->rows, d->row_before);
    dlc_nest_replace(d->nest, d->leaf->columns, d->column_before);
}

/* The factor at the columns' vectors from number `first` on, by vector. */
static inline dlc_expr *dlc_dot_factors_at_columns(const dlc_dot_tile *d, dlc_expr factor, uint32_t first)
{
    dlc_expr *factors = dlc_new_array(d->nest->arena, dlc_expr, d->nvectors);
    for (uint32_t v = 0; v < d->nvectors; v++) {
        dlc_dot_at_column(d, first + v);
        factors[v] = dlc_nest_here(d->nest, factor);
    }
    dlc_dot_leave_point(d);
    return factors;
}

static inline void dlc_dot_enter_lanes(const dlc_dot_tile *d, dlc_val mask)
{
    d->nest->lane = d->state->lanes;
    d->nest->lane_base = d->state->zero;
    d->nest->width = d->width;
    d->nest->mask = mask;
}

static inline void dlc_dot_leave_lanes(dlc_nest *nest)
{
    nest->lane = DLC_NO_AXIS;
    nest->width = 1;
    nest->mask = NULL;
}

static inline dlc_var *dlc_dot_accumulator(const dlc_dot_tile *d, uint32_t r, uint32_t v)
{
    return &d->state->tile[r * d->nvectors + v];
}

/* Of the leaf at `node`, inside its loops. */
dlc_dot_tile dlc_dot_at(dlc_nest *nest, uint32_t node);
/* The factors as the leaf's row takes them; false: the stage is none of its products. */
int dlc_dot_find_operands(dlc_dot_tile *tile);
/* Stores the sums, where nothing else takes them. */
void dlc_dot_keep(const dlc_dot_tile *tile, uint32_t node);

/* --- what is asked for meanwhile (codegen/ahead.c) --- */

/* What the factor reads at the next panel, by vector. */
dlc_expr *dlc_dot_factors_ahead(const dlc_dot_tile *d, dlc_expr factor);
/* The tile's share of it; once the loops are found, where they are about to be opened. */
void dlc_dot_find_share(dlc_dot_tile *d);
/* At each step of the innermost loop. */
void dlc_dot_fetch_ahead(const dlc_dot_tile *d);

#endif

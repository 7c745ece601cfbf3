/*
 * The order of a register tile's loops: what stays in a cache while the rest streams by, and how many units that leaves for threads.
 */
#include "passes/schedule/choose_dot.h"

#include <math.h>

typedef dlc_dot_choice dot;

int64_t dlc_dot_round_to(double value, int64_t multiple)
{
    int64_t n = (int64_t)value;
    n = (n + multiple - 1) / multiple * multiple;
    return n < multiple ? multiple : n;
}

double dlc_dot_count_of(double size, int64_t tile)
{
    return (double)(((int64_t)size + tile - 1) / tile);
}

/* Bytes of a point of K in a row of A, or in a column of B. */
static double point_bytes(const dot *d, dlc_expr factor)
{
    return (double)dlc_dtype_bytes(dlc_node_of(d->c->kernel->pool, factor)->dtype) * dlc_dots[d->row].parts;
}

/* Columns per root tile so that there are enough units, `units` of them coming from the other loops. */
static int64_t split_columns(const dot *d, double units, double wanted)
{
    int64_t all = dlc_dot_round_to(d->columns, d->n);
    if (units >= wanted)
        return all;
    int64_t pieces = (int64_t)(wanted / (units < 1 ? 1 : units));
    int64_t tile = dlc_dot_round_to(d->columns / (double)pieces, d->n);
    return tile < all ? tile : all;
}

/*
 * Direct A: what stays in L2 while the other streams. All of A and a panel of B; else all of B and a tile of A's rows; else
 * a block of columns for which A streams by, or B for each tile of rows, whichever moves less.
 */
static dlc_dot_loops order_direct(dot *d, double units)
{
    double elem = point_bytes(d, d->form.a), half = d->c->target->l2_bytes / 2;
    double a = d->rows * d->depth * elem, b = d->columns * d->depth * elem;
    int64_t block = (int64_t)(half / (d->depth * elem)) / d->n * d->n;
    d->block = d->panel > d->n ? d->panel : d->n;
    if (!d->form.m.n || (a <= half && !(d->granule > 1 && b <= 2 * half)))
        return DLC_COLUMNS_ROWS;
    if (b <= (d->granule > 1 ? 2 * half : half) || block < d->n || a * d->columns / (double)block > b * d->rows / (double)d->m) {
        d->block = split_columns(d, units, DLC_MIN_UNITS);
        return DLC_ROWS_COLUMNS;
    }
    d->block = dlc_dot_round_to(ceil(d->columns / dlc_dot_count_of(d->columns, block)), d->n); /* blocks as equal as panels allow: threads share them */
    return DLC_COLUMNS_ROWS;
}

/*
 * Rows in tile registers are multiplied faster than L3 gives columns. So all rows stay in L2, if they fit, while columns come by once, a panel
 * at a time; or all columns do; else blocks of rows as large as L2 lets them be.
 */
static dlc_dot_loops order_tiles(dot *d)
{
    const double ALL = 0.7, BLOCK = 0.5; /* of L2; a block has columns beside it that are to come again */
    const double COPIED = 0.7;           /* columns stay beside a few rows' copies: blocks of rows would be copied for each piece of columns */
    enum { UNITS = 4 };                  /* rows are copied for each */
    double row = d->depth * point_bytes(d, d->form.a), b = d->columns * d->depth * point_bytes(d, d->form.b), l2 = d->c->target->l2_bytes;
    double units = dlc_choose_least(d->c, &d->form.batch), rows = dlc_choose_least(d->c, &d->form.m);
    int is_known = rows == d->rows;
    d->block = d->panel > d->n ? d->panel : d->n;
    if (!d->copy_a && d->rows * row <= ALL * l2 && b > l2)
        return DLC_COLUMNS_ROWS;
    if (b > (d->copy_a ? COPIED : BLOCK) * l2 && is_known) {
        double most = floor(BLOCK * l2 / row / (double)d->m) * (double)d->m;
        double blocks = most > (double)d->m ? ceil(d->rows / most) : 0;
        d->row_block = blocks > 0 ? dlc_dot_round_to(ceil(d->rows / blocks), d->m) : 0;
    }
    if (d->row_block <= d->m)
        d->row_block = 0;
    units *= dlc_dot_count_of(rows, d->row_block ? d->row_block : d->m);
    d->block = split_columns(d, units, d->copy_a ? UNITS : DLC_MIN_UNITS);
    return DLC_ROWS_COLUMNS;
}

/* B's copy is shared by the rows of one batch: columns outermost, and only they and the batches are distributed. A's copy is
 * shared by the columns: rows outermost. */
dlc_dot_loops dlc_dot_choose_order(dot *d)
{
    double batches = dlc_choose_least(d->c, &d->form.batch), rows = dlc_choose_least(d->c, &d->form.m);
    double units = batches * dlc_dot_count_of(rows, d->m);
    if (d->copy_b) {
        double bytes = point_bytes(d, d->form.b) * d->depth;
        int64_t tile = split_columns(d, batches, DLC_MIN_UNITS), most = (int64_t)(d->c->target->scratch_bytes / 2 / bytes) / d->n * d->n;
        if (most < d->n)
            most = d->n;
        d->block = tile < most ? tile : most;
        return DLC_COLUMNS_COPY_ROWS;
    }
    if (dlc_dots[d->row].family == DLC_FAMILY_TILE)
        return order_tiles(d);
    if (!d->copy_a)
        return order_direct(d, units);
    d->block = split_columns(d, units, DLC_MIN_UNITS);
    return DLC_ROWS_COLUMNS;
}

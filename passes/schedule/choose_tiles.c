/*
 * Kernels of several stages among which are contractions: attention, a product into a row's softmax or norm, two products in a
 * row. All stages share the root axes; those that index rows of every product are one axis, of which a unit takes a block:
 *
 *     par points, rows:T {
 *       copies of right factors that do not lie as panels
 *       for columns:N, rows:M { product in reg  as product { maps behind it, or the next product's rows } }
 *       for rows { sums, maxima and maps by lanes }
 *       for columns:N, rows:M { the next product … } }
 *
 * What lies between them is scratch of the block, so T is as much as half of L2 and the wish for units allow.
 */
#include "passes/schedule/choose_tiles.h"

#include <math.h>

enum {
    LEAST_ROWS = 4,
    MOST_UNKNOWN = 32  /* rows of a unit where their number is not known: 128 rows go to four threads */
};

typedef dlc_tiles tiles;
typedef dlc_tiles_product product;

static int has(const dlc_ids *ids, uint32_t id)
{
    return dlc_ids_find(ids, id, NULL);
}

/* --- rows --- */

/* Roots are rows where every product has them in one factor alone; else points. */
static int find_rows(tiles *t)
{
    dlc_contraction form;
    uint32_t nproducts = 0;
    for (uint32_t r = 0; r < t->c->roots.n; r++) {
        uint32_t axis = t->c->roots.data[r];
        int is_row = 1;
        for (uint32_t s = 0; s < t->c->kernel->stages.n; s++)
            if (dlc_products_contraction(t, s, &form))
                is_row &= has(&form.m, axis) || has(&form.n, axis);
        dlc_vec_push(t->c->arena, is_row ? &t->rows : &t->points, axis);
    }
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++)
        nproducts += (uint32_t)dlc_products_contraction(t, s, &form);
    dlc_choose_sort(t->c, &t->rows);
    dlc_choose_sort(t->c, &t->points);
    return nproducts && t->rows.n && dlc_choose_points(t->c, &t->rows) >= LEAST_ROWS;
}

/* --- heights --- */

/* Bytes of scratch that a row of the block takes, and what copies take once. */
static void scratch_of(const tiles *t, double *per_row, double *once)
{
    *per_row = *once = 0;
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++) {
        const dlc_stage *stage = dlc_tiles_stage(t, s);
        const product *p = &t->products[s];
        double elems = 1, bytes = dlc_dtype_bytes(stage->dtype[0]), reduced = dlc_choose_points(t->c, &stage->reduce);
        for (uint32_t i = 0; i < stage->axes.n; i++)
            elems *= has(&t->c->roots, stage->axes.data[i]) ? 1 : (double)t->c->extent[stage->axes.data[i]];
        if (t->c->place[s] == DLC_PLACE_SCRATCH)
            *per_row += elems * bytes;
        if (p->is_fed || p->copies_block)
            *per_row += reduced * bytes;
        else if (p->copies_left)
            *once += (double)t->m * reduced * bytes;
        if (p->copies_right)
            *once += (double)t->c->extent[p->columns] * reduced * bytes;
    }
}

static int64_t tile_height(const tiles *t)
{
    int64_t most = 0;
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++)
        if (t->products[s].is_dot && (!most || dlc_products_height(t, s) < most))
            most = dlc_products_height(t, s);
    return most;
}

static int64_t tiles_of(int64_t rows, int64_t height)
{
    return (rows + height - 1) / height;
}

/* So many rows in so many blocks: of whole tiles, but for the last block, or of near-equal ones, where those are no more tiles and the others would
 * leave a part of one over, which takes as long as a tile. */
static void cut_evenly(tiles *t, int64_t rows, int64_t blocks)
{
    t->t = tiles_of(tiles_of(rows, blocks), t->m) * t->m;
    blocks = tiles_of(rows, t->t);
    int64_t equal = tiles_of(rows, blocks), rest = rows % t->t, ntiles = rows / t->t * (t->t / t->m) + tiles_of(rest, t->m);
    if (rest % t->m && blocks * tiles_of(equal, t->m) <= ntiles) {
        t->m = tiles_of(equal, tiles_of(equal, t->m));
        t->t = equal;
    }
}

/* As many rows as leave units enough and fit the scratch, in blocks of nearly one height that are multiples of the tile's. */
static void choose_heights(tiles *t)
{
    double rows = dlc_choose_points(t->c, &t->rows), units = dlc_choose_points(t->c, &t->points), per_row, once;
    t->m = tile_height(t);
    scratch_of(t, &per_row, &once);
    double left = (double)t->c->target->scratch_bytes - once, fits = left < 0 ? 1 : per_row > 0 ? left / per_row : rows;
    double wanted = units >= DLC_MIN_UNITS / 2 ? rows : rows * units / (DLC_MIN_UNITS / 2);
    double block = wanted < fits ? wanted : fits;
    block = block < (double)t->m ? (double)t->m : block > rows ? rows : block;
    if (dlc_choose_are_known(t->c, &t->rows)) {
        cut_evenly(t, (int64_t)rows, (int64_t)ceil(rows / block));
        if (t->t > t->m && (double)t->t > fits)
            t->t -= t->m;
    } else { /* sizes that people feed are multiples of powers of two: no short last block, and several of few rows */
        for (t->t = 16; t->t * 2 <= block && t->t < MOST_UNKNOWN; t->t *= 2)
            ;
        int64_t tiles_of_block = (t->t + t->m - 1) / t->m;
        t->m = (t->t + tiles_of_block - 1) / tiles_of_block;
    }
}

/* A block of one tile would have no loop inside. */
static void take_two_tiles(tiles *t)
{
    double rows = dlc_choose_points(t->c, &t->rows);
    if (dlc_choose_are_known(t->c, &t->rows) && rows > 2.0 * (double)t->m)
        cut_evenly(t, (int64_t)rows, tiles_of((int64_t)rows, 2 * t->m));
    if (t->t <= t->m)
        t->t = 2 * t->m;
}

/* Rows gathered past borders, of a convolution: by itself it has taller tiles and shares them out better. */
static int gathers_rows(const tiles *t, uint32_t s)
{
    const dlc_pool *pool = t->c->kernel->pool;
    uint8_t *marks = dlc_new_array(t->c->arena, uint8_t, pool->nodes.n);
    dlc_expr left = t->products[s].left;
    if (!t->products[s].copies_left || (dlc_node_of(pool, left)->op == DLC_EXPR_CAST && dlc_products_plain_load(t, s, dlc_arg(pool, left, 0))))
        return 0;
    dlc_expr_reach(pool, t->products[s].left, marks);
    for (dlc_expr id = 1; id < pool->nodes.n; id++)
        if (marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(dlc_node_of(pool, id)->imm.id))
            return 0;
    return 1;
}

/* --- the tree --- */

static void open_all(const tiles *t, const dlc_ids *axes, dlc_loop_kind kind)
{
    for (uint32_t i = 0; i < axes->n; i++)
        dlc_schedule_open(t->c->schedule, kind, axes->data[i], 1);
}

void dlc_tiles_build_product(const tiles *t, uint32_t s, const uint32_t *left, uint32_t right)
{
    dlc_schedule *schedule = t->c->schedule;
    const product *p = &t->products[s];
    uint32_t width = dlc_tiles_width(t, s), n = p->others.n;
    int is_wide = t->c->extent[p->columns] > p->n || !dlc_choose_is_known(t->c, p->columns);
    if (p->copies_right)
        dlc_products_build_copy(t, right, p->columns, width, is_wide ? p->n : 0);
    open_all(t, &p->others, DLC_LOOP_FOR);
    if (p->copies_left && !p->is_fed) {
        if (!p->copies_block)
            dlc_schedule_open(schedule, DLC_LOOP_FOR, t->row_axis, t->m);
        dlc_schedule_open(schedule, DLC_LOOP_FOR, t->row_axis, 1);
        dlc_products_build_copy(t, left[s], p->order.data[p->order.n - 1], width, 0);
        dlc_schedule_close(schedule, 1);
    }
    if (p->copies_left && !p->is_fed && !p->copies_block) {
        dlc_schedule_open(schedule, DLC_LOOP_FOR, p->columns, p->n);
    } else {
        dlc_schedule_open(schedule, DLC_LOOP_FOR, p->columns, p->n);
        dlc_schedule_open(schedule, DLC_LOOP_FOR, t->row_axis, t->m);
    }
    dlc_schedule_dot(schedule, s, DLC_DOT_FMA, t->row_axis, p->columns, &p->order, t->c->place[s]);
    dlc_choose_parts(t->c);
    dlc_choose_ahead(t->c);
    if (p->as_end > s + 1 || p->feeds != DLC_NO_STAGE) {
        dlc_schedule_open_as(schedule, s);
        for (uint32_t e = s + 1; e < p->as_end; e++)
            dlc_schedule_leaf(schedule, e, t->c->place[e]);
        if (p->feeds != DLC_NO_STAGE)
            dlc_schedule_leaf(schedule, left[p->feeds], DLC_PLACE_SCRATCH);
        dlc_schedule_close(schedule, 1);
    }
    dlc_schedule_close(schedule, n + 2);
}

static void build_items(tiles *t, const uint32_t *left, const uint32_t *right)
{
    dlc_schedule *schedule = t->c->schedule;
    for (uint32_t s = 0; s < schedule->nstages;) {
        if (t->products[s].is_dot) {
            dlc_tiles_build_product(t, s, left, right[s]);
            s = t->products[s].as_end;
            continue;
        }
        uint32_t item = t->item[s];
        dlc_schedule_open(schedule, DLC_LOOP_FOR, t->row_axis, 1);
        for (; s < schedule->nstages && t->item[s] == item && !t->products[s].is_dot; s++)
            dlc_choose_lanes_stage(t->c, &t->lanes, s);
        dlc_schedule_close(schedule, 1);
    }
}

static void build(tiles *t)
{
    dlc_schedule *schedule = t->c->schedule;
    uint32_t nstages = schedule->nstages, n = t->points.n;
    uint32_t *left = dlc_new_array(t->c->arena, uint32_t, nstages), *right = dlc_new_array(t->c->arena, uint32_t, nstages);
    dlc_products_add_copies(t, left, right);
    for (uint32_t s = 0; s < nstages; s++)
        if (!t->products[s].is_dot && t->lanes.lanes[s] != DLC_NO_AXIS) {
            dlc_own_dot own = dlc_choose_lanes_own_dot(t->c, &t->lanes, s);
            dlc_choose_lay_out_constants(t->c, s, t->lanes.lanes[s], &own);
        }
    dlc_tiles_flatten(t);
    open_all(t, &t->points, DLC_LOOP_PAR);
    if (dlc_choose_points(t->c, &t->rows) > (double)t->t || !dlc_choose_are_known(t->c, &t->rows)) {
        dlc_schedule_open(schedule, DLC_LOOP_PAR, t->row_axis, t->t);
        n++;
    }
    build_items(t, left, right);
    dlc_schedule_close(schedule, n);
}

int dlc_tiles_find(tiles *t)
{
    dlc_chooser *c = t->c;
    uint32_t nstages = c->kernel->stages.n;
    if (c->serial.n || nstages < 2 || !find_rows(t))
        return 0;
    dlc_ids *rows_of = dlc_new_array(c->arena, dlc_ids, nstages);
    for (uint32_t s = 0; s < nstages; s++)
        rows_of[s] = t->rows;
    t->rows_of = rows_of;
    if (!dlc_products_find(t))
        return 0;
    for (uint32_t s = 0; s < nstages; s++)
        if (t->products[s].is_dot && gathers_rows(t, s))
            return 0;
    dlc_products_place(t);
    return 1;
}

void dlc_tiles_flatten(tiles *t)
{
    t->row_axis = dlc_schedule_flatten(t->c->schedule, &t->rows);
    dlc_vec_push(t->c->arena, &t->lanes.loops, ((dlc_root_choice){t->row_axis, 1, 0}));
    for (uint32_t i = 0; i < t->points.n; i++)
        dlc_vec_push(t->c->arena, &t->lanes.loops, ((dlc_root_choice){t->points.data[i], 1, 0}));
}

double dlc_tiles_row_bytes(const tiles *t)
{
    double per_row, once;
    scratch_of(t, &per_row, &once);
    return per_row;
}

int dlc_choose_tiles(dlc_chooser *c)
{
    tiles t = {.c = c, .feeds_products = 1};
    if (!dlc_tiles_find(&t))
        return 0;
    choose_heights(&t);
    if (t.m < 2 || t.t <= t.m)
        take_two_tiles(&t);
    build(&t);
    return 1;
}

/*
 * The dot method on CPUs: a register tile of a contraction.
 *
 *     for each tile of rows (copied first when A is no plain matrix):
 *       for each panel of n columns:
 *         acc[m][n/width] = 0
 *         for k: b = n/width vectors of B;  for each row: acc += splat(A[row][k]) * b
 *         epilogue on acc, store
 *
 * Rows are cut into near-equal heights, so no tile is a scalar remainder; where the number of rows is a symbol, the last
 * tile takes the next larger of a few heights and repeats its last row (the repeated stores write the same values).
 */
#include "codegen/cpu/llvm.h"

#include <assert.h>

typedef struct {
    dlc_nest *nest;
    dlc_pool *pool;
    uint32_t s;
    const dlc_stage *stage;
    const dlc_stage_plan *plan;
    dlc_dot_loops at;
    uint32_t width, nvectors; /* of a full panel */
    uint32_t m0, panel, lanes, zero; /* pseudo-axes: first row, number of the panel, lane within a vector, 0 */
    dlc_expr rows, columns;   /* flattened extents */
    dlc_expr height;          /* rows of the present tile */
    dlc_expr copy_base;       /* first column that copy_b holds */
    dlc_expr depth, row;      /* elements of K; of a copied row */
    dlc_expr *with;           /* substitution by axis of the kernel */
} dot;

static dlc_expr axis_of(const dot *d, uint32_t axis)
{
    return dlc_expr_axis(d->pool, axis);
}

static dlc_expr simplified(const dot *d, dlc_expr expr)
{
    return dlc_expr_simplify(d->pool, expr, &d->nest->ranges);
}

static dlc_expr substituted(const dot *d, dlc_expr expr)
{
    return dlc_nest_substitute(d->nest, expr, d->with);
}

static void set_rows(const dot *d, dlc_expr point)
{
    if (d->at.m != UINT32_MAX)
        dlc_root_delinearise(d->nest, d->at.m, point, d->with);
}

static void set_columns(const dot *d, dlc_expr point)
{
    dlc_root_delinearise(d->nest, d->at.n, point, d->with);
}

/* Column of lane l of vector v of the present panel. */
static dlc_expr column(const dot *d, uint32_t v)
{
    dlc_expr first = dlc_muli(d->pool, axis_of(d, d->panel), d->plan->n);
    return dlc_add(d->pool, first, dlc_addi(d->pool, axis_of(d, d->lanes), (int64_t)v * d->width));
}

static void enter_lanes(const dot *d, dlc_val mask)
{
    d->nest->lane = d->lanes;
    d->nest->lane_base = d->zero;
    d->nest->width = d->width;
    d->nest->mask = mask;
}

static void leave_lanes(const dot *d)
{
    d->nest->lane = DLC_NO_AXIS;
    d->nest->width = 1;
    d->nest->mask = NULL;
}

static uint32_t new_axis(const dot *d, int64_t extent)
{
    return dlc_nest_axis(d->nest, dlc_expr_i64(d->pool, extent));
}

/* The reduced axes as one number, in the stage's order. */
static dlc_expr flat_k(const dot *d)
{
    dlc_expr flat = dlc_expr_i64(d->pool, 0);
    for (uint32_t i = 0; i < d->stage->reduce.n; i++) {
        uint32_t axis = d->stage->reduce.data[i];
        flat = dlc_add(d->pool, dlc_mul(d->pool, flat, d->nest->kernel->axes.data[axis].extent), axis_of(d, axis));
    }
    return flat;
}

static dlc_expr extent_of(const dot *d, uint32_t axis)
{
    return d->nest->kernel->axes.data[axis].extent;
}

/* --- copies --- */

typedef struct {
    const dot *d;
    dlc_expr value, bytes, offset;
} copy;

static void copy_body(dlc_nest *nest, void *ctx)
{
    const copy *c = ctx;
    uint32_t width;
    dlc_val value = dlc_nest_value(nest, c->value, &width);
    dlc_nest_store_scratch(nest, c->bytes, c->offset, c->d->stage->dtype[0], value, width);
}

static uint32_t open_k(const dot *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        dlc_nest_loop(d->nest, d->stage->reduce.data[i], dlc_nest_i64(d->nest, 0),
                      dlc_nest_uniform(d->nest, extent_of(d, d->stage->reduce.data[i])), 1);
    return n;
}

static void close_loops(const dot *d, uint32_t n)
{
    while (n--)
        dlc_nest_loop_end(d->nest);
}

/* Rows of A, evaluated along the innermost reduced axis: guards, casts and gathers happen once per element here. */
static void copy_a(dot *d)
{
    uint32_t last = d->stage->reduce.data[d->stage->reduce.n - 1];
    uint32_t row = new_axis(d, d->plan->m);
    dlc_nest_loop(d->nest, row, dlc_nest_i64(d->nest, 0), dlc_nest_uniform(d->nest, d->height), 1);
    set_rows(d, dlc_add(d->pool, axis_of(d, d->m0), axis_of(d, row)));
    copy c = {d, substituted(d, d->at.contraction.a), dlc_schedule_offset(d->nest->kernel, d->nest->schedule, d->s, 'a'),
              dlc_add(d->pool, dlc_mul(d->pool, axis_of(d, row), d->row), flat_k(d))};
    uint32_t opened = open_k(d, d->stage->reduce.n - 1);
    dlc_lanes_loop(d->nest, last, dlc_expr_i64(d->pool, 0), extent_of(d, last), d->width, copy_body, &c);
    close_loops(d, opened + 1);
}

/* Lanes whose column exists. */
static dlc_val column_mask(const dot *d, uint32_t v)
{
    enter_lanes(d, NULL);
    dlc_val mask = dlc_nest_value_at(d->nest, dlc_lt(d->pool, column(d, v), d->columns));
    leave_lanes(d);
    return mask;
}

static int is_ragged(const dot *d)
{
    int64_t columns;
    return !dlc_expr_is_int(d->pool, d->columns, &columns) || columns % d->plan->n;
}

/* Columns [copy_base, end) of B as panels [k][n]. */
static void copy_b(dot *d, dlc_expr end)
{
    dlc_nest *nest = d->nest;
    dlc_expr n = dlc_expr_i64(d->pool, d->plan->n);
    dlc_expr first = dlc_floordiv(d->pool, d->copy_base, n);
    dlc_expr last = dlc_floordiv(d->pool, dlc_addi(d->pool, end, d->plan->n - 1), n);
    dlc_nest_loop(nest, d->panel, dlc_nest_uniform(nest, simplified(d, first)),
                  dlc_nest_uniform(nest, simplified(d, last)), 1);
    dlc_val masks[32] = {0};
    for (uint32_t v = 0; v < d->nvectors && is_ragged(d); v++)
        masks[v] = column_mask(d, v);
    uint32_t opened = open_k(d, d->stage->reduce.n);
    dlc_expr panel = dlc_sub(d->pool, dlc_muli(d->pool, axis_of(d, d->panel), d->plan->n), d->copy_base);
    for (uint32_t v = 0; v < d->nvectors; v++) {
        set_columns(d, column(d, v));
        dlc_expr offset = dlc_add(d->pool, dlc_mul(d->pool, panel, d->depth), dlc_muli(d->pool, flat_k(d), d->plan->n));
        offset = dlc_add(d->pool, offset, dlc_addi(d->pool, axis_of(d, d->lanes), (int64_t)v * d->width));
        copy c = {d, substituted(d, d->at.contraction.b), dlc_schedule_offset(nest->kernel, nest->schedule, d->s, 'b'),
                  offset};
        enter_lanes(d, masks[v]);
        copy_body(nest, &c);
        leave_lanes(d);
    }
    close_loops(d, opened + 1);
}

/* --- the register tile --- */

enum { MAX_ROWS = 64, MAX_VECTORS = 32 };

typedef struct {
    uint32_t nrows, nvectors;
    dlc_expr points[MAX_ROWS]; /* flattened row */
    dlc_val masks[MAX_VECTORS];
    dlc_expr a[MAX_ROWS], b[MAX_VECTORS]; /* factors over the reduced axes */
    dlc_var acc[MAX_ROWS][MAX_VECTORS];
} tile;

static void make_factors(const dot *d, tile *t)
{
    dlc_dtype dtype = d->stage->dtype[0];
    dlc_nest *nest = d->nest;
    dlc_expr flat = flat_k(d);
    dlc_expr bytes_a = dlc_schedule_offset(nest->kernel, nest->schedule, d->s, 'a');
    dlc_expr bytes_b = dlc_schedule_offset(nest->kernel, nest->schedule, d->s, 'b');
    for (uint32_t r = 0; r < t->nrows; r++) {
        dlc_expr row = dlc_sub(d->pool, t->points[r], axis_of(d, d->m0));
        set_rows(d, t->points[r]);
        t->a[r] = d->plan->copy_a
                      ? dlc_nest_flat(nest, 0, bytes_a, dtype, dlc_add(d->pool, dlc_mul(d->pool, row, d->row), flat))
                      : substituted(d, d->at.contraction.a);
    }
    dlc_expr panel = dlc_sub(d->pool, dlc_muli(d->pool, axis_of(d, d->panel), d->plan->n), d->copy_base);
    for (uint32_t v = 0; v < t->nvectors; v++) {
        dlc_expr lane = dlc_addi(d->pool, axis_of(d, d->lanes), (int64_t)v * d->width);
        dlc_expr offset = dlc_add(d->pool, dlc_mul(d->pool, panel, d->depth), dlc_muli(d->pool, flat, d->plan->n));
        set_columns(d, column(d, v));
        t->b[v] = d->plan->copy_b ? dlc_nest_flat(nest, 1, bytes_b, dtype, dlc_add(d->pool, offset, lane))
                                  : substituted(d, d->at.contraction.b);
    }
}

/* One axis in place of the two innermost reduced ones where every factor stays linear: fewer, longer loops. */
static int merge_k(const dot *d, tile *t, dlc_ids *loops, dlc_ids *extents)
{
    uint32_t n = loops->n;
    if (n < 2)
        return 0;
    uint32_t outer = loops->data[n - 2], inner = loops->data[n - 1];
    dlc_expr inner_extent = extents->data[n - 1];
    dlc_expr extent = dlc_mul(d->pool, extents->data[n - 2], inner_extent);
    uint32_t merged = dlc_nest_axis(d->nest, extent);
    dlc_expr *with = dlc_new_array(d->nest->arena, dlc_expr, d->nest->axes.n);
    with[outer] = dlc_floordiv(d->pool, axis_of(d, merged), inner_extent);
    with[inner] = dlc_mod(d->pool, axis_of(d, merged), inner_extent);
    dlc_expr a[MAX_ROWS], b[MAX_VECTORS];
    for (uint32_t r = 0; r < t->nrows; r++) {
        a[r] = simplified(d, dlc_expr_substitute(d->pool, t->a[r], with, d->nest->axes.n));
        if (!dlc_nest_is_linear(d->nest, a[r], merged))
            return 0;
    }
    for (uint32_t v = 0; v < t->nvectors; v++) {
        b[v] = simplified(d, dlc_expr_substitute(d->pool, t->b[v], with, d->nest->axes.n));
        if (!dlc_nest_is_linear(d->nest, b[v], merged))
            return 0;
    }
    for (uint32_t r = 0; r < t->nrows; r++)
        t->a[r] = a[r];
    for (uint32_t v = 0; v < t->nvectors; v++)
        t->b[v] = b[v];
    loops->data[n - 2] = merged;
    extents->data[n - 2] = extent;
    loops->n = extents->n = n - 1;
    return 1;
}

static void multiply(const dot *d, tile *t)
{
    dlc_nest *nest = d->nest;
    dlc_dtype dtype = d->stage->dtype[0];
    dlc_val b[MAX_VECTORS];
    for (uint32_t v = 0; v < t->nvectors; v++) {
        nest->mask = d->plan->copy_b ? NULL : t->masks[v];
        b[v] = dlc_nest_value_at(nest, t->b[v]);
    }
    nest->mask = NULL;
    for (uint32_t r = 0; r < t->nrows; r++) {
        dlc_val a = dlc_nest_value_at(nest, t->a[r]);
        for (uint32_t v = 0; v < t->nvectors; v++) {
            dlc_val args[] = {a, b[v], nest->emit->var_get(nest->emit, t->acc[r][v])};
            nest->emit->var_set(nest->emit, t->acc[r][v],
                                nest->emit->arith(nest->emit, DLC_EXPR_MULADD, dtype, dtype, d->width, args));
        }
    }
}

static void accumulate(const dot *d, tile *t)
{
    dlc_nest *nest = d->nest;
    dlc_ids loops = {0}, extents = {0};
    for (uint32_t i = 0; i < d->stage->reduce.n; i++) {
        dlc_vec_push(nest->arena, &loops, d->stage->reduce.data[i]);
        dlc_vec_push(nest->arena, &extents, extent_of(d, d->stage->reduce.data[i]));
    }
    make_factors(d, t);
    while (merge_k(d, t, &loops, &extents))
        ;
    for (uint32_t r = 0; r < t->nrows; r++)
        for (uint32_t v = 0; v < t->nvectors; v++) {
            t->acc[r][v] = nest->emit->var_new(nest->emit, d->stage->dtype[0], d->width);
            nest->emit->var_set(nest->emit, t->acc[r][v],
                                dlc_nest_identity(nest, DLC_REDUCE_SUM, d->stage->dtype[0], 0, d->width));
        }
    for (uint32_t i = 0; i < loops.n; i++)
        dlc_nest_loop(nest, loops.data[i], dlc_nest_i64(nest, 0), dlc_nest_uniform(nest, extents.data[i]), 1);
    enter_lanes(d, NULL);
    multiply(d, t);
    leave_lanes(d);
    close_loops(d, loops.n);
}

/* --- epilogue --- */

static void finish_point(const dot *d, tile *t, uint32_t r, uint32_t v)
{
    dlc_val sum = d->nest->emit->var_get(d->nest->emit, t->acc[r][v]);
    set_rows(d, t->points[r]);
    set_columns(d, column(d, v));
    dlc_nest_epilogue(d->nest, d->s, dlc_nest_pseudo(d->nest, d->stage->dtype[0], sum, d->width),
                      d->at.contraction.scale, d->with);
}

static void finish(const dot *d, tile *t)
{
    for (uint32_t v = 0; v < t->nvectors; v++) {
        enter_lanes(d, t->masks[v]);
        for (uint32_t r = 0; r < t->nrows; r++)
            finish_point(d, t, r, v);
        leave_lanes(d);
    }
}

/* --- panels and rows --- */

static void one_tile(dot *d, const dlc_expr *points, uint32_t nrows, uint32_t nvectors, int ragged)
{
    tile *t = dlc_new(d->nest->arena, tile);
    t->nrows = nrows;
    t->nvectors = nvectors;
    for (uint32_t r = 0; r < nrows; r++)
        t->points[r] = points[r];
    for (uint32_t v = 0; v < nvectors && ragged; v++)
        t->masks[v] = column_mask(d, v);
    accumulate(d, t);
    finish(d, t);
}

/* Whole panels in a loop, then the columns left over with lanes masked. */
static void panels(dot *d, const dlc_expr *points, uint32_t nrows)
{
    dlc_nest *nest = d->nest;
    const dlc_root *root = &nest->roots[d->at.n];
    dlc_expr n = dlc_expr_i64(d->pool, d->plan->n);
    dlc_expr first = simplified(d, dlc_floordiv(d->pool, root->first, n));
    dlc_expr whole = simplified(d, dlc_floordiv(d->pool, root->last, n));
    int64_t columns = 0;
    int known = dlc_expr_is_int(d->pool, d->columns, &columns);
    if (!known || columns >= d->plan->n) {
        dlc_nest_loop(nest, d->panel, dlc_nest_uniform(nest, first), dlc_nest_uniform(nest, whole), 1);
        one_tile(d, points, nrows, d->nvectors, 0);
        dlc_nest_loop_end(nest);
    }
    if (!is_ragged(d))
        return;
    dlc_expr left = dlc_lt(d->pool, dlc_mul(d->pool, whole, n), root->last);
    nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, simplified(d, left)));
    dlc_nest_enter(nest);
    dlc_nest_bind(nest, d->panel, dlc_nest_uniform(nest, whole), 1);
    uint32_t nvectors = d->nvectors;
    if (known)
        nvectors = (uint32_t)((columns % d->plan->n + d->width - 1) / d->width);
    one_tile(d, points, nrows, nvectors, 1);
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
}

/* One height of the row tile; `limit` (or 0) clamps rows past the end to the last row. */
static void rows_of_height(dot *d, uint32_t height, dlc_expr condition, dlc_expr limit)
{
    dlc_nest *nest = d->nest;
    dlc_expr points[MAX_ROWS];
    uint32_t m0 = d->m0;
    if (condition) {
        dlc_val first = dlc_nest_uniform(nest, axis_of(d, m0));
        nest->emit->if_begin(nest->emit, dlc_nest_uniform(nest, simplified(d, condition)));
        dlc_nest_enter(nest);
        d->m0 = dlc_nest_axis(nest, d->rows); /* bound in here: rows that are not there are not read outside */
        dlc_nest_bind(nest, d->m0, first, 1);
    }
    for (uint32_t r = 0; r < height; r++) {
        points[r] = dlc_addi(d->pool, axis_of(d, d->m0), r);
        if (limit && r > 0) {
            uint32_t clamped = dlc_nest_axis(nest, d->rows);
            dlc_nest_bind(nest, clamped, dlc_nest_uniform(nest, dlc_min(d->pool, points[r], limit)), 1);
            points[r] = axis_of(d, clamped);
        }
    }
    panels(d, points, height);
    if (condition) {
        d->m0 = m0;
        dlc_nest_leave(nest);
        nest->emit->if_end(nest->emit);
    }
}

/* A symbolic number of rows: full tiles, and a few heights for the last one. */
static void rows_of_symbolic(dot *d)
{
    dlc_pool *pool = d->pool;
    dlc_expr left = dlc_sub(pool, d->rows, axis_of(d, d->m0));
    dlc_expr limit = dlc_addi(pool, d->rows, -1);
    uint32_t m = d->plan->m, heights[] = {m, (2 * m + 2) / 3, (m + 2) / 3, 1, 0};
    rows_of_height(d, m, dlc_le(pool, dlc_expr_i64(pool, m), left), 0);
    for (uint32_t i = 0; heights[i]; i++) {
        uint32_t most = i == 0 ? m - 1 : heights[i];
        if (most <= heights[i + 1])
            continue; /* the next height covers it */
        dlc_expr fits = dlc_and(pool, dlc_le(pool, left, dlc_expr_i64(pool, most)),
                                dlc_lt(pool, dlc_expr_i64(pool, heights[i + 1]), left));
        rows_of_height(d, heights[i], fits, limit);
    }
}

/* Sets m0 and height for a known number of rows: ntiles near-equal heights, the taller ones first. */
static void balance(dot *d, int64_t rows, int64_t *tall, int64_t *height)
{
    dlc_pool *pool = d->pool;
    dlc_nest *nest = d->nest;
    int64_t m = d->plan->m, ntiles = (rows + m - 1) / m;
    *height = (rows + ntiles - 1) / ntiles;
    *tall = rows - ntiles * (*height - 1);
    dlc_expr index = simplified(d, dlc_floordiv(pool, nest->roots[d->at.m].first, dlc_expr_i64(pool, m)));
    dlc_expr first = dlc_muli(pool, index, *height);
    d->height = dlc_expr_i64(pool, *height);
    if (*tall < ntiles) {
        dlc_expr shorter = dlc_max(pool, dlc_expr_i64(pool, 0), dlc_addi(pool, index, -*tall));
        first = dlc_sub(pool, first, shorter);
        d->height = dlc_select(pool, dlc_lt(pool, index, dlc_expr_i64(pool, *tall)), d->height,
                               dlc_expr_i64(pool, *height - 1));
    }
    dlc_nest_bind(nest, d->m0, dlc_nest_uniform(nest, simplified(d, first)), 1);
    *tall = *tall < ntiles ? *tall : 0; /* 0: all of one height */
}

static void row_tile(dot *d, int is_constant, int64_t tall, int64_t height)
{
    dlc_pool *pool = d->pool;
    d->nest->home_level = d->nest->level;
    if (d->at.m == UINT32_MAX || (is_constant && !tall)) {
        rows_of_height(d, (uint32_t)height, 0, 0);
    } else if (is_constant) {
        dlc_expr is_tall = dlc_eq(pool, d->height, dlc_expr_i64(pool, height));
        rows_of_height(d, (uint32_t)height, is_tall, 0);
        if (height > 1)
            rows_of_height(d, (uint32_t)height - 1, dlc_expr1(pool, DLC_EXPR_NOT, is_tall), 0);
    } else {
        rows_of_symbolic(d);
    }
}

static void prepare(dot *d, dlc_nest *nest)
{
    const dlc_kernel *kernel = nest->kernel;
    d->nest = nest;
    d->pool = kernel->pool;
    while (nest->schedule->plans[d->s].method != DLC_METHOD_DOT)
        d->s++;
    d->stage = &kernel->stages.data[d->s];
    d->plan = &nest->schedule->plans[d->s];
    d->width = nest->schedule->width;
    d->nvectors = d->plan->n / d->width;
    d->lanes = new_axis(d, d->width);
    d->zero = new_axis(d, 1);
    d->depth = dlc_schedule_depth(nest->kernel, d->s);
    d->row = dlc_schedule_row(nest->kernel, d->s);
}

static void set_extents(dot *d)
{
    dlc_nest *nest = d->nest;
    d->rows = d->at.m == UINT32_MAX ? dlc_expr_i64(d->pool, 1) : dlc_root_extent(nest, d->at.m);
    d->columns = dlc_root_extent(nest, d->at.n);
    d->copy_base = dlc_expr_i64(d->pool, 0);
    d->m0 = dlc_nest_axis(nest, d->rows);
    d->panel = dlc_nest_axis(nest, dlc_addi(d->pool, dlc_floordiv(d->pool, d->columns,
                                                                 dlc_expr_i64(d->pool, d->plan->n)), 1));
    d->with = dlc_new_array(nest->arena, dlc_expr, nest->kernel->axes.n + 1);
}

/* Opens root loop l, after B's copy when the rows' loop is next. */
static void open_root(dot *d, uint32_t l)
{
    dlc_nest *nest = d->nest;
    if (l == d->at.m && d->plan->copy_b) {
        int inside = d->at.n < d->at.m;
        d->copy_base = inside ? nest->roots[d->at.n].first : dlc_expr_i64(d->pool, 0);
        copy_b(d, inside ? nest->roots[d->at.n].last : d->columns);
    }
    dlc_root_open(nest, l);
}

dlc_status dlc_cpu_dot(dlc_emitter *e, dlc_nest *nest)
{
    dot d = {0};
    int64_t rows = 1, tall = 0, height = 1;
    (void)e;
    prepare(&d, nest);
    if (!dlc_schedule_dot_loops(nest->kernel, nest->schedule, d.s, &d.at) || d.plan->m > MAX_ROWS ||
        d.nvectors > MAX_VECTORS || d.nvectors == 0)
        return dlc_diag_fail(nest->diag, DLC_INTERNAL, nest->kernel->name,
                             "the schedule's loops do not fit the contraction of stage '%s'", d.stage->name);
    set_extents(&d);
    int is_constant = dlc_expr_is_int(d.pool, d.rows, &rows);
    dlc_nest_bind(nest, d.zero, dlc_nest_i64(nest, 0), 1);
    for (uint32_t l = 0; l < nest->schedule->loops.n; l++) {
        open_root(&d, l);
        if (l != d.at.m)
            continue;
        d.height = dlc_min(d.pool, dlc_sub(d.pool, d.rows, nest->roots[l].first), dlc_expr_i64(d.pool, d.plan->m));
        if (is_constant)
            balance(&d, rows, &tall, &height);
        else
            dlc_nest_bind(nest, d.m0, dlc_nest_uniform(nest, nest->roots[l].first), 1);
        if (d.plan->copy_a)
            copy_a(&d);
    }
    if (d.at.m == UINT32_MAX) {
        dlc_nest_bind(nest, d.m0, dlc_nest_i64(nest, 0), 1);
        d.height = dlc_expr_i64(d.pool, 1);
        if (d.plan->copy_b)
            copy_b(&d, d.columns);
        if (d.plan->copy_a)
            copy_a(&d);
    }
    row_tile(&d, is_constant, tall, height);
    for (uint32_t l = nest->schedule->loops.n; l-- > 0;)
        dlc_root_close(nest, l);
    return DLC_OK;
}

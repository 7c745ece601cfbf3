/*
 * The dot method on CUDA: a block of 256 threads computes an m x n tile, each thread (m/16) x (n/16) of it in registers.
 * Slices of 16 along K go through shared memory; the next slice is loaded into registers while the present one is multiplied.
 * Threads are points of their own here (width 1): every thread has its own row, column and k, so guards, gathers and
 * any expression in place of a plain load need nothing special.
 *
 *     load slice 0
 *     for k0 = 0, 16, …:  shared = registers; sync; load slice k0 + 16; 16 x (multiply); sync
 *     epilogue on acc, store
 */
#include <assert.h>

#include "codegen/ptx/text.h"

enum { SLICE = 16, SIDE = DLC_CUDA_SIDE, THREADS = SIDE * SIDE };

typedef struct {
    dlc_cuda *cuda;
    dlc_nest *nest;
    dlc_pool *pool;
    uint32_t s;
    const dlc_stage *stage;
    const dlc_block_form *plan;
    dlc_dot_loops at;
    dlc_expr rows, columns, depth;
    dlc_expr first_row, first_column;
    dlc_expr *with;
    const char *type;
} dot;

/* One of the two slices: which points it holds and how threads are laid over it. */
typedef struct {
    const char *name;    /* "a" or "b" */
    dlc_expr value;      /* the factor */
    int is_a, along_k;   /* neighbouring threads: neighbours in k, else in rows or columns */
    uint32_t points;     /* m or n */
    uint32_t nloads;     /* per thread */
} slice;

static dlc_expr axis_of(const dot *d, uint32_t axis)
{
    return dlc_expr_axis(d->pool, axis);
}

static uint32_t bind_text(const dot *d, dlc_expr extent, const char *value)
{
    uint32_t axis = dlc_nest_axis(d->nest, extent);
    dlc_nest_bind(d->nest, axis, (dlc_val)value, 1);
    return axis;
}

static const char *text_of(const dot *d, dlc_expr expr)
{
    return (const char *)dlc_nest_uniform(d->nest, dlc_expr_simplify(d->pool, expr, &d->nest->ranges));
}

static void set_k(const dot *d, dlc_expr k)
{
    dlc_expr inner = dlc_expr_i64(d->pool, 1);
    for (uint32_t i = d->stage->reduce.n; i-- > 0;) {
        uint32_t axis = d->stage->reduce.data[i];
        dlc_expr extent = d->nest->kernel->axes.data[axis].extent, value = dlc_floordiv(d->pool, k, inner);
        d->with[axis] = dlc_expr_simplify(d->pool, i ? dlc_mod(d->pool, value, extent) : value, &d->nest->ranges);
        inner = dlc_mul(d->pool, inner, extent);
    }
}

static void set_point(const dot *d, int is_a, dlc_expr point)
{
    if (is_a && d->at.m != UINT32_MAX)
        dlc_root_delinearise(d->nest, d->at.m, point, d->with);
    else if (!is_a)
        dlc_root_delinearise(d->nest, d->at.n, point, d->with);
}

static dlc_expr substituted(const dot *d, dlc_expr expr)
{
    return dlc_nest_substitute(d->nest, expr, d->with);
}

/* True when neighbours in K are neighbours in memory. */
static int is_contiguous_in_k(const dot *d, dlc_expr factor)
{
    uint32_t last = d->stage->reduce.data[d->stage->reduce.n - 1];
    return dlc_nest_stride(d->nest, factor, last) == 1;
}

/* The points of element e of this thread: its place within the slice, as C text. */
static void place_of(const dot *d, const slice *part, uint32_t e, const char **point, const char **k)
{
    dlc_arena *arena = d->cuda->arena;
    const char *number = dlc_arena_printf(arena, "(thread + %u)", e * THREADS);
    if (part->along_k) {
        *point = dlc_arena_printf(arena, "(%s / %d)", number, SLICE);
        *k = dlc_arena_printf(arena, "(%s %% %d)", number, SLICE);
    } else {
        *point = dlc_arena_printf(arena, "(%s %% %u)", number, part->points);
        *k = dlc_arena_printf(arena, "(%s / %u)", number, part->points);
    }
}

/* Loads this thread's elements of the slice at k0 into registers; outside the matrix they are 0. */
static void load_slice(const dot *d, const slice *part, const char *k0)
{
    dlc_nest *nest = d->nest;
    for (uint32_t e = 0; e < part->nloads; e++) {
        const char *point, *k, *index = dlc_cuda_type(d->cuda, DLC_I64);
        place_of(d, part, e, &point, &k);
        dlc_expr first = part->is_a ? d->first_row : d->first_column, count = part->is_a ? d->rows : d->columns;
        dlc_val p = dlc_cuda_value(d->cuda, DLC_I64, "%s + (%s)%s", text_of(d, first), index, point);
        dlc_val kk = dlc_cuda_value(d->cuda, DLC_I64, "%s + (%s)%s", k0, index, k);
        dlc_cuda_line(d->cuda, "reg_%s[%u] = 0;", part->name, e);
        const char *inside = dlc_arena_printf(d->cuda->arena, "%s < %s && %s < %s", (const char *)p, text_of(d, count),
                                              (const char *)kk, text_of(d, d->depth));
        nest->emit->if_begin(nest->emit, (dlc_val)inside);
        dlc_nest_enter(nest); /* bound in here: what depends on the point is not computed outside the guard */
        uint32_t point_axis = bind_text(d, count, (const char *)p), k_axis = bind_text(d, d->depth, (const char *)kk);
        set_point(d, part->is_a, axis_of(d, point_axis));
        set_k(d, axis_of(d, k_axis));
        dlc_cuda_line(d->cuda, "reg_%s[%u] = %s;", part->name, e, text_of(d, substituted(d, part->value)));
        dlc_nest_leave(nest);
        nest->emit->if_end(nest->emit);
    }
}

static void share_slice(const dot *d, const slice *part)
{
    for (uint32_t e = 0; e < part->nloads; e++) {
        const char *point, *k;
        place_of(d, part, e, &point, &k);
        dlc_cuda_line(d->cuda, "shared_%s[%s * %u + %s] = reg_%s[%u];", part->name, k, part->points + 4, point, part->name, e);
    }
}

static const char *multiply_text(const dot *d)
{
    dlc_dtype dtype = d->stage->dtype[0];
    if (dtype == DLC_F32 || dtype == DLC_F64)
        return dlc_arena_printf(d->cuda->arena, "acc[r][c] = %s(fa[r], fb[c], acc[r][c]);", dtype == DLC_F64 ? "fma" : "fmaf");
    return dlc_arena_printf(d->cuda->arena, "acc[r][c] = (%s)(%sfa[r] * fb[c] + acc[r][c]);", d->type,
                            dlc_cuda_wrapping(d->cuda, dtype));
}

static void multiply_slice(const dot *d)
{
    uint32_t tm = d->plan->m / SIDE, tn = d->plan->n / SIDE;
    dlc_cuda_line(d->cuda, "for (int k = 0; k < %d; k++) {", SLICE);
    dlc_cuda_line(d->cuda, "    %s fa[%u], fb[%u];", d->type, tm, tn);
    dlc_cuda_line(d->cuda, "    for (int r = 0; r < %u; r++) fa[r] = shared_a[k * %u + thread / %d * %u + r];", tm,
                  d->plan->m + 4u, SIDE, tm);
    dlc_cuda_line(d->cuda, "    for (int c = 0; c < %u; c++) fb[c] = shared_b[k * %u + thread %% %d + c * %d];", tn,
                  d->plan->n + 4u, SIDE, SIDE);
    dlc_cuda_line(d->cuda, "    for (int r = 0; r < %u; r++) for (int c = 0; c < %u; c++) %s", tm, tn, multiply_text(d));
    dlc_cuda_line(d->cuda, "}");
}

static void declare(const dot *d, const slice *a, const slice *b)
{
    uint32_t tm = d->plan->m / SIDE, tn = d->plan->n / SIDE;
    dlc_cuda_line(d->cuda, "%s *shared_a = (%s *)dlc_shared, *shared_b = shared_a + %u;", d->type, d->type,
                  SLICE * (d->plan->m + 4u));
    dlc_cuda_line(d->cuda, "%s reg_a[%u], reg_b[%u], acc[%u][%u];", d->type, a->nloads, b->nloads, tm, tn);
    dlc_cuda_line(d->cuda, "for (int r = 0; r < %u; r++) for (int c = 0; c < %u; c++) acc[r][c] = 0;", tm, tn);
}

static slice slice_of(const dot *d, int is_a)
{
    slice part = {.name = is_a ? "a" : "b", .is_a = is_a, .value = is_a ? d->at.contraction.a : d->at.contraction.b,
                  .points = is_a ? d->plan->m : d->plan->n};
    part.along_k = is_contiguous_in_k(d, part.value);
    part.nloads = part.points * SLICE / THREADS;
    return part;
}

static void accumulate(const dot *d)
{
    dlc_nest *nest = d->nest;
    slice a = slice_of(d, 1), b = slice_of(d, 0);
    declare(d, &a, &b);
    load_slice(d, &a, "0");
    load_slice(d, &b, "0");
    uint32_t k0 = dlc_nest_axis(nest, d->depth);
    const char *index = (const char *)dlc_nest_loop(nest, k0, dlc_nest_i64(nest, 0), (dlc_val)text_of(d, d->depth), SLICE);
    share_slice(d, &a);
    share_slice(d, &b);
    dlc_cuda_line(d->cuda, "dlc_block_sync();");
    const char *next = dlc_arena_printf(d->cuda->arena, "(%s + %d)", index, SLICE);
    load_slice(d, &a, next);
    load_slice(d, &b, next);
    multiply_slice(d);
    dlc_cuda_line(d->cuda, "dlc_block_sync();");
    dlc_nest_loop_end(nest);
}

/* --- epilogue --- */

static void finish_point(const dot *d, uint32_t r, uint32_t c, uint32_t row, uint32_t column)
{
    const char *acc = dlc_arena_printf(d->cuda->arena, "acc[%u][%u]", r, c);
    set_point(d, 1, axis_of(d, row));
    set_point(d, 0, axis_of(d, column));
    dlc_nest_epilogue(d->nest, d->s, dlc_nest_pseudo(d->nest, d->stage->dtype[0], (dlc_val)acc, 1),
                      d->at.contraction.scale, d->with);
}

static void finish(const dot *d)
{
    dlc_nest *nest = d->nest;
    uint32_t tm = d->plan->m / SIDE, tn = d->plan->n / SIDE;
    for (uint32_t r = 0; r < tm; r++)
        for (uint32_t c = 0; c < tn; c++) {
            const char *index = dlc_cuda_type(d->cuda, DLC_I64);
            dlc_val row = dlc_cuda_value(d->cuda, DLC_I64, "%s + (%s)(thread / %d * %u + %u)", text_of(d, d->first_row),
                                         index, SIDE, tm, r);
            dlc_val column = dlc_cuda_value(d->cuda, DLC_I64, "%s + (%s)(thread %% %d + %u)", text_of(d, d->first_column),
                                            index, SIDE, c * SIDE);
            const char *inside = dlc_arena_printf(d->cuda->arena, "%s < %s && %s < %s", (const char *)row,
                                                  text_of(d, d->rows), (const char *)column, text_of(d, d->columns));
            nest->emit->if_begin(nest->emit, (dlc_val)inside);
            dlc_nest_enter(nest);
            uint32_t row_axis = bind_text(d, d->rows, (const char *)row);
            uint32_t column_axis = bind_text(d, d->columns, (const char *)column);
            finish_point(d, r, c, row_axis, column_axis);
            dlc_nest_leave(nest);
            nest->emit->if_end(nest->emit);
        }
}

uint32_t dlc_cuda_dot_bytes(const dlc_block_form *plan, dlc_dtype dtype)
{
    return SLICE * (plan->m + 4u + plan->n + 4u) * dlc_dtype_bytes(dtype);
}

dlc_status dlc_cuda_dot(dlc_emitter *e, dlc_nest *nest)
{
    dot d = {.cuda = (dlc_cuda *)e, .nest = nest, .pool = nest->kernel->pool};
    d.stage = &nest->kernel->stages.data[d.s];
    d.plan = &nest->schedule->block;
    d.type = dlc_cuda_memory_type(d.stage->dtype[0]);
    if (!dlc_schedule_dot_loops(nest->kernel, nest->schedule, &d.at))
        return dlc_diag_fail(nest->diag, DLC_INTERNAL, nest->kernel->name,
                             "the schedule's loops do not fit the contraction of stage '%s'", d.stage->name);
    for (uint32_t l = 0; l < nest->schedule->block.loops.n; l++)
        dlc_root_open(nest, l);
    d.rows = d.at.m == UINT32_MAX ? dlc_expr_i64(d.pool, 1) : dlc_root_extent(nest, d.at.m);
    d.columns = dlc_root_extent(nest, d.at.n);
    d.depth = dlc_schedule_depth(nest->kernel, d.s);
    d.first_row = d.at.m == UINT32_MAX ? dlc_expr_i64(d.pool, 0) : nest->roots[d.at.m].first;
    d.first_column = nest->roots[d.at.n].first;
    d.with = dlc_new_array(nest->arena, dlc_expr, nest->kernel->axes.n + 1);
    accumulate(&d);
    finish(&d);
    return DLC_OK;
}

/*
 * Winograd: the m x m results of a 3x3 convolution of stride 1 (2: below) from (m + 2)² products instead of 9 m². (Winograd, "Arithmetic
 * Complexity of Computations", 1980; for convolutions: Lavin and Gray, CVPR 2016.) With n = m + 2 and tiles t:
 *
 *     v1[t,p,h,ic]   = sum(g) B[g,p] * x[rows g, column h of tile t]       v[p,q,t,ic]  = sum(h) B[h,q] * v1
 *     mm[p,q,t,oc]   = sum(ic) v * u[p,q,ic,oc]                            u = G w G', a constant, computed in f64
 *     z[t,r,q,oc]    = sum(p) A[p,r] * mm                                  y[oh,ow,oc]  = sum(q) A[q,s] * z
 *
 * Each direction has a form of its own (winograd_form.c). One without a window, as in convolutions of 1x7, has one tile for each result and
 * no points; then there are no v1 and z. Windows of more taps than the form has are several side by side, whose results are added: a window
 * of 7 taps is one of 4, and 3 further on another, of which the tap that both have is 0 in the first. So the product sums over them, too.
 *
 * Of bytes, points are numbers of 16 bits that are multiplied by pairs, and all is exact: forms in whole numbers (winograd_form.c) make
 * results a number of times as large, by which they are divided. Where these have bits enough is known from the filter itself
 * (winograd_range.c), or from the number of channels.
 *
 * Of bf16, where the user asks for that precision and the target multiplies it by pairs, forms that lose little cut v and u to bf16;
 * transforms are f32.
 *
 * Windows two apart have a form of their own, whose 2 x 2 results take 25 products in place of 36: n is 5, and a tile 5 x 5.
 *
 * Rows of transforms are chosen by `select(p == 0, …)`: a schedule writes p out, and what is left is one row's arithmetic. Tiles
 * that stick out read zeros there; results outside are not computed. Where only the run knows how many tiles a row has, their number
 * would be divided by it: rows of tiles and tiles of a row are axes of their own then.
 *
 * Where taps are d points apart, results that are d apart are those of a convolution of neighbours: a phase of the image. Rows' phases are
 * images; columns' phases have their tiles side by side in each row, so that a unit has tiles enough. Phases are of one size: where d does
 * not divide the image, what sticks out goes into a value that has room for it.
 *
 * Of windows along more directions, tiles lie along the last two that have three taps or more; other taps are summed as channels are, so each of
 * their points has filters and tiles of its own.
 *
 * Vectors run along channels. Where what follows does not store along them, results lie channels last first, and a kernel of its own
 * turns them: one tile's are too few neighbours to be turned while they are made.
 */
#include "ir/kernel/algebra.h"
#include "passes/lower/lower.h"
#include "passes/rewrite/rewrite.h"
#include "passes/rewrite/winograd.h"

enum { TAPS = DLC_WINOGRAD_TAPS, MOST_POINTS = DLC_WINOGRAD_POINTS, NFORMS = DLC_WINOGRAD_FORMS, NO_PAIR = NFORMS * NFORMS };

typedef dlc_winograd_site site;

static dlc_expr tiles_of(const site *at, dlc_pool *pool, uint32_t d)
{
    int64_t m = dlc_winograd_results(at, d);
    return dlc_floordiv(pool, dlc_addi(pool, at->along[d].size, m - 1), dlc_expr_i64(pool, m));
}

/* As many as all phases have together, which are of one size: what step does not divide sticks out. */
static dlc_expr padded_size(const site *at, dlc_pool *pool, uint32_t d)
{
    dlc_expr step = dlc_expr_i64(pool, at->along[d].step), whole = dlc_winograd_whole_size(at, d);
    return at->along[d].step == 1 ? whole : dlc_mul(pool, dlc_floordiv(pool, dlc_addi(pool, whole, at->along[d].step - 1), step), step);
}

/* rows[index] */
static dlc_expr chosen(dlc_pool *pool, dlc_expr index, const dlc_expr *rows, int64_t n)
{
    dlc_expr value = rows[n - 1];
    for (int64_t i = n - 1; i-- > 0;)
        value = dlc_select(pool, dlc_eq(pool, index, dlc_expr_i64(pool, i)), rows[i], value);
    return value;
}

/* --- the filter's kernel --- */

/* One stays in it: its extent is known. */
static uint32_t copy_axis(const site *at, dlc_kernel *kernel, uint32_t axis)
{
    const dlc_axis *from = &at->kernel->axes.data[axis];
    return dlc_kernel_axis(kernel, from->name, dlc_expr_i64(kernel->pool, dlc_expr_value(at->kernel->pool, from->extent)));
}

/* Windows side by side, where there are several: along direction d. */
static uint32_t groups_axis(const site *at, dlc_kernel *kernel, uint32_t d)
{
    int64_t n = dlc_winograd_groups(at, d);
    return n == 1 ? DLC_NO_AXIS : dlc_kernel_axis(kernel, d ? "gw" : "gh", dlc_expr_i64(kernel->pool, n));
}

/* Along direction d: point k of the window that the axis of groups is at. */
static dlc_expr tap_of(const site *at, dlc_pool *pool, uint32_t d, dlc_expr k, uint32_t group)
{
    return group == DLC_NO_AXIS ? k : dlc_add(pool, k, dlc_muli(pool, dlc_expr_axis(pool, group), dlc_winograd_between(at, d)));
}

/* What the filter's kernel is made of: its axes by what they stand for, in the order of *stays. */
typedef struct {
    const site *at;
    dlc_kernel *kernel;
    uint32_t column;   /* taps of direction 1, or DLC_NO_AXIS */
    uint32_t group[2]; /* or DLC_NO_AXIS */
    dlc_ids others;
    uint32_t ic, oc;
    dlc_ids stays;     /* all but column */
    double g[2][MOST_POINTS][TAPS];
} filter;

static void find_filter_axes(filter *f)
{
    const site *at = f->at;
    dlc_arena *arena = f->kernel->arena;
    f->column = at->along[1].tap == DLC_NO_AXIS ? DLC_NO_AXIS : copy_axis(at, f->kernel, at->along[1].tap);
    for (uint32_t d = 0; d < 2; d++)
        if ((f->group[d] = groups_axis(at, f->kernel, d)) != DLC_NO_AXIS)
            dlc_vec_push(arena, &f->stays, f->group[d]);
    for (uint32_t i = 0; i < at->others.n; i++) {
        dlc_vec_push(arena, &f->others, copy_axis(at, f->kernel, at->others.data[i]));
        dlc_vec_push(arena, &f->stays, f->others.data[i]);
    }
    f->ic = dlc_kernel_axis(f->kernel, "ic", dlc_expr_i64(f->kernel->pool, at->inputs));
    f->oc = dlc_kernel_axis(f->kernel, "oc", dlc_expr_i64(f->kernel->pool, at->outputs));
    dlc_vec_push(arena, &f->stays, f->ic);
    dlc_vec_push(arena, &f->stays, f->oc);
}

/* The one that stands for the convolution's, which is not of a tap along direction 0. */
static uint32_t filter_axis(const filter *f, uint32_t axis)
{
    uint32_t position;
    if (axis == f->at->along[1].tap)
        return f->column;
    if (dlc_ids_find(&f->at->others, axis, &position))
        return f->others.data[position];
    return axis == f->at->ic ? f->ic : f->oc;
}

/* The value of tap k, which is 0 where the next window has it, too. */
static dlc_expr own_value(const filter *f, uint32_t d, int64_t k, dlc_expr value)
{
    dlc_pool *pool = f->kernel->pool;
    int64_t n = dlc_winograd_groups(f->at, d);
    if (n == 1 || k < dlc_winograd_between(f->at, d))
        return value;
    dlc_expr is_last = dlc_eq(pool, dlc_expr_axis(pool, f->group[d]), dlc_expr_i64(pool, n - 1));
    return dlc_select(pool, is_last, value, dlc_expr_const(pool, DLC_F64, 0));
}

/* g<p>[kw,…,ic,oc] = sum(kh) G[p,kh] * w, in f64 */
static void add_filter_rows(const filter *f)
{
    const site *at = f->at;
    const dlc_pool *from = at->kernel->pool;
    dlc_pool *pool = f->kernel->pool;
    dlc_expr index[DLC_MAX_RANK], taps[TAPS] = {0};
    uint32_t rank = dlc_load_rank(from, at->w);
    for (int64_t k = 0; k < dlc_winograd_forms[at->along[0].form].taps; k++) {
        for (uint32_t i = 0; i < rank; i++) {
            uint32_t axis = dlc_bare_axis(from, dlc_arg(from, at->w, i));
            index[i] = axis == at->along[0].tap ? tap_of(at, pool, 0, dlc_expr_i64(pool, k), f->group[0]) : dlc_expr_axis(pool, filter_axis(f, axis));
        }
        dlc_dtype dtype = (dlc_dtype)dlc_node_of(from, at->w)->dtype;
        taps[k] = own_value(f, 0, k, dlc_expr_cast(pool, DLC_F64, dlc_expr_load(pool, dtype, 0, index, rank, 0, 0, 0)));
    }
    for (int64_t p = 0; p < dlc_winograd_points(at, 0); p++) {
        dlc_stage *stage = dlc_kernel_stage(f->kernel, dlc_arena_printf(f->kernel->arena, "g%d", (int)p));
        if (f->column != DLC_NO_AXIS)
            dlc_vec_push(f->kernel->arena, &stage->axes, f->column);
        for (uint32_t i = 0; i < f->stays.n; i++)
            dlc_vec_push(f->kernel->arena, &stage->axes, f->stays.data[i]);
        stage->dtype[0] = DLC_F64;
        stage->value[0] = dlc_winograd_weigh(pool, f->g[0][p], taps);
    }
}

static int has_points(const site *at, uint32_t d)
{
    return at->along[d].form != DLC_WINOGRAD_PLAIN;
}

/* As it is multiplied. What cuts bf16, and multiplies it, takes numbers less than 2^-126 for zero. */
static dlc_expr cut_point(const site *at, dlc_pool *pool, dlc_expr point)
{
    dlc_dtype dtype = dlc_winograd_point_type(at);
    return dtype == DLC_BF16 ? dlc_expr_cast_ftz(pool, dtype, point) : dlc_expr_cast(pool, dtype, point);
}

/* u[p,q,…,ic,oc] = sum(kw) G[q,kw] * g<p>, rounded once */
static void add_filter_points(const filter *f)
{
    const site *at = f->at;
    dlc_pool *pool = f->kernel->pool;
    dlc_arena *arena = f->kernel->arena;
    int64_t nrows = dlc_winograd_points(at, 0), ncolumns = dlc_winograd_points(at, 1);
    for (int64_t pq = 0; pq < nrows * ncolumns; pq++) {
        int64_t point[] = {pq / ncolumns, pq % ncolumns};
        dlc_expr taps[TAPS] = {0}, index[DLC_MAX_RANK];
        uint32_t rank = f->column != DLC_NO_AXIS;
        for (uint32_t i = 0; i < f->stays.n; i++)
            index[rank + i] = dlc_expr_axis(pool, f->stays.data[i]);
        for (int64_t k = 0; k < dlc_winograd_forms[at->along[1].form].taps; k++) {
            if (rank)
                index[0] = tap_of(at, pool, 1, dlc_expr_i64(pool, k), f->group[1]);
            taps[k] = own_value(f, 1, k, dlc_expr_load(pool, DLC_F64, DLC_STAGE_SOURCE(point[0]), index, rank + f->stays.n, 0, 0, 0));
        }
        dlc_stage *stage = dlc_kernel_stage(f->kernel, dlc_arena_printf(arena, "u%d%d", (int)point[0], (int)point[1]));
        stage->dtype[0] = dlc_winograd_point_type(at);
        stage->value[0] = cut_point(at, pool, dlc_winograd_weigh(pool, f->g[1][point[1]], taps));
        stage->buffer = 1;
        for (uint32_t d = 0; d < 2; d++)
            if (has_points(at, d))
                dlc_vec_push(arena, &stage->store, dlc_expr_i64(pool, point[d]));
        for (uint32_t i = 0; i < f->stays.n; i++) {
            dlc_vec_push(arena, &stage->axes, f->stays.data[i]);
            dlc_vec_push(arena, &stage->store, index[rank + i]);
        }
    }
}

static const char *filter_name(const site *at)
{
    int64_t m = dlc_winograd_results(at, !has_points(at, 0));
    return dlc_arena_printf(at->arena, "%s.winograd%d%s", dlc_winograd_buffer(at, at->w)->name, (int)m,
                            at->along[0].stride * at->along[1].stride == 1 ? "" : "_strided");
}

/* G of a direction is so many times as large. */
static double times_of(const site *at, uint32_t d)
{
    return dlc_winograd_is_exact(at) ? (double)dlc_winograd_forms[at->along[d].form].whole : 1;
}

/* f32[n, n, …, ic, oc], or i16 or bf16 */
static dlc_buffer filter_buffer(const site *at, dlc_pool *pool, dlc_role role)
{
    dlc_buffer buffer = {.name = filter_name(at), .role = (uint8_t)role, .type = {.dtype = dlc_winograd_point_type(at)}};
    for (uint32_t d = 0; d < 2; d++)
        if (has_points(at, d))
            buffer.type.dims[buffer.type.rank++] = dlc_expr_i64(pool, dlc_winograd_points(at, d));
    for (uint32_t d = 0; d < 2; d++)
        if (dlc_winograd_groups(at, d) > 1)
            buffer.type.dims[buffer.type.rank++] = dlc_expr_i64(pool, dlc_winograd_groups(at, d));
    for (uint32_t i = 0; i < at->others.n; i++)
        buffer.type.dims[buffer.type.rank++] =
            dlc_expr_i64(pool, dlc_expr_value(at->kernel->pool, at->kernel->axes.data[at->others.data[i]].extent));
    buffer.type.dims[buffer.type.rank++] = dlc_expr_i64(pool, at->inputs);
    buffer.type.dims[buffer.type.rank++] = dlc_expr_i64(pool, at->outputs);
    return buffer;
}

static void make_filter(const site *at, dlc_rewritten *out)
{
    dlc_kernel *kernel = dlc_kernel_create(at->arena, at->kernel->name);
    dlc_rewrite_part part = {.kernel = kernel};
    filter f = {.at = at, .kernel = kernel};
    const dlc_buffer *w = dlc_winograd_buffer(at, at->w);
    dlc_buffer copy = *w, u = filter_buffer(at, kernel->pool, DLC_ROLE_OUT);
    for (uint32_t d = 0; d < w->type.rank; d++)
        copy.type.dims[d] = dlc_expr_i64(kernel->pool, dlc_expr_value(at->kernel->pool, w->type.dims[d]));
    dlc_vec_push(kernel->arena, &kernel->buffers, copy);
    dlc_vec_push(kernel->arena, &kernel->buffers, u);
    find_filter_axes(&f);
    for (uint32_t d = 0; d < 2; d++)
        dlc_winograd_filter(at->along[d].form, times_of(at, d), f.g[d]);
    add_filter_rows(&f);
    add_filter_points(&f);
    dlc_vec_push(kernel->arena, &part.buffers, dlc_node_of(at->kernel->pool, at->w)->imm.id);
    dlc_vec_push(kernel->arena, &part.buffers, DLC_REWRITE_MADE | 0);
    dlc_vec_push(kernel->arena, &out->parts, part);
}

/* --- the kernel of the tiles --- */

enum { INPUT_ROWS, INPUT, PRODUCT, OUTPUT_ROWS, RESULTS }; /* the last is the convolution's own; of one direction there are no rows */

static int has_both(const site *at)
{
    return has_points(at, 0) && has_points(at, 1);
}

static uint32_t stage_number(const site *at, uint32_t s)
{
    return has_both(at) ? s : s - (s > INPUT_ROWS) - (s > OUTPUT_ROWS);
}

/* What is being made. */
typedef struct {
    const site *at;
    dlc_kernel *kernel;
    dlc_pool *pool;
    dlc_ids tiles;      /* axes: t, or of rows of tiles and t */
    uint32_t point[2], column, result; /* p, q, h, r; where there are such */
    dlc_ids points;     /* p and q, or the one that there is */
    uint32_t group[2];  /* windows side by side, or DLC_NO_AXIS */
    uint32_t filter;    /* buffer */
    dlc_ids images;     /* kept axes that are neither the image's nor oc */
} tiling;

static dlc_expr shift_stages(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const uint32_t *nnew = ctx;
    uint32_t rank = node->nargs - 2u;
    if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
        return 0;
    return dlc_expr_load(to, (dlc_dtype)node->dtype, DLC_STAGE_SOURCE(DLC_SOURCE_INDEX(node->imm.id) + *nnew), args, rank,
                         args[rank], args[rank + 1], node->flags);
}

/* Room for the new stages in front of the others. */
static void insert_stages(dlc_kernel *kernel, uint32_t nnew)
{
    uint32_t n = kernel->stages.n;
    dlc_expr *root;
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t i = 0; (root = dlc_stage_root(&kernel->stages.data[s], i)); i++)
            *root = dlc_expr_rewrite(kernel->pool, kernel->pool, *root, shift_stages, &nnew);
    for (uint32_t s = 0; s < nnew; s++)
        (void)dlc_kernel_stage(kernel, "");
    for (uint32_t s = n; s-- > 0;)
        kernel->stages.data[s + nnew] = kernel->stages.data[s];
}

/* TILES stands for the tile's number, which may take several axes. */
enum { TILES = DLC_NO_AXIS };

static dlc_dtype dtype_of(const tiling *t, uint32_t s)
{
    return s == INPUT ? dlc_winograd_point_type(t->at) : s < PRODUCT ? dlc_winograd_row_type(t->at) : t->at->sum;
}

/* All axes that the product sums. */
static dlc_ids summed_axes(const tiling *t)
{
    dlc_ids axes = {0};
    for (uint32_t d = 0; d < 2; d++)
        if (t->group[d] != DLC_NO_AXIS)
            dlc_vec_push(t->at->arena, &axes, t->group[d]);
    for (uint32_t i = 0; i < t->at->others.n; i++)
        dlc_vec_push(t->at->arena, &axes, t->at->others.data[i]);
    dlc_vec_push(t->at->arena, &axes, t->at->ic);
    return axes;
}

static void add_axes(const tiling *t, dlc_ids *axes, const uint32_t *more, uint32_t n)
{
    dlc_ids all = {0};
    for (uint32_t i = 0; i < axes->n + n; i++)
        dlc_vec_push(t->at->arena, &all, i < axes->n ? axes->data[i] : more[i - axes->n]);
    *axes = all;
}

static dlc_stage *new_stage(const tiling *t, uint32_t s, const char *name, const dlc_ids *axes)
{
    dlc_stage *stage = &t->kernel->stages.data[stage_number(t->at, s)];
    *stage = (dlc_stage){.name = name, .buffer = DLC_NO_BUFFER, .origin = t->kernel->stages.data[stage_number(t->at, RESULTS)].origin};
    for (uint32_t i = 0; i < t->images.n; i++)
        dlc_vec_push(t->kernel->arena, &stage->axes, t->images.data[i]);
    for (uint32_t i = 0; i < axes->n; i++)
        for (uint32_t j = 0; j < (axes->data[i] == TILES ? t->tiles.n : 1); j++)
            dlc_vec_push(t->kernel->arena, &stage->axes, axes->data[i] == TILES ? t->tiles.data[j] : axes->data[i]);
    stage->dtype[0] = dtype_of(t, s);
    return stage;
}

static dlc_expr axis_of(const tiling *t, uint32_t axis)
{
    return dlc_expr_axis(t->pool, axis);
}

/* A load of a new stage: images at themselves, then these indices; 0 is where the tile's number stands, given by `tile` (NULL: it
 * is at itself, too). */
static dlc_expr load_of(const tiling *t, uint32_t s, const dlc_expr *tile, const dlc_expr *index, uint32_t n)
{
    dlc_expr all[DLC_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < t->images.n; i++)
        all[rank++] = axis_of(t, t->images.data[i]);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < (index[i] ? 1 : t->tiles.n); j++)
            all[rank++] = index[i] ? index[i] : tile ? tile[j] : axis_of(t, t->tiles.data[j]);
    return dlc_expr_load(t->pool, dtype_of(t, s), DLC_STAGE_SOURCE(stage_number(t->at, s)), all, rank, 0, 0, 0);
}

/* Where a tile is: among rows of tiles, then among those of a row; its columns' phase, if it is not an axis. */
typedef struct {
    dlc_expr row, column, phase;
} place;

/* Phases of the columns that are part of a tile's number. */
static int64_t phases_of(const site *at)
{
    return at->has_rows ? 1 : at->along[1].step;
}

/* Tiles of a row are those of its first phase, then those of the next. */
static place place_of(const tiling *t)
{
    dlc_expr columns = tiles_of(t->at, t->pool, 1), phases = dlc_expr_i64(t->pool, phases_of(t->at));
    dlc_expr first = axis_of(t, t->tiles.data[0]);
    if (t->at->has_rows)
        return t->tiles.n > 1 ? (place){first, axis_of(t, t->tiles.data[1]), 0} : (place){dlc_expr_i64(t->pool, 0), first, 0};
    place at = {dlc_floordiv(t->pool, first, dlc_mul(t->pool, columns, phases)), dlc_mod(t->pool, first, columns), 0};
    if (phases_of(t->at) > 1)
        at.phase = dlc_mod(t->pool, dlc_floordiv(t->pool, first, columns), phases);
    return at;
}

/* The number of the tile at that place. */
static void number_of(const tiling *t, const place *at, dlc_expr *number)
{
    dlc_expr columns = tiles_of(t->at, t->pool, 1), row = at->row;
    if (at->phase)
        row = dlc_add(t->pool, dlc_muli(t->pool, row, phases_of(t->at)), at->phase);
    if (t->at->has_rows && t->tiles.n == 1)
        row = at->column;
    number[0] = t->at->has_rows ? row : dlc_add(t->pool, dlc_mul(t->pool, row, columns), at->column);
    number[1] = at->column;
}

/* The load of x at that row and column of the tile; zero where the tile sticks out. */
static dlc_expr input_at(const tiling *t, dlc_expr row, dlc_expr column)
{
    const site *at = t->at;
    dlc_expr *with = dlc_new_array(at->in->scratch, dlc_expr, t->kernel->axes.n), index[DLC_MAX_RANK];
    place of = place_of(t);
    dlc_expr tile[] = {of.row, of.column}, point[] = {row, column};
    for (uint32_t d = 0; d < 2; d++) {
        if (at->along[d].image != DLC_NO_AXIS)
            with[at->along[d].image] = dlc_muli(t->pool, tile[d], dlc_winograd_results(at, d));
        if (has_points(at, d))
            with[at->along[d].tap] = tap_of(at, t->pool, d, point[d], t->group[d]);
    }
    if (of.phase)
        with[at->along[1].phase] = of.phase;
    const dlc_expr_node node = *dlc_node_of(t->pool, at->x);
    uint32_t rank = dlc_load_rank(t->pool, at->x);
    dlc_expr guard = dlc_load_guard(t->pool, at->x), other = dlc_load_else(t->pool, at->x);
    guard = guard ? dlc_expr_substitute(t->pool, guard, with, t->kernel->axes.n) : 0;
    for (uint32_t i = 0; i < rank; i++) {
        dlc_expr plain = dlc_arg(t->pool, at->x, i);
        index[i] = dlc_expr_substitute(t->pool, plain, with, t->kernel->axes.n);
        for (uint32_t d = 0; d < 2; d++)
            if (has_points(at, d) && !dlc_winograd_is_filled(at, d, dlc_winograd_results(at, d)) && dlc_expr_uses_axis(t->pool, plain, at->along[d].image))
                guard = dlc_and(t->pool, guard, dlc_lt(t->pool, index[i], t->kernel->buffers.data[node.imm.id].type.dims[i]));
    }
    return dlc_expr_cast(t->pool, dlc_winograd_row_type(at), dlc_expr_load(t->pool, (dlc_dtype)node.dtype, node.imm.id, index, rank, guard, other, 0));
}

/* v1: points along direction 0 */
static void make_input_rows(const tiling *t, const dlc_ids *summed)
{
    uint32_t form = t->at->along[0].form;
    int64_t n = dlc_winograd_points(t->at, 0);
    dlc_expr d[MOST_POINTS], points[MOST_POINTS];
    dlc_ids axes = {0};
    for (int64_t g = 0; g < n; g++)
        d[g] = input_at(t, dlc_expr_i64(t->pool, g), axis_of(t, t->column));
    dlc_winograd_input(t->pool, form, d, points);
    add_axes(t, &axes, (const uint32_t[]){TILES, t->point[0], t->column}, 3);
    add_axes(t, &axes, summed->data, summed->n);
    new_stage(t, INPUT_ROWS, "input_rows", &axes)->value[0] = chosen(t->pool, axis_of(t, t->point[0]), points, n);
}

/* The last direction that has points. */
static uint32_t last_of(const site *at)
{
    return has_points(at, 1);
}

static void make_input(const tiling *t)
{
    const site *at = t->at;
    uint32_t last = last_of(at);
    int64_t n = dlc_winograd_points(at, last);
    dlc_expr d[MOST_POINTS], points[MOST_POINTS], index[DLC_MAX_RANK] = {0};
    dlc_ids summed = summed_axes(t), axes = t->points;
    if (has_both(at))
        make_input_rows(t, &summed);
    for (uint32_t i = 0; i < summed.n; i++)
        index[3 + i] = axis_of(t, summed.data[i]);
    for (int64_t k = 0; k < n; k++) {
        index[2] = dlc_expr_i64(t->pool, k);
        index[1] = has_both(at) ? axis_of(t, t->point[0]) : 0;
        d[k] = has_both(at) ? load_of(t, INPUT_ROWS, NULL, index, 3 + summed.n) : input_at(t, index[2], index[2]);
    }
    dlc_winograd_input(t->pool, at->along[last].form, d, points);
    add_axes(t, &axes, (const uint32_t[]){TILES}, 1);
    add_axes(t, &axes, summed.data, summed.n);
    dlc_expr point = chosen(t->pool, axis_of(t, t->point[last]), points, n);
    new_stage(t, INPUT, "input", &axes)->value[0] = cut_point(at, t->pool, point);
}

static void make_product(const tiling *t)
{
    dlc_expr v[DLC_MAX_RANK], u[DLC_MAX_RANK];
    uint32_t npoints = t->points.n;
    dlc_ids summed = summed_axes(t), axes = t->points;
    for (uint32_t i = 0; i < npoints; i++)
        v[i] = u[i] = axis_of(t, t->points.data[i]);
    v[npoints] = 0;
    for (uint32_t i = 0; i < summed.n; i++)
        u[npoints + i] = v[npoints + 1 + i] = axis_of(t, summed.data[i]);
    u[npoints + summed.n] = axis_of(t, t->at->oc);
    add_axes(t, &axes, (const uint32_t[]){TILES, t->at->oc}, 2);
    dlc_stage *stage = new_stage(t, PRODUCT, "products", &axes);
    stage->combine = DLC_REDUCE_SUM;
    for (uint32_t i = 0; i < summed.n; i++)
        dlc_vec_push(t->kernel->arena, &stage->reduce, summed.data[i]);
    dlc_expr weights = dlc_expr_load(t->pool, dtype_of(t, INPUT), t->filter, u, npoints + summed.n + 1, 0, 0, 0);
    stage->value[0] = dlc_mul(t->pool, dlc_expr_cast(t->pool, t->at->sum, load_of(t, INPUT, NULL, v, npoints + 1 + summed.n)),
                              dlc_expr_cast(t->pool, t->at->sum, weights));
}

/* z: results along direction 0 */
static void make_output_rows(const tiling *t)
{
    uint32_t oc = t->at->oc, form = t->at->along[0].form;
    dlc_expr z[MOST_POINTS], results[MOST_POINTS];
    dlc_ids axes = {0};
    for (int64_t p = 0; p < dlc_winograd_points(t->at, 0); p++) {
        dlc_expr index[] = {dlc_expr_i64(t->pool, p), axis_of(t, t->point[1]), 0, axis_of(t, oc)};
        z[p] = load_of(t, PRODUCT, NULL, index, 4);
    }
    dlc_winograd_output(t->pool, form, z, results);
    add_axes(t, &axes, (const uint32_t[]){TILES, t->result, t->point[1], oc}, 4);
    new_stage(t, OUTPUT_ROWS, "output_rows", &axes)->value[0] = chosen(t->pool, axis_of(t, t->result), results, dlc_winograd_results(t->at, 0));
}

/* The convolution's stage: its elements from the rows of their tiles, or their points. */
static void make_results(const tiling *t)
{
    const site *at = t->at;
    uint32_t last = last_of(at);
    dlc_expr z[MOST_POINTS], results[MOST_POINTS], tile[2], number[2], within[2];
    for (uint32_t d = 0; d < 2; d++) {
        dlc_expr by = dlc_expr_i64(t->pool, dlc_winograd_results(at, d)), zero = dlc_expr_i64(t->pool, 0);
        dlc_expr image = at->along[d].image == DLC_NO_AXIS ? zero : axis_of(t, at->along[d].image);
        tile[d] = dlc_floordiv(t->pool, image, by);
        within[d] = dlc_mod(t->pool, image, by);
    }
    if (has_both(at))
        make_output_rows(t);
    place of = {tile[0], tile[1], 0};
    if (phases_of(at) > 1)
        of.phase = axis_of(t, at->along[1].phase);
    number_of(t, &of, number);
    for (int64_t q = 0; q < dlc_winograd_points(at, last); q++) {
        dlc_expr point = dlc_expr_i64(t->pool, q), oc = axis_of(t, at->oc);
        z[q] = has_both(at) ? load_of(t, OUTPUT_ROWS, number, (const dlc_expr[]){0, within[0], point, oc}, 4)
                            : load_of(t, PRODUCT, number, (const dlc_expr[]){point, 0, oc}, 3);
    }
    dlc_winograd_output(t->pool, at->along[last].form, z, results);
    dlc_stage *stage = &t->kernel->stages.data[stage_number(at, RESULTS)];
    stage->combine = DLC_REDUCE_NONE;
    stage->reduce = (dlc_ids){0};
    stage->value[0] = chosen(t->pool, within[last], results, dlc_winograd_results(at, last));
    if (dlc_winograd_is_exact(at))
        stage->value[0] = dlc_winograd_divided(t->pool, dlc_winograd_times(at), stage->value[0]);
}

static uint32_t points_axis(const tiling *t, const char *name, int64_t n)
{
    return dlc_kernel_axis(t->kernel, name, dlc_expr_i64(t->pool, n));
}

/* Axes that are neither the image's nor channels. */
static dlc_ids images_of(const site *at)
{
    const dlc_ids *axes = &at->in->kernel->stages.data[0].axes;
    dlc_ids images = {0};
    for (uint32_t i = 0; i < axes->n; i++)
        if (axes->data[i] != at->along[0].image && axes->data[i] != at->along[1].image && axes->data[i] != at->oc)
            dlc_vec_push(at->arena, &images, axes->data[i]);
    return images;
}

/* --- results that are turned --- */

static const char *results_name(const site *at)
{
    return dlc_arena_printf(at->arena, "%s.channels_last", at->kernel->stages.data[0].name);
}

/* [images, rows, columns, oc], and the axes by which it is read and written. */
static dlc_buffer results_buffer(const site *at, dlc_kernel *kernel, dlc_role role, dlc_ids *axes)
{
    dlc_buffer buffer = {.name = results_name(at), .role = (uint8_t)role, .type = {.dtype = at->sum}};
    *axes = images_of(at);
    for (uint32_t d = 0; d < 2; d++)
        if (at->along[d].image != DLC_NO_AXIS)
            dlc_vec_push(at->arena, axes, at->along[d].image);
    dlc_vec_push(at->arena, axes, at->oc);
    for (uint32_t i = 0; i < axes->n; i++) {
        uint32_t axis = axes->data[i], d = axis == at->along[1].image;
        dlc_expr size = axis == at->along[d].image ? padded_size(at, kernel->pool, d) : kernel->axes.data[axis].extent;
        buffer.type.dims[buffer.type.rank++] = size;
    }
    return buffer;
}

/* The kernel stores the convolution's results, and nothing else. */
static void store_results(const site *at, dlc_kernel *kernel)
{
    dlc_ids axes;
    uint32_t made = dlc_rewrite_insert(kernel, results_buffer(at, kernel, DLC_ROLE_OUT, &axes));
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (b != made && kernel->buffers.data[b].role == DLC_ROLE_OUT)
            kernel->buffers.data[b].role = DLC_ROLE_IN; /* of no stage that is left */
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        kernel->stages.data[s].buffer = DLC_NO_BUFFER;
    dlc_stage *stage = &kernel->stages.data[stage_number(at, RESULTS)];
    stage->buffer = made;
    stage->store = (dlc_ids){0};
    for (uint32_t i = 0; i < axes.n; i++) {
        uint32_t d = axes.data[i] == at->along[1].image;
        dlc_expr point = dlc_expr_axis(kernel->pool, axes.data[i]);
        if (axes.data[i] == at->along[d].image && dlc_winograd_has_phases(at, d))
            point = dlc_add(kernel->pool, dlc_muli(kernel->pool, point, at->along[d].step), dlc_expr_axis(kernel->pool, at->along[d].phase));
        dlc_vec_push(kernel->arena, &stage->store, point);
    }
}

/* What the kernel does with the convolution's results. */
static void make_maps(const site *at, dlc_rewritten *out)
{
    dlc_kernel *kernel = dlc_kernel_clone(at->in->kernel, at->arena);
    dlc_ids axes;
    dlc_expr index[DLC_MAX_RANK];
    uint32_t first = dlc_rewrite_insert(kernel, filter_buffer(at, kernel->pool, DLC_ROLE_CONST)); /* which is not read */
    uint32_t made = dlc_rewrite_insert(kernel, results_buffer(at, kernel, DLC_ROLE_IN, &axes));
    dlc_stage *stage = &kernel->stages.data[0];
    for (uint32_t i = 0; i < axes.n; i++)
        index[i] = dlc_expr_axis(kernel->pool, axes.data[i]);
    stage->value[0] = dlc_expr_load(kernel->pool, at->sum, made, index, axes.n, 0, 0, 0);
    stage->combine = DLC_REDUCE_NONE;
    stage->reduce = (dlc_ids){0};
    dlc_lower_inline(kernel);
    dlc_lower_merge(kernel);
    dlc_rewrite_add_part(kernel, first, 2, out);
}

/* --- all parts --- */

static void make_tiles(const site *at, dlc_rewritten *out)
{
    uint32_t phase[2]; /* as in *at */
    dlc_kernel *kernel = dlc_winograd_copy(at, at->arena, phase);
    tiling t = {.at = at, .kernel = kernel, .pool = kernel->pool};
    t.filter = dlc_rewrite_insert(kernel, filter_buffer(at, t.pool, DLC_ROLE_CONST));
    dlc_expr rows = tiles_of(at, t.pool, 0), columns = tiles_of(at, t.pool, 1);
    if (at->has_rows && at->along[0].image != DLC_NO_AXIS)
        dlc_vec_push(kernel->arena, &t.tiles, dlc_kernel_axis(kernel, "tr", rows));
    if (!at->has_rows)
        columns = dlc_mul(t.pool, dlc_muli(t.pool, rows, phases_of(at)), columns);
    dlc_vec_push(kernel->arena, &t.tiles, dlc_kernel_axis(kernel, "t", columns));
    for (uint32_t d = 0; d < 2; d++)
        if (has_points(at, d)) {
            t.point[d] = points_axis(&t, d ? "q" : "p", dlc_winograd_points(at, d));
            add_axes(&t, &t.points, &t.point[d], 1);
        }
    if (has_both(at)) {
        t.column = points_axis(&t, "h", dlc_winograd_points(at, 1));
        t.result = points_axis(&t, "r", dlc_winograd_results(at, 0));
    }
    for (uint32_t d = 0; d < 2; d++)
        t.group[d] = groups_axis(at, kernel, d);
    t.images = images_of(at);
    for (uint32_t d = 0; d < 2; d++)
        if (dlc_winograd_has_phases(at, d) && (d == 0 || at->has_rows))
            dlc_vec_push(at->arena, &t.images, at->along[d].phase);
    insert_stages(kernel, stage_number(at, RESULTS));
    make_input(&t);
    make_product(&t);
    make_results(&t);
    if (at->is_turned)
        store_results(at, kernel);
    dlc_rewrite_add_part(kernel, t.filter, at->is_turned ? 2 : 1, out);
}

enum { FILTER_PART, TILES_PART };

static void make(const site *at, dlc_rewritten *out)
{
    *out = (dlc_rewritten){0};
    dlc_vec_push(at->arena, &out->made, filter_name(at));
    make_filter(at, out);
    if (at->is_turned)
        dlc_vec_push(at->arena, &out->made, results_name(at));
    make_tiles(at, out);
    if (at->is_turned)
        make_maps(at, out);
}

/* --- whether it pays --- */

/* The direction's windows are made of the form's. */
static int fits_direction(const dlc_winograd_direction *along, const dlc_winograd_form *form)
{
    int64_t n = (along->window + form->taps - 1) / form->taps;
    return along->window == 1 ? form->taps == 1
                              : form->taps > 1 && form->taps <= along->window && form->stride == along->stride &&
                                    (n == 1 || (form->stride == 1 && (along->window - form->taps) % (n - 1) == 0));
}

/* Points of the filter are numbers of 16 bits, and results have bits enough. */
static int is_in_range(const site *at)
{
    double points = (double)at->greatest;
    for (uint32_t d = 0; d < 2; d++)
        points *= dlc_winograd_growth(at->along[d].form, times_of(at, d));
    return points <= INT16_MAX && at->most <= INT32_MAX >> dlc_winograd_bits(dlc_winograd_times(at));
}

/* Of bytes forms in whole numbers. */
static int has_forms(const site *at)
{
    int nwhole = 0;
    for (uint32_t d = 0; d < 2; d++) {
        if (!fits_direction(&at->along[d], &dlc_winograd_forms[at->along[d].form]))
            return 0;
        nwhole += dlc_winograd_forms[at->along[d].form].is_whole;
    }
    int nreduced = (dlc_winograd_groups(at, 0) > 1) + (dlc_winograd_groups(at, 1) > 1) + (int)at->others.n;
    if ((int)at->kernel->stages.data[0].axes.n + 2 + nreduced > DLC_MAX_RANK)
        return 0;
    return dlc_winograd_is_exact(at) ? dlc_winograd_times(at) && is_in_range(at) : !nwhole;
}

/* The numbers may take tiles of so many results a side, or such as lose as little as tiles of two. */
static int is_allowed(const site *at)
{
    int64_t most = dlc_winograd_is_exact(at) ? at->in->winograd_whole : at->in->winograd;
    enum { CLOSE_RESULTS = 2 };
    return (dlc_winograd_results(at, 0) <= most && dlc_winograd_results(at, 1) <= most) ||
           (most >= CLOSE_RESULTS && !dlc_winograd_is_exact(at) && dlc_winograd_is_close(at));
}

/* Its products run as register tiles. */
static int has_tiles(const dlc_rewriting *in, const dlc_rewritten *out)
{
    dlc_schedule *schedule = NULL;
    const char *detail;
    (void)dlc_choose(out->parts.data[TILES_PART].kernel, in->target, in->scratch, &schedule, &detail);
    for (uint32_t i = 0; schedule && i < schedule->nodes.n; i++)
        if (schedule->nodes.data[i].kind == DLC_LOOP_LEAF && schedule->nodes.data[i].row != DLC_DOT_NONE)
            return 1;
    return 0;
}

/* The forms by number: NFORMS² of them, all pairs. */
static void set_forms(site *at, uint32_t pair)
{
    at->along[0].form = pair / NFORMS;
    at->along[1].form = pair % NFORMS;
}

/*
 * Phases of an image whose size only the run knows: an image of a quarter of the usual size has few points of each, and every phase reads all
 * filters (Emerald Rapids, 256 channels, taps 12 apart, of any size, by phases: at 33x33 3.1 times as long as without, at 65x65 .95, at 129x129 .75).
 */
static int has_large_phases(const site *at)
{
    enum { LEAST_POINTS = 8, SMALLER = 4 };
    int64_t size;
    for (uint32_t d = 0; d < 2; d++)
        if (at->along[d].step > 1 && !dlc_expr_is_int(at->kernel->pool, at->along[d].size, &size) &&
            at->along[d].nominal < LEAST_POINTS * SMALLER * at->along[d].step)
            return 0;
    return 1;
}

/* Chooses those that take least time; 0: none are worth it. */
static int choose_forms(site *at)
{
    enum { WORTH_PERCENT = 85,    /* of the time before */
           MOST_BYTES = 20 << 10, /* by which filters of bytes may grow, eightfold, for a microsecond saved: files are sent, and loaded */
           LEAST_L2 = 128 << 10 }; /* machines with less are short of memory, which filters and tiles take more of */
    const dlc_rewriting *in = at->in;
    if (in->target->l2_bytes < LEAST_L2 || !has_large_phases(at))
        return 0;
    double before = dlc_winograd_time_before(at), least = before * WORTH_PERCENT / 100;
    uint32_t best = NO_PAIR;
    dlc_rewritten trial;
    for (uint32_t pair = 0; pair < NO_PAIR; pair++) {
        set_forms(at, pair);
        if (!has_forms(at) || !is_allowed(at))
            continue;
        double time = dlc_winograd_time(at), further = dlc_winograd_filter_bytes(at) - dlc_winograd_filter_bytes_before(at);
        if (time >= least || (dlc_winograd_is_exact(at) && further > MOST_BYTES * (before - time)))
            continue;
        least = time;
        best = pair;
    }
    if (best == NO_PAIR)
        return 0;
    set_forms(at, best);
    at->arena = in->scratch;
    make(at, &trial);
    at->arena = in->arena;
    return has_tiles(in, &trial);
}

/* The forms of so many results that lose least: of all directions, or of one. */
static int find_wanted(site *at)
{
    uint32_t best = NO_PAIR;
    double least = 0;
    for (uint32_t pair = 0; pair < NO_PAIR; pair++) {
        set_forms(at, pair);
        int is_wanted = has_forms(at);
        for (uint32_t d = 0; d < 2; d++)
            is_wanted = is_wanted && (!has_points(at, d) || dlc_winograd_results(at, d) == at->in->wanted);
        double loss = dlc_winograd_forms[at->along[0].form].loss * dlc_winograd_forms[at->along[1].form].loss;
        if (!is_wanted || (best != NO_PAIR && loss >= least))
            continue;
        best = pair;
        least = loss;
    }
    if (best != NO_PAIR)
        set_forms(at, best);
    return best != NO_PAIR;
}

int dlc_rewrite_winograd(const dlc_rewriting *in, dlc_rewritten *out)
{
    site at = {.in = in, .arena = in->arena, .images = 1};
    if (in->target->kind != DLC_TARGET_CPU || (!in->wanted && !in->winograd) || !dlc_winograd_find(&at))
        return 0;
    dlc_ids images = images_of(&at);
    for (uint32_t i = 0; i < images.n; i++) {
        int64_t extent;
        if (dlc_const_extent(at.kernel, images.data[i], &extent))
            at.images *= (double)extent;
    }
    if (!(in->wanted ? find_wanted(&at) : choose_forms(&at)))
        return 0;
    make(&at, out);
    if (!in->wanted)
        out->left = dlc_winograd_time(&at) / dlc_winograd_time_before(&at);
    return 1;
}

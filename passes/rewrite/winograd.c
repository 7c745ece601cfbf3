/*
 * Winograd: the m x m results of a 3x3 convolution of stride 1 (2: below) from (m + 2)² products instead of 9 m². (Winograd, "Arithmetic
 * Complexity of Computations", 1980; for convolutions: Lavin and Gray, CVPR 2016.) With n = m + 2 and tiles t:
 *
 *     v1[t,p,h,ic]   = sum(g) B[g,p] * x[rows g, column h of tile t]       v[p,q,t,ic]  = sum(h) B[h,q] * v1
 *     mm[p,q,t,oc]   = sum(ic) v * u[p,q,ic,oc]                            u = G w G', a constant, computed in f64
 *     z[t,r,q,oc]    = sum(p) A[p,r] * mm                                  y[oh,ow,oc]  = sum(q) A[q,s] * z
 *
 * Of bytes, points are numbers of 16 bits that are multiplied by pairs, and all is exact: forms in whole numbers (winograd_form.c) make
 * results a number of times as large, by which they are divided. Where these have bits enough is known from the filter itself
 * (winograd_range.c), or from the number of channels.
 *
 * Of bf16, where the user asks for that precision and the target multiplies it by pairs, form 2 cuts v and u to bf16; transforms are f32.
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
 * Of windows along more directions, tiles lie along the last two that have three taps; other taps are summed as channels are, so each of
 * their points has filters and tiles of its own.
 *
 * Vectors run along channels. Where what follows does not store along them, results lie channels last first, and a kernel of its own
 * turns them: one tile's are too few neighbours to be turned while they are made.
 */
#include "ir/kernel/algebra.h"
#include "passes/lower/lower.h"
#include "passes/rewrite/rewrite.h"
#include "passes/rewrite/winograd.h"

enum { TAPS = DLC_WINOGRAD_TAPS, MOST_POINTS = DLC_WINOGRAD_POINTS, NFORMS = DLC_WINOGRAD_FORMS };

typedef dlc_winograd_site site;

static int64_t points_of(const site *at)
{
    return dlc_winograd_forms[at->form].npoints;
}

static dlc_expr tiles_of(const site *at, dlc_pool *pool, uint32_t d)
{
    return dlc_floordiv(pool, dlc_addi(pool, at->size[d], dlc_winograd_results(at) - 1), dlc_expr_i64(pool, dlc_winograd_results(at)));
}

/* Results of all phases. */
static dlc_expr whole_size(const site *at, uint32_t d)
{
    return at->in->kernel->axes.data[at->image[d]].extent;
}

/* As many as all phases have together, which are of one size: what step does not divide sticks out. */
static dlc_expr padded_size(const site *at, dlc_pool *pool, uint32_t d)
{
    dlc_expr step = dlc_expr_i64(pool, at->step[d]), whole = whole_size(at, d);
    return at->step[d] == 1 ? whole : dlc_mul(pool, dlc_floordiv(pool, dlc_addi(pool, whole, at->step[d] - 1), step), step);
}

/* All phases have whole tiles of `results` each. */
static int is_filled(const site *at, uint32_t d, int64_t results)
{
    int64_t size;
    return dlc_expr_is_int(at->kernel->pool, whole_size(at, d), &size) && size % (at->step[d] * results) == 0;
}

static int has_phases(const site *at, uint32_t d)
{
    return at->step[d] > 1;
}

/* A copy of the kernel given, with axes for phases, the same in each copy; NULL: what follows the convolution does not go by them. */
static dlc_kernel *copy_kernel(const site *at, dlc_arena *arena, uint32_t *phase)
{
    dlc_kernel *kernel = dlc_kernel_clone(at->in->kernel, arena);
    for (uint32_t d = 0; d < 2; d++)
        if (has_phases(at, d) && (phase[d] = dlc_rewrite_phases(kernel, at->image[d], at->step[d])) == DLC_NO_AXIS)
            return NULL;
    return kernel;
}

/* --- finding it --- */

/* The index is stride * axis `kept` + step * axis `reduced` + a number. */
static int find_window(site *at, dlc_expr index, const dlc_stage *stage, uint32_t *kept, uint32_t *reduced, int64_t *step, int64_t *stride)
{
    enum { MOST_STEP = 1 << 20 }; /* more is nobody's, and products of it might not fit */
    dlc_pool *pool = at->kernel->pool;
    dlc_expr rest = index, coefficient;
    int64_t by, number;
    *kept = *reduced = DLC_NO_AXIS;
    for (uint32_t a = 0; a < at->kernel->axes.n; a++) {
        if (!dlc_expr_uses_axis(pool, rest, a))
            continue;
        uint32_t *role = dlc_ids_find(&stage->reduce, a, NULL) ? reduced : kept;
        if (*role != DLC_NO_AXIS || !dlc_expr_linear(pool, rest, a, &coefficient, &rest) ||
            !dlc_expr_is_int(pool, coefficient, &by) || by < 1 || by > (role == kept ? 2 : MOST_STEP))
            return 0;
        *role = a;
        *(role == reduced ? step : stride) = by;
    }
    return *kept != DLC_NO_AXIS && *reduced != DLC_NO_AXIS && dlc_expr_is_int(pool, rest, &number);
}

/* The load, guard and all, depends on result and tap by their sum alone. */
static int is_shifted(const site *at, uint32_t d)
{
    dlc_pool *pool = at->kernel->pool;
    dlc_expr *with = dlc_new_array(at->in->scratch, dlc_expr, at->kernel->axes.n);
    with[at->image[d]] = dlc_addi(pool, dlc_expr_axis(pool, at->image[d]), 1);
    with[at->tap[d]] = dlc_addi(pool, dlc_expr_axis(pool, at->tap[d]), -at->stride[d]);
    return dlc_expr_substitute(pool, at->x, with, at->kernel->axes.n) == at->x;
}

static void find_size(site *at, uint32_t d)
{
    enum { NOMINAL_IMAGE = 256 }; /* points a side: sizes of deep layers are parts of it */
    const int64_t *symbols = dlc_kernel_symbol_values(at->kernel, NOMINAL_IMAGE, at->in->scratch);
    int64_t size;
    at->size[d] = at->kernel->axes.data[at->image[d]].extent;
    at->nominal[d] = dlc_expr_eval(at->kernel->pool, whole_size(at, d), symbols);
    at->has_rows |= !dlc_expr_is_int(at->kernel->pool, at->size[d], &size);
}

/* Neighbouring points of the axis lie together. */
static int is_innermost(const site *at, uint32_t axis)
{
    dlc_pool *pool = at->kernel->pool;
    const dlc_buffer *x = dlc_winograd_buffer(at, at->x);
    dlc_expr index[DLC_MAX_RANK], coefficient, rest;
    int64_t step;
    for (uint32_t d = 0; d < x->type.rank; d++)
        index[d] = dlc_arg(pool, at->x, d);
    dlc_expr offset = dlc_layout_offset(pool, &x->layout, x->type.rank, x->type.dims, index);
    return dlc_expr_linear(pool, offset, axis, &coefficient, &rest) && dlc_expr_is_int(pool, coefficient, &step) && step == 1;
}

static int find_windows(site *at, const dlc_stage *stage)
{
    const dlc_pool *pool = at->kernel->pool;
    uint32_t n = 0, kept, reduced;
    int64_t taps, step = 0, stride = 0;
    for (uint32_t i = 0; i < dlc_load_rank(pool, at->x); i++) {
        dlc_expr index = dlc_arg(pool, at->x, i);
        uint32_t axis = dlc_bare_axis(pool, index);
        if (axis != DLC_NO_AXIS && dlc_ids_find(&stage->reduce, axis, NULL) && is_innermost(at, axis))
            at->ic = axis;
        if (!find_window(at, index, stage, &kept, &reduced, &step, &stride) || !dlc_const_extent(at->kernel, reduced, &taps) || taps != TAPS)
            continue;
        uint32_t d = n < 2 ? n : 1;
        if (n == 2) { /* the last two are taken */
            at->image[0] = at->image[1];
            at->step[0] = at->step[1];
            at->stride[0] = at->stride[1];
            at->tap[0] = at->tap[1];
        }
        at->image[d] = kept;
        at->step[d] = step;
        at->stride[d] = stride;
        at->tap[d] = reduced;
        n = d + 1;
    }
    return n == 2 && at->ic != DLC_NO_AXIS && at->ic != at->tap[0] && at->ic != at->tap[1] && at->image[0] != at->image[1] &&
           at->tap[0] != at->tap[1] && at->stride[0] == at->stride[1] && (at->stride[0] == 1 || (at->step[0] == 1 && at->step[1] == 1));
}

/* The reduced axes that are neither channels nor taps of the tiles. */
static int find_others(site *at, const dlc_stage *stage)
{
    int64_t extent;
    at->nothers = 1;
    for (uint32_t i = 0; i < stage->reduce.n; i++) {
        uint32_t axis = stage->reduce.data[i];
        if (axis == at->ic || axis == at->tap[0] || axis == at->tap[1])
            continue;
        if (!dlc_const_extent(at->kernel, axis, &extent))
            return 0;
        dlc_vec_push(at->in->scratch, &at->others, axis);
        at->nothers *= extent;
    }
    return stage->axes.n + 2 + at->others.n <= DLC_MAX_RANK;
}

/* Indices of a convolution without groups: each of its own axis, none of the image's. */
static int find_filter(site *at, const dlc_stage *stage)
{
    const dlc_pool *pool = at->kernel->pool;
    uint32_t rank = dlc_load_rank(pool, at->w), nkept = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t axis = dlc_bare_axis(pool, dlc_arg(pool, at->w, i));
        if (axis == DLC_NO_AXIS || axis == at->image[0] || axis == at->image[1])
            return 0;
        if (!dlc_ids_find(&stage->axes, axis, NULL))
            continue;
        at->oc = axis;
        nkept++;
    }
    return rank == 4 + at->others.n && nkept == 1 && !dlc_expr_uses_axis(pool, at->x, at->oc) &&
           dlc_const_extent(at->kernel, at->ic, &at->inputs) && dlc_const_extent(at->kernel, at->oc, &at->outputs);
}

static int is_plain(const dlc_pool *pool, dlc_expr expr)
{
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    dlc_expr other = node->op == DLC_EXPR_LOAD ? dlc_load_else(pool, expr) : 0;
    return node->op == DLC_EXPR_LOAD && !DLC_SOURCE_IS_STAGE(node->imm.id) && !node->flags &&
           (!other || dlc_node_of(pool, other)->op == DLC_EXPR_CONST);
}

static int is_byte(dlc_dtype dtype)
{
    return dlc_is_int(dtype) && dlc_dtypes[dtype].bits == 8;
}

/* The load of a factor: of f32, or of narrower floats and then made f32; of bytes that are made i32. */
static dlc_expr load_in(const site *at, dlc_expr factor)
{
    const dlc_pool *pool = at->kernel->pool;
    if (dlc_node_of(pool, factor)->op != DLC_EXPR_CAST)
        return factor;
    dlc_dtype from = (dlc_dtype)dlc_node_of(pool, dlc_arg(pool, factor, 0))->dtype;
    return dlc_winograd_is_exact(at) ? (is_byte(from) ? dlc_arg(pool, factor, 0) : factor) : dlc_is_float(from) ? dlc_arg(pool, factor, 0) : factor;
}

/* Bytes that no tile register multiplies; their points are multiplied as 16 bits. */
static int multiplies_words(const dlc_target *target)
{
    for (dlc_dot row = DLC_DOT_NONE + 1; row < DLC_DOT_COUNT; row++)
        if (dlc_dots[row].order == DLC_ORDER_EXACT && dlc_dots[row].family == DLC_FAMILY_TILE && dlc_dot_fact(target, row))
            return 0;
    return dlc_dot_of_words(target) != DLC_DOT_NONE;
}

/* Types of the points and sums. */
static int find_types(site *at, dlc_dtype sum)
{
    at->sum = sum;
    return sum == DLC_F32 || (sum == DLC_I32 && multiplies_words(at->in->target));
}

/* Neighbouring channels do not lie together in something that the kernel stores. */
static int stores_across(const site *at)
{
    dlc_kernel *kernel = at->kernel;
    dlc_expr coefficient, rest;
    int64_t step;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (stage->buffer == DLC_NO_BUFFER)
            continue;
        const dlc_buffer *y = &kernel->buffers.data[stage->buffer];
        dlc_expr offset = dlc_layout_offset(kernel->pool, &y->layout, y->type.rank, y->type.dims, stage->store.data);
        if (!dlc_expr_linear(kernel->pool, offset, at->oc, &coefficient, &rest) || !dlc_expr_is_int(kernel->pool, coefficient, &step) ||
            step != 1)
            return 1;
    }
    return 0;
}

/* What follows are maps of its elements. */
static int are_maps(const dlc_kernel *kernel)
{
    const dlc_stage *first = &kernel->stages.data[0];
    for (uint32_t s = 1; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (stage->combine != DLC_REDUCE_NONE || stage->update != DLC_UPDATE_NONE || stage->axes.n != first->axes.n)
            return 0;
        for (uint32_t i = 0; i < stage->axes.n; i++)
            if (!dlc_ids_find(&first->axes, stage->axes.data[i], NULL))
                return 0;
    }
    return 1;
}

/* The loads that are multiplied. */
static int find_factors(site *at, const dlc_stage *stage)
{
    const dlc_pool *pool = at->kernel->pool;
    at->x = load_in(at, dlc_arg(pool, stage->value[0], 0));
    at->w = load_in(at, dlc_arg(pool, stage->value[0], 1));
    if (!is_plain(pool, at->x) || !is_plain(pool, at->w) ||
        (dlc_winograd_is_exact(at) && (!is_byte(dlc_node_of(pool, at->x)->dtype) || !is_byte(dlc_node_of(pool, at->w)->dtype))))
        return 0;
    if (dlc_winograd_buffer(at, at->x)->role == DLC_ROLE_CONST) {
        dlc_expr x = at->w;
        at->w = at->x;
        at->x = x;
    }
    return dlc_winograd_buffer(at, at->w)->role == DLC_ROLE_CONST && dlc_winograd_buffer(at, at->x)->role == DLC_ROLE_IN && !dlc_load_guard(pool, at->w);
}

/* From here on the kernel has axes for phases. */
static int split_phases(site *at)
{
    if (!has_phases(at, 0) && !has_phases(at, 1))
        return 1;
    dlc_kernel *kernel = copy_kernel(at, at->in->scratch, at->phase);
    if (!kernel || kernel->stages.data[0].axes.n + 2 + at->others.n > DLC_MAX_RANK)
        return 0;
    at->kernel = kernel;
    return find_factors(at, &kernel->stages.data[0]);
}

static int find_site(site *at)
{
    const dlc_stage *stage = &at->kernel->stages.data[0];
    if (!at->kernel->stages.n || stage->combine != DLC_REDUCE_SUM || stage->reduce.n < 3 || stage->update != DLC_UPDATE_NONE ||
        !find_types(at, stage->dtype[0]) ||
        dlc_node_of(at->kernel->pool, stage->value[0])->op != DLC_EXPR_MUL || !are_maps(at->kernel))
        return 0;
    at->ic = at->oc = DLC_NO_AXIS;
    if (!find_factors(at, stage) || !find_windows(at, stage) || !find_others(at, stage) || !split_phases(at))
        return 0;
    for (uint32_t d = 0; d < 2; d++) {
        if (!is_shifted(at, d))
            return 0;
        find_size(at, d);
    }
    if (!find_filter(at, &at->kernel->stages.data[0]) || (dlc_winograd_is_exact(at) && at->inputs % 2))
        return 0;
    at->most = dlc_winograd_is_exact(at) ? dlc_winograd_most(at) : 0;
    at->is_turned = stores_across(at);
    for (uint32_t d = 0; d < 2; d++)
        at->is_turned |= has_phases(at, d) && !is_filled(at, d, 1); /* only a value of our own has room for what sticks out */
    return 1;
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

/* Axes of the filter's kernel: kw, then those that stay, the further ones, ic and oc. */
static dlc_ids filter_axes(const site *at, dlc_kernel *kernel)
{
    dlc_ids axes = {0};
    dlc_vec_push(kernel->arena, &axes, dlc_kernel_axis(kernel, "kw", dlc_expr_i64(kernel->pool, TAPS)));
    for (uint32_t i = 0; i < at->others.n; i++) {
        const dlc_axis *axis = &at->kernel->axes.data[at->others.data[i]];
        dlc_vec_push(kernel->arena, &axes,
                     dlc_kernel_axis(kernel, axis->name, dlc_expr_i64(kernel->pool, dlc_expr_value(at->kernel->pool, axis->extent))));
    }
    dlc_vec_push(kernel->arena, &axes, dlc_kernel_axis(kernel, "ic", dlc_expr_i64(kernel->pool, at->inputs)));
    dlc_vec_push(kernel->arena, &axes, dlc_kernel_axis(kernel, "oc", dlc_expr_i64(kernel->pool, at->outputs)));
    return axes;
}

/* The one that stands for the convolution's. */
static uint32_t filter_axis(const site *at, const dlc_ids *axes, uint32_t axis)
{
    uint32_t position;
    if (axis == at->tap[1])
        return axes->data[0];
    if (dlc_ids_find(&at->others, axis, &position))
        return axes->data[1 + position];
    return axes->data[axes->n - (axis == at->ic ? 2 : 1)];
}

/* g<p>[kw,…,ic,oc] = sum(kh) G[p,kh] * w, in f64 */
static void add_filter_rows(const site *at, dlc_kernel *kernel, const dlc_ids *axes, const double (*g)[TAPS])
{
    const dlc_pool *from = at->kernel->pool;
    dlc_pool *pool = kernel->pool;
    dlc_expr index[DLC_MAX_RANK], taps[TAPS];
    for (int64_t k = 0; k < TAPS; k++) {
        for (uint32_t i = 0; i < dlc_load_rank(from, at->w); i++) {
            uint32_t axis = dlc_bare_axis(from, dlc_arg(from, at->w, i));
            index[i] = axis == at->tap[0] ? dlc_expr_i64(pool, k) : dlc_expr_axis(pool, filter_axis(at, axes, axis));
        }
        dlc_dtype dtype = (dlc_dtype)dlc_node_of(from, at->w)->dtype;
        taps[k] = dlc_expr_cast(pool, DLC_F64, dlc_expr_load(pool, dtype, 0, index, dlc_load_rank(from, at->w), 0, 0, 0));
    }
    for (int64_t p = 0; p < points_of(at); p++) {
        dlc_stage *stage = dlc_kernel_stage(kernel, dlc_arena_printf(kernel->arena, "g%d", (int)p));
        for (uint32_t i = 0; i < axes->n; i++)
            dlc_vec_push(kernel->arena, &stage->axes, axes->data[i]);
        stage->dtype[0] = DLC_F64;
        stage->value[0] = dlc_winograd_weigh(pool, g[p], taps);
    }
}

/* u[p,q,…,ic,oc] = sum(kw) G[q,kw] * g<p>, rounded once */
static void add_filter_points(const site *at, dlc_kernel *kernel, const dlc_ids *axes, const double (*g)[TAPS])
{
    dlc_pool *pool = kernel->pool;
    for (int64_t pq = 0; pq < points_of(at) * points_of(at); pq++) {
        int64_t p = pq / points_of(at), q = pq % points_of(at);
        dlc_expr taps[TAPS], index[DLC_MAX_RANK];
        for (uint32_t i = 1; i < axes->n; i++)
            index[i] = dlc_expr_axis(pool, axes->data[i]);
        for (int64_t k = 0; k < TAPS; k++) {
            index[0] = dlc_expr_i64(pool, k);
            taps[k] = dlc_expr_load(pool, DLC_F64, DLC_STAGE_SOURCE(p), index, axes->n, 0, 0, 0);
        }
        dlc_stage *stage = dlc_kernel_stage(kernel, dlc_arena_printf(kernel->arena, "u%d%d", (int)p, (int)q));
        stage->dtype[0] = dlc_winograd_point_type(at, dlc_winograd_results(at));
        stage->value[0] = dlc_expr_cast(pool, stage->dtype[0], dlc_winograd_weigh(pool, g[q], taps));
        stage->buffer = 1;
        dlc_vec_push(kernel->arena, &stage->store, dlc_expr_i64(pool, p));
        dlc_vec_push(kernel->arena, &stage->store, dlc_expr_i64(pool, q));
        for (uint32_t i = 1; i < axes->n; i++) {
            dlc_vec_push(kernel->arena, &stage->axes, axes->data[i]);
            dlc_vec_push(kernel->arena, &stage->store, index[i]);
        }
    }
}

static const char *filter_name(const site *at)
{
    return dlc_arena_printf(at->arena, "%s.winograd%d%s", dlc_winograd_buffer(at, at->w)->name, (int)dlc_winograd_results(at),
                            at->stride[0] == 1 ? "" : "_strided");
}

/* f32[n, n, …, ic, oc], or i16 or bf16 */
static dlc_buffer filter_buffer(const site *at, dlc_pool *pool, dlc_role role)
{
    dlc_buffer buffer = {.name = filter_name(at), .role = (uint8_t)role, .type = {.dtype = dlc_winograd_point_type(at, dlc_winograd_results(at)), .rank = 2}};
    buffer.type.dims[0] = buffer.type.dims[1] = dlc_expr_i64(pool, points_of(at));
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
    const dlc_buffer *w = dlc_winograd_buffer(at, at->w);
    double g[MOST_POINTS][TAPS];
    dlc_buffer copy = *w, u = filter_buffer(at, kernel->pool, DLC_ROLE_OUT);
    for (uint32_t d = 0; d < w->type.rank; d++)
        copy.type.dims[d] = dlc_expr_i64(kernel->pool, dlc_expr_value(at->kernel->pool, w->type.dims[d]));
    dlc_vec_push(kernel->arena, &kernel->buffers, copy);
    dlc_vec_push(kernel->arena, &kernel->buffers, u);
    dlc_ids axes = filter_axes(at, kernel);
    dlc_winograd_filter(at->form, dlc_winograd_is_exact(at) && !dlc_winograd_forms[at->form].is_whole ? (double)dlc_winograd_forms[at->form].whole : 1, g);
    add_filter_rows(at, kernel, &axes, (const double (*)[TAPS])g);
    add_filter_points(at, kernel, &axes, (const double (*)[TAPS])g);
    dlc_vec_push(kernel->arena, &part.buffers, dlc_node_of(at->kernel->pool, at->w)->imm.id);
    dlc_vec_push(kernel->arena, &part.buffers, DLC_REWRITE_MADE | 0);
    dlc_vec_push(kernel->arena, &out->parts, part);
}

/* --- the kernel of the tiles --- */

enum { INPUT_ROWS, INPUT, PRODUCT, OUTPUT_ROWS, NEW_STAGES }; /* and the convolution's own, which becomes the results */

/* What is being made. */
typedef struct {
    const site *at;
    dlc_kernel *kernel;
    dlc_pool *pool;
    dlc_ids tiles;      /* axes: t, or of rows of tiles and t */
    uint32_t point[2], column, result; /* p, q, h, r */
    uint32_t filter;    /* buffer */
    dlc_ids images;     /* kept axes that are neither the image's nor oc */
} tiling;

static dlc_expr shift_stages(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    uint32_t rank = node->nargs - 2u;
    (void)ctx;
    if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
        return 0;
    return dlc_expr_load(to, (dlc_dtype)node->dtype, DLC_STAGE_SOURCE(DLC_SOURCE_INDEX(node->imm.id) + NEW_STAGES), args, rank,
                         args[rank], args[rank + 1], node->flags);
}

/* Room for the new stages in front of the others. */
static void insert_stages(dlc_kernel *kernel)
{
    uint32_t n = kernel->stages.n;
    dlc_expr *root;
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t i = 0; (root = dlc_stage_root(&kernel->stages.data[s], i)); i++)
            *root = dlc_expr_rewrite(kernel->pool, kernel->pool, *root, shift_stages, NULL);
    for (uint32_t s = 0; s < NEW_STAGES; s++)
        (void)dlc_kernel_stage(kernel, "");
    for (uint32_t s = n; s-- > 0;)
        kernel->stages.data[s + NEW_STAGES] = kernel->stages.data[s];
}

/* TILES stands for the tile's number, which may take several axes. */
enum { TILES = DLC_NO_AXIS };

static dlc_dtype dtype_of(const tiling *t, uint32_t s)
{
    return s == INPUT ? dlc_winograd_point_type(t->at, dlc_winograd_results(t->at)) : s < PRODUCT ? dlc_winograd_row_type(t->at) : t->at->sum;
}

/* All axes that the product sums. */
static dlc_ids summed_axes(const site *at)
{
    dlc_ids axes = {0};
    for (uint32_t i = 0; i < at->others.n; i++)
        dlc_vec_push(at->arena, &axes, at->others.data[i]);
    dlc_vec_push(at->arena, &axes, at->ic);
    return axes;
}

static dlc_stage *new_stage(const tiling *t, uint32_t s, const char *name, const uint32_t *axes, uint32_t n)
{
    dlc_stage *stage = &t->kernel->stages.data[s];
    *stage = (dlc_stage){.name = name, .buffer = DLC_NO_BUFFER, .origin = t->kernel->stages.data[NEW_STAGES].origin};
    for (uint32_t i = 0; i < t->images.n; i++)
        dlc_vec_push(t->kernel->arena, &stage->axes, t->images.data[i]);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < (axes[i] == TILES ? t->tiles.n : 1); j++)
            dlc_vec_push(t->kernel->arena, &stage->axes, axes[i] == TILES ? t->tiles.data[j] : axes[i]);
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
    return dlc_expr_load(t->pool, dtype_of(t, s), DLC_STAGE_SOURCE(s), all, rank, 0, 0, 0);
}

/* Where a tile is: among rows of tiles, then among those of a row; its columns' phase, if it is not an axis. */
typedef struct {
    dlc_expr row, column, phase;
} place;

/* Phases of the columns that are part of a tile's number. */
static int64_t phases_of(const site *at)
{
    return at->has_rows ? 1 : at->step[1];
}

/* Tiles of a row are those of its first phase, then those of the next. */
static place place_of(const tiling *t)
{
    dlc_expr columns = tiles_of(t->at, t->pool, 1), phases = dlc_expr_i64(t->pool, phases_of(t->at));
    dlc_expr first = axis_of(t, t->tiles.data[0]);
    if (t->at->has_rows)
        return (place){first, axis_of(t, t->tiles.data[1]), 0};
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
    number[0] = t->at->has_rows ? row : dlc_add(t->pool, dlc_mul(t->pool, row, columns), at->column);
    number[1] = at->column;
}

/* The load of x at row g and column h of the tile; zero where the tile sticks out. */
static dlc_expr input_at(const tiling *t, int64_t g)
{
    const site *at = t->at;
    dlc_expr *with = dlc_new_array(at->in->scratch, dlc_expr, t->kernel->axes.n), index[DLC_MAX_RANK];
    int64_t m = dlc_winograd_results(at);
    place of = place_of(t);
    with[at->image[0]] = dlc_muli(t->pool, of.row, m);
    with[at->image[1]] = dlc_muli(t->pool, of.column, m);
    if (of.phase)
        with[at->phase[1]] = of.phase;
    with[at->tap[0]] = dlc_expr_i64(t->pool, g);
    with[at->tap[1]] = axis_of(t, t->column);
    const dlc_expr_node node = *dlc_node_of(t->pool, at->x);
    uint32_t rank = dlc_load_rank(t->pool, at->x);
    dlc_expr guard = dlc_load_guard(t->pool, at->x), other = dlc_load_else(t->pool, at->x);
    guard = guard ? dlc_expr_substitute(t->pool, guard, with, t->kernel->axes.n) : 0;
    for (uint32_t i = 0; i < rank; i++) {
        dlc_expr plain = dlc_arg(t->pool, at->x, i);
        index[i] = dlc_expr_substitute(t->pool, plain, with, t->kernel->axes.n);
        for (uint32_t d = 0; d < 2; d++)
            if (!is_filled(at, d, m) && dlc_expr_uses_axis(t->pool, plain, at->image[d]))
                guard = dlc_and(t->pool, guard, dlc_lt(t->pool, index[i], t->kernel->buffers.data[node.imm.id].type.dims[i]));
    }
    return dlc_expr_cast(t->pool, dlc_winograd_row_type(at), dlc_expr_load(t->pool, (dlc_dtype)node.dtype, node.imm.id, index, rank, guard, other, 0));
}

static void make_input(const tiling *t)
{
    uint32_t form = t->at->form;
    int64_t n = points_of(t->at);
    dlc_expr d[MOST_POINTS], points[MOST_POINTS], index[DLC_MAX_RANK] = {0, axis_of(t, t->point[0])};
    dlc_ids summed = summed_axes(t->at);
    for (int64_t g = 0; g < n; g++)
        d[g] = input_at(t, g);
    dlc_winograd_input(t->pool, form, d, points);
    uint32_t rows[DLC_MAX_RANK] = {TILES, t->point[0], t->column}, all[DLC_MAX_RANK] = {t->point[0], t->point[1], TILES};
    for (uint32_t i = 0; i < summed.n; i++) {
        rows[3 + i] = all[3 + i] = summed.data[i];
        index[3 + i] = axis_of(t, summed.data[i]);
    }
    new_stage(t, INPUT_ROWS, "input_rows", rows, 3 + summed.n)->value[0] = chosen(t->pool, axis_of(t, t->point[0]), points, n);
    for (int64_t h = 0; h < n; h++) {
        index[2] = dlc_expr_i64(t->pool, h);
        d[h] = load_of(t, INPUT_ROWS, NULL, index, 3 + summed.n);
    }
    dlc_winograd_input(t->pool, form, d, points);
    dlc_expr chosen_point = chosen(t->pool, axis_of(t, t->point[1]), points, n);
    new_stage(t, INPUT, "input", all, 3 + summed.n)->value[0] = dlc_expr_cast(t->pool, dtype_of(t, INPUT), chosen_point);
}

static void make_product(const tiling *t)
{
    uint32_t axes[] = {t->point[0], t->point[1], TILES, t->at->oc};
    dlc_expr v[DLC_MAX_RANK] = {axis_of(t, t->point[0]), axis_of(t, t->point[1])}, u[DLC_MAX_RANK] = {v[0], v[1]};
    dlc_ids summed = summed_axes(t->at);
    for (uint32_t i = 0; i < summed.n; i++)
        u[2 + i] = v[3 + i] = axis_of(t, summed.data[i]);
    u[2 + summed.n] = axis_of(t, t->at->oc);
    dlc_stage *stage = new_stage(t, PRODUCT, "products", axes, 4);
    stage->combine = DLC_REDUCE_SUM;
    for (uint32_t i = 0; i < summed.n; i++)
        dlc_vec_push(t->kernel->arena, &stage->reduce, summed.data[i]);
    dlc_expr filter = dlc_expr_load(t->pool, dtype_of(t, INPUT), t->filter, u, 3 + summed.n, 0, 0, 0);
    stage->value[0] = dlc_mul(t->pool, dlc_expr_cast(t->pool, t->at->sum, load_of(t, INPUT, NULL, v, 3 + summed.n)),
                              dlc_expr_cast(t->pool, t->at->sum, filter));
}

/* The convolution's stage: its elements from the rows of their tiles. */
static void make_results(const tiling *t)
{
    uint32_t form = t->at->form, oc = t->at->oc;
    int64_t n = points_of(t->at), m = dlc_winograd_results(t->at);
    dlc_expr z[MOST_POINTS], results[MOST_POINTS];
    for (int64_t p = 0; p < n; p++) {
        dlc_expr index[] = {dlc_expr_i64(t->pool, p), axis_of(t, t->point[1]), 0, axis_of(t, oc)};
        z[p] = load_of(t, PRODUCT, NULL, index, 4);
    }
    dlc_winograd_output(t->pool, form, z, results);
    uint32_t axes[] = {TILES, t->result, t->point[1], oc};
    new_stage(t, OUTPUT_ROWS, "output_rows", axes, 4)->value[0] = chosen(t->pool, axis_of(t, t->result), results, m);
    dlc_expr by = dlc_expr_i64(t->pool, m), tile[2], number[2], within[2];
    for (uint32_t d = 0; d < 2; d++) {
        tile[d] = dlc_floordiv(t->pool, axis_of(t, t->at->image[d]), by);
        within[d] = dlc_mod(t->pool, axis_of(t, t->at->image[d]), by);
    }
    place of = {tile[0], tile[1], 0};
    if (phases_of(t->at) > 1)
        of.phase = axis_of(t, t->at->phase[1]);
    number_of(t, &of, number);
    for (int64_t q = 0; q < n; q++) {
        dlc_expr index[] = {0, within[0], dlc_expr_i64(t->pool, q), axis_of(t, oc)};
        z[q] = load_of(t, OUTPUT_ROWS, number, index, 4);
    }
    dlc_winograd_output(t->pool, form, z, results);
    dlc_stage *stage = &t->kernel->stages.data[NEW_STAGES];
    stage->combine = DLC_REDUCE_NONE;
    stage->reduce = (dlc_ids){0};
    stage->value[0] = chosen(t->pool, within[1], results, m);
    if (dlc_winograd_is_exact(t->at))
        stage->value[0] = dlc_winograd_divided(t->pool, form, stage->value[0]);
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
        if (axes->data[i] != at->image[0] && axes->data[i] != at->image[1] && axes->data[i] != at->oc)
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
        dlc_vec_push(at->arena, axes, at->image[d]);
    dlc_vec_push(at->arena, axes, at->oc);
    for (uint32_t i = 0; i < axes->n; i++) {
        uint32_t axis = axes->data[i], d = axis == at->image[1];
        dlc_expr size = axis == at->image[d] ? padded_size(at, kernel->pool, d) : kernel->axes.data[axis].extent;
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
    dlc_stage *stage = &kernel->stages.data[NEW_STAGES];
    stage->buffer = made;
    stage->store = (dlc_ids){0};
    for (uint32_t i = 0; i < axes.n; i++) {
        uint32_t d = axes.data[i] == at->image[1];
        dlc_expr point = dlc_expr_axis(kernel->pool, axes.data[i]);
        if (axes.data[i] == at->image[d] && has_phases(at, d))
            point = dlc_add(kernel->pool, dlc_muli(kernel->pool, point, at->step[d]), dlc_expr_axis(kernel->pool, at->phase[d]));
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
    dlc_kernel *kernel = copy_kernel(at, at->arena, phase);
    tiling t = {.at = at, .kernel = kernel, .pool = kernel->pool};
    int64_t n = points_of(at);
    t.filter = dlc_rewrite_insert(kernel, filter_buffer(at, t.pool, DLC_ROLE_CONST));
    dlc_expr rows = tiles_of(at, t.pool, 0), columns = tiles_of(at, t.pool, 1);
    if (at->has_rows)
        dlc_vec_push(kernel->arena, &t.tiles, dlc_kernel_axis(kernel, "tr", rows));
    else
        columns = dlc_mul(t.pool, dlc_muli(t.pool, rows, phases_of(at)), columns);
    dlc_vec_push(kernel->arena, &t.tiles, dlc_kernel_axis(kernel, "t", columns));
    t.point[0] = points_axis(&t, "p", n);
    t.point[1] = points_axis(&t, "q", n);
    t.column = points_axis(&t, "h", n);
    t.result = points_axis(&t, "r", dlc_winograd_results(at));
    t.images = images_of(at);
    for (uint32_t d = 0; d < 2; d++)
        if (has_phases(at, d) && (d == 0 || at->has_rows))
            dlc_vec_push(at->arena, &t.images, at->phase[d]);
    insert_stages(kernel);
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

/* Of bytes forms in whole numbers, whose results have bits enough. */
static int has_form(const site *at, uint32_t form)
{
    const dlc_winograd_form *f = &dlc_winograd_forms[form];
    int is_exact = dlc_winograd_is_exact(at), fits = at->most <= INT32_MAX >> dlc_winograd_bits(form);
    return f->stride == at->stride[0] && (is_exact ? f->whole && fits : !f->is_whole);
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

/* The form that takes least time; NFORMS: none is worth it. */
static uint32_t choose_form(site *at)
{
    enum { WORTH_PERCENT = 85,    /* of the time before */
           MOST_BYTES = 20 << 10, /* by which filters of bytes may grow, eightfold, for a microsecond saved: files are sent, and loaded */
           LEAST_L2 = 128 << 10 }; /* machines with less are short of memory, which filters and tiles take more of */
    const dlc_rewriting *in = at->in;
    if (in->target->l2_bytes < LEAST_L2)
        return NFORMS;
    double before = dlc_winograd_time(at, NFORMS), least = before * WORTH_PERCENT / 100;
    uint32_t best = NFORMS;
    dlc_rewritten trial;
    for (uint32_t f = 0; f < NFORMS; f++) {
        double time = dlc_winograd_time(at, f), further = dlc_winograd_filter_bytes(at, f) - dlc_winograd_filter_bytes(at, NFORMS);
        if (dlc_winograd_forms[f].m > (dlc_winograd_is_exact(at) ? in->winograd_whole : in->winograd) || time >= least || !has_form(at, f) ||
            (dlc_winograd_is_exact(at) && further > MOST_BYTES * (before - time)))
            continue;
        least = time;
        best = f;
    }
    if (best == NFORMS)
        return best;
    at->form = best;
    at->arena = in->scratch;
    make(at, &trial);
    at->arena = in->arena;
    return has_tiles(in, &trial) ? best : NFORMS;
}

int dlc_rewrite_winograd(const dlc_rewriting *in, dlc_rewritten *out)
{
    site at = {.in = in, .arena = in->arena, .form = NFORMS, .images = 1};
    if (in->target->kind != DLC_TARGET_CPU || (!in->wanted && !in->winograd))
        return 0;
    at.kernel = dlc_kernel_clone(in->kernel, in->scratch);
    if (!find_site(&at))
        return 0;
    dlc_ids images = images_of(&at);
    for (uint32_t i = 0; i < images.n; i++) {
        int64_t extent;
        if (dlc_const_extent(at.kernel, images.data[i], &extent))
            at.images *= (double)extent;
    }
    if (!in->wanted)
        at.form = choose_form(&at);
    for (uint32_t f = 0; in->wanted && f < NFORMS; f++)
        if (dlc_winograd_forms[f].m == in->wanted && has_form(&at, f))
            at.form = f;
    if (at.form == NFORMS)
        return 0;
    make(&at, out);
    if (!in->wanted)
        out->left = dlc_winograd_time(&at, at.form) / dlc_winograd_time(&at, NFORMS);
    return 1;
}

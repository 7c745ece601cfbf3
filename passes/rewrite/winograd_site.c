/*
 * Which kernels winograd.c rewrites: sums of products of loads, one of which goes by windows along one direction or two, and maps behind them.
 * A direction without a window is one of tiles' columns or rows all the same, so that tiles of the whole image stand side by side.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/winograd.h"

typedef dlc_winograd_site site;

dlc_expr dlc_winograd_whole_size(const site *at, uint32_t d)
{
    uint32_t axis = at->along[d].image;
    return axis == DLC_NO_AXIS ? dlc_expr_i64(at->kernel->pool, 1) : at->in->kernel->axes.data[axis].extent;
}

int dlc_winograd_is_filled(const site *at, uint32_t d, int64_t results)
{
    int64_t size;
    return dlc_expr_is_int(at->kernel->pool, dlc_winograd_whole_size(at, d), &size) && size % (at->along[d].step * results) == 0;
}

dlc_kernel *dlc_winograd_copy(const site *at, dlc_arena *arena, uint32_t phase[2])
{
    dlc_kernel *kernel = dlc_kernel_clone(at->in->kernel, arena);
    for (uint32_t d = 0; d < 2; d++)
        if (dlc_winograd_has_phases(at, d) && (phase[d] = dlc_rewrite_phases(kernel, at->along[d].image, at->along[d].step)) == DLC_NO_AXIS)
            return NULL;
    return kernel;
}

/* The index is stride * a kept axis + step * a reduced one + a number: a window of so many taps that forms have. */
static int find_window(const site *at, dlc_expr index, const dlc_stage *stage, dlc_winograd_direction *window)
{
    enum { LEAST_TAPS = 3, MOST_STEP = 1 << 20 }; /* more is nobody's, and products of it might not fit */
    dlc_pool *pool = at->kernel->pool;
    dlc_expr rest = index, coefficient;
    int64_t by, number;
    *window = (dlc_winograd_direction){.image = DLC_NO_AXIS, .tap = DLC_NO_AXIS};
    for (uint32_t a = 0; a < at->kernel->axes.n; a++) {
        if (!dlc_expr_uses_axis(pool, rest, a))
            continue;
        int is_tap = dlc_ids_find(&stage->reduce, a, NULL);
        uint32_t *role = is_tap ? &window->tap : &window->image;
        if (*role != DLC_NO_AXIS || !dlc_expr_linear(pool, rest, a, &coefficient, &rest) ||
            !dlc_expr_is_int(pool, coefficient, &by) || by < 1 || by > (is_tap ? MOST_STEP : 2))
            return 0;
        *role = a;
        *(is_tap ? &window->step : &window->stride) = by;
    }
    return window->image != DLC_NO_AXIS && window->tap != DLC_NO_AXIS && dlc_expr_is_int(pool, rest, &number) &&
           dlc_const_extent(at->kernel, window->tap, &window->window) && window->window >= LEAST_TAPS;
}

static uint32_t has_window(const site *at, uint32_t d)
{
    return at->along[d].tap != DLC_NO_AXIS;
}

/* The load, guard and all, depends on result and tap by their sum alone. */
static int is_shifted(const site *at, uint32_t d)
{
    dlc_pool *pool = at->kernel->pool;
    dlc_expr *with = dlc_new_array(at->in->scratch, dlc_expr, at->kernel->axes.n);
    with[at->along[d].image] = dlc_addi(pool, dlc_expr_axis(pool, at->along[d].image), 1);
    with[at->along[d].tap] = dlc_addi(pool, dlc_expr_axis(pool, at->along[d].tap), -at->along[d].stride);
    return dlc_expr_substitute(pool, at->x, with, at->kernel->axes.n) == at->x;
}

static void find_size(site *at, uint32_t d)
{
    enum { NOMINAL_IMAGE = 256 }; /* points a side: sizes of deep layers are parts of it */
    const int64_t *symbols = dlc_kernel_usual_values(at->kernel, NOMINAL_IMAGE, at->in->scratch);
    dlc_winograd_direction *along = &at->along[d];
    int64_t size;
    along->size = along->image == DLC_NO_AXIS ? dlc_expr_i64(at->kernel->pool, 1) : at->kernel->axes.data[along->image].extent;
    along->nominal = dlc_expr_eval(at->kernel->pool, dlc_winograd_whole_size(at, d), symbols);
    at->has_rows |= !dlc_expr_is_int(at->kernel->pool, along->size, &size);
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

/* The one window is at dimension `only`, and direction 1. The direction beside it is that of the last other dimension that a kept axis is
 * part of. */
static void find_plain(site *at, const dlc_stage *stage, uint32_t only)
{
    const dlc_pool *pool = at->kernel->pool;
    dlc_winograd_direction window = at->along[1], plain = {.image = DLC_NO_AXIS, .tap = DLC_NO_AXIS, .window = 1, .step = 1, .stride = 1};
    uint32_t d = 0;
    for (uint32_t i = dlc_load_rank(pool, at->x); i-- > 0 && plain.image == DLC_NO_AXIS;)
        for (uint32_t j = 0; j < stage->axes.n; j++)
            if (stage->axes.data[j] != window.image && dlc_expr_uses_axis(pool, dlc_arg(pool, at->x, i), stage->axes.data[j])) {
                plain.image = stage->axes.data[j];
                d = i > only;
                break;
            }
    at->along[d] = plain;
    at->along[!d] = window;
}

static int find_windows(site *at, const dlc_stage *stage)
{
    const dlc_pool *pool = at->kernel->pool;
    const dlc_winograd_direction *along = at->along;
    dlc_winograd_direction window;
    uint32_t n = 0, only = 0;
    for (uint32_t i = 0; i < dlc_load_rank(pool, at->x); i++) {
        dlc_expr index = dlc_arg(pool, at->x, i);
        uint32_t axis = dlc_bare_axis(pool, index);
        if (axis != DLC_NO_AXIS && dlc_ids_find(&stage->reduce, axis, NULL) && is_innermost(at, axis))
            at->ic = axis;
        if (!find_window(at, index, stage, &window))
            continue;
        at->along[0] = at->along[1]; /* the last two are taken */
        at->along[1] = window;
        only = i;
        n++;
    }
    if (n == 1)
        find_plain(at, stage, only);
    return n > 0 && at->ic != DLC_NO_AXIS && at->ic != along[0].tap && at->ic != along[1].tap && along[0].image != along[1].image &&
           along[0].tap != along[1].tap && ((along[0].stride == 1 && along[1].stride == 1) || (along[0].step == 1 && along[1].step == 1));
}

/* The reduced axes that are neither channels nor taps of the tiles. */
static int find_others(site *at, const dlc_stage *stage)
{
    int64_t extent;
    at->nothers = 1;
    for (uint32_t i = 0; i < stage->reduce.n; i++) {
        uint32_t axis = stage->reduce.data[i];
        if (axis == at->ic || axis == at->along[0].tap || axis == at->along[1].tap)
            continue;
        if (!dlc_const_extent(at->kernel, axis, &extent))
            return 0;
        dlc_vec_push(at->in->scratch, &at->others, axis);
        at->nothers *= extent;
    }
    return 1;
}

/* Indices of a convolution without groups: each of its own axis, none of the image's. */
static int find_filter(site *at, const dlc_stage *stage)
{
    const dlc_pool *pool = at->kernel->pool;
    uint32_t rank = dlc_load_rank(pool, at->w), nkept = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t axis = dlc_bare_axis(pool, dlc_arg(pool, at->w, i));
        if (axis == DLC_NO_AXIS || axis == at->along[0].image || axis == at->along[1].image)
            return 0;
        if (!dlc_ids_find(&stage->axes, axis, NULL))
            continue;
        at->oc = axis;
        nkept++;
    }
    return rank == 2 + at->others.n + has_window(at, 0) + has_window(at, 1) && nkept == 1 && !dlc_expr_uses_axis(pool, at->x, at->oc) &&
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
    if (!dlc_winograd_has_phases(at, 0) && !dlc_winograd_has_phases(at, 1))
        return 1;
    uint32_t phase[2] = {0, 0};
    dlc_kernel *kernel = dlc_winograd_copy(at, at->in->scratch, phase);
    if (!kernel)
        return 0;
    at->kernel = kernel;
    for (uint32_t d = 0; d < 2; d++)
        at->along[d].phase = phase[d];
    return find_factors(at, &kernel->stages.data[0]);
}

int dlc_winograd_find(site *at)
{
    const dlc_kernel *kernel = at->in->kernel;
    const dlc_stage *stage = &kernel->stages.data[0];
    if (!kernel->stages.n || stage->combine != DLC_REDUCE_SUM || stage->reduce.n < 2 || stage->update != DLC_UPDATE_NONE ||
        !find_types(at, stage->dtype[0]) || dlc_node_of(kernel->pool, stage->value[0])->op != DLC_EXPR_MUL || !are_maps(kernel))
        return 0;
    at->kernel = dlc_kernel_clone(kernel, at->in->scratch);
    stage = &at->kernel->stages.data[0];
    at->ic = at->oc = DLC_NO_AXIS;
    if (!find_factors(at, stage) || !find_windows(at, stage) || !find_others(at, stage) || !split_phases(at))
        return 0;
    for (uint32_t d = 0; d < 2; d++) {
        if (has_window(at, d) && !is_shifted(at, d))
            return 0;
        find_size(at, d);
    }
    if (!find_filter(at, &at->kernel->stages.data[0]) || (dlc_winograd_is_exact(at) && at->inputs % 2))
        return 0;
    if (dlc_winograd_is_exact(at))
        dlc_winograd_find_range(at);
    at->is_turned = stores_across(at);
    for (uint32_t d = 0; d < 2; d++) /* only a value of our own has room for what sticks out */
        at->is_turned |= dlc_winograd_has_phases(at, d) && !dlc_winograd_is_filled(at, d, 1);
    return 1;
}

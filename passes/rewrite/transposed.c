/*
 * Transposed windows: of a convolution whose taps are of use at every s-th point alone each phase of the points, q modulo s, is a
 * convolution by taps of its own (ir/kernel/phases.h). Where neither the window nor the image is a multiple of the stride phases differ in
 * size, so each becomes a kernel, which stores its points of the whole; what follows the sum goes along. (Phases of one size are an axis of
 * one kernel: passes/lower/lower_phases.c.)
 *
 * Weights are cut into those of the phases: where they are constants, at compile time.
 */
#include "ir/kernel/algebra.h"
#include "ir/kernel/phases.h"
#include "passes/rewrite/rewrite.h"

enum {
    MOST_PHASES = 16,   /* kernels for one */
    MOST_WINDOW = 3,    /* dimensions of a window */
    WORTH_PERCENT = 95  /* of the time before */
};

/* The taps that a phase has of a window's: step * t + first. */
typedef struct {
    uint32_t axis; /* t, or DLC_NO_AXIS: there is one */
    int64_t step, first, count;
} taps;

typedef struct {
    dlc_arena *arena;
    dlc_rewritten *out;
    taps window[MOST_WINDOW]; /* of the phase at hand */
    uint32_t nwindow, stage;
    int64_t nphases; /* of the dimensions before */
} making;

/* Every phase has a tap, and every stage the points of one phase. */
static int is_parted(const dlc_phases *found)
{
    if (found->ntaps < found->stride || found->stride > MOST_PHASES)
        return 0;
    for (uint32_t s = 0; s < found->kernel->stages.n; s++)
        if (!dlc_ids_find(&found->kernel->stages.data[s].axes, found->point, NULL))
            return 0;
    return 1;
}

/* --- one phase --- */

static dlc_expr own_tap(dlc_pool *pool, const taps *t)
{
    return t->axis == DLC_NO_AXIS ? dlc_expr_i64(pool, 0) : dlc_expr_axis(pool, t->axis);
}

static dlc_expr tap_of(dlc_pool *pool, const taps *t)
{
    return dlc_addi(pool, dlc_muli(pool, own_tap(pool, t), t->step), t->first);
}

static void take_taps(dlc_kernel *kernel, const dlc_phases *found, int64_t phase, taps *t)
{
    dlc_stage *stage = &kernel->stages.data[found->stage];
    int64_t step = found->stride, first = ((phase + found->shift) % step + step) % step;
    uint32_t position;
    *t = (taps){DLC_NO_AXIS, step, first, (found->ntaps - first + step - 1) / step};
    (void)dlc_ids_find(&stage->reduce, found->tap, &position);
    if (t->count > 1 || stage->reduce.n == 1)
        t->axis = stage->reduce.data[position] = dlc_kernel_axis(
            kernel, dlc_arena_printf(kernel->arena, "%s_own", kernel->axes.data[found->tap].name), dlc_expr_i64(kernel->pool, t->count));
    else
        dlc_ids_remove(&stage->reduce, position);
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    with[found->tap] = tap_of(kernel->pool, t);
    stage->value[0] = dlc_expr_substitute(kernel->pool, stage->value[0], with, kernel->axes.n);
}

/* The axis of points has those of one phase; `is_one`: it is none any more. */
typedef struct {
    const dlc_kernel *kernel;
    uint32_t axis;
    int is_one;
} own_points;

static uint32_t own_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const own_points *own = user;
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
        int is_point = DLC_SOURCE_IS_STAGE(source) && own->kernel->stages.data[DLC_SOURCE_INDEX(source)].axes.data[d] == own->axis;
        if (!is_point)
            result[n++] = index[d];
        else if (!own->is_one)
            result[n++] = dlc_expr_axis(own->kernel->pool, own->axis);
    }
    return n;
}

/* 0: the phase has none. */
static int take_points(dlc_kernel *kernel, const dlc_phases *found, int64_t phase)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr *extent = &kernel->axes.data[found->point].extent, point = dlc_expr_axis(pool, found->point);
    dlc_expr own = dlc_floordiv(pool, dlc_addi(pool, *extent, found->stride - 1 - phase), dlc_expr_i64(pool, found->stride));
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    uint32_t position;
    int64_t n = -1;
    (void)dlc_expr_is_int(pool, own, &n);
    own_points points = {kernel, found->point, n == 1};
    if (n == 0)
        return 0;
    with[found->point] = points.is_one ? dlc_expr_i64(pool, phase) : dlc_addi(pool, dlc_muli(pool, point, found->stride), phase);
    dlc_kernel_reindex(kernel, &(dlc_reindex){with, own_index, &points});
    *extent = own;
    for (uint32_t s = 0; s < kernel->stages.n && points.is_one; s++)
        if (dlc_ids_find(&kernel->stages.data[s].axes, found->point, &position))
            dlc_ids_remove(&kernel->stages.data[s].axes, position);
    return 1;
}

/* --- the weights of a phase --- */

/* Taps that dimension d of the load goes by; NULL: the whole dimension is read. */
static const taps *taps_of(const making *m, dlc_pool *pool, dlc_expr load, uint32_t d)
{
    for (uint32_t i = 0; i < m->nwindow; i++)
        if (dlc_arg(pool, load, d) == tap_of(pool, &m->window[i]))
            return &m->window[i];
    return NULL;
}

/* The one load of a constant that goes by the taps; 0: there is none. */
static dlc_expr find_weights(const making *m, const dlc_kernel *kernel)
{
    const uint8_t *marks = dlc_kernel_marks(kernel, kernel->arena);
    uint32_t *nloads = dlc_new_array(kernel->arena, uint32_t, kernel->buffers.n + 1);
    dlc_expr found = 0;
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (!marks[id] || node->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(node->imm.id) ||
            kernel->buffers.data[node->imm.id].role != DLC_ROLE_CONST)
            continue;
        nloads[node->imm.id]++;
        for (uint32_t d = 0; d < dlc_load_rank(kernel->pool, id); d++)
            if (!node->flags && !dlc_load_guard(kernel->pool, id) && taps_of(m, kernel->pool, id, d))
                found = id;
    }
    return found && nloads[dlc_node_of(kernel->pool, found)->imm.id] == 1 ? found : 0;
}

/* made[…, t, …] = w[…, step * t + first, …], a kernel of constants. Dimensions of one tap are none. */
static void make_weights(const making *m, dlc_kernel *from, dlc_expr load, const char *name)
{
    dlc_kernel *kernel = dlc_kernel_create(m->arena, from->name);
    dlc_pool *pool = kernel->pool;
    uint32_t source = (uint32_t)dlc_node_of(from->pool, load)->imm.id, made = DLC_REWRITE_MADE | m->out->made.n;
    dlc_buffer w = from->buffers.data[source], cut = {.name = name, .role = DLC_ROLE_OUT, .type = {.dtype = w.type.dtype}};
    dlc_expr index[DLC_MAX_RANK];
    dlc_stage *stage = dlc_kernel_stage(kernel, name);
    for (uint32_t d = 0; d < w.type.rank; d++) {
        const taps *t = taps_of(m, from->pool, load, d);
        w.type.dims[d] = dlc_expr_i64(pool, dlc_expr_value(from->pool, w.type.dims[d]));
        index[d] = dlc_expr_i64(pool, t ? t->first : 0);
        if (t && t->axis == DLC_NO_AXIS)
            continue;
        dlc_expr extent = t ? dlc_expr_i64(pool, t->count) : w.type.dims[d];
        uint32_t axis = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "d%u", d), extent);
        dlc_vec_push(kernel->arena, &stage->axes, axis);
        dlc_vec_push(kernel->arena, &stage->store, dlc_expr_axis(pool, axis));
        cut.type.dims[cut.type.rank++] = extent;
        index[d] = dlc_add(pool, index[d], dlc_muli(pool, dlc_expr_axis(pool, axis), t ? t->step : 1));
    }
    dlc_vec_push(kernel->arena, &kernel->buffers, w);
    dlc_vec_push(kernel->arena, &kernel->buffers, cut);
    stage->value[0] = dlc_expr_load(pool, (dlc_dtype)w.type.dtype, 0, index, w.type.rank, 0, 0, 0);
    stage->dtype[0] = (dlc_dtype)w.type.dtype;
    stage->buffer = 1;
    dlc_rewrite_part part = {.kernel = kernel};
    dlc_vec_push(m->arena, &part.buffers, source);
    dlc_vec_push(m->arena, &part.buffers, made);
    dlc_kernel_simplify(kernel);
    dlc_vec_push(m->arena, &m->out->parts, part);
}

typedef struct {
    dlc_source source;
    dlc_expr cut;
} exchange;

static dlc_expr read_cut(void *user, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const exchange *e = user;
    (void)to, (void)args;
    return node->op == DLC_EXPR_LOAD && node->imm.id == e->source ? e->cut : 0;
}

/* The kernel reads the weights of its phase, and returns their buffer; all of them, where they are no constants: DLC_NO_BUFFER. */
static uint32_t cut_weights(const making *m, dlc_kernel *kernel)
{
    dlc_pool *pool = kernel->pool;
    dlc_stage *stage = &kernel->stages.data[m->stage];
    dlc_expr index[DLC_MAX_RANK], load = find_weights(m, kernel);
    if (!load || kernel->buffers.data[dlc_node_of(pool, load)->imm.id].layout.nparts)
        return DLC_NO_BUFFER;
    const dlc_buffer *w = &kernel->buffers.data[dlc_node_of(pool, load)->imm.id];
    dlc_buffer made = {.name = dlc_arena_printf(m->arena, "%s.%u", w->name, m->out->made.n), .role = DLC_ROLE_CONST};
    made.type.dtype = w->type.dtype;
    for (uint32_t d = 0; d < w->type.rank; d++) {
        const taps *t = taps_of(m, pool, load, d);
        if (t && t->axis == DLC_NO_AXIS)
            continue;
        index[made.type.rank] = t ? own_tap(pool, t) : dlc_arg(pool, load, d);
        made.type.dims[made.type.rank++] = t ? dlc_expr_i64(pool, t->count) : w->type.dims[d];
    }
    make_weights(m, kernel, load, made.name);
    uint32_t buffer = dlc_rewrite_insert(kernel, made);
    exchange e = {dlc_node_of(pool, load)->imm.id, dlc_expr_load(pool, (dlc_dtype)made.type.dtype, buffer, index, made.type.rank, 0, 0, 0)};
    stage->value[0] = dlc_expr_rewrite(pool, pool, stage->value[0], read_cut, &e);
    return buffer;
}

/* --- all phases --- */

static void add_phase(making *m, dlc_kernel *kernel)
{
    uint32_t weights = cut_weights(m, kernel);
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        kernel->buffers.data[b].is_part |= kernel->buffers.data[b].role == DLC_ROLE_OUT;
    if (weights == DLC_NO_BUFFER) {
        dlc_rewrite_add_part(kernel, kernel->buffers.n, 0, m->out);
        return;
    }
    dlc_rewrite_add_part(kernel, weights, 1, m->out);
    const char *name = dlc_arena_printf(m->arena, "weights.%u", m->out->made.n);
    dlc_ids *buffers = &m->out->parts.data[m->out->parts.n - 1].buffers;
    for (uint32_t b = 0; b < buffers->n; b++)
        if (buffers->data[b] & DLC_REWRITE_MADE)
            buffers->data[b] = DLC_REWRITE_MADE | m->out->made.n;
    dlc_vec_push(m->arena, &m->out->made, name);
}

/* Phases along one dimension after the other; dimensions beyond what kernels there may be stay as they are. */
static void make_phases(making *m, dlc_kernel *kernel)
{
    dlc_phases found;
    if (m->nwindow == MOST_WINDOW || !dlc_phases_find(kernel, is_parted, &found) || m->nphases * found.stride > MOST_PHASES) {
        add_phase(m, kernel);
        return;
    }
    m->stage = found.stage;
    m->nphases *= found.stride;
    for (int64_t phase = 0; phase < found.stride; phase++) {
        dlc_kernel *own = dlc_kernel_clone(kernel, m->arena);
        take_taps(own, &found, phase, &m->window[m->nwindow]);
        if (!take_points(own, &found, phase))
            continue;
        dlc_kernel_simplify(own);
        m->nwindow++;
        make_phases(m, own);
        m->nwindow--;
    }
    m->nphases /= found.stride;
}

/* --- whether it pays --- */

static double time_of(const dlc_rewriting *in, const dlc_rewritten *out)
{
    double time = 0;
    for (uint32_t p = 0; p < out->parts.n; p++) {
        const dlc_kernel *kernel = out->parts.data[p].kernel;
        int is_constant = 1; /* computed by the compiler */
        for (uint32_t b = 0; b < kernel->buffers.n; b++)
            is_constant &= kernel->buffers.data[b].role != DLC_ROLE_IN;
        double part = is_constant ? 0 : dlc_rewrite_time_of_fitting(in, kernel);
        if (part < 0)
            return -1;
        time += part;
    }
    return time;
}

/* With a stride as large as was asked for. */
static int has_phases(const dlc_rewriting *in)
{
    dlc_phases found;
    return dlc_phases_find(dlc_kernel_clone(in->kernel, in->scratch), is_parted, &found) && found.stride >= in->wanted;
}

static void make(const dlc_rewriting *in, dlc_arena *arena, dlc_rewritten *out)
{
    making m = {.arena = arena, .out = out, .nphases = 1};
    *out = (dlc_rewritten){0};
    make_phases(&m, dlc_kernel_clone(in->kernel, arena));
}

int dlc_rewrite_transposed(const dlc_rewriting *in, dlc_rewritten *out)
{
    if (!has_phases(in))
        return 0;
    if (!in->wanted) {
        make(in, in->scratch, out);
        double before = dlc_rewrite_time_of_fitting(in, in->kernel), after = time_of(in, out);
        if (before < 0 || after < 0 || after > before * WORTH_PERCENT / 100) {
            *out = (dlc_rewritten){0};
            return 0;
        }
    }
    make(in, in->arena, out);
    return 1;
}

/*
 * Samples: kernels that treat each sample of a batch by itself run for one sample after the other, all of them for the first before any for
 * the second. What they hand to each other is of one sample then, and stays in the caches, where a batch of it does not fit.
 *
 *     launch a (%x: [8,…]) -> (%v: [8,…])           loop s < 8
 *     launch b (%v) -> (%y: [8,…])             ->     launch a1 (%x, s) -> (%v: [1,…])
 *                                                     launch b1 (%v) -> (%y1: [1,…])
 *                                                     copy %y1 -> %y at s
 *                                                   end
 *
 * Nothing is assumed of what a batch is: kernels' equations say it. One axis indexes the first dimension of what they write, and of some of
 * what they read, and nothing else; it may have several points a sample, as rows of pixels do. Weights are read once a sample, so those steps
 * go by samples for which that costs less than bytes save that come from a nearer cache.
 */
#include "ir/kernel/algebra.h"
#include "passes/fuse/fuse.h"
#include "passes/lower/lower.h"
#include "passes/rewrite/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORTH 0.2      /* of what moving takes: less is not worth a loop */
#define MEETING_US 0.7 /* for each thread: what waits for the others at the end of a step */

/* How a kernel goes over samples. */
typedef struct {
    uint32_t axis;
    int64_t points;  /* of the axis, of one sample; 0: it does not go over samples one by one */
    uint8_t *is_one; /* by buffer: its first dimension is samples */
} samples;

typedef struct {
    dlc_pass_ctx *ctx;
    dlc_module *module;
    int64_t n;        /* samples */
    samples *of;      /* by step */
    double *moving_us, *gain_us; /* by step; what is saved of that */
    uint32_t *whole_from;        /* by step: from where on what it reads as a whole is there */
    uint32_t *nwriters, *writer; /* by value: steps; the last that writes it */
} sampling;

static const dlc_kernel *kernel_of(const sampling *s, uint32_t step)
{
    return s->module->kernels.data[s->module->steps.data[step].kernel].kernel;
}

/* --- kernels --- */

/* The axis that all results have first. */
static int find_axis(const dlc_kernel *kernel, int64_t n, samples *of)
{
    int64_t extent = 0, size;
    of->axis = DLC_NO_AXIS;
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const dlc_stage *stage = &kernel->stages.data[i];
        if (stage->update != DLC_UPDATE_NONE)
            return 0;
        if (stage->buffer == DLC_NO_BUFFER)
            continue;
        const dlc_buffer *buffer = &kernel->buffers.data[stage->buffer];
        uint32_t axis = stage->store.n ? dlc_bare_axis(kernel->pool, stage->store.data[0]) : DLC_NO_AXIS;
        if (axis == DLC_NO_AXIS || (of->axis != DLC_NO_AXIS && axis != of->axis) || !dlc_const_extent(kernel, axis, &extent) ||
            !dlc_expr_is_int(kernel->pool, buffer->type.dims[0], &size) || size != extent || buffer->layout.nparts || buffer->is_part)
            return 0;
        of->axis = axis;
        of->is_one[stage->buffer] = 1;
    }
    of->points = of->axis != DLC_NO_AXIS && extent % n == 0 ? extent / n : 0;
    return of->points > 0;
}

/* Of a load: the position of the samples' index; the rank: it has none. */
static uint32_t position_in(const dlc_kernel *kernel, dlc_expr load, const samples *of)
{
    const dlc_expr_node *node = dlc_node_of(kernel->pool, load);
    uint32_t rank = dlc_load_rank(kernel->pool, load), at;
    int64_t size, extent;
    if (DLC_SOURCE_IS_STAGE(node->imm.id))
        return dlc_ids_find(&kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)].axes, of->axis, &at) ? at : rank;
    const dlc_buffer *buffer = &kernel->buffers.data[node->imm.id];
    int is_first = rank && dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, load, 0)) == of->axis && !buffer->layout.nparts;
    return is_first && dlc_expr_is_int(kernel->pool, buffer->type.dims[0], &size) && dlc_const_extent(kernel, of->axis, &extent) && size == extent
               ? 0
               : rank;
}

/* The expression depends on the axis, if at all, as the index of a sample. */
static int is_by_samples(const dlc_kernel *kernel, dlc_expr id, const samples *of, uint8_t *is_whole)
{
    const dlc_pool *pool = kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, id);
    uint32_t at = node->nargs, is_load = node->op == DLC_EXPR_LOAD;
    if (is_load) {
        at = position_in(kernel, id, of);
        int has_samples = at < dlc_load_rank(pool, id);
        if (has_samples && dlc_bare_axis(pool, dlc_arg(pool, id, at)) != of->axis)
            return 0;
        if (!DLC_SOURCE_IS_STAGE(node->imm.id))
            *(has_samples ? &of->is_one[node->imm.id] : &is_whole[node->imm.id]) = 1;
        at = has_samples ? at : node->nargs;
    }
    for (uint32_t i = 0; i < node->nargs; i++)
        if (i != at && dlc_arg(pool, id, i) && dlc_bare_axis(pool, dlc_arg(pool, id, i)) == of->axis)
            return 0;
    return 1;
}

static int stage_is_by_samples(const dlc_kernel *kernel, const dlc_stage *stage, const samples *of)
{
    for (uint32_t i = 0; i < 2; i++)
        if (stage->value[i] && dlc_bare_axis(kernel->pool, stage->value[i]) == of->axis)
            return 0;
    for (uint32_t d = 1; d < stage->store.n; d++)
        if (dlc_bare_axis(kernel->pool, stage->store.data[d]) == of->axis)
            return 0;
    return !dlc_ids_find(&stage->reduce, of->axis, NULL);
}

static samples find_samples(const dlc_kernel *kernel, int64_t n, dlc_arena *arena)
{
    samples of = {.is_one = dlc_new_array(arena, uint8_t, kernel->buffers.n + 1)}, none = {0};
    uint8_t *is_whole = dlc_new_array(arena, uint8_t, kernel->buffers.n + 1);
    const uint8_t *marks = dlc_kernel_marks(kernel, arena);
    if (!find_axis(kernel, n, &of))
        return none;
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        if (!stage_is_by_samples(kernel, &kernel->stages.data[i], &of))
            return none;
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++)
        if (marks[id] && !is_by_samples(kernel, id, &of, is_whole))
            return none;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (of.is_one[b] && is_whole[b])
            return none;
    return of;
}

/* --- the kernels of one sample --- */

typedef struct {
    dlc_kernel *kernel;
    const samples *of;
    const uint8_t *is_outside; /* by buffer: it has all samples */
    dlc_expr sample;           /* which one it is */
} reading;

static uint32_t index_of_sample(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const reading *r = user;
    memcpy(result, index, rank * sizeof *index);
    if (!DLC_SOURCE_IS_STAGE(source) && r->is_outside[source])
        result[0] = dlc_add(r->kernel->pool, index[0], dlc_muli(r->kernel->pool, r->sample, r->of->points));
    return rank;
}

/* Buffers that `is_outside` names have all samples, and a symbol behind those of the kernel says which one is read. *left: the symbols that
 * the new kernel has. */
static dlc_kernel *make_kernel(const dlc_kernel *from, const samples *of, int64_t n, const uint8_t *is_outside, dlc_arena *arena, dlc_ids *left)
{
    dlc_kernel *kernel = dlc_kernel_clone(from, arena);
    reading r = {kernel, of, is_outside, 0};
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        if (is_outside[b] && !r.sample)
            r.sample = dlc_expr_sym(kernel->pool, dlc_kernel_symbol_add(kernel, "sample", 0, n - 1, 0));
        else if (of->is_one[b] && !is_outside[b])
            kernel->buffers.data[b].type.dims[0] = dlc_expr_i64(kernel->pool, of->points);
    }
    if (r.sample)
        dlc_kernel_reindex(kernel, &(dlc_reindex){.index = index_of_sample, .user = &r});
    kernel->axes.data[of->axis].extent = dlc_expr_i64(kernel->pool, of->points);
    dlc_lower_axes(kernel);
    dlc_lower_merge(kernel);
    *left = dlc_kernel_compact_left(kernel).symbols;
    return kernel;
}

/* --- which steps --- */

static int is_of_samples(const sampling *s, uint32_t value)
{
    const dlc_module_value *v = &s->module->values.data[value];
    int64_t size;
    int is_first = !v->layout.nparts || (v->layout.part[0].dim == 0 && v->layout.part[0].block == 1);
    return v->type.rank && is_first && !v->skip && v->role != DLC_VALUE_HOST && !dlc_is_text(v->type.dtype) &&
           dlc_expr_is_int(s->module->pool, v->type.dims[0], &size) && size % s->n == 0;
}

static void find_whole(sampling *s, uint32_t step)
{
    const dlc_step *launch = &s->module->steps.data[step];
    for (uint32_t v = 0; v < launch->nvalues; v++)
        if (!s->of[step].is_one[v] && s->nwriters[launch->values[v]] && s->writer[launch->values[v]] >= s->whole_from[step])
            s->whole_from[step] = s->writer[launch->values[v]] + 1;
}

static int can_be_sampled(const sampling *s, uint32_t step)
{
    const dlc_step *launch = &s->module->steps.data[step];
    const dlc_kernel *kernel = kernel_of(s, step);
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        uint32_t value = launch->values[b];
        if (s->of[step].is_one[b] && !is_of_samples(s, value))
            return 0;
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT && s->nwriters[value] != 1)
            return 0;
    }
    return 1;
}

/* Bytes of what there is a sample of (of all samples), and of the rest. */
static void count_bytes(const dlc_kernel *kernel, const samples *of, double *batch, double *shared)
{
    *batch = *shared = 0;
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &kernel->buffers.data[b];
        double bytes = dlc_dtype_bytes(buffer->type.dtype);
        int64_t size;
        for (uint32_t d = 0; d < buffer->type.rank; d++)
            bytes *= dlc_expr_is_int(kernel->pool, buffer->type.dims[d], &size) ? (double)size : DLC_NOMINAL_SYMBOL;
        *(of->is_one[b] ? batch : shared) += bytes;
    }
}

/* Bytes that the step writes of the model's outputs. */
static double output_bytes(const sampling *s, uint32_t step)
{
    const dlc_step *launch = &s->module->steps.data[step];
    double bytes = 0;
    int64_t size;
    for (uint32_t v = 0; v < launch->nvalues; v++)
        if (dlc_step_writes(s->module, launch, v) && s->module->values.data[launch->values[v]].role == DLC_VALUE_OUTPUT)
            bytes += dlc_expr_is_int(s->module->pool, dlc_module_value_bytes(s->module, launch->values[v]), &size) ? (double)size : 0;
    return bytes;
}

/* Bytes that threads share, read from where `whole` lie by then: each thread has its part in an L2 of its own. */
static double reading_us(const dlc_target *target, double bytes, double whole, double threads)
{
    const dlc_machine *machine = target->machine;
    double rate = machine->far_bytes_per_us;
    if (whole / threads <= target->l2_bytes)
        rate = machine->near_bytes_per_us;
    else if (machine->l3_bytes_per_us > 0 && whole <= dlc_estimate_kept_bytes(target))
        rate = machine->l3_bytes_per_us;
    return bytes / threads / rate;
}

/*
 * What moving takes, and what is saved of it where samples come one by one: these may stay in nearer caches. The rest is read once a sample,
 * outputs are copied to where all samples are, and as a whole, and threads meet behind each step of each sample.
 */
static void estimate(sampling *s, uint32_t step)
{
    enum { COPIED = 3 }; /* times that an output's bytes are read or written beside */
    const dlc_target *target = s->ctx->target;
    double batch, shared, n = (double)s->n, threads = fmax(1, target->machine->threads), outputs = output_bytes(s, step);
    count_bytes(kernel_of(s, step), &s->of[step], &batch, &shared);
    double shared_us = shared / target->machine->far_bytes_per_us / threads, batch_us = reading_us(target, batch, batch, threads);
    s->moving_us[step] = batch_us + shared_us;
    s->gain_us[step] = batch_us - reading_us(target, batch, batch / n, threads) - reading_us(target, COPIED * outputs, outputs, threads) -
                       (n - 1) * (shared_us + target->machine->step_us + threads * MEETING_US);
}

/* Steps [first, end). */
typedef struct {
    uint32_t first, end;
} stretch;

static int find_stretch(const sampling *s, stretch *best)
{
    double most = 0;
    int is_forced = s->ctx->rewrite != NULL;
    for (uint32_t first = 0; first < s->module->steps.n; first++) {
        double gain = 0, time = 0;
        for (uint32_t i = first; i < s->module->steps.n && s->of[i].points && s->whole_from[i] <= first; i++) {
            gain += is_forced ? 1 : s->gain_us[i];
            time += s->moving_us[i];
            if (i > first && gain > most && (is_forced || gain > WORTH * time)) {
                most = gain;
                *best = (stretch){first, i + 1};
            }
        }
    }
    return most > 0;
}

/* --- the loop --- */

typedef struct {
    sampling *s;
    stretch steps_of;
    uint32_t symbol;
    uint32_t *one;    /* by value: its one sample, or DLC_NO_VALUE */
    uint32_t *all;    /* by value that is read outside: where its samples are put together */
    uint8_t *is_read; /* by value: by steps outside, or the caller */
    dlc_vec(dlc_step) steps;
} looping;

/* By steps outside of the loop, or the caller. */
static void find_readers(looping *l)
{
    const dlc_module *module = l->s->module;
    for (uint32_t o = 0; o < module->outputs.n; o++)
        l->is_read[module->outputs.data[o].value] = 1;
    for (uint32_t i = 0; i < module->steps.n; i++)
        for (uint32_t v = 0; v < module->steps.data[i].nvalues; v++)
            if ((i < l->steps_of.first || i >= l->steps_of.end) && module->steps.data[i].values[v] != DLC_NO_VALUE)
                l->is_read[module->steps.data[i].values[v]] = 1;
}

static void add_mark(looping *l, dlc_step_kind kind, dlc_expr size)
{
    dlc_module *module = l->s->module;
    dlc_step step = {.kind = (uint8_t)kind, .symbol = kind == DLC_STEP_SET ? l->symbol : DLC_NO_SYMBOL, .size = size};
    const char *name = module->symbols.data[l->symbol].name;
    dlc_step_set_nodes(module, &step, &name, 1);
    dlc_vec_push(module->arena, &l->steps, step);
}

/* What is made of all samples in turn: one more value, where others ask for all of them; else the value is of one sample from now on. */
static uint32_t make_one(looping *l, uint32_t value)
{
    dlc_module *module = l->s->module;
    dlc_module_value one = module->values.data[value];
    one.type.dims[0] = dlc_expr_i64(module->pool, dlc_expr_value(module->pool, one.type.dims[0]) / l->s->n);
    if (!l->is_read[value]) {
        module->values.data[value].type = one.type;
        return value;
    }
    one.name = dlc_arena_printf(module->arena, "%s.one", one.name);
    one.role = DLC_VALUE_TEMP;
    one.index = 0;
    one.origin = DLC_NO_VALUE;
    return dlc_module_add_value(module, &one);
}

static void add_launch(looping *l, uint32_t at)
{
    dlc_module *module = l->s->module;
    const dlc_step *made = &module->steps.data[at];
    dlc_step step = *made;
    dlc_ids left;
    const dlc_kernel *kernel = kernel_of(l->s, at);
    const samples *of = &l->s->of[at];
    uint8_t *is_outside = dlc_new_array(l->s->ctx->scratch, uint8_t, kernel->buffers.n + 1);
    step.values = dlc_arena_copy(module->arena, step.values, step.nvalues * sizeof *step.values);
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        uint32_t *value = &step.values[b];
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT)
            l->one[*value] = make_one(l, *value);
        is_outside[b] = of->is_one[b] && l->one[*value] == DLC_NO_VALUE;
        *value = of->is_one[b] && !is_outside[b] ? l->one[*value] : *value;
    }
    step.kernel = dlc_module_add_kernel(module, make_kernel(kernel, of, l->s->n, is_outside, module->arena, &left));
    step.nsymbols = left.n;
    step.symbols = dlc_new_array(module->arena, dlc_expr, left.n + 1);
    dlc_expr last = dlc_expr_i64(module->pool, l->s->n - 1); /* behind the last iteration the loop's symbol says one more */
    for (uint32_t i = 0; i < left.n; i++)
        step.symbols[i] = left.data[i] < made->nsymbols ? made->symbols[left.data[i]]
                                                        : dlc_min(module->pool, dlc_expr_sym(module->pool, l->symbol), last);
    dlc_vec_push(module->arena, &l->steps, step);
}

static void add_copy(looping *l, const dlc_step *made, uint32_t from, uint32_t to, dlc_expr at)
{
    dlc_module *module = l->s->module;
    dlc_step step = {.kind = DLC_STEP_COPY, .symbol = DLC_NO_SYMBOL, .nvalues = 2, .size = at};
    step.values = dlc_new_array(module->arena, uint32_t, 2);
    step.values[0] = from, step.values[1] = to;
    dlc_step_set_nodes(module, &step, made->nodes, made->nnodes);
    dlc_vec_push(module->arena, &l->steps, step);
}

/* Where all samples come to lie: an output of the model is copied as a whole. */
static uint32_t all_of(looping *l, uint32_t value)
{
    dlc_module_value all = l->s->module->values.data[value];
    if (all.role == DLC_VALUE_TEMP)
        return value;
    all.name = dlc_arena_printf(l->s->module->arena, "%s.all", all.name);
    all.role = DLC_VALUE_TEMP;
    all.index = 0;
    return dlc_module_add_value(l->s->module, &all);
}

/* What is read outside of the loop is put where all samples are. */
static void add_copies(looping *l, uint32_t at)
{
    dlc_pool *pool = l->s->module->pool;
    const dlc_step *made = &l->s->module->steps.data[at];
    for (uint32_t v = 0; v < made->nvalues; v++) {
        uint32_t value = made->values[v];
        if (!dlc_step_writes(l->s->module, made, v) || !l->is_read[value])
            continue;
        l->all[value] = all_of(l, value);
        dlc_expr row = dlc_module_value_bytes(l->s->module, l->one[value]);
        add_copy(l, made, l->one[value], l->all[value], dlc_mul(pool, dlc_expr_sym(pool, l->symbol), row));
    }
}

static void add_outputs(looping *l)
{
    for (uint32_t i = l->steps_of.first; i < l->steps_of.end; i++) {
        const dlc_step *made = &l->s->module->steps.data[i];
        for (uint32_t v = 0; v < made->nvalues; v++) {
            uint32_t value = made->values[v];
            if (dlc_step_writes(l->s->module, made, v) && l->is_read[value] && l->all[value] != value)
                add_copy(l, made, l->all[value], value, 0);
        }
    }
}

static uint32_t add_symbol(dlc_module *module, int64_t n)
{
    dlc_module_symbol symbol = {.name = "sample", .hi = n, .bind = DLC_BIND_OPAQUE};
    for (uint32_t i = 0; i < module->symbols.n; i++)
        if (!strcmp(module->symbols.data[i].name, symbol.name))
            symbol.name = dlc_arena_printf(module->arena, "sample_%u", module->symbols.n);
    dlc_vec_push(module->arena, &module->symbols, symbol);
    return module->symbols.n - 1;
}

static void make_loop(sampling *s, stretch at)
{
    dlc_module *module = s->module;
    looping l = {.s = s, .steps_of = at, .symbol = add_symbol(module, s->n)};
    dlc_expr count = dlc_expr_sym(module->pool, l.symbol);
    l.one = dlc_new_array(s->ctx->scratch, uint32_t, module->values.n);
    l.all = dlc_new_array(s->ctx->scratch, uint32_t, module->values.n);
    l.is_read = dlc_new_array(s->ctx->scratch, uint8_t, module->values.n);
    memset(l.one, 0xff, module->values.n * sizeof *l.one);
    find_readers(&l);
    for (uint32_t i = 0; i < at.first; i++)
        dlc_vec_push(module->arena, &l.steps, module->steps.data[i]);
    add_mark(&l, DLC_STEP_SET, dlc_expr_i64(module->pool, 0));
    add_mark(&l, DLC_STEP_LOOP, dlc_lt(module->pool, count, dlc_expr_i64(module->pool, s->n)));
    for (uint32_t i = at.first; i < at.end; i++) {
        add_launch(&l, i);
        add_copies(&l, i);
    }
    add_mark(&l, DLC_STEP_SET, dlc_addi(module->pool, count, 1));
    add_mark(&l, DLC_STEP_END, 0);
    add_outputs(&l);
    for (uint32_t i = at.end; i < module->steps.n; i++)
        dlc_vec_push(module->arena, &l.steps, module->steps.data[i]);
    module->steps.data = l.steps.data;
    module->steps.n = l.steps.n;
    module->steps.cap = l.steps.cap;
}

/* --- the pass --- */

static void find_writers(sampling *s)
{
    s->nwriters = dlc_new_array(s->ctx->scratch, uint32_t, s->module->values.n + 1);
    s->writer = dlc_new_array(s->ctx->scratch, uint32_t, s->module->values.n + 1);
    for (uint32_t i = 0; i < s->module->steps.n; i++) {
        const dlc_step *step = &s->module->steps.data[i];
        for (uint32_t v = 0; v < step->nvalues; v++)
            if (step->values[v] != DLC_NO_VALUE && dlc_step_writes(s->module, step, v)) {
                s->nwriters[step->values[v]]++;
                s->writer[step->values[v]] = i;
            }
    }
}

static int sample_steps(dlc_pass_ctx *ctx, int64_t n)
{
    sampling s = {.ctx = ctx, .module = ctx->module, .n = n};
    uint32_t nsteps = ctx->module->steps.n;
    stretch best = {0};
    s.of = dlc_new_array(ctx->scratch, samples, nsteps + 1);
    s.moving_us = dlc_new_array(ctx->scratch, double, nsteps + 1);
    s.gain_us = dlc_new_array(ctx->scratch, double, nsteps + 1);
    s.whole_from = dlc_new_array(ctx->scratch, uint32_t, nsteps + 1);
    find_writers(&s);
    for (uint32_t i = 0; i < nsteps; i++) {
        if (ctx->module->steps.data[i].kind != DLC_STEP_LAUNCH)
            continue;
        s.of[i] = find_samples(kernel_of(&s, i), n, ctx->scratch);
        if (s.of[i].points && !can_be_sampled(&s, i))
            s.of[i].points = 0;
        if (!s.of[i].points)
            continue;
        find_whole(&s, i);
        estimate(&s, i);
    }
    if (!find_stretch(&s, &best))
        return 0;
    make_loop(&s, best);
    return 1;
}

/* How many samples an input brings, as far as the module says; behind those already tried. */
static int64_t next_count(const dlc_module *module, int64_t tried)
{
    int64_t next = INT64_MAX, size;
    for (uint32_t i = 0; i < module->inputs.n; i++) {
        const dlc_module_value *input = &module->values.data[module->inputs.data[i]];
        if (input->type.rank && dlc_expr_is_int(module->pool, input->type.dims[0], &size) && size > tried && size < next)
            next = size;
    }
    return next;
}

static int has_regions(const dlc_module *module)
{
    for (uint32_t i = 0; i < module->steps.n; i++)
        if (module->steps.data[i].kind >= DLC_STEP_IF)
            return 1;
    return 0;
}

/* The least number of samples that they are asked to be taken one by one for; 0: where it pays; negative: never. */
static int64_t least_asked(const char *rewrite)
{
    size_t n = strlen(DLC_REWRITE_SAMPLES "=");
    return !rewrite ? 0 : strncmp(rewrite, DLC_REWRITE_SAMPLES "=", n) ? -1 : strtoll(rewrite + n, NULL, 10);
}

dlc_status dlc_pass_samples(dlc_pass_ctx *ctx)
{
    int64_t least = least_asked(ctx->rewrite);
    int is_done = 0;
    if (ctx->target->kind != DLC_TARGET_CPU || has_regions(ctx->module) || least < 0)
        return DLC_OK;
    for (int64_t n = least > 1 ? least - 1 : 1; (n = next_count(ctx->module, n)) != INT64_MAX && !is_done;)
        is_done = sample_steps(ctx, n);
    if (is_done)
        dlc_module_drop_kernels(ctx->module);
    ctx->changes += (uint32_t)is_done;
    return DLC_OK;
}

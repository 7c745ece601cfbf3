/*
 * Samples: kernels that treat each sample of a batch by itself run for one sample after the other, all of them for the first before any for
 * the second. What they hand to each other is of one sample then, and stays in the caches, where a batch of it does not fit; and where only
 * the run knows how many samples there are, these kernels' sizes are known all the same.
 *
 *     launch a (%x: [8,…]) -> (%v: [8,…])           loop s < 8
 *     launch b (%v) -> (%y: [8,…])             ->     launch a1 (%x1: [1,…] in %x at s) -> (%v: [1,…])
 *                                                     launch b1 (%v) -> (%y1: [1,…] in %y at s)
 *                                                   end
 *
 * Nothing is assumed of what a batch is: kernels' equations say it. One axis indexes the first dimension of what they write, and of some of
 * what they read, and nothing else; it may have several points a sample, as rows of pixels do. Weights are read once a sample, so those steps
 * go by samples for which that costs less than is saved: bytes come from a nearer cache, and sizes are known.
 */
#include "ir/kernel/algebra.h"
#include "passes/fuse/fuse.h"
#include "passes/lower/lower.h"
#include "passes/rewrite/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORTH 0.2      /* of what moving takes: less is not worth a loop */
#define KNOWN 0.1       /* of a kernel's time: twice what it is faster by where its sizes are known (.01 to .11 of models): with one sample nothing is lost for it */
#define MEETING_US 0.7 /* for each thread: what waits for the others at the end of a step */

enum { MANY = 8 }; /* samples, where only the run knows how many, and one is usual: that takes no longer by itself */

/* How a kernel goes over samples. */
typedef struct {
    uint32_t axis;
    int is_sampled;  /* else it does not go over samples one by one */
    uint8_t *is_one; /* by buffer: its first dimension is samples */
} samples;

typedef struct {
    dlc_pass_ctx *ctx;
    dlc_module *module;
    dlc_expr n;       /* samples: a number, or a symbol of the module */
    int64_t count;    /* as far as estimates go */
    samples *of;      /* by step */
    double *moving_us, *gain_us; /* by step; what is saved of that */
    uint32_t *whole_from;        /* by step: from where on what it reads as a whole is there */
    uint32_t *nwriters, *writer; /* by value: steps; the last that writes it */
} sampling;

static const dlc_kernel *kernel_of(const sampling *s, uint32_t step)
{
    return s->module->kernels.data[s->module->steps.data[step].kernel].kernel;
}

/* --- how many --- */

/* The kernel's symbol for how many samples there are; DLC_NO_SYMBOL: it has none. */
static uint32_t symbol_of(const sampling *s, uint32_t step)
{
    const dlc_step *launch = &s->module->steps.data[step];
    int64_t known;
    for (uint32_t i = 0; i < launch->nsymbols; i++)
        if (launch->symbols[i] == s->n && !dlc_expr_is_int(s->module->pool, s->n, &known))
            return i;
    return DLC_NO_SYMBOL;
}

/* As the kernel has it, or a copy of it. 0: it does not depend on how many there are. */
static dlc_expr count_in(const sampling *s, uint32_t step, dlc_kernel *kernel)
{
    uint32_t symbol = symbol_of(s, step);
    int64_t known;
    if (symbol != DLC_NO_SYMBOL)
        return dlc_expr_sym(kernel->pool, symbol);
    return dlc_expr_is_int(s->module->pool, s->n, &known) ? dlc_expr_i64(kernel->pool, known) : 0;
}

static dlc_expr count_as_one(void *user, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    (void)args;
    return node->op == DLC_EXPR_SYM && node->imm.id == *(const uint32_t *)user ? dlc_expr_i64(to, 1) : 0;
}

/* The n-th part of a size, which one sample has; 0: there is none. */
static dlc_expr part_of(dlc_pool *pool, dlc_expr size, dlc_expr n)
{
    const dlc_expr_node *node = dlc_node_of(pool, n);
    uint32_t symbol = (uint32_t)node->imm.id;
    dlc_expr part = node->op == DLC_EXPR_SYM ? dlc_expr_rewrite(pool, pool, size, count_as_one, &symbol) : dlc_floordiv(pool, size, n);
    return dlc_mul(pool, part, n) == size ? part : 0;
}

/* --- kernels --- */

/* The axis that all results have first. */
static int find_axis(dlc_kernel *kernel, dlc_expr n, samples *of)
{
    of->axis = DLC_NO_AXIS;
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const dlc_stage *stage = &kernel->stages.data[i];
        if (stage->update != DLC_UPDATE_NONE)
            return 0;
        if (stage->buffer == DLC_NO_BUFFER)
            continue;
        const dlc_buffer *buffer = &kernel->buffers.data[stage->buffer];
        uint32_t axis = stage->store.n ? dlc_bare_axis(kernel->pool, stage->store.data[0]) : DLC_NO_AXIS;
        if (axis == DLC_NO_AXIS || (of->axis != DLC_NO_AXIS && axis != of->axis) ||
            buffer->type.dims[0] != kernel->axes.data[axis].extent || buffer->layout.nparts || buffer->is_part)
            return 0;
        of->axis = axis;
        of->is_one[stage->buffer] = 1;
    }
    return of->axis != DLC_NO_AXIS && part_of(kernel->pool, kernel->axes.data[of->axis].extent, n);
}

/* Of a load: the position of the samples' index; the rank: it has none. */
static uint32_t position_in(const dlc_kernel *kernel, dlc_expr load, const samples *of)
{
    const dlc_expr_node *node = dlc_node_of(kernel->pool, load);
    uint32_t rank = dlc_load_rank(kernel->pool, load), at;
    if (DLC_SOURCE_IS_STAGE(node->imm.id))
        return dlc_ids_find(&kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)].axes, of->axis, &at) ? at : rank;
    const dlc_buffer *buffer = &kernel->buffers.data[node->imm.id];
    int is_first = rank && dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, load, 0)) == of->axis && !buffer->layout.nparts;
    return is_first && buffer->type.dims[0] == kernel->axes.data[of->axis].extent ? 0 : rank;
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

/* Something besides the samples' axis, and first dimensions that go by it, is of a size that depends on how many there are. */
static int depends_on_count(const dlc_kernel *kernel, const samples *of, dlc_expr n, uint8_t *marks)
{
    dlc_pool *pool = kernel->pool;
    if (dlc_node_of(pool, n)->op != DLC_EXPR_SYM)
        return 0;
    for (uint32_t a = 0; a < kernel->axes.n; a++)
        if (a != of->axis)
            dlc_expr_reach(pool, kernel->axes.data[a].extent, marks);
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        for (uint32_t d = of->is_one[b]; d < kernel->buffers.data[b].type.rank; d++)
            dlc_expr_reach(pool, kernel->buffers.data[b].type.dims[d], marks);
    return marks[n];
}

static samples find_samples(const sampling *s, uint32_t step)
{
    dlc_arena *arena = s->ctx->scratch;
    dlc_kernel *kernel = dlc_kernel_clone(kernel_of(s, step), arena); /* its pool grows */
    samples of = {.is_one = dlc_new_array(arena, uint8_t, kernel->buffers.n + 1)}, none = {0};
    uint8_t *is_whole = dlc_new_array(arena, uint8_t, kernel->buffers.n + 1);
    dlc_expr n = count_in(s, step, kernel);
    if (!n || !find_axis(kernel, n, &of))
        return none;
    uint8_t *marks = dlc_kernel_marks(kernel, arena);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        if (!stage_is_by_samples(kernel, &kernel->stages.data[i], &of))
            return none;
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++)
        if (marks[id] && !is_by_samples(kernel, id, &of, is_whole))
            return none;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (of.is_one[b] && is_whole[b])
            return none;
    of.is_sampled = !depends_on_count(kernel, &of, n, marks);
    return of;
}

/* *left: the symbols that the kernel of one sample has. */
static dlc_kernel *make_kernel(const sampling *s, uint32_t step, dlc_arena *arena, dlc_ids *left)
{
    dlc_kernel *kernel = dlc_kernel_clone(kernel_of(s, step), arena);
    const samples *of = &s->of[step];
    dlc_expr one = part_of(kernel->pool, kernel->axes.data[of->axis].extent, count_in(s, step, kernel));
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (of->is_one[b])
            kernel->buffers.data[b].type.dims[0] = one;
    kernel->axes.data[of->axis].extent = one;
    dlc_lower_axes(kernel);
    dlc_lower_merge(kernel);
    *left = dlc_kernel_compact_left(kernel).symbols;
    return kernel;
}

/* --- which steps --- */

/* Constants are nobody's place. */
static int is_of_samples(const sampling *s, uint32_t value)
{
    const dlc_module_value *v = &s->module->values.data[value];
    int is_first = !v->layout.nparts || (v->layout.part[0].dim == 0 && v->layout.part[0].block == 1);
    return v->type.rank && is_first && !v->skip && v->role != DLC_VALUE_HOST && v->role != DLC_VALUE_CONST && !dlc_is_text(v->type.dtype) &&
           part_of(s->module->pool, v->type.dims[0], s->n);
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
static void count_bytes(const sampling *s, uint32_t step, double *batch, double *shared)
{
    const dlc_kernel *kernel = kernel_of(s, step);
    int64_t *symbols = dlc_kernel_usual_values(kernel, DLC_NOMINAL_SYMBOL, s->ctx->scratch);
    uint32_t count = symbol_of(s, step);
    if (count != DLC_NO_SYMBOL)
        symbols[count] = s->count;
    *batch = *shared = 0;
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &kernel->buffers.data[b];
        double bytes = dlc_dtype_bytes(buffer->type.dtype);
        for (uint32_t d = 0; d < buffer->type.rank; d++)
            bytes *= (double)dlc_expr_eval(kernel->pool, buffer->type.dims[d], symbols);
        *(s->of[step].is_one[b] ? batch : shared) += bytes;
    }
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

/* Of a machine that nobody knows one is what all have. */
static double threads_of(const dlc_target *target)
{
    return fmax(1, target->machine->threads);
}

/* What all samples take less where the run alone knows how many there are, for kernels of one do not depend on that. */
static double known_us(const sampling *s, uint32_t step)
{
    dlc_arena *scratch = s->ctx->scratch;
    dlc_estimate estimate = {0};
    dlc_schedule *schedule;
    dlc_ids left;
    if (dlc_node_of(s->module->pool, s->n)->op != DLC_EXPR_SYM)
        return 0;
    dlc_mark mark = dlc_arena_mark(scratch);
    dlc_kernel *kernel = make_kernel(s, step, scratch, &left);
    if (dlc_choose(kernel, s->ctx->target, scratch, &schedule, NULL) == DLC_REASON_NONE)
        dlc_estimate_kernel(schedule, scratch, &estimate);
    dlc_arena_release(scratch, mark);
    return KNOWN * (double)s->count * estimate.time_us / threads_of(s->ctx->target);
}

/* What moving takes, and what is saved of it where samples come one by one: these may stay in nearer caches. The rest is read once a sample, and
 * threads meet behind each step of each sample. */
static void estimate(sampling *s, uint32_t step)
{
    const dlc_target *target = s->ctx->target;
    double batch, shared, n = (double)s->count, threads = threads_of(target);
    count_bytes(s, step, &batch, &shared);
    double shared_us = shared / target->machine->far_bytes_per_us / threads, batch_us = reading_us(target, batch, batch, threads);
    s->moving_us[step] = batch_us + shared_us;
    s->gain_us[step] = batch_us - reading_us(target, batch, batch / n, threads) -
                       (n - 1) * (shared_us + target->machine->step_us + threads * MEETING_US) + known_us(s, step);
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
        for (uint32_t i = first; i < s->module->steps.n && s->of[i].is_sampled && s->whole_from[i] <= first; i++) {
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
    uint32_t done, sample; /* symbols: how many, and which one is next; which one it is */
    uint32_t *one;         /* by value: its one sample, or DLC_NO_VALUE */
    uint8_t *is_read;      /* by value: by steps outside, or the caller */
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

static void add_mark(looping *l, dlc_step_kind kind, uint32_t symbol, dlc_expr size)
{
    dlc_module *module = l->s->module;
    dlc_step step = {.kind = (uint8_t)kind, .symbol = symbol, .size = size};
    const char *name = module->symbols.data[symbol == DLC_NO_SYMBOL ? l->sample : symbol].name;
    dlc_step_set_nodes(module, &step, &name, 1);
    dlc_vec_push(module->arena, &l->steps, step);
}

/* Its one sample. What the loop makes for itself is of one from now on; else that lies where all of them do. */
static uint32_t one_of(looping *l, uint32_t value, int is_made)
{
    dlc_module *module = l->s->module;
    dlc_module_value one = module->values.data[value];
    if (l->one[value] != DLC_NO_VALUE)
        return l->one[value];
    one.type.dims[0] = part_of(module->pool, one.type.dims[0], l->s->n);
    if (is_made && !l->is_read[value]) {
        module->values.data[value].type = one.type;
        return l->one[value] = value;
    }
    one.name = dlc_arena_printf(module->arena, "%s.one", one.name);
    one.role = DLC_VALUE_TEMP;
    one.index = 0;
    one.origin = DLC_NO_VALUE;
    l->one[value] = dlc_module_add_value(module, &one);
    dlc_expr bytes = dlc_module_value_bytes(module, l->one[value]);
    dlc_module_value *made = dlc_module_value_of(module, l->one[value]);
    made->whole = value;
    made->skip = dlc_mul(module->pool, dlc_expr_sym(module->pool, l->sample), bytes);
    return l->one[value];
}

static void add_launch(looping *l, uint32_t at)
{
    dlc_module *module = l->s->module;
    dlc_step step = module->steps.data[at];
    const dlc_expr *symbols = step.symbols;
    dlc_ids left;
    const dlc_kernel *kernel = kernel_of(l->s, at);
    step.values = dlc_arena_copy(module->arena, step.values, step.nvalues * sizeof *step.values);
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (l->s->of[at].is_one[b])
            step.values[b] = one_of(l, step.values[b], kernel->buffers.data[b].role == DLC_ROLE_OUT);
    step.kernel = dlc_module_add_kernel(module, make_kernel(l->s, at, module->arena, &left));
    step.nsymbols = left.n;
    step.symbols = dlc_new_array(module->arena, dlc_expr, left.n + 1);
    for (uint32_t i = 0; i < left.n; i++)
        step.symbols[i] = symbols[left.data[i]];
    dlc_vec_push(module->arena, &l->steps, step);
}

static uint32_t add_symbol(dlc_module *module, const char *name, int64_t hi)
{
    dlc_module_symbol symbol = {.name = name, .hi = hi, .bind = DLC_BIND_OPAQUE};
    for (uint32_t i = 0; i < module->symbols.n; i++)
        if (!strcmp(module->symbols.data[i].name, name))
            symbol.name = dlc_arena_printf(module->arena, "%s_%u", name, module->symbols.n);
    dlc_vec_push(module->arena, &module->symbols, symbol);
    return module->symbols.n - 1;
}

static void make_loop(sampling *s, stretch at)
{
    dlc_module *module = s->module;
    dlc_ranges ranges = dlc_module_ranges(module);
    int64_t most = dlc_expr_range(module->pool, s->n, &ranges).hi;
    looping l = {.s = s, .steps_of = at};
    l.done = add_symbol(module, "samples_done", most);
    l.sample = add_symbol(module, "sample", most > 1 ? most - 1 : 0);
    dlc_expr done = dlc_expr_sym(module->pool, l.done);
    l.one = dlc_new_array(s->ctx->scratch, uint32_t, module->values.n);
    l.is_read = dlc_new_array(s->ctx->scratch, uint8_t, module->values.n);
    memset(l.one, 0xff, module->values.n * sizeof *l.one);
    find_readers(&l);
    for (uint32_t i = 0; i < at.first; i++)
        dlc_vec_push(module->arena, &l.steps, module->steps.data[i]);
    add_mark(&l, DLC_STEP_SET, l.done, dlc_expr_i64(module->pool, 0));
    add_mark(&l, DLC_STEP_LOOP, DLC_NO_SYMBOL, dlc_lt(module->pool, done, s->n));
    add_mark(&l, DLC_STEP_SET, l.sample, done); /* which is one that there is, also behind the last iteration */
    for (uint32_t i = at.first; i < at.end; i++)
        add_launch(&l, i);
    add_mark(&l, DLC_STEP_SET, l.done, dlc_addi(module->pool, done, 1));
    add_mark(&l, DLC_STEP_END, DLC_NO_SYMBOL, 0);
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

static int sample_steps(dlc_pass_ctx *ctx, dlc_expr n)
{
    const dlc_expr_node *node = dlc_node_of(ctx->module->pool, n);
    int64_t usual = node->op == DLC_EXPR_SYM ? ctx->module->symbols.data[node->imm.id].usual : 0;
    sampling s = {.ctx = ctx, .module = ctx->module, .n = n, .count = usual > 1 ? usual : MANY};
    uint32_t nsteps = ctx->module->steps.n;
    stretch best = {0};
    s.of = dlc_new_array(ctx->scratch, samples, nsteps + 1);
    s.moving_us = dlc_new_array(ctx->scratch, double, nsteps + 1);
    s.gain_us = dlc_new_array(ctx->scratch, double, nsteps + 1);
    s.whole_from = dlc_new_array(ctx->scratch, uint32_t, nsteps + 1);
    (void)dlc_expr_is_int(ctx->module->pool, n, &s.count);
    find_writers(&s);
    for (uint32_t i = 0; i < nsteps; i++) {
        if (ctx->module->steps.data[i].kind != DLC_STEP_LAUNCH)
            continue;
        s.of[i] = find_samples(&s, i);
        s.of[i].is_sampled = s.of[i].is_sampled && can_be_sampled(&s, i);
        if (!s.of[i].is_sampled)
            continue;
        find_whole(&s, i);
        estimate(&s, i);
    }
    if (!find_stretch(&s, &best))
        return 0;
    make_loop(&s, best);
    return 1;
}

/* How many samples an input may bring, where that may be more than one: a number, or a symbol. 0: it has none. */
static dlc_expr count_of(const dlc_module *module, uint32_t input, int64_t least)
{
    const dlc_module_value *value = &module->values.data[module->inputs.data[input]];
    dlc_expr size = value->type.rank ? value->type.dims[0] : 0;
    int64_t known;
    if (!size || (!dlc_expr_is_int(module->pool, size, &known) && dlc_node_of(module->pool, size)->op != DLC_EXPR_SYM))
        return 0;
    return dlc_expr_is_int(module->pool, size, &known) && (known < 2 || known < least) ? 0 : size;
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
    for (uint32_t i = 0; i < ctx->module->inputs.n && !is_done; i++) {
        dlc_expr n = count_of(ctx->module, i, least);
        for (uint32_t before = 0; n && before < i; before++)
            n = count_of(ctx->module, before, least) == n ? 0 : n;
        is_done = n && sample_steps(ctx, n);
    }
    if (is_done)
        dlc_module_drop_kernels(ctx->module);
    ctx->changes += (uint32_t)is_done;
    return DLC_OK;
}

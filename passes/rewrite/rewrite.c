/*
 * The pass over rewrites.def. Kernels are shared by steps, so a kernel is rewritten once and each of its launches becomes
 * launches of the new ones, with values of its own between them.
 */
#include "passes/rewrite/rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "ir/interp/interp.h"
#include "ir/kernel/algebra.h"
#include "passes/fuse/fuse.h"

const dlc_rewrite_info dlc_rewrites[] = {
#define DLC_REWRITE(id, name, function, round, by_itself, help) {name, dlc_rewrite_##function, round, DLC_BY_ITSELF_##by_itself, help},
#include "passes/rewrite/rewrites.def"
#undef DLC_REWRITE
};
const uint32_t dlc_nrewrites = sizeof dlc_rewrites / sizeof *dlc_rewrites;

/* --- what was asked for --- */

typedef struct {
    const char *only; /* the name of a row; NULL: all, where they pay */
    int64_t wanted;
    int64_t winograd, winograd_whole;
    int matrix;
} request;

/* What `auto` allows: see docs/numerics.md. */
enum { AUTO_WINOGRAD = 2, AUTO_WHOLE = 4 };

static dlc_status read_winograd(dlc_pass_ctx *ctx, request *r)
{
    static const struct {
        const char *text;
        int64_t most, whole;
    } values[] = {{"auto", AUTO_WINOGRAD, AUTO_WHOLE}, {"off", 0, 0}, {"2", 2, 2}, {"4", 4, 4}};
    const char *text = ctx->winograd ? ctx->winograd : values[0].text;
    for (uint32_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!strcmp(values[i].text, text)) {
            r->winograd = values[i].most;
            r->winograd_whole = values[i].whole;
            return DLC_OK;
        }
    return dlc_diag_fail(ctx->diag, DLC_USAGE, NULL, "winograd '%s' is none of auto, off, 2 and 4", text);
}

/* Matrix units are shared and throttled: the same one was seen at a third of its rate, where vectors are the faster. So by itself one is
 * used for f32 only where it was measured. */
static dlc_status read_matrix(dlc_pass_ctx *ctx, request *r)
{
    const char *text = ctx->matrix ? ctx->matrix : "auto";
    int is_auto = !strcmp(text, "auto");
    r->matrix = is_auto ? dlc_dot_rate(ctx->target, DLC_DOT_BF16X3) > 0 : !strcmp(text, "on");
    if (r->matrix || is_auto || !strcmp(text, "off"))
        return DLC_OK;
    return dlc_diag_fail(ctx->diag, DLC_USAGE, NULL, "matrix '%s' is none of auto, on and off", text);
}

static int is_named(const char *name, const char *text, size_t n)
{
    return strlen(name) == n && !memcmp(name, text, n);
}

/* "=N" */
static int reads_number(const char *text, int64_t *wanted)
{
    char *end = NULL;
    *wanted = *text ? strtoll(text + 1, &end, 10) : 0;
    return *text && end > text + 1 && !*end && *wanted > 1;
}

/* "none", or NAME=N. */
static dlc_status read_request(dlc_pass_ctx *ctx, request *r)
{
    const char *text = ctx->rewrite;
    *r = (request){0};
    DLC_TRY(read_winograd(ctx, r));
    DLC_TRY(read_matrix(ctx, r));
    if (!text || !strcmp(text, "none")) {
        r->only = text;
        return DLC_OK;
    }
    size_t n = strcspn(text, "=");
    dlc_str names = {0};
    dlc_str_printf(&names, ", %s=N", DLC_REWRITE_SAMPLES);
    if (is_named(DLC_REWRITE_SAMPLES, text, n) && reads_number(text + n, &r->wanted))
        r->only = DLC_REWRITE_SAMPLES; /* another pass's (samples.c) */
    for (uint32_t i = 0; i < dlc_nrewrites; i++) {
        dlc_str_printf(&names, ", %s=N", dlc_rewrites[i].name);
        if (is_named(dlc_rewrites[i].name, text, n) && reads_number(text + n, &r->wanted))
            r->only = dlc_rewrites[i].name;
    }
    dlc_status status = r->only ? DLC_OK
                                : dlc_diag_fail(ctx->diag, DLC_USAGE, NULL,
                                                "there is no rewrite '%s'; there are none%s with a number of at least 2", text,
                                                dlc_str_text(&names));
    dlc_str_deinit(&names);
    return status;
}

/* The row is asked for, or is taken by itself for this target. */
static int is_tried(const dlc_rewrite_info *row, const request *r, const dlc_target *target)
{
    if (r->only)
        return !strcmp(r->only, row->name);
    return row->by_itself == DLC_BY_ITSELF_ANY || target->kind == DLC_TARGET_CPU;
}

/* The first that applies; where it says what it leaves of the time, those behind it that do so, too, may leave less. */
static void find_rewrite(dlc_pass_ctx *ctx, const request *r, int round, uint32_t number, dlc_rewritten *out)
{
    dlc_rewriting in = {ctx->module->kernels.data[number].kernel, ctx->target, r->wanted, r->winograd, r->winograd_whole, r->matrix, ctx->module, number,
                        dlc_is_bf16_asked(ctx), ctx->module->arena, ctx->scratch};
    int is_found = 0;
    *out = (dlc_rewritten){0};
    for (uint32_t i = 0; i < dlc_nrewrites; i++) {
        dlc_rewritten tried = {0};
        if (dlc_rewrites[i].round != round || !is_tried(&dlc_rewrites[i], r, ctx->target) || !dlc_rewrites[i].run(&in, &tried) ||
            (is_found && (tried.left == 0 || tried.left >= out->left)))
            continue;
        *out = tried;
        is_found = 1;
        if (out->left == 0)
            break;
    }
}

/* --- steps --- */

typedef struct {
    dlc_module *module;
    const dlc_step *step;         /* the launch that is replaced */
    const dlc_rewrite_part *part; /* the new kernel */
} launching;

static dlc_expr outer_size(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const launching *l = ctx;
    (void)to, (void)args;
    return node->op == DLC_EXPR_SYM ? l->step->symbols[l->part->symbols.data[node->imm.id]] : 0;
}

/* The value behind a buffer that a part writes for later ones. */
static uint32_t make_value(launching *l, const char *name, const dlc_buffer *buffer)
{
    dlc_module_value value = {.name = name, .type = buffer->type, .layout = buffer->layout, .origin = DLC_NO_VALUE};
    for (uint32_t d = 0; d < buffer->type.rank; d++)
        value.type.dims[d] =
            dlc_expr_rewrite(l->module->pool, l->part->kernel->pool, buffer->type.dims[d], outer_size, l);
    return dlc_module_add_value(l->module, &value);
}

/* By buffer of the part: what it is in the step; DLC_NO_VALUE what the part makes. */
static uint32_t *find_values(const launching *l, const uint32_t *made)
{
    const dlc_kernel *kernel = l->part->kernel;
    uint32_t *values = dlc_new_array(l->module->arena, uint32_t, kernel->buffers.n + 1);
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        uint32_t from = l->part->buffers.data[b];
        values[b] = from & DLC_REWRITE_MADE ? made[from & ~DLC_REWRITE_MADE] : l->step->values[from];
    }
    return values;
}

/* What the part makes is what an equal step has made (NULL: there is none), or new. */
static void make_values(launching *l, const dlc_rewritten *rewritten, const dlc_step *equal, uint32_t *values, uint32_t *made)
{
    const dlc_kernel *kernel = l->part->kernel;
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        uint32_t number = l->part->buffers.data[b] & ~DLC_REWRITE_MADE;
        if (values[b] == DLC_NO_VALUE)
            values[b] = made[number] = equal ? equal->values[b] : make_value(l, rewritten->made.data[number], &kernel->buffers.data[b]);
    }
}

static dlc_step part_step(launching *l, uint32_t *values)
{
    dlc_step step = *l->step;
    step.kernel = dlc_module_add_kernel(l->module, l->part->kernel);
    step.nvalues = l->part->kernel->buffers.n;
    step.values = values;
    step.nsymbols = l->part->kernel->symbols.n;
    step.symbols = dlc_new_array(l->module->arena, dlc_expr, step.nsymbols + 1);
    for (uint32_t s = 0; s < step.nsymbols; s++)
        step.symbols[s] = l->step->symbols[l->part->symbols.data[s]];
    return step;
}

/* --- what is there already --- */

typedef dlc_vec(dlc_step) step_list;

static int is_equal(const dlc_step *a, const dlc_step *b)
{
    if (a->kernel != b->kernel || a->nvalues != b->nvalues || a->nsymbols != b->nsymbols)
        return 0;
    for (uint32_t v = 0; v < a->nvalues; v++)
        if (b->values[v] != DLC_NO_VALUE && a->values[v] != b->values[v])
            return 0;
    for (uint32_t s = 0; s < a->nsymbols; s++)
        if (a->symbols[s] != b->symbols[s])
            return 0;
    return 1;
}

/* `step` changes something that `reader` reads. */
static int is_in_the_way(const dlc_module *module, const dlc_step *step, const dlc_step *reader)
{
    for (uint32_t i = 0; i < step->nvalues; i++)
        for (uint32_t v = 0; v < reader->nvalues && dlc_step_writes(module, step, i); v++) {
            const dlc_module_value *written = &module->values.data[step->values[i]];
            if (step->values[i] == reader->values[v] || (written->skip && written->whole == reader->values[v]))
                return 1;
        }
    return step->kind != DLC_STEP_LAUNCH;
}

enum { MOST_STEPS = 256 }; /* that are looked at for an equal one */

/* A step before this one that reads the same, and makes all that it makes: several kernels read one value, and each was rewritten. */
static const dlc_step *find_equal(const dlc_module *module, const step_list *steps, const dlc_step *step)
{
    for (uint32_t v = 0; v < step->nvalues; v++)
        if (step->values[v] == DLC_NO_VALUE ? !dlc_step_writes(module, step, v)
                                            : dlc_step_writes(module, step, v) || module->values.data[step->values[v]].skip)
            return NULL;
    for (uint32_t n = 0; n < steps->n && n < MOST_STEPS; n++) {
        const dlc_step *other = &steps->data[steps->n - 1 - n];
        if (other->kind == DLC_STEP_LAUNCH && is_equal(other, step))
            return other;
        if (is_in_the_way(module, other, step))
            return NULL;
    }
    return NULL;
}

/* --- what is known at compile time --- */

/* The part reads constants alone, and what it makes is nobody's but the other parts'. */
static int is_constant(const launching *l, const uint32_t *values)
{
    const dlc_kernel *kernel = l->part->kernel;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT ? values[b] != DLC_NO_VALUE
                                                         : l->module->values.data[values[b]].role != DLC_VALUE_CONST)
            return 0;
    return !kernel->symbols.n;
}

/* Runs the part now: what it writes are constants. */
static dlc_status compute(dlc_pass_ctx *ctx, const launching *l, const uint32_t *values)
{
    const dlc_kernel *kernel = l->part->kernel;
    dlc_module *module = ctx->module;
    void **buffers = dlc_new_array(ctx->scratch, void *, kernel->buffers.n + 1);
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        dlc_module_value *value = &module->values.data[values[b]];
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT) {
            size_t bytes = (size_t)dlc_expr_value(module->pool, dlc_module_value_bytes(module, values[b]));
            value->role = DLC_VALUE_CONST;
            value->data = (dlc_tensor){.bytes = dlc_arena_bulk(module->arena, bytes), .size_bytes = bytes};
        }
        buffers[b] = (void *)(uintptr_t)dlc_module_bytes(module, values[b]);
    }
    dlc_interp_args args = {.buffers = buffers};
    DLC_TRY(dlc_interp_run(kernel, DLC_STRICT, &args, ctx->diag));
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT)
            dlc_arena_settle(module->arena, buffers[b]);
        dlc_budget_read(module->values.data[values[b]].data.size_bytes);
    }
    return DLC_OK;
}

/* The module's steps as they become. */
typedef struct {
    step_list steps, computed; /* those that were run now: they, too, may be equal, where layers share weights */
} replacing;

static const dlc_step *find_computed(const step_list *computed, const dlc_step *step)
{
    for (uint32_t n = 0; n < computed->n && n < MOST_STEPS; n++)
        if (is_equal(&computed->data[computed->n - 1 - n], step))
            return &computed->data[computed->n - 1 - n];
    return NULL;
}

/* What parts before it have made at compile time is a constant to a part that runs. */
static void read_constants(const launching *l, const uint32_t *values)
{
    dlc_kernel *kernel = l->part->kernel;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (kernel->buffers.data[b].role == DLC_ROLE_IN && values[b] != DLC_NO_VALUE &&
            l->module->values.data[values[b]].role == DLC_VALUE_CONST)
            kernel->buffers.data[b].role = DLC_ROLE_CONST;
}

static dlc_status add_part(dlc_pass_ctx *ctx, launching *l, const dlc_rewritten *to, uint32_t *made, replacing *r)
{
    uint32_t *values = find_values(l, made);
    int is_known = is_constant(l, values);
    if (!is_known)
        read_constants(l, values);
    dlc_step step = part_step(l, values);
    const dlc_step *equal = is_known ? find_computed(&r->computed, &step) : find_equal(l->module, &r->steps, &step);
    make_values(l, to, equal, values, made);
    if (!equal)
        dlc_vec_push(l->module->arena, is_known ? &r->computed : &r->steps, step);
    return is_known && !equal ? compute(ctx, l, values) : DLC_OK;
}

/* Launches of kernel k become launches of its parts. */
static dlc_status replace_steps(dlc_pass_ctx *ctx, const dlc_rewritten *rewritten, uint32_t nkernels)
{
    dlc_module *module = ctx->module;
    replacing r = {0};
    for (uint32_t s = 0; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        const dlc_rewritten *to = step->kind == DLC_STEP_LAUNCH && step->kernel < nkernels ? &rewritten[step->kernel] : NULL;
        if (!to || !to->parts.n) {
            dlc_vec_push(module->arena, &r.steps, *step);
            continue;
        }
        uint32_t *made = dlc_new_array(ctx->scratch, uint32_t, to->made.n + 1);
        for (uint32_t i = 0; i < to->made.n; i++)
            made[i] = DLC_NO_VALUE;
        for (uint32_t p = 0; p < to->parts.n; p++)
            DLC_TRY(add_part(ctx, &(launching){module, step, &to->parts.data[p]}, to, made, &r));
        ctx->changes++;
    }
    module->steps.data = r.steps.data;
    module->steps.n = r.steps.n;
    module->steps.cap = r.steps.cap;
    return DLC_OK;
}

static dlc_status run_round(dlc_pass_ctx *ctx, const request *r, int round)
{
    uint32_t nkernels = ctx->module->kernels.n, before = ctx->changes;
    dlc_rewritten *rewritten = dlc_new_array(ctx->scratch, dlc_rewritten, nkernels + 1);
    for (uint32_t k = 0; k < nkernels; k++)
        find_rewrite(ctx, r, round, k, &rewritten[k]);
    DLC_TRY(replace_steps(ctx, rewritten, nkernels));
    if (ctx->changes > before)
        dlc_module_drop_kernels(ctx->module);
    return DLC_OK;
}

dlc_status dlc_pass_rewrite(dlc_pass_ctx *ctx)
{
    request r;
    DLC_TRY(read_request(ctx, &r));
    for (int round = 1; round <= DLC_REWRITE_ROUNDS; round++)
        DLC_TRY(run_round(ctx, &r, round));
    return DLC_OK;
}

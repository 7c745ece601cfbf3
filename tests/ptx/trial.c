/* Trials: expectation, comparison, and PTX. Emulation is in emulated.c. */
#include "tests/ptx/trial.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codegen/ptx/nvrtc.h"
#include "codegen/ptx/text.h"
#include "ir/interp/interp.h"
#include "ir/kernel/algebra.h"
#include "tests/differ/draws.h"
#include "tests/differ/place.h"
#include "tests/ptx/emulated.h"
#include "vgpu/machine.h"

enum { ARCH = 75, POISON = 0xcb, NOISY_RUNS = 8 };

const char *const trial_ways[NWAYS] = {
    "PTX", "PTX backwards", "emulated", "emulated in another order", "ASan", "TSan"};

size_t trial_buffer_bytes(const trial *t, uint32_t buffer)
{
    const dlc_buffer *b = &t->kernel->buffers.data[buffer];
    dlc_expr elems = dlc_layout_elems(t->kernel->pool, &b->layout, b->type.rank, b->type.dims);
    return (size_t)dlc_expr_eval(t->kernel->pool, elems, t->symbols) *
           dlc_dtype_bytes(b->type.dtype);
}

static const char *last_message(const dlc_diag *diag, dlc_arena *arena)
{
    if (!diag->nmessages)
        return "failed without a message";
    const dlc_message *message = &diag->messages[diag->nmessages - 1];
    return dlc_arena_printf(arena, "%s: %s%s%s", message->place ? message->place : "",
                            message->text, message->detail ? "\n" : "",
                            message->detail ? message->detail : "");
}

/* --- what is expected --- */

static int reduces_floats(const dlc_kernel *kernel)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].reduce.n && dlc_is_float(kernel->stages.data[s].dtype[0]))
            return 1;
    return 0;
}

static const char *interpret(const trial *t, dlc_interp_mode mode, void *const *buffers,
                             int *faults, dlc_arena *arena)
{
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_status status = dlc_interp_run(
        t->kernel, mode, &(dlc_interp_args){.buffers = buffers, .symbols = t->symbols}, &diag);
    *faults = status == DLC_INVALID;
    return status == DLC_OK || *faults ? NULL : last_message(&diag, arena);
}

const char *trial_expect(trial *t, dlc_arena *arena)
{
    int faults;
    const char *problem = interpret(t, DLC_STRICT, t->buffers, &t->faults, arena);
    t->wide = NULL;
    if (problem || t->faults || !reduces_floats(t->kernel))
        return problem;
    t->wide = dlc_new_array(arena, void *, t->kernel->buffers.n);
    for (uint32_t b = 0; b < t->kernel->buffers.n; b++)
        t->wide[b] = t->kernel->buffers.data[b].role == DLC_ROLE_OUT
                         ? dlc_arena_alloc(arena, trial_buffer_bytes(t, b) + 1, 64)
                         : t->buffers[b];
    return interpret(t, DLC_WIDE, t->wide, &faults, arena);
}

/* --- comparison --- */

/* Relative to the largest result where floats are summed; what sums nothing is exact. */
static double tolerance(dlc_dtype dtype)
{
    switch (dtype) {
    case DLC_F16:
        return 2e-3;
    case DLC_BF16:
        return 1.6e-2;
    case DLC_F32:
        return 1e-5;
    case DLC_F64:
        return 1e-14;
    default:
        return 0;
    }
}

/* Of the largest of 1 and the value: operators of elementary functions without fma (docs/numerics.md, 4 for their compositions). */
static double unfused_tolerance(dlc_dtype dtype)
{
    return 4 * (dtype == DLC_F16 ? 1e-3 : dtype == DLC_BF16 ? 8e-3 : dtype == DLC_F32 ? 1e-6 : 4e-15);
}

/* Whether an elementary function takes part in what the buffer is given: in a stage that stores to it, or one that such a stage reads. */
static int has_elementary(const dlc_kernel *kernel, uint32_t buffer, dlc_arena *arena)
{
    uint8_t *is_read = dlc_new_array(arena, uint8_t, kernel->stages.n + 1);
    for (uint32_t s = kernel->stages.n; s-- > 0;) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (stage->buffer != buffer && !is_read[s])
            continue;
        const uint8_t *marks = dlc_stage_marks(kernel, stage, arena);
        for (dlc_expr e = 1; e < kernel->pool->nodes.n; e++) {
            const dlc_expr_node *node = dlc_node_of(kernel->pool, e);
            if (marks[e] && node->op >= DLC_EXPR_EXP && node->op <= DLC_EXPR_POW)
                return 1;
            if (marks[e] && node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id))
                is_read[DLC_SOURCE_INDEX(node->imm.id)] = 1;
        }
    }
    return 0;
}

/* Terms that are added up one after another: equal ones round the same way. */
static double depth_of(const trial *t)
{
    double most = 1;
    for (uint32_t s = 0; s < t->kernel->stages.n; s++) {
        const dlc_stage *stage = &t->kernel->stages.data[s];
        double depth = 1;
        for (uint32_t i = 0; i < stage->reduce.n; i++)
            depth *= (double)dlc_expr_eval(
                t->kernel->pool, t->kernel->axes.data[stage->reduce.data[i]].extent, t->symbols);
        most = depth > most ? depth : most;
    }
    return most;
}

static double largest(dlc_dtype dtype, const char *data, size_t n)
{
    double most = 1;
    for (size_t i = 0; i < n; i++) {
        double size = fabs(dlc_scalar_read(dtype, data + i * dlc_dtype_bytes(dtype)).f);
        most = isfinite(size) && size > most ? size : most;
    }
    return most;
}

static double *copy_moved(const trial *t, uint32_t buffer, draws *noise, dlc_arena *arena)
{
    dlc_dtype dtype = t->kernel->buffers.data[buffer].type.dtype;
    size_t size = dlc_dtype_bytes(dtype), n = trial_buffer_bytes(t, buffer) / size;
    double *copy = dlc_new_array(arena, double, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = dlc_scalar_read(dtype, (const char *)t->buffers[buffer] + i * size).f *
                  (1 + last_place(dtype) * ((double)(draws_bits(noise) >> 11) * 0x1p-52 - 1));
    return copy;
}

/*
 * How far each element moves when every number that the kernel reads is moved by at most half a unit of its last place. A sum that
 * is rounded at each step is an exact sum of terms so moved (Higham, Accuracy and Stability of Numerical Algorithms, 4.2): where
 * terms cancel, or a later stage makes a small difference large, this tells it and the size of the results does not.
 */
static double *moved_by_noise(const trial *t, uint32_t buffer, dlc_arena *arena)
{
    const dlc_kernel *kernel = t->kernel;
    size_t n = trial_buffer_bytes(t, buffer) / dlc_dtype_bytes(kernel->buffers.data[buffer].type.dtype);
    double *moved = dlc_new_array(arena, double, n + 1), *still = NULL;
    for (uint64_t run = 0; run <= NOISY_RUNS; run++) { /* the first: without */
        double **wide = dlc_new_array(arena, double *, kernel->buffers.n + 1);
        draws noise = {.state = run};
        dlc_diag diag;
        dlc_diag_init(&diag, arena);
        for (uint32_t b = 0; b < kernel->buffers.n; b++)
            if (!dlc_is_float(kernel->buffers.data[b].type.dtype))
                wide[b] = NULL;
            else if (kernel->buffers.data[b].role == DLC_ROLE_OUT)
                wide[b] = dlc_new_array(arena, double, trial_buffer_bytes(t, b) + 1);
            else
                wide[b] = run ? copy_moved(t, b, &noise, arena) : NULL;
        if (dlc_interp_run(kernel, DLC_WIDE, &(dlc_interp_args){.buffers = t->wide, .wide = wide, .symbols = t->symbols}, &diag))
            return moved;
        still = run ? still : wide[buffer];
        for (size_t i = 0; i < n; i++)
            moved[i] = fmax(moved[i], fabs(wide[buffer][i] - still[i]));
    }
    return moved;
}

/* written: NULL, or which bytes count. */
const char *trial_compare(const trial *t, uint32_t buffer, const void *got, const uint8_t *written,
                          dlc_arena *arena)
{
    dlc_dtype dtype = t->kernel->buffers.data[buffer].type.dtype;
    size_t size = dlc_dtype_bytes(dtype), n = trial_buffer_bytes(t, buffer) / size;
    int is_float = dlc_is_float(dtype), is_exact = !is_float || !t->wide;
    const char *want = is_exact ? t->buffers[buffer] : t->wide[buffer];
    double limit =
        is_exact ? 0 : tolerance(dtype) * largest(dtype, want, n) * fmax(1, depth_of(t) / 256);
    double *moved = NULL, depth = sqrt(depth_of(t)); /* terms rounded one after another: as far as so many moved at random */
    double near = is_exact && is_float && t->is_unfused && has_elementary(t->kernel, buffer, arena) ? unfused_tolerance(dtype) : 0;
    for (size_t i = 0; i < n; i++) {
        const char *a = (const char *)got + i * size, *b = want + i * size;
        if ((written && !written[i * size]) || !memcmp(a, b, size))
            continue;
        dlc_scalar x = dlc_scalar_read(dtype, a), y = dlc_scalar_read(dtype, b);
        if (is_float && ((isnan(x.f) && isnan(y.f)) || x.f == y.f || fabs(x.f - y.f) <= limit ||
                         fabs(x.f - y.f) <= near * fmax(1, fabs(y.f))))
            continue;
        if (is_float && t->wide && isfinite(x.f) && isfinite(y.f)) {
            moved = moved ? moved : moved_by_noise(t, buffer, arena);
            if (fabs(x.f - y.f) <= limit + 8 * depth * moved[i])
                continue;
        }
        return is_float ? dlc_arena_printf(arena, "%s: %s[%zu] = %.9g, not %.9g", t->kernel->name,
                                           t->kernel->buffers.data[buffer].name, i, x.f, y.f)
                        : dlc_arena_printf(arena, "%s: %s[%zu] = %" PRId64 ", not %" PRId64,
                                           t->kernel->name, t->kernel->buffers.data[buffer].name, i,
                                           x.i, y.i);
    }
    return NULL;
}

/* --- text --- */

const char *trial_mutate(const char *text, const trial_mutation *mutation, dlc_arena *arena)
{
    dlc_str out = {0};
    uint32_t nfound = 0;
    if (!mutation || !mutation->from)
        return text;
    for (const char *found; (found = strstr(text, mutation->from)) != NULL;
         text = found + strlen(mutation->from)) {
        dlc_str_printf(&out, "%.*s", (int)(found - text), text);
        dlc_str_add(&out,
                    ++nfound == mutation->nth || !mutation->nth ? mutation->to : mutation->from);
    }
    dlc_str_add(&out, text);
    const char *result =
        nfound && nfound >= mutation->nth ? dlc_arena_strdup(arena, dlc_str_text(&out)) : NULL;
    dlc_str_deinit(&out);
    return result;
}

/* --- PTX --- */

int64_t trial_units(const trial *t)
{
    dlc_kernel *kernel = t->schedule->kernel; /* expressions are added, nothing changes */
    return dlc_expr_eval(kernel->pool, dlc_schedule_units(kernel, t->schedule), t->symbols);
}

int64_t trial_scratch(const trial *t)
{
    return dlc_expr_eval(t->schedule->kernel->pool, dlc_schedule_scratch(t->schedule), t->symbols);
}

/* A launch's memory: buffers and the word of faults, far apart; what kernels write is not
 * initialised at first. */
typedef struct {
    vgpu_memory memory;
    vgpu_launch launch;
    uint64_t *parameters;
    uint8_t **written; /* by buffer, of outputs */
    uint8_t **bytes;
    int64_t fault;
} bench;

static uint64_t place(bench *b, uint32_t number, void *bytes, size_t size_bytes, uint8_t *written,
                      int is_writable)
{
    uint64_t base = (UINT64_C(2) << 40) + ((uint64_t)number << 34);
    vgpu_memory_add(&b->memory, &(vgpu_region){.base = base,
                                               .size_bytes = size_bytes,
                                               .bytes = bytes,
                                               .written = written,
                                               .is_writable = is_writable});
    return base;
}

static void place_buffers(const trial *t, bench *b, dlc_arena *arena)
{
    for (uint32_t i = 0; i < t->kernel->buffers.n; i++) {
        size_t size_bytes = trial_buffer_bytes(t, i);
        b->bytes[i] = t->buffers[i];
        if (t->kernel->buffers.data[i].role == DLC_ROLE_OUT) {
            b->bytes[i] = dlc_arena_alloc(arena, size_bytes + 1, 64);
            b->written[i] = dlc_arena_alloc(arena, size_bytes + 1, 1);
            memset(b->bytes[i], POISON, size_bytes);
        }
        b->parameters[i] =
            place(b, i, b->bytes[i], size_bytes, b->written[i], b->written[i] != NULL);
    }
}

static void set_launch(const trial *t, const dlc_cuda_kernel *made, bench *b, dlc_arena *arena)
{
    uint32_t n = t->kernel->buffers.n, nsymbols = t->kernel->symbols.n;
    int64_t units = trial_units(t);
    b->parameters = dlc_new_array(arena, uint64_t, n + nsymbols + 3);
    b->written = dlc_new_array(arena, uint8_t *, n + 1);
    b->bytes = dlc_new_array(arena, uint8_t *, n + 1);
    place_buffers(t, b, arena);
    for (uint32_t i = 0; i < nsymbols; i++)
        b->parameters[n + i] = (uint64_t)t->symbols[i];
    b->parameters[n + nsymbols] = place(b, n, &b->fault, sizeof b->fault, NULL, 1);
    b->parameters[n + nsymbols + 2] = (uint64_t)units;
    b->launch = (vgpu_launch){
        .grid = {(uint32_t)((units + made->units_per_block - 1) / made->units_per_block), 1, 1},
        .block = {made->threads, 1, 1},
        .shared_bytes = made->fixed_bytes + made->scratches * (uint32_t)trial_scratch(t),
        .parameters = (const uint8_t *)b->parameters,
        .memory = &b->memory,
        .limit = 1u << 28,
        .stride = t->stride};
}

static dlc_status make_ptx(const trial *t, const trial_mutation *mutation, dlc_arena *arena,
                           dlc_diag *diag, dlc_cuda_kernel *made, vgpu_code **code)
{
    const dlc_nvrtc *nvrtc;
    const void *ptx;
    size_t n;
    DLC_TRY(dlc_nvrtc_open(diag, &nvrtc));
    DLC_TRY(dlc_cuda_source(t->schedule, "trial", arena, diag, made));
    const char *text = dlc_arena_printf(arena, "%s%s", dlc_cuda_prelude, made->source);
    text = trial_mutate(text, mutation, arena);
    if (!text)
        return dlc_diag_fail(diag, DLC_INTERNAL, "mutation", "'%s' is not in the text",
                             mutation->from);
    DLC_TRY(dlc_nvrtc_compile(nvrtc, text, t->kernel->name, ARCH, 1, arena, diag, &ptx, &n));
    ptx_module *module;
    DLC_TRY(ptx_parse(dlc_arena_strndup(arena, ptx, n), arena, diag, &module));
    *code = vgpu_decode(module, &module->functions.data[0], arena);
    if ((*code)->function->params.n != t->kernel->buffers.n + t->kernel->symbols.n + 3)
        return dlc_diag_fail(diag, DLC_INTERNAL, t->kernel->name, "%u parameters",
                             (*code)->function->params.n);
    return DLC_OK;
}

static const char *compare_outputs(const trial *t, const bench *b, dlc_arena *arena)
{
    const char *problem = NULL;
    for (uint32_t i = 0; i < t->kernel->buffers.n && !t->faults && !problem; i++)
        if (b->written[i])
            problem = trial_compare(t, i, b->bytes[i], t->stride || t->kernel->buffers.data[i].is_part ? b->written[i] : NULL, arena);
    return problem;
}

static const char *run_ptx(const trial *t, int is_backwards, const trial_mutation *mutation,
                           dlc_arena *arena)
{
    vgpu_code *code = NULL;
    dlc_cuda_kernel made;
    dlc_diag diag;
    bench b = {.fault = 0};
    dlc_diag_init(&diag, arena);
    if (make_ptx(t, mutation, arena, &diag, &made, &code) != DLC_OK)
        return last_message(&diag, arena);
    set_launch(t, &made, &b, arena);
    b.launch.is_backwards = is_backwards;
    dlc_status status = vgpu_run(code, &b.launch, &diag);
    vgpu_memory_deinit(&b.memory);
    if (status != DLC_OK)
        return dlc_arena_printf(arena, "%s: %s", t->kernel->name, last_message(&diag, arena));
    if (t->faults != (b.fault != 0))
        return dlc_arena_printf(arena, "%s: fault %" PRId64, t->kernel->name, b.fault);
    return compare_outputs(t, &b, arena);
}

const char *trial_run(const trial *trials, uint32_t n, trial_way way,
                      const trial_mutation *mutation, dlc_arena *arena)
{
    if (way > WAY_PTX_BACKWARDS)
        return emulated_run(trials, n, way, mutation, arena);
    for (uint32_t i = 0; i < n; i++) {
        dlc_arena *scratch = dlc_arena_create(0);
        const char *problem = run_ptx(&trials[i], way == WAY_PTX_BACKWARDS, mutation, scratch);
        problem = problem ? dlc_arena_strdup(arena, problem) : NULL;
        dlc_arena_destroy(scratch);
        if (problem)
            return problem;
    }
    return NULL;
}

const char *trial_unavailable(trial_way way, dlc_arena *arena)
{
    const dlc_nvrtc *nvrtc;
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (way > WAY_PTX_BACKWARDS)
        return emulated_unavailable(way, arena);
    return dlc_nvrtc_open(&diag, &nvrtc) == DLC_OK ? NULL : last_message(&diag, arena);
}

/* --- a module's kernels --- */

typedef struct {
    dlc_kernel *kernel;
    uint32_t first; /* of the copies */
    dlc_arena *arena;
} copies;

static dlc_expr put_back(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const copies *c = ctx;
    if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id) || DLC_SOURCE_INDEX(node->imm.id) < c->first)
        return 0;
    const dlc_stage *copy = &c->kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)];
    dlc_expr *with = dlc_new_array(c->arena, dlc_expr, c->kernel->axes.n);
    for (uint32_t i = 0; i < copy->axes.n; i++)
        with[copy->axes.data[i]] = args[i];
    return dlc_expr_substitute(to, copy->value[0], with, c->kernel->axes.n);
}

/* The schedule's kernel with each copy's value in place of its loads. */
static const dlc_kernel *without_copies(const dlc_schedule *schedule, dlc_arena *arena)
{
    copies c = {dlc_kernel_clone(schedule->kernel, arena), schedule->nstages, arena};
    if (schedule->kernel->stages.n == schedule->nstages)
        return schedule->kernel;
    for (uint32_t s = 0; s < c.first; s++)
        for (uint32_t i = 0; i < 2; i++)
            if (c.kernel->stages.data[s].value[i])
                c.kernel->stages.data[s].value[i] =
                    dlc_expr_rewrite(c.kernel->pool, c.kernel->pool, c.kernel->stages.data[s].value[i], put_back, &c);
    c.kernel->stages.n = c.first;
    return c.kernel;
}

void *trial_memory(const dlc_module *module, uint32_t v, const int64_t *symbols, void **memory,
                   dlc_arena *arena)
{
    const dlc_module_value *value = &module->values.data[v];
    size_t n = 1;
    if (value->role == DLC_VALUE_CONST)
        return (void *)(uintptr_t)dlc_module_bytes(module, v);
    if (value->skip)
        return (char *)trial_memory(module, value->whole, symbols, memory, arena) + dlc_expr_eval(module->pool, value->skip, symbols);
    for (uint8_t d = 0; d < value->type.rank; d++)
        n *= (size_t)dlc_expr_eval(module->pool, value->type.dims[d], symbols);
    if (!memory[v])
        memory[v] = dlc_arena_array(arena, n + 1, 8, 64);
    return memory[v];
}

trial trial_of_step(const dlc_module *module, const dlc_step *step, const int64_t *symbols,
                    void **memory, dlc_arena *arena)
{
    const dlc_module_kernel *entry = &module->kernels.data[step->kernel];
    void **buffers = dlc_new_array(arena, void *, step->nvalues + 1);
    int64_t *values = dlc_new_array(arena, int64_t, step->nsymbols + 1);
    for (uint32_t b = 0; b < step->nvalues; b++)
        buffers[b] = trial_memory(module, step->values[b], symbols, memory, arena);
    for (uint32_t i = 0; i < step->nsymbols; i++)
        values[i] = dlc_expr_eval(module->pool, step->symbols[i], symbols);
    return (trial){.kernel = without_copies(entry->schedule, arena), /* constants lie as the schedule wants them */
                   .schedule = entry->schedule,
                   .symbols = values,
                   .buffers = buffers};
}

uint32_t trial_walk(const dlc_module *module, const int64_t *symbols, void **memory,
                    dlc_arena *arena, trial **trials, const char **problem)
{
    uint8_t *seen = dlc_new_array(arena, uint8_t, module->kernels.n + 1);
    uint32_t n = 0;
    *trials = dlc_new_array(arena, trial, module->kernels.n + 1);
    *problem = NULL;
    for (uint32_t i = 0; i < module->steps.n && !*problem; i++) {
        const dlc_step *step = &module->steps.data[i];
        if (step->kind != DLC_STEP_LAUNCH) {
            *problem = "the module has steps that are no kernels";
            break;
        }
        trial t = trial_of_step(module, step, symbols, memory, arena);
        *problem = trial_expect(&t, arena);
        if (!seen[step->kernel]++)
            (*trials)[n++] = t;
    }
    return n;
}

/*
 * Every distinct kernel of a model on the virtual GPU, on data that flows through the model:
 * vgpu_kernels MODEL TARGET [SIZE [BLOCKS]]. The emulation computes the steps one after the other; the
 * first time that a kernel comes, the PTX of the model's module computes the same from the same
 * buffers, by all of its blocks or BLOCKS of them, and what it wrote has the emulation's bits. SIZE is
 * the value of every symbol of the inputs. Ends with 77 where NVRTC or the C compiler is not there.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/ptx/nvrtc.h"
#include "codegen/ptx/object.h"
#include "codegen/ptx/text.h"
#include "compiler/driver.h"
#include "tests/ptx/trial.h"
#include "vgpu/machine.h"

enum { SHARED_BYTES = 1 << 22, MOST_ITERATIONS = 1 << 20 };

typedef struct {
    const dlc_module *module;
    dlc_arena *arena;
    const dlc_kernel_fn *functions; /* emulated */
    const ptx_module *ptx;
    dlc_cuda_sources sources;
    int64_t *symbols;
    void **memory; /* by value */
    uint8_t *seen; /* by kernel */
    uint32_t most_blocks, nkernels;
    _Alignas(64) unsigned char shared[SHARED_BYTES];
} flow;

static const char *say(dlc_arena *arena, const dlc_diag *diag)
{
    const dlc_message *m = diag->nmessages ? &diag->messages[diag->nmessages - 1] : NULL;
    return m ? dlc_arena_printf(arena, "%s: %s", m->place ? m->place : "", m->text) : "no message";
}

/* --- data --- */
/* Floats in [0, 1); integers 0 and 1: what a model takes for tokens and masks. */
static void fill(dlc_dtype dtype, void *bytes, size_t n)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        dlc_scalar value = {0};
        if (dlc_is_float(dtype))
            value.f = dlc_round_to(dtype, (double)(state >> 11) * 0x1p-53);
        else
            value.i = (int64_t)(state >> 63);
        dlc_scalar_write(dtype, (char *)bytes + i * dlc_dtype_bytes(dtype), value);
    }
}

static size_t bytes_of(const flow *f, uint32_t value)
{
    return (size_t)dlc_expr_eval(f->module->pool, dlc_module_value_bytes(f->module, value), f->symbols);
}

static void *at(const flow *f, uint32_t value)
{
    return trial_memory(f->module, value, f->symbols, f->memory, f->arena);
}

static void fill_inputs(const flow *f)
{
    for (uint32_t i = 0; i < f->module->inputs.n; i++) {
        uint32_t value = f->module->inputs.data[i];
        dlc_dtype dtype = f->module->values.data[value].type.dtype;
        fill(dtype, at(f, value), bytes_of(f, value) / dlc_dtype_bytes(dtype));
    }
}

/* --- a kernel on the virtual GPU --- */
static const ptx_function *function_called(const ptx_module *ptx, const char *name)
{
    for (uint32_t i = 0; i < ptx->functions.n; i++)
        if (!strcmp(ptx->functions.data[i].name, name))
            return &ptx->functions.data[i];
    return NULL;
}

/* Buffers have places of their own; outputs begin poisoned, and nobody has written them. */
typedef struct {
    vgpu_memory memory;
    uint64_t *parameters;
    uint8_t **bytes, **written; /* by buffer; written: of outputs */
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

static void place_all(const trial *t, bench *b, dlc_arena *arena)
{
    uint32_t n = t->kernel->buffers.n, nsymbols = t->kernel->symbols.n;
    b->parameters = dlc_new_array(arena, uint64_t, n + nsymbols + 3);
    b->bytes = dlc_new_array(arena, uint8_t *, n + 1);
    b->written = dlc_new_array(arena, uint8_t *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        size_t size_bytes = trial_buffer_bytes(t, i);
        b->bytes[i] = t->buffers[i];
        if (t->kernel->buffers.data[i].role == DLC_ROLE_OUT) {
            b->bytes[i] = dlc_arena_alloc(arena, size_bytes + 1, 64);
            b->written[i] = dlc_arena_alloc(arena, size_bytes + 1, 1);
            memset(b->bytes[i], 0xcb, size_bytes);
        }
        b->parameters[i] =
            place(b, i, b->bytes[i], size_bytes, b->written[i], b->written[i] != NULL);
    }
    for (uint32_t i = 0; i < nsymbols; i++)
        b->parameters[n + i] = (uint64_t)t->symbols[i];
    b->parameters[n + nsymbols] = place(b, n, &b->fault, sizeof b->fault, NULL, 1);
    b->parameters[n + nsymbols + 2] = (uint64_t)trial_units(t);
}

static const char *compare(const trial *t, const bench *b, dlc_arena *arena)
{
    for (uint32_t i = 0; i < t->kernel->buffers.n; i++) {
        const uint8_t *expected = t->buffers[i];
        size_t size_bytes = trial_buffer_bytes(t, i), nwritten = 0;
        for (size_t k = 0; b->written[i] && k < size_bytes; k++) {
            nwritten += b->written[i][k];
            if (b->written[i][k] && b->bytes[i][k] != expected[k])
                return dlc_arena_printf(arena, "buffer %u differs at byte %zu of %zu", i, k,
                                        size_bytes);
        }
        if (b->written[i] && size_bytes && !nwritten)
            return dlc_arena_printf(arena, "buffer %u is never written", i);
    }
    return NULL;
}

static const char *try_kernel(const flow *f, uint32_t kernel, const trial *t, dlc_arena *arena)
{
    const dlc_cuda_launch *made = &f->sources.launches[kernel];
    const ptx_function *function = function_called(f->ptx, f->sources.functions[kernel]);
    uint64_t units = (uint64_t)trial_units(t);
    uint64_t nblocks = (units + made->units_per_block - 1) / made->units_per_block;
    bench b = {.fault = 0};
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (!function || !nblocks)
        return function ? NULL : "it is not in the PTX";
    vgpu_code *code = vgpu_decode(f->ptx, function, arena);
    place_all(t, &b, arena);
    vgpu_launch launch = {
        .grid = {(uint32_t)nblocks, 1, 1},
        .block = {made->threads, 1, 1},
        .shared_bytes = made->fixed_bytes + made->scratches * (uint32_t)trial_scratch(t),
        .parameters = (const uint8_t *)b.parameters,
        .memory = &b.memory,
        .limit = 1u << 30,
        .stride = f->most_blocks && nblocks > f->most_blocks
                      ? (uint32_t)((nblocks + f->most_blocks - 1) / f->most_blocks)
                      : 0};
    dlc_status status = vgpu_run(code, &launch, &diag);
    vgpu_memory_deinit(&b.memory);
    return status  ? say(arena, &diag)
           : b.fault ? "an index is out of range"
                     : compare(t, &b, arena);
}

/* --- steps --- */
static const char *launch(flow *f, const dlc_step *step)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *problem = NULL;
    int64_t fault = 0;
    trial t = trial_of_step(f->module, step, f->symbols, f->memory, f->arena);
    dlc_kernel_args args = {t.buffers, t.symbols, f->shared, &fault};
    f->functions[step->kernel](&args, 0, trial_units(&t));
    if (!f->seen[step->kernel]++) {
        problem = try_kernel(f, step->kernel, &t, arena);
        problem = problem ? dlc_arena_printf(f->arena, "%s: %s", f->sources.functions[step->kernel],
                                             problem)
                          : NULL;
        f->nkernels++;
    }
    dlc_arena_destroy(arena);
    return problem;
}

static int64_t evaluate(const flow *f, dlc_expr e)
{
    return e ? dlc_expr_eval(f->module->pool, e, f->symbols) : 0;
}

static void copy(const flow *f, const dlc_step *step)
{
    size_t from = bytes_of(f, step->values[0]), to = bytes_of(f, step->values[1]);
    memcpy((char *)at(f, step->values[1]) + evaluate(f, step->size), at(f, step->values[0]),
           from < to ? from : to);
}

static void bind(const flow *f, const dlc_step *step)
{
    dlc_dtype dtype = f->module->values.data[step->values[0]].type.dtype;
    const char *bytes = at(f, step->values[0]);
    f->symbols[step->symbol] =
        dlc_scalar_read(dtype, bytes + step->attrs[0] * (int64_t)dlc_dtype_bytes(dtype)).i;
}

/* The step that ends what step i begins; of an if that does not hold, its ELSE. */
static uint32_t end_of(const dlc_module *module, uint32_t i)
{
    uint32_t depth = 0;
    for (uint32_t k = i + 1;; k++) {
        uint8_t kind = module->steps.data[k].kind;
        if (!depth && (kind == DLC_STEP_END || kind == DLC_STEP_ELSE))
            return k;
        depth += kind == DLC_STEP_IF || kind == DLC_STEP_LOOP;
        depth -= kind == DLC_STEP_END;
    }
}

static uint32_t begin_of(const dlc_module *module, uint32_t end)
{
    uint32_t depth = 0;
    for (uint32_t k = end; k-- > 0;) {
        uint8_t kind = module->steps.data[k].kind;
        if (!depth && (kind == DLC_STEP_IF || kind == DLC_STEP_LOOP))
            return k;
        depth += kind == DLC_STEP_END;
        depth -= kind == DLC_STEP_IF || kind == DLC_STEP_LOOP;
    }
    return 0;
}

/* Where to go on. */
static uint32_t follow(const flow *f, const dlc_step *step, uint32_t i)
{
    const dlc_step *steps = f->module->steps.data;
    if (step->kind == DLC_STEP_IF || step->kind == DLC_STEP_LOOP)
        return evaluate(f, step->size) ? i + 1 : end_of(f->module, i) + 1;
    if (step->kind == DLC_STEP_ELSE)
        return end_of(f->module, i) + 1;
    uint32_t begin = begin_of(f->module, i);
    return steps[begin].kind == DLC_STEP_LOOP ? begin : i + 1;
}

static const char *walk(flow *f)
{
    const char *problem = NULL;
    for (uint32_t i = 0, n = 0; i < f->module->steps.n && !problem; n++) {
        const dlc_step *step = &f->module->steps.data[i];
        uint32_t next = i + 1;
        if (n == MOST_ITERATIONS)
            return "its loops do not end";
        if (step->kind == DLC_STEP_LAUNCH)
            problem = launch(f, step);
        else if (step->kind == DLC_STEP_COPY)
            copy(f, step);
        else if (step->kind == DLC_STEP_SET)
            f->symbols[step->symbol] = evaluate(f, step->size);
        else if (step->kind == DLC_STEP_BIND)
            bind(f, step);
        else if (step->kind == DLC_STEP_OPAQUE)
            problem = dlc_arena_printf(f->arena, "step '%s' runs in the runtime alone", step->name);
        else
            next = follow(f, step, i);
        i = next;
    }
    return problem;
}

/* --- the model --- */
static const char *load_ptx(flow *f, const char *target)
{
    const dlc_nvrtc *nvrtc;
    const void *text;
    size_t n;
    dlc_diag diag;
    ptx_module *ptx;
    dlc_diag_init(&diag, f->arena);
    if (dlc_nvrtc_open(&diag, &nvrtc) != DLC_OK ||
        dlc_cuda_sources_make(f->module, f->arena, &diag, &f->sources) != DLC_OK ||
        dlc_nvrtc_compile(nvrtc, dlc_cuda_program(&f->sources, f->arena), "kernels.cu",
                          atoi(target + 3), 1, f->arena, &diag, &text, &n) != DLC_OK ||
        ptx_parse(dlc_arena_strndup(f->arena, text, n), f->arena, &diag, &ptx) != DLC_OK)
        return say(f->arena, &diag);
    f->ptx = ptx;
    return NULL;
}

static const char *load_functions(flow *f, dlc_model *model)
{
    char path[] = "/tmp/dlc_vgpu_kernels_XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || dlc_model_write(model, "so", path, "model") != DLC_OK)
        return "no emulation";
    close(fd);
    void *library = dlopen(path, RTLD_NOW);
    unlink(path);
    const dlc_executable *executable = library ? dlsym(library, "dlc_executable") : NULL;
    f->functions = executable ? executable->plans[0].kernels : NULL;
    return f->functions ? NULL : "the emulation does not load";
}

static int run(dlc_model *model, const char *target, int64_t size, uint32_t most_blocks)
{
    flow *f = aligned_alloc(64, (sizeof *f + 63) / 64 * 64);
    memset(f, 0, sizeof *f);
    f->arena = dlc_arena_create(0);
    f->module = model->ctx.module;
    f->most_blocks = most_blocks;
    f->symbols = dlc_module_symbol_values(f->module, size, f->arena);
    f->memory = dlc_new_array(f->arena, void *, f->module->values.n + 1);
    f->seen = dlc_new_array(f->arena, uint8_t, f->module->kernels.n + 1);
    const char *problem = load_ptx(f, target);
    problem = problem ? problem : load_functions(f, model);
    if (!problem) {
        fill_inputs(f);
        problem = walk(f);
    }
    printf("%u of %u kernels ran: %s\n", f->nkernels, f->module->kernels.n,
           problem ? problem : "they have the emulation's bits");
    dlc_arena_destroy(f->arena);
    free(f);
    return problem != NULL;
}

static int has_tools(void)
{
    const dlc_nvrtc *nvrtc;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    int has = dlc_nvrtc_open(&diag, &nvrtc) == DLC_OK && !system("cc --version >/dev/null 2>&1");
    dlc_arena_destroy(arena);
    return has;
}

int main(int argc, char **argv)
{
    dlc_model *model;
    dlc_model_note note;
    if (argc < 3) {
        printf("usage: vgpu_kernels MODEL TARGET [SIZE [BLOCKS]]\n");
        return 2;
    }
    if (!has_tools()) {
        printf("skipped: it needs NVRTC and the C compiler cc\n");
        return 77;
    }
    dlc_options options = {.target = argv[2], .emulate_gpu = 1};
    int failed = dlc_model_open(argv[1], &options, &model) != DLC_OK ||
                 dlc_model_run_passes(model) != DLC_OK;
    if (!failed)
        failed = run(model, argv[2], argc > 3 ? atoll(argv[3]) : 3,
                     argc > 4 ? (uint32_t)atoi(argv[4]) : 0);
    else
        for (uint32_t i = 0; dlc_model_message(model, i, &note); i++)
            printf("%s: %s\n", note.place, note.text);
    dlc_model_close(model);
    return failed;
}

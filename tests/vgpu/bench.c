#include "tests/vgpu/bench.h"

#include <dlfcn.h>

#include "codegen/ptx/nvrtc.h"
#include "codegen/ptx/text.h"
#include "dlc/checksum.h"
#include "dlc/runtime.h"
#include "package/plan.h"
#include "tests/ptx/emulated.h"
#include "tests/ptx/trial.h"
#include "tests/unit/small_graph.h"

enum { NRUNS = 5, MAX_TENSORS = 8 };
dlc_status dlc_pass_plan_memory(dlc_pass_ctx *ctx);

const vgpu_control *bench_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const vgpu_control *driver = library ? dlsym(library, "vgpu") : NULL;
    ck_assert_msg(driver != NULL, "libcuda.so.1 is not the virtual GPU");
    return driver;
}

/* --- an executable --- */
static const char *compile(const dlc_module *module, const dlc_cuda_sources *sources, int arch,
                           const bench_change *change, dlc_arena *arena, dlc_plan_binary *binaries,
                           dlc_str *code)
{
    const trial_mutation mutation = {change->from, change->to, change->nth};
    const dlc_nvrtc *nvrtc;
    dlc_diag diag;
    int is_found = !change->from;
    dlc_diag_init(&diag, arena);
    if (dlc_nvrtc_open(&diag, &nvrtc) != DLC_OK)
        return diag.messages[0].text;
    for (uint32_t i = 0; i < module->kernels.n; i++) {
        const void *ptx;
        size_t n;
        const char *text = dlc_arena_printf(arena, "%s%s%s", dlc_cuda_prelude,
                                            change->also ? change->also : "", sources->texts[i]);
        const char *mutated = change->from ? trial_mutate(text, &mutation, arena) : text;
        is_found |= mutated != NULL;
        if (dlc_nvrtc_compile(nvrtc, mutated ? mutated : text, "kernel", arch, 1, arena, &diag,
                              &ptx, &n) != DLC_OK)
            return dlc_arena_printf(arena, "NVRTC: %s", diag.messages[0].detail);
        binaries[i] = (dlc_plan_binary){
            .kind = DLC_BINARY_PTX, .arch = (uint32_t)arch, .offset = code->n, .size_bytes = n + 1};
        dlc_str_addn(code, ptx, n);
        do
            dlc_str_addn(code, "", 1);
        while (code->n % 64);
    }
    return is_found ? NULL : "the text to change is not in the text";
}

typedef struct {
    dlc_plan_entry entry;
    dlc_executable image;
    dlc_pieces constants;
    dlc_plan_binary *binaries;
    dlc_str code;
} package;

static const char *pack(small_graph *s, dlc_module *module, int arch, const bench_change *change,
                        package *p)
{
    dlc_cuda_sources sources;
    dlc_blob plan;
    if (dlc_cuda_sources_make(module, s->arena, s->diag, &sources) != DLC_OK)
        return "no sources";
    p->binaries = dlc_new_array(s->arena, dlc_plan_binary, module->kernels.n + 1);
    const char *problem = compile(module, &sources, arch, change, s->arena, p->binaries, &p->code);
    if (problem)
        return problem;
    if (change->change)
        change->change(sources.launches, sources.n);
    for (uint32_t i = 0; i < sources.n; i++)
        sources.functions[i] = DLC_CUDA_FUNCTION; /* each is a module of its own */
    dlc_plan_cuda cuda = {.launches = sources.launches,
                          .functions = sources.functions,
                          .binaries = p->binaries,
                          .nbinaries = 1,
                          .name = "sm_75"};
    if (dlc_plan_build(module, &cuda, &p->constants, s->arena, s->diag, &plan) != DLC_OK)
        return "no plan";
    char *constants = dlc_arena_alloc(s->arena, p->constants.size_bytes + 1, 64);
    for (uint32_t i = 0; i < p->constants.pieces.n; i++) {
        const dlc_blob *piece = &p->constants.pieces.data[i];
        if (piece->packing)
            dlc_packing_put(piece->packing, 0, piece->size_bytes, constants + p->constants.offsets.data[i]);
        else
            memcpy(constants + p->constants.offsets.data[i], piece->bytes, piece->size_bytes);
    }
    p->entry =
        (dlc_plan_entry){.checksum = dlc_checksum(plan.bytes, plan.size_bytes), .plan = plan.bytes};
    p->image = (dlc_executable){.magic = DLC_EXECUTABLE_MAGIC,
                                .abi_version = DLC_ABI_VERSION,
                                .nplans = 1,
                                .constants_bytes = p->constants.size_bytes,
                                .constants = constants,
                                .binaries_bytes = p->code.n,
                                .binaries = dlc_arena_copy(s->arena, p->code.data, p->code.n),
                                .plans = &p->entry};
    return NULL;
}

/* --- runs --- */
/* Now and then a number that is none, or large, or hardly there. */
static void sprinkle(dlc_dtype dtype, size_t n, void *bytes)
{
    static const double specials[] = {NAN,   INFINITY, -INFINITY, 100, -100,
                                      1e-40, -1e-40,   -0.0,      1e4};
    for (size_t i = 5, k = 0; dlc_is_float(dtype) && i < n; i += 41, k++)
        dlc_scalar_write(dtype, (char *)bytes + i * dlc_dtype_bytes(dtype),
                         (dlc_scalar){.f = dlc_round_to(dtype, specials[k % 9])});
}

/* A NaN of which only the lowest bit is set behind its exponent. */
static void put_nan(dlc_dtype dtype, void *at)
{
    const uint64_t f64 = 0x7ff0000000000001, f32 = 0x7f800001, f16 = 0x7c01, bf16 = 0x7f81;
    uint64_t bits = dtype == DLC_F64 ? f64 : dtype == DLC_F32 ? f32 : dtype == DLC_F16 ? f16 : bf16;
    memcpy(at, &bits, dlc_dtype_bytes(dtype));
}

/* Many are equal, integers overflow, now and then a NaN. */
static void coarsen(dlc_dtype dtype, size_t n, void *bytes)
{
    size_t size = dlc_dtype_bytes(dtype);
    const int64_t least = INT64_MIN >> (64 - 8 * size), integers[] = {least, -1, 0, ~least, 31, 32, 33, 64, least, 1};
    for (size_t i = 0, k = 0; i < n; i++) {
        char *at = (char *)bytes + i * size;
        dlc_scalar value = dlc_scalar_read(dtype, at);
        value.f = rint(2 * value.f);
        if (dlc_is_float(dtype))
            dlc_scalar_write(dtype, at, value);
        if (dlc_is_float(dtype) && i % 64 == 10 && i % 1024 >= 384)
            put_nan(dtype, at);
        if (dlc_is_int(dtype) && i % 3 == 0)
            dlc_scalar_write(dtype, at, (dlc_scalar){.i = integers[k++ % 10]});
    }
}

/* Larger, a few much larger. */
static void enlarge(dlc_dtype dtype, size_t n, void *bytes)
{
    for (size_t i = 0; dlc_is_float(dtype) && i < n; i++) {
        char *at = (char *)bytes + i * dlc_dtype_bytes(dtype);
        double factor = i % 48 == 7 ? 100 : 3;
        dlc_scalar_write(dtype, at, (dlc_scalar){.f = dlc_round_to(dtype, factor * dlc_scalar_read(dtype, at).f)});
    }
}

static void fill_inputs(const small_graph *s, void **memory, int run)
{
    for (uint32_t i = 0; i < s->graph->inputs.n; i++) {
        const dlc_value *value = s->graph->inputs.data[i];
        const char *name =
            run == 2 ? dlc_arena_printf(s->arena, "%s again", value->name) : value->name;
        small_fill(value->type.dtype, name, small_elems(s, value), memory[value->id]);
        if (run == 1)
            sprinkle(value->type.dtype, small_elems(s, value), memory[value->id]);
        if (run == 3)
            coarsen(value->type.dtype, small_elems(s, value), memory[value->id]);
        if (run == 4)
            enlarge(value->type.dtype, small_elems(s, value), memory[value->id]);
    }
}

static dlcrt_tensor tensor_of(const small_graph *s, const dlc_value *value, void *data)
{
    dlcrt_tensor t = {.data = data, .dtype = value->type.dtype, .rank = value->type.rank};
    for (uint8_t d = 0; d < t.rank; d++)
        t.dims[d] = dlc_expr_eval(s->graph->pool, value->type.dims[d], small_symbols(s));
    t.size_bytes = small_elems(s, value) * dlc_dtype_bytes(t.dtype);
    return t;
}

/* Every kernel by the interpreter, in `memory`. */
static uint32_t interpret(const small_graph *s, const dlc_module *module, void **memory,
                          trial **trials)
{
    const char *problem;
    uint32_t n = trial_walk(module, small_symbols(s), memory, s->arena, trials, &problem);
    ck_assert_msg(!problem && n, "%s", problem ? problem : "no kernel");
    return n;
}

/* Outputs of one kernel are compared as the kernel's are: exactly, unless it sums. */
static const char *compare(const dlc_module *module, const trial *t, void *const *values,
                           const dlcrt_tensor *out, dlc_arena *arena)
{
    uint32_t ncompared = 0;
    for (uint32_t o = 0; o < module->outputs.n; o++)
        for (uint32_t b = 0; b < t->kernel->buffers.n; b++) {
            int is_it = t->buffers[b] == values[module->outputs.data[o].value];
            const char *problem = is_it ? trial_compare(t, b, out[o].data, NULL, arena) : NULL;
            ncompared += (uint32_t)is_it;
            if (problem)
                return problem;
        }
    ck_assert_uint_eq(ncompared, module->outputs.n);
    return NULL;
}

/* --- memory of the device, an allocation for each tensor: what lies beside it is nobody's --- */
static struct {
    int (*cuDevicePrimaryCtxRetain)(void **, int), (*cuCtxPushCurrent_v2)(void *);
    int (*cuMemAlloc_v2)(uint64_t *, size_t), (*cuMemFree_v2)(uint64_t);
    int (*cuMemcpyHtoDAsync_v2)(uint64_t, const void *, size_t, void *);
    int (*cuMemcpyDtoHAsync_v2)(void *, uint64_t, size_t, void *), (*cuStreamSynchronize)(void *);
} cuda;

static void resolve(void)
{
    if (cuda.cuMemAlloc_v2)
        return;
    void *context, *library = dlopen("libcuda.so.1", RTLD_NOW);
    ck_assert_msg(library != NULL, "there is no libcuda.so.1");
#define RESOLVE(name) *(void **)&cuda.name = dlsym(library, #name)
    RESOLVE(cuDevicePrimaryCtxRetain), RESOLVE(cuCtxPushCurrent_v2), RESOLVE(cuMemAlloc_v2), RESOLVE(cuMemFree_v2);
    RESOLVE(cuMemcpyHtoDAsync_v2), RESOLVE(cuMemcpyDtoHAsync_v2), RESOLVE(cuStreamSynchronize);
#undef RESOLVE
    ck_assert(!cuda.cuDevicePrimaryCtxRetain(&context, 0) && !cuda.cuCtxPushCurrent_v2(context));
}

/* The tensor in an allocation of its own, with its data unless there are none. */
static dlcrt_tensor on_device(dlcrt_tensor t)
{
    uint64_t at;
    ck_assert_int_eq(cuda.cuMemAlloc_v2(&at, t.size_bytes + !t.size_bytes), 0);
    if (t.data)
        ck_assert(!cuda.cuMemcpyHtoDAsync_v2(at, t.data, t.size_bytes, NULL) && !cuda.cuStreamSynchronize(NULL));
    t.data = (void *)(uintptr_t)at;
    t.on_device = 1;
    return t;
}

/* What was on the device is in memory of the arena. */
static int fetch(const small_graph *s, dlcrt_tensor *t)
{
    void *data = dlc_arena_alloc(s->arena, t->size_bytes + 1, 16);
    int failed = cuda.cuMemcpyDtoHAsync_v2(data, (uintptr_t)t->data, t->size_bytes, NULL) || cuda.cuStreamSynchronize(NULL);
    t->data = data;
    return !failed;
}

static void release(const dlcrt_tensor *tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        cuda.cuMemFree_v2((uintptr_t)tensors[i].data);
}

/* The first run has the caller's memory, the others that of the device. */
static const char *run_once(const small_graph *s, const dlc_module *module, dlcrt_context *context,
                            int run, int is_checked)
{
    dlcrt_tensor in[MAX_TENSORS], out[MAX_TENSORS] = {{0}};
    void **memory = small_memory(s);
    fill_inputs(s, memory, run);
    for (uint32_t i = 0; i < s->graph->inputs.n; i++) {
        in[i] = tensor_of(s, s->graph->inputs.data[i], memory[s->graph->inputs.data[i]->id]);
        in[i] = run ? on_device(in[i]) : in[i];
    }
    for (uint32_t o = 0; run && o < s->graph->outputs.n; o++)
        out[o] = on_device(tensor_of(s, s->graph->outputs.data[o].value, NULL));
    dlc_status status =
        dlcrt_context_run(context, in, s->graph->inputs.n, out, s->graph->outputs.n);
    const char *told = status == DLC_OK ? "" : dlc_arena_strdup(s->arena, dlcrt_last_error());
    dlcrt_tensor kept[MAX_TENSORS];
    memcpy(kept, out, sizeof kept);
    const char *problem = NULL;
    for (uint32_t o = 0; run && status == DLC_OK && o < s->graph->outputs.n; o++)
        if (!fetch(s, &out[o]))
            problem = "an output that cannot be copied";
    release(in, run ? s->graph->inputs.n : 0);
    release(kept, run ? s->graph->outputs.n : 0);
    if (problem)
        return problem;
    if (!is_checked)
        return status == DLC_OK ? NULL : told;
    trial *trials;
    void **values = small_values(s, module, memory);
    uint32_t n = interpret(s, module, values, &trials);
    if (trials[n - 1].faults)
        return status == DLC_INVALID ? NULL : "a fault was not told";
    if (status != DLC_OK)
        return told;
    return compare(module, &trials[n - 1], values, out, s->arena);
}

/* Runs `first` to `last` in one context. */
static const char *run_some(const small_graph *s, const dlc_module *module, dlcrt_executable *executable, int first, int last,
                            int is_checked)
{
    dlcrt_context *context;
    const char *problem = NULL;
    if (dlcrt_context_create(executable, NULL, &context) != DLC_OK)
        return dlc_arena_strdup(s->arena, dlcrt_last_error());
    resolve();
    for (int run = first; run <= last && !problem; run++)
        problem = run_once(s, module, context, run, is_checked);
    dlcrt_context_destroy(context);
    return problem;
}

static const char *run_all(const small_graph *s, const dlc_module *module, const package *p,
                           int runs_once)
{
    dlcrt_executable *executable;
    if (dlcrt_executable_open_with(
            &(dlcrt_executable_options){.image = &p->image, .device = "cuda"}, &executable) !=
        DLC_OK)
        return dlc_arena_strdup(s->arena, dlcrt_last_error());
    const char *problem = run_some(s, module, executable, 0, runs_once ? 0 : NRUNS - 1, !runs_once);
    bench_most_blocks = 1;
    if (!problem && !runs_once)
        problem = run_some(s, module, executable, 1, 2, 1);
    bench_most_blocks = INT32_MAX;
    dlcrt_executable_close(executable);
    return problem;
}

const char *bench_run(const char *graph, int arch, const bench_change *change, dlc_arena *arena)
{
    package p = {.binaries = NULL};
    small_graph s = small_begin(graph);
    dlc_module *module = run_strategy(&s, "greedy", dlc_arena_printf(arena, "sm_%d", arch));
    s.ctx.scratch = dlc_arena_create(0);
    const char *problem = dlc_pass_plan_memory(&s.ctx) != DLC_OK ? "no places" : NULL;
    dlc_arena_destroy(s.ctx.scratch);
    problem = problem ? problem : pack(&s, module, arch, change, &p);
    problem = problem ? problem : run_all(&s, module, &p, change->runs_once);
    problem = problem ? dlc_arena_printf(arena, "%s; %s", problem, bench_driver()->fault()) : NULL;
    dlc_str_deinit(&p.code);
    small_end(&s);
    return problem;
}

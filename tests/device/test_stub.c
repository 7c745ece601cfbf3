/*
 * Plans on a CUDA device, with kernels of the tests' own (stub.h): what goes over when, graphs, pointers of the device, streams of
 * others, steps on the CPU.
 */
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/driver.h"
#include "package/plan.h"
#include "codegen/ptx/object.h"
#include "dlc/checksum.h"
#include "dlc/runtime.h"
#include "vgpu/control.h"
#include "tests/unit/made_model.h"
#include "tests/device/stub.h"
#include "tests/unit/suite.h"

/* --- what goes over when --- */
START_TEST(weights_go_over_once_and_the_second_run_is_a_graph)
{
    dlcrt_context *contexts[2];
    open_static();
    OK(open_on(NULL));
    dlcrt_executable_info info;
    dlcrt_executable_describe(executable, &info);
    ck_assert_str_eq(info.device, "cuda:0 (Virtual GPU 0, sm_75)");
    OK(dlcrt_context_create(executable, NULL, &contexts[0]));
    ck_assert_uint_eq(stub->calls("cuMemcpyHtoDAsync_v2"), 1); /* the weights */
    ck_assert_uint_eq(stub->calls("cuMemAlloc_v2"), 2);        /* and one block */
    OK(dlcrt_context_create(executable, NULL, &contexts[1]));
    ck_assert_uint_eq(stub->calls("cuMemcpyHtoDAsync_v2"), 1);
    ck_assert_uint_eq(stub->calls("cuMemAlloc_v2"), 3);
    ck_assert_uint_eq(stub->calls("cuModuleLoadDataEx"), 1);
    for (int run = 0; run < 4; run++) {
        OK(run_once(contexts[0], (float)run));
        ck_assert_uint_eq(stub->calls("cuGraphLaunch"), (unsigned)run);
        ck_assert_uint_eq(stub->calls("cuLaunchKernel"), 1); /* the second is the graph's */
        ck_assert_uint_eq(stub->calls("cuGraphAddKernelNode"), run ? 1u : 0u);
    }
    ck_assert_uint_eq(stub->calls("cuMemAlloc_v2"), 3);
    OK(run_once(contexts[1], 5));
    ck_assert_uint_eq(stub->calls("cuGraphLaunch"), 3);
    dlcrt_context_destroy(contexts[0]);
    OK(run_once(contexts[1], 6));
    dlcrt_context_destroy(contexts[1]);
}
END_TEST

START_TEST(dynamic_shapes_take_new_places)
{
    dlcrt_context *context;
    use_stub();
    stub->set_kernels(&many_rows);
    add_plan(0, add_model(0), "sm_75");
    close_image();
    OK(open_on("cuda:0"));
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.poison = 1}, &context));
    for (int64_t n = 1; n < 400; n = n * 3 + 1) {
        float *x = calloc((size_t)n * N, sizeof *x), *y = calloc((size_t)n * N, sizeof *y);
        for (int64_t i = 0; i < n * N; i++)
            x[i] = (float)i;
        for (int run = 0; run < 3; run++) {
            dlcrt_tensor in = row_of(x, n), out = {.data = y, .size_bytes = (size_t)n * N * 4};
            OK(dlcrt_context_run(context, &in, 1, &out, 1));
            for (int64_t i = 0; i < n * N; i++)
                ck_assert_float_eq(y[i], x[i] + (float)(i % N) + 1);
            memset(y, 0, (size_t)n * N * 4);
        }
        free(x);
        free(y);
    }
    dlcrt_context_destroy(context);
}
END_TEST

START_TEST(a_fault_names_its_node_once)
{
    dlcrt_context *context;
    open_static();
    stub->set_kernels(&faulty);
    OK(open_on("cuda"));
    OK(dlcrt_context_create(executable, NULL, &context));
    for (int run = 0; run < 3; run++) {
        ck_assert_int_eq(run_once(context, 1), DLC_INVALID);
        ck_assert_str_eq(dlcrt_last_error(), "node 'sum': index out of range");
    }
    stub->set_kernels(&one_row);
    OK(run_once(context, 1));
    dlcrt_context_destroy(context);
}
END_TEST

/* The output of one context, where it lies, is the input of another. */
START_TEST(memory_of_the_device_goes_in_and_comes_out)
{
    dlcrt_context *contexts[2];
    float x[N] = {1, 2, 3}, y[N];
    open_static();
    OK(open_on(NULL));
    for (int i = 0; i < 2; i++)
        OK(dlcrt_context_create(executable, &(dlcrt_context_options){.async = i == 0}, &contexts[i]));
    for (int run = 0; run < 3; run++) {
        unsigned waits = stub->calls("cuStreamSynchronize"), copies = stub->calls("cuMemcpyDtoHAsync_v2");
        dlcrt_tensor in = row_of(x, 1), middle = {.on_device = 1}, out = {.data = y, .size_bytes = sizeof y};
        OK(dlcrt_context_run(contexts[0], &in, 1, &middle, 1));
        ck_assert_uint_eq(stub->calls("cuStreamSynchronize"), waits);
        ck_assert_uint_eq(stub->calls("cuMemcpyDtoHAsync_v2"), copies);
        OK(dlcrt_context_wait(contexts[0]));
        OK(dlcrt_context_run(contexts[1], &middle, 1, &out, 1));
        for (int i = 0; i < N; i++)
            ck_assert_float_eq(y[i], x[i] + 2 * (float)(i + 1));
    }
    for (int i = 0; i < 2; i++)
        dlcrt_context_destroy(contexts[i]);
}
END_TEST

/* All calls of the driver so far, but for those that say which context the thread is in. */
static unsigned all_calls(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < nsymbols; i++)
        if (!strstr(symbols[i], "cuCtxP"))
            n += stub->calls(symbols[i]);
    return n;
}

/* What a program calls itself. */
static struct {
    int (*alloc)(uint64_t *, size_t), (*free)(uint64_t);
    int (*in)(uint64_t, const void *, size_t, void *), (*out)(void *, uint64_t, size_t, void *);
    int (*retain)(void **, int), (*release)(int), (*push)(void *), (*pop)(void **);
    int (*create)(void **, unsigned), (*destroy)(void *), (*begin)(void *, int), (*end)(void *, void **);
    int (*drop)(void *);
    void *current;
} theirs;

static void *enter_as_program(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *stream;
    *(void **)&theirs.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&theirs.release = dlsym(library, "cuDevicePrimaryCtxRelease_v2");
    *(void **)&theirs.push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&theirs.pop = dlsym(library, "cuCtxPopCurrent_v2");
    *(void **)&theirs.create = dlsym(library, "cuStreamCreate");
    *(void **)&theirs.destroy = dlsym(library, "cuStreamDestroy_v2");
    *(void **)&theirs.begin = dlsym(library, "cuStreamBeginCapture_v2");
    *(void **)&theirs.end = dlsym(library, "cuStreamEndCapture");
    *(void **)&theirs.drop = dlsym(library, "cuGraphDestroy");
    *(void **)&theirs.alloc = dlsym(library, "cuMemAlloc_v2");
    *(void **)&theirs.free = dlsym(library, "cuMemFree_v2");
    *(void **)&theirs.in = dlsym(library, "cuMemcpyHtoDAsync_v2");
    *(void **)&theirs.out = dlsym(library, "cuMemcpyDtoHAsync_v2");
    ck_assert_int_eq(theirs.retain(&theirs.current, 0) + theirs.push(theirs.current) + theirs.create(&stream, 0), 0);
    return stream;
}

static void leave_as_program(void *stream)
{
    ck_assert_int_eq(theirs.destroy(stream) + theirs.pop(&theirs.current) + theirs.release(0), 0);
}

/* Two buffers in turn for the input and for the output, each as far from its allocation as said. */
static void run_between(dlcrt_context *context, const uint64_t *buffers, int run, uint64_t shift)
{
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(run * i);
    uint64_t from = buffers[run % 2] + shift, to = buffers[2 + run % 2] + shift;
    ck_assert_int_eq(theirs.in(from, x, sizeof x, NULL), 0);
    ck_assert_int_eq(theirs.out(y, from, sizeof y, NULL), 0); /* it has come */
    dlcrt_tensor in = row_of((float *)(uintptr_t)from, 1), out = {.data = (void *)(uintptr_t)to, .on_device = 1, .size_bytes = sizeof y};
    in.on_device = 1;
    OK(dlcrt_context_run(context, &in, 1, &out, 1));
    OK(dlcrt_context_wait(context));
    ck_assert_int_eq(theirs.out(y, to, sizeof y, NULL), 0);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(y[i], x[i] + (float)i + 1);
}

/* Kernels read and write the caller's memory: no copy of it, and from the third run on two calls, to launch and to wait; with
 * other buffers one more for each kernel that has them. What is not aligned for all accesses is copied. */
START_TEST(memory_of_the_device_is_used_where_it_lies)
{
    dlcrt_context *context;
    uint64_t buffers[4];
    open_static();
    OK(open_on(NULL));
    void *stream = enter_as_program();
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(theirs.alloc(&buffers[i], N * sizeof(float) + 64), 0);
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.async = _i & 1, .is_current = _i >> 1 & 1}, &context));
    for (int run = 0; run < 8; run += 2) {
        unsigned before = all_calls();
        run_between(context, buffers, run, 0);
        if (run >= 4)
            ck_assert_uint_eq(all_calls() - before, 2 + 3); /* three are the test's own */
    }
    for (int run = 0; run < 4; run++) {
        unsigned before = all_calls(), pushed = stub->calls("cuCtxPushCurrent_v2");
        run_between(context, buffers, run, 0);
        ck_assert_uint_le(all_calls() - before, 2 + 3 + 1 + 8); /* memory is looked at when it is new */
        ck_assert_uint_eq(stub->calls("cuCtxPushCurrent_v2") - pushed, _i >> 1 & 1 ? 0u : 2u);
    }
    ck_assert_uint_eq(stub->calls("cuMemcpyDtoDAsync_v2"), 0);
    ck_assert_uint_eq(stub->calls("cuGraphInstantiateWithFlags"), 1);
    run_between(context, buffers, 1, 4);
    ck_assert_uint_eq(stub->calls("cuMemcpyDtoDAsync_v2"), 2);
    dlcrt_context_destroy(context);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(theirs.free(buffers[i]), 0);
    leave_as_program(stream);
}
END_TEST

/* While another library records in any thread, memory comes and goes, code is loaded, runs run; and its recording is worth
 * something. */
START_TEST(a_recording_of_others_is_left_alone)
{
    dlcrt_context *context;
    void *graph, *stream;
    use_stub();
    stub->set_kernels(&many_rows);
    add_plan(0, add_model(0), "sm_75");
    close_image();
    OK(open_on(NULL));
    stream = enter_as_program();
    dlcrt_executable_close(executable);
    ck_assert_int_eq(theirs.begin(stream, 0), 0);
    OK(open_on(NULL));
    OK(dlcrt_context_create(executable, NULL, &context));
    for (int64_t rows = 1; rows < 600; rows *= 5) {
        float *x = calloc((size_t)rows * N, sizeof *x);
        for (int run = 0; run < 3; run++) {
            dlcrt_tensor in = row_of(x, rows), out = {0};
            OK(dlcrt_context_run(context, &in, 1, &out, 1));
            ck_assert_float_eq(((float *)out.data)[1], 2);
        }
        free(x);
    }
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    executable = NULL;
    ck_assert_int_eq(theirs.end(stream, &graph), 0);
    ck_assert_int_eq(theirs.drop(graph), 0);
    leave_as_program(stream);
}
END_TEST

/* Times come from the device, also of steps that are nodes of a graph: no step waits for the one before. */
START_TEST(a_profile_is_kept_by_events)
{
    dlcrt_context *context;
    dlcrt_step_profile profile;
    open_static();
    OK(open_on(NULL));
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.profile = 1}, &context));
    for (int run = 0; run < 3; run++) {
        unsigned waits = stub->calls("cuStreamSynchronize");
        OK(run_once(context, (float)run));
        ck_assert_uint_eq(stub->calls("cuStreamSynchronize"), waits + 1);
        ck_assert_uint_eq(stub->calls("cuGraphAddEventRecordNode"), 3);
        ck_assert(dlcrt_context_profile(context, 0, &profile));
        ck_assert_int_ge(profile.begin_ns, 0);
        ck_assert_int_ge(profile.end_ns, profile.begin_ns);
    }
    dlcrt_context_destroy(context);
}
END_TEST

/* A context goes on in the caller's stream. */
START_TEST(runs_go_into_the_stream_that_is_given)
{
    dlcrt_context *contexts[2];
    open_static();
    OK(open_on(NULL));
    void *stream = enter_as_program();
    for (int i = 0; i < 2; i++) {
        OK(dlcrt_context_create(executable, &(dlcrt_context_options){.stream = stream}, &contexts[i]));
        for (int run = 0; run < 3; run++)
            OK(run_once(contexts[i], (float)run));
        dlcrt_context_destroy(contexts[i]);
    }
    leave_as_program(stream);
}
END_TEST

/* Nothing of ours gets into a graph that the program records. */
START_TEST(a_stream_that_is_captured_is_refused)
{
    static const char refusal[] = "the stream of the context's options is being captured; a run cannot be part of another graph";
    dlcrt_context *context, *late;
    void *graph;
    open_static();
    OK(open_on(NULL));
    void *stream = enter_as_program();
    dlcrt_context_options options = {.stream = stream};
    OK(dlcrt_context_create(executable, &options, &context));
    for (int run = 0; run < 3; run++) {
        OK(run_once(context, (float)run));
        ck_assert_int_eq(theirs.begin(stream, 1), 0);
        ck_assert_int_eq(run_once(context, 1), DLC_USAGE);
        ck_assert_str_eq(dlcrt_last_error(), refusal);
        ck_assert_int_eq(dlcrt_context_create(executable, &options, &late), DLC_USAGE);
        ck_assert_int_eq(theirs.end(stream, &graph) + theirs.drop(graph), 0);
    }
    OK(run_once(context, 4));
    dlcrt_context_destroy(context);
    leave_as_program(stream);
}
END_TEST

/* A host address that is said to be one of the device, in and out. */
START_TEST(memory_that_is_not_of_the_device_is_refused)
{
    float x[N] = {1}, y[N];
    dlcrt_context *context;
    open_static();
    OK(open_on(NULL));
    OK(dlcrt_context_create(executable, NULL, &context));
    dlcrt_tensor in = row_of(x, 1), out = {0};
    in.on_device = 1;
    ck_assert_int_eq(dlcrt_context_run(context, &in, 1, &out, 1), DLC_USAGE);
    ck_assert_str_eq(dlcrt_last_error(),
                     "'x' is said to be on the device; no 32 bytes of cuda:0 (Virtual GPU 0, sm_75) are there");
    in.on_device = 0;
    out = (dlcrt_tensor){.data = y, .size_bytes = sizeof y, .on_device = 1};
    ck_assert_int_eq(dlcrt_context_run(context, &in, 1, &out, 1), DLC_USAGE);
    OK(run_once(context, 1));
    dlcrt_context_destroy(context);
}
END_TEST

/* What a run found out too late for its own status is told once, also when other shapes come first. */
START_TEST(a_late_refusal_is_not_lost)
{
    dlcrt_context *context;
    float x[3 * N] = {1};
    use_stub();
    add_plan(0, add_model(0), "sm_75");
    close_image();
    OK(open_on(NULL));
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.async = 1}, &context));
    OK(dlcrt_context_wait(context)); /* for nothing */
    for (int64_t way = 0; way < 2; way++) {
        dlcrt_tensor in = row_of(x, 1), out = {.on_device = 1};
        stub->set_kernels(&faulty_rows);
        OK(dlcrt_context_run(context, &in, 1, &out, 1));
        OK(dlcrt_context_run(context, &in, 1, &out, 1));
        in.dims[0] = 3;
        ck_assert_int_eq(way ? dlcrt_context_run(context, &in, 1, &out, 1) : dlcrt_context_wait(context), DLC_INVALID);
        ck_assert_str_eq(dlcrt_last_error(), "node 'sum': index out of range");
        stub->set_kernels(&many_rows);
        out.data = NULL;
        OK(dlcrt_context_run(context, &in, 1, &out, 1));
        OK(dlcrt_context_wait(context));
        OK(dlcrt_context_wait(context));
    }
    dlcrt_context_destroy(context);
}
END_TEST

/* Two kernels of one binary are one function to the driver: the smaller wish must not take back the larger. */
START_TEST(kernels_of_one_binary_share_what_they_are_allowed)
{
    made_model m = add_model(1);
    dlc_value *z = made_input(&m, "z", DLC_F32, 2, (int64_t[]){3, N + 1});
    dlc_graph_output(m.graph, "w", made_unary(&m, DLC_OP_NEG, "w", z));
    dlcrt_context *context;
    use_stub();
    fixed_bytes[0] = 64 << 10;
    fixed_bytes[1] = 52 << 10;
    add_plan(0, m, "sm_75");
    close_image();
    OK(open_on(NULL));
    dlcrt_executable_info info;
    dlcrt_executable_describe(executable, &info);
    ck_assert_uint_eq(info.nkernels, 2);
    OK(dlcrt_context_create(executable, NULL, &context));
    ck_assert_uint_eq(stub->calls("cuModuleLoadDataEx"), 1);
    float x[N] = {0}, more[3 * (N + 1)] = {0};
    dlcrt_tensor in[] = {row_of(x, 1), {.data = more, .dtype = DLC_F32, .rank = 2, .dims = {3, N + 1}}}, out[2] = {{0}};
    for (int run = 0; run < 2; run++)
        OK(dlcrt_context_run(context, in, 2, out, 2));
    dlcrt_context_destroy(context);
}
END_TEST

static void *run_in_thread(void *start)
{
    dlcrt_context *context;
    OK(dlcrt_context_create(executable, NULL, &context));
    for (int run = 0; run < 50; run++)
        OK(run_once(context, *(float *)start + (float)run));
    dlcrt_context_destroy(context);
    return NULL;
}

START_TEST(contexts_run_on_threads_of_their_own)
{
    pthread_t threads[4];
    float starts[4] = {0, 100, 200, 300};
    open_static();
    OK(open_on(NULL));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_in_thread, &starts[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(stub->calls("cuModuleLoadDataEx"), 1);
}
END_TEST

/* A forked child cannot use the driver: it is told so, and may close what it has inherited. */
START_TEST(a_forked_child_is_told_where_the_driver_is)
{
    dlcrt_context *context;
    open_static();
    OK(open_on(NULL));
    OK(dlcrt_context_create(executable, NULL, &context));
    pid_t child = fork();
    if (child == 0) {
        dlcrt_executable *another;
        dlcrt_executable_options options = {.image = &image, .device = "cuda"};
        int is_told = run_once(context, 1) == DLC_NO_DEVICE && strstr(dlcrt_last_error(), "before this process was forked");
        is_told &= dlcrt_executable_open_with(&options, &another) == DLC_NO_DEVICE &&
                   strstr(dlcrt_last_error(), "before this process was forked");
        dlcrt_context_destroy(context);
        dlcrt_executable_close(executable);
        _exit(is_told ? 0 : 1);
    }
    int state;
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    OK(run_once(context, 1));
    dlcrt_context_destroy(context);
}
END_TEST

/* --- kernels that compute: emulated ones behind the stub --- */
enum { CODE_BYTES = 64, MAX_KERNELS = 64 };
static struct {
    const dlc_module *module;
    const dlc_kernel_fn *functions;
    const dlc_cuda_launch *launches;
    unsigned char code[MAX_KERNELS * CODE_BYTES]; /* kernel i's image is at i * CODE_BYTES */
    _Alignas(64) unsigned char shared[1 << 17];   /* of a block */
} emulated;

static uint32_t number_of(const void *code)
{
    return (uint32_t)(((const unsigned char *)code - emulated.code) / CODE_BYTES);
}

static unsigned emulated_parameters(const void *code)
{
    const dlc_kernel *kernel = emulated.module->kernels.data[number_of(code)].kernel;
    return kernel->buffers.n + kernel->symbols.n + 3;
}

static void emulated_launch(const void *code, const uint64_t *p, unsigned nblocks)
{
    uint32_t i = number_of(code);
    const dlc_kernel *kernel = emulated.module->kernels.data[i].kernel;
    void *buffers[VGPU_MAX_PARAMETERS];
    int64_t sizes[VGPU_MAX_PARAMETERS];
    for (uint32_t k = 0; k < kernel->buffers.n; k++)
        buffers[k] = (void *)(uintptr_t)p[k];
    for (uint32_t k = 0; k < kernel->symbols.n; k++)
        sizes[k] = (int64_t)p[kernel->buffers.n + k];
    const uint64_t *last = p + kernel->buffers.n + kernel->symbols.n; /* fault, first, units */
    int64_t first = (int64_t)last[1], end = first + (int64_t)nblocks * emulated.launches[i].units_per_block;
    dlc_kernel_args args = {buffers, sizes, emulated.shared, (int64_t *)(uintptr_t)last[0]};
    emulated.functions[i](&args, first, end < (int64_t)last[2] ? end : (int64_t)last[2]);
}

static const vgpu_kernels emulated_kernels = {emulated_parameters, emulated_launch};

/* The model's plan for the device, with made-up binaries that say which kernel they are. */
static void plan_emulated(dlc_model *model, dlc_arena *arena)
{
    dlc_diag diag;
    dlc_blob plan;
    dlc_cuda_sources sources;
    const char *text;
    dlc_diag_init(&diag, arena);
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_GRAPH, NULL, &text), DLC_OK); /* passes have run */
    emulated.module = model->ctx.module;
    uint32_t n = emulated.module->kernels.n;
    ck_assert_uint_le(n, MAX_KERNELS);
    ck_assert_int_eq(dlc_cuda_sources_make(emulated.module, arena, &diag, &sources), DLC_OK);
    dlc_plan_binary *binaries = dlc_new_array(arena, dlc_plan_binary, n);
    for (uint32_t i = 0; i < n; i++)
        binaries[i] = (dlc_plan_binary){
            .kind = DLC_BINARY_CUBIN, .arch = 75, .offset = i * CODE_BYTES, .size_bytes = CODE_BYTES};
    dlc_plan_cuda cuda = {
        .launches = sources.launches, .functions = sources.functions, .binaries = binaries, .nbinaries = 1};
    emulated.launches = sources.launches;
    constants = (dlc_pieces){0};
    ck_assert_int_eq(dlc_plan_build(emulated.module, &cuda, &constants, arena, &diag, &plan), DLC_OK);
    entries[0] =
        (dlc_plan_entry){.checksum = dlc_checksum(plan.bytes, plan.size_bytes), .plan = plan.bytes};
    unsigned char *bytes = dlc_arena_alloc(arena, constants.size_bytes, 64);
    for (uint32_t i = 0; i < constants.pieces.n; i++) {
        const dlc_blob *piece = &constants.pieces.data[i];
        if (piece->packing)
            dlc_packing_put(piece->packing, 0, piece->size_bytes, bytes + constants.offsets.data[i]);
        else
            memcpy(bytes + constants.offsets.data[i], piece->bytes, piece->size_bytes);
    }
    image = (dlc_executable){.magic = DLC_EXECUTABLE_MAGIC,
                             .abi_version = DLC_ABI_VERSION,
                             .nplans = 1,
                             .constants_bytes = constants.size_bytes,
                             .constants = bytes,
                             .binaries_bytes = sizeof emulated.code,
                             .binaries = emulated.code,
                             .plans = entries};
}

static void run_digits(dlcrt_executable *from, int64_t batch, uint32_t nruns, float *result)
{
    dlcrt_context *context;
    float *pixels = calloc((size_t)batch * 64, sizeof *pixels);
    for (int64_t i = 0; i < batch * 64; i++)
        pixels[i] = (float)(i * 7 % 17);
    dlcrt_tensor in = {.data = pixels, .dtype = DLC_F32, .rank = 4, .dims = {batch, 1, 8, 8}};
    dlcrt_tensor out = {.data = result, .size_bytes = (size_t)batch * 40};
    OK(dlcrt_context_create(from, &(dlcrt_context_options){.threads = 1, .poison = 1}, &context));
    for (uint32_t run = 0; run < nruns; run++) {
        memset(result, 0, (size_t)batch * 40);
        OK(dlcrt_context_run(context, &in, 1, &out, 1));
    }
    dlcrt_context_destroy(context);
    free(pixels);
}

/* A whole model over the device's plan gives the bits that the same kernels give over the CPU's. */
START_TEST(a_model_computes_the_same_through_the_device)
{
    char path[64];
    dlc_model *model;
    dlcrt_executable *here;
    float results[2][5 * 10];
    dlc_options options = {.target = "sm_75", .emulate_gpu = 1};
    if (system("cc --version >/dev/null 2>&1")) {
        printf("skipped: the emulation needs the C compiler cc\n");
        return;
    }
    snprintf(path, sizeof path, "/tmp/dlc_test_stub_%d.so", getpid());
    dlc_arena *arena = dlc_arena_create(0);
    ck_assert_int_eq(dlc_model_open("models/digits.onnx", &options, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_write(model, "so", path, "digits"), DLC_OK);
    use_stub();
    OK(dlcrt_executable_open(path, &here));
    void *library = dlopen(path, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
    const dlc_executable *linked = dlsym(library, "dlc_executable");
    emulated.functions = linked->plans[0].kernels;
    plan_emulated(model, arena);
    stub->set_kernels(&emulated_kernels);
    OK(open_on("cuda"));
    for (int64_t batch = 1; batch <= 5; batch += 2) {
        run_digits(here, batch, 1, results[0]);
        run_digits(executable, batch, 3, results[1]);
        ck_assert_mem_eq(results[0], results[1], (size_t)batch * 40);
    }
    ck_assert_uint_gt(stub->calls("cuGraphLaunch"), 0);
    dlcrt_executable_close(executable);
    dlcrt_executable_close(here);
    executable = NULL;
    image.nplans = 0;
    dlc_model_close(model);
    dlc_arena_destroy(arena);
    dlclose(library);
    unlink(path);
}
END_TEST

/* --- steps on the CPU --- */
/* (x + c)'s places that are not 0, and the sum: the output's size is known only after the first step. */
START_TEST(steps_on_the_cpu_have_copies_around_them)
{
    made_model m = add_model(1);
    uint32_t count = dlc_graph_symbol(m.graph, "count", DLC_BIND_OPAQUE, NULL, 0);
    m.graph->symbols.data[count].hi = 1 << 20;
    dlc_attr symbol = dlc_attr_int(DLC_ATTR_SYMBOL, count);
    dlc_value *sum = m.graph->outputs.data[0].value;
    dlc_graph_output(m.graph, "at", made_node(&m, DLC_OP_NONZERO, "at", 1, &sum, 1, 1, &symbol)->outputs[0]);
    dlcrt_context *context;
    use_stub();
    stub->set_kernels(&one_row);
    add_plan(0, m, "sm_75");
    close_image();
    OK(open_on(NULL));
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.profile = 1}, &context));
    for (int run = 0; run < 5; run++) {
        float x[N] = {0};
        for (int i = 0; i < run; i++)
            x[i] = -(float)(i + 1);
        dlcrt_tensor in = row_of(x, 1), out[2] = {{0}};
        OK(dlcrt_context_run(context, &in, 1, out, 2));
        ck_assert_int_eq(out[1].dims[1], N - run);
        for (int i = 0; i < N - run; i++)
            ck_assert_int_eq(((int64_t *)out[1].data)[N - run + i], i + run);
    }
    ck_assert_uint_eq(stub->calls("cuGraphLaunch"), 0);
    char text[8192];
    ck_assert_uint_lt(dlcrt_executable_print(executable, text, sizeof text), sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "host"));
    dlcrt_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stub");
    TCase *tests = tcase_create("stub");
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, weights_go_over_once_and_the_second_run_is_a_graph);
    tcase_add_test(tests, dynamic_shapes_take_new_places);
    tcase_add_test(tests, a_fault_names_its_node_once);
    tcase_add_test(tests, memory_of_the_device_goes_in_and_comes_out);
    tcase_add_loop_test(tests, memory_of_the_device_is_used_where_it_lies, 0, 4);
    tcase_add_test(tests, a_recording_of_others_is_left_alone);
    tcase_add_test(tests, a_profile_is_kept_by_events);
    tcase_add_test(tests, runs_go_into_the_stream_that_is_given);
    tcase_add_test(tests, a_stream_that_is_captured_is_refused);
    tcase_add_test(tests, memory_that_is_not_of_the_device_is_refused);
    tcase_add_test(tests, a_late_refusal_is_not_lost);
    tcase_add_test(tests, kernels_of_one_binary_share_what_they_are_allowed);
    tcase_add_test(tests, contexts_run_on_threads_of_their_own);
    tcase_add_test(tests, a_forked_child_is_told_where_the_driver_is);
    tcase_add_test(tests, a_model_computes_the_same_through_the_device);
    tcase_add_test(tests, steps_on_the_cpu_have_copies_around_them);
    add_plan_tests(tests);
    add_failure_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/*
 * What the runtime is asked to do with a virtual GPU, told as text: scenario FOLDER of executables. Shapes
 * that change, runs that are launched, recorded and replayed, two contexts in turn, tensors of the
 * device, runs that are not waited for, steps on the CPU between others, sizes that only the run
 * finds, loops whose turns are nodes of a graph and loops that are walked, calls of the driver that fail,
 * faults. Linked once with the runtime as it is, and once
 * with each bug of runtime_mutants.c.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dlc/runtime.h"
#include "vgpu/control.h"

enum { PIXELS = 64, CLASSES = 10, MOST = 5 };

static void must(int ok, const char *what)
{
    if (ok)
        return;
    printf("%s: %s\n", what, dlcrt_last_error());
    fflush(stdout);
    _Exit(1);
}

static void show(const char *what, const void *bytes, size_t n)
{
    unsigned long long hash = 1469598103934665603u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    printf("%s %016llx\n", what, hash);
}

static void draw(float *pixels, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        pixels[i] = (float)((i * 7 + seed * 13 + i / 64 * 5) % 17);
}

static void run_net(dlcrt_context *context, int64_t batch, unsigned seed)
{
    float pixels[MOST * PIXELS];
    dlcrt_tensor in = {.data = pixels, .dtype = DLC_F32, .rank = 4, .dims = {batch, 1, 8, 8}},
                 out = {.data = NULL};
    draw(pixels, (size_t)batch * PIXELS, seed);
    must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "net");
    show("net", out.data, (size_t)batch * CLASSES * sizeof(float));
}

static void net_in_turn(dlcrt_executable *net)
{
    static const int64_t batches[] = {1, MOST, 2};
    dlcrt_context *contexts[2];
    for (uint32_t c = 0; c < 2; c++)
        must(dlcrt_context_create(net, &(dlcrt_context_options){.threads = 1, .poison = c},
                                  &contexts[c]) == DLC_OK,
             "context");
    for (unsigned b = 0; b < 3; b++)
        for (unsigned i = 0; i < 6; i++)
            run_net(contexts[i % 2], batches[b], i + b);
    dlcrt_context_destroy(contexts[0]);
    run_net(contexts[1], 2, 99);
    dlcrt_context_destroy(contexts[1]);
}

/* --- memory of the device --- */
static struct {
    int (*retain)(void **, int), (*release)(int), (*push)(void *), (*pop)(void **);
    int (*alloc)(uint64_t *, size_t), (*free)(uint64_t);
    int (*in)(uint64_t, const void *, size_t, void *), (*out)(void *, uint64_t, size_t, void *);
    int (*create)(void **, unsigned), (*destroy)(void *), (*begin)(void *, int);
    int (*end)(void *, void **), (*drop)(void *), (*pin)(void **, size_t, unsigned), (*unpin)(void *);
} cu;

static void open_cu(void *library)
{
    static const char *const names[] = {"cuDevicePrimaryCtxRetain",
                                        "cuDevicePrimaryCtxRelease_v2",
                                        "cuCtxPushCurrent_v2",
                                        "cuCtxPopCurrent_v2",
                                        "cuMemAlloc_v2",
                                        "cuMemFree_v2",
                                        "cuMemcpyHtoDAsync_v2",
                                        "cuMemcpyDtoHAsync_v2",
                                        "cuStreamCreate",
                                        "cuStreamDestroy_v2",
                                        "cuStreamBeginCapture_v2",
                                        "cuStreamEndCapture",
                                        "cuGraphDestroy",
                                        "cuMemHostAlloc",
                                        "cuMemFreeHost"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        void *address = dlsym(library, names[i]);
        memcpy((char *)&cu + i * sizeof address, &address, sizeof address);
    }
}

/* Buffers of the device, and the driver as a program has it. */
typedef struct {
    uint64_t in[2], out[2];
    void *current;
} buffers;

static buffers enter(void)
{
    buffers b;
    size_t bytes[2] = {3 * PIXELS * sizeof(float), 3 * CLASSES * sizeof(float)};
    must(!cu.retain(&b.current, 0) && !cu.push(b.current), "context");
    for (int i = 0; i < 2; i++)
        must(!cu.alloc(&b.in[i], bytes[0] + 64) && !cu.alloc(&b.out[i], bytes[1] + 64), "memory");
    return b;
}

static void leave(buffers *b)
{
    for (int i = 0; i < 2; i++)
        must(!cu.free(b->in[i]) && !cu.free(b->out[i]), "memory");
    must(!cu.pop(&b->current) && !cu.release(0), "the end");
}

static dlcrt_tensor input_at(uint64_t at)
{
    return (dlcrt_tensor){.data = (void *)(uintptr_t)at,
                          .on_device = 1,
                          .dtype = DLC_F32,
                          .rank = 4,
                          .dims = {3, 1, 8, 8}};
}

static dlcrt_tensor output_at(uint64_t at)
{
    return (dlcrt_tensor){.data = (void *)(uintptr_t)at,
                          .on_device = 1,
                          .size_bytes = 3 * CLASSES * sizeof(float)};
}

static void run_at(dlcrt_context *context, uint64_t from, uint64_t to, unsigned seed, int is_async)
{
    float pixels[3 * PIXELS], logits[3 * CLASSES];
    dlcrt_tensor in = input_at(from), out = output_at(to);
    draw(pixels, 3 * PIXELS, seed);
    must(!cu.in(from, pixels, sizeof pixels, NULL) && !cu.out(pixels, from, sizeof pixels, NULL),
         "copies");
    must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "device");
    must(!is_async || dlcrt_context_wait(context) == DLC_OK, "wait");
    must(!cu.out(logits, to, sizeof logits, NULL), "what the net gave");
    show("device", logits, sizeof logits);
}

/* The same buffers, others in turn, some that are not aligned. */
static void net_on_device(dlcrt_executable *net, uint32_t is_async)
{
    static const unsigned which[] = {0, 0, 0, 0, 1, 0, 1, 1, 0}, shift[] = {0, 0, 0, 0, 0, 0, 4, 0, 16};
    dlcrt_context *context;
    buffers b = enter();
    must(dlcrt_context_create(net, &(dlcrt_context_options){.async = is_async}, &context) == DLC_OK,
         "context");
    for (unsigned i = 0; i < 9; i++)
        run_at(context, b.in[which[i]] + shift[i], b.out[which[i]] + shift[i], i, (int)is_async);
    dlcrt_tensor in = input_at(b.in[0] + 16), out = output_at(b.out[0]);
    must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK,
         "the last run"); /* under way at the end, if it may be */
    dlcrt_context_destroy(context);
    leave(&b);
}

/* Outputs in memory of the host are waited for, though copies to what is page-locked would not be. */
static void run_to_locked(dlcrt_context *context)
{
    float pixels[3 * PIXELS];
    void *logits;
    must(!cu.pin(&logits, 3 * CLASSES * sizeof(float), 3), "memory of the host");
    for (unsigned i = 0; i < 3; i++) {
        dlcrt_tensor in = {.data = pixels, .dtype = DLC_F32, .rank = 4, .dims = {3, 1, 8, 8}},
                     out = {.data = logits, .size_bytes = 3 * CLASSES * sizeof(float)};
        draw(pixels, 3 * PIXELS, i);
        memset(logits, 0, out.size_bytes);
        must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "page-locked");
        show("page-locked", logits, out.size_bytes);
    }
    must(!cu.unpin(logits), "memory of the host");
}

/* In the caller's stream, between copies of the caller's; and not while that records. */
static void net_in_their_stream(dlcrt_executable *net)
{
    float pixels[3 * PIXELS], logits[3 * CLASSES];
    dlcrt_context *context;
    void *stream, *graph = NULL;
    buffers b = enter();
    must(!cu.create(&stream, 1), "stream");
    must(dlcrt_context_create(net, &(dlcrt_context_options){.async = 1, .stream = stream, .is_current = 1}, &context) == DLC_OK,
         "context");
    for (unsigned i = 0; i < 4; i++) {
        dlcrt_tensor in = input_at(b.in[i % 2]), out = output_at(b.out[i % 2]);
        draw(pixels, 3 * PIXELS, i + 20);
        must(!cu.in(b.in[i % 2], pixels, sizeof pixels, stream), "copies");
        must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "their stream");
        must(i % 2 || !cu.out(logits, b.out[0], sizeof logits, stream), "copies");
        must(dlcrt_context_wait(context) == DLC_OK && (i % 2 == 0 || !cu.out(logits, b.out[1], sizeof logits, NULL)), "copies");
        show("their stream", logits, sizeof logits);
    }
    run_to_locked(context);
    must(!cu.begin(stream, 1), "recording");
    dlcrt_tensor in = input_at(b.in[0]), out = output_at(b.out[0]);
    printf("recorded: %d", (int)dlcrt_context_run(context, &in, 1, &out, 1));
    printf(", %d\n", cu.end(stream, &graph));
    must(!graph || !cu.drop(graph), "graph");
    dlcrt_context_destroy(context);
    must(!cu.destroy(stream), "stream");
    leave(&b);
}

/* A larger run while one of the device is under way; and memory that ends where the tensor does. */
static void net_grows(dlcrt_executable *net)
{
    dlcrt_context *context;
    uint64_t exact[2];
    buffers b = enter();
    must(!cu.alloc(&exact[0], 3 * PIXELS * sizeof(float)) && !cu.alloc(&exact[1], 3 * CLASSES * sizeof(float)), "memory");
    must(dlcrt_context_create(net, &(dlcrt_context_options){.async = 1}, &context) == DLC_OK, "context");
    for (unsigned i = 0; i < 3; i++) {
        run_at(context, exact[0], exact[1], i, 1);
        dlcrt_tensor in = input_at(b.in[0] + 4), out = output_at(b.out[0] + 4); /* copied into memory of the context */
        float pixels[3 * PIXELS];
        draw(pixels, 3 * PIXELS, i);
        must(!cu.in(b.in[0] + 4, pixels, sizeof pixels, NULL) && !cu.out(pixels, b.in[0] + 4, sizeof pixels, NULL), "copies");
        must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "a run under way");
        run_net(context, MOST + (int)i - 2, i);
    }
    dlcrt_context_destroy(context);
    must(!cu.free(exact[0]) && !cu.free(exact[1]), "memory");
    leave(&b);
}

/* Memory that is too short, of the host, or begins outside; and what the run before gave. */
static void net_on_other_memory(dlcrt_executable *net)
{
    float pixels[3 * PIXELS], logits[3 * CLASSES];
    dlcrt_context *context;
    uint64_t shorter;
    buffers b = enter();
    must(!cu.alloc(&shorter, 2 * PIXELS * sizeof(float)), "memory");
    must(dlcrt_context_create(net, NULL, &context) == DLC_OK, "context");
    run_at(context, b.in[0], b.out[0], 1, 0);
    run_at(context, b.in[0], b.out[0], 2, 0);
    dlcrt_tensor fits = input_at(shorter), few = {.data = logits, .size_bytes = sizeof logits};
    fits.dims[0] = 2; /* of three that would be at the same address it has not all */
    draw(pixels, 3 * PIXELS, 3);
    must(!cu.in(shorter, pixels, 2 * PIXELS * sizeof(float), NULL) &&
             !cu.out(pixels, shorter, 2 * PIXELS * sizeof(float), NULL), "copies");
    must(dlcrt_context_run(context, &fits, 1, &few, 1) == DLC_OK, "two of three");
    show("two of three", logits, 2 * CLASSES * sizeof(float));
    void *locked;
    must(!cu.pin(&locked, sizeof pixels, 3), "memory of the host");
    memcpy(locked, pixels, sizeof pixels);
    const uint64_t places[] = {shorter, (uint64_t)(uintptr_t)pixels, (uint64_t)(uintptr_t)locked, b.in[0] - 16, b.in[0]};
    for (int i = 0; i < 5; i++) {
        dlcrt_tensor in = input_at(places[i]), out = {.data = logits, .size_bytes = sizeof logits};
        if (dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK)
            show("other memory", logits, sizeof logits);
        else
            printf("other memory: %s\n", dlcrt_last_error());
    }
    dlcrt_context_destroy(context);
    must(!cu.free(shorter) && !cu.unpin(locked), "memory");
    leave(&b);
}

/* x becomes what gathering gave, again and again, without leaving the device. */
static void gather_in_circles(dlcrt_executable *gather)
{
    float x[28], y[63];
    int64_t indices[9] = {0, 1, 2, 3, 0, 1, 2, 1, 3};
    dlcrt_context *context;
    must(dlcrt_context_create(gather, NULL, &context) == DLC_OK, "context");
    draw(x, 28, 5);
    dlcrt_tensor in[] = {{.data = x, .dtype = DLC_F32, .rank = 2, .dims = {4, 7}},
                         {.data = indices, .dtype = DLC_I64, .rank = 1, .dims = {9}}};
    dlcrt_tensor out = {.on_device = 1};
    for (int i = 0; i < 5; i++) {
        must(dlcrt_context_run(context, in, 2, &out, 1) == DLC_OK, "gather");
        in[0].data = out.data; /* its first rows */
        in[0].on_device = 1;
        out.data = NULL;
    }
    dlcrt_tensor last = {.data = y, .size_bytes = sizeof y};
    must(dlcrt_context_run(context, in, 2, &last, 1) == DLC_OK, "gather");
    show("circles", y, sizeof y);
    dlcrt_context_destroy(context);
}

static void net_profiled(dlcrt_executable *net)
{
    dlcrt_context *context;
    dlcrt_step_profile step;
    int64_t before = 0;
    int is_ordered = 1, nsteps = 0;
    must(dlcrt_context_create(net, &(dlcrt_context_options){.profile = 1}, &context) == DLC_OK,
         "context");
    for (unsigned run = 0; run < 3; run++, before = 0, nsteps = 0) {
        run_net(context, 2, run);
        for (uint32_t i = 0; dlcrt_context_profile(context, i, &step); i++, nsteps++) {
            is_ordered &= step.begin_ns >= before && step.end_ns > step.begin_ns;
            before = step.end_ns;
        }
    }
    dlcrt_context_destroy(context);
    printf("profiled: %s\n", is_ordered ? "in order" : "out of order");
}

/* Somebody else records in all threads meanwhile; behind it the thread minds recordings as before. */
static void net_beside_a_recording(dlcrt_executable *net, const char *path)
{
    dlcrt_executable *again;
    dlcrt_context *context;
    void *stream, *graph = NULL;
    uint64_t at = 0;
    buffers b = enter();
    must(!cu.create(&stream, 1) && !cu.begin(stream, 0), "recording");
    must(dlcrt_context_create(net, NULL, &context) == DLC_OK, "context");
    run_net(context, 3, 1);
    run_net(context, MOST, 2);
    dlcrt_context_destroy(context);
    must(dlcrt_executable_open_with(&(dlcrt_executable_options){.path = path, .device = "cuda"}, &again) == DLC_OK, path);
    if (dlcrt_context_create(again, NULL, &context) != DLC_OK)
        printf("beside a recording: %s\n", dlcrt_last_error());
    dlcrt_context_destroy(context);
    dlcrt_executable_close(again);
    printf("recorded: %d\n", cu.end(stream, &graph));
    must(!graph || !cu.drop(graph), "graph");
    must(!cu.begin(stream, 0), "recording");
    printf("minds: %d", cu.alloc(&at, 64));
    printf(", %d\n", cu.end(stream, &graph));
    must(!cu.destroy(stream), "stream");
    leave(&b);
}

/* --- faults --- */
static void run_gather(dlcrt_context *context, int64_t index)
{
    float x[28], y[63];
    int64_t indices[9] = {0, 1, 2, 3, 0, index, 2, 1, 3};
    draw(x, 28, (unsigned)index);
    dlcrt_tensor in[] = {{.data = x, .dtype = DLC_F32, .rank = 2, .dims = {4, 7}},
                         {.data = indices, .dtype = DLC_I64, .rank = 1, .dims = {9}}};
    dlcrt_tensor out = {.data = y, .size_bytes = sizeof y};
    dlc_status status = dlcrt_context_run(context, in, 2, &out, 1);
    if (status == DLC_OK)
        show("gather", y, sizeof y);
    else
        printf("gather %d: %s\n", (int)status, dlcrt_last_error());
}

/* Faults of one context are none of another's. */
/* A run finds an index out of range, and then the driver fails: neither is told of the next run. */
static void gather_and_lose(dlcrt_executable *gather, const vgpu_control *driver)
{
    dlcrt_context *context;
    must(dlcrt_context_create(gather, NULL, &context) == DLC_OK, "context");
    for (unsigned i = 0; i < 4; i++) {
        run_gather(context, 1);
        driver->fail_call("cuStreamSynchronize", 1);
        run_gather(context, 9);
        driver->fail_call(NULL, 0);
        run_gather(context, 2);
    }
    dlcrt_context_destroy(context);
}

/* Memory of the device for the input or the output is given back after a run that failed: it is looked at anew. */
static void gather_from_what_is_gone(dlcrt_executable *gather, const vgpu_control *driver, int is_output)
{
    enum { BYTES = 63 * sizeof(float) };
    float x[28], y[63];
    int64_t indices[9] = {0, 1, 2, 3, 0, 1, 2, 1, 3};
    uint64_t at;
    dlcrt_context *context;
    buffers b = enter();
    must(!cu.alloc(&at, BYTES), "memory");
    must(dlcrt_context_create(gather, NULL, &context) == DLC_OK, "context");
    draw(x, 28, 6);
    must(!cu.in(is_output ? b.in[0] : at, x, sizeof x, NULL) && !cu.out(x, is_output ? b.in[0] : at, sizeof x, NULL), "copies");
    for (unsigned i = 0; i < 4; i++) {
        dlcrt_tensor in[] = {{.data = (void *)(uintptr_t)(is_output ? b.in[0] : at), .on_device = 1, .dtype = DLC_F32, .rank = 2, .dims = {4, 7}},
                             {.data = indices, .dtype = DLC_I64, .rank = 1, .dims = {9}}};
        dlcrt_tensor out = {.data = (void *)(uintptr_t)(is_output ? at : b.in[1]), .on_device = 1, .size_bytes = BYTES};
        if (i == 2)
            driver->fail_call("cuGraphLaunch", 1);
        dlc_status status = dlcrt_context_run(context, in, 2, &out, 1);
        driver->fail_call(NULL, 0);
        if (status)
            printf("gone %d: %s\n", (int)status, dlcrt_last_error());
        else
            must(!cu.out(y, (uint64_t)(uintptr_t)out.data, BYTES, NULL), "what was gathered");
        if (!status)
            show("gone", y, BYTES);
        must(i != 2 || !cu.free(at), "memory");
    }
    run_gather(context, 3);
    dlcrt_context_destroy(context);
    leave(&b);
}

static void gather_in_two(dlcrt_executable *gather)
{
    dlcrt_context *contexts[2];
    for (int i = 0; i < 2; i++)
        must(dlcrt_context_create(gather, NULL, &contexts[i]) == DLC_OK, "context");
    for (int i = 0; i < 6; i++)
        run_gather(contexts[i % 2], i % 3 ? 1 : 9);
    for (int i = 0; i < 2; i++)
        dlcrt_context_destroy(contexts[i]);
}

static void gather_and_fail(dlcrt_executable *gather)
{
    static const int64_t indices[] = {1, 2, 3, 9, 2, 0, -100, 3, 1};
    dlcrt_context *context;
    must(dlcrt_context_create(gather, NULL, &context) == DLC_OK, "context");
    for (unsigned i = 0; i < sizeof indices / sizeof *indices; i++)
        run_gather(context, indices[i]);
    dlcrt_context_destroy(context);
}

/* --- steps on the CPU, sizes that the run finds, more shared memory than a kernel has unasked --- */
enum { LONGEST = 13000, ROWS = 400, WIDE = 4, NOUTPUTS = 7, PARTS = 5 };

static size_t bytes_of(const dlcrt_tensor *tensor)
{
    size_t bytes = tensor->dtype == DLC_I64 ? sizeof(int64_t) : sizeof(float);
    for (uint32_t k = 0; k < tensor->rank; k++)
        bytes *= (size_t)tensor->dims[k];
    return bytes;
}

/* Of n rows, one element in `each` is positive; another row of p. Outputs go where the context has them, or to memory of the host. */
static void run_mixed(dlcrt_context *context, int64_t n, int64_t p, unsigned each, unsigned seed)
{
    static float x[ROWS * WIDE], r[LONGEST], k[PARTS * LONGEST];
    static unsigned char room[NOUTPUTS][LONGEST * sizeof(float)];
    dlcrt_tensor in[] = {{.data = x, .dtype = DLC_F32, .rank = 2, .dims = {n, WIDE}},
                         {.data = r, .dtype = DLC_F32, .rank = 2, .dims = {1, p}},
                         {.data = k, .dtype = DLC_F32, .rank = 2, .dims = {PARTS, n % 50 + 1}}};
    dlcrt_tensor out[NOUTPUTS] = {{0}};
    draw(r, (size_t)p, seed);
    draw(k, PARTS * 50, seed + 3);
    for (size_t i = 0; i < (size_t)n * WIDE; i++)
        x[i] = (i + seed) % each ? -(float)(i % 13) : (float)(i % 7 + 1);
    for (int i = 0; seed % 2 && i < NOUTPUTS; i++)
        out[i] = (dlcrt_tensor){.data = room[i], .size_bytes = sizeof room[i]};
    if (dlcrt_context_run(context, in, 3, out, NOUTPUTS) != DLC_OK) {
        printf("mixed: %s\n", dlcrt_last_error());
        return;
    }
    for (int i = 0; i < NOUTPUTS; i++)
        show("mixed", out[i].data, bytes_of(&out[i]));
    printf("%zu bytes\n", dlcrt_context_bytes(context));
}

static void mixed_sizes(dlcrt_executable *mixed, uint32_t poison)
{
    static const int64_t rows[] = {3, 3, 60, 60, 3, ROWS, ROWS, 60}, more[] = {5, 5, 40, 9, 9, 9, LONGEST, 70};
    static const unsigned each[] = {50, 2, 50, 3, 1, 9, 40, 200000};
    dlcrt_context *context;
    must(dlcrt_context_create(mixed, &(dlcrt_context_options){.threads = 1, .poison = poison, .profile = poison}, &context) == DLC_OK,
         "context");
    for (unsigned i = 0; i < 8; i++)
        run_mixed(context, rows[i], poison && more[i] == LONGEST ? 80 : more[i], each[i], i);
    dlcrt_context_destroy(context);
}

/* An output whose size the run found, which stays on the device, is the input of the next run. */
static void mixed_in_circles(dlcrt_executable *mixed)
{
    float x[ROWS * WIDE], r[9], k[PARTS];
    dlcrt_context *context;
    dlcrt_tensor in[] = {{.data = x, .dtype = DLC_F32, .rank = 2, .dims = {ROWS, WIDE}},
                         {.data = r, .dtype = DLC_F32, .rank = 2, .dims = {1, 9}},
                         {.data = k, .dtype = DLC_F32, .rank = 2, .dims = {PARTS, 1}}};
    must(dlcrt_context_create(mixed, NULL, &context) == DLC_OK, "context");
    draw(x, ROWS * WIDE, 1), draw(r, 9, 2), draw(k, PARTS, 3);
    for (unsigned i = 0; i < 4; i++) {
        dlcrt_tensor out[NOUTPUTS] = {{0}};
        unsigned char c[ROWS * WIDE * sizeof(float)];
        out[0] = (dlcrt_tensor){.data = c, .size_bytes = sizeof c};
        out[3].on_device = 1;
        must(dlcrt_context_run(context, in, 3, out, NOUTPUTS) == DLC_OK, "mixed");
        show("mixed", c, bytes_of(&out[0]));
        show("mixed", out[4].data, bytes_of(&out[4]));
        in[0].data = out[3].data, in[0].on_device = 1;
        in[0].dims[0] = out[3].dims[1] / 2 < ROWS ? out[3].dims[1] / 2 : ROWS;
    }
    dlcrt_context_destroy(context);
}

/* Weights of a kernel that lie behind constants of the CPU's steps. */
static void boxes_on_host(dlcrt_executable *behind)
{
    float scores[6], y[6];
    dlcrt_context *context;
    must(dlcrt_context_create(behind, NULL, &context) == DLC_OK, "context");
    for (unsigned i = 0; i < 3; i++) {
        dlcrt_tensor in = {.data = scores, .dtype = DLC_F32, .rank = 3, .dims = {1, 1, 6}}, out = {.data = y, .size_bytes = sizeof y};
        draw(scores, 6, i);
        must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "boxes");
        show("boxes", y, sizeof y);
    }
    dlcrt_context_destroy(context);
}

static void sorted_on_host(dlcrt_executable *top)
{
    float x[5 * 9], y[5 * 3];
    dlcrt_context *context;
    must(dlcrt_context_create(top, NULL, &context) == DLC_OK, "context");
    for (unsigned i = 0; i < 5; i++) {
        dlcrt_tensor in = {.data = x, .dtype = DLC_F32, .rank = 2, .dims = {5, 9}}, out = {.data = y, .size_bytes = sizeof y};
        draw(x, 5 * 9, i);
        must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "top");
        show("top", y, sizeof y);
    }
    dlcrt_context_destroy(context);
}

/* --- steps that read and write the caller's memory at once, with two sizes, of which one may be 0 --- */
enum { OF_A = 8, OF_B = 50, MOST_PIECES = 6 };

static void show_device(uint64_t at, size_t n)
{
    float values[MOST_PIECES * OF_B];
    must(!n || !cu.out(values, at, n * sizeof(float), NULL), "copies");
    show("pieces", values, n * sizeof(float));
}

static void run_pieces(dlcrt_context *context, const uint64_t *at, int64_t n, int64_t p, unsigned seed)
{
    float a[MOST_PIECES * OF_A], b[MOST_PIECES * OF_B];
    dlcrt_tensor in[] = {{.data = (void *)(uintptr_t)at[0], .on_device = 1, .dtype = DLC_F32, .rank = 2, .dims = {n, OF_A}},
                         {.data = (void *)(uintptr_t)at[1], .on_device = 1, .dtype = DLC_F32, .rank = 2, .dims = {p, OF_B}}};
    dlcrt_tensor out[3];
    const size_t sizes[] = {(size_t)n * OF_A, (size_t)p * OF_B, (size_t)(n * p)};
    for (int i = 0; i < 3; i++)
        out[i] = (dlcrt_tensor){.data = (void *)(uintptr_t)at[2 + i], .on_device = 1, .size_bytes = sizes[i] * sizeof(float)};
    draw(a, MOST_PIECES * OF_A, seed), draw(b, MOST_PIECES * OF_B, seed + 5);
    must(!cu.in(at[0], a, sizeof a, NULL) && !cu.in(at[1], b, sizeof b, NULL), "copies");
    must(!cu.out(a, at[0], sizeof a, NULL), "copies");
    must(dlcrt_context_run(context, in, 2, out, 3) == DLC_OK, "pieces");
    for (int i = 0; i < 3; i++)
        show_device(at[2 + i], sizes[i]);
}

/* One address changes from run to run; runs without a part of the steps; what a run gave, turned over in place. */
static void pieces_change(dlcrt_executable *pieces, int is_profiled)
{
    static const int64_t ps[] = {3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 4, 4, 0, 0, 0, 5};
    uint64_t at[5], other[5], used[5];
    dlcrt_context *context;
    dlcrt_step_profile step;
    void *current;
    must(!cu.retain(&current, 0) && !cu.push(current), "context");
    for (int i = 0; i < 5; i++)
        must(!cu.alloc(&at[i], 2048) && !cu.alloc(&other[i], 2048), "memory");
    must(dlcrt_context_create(pieces, &(dlcrt_context_options){.async = (uint32_t)is_profiled, .profile = (uint32_t)is_profiled},
                              &context) == DLC_OK, "context");
    memcpy(used, at, sizeof used);
    for (unsigned i = 0; i < sizeof ps / sizeof *ps; i++) {
        used[i % 5] = used[i % 5] == at[i % 5] ? other[i % 5] : at[i % 5];
        run_pieces(context, used, 6, ps[i], i);
        for (uint32_t k = 0; is_profiled && dlcrt_context_profile(context, k, &step); k++)
            printf("%s", step.end_ns > step.begin_ns ? "t" : "-");
    }
    float a[6 * OF_A], e[OF_B];
    dlcrt_tensor in[] = {{.data = a, .dtype = DLC_F32, .rank = 2, .dims = {6, OF_A}},
                         {.data = e, .dtype = DLC_F32, .rank = 2, .dims = {1, OF_B}}};
    draw(a, 6 * OF_A, 9), draw(e, OF_B, 8);
    for (unsigned i = 0; i < 5; i++) {
        dlcrt_tensor out[3] = {{.on_device = 1}};
        must(dlcrt_context_run(context, in, 2, out, 3) == DLC_OK && dlcrt_context_wait(context) == DLC_OK, "in place");
        in[0].data = out[0].data, in[0].on_device = 1;
        show_device((uint64_t)(uintptr_t)out[0].data, 6 * OF_A);
    }
    dlcrt_context_destroy(context);
    for (int i = 0; i < 5; i++)
        must(!cu.free(at[i]) && !cu.free(other[i]), "memory");
    must(!cu.pop(&current) && !cu.release(0), "the end");
}

/* --- loops: the states of one are rows of a stack, or change places --- */
enum { MOST_TURNS = 9, WIDTH = 16 };

/* Tensors of the host, or of the device at at[0..3]: x, h, the stack, the last state. */
static void run_turns(dlcrt_context *context, int64_t n, const uint64_t *at, unsigned seed)
{
    float x[MOST_TURNS * WIDTH], h[WIDTH], s[MOST_TURNS * WIDTH], b[WIDTH];
    size_t bytes = (size_t)n * WIDTH * sizeof(float);
    draw(x, (size_t)n * WIDTH, seed), draw(h, WIDTH, seed + 3);
    dlcrt_tensor in[] = {{.data = x, .dtype = DLC_F32, .rank = 3, .dims = {n, 1, WIDTH}},
                         {.data = h, .dtype = DLC_F32, .rank = 2, .dims = {1, WIDTH}}},
                 out[] = {{.data = s, .size_bytes = bytes}, {.data = b, .size_bytes = sizeof b}};
    for (int i = 0; at && i < 4; i++) {
        dlcrt_tensor *t = i < 2 ? &in[i] : &out[i - 2];
        must(i > 1 || !cu.in(at[i], t->data, i ? sizeof h : bytes, NULL), "copies");
        t->data = (void *)(uintptr_t)at[i];
        t->on_device = 1;
    }
    must(!at || !cu.out(x, at[0], bytes, NULL), "copies");
    if (dlcrt_context_run(context, in, 2, out, 2) != DLC_OK || dlcrt_context_wait(context) != DLC_OK) {
        printf("turns: %s\n", dlcrt_last_error());
        return;
    }
    must(!at || (!cu.out(s, at[2], bytes, NULL) && !cu.out(b, at[3], sizeof b, NULL)), "copies");
    show("turns", s, bytes);
    show("turns", b, sizeof b);
}

/* How often each step ran, and, where all are of the device, whether their times are in order. */
static void show_runs(const dlcrt_context *context, int is_ordered)
{
    dlcrt_step_profile step;
    int64_t begin = 0;
    for (uint32_t i = 0; dlcrt_context_profile(context, i, &step); i++) {
        if (!step.runs)
            continue;
        printf(" %llu%s", (unsigned long long)step.runs, !is_ordered || (step.end_ns > step.begin_ns && step.end_ns > begin) ? "" : "?");
        if (is_ordered) /* virtual: the same in every run */
            printf(" in %lld", (long long)(step.end_ns - step.begin_ns));
        begin = step.begin_ns;
    }
    printf("\n");
}

/* Lengths that change; two contexts in turn; tensors of the device that change one at a time, and some that are not aligned. */
static void turns_change(dlcrt_executable *turns, const dlcrt_context_options *options)
{
    static const int64_t lengths[] = {3, 3, 3, 3, 3, 3, 9, 9, 9, 1, 1, 1, 2, 2, 2, 2, 9, 9};
    uint64_t at[4], other[4], used[4];
    dlcrt_context *contexts[2];
    void *current;
    must(!cu.retain(&current, 0) && !cu.push(current), "context");
    for (int i = 0; i < 4; i++)
        must(!cu.alloc(&at[i], 1024) && !cu.alloc(&other[i], 1024), "memory");
    for (int i = 0; i < 2; i++)
        must(dlcrt_context_create(turns, options, &contexts[i]) == DLC_OK, "context");
    memcpy(used, at, sizeof used);
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        used[i % 4] = used[i % 4] == at[i % 4] ? other[i % 4] + (i > 12 ? 4 : 0) : at[i % 4];
        run_turns(contexts[0], lengths[i], i == 4 || i == 15 ? NULL : used, i);
        run_turns(contexts[1], lengths[17 - i], i % 3 ? NULL : at, i + 40);
        if (options->profile)
            show_runs(contexts[0], 1);
    }
    for (int i = 0; i < 2; i++)
        dlcrt_context_destroy(contexts[i]);
    for (int i = 0; i < 4; i++)
        must(!cu.free(at[i]) && !cu.free(other[i]), "memory");
    must(!cu.pop(&current) && !cu.release(0), "the end");
}

/* How often the loop turns is an element of an input. */
static void run_waits(dlcrt_context *context, int64_t n, unsigned seed)
{
    float x[3 * WIDTH], y[3 * WIDTH];
    dlcrt_tensor in[] = {{.data = x, .dtype = DLC_F32, .rank = 2, .dims = {3, WIDTH}},
                         {.data = &n, .dtype = DLC_I64, .rank = 1, .dims = {1}}},
                 out = {.data = y, .size_bytes = sizeof y};
    draw(x, 3 * WIDTH, seed);
    if (dlcrt_context_run(context, in, 2, &out, 1) == DLC_OK)
        show("waits", y, sizeof y);
    else
        printf("waits: %s\n", dlcrt_last_error());
}

static void waits_change(dlcrt_executable *waits, uint32_t profile)
{
    static const int64_t turns[] = {3, 3, 3, 0, 20, 20, 1, 21, 4};
    dlcrt_context *context;
    must(dlcrt_context_create(waits, &(dlcrt_context_options){.profile = profile, .poison = profile}, &context) == DLC_OK, "context");
    for (unsigned i = 0; i < sizeof turns / sizeof *turns; i++) {
        run_waits(context, turns[i], i);
        if (profile)
            show_runs(context, 0);
    }
    dlcrt_context_destroy(context);
}

/* A branch that the shape chooses says how large the output is. */
static void sides_change(dlcrt_executable *sides)
{
    static const int64_t lengths[] = {3, 3, 3, 9, 9, 9, 2, 2, 2};
    float x[MOST_TURNS * WIDTH];
    dlcrt_context *context;
    must(dlcrt_context_create(sides, NULL, &context) == DLC_OK, "context");
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        dlcrt_tensor in = {.data = x, .dtype = DLC_F32, .rank = 2, .dims = {lengths[i], WIDTH}}, out = {.data = NULL};
        draw(x, (size_t)lengths[i] * WIDTH, i);
        must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "sides");
        printf("%lld ", (long long)out.dims[0]);
        show("sides", out.data, bytes_of(&out));
    }
    dlcrt_context_destroy(context);
}

/* --- the driver's failures: each is told, and the next run is as if there had been none --- */
static void fail_each(dlcrt_executable *turns, const vgpu_control *driver, const char *symbol, unsigned nth)
{
    static const dlcrt_context_options options = {.profile = 1, .poison = 1};
    uint64_t at[4];
    dlcrt_context *context;
    void *current;
    must(!cu.retain(&current, 0) && !cu.push(current), "context");
    for (int i = 0; i < 4; i++)
        must(!cu.alloc(&at[i], 1024), "memory");
    printf("%s %u:\n", symbol, nth);
    driver->fail_call(symbol, nth);
    for (int attempt = 0; attempt < 2; attempt++) {
        if (dlcrt_context_create(turns, attempt ? NULL : &options, &context) != DLC_OK) {
            printf("%s\n", dlcrt_last_error());
            continue;
        }
        for (unsigned i = 0; i < 5; i++)
            run_turns(context, i == 4 ? 5 : 3, i % 2 ? at : NULL, i);
        dlcrt_context_destroy(context);
    }
    driver->fail_call(NULL, 0);
    for (int i = 0; i < 4; i++)
        must(!cu.free(at[i]), "memory");
    must(!cu.pop(&current) && !cu.release(0), "the end");
}

static void turns_fail(const char *path, const vgpu_control *driver)
{
    static const char *const calls[] = {"cuGraphLaunch", "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams",
                                        "cuGraphExecMemcpyNodeSetParams", "cuGraphAddKernelNode", "cuGraphAddMemcpyNode",
                                        "cuGraphAddEventRecordNode", "cuGraphCreate", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2",
                                        "cuMemsetD8Async", "cuEventCreate", "cuEventRecord", "cuEventElapsedTime", "cuMemAlloc_v2",
                                        "cuMemHostGetDevicePointer_v2", "cuStreamCreate"};
    dlcrt_executable *turns;
    must(dlcrt_executable_open_with(&(dlcrt_executable_options){.path = path, .device = "cuda"}, &turns) == DLC_OK, path);
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        for (unsigned nth = 1; nth < 4; nth += 2)
            fail_each(turns, driver, calls[i], nth);
    dlcrt_executable_close(turns);
}

/* Files that are closed while a context of theirs lives, and weights that come at the second attempt. */
static void turns_outlive_their_file(const char *path, const vgpu_control *driver)
{
    dlcrt_executable *turns;
    dlcrt_context *context;
    must(dlcrt_executable_open_with(&(dlcrt_executable_options){.path = path, .device = "cuda"}, &turns) == DLC_OK, path);
    driver->fail_call("cuMemcpyHtoDAsync_v2", 1);
    if (dlcrt_context_create(turns, NULL, &context) != DLC_OK)
        printf("weights: %s\n", dlcrt_last_error());
    driver->fail_call("cuMemAlloc_v2", 1); /* nothing is there to be given back */
    if (dlcrt_context_create(turns, NULL, &context) != DLC_OK)
        printf("weights: %s; %u times memory was given back\n", dlcrt_last_error(), driver->calls("cuMemFree_v2"));
    driver->fail_call(NULL, 0);
    must(dlcrt_context_create(turns, NULL, &context) == DLC_OK, "context");
    dlcrt_executable_close(turns);
    for (unsigned i = 0; i < 3; i++)
        run_turns(context, 3, NULL, i);
    dlcrt_context_destroy(context);
}

/* What a file falls back to, where a driver or a device takes its machine code, its PTX, or neither. */
static void turns_on_machine(const char *path, const vgpu_control *driver, int version, int capability, int takes_none)
{
    dlcrt_executable *turns;
    dlcrt_context *context;
    dlcrt_executable_info info;
    driver->set_version(version);
    driver->set_device(1, capability);
    if (takes_none) /* machine code is never taken, and then not the PTX */
        driver->fail_call("cuModuleLoadDataEx", 2);
    must(dlcrt_executable_open_with(&(dlcrt_executable_options){.path = path}, &turns) == DLC_OK, path);
    dlcrt_executable_describe(turns, &info);
    printf("%d, sm_%d: %s, %s: %s\n", version, capability, info.device, info.target, info.passed);
    must(dlcrt_context_create(turns, &(dlcrt_context_options){.threads = 1}, &context) == DLC_OK, "context");
    run_turns(context, 3, NULL, 7);
    dlcrt_context_destroy(context);
    dlcrt_executable_close(turns);
    if (dlcrt_executable_open_with(&(dlcrt_executable_options){.path = path, .device = "cuda"}, &turns) == DLC_OK)
        dlcrt_executable_close(turns);
    else
        printf("cuda: %s\n", dlcrt_last_error());
    printf("%u modules, %d left\n", driver->calls("cuModuleLoadDataEx"), driver->nlive());
}

/* The runtime asks a driver once what it is, so each is another process's, made before there is any. */
static void turns_fall_back(const char *path, const vgpu_control *driver)
{
    static const struct {
        int version, capability, takes_none;
    } machines[] = {{13000, 75, 0}, {12080, 75, 0}, {12000, 80, 0}, {11040, 75, 0}, {13000, 70, 0}, {13000, 90, 0}, {13000, 75, 1}};
    for (unsigned i = 0; i < sizeof machines / sizeof *machines; i++) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            turns_on_machine(path, driver, machines[i].version, machines[i].capability, machines[i].takes_none);
            fflush(stdout);
            _Exit(0);
        }
        must(child > 0 && waitpid(child, &status, 0) == child, "another process");
        printf("ends with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"net", "gather", "mixed", "pieces", "top", "turns", "waits", "sides", "behind"};
    enum { NEXECUTABLES = sizeof names / sizeof *names };
    dlcrt_executable *executables[NEXECUTABLES];
    char path[1024];
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const vgpu_control *driver = library ? dlsym(library, "vgpu") : NULL;
    if (argc != 2 || !driver)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0); /* whoever reads may stop at the first difference */
    snprintf(path, sizeof path, "%s/turns.so", argv[1]);
    turns_fall_back(path, driver);
    open_cu(library);
    driver->set_device(1, 75); /* machine code would suit */
    for (int i = 0; i < NEXECUTABLES; i++) {
        snprintf(path, sizeof path, "%s/%s.so", argv[1], names[i]);
        must(dlcrt_executable_open_with(&(dlcrt_executable_options){.path = path, .device = "cuda"}, &executables[i]) == DLC_OK, path);
    }
    /* What takes least time comes first: most bugs are seen there. */
    turns_change(executables[5], &(dlcrt_context_options){0});
    turns_change(executables[5], &(dlcrt_context_options){.async = 1, .poison = 1});
    turns_change(executables[5], &(dlcrt_context_options){.profile = 1});
    waits_change(executables[6], 0);
    waits_change(executables[6], 1);
    sides_change(executables[7]);
    gather_in_circles(executables[1]);
    gather_and_fail(executables[1]);
    gather_in_two(executables[1]);
    gather_and_lose(executables[1], driver);
    gather_from_what_is_gone(executables[1], driver, 0);
    gather_from_what_is_gone(executables[1], driver, 1);
    mixed_sizes(executables[2], 0);
    mixed_sizes(executables[2], 1);
    mixed_in_circles(executables[2]);
    pieces_change(executables[3], 0);
    pieces_change(executables[3], 1);
    sorted_on_host(executables[4]);
    boxes_on_host(executables[8]);
    net_in_turn(executables[0]);
    net_on_device(executables[0], 0);
    net_on_device(executables[0], 1);
    net_on_other_memory(executables[0]);
    net_in_their_stream(executables[0]);
    net_grows(executables[0]);
    net_profiled(executables[0]);
    snprintf(path, sizeof path, "%s/turns.so", argv[1]);
    net_beside_a_recording(executables[0], path);
    for (int i = 0; i < NEXECUTABLES; i++)
        dlcrt_executable_close(executables[i]);
    static const char *const counted[] = {"cuGraphLaunch", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemcpyHtoDAsync_v2",
                                          "cuMemcpyDtoHAsync_v2", "cuModuleLoadDataEx", "cuMemAlloc_v2", "cuStreamSynchronize",
                                          "cuCtxPushCurrent_v2", "cuFuncSetAttribute", "cuGraphInstantiateWithFlags",
                                          "cuGraphExecKernelNodeSetParams"};
    printf("left: %d; calls:", driver->nlive());
    for (unsigned i = 0; i < sizeof counted / sizeof *counted; i++)
        printf(" %u %s", driver->calls(counted[i]), counted[i]);
    printf("\n");
    snprintf(path, sizeof path, "%s/turns.so", argv[1]);
    turns_fail(path, driver);
    turns_outlive_their_file(path, driver);
    printf("left: %d\n", driver->nlive());
    return 0;
}

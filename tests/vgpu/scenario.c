/*
 * What the runtime is asked to do with a virtual GPU, told as text: scenario NET GATHER. Shapes
 * that change, runs that are launched, recorded and replayed, two contexts in turn, tensors of the
 * device, runs that are not waited for, faults. Linked once with the runtime as it is, and once
 * with each bug of runtime_mutants.c.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlc/runtime.h"
#include "vgpu/control.h"

enum { PIXELS = 64, CLASSES = 10, MOST = 40 };

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
    static const int64_t batches[] = {1, 3, MOST, 2};
    dlcrt_context *contexts[2];
    for (uint32_t c = 0; c < 2; c++)
        must(dlcrt_context_create(net, &(dlcrt_context_options){.threads = 1, .poison = c},
                                  &contexts[c]) == DLC_OK,
             "context");
    for (unsigned b = 0; b < 4; b++)
        for (unsigned i = 0; i < 8; i++)
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
                                        "cuMemcpyDtoHAsync_v2"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        void *address = dlsym(library, names[i]);
        memcpy((char *)&cu + i * sizeof address, &address, sizeof address);
    }
}

static void net_on_device(dlcrt_executable *net, uint32_t is_async)
{
    float pixels[3 * PIXELS], logits[3 * CLASSES];
    dlcrt_context *context;
    uint64_t at[2];
    void *current;
    must(!cu.retain(&current, 0) && !cu.push(current) && !cu.alloc(&at[0], sizeof pixels) &&
             !cu.alloc(&at[1], sizeof logits),
         "memory");
    must(dlcrt_context_create(net, &(dlcrt_context_options){.async = is_async}, &context) == DLC_OK,
         "context");
    dlcrt_tensor in = {.data = (void *)(uintptr_t)at[0],
                       .on_device = 1,
                       .dtype = DLC_F32,
                       .rank = 4,
                       .dims = {3, 1, 8, 8}};
    dlcrt_tensor out = {
        .data = (void *)(uintptr_t)at[1], .on_device = 1, .size_bytes = sizeof logits};
    for (unsigned i = 0; i < 4; i++) {
        draw(pixels, 3 * PIXELS, i);
        must(!cu.in(at[0], pixels, sizeof pixels, NULL) &&
                 !cu.out(pixels, at[0], sizeof pixels, NULL),
             "copies");
        must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "device");
        must(!is_async || dlcrt_context_wait(context) == DLC_OK, "wait");
        must(!cu.out(logits, at[1], sizeof logits, NULL), "what the net gave");
        show("device", logits, sizeof logits);
    }
    must(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK,
         "the last run"); /* under way at the end, if it may be */
    dlcrt_context_destroy(context);
    must(!cu.free(at[0]) && !cu.free(at[1]) && !cu.pop(&current) && !cu.release(0), "the end");
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

static void gather_and_fail(dlcrt_executable *gather)
{
    static const int64_t indices[] = {1, 2, 3, 9, 2, 0, -100, 3, 1};
    dlcrt_context *context;
    must(dlcrt_context_create(gather, NULL, &context) == DLC_OK, "context");
    for (unsigned i = 0; i < sizeof indices / sizeof *indices; i++)
        run_gather(context, indices[i]);
    dlcrt_context_destroy(context);
}

int main(int argc, char **argv)
{
    dlcrt_executable *executables[2];
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const vgpu_control *driver = library ? dlsym(library, "vgpu") : NULL;
    if (argc != 3 || !driver)
        return 2;
    open_cu(library);
    for (int i = 0; i < 2; i++)
        must(dlcrt_executable_open_with(
                 &(dlcrt_executable_options){.path = argv[i + 1], .device = "cuda"},
                 &executables[i]) == DLC_OK,
             argv[i + 1]);
    net_in_turn(executables[0]);
    net_on_device(executables[0], 0);
    net_on_device(executables[0], 1);
    gather_and_fail(executables[1]);
    for (int i = 0; i < 2; i++)
        dlcrt_executable_close(executables[i]);
    printf("left: %d; calls: %u graphs, %u launches, %u copies of the device\n", driver->nlive(),
           driver->calls("cuGraphLaunch"), driver->calls("cuLaunchKernel"),
           driver->calls("cuMemcpyDtoDAsync_v2"));
    return 0;
}

/*
 * What a run asks of the driver: vgpu_calls MOST_COPIES FILE. The third run of an executable whose inputs and
 * outputs are memory of the virtual GPU may make two calls, to launch a graph and to wait for it, but for those
 * that make the device's context current; none of them copies. The graph's nodes are the steps' launches and at most
 * MOST_COPIES copies, of which none is of the caller's memory.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlc/runtime.h"
#include "vgpu/control.h"

enum { MOST = 64, UNKNOWN = 4 };

static const vgpu_control *gpu;
static int (*begin)(unsigned), (*retain)(void **, int), (*push)(void *), (*allocate)(uint64_t *, size_t);
static int (*copy_in)(uint64_t, const void *, size_t, void *), (*synchronize)(void);

static const char *const symbols[] = {
#define DLC_DRIVER(field, symbol, parameters) symbol,
#include "runtime/driver.def"
#undef DLC_DRIVER
};
enum { NSYMBOLS = sizeof symbols / sizeof *symbols };

static void must(int ok, const char *what)
{
    if (ok)
        return;
    printf("%s: %s\n", what, dlcrt_last_error());
    exit(1);
}

static void open_gpu(void)
{
    void *current, *library = dlopen("libcuda.so.1", RTLD_NOW);
    gpu = library ? dlsym(library, "vgpu") : NULL;
    must(gpu != NULL, "libcuda.so.1 is not the virtual GPU");
    *(void **)&begin = dlsym(library, "cuInit");
    *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **)&copy_in = dlsym(library, "cuMemcpyHtoDAsync_v2");
    *(void **)&synchronize = dlsym(library, "cuCtxSynchronize");
    must(!begin(0) && !retain(&current, 0) && !push(current), "the device's context");
}

/* Zeros of the device. */
static dlcrt_tensor tensor_of(const dlcrt_tensor_info *info, size_t size_bytes)
{
    dlcrt_tensor t = {.dtype = info->dtype, .rank = info->rank, .on_device = 1};
    size_t bytes = 8;
    uint64_t at;
    for (uint32_t k = 0; k < info->rank; k++) {
        t.dims[k] = info->dims[k] < 0 ? UNKNOWN : info->dims[k];
        bytes *= (size_t)t.dims[k];
    }
    void *zeros = calloc(bytes, 1);
    must(zeros && !allocate(&at, bytes) && !copy_in(at, zeros, bytes, NULL) && !synchronize(), "memory");
    free(zeros);
    t.data = (void *)(uintptr_t)at;
    t.size_bytes = size_bytes;
    return t;
}

int main(int argc, char **argv)
{
    dlcrt_tensor in[MOST], out[MOST];
    dlcrt_tensor_info info;
    dlcrt_executable *executable;
    dlcrt_context *context;
    unsigned before[NSYMBOLS], ncalls = 0, nwrong = 0, most = argc == 3 ? (unsigned)atoi(argv[1]) : 0;
    if (argc != 3)
        return 2;
    open_gpu();
    must(dlcrt_executable_open_with(&(dlcrt_executable_options){.path = argv[2], .device = "cuda"}, &executable) == DLC_OK &&
             dlcrt_context_create(executable, NULL, &context) == DLC_OK, argv[2]);
    uint32_t nin = dlcrt_executable_ninputs(executable), nout = dlcrt_executable_noutputs(executable);
    must(nin <= MOST && nout <= MOST, "too many tensors");
    for (uint32_t i = 0; dlcrt_executable_input(executable, i, &info); i++)
        in[i] = tensor_of(&info, 0);
    must(dlcrt_context_prepare(context, in, nin) == DLC_OK, "shapes");
    for (uint32_t i = 0; dlcrt_context_output(context, i, &info); i++)
        out[i] = tensor_of(&info, dlcrt_context_output_bytes(context, i));
    unsigned launched = gpu->calls("cuLaunchKernel"), copied = gpu->calls("cuGraphAddMemcpyNode");
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < NSYMBOLS; i++)
            before[i] = gpu->calls(symbols[i]);
        must(dlcrt_context_run(context, in, nin, out, nout) == DLC_OK, "a run");
    }
    for (int i = 0; i < NSYMBOLS; i++) {
        unsigned n = gpu->calls(symbols[i]) - before[i];
        int is_current = !strcmp(symbols[i], "cuCtxPushCurrent_v2") || !strcmp(symbols[i], "cuCtxPopCurrent_v2");
        ncalls += is_current ? 0 : n;
        if (n && !is_current && strcmp(symbols[i], "cuGraphLaunch") != 0 && strcmp(symbols[i], "cuStreamSynchronize") != 0) {
            printf("%u calls of %s; ", n, symbols[i]);
            nwrong++;
        }
    }
    copied = gpu->calls("cuGraphAddMemcpyNode") - copied;
    printf("%u calls of the driver, %u launches and %u copies as nodes of a graph\n", ncalls,
           gpu->calls("cuLaunchKernel") - launched, copied);
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    return nwrong || ncalls > 2 || copied > most;
}

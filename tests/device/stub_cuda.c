/*
 * A CUDA driver without a device, built as libcuda.so.1: memory is the process's, copies are made at once and only within
 * what was allocated, launches call what the test gave. Any call can be made to fail. What is created is counted, and a
 * handle that is wrong, stale or released twice ends the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device/stub_cuda.h"

#define EXPORT __attribute__((visibility("default")))
enum { MAX_OBJECTS = 4096, MAX_NODES = 512, MAX_SYMBOLS = 64, OUT_OF_MEMORY = 2 };

typedef enum { MEMORY = 1, MODULE, FUNCTION, STREAM, GRAPH, EXEC } kind;
typedef struct {
    kind what;
    unsigned char *bytes; /* MEMORY */
    size_t size_bytes;
    const void *image; /* MODULE */
} object;

typedef struct {
    uint64_t to, from;
    size_t size_bytes; /* of a copy; 0: a launch */
    const void *image;
    uint64_t parameters[STUB_PARAMETERS];
    unsigned nblocks;
} node;

typedef struct {
    object head;
    node nodes[MAX_NODES];
    unsigned nnodes;
} graph;

static struct {
    object *objects[MAX_OBJECTS];
    unsigned nobjects, nlive;
    int nretained, npushed;
    struct {
        const char *symbol;
        unsigned calls;
    } calls[MAX_SYMBOLS];
    char failing[64];
    unsigned fail_in;
    int has_failed;
    int ndevices, capability;
    const stub_kernels *kernels;
    graph *recording;
    object *recording_stream;
    const void *newest_image;
} stub = {.ndevices = 1, .capability = 75};

static void die(const char *what)
{
    fprintf(stderr, "stub driver: %s\n", what);
    abort();
}

/* --- control --- */
static unsigned *calls_of(const char *symbol)
{
    unsigned i = 0;
    while (i < MAX_SYMBOLS && stub.calls[i].symbol && strcmp(stub.calls[i].symbol, symbol) != 0)
        i++;
    if (i == MAX_SYMBOLS)
        die("too many symbols");
    stub.calls[i].symbol = symbol;
    return &stub.calls[i].calls;
}

static int enter(const char *symbol)
{
    ++*calls_of(symbol);
    if (!stub.fail_in || strcmp(stub.failing, symbol) != 0 || --stub.fail_in)
        return 0;
    stub.has_failed = 1;
    return 1;
}

#define ENTER()                                                                                                        \
    do {                                                                                                               \
        if (enter(__func__))                                                                                           \
            return STUB_UNKNOWN;                                                                                       \
    } while (0)

static void control_fail(const char *symbol, unsigned nth)
{
    snprintf(stub.failing, sizeof stub.failing, "%s", symbol ? symbol : "");
    stub.fail_in = symbol ? nth : 0;
    stub.has_failed = 0;
}

static int control_has_failed(void)
{
    return stub.has_failed;
}

static unsigned control_calls(const char *symbol)
{
    for (unsigned i = 0; i < MAX_SYMBOLS && stub.calls[i].symbol; i++)
        if (!strcmp(stub.calls[i].symbol, symbol))
            return stub.calls[i].calls;
    return 0;
}

static int control_nlive(void)
{
    return (int)stub.nlive + stub.nretained + stub.npushed;
}

static void control_set_device(int count, int capability)
{
    stub.ndevices = count;
    stub.capability = capability;
}

static void control_set_kernels(const stub_kernels *kernels)
{
    stub.kernels = kernels;
}

static const void *control_newest_image(void)
{
    return stub.newest_image;
}

EXPORT const stub_control stub_cuda = {control_fail,       control_has_failed, control_calls,       control_nlive,
                                       control_set_device, control_set_kernels, control_newest_image};

/* --- objects --- */
static void *add(kind what, size_t size_bytes)
{
    object *o = calloc(1, what == GRAPH || what == EXEC ? sizeof(graph) : sizeof *o);
    o->what = what;
    o->size_bytes = size_bytes;
    o->bytes = what == MEMORY ? malloc(size_bytes ? size_bytes : 1) : NULL;
    if (stub.nobjects == MAX_OBJECTS)
        die("too many objects");
    stub.objects[stub.nobjects++] = o;
    stub.nlive += what != FUNCTION;
    return o;
}

static object *find(void *handle, kind what)
{
    for (unsigned i = 0; i < stub.nobjects; i++)
        if (stub.objects[i] == handle && stub.objects[i]->what == what)
            return handle;
    die("a handle that is not one");
    return NULL;
}

static void drop(object *o)
{
    unsigned i = 0;
    while (stub.objects[i] != o)
        i++;
    stub.objects[i] = stub.objects[--stub.nobjects];
    stub.nlive--;
    free(o->bytes);
    free(o);
}

static unsigned char *range(uint64_t at, size_t size_bytes)
{
    for (unsigned i = 0; i < stub.nobjects; i++) {
        const object *o = stub.objects[i];
        uint64_t begin = (uint64_t)(uintptr_t)o->bytes;
        if (o->what == MEMORY && at >= begin && at - begin <= o->size_bytes && size_bytes <= o->size_bytes - (at - begin))
            return (unsigned char *)(uintptr_t)at;
    }
    die("memory that was not allocated");
    return NULL;
}

static void needs_context(void)
{
    if (stub.npushed < 1)
        die("no context is current");
}

/* --- the driver --- */
EXPORT int cuInit(unsigned flags);
EXPORT int cuGetErrorName(int error, const char **text);
EXPORT int cuGetErrorString(int error, const char **text);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetName(char *name, int size_bytes, int device);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuCtxPushCurrent_v2(void *context);
EXPORT int cuCtxPopCurrent_v2(void **context);
EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values);
EXPORT int cuModuleUnload(void *module);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuFuncSetAttribute(void *function, int attribute, int value);
EXPORT int cuMemAlloc_v2(uint64_t *at, size_t size_bytes);
EXPORT int cuMemFree_v2(uint64_t at);
EXPORT int cuMemsetD8Async(uint64_t at, unsigned char value, size_t size_bytes, void *stream);
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size_bytes, void *stream);
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size_bytes, void *stream);
EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size_bytes, void *stream);
EXPORT int cuStreamCreate(void **stream, unsigned flags);
EXPORT int cuStreamDestroy_v2(void *stream);
EXPORT int cuStreamSynchronize(void *stream);
EXPORT int cuStreamBeginCapture_v2(void *stream, int mode);
EXPORT int cuStreamEndCapture(void *stream, void **result);
EXPORT int cuGraphInstantiateWithFlags(void **exec, void *handle, unsigned long long flags);
EXPORT int cuGraphLaunch(void *exec, void *stream);
EXPORT int cuGraphDestroy(void *handle);
EXPORT int cuGraphExecDestroy(void *exec);
EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra);

int cuInit(unsigned flags)
{
    (void)flags;
    ENTER();
    return 0;
}

int cuGetErrorName(int error, const char **text)
{
    *text = error == STUB_UNKNOWN ? "CUDA_ERROR_UNKNOWN" : error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : NULL;
    return *text ? 0 : 1;
}

int cuGetErrorString(int error, const char **text)
{
    *text = error == STUB_UNKNOWN ? "unknown error" : error == OUT_OF_MEMORY ? "out of memory" : NULL;
    return *text ? 0 : 1;
}

int cuDeviceGetCount(int *count)
{
    ENTER();
    *count = stub.ndevices;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    ENTER();
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size_bytes, int device)
{
    ENTER();
    snprintf(name, (size_t)size_bytes, "Stub %d", device);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    ENTER();
    *value = attribute == 75 ? stub.capability / 10 : attribute == 76 ? stub.capability % 10 : 65536;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    ENTER();
    *context = &stub;
    stub.nretained++;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    stub.nretained--;
    /* who could not enter the context leaves what is in it to its end */
    while (!stub.nretained && stub.has_failed && !strcmp(stub.failing, "cuCtxPushCurrent_v2") && stub.nobjects)
        drop(stub.objects[0]);
    ENTER();
    return 0;
}

int cuCtxPushCurrent_v2(void *context)
{
    ENTER();
    if (context != &stub)
        die("not the context");
    stub.npushed++;
    return 0;
}

int cuCtxPopCurrent_v2(void **context)
{
    needs_context();
    stub.npushed--;
    *context = &stub;
    ENTER();
    return 0;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values)
{
    (void)n;
    (void)options;
    (void)values;
    needs_context();
    ENTER();
    stub.newest_image = image;
    object *o = *module = add(MODULE, 0);
    o->image = image;
    return 0;
}

int cuModuleUnload(void *module)
{
    needs_context();
    drop(find(module, MODULE));
    ENTER();
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    ENTER();
    if (strcmp(name, "dlc_kernel") != 0)
        die("no such function");
    *function = find(module, MODULE);
    return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)value;
    find(function, MODULE);
    ENTER();
    return attribute == 8 ? 0 : 1;
}

int cuMemAlloc_v2(uint64_t *at, size_t size_bytes)
{
    needs_context();
    if (enter(__func__))
        return OUT_OF_MEMORY;
    object *o = add(MEMORY, size_bytes);
    *at = (uint64_t)(uintptr_t)o->bytes;
    return 0;
}

int cuMemFree_v2(uint64_t at)
{
    needs_context();
    for (unsigned i = 0; i < stub.nobjects; i++)
        if (stub.objects[i]->what == MEMORY && (uint64_t)(uintptr_t)stub.objects[i]->bytes == at) {
            drop(stub.objects[i]);
            ENTER();
            return 0;
        }
    die("memory freed that was not allocated");
    return 1;
}

static int is_recording(void *stream)
{
    if (stream)
        find(stream, STREAM);
    needs_context();
    return stub.recording && stub.recording_stream == stream;
}

static node *record(void)
{
    if (stub.recording->nnodes == MAX_NODES)
        die("too many nodes");
    return &stub.recording->nodes[stub.recording->nnodes++];
}

int cuMemsetD8Async(uint64_t at, unsigned char value, size_t size_bytes, void *stream)
{
    if (is_recording(stream))
        die("memset in a recording");
    ENTER();
    memset(range(at, size_bytes), value, size_bytes);
    return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size_bytes, void *stream)
{
    if (is_recording(stream))
        die("a copy of host memory in a recording");
    ENTER();
    memcpy(range(to, size_bytes), from, size_bytes);
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size_bytes, void *stream)
{
    if (is_recording(stream))
        die("a copy to host memory in a recording");
    ENTER();
    memcpy(to, range(from, size_bytes), size_bytes);
    return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size_bytes, void *stream)
{
    int recording = is_recording(stream);
    ENTER();
    unsigned char *target = range(to, size_bytes), *source = range(from, size_bytes);
    if (recording)
        *record() = (node){.to = to, .from = from, .size_bytes = size_bytes};
    else
        memmove(target, source, size_bytes);
    return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    needs_context();
    ENTER();
    *stream = add(STREAM, 0);
    return 0;
}

int cuStreamDestroy_v2(void *stream)
{
    drop(find(stream, STREAM));
    ENTER();
    return 0;
}

int cuStreamSynchronize(void *stream)
{
    if (is_recording(stream))
        die("waiting for a stream that is recording");
    ENTER();
    return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)mode;
    find(stream, STREAM);
    ENTER();
    stub.recording = add(GRAPH, 0);
    stub.recording_stream = stream;
    return 0;
}

int cuStreamEndCapture(void *stream, void **result)
{
    if (!is_recording(stream))
        die("nothing is recorded");
    graph *recorded = stub.recording;
    stub.recording = NULL;
    *result = NULL;
    if (enter(__func__)) {
        drop(&recorded->head);
        return STUB_UNKNOWN;
    }
    *result = recorded;
    return 0;
}

int cuGraphInstantiateWithFlags(void **exec, void *handle, unsigned long long flags)
{
    (void)flags;
    graph *from = (graph *)find(handle, GRAPH);
    ENTER();
    graph *made = add(EXEC, 0);
    memcpy(made->nodes, from->nodes, sizeof made->nodes);
    made->nnodes = from->nnodes;
    *exec = made;
    return 0;
}

static void execute(const node *n)
{
    if (n->size_bytes)
        memmove(range(n->to, n->size_bytes), range(n->from, n->size_bytes), n->size_bytes);
    else if (stub.kernels)
        stub.kernels->launch(n->image, n->parameters, n->nblocks);
}

int cuGraphLaunch(void *exec, void *stream)
{
    const graph *g = (const graph *)find(exec, EXEC);
    if (is_recording(stream))
        die("a graph launched in a recording");
    ENTER();
    for (unsigned i = 0; i < g->nnodes; i++)
        execute(&g->nodes[i]);
    return 0;
}

int cuGraphDestroy(void *handle)
{
    drop(find(handle, GRAPH));
    ENTER();
    return 0;
}

int cuGraphExecDestroy(void *exec)
{
    drop(find(exec, EXEC));
    ENTER();
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra)
{
    const object *module = find(function, MODULE);
    if (!gx || gy != 1 || gz != 1 || !bx || bx > 1024 || by != 1 || bz != 1 || shared > 65536 || extra)
        die("a launch of wrong size");
    node launched = {.image = module->image, .nblocks = gx};
    unsigned n = stub.kernels ? stub.kernels->nparameters(module->image) : 0;
    for (unsigned i = 0; i < n && i < STUB_PARAMETERS; i++)
        memcpy(&launched.parameters[i], parameters[i], sizeof(uint64_t));
    int recording = is_recording(stream);
    ENTER();
    if (recording)
        *record() = launched;
    else
        execute(&launched);
    return 0;
}

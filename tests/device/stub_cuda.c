/*
 * A CUDA driver without a device, built as libcuda.so.1: memory is the process's, copies stay within what was allocated,
 * launches call what the test gave. Any call can be made to fail. What is created is counted, and a handle that is wrong,
 * stale or released twice ends the process.
 *
 * It is as late as a driver may be: what goes into a stream is done when somebody waits for that stream, so a result that is
 * read too early is not there yet. A copy of host memory takes the bytes when it is called and a copy to host memory waits,
 * as for memory that is not page-locked. Memory that queued work needs must not be freed. It is as strict, too: contexts
 * are current by thread, nothing that allocates may be called by a thread that records, and a forked child has no driver.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/device/stub_cuda.h"

#define EXPORT __attribute__((visibility("default")))
enum { MAX_OBJECTS = 4096, MAX_NODES = 512, MAX_SYMBOLS = 64 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3 };
enum { PLAIN_SHARED_BYTES = 48 << 10, MAX_SHARED_BYTES = 64 << 10 };
static void *const legacy_handle = (void *)1; /* CU_STREAM_LEGACY; NULL is the same stream */

typedef enum { MEMORY = 1, MODULE, FUNCTION, STREAM, GRAPH, EXEC } kind;
typedef struct {
    kind what;
    unsigned char *bytes; /* MEMORY */
    size_t size_bytes;
    const void *image; /* MODULE */
    unsigned shared_bytes; /* MODULE: what a launch may ask for */
} object;

typedef enum { COPY, FILL, LAUNCH } action;
typedef struct {
    action what;
    uint64_t to, from;     /* COPY, FILL */
    size_t size_bytes;     /* COPY, FILL */
    unsigned char *staged; /* COPY of host memory */
    unsigned char value;   /* FILL */
    const void *image;     /* LAUNCH */
    uint64_t parameters[STUB_PARAMETERS];
    unsigned nblocks;
} node;

typedef struct {
    object head;
    node nodes[MAX_NODES];
    unsigned nnodes;
} graph;

typedef struct {
    object head;
    unsigned flags;
    node *queue;
    size_t nqueued, capacity;
    graph *recording;
} stream;

static _Thread_local int npushed, nrecordings; /* of this thread */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stream legacy = {.head.what = STREAM};
static struct {
    object *objects[MAX_OBJECTS];
    unsigned nobjects, nlive;
    int nretained, npushed; /* of all threads */
    pid_t pid;              /* that called cuInit */
    struct {
        const char *symbol;
        unsigned calls;
    } calls[MAX_SYMBOLS];
    char failing[64];
    unsigned fail_in;
    int has_failed;
    int ndevices, capability, version;
    const stub_kernels *kernels;
    const void *newest_image;
} stub = {.ndevices = 1, .capability = 75, .version = 12040};

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

static void unlock(const int *unused)
{
    (void)unused;
    pthread_mutex_unlock(&lock);
}

/* Of every call but cuInit: one at a time, and only in the process that called it. */
#define GUARD()                                                                                                        \
    __attribute__((cleanup(unlock))) const int guard_ = pthread_mutex_lock(&lock);                                     \
    (void)guard_;                                                                                                      \
    if (stub.pid != getpid())                                                                                          \
    return NOT_INITIALIZED

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

static void control_set_version(int version)
{
    stub.version = version;
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
                                       control_set_device, control_set_version, control_set_kernels, control_newest_image};

/* --- objects --- */
static void *add(kind what, size_t size_bytes)
{
    object *o = calloc(1, what == GRAPH || what == EXEC ? sizeof(graph) : what == STREAM ? sizeof(stream) : sizeof *o);
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

static void forget(stream *s)
{
    for (size_t i = 0; i < s->nqueued; i++)
        free(s->queue[i].staged);
    s->nqueued = 0;
}

static void drop(object *o)
{
    unsigned i = 0;
    while (stub.objects[i] != o)
        i++;
    stub.objects[i] = stub.objects[--stub.nobjects];
    stub.nlive--;
    if (o->what == STREAM) {
        forget((stream *)o);
        free(((stream *)o)->queue);
    }
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

static int is_allocated(uint64_t at)
{
    for (unsigned i = 0; i < stub.nobjects; i++) {
        uint64_t begin = (uint64_t)(uintptr_t)stub.objects[i]->bytes;
        if (stub.objects[i]->what == MEMORY && at >= begin && at <= begin + stub.objects[i]->size_bytes)
            return 1;
    }
    return 0;
}

static void needs_context(void)
{
    if (npushed < 1)
        die("no context is current in this thread");
}

static void needs_no_recording(void)
{
    needs_context();
    if (nrecordings)
        die("a call that is not allowed while this thread records");
}

/* --- streams --- */
static stream *stream_of(void *handle)
{
    needs_context();
    return !handle || handle == legacy_handle ? &legacy : (stream *)find(handle, STREAM);
}

static void execute(const node *n)
{
    if (n->what == LAUNCH && stub.kernels)
        stub.kernels->launch(n->image, n->parameters, n->nblocks);
    else if (n->what == FILL)
        memset(range(n->to, n->size_bytes), n->value, n->size_bytes);
    else if (n->what == COPY)
        memmove(range(n->to, n->size_bytes), n->staged ? n->staged : range(n->from, n->size_bytes), n->size_bytes);
}

/* All that is in the stream is done. */
static void finish(stream *s)
{
    for (size_t i = 0; i < s->nqueued; i++)
        execute(&s->queue[i]);
    forget(s);
}

static void put(stream *s, node n)
{
    if (s->recording && s->recording->nnodes == MAX_NODES)
        die("too many nodes");
    if (s->recording) {
        s->recording->nodes[s->recording->nnodes++] = n;
        return;
    }
    if (s->nqueued == s->capacity) {
        s->capacity = 2 * s->capacity + 16;
        s->queue = realloc(s->queue, s->capacity * sizeof *s->queue);
    }
    s->queue[s->nqueued++] = n;
}

static int lies_in(uint64_t at, const object *o)
{
    uint64_t begin = (uint64_t)(uintptr_t)o->bytes;
    return o->what == MEMORY && at >= begin && at < begin + o->size_bytes;
}

static int needs(const node *n, const object *o)
{
    int is_needed = o->what == MODULE ? n->what == LAUNCH && n->image == o->image
                                      : lies_in(n->to, o) || (n->what == COPY && lies_in(n->from, o));
    for (unsigned i = 0; n->what == LAUNCH && i < STUB_PARAMETERS; i++)
        is_needed |= lies_in(n->parameters[i], o);
    return is_needed;
}

static void must_be_idle(const stream *s, const object *o)
{
    for (size_t i = 0; i < s->nqueued; i++)
        if (needs(&s->queue[i], o))
            die("something is released that work in a stream still needs");
}

/* Who could not enter the context leaves what is in it to its end. */
static int was_locked_out(void)
{
    return stub.has_failed && !strcmp(stub.failing, "cuCtxPushCurrent_v2");
}

/* Releases what no stream needs any more. */
static void release(object *o)
{
    must_be_idle(&legacy, o);
    for (unsigned i = 0; i < stub.nobjects && !was_locked_out(); i++)
        if (stub.objects[i]->what == STREAM)
            must_be_idle((stream *)stub.objects[i], o);
    drop(o);
}

/* --- the driver --- */
EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
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
EXPORT int cuStreamIsCapturing(void *stream, int *status);
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
    if (stub.pid && stub.pid != getpid())
        return NOT_INITIALIZED;
    stub.pid = getpid();
    return 0;
}

int cuDriverGetVersion(int *version)
{
    ENTER();
    *version = stub.version;
    return 0;
}

static const struct {
    int error;
    const char *name, *text;
} errors[] = {
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {STUB_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int error_number(int error)
{
    unsigned i = 0;
    while (i < sizeof errors / sizeof errors[0] && errors[i].error != error)
        i++;
    return i < sizeof errors / sizeof errors[0] ? (int)i : -1;
}

int cuGetErrorName(int error, const char **text)
{
    int i = error_number(error);
    *text = i < 0 ? NULL : errors[i].name;
    return i < 0 ? INVALID_VALUE : 0;
}

int cuGetErrorString(int error, const char **text)
{
    int i = error_number(error);
    *text = i < 0 ? NULL : errors[i].text;
    return i < 0 ? INVALID_VALUE : 0;
}

int cuDeviceGetCount(int *count)
{
    GUARD();
    ENTER();
    *count = stub.ndevices;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    GUARD();
    ENTER();
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size_bytes, int device)
{
    GUARD();
    ENTER();
    snprintf(name, (size_t)size_bytes, "Stub %d", device);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    GUARD();
    ENTER();
    *value = attribute == 75 ? stub.capability / 10 : attribute == 76 ? stub.capability % 10 : MAX_SHARED_BYTES;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    GUARD();
    ENTER();
    *context = &stub;
    stub.nretained++;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    GUARD();
    stub.nretained--;
    while (!stub.nretained && was_locked_out() && stub.nobjects)
        drop(stub.objects[0]);
    ENTER();
    return 0;
}

int cuCtxPushCurrent_v2(void *context)
{
    GUARD();
    ENTER();
    if (context != &stub)
        die("not the context");
    npushed++;
    stub.npushed++;
    return 0;
}

int cuCtxPopCurrent_v2(void **context)
{
    GUARD();
    needs_context();
    npushed--;
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
    GUARD();
    needs_no_recording();
    ENTER();
    stub.newest_image = image;
    object *o = *module = add(MODULE, 0);
    o->image = image;
    o->shared_bytes = PLAIN_SHARED_BYTES;
    return 0;
}

int cuModuleUnload(void *module)
{
    GUARD();
    needs_no_recording();
    release(find(module, MODULE));
    ENTER();
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    GUARD();
    needs_context();
    ENTER();
    if (strcmp(name, "dlc_kernel") != 0)
        die("no such function");
    *function = find(module, MODULE);
    return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
    GUARD();
    needs_no_recording();
    object *o = find(function, MODULE);
    ENTER();
    if (attribute != 8 || value < 0 || value > MAX_SHARED_BYTES)
        return INVALID_VALUE;
    o->shared_bytes = (unsigned)value;
    return 0;
}

int cuMemAlloc_v2(uint64_t *at, size_t size_bytes)
{
    GUARD();
    needs_no_recording();
    if (enter(__func__))
        return OUT_OF_MEMORY;
    object *o = add(MEMORY, size_bytes);
    *at = (uint64_t)(uintptr_t)o->bytes;
    return 0;
}

int cuMemFree_v2(uint64_t at)
{
    GUARD();
    needs_no_recording();
    for (unsigned i = 0; i < stub.nobjects; i++)
        if (stub.objects[i]->what == MEMORY && (uint64_t)(uintptr_t)stub.objects[i]->bytes == at) {
            release(stub.objects[i]);
            ENTER();
            return 0;
        }
    die("memory freed that was not allocated");
    return 1;
}

int cuMemsetD8Async(uint64_t at, unsigned char value, size_t size_bytes, void *handle)
{
    GUARD();
    stream *s = stream_of(handle);
    if (s->recording)
        die("memset in a recording");
    ENTER();
    (void)range(at, size_bytes);
    put(s, (node){.what = FILL, .to = at, .value = value, .size_bytes = size_bytes});
    return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size_bytes, void *handle)
{
    GUARD();
    stream *s = stream_of(handle);
    if (s->recording)
        die("a copy of host memory in a recording");
    ENTER();
    (void)range(to, size_bytes);
    unsigned char *staged = malloc(size_bytes);
    memcpy(staged, from, size_bytes);
    put(s, (node){.what = COPY, .to = to, .staged = staged, .size_bytes = size_bytes});
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size_bytes, void *handle)
{
    GUARD();
    stream *s = stream_of(handle);
    if (s->recording)
        die("a copy to host memory in a recording");
    ENTER();
    finish(s);
    memcpy(to, range(from, size_bytes), size_bytes);
    return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size_bytes, void *handle)
{
    GUARD();
    stream *s = stream_of(handle);
    ENTER();
    if (!is_allocated(from) || !is_allocated(to))
        return INVALID_VALUE;
    (void)range(to, size_bytes);
    (void)range(from, size_bytes);
    put(s, (node){.what = COPY, .to = to, .from = from, .size_bytes = size_bytes});
    return 0;
}

int cuStreamCreate(void **handle, unsigned flags)
{
    GUARD();
    needs_context();
    ENTER();
    stream *s = *handle = add(STREAM, 0);
    s->flags = flags;
    return 0;
}

int cuStreamDestroy_v2(void *handle)
{
    GUARD();
    needs_context();
    stream *s = (stream *)find(handle, STREAM);
    finish(s);
    drop(&s->head);
    ENTER();
    return 0;
}

int cuStreamSynchronize(void *handle)
{
    GUARD();
    stream *s = stream_of(handle);
    if (s->recording)
        die("waiting for a stream that is recording");
    finish(s);
    ENTER();
    return 0;
}

int cuStreamIsCapturing(void *handle, int *status)
{
    GUARD();
    stream *s = stream_of(handle);
    ENTER();
    *status = s->recording != NULL;
    return 0;
}

int cuStreamBeginCapture_v2(void *handle, int mode)
{
    GUARD();
    stream *s = stream_of(handle);
    ENTER();
    if (mode != 1 || s == &legacy || s->recording)
        die("a capture that is not the thread's own");
    s->recording = add(GRAPH, 0);
    nrecordings++;
    return 0;
}

int cuStreamEndCapture(void *handle, void **result)
{
    GUARD();
    stream *s = stream_of(handle);
    graph *recorded = s->recording;
    if (!recorded)
        die("nothing is recorded");
    s->recording = NULL;
    nrecordings--;
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
    GUARD();
    needs_context();
    graph *from = (graph *)find(handle, GRAPH);
    ENTER();
    graph *made = add(EXEC, 0);
    memcpy(made->nodes, from->nodes, sizeof made->nodes);
    made->nnodes = from->nnodes;
    *exec = made;
    return 0;
}

int cuGraphLaunch(void *exec, void *handle)
{
    GUARD();
    stream *s = stream_of(handle);
    const graph *g = (const graph *)find(exec, EXEC);
    if (s->recording)
        die("a graph launched in a recording");
    ENTER();
    for (unsigned i = 0; i < g->nnodes; i++)
        put(s, g->nodes[i]);
    return 0;
}

int cuGraphDestroy(void *handle)
{
    GUARD();
    needs_context();
    drop(find(handle, GRAPH));
    ENTER();
    return 0;
}

int cuGraphExecDestroy(void *exec)
{
    GUARD();
    needs_context();
    drop(find(exec, EXEC));
    ENTER();
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *handle, void **parameters, void **extra)
{
    GUARD();
    stream *s = stream_of(handle);
    const object *module = find(function, MODULE);
    if (!gx || gy != 1 || gz != 1 || !bx || bx > 1024 || by != 1 || bz != 1 || extra)
        die("a launch of wrong size");
    node launched = {.what = LAUNCH, .image = module->image, .nblocks = gx};
    unsigned n = stub.kernels ? stub.kernels->nparameters(module->image) : 0;
    for (unsigned i = 0; i < n && i < STUB_PARAMETERS; i++)
        memcpy(&launched.parameters[i], parameters[i], sizeof(uint64_t));
    ENTER();
    if (shared > module->shared_bytes)
        return INVALID_VALUE;
    put(s, launched);
    return 0;
}

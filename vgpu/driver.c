/*
 * A CUDA driver for a device in software, built as libcuda.so.1: device, contexts, modules, memory,
 * launches; streams, graphs and events are in streams.c. Any call can be made to fail, calls are
 * counted and so is what is created (control.h). It is as strict as a driver: contexts are current
 * by thread, faults stick, a forked child has no driver.
 *
 *   DLC_VGPU_DRIVER    525, 535, … 580 (drivers.def); 580 when it is not set
 *   DLC_VGPU_GPU       a file of figures that were measured of a GPU, for predictions
 *   DLC_VGPU_ARCH      75, 80, 86, 89, 90, 100: the device's compute capability; the newest that
 * the driver knows DLC_VGPU_REPORT    a file that gets a table of all launches when the process
 * ends: counts, and times predicted by GPU DLC_VGPU_BACKWARDS 1: the last block and the last warp
 * first
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/device.h"

_Thread_local int vgpu_npushed, vgpu_capture_mode;

/* --- control --- */
enum { MAX_SYMBOLS = 128 };
static struct {
    const char *symbol;
    unsigned calls;
} called[MAX_SYMBOLS];

static unsigned *calls_of(const char *symbol)
{
    unsigned i = 0;
    while (i < MAX_SYMBOLS - 1 && called[i].symbol && strcmp(called[i].symbol, symbol) != 0)
        i++;
    called[i].symbol = symbol;
    return &called[i].calls;
}

/* Calls that tell no fault: who cleans up after one may. */
static int is_deaf(const char *symbol)
{
    static const char *const deaf[] = {
        "cuGetErrorName",      "cuGetErrorString",   "cuDevicePrimaryCtxRelease_v2",
        "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuDriverGetVersion"};
    for (unsigned i = 0; i < sizeof deaf / sizeof *deaf; i++)
        if (!strcmp(deaf[i], symbol))
            return 1;
    return 0;
}

int vgpu_entry(const char *symbol)
{
    device *d = &vgpu_device;
    ++*calls_of(symbol);
    if (d->fail_in && !strcmp(d->failing, symbol) && !--d->fail_in) {
        d->has_failed = 1;
        return !strcmp(symbol, "cuMemAlloc_v2") ? OUT_OF_MEMORY : VGPU_UNKNOWN;
    }
    return is_deaf(symbol) ? 0 : d->sticky;
}

static void control_fail(const char *symbol, unsigned nth)
{
    snprintf(vgpu_device.failing, sizeof vgpu_device.failing, "%s", symbol ? symbol : "");
    vgpu_device.fail_in = symbol ? nth : 0;
    vgpu_device.has_failed = 0;
}

static int control_has_failed(void)
{
    return vgpu_device.has_failed;
}

static unsigned control_calls(const char *symbol)
{
    for (unsigned i = 0; i < MAX_SYMBOLS && called[i].symbol; i++)
        if (!strcmp(called[i].symbol, symbol))
            return called[i].calls;
    return 0;
}

static int control_nlive(void)
{
    return (int)vgpu_device.nlive + vgpu_device.nretained + vgpu_device.npushed;
}

static void control_set_device(int count, int capability)
{
    vgpu_device.ndevices = count;
    vgpu_device.capability = capability;
    vgpu_device.gpu = vgpu_gpu_find(capability);
}

static void control_set_version(int version)
{
    vgpu_device.version = version;
}

static void control_set_opaque(void)
{
    vgpu_device.is_opaque = 1;
    vgpu_device.bias = 0;
}

static void control_set_kernels(const vgpu_kernels *kernels)
{
    vgpu_device.kernels = kernels;
}

static const void *control_newest_image(void)
{
    return vgpu_device.newest_image;
}

static const char *control_fault(void)
{
    return vgpu_device.fault;
}

static void control_set_order(int is_backwards)
{
    vgpu_device.is_backwards = is_backwards;
}

static void control_set_limit(uint64_t instructions)
{
    vgpu_device.limit = instructions;
}

static int control_write_report(const char *path)
{
    FILE *to = fopen(path, "w");
    if (to)
        vgpu_report(&vgpu_device.records, to);
    return to && !fclose(to);
}

EXPORT extern const vgpu_control vgpu;
const vgpu_control vgpu = {.fail_call = control_fail,
                           .has_failed = control_has_failed,
                           .calls = control_calls,
                           .nlive = control_nlive,
                           .set_device = control_set_device,
                           .set_version = control_set_version,
                           .set_opaque = control_set_opaque,
                           .set_kernels = control_set_kernels,
                           .newest_image = control_newest_image,
                           .fault = control_fault,
                           .set_order = control_set_order,
                           .set_limit = control_set_limit,
                           .write_report = control_write_report};

/* --- what it is --- */
static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

__attribute__((constructor)) static void set_up(void)
{
    int branch = number_of("DLC_VGPU_DRIVER", 580), version = vgpu_driver_version(branch);
    if (!version) {
        fprintf(
            stderr,
            "virtual GPU: DLC_VGPU_DRIVER=%d: there is no such driver (drivers.def); it is 580\n",
            branch);
        version = vgpu_driver_version(580);
    }
    const char *measured = getenv("DLC_VGPU_GPU");
    if (measured && *measured && !vgpu_calibrate(measured))
        fprintf(stderr, "virtual GPU: '%s' has no figures of a GPU that is known\n", measured);
    int newest = vgpu_newest_capability(version) >= 100 ? 100 : vgpu_newest_capability(version);
    vgpu_device.version = version;
    vgpu_device.bias = UINT64_C(1) << 56;
    vgpu_device.is_backwards = number_of("DLC_VGPU_BACKWARDS", 0);
    vgpu_device.sample = (unsigned)number_of("DLC_VGPU_SAMPLE", 0);
    control_set_device(1, number_of("DLC_VGPU_ARCH", newest));
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("DLC_VGPU_REPORT");
    if (path && *path && vgpu_device.records.n && !control_write_report(path))
        fprintf(stderr, "virtual GPU: cannot write '%s'\n", path);
}

/* --- the driver --- */
DRIVER(cuInit, unsigned flags)
{
    (void)flags;
    ENTER();
    if (vgpu_device.pid && vgpu_device.pid != getpid())
        return NOT_INITIALIZED;
    if (vgpu_newest_capability(vgpu_device.version) < vgpu_device.capability)
        return NO_DEVICE;
    vgpu_device.pid = getpid();
    return 0;
}

DRIVER(cuDriverGetVersion, int *version)
{
    ENTER();
    *version = vgpu_device.version;
    return 0;
}

/* NVRTC looks for it, and goes on without what it would give. */
DRIVER(cuGetExportTable, const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}

static const struct {
    int error;
    const char *name, *text;
} errors[] = {
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {UNSUPPORTED_PTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {VGPU_BAD_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {VGPU_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {VGPU_MISALIGNED, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {VGPU_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {VGPU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int error_number(int error)
{
    unsigned i = 0;
    while (i < sizeof errors / sizeof errors[0] && errors[i].error != error)
        i++;
    return i < sizeof errors / sizeof errors[0] ? (int)i : -1;
}

DRIVER(cuGetErrorName, int error, const char **text)
{
    int i = error_number(error);
    *text = i < 0 ? NULL : errors[i].name;
    return i < 0 ? INVALID_VALUE : 0;
}

DRIVER(cuGetErrorString, int error, const char **text)
{
    int i = error_number(error);
    *text = i < 0 ? NULL : errors[i].text;
    return i < 0 ? INVALID_VALUE : 0;
}

/* --- devices --- */
DRIVER(cuDeviceGetCount, int *count)
{
    GUARD();
    ENTER();
    *count = vgpu_device.ndevices;
    return 0;
}

DRIVER(cuDeviceGet, int *handle, int ordinal)
{
    GUARD();
    ENTER();
    if (ordinal < 0 || ordinal >= vgpu_device.ndevices)
        return INVALID_DEVICE;
    *handle = ordinal;
    return 0;
}

DRIVER(cuDeviceGetName, char *name, int size_bytes, int handle)
{
    GUARD();
    ENTER();
    snprintf(name, (size_t)size_bytes, "Virtual GPU %d", handle);
    return 0;
}

static int attribute_of(int attribute)
{
    enum {
        SHARED_BLOCK = 8,
        WARP = 10,
        CLOCK_KHZ = 13,
        PROCESSORS = 16,
        THREADS = 39,
        MAJOR = 75,
        MINOR = 76,
        SHARED = 81,
        REGISTERS = 82,
        SHARED_OPTIN = 97
    };
    const vgpu_gpu *gpu = vgpu_device.gpu;
    switch (attribute) {
    case SHARED_BLOCK:
        return PLAIN_SHARED_BYTES;
    case WARP:
        return VGPU_LANES;
    case CLOCK_KHZ:
        return (int)(gpu->ghz * 1e6);
    case PROCESSORS:
        return gpu->sms;
    case THREADS:
        return gpu->threads;
    case MAJOR:
        return vgpu_device.capability / 10;
    case MINOR:
        return vgpu_device.capability % 10;
    case SHARED:
        return gpu->shared_kib * 1024;
    case REGISTERS:
        return 65536;
    case SHARED_OPTIN:
        return gpu->block_kib * 1024;
    case 1:
        return MAX_THREADS;
    default:
        return -1;
    }
}

DRIVER(cuDeviceGetAttribute, int *value, int attribute, int handle)
{
    (void)handle;
    GUARD();
    ENTER();
    *value = attribute_of(attribute);
    return *value < 0 ? INVALID_VALUE : 0;
}

/* --- contexts --- */
void vgpu_needs_context(void)
{
    if (vgpu_npushed < 1)
        vgpu_die("no context is current in this thread");
}

DRIVER(cuDevicePrimaryCtxRetain, void **context, int handle)
{
    (void)handle;
    GUARD();
    ENTER();
    *context = &vgpu_device;
    vgpu_device.nretained++;
    return 0;
}

/* With the last one goes what is in the context, and its fault. Who could not enter leaves things
 * in it. */
DRIVER(cuDevicePrimaryCtxRelease_v2, int handle)
{
    (void)handle;
    GUARD();
    vgpu_device.nretained--;
    int is_locked = vgpu_device.has_failed && !strcmp(vgpu_device.failing, "cuCtxPushCurrent_v2");
    if (!vgpu_device.nretained)
        vgpu_finish(&vgpu_device.orphans);
    while (!vgpu_device.nretained && is_locked && vgpu_device.nobjects)
        vgpu_drop(vgpu_device.objects[0]);
    vgpu_device.sticky = vgpu_device.nretained ? vgpu_device.sticky : 0;
    ENTER();
    return 0;
}

DRIVER(cuCtxPushCurrent_v2, void *context)
{
    GUARD();
    ENTER();
    if (context != &vgpu_device)
        vgpu_die("not the context");
    vgpu_npushed++;
    vgpu_device.npushed++;
    return 0;
}

DRIVER(cuCtxPopCurrent_v2, void **context)
{
    GUARD();
    vgpu_needs_context();
    vgpu_npushed--;
    vgpu_device.npushed--;
    *context = &vgpu_device;
    ENTER();
    return 0;
}

/* --- modules --- */
DRIVER(cuModuleLoadDataEx, void **module, const void *image, unsigned n, int *options,
       void **values)
{
    enum { ERROR_LOG = 5, ERROR_LOG_BYTES = 6 };
    char log[512] = "", *to = NULL;
    size_t log_bytes = 0;
    GUARD();
    vgpu_needs_context();
    SAFE();
    ENTER();
    for (unsigned i = 0; i < n; i++) {
        to = options[i] == ERROR_LOG ? values[i] : to;
        log_bytes = options[i] == ERROR_LOG_BYTES ? (size_t)(uintptr_t)values[i] : log_bytes;
    }
    vgpu_device.newest_image = image;
    object *o = vgpu_add(MODULE, 0);
    int result = vgpu_load_image(o, image, log, sizeof log);
    if (to && log_bytes)
        snprintf(to, log_bytes, "%s", log);
    if (result)
        vgpu_drop(o);
    else
        *module = o;
    return result;
}

DRIVER(cuModuleUnload, void *module)
{
    GUARD();
    vgpu_needs_context();
    SAFE();
    vgpu_release(vgpu_find(module, MODULE));
    ENTER();
    return 0;
}

DRIVER(cuModuleGetFunction, void **found, void *module, const char *name)
{
    GUARD();
    vgpu_needs_context();
    ENTER();
    const object *owner = vgpu_find(module, MODULE);
    for (unsigned i = 0; i < vgpu_device.nobjects; i++) {
        function *f = (function *)vgpu_device.objects[i];
        if (f->head.what == FUNCTION && f->module == owner &&
            (!f->code || !strcmp(f->code->function->name, name))) {
            *found = f;
            return 0;
        }
    }
    return NOT_FOUND;
}

DRIVER(cuFuncSetAttribute, void *handle, int attribute, int value)
{
    enum { MAX_DYNAMIC_SHARED = 8 };
    GUARD();
    vgpu_needs_context();
    SAFE();
    function *f = (function *)vgpu_find(handle, FUNCTION);
    ENTER();
    if (attribute != MAX_DYNAMIC_SHARED || value < 0 || value > vgpu_device.gpu->block_kib * 1024)
        return INVALID_VALUE;
    f->shared_bytes = (unsigned)value;
    return 0;
}

/* --- memory --- */
DRIVER(cuMemAlloc_v2, uint64_t *at, size_t size_bytes)
{
    GUARD();
    vgpu_needs_context();
    SAFE();
    ENTER();
    object *o = size_bytes ? vgpu_add(MEMORY, size_bytes) : NULL;
    if (!o)
        return size_bytes ? OUT_OF_MEMORY : INVALID_VALUE;
    *at = (uint64_t)(uintptr_t)o->bytes + vgpu_device.bias;
    return 0;
}

DRIVER(cuMemFree_v2, uint64_t at)
{
    GUARD();
    vgpu_needs_context();
    SAFE();
    object *o = vgpu_holder(at, 1);
    if (!o || vgpu_host(at) != o->bytes)
        vgpu_die("memory freed that was not allocated");
    vgpu_release(o);
    ENTER();
    return 0;
}

/* Page-locked memory of the host that the device may read and write. */
DRIVER(cuMemHostAlloc, void **at, size_t size_bytes, unsigned flags)
{
    enum { MAPPED = 2 };
    GUARD();
    vgpu_needs_context();
    SAFE();
    ENTER();
    if (!size_bytes || !(flags & MAPPED))
        return INVALID_VALUE;
    object *o = vgpu_add(HOST_MEMORY, size_bytes);
    *at = o ? o->bytes : NULL;
    return o ? 0 : OUT_OF_MEMORY;
}

static object *find_host_memory(const void *at)
{
    object *o = vgpu_holder((uint64_t)(uintptr_t)at + vgpu_device.bias, 1);
    if (!o || o->what != HOST_MEMORY || o->bytes != at)
        vgpu_die("no memory of the host that the driver gave");
    return o;
}

DRIVER(cuMemFreeHost, void *at)
{
    GUARD();
    vgpu_needs_context();
    SAFE();
    vgpu_release(find_host_memory(at));
    ENTER();
    return 0;
}

DRIVER(cuMemHostGetDevicePointer_v2, uint64_t *address, void *at, unsigned flags)
{
    (void)flags;
    GUARD();
    vgpu_needs_context();
    (void)find_host_memory(at);
    ENTER();
    *address = (uint64_t)(uintptr_t)at + vgpu_device.bias;
    return 0;
}

DRIVER(cuPointerGetAttribute, void *value, int attribute, uint64_t at)
{
    enum { MEMORY_TYPE = 2, ORDINAL = 9, OF_HOST = 1, OF_DEVICE = 2 };
    GUARD();
    vgpu_needs_context();
    ENTER();
    const object *o = vgpu_holder(at, 1);
    if (!o || (attribute != MEMORY_TYPE && attribute != ORDINAL))
        return INVALID_VALUE;
    int result = attribute == ORDINAL ? 0 : o->what == MEMORY ? OF_DEVICE : OF_HOST;
    memcpy(value, &result, sizeof result);
    return 0;
}

DRIVER(cuMemsetD8Async, uint64_t at, unsigned char value, size_t size_bytes, void *handle)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(handle);
    ENTER();
    if (!vgpu_holder(at, size_bytes))
        return INVALID_VALUE;
    vgpu_put(s, (node){.what = FILL, .to = at, .value = value, .size_bytes = size_bytes});
    return 0;
}

/* Copies of memory that is not page-locked cannot be recorded. */
static int refuse_recording(stream *s)
{
    s->is_invalid |= s->recording != NULL;
    return s->recording ? CAPTURE_UNSUPPORTED : 0;
}

/* Where page-locked memory of the host stands among the device's addresses: copies of it are late, too. 0: it is none. */
static uint64_t locked(const void *at, size_t size_bytes)
{
    uint64_t place = (uint64_t)(uintptr_t)at + vgpu_device.bias;
    const object *o = vgpu_holder(place, size_bytes);
    return o && o->what == HOST_MEMORY ? place : 0;
}

DRIVER(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t size_bytes, void *handle)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(handle);
    ENTER();
    if (refuse_recording(s))
        return CAPTURE_UNSUPPORTED;
    if (!vgpu_holder(to, size_bytes))
        return INVALID_VALUE;
    uint64_t late = locked(from, size_bytes);
    if (late) {
        vgpu_put(s, (node){.what = COPY, .to = to, .from = late, .size_bytes = size_bytes});
        return 0;
    }
    unsigned char *staged = malloc(size_bytes + 1);
    if (!staged)
        return OUT_OF_MEMORY;
    memcpy(staged, from, size_bytes);
    vgpu_put(s, (node){.what = COPY, .to = to, .staged = staged, .size_bytes = size_bytes});
    return 0;
}

DRIVER(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t size_bytes, void *handle)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(handle);
    ENTER();
    if (refuse_recording(s))
        return CAPTURE_UNSUPPORTED;
    if (!vgpu_holder(from, size_bytes))
        return INVALID_VALUE;
    uint64_t late = locked(to, size_bytes);
    if (late) {
        vgpu_put(s, (node){.what = COPY, .to = late, .from = from, .size_bytes = size_bytes});
        return 0;
    }
    int result = vgpu_finish(s);
    result = result ? result : vgpu_must_be_written(from, size_bytes);
    if (!result)
        memcpy(to, vgpu_host(from), size_bytes);
    return result;
}

DRIVER(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t size_bytes, void *handle)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(handle);
    ENTER();
    if (!vgpu_holder(from, size_bytes) || !vgpu_holder(to, size_bytes))
        return INVALID_VALUE;
    vgpu_put(s, (node){.what = COPY, .to = to, .from = from, .size_bytes = size_bytes});
    return 0;
}

/* --- launches --- */
static size_t parameter_bytes(const function *f)
{
    const vgpu_kernels *kernels = vgpu_device.kernels;
    return f->code   ? f->code->function->param_bytes
           : kernels ? kernels->nparameters(f->module->image) * sizeof(uint64_t)
                     : 0;
}

static unsigned char *pack_parameters(const function *f, void **parameters)
{
    size_t size_bytes = parameter_bytes(f);
    unsigned char *block = calloc(1, VGPU_MAX_PARAMETERS * sizeof(uint64_t) + size_bytes);
    uint32_t n = f->code ? f->code->function->params.n : (uint32_t)(size_bytes / sizeof(uint64_t));
    for (uint32_t i = 0; block && i < n; i++) {
        size_t at = f->code ? f->code->function->params.data[i] : i * sizeof(uint64_t);
        size_t end = f->code && i + 1 < n ? f->code->function->params.data[i + 1]
                     : f->code            ? size_bytes
                                          : at + 8;
        memcpy(block + at, parameters[i], end - at > 8 ? 8 : end - at);
    }
    return block;
}

int vgpu_make_launch(void *handle, const unsigned *grid, const unsigned *block, unsigned shared,
                     void **parameters, node *made)
{
    function *f = (function *)vgpu_find(handle, FUNCTION);
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint32_t most =
        f->code && f->code->function->max_threads ? f->code->function->max_threads : MAX_THREADS;
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > INT32_MAX || grid[1] > 65535 ||
        grid[2] > 65535 || !threads || threads > MAX_THREADS || shared > f->shared_bytes)
        return INVALID_VALUE;
    if (threads > most)
        return OUT_OF_RESOURCES;
    *made = (node){
        .what = LAUNCH, .kernel = f, .shared_bytes = shared, .parameter_bytes = parameter_bytes(f)};
    memcpy(made->grid, grid, sizeof made->grid);
    memcpy(made->block, block, sizeof made->block);
    made->parameters = pack_parameters(f, parameters);
    return made->parameters ? 0 : OUT_OF_MEMORY;
}

DRIVER(cuLaunchKernel, void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
       unsigned by, unsigned bz, unsigned shared, void *of_stream, void **parameters, void **extra)
{
    node launched;
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(of_stream);
    ENTER();
    if (extra)
        vgpu_die("parameters in a buffer of the program's");
    int result = vgpu_make_launch(handle, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz},
                                  shared, parameters, &launched);
    if (!result)
        vgpu_put(s, launched);
    return result;
}

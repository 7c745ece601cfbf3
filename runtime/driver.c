/*
 * The CUDA driver, opened when an executable with a plan for CUDA first asks for it: libcuda.so.1
 * and a table of its functions, nothing else of CUDA. Every failure has the driver's own name and
 * text for it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cuda.h"

static const char *const symbols[DLCRT_CU_COUNT] = {
#define DLC_DRIVER(field, symbol, parameters) symbol,
#include "runtime/driver.def"
#undef DLC_DRIVER
};

static const size_t offsets[DLCRT_CU_COUNT] = {
#define DLC_DRIVER(field, symbol, parameters) offsetof(dlcrt_driver, field),
#include "runtime/driver.def"
#undef DLC_DRIVER
};

/* CUdevice_attribute */
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, MAX_SHARED_OPTIN = 97 };

static const struct {
    int first, last;
    dlc_status status;
} ranges[] = {
#define DLC_CU_RANGE(first, last, status) {first, last, DLC_##status},
#include "runtime/driver_errors.def"
#undef DLC_CU_RANGE
};

static dlc_status status_of(int result)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (result >= ranges[i].first && result <= ranges[i].last)
            return ranges[i].status;
    return DLC_INTERNAL;
}

/* A child of fork() has the parent's addresses and none of its driver. */
static int is_forked(const dlcrt_driver *driver, int result)
{
    return result == DLCRT_CU_NOT_INITIALIZED && driver->pid != getpid();
}

dlc_status dlcrt_driver_fail(const dlcrt_driver *driver, int result, dlcrt_driver_call call,
                             const char *what)
{
    const char *name = NULL, *text = NULL;
    if (driver->error_name(result, &name) || !name)
        name = "unknown error";
    if (driver->error_text(result, &text) || !text)
        text = "no text";
    return dlcrt_fail(status_of(result), "CUDA driver: %s: %s (%d, %s): %s%s", symbols[call], name,
                      result, text, what,
                      is_forked(driver, result)
                          ? "; it was opened before this process was forked, and works only there: "
                            "fork first, or start the process anew (spawn)"
                          : "");
}

enum { CAPTURE_RELAXED = 2 };

dlc_status dlcrt_capture_relax(const dlcrt_driver *driver, int *mode)
{
    *mode = CAPTURE_RELAXED;
    DLCRT_CUDA(driver, capture_mode, "what the thread minds", mode);
    return DLC_OK;
}

void dlcrt_capture_restore(const dlcrt_driver *driver, int mode)
{
    (void)driver->capture_mode(&mode);
}

/* One library per process, as there is one driver; a failure is tried again by the next who asks.
 */
static dlcrt_driver opened;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static dlc_status resolve(dlcrt_driver *driver)
{
    for (uint32_t i = 0; i < DLCRT_CU_COUNT; i++) {
        void *address = dlsym(driver->library, symbols[i]);
        if (!address)
            return dlcrt_fail(
                DLC_NO_DEVICE,
                "the CUDA driver (libcuda.so.1) has no %s: it is older than CUDA 11.4", symbols[i]);
        memcpy((char *)driver + offsets[i], &address, sizeof address);
    }
    return DLC_OK;
}

static dlc_status initialise(dlcrt_driver *driver)
{
    driver->pid = getpid();
    DLCRT_CUDA(driver, init, "the driver cannot be used", 0);
    DLCRT_CUDA(driver, driver_version, "the driver cannot be used", &driver->version);
    return DLC_OK;
}

static dlc_status open_driver(void)
{
    dlcrt_driver driver = {.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!driver.library) {
        const char *text = dlerror();
        return dlcrt_fail(DLC_NO_DEVICE, "the CUDA driver is not there: %s",
                          text ? text : "libcuda.so.1");
    }
    dlc_status status = resolve(&driver);
    if (status) {
        dlclose(driver.library);
        return status;
    }
    status = initialise(&driver); /* from here on it may have threads: it stays, whatever it says */
    if (status == DLC_OK)
        opened = driver;
    return status;
}

static dlc_status use_driver(const dlcrt_driver **driver)
{
    pthread_mutex_lock(&lock);
    dlc_status status = opened.library ? DLC_OK : open_driver();
    pthread_mutex_unlock(&lock);
    *driver = &opened;
    return status;
}

static dlc_status describe(const dlcrt_driver *driver, int ordinal, dlcrt_device *device)
{
    int major = 0, minor = 0;
    *device = (dlcrt_device){.driver = driver, .ordinal = ordinal};
    DLCRT_CUDA(driver, device_get, "a device", &device->handle, ordinal);
    DLCRT_CUDA(driver, device_name, "a device's name", device->name, (int)sizeof device->name - 1,
               device->handle);
    DLCRT_CUDA(driver, device_attribute, "a device's capability", &major, CAPABILITY_MAJOR,
               device->handle);
    DLCRT_CUDA(driver, device_attribute, "a device's capability", &minor, CAPABILITY_MINOR,
               device->handle);
    DLCRT_CUDA(driver, device_attribute, "a device's shared memory", &device->max_shared_bytes,
               MAX_SHARED_OPTIN, device->handle);
    device->capability = (uint32_t)(10 * major + minor);
    dlcrt_text text = {device->text, sizeof device->text, 0};
    dlcrt_text_add(&text, "cuda:%d (%s, sm_%u)", ordinal, device->name, device->capability);
    return DLC_OK;
}

dlc_status dlcrt_cuda_find(int ordinal, dlcrt_device *device)
{
    const dlcrt_driver *driver;
    int count = 0;
    DLC_TRY(use_driver(&driver));
    DLCRT_CUDA(driver, device_count, "the number of devices", &count);
    if (count <= 0)
        return dlcrt_fail(DLC_NO_DEVICE, "the CUDA driver sees no device");
    if (ordinal >= count)
        return dlcrt_fail(DLC_NO_DEVICE, "there is no device cuda:%d; the driver sees %d", ordinal,
                          count);
    if (ordinal >= 0)
        return describe(driver, ordinal, device);
    *device = (dlcrt_device){0};
    dlc_status status = DLC_OK;
    for (int i = 0; i < count; i++) {
        dlcrt_device other;
        dlc_status result = describe(driver, i, &other);
        status = result ? result : status;
        if (result == DLC_OK && (!device->driver || other.capability > device->capability))
            *device = other;
    }
    return device->driver ? DLC_OK : status;
}

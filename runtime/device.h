/* What a device is to the runtime: a row of functions for each of device.def. Nothing but a row
 * knows its device; the walk of a plan, contexts and executables ask the row. */
#ifndef DLCRT_DEVICE_H
#define DLCRT_DEVICE_H

#include "runtime/internal.h"

/* A plan that is looked at: in a loaded image, or linked into the program. */
typedef struct {
    const char *name; /* of the file, for messages */
    const dlcrt_image *image;
    const dlc_plan_entry *entry;
} dlcrt_candidate;

/* Every function runs between enter and leave but those of executables, open and close. */
struct dlcrt_device_row {
    const char *text; /* device.def's */
    uint8_t is_host;  /* its memory is the process's own: kernels are given the caller's buffers */
    uint8_t keeps_times; /* of its steps, in a profile, without anybody waiting for each */

    /* Device `ordinal`, -1: the best; opens what it takes. The text names it: "cuda:0 (…)". */
    dlc_status (*find)(int ordinal, dlcrt_device *device);
    /* The higher, the better; 0 when the plan does not run there, with the reason as the last
     * error. */
    uint32_t (*rank)(const dlcrt_candidate *of, const dlcrt_device *device);
    /* What this device follows in plans: the code, launches. */
    dlc_status (*check)(const dlcrt_candidate *of);

    /* Of an executable: kernels and weights, into executable->loaded. Destroyed also when it was
     * never made. */
    dlc_status (*load)(dlcrt_executable *executable);
    void (*unload)(dlcrt_executable *executable);

    /* Of a context, into context->held. Closed also when it was never opened, or in part. */
    dlc_status (*open)(dlcrt_context *context, const dlcrt_context_options *options);
    void (*close)(dlcrt_context *context);
    dlc_status (*enter)(dlcrt_context *context);
    void (*leave)(dlcrt_context *context);
    /* Memory for what phases up to `phase` made known; context->arena is at least arena_bytes then.
     */
    dlc_status (*place)(dlcrt_context *context, uint32_t phase, size_t arena_bytes);
    /* Where a constant, an input or an output lies; NULL: the caller's memory, which each run
     * brings. */
    void *(*address)(const dlcrt_context *context, const dlc_plan_ref *ref);
    /* The context's own memory for output i on the device; NULL: is_host. */
    void *(*own_output)(const dlcrt_context *context, uint32_t i);
    size_t (*bytes)(const dlcrt_context *context);
    /* The sizes of a launch are known; scratch_bytes: the most per thread that any needs of the
     * host's memory. */
    dlc_status (*size_launch)(dlcrt_context *context, const dlc_plan_step *step,
                              size_t *scratch_bytes);

    /* A run: what is copied goes over, the steps by `walk` or as they were recorded, outputs come
     * back. */
    dlc_status (*run)(dlcrt_context *context, dlc_status (*walk)(dlcrt_context *context));
    dlc_status (*launch)(dlcrt_context *context, const dlc_plan_step *step);
    dlc_status (*copy)(dlcrt_context *context, const dlc_plan_step *step);
    dlc_status (*wait)(dlcrt_context *context); /* until the device has done what it was given */
    dlc_status (*finish)(
        dlcrt_context *context); /* waits for the runs so far; an index out of range is told */
};

#define DLC_DEVICE(id, number, text) extern const dlcrt_device_row dlcrt_device_##id;
#include "dlc/device.def"
#undef DLC_DEVICE
extern const dlcrt_device_row *const dlcrt_devices[DLC_DEVICE_COUNT];

/* [at, at + n) in the loaded image, aligned; nothing is known about programs' own memory. */
int dlcrt_image_has(const dlcrt_image *image, const void *at, uint64_t n);
/* "NAME: its plan is damaged: …" */
dlc_status dlcrt_damaged(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

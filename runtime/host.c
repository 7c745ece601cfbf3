/*
 * The CPU as a device: kernels are functions of the loaded file, called by a pool of threads;
 * memory is the process's own, so inputs, outputs and constants are read where they are.
 */
#include "runtime/device.h"

#include <string.h>

static dlc_status find(int ordinal, dlcrt_device *device)
{
    if (ordinal > 0)
        return dlcrt_fail(DLC_NO_DEVICE, "there is no device cpu:%d; the CPU is one", ordinal);
    *device = (dlcrt_device){.row = &dlcrt_device_CPU, .text = "cpu"};
    return DLC_OK;
}

/* --- does a plan run here? --- */
static dlc_status fits(const dlcrt_candidate *of)
{
    const dlc_plan *plan = of->entry->plan;
    const char *target = dlcrt_string(plan, plan->target);
    if (plan->arch != (unsigned)dlcrt_cpu_arch())
        return dlcrt_fail(DLC_NO_DEVICE, "%s: made for %s (%s), this machine is %s", of->name,
                          target, dlcrt_arch_name(plan->arch), dlcrt_arch_name(dlcrt_cpu_arch()));
    uint64_t missing = plan->cpu_features & ~dlcrt_cpu_features(plan->cpu_features);
    if (!missing)
        return DLC_OK;
    char names[256] = "";
    dlcrt_text text = {names, sizeof names, 0};
    for (unsigned bit = 0; bit < 64; bit++)
        if (missing >> bit & 1)
            dlcrt_text_add(&text, "%s%s", text.n ? ", " : "", dlcrt_cpu_feature_name(bit));
    return dlcrt_fail(DLC_NO_DEVICE, "%s: made for %s; this processor lacks %s", of->name, target,
                      names);
}

static uint32_t rank(const dlcrt_candidate *of, const dlcrt_device *device)
{
    (void)device;
    return fits(of) ? 0 : 1 + (uint32_t)__builtin_popcountll(of->entry->plan->cpu_features);
}

static dlc_status check(const dlcrt_candidate *of)
{
    const dlcrt_image *image = of->image;
    uint32_t nkernels = of->entry->plan->kernels.count;
    const dlc_kernel_fn *kernels = of->entry->kernels;
    if (!dlcrt_image_has(image, kernels, sizeof *kernels * (uint64_t)nkernels))
        return dlcrt_damaged(of->name, "its table of kernels lies outside the file");
    for (uint32_t i = 0; image->base && i < nkernels; i++) {
        uint64_t at = (uint64_t)((uintptr_t)kernels[i] - (uintptr_t)image->base);
        if (at < image->code_begin || at >= image->code_end)
            return dlcrt_damaged(of->name, "kernel %u is not code", i);
    }
    return DLC_OK;
}

/* --- executables and contexts: the file is all there is --- */
static dlc_status load(dlcrt_executable *executable)
{
    (void)executable;
    return DLC_OK;
}

static void unload(dlcrt_executable *executable)
{
    (void)executable;
}

static dlc_status open_context(dlcrt_context *context, const dlcrt_context_options *options)
{
    (void)context, (void)options;
    return DLC_OK;
}

static void close_context(dlcrt_context *context)
{
    dlcrt_memory_free(&context->arena);
}

static dlc_status nothing(dlcrt_context *context)
{
    (void)context;
    return DLC_OK;
}

static void leave(dlcrt_context *context)
{
    (void)context;
}

static dlc_status place(dlcrt_context *context, uint32_t phase, size_t arena_bytes)
{
    return dlcrt_context_grow(context, &context->arena, arena_bytes, phase ? context->arena.size_bytes : 0);
}

static void *address(const dlcrt_context *context, const dlc_plan_ref *ref)
{
    return ref->place == DLC_REF_CONSTANT
               ? (void *)(uintptr_t)(context->executable->constants + ref->offset)
               : NULL;
}

static size_t bytes(const dlcrt_context *context)
{
    return context->arena.size_bytes;
}

static dlc_status size_launch(dlcrt_context *context, const dlc_plan_step *step,
                              size_t *scratch_bytes)
{
    size_t scratch = (size_t)context->cells[step->scratch_bytes];
    *scratch_bytes = scratch > *scratch_bytes ? scratch : *scratch_bytes;
    return DLC_OK;
}

/* --- runs --- */
static dlc_status run(dlcrt_context *context, dlc_status (*walk)(dlcrt_context *context))
{
    if (context->poison && context->arena.bytes)
        memset(context->arena.bytes, 0xA5, context->arena.size_bytes);
    uint32_t state = dlcrt_float_enter();
    dlcrt_pool_enter(context->pool, (int)context->is_parallel);
    dlc_status status = walk(context);
    dlcrt_pool_leave();
    dlcrt_float_leave(state);
    return status;
}

/* Every other iteration of a loop does its kernels from their ends: of weights that are a little more than a cache the part that was read
 * last is still there, and from the beginning on each part would be pushed out just before it is read again. */
static dlc_status launch(dlcrt_context *context, const dlc_plan_step *step)
{
    dlcrt_job job = {
        .kernel = context->executable->entry->kernels[step->what],
        .buffers = context->pointers + step->refs.first,
        .symbols = context->values + step->symbols.first,
        .scratch = context->scratch.bytes,
        .scratch_stride = context->scratch_stride,
        .fault = &context->fault,
        .times = dlcrt_thread_times(context, step),
        .start_ns = context->start_ns,
        .is_backward = context->nturns & 1,
    };
    context->fault = 0;
    dlcrt_pool_run(context->pool, &job, context->cells[step->units], step->grain);
    if (context->fault)
        return dlcrt_fail(DLC_INVALID, "node '%s': index out of range",
                          dlcrt_string(context->plan, step->name));
    return DLC_OK;
}

static dlc_status copy(dlcrt_context *context, const dlc_plan_step *step)
{
    const dlc_plan_ref *refs =
        (const dlc_plan_ref *)dlcrt_rows(context->plan, context->plan->refs) + step->refs.first;
    void *const *buffers = context->pointers + step->refs.first;
    size_t size_bytes = (size_t)context->cells[refs[1].size_bytes];
    if (size_bytes)
        memmove(buffers[1], buffers[0], size_bytes); /* forged plans may copy a buffer onto a part of itself */
    return DLC_OK;
}

const dlcrt_device_row dlcrt_device_CPU = {
    .text = "cpu",
    .is_host = 1,
    .find = find,
    .rank = rank,
    .check = check,
    .load = load,
    .unload = unload,
    .open = open_context,
    .close = close_context,
    .enter = nothing,
    .leave = leave,
    .place = place,
    .address = address,
    .bytes = bytes,
    .size_launch = size_launch,
    .run = run,
    .launch = launch,
    .copy = copy,
    .wait = nothing,
    .finish = nothing,
};

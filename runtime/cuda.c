/*
 * Plans on a CUDA device. A context has one block of device memory (arena, inputs, outputs), so that
 * everything has one address as long as shapes stay, and its steps can be a CUDA graph, if shapes decide
 * which of them run: the first run launches them one by one, the second makes the graph, later ones launch
 * it. The caller's memory of
 * the device is read and written where it lies; a run whose inputs and outputs all are such memory
 * launches the graph, waits, and does nothing else. Steps on the CPU wait for the device; the copies
 * around them are steps of the plan.
 */
#include "runtime/cuda.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Values of the driver's enumerations. */
enum {
    STREAM_NON_BLOCKING = 1,
    HOST_FOR_ALL = 1,
    HOST_MAPPED = 2,
    POINTER_MEMORY_TYPE = 2,
    POINTER_ORDINAL = 9,
    MEMORY_OF_DEVICE = 2
};
enum { REGION_ALIGN = 256, ACCESS_ALIGN = 16 };

static size_t region_up(size_t size_bytes)
{
    return (size_bytes + REGION_ALIGN - 1) / REGION_ALIGN * REGION_ALIGN;
}

static dlcrt_cuda *cuda_of(const dlcrt_executable *executable)
{
    return executable->loaded;
}

/* --- of a context --- */
static dlc_status enter(dlcrt_context *context)
{
    if (dlcrt_run_of(context) && dlcrt_run_of(context)->is_current)
        return DLC_OK;
    DLCRT_CUDA(dlcrt_driver_in(context), context_push, "the device's context",
               cuda_of(context->executable)->context);
    return DLC_OK;
}

static void leave(dlcrt_context *context)
{
    void *popped;
    if (!dlcrt_run_of(context) || !dlcrt_run_of(context)->is_current)
        dlcrt_driver_in(context)->context_pop(&popped);
}

/* A run copies host memory and waits, and may place memory anew: none of it can be recorded. */
static dlc_status check_stream(const dlcrt_context *context)
{
    const dlcrt_cuda_run *run = dlcrt_run_of(context);
    int status = 0;
    if (run->used == run->stream)
        return DLC_OK;
    DLCRT_CUDA(dlcrt_driver_in(context), stream_capturing, "the stream of the options", run->used,
               &status);
    return status ? dlcrt_fail(DLC_USAGE, "the stream of the context's options is being captured; "
                                          "a run cannot be part of another graph")
                  : DLC_OK;
}

/* Bytes of a launch's parameters; for more than the first the driver must be of CUDA 12.1. */
enum { PARAMETER_BYTES = 4096, NEWER_PARAMETER_BYTES = 32764, NEWER = 12010 };

/* Parameters of the launch that has most. */
static dlc_status count_parameters(const dlcrt_context *context, uint32_t *most)
{
    int is_newer = dlcrt_driver_in(context)->version >= NEWER;
    uint64_t allowed = (is_newer ? NEWER_PARAMETER_BYTES : PARAMETER_BYTES) / sizeof(uint64_t);
    const dlc_plan_step *step = dlcrt_rows(context->plan, context->plan->steps);
    *most = 0;
    for (uint32_t i = 0; i < context->plan->steps.count; i++, step++) {
        uint64_t n = (uint64_t)step->refs.count + step->symbols.count + 3;
        if (step->device != DLC_DEVICE_CUDA || step->kind != DLC_DO_LAUNCH)
            continue;
        if (n > allowed)
            return dlcrt_fail(DLC_LIMIT,
                              "step '%s': its kernel has %" PRIu64 " parameters, the driver allows "
                              "%" PRIu64,
                              dlcrt_string(context->plan, step->name), n, allowed);
        *most = n > *most ? (uint32_t)n : *most;
    }
    return DLC_OK;
}

static uint32_t known_cells(const dlc_plan *plan, uint32_t phase)
{
    const dlc_plan_phase *phases = dlcrt_rows(plan, plan->phases);
    return phases[phase].insts.first + phases[phase].insts.count;
}

/* Branches and loops among them count with what steps of the host find out, or from shapes alone. */
static int steps_are_of_device(const dlc_plan *plan)
{
    const dlc_plan_step *step = dlcrt_rows(plan, plan->steps);
    const dlc_plan_ref *refs = dlcrt_rows(plan, plan->refs);
    for (uint32_t i = 0; i < plan->steps.count; i++, step++) {
        if (step->device != DLC_DEVICE_CUDA && step->kind < DLC_DO_SET)
            return 0;
        for (uint32_t k = 0; k < step->refs.count; k++)
            if (refs[step->refs.first + k].place == DLC_REF_HOST)
                return 0;
    }
    return 1;
}

static int outputs_are_known(const dlc_plan *plan)
{
    const dlc_plan_tensor *outputs = dlcrt_rows(plan, plan->outputs);
    const uint32_t *cells = dlcrt_rows(plan, plan->cells);
    int are_known = 1;
    for (uint32_t i = 0; i < plan->outputs.count; i++) {
        are_known &= outputs[i].size_bytes < known_cells(plan, 0);
        for (uint32_t k = 0; k < outputs[i].rank; k++)
            are_known &= cells[outputs[i].dims + k] < known_cells(plan, 0);
    }
    return are_known;
}

/* A word per step in memory of the host that the device may write, so that looking costs no copy. */
static dlc_status make_faults(dlcrt_context *context)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    size_t size_bytes = (context->plan->steps.count + 1u) * sizeof(int64_t);
    void *at = NULL;
    DLCRT_CUDA(driver, host_alloc, "the fault words", &at, size_bytes, HOST_FOR_ALL | HOST_MAPPED);
    run->faults = at;
    memset(at, 0, size_bytes);
    DLCRT_CUDA(driver, host_address, "the fault words", &run->device_faults, at, 0);
    return DLC_OK;
}

static dlc_status make_arrays(dlcrt_context *context)
{
    const dlc_plan *plan = context->plan;
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    uint32_t nparameters;
    DLC_TRY(count_parameters(context, &nparameters));
    run->inputs = dlcrt_alloc(plan->inputs.count, sizeof *run->inputs);
    run->outputs = dlcrt_alloc(plan->outputs.count, sizeof *run->outputs);
    run->in = dlcrt_alloc(plan->inputs.count, sizeof *run->in);
    run->out = dlcrt_alloc(plan->outputs.count, sizeof *run->out);
    run->parameters = dlcrt_alloc(nparameters, sizeof *run->parameters);
    return run->inputs && run->outputs && run->in && run->out && run->parameters ? DLC_OK : DLC_LIMIT;
}

static dlc_status set_up(dlcrt_context *context, const dlcrt_context_options *options)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    DLC_TRY(make_arrays(context));
    DLC_TRY(make_faults(context));
    DLC_TRY(dlcrt_times_create(context));
    run->is_graph = (uint8_t)(steps_are_of_device(context->plan) && outputs_are_known(context->plan));
    run->is_async = (uint8_t)(options && options->async && run->is_graph && !context->profile);
    DLCRT_CUDA(dlcrt_driver_in(context), stream_create, "a stream", &run->stream, STREAM_NON_BLOCKING);
    run->used = options && options->stream ? options->stream : run->stream;
    return check_stream(context);
}

/* Nobody's recording minds what is done, though memory comes and goes. */
static dlc_status do_relaxed(dlcrt_context *context, const dlcrt_context_options *options,
                             dlc_status (*body)(dlcrt_context *context,
                                                const dlcrt_context_options *options))
{
    int mode;
    DLC_TRY(dlcrt_capture_relax(dlcrt_driver_in(context), &mode));
    dlc_status status = body(context, options);
    dlcrt_capture_restore(dlcrt_driver_in(context), mode);
    return status;
}

static dlc_status open_context(dlcrt_context *context, const dlcrt_context_options *options)
{
    DLC_TRY(dlcrt_cuda_use(context->executable));
    dlcrt_cuda_run *run = context->held = dlcrt_alloc(1, sizeof *run);
    if (!run)
        return DLC_LIMIT;
    DLC_TRY(enter(context));
    dlc_status status = do_relaxed(context, options, set_up);
    leave(context);
    run->is_current = (uint8_t)(options && options->is_current);
    return status;
}

static void free_region(const dlcrt_driver *driver, dlcrt_region *region)
{
    if (region->is_own)
        driver->memory_free(region->at);
    *region = (dlcrt_region){0};
}

static void free_regions(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    for (uint32_t i = 0; run->inputs && i < context->plan->inputs.count; i++)
        free_region(driver, &run->inputs[i]);
    for (uint32_t i = 0; run->outputs && i < context->plan->outputs.count; i++)
        free_region(driver, &run->outputs[i]);
    free_region(driver, &run->arena);
    free_region(driver, &run->block);
}

static dlc_status free_all(dlcrt_context *context, const dlcrt_context_options *options)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    (void)options;
    if (run->is_pending)
        driver->stream_wait(run->used);
    dlcrt_graph_drop(context);
    dlcrt_times_destroy(context);
    free_regions(context);
    if (run->faults)
        driver->host_free((void *)(uintptr_t)run->faults);
    if (run->stream)
        driver->stream_destroy(run->stream);
    return DLC_OK;
}

static void close_context(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (!run)
        return;
    run->is_current = 0; /* whoever destroys it may have left the device */
    if (enter(context) == DLC_OK) {
        if (do_relaxed(context, NULL, free_all))
            (void)free_all(context, NULL);
        leave(context);
    }
    free(run->inputs);
    free(run->outputs);
    free(run->in);
    free(run->out);
    free(run->nodes);
    free(run->words);
    free(run->parameters);
    free(run);
    context->held = NULL;
}

/* --- the stream has done its work --- */
static dlc_status wait(dlcrt_context *context)
{
    DLCRT_CUDA(dlcrt_driver_in(context), stream_wait, "the device ended its work", dlcrt_run_of(context)->used);
    return DLC_OK;
}

static void clear_faults(dlcrt_context *context)
{
    for (uint32_t i = 0; i < context->plan->steps.count; i++)
        dlcrt_run_of(context)->faults[i] = 0;
}

static dlc_status check_faults(dlcrt_context *context)
{
    const dlc_plan_step *steps = dlcrt_rows(context->plan, context->plan->steps);
    for (uint32_t i = 0; i < context->plan->steps.count; i++) {
        if (!dlcrt_run_of(context)->faults[i])
            continue;
        clear_faults(context);
        return dlcrt_fail(DLC_INVALID, "node '%s': index out of range",
                          dlcrt_string(context->plan, steps[i].name));
    }
    return DLC_OK;
}

static dlc_status finish(dlcrt_context *context)
{
    if (!dlcrt_run_of(context)->is_pending)
        return DLC_OK;
    dlcrt_run_of(context)->is_pending = 0;
    DLC_TRY(wait(context));
    return check_faults(context);
}

/* --- memory --- */
/* What is kept goes over; nothing runs any more that knows the old place. */
static dlc_status move(const dlcrt_context *context, const dlcrt_region *to,
                       const dlcrt_region *from, size_t keep_bytes)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    void *stream = dlcrt_run_of(context)->used;
    if (keep_bytes)
        DLCRT_CUDA(driver, copy_within, "the arena moves", to->at, from->at, keep_bytes, stream);
    DLCRT_CUDA(driver, stream_wait, "memory is placed anew", stream);
    return DLC_OK;
}

static dlc_status grow(dlcrt_context *context, dlcrt_region *region, size_t size_bytes,
                       size_t keep_bytes)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    dlcrt_region larger = {.size_bytes = region_up(size_bytes), .is_own = 1};
    if (size_bytes <= region->size_bytes)
        return DLC_OK;
    DLCRT_CUDA(driver, memory_alloc, "memory of the device for a run", &larger.at,
               larger.size_bytes);
    dlc_status status = move(context, &larger, region, keep_bytes);
    if (status) {
        driver->memory_free(larger.at);
        return status;
    }
    free_region(driver, region);
    *region = larger;
    return DLC_OK;
}

/* The next piece of the block; the first walk, without an address, only counts. */
static void cut(const dlcrt_region *block, size_t size_bytes, size_t *at, dlcrt_region *piece)
{
    if (block)
        *piece = (dlcrt_region){.at = block->at + *at, .size_bytes = region_up(size_bytes)};
    *at += region_up(size_bytes);
}

static size_t cut_all(dlcrt_context *context, const dlcrt_region *block, size_t arena_bytes)
{
    const dlc_plan *plan = context->plan;
    const dlc_plan_tensor *inputs = dlcrt_rows(plan, plan->inputs),
                          *outputs = dlcrt_rows(plan, plan->outputs);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    size_t at = 0;
    cut(block, arena_bytes, &at, &run->arena);
    for (uint32_t i = 0; i < plan->inputs.count; i++)
        cut(block, (size_t)context->cells[inputs[i].size_bytes] + 1, &at, &run->inputs[i]);
    for (uint32_t i = 0; i < plan->outputs.count; i++)
        if (outputs[i].size_bytes < known_cells(plan, 0))
            cut(block, (size_t)context->cells[outputs[i].size_bytes] + 1, &at, &run->outputs[i]);
    return at;
}

/* Until a run says otherwise, kernels read and write memory of ours. */
static void bind_own(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    for (uint32_t i = 0; i < context->plan->inputs.count; i++)
        run->in[i] = (dlcrt_bound){.at = run->inputs[i].at};
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        run->out[i] = (dlcrt_bound){.at = run->outputs[i].at};
}

static dlc_status place_first(dlcrt_context *context, size_t arena_bytes)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    size_t total = cut_all(context, NULL, arena_bytes);
    DLC_TRY(check_stream(context));
    if (run->is_pending) /* its graph and its memory are about to go */
        DLC_TRY(finish(context));
    dlcrt_graph_drop(context);
    if (total > run->block.size_bytes) {
        free_regions(context);
        DLC_TRY(grow(context, &run->block, total, 0));
    }
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        free_region(driver, &run->outputs[i]);
    free_region(driver, &run->arena);
    (void)cut_all(context, &run->block, arena_bytes);
    bind_own(context);
    return DLC_OK;
}

static dlc_status place_relaxed(dlcrt_context *context, uint32_t phase, size_t arena_bytes)
{
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (phase == 0)
        DLC_TRY(place_first(context, arena_bytes));
    DLC_TRY(grow(context, &run->arena, arena_bytes, run->arena.size_bytes));
    for (uint32_t i = 0; i < context->plan->outputs.count; i++) {
        if (outputs[i].size_bytes >= known_cells(context->plan, phase))
            continue;
        uint64_t before = run->outputs[i].at;
        DLC_TRY(grow(context, &run->outputs[i],
                     (size_t)context->cells[outputs[i].size_bytes] + 1, 0));
        if (run->outputs[i].at != before)
            run->out[i] = (dlcrt_bound){.at = run->outputs[i].at};
    }
    context->arena = (dlcrt_memory){(void *)(uintptr_t)run->arena.at, run->arena.size_bytes};
    return DLC_OK;
}

/* Another turn of a loop needs no more than the one before it. */
static int is_placed(const dlcrt_context *context, uint32_t phase, size_t arena_bytes)
{
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    const dlcrt_cuda_run *run = dlcrt_run_of(context);
    int result = phase && arena_bytes <= run->arena.size_bytes;
    for (uint32_t i = 0; result && i < context->plan->outputs.count; i++)
        result = outputs[i].size_bytes >= known_cells(context->plan, phase) ||
                 (size_t)context->cells[outputs[i].size_bytes] < run->outputs[i].size_bytes;
    return result;
}

static dlc_status place(dlcrt_context *context, uint32_t phase, size_t arena_bytes)
{
    int mode;
    if (is_placed(context, phase, arena_bytes))
        return DLC_OK;
    if (dlcrt_run_of(context)->way == DLCRT_WAY_GRAPH) /* the walk before has placed all of it */
        return dlcrt_fail(DLC_INTERNAL, "memory of a recorded run would move");
    DLC_TRY(dlcrt_capture_relax(dlcrt_driver_in(context), &mode));
    dlc_status status = place_relaxed(context, phase, arena_bytes);
    dlcrt_capture_restore(dlcrt_driver_in(context), mode);
    return status;
}

static void *address(const dlcrt_context *context, const dlc_plan_ref *ref)
{
    const dlcrt_cuda *cuda = cuda_of(context->executable);
    uint64_t at = ref->place == DLC_REF_INPUT    ? dlcrt_run_of(context)->in[ref->index].at
                  : ref->place == DLC_REF_OUTPUT ? dlcrt_run_of(context)->out[ref->index].at
                                                 : cuda->weights + (ref->offset - cuda->weights_begin);
    return (void *)(uintptr_t)at;
}

static void *own_output(const dlcrt_context *context, uint32_t i)
{
    return (void *)(uintptr_t)dlcrt_run_of(context)->outputs[i].at;
}

static size_t bytes(const dlcrt_context *context)
{
    const dlcrt_cuda_run *run = dlcrt_run_of(context);
    size_t total = run->block.size_bytes + (run->arena.is_own ? run->arena.size_bytes : 0);
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        total += run->outputs[i].is_own ? run->outputs[i].size_bytes : 0;
    return total;
}

/* --- what the caller brings --- */
static dlc_status is_of_device(dlcrt_context *context, uint64_t at, int *result)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    int type = 0, ordinal = -1;
    *result = 0;
    int code = driver->pointer_attribute(&type, POINTER_MEMORY_TYPE, at);
    if (!code && type == MEMORY_OF_DEVICE)
        code = driver->pointer_attribute(&ordinal, POINTER_ORDINAL, at);
    if (code && code != DLCRT_CU_INVALID_VALUE)
        return dlcrt_driver_fail(driver, code, DLCRT_CU_pointer_attribute, "memory of the caller");
    *result = !code && ordinal == context->executable->device.ordinal;
    return DLC_OK;
}

static int lies_in(const dlcrt_region *region, uint64_t at)
{
    return at - region->at < region->size_bytes;
}

/* Memory of this context is not: an output of the run before may be an input of this one. */
static int is_ours(const dlcrt_context *context, uint64_t at)
{
    const dlcrt_cuda_run *run = dlcrt_run_of(context);
    int is_own = lies_in(&run->block, at);
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        is_own |= lies_in(&run->outputs[i], at);
    return is_own;
}

/* Kernels may be given it: all of it on this device, where their accesses are aligned. */
static dlc_status look_at(dlcrt_context *context, uint64_t at, size_t size_bytes,
                          dlcrt_bound *bound)
{
    int is_fit = at % ACCESS_ALIGN == 0 && !is_ours(context, at), is_last = 0;
    bound->seen = 0;
    if (is_fit)
        DLC_TRY(is_of_device(context, at, &is_fit));
    if (is_fit)
        DLC_TRY(is_of_device(context, at + size_bytes - 1, &is_last));
    bound->is_fit = is_fit && is_last;
    bound->seen = at;
    return DLC_OK;
}

/* The address for this run; the caller's pointer is looked at when it is another one than before. */
static dlc_status bind(dlcrt_context *context, const dlcrt_tensor *tensor, size_t size_bytes,
                       uint64_t own, dlcrt_bound *bound, int *has_changed)
{
    uint64_t theirs = (uint64_t)(uintptr_t)tensor->data, at = own;
    if (tensor->on_device && size_bytes && theirs != own) {
        if (theirs != bound->seen)
            DLC_TRY(look_at(context, theirs, size_bytes, bound));
        at = bound->is_fit ? theirs : own;
    }
    *has_changed |= at != bound->at;
    bound->at = at;
    return DLC_OK;
}

/* Steps read and write what the caller brings where it lies now. */
static dlc_status rebind(dlcrt_context *context)
{
    const dlc_plan_ref *refs = dlcrt_rows(context->plan, context->plan->refs);
    for (uint32_t i = 0; i < context->plan->refs.count; i++)
        if (refs[i].place == DLC_REF_INPUT || refs[i].place == DLC_REF_OUTPUT)
            context->pointers[i] = address(context, &refs[i]);
    return dlcrt_graph_rebind(context);
}

/* Outputs whose size only the run finds are copied out behind it. */
static dlc_status bind_all(dlcrt_context *context)
{
    const dlc_plan *plan = context->plan;
    const dlc_plan_tensor *inputs = dlcrt_rows(plan, plan->inputs),
                          *outputs = dlcrt_rows(plan, plan->outputs);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    int has_changed = 0;
    for (uint32_t i = 0; i < plan->inputs.count; i++)
        DLC_TRY(bind(context, context->inputs[i], (size_t)context->cells[inputs[i].size_bytes],
                     run->inputs[i].at, &run->in[i], &has_changed));
    for (uint32_t i = 0; i < plan->outputs.count; i++)
        if (outputs[i].size_bytes < known_cells(plan, 0))
            DLC_TRY(bind(context, context->outputs[i],
                         (size_t)context->cells[outputs[i].size_bytes], run->outputs[i].at,
                         &run->out[i], &has_changed));
    return has_changed ? rebind(context) : DLC_OK;
}

/* --- runs --- */
/* Between the caller's memory of the device and ours. */
static dlc_status copy_theirs(dlcrt_context *context, const char *what, uint64_t to, uint64_t from,
                              size_t size_bytes)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    int result = driver->copy_within(to, from, size_bytes, dlcrt_run_of(context)->used);
    if (result == DLCRT_CU_INVALID_VALUE)
        return dlcrt_fail(DLC_USAGE,
                          "'%s' is said to be on the device; no %zu bytes of %s are there", what,
                          size_bytes, context->executable->device.text);
    return result ? dlcrt_driver_fail(driver, result, DLCRT_CU_copy_within, what) : DLC_OK;
}

static dlc_status begin(dlcrt_context *context)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    const dlc_plan_tensor *inputs = dlcrt_rows(context->plan, context->plan->inputs);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (context->poison && run->arena.size_bytes)
        DLCRT_CUDA(driver, memory_set, "the arena", run->arena.at, 0xA5, run->arena.size_bytes,
                   run->used);
    for (uint32_t i = 0; i < context->plan->inputs.count; i++) {
        const dlcrt_tensor *tensor = context->inputs[i];
        size_t size_bytes = (size_t)context->cells[inputs[i].size_bytes];
        const char *name = dlcrt_string(context->plan, inputs[i].name);
        if (!size_bytes || run->in[i].at != run->inputs[i].at)
            continue;
        if (tensor->on_device)
            DLC_TRY(copy_theirs(context, name, run->inputs[i].at, (uint64_t)(uintptr_t)tensor->data,
                                size_bytes));
        else
            DLCRT_CUDA(driver, copy_in, name, run->inputs[i].at, tensor->data, size_bytes,
                       run->used);
    }
    return DLC_OK;
}

static dlc_status record(dlcrt_context *context, dlc_status (*walk)(dlcrt_context *context))
{
    DLC_TRY(dlcrt_graph_begin(context));
    dlc_status status = dlcrt_times_begin(context);
    return dlcrt_graph_end(context, status ? status : walk(context));
}

/* A profile is of the graph, too, so that no step waits for the next to be launched. What loops need beyond
 * the first phase is placed by a walk; a run of very many launches is walked always. */
static dlc_status replay(dlcrt_context *context, dlc_status (*walk)(dlcrt_context *context), int *done)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    int is_first = run->nalike++ == 0, may_be_first = run->times && context->plan->phases.count == 1;
    *done = 0;
    if (!run->is_graph || !context->plan->steps.count || (is_first && !may_be_first) ||
        (!is_first && run->ngiven > DLCRT_MOST_NODES))
        return DLC_OK;
    if (!run->exec)
        DLC_TRY(record(context, walk));
    DLCRT_CUDA(dlcrt_driver_in(context), graph_launch, "the steps", run->exec, run->used);
    run->nalike = 1;
    *done = 1;
    return DLC_OK;
}

static dlc_status end(dlcrt_context *context)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    int all_on_device = 1;
    for (uint32_t i = 0; i < context->plan->outputs.count; i++) {
        const dlcrt_tensor *tensor = context->outputs[i];
        size_t size_bytes = (size_t)context->cells[outputs[i].size_bytes];
        uint64_t to = (uint64_t)(uintptr_t)tensor->data;
        const char *name = dlcrt_string(context->plan, outputs[i].name);
        all_on_device &= tensor->on_device != 0;
        if (!size_bytes || (tensor->on_device && to == run->out[i].at))
            continue;
        if (tensor->on_device)
            DLC_TRY(copy_theirs(context, name, to, run->outputs[i].at, size_bytes));
        else
            DLCRT_CUDA(driver, copy_out, name, tensor->data, run->outputs[i].at, size_bytes,
                       run->used);
    }
    run->is_pending = 1;
    if (run->is_async && all_on_device)
        return DLC_OK;
    DLC_TRY(finish(context));
    return dlcrt_times_read(context);
}

/* Whatever went wrong, the next run begins with an idle stream, without faults, and looks anew at
 * what the caller brings. */
static void abandon(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    (void)dlcrt_driver_in(context)->stream_wait(run->used);
    clear_faults(context);
    run->is_pending = 0;
    run->way = DLCRT_WAY_STREAM;
    dlcrt_graph_drop(context);
    for (uint32_t i = 0; i < context->plan->inputs.count; i++)
        run->in[i].seen = 0;
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        run->out[i].seen = 0;
}

static dlc_status walk_on_device(dlcrt_context *context, dlc_status (*walk)(dlcrt_context *context))
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    int done;
    if (context->profile)
        memset(context->profile, 0, context->plan->steps.count * sizeof *context->profile);
    DLC_TRY(bind_all(context));
    DLC_TRY(begin(context));
    DLC_TRY(replay(context, walk, &done));
    if (!done) {
        run->ngiven = 0;
        DLC_TRY(dlcrt_times_begin(context));
        DLC_TRY(walk(context));
    }
    return end(context);
}

static dlc_status run(dlcrt_context *context, dlc_status (*walk)(dlcrt_context *context))
{
    DLC_TRY(check_stream(context)); /* one that is being captured is left alone */
    dlc_status status = walk_on_device(context, walk);
    if (status)
        abandon(context);
    return status;
}

static dlc_status find(int ordinal, dlcrt_device *device)
{
    DLC_TRY(dlcrt_cuda_find(ordinal, device));
    device->row = &dlcrt_device_CUDA;
    return DLC_OK;
}

const dlcrt_device_row dlcrt_device_CUDA = {
    .text = "cuda",
    .keeps_times = 1,
    .find = find,
    .rank = dlcrt_cuda_rank,
    .check = dlcrt_cuda_check,
    .load = dlcrt_cuda_load,
    .unload = dlcrt_cuda_unload,
    .open = open_context,
    .close = close_context,
    .enter = enter,
    .leave = leave,
    .place = place,
    .address = address,
    .own_output = own_output,
    .bytes = bytes,
    .size_launch = dlcrt_cuda_size_launch,
    .run = run,
    .launch = dlcrt_cuda_launch,
    .copy = dlcrt_cuda_copy,
    .wait = wait,
    .finish = finish,
};

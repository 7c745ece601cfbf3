/*
 * Plans on a CUDA device. An executable keeps its kernels and weights there, made for its first
 * context and shared by all. A context has one block of device memory (arena, inputs, outputs, a
 * fault word per step), so that everything has one address as long as shapes stay, and its steps
 * can be a CUDA graph: the first run launches them one by one, the second records them, later ones
 * replay. Steps on the CPU wait for the device; the copies around them are steps of the plan.
 */
#include "runtime/cuda.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Values of the driver's enumerations. */
enum {
    STREAM_NON_BLOCKING = 1,
    CAPTURE_THREAD_LOCAL = 1,
    FUNCTION_MAX_DYNAMIC_SHARED = 8,
    JIT_ERROR_LOG = 5,
    JIT_ERROR_LOG_BYTES = 6
};
enum { PLAIN_SHARED_BYTES = 48 * 1024, REGION_ALIGN = 256 };
static const int64_t max_blocks = INT32_MAX;

static const dlcrt_driver *driver_of(const dlcrt_executable *executable)
{
    return executable->device.driver;
}

static size_t region_up(size_t size_bytes)
{
    return (size_bytes + REGION_ALIGN - 1) / REGION_ALIGN * REGION_ALIGN;
}

/* --- of an executable: kernels and weights --- */
static dlcrt_cuda *cuda_of(const dlcrt_executable *executable)
{
    return executable->loaded;
}

/* The rest waits for the first context. */
static dlc_status load(dlcrt_executable *executable)
{
    dlcrt_cuda *cuda = executable->loaded = dlcrt_alloc(1, sizeof *cuda);
    if (!cuda)
        return DLC_LIMIT;
    pthread_mutex_init(&cuda->lock, NULL);
    return DLC_OK;
}

static void release(dlcrt_executable *executable)
{
    const dlcrt_driver *driver = driver_of(executable);
    dlcrt_cuda *cuda = cuda_of(executable);
    void *popped;
    if (cuda->context && !driver->context_push(cuda->context)) {
        for (uint32_t i = 0; cuda->modules && i < executable->plan->kernels.count; i++)
            if (cuda->modules[i])
                driver->module_unload(cuda->modules[i]);
        if (cuda->weights)
            driver->memory_free(cuda->weights);
        driver->context_pop(&popped);
    }
    if (cuda->context)
        driver->context_release(executable->device.handle);
    free(cuda->modules);
    free(cuda->functions);
    free(cuda->shared_bytes);
    cuda->context = NULL;
    cuda->modules = cuda->functions = NULL;
    cuda->shared_bytes = NULL;
    cuda->weights = 0;
    cuda->is_ready = 0;
}

static void unload(dlcrt_executable *executable)
{
    if (!executable->loaded)
        return;
    release(executable);
    pthread_mutex_destroy(&cuda_of(executable)->lock);
    free(executable->loaded);
    executable->loaded = NULL;
}

static dlc_status load_module(dlcrt_executable *executable, uint32_t kernel,
                              const dlc_plan_binary *binary)
{
    const dlcrt_driver *driver = driver_of(executable);
    const dlc_plan_kernel *rows = dlcrt_rows(executable->plan, executable->plan->kernels);
    const char *name = dlcrt_string(executable->plan, rows[kernel].name);
    char log[512] = "", what[768];
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    dlcrt_text text = {what, sizeof what, 0};
    const unsigned char *bytes = executable->image.entry->binaries;
    int result = driver->module_load(&cuda_of(executable)->modules[kernel], bytes + binary->offset,
                                     2, options, values);
    dlcrt_text_add(&text, "kernel '%s' for sm_%u%s; the driver is of CUDA %d.%d%s%s", name,
                   binary->arch, binary->kind == DLC_BINARY_PTX ? " (PTX)" : "",
                   driver->version / 1000, driver->version % 1000 / 10, *log ? ": " : "", log);
    if (result)
        return dlcrt_driver_fail(driver, result, DLCRT_CU_module_load, what);
    DLCRT_CUDA(driver, module_function, what, &cuda_of(executable)->functions[kernel],
               cuda_of(executable)->modules[kernel], "dlc_kernel");
    return DLC_OK;
}

/* Kernels with the same binary share a module. */
static dlc_status load_kernel(dlcrt_executable *executable, uint32_t kernel)
{
    const dlc_plan *plan = executable->plan;
    const dlc_plan_binary *binary = dlcrt_binary_find(plan, kernel, executable->device.capability);
    for (uint32_t i = 0; i < kernel; i++)
        if (dlcrt_binary_find(plan, i, executable->device.capability)->offset == binary->offset) {
            cuda_of(executable)->functions[kernel] = cuda_of(executable)->functions[i];
            return DLC_OK;
        }
    return load_module(executable, kernel, binary);
}

/* The part of the constants that kernels of this plan read: with several plans, not all. */
static void find_weights(dlcrt_executable *executable)
{
    const dlc_plan *plan = executable->plan;
    const dlc_plan_step *step = dlcrt_rows(plan, plan->steps);
    const dlc_plan_ref *refs = dlcrt_rows(plan, plan->refs);
    const dlc_size_inst *insts = dlcrt_rows(plan, plan->insts);
    uint64_t all = executable->image.entry->constants_bytes, begin = all, end = 0;
    for (uint32_t s = 0; s < plan->steps.count; s++, step++) {
        for (uint32_t i = step->refs.first; i < step->refs.first + step->refs.count; i++) {
            const dlc_size_inst *size = &insts[refs[i].size_bytes];
            if (step->device != DLC_DEVICE_CUDA || refs[i].place != DLC_REF_CONSTANT)
                continue;
            int is_known = size->op == DLC_SIZE_CONST && size->imm >= 0 &&
                           (uint64_t)size->imm <= all - refs[i].offset;
            uint64_t last = is_known ? refs[i].offset + (uint64_t)size->imm : all;
            begin = refs[i].offset < begin ? refs[i].offset : begin;
            end = last > end ? last : end;
        }
    }
    cuda_of(executable)->weights_begin = begin;
    cuda_of(executable)->weights_end = end > begin ? end : begin;
}

static dlc_status copy_weights(dlcrt_executable *executable, size_t size_bytes, void *stream)
{
    const dlcrt_driver *driver = driver_of(executable);
    const dlcrt_cuda *cuda = cuda_of(executable);
    DLCRT_CUDA(driver, copy_in, "the weights", cuda->weights,
               executable->constants + cuda->weights_begin, size_bytes, stream);
    DLCRT_CUDA(driver, stream_wait, "the weights", stream);
    return DLC_OK;
}

/* Through a stream of their own: the default one would wait for all the program's others. */
static dlc_status upload_weights(dlcrt_executable *executable)
{
    const dlcrt_driver *driver = driver_of(executable);
    dlcrt_cuda *cuda = cuda_of(executable);
    void *stream;
    find_weights(executable);
    size_t size_bytes = (size_t)(cuda->weights_end - cuda->weights_begin);
    if (!size_bytes)
        return DLC_OK;
    DLCRT_CUDA(driver, memory_alloc, "memory for the weights", &cuda->weights, size_bytes);
    DLCRT_CUDA(driver, stream_create, "a stream", &stream, STREAM_NON_BLOCKING);
    dlc_status status = copy_weights(executable, size_bytes, stream);
    driver->stream_destroy(stream);
    return status;
}

static dlc_status load_all(dlcrt_executable *executable)
{
    dlcrt_cuda *cuda = cuda_of(executable);
    uint32_t nkernels = executable->plan->kernels.count;
    cuda->modules = dlcrt_alloc(nkernels, sizeof *cuda->modules);
    cuda->functions = dlcrt_alloc(nkernels, sizeof *cuda->functions);
    cuda->shared_bytes = dlcrt_alloc(nkernels, sizeof *cuda->shared_bytes);
    if (!cuda->modules || !cuda->functions || !cuda->shared_bytes)
        return DLC_LIMIT;
    DLC_TRY(dlcrt_executable_check(executable));
    for (uint32_t i = 0; i < nkernels; i++)
        DLC_TRY(load_kernel(executable, i));
    return upload_weights(executable);
}

static dlc_status make_ready(dlcrt_executable *executable)
{
    const dlcrt_driver *driver = driver_of(executable);
    dlcrt_cuda *cuda = cuda_of(executable);
    void *popped;
    DLCRT_CUDA(driver, context_retain, executable->device.text, &cuda->context,
               executable->device.handle);
    DLCRT_CUDA(driver, context_push, executable->device.text, cuda->context);
    dlc_status status = load_all(executable);
    driver->context_pop(&popped);
    cuda->is_ready = status == DLC_OK;
    return status;
}

/* What failed is undone, so that the next context may try again. */
static dlc_status use_executable(dlcrt_executable *executable)
{
    dlc_status status = DLC_OK;
    pthread_mutex_lock(&cuda_of(executable)->lock);
    if (!cuda_of(executable)->is_ready) {
        status = make_ready(executable);
        if (status)
            release(executable);
    }
    pthread_mutex_unlock(&cuda_of(executable)->lock);
    return status;
}

/* --- of a context --- */
static const dlcrt_driver *driver_in(const dlcrt_context *context)
{
    return driver_of(context->executable);
}

static dlcrt_cuda_run *run_of(const dlcrt_context *context)
{
    return context->held;
}

static dlc_status enter(dlcrt_context *context)
{
    DLCRT_CUDA(driver_in(context), context_push, "the device's context",
               cuda_of(context->executable)->context);
    return DLC_OK;
}

static void leave(dlcrt_context *context)
{
    void *popped;
    driver_in(context)->context_pop(&popped);
}

/* A run copies host memory and waits, and may place memory anew: none of it can be recorded. */
static dlc_status check_stream(const dlcrt_context *context)
{
    const dlcrt_cuda_run *run = run_of(context);
    int status = 0;
    if (run->used == run->stream)
        return DLC_OK;
    DLCRT_CUDA(driver_in(context), stream_capturing, "the stream of the options", run->used,
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
    int is_newer = driver_in(context)->version >= NEWER;
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

static int runs_on_device_alone(const dlc_plan *plan)
{
    const dlc_plan_step *step = dlcrt_rows(plan, plan->steps);
    const dlc_plan_ref *refs = dlcrt_rows(plan, plan->refs);
    for (uint32_t i = 0; i < plan->steps.count; i++, step++) {
        if (step->device != DLC_DEVICE_CUDA)
            return 0;
        for (uint32_t k = 0; k < step->refs.count; k++)
            if (refs[step->refs.first + k].place == DLC_REF_HOST)
                return 0;
    }
    return plan->phases.count == 1;
}

static dlc_status set_up(dlcrt_context *context, const dlcrt_context_options *options)
{
    const dlc_plan *plan = context->plan;
    dlcrt_cuda_run *run = run_of(context);
    uint32_t nparameters;
    DLC_TRY(count_parameters(context, &nparameters));
    run->inputs = dlcrt_alloc(plan->inputs.count, sizeof *run->inputs);
    run->outputs = dlcrt_alloc(plan->outputs.count, sizeof *run->outputs);
    run->host_faults = dlcrt_alloc(plan->steps.count, sizeof *run->host_faults);
    run->parameters = dlcrt_alloc(nparameters, sizeof *run->parameters);
    if (!run->inputs || !run->outputs || !run->host_faults || !run->parameters)
        return DLC_LIMIT;
    run->is_graph = (uint8_t)(runs_on_device_alone(plan) && !context->profile);
    run->is_async = (uint8_t)(options && options->async && run->is_graph);
    DLCRT_CUDA(driver_in(context), stream_create, "a stream", &run->stream, STREAM_NON_BLOCKING);
    run->used = options && options->stream ? options->stream : run->stream;
    return check_stream(context);
}

static dlc_status open_context(dlcrt_context *context, const dlcrt_context_options *options)
{
    DLC_TRY(use_executable(context->executable));
    context->held = dlcrt_alloc(1, sizeof(dlcrt_cuda_run));
    if (!context->held)
        return DLC_LIMIT;
    DLC_TRY(enter(context));
    dlc_status status = set_up(context, options);
    leave(context);
    return status;
}

static void free_region(const dlcrt_driver *driver, dlcrt_region *region)
{
    if (region->is_own)
        driver->memory_free(region->at);
    *region = (dlcrt_region){0};
}

static void drop_graph(dlcrt_context *context)
{
    if (run_of(context)->exec)
        driver_in(context)->exec_destroy(run_of(context)->exec);
    run_of(context)->exec = NULL;
    run_of(context)->nalike = 0;
}

static void free_regions(dlcrt_context *context)
{
    dlcrt_cuda_run *run = run_of(context);
    const dlcrt_driver *driver = driver_in(context);
    for (uint32_t i = 0; run->inputs && i < context->plan->inputs.count; i++)
        free_region(driver, &run->inputs[i]);
    for (uint32_t i = 0; run->outputs && i < context->plan->outputs.count; i++)
        free_region(driver, &run->outputs[i]);
    free_region(driver, &run->arena);
    free_region(driver, &run->block);
    run->faults = 0;
}

static void close_context(dlcrt_context *context)
{
    dlcrt_cuda_run *run = run_of(context);
    if (!run)
        return;
    if (enter(context) == DLC_OK) {
        if (run->is_pending)
            driver_in(context)->stream_wait(run->used);
        drop_graph(context);
        free_regions(context);
        if (run->stream)
            driver_in(context)->stream_destroy(run->stream);
        leave(context);
    }
    free(run->inputs);
    free(run->outputs);
    free(run->host_faults);
    free(run->parameters);
    free(run);
    context->held = NULL;
}

/* --- the stream has done its work --- */
static dlc_status wait(dlcrt_context *context)
{
    DLCRT_CUDA(driver_in(context), stream_wait, "the device ended its work", run_of(context)->used);
    return DLC_OK;
}

static dlc_status check_faults(dlcrt_context *context)
{
    const dlcrt_driver *driver = driver_in(context);
    dlcrt_cuda_run *run = run_of(context);
    const dlc_plan_step *steps = dlcrt_rows(context->plan, context->plan->steps);
    size_t size_bytes = context->plan->steps.count * sizeof(int64_t);
    if (size_bytes)
        DLCRT_CUDA(driver, copy_out, "the fault words", run->host_faults, run->faults, size_bytes,
                   run->used);
    DLC_TRY(wait(context));
    for (uint32_t i = 0; i < context->plan->steps.count; i++) {
        if (!run->host_faults[i])
            continue;
        DLCRT_CUDA(driver, memory_set, "the fault words", run->faults, 0, size_bytes, run->used);
        run->is_pending = 1;
        return dlcrt_fail(DLC_INVALID, "node '%s': index out of range",
                          dlcrt_string(context->plan, steps[i].name));
    }
    return DLC_OK;
}

static dlc_status finish(dlcrt_context *context)
{
    if (!run_of(context)->is_pending)
        return DLC_OK;
    run_of(context)->is_pending = 0;
    return check_faults(context);
}

/* --- memory --- */
/* What is kept goes over; nothing runs any more that knows the old place. */
static dlc_status move(const dlcrt_context *context, const dlcrt_region *to,
                       const dlcrt_region *from, size_t keep_bytes)
{
    const dlcrt_driver *driver = driver_in(context);
    void *stream = run_of(context)->used;
    if (keep_bytes)
        DLCRT_CUDA(driver, copy_within, "the arena moves", to->at, from->at, keep_bytes, stream);
    DLCRT_CUDA(driver, stream_wait, "memory is placed anew", stream);
    return DLC_OK;
}

static dlc_status grow(dlcrt_context *context, dlcrt_region *region, size_t size_bytes,
                       size_t keep_bytes)
{
    const dlcrt_driver *driver = driver_in(context);
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

static uint32_t known_cells(const dlc_plan *plan, uint32_t phase)
{
    const dlc_plan_phase *phases = dlcrt_rows(plan, plan->phases);
    return phases[phase].insts.first + phases[phase].insts.count;
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
    dlcrt_cuda_run *run = run_of(context);
    dlcrt_region faults = {0};
    size_t at = 0;
    cut(block, arena_bytes, &at, &run->arena);
    for (uint32_t i = 0; i < plan->inputs.count; i++)
        cut(block, (size_t)context->cells[inputs[i].size_bytes] + 1, &at, &run->inputs[i]);
    for (uint32_t i = 0; i < plan->outputs.count; i++)
        if (outputs[i].size_bytes < known_cells(plan, 0))
            cut(block, (size_t)context->cells[outputs[i].size_bytes] + 1, &at, &run->outputs[i]);
    cut(block, plan->steps.count * sizeof(int64_t) + 1, &at, &faults);
    run->faults = block ? faults.at : run->faults;
    return at;
}

static dlc_status place_first(dlcrt_context *context, size_t arena_bytes)
{
    const dlcrt_driver *driver = driver_in(context);
    dlcrt_cuda_run *run = run_of(context);
    size_t total = cut_all(context, NULL, arena_bytes);
    DLC_TRY(check_stream(context));
    if (run->is_pending) /* its fault words are about to go */
        DLC_TRY(finish(context));
    drop_graph(context);
    if (total > run->block.size_bytes) {
        free_regions(context);
        DLC_TRY(grow(context, &run->block, total, 0));
    }
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        free_region(driver, &run->outputs[i]);
    free_region(driver, &run->arena);
    (void)cut_all(context, &run->block, arena_bytes);
    DLCRT_CUDA(driver, memory_set, "the fault words", run->faults, 0,
               context->plan->steps.count * sizeof(int64_t) + 1, run->used);
    run->is_pending = 1;
    return DLC_OK;
}

static dlc_status place(dlcrt_context *context, uint32_t phase, size_t arena_bytes)
{
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    dlcrt_cuda_run *run = run_of(context);
    if (phase == 0)
        DLC_TRY(place_first(context, arena_bytes));
    DLC_TRY(grow(context, &run->arena, arena_bytes, run->arena.size_bytes));
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        if (outputs[i].size_bytes < known_cells(context->plan, phase))
            DLC_TRY(grow(context, &run->outputs[i],
                         (size_t)context->cells[outputs[i].size_bytes] + 1, 0));
    context->arena = (dlcrt_memory){(void *)(uintptr_t)run->arena.at, run->arena.size_bytes};
    return DLC_OK;
}

static void *address(const dlcrt_context *context, const dlc_plan_ref *ref)
{
    const dlcrt_cuda *cuda = cuda_of(context->executable);
    uint64_t at = ref->place == DLC_REF_INPUT ? run_of(context)->inputs[ref->index].at
                  : ref->place == DLC_REF_OUTPUT
                      ? run_of(context)->outputs[ref->index].at
                      : cuda->weights + (ref->offset - cuda->weights_begin);
    return (void *)(uintptr_t)at;
}

static size_t bytes(const dlcrt_context *context)
{
    const dlcrt_cuda_run *run = run_of(context);
    size_t total = run->block.size_bytes + (run->arena.is_own ? run->arena.size_bytes : 0);
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        total += run->outputs[i].is_own ? run->outputs[i].size_bytes : 0;
    return total;
}

/* --- launches --- */
static dlc_status refuse_shared(const dlcrt_context *context, const dlc_plan_step *step,
                                int64_t bytes)
{
    return dlcrt_fail(
        DLC_LIMIT,
        "step '%s': a block of its kernel needs %" PRId64 " bytes of shared memory, %s has %d",
        dlcrt_string(context->plan, step->name), bytes, context->executable->device.text,
        context->executable->device.max_shared_bytes);
}

static int64_t shared_bytes_of(const dlcrt_context *context, const dlc_plan_step *step)
{
    const dlc_plan_kernel *kernel =
        (const dlc_plan_kernel *)dlcrt_rows(context->plan, context->plan->kernels) + step->what;
    int64_t scratch = context->cells[step->scratch_bytes];
    return kernel->scratches ? kernel->fixed_bytes + scratch * kernel->scratches
                             : kernel->fixed_bytes;
}

/* What the function was allowed: kernels of one binary are one function, so it stands with the
 * first of them. */
static int *allowed_shared(const dlcrt_cuda *cuda, uint32_t kernel)
{
    uint32_t i = 0;
    while (cuda->functions[i] != cuda->functions[kernel])
        i++;
    return &cuda->shared_bytes[i];
}

/* More than 48 KiB of shared memory must be allowed per function; that holds for all contexts. */
static dlc_status size_launch(dlcrt_context *context, const dlc_plan_step *step,
                              size_t *scratch_bytes)
{
    (void)scratch_bytes; /* its scratch is shared memory */
    dlcrt_executable *executable = context->executable;
    if (context->cells[step->scratch_bytes] > INT32_MAX)
        return refuse_shared(context, step, context->cells[step->scratch_bytes]);
    int64_t bytes = shared_bytes_of(context, step);
    int result = 0;
    if (bytes <= PLAIN_SHARED_BYTES)
        return DLC_OK;
    if (bytes > executable->device.max_shared_bytes)
        return refuse_shared(context, step, bytes);
    pthread_mutex_lock(&cuda_of(executable)->lock);
    int *allowed = allowed_shared(cuda_of(executable), step->what);
    if (bytes > *allowed) {
        result = driver_of(executable)
                     ->function_set(cuda_of(executable)->functions[step->what],
                                    FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes);
        *allowed = result ? *allowed : (int)bytes;
    }
    pthread_mutex_unlock(&cuda_of(executable)->lock);
    return result ? dlcrt_driver_fail(driver_of(executable), result, DLCRT_CU_function_set,
                                      dlcrt_string(context->plan, step->name))
                  : DLC_OK;
}

static uint32_t step_number(const dlcrt_context *context, const dlc_plan_step *step)
{
    return (uint32_t)(step -
                      (const dlc_plan_step *)dlcrt_rows(context->plan, context->plan->steps));
}

/* Units in launches of at most 2^31 - 1 blocks. */
static dlc_status launch(dlcrt_context *context, const dlc_plan_step *step)
{
    dlcrt_cuda_run *run = run_of(context);
    const dlc_plan_kernel *kernel =
        (const dlc_plan_kernel *)dlcrt_rows(context->plan, context->plan->kernels) + step->what;
    int64_t units = context->cells[step->units], first = 0,
            per_launch = max_blocks * kernel->units_per_block;
    uint64_t fault = run->faults + step_number(context, step) * sizeof(int64_t);
    uint32_t n = 0;
    for (uint32_t i = 0; i < step->refs.count; i++)
        run->parameters[n++] = &context->pointers[step->refs.first + i];
    for (uint32_t i = 0; i < step->symbols.count; i++)
        run->parameters[n++] = &context->values[step->symbols.first + i];
    run->parameters[n++] = &fault;
    run->parameters[n++] = &first;
    run->parameters[n++] = &units;
    for (; first < units; first += per_launch) {
        int64_t left = units - first < per_launch ? units - first : per_launch;
        int64_t blocks = (left + kernel->units_per_block - 1) / kernel->units_per_block;
        DLCRT_CUDA(driver_in(context), launch, dlcrt_string(context->plan, step->name),
                   cuda_of(context->executable)->functions[step->what], (unsigned)blocks, 1, 1,
                   kernel->threads, 1, 1, (unsigned)shared_bytes_of(context, step), run->used,
                   run->parameters, NULL);
    }
    return DLC_OK;
}

static dlc_status copy(dlcrt_context *context, const dlc_plan_step *step)
{
    const dlc_plan_ref *refs =
        (const dlc_plan_ref *)dlcrt_rows(context->plan, context->plan->refs) + step->refs.first;
    void *const *pointers = context->pointers + step->refs.first;
    const char *name = dlcrt_string(context->plan, step->name);
    size_t size_bytes = (size_t)context->cells[refs[1].size_bytes];
    uint64_t from = (uint64_t)(uintptr_t)pointers[0], to = (uint64_t)(uintptr_t)pointers[1];
    if (!size_bytes)
        return DLC_OK;
    if (refs[0].place == DLC_REF_HOST)
        DLCRT_CUDA(driver_in(context), copy_in, name, to, pointers[0], size_bytes,
                   run_of(context)->used);
    else if (refs[1].place == DLC_REF_HOST)
        DLCRT_CUDA(driver_in(context), copy_out, name, pointers[1], from, size_bytes,
                   run_of(context)->used);
    else
        DLCRT_CUDA(driver_in(context), copy_within, name, to, from, size_bytes,
                   run_of(context)->used);
    return DLC_OK;
}

static dlc_status run_step(dlcrt_context *context, const dlc_plan_step *step)
{
    return step->kind == DLC_DO_LAUNCH ? launch(context, step) : copy(context, step);
}

/* --- runs --- */
/* Between the caller's memory of the device and ours. */
static dlc_status copy_theirs(dlcrt_context *context, const char *what, uint64_t to, uint64_t from,
                              size_t size_bytes)
{
    const dlcrt_driver *driver = driver_in(context);
    int result = driver->copy_within(to, from, size_bytes, run_of(context)->used);
    if (result == DLCRT_CU_INVALID_VALUE)
        return dlcrt_fail(DLC_USAGE,
                          "'%s' is said to be on the device; no %zu bytes of %s are there", what,
                          size_bytes, context->executable->device.text);
    return result ? dlcrt_driver_fail(driver, result, DLCRT_CU_copy_within, what) : DLC_OK;
}

static dlc_status begin(dlcrt_context *context)
{
    const dlcrt_driver *driver = driver_in(context);
    const dlc_plan_tensor *inputs = dlcrt_rows(context->plan, context->plan->inputs);
    dlcrt_cuda_run *run = run_of(context);
    if (context->poison && run->arena.size_bytes)
        DLCRT_CUDA(driver, memory_set, "the arena", run->arena.at, 0xA5, run->arena.size_bytes,
                   run->used);
    for (uint32_t i = 0; i < context->plan->inputs.count; i++) {
        const dlcrt_tensor *tensor = context->inputs[i];
        size_t size_bytes = (size_t)context->cells[inputs[i].size_bytes];
        const char *name = dlcrt_string(context->plan, inputs[i].name);
        if (!size_bytes)
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

static dlc_status record_steps(dlcrt_context *context)
{
    const dlc_plan_step *step = dlcrt_rows(context->plan, context->plan->steps);
    for (uint32_t i = 0; i < context->plan->steps.count; i++, step++)
        DLC_TRY(run_step(context, step));
    return DLC_OK;
}

/* The steps as a graph, recorded in a stream of our own whatever stream runs go into. */
static dlc_status record(dlcrt_context *context)
{
    const dlcrt_driver *driver = driver_in(context);
    dlcrt_cuda_run *run = run_of(context);
    void *used = run->used, *graph = NULL;
    DLCRT_CUDA(driver, capture_begin, "recording the steps", run->stream, CAPTURE_THREAD_LOCAL);
    run->used = run->stream;
    dlc_status status = record_steps(context);
    run->used = used;
    int result = driver->capture_end(run->stream, &graph);
    if (status == DLC_OK && result)
        status = dlcrt_driver_fail(driver, result, DLCRT_CU_capture_end, "recording the steps");
    if (status == DLC_OK && (result = driver->graph_instantiate(&run->exec, graph, 0)))
        status =
            dlcrt_driver_fail(driver, result, DLCRT_CU_graph_instantiate, "recording the steps");
    if (graph)
        driver->graph_destroy(graph);
    return status;
}

static dlc_status replay(dlcrt_context *context, int *done)
{
    dlcrt_cuda_run *run = run_of(context);
    *done = 0;
    if (!run->is_graph || !context->plan->steps.count || run->nalike++ == 0)
        return DLC_OK;
    if (!run->exec)
        DLC_TRY(record(context));
    DLCRT_CUDA(driver_in(context), graph_launch, "the steps", run->exec, run->used);
    run->nalike = 1;
    *done = 1;
    return DLC_OK;
}

static dlc_status end(dlcrt_context *context)
{
    const dlcrt_driver *driver = driver_in(context);
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    dlcrt_cuda_run *run = run_of(context);
    int all_on_device = 1;
    for (uint32_t i = 0; i < context->plan->outputs.count; i++) {
        const dlcrt_tensor *tensor = context->outputs[i];
        size_t size_bytes = (size_t)context->cells[outputs[i].size_bytes];
        uint64_t to = (uint64_t)(uintptr_t)tensor->data;
        const char *name = dlcrt_string(context->plan, outputs[i].name);
        all_on_device &= tensor->on_device != 0;
        if (!size_bytes || (tensor->on_device && to == run->outputs[i].at))
            continue;
        if (tensor->on_device)
            DLC_TRY(copy_theirs(context, name, to, run->outputs[i].at, size_bytes));
        else
            DLCRT_CUDA(driver, copy_out, name, tensor->data, run->outputs[i].at, size_bytes,
                       run->used);
    }
    run->is_pending = 1;
    return run->is_async && all_on_device ? DLC_OK : finish(context);
}

/* Whatever went wrong, the next run begins with an idle stream and without faults. */
static void abandon(dlcrt_context *context)
{
    const dlcrt_driver *driver = driver_in(context);
    dlcrt_cuda_run *run = run_of(context);
    size_t size_bytes = context->plan->steps.count * sizeof(int64_t);
    if (run->faults && size_bytes)
        (void)driver->memory_set(run->faults, 0, size_bytes, run->used);
    (void)driver->stream_wait(run->used);
    run->is_pending = 0;
    drop_graph(context);
}

static dlc_status walk_on_device(dlcrt_context *context, dlc_status (*walk)(dlcrt_context *context))
{
    int done;
    DLC_TRY(begin(context));
    DLC_TRY(replay(context, &done));
    if (!done)
        DLC_TRY(walk(context));
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
    .find = find,
    .rank = dlcrt_cuda_rank,
    .check = dlcrt_cuda_check,
    .load = load,
    .unload = unload,
    .open = open_context,
    .close = close_context,
    .enter = enter,
    .leave = leave,
    .place = place,
    .address = address,
    .bytes = bytes,
    .size_launch = size_launch,
    .run = run,
    .launch = launch,
    .copy = copy,
    .wait = wait,
    .finish = finish,
};

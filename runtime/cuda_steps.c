/*
 * The steps of a plan on a CUDA device, given to a stream, or to the graph that a run becomes.
 */
#include <inttypes.h>

#include "runtime/cuda.h"

enum { FUNCTION_MAX_DYNAMIC_SHARED = 8, PLAIN_SHARED_BYTES = 48 * 1024 };
#ifndef DLCRT_MAX_BLOCKS /* tests say fewer */
#define DLCRT_MAX_BLOCKS INT32_MAX
#endif

static dlcrt_cuda *loaded_of(const dlcrt_executable *executable)
{
    return executable->loaded;
}

/* --- sizes --- */
static dlc_status refuse_shared(const dlcrt_context *context, const dlc_plan_step *step,
                                int64_t bytes)
{
    return dlcrt_fail(
        DLC_LIMIT,
        "step '%s': a block of its kernel needs %" PRId64 " bytes of shared memory, %s has %d",
        dlcrt_string(context->plan, step->name), bytes, context->executable->device.text,
        context->executable->device.max_shared_bytes);
}

static const dlc_plan_kernel *kernel_of(const dlcrt_context *context, const dlc_plan_step *step)
{
    return (const dlc_plan_kernel *)dlcrt_rows(context->plan, context->plan->kernels) + step->what;
}

static int64_t shared_bytes_of(const dlcrt_context *context, const dlc_plan_step *step)
{
    const dlc_plan_kernel *kernel = kernel_of(context, step);
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
dlc_status dlcrt_cuda_size_launch(dlcrt_context *context, const dlc_plan_step *step,
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
    pthread_mutex_lock(&loaded_of(executable)->lock);
    int *allowed = allowed_shared(loaded_of(executable), step->what);
    if (bytes > *allowed) {
        result = dlcrt_driver_in(context)
                     ->function_set(loaded_of(executable)->functions[step->what],
                                    FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes);
        *allowed = result ? *allowed : (int)bytes;
    }
    pthread_mutex_unlock(&loaded_of(executable)->lock);
    return result ? dlcrt_driver_fail(dlcrt_driver_in(context), result, DLCRT_CU_function_set,
                                      dlcrt_string(context->plan, step->name))
                  : DLC_OK;
}

/* --- to a stream or a graph --- */
static const char *name_of(const dlcrt_context *context, const dlc_plan_step *step)
{
    return dlcrt_string(context->plan, step->name);
}

static dlc_status give_kernel(dlcrt_context *context, const dlc_plan_step *step,
                              const dlcrt_cuda_kernel *l)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (run->way == DLCRT_WAY_GRAPH)
        return dlcrt_graph_kernel(context, step, l);
    run->ngiven++;
    DLCRT_CUDA(dlcrt_driver_in(context), launch, name_of(context, step), l->function, l->grid[0],
               l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->shared_bytes,
               run->used, l->parameters, NULL);
    return DLC_OK;
}

static dlc_status give_copy(dlcrt_context *context, const dlc_plan_step *step, uint64_t to,
                            uint64_t from, size_t size_bytes)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (run->way == DLCRT_WAY_GRAPH)
        return dlcrt_graph_copy(context, step, to, from, size_bytes);
    run->ngiven++;
    DLCRT_CUDA(dlcrt_driver_in(context), copy_within, name_of(context, step), to, from, size_bytes,
               run->used);
    return DLC_OK;
}

static int64_t per_launch(const dlc_plan_kernel *kernel)
{
    return (int64_t)DLCRT_MAX_BLOCKS * kernel->units_per_block;
}

/* Units in launches of at most 2^31 - 1 blocks. */
static dlc_status give_launches(dlcrt_context *context, const dlc_plan_step *step)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    const dlc_plan_kernel *kernel = kernel_of(context, step);
    int64_t units = context->cells[step->units], first = 0;
    uint64_t fault = run->device_faults + dlcrt_cuda_number(context, step) * sizeof(int64_t);
    dlcrt_cuda_kernel one = {.function = loaded_of(context->executable)->functions[step->what],
                        .grid = {1, 1, 1},
                        .block = {kernel->threads, 1, 1},
                        .shared_bytes = (unsigned)shared_bytes_of(context, step),
                        .parameters = run->parameters};
    uint32_t n = 0;
    for (uint32_t i = 0; i < step->refs.count; i++)
        run->parameters[n++] = &context->pointers[step->refs.first + i];
    for (uint32_t i = 0; i < step->symbols.count; i++)
        run->parameters[n++] = &context->values[step->symbols.first + i];
    run->parameters[n++] = &fault;
    run->parameters[n++] = &first;
    run->parameters[n++] = &units;
    for (; first < units; first += per_launch(kernel)) {
        int64_t left = units - first < per_launch(kernel) ? units - first : per_launch(kernel);
        one.grid[0] =
            (unsigned)((left + kernel->units_per_block - 1) / kernel->units_per_block);
        DLC_TRY(give_kernel(context, step, &one));
    }
    return DLC_OK;
}

dlc_status dlcrt_cuda_launch(dlcrt_context *context, const dlc_plan_step *step)
{
    DLC_TRY(dlcrt_times_stamp(context, step, 0));
    DLC_TRY(give_launches(context, step));
    return dlcrt_times_stamp(context, step, 1);
}

static dlc_status give_bytes(dlcrt_context *context, const dlc_plan_step *step)
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
        DLCRT_CUDA(dlcrt_driver_in(context), copy_in, name, to, pointers[0], size_bytes,
                   dlcrt_run_of(context)->used);
    else if (refs[1].place == DLC_REF_HOST)
        DLCRT_CUDA(dlcrt_driver_in(context), copy_out, name, pointers[1], from, size_bytes,
                   dlcrt_run_of(context)->used);
    else
        return give_copy(context, step, to, from, size_bytes);
    return DLC_OK;
}

dlc_status dlcrt_cuda_copy(dlcrt_context *context, const dlc_plan_step *step)
{
    DLC_TRY(dlcrt_times_stamp(context, step, 0));
    DLC_TRY(give_bytes(context, step));
    return dlcrt_times_stamp(context, step, 1);
}

/*
 * Executables on a CUDA device: kernels are loaded when one is opened, so that a file whose code this
 * driver or device does not take falls back to its plan for the CPU; weights go over for the first
 * context. Both are shared by all contexts. A cubin that does not load gives way to PTX.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda.h"

/* Values of the driver's enumerations. */
enum { STREAM_NON_BLOCKING = 1, JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6 };

static const dlcrt_driver *driver_of(const dlcrt_executable *executable)
{
    return executable->device.driver;
}

static dlcrt_cuda *cuda_of(const dlcrt_executable *executable)
{
    return executable->loaded;
}

/* --- life --- */
static void free_all(dlcrt_executable *executable)
{
    const dlcrt_driver *driver = driver_of(executable);
    dlcrt_cuda *cuda = cuda_of(executable);
    for (uint32_t i = 0; i < cuda->nmodules; i++)
        if (cuda->modules[i].handle)
            driver->module_unload(cuda->modules[i].handle);
    if (cuda->weights)
        driver->memory_free(cuda->weights);
}

static void release(dlcrt_executable *executable)
{
    const dlcrt_driver *driver = driver_of(executable);
    dlcrt_cuda *cuda = cuda_of(executable);
    void *popped;
    int mode;
    if (cuda->context && !driver->context_push(cuda->context)) {
        int is_relaxed = dlcrt_capture_relax(driver, &mode) == DLC_OK;
        free_all(executable);
        if (is_relaxed)
            dlcrt_capture_restore(driver, mode);
        driver->context_pop(&popped);
    }
    if (cuda->context)
        driver->context_release(executable->device.handle);
    free(cuda->modules);
    free(cuda->functions);
    free(cuda->shared_bytes);
}

void dlcrt_cuda_unload(dlcrt_executable *executable)
{
    if (!executable->loaded)
        return;
    release(executable);
    pthread_mutex_destroy(&cuda_of(executable)->lock);
    free(executable->loaded);
    executable->loaded = NULL;
}

/* The device's context is current and nobody's recording minds what is done. */
static dlc_status do_inside(dlcrt_executable *executable,
                            dlc_status (*body)(dlcrt_executable *executable))
{
    const dlcrt_driver *driver = driver_of(executable);
    void *popped;
    int mode;
    DLCRT_CUDA(driver, context_push, executable->device.text, cuda_of(executable)->context);
    dlc_status status = dlcrt_capture_relax(driver, &mode);
    if (status == DLC_OK) {
        status = body(executable);
        dlcrt_capture_restore(driver, mode);
    }
    driver->context_pop(&popped);
    return status;
}

/* --- kernels --- */
/* DLC_NO_DEVICE: the driver does not take the binary. */
static dlc_status load_binary(dlcrt_executable *executable, const dlc_plan_binary *binary,
                              void **module)
{
    const dlcrt_driver *driver = driver_of(executable);
    char log[512] = "", what[768];
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    dlcrt_text text = {what, sizeof what, 0};
    const unsigned char *bytes = executable->image.entry->binaries;
    int result = driver->module_load(module, bytes + binary->offset, 2, options, values);
    if (!result)
        return DLC_OK;
    *module = NULL;
    dlcrt_text_add(&text, "the kernels for sm_%u%s; the driver is of CUDA %d.%d%s%s", binary->arch,
                   binary->kind == DLC_BINARY_PTX ? " (PTX)" : "", driver->version / 1000,
                   driver->version % 1000 / 10, *log ? ": " : "", log);
    return dlcrt_driver_fail(driver, result, DLCRT_CU_module_load, what);
}

/* Of what was loaded already, or was tried in vain. */
static dlcrt_cuda_module *find_module(const dlcrt_cuda *cuda, const dlc_plan_binary *binary)
{
    for (uint32_t i = 0; i < cuda->nmodules; i++)
        if (cuda->modules[i].offset == binary->offset)
            return &cuda->modules[i];
    return NULL;
}

static dlc_status load_module(dlcrt_executable *executable, const dlc_plan_binary *binary,
                              void **handle)
{
    dlcrt_cuda *cuda = cuda_of(executable);
    dlcrt_cuda_module *module = find_module(cuda, binary);
    dlc_status status = DLC_OK;
    if (!module) {
        module = &cuda->modules[cuda->nmodules++];
        module->offset = binary->offset;
        status = load_binary(executable, binary, &module->handle);
    }
    *handle = module->handle;
    return status ? status : module->handle ? DLC_OK : DLC_NO_DEVICE;
}

/* By the binary that suits best, or the next that does. */
static dlc_status load_kernel(dlcrt_executable *executable, uint32_t kernel)
{
    const dlcrt_driver *driver = driver_of(executable);
    const dlc_plan *plan = executable->plan;
    const dlc_plan_kernel *row = (const dlc_plan_kernel *)dlcrt_rows(plan, plan->kernels) + kernel;
    const char *name = dlcrt_string(plan, row->function);
    const dlc_plan_binary *binary;
    char reasons[1024] = "";
    dlcrt_text why = {reasons, sizeof reasons, 0};
    dlc_status status = DLC_NO_DEVICE;
    void *module;
    for (uint32_t nth = 0;
         (binary = dlcrt_binary_find(plan, kernel, &executable->device, nth)) != NULL; nth++) {
        status = load_module(executable, binary, &module);
        if (status == DLC_OK)
            DLCRT_CUDA(driver, module_function, name, &cuda_of(executable)->functions[kernel],
                       module, name);
        if (status != DLC_NO_DEVICE)
            return status;
        dlcrt_text_add(&why, "%s%s", nth ? "; " : "", dlcrt_last_error());
    }
    return dlcrt_fail(status, "%s", reasons);
}

static dlc_status load_kernels(dlcrt_executable *executable)
{
    for (uint32_t i = 0; i < executable->plan->kernels.count; i++)
        DLC_TRY(load_kernel(executable, i));
    return DLC_OK;
}

dlc_status dlcrt_cuda_load(dlcrt_executable *executable)
{
    const dlcrt_driver *driver = driver_of(executable);
    dlcrt_cuda *cuda = executable->loaded = dlcrt_alloc(1, sizeof *cuda);
    uint32_t nkernels = executable->plan->kernels.count;
    if (!cuda)
        return DLC_LIMIT;
    pthread_mutex_init(&cuda->lock, NULL);
    cuda->modules = dlcrt_alloc(executable->plan->binaries.count, sizeof *cuda->modules);
    cuda->functions = dlcrt_alloc(nkernels, sizeof *cuda->functions);
    cuda->shared_bytes = dlcrt_alloc(nkernels, sizeof *cuda->shared_bytes);
    if (!cuda->modules || !cuda->functions || !cuda->shared_bytes)
        return DLC_LIMIT;
    DLC_TRY(dlcrt_executable_check_code(executable));
    DLCRT_CUDA(driver, context_retain, executable->device.text, &cuda->context,
               executable->device.handle);
    return do_inside(executable, load_kernels);
}

/* --- weights --- */
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

/* What failed is undone, so that the next context may try again. */
static dlc_status make_ready(dlcrt_executable *executable)
{
    const dlcrt_driver *driver = driver_of(executable);
    dlcrt_cuda *cuda = cuda_of(executable);
    DLC_TRY(dlcrt_executable_check(executable, NULL));
    dlc_status status = upload_weights(executable);
    if (status && cuda->weights) {
        driver->memory_free(cuda->weights);
        cuda->weights = 0;
    }
    cuda->is_ready = status == DLC_OK;
    return status;
}

dlc_status dlcrt_cuda_use(dlcrt_executable *executable)
{
    dlc_status status = DLC_OK;
    pthread_mutex_lock(&cuda_of(executable)->lock);
    if (!cuda_of(executable)->is_ready)
        status = do_inside(executable, make_ready);
    pthread_mutex_unlock(&cuda_of(executable)->lock);
    return status;
}

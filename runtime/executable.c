/* Executables: opened from a file or taken from the program, then only read. Contexts share one by
 * counting users. */
#include "runtime/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DLC_VERSION
#define DLC_VERSION "0.1.0"
#endif

const char *dlcrt_version(void)
{
    return DLC_VERSION;
}

static const dlcrt_executable_options any_device;

/* Takes over the image, also when it fails. */
static dlc_status adopt(dlcrt_image *image, const char *name,
                        const dlcrt_executable_options *options, dlcrt_executable **result)
{
    const dlc_plan_entry *entry = NULL;
    dlcrt_executable *executable = NULL;
    dlcrt_device device;
    const char *wanted = options->device ? options->device : getenv("DLC_DEVICE");
    dlc_status status = dlcrt_check(image, name, wanted, options->plan, &entry, &device);
    if (status == DLC_OK && !(executable = dlcrt_alloc(1, sizeof *executable + strlen(name) + 1)))
        status = DLC_LIMIT;
    if (status) {
        dlcrt_image_unload(image);
        return status;
    }
    executable->device = device;
    executable->is_inert = wanted && !strcmp(wanted, "none");
    executable->image = *image;
    executable->entry = entry;
    executable->plan = entry->plan;
    executable->constants = image->entry->constants;
    atomic_init(&executable->users, 1);
    atomic_init(&executable->is_whole, !image->base); /* what is linked in is the program's own */
    pthread_mutex_init(&executable->lock, NULL);
    memcpy(executable->name, name, strlen(name) + 1);
    status = device.row->load(executable);
    if (status) {
        dlcrt_executable_close(executable);
        return status;
    }
    *result = executable;
    return DLC_OK;
}

static dlc_status open_fd(int fd, const char *name, const dlcrt_executable_options *options,
                          dlcrt_executable **result)
{
    dlcrt_image image = {0};
    DLC_TRY(dlcrt_image_load(fd, name, &image));
    return adopt(&image, name, options, result);
}

static dlc_status open_path(const char *path, const dlcrt_executable_options *options,
                            dlcrt_executable **result)
{
    int fd;
    do
        fd = open(path,
                  O_RDONLY | O_CLOEXEC |
                      O_NONBLOCK); /* a FIFO must not block; it is refused as no regular file */
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return dlcrt_fail(DLC_IO, "%s: %s", path, strerror(errno));
    dlc_status status = open_fd(fd, path, options, result);
    close(fd);
    return status;
}

dlc_status dlcrt_executable_open_with(const dlcrt_executable_options *options,
                                      dlcrt_executable **result)
{
    if (!options || !result)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_open_with: %s is NULL",
                          options ? "result" : "options");
    *result = NULL;
    if (options->path)
        return open_path(options->path, options, result);
    dlcrt_image linked = {.entry = options->image};
    return options->image ? adopt(&linked, "executable", options, result)
                          : open_fd(options->fd, "executable", options, result);
}

dlc_status dlcrt_executable_open(const char *path, dlcrt_executable **result)
{
    if (!result)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_open: result is NULL");
    *result = NULL;
    if (!path)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_open: path is NULL");
    return open_path(path, &any_device, result);
}

dlc_status dlcrt_executable_open_fd(int fd, dlcrt_executable **result)
{
    if (!result)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_open_fd: result is NULL");
    *result = NULL;
    return open_fd(fd, "executable", &any_device, result);
}

dlc_status dlcrt_executable_from(const struct dlc_executable *image, dlcrt_executable **result)
{
    if (!result)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_from: result is NULL");
    *result = NULL;
    if (!image)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_from: image is NULL");
    dlcrt_image linked = {.entry = image};
    return adopt(&linked, "executable", &any_device, result);
}

void dlcrt_executable_retain(dlcrt_executable *executable)
{
    atomic_fetch_add_explicit(&executable->users, 1, memory_order_relaxed);
}

void dlcrt_executable_close(dlcrt_executable *executable)
{
    if (!executable || atomic_fetch_sub_explicit(&executable->users, 1, memory_order_acq_rel) > 1)
        return;
    executable->device.row->unload(executable);
    dlcrt_image_unload(&executable->image);
    pthread_mutex_destroy(&executable->lock);
    free(executable);
}

void dlcrt_tensor_describe(const dlc_plan *plan, const dlc_plan_tensor *tensor,
                           const int64_t *cells, uint32_t ncells, dlcrt_tensor_info *info)
{
    const uint32_t *rows = dlcrt_rows(plan, plan->cells);
    const dlc_size_inst *insts = dlcrt_rows(plan, plan->insts);
    const dlc_plan_symbol *symbols = dlcrt_rows(plan, plan->symbols);
    memset(info, 0, sizeof *info);
    info->name = dlcrt_string(plan, tensor->name);
    info->type = dlcrt_string(plan, tensor->type_text);
    info->dtype = (dlc_dtype)tensor->dtype;
    info->rank = tensor->rank;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint32_t cell = rows[tensor->dims + i];
        const dlc_size_inst *inst = &insts[cell];
        info->dims[i] = inst->op == DLC_SIZE_CONST ? inst->imm
                        : cells && cell < ncells   ? cells[cell]
                                                   : -1;
        if (inst->op == DLC_SIZE_SYM)
            info->dim_names[i] = dlcrt_string(plan, symbols[inst->args[0]].name);
    }
}

uint32_t dlcrt_executable_ninputs(const dlcrt_executable *executable)
{
    return executable ? executable->plan->inputs.count : 0;
}

uint32_t dlcrt_executable_noutputs(const dlcrt_executable *executable)
{
    return executable ? executable->plan->outputs.count : 0;
}

static int describe(const dlc_plan *plan, dlc_plan_rows rows, uint32_t i, dlcrt_tensor_info *info)
{
    if (i >= rows.count)
        return 0;
    const dlc_plan_tensor *tensors = dlcrt_rows(plan, rows);
    dlcrt_tensor_describe(plan, &tensors[i], NULL, 0, info);
    return 1;
}

int dlcrt_executable_input(const dlcrt_executable *executable, uint32_t i, dlcrt_tensor_info *info)
{
    return executable && info && describe(executable->plan, executable->plan->inputs, i, info);
}

int dlcrt_executable_output(const dlcrt_executable *executable, uint32_t i, dlcrt_tensor_info *info)
{
    return executable && info && describe(executable->plan, executable->plan->outputs, i, info);
}

void dlcrt_executable_describe(const dlcrt_executable *executable, dlcrt_executable_info *info)
{
    if (!info)
        return;
    *info = (dlcrt_executable_info){.model = "", .target = "", .producer = "", .device = ""};
    if (!executable)
        return;
    const dlc_plan *plan = executable->plan;
    *info = (dlcrt_executable_info){
        .model = dlcrt_string(plan, plan->model),
        .target = dlcrt_string(plan, plan->target),
        .producer = dlcrt_string(plan, plan->producer),
        .nkernels = plan->kernels.count,
        .nsteps = plan->steps.count,
        .nsymbols = plan->symbols.count,
        .constants_bytes = executable->image.entry->constants_bytes,
        .plan_bytes = plan->size_bytes,
        .is_static = plan->symbols.count == 0,
        .nplans = executable->image.entry->nplans,
        .device = executable->device.text,
    };
}

int dlcrt_executable_step(const dlcrt_executable *executable, uint32_t i, dlcrt_step_info *info)
{
    static const char *const marks[] = {"set", "if", "else", "loop", "end"};
    if (!executable || !info || i >= executable->plan->steps.count)
        return 0;
    const dlc_plan *plan = executable->plan;
    const dlc_plan_step *step = (const dlc_plan_step *)dlcrt_rows(plan, plan->steps) + i;
    const dlc_plan_kernel *kernels = dlcrt_rows(plan, plan->kernels);
    info->name = dlcrt_string(plan, step->name);
    info->is_kernel = step->kind == DLC_DO_LAUNCH;
    info->kernel = step->kind == DLC_DO_LAUNCH   ? dlcrt_string(plan, kernels[step->what].name)
                   : step->kind == DLC_DO_OPAQUE ? dlcrt_opaques[step->what].text
                   : step->kind == DLC_DO_BIND   ? "bind"
                   : step->kind >= DLC_DO_SET    ? marks[step->kind - DLC_DO_SET]
                                                 : "copy";
    return 1;
}

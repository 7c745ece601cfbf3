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
static const char nameless[] = "executable"; /* of a descriptor, or linked in */

/* The executable on the best plan of those that have not been passed over; without its kernels. */
static dlc_status make(const dlcrt_image *image, const char *name, const char *wanted,
                       const dlcrt_executable_options *options, uint64_t passed,
                       dlcrt_executable **result)
{
    const dlc_plan_entry *entry = NULL;
    dlcrt_device device;
    DLC_TRY(dlcrt_check(image, name, wanted, options->plan, passed, &entry, &device));
    dlcrt_executable *executable = dlcrt_alloc(1, sizeof *executable + strlen(name) + 1);
    if (!executable)
        return DLC_LIMIT;
    executable->device = device;
    executable->is_inert = wanted && !strcmp(wanted, "none");
    executable->image = *image;
    executable->entry = entry;
    executable->plan = entry->plan;
    executable->constants = image->entry->constants;
    atomic_init(&executable->users, 1);
    atomic_init(&executable->is_whole, !image->base); /* what is linked in is the program's own */
    pthread_mutex_init(&executable->lock, NULL);
    if (name == nameless)
        executable->content = image->base ? image->checksum : entry->checksum;
    memcpy(executable->name, name, strlen(name) + 1);
    *result = executable;
    return DLC_OK;
}

/* All but its image. */
static void unmake(dlcrt_executable *executable)
{
    executable->device.row->unload(executable);
    pthread_mutex_destroy(&executable->lock);
    free(executable);
}

/* The bit of the executable's plan, which is passed over from now on; 0: there are too many. */
static uint64_t bit_of(const dlcrt_executable *executable)
{
    size_t number = (size_t)(executable->entry - executable->image.entry->plans);
    return number < 64 ? UINT64_C(1) << number : 0;
}

/* A device that is there runs nothing of it: one line says why, and by which plan it runs. */
static void tell_passed(dlcrt_executable *executable, const char *reason)
{
    char *passed = executable->device.passed;
    size_t size_bytes = sizeof executable->device.passed, n = strlen(executable->name);
    char why[sizeof executable->device.passed];
    const char *first = *reason ? reason : passed;
    if (!*first)
        return;
    if (!strncmp(first, executable->name, n) && !strncmp(first + n, ": ", 2))
        first += n + 2;
    dlcrt_text text = {why, sizeof why, 0}, all = {passed, size_bytes, 0};
    dlcrt_text_add(&text, "%s", first);
    dlcrt_text_add(&all, "it runs by the plan for %s: %s",
                   dlcrt_string(executable->plan, executable->plan->target), why);
    (void)dlcrt_fail(DLC_OK, "%s: %s", executable->name, passed);
}

/* A plan whose code the device does not take is passed over for the next best one, and the reason is
 * told. */
static dlc_status load(const dlcrt_image *image, const char *name, const char *wanted,
                       const dlcrt_executable_options *options, dlcrt_executable **result)
{
    char reason[1024] = "";
    dlcrt_text why = {reason, sizeof reason, 0};
    for (uint64_t passed = 0;;) {
        dlcrt_executable *executable;
        dlc_status status = make(image, name, wanted, options, passed, &executable);
        if (status)
            return passed ? dlcrt_fail(DLC_NO_DEVICE, "%s: %s", name, reason) : status;
        status = executable->device.row->load(executable);
        if (status == DLC_OK) {
            tell_passed(executable, reason);
            *result = executable;
            return DLC_OK;
        }
        dlcrt_text_add(&why, "%s%s", passed ? "; " : "", dlcrt_last_error());
        uint64_t bit = status == DLC_NO_DEVICE ? bit_of(executable) : 0;
        unmake(executable);
        if (!bit)
            return status;
        passed |= bit;
    }
}

/* Takes over the image, also when it fails. */
static dlc_status adopt(dlcrt_image *image, const char *name,
                        const dlcrt_executable_options *options, dlcrt_executable **result)
{
    const char *wanted = options->device ? options->device : getenv("DLC_DEVICE");
    dlc_status status = load(image, name, wanted, options, result);
    if (status)
        dlcrt_image_unload(image);
    return status;
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
    return options->image ? adopt(&linked, nameless, options, result)
                          : open_fd(options->fd, nameless, options, result);
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
    return open_fd(fd, nameless, &any_device, result);
}

dlc_status dlcrt_executable_from(const struct dlc_executable *image, dlcrt_executable **result)
{
    if (!result)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_from: result is NULL");
    *result = NULL;
    if (!image)
        return dlcrt_fail(DLC_USAGE, "dlcrt_executable_from: image is NULL");
    dlcrt_image linked = {.entry = image};
    return adopt(&linked, nameless, &any_device, result);
}

void dlcrt_executable_retain(dlcrt_executable *executable)
{
    atomic_fetch_add_explicit(&executable->users, 1, memory_order_relaxed);
}

void dlcrt_executable_close(dlcrt_executable *executable)
{
    if (!executable || atomic_fetch_sub_explicit(&executable->users, 1, memory_order_acq_rel) > 1)
        return;
    dlcrt_image image = executable->image;
    unmake(executable);
    dlcrt_image_unload(&image);
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
    *info = (dlcrt_executable_info){.model = "", .target = "", .producer = "", .device = "", .passed = ""};
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
        .passed = executable->device.passed,
    };
}

int dlcrt_executable_metadata(const dlcrt_executable *executable, uint32_t i, dlcrt_metadata *row)
{
    if (!executable || !row || i >= executable->plan->properties.count)
        return 0;
    const dlc_plan_property *property =
        (const dlc_plan_property *)dlcrt_rows(executable->plan, executable->plan->properties) + i;
    *row = (dlcrt_metadata){dlcrt_string(executable->plan, property->key),
                            dlcrt_string(executable->plan, property->value), property->is_field != 0};
    return 1;
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
    info->peak = info->is_kernel ? dlcrt_string(plan, kernels[step->what].peak) : "";
    info->kernel = step->kind == DLC_DO_LAUNCH   ? dlcrt_string(plan, kernels[step->what].name)
                   : step->kind == DLC_DO_OPAQUE ? dlcrt_opaques[step->what].text
                   : step->kind == DLC_DO_BIND   ? "bind"
                   : step->kind >= DLC_DO_SET    ? marks[step->kind - DLC_DO_SET]
                                                 : "copy";
    return 1;
}

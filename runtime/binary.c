/* Which plans a CUDA device runs: those with a binary for it of every kernel. */
#include "runtime/cuda.h"

enum { MAX_BLOCK_THREADS = 1024 };

/* A cubin runs on its own major capability from its minor one on; PTX on every later one. */
static int suits_device(const dlc_plan_binary *binary, uint32_t capability)
{
    return binary->arch <= capability &&
           (binary->kind == DLC_BINARY_PTX || binary->arch / 10 == capability / 10);
}

static int suits(const dlc_plan_binary *binary, const dlcrt_device *device)
{
    const dlcrt_driver *driver = device->driver;
    return suits_device(binary, device->capability) && binary->driver <= (uint32_t)driver->version;
}

static int is_better(const dlc_plan_binary *a, const dlc_plan_binary *b)
{
    return a->kind != b->kind ? a->kind < b->kind : a->arch > b->arch;
}

const dlc_plan_binary *dlcrt_binary_find(const dlc_plan *plan, uint32_t kernel,
                                         const dlcrt_device *device, uint32_t nth)
{
    const dlc_plan_kernel *row = (const dlc_plan_kernel *)dlcrt_rows(plan, plan->kernels) + kernel;
    const dlc_plan_binary *all =
        (const dlc_plan_binary *)dlcrt_rows(plan, plan->binaries) + row->binaries.first;
    const dlc_plan_binary *found = NULL, *before = NULL;
    for (uint32_t n = 0; n <= nth; n++, before = found) {
        found = NULL;
        for (uint32_t i = 0; i < row->binaries.count; i++)
            if (suits(&all[i], device) && (!before || is_better(before, &all[i])) &&
                (!found || is_better(&all[i], found)))
                found = &all[i];
        if (!found)
            return NULL;
    }
    return found;
}

/* The oldest driver that would do for the kernel on this device; 0: none. */
static uint32_t driver_for(const dlc_plan *plan, uint32_t kernel, const dlcrt_device *device)
{
    const dlc_plan_kernel *row = (const dlc_plan_kernel *)dlcrt_rows(plan, plan->kernels) + kernel;
    const dlc_plan_binary *all =
        (const dlc_plan_binary *)dlcrt_rows(plan, plan->binaries) + row->binaries.first;
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < row->binaries.count; i++)
        if (suits_device(&all[i], device->capability) && (!oldest || all[i].driver < oldest))
            oldest = all[i].driver;
    return oldest;
}

static dlc_status fits(const dlcrt_candidate *of, const dlcrt_device *device)
{
    const dlc_plan *plan = of->entry->plan;
    const dlcrt_driver *driver = device->driver;
    for (uint32_t i = 0; i < plan->kernels.count; i++) {
        uint32_t wanted = driver_for(plan, i, device);
        if (dlcrt_binary_find(plan, i, device, 0))
            continue;
        return wanted ? dlcrt_fail(DLC_NO_DEVICE,
                                   "%s: its code for %s needs a driver of CUDA %u.%u; that of cuda:%d "
                                   "(%s) is of CUDA %d.%d",
                                   of->name, dlcrt_string(plan, plan->target), wanted / 1000,
                                   wanted % 1000 / 10, device->ordinal, device->name,
                                   driver->version / 1000, driver->version % 1000 / 10)
                      : dlcrt_fail(DLC_NO_DEVICE, "%s: made for %s; cuda:%d (%s) is sm_%u", of->name,
                                   dlcrt_string(plan, plan->target), device->ordinal, device->name,
                                   device->capability);
    }
    return DLC_OK;
}

/* Above every CPU's; plans whose kernels all have cubins first, then by capability. */
uint32_t dlcrt_cuda_rank(const dlcrt_candidate *of, const dlcrt_device *device)
{
    enum { RANK = 1000 };
    const dlc_plan *plan = of->entry->plan;
    uint32_t is_cubin = 1, highest = 0;
    if (fits(of, device))
        return 0;
    for (uint32_t i = 0; i < plan->kernels.count; i++) {
        const dlc_plan_binary *binary = dlcrt_binary_find(plan, i, device, 0);
        is_cubin &= binary->kind == DLC_BINARY_CUBIN;
        highest = binary->arch > highest ? binary->arch : highest;
    }
    return (1 + is_cubin) * RANK + highest;
}

dlc_status dlcrt_cuda_check(const dlcrt_candidate *of)
{
    const dlc_plan *plan = of->entry->plan;
    const dlc_plan_kernel *kernel = dlcrt_rows(plan, plan->kernels);
    for (uint32_t i = 0; i < plan->kernels.count; i++, kernel++)
        if (kernel->threads < 1 || kernel->threads > MAX_BLOCK_THREADS ||
            kernel->units_per_block < 1 || kernel->units_per_block > MAX_BLOCK_THREADS ||
            kernel->fixed_bytes > INT32_MAX || kernel->scratches > MAX_BLOCK_THREADS)
            return dlcrt_damaged(of->name, "kernel %u is out of bounds", i);
    return DLC_OK;
}

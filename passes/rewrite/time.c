/* How long a kernel will take, as far as rewrites need to know. */
#include <math.h>

#include "ir/kernel/algebra.h"
#include "passes/fuse/fuse.h"
#include "passes/rewrite/rewrite.h"

const dlc_kernel *dlc_rewrite_expanded(const dlc_rewriting *in, const dlc_kernel *kernel)
{
    dlc_kernel *copy = dlc_kernel_clone(kernel, in->scratch);
    for (uint32_t s = 0; s < copy->stages.n; s++)
        for (uint32_t i = 0; i < 2; i++)
            if (copy->stages.data[s].value[i])
                copy->stages.data[s].value[i] = dlc_expr_expand(copy->pool, copy->stages.data[s].value[i]);
    return copy;
}

/* Few units get their share of the machine's arithmetic, and of its memory: one multiprocessor has only so many loads under way.
 * Estimates of kernels leave the second out, since it does not tell fused from unfused. */
double dlc_rewrite_time(const dlc_rewriting *in, const dlc_kernel *kernel, double *share)
{
    dlc_mark mark = dlc_arena_mark(in->scratch);
    const dlc_machine *machine = in->target->machine;
    dlc_schedule *schedule = NULL;
    dlc_estimate estimate = {.time_us = -1};
    const char *detail;
    (void)dlc_choose(kernel, in->target, in->scratch, &schedule, &detail);
    if (schedule)
        dlc_estimate_kernel(schedule, in->scratch, &estimate);
    double workers = estimate.units * (estimate.ndots ? machine->block_workers : 1);
    *share = workers / machine->workers;
    double moving = *share > 0 ? estimate.bytes / (machine->far_bytes_per_us * fmin(*share, 1)) + machine->step_us : 0;
    dlc_arena_release(in->scratch, mark);
    return schedule && moving > estimate.time_us ? moving : estimate.time_us;
}

double dlc_rewrite_time_of_fitting(const dlc_rewriting *in, const dlc_kernel *kernel)
{
    dlc_mark mark = dlc_arena_mark(in->scratch);
    dlc_schedule *schedule;
    dlc_estimate estimate = {.time_us = -1};
    if (dlc_choose(kernel, in->target, in->scratch, &schedule, NULL) == DLC_REASON_NONE)
        dlc_estimate_kernel(schedule, in->scratch, &estimate);
    dlc_arena_release(in->scratch, mark);
    return estimate.time_us;
}

/*
 * What each step of a profiled run took on the device, by events before and behind it: in the
 * stream, or nodes of the graph. A step that runs again and again has the sum, and ends when it last
 * did.
 */
#include <string.h>

#include "runtime/cuda.h"

static const char what[] = "the time of a step";

static uint32_t nevents(const dlcrt_context *context)
{
    return 2 * context->plan->steps.count + 1;
}

dlc_status dlcrt_times_create(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (!context->profile)
        return DLC_OK;
    run->events = dlcrt_alloc(nevents(context), sizeof *run->events);
    run->is_timed = dlcrt_alloc(context->plan->steps.count + 1u, 1);
    if (!run->events || !run->is_timed)
        return DLC_LIMIT;
    for (uint32_t i = 0; i < nevents(context); i++)
        DLCRT_CUDA(dlcrt_driver_in(context), event_create, what, &run->events[i], 0);
    return DLC_OK;
}

void dlcrt_times_destroy(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    for (uint32_t i = 0; run->events && i < nevents(context); i++)
        if (run->events[i])
            dlcrt_driver_in(context)->event_destroy(run->events[i]);
}

static dlc_status stamp(dlcrt_context *context, void *event)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    void *node;
    if (run->way == DLCRT_WAY_STREAM) {
        DLCRT_CUDA(driver, event_record, what, event, run->used);
    } else if (run->way == DLCRT_WAY_GRAPH) {
        DLCRT_CUDA(driver, graph_event, what, &node, run->graph, &run->newest,
                   run->newest ? 1u : 0u, event);
        run->newest = node;
    }
    return DLC_OK;
}

dlc_status dlcrt_times_begin(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (!run->events)
        return DLC_OK;
    memset(run->is_timed, 0, context->plan->steps.count);
    return stamp(context, run->events[nevents(context) - 1]);
}

static dlc_status since_begin(const dlcrt_context *context, void *event, int64_t *ns)
{
    const dlcrt_cuda_run *run = dlcrt_run_of(context);
    float ms = 0;
    DLCRT_CUDA(dlcrt_driver_in(context), event_elapsed, what, &ms, run->events[nevents(context) - 1],
               event);
    *ns = (int64_t)((double)ms * 1e6);
    return DLC_OK;
}

static dlc_status read_step(dlcrt_context *context, uint32_t i)
{
    const dlcrt_cuda_run *run = dlcrt_run_of(context);
    dlcrt_step_profile *profile = &context->profile[i];
    int64_t spent = profile->end_ns - profile->begin_ns, begin, end;
    DLC_TRY(since_begin(context, run->events[2 * i], &begin));
    DLC_TRY(since_begin(context, run->events[2 * i + 1], &end));
    profile->runs++;
    profile->begin_ns = begin - spent;
    profile->end_ns = end;
    return DLC_OK;
}

dlc_status dlcrt_times_stamp(dlcrt_context *context, const dlc_plan_step *step, int is_behind)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    uint32_t i = (uint32_t)(step - (const dlc_plan_step *)dlcrt_rows(context->plan, context->plan->steps));
    if (!run->events || run->way == DLCRT_WAY_UPDATE)
        return DLC_OK;
    if (run->way == DLCRT_WAY_STREAM && !is_behind && run->is_timed[i]) {
        DLCRT_CUDA(driver, stream_wait, what, run->used); /* its events are about to be used again */
        DLC_TRY(read_step(context, i));
    }
    run->is_timed[i] |= (uint8_t)is_behind;
    return stamp(context, run->events[2 * i + (uint32_t)is_behind]);
}

dlc_status dlcrt_times_read(dlcrt_context *context)
{
    const dlcrt_cuda_run *run = dlcrt_run_of(context);
    for (uint32_t i = 0; run->events && i < context->plan->steps.count; i++)
        if (run->is_timed[i])
            DLC_TRY(read_step(context, i));
    return DLC_OK;
}

/*
 * What each step of a profiled run took on the device, by events before and behind it: in the
 * stream, or nodes of the graph. A step that runs again and again, in a loop, has two events each time, the
 * sum of its times, and ends when it last did.
 */
#include <stdlib.h>

#include "runtime/cuda.h"

static const char what[] = "the time of a step";
#ifndef DLCRT_MOST_SPANS /* tests say fewer */
#define DLCRT_MOST_SPANS 4096 /* of a run that is walked: then it is waited for, and its events are used again */
#endif

/* Once a step ran. */
typedef struct {
    void *begin, *end; /* events */
    uint32_t step;
} span;

struct dlcrt_cuda_times {
    void *begin; /* the run's event */
    span *spans;
    size_t n, nmade, room; /* of this run, or of the graph; those that have events */
};

dlc_status dlcrt_times_create(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (!context->profile)
        return DLC_OK;
    run->times = dlcrt_alloc(1, sizeof *run->times);
    if (!run->times)
        return DLC_LIMIT;
    DLCRT_CUDA(dlcrt_driver_in(context), event_create, what, &run->times->begin, 0);
    return DLC_OK;
}

static void destroy_event(dlcrt_context *context, void *event)
{
    if (event)
        dlcrt_driver_in(context)->event_destroy(event);
}

void dlcrt_times_destroy(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (!run->times)
        return;
    for (size_t i = 0; i < run->times->nmade; i++) {
        destroy_event(context, run->times->spans[i].begin);
        destroy_event(context, run->times->spans[i].end);
    }
    destroy_event(context, run->times->begin);
    free(run->times->spans);
    free(run->times);
    run->times = NULL;
}

/* --- stamps --- */
static dlc_status stamp(dlcrt_context *context, void *event)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (run->way == DLCRT_WAY_GRAPH)
        return dlcrt_graph_event(context, event, what);
    DLCRT_CUDA(dlcrt_driver_in(context), event_record, what, event, run->used);
    return DLC_OK;
}

dlc_status dlcrt_times_begin(dlcrt_context *context)
{
    dlcrt_cuda_times *times = dlcrt_run_of(context)->times;
    if (!times)
        return DLC_OK;
    times->n = 0;
    return stamp(context, times->begin);
}

static dlc_status make_span(dlcrt_context *context, dlcrt_cuda_times *times)
{
    const dlcrt_driver *driver = dlcrt_driver_in(context);
    if (times->nmade == times->room) {
        size_t room = 2 * times->room + context->plan->steps.count;
        span *larger = realloc(times->spans, room * sizeof *larger);
        if (!larger)
            return dlcrt_no_memory(room * sizeof *larger);
        times->spans = larger;
        times->room = room;
    }
    span made;
    DLCRT_CUDA(driver, event_create, what, &made.begin, 0);
    int result = driver->event_create(&made.end, 0);
    if (result) {
        driver->event_destroy(made.begin);
        return dlcrt_driver_fail(driver, result, DLCRT_CU_event_create, what);
    }
    times->spans[times->nmade++] = made;
    return DLC_OK;
}

/* Events for a step that is about to run. */
static dlc_status begin_span(dlcrt_context *context, const dlc_plan_step *step)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    dlcrt_cuda_times *times = run->times;
    if (run->way == DLCRT_WAY_STREAM && times->n >= DLCRT_MOST_SPANS) {
        DLCRT_CUDA(dlcrt_driver_in(context), stream_wait, what, run->used);
        DLC_TRY(dlcrt_times_read(context));
        times->n = 0;
    }
    if (times->n == times->nmade)
        DLC_TRY(make_span(context, times));
    times->spans[times->n].step = dlcrt_cuda_number(context, step);
    return stamp(context, times->spans[times->n].begin);
}

dlc_status dlcrt_times_stamp(dlcrt_context *context, const dlc_plan_step *step, int is_behind)
{
    dlcrt_cuda_times *times = dlcrt_run_of(context)->times;
    if (!times)
        return DLC_OK;
    return is_behind ? stamp(context, times->spans[times->n++].end) : begin_span(context, step);
}

/* --- reading --- */
static dlc_status since_begin(const dlcrt_context *context, void *event, int64_t *ns)
{
    float ms = 0;
    DLCRT_CUDA(dlcrt_driver_in(context), event_elapsed, what, &ms, dlcrt_run_of(context)->times->begin, event);
    *ns = (int64_t)((double)ms * 1e6);
    return DLC_OK;
}

static dlc_status read_span(dlcrt_context *context, const span *of)
{
    dlcrt_step_profile *profile = &context->profile[of->step];
    int64_t spent = profile->end_ns - profile->begin_ns, begin, end;
    DLC_TRY(since_begin(context, of->begin, &begin));
    DLC_TRY(since_begin(context, of->end, &end));
    profile->runs++;
    profile->begin_ns = begin - spent;
    profile->end_ns = end;
    return DLC_OK;
}

dlc_status dlcrt_times_read(dlcrt_context *context)
{
    const dlcrt_cuda_times *times = dlcrt_run_of(context)->times;
    for (size_t i = 0; times && i < times->n; i++)
        DLC_TRY(read_span(context, &times->spans[i]));
    return DLC_OK;
}

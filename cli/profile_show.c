/* A profile as a table, as JSON and as trace events. */
#include "cli/profile.h"

#include <stdlib.h>
#include <string.h>

/* Steps below this share of the time are one line together. */
static const double least_share = 0.005;

/* The share of a step's time, over all threads, in which they were in its code; -1: no thread had it. */
static double busy_share(const dlc_profile *profile, const dlc_timed_step *step)
{
    double busy = 0;
    for (uint32_t t = 0; t < profile->nthreads; t++)
        busy += step->lanes[t].busy_us;
    return busy > 0 && step->us > 0 ? busy / (step->us * profile->nthreads) : -1;
}

static double per_ns(double amount, double us)
{
    return us > 0 ? amount / us / 1e3 : 0;
}

/* ---- the table ---- */

typedef struct {
    double us;
    uint32_t i;
} ranked;

static int slower(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->us != y->us ? (x->us < y->us) - (x->us > y->us) : (x->i > y->i) - (x->i < y->i);
}

static void show_step(dlc_cli *cli, const dlc_profile *profile, const dlc_timed_step *step, const dlc_roofs *roofs)
{
    dlc_bound bound = dlc_roofs_bound(roofs, step->peak, step->us, step->flops, step->bytes);
    double busy = busy_share(profile, step);
    dlc_say(cli, "%10.1f %5.1f%% %8.1f %8.1f ", step->us, 100 * step->us / profile->total_us, per_ns(step->flops, step->us),
            per_ns(step->bytes, step->us));
    if (bound.roof)
        dlc_say(cli, " %4.0f %% %-9s", 100 * bound.share, bound.roof);
    else
        dlc_say(cli, " %16s", "");
    if (busy >= 0)
        dlc_say(cli, " %4.0f %%", 100 * busy);
    else
        dlc_say(cli, " %6s", "");
    dlc_say(cli, "  %s\n", dlc_arena_line(cli->arena, step->name));
}

static void show_rest(dlc_cli *cli, const dlc_profile *profile, const ranked *rows, uint32_t n)
{
    double us = 0;
    for (uint32_t i = 0; i < n; i++)
        us += rows[i].us;
    if (n)
        dlc_say(cli, "%10.1f %5.1f%%%*s%u more steps, each below %g %%\n", us, 100 * us / profile->total_us, 46, "", n, 100 * least_share);
}

void dlc_profile_show(dlc_cli *cli, const dlc_profile *profile, const dlc_roofs *roofs)
{
    ranked *rows = dlc_new_array(cli->arena, ranked, profile->nsteps + 1);
    uint32_t n = 0;
    double sum = 0;
    for (uint32_t i = 0; i < profile->nsteps; i++) {
        sum += profile->steps[i].us;
        if (profile->steps[i].us > 0)
            rows[n++] = (ranked){profile->steps[i].us, i};
    }
    qsort(rows, n, sizeof *rows, slower);
    if (profile->name)
        dlc_say(cli, "\n%s", profile->name);
    if (profile->nruns > 1)
        dlc_say(cli, "\nThe median of %u profiled runs: %.1f us, %.1f of them in steps\n", profile->nruns, profile->total_us, sum);
    else
        dlc_say(cli, "\nThis run, the first: %.1f us, %.1f of them in steps\n", profile->total_us, sum);
    dlc_say(cli, "%10s %6s %8s %8s  %-16s %6s  %s\n", "us", "", "Gop/s", "GB/s", "bound", "busy", "step");
    uint32_t i = 0;
    for (; i < n && rows[i].us >= least_share * profile->total_us; i++)
        show_step(cli, profile, &profile->steps[rows[i].i], roofs);
    show_rest(cli, profile, rows + i, n - i);
}

/* ---- JSON ---- */

static cJSON *lanes_json(const dlc_profile *profile, const dlc_timed_step *step)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t t = 0; t < profile->nthreads; t++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(step->lanes[t].busy_us));
    return list;
}

cJSON *dlc_profile_json(const dlc_profile *profile, const dlc_roofs *roofs)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < profile->nsteps; i++) {
        const dlc_timed_step *step = &profile->steps[i];
        dlc_bound bound = dlc_roofs_bound(roofs, step->peak, step->us, step->flops, step->bytes);
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", step->name);
        cJSON_AddNumberToObject(row, "begin_us", step->begin_us);
        cJSON_AddNumberToObject(row, "us", step->us);
        cJSON_AddNumberToObject(row, "runs", (double)step->runs);
        cJSON_AddNumberToObject(row, "flops", step->flops);
        cJSON_AddNumberToObject(row, "bytes", step->bytes);
        if (bound.roof) {
            cJSON_AddStringToObject(row, "bound", bound.roof);
            cJSON_AddNumberToObject(row, "bound_share", bound.share);
        }
        if (busy_share(profile, step) >= 0) {
            cJSON_AddNumberToObject(row, "busy_share", busy_share(profile, step));
            cJSON_AddItemToObject(row, "busy_us", lanes_json(profile, step));
        }
        cJSON_AddItemToArray(list, row);
    }
    return list;
}

/* ---- trace events ---- */

static cJSON *add_event(cJSON *events, const char *kind, const char *name, uint32_t process, uint32_t lane)
{
    cJSON *event = cJSON_CreateObject();
    cJSON_AddStringToObject(event, "name", name);
    cJSON_AddStringToObject(event, "ph", kind);
    cJSON_AddNumberToObject(event, "pid", process);
    cJSON_AddNumberToObject(event, "tid", lane);
    cJSON_AddItemToArray(events, event);
    return event;
}

/* Perfetto shows this in place of a process's or a lane's number. */
static void add_name(cJSON *events, const char *of, uint32_t process, uint32_t lane, const char *name)
{
    cJSON_AddStringToObject(cJSON_AddObjectToObject(add_event(events, "M", of, process, lane), "args"), "name", name);
}

static void add_step(cJSON *events, const dlc_timed_step *step, uint32_t process, uint32_t lane, double begin_us, double us)
{
    cJSON *event = add_event(events, "X", step->name, process, lane);
    cJSON_AddNumberToObject(event, "ts", begin_us);
    cJSON_AddNumberToObject(event, "dur", us);
    cJSON *args = cJSON_AddObjectToObject(event, "args");
    cJSON_AddStringToObject(args, "kernel", step->kernel);
    cJSON_AddNumberToObject(args, "units", (double)step->units);
    cJSON_AddNumberToObject(args, "flops", step->flops);
    cJSON_AddNumberToObject(args, "bytes", step->bytes);
}

/* Of a step in a loop only the sum of its times is known: a track of its own, which need not nest with others. */
static void add_looped(cJSON *events, const dlc_timed_step *step, uint32_t process, uint32_t id)
{
    for (int is_end = 0; is_end < 2; is_end++) {
        cJSON *event = add_event(events, is_end ? "e" : "b", step->name, process, 1);
        cJSON_AddStringToObject(event, "cat", "in a loop");
        cJSON_AddNumberToObject(event, "id", id);
        cJSON_AddNumberToObject(event, "ts", step->begin_us + (is_end ? step->us : 0));
        if (!is_end)
            cJSON_AddNumberToObject(cJSON_AddObjectToObject(event, "args"), "runs", (double)step->runs);
    }
}

/* Lane 1 has the steps as a whole, those behind it what each thread did of them. */
static void add_profile(cJSON *events, const dlc_profile *profile, uint32_t process)
{
    char text[32];
    add_name(events, "process_name", process, 1, profile->name ? profile->name : "dlc");
    add_name(events, "thread_name", process, 1, profile->is_host ? "steps" : "device");
    for (uint32_t t = 0; t < profile->nthreads; t++) {
        snprintf(text, sizeof text, "thread %u", t);
        add_name(events, "thread_name", process, t + 2, text);
    }
    for (uint32_t i = 0; i < profile->nsteps; i++) {
        const dlc_timed_step *step = &profile->steps[i];
        if (step->runs > 1)
            add_looped(events, step, process, i);
        else if (step->us > 0)
            add_step(events, step, process, 1, step->begin_us, step->us);
        for (uint32_t t = 0; t < profile->nthreads && step->runs <= 1; t++)
            if (step->lanes[t].busy_us > 0)
                add_step(events, step, process, t + 2, step->lanes[t].end_us - step->lanes[t].busy_us, step->lanes[t].busy_us);
    }
}

dlc_status dlc_profile_write(dlc_cli *cli, const char *path, const dlc_profile *list, uint32_t n)
{
    cJSON *trace = cJSON_CreateObject(), *events = cJSON_AddArrayToObject(trace, "traceEvents");
    for (uint32_t i = 0; i < n; i++)
        add_profile(events, &list[i], i + 1);
    char *text = cJSON_PrintUnformatted(trace);
    dlc_status status = dlc_write_text(cli, path, text);
    cJSON_free(text);
    cJSON_Delete(trace);
    return status;
}

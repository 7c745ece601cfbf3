/* Profiled runs read from their context, and what this processor could do. */
#include "cli/profile.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 101, LEAST_RUNS = 5, MOST_BYTES = 64 << 20 };

/* ---- runs ---- */

static void read_lanes(const dlcrt_context *context, uint32_t i, const dlc_profile *profile)
{
    dlcrt_thread_profile thread;
    for (uint32_t t = 0; t < profile->nthreads && dlcrt_context_thread_profile(context, i, t, &thread); t++)
        profile->steps[i].lanes[t] = (dlc_lane){(double)thread.busy_ns / 1e3, (double)thread.end_ns / 1e3};
}

static dlc_profile read_run(dlc_arena *arena, const dlcrt_executable *executable, const dlcrt_context *context)
{
    dlcrt_executable_info info;
    dlcrt_step_profile times;
    dlcrt_step_info step;
    dlcrt_executable_describe(executable, &info);
    dlc_profile profile = {.nthreads = dlcrt_context_threads(context),
                           .nsteps = info.nsteps,
                           .nruns = 1,
                           .is_host = !strncmp(info.device, "cpu", 3),
                           .steps = dlc_new_array(arena, dlc_timed_step, info.nsteps + 1)};
    for (uint32_t i = 0; i < info.nsteps; i++) {
        if (!dlcrt_context_profile(context, i, &times) || !dlcrt_executable_step(executable, i, &step))
            break;
        double end_us = (double)times.end_ns / 1e3;
        profile.steps[i] = (dlc_timed_step){.name = step.name,
                                            .kernel = step.kernel,
                                            .peak = step.peak,
                                            .units = times.units,
                                            .begin_us = (double)times.begin_ns / 1e3,
                                            .us = (double)(times.end_ns - times.begin_ns) / 1e3,
                                            .runs = times.runs,
                                            .flops = times.flops * (double)times.runs,
                                            .bytes = times.bytes * (double)times.runs,
                                            .lanes = dlc_new_array(arena, dlc_lane, profile.nthreads + 1)};
        read_lanes(context, i, &profile);
        profile.total_us = end_us > profile.total_us ? end_us : profile.total_us;
    }
    return profile;
}

dlc_profile dlc_profile_read(dlc_cli *cli, const dlcrt_executable *executable, const dlcrt_context *context)
{
    return read_run(cli->arena, executable, context);
}

static int shorter(const void *a, const void *b)
{
    double x = ((const dlc_profile *)a)->total_us, y = ((const dlc_profile *)b)->total_us;
    return (x > y) - (x < y);
}

/* Which run is the median is known only when all have ended, so all are kept until then: fewer where each takes much. */
static uint32_t most_runs(const dlc_profile *run)
{
    size_t each = (run->nsteps + 1) * (sizeof *run->steps + (run->nthreads + 1) * sizeof *run->steps->lanes);
    size_t n = MOST_BYTES / each;
    return n > MOST_RUNS ? MOST_RUNS : n < LEAST_RUNS ? LEAST_RUNS : (uint32_t)n;
}

static dlc_profile copy_of(dlc_arena *arena, const dlc_profile *run)
{
    dlc_profile copy = *run;
    copy.steps = dlc_new_array(arena, dlc_timed_step, run->nsteps + 1);
    for (uint32_t i = 0; i < run->nsteps; i++) {
        copy.steps[i] = run->steps[i];
        copy.steps[i].lanes = dlc_new_array(arena, dlc_lane, run->nthreads + 1);
        if (run->steps[i].lanes)
            memcpy(copy.steps[i].lanes, run->steps[i].lanes, run->nthreads * sizeof *copy.steps[i].lanes);
    }
    return copy;
}

static dlc_status keep_median(dlc_cli *cli, dlc_arena *scratch, const dlcrt_executable *executable, dlcrt_context *context,
                              const dlc_tensors *inputs, const dlc_tensors *outputs, double seconds, dlc_profile *profile)
{
    dlc_profile runs[MOST_RUNS];
    uint32_t nruns = 0, most = MOST_RUNS;
    double end = dlc_seconds() + seconds;
    for (uint32_t n = 0; n <= most && (n <= LEAST_RUNS || dlc_seconds() < end); n++) {
        for (uint32_t i = 0; i < outputs->n; i++)
            outputs->data[i].data = NULL; /* the context's own memory */
        dlc_status status = dlcrt_context_run(context, inputs->data, inputs->n, outputs->data, outputs->n);
        if (status != DLC_OK)
            return dlc_runtime_failed(cli, status, NULL);
        if (n)
            runs[nruns++] = read_run(scratch, executable, context);
        if (n == 1)
            most = most_runs(&runs[0]);
    }
    qsort(runs, nruns, sizeof *runs, shorter);
    *profile = copy_of(cli->arena, &runs[nruns / 2]);
    profile->nruns = nruns;
    return DLC_OK;
}

dlc_status dlc_profile_runs(dlc_cli *cli, const dlcrt_executable *executable, dlcrt_context *context, const dlc_tensors *inputs,
                            const dlc_tensors *outputs, double seconds, dlc_profile *profile)
{
    dlc_arena *scratch = dlc_arena_create(0);
    dlc_status status = keep_median(cli, scratch, executable, context, inputs, outputs, seconds, profile);
    dlc_arena_destroy(scratch);
    return status;
}

/* ---- what the machine can do ---- */

static int ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && !strcmp(name + n - m, ending);
}

/* A line "far_bytes_per_us 30000" of what `dlc targets --probe` measures of one thread. */
static void take_line(dlc_arena *arena, dlc_roofs *roofs, const char *name, double value)
{
    static const char *const levels[][2] = {{"far_bytes_per_us", "memory"},
                                            {"l3_bytes_per_us", "L3"},
                                            {"near_bytes_per_us", "L2"},
                                            {"l1_bytes_per_us", "L1"}};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, levels[i][0]))
            dlc_vec_push(arena, &roofs->levels, ((dlc_roof){levels[i][1], value}));
    if (ends_in(name, "_ops_per_us"))
        dlc_vec_push(arena, &roofs->peaks,
                     ((dlc_roof){dlc_arena_strndup(arena, name, strlen(name) - strlen("_ops_per_us")), value}));
}

static dlc_status probe(dlc_cli *cli, const char **text)
{
    const dlc_library *library;
    const char *written;
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    dlc_progress(cli, "measuring this processor …");
    dlc_status status = library->machine_probe("", &written, text);
    dlc_progress(cli, NULL);
    return status == DLC_OK ? DLC_OK : dlc_diag_fail(&cli->diag, status, NULL, "%s", *text);
}

static void scale(dlc_roof_list *roofs, double by)
{
    for (uint32_t i = 0; i < roofs->n; i++)
        roofs->data[i].per_us *= by;
}

void dlc_roofs_measure(dlc_cli *cli, uint32_t nthreads, dlc_roofs *roofs)
{
    const char *text;
    char name[64];
    double most = nthreads;
    dlc_diag before = cli->diag;
    if (probe(cli, &text) != DLC_OK) {
        const char *why = cli->diag.messages[cli->diag.nmessages - 1].text;
        cli->diag.nmessages = before.nmessages;
        cli->diag.status = before.status;
        (void)dlc_diag_fail(&cli->diag, DLC_OK, NULL, "what this processor could do is not measured, so no bounds are shown: %s", why);
        return;
    }
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        size_t n = strcspn(text, " \n");
        double value = text[n] == ' ' ? dlc_text_double(text + n, NULL) : 0;
        snprintf(name, sizeof name, "%.*s", (int)n, text);
        take_line(cli->arena, roofs, name, value);
        if (!strcmp(name, "threads") && value >= 1 && value < most)
            most = value;
    }
    scale(&roofs->peaks, most);
    scale(&roofs->levels, most);
}

/* The slowest roof that gives at least `rate`, or the fastest. */
static const dlc_roof *roof_above(const dlc_roof_list *roofs, double rate)
{
    const dlc_roof *best = NULL;
    for (uint32_t i = 0; i < roofs->n; i++) {
        const dlc_roof *roof = &roofs->data[i];
        int is_enough = roof->per_us >= rate;
        if (!best || (is_enough && (best->per_us < rate || roof->per_us < best->per_us)) ||
            (!is_enough && best->per_us < rate && roof->per_us > best->per_us))
            best = roof;
    }
    return best;
}

static const dlc_roof *roof_called(const dlc_roof_list *roofs, const char *name)
{
    for (uint32_t i = 0; i < roofs->n; i++)
        if (!strcmp(roofs->data[i].name, name))
            return &roofs->data[i];
    return NULL;
}

dlc_bound dlc_roofs_bound(const dlc_roofs *roofs, const char *peak_name, double us, double flops, double bytes)
{
    if (us <= 0 || !roofs->peaks.n || !roofs->levels.n || flops + bytes <= 0)
        return (dlc_bound){0};
    const dlc_roof *named = roof_called(&roofs->peaks, peak_name), *peak = named ? named : roof_above(&roofs->peaks, flops / us);
    const dlc_roof *level = roof_above(&roofs->levels, bytes / us);
    double computing = flops / peak->per_us, moving = bytes / level->per_us;
    return computing >= moving ? (dlc_bound){peak->name, computing / us} : (dlc_bound){level->name, moving / us};
}

/*
 * dlc compile --tune: schedules are run in a child process, on made-up inputs; one that crashes costs its batch and nothing else.
 */
#include "cli/inputs.h"
#include "cli/tune.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_STEPS = 64, LEAST_RUNS = 3, MOST_RUNS = 400, TURNS = 3, SECONDS = 60 };

/* --- in the child --- */

typedef struct {
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlcrt_tensor *inputs, *outputs;
    uint32_t ninputs, noutputs;
} subject;

static int open_subject(dlc_cli *cli, int fd, subject *s)
{
    dlcrt_context_options options = {.profile = 1};
    if (dlcrt_executable_open_fd(fd, &s->executable) != DLC_OK ||
        dlcrt_context_create(s->executable, &options, &s->context) != DLC_OK)
        return 0;
    dlc_signature signature = dlc_signature_of_executable(s->executable, cli->arena);
    s->ninputs = signature.ninputs, s->noutputs = signature.noutputs;
    s->inputs = dlc_new_array(cli->arena, dlcrt_tensor, s->ninputs + 1);
    s->outputs = dlc_new_array(cli->arena, dlcrt_tensor, s->noutputs + 1);
    for (uint32_t i = 0; i < s->ninputs; i++) {
        dlcrt_tensor tensor = {.dtype = signature.inputs[i].dtype, .rank = signature.inputs[i].rank};
        memcpy(tensor.dims, signature.inputs[i].dims, sizeof tensor.dims);
        if (dlc_tensor_random(&tensor, i, cli->arena, &cli->diag) != DLC_OK)
            return 0;
        s->inputs[i] = tensor;
    }
    return 1;
}

/* Times of steps in runs, us[run * nsteps + step]. */
typedef struct {
    double *us;
    uint32_t nruns, nsteps;
    double slowness[MOST_RUNS]; /* of a run */
} samples;

static void find_slowness(samples *s, const double *step_us)
{
    double ratios[MOST_STEPS];
    for (uint32_t run = 0; run < s->nruns; run++) {
        for (uint32_t i = 0; i < s->nsteps; i++)
            ratios[i] = s->us[run * s->nsteps + i] / step_us[i];
        s->slowness[run] = dlc_median(ratios, s->nsteps);
    }
}

/* Of runs that are no slower than that. */
static void find_times(const samples *s, double slowest, double *step_us)
{
    double times[MOST_RUNS];
    for (uint32_t i = 0; i < s->nsteps; i++) {
        uint32_t n = 0;
        for (uint32_t run = 0; run < s->nruns; run++)
            if (s->slowness[run] <= slowest)
                times[n++] = s->us[run * s->nsteps + i] / s->slowness[run];
        step_us[i] = dlc_median(times, n);
    }
}

/*
 * What else the machine does slows the steps of a run alike, for a run or for seconds on end. So a time is the product of a step's own
 * and a run's slowness, each found as medians of what the other leaves (median polish: Tukey, Exploratory Data Analysis, 1977, chapter
 * 11); the quieter half of the runs counts. Taken alone, a step's least time says how quiet the quietest of its runs was.
 */
static void polish(samples *s, double *step_us)
{
    double sorted[MOST_RUNS];
    for (uint32_t run = 0; run < s->nruns; run++)
        s->slowness[run] = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        find_times(s, HUGE_VAL, step_us);
        find_slowness(s, step_us);
    }
    memcpy(sorted, s->slowness, s->nruns * sizeof *sorted);
    double slowest = dlc_median(sorted, s->nruns), quiet = sorted[0];
    find_times(s, slowest, step_us);
    for (uint32_t i = 0; i < s->nsteps; i++)
        step_us[i] *= quiet;
}

static int run_all(subject *s, double seconds, double *step_us, uint32_t nsteps)
{
    samples found = {.us = malloc(sizeof(double) * MOST_RUNS * nsteps), .nsteps = nsteps};
    double end = dlc_seconds() + seconds;
    for (uint32_t run = 0; found.us && run <= MOST_RUNS && (run <= LEAST_RUNS || dlc_seconds() < end); run++) {
        if (dlcrt_context_run(s->context, s->inputs, s->ninputs, s->outputs, s->noutputs) != DLC_OK)
            return 0;
        for (uint32_t i = 0; run && i < nsteps; i++) { /* the first one warms up */
            dlcrt_step_profile profile;
            if (!dlcrt_context_profile(s->context, i, &profile))
                return 0;
            found.us[found.nruns * nsteps + i] = 1e-3 * (double)(profile.end_ns - profile.begin_ns);
        }
        found.nruns += run > 0;
    }
    if (!found.us)
        return 0;
    polish(&found, step_us);
    free(found.us);
    return 1;
}

static void measure_in_child(dlc_cli *cli, int fd, double seconds, uint32_t nsteps, int out)
{
    double step_us[MOST_STEPS] = {0};
    subject s = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(SECONDS);
    int is_well = open_subject(cli, fd, &s) && run_all(&s, seconds, step_us, nsteps);
    size_t size_bytes = nsteps * sizeof *step_us;
    _exit(!is_well || write(out, step_us, size_bytes) != (ssize_t)size_bytes);
}

/* --- around it --- */

typedef struct {
    dlc_cli *cli;
    dlc_str trials; /* for the file of --trials */
} session;

static dlc_status measure(void *user, int fd, double seconds, double *step_us, uint32_t nsteps)
{
    dlc_cli *cli = ((session *)user)->cli;
    int ends[2], state = 0;
    if (nsteps > MOST_STEPS || pipe2(ends, 0) != 0)
        return DLC_LIMIT;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        measure_in_child(cli, fd, seconds, nsteps, ends[1]);
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], step_us, nsteps * sizeof *step_us) : -1;
    close(ends[0]);
    while (child > 0 && waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    return got == (ssize_t)(nsteps * sizeof *step_us) && state == 0 ? DLC_OK : DLC_INTERNAL;
}

static void progress(void *user, const char *text)
{
    dlc_progress(((session *)user)->cli, "%s", text);
}

/* A line of JSON. */
static void trial(void *user, const dlc_trial *trial)
{
    session *s = user;
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "kernel", trial->kernel);
    cJSON_AddStringToObject(row, "schedule", trial->schedule);
    cJSON_AddNumberToObject(row, "estimate_us", trial->estimate_us);
    cJSON_AddNumberToObject(row, "measured_us", trial->measured_us);
    cJSON_AddNumberToObject(row, "own_us", trial->own_us);
    cJSON_AddNumberToObject(row, "spread", trial->spread);
    char *line = cJSON_PrintUnformatted(row);
    dlc_str_add(&s->trials, line ? line : "");
    dlc_str_add(&s->trials, "\n");
    cJSON_free(line);
    cJSON_Delete(row);
}

static void report(dlc_cli *cli, const dlc_tuned *found, double seconds)
{
    cJSON *json = cJSON_AddObjectToObject(cli->json, "tuned");
    cJSON_AddStringToObject(json, "file", found->file);
    cJSON_AddNumberToObject(json, "kernels", found->nkernels);
    cJSON_AddNumberToObject(json, "measured", found->nmeasured);
    cJSON_AddNumberToObject(json, "candidates", found->ncandidates);
    cJSON_AddNumberToObject(json, "better", found->nbetter);
    cJSON_AddNumberToObject(json, "before_us", found->before_us);
    cJSON_AddNumberToObject(json, "after_us", found->after_us);
    cJSON_AddNumberToObject(json, "kendall", found->kendall);
    cJSON_AddNumberToObject(json, "kendall_of_all", found->kendall_of_all);
    if (!cli->args.quiet)
        dlc_say(cli, "%u of %u kernels measured in %.0f s, %u schedules: %u are faster, together %.0f us instead of %.0f (%s)\n",
                found->nmeasured, found->nkernels, seconds, found->ncandidates, found->nbetter, found->after_us,
                found->before_us, found->file);
}

dlc_status dlc_cli_tune(dlc_cli *cli, const dlc_options *options, const dlc_library *library)
{
    session s = {.cli = cli};
    dlc_tuning tuning = {.size_bytes = sizeof tuning, .seconds = cli->args.budget, .measure = measure, .progress = progress,
                         .user = &s, .trial = cli->args.trials ? trial : NULL};
    dlc_tuned found;
    dlc_model *model;
    double begin = dlc_seconds();
    DLC_TRY(dlc_cli_open(cli, cli->args.operands.data[0], options, &model));
    dlc_status status = library->model_tune(model, &tuning, &found);
    dlc_progress(cli, NULL);
    if (status == DLC_OK)
        report(cli, &found, dlc_seconds() - begin);
    if (status == DLC_OK && cli->args.trials)
        status = dlc_write_text(cli, cli->args.trials, dlc_str_text(&s.trials));
    dlc_str_deinit(&s.trials);
    dlc_cli_close(cli, model);
    return status;
}

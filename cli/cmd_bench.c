/*
 * dlc bench: how long a run takes. All candidates (one per fusion strategy) are timed in turns, a batch of runs each, so that
 * whatever disturbs the machine disturbs all of them; the median of all runs is what is compared. Where the pages of weights and
 * of the arena lie moves the same file's time by several percent, so each candidate is loaded anew several times, from a copy of
 * its file; and the first candidate takes part once more under another name, to show what a difference must pass to mean anything.
 */
#include "cli/inputs.h"
#include "cli/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NLOADS = 3 };
static const char control_name[] = "the same again"; /* the candidate behind the others */

typedef dlc_vec(double) ms_list;
typedef struct {
    const char *name; /* of the strategy; NULL: the default one */
    int file;         /* of the executable */
    int is_control;
    dlcrt_executable *executable; /* of the load under way; NULL: none */
    dlcrt_executable *first;      /* of the first load: inputs and outputs have its names */
    dlcrt_context *context;
    dlc_tensors inputs, outputs;
    dlc_signature signature;
    dlc_load_info load; /* load_ms: with the context; of the first load, as is first_ms */
    double compile_s, first_ms, max_rel_err, context_mb;
    ms_list times, now, medians; /* ms of one run: of all, of those of this load; of a load, by load */
    uint32_t batch;              /* runs per sample: so many that a sample takes 50 us */
    double nruns;
    uint32_t nkernels, nthreads;
} candidate;

static dlc_status run_once(dlc_cli *cli, candidate *c)
{
    for (uint32_t i = 0; i < c->outputs.n; i++)
        c->outputs.data[i].data = NULL;
    dlc_status status =
        dlcrt_context_run(c->context, c->inputs.data, c->inputs.n, c->outputs.data, c->outputs.n);
    return status == DLC_OK ? DLC_OK : dlc_runtime_failed(cli, status, c->name);
}

/* ---- loading ---- */

static dlc_status compare_outputs(dlc_cli *cli, candidate *c)
{
    dlc_tensors expected = {0};
    uint32_t ncompared = 0;
    c->max_rel_err = 0;
    DLC_TRY(dlc_read_expected(cli, &c->signature, cli->args.expect, &expected));
    for (uint32_t i = 0; i < c->outputs.n; i++) {
        const dlcrt_tensor *wanted = dlc_tensors_find(&expected, c->outputs.data[i].name);
        if (!wanted)
            continue;
        DLC_TRY(
            dlc_compare_types(c->outputs.data[i].name, &c->outputs.data[i], wanted, &cli->diag));
        double error = dlc_compare(&c->outputs.data[i], wanted, (dlc_tolerance){0}).max_rel;
        c->max_rel_err = error > c->max_rel_err ? error : c->max_rel_err;
        ncompared++;
    }
    if (!ncompared)
        return dlc_diag_fail(&cli->diag, DLC_INVALID, cli->args.expect, "has none of the outputs");
    return DLC_OK;
}

/* All are made before any has threads: compiling forks. */
static dlc_status make(dlc_cli *cli, const char *path, dlc_options *options, candidate *c)
{
    double begin = dlc_seconds();
    options->fusion = c->name;
    DLC_TRY(dlc_artifact_make(cli, path, options, &c->file));
    c->compile_s = dlc_seconds() - begin;
    return DLC_OK;
}

static dlc_status open_load(dlc_cli *cli, candidate *c, int is_first, int is_profiled)
{
    dlcrt_context_options options = {.threads = (uint32_t)cli->args.threads, .profile = (uint32_t)is_profiled};
    dlcrt_executable_info info;
    dlc_load_info load;
    DLC_TRY(dlc_artifact_open(cli, cli->args.operands.data[0], c->file, !is_first || c->is_control, &c->executable, &load));
    double begin = dlc_seconds();
    dlc_status status = dlcrt_context_create(c->executable, &options, &c->context);
    if (status != DLC_OK)
        return dlc_runtime_failed(cli, status, c->name);
    load.load_ms += 1e3 * (dlc_seconds() - begin);
    dlcrt_executable_describe(c->executable, &info);
    c->nkernels = info.nsteps;
    c->nthreads = dlcrt_context_threads(c->context);
    if (is_first)
        c->load = load;
    c->first = c->first ? c->first : c->executable;
    return DLC_OK;
}

static void close_load(candidate *c)
{
    dlcrt_context_destroy(c->context);
    if (c->executable != c->first)
        dlcrt_executable_close(c->executable);
    c->context = NULL;
    c->executable = NULL;
}

/* What the runs are given lives as long as the command. */
static dlc_status gather(dlc_cli *cli, const dlc_options *options, const candidate *first, candidate *c)
{
    c->signature = dlc_signature_of_executable(c->executable, cli->arena);
    c->inputs = first->inputs; /* of the same model */
    if (c == first)
        DLC_TRY(dlc_gather_inputs(cli, &c->signature, options, &c->inputs));
    for (uint32_t i = 0; i < c->signature.noutputs; i++)
        dlc_vec_push(cli->arena, &c->outputs,
                     ((dlcrt_tensor){.name = c->signature.outputs[i].name}));
    return DLC_OK;
}

static dlc_status warm(dlc_cli *cli, const dlc_options *options, const candidate *first, candidate *c, int is_first)
{
    if (is_first)
        DLC_TRY(gather(cli, options, first, c));
    double begin = dlc_seconds();
    DLC_TRY(run_once(cli, c));
    if (is_first)
        c->first_ms = 1e3 * (dlc_seconds() - begin);
    if (is_first && cli->args.expect)
        DLC_TRY(compare_outputs(cli, c));
    begin = dlc_seconds();
    DLC_TRY(run_once(cli, c));
    double ms = 1e3 * (dlc_seconds() - begin);
    c->batch = ms >= 0.05 ? 1 : (uint32_t)(0.05 / (ms > 1e-4 ? ms : 1e-4)) + 1;
    c->context_mb = (double)dlcrt_context_bytes(c->context) / 1e6;
    c->now.n = 0;
    return DLC_OK;
}

/* ---- measuring ---- */

static dlc_status sample(dlc_cli *cli, candidate *c, int keep)
{
    double begin = dlc_seconds();
    for (uint32_t i = 0; i < c->batch; i++)
        DLC_TRY(run_once(cli, c));
    double ms = 1e3 * (dlc_seconds() - begin) / c->batch;
    if (keep) {
        dlc_vec_push(cli->arena, &c->now, ms);
        c->nruns += c->batch;
    }
    return DLC_OK;
}

/* Turns of at least 20 ms each: long enough to be warm again after the others. */
static dlc_status turn(dlc_cli *cli, candidate *c, int keep)
{
    double end = dlc_seconds() + 0.02;
    uint32_t n = 0;
    do {
        DLC_TRY(sample(cli, c, keep && n > 0));
        n++;
    } while (dlc_seconds() < end || n < 3);
    return DLC_OK;
}

static dlc_status measure(dlc_cli *cli, candidate *list, uint32_t n, double seconds)
{
    double begin = dlc_seconds();
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(turn(cli, &list[i], 0));
    for (int round = 0; round < 1 || dlc_seconds() - begin < seconds; round++)
        for (uint32_t i = 0; i < n; i++)
            DLC_TRY(turn(cli, &list[(i + (uint32_t)round) % n], 1));
    return DLC_OK;
}

static void keep_times(dlc_cli *cli, candidate *c)
{
    dlc_vec_push(cli->arena, &c->medians, dlc_median(c->now.data, c->now.n));
    for (uint32_t i = 0; i < c->now.n; i++)
        dlc_vec_push(cli->arena, &c->times, c->now.data[i]);
}

static double peak_rss_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e6;
}

static dlc_status measure_load(dlc_cli *cli, const dlc_options *options, candidate *list, uint32_t n, int is_first,
                               double *rss_mb)
{
    double seconds = cli->args.seconds >= 0 ? cli->args.seconds : 2;
    for (uint32_t i = 0; i < n; i++) {
        DLC_TRY(open_load(cli, &list[i], is_first, 0));
        DLC_TRY(warm(cli, options, list, &list[i], is_first));
        if (is_first && i == 0)
            *rss_mb = peak_rss_mb(); /* of the first candidate alone */
    }
    DLC_TRY(measure(cli, list, n, seconds / NLOADS));
    for (uint32_t i = 0; i < n; i++) {
        keep_times(cli, &list[i]);
        close_load(&list[i]);
    }
    return DLC_OK;
}

/* ---- results ---- */

/* How far the loads' medians are apart, in parts of the least. */
static double spread_of(const candidate *c)
{
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < c->medians.n; i++) {
        least = fmin(least, c->medians.data[i]);
        most = fmax(most, c->medians.data[i]);
    }
    return least > 0 ? most / least - 1 : 0;
}

static void result_json(const dlc_cli *cli, candidate *c, cJSON *json)
{
    double median = dlc_median(c->times.data, c->times.n);
    if (c->name)
        cJSON_AddStringToObject(json, "fusion", c->name);
    cJSON_AddNumberToObject(json, "median_ms", median);
    cJSON_AddNumberToObject(json, "min_ms", c->times.data[0]);
    cJSON_AddNumberToObject(json, "p90_ms", c->times.data[(uint32_t)(0.9 * (c->times.n - 1))]);
    cJSON_AddItemToObject(json, "load_medians_ms", cJSON_CreateDoubleArray(c->medians.data, (int)c->medians.n));
    cJSON_AddNumberToObject(json, "runs", c->nruns);
    cJSON_AddNumberToObject(json, "load_ms", c->load.load_ms);
    cJSON_AddNumberToObject(json, "first_ms", c->first_ms);
    cJSON_AddNumberToObject(json, "compile_s", c->compile_s);
    cJSON_AddNumberToObject(json, "artifact_mb", (double)c->load.artifact_bytes / 1e6);
    cJSON_AddNumberToObject(json, "steps", c->nkernels);
    cJSON_AddNumberToObject(json, "threads", c->nthreads);
    cJSON_AddNumberToObject(json, "context_mb", c->context_mb);
    if (cli->args.expect)
        cJSON_AddNumberToObject(json, "max_rel_err", c->max_rel_err);
}

static void report_row(dlc_cli *cli, candidate *c, const char *name)
{
    double median = dlc_median(c->times.data, c->times.n);
    dlc_say(cli, "%-14s %10.4f %10.4f %10.4f %7.1f%% %9.3f %9.3f %7u", name, median, c->times.data[0],
            c->times.data[(uint32_t)(0.9 * (c->times.n - 1))], 100 * spread_of(c), c->load.load_ms, c->first_ms, c->nkernels);
    if (cli->args.expect)
        dlc_say(cli, " %9.2g", c->max_rel_err);
    dlc_say(cli, "\n");
}

/* n: without the control. */
static void report(dlc_cli *cli, candidate *list, uint32_t n, double rss_mb)
{
    result_json(cli, &list[0], cli->json);
    cJSON_AddNumberToObject(cli->json, "rss_mb", rss_mb);
    cJSON *rows = n > 1 ? cJSON_AddArrayToObject(cli->json, "strategies") : NULL;
    for (uint32_t i = 0; i < n && rows; i++) {
        cJSON *row = cJSON_CreateObject();
        result_json(cli, &list[i], row);
        cJSON_AddItemToArray(rows, row);
    }
    result_json(cli, &list[n], cJSON_AddObjectToObject(cli->json, "control"));
    dlc_say(cli, "%-14s %10s %10s %10s %8s %9s %9s %7s %9s\n", "", "median ms", "least ms", "p90 ms", "loads +-",
            "load ms", "first ms", "steps", cli->args.expect ? "error" : "");
    for (uint32_t i = 0; i < n; i++)
        report_row(cli, &list[i], list[i].name ? list[i].name : "default");
    report_row(cli, &list[n], control_name);
    dlc_say(cli, "%u thread%s, executable %.2f MB, peak memory %.1f MB, %d loads of each\n", list[0].nthreads,
            list[0].nthreads == 1 ? "" : "s", (double)list[0].load.artifact_bytes / 1e6, rss_mb, NLOADS);
}

/* ---- profile ---- */

static dlc_status profile_one(dlc_cli *cli, candidate *c, dlc_profile *profile)
{
    DLC_TRY(open_load(cli, c, 0, 1));
    DLC_TRY(dlc_profile_runs(cli, c->executable, c->context, &c->inputs, &c->outputs,
                             cli->args.seconds >= 0 ? cli->args.seconds : 1, profile));
    profile->name = c->name;
    return DLC_OK;
}

/* The profiles' texts are their executables'. */
static dlc_status tell_profiles(dlc_cli *cli, candidate *list, uint32_t n)
{
    dlc_profile *profiles = dlc_new_array(cli->arena, dlc_profile, n);
    dlc_roofs roofs = {0};
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(profile_one(cli, &list[i], &profiles[i]));
    DLC_TRY(dlc_profile_write(cli, cli->args.profile, profiles, n));
    if (profiles[0].is_host)
        dlc_roofs_measure(cli, profiles[0].nthreads, &roofs);
    cJSON *rows = cJSON_GetObjectItem(cli->json, "strategies");
    for (uint32_t i = 0; i < n; i++) {
        cJSON *row = rows ? cJSON_GetArrayItem(rows, (int)i) : cli->json;
        cJSON_AddItemToObject(row, "profile", dlc_profile_json(&profiles[i], &roofs));
        dlc_profile_show(cli, &profiles[i], &roofs);
    }
    return DLC_OK;
}

static dlc_status bench(dlc_cli *cli, candidate *list, uint32_t n, dlc_options *options)
{
    double rss_mb = 0;
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(make(cli, cli->args.operands.data[0], options, &list[i]));
    list[n] = list[0];
    list[n].is_control = 1;
    for (int round = 0; round < NLOADS; round++)
        DLC_TRY(measure_load(cli, options, list, n + 1, round == 0, &rss_mb));
    report(cli, list, n, rss_mb);
    return cli->args.profile ? tell_profiles(cli, list, n) : DLC_OK;
}

dlc_status dlc_cmd_bench(dlc_cli *cli)
{
    const char *path = cli->args.operands.data[0];
    dlc_options options;
    DLC_TRY(dlc_cli_options(cli, &options));
    DLC_TRY(dlc_cli_check_compiled(cli, path));
    if (cli->args.profile)
        DLC_TRY(dlc_cli_can_write(cli, cli->args.profile));
    dlc_texts names = dlc_split(cli->arena, cli->args.fusion ? cli->args.fusion : "");
    uint32_t n = names.n ? names.n : 1;
    candidate *list = dlc_new_array(cli->arena, candidate, n + 1);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (candidate){.name = names.n ? names.data[i] : NULL, .file = -1};
    cli->json = cJSON_CreateObject();
    dlc_status status = bench(cli, list, n, &options);
    for (uint32_t i = 0; i < n; i++)
        if (list[i].file >= 0)
            close(list[i].file);
    for (uint32_t i = 0; i <= n; i++) {
        close_load(&list[i]);
        dlcrt_executable_close(list[i].first);
    }
    return status;
}

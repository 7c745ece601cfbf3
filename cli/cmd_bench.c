/*
 * dlc bench: how long a run takes. All candidates (one per fusion strategy) are loaded first and
 * then timed in turns, a batch of runs each, so that whatever disturbs the machine disturbs all of
 * them; the median of all runs is what is compared.
 */
#include "cli/inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

typedef struct {
    const char *name; /* of the strategy */
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlc_tensors inputs, outputs;
    dlc_signature signature;
    dlc_load_info load; /* load_ms: with the context */
    double compile_s, first_ms, max_rel_err;
    dlc_vec(double) times; /* ms of one run */
    uint32_t batch;        /* runs per sample: so many that a sample takes 50 us */
    uint32_t nkernels;
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

/* All are loaded before any has threads: loading may compile in a child process. */
static dlc_status load_candidate(dlc_cli *cli, const char *path, dlc_options *options, candidate *c)
{
    double begin = dlc_seconds();
    options->fusion = c->name;
    DLC_TRY(dlc_load(cli, path, options, &c->executable, &c->load));
    c->compile_s = dlc_seconds() - begin - c->load.load_ms / 1e3;
    dlcrt_executable_info info;
    dlcrt_executable_describe(c->executable, &info);
    c->nkernels = info.nsteps;
    c->signature = dlc_signature_of_executable(c->executable, cli->arena);
    return DLC_OK;
}

static dlc_status create_context(dlc_cli *cli, candidate *c)
{
    dlcrt_context_options options = {.threads = (uint32_t)cli->args.threads};
    double begin = dlc_seconds();
    dlc_status status = dlcrt_context_create(c->executable, &options, &c->context);
    if (status != DLC_OK)
        return dlc_runtime_failed(cli, status, c->name);
    c->load.load_ms += 1e3 * (dlc_seconds() - begin);
    return DLC_OK;
}

static dlc_status prepare(dlc_cli *cli, const dlc_options *options, candidate *c)
{
    DLC_TRY(create_context(cli, c));
    DLC_TRY(dlc_gather_inputs(cli, &c->signature, options, &c->inputs));
    for (uint32_t i = 0; i < c->signature.noutputs; i++)
        dlc_vec_push(cli->arena, &c->outputs,
                     ((dlcrt_tensor){.name = c->signature.outputs[i].name}));
    double begin = dlc_seconds();
    DLC_TRY(run_once(cli, c));
    c->first_ms = 1e3 * (dlc_seconds() - begin);
    c->max_rel_err = -1;
    if (cli->args.expect)
        DLC_TRY(compare_outputs(cli, c));
    begin = dlc_seconds();
    DLC_TRY(run_once(cli, c));
    double ms = 1e3 * (dlc_seconds() - begin);
    c->batch = ms >= 0.05 ? 1 : (uint32_t)(0.05 / (ms > 1e-4 ? ms : 1e-4)) + 1;
    return DLC_OK;
}

/* ---- measuring ---- */

static dlc_status sample(dlc_cli *cli, candidate *c, int keep)
{
    double begin = dlc_seconds();
    for (uint32_t i = 0; i < c->batch; i++)
        DLC_TRY(run_once(cli, c));
    double ms = 1e3 * (dlc_seconds() - begin) / c->batch;
    if (keep)
        dlc_vec_push(cli->arena, &c->times, ms);
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

static dlc_status measure(dlc_cli *cli, candidate *list, uint32_t n)
{
    double seconds = cli->args.seconds >= 0 ? cli->args.seconds : 2;
    double begin = dlc_seconds();
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(turn(cli, &list[i], 0));
    for (int round = 0; round < 2 || dlc_seconds() - begin < seconds; round++)
        for (uint32_t i = 0; i < n; i++)
            DLC_TRY(turn(cli, &list[(i + (uint32_t)round) % n], 1));
    return DLC_OK;
}

/* ---- results ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *times, uint32_t n)
{
    qsort(times, n, sizeof *times, by_value);
    return n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

static double peak_rss_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e6;
}

static void result_json(const dlc_cli *cli, candidate *c, cJSON *json)
{
    double median = median_of(c->times.data, c->times.n);
    if (c->name)
        cJSON_AddStringToObject(json, "fusion", c->name);
    cJSON_AddNumberToObject(json, "median_ms", median);
    cJSON_AddNumberToObject(json, "min_ms", c->times.data[0]);
    cJSON_AddNumberToObject(json, "p90_ms", c->times.data[(uint32_t)(0.9 * (c->times.n - 1))]);
    cJSON_AddNumberToObject(json, "runs", (double)c->times.n * c->batch);
    cJSON_AddNumberToObject(json, "load_ms", c->load.load_ms);
    cJSON_AddNumberToObject(json, "first_ms", c->first_ms);
    cJSON_AddNumberToObject(json, "compile_s", c->compile_s);
    cJSON_AddNumberToObject(json, "artifact_mb", (double)c->load.artifact_bytes / 1e6);
    cJSON_AddNumberToObject(json, "steps", c->nkernels);
    cJSON_AddNumberToObject(json, "threads", dlcrt_context_threads(c->context));
    cJSON_AddNumberToObject(json, "context_mb", (double)dlcrt_context_bytes(c->context) / 1e6);
    if (cli->args.expect)
        cJSON_AddNumberToObject(json, "max_rel_err", c->max_rel_err);
}

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
    dlc_say(cli, "%-14s %10s %10s %10s %9s %9s %7s %9s\n", "", "median ms", "least ms", "p90 ms",
            "load ms", "first ms", "steps", cli->args.expect ? "error" : "");
    for (uint32_t i = 0; i < n; i++) {
        candidate *c = &list[i];
        double median = median_of(c->times.data, c->times.n);
        dlc_say(cli, "%-14s %10.4f %10.4f %10.4f %9.3f %9.3f %7u", c->name ? c->name : "default",
                median, c->times.data[0], c->times.data[(uint32_t)(0.9 * (c->times.n - 1))],
                c->load.load_ms, c->first_ms, c->nkernels);
        if (cli->args.expect)
            dlc_say(cli, " %9.2g", c->max_rel_err);
        dlc_say(cli, "\n");
    }
    dlc_say(cli, "%u thread%s, artifact %.2f MB, peak memory %.1f MB\n",
            dlcrt_context_threads(list[0].context),
            dlcrt_context_threads(list[0].context) == 1 ? "" : "s",
            (double)list[0].load.artifact_bytes / 1e6, rss_mb);
}

static dlc_status bench(dlc_cli *cli, candidate *list, uint32_t n, dlc_options *options)
{
    const char *path = cli->args.operands.data[0];
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(load_candidate(cli, path, options, &list[i]));
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(prepare(cli, options, &list[i]));
    double rss_mb = peak_rss_mb();
    DLC_TRY(measure(cli, list, n));
    report(cli, list, n, rss_mb);
    return DLC_OK;
}

dlc_status dlc_cmd_bench(dlc_cli *cli)
{
    const char *path = cli->args.operands.data[0];
    int is_executable = dlc_is_executable_file(path);
    dlc_options options;
    DLC_TRY(dlc_cli_options(cli, &options));
    if (is_executable && cli->args.fusion)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, path,
                             "is compiled already; --fusion wants the model it was made from");
    dlc_texts names = dlc_split(cli->arena, cli->args.fusion ? cli->args.fusion : "");
    uint32_t n = names.n ? names.n : 1;
    candidate *list = dlc_new_array(cli->arena, candidate, n);
    for (uint32_t i = 0; i < names.n; i++)
        list[i].name = names.data[i];
    cli->json = cJSON_CreateObject();
    dlc_status status = bench(cli, list, n, &options);
    for (uint32_t i = 0; i < n; i++) {
        dlcrt_context_destroy(list[i].context);
        dlcrt_executable_close(list[i].executable);
    }
    return status;
}

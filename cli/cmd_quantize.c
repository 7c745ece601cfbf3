/*
 * dlc quantize: the model with its layers' inputs as outputs runs over the data, twice: for bounds,
 * and for histograms between them. Then the quantised model is written, and both run over the data
 * once more, so that the report says what the user loses, not only what each layer does.
 */
#include "cli/inputs.h"
#include "cli/ranges.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 32 };

typedef struct {
    dlc_cli *cli;
    const dlc_library *library;
    dlc_quantizer *quantizer;
    dlc_tensors data;
    dlc_range_method method;
    uint32_t nvalues;
    dlc_seen *seen;
    double *lo, *hi;
    int is_counting; /* the second pass */
} job;

static dlc_status failed(job *j, dlc_status status)
{
    return dlc_diag_fail(&j->cli->diag, status, NULL, "%s", j->library->quantizer_message(j->quantizer));
}

/* ---- running a model over the data ---- */

typedef struct {
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlc_signature signature;
    dlc_tensors inputs, outputs;
} runner;

static void close_runner(runner *r)
{
    dlcrt_context_destroy(r->context);
    dlcrt_executable_close(r->executable);
}

static dlc_status open_runner(job *j, const char *path, runner *r)
{
    dlc_options options;
    *r = (runner){0};
    DLC_TRY(dlc_cli_options(j->cli, &options));
    DLC_TRY(dlc_load(j->cli, path, &options, &r->executable, NULL));
    dlc_status status = dlcrt_context_create(r->executable, NULL, &r->context);
    if (status != DLC_OK)
        return dlc_runtime_failed(j->cli, status, path);
    r->signature = dlc_signature_of_executable(r->executable, j->cli->arena);
    for (uint32_t i = 0; i < r->signature.noutputs; i++)
        dlc_vec_push(j->cli->arena, &r->outputs, ((dlcrt_tensor){.name = r->signature.outputs[i].name}));
    for (uint32_t i = 0; i < r->signature.ninputs; i++) {
        const dlcrt_tensor *tensor = dlc_tensors_find(&j->data, r->signature.inputs[i].name);
        if (!tensor || !tensor->rank || !tensor->dims[0])
            return dlc_diag_fail(&j->cli->diag, DLC_INVALID, j->cli->args.data,
                                 "has no samples of input '%s' (%s) along a dimension 0", r->signature.inputs[i].name,
                                 r->signature.inputs[i].type);
        dlc_vec_push(j->cli->arena, &r->inputs, *tensor);
    }
    return DLC_OK;
}

/* Samples of one run: what the model fixes, else a few. */
static int64_t batch_of(const runner *r, int64_t all)
{
    int64_t batch = r->signature.ninputs ? r->signature.inputs[0].dims[0] : all;
    return batch > 0 ? batch : BATCH;
}

static dlc_status run_part(job *j, runner *r, int64_t first, int64_t n)
{
    dlc_tensors part = {0};
    for (uint32_t i = 0; i < r->inputs.n; i++) {
        dlcrt_tensor tensor = r->inputs.data[i];
        size_t row = tensor.size_bytes / (size_t)tensor.dims[0];
        if (tensor.dims[0] < first + n)
            return dlc_diag_fail(&j->cli->diag, DLC_INVALID, j->cli->args.data,
                                 "has %" PRId64 " samples of '%s', and more of others", tensor.dims[0], tensor.name);
        tensor.data = (char *)tensor.data + (size_t)first * row;
        tensor.size_bytes = (size_t)n * row;
        tensor.dims[0] = n;
        dlc_vec_push(j->cli->arena, &part, tensor);
    }
    for (uint32_t i = 0; i < r->outputs.n; i++)
        r->outputs.data[i].data = NULL;
    dlc_status status = dlcrt_context_run(r->context, part.data, part.n, r->outputs.data, r->outputs.n);
    return status == DLC_OK ? DLC_OK : dlc_runtime_failed(j->cli, status, NULL);
}

/* What comes behind the last whole batch of a model that fixes it is left out. */
typedef void (*visit)(job *j, const runner *r, int64_t first, int64_t n, void *user);
static dlc_status run_all(job *j, runner *r, visit see, void *user)
{
    int64_t all = r->inputs.n ? r->inputs.data[0].dims[0] : 1, batch = batch_of(r, all);
    int is_fixed = r->signature.ninputs && r->signature.inputs[0].dims[0] > 0;
    for (int64_t first = 0; first < all; first += batch) {
        int64_t n = all - first < batch ? all - first : batch;
        if (n < batch && is_fixed && first)
            break;
        DLC_TRY(run_part(j, r, first, n));
        see(j, r, first, n, user);
        dlc_progress(j->cli, "%" PRId64 " of %" PRId64 " samples …", first + n, all);
    }
    dlc_progress(j->cli, NULL);
    return DLC_OK;
}

/* ---- ranges ---- */

static void see_values(job *j, const runner *r, int64_t first, int64_t n, void *user)
{
    const char *name;
    (void)first;
    (void)n;
    (void)user;
    for (uint32_t i = 0; j->library->quantizer_value(j->quantizer, i, &name); i++) {
        const dlcrt_tensor *found = dlc_tensors_find(&r->outputs, name);
        if (found && found->dtype == DLC_F32)
            (j->is_counting ? dlc_seen_count : dlc_seen_bounds)(&j->seen[i], found->data, found->size_bytes / 4);
    }
}

static dlc_status measure(job *j, const char *probe)
{
    runner r;
    dlc_status status = open_runner(j, probe, &r);
    if (status == DLC_OK)
        status = run_all(j, &r, see_values, NULL);
    j->is_counting = 1;
    if (status == DLC_OK)
        status = run_all(j, &r, see_values, NULL);
    close_runner(&r);
    for (uint32_t i = 0; i < j->nvalues && status == DLC_OK; i++)
        dlc_seen_range(&j->seen[i], j->method, &j->lo[i], &j->hi[i]);
    return status;
}

static dlc_status calibrate(job *j)
{
    const char *base = getenv("TMPDIR"), *name;
    char *folder = dlc_arena_printf(j->cli->arena, "%s/dlc.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder))
        return dlc_diag_fail(&j->cli->diag, DLC_IO, folder, "no temporary folder can be made: %s", strerror(errno));
    const char *probe = dlc_arena_printf(j->cli->arena, "%s/probe.onnx", folder);
    while (j->library->quantizer_value(j->quantizer, j->nvalues, &name))
        j->nvalues++;
    j->seen = dlc_new_array(j->cli->arena, dlc_seen, j->nvalues);
    j->lo = dlc_new_array(j->cli->arena, double, j->nvalues);
    j->hi = dlc_new_array(j->cli->arena, double, j->nvalues);
    dlc_status status = j->library->quantizer_probe(j->quantizer, probe);
    status = status == DLC_OK ? measure(j, probe) : failed(j, status);
    unlink(probe);
    rmdir(folder);
    return status;
}

/* ---- what is lost ---- */

/* Outputs of the exact model, and what the other's differ by. */
typedef struct {
    dlc_tensors exact; /* a copy of each output of each part, in order */
    uint32_t at;
    double signal, noise;
    uint64_t nright[2], nlabelled;
    int which;
} loss;

static int64_t label(const dlcrt_tensor *labels, int64_t i)
{
    return (int64_t)dlc_tensor_element(labels, (uint64_t)i);
}

/* Rows of the first output whose largest element is the label's. */
static void count_right(job *j, const runner *r, int64_t first, int64_t n, loss *l)
{
    const dlcrt_tensor *labels = dlc_tensors_find(&j->data, "labels"), *out = &r->outputs.data[0];
    if (!labels || labels->rank != 1 || out->rank != 2 || out->dims[0] != n || labels->dims[0] < first + n)
        return;
    for (int64_t i = 0; i < n; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < out->dims[1]; k++)
            if (dlc_tensor_element(out, (uint64_t)(i * out->dims[1] + k)) >
                dlc_tensor_element(out, (uint64_t)(i * out->dims[1] + best)))
                best = k;
        l->nright[l->which] += best == label(labels, first + i);
    }
    l->nlabelled += l->which ? (uint64_t)n : 0;
}

static void keep(job *j, const runner *r, int64_t first, int64_t n, void *user)
{
    loss *l = user;
    for (uint32_t i = 0; i < r->outputs.n; i++) {
        dlcrt_tensor copy = r->outputs.data[i];
        copy.data = dlc_arena_alloc(j->cli->arena, copy.size_bytes, 64);
        memcpy(copy.data, r->outputs.data[i].data, copy.size_bytes);
        dlc_vec_push(j->cli->arena, &l->exact, copy);
    }
    count_right(j, r, first, n, l);
}

static void compare(job *j, const runner *r, int64_t first, int64_t n, void *user)
{
    loss *l = user;
    for (uint32_t i = 0; i < r->outputs.n && l->at < l->exact.n; i++, l->at++) {
        const dlcrt_tensor *exact = &l->exact.data[l->at], *found = &r->outputs.data[i];
        size_t nelems = exact->size_bytes / dlc_dtype_bytes(exact->dtype);
        for (size_t k = 0; k < nelems && found->size_bytes == exact->size_bytes; k++) {
            double x = dlc_tensor_element(exact, k), d = dlc_tensor_element(found, k) - x;
            l->signal += x * x;
            l->noise += d * d;
        }
    }
    count_right(j, r, first, n, l);
}

static dlc_status evaluate(job *j, const char *written, loss *l)
{
    const char *paths[] = {j->cli->args.operands.data[0], written};
    for (l->which = 0; l->which < 2; l->which++) {
        runner r;
        dlc_status status = open_runner(j, paths[l->which], &r);
        if (status == DLC_OK)
            status = run_all(j, &r, l->which ? compare : keep, l);
        close_runner(&r);
        DLC_TRY(status);
    }
    return DLC_OK;
}

/* ---- report ---- */

static double decibel(double noise)
{
    return noise > 0 ? -10 * log10(noise) : 200;
}

static void report_layers(job *j)
{
    dlc_quantizer_row row;
    cJSON *rows = cJSON_AddArrayToObject(j->cli->json, "layers");
    dlc_say(j->cli, "%-7s %11s %11s %8s %9s %9s  %s\n", "", "from", "to", "cut %", "input dB", "weight dB", "node");
    for (uint32_t i = 0; j->library->quantizer_layer(j->quantizer, i, &row); i++) {
        double cut, noise = dlc_seen_noise(&j->seen[row.range], j->lo[row.range], j->hi[row.range], &cut);
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "node", row.node);
        cJSON_AddStringToObject(json, "operator", row.op);
        cJSON_AddStringToObject(json, "input", row.value);
        cJSON_AddNumberToObject(json, "lo", j->lo[row.range]);
        cJSON_AddNumberToObject(json, "hi", j->hi[row.range]);
        cJSON_AddNumberToObject(json, "cut", cut);
        cJSON_AddNumberToObject(json, "input_db", decibel(noise));
        cJSON_AddNumberToObject(json, "weight_db", decibel(row.weight_noise));
        cJSON_AddItemToArray(rows, json);
        dlc_say(j->cli, "%-7s %11.4g %11.4g %8.3f %9.1f %9.1f  %s\n", row.op, j->lo[row.range], j->hi[row.range],
                100 * cut, decibel(noise), decibel(row.weight_noise), dlc_arena_line(j->cli->arena, row.node));
    }
}

static void report_loss(job *j, const loss *l, const char *written)
{
    double noise = l->signal > 0 ? l->noise / l->signal : 0;
    cJSON_AddStringToObject(j->cli->json, "file", written);
    cJSON_AddNumberToObject(j->cli->json, "output_db", decibel(noise));
    dlc_say(j->cli, "outputs differ by %.2f %% (%.1f dB)\n", 100 * sqrt(noise), decibel(noise));
    if (l->nlabelled) {
        double n = (double)l->nlabelled, before = 100 * (double)l->nright[0] / n, after = 100 * (double)l->nright[1] / n;
        cJSON_AddNumberToObject(j->cli->json, "right_percent_before", before);
        cJSON_AddNumberToObject(j->cli->json, "right_percent", after);
        dlc_say(j->cli, "right: %.2f %%, float32 %.2f %%\n", after, before);
    }
    dlc_say(j->cli, "%s\n", written);
}

static const char *output_of(dlc_cli *cli)
{
    const char *path = cli->args.operands.data[0];
    size_t n = strlen(path);
    n -= n > 5 && !strcmp(path + n - 5, ".onnx") ? 5 : 0;
    return cli->args.output ? cli->args.output : dlc_arena_printf(cli->arena, "%.*s.int8.onnx", (int)n, path);
}

static dlc_status quantize(job *j)
{
    const char *written = output_of(j->cli);
    loss l = {0};
    DLC_TRY(calibrate(j));
    dlc_status status = j->library->quantizer_write(j->quantizer, j->lo, j->hi, written);
    if (status != DLC_OK)
        return failed(j, status);
    DLC_TRY(evaluate(j, written, &l));
    report_layers(j);
    report_loss(j, &l, written);
    return DLC_OK;
}

static dlc_status find_method(job *j)
{
    const char *wanted = j->cli->args.method ? j->cli->args.method : dlc_range_methods[0];
    while (j->method < DLC_RANGE_COUNT && strcmp(dlc_range_methods[j->method], wanted) != 0)
        j->method++;
    if (j->method < DLC_RANGE_COUNT)
        return DLC_OK;
    return dlc_diag_fail(&j->cli->diag, DLC_USAGE, NULL,
                         "--method is '%s', where mse, minmax, percentile or entropy is wanted", wanted);
}

dlc_status dlc_cmd_quantize(dlc_cli *cli)
{
    job j = {.cli = cli};
    const char *path = cli->args.operands.data[0];
    if (dlc_is_executable_file(path))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, path, "is an executable; quantize wants the model it was made from");
    if (!cli->args.data)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "quantize needs --data F.npz: samples of the inputs, by which ranges are chosen");
    if (cli->args.per_channel && cli->args.per_tensor)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL, "weights have scales --per-channel or --per-tensor, not both");
    DLC_TRY(find_method(&j));
    DLC_TRY(dlc_cli_can_write(cli, output_of(cli)));
    DLC_TRY(dlc_npz_read(cli->args.data, cli->arena, &cli->diag, &j.data));
    DLC_TRY(dlc_library_load(&j.library, &cli->diag));
    cli->json = cJSON_CreateObject();
    dlc_status status = j.library->quantizer_open(path, !cli->args.per_tensor, cli->args.exclude, &j.quantizer);
    status = status == DLC_OK ? quantize(&j) : failed(&j, status);
    j.library->quantizer_close(j.quantizer);
    return status;
}

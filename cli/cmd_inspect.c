/*
 * dlc inspect: a model is the library's to describe; an executable describes itself through the
 * runtime. Its kernels' work is known once its sizes are: dimensions that nothing fixes count as 1
 * (--shape sets them). No code of it runs.
 */
#include "cli/inputs.h"

#include <string.h>

static void add_tensors(cJSON *json, const char *key, const dlcrt_tensor_info *infos, uint32_t n)
{
    cJSON *list = cJSON_AddArrayToObject(json, key);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", infos[i].name);
        cJSON_AddStringToObject(row, "type", infos[i].type);
        cJSON_AddItemToArray(list, row);
    }
}

/* "conv1+relu1" -> ["conv1", "relu1"] */
static void add_nodes(cJSON *row, const char *names)
{
    cJSON *nodes = cJSON_AddArrayToObject(row, "nodes");
    while (*names) {
        size_t n = strcspn(names, "+");
        dlc_str name = {0};
        dlc_str_addn(&name, names, n);
        cJSON_AddItemToArray(nodes, cJSON_CreateString(dlc_str_text(&name)));
        dlc_str_deinit(&name);
        names += n + (names[n] == '+');
    }
}

static void add_kernels(cJSON *json, const dlcrt_executable *executable,
                        const dlcrt_context *context)
{
    cJSON *kernels = cJSON_AddArrayToObject(json, "kernels");
    dlcrt_step_info step;
    dlcrt_step_profile work;
    double flops = 0, bytes = 0;
    for (uint32_t i = 0;
         dlcrt_executable_step(executable, i, &step) && dlcrt_context_profile(context, i, &work);
         i++) {
        if (!step.is_kernel)
            continue;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", step.name);
        cJSON_AddStringToObject(row, "code", step.kernel);
        add_nodes(row, step.name);
        cJSON_AddNumberToObject(row, "flops", work.flops);
        cJSON_AddNumberToObject(row, "bytes", work.bytes);
        cJSON_AddNumberToObject(row, "units", (double)work.units);
        cJSON_AddItemToArray(kernels, row);
        flops += work.flops;
        bytes += work.bytes;
    }
    cJSON_AddNumberToObject(json, "flops", flops);
    cJSON_AddNumberToObject(json, "bytes", bytes);
}

static void add_facts(cJSON *json, const dlcrt_executable *executable)
{
    dlcrt_executable_info info;
    dlcrt_executable_describe(executable, &info);
    cJSON_AddStringToObject(json, "model", info.model);
    cJSON_AddStringToObject(json, "target", info.target);
    cJSON_AddStringToObject(json, "producer", info.producer);
    cJSON_AddNumberToObject(json, "plans", info.nplans);
    cJSON_AddNumberToObject(json, "constants_bytes", (double)info.constants_bytes);
    cJSON_AddNumberToObject(json, "plan_bytes", info.plan_bytes);
    cJSON_AddNumberToObject(json, "steps", info.nsteps);
    cJSON_AddNumberToObject(json, "codes", info.nkernels);
    cJSON *fields = cJSON_AddObjectToObject(json, "metadata"), *own = cJSON_CreateObject();
    dlcrt_metadata row;
    for (uint32_t i = 0; dlcrt_executable_metadata(executable, i, &row); i++)
        cJSON_AddStringToObject(row.is_field ? fields : own, row.key, row.value);
    cJSON_AddItemToObject(fields, "metadata_props", own);
}

static dlc_status executable_json(dlc_cli *cli, dlcrt_executable *executable,
                                  dlcrt_context *context)
{
    dlc_signature signature = dlc_signature_of_executable(executable, cli->arena);
    dlc_options options;
    dlc_tensors inputs;
    DLC_TRY(dlc_cli_options(cli, &options));
    DLC_TRY(dlc_gather_inputs(cli, &signature, &options, &inputs));
    dlc_status status = dlcrt_context_prepare(context, inputs.data, inputs.n);
    if (status != DLC_OK)
        return dlc_runtime_failed(cli, status, NULL);
    cli->json = cJSON_CreateObject();
    add_facts(cli->json, executable);
    add_tensors(cli->json, "inputs", signature.inputs, signature.ninputs);
    add_tensors(cli->json, "outputs", signature.outputs, signature.noutputs);
    cJSON_AddNumberToObject(cli->json, "context_bytes", (double)dlcrt_context_bytes(context));
    add_kernels(cli->json, executable, context);
    return DLC_OK;
}

static void plan_text(dlc_cli *cli, dlcrt_executable *executable)
{
    size_t size_bytes = dlcrt_executable_print(executable, NULL, 0) + 1;
    char *text = dlc_arena_alloc(cli->arena, size_bytes, 1);
    dlcrt_executable_print(executable, text, size_bytes);
    dlc_say(cli, "%s", text);
}

static dlc_status plan_json(dlc_cli *cli, dlcrt_executable *executable)
{
    dlcrt_context *context;
    dlc_status status =
        dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1}, &context);
    if (status != DLC_OK)
        return dlc_runtime_failed(cli, status, NULL);
    status = executable_json(cli, executable, context);
    dlcrt_context_destroy(context);
    return status;
}

/* Nothing runs, so no device is needed: text of every plan, JSON of the first. */
static dlc_status inspect_executable(dlc_cli *cli, const char *path, const char *format)
{
    dlcrt_executable_info info = {.nplans = 1};
    int is_text = !strcmp(format, "text");
    if (!is_text && strcmp(format, "json") != 0)
        return dlc_diag_fail(&cli->diag, DLC_UNSUPPORTED, path,
                             "an executable can be shown as text or json, not as %s", format);
    for (uint32_t i = 0; i < info.nplans; i++) {
        dlcrt_executable_options options = {.path = path, .device = "none", .plan = i};
        dlcrt_executable *executable;
        dlc_status status = dlcrt_executable_open_with(&options, &executable);
        if (status != DLC_OK)
            return dlc_runtime_failed(cli, status, NULL);
        dlcrt_executable_describe(executable, &info);
        if (is_text && i == 0)
            dlc_say(cli, "%s\n", path);
        if (is_text)
            plan_text(cli, executable);
        else
            status = plan_json(cli, executable);
        dlcrt_executable_close(executable);
        if (status != DLC_OK || !is_text)
            return status;
    }
    return DLC_OK;
}

dlc_status dlc_cmd_inspect(dlc_cli *cli)
{
    static const char *const formats[] = {"text", "json", "dot"};
    const char *format = cli->args.format ? cli->args.format : cli->args.json ? "json" : "text";
    uint32_t i = 0;
    while (i < 3 && strcmp(formats[i], format) != 0)
        i++;
    if (i == 3)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "--format is '%s', where text, json or dot is wanted", format);
    cli->args.json |= !strcmp(format, "json");
    if (dlc_is_executable_file(cli->args.operands.data[0]))
        return inspect_executable(cli, cli->args.operands.data[0], format);
    return dlc_show_text(cli, DLC_TEXT_INSPECT, "text", format);
}

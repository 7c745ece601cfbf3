/* dlc opt, inspect, explain: text about a model, made by the library and passed on. */
#include "cli/cli.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

static dlc_status write_text(dlc_cli *cli, const char *path, const char *text)
{
    dlc_output output;
    DLC_TRY(dlc_output_open(&output, path, &cli->diag));
    dlc_status status = dlc_output_write(&output, text, strlen(text), &cli->diag);
    if (status == DLC_OK)
        status = dlc_output_commit(&output, 0666, &cli->diag);
    if (status != DLC_OK)
        dlc_output_abandon(&output);
    return status;
}

/* With --json the text is the result: as it is if it is JSON itself, else under `key`. */
static dlc_status deliver(dlc_cli *cli, const char *key, const char *format, const char *text)
{
    if (cli->args.json && !strcmp(format, "json"))
        return (cli->json = cJSON_Parse(text)) ? DLC_OK : DLC_INTERNAL;
    if (cli->args.json) {
        cli->json = cJSON_CreateObject();
        cJSON_AddStringToObject(cli->json, key, text);
    }
    if (cli->args.output && cli->args.command == DLC_COMMAND_opt)
        return write_text(cli, cli->args.output, text);
    if (!cli->args.json)
        fputs(text, stdout);
    return DLC_OK;
}

static dlc_status show(dlc_cli *cli, dlc_text_kind kind, const char *key, const char *format)
{
    const dlc_library *library;
    dlc_options options;
    dlc_model *model;
    const char *text;
    DLC_TRY(dlc_cli_options(cli, &options));
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    DLC_TRY(dlc_cli_open(cli, cli->args.operands.data[0], &options, &model));
    dlc_status status = library->model_text(model, kind, format, &text);
    dlc_progress(cli, NULL);
    if (status == DLC_OK)
        status = deliver(cli, key, format, text);
    dlc_cli_close(cli, model);
    return status;
}

dlc_status dlc_cmd_opt(dlc_cli *cli)
{
    return show(cli, cli->args.passes ? DLC_TEXT_GRAPH : DLC_TEXT_IMPORTED, "graph", "text");
}

dlc_status dlc_cmd_explain(dlc_cli *cli)
{
    return show(cli, DLC_TEXT_EXPLAIN, "edges", cli->args.json ? "json" : "text");
}

/* ---- inspect ---- */

static dlc_status executable_json(dlc_cli *cli, dlcrt_executable *executable)
{
    dlcrt_executable_info info;
    dlcrt_executable_describe(executable, &info);
    cJSON *json = cli->json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "model", info.model);
    cJSON_AddStringToObject(json, "target", info.target);
    cJSON_AddStringToObject(json, "producer", info.producer);
    cJSON_AddNumberToObject(json, "constants_bytes", (double)info.constants_bytes);
    cJSON_AddNumberToObject(json, "plan_bytes", info.plan_bytes);
    cJSON *kernels = cJSON_AddArrayToObject(json, "kernels");
    dlcrt_step_info step;
    for (uint32_t i = 0; dlcrt_executable_step(executable, i, &step); i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", step.kernel);
        cJSON_AddStringToObject(row, "nodes", step.name);
        cJSON_AddBoolToObject(row, "is_kernel", step.is_kernel);
        cJSON_AddItemToArray(kernels, row);
    }
    return DLC_OK;
}

static dlc_status executable_text(dlc_cli *cli, dlcrt_executable *executable, const char *path)
{
    size_t size_bytes = dlcrt_executable_print(executable, NULL, 0) + 1;
    char *text = dlc_arena_alloc(cli->arena, size_bytes, 1);
    dlcrt_executable_print(executable, text, size_bytes);
    dlc_say(cli, "%s\n%s", path, text);
    return DLC_OK;
}

static dlc_status inspect_executable(dlc_cli *cli, const char *path, const char *format)
{
    dlcrt_executable *executable;
    if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
        return dlc_diag_fail(&cli->diag, DLC_UNSUPPORTED, path,
                             "an executable can be shown as text or json, not as %s", format);
    dlc_status status = dlcrt_executable_open(path, &executable);
    if (status != DLC_OK)
        return dlc_runtime_failed(cli, status, NULL);
    status = !strcmp(format, "json") ? executable_json(cli, executable)
                                     : executable_text(cli, executable, path);
    dlcrt_executable_close(executable);
    return status;
}

dlc_status dlc_cmd_inspect(dlc_cli *cli)
{
    static const char *const formats[] = {"text", "json", "dot", "svg"};
    const char *format = cli->args.format ? cli->args.format : cli->args.json ? "json" : "text";
    uint32_t i = 0;
    while (i < 4 && strcmp(formats[i], format) != 0)
        i++;
    if (i == 4)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "--format is '%s', where text, json, dot or svg is wanted", format);
    cli->args.json |= !strcmp(format, "json");
    if (dlc_is_executable_file(cli->args.operands.data[0]))
        return inspect_executable(cli, cli->args.operands.data[0], format);
    return show(cli, DLC_TEXT_INSPECT, "text", format);
}

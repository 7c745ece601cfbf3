/* dlc opt and explain: text about a model, made by the library and passed on. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

dlc_status dlc_write_text(dlc_cli *cli, const char *path, const char *text)
{
    return dlc_write_bytes(cli, path, text, strlen(text));
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
        return dlc_write_text(cli, cli->args.output, text);
    if (!cli->args.json)
        dlc_print(stdout, text);
    return DLC_OK;
}

dlc_status dlc_show_text(dlc_cli *cli, dlc_text_kind kind, const char *key, const char *format)
{
    const dlc_library *library;
    dlc_options options;
    dlc_model *model;
    const char *text;
    DLC_TRY(dlc_cli_options(cli, &options));
    if (dlc_cli_is_stdout(cli))
        cli->args.output = NULL;
    if (cli->args.output)
        DLC_TRY(dlc_cli_may_write(cli, cli->args.output));
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
    return dlc_show_text(cli, cli->args.passes ? DLC_TEXT_GRAPH : DLC_TEXT_IMPORTED, "graph",
                         "text");
}

dlc_status dlc_cmd_explain(dlc_cli *cli)
{
    return dlc_show_text(cli, DLC_TEXT_EXPLAIN, "edges", cli->args.json ? "json" : "text");
}

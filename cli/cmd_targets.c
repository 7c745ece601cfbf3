/* dlc targets, passes, strategies: the names that options take. */
#include "cli/calibrate.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static dlc_status list(dlc_cli *cli, dlc_catalogue_kind kind, const char *title)
{
    const dlc_library *library;
    const char *name, *help;
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    cli->json = cli->json ? cli->json : cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(cli->json, title);
    for (uint32_t i = 0; library->catalogue(kind, i, &name, &help); i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", name);
        cJSON_AddStringToObject(row, "help", help);
        cJSON_AddItemToArray(rows, row);
        dlc_say(cli, "%-12s %s\n", name, help);
    }
    return DLC_OK;
}

/* "far_bytes_per_us 30000" as "30.0 GB/s"; lines of the machine's file. */
static void show_line(dlc_cli *cli, const char *line, int n)
{
    char name[64], text[300];
    double value;
    dlc_text_print(text, sizeof text, "%.*s", n, line);
    if (sscanf(text, "%63s", name) != 1 || !strcmp(name, "processor"))
        dlc_say(cli, "%s\n", text);
    size_t m = strlen(name);
    if (!strcmp(name, "processor") || !strchr(text, ' '))
        return;
    value = dlc_text_double(strchr(text, ' '), NULL);
    cJSON_AddNumberToObject(cli->json, name, value);
    if (m > 13 && !strcmp(name + m - 13, "_bytes_per_us"))
        dlc_say(cli, "%-20s %10.1f GB/s\n", name, value / 1e3);
    else if (m > 11 && !strcmp(name + m - 11, "_ops_per_us"))
        dlc_say(cli, "%-20s %10.1f Gop/s\n", name, value / 1e3);
    else
        dlc_say(cli, "%-20s %10.0f\n", name, value);
}

static dlc_status probe(dlc_cli *cli)
{
    const dlc_library *library;
    const char *written, *text;
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    dlc_progress(cli, "measuring …");
    dlc_status status = library->machine_probe(cli->args.machine, &written, &text);
    dlc_progress(cli, NULL);
    if (status != DLC_OK)
        return dlc_diag_fail(&cli->diag, status, *written ? written : NULL, "%s", text);
    cli->json = cJSON_CreateObject();
    cJSON_AddStringToObject(cli->json, "file", written);
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        show_line(cli, text, (int)strcspn(text, "\n"));
    dlc_say(cli, "kept in %s for compilations for native\n", written);
    return DLC_OK;
}

dlc_status dlc_cmd_targets(dlc_cli *cli)
{
    if (cli->args.calibrate)
        return dlc_cli_calibrate(cli);
    if (cli->args.probe)
        return probe(cli);
    if (cli->args.machine)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "--machine names the file of --probe, which is not given");
    return list(cli, DLC_CATALOGUE_TARGETS, "targets");
}

dlc_status dlc_cmd_passes(dlc_cli *cli)
{
    DLC_TRY(list(cli, DLC_CATALOGUE_PASSES, "passes"));
    dlc_say(cli, "\nrewrites of the pass rewrite, for --rewrite NAME=N\n");
    return list(cli, DLC_CATALOGUE_REWRITES, "rewrites");
}

dlc_status dlc_cmd_strategies(dlc_cli *cli)
{
    return list(cli, DLC_CATALOGUE_STRATEGIES, "strategies");
}

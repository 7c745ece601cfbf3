/* dlc targets, passes, strategies: the names that options take. */
#include "cli/cli.h"

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

dlc_status dlc_cmd_targets(dlc_cli *cli)
{
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

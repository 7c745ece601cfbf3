/* dlc verify: opening an executable checks its code and tables, running it the weights it uses; this checks all of it. */
#include "cli/cli.h"

static dlc_status verify(dlc_cli *cli, const char *path)
{
    dlcrt_executable *executable = NULL;
    dlcrt_executable_options options = {.path = path, .device = "none"};
    dlc_status status = dlcrt_executable_open_with(&options, &executable);
    if (status == DLC_OK)
        status = dlcrt_executable_verify(executable);
    dlcrt_executable_close(executable);
    if (status != DLC_OK)
        return dlc_runtime_failed(cli, status, NULL);
    if (!cli->args.quiet)
        dlc_say(cli, "%s: whole\n", path);
    return DLC_OK;
}

/* All of them, whatever is wrong with one; the first failure is the status. */
dlc_status dlc_cmd_verify(dlc_cli *cli)
{
    dlc_status result = DLC_OK;
    for (uint32_t i = 0; i < cli->args.operands.n; i++) {
        dlc_status status = verify(cli, cli->args.operands.data[i]);
        result = result == DLC_OK ? status : result;
    }
    return result;
}

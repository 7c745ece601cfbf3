/* dlc compile --tune. */
#ifndef DLC_CLI_TUNE_H
#define DLC_CLI_TUNE_H

#include "cli/cli.h"

/* Tries schedules of the command's model on this machine, and keeps the fastest for compilations. */
DLC_NODISCARD dlc_status dlc_cli_tune(dlc_cli *cli, const dlc_options *options, const dlc_library *library);

#endif

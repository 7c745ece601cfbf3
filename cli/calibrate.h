/* What gpu_check measured of a GPU, as the virtual GPU's predictions take it. */
#ifndef DLC_CLI_CALIBRATE_H
#define DLC_CLI_CALIBRATE_H

#include "cli/cli.h"

/* Lines "NAME NUMBER" of the results that --calibrate names: figures of the step micro, and of the step experiments how far kernels
 * lay from their prediction, by what bounds them. */
DLC_NODISCARD dlc_status dlc_cli_calibrate(dlc_cli *cli);

#endif

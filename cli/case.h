/* One folder of an ONNX backend test suite. */
#ifndef DLC_CLI_CASE_H
#define DLC_CLI_CASE_H

#include "cli/cli.h"

/* A note of a case that is right in types and shapes, with numbers that no standard states. */
#define DLC_CASE_DRAWN "its numbers are drawn, and no standard says which"

/*
 * Compiles (to `output`) or interprets FOLDER/model.onnx, or takes FOLDER/model.so as compiled
 * before, and compares it with every test_data_set_* of the folder. The status is the case's; cli->diag says why. Meant for a child process: what it
 * allocates stays until the process ends.
 */
DLC_NODISCARD dlc_status dlc_case_run(dlc_cli *cli, const char *folder, const char *output);

#endif

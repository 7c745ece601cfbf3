/* libdlc.so, opened only when something must be compiled: running an executable never loads the
 * compiler. */
#ifndef DLC_CLI_LIBRARY_H
#define DLC_CLI_LIBRARY_H

#include "base/diag.h"
#include "dlc/dlc.h"

typedef struct {
#define DLC_LIBRARY(name) __typeof__(&dlc_##name) name;
#include "cli/library.def"
#undef DLC_LIBRARY
} dlc_library;

/* Finds libdlc.so in ../lib beside the program, or in its folder. Loads it once. */
DLC_NODISCARD dlc_status dlc_library_load(const dlc_library **library, dlc_diag *diag);

#endif

/* What `dlc targets` says of a row. */
#ifndef DLC_COMPILER_TARGET_H
#define DLC_COMPILER_TARGET_H

#include "ir/schedule/target.h"

/* Good until this thread asks again. */
const char *dlc_target_help(const dlc_target *target);

#endif

/* Private to this folder. */
#ifndef DLC_COMPILER_OPTIONS_H
#define DLC_COMPILER_OPTIONS_H

#include "dlc/dlc.h"

/* Fields that the caller does not know of are zero; from NULL: all are. */
void dlc_options_take(dlc_options *to, const dlc_options *from);

#endif

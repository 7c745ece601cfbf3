/* What follows of a kernel for NaN. */
#ifndef DLC_IR_KERNEL_NAN_H
#define DLC_IR_KERNEL_NAN_H

#include "ir/kernel/kernel.h"

/* The stage gives the greatest or least of its terms, and where one of them is NaN, all that is stored of what the stage gives is NaN
 * whatever it gives. False: it may not be. */
int dlc_nan_arrives_anyway(const dlc_kernel *kernel, uint32_t stage, dlc_arena *arena);

#endif

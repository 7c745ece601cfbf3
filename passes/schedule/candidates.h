/* Schedules that a kernel can have, for whoever can measure them. */
#ifndef DLC_PASSES_SCHEDULE_CANDIDATES_H
#define DLC_PASSES_SCHEDULE_CANDIDATES_H

#include "passes/fuse/fuse.h"

typedef struct {
    dlc_schedule *schedule; /* resolved */
    dlc_estimate estimate;
} dlc_candidate;
typedef dlc_vec(dlc_candidate) dlc_candidates;

/*
 * First the schedule that dlc_choose takes, then those of the other forms that can run the kernel. None when no right code is
 * possible. The kernel does not change.
 */
void dlc_choose_candidates(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena, dlc_candidates *result);

#endif

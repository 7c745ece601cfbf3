/* Schedules that a kernel can have, for whoever can measure them. */
#ifndef DLC_PASSES_SCHEDULE_CANDIDATES_H
#define DLC_PASSES_SCHEDULE_CANDIDATES_H

#include "passes/fuse/fuse.h"

typedef struct {
    dlc_schedule *schedule; /* resolved */
    const char *text;       /* as it prints */
    dlc_estimate estimate;
} dlc_candidate;
typedef dlc_vec(dlc_candidate) dlc_candidates;

/*
 * First the schedule that dlc_choose takes, then those of the other forms that can run the kernel. None when no right code is
 * possible. The kernel does not change.
 */
void dlc_choose_candidates(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena, dlc_candidates *result);
/* Schedules a step away from one of the kernel's (passes/schedule/neighbours.c), some of them alike; none that is refused. */
void dlc_choose_neighbours(const dlc_kernel *kernel, const dlc_schedule *from, dlc_arena *arena, dlc_candidates *result);
/* Fills in what follows from the schedule; false: it takes more scratch than there is. */
int dlc_candidate_judge(dlc_candidate *candidate, dlc_arena *arena);

#endif

/* Schedules beside the chosen one: what the other forms make of the kernel. */
#include "passes/schedule/candidates.h"

#include "passes/schedule/choose.h"

static void add(dlc_schedule *schedule, dlc_arena *arena, dlc_candidates *result)
{
    dlc_candidate candidate = {.schedule = schedule};
    dlc_estimate_kernel(schedule, arena, &candidate.estimate);
    dlc_vec_push(arena, result, candidate);
}

void dlc_choose_candidates(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena, dlc_candidates *result)
{
    dlc_schedules forms;
    *result = (dlc_candidates){0};
    dlc_choose_forms(kernel, target, arena, &forms);
    for (uint32_t i = 0; i < forms.n; i++)
        add(forms.data[i], arena, result);
}

/* Schedules beside the chosen one: what the other forms make of the kernel. */
#include "passes/schedule/candidates.h"

#include "passes/schedule/choose.h"

int dlc_candidate_judge(dlc_candidate *candidate, dlc_arena *arena)
{
    dlc_str text = {0};
    dlc_estimate_kernel(candidate->schedule, arena, &candidate->estimate);
    dlc_schedule_print(candidate->schedule, &text);
    candidate->text = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return candidate->estimate.scratch_bytes <= candidate->schedule->target->scratch_bytes;
}

void dlc_choose_candidates(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena, dlc_candidates *result)
{
    dlc_schedules forms;
    *result = (dlc_candidates){0};
    dlc_choose_forms(kernel, target, arena, &forms);
    for (uint32_t i = 0; i < forms.n; i++) {
        dlc_candidate candidate = {.schedule = forms.data[i]};
        dlc_estimate_grain(candidate.schedule, arena);
        if (dlc_candidate_judge(&candidate, arena) || i == 0)
            dlc_vec_push(arena, result, candidate);
    }
}

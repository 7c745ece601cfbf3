/* The schedule that is chosen for a kernel's text, and what it reads like. */
#ifndef DLC_TESTS_CHOSEN_H
#define DLC_TESTS_CHOSEN_H

#include "passes/schedule/choose.h"
#include "tests/unit/suite.h"

/* As the compiler has it, resolved; NULL: it is refused for that reason. */
static inline dlc_schedule *schedule_on(const dlc_target *target, const char *text, dlc_arena *arena, dlc_kernel **kernel, dlc_reason *reason,
                                        const char **detail)
{
    dlc_diag diag;
    dlc_schedule *schedule;
    dlc_diag_init(&diag, arena);
    if (dlc_kernel_parse(text, arena, &diag, kernel) != DLC_OK)
        ck_abort_msg("%s", diag.messages[0].text);
    *reason = dlc_choose(*kernel, target, arena, &schedule, detail);
    if (schedule)
        dlc_estimate_grain(schedule, arena);
    if (schedule && dlc_schedule_resolve(schedule, &diag) != DLC_OK)
        ck_abort_msg("%s", diag.messages[0].text);
    return schedule;
}

static inline char *text_of(const dlc_schedule *schedule, dlc_arena *arena)
{
    dlc_str text = {0};
    dlc_schedule_print(schedule, &text);
    char *copy = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

static inline const char *chosen_on(const dlc_target *target, const char *kernel_text, dlc_arena *arena)
{
    dlc_kernel *kernel;
    dlc_reason reason;
    const char *detail;
    return text_of(schedule_on(target, kernel_text, arena, &kernel, &reason, &detail), arena);
}

#endif

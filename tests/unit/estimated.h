/* What a kernel's text takes by a schedule's, as estimates have it. */
#ifndef DLC_TESTS_ESTIMATED_H
#define DLC_TESTS_ESTIMATED_H

#include "passes/schedule/choose.h"
#include "tests/unit/suite.h"

/* Microseconds, of so many threads. target: NULL is the one that the schedule names. */
static inline double estimated_us(const dlc_target *target, const char *kernel_text, const char *schedule_text, double threads)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_kernel *kernel;
    dlc_schedule *schedule;
    dlc_estimate estimate;
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (dlc_kernel_parse(kernel_text, arena, &diag, &kernel) != DLC_OK ||
        dlc_schedule_parse(schedule_text, kernel, NULL, arena, &diag, &schedule) != DLC_OK)
        ck_abort_msg("%s", diag.messages[0].text);
    schedule->target = target ? target : schedule->target;
    dlc_estimate_kernel(schedule, arena, &estimate);
    double us = dlc_estimate_time_us(&estimate, schedule, threads);
    dlc_arena_destroy(arena);
    return us;
}

#endif

/*
 * libFuzzer entry: any bytes as a kernel, with a schedule behind it. A kernel that is read is verified, and prints as a text that
 * reads back the same; so does a schedule, which resolves or is refused in words.
 */
#include "ir/kernel/kernel.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "tests/fuzz/entry.h"

#include <string.h>

/* One trip may move terms of sums; a second one changes nothing. */
static void check_round_trip(const dlc_kernel *kernel, dlc_arena *arena, dlc_diag *diag)
{
    dlc_str text[3] = {{0}};
    dlc_kernel_print(kernel, 1, &text[0]);
    for (int i = 0; i < 2; i++) {
        dlc_kernel *again;
        must(dlc_kernel_parse(dlc_str_text(&text[i]), arena, diag, &again) == DLC_OK);
        dlc_kernel_print(again, 1, &text[i + 1]);
    }
    must(!strcmp(dlc_str_text(&text[1]), dlc_str_text(&text[2])));
    for (int i = 0; i < 3; i++)
        dlc_str_deinit(&text[i]);
}

static void check_schedule(const char *text, dlc_kernel *kernel, dlc_arena *arena, dlc_diag *diag)
{
    static const char *const targets[] = {"x86-64-v3", "x86-64-v4", "sm_75", "sm_80"};
    for (uint32_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        dlc_schedule *schedule, *again;
        const dlc_target *target = dlc_target_find(targets[t]);
        uint32_t before = diag->nmessages;
        if (dlc_schedule_parse(text, kernel, target, arena, diag, &schedule) != DLC_OK) {
            must(diag->nmessages > before);
            continue;
        }
        if (dlc_schedule_resolve(schedule, diag) != DLC_OK)
            continue;
        dlc_str printed = {0};
        dlc_schedule_print(schedule, &printed);
        must(dlc_schedule_parse(dlc_str_text(&printed), kernel, target, arena, diag, &again) == DLC_OK);
        must(dlc_schedule_resolve(again, diag) == DLC_OK);
        dlc_str_deinit(&printed);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    dlc_arena *arena = dlc_arena_create((size_t)256 << 20);
    dlc_diag diag;
    jmp_buf out_of_memory;
    dlc_diag_init(&diag, arena);
    if (setjmp(out_of_memory) == 0) {
        dlc_kernel *kernel;
        dlc_arena_set_oom(leave, &out_of_memory);
        char *text = dlc_arena_strndup(arena, (const char *)bytes, size_bytes);
        char *schedule = strstr(text, "\nschedule ");
        if (schedule)
            *schedule++ = 0;
        if (dlc_kernel_parse(text, arena, &diag, &kernel) != DLC_OK) {
            must(diag.nmessages > 0);
        } else if (dlc_kernel_verify(kernel, &diag) == DLC_OK) {
            check_round_trip(kernel, arena, &diag);
            if (schedule)
                check_schedule(schedule, kernel, arena, &diag);
        }
    }
    dlc_arena_set_oom(NULL, NULL);
    dlc_arena_destroy(arena);
    return 0;
}

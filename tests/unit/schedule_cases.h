/*
 * Schedules by hand over kernels in text form: right ones print as they read and give the right numbers, wrong ones are refused
 * in a sentence.
 */
#ifndef DLC_TESTS_SCHEDULE_CASES_H
#define DLC_TESTS_SCHEDULE_CASES_H

#include "tests/unit/run_schedule.h"
#include "tests/unit/suite.h"

static inline dlc_kernel *kernel_of(const char *text, dlc_arena *arena)
{
    dlc_diag diag;
    dlc_kernel *kernel = NULL;
    dlc_diag_init(&diag, arena);
    int is_right = dlc_kernel_parse(text, arena, &diag, &kernel) == DLC_OK && dlc_kernel_verify(kernel, &diag) == DLC_OK;
    ck_assert_msg(is_right, "%s\n%s", text, diag.nmessages ? diag.messages[0].text : "");
    return kernel;
}

/* `threads` of a block; 0: the schedule does not say. */
static inline const char *schedule_text(const char *target, int threads, const char *tree, dlc_arena *arena)
{
    const char *words = threads ? dlc_arena_printf(arena, " threads %d", threads) : "";
    return dlc_arena_printf(arena, "schedule %s grain 1%s {\n%s}\n", target, words, tree);
}

/* Reads it, and that it prints as it read. */
static inline scheduled read_right(const char *kernel, const char *target, int threads, const char *tree, dlc_arena *arena)
{
    dlc_diag diag;
    dlc_str printed = {0};
    dlc_schedule *schedule = NULL;
    const char *text = schedule_text(target, threads, tree, arena);
    dlc_kernel *read = kernel_of(kernel, arena);
    dlc_diag_init(&diag, arena);
    dlc_status status = dlc_schedule_parse(text, read, NULL, arena, &diag, &schedule);
    ck_assert_msg(status == DLC_OK, "%s%s\n%s", kernel, text, diag.nmessages ? diag.messages[0].text : "");
    dlc_schedule_print(schedule, &printed);
    ck_assert_str_eq(dlc_str_text(&printed), text);
    dlc_str_deinit(&printed);
    return (scheduled){.kernel = read, .schedule = schedule};
}

static inline void expect_right(const char *kernel, const char *target, int threads, const char *tree)
{
    dlc_arena *arena = dlc_arena_create(0);
    scheduled one = read_right(kernel, target, threads, tree, arena);
    const char *problem = schedules_run(&one, 1, target, arena);
    ck_assert_msg(!problem, "%s%s\n%s", kernel, schedule_text(target, threads, tree, arena), problem);
    dlc_arena_destroy(arena);
}

/* Many of them in one executable; one that is wrong is run again by itself, which names it. */
typedef struct {
    const char *kernel, *tree;
} right_case;

static inline void expect_all_right(const right_case *cases, uint32_t n, const char *target)
{
    dlc_arena *arena = dlc_arena_create(0);
    scheduled *all = dlc_new_array(arena, scheduled, n);
    for (uint32_t i = 0; i < n; i++)
        all[i] = read_right(cases[i].kernel, target, 0, cases[i].tree, arena);
    const char *problem = schedules_run(all, n, target, arena);
    for (uint32_t i = 0; problem && i < n; i++)
        expect_right(cases[i].kernel, target, 0, cases[i].tree);
    ck_assert_msg(!problem, "together: %s", problem);
    dlc_arena_destroy(arena);
}

static inline void expect_refused(const char *kernel, const char *target, int threads, const char *tree, const char *sentence)
{
    dlc_diag diag;
    dlc_schedule *schedule = NULL;
    dlc_arena *arena = dlc_arena_create(0);
    const char *text = schedule_text(target, threads, tree, arena);
    dlc_diag_init(&diag, arena);
    dlc_status status = dlc_schedule_parse(text, kernel_of(kernel, arena), NULL, arena, &diag, &schedule);
    ck_assert_msg(status == DLC_INVALID, "taken:\n%s", text);
    ck_assert_msg(strstr(diag.messages[0].text, sentence) != NULL, "%s\nis refused with '%s', not '%s'", text,
                  diag.messages[0].text, sentence);
    dlc_arena_destroy(arena);
}

/* The kernel's code, as LLVM's text. */
static inline char *code_of(const char *kernel, const char *target, const char *tree, dlc_arena *arena)
{
    char path[] = "/tmp/dlc_code_XXXXXX", *code = NULL;
    size_t size = 0;
    dlc_diag diag;
    dlc_str text = {0};
    dlc_model *model;
    scheduled one = {.kernel = kernel_of(kernel, arena)};
    dlc_schedule *schedule = NULL;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    dlc_diag_init(&diag, arena);
    ck_assert_int_eq(dlc_schedule_parse(schedule_text(target, 0, tree, arena), one.kernel, NULL, arena, &diag, &schedule), DLC_OK);
    one.schedule = schedule;
    scheduled_module(&one, 1, target, &text);
    dlc_options options = {.target = target, .jobs = 1, .size_bytes = sizeof options};
    ck_assert_int_eq(dlc_model_open_bytes(dlc_str_text(&text), text.n, "case", &options, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_write(model, "ll", path, "case"), DLC_OK);
    dlc_model_close(model);
    FILE *file = fopen(path, "r");
    ck_assert(file && getdelim(&code, &size, 0, file) > 0);
    fclose(file);
    close(fd);
    unlink(path);
    dlc_str_deinit(&text);
    char *result = dlc_arena_strdup(arena, code);
    free(code);
    return result;
}

#endif

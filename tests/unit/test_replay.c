/*
 * Random kernels under the schedules that are chosen for them: kernels and modules read back as they print, and the schedules as
 * text make the same code again. `test_replay KERNELS [SEED]` tries so many instead of a few.
 */
#include "tests/unit/replay.h"

#include <check.h>

#include "passes/fuse/fuse.h"
#include "tests/unit/random_kernel.h"
#include "tests/unit/run_schedule.h"
#include "tests/unit/suite.h"

enum { KERNELS = 60, BATCH = 10 };

static struct {
    uint32_t kernels;
    uint64_t seed;
} wanted = {KERNELS, 1};

#ifdef __x86_64__
static const char *const targets[] = {"x86-64-v3", "x86-64-v4", "x86-64-v2", "sm_80"};
#else
static const char *const targets[] = {"aarch64", "sm_80"};
#endif
enum { NTARGETS = sizeof targets / sizeof *targets };

static void expect_kernel_reads(const dlc_kernel *kernel, dlc_arena *arena)
{
    dlc_str text = {0}, again = {0};
    dlc_diag diag;
    dlc_kernel *read;
    dlc_diag_init(&diag, arena);
    dlc_kernel_print(kernel, 1, &text);
    if (dlc_kernel_parse(dlc_str_text(&text), arena, &diag, &read) != DLC_OK)
        ck_abort_msg("%s: %s", dlc_str_text(&text), diag.messages[0].text);
    dlc_kernel_print(read, 1, &again);
    ck_assert_str_eq(dlc_str_text(&again), dlc_str_text(&text));
    ck_assert(dlc_kernel_hash(read) == dlc_kernel_hash(kernel));
    dlc_str_deinit(&text);
    dlc_str_deinit(&again);
}

/* A batch of kernels as one module without schedules, in a file. */
static void write_batch(uint32_t batch, const char *target, const char *path)
{
    dlc_arena *arena = dlc_arena_create(0);
    scheduled all[BATCH] = {0};
    uint32_t n = 0;
    dlc_str text = {0};
    for (uint32_t k = batch * BATCH; n < BATCH && k < wanted.kernels; k++) {
        dlc_schedule *unused = NULL;
        all[n].kernel = make_kernel(wanted.seed, k, arena);
        expect_kernel_reads(all[n].kernel, arena);
        dlc_choose(all[n].kernel, dlc_target_find(target), arena, &unused, NULL);
        n += unused != NULL; /* some take more scratch than there is */
    }
    scheduled_module(all, n, target, &text);
    FILE *stream = fopen(path, "we");
    ck_assert(stream && fwrite(text.data, 1, text.n, stream) == text.n && !fclose(stream));
    dlc_str_deinit(&text);
    dlc_arena_destroy(arena);
}

START_TEST(kernels_read_back_and_replay)
{
    char path[] = "/tmp/dlc_replay_XXXXXX", message[400];
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    for (uint32_t b = 0; b * BATCH < wanted.kernels; b++) {
        write_batch(b, targets[_i], path);
        int result = replay_model(path, targets[_i], message, sizeof message);
        if (result != REPLAY_RIGHT)
            ck_abort_msg("batch %u, %s: %s (in %s)", b, targets[_i], message, path);
    }
    unlink(path);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        wanted.kernels = (uint32_t)atoi(argv[1]);
    if (argc > 2)
        wanted.seed = (uint64_t)atoll(argv[2]);
    Suite *suite = suite_create("replay");
    TCase *tests = tcase_create("replay");
    tcase_set_timeout(tests, argc > 1 ? 3600 : 240);
    tcase_add_loop_test(tests, kernels_read_back_and_replay, 0, NTARGETS);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/*
 * Bugs planted into kernels, their prelude and their launches, and run through the runtime on the
 * virtual GPU: every one is seen, and the kernels as they are pass on PTX for three generations of
 * GPUs.
 */
#include "tests/vgpu/bench.h"

#include "tests/ptx/trial.h"
#include "tests/unit/suite.h"

typedef enum {
#define SUBJECT(id, graph) id,
#include "tests/ptx/subjects.def"
#undef SUBJECT
    NSUBJECTS
} subject;

static const char *const graphs[NSUBJECTS] = {
#define SUBJECT(id, graph) graph,
#include "tests/ptx/subjects.def"
#undef SUBJECT
};

/* Loads through shared memory that are asynchronous: each thread's word, between copying and reading. */
#define LATE_LOADS(size, between)                                                                                            \
    "struct late { float at; __device__ operator float() const { extern __shared__ float words[]; "                    \
    "float *to = words + threadIdx.x, v; asm volatile(\"{.reg .u64 s; cvta.to.shared.u64 s, %1; "                       \
    "cp.async.ca.shared.global [s], [%2], 4" size "; " between                                                                 \
    " ld.shared.f32 %0, [s];}\" : \"=f\"(v) : \"l\"(to), \"l\"(&at) : \"memory\"); return v; } };\n"

/* --- launches --- */
#define CHANGE(name, what)                                                                         \
    static void name(dlc_cuda_launch *launches, uint32_t n)                                        \
    {                                                                                              \
        for (uint32_t i = 0; i < n; i++)                                                           \
            launches[i].what;                                                                      \
    }
CHANGE(half_the_threads, threads /= 2)
CHANGE(twice_the_threads, threads *= 2)
CHANGE(a_warp_too_many, threads += 32)
CHANGE(a_thread_too_many, threads += 1)
CHANGE(half_the_shared, fixed_bytes /= 2)
CHANGE(threads_that_are_no_warp, threads -= 1)
CHANGE(no_shared, fixed_bytes = 0)
CHANGE(less_shared, fixed_bytes -= 64)
CHANGE(one_scratch_less, scratches -= 1)
CHANGE(too_few_blocks, units_per_block *= 2)
CHANGE(a_word_for_each_thread, fixed_bytes += 4 * launches[i].threads)
CHANGE(words_for_half_the_threads, fixed_bytes += 2 * launches[i].threads)

static const struct {
    const char *bug;
    subject kernel;
    bench_change change;
} mutants[] = {
#define BUG(subject, ways, bug, from, to, nth) {bug, subject, {from, to, nth, NULL, NULL, 0}},
#include "tests/ptx/bugs.def"
#undef BUG
    {"a non-coherent load of what the kernel wrote",
     WRITTEN,
     {"((const float *)b1)[", "((const cached *)b1)[", 0,
      "struct cached { float at; __device__ operator float() const { float v; "
      "asm volatile(\"ld.global.nc.f32 %0, [%1];\" : \"=f\"(v) : \"l\"(&at)); return v; } };\n",
      NULL, 0}},
    {"an asynchronous copy that nobody waits for",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0, LATE_LOADS("", "cp.async.commit_group;"), a_word_for_each_thread, 0}},
    {"a wait for the group before",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("", "cp.async.commit_group; cp.async.wait_group 1;"), a_word_for_each_thread, 0}},
    {"a wait for groups before this is one",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("", "cp.async.wait_group 0; cp.async.commit_group;"), a_word_for_each_thread, 0}},
    {"asynchronous copies behind shared memory",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("", "cp.async.commit_group; cp.async.wait_group 0;"), words_for_half_the_threads, 0}},
    {"an asynchronous copy of nothing",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS(", 0", "cp.async.commit_group; cp.async.wait_group 0;"), a_word_for_each_thread, 0}},
    {"a wait that half the warp skips",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("", "cp.async.commit_group; .reg .pred p; .reg .b32 l; mov.u32 l, %%laneid; setp.lt.u32 p, l, 16; "
                 "@p cp.async.wait_group 0;"), a_word_for_each_thread, 0}},
    {"a word of another thread that nobody waits for",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("", "cp.async.commit_group; cp.async.wait_group 0; xor.b64 s, s, 4;"), a_word_for_each_thread, 0}},
    {"a store where a copy has yet to arrive",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("", "st.shared.u32 [s], 0; cp.async.commit_group; cp.async.wait_group 0;"), a_word_for_each_thread, 0}},
    {"two copies to one place",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("", "cp.async.ca.shared.global [s], [%2], 4; cp.async.commit_group; cp.async.wait_group 0;"), a_word_for_each_thread, 0}},
    {"copies that nobody commits",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0, LATE_LOADS("", "cp.async.wait_group 0;"), a_word_for_each_thread, 0}},
    {"copies of half a word",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS(", 2", "cp.async.commit_group; cp.async.wait_group 0;"), a_word_for_each_thread, 0}},
    {"launch: a thread too many", MATMUL, {.change = a_thread_too_many}},
    {"launch: half the shared memory", ATTENTION, {.change = half_the_shared}},
    {"launch: half the threads", MATMUL, {.change = half_the_threads}},
    {"launch: twice the threads", MATMUL, {.change = twice_the_threads}},
    {"launch: a warp too many", MATMUL, {.change = a_warp_too_many}},
    {"launch: threads that are no warp", SUM, {.change = threads_that_are_no_warp}},
    {"launch: no shared memory", MATMUL, {.change = no_shared}},
    {"launch: 64 bytes of shared memory too few", MATMUL, {.change = less_shared}},
    {"launch: scratch for a warp too few", SOFTMAX, {.change = one_scratch_less}},
    {"launch: too few blocks", SOFTMAX, {.change = too_few_blocks}},
};

static int is_there(void)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *reason = trial_unavailable(WAY_PTX, arena);
    if (reason)
        printf("skipped: %s\n", reason);
    dlc_arena_destroy(arena);
    return reason == NULL;
}

static const int archs[] = {75, 80, 90};

START_TEST(test_unchanged)
{
    dlc_arena *arena = dlc_arena_create(0);
    for (int k = 0; k < NSUBJECTS; k++) {
        const char *problem = bench_run(graphs[k], archs[_i / 2], &(bench_change){0}, arena);
        bench_driver()->set_order(_i % 2);
        ck_assert_msg(!problem, "%s, compute_%d: %s", graphs[k], archs[_i / 2], problem);
    }
    dlc_arena_destroy(arena);
}
END_TEST

/* What copies asynchronously and waits is right. */
START_TEST(test_late)
{
    dlc_arena *arena = dlc_arena_create(0);
    const bench_change change = {"((const float *)b0)[", "((const late *)b0)[", 0,
                                 LATE_LOADS("", "cp.async.commit_group; cp.async.wait_group 0;"), a_word_for_each_thread, 0};
    const char *problem = bench_run(graphs[LATE], 80, &change, arena);
    ck_assert_msg(!problem, "%s", problem);
    dlc_arena_destroy(arena);
}
END_TEST

static int arch_of(subject kernel)
{
    return kernel == PROXIES ? 90 : kernel == MATRICES || kernel == BF16_MATRICES || kernel == OCTETS || kernel == LATE ? 80 : 75;
}

/* Bugs that loading finds. */
static int is_refused(const char *bug)
{
    static const char *const refused[] = {"a product that the GPU does not have", "both factors by rows",
                                          "fewer matrices than are loaded", "products that say nothing of the warp"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strcmp(refused[i], bug))
            return 1;
    return 0;
}

START_TEST(test_mutant)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *problem = bench_run(graphs[mutants[_i].kernel], arch_of(mutants[_i].kernel), &mutants[_i].change, arena);
    ck_assert_msg(problem, "%s: not seen", mutants[_i].bug);
    ck_assert_msg(!strstr(problem, "is not in the text") && !strstr(problem, "NVRTC:"), "%s: %s",
                  mutants[_i].bug, problem);
    /* A text that is no PTX is no bug that was seen, unless that is the bug. */
    ck_assert_msg((strstr(problem, "INVALID_PTX") != NULL) == is_refused(mutants[_i].bug), "%s: %s",
                  mutants[_i].bug, problem);
    printf("%s: %s\n", mutants[_i].bug, problem);
    fflush(stdout);
    dlc_arena_destroy(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vgpu mutants");
    TCase *cases = tcase_create("mutants");
    if (!is_there())
        return 77;
    tcase_add_loop_test(cases, test_unchanged, 0, 6);
    tcase_add_test(cases, test_late);
    tcase_add_loop_test(cases, test_mutant, 0, sizeof mutants / sizeof *mutants);
    tcase_set_timeout(cases, 120);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

/*
 * Do the checks of generated CUDA code find bugs? Each row plants one into the text of a kernel;
 * every way named for it must object. The text as it is must pass all ways.
 */
#include "tests/ptx/trial.h"
#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

typedef enum {
#define SUBJECT(id, graph) id,
#include "tests/ptx/subjects.def"
#undef SUBJECT
    NKERNELS
} subject;

static const char *const graphs[NKERNELS] = {
#define SUBJECT(id, graph) graph,
#include "tests/ptx/subjects.def"
#undef SUBJECT
};

#define ON(way) (1u << WAY_##way)
static const struct {
    const char *bug;
    subject kernel;
    uint32_t ways; /* all of them object */
    trial_mutation mutation;
} mutants[] = {
#define BUG(subject, ways, bug, from, to, nth) {bug, subject, ways, {from, to, nth}},
#include "tests/ptx/bugs.def"
#undef BUG
};

static dlc_arena *arena;
static small_graph owners[NKERNELS];
static trial *trials[NKERNELS];
static uint32_t ntrials[NKERNELS];

static int is_tried(subject kernel)
{
    for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++)
        if (mutants[i].kernel == kernel && mutants[i].ways)
            return 1;
    return 0;
}

static void make(void)
{
    const char *problem;
    arena = dlc_arena_create(0);
    for (int k = 0; k < NKERNELS; k++) {
        if (!is_tried((subject)k))
            continue;
        owners[k] = small_begin(graphs[k]);
        small_graph *s = &owners[k];
        const dlc_module *module = run_strategy(s, "greedy", "sm_75");
        void **memory = small_values(s, module, small_memory(s));
        ntrials[k] = trial_walk(module, small_symbols(s), memory, s->arena, &trials[k], &problem);
        ck_assert_msg(!problem && ntrials[k], "%s", problem ? problem : "no kernel");
    }
}

static void unmake(void)
{
    for (int k = 0; k < NKERNELS; k++)
        if (is_tried((subject)k))
            small_end(&owners[k]);
    dlc_arena_destroy(arena);
}

START_TEST(test_unchanged)
{
    trial all[64];
    uint32_t n = 0;
    if (trial_unavailable((trial_way)_i, arena))
        return;
    for (int k = 0; k < NKERNELS; k++)
        for (uint32_t i = 0; i < ntrials[k]; i++)
            all[n++] = trials[k][i];
    const char *problem = trial_run(all, n, (trial_way)_i, NULL, arena);
    ck_assert_msg(!problem, "%s: %s", trial_ways[_i], problem);
}
END_TEST

START_TEST(test_mutant)
{
    for (int way = 0; way < NWAYS; way++) {
        subject k = mutants[_i].kernel;
        if (!(mutants[_i].ways >> way & 1) || trial_unavailable((trial_way)way, arena))
            continue;
        const char *problem =
            trial_run(trials[k], ntrials[k], (trial_way)way, &mutants[_i].mutation, arena);
        ck_assert_msg(problem, "%s: not seen by %s", mutants[_i].bug, trial_ways[way]);
        ck_assert_msg(!strstr(problem, "is not in the text"), "%s: %s", mutants[_i].bug, problem);
        ck_assert_msg(strncmp(problem, "cc:", 3) && !strstr(problem, "NVRTC"), "%s: %s",
                      mutants[_i].bug, problem);
        printf("%s, by %s: %.*s\n", mutants[_i].bug, trial_ways[way], (int)strcspn(problem, "\n"),
               problem);
        fflush(stdout);
    }
}
END_TEST

/* No row says again what another one does. */
START_TEST(test_distinct)
{
    enum { N = sizeof mutants / sizeof *mutants };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++)
            ck_assert_msg(mutants[i].kernel != mutants[k].kernel || mutants[i].mutation.nth != mutants[k].mutation.nth ||
                              strcmp(mutants[i].mutation.from, mutants[k].mutation.from) ||
                              strcmp(mutants[i].mutation.to, mutants[k].mutation.to),
                          "%s is %s", mutants[i].bug, mutants[k].bug);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mutants");
    TCase *cases = tcase_create("mutants");
    dlc_arena *scratch = dlc_arena_create(0);
    int nways = 0;
    for (int way = 0; way < NWAYS; way++) {
        const char *reason = trial_unavailable((trial_way)way, scratch);
        nways += reason == NULL;
        if (reason)
            printf("skipped: %s: %s\n", trial_ways[way], reason);
    }
    dlc_arena_destroy(scratch);
    if (!nways)
        return 77;
    tcase_add_checked_fixture(cases, make, unmake);
    tcase_add_test(cases, test_distinct);
    tcase_add_loop_test(cases, test_unchanged, 0, NWAYS);
    for (int i = 0; i < (int)(sizeof mutants / sizeof *mutants); i++)
        if (mutants[i].ways)
            tcase_add_loop_test(cases, test_mutant, i, i + 1);
    tcase_set_timeout(cases, 120);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

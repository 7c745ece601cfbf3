/*
 * Do the checks of generated CUDA code find bugs? Each row plants one into the text of a kernel;
 * every way named for it must object. The text as it is must pass all ways.
 */
#include "tests/ptx/trial.h"
#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

typedef enum { MATMUL, SOFTMAX, SUM, RUNNING, HALF, GATHER, PACKS, TRANSPOSE, NKERNELS } subject;

static const char *const graphs[NKERNELS] = {
    [MATMUL] =
        "in x 70,40; const w 40,72; const b 72; m = matmul x w; a = add m b; r = relu a; out r",
    [SOFTMAX] = "in x 6,50; m = reduce_max x axes=1 keepdims=1; d = sub x m; e = exp d; t = "
                "reduce_sum e axes=1 keepdims=1;"
                "s = div e t; out s",
    [SUM] = "in x 5,130; s = reduce_sum x axes=1 keepdims=0; out s",
    [RUNNING] =
        "in x 6,3,37; c = cumsum x axis=2; e = reduce_max c axes=2 keepdims=1; f = sub c e; out f",
    [HALF] = "in x:f16 3,45; in y:f16 45; a = mul x y; out a",
    [PACKS] = "in x 5,256; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d",
    [GATHER] = "in x 4,7; in i:i64 9; g = gather x i axis=0; out g",
    [TRANSPOSE] =
        ("in x 2,33,50; const b 33; in r 2,50,33; t = transpose x perm=0,2,1; a = add t b; "
         "s = mul a r; out s"),
};

#define ON(way) (1u << WAY_##way)
static const struct {
    const char *bug;
    subject kernel;
    uint32_t ways; /* all of them object */
    trial_mutation mutation;
} mutants[] = {
    {"no barrier before multiplying", MATMUL, ON(PTX) | ON(TSAN), {"dlc_block_sync();", "", 1}},
    {"no barrier before the next slice", MATMUL, ON(PTX) | ON(TSAN), {"dlc_block_sync();", "", 2}},
    {"a barrier that one thread skips",
     MATMUL,
     ON(PTX) | ON(PLAIN),
     {"dlc_block_sync();", "if (thread != 5) dlc_block_sync();", 1}},
    {"no barriers of a warp", RUNNING, ON(PTX) | ON(TSAN), {"dlc_warp_sync();", "", 0}},
    {"a row too many", MATMUL, ON(PTX) | ON(ASAN), {" < 70 ? ", " < 99 ? ", 0}},
    {"a tail too long", SOFTMAX, ON(PTX) | ON(ASAN), {"50 - 32", "51 - 32", 0}},
    {"a unit too many", SOFTMAX, ON(PTX) | ON(ASAN), {"number >= units", "number > units", 0}},
    {"warps that share scratch",
     SOFTMAX,
     ON(PTX) | ON(TSAN),
     {"dlc_shared + warp * 256", "dlc_shared + warp * 128", 0}},
    {"a wrong index", MATMUL, ON(PTX) | ON(PLAIN), {" * 72;", " * 71;", 0}},
    {"products of the wrong sign", MATMUL, ON(PTX) | ON(PLAIN), {"fmaf(", "fmaf(-", 0}},
    {"a result that no lane stores",
     SUM,
     ON(PTX) | ON(PLAIN),
     {"if (lane == 0) ", "if (lane == 32) ", 0}},
    {"a result that all lanes store", SUM, ON(PTX) | ON(TSAN), {"if (lane == 0) ", "", 0}},
    {"a sum that starts at 1", SUM, ON(PTX) | ON(PLAIN), {" = 0x0p+0f;", " = 0x1p+0f;", 0}},
    {"a shuffle off by a lane",
     SUM,
     ON(PTX) | ON(PLAIN),
     {"(lane + 16) & 31", "(lane + 15) & 31", 0}},
    {"a wrong stride in shared memory",
     MATMUL,
     ON(PTX) | ON(PLAIN),
     {" * 20;", " * 19;", 6}},
    {"the slice after the next",
     MATMUL,
     ON(PTX) | ON(PLAIN),
     {" + 16;", " + 32;", 4}},
    {"results a row too low",
     MATMUL,
     ON(PTX) | ON(PLAIN),
     {"((float *)b3)[", "((float *)b3)[72 + ", 0}},
    {"neighbours a place too far",
     PACKS,
     ON(PTX) | ON(PLAIN),
     {"(lane * 4 + 0)", "(lane * 4 + 1)", 2}},
    {"neighbours of another thread",
     PACKS,
     ON(PTX) | ON(PLAIN),
     {"(lane * 4 + 0)", "(lane * 3 + 0)", 0}},
    {"a fault that is not told",
     GATHER,
     ON(PTX) | ON(PLAIN),
     {") *fault = ", " && units < 0) *fault = ", 0}},
    {"no barrier before a tile is read",
     TRANSPOSE,
     ON(PTX) | ON(TSAN),
     {"dlc_block_sync();", "", 0}},
    {"a barrier of warps before a tile is read",
     TRANSPOSE,
     ON(PTX) | ON(TSAN),
     {"dlc_block_sync();", "dlc_warp_sync();", 0}},
    {"a tile whose rows are too far apart",
     TRANSPOSE,
     ON(PTX) | ON(ASAN),
     {" * 33;", " * 34;", 1}},
    {"a tile that is read by other rows",
     TRANSPOSE,
     ON(PTX) | ON(PLAIN),
     {" * 33;", " * 32;", 3}},
    {"a piece of a tile in another's place", TRANSPOSE, ON(PTX) | ON(PLAIN), {" + 264]", " + 8]", 0}},
    {"a tile's column too many", TRANSPOSE, ON(PTX) | ON(ASAN), {" < 50 ? ", " < 99 ? ", 0}},
    {"prelude: swapped operands of cvt",
     HALF,
     ON(PTX),
     {"cvt.rn.f16.f32 %0, %1;", "cvt.rn.f16.f32 %1, %0;", 0}},
    {"prelude: swapped operands of shfl",
     SUM,
     ON(PTX),
     {"%0, %1, %2, 0x1f", "%0, %2, %1, 0x1f", 0}},
    {"prelude: half a warp shuffles", SUM, ON(PTX), {"0x1f, 0xffffffff", "0x1f, 0x0000ffff", 0}},
    {"prelude: a barrier of no warp", RUNNING, ON(PTX), {"bar.warp.sync 0xffffffff;", "", 0}},
};

static dlc_arena *arena;
static small_graph owners[NKERNELS];
static trial *trials[NKERNELS];
static uint32_t ntrials[NKERNELS];

static void make(void)
{
    const char *problem;
    arena = dlc_arena_create(0);
    for (int k = 0; k < NKERNELS; k++) {
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
    tcase_add_loop_test(cases, test_unchanged, 0, NWAYS);
    tcase_add_loop_test(cases, test_mutant, 0, sizeof mutants / sizeof *mutants);
    tcase_set_timeout(cases, 120);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

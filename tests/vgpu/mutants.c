/*
 * Bugs planted into kernels, their prelude and their launches, and run through the runtime on the
 * virtual GPU: every one is seen, and the kernels as they are pass on PTX for three generations of
 * GPUs.
 */
#include "tests/vgpu/bench.h"

#include "tests/ptx/trial.h"
#include "tests/unit/suite.h"

typedef enum {
    MATMUL,
    SOFTMAX,
    SUM,
    RUNNING,
    WRITTEN,
    HALF,
    EXP,
    MAXIMUM,
    PACKS,
    LARGE,
    TRANSPOSE,
    BYTES,
    GATHER,
    MATRICES,
    BF16_MATRICES,
    GATES,
    ATTENTION,
    CONVOLUTION,
    BF16,
    REST,
    LATE,
    NSUBJECTS
} subject;

static const char *const graphs[NSUBJECTS] = {
    [MATMUL] =
        "in x 70,40; const w 40,72; const b 72; m = matmul x w; a = add m b; r = relu a; out r",
    [SOFTMAX] = "in x 6,50; m = reduce_max x axes=1 keepdims=1; d = sub x m; e = exp d; "
                "t = reduce_sum e axes=1 keepdims=1; s = div e t; out s",
    [SUM] = "in x 5,130; s = reduce_sum x axes=1 keepdims=0; out s",
    [RUNNING] =
        "in x 6,3,37; c = cumsum x axis=2; e = reduce_max c axes=2 keepdims=1; f = sub c e; out f",
    [WRITTEN] = "in x 3,37; c = cumsum x axis=1; out c",
    [HALF] = "in x:f16 3,45; in y:f16 45; a = mul x y; t = tanh a; out t",
    [EXP] = "in x 5,256; e = exp x; out e",
    [MAXIMUM] = "in x 9,100; a = abs x; n = neg a; m = reduce_max n axes=1 keepdims=0; out m",
    [PACKS] = "in x 5,256; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d",
    [LARGE] =
        "in x 1500,132; const b 132; in r 1500,132; a = add x b; l = relu a; s = add l r; out s",
    [TRANSPOSE] =
        "in x 2,33,50; const b 33; in r 2,50,33; t = transpose x perm=0,2,1; a = add t b; "
        "s = mul a r; out s",
    [BYTES] = "in x:u8 5,33; in y:u8 33; a = mul x y; m = max a y; out m",
    [MATRICES] = "in x:f16 70,40; const w:f16 40,72; m = matmul x w; out m",
    [BF16_MATRICES] = "in x:bf16 70,40; const w:bf16 40,72; m = matmul x w; out m",
    [GATHER] = "in x 4,7; in i:i64 9; g = gather x i axis=0; out g",
    [GATES] = "in h 1,96; in x 1,80; const w 96,80; p = matmul h w; a = add x p; "
              "i = slice a starts=0,0 steps=1,1 dims=1,40; s = sigmoid i; "
              "o = slice a starts=0,40 steps=1,1 dims=1,40; t = tanh o; y = mul s t; out y",
    [ATTENTION] = "in q 2,40,32; in k 2,32,40; in v 2,40,32; s = matmul q k; "
                  "m = reduce_max s axes=2 keepdims=1; d = sub s m; e = exp d; "
                  "l = reduce_sum e axes=2 keepdims=1; p = div e l; o = matmul p v; out o",
    [CONVOLUTION] = "in x 1,16,9,9; const w 24,16,3,3; c = conv x w pads=1,1,1,1; r = relu c; out r",
    [BF16] = "in x:bf16 3,45; in y:bf16 45; a = mul x y; out a",
    [REST] = "in x:i32 5,33; in y:i32 33; m = mod x y; d = div x y; s = add m d; out s",
    [LATE] = "in x 5,131; s = reduce_sum x axes=1 keepdims=0; out s",
};

/* Loads through shared memory that are asynchronous: each thread's word, between copying and reading. */
#define LATE_LOADS(between)                                                                                            \
    "struct late { float at; __device__ operator float() const { extern __shared__ float words[]; "                    \
    "float *to = words + threadIdx.x, v; asm volatile(\"{.reg .u64 s; cvta.to.shared.u64 s, %1; "                       \
    "cp.async.ca.shared.global [s], [%2], 4; " between                                                                 \
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
    {"no barrier before multiplying", MATMUL, {"dlc_block_sync();", "", 1, NULL, NULL, 0}},
    {"no barrier before the next slice", MATMUL, {"dlc_block_sync();", "", 2, NULL, NULL, 0}},
    {"a barrier that one thread skips",
     MATMUL,
     {"dlc_block_sync();", "if (thread != 5) dlc_block_sync();", 1, NULL, NULL, 0}},
    {"a barrier that one warp skips",
     MATMUL,
     {"dlc_block_sync();", "if (thread >= 32) dlc_block_sync();", 1, NULL, NULL, 0}},
    {"a barrier of the warp for one of the block",
     MATMUL,
     {"dlc_block_sync();", "dlc_warp_sync();", 1, NULL, NULL, 0}},
    {"another barrier than the others'",
     MATMUL,
     {"bar.sync 0;", "bar.sync 1, 128;", 0, NULL, NULL, 0}},
    {"a row too many", MATMUL, {" < 70 ? ", " < 99 ? ", 0, NULL, NULL, 0}},
    {"stale values in the last slice",
     MATMUL,
     {"                r9 = 0x0p+0f;\n                r10 = 0x0p+0f;\n                r11 = 0x0p+0f;\n"
      "                r12 = 0x0p+0f;\n",
      "", 0, NULL, NULL, 0}},
    {"a slice that is not masked", MATMUL, {" < 40 ? ", " < 99 ? ", 0, NULL, NULL, 0}},
    {"products of the wrong sign", MATMUL, {"fmaf(", "fmaf(-", 0, NULL, NULL, 0}},
    {"an accumulator that starts at 1",
     MATMUL,
     {"r5 = 0x0p+0f;", "r5 = 0x1p+0f;", 1, NULL, NULL, 0}},
    {"a bias of another column",
     MATMUL,
     {"((const float *)b2)[", "((const float *)b2)[1 + ", 0, NULL, NULL, 0}},
    {"a tail too long", SOFTMAX, {"50 - 32", "51 - 32", 0, NULL, NULL, 0}},
    {"a unit too many", SOFTMAX, {"number >= units", "number > units", 0, NULL, NULL, 0}},
    {"warps that share scratch",
     SOFTMAX,
     {"dlc_shared + warp * 256", "dlc_shared + warp * 128", 0, NULL, NULL, 0}},
    {"a sum that starts at 1", SUM, {" = 0x0p+0f;", " = 0x1p+0f;", 0, NULL, NULL, 0}},
    {"a result that no lane stores",
     SUM,
     {"if (lane == 0) ", "if (lane == 32) ", 0, NULL, NULL, 0}},
    {"a result that all lanes store", SUM, {"if (lane == 0) ", "", 0, NULL, NULL, 0}},
    {"a shuffle off by a lane", SUM, {"(lane + 16) & 31", "(lane + 15) & 31", 0, NULL, NULL, 0}},
    {"half a warp shuffles", SUM, {"0x1f, 0xffffffff", "0x1f, 0x0000ffff", 0, NULL, NULL, 0}},
    {"half a warp is named in turn",
     SUM,
     {"0x1f, 0xffffffff", "0x1f, 0xffff0000", 0, NULL, NULL, 0}},
    {"shuffles within half a warp",
     SUM,
     {"0x1f, 0xffffffff", "0x100f, 0xffffffff", 0, NULL, NULL, 0}},
    {"a shuffle under divergence",
     SUM,
     {"dlc_u32 result;", "dlc_u32 result = value; if ((threadIdx.x & 31) < 16)", 0, NULL, NULL, 0}},
    {"a shuffle that a lane skips",
     SUM,
     {"dlc_u32 result;", "dlc_u32 result = 0; if (threadIdx.x != 40)", 0, NULL, NULL, 0}},
    {"operands of shfl swapped", SUM, {"%0, %1, %2, 0x1f", "%0, %2, %1, 0x1f", 0, NULL, NULL, 0}},
    {"a barrier of no warp", RUNNING, {"bar.warp.sync 0xffffffff;", "", 0, NULL, NULL, 0}},
    {"a barrier of half the warp",
     RUNNING,
     {"bar.warp.sync 0xffffffff;", "bar.warp.sync 0x0000ffff;", 0, NULL, NULL, 0}},
    {"a barrier of a lane alone",
     RUNNING,
     {"asm volatile(\"bar.warp.sync 0xffffffff;\" ::: \"memory\");",
      "asm volatile(\"bar.warp.sync %0;\" :: \"r\"(1u << (threadIdx.x & 31)) : \"memory\");", 0,
      NULL, NULL, 0}},
    {"a non-coherent load of what the kernel wrote",
     WRITTEN,
     {"((const float *)b1)[", "((const cached *)b1)[", 0,
      "struct cached { float at; __device__ operator float() const { float v; "
      "asm volatile(\"ld.global.nc.f32 %0, [%1];\" : \"=f\"(v) : \"l\"(&at)); return v; } };\n",
      NULL, 0}},
    {"operands of cvt swapped",
     HALF,
     {"cvt.rn.f16.f32 %0, %1;", "cvt.rn.f16.f32 %1, %0;", 0, NULL, NULL, 0}},
    {"halves rounded to zero", HALF, {"cvt.rn.f16.f32", "cvt.rz.f16.f32", 0, NULL, NULL, 0}},
    {"exp clamped from above", EXP, {"0x1.64p+6f", "0x1.4p+5f", 0, NULL, NULL, 0}},
    {"exp clamped from below", EXP, {"(-0x1.ap+6f)", "(-0x1.4p+5f)", 0, NULL, NULL, 0}},
    {"exp of small numbers without its scale",
     EXP,
     {" * 0x1p-64f", " * 0x1p-63f", 0, NULL, NULL, 0}},
    {"a NaN lost in max", MAXIMUM, {" || r1 != r1", "", 0, NULL, NULL, 0}},
    {"a maximum that starts at 0",
     MAXIMUM,
     {"dlc_bits_f32(0xff800000u)", "0x0p+0f", 0, NULL, NULL, 0}},
    {"a maximum of magnitudes", MAXIMUM, {"r1 > ", "r1 > -", 0, NULL, NULL, 0}},
    {"neighbours a place too far", PACKS, {"(lane * 4 + 0)", "(lane * 4 + 1)", 2, NULL, NULL, 0}},
    {"neighbours of another thread", PACKS, {"(lane * 4 + 0)", "(lane * 3 + 0)", 0, NULL, NULL, 0}},
    {"indices of 16 bits", LARGE, {"const int v", "const short v", 0, NULL, NULL, 0}},
    {"units of 8 bits",
     LARGE,
     {"const int unit = (int)", "const int unit = (signed char)", 0, NULL, NULL, 0}},
    {"no barrier before a tile is read", TRANSPOSE, {"dlc_block_sync();", "", 0, NULL, NULL, 0}},
    {"a tile whose rows are too far apart",
     TRANSPOSE,
     {" * 33;", " * 34;", 1, NULL, NULL, 0}},
    {"a tile's column too many", TRANSPOSE, {" < 50 ? ", " < 99 ? ", 0, NULL, NULL, 0}},
    {"bytes that are kept in 4 bits", BYTES, {"(dlc_u8)(", "(dlc_u8)(15 & ", 0, NULL, NULL, 0}},
    {"a fault that is not told",
     GATHER,
     {") *fault = ", " && units < 0) *fault = ", 0, NULL, NULL, 0}},
    {"a fault told to another", GATHER, {") *fault = ", ") fault[100000] = ", 0, NULL, NULL, 0}},
    {"an index that is not checked",
     GATHER,
     {") *fault = ", ") ((float *)b2)[1 << 20] = ", 0, NULL, NULL, 0}},
    {"no barrier before matrices are loaded", MATRICES, {"dlc_block_sync();", "", 1, NULL, NULL, 0}},
    {"no barrier before matrices are overwritten", MATRICES, {"dlc_block_sync();", "", 2, NULL, NULL, 0}},
    {"matrices that are not turned over", MATRICES, {"dlc_turn_matrices(&", "dlc_get_matrices(&", 0, NULL, NULL, 0}},
    {"matrices that are turned over", MATRICES, {"dlc_get_matrices(&", "dlc_turn_matrices(&", 0, NULL, NULL, 0}},
    {"matrices that half a warp loads", MATRICES, {"dlc_matrices m;", "dlc_matrices m; if ((threadIdx.x & 31) < 16)", 0, NULL, NULL, 0}},
    {"products that all lanes but one make",
     MATRICES,
     {"asm volatile(\"mma.sync", "if (threadIdx.x != 5) asm volatile(\"mma.sync", 0, NULL, NULL, 0}},
    {"factors of a product the wrong way round", MATRICES, {"{%8, %9}", "{%9, %8}", 0, NULL, NULL, 0}},
    {"rows of a factor the wrong way round", MATRICES, {"{%4, %5, %6, %7}", "{%5, %4, %6, %7}", 0, NULL, NULL, 0}},
    {"sums of a product the wrong way round",
     MATRICES,
     {"\"{%0, %1, %2, %3}", "\"{%2, %1, %0, %3}", 0, NULL, NULL, 0}},
    {"halves taken for another format", MATRICES, {"f32.\" #type \".\" #type \".f32", "f32.bf16.bf16.f32", 0, NULL, NULL, 0}},
    {"factors of another format", BF16_MATRICES, {"f32.\" #type \".\" #type \".f32", "f32.f16.f16.f32", 0, NULL, NULL, 0}},
    {"a product that the GPU does not have", MATRICES, {"m16n8k16", "m16n8k32", 0, NULL, NULL, 0}},
    {"a matrix's columns in another's place", MATRICES, {".v[2], m", ".v[1], m", 0, NULL, NULL, 0}},
    {"a gate that is read before it is stored", GATES, {"dlc_warp_sync();", "", 0, NULL, NULL, 0}},
    {"the other gate's sum", GATES, {"[0 + 1]", "[0 + 0]", 0, NULL, NULL, 0}},
    {"gates in another warp's scratch",
     GATES,
     {"dlc_shared + warp * 64", "dlc_shared + warp * 4", 0, NULL, NULL, 0}},
    {"a tail of K that is too long", GATES, {"96 - 64", "98 - 64", 0, NULL, NULL, 0}},
    {"lanes behind the tail of K that add 1", GATES, {" : 0x0p+0f;", " : 0x1p+0f;", 0, NULL, NULL, 0}},
    {"weights of the gate before", GATES, {" * 3840;", " * 0;", 0, NULL, NULL, 0}},
    {"tanh without its sign", GATES, {"(-2147483647 - 1)", "0", 0, NULL, NULL, 0}},
    {"a sigmoid that ends early", GATES, {"0x1.64p+6f", "0x1.4p+0f", 0, NULL, NULL, 0}},
    {"a step of a sum by lanes that adds its own", GATES, {"(lane + 4) & 31", "lane", 0, NULL, NULL, 0}},
    {"no barrier before scores are multiplied", ATTENTION, {"dlc_block_sync();", "", 1, NULL, NULL, 0}},
    {"no barrier before slices are overwritten", ATTENTION, {"dlc_block_sync();", "", 2, NULL, NULL, 0}},
    {"no barrier before scores are summed", ATTENTION, {"dlc_block_sync();", "", 3, NULL, NULL, 0}},
    {"a barrier of scores that a warp skips",
     ATTENTION,
     {"dlc_block_sync();", "if (warp != 7) dlc_block_sync();", 3, NULL, NULL, 0}},
    {"slices whose rows share words", ATTENTION, {" * 68;", " * 60;", 1, NULL, NULL, 0}},
    {"scores of 3 bytes less", ATTENTION, {"(scratch + 0)", "(scratch + 1)", 1, NULL, NULL, 0}},
    {"a border that is not tested", CONVOLUTION, {"? ((const float *)b0)[", "|| 1 ? ((const float *)b0)[", 1, NULL, NULL, 0}},
    {"a window's next slice one row lower", CONVOLUTION, {" + -10]", " + -1]", 2, NULL, NULL, 0}},
    {"rows of a window taken for columns",
     CONVOLUTION,
     {"_i32(thread, 16)", "_i32(thread, 32)", 1, NULL, NULL, 0}},
    {"a NaN that bf16 makes a number", BF16, {"if (value != value)", "if (0)", 0, NULL, NULL, 0}},
    {"bf16 that is cut off", BF16, {"(bits + 0x7fffu + ((bits >> 16) & 1u))", "(bits)", 0, NULL, NULL, 0}},
    {"ties of bf16 that go up", BF16, {"0x7fffu + ((bits >> 16) & 1u)", "0x8000u", 0, NULL, NULL, 0}},
    {"a rest of 0 that is divided by",
     REST,
     {"return b == 0 ? (type)0 : lowest != 0", "return lowest != 0", 0, NULL, NULL, 0}},
    {"rows of matrices of half the warp", MATRICES, {"dlc_mod_i32(thread, 16)", "dlc_mod_i32(thread, 8)", 0, NULL, NULL, 0}},
    {"rows of matrices that are not aligned", MATRICES, {" * 40;", " * 36;", 1, NULL, NULL, 0}},
    {"half a slice that is multiplied", MATRICES, {" < 32; i", " < 16; i", 0, NULL, NULL, 0}},
    {"a slice that is multiplied twice", MATRICES, {" += 16) {", " += 8) {", 0, NULL, NULL, 0}},
    {"sums in another thread's columns", MATRICES, {"dlc_mod_i32(thread, 4)", "dlc_mod_i32(thread, 2)", 0, NULL, NULL, 0}},
    {"sums in rows too high", MATRICES, {"dlc_floordiv_i32(thread, 4)", "dlc_floordiv_i32(thread, 8)", 0, NULL, NULL, 0}},
    {"products of a slice in 16 bits", MATRICES, {"m16n8k16.row.col.f32", "m16n8k8.row.col.f32", 0, NULL, NULL, 0}},
    {"an asynchronous copy that nobody waits for",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0, LATE_LOADS("cp.async.commit_group;"), a_word_for_each_thread, 0}},
    {"a wait for the group before",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("cp.async.commit_group; cp.async.wait_group 1;"), a_word_for_each_thread, 0}},
    {"a wait for groups before this is one",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("cp.async.wait_group 0; cp.async.commit_group;"), a_word_for_each_thread, 0}},
    {"asynchronous copies behind shared memory",
     LATE,
     {"((const float *)b0)[", "((const late *)b0)[", 0,
      LATE_LOADS("cp.async.commit_group; cp.async.wait_group 0;"), words_for_half_the_threads, 0}},
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
                                 LATE_LOADS("cp.async.commit_group; cp.async.wait_group 0;"), a_word_for_each_thread, 0};
    const char *problem = bench_run(graphs[LATE], 80, &change, arena);
    ck_assert_msg(!problem, "%s", problem);
    dlc_arena_destroy(arena);
}
END_TEST

static int needs_sm_80(subject kernel)
{
    return kernel == MATRICES || kernel == BF16_MATRICES || kernel == LATE;
}

START_TEST(test_mutant)
{
    dlc_arena *arena = dlc_arena_create(0);
    int arch = needs_sm_80(mutants[_i].kernel) ? 80 : 75;
    const char *problem = bench_run(graphs[mutants[_i].kernel], arch, &mutants[_i].change, arena);
    ck_assert_msg(problem, "%s: not seen", mutants[_i].bug);
    ck_assert_msg(!strstr(problem, "is not in the text") && !strstr(problem, "NVRTC:"), "%s: %s",
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

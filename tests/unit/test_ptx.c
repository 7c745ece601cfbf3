/* Small graphs as the GPU's instructions: compiled by NVRTC to PTX, which the virtual GPU's
 * core runs and checks. */
#include "tests/ptx/trial.h"
#include "tests/unit/small_graph.h"

#include "tests/unit/suite.h"
#include "vgpu/machine.h"

static const struct {
    const char *what, *text;
} graphs[] = {
    {"softmax", "in x 6,50; m = reduce_max x axes=1 keepdims=1; d = sub x m; e = exp d; t = "
                "reduce_sum e axes=1 keepdims=1;"
                "s = div e t; out s"},
    {"layer norm", "in x 5,96; const g 96; const b 96; const e scalar 1e-5; m = reduce_mean x "
                   "axes=1 keepdims=1; d = sub x m;"
                   "q = mul d d; v = reduce_mean q axes=1 keepdims=1; a = add v e; r = sqrt a; n = "
                   "div d r; o = mul n g;"
                   "y = add o b; out y"},
    {"matmul and epilogue",
     "in x 70,40; const w 40,72; const b 72; m = matmul x w; a = add m b; r = relu a; out r"},
    {"batched matmul", "in x 3,33,20; in y 3,20,40; m = matmul x y; out m"},
    {"convolution",
     "in x 1,8,12,12; const w 24,8,3,3; c = conv x w pads=1,1,1,1; r = relu c; out r"},
    {"channels last",
     "in x 1,8,10,10 nhwc; const w 16,8,3,3; c = conv x w strides=2,2 nhwc; out c"},
    {"max pooling", "in x 2,3,9,9; p = max_pool x kernel=3,3 strides=2,2; out p"},
    {"average pooling", "in x 1,4,8,8; p = avg_pool x kernel=2,2 strides=2,2; out p"},
    {"gather", "in x 20,7; in i:i64 9; g = gather x i axis=0; out g"},
    {"gather outside", "in x 4,7; in i:i64 9; g = gather x i axis=0; out g"},
    {"running sum", "in x 3,37; c = cumsum x axis=1; out c"},
    {"argmax", "in x 9,41; a = argmax x axis=1; out a"},
    {"half precision", "in x:f16 3,45; in y:f16 45; a = mul x y; t = tanh a; out t"},
    {"bf16", "in x:bf16 3,45; in y:bf16 45; a = add x y; e = exp a; out e"},
    {"doubles", "in x:f64 3,45; in y:f64 45; a = div x y; s = sqrt a; out s"},
    {"integers", "in x:i32 5,33; in y:i32 33; d = div x y; m = mod x y; a = add d m; out a"},
    {"integers that wrap",
     "in x:i32 5,33; const c:i32 scalar 268435456; const z:i32 scalar 0; m = mul x c; a = abs m; "
     "l = lt a z; n = neg m; k = lt n z; s = add m m; d = add s x; w = cast d dtype=5; "
     "out l k w"},
    {"words that wrap", "in x:u16 5,33; const c:u16 scalar 60001; m = mul x c; s = mul m m; "
                        "w = cast s dtype=5; out s w"},
    {"long integers that wrap",
     "in x:i64 5,33; const c:i64 scalar 1152921504606846976; const z:i64 scalar 0; m = mul x c; "
     "a = abs m; l = lt a z; s = add m c; k = lt s m; out l k"},
    {"bytes", "in x:u8 5,33; in y:u8 33; a = mul x y; m = max a y; out m"},
    {"elementary functions", "in x 4,65; e = erf x; s = sin e; l = sigmoid s; out l"},
    {"transpose of small sides", "in x 15,35; t = transpose x perm=1,0; r = relu t; out r"},
    {"transpose", "in x 17,35; t = transpose x perm=1,0; r = relu t; out r"},
    {"transpose of whole tiles", "in x 64,96; t = transpose x perm=1,0; out t"},
    {"transpose just over a tile", "in x 33,65; t = transpose x perm=1,0; out t"},
    {"transposes in a batch", "in x 3,33,20; t = transpose x perm=0,2,1; out t"},
    {"transpose around an axis", "in x 16,3,40; t = transpose x perm=2,1,0; out t"},
    {"transpose of a middle axis",
     "in x 2,17,3,18; t = transpose x perm=0,3,2,1; e = exp t; out e"},
    {"transpose of unknown sides", "in x n,40; t = transpose x perm=1,0; r = relu t; out r"},
    {"transpose in an unknown batch",
     "in x n,20,18; in r n,18,20; t = transpose x perm=0,2,1; a = add t r; out a"},
    {"transpose with bias and residual",
     "in x 40,33; const b 40; in r 33,40; t = transpose x perm=1,0; a = add t b; s = add a r; "
     "o = tanh s; out o"},
    {"transpose of a sum", "in x 40,33; in y 40,33; in z 33; a = add x y; b = mul a z; "
                           "t = transpose b perm=1,0; out t"},
    {"transpose of a padded image",
     "in x 2,18,3,17; p = pad x pads=0,0,2,1,0,0,1,2; t = transpose p perm=0,2,3,1; out t"},
    {"transpose of padded rows",
     "in x 20,37; p = pad x pads=1,3,2,4; t = transpose p perm=1,0; out t"},
    {"transpose of a slice",
     "in x 40,50; s = slice x starts=3,5 steps=1,1 dims=34,41; t = transpose s perm=1,0; out t"},
    {"transpose of half precision",
     "in x:f16 33,45; in y:f16 33; t = transpose x perm=1,0; a = mul t y; out a"},
    {"transpose of bf16", "in x:bf16 18,45; t = transpose x perm=1,0; out t"},
    {"transpose of doubles", "in x:f64 33,34; t = transpose x perm=1,0; out t"},
    {"transpose of long integers", "in x:i64 33,34; t = transpose x perm=1,0; out t"},
    {"transpose of bytes", "in x:u8 33,34; t = transpose x perm=1,0; out t"},
    {"transpose of words", "in x:i16 33,34; t = transpose x perm=1,0; n = neg t; out n"},
    {"transpose of truth values", "in x:bool 33,34; t = transpose x perm=1,0; n = not t; out n"},
    {"transpose of conditions",
     "in x 33,34; in y 34; in z 34,33; c = lt x y; t = transpose c perm=1,0; n = neg z; "
     "w = where t z n; out w"},
    {"transpose of gathered rows",
     "in x 50,40; in i:i64 33; g = gather x i axis=0; t = transpose g perm=1,0; out t"},
    {"transpose of rows gathered outside",
     "in x 4,40; in i:i64 33; g = gather x i axis=0; t = transpose g perm=1,0; out t"},
    {"sum", "in x 3,130,5; s = reduce_sum x axes=1 keepdims=0; out s"},
    {"packs: softmax", "in x 6,384; m = reduce_max x axes=1 keepdims=1; d = sub x m; e = exp d; "
                       "t = reduce_sum e axes=1 keepdims=1; s = div e t; out s"},
    {"packs: a tail", "in x 5,388; const g 388; m = reduce_mean x axes=1 keepdims=1; d = sub x m; "
                      "y = mul d g; out y"},
    {"packs: argmax", "in x 9,256; a = argmax x axis=1; out a"},
    {"packs: halves", "in x:f16 3,260; m = reduce_max x axes=1 keepdims=1; d = sub x m; e = exp d; "
                      "out e"},
    {"packs: bytes", "in x:u8 3,256; in y:u8 256; a = add x y; m = reduce_max a axes=1 "
                     "keepdims=1; d = sub m a; out d"},
    {"packs: doubles", "in x:f64 3,130; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d"},
    {"packs: long integers",
     "in x:i64 3,128; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d"},
    {"packs: running sum of rows",
     "in x 3,256; m = reduce_max x axes=1 keepdims=1; d = sub x m; c = cumsum d axis=1; out c"},
    {"packs: a map", "in x 1024,132; const b 132; in r 1024,132; a = add x b; l = relu a; s = add "
                     "l r; out s"},
    {"packs: a window",
     "in x 1,128,34,34 nhwc; p = max_pool x kernel=3,3 pads=1,1,1,1 nhwc; out p"},
    {"symbols", "in x n,48; in y 48; a = add x y; e = exp a; t = reduce_sum e axes=1 keepdims=1; s "
                "= div e t; out s"},
};
enum { NGRAPHS = sizeof graphs / sizeof *graphs };

static void try_graph(const char *text, dlc_arena *arena)
{
    small_graph s = small_begin(text);
    dlc_module *module = run_strategy(&s, "greedy", "sm_75");
    const char *problem;
    trial *trials;
    uint32_t n =
        trial_walk(module, small_symbols(&s), small_values(&s, module, small_memory(&s)), s.arena, &trials, &problem);
    ck_assert_msg(!problem, "%s", problem);
    ck_assert_uint_gt(n, 0);
    for (int way = WAY_PTX; way <= WAY_PTX_BACKWARDS; way++) {
        problem = trial_run(trials, n, (trial_way)way, NULL, arena);
        ck_assert_msg(!problem, "%s: %s", trial_ways[way], problem);
    }
    small_end(&s);
}

START_TEST(test_graph)
{
    dlc_arena *arena = dlc_arena_create(0);
    try_graph(graphs[_i].text, arena);
    dlc_arena_destroy(arena);
}
END_TEST

/* --- what the interpreter must refuse; no NVRTC is needed --- */

#define ENTRY(body) ENTRY_FOR("75", body)
#define ENTRY_FOR(arch, body)                                                                      \
    ".version 9.0\n.target sm_" arch "\n.address_size 64\n.extern .shared .align 16 .b8 sh[];\n" \
    ".visible .entry k(.param .u64 k_0, .param .u64 k_1, .param .u64 k_2, .param .u64 k_3)\n{\n"   \
    ".reg .pred %p<4>;\n.reg .f32 %f<8>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"                   \
    "ld.param.u64 %rd1, [k_0];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, "                     \
    "%tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"                                                        \
    "add.s64 %rd3, %rd1, %rd2;\nmov.u32 %r2, sh;\nshl.b32 %r3, %r1, 2;\nadd.s32 %r4, %r2, "        \
    "%r3;\n" body "\n}\n"

/* A matrix whose lane l holds the word l: threads stored their numbers. Then whatever is not as it should be divides by zero. */
#define MATRIX                                                                                     \
    "st.shared.u32 [%r4], %r1;\nbar.sync 0;\nand.b32 %r5, %r1, 7;\nshl.b32 %r5, %r5, 4;\n"         \
    "add.s32 %r5, %r2, %r5;\nand.b32 %r7, %r1, 31;\n"
#define MUST_HOLD "@%p1 div.u32 %r5, %r1, 0;\nret;"
#define ONES                                                                                       \
    "mov.b32 %r5, 0x3c003c00;\nmov.b32 %r6, 0x01010101;\nmov.f32 %f5, 0f3f800000;\nmov.u32 %r7, 1;\n"

static const struct {
    const char *text, *message; /* NULL: all is well */
} refusals[] = {
    {ENTRY(MATRIX "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];\nsetp.ne.u32 %p1, %r6, %r7;\n" MUST_HOLD), NULL},
    {ENTRY(MATRIX "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r6}, [%r5];\nsetp.ne.u32 %p1, %r6, %r7;\n" MUST_HOLD),
     "division by zero"},
    {ENTRY(MATRIX "add.s32 %r5, %r5, 2;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];\nret;"), "aligned"},
    {ENTRY(MATRIX "setp.lt.u32 %p1, %r1, 9;\n@%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];\nret;"), "whole warp"},
    {ENTRY("st.shared.u32 [%r4], %r1;\nand.b32 %r5, %r1, 7;\nshl.b32 %r5, %r5, 4;\nadd.s32 %r5, %r2, %r5;\n"
           "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];\nret;"),
     "a race"},
    {ENTRY("st.global.u32 [%rd3], %r1;\nldmatrix.sync.aligned.m8n8.x1.b16 {%r6}, [%rd1];\nret;"), "a race"},
    {ENTRY_FOR("80", ONES "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5}, {%r5, %r5}, "
                          "{%f5, %f5, %f5, %f5};\nsetp.neu.f32 %p1, %f4, 0f41880000;\n" MUST_HOLD),
     NULL},
    {ENTRY_FOR("80", ONES "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%r1, %r2, %r3, %r4}, {%r6, %r6, %r6, %r6}, {%r6, %r6}, "
                          "{%r7, %r7, %r7, %r7};\nsetp.ne.u32 %p1, %r4, 33;\n" MUST_HOLD),
     NULL},
    {ENTRY_FOR("80", ONES "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%f5, %f5, %f5, %f5}, {%f5, %f5}, "
                          "{%f5, %f5, %f5, %f5};\nsetp.neu.f32 %p1, %f4, 0f41100000;\n" MUST_HOLD),
     NULL},
    {ENTRY_FOR("80", ONES "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5}, {%r5, %r5}, "
                          "{%f5, %f5, %f5, %f5};\nret;"),
     "not known"},
    {ENTRY_FOR("80", ONES "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r5, %r5}, {%r5, %r5}, "
                          "{%f5, %f5, %f5, %f5};\nret;"),
     "too few or too many registers"},
    {ENTRY_FOR("80", ONES "setp.lt.u32 %p1, %r1, 9;\n@%p1 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, "
                          "{%r5, %r5, %r5, %r5}, {%r5, %r5}, {%f5, %f5, %f5, %f5};\nret;"),
     "whole warp"},
    {ENTRY(ONES "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5}, {%r5, %r5}, "
                "{%f5, %f5, %f5, %f5};\nret;"),
     "needs sm_80"},
    {ENTRY("st.global.u32 [%rd3], %r1;\nret;"), NULL},
    {ENTRY("st.global.u32 [%rd3+4], %r1;\nret;"), "writes out of bounds"},
    {ENTRY("ld.global.u32 %r5, [%rd3];\nst.global.u32 [%rd3], %r5;\nret;"), "nobody has written"},
    {ENTRY("st.global.u32 [%rd1], %r1;\nret;"), "a race"},
    {ENTRY("add.s64 %rd3, %rd3, 2;\nst.global.u32 [%rd3], %r1;\nret;"), "aligned"},
    {ENTRY("st.shared.u32 [%r4], %r1;\nxor.b32 %r5, %r4, 4;\nld.shared.u32 %r6, "
           "[%r5];\nst.global.u32 [%rd3], %r6;\nret;"),
     "a race"},
    {ENTRY("st.shared.u32 [%r4], %r1;\nbar.warp.sync -1;\nxor.b32 %r5, %r4, 4;\nld.shared.u32 %r6, "
           "[%r5];\n"
           "st.global.u32 [%rd3], %r6;\nret;"),
     NULL},
    {ENTRY("st.shared.u32 [%r4], %r1;\nbar.warp.sync -1;\nxor.b32 %r5, %r4, 128;\nld.shared.u32 "
           "%r6, [%r5];\n"
           "st.global.u32 [%rd3], %r6;\nret;"),
     "nobody has written"},
    {ENTRY("st.shared.u32 [%r4], %r1;\nbar.sync 0;\nxor.b32 %r5, %r4, 128;\nld.shared.u32 %r6, "
           "[%r5];\n"
           "st.global.u32 [%rd3], %r6;\nret;"),
     NULL},
    {ENTRY("setp.lt.u32 %p1, %r1, 3;\n@%p1 bra L;\nbar.sync 0;\nL:\nret;"), "diverge"},
    {ENTRY("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra L;\nbar.sync 0;\nL:\nret;"), "diverge"},
    {ENTRY("setp.lt.u32 %p1, %r1, 3;\n@%p1 shfl.sync.idx.b32 %r5, %r1, 0, 0x1f, 0xffffffff;\nret;"),
     "diverge"},
    {ENTRY("div.u32 %r5, %r1, 0;\nret;"), "division by zero"},
    {ENTRY("ex2.approx.f32 %f1, %f2;\nret;"), "unknown instruction ex2"},
    {ENTRY("add.f32 %f1, %f2, %f3;\nret;"), "contracted"},
    {ENTRY("add.rn.ftz.f32 %f1, %f2, %f3;\nret;"), "unknown .ftz"},
    {ENTRY("bra NOWHERE;\nret;"), "no label"},
    {ENTRY("mov.u32 %r99, 1;\nret;"), "not understood"},
};

/* One block of 64 threads on a buffer that nobody has written: parameters are it, and three
 * numbers. */
static dlc_status run_text(const char *text, dlc_arena *arena, dlc_diag *diag)
{
    uint32_t data[64];
    uint8_t written[sizeof data] = {0};
    vgpu_memory memory = {0};
    vgpu_region region = {.base = UINT64_C(2) << 40,
                          .size_bytes = sizeof data,
                          .bytes = (uint8_t *)data,
                          .written = written,
                          .is_writable = 1};
    uint64_t parameters[] = {region.base, 0, 0, 1};
    vgpu_launch launch = {.grid = {1, 1, 1},
                          .block = {64, 1, 1},
                          .shared_bytes = 256,
                          .parameters = (const uint8_t *)parameters,
                          .memory = &memory,
                          .limit = 10000};
    ptx_module *module;
    DLC_TRY(ptx_parse(text, arena, diag, &module));
    vgpu_memory_add(&memory, &region);
    dlc_status status =
        vgpu_run(vgpu_decode(module, &module->functions.data[0], arena), &launch, diag);
    vgpu_memory_deinit(&memory);
    return status;
}

START_TEST(test_refusal)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_status status = run_text(refusals[_i].text, arena, &diag);
    if (!refusals[_i].message)
        ck_assert_msg(status == DLC_OK, "%s", status == DLC_OK ? "" : diag.messages[0].text);
    else
        ck_assert_msg(status != DLC_OK && strstr(diag.messages[0].text, refusals[_i].message), "%s",
                      status == DLC_OK ? "accepted" : diag.messages[0].text);
    dlc_arena_destroy(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx");
    TCase *interpreter = tcase_create("interpreter"), *kernels = tcase_create("kernels");
    dlc_arena *arena = dlc_arena_create(0);
    const char *reason = trial_unavailable(WAY_PTX, arena);
    tcase_add_loop_test(interpreter, test_refusal, 0, sizeof refusals / sizeof *refusals);
    tcase_set_timeout(kernels, 60);
    suite_add_tcase(suite, interpreter);
    if (reason)
        printf("skipped: kernels as PTX: %s\n", reason);
    else
        tcase_add_loop_test(kernels, test_graph, 0, NGRAPHS);
    suite_add_tcase(suite, kernels);
    int failed = suite_run(suite);
    dlc_arena_destroy(arena);
    return failed;
}

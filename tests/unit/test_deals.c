/*
 * Schedules for blocks of CUDA threads: trees by hand that print as they read and give the right numbers in the emulation, and what
 * is refused, sentence by sentence of ir/schedule/verify_deal.c.
 */
#include "tests/unit/schedule_cases.h"
#include "tests/unit/suite.h"

#define TARGET "sm_75"
#define MATMUL \
    "kernel @mm(x: f32[m,24], w: f32[24,40], b: f32[40]) -> (y: f32[m,40]) {\n  axis i=m, j=40, k=24\n" \
    "  a[i,j] = sum(k) x[i, k] * w[k, j]\n  y[i,j] = max(0.0, b[j] + a)\n}\n"
#define COPIES "  copy xs = a.x [k, i+4]\n  copy ws = a.w [k, j+4]\n"
#define SLICES \
    "      thread i, k {\n        xs in scratch\n      }\n      thread k, j {\n        ws in scratch\n      }\n"
#define SLICES_AHEAD \
    "      thread i, k {\n        xs in scratch ahead 1 via reg\n      }\n" \
    "      thread k, j {\n        ws in scratch ahead 1 via reg\n      }\n"
#define ROWS \
    "kernel @rows(x: f32[16,64], w: f32[32,64]) -> (y: f32[16,32]) {\n  axis i=16, j=32, k=64\n" \
    "  a[i,j] = sum(k) x[i, k] * w[j, k]\n  y[i,j] = max(0.0, a)\n}\n"
#define SOFTMAX \
    "kernel @softmax(x: f32[m,50]) -> (y: f32[m,50]) {\n  axis i=m, j=50\n" \
    "  h[i] = max(j) x[i, j]\n  e[i,j] = exp(x[i, j] - h)\n  l[i] = sum(j) e\n  y[i,j] = e / l\n}\n"
#define OVERWRITTEN \
    "kernel @overwritten(x: f32[m,50]) -> (y: f32[m,50]) {\n  axis i=m, j=50\n" \
    "  t[i,j] = x[i, j] * 2.0\n  h[i] = max(j) t\n  e[i,j] = exp(t - h)\n  l[i] = sum(j) e\n  y[i,j] = e / l\n}\n"
#define OVERWRITING \
    "  par i:10 {\n    thread i, j {\n      t in scratch\n    }\n    warp i, lane j:32 x 4 {\n      h in scratch\n    }\n" \
    "    thread j, i {\n      e in scratch\n    }\n    warp i {\n      lane j:32 x 4 {\n        l in reg\n      }\n" \
    "      lane j:32 {\n        y\n      }\n    }\n  }\n"
#define MAP "kernel @map(x: f32[12,20]) -> (y: f32[12,20]) {\n  axis i=12, j=20\n  y[i,j] = x[i, j] + 1.0\n}\n"
#define CHAIN \
    "kernel @chain(x: f32[12,20]) -> (y: f32[12,20]) {\n  axis i=12, j=20\n" \
    "  t[i,j] = x[i, j] + 1.0\n  y[i,j] = t[i, j] + t[i, j - 1 else 0]\n}\n"
#define SUM "kernel @sum(x: f32[12,20]) -> (y: f32[12]) {\n  axis i=12, j=20\n  y[i] = sum(j) x[i, j]\n}\n"

static const struct {
    const char *kernel;
    int threads;
    const char *tree;
} right[] = {
    {MATMUL, 64, COPIES "  par i:16, j:16 {\n    for k:16 {\n" SLICES_AHEAD "      thread i:2, j:2 {\n"
     "        a = dot fma i x j over [k] in reg\n      }\n    }\n    thread i:2, j:2 {\n      as a {\n        y\n      }\n    }\n  }\n"},
    {MATMUL, 32, COPIES "  par i:8, j:16 {\n    for k:8 {\n" SLICES "      thread i, j:4 {\n" /* one after the other */
     "        a = dot fma i x j over [k] in reg\n      }\n    }\n    thread i, j:4 {\n      as a {\n        y\n      }\n    }\n  }\n"},
    {MATMUL, 64, COPIES "  par i:16, j:8 {\n    for k:16 {\n" SLICES_AHEAD "      thread j, i:2 {\n" /* rows are columns */
     "        a = dot fma j x i over [k] in reg\n      }\n    }\n    thread j, i:2 {\n      as a {\n        y\n      }\n    }\n  }\n"},
    {MATMUL, 64, "  copy ws = a.w [k, j+4]\n  par i:16, j:16 {\n    thread k, j:4, lane j:4 {\n      ws in scratch\n    }\n"
     "    thread i:2, j:2 {\n      a = dot fma i x j over [k] in reg\n      as a {\n        y\n      }\n    }\n  }\n"},
    {MATMUL, 64, "  copy xs = a.x [k, i+4]\n  copy ws = a.w [k, j/8, j%8+4]\n  par i:16, j:32 {\n    for k:16 {\n" SLICES_AHEAD /* pads in rows */
     "      thread i:2, j:4 {\n        a = dot fma i x j over [k] in reg\n      }\n    }\n    thread i:2, j:4 {\n      as a {\n        y\n"
     "      }\n    }\n  }\n"},
    {ROWS, 64, COPIES "  par i:16, j:16 {\n    for k:16 {\n" /* whole deals of packs along k */
     "      thread i, k:4, lane k:4 {\n        xs in scratch ahead 1 via reg\n      }\n"
     "      thread j, k:4, lane k:4 {\n        ws in scratch ahead 1 via reg\n      }\n      thread i, j:4 {\n"
     "        a = dot fma i x j over [k] in reg\n      }\n    }\n    thread i, j:4 {\n      as a {\n        y\n      }\n    }\n  }\n"},
    {MATMUL, 128, COPIES "  par i:16 {\n    for j:16, k:16 {\n" SLICES_AHEAD "      thread i:2, j:2 {\n" /* kept in scratch */
     "        a = dot fma i x j over [k] in scratch\n      }\n    }\n    warp i, lane j:32 {\n      y\n    }\n  }\n"},
    {SOFTMAX, 128, "  par i:10, warp i {\n    lane j:32 x 4 {\n      h in reg\n    }\n    lane j:32 {\n      e in scratch\n    }\n"
     "    lane j:32 x 4 {\n      l in reg\n    }\n    lane j:32 {\n      y\n    }\n  }\n"},
    {SOFTMAX, 64, "  par i:10 {\n    warp i, lane j:32 x 4 {\n      h in scratch\n    }\n    thread i, j {\n      e in scratch\n    }\n"
     "    thread i, for j {\n      l in scratch\n    }\n    thread i, j {\n      y\n    }\n  }\n"},
    {OVERWRITTEN, 64, OVERWRITING},
    {MAP, 32, "  thread i, j:4, lane j:4 {\n    y\n  }\n"},
    {MAP, 32, "  copy xs = y.x [j, i+1]\n  par i:8, j:8 {\n    thread j, i {\n      xs in scratch\n    }\n    thread i, j {\n      y\n    }\n  }\n"},
    {CHAIN, 32, "  par i {\n    thread j {\n      t in scratch\n    }\n    thread j {\n      y\n    }\n  }\n"},
    {CHAIN, 32, "  for i {\n    thread j {\n      t in scratch\n    }\n    thread j {\n      y\n    }\n  }\n"},
};

static const struct {
    const char *kernel;
    int threads;
    const char *tree, *sentence;
} wrong[] = {
    {MAP, 0, "  thread i, j {\n    y\n  }\n", "thread i: the schedule does not say of how many threads a block is"},
    {MAP, 48, "  thread i, j {\n    y\n  }\n", "48 threads are not whole warps, at most 1024 threads"},
    {MAP, 32, "  par i, j {\n    y\n  }\n", "y is computed by every thread: no loop deals it"},
    {MAP, 32, "  unroll i {\n    thread j {\n      y\n    }\n  }\n", "thread j lies inside unroll i, where not all threads are"},
    {MAP, 32, "  warp i {\n    thread j {\n      y\n    }\n  }\n", "thread j lies inside warp i: what is dealt is not dealt again"},
    {MAP, 32, "  thread i:4, i, j {\n    y\n  }\n", "thread i is dealt twice"},
    {MAP, 32, "  thread i, j:4, for j, lane j:4 {\n    y\n  }\n", "lane"},
    {MAP, 32, "  thread i:8, lane i:8 {\n    for j {\n      y\n    }\n  }\n", "lanes of a thread are the tile of a thread loop, 2 or 4"},
    {SUM, 32, "  thread j, for i {\n    y\n  }\n", "thread j: y is reduced over it; lanes of a warp fold"},
    {CHAIN, 32, "  par i {\n    thread j {\n      t in scratch\n      y\n    }\n  }\n", "thread j: t is read at other points of it"},
    {CHAIN, 32, "  thread i {\n    for j {\n      t in scratch\n    }\n    for j {\n      y\n    }\n  }\n",
     "t in scratch lives inside thread i, whose iterations run side by side"},
    {SOFTMAX, 32, "  par i {\n    thread j {\n      e in scratch\n    }\n  }\n", "h is computed nowhere"},
    {MATMUL, 32, COPIES "  par i:16, j:16 {\n    for k:16 {\n" SLICES "      thread i:2, j:2 {\n"
     "        a = dot fma i x j over [k] in reg\n      }\n    }\n    thread i:2, j:2 {\n      as a {\n        y\n      }\n    }\n  }\n",
     "a: 64 tiles are dealt to 32 threads; a thread keeps one"},
    {MATMUL, 64, COPIES "  par i:16, j:16 {\n    for k:16 {\n" SLICES "      thread i:2, j:2 {\n"
     "        a = dot fma i x j over [k] in reg\n      }\n    }\n    thread i:4, j:2 {\n      as a {\n        y\n      }\n    }\n  }\n",
     "as a does not follow it in the same loop"},
    {MATMUL, 64, "  par i:16, j:16 {\n    thread i:2, j:2 {\n      a = dot fma i x j over [k] in reg\n      as a {\n        y\n      }\n"
     "    }\n  }\n", "a: its last tile along j is not whole; copy the factor first"},
    {MATMUL, 64, "  copy ws = a.w [k, j+4]\n  par i:16, j:16 {\n    thread k, j {\n      ws in scratch ahead 1 via reg\n    }\n"
     "    thread i:2, j:2 {\n      a = dot fma i x j over [k] in reg\n      as a {\n        y\n      }\n    }\n  }\n",
     "ws is no copy by thread loops right inside a serial loop: it cannot be loaded ahead"},
    {MATMUL, 64, COPIES "  par i:16, j:16 {\n    for k:16 {\n" SLICES "      warp i:2 {\n        for j:2 {\n"
     "          a = dot fma i x j over [k] in reg\n        }\n      }\n    }\n    thread i, j {\n      y\n    }\n  }\n", "leaves no tile to it"},
};

/* --- matrices of warps --- */

#define HALVES \
    "kernel @mm(x: f16[m,72], w: f16[72,40], b: f16[40]) -> (y: f16[m,40]) {\n  axis i=m, j=40, k=72\n" \
    "  a[i,j] = sum(k) f32(x[i, k]) * f32(w[k, j])\n  y[i,j] = f16(max(0.0, f32(b[j]) + a))\n}\n"
#define TURNED \
    "kernel @mm(x: f16[72,m], w: f16[40,72]) -> (y: f32[m,40]) {\n  axis i=m, j=40, k=72\n" \
    "  a[i,j] = sum(k) f32(x[k, i]) * f32(w[j, k]) -> y[i, j]\n}\n"
#define BRAINS \
    "kernel @mm(x: bf16[m,40], w: bf16[40,40]) -> (y: f32[m,40]) {\n  axis i=m, j=40, k=40\n" \
    "  a[i,j] = sum(k) f32(x[i, k]) * f32(w[k, j])\n  y[i,j] = max(0.0, a)\n}\n"
#define CUT(load) "f32.bits(and(u32.bits(" load "), 4294959104))"
#define SHORTER \
    "kernel @mm(x: f32[m,24], w: f32[24,40]) -> (y: f32[m,40]) {\n  axis i=m, j=40, k=24\n" \
    "  a[i,j] = sum(k) " CUT("x[i, k]") " * " CUT("w[k, j]") "\n  y[i,j] = max(0.0, a)\n}\n"
#define OCTETS(rows, columns) \
    "kernel @mm(x: " rows "[m,72], w: " columns "[72,40]) -> (y: i32[m,40]) {\n  axis i=m, j=40, k=72\n" \
    "  a[i,j] = sum(k) i32(x[i, k]) * i32(w[k, j])\n  y[i,j] = max(a, -9999)\n}\n"
#define SHORTER_COPIES "  copy xs = a.x [i, k+4]\n  copy ws = a.w [j, k+4]\n"
#define OCTET_COPIES "  copy xs = a.x [i, k+16]\n  copy ws = a.w [j, k+16]\n"
#define HALF_COPIES "  copy xs = a.x [i, k+8]\n  copy ws = a.w [k, j+8]\n"
#define TURNED_COPIES "  copy xs = a.x [k, i+8]\n  copy ws = a.w [j, k+8]\n"
#define MATRICES(rows, columns, by) PRODUCTS("mma_f16", rows, columns, by)
#define PRODUCTS(row, rows, columns, by) \
    "  par i:" rows ", j:" columns " {\n    for k:32 {\n" SLICES_AHEAD "      warp i:" by ", j:16 {\n" \
    "        a = dot " row " i x j over [k] in reg\n      }\n    }\n    warp i:" by ", j:16 {\n      as a {\n        y\n      }\n    }\n  }\n"
#define ALONE(loops) \
    "  par i:32, j:32, for k:32 {\n    thread i, k {\n      xs in scratch ahead 1 via reg\n    }\n" \
    "    thread k, j {\n      ws in scratch ahead 1 via reg\n    }\n" \
    "    " loops " {\n      a = dot mma_f16 i x j over [k]\n    }\n  }\n"

static const struct {
    const char *kernel;
    int threads;
    const char *tree;
} matrices[] = {
    {HALVES, 128, HALF_COPIES MATRICES("32", "32", "16")},
    {HALVES, 128, HALF_COPIES MATRICES("64", "32", "32")},
    {HALVES, 256, HALF_COPIES MATRICES("64", "32", "16")},
    {BRAINS, 128, HALF_COPIES PRODUCTS("mma_bf16", "32", "32", "16")},
    {SHORTER, 128, SHORTER_COPIES PRODUCTS("mma_tf32", "32", "32", "16")},
    {SHORTER, 128, SHORTER_COPIES PRODUCTS("mma_tf32", "64", "32", "32")},
    {OCTETS("i8", "i8"), 128, OCTET_COPIES PRODUCTS("mma_s8s8", "32", "32", "16")},
    {OCTETS("i8", "u8"), 128, OCTET_COPIES PRODUCTS("mma_s8u8", "32", "32", "16")},
    {OCTETS("u8", "i8"), 128, OCTET_COPIES PRODUCTS("mma_u8s8", "64", "32", "32")},
    {OCTETS("u8", "u8"), 128, OCTET_COPIES PRODUCTS("mma_u8u8", "32", "32", "16")},
    {TURNED, 128, TURNED_COPIES ALONE("warp i:16, j:16")},
    {TURNED, 128, TURNED_COPIES ALONE("warp j:16, i:16")},
};

static const struct {
    const char *target, *kernel;
    int threads;
    const char *tree, *sentence;
} no_matrices[] = {
    {"sm_75", HALVES, 128, HALF_COPIES MATRICES("32", "32", "16"), "a: sm_75 does not have mma_f16"},
    {"sm_80", OCTETS("u8", "i8"), 128, OCTET_COPIES PRODUCTS("mma_s8u8", "32", "32", "16"),
     "a: mma_s8u8 multiplies i8 by u8 into i32; rows are u8, columns i8, the sum i32"},
    {"sm_80", OCTETS("u8", "i8"), 128, "  copy xs = a.x [i, k+16]\n  copy ws = a.w [k, j+16]\n" PRODUCTS("mma_u8s8", "32", "32", "16"),
     "a: mma_u8s8 takes neighbours along k, and ws has others"},
    {"sm_80", MATMUL, 128, SHORTER_COPIES PRODUCTS("mma_tf32", "32", "32", "16"),
     "a: mma_tf32 multiplies factors that are cut to tf32: f32.bits(and(u32.bits(x), 4294959104))"},
    {"sm_80", HALVES, 96, HALF_COPIES MATRICES("32", "32", "16"), "a: 4 tiles are dealt to 3 warps; a warp keeps one"},
    {"sm_80", HALVES, 128, HALF_COPIES MATRICES("32", "32", "8"), "a: a tile of 8x16 is no number of matrices of 16x16"},
    {"sm_80", TURNED, 128, TURNED_COPIES ALONE("thread i:16, j:16"), "leaves no tile to it"},
    {"sm_80", HALVES, 128, "  copy xs = a.x [i, k+4]\n  copy ws = a.w [k, j+8]\n" MATRICES("32", "32", "16"),
     "a: rows of xs do not begin at multiples of 16 bytes"},
    {"sm_80", HALVES, 128, "  copy xs = a.left [i, k+8]\n  copy ws = a.w [k, j+8]\n" MATRICES("32", "32", "16"),
     "a: mma_f16 multiplies f16 by f16 into f32; rows are f32, columns f16, the sum f32"},
    {"sm_80", HALVES, 128, HALF_COPIES "  par i:32, j:32 {\n    for k:8 {\n" SLICES_AHEAD "      warp i:16, j:16 {\n"
     "        a = dot mma_f16 i x j over [k] in reg\n      }\n    }\n    warp i:16, j:16 {\n      as a {\n        y\n      }\n    }\n  }\n",
     "is no multiple of the 16 that mma_f16 takes at once"},
    {"sm_80", TURNED, 128, "  copy xs = a.x [k, i+8]\n  par i:32, j:32 {\n    for k:32 {\n      thread i, k {\n        xs in scratch\n"
     "      }\n      warp i:16, j:16 {\n        a = dot mma_f16 i x j over [k]\n      }\n    }\n  }\n",
     "a: mma_f16 multiplies what threads of the block have copied"},
};

START_TEST(matrices_read_back_and_run)
{
    expect_right(matrices[_i].kernel, "sm_80", matrices[_i].threads, matrices[_i].tree);
}
END_TEST

START_TEST(no_matrices_are_refused)
{
    expect_refused(no_matrices[_i].kernel, no_matrices[_i].target, no_matrices[_i].threads, no_matrices[_i].tree,
                   no_matrices[_i].sentence);
}
END_TEST

START_TEST(right_ones_read_back_and_run)
{
    expect_right(right[_i].kernel, TARGET, right[_i].threads, right[_i].tree);
}
END_TEST

START_TEST(wrong_ones_are_refused_in_a_sentence)
{
    expect_refused(wrong[_i].kernel, TARGET, wrong[_i].threads, wrong[_i].tree, wrong[_i].sentence);
}
END_TEST

/* e takes the place of t, which nobody reads behind it; a reader behind it keeps both. */
START_TEST(a_last_reader_overwrites)
{
    enum { TILE = 2048, ROW = 64 }; /* 10 x 50 floats, 10 floats, in lines of 64 bytes */
    static const char *const read_later = "kernel @overwritten(x: f32[m,50]) -> (y: f32[m,50]) {\n  axis i=m, j=50\n"
                                          "  t[i,j] = x[i, j] * 2.0\n  h[i] = max(j) t\n  e[i,j] = exp(t - h)\n"
                                          "  l[i] = sum(j) e\n  y[i,j] = e / l + t\n}\n";
    int64_t bytes[2];
    dlc_arena *arena = dlc_arena_create(0);
    const char *text = schedule_text(TARGET, 64, OVERWRITING, arena);
    for (int later = 0; later < 2; later++) {
        dlc_diag diag;
        dlc_schedule *schedule = NULL;
        dlc_diag_init(&diag, arena);
        const dlc_kernel *kernel = kernel_of(later ? read_later : OVERWRITTEN, arena);
        ck_assert(dlc_schedule_parse(text, kernel, NULL, arena, &diag, &schedule) == DLC_OK);
        ck_assert(dlc_expr_is_int(schedule->kernel->pool, dlc_schedule_scratch(schedule), &bytes[later]));
    }
    ck_assert_int_eq(bytes[0], TILE + ROW);
    ck_assert_int_eq(bytes[1], 2 * TILE + ROW);
    dlc_arena_destroy(arena);
}
END_TEST

/* On a CPU too, but not where a loop around computes it again: it would be made of itself. */
START_TEST(a_map_made_once_overwrites)
{
    enum { ROW = 256 }; /* 50 floats, in lines of 64 bytes */
    static const char *const kernel_text = "kernel @weighed(x: f32[m,50], v: f32[50,3]) -> (y: f32[m,3]) {\n  axis i=m, j=50, k=3\n"
                                           "  t[i,j] = x[i, j] * 2.0\n  h[i] = max(j) t\n  e[i,j] = exp(t - h)\n"
                                           "  y[i,k] = sum(j) e * v[j, k]\n}\n";
    dlc_arena *arena = dlc_arena_create(0);
    for (int again = 0; again < 2; again++) {
        dlc_diag diag;
        dlc_schedule *schedule = NULL;
        int64_t bytes;
        dlc_diag_init(&diag, arena);
        const char *text = dlc_arena_printf(arena,
                                            "schedule x86-64-v4 grain 1 {\n  par i {\n    for j { t in scratch }\n    for j { h in reg }\n"
                                            "    for %sj { e in scratch }\n    for k, j { y }\n  }\n}\n",
                                            again ? "k, " : "");
        ck_assert_int_eq(dlc_schedule_parse(text, kernel_of(kernel_text, arena), NULL, arena, &diag, &schedule), DLC_OK);
        ck_assert(dlc_expr_is_int(schedule->kernel->pool, dlc_schedule_scratch(schedule), &bytes));
        ck_assert_int_eq(bytes, again ? 2 * ROW : ROW);
    }
    dlc_arena_destroy(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deals");
    TCase *tests = tcase_create("deals");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, right_ones_read_back_and_run, 0, sizeof right / sizeof *right);
    tcase_add_loop_test(tests, wrong_ones_are_refused_in_a_sentence, 0, sizeof wrong / sizeof *wrong);
    tcase_add_loop_test(tests, matrices_read_back_and_run, 0, sizeof matrices / sizeof *matrices);
    tcase_add_loop_test(tests, no_matrices_are_refused, 0, sizeof no_matrices / sizeof *no_matrices);
    tcase_add_test(tests, a_last_reader_overwrites);
    tcase_add_test(tests, a_map_made_once_overwrites);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

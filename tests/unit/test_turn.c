/*
 * Squares of a load turned in registers (codegen/turn.c): lanes along one axis, neighbours in memory along another that is unrolled in
 * them. Whole squares and their rest, fixed and symbolic sizes, several loads in one map, layouts in blocks, which lanes fill as vectors, and in
 * granules, which they fill as words. Planes that become channels, whose lanes are stored in turns.
 */
#include "tests/unit/schedule_cases.h"
#include "tests/unit/suite.h"

static const struct {
    const char *target;
    int lanes;
} levels[] = {{"x86-64-v2", 4}, {"x86-64-v3", 8}, {"x86-64-v4", 16}};

static int levels_here(void)
{
#ifdef __x86_64__
    return sizeof levels / sizeof *levels;
#else
    return 0;
#endif
}

/* `%d` of the tree: lanes; the fifth is twice as many. */
static void expect_right_everywhere(const char *kernel, const char *tree)
{
    for (int i = 0; i < levels_here(); i++) {
        char text[1024];
        int n = levels[i].lanes;
        snprintf(text, sizeof text, tree, n, n, n, n, 2 * n);
        expect_right(kernel, levels[i].target, 0, text);
    }
}

/* The code neither gathers nor scatters. */
static void expect_no_gather(const char *kernel, const char *tree)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *code = code_of(kernel, "x86-64-v3", tree, arena);
    ck_assert_ptr_nonnull(strstr(code, "shufflevector"));
    ck_assert_ptr_null(strstr(code, "@llvm.masked.gather"));
    ck_assert_ptr_null(strstr(code, "@llvm.masked.scatter"));
    dlc_arena_destroy(arena);
}

#define SQUARE "  par j:%d, for i:64, lane i:%d, unroll j {\n    t\n  }\n"

START_TEST(whole_squares_are_turned)
{
    expect_right_everywhere("kernel @k(x: f32[64,48]) -> (y: f32[48,64]) {\n  axis i=64, j=48\n"
                            "  t[i,j] = x[i, j] -> y[j, i]\n}\n",
                            SQUARE);
    expect_right_everywhere("kernel @k(x: i32[64,48]) -> (y: i32[48,64]) {\n  axis i=64, j=48\n"
                            "  t[i,j]: i32 = x[i, j] -> y[j, i]\n}\n",
                            SQUARE);
}
END_TEST

START_TEST(squares_and_blocks_gather_nothing)
{
    expect_no_gather("kernel @k(x: f32[64,48]) -> (y: f32[48,64]) {\n  axis i=64, j=48\n  t[i,j] = x[i, j] -> y[j, i]\n}\n",
                     "  par j:8, for i:64, lane i:8, unroll j {\n    t\n  }\n");
    expect_no_gather("kernel @k(a: f32[20,32], b: f32[32,48]) -> (y: f32[20,48]) {\n  axis i=20, j=48, k=32\n"
                     "  t[i,j] = sum(k) a[i, k] * b[k, j] -> y[i, j]\n}\n",
                     "  copy columns = t.b [j/16, k, j%16]\n  for j:16, k, lane j:8 {\n    columns in scratch\n  }\n"
                     "  for j:16, i:5 {\n    t = dot fma i x j over [k]\n  }\n");
    expect_no_gather("kernel @k(x: bf16[64,48]) -> (y: bf16[48,64]) {\n  axis j=64, k=48\n  t[j,k]: bf16 = x[j, k] -> y[k, j]\n}\n",
                     "  copy c = t.x [j/32, k/2, j%32, k%2]\n  for j:32, k:16, lane j:8, unroll k {\n    c in scratch\n  }\n"
                     "  for j, k {\n    t\n  }\n");
}
END_TEST

START_TEST(what_is_left_of_squares_is_right)
{
    expect_right_everywhere("kernel @k(x: f32[37,41]) -> (y: f32[41,37]) {\n  axis i=37, j=41\n"
                            "  t[i,j] = x[i, j] -> y[j, i]\n}\n",
                            SQUARE);
    expect_right_everywhere("kernel @k(x: f32[n,m]) -> (y: f32[m,n]) {\n  axis i=n, j=m\n"
                            "  t[i,j] = x[i, j] -> y[j, i]\n}\n",
                            SQUARE);
}
END_TEST

START_TEST(several_loads_of_a_map_are_turned)
{
    expect_right_everywhere("kernel @k(x: f32[64,48], z: f32[64,50], b: f32[64], c: f32[48,64]) -> (y: f32[48,64]) {\n"
                            "  axis i=64, j=48\n"
                            "  t[i,j] = max(x[i, j] * b[i] + z[i, j + 2], c[j, i]) -> y[j, i]\n}\n",
                            SQUARE);
}
END_TEST

#define CROSSING_STORE(type, n)                                                                                                       \
    "kernel @k(a: f32[" n ",20], b: f32[20,32]) -> (y: " type "[32," n "]) {\n  axis i=" n ", j=32, k=20\n  t[i,j] = sum(k) a[i, k] * b[k, j]\n" \
    "  u[i,j]: " type " = " type "(t + 1.0) -> y[j, i]\n}\n"
#define CROSSING_TILE "  par j:32, i:%d {\n    t = dot fma i x j over [k] in reg\n    as t {\n      u\n    }\n  }\n"

/* Of the last tile of as many rows as only the run knows some repeat the last one, and are not stored. */
START_TEST(rows_that_are_left_over_are_turned)
{
    char tree[256];
    snprintf(tree, sizeof tree, CROSSING_TILE, 13);
    for (int rows = 5; rows <= 13 && levels_here(); rows++) {
        char text[256];
        snprintf(text, sizeof text, CROSSING_TILE, rows);
        expect_right(CROSSING_STORE("f32", "n"), "x86-64-v4", 0, text);
    }
    if (!levels_here())
        return;
    dlc_arena *arena = dlc_arena_create(0);
    const char *stores = code_of(CROSSING_STORE("f32", "n"), "x86-64-v4", tree, arena);
    int is_found = 0;
    while (!is_found && (stores = strstr(stores, "@llvm.masked.store.v16f32"))) {
        const char *mask = strstr(stores, "<16 x i1> "); /* a value, or for whole tiles all bits one by one */
        is_found = mask && mask < strchr(stores, '\n') && mask[strlen("<16 x i1> ")] == '%';
        stores++;
    }
    ck_assert(is_found);
    dlc_arena_destroy(arena);
}
END_TEST

/* Floats of 16 bits are turned before they become so narrow, where masks of such are registers. */
START_TEST(rows_of_halves_are_turned)
{
    static const char *const kernels[] = {CROSSING_STORE("f16", "13"), CROSSING_STORE("bf16", "13"), CROSSING_STORE("f16", "n")};
    char tree[256];
    snprintf(tree, sizeof tree, CROSSING_TILE, 13);
    for (int k = 0; k < 3 && levels_here(); k++)
        expect_right(kernels[k], "x86-64-v4", 0, tree);
    dlc_arena *arena = dlc_arena_create(0);
    for (int k = 0; k < 2 && levels_here(); k++)
        ck_assert_ptr_null(strstr(code_of(kernels[k], "x86-64-v4", tree, arena), "@llvm.masked.scatter"));
    dlc_arena_destroy(arena);
}
END_TEST

START_TEST(a_copy_in_blocks_is_stored_by_vectors)
{
    expect_right("kernel @k(a: f32[20,33], b: f32[50,33]) -> (y: f32[20,50]) {\n  axis i=20, j=50, k=33\n"
                 "  t[i,j] = sum(k) a[i, k] * b[j, k] -> y[i, j]\n}\n",
                 "x86-64-v3", 0,
                 "  copy columns = t.b [j/16, k, j%16]\n"
                 "  for j:16, k:8, lane j:8, unroll k {\n    columns in scratch\n  }\n"
                 "  for j:16, i:6 {\n    t = dot fma i x j over [k]\n  }\n");
    expect_right("kernel @k(a: f32[20,7], b: f32[33,7]) -> (y: f32[20,33]) {\n  axis i=20, j=33, k=7\n"
                 "  t[i,j] = sum(k) a[i, k] * b[j, k] -> y[i, j]\n}\n",
                 "x86-64-v3", 0,
                 "  copy columns = t.b [j/16, k, j%16]\n  par j:16 {\n    for k, lane j:8 {\n      columns in scratch\n    }\n"
                 "    for i:6 {\n      t = dot fma i x j over [k]\n    }\n  }\n");
}
END_TEST

/* `%s` of the kernel: a type; of the tree: points of a granule, of a loop's turn, and lanes. */
static void expect_granules(const char *kernel, const char *tree, int is_crossing)
{
    static const struct {
        const char *type;
        int granule;
    } types[] = {{"u8", 4}, {"i8", 4}, {"i16", 2}, {"f16", 2}, {"bf16", 2}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int i = 0; i < levels_here(); i++) {
            char text[1024], copied[1024];
            int g = types[t].granule, n = levels[i].lanes;
            snprintf(text, sizeof text, kernel, types[t].type, types[t].type, types[t].type);
            snprintf(copied, sizeof copied, tree, g, g, is_crossing ? g * n : g, n, n);
            expect_right(text, levels[i].target, 0, copied);
        }
}

#define GRANULES                                                                                        \
    "  copy c = t.x [j/32, k/%d, j%%32, k%%%d]\n  for j:32, k:%d, lane j:%d, unroll k {\n    c in scratch\n  }\n" \
    "  for k, lane j:%d {\n    t\n  }\n"

START_TEST(copies_into_granules_go_by_words)
{
    static const int sizes[][2] = {{64, 128}, {37, 128}, {64, 75}, {45, 139}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char crossing[512], beside[512];
        int j = sizes[i][0], k = sizes[i][1];
        snprintf(crossing, sizeof crossing,
                 "kernel @k(x: %%s[%d,%d]) -> (y: %%s[%d,%d]) {\n  axis j=%d, k=%d\n  t[j,k]: %%s = x[j, k] -> y[k, j]\n}\n", j, k, k, j, j, k);
        snprintf(beside, sizeof beside,
                 "kernel @k(x: %%s[%d,%d]) -> (y: %%s[%d,%d]) {\n  axis j=%d, k=%d\n  t[j,k]: %%s = x[k, j] -> y[k, j]\n}\n", k, j, k, j, j, k);
        expect_granules(crossing, GRANULES, 1);
        expect_granules(beside, GRANULES, 0);
    }
}
END_TEST

/* Rows of a block in scratch, the last lanes off. */
START_TEST(granules_are_copied_of_scratch)
{
    expect_right_everywhere("kernel @k(x: f32[50,70]) -> (y: bf16[70,50]) {\n  axis j=50, k=70\n  u[j,k]: bf16 = bf16(x[j, k])\n"
                            "  t[j,k]: bf16 = u[j, k] -> y[k, j]\n}\n",
                            "  copy c = t.u [j/32, k/2, j%%32, k%%2]\n  par j:20 {\n    for j, lane k:%1$d {\n      u in scratch\n    }\n"
                            "    for k:%5$d, lane j:%1$d, unroll k {\n      c in scratch\n    }\n    for k, lane j:%1$d {\n      t\n    }\n  }\n");
}
END_TEST

/* Keys that end within a chunk of terms, and within a register's columns; queries that end within its rows. */
START_TEST(attention_reads_its_granules)
{
    if (levels_here())
        expect_right("kernel @k(x: bf16[50,24], z: bf16[75,24], v: bf16[75,40]) -> (y: f32[50,40]) {\n  axis i=50, j=75, k=24, d=40\n"
                     "  s[i,j] = sum(k) f32(x[i, k]) * f32(z[j, k])\n  top[i] = max(j) s\n  e[i,j] = exp(s * 0.25 - top * 0.25)\n"
                     "  sum[i] = sum(j) e\n  o[i,d] = sum(j) f32(bf16(e)) * f32(v[j, d])\n  y[i,d] = o / sum -> y[i, d]\n}\n",
                     "x86-64-v4+amx_bf16", 0,
                     "  copy keys = s.z [j/32, k/2, j%32, k%2]\n  copy weights = o.uncast_left\n  copy columns = o.v [d/32, j/2, d%32, j%2]\n"
                     "  for j:32, k:32, lane j:16, unroll k {\n    keys in scratch\n  }\n"
                     "  for d:32, j:2, lane d:16, unroll j {\n    columns in scratch\n  }\n"
                     "  for j:32, i:32 {\n    s = dot tdpbf16ps i x j over [k] in scratch\n  }\n"
                     "  for i:16 {\n    for i, lane j:16 x 4 {\n      top in scratch\n    }\n"
                     "    for i, lane j:16 x 4 {\n      e in scratch\n      sum in scratch\n    }\n"
                     "    for i, lane j:16 {\n      weights in scratch\n    }\n  }\n"
                     "  for d:32, i:32 {\n    o = dot tdpbf16ps i x d over [j] in reg\n    as o {\n      y\n    }\n  }\n");
}
END_TEST

#define WOVEN "  lane p:%d, unroll c {\n    t\n  }\n"

/* Of whole vectors and what is left of one, of every number of planes that is woven and one more. */
START_TEST(planes_become_channels_by_turns)
{
    static const struct {
        const char *type, *cast;
    } types[] = {{"f32", ""}, {"u8", "u8"}, {"bf16", "bf16"}, {"bf16", "bf16.ftz"}, {"f16", "f16"}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int planes = 2; planes <= DLC_MOST_WOVEN + 1; planes++) {
            char text[512];
            snprintf(text, sizeof text,
                     "kernel @k(x: f32[%d,75]) -> (y: %s[75,%d]) {\n  axis c=%d, p=75\n  t[c,p]: %s = %s(x[c, p]) -> y[p, c]\n}\n", planes,
                     types[t].type, planes, planes, types[t].type, types[t].cast);
            expect_right_everywhere(text, WOVEN);
        }
}
END_TEST

/* Vectors of more bytes than a register has, and more of them than are woven. */
START_TEST(long_vectors_are_woven)
{
    for (int lanes = 16; levels_here() && lanes <= 128; lanes *= 2) {
        char tree[128];
        snprintf(tree, sizeof tree, "  lane p:%d, unroll c {\n    t\n  }\n", lanes);
        expect_right_everywhere("kernel @k(x: u8[3,600]) -> (y: u8[600,3]) {\n  axis c=3, p=600\n  t[c,p]: u8 = x[c, p] -> y[p, c]\n}\n", tree);
    }
}
END_TEST

/* A plane of zeros behind the others, a border, rows by rows; channels of which some are known to be together. */
START_TEST(woven_planes_have_borders)
{
    expect_right_everywhere("kernel @k(x: f32[3,9,30]) -> (y: u8[11,32,4]) {\n  axis c=4, i=11, p=32\n"
                            "  t[c,i,p]: u8 = u8(x[c, i - 1, p - 1 if c < 3 and 1 <= i and i < 10 and 1 <= p and p < 31]) -> y[i, p, c]\n}\n",
                            "  par i, for c:4, lane p:%d, unroll c {\n    t\n  }\n");
    expect_right_everywhere("kernel @k(x: f32[4,n]) -> (y: f32[n,4]) {\n  axis c=4, p=n\n  t[c,p] = x[c, p] + 1.0 -> y[p, c]\n}\n", WOVEN);
    expect_right_everywhere("kernel @k(x: f32[6,64]) -> (y: f32[64,6]) {\n  axis c=6, p=64\n  t[c,p] = x[c, p] -> y[p, c]\n}\n",
                            "  for c:3, lane p:%d, unroll c {\n    t\n  }\n");
}
END_TEST

START_TEST(woven_planes_scatter_nothing)
{
    expect_no_gather("kernel @k(x: f32[3,64]) -> (y: f32[64,3]) {\n  axis c=3, p=64\n  t[c,p] = x[c, p] -> y[p, c]\n}\n",
                     "  lane p:8, unroll c {\n    t\n  }\n");
    expect_no_gather("kernel @k(x: f32[3,64]) -> (y: u8[64,4]) {\n  axis c=4, p=64\n  t[c,p]: u8 = u8(x[c, p if c < 3]) -> y[p, c]\n}\n",
                     "  lane p:8, unroll c {\n    t\n  }\n");
}
END_TEST

START_TEST(only_known_points_are_written_out)
{
    expect_refused("kernel @k(x: f32[n,m]) -> (y: f32[m,n]) {\n  axis i=n, j=m\n"
                   "  t[i,j] = x[i, j] -> y[j, i]\n}\n",
                   "x86-64-v3", 0, "  for i, lane j:8, unroll j {\n    t\n  }\n", "unroll j");
    expect_refused("kernel @k(x: f32[n,m]) -> (y: f32[m,n]) {\n  axis i=n, j=m\n"
                   "  t[i,j] = x[i, j] -> y[j, i]\n}\n",
                   "x86-64-v3", 0, "  lane i:8, unroll j {\n    t\n  }\n", "only loops of up to 4096 known iterations are written out");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("turn");
    TCase *tests = tcase_create("turn");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, whole_squares_are_turned);
    tcase_add_test(tests, squares_and_blocks_gather_nothing);
    tcase_add_test(tests, what_is_left_of_squares_is_right);
    tcase_add_test(tests, several_loads_of_a_map_are_turned);
    tcase_add_test(tests, rows_that_are_left_over_are_turned);
    tcase_add_test(tests, rows_of_halves_are_turned);
    tcase_add_test(tests, a_copy_in_blocks_is_stored_by_vectors);
    tcase_add_test(tests, copies_into_granules_go_by_words);
    tcase_add_test(tests, granules_are_copied_of_scratch);
    tcase_add_test(tests, attention_reads_its_granules);
    tcase_add_test(tests, planes_become_channels_by_turns);
    tcase_add_test(tests, long_vectors_are_woven);
    tcase_add_test(tests, woven_planes_have_borders);
    tcase_add_test(tests, woven_planes_scatter_nothing);
    tcase_add_test(tests, only_known_points_are_written_out);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

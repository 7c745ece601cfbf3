/*
 * Bytes that a register tile's sums become (codegen/held.c): several vectors at once, of different rows or neighbours, to the interpreter's
 * bytes; of what is too large or too small, infinite or no number, too.
 */
#include "tests/unit/schedule_cases.h"
#include "tests/unit/suite.h"

enum { COLUMNS = 64 };

/* Sums are 0 to 72. */
static const char *kernel_text(dlc_arena *arena, const char *type, int rows, int columns, const char *value)
{
    return dlc_arena_printf(arena,
                            "kernel @k(a: i32[%d,8], b: i32[8,%d]) -> (y: %s[%d,%d]) {\n  axis i=%d, j=%d, k=8\n"
                            "  t[i,j] = sum(k) a[i, k] * b[k, j]\n  y[i,j] = %s(%s) -> y[i, j]\n}\n",
                            rows, columns, type, rows, columns, rows, columns, type, value);
}

static const char *tree_text(dlc_arena *arena, int lanes, int vectors, int rows)
{
    const char *fill = vectors > 1 ? dlc_arena_printf(arena, "j:%d, k, lane j:%d x %d", vectors * lanes, lanes, vectors)
                                   : dlc_arena_printf(arena, "k, lane j:%d", lanes);
    int columns = vectors * lanes;
    return dlc_arena_printf(arena,
                            "  copy columns = t.b [j/%d, k, j%%%d]\n  for %s {\n    columns in scratch\n  }\n"
                            "  for i:%d, j:%d {\n    t = dot fma i x j over [k] in reg\n    as t {\n      y\n    }\n  }\n",
                            columns, columns, fill, rows, columns);
}

static const struct {
    const char *name;
    int lanes;
} targets[] = {{"x86-64-v2", 4}, {"x86-64-v3", 8}, {"x86-64-v4", 16}};
enum { NTARGETS = sizeof targets / sizeof *targets };

/* x limited from above and then from below: to a number, of NaN too. */
#define UPTO(x) "select(" x " < 50.0, " x ", 50.0)"
#define LIMITED(x) "select(10.0 < " UPTO(x) ", " UPTO(x) ", 10.0)"
#define WILD "((f32(t) - 20.0) / (f32(t) - 20.0) * (f32(t) - 36.0) * 1000000000.0)"

static const struct {
    const char *type, *value;
} values[] = {
    {"u8", "rint((f32(t) - 20.0) * 13.3)"},
    {"u8", "rint((f32(t) - 30.0) * 5.5) + 117.0"},
    {"u8", "rint(f32(t) * 9.5) + -7.0"},
    {"i8", "rint((f32(t) - 30.0) * 7.5)"},
    {"i8", "rint((f32(t) - 30.0) * 7.5) + -3.0"},
    {"u8", "rint((f32(t) - 20.0) / (f32(t) - 20.0) * (f32(t) - 36.0) * 13.0) + 5.0"}, /* NaN at 20 */
    {"i8", "rint((f32(t) - 20.0) / (f32(t) - 20.0) * (f32(t) - 36.0) * 13.0) + 5.0"},
    {"u8", "rint((f32(t) - 30.0) / f32(select(t < 20, i32(0), i32(1)))) + 100.0"}, /* infinite below 20 */
    {"i8", "rint((30.0 - f32(t)) / f32(select(t < 20, i32(0), i32(1))))"},
    {"u8", "rint((f32(t) - 30.0) * 3000000000.0) + 2000.0"}, /* a shift that words do not hold: one by one */
    {"u8", "rint((f32(t) - 30.0) * 3000000000.0)"},
    {"i8", "rint((" LIMITED("f32(t)") " - 25.0) * 15.0)"}, /* known to be no large numbers, */
    {"u8", "rint(" LIMITED(WILD) " * 7.0 + -100.0)"},
    {"i8", "rint(select(50.0 < " WILD ", 50.0, " WILD ") * 7.0)"}, /* and not: NaN stays, */
    {"u8", "rint(" UPTO(WILD) " * -7.0)"}, /* and what is far below; */
    {"u8", "rint(f32(u32(i8(t - i32(5)))) * 0.75)"}, /* nor what is widened with its sign and then has none, */
    {"i8", "rint(f32(t) * 1e30 * (f32(t) * 1e30) * 1e-37 * 1e-37)"}, /* or overflows on the way */
};
enum { NVALUES = sizeof values / sizeof *values };

START_TEST(bytes_are_those_of_the_interpreter)
{
    enum { MOST_CASES = 16 };
    static const int rows[] = {2, 3, 4, 5};
    const char *target = targets[_i % NTARGETS].name;
    int lanes = targets[_i % NTARGETS].lanes, v = _i / NTARGETS, registers = lanes == 16 ? 32 : 16;
    dlc_arena *arena = dlc_arena_create(0);
    right_case cases[MOST_CASES];
    uint32_t n = 0;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const char *kernel = kernel_text(arena, values[v].type, rows[r], COLUMNS, values[v].value);
        for (int vectors = 1; vectors <= 4 && (rows[r] + 1) * vectors < registers; vectors *= 2)
            cases[n++] = (right_case){kernel, tree_text(arena, lanes, vectors, rows[r])};
        /* one vector is a row */
        kernel = kernel_text(arena, values[v].type, rows[r], lanes, values[v].value);
        cases[n++] = (right_case){kernel, tree_text(arena, lanes, 1, rows[r])};
    }
    expect_all_right(cases, n, target);
    dlc_arena_destroy(arena);
}
END_TEST

/* Points of an unrolled loop wait for each other, too. */
static const char *windows_text(dlc_arena *arena, const char *type, const char *value, int points)
{
    return dlc_arena_printf(arena,
                            "kernel @k(x: i32[6,%d,64]) -> (y: %s[6,%d,64]) {\n  axis h=6, v=%d, j=64, k=3\n"
                            "  t[h,v,j] = sum(k) x[h, v + k, j] * i32(8)\n  y[h,v,j] = %s(%s) -> y[h, v, j]\n}\n",
                            points + 2, type, points, points, type, value);
}

static const char *windows_tree(dlc_arena *arena, int lanes)
{
    return dlc_arena_printf(arena, "  for h, lane j:%d, unroll v {\n    unroll k {\n      t in reg\n    }\n    y\n  }\n", lanes);
}

START_TEST(points_become_bytes_together)
{
    enum { LEAST = 2, MOST = 7 };
    const char *target = targets[_i % NTARGETS].name;
    int lanes = targets[_i % NTARGETS].lanes, v = _i / NTARGETS;
    dlc_arena *arena = dlc_arena_create(0);
    right_case cases[MOST - LEAST + 1];
    for (int points = LEAST; points <= MOST; points++)
        cases[points - LEAST] = (right_case){windows_text(arena, values[v].type, values[v].value, points), windows_tree(arena, lanes)};
    expect_all_right(cases, MOST - LEAST + 1, target);
    dlc_arena_destroy(arena);
}
END_TEST

static int calls_of(const char *code, const char *name)
{
    dlc_arena *arena = dlc_arena_create(0);
    int n = (int)count_of(code, dlc_arena_printf(arena, "@llvm.x86.avx512.%s(", name));
    dlc_arena_destroy(arena);
    return n ? n - 1 : 0; /* its declaration */
}

static void expect_packs(int rows, int vectors, const char *type, const char *value, const char *name, int n)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *code = code_of(kernel_text(arena, type, rows, COLUMNS, value), "x86-64-v4", tree_text(arena, 16, vectors, rows), arena);
    ck_assert_int_eq(calls_of(code, name), n);
    dlc_arena_destroy(arena);
}

START_TEST(four_vectors_are_packed_at_once)
{
    expect_packs(2, 2, "u8", values[0].value, "packuswb.512", 1);
    expect_packs(4, 2, "u8", values[0].value, "packuswb.512", 2);
    expect_packs(7, 2, "u8", values[0].value, "packuswb.512", 4);
    expect_packs(7, 2, "u8", values[0].value, "packssdw.512", 7);
    expect_packs(5, 1, "u8", values[0].value, "packuswb.512", 1); /* one is left, which is stored alone */
    expect_packs(4, 2, "i8", values[3].value, "packsswb.512", 2);
    expect_packs(4, 2, "u8", values[9].value, "packuswb.512", 0);
    dlc_arena *arena = dlc_arena_create(0);
    const char *code = code_of(kernel_text(arena, "u8", 4, 16, values[0].value), "x86-64-v4", tree_text(arena, 16, 1, 4), arena);
    ck_assert_msg(strstr(code, "store <64 x i8>") != NULL, "four rows side by side are stored one by one");
    const char *windows = windows_text(arena, "u8", values[0].value, 7);
    ck_assert_int_eq(calls_of(code_of(windows, "x86-64-v4", windows_tree(arena, 16), arena), "packuswb.512"), 2);
    dlc_arena_destroy(arena);
    expect_packs(4, 2, "i32", "rint(f32(t) * 9.5)", "packssdw.512", 0);
}
END_TEST

static size_t count_in_tile(const char *value, const char *type, int vectors, const char *what)
{
    dlc_arena *arena = dlc_arena_create(0);
    size_t n = count_of(code_of(kernel_text(arena, type, 6, COLUMNS, value), "x86-64-v4", tree_text(arena, 16, vectors, 6), arena), what);
    dlc_arena_destroy(arena);
    return n;
}

/* Rows of two or four vectors, of six rows: three or six registers of four vectors. */
START_TEST(neighbours_are_stored_together)
{
    ck_assert_uint_eq(count_in_tile(values[0].value, "u8", 2, "store <32 x i8>"), 6);
    ck_assert_uint_eq(count_in_tile(values[0].value, "u8", 4, "store <64 x i8>"), 6);
    ck_assert_uint_eq(count_in_tile(values[0].value, "u8", 1, "store <16 x i8>"), 6);
}
END_TEST

START_TEST(small_numbers_are_not_limited)
{
    static const char limit[] = "fcmp olt <16 x float> <float 1.270000e+02";
    ck_assert_uint_eq(count_in_tile("rint(" LIMITED(WILD) " * 7.0 + -200.0)", "i8", 1, limit), 0);
    ck_assert_uint_gt(count_in_tile("rint(" UPTO(WILD) " * 7.0 + -200.0)", "i8", 1, limit), 0);
    ck_assert_uint_eq(count_in_tile("rint(f32(t) * 0.125)", "i8", 1, limit), 0);
    ck_assert_uint_gt(count_in_tile("rint(f32(t) * 2.0)", "i8", 1, limit), 0);
}
END_TEST

/* A scale and a bias of each column, of whose size the kernel says something, or not enough. */
static size_t count_limits(const char *scale, const char *bias)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *kernel = dlc_arena_printf(arena,
                                          "kernel @k(a: i32[6,8], b: i32[8,64], s: f32[64]@const%s, c: f32[64]@const%s) -> (y: u8[6,64]) {\n"
                                          "  axis i=6, j=64, k=8\n  t[i,j] = sum(k) a[i, k] * b[k, j]\n"
                                          "  y[i,j] = u8(rint(muladd(f32(t) * 0.125, s[j], c[j])) + 3.0) -> y[i, j]\n}\n",
                                          scale, bias);
    size_t n = count_of(code_of(kernel, "x86-64-v4", tree_text(arena, 16, 2, 6), arena), "fcmp olt <16 x float> <float 2.520000e+02");
    dlc_arena_destroy(arena);
    return n;
}

START_TEST(what_small_constants_make_is_not_limited)
{
    ck_assert_uint_eq(count_limits("@within(0)", "@within(24)"), 0);
    ck_assert_uint_gt(count_limits("@within(2)", "@within(24)"), 0);
    ck_assert_uint_gt(count_limits("@within(0)", "@within(30)"), 0);
    ck_assert_uint_gt(count_limits("@within(0)", ""), 0);
    ck_assert_uint_gt(count_limits("", "@within(24)"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("held");
    TCase *tests = tcase_create("held");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, bytes_are_those_of_the_interpreter, 0, NVALUES * NTARGETS);
    tcase_add_loop_test(tests, points_become_bytes_together, 0, NVALUES * NTARGETS);
    tcase_add_test(tests, four_vectors_are_packed_at_once);
    tcase_add_test(tests, neighbours_are_stored_together);
    tcase_add_test(tests, small_numbers_are_not_limited);
    tcase_add_test(tests, what_small_constants_make_is_not_limited);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

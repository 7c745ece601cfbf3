/*
 * Rows of register tiles over lines of any length (codegen/quotient.c): one division tells where the first row is, a comparison each where the
 * next ones are, and the numbers are right where lines are shorter than a tile, too.
 */
#include "tests/unit/schedule_cases.h"
#include "tests/unit/suite.h"

static const char image[] = "kernel @k(x: f32[n + 2,m + 2,3], f: f32[3,3,3,32]) -> (y: f32[n,m,32]) {\n"
                            "  axis oh=n, ow=m, oc=32, kh=3, kw=3, ic=3\n"
                            "  t[oh,ow,oc] = sum(kh,kw,ic) x[oh + kh, ow + kw, ic] * f[kh, kw, ic, oc] -> y[oh, ow, oc]\n}\n";
#define TILES(rows, columns) "  par (oh, ow):" rows ", for oc:" columns " {\n    t = dot fma oh_ow x oc over [kh, kw, ic]\n  }\n"

START_TEST(rows_are_divided_once)
{
    enum { MOST = 17 }; /* the tile with fewer rows has one for each, and units have theirs; 23 where every row of the whole tile has one, too */
    dlc_arena *arena = dlc_arena_create(0);
    int n = (int)count_of(code_of(image, "x86-64-v4", TILES("7", "32"), arena), "sdiv i64");
    ck_assert_int_ge(n, 1);
    ck_assert_int_le(n, MOST);
    dlc_arena_destroy(arena);
}
END_TEST

START_TEST(rows_are_where_they_were)
{
    expect_right(image, "x86-64-v4", 0, TILES("7", "32"));
    expect_right(image, "x86-64-v3", 0, TILES("6", "16"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quotient");
    TCase *tests = tcase_create("quotient");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, rows_are_divided_once);
    tcase_add_test(tests, rows_are_where_they_were);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

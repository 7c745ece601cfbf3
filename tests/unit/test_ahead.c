/*
 * What register tiles ask for while they multiply (codegen/ahead.c): by the whole next panel where one tile of rows meets it, by equal shares
 * where several do, also where only the run knows how many. Numbers are those of a tile that asks for nothing.
 */
#include "tests/unit/schedule_cases.h"
#include "tests/unit/suite.h"

/* Calls of it, its declaration aside. */
static int asks_for(const char *kernel, const char *tree)
{
    dlc_arena *arena = dlc_arena_create(0);
    int n = (int)count_of(code_of(kernel, "x86-64-v4", tree, arena), "call void @llvm.prefetch");
    dlc_arena_destroy(arena);
    return n;
}

/* Each step asks for so many elements more, of a panel at this distance. */
static void expect_share(const char *kernel, const char *tree, int elements, int distance)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *code = code_of(kernel, "x86-64-v4", tree, arena);
    const char *call = dlc_arena_printf(arena, ", i64 %d\n  call void @llvm.prefetch", distance), *at = strstr(code, call);
    const char *step = dlc_arena_printf(arena, ", %d\n", elements);
    ck_assert_msg(at != NULL, "no%s", call);
    const char *loop = at; /* its beginning */
    while (loop > code && strncmp(loop, "phi i64", 7) != 0)
        loop--;
    const char *product = strstr(loop, step);
    ck_assert_msg(product && product < at, "no step of %d before%s", elements, call);
    dlc_arena_destroy(arena);
}

#define PRODUCT(rows, k) \
    "kernel @k(a: f32[" rows "," k "], b: f32[" k ",192]) -> (y: f32[" rows ",192]) {\n  axis i=" rows ", j=192, k=" k "\n" \
    "  t[i,j] = sum(k) a[i, k] * b[k, j] -> y[i, j]\n}\n"
#define PANELS(loops, over)                                                                                      \
    "  copy columns = t.b [j/32, k, j%32]\n  for j:32, k, lane j:16 x 2 {\n    columns in scratch\n  }\n  for " loops \
    " {\n    t = dot fma i x j over [" over "] ahead 1 via L2\n  }\n"

START_TEST(one_tile_asks_for_all)
{
    ck_assert_int_eq(asks_for(PRODUCT("14", "64"), PANELS("j:32, i:14", "k")), 2);
    ck_assert_int_eq(asks_for(PRODUCT("28", "64"), PANELS("i:14, j:32", "k")), 2); /* others meet the panel when all have gone by */
}
END_TEST

START_TEST(tiles_ask_for_shares)
{
    ck_assert_int_eq(asks_for(PRODUCT("28", "64"), PANELS("j:32, i:14", "k")), 1);
    expect_share(PRODUCT("42", "64"), PANELS("j:32, i:14", "k"), 11, 64 * 32);
    ck_assert_int_eq(asks_for(PRODUCT("140", "64"), PANELS("j:32, i:14", "k")), 1);
    ck_assert_int_eq(asks_for(PRODUCT("700", "384"), PANELS("j:32, i:14", "k:128")), 1);
    ck_assert_int_eq(asks_for(PRODUCT("27", "64"), PANELS("j:32, i:14", "k")), 2);   /* tiles of 14 and of 13 rows: one each */
}
END_TEST

/* Panels of the same columns follow each other: a batch's next one is what tiles share, and not the next columns'. */
START_TEST(batches_inside_of_columns_come_next)
{
    static const char kernel[] = "kernel @k(a: f32[4,40,64], b: f32[4,64,192]) -> (y: f32[4,40,192]) {\n  axis p=4, i=40, j=192, k=64\n"
                                 "  t[p,i,j] = sum(k) a[p, i, k] * b[p, k, j] -> y[p, i, j]\n}\n";
    static const char tree[] = "  copy columns = t.b [p, j/32, k, j%32]\n  for p, j:32, k, lane j:16 x 2 {\n    columns in scratch\n  }\n"
                               "  for j:32, p, i:14 {\n    t = dot fma i x j over [k] ahead 1 via L2\n  }\n";
    expect_share(kernel, tree, 11, 64 * 192);
    expect_right(kernel, "x86-64-v4", 0, tree);
}
END_TEST

START_TEST(shares_of_a_number_that_a_run_knows)
{
    static const char kernel[] = PRODUCT("n", "64"), tree[] = PANELS("j:32, i:14", "k");
    int n = asks_for(kernel, tree);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(n % 2, 0); /* both lines of a step: there may be one tile */
    dlc_arena *arena = dlc_arena_create(0);
    ck_assert_ptr_nonnull(strstr(code_of(kernel, "x86-64-v4", tree, arena), "div i64 ")); /* a step by the number of tiles */
    dlc_arena_destroy(arena);
    expect_right(kernel, "x86-64-v4", 0, tree);
}
END_TEST

/* What is no panel of the tile's width, or whose points do not follow each other, has no shares. */
START_TEST(columns_in_place_have_no_shares)
{
    static const char wide[] = "  for j:32, i:14 {\n    t = dot fma i x j over [k] ahead 1 via L2\n  }\n";
    static const char turned[] = "kernel @k(a: f32[28,64], b: f32[192,64]) -> (y: f32[28,192]) {\n  axis i=28, j=192, k=64\n"
                                 "  t[i,j] = sum(k) a[i, k] * b[j, k] -> y[i, j]\n}\n";
    ck_assert_int_eq(asks_for(PRODUCT("28", "64"), wide), 2);
    expect_right(turned, "x86-64-v4", 0, wide);
}
END_TEST

START_TEST(what_is_asked_for_changes_nothing)
{
    expect_right(PRODUCT("27", "64"), "x86-64-v4", 0, PANELS("j:32, i:14", "k"));
    expect_right(PRODUCT("30", "300"), "x86-64-v4", 0, PANELS("j:32, i:14", "k:128"));
    expect_right(PRODUCT("30", "300"), "x86-64-v4", 0, "  copy columns = t.b [j/32, k, j%32]\n  for j:32, k, lane j:16 x 2 {\n"
                 "    columns in scratch\n  }\n  for k:96, j:32, i:14 {\n    t = dot fma i x j over [k] in scratch ahead 1 via L2\n  }\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ahead");
    TCase *tests = tcase_create("ahead");
    tcase_add_test(tests, one_tile_asks_for_all);
    tcase_add_test(tests, tiles_ask_for_shares);
    tcase_add_test(tests, batches_inside_of_columns_come_next);
    tcase_add_test(tests, shares_of_a_number_that_a_run_knows);
    tcase_add_test(tests, columns_in_place_have_no_shares);
    tcase_add_test(tests, what_is_asked_for_changes_nothing);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* The arena's planner: no two live buffers share a byte, for random lifetimes, static and symbolic
 * sizes and phases. */
#include "passes/plan_memory.h"

#include <check.h>
#include <stdlib.h>

#include "tests/unit/random.h"
#include "tests/unit/small_pool.h"
#include "tests/unit/suite.h"

enum { NSYMBOLS = 3 };
static const dlc_interval intervals[NSYMBOLS] = {{0, 1 << 20}, {1, 512}, {0, 1 << 20}};
static const dlc_ranges ranges = {.symbols = intervals, .nsymbols = NSYMBOLS};
static const int64_t typical[NSYMBOLS] = {64, 64, 64};

/* Symbols 0 and 1 are known at the start, symbol 2 after the first binding step. */
static dlc_expr random_size(uint32_t phase, int is_static)
{
    dlc_expr constant = num(draw(3) ? draw(5000) : 0);
    if (is_static)
        return constant;
    dlc_expr symbol = dlc_expr_sym(p, phase ? 2 : draw(2));
    return dlc_add(p, dlc_muli(p, symbol, 1 + draw(300)), constant);
}

static void fill_random(dlc_lifetime *lifetimes, uint32_t n, uint32_t nsteps,
                        uint32_t percent_static)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = draw(nsteps), is_static = draw(100) < percent_static;
        uint32_t phase = !is_static && first > nsteps / 2 ? draw(2) : 0;
        lifetimes[i] = (dlc_lifetime){.first = first,
                                      .last = first + draw(nsteps / 4 + 1),
                                      .phase = phase,
                                      .size = random_size(phase, (int)is_static)};
    }
}

static const struct {
    uint32_t n, nsteps, percent_static;
} shapes[] = {{0, 1, 100}, {1, 1, 100},  {40, 20, 100}, {300, 60, 100},
              {40, 20, 0}, {300, 60, 0}, {200, 50, 50}, {9000, 900, 100}};

START_TEST(random_lifetimes_do_not_clash)
{
    static const int64_t values[][NSYMBOLS] = {
        {0, 1, 0}, {1, 1, 1}, {64, 64, 64}, {1000, 7, 3}, {3, 512, 100000}};
    uint32_t n = shapes[_i].n, a, b, rounds = n > 1000 ? 1 : 10;
    for (uint32_t round = 0; round < rounds; round++) {
        dlc_lifetime *lifetimes = dlc_new_array(arena, dlc_lifetime, n + 1);
        fill_random(lifetimes, n, shapes[_i].nsteps, shapes[_i].percent_static);
        dlc_expr bytes = dlc_arena_plan(p, &ranges, typical, lifetimes, n, arena);
        for (uint32_t v = 0; v < sizeof values / sizeof *values; v++)
            if (n <= 1000 || !v)
                ck_assert_msg(!dlc_arena_clash(p, values[v], lifetimes, n, bytes, arena, &a, &b),
                              "round %u, values %u: %u and %u", round, v, a, b);
    }
}
END_TEST

START_TEST(a_clash_is_found)
{
    uint32_t a, b;
    dlc_lifetime lifetimes[2] = {{0, 1, 0, num(100), num(0)}, {1, 2, 0, num(100), num(64)}};
    ck_assert(dlc_arena_clash(p, typical, lifetimes, 2, num(1000), arena, &a, &b));
    lifetimes[1].offset = num(128);
    ck_assert(!dlc_arena_clash(p, typical, lifetimes, 2, num(228), arena, &a, &b));
    ck_assert(
        dlc_arena_clash(p, typical, lifetimes, 2, num(227), arena, &a, &b)); /* past the end */
    lifetimes[1].offset = num(136);
    ck_assert(
        dlc_arena_clash(p, typical, lifetimes, 2, num(1000), arena, &a, &b)); /* not aligned */
}
END_TEST

START_TEST(a_chain_takes_two_buffers)
{
    enum { N = 50 };
    dlc_lifetime chain[N];
    for (uint32_t i = 0; i < N; i++)
        chain[i] = (dlc_lifetime){.first = i, .last = i + 1, .size = num(1000)};
    dlc_expr bytes = dlc_arena_plan(p, &ranges, typical, chain, N, arena);
    ck_assert_int_eq(dlc_expr_value(p, bytes), 2 * 1024);
    for (uint32_t i = 0; i < N; i++)
        chain[i].size = dlc_muli(p, dlc_expr_sym(p, 0), 4 * 384);
    bytes = dlc_arena_plan(p, &ranges, typical, chain, N, arena);
    ck_assert_uint_eq(bytes,
                      dlc_muli(p, dlc_expr_sym(p, 0), 2 * 4 * 384)); /* no rounding is left */
}
END_TEST

/* The 24 bytes fit into the gap that the large buffers leave, not behind them. */
START_TEST(the_tightest_gap_is_taken)
{
    dlc_lifetime lifetimes[] = {{0, 9, 0, num(1024), 0},
                                {0, 2, 0, num(640), 0},
                                {0, 9, 0, num(512), 0},
                                {5, 6, 0, num(24), 0}};
    dlc_expr bytes = dlc_arena_plan(p, &ranges, typical, lifetimes, 4, arena);
    ck_assert_int_eq(dlc_expr_value(p, bytes), 1024 + 640 + 512);
    ck_assert_int_eq(dlc_expr_value(p, lifetimes[3].offset), 1024);
}
END_TEST

START_TEST(large_values_begin_in_the_middle_of_a_page)
{
    enum { LARGE = 17 * 4096 + 64, SMALL = 4096 };
    dlc_lifetime lifetimes[] = {{0, 1, 0, num(LARGE), 0}, {1, 2, 0, num(LARGE), 0}, {2, 3, 0, num(LARGE), 0}, {0, 3, 0, num(SMALL), 0}};
    dlc_expr bytes = dlc_arena_plan(p, &ranges, typical, lifetimes, 4, arena);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(dlc_expr_value(p, lifetimes[i].offset), i % 2 ? 2048 + 18 * 4096 : 2048);
    ck_assert_int_eq(dlc_expr_value(p, bytes), 2048 + 18 * 4096 + LARGE + SMALL);
}
END_TEST

/* What is known at the start never lies behind something that is not. */
START_TEST(later_phases_lie_behind)
{
    dlc_expr early = dlc_muli(p, dlc_expr_sym(p, 0), 64),
             late = dlc_muli(p, dlc_expr_sym(p, 2), 64);
    dlc_lifetime lifetimes[] = {
        {0, 5, 0, early, 0}, {2, 9, 1, late, 0}, {3, 9, 0, early, 0}, {4, 9, 0, num(100), 0}};
    dlc_arena_plan(p, &ranges, typical, lifetimes, 4, arena);
    static const int64_t small[NSYMBOLS] = {5, 1, 0}, large[NSYMBOLS] = {5, 1, 1 << 20};
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(dlc_expr_eval(p, lifetimes[i].offset, small),
                         dlc_expr_eval(p, lifetimes[i].offset, large));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_memory");
    TCase *tcase = tcase_create("plan_memory");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, random_lifetimes_do_not_clash, 0, sizeof shapes / sizeof *shapes);
    tcase_add_test(tcase, a_clash_is_found);
    tcase_add_test(tcase, a_chain_takes_two_buffers);
    tcase_add_test(tcase, the_tightest_gap_is_taken);
    tcase_add_test(tcase, large_values_begin_in_the_middle_of_a_page);
    tcase_add_test(tcase, later_phases_lie_behind);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

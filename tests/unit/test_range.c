/* Ranges and simplification: the cases views and tiles make, and random expressions that must keep
 * their values. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/random.h"
#include "tests/unit/small_pool.h"
#include "tests/unit/suite.h"

static dlc_expr yes(int is_true)
{
    return dlc_expr_bool(p, is_true);
}

START_TEST(intervals)
{
    dlc_interval axes[] = {{0, 55}, {0, 2}}, symbols[] = {{1, 128}};
    dlc_ranges r = {.axes = axes, .symbols = symbols, .naxes = 2, .nsymbols = 1};
    dlc_expr i = ax(0), k = ax(1), s = sy(0);
    const struct {
        dlc_expr expr;
        int64_t lo, hi;
    } cases[] = {
        {dlc_addi(p, dlc_add(p, i, k), -1), -1, 56},
        {dlc_muli(p, i, -2), -110, 0},
        {dlc_mod(p, i, num(7)), 0, 6},
        {dlc_mod(p, k, num(7)), 0, 2},
        {dlc_floordiv(p, dlc_addi(p, i, -3), num(8)), -1, 6},
        {dlc_mul(p, i, s), 0, 55 * 128},
        {dlc_min(p, i, num(9)), 0, 9},
        {dlc_select(p, dlc_lt(p, i, k), i, num(-4)), -4, 55},
        {dlc_expr_cast(p, DLC_I64, dlc_expr_load(p, DLC_I8, 0, &i, 1, 0, 0, 0)), -128, 127},
        {dlc_expr_load(p, DLC_I64, 1, &i, 1, 0, 0, 0), INT64_MIN, INT64_MAX},
        {dlc_lt(p, i, num(56)), 1, 1},
        {dlc_le(p, num(60), i), 0, 0},
        {sy(1), 0, INT64_MAX},
        {dlc_muli(p, sy(1), 4), 0, INT64_MAX},
        {dlc_addi(p, dlc_expr_load(p, DLC_I64, 1, &i, 1, 0, 0, 0), 1), INT64_MIN, INT64_MAX},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        dlc_interval range = dlc_expr_range(p, cases[c].expr, &r);
        ck_assert_msg(range.lo == cases[c].lo && range.hi == cases[c].hi, "case %zu: [%ld, %ld]", c,
                      (long)range.lo, (long)range.hi);
    }
}
END_TEST

/* A bound near the end of i64, times a coefficient, must not come round: sizes that a run computes of two it knows. */
START_TEST(bounds_do_not_wrap)
{
    dlc_interval symbols[] = {{0, INT32_MAX}, {0, INT32_MAX}, {-1, INT32_MAX}};
    dlc_ranges r = {.symbols = symbols, .nsymbols = 3};
    dlc_expr given = sy(2), is_rest = dlc_eq(p, given, num(-1));
    dlc_expr size = dlc_select(p, is_rest, dlc_mul(p, sy(0), sy(1)), given);
    for (int64_t coef = 1; coef < 5000; coef++) {
        dlc_expr bytes = dlc_muli(p, size, coef), most = dlc_max(p, bytes, num(0)), least = dlc_min(p, bytes, num(0));
        ck_assert_uint_eq(dlc_expr_simplify(p, most, &r), most);
        ck_assert_uint_eq(dlc_expr_simplify(p, least, &r), least);
    }
}
END_TEST

START_TEST(constant_extents)
{
    dlc_interval axes[] = {{0, 11}, {0, 63}, {0, 2}};
    dlc_ranges r = {.axes = axes, .naxes = 3};
    dlc_expr h = ax(0), d = ax(1), k = ax(2), c = dlc_add(p, dlc_muli(p, h, 64), d);
    const struct {
        dlc_expr from, to;
    } cases[] = {
        {dlc_floordiv(p, c, num(64)), h},
        {dlc_mod(p, c, num(64)), d},
        {dlc_floordiv(p, c, num(768)), num(0)},
        {dlc_mod(p, c, num(768)), c},
        {dlc_floordiv(p, c, num(128)), dlc_floordiv(p, h, num(2))},
        {dlc_mod(p, c, num(128)), dlc_add(p, dlc_muli(p, dlc_mod(p, h, num(2)), 64), d)},
        {dlc_lt(p, d, num(64)), yes(1)},
        {dlc_in_range(p, dlc_addi(p, dlc_add(p, h, k), -1), num(12)),
         dlc_and(p, dlc_le(p, num(1), dlc_add(p, h, k)), dlc_lt(p, dlc_add(p, h, k), num(13)))},
        {dlc_min(p, h, num(20)), h},
        {dlc_max(p, dlc_addi(p, h, -20), num(0)), num(0)},
        {dlc_and(p, dlc_lt(p, d, num(58)), dlc_lt(p, d, num(62))), dlc_lt(p, d, num(58))},
        {dlc_and(p, dlc_lt(p, d, num(8)), dlc_le(p, num(8), d)), yes(0)},
        {dlc_expr2(p, DLC_EXPR_DIV, c, num(64)), h},
        {dlc_expr2(p, DLC_EXPR_REM, c, num(64)), d},
        {dlc_expr_cast(p, DLC_I64, dlc_expr_cast(p, DLC_I32, c)), c},
        {dlc_lt(p, c, num(704)), dlc_lt(p, h, num(11))},
        {dlc_le(p, num(64), c), dlc_le(p, num(1), h)},
        {dlc_lt(p, dlc_add(p, c, k), dlc_addi(p, k, 128)), dlc_lt(p, h, num(2))},
        {dlc_lt(p, c, num(703)), dlc_lt(p, c, num(703))},
        {dlc_le(p, num(63), c), dlc_le(p, num(63), c)},
        {dlc_eq(p, h, num(12)), yes(0)},
        {dlc_expr1(p, DLC_EXPR_ABS, h), h},
        {dlc_min(p, dlc_muli(p, dlc_min(p, d, num(4)), 2), num(4)), dlc_min(p, dlc_muli(p, d, 2), num(4))},
        {dlc_min(p, dlc_muli(p, dlc_min(p, d, num(4)), 2), num(9)), dlc_min(p, dlc_muli(p, d, 2), num(8))},
        {dlc_max(p, dlc_muli(p, dlc_max(p, d, num(4)), 2), num(4)), dlc_max(p, dlc_muli(p, d, 2), num(8))},
        {dlc_min(p, dlc_muli(p, d, 9), num(4)), dlc_min(p, dlc_muli(p, d, 4), num(4))},
        {dlc_min(p, dlc_muli(p, dlc_addi(p, d, -1), 9), num(4)), dlc_min(p, dlc_muli(p, dlc_addi(p, d, -1), 9), num(4))},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        ck_assert_msg(dlc_expr_simplify(p, cases[n].from, &r) == cases[n].to, "case %zu", n);
    dlc_expr guarded = dlc_expr_load(p, DLC_F32, 0, &h, 1, dlc_in_range(p, h, num(12)), 0, 0);
    ck_assert_uint_eq(dlc_expr_simplify(p, guarded, &r),
                      dlc_expr_load(p, DLC_F32, 0, &h, 1, 0, 0, 0));
}
END_TEST

/* Tiles begin at multiples: b at one of 32 in a block, l < 8 behind one of 8, c; what is not told by that stays one quotient. */
START_TEST(known_multiples)
{
    dlc_interval axes[] = {{0, 1023}, {0, 1016}, {0, 7}};
    const int64_t of[] = {32, 8, 1};
    dlc_ranges r = {.axes = axes, .naxes = 3, .multiples = of};
    dlc_expr b = ax(0), c = ax(1), l = ax(2);
    dlc_expr inside = dlc_sub(p, dlc_add(p, dlc_muli(p, c, 2), l), b), apart = dlc_sub(p, dlc_add(p, c, l), b);
    const struct {
        dlc_expr from, to;
    } cases[] = {
        {dlc_floordiv(p, inside, num(16)), dlc_sub(p, dlc_floordiv(p, c, num(8)), dlc_floordiv(p, b, num(16)))},
        {dlc_mod(p, inside, num(16)), l},
        {dlc_floordiv(p, dlc_sub(p, l, b), num(32)), dlc_sub(p, num(0), dlc_floordiv(p, b, num(32)))},
        {dlc_mod(p, dlc_sub(p, l, b), num(32)), l},
        {dlc_floordiv(p, apart, num(16)), dlc_floordiv(p, apart, num(16))},
        {dlc_mod(p, dlc_sub(p, l, b), num(48)), dlc_mod(p, dlc_sub(p, l, b), num(48))},
        {dlc_floordiv(p, b, num(16)), dlc_floordiv(p, b, num(16))},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        ck_assert_msg(dlc_expr_simplify(p, cases[n].from, &r) == cases[n].to, "case %zu", n);
}
END_TEST

/* Axes i < n, t < s, k < 384 with symbols n, s: what a dynamic reshape leaves. */
START_TEST(symbolic_extents)
{
    dlc_interval axes[] = {{0, 1023}, {0, 511}, {0, 383}, {0, INT64_MAX}, {0, INT64_MAX}};
    dlc_interval symbols[] = {{0, 1024}, {0, 512}, {1, 1000}};
    dlc_expr n = sy(0), s = sy(1), i = ax(0), t = ax(1), k = ax(2), m = ax(3), o = ax(4);
    dlc_expr most = dlc_expr2(p, DLC_EXPR_MAX, dlc_sub(p, n, s), num(0));
    dlc_expr extents[] = {n, s, num(384), dlc_mul(p, dlc_muli(p, n, 12), s), most};
    dlc_ranges r = {
        .axes = axes, .symbols = symbols, .naxes = 5, .nsymbols = 3, .extents = extents};
    dlc_expr row = dlc_add(p, dlc_mul(p, i, s), t), flat = dlc_add(p, dlc_muli(p, row, 384), k);
    dlc_expr plane = dlc_muli(p, s, 384);
    const struct {
        dlc_expr from, to;
    } cases[] = {
        {dlc_floordiv(p, t, s), num(0)},
        {dlc_mod(p, t, s), t},
        {dlc_floordiv(p, row, s), i},
        {dlc_mod(p, row, s), t},
        {dlc_floordiv(p, flat, plane), i},
        {dlc_mod(p, dlc_floordiv(p, flat, num(384)), s), t},
        {dlc_mod(p, flat, num(384)), k},
        {dlc_floordiv(p, flat, num(64)),
         dlc_add(p, dlc_muli(p, row, 6), dlc_floordiv(p, k, num(64)))},
        {dlc_lt(p, t, s), yes(1)},
        {dlc_lt(p, row, dlc_mul(p, n, s)), yes(1)},
        {dlc_in_range(p, flat, dlc_muli(p, dlc_mul(p, n, s), 384)), yes(1)},
        {dlc_lt(p, dlc_floordiv(p, m, dlc_muli(p, s, 12)), n), yes(1)},
        {dlc_floordiv(p, m, extents[3]), num(0)},
        {dlc_floordiv(p, o, most), num(0)},
        {dlc_mod(p, o, most), o},
        {dlc_lt(p, o, most), yes(1)},
        {dlc_lt(p, dlc_addi(p, t, 1), s), dlc_lt(p, dlc_addi(p, t, 1), s)},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        ck_assert_msg(dlc_expr_simplify(p, cases[c].from, &r) == cases[c].to, "case %zu", c);
}
END_TEST

/* Axes i, j, l of what windows in steps leave of images of any size, and k < 3, a tap: no tap lies outside. */
START_TEST(windows_in_steps)
{
    dlc_interval axes[] = {{0, INT32_MAX}, {0, INT32_MAX}, {0, INT32_MAX}, {0, 2}}, symbols[] = {{1, INT32_MAX}};
    dlc_expr h = sy(0), i = ax(0), j = ax(1), l = ax(2), k = ax(3);
    dlc_expr half = dlc_floordiv(p, dlc_addi(p, h, 1), num(2)), quarter = dlc_floordiv(p, dlc_addi(p, half, 1), num(2));
    dlc_expr extents[] = {dlc_addi(p, half, -1), half, quarter, num(3)};
    dlc_ranges r = {.axes = axes, .symbols = symbols, .naxes = 4, .nsymbols = 1, .extents = extents};
    dlc_expr at_i = dlc_add(p, dlc_muli(p, i, 2), k), at_j = dlc_add(p, dlc_muli(p, j, 2), k), at_l = dlc_add(p, dlc_muli(p, l, 4), k);
    const struct {
        dlc_expr from, to;
    } cases[] = {
        {dlc_lt(p, at_i, h), yes(1)},
        {dlc_lt(p, dlc_addi(p, at_i, 1), h), dlc_lt(p, dlc_addi(p, at_i, 1), h)},
        {dlc_lt(p, at_j, dlc_addi(p, h, 2)), yes(1)}, /* a border of 1 on each side */
        {dlc_lt(p, at_j, dlc_addi(p, h, 1)), dlc_lt(p, at_j, dlc_addi(p, h, 1))},
        {dlc_lt(p, at_l, dlc_addi(p, h, 2)), yes(1)}, /* the size has a quotient of a quotient */
        {dlc_lt(p, at_l, dlc_addi(p, h, 1)), dlc_lt(p, at_l, dlc_addi(p, h, 1))},
        {dlc_le(p, h, dlc_addi(p, dlc_muli(p, half, 2), 0)), yes(1)}, /* rounded up, less than a step is added */
        {dlc_lt(p, h, dlc_muli(p, half, 2)), dlc_lt(p, h, dlc_muli(p, half, 2))},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        ck_assert_msg(dlc_expr_simplify(p, cases[c].from, &r) == cases[c].to, "case %zu", c);
}
END_TEST

/* --- random expressions: canonical form and simplification keep the value --- */

enum { NSYMBOLS = 3, NAXES = 3 };
typedef struct {
    dlc_expr expr;
    int64_t value; /* by the scalar semantics, node by node */
} valued;

static valued apply(dlc_expr_op op, valued a, valued b)
{
    dlc_scalar args[] = {{.i = a.value}, {.i = b.value}};
    return (valued){dlc_expr2(p, op, a.expr, b.expr),
                    dlc_scalar_apply(op, DLC_I64, DLC_I64, args).i};
}

static valued random_leaf(const int64_t *axes, const int64_t *symbols)
{
    uint32_t id = draw(3);
    switch (draw(3)) {
    case 0:
        return (valued){sy(id), symbols[id]};
    case 1:
        return (valued){ax(id), axes[id]};
    default:
        return (valued){num((int64_t)draw(13) - 4), (int64_t)0};
    }
}

static valued random_size(const int64_t *symbols)
{
    uint32_t id = draw(3);
    int64_t factor = 1 + draw(6);
    if (draw(2))
        return (valued){num(factor), factor};
    return (valued){dlc_muli(p, sy(id), factor), symbols[id] * factor};
}

static valued random_step(valued *pool, uint32_t n, const int64_t *symbols)
{
    static const dlc_expr_op ops[] = {DLC_EXPR_ADD, DLC_EXPR_SUB, DLC_EXPR_MUL, DLC_EXPR_MIN,
                                      DLC_EXPR_MAX};
    valued a = pool[draw(n)], b = pool[draw(n)];
    switch (draw(3)) {
    case 0:
        return apply(ops[draw(5)], a, b);
    case 1:
        return apply(DLC_EXPR_FLOORDIV, a, random_size(symbols));
    default:
        return apply(DLC_EXPR_MOD, a, random_size(symbols));
    }
}

static void check_random(uint64_t seed)
{
    random_state = seed;
    dlc_mark mark = dlc_arena_mark(arena);
    p = dlc_pool_create(arena);
    int64_t symbols[NSYMBOLS], values[NAXES], multiples[NAXES];
    dlc_interval symbol_ranges[NSYMBOLS], axis_ranges[NAXES];
    dlc_expr extents[NAXES], with[NAXES];
    for (uint32_t i = 0; i < NSYMBOLS; i++) {
        symbols[i] = 1 + draw(6);
        symbol_ranges[i] = (dlc_interval){1, 6};
        extents[i] = draw(2) ? sy(i) : num(symbols[i]);
        axis_ranges[i] = (dlc_interval){
            0, dlc_expr_range(p, extents[i],
                              &(dlc_ranges){.symbols = symbol_ranges, .nsymbols = NSYMBOLS})
                       .hi -
                   1};
        multiples[i] = 1 + draw(3);
        values[i] = draw((uint32_t)symbols[i]) / multiples[i] * multiples[i];
        with[i] = num(values[i]);
    }
    dlc_ranges ranges = {axis_ranges, symbol_ranges, NAXES, NSYMBOLS, extents, multiples, NULL}, keeping = ranges;
    keeping.known = dlc_known_create(arena);
    valued made[24];
    dlc_expr all = 0;
    uint32_t n = 0;
    int is_all = 1;
    for (; n < 6; n++) {
        made[n] = random_leaf(values, symbols);
        int64_t constant;
        if (dlc_expr_is_int(p, made[n].expr, &constant))
            made[n].value = constant;
    }
    for (; n < 24; n++) {
        made[n] = random_step(made, n, symbols);
        if (made[n].value > 1000000 || made[n].value < -1000000) /* indices do not overflow */
            made[n] = made[0];
        dlc_expr point = dlc_expr_substitute(p, made[n].expr, with, NAXES);
        ck_assert_msg(dlc_expr_eval(p, point, symbols) == made[n].value, "seed %lu step %u: form",
                      (unsigned long)seed, n);
        dlc_expr alone = dlc_expr_simplify(p, made[n].expr, &ranges), simple = dlc_expr_substitute(p, alone, with, NAXES);
        ck_assert_msg(dlc_expr_simplify(p, made[n].expr, &keeping) == alone, "seed %lu step %u: kept", (unsigned long)seed, n);
        ck_assert_msg(dlc_expr_eval(p, simple, symbols) == made[n].value,
                      "seed %lu step %u: simplified", (unsigned long)seed, n);
        dlc_interval range = dlc_expr_range(p, made[n].expr, &ranges);
        ck_assert_msg(range.lo <= made[n].value && made[n].value <= range.hi,
                      "seed %lu step %u: range", (unsigned long)seed, n);
        int64_t order = made[n].value < made[n - 1].value;
        dlc_expr less = dlc_expr_simplify(p, dlc_lt(p, made[n].expr, made[n - 1].expr), &ranges);
        ck_assert_msg(dlc_expr_eval(p, dlc_expr_substitute(p, less, with, NAXES), symbols) == order,
                      "seed %lu step %u: comparison", (unsigned long)seed, n);
        all = dlc_and(p, n % 4 ? all : 0, dlc_le(p, made[n].expr, dlc_addi(p, made[n - 1].expr, n % 3 ? 5 : -1)));
        is_all = (n % 4 ? is_all : 1) && made[n].value <= made[n - 1].value + (n % 3 ? 5 : -1);
        dlc_expr both = dlc_expr_simplify(p, all, &keeping);
        ck_assert_msg(both == dlc_expr_simplify(p, all, &ranges), "seed %lu step %u: kept conjunction", (unsigned long)seed, n);
        ck_assert_msg(dlc_expr_eval(p, dlc_expr_substitute(p, both, with, NAXES), symbols) == is_all,
                      "seed %lu step %u: conjunction", (unsigned long)seed, n);
    }
    dlc_arena_release(arena, mark);
}

START_TEST(random_expressions_keep_their_values)
{
    for (uint64_t seed = 0; seed < 300; seed++)
        check_random(seed + 1000u * (unsigned)_i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("range");
    TCase *tests = tcase_create("range");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, intervals);
    tcase_add_test(tests, bounds_do_not_wrap);
    tcase_add_test(tests, constant_extents);
    tcase_add_test(tests, known_multiples);
    tcase_add_test(tests, symbolic_extents);
    tcase_add_test(tests, windows_in_steps);
    tcase_add_loop_test(tests, random_expressions_keep_their_values, 0, 4);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

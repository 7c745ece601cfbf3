/* The expression pool: one form for equal index expressions, identities that hold for all values,
 * and no others. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "ir/expr/build.h"
#include "tests/unit/small_pool.h"
#include "tests/unit/suite.h"

static dlc_expr product(uint32_t n, const dlc_expr *factors)
{
    dlc_expr result = num(1);
    for (uint32_t i = 0; i < n; i++)
        result = dlc_mul(p, result, factors[i]);
    return result;
}

/* m taken apart along dims and put together again, in an order of the terms given by `seed`. */
static dlc_expr round_trip(dlc_expr m, uint32_t n, const dlc_expr *dims, unsigned seed)
{
    dlc_expr parts[8], sum = num(0);
    for (uint32_t i = 0; i < n; i++) {
        dlc_expr inner = product(n - 1 - i, dims + i + 1);
        dlc_expr at = dlc_floordiv(p, m, inner);
        if (i > 0)
            at = dlc_mod(p, at, dims[i]);
        parts[i] = dlc_mul(p, at, inner);
    }
    for (uint32_t left = n; left; left--) {
        uint32_t pick = seed % left;
        seed /= left;
        sum = dlc_add(p, sum, parts[pick]);
        parts[pick] = parts[left - 1];
    }
    return sum;
}

START_TEST(sums_have_one_form)
{
    dlc_expr i = ax(0), s = sy(0), t = ax(1);
    dlc_expr a =
        dlc_addi(p, dlc_add(p, dlc_muli(p, dlc_mul(p, i, s), 384), dlc_muli(p, t, 384)), 5);
    dlc_expr b = dlc_muli(p, dlc_add(p, t, dlc_mul(p, s, i)), 384);
    ck_assert_uint_eq(a, dlc_addi(p, b, 5));
    ck_assert_uint_eq(dlc_sub(p, a, b), num(5));
    ck_assert_uint_eq(dlc_sub(p, i, i), num(0));
    ck_assert_uint_eq(dlc_expr1(p, DLC_EXPR_NEG, dlc_sub(p, i, t)), dlc_sub(p, t, i));
    dlc_expr c, r;
    ck_assert(dlc_expr_linear(p, a, 0, &c, &r));
    ck_assert_uint_eq(c, dlc_muli(p, s, 384));
    ck_assert_uint_eq(r, dlc_addi(p, dlc_muli(p, t, 384), 5));
    ck_assert(!dlc_expr_linear(p, dlc_mul(p, i, i), 0, &c, &r));
    ck_assert(!dlc_expr_linear(p, dlc_mod(p, i, num(3)), 0, &c, &r));
    ck_assert(dlc_expr_linear(p, dlc_mod(p, i, num(3)), 1, &c, &r));
}
END_TEST

/* In whatever order terms come, more than are sorted in one run. */
START_TEST(long_sums_have_one_form)
{
    enum { N = 101 };
    dlc_expr up = num(7), down = num(0), halves = num(7);
    for (uint32_t i = 0; i < N; i++) {
        up = dlc_add(p, up, dlc_muli(p, sy(i), (int64_t)i + 1));
        down = dlc_add(p, dlc_muli(p, sy(N - 1 - i), N - (int64_t)i), down);
        halves = dlc_add(p, halves, dlc_muli(p, sy(i * 37 % N), (int64_t)(i * 37 % N) + 1));
    }
    ck_assert_uint_eq(dlc_addi(p, down, 7), up);
    ck_assert_uint_eq(halves, up);
    ck_assert_uint_eq(dlc_sub(p, dlc_add(p, up, down), dlc_muli(p, up, 2)), num(-7));
    ck_assert_uint_eq(dlc_sum_nterms(p, up), N + 1);
}
END_TEST

/* Axes 64 apart share a bit of what is known of an expression. */
START_TEST(axes_in_use)
{
    dlc_expr sum = dlc_add(p, dlc_muli(p, ax(3), 5), dlc_floordiv(p, ax(67), sy(0)));
    ck_assert(dlc_expr_uses_axis(p, sum, 3) && dlc_expr_uses_axis(p, sum, 67));
    ck_assert(!dlc_expr_uses_axis(p, sum, 131) && !dlc_expr_uses_axis(p, sum, 4));
    ck_assert(!dlc_expr_uses_axis(p, sy(3), 3));
    dlc_expr with[68] = {[3] = num(2)};
    ck_assert(!dlc_expr_uses_axis(p, dlc_expr_substitute(p, sum, with, 68), 3));
}
END_TEST

START_TEST(quotients)
{
    dlc_expr i = ax(0), j = ax(1), s = sy(0), u = sy(1);
    dlc_expr x = dlc_add(p, dlc_muli(p, i, 12), dlc_addi(p, j, 30));
    ck_assert_uint_eq(dlc_floordiv(p, x, num(12)),
                      dlc_addi(p, dlc_add(p, i, dlc_floordiv(p, dlc_addi(p, j, 6), num(12))), 2));
    ck_assert_uint_eq(dlc_mod(p, x, num(12)), dlc_mod(p, dlc_addi(p, j, 6), num(12)));
    ck_assert_uint_eq(dlc_floordiv(p, dlc_floordiv(p, i, num(6)), num(4)),
                      dlc_floordiv(p, i, num(24)));
    ck_assert_uint_eq(dlc_floordiv(p, dlc_floordiv(p, i, s), u),
                      dlc_floordiv(p, i, dlc_mul(p, s, u)));
    ck_assert_uint_eq(dlc_floordiv(p, dlc_mul(p, dlc_mul(p, s, u), num(384)), u),
                      dlc_muli(p, s, 384));
    ck_assert_uint_eq(dlc_floordiv(p, dlc_muli(p, i, 8), num(12)),
                      dlc_floordiv(p, dlc_muli(p, i, 2), num(3)));
    ck_assert_uint_eq(dlc_mod(p, dlc_muli(p, i, 8), num(12)),
                      dlc_muli(p, dlc_mod(p, dlc_muli(p, i, 2), num(3)), 4));
    ck_assert_uint_eq(dlc_floordiv(p, dlc_mod(p, i, num(24)), num(4)),
                      dlc_mod(p, dlc_floordiv(p, i, num(4)), num(6)));
    ck_assert_uint_eq(dlc_mod(p, dlc_mod(p, i, num(24)), num(4)), dlc_mod(p, i, num(4)));
    /* a sum as divisor: (b*(p+c) + t) with a factor */
    dlc_expr total = dlc_add(p, s, u),
             m = dlc_add(p, dlc_mul(p, dlc_mul(p, i, total), num(768)), j);
    ck_assert_uint_eq(dlc_floordiv(p, m, dlc_muli(p, total, 768)),
                      dlc_add(p, i, dlc_floordiv(p, j, dlc_muli(p, total, 768))));
    ck_assert_uint_eq(dlc_floordiv(p, i, num(0)), num(0));
    ck_assert_uint_eq(dlc_mod(p, i, num(1)), num(0));
}
END_TEST

START_TEST(delinearise_linearise_is_nothing)
{
    const struct {
        uint32_t n;
        dlc_expr dims[5];
    } shapes[] = {
        {2, {num(7), num(12)}},
        {3, {sy(0), num(12), num(64)}},
        {3, {sy(0), sy(1), num(384)}},
        {4, {sy(0), sy(1), sy(2), num(3)}},
        {4, {num(2), num(3), num(5), num(7)}},
        {5, {sy(0), num(12), sy(1), sy(2), num(64)}},
        {4, {sy(3), dlc_add(p, sy(0), sy(1)), num(12), num(64)}},
        {4, {sy(3), dlc_addi(p, sy(0), 1), sy(2), dlc_addi(p, sy(1), 2)}},
    };
    for (uint32_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (unsigned seed = 0; seed < 120; seed++) {
            dlc_expr m = ax(0), c = sy(4);
            ck_assert_uint_eq(round_trip(m, shapes[k].n, shapes[k].dims, seed), m);
            dlc_expr wide =
                dlc_add(p, dlc_mul(p, round_trip(m, shapes[k].n, shapes[k].dims, seed), c), ax(1));
            ck_assert_uint_eq(wide, dlc_add(p, dlc_mul(p, m, c), ax(1)));
        }
}
END_TEST

/* n*OH*OW*C + oh*OW*C + ow*C + c, in the order an NHWC offset is summed */
START_TEST(flattened_rows_are_linear)
{
    dlc_expr m = ax(0), c = ax(1), oh = sy(0), ow = sy(1), width = sy(2);
    dlc_expr n = dlc_floordiv(p, m, dlc_mul(p, oh, ow));
    dlc_expr y = dlc_mod(p, dlc_floordiv(p, m, ow), oh), x = dlc_mod(p, m, ow);
    dlc_expr offset = dlc_mul(p, dlc_mul(p, dlc_mul(p, n, oh), ow), width);
    offset = dlc_add(p, offset, dlc_mul(p, dlc_mul(p, y, ow), width));
    offset = dlc_add(p, dlc_add(p, offset, dlc_mul(p, x, width)), c);
    ck_assert_uint_eq(offset, dlc_add(p, dlc_mul(p, m, width), c));
    /* only two of the three levels: the rest of a plane */
    dlc_expr plane = dlc_add(p, dlc_mul(p, y, ow), x);
    ck_assert_uint_eq(plane, dlc_mod(p, m, dlc_mul(p, oh, ow)));
    /* a near miss keeps its terms */
    ck_assert_uint_ne(dlc_add(p, dlc_muli(p, dlc_floordiv(p, m, num(3)), 6), dlc_mod(p, m, num(3))),
                      m);
}
END_TEST

START_TEST(reshape_chains)
{
    /* [n,12,64] -> [n,768] -> [n*4,192] -> [n,12,64], the middle ones never materialised */
    dlc_expr m = ax(0);
    dlc_expr i = dlc_floordiv(p, m, num(192)), j = dlc_mod(p, m, num(192));
    dlc_expr flat = dlc_add(p, dlc_muli(p, i, 192), j);
    dlc_expr h = dlc_mod(p, dlc_floordiv(p, flat, num(64)), num(12));
    dlc_expr d = dlc_mod(p, flat, num(64)), b = dlc_floordiv(p, flat, num(768));
    dlc_expr again = dlc_add(p, dlc_add(p, dlc_muli(p, b, 768), dlc_muli(p, h, 64)), d);
    ck_assert_uint_eq(again, m);
}
END_TEST

START_TEST(comparisons)
{
    dlc_expr i = ax(0), j = ax(1);
    ck_assert_uint_eq(dlc_lt(p, i, dlc_addi(p, i, 1)), dlc_expr_bool(p, 1));
    ck_assert_uint_eq(dlc_le(p, dlc_addi(p, i, 1), i), dlc_expr_bool(p, 0));
    ck_assert_uint_eq(dlc_lt(p, dlc_muli(p, i, 2), num(5)), dlc_lt(p, i, num(3)));
    ck_assert_uint_eq(dlc_le(p, num(0), dlc_addi(p, i, -1)), dlc_le(p, num(1), i));
    ck_assert_uint_eq(dlc_lt(p, dlc_add(p, i, j), dlc_addi(p, j, 4)), dlc_lt(p, i, num(4)));
    ck_assert_uint_eq(dlc_expr1(p, DLC_EXPR_NOT, dlc_lt(p, i, j)), dlc_le(p, j, i));
    ck_assert_uint_eq(dlc_eq(p, dlc_addi(p, i, 1), j), dlc_eq(p, dlc_addi(p, j, -1), i));
    ck_assert_uint_eq(dlc_eq(p, dlc_muli(p, i, 2), num(3)), dlc_expr_bool(p, 0));
    dlc_expr a = dlc_lt(p, i, num(4)), b = dlc_lt(p, j, num(4));
    ck_assert_uint_eq(dlc_and(p, a, b), dlc_and(p, b, dlc_and(p, a, b)));
    ck_assert_uint_eq(dlc_and(p, a, dlc_le(p, num(4), i)), dlc_expr_bool(p, 0));
    ck_assert_uint_eq(dlc_and(p, 0, a), a);
    /* loaded values wrap: x < x + 1 is not certain */
    dlc_expr x = dlc_expr_load(p, DLC_I64, 0, &i, 1, 0, 0, 0);
    int64_t value;
    ck_assert(!dlc_expr_is_int(p, dlc_lt(p, x, dlc_addi(p, x, 1)), &value));
    ck_assert_uint_eq(dlc_eq(p, x, dlc_addi(p, x, 1)), dlc_expr_bool(p, 0));
    ck_assert(dlc_floordiv(p, dlc_muli(p, x, 3), num(3)) != x);
}
END_TEST

START_TEST(float_identities)
{
    dlc_expr i = ax(0), x = dlc_expr_load(p, DLC_F32, 0, &i, 1, 0, 0, 0);
    dlc_expr zero = dlc_expr_const(p, DLC_F32, 0), one = dlc_expr_const(p, DLC_F32, 1);
    dlc_expr minus_zero = dlc_expr_const(p, DLC_F32, -0.0), four = dlc_expr_const(p, DLC_F32, 4);
    ck_assert_uint_eq(dlc_mul(p, x, one), x);
    ck_assert_uint_eq(dlc_sub(p, x, zero), x);
    ck_assert_uint_eq(dlc_add(p, minus_zero, x), x);
    ck_assert_uint_ne(dlc_add(p, x, zero), x);
    ck_assert_uint_ne(dlc_mul(p, x, zero), zero);
    ck_assert_uint_ne(dlc_sub(p, x, x), zero);
    ck_assert_uint_eq(dlc_expr2(p, DLC_EXPR_DIV, x, four),
                      dlc_mul(p, x, dlc_expr_const(p, DLC_F32, 0.25)));
    ck_assert_uint_eq(dlc_mul(p, x, four), dlc_mul(p, four, x));
    ck_assert_uint_ne(dlc_max(p, x, zero),
                      dlc_max(p, zero, x)); /* which zero or NaN wins differs */
    ck_assert_uint_ne(dlc_eq(p, x, x), dlc_expr_bool(p, 1));
    ck_assert_uint_eq(dlc_expr_const(p, DLC_F32, -NAN), dlc_expr_const(p, DLC_F32, NAN));
}
END_TEST

START_TEST(conversions)
{
    dlc_expr i = ax(0);
    dlc_expr u8 = dlc_expr_load(p, DLC_U8, 0, &i, 1, 0, 0, 0),
             i64 = dlc_expr_load(p, DLC_I64, 1, &i, 1, 0, 0, 0);
    dlc_expr f16 = dlc_expr_load(p, DLC_F16, 2, &i, 1, 0, 0, 0),
             f64 = dlc_expr_load(p, DLC_F64, 3, &i, 1, 0, 0, 0);
    dlc_expr f32u8 = dlc_expr_cast(p, DLC_F32, u8);
    ck_assert_uint_eq(dlc_expr_cast(p, DLC_F32, dlc_expr_cast(p, DLC_I32, u8)), f32u8);
    ck_assert_uint_eq(dlc_expr_cast(p, DLC_I8, f32u8), dlc_expr_cast_sat(p, DLC_I8, u8));
    ck_assert_uint_eq(dlc_expr_cast(p, DLC_I8, dlc_expr_cast(p, DLC_I32, i64)),
                      dlc_expr_cast(p, DLC_I8, i64));
    ck_assert_uint_ne(dlc_expr_cast(p, DLC_I64, dlc_expr_cast(p, DLC_I32, i64)), i64);
    ck_assert_uint_eq(dlc_expr_cast(p, DLC_F16, dlc_expr_cast(p, DLC_F32, f16)), f16);
    ck_assert_uint_ne(dlc_expr_cast(p, DLC_F64, dlc_expr_cast(p, DLC_F32, f64)), f64);
    ck_assert_uint_eq(dlc_expr_cast_sat(p, DLC_I32, u8), dlc_expr_cast(p, DLC_I32, u8));
}
END_TEST

/* f32(i32(BYTE(rint(x) + shift)) - taken) */
static dlc_expr back_from_byte(dlc_dtype byte, dlc_expr x, double shift, int64_t taken)
{
    dlc_expr whole = dlc_add(p, dlc_expr1(p, DLC_EXPR_RINT, x), dlc_expr_const(p, DLC_F32, shift));
    dlc_expr wide = dlc_expr_cast(p, DLC_I32, dlc_expr_cast(p, byte, whole));
    return dlc_expr_cast(p, DLC_F32, dlc_sub(p, wide, dlc_expr_const_i(p, DLC_I32, taken)));
}

static dlc_expr number_for_load(void *number, dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    return node->op == DLC_EXPR_LOAD ? *(const dlc_expr *)number : dlc_pool_rebuild(pool, node, args);
}

static const struct {
    dlc_dtype byte;
    double shift;
    int64_t taken;
} backs[] = {{DLC_U8, 3, 3}, {DLC_U8, 0, 0}, {DLC_U8, 128, 5}, {DLC_I8, 0, 0}, {DLC_I8, -7, -7}, {DLC_I8, 12, 0}};

START_TEST(bytes_of_rounded_floats)
{
    static const double numbers[] = {0,     -0.0,  0.3, -0.3, 0.5,  1.5,   -0.5, -1.5,     124.5,    127.5, -128.5,
                                     251.5, 252.5, 255.5, 1e9,  -1e9, 1e38, -1e38, NAN, INFINITY, -INFINITY};
    dlc_expr zero = num(0), x = dlc_expr_load(p, DLC_F32, 0, &zero, 1, 0, 0, 0);
    dlc_expr limited = back_from_byte(backs[_i].byte, x, backs[_i].shift, backs[_i].taken);
    ck_assert_int_eq(dlc_op_of(p, limited), DLC_EXPR_ADD);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        dlc_expr number = dlc_expr_const(p, DLC_F32, numbers[i]);
        dlc_expr want = back_from_byte(backs[_i].byte, number, backs[_i].shift, backs[_i].taken);
        ck_assert_int_eq(dlc_op_of(p, want), DLC_EXPR_CONST);
        ck_assert_msg(dlc_expr_rewrite(p, p, limited, number_for_load, &number) == want, "of %g", numbers[i]);
    }
    dlc_expr half = dlc_expr_cast(p, DLC_F32, dlc_expr_cast(p, DLC_U8, dlc_mul(p, x, x)));
    ck_assert_int_eq(dlc_op_of(p, half), DLC_EXPR_CAST); /* not rounded: a byte cuts it */
}
END_TEST

START_TEST(integers_do_not_show_the_sign_of_zero)
{
    dlc_expr x = dlc_expr_load(p, DLC_F32, 0, NULL, 0, 0, 0, 0), y = dlc_expr_load(p, DLC_F32, 1, NULL, 0, 0, 0, 0);
    dlc_expr zero = dlc_expr_const(p, DLC_F32, 0), two = dlc_expr_const(p, DLC_F32, 2);
    dlc_expr plain = dlc_add(p, x, zero); /* 0 of -0 */
    ck_assert_int_eq(dlc_op_of(p, plain), DLC_EXPR_ADD);
    ck_assert_uint_eq(dlc_expr_cast(p, DLC_I32, plain), dlc_expr_cast(p, DLC_I32, x));
    dlc_expr smaller = dlc_lt(p, plain, two), limited = dlc_select(p, smaller, plain, two);
    dlc_expr sum = dlc_expr3(p, DLC_EXPR_MULADD, limited, two, dlc_mul(p, plain, y));
    dlc_expr bare = dlc_select(p, dlc_lt(p, x, two), x, two);
    dlc_expr want = dlc_expr3(p, DLC_EXPR_MULADD, bare, two, dlc_mul(p, x, y));
    ck_assert_uint_eq(dlc_expr_cast(p, DLC_U8, dlc_expr1(p, DLC_EXPR_RINT, sum)), dlc_expr_cast(p, DLC_U8, dlc_expr1(p, DLC_EXPR_RINT, want)));
    dlc_expr quotient = dlc_expr2(p, DLC_EXPR_DIV, two, plain); /* infinite, of either sign */
    ck_assert_uint_eq(dlc_arg(p, dlc_expr_cast(p, DLC_I32, quotient), 0), quotient);
    ck_assert_uint_eq(dlc_arg(p, dlc_expr_cast(p, DLC_F64, plain), 0), plain);
    dlc_expr bits = dlc_expr_bitcast(p, DLC_I32, plain);
    ck_assert_uint_eq(dlc_arg(p, bits, 0), plain);
    ck_assert_uint_eq(dlc_arg(p, dlc_expr_cast(p, DLC_I32, dlc_add(p, x, two)), 0), dlc_add(p, x, two));
}
END_TEST

START_TEST(loads_and_rewriting)
{
    dlc_expr index[] = {ax(0), dlc_addi(p, ax(1), -1)};
    dlc_expr guard = dlc_in_range(p, index[1], num(8));
    dlc_expr x = dlc_expr_load(p, DLC_F32, 0, index, 2, guard, dlc_expr_const(p, DLC_F32, 0), 0);
    ck_assert_uint_eq(dlc_load_rank(p, x), 2);
    ck_assert_uint_eq(dlc_load_guard(p, x), guard);
    ck_assert_uint_eq(dlc_load_else(p, x), 0); /* zero is what none means */
    ck_assert_uint_eq(dlc_expr_load(p, DLC_F32, 0, index, 2, dlc_expr_bool(p, 0), 0, 0),
                      dlc_expr_const(p, DLC_F32, 0));
    dlc_expr with[] = {0, num(3)}, fixed = dlc_expr_substitute(p, x, with, 2);
    ck_assert_uint_eq(dlc_load_guard(p, fixed), 0);
    ck_assert_uint_eq(dlc_arg(p, fixed, 1), num(2));
    uint64_t axes = 0;
    dlc_expr_axes(p, x, &axes);
    ck_assert_uint_eq(axes, 3);
    ck_assert(dlc_expr_has_load(p, x) && !dlc_expr_has_load(p, guard));
    dlc_pool *other = dlc_pool_create(arena);
    dlc_expr copy = dlc_expr_rewrite(other, p, x, NULL, NULL);
    ck_assert_uint_eq(dlc_expr_rewrite(p, other, copy, NULL, NULL), x);
}
END_TEST

/* Powers by squaring: nodes grow with the squarings, not with the power. */
START_TEST(repeated_squaring_stays_small)
{
    dlc_expr i = ax(0), loaded = dlc_expr_load(p, DLC_I64, 0, &i, 1, 0, 0, 0);
    dlc_expr bases[] = {i, loaded, dlc_addi(p, loaded, 3), dlc_add(p, i, sy(0))};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
        dlc_expr x = bases[b];
        for (int n = 0; n < 64; n++)
            x = dlc_mul(p, x, x);
        ck_assert_uint_lt(p->nodes.n, 4000);
    }
    int64_t symbols[] = {3};
    dlc_expr power = sy(0);
    for (int n = 0; n < 7; n++)
        power = dlc_mul(p, power, power);
    uint64_t wanted = 1;
    for (int n = 0; n < 128; n++)
        wanted *= 3;
    ck_assert_int_eq(dlc_expr_eval(p, power, symbols), (int64_t)wanted);
}
END_TEST

START_TEST(evaluation)
{
    int64_t symbols[] = {7, -3};
    dlc_expr s = sy(0), t = sy(1);
    ck_assert_int_eq(dlc_expr_eval(p, dlc_add(p, dlc_mul(p, s, t), num(1)), symbols), -20);
    ck_assert_int_eq(dlc_expr_eval(p, dlc_floordiv(p, t, num(2)), symbols), -2);
    ck_assert_int_eq(dlc_expr_eval(p, dlc_lt(p, t, s), symbols), 1);
    dlc_expr scaled = dlc_mul(p, dlc_expr_cast(p, DLC_F32, s), dlc_expr_const(p, DLC_F32, 1.5));
    ck_assert_int_eq(
        dlc_expr_eval(p, dlc_expr_cast(p, DLC_I64, dlc_expr1(p, DLC_EXPR_FLOOR, scaled)), symbols),
        10);
    ck_assert_int_eq(
        dlc_expr_eval(p, dlc_select(p, dlc_lt(p, s, t), s, dlc_addi(p, t, 1)), symbols), -2);
}
END_TEST

/* Point by point, in any order, an evaluator says what the expression is with symbols for axes. Axes 2 and 66 share a bit. */
START_TEST(evaluation_at_points)
{
    enum { FAR = 66, NPOINTS = 400 };
    int64_t axes[FAR + 1] = {0}, symbols[] = {5, 0, 0, 0};
    dlc_expr at[2][3] = {{dlc_expr_axis(p, 0), dlc_expr_axis(p, 2), dlc_expr_axis(p, FAR)}, {sy(1), sy(2), sy(3)}}, value[2];
    for (int i = 0; i < 2; i++) {
        dlc_expr a = at[i][0], b = at[i][1], c = at[i][2], s = sy(0);
        dlc_expr row = dlc_add(p, dlc_floordiv(p, b, num(3)), a), column = dlc_add(p, dlc_mod(p, b, s), dlc_mul(p, c, num(2)));
        dlc_expr inside = dlc_and(p, dlc_lt(p, row, num(4)), dlc_lt(p, dlc_mul(p, s, s), dlc_add(p, column, num(20))));
        value[i] = dlc_select(p, inside, dlc_mul(p, row, column), dlc_sub(p, c, dlc_mul(p, s, s)));
    }
    dlc_expr both[] = {dlc_mod(p, at[0][1], sy(0)), value[0]};
    dlc_evaluator e = dlc_evaluator_of(p, both, 2, symbols, arena);
    for (uint32_t n = 0, random = 1; n < NPOINTS; n++) {
        uint32_t moved = (random = random * 1664525 + 1013904223) >> 24, to = moved / 3 % 7;
        moved %= 4; /* 3: none */
        if (moved < 3) {
            axes[((const uint32_t[]){0, 2, FAR})[moved]] = to;
            symbols[1 + moved] = to;
        }
        ck_assert_int_eq(dlc_evaluate(&e, axes), dlc_expr_eval(p, value[1], symbols));
        ck_assert_int_eq(e.values[both[0]].i, axes[2] % symbols[0]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expr");
    TCase *tests = tcase_create("expr");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, sums_have_one_form);
    tcase_add_test(tests, long_sums_have_one_form);
    tcase_add_test(tests, axes_in_use);
    tcase_add_test(tests, quotients);
    tcase_add_test(tests, delinearise_linearise_is_nothing);
    tcase_add_test(tests, flattened_rows_are_linear);
    tcase_add_test(tests, reshape_chains);
    tcase_add_test(tests, comparisons);
    tcase_add_test(tests, float_identities);
    tcase_add_test(tests, conversions);
    tcase_add_loop_test(tests, bytes_of_rounded_floats, 0, sizeof backs / sizeof *backs);
    tcase_add_test(tests, integers_do_not_show_the_sign_of_zero);
    tcase_add_test(tests, loads_and_rewriting);
    tcase_add_test(tests, repeated_squaring_stays_small);
    tcase_add_test(tests, evaluation);
    tcase_add_test(tests, evaluation_at_points);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* The operators on values: guarded integers, IEEE floats of four widths, conversions with one
 * rounding. */
#include "ir/expr/expr.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static int64_t on_ints(dlc_expr_op op, dlc_dtype dtype, int64_t a, int64_t b)
{
    dlc_scalar args[] = {{.i = a}, {.i = b}};
    return dlc_scalar_apply(op, dtype, dtype, args).i;
}

static const struct {
    dlc_expr_op op;
    dlc_dtype dtype;
    int64_t a, b, result;
} ints[] = {
    {DLC_EXPR_ADD, DLC_I8, 127, 1, -128},
    {DLC_EXPR_ADD, DLC_U8, 255, 1, 0},
    {DLC_EXPR_SUB, DLC_U32, 0, 1, UINT32_MAX},
    {DLC_EXPR_MUL, DLC_I64, INT64_MAX, 2, -2},
    {DLC_EXPR_MUL, DLC_I32, 65536, 65536, 0},
    {DLC_EXPR_NEG, DLC_I16, -32768, 0, -32768},
    {DLC_EXPR_ABS, DLC_I64, INT64_MIN, 0, INT64_MIN},
    {DLC_EXPR_ABS, DLC_U8, 200, 0, 200},
    {DLC_EXPR_MIN, DLC_U64, -1, 1, 1}, /* all ones is the largest */
    {DLC_EXPR_MAX, DLC_I64, -1, 1, 1},
    {DLC_EXPR_DIV, DLC_I32, 7, 0, 0},
    {DLC_EXPR_DIV, DLC_I32, -7, 2, -3},
    {DLC_EXPR_DIV, DLC_I32, INT32_MIN, -1, INT32_MIN},
    {DLC_EXPR_DIV, DLC_I64, INT64_MIN, -1, INT64_MIN},
    {DLC_EXPR_DIV, DLC_U64, -1, 2, INT64_MAX},
    {DLC_EXPR_REM, DLC_I64, INT64_MIN, -1, 0},
    {DLC_EXPR_REM, DLC_I32, -7, 2, -1},
    {DLC_EXPR_REM, DLC_I32, 7, 0, 0},
    {DLC_EXPR_FLOORDIV, DLC_I64, -7, 2, -4},
    {DLC_EXPR_FLOORDIV, DLC_I64, 7, -2, -4},
    {DLC_EXPR_FLOORDIV, DLC_I64, 7, 0, 0},
    {DLC_EXPR_FLOORDIV, DLC_U8, 250, 3, 83},
    {DLC_EXPR_MOD, DLC_I64, -7, 3, 2},
    {DLC_EXPR_MOD, DLC_I64, 7, -3, -2},
    {DLC_EXPR_MOD, DLC_I64, 7, 0, 0},
    {DLC_EXPR_MOD, DLC_U64, -1, 10, 5},
    {DLC_EXPR_SHL, DLC_I32, 1, 31, INT32_MIN},
    {DLC_EXPR_SHL, DLC_I32, 1, 32, 0},
    {DLC_EXPR_SHL, DLC_U8, 255, 4, 0xf0},
    {DLC_EXPR_SHL, DLC_I32, 1, -1, 0},
    {DLC_EXPR_SHR, DLC_I32, -8, 1, -4},
    {DLC_EXPR_SHR, DLC_I32, -8, 40, -1},
    {DLC_EXPR_SHR, DLC_I32, 8, 40, 0},
    {DLC_EXPR_SHR, DLC_U32, 0x80000000, 31, 1},
    {DLC_EXPR_SHR, DLC_U64, -1, 64, 0},
    {DLC_EXPR_NOT, DLC_U8, 1, 0, 254},
    {DLC_EXPR_NOT, DLC_I8, 1, 0, -2},
    {DLC_EXPR_NOT, DLC_BOOL, 1, 0, 0},
    {DLC_EXPR_XOR, DLC_BOOL, 1, 1, 0},
    {DLC_EXPR_AND, DLC_I32, -1, 12, 12},
    {DLC_EXPR_LT, DLC_U64, 1, -1, 1},
    {DLC_EXPR_LT, DLC_I64, 1, -1, 0},
    {DLC_EXPR_LE, DLC_I8, -3, -3, 1},
};

START_TEST(integers_are_guarded)
{
    ck_assert_int_eq(on_ints(ints[_i].op, ints[_i].dtype, ints[_i].a, ints[_i].b), ints[_i].result);
}
END_TEST

static dlc_scalar cast(dlc_dtype from, dlc_dtype to, dlc_scalar value, int saturate)
{
    return dlc_scalar_apply(saturate ? DLC_EXPR_CAST_SAT : DLC_EXPR_CAST, from, to, &value);
}

static const struct {
    dlc_dtype from, to;
    dlc_scalar value;
    int64_t result;
    int saturate;
} to_ints[] = {
    {DLC_F32, DLC_I8, {.f = 127.9}, 127, 0},
    {DLC_F32, DLC_I8, {.f = 300}, 127, 0},
    {DLC_F32, DLC_I8, {.f = -1e30}, -128, 0},
    {DLC_F32, DLC_U8, {.f = -0.5}, 0, 0},
    {DLC_F32, DLC_U8, {.f = 255.5}, 255, 0},
    {DLC_F64, DLC_I64, {.f = 9.3e18}, INT64_MAX, 0},
    {DLC_F64, DLC_I64, {.f = -1.9}, -1, 0},
    {DLC_F64, DLC_U64, {.f = 1.8e19}, (int64_t)18000000000000000000u, 0},
    {DLC_F64, DLC_U64, {.f = INFINITY}, -1, 0},
    {DLC_F64, DLC_I32, {.f = NAN}, 0, 0},
    {DLC_F32, DLC_BOOL, {.f = -0.0}, 0, 0},
    {DLC_F32, DLC_BOOL, {.f = NAN}, 1, 0},
    {DLC_I64, DLC_BOOL, {.i = 256}, 1, 0},
    {DLC_I64, DLC_U8, {.i = -1}, 255, 0},
    {DLC_I64, DLC_U8, {.i = -1}, 0, 1},
    {DLC_I64, DLC_I8, {.i = 1000}, 127, 1},
    {DLC_I64, DLC_I8, {.i = 1000}, -24, 0},
    {DLC_U64, DLC_I64, {.i = -1}, INT64_MAX, 1},
    {DLC_U8, DLC_I8, {.i = 200}, -56, 0},
    {DLC_I8, DLC_U64, {.i = -1}, -1, 0},
};

START_TEST(conversions_to_integers)
{
    ck_assert_int_eq(
        cast(to_ints[_i].from, to_ints[_i].to, to_ints[_i].value, to_ints[_i].saturate).i,
        to_ints[_i].result);
}
END_TEST

static const struct {
    dlc_dtype from, to;
    dlc_scalar value;
    double result;
} to_floats[] = {
    {DLC_F64, DLC_F16, {.f = 65519.999}, 65504},
    {DLC_F64, DLC_F16, {.f = 65520}, INFINITY},
    {DLC_F64, DLC_F16, {.f = 0x1.002p0}, 1}, /* a tie, to even */
    {DLC_F64,
     DLC_F16,
     {.f = 0x1.0020000000001p0},
     0x1.004p0}, /* through f32 it would be that tie */
    {DLC_F64, DLC_F16, {.f = 0x1p-25}, 0},
    {DLC_F64, DLC_F16, {.f = 0x1.8p-25}, 0x1p-24},
    {DLC_F64, DLC_BF16, {.f = 0x1.01p0}, 1},
    {DLC_F64, DLC_BF16, {.f = 0x1.03p0}, 0x1.04p0},
    {DLC_F64, DLC_BF16, {.f = 0x1p-133}, 0x1p-133},
    {DLC_F64, DLC_BF16, {.f = 3.4e38}, INFINITY},
    {DLC_F64, DLC_F32, {.f = 0x1.0000010000001p0}, 0x1.000002p0},
    {DLC_I64, DLC_F32, {.i = 16777217}, 16777216},
    {DLC_I64,
     DLC_F32,
     {.i = (INT64_C(1) << 54) + (INT64_C(1) << 30) + 1},
     0x1.000002p54}, /* not via f64's tie */
    {DLC_U64, DLC_F64, {.i = -1}, 0x1p64},
    {DLC_I64, DLC_F64, {.i = INT64_MIN}, -0x1p63},
    {DLC_U64, DLC_F32, {.i = -1}, 0x1p64},
    {DLC_I64, DLC_F16, {.i = 70000}, INFINITY},
    {DLC_BOOL, DLC_F32, {.i = 1}, 1},
};

START_TEST(conversions_to_floats_round_once)
{
    double result = cast(to_floats[_i].from, to_floats[_i].to, to_floats[_i].value, 0).f;
    ck_assert_msg(result == to_floats[_i].result, "%a instead of %a", result, to_floats[_i].result);
}
END_TEST

START_TEST(subnormals_are_flushed)
{
    static const double values[][2] = {{0x1p-126, 0x1p-126}, {-0x1p-126, -0x1p-126}, {0x1.fffffep-127, 0}, {-0x1p-149, -0.0}, {1.00390625, 1}};
    for (uint32_t i = 0; i < sizeof values / sizeof *values; i++) {
        dlc_scalar value = {.f = values[i][0]};
        double result = dlc_scalar_apply(DLC_EXPR_CAST_FTZ, DLC_F32, DLC_BF16, &value).f;
        ck_assert_msg(result == values[i][1] && signbit(result) == signbit(values[i][1]), "%a of %a", result, values[i][0]);
    }
}
END_TEST

/* Every 16-bit pattern is read and written back; what lies halfway between two goes to the even
 * one. */
START_TEST(half_floats_are_complete)
{
    const dlc_dtype dtypes[] = {DLC_F16, DLC_BF16};
    dlc_dtype dtype = dtypes[_i];
    double last = 0;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t in = (uint16_t)bits, out = 0;
        dlc_scalar value = dlc_scalar_read(dtype, &in);
        dlc_scalar_write(dtype, &out, value);
        if (isnan(value.f)) {
            ck_assert(isnan(dlc_scalar_read(dtype, &out).f));
            continue;
        }
        ck_assert_uint_eq(out, in);
        ck_assert(dlc_round_to(dtype, value.f) == value.f);
        if (bits && bits < 0x8000 && isfinite(value.f)) {
            double middle = (last + value.f) / 2, even = bits % 2 ? last : value.f;
            ck_assert(dlc_round_to(dtype, middle) == even);
            ck_assert(dlc_round_to(dtype, nextafter(middle, INFINITY)) == value.f);
            ck_assert(dlc_round_to(dtype, -nextafter(middle, 0)) == -last);
        }
        last = value.f;
    }
}
END_TEST

static double on_floats(dlc_expr_op op, dlc_dtype dtype, double a, double b, double c)
{
    dlc_scalar args[] = {{.f = a}, {.f = b}, {.f = c}};
    return dlc_scalar_apply(op, dtype, dtype, args).f;
}

static int same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static const struct {
    dlc_expr_op op;
    dlc_dtype dtype;
    double a, b, c, result;
} floats[] = {
    {DLC_EXPR_ADD, DLC_F32, 16777216, 1, 0, 16777216},
    {DLC_EXPR_ADD, DLC_F16, 2048, 1, 0, 2048},
    {DLC_EXPR_MUL, DLC_F32, 1e-30, 1e-30, 0, 0},
    {DLC_EXPR_DIV, DLC_F32, 1, 0, 0, INFINITY},
    {DLC_EXPR_DIV, DLC_F32, 0, 0, 0, NAN},
    {DLC_EXPR_MIN, DLC_F32, NAN, 1, 0, NAN},
    {DLC_EXPR_MIN, DLC_F32, 1, NAN, 0, NAN},
    {DLC_EXPR_MAX, DLC_F32, 0.0, -0.0, 0, -0.0}, /* not greater: the second */
    {DLC_EXPR_MAX, DLC_F32, -0.0, 0.0, 0, 0.0},
    {DLC_EXPR_REM, DLC_F32, -7, 3, 0, -1},
    {DLC_EXPR_MOD, DLC_F32, -7, 3, 0, 2},
    {DLC_EXPR_MOD, DLC_F32, 7, -3, 0, -2},
    {DLC_EXPR_MOD, DLC_F32, 6, -3, 0, -0.0},
    {DLC_EXPR_FMA, DLC_F32, 0x1.000002p0, 0x1.000002p0, -0x1.000004p0, 0x1p-46},
    {DLC_EXPR_FMA, DLC_F64, 0x1.0000000000001p0, 0x1.0000000000001p0, -0x1.0000000000002p0,
     0x1p-104},
    {DLC_EXPR_RINT, DLC_F32, 2.5, 0, 0, 2},
    {DLC_EXPR_RINT, DLC_F32, -0.4, 0, 0, -0.0},
    {DLC_EXPR_FLOOR, DLC_F32, -0.5, 0, 0, -1},
    {DLC_EXPR_SQRT, DLC_F32, 2, 0, 0, 0x1.6a09e6p0},
    {DLC_EXPR_SQRT, DLC_F32, -1, 0, 0, NAN},
    {DLC_EXPR_SCALE, DLC_F32, 1.5, -149, 0, 0x1p-148}, /* half to even */
    {DLC_EXPR_SCALE, DLC_F32, 0x1.000002p0, -127, 0, 0x1p-127},
    {DLC_EXPR_SCALE, DLC_F32, 0x1p-149, 276, 0, 0x1p127},
    {DLC_EXPR_SCALE, DLC_F32, 1, 128, 0, INFINITY},
    {DLC_EXPR_SCALE, DLC_F32, -1, -1000, 0, -0.0},
    {DLC_EXPR_SCALE, DLC_F32, 3, 1.75, 0, 6},
    {DLC_EXPR_SCALE, DLC_F32, 0, INFINITY, 0, NAN},
    {DLC_EXPR_SCALE, DLC_F32, 1, NAN, 0, NAN},
    {DLC_EXPR_SCALE, DLC_F64, 0x1.8p0, -1074, 0, 0x1p-1073},
    {DLC_EXPR_NEG, DLC_F32, 0, 0, 0, -0.0},
    {DLC_EXPR_ABS, DLC_F32, -0.0, 0, 0, 0.0},
};

START_TEST(floats_are_ieee)
{
    double result =
        on_floats(floats[_i].op, floats[_i].dtype, floats[_i].a, floats[_i].b, floats[_i].c);
    ck_assert_msg(same(result, floats[_i].result), "%a instead of %a", result, floats[_i].result);
}
END_TEST

START_TEST(comparisons_select_and_bits)
{
    dlc_scalar nans[] = {{.f = NAN}, {.f = 1}};
    ck_assert_int_eq(dlc_scalar_apply(DLC_EXPR_LT, DLC_F32, DLC_BOOL, nans).i, 0);
    ck_assert_int_eq(dlc_scalar_apply(DLC_EXPR_LE, DLC_F32, DLC_BOOL, nans).i, 0);
    ck_assert_int_eq(dlc_scalar_apply(DLC_EXPR_EQ, DLC_F32, DLC_BOOL, nans).i, 0);
    ck_assert_int_eq(dlc_scalar_apply(DLC_EXPR_NE, DLC_F32, DLC_BOOL, nans).i, 1);
    dlc_scalar chosen[] = {{.i = 0}, {.f = 1}, {.f = 2}}, one = {.f = 1};
    ck_assert(dlc_scalar_apply(DLC_EXPR_SELECT, DLC_F32, DLC_F32, chosen).f == 2);
    ck_assert_int_eq(dlc_scalar_apply(DLC_EXPR_BITCAST, DLC_F32, DLC_I32, &one).i, 0x3f800000);
    ck_assert_int_eq(dlc_scalar_apply(DLC_EXPR_BITCAST, DLC_BF16, DLC_U16, &one).i, 0x3f80);
    ck_assert_int_eq(dlc_scalar_apply(DLC_EXPR_BITCAST, DLC_F16, DLC_I16, &one).i, 0x3c00);
    int64_t minus_one = -1;
    ck_assert_int_eq(dlc_scalar_read(DLC_I16, &minus_one).i, -1);
    ck_assert_int_eq(dlc_scalar_read(DLC_U16, &minus_one).i, 65535);
    ck_assert_int_eq(dlc_scalar_read(DLC_BOOL, &minus_one).i, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scalar");
    TCase *tests = tcase_create("scalar");
    tcase_add_loop_test(tests, integers_are_guarded, 0, sizeof ints / sizeof *ints);
    tcase_add_loop_test(tests, conversions_to_integers, 0, sizeof to_ints / sizeof *to_ints);
    tcase_add_loop_test(tests, conversions_to_floats_round_once, 0,
                        sizeof to_floats / sizeof *to_floats);
    tcase_add_test(tests, subnormals_are_flushed);
    tcase_add_loop_test(tests, half_floats_are_complete, 0, 2);
    tcase_add_loop_test(tests, floats_are_ieee, 0, sizeof floats / sizeof *floats);
    tcase_add_test(tests, comparisons_select_and_bits);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

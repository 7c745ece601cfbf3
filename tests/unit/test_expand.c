/*
 * Errors of the elementary functions' expansions: measured over samples of all exponents and
 * densely where the function is interesting, with fused and with separate multiply-add, against
 * libm in a wider type. Prints the table of docs/numerics.md and asserts its bounds; special values
 * are a table of their own.
 */
#include "ir/interp/interp.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

typedef long double (*reference)(long double);

/* Bounds in ulp; without fma a quarter more. lo, hi: sampled densely. */
static const struct {
    dlc_expr_op op;
    reference f;
    double f32, f64;
    double lo, hi;
    double far; /* f64 arguments beyond this are outside the stated range; 0: none */
} rows[] = {
    {DLC_EXPR_EXP, expl, 1.0, 1.0, -110, 90, 0},
    {DLC_EXPR_LOG, logl, 1.0, 1.0, 0, 4, 0},
    {DLC_EXPR_LOG1P, log1pl, 2.5, 2.5, -1, 4, 0},
    {DLC_EXPR_TANH, tanhl, 3.0, 3.0, -10, 10, 0},
    {DLC_EXPR_ERF, erfl, 3.0, 3.0, -4, 4, 0},
    {DLC_EXPR_SIN, sinl, 2.0, 2.5, -20, 20, 0x1p20},
    {DLC_EXPR_COS, cosl, 2.0, 2.5, -20, 20, 0x1p20},
    {DLC_EXPR_TAN, tanl, 3.5, 3.5, -20, 20, 0x1p20},
    {DLC_EXPR_ASIN, asinl, 2.5, 2.5, -1, 1, 0},
    {DLC_EXPR_ACOS, acosl, 2.0, 2.0, -1, 1, 0},
    {DLC_EXPR_ATAN, atanl, 2.0, 2.0, -5, 5, 0},
    {DLC_EXPR_SINH, sinhl, 2.5, 2.5, -10, 10, 0},
    {DLC_EXPR_COSH, coshl, 2.5, 2.5, -10, 10, 0},
    {DLC_EXPR_ASINH, asinhl, 4.0, 4.0, -5, 5, 0},
    {DLC_EXPR_ACOSH, acoshl, 4.0, 4.0, 1, 5, 0},
    {DLC_EXPR_ATANH, atanhl, 4.0, 4.0, -1, 1, 0},
};
enum { NROWS = sizeof rows / sizeof *rows };

static dlc_expr split_muladd(void *ctx, dlc_pool *pool, const dlc_expr_node *node,
                             const dlc_expr *args)
{
    (void)ctx;
    if (node->op != DLC_EXPR_MULADD)
        return 0;
    return dlc_add(pool, dlc_mul(pool, args[0], args[1]), args[2]);
}

static uint32_t has; /* what the target has beside the rest of expr.def */

/* y[i] = op(a[i], b[i]) + plus, all of it expanded at once; b NULL for one operand, plus 0 for none. */
static void evaluate_sum(dlc_expr_op op, dlc_dtype dtype, int is_fused, int64_t n, void *a, void *b, double plus, void *y)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_kernel *kernel = dlc_kernel_create(arena, "f");
    dlc_pool *pool = kernel->pool;
    dlc_type type = {.dtype = dtype, .rank = 1, .dims = {dlc_expr_i64(pool, n)}};
    dlc_layout layout = {0};
    uint32_t axis = dlc_kernel_axis(kernel, "i", type.dims[0]);
    dlc_expr at = dlc_expr_axis(pool, axis), args[2];
    void *memory[3] = {a, b, y}, *buffers[3];
    uint32_t nargs = b ? 2 : 1, nbuffers = 0;
    for (uint32_t k = 0; k < nargs; k++) {
        buffers[nbuffers++] = memory[k];
        dlc_source source = dlc_kernel_buffer(kernel, k ? "b" : "a", &type, &layout, DLC_ROLE_IN);
        args[k] = dlc_expr_load(pool, dtype, source, &at, 1, 0, 0, 0);
    }
    buffers[nbuffers] = y;
    uint32_t out = dlc_kernel_buffer(kernel, "y", &type, &layout, DLC_ROLE_OUT);
    dlc_expr value = dlc_expr_make(pool, op, dtype, args, nargs);
    value = dlc_expr_expand_with(pool, plus != 0 ? dlc_add(pool, value, dlc_expr_const(pool, dtype, plus)) : value, has);
    if (!is_fused)
        value = dlc_expr_rewrite(pool, pool, value, split_muladd, NULL);
    dlc_stage *stage = dlc_kernel_stage(kernel, "y");
    dlc_vec_push(arena, &stage->axes, axis);
    dlc_vec_push(arena, &stage->store, at);
    stage->value[0] = value;
    stage->dtype[0] = dtype;
    stage->buffer = out;
    ck_assert_int_eq(
        dlc_interp_run(kernel, DLC_STRICT, &(dlc_interp_args){.buffers = buffers}, &diag), DLC_OK);
    dlc_arena_destroy(arena);
}

static void evaluate(dlc_expr_op op, dlc_dtype dtype, int is_fused, int64_t n, void *a, void *b, void *y)
{
    evaluate_sum(op, dtype, is_fused, n, a, b, 0, y);
}

/* |got - want| in units of the last place of want, as a number of the type. */
static double ulps(dlc_dtype dtype, double got, long double want)
{
    int single = dtype == DLC_F32;
    double rounded = single ? (double)(float)want : (double)want;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf(rounded) || isinf(got))
        return rounded == got ? 0 : INFINITY;
    if (rounded == 0 && got == 0)
        return signbit(rounded) == signbit(got) ? 0 : INFINITY;
    int exponent;
    frexpl(want, &exponent);
    int least = single ? -149 : -1074;
    int quantum = exponent - (single ? 24 : 53);
    return (double)(fabsl((long double)got - want) / ldexpl(1, quantum < least ? least : quantum));
}

enum { NSAMPLES = 1 << 19 };

/* Half the samples over all bit patterns, half within [lo, hi]. */
static void sample(dlc_dtype dtype, double lo, double hi, double far, void *to)
{
    for (uint32_t i = 0; i < NSAMPLES; i++) {
        double x = lo + (hi - lo) * (i / (double)NSAMPLES);
        uint64_t bits = (uint64_t)(i / 2) * UINT64_C(0x9e3779b97f4a7c15);
        if (dtype == DLC_F32) {
            uint32_t narrow = (uint32_t)(bits >> 32);
            float value = (float)x;
            if (i % 2)
                memcpy(&value, &narrow, 4);
            ((float *)to)[i] = value;
        } else {
            double value = x;
            if (i % 2)
                memcpy(&value, &bits, 8);
            if (far && !(fabs(value) <= far))
                value = fmod(isfinite(value) ? value : 1, far);
            ((double *)to)[i] = value;
        }
    }
}

static double element(dlc_dtype dtype, const void *at, uint32_t i)
{
    return dtype == DLC_F32 ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

static double measure(int row, dlc_dtype dtype, int is_fused, double *worst_at)
{
    void *x = malloc(NSAMPLES * 8), *y = malloc(NSAMPLES * 8);
    double worst = 0;
    ck_assert(x && y);
    sample(dtype, rows[row].lo, rows[row].hi, dtype == DLC_F64 ? rows[row].far : 0, x);
    evaluate(rows[row].op, dtype, is_fused, NSAMPLES, x, NULL, y);
    for (uint32_t i = 0; i < NSAMPLES; i++) {
        double at = element(dtype, x, i);
        double error = ulps(dtype, element(dtype, y, i), rows[row].f(at));
        if (error > worst) {
            worst = error;
            *worst_at = at;
        }
    }
    free(x);
    free(y);
    return worst;
}

static void check_row(int row, dlc_dtype dtype, double bound)
{
    double at[2] = {0}, error[2];
    for (int fused = 0; fused < 2; fused++)
        error[fused] = measure(row, dtype, fused, &at[fused]);
    printf("%-6s %s  fma %.2f (at %a)  mul+add %.2f (at %a)\n", dlc_exprs[rows[row].op].text,
           dlc_dtypes[dtype].text, error[1], at[1], error[0], at[0]);
    ck_assert_double_le(error[1], bound);
    ck_assert_double_le(error[0], bound + 0.25);
}

START_TEST(errors_f32)
{
    check_row(_i, DLC_F32, rows[_i].f32);
}
END_TEST

START_TEST(errors_f64)
{
    check_row(_i, DLC_F64, rows[_i].f64);
}
END_TEST

/* For targets that have the row `scale` the bits are the same: here it is expanded in its turn. */
START_TEST(scaling)
{
    static const dlc_expr_op ops[] = {DLC_EXPR_EXP, DLC_EXPR_SINH, DLC_EXPR_COSH, DLC_EXPR_POW};
    dlc_expr_op op = ops[_i / 2];
    dlc_dtype dtype = _i % 2 ? DLC_F64 : DLC_F32;
    size_t bytes = dlc_dtype_bytes(dtype);
    char *x = malloc(NSAMPLES * 8), *y = malloc(NSAMPLES * 8), *z = malloc(NSAMPLES * 8);
    ck_assert(x && y && z);
    sample(dtype, dtype == DLC_F32 ? -110 : -760, dtype == DLC_F32 ? 100 : 740, 0, x);
    evaluate(op, dtype, 1, NSAMPLES, x, op == DLC_EXPR_POW ? x : NULL, y);
    has = DLC_EXPAND_SCALE;
    evaluate(op, dtype, 1, NSAMPLES, x, op == DLC_EXPR_POW ? x : NULL, z);
    has = 0;
    for (uint32_t i = 0; i < NSAMPLES; i++) {
        double want = element(dtype, y, i), got = element(dtype, z, i);
        ck_assert_msg(isnan(want) ? isnan(got) : !memcmp(y + i * bytes, z + i * bytes, bytes), "%s(%a): %a, %a",
                      dlc_exprs[op].text, element(dtype, x, i), want, got);
    }
    free(x);
    free(y);
    free(z);
}
END_TEST

/* --- pow --- */

static const double pow_specials[] = {
    0.0,  -0.0,  1,        -1,        0.5,      -0.5,      2,    -2,       3,
    -3,   1.5,   -1.5,     2.5,       INFINITY, -INFINITY, NAN,  0x1p-149, 0x1.fffffep127,
    1e30, -1e30, 16777215, -16777215, 0x1p-126, 7,         1e-30};
enum { NSPECIALS = sizeof pow_specials / sizeof *pow_specials };

static double measure_pow(dlc_dtype dtype, int is_fused, double *at)
{
    void *x = malloc(NSAMPLES * 8), *y = malloc(NSAMPLES * 8), *z = malloc(NSAMPLES * 8);
    double worst = 0;
    ck_assert(x && y && z);
    for (uint32_t i = 0; i < NSAMPLES; i++) {
        double base, exponent;
        if (i < NSPECIALS * NSPECIALS) {
            base = pow_specials[i / NSPECIALS];
            exponent = pow_specials[i % NSPECIALS];
        } else {
            double size = dtype == DLC_F32 ? 140 : 1080;
            double u = fmod(i * 0.6180339887498949, 1), v = fmod(i * 0.7548776662466927, 1);
            base = i % 3 ? exp2((u - 0.5) * 2 * (i % 3 == 1 ? 1 : size * 0.9)) : 0.5 + u;
            exponent = (v - 0.5) * 2 * size / fmax(fabs(log2(base)), 0.01);
            if (i % 7 == 0) {
                base = -base;
                exponent = rint(exponent);
            }
        }
        if (dtype == DLC_F32) {
            ((float *)x)[i] = (float)base;
            ((float *)y)[i] = (float)exponent;
        } else {
            ((double *)x)[i] = base;
            ((double *)y)[i] = exponent;
        }
    }
    evaluate(DLC_EXPR_POW, dtype, is_fused, NSAMPLES, x, y, z);
    for (uint32_t i = 0; i < NSAMPLES; i++) {
        double a = element(dtype, x, i), b = element(dtype, y, i);
        double error = ulps(dtype, element(dtype, z, i), powl(a, b));
        if (error > worst) {
            worst = error;
            at[0] = a;
            at[1] = b;
        }
    }
    free(x);
    free(y);
    free(z);
    return worst;
}

START_TEST(errors_pow)
{
    dlc_dtype dtype = _i ? DLC_F64 : DLC_F32;
    double at[2][2] = {{0}}, error[2];
    for (int fused = 0; fused < 2; fused++)
        error[fused] = measure_pow(dtype, fused, at[fused]);
    printf("pow    %s  fma %.2f (at %a ^ %a)  mul+add %.2f (at %a ^ %a)\n", dlc_dtypes[dtype].text,
           error[1], at[1][0], at[1][1], error[0], at[0][0], at[0][1]);
    ck_assert_double_le(error[0], _i ? 1.5 : 1.0);
    ck_assert_double_le(error[1], _i ? 1.5 : 1.0);
}
END_TEST

/* --- special values: what C99 says, signs of zero included --- */

START_TEST(specials)
{
    static const double values[] = {0.0,
                                    -0.0,
                                    1,
                                    -1,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    0x1p-149,
                                    -0x1p-149,
                                    0x1.fffffep127,
                                    -0x1.fffffep127,
                                    0x1p-126,
                                    88.7228,
                                    -87.3366,
                                    -103.97,
                                    2,
                                    -2,
                                    0.5,
                                    -0.5};
    enum { N = sizeof values / sizeof *values };
    for (int dtype = DLC_F32; dtype <= DLC_F64; dtype++) {
        double x[N], y[N];
        for (uint32_t i = 0; i < N; i++) {
            if (dtype == DLC_F32)
                ((float *)x)[i] = (float)values[i];
            else
                x[i] = values[i];
        }
        if (dtype == DLC_F64 &&
            rows[_i].far) /* beyond the stated range, and infinities are checked below */
            continue;
        evaluate(rows[_i].op, (dlc_dtype)dtype, 1, N, x, NULL, y);
        for (uint32_t i = 0; i < N; i++) {
            double at = element((dlc_dtype)dtype, x, i), got = element((dlc_dtype)dtype, y, i);
            long double want = rows[_i].f(at);
            double error = ulps((dlc_dtype)dtype, got, want);
            ck_assert_msg(error <= (dtype == DLC_F32 ? rows[_i].f32 : rows[_i].f64),
                          "%s(%a) = %a, not %La", dlc_exprs[rows[_i].op].text, at, got, want);
        }
    }
}
END_TEST

/* Out of its stated range sin of f64 stays within [-1, 1], and is NaN for infinities. */
START_TEST(far_f64)
{
    double x[] = {0x1p21, 1e8, 1e15, 0x1p53, 1e22, 1e300, INFINITY, -INFINITY, NAN}, y[9];
    evaluate(DLC_EXPR_SIN, DLC_F64, 1, 9, x, NULL, y);
    for (int i = 0; i < 6; i++)
        ck_assert(fabs(y[i]) <= 1);
    for (int i = 6; i < 9; i++)
        ck_assert(isnan(y[i]));
    ck_assert_double_eq_tol(y[1], sin(1e8), 1e8 * 0x1p-52);
    ck_assert_double_eq_tol(y[2], sin(1e15), 1e15 * 0x1p-52);
}
END_TEST

/* exp(x) + c as one expansion has the bits of exp(x)'s and an addition: over all bit patterns, and where powers are small. */
START_TEST(powers_beside_numbers)
{
    enum { SOME = NSAMPLES / 8 };
    static const double numbers[] = {1, -1, 0x1p-60, 0x1p-61};
    static double all[NSAMPLES], a[SOME], power[SOME], sum[SOME]; /* of either type */
    dlc_dtype dtype = _i / 2 % 2 ? DLC_F64 : DLC_F32;
    double plus = numbers[_i / 4];
    size_t size = dlc_dtype_bytes(dtype);
    sample(dtype, dtype == DLC_F32 ? -110 : -760, dtype == DLC_F32 ? 90 : 710, 0, all);
    for (size_t i = 0; i < SOME; i++) /* as many on the grid as over all bit patterns */
        memcpy((char *)a + i * size, (char *)all + (i * 8 + i % 2) * size, size);
    evaluate(DLC_EXPR_EXP, dtype, _i % 2, SOME, a, NULL, power);
    evaluate_sum(DLC_EXPR_EXP, dtype, _i % 2, SOME, a, NULL, plus, sum);
    for (uint32_t i = 0; i < SOME; i++) {
        double x = element(dtype, a, i), got = element(dtype, sum, i), want = element(dtype, power, i) + plus;
        want = dtype == DLC_F32 ? (double)(float)want : want;
        ck_assert_msg(want == got || (isnan(want) && isnan(got)), "exp(%a) + %a = %a, not %a", x, plus, got, want);
    }
}
END_TEST

/* f16 and bf16: computed in f32, rounded once more. */
START_TEST(half_types)
{
    uint16_t x[4], y[4];
    double values[4] = {0.5, -3, 10, 0};
    for (int dtype = DLC_F16; dtype <= DLC_BF16; dtype++) {
        for (int i = 0; i < 4; i++)
            dlc_scalar_write((dlc_dtype)dtype, &x[i], (dlc_scalar){.f = values[i]});
        evaluate(DLC_EXPR_EXP, (dlc_dtype)dtype, 1, 4, x, NULL, y);
        for (int i = 0; i < 4; i++)
            ck_assert_double_eq(dlc_scalar_read((dlc_dtype)dtype, &y[i]).f,
                                dlc_round_to((dlc_dtype)dtype, (float)exp(values[i])));
    }
}
END_TEST

/* The worst f32 argument of sin: 24 bits that lie nearest to a multiple of pi/2. */
START_TEST(sin_hard_case)
{
    float x[2] = {0x1.f37528p+95f, 16367173.0f * 0x1p72f}, y[2];
    evaluate(DLC_EXPR_SIN, DLC_F32, 1, 2, x, NULL, y);
    for (int i = 0; i < 2; i++)
        ck_assert_double_le(ulps(DLC_F32, y[i], sinl(x[i])), 4);
    evaluate(DLC_EXPR_COS, DLC_F32, 1, 2, x, NULL, y);
    for (int i = 0; i < 2; i++)
        ck_assert_double_le(ulps(DLC_F32, y[i], cosl(x[i])), 4);
}
END_TEST

/* rint(x / divisor) as rint(fma(x, hi, x * lo)); false where it stays a division. */
static int reciprocal_of(double divisor, float *hi, float *lo)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_pool *pool = dlc_pool_create(arena);
    dlc_expr x = dlc_expr_cast(pool, DLC_F32, dlc_expr_sym(pool, 0));
    dlc_expr quotient = dlc_expr2(pool, DLC_EXPR_DIV, x, dlc_expr_const(pool, DLC_F32, divisor));
    dlc_expr rounded = dlc_expr1(pool, DLC_EXPR_RINT, quotient);
    dlc_expr same = dlc_expr_expand_with(pool, rounded, 0), result = dlc_expr_expand_with(pool, rounded, DLC_EXPAND_FMA);
    ck_assert_uint_eq(same, rounded);
    ck_assert_uint_eq(dlc_expr_expand_with(pool, quotient, DLC_EXPAND_FMA), quotient); /* where its tiny values are seen */
    if (result != rounded) {
        dlc_expr fma = dlc_arg(pool, result, 0), low = dlc_arg(pool, fma, 2);
        ck_assert_int_eq(dlc_node_of(pool, fma)->op, DLC_EXPR_FMA);
        *hi = (float)dlc_node_of(pool, dlc_arg(pool, fma, 1))->imm.f;
        *lo = (float)(dlc_node_of(pool, dlc_arg(pool, low, 0))->op == DLC_EXPR_CONST ? dlc_node_of(pool, dlc_arg(pool, low, 0))
                                                                                     : dlc_node_of(pool, dlc_arg(pool, low, 1)))->imm.f;
    }
    dlc_arena_destroy(arena);
    return result != rounded;
}

/* Every x of 24 digits: exponents change nothing between the least and the largest normal numbers. The second divisor's first reciprocal
 * rounds one of these x otherwise, which a neighbour does not. */
START_TEST(quotients)
{
    const double divisors[] = {0.015389587, 14826215 * 0x1p-30, -3};
    float c = (float)divisors[_i], hi, lo;
    ck_assert(reciprocal_of(c, &hi, &lo));
    for (float x = 0x1p23f; x < 0x1p24f; x++)
        ck_assert_float_eq(fmaf(x, hi, x * lo), x / c);
}
END_TEST

START_TEST(far_quotients)
{
    const float c = 0.7f, x[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 0x1p-126f, -0x1.8p-130f, 0x1.fffffep127f,
                                 -0x1.fffffep127f, 0x1.666664p127f, 0x1.666666p127f, 0x1.666668p127f, 0.35f, 1.05f};
    float hi, lo;
    ck_assert(reciprocal_of(c, &hi, &lo));
    for (uint32_t i = 0; i < sizeof x / sizeof *x; i++) {
        float want = rintf(x[i] / c), got = rintf(fmaf(x[i], hi, x[i] * lo));
        ck_assert_msg(isnan(want) ? isnan(got) : !memcmp(&want, &got, sizeof want), "%a: %a, %a", x[i], want, got);
    }
}
END_TEST

/* The first has an x that no pair of floats is right for. */
START_TEST(divisions_that_stay)
{
    const double divisors[] = {11326003, 0, 0.25, INFINITY, NAN, 0x1.8p-70, 0x1.8p70};
    float hi, lo;
    for (uint32_t i = 0; i < sizeof divisors / sizeof *divisors; i++)
        ck_assert_msg(!reciprocal_of(divisors[i], &hi, &lo), "%g", divisors[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expand");
    TCase *errors = tcase_create("errors"), *edges = tcase_create("edges");
    tcase_set_timeout(errors, 120);
    tcase_add_loop_test(errors, errors_f32, 0, NROWS);
    tcase_add_loop_test(errors, errors_f64, 0, NROWS);
    tcase_add_loop_test(errors, scaling, 0, 8);
    tcase_add_loop_test(errors, errors_pow, 0, 2);
    tcase_add_loop_test(edges, specials, 0, NROWS);
    tcase_add_test(edges, far_f64);
    tcase_add_test(edges, half_types);
    tcase_add_loop_test(edges, powers_beside_numbers, 0, 16);
    tcase_add_test(edges, sin_hard_case);
    tcase_add_loop_test(errors, quotients, 0, 3);
    tcase_add_test(edges, far_quotients);
    tcase_add_test(edges, divisions_that_stay);
    suite_add_tcase(suite, errors);
    suite_add_tcase(suite, edges);
    return suite_run(suite);
}

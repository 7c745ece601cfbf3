/* Steps in C against definitions written out naively. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/internal.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

/* --- topk --- */
enum { A = 3, N = 77, C = 4 };

static double read_as(dlc_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case DLC_I8:
        return ((const int8_t *)data)[i];
    case DLC_U8:
        return ((const uint8_t *)data)[i];
    case DLC_I32:
        return ((const int32_t *)data)[i];
    case DLC_F32:
        return (double)((const float *)data)[i];
    case DLC_F64:
        return ((const double *)data)[i];
    default:
        return (double)((const int64_t *)data)[i];
    }
}

static void write_as(dlc_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case DLC_I8:
        ((int8_t *)data)[i] = (int8_t)value;
        break;
    case DLC_U8:
        ((uint8_t *)data)[i] = (uint8_t)fabs(value);
        break;
    case DLC_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case DLC_F32:
        ((float *)data)[i] = (float)value;
        break;
    case DLC_F64:
        ((double *)data)[i] = value;
        break;
    default:
        ((int64_t *)data)[i] = (int64_t)value;
        break;
    }
}

/* The number of elements of the row that come before element j: its place in the sorted row. NaN is
 * greatest. */
static int64_t place_of(const double *row, int64_t j, int largest)
{
    int64_t place = 0;
    for (int64_t i = 0; i < N; i++) {
        double a = isnan(row[i]) ? INFINITY : row[i], b = isnan(row[j]) ? INFINITY : row[j];
        int is_better = largest ? a > b : a < b;
        place += is_better || (a == b && i < j);
    }
    return place;
}

static const struct {
    dlc_dtype dtype;
    int64_t k;
    int largest, with_nan;
} topks[] = {
    {DLC_F32, 5, 1, 0}, {DLC_F32, 5, 0, 1}, {DLC_F32, N, 1, 1}, {DLC_F32, 1, 0, 0},
    {DLC_F32, 0, 1, 0}, {DLC_F64, 3, 1, 1}, {DLC_I64, 7, 0, 0}, {DLC_I32, 7, 1, 0},
    {DLC_I8, 16, 1, 0}, {DLC_U8, 4, 0, 0},  {DLC_F32, N, 0, 1}, {DLC_I32, N - 1, 0, 0},
    {DLC_U8, 40, 1, 0}, {DLC_F64, N, 1, 1},
};

START_TEST(topk_sorts_and_breaks_ties_by_index)
{
    double x[A * N * C];
    unsigned char values[A * N * C * 8], anywhere[A * N * C * 8 + 1];
    int64_t indices[A * N * C], attrs[3] = {1, topks[_i].largest, 1}, k = topks[_i].k;
    dlc_dtype dtype = topks[_i].dtype;
    for (int round = 0; round < 30; round++) {
        unsigned char data[A * N * C * 8];
        for (int i = 0; i < A * N * C; i++) {
            double value = topks[_i].with_nan && draw(6) == 0
                               ? (double)NAN
                               : (double)(int)draw(9) - 4; /* many ties */
            write_as(dtype, data, i, value);
            x[i] = read_as(dtype, data, i);
        }
        dlcrt_operand operands[] = {{data, dtype, 3, {A, N, C}},
                                    {values, dtype, 3, {A, k, C}},
                                    {anywhere + 1, DLC_I64, 3, {A, k, C}}};
        dlcrt_opaque_args args = {operands, attrs, "top", NULL};
        ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TOPK].run(&args), DLC_OK);
        memcpy(indices, anywhere + 1, sizeof indices);
        for (int a = 0; a < A; a++)
            for (int c = 0; c < C; c++) {
                double row[N];
                for (int j = 0; j < N; j++)
                    row[j] = x[(a * N + j) * C + c];
                for (int64_t i = 0; i < k; i++) {
                    int64_t at = (a * k + i) * C + c, j = indices[at];
                    ck_assert(j >= 0 && j < N);
                    ck_assert_int_eq(place_of(row, j, topks[_i].largest), i);
                    double value = read_as(dtype, values, at);
                    ck_assert(value == row[j] || (isnan(value) && isnan(row[j])));
                }
            }
    }
}
END_TEST

START_TEST(topk_refuses_more_than_there_is)
{
    float x[4] = {0}, values[5];
    int64_t indices[5], attrs[3] = {0, 1, 1};
    dlcrt_operand operands[] = {
        {x, DLC_F32, 1, {4}}, {values, DLC_F32, 1, {5}}, {indices, DLC_I64, 1, {5}}};
    dlcrt_opaque_args args = {operands, attrs, "top", NULL};
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TOPK].run(&args), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(), "node 'top': k = 5, the axis has 4 elements");
}
END_TEST

/* --- nonzero --- */
START_TEST(nonzero_lists_coordinates_in_order)
{
    static const dlc_dtype dtypes[] = {DLC_F32, DLC_I64, DLC_U8, DLC_I8, DLC_F64, DLC_I32};
    dlc_dtype dtype = dtypes[_i];
    unsigned char data[3 * 4 * 5 * 8], anywhere[3 * 60 * 8 + 1];
    int64_t out[3 * 60], count, expected = 0;
    for (int i = 0; i < 60; i++)
        write_as(dtype, data, i, draw(2) ? 0 : (double)(int)draw(5) - 2);
    if (dtype == DLC_F32) {
        ((float *)data)[7] = -0.0f;
        ((float *)data)[8] = (float)NAN;
    }
    dlcrt_operand operands[] = {{data, dtype, 3, {3, 4, 5}}, {anywhere + 1, DLC_I64, 2, {3, 0}}};
    dlcrt_opaque_args args = {operands, NULL, "nz", NULL};
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_NONZERO].count(&args, &count), DLC_OK);
    operands[1].dims[1] = count;
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_NONZERO].run(&args), DLC_OK);
    memcpy(out, anywhere + 1, sizeof out);
    for (int i = 0; i < 60; i++) {
        if (read_as(dtype, data, i) == 0)
            continue;
        ck_assert_int_eq(out[expected], i / 20);
        ck_assert_int_eq(out[count + expected], i / 5 % 4);
        ck_assert_int_eq(out[2 * count + expected], i % 5);
        expected++;
    }
    ck_assert_int_eq(count, expected);
}
END_TEST

START_TEST(nonzero_of_scalars_and_nothing)
{
    float one = 1;
    int64_t out[1] = {7}, count;
    dlcrt_operand operands[] = {{&one, DLC_F32, 0, {0}}, {out, DLC_I64, 2, {0, 1}}};
    dlcrt_opaque_args args = {operands, NULL, "nz", NULL};
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_NONZERO].count(&args, &count), DLC_OK);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_NONZERO].run(&args), DLC_OK);
    ck_assert_int_eq(out[0], 7);
    operands[0].rank = 2; /* [0,0]: no element */
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_NONZERO].count(&args, &count), DLC_OK);
    ck_assert_int_eq(count, 0);
}
END_TEST

START_TEST(boxes_are_suppressed)
{
    /* two that overlap by 0.6, one apart, one turned around, one empty */
    static const float boxes[5][4] = {
        {0, 0, 10, 10}, {0, 2.5f, 10, 12.5f}, {20, 20, 30, 30}, {30, 30, 20, 20}, {1, 1, 1, 5}};
    static const float scores[5] = {0.9f, 0.8f, 0.7f, 0.6f, 0.5f};
    static const int64_t order[5] = {1, 0, 2, 3, 4};
    const struct {
        int64_t most, kept[5];
        float threshold, least;
    } cases[] = {
        {5, {1, 2, 4, -1, -1}, 0.5f, 0},     {5, {1, 0, 2, 4, -1}, 0.6f, 0},
        {2, {1, 2, -1, -1, -1}, 0.5f, 0},    {5, {1, 2, -1, -1, -1}, 0.5f, 0.5f},
        {0, {-1, -1, -1, -1, -1}, 0.5f, 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t kept[5], attr = 0;
        dlcrt_operand operands[] = {
            {(void *)(uintptr_t)boxes, DLC_F32, 3, {1, 5, 4}},
            {(void *)(uintptr_t)order, DLC_I64, 3, {1, 1, 5}},
            {(void *)(uintptr_t)scores, DLC_F32, 3, {1, 1, 5}},
            {(void *)(uintptr_t)&cases[c].most, DLC_I64, 0, {0}},
            {(void *)(uintptr_t)&cases[c].threshold, DLC_F32, 0, {0}},
            {(void *)(uintptr_t)&cases[c].least, DLC_F32, 0, {0}},
            {kept, DLC_I64, 3, {1, 1, 5}},
        };
        dlcrt_opaque_args args = {.operands = operands, .attrs = &attr, .name = "nms"};
        ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_SUPPRESS].run(&args), DLC_OK);
        for (int i = 0; i < 5; i++)
            ck_assert_msg(kept[i] == cases[c].kept[i], "case %zu: box %d is %d", c, i, (int)kept[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opaque");
    TCase *tests = tcase_create("opaque");
    tcase_add_loop_test(tests, topk_sorts_and_breaks_ties_by_index, 0,
                        sizeof topks / sizeof topks[0]);
    tcase_add_test(tests, topk_refuses_more_than_there_is);
    tcase_add_loop_test(tests, nonzero_lists_coordinates_in_order, 0, 6);
    tcase_add_test(tests, nonzero_of_scalars_and_nothing);
    tcase_add_test(tests, boxes_are_suppressed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

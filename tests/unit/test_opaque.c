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
        dlcrt_opaque_args args = {.operands = operands, .attrs = attrs, .name = "top"};
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
    dlcrt_opaque_args args = {.operands = operands, .attrs = attrs, .name = "top"};
    ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TOPK].run(&args), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(), "node 'top': k = 5, the axis has 4 elements");
}
END_TEST

/* Rows of bits drawn at random (all kinds of NaN among floats), or of few values, of every type, length and number wanted. */
static const struct {
    dlc_dtype dtype;
    int size, exponent, is_signed; /* bytes; bits of a float's exponent */
} types[] = {{DLC_F32, 4, 8, 1}, {DLC_F64, 8, 11, 1}, {DLC_F16, 2, 5, 1}, {DLC_BF16, 2, 8, 1}, {DLC_I8, 1, 0, 1},  {DLC_U8, 1, 0, 0}, {DLC_I16, 2, 0, 1},
             {DLC_U16, 2, 0, 0}, {DLC_I32, 4, 0, 1},  {DLC_U32, 4, 0, 0}, {DLC_I64, 8, 0, 1},  {DLC_U64, 8, 0, 0}, {DLC_BOOL, 1, 0, 0}};
static int type, is_largest;
static long double numbers[6000]; /* of the row being compared */

/* Exact: what is below infinity is a multiple of the least number, whose size does not matter. */
static long double number_of(const unsigned char *at)
{
    uint64_t bits = 0;
    int size = types[type].size, exponent = types[type].exponent, mantissa = 8 * size - 1 - exponent;
    memcpy(&bits, at, (size_t)size);
    uint64_t top = UINT64_C(1) << (8 * size - 1), magnitude = bits & (top - 1);
    if (!exponent)
        return types[type].is_signed && bits & top ? (long double)(bits ^ top) - (long double)top : (long double)bits;
    uint64_t infinity = ((UINT64_C(1) << exponent) - 1) << mantissa;
    long double size_of = magnitude == infinity ? (long double)INFINITY
                          : magnitude >> mantissa
                              ? ldexpl((long double)((magnitude & ((UINT64_C(1) << mantissa) - 1)) | UINT64_C(1) << mantissa), (int)(magnitude >> mantissa) - 1)
                              : (long double)magnitude;
    return magnitude > infinity ? (long double)NAN : bits & top ? -size_of : size_of;
}

static int compare_elements(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    long double x = numbers[i], y = numbers[j];
    int order = isnan(x) || isnan(y) ? (isnan(x) != 0) - (isnan(y) != 0) : (x > y) - (x < y);
    return order ? (is_largest ? -order : order) : (i > j) - (i < j);
}

static void check_top_rows(const unsigned char *x, int64_t n, int64_t k, int64_t inner, const unsigned char *values, const unsigned char *indices)
{
    size_t size = (size_t)types[type].size;
    static int64_t order[6000];
    for (int64_t row = 0; row < 2 * inner; row++) {
        int64_t from = row / inner * n * inner + row % inner, to = row / inner * k * inner + row % inner;
        for (int64_t j = 0; j < n; j++) {
            order[j] = j;
            numbers[j] = number_of(x + (size_t)(from + j * inner) * size);
        }
        qsort(order, (size_t)n, sizeof *order, compare_elements);
        for (int64_t i = 0; i < k; i++) {
            int64_t index;
            memcpy(&index, indices + (size_t)(to + i * inner) * sizeof index, sizeof index);
            ck_assert_msg(index == order[i], "type %d, %d of %d, row %d: place %d has %d, not %d", type, (int)k, (int)n, (int)row, (int)i, (int)index,
                          (int)order[i]);
            if (values)
                ck_assert(!memcmp(values + (size_t)(to + i * inner) * size, x + (size_t)(from + index * inner) * size, size));
        }
    }
}

START_TEST(topk_is_a_sort_cut_short)
{
    static const int64_t lengths[] = {1, 2, 17, 63, 64, 65, 130, 600, 2048, 2100, 5500};
    for (type = 0; type < (int)(sizeof types / sizeof *types); type++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (int round = 0; round < 6; round++) {
                int64_t n = lengths[l], most[] = {0, 1, 5, n / 2, n - 1, n, 70, 1100}, inner = 1 + 2 * (round == 1), k = most[draw(8)];
                size_t size = (size_t)types[type].size;
                unsigned char *x = malloc((size_t)(2 * inner * n) * size + 1), *values = malloc((size_t)(2 * inner * n) * size + 1);
                unsigned char *indices = malloc((size_t)(2 * inner * n) * 8 + 1);
                k = k > n ? n : k;
                is_largest = (int)draw(2);
                for (size_t i = 0; i < (size_t)(2 * inner * n) * size; i++)
                    x[i + 1] = (unsigned char)(round % 3 == 0 ? draw(256) : i % size == size - 1 ? 0x7f + draw(2) : i % size == size - 2 ? 0x70 * draw(3) : 0);
                if (round == 5) /* in order already */
                    for (int64_t i = 0; i < 2 * n; i++) {
                        uint64_t number = (uint64_t)i;
                        memcpy(x + 1 + (size_t)i * size, &number, size);
                    }
                for (int64_t i = 0; types[type].dtype == DLC_BOOL && i < 2 * inner * n; i++)
                    x[i + 1] &= 1;
                dlcrt_operand operands[] = {{x + 1, types[type].dtype, 3, {2, n, inner}},
                                            {draw(4) ? values + 1 : NULL, types[type].dtype, 3, {2, k, inner}},
                                            {indices + 1, DLC_I64, 3, {2, k, inner}}};
                int64_t attrs[3] = {1, is_largest, 1};
                dlcrt_opaque_args args = {.operands = operands, .attrs = attrs, .name = "top"};
                ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TOPK].run(&args), DLC_OK);
                check_top_rows(x + 1, n, k, inner, operands[1].data, indices + 1);
                free(x);
                free(values);
                free(indices);
            }
}
END_TEST

/* The threads of a pool share rows out. */
START_TEST(topk_by_threads)
{
    enum { ROWS = 300, LONG = 700, MOST = 9 };
    static float x[ROWS * LONG], values[2][ROWS * MOST];
    static int64_t indices[2][ROWS * MOST];
    int64_t attrs[3] = {1, 1, 1};
    for (int i = 0; i < ROWS * LONG; i++)
        x[i] = (float)draw(500);
    dlcrt_pool *pool = dlcrt_pool_create(3);
    for (int t = 0; t < 2; t++) {
        dlcrt_operand operands[] = {
            {x, DLC_F32, 2, {ROWS, LONG}}, {values[t], DLC_F32, 2, {ROWS, MOST}}, {indices[t], DLC_I64, 2, {ROWS, MOST}}};
        dlcrt_opaque_args args = {.operands = operands, .attrs = attrs, .name = "top", .pool = t ? pool : NULL};
        ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_TOPK].run(&args), DLC_OK);
    }
    dlcrt_pool_destroy(pool);
    ck_assert(!memcmp(values[0], values[1], sizeof values[0]) && !memcmp(indices[0], indices[1], sizeof indices[0]));
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
    dlcrt_opaque_args args = {.operands = operands, .name = "nz"};
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
    dlcrt_opaque_args args = {.operands = operands, .name = "nz"};
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
    static const float scores[5] = {0.8f, 0.9f, 0.7f, 0.6f, 0.5f};
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
            {(void *)(uintptr_t)scores, DLC_F32, 3, {1, 1, 5}},
            {(void *)(uintptr_t)&cases[c].threshold, DLC_F32, 0, {0}},
            {(void *)(uintptr_t)&cases[c].least, DLC_F32, 0, {0}},
            {kept, DLC_I64, 3, {1, 1, cases[c].most}},
        };
        dlcrt_opaque_args args = {.operands = operands, .attrs = &attr, .name = "nms"};
        ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_SUPPRESS].run(&args), DLC_OK);
        for (int i = 0; i < cases[c].most; i++)
            ck_assert_msg(kept[i] == cases[c].kept[i], "case %zu: box %d is %d", c, i, (int)kept[i]);
    }
}
END_TEST

/* The definition, box by box: the best that is left is kept, and what it overlaps too much goes. */
enum { MOST_BOXES = 3000 };

static int overlaps(const float *a, const float *b, int is_center, float threshold)
{
    float low[2][2], high[2][2], area[2], share[2];
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < 2; d++) {
            float p = (i ? b : a)[d], q = (i ? b : a)[d + 2];
            low[i][d] = is_center ? p - q / 2 : p < q ? p : q;
            high[i][d] = is_center ? p + q / 2 : p < q ? q : p;
        }
    for (int i = 0; i < 2; i++)
        area[i] = (high[i][0] - low[i][0]) * (high[i][1] - low[i][1]);
    for (int d = 0; d < 2; d++)
        share[d] = (high[0][d] < high[1][d] ? high[0][d] : high[1][d]) - (low[0][d] > low[1][d] ? low[0][d] : low[1][d]);
    float shared = share[0] * share[1], whole = area[0] + area[1] - shared;
    return share[0] > 0 && share[1] > 0 && area[0] > 0 && area[1] > 0 && whole > 0 && shared / whole > threshold;
}

static int64_t keep_naively(const float *boxes, const float *scores, int64_t n, int64_t most, float threshold, float least, int is_center, int64_t *kept)
{
    static uint8_t is_out[MOST_BOXES];
    int64_t nkept = 0;
    for (int64_t i = 0; i < n; i++) {
        is_out[i] = !(scores[i] > least);
        if (isnan(scores[i])) /* it comes first, and is above nothing */
            return 0;
    }
    while (nkept < most) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!is_out[i] && (best < 0 || scores[i] > scores[best]))
                best = i;
        if (best < 0)
            break;
        kept[nkept++] = best;
        is_out[best] = 1;
        for (int64_t i = 0; i < n; i++)
            if (!is_out[i])
                is_out[i] = (uint8_t)overlaps(boxes + 4 * i, boxes + 4 * best, is_center, threshold);
    }
    return nkept;
}

START_TEST(boxes_are_suppressed_as_defined)
{
    static const int64_t lengths[] = {0, 1, 15, 16, 64, 65, 200, 1000, MOST_BOXES}, mosts[] = {0, 1, 7, 100, MOST_BOXES};
    static float boxes[2 * MOST_BOXES * 4], scores[2 * 3 * MOST_BOXES];
    static int64_t kept[2 * 3 * MOST_BOXES], expected[MOST_BOXES];
    for (int round = 0; round < 90; round++) {
        int64_t n = lengths[draw(9)], most = mosts[draw(5)], is_center = draw(2);
        float threshold = (float)draw(10) / 10, least = draw(3) ? (float)draw(100) / 100 : -INFINITY;
        uint32_t nlevels = draw(2) ? 10 : 1000000, spread = 1 + draw(4000);
        for (int64_t i = 0; i < 8 * n; i++)
            boxes[i] = (float)draw(i % 4 < 2 || !is_center ? spread : 100) / 10;
        if (round % 3 == 1) /* those of classes, moved apart */
            for (int64_t i = 0; i < 2 * n; i++)
                for (int64_t d = 0, from = 400 * draw(20); d < (is_center ? 2 : 4); d++)
                    boxes[4 * i + d] += (float)from;
        for (int64_t i = 0; round % 3 == 2 && i < 8 * n; i++)
            if (!draw(100))
                boxes[i] = draw(2) ? (float)NAN : draw(2) ? (float)INFINITY : -(float)INFINITY;
        for (int64_t i = 0; i < 6 * n; i++)
            scores[i] = draw(500) ? (float)draw(nlevels) / (float)nlevels : draw(40) ? (float)INFINITY : draw(10) ? -(float)INFINITY : (float)NAN;
        most = most < n ? most : n;
        dlcrt_operand operands[] = {{boxes, DLC_F32, 3, {2, n, 4}}, {scores, DLC_F32, 3, {2, 3, n}}, {&threshold, DLC_F32, 0, {0}},
                                    {&least, DLC_F32, 0, {0}},      {kept, DLC_I64, 3, {2, 3, most}}};
        dlcrt_opaque_args args = {.operands = operands, .attrs = &is_center, .name = "nms"};
        ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_SUPPRESS].run(&args), DLC_OK);
        for (int64_t c = 0; c < 6; c++) {
            int64_t nkept = keep_naively(boxes + c / 3 * n * 4, scores + c * n, n, most, threshold, least, (int)is_center, expected);
            for (int64_t i = 0; i < most; i++) {
                int64_t wanted = i < nkept ? expected[i] : -1;
                ck_assert_msg(kept[c * most + i] == wanted, "%d of %d boxes, class %d: place %d has %d, not %d", (int)most, (int)n, (int)c, (int)i,
                              (int)kept[c * most + i], (int)wanted);
            }
        }
    }
}
END_TEST

/* Rows of every length to beyond a block, of which few, half or all are not zero. */
START_TEST(nonzero_of_rows)
{
    for (int length = 0; length < 150; length++) {
        uint16_t x[3 * 150];
        int64_t out[2 * 3 * 150], count, expected = 0;
        uint32_t one_in = 1 + draw(4);
        for (int i = 0; i < 3 * length; i++)
            x[i] = draw(one_in) ? (uint16_t)(draw(2) << 15) : 0xfc01; /* -0 and NaN, as f16 */
        dlcrt_operand operands[] = {{x, DLC_F16, 2, {3, length}}, {out, DLC_I64, 2, {2, 0}}};
        dlcrt_opaque_args args = {.operands = operands, .name = "nz"};
        ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_NONZERO].count(&args, &count), DLC_OK);
        operands[1].dims[1] = count;
        ck_assert_int_eq(dlcrt_opaques[DLC_OPAQUE_NONZERO].run(&args), DLC_OK);
        for (int i = 0; i < 3 * length; i++)
            if (x[i] == 0xfc01) {
                ck_assert_int_eq(out[expected], i / length);
                ck_assert_int_eq(out[count + expected++], i % length);
            }
        ck_assert_int_eq(count, expected);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opaque");
    TCase *tests = tcase_create("opaque");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, topk_sorts_and_breaks_ties_by_index, 0,
                        sizeof topks / sizeof topks[0]);
    tcase_add_test(tests, topk_refuses_more_than_there_is);
    tcase_add_test(tests, topk_is_a_sort_cut_short);
    tcase_add_test(tests, topk_by_threads);
    tcase_add_test(tests, nonzero_of_rows);
    tcase_add_test(tests, boxes_are_suppressed_as_defined);
    tcase_add_loop_test(tests, nonzero_lists_coordinates_in_order, 0, 6);
    tcase_add_test(tests, nonzero_of_scalars_and_nothing);
    tcase_add_test(tests, boxes_are_suppressed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Loops over strips that are written out, against the point by point meaning: bf16 in memory and as bits, shifts of unsigned numbers. */
#include "ir/interp/lanes.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/unit/suite.h"

enum { ALL = 1 << 16, N = 256 };

static uint64_t state = 1;
static uint64_t draw(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return state >> 16;
}

static int is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

START_TEST(every_bf16_is_loaded)
{
    static uint16_t bits[ALL];
    static double found[ALL];
    for (uint32_t i = 0; i < ALL; i++)
        bits[i] = (uint16_t)i;
    for (uint32_t i = 0; i < ALL; i += N)
        dlc_strip_load(&(dlc_elements){.base = bits, .dtype = DLC_BF16, .start = i, .stride = 1}, DLC_LANE_DOUBLE, N, found + i);
    for (uint32_t i = 0; i < ALL; i++)
        ck_assert_msg(is_same(found[i], dlc_scalar_read(DLC_BF16, &bits[i]).f), "0x%04x gives %g", i, found[i]);
}
END_TEST

/* Those that are one and those that have to be rounded, twice as wide as an f32 or not; of every exponent. */
START_TEST(numbers_are_stored_as_bf16)
{
    double values[N];
    int64_t offsets[N];
    uint16_t found[N], wanted;
    for (uint32_t round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < N; i++) {
            uint64_t bits = draw() << 16 ^ draw();
            float narrow;
            memcpy(&narrow, &bits, sizeof narrow);
            memcpy(&values[i], &bits, sizeof values[i]);
            values[i] = i % 4 == 0 ? values[i] : i % 4 == 1 ? narrow : dlc_round_to(DLC_BF16, narrow);
            offsets[i] = N - 1 - i;
        }
        dlc_strip_store(&(dlc_elements){.base = found, .dtype = DLC_BF16, .stride = 1, .offsets = round % 2 ? offsets : NULL}, DLC_LANE_DOUBLE,
                        (dlc_strip){values, 1}, N);
        for (uint32_t i = 0; i < N; i++) {
            dlc_scalar_write(DLC_BF16, &wanted, (dlc_scalar){.f = values[i]});
            uint16_t got = found[round % 2 ? N - 1 - i : i];
            ck_assert_msg(got == wanted, "%a is stored as 0x%04x, not 0x%04x", values[i], got, wanted);
        }
    }
}
END_TEST

static const struct {
    dlc_expr_op op;
    dlc_dtype from, to;
} rows[] = {
    {DLC_EXPR_BITCAST, DLC_F32, DLC_U32}, {DLC_EXPR_BITCAST, DLC_U32, DLC_F32}, {DLC_EXPR_BITCAST, DLC_U16, DLC_BF16},
    {DLC_EXPR_SHL, DLC_U32, DLC_U32},     {DLC_EXPR_SHR, DLC_U32, DLC_U32},     {DLC_EXPR_SHL, DLC_U8, DLC_U8},
    {DLC_EXPR_SHR, DLC_U16, DLC_U16},     {DLC_EXPR_SHR, DLC_I32, DLC_I32},     {DLC_EXPR_SHR, DLC_U64, DLC_U64},
};

START_TEST(strips_are_points)
{
    int64_t x[N], result[N], shifts[] = {0, 1, 7, 16, 31, 32, 64, -1};
    dlc_lane_type from = dlc_lane_of(rows[_i].from, 0), to = dlc_lane_of(rows[_i].to, 0);
    dlc_strip_op op = {.op = (uint8_t)rows[_i].op, .from = (uint8_t)rows[_i].from, .dtype = (uint8_t)rows[_i].to};
    for (uint32_t s = 0; s < sizeof shifts / sizeof *shifts; s++) {
        for (uint32_t i = 0; i < N; i++) {
            uint64_t bits = draw();
            dlc_strip_put(from.lane, x, i, dlc_scalar_read(rows[_i].from, &bits));
        }
        dlc_strip args[] = {{x, 1}, {&shifts[s], 0}};
        dlc_strip_apply(&op, args, N, result);
        for (uint32_t i = 0; i < N; i++) {
            dlc_scalar values[] = {dlc_strip_get(from.lane, args[0], i), {.i = shifts[s]}};
            dlc_scalar wanted = dlc_scalar_apply(rows[_i].op, rows[_i].from, rows[_i].to, values);
            dlc_scalar found = dlc_strip_get(to.lane, (dlc_strip){result, 1}, i);
            ck_assert_msg(to.lane == DLC_LANE_INT ? found.i == wanted.i : is_same(found.f, wanted.f), "point %u, shift %d", i, (int)shifts[s]);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lanes");
    TCase *tcase = tcase_create("lanes");
    tcase_add_test(tcase, every_bf16_is_loaded);
    tcase_add_test(tcase, numbers_are_stored_as_bf16);
    tcase_add_loop_test(tcase, strips_are_points, 0, sizeof rows / sizeof *rows);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

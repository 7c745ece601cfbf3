/* Tiles in software (tests/amx/emulate.h), or those of this machine where it has them: shapes, loads, stores and products against loops. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/amx/emulate.h"
#include "tests/unit/suite.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define MEMORY __asm__ volatile("" ::: "memory") /* the intrinsics do not say what they read and write */
#define AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))

enum { M = 13, N = 11, K = 9, ROW = 96 }; /* rows, columns, words along K; bytes between rows */

typedef struct {
    uint8_t palette, start, zero[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} config;

static config shape_of(void)
{
    config c = {.palette = 1};
    c.rows[0] = M, c.bytes[0] = 4 * N;
    c.rows[1] = M, c.bytes[1] = 4 * K;
    c.rows[2] = K, c.bytes[2] = 4 * N;
    return c;
}

static uint8_t a[M][ROW], b[K][ROW], c[M][ROW];

static void fill(uint32_t seed)
{
    uint8_t *all[] = {&a[0][0], &b[0][0], &c[0][0]};
    size_t sizes[] = {sizeof a, sizeof b, sizeof c};
    for (int i = 0; i < 3; i++)
        for (size_t at = 0; at < sizes[i]; at++) {
            seed = seed * 1664525u + 1013904223u;
            all[i][at] = (uint8_t)(seed >> 24);
        }
}

AMX static void multiply(int row)
{
    config shape = shape_of(), found;
    MEMORY;
    _tile_loadconfig(&shape);
    _tile_storeconfig(&found);
    MEMORY;
    ck_assert(!memcmp(&shape, &found, sizeof shape));
    _tile_loadd(0, c, ROW);
    _tile_stream_loadd(1, a, ROW);
    _tile_loadd(2, b, ROW);
    if (row == 0)
        _tile_dpbssd(0, 1, 2);
    else if (row == 1)
        _tile_dpbsud(0, 1, 2);
    else if (row == 2)
        _tile_dpbusd(0, 1, 2);
    else if (row == 3)
        _tile_dpbuud(0, 1, 2);
    else
        _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, c, ROW);
    _tile_zero(1);
    _tile_stored(1, a, ROW);
    _tile_release();
    MEMORY;
}

static int byte_at(const uint8_t *at, int is_signed)
{
    return is_signed ? (int8_t)*at : *at;
}

START_TEST(bytes_are_multiplied)
{
    uint8_t before[M][ROW], rows[M][ROW];
    uint32_t got;
    fill((uint32_t)_i);
    memcpy(before, c, sizeof c);
    memcpy(rows, a, sizeof a);
    multiply(_i);
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) {
            uint32_t sum;
            memcpy(&sum, &before[m][4 * n], 4);
            for (int k = 0; k < 4 * K; k++)
                sum += (uint32_t)(byte_at(&rows[m][k], _i < 2) * byte_at(&b[k / 4][4 * n + k % 4], _i == 0 || _i == 2));
            memcpy(&got, &c[m][4 * n], 4);
            ck_assert_uint_eq(got, sum);
        }
        ck_assert(!memcmp(&c[m][4 * N], &before[m][4 * N], ROW - 4 * N)); /* behind the tile nothing changed */
        for (int k = 0; k < ROW; k++)
            ck_assert_int_eq(a[m][k], k < 4 * K ? 0 : rows[m][k]);
    }
}
END_TEST

static void put_half(uint8_t *at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    at[0] = (uint8_t)(bits >> 16);
    at[1] = (uint8_t)(bits >> 24);
}

/* Sums of first and of second elements apart, subnormals taken for zero on the way in and out. */
START_TEST(halves_are_multiplied)
{
    const float tiny = 0x1p-130f, large = 0x1p-100f;
    float got, zero = 0;
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            memcpy(&c[m][4 * n], &zero, 4);
    put_half(&a[0][0], 0x1p24f), put_half(&a[0][2], 1), put_half(&a[0][4], 1), put_half(&a[0][6], 1);
    put_half(&b[0][0], 1), put_half(&b[0][2], 1), put_half(&b[1][0], 1), put_half(&b[1][2], 1);
    put_half(&a[1][0], tiny), put_half(&a[2][0], large);
    put_half(&b[0][4], 0x1p100f), put_half(&b[0][8], 0x1p-30f);
    memcpy(&c[3][0], &tiny, 4);
    multiply(4);
    memcpy(&got, &c[0][0], 4);
    ck_assert(got == 0x1p24f + 2); /* 2^24 + 1 is 2^24, then 1 + 1: in one chain it would be 2^24 */
    memcpy(&got, &c[1][4], 4);
    ck_assert(got == 0);           /* tiny * 2^100 */
    memcpy(&got, &c[2][8], 4);
    ck_assert(got == 0);           /* 2^-130 */
    memcpy(&got, &c[3][0], 4);
    ck_assert(got == 0);
}
END_TEST

/* --- what is refused --- */

static const char *last;

static void note(const char *sentence)
{
    last = sentence;
}

AMX static void wrong_shape(void)
{
    config shape = shape_of();
    shape.rows[2] = K - 1;
    MEMORY;
    _tile_loadconfig(&shape);
    _tile_dpbssd(0, 1, 2);
}

AMX static void no_shape(void)
{
    _tile_release();
    _tile_zero(0);
}

AMX static void unnamed_tile(void)
{
    config shape = shape_of();
    MEMORY;
    _tile_loadconfig(&shape);
    _tile_loadd(5, a, ROW);
}

AMX static void twice(void)
{
    config shape = shape_of();
    MEMORY;
    _tile_loadconfig(&shape);
    __asm__ volatile(".byte 0xc4, 0xe2, 0x70, 0x5e, 0xc1"); /* tdpbuud of tiles 0, 1, 1, which no assembler takes */
}

AMX static void tall(void)
{
    config shape = shape_of();
    shape.rows[0] = 17;
    MEMORY;
    _tile_loadconfig(&shape);
}

static const struct {
    void (*run)(void);
    const char *sentence;
} refused[] = {
    {wrong_shape, "the tiles of a product have shapes that do not fit"},
    {no_shape, "tiles have no shape"},
    {unnamed_tile, "a tile has no shape"},
    {twice, "a product has one tile twice"},
    {tall, "a configuration has a tile of too many rows or bytes, or of one of them alone"},
};

START_TEST(what_does_not_fit_is_refused)
{
    uint64_t before = dlc_amx_shapes;
    multiply(0);
    if (dlc_amx_shapes == before) /* the machine's own faults are its */
        return;
    dlc_amx_refused = note;
    refused[_i].run();
    dlc_amx_refused = NULL;
    ck_assert_str_eq(last, refused[_i].sentence);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("amx");
    TCase *tests = tcase_create("amx");
    tcase_add_loop_test(tests, bytes_are_multiplied, 0, 4);
    tcase_add_test(tests, halves_are_multiplied);
    tcase_add_loop_test(tests, what_does_not_fit_is_refused, 0, (int)(sizeof refused / sizeof *refused));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
#else
int main(void)
{
    return 0;
}
#endif

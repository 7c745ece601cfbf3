/*
 * Measuring this processor, on one thread: the peak of multiply-adds and of the instructions that
 * facts stand for, as chains of independent accumulators in registers, and the speed at which
 * buffers are read that fit a cache or none. The best of a few runs of some milliseconds each
 * counts: what disturbs only slows.
 */
#include "compiler/machine.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { NACCS = 12, NRUNS = 7, AHEAD_BYTES = 2048 };
static const double run_us = 8000;

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

/* A loop of n steps over `bytes`, which many ignore. */
typedef void (*loop_fn)(long n, const void *bytes, size_t size_bytes);

/* Steps per microsecond. */
static double speed(loop_fn loop, const void *bytes, size_t size_bytes)
{
    long n = 1;
    double us = 0, best = 0;
    for (;; n *= 2) {
        double begin = now_us();
        loop(n, bytes, size_bytes);
        us = now_us() - begin;
        if (us > run_us / 2)
            break;
    }
    for (int i = 0; i < NRUNS; i++) {
        double begin = now_us();
        loop(n, bytes, size_bytes);
        us = now_us() - begin;
        best = us > 0 && (double)n / us > best ? (double)n / us : best;
    }
    return best;
}

/* --- multiply-adds and reads, by width of vector --- */
static volatile unsigned char sink;

/* One of several sums of vectors, so that none waits for the one before; `first`: before each eight of them. */
#define READ(width, first)                                                                         \
    typedef uint64_t vector __attribute__((vector_size(width)));                                   \
    vector acc[8] = {{0}};                                                                         \
    for (long i = 0; i < n; i++) {                                                                 \
        const volatile vector *at = bytes;                                                         \
        for (size_t left = size_bytes / (8 * width); left--; at += 8) {                            \
            first;                                                                                 \
            for (int k = 0; k < 8; k++)                                                            \
                acc[k] ^= at[k];                                                                   \
        }                                                                                          \
    }                                                                                              \
    for (int k = 1; k < 8; k++)                                                                    \
        acc[0] ^= acc[k];                                                                          \
    sink = (unsigned char)acc[0][0];
/* What code for memory does: it asks for lines that it will read soon. */
#define FETCH(at)                                                                                  \
    for (size_t b = 0; b < 8 * sizeof *(at); b += 64)                                              \
        __builtin_prefetch((const char *)(at) + AHEAD_BYTES + b, 0, 2)

#define LOOPS(width, attribute)                                                                    \
    attribute static void multiply_##width(long n, const void *bytes, size_t size_bytes)           \
    {                                                                                              \
        typedef float vector __attribute__((vector_size(width)));                                  \
        vector acc[NACCS], x, y;                                                                   \
        (void)bytes, (void)size_bytes;                                                             \
        for (int i = 0; i < width / 4; i++)                                                        \
            x[i] = 0.5f, y[i] = 1.0f;                                                              \
        for (int k = 0; k < NACCS; k++)                                                            \
            acc[k] = y;                                                                            \
        for (long i = 0; i < n; i++)                                                               \
            for (int k = 0; k < NACCS; k++)                                                        \
                acc[k] = acc[k] * x + y;                                                           \
        for (int k = 1; k < NACCS; k++)                                                            \
            acc[0] += acc[k];                                                                      \
        sink = (unsigned char)acc[0][0];                                                           \
    }                                                                                              \
    attribute static void read_##width(long n, const void *bytes, size_t size_bytes)               \
    {                                                                                              \
        READ(width, )                                                                              \
    }                                                                                              \
    attribute static void fetch_##width(long n, const void *bytes, size_t size_bytes)              \
    {                                                                                              \
        READ(width, FETCH(at))                                                                     \
    }

LOOPS(16, )
#if defined(__x86_64__)
LOOPS(32, __attribute__((target("avx2,fma"))))
LOOPS(64, __attribute__((target("avx512f"))))
#endif

typedef struct {
    uint32_t width;
    loop_fn multiply, read, fetch;
} width_row;
static const width_row widths[] = {
    {16, multiply_16, read_16, fetch_16},
#if defined(__x86_64__)
    {32, multiply_32, read_32, fetch_32},
    {64, multiply_64, read_64, fetch_64},
#endif
};

/* --- instructions that facts stand for: a step is NACCS of them, or four of tiles --- */
#if defined(__x86_64__)
#define CHAIN(name, features, type, zero, instruction)                                             \
    __attribute__((target(features))) static void name(long n, const void *bytes, size_t size)     \
    {                                                                                              \
        type x = zero(), y = zero(), a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x,       \
             i = x, j = x, k = x, l = x;                                                           \
        (void)bytes, (void)size;                                                                   \
        __asm__ volatile("" : "+v"(x), "+v"(y)); /* nobody knows that they are all alike */        \
        __asm__ volatile(""                                                                        \
                         : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g), "+v"(h), \
                           "+v"(i), "+v"(j), "+v"(k), "+v"(l));                                    \
        while (n-- > 0) {                                                                          \
            a = instruction(a, x, y);                                                              \
            b = instruction(b, x, y);                                                              \
            c = instruction(c, x, y);                                                              \
            d = instruction(d, x, y);                                                              \
            e = instruction(e, x, y);                                                              \
            f = instruction(f, x, y);                                                              \
            g = instruction(g, x, y);                                                              \
            h = instruction(h, x, y);                                                              \
            i = instruction(i, x, y);                                                              \
            j = instruction(j, x, y);                                                              \
            k = instruction(k, x, y);                                                              \
            l = instruction(l, x, y);                                                              \
        }                                                                                          \
        __asm__ volatile(""                                                                        \
                         :                                                                         \
                         : "v"(a), "v"(b), "v"(c), "v"(d), "v"(e), "v"(f), "v"(g), "v"(h), "v"(i), \
                           "v"(j), "v"(k), "v"(l));                                                \
    }
#define DOT_BF16(acc, x, y) _mm512_dpbf16_ps(acc, (__m512bh)(x), (__m512bh)(y))
/* An instruction more adds up; sums are factors as well, or the product would leave the loop. */
#define DOT_WORDS_16(acc, x, y) _mm_add_epi32(acc, _mm_madd_epi16(acc, x))
#define DOT_WORDS_32(acc, x, y) _mm256_add_epi32(acc, _mm256_madd_epi16(acc, x))
#define DOT_WORDS_64(acc, x, y) _mm512_add_epi32(acc, _mm512_madd_epi16(acc, x))
CHAIN(chain_words_16, "sse2", __m128i, _mm_setzero_si128, DOT_WORDS_16)
CHAIN(chain_words_32, "avx2", __m256i, _mm256_setzero_si256, DOT_WORDS_32)
CHAIN(chain_words_64, "avx512bw", __m512i, _mm512_setzero_si512, DOT_WORDS_64)
CHAIN(chain_vnni, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512, _mm512_dpbusd_epi32)
CHAIN(chain_avx_vnni, "avx2,avxvnni", __m256i, _mm256_setzero_si256, _mm256_dpbusd_avx_epi32)
CHAIN(chain_bf16, "avx512f,avx512bf16", __m512, _mm512_setzero_ps, DOT_BF16)

/* Four tiles of sums, two of each factor, all of 16 rows of 64 bytes. */
#define TILES(name, features, instruction)                                                         \
    __attribute__((target(features))) static void name(long n, const void *bytes, size_t size)     \
    {                                                                                              \
        struct {                                                                                   \
            uint8_t palette, start, zero[14];                                                      \
            uint16_t bytes_per_row[16];                                                            \
            uint8_t rows[16];                                                                      \
        } shape = {.palette = 1};                                                                  \
        (void)bytes, (void)size;                                                                   \
        for (int i = 0; i < 8; i++)                                                                \
            shape.bytes_per_row[i] = 64, shape.rows[i] = 16;                                       \
        __asm__ volatile("" ::"r"(&shape) : "memory"); /* the intrinsic does not say what it reads */ \
        _tile_loadconfig(&shape);                                                                  \
        _tile_zero(0);                                                                             \
        _tile_zero(1);                                                                             \
        _tile_zero(2);                                                                             \
        _tile_zero(3);                                                                             \
        _tile_zero(4);                                                                             \
        _tile_zero(5);                                                                             \
        _tile_zero(6);                                                                             \
        _tile_zero(7);                                                                             \
        for (long i = 0; i < n; i++) {                                                             \
            instruction(0, 4, 6);                                                                  \
            instruction(1, 4, 7);                                                                  \
            instruction(2, 5, 6);                                                                  \
            instruction(3, 5, 7);                                                                  \
        }                                                                                          \
        _tile_release();                                                                           \
    }
TILES(chain_amx_int8, "amx-tile,amx-int8", _tile_dpbssd)
TILES(chain_amx_bf16, "amx-tile,amx-bf16", _tile_dpbf16ps)
#endif

typedef struct {
    uint32_t fact;
    double ops; /* of a step */
    loop_fn loop;
    uint32_t width; /* bytes of the target's vectors; 0: any */
} chain_row;
static const chain_row chains[] = {
#if defined(__x86_64__)
    {DLC_IS_PMADDWD, NACCS * 16.0, chain_words_16, 16},
    {DLC_IS_PMADDWD, NACCS * 32.0, chain_words_32, 32},
    {DLC_IS_PMADDWD, NACCS * 64.0, chain_words_64, 64},
    {DLC_IS_VNNI, NACCS * 128.0, chain_vnni, 0},
    {DLC_IS_AVX_VNNI, NACCS * 64.0, chain_avx_vnni, 0},
    {DLC_IS_BF16, NACCS * 64.0, chain_bf16, 0},
    {DLC_IS_AMX_INT8, 4 * 32768.0, chain_amx_int8, 0},
    {DLC_IS_AMX_BF16, 4 * 16384.0, chain_amx_bf16, 0},
#endif
    {0, 0, NULL, 0}};

static void measure_chains(const dlc_target *native, dlc_machine *machine)
{
    for (const chain_row *row = chains; row->loop; row++) {
        uint64_t needs = dlc_target_features(UINT32_C(1) << row->fact);
        int is_width = !row->width || row->width == native->vector_bytes;
        if (is_width && native->facts >> row->fact & 1 && (dlcrt_cpu_features(needs) & needs) == needs)
            machine->ops_per_us[row->fact] = row->ops * speed(row->loop, NULL, 0);
    }
}

/* --- reads --- */
static double read_speed(const width_row *row, loop_fn read, const unsigned char *bytes, size_t size_bytes)
{
    size_t step = 8 * (size_t)row->width;
    size_bytes = size_bytes / step * step;
    return (double)size_bytes * speed(read, bytes, size_bytes);
}

static size_t at_most(size_t size_bytes, size_t limit)
{
    return size_bytes < limit ? size_bytes : limit;
}

static void measure_reads(const dlc_target *native, const width_row *row, dlc_machine *machine)
{
    enum { MIB = 1 << 20 };
    size_t l3 = dlc_host_l3_bytes(), far = at_most(4 * (l3 > 16 * MIB ? l3 : 16 * MIB), 256 * MIB);
    unsigned char *bytes = aligned_alloc(4096, far); /* what is asked for behind its end is nobody's, and nothing happens */
    if (!bytes)
        return;
    memset(bytes, 1, far);
    machine->l1_bytes_per_us = read_speed(row, row->read, bytes, native->l1_bytes / 2);
    machine->near_bytes_per_us = read_speed(row, row->read, bytes, native->l2_bytes / 2);
    if (l3 > 2 * (size_t)native->l2_bytes) { /* what others leave of it */
        machine->l3_bytes_per_us =
            read_speed(row, row->read, bytes, at_most(2 * (size_t)native->l2_bytes, l3 / 2));
        machine->l3_bytes = (double)l3;
    }
    machine->far_bytes_per_us = read_speed(row, row->fetch, bytes, far);
    free(bytes);
}

void dlc_machine_measure(const dlc_target *native, dlc_machine *machine)
{
    const width_row *row = widths;
    *machine = *native->machine;
    for (uint32_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i].width <= native->vector_bytes)
            row = &widths[i];
    double lanes = row->width / 4.0, ops = NACCS * 2 * lanes * speed(row->multiply, NULL, 0);
    machine->ops_per_us[DLC_IS_FMA] = ops;
    machine->cycles_per_us = ops / lanes / 4; /* a cycle of estimates: two multiply-adds of vectors, each two operations */
    measure_chains(native, machine);
    measure_reads(native, row, machine);
}

/*
 * The checksum of executables: XXH64 (Yann Collet) with seed 0, little-endian. Four independent
 * lanes of multiplications, so it runs at memory speed and any single flipped bit changes it. For
 * damage, not against forgery.
 */
#ifndef DLC_CHECKSUM_H
#define DLC_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DLC_SUM_P1 UINT64_C(0x9E3779B185EBCA87)
#define DLC_SUM_P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define DLC_SUM_P3 UINT64_C(0x165667B19E3779F9)
#define DLC_SUM_P4 UINT64_C(0x85EBCA77C2B2AE63)
#define DLC_SUM_P5 UINT64_C(0x27D4EB2F165667C5)

/* Bytes: a processor's own prefetching ends with a page, and memory is slow to begin (Emerald Rapids, 120 MB: 19 ms without, 11.6). */
enum { DLC_SUM_AHEAD = 4096 };

static inline uint64_t dlc_sum_rotate(uint64_t x, int n)
{
    return (x << n) | (x >> (64 - n));
}

static inline uint64_t dlc_sum_word(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static inline uint64_t dlc_sum_round(uint64_t lane, uint64_t word)
{
    return dlc_sum_rotate(lane + word * DLC_SUM_P2, 31) * DLC_SUM_P1;
}

static inline uint64_t dlc_sum_merge(uint64_t sum, uint64_t lane)
{
    return (sum ^ dlc_sum_round(0, lane)) * DLC_SUM_P1 + DLC_SUM_P4;
}

static inline uint64_t dlc_sum_tail(uint64_t sum, const unsigned char *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8)
        sum = dlc_sum_rotate(sum ^ dlc_sum_round(0, dlc_sum_word(p)), 27) * DLC_SUM_P1 + DLC_SUM_P4;
    if (n >= 4) {
        uint32_t word;
        memcpy(&word, p, sizeof word);
        sum = dlc_sum_rotate(sum ^ word * DLC_SUM_P1, 23) * DLC_SUM_P2 + DLC_SUM_P3;
        p += 4;
        n -= 4;
    }
    for (; n; p++, n--)
        sum = dlc_sum_rotate(sum ^ *p * DLC_SUM_P5, 11) * DLC_SUM_P1;
    sum = (sum ^ sum >> 33) * DLC_SUM_P2;
    sum = (sum ^ sum >> 29) * DLC_SUM_P3;
    return sum ^ sum >> 32;
}

static inline uint64_t dlc_checksum(const void *bytes, size_t size_bytes)
{
    const unsigned char *p = (const unsigned char *)bytes;
    size_t n = size_bytes;
    uint64_t sum = DLC_SUM_P5;
    if (n >= 32) {
        uint64_t a = DLC_SUM_P1 + DLC_SUM_P2, b = DLC_SUM_P2, c = 0, d = 0 - DLC_SUM_P1;
        for (; n >= 32; p += 32, n -= 32) {
            __builtin_prefetch(p + DLC_SUM_AHEAD);
            a = dlc_sum_round(a, dlc_sum_word(p));
            b = dlc_sum_round(b, dlc_sum_word(p + 8));
            c = dlc_sum_round(c, dlc_sum_word(p + 16));
            d = dlc_sum_round(d, dlc_sum_word(p + 24));
        }
        sum = dlc_sum_rotate(a, 1) + dlc_sum_rotate(b, 7) + dlc_sum_rotate(c, 12) +
              dlc_sum_rotate(d, 18);
        sum = dlc_sum_merge(dlc_sum_merge(dlc_sum_merge(dlc_sum_merge(sum, a), b), c), d);
    }
    return dlc_sum_tail(sum + size_bytes, p, n);
}

#endif

/* Elements in their order: keys, and the best of a row by keys of 32 bits. For steps that select and sort. order.c */
#ifndef DLCRT_ORDER_H
#define DLCRT_ORDER_H

#include <string.h>

#include "runtime/internal.h"

/* How the elements of one type become integers that order as they do: -0 equals 0, and NaN is greatest. */
typedef struct {
    uint8_t size_bytes, unused_bits; /* of 64 */
    uint8_t is_float, is_signed, is_reversed; /* reversed: the lesser is the better */
    uint64_t infinity;                        /* its bits, at the top of 64 */
} dlcrt_keys;
dlcrt_keys dlcrt_keys_of(dlc_dtype dtype, int is_reversed);

/* A row: element j lies at data + j * stride_bytes. */
typedef struct {
    dlcrt_keys keys;
    const unsigned char *data;
    int64_t stride_bytes;
} dlcrt_row;

/* Keys are read by blocks of a constant length, which compilers make vectors of. */
enum { DLCRT_BLOCK = 64 };
/* Of elements [first, first + n), n up to a block: the better, the greater. Elements of up to 32 bits. Behind n is anything. */
void dlcrt_keys_read(const dlcrt_row *row, int64_t first, int64_t n, int32_t keys[DLCRT_BLOCK]);

/* Element j as an unsigned number: the better, the less. */
static inline uint64_t dlcrt_rank(const dlcrt_row *row, int64_t j)
{
    const unsigned char *at = row->data + j * row->stride_bytes;
    uint64_t bits;
    switch (row->keys.size_bytes) {
    case 1:
        bits = (uint64_t)*at << 56;
        break;
    case 2: {
        uint16_t two;
        memcpy(&two, at, sizeof two);
        bits = (uint64_t)two << 48;
        break;
    }
    case 4: {
        uint32_t four;
        memcpy(&four, at, sizeof four);
        bits = (uint64_t)four << 32;
        break;
    }
    default:
        memcpy(&bits, at, sizeof bits);
    }
    const uint64_t top = UINT64_C(1) << 63;
    uint64_t sign = -(bits >> 63), magnitude = bits & (top - 1);
    if (row->keys.is_float) {
        bits = magnitude > row->keys.infinity ? ~UINT64_C(0) : ((magnitude ^ sign) - sign) ^ top;
    } else {
        bits ^= row->keys.is_signed ? top : 0;
    }
    return (row->keys.is_reversed ? bits : ~bits) >> row->keys.unused_bits;
}

/* A key and its element as one number, so that comparing is one instruction: the greater, the better; among equals the lower element. No two
 * are equal. Rows of up to 2^32 elements. */
static inline uint64_t dlcrt_number(int32_t key, int64_t element)
{
    return (uint64_t)((uint32_t)key ^ UINT32_C(1) << 31) << 32 | (uint32_t)~element;
}
static inline int64_t dlcrt_number_element(uint64_t number)
{
    return (uint32_t)~number;
}
static inline int32_t dlcrt_number_key(uint64_t number)
{
    return (int32_t)((uint32_t)(number >> 32) ^ UINT32_C(1) << 31);
}

/* The best `wanted` of those numbers of a row that are between two bounds, best first. */
enum { DLCRT_MOST_WANTED = 1024, DLCRT_SELECTION = 2 * DLCRT_MOST_WANTED };
typedef struct {
    uint64_t numbers[DLCRT_SELECTION], spare[DLCRT_SELECTION]; /* the first n are what was found */
    int64_t n, wanted;
    uint64_t most;     /* numbers above it are left out */
    int64_t above_key; /* keys that are not above it are left out; INT64_MIN: none */
} dlcrt_selection;
/* Of elements [0, n); wanted is up to DLCRT_MOST_WANTED, or n is up to DLCRT_SELECTION. */
void dlcrt_select(dlcrt_selection *selection, const dlcrt_row *row, int64_t n);

#endif

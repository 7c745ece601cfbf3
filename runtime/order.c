/*
 * Keys of elements, and the best of a row. A row is read once, by blocks: of most blocks the greatest key is no better than the worst of those
 * kept so far, and that is all that is asked of them. What is better is put behind those kept; where there is no room left, the best are
 * moved to the front, without being sorted, and the rest is dropped.
 */
#include <string.h>

#include "runtime/order.h"

dlcrt_keys dlcrt_keys_of(dlc_dtype dtype, int is_reversed)
{
    dlcrt_keys keys = {.size_bytes = (uint8_t)dlc_dtype_bytes(dtype), .is_reversed = is_reversed != 0};
    unsigned exponent_bits = dtype == DLC_F16 ? 5 : dtype == DLC_BF16 || dtype == DLC_F32 ? 8 : dtype == DLC_F64 ? 11 : 0;
    keys.is_float = exponent_bits != 0;
    keys.is_signed = dtype == DLC_I8 || dtype == DLC_I16 || dtype == DLC_I32 || (keys.size_bytes == 8 && dtype != DLC_U64);
    keys.unused_bits = (uint8_t)(64 - 8 * keys.size_bytes);
    keys.infinity = ((UINT64_C(1) << exponent_bits) - 1) << (63 - exponent_bits);
    return keys;
}

/* --- keys of 32 bits --- */
/* Elements at the top of 32 bits each: a whole block of neighbours, or n that lie anyhow. */
static void read_bytes(const unsigned char *at, int64_t stride_bytes, int64_t n, uint32_t bits[DLCRT_BLOCK])
{
    for (int i = 0; stride_bytes == 1 && n == DLCRT_BLOCK && i < DLCRT_BLOCK; i++)
        bits[i] = (uint32_t)at[i] << 24;
    for (int64_t i = 0; (stride_bytes != 1 || n < DLCRT_BLOCK) && i < n; i++)
        bits[i] = (uint32_t)at[i * stride_bytes] << 24;
}

static void read_pairs(const unsigned char *at, int64_t stride_bytes, int64_t n, uint32_t bits[DLCRT_BLOCK])
{
    uint16_t some[DLCRT_BLOCK] = {0};
    if (stride_bytes == sizeof *some && n == DLCRT_BLOCK)
        memcpy(some, at, sizeof some);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(&some[i], at + i * stride_bytes, sizeof *some);
    for (int i = 0; i < DLCRT_BLOCK; i++)
        bits[i] = (uint32_t)some[i] << 16;
}

static void read_fours(const unsigned char *at, int64_t stride_bytes, int64_t n, uint32_t bits[DLCRT_BLOCK])
{
    if (stride_bytes == sizeof *bits && n == DLCRT_BLOCK)
        memcpy(bits, at, DLCRT_BLOCK * sizeof *bits);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(&bits[i], at + i * stride_bytes, sizeof *bits);
}

static void read_bits(const dlcrt_row *row, int64_t first, int64_t n, uint32_t bits[DLCRT_BLOCK])
{
    const unsigned char *at = row->data + first * row->stride_bytes;
    if (n < DLCRT_BLOCK)
        memset(bits, 0, DLCRT_BLOCK * sizeof *bits);
    if (row->keys.size_bytes == 4)
        read_fours(at, row->stride_bytes, n, bits);
    else if (row->keys.size_bytes == 2)
        read_pairs(at, row->stride_bytes, n, bits);
    else
        read_bytes(at, row->stride_bytes, n, bits);
}

void dlcrt_keys_read(const dlcrt_row *row, int64_t first, int64_t n, int32_t keys[DLCRT_BLOCK])
{
    uint32_t bits[DLCRT_BLOCK];
    uint32_t flip = row->keys.is_reversed ? ~UINT32_C(0) : 0, top = UINT32_C(1) << 31;
    read_bits(row, first, n, bits);
    if (row->keys.is_float) {
        int32_t infinity = (int32_t)(row->keys.infinity >> 32);
        for (int i = 0; i < DLCRT_BLOCK; i++) {
            uint32_t sign = -(bits[i] >> 31), magnitude = bits[i] & (top - 1);
            uint32_t is_nan = -(uint32_t)((int32_t)magnitude > infinity);
            uint32_t key = (magnitude ^ sign) - sign;
            keys[i] = (int32_t)(((key & ~is_nan) | ((top - 1) & is_nan)) ^ flip);
        }
        return;
    }
    flip ^= row->keys.is_signed ? 0 : top;
    for (int i = 0; i < DLCRT_BLOCK; i++)
        keys[i] = (int32_t)(bits[i] ^ flip);
}

/* --- numbers --- */
enum { FEW = 16 };

static void sort_few(uint64_t *numbers, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        int64_t at = i;
        uint64_t moving = numbers[i];
        for (; at > 0 && numbers[at - 1] < moving; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = moving;
    }
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* The k greatest of n come first. The median of three is neither the greatest nor the least, so both parts have numbers. */
static void move_best(uint64_t *numbers, uint64_t *spare, int64_t n, int64_t k)
{
    int64_t begin = 0, end = n;
    while (begin < k && k < end) {
        if (end - begin <= FEW) {
            sort_few(numbers + begin, end - begin);
            return;
        }
        uint64_t pivot = median(numbers[begin], numbers[begin + (end - begin) / 2], numbers[end - 1]);
        int64_t middle = begin, last = end - 1;
        for (int64_t i = begin; i < end; i++) { /* to both ends, of which one is written over: no branch */
            int is_above = numbers[i] > pivot;
            spare[middle] = spare[last] = numbers[i];
            middle += is_above;
            last -= !is_above;
        }
        memcpy(numbers + begin, spare + begin, (size_t)(end - begin) * sizeof *numbers);
        if (k <= middle)
            end = middle;
        else
            begin = middle;
    }
}

static void merge(const uint64_t *from, int64_t middle, int64_t end, uint64_t *to)
{
    int64_t a = 0, b = middle, at = 0;
    while (a < middle && b < end) {
        int is_second = from[b] > from[a];
        to[at++] = is_second ? from[b] : from[a];
        a += !is_second;
        b += is_second;
    }
    memcpy(to + at, from + a, (size_t)(middle - a) * sizeof *to);
    memcpy(to + at + middle - a, from + b, (size_t)(end - b) * sizeof *to);
}

/* Short runs, merged to ones twice as long each time. Returns where the sorted ones lie. */
static uint64_t *sort_by_merging(uint64_t *from, uint64_t *to, int64_t n)
{
    enum { RUN = 8 };
    for (int64_t i = 0; i < n; i += RUN)
        sort_few(from + i, n - i < RUN ? n - i : RUN);
    for (int64_t length = RUN; length < n; length *= 2) {
        for (int64_t i = 0; i < n; i += 2 * length) {
            int64_t left = n - i;
            merge(from + i, left < length ? left : length, left < 2 * length ? left : 2 * length, to + i);
        }
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

/* Byte by byte from `first`, the lowest by which they are not in order; bytes that all have in common are passed over. */
static uint64_t *sort_by_bytes(uint64_t *from, uint64_t *to, int64_t n, int first)
{
    enum { NBYTES = sizeof *from, NDIGITS = 256 };
    uint16_t counts[NBYTES][NDIGITS] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (int b = first; b < NBYTES; b++)
            counts[b][from[i] >> (8 * b) & (NDIGITS - 1)]++;
    for (int b = first; b < NBYTES; b++) {
        uint16_t *begin = counts[b], at = 0;
        if (begin[from[0] >> (8 * b) & (NDIGITS - 1)] == n)
            continue;
        for (int d = NDIGITS; d-- > 0;) {
            uint16_t count = begin[d];
            begin[d] = at;
            at += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[begin[from[i] >> (8 * b) & (NDIGITS - 1)]++] = from[i];
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

/* is_by_element: equal keys are in order already. */
static void sort(uint64_t *numbers, uint64_t *spare, int64_t n, int is_by_element)
{
    enum { MANY = 128 };
    if (n < 2)
        return;
    uint64_t *sorted = n < MANY ? sort_by_merging(numbers, spare, n) : sort_by_bytes(numbers, spare, n, is_by_element ? 4 : 0);
    if (sorted != numbers)
        memcpy(numbers, sorted, (size_t)n * sizeof *numbers);
}

/* --- selection --- */
/* Bit i: keys[i] is above the bound. */
static inline uint32_t above_half(const int32_t keys[DLCRT_BLOCK / 2], int32_t bound)
{
    static const uint32_t bits[DLCRT_BLOCK / 2] = {
        1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
        1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
        1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};
    uint32_t found = 0;
    for (int i = 0; i < DLCRT_BLOCK / 2; i++)
        found |= keys[i] > bound ? bits[i] : 0;
    return found;
}

static uint64_t above(const int32_t keys[DLCRT_BLOCK], int32_t bound)
{
    return above_half(keys, bound) | (uint64_t)above_half(keys + DLCRT_BLOCK / 2, bound) << (DLCRT_BLOCK / 2);
}

/* False where there are no more than wanted. */
static int drop_worst(dlcrt_selection *s)
{
    if (s->n <= s->wanted)
        return 0;
    move_best(s->numbers, s->spare, s->n, s->wanted);
    s->n = s->wanted;
    uint64_t worst = s->numbers[0];
    for (int64_t i = 1; i < s->n; i++)
        worst = s->numbers[i] < worst ? s->numbers[i] : worst;
    s->above_key = dlcrt_number_key(worst); /* what comes behind an equal key is worse */
    return 1;
}

void dlcrt_select(dlcrt_selection *s, const dlcrt_row *row, int64_t n)
{
    /* Room for a few that are better, or for all where most are wanted. */
    int64_t few = s->wanted < FEW ? 2 * FEW : s->wanted < DLCRT_SELECTION / 3 ? 3 * s->wanted : DLCRT_SELECTION;
    int64_t room = s->wanted >= FEW && n <= DLCRT_SELECTION && s->wanted >= n / 4 ? n : few;
    int is_by_element = 1;
    s->n = 0;
    for (int64_t first = 0; s->wanted > 0 && first < n; first += DLCRT_BLOCK) {
        int32_t keys[DLCRT_BLOCK];
        int64_t count = n - first < DLCRT_BLOCK ? n - first : DLCRT_BLOCK;
        dlcrt_keys_read(row, first, count, keys);
        uint64_t left = s->above_key < INT32_MIN ? ~UINT64_C(0) : above(keys, (int32_t)s->above_key);
        left &= ~UINT64_C(0) >> (DLCRT_BLOCK - count);
        for (; left; left &= left - 1) {
            int i = __builtin_ctzll(left);
            uint64_t number = dlcrt_number(keys[i], first + i);
            if (keys[i] <= s->above_key || number > s->most)
                continue;
            if (s->n == room && drop_worst(s))
                is_by_element = 0;
            s->numbers[s->n++] = number;
        }
    }
    if (drop_worst(s))
        is_by_element = 0;
    sort(s->numbers, s->spare, s->n, is_by_element);
}

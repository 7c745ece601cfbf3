/*
 * The k best of rows, best first. Three ways, of which none allocates:
 * few of elements of up to 32 bits, or short rows: as numbers that hold key and element (order.c), on the stack;
 * few of longer elements: a heap in the row's indices, with the worst on top;
 * many: digit by digit, in the row's indices. Counting the elements by the digits of their ranks, from the top, finds the rank of the last one
 * that is wanted; those wanted, in their order, are then sorted by digits from the bottom. An index slot has room for two numbers of elements,
 * so each sorting pass takes them from one half of the slots to the other.
 */
#include "runtime/order.h"
#include "runtime/steps.h"

#include <inttypes.h>
#include <string.h>

/* One row along the axis. Slot i of its indices lies at slots + i * stride. */
typedef struct {
    dlcrt_row row;
    unsigned char *slots;
    int64_t stride; /* of slots, in slots */
} contest;

static unsigned char *slot_of(const contest *c, int64_t i)
{
    return c->slots + i * c->stride * (int64_t)sizeof(int64_t);
}

static int64_t slot_at(const contest *c, int64_t i)
{
    int64_t element;
    memcpy(&element, slot_of(c, i), sizeof element);
    return element;
}

static void set_slot(const contest *c, int64_t i, int64_t element)
{
    memcpy(slot_of(c, i), &element, sizeof element);
}

/* --- a heap --- */
static int is_before(const contest *c, int64_t a, int64_t b)
{
    uint64_t x = dlcrt_rank(&c->row, a), y = dlcrt_rank(&c->row, b);
    return x != y ? x < y : a < b;
}

static void sift_down(const contest *c, int64_t at, int64_t n)
{
    int64_t moving = slot_at(c, at);
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(c, slot_at(c, child), slot_at(c, child + 1)))
            child++;
        if (!is_before(c, moving, slot_at(c, child)))
            break;
        set_slot(c, at, slot_at(c, child));
    }
    set_slot(c, at, moving);
}

static void select_by_heap(const contest *c, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        set_slot(c, i, i);
    for (int64_t i = k / 2; i-- > 0;)
        sift_down(c, i, k);
    uint64_t worst = dlcrt_rank(&c->row, slot_at(c, 0)); /* what comes behind an equal one is worse */
    for (int64_t i = k; i < n; i++)
        if (dlcrt_rank(&c->row, i) < worst) {
            set_slot(c, 0, i);
            sift_down(c, 0, k);
            worst = dlcrt_rank(&c->row, slot_at(c, 0));
        }
    for (int64_t i = k; i-- > 1;) {
        int64_t last = slot_at(c, 0);
        set_slot(c, 0, slot_at(c, i));
        set_slot(c, i, last);
        sift_down(c, 0, i);
    }
}

/* --- digit by digit --- */
enum { DIGIT_BITS = 11, NDIGITS = 1 << DIGIT_BITS };

/* Ranks of a row, less the least of them. */
typedef struct {
    uint64_t least;
    int nbits; /* of the greatest difference */
} span;

static int bits_of(uint64_t number)
{
    return number ? 64 - __builtin_clzll(number) : 0;
}

static span span_of(const dlcrt_row *row, int64_t n)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t rank = dlcrt_rank(row, i);
        least = rank < least ? rank : least;
        most = rank > most ? rank : most;
    }
    return (span){least, bits_of(most - least)};
}

static uint64_t digits_above(uint64_t rank, int shift)
{
    return shift < 64 ? rank >> shift : 0;
}

/* The k best of n into the low halves, in their order. Returns the bits that their ranks take. */
static int take_best(const contest *c, span ranks, int64_t n, int64_t k)
{
    uint32_t counts[NDIGITS];
    uint64_t last = 0, seen = 0;         /* the digits of the k-th found so far; bits of those taken */
    int64_t have = n, wanted = k;        /* elements with these digits, and how many of them are wanted */
    int shift = ranks.nbits;             /* of these digits */
    while (shift > 0 && wanted < have) {
        int known = shift, width = shift < DIGIT_BITS ? shift : DIGIT_BITS;
        uint64_t digit = 0;
        shift -= width;
        memset(counts, 0, sizeof counts);
        for (int64_t i = 0; i < n; i++) {
            uint64_t rank = dlcrt_rank(&c->row, i) - ranks.least;
            if (digits_above(rank, known) == last)
                counts[rank >> shift & ((UINT64_C(1) << width) - 1)]++;
        }
        while (counts[digit] < wanted)
            wanted -= counts[digit++];
        have = counts[digit];
        last = last << width | digit;
    }
    for (int64_t i = 0, at = 0; at < k; i++) {
        uint64_t rank = dlcrt_rank(&c->row, i) - ranks.least, digits = digits_above(rank, shift);
        int is_equal = digits == last, is_taken = (digits < last) | (is_equal & (wanted > 0));
        set_slot(c, at, i);
        at += is_taken;
        wanted -= is_equal;
        seen |= is_taken ? rank : 0;
    }
    return bits_of(seen);
}

/* One half of a slot. */
static uint32_t half_at(const contest *c, int64_t i, int half)
{
    uint32_t element;
    memcpy(&element, slot_of(c, i) + half * sizeof element, sizeof element);
    return element;
}

/* The elements of a half by digit `shift` into the other one; false where all have the same digit. */
static int sort_by_digit(const contest *c, span ranks, int64_t k, int shift, int half)
{
    uint32_t counts[NDIGITS] = {0};
    for (int64_t i = 0; i < k; i++)
        counts[(dlcrt_rank(&c->row, half_at(c, i, half)) - ranks.least) >> shift & (NDIGITS - 1)]++;
    uint32_t begin = 0;
    for (int d = 0; d < NDIGITS; d++) {
        uint32_t count = counts[d];
        if (count == k)
            return 0;
        counts[d] = begin;
        begin += count;
    }
    for (int64_t i = 0; i < k; i++) {
        uint32_t element = half_at(c, i, half);
        int64_t to = counts[(dlcrt_rank(&c->row, element) - ranks.least) >> shift & (NDIGITS - 1)]++;
        memcpy(slot_of(c, to) + (1 - half) * sizeof element, &element, sizeof element);
    }
    return 1;
}

static void select_by_digits(const contest *c, int64_t n, int64_t k)
{
    span ranks = span_of(&c->row, n);
    int half = 0, nbits = take_best(c, ranks, n, k);
    for (int shift = 0; shift < nbits; shift += DIGIT_BITS)
        half ^= sort_by_digit(c, ranks, k, shift, half);
    for (int64_t i = 0; i < k; i++)
        set_slot(c, i, half_at(c, i, half));
}

/* --- the step --- */
static void select_row(const contest *c, int64_t n, int64_t k)
{
    enum { FEW = 64, SHORT = 512 };
    int is_small = c->row.keys.size_bytes <= 4, is_countable = n <= UINT32_MAX;
    if (is_small && is_countable && (k <= DLCRT_MOST_WANTED || n <= DLCRT_SELECTION)) {
        dlcrt_selection best;
        best.wanted = k;
        best.most = UINT64_MAX;
        best.above_key = INT64_MIN;
        dlcrt_select(&best, &c->row, n);
        for (int64_t i = 0; i < k; i++)
            set_slot(c, i, dlcrt_number_element(best.numbers[i]));
    } else if (k <= FEW || n <= SHORT || !is_countable) {
        select_by_heap(c, n, k);
    } else {
        select_by_digits(c, n, k);
    }
}

/* Elements that the step chose, of `size_bytes` each. */
static void copy_row(const contest *c, unsigned char *values, int64_t k)
{
    int64_t size_bytes = c->row.keys.size_bytes, stride_bytes = c->stride * size_bytes;
    for (int64_t i = 0; size_bytes == 4 && i < k; i++)
        memcpy(values + i * stride_bytes, c->row.data + slot_at(c, i) * c->row.stride_bytes, 4);
    for (int64_t i = 0; size_bytes != 4 && i < k; i++)
        memcpy(values + i * stride_bytes, c->row.data + slot_at(c, i) * c->row.stride_bytes, (size_t)size_bytes);
}

typedef struct {
    const dlcrt_operand *x, *values, *indices;
    dlcrt_keys keys;
    int64_t n, k, inner;
} tops;

static void select_rows(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    const tops *t = args->buffers[0];
    int64_t size_bytes = t->keys.size_bytes;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i / t->inner * t->n * t->inner + i % t->inner, to = i / t->inner * t->k * t->inner + i % t->inner;
        contest c = {.row = {t->keys, (const unsigned char *)t->x->data + from * size_bytes, t->inner * size_bytes},
                     .slots = (unsigned char *)t->indices->data + to * (int64_t)sizeof(int64_t),
                     .stride = t->inner};
        select_row(&c, t->n, t->k);
        if (t->values->data)
            copy_row(&c, (unsigned char *)t->values->data + to * size_bytes, t->k);
    }
}

/* Whether y has the dimensions of x but for `axis`, and elements of this type; an output that nobody reads is right. */
static int is_like(const dlcrt_operand *y, const dlcrt_operand *x, int64_t axis, dlc_dtype dtype)
{
    int fits = y->rank == x->rank && y->dtype == dtype;
    for (uint32_t d = 0; fits && d < x->rank; d++)
        fits = d == axis || y->dims[d] == x->dims[d];
    return fits || !y->data;
}

static int64_t product(const int64_t *dims, int64_t begin, int64_t end)
{
    int64_t result = 1;
    for (int64_t i = begin; i < end; i++)
        result *= dims[i];
    return result;
}

/* inputs x; outputs values, indices (i64); attrs axis, largest, sorted (they always are) */
dlc_status dlcrt_run_topk(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *x = &args->operands[0], *values = &args->operands[1], *indices = &args->operands[2];
    int64_t axis = args->attrs[0];
    if (axis < 0 || axis >= x->rank || indices->rank != x->rank)
        return dlcrt_fail(DLC_INVALID, "node '%s': axis %" PRId64 " of rank %u", args->name, axis, x->rank);
    int64_t n = x->dims[axis], k = indices->dims[axis];
    if (dlcrt_is_missing(indices) || !is_like(indices, x, axis, DLC_I64) || !is_like(values, x, axis, x->dtype) ||
        (values->data && values->dims[axis] != k))
        return dlcrt_fail(DLC_INVALID, "node '%s': its values and indices do not belong together", args->name);
    if (k > n)
        return dlcrt_fail(DLC_INVALID, "node '%s': k = %" PRId64 ", the axis has %" PRId64 " elements", args->name, k, n);
    if (k <= 0)
        return DLC_OK;
    tops t = {x, values, indices, dlcrt_keys_of(x->dtype, args->attrs[1] == 0), n, k, product(x->dims, axis + 1, x->rank)};
    dlcrt_pool_run_units(args->pool, select_rows, &t, product(x->dims, 0, axis) * t.inner, n);
    return DLC_OK;
}

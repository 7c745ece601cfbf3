/*
 * Steps that are no equations, in plain C over row-major tensors. One table by kind
 * (dlc/opaque.def): how many operands, a function that finds out a size where one depends on data,
 * and the function that writes the outputs. None allocates, but for those that make strings
 * (text_*.c): top-k keeps its heap in the outputs themselves. Operands may be the caller's, at any address, so elements are read and written as
 * bytes.
 */
#include "runtime/steps.h"

#include <inttypes.h>
#include <string.h>

/* --- elements as ordered integers --- */
/* Bits of a float as an integer that orders like it: -0 equals 0, and NaN is greatest. */
static int64_t float_key(uint64_t bits, unsigned width, unsigned exponent_bits)
{
    uint64_t sign = UINT64_C(1) << (width - 1), magnitude = bits & (sign - 1);
    uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << (width - 1 - exponent_bits);
    if (magnitude > infinity)
        return INT64_MAX;
    return bits & sign ? -(int64_t)magnitude : (int64_t)magnitude;
}

/* Element i as an integer that orders as the elements do. */
static int64_t key_of(dlc_dtype dtype, const void *data, int64_t i)
{
    uint32_t size_bytes = dlc_dtype_bytes(dtype);
    uint64_t bits = 0;
    memcpy(&bits, (const unsigned char *)data + i * (int64_t)size_bytes, size_bytes);
    switch (dtype) {
    case DLC_I8:
        return (int8_t)bits;
    case DLC_I16:
        return (int16_t)bits;
    case DLC_I32:
        return (int32_t)bits;
    case DLC_U64:
        return (int64_t)(bits ^ UINT64_C(1) << 63);
    case DLC_F16:
        return float_key(bits, 16, 5);
    case DLC_BF16:
        return float_key(bits, 16, 8);
    case DLC_F32:
        return float_key(bits, 32, 8);
    case DLC_F64:
        return float_key(bits, 64, 11);
    default:
        return (int64_t)bits;
    }
}

static int64_t product(const int64_t *dims, uint32_t begin, uint32_t end)
{
    int64_t result = 1;
    for (uint32_t i = begin; i < end; i++)
        result *= dims[i];
    return result;
}

/* Element i of i64 data. */
static int64_t index_at(const void *data, int64_t i)
{
    int64_t value;
    memcpy(&value, (const unsigned char *)data + i * (int64_t)sizeof value, sizeof value);
    return value;
}

static void set_index(void *data, int64_t i, int64_t value)
{
    memcpy((unsigned char *)data + i * (int64_t)sizeof value, &value, sizeof value);
}

/* --- topk --- */
/* One row along the axis: element j lies at begin + j * stride. The heap holds the k best so far,
 * the worst of them on top. */
typedef struct {
    const void *data;
    dlc_dtype dtype;
    int largest;
    int64_t begin, stride;
    void *heap; /* i64 element numbers; entry i at heap_begin + i * stride */
    int64_t heap_begin;
} row;

static int64_t heap_at(const row *r, int64_t i)
{
    return index_at(r->heap, r->heap_begin + i * r->stride);
}

static void set_heap(const row *r, int64_t i, int64_t element)
{
    set_index(r->heap, r->heap_begin + i * r->stride, element);
}

/* Better value first; among equals the lower index. */
static int is_before(const row *r, int64_t a, int64_t b)
{
    int64_t x = key_of(r->dtype, r->data, r->begin + a * r->stride),
            y = key_of(r->dtype, r->data, r->begin + b * r->stride);
    if (x != y)
        return r->largest ? x > y : x < y;
    return a < b;
}

static void sift_down(const row *r, int64_t at, int64_t n)
{
    int64_t moving = heap_at(r, at);
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(r, heap_at(r, child), heap_at(r, child + 1)))
            child++;
        if (!is_before(r, moving, heap_at(r, child)))
            break;
        set_heap(r, at, heap_at(r, child));
    }
    set_heap(r, at, moving);
}

/* The k best of n into the heap, best first. */
static void select_row(const row *r, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        set_heap(r, i, i);
    for (int64_t i = k / 2; i-- > 0;)
        sift_down(r, i, k);
    for (int64_t i = k; i < n; i++)
        if (is_before(r, i, heap_at(r, 0))) {
            set_heap(r, 0, i);
            sift_down(r, 0, k);
        }
    for (int64_t i = k; i-- > 1;) {
        int64_t worst = heap_at(r, 0);
        set_heap(r, 0, heap_at(r, i));
        set_heap(r, i, worst);
        sift_down(r, 0, i);
    }
}

/* It has elements, and they lie nowhere. */
static int is_missing(const dlcrt_operand *operand)
{
    return !operand->data && product(operand->dims, 0, operand->rank) > 0;
}

/* Whether y has the dimensions of x but for `axis`, and elements of this type; an output that nobody reads is right. */
static int is_like(const dlcrt_operand *y, const dlcrt_operand *x, int64_t axis, dlc_dtype dtype)
{
    int fits = y->rank == x->rank && y->dtype == dtype;
    for (uint32_t d = 0; fits && d < x->rank; d++)
        fits = d == axis || y->dims[d] == x->dims[d];
    return fits || !y->data;
}

/* Short rows of elements of up to 32 bits, most of which are wanted: key and element in one number, so that comparing is one
 * instruction; runs of RUN are merged, twice as long each time. */
enum { AT_HAND = 2048, RUN = 8, INDEX_BITS = 30 };

static void sort_runs(uint64_t *numbers, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i, first = i / RUN * RUN;
        uint64_t moving = numbers[i];
        for (; at > first && numbers[at - 1] > moving; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = moving;
    }
}

static void merge(const uint64_t *from, int64_t middle, int64_t end, uint64_t *to)
{
    int64_t a = 0, b = middle, at = 0;
    while (a < middle && b < end) {
        int is_second = from[b] < from[a];
        to[at++] = is_second ? from[b] : from[a];
        a += !is_second;
        b += is_second;
    }
    memcpy(to + at, from + a, (size_t)(middle - a) * sizeof *to);
    memcpy(to + at + middle - a, from + b, (size_t)(end - b) * sizeof *to);
}

/* The k best of n into the heap, best first; false where select_row is the better way. */
static int sort_row(const row *r, int64_t n, int64_t k)
{
    const int64_t middle = INT64_C(1) << 32; /* keys of 32 bits lie around it */
    uint64_t room[2][AT_HAND], *from = room[0], *to = room[1];
    if (n > AT_HAND || k < n / 4 || dlc_dtype_bytes(r->dtype) > 4)
        return 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t key = key_of(r->dtype, r->data, r->begin + i * r->stride);
        key = key < middle ? key : middle - 1; /* NaN */
        from[i] = (uint64_t)(r->largest ? middle - key : middle + key) << INDEX_BITS | (uint64_t)i;
    }
    sort_runs(from, n);
    for (int64_t length = RUN; length < n; length *= 2) {
        for (int64_t i = 0; i < n; i += 2 * length) {
            int64_t left = n - i;
            merge(from + i, left < length ? left : length, left < 2 * length ? left : 2 * length, to + i);
        }
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    for (int64_t i = 0; i < k; i++)
        set_heap(r, i, (int64_t)(from[i] & ((UINT64_C(1) << INDEX_BITS) - 1)));
    return 1;
}

/* inputs x; outputs values, indices (i64); attrs axis, largest, sorted (they always are) */
static dlc_status run_topk(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *x = &args->operands[0], *values = &args->operands[1],
                        *indices = &args->operands[2];
    int64_t axis = args->attrs[0];
    if (axis < 0 || axis >= x->rank || indices->rank != x->rank)
        return dlcrt_fail(DLC_INVALID, "node '%s': axis %" PRId64 " of rank %u", args->name, axis,
                          x->rank);
    int64_t n = x->dims[axis], k = indices->dims[axis];
    if (is_missing(indices) || !is_like(indices, x, axis, DLC_I64) || !is_like(values, x, axis, x->dtype) ||
        (values->data && values->dims[axis] != k))
        return dlcrt_fail(DLC_INVALID, "node '%s': its values and indices do not belong together", args->name);
    if (k > n)
        return dlcrt_fail(DLC_INVALID,
                          "node '%s': k = %" PRId64 ", the axis has %" PRId64 " elements",
                          args->name, k, n);
    if (k <= 0)
        return DLC_OK;
    int64_t outer = product(x->dims, 0, (uint32_t)axis),
            inner = product(x->dims, (uint32_t)axis + 1, x->rank);
    size_t one = dlc_dtype_bytes(x->dtype);
    for (int64_t i = 0; i < outer * inner; i++) {
        int64_t at = i / inner * k * inner + i % inner;
        row r = {.data = x->data,
                 .dtype = x->dtype,
                 .largest = args->attrs[1] != 0,
                 .begin = i / inner * n * inner + i % inner,
                 .stride = inner,
                 .heap = indices->data,
                 .heap_begin = at};
        if (!sort_row(&r, n, k))
            select_row(&r, n, k);
        for (int64_t j = 0; values->data && j < k; j++)
            memcpy((unsigned char *)values->data + (size_t)(at + j * inner) * one,
                   (const unsigned char *)x->data +
                       (size_t)(r.begin + heap_at(&r, j) * inner) * one,
                   one);
    }
    return DLC_OK;
}

/* --- nonzero --- */
static inline int is_nonzero(const dlcrt_operand *x, int64_t i)
{
    if (x->dtype == DLC_BOOL)
        return ((const unsigned char *)x->data)[i] != 0;
    return key_of(x->dtype, x->data, i) != (x->dtype == DLC_U64 ? INT64_MIN : 0);
}

static dlc_status count_nonzero(const dlcrt_opaque_args *args, int64_t *symbol)
{
    const dlcrt_operand *x = &args->operands[0];
    int64_t count = 0;
    for (int64_t i = 0, n = product(x->dims, 0, x->rank); i < n; i++)
        count += is_nonzero(x, i);
    *symbol = count;
    return DLC_OK;
}

/* inputs x; outputs i64[rank, count]: a column per element, in row-major order */
static dlc_status run_nonzero(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *x = &args->operands[0], *y = &args->operands[1];
    int64_t at[DLCRT_MAX_RANK] = {0}, column = 0, ncolumns = y->dims[1];
    if (y->rank != 2 || y->dtype != DLC_I64 || y->dims[0] != x->rank || is_missing(y))
        return dlcrt_fail(DLC_INVALID, "node '%s': its result has no row for each of %u dimensions", args->name, x->rank);
    int64_t length = x->rank ? x->dims[x->rank - 1] : 1, nrows = product(x->dims, 0, x->rank ? x->rank - 1 : 0);
    for (int64_t i = 0; length && i < nrows; i++) {
        for (int64_t j = 0; j < length && column < ncolumns; j++) {
            if (!is_nonzero(x, i * length + j))
                continue;
            for (uint32_t k = 0; k + 1 < x->rank; k++)
                set_index(y->data, (int64_t)k * ncolumns + column, at[k]);
            if (x->rank)
                set_index(y->data, (int64_t)(x->rank - 1) * ncolumns + column, j);
            column++;
        }
        for (uint32_t k = x->rank ? x->rank - 1 : 0; k-- > 0 && ++at[k] == x->dims[k];)
            at[k] = 0;
    }
    return DLC_OK;
}

/* --- suppress: greedy, best score first; a box goes where a kept one overlaps it too much --- */
typedef struct {
    float low[2], high[2];
} box;

static float float_at(const void *data, int64_t i)
{
    float value;
    memcpy(&value, (const unsigned char *)data + i * (int64_t)sizeof value, sizeof value);
    return value;
}

/* Two opposite corners in either order, or the centre (x, y) with width and height. */
static box box_at(const void *data, int64_t i, int is_center)
{
    box b;
    for (int d = 0; d < 2; d++) {
        float p = float_at(data, 4 * i + d), q = float_at(data, 4 * i + 2 + d);
        b.low[d] = is_center ? p - q / 2 : p < q ? p : q;
        b.high[d] = is_center ? p + q / 2 : p < q ? q : p;
    }
    return b;
}

static float area_of(const box *b)
{
    return (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]);
}

/* One class of one batch: candidates in order of their scores; the numbers of the boxes kept, then
 * -1. */
typedef struct {
    const void *boxes, *order, *scores;
    void *kept;
    int64_t begin, n, nboxes, most;
    float threshold, least;
    int is_center;
} contest;

/* The next candidates, as they are compared: corners and areas side by side, 16 at once. */
enum { CANDIDATES = 256, AT_ONCE = 16 };
typedef struct {
    float low[2][CANDIDATES], high[2][CANDIDATES], area[CANDIDATES];
    int32_t is_left[CANDIDATES];
    int64_t number[CANDIDATES], n;
} candidates;

static void set_candidate(candidates *all, int64_t i, const box *b)
{
    for (int d = 0; d < 2; d++) {
        all->low[d][i] = b->low[d];
        all->high[d][i] = b->high[d];
    }
    all->area[i] = area_of(b);
}

/* From place `at` of the order on; returns the place behind them, the end where scores are too low. */
static int64_t take_candidates(const contest *c, int64_t at, candidates *all)
{
    for (all->n = 0; at < c->n && all->n < CANDIDATES; at++) {
        int64_t number = index_at(c->order, c->begin + at);
        if (!(float_at(c->scores, c->begin + at) > c->least)) {
            at = c->n;
            break;
        }
        if (number < 0 || number >= c->nboxes)
            continue;
        box own = box_at(c->boxes, number, c->is_center);
        set_candidate(all, all->n, &own);
        all->is_left[all->n] = 1;
        all->number[all->n++] = number;
    }
    for (int64_t i = all->n; i % AT_ONCE; i++) {
        set_candidate(all, i, &(box){{0, 0}, {0, 0}});
        all->is_left[i] = 0;
    }
    return at;
}

/* Sets share[2] to how far both reach together along each dimension. */
static inline void shared_extent(const candidates *all, int64_t i, const box *kept, float share[2])
{
    for (int d = 0; d < 2; d++) {
        float low = all->low[d][i] > kept->low[d] ? all->low[d][i] : kept->low[d];
        share[d] = (all->high[d][i] < kept->high[d] ? all->high[d][i] : kept->high[d]) - low;
    }
}

static int touches_some(const candidates *all, int64_t first, const box *kept)
{
    int found = 0;
    for (int64_t i = first; i < first + AT_ONCE; i++) {
        float share[2];
        shared_extent(all, i, kept, share);
        found |= (share[0] > 0) & (share[1] > 0) & all->is_left[i];
    }
    return found;
}

/* Those from `first` on that the box overlaps too much are out. An area of 0 overlaps nothing. */
static void strike(candidates *all, int64_t first, const box *kept, float threshold)
{
    float area = area_of(kept);
    for (int64_t g = first / AT_ONCE * AT_ONCE; area > 0 && g < all->n; g += AT_ONCE) {
        if (!touches_some(all, g, kept))
            continue;
        for (int64_t i = g; i < g + AT_ONCE; i++) {
            float share[2];
            shared_extent(all, i, kept, share);
            float shared = share[0] * share[1], whole = all->area[i] + area - shared;
            int is_out = (share[0] > 0) & (share[1] > 0) & (all->area[i] > 0) & (whole > 0) & (shared / whole > threshold);
            all->is_left[i] &= !is_out;
        }
    }
}

/* Some candidates at a time: first all boxes kept so far strike out of them, then each that is left is kept and strikes. */
static void suppress(const contest *c)
{
    candidates all;
    int64_t nkept = 0;
    for (int64_t at = 0; at < c->n && nkept < c->most;) {
        at = take_candidates(c, at, &all);
        for (int64_t k = 0; k < nkept; k++) {
            box kept = box_at(c->boxes, index_at(c->kept, c->begin + k), c->is_center);
            strike(&all, 0, &kept, c->threshold);
        }
        for (int64_t i = 0; i < all.n && nkept < c->most; i++) {
            if (!all.is_left[i])
                continue;
            set_index(c->kept, c->begin + nkept++, all.number[i]);
            box own = box_at(c->boxes, all.number[i], c->is_center);
            strike(&all, i + 1, &own, c->threshold);
        }
    }
    for (int64_t i = nkept; i < c->n; i++)
        set_index(c->kept, c->begin + i, -1);
}

/* inputs boxes f32[b,n,4], order i64[b,c,k] of falling scores f32[b,c,k], most i64, threshold and
 * least f32; output i64[b,c,k]; attrs center */
static dlc_status run_suppress(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *boxes = &args->operands[0], *order = &args->operands[1],
                        *scores = &args->operands[2], *kept = &args->operands[6];
    int is_shaped = boxes->rank == 3 && boxes->dims[2] == 4 && order->rank == 3 &&
                    scores->rank == 3 && kept->rank == 3 && order->dims[0] == boxes->dims[0];
    for (uint32_t d = 0; is_shaped && d < 3; d++)
        is_shaped = order->dims[d] == scores->dims[d] && order->dims[d] == kept->dims[d];
    static const dlc_dtype dtypes[] = {DLC_F32, DLC_I64, DLC_F32, DLC_I64, DLC_F32, DLC_F32, DLC_I64};
    for (uint32_t i = 0; is_shaped && i < 7; i++) /* the limits are single numbers */
        is_shaped = args->operands[i].dtype == dtypes[i] && !is_missing(&args->operands[i]) &&
                    (i < 3 || i > 5 || product(args->operands[i].dims, 0, args->operands[i].rank) == 1);
    if (!is_shaped)
        return dlcrt_fail(DLC_INVALID, "node '%s': boxes and scores do not belong together",
                          args->name);
    for (int64_t i = 0; i < order->dims[0] * order->dims[1]; i++)
        suppress(&(contest){
            .boxes = (const unsigned char *)boxes->data +
                     i / order->dims[1] * boxes->dims[1] * 4 * (int64_t)sizeof(float),
            .order = order->data,
            .scores = scores->data,
            .kept = kept->data,
            .begin = i * order->dims[2],
            .n = order->dims[2],
            .nboxes = boxes->dims[1],
            .most = index_at(args->operands[3].data, 0),
            .threshold = float_at(args->operands[4].data, 0),
            .least = float_at(args->operands[5].data, 0),
            .is_center = args->attrs[0] != 0});
    return DLC_OK;
}

const dlcrt_opaque_info dlcrt_opaques[DLC_OPAQUE_COUNT] = {
#define DLC_OPAQUE(id, number, text, inputs, outputs, attrs, names, count, run)                           \
    [number] = {text, inputs, outputs, attrs, count, run},
#define NONE NULL
#include "dlc/opaque.def"
#undef NONE
#undef DLC_OPAQUE
};

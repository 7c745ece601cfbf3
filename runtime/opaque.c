/*
 * Steps that are no equations, in plain C over row-major tensors. One table by kind
 * (dlc/opaque.def): how many operands, a function that finds out a size where one depends on data,
 * and the function that writes the outputs. None allocates: top-k keeps its heap in the outputs
 * themselves. Operands may be the caller's, at any address, so elements are read and written as
 * bytes.
 */
#include "runtime/internal.h"

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

/* inputs x; outputs values, indices (i64); attrs axis, largest, sorted (they always are) */
static dlc_status run_topk(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *x = &args->operands[0], *values = &args->operands[1],
                        *indices = &args->operands[2];
    int64_t axis = args->attrs[0];
    if (axis < 0 || axis >= x->rank || values->rank != x->rank)
        return dlcrt_fail(DLC_INVALID, "node '%s': axis %" PRId64 " of rank %u", args->name, axis,
                          x->rank);
    int64_t n = x->dims[axis], k = values->dims[axis];
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
static int is_nonzero(const dlcrt_operand *x, int64_t i)
{
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
    for (int64_t i = 0, n = product(x->dims, 0, x->rank); i < n; i++) {
        if (column < ncolumns && is_nonzero(x, i)) {
            for (uint32_t k = 0; k < x->rank; k++)
                set_index(y->data, (int64_t)k * ncolumns + column, at[k]);
            column++;
        }
        for (uint32_t k = x->rank; k-- > 0 && ++at[k] == x->dims[k];)
            at[k] = 0;
    }
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

/*
 * Steps that are no equations, in plain C over row-major tensors. One table by kind
 * (dlc/opaque.def): how many operands, a function that finds out a size where one depends on data,
 * and the function that writes the outputs. None allocates, but for those that make strings
 * (text_*.c). Operands may be the caller's, at any address, so elements are read and written as
 * bytes. Here are the table and what is not zero.
 */
#include "runtime/steps.h"

#include <string.h>

/* --- nonzero: blocks of a constant length, which compilers make vectors of --- */
enum { BLOCK = 64 };

/* One of each element that is not zero, of [first, first + n); zeros behind n. NaN is not zero, -0 is. */
static void mark_block(const dlcrt_operand *x, int64_t first, int64_t n, uint8_t marks[BLOCK])
{
    union {
        uint8_t bytes[BLOCK];
        uint16_t twos[BLOCK];
        uint32_t fours[BLOCK];
        uint64_t eights[BLOCK];
    } data;
    size_t size_bytes = dlc_dtype_bytes(x->dtype);
    uint64_t mask = dlc_is_float(x->dtype) ? ~(UINT64_C(1) << (8 * size_bytes - 1)) : ~UINT64_C(0);
    if (n < BLOCK)
        memset(&data, 0, sizeof data);
    memcpy(&data, (const unsigned char *)x->data + first * (int64_t)size_bytes, (size_t)n * size_bytes);
    if (size_bytes == 1)
        for (int i = 0; i < BLOCK; i++)
            marks[i] = data.bytes[i] != 0;
    else if (size_bytes == 2)
        for (int i = 0; i < BLOCK; i++)
            marks[i] = (data.twos[i] & (uint16_t)mask) != 0;
    else if (size_bytes == 4)
        for (int i = 0; i < BLOCK; i++)
            marks[i] = (data.fours[i] & (uint32_t)mask) != 0;
    else
        for (int i = 0; i < BLOCK; i++)
            marks[i] = (data.eights[i] & mask) != 0;
}

static dlc_status count_nonzero(const dlcrt_opaque_args *args, int64_t *symbol)
{
    const dlcrt_operand *x = &args->operands[0];
    int64_t count = 0, n = dlcrt_operand_elems(x);
    for (int64_t i = 0; i < n; i += BLOCK) {
        uint8_t marks[BLOCK];
        uint32_t found = 0;
        mark_block(x, i, n - i < BLOCK ? n - i : BLOCK, marks);
        for (int j = 0; j < BLOCK; j++)
            found += marks[j];
        count += found;
    }
    *symbol = count;
    return DLC_OK;
}

static void set_index(void *data, int64_t i, int64_t value)
{
    memcpy((unsigned char *)data + i * (int64_t)sizeof value, &value, sizeof value);
}

/* Columns [column, end) of a row of the result, all of one number. */
static void fill_columns(const dlcrt_operand *y, int64_t row, int64_t column, int64_t end, int64_t value)
{
    for (; column < end; column++)
        set_index(y->data, row * y->dims[1] + column, value);
}

/* Columns of elements [first, first + length) of x, whose last index goes from 0; returns the column behind them, at most `ncolumns`. */
static int64_t list_row(const dlcrt_operand *x, const dlcrt_operand *y, int64_t first, int64_t length, int64_t column)
{
    int64_t ncolumns = y->dims[1], last = x->rank ? (x->rank - 1) * ncolumns : 0;
    for (int64_t i = 0; i < length && column < ncolumns; i += BLOCK) {
        uint8_t marks[BLOCK], found[BLOCK + 1];
        int64_t nfound = 0;
        mark_block(x, first + i, length - i < BLOCK ? length - i : BLOCK, marks);
        for (int j = 0; j < BLOCK; j++) {
            found[nfound] = (uint8_t)j;
            nfound += marks[j];
        }
        nfound = nfound < ncolumns - column ? nfound : ncolumns - column;
        for (int64_t j = 0; x->rank && j < nfound; j++)
            set_index(y->data, last + column + j, i + found[j]);
        column += nfound;
    }
    return column;
}

/* inputs x; outputs i64[rank, count]: a column per element, in row-major order */
static dlc_status run_nonzero(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *x = &args->operands[0], *y = &args->operands[1];
    int64_t at[DLCRT_MAX_RANK] = {0}, column = 0;
    if (y->rank != 2 || y->dtype != DLC_I64 || y->dims[0] != x->rank || dlcrt_is_missing(y))
        return dlcrt_fail(DLC_INVALID, "node '%s': its result has no row for each of %u dimensions", args->name, x->rank);
    int64_t length = x->rank ? x->dims[x->rank - 1] : 1, nrows = length ? dlcrt_operand_elems(x) / length : 0;
    for (int64_t i = 0; i < nrows; i++) {
        int64_t begin = column;
        column = list_row(x, y, i * length, length, column);
        for (uint32_t k = 0; k + 1 < x->rank; k++)
            fill_columns(y, k, begin, column, at[k]);
        for (uint32_t k = x->rank - (x->rank > 0); k-- > 0;) {
            if (++at[k] < x->dims[k])
                break;
            at[k] = 0;
        }
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

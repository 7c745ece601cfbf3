/* The importers' tables, one per domain, and their search by name and opset. */
#include "frontend/import_steps.h"

#include <string.h>

#define DLC_ONNX(name, since, until, importer, argument, lo, hi, outputs)                          \
    {#name, since, until, import_##importer, argument, lo, hi, outputs, 0},
#define DLC_ONNX_LIST(name, since, until, importer, argument, lo, hi, outputs)                     \
    {#name, since, until, import_##importer, argument, lo, hi, outputs, 1},

enum { LAST = DLC_OPSET_LAST };
static const dlc_onnx_row onnx_rows[] = {
#include "frontend/onnx_ops.def"
};

#define LAST INT16_MAX
static const dlc_onnx_row ml_rows[] = {
#include "frontend/ml_ops.def"
};
static const dlc_onnx_row ms_rows[] = {
#include "frontend/ms_ops.def"
};
static const dlc_onnx_row preview_rows[] = {
#include "frontend/preview_ops.def"
};
static const dlc_onnx_row training_rows[] = {
#include "frontend/training_ops.def"
};
#undef LAST
#undef DLC_ONNX_LIST
#undef DLC_ONNX

static const struct {
    const char *domain;
    const dlc_onnx_row *rows;
    size_t n;
} tables[] = {
    {"", onnx_rows, sizeof onnx_rows / sizeof *onnx_rows},
    {"ai.onnx.ml", ml_rows, sizeof ml_rows / sizeof *ml_rows},
    {"ai.onnx.preview", preview_rows, sizeof preview_rows / sizeof *preview_rows},
    {"ai.onnx.preview.training", training_rows, sizeof training_rows / sizeof *training_rows},
    {"com.microsoft", ms_rows, sizeof ms_rows / sizeof *ms_rows},
};

const dlc_onnx_row *im_rows(const char *domain, size_t *n)
{
    *n = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        if (strcmp(tables[t].domain, domain) == 0) {
            *n = tables[t].n;
            return tables[t].rows;
        }
    }
    return NULL;
}

/* The rows of this name, n of them; rows stand in the order of names. */
static const dlc_onnx_row *rows_of(const char *domain, const char *name, size_t *n)
{
    size_t nrows, lo = 0;
    const dlc_onnx_row *rows = im_rows(domain, &nrows);
    for (size_t hi = nrows; lo < hi;) {
        size_t middle = (lo + hi) / 2;
        if (strcmp(rows[middle].name, name) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    *n = 0;
    while (lo + *n < nrows && strcmp(rows[lo + *n].name, name) == 0)
        ++*n;
    return *n ? rows + lo : rows;
}

const dlc_onnx_row *im_row(const char *domain, const char *name, int64_t opset)
{
    size_t n;
    const dlc_onnx_row *rows = rows_of(domain, name, &n);
    for (size_t i = 0; i < n; i++) {
        if (opset >= rows[i].since && opset <= rows[i].until)
            return &rows[i];
    }
    return NULL;
}

/* --- types of inputs --- */

typedef enum { IS_FLOAT, IS_NARROW_FLOAT, IS_INDEX, IS_BOOL, IS_BYTE, IS_CODE, IS_NUMBER } type_class;

static const struct {
    const char *name;
    uint32_t input;
    type_class wants;
} input_types[] = {
#define DLC_ONNX_INPUT(name, input, types) {#name, input, types},
#include "frontend/onnx_inputs.def"
};

static int is_of(type_class wants, dlc_dtype dtype)
{
    int is_byte = dtype == DLC_U8 || dtype == DLC_I8;
    switch (wants) {
    case IS_FLOAT:
        return dlc_is_float(dtype);
    case IS_NARROW_FLOAT: /* moved, so codes of floats too */
        return dlc_is_float(dtype) || (dlc_is_code(dtype) && dlc_dtypes[dtype].text[0] == 'f');
    case IS_INDEX:
        return dtype == DLC_I32 || dtype == DLC_I64;
    case IS_BOOL:
        return dtype == DLC_BOOL;
    case IS_BYTE:
        return is_byte;
    case IS_CODE:
        return is_byte || dlc_is_code(dtype);
    case IS_NUMBER:
        return dtype != DLC_BOOL;
    }
    return 1;
}

const char *im_wanted_types(const char *name, uint32_t input, dlc_dtype dtype)
{
    static const char *const texts[] = {"a float type", "a float type, narrow ones too", "i32 and i64", "bool", "u8 and i8", "u8, i8 and types of 8 bits and less", "a number"};
    for (size_t i = 0; i < sizeof input_types / sizeof *input_types; i++)
        if (*input_types[i].name == *name && input_types[i].input == input && strcmp(input_types[i].name, name) == 0)
            return is_of(input_types[i].wants, dtype) ? NULL : texts[input_types[i].wants];
    return NULL;
}

int im_row_range(const char *domain, const char *name, int *first, int *last)
{
    size_t n;
    const dlc_onnx_row *rows = rows_of(domain, name, &n);
    if (!n)
        return 0;
    *first = rows[0].since;
    *last = rows[n - 1].until;
    return 1;
}

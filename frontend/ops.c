/* The importers' table from onnx_ops.def, and its search by name and opset. */
#include "frontend/import_steps.h"

#include <string.h>

enum { LAST = DLC_OPSET_LAST };

static const dlc_onnx_row rows[] = {
#define DLC_ONNX(name, since, until, importer, argument, lo, hi, outputs)                          \
    {#name, since, until, import_##importer, argument, lo, hi, outputs},
#include "frontend/onnx_ops.def"
#undef DLC_ONNX
};
enum { NROWS = sizeof rows / sizeof *rows };

/* The first row of this name, or NULL; rows stand in the order of names. */
static const dlc_onnx_row *first_row(const char *name)
{
    size_t lo = 0, hi = NROWS;
    while (lo < hi) {
        size_t middle = (lo + hi) / 2;
        if (strcmp(rows[middle].name, name) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < NROWS && strcmp(rows[lo].name, name) == 0 ? &rows[lo] : NULL;
}

static const dlc_onnx_row *next_row(const dlc_onnx_row *row)
{
    return row + 1 < rows + NROWS && strcmp(row[1].name, row->name) == 0 ? row + 1 : NULL;
}

const dlc_onnx_row *im_row(const char *name, int64_t opset)
{
    for (const dlc_onnx_row *row = first_row(name); row; row = next_row(row)) {
        if (opset >= row->since && opset <= row->until)
            return row;
    }
    return NULL;
}

int im_row_range(const char *name, int *first, int *last)
{
    const dlc_onnx_row *row = first_row(name);
    if (!row)
        return 0;
    *first = row->since;
    for (; row; row = next_row(row))
        *last = row->until;
    return 1;
}

const dlc_onnx_row *im_rows(size_t *n)
{
    *n = NROWS;
    return rows;
}

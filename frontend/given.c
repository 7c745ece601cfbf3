/* Values that the user gives for inputs, which are constants from there: "16000", "1,2,3". */
#include "frontend/import_steps.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *text_for(const dlc_import *im, const char *input)
{
    for (uint32_t k = 0; k < im->options->nvalues; k++) {
        if (strcmp(im->options->values[k].name, input) == 0)
            return im->options->values[k].text;
    }
    return NULL;
}

/* One number at *at, which moves behind it. False where there is none. */
static int read_number(dlc_dtype dtype, const char **at, dlc_scalar *number)
{
    char *end;
    const char *begin = *at;
    errno = 0;
    *number = (dlc_scalar){0};
    if (dtype == DLC_BOOL && (!strncmp(begin, "true", 4) || !strncmp(begin, "false", 5))) {
        number->i = *begin == 't';
        *at += *begin == 't' ? 4 : 5;
        return 1;
    }
    if (dlc_is_float(dtype))
        number->f = dlc_round_to(dtype, dlc_text_double(begin, &end));
    else if (dtype == DLC_U64)
        number->i = (int64_t)strtoull(begin, &end, 10);
    else
        number->i = strtoll(begin, &end, 10);
    *at = end;
    return end != begin && !errno &&
           (dlc_is_float(dtype) || dtype == DLC_U64 ||
            (number->i >= dlc_dtype_lowest(dtype) &&
             number->i <= (int64_t)dlc_dtype_highest(dtype)));
}

/* The numbers of the text, row-major; NULL where there are not `n`, or where one is none. */
static void *read_numbers(dlc_import *im, dlc_dtype dtype, const char *text, int64_t n)
{
    uint32_t size = dlc_dtype_bytes(dtype);
    char *bytes = dlc_arena_alloc(im->arena, (size_t)n * size + 1, 16);
    for (int64_t i = 0; i < n; i++) {
        dlc_scalar number;
        if (!read_number(dtype, &text, &number) || *text != (i + 1 < n ? ',' : '\0'))
            return NULL;
        dlc_scalar_write(dtype, bytes + i * size, number);
        text++;
    }
    return bytes;
}

/* One string is the text as it is, several stand between commas. */
static dlc_value *given_strings(dlc_import *im, const char *name, const dlc_type *type, const char *text, int64_t n)
{
    int64_t *numbers = dlc_new_array(im->arena, int64_t, strlen(text) + 2), found = 0;
    for (const char *at = text; n > 1 && found < n; found++, at++) {
        size_t length = strcspn(at, ",");
        numbers[found] = dlc_strings_add(&im->graph->strings, im->graph->arena, dlc_arena_strndup(im->arena, at, length));
        at += length;
        if (!*at && ++found)
            break;
    }
    if (n == 1)
        numbers[found++] = dlc_strings_add(&im->graph->strings, im->graph->arena, text);
    if (found == n)
        return dlc_graph_constant(im->graph, name, type, numbers, (size_t)n * sizeof *numbers);
    dlc_diag_fail(im->graph->diag, DLC_USAGE, im->graph->file,
                  "the value '%s' was given for input '%s', where %" PRId64 " strings are wanted", text, name, n);
    return &im->poison;
}

dlc_value *im_given_value(dlc_import *im, const char *name, const dlc_type *type)
{
    const char *text = text_for(im, name);
    int64_t n;
    if (!text)
        return NULL;
    if (!dlc_type_elems(im->pool, type, &n)) {
        dlc_diag_fail(im->graph->diag, DLC_USAGE, im->graph->file,
                      "a value was given for input '%s', whose size is only known at run time; "
                      "--shape fixes it",
                      name);
        return &im->poison;
    }
    if (dlc_is_text(type->dtype))
        return given_strings(im, name, type, text, n);
    void *bytes = n <= (int64_t)strlen(text) ? read_numbers(im, type->dtype, text, n) : NULL;
    if (bytes)
        return dlc_graph_constant(im->graph, name, type, bytes,
                                  (size_t)n * dlc_dtype_bytes(type->dtype));
    dlc_diag_fail(im->graph->diag, DLC_USAGE, im->graph->file,
                  "the value '%s' was given for input '%s', where %" PRId64 " of %s are wanted",
                  text, name, n, dlc_dtypes[type->dtype].text);
    return &im->poison;
}

void im_check_given_values(dlc_import *im, const Onnx__GraphProto *graph)
{
    for (uint32_t k = 0; k < im->options->nvalues; k++) {
        size_t i = 0;
        while (i < graph->n_input && strcmp(graph->input[i]->name ? graph->input[i]->name : "",
                                            im->options->values[k].name) != 0)
            i++;
        if (i == graph->n_input)
            dlc_diag_fail(im->graph->diag, DLC_USAGE, im->graph->file,
                          "a value was given for '%s', which is no input",
                          im->options->values[k].name);
    }
}

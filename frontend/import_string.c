/*
 * Strings. A tensor of strings has their numbers as elements, so whatever moves elements moves strings, and comparing them is
 * comparing numbers; what makes new strings is a step of the run in C.
 */
#include "frontend/import_string.h"

#include <inttypes.h>
#include <string.h>

/* --- numbers --- */

dlc_value *im_numbers(dlc_import *im, dlc_value *x)
{
    if (!x || !dlc_is_text(x->type.dtype))
        return x;
    return f_node(im, DLC_OP_BITCAST, F_IN(x), F_ATTRS(dlc_attr_int(DLC_ATTR_DTYPE, DLC_I64)));
}

dlc_value *im_places(dlc_import *im, dlc_value *x, const dlc_value *keys)
{
    int64_t n, most = 0;
    if (!x || !keys || !keys->data || !dlc_is_text(keys->type.dtype) || !dlc_type_elems(im->pool, &keys->type, &n))
        return NULL;
    const int64_t *numbers = keys->data->bytes;
    for (int64_t i = 0; i < n; i++)
        most = numbers[i] > most ? numbers[i] : most;
    int64_t *places = dlc_new_array(im->arena, int64_t, (size_t)most + 2);
    for (int64_t i = 0; i < most + 2; i++)
        places[i] = n;
    for (int64_t i = n; i-- > 0;)
        places[numbers[i]] = i;
    dlc_value *table = dlc_graph_ints(im->graph, places, (uint32_t)(most + 2));
    return f_gather(im, table, f_min(im, im_numbers(im, x), f_scalar(im, DLC_I64, (double)(most + 1))), 0);
}

dlc_value *im_cast_strings(dlc_import *im, dlc_value *x, dlc_dtype dtype)
{
    dlc_dtype from = x->type.dtype, through = dtype;
    if (from == dtype)
        return x;
    if (dlc_is_text(dtype)) {
        if (dlc_is_code(from))
            x = f_cast(im, x, from == DLC_I4 || from == DLC_U4 || from == DLC_I2 || from == DLC_U2 ? DLC_I32 : DLC_F32);
        return x ? f_node(im, DLC_OP_TEXT_WRITE, F_IN(x), F_PLAIN) : NULL;
    }
    if (dtype == DLC_BOOL || dlc_is_code(dtype)) {
        im_fail(im, DLC_UNSUPPORTED, "strings to %s; to integers and floats of 16 bits or more is supported", dlc_dtypes[dtype].text);
        return NULL;
    }
    if (dtype == DLC_F16 || dtype == DLC_BF16)
        through = DLC_F64; /* rounded once more, and so that it makes no difference but for decimals half way between two */
    return f_cast(im, f_node(im, DLC_OP_TEXT_READ, F_IN(x), F_ATTRS(dlc_attr_int(DLC_ATTR_DTYPE, through))), dtype);
}

/* --- operators --- */

void import_string_concat(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *y = im_in(im, 1);
    dlc_value *shape = f_binary(im, DLC_OP_EQ, im_numbers(im, x), im_numbers(im, y)); /* of both, broadcast */
    if (!shape)
        return;
    x = f_expand(im, x, shape->type.dims, im_rank(shape));
    y = f_expand(im, y, shape->type.dims, im_rank(shape));
    im->out[0] = x && y ? f_node(im, DLC_OP_TEXT_JOIN, F_IN(x, y), F_PLAIN) : NULL;
}

static uint32_t counted_symbol(dlc_import *im)
{
    return dlc_graph_symbol(im->graph, dlc_arena_printf(im->arena, "%s.count", im->origin->name), DLC_BIND_OPAQUE, NULL, 0);
}

void import_string_split(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    const char *delimiter = im_text(im, "delimiter", "");
    int64_t most = im_int(im, "maxsplit", -1);
    if (!im_ok(im))
        return;
    dlc_value *const inputs[2] = {x, im_strings(im, &delimiter, 1, 0)};
    const dlc_attr attrs[2] = {dlc_attr_int(DLC_ATTR_SYMBOL, counted_symbol(im)), dlc_attr_int(DLC_ATTR_MOST, most < 0 ? -1 : most)};
    dlc_node *node = f_node_with(im, DLC_OP_TEXT_SPLIT, inputs, 2, 2, attrs, 2);
    for (uint32_t i = 0; node && i < im->nout; i++)
        im->out[i] = node->outputs[i];
}

/* Turkish and its like have an i of their own, Lithuanian dots. */
static int is_other_case(const char *locale)
{
    return strlen(locale) >= 2 && (!strncmp(locale, "tr", 2) || !strncmp(locale, "az", 2) || !strncmp(locale, "lt", 2));
}

void import_string_normalizer(dlc_import *im)
{
    static const char *const none[1];
    dlc_value *x = im_in(im, 0);
    uint32_t n = 0;
    const char *action = im_choice(im, "case_change_action", "NONE", "NONE|LOWER|UPPER"), *locale = im_text(im, "locale", "en_US");
    const char **words = im_texts(im, "stopwords", &n);
    int64_t exact = im_int(im, "is_case_sensitive", 0), rows = 0;
    if (im_ok(im) && is_other_case(locale))
        im_fail(im, DLC_UNSUPPORTED, "attribute 'locale' is '%.40s', whose letters change case in their own way", locale);
    if (im_ok(im) && im_rank(x) != 1 && !(im_rank(x) == 2 && im_is_const(im, x->type.dims[0], &rows) && rows == 1))
        im_fail(im, DLC_UNSUPPORTED, "the input has rank %" PRIu32 "; strings [n] or [1,n] are wanted", im_rank(x));
    if (!im_ok(im))
        return;
    const char *change = action[0] == 'L' ? "lower" : action[0] == 'U' ? "upper" : "none";
    dlc_value *list = im_rank(x) == 2 ? f_drop_axis(im, x, 0) : x, *stop = im_strings(im, words ? words : (const char **)(uintptr_t)none, n, 1);
    const dlc_attr attrs[3] = {dlc_attr_int(DLC_ATTR_SYMBOL, counted_symbol(im)), dlc_attr_text(DLC_ATTR_CASE, change),
                               dlc_attr_int(DLC_ATTR_EXACT, exact != 0)};
    dlc_value *y = f_node(im, DLC_OP_TEXT_NORMALIZE, F_IN(list, stop), attrs, 3);
    im->out[0] = y && im_rank(x) == 2 ? f_insert_axis(im, y, 0) : y;
}

void import_regex_full_match(dlc_import *im)
{
    const char *pattern = im_text(im, "pattern", ""), *wrong = NULL;
    uint32_t nrows = 0;
    const int64_t *rows = im_regex(im->arena, pattern, &nrows, &wrong);
    if (!rows)
        im_fail(im, DLC_UNSUPPORTED, "attribute 'pattern' is '%.200s': %s", pattern, wrong);
    if (!im_ok(im))
        return;
    const dlc_expr dims[2] = {im_i64(im, nrows), im_i64(im, 3)};
    dlc_value *program = f_reshape(im, dlc_graph_ints(im->graph, rows, nrows * 3), dims, 2);
    im->out[0] = f_node(im, DLC_OP_TEXT_MATCH, F_IN(im_in(im, 0), program), F_PLAIN);
}

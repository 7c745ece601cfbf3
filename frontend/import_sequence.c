/*
 * Sequences and optionals. They are lists of values while a model is imported, and nothing behind
 * that: how many elements there are is decided here, by the model or by what the user gives
 * (interface.c), and loops over them are unrolled. A sequence that is one tensor taken apart, or
 * what a loop collected, may be as long as the run says: it is that tensor.
 */
#include "frontend/import_steps.h"
#include "frontend/regions.h"

#include <inttypes.h>
#include <string.h>

static im_list *any_list_of(dlc_import *im, uint32_t input)
{
    im_list *list = im_list_of(im, im_in(im, input));
    if (!list || list->is_optional)
        im_fail(im, DLC_INVALID, "input %" PRIu32 " is no sequence", input);
    return im_ok(im) ? list : NULL;
}

static im_list *list_of(dlc_import *im, uint32_t input)
{
    im_list *list = any_list_of(im, input);
    if (list && list->rows)
        im_fail(im, DLC_UNSUPPORTED, "a sequence whose length only the run knows");
    return im_ok(im) ? list : NULL;
}

/* A position from an input, negative ones from the end; `n` may be one of them where `past` is 1. 0: reported. */
static dlc_expr position(dlc_import *im, uint32_t input, uint32_t n, uint32_t past)
{
    uint32_t count;
    int64_t known;
    const dlc_expr *given = im_elements(im, im_in(im, input), -(int64_t)n, (int64_t)n + past - 1, &count);
    if (!given)
        return 0;
    if (count != 1) {
        im_fail(im, DLC_INVALID, "a position of %" PRIu32 " elements; one is wanted", count);
        return 0;
    }
    dlc_expr zero = im_i64(im, 0), from_end = dlc_addi(im->pool, given[0], n);
    dlc_expr at = im_simple(im, dlc_select(im->pool, dlc_lt(im->pool, given[0], zero), from_end, given[0]));
    if (im_is_const(im, at, &known) && (known < 0 || known >= (int64_t)n + past)) {
        im_fail(im, DLC_INVALID, "position %" PRId64 " in a sequence of %" PRIu32, known, n);
        return 0;
    }
    return at;
}

/* One of two values, as a bool of the run says; sizes may differ. */
static dlc_value *either(dlc_import *im, dlc_expr holds, dlc_value *yes, dlc_value *no)
{
    int64_t known;
    im_if branches;
    holds = im_simple(im, holds);
    if (im_is_const(im, holds, &known))
        return known ? yes : no;
    if (yes == no)
        return yes;
    if (!im_if_begin(im, &branches, holds) || !im_if_else(im, &branches) || !im_if_end(im, &branches))
        return NULL;
    return f_either(im, &branches, yes, no);
}

static dlc_expr is_behind(dlc_import *im, dlc_expr at, int64_t i)
{
    return dlc_lt(im->pool, im_i64(im, i), at);
}

void import_sequence_empty(dlc_import *im)
{
    (void)im_int(im, "dtype", 1);
    im->out[0] = im_list_value(im, NULL, 0, 0);
}

/* The tensors of a sequence have one element type. */
static int is_of_type(dlc_import *im, const dlc_value *first, const dlc_value *item)
{
    if (first && item && !im_list_of(im, first) && !im_list_of(im, item) && first->type.dtype != item->type.dtype)
        im_fail(im, DLC_INVALID, "the sequence is of %s, where %s is added; its tensors must have one element type",
                dlc_dtypes[first->type.dtype].text, dlc_dtypes[item->type.dtype].text);
    return im_ok(im);
}

void import_sequence_construct(dlc_import *im)
{
    for (uint32_t i = 1; i < im->nin; i++)
        if (!is_of_type(im, im->in[0], im->in[i]))
            return;
    im->out[0] = im_list_value(im, im->in, im->nin, 0);
}

void import_sequence_length(dlc_import *im)
{
    const im_list *list = any_list_of(im, 0);
    if (list)
        im->out[0] = f_dim(im, DLC_I64, list->rows ? list->rows->type.dims[0] : im_i64(im, list->n));
}

static dlc_value *row_at(dlc_import *im, dlc_value *rows)
{
    uint32_t n;
    dlc_pool *pool = im->pool;
    const dlc_expr *given = im_elements(im, im_in(im, 1), INT32_MIN, INT32_MAX, &n);
    if (!given || n != 1)
        return NULL;
    dlc_expr count = rows->type.dims[0], is_from_end = dlc_lt(pool, given[0], im_i64(im, 0));
    dlc_expr at = im_size(im, dlc_select(pool, is_from_end, dlc_add(pool, given[0], count), given[0]));
    dlc_graph_require(im->graph, dlc_in_range(pool, at, count), "%s: node '%s': the position is outside of the sequence", im->graph->file,
                      im->origin->name);
    return f_drop_axis(im, f_slice(im, rows, 0, at, im_i64(im, 1)), 0);
}

void import_sequence_at(dlc_import *im)
{
    const im_list *list = any_list_of(im, 0);
    if (list && list->rows) {
        im->out[0] = row_at(im, list->rows);
        return;
    }
    if (list && !list->n)
        im_fail(im, DLC_INVALID, "the sequence is empty");
    dlc_expr at = list && im_ok(im) ? position(im, 1, list->n, 0) : 0;
    if (!at)
        return;
    dlc_value *found = list->items[list->n - 1];
    for (uint32_t i = list->n - 1; i-- > 0;)
        found = either(im, is_behind(im, at, i), found, list->items[i]);
    im->out[0] = found;
}

void import_sequence_insert(dlc_import *im)
{
    const im_list *list = list_of(im, 0);
    if (list && list->n && !is_of_type(im, list->items[0], im_in(im, 1)))
        return;
    dlc_expr at = !list ? 0 : im_in(im, 2) ? position(im, 2, list->n, 1) : im_i64(im, list->n);
    if (!at)
        return;
    dlc_value **items = dlc_new_array(im->arena, dlc_value *, list->n + 1);
    for (uint32_t i = 0; i <= list->n; i++) {
        dlc_value *here = i ? either(im, is_behind(im, at, (int64_t)i - 1), im_in(im, 1), list->items[i - 1]) : im_in(im, 1);
        items[i] = i < list->n ? either(im, is_behind(im, at, i), list->items[i], here) : here;
    }
    im->out[0] = im_list_value(im, items, list->n + 1, 0);
}

void import_sequence_erase(dlc_import *im)
{
    const im_list *list = list_of(im, 0);
    if (list && !list->n)
        im_fail(im, DLC_INVALID, "the sequence is empty");
    dlc_expr at = !list || !im_ok(im) ? 0 : im_in(im, 1) ? position(im, 1, list->n, 0) : im_i64(im, list->n - 1);
    if (!at)
        return;
    dlc_value **items = dlc_new_array(im->arena, dlc_value *, list->n);
    for (uint32_t i = 0; i + 1 < list->n; i++)
        items[i] = either(im, is_behind(im, at, i), list->items[i], list->items[i + 1]);
    im->out[0] = im_list_value(im, items, list->n - 1, 0);
}

void import_concat_from_sequence(dlc_import *im)
{
    const im_list *list = any_list_of(im, 0);
    int64_t is_new = im_int(im, "new_axis", 0), given = im_int(im, "axis", 0);
    if (list && list->rows) {
        im->out[0] = im_join_rows(im, list->rows, given, is_new != 0);
        return;
    }
    if (!list || !list->n) {
        if (list)
            im_fail(im, DLC_INVALID, "the sequence is empty");
        return;
    }
    int axis = im_axis(im, given, im_rank(list->items[0]) + (is_new ? 1 : 0));
    if (axis < 0)
        return;
    dlc_value **parts = dlc_new_array(im->arena, dlc_value *, list->n);
    for (uint32_t i = 0; i < list->n; i++)
        parts[i] = is_new ? f_insert_axis(im, list->items[i], (uint32_t)axis) : list->items[i];
    im->out[0] = f_concat(im, parts, list->n, (uint32_t)axis);
}

/* Equal parts of `each`, the last one of what is left. */
static const dlc_expr *equal_parts(dlc_import *im, dlc_expr all, int64_t each, uint32_t *n)
{
    int64_t length;
    if (!im_is_const(im, all, &length) || length > 65536 || each < 1) {
        im_fail(im, DLC_UNSUPPORTED, "a sequence of as many parts as only the run knows");
        return NULL;
    }
    *n = (uint32_t)((length + each - 1) / each);
    dlc_expr *sizes = dlc_new_array(im->arena, dlc_expr, *n + 1u);
    for (uint32_t i = 0; i < *n; i++)
        sizes[i] = im_i64(im, (i + 1) * each <= length ? each : length - i * each);
    return sizes;
}

/* Sizes of the parts of a dimension; NULL when reported. */
static const dlc_expr *split_sizes(dlc_import *im, dlc_expr all, uint32_t *n)
{
    dlc_value *split = im_in(im, 1);
    int64_t each = 1;
    if (!split)
        return equal_parts(im, all, 1, n);
    const dlc_expr *given = im_elements(im, split, 0, INT32_MAX, n);
    if (!given)
        return NULL;
    if (!im_rank(split))
        return equal_parts(im, all, im_is_const(im, given[0], &each) ? each : 0, n);
    dlc_expr sum = im_i64(im, 0);
    for (uint32_t i = 0; i < *n; i++)
        sum = dlc_add(im->pool, sum, given[i]);
    return im_same_dim(im, sum, all, "the parts together and what is split") ? given : NULL;
}

/* Parts of 1 of a dimension that only the run knows. */
static int is_row_by_row(dlc_import *im, dlc_expr all)
{
    int64_t known;
    double each = 1;
    return !im_is_const(im, all, &known) &&
           (!im_in(im, 1) || (!im_rank(im_in(im, 1)) && im_const_scalar(im, im_in(im, 1), &each) && each == 1));
}

static dlc_value *rows_of(dlc_import *im, dlc_value *x, uint32_t axis, int drops)
{
    uint8_t perm[DLC_MAX_RANK];
    for (uint32_t d = 0; d < im_rank(x) && d < DLC_MAX_RANK; d++)
        perm[d] = (uint8_t)(d == 0 ? axis : d <= axis ? d - 1 : d);
    dlc_value *rows = axis ? f_transpose(im, x, perm) : x;
    return drops ? rows : f_insert_axis(im, rows, axis + 1);
}

void import_split_to_sequence(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int axis = im_axis(im, im_int(im, "axis", 0), im_rank(x)),
        drops = im_int(im, "keepdims", 1) == 0 && !im_in(im, 1);
    uint32_t n = 0;
    if (axis >= 0 && is_row_by_row(im, x->type.dims[axis])) {
        im->out[0] = im_rows_value(im, rows_of(im, x, (uint32_t)axis, drops));
        return;
    }
    const dlc_expr *sizes = axis < 0 ? NULL : split_sizes(im, x->type.dims[axis], &n);
    dlc_expr start = im_i64(im, 0);
    if (!sizes)
        return;
    dlc_value **parts = dlc_new_array(im->arena, dlc_value *, n + 1u);
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = f_slice(im, x, (uint32_t)axis, start, sizes[i]);
        if (drops)
            parts[i] = f_drop_axis(im, parts[i], (uint32_t)axis);
        start = im_size(im, dlc_add(im->pool, start, sizes[i]));
    }
    im->out[0] = im_list_value(im, parts, n, 0);
}

/* --- SequenceMap: a body for each element, one after another --- */

typedef struct {
    const Onnx__GraphProto *body;
    dlc_value **in; /* lists and tensors */
    uint32_t nin, nout, n, at;
    dlc_value **results; /* [nout][n] */
} mapping;

static void map_next(dlc_import *im, mapping *m);

static void element_done(dlc_import *im, void *state, dlc_value **values)
{
    mapping *m = state;
    for (uint32_t i = 0; i < m->nout; i++)
        m->results[i * m->n + m->at] = values[i] ? values[i] : &im->poison;
    m->at++;
    map_next(im, m);
}

static void map_next(dlc_import *im, mapping *m)
{
    if (m->at == m->n) {
        for (uint32_t i = 0; i < m->nout && i < im->nout; i++)
            im->out[i] = im_list_value(im, m->results + (size_t)i * m->n, m->n, 0);
        return;
    }
    dlc_value **inputs = dlc_new_array(im->arena, dlc_value *, m->nin + 1);
    for (uint32_t i = 0; i < m->nin; i++) {
        const im_list *list = im_list_of(im, m->in[i]);
        inputs[i] = list ? list->items[m->at] : m->in[i];
    }
    im_push_graph(im, m->body, inputs, m->nin, element_done, m);
}

void import_sequence_map(dlc_import *im)
{
    const Onnx__AttributeProto *body = im_attribute(im, "body");
    const im_list *first = list_of(im, 0);
    if (!body || !body->g || !first) {
        if (first)
            im_fail(im, DLC_INVALID, "attribute 'body' with a graph is required");
        return;
    }
    for (uint32_t i = 1; i < im->nin; i++) {
        const im_list *list = im_list_of(im, im->in[i]);
        if (list && list->n != first->n)
            im_fail(im, DLC_INVALID, "sequences of %" PRIu32 " and %" PRIu32 " elements", first->n,
                    list->n);
    }
    if (im->nout > body->g->n_output)
        im_fail(im, DLC_INVALID, "has %" PRIu32 " outputs where its body has %zu", im->nout,
                body->g->n_output);
    if (!im_ok(im))
        return;
    mapping *m = dlc_new(im->arena, mapping);
    *m = (mapping){.body = body->g, .in = im->in, .nin = im->nin, .nout = im->nout, .n = first->n};
    m->results = dlc_new_array(im->arena, dlc_value *, (size_t)m->nout * m->n + 1);
    map_next(im, m);
}

/* --- optionals --- */

void import_optional(dlc_import *im)
{
    if (!im_attribute(im, "type") && !im_in(im, 0)) {
        im_fail(im, DLC_INVALID, "neither an input nor the attribute 'type'; one of them is wanted");
        return;
    }
    im->out[0] = im_list_value(im, im->in, im_in(im, 0) ? 1 : 0, 1);
}

void import_optional_get_element(dlc_import *im)
{
    const im_list *list = im_list_of(im, im_in(im, 0));
    if (list && list->is_optional && !list->n)
        im_fail(im, DLC_INVALID, "the optional has no element");
    else
        im->out[0] = list && list->is_optional ? list->items[0] : im_in(im, 0);
}

void import_optional_has_element(dlc_import *im)
{
    const im_list *list = im_list_of(im, im_in(im, 0));
    int has = im_in(im, 0) && (!list || !list->is_optional || list->n);
    im->out[0] = f_scalar(im, DLC_BOOL, has);
}

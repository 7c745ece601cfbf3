/*
 * Shapes as expressions. Sizes that an input states are read from what is known of its elements;
 * where only the run knows them, symbols bound to those elements take their place and the importer
 * goes on as if it knew.
 */
#include "frontend/import.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAX_ELEMENTS = 64,
    MAX_TERMS = 256 /* of a size: those of usual networks stay well below */
};

/* Counted from the front; negative where there is none such. */
static int place_axis(int64_t axis, uint32_t rank)
{
    return axis >= -(int64_t)rank && axis < (int64_t)rank ? (int)(axis < 0 ? axis + rank : axis) : -1;
}

int im_axis(dlc_import *im, int64_t axis, uint32_t rank)
{
    int place = place_axis(axis, rank);
    if (place < 0 && rank)
        im_fail(im, DLC_INVALID, "axis %" PRId64 " is outside of [-%" PRIu32 ", %" PRIu32 "]", axis, rank, rank - 1);
    else if (place < 0)
        im_fail(im, DLC_INVALID, "axis %" PRId64 " of a scalar, which has none", axis);
    return place;
}

int im_listed_axis(dlc_import *im, const char *name, const int64_t *list, uint32_t i, uint32_t rank)
{
    int64_t axis = list ? list[i] : 0;
    int place = place_axis(axis, rank);
    if (place < 0)
        im_fail(im, DLC_INVALID, "%s[%" PRIu32 "] is %" PRId64 ", outside of [-%" PRIu32 ", %" PRIu32 "]", name, i, axis, rank, rank - 1);
    return place;
}

int im_axes(dlc_import *im, const int64_t *axes, uint32_t n, uint32_t rank, uint8_t *out)
{
    uint8_t chosen[DLC_MAX_RANK] = {0};
    for (uint32_t i = 0; i < n; i++) {
        int axis = im_axis(im, axes[i], rank);
        if (axis < 0)
            return 0;
        if (chosen[axis]) {
            im_fail(im, DLC_INVALID, "axis %" PRId64 " is given twice", axes[i]);
            return 0;
        }
        chosen[axis] = 1;
    }
    for (uint32_t axis = 0, k = 0; axis < rank; axis++) {
        if (chosen[axis])
            out[k++] = (uint8_t)axis;
    }
    return 1;
}

dlc_expr im_i64(dlc_import *im, int64_t value)
{
    return dlc_expr_i64(im->pool, value);
}

dlc_expr im_simple(dlc_import *im, dlc_expr expr)
{
    int64_t value;
    if (dlc_expr_is_int(im->pool, expr, &value))
        return expr;
    dlc_ranges ranges = dlc_graph_ranges(im->graph);
    return dlc_expr_simplify(im->pool, expr, &ranges);
}

/* A symbol that the run reads from an element. */
static dlc_expr bound_symbol(dlc_import *im, dlc_value *value, uint32_t i, int64_t lo, int64_t hi)
{
    const char *name = dlc_arena_printf(im->arena, "%s.%" PRIu32, value->name, i);
    uint32_t symbol = dlc_graph_symbol(im->graph, name, DLC_BIND_DATA, value, i);
    im->graph->symbols.data[symbol].lo = lo;
    im->graph->symbols.data[symbol].hi = hi;
    return dlc_expr_sym(im->pool, symbol);
}

/* Whether the expression, written out as a tree, has more than MAX_TERMS nodes. */
static int is_entangled(const dlc_pool *pool, dlc_expr expr)
{
    dlc_expr todo[3 * MAX_TERMS];
    uint32_t n = 1, nseen = 0;
    for (todo[0] = expr; n && nseen <= MAX_TERMS; nseen++) {
        dlc_expr at = todo[--n];
        const dlc_expr_node *node = dlc_node_of(pool, at);
        for (uint32_t i = 0; i < node->nargs && n < 3 * MAX_TERMS; i++)
            todo[n++] = dlc_arg(pool, at, i);
    }
    return nseen > MAX_TERMS;
}

dlc_expr im_size(dlc_import *im, dlc_expr expr)
{
    dlc_expr size = im_simple(im, expr);
    if (!is_entangled(im->pool, size))
        return size;
    dlc_value *data =
        f_node(im, DLC_OP_SYMBOLS, NULL, 0, F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, &size, 1)));
    dlc_ranges ranges = dlc_graph_ranges(im->graph);
    dlc_interval interval = dlc_expr_range(im->pool, size, &ranges);
    return data ? bound_symbol(im, data, 0, interval.lo, interval.hi) : size;
}

int im_is_const(dlc_import *im, dlc_expr expr, int64_t *value)
{
    return dlc_expr_is_int(im->pool, expr, value);
}

dlc_expr im_product(dlc_import *im, const dlc_expr *dims, uint32_t n)
{
    return dlc_dims_product(im->pool, dims, n);
}

/* --- inputs that say sizes --- */

static int element_count(dlc_import *im, const dlc_value *value, int64_t *n)
{
    return dlc_type_elems(im->pool, &value->type, n);
}

static int is_index_dtype(dlc_dtype dtype)
{
    return dtype == DLC_I64 || dtype == DLC_I32;
}

const dlc_expr *im_elements(dlc_import *im, dlc_value *value, int64_t lo, int64_t hi, uint32_t *n)
{
    int64_t count;
    if (!value) { /* what should have made it has failed, and said why */
        *n = 0;
        return NULL;
    }
    if (!is_index_dtype(value->type.dtype)) {
        im_fail(im, DLC_INVALID, "sizes must be i64 or i32, not %s",
                dlc_dtypes[value->type.dtype].text);
        return NULL;
    }
    if (im_rank(value) > 1) {
        im_fail(im, DLC_INVALID, "'%s' has rank %d; sizes are a vector", value->name,
                value->type.rank);
        return NULL;
    }
    if (!element_count(im, value, &count)) {
        im_fail(im, DLC_UNSUPPORTED, "the number of sizes in '%s' is only known at run time",
                value->name);
        return NULL;
    }
    if (count > MAX_ELEMENTS) {
        im_fail(im, DLC_UNSUPPORTED, "'%s' has %" PRId64 " sizes; at most %d are supported",
                value->name, count, MAX_ELEMENTS);
        return NULL;
    }
    *n = (uint32_t)count;
    if (value->content)
        return value->content;
    dlc_expr *content = dlc_new_array(im->arena, dlc_expr, *n + 1);
    for (uint32_t i = 0; i < *n; i++)
        content[i] = value->partly && value->partly[i] ? value->partly[i] : bound_symbol(im, value, i, lo, hi);
    value->content = content; /* all readers see the same symbols */
    return content;
}

static void refuse_unknown(dlc_import *im, const dlc_value *value, const char *what)
{
    im_fail(im, DLC_UNSUPPORTED, "%s ('%s') must be constant; it is only known at run time", what,
            value->name);
}

int64_t im_int_at(const dlc_value *value, uint32_t i)
{
    const uint8_t *bytes = value->data->bytes;
    return dlc_scalar_read(value->type.dtype,
                           bytes + (size_t)i * dlc_dtype_bytes(value->type.dtype))
        .i;
}

const int64_t *im_const_ints(dlc_import *im, dlc_value *value, const char *what, uint32_t *n)
{
    int64_t count;
    if (!dlc_is_int(value->type.dtype) && value->type.dtype != DLC_BOOL) {
        im_fail(im, DLC_INVALID, "%s must be integers, not %s", what,
                dlc_dtypes[value->type.dtype].text);
        return NULL;
    }
    if (im_rank(value) > 1) {
        im_fail(im, DLC_INVALID, "%s ('%s') have rank %d; a vector is wanted", what, value->name,
                value->type.rank);
        return NULL;
    }
    if (!element_count(im, value, &count) || count > INT32_MAX ||
        !(value->data || value->content)) {
        refuse_unknown(im, value, what);
        return NULL;
    }
    *n = (uint32_t)count;
    int64_t *ints = dlc_new_array(im->arena, int64_t, *n + 1);
    for (uint32_t i = 0; i < *n; i++) {
        if (value->data)
            ints[i] = im_int_at(value, i);
        else if (!dlc_expr_is_int(im->pool, im_simple(im, value->content[i]), &ints[i])) {
            refuse_unknown(im, value, what);
            return NULL;
        }
    }
    return ints;
}

static int content_float(const dlc_import *im, dlc_expr element, double *value)
{
    int64_t whole;
    if (dlc_expr_is_float(im->pool, element, value))
        return 1;
    if (!dlc_expr_is_int(im->pool, element, &whole))
        return 0;
    *value = (double)whole;
    return 1;
}

static int element_float(const dlc_import *im, const dlc_value *value, uint32_t i, double *element)
{
    if (!value->data)
        return value->content && content_float(im, value->content[i], element);
    dlc_dtype dtype = value->type.dtype;
    if (dlc_is_code(dtype) || dlc_is_text(dtype))
        return 0;
    dlc_scalar scalar = dlc_scalar_read(dtype, (const uint8_t *)value->data->bytes +
                                                   (size_t)i * dlc_dtype_bytes(dtype));
    *element = dlc_is_float(dtype) ? scalar.f
               : dtype == DLC_U64  ? (double)(uint64_t)scalar.i
                                   : (double)scalar.i;
    return 1;
}

const double *im_const_floats(dlc_import *im, dlc_value *value, const char *what, uint32_t *n)
{
    int64_t count;
    if (!element_count(im, value, &count) || count > INT32_MAX ||
        !(value->data || value->content)) {
        refuse_unknown(im, value, what);
        return NULL;
    }
    *n = (uint32_t)count;
    double *floats = dlc_new_array(im->arena, double, *n + 1);
    for (uint32_t i = 0; i < *n; i++) {
        if (!element_float(im, value, i, &floats[i])) {
            refuse_unknown(im, value, what);
            return NULL;
        }
    }
    return floats;
}

int im_const_scalar(dlc_import *im, const dlc_value *value, double *element)
{
    int64_t count;
    return element_count(im, value, &count) && count == 1 && element_float(im, value, 0, element);
}

int im_is_all_zero(dlc_import *im, const dlc_value *value)
{
    enum { LOOKED_AT = 4096 };
    int64_t count;
    double element;
    if (!element_count(im, value, &count) || count > LOOKED_AT)
        return 0;
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        if (!element_float(im, value, i, &element) || element != 0)
            return 0;
    }
    return 1;
}

int im_same_dim(dlc_import *im, dlc_expr a, dlc_expr b, const char *what)
{
    dlc_expr result;
    dlc_str x = {0}, y = {0};
    dlc_dim_print(im->graph, a, &x);
    dlc_dim_print(im->graph, b, &y);
    const char *text =
        dlc_arena_printf(im->arena, "%s: node '%s': %s: %s and %s differ", im->graph->file,
                         im->origin->name, what, dlc_str_text(&x), dlc_str_text(&y));
    int is_same = dlc_graph_equal(im->graph, a, b, text, &result);
    if (!is_same)
        im_fail(im, DLC_INVALID, "%s: %s and %s differ", what, dlc_str_text(&x), dlc_str_text(&y));
    dlc_str_deinit(&x);
    dlc_str_deinit(&y);
    return is_same;
}

/* x may turn out to be 1 where other inputs are not: a condition says that it does not. */
static int keeps_dim(dlc_import *im, dlc_expr wide, dlc_expr own)
{
    const char *text = dlc_arena_printf(im->arena, "%s: node '%s': another input would make its first one larger; it may only be "
                                        "broadcast to it", im->graph->file, im->origin->name);
    dlc_expr same;
    if (dlc_graph_same(im->graph, wide) == dlc_graph_same(im->graph, own))
        return 1;
    return dlc_dim_may_broadcast(im->graph, own) && dlc_graph_equal(im->graph, wide, own, text, &same);
}

int im_keeps_shape(dlc_import *im, const dlc_value *result, const dlc_value *x)
{
    if (!result)
        return 1;
    int is_same = im_rank(result) == im_rank(x);
    for (uint32_t i = 0; is_same && i < im_rank(x); i++)
        is_same = keeps_dim(im, result->type.dims[i], x->type.dims[i]);
    if (is_same)
        return 1;
    dlc_str wide = {0}, own = {0};
    dlc_type_print(im->graph, &result->type, &wide);
    dlc_type_print(im->graph, &x->type, &own);
    im_fail(im, DLC_INVALID, "another input would make %s of %s; it may only be broadcast to it",
            dlc_str_text(&wide), dlc_str_text(&own));
    dlc_str_deinit(&wide);
    dlc_str_deinit(&own);
    return 0;
}

dlc_dtype im_dtype(dlc_import *im, int64_t onnx_type, const char *what)
{
    dlc_dtype dtype = dlc_dtype_of_onnx(onnx_type);
    if (dtype != DLC_NONE && !dlc_is_text(dtype))
        return dtype;
    im_fail(im, DLC_UNSUPPORTED,
            "%s is type %" PRId64 " (%s); supported: bool, integers and floats",
            what, onnx_type, dlc_onnx_type_name(onnx_type));
    return DLC_NONE;
}

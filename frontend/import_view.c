/*
 * Views: the same elements under other indices. Sizes and offsets are expressions throughout;
 * constants among them fold, so a static model and one whose shapes are inputs take the same path.
 */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <string.h>

#define FAR ((int64_t)1 << 40) /* a slice step beyond any dimension */

static dlc_expr select_eq(dlc_import *im, dlc_expr a, int64_t b, dlc_expr yes, dlc_expr no)
{
    return dlc_select(im->pool, dlc_eq(im->pool, a, im_i64(im, b)), yes, no);
}

/* --- Reshape: 0 copies, -1 is what remains --- */

/* An element that the run reads from data as it is, so that it may be 0 or -1 there; sizes computed
 * from others may not. */
static int is_free(const dlc_import *im, dlc_expr element)
{
    const dlc_expr_node *node = dlc_node_of(im->pool, element);
    return node->op == DLC_EXPR_SYM && im->graph->symbols.data[node->imm.id].lo < 0;
}

/* all / known where both are products: equal factors cancel, so that the quotient stays simple. */
static dlc_expr quotient(dlc_import *im, const dlc_expr *all, uint32_t nall, const dlc_expr *known,
                         uint32_t nknown)
{
    dlc_expr rest[DLC_MAX_RANK], divisors[DLC_MAX_RANK];
    uint32_t nrest = 0, ndivisors = 0;
    memcpy(rest, all, nall * sizeof *all);
    nrest = nall;
    for (uint32_t k = 0; k < nknown; k++) {
        uint32_t i = 0;
        while (i < nrest && rest[i] != known[k])
            i++;
        if (i < nrest)
            rest[i] = rest[--nrest];
        else
            divisors[ndivisors++] = known[k];
    }
    dlc_expr top = im_product(im, rest, nrest), bottom = im_product(im, divisors, ndivisors);
    return im_size(im, dlc_floordiv(im->pool, top, bottom));
}

typedef struct {
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t rank;
    int inferred; /* index of the -1, or -1 */
    int has_free;
} target_shape;

static int read_target_dim(dlc_import *im, const dlc_value *x, dlc_expr element, uint32_t i,
                           int allow_zero, target_shape *t)
{
    int64_t size;
    t->dims[i] = element;
    if (is_free(im, element)) {
        t->has_free = 1;
        if (!allow_zero)
            t->dims[i] = select_eq(im, element, 0, i < im_rank(x) ? x->type.dims[i] : im_i64(im, 0),
                                   element);
        return 1;
    }
    if (!im_is_const(im, element, &size)) {
        dlc_graph_require(im->graph, dlc_le(im->pool, im_i64(im, 0), element),
                          "node '%s': a size of its shape is negative", im->origin->name);
        return 1;
    }
    if (size < -1 || (size == -1 && t->inferred >= 0)) {
        im_fail(im, DLC_INVALID,
                size < -1 ? "shape[%" PRIu32 "] is %" PRId64 "; at least -1 is possible"
                          : "shape[%" PRIu32 "] is a second %" PRId64,
                i, size);
        return 0;
    }
    if (size == -1)
        t->inferred = (int)i;
    if (size == 0 && !allow_zero) {
        if (i >= im_rank(x)) {
            im_fail(im, DLC_INVALID,
                    "shape[%" PRIu32 "] is 0, but the input has no dimension %" PRIu32 " to copy",
                    i, i);
            return 0;
        }
        t->dims[i] = x->type.dims[i];
    }
    return 1;
}

/* One -1 at a known place. */
static void infer_dim(dlc_import *im, const dlc_value *x, target_shape *t)
{
    dlc_expr known[DLC_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if ((int)i != t->inferred)
            known[n++] = t->dims[i];
    }
    t->dims[t->inferred] = quotient(im, x->type.dims, im_rank(x), known, n);
}

/* The -1 may be anywhere among sizes that are data: each of them is itself or the quotient. */
static void infer_free(dlc_import *im, const dlc_value *x, target_shape *t)
{
    dlc_expr known = im_i64(im, 1), count = im_i64(im, 0), one = im_i64(im, 1),
             zero = im_i64(im, 0);
    for (uint32_t i = 0; i < t->rank; i++) {
        known = dlc_mul(im->pool, known, select_eq(im, t->dims[i], -1, one, t->dims[i]));
        count = dlc_add(im->pool, count, select_eq(im, t->dims[i], -1, one, zero));
    }
    dlc_expr rest =
        im_size(im, dlc_floordiv(im->pool, im_product(im, x->type.dims, im_rank(x)), known));
    for (uint32_t i = 0; i < t->rank; i++) {
        t->dims[i] = im_size(im, select_eq(im, t->dims[i], -1, rest, t->dims[i]));
        dlc_graph_require(im->graph, dlc_le(im->pool, zero, t->dims[i]),
                          "node '%s': shape[%" PRIu32 "] is negative", im->origin->name, i);
    }
    dlc_graph_require(im->graph, dlc_le(im->pool, count, one),
                      "node '%s': its shape has more than one -1", im->origin->name);
}

void import_reshape(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t allow_zero = im->opset >= 14 ? im_int(im, "allowzero", 0) : 0;
    target_shape t = {.inferred = -1};
    const dlc_expr *elements = im_elements(im, im_in(im, 1), -1, INT32_MAX, &t.rank);
    if (!elements)
        return;
    if (t.rank > DLC_MAX_RANK) {
        im_fail(im, DLC_UNSUPPORTED,
                "the shape has %" PRIu32 " dimensions; at most %d are supported", t.rank,
                DLC_MAX_RANK);
        return;
    }
    for (uint32_t i = 0; i < t.rank; i++) {
        if (!read_target_dim(im, x, elements[i], i, allow_zero != 0, &t))
            return;
    }
    if (t.has_free)
        infer_free(im, x, &t);
    else if (t.inferred >= 0)
        infer_dim(im, x, &t);
    im->out[0] = f_reshape(im, x, t.dims, t.rank);
}

void import_flatten(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t axis = im_int(im, "axis", 1);
    uint32_t rank = im_rank(x);
    if (axis < -(int64_t)rank || axis > (int64_t)rank) {
        im_fail(im, DLC_INVALID, "axis %" PRId64 " is outside of [-%" PRIu32 ", %" PRIu32 "]", axis,
                rank, rank);
        return;
    }
    uint32_t cut = (uint32_t)(axis < 0 ? axis + rank : axis);
    const dlc_expr dims[2] = {im_product(im, x->type.dims, cut),
                              im_product(im, x->type.dims + cut, rank - cut)};
    im->out[0] = f_reshape(im, x, dims, 2);
}

/* --- Squeeze, Unsqueeze, Transpose --- */

/* Axes: an attribute up to opset 12, then input 1. *axes NULL where there are none; false when
 * reported. */
static int read_axes(dlc_import *im, uint32_t rank, im_axis_list *list, im_axis_list **axes)
{
    uint32_t n = 0;
    *axes = NULL;
    const int64_t *given = im->opset < 13 ? im_ints(im, "axes", &n) : NULL;
    if (im->opset < 13 && im_in(im, 1)) {
        im_fail(im, DLC_INVALID, "axes are an attribute in opset %" PRId64 ", not an input",
                im->opset);
        return 0;
    }
    if (!given && !im_in(im, 1))
        return im_ok(im);
    *axes = list;
    dlc_value *value = given ? dlc_graph_ints(im->graph, given, n) : im_in(im, 1);
    return im_axis_input(im, value, rank, list);
}

static int takes(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_input; i++)
        if (!strcmp(node->input[i], name))
            return 1;
    return 0;
}

/* The shape the model declares for a value of its main graph, or for an output; NULL: none. */
static const Onnx__TensorShapeProto *declared_shape(dlc_import *im, const char *name)
{
    void **found = dlc_table_find(&im->declared, name);
    found = found ? found : dlc_table_find(&im->results, name);
    const Onnx__ValueInfoProto *info = found ? *found : NULL;
    const Onnx__TypeProto *type = info ? info->type : NULL;
    return type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type->shape : NULL;
}

/* How many dimensions the model says its result has: declared for it, or for what follows it element by element; -1: nothing. */
static int declared_rank(dlc_import *im, const char *name)
{
    static const char *const keeps[] = {"Sigmoid", "Relu", "Tanh", "Cast", "Identity", "Softmax", "Exp", "Log",
                                        "Neg",     "Abs",  "Sqrt", "Mul",  "Add",      "Sub",     "Div"};
    const dlc_body *body = im_body(im);
    if (body->caller)
        return -1;
    const Onnx__TensorShapeProto *shape = declared_shape(im, name);
    for (size_t at = body->next; !shape && at < body->nnodes; at++) {
        const Onnx__NodeProto *node = body->nodes[at];
        int follows = 0;
        for (uint32_t k = 0; k < sizeof keeps / sizeof *keeps; k++)
            follows |= !strcmp(node->op_type, keeps[k]);
        if (!follows || !node->n_output || !takes(node, name))
            continue;
        name = node->output[0];
        shape = declared_shape(im, name);
    }
    return shape ? (int)shape->n_dim : -1;
}

static dlc_expr is_not_one(dlc_import *im, dlc_expr dim)
{
    dlc_expr is_one = dlc_eq(im->pool, dim, im_i64(im, 1));
    return dlc_select(im->pool, is_one, dlc_expr_bool(im->pool, 0), dlc_expr_bool(im->pool, 1));
}

/* Dimensions that only the run knows are all 1 where the model declares a result without them, and none is 1 where it does not:
 * the number of dimensions is known at compile time. The run checks it. */
static void squeeze_unknown(dlc_import *im, const dlc_value *x, im_axis_list *axes)
{
    int64_t size;
    uint32_t nunknown = im_rank(x);
    for (uint32_t i = 0; i < im_rank(x); i++)
        nunknown -= (uint32_t)im_is_const(im, dlc_graph_same(im->graph, x->type.dims[i]), &size);
    int are_ones = nunknown && declared_rank(im, im->node->output[0]) == (int)(im_rank(x) - axes->n - nunknown);
    for (uint32_t i = 0; i < im_rank(x); i++) {
        dlc_expr dim = dlc_graph_same(im->graph, x->type.dims[i]);
        if (im_is_const(im, dim, &size))
            continue;
        if (are_ones)
            axes->at[axes->n++] = im_i64(im, i);
        else
            dlc_graph_require(im->graph, is_not_one(im, dim),
                              "%s: node '%s': without axes, dimension %" PRIu32 " is taken not to be 1; --shape fixes it",
                              im->graph->file, im->origin->name, i);
    }
}

static void all_ones(dlc_import *im, const dlc_value *x, im_axis_list *axes)
{
    int64_t size;
    *axes = (im_axis_list){.is_known = 1};
    for (uint32_t i = 0; i < im_rank(x); i++) {
        if (im_is_const(im, dlc_graph_same(im->graph, x->type.dims[i]), &size) && size == 1)
            axes->at[axes->n++] = im_i64(im, i);
    }
    squeeze_unknown(im, x, axes);
}

void import_squeeze(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    im_axis_list list, *axes;
    uint8_t sorted[DLC_MAX_RANK];
    dlc_expr dims[DLC_MAX_RANK];
    if (!read_axes(im, im_rank(x), &list, &axes))
        return;
    if (!axes)
        all_ones(im, x, &list);
    for (uint32_t i = 0; im_axes_of(im, &list, sorted) && i < list.n; i++) {
        if (!im_same_dim(im, x->type.dims[sorted[i]], im_i64(im, 1),
                         "a squeezed dimension must be 1"))
            return;
    }
    im_axes_dropped(im, &list, x->type.dims, im_rank(x), dims);
    im->out[0] = f_reshape(im, x, dims, im_rank(x) - list.n);
}

void import_unsqueeze(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    im_axis_list list, *axes;
    int64_t n = 0;
    uint32_t given = 0;
    dlc_expr dims[DLC_MAX_RANK];
    if (im->opset < 13)
        (void)im_ints(im, "axes", &given);
    else if (im_in(im, 1) && !dlc_type_elems(im->pool, &im_in(im, 1)->type, &n))
        n = 0; /* im_axis_input reports */
    n += given;
    if (n + im_rank(x) > DLC_MAX_RANK) {
        im_fail(im, DLC_UNSUPPORTED, "the result has rank %" PRId64 "; at most %d is supported",
                n + im_rank(x), DLC_MAX_RANK);
        return;
    }
    if (!read_axes(im, im_rank(x) + (uint32_t)n, &list, &axes))
        return;
    if (!axes) {
        im_fail(im, DLC_INVALID, "axes are required");
        return;
    }
    im_axes_inserted(im, axes, x->type.dims, im_rank(x), dims);
    im->out[0] = f_reshape(im, x, dims, im_rank(x) + axes->n);
}

void import_transpose(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    uint32_t n, rank = im_rank(x);
    const int64_t *given = im_ints(im, "perm", &n);
    uint8_t perm[DLC_MAX_RANK], seen[DLC_MAX_RANK] = {0};
    if (given && n != rank) {
        im_fail(im, DLC_INVALID,
                "perm has %" PRIu32 " entries; the input has %" PRIu32 " dimensions", n, rank);
        return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (given && given[i] < 0) {
            im_fail(im, DLC_INVALID, "perm has %" PRId64 " at %" PRIu32 "; 0 to %" PRIu32 " are possible",
                    given[i], i, rank - 1);
            return;
        }
        int axis = given ? im_axis(im, given[i], rank) : (int)(rank - 1 - i);
        if (axis < 0)
            return;
        if (seen[axis]++) {
            im_fail(im, DLC_INVALID, "perm names dimension %d twice", axis);
            return;
        }
        perm[i] = (uint8_t)axis;
    }
    im->out[0] = f_transpose(im, x, perm);
}

/* --- Expand and Tile --- */

/* Of an input's dimension x and the wanted e, which may be 1. */
static dlc_expr broadcast_dim(dlc_import *im, dlc_expr x, dlc_expr e)
{
    int64_t size;
    int is_one = im_is_const(im, x, &size) && size == 1;
    if (is_one || x == e)
        return e;
    if (im_is_const(im, e, &size) && size == 1)
        return x;
    if (im_is_const(im, x, &size) && !im_is_const(im, e, &size)) {
        dlc_expr fits = dlc_expr2(im->pool, DLC_EXPR_OR, dlc_eq(im->pool, e, im_i64(im, 1)),
                                  dlc_eq(im->pool, e, x));
        dlc_graph_require(im->graph, fits,
                          "node '%s': a size of its shape is neither 1 nor the input's",
                          im->origin->name);
        return x;
    }
    dlc_ranges ranges = dlc_graph_ranges(im->graph);
    if (dlc_expr_range(im->pool, e, &ranges).hi == 1) { /* the size of a slice of one element, which may be nothing */
        dlc_graph_require(im->graph, dlc_eq(im->pool, e, im_i64(im, 1)), "node '%s': a size of its shape is 0",
                          im->origin->name);
        return x;
    }
    return e; /* the core operator asks for equality */
}

/* Sizes of which only the run knows whether they are 1: both may be. Computed ones are taken for equal. */
static int may_be_either(const dlc_import *im, dlc_expr x, dlc_expr e)
{
    int64_t size;
    const dlc_expr_node *node = dlc_node_of(im->pool, e);
    if (x == e || dlc_expr_is_int(im->pool, x, &size))
        return 0;
    int is_data = node->op == DLC_EXPR_SYM && im->graph->symbols.data[node->imm.id].bind == DLC_BIND_DATA;
    return is_data || (dlc_dim_may_broadcast(im->graph, x) && dlc_dim_may_broadcast(im->graph, e));
}

/* Dimensions that are 1 or nothing, as what a slice of one element leaves, become 1. */
static dlc_value *with_ones(dlc_import *im, dlc_value *x)
{
    dlc_expr dims[DLC_MAX_RANK];
    dlc_ranges ranges = dlc_graph_ranges(im->graph);
    for (uint32_t i = 0; i < im_rank(x); i++) {
        dlc_interval r = dlc_expr_range(im->pool, x->type.dims[i], &ranges);
        dims[i] = r.hi == 1 ? im_i64(im, 1) : x->type.dims[i];
    }
    return f_reshape(im, x, dims, im_rank(x));
}

void import_expand(dlc_import *im)
{
    dlc_value *x = with_ones(im, im_in(im, 0));
    uint32_t n;
    const dlc_expr *elements = im_elements(im, im_in(im, 1), 0, INT32_MAX, &n);
    if (!elements || !x)
        return;
    uint32_t rank = n > im_rank(x) ? n : im_rank(x);
    dlc_expr dims[DLC_MAX_RANK];
    if (rank > DLC_MAX_RANK) {
        im_fail(im, DLC_UNSUPPORTED,
                "the shape has %" PRIu32 " dimensions; at most %d are supported", rank,
                DLC_MAX_RANK);
        return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        dlc_expr from =
            i + im_rank(x) >= rank ? x->type.dims[i + im_rank(x) - rank] : im_i64(im, 1);
        dims[i] = i + n >= rank ? elements[i + n - rank] : im_i64(im, 1);
        dims[i] = may_be_either(im, from, dims[i]) ? dlc_select(im->pool, dlc_eq(im->pool, dims[i], im_i64(im, 1)), from, dims[i])
                                                   : broadcast_dim(im, from, dims[i]);
    }
    im->out[0] = f_expand(im, x, dims, rank);
}

void import_tile(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    uint32_t n;
    dlc_expr dims[DLC_MAX_RANK];
    const dlc_expr *repeats = im_elements(im, im_in(im, 1), 0, INT32_MAX, &n);
    if (!repeats)
        return;
    if (n != im_rank(x)) {
        im_fail(im, DLC_INVALID, "%" PRIu32 " repeats for an input of rank %" PRIu32, n,
                im_rank(x));
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        int64_t times;
        if (im_is_const(im, repeats[i], &times) && times < 0)
            im_fail(im, DLC_INVALID, "repeats[%" PRIu32 "] is %" PRId64 "; 0 or more is possible", i, times);
        dims[i] = im_size(im, dlc_mul(im->pool, x->type.dims[i], repeats[i]));
    }
    if (!im_ok(im))
        return;
    im->out[0] =
        memcmp(dims, x->type.dims, n * sizeof *dims) == 0
            ? x
            : f_node(im, DLC_OP_TILE, F_IN(x), F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, dims, n)));
}

/* --- Slice --- */

typedef struct {
    dlc_expr starts[DLC_MAX_RANK], dims[DLC_MAX_RANK], steps[DLC_MAX_RANK];
} slicing;

static dlc_expr clamp(dlc_import *im, dlc_expr x, dlc_expr lo, dlc_expr hi)
{
    return dlc_min(im->pool, dlc_max(im->pool, x, lo), hi);
}

/* Negative positions count from the end. */
static dlc_expr from_end(dlc_import *im, dlc_expr at, dlc_expr dim)
{
    return dlc_select(im->pool, dlc_lt(im->pool, at, im_i64(im, 0)), dlc_add(im->pool, at, dim),
                      at);
}

/* The same for a step whose sign only the run knows. */
static void slice_dim_by(dlc_import *im, dlc_expr dim, dlc_expr start, dlc_expr end, dlc_expr step,
                         slicing *s, uint32_t axis)
{
    dlc_pool *pool = im->pool;
    dlc_expr zero = im_i64(im, 0), last = dlc_addi(pool, dim, -1), is_up = dlc_lt(pool, zero, step);
    start = from_end(im, start, dim);
    end = from_end(im, end, dim);
    start = im_size(im, dlc_max(pool, clamp(im, start, zero, dlc_select(pool, is_up, dim, last)), zero));
    dlc_expr up = dlc_sub(pool, clamp(im, end, zero, dim), start),
             down = dlc_sub(pool, start, clamp(im, end, im_i64(im, -1), last));
    dlc_expr span = im_size(im, dlc_select(pool, is_up, up, down)),
             stride = dlc_select(pool, is_up, step, dlc_sub(pool, zero, step));
    dlc_expr count =
        dlc_floordiv(pool, dlc_addi(pool, dlc_add(pool, span, stride), -1), stride);
    dlc_graph_require(im->graph, dlc_expr2(pool, DLC_EXPR_NE, step, zero), "node '%s': a step is 0",
                      im->origin->name);
    s->starts[axis] = start;
    s->dims[axis] = im_size(im, dlc_max(pool, count, zero));
    s->steps[axis] = im_size(im, step);
}

static void slice_dim(dlc_import *im, dlc_expr dim, dlc_expr start, dlc_expr end, dlc_expr by,
                      slicing *s, uint32_t axis)
{
    dlc_pool *pool = im->pool;
    dlc_expr zero = im_i64(im, 0), last = dlc_addi(pool, dim, -1), span;
    int64_t step;
    if (!im_is_const(im, by, &step)) {
        slice_dim_by(im, dim, start, end, by, s, axis);
        return;
    }
    if (step > FAR || step < -FAR)
        step = step < 0 ? -FAR : FAR;
    start = from_end(im, start, dim);
    end = from_end(im, end, dim);
    if (step > 0) {
        start = clamp(im, start, zero, dim);
        span = dlc_sub(pool, clamp(im, end, zero, dim), start);
    } else {
        start = clamp(im, start, zero, last);
        span = dlc_sub(pool, start, clamp(im, end, im_i64(im, -1), last));
    }
    int64_t stride = step < 0 ? -step : step;
    dlc_expr count = dlc_floordiv(pool, dlc_addi(pool, span, stride - 1), im_i64(im, stride));
    s->starts[axis] = im_size(im, dlc_max(pool, start, zero));
    s->dims[axis] = im_size(im, dlc_max(pool, count, zero));
    s->steps[axis] = im_i64(im, step);
}

static dlc_value *build_slice(dlc_import *im, dlc_value *x, const slicing *s)
{
    uint32_t rank = im_rank(x);
    int is_whole = 1;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t start, step;
        is_whole &= s->dims[i] == x->type.dims[i] && im_is_const(im, s->starts[i], &start) &&
                    start == 0 && im_is_const(im, s->steps[i], &step) && step == 1;
    }
    if (is_whole)
        return x;
    return f_node(im, DLC_OP_SLICE, F_IN(x),
                  F_ATTRS(dlc_attr_dims(DLC_ATTR_STARTS, s->starts, rank),
                          dlc_attr_dims(DLC_ATTR_STEPS, s->steps, rank),
                          dlc_attr_dims(DLC_ATTR_DIMS, s->dims, rank)));
}

static const dlc_expr *to_exprs(dlc_import *im, const int64_t *values, uint32_t n)
{
    dlc_expr *exprs = dlc_new_array(im->arena, dlc_expr, n + 1);
    for (uint32_t i = 0; i < n; i++)
        exprs[i] = im_i64(im, values[i]);
    return exprs;
}

typedef struct {
    const dlc_expr *starts, *ends, *steps; /* steps: NULL: ones */
    im_axis_list axes;
    uint32_t n;
} slice_request;

static dlc_value *slice(dlc_import *im, dlc_value *x, const slice_request *r)
{
    slicing s;
    dlc_expr one = im_i64(im, 1);
    int64_t known, axis;
    for (uint32_t k = 0; k < r->n && r->steps; k++) {
        if (im_is_const(im, r->steps[k], &known) && known == 0) {
            im_fail(im, DLC_INVALID, "steps[%" PRIu32 "] is 0", k);
            return NULL;
        }
    }
    for (uint32_t i = 0; i < im_rank(x); i++) {
        dlc_expr dim = x->type.dims[i];
        s.starts[i] = im_i64(im, 0);
        s.steps[i] = one;
        s.dims[i] = dim;
        if (!r->axes.is_known)
            slice_dim(im, dim, im_axis_pick(im, &r->axes, r->starts, i, im_i64(im, 0)),
                      im_axis_pick(im, &r->axes, r->ends, i, dim),
                      r->steps ? im_axis_pick(im, &r->axes, r->steps, i, one) : one, &s, i);
    }
    for (uint32_t k = 0; k < r->n && r->axes.is_known; k++) {
        (void)im_is_const(im, r->axes.at[k], &axis);
        slice_dim(im, x->type.dims[axis], r->starts[k], r->ends[k], r->steps ? r->steps[k] : one,
                  &s, (uint32_t)axis);
    }
    return build_slice(im, x, &s);
}

/* Without axes: the first n. */
static int slice_axes(dlc_import *im, dlc_value *given, uint32_t n, im_axis_list *axes)
{
    int64_t first[DLC_MAX_RANK];
    for (uint32_t k = 0; k < DLC_MAX_RANK; k++)
        first[k] = k;
    if (!given && n > DLC_MAX_RANK)
        im_fail(im, DLC_INVALID, "%" PRIu32 " starts; there are %" PRIu32 " dimensions", n,
                im_rank(im_in(im, 0)));
    if (!im_ok(im))
        return 0;
    return im_axis_input(im, given ? given : dlc_graph_ints(im->graph, first, n),
                         im_rank(im_in(im, 0)), axes);
}

static void check_lengths(dlc_import *im, uint32_t starts, uint32_t ends, uint32_t axes,
                          uint32_t steps)
{
    if (ends != starts || axes != starts || steps != starts)
        im_fail(im, DLC_INVALID,
                "starts, ends, axes and steps have %" PRIu32 ", %" PRIu32 ", %" PRIu32
                " and %" PRIu32 " entries",
                starts, ends, axes, steps);
}

void import_slice_1(dlc_import *im)
{
    uint32_t nstarts, nends, naxes;
    const int64_t *starts = im_ints(im, "starts", &nstarts), *ends = im_ints(im, "ends", &nends);
    const int64_t *axes = im_ints(im, "axes", &naxes);
    if (!starts || !ends) {
        im_fail(im, DLC_INVALID, "attributes 'starts' and 'ends' are required");
        return;
    }
    check_lengths(im, nstarts, nends, axes ? naxes : nstarts, nstarts);
    slice_request r = {to_exprs(im, starts, nstarts), to_exprs(im, ends, nends), NULL, {{0}, 0, 0},
                       nstarts};
    if (slice_axes(im, axes ? dlc_graph_ints(im->graph, axes, naxes) : NULL, nstarts, &r.axes))
        im->out[0] = slice(im, im_in(im, 0), &r);
}

void import_slice_10(dlc_import *im)
{
    slice_request r = {0};
    uint32_t nends, nsteps;
    r.starts = im_elements(im, im_in(im, 1), INT64_MIN, INT64_MAX, &r.n);
    r.ends = im_elements(im, im_in(im, 2), INT64_MIN, INT64_MAX, &nends);
    if (!r.starts || !r.ends || !slice_axes(im, im_in(im, 3), r.n, &r.axes))
        return;
    nsteps = r.n;
    if (im_in(im, 4) && !(r.steps = im_elements(im, im_in(im, 4), -FAR, FAR, &nsteps)))
        return;
    check_lengths(im, r.n, nends, r.axes.n, nsteps);
    if (im_ok(im))
        im->out[0] = slice(im, im_in(im, 0), &r);
}

/* --- Split and Concat --- */

static const dlc_expr *equal_parts(dlc_import *im, dlc_expr dim, uint32_t n)
{
    dlc_pool *pool = im->pool;
    dlc_expr *sizes = dlc_new_array(im->arena, dlc_expr, n), parts = im_i64(im, n);
    if (im->opset < 18) {
        if (!im_same_dim(im, dlc_mod(pool, dim, parts), im_i64(im, 0),
                         "the dimension modulo the number of outputs"))
            return NULL;
        for (uint32_t i = 0; i < n; i++)
            sizes[i] = im_size(im, dlc_floordiv(pool, dim, parts));
        return sizes;
    }
    dlc_expr chunk = dlc_floordiv(pool, dlc_addi(pool, dim, n - 1), parts);
    for (uint32_t i = 0; i < n; i++)
        sizes[i] = im_size(
            im, clamp(im, dlc_sub(pool, dim, dlc_muli(pool, chunk, i)), im_i64(im, 0), chunk));
    return sizes;
}

/* Sizes of the outputs: an attribute up to opset 12, then an input; without them, equal parts. */
static const dlc_expr *split_sizes(dlc_import *im, dlc_expr dim)
{
    uint32_t n = 0;
    const int64_t *attribute = im->opset < 13 ? im_ints(im, "split", &n) : NULL;
    int64_t parts = im->opset >= 18 ? im_int(im, "num_outputs", 0) : 0;
    const dlc_expr *sizes = attribute ? to_exprs(im, attribute, n) : NULL;
    if (im_in(im, 1)) { /* opset 1 has them in x's type */
        sizes = im_elements(im, f_cast(im, im_in(im, 1), DLC_I64), 0, INT32_MAX, &n);
        if (!sizes)
            return NULL;
    }
    if (parts && (parts != im->nout || sizes))
        im_fail(im, DLC_INVALID, "num_outputs is %" PRId64 "%s", parts,
                sizes ? ", and sizes are given too" : ", not the number of outputs");
    else if (sizes && n != im->nout)
        im_fail(im, DLC_INVALID, "has %" PRIu32 " outputs but %" PRIu32 " sizes", im->nout, n);
    if (!im_ok(im))
        return NULL;
    return sizes ? sizes : equal_parts(im, dim, im->nout);
}

void import_split(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int axis = im_axis(im, im_int(im, "axis", 0), im_rank(x));
    const dlc_expr *sizes = axis < 0 ? NULL : split_sizes(im, x->type.dims[axis]);
    if (!sizes)
        return;
    dlc_expr total = im_i64(im, 0);
    for (uint32_t i = 0; i < im->nout; i++) {
        int64_t size;
        if (im_is_const(im, sizes[i], &size) && size < 0) {
            im_fail(im, DLC_INVALID, "split[%" PRIu32 "] is %" PRId64, i, size);
            return;
        }
        total = dlc_add(im->pool, total, sizes[i]);
    }
    if (!im_same_dim(im, im_size(im, total), x->type.dims[axis],
                     "the sum of the parts and the dimension"))
        return;
    dlc_expr start = im_i64(im, 0);
    for (uint32_t i = 0; i < im->nout; i++) {
        im->out[i] = f_slice(im, x, (uint32_t)axis, start, sizes[i]);
        start = im_size(im, dlc_add(im->pool, start, sizes[i]));
    }
}

void import_concat(dlc_import *im)
{
    if (!im_has(im, "axis"))
        im_fail(im, DLC_INVALID, "attribute 'axis' is required");
    int axis = im_axis(im, im_int(im, "axis", 0), im_rank(im_in(im, 0)));
    if (axis >= 0 && im_ok(im))
        im->out[0] = f_concat(im, im->in, im->nin, (uint32_t)axis);
}

/* --- Pad --- */

static dlc_value *pad(dlc_import *im, dlc_value *x, const dlc_expr *pads, const char *mode,
                      dlc_value *fill)
{
    dlc_value *const inputs[2] = {x, fill};
    return f_node(im, DLC_OP_PAD, inputs, fill ? 2 : 1,
                  F_ATTRS(dlc_attr_dims(DLC_ATTR_PADS, pads, 2 * im_rank(x)),
                          dlc_attr_text(DLC_ATTR_MODE, mode)));
}

void import_pad_2(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    uint32_t n;
    const char *mode = im_choice(im, "mode", "constant", "constant|reflect|edge");
    double value = im_float(im, "value", 0);
    const int64_t *pads = im_ints(im, "pads", &n);
    if (pads && n != 2 * im_rank(x))
        im_fail(im, DLC_INVALID, "pads has %" PRIu32 " entries; %" PRIu32 " are wanted", n,
                2 * im_rank(x));
    else if (!pads)
        im_fail(im, DLC_INVALID, "attribute 'pads' is required");
    else if (mode)
        im->out[0] =
            pad(im, x, to_exprs(im, pads, n), mode, value != 0 ? f_like(im, x, value) : NULL);
}

void import_pad_11(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *fill = im_in(im, 2);
    uint32_t n, rank = im_rank(x);
    const char *mode =
        im_choice(im, "mode", "constant",
                  im->opset >= 19 ? "constant|reflect|edge|wrap" : "constant|reflect|edge");
    const dlc_expr *given = im_elements(im, im_in(im, 1), -INT32_MAX, INT32_MAX, &n);
    im_axis_list axes;
    dlc_expr pads[2 * DLC_MAX_RANK];
    if (!given || !mode || !slice_axes(im, im_in(im, 3), rank, &axes))
        return;
    if (n != 2 * axes.n) {
        im_fail(im, DLC_INVALID, "pads has %" PRIu32 " entries; %" PRIu32 " are wanted", n,
                2 * axes.n);
        return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        pads[i] = im_size(im, im_axis_pick(im, &axes, given, i, im_i64(im, 0)));
        pads[rank + i] = im_size(im, im_axis_pick(im, &axes, given + axes.n, i, im_i64(im, 0)));
    }
    im->out[0] = pad(im, x, pads, mode, mode[0] == 'c' ? fill : NULL);
}

/* --- blocks of depth --- */

/* [n, c, h, w] seen as six dimensions, permuted, and merged to `dims`. */
static dlc_value *through_six(dlc_import *im, dlc_value *x, const dlc_expr *six,
                              const uint8_t *perm, const dlc_expr *dims)
{
    return f_reshape(im, f_transpose(im, f_reshape(im, x, six, 6), perm), dims, 4);
}

static int read_block(dlc_import *im, dlc_value *x, int64_t *block, int *is_crd)
{
    const char *mode = "DCR";
    *block = im_int(im, "blocksize", 0);
    if (im->opset >= im->row->argument)
        mode = im_choice(im, "mode", "DCR", "DCR|CRD");
    *is_crd = mode && mode[0] == 'C';
    if (im_rank(x) != 4)
        im_fail(im, DLC_INVALID, "the input has rank %" PRIu32 "; n,c,h,w is wanted", im_rank(x));
    else if (*block < 1 || *block > INT16_MAX)
        im_fail(im, DLC_INVALID, "blocksize is %" PRId64 "; 1 to %d are possible", *block,
                INT16_MAX);
    return im_ok(im);
}

void import_depth_to_space(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t b;
    int is_crd;
    if (!read_block(im, x, &b, &is_crd))
        return;
    const dlc_expr *d = x->type.dims, block = im_i64(im, b), square = im_i64(im, b * b);
    if (!im_same_dim(im, dlc_mod(im->pool, d[1], square), im_i64(im, 0),
                     "channels modulo blocksize squared"))
        return;
    dlc_expr c = im_size(im, dlc_floordiv(im->pool, d[1], square));
    const dlc_expr dcr[6] = {d[0], block, block, c, d[2], d[3]},
                   crd[6] = {d[0], c, block, block, d[2], d[3]};
    const dlc_expr dims[4] = {d[0], c, dlc_mul(im->pool, d[2], block),
                              dlc_mul(im->pool, d[3], block)};
    static const uint8_t dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
    im->out[0] = through_six(im, x, is_crd ? crd : dcr, is_crd ? crd_perm : dcr_perm, dims);
}

void import_space_to_depth(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t b;
    int is_crd;
    if (!read_block(im, x, &b, &is_crd))
        return;
    const dlc_expr *d = x->type.dims, block = im_i64(im, b);
    if (!im_same_dim(im, dlc_mod(im->pool, d[2], block), im_i64(im, 0),
                     "height modulo blocksize") ||
        !im_same_dim(im, dlc_mod(im->pool, d[3], block), im_i64(im, 0), "width modulo blocksize"))
        return;
    dlc_expr h = im_size(im, dlc_floordiv(im->pool, d[2], block)),
             w = im_size(im, dlc_floordiv(im->pool, d[3], block));
    const dlc_expr six[6] = {d[0], d[1], h, block, w, block},
                   dims[4] = {d[0], dlc_muli(im->pool, d[1], b * b), h, w};
    static const uint8_t dcr_perm[6] = {0, 3, 5, 1, 2, 4}, crd_perm[6] = {0, 1, 3, 5, 2, 4};
    im->out[0] = through_six(im, x, six, is_crd ? crd_perm : dcr_perm, dims);
}

/* Center: crop or pad each axis to its size; an odd difference leaves the extra element at the end
 * (crop) or end (pad). */
void import_center_crop_pad(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    uint32_t n, naxes = im_rank(x);
    const int64_t *axes = im_ints(im, "axes", &naxes);
    const dlc_expr *sizes = im_elements(im, im_in(im, 1), 0, INT32_MAX, &n);
    dlc_expr pads[2 * DLC_MAX_RANK];
    uint32_t rank = im_rank(x);
    if (!sizes)
        return;
    if (!axes)
        naxes = rank;
    if (n != naxes) {
        im_fail(im, DLC_INVALID, "the shape has %" PRIu32 " sizes for %" PRIu32 " axes", n, naxes);
        return;
    }
    for (uint32_t i = 0; i < 2 * rank; i++)
        pads[i] = im_i64(im, 0);
    for (uint32_t i = 0; i < naxes; i++) {
        int axis = im_axis(im, axes ? axes[i] : i, rank);
        if (axis < 0)
            return;
        dlc_expr dim = x->type.dims[axis], two = im_i64(im, 2), zero = im_i64(im, 0);
        dlc_expr grow = dlc_max(im->pool, dlc_sub(im->pool, sizes[i], dim), zero);
        dlc_expr shrink = dlc_max(im->pool, dlc_sub(im->pool, dim, sizes[i]), zero);
        dlc_expr before = dlc_sub(im->pool, dlc_floordiv(im->pool, grow, two),
                                  dlc_floordiv(im->pool, shrink, two));
        pads[axis] = im_size(im, before);
        pads[rank + (uint32_t)axis] =
            im_size(im, dlc_sub(im->pool, dlc_sub(im->pool, sizes[i], dim), before));
    }
    im->out[0] = pad(im, x, pads, "constant", NULL);
}

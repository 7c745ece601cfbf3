/* Constants, shapes as data, and what is made from sizes: ConstantOfShape, Range, EyeLike, OneHot's
 * relatives. */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- Constant --- */

dlc_value *im_tensor_attribute(dlc_import *im, const char *name)
{
    const Onnx__AttributeProto *attribute = im_attribute(im, name);
    if (!attribute)
        return NULL;
    const char *place =
        dlc_arena_printf(im->arena, "%s: node '%s' (%s): attribute '%s'", im->graph->file,
                         im->origin->name, im->origin->op_type, attribute->name);
    dlc_dense dense;
    dlc_status status = DLC_INVALID;
    if (attribute->t)
        status = dlc_tensor_decode(im->model, attribute->t, place, &dense);
    else if (attribute->sparse_tensor)
        status = dlc_sparse_decode(im->model, attribute->sparse_tensor, place, &dense);
    else
        im_fail(im, DLC_INVALID, "attribute '%s' holds no tensor", attribute->name);
    return status == DLC_OK ? im_constant(im, im->origin->name, &dense) : NULL;
}

static dlc_value *from_floats(dlc_import *im, const float *values, uint32_t n, uint32_t rank)
{
    dlc_dense dense = {.dtype = DLC_F32,
                       .rank = rank,
                       .dims = {n},
                       .bytes = values,
                       .size_bytes = n * sizeof *values};
    dense.bytes = dlc_arena_copy(im->arena, values, dense.size_bytes);
    return im_constant(im, im->origin->name, &dense);
}

static dlc_value *from_ints(dlc_import *im, const int64_t *values, uint32_t n, uint32_t rank)
{
    dlc_dense dense = {
        .dtype = DLC_I64, .rank = rank, .dims = {n}, .size_bytes = n * sizeof *values};
    dense.bytes = dlc_arena_copy(im->arena, values, dense.size_bytes);
    return im_constant(im, im->origin->name, &dense);
}

void import_constant(dlc_import *im)
{
    static const char *const kinds[] = {"value",        "sparse_value", "value_float",  "value_floats",
                                        "value_int",    "value_ints",   "value_string", "value_strings"};
    int given = -1;
    for (int i = 0; i < 8; i++) {
        if (!im_has(im, kinds[i]) || (i > 1 && im->opset < 12) || (i == 1 && im->opset < 11))
            continue;
        if (given >= 0)
            im_fail(im, DLC_INVALID, "has both '%s' and '%s'", kinds[given], kinds[i]);
        given = i;
    }
    uint32_t n;
    if (given < 0)
        im_fail(im, DLC_INVALID, "has no value");
    if (!im_ok(im))
        return;
    if (given <= 1) {
        im->out[0] = im_tensor_attribute(im, kinds[given]);
    } else if (given <= 3) {
        float one = (float)(given == 2 ? im_float(im, kinds[given], 0) : 0);
        const float *many = given == 3 ? im_floats(im, kinds[given], &n) : NULL;
        im->out[0] = given == 2 ? from_floats(im, &one, 1, 0)
                     : many     ? from_floats(im, many, n, 1)
                                : NULL;
    } else if (given >= 6) {
        const char *one = given == 6 ? im_text(im, kinds[given], "") : NULL, **many = given == 7 ? im_texts(im, kinds[given], &n) : NULL;
        im->out[0] = one ? im_strings(im, &one, 1, 0) : many ? im_strings(im, many, n, 1) : NULL;
    } else {
        int64_t one = given == 4 ? im_int(im, kinds[given], 0) : 0;
        const int64_t *many = given == 5 ? im_ints(im, kinds[given], &n) : NULL;
        im->out[0] = given == 4 ? from_ints(im, &one, 1, 0)
                     : many     ? from_ints(im, many, n, 1)
                                : NULL;
    }
}

/* --- shapes as data --- */

static dlc_value *sizes_as_data(dlc_import *im, const dlc_expr *dims, uint32_t n)
{
    int64_t known[DLC_MAX_RANK];
    uint32_t k = 0;
    while (k < n && im_is_const(im, dims[k], &known[k]))
        k++;
    if (k == n)
        return from_ints(im, known, n, 1);
    return f_node(im, DLC_OP_SYMBOLS, NULL, 0, F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, dims, n)));
}

void import_shape(dlc_import *im)
{
    const dlc_value *x = im_in(im, 0);
    int64_t rank = im_rank(x), start = 0, end = rank;
    if (im->opset >= 15) {
        start = im_int(im, "start", 0);
        end = im_int(im, "end", rank);
    }
    start = start < -rank ? 0 : start < 0 ? start + rank : start > rank ? rank : start;
    end = end < -rank ? 0 : end < 0 ? end + rank : end > rank ? rank : end;
    im->out[0] = sizes_as_data(im, x->type.dims + start, end > start ? (uint32_t)(end - start) : 0);
}

void import_size(dlc_import *im)
{
    const dlc_value *x = im_in(im, 0);
    im->out[0] = f_dim(im, DLC_I64, im_product(im, x->type.dims, im_rank(x)));
}

/* --- from sizes --- */

void import_constant_of_shape(dlc_import *im)
{
    uint32_t n;
    dlc_value *fill =
        im_has(im, "value") ? im_tensor_attribute(im, "value") : f_scalar(im, DLC_F32, 0);
    const dlc_expr *sizes = im_elements(im, im_in(im, 0), 0, INT32_MAX, &n);
    int64_t count, size;
    if (!sizes || !fill)
        return;
    if (!dlc_type_elems(im->pool, &fill->type, &count) || count != 1)
        im_fail(im, DLC_INVALID, "attribute 'value' has %" PRId64 " elements; one is wanted",
                count);
    if (n > DLC_MAX_RANK)
        im_fail(im, DLC_UNSUPPORTED,
                "the shape has %" PRIu32 " dimensions; at most %d are supported", n, DLC_MAX_RANK);
    for (uint32_t i = 0; i < n && im_ok(im); i++) {
        if (im_is_const(im, sizes[i], &size) && size < 0)
            im_fail(im, DLC_INVALID, "shape[%" PRIu32 "] is %" PRId64, i, size);
    }
    if (im_ok(im))
        im->out[0] = f_expand(im, f_reshape(im, fill, NULL, 0), sizes, n);
}

void import_eye_like(dlc_import *im)
{
    const dlc_value *x = im_in(im, 0);
    int64_t k = im_int(im, "k", 0);
    dlc_dtype dtype = im_has(im, "dtype")
                          ? im_dtype(im, im_int(im, "dtype", 0), "attribute 'dtype'")
                          : x->type.dtype;
    if (im_rank(x) != 2)
        im_fail(im, DLC_INVALID, "the input has rank %" PRIu32 "; a matrix is wanted", im_rank(x));
    else if (dtype != DLC_NONE)
        im->out[0] =
            f_node(im, DLC_OP_EYE, NULL, 0,
                   F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, x->type.dims, 2),
                           dlc_attr_int(DLC_ATTR_AXIS, k), dlc_attr_int(DLC_ATTR_DTYPE, dtype)));
}

/* --- Range: max(0, ceil((limit - start) / delta)) elements --- */

/* A scalar of the three; its rank may be 1. */
static dlc_value *range_scalar(dlc_import *im, uint32_t i)
{
    dlc_value *value = im_in(im, i);
    int64_t count;
    if (dlc_type_elems(im->pool, &value->type, &count) && count == 1)
        return f_reshape(im, value, NULL, 0);
    im_fail(im, DLC_INVALID, "input %" PRIu32 " is no scalar", i);
    return NULL;
}

static dlc_expr count_floats(dlc_import *im, dlc_dtype dtype, const double *in)
{
    double n = dtype == DLC_F64 ? ceil((in[1] - in[0]) / in[2])
                                : (double)ceilf(((float)in[1] - (float)in[0]) / (float)in[2]);
    if (isfinite(n) && n <= (double)INT32_MAX)
        return im_i64(im, n > 0 ? (int64_t)n : 0);
    im_fail(im, DLC_INVALID, "from %g to %g by %g is no finite range", in[0], in[1], in[2]);
    return 0;
}

static dlc_expr count_ints(dlc_import *im, dlc_expr start, dlc_expr limit, dlc_expr delta)
{
    dlc_pool *pool = im->pool;
    dlc_expr zero = im_i64(im, 0), is_up = dlc_lt(pool, zero, delta);
    int64_t known, from, to, unused;
    if (im_is_const(im, delta, &known) && known == 0) {
        im_fail(im, DLC_INVALID, "delta is 0");
        return 0;
    }
    if (im_is_const(im, start, &from) && im_is_const(im, limit, &to) &&
        __builtin_sub_overflow(to, from, &unused)) {
        im_fail(im, DLC_INVALID, "from %" PRId64 " to %" PRId64 " are more than 2^63 steps", from,
                to);
        return 0;
    }
    dlc_graph_require(im->graph, dlc_expr2(pool, DLC_EXPR_NE, delta, zero), "node '%s': delta is 0",
                      im->origin->name);
    dlc_expr span =
        dlc_select(pool, is_up, dlc_sub(pool, limit, start), dlc_sub(pool, start, limit));
    dlc_expr step = dlc_select(pool, is_up, delta, dlc_sub(pool, zero, delta));
    dlc_expr n = dlc_floordiv(pool, dlc_addi(pool, dlc_add(pool, span, step), -1), step);
    return im_size(im, dlc_max(pool, n, zero));
}

/* Of data: the count is computed in the graph and bound when the run knows it. */
static dlc_expr count_at_run_time(dlc_import *im, dlc_value *const *in)
{
    dlc_value *n = f_unary(im, DLC_OP_CEIL, f_div(im, f_sub(im, in[1], in[0]), in[2]));
    n = f_cast(im, f_max(im, n, f_like(im, n, 0)), DLC_I64);
    uint32_t one;
    const dlc_expr *elements = n ? im_elements(im, n, 0, INT32_MAX, &one) : NULL;
    return elements ? elements[0] : 0;
}

static dlc_expr range_count(dlc_import *im, dlc_value **in)
{
    double values[3];
    dlc_dtype dtype = in[0]->type.dtype;
    if (dlc_is_float(dtype)) {
        int is_known = 1;
        for (int i = 0; i < 3; i++)
            is_known = is_known && im_const_scalar(im, in[i], &values[i]);
        return is_known ? count_floats(im, dtype, values) : count_at_run_time(im, in);
    }
    const dlc_expr *elements[3];
    for (int i = 0; i < 3; i++) {
        uint32_t one;
        dlc_value *wide = f_cast(im, in[i], DLC_I64);
        elements[i] = wide ? im_elements(im, wide, INT64_MIN, INT64_MAX, &one) : NULL;
        if (!elements[i])
            return 0;
    }
    return count_ints(im, elements[0][0], elements[1][0], elements[2][0]);
}

void import_range(dlc_import *im)
{
    int64_t stash = im->opset >= 27 ? im_int(im, "stash_type", 1) : 0;
    dlc_value *in[3];
    dlc_dtype dtype = im_in(im, 0)->type.dtype;
    int is_half = dtype == DLC_F16 || dtype == DLC_BF16;
    for (uint32_t i = 0; i < 3; i++) {
        in[i] = range_scalar(im, i);
        if (in[i] && in[i]->type.dtype != dtype)
            im_fail(im, DLC_INVALID, "start, limit and delta differ in dtype");
        if (is_half && stash == 1)
            in[i] = f_cast(im, in[i], DLC_F32);
        if (!in[i])
            return;
    }
    dlc_expr n = im_ok(im) ? range_count(im, in) : 0;
    if (n)
        im->out[0] = f_cast(im,
                            f_node(im, DLC_OP_RANGE, F_IN(in[0], in[2]),
                                   F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, &n, 1))),
                            dtype);
}

/* Reductions. Axes are an attribute up to opset 12 (ReduceSum) or 17 (the others), then an input.
 */
#include "frontend/import.h"

#include <inttypes.h>

typedef struct {
    im_axis_list axes;
    uint8_t known[DLC_MAX_RANK];
    int keepdims;
} reduction;

static void take_all(dlc_import *im, uint32_t rank, im_axis_list *axes)
{
    *axes = (im_axis_list){.n = rank, .is_known = 1};
    for (uint32_t i = 0; i < rank; i++)
        axes->at[i] = im_i64(im, i);
}

static int read_attribute(dlc_import *im, uint32_t rank, im_axis_list *axes)
{
    uint32_t n = 0;
    uint8_t sorted[DLC_MAX_RANK];
    const int64_t *given = im_ints(im, "axes", &n);
    if (im_in(im, 1)) {
        im_fail(im, DLC_INVALID, "axes are an attribute in opset %" PRId64 ", not an input",
                im->opset);
        return 0;
    }
    *axes = (im_axis_list){.n = n, .is_known = 1};
    if (!im_axes(im, given, n, rank, sorted))
        return 0;
    for (uint32_t k = 0; k < n; k++)
        axes->at[k] = im_i64(im, sorted[k]);
    return 1;
}

/* False when reported. Without axes: all of them, or none when noop_with_empty_axes says so. */
static int read_reduction(dlc_import *im, int axes_input_since, reduction *r)
{
    uint32_t rank = im_rank(im_in(im, 0));
    int is_input = im->opset >= axes_input_since;
    int64_t noop = is_input ? im_int(im, "noop_with_empty_axes", 0) : 0;
    r->keepdims = im_int(im, "keepdims", 1) != 0;
    r->axes = (im_axis_list){.is_known = 1};
    if (!is_input && !read_attribute(im, rank, &r->axes))
        return 0;
    if (is_input && im_in(im, 1) && !im_axis_input(im, im_in(im, 1), rank, &r->axes))
        return 0;
    if ((!r->axes.n && !noop) || (r->axes.n == rank && !r->axes.is_known))
        take_all(im, rank, &r->axes);
    (void)im_axes_of(im, &r->axes, r->known);
    return 1;
}

/* m + log(sum(exp(x - m))), with m = 0 where the maximum is infinite or the set empty, so that inf
 * - inf never arises. Dimensions are kept. */
static dlc_value *log_sum_exp(dlc_import *im, dlc_value *x, const uint8_t *axes, uint32_t n)
{
    dlc_value *top = f_reduce(im, DLC_OP_REDUCE_MAX, x, axes, n, 1);
    dlc_value *m = f_where(im, f_unary(im, DLC_OP_IS_INF, top), f_like(im, top, 0), top);
    dlc_value *terms = f_unary(im, DLC_OP_EXP, f_sub(im, x, m));
    dlc_value *sum = f_reduce(im, DLC_OP_REDUCE_SUM, terms, axes, n, 1);
    return f_add(im, f_unary(im, DLC_OP_LOG, sum), m);
}

/* An operator that reduces, or LOG for all of log_sum_exp. */
static dlc_value *reduce_by(dlc_import *im, dlc_opcode op, dlc_value *x, const uint8_t *axes,
                            uint32_t n)
{
    return op == DLC_OP_LOG ? log_sum_exp(im, x, axes, n) : f_reduce(im, op, x, axes, n, 1);
}

/* Along axes of the run, one after the other, each in the middle of three dimensions. */
static dlc_value *reduce_kept(dlc_import *im, const reduction *r, dlc_opcode op, dlc_value *x)
{
    static const uint8_t middle[1] = {1};
    if (r->axes.is_known)
        return reduce_by(im, op, x, r->known, r->axes.n);
    for (uint32_t k = 0; k < r->axes.n && x; k++) {
        const im_axis_list one = {.at = {r->axes.at[k]}, .n = 1};
        dlc_expr dims[DLC_MAX_RANK];
        im_axes_kept(im, &one, x->type.dims, im_rank(x), dims);
        x = f_reshape(im, reduce_by(im, op, im_around_axis(im, x, one.at[0]), middle, 1), dims,
                      im_rank(x));
    }
    return x;
}

/* A result that kept its reduced dimensions, without them where they were not asked for. */
static dlc_value *drop_reduced(dlc_import *im, const reduction *r, dlc_value *y)
{
    dlc_expr dims[DLC_MAX_RANK];
    if (!y || r->keepdims)
        return y;
    im_axes_dropped(im, &r->axes, y->type.dims, im_rank(y), dims);
    return f_reshape(im, y, dims, im_rank(y) - r->axes.n);
}

static dlc_value *reduce(dlc_import *im, const reduction *r, dlc_opcode op, dlc_value *x)
{
    if (r->axes.is_known)
        return f_reduce(im, op, x, r->known, r->axes.n, r->keepdims);
    return drop_reduced(im, r, reduce_kept(im, r, op, x));
}

void import_reduce(dlc_import *im)
{
    reduction r = {0};
    if (read_reduction(im, 18, &r))
        im->out[0] = reduce(im, &r, (dlc_opcode)im->row->argument, im_in(im, 0));
}

void import_reduce_sum(dlc_import *im)
{
    reduction r = {0};
    if (read_reduction(im, 13, &r))
        im->out[0] = reduce(im, &r, DLC_OP_REDUCE_SUM, im_in(im, 0));
}

void import_reduce_l1(dlc_import *im)
{
    reduction r = {0};
    if (read_reduction(im, 18, &r))
        im->out[0] = reduce(im, &r, DLC_OP_REDUCE_SUM, f_unary(im, DLC_OP_ABS, im_in(im, 0)));
}

static dlc_value *sum_of_squares(dlc_import *im, const reduction *r, dlc_value *x)
{
    return reduce(im, r, DLC_OP_REDUCE_SUM, f_mul(im, x, x));
}

void import_reduce_sum_square(dlc_import *im)
{
    reduction r = {0};
    if (read_reduction(im, 18, &r))
        im->out[0] = sum_of_squares(im, &r, im_in(im, 0));
}

/* A function of floats; integers go by way of f64 and come back truncated. */
static dlc_value *of_float(dlc_import *im, dlc_opcode op, dlc_value *x)
{
    if (!x || dlc_is_float(x->type.dtype))
        return f_unary(im, op, x);
    return f_cast(im, f_unary(im, op, f_cast(im, x, DLC_F64)), x->type.dtype);
}

void import_reduce_l2(dlc_import *im)
{
    reduction r = {0};
    if (read_reduction(im, 18, &r))
        im->out[0] = of_float(im, DLC_OP_SQRT, sum_of_squares(im, &r, im_in(im, 0)));
}

void import_reduce_log_sum(dlc_import *im)
{
    reduction r = {0};
    if (read_reduction(im, 18, &r))
        im->out[0] = of_float(im, DLC_OP_LOG, reduce(im, &r, DLC_OP_REDUCE_SUM, im_in(im, 0)));
}

void import_reduce_log_sum_exp(dlc_import *im)
{
    reduction r = {0};
    if (!read_reduction(im, 18, &r))
        return;
    dlc_dtype dtype = im_in(im, 0)->type.dtype;
    dlc_value *x = dlc_is_float(dtype) ? im_in(im, 0) : f_cast(im, im_in(im, 0), DLC_F64);
    if (r.axes.n)
        x = drop_reduced(im, &r, reduce_kept(im, &r, DLC_OP_LOG, x));
    im->out[0] = f_cast(im, x, dtype); /* of nothing: log(exp(x)) */
}

void import_arg_reduce(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t last = im->opset >= 12 ? im_int(im, "select_last_index", 0) : 0;
    int64_t keepdims = im_int(im, "keepdims", 1);
    int axis = im_axis(im, im_int(im, "axis", 0), im_rank(x));
    if (axis >= 0)
        im->out[0] = f_node(im, (dlc_opcode)im->row->argument, F_IN(x),
                            F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis),
                                    dlc_attr_int(DLC_ATTR_KEEPDIMS, keepdims != 0),
                                    dlc_attr_int(DLC_ATTR_LAST, last != 0)));
}

/* Along an axis of the run: the middle one of three dimensions. */
void import_cum_sum(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t exclusive = im_int(im, "exclusive", 0), reverse = im_int(im, "reverse", 0), axis = 1;
    im_axis_list axes;
    if (!im_axis_input(im, im_in(im, 1), im_rank(x), &axes))
        return;
    if (axes.n != 1) {
        im_fail(im, DLC_INVALID, "the axis has %" PRIu32 " elements; one is wanted", axes.n);
        return;
    }
    if (!im_is_const(im, axes.at[0], &axis))
        x = im_around_axis(im, x, axes.at[0]);
    im->out[0] = f_reshape(im,
                           f_node(im, (dlc_opcode)im->row->argument, F_IN(x),
                                  F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis),
                                          dlc_attr_int(DLC_ATTR_EXCLUSIVE, exclusive != 0),
                                          dlc_attr_int(DLC_ATTR_REVERSE, reverse != 0))),
                           im_in(im, 0)->type.dims, im_rank(im_in(im, 0)));
}

/* Reductions. Axes are an attribute up to opset 12 (ReduceSum) or 17 (the others), then an input.
 */
#include "frontend/import.h"

#include <inttypes.h>

typedef struct {
    uint8_t axes[DLC_MAX_RANK];
    uint32_t naxes;
    int keepdims;
} reduction;

/* False when reported. Without axes: all of them, or none when noop_with_empty_axes says so. */
static int read_reduction(dlc_import *im, int axes_input_since, reduction *r)
{
    dlc_value *x = im_in(im, 0), *input = im_in(im, 1);
    uint32_t n = 0;
    int is_input = im->opset >= axes_input_since;
    int64_t noop = is_input ? im_int(im, "noop_with_empty_axes", 0) : 0;
    r->keepdims = im_int(im, "keepdims", 1) != 0;
    const int64_t *axes = is_input ? NULL : im_ints(im, "axes", &n);
    if (!is_input && input) {
        im_fail(im, DLC_INVALID, "axes are an attribute in opset %" PRId64 ", not an input",
                im->opset);
        return 0;
    }
    if (input && !(axes = im_const_ints(im, input, "axes", &n)))
        return 0;
    r->naxes = n;
    if (n)
        return im_axes(im, axes, n, im_rank(x), r->axes);
    for (uint32_t i = 0; i < im_rank(x) && !noop; i++)
        r->axes[r->naxes++] = (uint8_t)i;
    return 1;
}

static dlc_value *reduce(dlc_import *im, const reduction *r, dlc_opcode op, dlc_value *x)
{
    return f_reduce(im, op, x, r->axes, r->naxes, r->keepdims);
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

/* m + log(sum(exp(x - m))), with m = 0 where the maximum is infinite or the set empty, so that inf
 * - inf never arises. */
void import_reduce_log_sum_exp(dlc_import *im)
{
    reduction r = {0};
    if (!read_reduction(im, 18, &r))
        return;
    dlc_dtype dtype = im_in(im, 0)->type.dtype;
    dlc_value *x = dlc_is_float(dtype) ? im_in(im, 0) : f_cast(im, im_in(im, 0), DLC_F64);
    reduction kept = r;
    kept.keepdims = 1;
    if (!r.naxes) {
        im->out[0] = im_in(im, 0); /* log(exp(x)) */
        return;
    }
    dlc_value *top = reduce(im, &kept, DLC_OP_REDUCE_MAX, x);
    dlc_value *m = f_where(im, f_unary(im, DLC_OP_IS_INF, top), f_like(im, top, 0), top);
    dlc_value *sum = reduce(im, &kept, DLC_OP_REDUCE_SUM, f_unary(im, DLC_OP_EXP, f_sub(im, x, m)));
    dlc_value *y = f_cast(im, f_add(im, f_unary(im, DLC_OP_LOG, sum), m), dtype);
    for (uint32_t i = r.naxes; i-- > 0 && !r.keepdims;)
        y = f_drop_axis(im, y, r.axes[i]);
    im->out[0] = y;
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

void import_cum_sum(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t exclusive = im_int(im, "exclusive", 0), reverse = im_int(im, "reverse", 0);
    uint32_t n;
    const int64_t *given = im_const_ints(im, im_in(im, 1), "the axis", &n);
    if (!given)
        return;
    if (n != 1) {
        im_fail(im, DLC_INVALID, "the axis has %" PRIu32 " elements; one is wanted", n);
        return;
    }
    int axis = im_axis(im, given[0], im_rank(x));
    if (axis >= 0)
        im->out[0] = f_node(im, DLC_OP_CUMSUM, F_IN(x),
                            F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis),
                                    dlc_attr_int(DLC_ATTR_EXCLUSIVE, exclusive != 0),
                                    dlc_attr_int(DLC_ATTR_REVERSE, reverse != 0)));
}

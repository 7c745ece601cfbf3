/* Det by Gaussian elimination, and the steps of optimisers (ai.onnx.preview.training). */
#include "frontend/import.h"

#include <inttypes.h>
#include <string.h>

/* --- Det --- */

enum { LARGEST_DET = 64 }; /* elimination is written out, step by step */

/*
 * One step on x [b, n, n]: the row with the largest element in the first column changes places with
 * the first one, and is subtracted from the others so that their first elements vanish. *det is
 * multiplied by that element, with its sign turned where rows changed places; what remains is
 * [b, n - 1, n - 1].
 */
static dlc_value *eliminate(dlc_import *im, dlc_value *x, int64_t n, dlc_value **det)
{
    static const uint8_t rows[1] = {1};
    dlc_expr zero = im_i64(im, 0), one = im_i64(im, 1), rest = im_i64(im, n - 1);
    const dlc_expr batch = x->type.dims[0], row[3] = {batch, one, im_i64(im, n)};
    dlc_value *column = f_slice(im, x, 2, zero, one);
    dlc_value *at = f_node(im, DLC_OP_ARGMAX, F_IN(f_unary(im, DLC_OP_ABS, column)),
                           F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, rows[0]),
                                   dlc_attr_int(DLC_ATTR_KEEPDIMS, 1)));
    dlc_value *pivot_row = f_node(im, DLC_OP_GATHER_ELEMENTS, F_IN(x, f_expand(im, at, row, 3)),
                                  F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 1)));
    dlc_value *index = f_insert_axis(im, f_iota(im, DLC_I64, im_i64(im, n)), 1);
    dlc_value *others = f_where(im, f_binary(im, DLC_OP_EQ, index, at),
                                f_slice(im, x, 1, zero, one), x);
    dlc_value *pivot = pivot_row ? f_slice(im, pivot_row, 2, zero, one) : NULL;
    if (!pivot || !others)
        return NULL;
    dlc_value *is_first = f_binary(im, DLC_OP_EQ, at, f_like(im, at, 0));
    *det = f_mul(im, *det, f_where(im, is_first, pivot, f_unary(im, DLC_OP_NEG, pivot)));
    dlc_value *none = f_like(im, pivot, 0);
    dlc_value *by = f_where(im, f_binary(im, DLC_OP_EQ, pivot, none), f_like(im, pivot, 1), pivot);
    others = f_slice(im, others, 1, one, rest);
    dlc_value *factor = f_div(im, f_slice(im, others, 2, zero, one), by);
    return f_sub(im, f_slice(im, others, 2, one, rest),
                 f_mul(im, factor, f_slice(im, pivot_row, 2, one, rest)));
}

void import_det(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    uint32_t rank = im_rank(x);
    int64_t n = -1;
    if (rank < 2 || !im_is_const(im, x->type.dims[rank - 1], &n) ||
        !im_same_dim(im, x->type.dims[rank - 2], x->type.dims[rank - 1], "rows and columns")) {
        if (im_ok(im))
            im_fail(im, DLC_UNSUPPORTED, "the matrices' size must be known");
        return;
    }
    if (n > LARGEST_DET) {
        im_fail(im, DLC_UNSUPPORTED, "matrices of %" PRId64 " rows; up to %d are supported", n,
                LARGEST_DET);
        return;
    }
    dlc_dtype dtype = x->type.dtype, wide = dtype == DLC_F64 ? DLC_F64 : DLC_F32;
    const dlc_expr batch = im_product(im, x->type.dims, rank - 2),
                   dims[3] = {batch, im_i64(im, n), im_i64(im, n)}, ones[3] = {batch, im_i64(im, 1),
                                                                             im_i64(im, 1)};
    dlc_value *rest = f_reshape(im, f_cast(im, x, wide), dims, 3);
    dlc_value *det = f_expand(im, f_scalar(im, wide, 1), ones, 3);
    for (int64_t k = n; k > 1 && rest; k--)
        rest = eliminate(im, rest, k, &det);
    if (n > 0)
        det = f_mul(im, det, rest);
    im->out[0] = f_cast(im, f_reshape(im, det, x->type.dims, rank - 2), dtype);
}

/* --- optimisers: rate, step count, then as many x, gradients and states as there are tensors --- */

typedef struct {
    dlc_value *rate, *is_started; /* the count is above 0 */
    dlc_value *count;
    uint32_t n;
} training;

static int read_training(dlc_import *im, uint32_t kinds, training *t)
{
    *t = (training){.rate = f_reshape(im, im_in(im, 0), NULL, 0), .n = (im->nin - 2) / kinds};
    if (im->nin != 2 + kinds * t->n || im->nout != (kinds - 1) * t->n) {
        im_fail(im, DLC_INVALID, "has %" PRIu32 " inputs and %" PRIu32 " outputs; 2 + %" PRIu32
                " and %" PRIu32 " of each tensor are wanted", im->nin, im->nout, kinds, kinds - 1);
        return 0;
    }
    t->count = f_reshape(im, im_in(im, 1), NULL, 0);
    t->is_started = t->count ? f_binary(im, DLC_OP_LT, f_like(im, t->count, 0), t->count) : NULL;
    return t->is_started != NULL;
}

static dlc_value *times(dlc_import *im, dlc_value *x, double factor)
{
    return x ? f_mul(im, x, f_like(im, x, factor)) : NULL;
}

static dlc_value *plus(dlc_import *im, dlc_value *x, double term)
{
    return x ? f_add(im, x, f_like(im, x, term)) : NULL;
}

/* The gradient, with that of norm / 2 |x|^2. */
static dlc_value *regularised(dlc_import *im, const training *t, uint32_t i, double norm)
{
    return f_add(im, times(im, im_in(im, 2 + i), norm), im_in(im, 2 + t->n + i));
}

void import_adagrad(dlc_import *im)
{
    training t;
    double decay = im_float(im, "decay_factor", 0), epsilon = im_float(im, "epsilon", 1e-6f),
           norm = im_float(im, "norm_coefficient", 0);
    if (!read_training(im, 3, &t))
        return;
    for (uint32_t i = 0; i < t.n; i++) {
        dlc_value *x = im_in(im, 2 + i), *g = regularised(im, &t, i, norm);
        dlc_value *count = f_cast(im, t.count, t.rate->type.dtype);
        dlc_value *rate = f_div(im, t.rate, plus(im, times(im, count, decay), 1));
        dlc_value *h = f_add(im, im_in(im, 2 + 2 * t.n + i), f_mul(im, g, g));
        dlc_value *scale = plus(im, f_unary(im, DLC_OP_SQRT, h), epsilon);
        im->out[i] = f_sub(im, x, f_div(im, f_mul(im, f_cast(im, rate, x->type.dtype), g), scale));
        im->out[t.n + i] = h;
    }
}

/* rate * sqrt(1 - beta^t) / (1 - alpha^t) */
static dlc_value *adjusted_rate(dlc_import *im, const training *t, double alpha, double beta)
{
    dlc_dtype dtype = t->rate->type.dtype;
    dlc_value *count = f_cast(im, t->count, dtype), *falls[2];
    const double bases[2] = {alpha, beta};
    for (int i = 0; i < 2; i++)
        falls[i] = f_sub(im, f_scalar(im, dtype, 1),
                         f_binary(im, DLC_OP_POW, f_scalar(im, dtype, bases[i]), count));
    dlc_value *rate = f_div(im, f_mul(im, t->rate, f_unary(im, DLC_OP_SQRT, falls[1])), falls[0]);
    return f_where(im, t->is_started, rate, t->rate);
}

void import_adam(dlc_import *im)
{
    training t;
    double alpha = im_float(im, "alpha", 0.9f), beta = im_float(im, "beta", 0.999f),
           epsilon = im_float(im, "epsilon", 1e-6f), norm = im_float(im, "norm_coefficient", 0),
           post = im_float(im, "norm_coefficient_post", 0);
    if (!read_training(im, 4, &t))
        return;
    dlc_value *rate = adjusted_rate(im, &t, alpha, beta);
    for (uint32_t i = 0; i < t.n && rate; i++) {
        dlc_value *x = im_in(im, 2 + i), *g = regularised(im, &t, i, norm);
        dlc_value *v = f_add(im, times(im, im_in(im, 2 + 2 * t.n + i), alpha),
                             times(im, g, 1 - alpha));
        dlc_value *h = f_add(im, times(im, im_in(im, 2 + 3 * t.n + i), beta),
                             times(im, f_mul(im, g, g), 1 - beta));
        dlc_value *scale = plus(im, f_unary(im, DLC_OP_SQRT, h), epsilon);
        dlc_value *step = f_mul(im, f_cast(im, rate, x->type.dtype), f_div(im, v, scale));
        im->out[i] = times(im, f_sub(im, x, step), 1 - post);
        im->out[t.n + i] = v;
        im->out[2 * t.n + i] = h;
    }
}

void import_momentum(dlc_import *im)
{
    training t;
    double alpha = im_float(im, "alpha", 0), beta = im_float(im, "beta", 0),
           norm = im_float(im, "norm_coefficient", 0);
    const char *mode = im_choice(im, "mode", "standard", "standard|nesterov");
    if (!mode || !read_training(im, 3, &t))
        return;
    for (uint32_t i = 0; i < t.n; i++) {
        dlc_value *x = im_in(im, 2 + i), *g = regularised(im, &t, i, norm);
        dlc_value *weight = g ? f_where(im, t.is_started, f_like(im, g, beta), f_like(im, g, 1)) : NULL;
        dlc_value *v = f_add(im, times(im, im_in(im, 2 + 2 * t.n + i), alpha), f_mul(im, weight, g));
        dlc_value *step = mode[0] == 'n' ? f_add(im, g, times(im, v, alpha)) : v;
        im->out[i] = f_sub(im, x, f_mul(im, f_cast(im, t.rate, x->type.dtype), step));
        im->out[t.n + i] = v;
    }
}

/*
 * Softmax's relatives and normalisations, composed of reductions and pointwise operators. Variance
 * is the mean of squared deviations, never E[x^2] - E[x]^2, which loses everything at a large mean.
 * f16 and bf16 are normalised in f32.
 */
#include "frontend/import.h"

#include <inttypes.h>

/* --- Softmax, LogSoftmax, Hardmax: below opset 13 over all dimensions from `axis` on, flattened
 * --- */

static dlc_value *softmax(dlc_import *im, dlc_value *x, uint32_t axis)
{
    return f_softmax(im, x, axis);
}

static dlc_value *log_softmax(dlc_import *im, dlc_value *x, uint32_t axis)
{
    const uint8_t axes[1] = {(uint8_t)axis};
    dlc_value *t = f_sub(im, x, f_reduce(im, DLC_OP_REDUCE_MAX, x, axes, 1, 1));
    dlc_value *sum = f_reduce(im, DLC_OP_REDUCE_SUM, f_unary(im, DLC_OP_EXP, t), axes, 1, 1);
    return f_sub(im, t, f_unary(im, DLC_OP_LOG, sum));
}

/* 1 at the first maximum, 0 elsewhere */
static dlc_value *hardmax(dlc_import *im, dlc_value *x, uint32_t axis)
{
    dlc_value *best =
        f_node(im, DLC_OP_ARGMAX, F_IN(x),
               F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis), dlc_attr_int(DLC_ATTR_KEEPDIMS, 1)));
    dlc_value *index = f_channel(im, f_iota(im, DLC_I64, x->type.dims[axis]), im_rank(x), axis);
    return f_cast(im, f_binary(im, DLC_OP_EQ, index, best), x->type.dtype);
}

static void over_axis(dlc_import *im,
                      dlc_value *(*apply)(dlc_import *im, dlc_value *x, uint32_t axis))
{
    dlc_value *x = im_in(im, 0);
    int axis = im_axis(im, im_int(im, "axis", im->opset < 13 ? 1 : -1), im_rank(x));
    if (axis < 0)
        return;
    if (im->opset >= 13 || (uint32_t)axis + 1 == im_rank(x)) {
        im->out[0] = apply(im, x, (uint32_t)axis);
        return;
    }
    const dlc_expr *d = x->type.dims;
    const dlc_expr flat[2] = {im_product(im, d, (uint32_t)axis),
                              im_product(im, d + axis, im_rank(x) - (uint32_t)axis)};
    dlc_value *matrix = f_reshape(im, x, flat, 2);
    im->out[0] = matrix ? f_reshape(im, apply(im, matrix, 1), d, im_rank(x)) : NULL;
}

void import_softmax(dlc_import *im)
{
    over_axis(im, softmax);
}

void import_log_softmax(dlc_import *im)
{
    over_axis(im, log_softmax);
}

void import_hardmax(dlc_import *im)
{
    over_axis(im, hardmax);
}

/* --- the common part: (x - mean) / sqrt(variance + epsilon) --- */

static dlc_dtype wide(dlc_dtype dtype)
{
    return dtype == DLC_F16 || dtype == DLC_BF16 ? DLC_F32 : dtype;
}

typedef struct {
    dlc_value *y, *mean, *deviation; /* in the wide type; deviation = sqrt(variance + epsilon) */
} normalised;

static normalised normalise(dlc_import *im, dlc_value *x, const uint8_t *axes, uint32_t naxes,
                            double epsilon)
{
    normalised n;
    x = f_cast(im, x, wide(x->type.dtype));
    n.mean = f_reduce(im, DLC_OP_REDUCE_MEAN, x, axes, naxes, 1);
    dlc_value *d = f_sub(im, x, n.mean);
    dlc_value *variance = f_reduce(im, DLC_OP_REDUCE_MEAN, f_mul(im, d, d), axes, naxes, 1);
    n.deviation = f_unary(im, DLC_OP_SQRT, f_add(im, variance, f_like(im, x, epsilon)));
    n.y = f_div(im, d, n.deviation);
    return n;
}

static uint32_t axes_from(uint32_t first, uint32_t rank, uint8_t *axes)
{
    for (uint32_t i = first; i < rank; i++)
        axes[i - first] = (uint8_t)i;
    return rank - first;
}

/* The precision of stage one; f32 and more is always what we do, so only odd requests are refused.
 */
static void check_stash(dlc_import *im)
{
    int64_t stash = im_int(im, "stash_type", 1);
    if (stash != 1 && stash != 10 && stash != 11 && stash != 16)
        im_fail(im, DLC_INVALID,
                "stash_type is %" PRId64
                "; 1 (FLOAT), 10 (FLOAT16), 11 (DOUBLE), 16 (BFLOAT16) are possible",
                stash);
}

static dlc_dtype stash_dtype(dlc_import *im)
{
    int64_t stash = im_int(im, "stash_type", 1);
    return stash == 10 ? DLC_F16 : stash == 11 ? DLC_F64 : stash == 16 ? DLC_BF16 : DLC_F32;
}

void import_layer_normalization(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *bias = im_in(im, 2);
    uint8_t axes[DLC_MAX_RANK];
    double epsilon = im_float(im, "epsilon", 1e-5f);
    check_stash(im);
    int axis = im_axis(im, im_int(im, "axis", -1), im_rank(x));
    if (axis < 0 || !im_ok(im))
        return;
    uint32_t naxes = axes_from((uint32_t)axis, im_rank(x), axes);
    normalised n = normalise(im, x, axes, naxes, epsilon);
    dlc_value *y = f_mul(im, f_cast(im, n.y, x->type.dtype), im_in(im, 1));
    im->out[0] = bias ? f_add(im, y, bias) : y;
    im_keeps_shape(im, im->out[0], x);
    if (im_wants(im, 1))
        im->out[1] = f_cast(im, n.mean, stash_dtype(im));
    if (im_wants(im, 2))
        im->out[2] = f_cast(im, f_unary(im, DLC_OP_RECIPROCAL, n.deviation), stash_dtype(im));
}

void import_rms_normalization(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    uint8_t axes[DLC_MAX_RANK];
    double epsilon = im_float(im, "epsilon", 1e-5f);
    check_stash(im);
    int axis = im_axis(im, im_int(im, "axis", -1), im_rank(x));
    if (axis < 0 || !im_ok(im))
        return;
    uint32_t naxes = axes_from((uint32_t)axis, im_rank(x), axes);
    dlc_value *t = f_cast(im, x, wide(x->type.dtype));
    dlc_value *mean = f_reduce(im, DLC_OP_REDUCE_MEAN, f_mul(im, t, t), axes, naxes, 1);
    dlc_value *y = f_div(im, t, f_unary(im, DLC_OP_SQRT, f_add(im, mean, f_like(im, t, epsilon))));
    im->out[0] = f_mul(im, f_cast(im, y, x->type.dtype), im_in(im, 1));
    im_keeps_shape(im, im->out[0], x);
}

static int wants_channels(dlc_import *im, const dlc_value *x, uint32_t least)
{
    if (im_rank(x) < least)
        im_fail(im, DLC_INVALID, "the input has rank %" PRIu32 "; at least %" PRIu32 " is wanted",
                im_rank(x), least);
    return im_ok(im);
}

void import_instance_normalization(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    uint8_t axes[DLC_MAX_RANK];
    double epsilon = im_float(im, "epsilon", 1e-5f);
    if (!wants_channels(im, x, 3))
        return;
    uint32_t rank = im_rank(x), naxes = axes_from(2, rank, axes);
    normalised n = normalise(im, x, axes, naxes, epsilon);
    dlc_value *y = f_mul(im, f_cast(im, n.y, x->type.dtype), f_channel(im, im_in(im, 1), rank, 1));
    im->out[0] = f_add(im, y, f_channel(im, im_in(im, 2), rank, 1));
    im_keeps_shape(im, im->out[0], x);
}

/* [n, c, …] as [n, groups, what is left]; scale and bias per group in opset 18, per channel
 * from 21. */
void import_group_normalization(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *scale = im_in(im, 1), *bias = im_in(im, 2);
    int64_t groups = im_int(im, "num_groups", 0);
    double epsilon = im_float(im, "epsilon", 1e-5f);
    if (im->opset >= 21)
        check_stash(im);
    if (!wants_channels(im, x, 3))
        return;
    if (groups < 1) {
        im_fail(im, DLC_INVALID, "num_groups is %" PRId64 "; at least 1 is wanted", groups);
        return;
    }
    const dlc_expr *d = x->type.dims, parts = im_i64(im, groups);
    if (!im_same_dim(im, dlc_mod(im->pool, d[1], parts), im_i64(im, 0),
                     "channels modulo num_groups"))
        return;
    dlc_expr per = im_size(im, dlc_floordiv(im->pool, d[1], parts));
    const dlc_expr grouped[3] = {d[0], parts,
                                 dlc_mul(im->pool, per, im_product(im, d + 2, im_rank(x) - 2))};
    static const uint8_t last[1] = {2};
    dlc_value *seen = f_reshape(im, x, grouped, 3);
    if (!seen)
        return;
    dlc_value *y = f_cast(im, normalise(im, seen, last, 1, epsilon).y, x->type.dtype);
    uint32_t rank = im->opset >= 21 ? im_rank(x) : 3;
    if (im->opset >= 21)
        y = f_reshape(im, y, d, im_rank(x));
    y = f_add(im, f_mul(im, y, f_channel(im, scale, rank, 1)), f_channel(im, bias, rank, 1));
    im->out[0] = f_reshape(im, y, d, im_rank(x));
}

void import_mean_variance_normalization(dlc_import *im)
{
    static const int64_t usual[3] = {0, 2, 3};
    dlc_value *x = im_in(im, 0);
    uint32_t n;
    uint8_t axes[DLC_MAX_RANK];
    const int64_t *given = im_ints(im, "axes", &n);
    if (!im_axes(im, given ? given : usual, given ? n : 3, im_rank(x), axes))
        return;
    n = given ? n : 3;
    dlc_value *t = f_cast(im, x, wide(x->type.dtype));
    dlc_value *d = f_sub(im, t, f_reduce(im, DLC_OP_REDUCE_MEAN, t, axes, n, 1));
    dlc_value *deviation =
        f_unary(im, DLC_OP_SQRT, f_reduce(im, DLC_OP_REDUCE_MEAN, f_mul(im, d, d), axes, n, 1));
    im->out[0] = f_cast(im, f_div(im, d, f_add(im, deviation, f_like(im, t, 1e-9))), x->type.dtype);
}

/* x / norm, and 0 where the norm is 0 */
void import_lp_normalization(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t p = im_int(im, "p", 2);
    int axis = im_axis(im, im_int(im, "axis", -1), im_rank(x));
    if (p != 1 && p != 2)
        im_fail(im, DLC_INVALID, "p is %" PRId64 "; 1 or 2 are possible", p);
    if (axis < 0 || !im_ok(im))
        return;
    const uint8_t axes[1] = {(uint8_t)axis};
    dlc_value *t = f_cast(im, x, wide(x->type.dtype));
    dlc_value *norm = f_reduce(im, DLC_OP_REDUCE_SUM,
                               p == 1 ? f_unary(im, DLC_OP_ABS, t) : f_mul(im, t, t), axes, 1, 1);
    if (p == 2)
        norm = f_unary(im, DLC_OP_SQRT, norm);
    dlc_value *is_zero = f_binary(im, DLC_OP_EQ, norm, f_like(im, t, 0));
    dlc_value *divisor = f_where(im, is_zero, f_like(im, t, 1), norm);
    im->out[0] = f_cast(im, f_div(im, t, divisor), x->type.dtype);
}

/* x / (bias + alpha / size * sum of squares over `size` channels)^beta; an even window leans right.
 */
void import_lrn(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    double alpha = im_float(im, "alpha", 1e-4f), beta = im_float(im, "beta", 0.75),
           bias = im_float(im, "bias", 1);
    int64_t size = im_int(im, "size", 0);
    if (size < 1 || size > INT16_MAX)
        im_fail(im, DLC_INVALID, "size is %" PRId64 "; 1 to %d are possible", size, INT16_MAX);
    if (!wants_channels(im, x, 3))
        return;
    const dlc_expr *d = x->type.dims, one = im_i64(im, 1), zero = im_i64(im, 0);
    const dlc_expr as_image[4] = {d[0], one, d[1], im_product(im, d + 2, im_rank(x) - 2)};
    const dlc_expr pads[4] = {im_i64(im, (size - 1) / 2), zero, im_i64(im, size / 2), zero};
    const int64_t kernel[2] = {size, 1};
    const dlc_attr attrs[3] = {dlc_attr_ints(im->graph, DLC_ATTR_KERNEL, kernel, 2),
                               dlc_attr_dims(DLC_ATTR_PADS, pads, 4),
                               dlc_attr_int(DLC_ATTR_COUNT_PAD, 1)};
    dlc_value *mean =
        f_node(im, DLC_OP_AVG_POOL, F_IN(f_reshape(im, f_mul(im, x, x), as_image, 4)), attrs, 3);
    dlc_value *base = f_add(im, f_mul(im, f_reshape(im, mean, d, im_rank(x)), f_like(im, x, alpha)),
                            f_like(im, x, bias));
    im->out[0] = f_div(im, x, f_binary(im, DLC_OP_POW, base, f_like(im, x, beta)));
}

/* --- BatchNormalization --- */

/* x * a + b with a = scale / sqrt(variance + epsilon), b = bias - mean * a: constants fold into two
 * vectors. */
static dlc_value *scale_and_shift(dlc_import *im, dlc_value *x, dlc_value *mean,
                                  dlc_value *variance, double epsilon)
{
    dlc_dtype dtype = x->type.dtype, work = wide(dtype);
    uint32_t rank = im_rank(x);
    variance = f_cast(im, variance, work);
    mean = f_cast(im, mean, work);
    dlc_value *a =
        f_div(im, f_cast(im, im_in(im, 1), work),
              f_unary(im, DLC_OP_SQRT, f_add(im, variance, f_scalar(im, work, epsilon))));
    dlc_value *b = f_sub(im, f_cast(im, im_in(im, 2), work), f_mul(im, mean, a));
    dlc_value *y = f_mul(im, f_cast(im, x, work), f_channel(im, a, rank, 1));
    return f_cast(im, f_add(im, y, f_channel(im, b, rank, 1)), dtype);
}

static dlc_value *running(dlc_import *im, dlc_value *old, dlc_value *batch, double momentum)
{
    return f_add(im, f_mul(im, old, f_like(im, old, momentum)),
                 f_mul(im, f_cast(im, batch, old->type.dtype), f_like(im, old, 1 - momentum)));
}

static void train(dlc_import *im, dlc_value *x, double epsilon, double momentum)
{
    uint8_t axes[DLC_MAX_RANK] = {0};
    uint32_t rank = im_rank(x);
    for (uint32_t i = 2; i < rank; i++)
        axes[i - 1] = (uint8_t)i;
    dlc_value *t = f_cast(im, x, wide(x->type.dtype));
    dlc_value *kept = f_reduce(im, DLC_OP_REDUCE_MEAN, t, axes, rank - 1, 1),
              *d = f_sub(im, t, kept);
    dlc_value *variance = f_reduce(im, DLC_OP_REDUCE_MEAN, f_mul(im, d, d), axes, rank - 1, 0);
    dlc_value *mean = f_reduce(im, DLC_OP_REDUCE_MEAN, t, axes, rank - 1, 0);
    im->out[0] = mean && variance ? scale_and_shift(im, x, mean, variance, epsilon) : NULL;
    if (im_wants(im, 1))
        im->out[1] = running(im, im_in(im, 3), mean, momentum);
    if (im_wants(im, 2))
        im->out[2] = running(im, im_in(im, 4), variance, momentum);
}

void import_batch_normalization(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    double epsilon = im_float(im, "epsilon", 1e-5f), momentum = im_float(im, "momentum", 0.9f);
    int64_t training = im->opset >= 14 ? im_int(im, "training_mode", 0) : 0;
    if (im->opset < 9)
        im_only(im, "spatial", 1, 1);
    if (!wants_channels(im, x, 2))
        return;
    if (!training && (im_wants(im, 1) || im_wants(im, 2) || im_wants(im, 3) || im_wants(im, 4)))
        im_fail(im, DLC_UNSUPPORTED, "outputs of training are asked for; inference has one output");
    else if (training)
        train(im, x, epsilon, momentum);
    else
        im->out[0] = scale_and_shift(im, x, im_in(im, 3), im_in(im, 4), epsilon);
    im_keeps_shape(im, im->out[0], x);
}

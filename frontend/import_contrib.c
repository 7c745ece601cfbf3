/*
 * Operators that ONNX Runtime's tools write (com.microsoft), as compositions: what they fused is
 * taken apart, and fused again for the target. Quantised ones go through floats, which keeps the
 * roundings of their definition.
 */
#include "frontend/import_quant.h"
#include "frontend/import_window.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- activations --- */

static dlc_value *gelu(dlc_import *im, dlc_value *x, const char *mode)
{
    return f_node(im, DLC_OP_GELU, F_IN(x), F_ATTRS(dlc_attr_text(DLC_ATTR_MODE, mode)));
}

void import_bias_gelu(dlc_import *im)
{
    im->out[0] = gelu(im, f_add(im, im_in(im, 0), im_in(im, 1)), "none");
}

void import_fast_gelu(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    im->out[0] = gelu(im, im_in(im, 1) ? f_add(im, x, im_in(im, 1)) : x, "tanh");
}

void import_quick_gelu(dlc_import *im)
{
    im->out[0] = f_node(im, DLC_OP_SWISH, F_IN(im_in(im, 0)),
                        F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, im_float(im, "alpha", 1.702f))));
}

/* The attributes `activation` and `activation_params` or `activation_alpha`, … on y. */
static dlc_value *activated(dlc_import *im, dlc_value *y)
{
    uint32_t n = 0;
    const char *kind = im_choice(im, "activation", "",
                                 "|Relu|Tanh|Sigmoid|LeakyRelu|Clip|HardSigmoid");
    const float *params = im_floats(im, "activation_params", &n);
    double alpha = params && n > 0 ? params[0] : im_float(im, "activation_alpha", 0.01f);
    double beta = params && n > 1 ? params[1] : im_float(im, "activation_beta", 0);
    (void)im_float(im, "activation_gamma", 0);
    if (!kind || !y || !*kind)
        return kind ? y : NULL;
    switch (kind[0]) {
    case 'R':
        return f_unary(im, DLC_OP_RELU, y);
    case 'T':
        return f_unary(im, DLC_OP_TANH, y);
    case 'S':
        return f_unary(im, DLC_OP_SIGMOID, y);
    case 'C':
        return f_clip(im, y, alpha, beta);
    case 'L':
        return f_node(im, DLC_OP_LEAKY_RELU, F_IN(y), F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, alpha)));
    default:
        return f_node(im, DLC_OP_HARD_SIGMOID, F_IN(y),
                      F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, alpha),
                              dlc_attr_float(DLC_ATTR_BETA, beta)));
    }
}

/* --- products --- */

static dlc_value *times(dlc_import *im, dlc_value *x, double factor)
{
    return factor == 1 || !x ? x : f_mul(im, x, f_like(im, x, factor));
}

void import_fused_mat_mul(dlc_import *im)
{
    double alpha = im_float(im, "alpha", 1);
    int64_t ta = im_int(im, "transA", 0), tb = im_int(im, "transB", 0);
    dlc_value *a = im_in(im, 0), *b = im_in(im, 1);
    if (!im_only(im, "transBatchA", 0, 0) || !im_only(im, "transBatchB", 0, 0))
        return;
    if (im_rank(a) < 2 || im_rank(b) < 2) {
        im_fail(im, DLC_UNSUPPORTED, "a vector; matrices are supported");
        return;
    }
    im->out[0] = times(im, f_matmul(im, ta ? f_swap_last(im, a) : a, tb ? f_swap_last(im, b) : b),
                       alpha);
}

void import_fused_conv(dlc_import *im)
{
    dlc_value *sum = im_in(im, 3);
    import_conv(im);
    dlc_value *y = im->out[0];
    im->out[0] = activated(im, sum && y ? f_add(im, y, sum) : y);
}

void import_fused_gemm(dlc_import *im)
{
    import_gemm(im);
    im->out[0] = activated(im, im->out[0]);
}

/* --- normalisation of a sum --- */

static dlc_value *skip_sum(dlc_import *im, dlc_value *bias)
{
    dlc_value *sum = f_add(im, im_in(im, 0), im_in(im, 1));
    return bias ? f_add(im, sum, bias) : sum;
}

/* Runs the importer of `x, scale, bias?` on what was summed. */
static void on_sum(dlc_import *im, dlc_value *sum, dlc_value *scale, dlc_value *bias,
                   void (*import)(dlc_import *im))
{
    dlc_value **in = im->in;
    uint32_t nin = im->nin;
    dlc_value *own[3] = {sum, scale, bias};
    if (!sum)
        return;
    im->in = own;
    im->nin = bias ? 3 : 2;
    import(im);
    im->in = in;
    im->nin = nin;
    if (im_wants(im, 3))
        im->out[3] = sum;
}

void import_skip_layer_normalization(dlc_import *im)
{
    if (!im_has(im, "epsilon"))
        im_fail(im, DLC_UNSUPPORTED, "attribute 'epsilon' is absent; its value is wanted");
    else
        on_sum(im, skip_sum(im, im_in(im, 4)), im_in(im, 2), im_in(im, 3),
               import_layer_normalization);
}

void import_skip_rms_normalization(dlc_import *im)
{
    if (im_wants(im, 1) || im_wants(im, 2))
        im_fail(im, DLC_UNSUPPORTED, "outputs 1 and 2 (mean and deviation) are not supported");
    else
        on_sum(im, skip_sum(im, im_in(im, 3)), im_in(im, 2), NULL, import_rms_normalization);
}

/* --- products of integers --- */

static dlc_value *to_float(dlc_import *im, dlc_value *sum, dlc_value *scale, dlc_value *bias)
{
    dlc_value *y = f_mul(im, f_cast(im, sum, DLC_F32), f_cast(im, scale, DLC_F32));
    return bias ? f_add(im, y, bias) : y;
}

void import_mat_mul_integer_to_float(dlc_import *im)
{
    dlc_value *sum =
        im_integer_matmul(im, im_in(im, 0), im_in(im, 4), im_in(im, 1), im_in(im, 5));
    dlc_value *scale = f_mul(im, im_per_row(im, im_in(im, 2)), im_as_scalar(im, im_in(im, 3)));
    im->out[0] = to_float(im, sum, scale, im_in(im, 6));
}

void import_dynamic_quantize_mat_mul(dlc_import *im)
{
    dlc_value *a, *scale, *zero;
    im_quantise_dynamically(im, im_in(im, 0), &a, &scale, &zero);
    dlc_value *sum = a ? im_integer_matmul(im, a, zero, im_in(im, 1), im_in(im, 3)) : NULL;
    im->out[0] = to_float(im, sum, f_mul(im, scale, im_as_scalar(im, im_in(im, 2))), im_in(im, 4));
}

/* alpha * a_scale * b_scale * ((a - a_zero)(b - b_zero) + c), quantised where y_scale is given */
void import_q_gemm(dlc_import *im)
{
    double alpha = im_float(im, "alpha", 1);
    dlc_value *a = im_in(im, 0), *b = im_in(im, 3), *c = im_in(im, 6);
    a = im_int(im, "transA", 0) ? f_swap_last(im, a) : a;
    int is_turned = im_int(im, "transB", 0) != 0;
    b = is_turned ? f_swap_last(im, b) : b;
    dlc_value *sum = a && b ? im_integer_matmul(im, a, im_in(im, 2), b, im_in(im, 5)) : NULL;
    if (c)
        sum = f_add(im, sum, c);
    dlc_value *scale = f_mul(im, im_as_scalar(im, im_in(im, 1)), im_as_scalar(im, im_in(im, 4)));
    dlc_value *y = times(im, to_float(im, sum, scale, NULL), alpha);
    im->out[0] = im_in(im, 7) ? im_quantise(im, y, im_in(im, 7), im_in(im, 8)) : y;
}

/* --- quantised pointwise operators: through floats --- */

/* Operand at input i, with its scale and zero point behind it. */
static dlc_value *dequantised(dlc_import *im, uint32_t i)
{
    dlc_value *x = im_in(im, i), *scale = im_as_scalar(im, im_in(im, i + 1)),
              *zero = im_as_scalar(im, im_in(im, i + 2));
    if (!x || !scale)
        return NULL;
    x = f_cast(im, x, DLC_F32);
    return f_mul(im, zero ? f_sub(im, x, f_cast(im, zero, DLC_F32)) : x, scale);
}

/* To the dtype of operand 0 where no zero point says another. */
static dlc_value *requantised(dlc_import *im, dlc_value *y, uint32_t scale)
{
    dlc_value *zero = im_in(im, scale + 1);
    return im_quantise(im, y, im_in(im, scale), zero ? zero : f_like(im, im_in(im, 0), 0));
}

void import_q_linear_binary(dlc_import *im)
{
    dlc_value *y = f_binary(im, (dlc_opcode)im->row->argument, dequantised(im, 0), dequantised(im, 3));
    im->out[0] = requantised(im, y, 6);
}

void import_q_linear_sigmoid(dlc_import *im)
{
    im->out[0] = requantised(im, f_unary(im, DLC_OP_SIGMOID, dequantised(im, 0)), 3);
}

void import_q_linear_leaky_relu(dlc_import *im)
{
    dlc_attr alpha = dlc_attr_float(DLC_ATTR_ALPHA, im_float(im, "alpha", 0.01f));
    im->out[0] = requantised(im, f_node(im, DLC_OP_LEAKY_RELU, F_IN(dequantised(im, 0)), &alpha, 1), 3);
}

void import_q_linear_softmax(dlc_import *im)
{
    dlc_value *x = dequantised(im, 0);
    int axis = im_axis(im, im_int(im, "axis", -1), im_rank(im_in(im, 0)));
    int64_t opset = im_int(im, "opset", 13);
    if (opset < 13 && axis != (int)im_rank(im_in(im, 0)) - 1)
        im_fail(im, DLC_UNSUPPORTED, "opset %" PRId64 " with another axis than the last", opset);
    if (x && axis >= 0 && im_ok(im))
        im->out[0] = requantised(im, f_softmax(im, x, (uint32_t)axis), 3);
}

void import_q_linear_global_average_pool(dlc_import *im)
{
    int64_t is_last = im_int(im, "channels_last", 0);
    dlc_value *x = dequantised(im, 0);
    uint8_t axes[DLC_MAX_RANK];
    uint32_t n = 0, rank = im_rank(im_in(im, 0));
    for (uint32_t d = is_last ? 1 : 2; d + (is_last != 0) < rank; d++)
        axes[n++] = (uint8_t)d;
    im->out[0] = requantised(im, f_reduce(im, DLC_OP_REDUCE_MEAN, x, axes, n, 1), 3);
}

/* y_scale, y_zero, then a triple per part */
void import_q_linear_concat(dlc_import *im)
{
    dlc_value **parts = dlc_new_array(im->arena, dlc_value *, im->nin);
    uint32_t n = 0;
    for (uint32_t i = 2; i + 1 < im->nin; i += 3) {
        if (!(parts[n++] = dequantised(im, i)))
            return;
    }
    int axis = im_axis(im, im_int(im, "axis", 0), im_rank(parts[0]));
    dlc_value *zero = im_in(im, 1);
    if (axis >= 0)
        im->out[0] = im_quantise(im, f_concat(im, parts, n, (uint32_t)axis), im_in(im, 0),
                                 zero ? zero : f_like(im, im_in(im, 2), 0));
}

/* --- attention --- */

typedef struct {
    int64_t nheads;
    double scale, hidden; /* 0: 1 / sqrt(size); what is added where a key is masked */
    int is_causal;
} ms_settings;

static int read_settings(dlc_import *im, ms_settings *s)
{
    *s = (ms_settings){.nheads = im_int(im, "num_heads", 0),
                       .scale = im_float(im, "scale", 0),
                       .hidden = im_float(im, "mask_filter_value", -10000),
                       .is_causal = im_int(im, "unidirectional", 0) != 0};
    if (s->nheads < 1)
        im_fail(im, DLC_INVALID, "num_heads is %" PRId64, s->nheads);
    return im_ok(im);
}

/* [n, t, heads * size] -> [n, heads, t, size] */
static dlc_value *split(dlc_import *im, dlc_value *x, int64_t nheads)
{
    static const uint8_t perm[4] = {0, 2, 1, 3};
    if (!x)
        return NULL;
    const dlc_expr *d = x->type.dims, heads = im_i64(im, nheads);
    const dlc_expr dims[4] = {d[0], d[1], heads, im_size(im, dlc_floordiv(im->pool, d[2], heads))};
    return f_transpose(im, f_reshape(im, x, dims, 4), perm);
}

/* [n, 1, 1, s] of a mask [n, s] (0: hidden) or of lengths [n] */
static dlc_value *key_mask(dlc_import *im, dlc_value *mask, dlc_expr keys, const ms_settings *s)
{
    dlc_value *is_seen;
    if (im_rank(mask) == 1)
        is_seen = f_binary(im, DLC_OP_LT, f_iota(im, mask->type.dtype, keys),
                           f_insert_axis(im, mask, 1));
    else
        is_seen = f_binary(im, DLC_OP_LT, f_like(im, mask, 0), mask);
    dlc_value *bias = f_where(im, is_seen, f_scalar(im, DLC_F32, 0), f_scalar(im, DLC_F32, s->hidden));
    return bias ? f_insert_axis(im, f_insert_axis(im, bias, 1), 1) : NULL;
}

static dlc_value *causal_bias(dlc_import *im, const dlc_value *scores)
{
    dlc_value *i = f_insert_axis(im, f_iota(im, DLC_I64, scores->type.dims[2]), 1);
    dlc_value *is_later = f_binary(im, DLC_OP_LT, i, f_iota(im, DLC_I64, scores->type.dims[3]));
    return f_where(im, is_later, f_scalar(im, scores->type.dtype, -INFINITY),
                   f_scalar(im, scores->type.dtype, 0));
}

static dlc_value *attend(dlc_import *im, const ms_settings *s, dlc_value *q, dlc_value *k,
                         dlc_value *v, dlc_value *mask, dlc_value *bias)
{
    static const uint8_t perm[4] = {0, 2, 1, 3};
    int64_t size;
    if (!q || !k || !v)
        return NULL;
    if (!im_is_const(im, q->type.dims[3], &size) || (mask && im_rank(mask) > 2)) {
        im_fail(im, DLC_UNSUPPORTED, "a head size of the run, or a mask of rank 3 or more");
        return NULL;
    }
    dlc_value *scores = times(im, f_matmul(im, q, f_swap_last(im, k)),
                              s->scale != 0 ? s->scale : 1 / sqrt((double)size));
    if (bias)
        scores = f_add(im, scores, bias);
    if (mask && scores)
        scores = f_add(im, scores, f_cast(im, key_mask(im, mask, k->type.dims[2], s),
                                          scores->type.dtype));
    if (s->is_causal && scores)
        scores = f_add(im, scores, causal_bias(im, scores));
    if (!scores)
        return NULL;
    dlc_value *y = f_transpose(im, f_matmul(im, f_softmax(im, scores, 3), v), perm);
    if (!y)
        return NULL;
    const dlc_expr *d = y->type.dims;
    const dlc_expr dims[3] = {d[0], d[1], dlc_mul(im->pool, d[2], d[3])};
    return f_reshape(im, y, dims, 3);
}

/* query, key, value [n, t, hidden], bias of all three, mask of keys, bias of scores */
void import_ms_multi_head_attention(dlc_import *im)
{
    ms_settings s;
    dlc_value *parts[3], *bias = im_in(im, 3);
    dlc_expr start = im_i64(im, 0);
    if (!read_settings(im, &s))
        return;
    for (uint32_t i = 0; i < 3; i++) {
        dlc_value *x = parts[i] = im_in(im, i);
        if (im_rank(x) != 3) {
            im_fail(im, DLC_UNSUPPORTED, "packed or cached keys; inputs of rank 3 are supported");
            return;
        }
        if (bias)
            parts[i] = f_add(im, x, f_slice(im, bias, 0, start, x->type.dims[2]));
        start = dlc_add(im->pool, start, x->type.dims[2]);
        parts[i] = split(im, parts[i], s.nheads);
    }
    im->out[0] = attend(im, &s, parts[0], parts[1], parts[2], im_in(im, 4), im_in(im, 5));
}

/* Attention of q, k and v behind each other, [n, t, 3 hidden]. */
static void attend_packed(dlc_import *im, const ms_settings *s, dlc_value *all, dlc_value *mask, dlc_value *bias)
{
    dlc_value *parts[3];
    for (uint32_t i = 0; i < 3; i++) {
        dlc_expr size = all ? im_size(im, dlc_floordiv(im->pool, all->type.dims[2], im_i64(im, 3))) : 0;
        parts[i] = split(im, all ? f_slice(im, all, 2, dlc_muli(im->pool, size, i), size) : NULL,
                         s->nheads);
    }
    im->out[0] = attend(im, s, parts[0], parts[1], parts[2], mask, bias);
}

/* input, weights [hidden, 3 hidden], bias, mask, past, bias of scores */
void import_ms_attention(dlc_import *im)
{
    ms_settings s;
    uint32_t n = 0;
    dlc_value *x = im_in(im, 0);
    if (!read_settings(im, &s) || !im_only(im, "do_rotary", 0, 0))
        return;
    if (im_ints(im, "qkv_hidden_sizes", &n) || im_in(im, 4) || im_rank(x) != 3) {
        im_fail(im, DLC_UNSUPPORTED, "qkv_hidden_sizes, a cache or an input of other rank than 3");
        return;
    }
    (void)im_int(im, "past_present_share_buffer", 0);
    dlc_value *all = f_matmul(im, x, im_in(im, 1));
    if (im_in(im, 2))
        all = f_add(im, all, im_in(im, 2));
    attend_packed(im, &s, all, im_in(im, 3), im_in(im, 5));
}

/* codes of input and weights [hidden, 3 hidden], bias, their scales, mask, their zero points, past */
void import_q_attention(dlc_import *im)
{
    ms_settings s;
    if (!read_settings(im, &s) || !im_only(im, "do_rotary", 0, 0))
        return;
    if (im_in(im, 8) || im_rank(im_in(im, 0)) != 3) {
        im_fail(im, DLC_UNSUPPORTED, "a cache or an input of other rank than 3");
        return;
    }
    (void)im_int(im, "past_present_share_buffer", 0);
    dlc_value *sum = im_integer_matmul(im, im_in(im, 0), im_in(im, 6), im_in(im, 1), im_in(im, 7));
    dlc_value *scale = f_mul(im, im_as_scalar(im, im_in(im, 3)), im_as_scalar(im, im_in(im, 4)));
    attend_packed(im, &s, to_float(im, sum, scale, im_in(im, 2)), im_in(im, 5), NULL);
}

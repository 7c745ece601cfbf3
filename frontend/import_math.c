/* Pointwise operators: arithmetic, comparisons, logic, bits, activations, casts. Most are one core
 * node. */
#include "frontend/import_string.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

static dlc_opcode argument(const dlc_import *im)
{
    return (dlc_opcode)im->row->argument;
}

void import_unary(dlc_import *im)
{
    im->out[0] = f_unary(im, argument(im), im_in(im, 0));
}

void import_binary(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *y = im_in(im, 1);
    if (argument(im) == DLC_OP_EQ && x->type.dtype == y->type.dtype)
        x = im_numbers(im, x), y = im_numbers(im, y);
    im->out[0] = f_binary(im, argument(im), x, y);
}

/* a > b is b < a */
void import_swapped(dlc_import *im)
{
    im->out[0] = f_binary(im, argument(im), im_in(im, 1), im_in(im, 0));
}

/* Sum, Max, Min of one input or many */
void import_variadic(dlc_import *im)
{
    im->out[0] = f_add_all(im, argument(im), im->in, im->nin);
}

void import_mean(dlc_import *im)
{
    dlc_value *sum = f_add_all(im, DLC_OP_ADD, im->in, im->nin);
    im->out[0] = im->nin == 1 ? sum : f_div(im, sum, f_like(im, sum, im->nin));
}

/* The slope is broadcast to x, never x to it. */
void import_prelu(dlc_import *im)
{
    im->out[0] = f_binary(im, DLC_OP_PRELU, im_in(im, 0), im_in(im, 1));
    im_keeps_shape(im, im->out[0], im_in(im, 0));
}

/* One float attribute, alpha, with a default that the operator's name decides. */
static dlc_value *with_alpha(dlc_import *im, dlc_opcode op, double otherwise)
{
    double alpha = im_float(im, "alpha", otherwise);
    return f_node(im, op, F_IN(im_in(im, 0)), F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, alpha)));
}

void import_leaky_relu(dlc_import *im)
{
    im->out[0] = with_alpha(im, DLC_OP_LEAKY_RELU, 0.01f);
}

void import_alpha_one(dlc_import *im)
{
    im->out[0] = with_alpha(im, argument(im), 1);
}

void import_swiglu(dlc_import *im)
{
    im->out[0] = f_mul(im, with_alpha(im, DLC_OP_SWISH, 1), im_in(im, 1));
}

void import_selu(dlc_import *im)
{
    double alpha = im_float(im, "alpha", im->opset < 6 ? 1.6732f : 1.67326319217681884765625f);
    double gamma = im_float(im, "gamma", im->opset < 6 ? 1.0507f : 1.05070102214813232421875f);
    im->out[0] = f_node(
        im, DLC_OP_SELU, F_IN(im_in(im, 0)),
        F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, alpha), dlc_attr_float(DLC_ATTR_GAMMA, gamma)));
}

void import_hard_sigmoid(dlc_import *im)
{
    double alpha = im_float(im, "alpha", 0.2f), beta = im_float(im, "beta", 0.5);
    im->out[0] =
        f_node(im, DLC_OP_HARD_SIGMOID, F_IN(im_in(im, 0)),
               F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, alpha), dlc_attr_float(DLC_ATTR_BETA, beta)));
}

/* Of integers, as opset 9 allows, through f64. */
void import_erf(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int is_float = dlc_is_float(x->type.dtype);
    dlc_value *y = f_unary(im, DLC_OP_ERF, is_float ? x : f_cast(im, x, DLC_F64));
    im->out[0] = f_cast(im, y, x->type.dtype);
}

void import_is_nan(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    im->out[0] = f_unary(im, DLC_OP_IS_NAN, dlc_is_code(x->type.dtype) ? f_cast(im, x, DLC_F32) : x);
}

void import_shrink(dlc_import *im)
{
    double bias = im_float(im, "bias", 0), lambd = im_float(im, "lambd", 0.5);
    im->out[0] =
        f_node(im, DLC_OP_SHRINK, F_IN(im_in(im, 0)),
               F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, bias), dlc_attr_float(DLC_ATTR_BETA, lambd)));
}

void import_gelu(dlc_import *im)
{
    const char *mode = im_choice(im, "approximate", "none", "none|tanh");
    if (mode)
        im->out[0] = f_node(im, DLC_OP_GELU, F_IN(im_in(im, 0)),
                            F_ATTRS(dlc_attr_text(DLC_ATTR_MODE, mode)));
}

void import_mod(dlc_import *im)
{
    int64_t fmod = im_int(im, "fmod", 0);
    dlc_value *x = im_in(im, 0);
    if (fmod != 0 && fmod != 1)
        im_fail(im, DLC_INVALID, "fmod is %" PRId64 "; 0 or 1 are possible", fmod);
    else if (!fmod && dlc_is_float(x->type.dtype) && im->opset < 28)
        im_fail(im, DLC_INVALID, "fmod must be 1 for %s before opset 28",
                dlc_dtypes[x->type.dtype].text);
    else
        im->out[0] = f_binary(im, fmod ? DLC_OP_REM : DLC_OP_MOD, x, im_in(im, 1));
}

static dlc_value *clip(dlc_import *im, dlc_value *x, dlc_value *lo, dlc_value *hi)
{
    dlc_node *node =
        lo || hi ? f_node_with(im, DLC_OP_CLIP, (dlc_value *[]){x, lo, hi}, hi ? 3 : 2, 1, F_PLAIN)
                 : NULL;
    return node ? node->outputs[0] : lo || hi ? NULL : x;
}

void import_clip_6(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int has_lo = im_has(im, "min"), has_hi = im_has(im, "max");
    double lo = im_float(im, "min", -FLT_MAX), hi = im_float(im, "max", FLT_MAX);
    im->out[0] = clip(im, x, has_lo ? f_like(im, x, lo) : NULL, has_hi ? f_like(im, x, hi) : NULL);
}

void import_clip_11(dlc_import *im)
{
    im->out[0] = clip(im, im_in(im, 0), im_in(im, 1), im_in(im, 2));
}

void import_is_inf(dlc_import *im)
{
    int64_t negative = im_int(im, "detect_negative", 1),
            positive = im_int(im, "detect_positive", 1);
    dlc_value *x = im_in(im, 0);
    const char *mode = negative && positive ? "both" : negative ? "negative" : "positive";
    if (negative || positive)
        im->out[0] =
            f_node(im, DLC_OP_IS_INF, F_IN(x), F_ATTRS(dlc_attr_text(DLC_ATTR_MODE, mode)));
    else
        im->out[0] = f_expand(im, f_scalar(im, DLC_BOOL, 0), x->type.dims, im_rank(x));
}

void import_bit_shift(dlc_import *im)
{
    const char *direction = im_choice(im, "direction", "", "LEFT|RIGHT");
    if (direction)
        im->out[0] =
            f_binary(im, direction[0] == 'L' ? DLC_OP_SHL : DLC_OP_SHR, im_in(im, 0), im_in(im, 1));
}

/* before opset 19: of bool and integers only, which is no concern of ours; the bits decide for
 * floats too */
void import_where(dlc_import *im)
{
    im->out[0] = f_where(im, im_in(im, 0), im_in(im, 1), im_in(im, 2));
}

/* `saturate` and `round_mode` speak of small floats only. */
static dlc_value *cast_to(dlc_import *im, dlc_dtype dtype)
{
    int64_t saturate = im->opset >= 19 ? im_int(im, "saturate", 1) : 1;
    const char *mode =
        im->opset >= 24 ? im_choice(im, "round_mode", "up", "up|down|nearest") : "up";
    if (mode && (dlc_is_text(dtype) || dlc_is_text(im_in(im, 0)->type.dtype)))
        return im_cast_strings(im, im_in(im, 0), dtype);
    return mode ? f_encode(im, im_in(im, 0), dtype, saturate, mode) : NULL;
}

void import_cast(dlc_import *im)
{
    int64_t to = im_int(im, "to", 0);
    dlc_dtype dtype = dlc_is_text(dlc_dtype_of_onnx(to)) ? DLC_STR : im_dtype(im, to, "attribute 'to'");
    if (dtype != DLC_NONE)
        im->out[0] = cast_to(im, dtype);
}

void import_cast_like(dlc_import *im)
{
    im->out[0] = cast_to(im, im_in(im, 1)->type.dtype);
}

void import_bit_cast(dlc_import *im)
{
    int64_t to = im_int(im, "to", 0);
    dlc_dtype dtype = im_dtype(im, to, "attribute 'to'");
    dlc_value *x = im_in(im, 0);
    if (dtype == x->type.dtype)
        im->out[0] = x;
    else if (dtype != DLC_NONE)
        im->out[0] =
            f_node(im, DLC_OP_BITCAST, F_IN(x), F_ATTRS(dlc_attr_int(DLC_ATTR_DTYPE, dtype)));
}

void import_identity(dlc_import *im)
{
    im->out[0] = im_in(im, 0);
}

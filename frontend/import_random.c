/*
 * Random numbers. Draw i of a node is a hash of its number and the node's key, so it depends on no
 * draw before it: any order, any number of threads and any device give the same numbers, in every
 * run. The key comes from the attribute `seed`, or from the node's name where there is none
 * (docs/numerics.md).
 */
#include "frontend/import.h"

#include "dlc/dlc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static dlc_value *number_of(dlc_import *im, uint32_t bits)
{
    return f_scalar(im, DLC_U32, bits);
}

static dlc_value *shifted(dlc_import *im, dlc_value *x, uint32_t bits)
{
    dlc_value *high = f_binary(im, DLC_OP_SHR, x, number_of(im, bits));
    return f_binary(im, DLC_OP_XOR, x, high);
}

/* A bijection of 32 bits whose every output bit depends on every input bit. */
static dlc_value *mixed(dlc_import *im, dlc_value *x)
{
    x = f_mul(im, shifted(im, x, 16), number_of(im, 0x7feb352d));
    x = f_mul(im, shifted(im, x, 15), number_of(im, 0x846ca68b));
    return shifted(im, x, 16);
}

static uint32_t mixed_number(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Dropout's seed is an integer, all others are floats. */
static uint32_t key_of(dlc_import *im)
{
    uint32_t key = 0x9e3779b9;
    im_note(im, DLC_DRAWS ", the same in every run; which ones no standard says");
    if (im_has(im, "seed")) {
        int is_int = strcmp(im->origin->op_type, "Dropout") == 0;
        float seed = (float)(is_int ? (double)im_int(im, "seed", 0) : im_float(im, "seed", 0));
        memcpy(&key, &seed, sizeof key);
        return mixed_number(key);
    }
    for (const char *c = im->origin->name; *c; c++)
        key = mixed_number(key ^ (uint8_t)*c);
    return key;
}

/* u32 bits of the given shape; `stream` tells draws of one node apart. */
static dlc_value *drawn_bits(dlc_import *im, const dlc_expr *dims, uint32_t rank, uint32_t key,
                             uint32_t stream)
{
    dlc_value *i = f_iota(im, DLC_U32, im_product(im, dims, rank));
    key = mixed_number(key + stream);
    dlc_value *x = mixed(im, f_binary(im, DLC_OP_XOR, i, number_of(im, key)));
    x = mixed(im, f_add(im, x, number_of(im, mixed_number(~key))));
    return x ? f_reshape(im, x, dims, rank) : NULL;
}

/* Multiples of 2^-24 in [0, 1), in f32; of 2^-32, in f64 */
static dlc_value *uniform(dlc_import *im, dlc_dtype dtype, const dlc_expr *dims, uint32_t rank,
                          uint32_t key, uint32_t stream)
{
    dlc_value *x = drawn_bits(im, dims, rank, key, stream);
    int is_wide = dtype == DLC_F64;
    if (x && !is_wide)
        x = f_binary(im, DLC_OP_SHR, x, number_of(im, 8));
    dlc_value *y = f_cast(im, x, is_wide ? DLC_F64 : DLC_F32);
    return y ? f_mul(im, y, f_like(im, y, is_wide ? 0x1p-32 : 0x1p-24)) : NULL;
}

/* Box and Muller: sqrt(-2 ln u) cos(2 pi v), u never 0 */
static dlc_value *normal(dlc_import *im, dlc_dtype dtype, const dlc_expr *dims, uint32_t rank,
                         uint32_t key)
{
    dlc_value *u = uniform(im, dtype, dims, rank, key, 0), *v = uniform(im, dtype, dims, rank, key, 1);
    if (!u || !v)
        return NULL;
    u = f_unary(im, DLC_OP_LOG, f_sub(im, f_like(im, u, 1), u));
    dlc_value *radius = f_unary(im, DLC_OP_SQRT, f_mul(im, u, f_like(im, v, -2)));
    return f_mul(im, radius, f_unary(im, DLC_OP_COS, f_mul(im, v, f_like(im, v, 2 * acos(-1)))));
}

/* --- numbers of a shape: RandomNormal and RandomUniform; …Like has the shape from its input --- */

void import_random(dlc_import *im)
{
    int is_normal = im->row->argument;
    double a = is_normal ? im_float(im, "mean", 0) : im_float(im, "low", 0);
    double b = is_normal ? im_float(im, "scale", 1) : im_float(im, "high", 1);
    const dlc_value *like = im_in(im, 0);
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t rank = like ? im_rank(like) : 0, key = key_of(im);
    const int64_t *shape = like ? NULL : im_ints(im, "shape", &rank);
    dlc_dtype dtype = im_has(im, "dtype") || !like ? im_dtype(im, im_int(im, "dtype", 1), "dtype")
                                                   : like->type.dtype;
    if ((!like && !shape) || rank > DLC_MAX_RANK)
        im_fail(im, DLC_INVALID, "a shape of at most %d dimensions is wanted", DLC_MAX_RANK);
    else if (im_ok(im) && !dlc_is_float(dtype))
        im_fail(im, DLC_INVALID, "dtype %s; floats are drawn", dlc_dtypes[dtype].text);
    for (uint32_t d = 0; d < rank && im_ok(im); d++) {
        dims[d] = like ? like->type.dims[d] : im_i64(im, shape[d]);
        if (!like && shape[d] < 0)
            im_fail(im, DLC_INVALID, "shape[%" PRIu32 "] is %" PRId64, d, shape[d]);
    }
    if (!im_ok(im))
        return;
    dlc_value *x = is_normal ? normal(im, dtype, dims, rank, key)
                             : uniform(im, dtype, dims, rank, key, 0);
    if (x)
        x = f_add(im, f_mul(im, x, f_like(im, x, is_normal ? b : b - a)), f_like(im, x, a));
    im->out[0] = f_cast(im, x, dtype);
}

/* True where a draw is below the probability. */
static dlc_value *happens(dlc_import *im, dlc_value *probability, const dlc_expr *dims, uint32_t rank)
{
    dlc_dtype dtype = probability->type.dtype;
    dlc_value *u = uniform(im, dtype, dims, rank, key_of(im), 0);
    return u ? f_binary(im, DLC_OP_LT, u, f_cast(im, probability, u->type.dtype)) : NULL;
}

void import_bernoulli(dlc_import *im)
{
    dlc_value *p = im_in(im, 0);
    dlc_dtype dtype = im_has(im, "dtype") ? im_dtype(im, im_int(im, "dtype", 1), "dtype")
                                          : p->type.dtype;
    if (im_ok(im))
        im->out[0] = f_cast(im, happens(im, p, p->type.dims, im_rank(p)), dtype);
}

/* The class whose logarithm, less that of an exponential draw, is the largest (Gumbel). */
void import_multinomial(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t n = im_int(im, "sample_size", 1);
    dlc_dtype dtype = im_dtype(im, im_int(im, "dtype", 6), "dtype");
    if (n < 0)
        im_fail(im, DLC_INVALID, "sample_size is %" PRId64 "; 0 or more is possible", n);
    else if (im_rank(x) != 2)
        im_fail(im, DLC_INVALID, "samples of an input of rank %" PRIu32 "; 2 is wanted", im_rank(x));
    if (!im_ok(im))
        return;
    const dlc_expr dims[3] = {x->type.dims[0], im_i64(im, n), x->type.dims[1]};
    dlc_value *u = uniform(im, x->type.dtype, dims, 3, key_of(im), 0);
    if (!u)
        return;
    u = f_unary(im, DLC_OP_LOG, f_sub(im, f_like(im, u, 1), u));
    u = f_unary(im, DLC_OP_LOG, f_max(im, f_unary(im, DLC_OP_NEG, u), f_like(im, u, 1e-30)));
    x = f_insert_axis(im, f_cast(im, x, u->type.dtype), 1);
    im->out[0] = f_cast(im, f_node(im, DLC_OP_ARGMAX, F_IN(f_sub(im, x, u)),
                                   F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 2),
                                           dlc_attr_int(DLC_ATTR_KEEPDIMS, 0))),
                        dtype);
}

/* --- Dropout --- */

/* Keeps with probability 1 - ratio, and what is kept is larger by as much. */
static void drop(dlc_import *im, dlc_value *training, dlc_value *ratio)
{
    dlc_value *x = im_in(im, 0);
    dlc_value *keep = f_sub(im, f_like(im, ratio, 1), ratio);
    dlc_value *kept = !keep ? NULL : happens(im, keep, x->type.dims, im_rank(x));
    if (training)
        kept = f_binary(im, DLC_OP_OR, kept, f_unary(im, DLC_OP_NOT, f_reshape(im, training, NULL, 0)));
    dlc_value *scaled = f_div(im, x, f_cast(im, keep, x->type.dtype));
    if (training)
        scaled = f_where(im, f_reshape(im, training, NULL, 0), scaled, x);
    im->out[0] = f_where(im, kept, scaled, f_like(im, x, 0));
    if (im_wants(im, 1))
        im->out[1] = kept;
}

/* Inference: the identity. A mask that is asked for is all true; before opset 10 it is of x's
 * dtype. */
void import_dropout(dlc_import *im)
{
    double training = 0, ratio = 0.5;
    dlc_value *x = im_in(im, 0), *mode = im_in(im, 2), *given = im_in(im, 1);
    if (im->opset < 12)
        ratio = im_float(im, "ratio", 0.5);
    if (given && dlc_is_code(given->type.dtype))
        given = f_cast(im, given, DLC_F32);
    int is_known = !given || im_const_scalar(im, given, &ratio);
    int is_decided = !mode || im_const_scalar(im, mode, &training);
    if ((is_decided && training == 0) || (is_known && ratio == 0)) {
        if (im->opset >= 12)
            im_int(im, "seed", 0);
        im->out[0] = x;
        if (im_wants(im, 1))
            im->out[1] = f_expand(im, f_scalar(im, im->opset < 10 ? x->type.dtype : DLC_BOOL, 1),
                                  x->type.dims, im_rank(x));
        return;
    }
    drop(im, is_decided ? NULL : mode,
         given ? f_reshape(im, given, NULL, 0) : f_scalar(im, DLC_F32, ratio));
}

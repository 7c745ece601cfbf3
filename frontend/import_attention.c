/*
 * Attention and rotary positions, composed of products, a softmax and views, so that attention
 * written out by hand and the named operator become the same kernels. A row whose keys are all
 * masked gives zeros, decided on the bias alone.
 */
#include "frontend/import_attention.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct {
    dlc_value *q, *k, *v;             /* [n, heads, length, size] */
    dlc_value *present_k, *present_v; /* with what was cached, before heads are repeated */
    dlc_expr past;                    /* keys cached by this operator; 0 expression: none */
    int64_t q_heads, kv_heads;
    int is_flat; /* inputs are [n, length, hidden] */
} heads;

/* [n, t, heads * size] -> [n, heads, t, size]; `attribute` says how many heads. */
static dlc_value *split_heads(dlc_import *im, dlc_value *x, int64_t count, const char *attribute)
{
    static const uint8_t perm[4] = {0, 2, 1, 3};
    const dlc_expr *d = x->type.dims;
    if (count < 1) {
        im_fail(im, DLC_INVALID, "%s is %" PRId64 "; an input of rank 3 wants at least 1",
                attribute, count);
        return NULL;
    }
    if (!im_same_dim(im, dlc_mod(im->pool, d[2], im_i64(im, count)), im_i64(im, 0),
                     "the hidden size modulo the number of heads"))
        return NULL;
    const dlc_expr dims[4] = {d[0], d[1], im_i64(im, count),
                              im_size(im, dlc_floordiv(im->pool, d[2], im_i64(im, count)))};
    return f_transpose(im, f_reshape(im, x, dims, 4), perm);
}

static dlc_value *merge_heads(dlc_import *im, dlc_value *x)
{
    static const uint8_t perm[4] = {0, 2, 1, 3};
    dlc_value *t = f_transpose(im, x, perm);
    if (!t)
        return NULL;
    const dlc_expr *d = t->type.dims;
    const dlc_expr dims[3] = {d[0], d[1], dlc_mul(im->pool, d[2], d[3])};
    return f_reshape(im, t, dims, 3);
}

static int read_heads(dlc_import *im, heads *h)
{
    h->q = im_in(im, 0);
    h->k = im_in(im, 1);
    h->v = im_in(im, 2);
    uint32_t rank = im_rank(h->q);
    h->is_flat = rank == 3;
    if ((rank != 3 && rank != 4) || im_rank(h->k) != rank || im_rank(h->v) != rank)
        im_fail(im, DLC_INVALID,
                "q, k and v have ranks %" PRIu32 ", %" PRIu32 " and %" PRIu32
                "; all 3 or all 4 are wanted",
                rank, im_rank(h->k), im_rank(h->v));
    dlc_value *valid = im_in(im, 6);
    if (valid && (im_rank(valid) != 1 || !dlc_is_int(valid->type.dtype)))
        im_fail(im, DLC_INVALID, "nonpad_kv_seqlen must be a vector of integers");
    if (!im_ok(im))
        return 0;
    if (h->is_flat) {
        h->q = split_heads(im, h->q, h->q_heads, "q_num_heads");
        h->k = split_heads(im, h->k, h->kv_heads, "kv_num_heads");
        h->v = split_heads(im, h->v, h->kv_heads, "kv_num_heads");
        return h->q && h->k && h->v;
    }
    if (im_is_const(im, h->q->type.dims[1], &h->q_heads) &&
        im_is_const(im, h->k->type.dims[1], &h->kv_heads))
        return 1;
    im_fail(im, DLC_UNSUPPORTED, "the number of heads must be known");
    return 0;
}

/* Each key head serves several query heads: [n, h, t, d] -> [n, h * times, t, d], neighbours alike.
 */
static dlc_value *repeat_heads(dlc_import *im, dlc_value *x, int64_t times)
{
    if (!x || times == 1)
        return x;
    const dlc_expr *d = x->type.dims;
    const dlc_expr wide[5] = {d[0], d[1], im_i64(im, times), d[2], d[3]};
    const dlc_expr dims[4] = {d[0], dlc_muli(im->pool, d[1], times), d[2], d[3]};
    return f_reshape(im, f_expand(im, f_insert_axis(im, x, 2), wide, 5), dims, 4);
}

static int add_cache(dlc_import *im, heads *h)
{
    dlc_value *past_k = im_in(im, 4), *past_v = im_in(im, 5);
    if (!past_k != !past_v) {
        im_fail(im, DLC_INVALID, "past_key and past_value go together");
        return 0;
    }
    if (past_k) {
        h->past = im_rank(past_k) == 4 ? past_k->type.dims[2] : 0;
        h->k = f_concat(im, (dlc_value *[]){past_k, h->k}, 2, 2);
        h->v = f_concat(im, (dlc_value *[]){past_v, h->v}, 2, 2);
    }
    h->present_k = h->k;
    h->present_v = h->v;
    if (h->q_heads < 1 || h->kv_heads < 1 || h->q_heads % h->kv_heads != 0) {
        im_fail(im, DLC_INVALID, "%" PRId64 " query heads are no multiple of %" PRId64 " key heads",
                h->q_heads, h->kv_heads);
        return 0;
    }
    h->k = repeat_heads(im, h->k, h->q_heads / h->kv_heads);
    h->v = repeat_heads(im, h->v, h->q_heads / h->kv_heads);
    return h->k && h->v;
}

/* --- the additive bias: 0 where a key may be seen, -inf where not --- */

static dlc_value *bias_of(dlc_import *im, dlc_value *allowed, dlc_dtype dtype)
{
    return f_where(im, allowed, f_scalar(im, dtype, 0), f_scalar(im, dtype, -INFINITY));
}

static dlc_value *plus(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return a ? f_add(im, a, b) : b;
}

/* A mask shorter than the keys hides the rest. */
static dlc_value *mask_bias(dlc_import *im, dlc_value *mask, dlc_expr keys, dlc_dtype dtype)
{
    if (mask->type.dtype == DLC_BOOL)
        mask = bias_of(im, mask, dtype);
    if (!mask || im_rank(mask) == 0)
        return mask;
    uint32_t rank = im_rank(mask);
    dlc_expr last = mask->type.dims[rank - 1],
             missing = im_simple(im, dlc_sub(im->pool, keys, last)), pads[2 * DLC_MAX_RANK];
    int64_t known;
    if (missing == im_i64(im, 0) || !im_is_const(im, missing, &known))
        return mask;
    if (known < 0) {
        im_fail(im, DLC_INVALID, "the mask is for %" PRId64 " keys more than there are", -known);
        return NULL;
    }
    for (uint32_t i = 0; i < 2 * rank; i++)
        pads[i] = im_i64(im, 0);
    pads[2 * rank - 1] = missing;
    return f_node(im, DLC_OP_PAD, F_IN(mask, f_scalar(im, mask->type.dtype, -INFINITY)),
                  F_ATTRS(dlc_attr_dims(DLC_ATTR_PADS, pads, 2 * rank)));
}

/* Absolute positions of the queries: [t, 1], or [n, 1, t, 1] when each sample has its own count of
 * valid keys. */
static dlc_value *query_positions(dlc_import *im, const heads *h, dlc_value *valid)
{
    dlc_expr length = h->q->type.dims[2];
    dlc_value *i = f_insert_axis(im, f_iota(im, DLC_I64, length), 1);
    if (h->past)
        return f_add(im, i, f_dim(im, DLC_I64, h->past));
    if (!valid)
        return i;
    const dlc_expr one = im_i64(im, 1), dims[4] = {valid->type.dims[0], one, one, one};
    dlc_value *offset = f_sub(im, f_cast(im, valid, DLC_I64), f_dim(im, DLC_I64, length));
    return f_add(im, f_reshape(im, offset, dims, 4), i);
}

typedef struct {
    int64_t is_causal, left, right;
    dlc_value *mask, *valid;
} visibility;

/* NULL without failure: everything is visible. *may_hide_rows: a row may have no key at all. */
static dlc_value *attention_bias(dlc_import *im, const heads *h, const visibility *see,
                                 int *may_hide_rows)
{
    dlc_dtype dtype = h->q->type.dtype;
    dlc_expr keys = h->k->type.dims[2];
    dlc_value *bias = see->mask ? mask_bias(im, see->mask, keys, dtype) : NULL;
    dlc_value *key = f_iota(im, DLC_I64, keys);
    *may_hide_rows = see->mask || see->valid || see->left >= 0 || see->right >= 0;
    if (see->is_causal || see->left >= 0 || see->right >= 0) {
        dlc_value *at = query_positions(im, h, see->valid), *ahead = f_sub(im, key, at);
        if (see->is_causal)
            bias =
                plus(im, bias,
                     bias_of(im, f_binary(im, DLC_OP_LE, ahead, f_scalar(im, DLC_I64, 0)), dtype));
        if (see->right >= 0)
            bias = plus(
                im, bias,
                bias_of(im,
                        f_binary(im, DLC_OP_LE, ahead, f_scalar(im, DLC_I64, (double)see->right)),
                        dtype));
        if (see->left >= 0)
            bias = plus(
                im, bias,
                bias_of(im,
                        f_binary(im, DLC_OP_LE, f_scalar(im, DLC_I64, -(double)see->left), ahead),
                        dtype));
    }
    if (see->valid) {
        const dlc_expr one = im_i64(im, 1), dims[4] = {see->valid->type.dims[0], one, one, one};
        dlc_value *count = f_reshape(im, f_cast(im, see->valid, DLC_I64), dims, 4);
        bias = plus(im, bias, bias_of(im, f_binary(im, DLC_OP_LT, key, count), dtype));
    }
    return bias;
}

static dlc_value *hide_rows(dlc_import *im, dlc_value *p, dlc_value *bias)
{
    dlc_value *top = f_reduce_last(im, DLC_OP_REDUCE_MAX, bias, 1, 1);
    dlc_value *is_hidden = f_binary(im, DLC_OP_EQ, top, f_like(im, bias, -INFINITY));
    return f_where(im, is_hidden, f_like(im, p, 0), p);
}

static dlc_value *scores(dlc_import *im, const heads *h, double scale)
{
    dlc_value *root = f_like(im, h->q, sqrt(scale));
    return f_matmul(im, f_mul(im, h->q, root), f_swap_last(im, f_mul(im, h->k, root)));
}

static double default_scale(dlc_import *im, const heads *h)
{
    int64_t size;
    if (im_is_const(im, h->q->type.dims[3], &size) && size > 0)
        return 1 / sqrt((double)size);
    im_fail(im, DLC_UNSUPPORTED, "the head size must be known, or scale given");
    return 1;
}

typedef struct {
    visibility see;
    double scale, softcap;
    int64_t mode;
    dlc_dtype precision; /* of the softmax; NONE: the input's */
    int has_scale;
} settings;

static int read_settings(dlc_import *im, heads *h, settings *s)
{
    *s = (settings){.see = {.left = -1, .right = -1}};
    s->see.is_causal = im_int(im, "is_causal", 0);
    s->has_scale = im_has(im, "scale");
    s->scale = im_float(im, "scale", 0);
    s->softcap = im_float(im, "softcap", 0);
    s->mode = im_int(im, "qk_matmul_output_mode", 0);
    h->q_heads = im_int(im, "q_num_heads", 0);
    h->kv_heads = im_int(im, "kv_num_heads", 0);
    int64_t precision = im_int(im, "softmax_precision", 0);
    s->precision = precision ? im_dtype(im, precision, "attribute 'softmax_precision'") : DLC_NONE;
    if (im->opset >= 25) {
        s->see.left = im_int(im, "left_window_size", -1);
        s->see.right = im_int(im, "right_window_size", -1);
    }
    s->see.mask = im_in(im, 3);
    s->see.valid = im->opset >= 24 ? im_in(im, 6) : NULL;
    if (s->softcap < 0)
        im_fail(im, DLC_INVALID, "softcap is %g; 0 (none) or more is possible", s->softcap);
    if (s->see.left < -1 || s->see.right < -1 || s->mode < 0 || s->mode > 3)
        im_fail(im, DLC_INVALID,
                "window sizes are %" PRId64 " and %" PRId64 ", qk_matmul_output_mode is %" PRId64,
                s->see.left, s->see.right, s->mode);
    if (im->opset < 24 && im_in(im, 6))
        im_fail(im, DLC_INVALID, "input 6 is possible from opset 24");
    return im_ok(im);
}

void import_attention(dlc_import *im)
{
    heads h = {0};
    settings s;
    if (!read_settings(im, &h, &s) || !read_heads(im, &h) || !add_cache(im, &h))
        return;
    dlc_dtype dtype = h.q->type.dtype;
    int may_hide_rows;
    dlc_value *qk = scores(im, &h, s.has_scale ? s.scale : default_scale(im, &h)), *capped = qk;
    if (s.softcap > 0)
        capped = f_node(im, DLC_OP_SOFT_CAP, F_IN(qk),
                        F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, s.softcap)));
    dlc_value *bias = attention_bias(im, &h, &s.see, &may_hide_rows),
              *biased = bias ? f_add(im, capped, bias) : capped;
    if (!im_ok(im) || !im_keeps_shape(im, biased, qk))
        return;
    dlc_value *logits =
        biased && s.precision != DLC_NONE ? f_cast(im, biased, s.precision) : biased;
    dlc_value *p = logits ? f_softmax(im, logits, 3) : NULL;
    if (bias && may_hide_rows)
        p = hide_rows(im, p, bias);
    p = p ? f_cast(im, p, dtype) : NULL;
    dlc_value *y = f_matmul(im, p, h.v);
    im->out[0] = h.is_flat ? merge_heads(im, y) : y;
    dlc_value *const outputs[4] = {im->out[0], h.present_k, h.present_v,
                                   s.mode == 0   ? qk
                                   : s.mode == 1 ? capped
                                   : s.mode == 2 ? biased
                                                 : p};
    for (uint32_t i = 1; i < im->nout; i++)
        im->out[i] = outputs[i];
}

/* --- RotaryEmbedding: pairs of elements turned by the angle of their position --- */

/* [n, t, size/2] as [n, t, 1, size/2], picked by position where positions are given. */
static dlc_value *rotary_cache(dlc_import *im, dlc_value *cache, dlc_value *positions)
{
    dlc_value *picked = positions ? f_gather(im, cache, positions, 0) : cache;
    if (picked && im_rank(picked) != 3) {
        im_fail(im, DLC_INVALID, "the caches must have rank %d", positions ? 2 : 3);
        return NULL;
    }
    return f_insert_axis(im, picked, 2);
}

/* The two members of each pair: halves of the last dimension, or neighbours in it. */
static void split_pairs(dlc_import *im, dlc_value *x, dlc_expr half, int interleaved, dlc_value **a,
                        dlc_value **b)
{
    const dlc_expr *d = x->type.dims;
    if (!interleaved) {
        *a = f_slice(im, x, 3, im_i64(im, 0), half);
        *b = f_slice(im, x, 3, half, half);
        return;
    }
    const dlc_expr dims[5] = {d[0], d[1], d[2], half, im_i64(im, 2)};
    dlc_value *pairs = f_reshape(im, x, dims, 5);
    *a = pairs ? f_drop_axis(im, f_slice(im, pairs, 4, im_i64(im, 0), im_i64(im, 1)), 4) : NULL;
    *b = pairs ? f_drop_axis(im, f_slice(im, pairs, 4, im_i64(im, 1), im_i64(im, 1)), 4) : NULL;
}

static dlc_value *join_pairs(dlc_import *im, dlc_value *a, dlc_value *b, const dlc_value *like,
                             int interleaved)
{
    if (!interleaved)
        return f_concat(im, (dlc_value *[]){a, b}, 2, 3);
    dlc_value *const parts[2] = {f_insert_axis(im, a, 4), f_insert_axis(im, b, 4)};
    return f_reshape(im, f_concat(im, parts, 2, 4), like->type.dims, 4);
}

static dlc_value *rotate(dlc_import *im, dlc_value *x, int64_t size, const im_rotary *r)
{
    dlc_value *cosine = rotary_cache(im, r->cosines, r->positions),
              *sine = rotary_cache(im, r->sines, r->positions), *a, *b;
    dlc_expr half = im_i64(im, size / 2);
    if (!cosine || !sine ||
        !im_same_dim(im, cosine->type.dims[3], half,
                     "the cache's last dimension and half of the rotated one"))
        return NULL;
    split_pairs(im, x, half, r->interleaved, &a, &b);
    dlc_value *re = f_sub(im, f_mul(im, cosine, a), f_mul(im, sine, b));
    dlc_value *imaginary = f_add(im, f_mul(im, sine, a), f_mul(im, cosine, b));
    return join_pairs(im, re, imaginary, x, r->interleaved);
}

dlc_value *im_rotated(dlc_import *im, dlc_value *t, const im_rotary *r)
{
    int64_t size, part = r->part;
    if (!t)
        return NULL;
    if (!im_is_const(im, t->type.dims[3], &size)) {
        im_fail(im, DLC_UNSUPPORTED, "the head size must be known");
        return NULL;
    }
    part = part ? part : size;
    if (part < 2 || part > size || part % 2) {
        im_fail(im, DLC_INVALID, "rotary_embedding_dim is %" PRId64 " of a head size of %" PRId64,
                part, size);
        return NULL;
    }
    dlc_value *turned = f_slice(im, t, 3, im_i64(im, 0), im_i64(im, part));
    dlc_value *y = rotate(im, turned, part, r);
    if (!im_keeps_shape(im, y, turned))
        return NULL;
    if (y && part < size)
        y = f_concat(
            im, (dlc_value *[]){y, f_slice(im, t, 3, im_i64(im, part), im_i64(im, size - part))}, 2,
            3);
    return y;
}

im_rotary im_read_rotary(dlc_import *im, uint32_t caches)
{
    return (im_rotary){.cosines = im_in(im, caches),
                       .sines = im_in(im, caches + 1),
                       .part = im_int(im, "rotary_embedding_dim", 0),
                       .interleaved = im_int(im, "interleaved", 0) != 0};
}

dlc_value *im_rotated_input(dlc_import *im, const im_rotary *r, int64_t nheads)
{
    static const uint8_t perm[4] = {0, 2, 1, 3};
    dlc_value *x = im_in(im, 0);
    if (im_rank(x) == 4)
        return f_transpose(im, im_rotated(im, f_transpose(im, x, perm), r), perm);
    if (im_rank(x) != 3) {
        im_fail(im, DLC_INVALID, "the input has rank %" PRIu32 "; 3 or 4 are wanted", im_rank(x));
        return NULL;
    }
    dlc_value *split = f_transpose(im, split_heads(im, x, nheads, "num_heads"), perm);
    return f_reshape(im, im_rotated(im, split, r), x->type.dims, 3);
}

void import_rotary_embedding(dlc_import *im)
{
    im_rotary r = im_read_rotary(im, 1);
    r.positions = im_in(im, 3);
    im->out[0] = im_rotated_input(im, &r, im_int(im, "num_heads", 0));
}

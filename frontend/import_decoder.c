/*
 * What ONNX Runtime's tools make of language models (com.microsoft): attention with a cache of keys
 * in which each row has a length of its own, rotary positions, embeddings; and its pools.
 */
#include "frontend/import_attention.h"
#include "frontend/import_quant.h"

#include <inttypes.h>
#include <math.h>

/* --- rotary positions --- */

/* One offset for all rows, [1], or a position for each token. */
static dlc_value *token_positions(dlc_import *im, dlc_value *given, dlc_expr ntokens)
{
    if (!given || im_rank(given) != 1)
        return given;
    dlc_value *all = f_add(im, f_iota(im, given->type.dtype, ntokens), given);
    return f_insert_axis(im, all, 0);
}

/* Without their number, heads are as wide as the caches say. */
static int64_t count_heads(dlc_import *im, const dlc_value *x, const im_rotary *r)
{
    int64_t given = im_int(im, "num_heads", 0), hidden, half;
    if (given || im_rank(x) != 3)
        return given;
    if (im_is_const(im, x->type.dims[2], &hidden) && im_is_const(im, r->cosines->type.dims[1], &half) && half)
        return hidden / (2 * half);
    im_fail(im, DLC_UNSUPPORTED, "the number of heads must be known");
    return 0;
}

void import_ms_rotary_embedding(dlc_import *im)
{
    const dlc_value *x = im_in(im, 0);
    im_rotary r = im_read_rotary(im, 2);
    if (!im_only(im, "is_packed_batching", 0, 0))
        return;
    if (im_float(im, "scale", 1) != 1 || (im_rank(x) != 3 && im_rank(x) != 4) || im_rank(r.cosines) != 2) {
        im_fail(im, DLC_UNSUPPORTED, "a scale, or an input of rank %" PRIu32 "; 3 and 4 are supported",
                im_rank(x));
        return;
    }
    int64_t nheads = count_heads(im, x, &r);
    r.positions = token_positions(im, im_in(im, 1), x->type.dims[im_rank(x) - 2]);
    if (im_ok(im))
        im->out[0] = im_rotated_input(im, &r, nheads);
}

/* --- attention with groups of queries --- */

typedef struct {
    dlc_value *parts[3];        /* q, k, v: [n, t, heads, size] */
    dlc_value *past[2];         /* [n, kv heads, cached, size] or NULL */
    dlc_value *before;          /* keys of each row before the first token, i64 [n, 1] */
    dlc_expr ntokens, nkeys;    /* t; keys behind the operator */
    int64_t q_heads, kv_heads, size, window;
    double scale, cap;
    im_rotary rotary;
} grouped;

/* q, k and v by themselves, or side by side in one. */
static int split_tokens(dlc_import *im, grouped *g)
{
    dlc_value *q = im_in(im, 0);
    int is_packed = !im_in(im, 1) && !im_in(im, 2);
    int64_t hidden, counts[3] = {g->q_heads, g->kv_heads, g->kv_heads},
            all = is_packed ? g->q_heads + 2 * g->kv_heads : g->q_heads;
    if (im_rank(q) != 3 || g->q_heads < 1 || g->kv_heads < 1 || g->q_heads % g->kv_heads ||
        !im_is_const(im, q->type.dims[2], &hidden) || hidden % all || !im_in(im, 1) != !im_in(im, 2)) {
        im_fail(im, DLC_INVALID, "%" PRId64 " heads of queries and %" PRId64 " of keys do not fit the inputs",
                g->q_heads, g->kv_heads);
        return 0;
    }
    int64_t start = 0;
    g->size = hidden / all;
    g->ntokens = q->type.dims[1];
    for (uint32_t i = 0; i < 3; i++) {
        int64_t width = counts[i] * g->size;
        dlc_value *x = is_packed ? f_slice(im, q, 2, im_i64(im, start), im_i64(im, width)) : im_in(im, i);
        const dlc_expr dims[4] = {q->type.dims[0], g->ntokens, im_i64(im, counts[i]), im_i64(im, g->size)};
        g->parts[i] = f_reshape(im, x, dims, 4);
        start += width;
    }
    return im_ok(im);
}

/* How many keys each row had: its length, less the new tokens; a prompt that is filled up has none. */
static int read_lengths(dlc_import *im, grouped *g)
{
    uint32_t n;
    dlc_value *lengths = f_cast(im, im_in(im, 5), DLC_I64);
    const dlc_expr *total = im_elements(im, f_cast(im, im_in(im, 6), DLC_I64), 0, INT32_MAX, &n);
    if (!total || n != 1 || !lengths)
        return 0;
    const dlc_expr rows[2] = {g->parts[0]->type.dims[0], im_i64(im, 1)};
    lengths = f_reshape(im, lengths, rows, 2);
    g->before = f_sub(im, lengths, f_dim(im, DLC_I64, dlc_addi(im->pool, g->ntokens, -1)));
    g->before = f_max(im, g->before, f_scalar(im, DLC_I64, 0));
    g->nkeys = total[0];
    for (uint32_t i = 0; i < 2; i++)
        g->past[i] = im_in(im, 3 + i);
    if (!g->past[0] != !g->past[1] || (g->past[0] && im_rank(g->past[0]) != 4))
        im_fail(im, DLC_INVALID, "cached keys and values are no pair of rank 4");
    else if (g->past[0])
        g->nkeys = im_size(im, dlc_max(im->pool, g->past[0]->type.dims[2], g->nkeys));
    else if (im_same_dim(im, g->nkeys, g->ntokens, "total_sequence_length and tokens without a cache"))
        g->nkeys = g->ntokens;
    return im_ok(im);
}

/* What was cached, then what is new: at key j of a row, j where that is before the new ones; behind
 * them a short row has zeros. */
static dlc_value *present(dlc_import *im, const grouped *g, uint32_t i)
{
    static const uint8_t perm[4] = {0, 2, 1, 3};
    dlc_value *x = f_transpose(im, g->parts[1 + i], perm);
    if (!g->past[i] || !x)
        return x;
    dlc_value *both[2] = {g->past[i], x};
    dlc_expr cached = g->past[i]->type.dims[2];
    dlc_value *all = f_concat(im, both, 2, 2), *j = f_iota(im, DLC_I64, g->nkeys);
    if (!all || !j)
        return NULL;
    dlc_value *fresh = f_add(im, f_sub(im, j, g->before), f_dim(im, DLC_I64, cached));
    fresh = f_min(im, fresh, f_dim(im, DLC_I64, dlc_addi(im->pool, all->type.dims[2], -1)));
    dlc_value *at = f_where(im, f_binary(im, DLC_OP_LT, j, g->before), j, fresh);
    const dlc_expr *d = all->type.dims, index[4] = {d[0], d[1], g->nkeys, d[3]};
    at = f_insert_axis(im, f_insert_axis(im, at, 1), 3);
    dlc_value *keys = f_node(im, DLC_OP_GATHER_ELEMENTS, F_IN(all, f_expand(im, at, index, 4)),
                             F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 2)));
    dlc_value *end = f_add(im, g->before, f_dim(im, DLC_I64, g->ntokens));
    dlc_value *is_key = f_insert_axis(im, f_insert_axis(im, f_binary(im, DLC_OP_LT, j, end), 1), 3);
    return f_where(im, is_key, keys, f_like(im, keys, 0));
}

/* [n, 1, 1, t, keys]: a token sees keys up to itself, and `window` of them at most. */
static dlc_value *is_seen(dlc_import *im, const grouped *g)
{
    dlc_value *at = f_add(im, f_iota(im, DLC_I64, g->ntokens), g->before);
    dlc_value *j = f_iota(im, DLC_I64, g->nkeys);
    at = f_insert_axis(im, f_insert_axis(im, f_insert_axis(im, at, 2), 1), 1);
    dlc_value *seen = f_binary(im, DLC_OP_LE, j, at);
    if (g->window > 0)
        seen = f_binary(im, DLC_OP_AND, seen,
                        f_binary(im, DLC_OP_LT, f_sub(im, at, f_scalar(im, DLC_I64, (double)g->window)), j));
    return seen;
}

/* [n, 1 or heads, t, keys] as [n, 1 or kv, 1 or group, t, keys] */
static dlc_value *grouped_bias(dlc_import *im, const grouped *g, dlc_value *bias)
{
    int64_t heads;
    const dlc_expr *d = bias->type.dims, many = im_i64(im, g->kv_heads), one = im_i64(im, 1);
    int is_one = im_is_const(im, d[1], &heads) && heads == 1;
    const dlc_expr dims[5] = {d[0], is_one ? one : many,
                              is_one ? one : im_i64(im, g->q_heads / g->kv_heads), d[2], d[3]};
    return f_reshape(im, bias, dims, 5);
}

static dlc_value *attended(dlc_import *im, const grouped *g, dlc_value *k, dlc_value *v)
{
    static const uint8_t perm[5] = {0, 2, 3, 1, 4}, back[5] = {0, 3, 1, 2, 4};
    dlc_value *q = g->parts[0];
    const dlc_expr *d = q->type.dims, sizes[5] = {d[0], d[1], im_i64(im, g->kv_heads),
                                                  im_i64(im, g->q_heads / g->kv_heads), d[3]};
    q = f_transpose(im, f_reshape(im, q, sizes, 5), perm);
    dlc_value *scores = f_matmul(im, q, f_swap_last(im, f_insert_axis(im, k, 2)));
    if (!scores)
        return NULL;
    scores = f_mul(im, scores, f_like(im, scores, g->scale));
    if (g->cap > 0 && scores)
        scores = f_node(im, DLC_OP_SOFT_CAP, F_IN(scores), F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, g->cap)));
    if (im_in(im, 10))
        scores = f_add(im, scores, grouped_bias(im, g, im_in(im, 10)));
    scores = f_where(im, is_seen(im, g), scores, f_like(im, scores, -INFINITY));
    if (!scores)
        return NULL;
    dlc_value *y = f_matmul(im, f_softmax(im, scores, 4), f_insert_axis(im, v, 2));
    const dlc_expr flat[3] = {d[0], d[1], im_i64(im, g->q_heads * g->size)};
    return y ? f_reshape(im, f_transpose(im, y, back), flat, 3) : NULL;
}

void import_group_query_attention(dlc_import *im)
{
    grouped g = {.q_heads = im_int(im, "num_heads", 0),
                 .kv_heads = im_int(im, "kv_num_heads", 0),
                 .window = im_int(im, "local_window_size", -1),
                 .scale = im_float(im, "scale", 0),
                 .cap = im_float(im, "softcap", 0)};
    int64_t rotates = im_int(im, "do_rotary", 0);
    g.rotary = (im_rotary){.cosines = im_in(im, 7), .sines = im_in(im, 8), .positions = im_in(im, 9)};
    g.rotary.interleaved = im_int(im, "rotary_interleaved", 0) != 0;
    int64_t smooth = im_int(im, "smooth_softmax", 0);
    if ((smooth != 0 && smooth != -1) || im_int(im, "qk_output", 0) != 0 || im_in(im, 11)) {
        im_fail(im, DLC_UNSUPPORTED, "smooth_softmax, qk_output or a head's sink");
        return;
    }
    if (!im_in(im, 5) || !im_in(im, 6)) {
        im_fail(im, DLC_INVALID, "seqlens_k and total_sequence_length are wanted");
        return;
    }
    if (!split_tokens(im, &g) || !read_lengths(im, &g))
        return;
    if (g.scale == 0)
        g.scale = 1 / sqrt((double)g.size);
    if (rotates && (!g.rotary.cosines || !g.rotary.sines)) {
        im_fail(im, DLC_INVALID, "do_rotary without caches of cosines and sines");
        return;
    }
    if (rotates && !g.rotary.positions)
        g.rotary.positions = f_add(im, f_iota(im, DLC_I64, g.ntokens), g.before);
    if (rotates && g.rotary.positions) {
        int64_t half;
        g.rotary.part = im_is_const(im, g.rotary.cosines->type.dims[1], &half) ? 2 * half : 0;
        for (uint32_t i = 0; i < 2; i++)
            g.parts[i] = im_rotated(im, g.parts[i], &g.rotary);
    }
    dlc_value *k = present(im, &g, 0), *v = present(im, &g, 1);
    if (!k || !v || !g.parts[0])
        return;
    im->out[0] = attended(im, &g, k, v);
    if (im_wants(im, 1))
        im->out[1] = k;
    if (im_wants(im, 2))
        im->out[2] = v;
}

/* --- embeddings --- */

/* Rows of words, positions and segments, summed and normalised; and how long each row's mask is. */
void import_embed_layer_normalization(dlc_import *im)
{
    dlc_value *ids = im_in(im, 0), *segments = im_in(im, 1), *mask = im_in(im, 7), *at = im_in(im, 8);
    static const uint8_t axis[1] = {1};
    double epsilon = im_float(im, "epsilon", 1e-12f);
    if (!im_only(im, "mask_index_type", 0, 0))
        return;
    if (im_rank(ids) != 2 || !im_in(im, 2) || !im_in(im, 3) || (segments && !im_in(im, 4)) || !im_in(im, 5) ||
        !im_in(im, 6)) {
        im_fail(im, DLC_INVALID, "ids of rank 2, tables of words and positions, scale and bias are wanted");
        return;
    }
    if (!at)
        at = f_iota(im, DLC_I64, ids->type.dims[1]);
    dlc_value *sum = f_add(im, f_gather(im, im_in(im, 2), ids, 0), f_gather(im, im_in(im, 3), at, 0));
    if (segments)
        sum = f_add(im, sum, f_gather(im, im_in(im, 4), segments, 0));
    dlc_value *centred = f_sub(im, sum, f_reduce_last(im, DLC_OP_REDUCE_MEAN, sum, 1, 1));
    dlc_value *variance = f_reduce_last(im, DLC_OP_REDUCE_MEAN, f_mul(im, centred, centred), 1, 1);
    if (!variance)
        return;
    dlc_value *deviation = f_unary(im, DLC_OP_SQRT, f_add(im, variance, f_like(im, variance, epsilon)));
    im->out[0] = f_add(im, f_mul(im, f_div(im, centred, deviation), im_in(im, 5)), im_in(im, 6));
    if (im_wants(im, 1))
        im->out[1] = mask ? f_cast(im, f_reduce(im, DLC_OP_REDUCE_SUM, mask, axis, 1, 0), DLC_I32)
                          : f_expand(im, f_scalar(im, DLC_I32, 0), ids->type.dims, 1);
    if (im_wants(im, 2))
        im->out[2] = sum;
}

/* --- pools --- */

/* Channels between the first and the second dimension, or back to the end. */
static dlc_value *moved(dlc_import *im, dlc_value *x, int to_last)
{
    uint8_t perm[DLC_MAX_RANK];
    if (!x || im_rank(x) < 3)
        return x;
    uint32_t rank = im_rank(x);
    for (uint32_t d = 1; d < rank; d++)
        perm[d] = (uint8_t)(to_last ? (d + 1 < rank ? d + 1 : 1) : d == 1 ? rank - 1 : d - 1);
    perm[0] = 0;
    return f_transpose(im, x, perm);
}

/* Runs the importer of a pool on x alone. */
static void pool_of(dlc_import *im, dlc_value *x, int is_last, void (*import)(dlc_import *im))
{
    dlc_value **in = im->in;
    uint32_t nin = im->nin;
    dlc_value *own[1] = {is_last ? moved(im, x, 0) : x};
    if (!own[0])
        return;
    im->in = own;
    im->nin = 1;
    import(im);
    im->in = in;
    im->nin = nin;
    if (is_last)
        im->out[0] = moved(im, im->out[0], 1);
}

void import_nhwc_max_pool(dlc_import *im)
{
    pool_of(im, im_in(im, 0), 1, import_max_pool);
}

void import_q_linear_average_pool(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *scale = im_as_scalar(im, im_in(im, 1)), *zero = im_as_scalar(im, im_in(im, 2));
    dlc_value *y = f_cast(im, x, DLC_F32);
    if (zero)
        y = f_sub(im, y, f_cast(im, zero, DLC_F32));
    pool_of(im, f_mul(im, y, scale), im_int(im, "channels_last", 0) != 0, import_average_pool);
    im->out[0] = im->out[0] ? im_quantise(im, im->out[0], im_in(im, 3), im_in(im, 4) ? im_in(im, 4) : f_like(im, x, 0))
                            : NULL;
}

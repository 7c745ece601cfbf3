/*
 * Operators of models that keep state between calls: a causal convolution with its last inputs,
 * linear attention with its recurrent matrix (unrolled over a known number of steps), writing into
 * a cache; and the grid of an affine map.
 */
#include "frontend/import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_STEPS = 1024 };

/* --- CausalConvWithState: depthwise over the state and the input, one behind the other --- */

static dlc_value *activated(dlc_import *im, dlc_value *y, const char *activation)
{
    if (activation[0] == 'n')
        return y;
    return f_node(im, DLC_OP_SWISH, F_IN(y), F_ATTRS(dlc_attr_float(DLC_ATTR_ALPHA, 1)));
}

void import_causal_conv(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *w = im_in(im, 1), *bias = im_in(im, 2), *past = im_in(im, 3);
    const char *activation = im_choice(im, "activation", "none", "none|silu|swish");
    int64_t channels, k;
    if (im_rank(x) != 3 || im_rank(w) != 3 || (past && im_rank(past) != 3))
        im_fail(im, DLC_INVALID, "input, weight and state must have rank 3");
    else if (!im_is_const(im, x->type.dims[1], &channels) ||
             !im_is_const(im, w->type.dims[2], &k) || k < 1)
        im_fail(im, DLC_UNSUPPORTED, "channels and kernel size must be known");
    if (!im_ok(im) || !activation)
        return;
    if (!past) {
        const dlc_expr dims[3] = {x->type.dims[0], x->type.dims[1], im_i64(im, k - 1)};
        past = f_expand(im, f_like(im, x, 0), dims, 3);
    } else if (!im_same_dim(im, past->type.dims[2], im_i64(im, k - 1),
                            "the state's length and the kernel size less 1")) {
        return;
    }
    dlc_value *whole = k > 1 ? f_concat(im, (dlc_value *[]){past, x}, 2, 2) : x;
    dlc_value *y =
        f_node(im, DLC_OP_CONV, F_IN(whole, w), F_ATTRS(dlc_attr_int(DLC_ATTR_GROUP, channels)));
    if (bias)
        y = f_add(im, y, f_channel(im, bias, 3, 1));
    im->out[0] = activated(im, y, activation);
    if (im_wants(im, 1))
        im->out[1] = f_slice(im, whole, 2, x->type.dims[2], im_i64(im, k - 1));
}

/* --- LinearAttention: S := exp(g) S + k (b (v - k S)), o := scale q S --- */

typedef struct {
    int64_t q_heads, kv_heads, steps;
    double scale;
    int has_decay, has_delta;
    dlc_value *q, *k, *v, *decay, *beta,
        *state; /* [b, h, t, d]; decay [b, h, t, dk or 1]; beta [b, h or 1, t, 1] */
} linear;

/* [b, t, heads * size] -> [b, heads, t, size] */
static dlc_value *unpack(dlc_import *im, dlc_value *x, int64_t heads)
{
    static const uint8_t perm[4] = {0, 2, 1, 3};
    if (im_rank(x) != 3) {
        im_fail(im, DLC_INVALID, "'%s' has rank %d; batch, time, heads * size is wanted", x->name,
                x->type.rank);
        return NULL;
    }
    const dlc_expr *d = x->type.dims, n = im_i64(im, heads);
    if (!im_same_dim(im, dlc_mod(im->pool, d[2], n), im_i64(im, 0),
                     "the last dimension modulo the number of heads"))
        return NULL;
    const dlc_expr dims[4] = {d[0], d[1], n, im_size(im, dlc_floordiv(im->pool, d[2], n))};
    return f_transpose(im, f_reshape(im, x, dims, 4), perm);
}

static dlc_value *unpack_beta(dlc_import *im, const linear *l, dlc_value *beta)
{
    int64_t last;
    int is_shared = im_rank(beta) == 3 && im_is_const(im, beta->type.dims[2], &last) && last == 1;
    return unpack(im, beta, is_shared ? 1 : l->kv_heads);
}

static void read_rule(dlc_import *im, linear *l)
{
    const char *rule =
        im_choice(im, "update_rule", "gated_delta", "linear|gated|delta|gated_delta");
    l->has_decay = rule && rule[0] == 'g';
    l->has_delta = rule && strstr(rule, "delta") != NULL;
    im_int(im, "chunk_size", 64);
    l->q_heads = im_int(im, "q_num_heads", 0);
    l->kv_heads = im_int(im, "kv_num_heads", 0);
    l->scale = im_float(im, "scale", 0);
    if (l->q_heads < 1 || l->kv_heads < 1 || l->q_heads % l->kv_heads)
        im_fail(im, DLC_INVALID, "%" PRId64 " query heads are no multiple of %" PRId64 " key heads",
                l->q_heads, l->kv_heads);
    else if ((l->has_decay && !im_in(im, 4)) || (l->has_delta && !im_in(im, 5)))
        im_fail(im, DLC_INVALID, "update rule %s wants %s", rule,
                l->has_decay && !im_in(im, 4) ? "decay" : "beta");
}

static int read_linear(dlc_import *im, linear *l)
{
    read_rule(im, l);
    if (!im_ok(im))
        return 0;
    l->q = unpack(im, im_in(im, 0), l->q_heads);
    l->k = unpack(im, im_in(im, 1), l->kv_heads);
    l->v = unpack(im, im_in(im, 2), l->kv_heads);
    l->decay = l->has_decay ? unpack(im, im_in(im, 4), l->kv_heads) : NULL;
    l->beta = l->has_delta ? unpack_beta(im, l, im_in(im, 5)) : NULL;
    if (!im_ok(im) || !l->q || !l->k || !l->v)
        return 0;
    int64_t size;
    if (!im_is_const(im, l->q->type.dims[2], &l->steps) || l->steps < 1 || l->steps > MAX_STEPS)
        im_fail(im, DLC_UNSUPPORTED, "the number of steps must be known, 1 to %d", MAX_STEPS);
    else if (!im_is_const(im, l->q->type.dims[3], &size) || size < 1)
        im_fail(im, DLC_UNSUPPORTED, "the head size must be known");
    else if (l->scale == 0)
        l->scale = 1 / sqrt((double)size);
    const dlc_expr dims[4] = {l->k->type.dims[0], l->k->type.dims[1], l->k->type.dims[3],
                              l->v->type.dims[3]};
    l->state = im_in(im, 3) ? im_in(im, 3) : f_expand(im, f_like(im, l->q, 0), dims, 4);
    return im_ok(im);
}

/* x[:, :, t, :] as a column [b, h, d, 1] or a row [b, h, 1, d] */
static dlc_value *at_step(dlc_import *im, dlc_value *x, int64_t t)
{
    return f_slice(im, x, 2, im_i64(im, t), im_i64(im, 1));
}

static dlc_value *repeat_queries(dlc_import *im, const linear *l, dlc_value *state)
{
    int64_t times = l->q_heads / l->kv_heads;
    if (!state || times == 1)
        return state;
    const dlc_expr *d = state->type.dims;
    const dlc_expr wide[5] = {d[0], d[1], im_i64(im, times), d[2], d[3]};
    const dlc_expr dims[4] = {d[0], dlc_muli(im->pool, d[1], times), d[2], d[3]};
    return f_reshape(im, f_expand(im, f_insert_axis(im, state, 2), wide, 5), dims, 4);
}

static dlc_value *linear_step(dlc_import *im, linear *l, int64_t t)
{
    dlc_value *k = at_step(im, l->k, t), *v = at_step(im, l->v, t), *column = f_swap_last(im, k);
    if (l->has_decay)
        l->state =
            f_mul(im, f_unary(im, DLC_OP_EXP, f_swap_last(im, at_step(im, l->decay, t))), l->state);
    if (l->has_delta)
        v = f_mul(im, at_step(im, l->beta, t), f_sub(im, v, f_matmul(im, k, l->state)));
    l->state = f_add(im, l->state, f_mul(im, column, v));
    dlc_value *o = f_matmul(im, at_step(im, l->q, t), repeat_queries(im, l, l->state));
    return f_mul(im, o, f_like(im, o, l->scale));
}

void import_linear_attention(dlc_import *im)
{
    static const uint8_t perm[4] = {0, 2, 1, 3};
    linear l = {0};
    dlc_dtype dtype = im_in(im, 0)->type.dtype;
    if (!read_linear(im, &l))
        return;
    if (dtype == DLC_F16 || dtype == DLC_BF16) { /* the state adds up over all steps */
        dlc_value **const all[6] = {&l.q, &l.k, &l.v, &l.decay, &l.beta, &l.state};
        for (int i = 0; i < 6; i++)
            *all[i] = *all[i] ? f_cast(im, *all[i], DLC_F32) : NULL;
    }
    dlc_value **steps = dlc_new_array(im->arena, dlc_value *, (size_t)l.steps);
    for (int64_t t = 0; t < l.steps && im_ok(im); t++)
        steps[t] = linear_step(im, &l, t);
    dlc_value *y =
        im_ok(im) ? f_transpose(im, f_concat(im, steps, (uint32_t)l.steps, 2), perm) : NULL;
    if (!y)
        return;
    const dlc_expr *d = y->type.dims, dims[3] = {d[0], d[1], dlc_mul(im->pool, d[2], d[3])};
    im->out[0] = f_cast(im, f_reshape(im, y, dims, 3), dtype);
    if (im_wants(im, 1))
        im->out[1] = f_cast(im, l.state, im_in(im, 3) ? im_in(im, 3)->type.dtype : dtype);
}

/* --- TensorScatter: at position s the update's element s - start, where there is one --- */

void import_tensor_scatter(dlc_import *im)
{
    dlc_value *past = im_in(im, 0), *update = im_in(im, 1), *start = im_in(im, 2);
    const char *mode = im_choice(im, "mode", "linear", "linear|circular");
    uint32_t rank = im_rank(past);
    int axis = im_axis(im, im_int(im, "axis", -2), rank);
    if (axis == 0 || im_rank(update) != rank || (start && im_rank(start) != 1))
        im_fail(im, DLC_INVALID, "axis is %d, ranks are %" PRIu32 " and %" PRIu32, axis, rank,
                im_rank(update));
    if (axis < 0 || !im_ok(im) || !mode)
        return;
    dlc_value *at = f_channel(im, f_iota(im, DLC_I64, past->type.dims[axis]), rank, (uint32_t)axis);
    if (start)
        at = f_sub(im, at, f_channel(im, f_cast(im, start, DLC_I64), rank, 0));
    if (mode[0] == 'c')
        at = f_binary(im, DLC_OP_MOD, at, f_dim(im, DLC_I64, past->type.dims[axis]));
    dlc_value *length = f_dim(im, DLC_I64, update->type.dims[axis]),
              *nil = f_scalar(im, DLC_I64, 0);
    dlc_value *written = f_binary(im, DLC_OP_AND, f_binary(im, DLC_OP_LE, nil, at),
                                  f_binary(im, DLC_OP_LT, at, length));
    dlc_value *index = f_where(im, written, at, nil);
    dlc_value *picked =
        f_node(im, DLC_OP_GATHER_ELEMENTS, F_IN(update, f_expand(im, index, past->type.dims, rank)),
               F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis)));
    im->out[0] = f_where(im, written, picked, past);
}

/* --- AffineGrid: theta applied to evenly spaced positions in [-1, 1], the last dimension first ---
 */

/* Positions along one dimension of n points, shaped to meet axis `axis` of `rank`. */
static dlc_value *positions(dlc_import *im, dlc_dtype dtype, dlc_expr n, int64_t align,
                            uint32_t rank, uint32_t axis)
{
    dlc_value *i = f_iota(im, dtype, n), *count = f_dim(im, dtype, n);
    dlc_value *gaps = align ? f_sub(im, count, f_scalar(im, dtype, 1)) : count;
    dlc_value *step = f_div(im, f_scalar(im, dtype, 2), gaps);
    dlc_value *first =
        align ? f_scalar(im, dtype, -1)
              : f_sub(im, f_div(im, step, f_scalar(im, dtype, 2)), f_scalar(im, dtype, 1));
    return f_channel(im, f_add(im, f_mul(im, i, step), first), rank, axis);
}

void import_affine_grid(dlc_import *im)
{
    dlc_value *theta = im_in(im, 0);
    int64_t align = im_int(im, "align_corners", 0);
    uint32_t n;
    const dlc_expr *size = im_elements(im, im_in(im, 1), 0, INT32_MAX, &n);
    if (!size)
        return;
    if ((n != 4 && n != 5) || im_rank(theta) != 3 ||
        !im_same_dim(im, theta->type.dims[1], im_i64(im, n - 2), "rows of theta") ||
        !im_same_dim(im, theta->type.dims[2], im_i64(im, n - 1), "columns of theta")) {
        if (im_ok(im))
            im_fail(im, DLC_INVALID,
                    "%" PRIu32 " sizes and theta of rank %" PRIu32 "; 4 or 5 and 3 are wanted", n,
                    im_rank(theta));
        return;
    }
    uint32_t spatial = n - 2, rank = spatial + 2;
    dlc_expr column[5];
    for (uint32_t i = 0; i < rank; i++)
        column[i] = im_i64(im, 1);
    column[0] = theta->type.dims[0];
    column[rank - 1] = theta->type.dims[1];
    dlc_value *grid =
        f_reshape(im, f_slice(im, theta, 2, im_i64(im, spatial), im_i64(im, 1)), column, rank);
    for (uint32_t k = 0; k < spatial; k++) { /* x is the last spatial dimension */
        uint32_t axis = spatial - k;
        dlc_value *at = positions(im, theta->type.dtype, size[axis + 1], align, rank, axis);
        grid = f_add(
            im, grid,
            f_mul(im,
                  f_reshape(im, f_slice(im, theta, 2, im_i64(im, k), im_i64(im, 1)), column, rank),
                  at));
    }
    if (grid && im_same_dim(im, size[0], theta->type.dims[0], "the batch of size and theta"))
        im->out[0] = grid;
}

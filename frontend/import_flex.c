/*
 * FlexAttention: attention whose scores and probabilities the model changes by graphs of its own.
 * Each of them is a body on import.c's stack; what follows it waits in `flex`.
 */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <math.h>

typedef struct {
    dlc_value *v; /* in the type of the softmax, [b, heads, s, size] */
    const Onnx__GraphProto *prob_mod;
    dlc_dtype dtype; /* of the result */
    int64_t group;   /* query heads of each head of keys */
} flex;

/* [b, heads, s, size] -> [b, heads * group, s, size] */
static dlc_value *repeated(dlc_import *im, dlc_value *x, int64_t group)
{
    if (!x || group == 1)
        return x;
    const dlc_expr *d = x->type.dims, many = im_i64(im, group);
    const dlc_expr one[5] = {d[0], d[1], im_i64(im, 1), d[2], d[3]},
                   all[5] = {d[0], d[1], many, d[2], d[3]},
                   flat[4] = {d[0], dlc_mul(im->pool, d[1], many), d[2], d[3]};
    return f_reshape(im, f_expand(im, f_reshape(im, x, one, 5), all, 5), flat, 4);
}

static void finish(dlc_import *im, const flex *f, dlc_value *probabilities)
{
    im->out[0] = f_cast(im, f_matmul(im, probabilities, f->v), f->dtype);
}

static void probabilities_done(dlc_import *im, void *state, dlc_value **values)
{
    finish(im, state, values[0]);
}

static void scores_done(dlc_import *im, void *state, dlc_value **values)
{
    const flex *f = state;
    dlc_value *probabilities = values[0] ? f_softmax(im, values[0], 3) : NULL;
    if (probabilities && f->prob_mod)
        im_push_graph(im, f->prob_mod, &probabilities, 1, probabilities_done, state);
    else
        finish(im, f, probabilities);
}

static const Onnx__GraphProto *modifier(dlc_import *im, const char *name)
{
    const Onnx__AttributeProto *attribute = im_attribute(im, name);
    if (attribute && !attribute->g)
        im_fail(im, DLC_INVALID, "attribute '%s' holds no graph", name);
    return attribute ? attribute->g : NULL;
}

static int read_groups(dlc_import *im, int64_t *group)
{
    int64_t heads, of_keys;
    for (uint32_t i = 0; i < 3; i++) {
        if (im_rank(im_in(im, i)) != 4)
            im_fail(im, DLC_INVALID, "input %" PRIu32 " has rank %" PRIu32 "; 4 is wanted", i,
                    im_rank(im_in(im, i)));
    }
    if (!im_ok(im))
        return 0;
    dlc_expr q = im_in(im, 0)->type.dims[1], k = im_in(im, 1)->type.dims[1];
    *group = 1;
    if (q == k)
        return 1;
    if (!im_is_const(im, q, &heads) || !im_is_const(im, k, &of_keys))
        im_fail(im, DLC_UNSUPPORTED, "numbers of heads that only the run knows");
    else if (of_keys < 1 || heads % of_keys)
        im_fail(im, DLC_INVALID, "%" PRId64 " heads of queries for %" PRId64 " of keys", heads, of_keys);
    else
        *group = heads / of_keys;
    return im_ok(im);
}

void import_flex_attention(dlc_import *im)
{
    flex *f = dlc_new(im->arena, flex);
    dlc_value *q = im_in(im, 0), *k = im_in(im, 1);
    const Onnx__GraphProto *score_mod = modifier(im, "score_mod");
    int64_t size;
    f->prob_mod = modifier(im, "prob_mod");
    f->dtype = q->type.dtype;
    dlc_dtype wide = im_has(im, "softmax_precision")
                         ? im_dtype(im, im_int(im, "softmax_precision", 1), "softmax_precision")
                     : f->dtype == DLC_F64 ? DLC_F64 : DLC_F32;
    if (!read_groups(im, &f->group))
        return;
    if (!im_is_const(im, q->type.dims[3], &size) && !im_has(im, "scale"))
        im_fail(im, DLC_UNSUPPORTED, "a head size that only the run knows, and no scale");
    if (!im_ok(im))
        return;
    double root = sqrtf((float)im_float(im, "scale", 1 / sqrt((double)size)));
    q = f_mul(im, q, f_like(im, q, root));
    k = f_mul(im, k, f_like(im, k, root));
    dlc_value *scores = f_matmul(im, q, f_swap_last(im, repeated(im, k, f->group)));
    scores = f_cast(im, scores, wide);
    f->v = f_cast(im, repeated(im, im_in(im, 2), f->group), wide);
    if (!scores || !f->v)
        return;
    if (score_mod)
        im_push_graph(im, score_mod, &scores, 1, scores_done, f);
    else
        scores_done(im, f, &scores);
}

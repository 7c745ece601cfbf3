/* Losses: minus the (weighted) log probability of each label, then none, sum or mean of them. */
#include "frontend/import.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    dlc_value *target, *weight; /* weight: per class, or NULL */
    const char *reduction;
    int has_ignored;
    int64_t ignored;
} loss;

static int read_loss(dlc_import *im, loss *l)
{
    l->has_ignored = im_has(im, "ignore_index");
    l->ignored = im_int(im, "ignore_index", 0);
    l->reduction = im_choice(im, "reduction", "mean", "none|sum|mean");
    l->target = im_in(im, 1);
    l->weight = im_in(im, 2);
    if (im_rank(im_in(im, 0)) < 2 || im_rank(l->target) + 1 != im_rank(im_in(im, 0)))
        im_fail(im, DLC_INVALID,
                "scores and labels have ranks %" PRIu32 " and %" PRIu32
                "; n,c,… and n,… are wanted",
                im_rank(im_in(im, 0)), im_rank(l->target));
    else if (l->weight && im_rank(l->weight) != 1)
        im_fail(im, DLC_INVALID, "the weights have rank %" PRIu32 "; one per class is wanted",
                im_rank(l->weight));
    return im_ok(im);
}

static dlc_value *reduce_all(dlc_import *im, dlc_opcode op, dlc_value *x)
{
    return x ? f_reduce_last(im, op, x, im_rank(x), 0) : NULL;
}

/* Per label: its class's weight, 0 where the label is ignored. NULL when all weigh 1. */
static dlc_value *label_weights(dlc_import *im, const loss *l, dlc_value *labels,
                                dlc_value *is_ignored, dlc_dtype dtype)
{
    dlc_value *w = l->weight ? f_gather(im, l->weight, labels, 0) : NULL;
    if (!is_ignored)
        return w;
    return f_where(im, is_ignored, f_scalar(im, dtype, 0), w ? w : f_scalar(im, dtype, 1));
}

static dlc_value *log_likelihood(dlc_import *im, const loss *l, dlc_value *x)
{
    dlc_value *is_ignored = NULL, *labels = l->target;
    if (l->has_ignored) {
        is_ignored = f_binary(im, DLC_OP_EQ, labels, f_like(im, labels, (double)l->ignored));
        labels = f_where(im, is_ignored, f_like(im, labels, 0), labels); /* any class that exists */
    }
    dlc_value *weights = label_weights(im, l, labels, is_ignored, x->type.dtype);
    dlc_value *picked = f_node(im, DLC_OP_GATHER_ELEMENTS, F_IN(x, f_insert_axis(im, labels, 1)),
                               F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 1)));
    dlc_value *each = f_unary(im, DLC_OP_NEG, picked ? f_drop_axis(im, picked, 1) : NULL);
    if (weights)
        each = f_mul(im, each, weights);
    if (is_ignored) /* even where the score is infinite */
        each = f_where(im, is_ignored, f_like(im, each, 0), each);
    if (strcmp(l->reduction, "none") == 0)
        return each;
    if (strcmp(l->reduction, "mean") == 0 && !weights)
        return reduce_all(im, DLC_OP_REDUCE_MEAN, each);
    dlc_value *sum = reduce_all(im, DLC_OP_REDUCE_SUM, each);
    return strcmp(l->reduction, "sum") == 0
               ? sum
               : f_div(im, sum, reduce_all(im, DLC_OP_REDUCE_SUM, weights));
}

void import_nll_loss(dlc_import *im)
{
    loss l;
    if (read_loss(im, &l))
        im->out[0] = log_likelihood(im, &l, im_in(im, 0));
}

void import_cross_entropy_loss(dlc_import *im)
{
    loss l;
    static const uint8_t classes[1] = {1};
    if (!read_loss(im, &l))
        return;
    dlc_value *x = im_in(im, 0);
    dlc_value *t = f_sub(im, x, f_reduce(im, DLC_OP_REDUCE_MAX, x, classes, 1, 1));
    dlc_value *sum = f_reduce(im, DLC_OP_REDUCE_SUM, f_unary(im, DLC_OP_EXP, t), classes, 1, 1);
    dlc_value *log_prob = f_sub(im, t, f_unary(im, DLC_OP_LOG, sum));
    im->out[0] = log_prob ? log_likelihood(im, &l, log_prob) : NULL;
    if (im_wants(im, 1))
        im->out[1] = log_prob;
}

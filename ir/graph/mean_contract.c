/* Meanings of matmul and einsum: sums of products over shared axes. */
#include "ir/graph/mean.h"

#include <string.h>

static int is_one(const dlc_mean *mean, dlc_expr dim)
{
    int64_t value;
    return dlc_expr_is_int(mean->graph->pool, dim, &value) && value == 1;
}

/* Load of a matrix operand in the accumulator's type: batches broadcast, row and column are always
 * axes of their own. */
static dlc_expr load_matrix(dlc_mean *mean, uint32_t input, const dlc_expr *index, uint8_t rank)
{
    const dlc_type *type = dlc_mean_in(mean, input), *y = dlc_mean_result(mean);
    dlc_expr at[DLC_MAX_RANK];
    for (uint8_t d = 0; d < type->rank; d++) {
        uint32_t to = d + rank - type->rank;
        at[d] = d + 2 < type->rank ? dlc_mean_broadcast_index(mean, type->dims[d], y->dims[to], index[to]) : index[to];
    }
    return dlc_expr_cast(mean->kernel->pool, dlc_mean_wide(dlc_mean_result(mean)->dtype),
                         dlc_mean_load(mean, input, at));
}

/* y[b…, i, j] = sum(k) a[b…, i, k] * b[b…, k, j] */
dlc_status dlc_mean_matmul(dlc_mean *mean)
{
    const dlc_type *a = dlc_mean_in(mean, 0), *y = dlc_mean_result(mean);
    dlc_ids axes = {0}, reduce = {0};
    dlc_expr left[DLC_MAX_RANK], right[DLC_MAX_RANK];
    uint8_t nbatch = (uint8_t)(y->rank - 2);
    for (uint8_t d = 0; d < nbatch; d++) {
        char name[] = {'b', (char)('0' + d), 0};
        left[d] = right[d] = dlc_mean_axis(mean, name, dlc_mean_dim(mean, y->dims[d]), &axes);
    }
    left[nbatch] = dlc_mean_axis(mean, "i", dlc_mean_dim(mean, y->dims[nbatch]), &axes);
    right[nbatch + 1] = dlc_mean_axis(mean, "j", dlc_mean_dim(mean, y->dims[nbatch + 1]), &axes);
    left[nbatch + 1] = right[nbatch] =
        dlc_mean_axis(mean, "k", dlc_mean_in_dim(mean, 0, a->rank - 1u), &reduce);
    dlc_expr product = dlc_mul(mean->kernel->pool, load_matrix(mean, 0, left, y->rank),
                               load_matrix(mean, 1, right, y->rank));
    return dlc_mean_finish_reduce(mean, &axes, &reduce, DLC_REDUCE_SUM, product);
}

/* --- einsum: a letter is an axis --- */

typedef struct {
    dlc_expr size[128];  /* graph pool */
    dlc_expr index[128]; /* axis expression, 0: not made yet */
} letters;

/* The size of a letter is that of any operand where it is not 1. */
static void size_letters(dlc_mean *mean, const char *equation, letters *l)
{
    const char *at = equation;
    for (uint32_t i = 0; i < mean->node->ninputs; i++, at++) {
        for (const dlc_expr *dim = dlc_mean_in(mean, i)->dims; *at != ',' && *at != '-';
             at++, dim++)
            if (!l->size[(unsigned char)*at] || is_one(mean, l->size[(unsigned char)*at]))
                l->size[(unsigned char)*at] = *dim;
    }
}

static void letter_axis(dlc_mean *mean, letters *l, unsigned char letter, dlc_ids *axes)
{
    char name[] = {(char)letter, 0};
    if (!l->index[letter])
        l->index[letter] = dlc_mean_axis(mean, name, dlc_mean_dim(mean, l->size[letter]), axes);
}

/* Load of operand i, whose letters start at `at`, in the accumulator's type. */
static dlc_expr load_operand(dlc_mean *mean, const letters *l, uint32_t input, const char *at)
{
    const dlc_type *type = dlc_mean_in(mean, input);
    dlc_expr index[DLC_MAX_RANK], zero = dlc_expr_i64(mean->kernel->pool, 0);
    for (uint8_t d = 0; d < type->rank; d++) {
        unsigned char letter = (unsigned char)at[d];
        int broadcasts = is_one(mean, type->dims[d]) && !is_one(mean, l->size[letter]);
        index[d] = broadcasts ? zero : l->index[letter];
    }
    return dlc_expr_cast(mean->kernel->pool, dlc_mean_wide(type->dtype),
                         dlc_mean_load(mean, input, index));
}

/* Letters of the output are the axes, in its order; all others are summed over. */
dlc_status dlc_mean_einsum(dlc_mean *mean)
{
    const char *equation = dlc_node_text(mean->node, DLC_ATTR_EQUATION, ""),
               *output = strstr(equation, "->");
    letters l = {0};
    dlc_ids axes = {0}, reduce = {0};
    size_letters(mean, equation, &l);
    for (const char *at = output + 2; *at; at++)
        letter_axis(mean, &l, (unsigned char)*at, &axes);
    for (const char *at = equation; at < output; at++)
        if (*at != ',')
            letter_axis(mean, &l, (unsigned char)*at, &reduce);
    dlc_expr product = 0;
    const char *at = equation;
    for (uint32_t i = 0; i < mean->node->ninputs; i++) {
        dlc_expr operand = load_operand(mean, &l, i, at);
        product = product ? dlc_mul(mean->kernel->pool, product, operand) : operand;
        at += dlc_mean_in(mean, i)->rank + 1;
    }
    return dlc_mean_finish_reduce(mean, &axes, &reduce, DLC_REDUCE_SUM, product);
}

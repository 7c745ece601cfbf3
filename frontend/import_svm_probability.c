/*
 * Probabilities of more than two classes from those of all pairs: the p that least contradicts them, found by going round the
 * classes until no row is off by more than 0.005 / classes, at most 100 times (Wu, Lin, Weng: Probability estimates for multi-class
 * classification by pairwise coupling, 2004, second approach). Rows that are done stay; all rows go through one loop.
 */
#include "frontend/import_ml.h"
#include "frontend/regions.h"

enum { MOST_ROUNDS = 100 };

static dlc_value *column(dlc_import *im, dlc_value *x, uint32_t at)
{
    return f_slice(im, x, 1, im_i64(im, at), im_i64(im, 1));
}

/* [n, k, k]: entry (i, j) is the probability of i where it is i or j; 0 on the diagonal. */
static dlc_value *of_pairs(dlc_import *im, dlc_value *pairs, uint32_t k)
{
    dlc_value **columns = dlc_new_array(im->arena, dlc_value *, (size_t)k * k);
    const dlc_expr dims[3] = {pairs->type.dims[0], im_i64(im, k), im_i64(im, k)};
    for (uint32_t i = 0, p = 0; i < k; i++) {
        for (uint32_t j = i + 1; j < k; j++, p++) {
            columns[i * k + j] = column(im, pairs, p);
            columns[j * k + i] = f_sub(im, f_like(im, pairs, 1), columns[i * k + j]);
        }
        columns[i * k + i] = f_mul(im, column(im, pairs, 0), f_like(im, pairs, 0));
    }
    return f_reshape(im, f_concat(im, columns, k * k, 1), dims, 3);
}

/* What p minimises: p q p, [n, k, k]. */
static dlc_value *form_of(dlc_import *im, dlc_value *r, uint32_t k)
{
    static const uint8_t first[1] = {1};
    double *diagonal = dlc_new_array(im->arena, double, (size_t)k * k);
    for (uint32_t i = 0; i < k; i++)
        diagonal[i * k + i] = 1;
    dlc_value *sums = r ? f_reduce(im, DLC_OP_REDUCE_SUM, f_mul(im, r, r), first, 1, 1) : NULL;
    dlc_value *off = r ? f_mul(im, r, f_swap_last(im, r)) : NULL;
    return sums ? f_sub(im, f_mul(im, sums, ml_table(im, r->type.dtype, diagonal, k, k)), off) : NULL;
}

/* One class after the other; p and q p are [n, k], p q p is [n, 1]. */
static dlc_value *round_of(dlc_import *im, dlc_value *q, dlc_value *p, dlc_value *qp, dlc_value *pqp, uint32_t k)
{
    for (uint32_t t = 0; t < k && p && qp && pqp; t++) {
        double *unit = dlc_new_array(im->arena, double, k);
        unit[t] = 1;
        dlc_value *row = f_drop_axis(im, column(im, q, t), 1), *qp_t = column(im, qp, t);
        dlc_value *q_tt = row ? column(im, row, t) : NULL;
        dlc_value *step = f_div(im, f_sub(im, pqp, qp_t), q_tt), *whole = f_add(im, step, f_like(im, p, 1));
        dlc_value *more = f_add(im, f_mul(im, step, q_tt), f_mul(im, qp_t, f_like(im, p, 2)));
        pqp = f_div(im, f_div(im, f_add(im, pqp, f_mul(im, step, more)), whole), whole);
        qp = f_div(im, f_add(im, qp, f_mul(im, step, row)), whole);
        p = f_div(im, f_add(im, p, f_mul(im, step, ml_table(im, p->type.dtype, unit, 1, k))), whole);
    }
    return p;
}

dlc_value *ml_couple(dlc_import *im, dlc_value *pairs, uint32_t k)
{
    im_loop loop;
    dlc_value *q = form_of(im, of_pairs(im, pairs, k), k);
    const dlc_expr dims[2] = {pairs->type.dims[0], im_i64(im, k)}, rows[2] = {dims[0], im_i64(im, 1)};
    dlc_value *even = f_expand(im, f_like(im, pairs, 1.0 / k), dims, 2);
    dlc_value *first = f_scalar(im, DLC_BOOL, 1), *all = f_expand(im, f_like(im, pairs, 1), rows, 2);
    if (!q || !even || !all || !im_loop_begin(im, &loop, im_i64(im, MOST_ROUNDS), 0))
        return NULL;
    dlc_value *p = f_state(im, &loop, even), *goes_on = f_state(im, &loop, first), *open = f_state(im, &loop, all); /* 1: not done */
    dlc_expr holds = goes_on ? im_condition(im, goes_on) : 0;
    dlc_value *qp = p ? f_reduce_last(im, DLC_OP_REDUCE_SUM, f_mul(im, q, f_insert_axis(im, p, 1)), 1, 0) : NULL;
    dlc_value *pqp = qp ? f_reduce_last(im, DLC_OP_REDUCE_SUM, f_mul(im, p, qp), 1, 1) : NULL;
    if (!holds || !pqp || !open)
        return NULL;
    im_loop_while(im, &loop, holds);
    dlc_value *off = f_reduce_last(im, DLC_OP_REDUCE_MAX, f_unary(im, DLC_OP_ABS, f_sub(im, qp, pqp)), 1, 1);
    dlc_value *is_open = f_binary(im, DLC_OP_LE, f_like(im, off, 0.005 / k), off);
    is_open = f_binary(im, DLC_OP_AND, is_open, f_binary(im, DLC_OP_LT, f_like(im, open, 0), open));
    dlc_value *still = f_cast(im, is_open, open->type.dtype), *next = f_where(im, is_open, round_of(im, q, p, qp, pqp, k), p);
    dlc_value *any = still ? f_reduce_last(im, DLC_OP_REDUCE_MAX, still, 2, 0) : NULL;
    dlc_value *more = any ? f_binary(im, DLC_OP_LT, f_like(im, any, 0), any) : NULL;
    if (!more || !next || !im_loop_end(im, &loop))
        return NULL;
    (void)f_final(im, &loop, goes_on, more);
    (void)f_final(im, &loop, open, still);
    return f_final(im, &loop, p, next);
}

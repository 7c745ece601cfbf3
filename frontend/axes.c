/*
 * Axes that only the run knows. The rank is known, and how many axes there are; which ones is an
 * expression, and so are the sizes that follow from it: dimension i of a sum that keeps its
 * dimensions is select(axis == i, 1, d). A view of three dimensions, before, at and behind an axis,
 * is one of these, so what works along an axis needs no form of its own.
 */
#include "frontend/import.h"

#include <inttypes.h>
#include <string.h>

static void check_distinct(dlc_import *im, const im_axis_list *axes)
{
    for (uint32_t k = 0; k < axes->n; k++) {
        for (uint32_t l = 0; l < k; l++)
            dlc_graph_require(im->graph,
                              dlc_expr2(im->pool, DLC_EXPR_NE, axes->at[k], axes->at[l]),
                              "node '%s': an axis is given twice", im->origin->name);
    }
}

static int read_known(dlc_import *im, const dlc_expr *elements, uint32_t n, uint32_t rank,
                      im_axis_list *axes)
{
    int64_t given[DLC_MAX_RANK];
    uint8_t sorted[DLC_MAX_RANK];
    for (uint32_t k = 0; k < n; k++) {
        if (!im_is_const(im, elements[k], &given[k]))
            return 0;
    }
    axes->is_known = 1;
    if (im_axes(im, given, n, rank, sorted)) {
        for (uint32_t k = 0; k < n; k++)
            axes->at[k] = im_i64(im, given[k] < 0 ? given[k] + rank : given[k]);
    }
    return 1;
}

int im_axis_input(dlc_import *im, dlc_value *value, uint32_t rank, im_axis_list *axes)
{
    *axes = (im_axis_list){0};
    const dlc_expr *elements =
        im_elements(im, value, -(int64_t)rank, (int64_t)rank - 1, &axes->n);
    if (elements && axes->n > rank)
        im_fail(im, DLC_INVALID, "%" PRIu32 " axes are given for %" PRIu32 " dimensions", axes->n,
                rank);
    if (!im_ok(im) || read_known(im, elements, axes->n, rank, axes))
        return im_ok(im);
    for (uint32_t k = 0; k < axes->n; k++) {
        dlc_expr a = elements[k], zero = im_i64(im, 0);
        axes->at[k] =
            im_simple(im, dlc_select(im->pool, dlc_lt(im->pool, a, zero), dlc_addi(im->pool, a, rank), a));
    }
    check_distinct(im, axes);
    return im_ok(im);
}

int im_axes_of(dlc_import *im, const im_axis_list *axes, uint8_t *sorted)
{
    uint32_t n = 0;
    int64_t at;
    for (uint32_t i = 0; i < DLC_MAX_RANK && axes->is_known; i++) {
        for (uint32_t k = 0; k < axes->n; k++) {
            if (im_is_const(im, axes->at[k], &at) && at == i)
                sorted[n++] = (uint8_t)i;
        }
    }
    return axes->is_known;
}

dlc_expr im_axis_pick(dlc_import *im, const im_axis_list *axes, const dlc_expr *of, uint32_t i,
                      dlc_expr otherwise)
{
    dlc_expr result = otherwise;
    for (uint32_t k = axes->n; k-- > 0;)
        result = dlc_select(im->pool, dlc_eq(im->pool, axes->at[k], im_i64(im, i)), of[k], result);
    return result;
}

static dlc_expr is_axis(dlc_import *im, const im_axis_list *axes, uint32_t i)
{
    dlc_expr result = dlc_expr_bool(im->pool, 0);
    for (uint32_t k = 0; k < axes->n; k++)
        result = dlc_expr2(im->pool, DLC_EXPR_OR, result,
                           dlc_eq(im->pool, axes->at[k], im_i64(im, i)));
    return result;
}

/* How many axes are below i. */
static dlc_expr axes_below(dlc_import *im, const im_axis_list *axes, uint32_t i)
{
    dlc_expr result = im_i64(im, 0), one = im_i64(im, 1), zero = result;
    for (uint32_t k = 0; k < axes->n; k++)
        result = dlc_add(im->pool, result,
                         dlc_select(im->pool, dlc_lt(im->pool, axes->at[k], im_i64(im, i)), one, zero));
    return result;
}

void im_axes_kept(dlc_import *im, const im_axis_list *axes, const dlc_expr *dims, uint32_t rank,
                  dlc_expr *out)
{
    for (uint32_t i = 0; i < rank; i++)
        out[i] = im_size(im, dlc_select(im->pool, is_axis(im, axes, i), im_i64(im, 1), dims[i]));
}

/* Dimension j comes from one of dims[j..j+n]: the one that is no axis and has i - j axes below. */
void im_axes_dropped(dlc_import *im, const im_axis_list *axes, const dlc_expr *dims, uint32_t rank,
                     dlc_expr *out)
{
    for (uint32_t j = 0; j + axes->n < rank; j++) {
        dlc_expr result = dims[j + axes->n];
        for (uint32_t i = j + axes->n; i-- > j;) {
            dlc_expr fits = dlc_eq(im->pool, axes_below(im, axes, i), im_i64(im, i - j));
            fits = dlc_expr2(im->pool, DLC_EXPR_AND, fits,
                             dlc_expr1(im->pool, DLC_EXPR_NOT, is_axis(im, axes, i)));
            result = dlc_select(im->pool, fits, dims[i], result);
        }
        out[j] = im_size(im, result);
    }
}

/* Dimension i is 1 or the one of `dims` that as many dimensions less than i stand before. */
void im_axes_inserted(dlc_import *im, const im_axis_list *axes, const dlc_expr *dims,
                      uint32_t rank, dlc_expr *out)
{
    for (uint32_t i = 0; i < rank + axes->n; i++) {
        uint32_t least = i < axes->n ? 0 : i - axes->n, most = i < rank ? i : rank;
        dlc_expr result = im_i64(im, 1), below = axes_below(im, axes, i);
        for (uint32_t from = least; from <= most && from < rank; from++)
            result = dlc_select(im->pool, dlc_eq(im->pool, below, im_i64(im, i - from)), dims[from],
                                result);
        out[i] = im_size(im, dlc_select(im->pool, is_axis(im, axes, i), im_i64(im, 1), result));
    }
}

dlc_value *im_around_axis(dlc_import *im, dlc_value *x, dlc_expr axis)
{
    if (!x)
        return NULL;
    dlc_expr one = im_i64(im, 1), dims[3] = {one, one, one};
    for (uint32_t i = 0; i < im_rank(x); i++) {
        dlc_expr at = im_i64(im, i), d = x->type.dims[i];
        dlc_pool *pool = im->pool;
        dims[0] = dlc_mul(pool, dims[0], dlc_select(pool, dlc_lt(pool, at, axis), d, one));
        dims[1] = dlc_select(pool, dlc_eq(pool, at, axis), d, dims[1]);
        dims[2] = dlc_mul(pool, dims[2], dlc_select(pool, dlc_lt(pool, axis, at), d, one));
    }
    for (uint32_t i = 0; i < 3; i++)
        dims[i] = im_size(im, dims[i]);
    return f_reshape(im, x, dims, 3);
}

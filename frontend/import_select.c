/*
 * What is selected by comparing all with all: NonMaxSuppression and Unique. Unique's sorting is TopK's, which
 * leaves equal elements in their order, and NonZero counts what is left; the rest is gathers.
 */
#include "frontend/import.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

/* All elements along `axis`, sorted: values and where they were. False when refused. */
static int sorted(dlc_import *im, dlc_value *x, uint32_t axis, int largest, dlc_value **values,
                  dlc_value **places)
{
    if (!x)
        return 0;
    const dlc_attr attrs[4] = {
        dlc_attr_int(DLC_ATTR_AXIS, axis), dlc_attr_int(DLC_ATTR_LARGEST, largest),
        dlc_attr_int(DLC_ATTR_SORTED, 1), dlc_attr_dims(DLC_ATTR_DIMS, &x->type.dims[axis], 1)};
    dlc_node *node = f_node_with(im, DLC_OP_TOPK, &x, 1, 2, attrs, 4);
    *values = node ? node->outputs[0] : NULL;
    *places = node ? node->outputs[1] : NULL;
    return node != NULL;
}

/* --- NonMaxSuppression --- */

static dlc_value *limit(dlc_import *im, uint32_t input, dlc_dtype dtype, double otherwise)
{
    dlc_value *value = im_in(im, input);
    return value ? f_reshape(im, f_cast(im, value, dtype), NULL, 0)
                 : f_scalar(im, dtype, otherwise);
}

void import_non_max_suppression(dlc_import *im)
{
    dlc_value *boxes = im_in(im, 0), *scores = im_in(im, 1);
    int64_t is_center = im_int(im, "center_point_box", 0);
    if (im_rank(boxes) != 3 || im_rank(scores) != 3) {
        im_fail(im, DLC_INVALID, "boxes b,n,4 and scores b,c,n are wanted");
        return;
    }
    if (!im_same_dim(im, boxes->type.dims[1], scores->type.dims[2], "boxes and their scores"))
        return;
    dlc_value *all = f_dim(im, DLC_I64, scores->type.dims[2]);
    dlc_value *limited = f_max(im, f_min(im, limit(im, 2, DLC_I64, 0), all), f_scalar(im, DLC_I64, 0));
    uint32_t n;
    const dlc_expr *most = limited ? im_elements(im, limited, 0, INT32_MAX, &n) : NULL;
    int64_t none;
    if (!most)
        return;
    dlc_value *judged = f_cast(im, scores, DLC_F32);
    if (!im_in(im, 4)) /* nothing limits scores, so that -inf, which is above no limit, may be kept, too */
        judged = f_max(im, judged, f_scalar(im, DLC_F32, -(double)FLT_MAX));
    dlc_value *kept = f_node(im, DLC_OP_SUPPRESS,
                             F_IN(f_cast(im, boxes, DLC_F32), judged, limit(im, 3, DLC_F32, 0), limit(im, 4, DLC_F32, -INFINITY)),
                             F_ATTRS(dlc_attr_int(DLC_ATTR_CENTER, is_center != 0), dlc_attr_dims(DLC_ATTR_DIMS, most, 1)));
    if (!kept)
        return;
    if (dlc_expr_is_int(im->graph->pool, *most, &none) && !none) { /* what the operator says without its third input */
        dlc_expr dims[2] = {*most, dlc_expr_i64(im->graph->pool, 3)};
        im->out[0] = f_expand(im, f_scalar(im, DLC_I64, 0), dims, 2);
        return;
    }
    /* Where they stand among all places says their batch and class. */
    dlc_expr nplaces = im_product(im, kept->type.dims, 3);
    kept = f_reshape(im, kept, &nplaces, 1);
    dlc_value *at = kept ? im_nonzero(im, f_binary(im, DLC_OP_LE, f_like(im, kept, 0), kept)) : NULL;
    at = at ? f_drop_axis(im, at, 0) : NULL;
    if (!at)
        return;
    dlc_value *class_places = f_dim(im, DLC_I64, *most), *nclasses = f_dim(im, DLC_I64, scores->type.dims[1]);
    dlc_value *contest = f_binary(im, DLC_OP_DIV, at, class_places);
    dlc_value *columns[3] = {f_binary(im, DLC_OP_DIV, contest, nclasses), f_binary(im, DLC_OP_MOD, contest, nclasses), f_gather(im, kept, at, 0)};
    for (uint32_t i = 0; i < 3; i++)
        if (!(columns[i] = f_insert_axis(im, columns[i], 1)))
            return;
    im->out[0] = f_concat(im, columns, 3, 1);
}

/* --- Unique: runs of equal slices in sorted order --- */

enum { MOST_KEYS = 1024 };

/* Places of rows [n, keys] in their order: by the last key first, each sort keeping equals. */
static dlc_value *order_of(dlc_import *im, dlc_value *rows, int64_t nkeys)
{
    dlc_value *order = NULL, *values, *places;
    for (int64_t k = nkeys; k-- > 0;) {
        dlc_value *key = f_drop_axis(im, f_slice(im, rows, 1, im_i64(im, k), im_i64(im, 1)), 1);
        key = order ? f_gather(im, key, order, 0) : key;
        if (!sorted(im, key, 0, 0, &values, &places))
            return NULL;
        order = order ? f_gather(im, order, places, 0) : places;
    }
    return order;
}

/* a and b differ in an element, NaN being equal to NaN: bool [n] of rows [n, keys] */
static dlc_value *rows_differ(dlc_import *im, dlc_value *a, dlc_value *b)
{
    dlc_value *same = f_binary(im, DLC_OP_EQ, a, b);
    if (a && dlc_is_float(a->type.dtype))
        same = f_binary(im, DLC_OP_OR, same,
                        f_binary(im, DLC_OP_AND, f_unary(im, DLC_OP_IS_NAN, a),
                                 f_unary(im, DLC_OP_IS_NAN, b)));
    return f_reduce_last(im, DLC_OP_REDUCE_MAX, f_unary(im, DLC_OP_NOT, same), 1, 0);
}

/* x as rows [n, keys]: along the axis, or of single elements. */
static dlc_value *as_rows(dlc_import *im, dlc_value *x, int axis)
{
    uint8_t perm[DLC_MAX_RANK];
    uint32_t rank = im_rank(x);
    dlc_expr dims[2] = {im_product(im, x->type.dims, rank), im_i64(im, 1)};
    for (uint32_t i = 0, k = 1; axis >= 0 && i < rank; i++) {
        if (i != (uint32_t)axis)
            perm[k++] = (uint8_t)i;
    }
    if (axis >= 0) {
        perm[0] = (uint8_t)axis;
        x = f_transpose(im, x, perm);
        dims[0] = x ? x->type.dims[0] : 0;
        dims[1] = x ? im_product(im, x->type.dims + 1, rank - 1) : 0;
    }
    return x ? f_reshape(im, x, dims, 2) : NULL;
}

typedef struct {
    dlc_value *firsts, *runs, *counts; /* by run: where it first stood, how long it is; by row: its
                                          run */
} runs;

/* Runs of the sorted rows, in their order. */
static int find_runs(dlc_import *im, dlc_value *rows, dlc_value *order, runs *r)
{
    dlc_expr n = rows->type.dims[0], one = im_i64(im, 1);
    dlc_value *in_order = f_gather(im, rows, order, 0);
    dlc_value *place = f_iota(im, DLC_I64, n), *nil = f_like(im, place, 0);
    dlc_value *before = f_gather(
        im, in_order, f_max(im, f_sub(im, place, f_like(im, place, 1)), nil), 0);
    dlc_value *begins = f_binary(im, DLC_OP_OR, f_binary(im, DLC_OP_EQ, place, nil),
                                 rows_differ(im, in_order, before));
    dlc_value *starts = begins ? f_drop_axis(im, im_nonzero(im, begins), 0) : NULL;
    if (!starts)
        return 0;
    dlc_value *end = f_reshape(im, f_dim(im, DLC_I64, n), &one, 1);
    dlc_value *ends = f_concat(
        im,
        (dlc_value *const[]){f_slice(im, starts, 0, one, dlc_addi(im->pool, starts->type.dims[0], -1)),
                             end},
        2, 0);
    dlc_value *number = f_sub(im,
                              f_node(im, DLC_OP_CUMSUM, F_IN(f_cast(im, begins, DLC_I64)),
                                     F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 0),
                                             dlc_attr_int(DLC_ATTR_EXCLUSIVE, 0),
                                             dlc_attr_int(DLC_ATTR_REVERSE, 0))),
                              f_like(im, place, 1));
    r->firsts = f_gather(im, order, starts, 0);
    r->counts = f_sub(im, ends, starts);
    r->runs = f_node(im, DLC_OP_SCATTER_ELEMENTS, F_IN(number, order, number),
                     F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 0),
                             dlc_attr_text(DLC_ATTR_REDUCTION, "none")));
    return im_ok(im) && r->runs && r->counts;
}

/* Runs in the order in which they first stood. */
static void by_appearance(dlc_import *im, runs *r)
{
    dlc_value *firsts, *which;
    if (!sorted(im, r->firsts, 0, 0, &firsts, &which))
        return;
    dlc_value *place = f_iota(im, DLC_I64, firsts->type.dims[0]);
    dlc_value *new_number = f_node(im, DLC_OP_SCATTER_ELEMENTS, F_IN(place, which, place),
                                   F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 0),
                                           dlc_attr_text(DLC_ATTR_REDUCTION, "none")));
    r->firsts = firsts;
    r->counts = f_gather(im, r->counts, which, 0);
    r->runs = f_gather(im, new_number, r->runs, 0);
}

void import_unique(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t is_sorted = im_int(im, "sorted", 1), nkeys;
    int axis = im_has(im, "axis") ? im_axis(im, im_int(im, "axis", 0), im_rank(x)) : -1;
    runs r;
    if (!im_ok(im))
        return;
    dlc_value *rows = as_rows(im, x, axis);
    if (!rows)
        return;
    if (!im_is_const(im, rows->type.dims[1], &nkeys) || nkeys > MOST_KEYS || nkeys < 1) {
        im_fail(im, DLC_UNSUPPORTED,
                "slices along the axis have to be of a known size, of 1 to %d elements", MOST_KEYS);
        return;
    }
    dlc_value *order = order_of(im, rows, nkeys);
    if (!order || !find_runs(im, rows, order, &r))
        return;
    if (!is_sorted)
        by_appearance(im, &r);
    im->out[0] = axis >= 0 ? f_gather(im, x, r.firsts, (uint32_t)axis)
                           : f_drop_axis(im, f_gather(im, rows, r.firsts, 0), 1);
    dlc_value *const rest[3] = {r.firsts, r.runs, r.counts};
    for (uint32_t o = 1; o < im->nout; o++)
        im->out[o] = rest[o - 1];
}

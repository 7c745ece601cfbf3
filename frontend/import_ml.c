/*
 * Classical machine learning (ai.onnx.ml) but trees and support vectors: scaling, encoding and
 * linear models, as products and selects.
 */
#include "frontend/import_ml.h"
#include "frontend/import_string.h"
#include "frontend/regions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- shared --- */

dlc_value *ml_features(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    if (im_rank(x) != 1 && im_rank(x) != 2) {
        im_fail(im, DLC_INVALID, "the input has rank %" PRIu32 "; rows of features are wanted",
                im_rank(x));
        return NULL;
    }
    if (im_rank(x) == 1)
        x = f_insert_axis(im, x, 0);
    return x && x->type.dtype == DLC_F64 ? x : f_cast(im, x, DLC_F32);
}

dlc_value *ml_table(dlc_import *im, dlc_dtype dtype, const double *values, uint32_t rows,
                    uint32_t columns)
{
    dlc_type type = {.dtype = dtype, .rank = 2, .dims = {im_i64(im, rows), im_i64(im, columns)}};
    size_t n = (size_t)rows * columns, each = dlc_dtype_bytes(dtype);
    char *bytes = dlc_arena_alloc(im->arena, n * each + 1, 64);
    for (size_t i = 0; i < n; i++) {
        dlc_scalar scalar = {.i = 0};
        if (dlc_is_float(dtype))
            scalar.f = dlc_round_to(dtype, values[i]);
        else
            scalar.i = (int64_t)values[i];
        dlc_scalar_write(dtype, bytes + i * each, scalar);
    }
    return dlc_graph_constant(im->graph, "table", &type, bytes, n * each);
}

const double *ml_floats(dlc_import *im, const char *attribute, uint32_t *n)
{
    *n = 0;
    const float *floats = im_floats(im, attribute, n);
    if (!floats)
        return NULL;
    double *wide = dlc_new_array(im->arena, double, *n + 1);
    for (uint32_t i = 0; i < *n; i++)
        wide[i] = floats[i];
    return wide;
}

const char *ml_transform(dlc_import *im)
{
    return im_choice(im, "post_transform", "NONE", "NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT");
}

/* Scores near zero stay that, the others are exponentials over their sum. */
static dlc_value *softmax_zero(dlc_import *im, dlc_value *x)
{
    dlc_value *top = f_reduce_last(im, DLC_OP_REDUCE_MAX, x, 1, 1);
    dlc_value *is_large =
        f_binary(im, DLC_OP_LT, f_like(im, x, 1e-7f), f_unary(im, DLC_OP_ABS, x));
    dlc_value *small = f_mul(im, x, f_unary(im, DLC_OP_EXP, f_unary(im, DLC_OP_NEG, top)));
    dlc_value *e = f_where(im, is_large, f_unary(im, DLC_OP_EXP, f_sub(im, x, top)), small);
    dlc_value *sum = f_reduce_last(im, DLC_OP_REDUCE_SUM, e, 1, 1);
    dlc_value *is_none = f_binary(im, DLC_OP_EQ, sum, f_like(im, sum, 0));
    return f_where(im, is_none, f_like(im, e, 0.5), f_div(im, e, sum));
}

/* sqrt 2 * the inverse of erf at 2 p - 1, by Winitzki's formula as ONNX Runtime has it */
static dlc_value *probit(dlc_import *im, dlc_value *p)
{
    dlc_value *x = f_sub(im, f_mul(im, p, f_like(im, p, 2)), f_like(im, p, 1));
    dlc_value *one = f_like(im, x, 1);
    dlc_value *log = f_unary(im, DLC_OP_LOG, f_mul(im, f_sub(im, one, x), f_add(im, one, x)));
    dlc_value *v = f_add(im, f_mul(im, log, f_like(im, x, 0.5)),
                         f_like(im, x, 2 / (3.14159265358979323846 * 0.147)));
    dlc_value *v2 = f_mul(im, log, f_like(im, x, 1 / 0.147));
    dlc_value *root = f_unary(im, DLC_OP_SQRT, f_sub(im, f_mul(im, v, v), v2));
    dlc_value *size = f_unary(im, DLC_OP_SQRT, f_sub(im, root, v));
    dlc_value *sign = f_where(im, f_binary(im, DLC_OP_LT, x, f_like(im, x, 0)), f_like(im, x, -1),
                              f_like(im, x, 1));
    return f_mul(im, f_mul(im, size, sign), f_like(im, x, 1.41421356));
}

dlc_value *ml_transformed(dlc_import *im, dlc_value *scores, const char *transform)
{
    if (!scores || !transform)
        return NULL;
    if (strcmp(transform, "LOGISTIC") == 0)
        scores = f_unary(im, DLC_OP_SIGMOID, scores);
    else if (strcmp(transform, "SOFTMAX") == 0)
        scores = f_softmax(im, scores, im_rank(scores) - 1);
    else if (strcmp(transform, "SOFTMAX_ZERO") == 0)
        scores = softmax_zero(im, scores);
    else if (strcmp(transform, "PROBIT") == 0)
        scores = probit(im, scores);
    return f_cast(im, scores, DLC_F32);
}

int ml_read_labels(dlc_import *im, const char *ints, const char *texts, ml_labels *labels)
{
    uint32_t n = 0, ntexts = 0;
    *labels = (ml_labels){.ints = im_ints(im, ints, &n)};
    const char **names = im_texts(im, texts, &ntexts);
    int has_texts = names && ntexts;
    labels->n = has_texts ? ntexts : n;
    labels->texts = has_texts ? names : NULL;
    if (!labels->n)
        im_fail(im, DLC_INVALID, "names no class labels");
    return im_ok(im);
}

dlc_value *ml_label_of(dlc_import *im, const ml_labels *labels, dlc_value *classes)
{
    if (!im_wants(im, 0))
        return NULL;
    dlc_value *names = labels->texts ? im_strings(im, labels->texts, labels->n, 1)
                                     : dlc_graph_ints(im->graph, labels->ints, labels->n);
    const dlc_expr dims[1] = {im_i64(im, labels->n)};
    return f_gather(im, f_reshape(im, names, dims, 1), classes, 0);
}

dlc_value *ml_greatest(dlc_import *im, dlc_value *scores)
{
    return f_node(im, DLC_OP_ARGMAX, F_IN(scores),
                  F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, 1), dlc_attr_int(DLC_ATTR_KEEPDIMS, 0),
                          dlc_attr_int(DLC_ATTR_LAST, 0)));
}

dlc_value *ml_pair(dlc_import *im, dlc_value *score, int is_probability)
{
    dlc_value *other = is_probability ? f_sub(im, f_like(im, score, 1), score)
                                      : f_unary(im, DLC_OP_NEG, score);
    return other ? f_concat(im, (dlc_value *const[]){other, score}, 2, 1) : NULL;
}

/* --- features --- */

/* A vector of an attribute that meets the features: as many as there are, or one. */
static dlc_value *per_feature(dlc_import *im, const dlc_value *x, const double *values, uint32_t n,
                              const char *what)
{
    int64_t features;
    dlc_expr one = im_i64(im, n);
    if (n != 1 && im_is_const(im, x->type.dims[im_rank(x) - 1], &features) && features != n) {
        im_fail(im, DLC_INVALID, "%" PRIu32 " of '%s' for %" PRId64 " features", n, what, features);
        return NULL;
    }
    return f_reshape(im, ml_table(im, x->type.dtype, values, 1, n), n == 1 ? NULL : &one, n != 1);
}

void import_scaler(dlc_import *im)
{
    uint32_t noffsets, nscales;
    const double *offsets = ml_floats(im, "offset", &noffsets),
                 *scales = ml_floats(im, "scale", &nscales);
    dlc_value *x = f_cast(im, im_in(im, 0), im_in(im, 0)->type.dtype == DLC_F64 ? DLC_F64 : DLC_F32);
    if (!x || im_rank(x) < 1)
        im_fail(im, DLC_INVALID, "the input is a scalar; features are wanted");
    if (!im_ok(im))
        return;
    if (offsets)
        x = f_sub(im, x, per_feature(im, x, offsets, noffsets, "offset"));
    if (scales && x)
        x = f_mul(im, x, per_feature(im, x, scales, nscales, "scale"));
    im->out[0] = f_cast(im, x, DLC_F32);
}

void import_binarizer(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *threshold = f_like(im, x, im_float(im, "threshold", 0));
    im->out[0] = f_cast(im, f_binary(im, DLC_OP_LT, threshold, x), x->type.dtype);
}

void import_normalizer(dlc_import *im)
{
    const char *norm = im_choice(im, "norm", "MAX", "MAX|L1|L2");
    dlc_value *x = ml_features(im), *size = NULL;
    if (!norm || !x)
        return;
    if (norm[0] == 'M')
        size = f_reduce_last(im, DLC_OP_REDUCE_MAX, f_unary(im, DLC_OP_ABS, x), 1, 1);
    else if (norm[1] == '1')
        size = f_reduce_last(im, DLC_OP_REDUCE_SUM, f_unary(im, DLC_OP_ABS, x), 1, 1);
    else
        size = f_unary(im, DLC_OP_SQRT,
                       f_reduce_last(im, DLC_OP_REDUCE_SUM, f_mul(im, x, x), 1, 1));
    /* a row of zeros stays that */
    dlc_value *is_none = f_binary(im, DLC_OP_EQ, size, f_like(im, size, 0));
    dlc_value *y = f_div(im, x, f_where(im, is_none, f_like(im, size, 1), size));
    im->out[0] = f_reshape(im, f_cast(im, y, DLC_F32), im_in(im, 0)->type.dims,
                           im_rank(im_in(im, 0)));
}

static dlc_value *int_vector(dlc_import *im, const int64_t *values, uint32_t n, dlc_dtype dtype)
{
    const dlc_expr dims[1] = {im_i64(im, n)};
    dlc_value *v = f_cast(im, dlc_graph_ints(im->graph, values, n), dtype);
    return n == 1 ? f_reshape(im, v, NULL, 0) : f_reshape(im, v, dims, 1);
}

void import_imputer(dlc_import *im)
{
    uint32_t nfloats, nints = 0;
    dlc_value *x = im_in(im, 0);
    const double *floats = ml_floats(im, "imputed_value_floats", &nfloats);
    const int64_t *ints = im_ints(im, "imputed_value_int64s", &nints);
    double replaced = im_float(im, "replaced_value_float", 0);
    int64_t replaced_int = im_int(im, "replaced_value_int64", 0);
    int is_float = dlc_is_float(x->type.dtype);
    if (is_float ? !nfloats : !nints || !ints)
        im_fail(im, DLC_INVALID, "names no imputed values for %s", dlc_dtypes[x->type.dtype].text);
    if (!im_ok(im))
        return;
    dlc_value *values = is_float ? per_feature(im, x, floats, nfloats, "imputed_value_floats")
                                 : int_vector(im, ints, nints, x->type.dtype);
    dlc_value *is_missing =
        is_float && isnan(replaced)
            ? f_unary(im, DLC_OP_IS_NAN, x)
            : f_binary(im, DLC_OP_EQ, x, f_like(im, x, is_float ? replaced : (double)replaced_int));
    im->out[0] = f_where(im, is_missing, values, x);
}

/* The features of these numbers: always a matrix. */
void import_array_feature_extractor(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *indices = im_in(im, 1);
    const dlc_expr n = im_product(im, indices->type.dims, im_rank(indices));
    if (im_rank(x) < 1) {
        im_fail(im, DLC_INVALID, "the input is a scalar; features are wanted");
        return;
    }
    if (im_rank(x) == 1)
        x = f_insert_axis(im, x, 0);
    im->out[0] = x ? f_gather(im, x, f_reshape(im, indices, &n, 1), im_rank(x) - 1) : NULL;
}

/* Features side by side, each cut or filled up with zeros to its stated width. */
void import_feature_vectorizer(dlc_import *im)
{
    uint32_t n = 0;
    const int64_t *widths = im_ints(im, "inputdimensions", &n);
    dlc_value **parts = dlc_new_array(im->arena, dlc_value *, im->nin + 1);
    if (!widths || n != im->nin) {
        im_fail(im, DLC_INVALID, "inputdimensions has %" PRIu32 " entries for %" PRIu32 " inputs",
                n, im->nin);
        return;
    }
    for (uint32_t i = 0; i < im->nin; i++) {
        dlc_value *x = im->in[i];
        if (im_rank(x) == 1)
            x = f_insert_axis(im, x, 1);
        if (!x || im_rank(x) != 2) {
            im_fail(im, DLC_INVALID, "input %" PRIu32 " has no rows of features", i);
            return;
        }
        dlc_expr zero = im_i64(im, 0);
        dlc_expr more = im_simple(im, dlc_sub(im->pool, im_i64(im, widths[i]), x->type.dims[1]));
        const dlc_expr pads[4] = {zero, zero, zero, more}; /* a negative pad cuts */
        x = f_cast(im, x, DLC_F32);
        parts[i] = more == zero ? x
                                : f_node(im, DLC_OP_PAD, F_IN(x),
                                         F_ATTRS(dlc_attr_dims(DLC_ATTR_PADS, pads, 4),
                                                 dlc_attr_text(DLC_ATTR_MODE, "constant")));
    }
    im->out[0] = f_concat(im, parts, im->nin, 1);
}

/* --- tables of categories: each element is compared with all of them --- */

dlc_value *ml_matches(dlc_import *im, dlc_value *x, dlc_value *keys, int with_nan)
{
    dlc_value *wide = f_insert_axis(im, x, im_rank(x));
    dlc_value *same = f_binary(im, DLC_OP_EQ, wide, keys);
    if (!x || !dlc_is_float(x->type.dtype) || !with_nan)
        return same;
    return f_binary(im, DLC_OP_OR, same,
                    f_binary(im, DLC_OP_AND, f_unary(im, DLC_OP_IS_NAN, wide),
                             f_unary(im, DLC_OP_IS_NAN, keys)));
}

/* Without rows of zeros a category that is not named is an error, which the run tells. */
static void require_known(dlc_import *im, dlc_value *encoded)
{
    dlc_value *each = f_reduce_last(im, DLC_OP_REDUCE_MAX, encoded, 1, 0);
    dlc_value *least = each ? f_reduce_last(im, DLC_OP_REDUCE_MIN, each, im_rank(each), 0) : NULL;
    dlc_value *all = least ? f_binary(im, DLC_OP_LT, f_like(im, least, 0), least) : NULL;
    dlc_expr holds = all ? im_condition(im, all) : 0;
    if (holds)
        dlc_graph_require(im->graph, holds, "node '%s': a category is none of those it names", im->origin->name);
}

void import_one_hot_encoder(dlc_import *im)
{
    uint32_t n = 0, ntexts = 0;
    const int64_t *cats = im_ints(im, "cats_int64s", &n);
    const char **texts = im_texts(im, "cats_strings", &ntexts);
    int64_t zeros = im_int(im, "zeros", 1);
    int is_text = dlc_is_text(im_in(im, 0)->type.dtype);
    if (is_text ? !ntexts : !cats || !n)
        im_fail(im, DLC_INVALID, "names no categories for %s", dlc_dtypes[im_in(im, 0)->type.dtype].text);
    if (!im_ok(im))
        return;
    const dlc_expr dims[1] = {im_i64(im, is_text ? ntexts : n)};
    dlc_value *keys = is_text ? im_numbers(im, im_strings(im, texts, ntexts, 1)) : dlc_graph_ints(im->graph, cats, n);
    dlc_value *x = f_cast(im, im_numbers(im, im_in(im, 0)), DLC_I64);
    im->out[0] = f_cast(im, ml_matches(im, x, f_reshape(im, keys, dims, 1), 0), DLC_F32);
    if (im->out[0] && !zeros)
        require_known(im, im->out[0]);
}

/* --- linear models --- */

/* x coefficients^T + intercepts, the coefficients a row per target */
static dlc_value *linear(dlc_import *im, dlc_value *x, uint32_t *ntargets)
{
    uint32_t n, nintercepts;
    const double *coefficients = ml_floats(im, "coefficients", &n),
                 *intercepts = ml_floats(im, "intercepts", &nintercepts);
    if (!coefficients || !n || !*ntargets || n % *ntargets) {
        im_fail(im, DLC_INVALID, "%" PRIu32 " coefficients for %" PRIu32 " targets", n, *ntargets);
        return NULL;
    }
    if (intercepts && nintercepts && nintercepts != *ntargets && nintercepts != 1) {
        im_fail(im, DLC_INVALID, "%" PRIu32 " intercepts for %" PRIu32 " targets", nintercepts,
                *ntargets);
        return NULL;
    }
    dlc_value *w = ml_table(im, x->type.dtype, coefficients, *ntargets, n / *ntargets);
    dlc_value *y = f_matmul(im, x, f_swap_last(im, w));
    return intercepts && nintercepts
               ? f_add(im, y, ml_table(im, x->type.dtype, intercepts, 1, nintercepts))
               : y;
}

void import_linear_regressor(dlc_import *im)
{
    const char *transform = ml_transform(im);
    uint32_t targets = (uint32_t)im_int(im, "targets", 1);
    dlc_value *x = ml_features(im);
    im->out[0] = x && transform ? ml_transformed(im, linear(im, x, &targets), transform) : NULL;
}

/* One row of coefficients for two labels gives both scores, s and -s. */
void import_linear_classifier(dlc_import *im)
{
    const char *transform = ml_transform(im);
    ml_labels labels;
    uint32_t n = 0, targets;
    dlc_value *x = ml_features(im);
    im_int(im, "multi_class", 0); /* nobody has given it a meaning */
    (void)im_floats(im, "intercepts", &n);
    if (!x || !transform || !ml_read_labels(im, "classlabels_ints", "classlabels_strings", &labels))
        return;
    targets = n ? n : labels.n == 2 ? 1 : labels.n;
    dlc_value *scores = linear(im, x, &targets);
    if (targets == 1 && labels.n == 2)
        scores = ml_pair(im, scores, 0);
    else if (targets != labels.n)
        im_fail(im, DLC_UNSUPPORTED, "%" PRIu32 " rows of coefficients for %" PRIu32 " labels",
                targets, labels.n);
    if (!scores || !im_ok(im))
        return;
    im->out[0] = ml_label_of(im, &labels, ml_greatest(im, scores));
    if (im_wants(im, 1))
        im->out[1] = ml_transformed(im, scores, transform);
}

/* A map from label to score per row is the matrix of scores itself, its columns in the labels'
 * order. */
void import_zip_map(dlc_import *im)
{
    uint32_t n;
    (void)im_ints(im, "classlabels_int64s", &n);
    (void)im_texts(im, "classlabels_strings", &n);
    im->out[0] = f_cast(im, im_in(im, 0), DLC_F32);
    im_note(im, "its maps are given as a tensor: a row each, columns in the labels' order");
}

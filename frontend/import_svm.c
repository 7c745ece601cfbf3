/*
 * Support vector machines: the kernels of all samples with all vectors are one product, the
 * decisions another one with the coefficients spread over pairs of classes.
 */
#include "frontend/import_ml.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    const char *kind; /* of kernel */
    double gamma, offset, degree;
} kernel;

static int read_kernel(dlc_import *im, kernel *k)
{
    uint32_t n;
    const double *params = ml_floats(im, "kernel_params", &n);
    *k = (kernel){.kind = im_choice(im, "kernel_type", "LINEAR", "LINEAR|POLY|RBF|SIGMOID")};
    if (params && n != 3 && n)
        im_fail(im, DLC_INVALID, "kernel_params has %" PRIu32 " entries; 3 are wanted", n);
    else if (params && n)
        k->gamma = params[0], k->offset = params[1], k->degree = params[2];
    return im_ok(im) && k->kind;
}

/* [n, vectors]: each sample with each vector */
static dlc_value *kernels(dlc_import *im, const kernel *k, dlc_value *x, dlc_value *vectors)
{
    dlc_value *dot = f_matmul(im, x, f_swap_last(im, vectors));
    if (!dot || k->kind[0] == 'L')
        return dot;
    if (k->kind[0] == 'R') { /* exp(-gamma |x - v|^2): differences, not |x|^2 - 2xv + |v|^2 */
        dlc_value *apart = f_sub(im, f_insert_axis(im, x, 1), vectors);
        dlc_value *square = f_reduce_last(im, DLC_OP_REDUCE_SUM, f_mul(im, apart, apart), 1, 0);
        return f_unary(im, DLC_OP_EXP, f_mul(im, square, f_like(im, dot, -k->gamma)));
    }
    dlc_value *s = f_add(im, f_mul(im, dot, f_like(im, dot, k->gamma)), f_like(im, dot, k->offset));
    return k->kind[0] == 'P' ? f_binary(im, DLC_OP_POW, s, f_like(im, s, (double)(int64_t)k->degree))
                             : f_unary(im, DLC_OP_TANH, s);
}

/* The attribute's numbers as rows x columns; columns follow from their count. */
static dlc_value *rows_of(dlc_import *im, const char *attribute, uint32_t rows, dlc_dtype dtype)
{
    uint32_t n;
    const double *values = ml_floats(im, attribute, &n);
    if (values && rows && n && n % rows == 0)
        return ml_table(im, dtype, values, rows, n / rows);
    im_fail(im, DLC_INVALID, "'%s' has %" PRIu32 " numbers for %" PRIu32 " rows", attribute, n,
            rows);
    return NULL;
}

void import_svm_regressor(dlc_import *im)
{
    kernel k;
    uint32_t nrho;
    const char *transform = ml_transform(im);
    int64_t nvectors = im_int(im, "n_supports", 0), is_one_class = im_int(im, "one_class", 0);
    const double *rho = ml_floats(im, "rho", &nrho);
    dlc_value *x = ml_features(im), *y;
    if (!read_kernel(im, &k) || !x || !transform)
        return;
    if (nvectors < 0 || nvectors > INT32_MAX || !rho || !nrho) {
        im_fail(im, DLC_INVALID, "n_supports is %" PRId64 ", rho has %" PRIu32 " entries", nvectors,
                nrho);
        return;
    }
    dlc_value *coefficients = rows_of(im, "coefficients", 1, x->type.dtype);
    if (nvectors) {
        dlc_value *vectors = rows_of(im, "support_vectors", (uint32_t)nvectors, x->type.dtype);
        x = vectors ? kernels(im, &k, x, vectors) : NULL;
    } else {
        uint32_t n;
        (void)im_floats(im, "support_vectors", &n);
    }
    y = f_matmul(im, x, coefficients ? f_swap_last(im, coefficients) : NULL);
    y = f_add(im, y, f_like(im, y, rho[0]));
    if (is_one_class)
        y = f_where(im, f_binary(im, DLC_OP_LT, f_like(im, y, 0), y), f_like(im, y, 1),
                    f_like(im, y, -1));
    im->out[0] = ml_transformed(im, y, transform);
}

/* --- classifiers --- */

typedef struct {
    ml_labels labels;
    const int64_t *per_class;
    const double *rho, *coefficients, *prob_a, *prob_b;
    uint32_t nclasses, nvectors, npairs, nrho, nprob;
} machine;

/* Coefficients of pair (i, j), i < j: those of i's vectors in row j - 1, of j's in row i. */
static dlc_value *pair_table(dlc_import *im, const machine *m, dlc_dtype dtype)
{
    double *table = dlc_new_array(im->arena, double, (size_t)m->npairs * m->nvectors + 1);
    uint32_t *class_of = dlc_new_array(im->arena, uint32_t, m->nvectors + 1);
    for (uint32_t c = 0, v = 0; c < m->nclasses; c++) {
        for (int64_t k = 0; k < m->per_class[c]; k++)
            class_of[v++] = c;
    }
    for (uint32_t i = 0, p = 0; i < m->nclasses; i++) {
        for (uint32_t j = i + 1; j < m->nclasses; j++, p++) {
            for (uint32_t v = 0; v < m->nvectors; v++) {
                uint32_t row = class_of[v] == i ? j - 1 : i;
                if (class_of[v] == i || class_of[v] == j)
                    table[(size_t)p * m->nvectors + v] =
                        m->coefficients[(size_t)row * m->nvectors + v];
            }
        }
    }
    return ml_table(im, dtype, table, m->npairs, m->nvectors);
}

/* [n, classes]: how many pairs each class wins; a decision above 0 is the first's. */
static dlc_value *votes_of(dlc_import *im, const machine *m, dlc_value *decisions)
{
    double *first = dlc_new_array(im->arena, double, (size_t)m->npairs * m->nclasses + 1);
    double *second = dlc_new_array(im->arena, double, (size_t)m->npairs * m->nclasses + 1);
    for (uint32_t i = 0, p = 0; i < m->nclasses; i++) {
        for (uint32_t j = i + 1; j < m->nclasses; j++, p++) {
            first[p * m->nclasses + i] = 1;
            second[p * m->nclasses + j] = 1;
        }
    }
    dlc_dtype dtype = decisions->type.dtype;
    dlc_value *won = f_cast(
        im, f_binary(im, DLC_OP_LT, f_like(im, decisions, 0), decisions), dtype);
    dlc_value *lost = f_sub(im, f_like(im, won, 1), won);
    return f_add(im, f_matmul(im, won, ml_table(im, dtype, first, m->npairs, m->nclasses)),
                 f_matmul(im, lost, ml_table(im, dtype, second, m->npairs, m->nclasses)));
}

/* Of each pair 1 / (1 + exp(a s + b)) for the first; two classes are a pair. */
static dlc_value *probabilities(dlc_import *im, const machine *m, dlc_value *s)
{
    dlc_value *a = ml_table(im, s->type.dtype, m->prob_a, 1, m->npairs), *b = ml_table(im, s->type.dtype, m->prob_b, 1, m->npairs);
    dlc_value *z = f_add(im, f_mul(im, s, a), b);
    dlc_value *p = f_clip(im, f_unary(im, DLC_OP_SIGMOID, f_unary(im, DLC_OP_NEG, z)), 1e-7,
                          1 - 1e-7);
    if (m->nclasses > 2)
        return p ? ml_couple(im, p, m->nclasses) : NULL;
    dlc_value *other = f_sub(im, f_like(im, p, 1), p);
    return p && other ? f_concat(im, (dlc_value *const[]){p, other}, 2, 1) : NULL;
}

static int read_machine(dlc_import *im, machine *m)
{
    uint32_t n = 0, ncoefficients, nb;
    if (!ml_read_labels(im, "classlabels_ints", "classlabels_strings", &m->labels))
        return 0;
    m->nclasses = m->labels.n;
    m->npairs = m->nclasses * (m->nclasses - 1) / 2;
    m->per_class = im_ints(im, "vectors_per_class", &n);
    m->rho = ml_floats(im, "rho", &m->nrho);
    m->coefficients = ml_floats(im, "coefficients", &ncoefficients);
    m->prob_a = ml_floats(im, "prob_a", &m->nprob);
    m->prob_b = ml_floats(im, "prob_b", &nb);
    for (uint32_t i = 0; m->per_class && i < n; i++)
        m->nvectors += m->per_class[i] > 0 ? (uint32_t)m->per_class[i] : 0;
    uint32_t wanted = m->nvectors ? (m->nclasses - 1) * m->nvectors : 1;
    if (m->nvectors && (n != m->nclasses || m->nrho != m->npairs || ncoefficients != wanted))
        im_fail(im, DLC_INVALID,
                "%" PRIu32 " classes, %" PRIu32 " counts of vectors, %" PRIu32 " of rho, %" PRIu32
                " coefficients do not belong together",
                m->nclasses, n, m->nrho, ncoefficients);
    else if (!m->nrho || nb != m->nprob)
        im_fail(im, DLC_INVALID, "rho has %" PRIu32 " entries, prob_a %" PRIu32, m->nrho, m->nprob);
    else if (m->nprob && m->nprob != m->npairs)
        im_fail(im, DLC_INVALID, "prob_a has %" PRIu32 " entries for %" PRIu32 " pairs of classes", m->nprob, m->npairs);
    return im_ok(im);
}

void import_svm_classifier(dlc_import *im)
{
    kernel k;
    machine m = {0};
    const char *transform = ml_transform(im);
    dlc_value *x = ml_features(im), *scores, *winner;
    if (!read_kernel(im, &k) || !x || !transform || !read_machine(im, &m))
        return;
    dlc_dtype dtype = x->type.dtype;
    if (m.nvectors) {
        dlc_value *vectors = rows_of(im, "support_vectors", m.nvectors, dtype);
        dlc_value *all = vectors ? kernels(im, &k, x, vectors) : NULL;
        scores = f_matmul(im, all, f_swap_last(im, pair_table(im, &m, dtype)));
        scores = f_add(im, scores, ml_table(im, dtype, m.rho, 1, m.npairs));
        winner = scores ? ml_greatest(im, votes_of(im, &m, scores)) : NULL;
        if (m.nprob && scores)
            scores = probabilities(im, &m, scores);
        else if (m.npairs == 1 && scores)
            scores = ml_transformed(im, ml_pair(im, scores, 0), transform);
        else
            scores = ml_transformed(im, scores, transform);
    } else {
        uint32_t n;
        (void)im_floats(im, "support_vectors", &n);
        dlc_value *w = rows_of(im, "coefficients", m.nclasses, dtype);
        scores = f_matmul(im, x, w ? f_swap_last(im, w) : NULL);
        scores = f_add(im, scores, f_like(im, scores, m.rho[0]));
        winner = scores ? ml_greatest(im, scores) : NULL;
        scores = ml_transformed(im, scores, transform);
    }
    if (!winner)
        return;
    im->out[0] = ml_label_of(im, &m.labels, winner);
    if (im_wants(im, 1))
        im->out[1] = f_cast(im, scores, DLC_F32);
}

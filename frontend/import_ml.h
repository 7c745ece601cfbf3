/* What the importers of ai.onnx.ml share: tables of numbers, scores and labels. */
#ifndef DLC_FRONTEND_IMPORT_ML_H
#define DLC_FRONTEND_IMPORT_ML_H

#include "frontend/import.h"

/* Input 0 as [n, features] in f32, or in f64 where it is that; a vector is one row. */
dlc_value *ml_features(dlc_import *im);
/* A constant of rows x columns; the numbers are copied. */
dlc_value *ml_table(dlc_import *im, dlc_dtype dtype, const double *values, uint32_t rows,
                    uint32_t columns);
/* The attribute's floats as doubles; NULL: absent. */
const double *ml_floats(dlc_import *im, const char *attribute, uint32_t *n);
/* The attribute `post_transform` on scores [n, classes], as f32. */
dlc_value *ml_transformed(dlc_import *im, dlc_value *scores, const char *transform);
const char *ml_transform(dlc_import *im);
/* The labels a classifier names; n of them. */
typedef struct {
    const int64_t *ints;
    const char **texts; /* NULL: ints */
    uint32_t n;
} ml_labels;
int ml_read_labels(dlc_import *im, const char *ints, const char *texts, ml_labels *labels);
/* Output 0 of a classifier: the labels of these class numbers [n], i64 or strings. */
dlc_value *ml_label_of(dlc_import *im, const ml_labels *labels, dlc_value *classes);
/* The number of the greatest score of each row, the first of equals. */
dlc_value *ml_greatest(dlc_import *im, dlc_value *scores);
/* [-s, s] or [1 - s, s] of one column of scores. */
dlc_value *ml_pair(dlc_import *im, dlc_value *score, int is_probability);

/* Each element against all keys [n], along a new last axis; a NaN may equal a NaN. */
dlc_value *ml_matches(dlc_import *im, dlc_value *x, dlc_value *keys, int with_nan);

/* import_svm_probability.c: [n, classes] from the probability of the first of each pair, [n, pairs]. */
dlc_value *ml_couple(dlc_import *im, dlc_value *pairs, uint32_t nclasses);

#endif

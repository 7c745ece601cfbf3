/* A forest, and the way down its trees. */
#ifndef DLC_FRONTEND_IMPORT_TREES_H
#define DLC_FRONTEND_IMPORT_TREES_H

#include "frontend/import_ml.h"

enum { IM_LEQ, IM_LT, IM_GTE, IM_GT, IM_EQ, IM_NEQ, IM_LEAF, IM_NMODES };

typedef struct {
    uint32_t n, ntrees, depth, nleaves; /* nleaves: as the walk numbers them */
    uint8_t *modes;
    int64_t *features, *yes, *no, *roots;
    double *values;
    uint8_t *tracks; /* a missing value takes the yes branch */
    uint8_t is_double, has_tracks;
    uint32_t ntargets;
    double *weights; /* [n, ntargets] */
    uint8_t *weighs; /* whether a leaf has a weight for the target */
} im_forest;

/* [samples, trees]: the numbers of the leaves, in the order of the forest's nodes. NULL: reported. */
dlc_value *im_walk_trees(dlc_import *im, im_forest *f, dlc_value *x);

#endif

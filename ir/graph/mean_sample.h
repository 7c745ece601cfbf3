/* Sampling between elements: a weighted sum of neighbours along each dimension, for resize and
 * grid_sample. */
#ifndef DLC_IR_GRAPH_MEAN_SAMPLE_H
#define DLC_IR_GRAPH_MEAN_SAMPLE_H

#include "ir/graph/mean.h"

/* What an index outside the dimension reads. */
typedef enum { DLC_EDGE_CLAMP, DLC_EDGE_ZERO, DLC_EDGE_MIRROR, DLC_EDGE_MIRROR_CENTERS } dlc_edge;

/* Taps first, first + 1, … of one dimension; tap k has weight kernel(|k - distance| * stretch) /
 * total. */
typedef struct {
    int64_t ntaps;     /* 1: one element, no weight; 0: `first` is the index, known to lie inside */
    dlc_expr count;    /* ntaps of the run (ntaps is then 2 or more), else 0 */
    dlc_expr first;    /* i64, may lie outside */
    dlc_expr distance; /* from tap 0 to the place sampled, in the accumulator's type */
    dlc_expr stretch;  /* below 1: the filter is wider than the neighbourhood; 0: it is not */
    int is_cubic;
    double cubic_a;
    dlc_expr total;    /* 0: weights sum to 1 */
    int drops_outside; /* taps outside have weight 0 */
    dlc_expr extent;
    uint8_t edge; /* dlc_edge */
} dlc_taps;

/* Index of tap k, within the dimension; *guard gains a term where the edge reads as 0. */
dlc_expr dlc_taps_index(dlc_mean *mean, const dlc_taps *taps, dlc_expr k, dlc_expr *guard);
dlc_expr dlc_taps_weight(dlc_mean *mean, const dlc_taps *taps, dlc_expr k);
/* Sets `total` so that the weights sum to 1; o: the result's axis on which the taps depend. */
void dlc_taps_normalise(dlc_mean *mean, dlc_taps *taps, dlc_expr o);
/*
 * Input 0 sampled at taps[d] in each of `rank` dimensions, in `dtype`: few taps are written out, so
 * that the result is a map; many get axes in *reduce, over which the caller sums.
 */
dlc_expr dlc_taps_sample(dlc_mean *mean, const dlc_taps *taps, uint8_t rank, dlc_dtype dtype,
                         dlc_ids *reduce);

#endif

/* What a pass may assume of an operator, derived from its row of ops.def (never a second list of
 * operators). */
#ifndef DLC_PASSES_FORM_H
#define DLC_PASSES_FORM_H

#include "ir/graph/op.h"

/* Output element i depends on element i of each input (broadcast) and on nothing else. */
int dlc_is_pointwise(dlc_opcode op);
/* Index arithmetic on the data inputs: reshape, transpose, expand, slice, concat, pad, tile. */
int dlc_is_view(dlc_opcode op);
/* Sums of products over shared axes: matmul, einsum, conv, conv_transpose. */
int dlc_is_contraction(dlc_opcode op);
/* Convolutions, pooling, resize, grid_sample: input 0 and results are n,c,spatial…; every point
 * works on its channels. */
int dlc_is_spatial(dlc_opcode op);
/* A reduction over `axes`. */
int dlc_is_reduction(dlc_opcode op);

#endif

/* Rotary positions, shared with the decoders' attention of ONNX Runtime. */
#ifndef DLC_FRONTEND_IMPORT_ATTENTION_H
#define DLC_FRONTEND_IMPORT_ATTENTION_H

#include "frontend/import.h"

typedef struct {
    dlc_value *cosines, *sines; /* of all positions and halves of a head */
    dlc_value *positions;       /* [n, t]; NULL: the caches are of each token, [n, t, half] */
    int64_t part;               /* of a head's size that turns; 0: all */
    int interleaved;            /* pairs are neighbours, not halves apart */
} im_rotary;

/* The node's attributes, and its caches: inputs `caches` and the next; no positions. */
im_rotary im_read_rotary(dlc_import *im, uint32_t caches);
/* x [n, t, heads, size]; NULL when reported. */
dlc_value *im_rotated(dlc_import *im, dlc_value *x, const im_rotary *rotary);
/* The node's first input, [n, heads, t, size] or [n, t, heads * size]. */
dlc_value *im_rotated_input(dlc_import *im, const im_rotary *rotary, int64_t nheads);

#endif

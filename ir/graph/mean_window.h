/* Windows over spatial dimensions, for the meanings of convolutions and pooling. */
#ifndef DLC_IR_GRAPH_MEAN_WINDOW_H
#define DLC_IR_GRAPH_MEAN_WINDOW_H

#include "ir/graph/mean.h"

enum { DLC_WINDOW_RANK = DLC_MAX_RANK - 3 }; /* as ir/graph/infer_window.c allows */

/* Of each spatial dimension: constants, and what may be symbolic in the kernel's pool. */
typedef struct {
    uint8_t rank;
    int64_t stride[DLC_WINDOW_RANK], dilation[DLC_WINDOW_RANK], kernel[DLC_WINDOW_RANK];
    dlc_expr before[DLC_WINDOW_RANK], after[DLC_WINDOW_RANK]; /* padding */
    dlc_expr in[DLC_WINDOW_RANK], out[DLC_WINDOW_RANK]; /* sizes of input 0 and of the result */
} dlc_window;

/* kernel[s]: from input 1 (a filter) or from the attribute `kernel`. */
void dlc_window_read(dlc_mean *mean, dlc_window *window);
/* Axes oh, ow, … of the result, appended to axes; at[s] their expressions. */
void dlc_window_out_axes(dlc_mean *mean, const dlc_window *window, dlc_ids *axes, dlc_expr *at);
/* Axes kh, kw, … of the window. */
void dlc_window_kernel_axes(dlc_mean *mean, const dlc_window *window, dlc_ids *axes, dlc_expr *at);
/*
 * Index o * stride + k * dilation - before of the input per dimension, and the guard that it lies
 * inside (0 where constants show that it always does).
 */
dlc_expr dlc_window_index(dlc_mean *mean, const dlc_window *window, const dlc_expr *o,
                          const dlc_expr *k, dlc_expr *index);

#endif

/* Windows of convolutions and pools, shared with the quantised ones. */
#ifndef DLC_FRONTEND_IMPORT_WINDOW_H
#define DLC_FRONTEND_IMPORT_WINDOW_H

#include "frontend/import.h"

typedef struct {
    uint32_t rank; /* spatial dimensions */
    int64_t kernel[DLC_MAX_RANK], strides[DLC_MAX_RANK], dilations[DLC_MAX_RANK];
    dlc_expr pads[2 * DLC_MAX_RANK]; /* before, then after */
    uint8_t is_same, is_lower;
} im_window;

/* auto_pad, dilations, kernel_shape, pads, strides; the kernel's size from the filter if there is
 * one. False: reported. */
int im_read_window(dlc_import *im, const dlc_value *x, const dlc_value *filter, int has_dilations,
                   im_window *w);
uint32_t im_window_attrs(dlc_import *im, const im_window *w,
                         dlc_attr *attrs); /* pads, strides, dilations: 3 */
dlc_expr im_window_extent(dlc_import *im, const im_window *w, uint32_t i);
dlc_value *im_conv(dlc_import *im, const im_window *w, dlc_value *x, dlc_value *filter,
                   int64_t group);

#endif

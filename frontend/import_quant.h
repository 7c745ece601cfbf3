/* Quantised arithmetic, shared by ONNX's operators and those of ONNX Runtime. */
#ifndef DLC_FRONTEND_IMPORT_QUANT_H
#define DLC_FRONTEND_IMPORT_QUANT_H

#include "frontend/import.h"

/* A scale or zero point of one element as a scalar; others as they are. Per row: [m] as [m, 1]. */
dlc_value *im_as_scalar(dlc_import *im, dlc_value *v);
dlc_value *im_per_row(dlc_import *im, dlc_value *v);
/* (a - a_zero)(b - b_zero) in i32; zero points may be absent. */
dlc_value *im_integer_matmul(dlc_import *im, dlc_value *a, dlc_value *a_zero, dlc_value *b,
                             dlc_value *b_zero);
/* saturate(round(x / scale) + zero) in the zero point's dtype, of a scale for all. */
dlc_value *im_quantise(dlc_import *im, dlc_value *x, dlc_value *scale, dlc_value *zero);
/* A scale or zero point of one element for each block along the axis, repeated to meet x; NULL: refused, as its shape is another. */
dlc_value *im_spread_blocks(dlc_import *im, const dlc_value *x, dlc_value *v, uint32_t axis, int64_t block);
/* Bytes [.., c] as codes [.., 8 / bits, c]: part p of a byte is its bits from p * bits on. */
dlc_value *im_unpack(dlc_import *im, dlc_value *bytes, int64_t bits);
/* As DynamicQuantizeLinear; all NULL when refused. */
void im_quantise_dynamically(dlc_import *im, dlc_value *x, dlc_value **q, dlc_value **scale,
                             dlc_value **zero);

#endif

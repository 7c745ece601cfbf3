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
/* Constant codes of 2 or 4 bits in whole blocks along the axis as u8, unpacked of bytes that hold several of them, `offset` more than they
 * were. NULL: x is no such. */
dlc_value *im_packed_codes(dlc_import *im, const dlc_value *x, uint32_t axis, int64_t block, int64_t bits, int64_t offset);
/* As DynamicQuantizeLinear; all NULL when refused. */
void im_quantise_dynamically(dlc_import *im, dlc_value *x, dlc_value **q, dlc_value **scale,
                             dlc_value **zero);

#endif

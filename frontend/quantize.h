/*
 * Post-training quantisation: an ONNX file to one with QuantizeLinear and DequantizeLinear around what is multiplied. Activations
 * become u8 by ranges that the caller measured, weights i8 by their own largest value; sums, biases and all else stay as they are.
 */
#ifndef DLC_FRONTEND_QUANTIZE_H
#define DLC_FRONTEND_QUANTIZE_H

#include "base/diag.h"

typedef struct dlc_onnx_quantizer dlc_onnx_quantizer;

typedef struct {
    const char *node, *op;
    const char *value;   /* the activation */
    uint32_t range;      /* its number */
    double weight_noise; /* mean square of the weight's rounding over its mean square */
} dlc_onnx_layer;

/* exclude: names of nodes and operators, comma separated, or NULL. DLC_UNSUPPORTED: nothing in it can be quantised. */
DLC_NODISCARD dlc_status dlc_onnx_quantizer_open(const char *path, int per_channel, const char *exclude, dlc_arena *arena,
                                                 dlc_diag *diag, dlc_onnx_quantizer **result);
void dlc_onnx_quantizer_close(dlc_onnx_quantizer *q); /* NULL is fine */
const dlc_onnx_layer *dlc_onnx_quantizer_layer(const dlc_onnx_quantizer *q, uint32_t i);  /* NULL: there is none */
const char *dlc_onnx_quantizer_value(const dlc_onnx_quantizer *q, uint32_t i); /* of range i; NULL: there is none */
/* The model with the activations as further outputs. */
DLC_NODISCARD dlc_status dlc_onnx_quantizer_probe(dlc_onnx_quantizer *q, const char *path);
/* lo[i], hi[i]: what the codes of value i span; both may be 0. */
DLC_NODISCARD dlc_status dlc_onnx_quantizer_write(dlc_onnx_quantizer *q, const double *lo, const double *hi, const char *path);

#endif

/* Data of constants, and their text: graphs and modules share it. */
#ifndef DLC_IR_EXPR_TENSOR_H
#define DLC_IR_EXPR_TENSOR_H

#include "ir/expr/type.h"

/* Elements one behind the other; borrowed from the mapped model or an arena. */
typedef struct {
    const void *bytes;
    size_t size_bytes;
    uint64_t text_hash; /* read from text as `hash(H)`: stand-in data made from H; 0 otherwise */
} dlc_tensor;

/* "[1, 2]", or of more than 32 elements "fill(0.5)" where all are equal, else "hash(00000000000000ff)". */
void dlc_tensor_print(const dlc_tensor *tensor, dlc_dtype dtype, dlc_str *out);
void dlc_tensor_print_whole(const dlc_tensor *tensor, dlc_dtype dtype, dlc_str *out); /* all elements, however many */
/* n elements equal to the first. */
void dlc_tensor_fill(dlc_dtype dtype, void *bytes, int64_t n);
/* Numbers made from a hash, the same each time: floats in [-1, 1), integers in [-8, 8) or [0, 16). */
void dlc_tensor_invent(dlc_dtype dtype, uint64_t hash, void *bytes, int64_t n);
/* Halves floats until none is farther from 0 than 2^log2; no NaN and no infinity is among them. */
void dlc_tensor_limit(dlc_dtype dtype, void *bytes, size_t size_bytes, int log2);

#endif

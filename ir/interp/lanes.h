/*
 * Strips of the interpreter: one value of an expression at up to DLC_STRIP points. Floats of strict
 * mode lie in `float` (f32) or `double` (f64; f16 and bf16, rounded to their type); in wide mode
 * all floats lie in `double`; integers and bool lie in int64_t, wrapped to their type (unsigned
 * ones zero-extended). A value that is the same at every point has step 0.
 */
#ifndef DLC_IR_INTERP_LANES_H
#define DLC_IR_INTERP_LANES_H

#include "ir/kernel/kernel.h"

enum { DLC_STRIP = 1024 };

typedef enum { DLC_LANE_INT, DLC_LANE_FLOAT, DLC_LANE_DOUBLE } dlc_lane;

/* How a type is computed: its lane, and the type whose arithmetic that is (wide floats: F64). */
typedef struct {
    uint8_t lane;  /* dlc_lane */
    uint8_t dtype; /* dlc_dtype of the arithmetic */
} dlc_lane_type;
dlc_lane_type dlc_lane_of(dlc_dtype dtype, int is_wide);
static inline uint32_t dlc_lane_bytes(uint8_t lane)
{
    return lane == DLC_LANE_FLOAT ? 4 : 8;
}

typedef struct {
    const void *at;
    uint8_t step; /* 0: one value for all points; 1 */
} dlc_strip;

/* One operator over n points: to[i] = op(args[k].at[i]). `from` is the operands' type as the
 * expression says (of SELECT: of the last two), `dtype` the result's. */
typedef struct {
    uint8_t op, from, dtype, is_wide;
} dlc_strip_op;
void dlc_strip_apply(const dlc_strip_op *op, const dlc_strip *args, uint32_t n, void *to);

/* acc[i] += a[i] * b[i], each rounded; lane FLOAT or DOUBLE. acc step 1. */
void dlc_strip_mac(uint8_t lane, dlc_strip a, dlc_strip b, uint32_t n, void *acc);
/* *acc = acc op v[0] op v[1] …, in that order. */
void dlc_strip_fold(const dlc_strip_op *op, dlc_strip v, uint32_t n, void *acc);
void dlc_strip_fill(uint8_t lane, const void *value, uint32_t n, void *to);
/* to[i] = start + i * step */
void dlc_strip_ramp(int64_t start, int64_t step, uint32_t n, int64_t *to);

/* Elements of memory: of `dtype`, at base[offset]. offsets NULL: start + i * stride. */
typedef struct {
    void *base;
    uint8_t dtype;
    const int64_t *offsets;
    int64_t start, stride;
} dlc_elements;
void dlc_strip_load(const dlc_elements *from, uint8_t lane, uint32_t n, void *to);
void dlc_strip_store(const dlc_elements *into, uint8_t lane, dlc_strip value, uint32_t n);

dlc_scalar dlc_strip_get(uint8_t lane, dlc_strip value, uint32_t i);
void dlc_strip_put(uint8_t lane, void *to, uint32_t i, dlc_scalar value);

#endif

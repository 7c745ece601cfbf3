/*
 * Quantised operators. Quantising divides by the scale (a multiplication by its reciprocal would
 * move halves), rounds to even, adds the zero point and saturates. Integer products are exact in
 * i32.
 */
#include "frontend/import_quant.h"
#include "frontend/import_window.h"

#include <inttypes.h>

/* A scale or zero point of one axis, of blocks along it, or of the whole tensor, brought to meet x.
 */
static dlc_value *spread_blocks(dlc_import *im, const dlc_value *x, dlc_value *v, uint32_t axis,
                                int64_t block)
{
    uint32_t rank = im_rank(x);
    dlc_expr split[DLC_MAX_RANK + 1], wide[DLC_MAX_RANK + 1], merged[DLC_MAX_RANK];
    if (rank + 1 > DLC_MAX_RANK) {
        im_fail(im, DLC_UNSUPPORTED,
                "blocks of a tensor of rank %" PRIu32 "; at most %d is supported", rank,
                DLC_MAX_RANK - 1);
        return NULL;
    }
    for (uint32_t i = 0, k = 0; i < rank; i++) {
        merged[i] = v->type.dims[i];
        split[k] = wide[k] = v->type.dims[i];
        k++;
        if (i != axis)
            continue;
        merged[i] = dlc_muli(im->pool, v->type.dims[i], block);
        split[k] = im_i64(im, 1);
        wide[k++] = im_i64(im, block);
    }
    dlc_value *repeated = f_expand(im, f_reshape(im, v, split, rank + 1), wide, rank + 1);
    return f_slice(im, f_reshape(im, repeated, merged, rank), axis, im_i64(im, 0),
                   x->type.dims[axis]);
}

/* One scale for each block along the axis, and the input's extents along the others. */
static int is_blocked(dlc_import *im, const dlc_value *x, const dlc_value *v, uint32_t axis, int64_t block)
{
    for (uint32_t i = 0; i < im_rank(x); i++) {
        dlc_expr wanted = x->type.dims[i];
        if (i == axis)
            wanted = dlc_floordiv(im->pool, dlc_addi(im->pool, wanted, block - 1), im_i64(im, block));
        if (!im_same_dim(im, v->type.dims[i], wanted, i == axis ? "scales and blocks (of block_size)" : "dimensions of scales and input"))
            return 0;
    }
    return 1;
}

dlc_value *im_spread_blocks(dlc_import *im, const dlc_value *x, dlc_value *v, uint32_t axis, int64_t block)
{
    if (!x || !v)
        return NULL;
    if (im_rank(x) != im_rank(v)) {
        im_fail(im, DLC_INVALID, "a blocked scale has rank %" PRIu32 ", the input %" PRIu32, im_rank(v), im_rank(x));
        return NULL;
    }
    return is_blocked(im, x, v, axis, block) ? spread_blocks(im, x, v, axis, block) : NULL;
}

/* A zero point has its scale's shape; one number may be a scalar or a list of one. */
static int has_shape_of(dlc_import *im, const dlc_value *zero, const dlc_value *scale)
{
    int64_t nzeros, nscales;
    if (!zero || (dlc_type_elems(im->pool, &zero->type, &nzeros) && nzeros == 1 &&
                  dlc_type_elems(im->pool, &scale->type, &nscales) && nscales == 1))
        return 1;
    if (im_rank(zero) != im_rank(scale))
        im_fail(im, DLC_INVALID, "the zero point has rank %" PRIu32 ", the scale %" PRIu32, im_rank(zero), im_rank(scale));
    for (uint32_t i = 0; im_ok(im) && i < im_rank(scale); i++)
        (void)im_same_dim(im, zero->type.dims[i], scale->type.dims[i], "dimensions of zero point and scale");
    return im_ok(im);
}

typedef struct {
    int64_t axis, block;
} granule;

static granule read_granule(dlc_import *im)
{
    granule g = {1, 0};
    if (im->opset >= 13)
        g.axis = im_int(im, "axis", 1);
    if (im->opset >= 21)
        g.block = im_int(im, "block_size", 0);
    return g;
}

static dlc_value *spread(dlc_import *im, const dlc_value *x, dlc_value *v, const granule *g)
{
    int64_t n;
    if (!v)
        return NULL;
    if (dlc_type_elems(im->pool, &v->type, &n) && n == 1 && im_rank(v) <= 1)
        return f_reshape(im, v, NULL, 0);
    int axis = im_axis(im, g->axis, im_rank(x));
    if (axis < 0)
        return NULL;
    if (g->block < 0 || (g->block > 0) != (im_rank(v) > 1)) {
        im_fail(im, DLC_INVALID, "block_size is %" PRId64 " for a scale of rank %" PRIu32, g->block,
                im_rank(v));
        return NULL;
    }
    if (g->block > INT32_MAX) { /* what is rounded up to whole blocks must not wrap */
        im_fail(im, DLC_INVALID, "block_size is %" PRId64 "; at most %" PRId32 " is possible", g->block, INT32_MAX);
        return NULL;
    }
    if (g->block) {
        if (im_rank(v) != im_rank(x)) {
            im_fail(im, DLC_INVALID, "a blocked scale has rank %" PRIu32 ", the input %" PRIu32,
                    im_rank(v), im_rank(x));
            return NULL;
        }
        return im_spread_blocks(im, x, v, (uint32_t)axis, g->block);
    }
    if (!im_same_dim(im, v->type.dims[0], x->type.dims[axis], "scales and the quantised dimension"))
        return NULL;
    return f_channel(im, v, im_rank(x), (uint32_t)axis);
}

/* Absent, or known to be 0 everywhere. */
static int is_zero(dlc_import *im, const dlc_value *v)
{
    return !v || im_is_all_zero(im, v);
}

/* --- QuantizeLinear --- */

static int is_quantised(dlc_dtype dtype)
{
    return dtype == DLC_I8 || dtype == DLC_U8 || dtype == DLC_I16 || dtype == DLC_U16 ||
           dlc_is_code(dtype);
}

/* Bits of an integer type below 8; 0 for others. */
static int narrow_bits(dlc_dtype dtype)
{
    return dtype == DLC_I4 || dtype == DLC_U4 ? 4 : dtype == DLC_I2 || dtype == DLC_U2 ? 2 : 0;
}

/* The range of an integer type below 8 bits; false for small floats. */
static int narrow_range(dlc_dtype dtype, double *lo, double *hi)
{
    int is_signed = dtype == DLC_I4 || dtype == DLC_I2, bits = narrow_bits(dtype);
    *lo = is_signed ? -(1 << (bits - 1)) : 0;
    *hi = *lo + (1 << bits) - 1;
    return bits > 0;
}

/* x / scale + zero as a code: integers are rounded first and saturate, small floats round as codes
 * do. */
static dlc_value *quantise_narrow(dlc_import *im, dlc_value *q, dlc_value *zero, dlc_dtype dtype,
                                  int64_t saturate)
{
    double lo, hi;
    int is_int = narrow_range(dtype, &lo, &hi);
    if (is_int)
        q = f_unary(im, DLC_OP_ROUND, q);
    if (q && q->type.dtype != DLC_F64)
        q = f_cast(im, q, DLC_F32);
    if (zero)
        q = f_add(im, q, f_cast(im, zero, q ? q->type.dtype : DLC_F32));
    return is_int ? f_cast(im, f_clip(im, q, lo, hi), dtype)
                  : f_encode(im, q, dtype, saturate, "nearest");
}

/* saturate(round(x / scale) + zero); the sum is exact in f32 for all quantised types where it does
 * not saturate. */
static dlc_value *quantise(dlc_import *im, dlc_value *x, dlc_value *scale, dlc_value *zero,
                           dlc_dtype dtype)
{
    dlc_value *q = f_unary(im, DLC_OP_ROUND, f_div(im, x, scale));
    if (q && q->type.dtype != DLC_F64)
        q = f_cast(im, q, DLC_F32);
    if (zero)
        q = f_add(im, q, f_cast(im, zero, q ? q->type.dtype : DLC_F32));
    return f_saturate(im, q, dtype);
}

static dlc_dtype quantised_dtype(dlc_import *im, const dlc_value *zero)
{
    int64_t wanted = im->opset >= 21 ? im_int(im, "output_dtype", 0) : 0;
    dlc_dtype dtype = wanted ? im_dtype(im, wanted, "attribute 'output_dtype'")
                      : zero ? zero->type.dtype
                             : DLC_U8;
    if (dtype == DLC_NONE)
        return dtype;
    if (zero && zero->type.dtype != dtype)
        im_fail(im, DLC_INVALID, "output_dtype is %s, the zero point %s", dlc_dtypes[dtype].text,
                dlc_dtypes[zero->type.dtype].text);
    else if (!is_quantised(dtype))
        im_fail(im, DLC_UNSUPPORTED,
                "quantises to %s; integers of up to 16 bits and small floats are supported",
                dlc_dtypes[dtype].text);
    return im_ok(im) ? dtype : DLC_NONE;
}

void import_quantize_linear(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *scale = im_in(im, 1), *zero = im_in(im, 2);
    granule g = read_granule(im);
    int64_t saturate = im->opset >= 19 ? im_int(im, "saturate", 1) : 1;
    int64_t precision = im->opset >= 23 ? im_int(im, "precision", 0) : 0;
    dlc_dtype dtype = quantised_dtype(im, zero);
    dlc_dtype work =
        precision ? im_dtype(im, precision, "attribute 'precision'") : scale->type.dtype;
    if (dtype == DLC_NONE || work == DLC_NONE)
        return;
    if (!dlc_is_float(work)) {
        im_fail(im, DLC_INVALID, "the scale is %s; a float is wanted", dlc_dtypes[work].text);
        return;
    }
    if (!has_shape_of(im, zero, scale))
        return;
    scale = spread(im, x, f_cast(im, scale, work), &g);
    dlc_value *spread_zero = is_zero(im, zero) ? NULL : spread(im, x, zero, &g);
    if (!im_ok(im))
        return;
    x = f_cast(im, x, work);
    im->out[0] = dlc_is_code(dtype)
                     ? quantise_narrow(im, f_div(im, x, scale), spread_zero, dtype, saturate)
                     : quantise(im, x, scale, spread_zero, dtype);
}

/* --- DequantizeLinear: (x - zero) * scale --- */

static int is_small_float(dlc_dtype dtype)
{
    double lo, hi;
    return dlc_is_code(dtype) && !narrow_range(dtype, &lo, &hi);
}

static dlc_value *without_zero(dlc_import *im, dlc_value *x, dlc_value *zero, dlc_dtype work)
{
    if (!zero)
        return f_cast(im, x, work);
    if (x && is_small_float(x->type.dtype))
        return f_cast(im, f_sub(im, f_cast(im, x, DLC_F32), f_cast(im, zero, DLC_F32)), work);
    return f_cast(im, f_sub(im, f_cast(im, x, DLC_I32), f_cast(im, zero, DLC_I32)), work);
}

dlc_value *im_unpack(dlc_import *im, dlc_value *bytes, int64_t bits)
{
    return f_node(im, DLC_OP_UNPACK, F_IN(bytes), F_ATTRS(dlc_attr_int(DLC_ATTR_BITS, bits)));
}

/* Codes of x, a byte each, as bytes that hold several: part p of byte (o, b, c) is code p * bytes + c of the block (o, b), in which
 * `block` codes along the axis lie with all that is behind it. */
static dlc_value *packed_blocks(dlc_import *im, const dlc_value *x, int64_t bits, int64_t offset, size_t nper_block)
{
    size_t nparts = (size_t)(8 / bits), ncodes = x->data->size_bytes, nbytes = nper_block / nparts, mask = (1u << bits) - 1;
    const uint8_t *from = x->data->bytes;
    uint8_t *to = dlc_arena_bulk(im->graph->arena, ncodes / nparts + 1);
    for (size_t i = 0; i < ncodes / nparts; i++) {
        uint32_t byte = 0;
        for (size_t part = 0; part < nparts; part++)
            byte |= ((size_t)(from[i / nbytes * nper_block + part * nbytes + i % nbytes] + offset) & mask) << part * (size_t)bits;
        to[i] = (uint8_t)byte;
    }
    dlc_arena_settle(im->graph->arena, to);
    const dlc_type type = {.dtype = DLC_U8, .rank = 2,
                           .dims = {im_i64(im, (int64_t)(ncodes / nper_block)), im_i64(im, (int64_t)nbytes)}};
    return dlc_graph_constant(im->graph, x->name, &type, to, ncodes / nparts);
}

/* Constant codes of 2 or 4 bits in whole blocks along the axis as u8, unpacked of bytes that hold several of them, `offset` more than they
 * were. NULL: x is no such. */
static dlc_value *packed_codes(dlc_import *im, const dlc_value *x, uint32_t axis, int64_t block, int64_t bits, int64_t offset)
{
    int64_t behind = 1, dim;
    if (!x->data || !x->data->size_bytes || block % (8 / bits))
        return NULL;
    for (uint32_t d = axis; d < im_rank(x); d++) {
        if (!dlc_expr_is_int(im->pool, x->type.dims[d], &dim) || (d == axis && dim % block))
            return NULL;
        behind *= d > axis ? dim : 1;
    }
    dlc_value *codes = im_unpack(im, packed_blocks(im, x, bits, offset, (size_t)(block * behind)), bits);
    return f_reshape(im, codes, x->type.dims, im_rank(x));
}

/* x - zero of codes below 8 bits that a model stores in blocks: several to a byte. NULL: x is no such. The zero point meets x. */
static dlc_value *blocks_without_zero(dlc_import *im, const dlc_value *x, dlc_value *zero, const granule *g, dlc_dtype work)
{
    double lo, hi;
    if (!g->block || !narrow_range(x->type.dtype, &lo, &hi))
        return NULL;
    uint32_t axis = (uint32_t)im_axis(im, g->axis, im_rank(x));
    dlc_value *codes = packed_codes(im, x, axis, g->block, narrow_bits(x->type.dtype), (int64_t)-lo);
    dlc_value *centre = f_scalar(im, DLC_F32, -lo);
    if (zero)
        centre = f_add(im, f_cast(im, zero, DLC_F32), centre);
    return codes ? f_cast(im, f_sub(im, f_cast(im, codes, DLC_F32), centre), work) : NULL;
}

void import_dequantize_linear(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *scale = im_in(im, 1), *zero = im_in(im, 2);
    granule g = read_granule(im);
    int64_t wanted = im->opset >= 23 ? im_int(im, "output_dtype", 0) : 0;
    dlc_dtype dtype = wanted ? im_dtype(im, wanted, "attribute 'output_dtype'") : scale->type.dtype;
    if (zero && zero->type.dtype != x->type.dtype)
        im_fail(im, DLC_INVALID, "the input is %s, the zero point %s",
                dlc_dtypes[x->type.dtype].text, dlc_dtypes[zero->type.dtype].text);
    if (dtype != DLC_NONE && !dlc_is_float(dtype))
        im_fail(im, DLC_INVALID, "the result would be %s; a float is wanted",
                dlc_dtypes[dtype].text);
    if (!im_ok(im) || !has_shape_of(im, zero, scale))
        return;
    scale = spread(im, x, f_cast(im, scale, dtype), &g);
    zero = is_zero(im, zero) ? NULL : spread(im, x, zero, &g);
    if (!im_ok(im))
        return;
    dlc_value *packed = blocks_without_zero(im, x, zero, &g, dtype);
    im->out[0] = f_mul(im, packed ? packed : without_zero(im, x, zero, dtype), scale);
}

/* The range is widened to hold 0, the zero point lies within it. */
void im_quantise_dynamically(dlc_import *im, dlc_value *x, dlc_value **q, dlc_value **scale,
                             dlc_value **zero)
{
    dlc_value *nil = f_like(im, x, 0);
    dlc_value *top = f_max(im, nil, f_reduce_last(im, DLC_OP_REDUCE_MAX, x, im_rank(x), 0));
    dlc_value *bottom = f_min(im, nil, f_reduce_last(im, DLC_OP_REDUCE_MIN, x, im_rank(x), 0));
    *scale = f_div(im, f_sub(im, top, bottom), f_like(im, x, 255));
    *zero = f_unary(im, DLC_OP_ROUND,
                    f_clip(im, f_sub(im, nil, f_div(im, bottom, *scale)), 0, 255));
    *zero = f_saturate(im, *zero, DLC_U8);
    *q = quantise(im, x, *scale, *zero, DLC_U8);
}

void import_dynamic_quantize_linear(dlc_import *im)
{
    dlc_value *q, *scale, *zero;
    im_quantise_dynamically(im, im_in(im, 0), &q, &scale, &zero);
    im->out[0] = q;
    if (im_wants(im, 1))
        im->out[1] = scale;
    if (im_wants(im, 2))
        im->out[2] = zero;
}

dlc_value *im_quantise(dlc_import *im, dlc_value *x, dlc_value *scale, dlc_value *zero)
{
    if (!x || !scale || !zero)
        return NULL;
    if (!is_quantised(zero->type.dtype)) {
        im_fail(im, DLC_UNSUPPORTED, "quantises to %s", dlc_dtypes[zero->type.dtype].text);
        return NULL;
    }
    return quantise(im, x, im_as_scalar(im, scale), is_zero(im, zero) ? NULL : im_as_scalar(im, zero),
                    zero->type.dtype);
}

/* --- integer products --- */

/* x - zero in i32; a zero point of one entry per row or column has been shaped by the caller. */
static dlc_value *centred(dlc_import *im, dlc_value *x, dlc_value *zero)
{
    dlc_value *wide = f_cast(im, x, DLC_I32);
    return is_zero(im, zero) ? wide : f_sub(im, wide, f_cast(im, zero, DLC_I32));
}

dlc_value *im_as_scalar(dlc_import *im, dlc_value *v)
{
    int64_t n;
    if (v && im_rank(v) == 1 && dlc_type_elems(im->pool, &v->type, &n) && n == 1)
        return f_reshape(im, v, NULL, 0);
    return v;
}

/* Per row: [m] becomes [m, 1]. Per column: [n] is right as it is. */
dlc_value *im_per_row(dlc_import *im, dlc_value *v)
{
    v = im_as_scalar(im, v);
    return v && im_rank(v) == 1 ? f_insert_axis(im, v, 1) : v;
}

/* A zero point of several entries has one for each row or column, 0 as well. */
static int has_each(dlc_import *im, const dlc_value *zero, dlc_expr size, const char *what)
{
    int64_t n;
    if (!zero || im_rank(zero) != 1 || (dlc_type_elems(im->pool, &zero->type, &n) && n == 1))
        return 1;
    return im_same_dim(im, zero->type.dims[0], size, what);
}

dlc_value *im_integer_matmul(dlc_import *im, dlc_value *a, dlc_value *a_zero, dlc_value *b,
                             dlc_value *b_zero)
{
    uint32_t rank_a = im_rank(a), rank_b = im_rank(b);
    if (rank_a < 1 || rank_b < 1) {
        im_fail(im, DLC_INVALID, "an input is a scalar");
        return NULL;
    }
    a = rank_a == 1 ? f_insert_axis(im, a, 0) : a;
    b = rank_b == 1 ? f_insert_axis(im, b, 1) : b;
    if (!has_each(im, a_zero, a->type.dims[im_rank(a) - 2], "zero points and rows") ||
        !has_each(im, b_zero, b->type.dims[im_rank(b) - 1], "zero points and columns"))
        return NULL;
    a = centred(im, a, im_per_row(im, a_zero));
    b = centred(im, b, im_as_scalar(im, b_zero));
    dlc_value *y = f_matmul(im, a, b);
    if (y && rank_b == 1)
        y = f_drop_axis(im, y, im_rank(y) - 1);
    if (y && rank_a == 1)
        y = f_drop_axis(im, y, im_rank(y) - (rank_b == 1 ? 1 : 2));
    return y;
}

void import_mat_mul_integer(dlc_import *im)
{
    im->out[0] = im_integer_matmul(im, im_in(im, 0), im_in(im, 2), im_in(im, 1), im_in(im, 3));
}

/* round(sum * (a * b / y)) + zero, saturated */
static dlc_value *requantise(dlc_import *im, dlc_value *sum, dlc_value *factor, dlc_value *zero)
{
    if (!zero || !is_quantised(zero->type.dtype)) {
        im_fail(im, DLC_UNSUPPORTED, "the result's zero point must be i8, u8, i16 or u16");
        return NULL;
    }
    dlc_value *scaled = f_mul(im, f_cast(im, sum, DLC_F32), f_cast(im, factor, DLC_F32));
    dlc_value *q = f_unary(im, DLC_OP_ROUND, scaled);
    if (!is_zero(im, zero))
        q = f_add(im, q, f_cast(im, im_as_scalar(im, zero), DLC_F32));
    return f_saturate(im, q, zero->type.dtype);
}

void import_q_linear_mat_mul(dlc_import *im)
{
    dlc_value *sum = im_integer_matmul(im, im_in(im, 0), im_in(im, 2), im_in(im, 3), im_in(im, 5));
    dlc_value *product = f_mul(im, im_per_row(im, im_in(im, 1)), im_as_scalar(im, im_in(im, 4)));
    im->out[0] = requantise(im, sum, f_div(im, product, im_as_scalar(im, im_in(im, 6))), im_in(im, 7));
}

/* A filter's scale or zero point: one per output channel. */
static dlc_value *per_channel(dlc_import *im, dlc_value *v, uint32_t rank, uint32_t axis)
{
    v = im_as_scalar(im, v);
    return v && im_rank(v) ? f_channel(im, v, rank, axis) : v;
}

static dlc_value *integer_conv(dlc_import *im, dlc_value *x, dlc_value *x_zero, dlc_value *w,
                               dlc_value *w_zero)
{
    im_window window;
    int64_t group = im_int(im, "group", 1);
    if (!im_read_window(im, x, w, 1, &window))
        return NULL;
    return im_conv(im, &window, centred(im, x, im_as_scalar(im, x_zero)),
                   centred(im, w, per_channel(im, w_zero, im_rank(w), 0)), group);
}

void import_conv_integer(dlc_import *im)
{
    im->out[0] = integer_conv(im, im_in(im, 0), im_in(im, 2), im_in(im, 1), im_in(im, 3));
}

void import_q_linear_conv(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *bias = im_in(im, 8);
    dlc_value *sum = integer_conv(im, x, im_in(im, 2), im_in(im, 3), im_in(im, 5));
    if (bias)
        sum = f_add(im, sum, f_channel(im, bias, im_rank(x), 1));
    dlc_value *product =
        f_mul(im, im_as_scalar(im, im_in(im, 1)), per_channel(im, im_in(im, 4), im_rank(x), 1));
    im->out[0] = requantise(im, sum, f_div(im, product, im_as_scalar(im, im_in(im, 6))), im_in(im, 7));
}

/*
 * Products with weights of few bits (MatMulNBits): codes of 2, 4 or 8 bits in blocks along K, each block with a scale and a zero point
 * of its own. The weights stay packed: constants are laid out once so that the first part of each byte of a block has the block's first
 * codes, the second part those behind them, and so on; whoever reads neighbours then reads neighbouring bytes.
 *
 *     y[i,j] = sum(ko,ki) a[i,ko,ki] * scale[j,ko] * (code[j,ko,ki] - zero[j,ko])
 *
 * Where the model allows it (accuracy_level 4) the rows become bytes too, block by block, by their largest magnitude, as ONNX Runtime
 * does it, and sums within a block are integers:
 *
 *     y[i,j] = sum(ko) scale[j,ko] * step[i,ko] * (sum(ki) q[i,ko,ki] * code[j,ko,ki] - zero[j,ko] * sum(ki) q[i,ko,ki])
 */
#include "frontend/import_quant.h"

#include <inttypes.h>

enum {
    BYTES = 4,    /* accuracy_level: rows may become bytes */
    MOST_CODE = 127
};

typedef struct {
    int64_t k, n, bits, block, nblocks;
} shape;

/* Bytes [n, nblocks, bytes of a block] of a constant: part p of byte c is code p * bytes + c of its block, not code c * parts + p. */
static dlc_value *in_halves(dlc_import *im, const dlc_value *packed, const shape *s)
{
    size_t nparts = (size_t)(8 / s->bits), block = (size_t)s->block / nparts, mask = (1u << s->bits) - 1,
           nbytes = packed->data->size_bytes;
    const uint8_t *from = packed->data->bytes;
    uint8_t *to = dlc_arena_bulk(im->graph->arena, nbytes + 1);
    for (size_t b = 0; b + block <= nbytes; b += block)
        for (size_t c = 0; c < block; c++) {
            uint32_t byte = 0;
            for (size_t part = 0; part < nparts; part++) {
                size_t code = part * block + c;
                byte |= (from[b + code / nparts] >> code % nparts * (size_t)s->bits & mask) << part * (size_t)s->bits;
            }
            to[b + c] = (uint8_t)byte;
        }
    dlc_arena_settle(im->graph->arena, to);
    return dlc_graph_constant(im->graph, packed->name, &packed->type, to, nbytes);
}

/* Codes [n, nblocks, block], u8. */
static dlc_value *codes_of(dlc_import *im, dlc_value *packed, const shape *s)
{
    const dlc_expr bytes[3] = {im_i64(im, s->n), im_i64(im, s->nblocks), im_i64(im, s->block * s->bits / 8)},
                   codes[3] = {bytes[0], bytes[1], im_i64(im, s->block)};
    int is_constant = packed->data != NULL;
    if (s->bits == 8)
        return f_reshape(im, packed, bytes, 3);
    if (is_constant)
        packed = in_halves(im, packed, s);
    packed = im_unpack(im, f_reshape(im, packed, bytes, 3), s->bits);
    return f_reshape(im, is_constant ? packed : f_swap_last(im, packed), codes, 3);
}

/* The codes of a constant of bytes, a byte each. */
static dlc_value *unpacked_constant(dlc_import *im, const dlc_value *packed, int64_t bits, const dlc_type *type)
{
    size_t nparts = (size_t)(8 / bits), nbytes = packed->data->size_bytes;
    const uint8_t *from = packed->data->bytes;
    uint8_t *codes = dlc_arena_bulk(im->graph->arena, nparts * nbytes + 1);
    for (size_t i = 0; i < nparts * nbytes; i++)
        codes[i] = (uint8_t)(from[i / nparts] >> i % nparts * (size_t)bits & ((1u << bits) - 1));
    dlc_arena_settle(im->graph->arena, codes);
    return dlc_graph_constant(im->graph, packed->name, type, codes, nparts * nbytes);
}

/* Zero points [n, nblocks, 1] in f32: packed, as floats, or the middle of the range. */
static dlc_value *zeros_of(dlc_import *im, dlc_value *zeros, const shape *s)
{
    int64_t nparts = 8 / s->bits;
    const dlc_expr n = im_i64(im, s->n), nblocks = im_i64(im, s->nblocks), nbytes = im_i64(im, (s->nblocks + nparts - 1) / nparts),
                   bytes[2] = {n, nbytes}, codes[2] = {n, dlc_muli(im->pool, nbytes, nparts)}, dims[3] = {n, nblocks, im_i64(im, 1)};
    if (!zeros)
        return f_scalar(im, DLC_F32, (double)(1 << (s->bits - 1)));
    if (zeros->type.dtype == DLC_U8) {
        if (nparts > 1 && zeros->data && zeros->data->size_bytes == (size_t)s->n * (size_t)((s->nblocks + nparts - 1) / nparts))
            zeros = unpacked_constant(im, zeros, s->bits, &(dlc_type){.dtype = DLC_U8, .rank = 2, .dims = {n, codes[1]}});
        else if (nparts > 1)
            zeros = f_swap_last(im, im_unpack(im, f_reshape(im, zeros, bytes, 2), s->bits));
        zeros = f_reshape(im, zeros, codes, 2);
        zeros = f_slice(im, zeros, 1, im_i64(im, 0), nblocks);
    }
    return f_reshape(im, f_cast(im, zeros, DLC_F32), dims, 3);
}

/* Rows in f32, [rows, nblocks * block]: zeros follow where the last block is not whole. */
static dlc_value *whole_rows(dlc_import *im, dlc_value *a, const shape *s)
{
    const dlc_expr rows = im_product(im, a->type.dims, im_rank(a) - 1), rest = im_i64(im, s->nblocks * s->block - s->k),
                   flat[2] = {rows, im_i64(im, s->k)}, fill[2] = {rows, rest};
    a = f_reshape(im, f_cast(im, a, DLC_F32), flat, 2);
    if (s->nblocks * s->block > s->k)
        a = f_concat(im, (dlc_value *[]){a, f_expand(im, f_scalar(im, DLC_F32, 0), fill, 2)}, 2, 1);
    return a;
}

static dlc_value *by_floats(dlc_import *im, dlc_value *rows, dlc_value *codes, dlc_value *zeros, dlc_value *scales, const shape *s)
{
    const dlc_expr wide[2] = {im_i64(im, s->n), im_i64(im, s->nblocks * s->block)};
    dlc_value *w = f_mul(im, f_sub(im, f_cast(im, codes, DLC_F32), zeros), scales);
    return f_matmul(im, rows, f_swap_last(im, f_reshape(im, w, wide, 2)));
}

/* [rows, nblocks, n] as [nblocks, rows, n]. */
static dlc_value *blocks_first(dlc_import *im, dlc_value *x)
{
    return f_transpose(im, x, (const uint8_t[]){1, 0, 2});
}

static dlc_value *by_bytes(dlc_import *im, dlc_value *rows, dlc_value *codes, dlc_value *zeros, dlc_value *scales, const shape *s)
{
    const dlc_expr dims[3] = {rows ? rows->type.dims[0] : 0, im_i64(im, s->nblocks), im_i64(im, s->block)};
    dlc_value *x = f_reshape(im, rows, dims, 3);
    dlc_value *most = f_reduce_last(im, DLC_OP_REDUCE_MAX, f_unary(im, DLC_OP_ABS, x), 1, 1);
    dlc_value *step = f_div(im, most, f_scalar(im, DLC_F32, MOST_CODE));
    dlc_value *nil = f_scalar(im, DLC_F32, 0), *per_step = f_div(im, f_scalar(im, DLC_F32, MOST_CODE), most);
    per_step = f_where(im, f_binary(im, DLC_OP_EQ, most, nil), nil, per_step);
    dlc_value *q = f_saturate(im, f_unary(im, DLC_OP_ROUND, f_mul(im, x, per_step)), DLC_I8);
    dlc_value *sum = f_reduce_last(im, DLC_OP_REDUCE_SUM, f_cast(im, q, DLC_F32), 1, 1);
    dlc_value *product = f_node(im, DLC_OP_MATMUL, F_IN(blocks_first(im, q), f_transpose(im, codes, (const uint8_t[]){1, 2, 0})),
                                F_ATTRS(dlc_attr_int(DLC_ATTR_DTYPE, DLC_I32)));
    /* zeros and scales [n, nblocks, 1] or scalar: per block and column [nblocks, 1, n] */
    dlc_value *centre = zeros && im_rank(zeros) ? f_transpose(im, zeros, (const uint8_t[]){1, 2, 0}) : zeros;
    dlc_value *y = f_sub(im, f_cast(im, product, DLC_F32), f_mul(im, blocks_first(im, sum), centre));
    y = f_mul(im, f_mul(im, y, f_transpose(im, scales, (const uint8_t[]){1, 2, 0})), blocks_first(im, step));
    return f_reduce(im, DLC_OP_REDUCE_SUM, y, (const uint8_t[]){0}, 1, 0);
}

void import_mat_mul_n_bits(dlc_import *im)
{
    dlc_value *a = im_in(im, 0), *packed = im_in(im, 1), *scales = im_in(im, 2);
    shape s = {im_int(im, "K", 0), im_int(im, "N", 0), im_int(im, "bits", 4), im_int(im, "block_size", 0), 0};
    int64_t level = im_int(im, "accuracy_level", 0);
    (void)im_int(im, "weight_prepacked", 0);
    if (im_in(im, 4))
        im_fail(im, DLC_UNSUPPORTED, "g_idx, an order of its own along k");
    else if ((s.bits != 2 && s.bits != 4 && s.bits != 8) || s.block < 8 / s.bits || s.block % (8 / s.bits) || s.block > INT32_MAX ||
             s.k < 1 || s.k > INT32_MAX || s.n < 1 || s.n > INT32_MAX)
        im_fail(im, DLC_INVALID, "bits = %" PRId64 ", block_size = %" PRId64 ", K = %" PRId64 ", N = %" PRId64, s.bits, s.block, s.k, s.n);
    else if (packed->type.dtype != DLC_U8)
        im_fail(im, DLC_UNSUPPORTED, "weights are %s; packed u8 is supported", dlc_dtypes[packed->type.dtype].text);
    else if (im_rank(a) < 1)
        im_fail(im, DLC_INVALID, "the input is a scalar");
    if (!im_ok(im))
        return;
    s.nblocks = (s.k + s.block - 1) / s.block;
    const dlc_expr per_block[3] = {im_i64(im, s.n), im_i64(im, s.nblocks), im_i64(im, 1)};
    dlc_value *codes = codes_of(im, packed, &s), *zeros = zeros_of(im, im_in(im, 3), &s);
    scales = f_reshape(im, f_cast(im, scales, DLC_F32), per_block, 3);
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t rank = im_rank(a);
    for (uint32_t i = 0; i + 1 < rank; i++)
        dims[i] = a->type.dims[i];
    dims[rank - 1] = im_i64(im, s.n);
    dlc_value *y = (level == BYTES ? by_bytes : by_floats)(im, whole_rows(im, a, &s), codes, zeros, scales, &s);
    y = f_cast(im, f_reshape(im, y, dims, rank), a->type.dtype);
    im->out[0] = im_in(im, 5) ? f_add(im, y, im_in(im, 5)) : y;
}

/* --- lookups --- */

/* Bytes [.., c] whose codes follow each other, low bits first: [.., c * parts]. */
static dlc_value *codes_in_order(dlc_import *im, dlc_value *bytes, int64_t bits)
{
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t rank = im_rank(bytes);
    if (bits == 8 || !bytes)
        return bytes;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = bytes->type.dims[i];
    dims[rank - 1] = dlc_muli(im->pool, dims[rank - 1], 8 / bits);
    return f_reshape(im, f_swap_last(im, im_unpack(im, bytes, bits)), dims, rank);
}

/* (codes - zero) * scale of the rows that the indices name: only these are unpacked. */
void import_gather_block_quantized(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *indices = im_in(im, 1), *scales = im_in(im, 2), *zeros = im_in(im, 3);
    int64_t bits = im_int(im, "bits", 4), block = im_int(im, "block_size", 128);
    int gathered = im_axis(im, im_int(im, "gather_axis", 0), im_rank(x)), blocked = im_axis(im, im_int(im, "quantize_axis", 1), im_rank(x));
    if (!im_ok(im))
        return;
    uint32_t last = im_rank(x) - 1, at = (uint32_t)blocked;
    int is_bytes = x->type.dtype == DLC_U8;
    if (!is_bytes && x->type.dtype != DLC_I4 && x->type.dtype != DLC_U4)
        im_fail(im, DLC_UNSUPPORTED, "data is %s; u8, i4 and u4 are supported", dlc_dtypes[x->type.dtype].text);
    else if (gathered == blocked || (is_bytes && (gathered != 0 || at != last)))
        im_fail(im, DLC_INVALID, "gather_axis is %d, quantize_axis %d; of bytes 0 and the last, of others two different ones are possible",
                gathered, blocked);
    else if (block < 1 || block > INT32_MAX || (is_bytes && bits != 4 && bits != 8 && bits != 2))
        im_fail(im, DLC_INVALID, "bits = %" PRId64 ", block_size = %" PRId64, bits, block);
    if (!im_ok(im))
        return;
    if (blocked > gathered)
        at += im_rank(indices) - 1;
    dlc_value *y = f_gather(im, x, indices, (uint32_t)gathered), *scale = f_gather(im, scales, indices, (uint32_t)gathered),
              *zero = zeros ? f_gather(im, zeros, indices, (uint32_t)gathered) : NULL;
    if (is_bytes) {
        y = codes_in_order(im, y, bits);
        if (zero && y && scale)
            zero = f_slice(im, codes_in_order(im, zero, bits), at, im_i64(im, 0), scale->type.dims[at]);
    }
    y = f_cast(im, y, DLC_F32);
    if (zero)
        y = f_sub(im, y, f_cast(im, im_spread_blocks(im, y, zero, at, block), DLC_F32));
    else if (is_bytes)
        y = f_sub(im, y, f_scalar(im, DLC_F32, (double)(1 << (bits - 1))));
    dlc_value *wide = y ? im_spread_blocks(im, y, f_cast(im, scale, DLC_F32), at, block) : NULL;
    im->out[0] = wide ? f_cast(im, f_mul(im, y, wide), scales->type.dtype) : NULL;
}

/* What models are made of, a few nodes at once: normalisations, attention, quantised products, residuals. */
#include "tests/differ/kinds.h"

#include <string.h>

static dlc_value *reduced(make *m, dlc_opcode op, dlc_value *x, int64_t axis)
{
    dlc_attr attrs[] = {dlc_attr_ints(m->graph, DLC_ATTR_AXES, &axis, 1), dlc_attr_int(DLC_ATTR_KEEPDIMS, 1)};
    return x ? make_node(m, op, &x, 1, attrs, 2) : NULL;
}

static dlc_value *both(make *m, dlc_opcode op, dlc_value *a, dlc_value *b)
{
    return a && b ? make_binary(m, op, a, b) : NULL;
}

static dlc_value *softmax(make *m, dlc_value *x, int64_t axis)
{
    dlc_value *apart = both(m, DLC_OP_SUB, x, reduced(m, DLC_OP_REDUCE_MAX, x, axis));
    dlc_value *e = apart ? make_unary(m, DLC_OP_EXP, apart) : NULL;
    return both(m, DLC_OP_DIV, e, reduced(m, DLC_OP_REDUCE_SUM, e, axis));
}

static dlc_value *normalised(make *m, dlc_value *x, int64_t axis)
{
    dlc_value *apart = both(m, DLC_OP_SUB, x, reduced(m, DLC_OP_REDUCE_MEAN, x, axis));
    dlc_value *variance = reduced(m, DLC_OP_REDUCE_MEAN, both(m, DLC_OP_MUL, apart, apart), axis);
    dlc_value *more = variance ? both(m, DLC_OP_ADD, variance, make_scalar(m, variance->type.dtype, 1e-2)) : NULL;
    dlc_value *y = both(m, DLC_OP_DIV, apart, more ? make_unary(m, DLC_OP_SQRT, more) : NULL);
    dlc_value *scale = y && y->type.rank ? make_source(m, y->type.dtype, y->type.dims + y->type.rank - 1, 1, 0) : NULL;
    return both(m, DLC_OP_ADD, both(m, DLC_OP_MUL, y, scale), scale);
}

static dlc_value *transposed(make *m, dlc_value *x)
{
    int64_t perm[DLC_MAX_RANK];
    uint32_t rank = x->type.rank;
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = d;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    dlc_attr attr = dlc_attr_ints(m->graph, DLC_ATTR_PERM, perm, rank);
    return make_node(m, DLC_OP_TRANSPOSE, &x, 1, &attr, 1);
}

static dlc_value *attention(make *m, dlc_value *q)
{
    dlc_value *k = make_find(m, &q->type, q);
    k = k ? k : make_source(m, q->type.dtype, q->type.dims, q->type.rank, 0);
    dlc_value *scores = k ? both(m, DLC_OP_MATMUL, q, transposed(m, k)) : NULL;
    dlc_value *scaled = scores ? both(m, DLC_OP_MUL, scores, make_scalar(m, scores->type.dtype, 0.25)) : NULL;
    return scaled ? both(m, DLC_OP_MATMUL, softmax(m, scaled, scaled->type.rank - 1), k) : NULL;
}

static dlc_value *quantised(make *m, dlc_value *x, dlc_dtype code, double scale, double zero)
{
    dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_DTYPE, code), dlc_attr_int(DLC_ATTR_SATURATE, 1)};
    dlc_value *steps = both(m, DLC_OP_DIV, x, make_scalar(m, DLC_F32, scale));
    dlc_value *whole = steps ? make_unary(m, DLC_OP_ROUND, steps) : NULL;
    whole = zero != 0 ? both(m, DLC_OP_ADD, whole, make_scalar(m, DLC_F32, zero)) : whole;
    return whole ? make_node(m, DLC_OP_CAST, &whole, 1, attrs, 2) : NULL;
}

static dlc_value *dequantised(make *m, dlc_value *codes, double scale, double zero)
{
    dlc_value *wide = codes ? make_cast(m, codes, DLC_I32) : NULL;
    wide = zero != 0 ? both(m, DLC_OP_SUB, wide, make_scalar(m, DLC_I32, zero)) : wide;
    return wide ? both(m, DLC_OP_MUL, make_cast(m, wide, DLC_F32), make_scalar(m, DLC_F32, scale)) : NULL;
}

/* dequantise, multiply by dequantised weights, quantise again: what the pass `integers` looks for. */
static dlc_value *quantised_product(make *m, dlc_value *x)
{
    static const double scales[] = {0.0625, 0.03, 0.5, 0.013};
    double scale = scales[one_of(m->from, 4)], zero = chance(m->from, 50) ? 0.0 : 3.0 + one_of(m->from, 20);
    dlc_dtype code = chance(m->from, 60) ? DLC_U8 : DLC_I8;
    dlc_value *in = dequantised(m, quantised(m, make_cast(m, x, DLC_F32), code, scale, zero), scale, zero);
    dlc_expr dims[4];
    int64_t c = 0, oc = 1 + one_of(m->from, 17), pads[] = {1, 1, 1, 1};
    if (!in)
        return NULL;
    int is_conv = in->type.rank == 4 && dlc_expr_is_int(m->graph->pool, in->type.dims[1], &c) && chance(m->from, 70);
    dims[0] = is_conv ? make_int(m, oc) : in->type.dims[in->type.rank - 1];
    dims[1] = is_conv ? make_int(m, c) : make_int(m, oc);
    dims[2] = dims[3] = make_int(m, 3);
    dlc_value *w = dequantised(m, make_source(m, DLC_I8, dims, is_conv ? 4 : 2, 0), 0.05, 0);
    dlc_attr attr = dlc_attr_ints(m->graph, DLC_ATTR_PADS, pads, 4);
    dlc_value *y = !w ? NULL : make_node(m, is_conv ? DLC_OP_CONV : DLC_OP_MATMUL, (dlc_value *[]){in, w}, 2, &attr, is_conv);
    if (y && chance(m->from, 40))
        y = make_unary(m, DLC_OP_RELU, y);
    return y && chance(m->from, 60) ? dequantised(m, quantised(m, y, code, 0.21, zero), 0.21, zero) : y;
}

static dlc_value *with_itself(make *m, dlc_value *x)
{
    static const dlc_opcode maps[] = {DLC_OP_TANH, DLC_OP_RELU, DLC_OP_SIGMOID, DLC_OP_GELU};
    return both(m, chance(m->from, 60) ? DLC_OP_ADD : DLC_OP_MUL, make_unary(m, maps[one_of(m->from, 4)], x), x);
}

void kind_pattern(make *m)
{
    item x = make_pick(m, WANT_FLOAT, 2, 4);
    if (!x.value)
        return;
    int64_t axis = chance(m->from, 70) ? x.value->type.rank - 1 : (int)one_of(m->from, x.value->type.rank);
    switch (one_of(m->from, 5)) {
    case 0:
        make_keep(m, softmax(m, x.value, axis), 1, 0);
        break;
    case 1:
        make_keep(m, normalised(m, x.value, axis), 2, 0);
        break;
    case 2:
        make_keep(m, attention(m, x.value), 2, 0);
        break;
    case 3:
        make_tame(m, quantised_product(m, x.value), x.size * 4);
        break;
    default:
        make_tame(m, with_itself(m, x.value), x.size * (x.size + 1));
    }
}

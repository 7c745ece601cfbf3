/*
 * Rules of arithmetic. What is not here is as telling: x * 0, x - x, x / x and x + 0.0 are not what
 * they seem for infinities, NaN and -0.0, so no rule touches them.
 */
#include "passes/simplify/simplify.h"

#include <math.h>
#include <string.h>

/* x, when the node's result has x's type: a broadcast against the other operand would change it. */
static dlc_value *keep(const dlc_node *node, dlc_value *value)
{
    return dlc_same_type(&value->type, &node->outputs[0]->type) ? value : NULL;
}

static int is_float_node(const dlc_node *node)
{
    return dlc_is_float(node->inputs[0]->type.dtype);
}

/* x + -0.0 = x for every x; x + 0.0 turns -0.0 into 0.0. Integers: x + 0. */
dlc_value *dlc_rule_add_zero(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    double zero = is_float_node(node) ? -0.0 : 0.0;
    for (uint32_t i = 0; i < 2; i++)
        if (dlc_is_filled_with(node->inputs[i], zero))
            return keep(node, node->inputs[1 - i]);
    return NULL;
}

/* x - 0.0 = x */
dlc_value *dlc_rule_sub_zero(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    return dlc_is_filled_with(node->inputs[1], 0.0) ? keep(node, node->inputs[0]) : NULL;
}

/* x - c = x + -c: one form for sums with constants, which later rules gather. */
dlc_value *dlc_rule_sub_constant(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!is_float_node(node) || !dlc_is_constant(node->inputs[1]) ||
        dlc_is_constant(node->inputs[0]))
        return NULL;
    dlc_value *negated = dlc_build_folded(
        ctx, dlc_build(ctx->graph, node, DLC_OP_NEG, &node->inputs[1], 1, NULL, 0));
    return negated ? dlc_build2(ctx->graph, node, DLC_OP_ADD, node->inputs[0], negated) : NULL;
}

/* x * 1 = x */
dlc_value *dlc_rule_mul_one(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    for (uint32_t i = 0; i < 2; i++)
        if (dlc_is_filled_with(node->inputs[i], 1))
            return keep(node, node->inputs[1 - i]);
    return NULL;
}

/* x / 1 = x */
dlc_value *dlc_rule_div_one(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    return dlc_is_filled_with(node->inputs[1], 1) ? keep(node, node->inputs[0]) : NULL;
}

/* A power whose result has its base's shape. */
static int is_power(const dlc_node *node, double exponent)
{
    return dlc_is_filled_with(node->inputs[1], exponent) && keep(node, node->inputs[0]);
}

/* x ^ 1 = x */
dlc_value *dlc_rule_pow_one(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    return is_power(node, 1) ? node->inputs[0] : NULL;
}

/* x ^ 2 = x * x, which is correctly rounded */
dlc_value *dlc_rule_pow_two(dlc_pass_ctx *ctx, dlc_node *node)
{
    return is_power(node, 2)
               ? dlc_build2(ctx->graph, node, DLC_OP_MUL, node->inputs[0], node->inputs[0])
               : NULL;
}

/* x ^ -1 = 1 / x, which is correctly rounded. Floats: an integer's is 0, 1 or -1. */
dlc_value *dlc_rule_pow_minus_one(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!is_float_node(node) || !is_power(node, -1))
        return NULL;
    return dlc_build(ctx->graph, node, DLC_OP_RECIPROCAL, node->inputs, 1, NULL, 0);
}

/* x ^ 3 = x * x * x: two roundings. x * x overflows or underflows only where x ^ 3 does. f16 has no
 * room for the second rounding, and its x * x may overflow late: left alone. */
dlc_value *dlc_rule_pow_three(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_dtype dtype = node->inputs[0]->type.dtype;
    if (dtype == DLC_F16 || dtype == DLC_BF16 || !is_power(node, 3))
        return NULL;
    dlc_value *square = dlc_build2(ctx->graph, node, DLC_OP_MUL, node->inputs[0], node->inputs[0]);
    return square ? dlc_build2(ctx->graph, node, DLC_OP_MUL, square, node->inputs[0]) : NULL;
}

/* -(-x) = x; not(not(x)) = x */
dlc_value *dlc_rule_twice_undone(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    if (node->op != DLC_OP_NEG && node->op != DLC_OP_NOT)
        return NULL;
    return dlc_is_op(node->inputs[0], node->op) ? node->inputs[0]->def->inputs[0] : NULL;
}

/* f(f(x)) = f(x) */
dlc_value *dlc_rule_idempotent(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    if (!(dlc_ops[node->op].traits & DLC_TRAIT_IDEMPOTENT) || node->ninputs != 1 || node->nattrs)
        return NULL;
    return dlc_is_op(node->inputs[0], node->op) ? node->inputs[0] : NULL;
}

/* --- bounds: relu, clip, and min or max with one number are min(hi, max(lo, x)) --- */

typedef struct {
    dlc_value *x;
    double lo, hi;
} bounds;

/* A number that a double holds exactly, finite or not, but no NaN. */
static int bound_value(const dlc_value *value, double *bound)
{
    dlc_scalar element;
    if (!dlc_is_filled(value, &element))
        return 0;
    if (dlc_is_float(value->type.dtype)) {
        *bound = element.f;
        return !isnan(element.f);
    }
    *bound = (double)element.i;
    return element.i > -(INT64_C(1) << 53) && element.i < INT64_C(1) << 53;
}

static int min_max_bounds(const dlc_node *node, bounds *result)
{
    for (uint32_t i = 0; i < 2; i++) {
        double bound;
        if (!bound_value(node->inputs[i], &bound) || !keep(node, node->inputs[1 - i]))
            continue;
        if (bound == 0 && i == 1)
            return 0; /* of equal operands the second is taken: max(0.0, -0.0) is -0.0, max(-0.0,
                         0.0) is not */
        *result = (bounds){node->inputs[1 - i], -INFINITY, INFINITY};
        *(node->op == DLC_OP_MAX ? &result->lo : &result->hi) = bound;
        return 1;
    }
    return 0;
}

static int clip_bounds(const dlc_node *node, bounds *result)
{
    *result = (bounds){node->inputs[0], -INFINITY, INFINITY};
    if (node->ninputs > 1 && node->inputs[1] && !bound_value(node->inputs[1], &result->lo))
        return 0;
    return node->ninputs < 3 || !node->inputs[2] || bound_value(node->inputs[2], &result->hi);
}

static int bounds_of(const dlc_value *value, bounds *result)
{
    if (!value || !value->def)
        return 0;
    switch (value->def->op) {
    case DLC_OP_RELU:
        *result = (bounds){value->def->inputs[0], 0, INFINITY};
        return 1;
    case DLC_OP_CLIP:
        return clip_bounds(value->def, result);
    case DLC_OP_MIN:
    case DLC_OP_MAX:
        return min_max_bounds(value->def, result);
    default:
        return 0;
    }
}

/* Zeros of two signs side by side: which one a bound gives depends on the order of the two
 * operations. */
static int is_zero_ambiguous(double a, double b)
{
    return a == 0 && b == 0 && !signbit(a) != !signbit(b);
}

static dlc_value *build_bounds(dlc_graph *graph, dlc_node *at, const bounds *limit)
{
    dlc_dtype dtype = limit->x->type.dtype;
    int has_lo = limit->lo > -INFINITY, has_hi = limit->hi < INFINITY;
    if (has_lo && !has_hi && limit->lo == 0 && !signbit(limit->lo))
        return dlc_build(graph, at, DLC_OP_RELU, &limit->x, 1, NULL, 0);
    if (has_lo && !has_hi)
        return dlc_build2(graph, at, DLC_OP_MAX, dlc_graph_scalar(graph, dtype, limit->lo),
                          limit->x);
    if (has_hi && !has_lo)
        return dlc_build2(graph, at, DLC_OP_MIN, dlc_graph_scalar(graph, dtype, limit->hi),
                          limit->x);
    dlc_value *inputs[3] = {limit->x, dlc_graph_scalar(graph, dtype, limit->lo),
                            dlc_graph_scalar(graph, dtype, limit->hi)};
    return dlc_build(graph, at, DLC_OP_CLIP, inputs, 3, NULL, 0);
}

/* clip(clip(x, a, b), c, d) = clip(x, max(a, c), min(b, d)) while the intervals meet; disjoint ones
 * give a constant or NaN. */
dlc_value *dlc_rule_bounds_of_bounds(dlc_pass_ctx *ctx, dlc_node *node)
{
    bounds outer, inner;
    if (!bounds_of(node->outputs[0], &outer) || !bounds_of(outer.x, &inner))
        return NULL;
    bounds both = {inner.x, fmax(inner.lo, outer.lo), fmin(inner.hi, outer.hi)};
    if (inner.lo > inner.hi || outer.lo > outer.hi || both.lo > both.hi)
        return NULL;
    if (is_zero_ambiguous(inner.lo, outer.lo) || is_zero_ambiguous(inner.hi, outer.hi) ||
        is_zero_ambiguous(both.lo, both.hi))
        return NULL;
    if (both.lo == -INFINITY && both.hi == INFINITY)
        return NULL;
    if (both.lo == inner.lo && both.hi == inner.hi)
        return outer.x; /* the inner bounds are the tighter ones */
    return build_bounds(ctx->graph, node, &both);
}

/* --- where, cast, expand --- */

/* where(true, x, y) = x, where(false, x, y) = y */
dlc_value *dlc_rule_where_constant(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    dlc_scalar condition;
    if (!dlc_is_filled(node->inputs[0], &condition))
        return NULL;
    return keep(node, node->inputs[condition.i ? 1 : 2]);
}

/* where(c, x, x) = x */
dlc_value *dlc_rule_where_same(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    return node->inputs[1] == node->inputs[2] ? keep(node, node->inputs[1]) : NULL;
}

/* A cast to the type it has */
dlc_value *dlc_rule_cast_same(dlc_pass_ctx *ctx, dlc_node *node)
{
    (void)ctx;
    return keep(node, node->inputs[0]);
}

/* Bits of magnitude a type holds exactly; floats: of the significand. */
static uint32_t exact_bits(dlc_dtype dtype)
{
    switch (dtype) {
    case DLC_BOOL:
        return 1;
    case DLC_F16:
        return 11;
    case DLC_BF16:
        return 8;
    case DLC_F32:
        return 24;
    case DLC_F64:
        return 53;
    default:
        return dlc_dtypes[dtype].bits - (dlc_is_unsigned(dtype) ? 0 : 1);
    }
}

/* Every value of `from` is a value of `to`. */
static int keeps_values(dlc_dtype from, dlc_dtype to)
{
    if (from == to || from == DLC_BOOL)
        return 1;
    if (dlc_is_code(from) || dlc_is_code(to)) /* one of few bits is none of another format */
        return to == DLC_F32 || to == DLC_F64;
    if (to == DLC_BOOL || exact_bits(from) > exact_bits(to))
        return 0;
    if (dlc_is_float(from))
        return dlc_is_float(to) && !(from == DLC_BF16 && to == DLC_F16);
    if (to == DLC_F16)
        return exact_bits(from) <= 11;
    return dlc_is_float(to) || dlc_is_unsigned(from) || !dlc_is_unsigned(to);
}

/* cast(cast(x)) = cast(x) when the inner cast keeps every value: the outer one then sees x itself.
 */
dlc_value *dlc_rule_cast_of_cast(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (!dlc_is_op(node->inputs[0], DLC_OP_CAST))
        return NULL;
    dlc_value *x = node->inputs[0]->def->inputs[0];
    if (!keeps_values(x->type.dtype, node->inputs[0]->type.dtype))
        return NULL;
    return dlc_same_type(&x->type, &node->outputs[0]->type) ? x
                                                            : dlc_build_like(ctx->graph, node, &x);
}

/* Dimension d of the result, counted from the last, is given by an input other than `skip`, or by
 * `value`. */
static int is_dim_given(const dlc_node *node, uint32_t skip, const dlc_value *value,
                        uint32_t from_last)
{
    const dlc_type *result = &node->outputs[0]->type;
    dlc_expr wanted = result->dims[result->rank - 1 - from_last];
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_value *input = i == skip ? value : node->inputs[i];
        if (input && from_last < input->type.rank &&
            input->type.dims[input->type.rank - 1 - from_last] == wanted)
            return 1;
    }
    return 0;
}

/* Without the expand the result has the same shape: the operator broadcasts by itself. */
static int is_expand_needless(const dlc_node *node, uint32_t input)
{
    const dlc_value *x = node->inputs[input]->def->inputs[0];
    for (uint32_t d = 0; d < node->outputs[0]->type.rank; d++)
        if (!is_dim_given(node, input, x, d))
            return 0;
    return 1;
}

/* expand(x) + y = x + y where the result's shape does not come from the expand alone */
dlc_value *dlc_rule_broadcast_of_expand(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (node->ninputs < 2 || node->ninputs > DLC_MOST_OPERANDS)
        return NULL;
    for (uint32_t i = 0; i < node->ninputs; i++) {
        if (!dlc_is_op(node->inputs[i], DLC_OP_EXPAND) || !is_expand_needless(node, i))
            continue;
        dlc_value *inputs[DLC_MOST_OPERANDS];
        memcpy(inputs, node->inputs, node->ninputs * sizeof *inputs);
        inputs[i] = node->inputs[i]->def->inputs[0];
        dlc_value *result = dlc_build_map_like(ctx, node, inputs);
        return result && dlc_same_type(&result->type, &node->outputs[0]->type) ? result : NULL;
    }
    return NULL;
}

/* The only input with more than one element, if that is an expand to the result's shape; else -1.
 */
static int expanded_input(const dlc_graph *graph, const dlc_node *node)
{
    int found = -1;
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_value *input = node->inputs[i];
        int64_t elems;
        if (!input || (dlc_type_elems(graph->pool, &input->type, &elems) && elems == 1))
            continue;
        if (found >= 0 || !dlc_is_op(input, DLC_OP_EXPAND))
            return -1;
        found = (int)i;
    }
    if (found < 0)
        return -1;
    const dlc_type *type = &node->inputs[found]->type, *result = &node->outputs[0]->type;
    int is_whole = type->rank == result->rank &&
                   !memcmp(type->dims, result->dims, type->rank * sizeof *type->dims);
    return is_whole ? found : -1;
}

/* f(expand(x), numbers) = expand(f(x, numbers)): computed once per element of x */
dlc_value *dlc_rule_expand_below_map(dlc_pass_ctx *ctx, dlc_node *node)
{
    int found = node->ninputs <= DLC_MOST_OPERANDS ? expanded_input(ctx->graph, node) : -1;
    if (found < 0)
        return NULL;
    dlc_value *inputs[DLC_MOST_OPERANDS];
    memcpy(inputs, node->inputs, node->ninputs * sizeof *inputs);
    inputs[found] = node->inputs[found]->def->inputs[0];
    dlc_value *narrow = dlc_build_map_like(ctx, node, inputs);
    dlc_attr dims =
        dlc_attr_dims(DLC_ATTR_DIMS, node->outputs[0]->type.dims, node->outputs[0]->type.rank);
    return narrow ? dlc_build(ctx->graph, node, DLC_OP_EXPAND, &narrow, 1, &dims, 1) : NULL;
}

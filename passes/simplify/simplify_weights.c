/*
 * What scales or shifts the result of a contraction by constants per output channel goes into its
 * weights and bias at compile time: batch normalisation after a convolution vanishes. Licensed
 * (docs/numerics.md): each product x*w is rounded once more, nothing is reassociated across
 * different inputs. Refused where folding could lose what the model kept: a weight that would
 * become infinite, NaN or subnormal, f16 and bf16 weights, a contraction with other readers.
 * Likewise the constants that turn one quantised value into another: one scale, one bias.
 */
#include "base/budget.h"
#include "passes/simplify/const_fold.h"
#include "ir/graph/form.h"
#include "passes/simplify/simplify.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A contraction by constant weights whose result nobody else reads. */
typedef struct {
    dlc_node *node;
    dlc_value *weights;
    uint32_t channel; /* dimension of the result that the weights' channel dimension becomes */
    uint32_t weight_channel; /* that dimension of the weights */
    uint32_t per_channel;    /* 0: only one scale for all fits */
} weighted;

static int channels_of(weighted *found)
{
    const dlc_node *node = found->node;
    found->per_channel = 1;
    switch (node->op) {
    case DLC_OP_CONV:
        found->channel = 1, found->weight_channel = 0;
        return 1;
    case DLC_OP_CONV_TRANSPOSE:
        found->channel = found->weight_channel = 1;
        found->per_channel = dlc_node_int(node, DLC_ATTR_GROUP, 1) == 1;
        return 1;
    case DLC_OP_MATMUL:
        found->channel = node->outputs[0]->type.rank - 1u;
        found->weight_channel = found->weights->type.rank - 1u;
        return 1;
    default:
        return 0;
    }
}

static int is_weighted(const dlc_value *value, weighted *found)
{
    if (!value->def || value->def->ninputs < 2 || dlc_value_nuses(value) != 1)
        return 0;
    *found = (weighted){.node = value->def, .weights = value->def->inputs[1]};
    if (!dlc_is_constant(found->weights) || dlc_is_constant(value->def->inputs[0]))
        return 0;
    dlc_dtype dtype = found->weights->type.dtype;
    return (dtype == DLC_F32 || dtype == DLC_F64) && channels_of(found);
}

/* The constant operand of a node of two; NULL when there is none. `other` gets the other one, of
 * the result's type. */
static dlc_value *constant_operand(const dlc_node *node, dlc_value **other)
{
    for (uint32_t i = 2; i-- > 0;) {
        if (!dlc_is_constant(node->inputs[i]) || (node->op == DLC_OP_DIV && i == 0))
            continue;
        *other = node->inputs[1 - i];
        if (!dlc_is_constant(*other) && dlc_same_type(&(*other)->type, &node->outputs[0]->type))
            return node->inputs[i];
    }
    return NULL;
}

static int64_t elems_of(const dlc_graph *graph, const dlc_value *value)
{
    int64_t elems;
    return dlc_type_elems(graph->pool, &value->type, &elems) ? elems : -1;
}

/* `scale`, broadcast to the result, varies along the channel dimension at most. */
static int is_along_channels(const dlc_graph *graph, const dlc_value *scale, const weighted *by)
{
    uint32_t rank = by->node->outputs[0]->type.rank;
    int64_t elems = elems_of(graph, scale), along = 1;
    if (elems < 1 || scale->type.rank > rank)
        return 0;
    uint32_t missing = rank - scale->type.rank;
    if (by->per_channel && by->channel >= missing)
        dlc_expr_is_int(graph->pool, scale->type.dims[by->channel - missing], &along);
    return elems == along;
}

/* The scale in the weights' shape: extent 1 everywhere but along the channels. */
static dlc_value *scale_of_weights(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *scale,
                                   const weighted *by)
{
    dlc_graph *graph = ctx->graph;
    dlc_expr dims[DLC_MAX_RANK];
    for (uint32_t d = 0; d < by->weights->type.rank; d++)
        dims[d] = dlc_expr_i64(graph->pool, d == by->weight_channel ? elems_of(graph, scale) : 1);
    return dlc_build_folded(ctx, dlc_build_reshape(graph, at, scale, dims, by->weights->type.rank));
}

/* Weights are looked at from their first element on, and need not stay in memory behind that. */
static double number_at(const dlc_value *constant, size_t i)
{
    enum { PART = 1 << 20 };
    float narrow;
    double wide;
    if (i % PART == PART - 1)
        dlc_budget_read(PART * dlc_dtype_bytes(constant->type.dtype));
    if (constant->type.dtype == DLC_F32) {
        memcpy(&narrow, (const char *)constant->data->bytes + i * sizeof narrow, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, (const char *)constant->data->bytes + i * sizeof wide, sizeof wide);
    return wide;
}

/* Every scaled weight will be a normal number, or zero because the weight or its scale is. */
static int is_scaling_safe(const dlc_graph *graph, const weighted *by, const dlc_value *scale,
                           dlc_opcode op)
{
    const dlc_type *type = &by->weights->type;
    size_t n = (size_t)elems_of(graph, by->weights), nscales = (size_t)elems_of(graph, scale),
           inner = 1;
    double smallest = type->dtype == DLC_F32 ? (double)FLT_MIN : DBL_MIN;
    for (uint32_t d = by->weight_channel + 1; d < type->rank; d++)
        inner *= (size_t)dlc_expr_value(graph->pool, type->dims[d]);
    for (size_t i = 0; i < n; i++) {
        double weight = number_at(by->weights, i), factor = number_at(scale, i / inner % nscales);
        double result =
            dlc_round_to(type->dtype, op == DLC_OP_DIV ? weight / factor : weight * factor);
        if (fabs(result) >= smallest && isfinite(result))
            continue;
        if (result != 0 || (weight != 0 && factor != 0))
            return 0;
    }
    return 1;
}

/* op(weights, scale) as a constant, or NULL. What only this contraction read is given back to the
 * budget. */
static dlc_value *scaled_weights(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *scale,
                                 const weighted *by)
{
    dlc_value *spread = scale_of_weights(ctx, at, scale, by);
    dlc_value *product = spread ? dlc_build2(ctx->graph, at, at->op, by->weights, spread) : NULL;
    dlc_value *scaled = product ? dlc_fold_weights(ctx, product->def) : NULL;
    if (product)
        dlc_graph_erase(ctx->graph, product->def);
    if (scaled && dlc_value_nuses(by->weights) == 1)
        ctx->folded_weight_bytes -= scaled->data->size_bytes;
    return scaled;
}

int dlc_are_finite(const dlc_graph *graph, const dlc_value *constant)
{
    size_t n = (size_t)elems_of(graph, constant);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(number_at(constant, i)))
            return 0;
    return 1;
}

/* a op b as a constant no larger than the larger of the two, all finite; or NULL. */
static dlc_value *combined(dlc_pass_ctx *ctx, dlc_node *at, dlc_opcode op, dlc_value *a,
                           dlc_value *b)
{
    dlc_value *result = dlc_build_folded(ctx, dlc_build2(ctx->graph, at, op, a, b));
    if (!result || !dlc_are_finite(ctx->graph, result))
        return NULL;
    int64_t elems = elems_of(ctx->graph, result);
    return elems <= elems_of(ctx->graph, a) || elems <= elems_of(ctx->graph, b) ? result : NULL;
}

/* The contraction over other weights. It stays the model's node, by origin and name. */
static dlc_value *rebuild(dlc_graph *graph, dlc_node *at, const weighted *by, dlc_value *weights)
{
    dlc_value *inputs[2] = {by->node->inputs[0], weights};
    dlc_node_spec spec = {.op = by->node->op,
                          .origin = by->node->origin,
                          .name = by->node->outputs[0]->name,
                          .inputs = inputs,
                          .ninputs = 2,
                          .attrs = by->node->attrs,
                          .nattrs = by->node->nattrs,
                          .before = at};
    dlc_node *node = dlc_graph_node(graph, &spec);
    return node ? node->outputs[0] : NULL;
}

/* conv(x, w) * s = conv(x, w * s) and (conv(x, w) + b) * s = conv(x, w * s) + b * s; division alike
 */
dlc_value *dlc_rule_scale_into_weights(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *sum, *product, *bias = NULL;
    weighted by;
    if (node->op != DLC_OP_MUL && node->op != DLC_OP_DIV)
        return NULL;
    dlc_value *scale = constant_operand(node, &sum);
    if (!scale)
        return NULL;
    product = sum;
    if (dlc_is_op(sum, DLC_OP_ADD)) {
        bias = dlc_value_nuses(sum) == 1 ? constant_operand(sum->def, &product) : NULL;
        if (!bias)
            return NULL;
    }
    if (!is_weighted(product, &by) || !is_along_channels(ctx->graph, scale, &by) ||
        !is_scaling_safe(ctx->graph, &by, scale, node->op))
        return NULL;
    dlc_value *new_bias = bias ? combined(ctx, node, node->op, bias, scale) : NULL;
    if (bias && !new_bias)
        return NULL;
    dlc_value *weights = scaled_weights(ctx, node, scale, &by);
    dlc_value *result = weights ? rebuild(ctx->graph, node, &by, weights) : NULL;
    return result && bias ? dlc_build2(ctx->graph, node, DLC_OP_ADD, result, new_bias) : result;
}

/* Every element is a normal number. */
static int are_normal(const dlc_graph *graph, const dlc_value *constant)
{
    size_t n = (size_t)elems_of(graph, constant);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(number_at(constant, i)) || fabs(number_at(constant, i)) < (double)FLT_MIN)
            return 0;
    return 1;
}

/* Integers as f32, by a constant scale: the scale. */
static dlc_value *scale_of_integers(const dlc_value *value, dlc_value **integers)
{
    dlc_value *scale = dlc_is_op(value, DLC_OP_MUL) ? constant_operand(value->def, integers) : NULL;
    return scale && dlc_is_op(*integers, DLC_OP_CAST) && dlc_is_int((*integers)->def->inputs[0]->type.dtype) ? scale : NULL;
}

/* f32(n) * s / t as f32(n) * (s / t), or a constant over t. */
static dlc_value *integers_over(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *term, dlc_value *by)
{
    dlc_value *integers = NULL, *scale = dlc_is_constant(term) ? term : scale_of_integers(term, &integers);
    dlc_value *both = scale ? combined(ctx, at, DLC_OP_DIV, scale, by) : NULL;
    if (!both || !integers)
        return both;
    return are_normal(ctx->graph, both) ? dlc_build2(ctx->graph, at, DLC_OP_MUL, integers, both) : NULL;
}

/* (f32(n) * s + b) / t = f32(n) * (s / t) + b / t, n integers, b a constant or such a product too */
dlc_value *dlc_rule_scale_into_scale(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *sum = node->inputs[0], *by = node->inputs[1], *terms[2];
    if (!dlc_is_constant(by) || by->type.dtype != DLC_F32 || dlc_value_nuses(sum) != 1 || dlc_is_constant(sum) ||
        !dlc_same_type(&sum->type, &node->outputs[0]->type))
        return NULL;
    if (!dlc_is_op(sum, DLC_OP_ADD))
        return integers_over(ctx, node, sum, by);
    for (uint32_t i = 0; i < 2; i++)
        if (!(terms[i] = integers_over(ctx, node, sum->def->inputs[i], by)))
            return NULL;
    return dlc_build2(ctx->graph, node, DLC_OP_ADD, terms[0], terms[1]);
}

/* Every element is a whole number that a float holds. */
static int are_floats(const dlc_graph *graph, const dlc_value *constant)
{
    enum { END = 1 << FLT_MANT_DIG };
    for (int64_t i = 0, n = elems_of(graph, constant); i < n; i++) {
        int64_t number = dlc_scalar_read(DLC_I32, (const uint8_t *)constant->data->bytes + i * 4).i;
        if (number <= -END || number >= END)
            return 0;
    }
    return 1;
}

/* Codes that nobody else reads, of a float: as one kernel has both, it rounds, and takes the zero off, in floats. */
static int are_rounded_for(const dlc_value *n)
{
    const dlc_value *codes = dlc_is_op(n, DLC_OP_CAST) ? n->def->inputs[0] : NULL;
    return codes && dlc_value_nuses(codes) == 1 && dlc_is_op(codes, DLC_OP_CAST) && dlc_is_float(codes->def->inputs[0]->type.dtype);
}

/* Of integers f32(n - c), c constant: f32(n) in their place, and what that leaves out, -c * s, is added to *shift, where NULL is 0. */
static int take_shift(dlc_pass_ctx *ctx, dlc_node *at, dlc_value **integers, dlc_value *scale, dlc_value **shift)
{
    dlc_graph *graph = ctx->graph;
    dlc_value *number = (*integers)->def->inputs[0];
    if (!dlc_is_op(number, DLC_OP_SUB) || number->type.dtype != DLC_I32 || dlc_value_nuses(number) != 1 || dlc_value_nuses(*integers) != 1)
        return 0;
    dlc_value *n = number->def->inputs[0], *c = number->def->inputs[1];
    if (!dlc_is_constant(c) || !are_floats(graph, c) || !dlc_same_type(&n->type, &number->type) || are_rounded_for(n))
        return 0;
    dlc_value *own = dlc_build_folded(ctx, dlc_build_cast(graph, at, c, DLC_F32));
    own = own ? dlc_build_folded(ctx, dlc_build(graph, at, DLC_OP_NEG, &own, 1, NULL, 0)) : NULL;
    own = own ? combined(ctx, at, DLC_OP_MUL, own, scale) : NULL;
    own = own && *shift ? combined(ctx, at, DLC_OP_ADD, own, *shift) : own;
    dlc_value *bare = own ? dlc_build_cast(graph, at, n, DLC_F32) : NULL;
    if (!bare)
        return 0;
    *integers = bare;
    *shift = own;
    return 1;
}

/* f32(n) * s + rest, rest a constant, f32(m) * t, or anything */
static dlc_value *muladd_of(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *integers, dlc_value *scale, dlc_value *rest)
{
    dlc_value *others, *shift = NULL, *factor = dlc_value_nuses(rest) == 1 ? scale_of_integers(rest, &others) : NULL;
    int is_shifted = factor && take_shift(ctx, at, &integers, scale, &shift);
    if (factor && take_shift(ctx, at, &others, factor, &shift))
        is_shifted = 1;
    if (is_shifted)
        rest = dlc_build(ctx->graph, at, DLC_OP_MULADD, (dlc_value *[]){others, factor, shift}, 3, NULL, 0);
    else if (dlc_is_constant(rest) && (shift = rest, take_shift(ctx, at, &integers, scale, &shift)))
        rest = shift;
    return rest ? dlc_build(ctx->graph, at, DLC_OP_MULADD, (dlc_value *[]){integers, scale, rest}, 3, NULL, 0) : NULL;
}

/* round(f32(n) * s + b) = round(muladd(f32(n), s, b)), n integers: what is rounded to a code is rounded once before, not twice. A constant that is
 * taken off n goes into b, or into the product that is added. */
dlc_value *dlc_rule_sum_of_scaled(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *sum = node->inputs[0], *integers;
    if (!dlc_is_op(sum, DLC_OP_ADD) || sum->type.dtype != DLC_F32 || dlc_value_nuses(sum) != 1)
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        dlc_value *product = sum->def->inputs[i], *scale = scale_of_integers(product, &integers);
        if (!scale || dlc_value_nuses(product) != 1 || !dlc_same_type(&product->type, &sum->type))
            continue;
        sum = muladd_of(ctx, sum->def, integers, scale, sum->def->inputs[1 - i]);
        return sum ? dlc_build(ctx->graph, node, DLC_OP_ROUND, &sum, 1, NULL, 0) : NULL;
    }
    return NULL;
}

/* (conv(x, w) + b) + c = conv(x, w) + (b + c) */
dlc_value *dlc_rule_bias_of_bias(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *sum, *product;
    dlc_value *outer = constant_operand(node, &sum);
    if (!outer || !dlc_is_op(sum, DLC_OP_ADD) || dlc_value_nuses(sum) != 1)
        return NULL;
    dlc_value *inner = constant_operand(sum->def, &product);
    dlc_dtype dtype = outer->type.dtype;
    if (!inner || !product->def || (dtype != DLC_F32 && dtype != DLC_F64) ||
        !dlc_form_of(ctx->graph, product->def, ctx->scratch).is_contraction)
        return NULL;
    dlc_value *both = combined(ctx, node, DLC_OP_ADD, inner, outer);
    return both ? dlc_build2(ctx->graph, node, DLC_OP_ADD, product, both) : NULL;
}

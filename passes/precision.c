/*
 * Precision: contractions of weights in a narrower type, where the user asks for it. What such a contraction reads is cut to bf16, once,
 * where it is made; products of bf16 are exact in f32, and sums stay f32. So each result is off by what its factors lost, 2^-9 of each at
 * most. (docs/numerics.md)
 *
 *     conv(x, w) = conv(bf16(x), bf16(w)) {dtype=f32}       matmul likewise, where x or w is a constant
 *
 * Values that others read too keep f32 for those. A product of two activations (attention), a convolution of groups and one of few channels
 * stay as they are: what they would save is less than the cuts cost.
 */
#include "passes/pass.h"
#include "passes/simplify/const_fold.h"
#include "passes/simplify/simplify.h"

#include <string.h>

enum { LEAST_TERMS = 16 /* along the innermost dimension of a sum */ };

/* The dimension along which factors lie together. */
static dlc_expr innermost(const dlc_node *node, uint32_t input)
{
    const dlc_type *type = &node->inputs[input]->type;
    if (node->op == DLC_OP_CONV)
        return type->dims[1];
    return type->dims[input && type->rank > 1 ? type->rank - 2 : type->rank - 1];
}

static int is_suitable(const dlc_graph *graph, const dlc_node *node)
{
    int64_t terms;
    if ((node->op != DLC_OP_CONV && node->op != DLC_OP_MATMUL) || dlc_node_attr(node, DLC_ATTR_DTYPE) ||
        dlc_node_int(node, DLC_ATTR_GROUP, 1) != 1)
        return 0;
    for (uint32_t i = 0; i < 2; i++)
        if (node->inputs[i]->type.dtype != DLC_F32)
            return 0;
    return dlc_is_constant(node->inputs[0]) != dlc_is_constant(node->inputs[1]) &&
           (!dlc_expr_is_int(graph->pool, innermost(node, 1), &terms) || terms >= LEAST_TERMS);
}

static dlc_value *cut(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *value)
{
    dlc_attr attr = dlc_attr_int(DLC_ATTR_DTYPE, DLC_BF16);
    dlc_value *narrow = dlc_build(ctx->graph, at, DLC_OP_CAST, &value, 1, &attr, 1);
    return narrow && dlc_is_constant(value) ? dlc_fold_weights(ctx, narrow->def) : narrow;
}

static dlc_status narrow(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *inputs[2];
    dlc_attr attrs[DLC_ATTR_COUNT];
    for (uint32_t i = 0; i < 2; i++)
        if (!(inputs[i] = cut(ctx, node, node->inputs[i])))
            return ctx->graph->diag->status;
    for (uint32_t a = 0; a < node->nattrs; a++)
        attrs[a] = node->attrs[a];
    attrs[node->nattrs] = dlc_attr_int(DLC_ATTR_DTYPE, DLC_F32);
    dlc_value *result = dlc_build(ctx->graph, node, node->op, inputs, 2, attrs, node->nattrs + 1u);
    if (!result)
        return ctx->graph->diag->status;
    dlc_value *old = node->outputs[0];
    const char *name = old->name;
    old->name = result->name;
    result->name = name;
    dlc_value_replace(ctx->graph, old, result);
    ctx->changes++;
    return DLC_OK;
}

int dlc_is_bf16_asked(const dlc_pass_ctx *ctx)
{
    return ctx->precision && !strcmp(ctx->precision, "bf16");
}

dlc_status dlc_pass_precision(dlc_pass_ctx *ctx)
{
    const char *wanted = ctx->precision ? ctx->precision : "f32";
    if (!strcmp(wanted, "f32"))
        return DLC_OK;
    if (!dlc_is_bf16_asked(ctx))
        return dlc_diag_fail(ctx->diag, DLC_USAGE, NULL, "precision '%s' is none of f32 and bf16", wanted);
    for (dlc_node *node = ctx->graph->first, *next; node; node = next) {
        next = node->next;
        if (is_suitable(ctx->graph, node))
            DLC_TRY(narrow(ctx, node));
    }
    return DLC_OK;
}

/*
 * Algebraic simplification: a table of rules (simplify_rules.def) driven to a fixed point. The walk
 * goes forward, and after a rule fired it goes on with the nodes the rule built, so a chain of
 * rewrites towards the outputs needs one walk; walks are repeated until one changes nothing,
 * because a rewrite may take the last but one reader from an earlier node.
 */
#include "passes/simplify/simplify.h"
#include "ir/graph/form.h"
#include "passes/simplify/const_fold.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { DLC_OP_ANY = DLC_OP_COUNT };

typedef struct {
    const char *name;
    dlc_value *(*apply)(dlc_pass_ctx *ctx, dlc_node *node);
    uint16_t op; /* dlc_opcode or DLC_OP_ANY */
    uint8_t class_;
} rule;

static const rule rules[] = {
#define DLC_RULE(name, op, class_, algebra)                                                        \
    {#name, dlc_rule_##name, DLC_OP_##op, DLC_RULE_##class_},
#include "passes/simplify/simplify_rules.def"
#undef DLC_RULE
};
enum { NRULES = sizeof rules / sizeof *rules };

/* --- patterns --- */

int dlc_same_type(const dlc_type *a, const dlc_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

int dlc_is_filled(const dlc_value *value, dlc_scalar *element)
{
    if (dlc_is_op(value, DLC_OP_EXPAND))
        value = value->def->inputs[0];
    if (!dlc_is_constant(value) || !value->data->size_bytes)
        return 0;
    const uint8_t *bytes = value->data->bytes;
    uint32_t size = dlc_dtype_bytes(value->type.dtype);
    if (memcmp(bytes, bytes + size, value->data->size_bytes - size))
        return 0;
    *element = dlc_scalar_read(value->type.dtype, bytes);
    return 1;
}

int dlc_is_filled_with(const dlc_value *value, double number)
{
    dlc_scalar element;
    if (!value || !dlc_is_filled(value, &element))
        return 0;
    if (dlc_is_float(value->type.dtype))
        return element.f == number && !signbit(element.f) == !signbit(number);
    return value->type.dtype != DLC_BOOL && element.i == (int64_t)number;
}

void dlc_transpose_perm(const dlc_graph *graph, const dlc_node *transpose,
                        int64_t perm[DLC_MAX_RANK])
{
    uint32_t rank;
    const dlc_expr *dims = dlc_node_dims(transpose, DLC_ATTR_PERM, &rank);
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = dlc_expr_value(graph->pool, dims[d]);
}

/* --- right sides --- */

dlc_value *dlc_build(dlc_graph *graph, dlc_node *at, dlc_opcode op, dlc_value *const *inputs,
                     uint32_t ninputs, const dlc_attr *attrs, uint32_t nattrs)
{
    dlc_node_spec spec = {.op = op,
                          .origin = at->origin,
                          .name = at->outputs[0]->name,
                          .inputs = inputs,
                          .ninputs = ninputs,
                          .attrs = attrs,
                          .nattrs = nattrs,
                          .before = at};
    dlc_node *node = dlc_graph_node(graph, &spec);
    return node ? node->outputs[0] : NULL;
}

dlc_value *dlc_build2(dlc_graph *graph, dlc_node *at, dlc_opcode op, dlc_value *a, dlc_value *b)
{
    dlc_value *inputs[2] = {a, b};
    return dlc_build(graph, at, op, inputs, 2, NULL, 0);
}

dlc_value *dlc_build_like(dlc_graph *graph, dlc_node *node, dlc_value *const *inputs)
{
    return dlc_build(graph, node, node->op, inputs, node->ninputs, node->attrs, node->nattrs);
}

int dlc_is_same_formula(dlc_pass_ctx *ctx, dlc_node *a, dlc_node *b)
{
    dlc_form first = dlc_form_of(ctx->graph, a, ctx->scratch),
             second = dlc_form_of(ctx->graph, b, ctx->scratch);
    return dlc_form_equal(&first, &second);
}

dlc_value *dlc_build_map_like(dlc_pass_ctx *ctx, dlc_node *node, dlc_value *const *inputs)
{
    if (!dlc_form_of(ctx->graph, node, ctx->scratch).is_pointwise)
        return NULL;
    dlc_value *result = dlc_build_like(ctx->graph, node, inputs);
    return result && dlc_is_same_formula(ctx, node, result->def) ? result : NULL;
}

dlc_value *dlc_build_reshape(dlc_graph *graph, dlc_node *at, dlc_value *value, const dlc_expr *dims,
                             uint32_t rank)
{
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_DIMS, dims, rank);
    return dlc_build(graph, at, DLC_OP_RESHAPE, &value, 1, &attr, 1);
}

dlc_value *dlc_build_transpose(dlc_graph *graph, dlc_node *at, dlc_value *value,
                               const int64_t *perm)
{
    dlc_attr attr = dlc_attr_ints(graph, DLC_ATTR_PERM, perm, value->type.rank);
    return dlc_build(graph, at, DLC_OP_TRANSPOSE, &value, 1, &attr, 1);
}

dlc_value *dlc_build_folded(dlc_pass_ctx *ctx, dlc_value *built)
{
    if (!built)
        return NULL;
    dlc_value *constant = dlc_fold(ctx, built->def);
    dlc_graph_erase(ctx->graph, built->def);
    return constant;
}

/* --- the driver --- */

static int is_live(const dlc_node *node)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o] && dlc_value_is_used(node->outputs[o]))
            return 1;
    return 0;
}

/* Erases a dead node and what only it kept alive, so that counts of readers stay true. */
static void erase_dead(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_vec(dlc_node *) dead = {0};
    dlc_vec_push(ctx->scratch, &dead, node);
    while (dead.n) {
        dlc_node *top = dead.data[--dead.n];
        dlc_value **inputs = dlc_new_array(ctx->scratch, dlc_value *, top->ninputs + 1);
        if (top->ninputs)
            memcpy(inputs, top->inputs, top->ninputs * sizeof *inputs);
        dlc_graph_erase(ctx->graph, top);
        for (uint32_t i = 0; i < top->ninputs; i++) {
            int again = 0;
            for (uint32_t j = 0; j < i; j++)
                again |= inputs[j] && inputs[i] && inputs[j]->def == inputs[i]->def;
            if (inputs[i] && inputs[i]->def && !again && !is_live(inputs[i]->def))
                dlc_vec_push(ctx->scratch, &dead, inputs[i]->def);
        }
    }
}

/* The new value takes the old one's name when the rule made it for this. */
static void replace(dlc_graph *graph, dlc_value *old, dlc_value *new, int is_fresh)
{
    if (is_fresh) {
        const char *name = old->name;
        old->name = new->name;
        new->name = name;
    }
    dlc_value_replace(graph, old, new);
}

static void erase_unused(dlc_graph *graph, dlc_node *node)
{
    if (!is_live(node))
        dlc_graph_erase(graph, node);
}

/* Takes away what a rule built (nodes from id `fresh` on: before `node`, and constants) and then
 * did not use. */
static void sweep_fresh(dlc_graph *graph, dlc_node *node, uint32_t fresh)
{
    for (dlc_node *at = node->prev, *prev; at && at->id >= fresh && at->op != DLC_OP_CONSTANT;
         at = prev) {
        prev = at->prev;
        erase_unused(graph, at);
    }
    for (dlc_node *at = graph->last_constant, *prev; at && at->id >= fresh; at = prev) {
        prev = at->prev;
        erase_unused(graph, at);
    }
}

static dlc_value *first_that_fires(dlc_pass_ctx *ctx, dlc_node *node, const rule **fired)
{
    uint32_t fresh = ctx->graph->nnodes;
    for (uint32_t r = 0; r < NRULES; r++) {
        if (rules[r].op != node->op && rules[r].op != DLC_OP_ANY)
            continue;
        dlc_value *value = rules[r].apply(ctx, node);
        if (value) {
            *fired = &rules[r];
            return value;
        }
        if (ctx->graph->nnodes > fresh)
            sweep_fresh(ctx->graph, node, fresh);
    }
    return NULL;
}

/* Applies the first rule that fires; returns the node to go on with. */
static dlc_node *visit(dlc_pass_ctx *ctx, dlc_node *node)
{
    uint32_t fresh = ctx->graph->nnodes;
    const rule *fired = NULL;
    dlc_value *value =
        is_live(node) && node->noutputs == 1 ? first_that_fires(ctx, node, &fired) : NULL;
    if (!value)
        return node->next;
    assert(dlc_same_type(&value->type, &node->outputs[0]->type));
    dlc_rule_hit hit = {fired->name, node->outputs[0]->name};
    dlc_vec_push(ctx->graph->arena, &ctx->rules, hit);
    replace(ctx->graph, node->outputs[0], value, value->def && value->def->id >= fresh);
    sweep_fresh(ctx->graph, node, fresh);
    dlc_node *resume = node;
    while (resume->prev && resume->prev->id >= fresh && resume->prev->op != DLC_OP_CONSTANT)
        resume = resume->prev;
    if (resume == node)
        resume = node->next;
    erase_dead(ctx, node);
    ctx->changes++;
    return resume;
}

dlc_status dlc_pass_simplify(dlc_pass_ctx *ctx)
{
    uint64_t most =
        1000 +
        100 * (uint64_t)ctx->graph->nnodes; /* far above what any settled set of rules needs */
    uint32_t before;
    do {
        before = ctx->changes;
        for (dlc_node *node = ctx->graph->first; node;) {
            dlc_mark mark = dlc_arena_mark(ctx->scratch);
            node = visit(ctx, node);
            dlc_arena_release(ctx->scratch, mark);
            if (ctx->changes > most)
                return dlc_diag_fail(
                    ctx->diag, DLC_INTERNAL, ctx->graph->file, "rule '%s' at '%s' does not settle",
                    ctx->rules.data[ctx->rules.n - 1].rule, ctx->rules.data[ctx->rules.n - 1].node);
        }
    } while (ctx->changes != before);
    return DLC_OK;
}

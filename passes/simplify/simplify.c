/*
 * Algebraic simplification: a table of rules (simplify_rules.def; integer_rules.def) driven to a fixed point. The walk
 * goes forward, and after a rule fired it goes on with the nodes the rule built, so a chain of
 * rewrites towards the outputs needs one walk; walks are repeated until one changes nothing,
 * because a rewrite may take the last but one reader from an earlier node.
 */
#include "passes/simplify/simplify.h"
#include "ir/graph/region.h"

#include <assert.h>
#include <string.h>

enum { DLC_OP_ANY = DLC_OP_COUNT };

typedef struct {
    const char *name;
    dlc_value *(*apply)(dlc_pass_ctx *ctx, dlc_node *node);
    uint16_t op; /* dlc_opcode or DLC_OP_ANY */
    uint8_t class_;
} rule;

#define DLC_RULE(name, op, class_, algebra)                                                        \
    {#name, dlc_rule_##name, DLC_OP_##op, DLC_RULE_##class_},
static const rule simplify_rules[] = {
#include "passes/simplify/simplify_rules.def"
};
static const rule integer_rules[] = {
#include "passes/simplify/integer_rules.def"
};
#undef DLC_RULE

typedef struct {
    const rule *data;
    uint32_t n;
} rules;

/* --- the driver --- */

static int has_reader(const dlc_node *node)
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
            if (inputs[i] && inputs[i]->def && !again && !dlc_node_is_needed(inputs[i]->def))
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
    if (!dlc_node_is_needed(node))
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

static dlc_value *first_that_fires(dlc_pass_ctx *ctx, const rules *table, dlc_node *node, const rule **fired)
{
    uint32_t fresh = ctx->graph->nnodes;
    for (uint32_t r = 0; r < table->n; r++) {
        const rule *row = &table->data[r];
        if (row->op != node->op && row->op != DLC_OP_ANY)
            continue;
        dlc_value *value = row->apply(ctx, node);
        if (value) {
            *fired = row;
            return value;
        }
        if (ctx->graph->nnodes > fresh)
            sweep_fresh(ctx->graph, node, fresh);
    }
    return NULL;
}

/* Applies the first rule that fires; returns the node to go on with. */
static dlc_node *visit(dlc_pass_ctx *ctx, const rules *table, dlc_node *node)
{
    uint32_t fresh = ctx->graph->nnodes;
    const rule *fired = NULL;
    dlc_value *value =
        has_reader(node) && node->noutputs == 1 ? first_that_fires(ctx, table, node, &fired) : NULL;
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

static dlc_status apply_all(dlc_pass_ctx *ctx, const rules *table)
{
    uint64_t most =
        1000 +
        100 * (uint64_t)ctx->graph->nnodes; /* far above what any settled set of rules needs */
    uint32_t before;
    do {
        before = ctx->changes;
        for (dlc_node *node = ctx->graph->first; node;) {
            dlc_mark mark = dlc_arena_mark(ctx->scratch);
            node = visit(ctx, table, node);
            dlc_arena_release(ctx->scratch, mark);
            if (ctx->changes > most)
                return dlc_diag_fail(
                    ctx->diag, DLC_INTERNAL, ctx->graph->file, "rule '%s' at '%s' does not settle",
                    ctx->rules.data[ctx->rules.n - 1].rule, ctx->rules.data[ctx->rules.n - 1].node);
        }
    } while (ctx->changes != before);
    return DLC_OK;
}

dlc_status dlc_pass_simplify(dlc_pass_ctx *ctx)
{
    return apply_all(ctx, &(rules){simplify_rules, sizeof simplify_rules / sizeof *simplify_rules});
}

dlc_status dlc_pass_integers(dlc_pass_ctx *ctx)
{
    return apply_all(ctx, &(rules){integer_rules, sizeof integer_rules / sizeof *integer_rules});
}

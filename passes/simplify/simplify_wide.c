/* Concatenations of many parts become trees of concatenations of some. */
#include "passes/simplify/simplify.h"

/* A kernel chooses between the parts for each element, so its code and its time grow with their number; above this many,
 * copying once more costs less. */
enum { MOST_PARTS = 32 };

static dlc_node *concat_of(dlc_graph *graph, const dlc_node *whole, uint32_t first, uint32_t n)
{
    dlc_node_spec spec = {.op = DLC_OP_CONCAT, .origin = whole->origin, .inputs = whole->inputs + first, .ninputs = n,
                          .attrs = whole->attrs, .nattrs = whole->nattrs, .before = (dlc_node *)(uintptr_t)whole};
    spec.name = dlc_arena_printf(graph->arena, "%s.parts", whole->outputs[0]->name);
    return dlc_graph_node(graph, &spec);
}

static void swap_names(dlc_value *a, dlc_value *b)
{
    const char *name = a->name;
    a->name = b->name;
    b->name = name;
}

/* One level of the tree; the next is split when its turn comes. */
static dlc_status split_concat(dlc_pass_ctx *ctx, dlc_node *node, dlc_node **next)
{
    dlc_graph *graph = ctx->graph;
    uint32_t nparts = (node->ninputs + MOST_PARTS - 1) / MOST_PARTS;
    dlc_value **parts = dlc_new_array(graph->arena, dlc_value *, nparts);
    for (uint32_t i = 0; i < nparts; i++) {
        uint32_t first = i * MOST_PARTS, left = node->ninputs - first, n = left < MOST_PARTS ? left : MOST_PARTS;
        dlc_node *part = n == 1 ? NULL : concat_of(graph, node, first, n);
        if (!part && n > 1)
            return graph->diag->status;
        parts[i] = part ? part->outputs[0] : node->inputs[first];
    }
    dlc_node_spec spec = {.op = DLC_OP_CONCAT, .origin = node->origin, .inputs = parts, .ninputs = nparts,
                          .attrs = node->attrs, .nattrs = node->nattrs, .before = node};
    spec.name = dlc_arena_printf(graph->arena, "%s.tree", node->outputs[0]->name);
    if (!(*next = dlc_graph_node(graph, &spec)))
        return graph->diag->status;
    swap_names((*next)->outputs[0], node->outputs[0]);
    dlc_value_replace(graph, node->outputs[0], (*next)->outputs[0]);
    dlc_graph_erase(graph, node);
    ctx->changes++;
    return DLC_OK;
}

dlc_status dlc_split_concats(dlc_pass_ctx *ctx)
{
    for (dlc_node *node = ctx->graph->first, *next; node; node = next) {
        next = node->next;
        if (node->op == DLC_OP_CONCAT && node->ninputs > MOST_PARTS)
            DLC_TRY(split_concat(ctx, node, &next));
    }
    return DLC_OK;
}

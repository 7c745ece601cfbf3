/* Dead-code elimination: one backward walk, so a chain of dead nodes goes in a single run. */
#include "ir/graph/region.h"
#include "passes/pass.h"

/* An `if` whose branches hold nothing (a node may stay there for the symbol it binds) and that gives nothing. */
static int is_empty_if(const dlc_node *node)
{
    if (node->op != DLC_OP_DONE || dlc_value_is_used(node->outputs[0]))
        return 0;
    const dlc_node *otherwise = dlc_region_opener(node);
    return otherwise->op == DLC_OP_ELSE && node->prev == otherwise && otherwise->prev == dlc_region_opener(otherwise);
}

/* Forward, so that inner ones go first. */
static void erase_empty_ifs(dlc_pass_ctx *ctx)
{
    for (dlc_node *node = ctx->graph->first, *next; node; node = next) {
        next = node->next;
        if (!is_empty_if(node))
            continue;
        dlc_node *otherwise = node->prev, *opener = otherwise->prev;
        dlc_graph_erase(ctx->graph, node);
        dlc_graph_erase(ctx->graph, otherwise);
        dlc_graph_erase(ctx->graph, opener);
        ctx->changes += 3;
    }
}

dlc_status dlc_pass_dce(dlc_pass_ctx *ctx)
{
    dlc_graph *graph = ctx->graph;
    for (dlc_node *node = graph->last, *prev; node; node = prev) {
        prev = node->prev;
        if (dlc_node_is_needed(node))
            continue;
        dlc_graph_erase(graph, node); /* releases its inputs, which may now be dead too */
        ctx->changes++;
    }
    erase_empty_ifs(ctx);
    return DLC_OK;
}

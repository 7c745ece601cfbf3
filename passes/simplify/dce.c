/* Dead-code elimination: one backward walk, so a chain of dead nodes goes in a single run. */
#include "ir/graph/region.h"
#include "passes/pass.h"

/* Graph outputs and symbols bound to a value's data count as uses of it. A loop stays, since its count may be a size; a state that
 * its iterations read has to be carried on, whether or not anyone wants the last. */
static int is_live(const dlc_node *node)
{
    if (node->op == DLC_OP_DONE && dlc_region_opener(node)->op == DLC_OP_LOOP)
        return 1;
    if (node->op == DLC_OP_FINAL && dlc_value_nuses(node->inputs[1]) > 1)
        return 1;
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o] && dlc_value_is_used(node->outputs[o]))
            return 1;
    return 0;
}

dlc_status dlc_pass_dce(dlc_pass_ctx *ctx)
{
    dlc_graph *graph = ctx->graph;
    for (dlc_node *node = graph->last, *prev; node; node = prev) {
        prev = node->prev;
        if (is_live(node))
            continue;
        dlc_graph_erase(graph, node); /* releases its inputs, which may now be dead too */
        ctx->changes++;
    }
    return DLC_OK;
}

/* Regions, found from their marks: each mark but the first has a token of the one before it as its input, so uses lead forwards
 * and definitions backwards. */
#include "ir/graph/region.h"

static int opens(const dlc_node *node)
{
    return dlc_op_is_mark(node->op) && node->op != DLC_OP_DONE;
}

static int closes(const dlc_node *node)
{
    return node->op == DLC_OP_ELSE || node->op == DLC_OP_DONE;
}

dlc_node *dlc_region_at(const dlc_graph *graph, const dlc_node *before)
{
    const dlc_node *last = graph->last;
    if (before)
        return closes(before) ? dlc_region_opener(before) : before->region;
    return !last ? NULL : opens(last) ? (dlc_node *)(uintptr_t)last : last->region;
}

dlc_node *dlc_value_region(const dlc_value *value)
{
    return value->def ? value->def->region : NULL;
}

int dlc_region_is_in(const dlc_node *inner, const dlc_node *outer)
{
    while (inner && inner != outer)
        inner = inner->region;
    return inner == outer;
}

dlc_node *dlc_region_of_input(const dlc_node *node, uint32_t input)
{
    const dlc_node *done = node->ninputs && node->inputs[0] ? node->inputs[0]->def : NULL;
    int is_result = node->op == DLC_OP_FINAL || node->op == DLC_OP_STACK || node->op == DLC_OP_EITHER;
    if (!is_result || !input || !done || done->op != DLC_OP_DONE)
        return node->region;
    dlc_node *opener = dlc_region_opener(done);
    return node->op == DLC_OP_EITHER && input == 1 ? dlc_region_opener(opener) : opener;
}

dlc_node *dlc_region_closer(const dlc_node *opener)
{
    for (const dlc_use *use = opener->outputs[0]->uses; use; use = use->next)
        if (closes(use->node))
            return use->node;
    return NULL;
}

dlc_node **dlc_region_nodes(const dlc_node *mark, dlc_opcode op, dlc_arena *arena, uint32_t *n)
{
    uint32_t count = 0;
    for (const dlc_use *use = mark->outputs[0]->uses; use; use = use->next)
        count += use->node->op == op && !use->input;
    dlc_node **nodes = dlc_new_array(arena, dlc_node *, count + 1);
    *n = 0;
    for (const dlc_use *use = mark->outputs[0]->uses; use; use = use->next) {
        if (use->node->op != op || use->input)
            continue;
        uint32_t at = (*n)++;
        for (; at && use->node->id < nodes[at - 1]->id; at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = use->node;
    }
    return nodes;
}

int dlc_node_is_needed(const dlc_node *node)
{
    if (dlc_op_is_mark(node->op))
        return 1;
    const dlc_use *reader = node->op == DLC_OP_FINAL ? node->inputs[1]->uses : NULL;
    if (reader && (reader->next || node->inputs[1]->noutputs || node->inputs[1]->nbinds))
        return 1;
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o] && dlc_value_is_used(node->outputs[o]))
            return 1;
    return 0;
}

dlc_expr dlc_region_holds(const dlc_node *opener)
{
    uint32_t n;
    return dlc_node_dims(opener, DLC_ATTR_HOLDS, &n)[0];
}

static int binds_symbol(const dlc_graph *graph, const dlc_node *region, uint32_t symbol)
{
    const dlc_value *value = graph->symbols.data[symbol].value;
    const dlc_node *at = value ? value->def : NULL;
    return at && dlc_region_is_in(at->op == DLC_OP_LOOP ? at : at->region, region);
}

int dlc_region_binds(const dlc_graph *graph, const dlc_node *region, dlc_expr size)
{
    const dlc_pool *pool = graph->pool;
    int64_t known;
    int binds = 0;
    if (!region || dlc_expr_is_int(pool, size, &known))
        return 0;
    uint8_t *marks = dlc_new_array(graph->arena, uint8_t, pool->nodes.n);
    dlc_expr_reach(pool, size, marks);
    for (dlc_expr e = 1; e <= size && !binds; e++)
        if (marks[e] && dlc_node_of(pool, e)->op == DLC_EXPR_SYM)
            binds = binds_symbol(graph, region, (uint32_t)dlc_node_of(pool, e)->imm.id);
    return binds;
}

dlc_expr dlc_region_path(const dlc_graph *graph, const dlc_node *region)
{
    dlc_pool *pool = graph->pool;
    dlc_expr path = dlc_expr_bool(pool, 1);
    for (; region; region = region->region) {
        int is_else = region->op == DLC_OP_ELSE;
        dlc_expr holds = dlc_region_holds(is_else ? dlc_region_opener(region) : region);
        path = dlc_and(pool, path, is_else ? dlc_expr1(pool, DLC_EXPR_NOT, holds) : holds);
    }
    return path;
}

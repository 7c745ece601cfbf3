/* Result types of regions' marks and of what goes in and out of regions. A mark's result is a token, which has no data: it says
 * which mark belongs to which. */
#include "ir/graph/infer.h"
#include "ir/graph/region.h"

static const dlc_type token = {.dtype = DLC_BOOL};

static dlc_status check_holds(dlc_graph *graph, const dlc_node *node)
{
    uint32_t n;
    const dlc_expr *holds = dlc_node_dims(node, DLC_ATTR_HOLDS, &n);
    if (n != 1 || dlc_node_of(graph->pool, holds[0])->dtype != DLC_BOOL)
        return DLC_REFUSE("holds has %" PRIu32 " entries; one bool expression is wanted", n);
    return DLC_OK;
}

/* Input 0 is the token of a node of `op`, or of `other`. */
static dlc_status check_token(dlc_graph *graph, const dlc_node *node, dlc_opcode op, dlc_opcode other)
{
    const dlc_node *mark = node->inputs[0]->def;
    if (mark && (mark->op == op || mark->op == other))
        return DLC_OK;
    if (op == other)
        return DLC_REFUSE("input 0 '%s' is made by no %s", node->inputs[0]->name, dlc_ops[op].text);
    return DLC_REFUSE("input 0 '%s' is made by no %s or %s", node->inputs[0]->name, dlc_ops[op].text,
                      dlc_ops[other].text);
}

/* The same, and it closes what `opener` opens. */
static dlc_status check_done(dlc_graph *graph, const dlc_node *node, dlc_opcode opener)
{
    DLC_TRY(check_token(graph, node, DLC_OP_DONE, DLC_OP_DONE));
    const dlc_node *found = dlc_region_opener(node->inputs[0]->def);
    if (found && found->op == opener)
        return DLC_OK;
    return DLC_REFUSE("input 0 '%s' closes no %s", node->inputs[0]->name, dlc_ops[opener].text);
}

dlc_status dlc_infer_loop(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    int64_t symbol = dlc_node_int(node, DLC_ATTR_SYMBOL, -1);
    if (symbol < 0 || symbol >= graph->symbols.n || graph->symbols.data[symbol].bind != DLC_BIND_OPAQUE)
        return DLC_REFUSE("symbol = %" PRId64 " is no symbol that a step binds", symbol);
    *result = token;
    return check_holds(graph, node);
}

dlc_status dlc_infer_if(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    *result = token;
    return check_holds(graph, node);
}

dlc_status dlc_infer_else(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    *result = token;
    return check_token(graph, node, DLC_OP_IF, DLC_OP_IF);
}

dlc_status dlc_infer_done(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    *result = token;
    return check_token(graph, node, DLC_OP_LOOP, DLC_OP_ELSE);
}

dlc_status dlc_infer_state(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    *result = *dlc_infer_in(node, 1);
    DLC_TRY(check_token(graph, node, DLC_OP_LOOP, DLC_OP_LOOP));
    if (node->region != node->inputs[0]->def || dlc_value_region(node->inputs[1]) == node->region)
        return DLC_REFUSE("a state begins its loop, with a value from before it");
    return DLC_OK;
}

/* Two values of one element type and rank. */
static dlc_status check_alike(dlc_graph *graph, const dlc_node *node, uint32_t a, uint32_t b)
{
    DLC_TRY(dlc_infer_same_dtype(graph, node, a, b));
    if (dlc_infer_in(node, a)->rank == dlc_infer_in(node, b)->rank)
        return DLC_OK;
    return DLC_REFUSE("inputs %" PRIu32 " and %" PRIu32 " are %s and %s; one number of dimensions is wanted", a, b,
                      dlc_type_text(graph, dlc_infer_in(node, a)), dlc_type_text(graph, dlc_infer_in(node, b)));
}

dlc_status dlc_infer_final(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *state = dlc_infer_in(node, 1), *next = dlc_infer_in(node, 2);
    DLC_TRY(check_done(graph, node, DLC_OP_LOOP));
    graph->region = dlc_region_opener(node->inputs[0]->def); /* where the sizes have to agree */
    const dlc_node *made = node->inputs[1]->def;
    if (!made || made->op != DLC_OP_STATE || made->inputs[0]->def != graph->region)
        return DLC_REFUSE("input 1 '%s' is no state of that loop", node->inputs[1]->name);
    DLC_TRY(check_alike(graph, node, 1, 2));
    *result = *state;
    for (uint8_t d = 0; d < state->rank; d++) {
        dlc_expr same;
        DLC_TRY(dlc_infer_equal(graph, node, state->dims[d], next->dims[d], "a state's dimension before and behind an iteration",
                                &same));
    }
    return DLC_OK;
}

/* Sizes of what leaves a region are known outside. */
static dlc_status check_outside(dlc_graph *graph, const dlc_node *node, const dlc_type *type)
{
    for (uint8_t d = 0; d < type->rank; d++)
        if (dlc_region_binds(graph, graph->region, type->dims[d]))
            return DLC_REFUSE("dimension %d, %s, is only known in the region", d, dlc_dim_text(graph, type->dims[d]));
    return DLC_OK;
}

dlc_status dlc_infer_stack(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *value = dlc_infer_in(node, 1);
    *result = (dlc_type){.dtype = value->dtype};
    DLC_TRY(check_done(graph, node, DLC_OP_LOOP));
    DLC_TRY(dlc_infer_dims(graph, node, result));
    if (result->rank != value->rank + 1)
        return DLC_REFUSE("dims has %d entries, the value %d dimensions; one less is wanted", result->rank, value->rank);
    graph->region = dlc_region_opener(node->inputs[0]->def);
    for (uint8_t d = 0; d < value->rank; d++) {
        dlc_expr same;
        DLC_TRY(dlc_infer_equal(graph, node, result->dims[d + 1], value->dims[d], "a dimension of an iteration's result", &same));
    }
    return check_outside(graph, node, result);
}

dlc_status dlc_infer_either(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    uint32_t n;
    const dlc_type *yes = dlc_infer_in(node, 1), *no = dlc_infer_in(node, 2);
    const dlc_expr *dims = dlc_node_dims(node, DLC_ATTR_DIMS, &n);
    DLC_TRY(check_done(graph, node, DLC_OP_ELSE));
    DLC_TRY(check_alike(graph, node, 1, 2));
    *result = *yes;
    if (dims && n != yes->rank)
        return DLC_REFUSE("dims has %" PRIu32 " entries; %d are wanted", n, yes->rank);
    for (uint8_t d = 0; d < yes->rank; d++) {
        if (!dims && yes->dims[d] != no->dims[d])
            return DLC_REFUSE("dimension %d is %s or %s; dims has to say what the result's is", d,
                              dlc_dim_text(graph, yes->dims[d]), dlc_dim_text(graph, no->dims[d]));
        result->dims[d] = dims ? dims[d] : yes->dims[d];
    }
    return DLC_OK;
}

/*
 * Making a node: its types follow from its row's rule, its content from its meaning. The one place
 * where the graph asks what operators mean.
 */
#include "ir/graph/build.h"
#include "ir/graph/region.h"

#include <inttypes.h>

enum { MAX_OUTPUTS = 8 };

static dlc_attr copy_attr(dlc_graph *graph, const dlc_attr *attr)
{
    dlc_attr copy = *attr;
    switch ((dlc_attr_kind)dlc_attrs[attr->id].kind) {
    case DLC_ATTR_KIND_TEXT:
        copy.as.text = dlc_arena_strdup(graph->arena, attr->as.text);
        break;
    case DLC_ATTR_KIND_DIMS:
        copy.as.dims = dlc_arena_copy(graph->arena, attr->as.dims, attr->n * sizeof *attr->as.dims);
        break;
    case DLC_ATTR_KIND_FLOATS:
        copy.as.floats =
            dlc_arena_copy(graph->arena, attr->as.floats, attr->n * sizeof *attr->as.floats);
        break;
    case DLC_ATTR_KIND_INT:
    case DLC_ATTR_KIND_FLOAT:
        break;
    }
    return copy;
}

static dlc_node *node_from_spec(dlc_graph *graph, const dlc_node_spec *spec)
{
    dlc_node *node = dlc_new(graph->arena, dlc_node);
    node->op = spec->op;
    node->origin = spec->origin;
    node->ninputs = spec->ninputs;
    node->inputs = dlc_new_array(graph->arena, dlc_value *, spec->ninputs);
    node->own_uses = dlc_new_array(graph->arena, dlc_use, spec->ninputs);
    for (uint32_t i = 0; i < spec->ninputs; i++)
        node->inputs[i] = spec->inputs[i];
    node->nattrs = spec->nattrs;
    node->attrs = dlc_new_array(graph->arena, dlc_attr, spec->nattrs);
    for (uint32_t i = 0; i < spec->nattrs; i++)
        node->attrs[i] = copy_attr(graph, &spec->attrs[i]);
    node->noutputs = spec->noutputs ? spec->noutputs : 1;
    node->outputs = dlc_new_array(graph->arena, dlc_value *, node->noutputs);
    return node;
}

/* Output 0 has the name asked for; others add their number. */
static const char *output_name(dlc_graph *graph, const dlc_node *node, const dlc_node_spec *spec,
                               uint32_t output)
{
    const char *base = spec->name ? spec->name : dlc_ops[node->op].text;
    if (!spec->name && node->origin && node->origin->name && *node->origin->name)
        base = node->origin->name;
    return output ? dlc_arena_printf(graph->arena, "%s.%" PRIu32, base, output) : base;
}

static void make_outputs(dlc_graph *graph, dlc_node *node, const dlc_node_spec *spec,
                         const dlc_type *types)
{
    for (uint32_t o = 0; o < node->noutputs; o++) {
        node->outputs[o] = dlc_value_create(graph, output_name(graph, node, spec, o), &types[o]);
        node->outputs[o]->def = node;
        node->outputs[o]->def_output = o;
    }
}

/* An operator whose size only the run knows binds its symbol. */
static void bind_symbol(dlc_graph *graph, dlc_node *node)
{
    const dlc_attr *attr = dlc_node_attr(node, DLC_ATTR_SYMBOL);
    if (!attr)
        return;
    dlc_symbol *symbol = &graph->symbols.data[attr->as.i];
    if (symbol->value)
        symbol->value->nbinds--;
    symbol->value = node->outputs[0];
    symbol->value->nbinds++;
}

/* A mark that closes something closes what is open, and what is read can be seen. */
static dlc_status check_region(dlc_graph *graph, const dlc_node *node, const dlc_node *before)
{
    int closes = dlc_op_is_mark(node->op) && node->ninputs && node->inputs[0];
    if (closes && (before || graph->region != node->inputs[0]->def))
        return dlc_fail(graph, node, DLC_INVALID, "it closes '%s', which is not the region that is open",
                        node->inputs[0]->name);
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_value *input = node->inputs[i];
        dlc_node *own = dlc_value_region(input ? input : &(dlc_value){0});
        if (own && !dlc_region_is_in(dlc_region_of_input(node, i), own))
            return dlc_fail(graph, node, DLC_INVALID, "input %" PRIu32 " '%s' is of a region that it is not in", i,
                            input->name);
    }
    return DLC_OK;
}

/* Where the node is: marks that close a region are outside of it. */
static dlc_node *region_of(const dlc_graph *graph, const dlc_node *node, const dlc_node *before)
{
    dlc_node *region = dlc_region_at(graph, before);
    int closes = dlc_op_is_mark(node->op) && node->ninputs && region;
    if (!closes)
        return region;
    return region->region;
}

dlc_node *dlc_graph_node(dlc_graph *graph, const dlc_node_spec *spec)
{
    dlc_type types[MAX_OUTPUTS] = {0};
    dlc_node *node = node_from_spec(graph, spec);
    node->region = region_of(graph, node, spec->before);
    dlc_value named = {.name = spec->name};
    if (spec->name && !node->origin)
        node->outputs[0] = &named; /* messages need a name */
    if (check_region(graph, node, spec->before) != DLC_OK || dlc_node_infer(graph, node, types) != DLC_OK)
        return NULL;
    node->id = graph->nnodes++;
    make_outputs(graph, node, spec, types);
    dlc_node_link(graph, node, spec->before);
    graph->region = dlc_region_at(graph, NULL);
    bind_symbol(graph, node);
    dlc_node_content(graph, node);
    return node;
}

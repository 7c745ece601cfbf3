/*
 * The graph's invariants, checked from outside: what building guarantees and passes must keep. The
 * one idea: types are inferred again and compared, so a pass that rewired a node to a value of
 * another type is found at once, by name.
 */
#include "base/table.h"
#include "ir/graph/region.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    dlc_graph *graph;
    dlc_diag *diag;
    dlc_arena *scratch;
    uint8_t *is_defined; /* by value id: on the way so far */
    uint32_t *nuses;     /* by value id: uses found in nodes */
    uint32_t *noutputs; /* by value id: graph outputs found */
    dlc_table names;
    dlc_node *region; /* that is open */
} verifier;

static dlc_status fail(verifier *v, const dlc_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static dlc_status fail(verifier *v, const dlc_node *node, const char *format, ...)
{
    const char *name = node && node->noutputs && node->outputs[0] ? node->outputs[0]->name : "";
    char place[300];
    snprintf(place, sizeof place, "%.100s: graph '%.40s': node '%.80s' (%s)", v->graph->file,
             v->graph->name, name, node ? dlc_ops[node->op].text : "none");
    va_list args;
    va_start(args, format);
    dlc_diag_vfail(v->diag, DLC_INTERNAL, place, format, args);
    va_end(args);
    return DLC_INTERNAL;
}

static dlc_status define(verifier *v, const dlc_node *node, const dlc_value *value)
{
    if (value->id >= v->graph->nvalues)
        return fail(v, node, "value '%.80s' has number %" PRIu32 " of %" PRIu32, value->name,
                    value->id, v->graph->nvalues);
    if (v->is_defined[value->id]++)
        return fail(v, node, "value '%.80s' is defined twice", value->name);
    int is_new;
    dlc_table_insert(&v->names, v->scratch, value->name, &is_new);
    if (!is_new)
        return fail(v, node, "two values are called '%.80s'", value->name);
    return DLC_OK;
}

/* --- nodes --- */

/* verify_uses checks the list itself, and that it is as long as the uses found. */
static int is_listed(const dlc_node *node, uint32_t input)
{
    const dlc_use *use = &node->own_uses[input];
    return use->node == node && use->input == input && use->link && *use->link == use;
}

static dlc_status verify_inputs(verifier *v, const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_value *input = node->inputs[i];
        if (!input)
            continue;
        if (input->id >= v->graph->nvalues || !v->is_defined[input->id])
            return fail(v, node, "input %" PRIu32 " '%.80s' is not defined before its use", i,
                        input->name);
        v->nuses[input->id]++;
        if (!is_listed(node, i))
            return fail(v, node, "input %" PRIu32 " '%.80s' does not list this use", i,
                        input->name);
    }
    return DLC_OK;
}

/* Marks nest, and what a node reads it can see. */
static dlc_status verify_region(verifier *v, const dlc_node *node)
{
    int is_mark = dlc_op_is_mark(node->op), closes = is_mark && node->ninputs;
    if (closes && (!v->region || node->inputs[0]->def != v->region))
        return fail(v, node, "closes a region that is not open");
    dlc_node *around = closes ? v->region->region : v->region;
    if (node->region != around)
        return fail(v, node, "is listed in another region");
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i] && !dlc_region_is_in(dlc_region_of_input(node, i), dlc_value_region(node->inputs[i])))
            return fail(v, node, "input %" PRIu32 " '%.80s' is of a region that it is not in", i, node->inputs[i]->name);
    v->region = is_mark && node->op != DLC_OP_DONE ? (dlc_node *)(uintptr_t)node : around;
    return DLC_OK;
}

static dlc_status verify_types(verifier *v, dlc_node *node)
{
    dlc_type types[8] = {0};
    dlc_diag *given = v->graph->diag;
    v->graph->diag = v->diag;
    v->graph->region = node->region; /* for comparing; restored by verify */
    dlc_status status = dlc_node_infer(v->graph, node, types);
    v->graph->diag = given;
    if (status != DLC_OK)
        return fail(v, node, "its inputs or attributes no longer fit");
    for (uint32_t o = 0; o < node->noutputs; o++) {
        const dlc_type *stated = &node->outputs[o]->type;
        int is_same = stated->dtype == types[o].dtype && stated->rank == types[o].rank;
        for (uint8_t d = 0; is_same && d < stated->rank; d++)
            is_same = dlc_graph_same(v->graph, stated->dims[d]) ==
                      dlc_graph_same(v->graph, types[o].dims[d]);
        if (!is_same) {
            dlc_str found = {0}, wanted = {0};
            dlc_type_print(v->graph, stated, &found);
            dlc_type_print(v->graph, &types[o], &wanted);
            fail(v, node, "output %" PRIu32 " is %s; its inputs give %s", o, dlc_str_text(&found),
                 dlc_str_text(&wanted));
            dlc_str_deinit(&found);
            dlc_str_deinit(&wanted);
            return DLC_INTERNAL;
        }
    }
    return DLC_OK;
}

static dlc_status verify_node(verifier *v, dlc_node *node)
{
    if (node->id >= v->graph->nnodes)
        return fail(v, node, "has number %" PRIu32 " of %" PRIu32, node->id, v->graph->nnodes);
    if (node->next ? node->next->prev != node : v->graph->last != node)
        return fail(v, node, "the node list is broken behind it");
    DLC_TRY(verify_inputs(v, node));
    DLC_TRY(verify_region(v, node));
    for (uint32_t o = 0; o < node->noutputs; o++) {
        const dlc_value *output = node->outputs[o];
        if (!output || output->def != node || output->def_output != o)
            return fail(v, node, "output %" PRIu32 " does not name it as its definition", o);
        DLC_TRY(define(v, node, output));
    }
    return verify_types(v, node);
}

/* --- use lists, outputs, symbols --- */

static dlc_status verify_uses(verifier *v, const dlc_node *node, const dlc_value *value)
{
    uint32_t nuses = 0, noutputs = v->noutputs[value->id];
    for (const dlc_use *use = value->uses; use; use = use->next, nuses++)
        if (use->input >= use->node->ninputs || use->node->inputs[use->input] != value)
            return fail(v, node, "value '%.80s' lists a use that is none", value->name);
    if (nuses != v->nuses[value->id] || noutputs != value->noutputs)
        return fail(v, node,
                    "value '%.80s' lists %" PRIu32 " uses and %" PRIu32 " outputs; %" PRIu32
                    " and %" PRIu32 " are there",
                    value->name, nuses, value->noutputs, v->nuses[value->id], noutputs);
    return DLC_OK;
}

/* What iterations read of a state is what the one before it left. */
static dlc_status verify_carried(verifier *v, const dlc_node *node)
{
    if (node->op != DLC_OP_STATE || !node->outputs[0]->uses)
        return DLC_OK;
    for (const dlc_use *use = node->outputs[0]->uses; use; use = use->next)
        if (use->node->op == DLC_OP_FINAL && use->input == 1)
            return DLC_OK;
    return fail(v, node, "no 'final' carries it on");
}

static dlc_status verify_ends(verifier *v)
{
    for (uint32_t o = 0; o < v->graph->outputs.n; o++) {
        const dlc_value *value = v->graph->outputs.data[o].value;
        if (value->id >= v->graph->nvalues || !v->is_defined[value->id])
            return fail(v, value->def, "graph output '%.80s' is not defined",
                        v->graph->outputs.data[o].name);
        v->noutputs[value->id]++;
    }
    for (uint32_t s = 0; s < v->graph->symbols.n; s++) {
        const dlc_symbol *symbol = &v->graph->symbols.data[s];
        if (symbol->value && symbol->value->nbinds && !v->is_defined[symbol->value->id])
            return fail(v, symbol->value->def, "symbol '%.80s' is read from a value that is gone",
                        symbol->name);
    }
    for (uint32_t i = 0; i < v->graph->inputs.n; i++)
        DLC_TRY(verify_uses(v, NULL, v->graph->inputs.data[i]));
    for (const dlc_node *node = v->graph->first; node; node = node->next) {
        for (uint32_t o = 0; o < node->noutputs; o++)
            DLC_TRY(verify_uses(v, node, node->outputs[o]));
        DLC_TRY(verify_carried(v, node));
    }
    return DLC_OK;
}

static dlc_status verify(verifier *v)
{
    v->is_defined = dlc_new_array(v->scratch, uint8_t, v->graph->nvalues + 1);
    v->nuses = dlc_new_array(v->scratch, uint32_t, v->graph->nvalues + 1);
    v->noutputs = dlc_new_array(v->scratch, uint32_t, v->graph->nvalues + 1);
    for (uint32_t i = 0; i < v->graph->inputs.n; i++)
        DLC_TRY(define(v, NULL, v->graph->inputs.data[i]));
    for (dlc_node *node = v->graph->first; node; node = node->next)
        DLC_TRY(verify_node(v, node));
    if (v->region)
        return fail(v, v->region, "opens a region that is not closed");
    return verify_ends(v);
}

dlc_status dlc_graph_verify(dlc_graph *graph, dlc_diag *diag)
{
    verifier v = {.graph = graph, .diag = diag, .scratch = dlc_arena_create(0)};
    dlc_node *region = graph->region;
    dlc_status status = verify(&v);
    graph->region = region;
    dlc_arena_destroy(v.scratch);
    return status;
}

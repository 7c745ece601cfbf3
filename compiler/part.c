/*
 * A part of a graph as a model of its own: nodes first to end - 1. What stood before them gives inputs, what they leave to others
 * becomes outputs, and what is fused, scheduled and compiled of them is as it would be of such a model. A region goes whole, and a
 * symbol comes along with what binds it.
 */
#include "compiler/driver.h"

#include "ir/graph/op.h"
#include "ir/graph/region.h"

#include <string.h>

typedef struct {
    dlc_graph *graph;
    dlc_arena *scratch;
    dlc_node **nodes; /* without constants, in order */
    uint32_t nnodes, first, end;
    int every;
    uint32_t *place;    /* by node id: index in nodes; NOWHERE: a constant */
    uint8_t *is_needed; /* symbols of the part */
} part;

enum { NOWHERE = UINT32_MAX };

static int is_inside(const part *p, const dlc_node *node)
{
    return p->place[node->id] != NOWHERE && p->place[node->id] >= p->first && p->place[node->id] < p->end;
}

static void number_nodes(part *p)
{
    p->nodes = dlc_new_array(p->scratch, dlc_node *, p->graph->nnodes + 1);
    p->place = dlc_new_array(p->scratch, uint32_t, p->graph->nnodes + 1);
    for (dlc_node *node = p->graph->first; node; node = node->next) {
        p->place[node->id] = node->op == DLC_OP_CONSTANT ? (uint32_t)NOWHERE : p->nnodes;
        if (node->op != DLC_OP_CONSTANT)
            p->nodes[p->nnodes++] = node;
    }
}

/* ---- what can be told about nodes ---- */

/* Node i begins a part unless a region is open before it, or someone behind asks for a region's results. */
static uint8_t *find_cuts(const part *p)
{
    uint8_t *can_begin = dlc_new_array(p->scratch, uint8_t, p->nnodes + 1);
    uint32_t until = 0; /* readers of tokens so far */
    for (uint32_t i = 0; i < p->nnodes; i++) {
        const dlc_node *node = p->nodes[i];
        can_begin[i] = i >= until;
        for (const dlc_use *use = dlc_op_is_mark(node->op) ? node->outputs[0]->uses : NULL; use; use = use->next)
            if (p->place[use->node->id] != NOWHERE && p->place[use->node->id] + 1 > until)
                until = p->place[use->node->id] + 1;
    }
    can_begin[p->nnodes] = 1;
    return can_begin;
}

struct node_args {
    void (*see)(void *user, const dlc_model_node *node);
    void *user;
};

static const char *first_value(const dlc_node *node)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o])
            return node->outputs[o]->name;
    return "";
}

static dlc_status tell_nodes(dlc_model *model, void *opaque)
{
    const struct node_args *args = opaque;
    part p = {.graph = model->graph, .scratch = model->scratch};
    number_nodes(&p);
    const uint8_t *can_begin = find_cuts(&p);
    for (uint32_t i = 0; i < p.nnodes; i++) {
        const dlc_origin *origin = p.nodes[i]->origin;
        dlc_model_node row = {.value = first_value(p.nodes[i]),
                              .node = origin ? origin->name : "",
                              .op = origin ? origin->op_type : "",
                              .does = dlc_ops[p.nodes[i]->op].text,
                              .can_begin = can_begin[i]};
        args->see(args->user, &row);
    }
    return DLC_OK;
}

dlc_status dlc_model_nodes(dlc_model *model, void (*see)(void *user, const dlc_model_node *node), void *user)
{
    struct node_args args = {see, user};
    if (!model || !see)
        return DLC_USAGE;
    if (!model->graph)
        return model->ctx.module ? dlc_model_tell(model, dlc_model_needs_graph(model, "its parts are no models")) : DLC_USAGE;
    dlc_mark mark = dlc_arena_mark(model->scratch);
    dlc_status status = dlc_model_guard(model, tell_nodes, &args);
    dlc_arena_release(model->scratch, mark);
    return status;
}

/* ---- what the part leaves to others ---- */

static int is_wanted_outside(const part *p, const dlc_value *value)
{
    if (p->every && !value->def->region && !dlc_op_is_mark(value->def->op))
        return 1;
    for (const dlc_use *use = value->uses; use; use = use->next)
        if (!is_inside(p, use->node))
            return 1;
    return value->noutputs > 0;
}

static void choose_outputs(part *p)
{
    dlc_graph *graph = p->graph;
    dlc_vec(dlc_value *) found = {0};
    for (uint32_t i = p->first; i < p->end; i++)
        for (uint32_t o = 0; o < p->nodes[i]->noutputs; o++)
            if (p->nodes[i]->outputs[o] && is_wanted_outside(p, p->nodes[i]->outputs[o]))
                dlc_vec_push(p->scratch, &found, p->nodes[i]->outputs[o]);
    for (uint32_t o = 0; o < graph->outputs.n; o++)
        graph->outputs.data[o].value->noutputs--;
    graph->outputs.n = 0;
    for (uint32_t i = 0; i < found.n; i++)
        dlc_graph_output(graph, found.data[i]->name, found.data[i]);
}

static void forget_symbol(dlc_symbol *symbol)
{
    if (symbol->value && symbol->bind != DLC_BIND_INPUT_DIM)
        symbol->value->nbinds--;
    symbol->value = NULL;
    symbol->bind = DLC_BIND_OPAQUE;
}

static void forget_symbols_of(part *p, const dlc_node *node)
{
    for (uint32_t s = 0; s < p->graph->symbols.n; s++)
        if (p->graph->symbols.data[s].value && p->graph->symbols.data[s].value->def == node)
            forget_symbol(&p->graph->symbols.data[s]);
}

static void erase_behind(part *p)
{
    for (uint32_t i = p->nnodes; i-- > p->end;) {
        forget_symbols_of(p, p->nodes[i]);
        dlc_graph_erase(p->graph, p->nodes[i]);
    }
}

/* ---- symbols of the part ---- */

static void need_symbols(part *p, uint8_t *marks, dlc_expr expr)
{
    if (expr)
        dlc_expr_reach(p->graph->pool, expr, marks);
}

static void need_type(part *p, uint8_t *marks, const dlc_type *type)
{
    for (uint32_t d = 0; d < type->rank; d++)
        need_symbols(p, marks, type->dims[d]);
}

static void need_node(part *p, uint8_t *marks, const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i])
            need_type(p, marks, &node->inputs[i]->type);
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o])
            need_type(p, marks, &node->outputs[o]->type);
    for (uint32_t a = 0; a < node->nattrs; a++)
        for (uint32_t k = 0; dlc_attrs[node->attrs[a].id].kind == DLC_ATTR_KIND_DIMS && k < node->attrs[a].n; k++)
            need_symbols(p, marks, node->attrs[a].as.dims[k]);
    if (node->op == DLC_OP_LOOP)
        p->is_needed[dlc_node_int(node, DLC_ATTR_SYMBOL, 0)] = 1;
}

/* Those the part's sizes are made of, and those that sizes of what binds them are. */
static void find_symbols(part *p)
{
    dlc_graph *graph = p->graph;
    uint8_t *marks = dlc_new_array(p->scratch, uint8_t, graph->pool->nodes.n + 1);
    p->is_needed = dlc_new_array(p->scratch, uint8_t, graph->symbols.n + 1);
    for (uint32_t i = p->first; i < p->end; i++)
        need_node(p, marks, p->nodes[i]);
    for (int again = 1; again;) {
        again = 0;
        for (uint32_t e = 1; e < graph->pool->nodes.n; e++)
            if (marks[e] && graph->pool->nodes.data[e].op == DLC_EXPR_SYM && !p->is_needed[graph->pool->nodes.data[e].imm.id])
                p->is_needed[graph->pool->nodes.data[e].imm.id] = 1;
        for (uint32_t s = 0; s < graph->symbols.n; s++)
            if (p->is_needed[s] == 1) {
                p->is_needed[s] = 2;
                again = 1;
                if (graph->symbols.data[s].value)
                    need_type(p, marks, &graph->symbols.data[s].value->type);
            }
    }
}

static void drop_conditions(part *p)
{
    dlc_graph *graph = p->graph;
    uint32_t n = 0;
    uint8_t *marks = dlc_new_array(p->scratch, uint8_t, graph->pool->nodes.n + 1);
    for (uint32_t c = 0; c < graph->conditions.n; c++) {
        int stays = 1;
        memset(marks, 0, graph->pool->nodes.n + 1);
        dlc_expr_reach(graph->pool, graph->conditions.data[c].holds, marks);
        for (uint32_t e = 1; e < graph->pool->nodes.n; e++)
            if (marks[e] && graph->pool->nodes.data[e].op == DLC_EXPR_SYM)
                stays &= p->is_needed[graph->pool->nodes.data[e].imm.id] != 0;
        if (stays)
            graph->conditions.data[n++] = graph->conditions.data[c];
    }
    graph->conditions.n = n;
}

/* ---- what the part takes from others ---- */

/* A size that was known by a step is now one of an input. */
static dlc_status rebind(part *p, dlc_symbol *symbol, uint32_t id, dlc_value *input)
{
    if (symbol->bind == DLC_BIND_DATA || symbol->bind == DLC_BIND_INPUT_DIM)
        return DLC_OK;
    for (uint32_t d = 0; d < input->type.rank; d++)
        if (input->type.dims[d] == dlc_expr_sym(p->graph->pool, id)) {
            input->nbinds--;
            symbol->bind = DLC_BIND_INPUT_DIM;
            symbol->index = d;
            return DLC_OK;
        }
    return dlc_diag_fail(p->graph->diag, DLC_UNSUPPORTED, p->graph->file,
                         "a part from node %u on is no model: '%s' is known from '%s', of which it is no dimension", p->first,
                         symbol->name, input->name);
}

static dlc_status make_input(part *p, dlc_value *value)
{
    const char *name = value->name;
    dlc_value_rename(p->graph, value, "before");
    dlc_value *input = dlc_graph_input(p->graph, name, &value->type);
    input->name = name;
    dlc_value_replace(p->graph, value, input);
    for (uint32_t s = 0; s < p->graph->symbols.n; s++)
        if (p->graph->symbols.data[s].value == input && p->is_needed[s])
            DLC_TRY(rebind(p, &p->graph->symbols.data[s], s, input));
    return DLC_OK;
}

static int is_needed_value(const part *p, const dlc_value *value)
{
    int is_needed = value->uses != NULL;
    for (uint32_t s = 0; s < p->graph->symbols.n; s++)
        is_needed |= p->graph->symbols.data[s].value == value && p->is_needed[s];
    return is_needed;
}

/* From the last to the first: each one's readers have gone by then, unless they are of the part. Constants go last. */
static dlc_status erase_before(part *p)
{
    for (uint32_t s = 0; s < p->graph->symbols.n; s++)
        if (!p->is_needed[s])
            forget_symbol(&p->graph->symbols.data[s]);
    for (uint32_t i = p->first; i-- > 0;) {
        dlc_node *node = p->nodes[i];
        for (uint32_t o = 0; o < node->noutputs; o++)
            if (node->outputs[o] && is_needed_value(p, node->outputs[o]))
                DLC_TRY(make_input(p, node->outputs[o]));
        dlc_graph_erase(p->graph, node);
    }
    for (dlc_node *node = p->graph->first, *next; node; node = next) {
        next = node->next;
        if (node->op == DLC_OP_CONSTANT && !dlc_value_is_used(node->outputs[0]))
            dlc_graph_erase(p->graph, node);
    }
    return DLC_OK;
}

static void drop_inputs(part *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->graph->inputs.n; i++)
        if (is_needed_value(p, p->graph->inputs.data[i]))
            p->graph->inputs.data[n++] = p->graph->inputs.data[i];
    p->graph->inputs.n = n;
}

static dlc_status narrow(dlc_model *model, void *opaque)
{
    part *p = opaque;
    p->graph = model->graph;
    p->scratch = model->scratch;
    number_nodes(p);
    const uint8_t *can_begin = find_cuts(p);
    p->end = p->end < p->nnodes ? p->end : p->nnodes;
    if (p->first >= p->end || !can_begin[p->first] || !can_begin[p->end])
        return dlc_diag_fail(&model->diag, DLC_USAGE, p->graph->file,
                             "nodes %u to %u are no part: there are %u, and a region goes whole", p->first, p->end, p->nnodes);
    choose_outputs(p);
    erase_behind(p);
    find_symbols(p);
    drop_conditions(p);
    DLC_TRY(erase_before(p));
    drop_inputs(p);
    return dlc_graph_verify(p->graph, &model->diag);
}

dlc_status dlc_model_part(dlc_model *model, uint32_t first, uint32_t end, int every)
{
    part p = {.first = first, .end = end, .every = every};
    if (!model)
        return DLC_USAGE;
    if (!model->graph || model->nothers || model->has_run)
        return dlc_model_tell(model, dlc_diag_fail(&model->diag, DLC_USAGE, NULL,
                                                   "parts are taken of a graph, for one target, before any pass has run"));
    dlc_mark mark = dlc_arena_mark(model->scratch);
    dlc_status status = dlc_model_guard(model, narrow, &p);
    dlc_arena_release(model->scratch, mark);
    return status;
}

/*
 * The graph as the engine sees it: a handle for each node that needs a group, an edge for each value that one of them needs of
 * another, levels, and a group of each node's own.
 */
#include "ir/graph/form.h"
#include "passes/fuse/fuse_engine.h"

#include <string.h>

int dlc_fuse_has_contraction(const dlc_fusion *f, uint32_t group)
{
    const dlc_ids *nodes = &f->groups[group].nodes;
    for (uint32_t i = 0; i < nodes->n; i++)
        if (f->forms[nodes->data[i]].is_contraction)
            return 1;
    return 0;
}

static int is_needed_in_memory(const dlc_graph *graph, const dlc_value *value)
{
    if (value->noutputs)
        return 1;
    for (const dlc_use *use = value->uses; use; use = use->next)
        if (dlc_op_is_opaque(use->node->op) || dlc_input_is_indexed(use->node, use->input))
            return 1;
    for (uint32_t s = 0; s < graph->symbols.n; s++)
        if (graph->symbols.data[s].value == value && graph->symbols.data[s].bind == DLC_BIND_DATA)
            return 1;
    return 0;
}

/* Constants are data, and sizes are written out where they are read, unless something needs them in memory. */
static int has_group(const dlc_graph *graph, const dlc_node *node)
{
    if (node->op == DLC_OP_SYMBOLS)
        return is_needed_in_memory(graph, node->outputs[0]);
    return node->op != DLC_OP_CONSTANT;
}

static void collect_nodes(dlc_fusion *f)
{
    const dlc_graph *graph = f->graph;
    f->handle_of = dlc_new_array(f->arena, uint32_t, graph->nnodes + 1);
    memset(f->handle_of, 0xff, (graph->nnodes + 1) * sizeof *f->handle_of);
    f->nodes = dlc_new_array(f->arena, dlc_node *, graph->nnodes + 1);
    for (dlc_node *node = graph->first; node; node = node->next) {
        if (!has_group(graph, node))
            continue;
        f->handle_of[node->id] = f->nnodes;
        f->nodes[f->nnodes++] = node;
    }
}

static void find_forms(dlc_fusion *f)
{
    dlc_form_memo memo = {0};
    f->forms = dlc_new_array(f->arena, dlc_fusion_form, f->nnodes + 1);
    for (uint32_t i = 0; i < f->nnodes; i++) {
        const dlc_node *like = dlc_form_like(&memo, f->nodes[i]);
        if (like) {
            f->forms[i] = f->forms[f->handle_of[like->id]];
            continue;
        }
        dlc_mark mark = dlc_arena_mark(f->trial);
        dlc_form form = dlc_form_of(f->graph, f->nodes[i], f->trial);
        f->forms[i] = (dlc_fusion_form){form.is_pointwise, form.is_view, form.is_contraction, form.has_update};
        dlc_arena_release(f->trial, mark);
    }
}

typedef dlc_vec(dlc_fusion_edge) edge_list;

/* The symbols that the sizes of one node depend on. An expression is entered once per node: sizes share their parts. */
typedef struct {
    const dlc_graph *graph;
    dlc_arena *arena;
    uint32_t *seen; /* by expression: handle + 1 of the node it was last met for */
    uint32_t handle;
    dlc_ids todo, symbols;
} size_walk;

static void walk_size(size_walk *w, dlc_expr size)
{
    const dlc_pool *pool = w->graph->pool;
    dlc_vec_push(w->arena, &w->todo, size);
    while (w->todo.n) {
        dlc_expr top = w->todo.data[--w->todo.n];
        const dlc_expr_node *node = dlc_node_of(pool, top);
        if (w->seen[top] == w->handle + 1)
            continue;
        w->seen[top] = w->handle + 1;
        if (node->op == DLC_EXPR_SYM)
            dlc_vec_push(w->arena, &w->symbols, node->imm.id);
        for (uint32_t i = 0; i < node->nargs; i++)
            dlc_vec_push(w->arena, &w->todo, dlc_arg(pool, top, i));
    }
}

static void walk_type(size_walk *w, const dlc_value *value)
{
    for (uint8_t d = 0; value && d < value->type.rank; d++)
        walk_size(w, value->type.dims[d]);
}

static void walk_node(size_walk *w, const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        walk_type(w, node->inputs[i]);
    for (uint32_t o = 0; o < node->noutputs; o++)
        walk_type(w, node->outputs[o]);
    for (uint32_t a = 0; a < node->nattrs; a++)
        if (dlc_attrs[node->attrs[a].id].kind == DLC_ATTR_KIND_DIMS)
            for (uint32_t i = 0; i < node->attrs[a].n; i++)
                walk_size(w, node->attrs[a].as.dims[i]);
}

/* Regions keep what is in them: a mark waits for all nodes since the mark before it, and all nodes behind it wait for it. */
static void add_order_edges(dlc_fusion *f, uint32_t to, uint32_t mark, edge_list *edges)
{
    uint32_t first = !dlc_op_is_mark(f->nodes[to]->op) ? to : mark == DLC_FUSION_NONE ? 0 : mark + 1;
    for (uint32_t from = first; from < to; from++)
        dlc_vec_push(f->arena, edges, ((dlc_fusion_edge){from, to, NULL, 1, DLC_REASON_UNBOUND, NULL}));
    if (mark != DLC_FUSION_NONE)
        dlc_vec_push(f->arena, edges, ((dlc_fusion_edge){mark, to, NULL, 1, DLC_REASON_UNBOUND, NULL}));
}

/* A node whose sizes are read from data waits for the node that makes the data. */
static void add_size_edges(dlc_fusion *f, uint32_t to, size_walk *w, edge_list *edges)
{
    const dlc_node *node = f->nodes[to];
    w->handle = to;
    w->symbols.n = 0;
    walk_node(w, node);
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i] && node->inputs[i]->def && node->inputs[i]->def->op == DLC_OP_SYMBOLS)
            walk_node(w, node->inputs[i]->def);
    for (uint32_t s = 0; s < w->symbols.n; s++) {
        const dlc_symbol *symbol = &f->graph->symbols.data[w->symbols.data[s]];
        uint32_t from = symbol->bind != DLC_BIND_INPUT_DIM && symbol->value ? dlc_fuse_handle(f, symbol->value->def)
                                                                           : DLC_FUSION_NONE;
        if (from != DLC_FUSION_NONE && from != to)
            dlc_vec_push(f->arena, edges, ((dlc_fusion_edge){from, to, symbol->value, 1, DLC_REASON_UNBOUND, NULL}));
    }
}

static int needs_sizes(const dlc_graph *graph)
{
    for (uint32_t s = 0; s < graph->symbols.n; s++)
        if (graph->symbols.data[s].bind != DLC_BIND_INPUT_DIM)
            return 1;
    return 0;
}

static int has_marks(const dlc_fusion *f)
{
    for (uint32_t i = 0; i < f->nnodes; i++)
        if (dlc_op_is_mark(f->nodes[i]->op))
            return 1;
    return 0;
}

/* Slices of one array, in the order of edges. */
static void collect_out_edges(dlc_fusion *f)
{
    uint32_t nedges = f->first_edge[f->nnodes], next = 0;
    uint32_t *all = dlc_new_array(f->arena, uint32_t, nedges + 1);
    f->out_edges = dlc_new_array(f->arena, dlc_ids, f->nnodes + 1);
    for (uint32_t e = 0; e < nedges; e++)
        f->out_edges[f->edges[e].from].cap++;
    for (uint32_t i = 0; i < f->nnodes; i++) {
        f->out_edges[i].data = all + next;
        next += f->out_edges[i].cap;
    }
    for (uint32_t e = 0; e < nedges; e++) {
        dlc_ids *out = &f->out_edges[f->edges[e].from];
        out->data[out->n++] = e;
    }
}

/* How many edges the inputs make at most. */
static uint32_t count_inputs(const dlc_fusion *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nnodes; i++)
        n += f->nodes[i]->ninputs;
    return n;
}

static void collect_edges(dlc_fusion *f)
{
    edge_list edges = {.cap = count_inputs(f)};
    edges.data = dlc_new_array(f->arena, dlc_fusion_edge, edges.cap + 1);
    uint32_t mark = DLC_FUSION_NONE;
    int with_sizes = needs_sizes(f->graph), with_marks = has_marks(f);
    size_walk walk = {.graph = f->graph, .arena = f->arena};
    walk.seen = dlc_new_array(f->arena, uint32_t, f->graph->pool->nodes.n + 1);
    f->first_edge = dlc_new_array(f->arena, uint32_t, f->nnodes + 1);
    for (uint32_t to = 0; to < f->nnodes; to++) {
        f->first_edge[to] = edges.n;
        for (uint32_t i = 0; i < f->nodes[to]->ninputs; i++) {
            dlc_value *value = f->nodes[to]->inputs[i];
            uint32_t from = value ? dlc_fuse_handle(f, value->def) : DLC_FUSION_NONE;
            int is_new = from != DLC_FUSION_NONE;
            for (uint32_t e = f->first_edge[to]; e < edges.n && is_new; e++)
                is_new = edges.data[e].value != value;
            if (is_new)
                dlc_vec_push(f->arena, &edges, ((dlc_fusion_edge){from, to, value, 0, DLC_REASON_NOT_CHOSEN, NULL}));
        }
        if (with_sizes && !dlc_op_is_mark(f->nodes[to]->op)) /* a loop's condition is read in it, too */
            add_size_edges(f, to, &walk, &edges);
        if (with_marks)
            add_order_edges(f, to, mark, &edges);
        if (dlc_op_is_mark(f->nodes[to]->op))
            mark = to;
    }
    f->first_edge[f->nnodes] = edges.n;
    f->edges = edges.data;
    collect_out_edges(f);
}

static void find_levels(dlc_fusion *f)
{
    f->level = dlc_new_array(f->arena, uint32_t, f->nnodes + 1);
    for (uint32_t to = 0; to < f->nnodes; to++)
        for (uint32_t e = f->first_edge[to]; e < f->first_edge[to + 1]; e++)
            if (f->level[f->edges[e].from] >= f->level[to])
                f->level[to] = f->level[f->edges[e].from] + 1;
    for (uint32_t i = 0; i < f->nnodes; i++)
        f->nlevels = f->level[i] < f->nlevels ? f->nlevels : f->level[i] + 1;
    f->ends = dlc_new_array(f->arena, uint32_t, f->nlevels + 1);
}

static void make_groups(dlc_fusion *f)
{
    f->group = dlc_new_array(f->arena, uint32_t, f->nnodes + 1);
    f->groups = dlc_new_array(f->arena, dlc_fusion_group, f->nnodes + 1);
    f->seen = dlc_new_array(f->arena, uint32_t, f->nnodes + 1);
    uint32_t *own = dlc_new_array(f->arena, uint32_t, f->nnodes + 1);
    for (uint32_t i = 0; i < f->nnodes; i++) {
        dlc_fusion_group *group = &f->groups[i];
        f->group[i] = own[i] = i;
        group->nodes = (dlc_ids){&own[i], 1, 1};
        group->first_level = group->last_level = f->level[i];
        group->is_opaque = (uint8_t)dlc_op_is_opaque(f->nodes[i]->op);
        group->is_flat = f->forms[i].is_pointwise;
        group->has_update = f->forms[i].has_update;
    }
}

void dlc_fuse_read_graph(dlc_fusion *f)
{
    collect_nodes(f);
    find_forms(f);
    collect_edges(f);
    find_levels(f);
    make_groups(f);
}

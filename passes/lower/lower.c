/*
 * From a fusion group to a kernel, and from groups to the module's steps. The stages of the nodes' meanings are collected in
 * graph order with each other as sources; the steps of lower.h then bring them into the form schedules are chosen for. Equal
 * kernels are kept once: constants are parameters, so equal layers share code.
 */
#include "base/budget.h"
#include "passes/fuse/fuse_engine.h"
#include "passes/lower/lower.h"
#include "passes/lower/lower_module.h"

#include "ir/graph/opaque.h"

#include <string.h>

/* --- collecting --- */

typedef struct {
    const dlc_value *value;
    dlc_source source;
} known;

typedef struct {
    dlc_graph *graph;
    dlc_kernel *kernel;
    dlc_group_kernel *result;
    const dlc_node **members; /* open addressing, by node id */
    known *sources;           /* open addressing, by value id */
    uint32_t nmembers, nsources; /* sizes of the tables, powers of two */
} collection;

static uint32_t table_size(uint32_t n)
{
    uint32_t size = 16;
    while (size < n * 2)
        size *= 2;
    return size;
}

static uint32_t slot_of(uint32_t id, uint32_t size)
{
    return (id * 2654435761u) & (size - 1);
}

static void add_member(collection *c, const dlc_node *node)
{
    uint32_t slot = slot_of(node->id, c->nmembers);
    while (c->members[slot])
        slot = (slot + 1) & (c->nmembers - 1);
    c->members[slot] = node;
}

static int is_member(const collection *c, const dlc_node *node)
{
    uint32_t slot = slot_of(node->id, c->nmembers);
    for (; c->members[slot]; slot = (slot + 1) & (c->nmembers - 1))
        if (c->members[slot] == node)
            return 1;
    return 0;
}

static known *find_source(const collection *c, const dlc_value *value)
{
    uint32_t slot = slot_of(value->id, c->nsources);
    while (c->sources[slot].value && c->sources[slot].value != value)
        slot = (slot + 1) & (c->nsources - 1);
    return &c->sources[slot];
}

static uint32_t add_buffer(collection *c, dlc_value *value, dlc_role role)
{
    dlc_mean mean = {.graph = c->graph, .kernel = c->kernel};
    dlc_type type = value->type;
    for (uint8_t d = 0; d < type.rank; d++)
        type.dims[d] = dlc_mean_dim(&mean, value->type.dims[d]);
    dlc_vec_push(c->kernel->arena, &c->result->values, value);
    return dlc_kernel_buffer(c->kernel, value->name, &type, value->layout, role);
}

static int is_bound(const dlc_graph *graph, const dlc_value *value)
{
    for (uint32_t s = 0; s < graph->symbols.n; s++)
        if (graph->symbols.data[s].bind == DLC_BIND_DATA && graph->symbols.data[s].value == value)
            return 1;
    return 0;
}

static int has_outer_reader(const collection *c, const dlc_value *value)
{
    for (const dlc_use *use = value->uses; use; use = use->next)
        if (!is_member(c, use->node))
            return 1;
    return value->noutputs || is_bound(c->graph, value);
}

static dlc_status collect_node(collection *c, const dlc_node *node);

/* Where a member loads an input from; sizes known as expressions are written out in every kernel that reads them, unless data
 * says which of them. */
static dlc_status source_of(collection *c, const dlc_node *reader, uint32_t input, dlc_source *source)
{
    dlc_value *value = reader->inputs[input];
    known *entry = find_source(c, value);
    if (!entry->value && value->def && value->def->op == DLC_OP_SYMBOLS && !dlc_input_is_indexed(reader, input)) {
        DLC_TRY(collect_node(c, value->def));
        entry = find_source(c, value);
    }
    if (!entry->value) {
        entry->source = add_buffer(c, value, value->data ? DLC_ROLE_CONST : DLC_ROLE_IN);
        entry->value = value;
    }
    *source = entry->source;
    return DLC_OK;
}

static void note_origin(collection *c, const dlc_node *node, uint32_t first)
{
    for (uint32_t s = first; s < c->kernel->stages.n; s++)
        if (!c->kernel->stages.data[s].origin.n)
            dlc_vec_push(c->kernel->arena, &c->kernel->stages.data[s].origin, node->id);
}

/* A stage may be stored once: a second output of it, or the second value of a pair, gets a map of its own. */
static void store_output(collection *c, dlc_mean *mean, uint32_t output)
{
    uint32_t buffer = add_buffer(c, mean->node->outputs[output], DLC_ROLE_OUT);
    dlc_mean_store(mean, output, buffer);
}

static dlc_status collect_node(collection *c, const dlc_node *node)
{
    dlc_mean mean = {.graph = c->graph, .node = node, .kernel = c->kernel};
    dlc_source *in = dlc_new_array(c->kernel->arena, dlc_source, node->ninputs + 1);
    uint32_t first = c->kernel->stages.n;
    for (uint32_t i = 0; i < node->ninputs; i++) {
        in[i] = UINT32_MAX;
        if (node->inputs[i] && !dlc_input_is_inline(node, i))
            DLC_TRY(source_of(c, node, i, &in[i]));
    }
    mean.in = in;
    DLC_TRY(dlc_mean_build(&mean));
    for (uint32_t o = 0; o < node->noutputs; o++) {
        if (!node->outputs[o])
            continue;
        *find_source(c, node->outputs[o]) = (known){node->outputs[o], DLC_STAGE_SOURCE(mean.out[o])};
        if (is_member(c, node) && has_outer_reader(c, node->outputs[o]))
            store_output(c, &mean, o);
    }
    note_origin(c, node, first);
    return DLC_OK;
}

/* compact() drops buffers nobody reads; their values go with them. Names of values are unique. */
static void compact(collection *c)
{
    dlc_group_kernel before = *c->result;
    dlc_vec(const char *) names = {0};
    for (uint32_t b = 0; b < c->kernel->buffers.n; b++)
        dlc_vec_push(c->kernel->arena, &names, c->kernel->buffers.data[b].name);
    dlc_kernel_compact(c->kernel);
    uint32_t n = 0;
    for (uint32_t b = 0; b < names.n && n < c->kernel->buffers.n; b++)
        if (!strcmp(names.data[b], c->kernel->buffers.data[n].name))
            c->result->values.data[n++] = before.values.data[b];
    c->result->values.n = n;
}

static uint32_t count_edges(dlc_node *const *nodes, uint32_t nnodes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < nnodes; i++)
        n += nodes[i]->ninputs + nodes[i]->noutputs;
    return n;
}

static dlc_status lower_group(dlc_graph *graph, dlc_node *const *nodes, uint32_t nnodes, dlc_arena *arena,
                              dlc_group_kernel *result)
{
    memset(result, 0, sizeof *result);
    collection c = {.graph = graph, .kernel = dlc_kernel_create(arena, "group"), .result = result};
    c.nmembers = table_size(nnodes);
    c.nsources = table_size(count_edges(nodes, nnodes));
    c.members = dlc_new_array(arena, const dlc_node *, c.nmembers);
    c.sources = dlc_new_array(arena, known, c.nsources);
    result->kernel = c.kernel;
    for (uint32_t i = 0; i < nnodes; i++)
        add_member(&c, nodes[i]);
    for (uint32_t i = 0; i < nnodes; i++)
        DLC_TRY(collect_node(&c, nodes[i]));
    dlc_lower_inline(c.kernel);
    compact(&c);
    if (c.kernel->stages.n == 0)
        return DLC_OK;
    dlc_kernel_simplify(c.kernel);
    dlc_lower_axes(c.kernel);
    dlc_lower_phases(c.kernel);
    compact(&c);
    dlc_lower_merge(c.kernel);
    dlc_lower_guards(c.kernel);
    compact(&c);
    return DLC_OK;
}

/* Sizes that are equal in the group's region are one. */
dlc_status dlc_group_lower(dlc_graph *graph, dlc_node *const *nodes, uint32_t nnodes, dlc_arena *arena,
                           dlc_group_kernel *result)
{
    dlc_node *before = graph->region;
    graph->region = nnodes ? nodes[0]->region : NULL;
    dlc_status status = lower_group(graph, nodes, nnodes, arena, result);
    graph->region = before;
    return status;
}

/* --- the module --- */

static void add_symbols(dlc_lowering *b)
{
    const dlc_graph *graph = b->ctx->graph;
    for (uint32_t s = 0; s < graph->symbols.n; s++) {
        const dlc_symbol *symbol = &graph->symbols.data[s];
        dlc_module_symbol made = {.name = symbol->name,
                                  .lo = symbol->lo,
                                  .hi = symbol->hi,
                                  .usual = dlc_graph_usual(graph, s),
                                  .bind = symbol->bind,
                                  .index = symbol->index};
        if (symbol->bind == DLC_BIND_INPUT_DIM)
            made.input = b->module->values.data[dlc_lowering_value(b, symbol->value)].index;
        dlc_vec_push(b->module->arena, &b->module->symbols, made);
    }
    for (uint32_t c = 0; c < graph->conditions.n; c++) {
        const dlc_condition *condition = &graph->conditions.data[c];
        dlc_vec_push(b->module->arena, &b->module->conditions,
                     ((dlc_condition){dlc_lowering_size(b, condition->holds), condition->text}));
    }
}

/* Outputs that steps write as they are. One that is an input, a constant, or another output too, is copied at the end. */
static int is_written_in_place(const dlc_lowering *b, const dlc_value *value)
{
    return value->def && !value->data && !b->value_of[value->id] && !dlc_is_of_region(value->def);
}

static void add_interface(dlc_lowering *b)
{
    const dlc_graph *graph = b->ctx->graph;
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        dlc_module_input(b->module, dlc_lowering_value(b, graph->inputs.data[i]));
    add_symbols(b);
    for (uint32_t o = 0; o < graph->outputs.n; o++) {
        const dlc_output_value *output = &graph->outputs.data[o];
        dlc_module_value copy = {.name = output->name,
                                 .type = dlc_lowering_type(b, &output->value->type),
                                 .layout = *output->value->layout,
                                 .origin = DLC_NO_VALUE};
        dlc_module_output_add(b->module, output->name,
                              is_written_in_place(b, output->value) ? dlc_lowering_value(b, output->value)
                                                                    : dlc_module_add_value(b->module, &copy));
    }
}

static void copy_outputs(dlc_lowering *b)
{
    const dlc_graph *graph = b->ctx->graph;
    for (uint32_t o = 0; o < graph->outputs.n; o++) {
        uint32_t from = dlc_lowering_value(b, graph->outputs.data[o].value), to = b->module->outputs.data[o].value;
        if (from == to)
            continue;
        dlc_step step = dlc_lowering_new_step(b, DLC_STEP_COPY, 2);
        step.values[0] = from, step.values[1] = to;
        dlc_step_set_nodes(b->module, &step, &b->module->outputs.data[o].name, 1);
        dlc_lowering_step(b, &step, NULL, 0);
    }
}

/* Of a kernel whose arena ends. */
static dlc_kernel *keep(const dlc_kernel *kernel, dlc_arena *arena)
{
    dlc_kernel *kept = dlc_kernel_clone(kernel, arena);
    kept->name = dlc_arena_strdup(arena, kept->name);
    for (uint32_t i = 0; i < kept->axes.n; i++)
        kept->axes.data[i].name = dlc_arena_strdup(arena, kept->axes.data[i].name);
    for (uint32_t i = 0; i < kept->buffers.n; i++)
        kept->buffers.data[i].name = dlc_arena_strdup(arena, kept->buffers.data[i].name);
    for (uint32_t i = 0; i < kept->symbols.n; i++)
        kept->symbols.data[i].name = dlc_arena_strdup(arena, kept->symbols.data[i].name);
    for (uint32_t i = 0; i < kept->stages.n; i++) {
        dlc_stage *stage = &kept->stages.data[i];
        stage->name = dlc_arena_strdup(arena, stage->name);
        stage->origin.data = dlc_arena_copy(arena, stage->origin.data, stage->origin.n * sizeof *stage->origin.data);
        stage->origin.cap = stage->origin.n;
    }
    return kept;
}

static dlc_status launch(dlc_lowering *b, dlc_node *const *nodes, uint32_t n)
{
    dlc_group_kernel group;
    DLC_TRY(dlc_group_lower(b->ctx->graph, nodes, n, b->group, &group));
    if (!group.kernel->stages.n)
        return DLC_OK; /* nothing anyone reads */
    dlc_lower_bounds(group.kernel, group.values.data);
    dlc_step step = dlc_lowering_new_step(b, DLC_STEP_LAUNCH, group.values.n);
    for (uint32_t v = 0; v < step.nvalues; v++)
        step.values[v] = dlc_lowering_value(b, group.values.data[v]);
    step.nsymbols = group.kernel->symbols.n;
    step.symbols = dlc_new_array(b->module->arena, dlc_expr, step.nsymbols + 1);
    for (uint32_t s = 0; s < step.nsymbols; s++) {
        step.symbols[s] = dlc_lowering_size(b, group.kernel->symbols.data[s].outer);
        group.kernel->symbols.data[s].outer = 0;
    }
    uint32_t nkernels = b->module->kernels.n;
    step.kernel = dlc_module_add_kernel(b->module, group.kernel);
    if (step.kernel == nkernels)
        b->module->kernels.data[nkernels].kernel = keep(group.kernel, b->module->arena);
    dlc_lowering_step(b, &step, nodes, n);
    return DLC_OK;
}

/* Many groups have the same kernel, and lowering leaves more behind than the kernel it makes. */
static dlc_status add_launch(dlc_lowering *b, dlc_node *const *nodes, uint32_t n)
{
    dlc_mark mark = dlc_arena_mark(b->group);
    dlc_status status = launch(b, nodes, n);
    dlc_arena_release(b->group, mark);
    return status;
}

/* An output nobody asked for, but that the step works in: i64, of the first output's shape. */
static uint32_t working_value(dlc_lowering *b, const dlc_node *node)
{
    dlc_module_value work = {.name = dlc_arena_printf(b->module->arena, "%s.work", node->outputs[0]->name),
                             .type = dlc_lowering_type(b, &node->outputs[0]->type),
                             .origin = DLC_NO_VALUE};
    work.type.dtype = DLC_I64;
    return dlc_module_add_value(b->module, &work);
}

static dlc_status add_opaque(dlc_lowering *b, dlc_node *node)
{
    dlc_opaque_call call;
    if (!dlc_opaque_call_of(node, &call))
        return dlc_fail(b->ctx->graph, node, DLC_UNSUPPORTED, "the executable's format has no such step");
    dlc_step step = dlc_lowering_new_step(b, DLC_STEP_OPAQUE, call.ninputs + call.noutputs);
    step.opaque = (uint8_t)call.kind;
    step.nattrs = (uint8_t)call.nattrs;
    memcpy(step.attrs, call.attrs, sizeof step.attrs);
    for (uint32_t i = 0; i < call.ninputs; i++)
        step.values[i] = dlc_lowering_value(b, node->inputs[i]);
    for (uint32_t o = 0; o < call.noutputs; o++) {
        const dlc_value *output = o < node->noutputs ? node->outputs[o] : NULL;
        step.values[call.ninputs + o] = output                      ? dlc_lowering_value(b, output)
                                        : call.works_in >> o & 1 ? working_value(b, node)
                                                                    : DLC_NO_VALUE;
    }
    const dlc_attr *symbol = dlc_node_attr(node, DLC_ATTR_SYMBOL);
    if (symbol)
        step.symbol = (uint32_t)symbol->as.i;
    dlc_lowering_step(b, &step, &node, 1);
    return DLC_OK;
}

static void add_first_binds(dlc_lowering *b)
{
    const dlc_graph *graph = b->ctx->graph;
    dlc_lowering_binds(b, NULL); /* read from graph inputs */
    for (const dlc_node *node = graph->first; node; node = node->next)
        if (node->op == DLC_OP_CONSTANT)
            dlc_lowering_binds(b, node);
}

static dlc_status add_groups(dlc_lowering *b)
{
    const dlc_groups *groups = b->ctx->groups;
    for (uint32_t i = 0; i < groups->ngroups; i++) {
        uint32_t g = groups->order[i];
        dlc_node **nodes = groups->members[g].data;
        uint32_t n = groups->members[g].n;
        dlc_budget_at("lower", dlc_fuse_result(nodes[n - 1])->name);
        if (dlc_op_is_mark(nodes[0]->op))
            dlc_lower_mark(b, nodes[0]);
        else if (!dlc_is_of_region(nodes[0]))
            DLC_TRY(n == 1 && dlc_op_is_opaque(nodes[0]->op) ? add_opaque(b, nodes[0]) : add_launch(b, nodes, n));
        if (nodes[0]->op == DLC_OP_STATE)
            continue; /* its symbols are bound anew by each iteration */
        for (uint32_t m = 0; m < n; m++)
            dlc_lowering_binds(b, nodes[m]);
    }
    return DLC_OK;
}

/* Strings are host memory, and so are the tables of their numbers. */
static dlc_status check_strings(const dlc_pass_ctx *ctx)
{
    dlc_graph *graph = ctx->graph;
    if (ctx->target->kind == DLC_TARGET_CPU)
        return DLC_OK;
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        if (dlc_is_text(graph->inputs.data[i]->type.dtype))
            return dlc_diag_fail(graph->diag, DLC_UNSUPPORTED, graph->file, "input '%s' is of strings, which run on the CPU alone",
                                 graph->inputs.data[i]->name);
    for (const dlc_node *node = graph->first; node; node = node->next)
        for (uint32_t o = 0; o < node->noutputs; o++)
            if (node->outputs[o] && dlc_is_text(node->outputs[o]->type.dtype))
                return dlc_fail(graph, node, DLC_UNSUPPORTED, "output %u is of strings, which run on the CPU alone", o);
    return DLC_OK;
}

dlc_status dlc_pass_lower(dlc_pass_ctx *ctx)
{
    const dlc_graph *graph = ctx->graph;
    DLC_TRY(check_strings(ctx));
    dlc_lowering b = {.ctx = ctx, .module = dlc_module_create(graph->arena, ctx->target, graph->file, graph->name)};
    b.value_of = dlc_new_array(ctx->scratch, uint32_t, graph->nvalues + 1);
    b.module->properties = graph->properties;
    b.module->strings = graph->strings;
    ctx->module = b.module;
    add_interface(&b);
    add_first_binds(&b);
    b.group = dlc_arena_create(0);
    dlc_status status = add_groups(&b);
    dlc_arena_destroy(b.group);
    DLC_TRY(status);
    copy_outputs(&b);
    ctx->changes = b.module->steps.n;
    return DLC_OK;
}

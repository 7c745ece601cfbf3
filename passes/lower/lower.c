/*
 * From a fusion group to a kernel, and from groups to the module's steps. The stages of the nodes' meanings are collected in
 * graph order with each other as sources; the steps of lower.h then bring them into the form schedules are chosen for. Equal
 * kernels are kept once: constants are parameters, so equal layers share code.
 */
#include "passes/fuse/fuse_engine.h"
#include "passes/lower/lower.h"

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
    return dlc_kernel_buffer(c->kernel, value->name, &type, &value->layout, role);
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

/* Where a member loads an input from; sizes known as expressions are written out in every kernel that reads them. */
static dlc_status source_of(collection *c, dlc_value *value, dlc_source *source)
{
    known *entry = find_source(c, value);
    if (!entry->value && value->def && value->def->op == DLC_OP_SYMBOLS) {
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
            DLC_TRY(source_of(c, node->inputs[i], &in[i]));
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

dlc_status dlc_group_lower(dlc_graph *graph, dlc_node *const *nodes, uint32_t nnodes, dlc_arena *arena,
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
    compact(&c);
    dlc_lower_merge(c.kernel);
    dlc_lower_guards(c.kernel);
    compact(&c);
    return DLC_OK;
}

/* --- the module --- */

typedef struct {
    dlc_pass_ctx *ctx;
    dlc_module *module;
    dlc_constants constants;
    uint32_t *shared; /* kernels by hash: open addressing, index + 1 */
    uint32_t nshared;
} building;

static int texts_equal(const dlc_kernel *a, const dlc_kernel *b)
{
    dlc_str text_a = {0}, text_b = {0};
    dlc_kernel_print(a, 0, &text_a);
    dlc_kernel_print(b, 0, &text_b);
    int equal = !strcmp(dlc_str_text(&text_a), dlc_str_text(&text_b));
    dlc_str_deinit(&text_a);
    dlc_str_deinit(&text_b);
    return equal;
}

static void grow_shared(building *b)
{
    uint32_t *old = b->shared, nold = b->nshared;
    b->nshared = nold ? nold * 2 : 256;
    b->shared = dlc_new_array(b->ctx->scratch, uint32_t, b->nshared);
    for (uint32_t i = 0; i < nold; i++) {
        if (!old[i])
            continue;
        uint32_t slot = (uint32_t)b->module->kernels.data[old[i] - 1].hash & (b->nshared - 1);
        while (b->shared[slot])
            slot = (slot + 1) & (b->nshared - 1);
        b->shared[slot] = old[i];
    }
}

static uint32_t share_kernel(building *b, dlc_kernel *kernel)
{
    if (b->module->kernels.n * 2 >= b->nshared)
        grow_shared(b);
    uint64_t hash = dlc_kernel_hash(kernel);
    uint32_t slot = (uint32_t)hash & (b->nshared - 1);
    for (; b->shared[slot]; slot = (slot + 1) & (b->nshared - 1)) {
        const dlc_module_kernel *other = &b->module->kernels.data[b->shared[slot] - 1];
        if (other->hash == hash && texts_equal(other->kernel, kernel))
            return b->shared[slot] - 1;
    }
    dlc_vec_push(b->module->arena, &b->module->kernels, ((dlc_module_kernel){kernel, NULL, hash}));
    return (b->shared[slot] = b->module->kernels.n) - 1;
}

/* Names of the nodes' results joined by '+', cut where they would fill a line. */
static const char *step_name(dlc_arena *arena, dlc_node *const *nodes, uint32_t n)
{
    enum { MOST = 96 };
    dlc_str name = {0};
    for (uint32_t i = 0; i < n; i++) {
        const dlc_node *node = nodes[i];
        const char *part = node->origin && node->origin->name ? node->origin->name : dlc_fuse_result(node)->name;
        const char *before = i && nodes[i - 1]->origin ? nodes[i - 1]->origin->name : NULL;
        if (before && before == part) /* core nodes of one ONNX node share its name */
            continue;
        if (name.n + strlen(part) > MOST && i) {
            dlc_str_printf(&name, "+…%u more", n - i);
            break;
        }
        dlc_str_printf(&name, "%s%s", name.n ? "+" : "", part);
    }
    const char *text = dlc_arena_strdup(arena, dlc_str_text(&name));
    dlc_str_deinit(&name);
    return text;
}

static dlc_status add_launch(building *b, dlc_node *const *nodes, uint32_t n)
{
    dlc_arena *arena = b->module->arena;
    dlc_group_kernel group;
    dlc_step step = {.kind = DLC_STEP_LAUNCH};
    DLC_TRY(dlc_group_lower(b->ctx->graph, nodes, n, arena, &group));
    if (!group.kernel->stages.n)
        return DLC_OK; /* nothing anyone reads */
    step.kernel = share_kernel(b, group.kernel);
    step.nvalues = group.values.n;
    step.values = group.values.data;
    step.constants = dlc_new_array(arena, uint32_t, step.nvalues + 1);
    for (uint32_t v = 0; v < step.nvalues; v++)
        step.constants[v] = group.kernel->buffers.data[v].role != DLC_ROLE_CONST
                                ? UINT32_MAX
                                : dlc_constants_add(&b->constants, group.values.data[v], NULL, NULL);
    step.nsymbols = group.kernel->symbols.n;
    step.symbols = dlc_new_array(arena, dlc_expr, step.nsymbols + 1);
    for (uint32_t s = 0; s < step.nsymbols; s++)
        step.symbols[s] = group.kernel->symbols.data[s].outer;
    step.name = step_name(arena, nodes, n);
    for (uint32_t i = 0; i < n; i++)
        dlc_vec_push(arena, &step.origin, nodes[i]->id);
    dlc_vec_push(arena, &b->module->steps, step);
    return DLC_OK;
}

static void add_opaque(building *b, dlc_node *node)
{
    dlc_arena *arena = b->module->arena;
    dlc_step step = {.kind = DLC_STEP_OPAQUE, .node = node};
    step.nvalues = node->ninputs + node->noutputs;
    step.values = dlc_new_array(arena, dlc_value *, step.nvalues + 1);
    step.constants = dlc_new_array(arena, uint32_t, step.nvalues + 1);
    for (uint32_t i = 0; i < step.nvalues; i++) {
        dlc_value *value = i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
        step.values[i] = value;
        step.constants[i] =
            value && value->data ? dlc_constants_add(&b->constants, value, NULL, NULL) : UINT32_MAX;
    }
    step.name = step_name(arena, &node, 1);
    dlc_vec_push(arena, &step.origin, node->id);
    dlc_vec_push(arena, &b->module->steps, step);
}

/* Symbols read from a value are bound as soon as it is there. */
static void add_binds(building *b, const dlc_node *producer)
{
    const dlc_graph *graph = b->ctx->graph;
    for (uint32_t s = 0; s < graph->symbols.n; s++) {
        const dlc_symbol *symbol = &graph->symbols.data[s];
        if (symbol->bind != DLC_BIND_DATA || symbol->value->def != producer)
            continue;
        dlc_step step = {.kind = DLC_STEP_BIND, .symbol = s, .name = symbol->name, .nvalues = 1};
        step.values = dlc_new_array(b->module->arena, dlc_value *, 1);
        step.values[0] = symbol->value;
        step.constants = dlc_new_array(b->module->arena, uint32_t, 1);
        step.constants[0] =
            symbol->value->data ? dlc_constants_add(&b->constants, symbol->value, NULL, NULL) : UINT32_MAX;
        dlc_vec_push(b->module->arena, &b->module->steps, step);
    }
}

static void add_first_binds(building *b)
{
    const dlc_graph *graph = b->ctx->graph;
    add_binds(b, NULL); /* read from graph inputs */
    for (const dlc_node *node = graph->first; node; node = node->next)
        if (node->op == DLC_OP_CONSTANT)
            add_binds(b, node);
}

dlc_status dlc_pass_lower(dlc_pass_ctx *ctx)
{
    dlc_module *module = dlc_new(ctx->graph->arena, dlc_module);
    building b = {.ctx = ctx, .module = module};
    module->arena = ctx->graph->arena;
    module->graph = ctx->graph;
    module->target = ctx->target;
    ctx->module = module;
    dlc_constants_init(&b.constants, module, ctx->scratch);
    add_first_binds(&b);
    for (uint32_t i = 0; i < ctx->groups->ngroups; i++) {
        uint32_t g = ctx->groups->order[i];
        dlc_node **nodes = ctx->groups->members[g].data;
        uint32_t n = ctx->groups->members[g].n;
        if (n == 1 && !dlc_ops[nodes[0]->op].mean)
            add_opaque(&b, nodes[0]);
        else
            DLC_TRY(add_launch(&b, nodes, n));
        for (uint32_t m = 0; m < n; m++)
            add_binds(&b, nodes[m]);
    }
    ctx->changes = module->steps.n;
    return DLC_OK;
}

/*
 * From ONNX nodes to core nodes. Bodies (the graph, functions, branches) lie on an explicit stack;
 * each node's row in onnx_ops.def says which importer takes it. A node that fails poisons its
 * outputs and the import goes on, so that one run reports all problems.
 */
#include "base/budget.h"
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static const char *node_name(const Onnx__NodeProto *node)
{
    if (node->name && *node->name)
        return node->name;
    for (size_t i = 0; i < node->n_output; i++) {
        if (*node->output[i])
            return node->output[i];
    }
    return or_empty(node->op_type);
}

/* --- one node --- */

static void open_node(dlc_import *im, const dlc_body *body, const Onnx__NodeProto *node)
{
    dlc_origin *origin = dlc_new(im->arena, dlc_origin);
    const char *name = node_name(node);
    origin->name = *body->prefix ? dlc_arena_join(im->arena, body->prefix, name) : name;
    origin->op_type = or_empty(node->op_type);
    origin->domain = im_domain(node->domain);
    im->node = node;
    im->origin = origin;
    im->row = NULL;
    im->nin = im->nout = 0;
    im->messages_before = im->graph->diag->nmessages;
    dlc_budget_at("import", origin->name);
    void **opset = dlc_table_find(body->opsets, origin->domain);
    im->opset = origin->opset = opset ? *(const int64_t *)*opset : 0;
}

static void read_inputs(dlc_import *im, const dlc_body *body)
{
    const Onnx__NodeProto *node = im->node;
    size_t n = node->n_input;
    while (n && !*node->input[n - 1])
        n--; /* trailing absent inputs do not count */
    im->nin = (uint32_t)n;
    im->in = dlc_new_array(im->arena, dlc_value *, n + 1);
    for (uint32_t i = 0; i < im->nin; i++) {
        if (!*node->input[i])
            continue;
        if (!im_lookup(body->scope, node->input[i], &im->in[i])) {
            im_fail(im, DLC_INVALID,
                    "input %" PRIu32 " '%s' is defined by no earlier node, input or initializer", i,
                    node->input[i]);
            im->in[i] = &im->poison;
        }
    }
    im->nout = (uint32_t)node->n_output;
    im->out = dlc_new_array(im->arena, dlc_value *, im->nout + 1);
}

static int has_poison(const dlc_import *im)
{
    for (uint32_t i = 0; i < im->nin; i++) {
        if (im->in[i] == &im->poison)
            return 1;
    }
    return 0;
}

static void check_declared(dlc_import *im, const dlc_body *body, const char *name, dlc_value *value)
{
    void **declared = body->caller ? NULL : dlc_table_find(&im->declared, name);
    if (declared && value != &im->poison)
        im_check_declared(im, *declared, value);
}

/* Gives the outputs their names in the body's scope; what is missing is poison. */
static void bind_outputs(dlc_import *im, const dlc_body *body)
{
    for (uint32_t i = 0; i < im->nout; i++) {
        if (!im_wants(im, i))
            continue;
        dlc_value *value = im->out[i] ? im->out[i] : &im->poison;
        const char *name = im->node->output[i];
        if (im_bind(im, body->scope, name, value) != DLC_OK)
            continue;
        const char *full =
            *body->prefix ? dlc_arena_join(im->arena, body->prefix, name) : name;
        if (value->def && value->def->origin == im->origin && value->def->op != DLC_OP_CONSTANT &&
            strcmp(value->name, full) != 0) /* a node without a name is called like its output */
            dlc_value_rename(im->graph, value, full);
        check_declared(im, body, name, value);
    }
}

static void check_all_read(dlc_import *im)
{
    for (uint32_t i = 0; im_ok(im) && i < im->attributes.n; i++) {
        if (!im->attributes.data[i].is_read)
            im_fail(im, DLC_UNSUPPORTED, "attribute '%s' is unknown for this operator and opset",
                    im->attributes.data[i].name);
    }
}

static void close_node(dlc_import *im, const dlc_body *body)
{
    for (uint32_t i = 0; im_ok(im) && i < im->nout; i++) {
        if (im_wants(im, i) && !im->out[i])
            im_fail(im, DLC_UNSUPPORTED, "output %" PRIu32 " is not supported", i);
    }
    if (!im_ok(im))
        memset(im->out, 0, im->nout * sizeof *im->out);
    bind_outputs(im, body);
}

static void check_arity(dlc_import *im)
{
    const dlc_onnx_row *row = im->row;
    for (uint32_t i = 0; i < (uint32_t)row->inputs && (row->inputs_max != -1 || i >= im->nin);
         i++) {
        if (!im_in(im, i))
            im_fail(im, DLC_INVALID, "input %" PRIu32 " is required but absent", i);
    }
    for (uint32_t i = 0; i < im->nin && row->inputs_max == -1; i++) {
        if (!im->in[i])
            im_fail(im, DLC_INVALID,
                    "input %" PRIu32 " is absent; only trailing or optional inputs may be", i);
    }
    if (row->inputs_max >= 0 && im->nin > (uint32_t)row->inputs_max)
        im_fail(im, DLC_INVALID, "has %" PRIu32 " inputs; at most %d are possible", im->nin,
                row->inputs_max);
    if (row->outputs_max >= 0 && im->nout > (uint32_t)row->outputs_max)
        im_fail(im, DLC_INVALID, "has %" PRIu32 " outputs; at most %d are possible", im->nout,
                row->outputs_max);
    if (im->nout == 0)
        im_fail(im, DLC_INVALID, "has no output");
    for (uint32_t i = 0; i < im->nin && !row->takes_lists; i++) {
        if (im_list_of(im, im->in[i]))
            im_fail(im, DLC_INVALID, "input %" PRIu32 " is a sequence or an optional; a tensor is wanted",
                    i);
    }
}

static void check_types(dlc_import *im)
{
    for (uint32_t i = 0; i < im->nin && !*im->origin->domain; i++) {
        const dlc_value *value = im->in[i];
        const char *wanted = value ? im_wanted_types(im->origin->op_type, i, value->type.dtype) : NULL;
        if (wanted)
            im_fail(im, DLC_INVALID, "input %" PRIu32 " is of %s; possible: %s", i, dlc_dtypes[value->type.dtype].text, wanted);
    }
}

static void report_unknown(dlc_import *im)
{
    int first, last;
    if (im_row_range(im->origin->domain, im->origin->op_type, &first, &last) && *im->origin->domain)
        im_fail(im, DLC_UNSUPPORTED,
                "operator '%s' of domain '%s' is supported from version %d on, not %" PRId64,
                im->origin->op_type, im->origin->domain, first, im->opset);
    else if (*im->origin->domain)
        im_fail(
            im, DLC_UNSUPPORTED,
            "operator '%s' of domain '%s' is unknown, and the model has no function of that name",
            im->origin->op_type, im->origin->domain);
    else if (!im->opset)
        im_fail(im, DLC_INVALID,
                "operator '%s' is of the default domain, of which no opset is imported",
                im->origin->op_type);
    else if (im_row_range("", im->origin->op_type, &first, &last))
        im_fail(im, DLC_UNSUPPORTED, "operator '%s' is supported from opset %d to %d, not %" PRId64,
                im->origin->op_type, first, last, im->opset);
    else
        im_fail(im, DLC_UNSUPPORTED, "operator '%s' is not supported", im->origin->op_type);
}

static void import_operator(dlc_import *im, dlc_body *body)
{
    const dlc_onnx_row *row = im->row;
    size_t depth = im->bodies.n;
    check_arity(im);
    if (im_ok(im))
        check_types(im);
    if (!*im->origin->domain && im->opset < 7) { /* hints on memory, and which outputs there are */
        (void)im_attribute(im, "consumed_inputs");
        (void)im_attribute(im, "output_sequence");
    }
    if (im_ok(im))
        row->import(im);
    check_all_read(im);
    if (im->bodies.n == depth) /* else a body gives the outputs when it ends */
        close_node(im, body);
}

static int look_inside(dlc_import *im, const Onnx__NodeProto *node, size_t first);

static void look_further(dlc_import *im, void *first, dlc_value **values)
{
    (void)values;
    if (!look_inside(im, im->node, *(size_t *)first))
        for (uint32_t i = 0; i < im->nout; i++)
            im->out[i] = &im->poison;
}

/* The graphs of a node that is passed by, from attribute `first` on, are read for what they lack too; their inputs are unknown.
 * False: there is none. */
static int look_inside(dlc_import *im, const Onnx__NodeProto *node, size_t first)
{
    for (size_t a = first; a < node->n_attribute; a++) {
        const Onnx__GraphProto *graph = node->attribute[a]->g;
        if (!graph || !graph->n_output)
            continue;
        size_t *next = dlc_new(im->arena, size_t);
        *next = a + 1;
        dlc_value **unknown = dlc_new_array(im->arena, dlc_value *, graph->n_input + 1);
        im_push_graph(im, graph, unknown, (uint32_t)graph->n_input, look_further, next);
        return 1;
    }
    return 0;
}

static void import_node(dlc_import *im, uint32_t at, const Onnx__NodeProto *node)
{
    dlc_body body = im->bodies.data[at]; /* a copy: a body pushed meanwhile may move the stack */
    open_node(im, &body, node);
    read_inputs(im, &body);
    im_read_attributes(im, &body);
    Onnx__FunctionProto *function =
        im_function(im, im->origin->domain, im->origin->op_type, or_empty(node->overload));
    if (!function) {
        im->row = im_row(im->origin->domain, im->origin->op_type, im->opset);
        if (!im->row)
            report_unknown(im);
        else if (strcmp(im->origin->domain, "com.microsoft") == 0)
            im->opset = DLC_OPSET_LAST; /* what its operators share with ONNX's is the newest */
    }
    if (!im_ok(im) || has_poison(im)) {
        if (!look_inside(im, node, 0))
            bind_outputs(im, &body);
    } else if (!function)
        import_operator(im, &body);
    else if (!im_call(im, function))
        bind_outputs(im, &body);
}

/* --- bodies --- */

static dlc_body *top(dlc_import *im)
{
    return &im->bodies.data[im->bodies.n - 1];
}

/* Values of the body's results; NULL where poisoned. */
static dlc_value **body_results(dlc_import *im, const dlc_body *body)
{
    dlc_value **values = dlc_new_array(im->arena, dlc_value *, body->nresults + 1);
    for (size_t i = 0; i < body->nresults; i++) {
        if (!*body->results[i])
            im_fail(im, DLC_INVALID, "result %zu of its body has no name", i);
        else if (!im_lookup(body->scope, body->results[i], &values[i]))
            im_fail(im, DLC_INVALID, "result %zu '%s' of its body is defined by no node", i,
                    body->results[i]);
        else if (!values[i] && (body->repeat || body->then || im_wants(im, (uint32_t)i)))
            im_fail(im, DLC_INVALID,
                    "result %zu '%s' of its body is an input that the call leaves out", i,
                    body->results[i]);
        if (values[i] == &im->poison)
            values[i] = NULL;
    }
    return values;
}

/* A function's body, a branch or an iteration is done: its results become the outputs of the node
 * that called it. */
static void finish_body(dlc_import *im)
{
    dlc_body body = *top(im);
    if (!body.caller) {
        im->bodies.n--;
        return;
    }
    const dlc_body *outer = top(im) - 1;
    open_node(im, outer, body.call);
    read_inputs(im, outer);
    dlc_value **values = body_results(im, &body);
    if (body.repeat && im_ok(im) && im_repeat(im, top(im), values))
        return;
    im->bodies.n--;
    if (body.then) {
        size_t depth = im->bodies.n;
        body.then(im, body.state, values);
        if (im->bodies.n == depth)
            close_node(im, top(im));
        return;
    }
    for (size_t i = 0; !body.repeat && i < body.nresults && i < im->nout; i++)
        im->out[i] = values[i];
    if (!body.repeat && im->nout > body.nresults)
        im_fail(im, DLC_INVALID, "has %" PRIu32 " outputs where its body has %zu", im->nout,
                body.nresults);
    bind_outputs(im, top(im));
}

/* Loops and functions inside each other multiply; calls were counted before, iterations are counted
 * here. */
static int is_within_limit(dlc_import *im)
{
    uint64_t limit = im->options->max_nodes ? im->options->max_nodes : 10 * 1000 * 1000;
    if (++im->nnodes <= limit)
        return 1;
    dlc_diag_fail(im->graph->diag, DLC_LIMIT, im->graph->file,
                  "has more than %" PRIu64 " nodes with its loops unrolled", limit);
    return 0;
}

/* A body that is wrong is so in each of its iterations: more messages than anybody reads, and those before have their say. */
static int is_hopeless(const dlc_import *im)
{
    enum { MOST_MESSAGES = 10000 };
    dlc_diag *diag = im->graph->diag;
    if (diag->status == DLC_OK || diag->nmessages < MOST_MESSAGES)
        return 0;
    dlc_diag_fail(diag, diag->status, im->graph->file, "has more than %d problems and notes; the nodes behind them were not read", MOST_MESSAGES);
    return 1;
}

static void import_bodies(dlc_import *im)
{
    while (im->bodies.n && !is_hopeless(im)) {
        dlc_body *body = top(im);
        if (body->next == body->nnodes) {
            finish_body(im);
            continue;
        }
        const Onnx__NodeProto *node = body->nodes[body->next++];
        if (!is_within_limit(im))
            return;
        import_node(im, im->bodies.n - 1, node);
    }
}

static dlc_status import_model(dlc_import *im)
{
    if (im_read_header(im) != DLC_OK || im_count_nodes(im) != DLC_OK)
        return im->graph->diag->status;
    im_sort(im);
    dlc_scope *scope = im_scope(im, NULL);
    im_read_initializers(im, im->proto->graph, scope);
    im_read_inputs(im, scope);
    const Onnx__GraphProto *graph = im->proto->graph;
    im_push(im, &(dlc_body){.nodes = graph->node,
                            .nnodes = graph->n_node,
                            .scope = scope,
                            .opsets = &im->opsets,
                            .prefix = ""});
    import_bodies(im);
    if (!im->bodies.n && im->graph->diag->status != DLC_LIMIT)
        im_write_outputs(im, scope);
    return im->graph->diag->status;
}

/* --- the two doors --- */

/* The first thing that does not fit the shape which the user gave, as one sentence about that shape. */
static dlc_status blame_shape(const dlc_import *im, uint32_t first_message)
{
    dlc_diag *diag = im->graph->diag;
    uint32_t i = first_message;
    size_t nfile = strlen(im->graph->file);
    while (i < diag->nmessages && diag->messages[i].status == DLC_OK)
        i++;
    if (i == diag->nmessages || (diag->status != DLC_INVALID && diag->status != DLC_UNSUPPORTED))
        return diag->status;
    const char *place = diag->messages[i].place, *text = diag->messages[i].text;
    if (strncmp(place, im->graph->file, nfile) == 0 && strncmp(place + nfile, ": ", 2) == 0)
        text = dlc_arena_printf(im->arena, "%s: %s", place + nfile + 2, text);
    diag->nmessages = first_message;
    diag->status = DLC_OK;
    return dlc_diag_fail(diag, DLC_USAGE, im->graph->file, "%s: %s", im->other_rank, text);
}

static dlc_status read_model(dlc_onnx *model, const dlc_onnx_options *options, dlc_graph **graph)
{
    static const dlc_onnx_options defaults;
    dlc_import *im = dlc_new(model->arena, dlc_import);
    uint32_t first_message = model->diag->nmessages;
    const char *foreign = dlc_onnx_foreign(model->bytes, model->size_bytes);
    *graph = NULL;
    if (foreign)
        return dlc_diag_fail(model->diag, DLC_INVALID, model->file, "%s", foreign);
    model->proto =
        (Onnx__ModelProto *)(void *)dlc_onnx_decode(model, &onnx__model_proto__descriptor, options);
    if (!model->proto)
        return model->diag->status;
    im->model = model;
    im->arena = model->arena;
    im->options = options ? options : &defaults;
    im->proto = model->proto;
    im->graph = dlc_graph_create(model->arena, model->diag, model->file);
    im->pool = im->graph->pool;
    im->origin = NULL;
    im->scopes = dlc_arena_create(0);
    dlc_status status = import_model(im);
    dlc_arena_destroy(im->scopes);
    dlc_problems_group(model->diag, first_message);
    if (status != DLC_OK && im->other_rank)
        status = blame_shape(im, first_message);
    *graph = status == DLC_OK ? im->graph : NULL;
    return status;
}

static dlc_onnx *new_model(dlc_arena *arena, dlc_diag *diag, const char *file,
                           const dlc_onnx_options *options)
{
    dlc_onnx *model = dlc_new(arena, dlc_onnx);
    model->arena = arena;
    model->diag = diag;
    model->file = dlc_arena_strdup(arena, file);
    model->symlink_dir = options ? options->symlink_dir : NULL;
    return model;
}

dlc_status dlc_onnx_open(const char *path, const dlc_onnx_options *options, dlc_arena *arena,
                         dlc_diag *diag, dlc_onnx **result, dlc_graph **graph)
{
    dlc_onnx *model = *result = new_model(arena, diag, path, options);
    *graph = NULL;
    DLC_TRY(dlc_map_open(path, &model->map, diag));
    model->bytes = model->map.bytes ? model->map.bytes : (const uint8_t *)"";
    model->size_bytes = model->map.size_bytes;
    const char *slash = strrchr(path, '/');
    model->folder = !slash          ? "."
                    : slash == path ? "/"
                                    : dlc_arena_strndup(arena, path, (size_t)(slash - path));
    return read_model(model, options, graph);
}

dlc_status dlc_onnx_read(const void *bytes, size_t size_bytes, const char *name,
                         const dlc_onnx_options *options, dlc_arena *arena, dlc_diag *diag,
                         dlc_onnx **result, dlc_graph **graph)
{
    dlc_onnx *model = *result = new_model(arena, diag, name, options);
    *graph = NULL;
    model->bytes = bytes;
    model->size_bytes = size_bytes;
    return read_model(model, options, graph);
}

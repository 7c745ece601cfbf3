/*
 * Functions of a model. They are inlined where they are called, body by body on import.c's stack.
 * Before that the nodes all calls will make are counted bottom up over the call graph with
 * saturating sums, so that a few functions that call each other twelve times over are refused and
 * not unrolled.
 */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <string.h>

enum { UNSEEN, OPEN, DONE };

typedef struct {
    Onnx__FunctionProto *proto; /* NULL: the model's graph */
    uint8_t state;
    uint64_t nnodes; /* with everything it calls */
    dlc_ids calls;   /* indices of functions, one per call */
    uint32_t next;   /* call to look at */
} function;

typedef struct {
    dlc_import *im;
    function *all; /* the model's functions, then the graph */
    uint32_t n;
    dlc_ids stack;
} counter;

static const char *key_of(dlc_arena *arena, const char *domain, const char *name,
                          const char *overload)
{
    return dlc_arena_printf(arena, "%s\1%s\1%s", domain, name, overload ? overload : "");
}

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* A function's outputs are names of their own. */
static dlc_status check_outputs(dlc_import *im, const Onnx__FunctionProto *proto)
{
    dlc_table seen = {0};
    for (size_t i = 0; i < proto->n_output; i++) {
        int is_new;
        (void)dlc_table_insert(&seen, im->arena, proto->output[i], &is_new);
        if (!is_new)
            return dlc_diag_fail(im->graph->diag, DLC_INVALID, im->graph->file, "function '%s' names its output '%s' twice",
                                 proto->name, proto->output[i]);
    }
    return DLC_OK;
}

static dlc_status register_functions(dlc_import *im)
{
    for (size_t i = 0; i < im->proto->n_functions; i++) {
        const Onnx__FunctionProto *proto = im->proto->functions[i];
        int is_new;
        if (!proto->name || !*proto->name)
            return dlc_diag_fail(im->graph->diag, DLC_INVALID, im->graph->file,
                                 "function %zu has no name", i);
        void **item = dlc_table_insert(
            &im->functions, im->arena,
            key_of(im->arena, im_domain(proto->domain), proto->name, proto->overload), &is_new);
        if (!is_new)
            return dlc_diag_fail(im->graph->diag, DLC_INVALID, im->graph->file,
                                 "function '%s' is defined twice", proto->name);
        *item = (void *)(uintptr_t)(i + 1);
        DLC_TRY(check_outputs(im, proto));
    }
    return DLC_OK;
}

static uint32_t function_index(dlc_import *im, const char *domain, const char *name,
                               const char *overload)
{
    if (!im->functions.n)
        return 0;
    void **item = dlc_table_find(&im->functions,
                                  key_of(im->arena, im_domain(domain), name ? name : "", overload));
    return item ? (uint32_t)(uintptr_t)*item : 0;
}

Onnx__FunctionProto *im_function(dlc_import *im, const char *domain, const char *name,
                                 const char *overload)
{
    uint32_t index = function_index(im, domain, name, overload);
    return index ? im->proto->functions[index - 1] : NULL;
}

void im_push_graphs(dlc_import *im, const Onnx__NodeProto *node, im_graphs *graphs)
{
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__AttributeProto *attribute = node->attribute[a];
        if (attribute->g)
            dlc_vec_push(im->arena, graphs, attribute->g);
        for (size_t g = 0; g < attribute->n_graphs; g++)
            dlc_vec_push(im->arena, graphs, attribute->graphs[g]);
    }
}

/* Its own nodes, those of all its subgraphs, and its calls. */
static void look_inside(dlc_import *im, function *f, Onnx__NodeProto **nodes, size_t n)
{
    im_graphs left = {0};
    for (;;) {
        f->nnodes = saturating_add(f->nnodes, n);
        for (size_t i = 0; i < n; i++) {
            uint32_t callee = function_index(im, nodes[i]->domain, nodes[i]->op_type, nodes[i]->overload);
            if (callee)
                dlc_vec_push(im->arena, &f->calls, callee - 1);
            im_push_graphs(im, nodes[i], &left);
        }
        if (!left.n)
            return;
        const Onnx__GraphProto *graph = left.data[--left.n];
        nodes = graph->node, n = graph->n_node;
    }
}

static const char *name_of(const counter *c, uint32_t index)
{
    return c->all[index].proto ? c->all[index].proto->name : "the graph";
}

/* Depth first from the graph, on a stack of our own; a function met while open calls itself. */
static dlc_status count_calls(counter *c)
{
    dlc_import *im = c->im;
    dlc_vec_push(im->arena, &c->stack, c->n);
    while (c->stack.n) {
        uint32_t index = c->stack.data[c->stack.n - 1];
        function *f = &c->all[index];
        f->state = OPEN;
        if (f->next == f->calls.n) {
            f->state = DONE;
            c->stack.n--;
            continue;
        }
        uint32_t callee = f->calls.data[f->next];
        function *g = &c->all[callee];
        if (g->state == OPEN)
            return dlc_diag_fail(im->graph->diag, DLC_INVALID, im->graph->file,
                                 "function '%s' calls itself (from %s)", name_of(c, callee),
                                 name_of(c, index));
        if (g->state == UNSEEN) {
            dlc_vec_push(im->arena, &c->stack, callee);
            continue;
        }
        f->nnodes = saturating_add(f->nnodes, g->nnodes);
        f->next++;
    }
    return DLC_OK;
}

dlc_status im_count_nodes(dlc_import *im)
{
    DLC_TRY(register_functions(im));
    const Onnx__ModelProto *proto = im->proto;
    counter c = {.im = im, .n = (uint32_t)proto->n_functions};
    c.all = dlc_new_array(im->arena, function, proto->n_functions + 1);
    for (uint32_t i = 0; i < c.n; i++) {
        c.all[i].proto = proto->functions[i];
        look_inside(im, &c.all[i], proto->functions[i]->node, proto->functions[i]->n_node);
    }
    look_inside(im, &c.all[c.n], proto->graph->node, proto->graph->n_node);
    DLC_TRY(count_calls(&c));
    uint64_t limit = im->options->max_nodes ? im->options->max_nodes : 10 * 1000 * 1000;
    if (c.all[c.n].nnodes <= limit)
        return DLC_OK;
    return dlc_diag_fail(
        im->graph->diag, DLC_LIMIT, im->graph->file,
        "has %s%" PRIu64 " nodes with its functions inlined; the limit is %" PRIu64,
        c.all[c.n].nnodes == UINT64_MAX ? "at least " : "", c.all[c.n].nnodes, limit);
}

/* --- a call --- */

static int is_parameter(const Onnx__FunctionProto *proto, const char *name)
{
    for (size_t i = 0; i < proto->n_attribute; i++) {
        if (strcmp(proto->attribute[i], name) == 0)
            return 1;
    }
    return 0;
}

/* The call's attributes, then defaults for those it does not give. */
static dlc_onnx_attributes call_attributes(dlc_import *im, const Onnx__FunctionProto *proto)
{
    dlc_onnx_attributes result = {0};
    for (uint32_t i = 0; i < im->attributes.n; i++)
        dlc_vec_push(im->arena, &result, im->attributes.data[i]);
    for (size_t i = 0; i < proto->n_attribute_proto; i++) {
        const Onnx__AttributeProto *attribute = proto->attribute_proto[i];
        if (!attribute->name)
            continue;
        if (im_has(im, attribute->name))
            im_attribute(im, attribute->name);
        else
            dlc_vec_push(im->arena, &result, ((dlc_onnx_attribute){attribute->name, attribute, 0}));
    }
    for (uint32_t i = 0; i < im->attributes.n; i++) {
        if (!is_parameter(proto, im->attributes.data[i].name) && !im->attributes.data[i].is_read)
            im_fail(im, DLC_INVALID, "attribute '%s' is no parameter of function '%s'",
                    im->attributes.data[i].name, proto->name);
    }
    return result;
}

static const dlc_table *function_opsets(dlc_import *im, const Onnx__FunctionProto *proto)
{
    dlc_table *opsets = dlc_new(im->arena, dlc_table);
    const char *place =
        dlc_arena_printf(im->arena, "%s: function '%s'", im->graph->file, proto->name);
    if (im_read_opsets(im, proto->opset_import, proto->n_opset_import, opsets, place) != DLC_OK)
        return NULL;
    return opsets;
}

int im_call(dlc_import *im, Onnx__FunctionProto *proto)
{
    if (im->nin > proto->n_input)
        im_fail(im, DLC_INVALID, "has %" PRIu32 " inputs; function '%s' takes %zu", im->nin,
                proto->name, proto->n_input);
    dlc_body body = {.nodes = proto->node,
                     .nnodes = proto->n_node,
                     .scope = im_scope(im, NULL),
                     .opsets = function_opsets(im, proto),
                     .attributes = call_attributes(im, proto),
                     .prefix = dlc_arena_join(im->arena, im->origin->name, "/"),
                     .results = proto->output,
                     .nresults = proto->n_output,
                     .call = im->node,
                     .caller = 1};
    for (size_t i = 0; i < proto->n_input && im_ok(im); i++)
        (void)im_bind(im, body.scope, proto->input[i], im_in(im, (uint32_t)i));
    if (!im_ok(im))
        return 0;
    im_push(im, &body);
    return 1;
}

/* Control flow that is decided while importing: the branch of an If whose condition is known takes the node's place. */
#include "frontend/import_steps.h"

#include <inttypes.h>

static const Onnx__GraphProto *branch(dlc_import *im, const char *name)
{
    const Onnx__AttributeProto *attribute = im_attribute(im, name);
    if (!attribute || !attribute->g)
        im_fail(im, DLC_INVALID, "attribute '%s' with a graph is required", name);
    return attribute ? attribute->g : NULL;
}

static char **output_names(dlc_import *im, const Onnx__GraphProto *graph)
{
    char **names = dlc_new_array(im->arena, char *, graph->n_output + 1);
    for (size_t i = 0; i < graph->n_output; i++)
        names[i] = graph->output[i]->name ? graph->output[i]->name : "";
    return names;
}

/* A subgraph's body: it sees the names around it. */
static void push_subgraph(dlc_import *im, const Onnx__GraphProto *graph)
{
    const dlc_body *around = im_body(im);
    dlc_body body = *around;
    body.nodes = graph->node;
    body.nnodes = graph->n_node;
    body.next = 0;
    body.scope = im_scope(im, around->scope);
    body.prefix = dlc_arena_printf(im->arena, "%s/", im->origin->name);
    body.results = output_names(im, graph);
    body.nresults = graph->n_output;
    body.call = im->node;
    body.caller = 1;
    im_read_initializers(im, graph, body.scope);
    im_push(im, &body);
}

void import_if(dlc_import *im)
{
    double condition;
    const Onnx__GraphProto *yes = branch(im, "then_branch"), *no = branch(im, "else_branch");
    if (!yes || !no)
        return;
    if (!im_const_scalar(im, im_in(im, 0), &condition))
        im_fail(im, DLC_UNSUPPORTED, "its condition is only known at run time; a constant one is supported");
    else
        push_subgraph(im, condition != 0 ? yes : no);
}

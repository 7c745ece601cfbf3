/* The body of an If, Loop or Scan: a graph of the model that sees the names around it. */
#include "frontend/import_control.h"

#include <inttypes.h>

static char **output_names(dlc_import *im, const Onnx__GraphProto *graph)
{
    char **names = dlc_new_array(im->arena, char *, graph->n_output + 1);
    for (size_t i = 0; i < graph->n_output; i++)
        names[i] = graph->output[i]->name ? graph->output[i]->name : "";
    return names;
}

/* A subgraph's body: it sees the names around it. */
dlc_body im_subgraph_body(dlc_import *im, const Onnx__GraphProto *graph)
{
    const dlc_body *around = im_body(im);
    dlc_body body = *around;
    body.nodes = graph->node;
    body.nnodes = graph->n_node;
    body.next = 0;
    body.scope = im_scope(im, around->scope);
    body.prefix = dlc_arena_join(im->arena, im->origin->name, "/");
    body.results = output_names(im, graph);
    body.nresults = graph->n_output;
    body.call = im->node;
    body.caller = 1;
    body.repeat = NULL;
    body.then = NULL;
    return body;
}

/* An input without a name is one that no node of the body can take. */
static void bind_named(dlc_import *im, dlc_scope *scope, const char *name, dlc_value *value)
{
    if (name && *name)
        (void)im_bind(im, scope, name, value ? value : &im->poison);
}

/* NULL: the value's node failed. */
void im_bind_body_input(dlc_import *im, const dlc_repeat *r, dlc_scope *scope, uint32_t i, dlc_value *value)
{
    const Onnx__ValueInfoProto *info = r->graph->input[i];
    const char *name = info->name;
    int is_tensor = info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    int32_t declared = is_tensor ? info->type->tensor_type->elem_type : 0;
    if (declared && value && !im_list_of(im, value) && dlc_dtype_of_onnx(declared) != value->type.dtype)
        im_fail(im, DLC_INVALID, "input %" PRIu32 " '%s' of its body is declared as %s, and gets %s", i, name ? name : "",
                dlc_onnx_type_name(declared), dlc_dtypes[value->type.dtype].text);
    bind_named(im, scope, name, value);
}

dlc_value *im_scan_slice(dlc_import *im, const dlc_repeat *r, uint32_t i, dlc_expr at)
{
    dlc_value *x = r->scans[i];
    uint32_t axis = (uint32_t)r->input_axes[i];
    if (r->input_reversed && r->input_reversed[i])
        at = dlc_sub(im->pool, dlc_addi(im->pool, x->type.dims[axis], -1), at);
    return f_drop_axis(im, f_slice(im, x, axis, im_simple(im, at), im_i64(im, 1)), axis);
}

void im_push_graph(dlc_import *im, const Onnx__GraphProto *graph, dlc_value *const *inputs,
                   uint32_t n, void (*then)(dlc_import *im, void *state, dlc_value **values),
                   void *state)
{
    if (graph->n_input != n || graph->n_output < 1) {
        im_fail(im, DLC_INVALID, "its graph has %zu inputs and %zu outputs; %" PRIu32 " and 1 are wanted",
                graph->n_input, graph->n_output, n);
        return;
    }
    dlc_body body = im_subgraph_body(im, graph);
    body.then = then;
    body.state = state;
    for (uint32_t i = 0; i < n; i++)
        bind_named(im, body.scope, graph->input[i]->name, inputs[i]);
    im_read_initializers(im, graph, body.scope);
    im_push(im, &body);
}

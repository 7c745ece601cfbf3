/*
 * Control flow that is decided while importing: the branch of an If whose condition is known takes
 * the node's place, and a Loop or Scan whose number of iterations is known is unrolled, body by
 * body on import.c's stack.
 */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_ITERATIONS = 1024 };

static const Onnx__GraphProto *subgraph(dlc_import *im, const char *name)
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
static dlc_body subgraph_body(dlc_import *im, const Onnx__GraphProto *graph)
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
    body.repeat = NULL;
    body.then = NULL;
    return body;
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
    dlc_body body = subgraph_body(im, graph);
    body.then = then;
    body.state = state;
    for (uint32_t i = 0; i < n; i++)
        (void)im_bind(im, body.scope, graph->input[i]->name, inputs[i] ? inputs[i] : &im->poison);
    im_read_initializers(im, graph, body.scope);
    im_push(im, &body);
}

void import_if(dlc_import *im)
{
    double condition;
    const Onnx__GraphProto *yes = subgraph(im, "then_branch"), *no = subgraph(im, "else_branch");
    if (!yes || !no)
        return;
    if (!im_const_scalar(im, im_in(im, 0), &condition)) {
        im_fail(im, DLC_UNSUPPORTED,
                "its condition is only known at run time; a constant one is supported");
        return;
    }
    const Onnx__GraphProto *taken = condition != 0 ? yes : no;
    dlc_body body = subgraph_body(im, taken);
    im_read_initializers(im, taken, body.scope);
    im_push(im, &body);
}

/* --- loops --- */

struct dlc_repeat {
    const Onnx__GraphProto *graph;
    dlc_scope *outer;
    int64_t iteration, count;
    uint32_t nstates, nscans,
        nresults;     /* carried values; inputs sliced per iteration; results stacked at the end */
    uint32_t nbefore; /* inputs of the body before the states: a Loop's counter and condition */
    dlc_value **states, **scans;
    dlc_value **stacked;                     /* [nresults][count] */
    const int64_t *input_axes, *output_axes; /* NULL: 0 */
    const int64_t *input_reversed, *output_reversed;
};

/* NULL: the value's node failed. */
static void bind_input(dlc_import *im, const dlc_repeat *r, dlc_scope *scope, uint32_t i,
                       dlc_value *value)
{
    const char *name = r->graph->input[i]->name;
    (void)im_bind(im, scope, name ? name : "", value ? value : &im->poison);
}

/* Slice `iteration` of a scanned input, without its axis. */
static dlc_value *scan_slice(dlc_import *im, const dlc_repeat *r, uint32_t i)
{
    dlc_value *x = r->scans[i];
    uint32_t axis = (uint32_t)r->input_axes[i];
    int64_t at =
        r->input_reversed && r->input_reversed[i] ? r->count - 1 - r->iteration : r->iteration;
    return f_drop_axis(im, f_slice(im, x, axis, im_i64(im, at), im_i64(im, 1)), axis);
}

/* A fresh scope with this iteration's inputs. */
static void start_iteration(dlc_import *im, dlc_body *body)
{
    const dlc_repeat *r = body->repeat;
    uint32_t at = 0;
    body->next = 0;
    body->scope = im_scope(im, r->outer);
    body->prefix = dlc_arena_printf(im->arena, "%s/%" PRId64 "/", im->origin->name, r->iteration);
    if (r->nbefore) {
        const int64_t counter = r->iteration;
        dlc_value *number = dlc_graph_ints(im->graph, &counter, 1);
        bind_input(im, r, body->scope, at++, f_reshape(im, number, NULL, 0));
        bind_input(im, r, body->scope, at++, f_scalar(im, DLC_BOOL, 1));
    }
    for (uint32_t i = 0; i < r->nstates; i++)
        bind_input(im, r, body->scope, at++, r->states[i]);
    for (uint32_t i = 0; i < r->nscans; i++)
        bind_input(im, r, body->scope, at++, scan_slice(im, r, i));
    im_read_initializers(im, r->graph, body->scope);
}

static dlc_value *stack(dlc_import *im, const dlc_repeat *r, uint32_t i)
{
    dlc_value **parts = dlc_new_array(im->arena, dlc_value *, (size_t)r->iteration + 1);
    int64_t n = r->iteration + 1;
    for (int64_t k = 0; k < n; k++) {
        dlc_value *value = r->stacked[i * (uint64_t)r->count + (uint64_t)k];
        int axis =
            value ? im_axis(im, r->output_axes ? r->output_axes[i] : 0, im_rank(value) + 1) : -1;
        if (axis < 0)
            return NULL;
        parts[r->output_reversed && r->output_reversed[i] ? n - 1 - k : k] =
            f_insert_axis(im, value, (uint32_t)axis);
        if (k + 1 == n)
            return f_concat(im, parts, (uint32_t)n, (uint32_t)axis);
    }
    return NULL;
}

/* A Loop's condition after an iteration: 1 go on, 0 stop, -1 reported. */
static int loop_condition(dlc_import *im, const dlc_repeat *r, dlc_value *const *values)
{
    double goes_on = 1;
    if (!r->nbefore)
        return 1;
    if (values[0] && im_const_scalar(im, values[0], &goes_on))
        return goes_on != 0;
    if (values[0])
        im_fail(im, DLC_UNSUPPORTED,
                "its body's condition is only known at run time; constant ones are supported");
    return -1;
}

int im_repeat(dlc_import *im, dlc_body *body, dlc_value **values)
{
    dlc_repeat *r = body->repeat;
    uint32_t first = r->nbefore ? 1 : 0;
    int goes_on = loop_condition(im, r, values);
    for (uint32_t i = 0; i < r->nstates; i++)
        r->states[i] = values[first + i];
    for (uint32_t i = 0; i < r->nresults; i++)
        r->stacked[i * (uint64_t)r->count + (uint64_t)r->iteration] =
            values[first + r->nstates + i];
    if (goes_on > 0 && r->iteration + 1 < r->count) {
        r->iteration++;
        start_iteration(im, body);
        return 1;
    }
    for (uint32_t i = 0; goes_on >= 0 && i < im->nout; i++)
        im->out[i] = i < r->nstates ? r->states[i] : stack(im, r, i - r->nstates);
    return 0;
}

static void push_loop(dlc_import *im, dlc_repeat *r)
{
    uint32_t ninputs = r->nbefore + r->nstates + r->nscans,
             noutputs = (r->nbefore ? 1 : 0) + r->nstates + r->nresults;
    if (r->graph->n_input != ninputs || r->graph->n_output != noutputs ||
        im->nout > r->nstates + r->nresults) {
        im_fail(im, DLC_INVALID,
                "its body has %zu inputs and %zu outputs; %" PRIu32 " and %" PRIu32 " are wanted",
                r->graph->n_input, r->graph->n_output, ninputs, noutputs);
        return;
    }
    if (r->count < 1 || r->count > MAX_ITERATIONS) {
        im_fail(im, DLC_UNSUPPORTED, "%" PRId64 " iterations; 1 to %d are unrolled", r->count,
                MAX_ITERATIONS);
        return;
    }
    r->stacked = dlc_new_array(im->arena, dlc_value *, (size_t)r->nresults * (size_t)r->count + 1);
    dlc_body body = subgraph_body(im, r->graph);
    body.repeat = r;
    r->outer = im_body(im)->scope;
    start_iteration(im, &body);
    im_push(im, &body);
}

/* What a Loop's first inputs, either of which may be absent, say of the number of iterations; false
 * when reported. */
static int read_trips(dlc_import *im, int64_t *count)
{
    double condition = 1;
    uint32_t n = 1;
    const int64_t *trips = NULL;
    if (im_in(im, 1) && !im_const_scalar(im, im_in(im, 1), &condition))
        im_fail(im, DLC_UNSUPPORTED,
                "its condition is only known at run time; a constant one is supported");
    else if (!im_in(im, 0))
        im_fail(im, DLC_UNSUPPORTED, "its trip count is absent; a constant one is supported");
    else if ((trips = im_const_ints(im, im_in(im, 0), "its trip count", &n)) && n != 1)
        im_fail(im, DLC_INVALID, "its trip count has %" PRIu32 " elements; one is wanted", n);
    for (uint32_t i = 2; i < im->nin; i++) {
        if (!im->in[i])
            im_fail(im, DLC_INVALID, "input %" PRIu32 ", a state of the loop, is absent", i);
    }
    if (!im_ok(im))
        return 0;
    *count = condition != 0 && *trips > 0 ? *trips : 0;
    return 1;
}

/* Inputs: trip count, condition, states. Results: states, then what is stacked. */
void import_loop(dlc_import *im)
{
    const Onnx__GraphProto *graph = subgraph(im, "body");
    int64_t count;
    if (!graph || !read_trips(im, &count))
        return;
    dlc_repeat *r = dlc_new(im->arena, dlc_repeat);
    r->graph = graph;
    r->nbefore = 2;
    r->nstates = im->nin > 2 ? im->nin - 2 : 0;
    r->nresults = graph->n_output > r->nstates + 1 ? (uint32_t)graph->n_output - 1 - r->nstates : 0;
    r->count = count;
    r->states = dlc_new_array(im->arena, dlc_value *, r->nstates + 1);
    for (uint32_t i = 0; i < r->nstates; i++)
        r->states[i] = im->in[i + 2];
    if (r->count || r->nresults || im->nout > r->nstates) {
        push_loop(im, r);
        return;
    }
    for (uint32_t i = 0; i < im->nout; i++) /* no iteration: the states as they came */
        im->out[i] = r->states[i];
}

/* An attribute of n entries, or NULL for all zero; false when reported. */
static int scan_list(dlc_import *im, const char *name, uint32_t n, const int64_t **list)
{
    uint32_t found;
    *list = im_ints(im, name, &found);
    if (*list && found != n)
        im_fail(im, DLC_INVALID, "%s has %" PRIu32 " entries; %" PRIu32 " are wanted", name, found,
                n);
    return im_ok(im);
}

static int scan_axes(dlc_import *im, dlc_repeat *r, const int64_t *given)
{
    int64_t *axes = dlc_new_array(im->arena, int64_t, r->nscans + 1);
    for (uint32_t i = 0; i < r->nscans; i++) {
        int axis = im_axis(im, given ? given[i] : 0, im_rank(r->scans[i]));
        int64_t length;
        if (axis < 0)
            return 0;
        if (!im_is_const(im, r->scans[i]->type.dims[axis], &length))
            im_fail(im, DLC_UNSUPPORTED, "the length of scanned input %" PRIu32 " must be known",
                    i);
        else if (i && length != r->count)
            im_fail(im, DLC_INVALID, "scanned inputs have %" PRId64 " and %" PRId64 " elements",
                    r->count, length);
        axes[i] = axis;
        r->count = length;
    }
    r->input_axes = axes;
    return im_ok(im);
}

void import_scan(dlc_import *im)
{
    const Onnx__GraphProto *graph = subgraph(im, "body");
    int64_t nscans = im_int(im, "num_scan_inputs", 0);
    const int64_t *axes;
    if (!graph || nscans < 1 || nscans > (int64_t)im->nin) {
        if (graph)
            im_fail(im, DLC_INVALID, "num_scan_inputs is %" PRId64 " of %" PRIu32 " inputs", nscans,
                    im->nin);
        return;
    }
    dlc_repeat *r = dlc_new(im->arena, dlc_repeat);
    r->graph = graph;
    r->nscans = (uint32_t)nscans;
    r->nstates = im->nin - r->nscans;
    r->nresults = graph->n_output > r->nstates ? (uint32_t)graph->n_output - r->nstates : 0;
    r->states = dlc_new_array(im->arena, dlc_value *, r->nstates + 1);
    memcpy(r->states, im->in, r->nstates * sizeof *r->states);
    r->scans = im->in + r->nstates;
    if (!scan_list(im, "scan_input_axes", r->nscans, &axes) || !scan_axes(im, r, axes) ||
        !scan_list(im, "scan_input_directions", r->nscans, &r->input_reversed) ||
        !scan_list(im, "scan_output_axes", r->nresults, &r->output_axes) ||
        !scan_list(im, "scan_output_directions", r->nresults, &r->output_reversed))
        return;
    push_loop(im, r);
}

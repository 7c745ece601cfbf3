/*
 * Control flow. What is decided while importing leaves no trace: the branch of an If whose condition is known takes the node's place,
 * and a Loop or Scan of few iterations is unrolled. The rest become regions of the graph.
 */
#include "frontend/import_control.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_UNROLLED = 16 };

static const Onnx__GraphProto *subgraph(dlc_import *im, const char *name)
{
    const Onnx__AttributeProto *attribute = im_attribute(im, name);
    if (!attribute || !attribute->g)
        im_fail(im, DLC_INVALID, "attribute '%s' with a graph is required", name);
    return attribute ? attribute->g : NULL;
}

/* The one node that a branch computes with, constants aside; NULL: there are more, or none. */
static const Onnx__NodeProto *only_node(const Onnx__GraphProto *graph)
{
    const Onnx__NodeProto *found = NULL;
    for (size_t i = 0; i < graph->n_node; i++) {
        if (!strcmp(graph->node[i]->op_type, "Constant"))
            continue;
        if (found)
            return NULL;
        found = graph->node[i];
    }
    return found;
}

/* What exporters write for the removal of a dimension that they do not know: where it is 1 it goes, else all stays. */
static int is_squeeze(const Onnx__GraphProto *yes, const Onnx__GraphProto *no)
{
    const Onnx__NodeProto *squeeze = only_node(yes), *same = only_node(no);
    return squeeze && same && yes->n_output == 1 && !strcmp(squeeze->op_type, "Squeeze") &&
           !strcmp(same->op_type, "Identity") && squeeze->n_input && same->n_input && !strcmp(squeeze->input[0], same->input[0]);
}

static void import_branch(dlc_import *im, const Onnx__GraphProto *taken)
{
    dlc_body body = im_subgraph_body(im, taken);
    im_read_initializers(im, taken, body.scope);
    im_push(im, &body);
}

/* The number of dimensions is known at compile time, so the dimension is taken to be 1; the run checks it. */
static void import_squeeze_branch(dlc_import *im, const Onnx__GraphProto *yes)
{
    dlc_expr holds = im_condition(im, im_in(im, 0));
    if (!holds)
        return;
    dlc_graph_require(im->graph, holds,
                      "%s: node '%s': the dimension that it removes where it is 1 is taken to be 1; --shape fixes it",
                      im->graph->file, im->origin->name);
    import_branch(im, yes);
}

/* The condition is not known: both branches are imported. */
static void import_both(dlc_import *im, const Onnx__GraphProto *yes, const Onnx__GraphProto *no)
{
    dlc_repeat *r = dlc_new(im->arena, dlc_repeat);
    dlc_expr holds = im_condition(im, im_in(im, 0));
    if (yes->n_output < im->nout || no->n_output < im->nout)
        im_fail(im, DLC_INVALID, "has %" PRIu32 " outputs where its branches have %zu and %zu", im->nout, yes->n_output, no->n_output);
    if (!im_ok(im))
        return;
    r->graph = yes;
    r->otherwise = no;
    r->outer = im_body(im)->scope;
    im_branches_begin(im, r, holds);
}

/* A condition's type, told when it is another one. */
static int is_bool(dlc_import *im, const dlc_value *condition)
{
    if (!condition || condition->type.dtype == DLC_BOOL)
        return 1;
    im_fail(im, DLC_INVALID, "its condition is %s; bool is wanted", dlc_dtypes[condition->type.dtype].text);
    return 0;
}

void import_if(dlc_import *im)
{
    double condition;
    const Onnx__GraphProto *yes = subgraph(im, "then_branch"), *no = subgraph(im, "else_branch");
    if (!yes || !no)
        return;
    if (yes->n_output != no->n_output) {
        im_fail(im, DLC_INVALID, "its branches have %zu and %zu outputs; they must have as many", yes->n_output,
                no->n_output);
        return;
    }
    if (!is_bool(im, im_in(im, 0)))
        return;
    if (im_const_scalar(im, im_in(im, 0), &condition))
        import_branch(im, condition != 0 ? yes : no);
    else if (is_squeeze(yes, no))
        import_squeeze_branch(im, yes);
    else
        import_both(im, yes, no);
}

/* --- loops --- */

int im_repeat(dlc_import *im, dlc_body *body, dlc_value **values)
{
    dlc_repeat *r = body->repeat;
    if (r->kind == DLC_REPEAT_BRANCHES)
        return im_branches_next(im, body, values);
    void (*other)(dlc_import *, dlc_repeat *) = r->kind == DLC_REPEAT_LOOP ? im_unroll_begin : im_region_begin;
    int more = r->kind == DLC_REPEAT_LOOP ? im_region_next(im, body, values) : im_unroll_next(im, body, values);
    if (more >= 0)
        return more;
    im->bodies.n--; /* the body is imported anew */
    im_take_back(im, &r->start);
    other(im, r);
    return 1;
}

/* A sequence or an optional is carried from iteration to iteration. */
static int has_list(const dlc_import *im, const dlc_repeat *r)
{
    for (uint32_t i = 0; i < r->nstates; i++) {
        if (im_list_of(im, r->initial[i]))
            return 1;
    }
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
    if (r->nbefore && (r->count < 0 || r->count > DLC_MOST_ITERATIONS))
        im_grow_states(im, r);
    r->outer = im_body(im)->scope;
    r->states = dlc_new_array(im->arena, dlc_value *, r->nstates + 1);
    r->start = im_here(im);
    int is_list = has_list(im, r);
    if (is_list && (r->count < 1 || r->count > DLC_MOST_ITERATIONS))
        im_fail(im, DLC_UNSUPPORTED, "a sequence or an optional goes through a loop whose number of iterations only the run knows");
    else if (r->count > 0 && (is_list || r->count <= MOST_UNROLLED))
        im_unroll_begin(im, r);
    else
        im_region_begin(im, r);
}

/* How often: an expression, or 0 without a limit; false when reported. */
static int read_trips(dlc_import *im, dlc_repeat *r)
{
    uint32_t n = 1;
    const dlc_expr *trips = NULL;
    int64_t known;
    if (!im_in(im, 0))
        return 1;
    trips = im_elements(im, im_in(im, 0), INT64_MIN, INT64_MAX, &n);
    if (trips && n != 1)
        im_fail(im, DLC_INVALID, "its trip count has %" PRIu32 " elements; one is wanted", n);
    if (!im_ok(im))
        return 0;
    int is_known = im_is_const(im, im_simple(im, trips[0]), &known);
    if (is_known && known > INT32_MAX)
        return 1; /* as good as no limit */
    r->most = is_known ? im_i64(im, known > 0 ? known : 0) : im_simple(im, dlc_max(im->pool, trips[0], im_i64(im, 0)));
    return 1;
}

/* What a Loop's first inputs, either of which may be absent, say of the number of iterations; false
 * when reported. */
static int read_limits(dlc_import *im, dlc_repeat *r)
{
    double condition = 1;
    r->condition = im_in(im, 1);
    if (!is_bool(im, r->condition))
        return 0;
    if (r->condition && !im_const_scalar(im, r->condition, &condition))
        r->enters = im_condition(im, r->condition);
    for (uint32_t i = 2; i < im->nin; i++) {
        if (!im->in[i])
            im_fail(im, DLC_INVALID, "input %" PRIu32 ", a state of the loop, is absent", i);
    }
    if (!im_ok(im) || !read_trips(im, r))
        return 0;
    if (!r->most)
        r->most = im_trips_of_condition(im, r);
    if (condition == 0)
        r->most = im_i64(im, 0);
    if (r->most && r->enters)
        r->most = dlc_select(im->pool, r->enters, r->most, im_i64(im, 0));
    if (!r->most || !im_is_const(im, r->most, &r->count))
        r->count = -1;
    return 1;
}

/* Inputs: trip count, condition, states. Results: states, then what is stacked. */
void import_loop(dlc_import *im)
{
    const Onnx__GraphProto *graph = subgraph(im, "body");
    dlc_repeat *r = dlc_new(im->arena, dlc_repeat);
    if (!graph)
        return;
    r->graph = graph;
    r->nbefore = 2;
    r->nstates = im->nin > 2 ? im->nin - 2 : 0;
    r->nresults = graph->n_output > r->nstates + 1 ? (uint32_t)graph->n_output - 1 - r->nstates : 0;
    r->initial = im->in + 2;
    if (!read_limits(im, r))
        return;
    if (r->count || r->nresults || im->nout > r->nstates) {
        push_loop(im, r);
        return;
    }
    for (uint32_t i = 0; i < im->nout; i++) /* no iteration: the states as they came */
        im->out[i] = r->initial[i];
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

/* Directions of n inputs or results, or NULL for all forward: 0 and 1 (reversed). */
static int scan_directions(dlc_import *im, const char *name, uint32_t n, const int64_t **list)
{
    if (!scan_list(im, name, n, list))
        return 0;
    for (uint32_t i = 0; *list && i < n; i++)
        if ((*list)[i] != 0 && (*list)[i] != 1)
            im_fail(im, DLC_INVALID, "%s[%" PRIu32 "] is %" PRId64 "; 0 (forward) or 1 (reverse) is possible", name, i, (*list)[i]);
    return im_ok(im);
}

static int scan_axes(dlc_import *im, dlc_repeat *r, const int64_t *given)
{
    int64_t *axes = dlc_new_array(im->arena, int64_t, r->nscans + 1);
    for (uint32_t i = 0; i < r->nscans; i++) {
        int axis = im_axis(im, given ? given[i] : 0, im_rank(r->scans[i]));
        dlc_expr length;
        if (axis < 0)
            return 0;
        length = r->scans[i]->type.dims[axis];
        if (i && !im_same_dim(im, r->most, length, "lengths of scanned inputs"))
            return 0;
        axes[i] = axis;
        if (!i)
            r->most = length;
    }
    r->input_axes = axes;
    if (!im_is_const(im, r->most, &r->count))
        r->count = -1;
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
    r->initial = im->in;
    r->scans = im->in + r->nstates;
    if (!scan_list(im, "scan_input_axes", r->nscans, &axes) || !scan_axes(im, r, axes) ||
        !scan_directions(im, "scan_input_directions", r->nscans, &r->input_reversed) ||
        !scan_list(im, "scan_output_axes", r->nresults, &r->output_axes) ||
        !scan_directions(im, "scan_output_directions", r->nresults, &r->output_reversed))
        return;
    push_loop(im, r);
}

/* --- Scan of opset 8: a batch of scans --- */

static const char of_a_batch[] = "of a batch"; /* what marks the scan of one of them */

static Onnx__ValueInfoProto **names(dlc_import *im, const char *kind, size_t n, char **texts)
{
    Onnx__ValueInfoProto **infos = dlc_new_array(im->arena, Onnx__ValueInfoProto *, n + 1);
    for (size_t i = 0; i < n; i++) {
        infos[i] = dlc_new(im->arena, Onnx__ValueInfoProto);
        onnx__value_info_proto__init(infos[i]);
        infos[i]->name = texts[i] = dlc_arena_printf(im->arena, "%s %zu", kind, i);
    }
    return infos;
}

/* A graph that holds one scan: with states and sequences of one of the batch. */
static Onnx__GraphProto *scan_of_one(dlc_import *im)
{
    Onnx__GraphProto *graph = dlc_new(im->arena, Onnx__GraphProto);
    Onnx__NodeProto *node = dlc_new(im->arena, Onnx__NodeProto), **nodes = dlc_new_array(im->arena, Onnx__NodeProto *, 1);
    size_t nin = im->nin - 1, nout = im->node->n_output;
    onnx__graph_proto__init(graph);
    onnx__node_proto__init(node);
    *nodes = node;
    *node = (Onnx__NodeProto){.base = node->base,
                              .op_type = im->node->op_type,
                              .n_input = nin,
                              .input = dlc_new_array(im->arena, char *, nin + 1),
                              .n_output = nout,
                              .output = dlc_new_array(im->arena, char *, nout + 1),
                              .n_attribute = im->node->n_attribute,
                              .attribute = im->node->attribute,
                              .doc_string = (char *)(uintptr_t)of_a_batch};
    graph->n_node = 1;
    graph->node = nodes;
    graph->n_input = nin;
    graph->input = names(im, "of one in", nin, node->input);
    graph->n_output = nout;
    graph->output = names(im, "of one out", nout, node->output);
    return graph;
}

/* The scan of one, or of all by a scan over the batch: states and sequences are scanned, results stacked. */
void import_scan_8(dlc_import *im)
{
    const Onnx__GraphProto *graph = subgraph(im, "body");
    if (!graph)
        return;
    if (im->node->doc_string == of_a_batch) {
        im_rename(im, "directions", "scan_input_directions");
        import_scan(im);
        return;
    }
    (void)im_attribute(im, "directions");
    (void)im_int(im, "num_scan_inputs", 0);
    if (im->nin < 2)
        im_fail(im, DLC_INVALID, "has nothing to scan");
    if (im_in(im, 0))
        im_fail(im, DLC_UNSUPPORTED, "lengths of its sequences (input 0)");
    for (uint32_t i = 1; i < im->nin; i++)
        if (!im->in[i] || !im_rank(im->in[i]))
            im_fail(im, DLC_INVALID, "input %" PRIu32 " is absent or has no batch", i);
    if (!im_ok(im))
        return;
    dlc_repeat *r = dlc_new(im->arena, dlc_repeat);
    r->graph = scan_of_one(im);
    r->nscans = im->nin - 1;
    r->nresults = (uint32_t)im->node->n_output;
    r->initial = r->scans = im->in + 1;
    if (scan_axes(im, r, NULL))
        push_loop(im, r);
}

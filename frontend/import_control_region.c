/*
 * If, Loop and Scan as regions of the graph: what only the run knows. The body is imported once; its nodes stand between the marks.
 * A Loop's condition is a state of the loop, unless the body never changes it. Results of each iteration are stacked into memory for
 * as many iterations as there can be, of which those that were are taken.
 */
#include "frontend/import_control.h"

#include <inttypes.h>

/* --- if --- */

void im_branches_begin(dlc_import *im, dlc_repeat *r, dlc_expr holds)
{
    dlc_body body = im_subgraph_body(im, r->graph);
    r->kind = DLC_REPEAT_BRANCHES;
    if (!im_if_begin(im, &r->branches, holds))
        return;
    body.repeat = r;
    im_read_initializers(im, r->graph, body.scope);
    im_push(im, &body);
}

static int start_otherwise(dlc_import *im, dlc_body *body, dlc_value **values)
{
    dlc_repeat *r = body->repeat;
    const Onnx__GraphProto *graph = r->otherwise;
    r->given = values;
    r->otherwise = NULL;
    if (!im_if_else(im, &r->branches))
        return 0;
    body->nodes = graph->node;
    body->nnodes = graph->n_node;
    body->next = 0;
    body->scope = im_scope(im, r->outer);
    body->results = dlc_new_array(im->arena, char *, graph->n_output + 1);
    for (size_t i = 0; i < graph->n_output; i++)
        body->results[i] = graph->output[i]->name ? graph->output[i]->name : "";
    body->nresults = graph->n_output;
    im_read_initializers(im, graph, body->scope);
    return 1;
}

/* Of lists, which must be of one length in both branches, item by item. */
static dlc_value *either(dlc_import *im, im_if *branches, dlc_value *yes, dlc_value *no)
{
    const im_list *a = im_list_of(im, yes), *b = im_list_of(im, no);
    if (!a && !b)
        return f_either(im, branches, yes, no);
    if (!a || !b || a->rows || b->rows || a->n != b->n || a->is_optional != b->is_optional) {
        im_fail(im, DLC_UNSUPPORTED, "its branches' sequences or optionals differ in length");
        return NULL;
    }
    dlc_value **items = dlc_new_array(im->arena, dlc_value *, a->n + 1);
    for (uint32_t i = 0; i < a->n; i++) {
        const im_list *inner = im_list_of(im, a->items[i]), *other = im_list_of(im, b->items[i]);
        if (inner && other && inner->n == other->n) { /* an optional's sequence */
            dlc_value **parts = dlc_new_array(im->arena, dlc_value *, inner->n + 1);
            for (uint32_t k = 0; k < inner->n; k++)
                parts[k] = f_either(im, branches, inner->items[k], other->items[k]);
            items[i] = im_list_value(im, parts, inner->n, 0);
        } else {
            items[i] = f_either(im, branches, a->items[i], b->items[i]);
        }
    }
    return im_list_value(im, items, a->n, a->is_optional);
}

int im_branches_next(dlc_import *im, dlc_body *body, dlc_value **values)
{
    dlc_repeat *r = body->repeat;
    if (r->otherwise)
        return start_otherwise(im, body, values);
    if (!im_if_end(im, &r->branches))
        return 0;
    for (uint32_t i = 0; i < im->nout; i++)
        if (im_wants(im, i))
            im->out[i] = either(im, &r->branches, r->given[i], values[i]);
    return 0;
}

/* --- loops --- */

static dlc_value *as_scalar(dlc_import *im, dlc_value *value)
{
    return value && im_rank(value) ? f_reshape(im, value, NULL, 0) : value;
}

void im_region_begin(dlc_import *im, dlc_repeat *r)
{
    dlc_body body = im_subgraph_body(im, r->graph);
    uint32_t at = 0;
    dlc_value *condition = !r->nbefore     ? NULL
                           : r->condition ? as_scalar(im, r->condition)
                                          : f_scalar(im, DLC_BOOL, 1);
    r->kind = DLC_REPEAT_LOOP;
    body.repeat = r;
    if (!im_loop_begin(im, &r->loop, r->most, r->enters))
        return;
    if (condition)
        r->goes_on = f_state(im, &r->loop, condition);
    for (uint32_t i = 0; i < r->nstates; i++)
        r->states[i] = f_state(im, &r->loop, r->initial[i]);
    if (r->nbefore) {
        im_bind_body_input(im, r, body.scope, at++, f_dim(im, DLC_I64, r->loop.at));
        im_bind_body_input(im, r, body.scope, at++, r->goes_on);
    }
    for (uint32_t i = 0; i < r->nstates; i++)
        im_bind_body_input(im, r, body.scope, at++, r->states[i]);
    for (uint32_t i = 0; i < r->nscans; i++)
        im_bind_body_input(im, r, body.scope, at++, im_scan_slice(im, r, i, r->loop.at));
    im_read_initializers(im, r->graph, body.scope);
    im_push(im, &body);
}

/* What the body says of its condition; *stops: the loop may end before its count. */
static void read_condition(dlc_import *im, dlc_repeat *r, dlc_value *next, int *stops)
{
    double goes_on;
    *stops = 0;
    if (!next || next == r->goes_on || (next->def && next->def->op == DLC_OP_RESHAPE && next->def->inputs[0] == r->goes_on))
        return;
    if (im_const_scalar(im, next, &goes_on)) {
        if (goes_on == 0)
            im_loop_while(im, &r->loop, dlc_lt(im->pool, r->loop.at, im_i64(im, 1)));
        *stops = goes_on == 0;
        return;
    }
    dlc_expr holds = im_condition(im, r->goes_on);
    if (holds)
        im_loop_while(im, &r->loop, holds);
    *stops = 1;
}

/* False: the state changes its shape from iteration to iteration, as far as is known now. */
static int keeps_type(dlc_import *im, const dlc_value *state, const dlc_value *next)
{
    dlc_ranges ranges = dlc_graph_ranges(im->graph);
    int is_same = state->type.dtype == next->type.dtype && state->type.rank == next->type.rank;
    for (uint8_t d = 0; is_same && d < state->type.rank; d++) {
        dlc_interval apart = dlc_expr_range(im->pool, dlc_sub(im->pool, state->type.dims[d], next->type.dims[d]), &ranges);
        is_same = apart.lo <= 0 && apart.hi >= 0;
    }
    return is_same;
}

static void refuse_state(dlc_import *im, uint32_t i, const dlc_value *state, const dlc_value *next)
{
    dlc_str before = {0}, behind = {0};
    dlc_type_print(im->graph, &state->type, &before);
    dlc_type_print(im->graph, &next->type, &behind);
    im_fail(im, DLC_UNSUPPORTED,
            "state %" PRIu32 " is %s before an iteration and %s behind it; where only the run knows how many iterations there are, "
            "or more than %d, states that keep their type are supported",
            i, dlc_str_text(&before), dlc_str_text(&behind), DLC_MOST_ITERATIONS);
    dlc_str_deinit(&before);
    dlc_str_deinit(&behind);
}

/* 1: all do; 0: reported; -1: the loop is to be unrolled. */
static int check_states(dlc_import *im, const dlc_repeat *r, dlc_value *const *next)
{
    for (uint32_t i = 0; i < r->nstates; i++) {
        if (!next[i] || !r->states[i])
            return 0;
        if (keeps_type(im, r->states[i], next[i]))
            continue;
        if (r->count > 0 && r->count <= DLC_MOST_ITERATIONS)
            return -1;
        refuse_state(im, i, r->states[i], next[i]);
        return 0;
    }
    return 1;
}

/* Where the axis of iterations comes in the result; -1: reported. */
static int stacking_axis(dlc_import *im, const dlc_repeat *r, uint32_t i, const dlc_value *value)
{
    if (!r->most) {
        im_fail(im, DLC_UNSUPPORTED, "it has no trip count, and results of each iteration; a limit for their number is wanted");
        return -1;
    }
    return im_listed_axis(im, "scan_output_axes", r->output_axes, i, im_rank(value) + 1);
}

/* Results of one output: stacked along a first axis, of which `n` are there, 0: all; then put where the node wants them. */
static dlc_value *stacked(dlc_import *im, const dlc_repeat *r, uint32_t i, dlc_value *value, const dlc_type *type, dlc_expr n)
{
    uint8_t perm[DLC_MAX_RANK];
    int axis = stacking_axis(im, r, i, value);
    int is_reverse = r->output_reversed && r->output_reversed[i];
    dlc_value *all = axis < 0 ? NULL : f_stack(im, &r->loop, value, type, is_reverse && !n);
    if (all && n)
        all = f_slice(im, all, 0, im_i64(im, 0), n);
    if (all && n && is_reverse)
        all = f_reverse(im, all, 0);
    for (uint32_t d = 0; all && d < im_rank(all) && d < DLC_MAX_RANK; d++)
        perm[d] = (uint8_t)(d < (uint32_t)axis ? d + 1 : d == (uint32_t)axis ? 0 : d);
    return all && axis ? f_transpose(im, all, perm) : all;
}

/* The loop's end: the types of what leaves it, while its sizes are still to be seen; and a count of iterations, if it is not
 * known before. */
typedef struct {
    dlc_type *rows;
    dlc_value *count, *counted; /* a state, and its next */
} loop_end;

static int end_loop(dlc_import *im, dlc_repeat *r, dlc_value *const *results, int stops, loop_end *end)
{
    end->rows = dlc_new_array(im->arena, dlc_type, r->nresults + 1);
    for (uint32_t i = 0; i < r->nresults && r->most; i++)
        if (im_wants(im, im_output_of(r, r->nstates + i)) && (!results[i] || !im_loop_row(im, &r->loop, results[i], r->most, &end->rows[i])))
            return 0;
    if (stops && r->nresults) {
        end->count = f_state(im, &r->loop, f_scalar(im, DLC_I64, 0));
        end->counted = f_dim(im, DLC_I64, dlc_addi(im->pool, r->loop.at, 1));
    }
    return im_ok(im) && im_loop_end(im, &r->loop);
}

/* How many iterations there were, where that is not their most. */
static dlc_expr final_count(dlc_import *im, const dlc_repeat *r, const loop_end *end)
{
    uint32_t n;
    dlc_value *count = end->count ? f_final(im, &r->loop, end->count, end->counted) : NULL;
    const dlc_expr *elements = count ? im_elements(im, count, 0, INT32_MAX, &n) : NULL;
    return elements ? elements[0] : 0;
}

int im_region_next(dlc_import *im, dlc_body *body, dlc_value **values)
{
    dlc_repeat *r = body->repeat;
    uint32_t first = r->nbefore ? 1 : 0;
    loop_end end = {0};
    int stops, can = check_states(im, r, values + first);
    if (can <= 0)
        return can;
    dlc_value *goes_on = first ? as_scalar(im, values[0]) : NULL, **results = values + first + r->nstates;
    read_condition(im, r, goes_on, &stops);
    if (!im_ok(im) || !end_loop(im, r, results, stops, &end))
        return 0;
    if (goes_on)
        f_final(im, &r->loop, r->goes_on, goes_on);
    for (uint32_t i = 0; i < r->nstates; i++) {
        dlc_value *last = f_final(im, &r->loop, r->states[i], values[first + i]);
        if (im_output_of(r, i) < im->nout)
            im->out[im_output_of(r, i)] = last;
    }
    dlc_expr n = final_count(im, r, &end);
    for (uint32_t i = 0; i < r->nresults; i++) {
        uint32_t out = im_output_of(r, r->nstates + i);
        if (!im_wants(im, out) || !results[i])
            continue;
        im->out[out] = stacked(im, r, i, results[i], &end.rows[i], n);
        if (r->grown && r->grown[i].initial)
            im->out[out] = im_grown_state(im, &r->grown[i], im->out[out]);
    }
    return 0;
}

/* Loops of few iterations, whose number is known: one behind the other, body by body on import.c's stack. */
#include "frontend/import_control.h"

#include <inttypes.h>

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
        im_bind_body_input(im, r, body->scope, at++, f_reshape(im, number, NULL, 0));
        im_bind_body_input(im, r, body->scope, at++, f_scalar(im, DLC_BOOL, 1));
    }
    for (uint32_t i = 0; i < r->nstates; i++)
        im_bind_body_input(im, r, body->scope, at++, r->states[i]);
    for (uint32_t i = 0; i < r->nscans; i++)
        im_bind_body_input(im, r, body->scope, at++, im_scan_slice(im, r, i, im_i64(im, r->iteration)));
    im_read_initializers(im, r->graph, body->scope);
}

static dlc_value *stack(dlc_import *im, const dlc_repeat *r, uint32_t i)
{
    dlc_value **parts = dlc_new_array(im->arena, dlc_value *, (size_t)r->iteration + 1);
    int64_t n = r->iteration + 1;
    for (int64_t k = 0; k < n; k++) {
        dlc_value *value = r->stacked[i * (uint64_t)r->count + (uint64_t)k];
        int axis = value ? im_listed_axis(im, "scan_output_axes", r->output_axes, i, im_rank(value) + 1) : -1;
        if (axis < 0)
            return NULL;
        parts[r->output_reversed && r->output_reversed[i] ? n - 1 - k : k] =
            f_insert_axis(im, value, (uint32_t)axis);
        if (k + 1 == n)
            return f_concat(im, parts, (uint32_t)n, (uint32_t)axis);
    }
    return NULL;
}

/* A Loop's condition after an iteration: 1 go on, 0 stop, -1 only the run knows. */
static int loop_condition(dlc_import *im, const dlc_repeat *r, dlc_value *const *values)
{
    double goes_on = 1;
    if (!r->nbefore || !values[0])
        return 1;
    return im_const_scalar(im, values[0], &goes_on) ? goes_on != 0 : -1;
}

static void set_up(dlc_import *im, dlc_repeat *r)
{
    r->kind = DLC_REPEAT_UNROLLED;
    r->iteration = 0;
    for (uint32_t i = 0; i < r->nstates; i++)
        r->states[i] = r->initial[i];
    r->stacked = dlc_new_array(im->arena, dlc_value *, (size_t)r->nresults * (size_t)r->count + 1);
}

void im_unroll_begin(dlc_import *im, dlc_repeat *r)
{
    dlc_body body = im_subgraph_body(im, r->graph);
    set_up(im, r);
    body.repeat = r;
    start_iteration(im, &body);
    im_push(im, &body);
}

int im_unroll_next(dlc_import *im, dlc_body *body, dlc_value **values)
{
    dlc_repeat *r = body->repeat;
    uint32_t first = r->nbefore ? 1 : 0;
    int goes_on = loop_condition(im, r, values);
    if (goes_on < 0)
        return -1;
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

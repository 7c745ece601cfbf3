/* Between the files that import If, Loop and Scan: import_control.c reads the nodes, import_body.c their bodies, import_unroll.c writes iterations one behind
 * the other, import_control_region.c makes regions that the run goes through. */
#ifndef DLC_FRONTEND_IMPORT_CONTROL_H
#define DLC_FRONTEND_IMPORT_CONTROL_H

#include "frontend/import_steps.h"
#include "frontend/regions.h"

/* What becomes of a body when it was imported once. */
typedef enum { DLC_REPEAT_UNROLLED, DLC_REPEAT_LOOP, DLC_REPEAT_BRANCHES } dlc_repeat_kind;

/* A result that a state grew by (import_grow.c), which it joins along the axis. */
typedef struct {
    dlc_value *initial; /* NULL: it is a result like others */
    int64_t axis;
    uint8_t is_list;
} im_grown;

/* A loop, or an if whose condition only the run knows, while its bodies are imported. */
struct dlc_repeat {
    uint8_t kind; /* dlc_repeat_kind */
    const Onnx__GraphProto *graph; /* of the loop's body, or the branch at work */
    dlc_scope *outer;
    uint32_t nstates, nscans, nresults; /* carried values; inputs sliced per iteration; results stacked at the end */
    uint32_t nbefore; /* inputs of the body before the states: a Loop's counter and condition */
    dlc_value **initial, **states, **scans;
    const int64_t *input_axes, *output_axes; /* NULL: 0 */
    const int64_t *input_reversed, *output_reversed;
    im_place start;
    uint32_t *outputs; /* of the node: for each state, then each result; NULL: as they come */
    im_grown *grown;   /* [nresults], or NULL */

    /* unrolled, or with so many iterations at most that it could be */
    int64_t iteration, count; /* count < 0: only the run knows */
    dlc_value **stacked;      /* [nresults][count] */

    /* a region */
    dlc_expr most, enters; /* how often; whether at all; 0: no limit, yes */
    dlc_value *condition, *goes_on; /* of a Loop, before it; as a state */
    im_loop loop;
    im_if branches;
    const Onnx__GraphProto *otherwise; /* the branch to come; NULL: it was */
    dlc_value **given;                 /* results of the first */
};

enum { DLC_MOST_ITERATIONS = 1024 }; /* that are unrolled where a region cannot do it */

/* import_body.c: a body that sees the names around it; the body's inputs in a fresh scope */
dlc_body im_subgraph_body(dlc_import *im, const Onnx__GraphProto *graph);
void im_bind_body_input(dlc_import *im, const dlc_repeat *r, dlc_scope *scope, uint32_t i, dlc_value *value);
/* Slice `at` of scanned input i, without its axis. */
dlc_value *im_scan_slice(dlc_import *im, const dlc_repeat *r, uint32_t i, dlc_expr at);

/* import_grow.c: the body without the states that only grow, which are results then; and such a state at the loop's end. */
void im_grow_states(dlc_import *im, dlc_repeat *r);
dlc_value *im_grown_state(dlc_import *im, const im_grown *grown, dlc_value *rows);
static inline uint32_t im_output_of(const dlc_repeat *r, uint32_t i)
{
    return r->outputs ? r->outputs[i] : i;
}

/* import_trips.c: the most iterations of a Loop that stacks results and has no trip count, from its condition; 0: none is found. */
dlc_expr im_trips_of_condition(dlc_import *im, const dlc_repeat *r);

/* import_unroll.c, import_control_region.c: set the body up, and go on when it was imported, as im_repeat does; -1: it has to be the other
 * way, only the run knows when the loop ends, or a state changes its shape. */
void im_unroll_begin(dlc_import *im, dlc_repeat *r);
int im_unroll_next(dlc_import *im, dlc_body *body, dlc_value **values);
void im_region_begin(dlc_import *im, dlc_repeat *r);
int im_region_next(dlc_import *im, dlc_body *body, dlc_value **values);
void im_branches_begin(dlc_import *im, dlc_repeat *r, dlc_expr holds);
int im_branches_next(dlc_import *im, dlc_body *body, dlc_value **values);

#endif

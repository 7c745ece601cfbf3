/* Regions of the graph as importers build them (regions.c). Each returns NULL or false after a refusal. */
#ifndef DLC_FRONTEND_REGIONS_H
#define DLC_FRONTEND_REGIONS_H

#include "frontend/import.h"
#include "ir/graph/region.h"

/* One bool as an expression: what is known of it, else a symbol that the run reads. 0: reported. */
dlc_expr im_condition(dlc_import *im, dlc_value *value);

/* if … else … end, then what either branch gives. */
typedef struct {
    dlc_value *token;
} im_if;
int im_if_begin(dlc_import *im, im_if *branches, dlc_expr holds);
int im_if_else(dlc_import *im, im_if *branches);
int im_if_end(dlc_import *im, im_if *branches);
dlc_value *f_either(dlc_import *im, const im_if *branches, dlc_value *yes, dlc_value *no);

/* begin, states, … end, then the last states and what was stacked. */
typedef struct {
    dlc_value *token, *done;
    dlc_expr at; /* the iteration, in the loop */
} im_loop;
/* most, enters (a bool): how often, and whether at all; 0: as long as im_loop_while says, yes. */
int im_loop_begin(dlc_import *im, im_loop *loop, dlc_expr most, dlc_expr enters);
void im_loop_while(dlc_import *im, im_loop *loop, dlc_expr holds); /* what else must hold */
int im_loop_end(dlc_import *im, im_loop *loop);
dlc_value *f_state(dlc_import *im, const im_loop *loop, dlc_value *initial);
dlc_value *f_final(dlc_import *im, const im_loop *loop, dlc_value *state, dlc_value *next);
/* In the loop: the type of what f_stack will make of the value. */
int im_loop_row(dlc_import *im, const im_loop *loop, const dlc_value *value, dlc_expr most, dlc_type *type);
/* value of each iteration, along a new first axis of `most`; what no iteration wrote is undefined. is_reverse: the last first. */
dlc_value *f_stack(dlc_import *im, const im_loop *loop, dlc_value *value, const dlc_type *type, int is_reverse);

/* Where the graph ends now; and everything behind such a place is undone, constants aside. */
typedef struct {
    dlc_node *last;
    uint32_t nsymbols, nconditions, nequalities;
} im_place;
im_place im_here(const dlc_import *im);
void im_take_back(dlc_import *im, const im_place *to);

#endif

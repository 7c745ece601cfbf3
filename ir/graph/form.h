/*
 * What a node is, read off its kernel: never off its name or the rule for its result's type. A pass that rests on these stays
 * right whatever a row of ops.def says, since what it rests on is what will run.
 */
#ifndef DLC_IR_GRAPH_FORM_H
#define DLC_IR_GRAPH_FORM_H

#include "ir/graph/op.h"

typedef struct {
    uint8_t is_map;         /* nothing is reduced, carried from step to step or written where data says */
    uint8_t is_pointwise;   /* a formula of the inputs' elements at the result's place (broadcast as numpy does); no view */
    uint8_t is_view;        /* an element is one of an input's, or a number where a guard says so (pad); indices are integers */
    uint8_t is_guarded;     /* a view that has such numbers */
    uint8_t is_contraction; /* a sum of products of two inputs, each with an axis of the result to itself or shared */
    uint8_t is_reduction;   /* a formula of input 0's elements, folded over the dimensions in DLC_ATTR_AXES */
    uint8_t has_update;     /* a stage writes where data says */
    uint8_t has_steps;      /* it rounds, compares or makes integers of floats: a last bit may become a whole step */
    const dlc_node *node;
    dlc_node_kernel from;   /* its kernel; NULL: no equation, and nothing above holds */
} dlc_form;

/* As long as the arena. */
dlc_form dlc_form_of(dlc_graph *graph, dlc_node *node, dlc_arena *arena);
/*
 * Models repeat their nodes. The latest node met with `memo` that is of the same form for certain (one operator without attributes,
 * outside of regions, over data of the same types); NULL: none, and this one is remembered.
 */
typedef struct {
    const dlc_node *last[DLC_OP_COUNT];
} dlc_form_memo;
const dlc_node *dlc_form_like(dlc_form_memo *memo, const dlc_node *node);

/*
 * How the result lies along an input of its rank: dims[d] is the dimension of the result that dimension d of the input is
 * read along, each by another one (bare, shifted, strided, mirrored). False when it is not read so.
 */
int dlc_form_order(const dlc_form *form, const dlc_value *input, uint8_t dims[DLC_MAX_RANK]);

/*
 * Both are pointwise, or both reductions, and `b` is the formula of `a` over inputs of its own, whatever their order and
 * extents: where these are the inputs of `a` before they were transposed or expanded, it computes the same elements.
 */
int dlc_form_equal(const dlc_form *a, const dlc_form *b);

#endif

/*
 * Regions: what runs as often as the run says. A region is the run of nodes behind a mark (`loop`, `if`, `else`) up to the mark that
 * closes it (`else`, `done`); regions nest. Nodes in it see all values before it, and nobody outside sees theirs. What goes in and
 * out are nodes of their own, one value each: `state` at a loop's beginning, `final`, `stack` and `either` behind `done`, which
 * read values of the region that it closes.
 */
#ifndef DLC_IR_GRAPH_REGION_H
#define DLC_IR_GRAPH_REGION_H

#include "ir/graph/op.h"

/* The region that a node is in when it is put before `before`, NULL: at the end. */
dlc_node *dlc_region_at(const dlc_graph *graph, const dlc_node *before);
/* The region whose nodes see the value; NULL: all do. */
dlc_node *dlc_value_region(const dlc_value *value);
/* Whether `inner` is `outer` or lies in it; NULL is around all. */
int dlc_region_is_in(const dlc_node *inner, const dlc_node *outer);
/* The region that input i of a node may be of: its own, or the one that it reads the results of. */
dlc_node *dlc_region_of_input(const dlc_node *node, uint32_t input);
/* The mark that opens what a `done` or `else` closes: loop, if or else. */
static inline dlc_node *dlc_region_opener(const dlc_node *mark)
{
    return mark->inputs[0]->def;
}
/* The mark that closes what `opener` opens, NULL while it is open. */
dlc_node *dlc_region_closer(const dlc_node *opener);
/* Nodes of `op` that read the mark's token, in the order they were made; *n: how many. */
dlc_node **dlc_region_nodes(const dlc_node *mark, dlc_opcode op, dlc_arena *arena, uint32_t *n);
/*
 * False: the node may be erased. Graph outputs and symbols bound to a value's data count as uses of it. Marks stay, since a loop's
 * count may be a size; and so does the `final` of a state that its iterations read: it is what carries the state on.
 */
int dlc_node_is_needed(const dlc_node *node);
/* Whether the size depends on a symbol that is bound in the region, the count of its own loop included. */
int dlc_region_binds(const dlc_graph *graph, const dlc_node *region, dlc_expr size);
/* When the nodes of the region run at all: the conditions of all `if` and `loop` around them. */
dlc_expr dlc_region_path(const dlc_graph *graph, const dlc_node *region);
/* What a loop's or an if's `holds` says. */
dlc_expr dlc_region_holds(const dlc_node *opener);

#endif

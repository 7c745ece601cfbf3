/* Between the files that build graphs (graph.c, node.c); nobody else includes it. */
#ifndef DLC_IR_GRAPH_BUILD_H
#define DLC_IR_GRAPH_BUILD_H

#include "ir/graph/op.h"

/* A value of nobody yet, with a name of its own. */
dlc_value *dlc_value_create(dlc_graph *graph, const char *name, const dlc_type *type);
/* Puts the node into the list, before another or at the end, and into its inputs' lists of uses. */
void dlc_node_link(dlc_graph *graph, dlc_node *node, dlc_node *before);

#endif

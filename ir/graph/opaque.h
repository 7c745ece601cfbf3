/* Opaque operators as steps of a plan: which row of dlc/opaque.def a node is, and its attributes in
 * that row's order. */
#ifndef DLC_IR_GRAPH_OPAQUE_H
#define DLC_IR_GRAPH_OPAQUE_H

#include "dlc/abi.h"
#include "ir/graph/graph.h"

enum { DLC_MAX_OPAQUE_ATTRS = 4 };
typedef struct {
    dlc_opaque kind;
    uint32_t ninputs, noutputs; /* of the row */
    uint32_t nattrs;
    int64_t attrs[DLC_MAX_OPAQUE_ATTRS];
    uint8_t works_in; /* bit i: the step needs output i, read or not: i64, of output 0's shape */
} dlc_opaque_call;

/* False when the executable's format has no step for the node's operator. */
int dlc_opaque_call_of(const dlc_node *node, dlc_opaque_call *call);

#endif

/* The attributes of opaque operators: the graph names them, the plan's format lists them. */
#include "ir/graph/opaque.h"

static int64_t axis_of(const dlc_node *node)
{
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, -1);
    return axis < 0 ? axis + node->inputs[0]->type.rank : axis;
}

static const struct {
    uint8_t ninputs, noutputs;
} rows[DLC_OPAQUE_COUNT] = {
#define DLC_OPAQUE(id, number, text, inputs, outputs, attrs, names, count, run) [number] = {inputs, outputs},
#include "dlc/opaque.def"
#undef DLC_OPAQUE
};

static int attributes_of(const dlc_node *node, dlc_opaque_call *call)
{
    switch (node->op) {
    case DLC_OP_TOPK:
        *call = (dlc_opaque_call){
            .kind = DLC_OPAQUE_TOPK,
            .nattrs = 3,
            .attrs = {axis_of(node), dlc_node_int(node, DLC_ATTR_LARGEST, 1),
                      dlc_node_int(node, DLC_ATTR_SORTED, 1)},
            .works_in = 1 << 1,
        };
        return 1;
    case DLC_OP_NONZERO:
        *call = (dlc_opaque_call){.kind = DLC_OPAQUE_NONZERO};
        return 1;
    case DLC_OP_SUPPRESS:
        *call = (dlc_opaque_call){.kind = DLC_OPAQUE_SUPPRESS,
                                  .nattrs = 1,
                                  .attrs = {dlc_node_int(node, DLC_ATTR_CENTER, 0)}};
        return 1;
    default:
        return 0;
    }
}

int dlc_opaque_call_of(const dlc_node *node, dlc_opaque_call *call)
{
    if (!attributes_of(node, call))
        return 0;
    call->ninputs = rows[call->kind].ninputs;
    call->noutputs = rows[call->kind].noutputs;
    return 1;
}

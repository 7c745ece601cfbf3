/* The attributes of opaque operators: the graph names them, the plan's format lists them. */
#include "ir/graph/opaque.h"

static int64_t axis_of(const dlc_node *node)
{
    int64_t axis = dlc_node_int(node, DLC_ATTR_AXIS, -1);
    return axis < 0 ? axis + node->inputs[0]->type.rank : axis;
}

static int64_t case_of(const dlc_node *node)
{
    const char *text = dlc_node_text(node, DLC_ATTR_CASE, "none");
    return text[0] == 'l' ? 1 : text[0] == 'u' ? 2 : 0;
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
    case DLC_OP_TEXT_JOIN:
        *call = (dlc_opaque_call){.kind = DLC_OPAQUE_TEXT_JOIN};
        return 1;
    case DLC_OP_TEXT_SPLIT:
        *call = (dlc_opaque_call){
            .kind = DLC_OPAQUE_TEXT_SPLIT, .nattrs = 1, .attrs = {dlc_node_int(node, DLC_ATTR_MOST, -1)}};
        return 1;
    case DLC_OP_TEXT_NORMALIZE:
        *call = (dlc_opaque_call){.kind = DLC_OPAQUE_TEXT_NORMALIZE,
                                  .nattrs = 2,
                                  .attrs = {case_of(node), dlc_node_int(node, DLC_ATTR_EXACT, 0)}};
        return 1;
    case DLC_OP_TEXT_MATCH:
        *call = (dlc_opaque_call){.kind = DLC_OPAQUE_TEXT_MATCH};
        return 1;
    case DLC_OP_TEXT_READ:
        *call = (dlc_opaque_call){.kind = DLC_OPAQUE_TEXT_READ};
        return 1;
    case DLC_OP_TEXT_WRITE:
        *call = (dlc_opaque_call){.kind = DLC_OPAQUE_TEXT_WRITE};
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

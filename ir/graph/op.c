/* The tables of operators and attributes: what is written in ops.def and attrs.def and needs no code. */
#include "ir/graph/op.h"

#include <string.h>

const dlc_op_info dlc_ops[DLC_OP_COUNT] = {
#define DLC_OP(id, text, lo, hi, nout, infer, mean, traits, types, attrs)                          \
    [DLC_OP_##id] = {text, lo, hi, nout, DLC_TRAIT_##traits, DLC_TYPES_##types, attrs},
#include "ir/graph/ops.def"
#undef DLC_OP
};

const dlc_attr_info dlc_attrs[DLC_ATTR_COUNT] = {
#define DLC_ATTR(id, text, kind) [DLC_ATTR_##id] = {text, DLC_ATTR_KIND_##kind},
#include "ir/graph/attrs.def"
#undef DLC_ATTR
};

int dlc_op_find(const char *text)
{
    for (int op = 0; op < DLC_OP_COUNT; op++)
        if (strcmp(dlc_ops[op].text, text) == 0)
            return op;
    return -1;
}

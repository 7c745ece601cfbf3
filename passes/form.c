/*
 * Forms of operators. The family an operator's result type follows (the `infer` column of ops.def)
 * says most of what passes want to know: a row inferred `broadcast` is pointwise whatever it
 * computes, so a new operator needs no line here.
 */
#include "passes/form.h"

#include <string.h>

static const char *const families[DLC_OP_COUNT] = {
#define DLC_OP(id, text, lo, hi, nout, infer, mean, traits, types, attrs) [DLC_OP_##id] = #infer,
#include "ir/graph/ops.def"
#undef DLC_OP
};

/* `list` is NULL-terminated. */
static int is_one_of(const char *family, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(family, *list))
            return 1;
    return 0;
}

int dlc_is_pointwise(dlc_opcode op)
{
    static const char *const list[] = {"same", "to_bool", "cast",  "broadcast", "pow",
                                       "clip", "compare", "where", NULL};
    return is_one_of(families[op], list) && op != DLC_OP_CUMSUM; /* `same`, but along an axis */
}

int dlc_is_view(dlc_opcode op)
{
    static const char *const list[] = {"reshape", "transpose", "expand", "slice",
                                       "concat",  "pad",       "tile",   NULL};
    return is_one_of(families[op], list);
}

int dlc_is_contraction(dlc_opcode op)
{
    static const char *const list[] = {"matmul", "einsum", "conv", "conv_transpose", NULL};
    return is_one_of(families[op], list);
}

int dlc_is_spatial(dlc_opcode op)
{
    static const char *const list[] = {"conv",   "conv_transpose", "pool",
                                       "resize", "grid_sample",    NULL};
    return is_one_of(families[op], list);
}

int dlc_is_reduction(dlc_opcode op)
{
    return !strcmp(families[op], "reduce");
}

/* The table of expression operators: expr.def as data. */
#include "ir/expr/expr.h"

const dlc_expr_info dlc_exprs[DLC_EXPR_COUNT] = {
#define DLC_EXPR(id, text, nargs, type, class_, cost)                                              \
    [DLC_EXPR_##id] = {text, nargs, DLC_RESULT_##type, DLC_EXPR_CLASS_##class_, cost},
#include "ir/expr/expr.def"
#undef DLC_EXPR
};

int dlc_expr_admits(dlc_expr_op op, dlc_dtype dtype)
{
    switch (dlc_exprs[op].class_) {
    case DLC_EXPR_CLASS_INT:
        return dlc_is_int(dtype);
    case DLC_EXPR_CLASS_FLOAT:
        return dlc_is_float(dtype);
    case DLC_EXPR_CLASS_NUM:
        return dlc_is_float(dtype) || dlc_is_int(dtype);
    case DLC_EXPR_CLASS_BITS:
        return dlc_is_int(dtype) || dtype == DLC_BOOL;
    default:
        return dtype != DLC_NONE;
    }
}

/* Between ir/expr/range.c and ir/expr/simplify.c. */
#ifndef DLC_IR_EXPR_RANGE_H
#define DLC_IR_EXPR_RANGE_H

#include "ir/expr/build.h"

/* Interval of one node from its operands' (none are asked for of a load). */
dlc_interval dlc_node_range(const dlc_pool *pool, dlc_expr id, const dlc_interval *args, const dlc_ranges *ranges);

#endif

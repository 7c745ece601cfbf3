/* Between expr_range.c and expr_simplify.c. */
#ifndef DLC_IR_EXPR_RANGE_H
#define DLC_IR_EXPR_RANGE_H

#include "ir/expr_build.h"

/* Interval of one node; known[] holds its operands'. */
dlc_interval dlc_node_range(const dlc_pool *pool, dlc_expr id, const dlc_interval *known, const dlc_ranges *ranges);

#endif

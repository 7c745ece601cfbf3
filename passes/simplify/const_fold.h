/* Computing nodes at compile time, for const_fold itself and for rules that fold constants into
 * weights. */
#ifndef DLC_PASSES_SIMPLIFY_CONST_FOLD_H
#define DLC_PASSES_SIMPLIFY_CONST_FOLD_H

#include "passes/pass.h"

/*
 * Computes `node`, all of whose inputs are constants, strictly, and returns its first output as a
 * constant, or NULL when it is over budget, has no static type, or could not be computed. The node
 * itself and its uses are left as they are.
 */
dlc_value *dlc_fold(dlc_pass_ctx *ctx, dlc_node *node);
/* The same for a contraction's weights, which have a budget of their own. */
dlc_value *dlc_fold_weights(dlc_pass_ctx *ctx, dlc_node *node);

#endif

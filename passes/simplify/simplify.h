/* What rewrite rules share: reading patterns and building their right sides. The rules are rows of
 * simplify_rules.def and integer_rules.def. */
#ifndef DLC_PASSES_SIMPLIFY_SIMPLIFY_H
#define DLC_PASSES_SIMPLIFY_SIMPLIFY_H

#include "passes/pass.h"

typedef enum { DLC_RULE_EXACT, DLC_RULE_LICENSED } dlc_rule_class;

#define DLC_RULE(name, op, class_, algebra)                                                        \
    dlc_value *dlc_rule_##name(dlc_pass_ctx *ctx, dlc_node *node);
#include "passes/simplify/integer_rules.def"
#include "passes/simplify/simplify_rules.def"
#undef DLC_RULE

static inline int dlc_is_op(const dlc_value *value, dlc_opcode op)
{
    return value && value->def && value->def->op == op;
}
static inline int dlc_is_constant(const dlc_value *value)
{
    return dlc_is_op(value, DLC_OP_CONSTANT);
}
/* The same dtype and, expression by expression, the same shape. */
int dlc_same_type(const dlc_type *a, const dlc_type *b);
/* True when the value is a constant, or an expanded one, with all elements equal (and at least
 * one). */
int dlc_is_filled(const dlc_value *value, dlc_scalar *element);
/* Filled with exactly this number; zero's sign counts. */
int dlc_is_filled_with(const dlc_value *value, double number);

/* All elements of a constant of f32 or f64 are finite. */
int dlc_are_finite(const dlc_graph *graph, const dlc_value *constant);

/* New nodes stand before `at` and share its origin. NULL when the operator does not take these
 * inputs. */
dlc_value *dlc_build(dlc_graph *graph, dlc_node *at, dlc_opcode op, dlc_value *const *inputs,
                     uint32_t ninputs, const dlc_attr *attrs, uint32_t nattrs);
dlc_value *dlc_build2(dlc_graph *graph, dlc_node *at, dlc_opcode op, dlc_value *a, dlc_value *b);
/* The node's operator and attributes over other inputs. */
dlc_value *dlc_build_like(dlc_graph *graph, dlc_node *node, dlc_value *const *inputs);
/* The same for a pointwise node of up to DLC_MOST_OPERANDS inputs; NULL when that is not the same formula of its inputs. */
enum { DLC_MOST_OPERANDS = 3 };
dlc_value *dlc_build_map_like(dlc_pass_ctx *ctx, dlc_node *node, dlc_value *const *inputs);
/* Both nodes are one formula (dlc_form_equal). */
int dlc_is_same_formula(dlc_pass_ctx *ctx, dlc_node *a, dlc_node *b);
dlc_value *dlc_build_reshape(dlc_graph *graph, dlc_node *at, dlc_value *value, const dlc_expr *dims,
                             uint32_t rank);
dlc_value *dlc_build_cast(dlc_graph *graph, dlc_node *at, dlc_value *value, dlc_dtype dtype);
dlc_value *dlc_build_transpose(dlc_graph *graph, dlc_node *at, dlc_value *value,
                               const int64_t *perm);
/* The permutation of a transpose: perm[i] is the input dimension that becomes dimension i. */
void dlc_transpose_perm(const dlc_graph *graph, const dlc_node *transpose,
                        int64_t perm[DLC_MAX_RANK]);
/* Folds a node just built from constants and takes it away again; NULL (nothing left behind) when
 * it cannot be folded. */
dlc_value *dlc_build_folded(dlc_pass_ctx *ctx, dlc_value *built);

/* Every concatenation of many parts as a tree: what a kernel of them costs grows faster than their number. */
DLC_NODISCARD dlc_status dlc_split_concats(dlc_pass_ctx *ctx);

#endif

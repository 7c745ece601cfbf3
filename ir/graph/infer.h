/* What the infer_*.c files share: reading attributes with checks, and arithmetic on dimensions that
 * refuses what is absurd. */
#ifndef DLC_IR_GRAPH_INFER_H
#define DLC_IR_GRAPH_INFER_H

#include "dlc/abi.h"
#include "ir/graph/op.h"

#include <inttypes.h>

/* One prototype per rule named in ops.def (a rule of many rows is declared as often, which C
 * allows). */
#define DLC_OP(id, text, lo, hi, nout, infer, mean, traits, types, attrs)                          \
    dlc_status dlc_infer_##infer(dlc_graph *graph, dlc_node *node, dlc_type *result);
#include "ir/graph/ops.def"
#undef DLC_OP

static inline const dlc_type *dlc_infer_in(const dlc_node *node, uint32_t input)
{
    return &node->inputs[input]->type;
}

enum {
    DLC_RESIZE_SHRINK = 32
}; /* smallest antialiased scale is 1/32: a filter of up to 128 taps */

/* What a condition's text calls the node. */
static inline const char *dlc_infer_name(const dlc_node *node)
{
    return node->origin && node->origin->name ? node->origin->name : dlc_ops[node->op].text;
}

/* Failure at the node while inferring: an input is there but must be absent, a text is unknown, …
 * (see dlc_fail). */
#define DLC_REFUSE(...) dlc_fail(graph, node, DLC_INVALID, __VA_ARGS__)

/* Input `input` is present. */
DLC_NODISCARD dlc_status dlc_infer_present(dlc_graph *graph, const dlc_node *node, uint32_t input);
/* Inputs `a` and `b` have one dtype. */
DLC_NODISCARD dlc_status dlc_infer_same_dtype(dlc_graph *graph, const dlc_node *node, uint32_t a,
                                              uint32_t b);
/* The dtype of a sum of input 0, or of products of inputs 0 and 1: theirs, or the attribute's. */
DLC_NODISCARD dlc_status dlc_infer_sum(dlc_graph *graph, const dlc_node *node, uint32_t nfactors, dlc_dtype *result);
/* Input is i32 or i64. */
DLC_NODISCARD dlc_status dlc_infer_index(dlc_graph *graph, const dlc_node *node, uint32_t input);
/* Input has one element (rank 0, or every dimension 1). */
DLC_NODISCARD dlc_status dlc_infer_scalar(dlc_graph *graph, const dlc_node *node, uint32_t input);
/* 0 <= value < rank. */
DLC_NODISCARD dlc_status dlc_infer_axis(dlc_graph *graph, const dlc_node *node, int64_t axis,
                                        uint8_t rank);
/* The attribute, if there, has n entries; constants among them are within [lo, hi]. */
DLC_NODISCARD dlc_status dlc_infer_list(dlc_graph *graph, const dlc_node *node, dlc_attr_id id,
                                        uint32_t n, int64_t lo, int64_t hi);
/* The same, and all are constants: copied to out[n], or `otherwise` where the attribute is absent.
 */
DLC_NODISCARD dlc_status dlc_infer_ints(dlc_graph *graph, const dlc_node *node, dlc_attr_id id,
                                        uint32_t n, int64_t lo, int64_t hi, int64_t otherwise,
                                        int64_t *out);
/* The attribute `dims` as a shape: rank within the limit, no negative constant. */
DLC_NODISCARD dlc_status dlc_infer_dims(dlc_graph *graph, const dlc_node *node, dlc_type *type);
/* Dimensions a and b, called `what` in messages, are equal; symbols may decide. *result: the one to
 * go on with. */
DLC_NODISCARD dlc_status dlc_infer_equal(dlc_graph *graph, const dlc_node *node, dlc_expr a,
                                         dlc_expr b, const char *what, dlc_expr *result);
/* `small` is 1 or `dim`, a condition of the run; the result, `dim`. */
dlc_expr dlc_infer_broadcast_to(dlc_graph *graph, const dlc_node *node, dlc_expr small, dlc_expr dim);
/* The result of broadcasting shapes a and b (numpy's rule), dims only. */
DLC_NODISCARD dlc_status dlc_infer_broadcast_dims(dlc_graph *graph, const dlc_node *node,
                                                  const dlc_type *a, const dlc_type *b,
                                                  dlc_type *result);
/* Text of a dimension or type in the graph's arena, for messages. */
const char *dlc_dim_text(const dlc_graph *graph, dlc_expr dim);
const char *dlc_type_text(const dlc_graph *graph, const dlc_type *type);

#endif

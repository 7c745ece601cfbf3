/* The operator table generated from ops.def (op.c), and what an operator defines: its result's type and its meaning (rules.c). */
#ifndef DLC_IR_GRAPH_OP_H
#define DLC_IR_GRAPH_OP_H

#include "ir/graph/graph.h"
#include "ir/kernel/kernel.h"

typedef enum {
    DLC_TRAIT_NONE = 0, DLC_TRAIT_COMMUTES = 1, DLC_TRAIT_IDEMPOTENT = 2, DLC_TRAIT_OPAQUE = 4,
    DLC_TRAIT_INDEXES = 8, /* loads input 0 at indices that are data, which the run checks */
    DLC_TRAIT_MARK = 32 | DLC_TRAIT_OPAQUE, /* where a region begins or ends (region.h) */
    DLC_TRAIT_SPATIAL = 16, /* input 0 and results are n,c,spatial…, and each point works on its channels: a hint for layouts */
    DLC_TRAIT_UNPACKS = 64 /* makes several elements of one: of constants, too, it is done where they are read */
} dlc_trait;
typedef enum {
    DLC_TYPES_DATA, DLC_TYPES_ANY, DLC_TYPES_NUM, DLC_TYPES_FLOAT, DLC_TYPES_INT, DLC_TYPES_BITS, DLC_TYPES_BOOL, DLC_TYPES_TEXT
} dlc_types; /* which dtypes a row takes as input 0 */
enum { DLC_MOST_FEATURE_BITS = 24 }; /* descend: more of a record's word do not say which feature is compared */
typedef enum { DLC_ATTR_KIND_INT, DLC_ATTR_KIND_FLOAT, DLC_ATTR_KIND_TEXT, DLC_ATTR_KIND_DIMS, DLC_ATTR_KIND_FLOATS } dlc_attr_kind;

typedef struct {
    const char *text;
    uint8_t kind; /* dlc_attr_kind */
} dlc_attr_info;
extern const dlc_attr_info dlc_attrs[DLC_ATTR_COUNT];

/*
 * The types of node->outputs[*] from inputs and attributes; nothing else is set. Fails through dlc_fail with what was found.
 */
typedef dlc_status (*dlc_infer_fn)(dlc_graph *graph, dlc_node *node, dlc_type *result);

/*
 * Types of all outputs asked for, after everything a row states was checked: arity, attributes (known, required, kinds),
 * dtype of input 0; and after inference the size of each output. dlc_graph_node and the verifier call this.
 */
DLC_NODISCARD dlc_status dlc_node_infer(dlc_graph *graph, dlc_node *node, dlc_type *result);

/*
 * A meaning appends stages to `kernel`: for each output o of the node, a stage out[o] whose axes are the output's dimensions
 * in order. in[i] is the source to load input i from (0xffffffff: absent): a buffer, or a stage of a fused producer; either
 * way one index per dimension of the input. Constants of one element are written into the expressions and never loaded
 * (dlc_input_is_inline), so they need no buffer. A scatter's out[o] is the copy of its data; the stage after it has `update`
 * and writes into the same output, so nothing may load out[o] in the same kernel. dlc_mean_store gives both their buffer.
 */
typedef struct dlc_mean {
    dlc_graph *graph;
    const dlc_node *node;
    dlc_kernel *kernel;
    const dlc_source *in;
    uint32_t out[8];  /* stage per output, set by the meaning */
    uint8_t second[8]; /* always 0: a second accumulator gets a map of its own, which may be loaded like any stage */
} dlc_mean;
typedef dlc_status (*dlc_mean_fn)(dlc_mean *mean);

typedef struct {
    const char *text;
    int16_t lo, hi;
    uint8_t nout;
    uint8_t traits;
    uint8_t types;     /* dlc_types of input 0 */
    const char *attrs; /* names it may have, "!" behind those it must have: "pads strides! group" */
} dlc_op_info;
extern const dlc_op_info dlc_ops[DLC_OP_COUNT];
int dlc_op_find(const char *text); /* opcode or -1 */
/* A step of the plan in C: it has no meaning. */
static inline int dlc_op_is_opaque(dlc_opcode op)
{
    return (dlc_ops[op].traits & DLC_TRAIT_OPAQUE) != 0;
}

static inline int dlc_op_is_mark(dlc_opcode op)
{
    return (dlc_ops[op].traits & DLC_TRAIT_MARK) == DLC_TRAIT_MARK;
}

/* Data says which of its elements are read: it must lie in memory. */
static inline int dlc_input_is_indexed(const dlc_node *node, uint32_t input)
{
    return input == 0 && (dlc_ops[node->op].traits & DLC_TRAIT_INDEXES) != 0;
}

/* A constant of one element or none: the meaning writes its value, no buffer is needed. */
int dlc_input_is_inline(const dlc_node *node, uint32_t input);
/* Runs the node's meaning, where the graph's region is the node's. DLC_UNSUPPORTED for opaque operators. */
DLC_NODISCARD dlc_status dlc_mean_build(dlc_mean *mean);
/* Stores output o into `buffer`: out[o] at its own axes, and the update stage that belongs to it. */
void dlc_mean_store(dlc_mean *mean, uint32_t output, uint32_t buffer);

/* --- helpers for meanings (ir/graph/mean.c) --- */
/* A graph expression (a dimension) in the kernel's pool; its symbols become kernel symbols. */
dlc_expr dlc_mean_dim(dlc_mean *mean, dlc_expr graph_expr);
/* A fresh axis per dimension of the type, and their axis expressions. */
void dlc_mean_axes(dlc_mean *mean, const dlc_type *type, dlc_ids *axes, dlc_expr *index);
/* Load of input i at index (one per dimension). */
dlc_expr dlc_mean_load(dlc_mean *mean, uint32_t input, const dlc_expr *index);
dlc_expr dlc_mean_load_if(dlc_mean *mean, uint32_t input, const dlc_expr *index, dlc_expr guard, dlc_expr otherwise);
/* Along a dimension `out` of the result, `in` of an input: 0 where `in` is 1 (which only the run may know), else the index. */
dlc_expr dlc_mean_broadcast_index(dlc_mean *mean, dlc_expr in, dlc_expr out, dlc_expr index);
int dlc_mean_may_broadcast(const dlc_mean *mean, dlc_expr in, dlc_expr out); /* only the run knows */
/* Load of input i broadcast to the result, which has `rank` indices: trailing dimensions align, extent-1 dimensions read index 0. */
dlc_expr dlc_mean_load_broadcast(dlc_mean *mean, uint32_t input, const dlc_expr *index, uint32_t rank);
/* Load of a stage made before, at index (one per axis). */
dlc_expr dlc_mean_stage(dlc_mean *mean, uint32_t stage, const dlc_expr *index);
/* Appends a map or a reduction; returns its stage number. axes and reduce are copied. */
uint32_t dlc_mean_map(dlc_mean *mean, const char *name, const dlc_ids *axes, dlc_expr value);
uint32_t dlc_mean_reduce(dlc_mean *mean, const char *name, const dlc_ids *axes, const dlc_ids *reduce, dlc_reduce combine,
                         dlc_expr value, dlc_expr second /* 0 unless a pair */);

/*
 * One node as a kernel of its own: IN buffers for its present inputs (in order, each once per distinct value; constants as
 * DLC_ROLE_CONST), stages, OUT buffers for its outputs, in the values' layouts. sources[i] receives the graph value of
 * buffer i. Not inlined, not simplified beyond building. The oracle and the folder use it; lowering uses the same pieces.
 */
typedef struct {
    dlc_kernel *kernel;
    dlc_vec(dlc_value *) values; /* one per buffer of the kernel */
} dlc_node_kernel;
DLC_NODISCARD dlc_status dlc_node_kernel_of(dlc_graph *graph, dlc_node *node, dlc_arena *arena, dlc_node_kernel *result);

/* Content of a value: its elements as expressions, or NULL. dlc_value_ints: true when all are constants, copied to out[]. */
int dlc_value_ints(const dlc_graph *graph, const dlc_value *value, int64_t *out, uint32_t capacity, uint32_t *n);
/* Evaluates a node's meaning on its inputs' content; used by dlc_graph_node. Sets outputs' content where it can. */
void dlc_node_content(dlc_graph *graph, dlc_node *node);

#endif

/*
 * The graph IR: what is computed. Nodes in a doubly linked list, in an order where every value is defined before its uses;
 * values with types and uses. Everything lives in the graph's arena; erasing only unlinks.
 */
#ifndef DLC_IR_GRAPH_GRAPH_H
#define DLC_IR_GRAPH_GRAPH_H

#include "base/diag.h"
#include "base/str.h"
#include "base/strings.h"
#include "ir/expr/property.h"
#include "ir/expr/tensor.h"

typedef enum dlc_opcode {
#define DLC_OP(id, text, lo, hi, nout, infer, mean, traits, types, attrs) DLC_OP_##id,
#include "ir/graph/ops.def"
#undef DLC_OP
    DLC_OP_COUNT
} dlc_opcode;

typedef enum dlc_attr_id {
#define DLC_ATTR(id, text, kind) DLC_ATTR_##id,
#include "ir/graph/attrs.def"
#undef DLC_ATTR
    DLC_ATTR_COUNT
} dlc_attr_id;

typedef struct {
    uint8_t id; /* dlc_attr_id */
    uint32_t n; /* DIMS, FLOATS: how many */
    union {
        int64_t i;
        double f;
        const char *text;
        const dlc_expr *dims; /* in the graph's pool */
        const double *floats;
    } as;
} dlc_attr;

typedef struct dlc_value dlc_value;
typedef struct dlc_node dlc_node;
typedef struct dlc_graph dlc_graph;

/* One input of a node, in the list of the value it reads; it lies in the node, so that dropping one costs the same however
 * many there are. */
typedef struct dlc_use {
    dlc_node *node;
    uint32_t input;
    struct dlc_use *next, **link; /* link: what points here; NULL: in no list */
} dlc_use;

struct dlc_value {
    uint32_t id;      /* dense per graph: index of side arrays */
    const char *name; /* the model's, or made unique from the node's; data, never a symbol or path */
    dlc_type type;
    const dlc_layout *layout; /* physical, never NULL; row-major until the layout pass */
    dlc_node *def;          /* NULL: a graph input */
    uint32_t def_output;
    dlc_use *uses;          /* nodes only; graph outputs are listed in graph->outputs */
    uint32_t noutputs;      /* how many graph outputs this value is */
    uint32_t nbinds;        /* how many symbols are bound to its data (DLC_BIND_DATA, DLC_BIND_OPAQUE) */
    const dlc_tensor *data; /* of a CONSTANT node, row-major */
    const dlc_expr *content; /* values of few elements: what each one is, row-major, in the graph's pool; or NULL. Integers
                                are i64 expressions over symbols whatever the dtype, bools bool; floats constants */
    const dlc_expr *partly;  /* the same where only some are known: 0 for the others; NULL where content is there */
};

/* Where a node came from, for messages: the ONNX node. Core nodes made from one ONNX node share it. */
typedef struct {
    const char *name;    /* ONNX node name, or its first output's */
    const char *op_type; /* "Conv" */
    const char *domain;  /* "" for ai.onnx */
    int64_t opset;
} dlc_origin;

struct dlc_node {
    uint32_t id; /* dense per graph */
    dlc_opcode op;
    const dlc_origin *origin; /* NULL for nodes read from text */
    dlc_value **inputs;       /* NULL entries: absent */
    dlc_use *own_uses;        /* by input */
    uint32_t ninputs;
    dlc_value **outputs;      /* NULL entries: absent (trailing outputs nobody asked for) */
    uint32_t noutputs;
    dlc_attr *attrs;
    uint32_t nattrs;
    dlc_node *region; /* the mark that opens the innermost region around it (region.h); NULL: none */
    dlc_node *prev, *next;
};

typedef struct {
    const char *name;
    int64_t lo, hi; /* inclusive; input dimensions [0, 2^31-1] unless the user says otherwise */
    int64_t usual;  /* what it mostly is, as the user says; 0: dlc_graph_usual says it */
    uint8_t bind;   /* dlc_bind */
    dlc_value *value;
    uint32_t index;
} dlc_symbol;

typedef struct {
    const char *name;
    dlc_value *value;
} dlc_output_value;

/* Two dimensions that a condition makes equal: meanings write `to` (a constant, or what is older) for both. */
typedef struct {
    dlc_expr from, to;
    dlc_node *region; /* where that holds; NULL: everywhere */
    uint32_t next;    /* equality of the same `from`; one that is of another, or is not there, ends them */
} dlc_equality;

typedef struct dlc_names dlc_names; /* names of values in use */

struct dlc_graph {
    dlc_arena *arena;
    dlc_pool *pool;
    dlc_diag *diag;
    const char *file; /* for messages */
    const char *name;
    dlc_properties properties; /* not part of the text form */
    dlc_strings strings;       /* that constants hold */
    dlc_vec(dlc_value *) inputs;
    dlc_vec(dlc_output_value) outputs;
    uint32_t next_output; /* where dlc_value_replace looks first: values are mostly replaced in their order */
    dlc_vec(dlc_symbol) symbols;
    dlc_vec(dlc_condition) conditions;
    dlc_vec(dlc_equality) equalities;
    dlc_ids first_equalities; /* by the dimension's id: numbers of equalities, checked as `next` is; dimensions behind them have none */
    dlc_names *names;
    dlc_node *first, *last;
    dlc_node *last_constant; /* constants come first, in the order they were made; NULL: none yet */
    dlc_node *region;  /* of the node whose rule or meaning is at work, else of the next node at the end: conditions hold there */
    uint32_t nnodes;   /* ids given out: size of side arrays (erased ones included) */
    uint32_t nvalues;
};

dlc_graph *dlc_graph_create(dlc_arena *arena, dlc_diag *diag, const char *file);
uint32_t dlc_graph_symbol(dlc_graph *graph, const char *name, dlc_bind bind, dlc_value *value, uint32_t index);
/* What the symbol mostly is, for choices and estimates alone: as stated, or by the rule of usual.c; 0: nobody knows. */
int64_t dlc_graph_usual(const dlc_graph *graph, uint32_t symbol);
/* Usual sizes of inputs, which the user states: by dimension, -1 for one of which nothing is said. What is wrong: DLC_USAGE. */
typedef struct {
    const char *input;
    uint32_t rank;
    const int64_t *dims;
} dlc_usual;
DLC_NODISCARD dlc_status dlc_graph_state_usual(dlc_graph *graph, const dlc_usual *stated, uint32_t n);
/* Sizes of all symbols: the usual ones; `otherwise` where nobody knows. */
int64_t *dlc_graph_usual_values(const dlc_graph *graph, int64_t otherwise, dlc_arena *arena);
dlc_value *dlc_graph_input(dlc_graph *graph, const char *name, const dlc_type *type);
void dlc_graph_output(dlc_graph *graph, const char *name, dlc_value *value);
/* A constant; bytes are borrowed and must outlive the graph. Its node stands before all others but older constants, so it may
 * be used anywhere. Those of few elements get their content. */
dlc_value *dlc_graph_constant(dlc_graph *graph, const char *name, const dlc_type *type, const void *bytes,
                              size_t size_bytes);
/* A constant of rank 0. */
dlc_value *dlc_graph_scalar(dlc_graph *graph, dlc_dtype dtype, double value);
dlc_value *dlc_graph_ints(dlc_graph *graph, const int64_t *values, uint32_t n); /* i64[n] */

/*
 * Builds a node before `graph->cursor`… at the end, infers its outputs' types (reporting what is wrong with the origin's
 * name), and its content as far as its inputs have theirs. Returns NULL after a failure, which is in graph->diag.
 */
typedef struct {
    dlc_opcode op;
    const dlc_origin *origin;
    const char *name;         /* of output 0; NULL: made from the origin's */
    dlc_value *const *inputs;
    uint32_t ninputs;
    uint32_t noutputs;        /* wanted; 0 means 1 */
    const dlc_attr *attrs;    /* copied */
    uint32_t nattrs;
    dlc_node *before;         /* NULL: at the end */
} dlc_node_spec;
dlc_node *dlc_graph_node(dlc_graph *graph, const dlc_node_spec *spec);

/* Every use of `from`, graph outputs included, becomes a use of `to`. */
void dlc_value_replace(dlc_graph *graph, dlc_value *from, dlc_value *to);
/* Calls the value `name`, with a suffix if that is taken. */
void dlc_value_rename(dlc_graph *graph, dlc_value *value, const char *name);
/* Says how it lies in memory. */
void dlc_value_lay(dlc_graph *graph, dlc_value *value, const dlc_layout *layout);
void dlc_node_set_input(dlc_node *node, uint32_t input, dlc_value *value);
/* Unlinks a node without uses and drops its uses of others. */
void dlc_graph_erase(dlc_graph *graph, dlc_node *node);
static inline int dlc_value_is_used(const dlc_value *value)
{
    return value->uses || value->noutputs || value->nbinds;
}
uint32_t dlc_value_nuses(const dlc_value *value); /* graph outputs and bound symbols included */

/* Attributes. The typed readers assert that the attribute is there with its kind unless a default is given. */
const dlc_attr *dlc_node_attr(const dlc_node *node, dlc_attr_id id); /* NULL: absent */
int64_t dlc_node_int(const dlc_node *node, dlc_attr_id id, int64_t otherwise);
double dlc_node_float(const dlc_node *node, dlc_attr_id id, double otherwise);
const char *dlc_node_text(const dlc_node *node, dlc_attr_id id, const char *otherwise);
const dlc_expr *dlc_node_dims(const dlc_node *node, dlc_attr_id id, uint32_t *n);
/* Number i of those; -1: it is not known. */
int64_t dlc_node_number(const dlc_graph *graph, const dlc_node *node, dlc_attr_id id, uint32_t i, int64_t otherwise);
dlc_attr dlc_attr_int(dlc_attr_id id, int64_t value);
dlc_attr dlc_attr_float(dlc_attr_id id, double value);
dlc_attr dlc_attr_text(dlc_attr_id id, const char *text);
dlc_attr dlc_attr_dims(dlc_attr_id id, const dlc_expr *dims, uint32_t n);
dlc_attr dlc_attr_ints(dlc_graph *graph, dlc_attr_id id, const int64_t *values, uint32_t n);
dlc_attr dlc_attr_floats(dlc_attr_id id, const double *values, uint32_t n);

/* Conditions the plan must check (equal symbolic dimensions and the like). True constants are dropped; those of a region hold when
 * it runs. */
void dlc_graph_require(dlc_graph *graph, dlc_expr holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * Makes dimensions a and b equal: true at once when they are, a condition and an equality when symbols decide, false when
 * they cannot be. *result: the one to go on with. `what` is the condition's text, naming the node and both dimensions.
 */
int dlc_graph_equal(dlc_graph *graph, dlc_expr a, dlc_expr b, const char *what, dlc_expr *result);
/* Makes equal what the conditions that stand in a graph read from text compare, in the region at its end or, without one, everywhere. */
void dlc_graph_learn(dlc_graph *graph);
/* `dim` with every part replaced by what conditions say it equals: equal dimensions become equal ids. */
dlc_expr dlc_graph_same(dlc_graph *graph, dlc_expr dim);
dlc_ranges dlc_graph_ranges(const dlc_graph *graph); /* of its symbols */
/* The dimension is 1, or only the run knows whether it is 1 or 0: index 0 is its only one. */
int dlc_dim_broadcasts(const dlc_graph *graph, dlc_expr dim);
/* Only the run knows whether it is 1 or more: a dimension of an input, or what such ones are broadcast to, up to 32 of them: what is made
 * of more is taken for equal to what it meets, as each further one would make all expressions longer. */
enum { DLC_MOST_BROADCASTS = 63 }; /* 32 dimensions, and what each two of them make */
int dlc_dim_may_broadcast(const dlc_graph *graph, dlc_expr dim);
/* `dim` is `part`, or what it is broadcast to: `dim`, wherever `part` is not 1. */
int dlc_dim_has_part(const dlc_graph *graph, dlc_expr dim, dlc_expr part);

/*
 * Failure at a node: "file: node 'layer2/conv1' (Conv, opset 13): text", then one line per input with name and type.
 * Returns status.
 */
dlc_status dlc_fail(dlc_graph *graph, const dlc_node *node, dlc_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
dlc_status dlc_fail_origin(dlc_graph *graph, const dlc_origin *origin, dlc_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void dlc_type_print(const dlc_graph *graph, const dlc_type *type, dlc_str *out); /* f32[batch,64,56,56] */
void dlc_dim_print(const dlc_graph *graph, dlc_expr dim, dlc_str *out);          /* batch * 2 + 1 */
void dlc_dim_print_brief(const dlc_graph *graph, dlc_expr dim, dlc_str *out);    /* cut off where it is very long, for messages */

/* Text form, both ways (docs/ir.md). Constants above 32 elements print as `const fill(V)` or `const hash(H)`. */
void dlc_graph_print(const dlc_graph *graph, dlc_str *out);
void dlc_graph_print_whole(const dlc_graph *graph, dlc_str *out); /* all elements of constants are listed */
DLC_NODISCARD dlc_status dlc_graph_parse(const char *text, const char *file, dlc_arena *arena, dlc_diag *diag,
                                         dlc_graph **result);
/* Arity, types re-inferred and compared, order, use lists, attributes' kinds, unique names. */
DLC_NODISCARD dlc_status dlc_graph_verify(dlc_graph *graph, dlc_diag *diag);

#endif

/*
 * Inside the frontend: the state of one import, what an operator's importer may ask of its ONNX
 * node, and the builder that makes composed operators short: y = f_mul(im, x, f_like(im, x, 0.5)).
 *
 * An importer reads all its attributes first (those it never reads are refused as unknown), then
 * builds core nodes and sets im->out[i] for every wanted output. It reports a failure through
 * im_fail and returns; a wanted output left NULL is then poisoned and whatever depends on it is
 * skipped in silence, so that one run reports every problem of the model.
 */
#ifndef DLC_FRONTEND_IMPORT_H
#define DLC_FRONTEND_IMPORT_H

#include "base/table.h"
#include "frontend/model.h"
#include "frontend/onnx.h"
#include "ir/graph/op.h"

enum { DLC_OPSET_FIRST = 1, DLC_OPSET_LAST = 28, DLC_IR_LAST = 14 };

typedef struct dlc_import dlc_import;

/* One row of onnx_ops.def: an operator in a range of opsets. */
typedef struct {
    const char *name;
    int16_t since, until;
    void (*import)(dlc_import *im);
    int32_t argument;           /* of the importer: mostly a dlc_opcode */
    int16_t inputs, inputs_max; /* fewest, most (-1: any number, none absent; -2: any number) */
    int16_t outputs_max;        /* -1: any number */
    uint8_t takes_lists;        /* sequences and optionals may be inputs */
} dlc_onnx_row;

typedef struct {
    const char *name;
    const Onnx__AttributeProto
        *proto; /* with its value; references of function bodies are resolved */
    uint8_t is_read;
} dlc_onnx_attribute;

typedef dlc_vec(dlc_onnx_attribute) dlc_onnx_attributes;

/* Names of one graph or function body; a subgraph sees those outside. */
typedef struct dlc_scope {
    dlc_table values; /* dlc_value *, or &im->poison */
    struct dlc_scope *outer;
} dlc_scope;

/* A loop or branches being imported (import_control.h). */
typedef struct dlc_repeat dlc_repeat;

/* A body being imported: the model's graph, a function's, a branch. On an explicit stack, never by
 * recursion. */
typedef struct {
    Onnx__NodeProto **nodes;
    size_t nnodes, next;
    dlc_scope *scope;
    const dlc_table *opsets;       /* domain -> int64_t* */
    dlc_onnx_attributes attributes; /* of the calling node, for references in a function's body */
    const char *prefix;             /* of node and value names: "" or "call/" */
    char **results;                 /* names of the body's outputs */
    size_t nresults;
    const Onnx__NodeProto *call; /* whose outputs they become */
    uint8_t caller;              /* 0: the model's graph, which nobody calls */
    dlc_repeat *repeat; /* of a loop or of branches that the run decides, else NULL */
    /* A graph that is a part of its node: called with the results, at the node, to go on. NULL: the
     * results are the node's outputs. */
    void (*then)(dlc_import *im, void *state, dlc_value **values);
    void *state;
} dlc_body;

struct dlc_import {
    dlc_graph *graph;
    dlc_pool *pool;
    dlc_arena *arena;
    dlc_arena *scopes; /* names to values, of use while the import lasts */
    dlc_onnx *model;
    const dlc_onnx_options *options;
    const Onnx__ModelProto *proto;
    dlc_table opsets;    /* domain -> int64_t* */
    dlc_table functions; /* "domain\1name\1overload" -> function */
    dlc_table declared;  /* value name -> Onnx__ValueInfoProto* of the main graph */
    dlc_table results;   /* the same for its outputs that `declared` lacks */
    dlc_table symbols;   /* dim_param -> symbol + 1 */
    dlc_table sizes;     /* dim_param -> dlc_expr, where the user gave a number */
    dlc_vec(dlc_body) bodies;
    dlc_value poison;            /* what a failed node's outputs are bound to */
    dlc_node lists;              /* what defines every list */
    uint64_t nnodes;             /* imported so far, iterations of loops included */
    const char *other_rank;      /* a sentence: the user gave an input another rank than it is declared with; or NULL */
    uint8_t shapes_given;        /* the user overrode dimensions: declared ones may not hold */
    uint8_t has_contradiction;   /* a declared shape was not what is computed, and it was told */

    /* the node being imported */
    const Onnx__NodeProto *node;
    const dlc_origin *origin;
    const dlc_onnx_row *row;
    int64_t opset;
    uint32_t messages_before; /* in the diagnostics when the node was begun */
    dlc_onnx_attributes attributes;
    dlc_value **in; /* NULL: absent */
    uint32_t nin;
    dlc_value **out; /* to be set */
    uint32_t nout;
};

/* A sequence or an optional: what it holds is known while importing (import_sequence.c). */
typedef struct {
    dlc_value value; /* that a name is bound to */
    dlc_value **items;
    uint32_t n;
    uint8_t is_optional; /* of no or one item */
    dlc_value *rows;     /* a sequence of as many items as the run says, all of one shape: stacked; NULL: items and n */
} im_list;

im_list *im_list_of(const dlc_import *im, const dlc_value *value); /* NULL: a tensor */
dlc_value *im_list_value(dlc_import *im, dlc_value *const *items, uint32_t n, int is_optional);
dlc_value *im_rows_value(dlc_import *im, dlc_value *rows);
/* import_grow.c: the items of rows one behind the other along an axis, of theirs or a new one. */
dlc_value *im_join_rows(dlc_import *im, dlc_value *rows, int64_t axis, int is_new);

/* --- the node (scope.c, attrs.c) --- */
static inline dlc_value *im_in(const dlc_import *im, uint32_t i)
{
    return i < im->nin ? im->in[i] : NULL;
}
int im_wants(const dlc_import *im, uint32_t output); /* the model uses this output */
/* Reports at the current node, inputs listed. Returns the status. */
dlc_status im_fail(dlc_import *im, dlc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Tells something of the current node that is no fault. */
void im_note(dlc_import *im, const char *text);

void im_rename(dlc_import *im, const char *attribute, const char *name);
int im_has(dlc_import *im, const char *attribute); /* marks nothing */
int64_t im_int(dlc_import *im, const char *attribute, int64_t otherwise);
double im_float(dlc_import *im, const char *attribute, double otherwise);
const char *im_text(dlc_import *im, const char *attribute, const char *otherwise);
/* NULL when absent (or of a wrong kind, which is reported); *n the count. */
const int64_t *im_ints(dlc_import *im, const char *attribute, uint32_t *n);
const float *im_floats(dlc_import *im, const char *attribute, uint32_t *n);
const char **im_texts(dlc_import *im, const char *attribute, uint32_t *n);
const Onnx__AttributeProto *im_attribute(dlc_import *im,
                                         const char *attribute); /* any kind; marks it read */
/* A constant of n strings: a list, or with rank 0 one. */
dlc_value *im_strings(dlc_import *im, const char *const *texts, uint32_t n, uint32_t rank);
/* A tensor attribute as a constant; NULL when absent or reported. */
dlc_value *im_tensor_attribute(dlc_import *im, const char *attribute);
/* One of the words in `choices` ("a|b|c"); anything else is refused by name and gives NULL. */
const char *im_choice(dlc_import *im, const char *attribute, const char *otherwise,
                      const char *choices);
/* Reports an attribute whose only supported value is `only`. False when it was refused. */
int im_only(dlc_import *im, const char *attribute, int64_t otherwise, int64_t only);
/* True while nothing was reported at the current node. */
int im_ok(const dlc_import *im);

/* --- shapes (shape.c) --- */
static inline uint32_t im_rank(const dlc_value *value)
{
    return value->type.rank;
}
/* Element i of a constant of integers. */
int64_t im_int_at(const dlc_value *value, uint32_t i);
/* -rank <= axis < rank becomes 0 <= axis < rank; else reported, -1. */
int im_axis(dlc_import *im, int64_t axis, uint32_t rank);
/* The same of entry i of an attribute; without a list, 0. */
int im_listed_axis(dlc_import *im, const char *name, const int64_t *list, uint32_t i, uint32_t rank);
/* Ascending, distinct; false when reported. out: DLC_MAX_RANK entries. */
int im_axes(dlc_import *im, const int64_t *axes, uint32_t n, uint32_t rank, uint8_t *out);
dlc_expr im_i64(dlc_import *im, int64_t value);
dlc_expr im_simple(dlc_import *im, dlc_expr expr); /* simplified by what is known of the symbols */
/*
 * The same for what becomes a dimension, an offset or a pad. Where sizes of the run decide much,
 * each operator's size has its operand's several times over, and a chain of operators would double
 * it again and again: what has grown too large is computed once at run time and is a symbol from
 * here.
 */
dlc_expr im_size(dlc_import *im, dlc_expr expr);
int im_is_const(dlc_import *im, dlc_expr expr, int64_t *value);
dlc_expr im_product(dlc_import *im, const dlc_expr *dims, uint32_t n);
/*
 * Elements of an integer input that says a shape, as expressions: what is known of it, else one
 * symbol per element bound to its data at run time (in [lo, hi]). NULL when reported (unknown
 * length, more than 64 elements). *n the count.
 */
const dlc_expr *im_elements(dlc_import *im, dlc_value *value, int64_t lo, int64_t hi, uint32_t *n);
/* Elements that must be known at compile time; `what` names them in the refusal ("axes"). NULL when
 * reported. */
const int64_t *im_const_ints(dlc_import *im, dlc_value *value, const char *what, uint32_t *n);
/* The same for floats (any number dtype). */
const double *im_const_floats(dlc_import *im, dlc_value *value, const char *what, uint32_t *n);
/* True and *element when the value is a constant of one element. */
int im_const_scalar(dlc_import *im, const dlc_value *value, double *element);
/* True when every element is known to be 0 (of few thousand; reports nothing). */
int im_is_all_zero(dlc_import *im, const dlc_value *value);
/* Requires a == b of two dimensions; false when they can never be equal, which is reported. */
int im_same_dim(dlc_import *im, dlc_expr a, dlc_expr b, const char *what);
/* False, reported, when broadcasting made the result larger than x. */
int im_keeps_shape(dlc_import *im, const dlc_value *result, const dlc_value *x);
/* Of an ONNX data type; DLC_NONE and a report when dlc has none. */
dlc_dtype im_dtype(dlc_import *im, int64_t onnx_type, const char *what);

/* --- axes that may be data (axes.c): distinct, in [0, rank), in the order given --- */
typedef struct {
    dlc_expr at[DLC_MAX_RANK];
    uint32_t n;
    int is_known; /* all are constants */
} im_axis_list;

/* False when reported. */
int im_axis_input(dlc_import *im, dlc_value *value, uint32_t rank, im_axis_list *axes);
/* Known axes, ascending; false when only the run knows them. */
int im_axes_of(dlc_import *im, const im_axis_list *axes, uint8_t *sorted);
/* of[k] where axes[k] is i, else `otherwise`. */
dlc_expr im_axis_pick(dlc_import *im, const im_axis_list *axes, const dlc_expr *of, uint32_t i,
                      dlc_expr otherwise);
/* The dimensions with 1 at the axes; without the axes; with 1 inserted at the axes. */
void im_axes_kept(dlc_import *im, const im_axis_list *axes, const dlc_expr *dims, uint32_t rank,
                  dlc_expr *out);
void im_axes_dropped(dlc_import *im, const im_axis_list *axes, const dlc_expr *dims, uint32_t rank,
                     dlc_expr *out);
void im_axes_inserted(dlc_import *im, const im_axis_list *axes, const dlc_expr *dims,
                      uint32_t rank, dlc_expr *out);
/* x as [before, at, behind] of an axis. */
dlc_value *im_around_axis(dlc_import *im, dlc_value *x, dlc_expr axis);

/* --- builder (build.c): each returns NULL when an operand is NULL or the node was refused --- */
#define F_IN(...)                                                                                  \
    (dlc_value *const[]){__VA_ARGS__},                                                             \
        (uint32_t)(sizeof((dlc_value *const[]){__VA_ARGS__}) / sizeof(dlc_value *))
#define F_ATTRS(...)                                                                               \
    (const dlc_attr[]){__VA_ARGS__},                                                               \
        (uint32_t)(sizeof((const dlc_attr[]){__VA_ARGS__}) / sizeof(dlc_attr))
#define F_PLAIN NULL, 0

dlc_value *f_node(dlc_import *im, dlc_opcode op, dlc_value *const *inputs, uint32_t ninputs,
                  const dlc_attr *attrs, uint32_t nattrs);
/* With absent inputs allowed (NULL), and several outputs. */
dlc_node *f_node_with(dlc_import *im, dlc_opcode op, dlc_value *const *inputs, uint32_t ninputs,
                      uint32_t noutputs, const dlc_attr *attrs, uint32_t nattrs);
dlc_value *f_scalar(dlc_import *im, dlc_dtype dtype, double value);
dlc_value *f_like(dlc_import *im, const dlc_value *like, double value); /* a scalar of its dtype */
dlc_value *f_floats(dlc_import *im, const float *values, uint32_t n);
dlc_value *f_unary(dlc_import *im, dlc_opcode op, dlc_value *x);
dlc_value *f_binary(dlc_import *im, dlc_opcode op, dlc_value *a, dlc_value *b);
dlc_value *f_add(dlc_import *im, dlc_value *a, dlc_value *b);
dlc_value *f_sub(dlc_import *im, dlc_value *a, dlc_value *b);
dlc_value *f_mul(dlc_import *im, dlc_value *a, dlc_value *b);
dlc_value *f_div(dlc_import *im, dlc_value *a, dlc_value *b);
dlc_value *f_min(dlc_import *im, dlc_value *a, dlc_value *b);
dlc_value *f_max(dlc_import *im, dlc_value *a, dlc_value *b);
dlc_value *f_clip(dlc_import *im, dlc_value *x, double lo, double hi);
dlc_value *f_cast(dlc_import *im, dlc_value *x,
                  dlc_dtype dtype); /* x itself when it has that dtype */
/* To a small float: too large becomes the largest, else infinity or NaN; `mode` of f8e8m0. */
dlc_value *f_encode(dlc_import *im, dlc_value *x, dlc_dtype dtype, int64_t saturate,
                    const char *mode);
dlc_value *f_saturate(dlc_import *im, dlc_value *x, dlc_dtype dtype); /* clamps */
dlc_value *f_where(dlc_import *im, dlc_value *condition, dlc_value *yes, dlc_value *no);
dlc_value *f_reshape(dlc_import *im, dlc_value *x, const dlc_expr *dims, uint32_t rank);
dlc_value *f_transpose(dlc_import *im, dlc_value *x, const uint8_t *perm);
dlc_value *f_swap_last(dlc_import *im, dlc_value *x); /* the last two dimensions */
dlc_value *f_expand(dlc_import *im, dlc_value *x, const dlc_expr *dims, uint32_t rank);
dlc_value *f_insert_axis(dlc_import *im, dlc_value *x, uint32_t axis); /* of size 1 */
dlc_value *f_drop_axis(dlc_import *im, dlc_value *x, uint32_t axis);   /* of size 1 */
/* x[..., start : start + extent, ...] along one axis */
dlc_value *f_slice(dlc_import *im, dlc_value *x, uint32_t axis, dlc_expr start, dlc_expr extent);
dlc_value *f_reverse(dlc_import *im, dlc_value *x, uint32_t axis);
dlc_value *f_concat(dlc_import *im, dlc_value *const *parts, uint32_t n, uint32_t axis);
dlc_value *f_gather(dlc_import *im, dlc_value *x, dlc_value *indices, uint32_t axis);
dlc_value *f_matmul(dlc_import *im, dlc_value *a, dlc_value *b); /* rank >= 2 */
dlc_value *f_reduce(dlc_import *im, dlc_opcode op, dlc_value *x, const uint8_t *axes,
                    uint32_t naxes, int keepdims);
dlc_value *f_reduce_last(dlc_import *im, dlc_opcode op, dlc_value *x, uint32_t n,
                         int keepdims);                          /* the last n axes */
dlc_value *f_iota(dlc_import *im, dlc_dtype dtype, dlc_expr n);  /* 0 .. n-1 */
dlc_value *f_dim(dlc_import *im, dlc_dtype dtype, dlc_expr dim); /* a scalar */
dlc_value *f_channel(dlc_import *im, dlc_value *v, uint32_t rank,
                     uint32_t axis); /* [c] -> [c,1,…] to meet `axis` of `rank` */
dlc_value *f_softmax(dlc_import *im, dlc_value *x, uint32_t axis);
dlc_value *f_add_all(dlc_import *im, dlc_opcode op, dlc_value *const *values, uint32_t n);

/* import_index.c: i64[rank, count], the indices of what is not zero */
dlc_value *im_nonzero(dlc_import *im, dlc_value *x);

/* The importers that onnx_ops.def and the other domains' tables name. */
#define DLC_ONNX(name, since, until, importer, argument, lo, hi, outputs)                          \
    void import_##importer(dlc_import *im);
#define DLC_ONNX_LIST DLC_ONNX
#include "frontend/onnx_ops.def"
#include "frontend/ml_ops.def"
#include "frontend/ms_ops.def"
#include "frontend/preview_ops.def"
#include "frontend/training_ops.def"
#undef DLC_ONNX_LIST
#undef DLC_ONNX

#endif

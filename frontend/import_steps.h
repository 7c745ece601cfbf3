/* The steps of an import, each in the file that has its name; only import.c and these files call
 * them. */
#ifndef DLC_FRONTEND_IMPORT_STEPS_H
#define DLC_FRONTEND_IMPORT_STEPS_H

#include "frontend/import.h"

/* interface.c: opsets, initializers, inputs, outputs, declared types */
DLC_NODISCARD dlc_status im_read_header(dlc_import *im);
/* The imported domains and versions of a model or function. */
DLC_NODISCARD dlc_status im_read_opsets(dlc_import *im, Onnx__OperatorSetIdProto **opsets, size_t n,
                                        dlc_table *table, const char *place);
void im_read_initializers(dlc_import *im, const Onnx__GraphProto *graph, dlc_scope *scope);
void im_read_inputs(dlc_import *im, dlc_scope *scope);
/* given.c: what the user gave for this input, a constant of its type; NULL: nothing; &im->poison:
 * it is reported */
dlc_value *im_given_value(dlc_import *im, const char *name, const dlc_type *type);
void im_check_given_values(dlc_import *im, const Onnx__GraphProto *graph);
void im_write_outputs(dlc_import *im, dlc_scope *scope);
void im_check_declared(dlc_import *im, const Onnx__ValueInfoProto *declared,
                       const dlc_value *value);
const char *im_domain(const char *domain);
/* A constant of the graph from a model's tensor; NULL when reported. */
dlc_value *im_constant(dlc_import *im, const char *name, const dlc_dense *dense);

/* functions.c */
DLC_NODISCARD dlc_status im_count_nodes(dlc_import *im); /* after inlining, before it */
/* Graphs inside of nodes: branches, bodies of loops. */
typedef dlc_vec(const Onnx__GraphProto *) im_graphs;
void im_push_graphs(dlc_import *im, const Onnx__NodeProto *node, im_graphs *graphs); /* the node's, not those inside of them */
void im_sort(dlc_import *im); /* nodes of all graphs and functions, each behind those that it reads (order.c) */
Onnx__FunctionProto *im_function(dlc_import *im, const char *domain, const char *name,
                                 const char *overload);
/* Pushes its body. False: there is none, which was reported. */
int im_call(dlc_import *im, Onnx__FunctionProto *function);

/* attrs.c, ops.c, problems.c */
void im_read_attributes(dlc_import *im, const dlc_body *body);
const dlc_onnx_row *im_row(const char *domain, const char *name, int64_t opset);
const dlc_onnx_row *im_rows(const char *domain, size_t *n); /* all, by name and opset */
/* NULL: it may be; else which types may. Of the default domain. */
const char *im_wanted_types(const char *name, uint32_t input, dlc_dtype dtype);
int im_row_range(const char *domain, const char *name, int *first, int *last);
void dlc_problems_group(dlc_diag *diag, uint32_t first);

/*
 * import_control.c: an iteration is done, with values[] of the body's results (NULL: poisoned).
 * True: the body was set up to run again. False: im->out holds the loop's outputs (at the calling
 * node, which is open again).
 */
int im_repeat(dlc_import *im, dlc_body *body, dlc_value **values);
/* Pushes a subgraph of the node at hand; `then` gets its results (NULL: poisoned) at the node. */
void im_push_graph(dlc_import *im, const Onnx__GraphProto *graph, dlc_value *const *inputs,
                   uint32_t n, void (*then)(dlc_import *im, void *state, dlc_value **values),
                   void *state);

/* scope.c */
/* False: no such name. *value NULL: a function's input that its call leaves out. */
int im_lookup(const dlc_scope *scope, const char *name, dlc_value **value);
dlc_scope *im_scope(dlc_import *im, dlc_scope *outer);
dlc_status im_bind(dlc_import *im, dlc_scope *scope, const char *name, dlc_value *value);
void im_push(dlc_import *im, const dlc_body *body);
const dlc_body *im_body(const dlc_import *im); /* being imported */

#endif

/* Models read from made bytes, for tests of the importer. */
#ifndef DLC_TESTS_UNIT_ONNX_IMPORT_H
#define DLC_TESTS_UNIT_ONNX_IMPORT_H

#include <check.h>

#include "frontend/import_steps.h"
#include "tests/unit/onnx_bytes.h"

typedef struct {
    dlc_arena *arena;
    dlc_diag diag;
    dlc_onnx *model;
    dlc_graph *graph;
    dlc_status status;
    pb bytes; /* weights of the graph are views of them */
} import;

static inline import read_model(pb *bytes, const dlc_onnx_options *options)
{
    import i = {.arena = dlc_arena_create(0), .bytes = *bytes};
    *bytes = (pb){0};
    dlc_diag_init(&i.diag, i.arena);
    i.status = dlc_onnx_read(i.bytes.data, i.bytes.n, "m.onnx", options, i.arena, &i.diag, &i.model,
                             &i.graph);
    return i;
}

static inline import read_graph(pb *graph, int opset)
{
    pb model = model_of(graph, opset);
    return read_model(&model, NULL);
}

static inline void done(import *i)
{
    dlc_onnx_close(i->model);
    dlc_arena_destroy(i->arena);
    free(i->bytes.data);
}

static inline void expect_output(import *i, const char *type)
{
    dlc_str text = {0};
    ck_assert_msg(i->status == DLC_OK, "%s: %s", i->diag.nmessages ? i->diag.messages[0].place : "",
                  i->diag.nmessages ? i->diag.messages[0].text : "");
    dlc_type_print(i->graph, &i->graph->outputs.data[0].value->type, &text);
    ck_assert_str_eq(dlc_str_text(&text), type);
    dlc_str_deinit(&text);
    done(i);
}

static inline void expect_refusal(import *i, dlc_status status, const char *text)
{
    ck_assert_int_eq(i->status, status);
    ck_assert_uint_ge(i->diag.nmessages, 1);
    const dlc_message *message = &i->diag.messages[0];
    ck_assert_msg(strstr(message->text, text) || strstr(message->place, text),
                  "'%s: %s' lacks '%s'", message->place, message->text, text);
    done(i);
}

static inline pb function_of(const char *name, const char *inputs, const char *outputs, pb *body, int n)
{
    pb function = {0}, opset = {0};
    pb_text(&function, 1, name);
    put_names(&function, 4, inputs);
    put_names(&function, 5, outputs);
    for (int i = 0; i < n; i++)
        pb_message(&function, 7, &body[i]);
    pb_int(&opset, 2, 17);
    pb_message(&function, 9, &opset);
    pb own = {0};
    pb_text(&own, 1, "my");
    pb_int(&own, 2, 1);
    pb_message(&function, 9, &own);
    pb_text(&function, 10, "my");
    return function;
}

static inline pb call_of(const char *name, const char *inputs, const char *outputs)
{
    pb node = node_of(name, inputs, outputs);
    pb_text(&node, 7, "my");
    return node;
}

static inline pb calling_model(const char *name, pb *functions, int n)
{
    pb graph = {0}, own = {0};
    add_part(&graph, NODE, call_of(name, "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    pb model = model_of(&graph, 17);
    pb_text(&own, 1, "my");
    pb_int(&own, 2, 1);
    pb_message(&model, 8, &own);
    for (int i = 0; i < n; i++)
        pb_message(&model, 25, &functions[i]);
    return model;
}

static inline pb branch_of(const char *op)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of(op, "x", "r"));
    pb_text(&graph, 2, "branch");
    add_part(&graph, OUTPUT, value_info("r", FLOAT, "2"));
    return graph;
}

#endif

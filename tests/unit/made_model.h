/*
 * Models built by hand for tests of codegen and runtime: a graph through its builder, every node a
 * kernel of its own, the real passes behind `fuse`.
 */
#ifndef DLC_TESTS_MADE_MODEL_H
#define DLC_TESTS_MADE_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "passes/fuse/fuse.h"
#include "tests/unit/suite.h"

typedef struct {
    dlc_arena *arena;
    dlc_diag diag;
    dlc_graph *graph;
    dlc_pass_ctx ctx;
} made_model;

dlc_status dlc_pass_lower(dlc_pass_ctx *ctx);
dlc_status dlc_pass_choose(dlc_pass_ctx *ctx);
dlc_status dlc_pass_transfer(dlc_pass_ctx *ctx);
dlc_status dlc_pass_plan_memory(dlc_pass_ctx *ctx);

static inline made_model made_begin(const char *name)
{
    made_model m = {.arena = dlc_arena_create(0)};
    dlc_diag *diag = dlc_new(m.arena, dlc_diag); /* the graph keeps its address */
    dlc_diag_init(diag, m.arena);
    m.graph = dlc_graph_create(m.arena, diag, "made.onnx");
    m.graph->name = name;
    return m;
}

static inline void made_end(made_model *m)
{
    dlc_arena_destroy(m->arena);
}

/* An input; a dimension below 0 is symbol -dim - 1, made beforehand. */
static inline dlc_value *made_input(made_model *m, const char *name, dlc_dtype dtype, uint8_t rank,
                                    const int64_t *dims)
{
    dlc_type type = {.dtype = dtype, .rank = rank};
    for (uint8_t i = 0; i < rank; i++)
        type.dims[i] = dims[i] < 0 ? dlc_expr_sym(m->graph->pool, (uint32_t)(-dims[i] - 1))
                                   : dlc_expr_i64(m->graph->pool, dims[i]);
    dlc_value *value = dlc_graph_input(m->graph, name, &type);
    for (uint8_t i = 0; i < rank; i++)
        if (dims[i] < 0 && !m->graph->symbols.data[-dims[i] - 1].value) {
            m->graph->symbols.data[-dims[i] - 1].value = value;
            m->graph->symbols.data[-dims[i] - 1].index = i;
        }
    return value;
}

static inline dlc_node *made_node(made_model *m, dlc_opcode op, const char *name, uint32_t ninputs,
                                  dlc_value *const *inputs, uint32_t noutputs, uint32_t nattrs,
                                  const dlc_attr *attrs)
{
    dlc_node_spec spec = {.op = op,
                          .name = name,
                          .inputs = inputs,
                          .ninputs = ninputs,
                          .noutputs = noutputs,
                          .attrs = attrs,
                          .nattrs = nattrs};
    dlc_node *node = dlc_graph_node(m->graph, &spec);
    ck_assert_msg(node != NULL, "%s",
                  m->graph->diag->nmessages ? m->graph->diag->messages[0].text : "no message");
    return node;
}

static inline dlc_value *made_unary(made_model *m, dlc_opcode op, const char *name, dlc_value *x)
{
    return made_node(m, op, name, 1, &x, 1, 0, NULL)->outputs[0];
}

static inline dlc_value *made_binary(made_model *m, dlc_opcode op, const char *name, dlc_value *a,
                                     dlc_value *b)
{
    dlc_value *inputs[] = {a, b};
    return made_node(m, op, name, 2, inputs, 1, 0, NULL)->outputs[0];
}

/* One group per node, then lower, choose, transfer, plan_memory. */
static inline dlc_module *made_finish(made_model *m, const char *target)
{
    dlc_groups *groups = dlc_new(m->arena, dlc_groups);
    groups->of_node = dlc_new_array(m->arena, uint32_t, m->graph->nnodes + 1);
    groups->order = dlc_new_array(m->arena, uint32_t, m->graph->nnodes + 1);
    groups->members = dlc_arena_array(m->arena, m->graph->nnodes + 1, sizeof *groups->members, 8);
    for (dlc_node *node = m->graph->first; node; node = node->next) {
        groups->of_node[node->id] = UINT32_MAX;
        if (node->op == DLC_OP_CONSTANT)
            continue;
        uint32_t g = groups->ngroups++;
        groups->of_node[node->id] = g;
        groups->order[g] = g;
        dlc_vec_push(m->arena, &groups->members[g], node);
    }
    m->ctx = (dlc_pass_ctx){.graph = m->graph,
                            .scratch = dlc_arena_create(0),
                            .target = dlc_target_find(target),
                            .diag = m->graph->diag,
                            .groups = groups};
    dlc_status status = dlc_pass_lower(&m->ctx);
    if (status == DLC_OK)
        status = dlc_pass_choose(&m->ctx);
    if (status == DLC_OK)
        status = dlc_pass_transfer(&m->ctx);
    if (status == DLC_OK)
        status = dlc_pass_plan_memory(&m->ctx);
    ck_assert_msg(status == DLC_OK, "%s",
                  m->graph->diag->nmessages ? m->graph->diag->messages[0].text : "no message");
    dlc_arena_destroy(m->ctx.scratch);
    return m->ctx.module;
}

#endif

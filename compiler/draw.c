/* The graph after the passes as dot text for graphviz; nodes of one fusion group share a colour. */
#include "compiler/driver.h"

#include "passes/fuse/fuse.h"

#include <stdio.h>

enum { NCOLOURS = 8 };

static const char *const colours[NCOLOURS] = {"#cfe2ff", "#d1e7dd", "#fff3cd", "#f8d7da",
                                              "#e2d9f3", "#cff4fc", "#ffe5d0", "#e9ecef"};

static int has_box(const dlc_node *node)
{
    return node->op != DLC_OP_CONSTANT;
}

static const char *colour_of(const dlc_model *model, const dlc_node *node)
{
    const dlc_groups *groups = model->ctx.groups;
    uint32_t group = groups ? groups->of_node[node->id] : UINT32_MAX;
    return group == UINT32_MAX ? "#ffffff" : colours[group % NCOLOURS];
}

static const char *name_of(const dlc_node *node)
{
    return node->origin ? node->origin->name : node->outputs[0] ? node->outputs[0]->name : "";
}

static void dot_label(dlc_str *out, const dlc_model *model, const dlc_node *node)
{
    dlc_str text = {0};
    dlc_str_printf(&text, "%s: %s", dlc_ops[node->op].text, name_of(node));
    dlc_str_printf(out, "  n%u [style=filled, fillcolor=\"%s\", label=", node->id,
                   colour_of(model, node));
    dlc_str_add_quoted(out, dlc_str_text(&text));
    dlc_str_add(out, "];\n");
    dlc_str_deinit(&text);
}

static void dot_edge(dlc_str *out, const dlc_model *model, const dlc_value *value, const char *to)
{
    dlc_str type = {0};
    dlc_type_print(model->graph, &value->type, &type);
    if (value->def)
        dlc_str_printf(out, "  n%u -> %s [label=", value->def->id, to);
    else
        dlc_str_printf(out, "  v%u -> %s [label=", value->id, to);
    dlc_str_add_quoted(out, dlc_str_text(&type));
    dlc_str_add(out, "];\n");
    dlc_str_deinit(&type);
}

void dlc_model_draw_dot(dlc_model *model)
{
    dlc_str *out = &model->buffer;
    const dlc_graph *graph = model->graph;
    char to[32];
    dlc_str_add(out, "digraph model {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        dlc_str_printf(out, "  v%u [shape=ellipse, label=", graph->inputs.data[i]->id);
        dlc_str_add_quoted(out, graph->inputs.data[i]->name);
        dlc_str_add(out, "];\n");
    }
    for (const dlc_node *node = graph->first; node; node = node->next) {
        if (!has_box(node))
            continue;
        dot_label(out, model, node);
        snprintf(to, sizeof to, "n%u", node->id);
        for (uint32_t i = 0; i < node->ninputs; i++)
            if (node->inputs[i] && !node->inputs[i]->data)
                dot_edge(out, model, node->inputs[i], to);
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        dlc_str_printf(out, "  o%u [shape=ellipse, label=", i);
        dlc_str_add_quoted(out, graph->outputs.data[i].name);
        dlc_str_add(out, "];\n");
        snprintf(to, sizeof to, "o%u", i);
        if (!graph->outputs.data[i].value->data)
            dot_edge(out, model, graph->outputs.data[i].value, to);
    }
    dlc_str_add(out, "}\n");
}

/*
 * Drawings of the graph after the passes: dot text for graphviz, and an SVG of our own that needs
 * no other program. The SVG puts a node one row below its deepest producer and beside the others of
 * that row, in graph order; nodes of one fusion group share a colour. One pass over the graph, no
 * crossing minimisation: it is for looking at models of some hundred nodes.
 */
#include "compiler/driver.h"

#include "passes/fuse/fuse.h"

#include <stdio.h>
#include <string.h>

enum {
    BOX_W = 150,
    BOX_H = 34,
    GAP_X = 24,
    GAP_Y = 36,
    MARGIN = 16,
    NCOLOURS = 8,
    MOST_CHARS = 22
};

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

/* ---- dot ---- */

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

/* ---- SVG ---- */

typedef struct {
    uint32_t row, column;
} place;

static void add_xml(dlc_str *out, const char *text, uint32_t most)
{
    for (uint32_t n = 0; *text && n < most; text++, n++) {
        unsigned char c = (unsigned char)*text;
        if (strchr("<>&\"", c) || c < 32 || c > 126)
            dlc_str_printf(out, "&#%u;", c < 32 || c > 126 ? '?' : c);
        else
            dlc_str_addn(out, text, 1);
    }
}

static place *layout_graph(dlc_model *model, uint32_t *nrows, uint32_t *ncolumns)
{
    const dlc_graph *graph = model->graph;
    place *places = dlc_new_array(model->scratch, place, graph->nnodes + 1);
    uint32_t *used = dlc_new_array(model->scratch, uint32_t, graph->nnodes + 1);
    *nrows = *ncolumns = 0;
    for (const dlc_node *node = graph->first; node; node = node->next) {
        if (!has_box(node))
            continue;
        place *at = &places[node->id];
        for (uint32_t i = 0; i < node->ninputs; i++)
            if (node->inputs[i] && node->inputs[i]->def && has_box(node->inputs[i]->def) &&
                places[node->inputs[i]->def->id].row >= at->row)
                at->row = places[node->inputs[i]->def->id].row + 1;
        at->column = used[at->row]++;
        *nrows = at->row + 1 > *nrows ? at->row + 1 : *nrows;
        *ncolumns = at->column + 1 > *ncolumns ? at->column + 1 : *ncolumns;
    }
    return places;
}

static uint32_t x_of(place at)
{
    return MARGIN + at.column * (BOX_W + GAP_X);
}

static uint32_t y_of(place at)
{
    return MARGIN + at.row * (BOX_H + GAP_Y);
}

static void svg_edges(dlc_str *out, const dlc_node *node, const place *places)
{
    place to = places[node->id];
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_node *from = node->inputs[i] ? node->inputs[i]->def : NULL;
        if (!from || !has_box(from))
            continue;
        place at = places[from->id];
        dlc_str_printf(out, "<line x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\" stroke=\"#888\"/>\n",
                       x_of(at) + BOX_W / 2, y_of(at) + BOX_H, x_of(to) + BOX_W / 2, y_of(to));
    }
}

static void svg_box(dlc_str *out, const dlc_model *model, const dlc_node *node, place at)
{
    dlc_str_printf(out, "<g><title>");
    add_xml(out, name_of(node), 1000);
    dlc_str_printf(out,
                   "</title><rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"4\" "
                   "fill=\"%s\" stroke=\"#555\"/>",
                   x_of(at), y_of(at), BOX_W, BOX_H, colour_of(model, node));
    dlc_str_printf(out, "<text x=\"%u\" y=\"%u\" font-weight=\"bold\">", x_of(at) + 6,
                   y_of(at) + 14);
    add_xml(out, dlc_ops[node->op].text, MOST_CHARS);
    const char *name = name_of(node);
    size_t n = strlen(name);
    dlc_str_printf(out, "</text><text x=\"%u\" y=\"%u\">", x_of(at) + 6, y_of(at) + 28);
    add_xml(out, n > MOST_CHARS ? name + n - MOST_CHARS : name, MOST_CHARS);
    dlc_str_add(out, "</text></g>\n");
}

void dlc_model_draw_svg(dlc_model *model)
{
    dlc_str *out = &model->buffer;
    uint32_t nrows, ncolumns;
    const place *places = layout_graph(model, &nrows, &ncolumns);
    dlc_str_printf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                   "font-family=\"sans-serif\" "
                   "font-size=\"11\">\n",
                   2 * MARGIN + ncolumns * (BOX_W + GAP_X), 2 * MARGIN + nrows * (BOX_H + GAP_Y));
    for (const dlc_node *node = model->graph->first; node; node = node->next)
        if (has_box(node))
            svg_edges(out, node, places);
    for (const dlc_node *node = model->graph->first; node; node = node->next)
        if (has_box(node))
            svg_box(out, model, node, places[node->id]);
    dlc_str_add(out, "</svg>\n");
}

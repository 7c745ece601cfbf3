/*
 * Steps, the values that go between them, and why those are not inside one kernel. The verdicts of
 * fusion are about edges of the graph: an edge is found by the value's name, else by the nodes that
 * both steps compute, since later passes make kernels of several groups.
 */
#include "compiler/plan.h"

#include "ir/graph/form.h"
#include "ir/module/text.h"
#include "passes/fuse/fuse.h"

#include <string.h>

typedef struct {
    dlc_model *model;
    const dlc_module *module;
    const int64_t *symbols;
    uint32_t *writer, *first, *last; /* steps by value; NONE */
} plan;

enum { NONE = 0xffffffffu };

static int has_node(const dlc_step *step, const char *name)
{
    for (uint32_t i = 0; i < step->nnodes; i++)
        if (!strcmp(step->nodes[i], name))
            return 1;
    return 0;
}

static double bytes_of(const plan *p, uint32_t value)
{
    return (double)dlc_expr_eval(p->module->pool, dlc_module_value_bytes(p->module, value), p->symbols);
}

static void add_type(const plan *p, cJSON *row, const char *key, uint32_t value)
{
    dlc_str text = {0};
    dlc_module_type_print(p->module, &p->module->values.data[value].type, &text);
    cJSON_AddStringToObject(row, key, dlc_str_text(&text));
    dlc_str_deinit(&text);
}

/* ---- steps ---- */

static int reduces(const dlc_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        if (kernel->stages.data[i].reduce.n)
            return 1;
    return 0;
}

/* The operator of a contraction among the step's nodes, or NULL. */
static const char *contraction_of(const plan *p, const dlc_step *step)
{
    for (dlc_node *node = p->model->graph ? p->model->graph->first : NULL; node; node = node->next)
        if (node->origin && has_node(step, node->origin->name) &&
            dlc_form_of(p->model->graph, node, p->model->scratch).is_contraction)
            return dlc_ops[node->op].text;
    return NULL;
}

static const char *what_it_does(const plan *p, const dlc_step *step)
{
    switch ((dlc_step_kind)step->kind) {
    case DLC_STEP_LAUNCH:
        break;
    case DLC_STEP_OPAQUE:
        return dlc_opaque_rows[step->opaque].text;
    case DLC_STEP_BIND:
        return "bind";
    case DLC_STEP_COPY:
        return "copy";
    case DLC_STEP_SET:
        return "set";
    case DLC_STEP_IF:
        return "if";
    case DLC_STEP_ELSE:
        return "else";
    case DLC_STEP_LOOP:
        return "loop";
    case DLC_STEP_END:
        return "end";
    }
    if (!reduces(p->module->kernels.data[step->kernel].kernel))
        return "map";
    const char *name = contraction_of(p, step);
    return name ? name : "reduction";
}

static cJSON *step_json(const plan *p, const dlc_step *step, uint32_t *nlaunches)
{
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "name", step->name);
    cJSON_AddStringToObject(row, "does", what_it_does(p, step));
    if (step->kind == DLC_STEP_LAUNCH) {
        cJSON_AddNumberToObject(row, "kernel", (*nlaunches)++);
        cJSON_AddNumberToObject(row, "code", step->kernel);
    }
    for (uint32_t i = 0; i < step->nvalues; i++)
        if (dlc_step_writes(p->module, step, i)) {
            add_type(p, row, "result", step->values[i]);
            break;
        }
    return row;
}

/* ---- links ---- */

static const char *name_of(const dlc_node *node)
{
    return !node                ? ""
           : node->origin       ? node->origin->name
           : node->outputs[0] ? node->outputs[0]->name
                                : "";
}

/* How well the edge fits: 0 not at all. */
static int fits(const dlc_edge *edge, const char *value, const dlc_step *from, const dlc_step *to)
{
    int is_value = edge->value && edge->value->name && !strcmp(edge->value->name, value);
    int is_from = has_node(from, name_of(edge->from)), is_to = has_node(to, name_of(edge->to));
    if (edge->fused || (!is_value && !is_from) || !is_to)
        return 0;
    return 1 + 2 * is_value + is_from;
}

static const dlc_edge *find_edge(const plan *p, const char *value, const dlc_step *from, const dlc_step *to)
{
    const dlc_pass_ctx *ctx = &p->model->ctx;
    const dlc_edge *best = NULL;
    int most = 0;
    for (uint32_t i = 0; i < ctx->edges.n; i++) {
        int fit = fits(&ctx->edges.data[i], value, from, to);
        if (fit > most) {
            most = fit;
            best = &ctx->edges.data[i];
        }
    }
    return best;
}

static cJSON *link_json(const plan *p, uint32_t from, uint32_t to, uint32_t value)
{
    const dlc_step *steps = p->module->steps.data;
    const char *name = p->module->values.data[value].name;
    const dlc_edge *edge = find_edge(p, name, &steps[from], &steps[to]);
    cJSON *row = cJSON_CreateObject();
    cJSON_AddNumberToObject(row, "from", from);
    cJSON_AddNumberToObject(row, "to", to);
    cJSON_AddStringToObject(row, "value", name);
    add_type(p, row, "type", value);
    cJSON_AddNumberToObject(row, "bytes", bytes_of(p, value));
    cJSON_AddStringToObject(row, "reason", edge ? dlc_reason_text((dlc_reason)edge->reason) : "");
    cJSON_AddStringToObject(row, "text",
                            !edge        ? ""
                            : edge->text ? edge->text
                                         : dlc_reason_sentence((dlc_reason)edge->reason));
    return row;
}

/* A step that reads a value twice has one link. */
static int is_first(const dlc_step *step, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (step->values[j] == step->values[i])
            return 0;
    return 1;
}

static void visit(plan *p, uint32_t s, cJSON *links)
{
    const dlc_step *step = &p->module->steps.data[s];
    for (uint32_t i = 0; i < step->nvalues; i++) {
        uint32_t value = step->values[i], place = dlc_module_place_of(p->module, value);
        int writes = dlc_step_writes(p->module, step, i);
        p->first[place] = p->first[place] == NONE ? s : p->first[place];
        p->last[place] = s;
        if (!writes && p->writer[place] != NONE && is_first(step, i))
            cJSON_AddItemToArray(links, link_json(p, p->writer[place], s, value));
        if (writes)
            p->writer[place] = s;
    }
}

static void add_lives(const plan *p, cJSON *json)
{
    cJSON *rows = cJSON_AddArrayToObject(json, "lives");
    for (uint32_t v = 0; v < p->module->values.n; v++) {
        const dlc_module_value *value = &p->module->values.data[v];
        if (value->role != DLC_VALUE_TEMP || !value->offset || p->first[v] == NONE)
            continue;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "value", value->name);
        add_type(p, row, "type", v);
        cJSON_AddNumberToObject(row, "offset", (double)dlc_expr_eval(p->module->pool, value->offset, p->symbols));
        cJSON_AddNumberToObject(row, "bytes", bytes_of(p, v));
        cJSON_AddNumberToObject(row, "first", p->first[v]);
        cJSON_AddNumberToObject(row, "last", p->last[v]);
        cJSON_AddItemToArray(rows, row);
    }
}

void dlc_model_add_plan(dlc_model *model, cJSON *json, const int64_t *symbols)
{
    const dlc_module *module = model->ctx.module;
    plan p = {.model = model, .module = module, .symbols = symbols};
    uint32_t nlaunches = 0, *by_value = dlc_new_array(model->scratch, uint32_t, 3 * module->values.n + 3);
    memset(by_value, 0xff, (3 * module->values.n + 3) * sizeof *by_value);
    p.writer = by_value;
    p.first = by_value + module->values.n;
    p.last = p.first + module->values.n;
    cJSON *rows = cJSON_AddArrayToObject(json, "plan");
    cJSON *links = cJSON_AddArrayToObject(json, "links");
    for (uint32_t s = 0; s < module->steps.n; s++) {
        cJSON_AddItemToArray(rows, step_json(&p, &module->steps.data[s], &nlaunches));
        visit(&p, s, links);
    }
    add_lives(&p, json);
}

/* What `dlc explain` shows: the engine's verdict on every edge of the graph, and the rewrite rules
 * that fired. */
#include "compiler/driver.h"
#include "compiler/json.h"

#include "passes/fuse/fuse.h"

#include <string.h>

static const char *name_of(const dlc_node *node)
{
    if (!node)
        return "graph";
    if (node->origin)
        return node->origin->name;
    return node->outputs[0] ? node->outputs[0]->name : dlc_ops[node->op].text;
}

static const char *operator_of(const dlc_node *node)
{
    return node ? dlc_ops[node->op].text : "input";
}

/* Rules by name, and how often. */
static void add_rules(const dlc_pass_ctx *ctx, cJSON *json)
{
    cJSON *rules = cJSON_AddObjectToObject(json, "rules");
    for (uint32_t i = 0; i < ctx->rules.n; i++) {
        cJSON *row = cJSON_GetObjectItemCaseSensitive(rules, ctx->rules.data[i].rule);
        if (row)
            cJSON_SetNumberValue(row, row->valuedouble + 1);
        else
            cJSON_AddNumberToObject(rules, ctx->rules.data[i].rule, 1);
    }
}

static cJSON *edge_json(const dlc_edge *edge)
{
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "from", name_of(edge->from));
    cJSON_AddStringToObject(row, "to", name_of(edge->to));
    cJSON_AddStringToObject(row, "from_operator", operator_of(edge->from));
    cJSON_AddStringToObject(row, "to_operator", operator_of(edge->to));
    cJSON_AddStringToObject(row, "value", edge->value ? edge->value->name : "");
    cJSON_AddBoolToObject(row, "fused", edge->fused);
    cJSON_AddStringToObject(row, "reason", dlc_reason_text((dlc_reason)edge->reason));
    cJSON_AddStringToObject(
        row, "text", edge->text ? edge->text : dlc_reason_sentence((dlc_reason)edge->reason));
    cJSON_AddNumberToObject(row, "bytes", edge->bytes_saved);
    return row;
}

static void add_json(dlc_model *model)
{
    const dlc_pass_ctx *ctx = &model->ctx;
    cJSON *json = cJSON_CreateObject(), *edges;
    cJSON_AddStringToObject(json, "model", model->graph->file);
    cJSON_AddStringToObject(json, "fusion", ctx->fusion);
    cJSON_AddNumberToObject(json, "groups", ctx->groups ? ctx->groups->ngroups : 0);
    add_rules(ctx, json);
    edges = cJSON_AddArrayToObject(json, "edges");
    for (uint32_t i = 0; i < ctx->edges.n; i++)
        cJSON_AddItemToArray(edges, edge_json(&ctx->edges.data[i]));
    char *text = cJSON_Print(json);
    dlc_str_add(&model->buffer, text);
    cJSON_free(text);
    cJSON_Delete(json);
}

static void add_text(dlc_model *model)
{
    const dlc_pass_ctx *ctx = &model->ctx;
    uint32_t nfused = 0;
    double saved = 0;
    for (uint32_t i = 0; i < ctx->edges.n; i++) {
        const dlc_edge *edge = &ctx->edges.data[i];
        nfused += edge->fused;
        saved += edge->fused ? edge->bytes_saved : 0;
        dlc_str_printf(&model->buffer, "%s  %s (%s) -> %s (%s)",
                       edge->fused ? "fused    " : "not fused", dlc_arena_line(model->scratch, name_of(edge->from)),
                       operator_of(edge->from), dlc_arena_line(model->scratch, name_of(edge->to)), operator_of(edge->to));
        if (!edge->fused)
            dlc_str_printf(&model->buffer, ": %s: %s", dlc_reason_text((dlc_reason)edge->reason),
                           edge->text ? dlc_arena_line(model->scratch, edge->text) : dlc_reason_sentence((dlc_reason)edge->reason));
        if (edge->bytes_saved > 0)
            dlc_str_printf(&model->buffer, " (%.1f KB)", edge->bytes_saved / 1e3);
        dlc_str_add(&model->buffer, "\n");
    }
    dlc_str_printf(&model->buffer,
                   "%u of %u edges fused by %s into %u kernels, %.1f MB less moved\n", nfused,
                   ctx->edges.n, ctx->fusion, ctx->groups ? ctx->groups->ngroups : 0, saved / 1e6);
}

dlc_status dlc_model_explain(dlc_model *model, const char *format)
{
    DLC_TRY(dlc_model_needs_graph(model, "fusion is decided before"));
    if (!strcmp(format, "json"))
        add_json(model);
    else if (!strcmp(format, "text"))
        add_text(model);
    else
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL,
                             "the format '%s' is unknown; there are text and json", format);
    return DLC_OK;
}

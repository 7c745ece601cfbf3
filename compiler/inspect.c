/*
 * What `dlc inspect` shows of a model: one JSON value holds everything; the text is made from it,
 * so the two cannot differ.
 */
#include "compiler/driver.h"
#include "compiler/json.h"
#include "compiler/plan.h"
#include "compiler/report.h"

#include "passes/fuse/fuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_text(cJSON *object, const char *key, const char *text)
{
    cJSON_AddStringToObject(object, key, text ? text : "");
}

static const char *type_text(dlc_model *model, const dlc_type *type)
{
    dlc_str text = {0};
    dlc_model_type_print(model, type, &text);
    const char *copy = dlc_arena_strdup(model->scratch, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

static double elems_of(const dlc_model *model, const dlc_type *type, const int64_t *symbols)
{
    double elems = 1;
    for (uint32_t d = 0; d < type->rank; d++)
        elems *= (double)dlc_expr_eval(model->graph->pool, type->dims[d], symbols);
    return elems;
}

static double bytes_of(const dlc_model *model, const dlc_type *type, const int64_t *symbols)
{
    return elems_of(model, type, symbols) * dlc_dtype_bytes(type->dtype);
}

/* ---- the graph ---- */

static void add_interface(dlc_model *model, cJSON *json)
{
    static const struct {
        const char *key;
        const dlc_type *(*type)(const dlc_model *model, uint32_t i, const char **name);
    } sides[] = {{"inputs", dlc_model_input_type}, {"outputs", dlc_model_output_type}};
    for (int side = 0; side < 2; side++) {
        const dlc_type *type;
        const char *name;
        cJSON *rows = cJSON_AddArrayToObject(json, sides[side].key);
        for (uint32_t i = 0; (type = sides[side].type(model, i, &name)); i++) {
            cJSON *row = cJSON_CreateObject();
            add_text(row, "name", name);
            add_text(row, "type", type_text(model, type));
            cJSON_AddItemToArray(rows, row);
        }
    }
}

static void count(cJSON *object, const char *key)
{
    cJSON *row = cJSON_GetObjectItemCaseSensitive(object, key);
    if (row)
        cJSON_SetNumberValue(row, row->valuedouble + 1);
    else
        cJSON_AddNumberToObject(object, key, 1);
}

static void add_operators(dlc_model *model, cJSON *json, const int64_t *symbols)
{
    cJSON *operators = cJSON_AddObjectToObject(json, "operators");
    const dlc_module *module = model->ctx.module;
    double constants = 0;
    for (const dlc_node *node = model->graph ? model->graph->first : NULL; node; node = node->next) {
        if (node->op == DLC_OP_CONSTANT)
            constants += bytes_of(model, &node->outputs[0]->type, symbols);
        else
            count(operators, dlc_ops[node->op].text);
    }
    for (uint32_t v = 0; !model->graph && v < module->values.n; v++)
        if (module->values.data[v].origin == DLC_NO_VALUE)
            constants += (double)module->values.data[v].data.size_bytes;
    cJSON_AddNumberToObject(json, "constants_bytes", constants);
}

static void add_symbols(dlc_model *model, cJSON *json, const int64_t *symbols)
{
    cJSON *object = cJSON_AddObjectToObject(json, "symbols");
    const dlc_graph *graph = model->graph;
    const dlc_module *module = model->ctx.module;
    for (uint32_t i = 0; i < (graph ? graph->symbols.n : module->symbols.n); i++)
        cJSON_AddNumberToObject(object, graph ? graph->symbols.data[i].name : module->symbols.data[i].name,
                                (double)symbols[i]);
}

/* ---- kernels ---- */

static void add_nodes(cJSON *row, const dlc_step *step)
{
    cJSON *nodes = cJSON_AddArrayToObject(row, "nodes");
    for (uint32_t i = 0; i < step->nnodes; i++)
        cJSON_AddItemToArray(nodes, cJSON_CreateString(step->nodes[i]));
}

static void add_kernel(dlc_model *model, cJSON *row, const dlc_module_kernel *kernel)
{
    dlc_estimate estimate = {0};
    dlc_str schedule = {0};
    if (kernel->schedule) {
        dlc_estimate_kernel(kernel->schedule, model->scratch, &estimate);
        dlc_schedule_print(kernel->schedule, &schedule);
    }
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, kernel->hash);
    add_text(row, "hash", hash); /* by which --schedule may call it */
    cJSON_AddNumberToObject(row, "flops", estimate.flops);
    cJSON_AddNumberToObject(row, "bytes", estimate.bytes);
    cJSON_AddNumberToObject(row, "units", estimate.units);
    cJSON_AddNumberToObject(row, "scratch_bytes", estimate.scratch_bytes);
    cJSON_AddNumberToObject(row, "estimate_us", estimate.time_us);
    add_text(row, "schedule", dlc_str_text(&schedule));
    dlc_str_deinit(&schedule);
}

static void add_kernels(dlc_model *model, cJSON *json)
{
    const dlc_module *module = model->ctx.module;
    cJSON *kernels = cJSON_AddArrayToObject(json, "kernels");
    double flops = 0, bytes = 0;
    for (uint32_t i = 0; i < module->steps.n; i++) {
        const dlc_step *step = &module->steps.data[i];
        if (step->kind != DLC_STEP_LAUNCH)
            continue;
        cJSON *row = cJSON_CreateObject();
        add_text(row, "name", step->name);
        cJSON_AddNumberToObject(row, "code", step->kernel);
        add_nodes(row, step);
        add_kernel(model, row, &module->kernels.data[step->kernel]);
        flops += cJSON_GetObjectItem(row, "flops")->valuedouble;
        bytes += cJSON_GetObjectItem(row, "bytes")->valuedouble;
        cJSON_AddItemToArray(kernels, row);
    }
    cJSON_AddNumberToObject(json, "steps", module->steps.n);
    cJSON_AddNumberToObject(json, "codes", module->kernels.n);
    cJSON_AddNumberToObject(json, "flops", flops);
    cJSON_AddNumberToObject(json, "bytes", bytes);
}

/* ---- memory ---- */

static void add_value(dlc_model *model, cJSON *rows, uint32_t v, const int64_t *symbols)
{
    static const char *const stores[] = {"arena", "input", "output", "constant", "host"};
    const dlc_module *module = model->ctx.module;
    const dlc_module_value *value = &module->values.data[v];
    cJSON *row = cJSON_CreateObject();
    dlc_str text = {0};
    dlc_module_type_print(module, &value->type, &text);
    add_text(row, "name", value->name);
    add_text(row, "type", dlc_str_text(&text));
    dlc_str_deinit(&text);
    add_text(row, "store", stores[value->role]);
    if (value->offset)
        cJSON_AddNumberToObject(row, "offset", (double)dlc_expr_eval(module->pool, value->offset, symbols));
    cJSON_AddNumberToObject(row, "bytes",
                            (double)dlc_expr_eval(module->pool, dlc_module_value_bytes(module, v), symbols));
    cJSON_AddItemToArray(rows, row);
}

static void add_memory(dlc_model *model, cJSON *json, const int64_t *symbols)
{
    const dlc_module *module = model->ctx.module;
    cJSON *memory = cJSON_AddObjectToObject(json, "memory"), *values;
    if (!module->arena_bytes)
        return;
    cJSON_AddNumberToObject(memory, "arena_bytes", (double)dlc_expr_eval(module->pool, module->arena_bytes, symbols));
    values = cJSON_AddArrayToObject(memory, "values");
    for (uint32_t v = 0; v < module->values.n; v++)
        if (module->values.data[v].offset || module->values.data[v].role == DLC_VALUE_OUTPUT)
            add_value(model, values, v, symbols);
}

/* ---- text ---- */

typedef struct {
    dlc_str *out;
    dlc_arena *arena;
} printer;

static const char *text_of(const printer *p, const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
    return dlc_arena_line(p->arena, text ? text : "");
}

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *row = cJSON_GetObjectItem(object, key);
    return row ? row->valuedouble : 0;
}

static void print_rows(const printer *p, const cJSON *json, const char *key)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, key))
        dlc_str_printf(p->out, "  %-28s %s\n", text_of(p, row, "name"), text_of(p, row, "type"));
}

static void print_memory(const printer *p, const cJSON *memory)
{
    const cJSON *row;
    dlc_str_printf(p->out, "\nmemory: arena %.1f KB\n", number_of(memory, "arena_bytes") / 1e3);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(memory, "values")) dlc_str_printf(
        p->out, "  %-8s %12.0f %12.0f  %-24s %s\n", text_of(p, row, "store"), number_of(row, "offset"),
        number_of(row, "bytes"), text_of(p, row, "type"), text_of(p, row, "name"));
}

static void print_kernels(const printer *p, const cJSON *json)
{
    const cJSON *row;
    dlc_str_printf(p->out, "\n%.0f steps with %.0f different codes, %.3f GFLOP, %.1f MB moved\n",
                   number_of(json, "steps"), number_of(json, "codes"),
                   number_of(json, "flops") / 1e9, number_of(json, "bytes") / 1e6);
    dlc_str_printf(p->out, "  %4s %10s %10s %8s %9s  %s\n", "code", "MFLOP", "KB", "units", "est. us",
                   "nodes");
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "kernels")) dlc_str_printf(
        p->out, "  %4.0f %10.3f %10.1f %8.0f %9.2f  %s\n", number_of(row, "code"),
        number_of(row, "flops") / 1e6, number_of(row, "bytes") / 1e3, number_of(row, "units"),
        number_of(row, "estimate_us"), text_of(p, row, "name"));
}

static void print_text(const printer *p, const cJSON *json)
{
    const cJSON *row;
    dlc_str_printf(p->out, "%s for %s\n\ninputs\n", text_of(p, json, "model"), text_of(p, json, "target"));
    print_rows(p, json, "inputs");
    dlc_str_add(p->out, "outputs\n");
    print_rows(p, json, "outputs");
    if (cJSON_GetArraySize(cJSON_GetObjectItem(json, "symbols"))) {
        dlc_str_add(p->out, "symbols, and the value that sizes below stand for\n");
        cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "symbols"))
            dlc_str_printf(p->out, "  %s = %.0f\n", dlc_arena_line(p->arena, row->string), row->valuedouble);
    }
    dlc_str_printf(p->out, "\noperators after the passes (constants: %.1f KB)\n",
                   number_of(json, "constants_bytes") / 1e3);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "operators"))
        dlc_str_printf(p->out, "  %6.0f %s\n", row->valuedouble, row->string);
    print_memory(p, cJSON_GetObjectItem(json, "memory"));
    print_kernels(p, json);
    dlc_model_print_report(p->out, p->arena, json);
}

/* ---- the whole ---- */

static int64_t *nominal_symbols(dlc_model *model)
{
    return model->graph ? dlc_graph_usual_values(model->graph, DLC_NOMINAL_SYMBOL, model->notes)
                        : dlc_module_usual_values(model->ctx.module, DLC_NOMINAL_SYMBOL, model->notes);
}

static const char *result_name(const dlc_node *node)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o])
            return node->outputs[o]->name;
    return "";
}

/* Which nodes are one kernel, by their results' names: what a plan (--fusion x.json) reads. */
static void add_groups(dlc_model *model, cJSON *json)
{
    const dlc_groups *groups = model->ctx.groups;
    cJSON *rows = cJSON_AddArrayToObject(json, "groups");
    for (uint32_t g = 0; g < groups->ngroups; g++) {
        if (groups->members[g].n < 2)
            continue;
        cJSON *row = cJSON_CreateArray();
        for (uint32_t m = 0; m < groups->members[g].n; m++) {
            dlc_str name = {0};
            dlc_str_printf(&name, "%%%s", result_name(groups->members[g].data[m]));
            cJSON_AddItemToArray(row, cJSON_CreateString(dlc_str_text(&name)));
            dlc_str_deinit(&name);
        }
        cJSON_AddItemToArray(rows, row);
    }
}

static cJSON *collect(dlc_model *model)
{
    int64_t *symbols = nominal_symbols(model);
    cJSON *json = cJSON_CreateObject();
    add_text(json, "model", model->graph ? model->graph->file : model->ctx.module->file);
    add_text(json, "graph", model->graph ? model->graph->name : model->ctx.module->name);
    add_text(json, "target", model->ctx.target->name);
    add_interface(model, json);
    add_symbols(model, json, symbols);
    add_operators(model, json, symbols);
    if (model->ctx.groups)
        add_groups(model, json);
    if (model->ctx.module) {
        add_memory(model, json, symbols);
        add_kernels(model, json);
        dlc_model_add_plan(model, json, symbols);
        if (model->ctx.facts & DLC_FACT_SCHEDULES) /* kernels compile once they have schedules */
            dlc_model_report(model, json);
    }
    return json;
}

dlc_status dlc_model_inspect(dlc_model *model, const char *format)
{
    if (!strcmp(format, "dot")) {
        DLC_TRY(dlc_model_needs_graph(model, "drawings are of graphs"));
        dlc_model_draw_dot(model);
        return DLC_OK;
    }
    if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL,
                             "the format '%s' is unknown; there are text, json and dot",
                             format);
    cJSON *json = collect(model);
    if (*format == 't') {
        print_text(&(printer){&model->buffer, model->scratch}, json);
    } else {
        char *text = cJSON_Print(json);
        dlc_str_add(&model->buffer, text);
        cJSON_free(text);
    }
    cJSON_Delete(json);
    return DLC_OK;
}

/* Questions about a model that is a graph, or else a module read from text. */
#include "compiler/driver.h"

void dlc_model_type_print(const dlc_model *model, const dlc_type *type, dlc_str *out)
{
    if (model->graph)
        dlc_type_print(model->graph, type, out);
    else
        dlc_module_type_print(model->ctx.module, type, out);
}

const dlc_type *dlc_model_input_type(const dlc_model *model, uint32_t i, const char **name)
{
    const dlc_module *module = model->ctx.module;
    if (model->graph && i < model->graph->inputs.n) {
        *name = model->graph->inputs.data[i]->name;
        return &model->graph->inputs.data[i]->type;
    }
    if (model->graph || !module || i >= module->inputs.n)
        return NULL;
    *name = module->values.data[module->inputs.data[i]].name;
    return &module->values.data[module->inputs.data[i]].type;
}

const dlc_type *dlc_model_output_type(const dlc_model *model, uint32_t i, const char **name)
{
    const dlc_module *module = model->ctx.module;
    if (model->graph && i < model->graph->outputs.n) {
        *name = model->graph->outputs.data[i].name;
        return &model->graph->outputs.data[i].value->type;
    }
    if (model->graph || !module || i >= module->outputs.n)
        return NULL;
    *name = module->outputs.data[i].name;
    return &module->values.data[module->outputs.data[i].value].type;
}

dlc_status dlc_model_needs_graph(dlc_model *model, const char *what)
{
    if (model->graph)
        return DLC_OK;
    return dlc_diag_fail(&model->diag, DLC_USAGE, model->ctx.module->file, "is a module, what 'lower' makes of a graph; %s",
                         what);
}

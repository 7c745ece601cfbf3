/* The module that lowering fills: its values and sizes, made when they are first met, and its steps. */
#include "passes/lower/lower_module.h"

#include "passes/fuse/fuse_engine.h"

dlc_expr dlc_lowering_size(dlc_lowering *b, dlc_expr size)
{
    return dlc_expr_rewrite(b->module->pool, b->ctx->graph->pool, size, NULL, NULL);
}

dlc_type dlc_lowering_type(dlc_lowering *b, const dlc_type *type)
{
    dlc_type result = *type;
    for (uint32_t d = 0; d < type->rank; d++)
        result.dims[d] = dlc_lowering_size(b, type->dims[d]);
    return result;
}

uint32_t dlc_lowering_value(dlc_lowering *b, const dlc_value *value)
{
    uint32_t *number = &b->value_of[value->id];
    if (*number)
        return *number - 1;
    dlc_module_value made = {.name = value->name,
                             .type = dlc_lowering_type(b, &value->type),
                             .layout = *value->layout,
                             .role = value->data ? DLC_VALUE_CONST : DLC_VALUE_TEMP,
                             .origin = DLC_NO_VALUE};
    if (value->data)
        made.data = *value->data;
    *number = dlc_module_add_value(b->module, &made) + 1;
    return *number - 1;
}

dlc_step dlc_lowering_new_step(dlc_lowering *b, dlc_step_kind kind, uint32_t nvalues)
{
    dlc_step step = {.kind = (uint8_t)kind, .symbol = DLC_NO_SYMBOL, .nvalues = nvalues};
    step.values = dlc_new_array(b->module->arena, uint32_t, nvalues + 1);
    return step;
}

void dlc_lowering_step(dlc_lowering *b, dlc_step *step, dlc_node *const *nodes, uint32_t n)
{
    dlc_mark mark = dlc_arena_mark(b->ctx->scratch);
    const char **names = dlc_new_array(b->ctx->scratch, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        names[i] = nodes[i]->origin && nodes[i]->origin->name ? nodes[i]->origin->name : dlc_fuse_result(nodes[i])->name;
    if (n)
        dlc_step_set_nodes(b->module, step, names, n);
    dlc_vec_push(b->module->arena, &b->module->steps, *step);
    dlc_arena_release(b->ctx->scratch, mark);
}

/* Symbols read from a value are bound as soon as it is there. */
void dlc_lowering_binds(dlc_lowering *b, const dlc_node *producer)
{
    const dlc_graph *graph = b->ctx->graph;
    for (uint32_t s = 0; s < graph->symbols.n; s++) {
        const dlc_symbol *symbol = &graph->symbols.data[s];
        if (symbol->bind != DLC_BIND_DATA || symbol->value->def != producer)
            continue;
        dlc_step step = dlc_lowering_new_step(b, DLC_STEP_BIND, 1);
        step.symbol = s;
        step.name = symbol->name;
        step.nattrs = 1;
        step.attrs[0] = symbol->index;
        step.values[0] = dlc_lowering_value(b, symbol->value);
        dlc_lowering_step(b, &step, NULL, 0);
    }
}

/*
 * Copies between host and device: where kernels run on a device, a step in C sees constants as the executable has them, and
 * else host memory alone. Each of its operands becomes a value of its own there, filled by a copy before the step or emptied
 * by one behind it. What only the step itself works in just lives on the host.
 */
#include "passes/pass.h"

typedef struct {
    dlc_module *module;
    uint8_t *is_read; /* by value: by some step, or by the caller */
    dlc_vec(dlc_step) steps;
    uint32_t ncopies;
} transfer;

static void find_readers(transfer *t)
{
    const dlc_module *module = t->module;
    for (uint32_t o = 0; o < module->outputs.n; o++)
        t->is_read[module->outputs.data[o].value] = 1;
    for (uint32_t s = 0; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        for (uint32_t i = 0; i < step->nvalues; i++)
            if (step->values[i] != DLC_NO_VALUE && !dlc_step_writes(module, step, i))
                t->is_read[step->values[i]] = 1;
    }
}

static void copy(transfer *t, const dlc_step *around, uint32_t from, uint32_t to)
{
    dlc_step step = {.kind = DLC_STEP_COPY, .symbol = DLC_NO_SYMBOL, .nvalues = 2};
    step.values = dlc_new_array(t->module->arena, uint32_t, 2);
    step.values[0] = from, step.values[1] = to;
    if (around->nnodes)
        dlc_step_set_nodes(t->module, &step, around->nodes, around->nnodes);
    else
        dlc_step_set_nodes(t->module, &step, &around->name, 1);
    dlc_vec_push(t->module->arena, &t->steps, step);
    t->ncopies++;
}

static uint32_t on_host(transfer *t, uint32_t value)
{
    dlc_module_value host = t->module->values.data[value];
    host.name = dlc_arena_printf(t->module->arena, "%s.host", host.name);
    host.role = DLC_VALUE_HOST;
    host.skip = 0;
    host.origin = value;
    return dlc_module_add_value(t->module, &host);
}

/* Whether the value has to be elsewhere for a step on the host; one that nobody reads can live there. */
static int is_apart(transfer *t, const dlc_step *step, uint32_t i)
{
    uint32_t value = step->values[i];
    if (value == DLC_NO_VALUE)
        return 0;
    dlc_module_value *at = &t->module->values.data[value];
    if (dlc_step_writes(t->module, step, i) && !t->is_read[value])
        at->role = DLC_VALUE_HOST;
    return at->role != DLC_VALUE_HOST && at->role != DLC_VALUE_CONST;
}

static void add_step(transfer *t, dlc_step step)
{
    dlc_ids to = {0}, from = {0};
    for (uint32_t i = 0; dlc_step_is_on_host(&step) && i < step.nvalues; i++) {
        if (!is_apart(t, &step, i))
            continue;
        uint32_t value = step.values[i], host = on_host(t, value);
        step.values[i] = host;
        if (!dlc_step_writes(t->module, &step, i)) {
            copy(t, &step, value, host);
            continue;
        }
        dlc_vec_push(t->module->arena, &from, host);
        dlc_vec_push(t->module->arena, &to, value);
    }
    dlc_vec_push(t->module->arena, &t->steps, step);
    for (uint32_t i = 0; i < from.n; i++)
        copy(t, &step, from.data[i], to.data[i]);
}

dlc_status dlc_pass_transfer(dlc_pass_ctx *ctx)
{
    transfer t = {.module = ctx->module};
    if (!dlc_pass_has_device_memory(ctx))
        return DLC_OK;
    t.is_read = dlc_new_array(ctx->scratch, uint8_t, ctx->module->values.n + 1);
    find_readers(&t);
    for (uint32_t s = 0; s < ctx->module->steps.n; s++)
        add_step(&t, ctx->module->steps.data[s]);
    ctx->module->steps.data = t.steps.data;
    ctx->module->steps.n = t.steps.n;
    ctx->module->steps.cap = t.steps.cap;
    ctx->changes = t.ncopies;
    return DLC_OK;
}

/*
 * Regions become steps. A loop's states are values that live as long as it: copies fill them before the loop and at the end of each
 * iteration, and what the loop gives is what is in them then. Stacked results are written row by row. Both branches of an if copy
 * into one value, whose size they set first.
 */
#include "passes/lower/lower_module.h"

#include "ir/graph/region.h"

static void add_mark(dlc_lowering *b, dlc_step_kind kind, dlc_expr size, dlc_node *node)
{
    dlc_step step = dlc_lowering_new_step(b, kind, 0);
    step.size = size;
    dlc_lowering_step(b, &step, &node, 1);
}

static void add_set(dlc_lowering *b, uint32_t symbol, dlc_expr size)
{
    dlc_step step = dlc_lowering_new_step(b, DLC_STEP_SET, 0);
    step.size = size;
    step.symbol = symbol;
    step.name = b->ctx->graph->symbols.data[symbol].name;
    dlc_lowering_step(b, &step, NULL, 0);
}

static void add_copy(dlc_lowering *b, uint32_t from, uint32_t to, dlc_expr at, dlc_node *node)
{
    dlc_step step = dlc_lowering_new_step(b, DLC_STEP_COPY, 2);
    step.values[0] = from, step.values[1] = to;
    step.size = at;
    dlc_lowering_step(b, &step, &node, 1);
}

static uint32_t counter_of(const dlc_node *loop)
{
    return (uint32_t)dlc_node_int(loop, DLC_ATTR_SYMBOL, 0);
}

static dlc_expr count_of(dlc_lowering *b, const dlc_node *loop)
{
    return dlc_expr_sym(b->module->pool, counter_of(loop));
}

/* --- loops --- */

static void bind_states(dlc_lowering *b, const dlc_node *loop)
{
    uint32_t n;
    dlc_node **states = dlc_region_nodes(loop, DLC_OP_STATE, b->ctx->scratch, &n);
    for (uint32_t i = 0; i < n; i++)
        dlc_lowering_binds(b, states[i]);
}

static void begin_loop(dlc_lowering *b, dlc_node *loop)
{
    uint32_t n;
    dlc_node **states = dlc_region_nodes(loop, DLC_OP_STATE, b->ctx->scratch, &n);
    for (uint32_t i = 0; i < n; i++)
        add_copy(b, dlc_lowering_value(b, states[i]->inputs[1]), dlc_lowering_value(b, states[i]->outputs[0]), 0, states[i]);
    add_set(b, counter_of(loop), dlc_expr_i64(b->module->pool, 0));
    bind_states(b, loop);
    add_mark(b, DLC_STEP_LOOP, dlc_lowering_size(b, dlc_region_holds(loop)), loop);
}

static void add_row(dlc_lowering *b, const dlc_node *loop, dlc_node *stack)
{
    dlc_pool *pool = b->module->pool;
    uint32_t to = dlc_lowering_value(b, stack->outputs[0]);
    const dlc_type *type = &b->module->values.data[to].type;
    dlc_expr row = dlc_muli(pool, dlc_dims_product(pool, type->dims + 1, type->rank - 1u), dlc_dtype_bytes(type->dtype));
    dlc_expr at = count_of(b, loop);
    if (dlc_node_int(stack, DLC_ATTR_REVERSE, 0))
        at = dlc_sub(pool, dlc_addi(pool, type->dims[0], -1), at);
    add_copy(b, dlc_lowering_value(b, stack->inputs[1]), to, dlc_mul(pool, at, row), stack);
}

/* A state that another one becomes is read after that one has changed: it is kept apart first. */
static uint32_t next_of(dlc_lowering *b, const dlc_node *loop, dlc_node *final)
{
    dlc_value *next = final->inputs[2];
    uint32_t value = dlc_lowering_value(b, next);
    if (!next->def || next->def->op != DLC_OP_STATE || next->def->inputs[0]->def != loop || next == final->inputs[1])
        return value;
    dlc_module_value made = b->module->values.data[value];
    made.name = dlc_arena_printf(b->module->arena, "%s.before", made.name);
    uint32_t apart = dlc_module_add_value(b->module, &made);
    add_copy(b, value, apart, 0, final);
    return apart;
}

/* Steps of the loop that is about to end. */
static uint32_t first_step(const dlc_module *module)
{
    uint32_t s = module->steps.n;
    for (uint32_t depth = 1; depth; depth -= module->steps.data[s].kind == DLC_STEP_IF || module->steps.data[s].kind == DLC_STEP_LOOP)
        depth += module->steps.data[--s].kind == DLC_STEP_END;
    return s;
}

static int same_place(const dlc_module_value *a, const dlc_module_value *b)
{
    int is_same = a->role == DLC_VALUE_TEMP && a->type.dtype == b->type.dtype && a->type.rank == b->type.rank &&
                  dlc_layout_equal(&a->layout, &b->layout);
    for (uint8_t d = 0; is_same && d < a->type.rank; d++)
        is_same = a->type.dims[d] == b->type.dims[d];
    return is_same;
}

/* The step in the loop itself that makes the value, behind which nobody sees the state any more; or none. */
static uint32_t writer_of(const dlc_module *module, uint32_t first, uint32_t next, uint32_t state)
{
    uint32_t writer = UINT32_MAX, depth = 0;
    for (uint32_t s = first + 1; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        depth += step->kind == DLC_STEP_IF || step->kind == DLC_STEP_LOOP;
        depth -= step->kind == DLC_STEP_END;
        for (uint32_t i = 0; i < step->nvalues; i++)
            if (step->values[i] == next && dlc_step_writes(module, step, i))
                writer = writer == UINT32_MAX && !depth ? s : UINT32_MAX - 1;
        for (uint32_t i = 0; i < step->nvalues && writer != UINT32_MAX; i++)
            if (step->values[i] == state)
                return UINT32_MAX;
    }
    return writer == UINT32_MAX - 1 ? UINT32_MAX : writer;
}

/* A value that may be made where the state lies is never copied there. */
static int make_in_place(dlc_lowering *b, uint32_t next, uint32_t state)
{
    dlc_module *module = b->module;
    uint32_t first = first_step(module);
    if (!same_place(&module->values.data[next], &module->values.data[state]) || writer_of(module, first, next, state) == UINT32_MAX)
        return 0;
    for (uint32_t s = first + 1; s < module->steps.n; s++)
        for (uint32_t i = 0; i < module->steps.data[s].nvalues; i++)
            if (module->steps.data[s].values[i] == next)
                module->steps.data[s].values[i] = state;
    return 1;
}

static void end_loop(dlc_lowering *b, dlc_node *done)
{
    dlc_node *loop = dlc_region_opener(done);
    uint32_t n, nstacks;
    dlc_node **finals = dlc_region_nodes(done, DLC_OP_FINAL, b->ctx->scratch, &n);
    dlc_node **stacks = dlc_region_nodes(done, DLC_OP_STACK, b->ctx->scratch, &nstacks);
    uint32_t *next = dlc_new_array(b->ctx->scratch, uint32_t, n + 1);
    uint8_t *is_made = dlc_new_array(b->ctx->scratch, uint8_t, n + 1); /* where another state lies */
    for (uint32_t i = 0; i < nstacks; i++)
        add_row(b, loop, stacks[i]);
    for (uint32_t i = 0; i < n; i++)
        next[i] = next_of(b, loop, finals[i]);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t state = dlc_lowering_value(b, finals[i]->inputs[1]);
        int is_in_place = next[i] != state && !is_made[i] && make_in_place(b, next[i], state);
        for (uint32_t k = i + 1; k < n && is_in_place; k++) {
            is_made[k] |= next[k] == next[i];
            next[k] = next[k] == next[i] ? state : next[k];
        }
        if (next[i] != state && !is_in_place)
            add_copy(b, next[i], state, 0, finals[i]);
        b->value_of[finals[i]->outputs[0]->id] = state + 1;
    }
    add_set(b, counter_of(loop), dlc_addi(b->module->pool, count_of(b, loop), 1));
    bind_states(b, loop);
    add_mark(b, DLC_STEP_END, 0, done);
}

/* --- branches --- */

static void add_results(dlc_lowering *b, const dlc_node *done, uint32_t input)
{
    const dlc_graph *graph = b->ctx->graph;
    uint32_t n;
    dlc_node **eithers = dlc_region_nodes(done, DLC_OP_EITHER, b->ctx->scratch, &n);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < graph->symbols.n; s++) {
            const dlc_symbol *symbol = &graph->symbols.data[s];
            if (symbol->bind == DLC_BIND_RESULT && symbol->value == eithers[i]->outputs[0])
                add_set(b, s, dlc_lowering_size(b, eithers[i]->inputs[input]->type.dims[symbol->index]));
        }
        add_copy(b, dlc_lowering_value(b, eithers[i]->inputs[input]), dlc_lowering_value(b, eithers[i]->outputs[0]), 0, eithers[i]);
    }
}

void dlc_lower_mark(dlc_lowering *b, dlc_node *node)
{
    switch (node->op) {
    case DLC_OP_LOOP:
        begin_loop(b, node);
        break;
    case DLC_OP_IF:
        add_mark(b, DLC_STEP_IF, dlc_lowering_size(b, dlc_region_holds(node)), node);
        break;
    case DLC_OP_ELSE:
        add_results(b, dlc_region_closer(node), 1);
        add_mark(b, DLC_STEP_ELSE, 0, node);
        break;
    default:
        if (dlc_region_opener(node)->op == DLC_OP_LOOP) {
            end_loop(b, node);
            break;
        }
        add_results(b, node, 2);
        add_mark(b, DLC_STEP_END, 0, node);
        break;
    }
}

int dlc_is_of_region(const dlc_node *node)
{
    return node->op == DLC_OP_STATE || node->op == DLC_OP_FINAL || node->op == DLC_OP_STACK || node->op == DLC_OP_EITHER;
}

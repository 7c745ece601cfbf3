/*
 * Regions become steps. A loop's states are values that live as long as it: copies fill them before the loop, and what the loop gives
 * is what is in them then. An iteration makes the next state where the state lies, if nobody reads that any more; else the two change
 * places from iteration to iteration, in memory for both; or, where the states are stacked, each is a row of the stack. What can be
 * neither is copied at the end of each iteration. Other stacked results are written row by row. Both branches of an if copy into one
 * value, whose size they set first.
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
    add_set(b, counter_of(loop), dlc_expr_i64(b->module->pool, 0)); /* where a state lies may depend on it */
    for (uint32_t i = 0; i < n; i++)
        add_copy(b, dlc_lowering_value(b, states[i]->inputs[1]), dlc_lowering_value(b, states[i]->outputs[0]), 0, states[i]);
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

/* --- states that change places --- */

/* The value lies so far into another one. */
static void lie_in(dlc_lowering *b, uint32_t value, uint32_t whole, dlc_expr skip)
{
    dlc_module_value_of(b->module, value)->whole = whole;
    dlc_module_value_of(b->module, value)->skip = skip;
}

static uint32_t add_whole(dlc_lowering *b, uint32_t state, dlc_expr bytes)
{
    dlc_module_value whole = {.name = dlc_arena_printf(b->module->arena, "%s.turns", b->module->values.data[state].name),
                              .type = {.dtype = DLC_U8, .rank = 1, .dims = {bytes}},
                              .role = DLC_VALUE_TEMP,
                              .origin = DLC_NO_VALUE};
    return dlc_module_add_value(b->module, &whole);
}

/* By kernels and copies of the loop that is about to end, and not in parts. */
static int is_made_here(const dlc_module *module, uint32_t value)
{
    int result = 0;
    for (uint32_t s = first_step(module) + 1; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        for (uint32_t i = 0; i < step->nvalues; i++) {
            if (step->values[i] != value || !dlc_step_writes(module, step, i))
                continue;
            if (step->kind != DLC_STEP_LAUNCH && (step->kind != DLC_STEP_COPY || step->size))
                return 0;
            result = 1;
        }
    }
    return result;
}

static int can_change_places(const dlc_module *module, uint32_t next, uint32_t state)
{
    const dlc_module_value *made = &module->values.data[next], *kept = &module->values.data[state];
    return next != state && !made->skip && !kept->skip && kept->role == DLC_VALUE_TEMP && same_place(made, kept) &&
           is_made_here(module, next);
}

/* One of two places for the state, the other for what it becomes. */
static int change_places(dlc_lowering *b, const dlc_node *loop, uint32_t next, uint32_t state)
{
    dlc_pool *pool = b->module->pool;
    dlc_expr align = dlc_expr_i64(pool, DLC_PLACE_ALIGN), two = dlc_expr_i64(pool, 2), count = count_of(b, loop);
    if (!can_change_places(b->module, next, state))
        return 0;
    dlc_expr padded = dlc_addi(pool, dlc_module_value_bytes(b->module, state), DLC_PLACE_ALIGN - 1);
    dlc_expr bytes = dlc_mul(pool, dlc_floordiv(pool, padded, align), align);
    uint32_t whole = add_whole(b, state, dlc_mul(pool, bytes, two));
    lie_in(b, state, whole, dlc_mul(pool, dlc_mod(pool, count, two), bytes));
    lie_in(b, next, whole, dlc_mul(pool, dlc_mod(pool, dlc_addi(pool, count, 1), two), bytes));
    return 1;
}

/* Rows that lie one behind the other, each as a state does, of which there are as many as is known before the loop. */
static int can_be_rows(dlc_lowering *b, const dlc_node *loop, const dlc_node *stack, uint32_t state, dlc_expr *row)
{
    const dlc_module *module = b->module;
    const dlc_value *result = stack->outputs[0];
    const dlc_module_value *kept = &module->values.data[state], *rows = &module->values.data[dlc_lowering_value(b, result)];
    dlc_ranges ranges = dlc_module_ranges(module);
    *row = dlc_module_value_bytes(module, state);
    return rows->role == DLC_VALUE_TEMP && !rows->skip && rows->type.dtype == kept->type.dtype && !rows->layout.nparts &&
           !kept->layout.nparts && rows->type.rank &&
           dlc_dims_product(module->pool, rows->type.dims + 1, rows->type.rank - 1u) ==
               dlc_dims_product(module->pool, kept->type.dims, kept->type.rank) &&
           dlc_expr_multiple(module->pool, *row, &ranges) % DLC_PLACE_ALIGN == 0 &&
           !dlc_region_binds(b->ctx->graph, loop, result->type.dims[0]);
}

/* The state before the first iteration is one more row, before the others or, where they are stacked backwards, behind them. */
static int become_rows(dlc_lowering *b, const dlc_node *loop, const dlc_node *stack, uint32_t next, uint32_t state)
{
    dlc_pool *pool = b->module->pool;
    uint32_t rows = dlc_lowering_value(b, stack->outputs[0]);
    dlc_expr row, n = b->module->values.data[rows].type.dims[0], count = count_of(b, loop), after = dlc_addi(pool, count, 1);
    if (!can_change_places(b->module, next, state) || !can_be_rows(b, loop, stack, state, &row))
        return 0;
    int is_reverse = dlc_node_int(stack, DLC_ATTR_REVERSE, 0) != 0;
    uint32_t whole = add_whole(b, state, dlc_mul(pool, dlc_addi(pool, n, 1), row));
    lie_in(b, state, whole, dlc_mul(pool, is_reverse ? dlc_sub(pool, n, count) : count, row));
    lie_in(b, next, whole, dlc_mul(pool, is_reverse ? dlc_sub(pool, n, after) : after, row));
    lie_in(b, rows, whole, is_reverse ? dlc_expr_i64(pool, 0) : row);
    return 1;
}

/* --- the end of a loop --- */

typedef struct {
    dlc_node *loop, **finals, **stacks;
    uint32_t n, nstacks;
    uint32_t *next;   /* by state: what it becomes */
    uint8_t *is_done; /* by state: nothing is left to do */
    uint8_t *is_made; /* by state: what it becomes lies where another state does */
} ending;

static uint32_t state_of(dlc_lowering *b, const ending *e, uint32_t i)
{
    return dlc_lowering_value(b, e->finals[i]->inputs[1]);
}

/* What state i becomes has a place now: that of `state`, where it has become that value, or its own. */
static void settle(ending *e, uint32_t i, uint32_t made)
{
    uint32_t was = e->next[i];
    e->is_done[i] = 1;
    for (uint32_t k = 0; k < e->n; k++)
        if (k != i && e->next[k] == was) {
            e->is_made[k] = 1;
            e->next[k] = made;
        }
}

static void end_stacks(dlc_lowering *b, ending *e)
{
    for (uint32_t s = 0; s < e->nstacks; s++) {
        int is_rows = 0;
        for (uint32_t i = 0; i < e->n && !is_rows; i++) {
            if (e->finals[i]->inputs[2] != e->stacks[s]->inputs[1] || e->is_done[i] || e->is_made[i])
                continue;
            is_rows = become_rows(b, e->loop, e->stacks[s], e->next[i], state_of(b, e, i));
            if (is_rows)
                settle(e, i, e->next[i]);
        }
        if (!is_rows)
            add_row(b, e->loop, e->stacks[s]);
    }
}

static void end_state(dlc_lowering *b, ending *e, uint32_t i)
{
    uint32_t state = state_of(b, e, i);
    if (e->is_done[i] || e->next[i] == state)
        return;
    if (!e->is_made[i] && make_in_place(b, e->next[i], state))
        settle(e, i, state);
    else if (!e->is_made[i] && change_places(b, e->loop, e->next[i], state))
        settle(e, i, e->next[i]);
    else
        add_copy(b, e->next[i], state, 0, e->finals[i]);
}

static void end_loop(dlc_lowering *b, dlc_node *done)
{
    ending e = {.loop = dlc_region_opener(done)};
    e.finals = dlc_region_nodes(done, DLC_OP_FINAL, b->ctx->scratch, &e.n);
    e.stacks = dlc_region_nodes(done, DLC_OP_STACK, b->ctx->scratch, &e.nstacks);
    e.next = dlc_new_array(b->ctx->scratch, uint32_t, e.n + 1);
    e.is_done = dlc_new_array(b->ctx->scratch, uint8_t, e.n + 1);
    e.is_made = dlc_new_array(b->ctx->scratch, uint8_t, e.n + 1);
    for (uint32_t i = 0; i < e.n; i++)
        e.next[i] = next_of(b, e.loop, e.finals[i]);
    end_stacks(b, &e);
    for (uint32_t i = 0; i < e.n; i++) {
        end_state(b, &e, i);
        b->value_of[e.finals[i]->outputs[0]->id] = state_of(b, &e, i) + 1;
    }
    add_set(b, counter_of(e.loop), dlc_addi(b->module->pool, count_of(b, e.loop), 1));
    bind_states(b, e.loop);
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

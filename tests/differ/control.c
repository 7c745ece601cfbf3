/* Random regions: branches on data or sizes, loops that count, that go on while their data say so, recurrences over rows. */
#include "tests/differ/kinds.h"

#include <string.h>

#include "ir/graph/region.h"

/* What a region begins and ends with; what was made in it is not seen behind it. */
typedef struct {
    uint32_t nitems, first;
} scope;

static scope enter(make *m)
{
    scope s = {m->nitems, m->first};
    m->first = m->nitems;
    m->depth++;
    return s;
}

static void leave(make *m, scope s)
{
    m->nitems = s.nitems;
    m->first = s.first;
    m->depth--;
}

static dlc_value *mark(make *m, dlc_opcode op, dlc_value *token)
{
    return make_node(m, op, &token, token ? 1 : 0, NULL, 0);
}

static dlc_expr bind_data(make *m, dlc_value *value, int64_t most)
{
    uint32_t symbol = dlc_graph_symbol(m->graph, dlc_arena_printf(m->arena, "s%u", m->graph->symbols.n), DLC_BIND_DATA, value, 0);
    m->graph->symbols.data[symbol].hi = most;
    return dlc_expr_sym(m->graph->pool, symbol);
}

/* One bool of the data. */
static dlc_value *some_flag(make *m)
{
    item x = make_pick(m, WANT_FLOAT, 0, 3);
    if (!x.value || chance(m->from, 40))
        return make_input(m, DLC_BOOL, NULL, 0, 0);
    int64_t axes[DLC_MAX_RANK];
    for (uint32_t d = 0; d < x.value->type.rank; d++)
        axes[d] = d;
    dlc_attr attrs[] = {dlc_attr_ints(m->graph, DLC_ATTR_AXES, axes, x.value->type.rank), dlc_attr_int(DLC_ATTR_KEEPDIMS, 0)};
    dlc_value *most = x.value->type.rank ? make_node(m, DLC_OP_REDUCE_MAX, &x.value, 1, attrs, 2) : x.value;
    return most ? make_binary(m, DLC_OP_LT, most, make_scalar(m, most->type.dtype, 0.75)) : NULL;
}

static dlc_expr some_condition(make *m)
{
    dlc_pool *pool = m->graph->pool;
    int has_size = m->graph->symbols.n && m->graph->symbols.data[0].bind == DLC_BIND_INPUT_DIM;
    if (has_size && chance(m->from, 35))
        return dlc_lt(pool, dlc_expr_sym(pool, 0), make_int(m, 4));
    dlc_value *flag = some_flag(m);
    return flag ? dlc_lt(pool, make_int(m, 0), bind_data(m, flag, 1)) : 0;
}

/* --- branches --- */

/* The newest values of a branch, for the other to match. */
static uint32_t results_of(make *m, item *results)
{
    uint32_t n = 0, most = 1 + one_of(m->from, 2);
    for (uint32_t i = m->nitems; i-- > m->first && n < most;)
        if (!m->items[i].value->data)
            results[n++] = m->items[i];
    return n;
}

/* A value of the branch that is open, of the type of `like`; a new one if there is none. */
static dlc_value *matching(make *m, const item *like)
{
    dlc_value *found = chance(m->from, 80) ? make_find(m, &like->value->type, NULL) : NULL;
    if (found && !found->data)
        return found;
    dlc_value *input = make_input(m, like->value->type.dtype, like->value->type.dims, like->value->type.rank, like->below);
    return input;
}

static void branches(make *m)
{
    dlc_expr holds = some_condition(m);
    if (!holds)
        return;
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_HOLDS, &holds, 1);
    dlc_value *yes[2], *no[2], *token = make_node(m, DLC_OP_IF, NULL, 0, &attr, 1);
    item results[2];
    if (!token)
        return;
    scope s = enter(m);
    make_nodes(m, 1 + one_of(m->from, 4));
    uint32_t n = results_of(m, results);
    for (uint32_t i = 0; i < n; i++)
        yes[i] = results[i].value;
    leave(m, s);
    token = mark(m, DLC_OP_ELSE, token);
    s = enter(m);
    make_nodes(m, one_of(m->from, 4));
    for (uint32_t i = 0; i < n; i++)
        no[i] = matching(m, &results[i]);
    leave(m, s);
    token = mark(m, DLC_OP_DONE, token);
    for (uint32_t i = 0; i < n; i++)
        if (no[i])
            make_keep(m, make_node(m, DLC_OP_EITHER, (dlc_value *[]){token, yes[i], no[i]}, 3, NULL, 0), results[i].size + 1, 0);
}

/* --- loops --- */

typedef struct {
    dlc_value *token, *done;
    dlc_expr at, most;   /* the iteration; how many */
    dlc_value *states[4], *next[4];
    uint32_t nstates;
    dlc_value *rows;
    int goes_on;         /* state 0 says whether */
} loop;

static dlc_expr some_count(make *m, loop *l)
{
    item x = chance(m->from, 45) ? make_pick(m, WANT_FLOAT, 2, 3) : (item){0};
    if (x.value) {
        l->rows = x.value;
        return x.value->type.dims[0];
    }
    if (chance(m->from, 50))
        return make_int(m, one_of(m->from, 6));
    dlc_value *trip = make_input(m, DLC_I64, NULL, 0, 5);
    return trip ? bind_data(m, trip, 6) : make_int(m, 2);
}

static int begin_loop(make *m, loop *l)
{
    dlc_pool *pool = m->graph->pool;
    l->most = some_count(m, l);
    dlc_value *flag = chance(m->from, 25) ? make_input(m, DLC_BOOL, NULL, 0, 0) : NULL;
    item starts[3];
    uint32_t n = 1 + one_of(m->from, 2);
    for (uint32_t i = 0; i < n; i++)
        starts[i] = make_pick(m, chance(m->from, 80) ? WANT_FLOAT : WANT_NUM, 0, 3);
    uint32_t symbol = dlc_graph_symbol(m->graph, dlc_arena_printf(m->arena, "i%u", m->graph->symbols.n), DLC_BIND_OPAQUE, NULL, 0);
    m->graph->symbols.data[symbol].hi = 1000;
    l->at = dlc_expr_sym(pool, symbol);
    dlc_expr holds = dlc_lt(pool, l->at, l->most);
    dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_SYMBOL, symbol), dlc_attr_dims(DLC_ATTR_HOLDS, &holds, 1)};
    l->token = make_node(m, DLC_OP_LOOP, NULL, 0, attrs, 2);
    if (!l->token)
        return 0;
    if (flag && (l->states[0] = make_node(m, DLC_OP_STATE, (dlc_value *[]){l->token, flag}, 2, NULL, 0))) {
        l->nstates = 1;
        l->goes_on = 1;
    }
    for (uint32_t i = 0; i < n; i++)
        if (starts[i].value &&
            (l->states[l->nstates] = make_node(m, DLC_OP_STATE, (dlc_value *[]){l->token, starts[i].value}, 2, NULL, 0)))
            l->nstates++;
    return 1;
}

/* Row `at` of what is scanned. */
static void read_row(make *m, const loop *l)
{
    dlc_expr starts[DLC_MAX_RANK], steps[DLC_MAX_RANK], dims[DLC_MAX_RANK];
    uint32_t rank = l->rows->type.rank;
    for (uint32_t d = 0; d < rank; d++) {
        starts[d] = d ? make_int(m, 0) : l->at;
        steps[d] = make_int(m, 1);
        dims[d] = d ? l->rows->type.dims[d] : make_int(m, 1);
    }
    dlc_attr attrs[] = {dlc_attr_dims(DLC_ATTR_STARTS, starts, rank), dlc_attr_dims(DLC_ATTR_STEPS, steps, rank),
                        dlc_attr_dims(DLC_ATTR_DIMS, dims, rank)};
    dlc_value *rows = l->rows, *row = make_node(m, DLC_OP_SLICE, &rows, 1, attrs, 3);
    if (row)
        make_keep(m, make_reshape(m, row, dims + 1, rank - 1), 1, 0);
}

/* What a state is in the next iteration: something of its type, tamed, for it goes round. */
static dlc_value *next_of(make *m, dlc_value *state)
{
    static const dlc_opcode ways[] = {DLC_OP_TANH, DLC_OP_SIGMOID, DLC_OP_SOFTSIGN};
    dlc_value *found = make_find(m, &state->type, state);
    if (state->type.dtype == DLC_BOOL)
        return found ? found : make_unary(m, DLC_OP_NOT, state);
    if (!dlc_is_float(state->type.dtype))
        return found ? found : make_binary(m, DLC_OP_ADD, state, make_scalar(m, state->type.dtype, 1));
    if (found && chance(m->from, 60)) /* a recurrence */
        found = make_binary(m, chance(m->from, 70) ? DLC_OP_ADD : DLC_OP_MUL, found, state);
    return make_unary(m, ways[one_of(m->from, 3)], found ? found : state);
}

static void end_loop(make *m, loop *l, scope s)
{
    dlc_value *stacked = NULL, *results[5];
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->nstates; i++)
        l->next[i] = next_of(m, l->states[i]);
    for (uint32_t i = m->nitems; i-- > s.nitems && !stacked && !l->goes_on;)
        if (m->items[i].value->type.rank < 4 && !m->items[i].value->data)
            stacked = m->items[i].value;
    leave(m, s);
    l->done = mark(m, DLC_OP_DONE, l->token);
    for (uint32_t i = 0; i < l->nstates; i++) {
        dlc_value *next = l->next[i] ? l->next[i] : l->states[i];
        results[n] = make_node(m, DLC_OP_FINAL, (dlc_value *[]){l->done, l->states[i], next}, 3, NULL, 0);
        n += results[n] != NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        make_keep(m, results[i], 2, 0);
    if (!stacked)
        return;
    dims[0] = l->most;
    memcpy(dims + 1, stacked->type.dims, stacked->type.rank * sizeof *dims);
    dlc_attr attrs[] = {dlc_attr_dims(DLC_ATTR_DIMS, dims, stacked->type.rank + 1u), dlc_attr_int(DLC_ATTR_REVERSE, 1)};
    make_keep(m, make_node(m, DLC_OP_STACK, (dlc_value *[]){l->done, stacked}, 2, attrs, 1 + chance(m->from, 30)), 2, 0);
}

static void repeated(make *m)
{
    loop l = {0};
    if (!begin_loop(m, &l))
        return;
    scope s = enter(m);
    for (uint32_t i = 0; i < l.nstates; i++)
        make_keep(m, l.states[i], 2, 0);
    if (l.goes_on) {
        dlc_node *node = l.token->def;
        dlc_expr goes_on = dlc_lt(m->graph->pool, make_int(m, 0), bind_data(m, l.states[0], 1));
        dlc_expr holds = dlc_and(m->graph->pool, dlc_region_holds(node), goes_on);
        node->attrs[1].as.dims = dlc_arena_copy(m->graph->arena, &holds, sizeof holds);
    }
    if (l.rows)
        read_row(m, &l);
    make_nodes(m, 1 + one_of(m->from, 4));
    end_loop(m, &l, s);
}

void kind_region(make *m)
{
    if (m->depth > 1 || m->graph->symbols.n > 30)
        return;
    if (chance(m->from, 45))
        branches(m);
    else
        repeated(m);
}

/*
 * The graph: building, uses, replacing, erasing. Nodes are a doubly linked list in an order where
 * every value is defined before its uses; constants stand first, so that a pass may make one
 * anywhere and use it everywhere.
 */
#include "base/table.h"
#include "ir/graph/build.h"
#include "ir/graph/region.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CONTENT_ELEMS = 64, FLOAT_CONTENT_ELEMS = 8 };

static const dlc_layout row_major; /* of almost all values */

/* --- names in use; an item is the number of the next suffix of its name, 0: none was needed --- */

struct dlc_names {
    dlc_table table;
};

/* `text` itself if it is free, else with the first free suffix. */
static const char *unique_name(dlc_graph *graph, const char *text)
{
    dlc_table *names = &graph->names->table;
    void **next = dlc_table_find(names, text);
    const char *name = text;
    for (uintptr_t suffix = next && *next ? (uintptr_t)*next : 2; next; suffix++) {
        name = dlc_arena_printf(graph->arena, "%s_%" PRIuPTR, text, suffix);
        *next = (void *)(suffix + 1);
        if (!dlc_table_find(names, name))
            break;
    }
    int is_new;
    name = next ? name : dlc_arena_strdup(graph->arena, text);
    dlc_table_insert(names, graph->arena, name, &is_new);
    return name;
}

/* --- graphs, symbols, inputs and outputs --- */

dlc_graph *dlc_graph_create(dlc_arena *arena, dlc_diag *diag, const char *file)
{
    dlc_graph *graph = dlc_new(arena, dlc_graph);
    graph->arena = arena;
    graph->pool = dlc_pool_create(arena);
    graph->diag = diag;
    graph->file = dlc_arena_strdup(arena, file ? file : "");
    graph->name = "main";
    graph->names = dlc_new(arena, dlc_names);
    return graph;
}

static const char *unique_symbol_name(dlc_graph *graph, const char *name)
{
    const char *candidate = name;
    for (uint32_t suffix = 2, i = 0; i < graph->symbols.n; i++)
        if (strcmp(graph->symbols.data[i].name, candidate) == 0) {
            candidate = dlc_arena_printf(graph->arena, "%s_%" PRIu32, name, suffix++);
            i = UINT32_MAX; /* look at all again */
        }
    return candidate == name ? dlc_arena_strdup(graph->arena, name) : candidate;
}

uint32_t dlc_graph_symbol(dlc_graph *graph, const char *name, dlc_bind bind, dlc_value *value,
                          uint32_t index)
{
    dlc_symbol symbol = {.name = unique_symbol_name(graph, name),
                         .lo = 0,
                         .hi = INT32_MAX,
                         .bind = (uint8_t)bind,
                         .value = value,
                         .index = index};
    dlc_vec_push(graph->arena, &graph->symbols, symbol);
    if (value && bind != DLC_BIND_INPUT_DIM)
        value->nbinds++;
    dlc_expr_sym(graph->pool,
                 graph->symbols.n -
                     1); /* ids in the order of symbols: sums print alike after parsing */
    return graph->symbols.n - 1;
}

dlc_value *dlc_value_create(dlc_graph *graph, const char *name, const dlc_type *type)
{
    dlc_value *value = dlc_new(graph->arena, dlc_value);
    value->id = graph->nvalues++;
    value->name = unique_name(graph, name);
    value->type = *type;
    value->layout = &row_major;
    return value;
}

void dlc_value_lay(dlc_graph *graph, dlc_value *value, const dlc_layout *layout)
{
    value->layout = layout->nparts ? dlc_arena_copy(graph->arena, layout, sizeof *layout) : &row_major;
}

void dlc_value_rename(dlc_graph *graph, dlc_value *value, const char *name)
{
    value->name = unique_name(graph, name);
}

dlc_value *dlc_graph_input(dlc_graph *graph, const char *name, const dlc_type *type)
{
    dlc_value *value = dlc_value_create(graph, name, type);
    dlc_vec_push(graph->arena, &graph->inputs, value);
    return value;
}

void dlc_graph_output(dlc_graph *graph, const char *name, dlc_value *value)
{
    dlc_output_value output = {dlc_arena_strdup(graph->arena, name), value};
    dlc_vec_push(graph->arena, &graph->outputs, output);
    value->noutputs++;
}

/* --- the node list --- */

static void link_before(dlc_graph *graph, dlc_node *node, dlc_node *before)
{
    node->next = before;
    node->prev = before ? before->prev : graph->last;
    *(node->prev ? &node->prev->next : &graph->first) = node;
    *(before ? &before->prev : &graph->last) = node;
}

static void unlink_node(dlc_graph *graph, dlc_node *node)
{
    *(node->prev ? &node->prev->next : &graph->first) = node->next;
    *(node->next ? &node->next->prev : &graph->last) = node->prev;
    if (graph->last_constant == node)
        graph->last_constant = node->prev;
    node->prev = node->next = NULL;
}

static void add_use(dlc_node *node, uint32_t input)
{
    dlc_value *value = node->inputs[input];
    dlc_use *use = &node->own_uses[input];
    if (!value)
        return;
    *use = (dlc_use){node, input, value->uses, &value->uses};
    if (use->next)
        use->next->link = &use->next;
    value->uses = use;
}

static void drop_use(dlc_node *node, uint32_t input)
{
    dlc_use *use = &node->own_uses[input];
    if (use->link)
        *use->link = use->next;
    if (use->next)
        use->next->link = use->link;
    *use = (dlc_use){0};
    node->inputs[input] = NULL;
}

void dlc_node_link(dlc_graph *graph, dlc_node *node, dlc_node *before)
{
    link_before(graph, node, before);
    for (uint32_t i = 0; i < node->ninputs; i++)
        add_use(node, i);
}

/* --- constants --- */

static int has_small_content(dlc_dtype dtype, int64_t elems)
{
    return elems <= (dlc_is_float(dtype) ? FLOAT_CONTENT_ELEMS : CONTENT_ELEMS);
}

static dlc_expr element_content(dlc_pool *pool, dlc_dtype dtype, const void *bytes, int64_t i)
{
    dlc_scalar scalar =
        dlc_scalar_read(dtype, (const char *)bytes + (size_t)i * dlc_dtype_bytes(dtype));
    if (dlc_is_float(dtype))
        return dlc_expr_const(pool, dtype, scalar.f);
    return dtype == DLC_BOOL ? dlc_expr_bool(pool, scalar.i != 0) : dlc_expr_i64(pool, scalar.i);
}

static void set_constant_content(dlc_graph *graph, dlc_value *value)
{
    int64_t elems;
    if (!dlc_type_elems(graph->pool, &value->type, &elems) ||
        !has_small_content(value->type.dtype, elems))
        return;
    dlc_expr *content = dlc_new_array(graph->arena, dlc_expr, (size_t)elems + 1);
    for (int64_t i = 0; i < elems; i++) {
        content[i] = element_content(graph->pool, value->type.dtype, value->data->bytes, i);
        int64_t whole;
        if (value->type.dtype == DLC_U64 && dlc_expr_is_int(graph->pool, content[i], &whole) &&
            whole < 0)
            return; /* beyond i64 */
    }
    value->content = content;
}

dlc_value *dlc_graph_constant(dlc_graph *graph, const char *name, const dlc_type *type,
                              const void *bytes, size_t size_bytes)
{
    size_t wanted;
    int fits = dlc_type_bytes(graph->pool, type, &wanted) && wanted == size_bytes;
    assert(fits);
    (void)fits;
    dlc_node *node = dlc_new(graph->arena, dlc_node);
    node->id = graph->nnodes++;
    node->op = DLC_OP_CONSTANT;
    node->noutputs = 1;
    node->outputs = dlc_new_array(graph->arena, dlc_value *, 1);
    dlc_value *value = node->outputs[0] = dlc_value_create(graph, name ? name : "const", type);
    dlc_tensor *data = dlc_new(graph->arena, dlc_tensor);
    *data = (dlc_tensor){.bytes = bytes, .size_bytes = size_bytes};
    value->data = data;
    value->def = node;
    set_constant_content(graph, value);
    link_before(graph, node, graph->last_constant ? graph->last_constant->next : graph->first);
    graph->last_constant = node;
    return value;
}

dlc_value *dlc_graph_scalar(dlc_graph *graph, dlc_dtype dtype, double value)
{
    void *bytes = dlc_arena_alloc(graph->arena, dlc_dtype_bytes(dtype), 16);
    dlc_scalar given = {.f = value};
    dlc_scalar scalar = {.f = dlc_is_float(dtype) ? dlc_round_to(dtype, value) : 0};
    if (!dlc_is_float(dtype))
        scalar = dlc_scalar_apply(DLC_EXPR_CAST, DLC_F64, dtype, &given);
    dlc_scalar_write(dtype, bytes, scalar);
    dlc_type type = {.dtype = dtype};
    return dlc_graph_constant(graph, "scalar", &type, bytes, dlc_dtype_bytes(dtype));
}

dlc_value *dlc_graph_ints(dlc_graph *graph, const int64_t *values, uint32_t n)
{
    void *bytes = dlc_arena_copy(graph->arena, values, n * sizeof *values);
    dlc_type type = {.dtype = DLC_I64, .rank = 1, .dims = {dlc_expr_i64(graph->pool, n)}};
    return dlc_graph_constant(graph, "ints", &type, bytes, n * sizeof *values);
}

/* --- nodes --- */

void dlc_node_set_input(dlc_node *node, uint32_t input, dlc_value *value)
{
    drop_use(node, input);
    node->inputs[input] = value;
    add_use(node, input);
}

void dlc_value_replace(dlc_graph *graph, dlc_value *from, dlc_value *to)
{
    if (from == to)
        return;
    dlc_use **tail = &from->uses;
    for (; *tail; tail = &(*tail)->next)
        (*tail)->node->inputs[(*tail)->input] = to;
    *tail = to->uses;
    if (*tail)
        (*tail)->link = tail;
    to->uses = from->uses;
    if (to->uses)
        to->uses->link = &to->uses;
    from->uses = NULL;
    for (uint32_t left = from->noutputs; left;) {
        uint32_t o = graph->next_output < graph->outputs.n ? graph->next_output : 0;
        graph->next_output = o + 1;
        if (graph->outputs.data[o].value == from) {
            graph->outputs.data[o].value = to;
            left--;
        }
    }
    to->noutputs += from->noutputs;
    from->noutputs = 0;
    for (uint32_t s = 0; from->nbinds && s < graph->symbols.n; s++)
        if (graph->symbols.data[s].value == from)
            graph->symbols.data[s].value = to;
    to->nbinds += from->nbinds;
    from->nbinds = 0;
}

void dlc_graph_erase(dlc_graph *graph, dlc_node *node)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        assert(!node->outputs[o] || !dlc_value_is_used(node->outputs[o]));
    for (uint32_t i = 0; i < node->ninputs; i++)
        drop_use(node, i);
    unlink_node(graph, node);
}

uint32_t dlc_value_nuses(const dlc_value *value)
{
    uint32_t nuses = value->noutputs + value->nbinds;
    for (const dlc_use *use = value->uses; use; use = use->next)
        nuses++;
    return nuses;
}

/* --- conditions and equal dimensions --- */

/* The condition that holds where the graph's region runs. */
static dlc_expr in_region(const dlc_graph *graph, dlc_expr holds)
{
    return !graph->region ? holds
                          : dlc_expr2(graph->pool, DLC_EXPR_OR, holds,
                                      dlc_expr1(graph->pool, DLC_EXPR_NOT, dlc_region_path(graph, graph->region)));
}

static int is_required(const dlc_graph *graph, dlc_expr holds)
{
    int64_t known;
    if (dlc_expr_is_int(graph->pool, holds, &known) && known)
        return 1;
    for (uint32_t i = 0; i < graph->conditions.n; i++)
        if (graph->conditions.data[i].holds == holds)
            return 1;
    return 0;
}

void dlc_graph_require(dlc_graph *graph, dlc_expr holds, const char *format, ...)
{
    holds = in_region(graph, holds);
    if (is_required(graph, holds))
        return;
    va_list args;
    va_start(args, format);
    dlc_condition condition = {holds, dlc_arena_vprintf(graph->arena, format, args)};
    va_end(args);
    dlc_vec_push(graph->arena, &graph->conditions, condition);
}

/* The first equality of the dimension, or the next: those that were taken back, and what stands in their place, do not count. */
static const dlc_equality *equality_of(const dlc_graph *graph, dlc_expr dim, const dlc_equality *before)
{
    uint32_t i = before ? before->next : dim < graph->first_equalities.n ? graph->first_equalities.data[dim] : UINT32_MAX;
    return i < graph->equalities.n && graph->equalities.data[i].from == dim ? &graph->equalities.data[i] : NULL;
}

/* Each step goes one way in one order, so this ends. */
static dlc_expr representative(const dlc_graph *graph, dlc_expr dim)
{
    const dlc_equality *equality = equality_of(graph, dim, NULL);
    while (equality) {
        if (dlc_region_is_in(graph->region, equality->region)) {
            dim = equality->to;
            equality = equality_of(graph, dim, NULL);
        } else {
            equality = equality_of(graph, dim, equality);
        }
    }
    return dim;
}

static void add_equality(dlc_graph *graph, dlc_expr from, dlc_expr to)
{
    const dlc_equality *last = NULL, *equality = NULL;
    while ((equality = equality_of(graph, from, last)))
        last = equality;
    while (graph->first_equalities.n <= from)
        dlc_vec_push(graph->arena, &graph->first_equalities, UINT32_MAX);
    *(last ? &graph->equalities.data[last - graph->equalities.data].next : &graph->first_equalities.data[from]) = graph->equalities.n;
    dlc_equality added = {from, to, graph->region, UINT32_MAX};
    dlc_vec_push(graph->arena, &graph->equalities, added);
}

static dlc_expr same_node(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    if (node->op == DLC_EXPR_CONST)
        return 0;
    dlc_expr_node copy = *node;
    dlc_expr built =
        copy.op == DLC_EXPR_SYM
            ? dlc_expr_sym(to, copy.imm.id)
            : dlc_expr_make(to, (dlc_expr_op)copy.op, (dlc_dtype)copy.dtype, args, copy.nargs);
    return representative(ctx, built);
}

dlc_expr dlc_graph_same(dlc_graph *graph, dlc_expr dim)
{
    int64_t value;
    if (!graph->equalities.n || dlc_expr_is_int(graph->pool, dim, &value))
        return dim;
    return dlc_expr_rewrite(graph->pool, graph->pool, dim, same_node, graph);
}

/* Its last symbol, counted from 1, and how much it is made of. */
static uint64_t newness(const dlc_graph *graph, dlc_expr dim)
{
    dlc_mark mark = dlc_arena_mark(graph->arena);
    uint8_t *marks = dlc_new_array(graph->arena, uint8_t, dim + 1);
    uint64_t last = 0, parts = 0;
    dlc_expr_reach(graph->pool, dim, marks);
    for (dlc_expr e = 1; e <= dim; e++) {
        const dlc_expr_node *node = dlc_node_of(graph->pool, e);
        parts += marks[e];
        if (marks[e] && node->op == DLC_EXPR_SYM && node->imm.id >= last)
            last = node->imm.id + 1u;
    }
    dlc_arena_release(graph->arena, mark);
    return last << 32 | parts;
}

/*
 * The one that stays of two different dimensions that a condition makes equal: a constant, what older symbols make up, the one of
 * fewer parts, what is first in the structural order. So it has nothing of the other in it, and is the same where the graph is read
 * from text.
 */
static dlc_expr equate(dlc_graph *graph, dlc_expr a, dlc_expr b)
{
    uint64_t of_a = newness(graph, a), of_b = newness(graph, b);
    int a_stays = of_a != of_b ? of_a < of_b : dlc_expr_order(graph->pool, a, b) < 0;
    add_equality(graph, a_stays ? b : a, a_stays ? a : b);
    return a_stays ? a : b;
}

int dlc_graph_equal(dlc_graph *graph, dlc_expr a, dlc_expr b, const char *what, dlc_expr *result)
{
    int is_known = is_required(graph, in_region(graph, dlc_eq(graph->pool, a, b)));
    a = dlc_graph_same(graph, a);
    b = dlc_graph_same(graph, b);
    *result = a;
    if (a == b)
        return 1;
    dlc_ranges ranges = dlc_graph_ranges(graph);
    dlc_interval difference = dlc_expr_range(graph->pool, dlc_sub(graph->pool, a, b), &ranges);
    if (difference.lo > 0 || difference.hi < 0)
        return 0;
    if (!is_known)
        dlc_graph_require(graph, dlc_eq(graph->pool, a, b), "%s", what);
    *result = equate(graph, a, b);
    return 1;
}

/* What is compared in `holds`, or in a part of it that must hold unless `otherwise` does; 0: nothing is. */
static dlc_expr equality_in(dlc_pool *pool, dlc_expr holds, dlc_expr part, dlc_expr otherwise)
{
    const dlc_expr_node node = *dlc_node_of(pool, part);
    if (node.op == DLC_EXPR_EQ && dlc_node_of(pool, dlc_arg(pool, part, 0))->dtype == DLC_I64)
        return dlc_expr2(pool, DLC_EXPR_OR, part, otherwise) == holds ? part : 0;
    dlc_expr found = 0;
    for (uint32_t i = 0; node.op == DLC_EXPR_OR && i < node.nargs && !found; i++)
        found = equality_in(pool, holds, dlc_arg(pool, part, i), otherwise);
    return found;
}

void dlc_graph_learn(dlc_graph *graph)
{
    dlc_pool *pool = graph->pool;
    dlc_expr otherwise = dlc_expr1(pool, DLC_EXPR_NOT, dlc_region_path(graph, graph->region));
    for (uint32_t i = 0; i < graph->conditions.n; i++) {
        dlc_expr holds = graph->conditions.data[i].holds, equality = equality_in(pool, holds, holds, otherwise);
        if (!equality)
            continue;
        dlc_expr a = dlc_graph_same(graph, dlc_arg(pool, equality, 0)), b = dlc_graph_same(graph, dlc_arg(pool, equality, 1));
        if (a != b)
            equate(graph, a, b);
    }
}

dlc_ranges dlc_graph_ranges(const dlc_graph *graph)
{
    dlc_interval *symbols = dlc_new_array(graph->arena, dlc_interval, graph->symbols.n + 1);
    for (uint32_t s = 0; s < graph->symbols.n; s++)
        symbols[s] = (dlc_interval){graph->symbols.data[s].lo, graph->symbols.data[s].hi};
    return (dlc_ranges){.symbols = symbols, .nsymbols = graph->symbols.n};
}

int dlc_dim_broadcasts(const dlc_graph *graph, dlc_expr dim)
{
    int64_t known;
    if (dlc_expr_is_int(graph->pool, dim, &known))
        return known == 1;
    dlc_ranges ranges = dlc_graph_ranges(graph);
    return dlc_expr_range(graph->pool, dim, &ranges).hi <= 1;
}

/* select(x == 1, other, x), as broadcasting makes it: its two parts. */
static int is_broadcast_of(dlc_pool *pool, dlc_expr dim, dlc_expr *x, dlc_expr *other)
{
    if (dlc_node_of(pool, dim)->op != DLC_EXPR_SELECT)
        return 0;
    *other = dlc_arg(pool, dim, 1);
    *x = dlc_arg(pool, dim, 2);
    return dlc_arg(pool, dim, 0) == dlc_eq(pool, *x, dlc_expr_i64(pool, 1));
}

int dlc_dim_has_part(const dlc_graph *graph, dlc_expr dim, dlc_expr part)
{
    dlc_expr x, other;
    return dim == part || (is_broadcast_of(graph->pool, dim, &x, &other) &&
                           (dlc_dim_has_part(graph, x, part) || dlc_dim_has_part(graph, other, part)));
}

/* *left: parts that may still be looked at. */
static int may_broadcast(const dlc_graph *graph, dlc_expr dim, uint32_t *left)
{
    const dlc_expr_node *node = dlc_node_of(graph->pool, dim);
    dlc_expr x, other;
    int64_t known;
    if (*left == 0)
        return 0;
    (*left)--;
    if (node->op == DLC_EXPR_SYM) {
        const dlc_symbol *symbol = &graph->symbols.data[node->imm.id];
        return symbol->bind == DLC_BIND_INPUT_DIM && symbol->lo <= 1 && symbol->hi > 1;
    }
    return is_broadcast_of(graph->pool, dim, &x, &other) && may_broadcast(graph, x, left) &&
           (dlc_expr_is_int(graph->pool, other, &known) || may_broadcast(graph, other, left));
}

int dlc_dim_may_broadcast(const dlc_graph *graph, dlc_expr dim)
{
    uint32_t left = DLC_MOST_BROADCASTS;
    return may_broadcast(graph, dim, &left);
}

/* What random graphs are made of: values to read, new inputs and constants, nodes that are taken back when they do not fit. */
#include "tests/differ/kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 17 }; /* a symbol, for bounds */

dlc_expr make_int(make *m, int64_t value)
{
    return dlc_expr_i64(m->graph->pool, value);
}

int64_t make_elems(const make *m, const dlc_type *type)
{
    int64_t symbols[64], n = 1;
    for (uint32_t s = 0; s < 64 && s < m->graph->symbols.n; s++)
        symbols[s] = m->graph->symbols.data[s].hi < LARGE ? m->graph->symbols.data[s].hi : LARGE;
    for (uint8_t d = 0; d < type->rank; d++) {
        int64_t dim = dlc_expr_eval(m->graph->pool, type->dims[d], symbols);
        n *= dim < 1 ? 1 : dim;
        if (n > MAKE_MOST_ELEMS * 64)
            return n;
    }
    return n;
}

item *make_keep(make *m, dlc_value *value, double size, int64_t below)
{
    if (!value || m->nitems == MAKE_MOST_ITEMS)
        return NULL;
    item *it = &m->items[m->nitems++];
    *it = (item){value, size, below};
    return it;
}

/* --- nodes --- */

/* Conditions on sizes would refuse the run: rarely wanted. */
static int is_unwelcome(make *m, const dlc_node *node, uint32_t nconditions)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o] && make_elems(m, &node->outputs[o]->type) > MAKE_MOST_ELEMS)
            return 1;
    return m->graph->conditions.n > nconditions && !chance(m->from, 3);
}

static void undo(make *m, dlc_node *node, uint32_t nconditions, uint32_t nequalities)
{
    if (node)
        dlc_graph_erase(m->graph, node);
    m->graph->conditions.n = nconditions;
    m->graph->equalities.n = nequalities;
}

static uint32_t outputs_of(make *m, dlc_opcode op)
{
    return op == DLC_OP_TOPK ? 2 : op == DLC_OP_MAX_POOL && chance(m->from, 15) ? 2 : 1;
}

dlc_value *make_node(make *m, dlc_opcode op, dlc_value *const *inputs, uint32_t ninputs, const dlc_attr *attrs, uint32_t nattrs)
{
    uint32_t nconditions = m->graph->conditions.n, nequalities = m->graph->equalities.n;
    for (uint32_t i = 0; i < ninputs; i++)
        if (!inputs[i] && (int)i < dlc_ops[op].lo)
            return NULL;
    dlc_node_spec spec = {.op = op, .name = dlc_arena_printf(m->arena, "v%u", m->nnodes), .inputs = inputs, .ninputs = ninputs,
                          .noutputs = outputs_of(m, op), .attrs = attrs, .nattrs = nattrs};
    dlc_node *node = dlc_graph_node(m->graph, &spec);
    if (!node || (!dlc_op_is_mark(op) && is_unwelcome(m, node, nconditions))) {
        undo(m, node, nconditions, nequalities);
        return NULL;
    }
    m->nnodes++;
    for (uint32_t o = 1; o < node->noutputs; o++)
        make_keep(m, node->outputs[o], 1, 0);
    return node->outputs[0];
}

dlc_value *make_unary(make *m, dlc_opcode op, dlc_value *x)
{
    return make_node(m, op, &x, 1, NULL, 0);
}

dlc_value *make_binary(make *m, dlc_opcode op, dlc_value *a, dlc_value *b)
{
    return make_node(m, op, (dlc_value *[]){a, b}, 2, NULL, 0);
}

dlc_value *make_cast(make *m, dlc_value *x, dlc_dtype dtype)
{
    if (!x || x->type.dtype == dtype)
        return x;
    dlc_attr attr = dlc_attr_int(DLC_ATTR_DTYPE, dtype);
    return make_node(m, DLC_OP_CAST, &x, 1, &attr, 1);
}

dlc_value *make_reshape(make *m, dlc_value *x, const dlc_expr *dims, uint32_t rank)
{
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_DIMS, dims, rank);
    return make_node(m, DLC_OP_RESHAPE, &x, 1, &attr, 1);
}

dlc_value *make_scalar(make *m, dlc_dtype dtype, double value)
{
    return dlc_graph_scalar(m->graph, dtype, value);
}

void make_tame(make *m, dlc_value *value, double size)
{
    static const dlc_opcode ways[] = {DLC_OP_TANH, DLC_OP_SIGMOID, DLC_OP_SOFTSIGN, DLC_OP_ATAN};
    double most = !value ? 0 : value->type.dtype == DLC_F16 ? 60 : 2000;
    make_keep(m, value, size, 0);
    if (value && dlc_is_float(value->type.dtype) && size > most)
        make_keep(m, make_unary(m, ways[one_of(m->from, 4)], value), 1.5, 0);
}

/* --- inputs and constants --- */

dlc_dtype make_float_dtype(make *m)
{
    static const dlc_dtype dtypes[] = {DLC_F32, DLC_F32, DLC_F32, DLC_F32, DLC_F32, DLC_F32, DLC_F64, DLC_F16, DLC_BF16};
    return dtypes[one_of(m->from, sizeof dtypes / sizeof *dtypes)];
}

dlc_dtype make_int_dtype(make *m)
{
    static const dlc_dtype dtypes[] = {DLC_I64, DLC_I32, DLC_I8, DLC_U8, DLC_I16, DLC_U16, DLC_U32, DLC_U64, DLC_I32, DLC_I64};
    return dtypes[one_of(m->from, sizeof dtypes / sizeof *dtypes)];
}

/* Sizes of inputs are numbers, or symbols that inputs have. */
static int is_outer(const make *m, const dlc_expr *dims, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        const dlc_expr_node *node = dlc_node_of(m->graph->pool, dims[d]);
        int64_t value;
        int is_symbol = node->op == DLC_EXPR_SYM && m->graph->symbols.data[node->imm.id].bind == DLC_BIND_INPUT_DIM;
        if (!is_symbol && !dlc_expr_is_int(m->graph->pool, dims[d], &value))
            return 0;
    }
    return 1;
}

/* The name says what numbers it is given: _uN from 0 to N - 1. */
dlc_value *make_input(make *m, dlc_dtype dtype, const dlc_expr *dims, uint32_t rank, int64_t below)
{
    dlc_type type = {.dtype = dtype, .rank = (uint8_t)rank};
    char name[48];
    if (rank)
        memcpy(type.dims, dims, rank * sizeof *dims);
    if (rank > DLC_MAX_RANK || !is_outer(m, dims, rank) || make_elems(m, &type) > MAKE_MOST_ELEMS)
        return NULL;
    snprintf(name, sizeof name, below ? "x%u_u%" PRId64 : "x%u", m->ninputs++, below);
    return dlc_graph_input(m->graph, dlc_arena_strdup(m->arena, name), &type);
}

static dlc_value *make_constant(make *m, const dlc_type *type, int64_t n, int64_t below)
{
    size_t size = dlc_dtype_bytes(type->dtype);
    char *bytes = dlc_arena_alloc(m->arena, (size_t)n * size + 1, 16);
    int is_same = chance(m->from, 10);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = (int64_t)one_of(m->from, 41) - 20;
        dlc_scalar value = {.i = below ? one_of(m->from, (uint32_t)below) : type->dtype == DLC_BOOL ? k & 1 : k};
        if (dlc_is_unsigned(type->dtype) && !below)
            value.i = k & 15;
        if (dlc_is_float(type->dtype))
            value.f = dlc_round_to(type->dtype, (double)k / 16);
        dlc_scalar_write(type->dtype, bytes + (size_t)i * size, value);
        if (is_same && i)
            memcpy(bytes + (size_t)i * size, bytes, size);
    }
    return dlc_graph_constant(m->graph, dlc_arena_printf(m->arena, "c%u", m->nnodes++), type, bytes, (size_t)n * size);
}

dlc_value *make_source(make *m, dlc_dtype dtype, const dlc_expr *dims, uint32_t rank, int64_t below)
{
    dlc_type type = {.dtype = dtype, .rank = (uint8_t)rank};
    int64_t n;
    if (rank)
        memcpy(type.dims, dims, rank * sizeof *dims);
    int is_fixed = dlc_type_elems(m->graph->pool, &type, &n) && n <= (below ? 32 : MAKE_MOST_ELEMS);
    return is_fixed && chance(m->from, 55) ? make_constant(m, &type, n, below) : make_input(m, dtype, dims, rank, below);
}

static dlc_expr some_dim(make *m)
{
    static const uint8_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 2, 3, 4, 8, 16};
    if (chance(m->from, 1))
        return make_int(m, 0);
    return make_int(m, sizes[one_of(m->from, sizeof sizes)]);
}

/* Symbols of inputs come first, and there are few. */
static dlc_expr outer_dim(make *m)
{
    uint32_t n = 0;
    while (n < m->graph->symbols.n && m->graph->symbols.data[n].bind == DLC_BIND_INPUT_DIM)
        n++;
    return n && chance(m->from, 45) ? dlc_expr_sym(m->graph->pool, one_of(m->from, n)) : some_dim(m);
}

dlc_value *make_tensor(make *m, dlc_dtype dtype, uint32_t rank)
{
    dlc_expr dims[DLC_MAX_RANK] = {0};
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = outer_dim(m);
    dlc_value *value = make_input(m, dtype, dims, rank, 0);
    return value ? value : rank ? make_tensor(m, dtype, rank - 1) : NULL;
}

/* --- values to read --- */

static int is_wanted(const item *it, make_want want, uint32_t lo, uint32_t hi)
{
    dlc_dtype dtype = it->value->type.dtype;
    if (it->value->type.rank < lo || it->value->type.rank > hi)
        return 0;
    switch (want) {
    case WANT_FLOAT:
        return dlc_is_float(dtype);
    case WANT_INT:
        return dlc_is_int(dtype);
    case WANT_BOOL:
        return dtype == DLC_BOOL;
    case WANT_NUM:
        return dlc_is_float(dtype) || dlc_is_int(dtype);
    default:
        return !dlc_is_code(dtype);
    }
}

static dlc_dtype dtype_of(make *m, make_want want)
{
    if (want == WANT_BOOL)
        return DLC_BOOL;
    return want == WANT_INT || (want != WANT_FLOAT && chance(m->from, 25)) ? make_int_dtype(m) : make_float_dtype(m);
}

item make_pick(make *m, make_want want, uint32_t lo, uint32_t hi)
{
    uint32_t found[MAKE_MOST_ITEMS], n = 0;
    for (uint32_t i = 0; i < m->nitems; i++)
        if (is_wanted(&m->items[i], want, lo, hi))
            found[n++] = i;
    if (n && chance(m->from, 93)) {
        uint32_t a = one_of(m->from, n), b = one_of(m->from, n);
        return m->items[found[a > b ? a : b]];
    }
    dlc_value *value = make_tensor(m, dtype_of(m, want), lo + one_of(m->from, (hi < 4 ? hi : lo < 4 ? 4 : lo) - lo + 1));
    item *it = make_keep(m, value, 1, 0);
    return it && it->value->type.rank >= lo ? *it : (item){0};
}

dlc_value *make_find(make *m, const dlc_type *type, const dlc_value *other_than)
{
    for (uint32_t i = m->nitems; i-- > 0;) {
        const dlc_type *t = &m->items[i].value->type;
        if (m->items[i].value == other_than || t->dtype != type->dtype || t->rank != type->rank)
            continue;
        if (!memcmp(t->dims, type->dims, type->rank * sizeof *type->dims))
            return m->items[i].value;
    }
    return NULL;
}

/* --- the whole --- */

static void add_symbols(make *m)
{
    static const char *const names[] = {"n", "m"};
    uint32_t count = chance(m->from, 35) ? 1 + one_of(m->from, 2) : 0;
    for (uint32_t s = 0; s < count; s++) {
        uint32_t symbol = dlc_graph_symbol(m->graph, names[s], DLC_BIND_INPUT_DIM, NULL, 0);
        dlc_expr dims[3] = {dlc_expr_sym(m->graph->pool, symbol), some_dim(m), some_dim(m)};
        dlc_value *value = make_input(m, make_float_dtype(m), dims, 1 + one_of(m->from, 3), 0);
        if (!value)
            value = make_input(m, DLC_F32, dims, 1, 0);
        m->graph->symbols.data[symbol].value = value;
        make_keep(m, value, 1, 0);
    }
}

/* Everything nobody reads, and some of the rest. */
static void add_outputs(make *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->nitems; i++) {
        dlc_value *value = m->items[i].value;
        if (!value->def || value->data || (value->uses && !chance(m->from, 12)) || value->noutputs)
            continue;
        dlc_graph_output(m->graph, dlc_arena_printf(m->arena, "y%u", count++), value);
    }
    if (!count)
        dlc_graph_output(m->graph, "y0", make_unary(m, DLC_OP_ABS, make_tensor(m, DLC_F32, 2)));
}

/* The first line: what each symbol is, run by run. */
static void add_sizes(make *m, dlc_str *out)
{
    static const uint8_t sizes[] = {1, 3, 8, 17, 2, 5, 16, 4, 0};
    dlc_str_printf(out, "# seed %u", one_of(m->from, 250));
    for (uint32_t s = 0; s < m->graph->symbols.n && m->graph->symbols.data[s].bind == DLC_BIND_INPUT_DIM; s++)
        dlc_str_printf(out, " %s=%d,%d", m->graph->symbols.data[s].name, sizes[one_of(m->from, 8)],
                       sizes[one_of(m->from, sizeof sizes)]);
    dlc_str_add(out, "\n");
}

static const struct {
    uint32_t weight;
    void (*make)(make *m);
} kinds[] = {
#define MAKE_KIND(weight, name) {weight, kind_##name},
#include "tests/differ/kinds.def"
#undef MAKE_KIND
};

void make_step(make *m)
{
    uint32_t all = 0, k = 0;
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        all += kinds[i].weight;
    uint32_t at = one_of(m->from, all);
    while (at >= kinds[k].weight)
        at -= kinds[k++].weight;
    kinds[k].make(m);
}

void make_nodes(make *m, uint32_t n)
{
    for (uint32_t i = 0, most = m->nnodes + n; i < 4 * n && m->nnodes < most; i++)
        make_step(m);
}

void make_graph(draws *from, uint32_t nnodes, dlc_str *out)
{
    make *m = calloc(1, sizeof *m);
    m->from = from;
    m->arena = dlc_arena_create(0);
    dlc_diag_init(&m->diag, m->arena);
    m->graph = dlc_graph_create(m->arena, &m->diag, "random");
    m->graph->name = "random";
    add_symbols(m);
    make_nodes(m, nnodes);
    add_outputs(m);
    add_sizes(m, out);
    dlc_graph_print(m->graph, out);
    dlc_arena_destroy(m->arena);
    free(m);
}

/*
 * Regions of the graph (ir/graph/region.h) as importers build them: a mark, the nodes in it by any importer, the mark that closes it,
 * and what it gives. A region that turned out to be none after all is taken back.
 */
#include "frontend/regions.h"

#include <inttypes.h>
#include <string.h>

static dlc_value *mark(dlc_import *im, dlc_opcode op, dlc_value *token)
{
    return f_node(im, op, &token, token ? 1 : 0, F_PLAIN);
}

/* --- conditions --- */

static dlc_expr bind_data(dlc_import *im, dlc_value *value)
{
    uint32_t symbol = dlc_graph_symbol(im->graph, value->name, DLC_BIND_DATA, value, 0);
    im->graph->symbols.data[symbol].lo = 0;
    im->graph->symbols.data[symbol].hi = 1;
    return dlc_lt(im->pool, im_i64(im, 0), dlc_expr_sym(im->pool, symbol));
}

dlc_expr im_condition(dlc_import *im, dlc_value *value)
{
    int64_t n;
    if (value->type.dtype != DLC_BOOL || !dlc_type_elems(im->pool, &value->type, &n) || n != 1) {
        im_fail(im, DLC_INVALID, "its condition '%s' is not one bool", value->name);
        return 0;
    }
    if (!value->content) {
        dlc_expr *content = dlc_new_array(im->arena, dlc_expr, 1);
        content[0] = bind_data(im, value);
        value->content = content; /* all readers see the same symbol */
    }
    return value->content[0];
}

/* --- if --- */

int im_if_begin(dlc_import *im, im_if *branches, dlc_expr holds)
{
    branches->token = f_node(im, DLC_OP_IF, NULL, 0, F_ATTRS(dlc_attr_dims(DLC_ATTR_HOLDS, &holds, 1)));
    return branches->token != NULL;
}

int im_if_else(dlc_import *im, im_if *branches)
{
    branches->token = mark(im, DLC_OP_ELSE, branches->token);
    return branches->token != NULL;
}

int im_if_end(dlc_import *im, im_if *branches)
{
    branches->token = mark(im, DLC_OP_DONE, branches->token);
    return branches->token != NULL;
}

static void refuse_either(dlc_import *im, const dlc_value *yes, const dlc_value *no)
{
    dlc_str a = {0}, b = {0};
    dlc_type_print(im->graph, &yes->type, &a);
    dlc_type_print(im->graph, &no->type, &b);
    im_fail(im, DLC_UNSUPPORTED,
            "one branch gives %s, the other %s; one element type and number of dimensions are supported",
            dlc_str_text(&a), dlc_str_text(&b));
    dlc_str_deinit(&a);
    dlc_str_deinit(&b);
}

dlc_value *f_either(dlc_import *im, const im_if *branches, dlc_value *yes, dlc_value *no)
{
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t first = im->graph->symbols.n, rank = yes && no ? yes->type.rank : 0;
    if (!yes || !no)
        return NULL;
    if (yes->type.dtype != no->type.dtype || yes->type.rank != no->type.rank) {
        refuse_either(im, yes, no);
        return NULL;
    }
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = yes->type.dims[d];
        if (dims[d] != no->type.dims[d])
            dims[d] = dlc_expr_sym(im->pool, dlc_graph_symbol(im->graph, im->origin->name, DLC_BIND_RESULT, NULL, d));
    }
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_DIMS, dims, rank);
    dlc_value *result = f_node(im, DLC_OP_EITHER, F_IN(branches->token, yes, no), &attr, im->graph->symbols.n > first);
    for (uint32_t s = first; result && s < im->graph->symbols.n; s++) {
        im->graph->symbols.data[s].value = result;
        result->nbinds++;
    }
    return result;
}

/* --- loops --- */

static void set_holds(dlc_import *im, const im_loop *loop, dlc_expr holds)
{
    dlc_node *node = loop->token->def;
    for (uint32_t a = 0; a < node->nattrs; a++)
        if (node->attrs[a].id == DLC_ATTR_HOLDS)
            node->attrs[a].as.dims = dlc_arena_copy(im->graph->arena, &holds, sizeof holds);
}

int im_loop_begin(dlc_import *im, im_loop *loop, dlc_expr most, dlc_expr enters)
{
    uint32_t symbol = dlc_graph_symbol(im->graph, dlc_arena_printf(im->arena, "%s.count", im->origin->name), DLC_BIND_OPAQUE, NULL, 0);
    int64_t count;
    if (most && im_is_const(im, most, &count) && count > 0)
        im->graph->symbols.data[symbol].hi = count - 1;
    loop->at = dlc_expr_sym(im->pool, symbol);
    dlc_expr holds = dlc_and(im->pool, most ? dlc_lt(im->pool, loop->at, most) : 0, enters);
    if (!holds)
        holds = dlc_expr_bool(im->pool, 1);
    loop->token = f_node(im, DLC_OP_LOOP, NULL, 0,
                         F_ATTRS(dlc_attr_int(DLC_ATTR_SYMBOL, symbol), dlc_attr_dims(DLC_ATTR_HOLDS, &holds, 1)));
    return loop->token != NULL;
}

void im_loop_while(dlc_import *im, im_loop *loop, dlc_expr holds)
{
    uint32_t n;
    const dlc_expr *given = dlc_node_dims(loop->token->def, DLC_ATTR_HOLDS, &n);
    set_holds(im, loop, dlc_and(im->pool, given[0], holds));
}

int im_loop_end(dlc_import *im, im_loop *loop)
{
    loop->done = mark(im, DLC_OP_DONE, loop->token);
    return loop->done != NULL;
}

dlc_value *f_state(dlc_import *im, const im_loop *loop, dlc_value *initial)
{
    return f_node(im, DLC_OP_STATE, F_IN(loop->token, initial), F_PLAIN);
}

dlc_value *f_final(dlc_import *im, const im_loop *loop, dlc_value *state, dlc_value *next)
{
    return f_node(im, DLC_OP_FINAL, F_IN(loop->done, state, next), F_PLAIN);
}

static dlc_expr first_only(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    (void)args;
    return node->op == DLC_EXPR_SYM && node->imm.id == *(const uint32_t *)ctx ? dlc_expr_i64(to, 0) : 0;
}

/* The size in the first iteration, which all iterations must have; 0: reported. */
static dlc_expr same_in_all(dlc_import *im, const im_loop *loop, dlc_expr dim)
{
    uint32_t symbol = (uint32_t)dlc_node_of(im->pool, loop->at)->imm.id;
    dlc_expr first = im_simple(im, dlc_expr_rewrite(im->pool, im->pool, dim, first_only, &symbol));
    if (!dlc_region_binds(im->graph, loop->token->def, first))
        return im_same_dim(im, dim, first, "a size in the first and in later iterations") ? first : 0;
    const dlc_expr_node *node = dlc_node_of(im->pool, first);
    for (uint8_t i = 0; node->op == DLC_EXPR_MIN && i < 2; i++) { /* what is cut to a size has that size in all: the run checks it */
        dlc_expr most = dlc_arg(im->pool, first, i);
        if (!dlc_region_binds(im->graph, loop->token->def, most))
            return im_same_dim(im, dim, most, "a size that all iterations share") ? most : 0;
    }
    dlc_str text = {0};
    dlc_dim_print(im->graph, dim, &text);
    im_fail(im, DLC_UNSUPPORTED, "an iteration gives a size that is only known inside of it, %s; one that all share is supported",
            dlc_str_text(&text));
    dlc_str_deinit(&text);
    return 0;
}

int im_loop_row(dlc_import *im, const im_loop *loop, const dlc_value *value, dlc_expr most, dlc_type *type)
{
    if (value->type.rank == DLC_MAX_RANK) {
        im_fail(im, DLC_UNSUPPORTED, "stacked results have %d dimensions; up to %d are possible", DLC_MAX_RANK + 1, DLC_MAX_RANK);
        return 0;
    }
    *type = (dlc_type){.rank = (uint8_t)(value->type.rank + 1), .dims = {most}};
    for (uint8_t d = 0; d < value->type.rank; d++) {
        dlc_expr dim = im_simple(im, value->type.dims[d]);
        type->dims[d + 1] = dlc_region_binds(im->graph, loop->token->def, dim) ? same_in_all(im, loop, dim) : dim;
        if (!type->dims[d + 1])
            return 0;
    }
    return 1;
}

dlc_value *f_stack(dlc_import *im, const im_loop *loop, dlc_value *value, const dlc_type *type, int is_reverse)
{
    const dlc_attr attrs[2] = {dlc_attr_dims(DLC_ATTR_DIMS, type->dims, type->rank), dlc_attr_int(DLC_ATTR_REVERSE, 1)};
    return f_node(im, DLC_OP_STACK, F_IN(loop->done, value), attrs, is_reverse ? 2 : 1);
}

/* --- taking back --- */

im_place im_here(const dlc_import *im)
{
    const dlc_graph *graph = im->graph;
    return (im_place){graph->last, graph->symbols.n, graph->conditions.n, graph->equalities.n};
}

/* Symbols of values that stay are forgotten there, too. */
static void drop_symbols(dlc_graph *graph, uint32_t first)
{
    for (uint32_t s = first; s < graph->symbols.n; s++) {
        dlc_symbol *symbol = &graph->symbols.data[s];
        if (!symbol->value || symbol->bind == DLC_BIND_INPUT_DIM)
            continue;
        symbol->value->nbinds--;
        if (symbol->bind == DLC_BIND_DATA)
            symbol->value->content = NULL;
    }
    graph->symbols.n = first;
}

void im_take_back(dlc_import *im, const im_place *to)
{
    dlc_graph *graph = im->graph;
    drop_symbols(graph, to->nsymbols);
    while (graph->last != to->last && graph->last && graph->last->op != DLC_OP_CONSTANT)
        dlc_graph_erase(graph, graph->last);
    graph->conditions.n = to->nconditions;
    graph->equalities.n = to->nequalities;
    graph->region = dlc_region_at(graph, NULL);
}

/*
 * Physical layouts. Values that are read at each other's indices, each dimension along one of the
 * other's (pointwise operators, concat, pad, slice, cumsum; transposes, which permute them), form
 * one component, in which all should lie in
 * memory alike; a union-find whose links carry permutations finds the components. Then each
 * component takes the order of dimensions with most votes:
 *
 * - 8 for n, spatial, c: data and results of convolutions, pooling, resize; all channels of a point
 *   are contiguous
 * - 2 for the last dimension innermost: operands and results of matmul; K or N is contiguous
 * - 3 for the last dimension innermost and 1 for row-major: results of a reshape, which lie so
 *   already; 4 for n, spatial, c where it keeps n and c of what a convolution is near to
 * - 1 for row-major: what a reshape or any other operator reads or makes, graph inputs and outputs
 * - 1 for the last dimension innermost: what is reduced along it
 *
 * So convolution networks run channels-last with their residual sums and concats, a pair of
 * transposes around something costs nothing, and attention's result is stored as b,i,h,d, which the
 * reshape after its transpose reads as rows.
 *
 * Graph inputs and outputs keep the user's row-major order and constants theirs: the kernels at the
 * borders read and write these directly. A matmul's result keeps its N axis innermost and a
 * convolution's its channels, whatever the vote.
 */
#include "ir/graph/form.h"
#include "passes/simplify/simplify.h"

#include <string.h>

typedef struct {
    uint8_t dim[DLC_MAX_RANK];
} perm;

typedef enum { CHANNELS_LAST, LAST_INNER, ROW_MAJOR } wish_kind;

typedef struct {
    const dlc_value *value;
    uint32_t next; /* of the same component, 1-based; 0 ends */
    uint8_t kind, weight;
} wish;

/* What is kept of a node's form. */
typedef struct {
    uint8_t is_tied, is_contraction, is_reduction; /* is_tied: input 0, so the node has no wish of its own */
} node_facts;

typedef struct {
    dlc_pass_ctx *ctx;
    dlc_value **values; /* by id; NULL: not in the graph, or a constant */
    uint32_t *parent;   /* union-find by value id */
    perm *link;         /* dimension d of a value is dimension link.dim[d] of its parent */
    uint32_t *head;     /* first wish of a root, 1-based */
    node_facts *facts;  /* by node id */
    dlc_vec(wish) wishes;
} components;

/* --- components --- */

static perm identity(void)
{
    perm result;
    for (uint8_t d = 0; d < DLC_MAX_RANK; d++)
        result.dim[d] = d;
    return result;
}

/* first, then second */
static perm compose(const perm *first, const perm *second)
{
    perm result;
    for (uint32_t d = 0; d < DLC_MAX_RANK; d++)
        result.dim[d] = second->dim[first->dim[d]];
    return result;
}

static perm inverse(const perm *of)
{
    perm result;
    for (uint8_t d = 0; d < DLC_MAX_RANK; d++)
        result.dim[of->dim[d]] = d;
    return result;
}

/* The root of a value's component, and how its dimensions become the root's. Halves the path on the
 * way. */
static uint32_t root_of(components *all, uint32_t id, perm *to_root)
{
    *to_root = identity();
    while (all->parent[id] != id) {
        uint32_t up = all->parent[id];
        if (all->parent[up] != up) {
            all->link[id] = compose(&all->link[id], &all->link[up]);
            all->parent[id] = all->parent[up];
        }
        *to_root = compose(to_root, &all->link[id]);
        id = all->parent[id];
    }
    return id;
}

static int is_member(const components *all, const dlc_value *value)
{
    return value && all->values[value->id];
}

/* Dimension d of a is dimension between.dim[d] of b. */
static void tie(components *all, const dlc_value *a, const dlc_value *b, perm between)
{
    if (!is_member(all, a) || !is_member(all, b) || a->type.rank != b->type.rank)
        return;
    perm a_root, b_root;
    uint32_t ra = root_of(all, a->id, &a_root), rb = root_of(all, b->id, &b_root);
    if (ra == rb)
        return;
    perm back = inverse(&a_root), on = compose(&between, &b_root);
    all->parent[ra] = rb;
    all->link[ra] = compose(&back, &on);
}

static int same_dims(const dlc_value *a, const dlc_value *b)
{
    return a && b && a->type.rank == b->type.rank &&
           !memcmp(a->type.dims, b->type.dims, a->type.rank * sizeof *a->type.dims);
}

enum { MOST_ORDERS = 3 }; /* inputs of nodes whose orders are kept for their likes */

/* How the result lies along an input. */
typedef struct {
    perm between;
    uint8_t is_there;
} input_order;

/* A reshape ties nothing, even one that keeps the shape: it is where layouts may change. */
static void tie_node(components *all, const dlc_node *node, const dlc_form *form, input_order *orders)
{
    node_facts *facts = &all->facts[node->id];
    *facts = (node_facts){.is_contraction = form->is_contraction, .is_reduction = form->is_reduction};
    for (uint32_t i = 0; i < node->ninputs && node->op != DLC_OP_RESHAPE; i++) {
        input_order found = {.between = identity()};
        found.is_there = node->inputs[i] && node->outputs[0] && dlc_form_order(form, node->inputs[i], found.between.dim);
        if (orders)
            orders[i] = found;
        if (!found.is_there)
            continue;
        tie(all, node->outputs[0], node->inputs[i], inverse(&found.between));
        facts->is_tied |= i == 0;
    }
    if (node->noutputs > 1 && node->outputs[1] && same_dims(node->outputs[0], node->outputs[1]))
        tie(all, node->outputs[1], node->outputs[0], identity());
}

/* As an alike node before. */
static void tie_like(components *all, const dlc_node *node, const dlc_node *like, const input_order *orders)
{
    all->facts[node->id] = all->facts[like->id];
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (orders[i].is_there)
            tie(all, node->outputs[0], node->inputs[i], inverse(&orders[i].between));
}

static void tie_nodes(components *all)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_form_memo memo = {0};
    input_order(*orders)[MOST_ORDERS] = dlc_arena_array(all->ctx->scratch, DLC_OP_COUNT, sizeof *orders, _Alignof(input_order));
    dlc_new(arena, dlc_node_kernel); /* so that its first block stays */
    dlc_mark mark = dlc_arena_mark(arena);
    for (dlc_node *node = all->ctx->graph->first; node; node = node->next) {
        const dlc_node *like = node->ninputs <= MOST_ORDERS ? dlc_form_like(&memo, node) : NULL;
        if (like) {
            tie_like(all, node, like, orders[node->op]);
            continue;
        }
        dlc_form form = dlc_form_of(all->ctx->graph, node, arena);
        tie_node(all, node, &form, node->ninputs <= MOST_ORDERS ? orders[node->op] : NULL);
        dlc_arena_release(arena, mark);
    }
    dlc_arena_destroy(arena);
}

/* --- wishes --- */

static void want(components *all, const dlc_value *value, wish_kind kind, uint8_t weight)
{
    if (!is_member(all, value) || value->type.rank < 2 ||
        (kind == CHANNELS_LAST && value->type.rank < 3))
        return;
    perm ignored;
    uint32_t root = root_of(all, value->id, &ignored);
    wish item = {.value = value, .next = all->head[root], .kind = (uint8_t)kind, .weight = weight};
    dlc_vec_push(all->ctx->scratch, &all->wishes, item);
    all->head[root] = all->wishes.n;
}

static void want_all(components *all, dlc_value *const *values, uint32_t n, wish_kind kind,
                     uint8_t weight)
{
    for (uint32_t i = 0; i < n; i++)
        want(all, values[i], kind, weight);
}

static int is_reduced_last(const dlc_graph *graph, const dlc_node *node)
{
    uint32_t n;
    const dlc_expr *axes = dlc_node_dims(node, DLC_ATTR_AXES, &n);
    return n && dlc_expr_value(graph->pool, axes[n - 1]) == node->inputs[0]->type.rank - 1;
}

static int is_spatial(const dlc_node *node)
{
    return (dlc_ops[node->op].traits & DLC_TRAIT_SPATIAL) != 0;
}

/* Dimension 1 will lie innermost by all likelihood: it is that of channels of what something spatial reads or makes, among the last of the
 * component so far. */
static int has_channels(components *all, const dlc_value *value)
{
    enum { MOST = 64 };
    perm own, its;
    if (!is_member(all, value))
        return 0;
    uint32_t w = all->head[root_of(all, value->id, &own)];
    for (uint32_t n = 0; w && n < MOST; n++, w = all->wishes.data[w - 1].next) {
        root_of(all, all->wishes.data[w - 1].value->id, &its);
        if (all->wishes.data[w - 1].kind == CHANNELS_LAST)
            return its.dim[1] == own.dim[1];
    }
    return 0;
}

/* [n, c, h, w] as [n, c, h * w]: channels stay innermost where they are. */
static int keeps_channels(components *all, const dlc_node *reshape)
{
    const dlc_type *from = &reshape->inputs[0]->type, *to = &reshape->outputs[0]->type;
    return from->rank > 2 && to->rank > 2 && from->dims[0] == to->dims[0] && from->dims[1] == to->dims[1] &&
           has_channels(all, reshape->inputs[0]);
}

static void want_node(components *all, const dlc_node *node)
{
    enum { SPATIAL = 8, VIEWED = 3, PRODUCT = 2, PLAIN = 1 };
    const node_facts *facts = &all->facts[node->id];
    if (is_spatial(node)) {
        want(all, node->inputs[0], CHANNELS_LAST, SPATIAL);
        want_all(all, node->outputs, node->noutputs, CHANNELS_LAST, SPATIAL);
    } else if (facts->is_contraction) {
        want_all(all, node->inputs, node->ninputs, LAST_INNER, PRODUCT);
        want_all(all, node->outputs, node->noutputs, LAST_INNER, PRODUCT);
    } else if (node->op == DLC_OP_RESHAPE && keeps_channels(all, node)) {
        want(all, node->outputs[0], CHANNELS_LAST, VIEWED + PLAIN);
    } else if (node->op == DLC_OP_RESHAPE) {
        want(all, node->outputs[0], LAST_INNER, VIEWED);
        want(all, node->outputs[0], ROW_MAJOR, PLAIN);
        want(all, node->inputs[0], ROW_MAJOR, PLAIN);
    } else if (facts->is_reduction) {
        if (is_reduced_last(all->ctx->graph, node))
            want(all, node->inputs[0], LAST_INNER, PLAIN);
    } else if (!facts->is_tied) {
        want_all(all, node->inputs, node->ninputs, ROW_MAJOR, PLAIN);
        want_all(all, node->outputs, node->noutputs, ROW_MAJOR, PLAIN);
    }
}

static void want_borders(components *all)
{
    const dlc_graph *graph = all->ctx->graph;
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        want(all, graph->inputs.data[i], ROW_MAJOR, 1);
    for (uint32_t o = 0; o < graph->outputs.n; o++)
        want(all, graph->outputs.data[o].value, ROW_MAJOR, 1);
}

/* --- the vote --- */

/* Dimensions from outer to inner that a wish asks for, of its own value. */
static perm wished_order(const wish *item)
{
    perm order = identity();
    uint8_t rank = item->value->type.rank;
    if (item->kind != CHANNELS_LAST)
        return order;
    for (uint8_t p = 1; p + 1 < rank; p++)
        order.dim[p] = p + 1;
    order.dim[rank - 1] = 1;
    return order;
}

static int is_granted(components *all, const wish *item, const perm *root_order)
{
    perm to_root, wished = wished_order(item);
    uint8_t rank = item->value->type.rank;
    root_of(all, item->value->id, &to_root);
    if (item->kind == LAST_INNER)
        return to_root.dim[rank - 1] == root_order->dim[rank - 1];
    perm asked = compose(&wished, &to_root);
    return !memcmp(asked.dim, root_order->dim, rank);
}

static uint32_t votes_for(components *all, uint32_t root, const perm *order)
{
    uint32_t votes = 0;
    for (uint32_t w = all->head[root]; w; w = all->wishes.data[w - 1].next)
        if (is_granted(all, &all->wishes.data[w - 1], order))
            votes += all->wishes.data[w - 1].weight;
    return votes;
}

/* The order, of the root's dimensions, that grants most. Candidates are the orders wished for; few
 * differ. */
static perm elect(components *all, uint32_t root)
{
    enum { MOST_CANDIDATES = 8 };
    perm tried[MOST_CANDIDATES], best = identity();
    uint32_t ntried = 0, most = votes_for(all, root, &best);
    for (uint32_t w = all->head[root]; w && ntried < MOST_CANDIDATES;
         w = all->wishes.data[w - 1].next) {
        const wish *item = &all->wishes.data[w - 1];
        perm to_root, wished = wished_order(item);
        root_of(all, item->value->id, &to_root);
        perm order = compose(&wished, &to_root);
        int is_new = 1;
        for (uint32_t t = 0; t < ntried; t++)
            is_new &= memcmp(&tried[t], &order, sizeof order) != 0;
        if (!is_new)
            continue;
        tried[ntried++] = order;
        uint32_t votes = votes_for(all, root, &order);
        if (votes > most || (votes == most && memcmp(&order, &best, sizeof order) < 0)) {
            most = votes;
            best = order;
        }
    }
    return best;
}

static dlc_layout layout_of(const perm *order, uint8_t rank)
{
    perm plain = identity();
    return memcmp(order->dim, plain.dim, rank) ? dlc_layout_permuted(rank, order->dim)
                                               : (dlc_layout){0};
}

/* What the producer cannot do without. */
static dlc_layout bent_to_producer(const components *all, const dlc_value *value, const perm *order)
{
    uint8_t rank = value->type.rank, innermost = order->dim[rank - 1];
    if (!all->facts[value->def->id].is_contraction)
        return layout_of(order, rank);
    if (is_spatial(value->def))
        return innermost == 1 ? layout_of(order, rank) : dlc_layout_channels_last(rank);
    return innermost == rank - 1 ? layout_of(order, rank) : (dlc_layout){0};
}

static int is_step_in_c(const dlc_node *node)
{
    return (dlc_ops[node->op].traits & DLC_TRAIT_OPAQUE) != 0;
}

/* What others than kernels read or write: the caller, and steps in C. */
static int is_plain(const dlc_value *value)
{
    if (!value->def || value->noutputs || is_step_in_c(value->def))
        return 1;
    for (const dlc_use *use = value->uses; use; use = use->next)
        if (is_step_in_c(use->node))
            return 1;
    return 0;
}

static dlc_layout chosen_layout(components *all, const dlc_value *value, const perm *root_orders)
{
    if (is_plain(value) || value->type.rank < 2)
        return (dlc_layout){0};
    perm to_root;
    uint32_t root = root_of(all, value->id, &to_root);
    perm back = inverse(&to_root), order = compose(&root_orders[root], &back);
    return bent_to_producer(all, value, &order);
}

static void assign(components *all)
{
    uint32_t nvalues = all->ctx->graph->nvalues;
    perm *root_orders = dlc_new_array(all->ctx->scratch, perm, nvalues);
    for (uint32_t id = 0; id < nvalues; id++)
        if (all->values[id] && all->parent[id] == id)
            root_orders[id] = elect(all, id);
    for (uint32_t id = 0; id < nvalues; id++) {
        if (!all->values[id])
            continue;
        dlc_layout layout = chosen_layout(all, all->values[id], root_orders);
        all->ctx->changes += !dlc_layout_equal(&layout, all->values[id]->layout);
        dlc_value_lay(all->ctx->graph, all->values[id], &layout);
    }
}

/* --- outputs --- */

/* A value that no kernel writes, or that another output has already. */
static int needs_copy(const dlc_graph *graph, uint32_t output)
{
    const dlc_value *value = graph->outputs.data[output].value;
    if (!value->def || value->def->op == DLC_OP_CONSTANT || value->def->op == DLC_OP_SYMBOLS)
        return 1;
    for (uint32_t o = 0; o < output; o++)
        if (graph->outputs.data[o].value == value)
            return 1;
    return 0;
}

/* Every graph output becomes a value of its own that a kernel writes: a reshape to the same shape
 * is the copy. */
static void separate_outputs(dlc_pass_ctx *ctx)
{
    dlc_graph *graph = ctx->graph;
    for (uint32_t o = 0; o < graph->outputs.n; o++) {
        if (!needs_copy(graph, o))
            continue;
        dlc_value *value = graph->outputs.data[o].value;
        dlc_attr dims = dlc_attr_dims(DLC_ATTR_DIMS, value->type.dims, value->type.rank);
        dlc_node_spec spec = {.op = DLC_OP_RESHAPE,
                              .origin = value->def ? value->def->origin : NULL,
                              .name = graph->outputs.data[o].name,
                              .inputs = &value,
                              .ninputs = 1,
                              .attrs = &dims,
                              .nattrs = 1};
        dlc_value *copy = dlc_graph_node(graph, &spec)->outputs[0];
        graph->outputs.data[o].value = copy;
        value->noutputs--;
        copy->noutputs++;
        ctx->changes++;
    }
}

static components collect(dlc_pass_ctx *ctx)
{
    dlc_graph *graph = ctx->graph;
    components all = {.ctx = ctx,
                      .values = dlc_new_array(ctx->scratch, dlc_value *, graph->nvalues),
                      .parent = dlc_new_array(ctx->scratch, uint32_t, graph->nvalues),
                      .link = dlc_new_array(ctx->scratch, perm, graph->nvalues),
                      .head = dlc_new_array(ctx->scratch, uint32_t, graph->nvalues),
                      .facts = dlc_new_array(ctx->scratch, node_facts, graph->nnodes)};
    for (uint32_t id = 0; id < graph->nvalues; id++)
        all.parent[id] = id, all.link[id] = identity();
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        all.values[graph->inputs.data[i]->id] = graph->inputs.data[i];
    for (const dlc_node *node = graph->first; node; node = node->next)
        for (uint32_t o = 0; o < node->noutputs && node->op != DLC_OP_CONSTANT; o++)
            if (node->outputs[o])
                all.values[node->outputs[o]->id] = node->outputs[o];
    return all;
}

dlc_status dlc_pass_layout(dlc_pass_ctx *ctx)
{
    DLC_TRY(dlc_split_concats(ctx));
    separate_outputs(ctx);
    components all = collect(ctx);
    tie_nodes(&all);
    for (const dlc_node *node = ctx->graph->first; node; node = node->next)
        want_node(&all, node);
    want_borders(&all);
    assign(&all);
    return DLC_OK;
}

/*
 * Unpackings: cheap maps that widen one value, such as the cast, the difference and the product that make a number of a quantised
 * code. What is narrow is what should lie in memory, so each reader of the same shape gets an unpacking of its own and takes it
 * into its group; otherwise the producer, which comes first, would store the wide value for all of them. Likewise maps that make a large
 * value of small ones belong to its reader, if it is the only one.
 */
#include "ir/graph/form.h"
#include "passes/fuse/fuse_engine.h"

#include <string.h>

enum {
    MOST_COST = 2, /* flops of one node */
    MOST_NODES = 4 /* from the narrow value to the wide one */
};

static uint32_t cost_of(const dlc_form *form)
{
    const dlc_pool *pool = form->from.kernel->pool;
    uint32_t cost = 0;
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (node->op != DLC_EXPR_LOAD && node->dtype != DLC_I64)
            cost += dlc_exprs[node->op].cost;
    }
    return cost;
}

static int is_cheap_map(dlc_graph *graph, dlc_node *node, dlc_arena *arena)
{
    dlc_mark mark = dlc_arena_mark(arena);
    dlc_form form = dlc_form_of(graph, node, arena);
    int result = form.is_pointwise && !form.has_steps && cost_of(&form) <= MOST_COST;
    dlc_arena_release(arena, mark);
    return result;
}

/* The one input that is no constant; NULL: there are several. */
static dlc_value *data_of(const dlc_node *node)
{
    dlc_value *data = NULL;
    for (uint32_t i = 0; i < node->ninputs; i++) {
        dlc_value *input = node->inputs[i];
        if (!input || input->data)
            continue;
        if (data)
            return NULL;
        data = input;
    }
    return data;
}

static int has_dims(const dlc_value *value, const dlc_value *like)
{
    return value->type.rank == like->type.rank &&
           !memcmp(value->type.dims, like->type.dims, value->type.rank * sizeof *like->type.dims);
}

/* How many nodes lead to `wide` from a narrow value of its shape; 0: none does. */
static uint32_t steps_from_narrow(const dlc_value *wide)
{
    const dlc_node *node = wide->def;
    for (uint32_t n = 1; node && node->noutputs == 1 && n <= MOST_NODES; n++) {
        const dlc_value *data = data_of(node);
        if (!data || !has_dims(data, wide))
            return 0;
        if (dlc_dtypes[data->type.dtype].bits < dlc_dtypes[wide->type.dtype].bits)
            return n;
        node = data->def;
    }
    return 0;
}

int dlc_fuse_is_unpacking(dlc_graph *graph, dlc_node *node, dlc_arena *arena)
{
    uint32_t n = node->noutputs == 1 && node->outputs[0] ? steps_from_narrow(node->outputs[0]) : 0;
    for (uint32_t i = 0; i < n; i++, node = data_of(node)->def)
        if (!is_cheap_map(graph, node, arena))
            return 0;
    return n > 0;
}

/* The elements of the result for each of the input's, as far as they are known. */
static int64_t growth(const dlc_pool *pool, const dlc_value *input, const dlc_type *result)
{
    int64_t times = 1, n;
    for (uint32_t i = 0; i < result->rank; i++) {
        uint32_t missing = result->rank - input->type.rank;
        int is_one = i < missing || (dlc_expr_is_int(pool, input->type.dims[i - missing], &n) && n == 1);
        if (is_one && dlc_expr_is_int(pool, result->dims[i], &n) && !dlc_mul_i64(times, n, &times))
            return 0;
    }
    return times;
}

/* Constant, or made of one by a few nodes of one input. */
static int is_of_constant(const dlc_value *value)
{
    for (uint32_t n = 0; n <= MOST_NODES && !value->data; n++) {
        if (!value->def || value->def->ninputs != 1 || !value->def->inputs[0])
            return 0;
        value = value->def->inputs[0];
    }
    return value->data != NULL;
}

/* A cheap map of small values that is large, such as a product of rows and columns. */
static int is_expansion(dlc_graph *graph, dlc_node *node, dlc_arena *arena)
{
    enum { LEAST_GROWTH = 16 };
    uint32_t nsmall = 0;
    for (uint32_t i = 0; i < node->ninputs; i++) {
        if (!node->inputs[i] || is_of_constant(node->inputs[i]))
            continue;
        if (node->inputs[i]->type.rank > node->outputs[0]->type.rank ||
            growth(graph->pool, node->inputs[i], &node->outputs[0]->type) < LEAST_GROWTH)
            return 0;
        nsmall++;
    }
    return nsmall > 0 && is_cheap_map(graph, node, arena);
}

/* It reads each element once. */
int dlc_fuse_takes_unpacking(dlc_graph *graph, const dlc_value *wide, dlc_node *reader, dlc_arena *arena)
{
    dlc_mark mark = dlc_arena_mark(arena);
    int result = reader->noutputs == 1 && has_dims(wide, reader->outputs[0]) && dlc_form_of(graph, reader, arena).is_pointwise;
    dlc_arena_release(arena, mark);
    return result;
}

void dlc_fuse_place_unpackings(dlc_fusion *f)
{
    for (uint32_t node = f->nnodes; node-- > 0;) {
        dlc_fusion_trial trial;
        const dlc_ids *out = &f->out_edges[node];
        if (out->n != 1 || f->nodes[node]->outputs[0]->noutputs ||
            (!dlc_fuse_is_unpacking(f->graph, f->nodes[node], f->trial) && !is_expansion(f->graph, f->nodes[node], f->trial)) ||
            !dlc_fuse_takes_unpacking(f->graph, f->nodes[node]->outputs[0], f->nodes[f->edges[out->data[0]].to], f->trial))
            continue;
        f->api->try_merge(f, node, f->edges[out->data[0]].to, &trial);
        if (trial.pays)
            f->api->merge(f, node, f->edges[out->data[0]].to);
    }
}

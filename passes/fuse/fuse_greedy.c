/*
 * Strategy `greedy`: in topological order, each node joins every producer's group that no cost speaks against; the later
 * producer first, so that what joins two branches becomes the epilogue of the one computed last. Unpackings come before all. Nodes
 * that a contraction has taken in ask their own producers once more: scores of attention and their softmax are worth one kernel with what
 * the softmax weighs, not before. Where the softmax is not worth one with that alone either, all three are asked for at once.
 */
#include "passes/fuse/fuse_engine.h"
#include "passes/simplify/simplify.h"

/* A view that its one reader has taken: the reader asks for both. */
static int is_taken_view(const dlc_fusion *f, uint32_t node)
{
    return f->forms[node].is_view && f->out_edges[node].n == 1 && f->group[f->edges[f->out_edges[node].data[0]].to] == f->group[node];
}

/* Of the producers of the node and of views it has taken, the one with the highest number below `bound`, or DLC_FUSION_NONE. */
static uint32_t next_producer(const dlc_fusion *f, uint32_t node, uint32_t bound)
{
    uint32_t best = DLC_FUSION_NONE;
    for (uint32_t i = 0; i < f->api->producer_count(f, node); i++) {
        uint32_t producer = f->api->producer(f, node, i);
        if (producer != DLC_FUSION_NONE && is_taken_view(f, producer))
            producer = next_producer(f, producer, bound);
        if (producer < bound && (best == DLC_FUSION_NONE || producer > best))
            best = producer;
    }
    return best;
}

/* Does the producer's group join the node's? */
static int joins(const dlc_fusion_api *api, dlc_fusion *fusion, uint32_t producer, uint32_t node)
{
    dlc_fusion_trial trial;
    if (api->group_of(fusion, producer) == api->group_of(fusion, node))
        return 0;
    api->try_merge(fusion, producer, node, &trial);
    return trial.pays && api->merge(fusion, producer, node);
}

/* The groups with contractions that these nodes read. */
static void ask_again(const dlc_fusion_api *api, dlc_fusion *fusion, const dlc_ids *nodes)
{
    for (uint32_t i = 0; i < nodes->n; i++)
        for (uint32_t p = 0; p < api->producer_count(fusion, nodes->data[i]); p++) {
            uint32_t producer = api->producer(fusion, nodes->data[i], p);
            if (producer != DLC_FUSION_NONE && dlc_fuse_has_contraction(fusion, api->group_of(fusion, producer)))
                (void)joins(api, fusion, producer, nodes->data[i]);
        }
}

static int is_product_of_data(const dlc_fusion *f, uint32_t node)
{
    int n = 0;
    for (uint32_t i = 0; i < f->nodes[node]->ninputs; i++)
        n += f->nodes[node]->inputs[i] && !dlc_is_constant(f->nodes[node]->inputs[i]);
    return f->forms[node].is_contraction && n == 2;
}

/* The node, a product of two activations, with the group that one of them comes from and the first one that feeds that by a product. */
static void join_three(const dlc_fusion_api *api, dlc_fusion *fusion, uint32_t producer, uint32_t node)
{
    const dlc_ids *between = &fusion->groups[api->group_of(fusion, producer)].nodes;
    if (!is_product_of_data(fusion, node) || api->group_of(fusion, producer) == api->group_of(fusion, node) ||
        dlc_fuse_has_contraction(fusion, api->group_of(fusion, producer)))
        return;
    for (uint32_t i = 0; i < between->n; i++)
        for (uint32_t p = 0; p < api->producer_count(fusion, between->data[i]); p++) {
            uint32_t first = api->producer(fusion, between->data[i], p), nodes[] = {first, producer, node};
            if (first == DLC_FUSION_NONE || !dlc_fuse_has_contraction(fusion, api->group_of(fusion, first)))
                continue;
            (void)fusion->merge_set(fusion, &(dlc_ids){.data = nodes, .n = 3}, 1);
            return;
        }
}

int dlc_fusion_run_greedy(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    uint32_t nnodes = api->node_count(fusion);
    dlc_fuse_place_unpackings(fusion);
    for (uint32_t node = 0; node < nnodes; node++) {
        uint32_t producer = is_taken_view(fusion, node) ? DLC_FUSION_NONE : next_producer(fusion, node, node);
        for (; producer != DLC_FUSION_NONE; producer = next_producer(fusion, node, producer)) {
            uint32_t group = api->group_of(fusion, producer);
            int is_taken_in = !dlc_fuse_has_contraction(fusion, group) && dlc_fuse_has_contraction(fusion, api->group_of(fusion, node));
            dlc_ids nodes = {0}; /* the group's list changes by the merge */
            for (uint32_t i = 0; is_taken_in && i < fusion->groups[group].nodes.n; i++)
                dlc_vec_push(fusion->arena, &nodes, fusion->groups[group].nodes.data[i]);
            if (!joins(api, fusion, producer, node))
                join_three(api, fusion, producer, node);
            else if (is_taken_in)
                ask_again(api, fusion, &nodes);
        }
    }
    return 0;
}

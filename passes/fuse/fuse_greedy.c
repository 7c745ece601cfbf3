/*
 * Strategy `greedy`: in topological order, each node joins every producer's group that no cost speaks against; the later
 * producer first, so that what joins two branches becomes the epilogue of the one computed last. Unpackings come before all.
 */
#include "passes/fuse/fuse_engine.h"

/* The producer with the highest number below `bound`, or DLC_FUSION_NONE. */
static uint32_t next_producer(const dlc_fusion_api *api, dlc_fusion *fusion, uint32_t node, uint32_t bound)
{
    uint32_t best = DLC_FUSION_NONE;
    for (uint32_t i = 0; i < api->producer_count(fusion, node); i++) {
        uint32_t producer = api->producer(fusion, node, i);
        if (producer < bound && (best == DLC_FUSION_NONE || producer > best))
            best = producer;
    }
    return best;
}

int dlc_fusion_run_greedy(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    uint32_t nnodes = api->node_count(fusion);
    dlc_fuse_place_unpackings(fusion);
    for (uint32_t node = 0; node < nnodes; node++) {
        uint32_t producer = next_producer(api, fusion, node, node);
        for (; producer != DLC_FUSION_NONE; producer = next_producer(api, fusion, node, producer)) {
            dlc_fusion_trial trial;
            if (api->group_of(fusion, producer) == api->group_of(fusion, node))
                continue;
            api->try_merge(fusion, producer, node, &trial);
            if (trial.pays)
                api->merge(fusion, producer, node);
        }
    }
    return 0;
}

/* Strategy `pointwise`: a map joins the map that made its input. Groups stay maps: only maps ever join. */
#include "passes/fuse/fuse_engine.h"

int dlc_fusion_run_pointwise(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    uint32_t nnodes = api->node_count(fusion);
    for (uint32_t node = 0; node < nnodes; node++) {
        uint32_t nproducers = api->is_map(fusion, node) ? api->producer_count(fusion, node) : 0;
        for (uint32_t i = 0; i < nproducers; i++) {
            uint32_t producer = api->producer(fusion, node, i);
            dlc_fusion_trial trial;
            if (producer == DLC_FUSION_NONE || !api->is_map(fusion, producer))
                continue;
            api->try_merge(fusion, producer, node, &trial);
            if (trial.pays)
                api->merge(fusion, producer, node);
        }
    }
    return 0;
}

/* A fusion strategy that asks for every merge, whatever it costs, in an order that hops about. */
#include "dlc/fusion.h"

static int run(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    const uint32_t n = api->node_count(fusion);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = (uint32_t)((uint64_t)(i + 1) * 2654435761u % n);
        for (uint32_t k = 0; k < api->producer_count(fusion, node); k++)
            api->merge(fusion, api->producer(fusion, node, k), node);
    }
    return 0;
}

const dlc_fusion_strategy *dlc_fusion_strategy_get(void)
{
    static const dlc_fusion_strategy strategy = {DLC_FUSION_VERSION, "merge_all", run};
    return &strategy;
}

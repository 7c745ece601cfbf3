/* A fusion strategy that asks for what does not exist: the engine answers, and the program stays right. */
#include "dlc/fusion.h"

static int run(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    const uint32_t n = api->node_count(fusion), wild[] = {n, n + 1000, DLC_FUSION_NONE};
    for (uint32_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        dlc_fusion_trial trial = {.legal = 1, .pays = 1};
        uint32_t w = wild[i];
        if (*api->node_name(fusion, w) || *api->node_op(fusion, w) || api->is_map(fusion, w) ||
            api->producer_count(fusion, w) || api->reader_count(fusion, w) || api->group_size(fusion, w))
            return 1;
        if (api->producer(fusion, 0, w) != DLC_FUSION_NONE || api->reader(fusion, 0, w) != DLC_FUSION_NONE ||
            api->group_of(fusion, w) != DLC_FUSION_NONE)
            return 2;
        api->try_merge(fusion, w, 0, &trial);
        if (trial.legal || trial.pays || !*trial.reason || !*trial.text)
            return 3;
        if (api->merge(fusion, w, 0) || api->merge(fusion, 0, w) || api->merge(fusion, n - 1, 0))
            return 4;
    }
    return api->merge(fusion, 0, 0) ? 0 : 5;
}

const dlc_fusion_strategy *dlc_fusion_strategy_get(void)
{
    static const dlc_fusion_strategy strategy = {DLC_FUSION_VERSION, "wild", run};
    return &strategy;
}

/* A fusion strategy for dlc: the merge that saves most memory traffic first. docs/fusion-strategy.md explains it. */
#include <dlc/fusion.h>
#include <stdlib.h>

typedef struct {
    uint32_t from, to;
    double saved; /* bytes */
} edge;

static int by_saving(const void *a, const void *b)
{
    double x = ((const edge *)a)->saved, y = ((const edge *)b)->saved;
    return x < y ? 1 : x > y ? -1 : (int)(((const edge *)a)->to - ((const edge *)b)->to);
}

static int run(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    uint32_t nodes = api->node_count(fusion), nedges = 0;
    for (uint32_t node = 0; node < nodes; node++)
        nedges += api->producer_count(fusion, node);
    edge *edges = calloc(nedges + 1, sizeof *edges);
    uint32_t n = 0;
    dlc_fusion_trial trial;
    for (uint32_t node = 0; edges && node < nodes; node++)
        for (uint32_t i = 0; i < api->producer_count(fusion, node); i++) {
            uint32_t producer = api->producer(fusion, node, i);
            if (producer == DLC_FUSION_NONE)
                continue; /* a graph input or a constant */
            api->try_merge(fusion, producer, node, &trial);
            if (trial.pays)
                edges[n++] = (edge){producer, node, trial.bytes_before - trial.bytes_after};
        }
    qsort(edges, n, sizeof *edges, by_saving);
    for (uint32_t i = 0; i < n; i++) { /* earlier merges may have changed what this one means */
        api->try_merge(fusion, edges[i].from, edges[i].to, &trial);
        if (trial.pays)
            api->merge(fusion, edges[i].from, edges[i].to);
    }
    free(edges);
    return 0;
}

const dlc_fusion_strategy *dlc_fusion_strategy_get(void)
{
    static const dlc_fusion_strategy strategy = {DLC_FUSION_VERSION, "best_first", run};
    return &strategy;
}

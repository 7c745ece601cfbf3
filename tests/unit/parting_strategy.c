/* A fusion strategy that ends at once, and leaves a process that holds on to all it has. */
#include "dlc/fusion.h"

#include <unistd.h>

static int run(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    (void)api, (void)fusion;
    if (fork() == 0)
        for (;;)
            pause();
    _exit(5);
}

const dlc_fusion_strategy *dlc_fusion_strategy_get(void)
{
    static const dlc_fusion_strategy strategy = {DLC_FUSION_VERSION, "parting", run};
    return &strategy;
}

/* Strategy `none`: nothing is merged. What every other strategy is measured against. */
#include "passes/fuse/fuse_engine.h"

int dlc_fusion_run_none(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    (void)api;
    (void)fusion;
    return 0;
}

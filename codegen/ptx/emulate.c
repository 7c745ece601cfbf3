/* CUDA kernels as code of this machine's processor. */
#include "codegen/codegen.h"

dlc_status dlc_cuda_emulate(const dlc_module *module, const dlc_emit_options *options, dlc_arena *arena, dlc_diag *diag,
                            dlc_blob **blobs, uint32_t *nblobs)
{
    (void)options;
    (void)arena;
    (void)blobs;
    (void)nblobs;
    return dlc_diag_fail(diag, DLC_UNSUPPORTED, NULL, "kernels for %s cannot be emulated by this build",
                         module->target->name);
}

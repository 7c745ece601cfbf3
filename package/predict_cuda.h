/* What kernels would take on GPUs, as the virtual GPU predicts it. */
#ifndef DLC_PACKAGE_PREDICT_CUDA_H
#define DLC_PACKAGE_PREDICT_CUDA_H

#include "codegen/ptx/object.h"
#include "package/backend.h"

/* Adds prices to the costs, by kernel of the module, whose other fields are known: of every GPU of vgpu/gpus.def whose
 * capability is the target's or newer. `text`: the PTX of all. None for a kernel that does not run over zeros or takes too long.
 * A child does it, so that it ends as the work's limits say; where it fails there are no prices, and diag says why. */
DLC_NODISCARD dlc_status dlc_cuda_predict(const dlc_module *module, const dlc_cuda_sources *sources, const char *text,
                                          uint32_t njobs, dlc_arena *arena, dlc_diag *diag, dlc_kernel_cost *costs);

#endif

/* From a module to the plan that abi.h describes. */
#ifndef DLC_CODEGEN_PLAN_H
#define DLC_CODEGEN_PLAN_H

#include "base/vec.h"
#include "codegen/codegen.h"

/* The plan's bytes, and the constants it refers to: pieces, each at the next multiple of 64. Memory
 * of `arena`, bytes borrowed. */
typedef struct {
    dlc_blob bytes;
    dlc_vec(dlc_blob) constants;
    dlc_vec(uint64_t) constant_offsets;
    uint64_t constants_bytes;
} dlc_plan_image;
DLC_NODISCARD dlc_status dlc_plan_build(const dlc_module *module, dlc_arena *arena, dlc_diag *diag,
                                        dlc_plan_image *image);

#endif

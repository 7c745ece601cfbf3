/* From a module to the plan that abi.h describes. */
#ifndef DLC_CODEGEN_PLAN_H
#define DLC_CODEGEN_PLAN_H

#include "codegen/codegen.h"

/* The plan's bytes, and where each constant of the module lies in the blob of constants. Memory of `arena`. */
typedef struct {
    dlc_blob bytes;
    uint64_t *constant_offsets; /* by module constant */
    uint64_t constants_bytes;
} dlc_plan_image;
DLC_NODISCARD dlc_status dlc_plan_build(const dlc_module *module, dlc_arena *arena, dlc_diag *diag, dlc_plan_image *image);

#endif

/* From a module to the plan that abi.h describes. */
#ifndef DLC_PACKAGE_PLAN_H
#define DLC_PACKAGE_PLAN_H

#include "base/vec.h"
#include "codegen/codegen.h"

/* The constants of an executable, or its binaries: pieces, each at the next multiple of 64; bytes
 * borrowed. Equal ones are one piece. */
typedef struct {
    dlc_vec(dlc_blob) pieces;
    dlc_vec(uint64_t) offsets;
    dlc_vec(uint64_t) hashes;
    uint32_t *index, nindex; /* pieces by hash: open addressing, number + 1 */
    uint64_t size_bytes;
} dlc_pieces;
/* Where the piece lies; false when all together pass the address space. */
int dlc_pieces_add(dlc_pieces *constants, const dlc_blob *piece, dlc_arena *arena,
                   uint64_t *offset);

#ifdef __aarch64__
enum { dlc_host_arch = DLC_ARCH_AARCH64 };
#else
enum { dlc_host_arch = DLC_ARCH_X86_64 };
#endif

/* What a plan says of CUDA kernels. All zero: the module is of a CPU. */
typedef struct {
    const dlc_cuda_launch *launches; /* by kernel; NULL: CPU */
    const char *const *functions;    /* by kernel: its name in the binaries */
    const dlc_plan_binary *binaries; /* nbinaries per kernel, kernel by kernel */
    uint32_t nbinaries;
    const char *name; /* of the targets; NULL: the module's */
    uint8_t emulate;  /* the kernels are code of this machine's processor */
} dlc_plan_cuda;

/* The plan's bytes, memory of `arena`; what it refers to is added to `constants`. */
DLC_NODISCARD dlc_status dlc_plan_build(const dlc_module *module, const dlc_plan_cuda *cuda,
                                        dlc_pieces *constants, dlc_arena *arena, dlc_diag *diag,
                                        dlc_blob *plan);

#endif

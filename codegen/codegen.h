/* From a module to an executable. */
#ifndef DLC_CODEGEN_H
#define DLC_CODEGEN_H

#include "dlc/abi.h"
#include "ir/module/module.h"

/* What a code generator makes of the module's kernels; memory of `arena`. */
typedef enum { DLC_EMIT_OBJECT, DLC_EMIT_LLVM_IR, DLC_EMIT_ASM } dlc_emit_kind;
typedef struct {
    const void *bytes;
    size_t size_bytes;
    const dlc_packing *packing; /* what makes the bytes, which are NULL then; else NULL */
} dlc_blob;

/* first: number of the module's kernel 0 among all kernels of the executable; its function is dlc_k<first>. */
typedef struct {
    dlc_emit_kind kind;
    uint32_t first, njobs;
} dlc_emit_options;

/*
 * codegen/cpu: each kernel to a relocatable object of its own, or all to one text; functions are named dlc_k<number>, hidden.
 * They call nothing: no libm, no memcpy; linking refuses code that does.
 */
DLC_NODISCARD dlc_status dlc_cpu_emit(const dlc_module *module, const dlc_emit_options *options, dlc_arena *arena,
                                      dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs);

/* Opens LLVM in this process, for children to have it by fork: dlc_preload in dlc/dlc.h. */
DLC_NODISCARD dlc_status dlc_cpu_preload(dlc_diag *diag);

/* One blob, LLVM's version: 19.1.7. Opens LLVM, as dlc_cpu_emit does, so that is for a child (package/child.h); work: NULL. */
DLC_NODISCARD dlc_status dlc_cpu_version(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs,
                                         uint32_t *nblobs);

/* A CUDA kernel's launch: blocks = ceil(units / units_per_block); dynamic shared bytes = fixed_bytes + scratches * scratch. */
typedef struct {
    uint32_t threads, units_per_block, fixed_bytes, scratches;
} dlc_cuda_launch;
/* codegen/ptx/emulate.c: the kernels' CUDA C as objects of this machine's processor, as dlc_cpu_emit's: same functions, same
 * arguments; args->scratch holds one block's shared memory. */
DLC_NODISCARD dlc_status dlc_cuda_emulate(const dlc_module *module, const dlc_emit_options *options, dlc_arena *arena,
                                          dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs);

typedef enum {
#define DLC_ARTIFACT(id, text, ending, help) DLC_ARTIFACT_##id,
#include "dlc/artifacts.def"
#undef DLC_ARTIFACT
    DLC_ARTIFACT_COUNT
} dlc_artifact;
typedef struct {
    dlc_artifact artifact;
    const char *path;   /* output file; NULL: `fd`, an empty file open for reading and writing */
    int fd;
    const char *name;   /* C identifier: prefix of exported symbols, made from the file's name */
    uint32_t njobs;
    uint8_t is_temporary; /* read once and removed: not synced to disk */
    uint8_t emulate;    /* CUDA modules become code of this machine's processor: an ordinary executable of it */
} dlc_executable_options;

/* A module and, for CUDA, the compute capabilities (75, 90, ...) its kernels get cubins for, ascending; none: the target's own.
 * PTX is of the lowest. Targets whose facts agree share a module. */
typedef struct {
    const dlc_module *module;
    const int *archs;
    uint32_t narchs;
} dlc_executable_part;
/* package/executable.c: plans + constants + kernels -> one file, written whole or not at all. Of several parts' plans the
 * runtime takes the best its machine can run; all have the same inputs and outputs, and equal constants lie there once. */
DLC_NODISCARD dlc_status dlc_executable_write_parts(const dlc_executable_part *parts, uint32_t nparts,
                                                    const dlc_executable_options *options, dlc_diag *diag);
/* The same for one module and its target's own capability. */
DLC_NODISCARD dlc_status dlc_executable_write(const dlc_module *module, const dlc_executable_options *options,
                                              dlc_diag *diag);

#endif

/* From a module to an executable. */
#ifndef DLC_CODEGEN_H
#define DLC_CODEGEN_H

#include "dlc/abi.h"
#include "ir/module.h"

/* What a code generator makes of the module's kernels; memory of `arena`. */
typedef enum { DLC_EMIT_OBJECT, DLC_EMIT_LLVM_IR, DLC_EMIT_ASM } dlc_emit_kind;
typedef struct {
    const void *bytes;
    size_t size_bytes;
} dlc_blob;

/*
 * codegen/cpu: kernels to relocatable objects (several when compiled in parallel), each function named dlc_k<index>, hidden.
 * No undefined symbols: memcpy and the like are emitted as hidden local functions.
 */
DLC_NODISCARD dlc_status dlc_cpu_emit(const dlc_module *module, dlc_emit_kind kind, uint32_t njobs, dlc_arena *arena,
                                      dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs);
typedef enum { DLC_ARTIFACT_SO, DLC_ARTIFACT_O, DLC_ARTIFACT_A, DLC_ARTIFACT_H, DLC_ARTIFACT_LL, DLC_ARTIFACT_ASM } dlc_artifact;
typedef struct {
    dlc_artifact artifact;
    const char *path;   /* output file */
    const char *name;   /* C identifier: prefix of exported symbols, made from the file's name */
    uint32_t njobs;
} dlc_executable_options;
/* codegen/executable.c: plan + constants + kernels -> one file, written whole or not at all. */
DLC_NODISCARD dlc_status dlc_executable_write(const dlc_module *module, const dlc_executable_options *options,
                                              dlc_diag *diag);

#endif

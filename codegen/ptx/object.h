/* Kernels of a module as CUDA C, and that as machine code with a report read from it. */
#ifndef DLC_CODEGEN_PTX_OBJECT_H
#define DLC_CODEGEN_PTX_OBJECT_H

#include "codegen/codegen.h"

#define DLC_CUDA_FUNCTION "dlc_kernel" /* in texts, so that equal kernels have equal ones; a module has its own names */

/* By kernel of the module. */
typedef struct {
    const char **texts; /* without the prelude */
    const char **functions; /* what a kernel's function is called, after the first nodes that it computes; of equal kernels one */
    dlc_cuda_launch *launches;
    int64_t *shared_bytes; /* dynamic, of a block; -1: depends on symbols */
    uint32_t n;
} dlc_cuda_sources;
DLC_NODISCARD dlc_status dlc_cuda_sources_make(const dlc_module *module, dlc_arena *arena, dlc_diag *diag,
                                               dlc_cuda_sources *sources);
/* All of them as one text, behind the prelude: equal ones once, each under its function's name. */
const char *dlc_cuda_program(const dlc_cuda_sources *sources, dlc_arena *arena);

/* A binary of a kernel: its bytes are blob `blob`; binary.offset is 0. */
typedef struct {
    dlc_plan_binary binary;
    uint32_t blob, zero;
} dlc_cuda_row;
/*
 * Compiles through NVRTC, an architecture a job of njobs threads. blobs[0] is a table of dlc_cuda_row: for each kernel one cubin
 * per architecture, in their order, then PTX of the first; the others are their bytes, which all kernels share. They do not
 * depend on njobs. DLC_NO_DEVICE: NVRTC is not there, or knows no such architecture.
 */
DLC_NODISCARD dlc_status dlc_cuda_emit(const dlc_cuda_sources *sources, const int *archs, uint32_t narchs, uint32_t njobs,
                                       dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs);

/* What a cubin for binary->arch says of the function: registers, stack frame, static shared memory. False when it is not one, or
 * has no such function. */
int dlc_cubin_report(const void *bytes, size_t size_bytes, const char *function, dlc_plan_binary *binary);
/*
 * PTX says the oldest version of the language that has all it uses, as far as that is known: 8.0, which drivers of CUDA 12.0 know,
 * for GPUs that it knows. Changes the text; returns the CUDA that knows it, 1000 * major + 10 * minor, where NVRTC is of `cuda`.
 */
uint32_t dlc_ptx_settle(char *text, int arch, uint32_t cuda);
/* Blocks of so much shared memory, what the system takes apart, that a multiprocessor holds at once; 0: the capability is not in arch.def, or no block fits. */
uint32_t dlc_cuda_occupancy(uint32_t arch, uint32_t threads, uint32_t registers, uint64_t shared_bytes);

#endif

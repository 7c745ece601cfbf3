/* NVRTC, opened at run time: CUDA C to cubins and PTX on machines without a GPU. */
#ifndef DLC_CODEGEN_PTX_NVRTC_H
#define DLC_CODEGEN_PTX_NVRTC_H

#include "base/diag.h"

typedef struct dlc_nvrtc dlc_nvrtc;

/*
 * Opens libnvrtc once per process; later calls give the same. Looked for in the variable DLC_NVRTC (a file or a folder), the
 * loader's path, CUDA toolkits under /usr/local, and the PyPI package nvidia-cuda-nvrtc of the active, the user's or the
 * system's Python. DLC_NO_DEVICE says in one line what to install.
 */
DLC_NODISCARD dlc_status dlc_nvrtc_open(dlc_diag *diag, const dlc_nvrtc **result);
const char *dlc_nvrtc_path(const dlc_nvrtc *nvrtc);
/* Version as major * 100 + minor; compute capabilities (75, 80, …) it makes cubins for, ascending. */
int dlc_nvrtc_version(const dlc_nvrtc *nvrtc);
const int *dlc_nvrtc_archs(const dlc_nvrtc *nvrtc, uint32_t *n);

/*
 * Compiles a translation unit to a cubin for sm_<arch> (ptx = 0) or PTX for compute_<arch>. Memory of the arena. Without
 * fast-math: no contraction, IEEE division and square root, subnormals kept. Thread-safe with an arena per thread.
 */
DLC_NODISCARD dlc_status dlc_nvrtc_compile(const dlc_nvrtc *nvrtc, const char *source, const char *name, int arch, int ptx,
                                           dlc_arena *arena, dlc_diag *diag, const void **bytes, size_t *size_bytes);

/* A cubin for sm_<arch> and the PTX it was made of, at the cost of the cubin alone. */
typedef struct {
    const void *cubin, *ptx; /* PTX ends with NUL, counted */
    size_t cubin_bytes, ptx_bytes;
} dlc_nvrtc_code;
DLC_NODISCARD dlc_status dlc_nvrtc_compile_both(const dlc_nvrtc *nvrtc, const char *source, const char *name, int arch,
                                                dlc_arena *arena, dlc_diag *diag, dlc_nvrtc_code *code);

#endif

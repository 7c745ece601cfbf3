/*
 * An interpreter of PTX, as far as NVRTC makes it of generated kernels: what runs on a GPU, checked
 * on machines without one. Every access to memory is checked byte for byte: inside its buffer,
 * aligned, initialised, and not in a race (two threads meet at an element, one writes, and no
 * barrier lies between). A shuffle or barrier that not all threads reach is an error as well; so
 * are instructions that leave bits open (.approx, .ftz, f32 arithmetic that may be contracted) and
 * unknown ones.
 */
#ifndef DLC_TESTS_PTX_INTERP_H
#define DLC_TESTS_PTX_INTERP_H

#include "base/diag.h"

typedef struct ptx_module ptx_module;

/* Memory of the arena; the text is not kept. DLC_INVALID names the line and what is not understood.
 */
DLC_NODISCARD dlc_status ptx_parse(const char *text, dlc_arena *arena, dlc_diag *diag,
                                   ptx_module **module);

typedef struct {
    void *bytes;
    size_t size_bytes;
    int is_output;    /* uninitialised at first; may be written */
    uint8_t *written; /* out, or NULL: for each byte of an output, whether it was written */
} ptx_buffer;

/* A launch of the module's one entry, of the signature of dlc_cuda_kernel. */
typedef struct {
    const ptx_buffer *buffers;
    uint32_t nbuffers, nsymbols;
    const int64_t *symbols;
    int64_t first, units;
    uint32_t blocks, threads, shared_bytes;
    uint32_t stride;  /* run the last block and every stride-th; 0: all */
    int is_backwards; /* the order of blocks and warps */
    int64_t fault;    /* out: the code a kernel left, else 0 */
} ptx_launch;
DLC_NODISCARD dlc_status ptx_run(const ptx_module *module, ptx_launch *launch, dlc_diag *diag);

#endif

/* Code generation in a process of its own. */
#ifndef DLC_PACKAGE_CHILD_H
#define DLC_PACKAGE_CHILD_H

#include "codegen/codegen.h"

/* Blobs are views of `map`, which dlc_child_close releases. */
typedef struct {
    dlc_blob *blobs;
    uint32_t nblobs;
    void *map;
    size_t map_bytes;
} dlc_child_code;

/* A code generator; `work` is its own. */
typedef dlc_status (*dlc_child_body)(const void *work, dlc_arena *arena, dlc_diag *diag,
                                     dlc_blob **blobs, uint32_t *nblobs);

/*
 * The body in a forked child: LLVM ends its process when memory runs out or an assertion fails,
 * and that must be a message here, not the end of this process. DLC_LIMIT: out of memory, or killed from outside;
 * DLC_INTERNAL: it crashed, with what it printed.
 */
DLC_NODISCARD dlc_status dlc_child_emit(dlc_child_body body, const void *work, dlc_arena *arena,
                                        dlc_diag *diag, dlc_child_code *code);
void dlc_child_close(dlc_child_code *code);

#endif

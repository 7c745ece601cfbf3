/* The linker's seam: objects in, one object out. Today it spawns LLD; nothing else knows how
 * linking is done. */
#ifndef DLC_PACKAGE_LINK_H
#define DLC_PACKAGE_LINK_H

#include "base/diag.h"

typedef enum {
    DLC_LINK_SHARED,     /* a shared object whose entry point is the symbol dlc_executable */
    DLC_LINK_RELOCATABLE /* one object of several */
} dlc_link_kind;

/* Writes `output`, a path that does not exist yet. A shared object with undefined symbols is
 * refused. */
DLC_NODISCARD dlc_status dlc_link(dlc_link_kind kind, const char *const *objects, uint32_t nobjects,
                                  const char *output, dlc_arena *arena, dlc_diag *diag);

#endif

/* Inside the core: a page of records, and a warp's access to memory. */
#ifndef DLC_VGPU_MEMORY_H
#define DLC_VGPU_MEMORY_H

#include "vgpu/machine.h"

/* The page of records of an offset; needs_bytes: an access of less than a word. */
vgpu_page *vgpu_memory_page(vgpu_memory *memory, vgpu_region *region, uint64_t offset,
                            int needs_bytes);

#endif

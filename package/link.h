/*
 * The linker: data and the objects of kernels in, one ELF file out. Only what our code generators
 * make is known; the rest is refused by name. The same input gives the same bytes.
 */
#ifndef DLC_PACKAGE_LINK_H
#define DLC_PACKAGE_LINK_H

#include "base/file.h"
#include "codegen/codegen.h"

/* A word of 8 bytes at `offset` of a symbol's bytes that holds the address of `target`. */
typedef struct {
    uint64_t offset;
    const char *target;
} dlc_link_pointer;

typedef struct {
    const char *name, *alias; /* C identifiers; alias NULL: none */
    const char *section;      /* ".dlc.plan0", ".data.rel.ro.x", …; with pointers the latter */
    const dlc_blob *pieces;   /* the bytes; each piece starts at the next multiple of align_bytes */
    uint32_t npieces;
    uint32_t align_bytes; /* at most 4096 */
    uint8_t is_exported;  /* else local to the file */
    uint8_t is_bulk;      /* weights: apart from code, whose 32-bit offsets must not span them */
    const dlc_link_pointer *pointers;
    uint32_t npointers;
} dlc_link_data;

typedef enum { DLC_LINK_X86_64, DLC_LINK_AARCH64 } dlc_link_machine;

typedef struct {
    dlc_link_machine machine;
    const dlc_link_data *data;
    uint32_t ndata;
    const dlc_blob *objects; /* relocatable ELF objects */
    uint32_t nobjects;
} dlc_link_input;

typedef struct dlc_linkage dlc_linkage;

/* Sections merged, names resolved; borrows the bytes. A name that nothing defines is refused. */
DLC_NODISCARD dlc_status dlc_link_open(const dlc_link_input *input, dlc_arena *arena,
                                       dlc_diag *diag, dlc_linkage **linkage);
/* A shared object, sealed as dlc/abi.h says; its data define dlc_executable. */
DLC_NODISCARD dlc_status dlc_link_write_shared(dlc_linkage *linkage, dlc_output *output);
/* Called with the object's bytes before the first is written; NULL: nobody wants to know. */
typedef dlc_status (*dlc_link_head)(void *user, uint64_t size_bytes);
/* A relocatable object whose only global symbols are the exported ones, so that any number of them
 * link into one program. */
DLC_NODISCARD dlc_status dlc_link_write_object(dlc_linkage *linkage, dlc_output *output,
                                               dlc_link_head head, void *user);
/* Its global symbols. */
const char **dlc_link_exports(const dlc_linkage *linkage, uint32_t *nnames);

#endif

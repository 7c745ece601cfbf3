/* ELF64 objects of data, and the one change to linked objects that no linker makes. */
#ifndef DLC_PACKAGE_ELF_H
#define DLC_PACKAGE_ELF_H

#include "codegen/codegen.h"

/* A word of 8 bytes at `offset` of a symbol's bytes that holds the address of `target`. */
typedef struct {
    uint64_t offset;
    const char *target;
} dlc_elf_pointer;

typedef struct {
    const char *name, *alias; /* C identifiers; alias NULL: none */
    const char *section;      /* ".rodata", ".data.rel.ro", …: one symbol per section */
    const dlc_blob *pieces;   /* the bytes; each piece starts at the next multiple of align_bytes */
    uint32_t npieces;
    uint32_t align_bytes;
    uint8_t is_exported;             /* default visibility; else hidden */
    const dlc_elf_pointer *pointers; /* with any, the section is writable until it is relocated */
    uint32_t npointers;
} dlc_elf_symbol;

typedef enum { DLC_ELF_X86_64, DLC_ELF_AARCH64 } dlc_elf_machine;

/* Writes a relocatable object; what pointers name and no symbol defines is undefined and hidden. */
DLC_NODISCARD dlc_status dlc_elf_write(int fd, dlc_elf_machine machine,
                                       const dlc_elf_symbol *symbols, uint32_t nsymbols,
                                       dlc_arena *arena, dlc_diag *diag);

/*
 * Makes every hidden symbol of a linked relocatable object local, in place, so that two such
 * objects link into one program: `bytes` is the whole file, writable. Undefined symbols are
 * refused.
 */
DLC_NODISCARD dlc_status dlc_elf_localize(unsigned char *bytes, size_t size_bytes, dlc_arena *arena,
                                          dlc_diag *diag);

/* The names of global defined symbols of an object, for an archive's index. */
DLC_NODISCARD dlc_status dlc_elf_globals(const unsigned char *bytes, size_t size_bytes,
                                         dlc_arena *arena, dlc_diag *diag, const char ***names,
                                         uint32_t *nnames);

#endif

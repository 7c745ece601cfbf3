/* An ELF64 file of sections that have their places: the part both writers share. */
#ifndef DLC_PACKAGE_ELF_H
#define DLC_PACKAGE_ELF_H

#include "package/linkage.h"

typedef struct {
    dlc_linkage *linkage;
    dlc_ids order; /* sections of the linkage as they follow each other in the file */
    uint16_t type; /* ET_DYN, ET_REL */
    Elf64_Phdr *segments;
    uint32_t nsegments;
    uint64_t entry, end; /* end: where the table of sections begins, 8-byte aligned */
    uint32_t nlocals;    /* symbols below this are local */
} dlc_elf;

/* Adds a section of zeros to be filled in and returns its bytes; NULL for one without bytes. */
void *dlc_elf_add(dlc_elf *elf, const char *name, dlc_segment segment, Elf64_Shdr header,
                  uint64_t size_bytes);
/* Numbers the sections in the order they were added to `order`. */
void dlc_elf_number(dlc_elf *elf);
/* Adds .symtab, .strtab and .shstrtab, the last sections; symbols by address in ET_DYN. In ET_REL
 * symbol i, up to the number of sections, stands for section i. */
void dlc_elf_add_tables(dlc_elf *elf);
/* The file's bytes when all sections have their offsets. */
uint64_t dlc_elf_bytes(const dlc_elf *elf);
DLC_NODISCARD dlc_status dlc_elf_write(const dlc_elf *elf, dlc_output *output);

static inline dlc_section *dlc_elf_section(const dlc_elf *elf, uint32_t i)
{
    return &elf->linkage->sections.data[elf->order.data[i]];
}

static inline uint64_t dlc_elf_align(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

#endif

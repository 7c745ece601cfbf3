/* What is being linked, between its readers (link.c, object.c) and its writers (shared.c,
 * relocatable.c). */
#ifndef DLC_PACKAGE_LINKAGE_H
#define DLC_PACKAGE_LINKAGE_H

#include <elf.h>

#include "base/str.h"
#include "base/vec.h"
#include "package/link.h"

/* Parts of the address space, in their order. GENERATED: the read-only tables of shared.c. */
typedef enum {
    DLC_SEGMENT_GENERATED,
    DLC_SEGMENT_READ,
    DLC_SEGMENT_CODE,
    DLC_SEGMENT_RELRO,
    DLC_SEGMENT_BULK,
    DLC_SEGMENT_COUNT,
    DLC_SEGMENT_NONE = DLC_SEGMENT_COUNT /* not in memory */
} dlc_segment;

/* Bytes of one input in an output section; each piece starts at a multiple of align_bytes. */
typedef struct {
    const dlc_blob *pieces;
    uint32_t npieces, align_bytes;
    uint64_t at, size_bytes;
} dlc_chunk;

/* The bytes at `at` depend on the address of section + addend. */
typedef struct {
    uint64_t at;
    int64_t addend;
    uint32_t row;     /* of relocs.def */
    uint32_t section; /* the target; while `name` is set, what defines that is looked up */
    const char *name;
} dlc_fixup;

typedef struct {
    const char *name;
    dlc_segment segment;
    uint32_t align_bytes;
    uint64_t size_bytes, address, offset;
    dlc_vec(dlc_chunk) chunks;
    dlc_vec(dlc_fixup) fixups;
    Elf64_Shdr header; /* what the writers need beyond these */
    uint32_t number;   /* in the file's table of sections */
} dlc_section;

typedef struct {
    const char *name;
    uint32_t section;
    uint8_t type; /* STT_FUNC, … */
    uint8_t is_exported, is_global, is_weak; /* weak: gives way to another of its name */
    uint64_t at, size_bytes;
} dlc_definition;

static inline uint64_t dlc_linkage_round_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

struct dlc_linkage {
    const dlc_link_input *input;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_vec(dlc_section) sections;
    dlc_vec(dlc_definition) definitions;
};

/* link.c */
uint32_t dlc_linkage_section(dlc_linkage *linkage, const char *name, dlc_segment segment);
uint64_t dlc_linkage_add_chunk(dlc_linkage *linkage, uint32_t section, dlc_chunk chunk);
/* The offset of a name in a table of them, to which it is added. */
uint32_t dlc_linkage_add_name(dlc_str *names, const char *name);
uint16_t dlc_linkage_machine(const dlc_linkage *linkage); /* EM_ */
dlc_status dlc_linkage_fail(const dlc_linkage *linkage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The bytes of a section, with zeros (in code: traps) between chunks. */
DLC_NODISCARD dlc_status dlc_linkage_put(const dlc_linkage *linkage, const dlc_section *section,
                                         dlc_output *output);
DLC_NODISCARD dlc_status dlc_linkage_pad(const dlc_linkage *linkage, uint64_t n, int fill,
                                         dlc_output *output);

/* object.c: adds a relocatable object's sections, symbols and relocations. */
DLC_NODISCARD dlc_status dlc_linkage_add_object(dlc_linkage *linkage, const dlc_blob *blob);

/* reloc.c */
int dlc_reloc_find(dlc_link_machine machine, uint32_t type); /* a row of relocs.def, or -1 */
uint32_t dlc_reloc_type(uint32_t row);
int dlc_reloc_is_word(uint32_t row);
/* Writes what row says into `bytes`, which lie at address `place`, of the address `target`. */
DLC_NODISCARD dlc_status dlc_reloc_apply(const dlc_linkage *linkage, uint32_t row,
                                         unsigned char *bytes, uint64_t place, uint64_t target);
uint32_t dlc_reloc_bytes(uint32_t row); /* how many it changes */

#endif

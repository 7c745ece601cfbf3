/*
 * Relocatable objects: the merged sections, with every fixup against the symbol of a section, and
 * no global symbol but the exported ones.
 */
#include <string.h>

#include "package/elf.h"

/* Weights above this lie apart from code, whose 32-bit offsets must not span them. */
static const uint64_t large_bytes = UINT64_C(1) << 30;

static void add_relocations(dlc_elf *elf, uint32_t number, uint32_t symtab)
{
    dlc_linkage *l = elf->linkage;
    const dlc_section *section = &l->sections.data[number];
    uint32_t nfixups = section->fixups.n;
    if (!nfixups)
        return;
    const char *name = dlc_arena_printf(l->arena, ".rela%s", section->name);
    Elf64_Shdr header = {.sh_type = SHT_RELA,
                         .sh_flags = SHF_INFO_LINK,
                         .sh_link = symtab,
                         .sh_info = section->number,
                         .sh_addralign = 8,
                         .sh_entsize = sizeof(Elf64_Rela)};
    Elf64_Rela *rela = dlc_elf_add(elf, name, DLC_SEGMENT_NONE, header, nfixups * sizeof *rela);
    section = &l->sections.data[number]; /* the table has grown */
    for (uint32_t i = 0; i < nfixups; i++) {
        const dlc_fixup *fixup = &section->fixups.data[i];
        uint64_t symbol = l->sections.data[fixup->section].number;
        rela[i] = (Elf64_Rela){fixup->at, ELF64_R_INFO(symbol, dlc_reloc_type(fixup->row)),
                               fixup->addend};
    }
}

static void place(dlc_elf *elf)
{
    uint64_t at = sizeof(Elf64_Ehdr);
    for (uint32_t i = 0; i < elf->order.n; i++) {
        dlc_section *section = dlc_elf_section(elf, i);
        section->offset = dlc_elf_align(at, section->align_bytes);
        at = section->offset + section->size_bytes;
        if (section->segment == DLC_SEGMENT_BULK && section->size_bytes > large_bytes &&
            elf->linkage->input->machine == DLC_LINK_X86_64)
            section->header.sh_flags |= 0x10000000; /* SHF_X86_64_LARGE */
    }
    elf->end = dlc_elf_align(at, 8);
}

static dlc_elf lay_out(dlc_linkage *linkage)
{
    dlc_elf elf = {.linkage = linkage, .type = ET_REL};
    uint32_t nsections = linkage->sections.n, ntables = 0;
    for (uint32_t i = 0; i < nsections; i++) {
        dlc_vec_push(linkage->arena, &elf.order, i);
        ntables += linkage->sections.data[i].fixups.n > 0;
    }
    Elf64_Shdr stack = {.sh_type = SHT_PROGBITS}; /* the stack needs no execution */
    dlc_elf_add(&elf, ".note.GNU-stack", DLC_SEGMENT_NONE, stack, 0);
    dlc_elf_number(&elf);
    uint32_t symtab = elf.order.n + ntables + 1;
    for (uint32_t i = 0; i < nsections; i++)
        add_relocations(&elf, i, symtab);
    dlc_elf_number(&elf);
    dlc_elf_add_tables(&elf);
    place(&elf);
    return elf;
}

dlc_status dlc_link_write_object(dlc_linkage *linkage, dlc_output *output, dlc_link_head head,
                                 void *user)
{
    dlc_elf elf = lay_out(linkage);
    if (head)
        DLC_TRY(head(user, dlc_elf_bytes(&elf)));
    return dlc_elf_write(&elf, output);
}

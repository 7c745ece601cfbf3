/*
 * ELF files: header, segments, the sections' bytes at their offsets, the table of sections. Weights
 * go from the mapped model to the file without a copy in memory, whatever their size.
 */
#include "package/elf.h"

#include <string.h>

void *dlc_elf_add(dlc_elf *elf, const char *name, dlc_segment segment, Elf64_Shdr header,
                  uint64_t size_bytes)
{
    dlc_arena *arena = elf->linkage->arena;
    dlc_section section = {.name = name,
                           .segment = segment,
                           .align_bytes = header.sh_addralign ? (uint32_t)header.sh_addralign : 1,
                           .size_bytes = size_bytes,
                           .header = header};
    uint32_t number = elf->linkage->sections.n;
    char *bytes = NULL;
    if (header.sh_type != SHT_NOBITS && size_bytes) {
        dlc_blob *piece = dlc_new(arena, dlc_blob);
        bytes = dlc_arena_alloc(arena, size_bytes, 8);
        *piece = (dlc_blob){bytes, size_bytes, NULL};
        dlc_chunk chunk = {
            .pieces = piece, .npieces = 1, .align_bytes = 1, .size_bytes = size_bytes};
        dlc_vec_push(arena, &section.chunks, chunk);
    }
    dlc_vec_push(arena, &elf->linkage->sections, section);
    dlc_vec_push(arena, &elf->order, number);
    return bytes;
}

void dlc_elf_number(dlc_elf *elf)
{
    for (uint32_t i = 0; i < elf->order.n; i++)
        dlc_elf_section(elf, i)->number = i + 1;
}

/* --- symbols --- */
typedef dlc_vec(Elf64_Sym) symbol_list;

static void add_section_symbols(dlc_elf *elf, symbol_list *symbols)
{
    for (uint32_t i = 0; i < elf->order.n; i++) {
        Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION),
                            .st_shndx = (Elf64_Section)dlc_elf_section(elf, i)->number};
        dlc_vec_push(elf->linkage->arena, symbols, symbol);
    }
}

/* Exported definitions are global, all others local, which the table has first. */
static void add_symbols(dlc_elf *elf, symbol_list *symbols, dlc_str *names, int exported)
{
    const dlc_linkage *l = elf->linkage;
    for (uint32_t i = 0; i < l->definitions.n; i++) {
        const dlc_definition *d = &l->definitions.data[i];
        const dlc_section *section = &l->sections.data[d->section];
        if (d->is_exported != exported)
            continue;
        Elf64_Sym symbol = {
            .st_name = dlc_linkage_add_name(names, d->name),
            .st_info = ELF64_ST_INFO(exported ? STB_GLOBAL : STB_LOCAL, d->type),
            .st_shndx = (Elf64_Section)section->number,
            .st_value = d->at + (elf->type == ET_DYN ? section->address : 0),
            .st_size = d->size_bytes,
        };
        dlc_vec_push(l->arena, symbols, symbol);
    }
}

static void add_names(dlc_elf *elf, const char *section, dlc_str *names)
{
    Elf64_Shdr header = {.sh_type = SHT_STRTAB, .sh_addralign = 1};
    memcpy(dlc_elf_add(elf, section, DLC_SEGMENT_NONE, header, names->n), names->data, names->n);
    dlc_str_deinit(names);
}

static void add_section_names(dlc_elf *elf)
{
    static const char own[] = ".shstrtab";
    dlc_str names = {0};
    dlc_str_addn(&names, "", 1);
    for (uint32_t i = 0; i < elf->order.n; i++) {
        dlc_section *section = dlc_elf_section(elf, i);
        section->header.sh_name = dlc_linkage_add_name(&names, section->name);
    }
    uint32_t at = dlc_linkage_add_name(&names, own);
    add_names(elf, own, &names);
    dlc_elf_section(elf, elf->order.n - 1)->header.sh_name = at;
}

void dlc_elf_add_tables(dlc_elf *elf)
{
    symbol_list symbols = {0};
    dlc_str names = {0};
    Elf64_Sym none = {0};
    dlc_vec_push(elf->linkage->arena, &symbols, none);
    dlc_str_addn(&names, "", 1);
    if (elf->type == ET_REL)
        add_section_symbols(elf, &symbols);
    add_symbols(elf, &symbols, &names, 0);
    elf->nlocals = symbols.n;
    add_symbols(elf, &symbols, &names, 1);
    Elf64_Shdr header = {.sh_type = SHT_SYMTAB,
                         .sh_link = elf->order.n + 2,
                         .sh_info = elf->nlocals,
                         .sh_addralign = 8,
                         .sh_entsize = sizeof none};
    size_t size_bytes = symbols.n * sizeof none;
    memcpy(dlc_elf_add(elf, ".symtab", DLC_SEGMENT_NONE, header, size_bytes), symbols.data,
           size_bytes);
    add_names(elf, ".strtab", &names);
    add_section_names(elf);
    dlc_elf_number(elf);
}

/* --- bytes --- */
uint64_t dlc_elf_bytes(const dlc_elf *elf)
{
    return elf->end + (elf->order.n + 1) * sizeof(Elf64_Shdr);
}

static dlc_status write_headers(const dlc_elf *elf, dlc_output *output)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = elf->type,
        .e_machine = dlc_linkage_machine(elf->linkage),
        .e_version = EV_CURRENT,
        .e_entry = elf->entry,
        .e_phoff = elf->nsegments ? sizeof header : 0,
        .e_shoff = elf->end,
        .e_ehsize = sizeof header,
        .e_phentsize = elf->nsegments ? sizeof *elf->segments : 0,
        .e_phnum = (Elf64_Half)elf->nsegments,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)(elf->order.n + 1),
        .e_shstrndx = (Elf64_Half)elf->order.n,
    };
    DLC_TRY(dlc_output_write(output, &header, sizeof header, elf->linkage->diag));
    return dlc_output_write(output, elf->segments, elf->nsegments * sizeof *elf->segments,
                            elf->linkage->diag);
}

static void fill_header(const dlc_section *section, Elf64_Shdr *header)
{
    static const uint64_t flags[] = {
        [DLC_SEGMENT_GENERATED] = SHF_ALLOC,
        [DLC_SEGMENT_READ] = SHF_ALLOC,
        [DLC_SEGMENT_CODE] = SHF_ALLOC | SHF_EXECINSTR,
        [DLC_SEGMENT_RELRO] = SHF_ALLOC | SHF_WRITE,
        [DLC_SEGMENT_BULK] = SHF_ALLOC,
        [DLC_SEGMENT_NONE] = 0,
    };
    *header = section->header;
    if (!header->sh_type)
        header->sh_type = SHT_PROGBITS;
    header->sh_flags |= flags[section->segment];
    header->sh_addr = section->address;
    header->sh_offset = section->offset;
    header->sh_size = section->size_bytes;
    header->sh_addralign = section->align_bytes;
}

static dlc_status write_section_table(const dlc_elf *elf, dlc_output *output)
{
    Elf64_Shdr *table = dlc_new_array(elf->linkage->arena, Elf64_Shdr, elf->order.n + 1);
    for (uint32_t i = 0; i < elf->order.n; i++)
        fill_header(dlc_elf_section(elf, i), &table[i + 1]);
    return dlc_output_write(output, table, (elf->order.n + 1) * sizeof *table, elf->linkage->diag);
}

dlc_status dlc_elf_write(const dlc_elf *elf, dlc_output *output)
{
    const dlc_linkage *l = elf->linkage;
    uint64_t at = sizeof(Elf64_Ehdr) + elf->nsegments * sizeof *elf->segments;
    DLC_TRY(write_headers(elf, output));
    for (uint32_t i = 0; i < elf->order.n; i++) {
        const dlc_section *section = dlc_elf_section(elf, i);
        if (section->header.sh_type == SHT_NOBITS)
            continue;
        DLC_TRY(dlc_linkage_pad(l, section->offset - at, 0, output));
        DLC_TRY(dlc_linkage_put(l, section, output));
        at = section->offset + section->size_bytes;
    }
    DLC_TRY(dlc_linkage_pad(l, elf->end - at, 0, output));
    return write_section_table(elf, output);
}

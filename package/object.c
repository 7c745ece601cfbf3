/*
 * Reads a relocatable object: sections that are loaded become chunks of the file's, symbols
 * definitions, relocations fixups against section + offset or, for what other objects define,
 * names. Objects come from our code generators (and, for emulation, from the C compiler); still,
 * nothing is followed unchecked, and what is not known is refused.
 */
#include <inttypes.h>
#include <string.h>

#include "package/linkage.h"

typedef struct {
    dlc_linkage *linkage;
    unsigned char *bytes;
    uint64_t size_bytes;
    const Elf64_Shdr *sections;
    uint32_t nsections;
    const Elf64_Sym *symbols;
    uint64_t nsymbols;
    const char *names, *section_names; /* each ends with a NUL */
    uint64_t names_bytes, section_names_bytes;
    uint32_t *to; /* by section: of the linkage, or UINT32_MAX */
    uint64_t *at; /* by section: its offset there */
} object;

static int has_bytes(const object *o, uint64_t at, uint64_t n)
{
    return at <= o->size_bytes && n <= o->size_bytes - at;
}

static const char *name_in(const char *names, uint64_t size_bytes, uint64_t at)
{
    return at < size_bytes ? names + at : "";
}

static const char *section_name(const object *o, uint32_t i)
{
    return name_in(o->section_names, o->section_names_bytes, o->sections[i].sh_name);
}

static int open_names(const object *o, uint32_t section, const char **names, uint64_t *size_bytes)
{
    if (section >= o->nsections || o->sections[section].sh_type != SHT_STRTAB)
        return 0;
    *names = (const char *)o->bytes + o->sections[section].sh_offset;
    *size_bytes = o->sections[section].sh_size;
    return *size_bytes && !(*names)[*size_bytes - 1];
}

static int open_symbols(object *o)
{
    for (uint32_t i = 0; i < o->nsections; i++) {
        const Elf64_Shdr *section = &o->sections[i];
        if (section->sh_type != SHT_SYMTAB)
            continue;
        o->symbols = (const Elf64_Sym *)(o->bytes + section->sh_offset);
        o->nsymbols = section->sh_size / sizeof *o->symbols;
        return section->sh_offset % 8 == 0 &&
               open_names(o, section->sh_link, &o->names, &o->names_bytes);
    }
    return 0;
}

/* The tables lie in the file; `blob` is copied, so that it is aligned and can be patched. */
static int open_tables(object *o, const dlc_blob *blob)
{
    o->bytes = dlc_arena_copy(o->linkage->arena, blob->bytes, blob->size_bytes);
    o->size_bytes = blob->size_bytes;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)o->bytes;
    if (o->size_bytes < sizeof *header || memcmp(header, ELFMAG, SELFMAG) != 0 ||
        header->e_type != ET_REL || header->e_shentsize != sizeof *o->sections ||
        header->e_shoff % 8 ||
        !has_bytes(o, header->e_shoff, header->e_shnum * sizeof *o->sections))
        return 0;
    o->sections = (const Elf64_Shdr *)(o->bytes + header->e_shoff);
    o->nsections = header->e_shnum;
    for (uint32_t i = 0; i < o->nsections; i++)
        if (o->sections[i].sh_type != SHT_NOBITS &&
            !has_bytes(o, o->sections[i].sh_offset, o->sections[i].sh_size))
            return 0;
    return open_names(o, header->e_shstrndx, &o->section_names, &o->section_names_bytes) &&
           open_symbols(o);
}

static int starts_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

/* The section of the file that one of an object goes to. */
static dlc_status choose_section(object *o, uint32_t i, uint32_t *to)
{
    static const struct {
        const char *name;
        uint64_t flags;
        dlc_segment segment;
    } kinds[] = {
        {".text", SHF_ALLOC | SHF_EXECINSTR, DLC_SEGMENT_CODE},
        {".rodata", SHF_ALLOC, DLC_SEGMENT_READ},
        {".data.rel.ro", SHF_ALLOC | SHF_WRITE, DLC_SEGMENT_RELRO},
    };
    const uint64_t seen = SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR | SHF_TLS | SHF_GROUP;
    const Elf64_Shdr *section = &o->sections[i];
    const char *name = section_name(o, i);
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (starts_with(name, kinds[k].name) && (section->sh_flags & seen) == kinds[k].flags &&
            section->sh_type == SHT_PROGBITS && section->sh_addralign <= 4096) {
            *to = dlc_linkage_section(o->linkage, kinds[k].name, kinds[k].segment);
            return DLC_OK;
        }
    return dlc_linkage_fail(o->linkage,
                            "section '%s' (type %" PRIu32 ", flags 0x%" PRIx64
                            ") of the generated code is of no kind that is linked",
                            name, section->sh_type, section->sh_flags);
}

static dlc_status add_sections(object *o)
{
    o->to = dlc_new_array(o->linkage->arena, uint32_t, o->nsections + 1);
    o->at = dlc_new_array(o->linkage->arena, uint64_t, o->nsections + 1);
    memset(o->to, 0xff, o->nsections * sizeof *o->to);
    for (uint32_t i = 0; i < o->nsections; i++) {
        const Elf64_Shdr *section = &o->sections[i];
        if (!(section->sh_flags & SHF_ALLOC) || !section->sh_size || section->sh_type == SHT_NOTE)
            continue;
        DLC_TRY(choose_section(o, i, &o->to[i]));
        dlc_blob *piece = dlc_new(o->linkage->arena, dlc_blob);
        *piece = (dlc_blob){o->bytes + section->sh_offset, section->sh_size, NULL};
        o->at[i] = dlc_linkage_add_chunk(
            o->linkage, o->to[i],
            (dlc_chunk){.pieces = piece,
                        .npieces = 1,
                        .align_bytes = section->sh_addralign ? (uint32_t)section->sh_addralign : 1,
                        .size_bytes = section->sh_size});
    }
    return DLC_OK;
}

static int is_defined(const object *o, const Elf64_Sym *symbol)
{
    return symbol->st_shndx < o->nsections && symbol->st_shndx != SHN_UNDEF &&
           o->to[symbol->st_shndx] != UINT32_MAX;
}

static void add_definitions(object *o)
{
    for (uint64_t i = 1; i < o->nsymbols; i++) {
        const Elf64_Sym *symbol = &o->symbols[i];
        uint8_t type = ELF64_ST_TYPE(symbol->st_info);
        dlc_definition definition = {
            .name = name_in(o->names, o->names_bytes, symbol->st_name),
            .type = type,
            .is_global = ELF64_ST_BIND(symbol->st_info) != STB_LOCAL,
            .is_weak = ELF64_ST_BIND(symbol->st_info) == STB_WEAK,
            .size_bytes = symbol->st_size,
        };
        if (!is_defined(o, symbol) || (!definition.is_global && type != STT_FUNC))
            continue;
        definition.section = o->to[symbol->st_shndx];
        definition.at = o->at[symbol->st_shndx] + symbol->st_value;
        dlc_vec_push(o->linkage->arena, &o->linkage->definitions, definition);
    }
}

static dlc_status add_fixup(object *o, uint32_t section, const Elf64_Rela *rela)
{
    uint64_t number = ELF64_R_SYM(rela->r_info);
    uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
    int row = dlc_reloc_find(o->linkage->input->machine, type);
    if (number >= o->nsymbols)
        return dlc_linkage_fail(
            o->linkage, "the generated code relocates against symbol %" PRIu64 " of %" PRIu64,
            number, o->nsymbols);
    const Elf64_Sym *symbol = &o->symbols[number];
    const char *name = name_in(o->names, o->names_bytes, symbol->st_name);
    if (row < 0)
        return dlc_linkage_fail(o->linkage,
                                "the generated code has a relocation of type %" PRIu32
                                " against '%s' in '%s', which is not linked",
                                type, name, section_name(o, section));
    if (rela->r_offset > o->sections[section].sh_size ||
        o->sections[section].sh_size - rela->r_offset < dlc_reloc_bytes((uint32_t)row))
        return dlc_linkage_fail(o->linkage, "a relocation lies outside section '%s'",
                                section_name(o, section));
    dlc_fixup fixup = {
        .at = o->at[section] + rela->r_offset, .addend = rela->r_addend, .row = (uint32_t)row};
    if (is_defined(o, symbol)) {
        fixup.section = o->to[symbol->st_shndx];
        fixup.addend += (int64_t)(o->at[symbol->st_shndx] + symbol->st_value);
    } else {
        fixup.name = name;
    }
    dlc_vec_push(o->linkage->arena, &o->linkage->sections.data[o->to[section]].fixups, fixup);
    return DLC_OK;
}

static dlc_status add_fixups(object *o, const Elf64_Shdr *table)
{
    if (table->sh_info >= o->nsections || o->to[table->sh_info] == UINT32_MAX)
        return DLC_OK; /* of what is not loaded */
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela rela;
        memcpy(&rela, o->bytes + table->sh_offset + i * sizeof rela, sizeof rela);
        DLC_TRY(add_fixup(o, table->sh_info, &rela));
    }
    return DLC_OK;
}

dlc_status dlc_linkage_add_object(dlc_linkage *linkage, const dlc_blob *blob)
{
    object o = {.linkage = linkage};
    if (!open_tables(&o, blob) ||
        ((const Elf64_Ehdr *)o.bytes)->e_machine != dlc_linkage_machine(linkage))
        return dlc_linkage_fail(linkage, "the generated code is no object of its processor");
    DLC_TRY(add_sections(&o));
    add_definitions(&o);
    for (uint32_t i = 0; i < o.nsections; i++) {
        if (o.sections[i].sh_type == SHT_RELA)
            DLC_TRY(add_fixups(&o, &o.sections[i]));
        if (o.sections[i].sh_type == SHT_REL)
            return dlc_linkage_fail(linkage, "the generated code has relocations without addends");
    }
    return DLC_OK;
}

/*
 * Objects of data, written directly: weights go from the mapped model to the file without a copy in
 * memory, whatever their size. Layout of the file: header, the sections' bytes, relocations,
 * symbols, names, section headers.
 */
#include "package/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

typedef struct {
    int fd;
    uint64_t at;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_elf_machine machine;
    const dlc_elf_symbol *symbols;
    uint32_t nsymbols;
    dlc_vec(Elf64_Shdr) sections;
    dlc_vec(Elf64_Sym) table;
    dlc_vec(const char *) names; /* of table, in order */
    dlc_str strings, section_names;
} writer;

static dlc_status put(writer *w, const void *bytes, size_t size_bytes)
{
    const char *from = bytes;
    w->at += size_bytes;
    while (size_bytes) {
        ssize_t n =
            write(w->fd, from, size_bytes < ((size_t)1 << 30) ? size_bytes : (size_t)1 << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dlc_diag_fail(w->diag, DLC_IO, NULL,
                                 "the object with the constants cannot be written: %s",
                                 strerror(errno));
        from += n;
        size_bytes -= (size_t)n;
    }
    return DLC_OK;
}

static dlc_status align_to(writer *w, uint64_t align)
{
    static const char zeros[4096];
    uint64_t need = (align - w->at % align) % align;
    return put(w, zeros, need); /* aligns are at most a page */
}

static uint32_t add_name(dlc_str *names, const char *name)
{
    uint32_t at = (uint32_t)names->n;
    dlc_str_addn(names, name, strlen(name) + 1);
    return at;
}

/* Weights above this lie apart from code, whose 32-bit offsets must not span them. */
static const uint64_t large_bytes = UINT64_C(1) << 30;

static dlc_status put_section(writer *w, const dlc_elf_symbol *symbol)
{
    DLC_TRY(align_to(w, symbol->align_bytes));
    Elf64_Shdr section = {
        .sh_name = add_name(&w->section_names, symbol->section),
        .sh_type = SHT_PROGBITS,
        .sh_flags = symbol->npointers ? SHF_ALLOC | SHF_WRITE : SHF_ALLOC,
        .sh_offset = w->at,
        .sh_addralign = symbol->align_bytes,
    };
    for (uint32_t i = 0; i < symbol->npieces; i++) {
        DLC_TRY(put(w, symbol->pieces[i].bytes, symbol->pieces[i].size_bytes));
        DLC_TRY(align_to(w, symbol->align_bytes));
    }
    section.sh_size = w->at - section.sh_offset;
    if (section.sh_size > large_bytes && w->machine == DLC_ELF_X86_64)
        section.sh_flags |= 0x10000000; /* SHF_X86_64_LARGE */
    dlc_vec_push(w->arena, &w->sections, section);
    return DLC_OK;
}

static uint32_t find_symbol(const writer *w, const char *name)
{
    for (uint32_t i = 1; i < w->names.n; i++)
        if (!strcmp(w->names.data[i], name))
            return i;
    return 0;
}

static void add_symbol(writer *w, const char *name, Elf64_Sym symbol)
{
    symbol.st_name = add_name(&w->strings, name);
    dlc_vec_push(w->arena, &w->table, symbol);
    dlc_vec_push(w->arena, &w->names, name);
}

static void define_symbols(writer *w)
{
    Elf64_Sym none = {0};
    dlc_vec_push(w->arena, &w->table, none);
    dlc_vec_push(w->arena, &w->names, (const char *)"");
    for (uint32_t i = 0; i < w->nsymbols; i++) {
        Elf64_Sym symbol = {
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
            .st_other = w->symbols[i].is_exported ? STV_DEFAULT : STV_HIDDEN,
            .st_shndx = (Elf64_Section)(i + 1),
            .st_size = w->sections.data[i + 1].sh_size,
        };
        add_symbol(w, w->symbols[i].name, symbol);
        if (w->symbols[i].alias)
            add_symbol(w, w->symbols[i].alias, symbol);
    }
}

/* Undefined names are looked up among those of one table, and the tables name kernels in order: the
 * search is short. */
static uint32_t symbol_number(writer *w, const char *name, uint32_t *guess)
{
    if (*guess < w->names.n && !strcmp(w->names.data[*guess], name))
        return (*guess)++;
    uint32_t found = find_symbol(w, name);
    if (!found) {
        found = w->names.n;
        add_symbol(
            w, name,
            (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), .st_other = STV_HIDDEN});
    }
    *guess = found + 1;
    return found;
}

static dlc_status put_relocations(writer *w, uint32_t i)
{
    const dlc_elf_symbol *symbol = &w->symbols[i];
    uint32_t type = w->machine == DLC_ELF_X86_64 ? R_X86_64_64 : R_AARCH64_ABS64, guess = 0;
    char name[256] = ".rela";
    if (!symbol->npointers)
        return DLC_OK;
    DLC_TRY(align_to(w, 8));
    strncat(name, symbol->section, sizeof name - sizeof ".rela");
    Elf64_Shdr section = {
        .sh_name = add_name(&w->section_names, name),
        .sh_type = SHT_RELA,
        .sh_flags = SHF_INFO_LINK,
        .sh_offset = w->at,
        .sh_size = symbol->npointers * sizeof(Elf64_Rela),
        .sh_info = i + 1,
        .sh_addralign = 8,
        .sh_entsize = sizeof(Elf64_Rela),
    };
    dlc_vec_push(w->arena, &w->sections, section);
    for (uint32_t k = 0; k < symbol->npointers; k++) {
        Elf64_Rela rela = {
            .r_offset = symbol->pointers[k].offset,
            .r_info =
                ELF64_R_INFO((uint64_t)symbol_number(w, symbol->pointers[k].target, &guess), type),
        };
        DLC_TRY(put(w, &rela, sizeof rela));
    }
    return DLC_OK;
}

static dlc_status put_table(writer *w, const char *name, Elf64_Shdr section, const void *bytes,
                            size_t size_bytes)
{
    DLC_TRY(align_to(w, 8));
    section.sh_name = add_name(&w->section_names, name);
    section.sh_offset = w->at;
    section.sh_size = size_bytes;
    section.sh_addralign = 8;
    dlc_vec_push(w->arena, &w->sections, section);
    return put(w, bytes, size_bytes);
}

static dlc_status put_tables(writer *w)
{
    uint32_t symbols = w->sections.n;
    for (uint32_t i = 0; i < w->sections.n; i++)
        if (w->sections.data[i].sh_type == SHT_RELA)
            w->sections.data[i].sh_link = symbols;
    Elf64_Shdr table = {.sh_type = SHT_SYMTAB,
                        .sh_link = symbols + 1,
                        .sh_info = 1,
                        .sh_entsize = sizeof(Elf64_Sym)};
    DLC_TRY(put_table(w, ".symtab", table, w->table.data, w->table.n * sizeof *w->table.data));
    DLC_TRY(put_table(w, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, w->strings.data,
                      w->strings.n));
    Elf64_Shdr stack = {.sh_type = SHT_PROGBITS}; /* the stack needs no execution */
    DLC_TRY(put_table(w, ".note.GNU-stack", stack, "", 0));
    DLC_TRY(align_to(w, 8));
    Elf64_Shdr names = {.sh_name = add_name(&w->section_names, ".shstrtab"),
                        .sh_type = SHT_STRTAB,
                        .sh_offset = w->at,
                        .sh_size = w->section_names.n,
                        .sh_addralign = 1};
    dlc_vec_push(w->arena, &w->sections, names);
    DLC_TRY(put(w, w->section_names.data, w->section_names.n));
    return align_to(w, 8);
}

static dlc_status put_header(writer *w, uint64_t section_offset)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_REL,
        .e_machine = w->machine == DLC_ELF_X86_64 ? EM_X86_64 : EM_AARCH64,
        .e_version = EV_CURRENT,
        .e_shoff = section_offset,
        .e_ehsize = sizeof header,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)w->sections.n,
        .e_shstrndx = (Elf64_Half)(w->sections.n - 1),
    };
    if (pwrite(w->fd, &header, sizeof header, 0) != sizeof header)
        return dlc_diag_fail(w->diag, DLC_IO, NULL,
                             "the object with the constants cannot be written: %s",
                             strerror(errno));
    return DLC_OK;
}

static dlc_status write_all(writer *w)
{
    Elf64_Ehdr header = {0};
    Elf64_Shdr none = {0};
    DLC_TRY(put(w, &header, sizeof header));
    dlc_vec_push(w->arena, &w->sections, none);
    dlc_str_addn(&w->strings, "", 1);
    dlc_str_addn(&w->section_names, "", 1);
    for (uint32_t i = 0; i < w->nsymbols; i++)
        DLC_TRY(put_section(w, &w->symbols[i]));
    define_symbols(w);
    for (uint32_t i = 0; i < w->nsymbols; i++)
        DLC_TRY(put_relocations(w, i));
    DLC_TRY(put_tables(w));
    uint64_t section_offset = w->at;
    DLC_TRY(put(w, w->sections.data, w->sections.n * sizeof *w->sections.data));
    return put_header(w, section_offset);
}

dlc_status dlc_elf_write(int fd, dlc_elf_machine machine, const dlc_elf_symbol *symbols,
                         uint32_t nsymbols, dlc_arena *arena, dlc_diag *diag)
{
    writer w = {.fd = fd,
                .arena = arena,
                .diag = diag,
                .machine = machine,
                .symbols = symbols,
                .nsymbols = nsymbols};
    dlc_status status = write_all(&w);
    dlc_str_deinit(&w.strings);
    dlc_str_deinit(&w.section_names);
    return status;
}

/* --- linked objects --- */
typedef struct {
    unsigned char *bytes;
    size_t size_bytes;
    const Elf64_Ehdr *header;
    Elf64_Shdr *sections, *symtab;
    Elf64_Sym *symbols;
    uint32_t nsymbols;
    const char *names;
} object;

static int has_bytes(const object *o, uint64_t at, uint64_t n)
{
    return at <= o->size_bytes && n <= o->size_bytes - at;
}

/* Our own linker's output; still, nothing is followed unchecked. */
static dlc_status open_object(unsigned char *bytes, size_t size_bytes, dlc_diag *diag, object *o)
{
    *o = (object){.bytes = bytes, .size_bytes = size_bytes, .header = (const Elf64_Ehdr *)bytes};
    int is_whole = size_bytes >= sizeof(Elf64_Ehdr) && !memcmp(bytes, ELFMAG, SELFMAG) &&
                   has_bytes(o, o->header->e_shoff, o->header->e_shnum * sizeof(Elf64_Shdr));
    if (is_whole)
        o->sections = (Elf64_Shdr *)(bytes + o->header->e_shoff);
    for (uint32_t i = 0; is_whole && i < o->header->e_shnum; i++) {
        is_whole = o->sections[i].sh_type == SHT_NOBITS ||
                   has_bytes(o, o->sections[i].sh_offset, o->sections[i].sh_size);
        if (o->sections[i].sh_type == SHT_SYMTAB)
            o->symtab = &o->sections[i];
    }
    if (!is_whole || !o->symtab || o->symtab->sh_link >= o->header->e_shnum)
        return dlc_diag_fail(diag, DLC_INTERNAL, NULL,
                             "the linker wrote an object without symbols");
    o->symbols = (Elf64_Sym *)(bytes + o->symtab->sh_offset);
    o->nsymbols = (uint32_t)(o->symtab->sh_size / sizeof *o->symbols);
    o->names = (const char *)bytes + o->sections[o->symtab->sh_link].sh_offset;
    return DLC_OK;
}

/* Local symbols come first in a table: hidden ones join them, the order within both kinds stays. */
static uint32_t *order_symbols(object *o, dlc_arena *arena)
{
    uint32_t *number = dlc_new_array(arena, uint32_t, o->nsymbols), at = 0;
    Elf64_Sym *ordered = dlc_new_array(arena, Elf64_Sym, o->nsymbols);
    for (int global = 0; global < 2; global++) {
        for (uint32_t i = 0; i < o->nsymbols; i++) {
            Elf64_Sym symbol = o->symbols[i];
            int is_hidden =
                ELF64_ST_VISIBILITY(symbol.st_other) == STV_HIDDEN && symbol.st_shndx != SHN_UNDEF;
            if (is_hidden && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) {
                symbol.st_info = ELF64_ST_INFO(STB_LOCAL, ELF64_ST_TYPE(symbol.st_info));
                symbol.st_other = STV_DEFAULT;
            }
            if ((ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) != global)
                continue;
            ordered[at] = symbol;
            number[i] = at++;
        }
        if (!global)
            o->symtab->sh_info = at;
    }
    memcpy(o->symbols, ordered, o->nsymbols * sizeof *ordered);
    return number;
}

dlc_status dlc_elf_localize(unsigned char *bytes, size_t size_bytes, dlc_arena *arena,
                            dlc_diag *diag)
{
    object o;
    DLC_TRY(open_object(bytes, size_bytes, diag, &o));
    for (uint32_t i = 1; i < o.nsymbols; i++)
        if (o.symbols[i].st_shndx == SHN_UNDEF)
            return dlc_diag_fail(diag, DLC_INTERNAL, NULL, "the generated code needs '%s'",
                                 o.names + o.symbols[i].st_name);
    uint32_t *number = order_symbols(&o, arena);
    for (uint32_t i = 0; i < o.header->e_shnum; i++) {
        const Elf64_Shdr *section = &o.sections[i];
        if (section->sh_type == SHT_GROUP || section->sh_type == SHT_SYMTAB_SHNDX)
            return dlc_diag_fail(diag, DLC_INTERNAL, NULL,
                                 "the linked object has groups or too many sections");
        if (section->sh_type != SHT_RELA)
            continue;
        Elf64_Rela *rela = (Elf64_Rela *)(bytes + section->sh_offset);
        for (uint64_t k = 0; k < section->sh_size / sizeof *rela; k++) {
            uint64_t symbol = ELF64_R_SYM(rela[k].r_info);
            if (symbol >= o.nsymbols)
                return dlc_diag_fail(
                    diag, DLC_INTERNAL, NULL,
                    "the linked object relocates against a symbol that is not there");
            rela[k].r_info = ELF64_R_INFO((uint64_t)number[symbol], ELF64_R_TYPE(rela[k].r_info));
        }
    }
    return DLC_OK;
}

dlc_status dlc_elf_globals(const unsigned char *bytes, size_t size_bytes, dlc_arena *arena,
                           dlc_diag *diag, const char ***names, uint32_t *nnames)
{
    object o;
    DLC_TRY(open_object((unsigned char *)(uintptr_t)bytes, size_bytes, diag, &o));
    *names = dlc_new_array(arena, const char *, o.nsymbols);
    *nnames = 0;
    for (uint32_t i = 0; i < o.nsymbols; i++)
        if (ELF64_ST_BIND(o.symbols[i].st_info) == STB_GLOBAL && o.symbols[i].st_shndx != SHN_UNDEF)
            (*names)[(*nnames)++] = o.names + o.symbols[i].st_name;
    return DLC_OK;
}

/*
 * Shared objects: addresses for the merged sections, the tables a dynamic linker wants (so that
 * dlopen and debuggers read the file, too), and the seal for our own loader.
 *
 *   headers symbols hash names relocations seal checksums plans rodata | text | data.rel.ro dynamic | weights
 *
 * Each part is a segment; one begins on the page after the last's, at the file offset that follows,
 * so that the file has no holes. Weights come last: code's 32-bit distances never span them.
 */
#include "package/elf.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dlc/checksum.h"

enum {
    NSEGMENTS = 8, /* PHDR, four to load, DYNAMIC, RELRO, STACK */
    NDYNAMIC = 12,
    MAX_EXPORTS = 8,
};

typedef struct {
    dlc_elf elf;
    dlc_linkage *linkage;
    const dlc_definition *exports[MAX_EXPORTS];
    uint32_t nexports, nrelocations;
    uint64_t page;
    /* the tables' bytes and sections */
    Elf64_Sym *symbols;
    uint32_t *hash;
    Elf64_Rela *relocations;
    Elf64_Dyn *dynamic;
    uint32_t at_symbols, at_hash, at_names, at_relocations, at_seal, at_sums, at_dynamic;
    dlc_seal seal;
} shared;

static dlc_section *section(const shared *f, uint32_t number)
{
    return &f->linkage->sections.data[number];
}

/* --- what there will be --- */
static dlc_status collect_exports(shared *f)
{
    const dlc_linkage *l = f->linkage;
    for (uint32_t i = 0; i < l->definitions.n; i++) {
        if (!l->definitions.data[i].is_exported)
            continue;
        if (f->nexports == MAX_EXPORTS)
            return dlc_linkage_fail(l, "more than %d exported symbols", MAX_EXPORTS);
        f->exports[f->nexports++] = &l->definitions.data[i];
    }
    return DLC_OK;
}

/* Words that hold addresses are the loader's to fill; everything else is known now. */
static dlc_status count_relocations(shared *f)
{
    for (uint32_t i = 0; i < f->linkage->sections.n; i++) {
        const dlc_section *s = section(f, i);
        for (uint32_t k = 0; k < s->fixups.n; k++) {
            if (!dlc_reloc_is_word(s->fixups.data[k].row))
                continue;
            if (s->segment != DLC_SEGMENT_RELRO)
                return dlc_linkage_fail(f->linkage, "an address in '%s', which is read-only",
                                        s->name);
            f->nrelocations++;
        }
    }
    return DLC_OK;
}

static void *add_table(shared *f, const char *name, dlc_segment segment, Elf64_Shdr header,
                       uint64_t size_bytes, uint32_t *number)
{
    *number = f->linkage->sections.n;
    return dlc_elf_add(&f->elf, name, segment, header, size_bytes);
}

/* The exported names. */
static void add_names(shared *f)
{
    dlc_str names = {0};
    dlc_str_addn(&names, "", 1);
    for (uint32_t i = 0; i < f->nexports; i++)
        f->symbols[i + 1].st_name = dlc_linkage_add_name(&names, f->exports[i]->name);
    Elf64_Shdr header = {.sh_type = SHT_STRTAB, .sh_addralign = 1};
    memcpy(add_table(f, ".dynstr", DLC_SEGMENT_GENERATED, header, names.n, &f->at_names),
           names.data, names.n);
    dlc_str_deinit(&names);
}

/* Constants, not the binaries beside them. */
static int is_constants(const dlc_section *s)
{
    return s->segment == DLC_SEGMENT_BULK && strcmp(s->name, ".dlc.binaries") != 0;
}

/* Room for a checksum of each chunk, however the sections are aligned. */
static void add_checksums(shared *f, uint32_t nsections)
{
    uint64_t size_bytes = 0;
    for (uint32_t i = 0; i < nsections; i++)
        if (is_constants(section(f, i)))
            size_bytes += section(f, i)->size_bytes + section(f, i)->align_bytes;
    Elf64_Shdr header = {.sh_type = SHT_PROGBITS, .sh_addralign = 8};
    (void)add_table(f, ".dlc.checksums", DLC_SEGMENT_GENERATED, header,
                    (size_bytes + DLC_SEAL_CHUNK - 1) / DLC_SEAL_CHUNK * sizeof(uint64_t),
                    &f->at_sums);
}

/* Sections 1 to 5 of the file, in this order: links between them are numbers. */
static void add_generated(shared *f, uint32_t nsections)
{
    enum { SYMBOLS = 1, NAMES = 3 };
    Elf64_Shdr symbols = {.sh_type = SHT_DYNSYM,
                          .sh_link = NAMES,
                          .sh_info = 1,
                          .sh_addralign = 8,
                          .sh_entsize = sizeof(Elf64_Sym)};
    Elf64_Shdr hash = {.sh_type = SHT_GNU_HASH, .sh_link = SYMBOLS, .sh_addralign = 8};
    Elf64_Shdr relocations = {.sh_type = SHT_RELA,
                              .sh_link = SYMBOLS,
                              .sh_addralign = 8,
                              .sh_entsize = sizeof(Elf64_Rela)};
    Elf64_Shdr seal = {.sh_type = SHT_PROGBITS, .sh_addralign = 8};
    f->symbols = add_table(f, ".dynsym", DLC_SEGMENT_GENERATED, symbols,
                           (f->nexports + 1) * sizeof(Elf64_Sym), &f->at_symbols);
    f->hash = add_table(f, ".gnu.hash", DLC_SEGMENT_GENERATED, hash,
                        (4 + 2 + 1 + f->nexports) * sizeof(uint32_t), &f->at_hash);
    add_names(f);
    f->relocations = add_table(f, ".rela.dyn", DLC_SEGMENT_GENERATED, relocations,
                               f->nrelocations * sizeof(Elf64_Rela), &f->at_relocations);
    (void)add_table(f, ".dlc.seal", DLC_SEGMENT_GENERATED, seal, sizeof(dlc_seal), &f->at_seal);
    add_checksums(f, nsections);
}

static void order_sections(shared *f, uint32_t nsections)
{
    enum { NAMES = 3 };
    Elf64_Shdr dynamic = {.sh_type = SHT_DYNAMIC,
                          .sh_link = NAMES,
                          .sh_addralign = 8,
                          .sh_entsize = sizeof(Elf64_Dyn)};
    Elf64_Shdr padding = {.sh_type = SHT_NOBITS, .sh_addralign = 1};
    for (dlc_segment s = DLC_SEGMENT_READ; s < DLC_SEGMENT_COUNT; s++) {
        for (uint32_t i = 0; i < nsections; i++)
            if (section(f, i)->segment == s)
                dlc_vec_push(f->linkage->arena, &f->elf.order, i);
        if (s == DLC_SEGMENT_RELRO) {
            f->dynamic =
                add_table(f, ".dynamic", s, dynamic, NDYNAMIC * sizeof(Elf64_Dyn), &f->at_dynamic);
            dlc_elf_add(&f->elf, ".relro_padding", s, padding, 1);
        }
    }
    dlc_elf_number(&f->elf);
}

/* --- addresses --- */
typedef struct {
    uint64_t offset, address;
} cursor;

static void add_segment(shared *f, uint32_t type, uint32_t flags, cursor begin, uint64_t file_bytes,
                        uint64_t memory_bytes, uint64_t align)
{
    f->elf.segments[f->elf.nsegments++] = (Elf64_Phdr){.p_type = type,
                                                       .p_flags = flags,
                                                       .p_offset = begin.offset,
                                                       .p_vaddr = begin.address,
                                                       .p_paddr = begin.address,
                                                       .p_filesz = file_bytes,
                                                       .p_memsz = memory_bytes,
                                                       .p_align = align};
}

static void place_section(shared *f, dlc_section *s, cursor *at)
{
    at->offset = dlc_elf_align(at->offset, s->align_bytes);
    at->address = dlc_elf_align(at->address, s->align_bytes);
    s->offset = at->offset;
    s->address = at->address;
    if (s->header.sh_type == SHT_NOBITS) { /* the rest of the last page, protected with it */
        s->size_bytes = dlc_elf_align(at->address, f->page) - at->address;
        at->address += s->size_bytes;
        return;
    }
    at->offset += s->size_bytes;
    at->address += s->size_bytes;
}

static uint64_t bytes_of(const shared *f, uint32_t begin, uint32_t end)
{
    uint64_t n = 0;
    for (uint32_t i = begin; i < end; i++)
        n += dlc_elf_section(&f->elf, i)->size_bytes;
    return n;
}

/* Weights lie in huge pages as they do in the file, so that the system can map these whole. */
static uint64_t align_of(const shared *f, uint32_t begin, uint32_t end)
{
    int is_weights = dlc_elf_section(&f->elf, begin)->segment == DLC_SEGMENT_BULK;
    return is_weights && bytes_of(f, begin, end) >= 2 * DLC_HUGE_PAGE ? DLC_HUGE_PAGE : f->page;
}

/* The sections order[begin..end) as one segment to load; the first has the headers, too. */
static cursor place_segment(shared *f, uint32_t begin, uint32_t end, uint32_t flags, cursor *at)
{
    const dlc_section *front = dlc_elf_section(&f->elf, begin);
    const uint64_t align = align_of(f, begin, end);
    cursor start = {0, 0};
    if (front->segment != DLC_SEGMENT_GENERATED) {
        start.offset = dlc_elf_align(at->offset, front->align_bytes);
        start.address = dlc_elf_align(at->address, f->page);
        start.address += (start.offset - start.address) % align;
        *at = start;
    }
    for (uint32_t i = begin; i < end; i++)
        place_section(f, dlc_elf_section(&f->elf, i), at);
    add_segment(f, PT_LOAD, flags, start, at->offset - start.offset, at->address - start.address, align);
    return start;
}

static uint32_t end_of(const shared *f, uint32_t begin, dlc_segment segment)
{
    while (begin < f->elf.order.n && dlc_elf_section(&f->elf, begin)->segment <= segment)
        begin++;
    return begin;
}

static void place_all(shared *f)
{
    static const struct {
        dlc_segment last;
        uint32_t flags;
    } loads[] = {{DLC_SEGMENT_READ, PF_R},
                 {DLC_SEGMENT_CODE, PF_R | PF_X},
                 {DLC_SEGMENT_RELRO, PF_R | PF_W},
                 {DLC_SEGMENT_BULK, PF_R}};
    uint64_t headers = sizeof(Elf64_Ehdr) + NSEGMENTS * sizeof(Elf64_Phdr);
    cursor at = {headers, headers}, table = {sizeof(Elf64_Ehdr), sizeof(Elf64_Ehdr)}, relro = {0};
    uint64_t size_bytes = NSEGMENTS * sizeof(Elf64_Phdr), relro_file = 0, relro_memory = 0;
    uint32_t begin = 0;
    add_segment(f, PT_PHDR, PF_R, table, size_bytes, size_bytes, 8);
    for (uint32_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        uint32_t end = end_of(f, begin, loads[i].last);
        if (!bytes_of(f, begin, end)) { /* no page of its own */
            for (; begin < end; begin++)
                place_section(f, dlc_elf_section(&f->elf, begin), &at);
            continue;
        }
        cursor start = place_segment(f, begin, end, loads[i].flags, &at);
        if (loads[i].last == DLC_SEGMENT_RELRO) {
            relro = start;
            relro_file = at.offset - start.offset;
            relro_memory = at.address - start.address;
        }
        begin = end;
    }
    const dlc_section *dynamic = section(f, f->at_dynamic);
    add_segment(f, PT_DYNAMIC, PF_R | PF_W, (cursor){dynamic->offset, dynamic->address},
                dynamic->size_bytes, dynamic->size_bytes, 8);
    add_segment(f, PT_GNU_RELRO, PF_R, relro, relro_file, relro_memory, 1);
    add_segment(f, PT_GNU_STACK, PF_R | PF_W, (cursor){0, 0}, 0, 0, 16);
    while (f->elf.nsegments < NSEGMENTS)
        add_segment(f, PT_NULL, 0, (cursor){0, 0}, 0, 0, 0);
    f->elf.end = at.offset;
}

/* --- contents --- */
static uint32_t gnu_hash(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

/* One bucket: the few symbols are one chain. */
static void fill_hash(shared *f)
{
    enum { SHIFT = 26 };
    uint32_t *chain = f->hash + 7;
    uint64_t bloom = 0;
    for (uint32_t i = 0; i < f->nexports; i++) {
        uint32_t h = gnu_hash(f->exports[i]->name);
        bloom |= UINT64_C(1) << h % 64 | UINT64_C(1) << (h >> SHIFT) % 64;
        chain[i] = (h & ~UINT32_C(1)) | (i + 1 == f->nexports);
    }
    f->hash[0] = 1; /* bucket */
    f->hash[1] = 1; /* the first symbol in it */
    f->hash[2] = 1; /* word of the filter */
    f->hash[3] = SHIFT;
    memcpy(f->hash + 4, &bloom, sizeof bloom);
    f->hash[6] = f->nexports ? 1 : 0;
}

static void fill_symbols(shared *f)
{
    for (uint32_t i = 0; i < f->nexports; i++) {
        const dlc_definition *d = f->exports[i];
        Elf64_Sym *symbol = &f->symbols[i + 1];
        symbol->st_info = ELF64_ST_INFO(STB_GLOBAL, d->type);
        symbol->st_shndx = (Elf64_Section)section(f, d->section)->number;
        symbol->st_value = section(f, d->section)->address + d->at;
        symbol->st_size = d->size_bytes;
    }
}

static void fill_dynamic(shared *f)
{
    const Elf64_Dyn entries[NDYNAMIC] = {
        {DT_FLAGS, {DF_BIND_NOW}},
        {DT_FLAGS_1, {DF_1_NOW}},
        {DT_RELA, {section(f, f->at_relocations)->address}},
        {DT_RELASZ, {section(f, f->at_relocations)->size_bytes}},
        {DT_RELAENT, {sizeof(Elf64_Rela)}},
        {DT_RELACOUNT, {f->nrelocations}},
        {DT_SYMTAB, {section(f, f->at_symbols)->address}},
        {DT_SYMENT, {sizeof(Elf64_Sym)}},
        {DT_STRTAB, {section(f, f->at_names)->address}},
        {DT_STRSZ, {section(f, f->at_names)->size_bytes}},
        {DT_GNU_HASH, {section(f, f->at_hash)->address}},
        {DT_NULL, {0}},
    };
    memcpy(f->dynamic, entries, sizeof entries);
}

/* The bytes at `at` of a section: in the last chunk that begins there or before. */
static unsigned char *bytes_at(const dlc_section *s, uint64_t at)
{
    uint32_t low = 0, high = s->chunks.n;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (s->chunks.data[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    const dlc_chunk *chunk = &s->chunks.data[low];
    return (unsigned char *)(uintptr_t)chunk->pieces[0].bytes + (at - chunk->at);
}

static dlc_status apply_fixups(shared *f)
{
    const uint32_t relative =
        f->linkage->input->machine == DLC_LINK_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->linkage->sections.n; i++) {
        const dlc_section *s = section(f, i);
        for (uint32_t k = 0; k < s->fixups.n; k++) {
            const dlc_fixup *fixup = &s->fixups.data[k];
            uint64_t target = section(f, fixup->section)->address + (uint64_t)fixup->addend;
            uint64_t place = s->address + fixup->at;
            if (dlc_reloc_is_word(fixup->row))
                f->relocations[n++] =
                    (Elf64_Rela){place, ELF64_R_INFO(0, relative), (int64_t)target};
            else
                DLC_TRY(
                    dlc_reloc_apply(f->linkage, fixup->row, bytes_at(s, fixup->at), place, target));
        }
    }
    return DLC_OK;
}

/* --- the seal --- */
static void seal_section(shared *f, dlc_seal_part part, const dlc_section *s)
{
    uint64_t begin = f->seal.parts[part].size_bytes ? f->seal.parts[part].address : s->address;
    if (!s->size_bytes)
        return;
    f->seal.parts[part].address = begin;
    f->seal.parts[part].size_bytes = s->address + s->size_bytes - begin;
}

/* Sections of one part follow each other. */
static void seal_parts(shared *f)
{
    seal_section(f, DLC_SEAL_RELOCATIONS, section(f, f->at_relocations));
    seal_section(f, DLC_SEAL_CHECKSUMS, section(f, f->at_sums));
    for (uint32_t i = 0; i < f->elf.order.n; i++) {
        const dlc_section *s = dlc_elf_section(&f->elf, i);
        if (s->segment == DLC_SEGMENT_READ)
            seal_section(f, DLC_SEAL_TABLES, s);
        else if (s->segment == DLC_SEGMENT_CODE)
            seal_section(f, DLC_SEAL_CODE, s);
        else if (s->segment == DLC_SEGMENT_RELRO && s->fixups.n)
            seal_section(f, DLC_SEAL_DATA, s);
        else if (s->segment == DLC_SEGMENT_BULK)
            seal_section(f, is_constants(s) ? DLC_SEAL_CONSTANTS : DLC_SEAL_BINARIES, s);
    }
}

static uint64_t offset_of(const shared *f, uint64_t address)
{
    for (uint32_t i = 0; i < f->elf.nsegments; i++) {
        const Elf64_Phdr *s = &f->elf.segments[i];
        if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
            return address - s->p_vaddr + s->p_offset;
    }
    return 0;
}

static dlc_status write_bytes(shared *f, dlc_output *output, const dlc_section *s, const void *bytes)
{
    for (uint64_t done = 0; done < s->size_bytes;) {
        ssize_t n = pwrite(output->fd, (const char *)bytes + done, s->size_bytes - done, (off_t)(s->offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return dlc_diag_fail(f->linkage->diag, DLC_IO, output->path, "the seal cannot be written: %s", strerror(errno));
        done += (uint64_t)n;
    }
    return DLC_OK;
}

/* Through a buffer: what is mapped counts as memory. */
static dlc_status read_bytes(shared *f, const dlc_output *output, uint64_t at, void *bytes, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        ssize_t n = pread(output->fd, (char *)bytes + done, size_bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return dlc_diag_fail(f->linkage->diag, DLC_IO, output->path, "what was written cannot be read back: %s",
                                 n ? strerror(errno) : "it is shorter");
        done += (size_t)n;
    }
    return DLC_OK;
}

static dlc_status write_checksums(shared *f, dlc_output *output)
{
    const dlc_section *table = section(f, f->at_sums);
    const uint64_t size_bytes = f->seal.parts[DLC_SEAL_CONSTANTS].size_bytes;
    uint64_t *sums = dlc_new_array(f->linkage->arena, uint64_t, table->size_bytes / sizeof *sums + 1);
    void *chunk = dlc_arena_alloc(f->linkage->arena, DLC_SEAL_CHUNK, 64);
    uint64_t begin = offset_of(f, f->seal.parts[DLC_SEAL_CONSTANTS].address);
    for (uint64_t at = 0; at < size_bytes; at += DLC_SEAL_CHUNK) {
        size_t n = size_bytes - at < DLC_SEAL_CHUNK ? (size_t)(size_bytes - at) : DLC_SEAL_CHUNK;
        DLC_TRY(read_bytes(f, output, begin + at, chunk, n));
        sums[at / DLC_SEAL_CHUNK] = dlc_checksum(chunk, n);
    }
    return write_bytes(f, output, table, sums);
}

static dlc_status fill_checksums(shared *f, dlc_output *output, const unsigned char *bytes)
{
    dlc_seal *seal = &f->seal;
    DLC_TRY(write_checksums(f, output));
    for (uint32_t i = 0; i < DLC_SEAL_COUNT; i++)
        if (i != DLC_SEAL_CONSTANTS)
            seal->parts[i].checksum =
                dlc_checksum(bytes + offset_of(f, seal->parts[i].address), seal->parts[i].size_bytes);
    return DLC_OK;
}

static dlc_status write_seal(shared *f, dlc_output *output)
{
    const dlc_linkage *l = f->linkage;
    size_t size_bytes = f->elf.end;
    dlc_seal *seal = &f->seal;
    DLC_TRY(dlc_output_flush(output, l->diag));
    const unsigned char *bytes = mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, output->fd, 0);
    if (bytes == MAP_FAILED)
        return dlc_diag_fail(l->diag, DLC_IO, output->path, "the linked file cannot be mapped: %s",
                             strerror(errno));
    dlc_status status = fill_checksums(f, output, bytes);
    munmap((void *)(uintptr_t)bytes, size_bytes);
    DLC_TRY(status);
    memcpy(seal->magic, DLC_SEAL_MAGIC, sizeof seal->magic);
    seal->abi_version = DLC_ABI_VERSION;
    seal->arch = l->input->machine == DLC_LINK_X86_64 ? DLC_ARCH_X86_64 : DLC_ARCH_AARCH64;
    for (uint32_t i = 0; i < f->nexports; i++)
        if (!strcmp(f->exports[i]->name, "dlc_executable"))
            seal->executable = f->symbols[i + 1].st_value;
    size_t head = offsetof(dlc_seal, abi_version);
    seal->checksum = dlc_checksum((const char *)seal + head, sizeof *seal - head);
    return write_bytes(f, output, section(f, f->at_seal), seal);
}

/* --- all --- */
static void place_tables(shared *f)
{
    uint32_t first = f->elf.order.n;
    dlc_elf_add_tables(&f->elf);
    for (uint32_t i = first; i < f->elf.order.n; i++) {
        dlc_section *s = dlc_elf_section(&f->elf, i);
        s->offset = dlc_elf_align(f->elf.end, s->align_bytes);
        f->elf.end = s->offset + s->size_bytes;
    }
    f->elf.end = dlc_elf_align(f->elf.end, 8);
}

dlc_status dlc_link_write_shared(dlc_linkage *linkage, dlc_output *output)
{
    shared f = {.linkage = linkage,
                .elf = {.linkage = linkage, .type = ET_DYN},
                .page = linkage->input->machine == DLC_LINK_X86_64 ? 0x1000 : 0x10000};
    uint32_t nsections = linkage->sections.n;
    f.elf.segments = dlc_new_array(linkage->arena, Elf64_Phdr, NSEGMENTS);
    DLC_TRY(collect_exports(&f));
    DLC_TRY(count_relocations(&f));
    add_generated(&f, nsections);
    order_sections(&f, nsections);
    place_all(&f);
    f.elf.entry = section(&f, f.at_seal)->address;
    fill_symbols(&f);
    fill_hash(&f);
    fill_dynamic(&f);
    DLC_TRY(apply_fixups(&f));
    place_tables(&f);
    seal_parts(&f);
    output->block_bytes = f.elf.end >= 2 * DLC_HUGE_PAGE ? DLC_HUGE_PAGE : 0;
    DLC_TRY(dlc_elf_write(&f.elf, output));
    return write_seal(&f, output);
}

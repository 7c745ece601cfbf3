/*
 * An executable's ELF file to memory, without dlopen: a .so of dlc needs no other library, defines
 * all it uses and holds only RELATIVE relocations, so mapping its segments and adding the base to a
 * few words is the whole of loading. In return no code of the file runs while it loads, a file
 * replaced on disk is never mistaken for the one loaded before, no process-wide lock or name is
 * involved, and statically linked programs can load models too.
 *
 * Order: trailer and checksum over the whole file (so damage is named as such), then the headers,
 * each number checked.
 */
#include "runtime/internal.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dlc/checksum.h"

enum { MAX_SEGMENTS = 16 };
static const size_t max_span = (size_t)1 << 46;

typedef struct {
    const char *name; /* for messages */
    int fd;
    const unsigned char *bytes; /* the whole file */
    size_t size_bytes;
    size_t elf_bytes; /* without the trailer */
    Elf64_Phdr segments[MAX_SEGMENTS];
    uint32_t nsegments;
} file;

static dlc_status damaged(const file *f, const char *what)
{
    return dlcrt_fail(DLC_INVALID, "%s: %s", f->name, what);
}

static dlc_status check_trailer(file *f)
{
    dlc_trailer trailer;
    if (f->size_bytes < 4 || memcmp(f->bytes, ELFMAG, SELFMAG) != 0)
        return damaged(f, "not an executable made by dlc");
    if (f->size_bytes < sizeof(Elf64_Ehdr) + sizeof trailer)
        return damaged(f, "cut off: too short for an executable");
    memcpy(&trailer, f->bytes + f->size_bytes - sizeof trailer, sizeof trailer);
    if (memcmp(trailer.magic, DLC_TRAILER_MAGIC, sizeof trailer.magic) != 0)
        return damaged(f, "does not end as an executable of dlc does: cut off, stripped, or made "
                          "by another program");
    if (trailer.file_bytes != f->size_bytes - sizeof trailer)
        return damaged(f, "damaged: its size is not the one it was written with");
    uint64_t sum = dlc_checksum(f->bytes, f->size_bytes - sizeof trailer.checksum);
    if (sum != trailer.checksum)
        return damaged(f, "damaged: its checksum does not match");
    f->elf_bytes = (size_t)trailer.file_bytes;
    return DLC_OK;
}

static dlc_status check_header(const file *f, const Elf64_Ehdr *header)
{
    static const uint16_t machines[] = {EM_X86_64, EM_AARCH64};
    uint16_t wanted = machines[dlcrt_cpu_arch()];
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_type != ET_DYN)
        return damaged(f, "not a 64-bit little-endian shared object");
    if (header->e_machine != wanted) {
        int known = header->e_machine == EM_X86_64 || header->e_machine == EM_AARCH64;
        const char *made_for =
            known ? dlcrt_arch_name(header->e_machine == EM_AARCH64) : "another processor";
        return dlcrt_fail(DLC_NO_DEVICE, "%s: made for %s, this machine is %s", f->name, made_for,
                          dlcrt_arch_name(dlcrt_cpu_arch()));
    }
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 ||
        header->e_phnum > MAX_SEGMENTS || header->e_phoff > f->elf_bytes ||
        f->elf_bytes - header->e_phoff < header->e_phnum * sizeof(Elf64_Phdr))
        return damaged(f, "its table of segments lies outside the file");
    return DLC_OK;
}

/* The range of addresses all segments take; each lies in the file and in ascending order. */
static dlc_status check_segments(const file *f, size_t page, size_t *span)
{
    size_t end = 0;
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Elf64_Phdr *s = &f->segments[i];
        if (s->p_type != PT_LOAD)
            continue;
        if (s->p_offset > f->elf_bytes || s->p_filesz > f->elf_bytes - s->p_offset ||
            s->p_filesz > s->p_memsz || s->p_vaddr < end || s->p_vaddr > max_span ||
            s->p_memsz > max_span || (s->p_vaddr - s->p_offset) % page != 0 ||
            ((s->p_flags & PF_W) && (s->p_flags & PF_X)))
            return damaged(f, "a segment lies outside the file or over another one");
        end = (s->p_vaddr + s->p_memsz + page - 1) / page * page;
    }
    *span = end;
    return end ? DLC_OK : damaged(f, "no segment to load");
}

static int protection(uint32_t flags)
{
    return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
           (flags & PF_X ? PROT_EXEC : 0);
}

static dlc_status map_segment(const file *f, const Elf64_Phdr *s, size_t page, unsigned char *base)
{
    size_t slack = s->p_vaddr % page;
    unsigned char *at = base + (s->p_vaddr - slack);
    size_t file_end = slack + s->p_filesz, end = slack + s->p_memsz;
    size_t mapped = s->p_filesz ? (file_end + page - 1) / page * page : 0;
    if (mapped && mmap(at, mapped, protection(s->p_flags), MAP_PRIVATE | MAP_FIXED, f->fd,
                       (off_t)(s->p_offset - slack)) == MAP_FAILED)
        return dlcrt_fail(DLC_IO, "%s: a segment could not be mapped: %s", f->name,
                          strerror(errno));
    if (end <= file_end)
        return DLC_OK;
    /* Past the file's bytes come zeros: the rest of the last page, then fresh pages. */
    if (!(s->p_flags & PF_W))
        return damaged(f, "a read-only segment is larger than its bytes");
    memset(at + file_end, 0, mapped > file_end ? (mapped < end ? mapped : end) - file_end : 0);
    if (end > mapped &&
        mmap(at + mapped, (end - mapped + page - 1) / page * page, protection(s->p_flags),
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return dlcrt_no_memory(end - mapped);
    return DLC_OK;
}

/* Whether [at, at + n) lies within one segment that has these permissions. */
static int is_within(const file *f, uint64_t at, uint64_t n, uint32_t flags)
{
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Elf64_Phdr *s = &f->segments[i];
        if (s->p_type == PT_LOAD && (s->p_flags & flags) == flags && at >= s->p_vaddr &&
            at - s->p_vaddr <= s->p_memsz && n <= s->p_memsz - (at - s->p_vaddr))
            return 1;
    }
    return 0;
}

static dlc_status relocate(const file *f, unsigned char *base, size_t span, uint64_t table,
                           uint64_t size_bytes)
{
    const uint32_t relative =
        dlcrt_cpu_arch() == DLC_ARCH_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
    if (!is_within(f, table, size_bytes, PF_R) || table % 8)
        return damaged(f, "its relocations lie outside its segments");
    const Elf64_Rela *rela = (const void *)(base + table);
    for (uint64_t i = 0; i < size_bytes / sizeof *rela; i++) {
        if (ELF64_R_TYPE(rela[i].r_info) != relative)
            return dlcrt_fail(
                DLC_INVALID, "%s: relocation %llu has type %llu, this runtime knows %u", f->name,
                (unsigned long long)i, (unsigned long long)ELF64_R_TYPE(rela[i].r_info), relative);
        if (!is_within(f, rela[i].r_offset, 8, PF_W) || (uint64_t)rela[i].r_addend > span)
            return damaged(f, "a relocation lies outside the data");
        uint64_t address = (uint64_t)(uintptr_t)base + (uint64_t)rela[i].r_addend;
        memcpy(base + rela[i].r_offset, &address, sizeof address);
    }
    return DLC_OK;
}

static dlc_status apply_dynamic(const file *f, unsigned char *base, size_t span,
                                const Elf64_Phdr *dynamic)
{
    uint64_t table = 0, size_bytes = 0;
    if (!is_within(f, dynamic->p_vaddr, dynamic->p_memsz, PF_R) || dynamic->p_vaddr % 8)
        return damaged(f, "its dynamic section lies outside its segments");
    const Elf64_Dyn *entry = (const void *)(base + dynamic->p_vaddr);
    for (uint64_t i = 0; i < dynamic->p_memsz / sizeof *entry && entry[i].d_tag != DT_NULL; i++) {
        switch (entry[i].d_tag) {
        case DT_RELA:
            table = entry[i].d_un.d_ptr;
            break;
        case DT_RELASZ:
            size_bytes = entry[i].d_un.d_val;
            break;
        case DT_RELR:
        case DT_JMPREL:
        case DT_REL:
        case DT_TEXTREL:
        case DT_NEEDED:
            return damaged(f, "it needs a dynamic linker: not as dlc writes it");
        default:
            break;
        }
    }
    return size_bytes ? relocate(f, base, span, table, size_bytes) : DLC_OK;
}

static dlc_status map_all(const file *f, const Elf64_Ehdr *header, unsigned char *base,
                          dlcrt_image *image)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Elf64_Phdr *s = &f->segments[i];
        if (s->p_type == PT_LOAD)
            DLC_TRY(map_segment(f, s, page, base));
        if (s->p_type == PT_LOAD && (s->p_flags & PF_X)) {
            image->code_begin = s->p_vaddr;
            image->code_end = s->p_vaddr + s->p_memsz;
        }
    }
    for (uint32_t i = 0; i < f->nsegments; i++)
        if (f->segments[i].p_type == PT_DYNAMIC)
            DLC_TRY(apply_dynamic(f, base, image->size_bytes, &f->segments[i]));
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Elf64_Phdr *s = &f->segments[i];
        size_t begin = s->p_vaddr / page * page, end = (s->p_vaddr + s->p_memsz) / page * page;
        if (s->p_type == PT_GNU_RELRO && end > begin && end <= image->size_bytes &&
            mprotect(base + begin, end - begin, PROT_READ))
            return dlcrt_fail(DLC_IO, "%s: its data could not be protected: %s", f->name,
                              strerror(errno));
    }
    if (!is_within(f, header->e_entry, sizeof(dlc_executable), PF_R) || header->e_entry % 8)
        return damaged(f, "its entry is no executable of dlc");
    image->entry = (const void *)(base + header->e_entry);
    return DLC_OK;
}

static dlc_status load(file *f, dlcrt_image *image)
{
    Elf64_Ehdr header;
    size_t span = 0;
    DLC_TRY(check_trailer(f));
    memcpy(&header, f->bytes, sizeof header);
    DLC_TRY(check_header(f, &header));
    f->nsegments = header.e_phnum;
    memcpy(f->segments, f->bytes + header.e_phoff, f->nsegments * sizeof *f->segments);
    DLC_TRY(check_segments(f, (size_t)sysconf(_SC_PAGESIZE), &span));
    void *base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return dlcrt_no_memory(span);
    *image = (dlcrt_image){.base = base, .size_bytes = span};
    dlc_status status = map_all(f, &header, base, image);
    if (status)
        dlcrt_image_unload(image);
    return status;
}

dlc_status dlcrt_image_load(int fd, const char *name, dlcrt_image *image)
{
    struct stat info;
    if (fstat(fd, &info))
        return dlcrt_fail(DLC_IO, "%s: %s", name, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return dlcrt_fail(DLC_IO, "%s: not a regular file", name);
    if (info.st_size == 0)
        return dlcrt_fail(DLC_INVALID, "%s: empty", name);
    file f = {.name = name, .fd = fd, .size_bytes = (size_t)info.st_size};
    void *bytes = mmap(NULL, f.size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return dlcrt_fail(DLC_IO, "%s: could not be mapped: %s", name, strerror(errno));
    f.bytes = bytes;
    dlc_status status = load(&f, image);
    munmap(bytes, f.size_bytes);
    return status;
}

void dlcrt_image_unload(dlcrt_image *image)
{
    if (image->base)
        munmap(image->base, image->size_bytes);
    image->base = NULL;
}

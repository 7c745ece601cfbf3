/*
 * An executable's ELF file to memory, without dlopen: a .so of dlc needs no other library, defines
 * all it uses and holds only RELATIVE relocations, so mapping its segments and adding the base to a
 * few words is the whole of loading. In return no code of the file runs while it loads, a file
 * replaced on disk is never mistaken for the one loaded before, no process-wide lock or name is
 * involved, and statically linked programs can load models too.
 *
 * The entry point is the seal (abi.h), which names all that is loaded. Order: headers, each number
 * checked; the seal; the checksums of its parts (so damage is named as such), but for constants and
 * binaries, which are checked when something reads them (damage.c); only then segments are mapped.
 * What other programs rewrite (symbols, sections, the dynamic section) is not read.
 */
#include "runtime/internal.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dlc/checksum.h"

static const size_t max_span = (size_t)1 << 46;
static const size_t max_padding = 1 << 16; /* of a segment: zeros up to a page */

typedef struct {
    const char *name; /* for messages */
    int fd;
    const unsigned char *bytes; /* the whole file */
    size_t size_bytes;
    Elf64_Phdr segments[DLCRT_MOST_SEGMENTS];
    uint32_t nsegments;
    dlc_seal seal;
} file;

static dlc_status damaged(const file *f, const char *what)
{
    return dlcrt_fail(DLC_INVALID, "%s: %s", f->name, what);
}

static dlc_status not_ours(const file *f)
{
    return damaged(f, "not an executable of dlc: damaged, or made by another program");
}

/* Its tables lie in the file: the last thing in it is the table of sections. */
static dlc_status check_header(const file *f, const Elf64_Ehdr *header)
{
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_type != ET_DYN)
        return damaged(f, "not a 64-bit little-endian shared object");
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 ||
        header->e_phnum > DLCRT_MOST_SEGMENTS || header->e_phoff > f->size_bytes ||
        f->size_bytes - header->e_phoff < header->e_phnum * sizeof(Elf64_Phdr))
        return damaged(f, "its table of segments lies outside the file");
    if (header->e_shnum && (header->e_shoff > f->size_bytes ||
                            f->size_bytes - header->e_shoff < header->e_shnum * sizeof(Elf64_Shdr)))
        return damaged(f, "cut off: its table of sections lies outside the file");
    return DLC_OK;
}

/* [address, address + n) of the image in the file; NULL: in no segment with these permissions. */
static const unsigned char *find(const file *f, uint64_t address, uint64_t n, uint32_t flags)
{
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Elf64_Phdr *s = &f->segments[i];
        if (s->p_type == PT_LOAD && (s->p_flags & flags) == flags && address >= s->p_vaddr &&
            address - s->p_vaddr <= s->p_filesz && n <= s->p_filesz - (address - s->p_vaddr))
            return f->bytes + s->p_offset + (address - s->p_vaddr);
    }
    return NULL;
}

static dlc_status check_machine(const file *f, const Elf64_Ehdr *header)
{
    static const uint16_t machines[] = {
        [DLC_ARCH_X86_64] = EM_X86_64, [DLC_ARCH_AARCH64] = EM_AARCH64};
    if (f->seal.arch >= sizeof machines / sizeof *machines ||
        machines[f->seal.arch] != header->e_machine)
        return damaged(f, "damaged: its processor is not the one it was written for");
    if (f->seal.arch != (uint32_t)dlcrt_cpu_arch())
        return dlcrt_fail(DLC_NO_DEVICE, "%s: made for %s, this machine is %s", f->name,
                          dlcrt_arch_name(f->seal.arch), dlcrt_arch_name(dlcrt_cpu_arch()));
    return DLC_OK;
}

/* What each part must be allowed; no part may be written and run. */
static const uint32_t part_flags[DLC_SEAL_COUNT] = {
    [DLC_SEAL_RELOCATIONS] = PF_R, [DLC_SEAL_TABLES] = PF_R,    [DLC_SEAL_CODE] = PF_R | PF_X,
    [DLC_SEAL_DATA] = PF_R | PF_W, [DLC_SEAL_CHECKSUMS] = PF_R, [DLC_SEAL_CONSTANTS] = PF_R,
    [DLC_SEAL_BINARIES] = PF_R,
};

static int is_checked_later(uint32_t part)
{
    return part == DLC_SEAL_CONSTANTS || part == DLC_SEAL_BINARIES;
}

static dlc_status check_parts(file *f)
{
    for (uint32_t i = 0; i < DLC_SEAL_COUNT; i++) {
        uint64_t n = f->seal.parts[i].size_bytes;
        const unsigned char *bytes = find(f, f->seal.parts[i].address, n, part_flags[i]);
        if (!n) {
            f->seal.parts[i].address = 0; /* nobody has looked at it */
            continue;
        }
        if (!bytes)
            return damaged(f, "damaged: a sealed part lies outside its segments");
        if (!is_checked_later(i) && dlc_checksum(bytes, n) != f->seal.parts[i].checksum)
            return damaged(f, "damaged: its checksum does not match");
    }
    uint64_t nchunks = (f->seal.parts[DLC_SEAL_CONSTANTS].size_bytes + DLC_SEAL_CHUNK - 1) / DLC_SEAL_CHUNK;
    if (f->seal.parts[DLC_SEAL_CHECKSUMS].address % 8 ||
        f->seal.parts[DLC_SEAL_CHECKSUMS].size_bytes / sizeof(uint64_t) < nchunks)
        return damaged(f, "damaged: its constants have too few checksums");
    return DLC_OK;
}

static dlc_status check_seal(file *f, const Elf64_Ehdr *header)
{
    const size_t head = offsetof(dlc_seal, abi_version);
    const unsigned char *bytes = find(f, header->e_entry, sizeof f->seal, PF_R);
    if (!bytes)
        return not_ours(f);
    memcpy(&f->seal, bytes, sizeof f->seal);
    if (memcmp(f->seal.magic, DLC_SEAL_MAGIC, sizeof f->seal.magic) != 0)
        return memcmp(f->seal.magic, DLC_EXECUTABLE_MAGIC, sizeof f->seal.magic)
                   ? not_ours(f)
                   : damaged(f, "of an older format version; compile the model again");
    if (f->seal.abi_version != DLC_ABI_VERSION)
        return dlcrt_fail(DLC_INVALID,
                          "%s: format version %u, this runtime reads %u; compile the model again",
                          f->name, f->seal.abi_version, DLC_ABI_VERSION);
    if (dlc_checksum(bytes + head, sizeof f->seal - head) != f->seal.checksum)
        return damaged(f, "damaged: the checksum of its seal does not match");
    DLC_TRY(check_machine(f, header));
    return check_parts(f);
}

/* The range of addresses all segments take; each lies in the file and in ascending order. */
static dlc_status check_segments(const file *f, size_t page, size_t *span)
{
    size_t end = 0;
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Elf64_Phdr *s = &f->segments[i];
        if (s->p_type != PT_LOAD)
            continue;
        if (s->p_offset > f->size_bytes || s->p_filesz > f->size_bytes - s->p_offset ||
            s->p_filesz > s->p_memsz || s->p_vaddr < end || s->p_vaddr > max_span || s->p_memsz > max_span ||
            (s->p_vaddr - s->p_offset) % page != 0 || ((s->p_flags & PF_W) && (s->p_flags & PF_X)))
            return damaged(
                f, "cut off or damaged: a segment lies outside the file or over another one");
        if (s->p_memsz - s->p_filesz > max_padding) /* variables of a program */
            return not_ours(f);
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
    if (s->p_align == DLC_HUGE_PAGE)
        (void)!madvise(at, mapped, MADV_HUGEPAGE); /* weights: a file that is read now comes in such pages */
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

static dlc_status relocate(const file *f, unsigned char *base, size_t span)
{
    const uint32_t relative =
        dlcrt_cpu_arch() == DLC_ARCH_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
    uint64_t table = f->seal.parts[DLC_SEAL_RELOCATIONS].address;
    uint64_t size_bytes = f->seal.parts[DLC_SEAL_RELOCATIONS].size_bytes;
    if (table % 8)
        return damaged(f, "its relocations are not aligned");
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

static dlcrt_sealed sealed(const file *f, dlc_seal_part part)
{
    return (dlcrt_sealed){f->seal.parts[part].address, f->seal.parts[part].size_bytes,
                          f->seal.parts[part].checksum};
}

static dlc_status map_all(const file *f, unsigned char *base, dlcrt_image *image)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Elf64_Phdr *s = &f->segments[i];
        if (s->p_type != PT_LOAD)
            continue;
        DLC_TRY(map_segment(f, s, page, base));
        if (s->p_flags & PF_R) {
            image->readable[image->nreadable].begin = s->p_vaddr;
            image->readable[image->nreadable++].end = s->p_vaddr + s->p_memsz;
        }
    }
    DLC_TRY(relocate(f, base, image->size_bytes));
    for (uint32_t i = 0; i < f->nsegments; i++) {
        const Elf64_Phdr *s = &f->segments[i];
        size_t begin = s->p_vaddr / page * page, end = (s->p_vaddr + s->p_memsz) / page * page;
        if (s->p_type == PT_GNU_RELRO && end > begin && end <= image->size_bytes &&
            mprotect(base + begin, end - begin, PROT_READ))
            return dlcrt_fail(DLC_IO, "%s: its data could not be protected: %s", f->name,
                              strerror(errno));
    }
    uint64_t entry = f->seal.executable;
    if (!is_within(f, entry, sizeof(dlc_executable), PF_R) || entry % 8)
        return damaged(f, "its seal names no executable of dlc");
    image->entry = (const void *)(base + entry);
    image->code_begin = f->seal.parts[DLC_SEAL_CODE].address;
    image->code_end = image->code_begin + f->seal.parts[DLC_SEAL_CODE].size_bytes;
    image->sums = (const void *)(base + f->seal.parts[DLC_SEAL_CHECKSUMS].address);
    image->checksum = f->seal.checksum;
    image->constants = sealed(f, DLC_SEAL_CONSTANTS);
    image->binaries = sealed(f, DLC_SEAL_BINARIES);
    return DLC_OK;
}

/* Room for the image, at a multiple of the largest alignment; MAP_FAILED: there is none. */
static unsigned char *reserve(const file *f, size_t page, size_t span)
{
    size_t align = page;
    for (uint32_t i = 0; i < f->nsegments; i++)
        if (f->segments[i].p_type == PT_LOAD && f->segments[i].p_align == DLC_HUGE_PAGE)
            align = DLC_HUGE_PAGE;
    unsigned char *room = mmap(NULL, span + align - page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return room;
    size_t before = -(uintptr_t)room % align, behind = align - page - before;
    if (before)
        munmap(room, before);
    if (behind)
        munmap(room + before + span, behind);
    return room + before;
}

static dlc_status load(file *f, dlcrt_image *image)
{
    Elf64_Ehdr header;
    size_t span = 0;
    if (f->size_bytes < 4 || memcmp(f->bytes, ELFMAG, SELFMAG) != 0)
        return damaged(f, "not an executable made by dlc");
    if (f->size_bytes < sizeof header)
        return damaged(f, "cut off: too short for an executable");
    memcpy(&header, f->bytes, sizeof header);
    DLC_TRY(check_header(f, &header));
    f->nsegments = header.e_phnum;
    memcpy(f->segments, f->bytes + header.e_phoff, f->nsegments * sizeof *f->segments);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    DLC_TRY(check_segments(f, page, &span));
    DLC_TRY(check_seal(f, &header));
    unsigned char *base = reserve(f, page, span);
    if (base == MAP_FAILED)
        return dlcrt_no_memory(span);
    *image = (dlcrt_image){.base = base, .size_bytes = span};
    dlc_status status = map_all(f, base, image);
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
    (void)!madvise(bytes, f.size_bytes, MADV_RANDOM); /* what is read here is small: the system would read megabytes ahead */
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

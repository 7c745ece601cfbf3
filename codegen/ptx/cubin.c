/*
 * What kernels cost, read from their cubin: an ELF file whose section .nv.info lists attributes as (format, number, size,
 * payload). Registers and stack frame are attributes of a function; its static shared memory is the size of a section.
 */
#include <elf.h>
#include <string.h>

#include "codegen/ptx/object.h"

enum { FORMAT_WITH_PAYLOAD = 4, ATTRIBUTE_FRAME = 0x11, ATTRIBUTE_REGISTERS = 0x2f };

static int is_in(uint64_t first, uint64_t count, uint64_t size_bytes)
{
    return first <= size_bytes && count <= size_bytes - first;
}

/* A cubin that is looked at for one function. */
typedef struct {
    const unsigned char *bytes;
    size_t size_bytes;
    const char *function;
    uint32_t symbol; /* the function's number; 0: not found */
    dlc_plan_binary *binary;
} reader;

/* Payload: number of the function's symbol, value. */
static void read_info(const reader *r, const unsigned char *at, uint64_t size_bytes)
{
    const unsigned char *end = at + size_bytes;
    while (end - at >= 4) {
        uint16_t n;
        uint32_t payload[2];
        unsigned format = at[0], number = at[1];
        memcpy(&n, at + 2, sizeof n);
        at += 4;
        if (format != FORMAT_WITH_PAYLOAD)
            continue; /* the size field is the value */
        if (n > end - at)
            return;
        memcpy(payload, at, n >= sizeof payload ? sizeof payload : 0);
        if (n >= sizeof payload && payload[0] == r->symbol && number == ATTRIBUTE_REGISTERS)
            r->binary->registers = payload[1];
        if (n >= sizeof payload && payload[0] == r->symbol && number == ATTRIBUTE_FRAME)
            r->binary->frame_bytes = payload[1];
        at += n;
    }
}

static int is_text(const reader *r, const Elf64_Shdr *section)
{
    return is_in(section->sh_offset, section->sh_size, r->size_bytes) && section->sh_size &&
           !r->bytes[section->sh_offset + section->sh_size - 1];
}

static Elf64_Shdr section_at(const reader *r, const Elf64_Ehdr *header, uint32_t i)
{
    Elf64_Shdr section;
    memcpy(&section, r->bytes + header->e_shoff + i * sizeof section, sizeof section);
    return section;
}

static void find_symbol(reader *r, const Elf64_Ehdr *header, const Elf64_Shdr *symbols)
{
    if (!is_in(symbols->sh_offset, symbols->sh_size, r->size_bytes) || symbols->sh_link >= header->e_shnum)
        return;
    Elf64_Shdr names = section_at(r, header, symbols->sh_link);
    Elf64_Sym symbol;
    for (uint64_t i = 1; is_text(r, &names) && i < symbols->sh_size / sizeof symbol; i++) {
        memcpy(&symbol, r->bytes + symbols->sh_offset + i * sizeof symbol, sizeof symbol);
        if (symbol.st_name < names.sh_size &&
            !strcmp((const char *)r->bytes + names.sh_offset + symbol.st_name, r->function) &&
            ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
            r->symbol = (uint32_t)i;
    }
}

static void read_section(const reader *r, const Elf64_Shdr *section, const char *name)
{
    static const char shared[] = ".nv.shared.";
    if (!strncmp(name, shared, sizeof shared - 1) && !strcmp(name + sizeof shared - 1, r->function))
        r->binary->shared_bytes = (uint32_t)section->sh_size;
    else if (!strcmp(name, ".nv.info") && is_in(section->sh_offset, section->sh_size, r->size_bytes))
        read_info(r, r->bytes + section->sh_offset, section->sh_size);
}

static const struct {
    uint32_t arch, warps, blocks, shared_bytes, reserved_bytes;
} limits[] = {
#define DLC_ARCH(arch, warps, blocks, shared, reserved) {arch, warps, blocks, (shared)*1024u, reserved},
#include "codegen/ptx/arch.def"
#undef DLC_ARCH
};
enum { NLIMITS = sizeof limits / sizeof limits[0] };

static size_t find_limits(uint32_t arch)
{
    size_t i = 0;
    while (i < NLIMITS && limits[i].arch != arch)
        i++;
    return i;
}

/* From 9.0 on the section also counts what the system takes. */
static uint32_t own_shared_bytes(uint32_t section_bytes, uint32_t arch)
{
    size_t i = find_limits(arch);
    uint32_t counted_bytes = arch >= 90 && i < NLIMITS ? limits[i].reserved_bytes : 0;
    return section_bytes > counted_bytes ? section_bytes - counted_bytes : 0;
}

int dlc_cubin_report(const void *bytes, size_t size_bytes, const char *function, dlc_plan_binary *binary)
{
    Elf64_Ehdr header;
    reader r = {bytes, size_bytes, function, 0, binary};
    binary->registers = binary->frame_bytes = binary->shared_bytes = 0;
    if (size_bytes < sizeof header)
        return 0;
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
        !is_in(header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), size_bytes) ||
        header.e_shstrndx >= header.e_shnum)
        return 0;
    Elf64_Shdr names = section_at(&r, &header, header.e_shstrndx), section;
    for (uint32_t i = 0; i < header.e_shnum; i++)
        if ((section = section_at(&r, &header, i)).sh_type == SHT_SYMTAB)
            find_symbol(&r, &header, &section);
    for (uint32_t i = 0; is_text(&r, &names) && r.symbol && i < header.e_shnum; i++) {
        section = section_at(&r, &header, i);
        if (section.sh_name < names.sh_size)
            read_section(&r, &section, (const char *)r.bytes + names.sh_offset + section.sh_name);
    }
    binary->shared_bytes = own_shared_bytes(binary->shared_bytes, binary->arch);
    return binary->registers > 0;
}

static uint32_t least(uint32_t a, uint64_t b)
{
    return b < a ? (uint32_t)b : a;
}

/* Registers are given to warps in pieces of 256; a multiprocessor has four parts with 16 Ki each. */
uint32_t dlc_cuda_occupancy(uint32_t arch, uint32_t threads, uint32_t registers, uint64_t shared_bytes)
{
    uint32_t warps = (threads + 31) / 32, per_warp = (registers * 32 + 255) / 256 * 256;
    size_t i = find_limits(arch);
    if (i == NLIMITS || !warps || !per_warp)
        return 0;
    uint32_t blocks = least(limits[i].blocks, limits[i].warps / warps);
    blocks = least(blocks, 16384 / per_warp * 4 / warps);
    uint64_t shared = (shared_bytes + limits[i].reserved_bytes + 127) / 128 * 128;
    return shared ? least(blocks, limits[i].shared_bytes / shared) : blocks;
}

/*
 * What a kernel costs, read from its cubin: an ELF file whose section .nv.info lists attributes as (format, number, size,
 * payload). Registers and stack frame are attributes of the function; its static shared memory is the size of a section.
 */
#include <elf.h>
#include <string.h>

#include "codegen/ptx/object.h"

enum { FORMAT_WITH_PAYLOAD = 4, ATTRIBUTE_FRAME = 0x11, ATTRIBUTE_REGISTERS = 0x2f };

static int is_in(uint64_t first, uint64_t count, uint64_t size_bytes)
{
    return first <= size_bytes && count <= size_bytes - first;
}

/* Payload: number of the function's symbol, value. The functions of one file are the kernel and what it calls. */
static void read_info(const unsigned char *at, uint64_t size_bytes, dlc_plan_binary *binary)
{
    const unsigned char *end = at + size_bytes;
    while (end - at >= 4) {
        uint16_t n;
        uint32_t value;
        unsigned format = at[0], number = at[1];
        memcpy(&n, at + 2, sizeof n);
        at += 4;
        if (format != FORMAT_WITH_PAYLOAD)
            continue; /* the size field is the value */
        if (n > end - at)
            return;
        if (n >= 8) {
            memcpy(&value, at + 4, sizeof value);
            if (number == ATTRIBUTE_REGISTERS && value > binary->registers)
                binary->registers = value;
            if (number == ATTRIBUTE_FRAME && value > binary->frame_bytes)
                binary->frame_bytes = value;
        }
        at += n;
    }
}

static void read_section(const unsigned char *bytes, size_t size_bytes, const Elf64_Shdr *section, const char *name,
                         dlc_plan_binary *binary)
{
    if (!strcmp(name, ".nv.shared." DLC_CUDA_FUNCTION))
        binary->shared_bytes = (uint32_t)section->sh_size;
    else if (!strcmp(name, ".nv.info") && is_in(section->sh_offset, section->sh_size, size_bytes))
        read_info(bytes + section->sh_offset, section->sh_size, binary);
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

int dlc_cubin_report(const void *bytes, size_t size_bytes, dlc_plan_binary *binary)
{
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    const unsigned char *base = bytes;
    binary->registers = binary->frame_bytes = binary->shared_bytes = 0;
    if (size_bytes < sizeof header)
        return 0;
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof section ||
        !is_in(header.e_shoff, (uint64_t)header.e_shnum * sizeof section, size_bytes) || header.e_shstrndx >= header.e_shnum)
        return 0;
    memcpy(&names, base + header.e_shoff + header.e_shstrndx * sizeof section, sizeof names);
    if (!is_in(names.sh_offset, names.sh_size, size_bytes) || !names.sh_size || base[names.sh_offset + names.sh_size - 1])
        return 0;
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        memcpy(&section, base + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_name < names.sh_size)
            read_section(base, size_bytes, &section, (const char *)base + names.sh_offset + section.sh_name, binary);
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

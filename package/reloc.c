/* Relocations: one row of relocs.def each, one function per way of writing an address. */
#include <inttypes.h>
#include <string.h>

#include "package/linkage.h"

typedef enum { HOW_WORD, HOW_NEAR, HOW_PAGE, HOW_LOW, HOW_BRANCH } how;

static const struct {
    dlc_link_machine machine;
    uint32_t type;
    how how;
    uint32_t argument;
} relocs[] = {
#define DLC_RELOC(machine, type, how, argument) {DLC_LINK_##machine, type, HOW_##how, argument},
#include "package/relocs.def"
#undef DLC_RELOC
};

int dlc_reloc_find(dlc_link_machine machine, uint32_t type)
{
    for (uint32_t i = 0; i < sizeof relocs / sizeof *relocs; i++)
        if (relocs[i].machine == machine && relocs[i].type == type)
            return (int)i;
    return -1;
}

uint32_t dlc_reloc_type(uint32_t row)
{
    return relocs[row].type;
}

int dlc_reloc_is_word(uint32_t row)
{
    return relocs[row].how == HOW_WORD;
}

uint32_t dlc_reloc_bytes(uint32_t row)
{
    return relocs[row].how == HOW_WORD ? 8 : 4;
}

static int fits(int64_t value, int nbits)
{
    int64_t limit = INT64_C(1) << (nbits - 1);
    return value >= -limit && value < limit;
}

/* Bits [at, at + nbits) of the instruction become the low bits of value. */
static uint32_t insert(uint32_t instruction, uint64_t value, int at, int nbits)
{
    uint32_t mask = ((UINT32_C(1) << nbits) - 1) << at;
    return (instruction & ~mask) | (((uint32_t)value << at) & mask);
}

static const uint64_t page_mask = 0xfff;

dlc_status dlc_reloc_apply(const dlc_linkage *linkage, uint32_t row, unsigned char *bytes,
                           uint64_t place, uint64_t target)
{
    uint32_t word, argument = relocs[row].argument;
    int64_t distance = (int64_t)(target - place), pages;
    int is_good = 1;
    memcpy(&word, bytes, sizeof word);
    switch (relocs[row].how) {
    case HOW_WORD:
        memcpy(bytes, &target, sizeof target);
        return DLC_OK;
    case HOW_NEAR:
        is_good = fits(distance, 32);
        word = (uint32_t)distance;
        break;
    case HOW_PAGE:
        pages = ((int64_t)(target & ~page_mask) - (int64_t)(place & ~page_mask)) / 4096;
        is_good = fits(pages, 21);
        word = insert(insert(word, (uint64_t)pages, 29, 2), (uint64_t)pages >> 2, 5, 19);
        break;
    case HOW_LOW:
        is_good = !(target & ((1u << argument) - 1));
        word = insert(word, (target & page_mask) >> argument, 10, 12 - (int)argument);
        break;
    case HOW_BRANCH:
        is_good = fits(distance, 28) && distance % 4 == 0;
        word = insert(word, (uint64_t)distance >> 2, 0, 26);
        break;
    }
    memcpy(bytes, &word, sizeof word);
    return is_good ? DLC_OK
                   : dlc_linkage_fail(linkage,
                                      "relocation type %" PRIu32 " cannot reach %" PRId64
                                      " bytes: the code is too large",
                                      relocs[row].type, distance);
}

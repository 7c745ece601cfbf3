/*
 * The virtual GPU's core: memory with a record of who touched it, code decoded for warps of 32
 * lanes in lock step, launches.
 *
 * Every access is checked: inside an allocation, aligned, initialised, and not in a race (two
 * threads meet at an element, one writes, and no barrier lies between). Whatever real devices leave
 * undefined is an error as well: shuffles and barriers of lanes that are not there, non-coherent
 * loads of what the kernel writes, asynchronous copies that nobody waited for.
 */
#ifndef DLC_VGPU_MACHINE_H
#define DLC_VGPU_MACHINE_H

#include "vgpu/module.h"

enum { VGPU_LANES = 32, VGPU_WARPS = 32, VGPU_NBARRIERS = 16, VGPU_SECTOR = 32 };
enum { VGPU_PAGE = 4096, VGPU_WORDS = VGPU_PAGE / 4, VGPU_PAGE_SECTORS = VGPU_PAGE / VGPU_SECTOR };

/* --- memory.c --- */

/* Who wrote and who read an element last: a block, its warp, lane and time (stamp_of in memory.c);
 * 0: nobody. */
typedef struct {
    uint64_t writer, reader, other; /* other: the last reader of another warp than the last */
    uint8_t marks;
} vgpu_record;

/* Records of a page's words, or of its bytes once somebody accesses less than a word; valid for one
 * launch. */
typedef struct vgpu_page {
    struct vgpu_page *next, **slot;
    uint64_t read[2], written[2]; /* sectors, bit by bit */
    int is_fine;
    vgpu_record records[];
} vgpu_page;

/* An allocation, or what else may be accessed. */
typedef struct {
    uint64_t base;
    size_t size_bytes;
    uint8_t *bytes, *written; /* written: byte by byte, or NULL: all is initialised */
    vgpu_page **pages; /* by number; NULL: no race can be, or shared memory of a fixed block */
    int is_writable;
} vgpu_region;

/* Regions by address. A zero value is empty. */
typedef struct {
    vgpu_region *regions;
    uint32_t n, capacity;
    vgpu_page *used;
    vgpu_page *spare[2]; /* of words, of bytes */
} vgpu_memory;

/* bytes and written stay the caller's. */
void vgpu_memory_add(vgpu_memory *memory, const vgpu_region *region);
void vgpu_memory_remove(vgpu_memory *memory, uint64_t base);
vgpu_region *vgpu_memory_find(const vgpu_memory *memory, uint64_t address);
/* Nobody has touched anything; adds up how many bytes were read and written (by sectors) before,
 * unless NULL. */
void vgpu_memory_forget(vgpu_memory *memory, uint64_t *read_bytes, uint64_t *written_bytes);
void vgpu_memory_deinit(vgpu_memory *memory);

/* --- decode.c --- */
typedef enum {
    VGPU_COMPUTE,
    VGPU_LOAD,
    VGPU_STORE,
    VGPU_BRANCH,
    VGPU_SHUFFLE,
    VGPU_BARRIER,
    VGPU_END,
    VGPU_ATOMIC,
    VGPU_FENCE,
    VGPU_ASYNC,
    VGPU_WARPGROUP
} vgpu_kind;

/* Classes of instructions, for counts and times. */
typedef enum {
#define VGPU_CLASS(id, text, slots, wide_slots, latency) VGPU_##id,
#include "vgpu/classes.def"
#undef VGPU_CLASS
    VGPU_CLASS_COUNT
} vgpu_class;
typedef struct {
    const char *text;
    uint8_t slots, wide_slots, latency;
} vgpu_class_info;
extern const vgpu_class_info vgpu_classes[VGPU_CLASS_COUNT];

typedef struct vgpu_insn vgpu_insn;
/* For the lanes of a warp whose registers these are; returns what is undefined, or NULL. */
typedef const char *(*vgpu_compute)(const vgpu_insn *insn, uint8_t *regs, uint32_t lanes);

/* A row of 32 lanes in a warp's registers; width 4 or 8 bytes a lane, 0: a predicate, one word of
 * bits. */
typedef struct {
    uint32_t at;
    uint8_t width;
} vgpu_row;

struct vgpu_insn {
    const ptx_insn *ptx;
    vgpu_compute compute;
    vgpu_row dst[PTX_MAX_ELEMS], src[PTX_MAX_SOURCES], elems[PTX_MAX_ELEMS], guard, valid; /* guard.at 0: none */
    uint32_t target, products; /* products: of matrices, of two elements each, as so many of f16 */
    uint8_t kind, counts_as, slots;
    uint8_t is_watched; /* touches a register that a product of a group of warps adds to */
    vgpu_row *sums; /* wgmma */
    uint8_t is_constant; /* st: of one number, whoever stores it */
};

typedef struct {
    uint32_t at;
    uint64_t value;
    uint8_t width;
} vgpu_constant;

typedef struct {
    const ptx_module *module;
    const ptx_function *function;
    vgpu_insn *insns;
    uint32_t ninsns, specials,
        registers_bytes;     /* specials: rows of 4 bytes; registers_bytes: of a warp */
    uint32_t first_constant; /* what lies before is poisoned for every block */
    dlc_vec(vgpu_constant) constants;
    uint8_t *is_sum; /* by register: a product of a group of warps adds to it; NULL: there is none */
    uint32_t live; /* an estimate of the registers that a thread needs */
} vgpu_code;
vgpu_code *vgpu_decode(const ptx_module *module, const ptx_function *function, dlc_arena *arena);

/* lanes.c: the function that computes an instruction for 32 lanes at once, or NULL. */
vgpu_compute vgpu_find_compute(const vgpu_insn *insn);

/* matrix.c: a product of matrices that a warp holds. */
const char *vgpu_multiply(const vgpu_insn *insn, uint8_t *regs, uint32_t lanes);

/* matrix.c: an element of a factor as a number; sum and product as bits of a float, rounded once. */
float vgpu_element(ptx_element type, uint32_t bits);
uint32_t vgpu_add_product(float a, float b, uint32_t sum);

static inline uint64_t vgpu_get(const uint8_t *regs, vgpu_row row, uint32_t lane)
{
    const uint8_t *at = regs + row.at;
    return row.width == 4   ? ((const uint32_t *)(const void *)at)[lane]
           : row.width == 8 ? ((const uint64_t *)(const void *)at)[lane]
                            : *(const uint32_t *)(const void *)at >> lane & 1;
}

static inline void vgpu_set(uint8_t *regs, vgpu_row row, uint32_t lane, uint64_t value)
{
    uint8_t *at = regs + row.at;
    uint32_t *bits = (uint32_t *)(void *)at;
    if (row.width == 4)
        bits[lane] = (uint32_t)value;
    else if (row.width == 8)
        ((uint64_t *)(void *)at)[lane] = value;
    else
        *bits = (*bits & ~(1u << lane)) | (uint32_t)(value & 1) << lane;
}

/* --- launch.c --- */

/* What ended a launch, as a driver numbers it. */
typedef enum {
    VGPU_NO_FAULT = 0,
    VGPU_BAD_ADDRESS = 700,
    VGPU_TIMEOUT = 702,
    VGPU_MISALIGNED = 716,
    VGPU_FAILED = 719
} vgpu_fault;

/* What a launch did, added up over launches. */
typedef struct {
    uint64_t blocks, warps;
    uint64_t instructions[VGPU_CLASS_COUNT], slots; /* by warps; slots: cycles of a scheduler */
    uint64_t lanes;                                 /* active ones of all instructions */
    uint64_t load_requests, load_sectors, load_bytes, store_requests, store_sectors, store_bytes;
    uint64_t shared_requests, shared_wavefronts, shared_ideal;
    uint64_t bytes_read, bytes_written; /* of distinct sectors */
    uint64_t products;                  /* of elements of matrices, as so many of f16 */
    uint64_t sampled;                   /* blocks whose chains follow */
    double chain, loads; /* cycles from the first to the last instruction of a block: chain + loads
                          * cycles that a load takes */
} vgpu_counts;

typedef struct {
    uint32_t grid[3], block[3], shared_bytes;
    const uint8_t *parameters; /* as the entry lays them out */
    vgpu_memory *memory;
    uint64_t limit;      /* instructions of a warp; 0: 2^31 */
    uint32_t stride;     /* run the last block and every stride-th, and count for all; 0: all */
    int is_backwards;    /* the order of blocks and warps */
    vgpu_counts *counts; /* or NULL */
    vgpu_fault fault;    /* out */
} vgpu_launch;
/* DLC_INVALID: the message names the line of the PTX, the block and the thread. */
DLC_NODISCARD dlc_status vgpu_run(const vgpu_code *code, vgpu_launch *launch, dlc_diag *diag);

#endif

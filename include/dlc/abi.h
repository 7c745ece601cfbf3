/*
 * The executable's format: what the compiler writes (codegen/) and the runtime walks. Needs
 * stdint.h alone. Changing anything here, or a number that dtype.def, size.def, cpu.def, device.def or
 * opaque.def gives, raises DLC_ABI_VERSION in the same commit.
 *
 * An executable is one structure, dlc_executable, with pointers to the constants, the CUDA kernels'
 * binaries and one plan per target (CUDA targets whose kernels are scheduled alike share one). All
 * plans have the same inputs and outputs; equal constants lie there once. A plan is flat:
 * little-endian records and offsets relative to its own first byte, so it needs no relocations, and
 * can be checked before use.
 *
 * model.so is an ELF file that needs no other; the structure is its symbols dlc_executable and
 * dlc_executable_NAME, and its entry point is a dlc_seal.
 *
 * In model.o and model.a the structure is the symbol dlc_executable_NAME; everything else is local.
 *
 * Sizes that depend on dimensions are computed by the *size program*: a table of SSA instructions
 * over 64-bit cells. The cell of an instruction is its position; every extent, arena offset, unit
 * count, scratch size and kernel symbol of the plan is the number of such a cell. Instructions lie
 * in phases: phase 0 needs the inputs' dimensions, phase i what steps with .phase = i found out; each
 * time one of them runs, the phase is computed anew, behind those before it that the way there passed by.
 * What no step entered yet has the lowest sizes. A cell remembers whether the arithmetic behind it passed
 * 64 bits; a size that did is refused, so a wrapped product never becomes a buffer that is too small.
 *
 * Elements of strings are numbers of strings, 64 bits each: 0 is the empty one, those of constants are rows of the plan's table,
 * and steps of a run may make more. Equal strings have one number. Whoever gives or takes a tensor has pointers instead.
 */
#ifndef DLC_ABI_H
#define DLC_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLC_ABI_VERSION 13

/*
 * A CPU kernel computes units [begin, end) of its parallel work. buffers in the kernel's order;
 * symbols by kernel symbol; scratch is this thread's, 64-byte aligned, and the same for all its calls of
 * a step; its first 8 bytes are 0 at the first of them. An index out of range stores
 * 1 to *fault (a plain store) and goes on with the else value.
 */
typedef struct dlc_kernel_args {
    void *const *buffers;
    const int64_t *symbols;
    void *scratch;
    int64_t *fault;
} dlc_kernel_args;
typedef void (*dlc_kernel_fn)(const dlc_kernel_args *args, int64_t begin, int64_t end);

/* Cell and string numbers may be absent. */
#define DLC_NO_CELL 0xffffffffu

typedef enum {
#define DLC_SIZE(id, text, nargs) DLC_SIZE_##id,
#include "dlc/size.def"
#undef DLC_SIZE
    DLC_SIZE_COUNT
} dlc_size_op;

typedef struct {
    uint8_t op;    /* dlc_size_op */
    uint8_t dtype; /* dlc_dtype: bool, an integer type, f32 or f64 */
    uint16_t zero;
    uint32_t args[3]; /* cells below this one; SYM: args[0] is a row of the symbol table */
    int64_t imm;      /* CONST: the cell; CAST: the operand's dtype */
} dlc_size_inst;

/* Rows [first, first + count) of a table of the plan; `first` of a dlc_plan's own tables is a byte
 * offset. */
typedef struct {
    uint32_t first, count;
} dlc_plan_rows;

/* A model input or output, or an operand of an opaque step. */
typedef struct {
    uint32_t name;      /* string */
    uint32_t type_text; /* string: f32[batch,3,224,224] */
    uint8_t dtype;      /* dlc_dtype */
    uint8_t rank;
    uint16_t zero;
    uint32_t dims;       /* first of `rank` rows of `cells`: the extents */
    uint32_t size_bytes; /* cell */
} dlc_plan_tensor;

typedef enum { DLC_SYMBOL_INPUT_DIM = 0, DLC_SYMBOL_DATA = 1 } dlc_plan_bind;
typedef struct {
    uint32_t name;         /* string */
    uint32_t bind;         /* dlc_plan_bind */
    uint32_t input, index; /* INPUT_DIM: dimension `index` of input `input` */
    int64_t lo, hi;        /* inclusive; checked when bound */
} dlc_plan_symbol;

typedef struct {
    dlc_plan_rows insts;      /* of the size program, in order, without gaps between phases */
    dlc_plan_rows conditions; /* checked after them */
    uint32_t arena_bytes;     /* cell: what the steps up to the next phase need */
    uint32_t host_bytes;      /* cell: likewise, of host memory; 0 in plans of CPUs */
} dlc_plan_phase;

typedef struct {
    uint32_t holds; /* cell */
    uint32_t text;  /* string: why the run is refused when it is 0 */
} dlc_plan_condition;

/*
 * NONE: an output of an opaque step that nobody reads. In a plan of a device, arena, inputs,
 * outputs and constants are memory of the device, but for steps on the CPU: those see the constants
 * where the file has them, and else HOST alone, filled and emptied by copies.
 */
typedef enum {
    DLC_REF_ARENA = 0,
    DLC_REF_INPUT = 1,
    DLC_REF_OUTPUT = 2,
    DLC_REF_CONSTANT = 3,
    DLC_REF_NONE = 4,
    DLC_REF_HOST = 5
} dlc_plan_place;
/* Where the bytes of a buffer are. */
typedef struct {
    uint32_t place; /* dlc_plan_place */
    uint32_t index; /* ARENA, HOST: cell of the byte offset, a multiple of 64; INPUT, OUTPUT: which;
                       else 0 */
    uint64_t offset; /* CONSTANT: bytes from the start of the constants, a multiple of 64; else 0 */
    uint32_t size_bytes; /* cell: bytes that may be touched */
    uint32_t skip;       /* ARENA, and INPUT and OUTPUT of a CPU's plan: cell of the bytes before them; else DLC_NO_CELL */
} dlc_plan_ref;

typedef enum {
    DLC_DO_LAUNCH = 0, /* kernel `what` over `refs` */
    DLC_DO_OPAQUE =
        1, /* dlc_opaque `what` over `refs`, whose types are `operands`: inputs, then outputs */
    DLC_DO_BIND =
        2, /* symbol `what` := integer element attrs[0] of refs[0], whose type is operands[0] */
    DLC_DO_COPY = 3, /* refs[1] := refs[0] */
    DLC_DO_SET = 4,  /* symbol := cell `units` */
    DLC_DO_IF = 5,   /* unless cell `units` holds, go on behind step `what`, its ELSE or END */
    DLC_DO_ELSE = 6, /* the end of the first branch: go on at step `what`, the END */
    DLC_DO_LOOP = 7, /* unless cell `units` holds, go on behind step `what`, its END */
    DLC_DO_END = 8   /* of a loop: go on at step `what`, its LOOP; of an if: `what` is this step */
} dlc_plan_do;
#define DLC_MOST_REGIONS 64 /* branches and loops in each other */
typedef struct {
    uint8_t kind;   /* dlc_plan_do */
    uint8_t device; /* dlc_device: where it runs; COPY: the plan's */
    uint16_t zero;
    uint32_t name; /* string: origin nodes joined by '+' */
    uint32_t what;
    uint32_t phase;         /* entered by this step (OPAQUE that binds, BIND, SET), or 0 */
    uint32_t symbol;        /* OPAQUE that binds, BIND, SET: row of the symbol table; else DLC_NO_CELL */
    uint32_t units;         /* LAUNCH, SET, IF, LOOP: cell */
    uint32_t scratch_bytes; /* LAUNCH: cell, per thread */
    uint32_t flops, bytes;  /* cells: estimates for profiles */
    uint32_t zero2;
    dlc_plan_rows refs;     /* in the kernel's order of buffers */
    dlc_plan_rows symbols;  /* rows of `cells`, by kernel symbol */
    dlc_plan_rows operands; /* rows of `tensors` */
    dlc_plan_rows attrs;    /* rows of `attrs` */
    int64_t grain;          /* fewest units worth a thread of their own */
} dlc_plan_step;

/*
 * Machine code of CUDA kernels, all of a plan together: a kernel's function has the buffers in the
 * kernel's order, then the kernel's symbols, then long long *fault, long long first, long long
 * units; it computes units [first, units); block i of a launch those from first + i *
 * units_per_block on.
 */
typedef enum { DLC_BINARY_CUBIN = 0, DLC_BINARY_PTX = 1 } dlc_binary_kind;
typedef struct {
    uint32_t kind;       /* dlc_binary_kind */
    uint32_t arch;       /* compute capability: 10 * major + minor */
    uint64_t offset;     /* bytes from the start of the binaries, a multiple of 64 */
    uint64_t size_bytes; /* PTX: with the NUL at its end */
    uint32_t driver;     /* the oldest that loads it: 1000 * major + 10 * minor of its CUDA */
    uint32_t zero;
    /* CUBIN, for people: per thread; per block; and blocks that fit a multiprocessor, 0: depends */
    uint32_t registers, frame_bytes, shared_bytes, blocks;
} dlc_plan_binary;

/* In plans of CPUs what follows `peak` is 0. CUDA: dynamic shared memory of a block: fixed_bytes + scratches
 * times the step's scratch_bytes. */
typedef struct {
    uint32_t name; /* string */
    uint32_t peak; /* string: the rate of a processor that its arithmetic is held against, as `dlc targets --probe` names them; or "" */
    uint32_t zero;
    uint32_t threads, units_per_block, fixed_bytes, scratches;
    uint32_t function;      /* string: its name in the binaries; equal kernels have one */
    dlc_plan_rows binaries; /* rows of `binaries` */
} dlc_plan_kernel;

typedef enum {
#define DLC_OPAQUE(id, number, text, inputs, outputs, attrs, names, count, run) DLC_OPAQUE_##id = number,
#include "dlc/opaque.def"
#undef DLC_OPAQUE
    DLC_OPAQUE_COUNT
} dlc_opaque;

/*
 * The program of a text_match step: rows of three i64, an operation and its operands. DONE: the string matches if it ends here.
 * SET: a character of the set, `b` RANGE rows from row `a` on, each from its `a` to its `b`. SPLIT: goes on at rows a and b. ASSERT:
 * the condition `a` holds between the characters before and behind. After SET and ASSERT the next row follows.
 */
typedef enum { DLC_MATCH_DONE, DLC_MATCH_SET, DLC_MATCH_SPLIT, DLC_MATCH_ASSERT, DLC_MATCH_RANGE } dlc_match_op;
typedef enum { DLC_MATCH_BEGIN, DLC_MATCH_END, DLC_MATCH_EDGE, DLC_MATCH_NO_EDGE } dlc_match_condition;
#define DLC_MATCH_MOST 4096 /* rows */

typedef enum {
#define DLC_DEVICE(id, number, text) DLC_DEVICE_##id = number,
#include "dlc/device.def"
#undef DLC_DEVICE
    DLC_DEVICE_COUNT
} dlc_device;
typedef enum { DLC_ARCH_X86_64 = 0, DLC_ARCH_AARCH64 = 1 } dlc_arch;

/* What the model's file says of itself, for people and programs; nothing depends on it. */
typedef struct {
    uint32_t key, value; /* strings */
    uint32_t is_field;   /* 1: a field of ONNX's ModelProto; 0: of its metadata_props */
    uint32_t zero;
} dlc_plan_property;

/* The start of a plan. Tables are 8-byte aligned; strings end with NUL. */
typedef struct {
    char magic[8]; /* DLC_PLAN_MAGIC */
    uint32_t abi_version;
    uint32_t size_bytes; /* of the plan */
    uint8_t device;      /* dlc_device: what runs steps unless they name another */
    uint8_t arch;        /* dlc_arch of CPU kernels */
    uint16_t zero;
    uint32_t target;               /* string: name of the target */
    uint64_t cpu_features;         /* bit set by cpu.def */
    uint32_t model;                /* string: name of the graph */
    uint32_t producer;             /* string: who wrote this */
    dlc_plan_rows inputs, outputs; /* dlc_plan_tensor */
    dlc_plan_rows symbols;         /* dlc_plan_symbol */
    dlc_plan_rows insts;           /* dlc_size_inst */
    dlc_plan_rows phases;          /* dlc_plan_phase */
    dlc_plan_rows conditions;      /* dlc_plan_condition */
    dlc_plan_rows kernels;         /* dlc_plan_kernel */
    dlc_plan_rows steps;           /* dlc_plan_step */
    dlc_plan_rows refs;            /* dlc_plan_ref */
    dlc_plan_rows tensors;         /* dlc_plan_tensor */
    dlc_plan_rows cells;           /* uint32_t */
    dlc_plan_rows attrs;           /* int64_t */
    dlc_plan_rows binaries;        /* dlc_plan_binary */
    dlc_plan_rows properties;      /* dlc_plan_property */
    dlc_plan_rows texts;           /* uint32_t: the string of each number, from 0 on; the first is "" */
    dlc_plan_rows strings;         /* char; names above are offsets into it */
} dlc_plan;
#define DLC_PLAN_MAGIC "dlcplan"

typedef struct {
    uint64_t checksum; /* dlc_checksum of the plan's bytes */
    const dlc_plan *plan;
    const dlc_kernel_fn *kernels; /* as many as plan->kernels.count; NULL in plans of devices that load binaries */
} dlc_plan_entry;

typedef struct dlc_executable {
    char magic[8]; /* DLC_EXECUTABLE_MAGIC */
    uint32_t abi_version;
    uint32_t nplans;
    uint64_t constants_bytes;
    const void *constants; /* 64-byte aligned */
    uint64_t binaries_bytes;
    const void *binaries; /* 64-byte aligned */
    const dlc_plan_entry *plans;
} dlc_executable;
#define DLC_EXECUTABLE_MAGIC "dlcexec"

/*
 * The seal of a .so: what a runtime needs to load it, and checksums of all that it loads. Addresses
 * count from the image's first byte; bytes are those of the file, before relocation. It says nothing
 * of the tables that other programs rewrite (symbols, names, sections, the dynamic section): strip,
 * objcopy and patchelf leave a file that loads.
 *
 * Constants may be a thousand times as large as the rest, so they have a checksum for each
 * DLC_SEAL_CHUNK bytes: a run reads and checks those that its plan uses, opening none.
 */
typedef enum {
    DLC_SEAL_RELOCATIONS, /* Elf64_Rela, all of them relative to the image */
    DLC_SEAL_TABLES,      /* plans, and constants of the code */
    DLC_SEAL_CODE,
    DLC_SEAL_DATA, /* what relocations change */
    DLC_SEAL_CHECKSUMS, /* uint64_t, of the constants; rows behind the last chunk's are 0 */
    DLC_SEAL_CONSTANTS, /* its own checksum is 0 */
    DLC_SEAL_BINARIES,
    DLC_SEAL_COUNT
} dlc_seal_part;
#define DLC_SEAL_CHUNK 65536
/* Pages that a system may map at once: weights of two and more lie in them as they do in the file. */
#define DLC_HUGE_PAGE 0x200000
typedef struct {
    char magic[8];     /* DLC_SEAL_MAGIC */
    uint64_t checksum; /* dlc_checksum of what follows in this structure */
    uint32_t abi_version;
    uint32_t arch;       /* dlc_arch */
    uint64_t executable; /* address of the dlc_executable */
    struct {
        uint64_t address, size_bytes, checksum;
    } parts[DLC_SEAL_COUNT];
} dlc_seal;
#define DLC_SEAL_MAGIC "dlcseal"

#ifdef __cplusplus
}
#endif

#endif

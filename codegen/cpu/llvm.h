/* The LLVM side of the emitter: one kernel's function being built. */
#ifndef DLC_CODEGEN_CPU_LLVM_H
#define DLC_CODEGEN_CPU_LLVM_H

#include "codegen/cpu/calls.h"
#include "codegen/nest.h"

typedef struct {
    dlc_dtype dtype;
    dlc_scalar value;
    uint32_t width;
    LLVMValueRef global;
} dlc_fill;

typedef struct {
    LLVMValueRef outer_branch; /* ends the block of the level outside; code for that level goes before it */
    LLVMBasicBlockRef body, exit;
    LLVMValueRef index, hi;    /* of a loop; NULL: a branch */
    int64_t step;
} dlc_open;

/* Nontemporal stores to a buffer (nontemporal.c). */
typedef struct {
    uint32_t bytes;          /* of a vector; 0: there are none */
    LLVMValueRef next, rest; /* variables; next: the offset behind the last vector */
    LLVMValueRef base, low;  /* low: bytes that base is beyond a multiple of a vector's */
    LLVMValueRef turn, is_rest;
} dlc_line_run;

typedef struct {
    LLVMValueRef value;
    double most;
} dlc_limited;

typedef struct {
    dlc_emitter base; /* first: a dlc_emitter * is a dlc_cpu * */
    dlc_arena *arena;
    const dlc_kernel *kernel;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMBasicBlockRef entry, block; /* block: where the innermost level's code goes on */
    LLVMValueRef *buffers;
    dlc_line_run *runs; /* by buffer */
    uint32_t nbuffers;
    LLVMValueRef symbols, scratch, fault, no_fault;
    LLVMValueRef is_faulty; /* a variable, or NULL: an index was out of range; told when the function ends */
    uint32_t level;
    dlc_open open[DLC_MAX_LEVELS];
    dlc_vec(dlc_fill) fills;
    LLVMValueRef rounded_bits, rounded_from; /* bits of bf16 that were made last, and of what */
    LLVMValueRef rounded_byte, byte_from; /* bytes that were made last of rounded floats, rint(byte_from) + byte_shift */
    double byte_shift;
    dlc_vec(dlc_limited) limited; /* vectors of constants that are known to be small */
    uint8_t is_flushed; /* subnormals among what rounded_bits are made of are zeros in them */
    uint32_t facts;   /* of the target, that instructions so far need */
    LLVMValueRef tile_shape; /* of the kernel: that of its first tile registers */
    uint8_t has_tiles, has_other_shape; /* other: at present */
    uint8_t has_f16c; /* converts f16 in hardware */
} dlc_cpu;

/* A function `name` for the kernel in a fresh module; the table is filled in. Level 0 is open. */
void dlc_cpu_begin(dlc_cpu *cpu, LLVMContextRef context, LLVMModuleRef module, const dlc_target *target,
                   const dlc_kernel *kernel, const char *name, dlc_arena *arena);
void dlc_cpu_end(dlc_cpu *cpu);
int dlc_cpu_is_x86(const dlc_cpu *cpu);
/* AVX-512, with registers for masks: no other target's vectors have its width. */
int dlc_cpu_is_avx512(const dlc_cpu *cpu);
LLVMValueRef dlc_cpu_unit(dlc_cpu *cpu, int end); /* the parameters begin (0) and end (1) */

/* Types: in registers (bool is i1, f16 and bf16 are float) and in memory (bool is i8, f16 and bf16 are i16). */
LLVMTypeRef dlc_cpu_type(const dlc_cpu *cpu, dlc_dtype dtype, uint32_t width);
LLVMTypeRef dlc_cpu_memory_type(const dlc_cpu *cpu, dlc_dtype dtype, uint32_t width);
LLVMValueRef dlc_cpu_from_memory(dlc_cpu *cpu, dlc_dtype dtype, uint32_t width, LLVMValueRef value);
LLVMValueRef dlc_cpu_to_memory(dlc_cpu *cpu, dlc_dtype dtype, uint32_t width, LLVMValueRef value);
/* No lane of these f32 is NaN or further from 0 than `most`, as far as is known. */
int dlc_cpu_is_within(const dlc_cpu *cpu, LLVMValueRef value, uint32_t lanes, double most);

/* The floats of which these are to be stored as bf16, be they rounded to it by now or not; NULL: they are of memory. *is_flushed: subnormals
 * among them are to be stored as zeros. */
LLVMValueRef dlc_cpu_before_rounding(const dlc_cpu *cpu, uint32_t width, LLVMValueRef value, int *is_flushed);
LLVMValueRef dlc_cpu_address(dlc_cpu *cpu, const dlc_access *access);
LLVMValueRef dlc_cpu_intrinsic(dlc_cpu *cpu, const char *name, const LLVMTypeRef *types, uint32_t ntypes,
                               LLVMValueRef *args, uint32_t nargs);

/* Lane i is lane from[i] (i32) of 8 or 16 floats: AVX2, AVX-512. */
LLVMValueRef dlc_cpu_permuted(dlc_cpu *cpu, uint32_t width, LLVMValueRef floats, LLVMValueRef from);

/* A machine for the target (caller disposes), or NULL and LLVM's text in *error. */
LLVMTargetMachineRef dlc_cpu_machine(const dlc_target *target, char **error);

/* codegen/cpu/arith.c */
dlc_val dlc_cpu_arith(dlc_emitter *e, dlc_expr_op op, dlc_dtype from, dlc_dtype to, uint32_t width, const dlc_val *args);
dlc_val dlc_cpu_konst(dlc_emitter *e, dlc_dtype dtype, dlc_scalar value, uint32_t width);
dlc_val dlc_cpu_splat(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width);
/* What all lanes of a vector are copies of, where that shows; or NULL. */
LLVMValueRef dlc_cpu_copied_to_lanes(LLVMValueRef v);

/* codegen/cpu/dot.c */
dlc_val dlc_cpu_interleave(dlc_emitter *e, dlc_dtype dtype, uint32_t width, uint32_t n, const dlc_val *elements);
dlc_val dlc_cpu_dot_step(dlc_emitter *e, dlc_dot row, uint32_t width, dlc_val a, dlc_val b, dlc_val acc);
dlc_val dlc_cpu_widen(dlc_emitter *e, dlc_dtype dtype, uint32_t width, dlc_val bytes);

/* codegen/cpu/tile.c; end: the function's registers are given their shape where it begins, and released. */
extern const dlc_tile_emitter dlc_cpu_tiles;
void dlc_cpu_tiles_end(dlc_cpu *cpu);

/* codegen/cpu/held.c. False: these are no floats that an instruction rounds as they are stored. */
int dlc_cpu_store_rounded(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value);
dlc_waiting *dlc_cpu_hold(dlc_emitter *e, const dlc_access *access, dlc_val value);
void dlc_cpu_store_held(dlc_emitter *e, dlc_waiting *held, const dlc_access *next, dlc_val value);
void dlc_cpu_store_woven(dlc_emitter *e, uint32_t n, dlc_waiting *const *held);
dlc_waiting *dlc_cpu_hold_byte(dlc_emitter *e, const dlc_access *access, dlc_val value);
void dlc_cpu_store_packed(dlc_emitter *e, uint32_t n, dlc_waiting *const *held, const uint8_t *joins);
/* Bytes that the address is a multiple of. */
uint32_t dlc_cpu_alignment(const dlc_access *access);

/* codegen/cpu/nontemporal.c: a vector of elements next to each other goes to memory past the caches; align: bytes that its address is a
 * multiple of. end: what is left of them is stored. x86-64. */
void dlc_cpu_store_nontemporal(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value, LLVMValueRef pointer, uint32_t align);
void dlc_cpu_nontemporal_end(dlc_cpu *cpu);

static inline LLVMValueRef dlc_llvm(dlc_val value)
{
    return (LLVMValueRef)value;
}
static inline dlc_val dlc_wrap(LLVMValueRef value)
{
    return (dlc_val)value;
}

static inline LLVMTypeRef dlc_cpu_i64_type(const dlc_cpu *cpu)
{
    return LLVMInt64TypeInContext(cpu->context);
}

static inline LLVMValueRef dlc_cpu_i64(const dlc_cpu *cpu, int64_t value)
{
    return LLVMConstInt(dlc_cpu_i64_type(cpu), (uint64_t)value, 1);
}

static inline LLVMValueRef dlc_cpu_i32(const dlc_cpu *cpu, uint32_t value)
{
    return LLVMConstInt(LLVMInt32TypeInContext(cpu->context), value, 0);
}

/* A constant in all lanes; width 1: itself. */
static inline LLVMValueRef dlc_cpu_copies(LLVMValueRef constant, uint32_t width)
{
    LLVMValueRef lanes[256];
    for (uint32_t i = 0; i < width; i++)
        lanes[i] = constant;
    return width > 1 ? LLVMConstVector(lanes, width) : constant;
}

/* Lanes of two vectors by number, those of the second behind the first's; as many as `n` says. */
static inline LLVMValueRef dlc_cpu_pick(const dlc_cpu *cpu, LLVMValueRef a, LLVMValueRef b, uint32_t n, const uint32_t *numbers)
{
    LLVMValueRef lanes[64];
    for (uint32_t i = 0; i < n; i++)
        lanes[i] = dlc_cpu_i32(cpu, numbers[i]);
    return LLVMBuildShuffleVector(cpu->builder, a, b, LLVMConstVector(lanes, n), "");
}

static inline LLVMValueRef dlc_cpu_lanes(const dlc_cpu *cpu, LLVMValueRef v, uint32_t first, uint32_t n)
{
    LLVMValueRef index[64];
    for (uint32_t i = 0; i < n; i++)
        index[i] = dlc_cpu_i32(cpu, first + i);
    return LLVMBuildShuffleVector(cpu->builder, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(index, n), "");
}

#endif

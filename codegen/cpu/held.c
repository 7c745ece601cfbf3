/* Vectors on their way to memory: floats that are rounded to bf16 as they are stored, and stores that wait for their neighbour's. */
#include "codegen/cpu/llvm.h"

enum { ROUNDED_LANES = 16 }; /* by one instruction, to bf16; twice as many of two vectors */

struct dlc_waiting {
    dlc_access access;
    LLVMValueRef floats, value; /* to be rounded, or as in memory */
    int is_flushed;             /* of floats, subnormals are stored as zeros */
};

/* The floats that are stored as bf16 by the instruction that rounds them, or NULL. */
static LLVMValueRef rounded_at_once(const dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value, int *is_flushed)
{
    int is_rounded = access->dtype == DLC_BF16 && access->mode == DLC_ACCESS_VECTOR && access->width % ROUNDED_LANES == 0 && !access->mask &&
                     !access->nontemporal && dlc_rounds_bf16(cpu->base.target);
    return is_rounded ? dlc_cpu_before_rounding(cpu, access->width, value, is_flushed) : NULL;
}

static LLVMValueRef subnormals(dlc_cpu *cpu, LLVMValueRef floats)
{
    enum { SUBNORMAL = 1 << 5 };
    LLVMValueRef classes[] = {floats, dlc_cpu_i32(cpu, SUBNORMAL)};
    LLVMValueRef lanes = dlc_cpu_intrinsic(cpu, "llvm.x86.avx512.fpclass.ps.512", NULL, 0, classes, 2);
    return LLVMBuildBitCast(cpu->builder, lanes, LLVMIntTypeInContext(cpu->context, ROUNDED_LANES), "");
}

/* What the instruction took for zeros is stored once more, where there is any. */
static void store_subnormals(dlc_cpu *cpu, LLVMValueRef at, uint32_t align, LLVMValueRef low, LLVMValueRef high)
{
    dlc_emitter *e = &cpu->base;
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, DLC_BF16, 1);
    LLVMValueRef small = subnormals(cpu, low);
    if (high)
        small = LLVMBuildOr(cpu->builder, small, subnormals(cpu, high), "");
    e->if_begin(e, dlc_wrap(LLVMBuildICmp(cpu->builder, LLVMIntNE, small, LLVMConstNull(LLVMTypeOf(small)), "")));
    LLVMSetAlignment(LLVMBuildStore(cpu->builder, dlc_cpu_to_memory(cpu, DLC_BF16, ROUNDED_LANES, low), at), align);
    if (high) {
        LLVMValueRef apart = dlc_cpu_i64(cpu, ROUNDED_LANES), behind = LLVMBuildGEP2(cpu->builder, type, at, &apart, 1, "");
        LLVMSetAlignment(LLVMBuildStore(cpu->builder, dlc_cpu_to_memory(cpu, DLC_BF16, ROUNDED_LANES, high), behind),
                         align < ROUNDED_LANES * 2 ? align : ROUNDED_LANES * 2);
    }
    e->if_end(e);
}

/* One vector, or with `high` two. */
static void store_part(dlc_cpu *cpu, LLVMValueRef at, uint32_t align, LLVMValueRef low, LLVMValueRef high, int is_flushed)
{
    LLVMValueRef both[] = {high, low}, bits;
    bits = high ? dlc_cpu_intrinsic(cpu, "llvm.x86.avx512bf16.cvtne2ps2bf16.512", NULL, 0, both, 2)
                : dlc_cpu_intrinsic(cpu, "llvm.x86.avx512bf16.cvtneps2bf16.512", NULL, 0, &low, 1);
    LLVMSetAlignment(LLVMBuildStore(cpu->builder, bits, at), align);
    if (!is_flushed)
        store_subnormals(cpu, at, align, low, high);
    cpu->facts |= DLC_HAS_BF16;
}

static LLVMValueRef lanes_from(const dlc_cpu *cpu, LLVMValueRef floats, uint32_t width, uint32_t first)
{
    return width > ROUNDED_LANES ? dlc_cpu_lanes(cpu, floats, first, ROUNDED_LANES) : floats;
}

static void store_floats(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef floats, int is_flushed)
{
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, DLC_BF16, 1);
    LLVMValueRef pointer = dlc_cpu_address(cpu, access);
    for (uint32_t first = 0; first < access->width; first += ROUNDED_LANES) {
        LLVMValueRef apart = dlc_cpu_i64(cpu, first), at = LLVMBuildGEP2(cpu->builder, type, pointer, &apart, 1, "");
        uint32_t align = access->width == ROUNDED_LANES ? dlc_cpu_alignment(access) : dlc_dtype_bytes(DLC_BF16);
        store_part(cpu, at, align, lanes_from(cpu, floats, access->width, first), NULL, is_flushed);
    }
}

int dlc_cpu_store_rounded(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value)
{
    int is_flushed;
    LLVMValueRef floats = rounded_at_once(cpu, access, value, &is_flushed);
    if (floats)
        store_floats(cpu, access, floats, is_flushed);
    return floats != NULL;
}

/* --- neighbours --- */

static LLVMValueRef joined(const dlc_cpu *cpu, LLVMValueRef low, LLVMValueRef high, uint32_t width)
{
    LLVMValueRef index[64];
    for (uint32_t i = 0; i < 2 * width; i++)
        index[i] = dlc_cpu_i32(cpu, i);
    return LLVMBuildShuffleVector(cpu->builder, low, high, LLVMConstVector(index, 2 * width), "");
}

static void store_alone(dlc_cpu *cpu, const dlc_waiting *held)
{
    if (held->floats)
        store_floats(cpu, &held->access, held->floats, held->is_flushed);
    else
        LLVMSetAlignment(LLVMBuildStore(cpu->builder, held->value, dlc_cpu_address(cpu, &held->access)), dlc_cpu_alignment(&held->access));
}

dlc_waiting *dlc_cpu_hold(dlc_emitter *e, const dlc_access *access, dlc_val value)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    dlc_waiting *held = dlc_new(cpu->arena, dlc_waiting);
    held->access = *access;
    held->floats = rounded_at_once(cpu, access, dlc_llvm(value), &held->is_flushed);
    if (!held->floats)
        held->value = dlc_cpu_to_memory(cpu, access->dtype, access->width, dlc_llvm(value));
    return held;
}

void dlc_cpu_store_held(dlc_emitter *e, dlc_waiting *held, const dlc_access *next, dlc_val value)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    const dlc_waiting *behind = next ? dlc_cpu_hold(e, next, value) : NULL;
    uint32_t align = dlc_cpu_alignment(&held->access), width = held->access.width;
    if (behind && held->floats && behind->floats && width == ROUNDED_LANES && held->is_flushed == behind->is_flushed) {
        store_part(cpu, dlc_cpu_address(cpu, &held->access), align, held->floats, behind->floats, held->is_flushed);
    } else if (behind && held->value && behind->value) {
        LLVMSetAlignment(LLVMBuildStore(cpu->builder, joined(cpu, held->value, behind->value, width), dlc_cpu_address(cpu, &held->access)), align);
    } else {
        store_alone(cpu, held);
        if (behind)
            store_alone(cpu, behind);
    }
}

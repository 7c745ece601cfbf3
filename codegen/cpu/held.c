/*
 * Vectors on their way to memory: floats that are rounded to bf16 as they are stored, stores that wait for their neighbour's, and vectors
 * whose lanes lie in turns.
 */
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
    uint32_t numbers[64];
    for (uint32_t i = 0; i < 2 * width; i++)
        numbers[i] = i;
    return dlc_cpu_pick(cpu, low, high, 2 * width, numbers);
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

/* --- in turns --- */

/* Vector `part` of what n vectors are in turns: one after the other brings its lanes in. */
static LLVMValueRef part_of_turns(const dlc_cpu *cpu, const LLVMValueRef *v, uint32_t n, uint32_t width, uint32_t part)
{
    LLVMValueRef all = v[0];
    uint32_t numbers[64];
    for (uint32_t k = 1; k < n; k++) {
        for (uint32_t i = 0; i < width; i++) {
            uint32_t at = part * width + i, from = at % n;
            uint32_t lane = k > 1 && from != k ? i : at / n; /* once brought in, a lane is in its place */
            numbers[i] = from == k ? width + lane : lane;
        }
        all = dlc_cpu_pick(cpu, all, v[k], width, numbers);
    }
    return all;
}

/* An even number of them are two halves, every other one, in turns. */
static void put_in_turns(const dlc_cpu *cpu, const LLVMValueRef *v, uint32_t n, uint32_t width, LLVMValueRef *parts)
{
    LLVMValueRef every_other[2][DLC_MOST_WOVEN / 2] = {{NULL}}, halves[2][DLC_MOST_WOVEN / 2];
    if (n == 1) {
        parts[0] = v[0];
    } else if (n % 2) {
        for (uint32_t p = 0; p < n; p++)
            parts[p] = part_of_turns(cpu, v, n, width, p);
    } else {
        for (uint32_t k = 0; k < n; k++)
            every_other[k % 2][k / 2] = v[k];
        for (uint32_t h = 0; h < 2; h++)
            put_in_turns(cpu, every_other[h], n / 2, width, halves[h]);
        for (uint32_t p = 0; p < n; p++)
            parts[p] = part_of_turns(cpu, (LLVMValueRef[]){halves[0][p / 2], halves[1][p / 2]}, 2, width, p % 2);
    }
}

/* As in memory. The instruction rounds where what it takes for zeros is meant to be. */
static LLVMValueRef in_memory(dlc_cpu *cpu, const dlc_waiting *held)
{
    LLVMValueRef floats = held->floats;
    if (!floats)
        return held->value;
    if (!held->is_flushed || held->access.width != ROUNDED_LANES)
        return dlc_cpu_to_memory(cpu, DLC_BF16, held->access.width, floats);
    cpu->facts |= DLC_HAS_BF16;
    return dlc_cpu_intrinsic(cpu, "llvm.x86.avx512bf16.cvtneps2bf16.512", NULL, 0, &floats, 1);
}

void dlc_cpu_store_woven(dlc_emitter *e, uint32_t n, dlc_waiting *const *held)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    const dlc_access *access = &held[0]->access;
    LLVMValueRef v[DLC_MOST_WOVEN] = {NULL}, parts[DLC_MOST_WOVEN], pointer = dlc_cpu_address(cpu, access);
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, access->dtype, 1);
    for (uint32_t k = 0; k < n; k++)
        v[k] = in_memory(cpu, held[k]);
    put_in_turns(cpu, v, n, access->width, parts);
    for (uint32_t k = 0; k < n; k++) {
        LLVMValueRef apart = dlc_cpu_i64(cpu, k * access->width), at = LLVMBuildGEP2(cpu->builder, type, pointer, &apart, 1, "");
        LLVMSetAlignment(LLVMBuildStore(cpu->builder, parts[k], at), dlc_dtype_bytes(access->dtype));
    }
}

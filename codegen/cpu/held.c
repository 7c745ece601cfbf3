/*
 * Vectors on their way to memory: floats that are rounded to bf16 as they are stored, stores that wait for their neighbour's, vectors whose
 * lanes lie in turns, and floats of which several vectors become bytes together.
 */
#include "codegen/cpu/llvm.h"

#include <math.h>

enum { ROUNDED_LANES = 16 }; /* by one instruction, to bf16; twice as many of two vectors */

struct dlc_waiting {
    dlc_access access;
    LLVMValueRef floats, value; /* to be rounded, or as in memory */
    int is_flushed;             /* of floats, subnormals are stored as zeros */
    LLVMValueRef rounds;        /* or NULL; the bytes are rint(rounds) + shift */
    double shift;
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

/* --- bytes --- */

/* Instructions for `lanes` floats: to integers, half to even, and what makes words of two vectors of those, and bytes of two of words. Both
 * saturate, and go by 128 bits at a time. */
typedef struct {
    uint32_t lanes;
    int has_mask; /* to_int */
    const char *to_int, *to_words, *to_bytes[2]; /* signed, unsigned */
} packs;

static const packs all_packs[] = {
    {4, 0, "llvm.x86.sse2.cvtps2dq", "llvm.x86.sse2.packssdw.128", {"llvm.x86.sse2.packsswb.128", "llvm.x86.sse2.packuswb.128"}},
    {8, 0, "llvm.x86.avx.cvt.ps2dq.256", "llvm.x86.avx2.packssdw", {"llvm.x86.avx2.packsswb", "llvm.x86.avx2.packuswb"}},
    {16, 1, "llvm.x86.avx512.mask.cvtps2dq.512", "llvm.x86.avx512.packssdw.512", {"llvm.x86.avx512.packsswb.512", "llvm.x86.avx512.packuswb.512"}},
};

/* NULL: the target has none for as many. */
static const packs *packs_for(const dlc_cpu *cpu, uint32_t lanes)
{
    for (uint32_t i = 0; i < sizeof all_packs / sizeof *all_packs && dlc_cpu_is_x86(cpu); i++)
        if (all_packs[i].lanes == lanes && lanes * sizeof(float) == cpu->base.target->vector_bytes)
            return &all_packs[i];
    return NULL;
}

dlc_waiting *dlc_cpu_hold_byte(dlc_emitter *e, const dlc_access *access, dlc_val value)
{
    enum { MOST_SHIFT = 1024 }; /* words hold the sum wherever it is a byte */
    dlc_cpu *cpu = (dlc_cpu *)e;
    if (dlc_dtype_bytes(access->dtype) != 1 || dlc_llvm(value) != cpu->rounded_byte || !(fabs(cpu->byte_shift) <= MOST_SHIFT) ||
        !packs_for(cpu, access->width))
        return NULL;
    dlc_waiting *held = dlc_new(cpu->arena, dlc_waiting);
    *held = (dlc_waiting){.access = *access, .value = dlc_llvm(value), .rounds = cpu->byte_from, .shift = cpu->byte_shift};
    return held;
}

/* In i32, without the shift. Packing limits what i32 holds. What may be larger is limited to a byte's greatest; what is too small may become the
 * least i32, which is less than any byte, as NaN does. That is 0 of unsigned bytes; of signed ones NaN is asked for. */
static LLVMValueRef whole(dlc_cpu *cpu, const packs *by, const dlc_waiting *held)
{
    enum { EMBEDDED = 4 }; /* the mode of rounding that the processor is in: half to even */
    const double i32_holds = 0x1p30; /* half of it: true ends may lie a little beyond those that are known */
    LLVMTypeRef f32 = LLVMFloatTypeInContext(cpu->context), i32 = LLVMInt32TypeInContext(cpu->context);
    int is_unsigned = held->access.dtype == DLC_U8, is_small = dlc_cpu_is_within(cpu, held->rounds, by->lanes, i32_holds);
    LLVMValueRef x = held->rounds, most = dlc_cpu_copies(LLVMConstReal(f32, (is_unsigned ? UINT8_MAX : INT8_MAX) - held->shift), by->lanes);
    if (!is_unsigned && !is_small) {
        LLVMValueRef is_nan = LLVMBuildFCmp(cpu->builder, LLVMRealUNO, x, x, "");
        x = LLVMBuildSelect(cpu->builder, is_nan, dlc_cpu_copies(LLVMConstReal(f32, -held->shift), by->lanes), x, "");
    }
    if (!is_small)
        x = LLVMBuildSelect(cpu->builder, LLVMBuildFCmp(cpu->builder, LLVMRealOLT, most, x, ""), most, x, "");
    LLVMValueRef args[] = {x, LLVMConstNull(LLVMVectorType(i32, by->lanes)), LLVMConstAllOnes(LLVMIntTypeInContext(cpu->context, by->lanes)),
                           LLVMConstInt(i32, EMBEDDED, 0)};
    return dlc_cpu_intrinsic(cpu, by->to_int, NULL, 0, args, by->has_mask ? 4 : 1);
}

/* The bytes of two to four vectors one behind the other; of less than four some are there twice. */
static LLVMValueRef packed(dlc_cpu *cpu, const packs *by, uint32_t n, dlc_waiting *const *held)
{
    LLVMTypeRef i16 = LLVMInt16TypeInContext(cpu->context), words = LLVMVectorType(i16, 2 * by->lanes);
    LLVMValueRef wholes[DLC_MOST_PACKED], half[2], numbers[16], shift = LLVMConstInt(i16, (uint64_t)(int64_t)held[0]->shift, 1);
    for (uint32_t k = 0; k < n; k++)
        wholes[k] = whole(cpu, by, held[k]);
    for (uint32_t h = 0; h < 2; h++) {
        LLVMValueRef pair[] = {wholes[2 * h < n ? 2 * h : 0], wholes[2 * h + 1 < n ? 2 * h + 1 : n - 1]};
        half[h] = h && n == 2 ? half[0] : dlc_cpu_intrinsic(cpu, by->to_words, NULL, 0, pair, 2);
        LLVMValueRef sum[] = {half[h], dlc_cpu_copies(shift, 2 * by->lanes)};
        if (held[0]->shift != 0 && !(h && n == 2))
            half[h] = dlc_cpu_intrinsic(cpu, "llvm.sadd.sat", &words, 1, sum, 2);
    }
    LLVMValueRef bytes = dlc_cpu_intrinsic(cpu, by->to_bytes[held[0]->access.dtype == DLC_U8], NULL, 0, half, 2);
    for (uint32_t i = 0; i < by->lanes; i++) /* of 128 bits, each vector has had a quarter */
        numbers[i] = dlc_cpu_i32(cpu, i / (by->lanes / 4) + i % (by->lanes / 4) * 4);
    bytes = LLVMBuildBitCast(cpu->builder, bytes, LLVMVectorType(LLVMInt32TypeInContext(cpu->context), by->lanes), "");
    bytes = LLVMBuildShuffleVector(cpu->builder, bytes, LLVMGetPoison(LLVMTypeOf(bytes)), LLVMConstVector(numbers, by->lanes), "");
    return LLVMBuildBitCast(cpu->builder, bytes, dlc_cpu_memory_type(cpu, DLC_U8, 4 * by->lanes), "");
}

/* Of one, packing would take more than it saves. */
void dlc_cpu_store_packed(dlc_emitter *e, uint32_t n, dlc_waiting *const *held, const uint8_t *joins)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    uint32_t lanes = held[0]->access.width;
    if (n == 1) {
        store_alone(cpu, held[0]);
        return;
    }
    LLVMValueRef bytes = packed(cpu, packs_for(cpu, lanes), n, held);
    for (uint32_t k = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && joins[end - 1];)
            end++;
        LLVMValueRef part = dlc_cpu_lanes(cpu, bytes, k * lanes, (end - k) * lanes), at = dlc_cpu_address(cpu, &held[k]->access);
        LLVMSetAlignment(LLVMBuildStore(cpu->builder, part, at), dlc_cpu_alignment(&held[k]->access));
    }
}

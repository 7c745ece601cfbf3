/* Rows of dot.def as instructions: LLVM's intrinsics by row and width. Of those that take two, the second one adds. */
#include "codegen/cpu/llvm.h"

#include <string.h>

static const struct {
    uint8_t row;
    uint16_t bits;
    const char *name;
    uint8_t is_overloaded; /* by the types of acc and a */
    uint8_t is_swapped;    /* what is spread over the lanes comes last: LLVM reads that operand of memory so */
} instructions[] = {
    {DLC_DOT_VPDPBUSD, 512, "llvm.x86.avx512.vpdpbusd.512", 0, 0},
    {DLC_DOT_VPDPBUSD, 256, "llvm.x86.avx512.vpdpbusd.256", 0, 0},
    {DLC_DOT_VPDPBUSD, 128, "llvm.x86.avx512.vpdpbusd.128", 0, 0},
    {DLC_DOT_VPDPWSSD, 512, "llvm.x86.avx512.vpdpwssd.512", 0, 0},
    {DLC_DOT_VPDPWSSD, 256, "llvm.x86.avx512.vpdpwssd.256", 0, 0},
    {DLC_DOT_VPDPWSSD, 128, "llvm.x86.avx512.vpdpwssd.128", 0, 0},
    {DLC_DOT_PMADDWD, 512, "llvm.x86.avx512.pmaddw.d.512", 0, 0},
    {DLC_DOT_PMADDWD, 256, "llvm.x86.avx2.pmadd.wd", 0, 0},
    {DLC_DOT_PMADDWD, 128, "llvm.x86.sse2.pmadd.wd", 0, 0},
    {DLC_DOT_VDPBF16PS, 512, "llvm.x86.avx512bf16.dpbf16ps.512", 0, 1},
    {DLC_DOT_VDPBF16PS, 256, "llvm.x86.avx512bf16.dpbf16ps.256", 0, 1},
    {DLC_DOT_VDPBF16PS, 128, "llvm.x86.avx512bf16.dpbf16ps.128", 0, 1},
    {DLC_DOT_SDOT, 128, "llvm.aarch64.neon.sdot", 1, 0},
    {DLC_DOT_UDOT, 128, "llvm.aarch64.neon.udot", 1, 0},
    {DLC_DOT_USDOT, 128, "llvm.aarch64.neon.usdot", 1, 0},
};
enum { NINSTRUCTIONS = sizeof instructions / sizeof *instructions, MOST_ARGS = 3, MOST_BYTES = 256 };

dlc_val dlc_cpu_dot_step(dlc_emitter *e, dlc_dot row, uint32_t width, dlc_val a, dlc_val b, dlc_val acc)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    uint32_t fact = dlc_dot_fact(e->target, row), i = 0;
    while (i < NINSTRUCTIONS && (instructions[i].row != row || instructions[i].bits != width * 32))
        i++;
    if (!fact || i == NINSTRUCTIONS)
        return NULL;
    int adds = dlc_dots[row].takes == 1;
    LLVMValueRef first_factor = dlc_llvm(instructions[i].is_swapped ? b : a), second_factor = dlc_llvm(instructions[i].is_swapped ? a : b);
    LLVMValueRef all[MOST_ARGS] = {dlc_llvm(acc), first_factor, second_factor}, *args = adds ? all : all + 1;
    LLVMTypeRef overloads[] = {LLVMTypeOf(all[0]), LLVMVectorType(LLVMInt8TypeInContext(cpu->context), width * 4)};
    uint32_t noverloads = instructions[i].is_overloaded ? 2 : 0;
    unsigned id = LLVMLookupIntrinsicID(instructions[i].name, strlen(instructions[i].name));
    LLVMTypeRef params[MOST_ARGS];
    LLVMGetParamTypes(LLVMIntrinsicGetType(cpu->context, id, overloads, noverloads), params);
    uint32_t first = adds ? 1 : 0, nargs = first + 2;
    for (uint32_t p = first; p < nargs; p++)
        args[p] = LLVMBuildBitCast(cpu->builder, args[p], params[p], "");
    cpu->facts |= fact;
    LLVMValueRef result = dlc_cpu_intrinsic(cpu, instructions[i].name, overloads, noverloads, args, nargs);
    return dlc_wrap(adds ? result : LLVMBuildAdd(cpu->builder, all[0], result, ""));
}

/* Lanes of a and b in turns. */
static LLVMValueRef in_turns(const dlc_cpu *cpu, LLVMValueRef a, LLVMValueRef b)
{
    uint32_t n = LLVMGetVectorSize(LLVMTypeOf(a));
    LLVMValueRef lanes[2 * MOST_BYTES];
    for (uint32_t i = 0; i < 2 * n; i++)
        lanes[i] = LLVMConstInt(LLVMInt32TypeInContext(cpu->context), i / 2 + i % 2 * n, 0);
    return LLVMBuildShuffleVector(cpu->builder, a, b, LLVMConstVector(lanes, 2 * n), "");
}

static LLVMValueRef side_by_side(const dlc_cpu *cpu, LLVMValueRef a, LLVMValueRef b)
{
    uint32_t n = LLVMGetVectorSize(LLVMTypeOf(a)), numbers[MOST_BYTES];
    for (uint32_t i = 0; i < 2 * n; i++)
        numbers[i] = i;
    return dlc_cpu_pick(cpu, a, b, 2 * n, numbers);
}

/* Four vectors of 16 bytes: side by side, words of four are put in turns, and then the bytes of each 128 bits. With VBMI both are one
 * instruction; else two of the port that shuffles, where one byte after the other takes six. */
static LLVMValueRef interleaved_quarters(dlc_cpu *cpu, const LLVMValueRef *parts)
{
    enum { QUARTER = 4, LANES = QUARTER * QUARTER, ALL = QUARTER * LANES };
    LLVMTypeRef byte = LLVMInt8TypeInContext(cpu->context), words = LLVMVectorType(LLVMInt32TypeInContext(cpu->context), LANES);
    LLVMValueRef all = side_by_side(cpu, side_by_side(cpu, parts[0], parts[1]), side_by_side(cpu, parts[2], parts[3])), from[ALL];
    uint32_t numbers[ALL];
    if (dlc_interleaves_at_once(cpu->base.target)) {
        for (uint32_t i = 0; i < ALL; i++)
            from[i] = LLVMConstInt(byte, i / QUARTER + i % QUARTER * LANES, 0);
        LLVMValueRef args[] = {all, LLVMConstVector(from, ALL)};
        cpu->facts |= DLC_HAS_VBMI;
        return LLVMBuildBitCast(cpu->builder, dlc_cpu_intrinsic(cpu, "llvm.x86.avx512.permvar.qi.512", NULL, 0, args, 2), words, "");
    }
    for (uint32_t i = 0; i < LANES; i++)
        numbers[i] = i / QUARTER + i % QUARTER * QUARTER;
    LLVMValueRef turned = dlc_cpu_pick(cpu, LLVMBuildBitCast(cpu->builder, all, words, ""), LLVMGetPoison(words), LANES, numbers);
    turned = LLVMBuildBitCast(cpu->builder, turned, LLVMTypeOf(all), "");
    for (uint32_t i = 0; i < ALL; i++)
        numbers[i] = i / LANES * LANES + i / QUARTER % QUARTER + i % QUARTER * QUARTER;
    return LLVMBuildBitCast(cpu->builder, dlc_cpu_pick(cpu, turned, LLVMGetPoison(LLVMTypeOf(all)), ALL, numbers), words, "");
}

dlc_val dlc_cpu_interleave(dlc_emitter *e, dlc_dtype dtype, uint32_t width, uint32_t n, const dlc_val *elements)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    enum { WORD = 32, MOST = 4, QUARTER_LANES = 16 };
    uint32_t bits = WORD / n;
    LLVMValueRef parts[MOST];
    for (uint32_t i = 0; i < n; i++) {
        LLVMTypeRef type = LLVMVectorType(LLVMIntTypeInContext(cpu->context, bits), width);
        parts[i] = elements[i] ? dlc_cpu_to_memory(cpu, dtype, width, dlc_llvm(elements[i])) : LLVMConstNull(type);
    }
    if (n == MOST && width == QUARTER_LANES && dlc_cpu_is_avx512(cpu))
        return dlc_wrap(interleaved_quarters(cpu, parts));
    for (; n > 1; n /= 2, bits *= 2)
        for (uint32_t i = 0; i < n / 2; i++) {
            LLVMTypeRef type = LLVMVectorType(LLVMIntTypeInContext(cpu->context, 2 * bits), width);
            parts[i] = LLVMBuildBitCast(cpu->builder, in_turns(cpu, parts[2 * i], parts[2 * i + 1]), type, "");
        }
    return dlc_wrap(parts[0]);
}

dlc_val dlc_cpu_widen(dlc_emitter *e, dlc_dtype dtype, uint32_t width, dlc_val bytes)
{
    const dlc_cpu *cpu = (dlc_cpu *)e;
    LLVMValueRef apart = LLVMBuildBitCast(cpu->builder, dlc_llvm(bytes), dlc_cpu_type(cpu, DLC_I8, 2 * width), "");
    LLVMTypeRef type = dlc_cpu_type(cpu, DLC_I16, 2 * width);
    LLVMValueRef wide = dlc_is_unsigned(dtype) ? LLVMBuildZExt(cpu->builder, apart, type, "") : LLVMBuildSExt(cpu->builder, apart, type, "");
    return dlc_wrap(LLVMBuildBitCast(cpu->builder, wide, dlc_cpu_type(cpu, DLC_I32, width), ""));
}

/* Rows of dot.def as instructions: LLVM's intrinsics by row and width. */
#include "codegen/cpu/llvm.h"

#include <string.h>

static const struct {
    uint8_t row;
    uint16_t bits;
    const char *name;
    uint8_t is_overloaded; /* by the types of acc and a */
} instructions[] = {
    {DLC_DOT_VPDPBUSD, 512, "llvm.x86.avx512.vpdpbusd.512", 0},
    {DLC_DOT_VPDPBUSD, 256, "llvm.x86.avx512.vpdpbusd.256", 0},
    {DLC_DOT_VPDPBUSD, 128, "llvm.x86.avx512.vpdpbusd.128", 0},
    {DLC_DOT_VDPBF16PS, 512, "llvm.x86.avx512bf16.dpbf16ps.512", 0},
    {DLC_DOT_SDOT, 128, "llvm.aarch64.neon.sdot", 1},
    {DLC_DOT_UDOT, 128, "llvm.aarch64.neon.udot", 1},
    {DLC_DOT_USDOT, 128, "llvm.aarch64.neon.usdot", 1},
};
enum { NINSTRUCTIONS = sizeof instructions / sizeof *instructions, MOST_ARGS = 3 };

dlc_val dlc_cpu_dot_step(dlc_emitter *e, dlc_dot row, uint32_t width, dlc_val a, dlc_val b, dlc_val acc)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    uint32_t fact = dlc_dot_fact(e->target, row), i = 0;
    while (i < NINSTRUCTIONS && (instructions[i].row != row || instructions[i].bits != width * 32))
        i++;
    if (!fact || i == NINSTRUCTIONS)
        return NULL;
    LLVMValueRef args[MOST_ARGS] = {dlc_llvm(acc), dlc_llvm(a), dlc_llvm(b)};
    LLVMTypeRef overloads[] = {LLVMTypeOf(args[0]), LLVMVectorType(LLVMInt8TypeInContext(cpu->context), width * 4)};
    uint32_t noverloads = instructions[i].is_overloaded ? 2 : 0;
    unsigned id = LLVMLookupIntrinsicID(instructions[i].name, strlen(instructions[i].name));
    LLVMTypeRef params[MOST_ARGS];
    LLVMGetParamTypes(LLVMIntrinsicGetType(cpu->context, id, overloads, noverloads), params);
    for (uint32_t p = 1; p < MOST_ARGS; p++)
        args[p] = LLVMBuildBitCast(cpu->builder, args[p], params[p], "");
    cpu->facts |= fact;
    return dlc_wrap(dlc_cpu_intrinsic(cpu, instructions[i].name, overloads, noverloads, args, MOST_ARGS));
}

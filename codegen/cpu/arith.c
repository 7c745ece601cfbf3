/*
 * expr.def in LLVM IR, at any width. Floats are strict: no fast-math flag is ever set. f16 and bf16 live in registers as
 * floats that hold a rounded value, so one f32 operation and one rounding is their arithmetic (f32 is wide enough that the
 * double rounding is exact for + - * / and sqrt).
 */
#include "codegen/cpu/llvm.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static LLVMBuilderRef B(const dlc_cpu *cpu)
{
    return cpu->builder;
}

static int is_half(dlc_dtype dtype)
{
    return dtype == DLC_F16 || dtype == DLC_BF16;
}

static LLVMTypeRef int_type(const dlc_cpu *cpu, uint32_t bits, uint32_t width)
{
    LLVMTypeRef type = LLVMIntTypeInContext(cpu->context, bits);
    return width > 1 ? LLVMVectorType(type, width) : type;
}

static LLVMTypeRef float_type(const dlc_cpu *cpu, uint32_t width)
{
    LLVMTypeRef type = LLVMFloatTypeInContext(cpu->context);
    return width > 1 ? LLVMVectorType(type, width) : type;
}

static LLVMValueRef int_const(const dlc_cpu *cpu, uint32_t bits, int64_t value, uint32_t width)
{
    return dlc_cpu_copies(LLVMConstInt(LLVMIntTypeInContext(cpu->context, bits), (uint64_t)value, 1), width);
}

dlc_val dlc_cpu_konst(dlc_emitter *e, dlc_dtype dtype, dlc_scalar value, uint32_t width)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    LLVMTypeRef type = dlc_cpu_type(cpu, dtype, 1);
    LLVMValueRef one = dlc_is_float(dtype) ? LLVMConstReal(type, value.f) : LLVMConstInt(type, (uint64_t)value.i, 1);
    if (dlc_is_float(dtype) && value.f != value.f) /* LLVMConstReal keeps a NaN but not reliably its sign */
        one = LLVMConstRealOfString(type, "nan");
    return dlc_wrap(dlc_cpu_copies(one, width));
}

dlc_val dlc_cpu_splat(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    (void)dtype;
    if (width == 1)
        return value;
    LLVMValueRef one = dlc_llvm(value);
    if (LLVMIsAConstantInt(one) || LLVMIsAConstantFP(one))
        return dlc_wrap(dlc_cpu_copies(one, width));
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(one), width);
    LLVMValueRef vector = LLVMBuildInsertElement(B(cpu), LLVMGetPoison(type), one, int_const(cpu, 32, 0, 1), "");
    return dlc_wrap(LLVMBuildShuffleVector(B(cpu), vector, LLVMGetPoison(type), int_const(cpu, 32, 0, width), ""));
}

static LLVMValueRef select_(const dlc_cpu *cpu, LLVMValueRef condition, LLVMValueRef yes, LLVMValueRef no)
{
    return LLVMBuildSelect(B(cpu), condition, yes, no, "");
}

static LLVMValueRef unary(dlc_cpu *cpu, const char *name, LLVMTypeRef type, LLVMValueRef value)
{
    return dlc_cpu_intrinsic(cpu, name, &type, 1, &value, 1);
}

/* --- half precision --- */

/* f32 to f16 bits (i32), half to even, without hardware: adding a magic float aligns the mantissa and rounds it. */
static LLVMValueRef f16_bits_by_hand(dlc_cpu *cpu, uint32_t w, LLVMValueRef value)
{
    LLVMTypeRef i32 = int_type(cpu, 32, w), f32 = float_type(cpu, w);
    LLVMValueRef bits = LLVMBuildBitCast(B(cpu), value, i32, "");
    LLVMValueRef sign = LLVMBuildAnd(B(cpu), bits, int_const(cpu, 32, (int64_t)0x80000000u, w), "");
    LLVMValueRef magnitude = LLVMBuildXor(B(cpu), bits, sign, "");
    LLVMValueRef is_big = LLVMBuildICmp(B(cpu), LLVMIntUGE, magnitude, int_const(cpu, 32, 0x47800000, w), "");
    LLVMValueRef is_nan = LLVMBuildICmp(B(cpu), LLVMIntUGT, magnitude, int_const(cpu, 32, 0x7f800000, w), "");
    LLVMValueRef is_small = LLVMBuildICmp(B(cpu), LLVMIntULT, magnitude, int_const(cpu, 32, 0x38800000, w), "");
    LLVMValueRef big = select_(cpu, is_nan, int_const(cpu, 32, 0x7e00, w), int_const(cpu, 32, 0x7c00, w));
    LLVMValueRef magic = int_const(cpu, 32, 0x3f000000, w); /* 0.5f: the ulp of a sum with it is f16's subnormal step */
    LLVMValueRef small = LLVMBuildFAdd(B(cpu), LLVMBuildBitCast(B(cpu), magnitude, f32, ""),
                                       LLVMBuildBitCast(B(cpu), magic, f32, ""), "");
    small = LLVMBuildSub(B(cpu), LLVMBuildBitCast(B(cpu), small, i32, ""), magic, "");
    LLVMValueRef odd = LLVMBuildAnd(B(cpu), LLVMBuildLShr(B(cpu), magnitude, int_const(cpu, 32, 13, w), ""),
                                    int_const(cpu, 32, 1, w), "");
    LLVMValueRef normal = LLVMBuildAdd(B(cpu), magnitude, int_const(cpu, 32, (int64_t)0xc8000fffu, w), "");
    normal = LLVMBuildLShr(B(cpu), LLVMBuildAdd(B(cpu), normal, odd, ""), int_const(cpu, 32, 13, w), "");
    LLVMValueRef result = select_(cpu, is_big, big, select_(cpu, is_small, small, normal));
    return LLVMBuildOr(B(cpu), result, LLVMBuildLShr(B(cpu), sign, int_const(cpu, 32, 16, w), ""), "");
}

static LLVMValueRef f16_float_by_hand(dlc_cpu *cpu, uint32_t w, LLVMValueRef bits)
{
    LLVMTypeRef i32 = int_type(cpu, 32, w), f32 = float_type(cpu, w);
    bits = LLVMBuildZExt(B(cpu), bits, i32, "");
    LLVMValueRef sign = LLVMBuildShl(B(cpu), LLVMBuildAnd(B(cpu), bits, int_const(cpu, 32, 0x8000, w), ""),
                                     int_const(cpu, 32, 16, w), "");
    LLVMValueRef rest = LLVMBuildShl(B(cpu), LLVMBuildAnd(B(cpu), bits, int_const(cpu, 32, 0x7fff, w), ""),
                                     int_const(cpu, 32, 13, w), "");
    LLVMValueRef exponent = LLVMBuildAnd(B(cpu), rest, int_const(cpu, 32, 0x7c00 << 13, w), "");
    LLVMValueRef normal = LLVMBuildAdd(B(cpu), rest, int_const(cpu, 32, (127 - 15) << 23, w), "");
    LLVMValueRef special = LLVMBuildAdd(B(cpu), normal, int_const(cpu, 32, (128 - 16) << 23, w), "");
    LLVMValueRef small = LLVMBuildAdd(B(cpu), normal, int_const(cpu, 32, 1 << 23, w), "");
    small = LLVMBuildFSub(B(cpu), LLVMBuildBitCast(B(cpu), small, f32, ""),
                          LLVMBuildBitCast(B(cpu), int_const(cpu, 32, 113 << 23, w), f32, ""), "");
    small = LLVMBuildBitCast(B(cpu), small, i32, "");
    LLVMValueRef is_special =
        LLVMBuildICmp(B(cpu), LLVMIntEQ, exponent, int_const(cpu, 32, 0x7c00 << 13, w), "");
    LLVMValueRef is_small = LLVMBuildICmp(B(cpu), LLVMIntEQ, exponent, int_const(cpu, 32, 0, w), "");
    LLVMValueRef result = select_(cpu, is_special, special, select_(cpu, is_small, small, normal));
    return LLVMBuildBitCast(B(cpu), LLVMBuildOr(B(cpu), result, sign, ""), f32, "");
}

static LLVMTypeRef half_type(const dlc_cpu *cpu, uint32_t width)
{
    LLVMTypeRef type = LLVMHalfTypeInContext(cpu->context);
    return width > 1 ? LLVMVectorType(type, width) : type;
}

static LLVMValueRef operand_of(LLVMValueRef value, LLVMOpcode op)
{
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == op ? LLVMGetOperand(value, 0) : NULL;
}

/* The 16 bits of bf16 that half_float made the float of, or NULL: LLVM does not see that rounding changes nothing in them. */
static LLVMValueRef bits_before(const dlc_cpu *cpu, uint32_t w, LLVMValueRef value)
{
    LLVMValueRef bits = operand_of(value, LLVMBitCast);
    bits = bits ? operand_of(bits, LLVMShl) : NULL;
    bits = bits ? operand_of(bits, LLVMZExt) : NULL;
    return bits && LLVMTypeOf(bits) == int_type(cpu, 16, w) ? bits : NULL;
}

/* A float register holding an f16 or bf16 value, as its 16 bits. `value` may still be unrounded. */
static LLVMValueRef half_bits(dlc_cpu *cpu, dlc_dtype dtype, uint32_t w, LLVMValueRef value)
{
    LLVMValueRef before = dtype == DLC_BF16 ? bits_before(cpu, w, value) : NULL;
    if (before)
        return before;
    LLVMTypeRef i16 = int_type(cpu, 16, w), i32 = int_type(cpu, 32, w);
    if (dtype == DLC_F16 && cpu->has_f16c)
        return LLVMBuildBitCast(B(cpu), LLVMBuildFPTrunc(B(cpu), value, half_type(cpu, w), ""), i16, "");
    if (dtype == DLC_F16)
        return LLVMBuildTrunc(B(cpu), f16_bits_by_hand(cpu, w, value), i16, "");
    LLVMValueRef bits = LLVMBuildBitCast(B(cpu), value, i32, "");
    LLVMValueRef upper = LLVMBuildLShr(B(cpu), bits, int_const(cpu, 32, 16, w), "");
    LLVMValueRef odd = LLVMBuildAnd(B(cpu), upper, int_const(cpu, 32, 1, w), "");
    LLVMValueRef rounded = LLVMBuildAdd(B(cpu), LLVMBuildAdd(B(cpu), bits, int_const(cpu, 32, 0x7fff, w), ""), odd, "");
    rounded = LLVMBuildLShr(B(cpu), rounded, int_const(cpu, 32, 16, w), "");
    LLVMValueRef quiet = LLVMBuildOr(B(cpu), upper, int_const(cpu, 32, 0x40, w), "");
    LLVMValueRef is_nan = LLVMBuildFCmp(B(cpu), LLVMRealUNO, value, value, "");
    cpu->rounded_from = value;
    cpu->is_flushed = 0;
    return cpu->rounded_bits = LLVMBuildTrunc(B(cpu), select_(cpu, is_nan, quiet, rounded), i16, "");
}

LLVMValueRef dlc_cpu_before_rounding(const dlc_cpu *cpu, uint32_t w, LLVMValueRef value, int *is_flushed)
{
    LLVMValueRef before = bits_before(cpu, w, value);
    *is_flushed = before && before == cpu->rounded_bits && cpu->is_flushed;
    return !before ? value : before == cpu->rounded_bits ? cpu->rounded_from : NULL;
}

static LLVMValueRef half_float(dlc_cpu *cpu, dlc_dtype dtype, uint32_t w, LLVMValueRef bits)
{
    if (dtype == DLC_F16 && cpu->has_f16c)
        return LLVMBuildFPExt(B(cpu), LLVMBuildBitCast(B(cpu), bits, half_type(cpu, w), ""), float_type(cpu, w), "");
    if (dtype == DLC_F16)
        return f16_float_by_hand(cpu, w, bits);
    bits = LLVMBuildZExt(B(cpu), bits, int_type(cpu, 32, w), "");
    bits = LLVMBuildShl(B(cpu), bits, int_const(cpu, 32, 16, w), "");
    return LLVMBuildBitCast(B(cpu), bits, float_type(cpu, w), "");
}

static LLVMValueRef rounded(dlc_cpu *cpu, dlc_dtype dtype, uint32_t w, LLVMValueRef value)
{
    return is_half(dtype) ? half_float(cpu, dtype, w, half_bits(cpu, dtype, w, value)) : value;
}

LLVMValueRef dlc_cpu_from_memory(dlc_cpu *cpu, dlc_dtype dtype, uint32_t width, LLVMValueRef value)
{
    if (dtype == DLC_BOOL)
        return LLVMBuildICmp(B(cpu), LLVMIntNE, value, int_const(cpu, 8, 0, width), "");
    return is_half(dtype) ? half_float(cpu, dtype, width, value) : value;
}

LLVMValueRef dlc_cpu_to_memory(dlc_cpu *cpu, dlc_dtype dtype, uint32_t width, LLVMValueRef value)
{
    if (dtype == DLC_BOOL)
        return LLVMBuildZExt(B(cpu), value, int_type(cpu, 8, width), "");
    return is_half(dtype) ? half_bits(cpu, dtype, width, value) : value;
}

/* --- integers --- */

static uint32_t bits_of(dlc_dtype dtype)
{
    return dtype == DLC_BOOL ? 1 : dlc_dtypes[dtype].bits;
}

/* A divisor that cannot trap: 1 in place of 0, and of -1 under the most negative dividend. */
static LLVMValueRef safe_divisor(dlc_cpu *cpu, dlc_dtype dtype, uint32_t w, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef *is_zero)
{
    uint32_t bits = bits_of(dtype);
    LLVMValueRef one = int_const(cpu, bits, 1, w);
    *is_zero = LLVMBuildICmp(B(cpu), LLVMIntEQ, b, int_const(cpu, bits, 0, w), "");
    LLVMValueRef bad = *is_zero;
    if (!dlc_is_unsigned(dtype)) {
        LLVMValueRef lowest = int_const(cpu, bits, (int64_t)(UINT64_MAX << (bits - 1)), w);
        LLVMValueRef overflow = LLVMBuildAnd(B(cpu), LLVMBuildICmp(B(cpu), LLVMIntEQ, a, lowest, ""),
                                             LLVMBuildICmp(B(cpu), LLVMIntEQ, b, int_const(cpu, bits, -1, w), ""), "");
        bad = LLVMBuildOr(B(cpu), bad, overflow, "");
    }
    return select_(cpu, bad, one, b);
}

static LLVMValueRef quotient(dlc_cpu *cpu, dlc_dtype dtype, LLVMValueRef a, LLVMValueRef b)
{
    return dlc_is_unsigned(dtype) ? LLVMBuildUDiv(B(cpu), a, b, "") : LLVMBuildSDiv(B(cpu), a, b, "");
}

/* The lanes' common constant, when there is one and it is positive. */
static int positive_const(LLVMValueRef value, uint32_t w, int64_t *constant)
{
    LLVMValueRef one = w > 1 && LLVMIsConstant(value) ? LLVMGetAggregateElement(value, 0) : value;
    if (!one || !LLVMIsAConstantInt(one))
        return 0;
    for (uint32_t i = 1; i < w; i++)
        if (LLVMGetAggregateElement(value, i) != one)
            return 0;
    *constant = LLVMConstIntGetSExtValue(one);
    return *constant > 0;
}

static LLVMValueRef floor_quotient(dlc_cpu *cpu, dlc_dtype dtype, uint32_t w, LLVMValueRef a, LLVMValueRef b,
                                   LLVMValueRef *is_zero)
{
    uint32_t bits = bits_of(dtype);
    int64_t constant;
    *is_zero = NULL;
    if (positive_const(b, w, &constant)) {
        if (dlc_is_unsigned(dtype) || constant == 1)
            return quotient(cpu, dtype, a, b);
        LLVMValueRef sign = LLVMBuildAShr(B(cpu), a, int_const(cpu, bits, bits - 1, w), "");
        /* (a ^ sign) / b ^ sign: complements turn truncation of negatives into flooring */
        LLVMValueRef flipped = LLVMBuildXor(B(cpu), a, sign, "");
        return LLVMBuildXor(B(cpu), LLVMBuildUDiv(B(cpu), flipped, b, ""), sign, "");
    }
    LLVMValueRef divisor = safe_divisor(cpu, dtype, w, a, b, is_zero);
    LLVMValueRef q = quotient(cpu, dtype, a, divisor);
    if (dlc_is_unsigned(dtype))
        return q;
    LLVMValueRef zero = int_const(cpu, bits, 0, w);
    LLVMValueRef r = LLVMBuildSub(B(cpu), a, LLVMBuildMul(B(cpu), q, divisor, ""), "");
    LLVMValueRef inexact = LLVMBuildICmp(B(cpu), LLVMIntNE, r, zero, "");
    LLVMValueRef opposite = LLVMBuildICmp(B(cpu), LLVMIntSLT, LLVMBuildXor(B(cpu), a, divisor, ""), zero, "");
    LLVMValueRef lower = LLVMBuildSub(B(cpu), q, int_const(cpu, bits, 1, w), "");
    return select_(cpu, LLVMBuildAnd(B(cpu), inexact, opposite, ""), lower, q);
}

static LLVMValueRef divide(dlc_cpu *cpu, dlc_expr_op op, dlc_dtype dtype, uint32_t w, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef zero = int_const(cpu, bits_of(dtype), 0, w), is_zero, result;
    if (op == DLC_EXPR_DIV || op == DLC_EXPR_REM) {
        LLVMValueRef divisor = safe_divisor(cpu, dtype, w, a, b, &is_zero);
        if (op == DLC_EXPR_REM)
            return dlc_is_unsigned(dtype) ? LLVMBuildURem(B(cpu), a, divisor, "")
                                          : LLVMBuildSRem(B(cpu), a, divisor, "");
        return select_(cpu, is_zero, zero, quotient(cpu, dtype, a, divisor));
    }
    result = floor_quotient(cpu, dtype, w, a, b, &is_zero);
    if (op == DLC_EXPR_MOD)
        result = LLVMBuildSub(B(cpu), a, LLVMBuildMul(B(cpu), result, b, ""), "");
    return is_zero ? select_(cpu, is_zero, zero, result) : result;
}

static LLVMValueRef shift(dlc_cpu *cpu, dlc_expr_op op, dlc_dtype dtype, uint32_t w, LLVMValueRef a, LLVMValueRef b)
{
    uint32_t bits = bits_of(dtype);
    LLVMValueRef last = int_const(cpu, bits, bits - 1, w), zero = int_const(cpu, bits, 0, w);
    LLVMValueRef inside = LLVMBuildICmp(B(cpu), LLVMIntULE, b, last, "");
    LLVMValueRef by = select_(cpu, inside, b, last);
    if (op == DLC_EXPR_SHR && !dlc_is_unsigned(dtype))
        return LLVMBuildAShr(B(cpu), a, by, "");
    LLVMValueRef moved = op == DLC_EXPR_SHL ? LLVMBuildShl(B(cpu), a, by, "") : LLVMBuildLShr(B(cpu), a, by, "");
    return select_(cpu, inside, moved, zero);
}

/* --- comparisons, minimum and maximum --- */

static LLVMValueRef compare(dlc_cpu *cpu, dlc_expr_op op, dlc_dtype dtype, LLVMValueRef a, LLVMValueRef b)
{
    int is_unsigned = dlc_is_unsigned(dtype) || dtype == DLC_BOOL;
    if (dlc_is_float(dtype)) {
        LLVMRealPredicate real = op == DLC_EXPR_LT   ? LLVMRealOLT
                                 : op == DLC_EXPR_LE ? LLVMRealOLE
                                 : op == DLC_EXPR_EQ ? LLVMRealOEQ
                                                     : LLVMRealUNE;
        return LLVMBuildFCmp(B(cpu), real, a, b, "");
    }
    LLVMIntPredicate predicate = op == DLC_EXPR_LT   ? (is_unsigned ? LLVMIntULT : LLVMIntSLT)
                                 : op == DLC_EXPR_LE ? (is_unsigned ? LLVMIntULE : LLVMIntSLE)
                                 : op == DLC_EXPR_EQ ? LLVMIntEQ
                                                     : LLVMIntNE;
    return LLVMBuildICmp(B(cpu), predicate, a, b, "");
}

static int is_splat(LLVMValueRef value, uint32_t w)
{
    if (!LLVMIsConstant(value))
        return 0;
    for (uint32_t i = 1; i < w; i++)
        if (LLVMGetAggregateElement(value, i) != LLVMGetAggregateElement(value, 0))
            return 0;
    return 1;
}

static int is_number(LLVMValueRef value, uint32_t w)
{
    LLVMBool loses;
    LLVMValueRef one = w > 1 && LLVMIsConstant(value) ? LLVMGetAggregateElement(value, 0) : value;
    if (!one || !LLVMIsAConstantFP(one))
        return 0;
    double number = LLVMConstRealGetDouble(one, &loses);
    return number == number;
}

/* With a number as the constant first operand this is one vminps or vmaxps, which then passes a NaN on. */
static LLVMValueRef extremum(dlc_cpu *cpu, dlc_expr_op op, dlc_dtype dtype, uint32_t w, LLVMValueRef a, LLVMValueRef b)
{
    if (!dlc_is_float(dtype))
        return select_(cpu, op == DLC_EXPR_MIN ? compare(cpu, DLC_EXPR_LT, dtype, a, b)
                                               : compare(cpu, DLC_EXPR_LT, dtype, b, a), a, b);
    LLVMValueRef first = LLVMBuildFCmp(B(cpu), op == DLC_EXPR_MIN ? LLVMRealOLT : LLVMRealOGT, a, b, "");
    LLVMValueRef result = select_(cpu, first, a, b);
    if (is_number(a, w))
        return result;
    return select_(cpu, LLVMBuildFCmp(B(cpu), LLVMRealUNO, a, a, ""), a, result);
}

/* --- casts --- */

/* f64 to f32 by rounding to odd, so that a further rounding to 16 bits is the only one that shows. */
static LLVMValueRef odd_float(dlc_cpu *cpu, uint32_t w, LLVMValueRef value)
{
    LLVMTypeRef f64 = dlc_cpu_type(cpu, DLC_F64, w), i32 = int_type(cpu, 32, w);
    LLVMValueRef near = LLVMBuildFPTrunc(B(cpu), value, float_type(cpu, w), "");
    LLVMValueRef back = LLVMBuildFPExt(B(cpu), near, f64, "");
    LLVMValueRef away = LLVMBuildFCmp(B(cpu), LLVMRealOGT, unary(cpu, "llvm.fabs", f64, back),
                                      unary(cpu, "llvm.fabs", f64, value), "");
    LLVMValueRef bits = LLVMBuildBitCast(B(cpu), near, i32, "");
    bits = LLVMBuildSub(B(cpu), bits, LLVMBuildZExt(B(cpu), away, i32, ""), "");
    LLVMValueRef inexact = LLVMBuildFCmp(B(cpu), LLVMRealUNE, back, value, "");
    bits = LLVMBuildOr(B(cpu), bits, LLVMBuildZExt(B(cpu), inexact, i32, ""), "");
    return LLVMBuildBitCast(B(cpu), bits, float_type(cpu, w), "");
}

static LLVMValueRef float_to_float(dlc_cpu *cpu, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    if (from == DLC_F64 && is_half(to))
        return rounded(cpu, to, w, odd_float(cpu, w, value));
    if (from == DLC_F64)
        return to == DLC_F64 ? value : LLVMBuildFPTrunc(B(cpu), value, float_type(cpu, w), "");
    if (to == DLC_F64)
        return LLVMBuildFPExt(B(cpu), value, dlc_cpu_type(cpu, DLC_F64, w), "");
    return from == to ? value : rounded(cpu, to, w, value);
}

/* Subnormals of f32 are zeros of their sign; the instruction that rounds to bf16 takes them for that by itself. */
static LLVMValueRef flushed_to_float(dlc_cpu *cpu, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    LLVMTypeRef one = dlc_cpu_type(cpu, from, 1);
    LLVMValueRef least = dlc_cpu_copies(LLVMConstReal(one, FLT_MIN), w), most = dlc_cpu_copies(LLVMConstReal(one, -FLT_MIN), w);
    LLVMValueRef is_small = LLVMBuildAnd(B(cpu), LLVMBuildFCmp(B(cpu), LLVMRealOLT, value, least, ""),
                                         LLVMBuildFCmp(B(cpu), LLVMRealOGT, value, most, ""), "");
    LLVMValueRef zero = LLVMBuildFMul(B(cpu), value, LLVMConstNull(LLVMTypeOf(value)), "");
    LLVMValueRef result = float_to_float(cpu, from, to, w, select_(cpu, is_small, zero, value));
    if (from == DLC_F32 && to == DLC_BF16) {
        cpu->rounded_from = value;
        cpu->is_flushed = 1;
    }
    return result;
}

/* What lies outside of [least, greatest] is brought to its ends; NaN to `least`. */
static LLVMValueRef limited(dlc_cpu *cpu, dlc_dtype dtype, uint32_t w, LLVMValueRef value, double least, double greatest)
{
    LLVMTypeRef one = dlc_cpu_type(cpu, dtype, 1);
    LLVMValueRef low = dlc_cpu_copies(LLVMConstReal(one, least), w), high = dlc_cpu_copies(LLVMConstReal(one, greatest), w);
    value = select_(cpu, LLVMBuildFCmp(B(cpu), LLVMRealOGT, value, low, ""), value, low);
    return select_(cpu, LLVMBuildFCmp(B(cpu), LLVMRealOLT, value, high, ""), value, high);
}

/* Vectors are limited to the type before the conversion, which is then one instruction. Where the type's greatest integer is no
 * float, what is above the greatest float below it is told apart. */
static LLVMValueRef vector_to_int(dlc_cpu *cpu, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    uint32_t bits = bits_of(to), kept = bits - !dlc_is_unsigned(to), precision = from == DLC_F64 ? DBL_MANT_DIG : FLT_MANT_DIG;
    double end = ldexp(1, (int)kept), most = end - ldexp(1, kept > precision ? (int)(kept - precision) : 0);
    LLVMTypeRef wide = int_type(cpu, bits < 32 ? 32 : bits, w);
    LLVMValueRef is_nan = LLVMBuildFCmp(B(cpu), LLVMRealUNO, value, value, ""), number = value, result;
    if (!dlc_is_unsigned(to))
        number = select_(cpu, is_nan, LLVMConstNull(LLVMTypeOf(value)), value);
    number = limited(cpu, from, w, number, dlc_is_unsigned(to) ? 0 : -end, most);
    if (dlc_is_unsigned(to) && bits >= 32)
        result = LLVMBuildFPToUI(B(cpu), number, wide, "");
    else
        result = LLVMBuildFPToSI(B(cpu), number, wide, "");
    if (bits < 32)
        return LLVMBuildTrunc(B(cpu), result, int_type(cpu, bits, w), "");
    if (kept <= precision)
        return result;
    LLVMValueRef greatest = dlc_cpu_copies(LLVMConstReal(dlc_cpu_type(cpu, from, 1), most), w);
    LLVMValueRef is_above = LLVMBuildFCmp(B(cpu), LLVMRealOGT, value, greatest, "");
    return select_(cpu, is_above, int_const(cpu, bits, (int64_t)(UINT64_MAX >> (64 - kept)), w), result);
}

/* x of value = rint(x) + shift with a whole shift that a float's sum with a byte or short keeps; NULL: it is not known to be one. */
static LLVMValueRef rounded_operand(LLVMValueRef value, uint32_t w, double *shift)
{
    enum { MOST_SHIFT = 1 << 16 };
    const char *name = "llvm.roundeven";
    LLVMBool loses;
    *shift = 0;
    if (LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMFAdd) {
        LLVMValueRef added = LLVMGetOperand(value, 1);
        if (!is_number(added, w) || !is_splat(added, w))
            return NULL;
        *shift = LLVMConstRealGetDouble(LLVMGetAggregateElement(added, 0), &loses);
        value = LLVMGetOperand(value, 0);
    }
    if (!(fabs(*shift) <= MOST_SHIFT) || *shift != rint(*shift) || !LLVMIsAInstruction(value) ||
        LLVMGetInstructionOpcode(value) != LLVMCall)
        return NULL;
    unsigned rounds = LLVMLookupIntrinsicID(name, strlen(name));
    return LLVMGetIntrinsicID(LLVMGetCalledValue(value)) == rounds ? LLVMGetOperand(value, 0) : NULL;
}

/*
 * rint(x) + shift as unsigned bytes by AVX-512: what is too large for an integer becomes 2^31, which saturates as any large number does,
 * so that one limit is enough. Above 2^31 - shift the sum wraps to no less than 2^31 either.
 */
static LLVMValueRef rounded_to_byte(dlc_cpu *cpu, uint32_t w, LLVMValueRef x, double shift)
{
    enum { EMBEDDED = 4 }; /* the mode of rounding that the processor is in: half to even */
    LLVMTypeRef f32 = float_type(cpu, 1), i32 = int_type(cpu, 32, w);
    LLVMValueRef low = dlc_cpu_copies(LLVMConstReal(f32, -shift), w), is_more = LLVMBuildFCmp(B(cpu), LLVMRealOGT, x, low, "");
    x = select_(cpu, is_more, x, low);
    LLVMValueRef args[] = {x, LLVMConstNull(i32), LLVMConstAllOnes(int_type(cpu, w, 1)), int_const(cpu, 32, EMBEDDED, 1)};
    LLVMValueRef whole = dlc_cpu_intrinsic(cpu, "llvm.x86.avx512.mask.cvtps2dq.512", NULL, 0, args, 4);
    if (shift != 0)
        whole = LLVMBuildAdd(B(cpu), whole, int_const(cpu, 32, (int64_t)shift, w), "");
    LLVMValueRef limits[] = {whole, int_const(cpu, 32, UINT8_MAX, w)};
    whole = dlc_cpu_intrinsic(cpu, "llvm.umin", &i32, 1, limits, 2);
    return LLVMBuildTrunc(B(cpu), whole, int_type(cpu, 8, w), "");
}

/* rint(x) + shift as bytes or shorts: limited first, so that adding a number above which floats are whole rounds x, half to even,
 * and leaves what it is in the register's low bits. */
static LLVMValueRef rounded_to_int(dlc_cpu *cpu, dlc_dtype to, uint32_t w, LLVMValueRef x, double shift)
{
    const double magic = 0x1.8p23; /* between two powers of two, so that below it floats are whole as far as above */
    LLVMTypeRef f32 = float_type(cpu, 1);
    uint32_t bits = bits_of(to), kept = bits - !dlc_is_unsigned(to);
    double least = dlc_is_unsigned(to) ? 0 : -ldexp(1, (int)kept), greatest = ldexp(1, (int)kept) - 1;
    if (least) { /* of NaN comes 0 */
        LLVMValueRef is_nan = LLVMBuildFCmp(B(cpu), LLVMRealUNO, x, x, "");
        x = select_(cpu, is_nan, dlc_cpu_copies(LLVMConstReal(f32, -shift), w), x);
    }
    x = limited(cpu, DLC_F32, w, x, least - shift, greatest - shift);
    x = LLVMBuildFAdd(B(cpu), x, dlc_cpu_copies(LLVMConstReal(f32, magic), w), "");
    LLVMValueRef whole = LLVMBuildBitCast(B(cpu), x, int_type(cpu, 32, w), "");
    if (shift != 0)
        whole = LLVMBuildAdd(B(cpu), whole, int_const(cpu, 32, (int64_t)shift, w), "");
    return LLVMBuildTrunc(B(cpu), whole, int_type(cpu, bits, w), "");
}

static LLVMValueRef float_to_int(dlc_cpu *cpu, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    LLVMTypeRef types[] = {dlc_cpu_type(cpu, to, w), dlc_cpu_type(cpu, from, w)};
    double shift;
    int is_zmm = w == 16 && dlc_cpu_is_avx512(cpu);
    LLVMValueRef x = w > 1 && from == DLC_F32 && bits_of(to) <= 16 ? rounded_operand(value, w, &shift) : NULL;
    if (x) {
        value = is_zmm && to == DLC_U8 && shift >= 0 ? rounded_to_byte(cpu, w, x, shift) : rounded_to_int(cpu, to, w, x, shift);
        cpu->rounded_byte = value;
        cpu->byte_from = x;
        cpu->byte_shift = shift;
        return value;
    }
    if (w > 1)
        return vector_to_int(cpu, from, to, w, value);
    return dlc_cpu_intrinsic(cpu, dlc_is_unsigned(to) ? "llvm.fptoui.sat" : "llvm.fptosi.sat", types, 2, &value, 1);
}

static LLVMValueRef clamp_int(dlc_cpu *cpu, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    uint32_t have = bits_of(from), want = bits_of(to);
    int wide = have > want, from_unsigned = dlc_is_unsigned(from), to_unsigned = dlc_is_unsigned(to);
    LLVMTypeRef type = dlc_cpu_type(cpu, from, w);
    if (!from_unsigned && to_unsigned) {
        LLVMValueRef args[] = {value, int_const(cpu, have, 0, w)};
        value = dlc_cpu_intrinsic(cpu, "llvm.smax", &type, 1, args, 2);
    }
    if (wide || (have == want && from_unsigned && !to_unsigned)) {
        uint64_t max = UINT64_MAX >> (64 - want + (to_unsigned ? 0 : 1));
        LLVMValueRef args[] = {value, int_const(cpu, have, (int64_t)max, w)};
        value = dlc_cpu_intrinsic(cpu, from_unsigned ? "llvm.umin" : "llvm.smin", &type, 1, args, 2);
    }
    if (wide && !from_unsigned && !to_unsigned) {
        LLVMValueRef args[] = {value, int_const(cpu, have, -((int64_t)1 << (want - 1)), w)};
        value = dlc_cpu_intrinsic(cpu, "llvm.smax", &type, 1, args, 2);
    }
    return value;
}

static LLVMValueRef int_to_int(dlc_cpu *cpu, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    LLVMTypeRef type = dlc_cpu_type(cpu, to, w);
    uint32_t have = bits_of(from), want = bits_of(to);
    if (have == want)
        return value;
    if (have > want)
        return LLVMBuildTrunc(B(cpu), value, type, "");
    return dlc_is_unsigned(from) || from == DLC_BOOL ? LLVMBuildZExt(B(cpu), value, type, "")
                                                     : LLVMBuildSExt(B(cpu), value, type, "");
}

static LLVMValueRef int_to_float(dlc_cpu *cpu, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    int is_unsigned = dlc_is_unsigned(from) || from == DLC_BOOL;
    if (is_half(to) && bits_of(from) > 16) { /* through f64 and one visible rounding; 64-bit integers round there too */
        LLVMTypeRef f64 = dlc_cpu_type(cpu, DLC_F64, w);
        value = is_unsigned ? LLVMBuildUIToFP(B(cpu), value, f64, "") : LLVMBuildSIToFP(B(cpu), value, f64, "");
        return float_to_float(cpu, DLC_F64, to, w, value);
    }
    LLVMTypeRef type = dlc_cpu_type(cpu, to, w);
    value = is_unsigned ? LLVMBuildUIToFP(B(cpu), value, type, "") : LLVMBuildSIToFP(B(cpu), value, type, "");
    return rounded(cpu, to, w, value);
}

static LLVMValueRef cast(dlc_cpu *cpu, dlc_expr_op op, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    if (from == to)
        return value;
    if (to == DLC_BOOL)
        return dlc_is_float(from)
                   ? LLVMBuildFCmp(B(cpu), LLVMRealUNE, value, LLVMConstNull(LLVMTypeOf(value)), "")
                   : LLVMBuildICmp(B(cpu), LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
    if (op == DLC_EXPR_CAST_FTZ && dlc_is_float(from) && dlc_is_float(to))
        return flushed_to_float(cpu, from, to, w, value);
    if (dlc_is_float(from))
        return dlc_is_float(to) ? float_to_float(cpu, from, to, w, value) : float_to_int(cpu, from, to, w, value);
    if (dlc_is_float(to))
        return int_to_float(cpu, from, to, w, value);
    if (op == DLC_EXPR_CAST_SAT && from != DLC_BOOL)
        value = clamp_int(cpu, from, to, w, value);
    return int_to_int(cpu, from, to, w, value);
}

static LLVMValueRef bitcast(dlc_cpu *cpu, dlc_dtype from, dlc_dtype to, uint32_t w, LLVMValueRef value)
{
    LLVMValueRef bits = dlc_cpu_to_memory(cpu, from, w, value);
    bits = LLVMBuildBitCast(B(cpu), bits, dlc_cpu_memory_type(cpu, to, w), "");
    return dlc_cpu_from_memory(cpu, to, w, bits);
}

/* --- fused multiply-add without the instruction --- */

/* a*b is exact in f64; the sum is rounded to odd there, so the last rounding to f32 is the only one. */
static LLVMValueRef fma_f32_by_hand(dlc_cpu *cpu, uint32_t w, const LLVMValueRef *args)
{
    LLVMTypeRef f64 = dlc_cpu_type(cpu, DLC_F64, w), i64 = int_type(cpu, 64, w);
    LLVMValueRef wide[3];
    for (uint32_t i = 0; i < 3; i++)
        wide[i] = LLVMBuildFPExt(B(cpu), args[i], f64, "");
    LLVMValueRef p = LLVMBuildFMul(B(cpu), wide[0], wide[1], ""), c = wide[2];
    LLVMValueRef sum = LLVMBuildFAdd(B(cpu), p, c, "");
    LLVMValueRef t = LLVMBuildFSub(B(cpu), sum, p, ""); /* two-sum */
    LLVMValueRef error = LLVMBuildFAdd(B(cpu), LLVMBuildFSub(B(cpu), p, LLVMBuildFSub(B(cpu), sum, t, ""), ""),
                                       LLVMBuildFSub(B(cpu), c, t, ""), "");
    LLVMValueRef zero = LLVMConstNull(f64);
    LLVMValueRef bits = LLVMBuildBitCast(B(cpu), sum, i64, "");
    LLVMValueRef inexact = LLVMBuildFCmp(B(cpu), LLVMRealONE, error, zero, "");
    LLVMValueRef signs = LLVMBuildXor(B(cpu), LLVMBuildBitCast(B(cpu), error, i64, ""), bits, "");
    LLVMValueRef shrink = LLVMBuildICmp(B(cpu), LLVMIntSLT, signs, int_const(cpu, 64, 0, w), "");
    LLVMValueRef even = LLVMBuildICmp(B(cpu), LLVMIntEQ,
                                      LLVMBuildAnd(B(cpu), bits, int_const(cpu, 64, 1, w), ""),
                                      int_const(cpu, 64, 0, w), "");
    LLVMValueRef step = select_(cpu, shrink, int_const(cpu, 64, -1, w), int_const(cpu, 64, 1, w));
    LLVMValueRef adjust = LLVMBuildAnd(B(cpu), inexact, even, "");
    bits = LLVMBuildAdd(B(cpu), bits, select_(cpu, adjust, step, int_const(cpu, 64, 0, w)), "");
    return LLVMBuildFPTrunc(B(cpu), LLVMBuildBitCast(B(cpu), bits, f64, ""), float_type(cpu, w), "");
}

/* Upper half of a's fraction, so that products of halves are exact (Dekker 1971). */
static LLVMValueRef upper_half(dlc_cpu *cpu, uint32_t w, LLVMValueRef a)
{
    LLVMTypeRef f64 = dlc_cpu_type(cpu, DLC_F64, w), i64 = int_type(cpu, 64, w);
    LLVMValueRef bits = LLVMBuildBitCast(B(cpu), a, i64, "");
    bits = LLVMBuildAnd(B(cpu), bits, int_const(cpu, 64, (int64_t)0xfffffffff8000000u, w), "");
    return LLVMBuildBitCast(B(cpu), bits, f64, "");
}

/* a*b as an exact sum of two doubles, then c added from the large end: exact where the result is representable and a*b neither
 * overflows nor loses bits below the least double, as the long division that uses it sees to. */
static LLVMValueRef fma_f64_by_hand(dlc_cpu *cpu, uint32_t w, const LLVMValueRef *args)
{
    LLVMValueRef a = args[0], b = args[1], ah = upper_half(cpu, w, a), bh = upper_half(cpu, w, b);
    LLVMValueRef al = LLVMBuildFSub(B(cpu), a, ah, ""), bl = LLVMBuildFSub(B(cpu), b, bh, "");
    LLVMValueRef p = LLVMBuildFMul(B(cpu), a, b, "");
    LLVMValueRef e = LLVMBuildFSub(B(cpu), LLVMBuildFMul(B(cpu), ah, bh, ""), p, "");
    e = LLVMBuildFAdd(B(cpu), e, LLVMBuildFMul(B(cpu), ah, bl, ""), "");
    e = LLVMBuildFAdd(B(cpu), e, LLVMBuildFMul(B(cpu), al, bh, ""), "");
    e = LLVMBuildFAdd(B(cpu), e, LLVMBuildFMul(B(cpu), al, bl, ""), "");
    return LLVMBuildFAdd(B(cpu), LLVMBuildFAdd(B(cpu), p, args[2], ""), e, "");
}

static LLVMValueRef mul_add(dlc_cpu *cpu, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    return LLVMBuildFAdd(B(cpu), LLVMBuildFMul(B(cpu), a, b, ""), c, "");
}

static LLVMValueRef fused(dlc_cpu *cpu, dlc_expr_op op, dlc_dtype dtype, uint32_t w, LLVMValueRef *args)
{
    LLVMTypeRef type = dlc_cpu_type(cpu, dtype, w);
    if (cpu->base.target->facts & DLC_HAS_FMA)
        return rounded(cpu, dtype, w, dlc_cpu_intrinsic(cpu, "llvm.fma", &type, 1, args, 3));
    if (op == DLC_EXPR_FMA && dtype == DLC_F32)
        return fma_f32_by_hand(cpu, w, args);
    if (op == DLC_EXPR_FMA && dtype == DLC_F64)
        return fma_f64_by_hand(cpu, w, args);
    return rounded(cpu, dtype, w, mul_add(cpu, args[0], args[1], args[2]));
}

/* --- powers of two --- */

/* n lanes from that one on; those behind the last are not looked at. */
static LLVMValueRef lanes_from(const dlc_cpu *cpu, LLVMValueRef vector, uint32_t from, uint32_t n)
{
    LLVMValueRef lanes[256], poison = LLVMGetPoison(int_type(cpu, 32, 1));
    uint32_t have = LLVMGetVectorSize(LLVMTypeOf(vector));
    for (uint32_t i = 0; i < n; i++)
        lanes[i] = from + i < have ? int_const(cpu, 32, from + i, 1) : poison;
    return LLVMBuildShuffleVector(B(cpu), vector, LLVMGetPoison(LLVMTypeOf(vector)), LLVMConstVector(lanes, n), "");
}

static LLVMValueRef scaled_vector(dlc_cpu *cpu, dlc_dtype dtype, uint32_t w, LLVMValueRef a, LLVMValueRef b)
{
    enum { EMBEDDED = 4 }; /* the mode of rounding that the processor is in */
    char name[64];
    uint32_t bits = w * dlc_dtypes[dtype].bits;
    uint32_t nmask = w < 8 ? 8 : w;
    snprintf(name, sizeof name, "llvm.x86.avx512.mask.scalef.%s.%u", dtype == DLC_F32 ? "ps" : "pd", bits);
    LLVMValueRef args[] = {a, b, a, LLVMConstAllOnes(int_type(cpu, nmask, 1)), int_const(cpu, 32, EMBEDDED, 1)};
    return dlc_cpu_intrinsic(cpu, name, NULL, 0, args, bits == 512 ? 5 : 4);
}

/* a 2^b by AVX-512, register by register; of other widths by vectors of the next greater one. */
static LLVMValueRef scaled(dlc_cpu *cpu, dlc_dtype dtype, uint32_t w, LLVMValueRef a, LLVMValueRef b)
{
    enum { LEAST_BITS = 128, MOST_BITS = 512 };
    uint32_t most = MOST_BITS / dlc_dtypes[dtype].bits, whole = LEAST_BITS / dlc_dtypes[dtype].bits;
    LLVMValueRef zero = int_const(cpu, 32, 0, 1), result = NULL;
    if (w == 1) {
        LLVMValueRef none = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(a), whole));
        a = LLVMBuildInsertElement(B(cpu), none, a, zero, "");
        b = LLVMBuildInsertElement(B(cpu), none, b, zero, "");
        return LLVMBuildExtractElement(B(cpu), scaled_vector(cpu, dtype, whole, a, b), zero, "");
    }
    while (whole < w && whole < most)
        whole *= 2;
    if (whole == w)
        return scaled_vector(cpu, dtype, w, a, b);
    result = LLVMGetPoison(LLVMTypeOf(a));
    for (uint32_t i = 0; i < w; i += whole) {
        LLVMValueRef part = scaled_vector(cpu, dtype, whole, lanes_from(cpu, a, i, whole), lanes_from(cpu, b, i, whole));
        LLVMValueRef lanes[256];
        for (uint32_t l = 0; l < w; l++)
            lanes[l] = int_const(cpu, 32, l >= i && l < i + whole ? w + l - i : l, 1);
        result = LLVMBuildShuffleVector(B(cpu), result, lanes_from(cpu, part, 0, w), LLVMConstVector(lanes, w), "");
    }
    return result;
}

/* --- the table's function --- */

static LLVMValueRef float_arith(dlc_cpu *cpu, dlc_expr_op op, dlc_dtype dtype, uint32_t w, LLVMValueRef *args)
{
    LLVMTypeRef type = dlc_cpu_type(cpu, dtype, w);
    switch (op) {
    case DLC_EXPR_ADD:
        return LLVMBuildFAdd(B(cpu), args[0], args[1], "");
    case DLC_EXPR_SUB:
        return LLVMBuildFSub(B(cpu), args[0], args[1], "");
    case DLC_EXPR_MUL:
        return LLVMBuildFMul(B(cpu), args[0], args[1], "");
    case DLC_EXPR_DIV: /* LLVM 19 takes lanes of known zeros for zero when divided, too, and drops what masks the NaN */
        return LLVMBuildFDiv(B(cpu), w > 1 ? unary(cpu, "llvm.arithmetic.fence", type, args[0]) : args[0], args[1], "");
    case DLC_EXPR_NEG:
        return LLVMBuildFNeg(B(cpu), args[0], "");
    case DLC_EXPR_ABS:
        return unary(cpu, "llvm.fabs", type, args[0]);
    case DLC_EXPR_FLOOR:
        return unary(cpu, "llvm.floor", type, args[0]);
    case DLC_EXPR_CEIL:
        return unary(cpu, "llvm.ceil", type, args[0]);
    case DLC_EXPR_RINT:
        return unary(cpu, "llvm.roundeven", type, args[0]);
    case DLC_EXPR_TRUNC:
        return unary(cpu, "llvm.trunc", type, args[0]);
    case DLC_EXPR_SQRT:
        return unary(cpu, "llvm.sqrt", type, args[0]);
    case DLC_EXPR_SCALE:
        return scaled(cpu, dtype, w, args[0], args[1]);
    default:
        assert(!"an elementary function that ir/expr/expand.c left in place");
        return NULL;
    }
}

/* A sum's terms are a chain of additions. LLVM's analysis of loops takes sums apart, each again for the next: time in their cube. It does
 * not look behind `freeze`, which costs nothing, so a part of so many terms is one term to it. Only sizes of many inputs come so far. */
enum { MOST_ADDITIONS = 16 };

static int is_long_sum(LLVMValueRef value)
{
    uint32_t n = 0;
    while (n < MOST_ADDITIONS && LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMAdd) {
        value = LLVMGetOperand(value, 0);
        n++;
    }
    return n == MOST_ADDITIONS;
}

static LLVMValueRef int_add(dlc_cpu *cpu, LLVMValueRef *args)
{
    LLVMValueRef sum = LLVMBuildAdd(B(cpu), args[0], args[1], "");
    return is_long_sum(sum) ? LLVMBuildFreeze(B(cpu), sum, "") : sum;
}

static LLVMValueRef int_arith(dlc_cpu *cpu, dlc_expr_op op, dlc_dtype dtype, uint32_t w, LLVMValueRef *args)
{
    LLVMTypeRef type = dlc_cpu_type(cpu, dtype, w);
    switch (op) {
    case DLC_EXPR_ADD:
        return int_add(cpu, args);
    case DLC_EXPR_SUB:
        return LLVMBuildSub(B(cpu), args[0], args[1], "");
    case DLC_EXPR_MUL:
        return LLVMBuildMul(B(cpu), args[0], args[1], "");
    case DLC_EXPR_MULADD:
        return LLVMBuildAdd(B(cpu), LLVMBuildMul(B(cpu), args[0], args[1], ""), args[2], "");
    case DLC_EXPR_NEG:
        return LLVMBuildNeg(B(cpu), args[0], "");
    case DLC_EXPR_ABS: {
        if (dlc_is_unsigned(dtype) || dtype == DLC_BOOL)
            return args[0];
        LLVMValueRef with_flag[] = {args[0], LLVMConstInt(LLVMInt1TypeInContext(cpu->context), 0, 0)};
        return dlc_cpu_intrinsic(cpu, "llvm.abs", &type, 1, with_flag, 2);
    }
    case DLC_EXPR_DIV:
    case DLC_EXPR_REM:
    case DLC_EXPR_FLOORDIV:
    case DLC_EXPR_MOD:
        return divide(cpu, op, dtype, w, args[0], args[1]);
    case DLC_EXPR_SHL:
    case DLC_EXPR_SHR:
        return shift(cpu, op, dtype, w, args[0], args[1]);
    case DLC_EXPR_AND:
        return LLVMBuildAnd(B(cpu), args[0], args[1], "");
    case DLC_EXPR_OR:
        return LLVMBuildOr(B(cpu), args[0], args[1], "");
    case DLC_EXPR_XOR:
        return LLVMBuildXor(B(cpu), args[0], args[1], "");
    case DLC_EXPR_NOT:
        return LLVMBuildNot(B(cpu), args[0], "");
    default:
        assert(!"not an integer operation");
        return NULL;
    }
}

/* Nothing is stored between the load and where code is added now. */
static int is_still_there(const dlc_cpu *cpu, LLVMValueRef load)
{
    enum { MOST_BETWEEN = 64 };
    LLVMValueRef i = load;
    if (!LLVMIsALoadInst(load) || LLVMGetInstructionParent(load) != LLVMGetInsertBlock(cpu->builder))
        return 0;
    for (int n = 0; n < MOST_BETWEEN; n++) {
        i = LLVMGetNextInstruction(i);
        if (!i)
            return 1;
        if (LLVMIsAStoreInst(i) || LLVMIsACallInst(i))
            return 0;
    }
    return 0;
}

/* One of two vectors that lie in memory, the same one for all lanes: one load of where it lies. A load of both would be merged by a mask,
 * and masked loads are not fetched ahead: copies out of memory went at half the rate. */
static LLVMValueRef chosen(const dlc_cpu *cpu, LLVMValueRef condition, LLVMValueRef yes, LLVMValueRef no)
{
    LLVMValueRef all = dlc_cpu_copied_to_lanes(condition);
    if (!all || !is_still_there(cpu, yes) || !is_still_there(cpu, no))
        return select_(cpu, condition, yes, no);
    unsigned a = LLVMGetAlignment(yes), b = LLVMGetAlignment(no);
    LLVMValueRef at = LLVMBuildSelect(cpu->builder, all, LLVMGetOperand(yes, 0), LLVMGetOperand(no, 0), "");
    LLVMValueRef value = LLVMBuildLoad2(cpu->builder, LLVMTypeOf(yes), at, "");
    LLVMSetAlignment(value, a < b ? a : b);
    return value;
}

dlc_val dlc_cpu_arith(dlc_emitter *e, dlc_expr_op op, dlc_dtype from, dlc_dtype to, uint32_t w, const dlc_val *values)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    LLVMValueRef args[3] = {0}, result;
    for (int i = 0; i < dlc_exprs[op].nargs; i++)
        args[i] = dlc_llvm(values[i]);
    switch (op) {
    case DLC_EXPR_LT:
    case DLC_EXPR_LE:
    case DLC_EXPR_EQ:
    case DLC_EXPR_NE:
        result = compare(cpu, op, from, args[0], args[1]);
        break;
    case DLC_EXPR_SELECT:
        result = chosen(cpu, args[0], args[1], args[2]);
        break;
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
        result = extremum(cpu, op, from, w, args[0], args[1]);
        break;
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_SAT:
    case DLC_EXPR_CAST_FTZ:
        result = cast(cpu, op, from, to, w, args[0]);
        break;
    case DLC_EXPR_BITCAST:
        result = bitcast(cpu, from, to, w, args[0]);
        break;
    default:
        if (!dlc_is_float(from))
            result = int_arith(cpu, op, from, w, args);
        else if (op == DLC_EXPR_FMA || op == DLC_EXPR_MULADD)
            result = fused(cpu, op, from, w, args);
        else
            result = rounded(cpu, from, w, float_arith(cpu, op, from, w, args));
    }
    return dlc_wrap(result);
}

/*
 * Between which numbers the lanes of a vector of f32 lie, as the instructions that made it tell, and what the kernel states of constants.
 * (Moore, Kearfott and Cloud, Introduction to Interval Analysis, 2009, section 2.3.) Ends are not rounded outwards: those who ask leave room, and nothing is known of what is computed of
 * large numbers, which may overflow, and round by more than that room.
 */
#include "codegen/cpu/llvm.h"

#include <math.h>
#include <string.h>

enum { MOST_DEEP = 16 };
#define LARGEST 0x1p40 /* of what is computed with: rounding it takes 2^16 at most */

/* is_number: no lane is NaN. What is not known of lies anywhere. */
typedef struct {
    double low, high;
    int is_number;
} bounds;

static bounds any(void)
{
    return (bounds){-INFINITY, INFINITY, 0};
}

static int is_moderate(bounds a)
{
    return a.is_number && fabs(a.low) <= LARGEST && fabs(a.high) <= LARGEST;
}

static bounds sum_of(bounds a, bounds b)
{
    return is_moderate(a) && is_moderate(b) ? (bounds){a.low + b.low, a.high + b.high, 1} : any();
}

static bounds product_of(bounds a, bounds b)
{
    if (!is_moderate(a) || !is_moderate(b))
        return any();
    double corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    bounds all = {corners[0], corners[0], 1};
    for (int i = 1; i < 4; i++) {
        all.low = fmin(all.low, corners[i]);
        all.high = fmax(all.high, corners[i]);
    }
    return all;
}

static bounds of_constant(LLVMValueRef value, uint32_t lanes)
{
    bounds all = {INFINITY, -INFINITY, 1};
    for (uint32_t i = 0; i < lanes; i++) {
        LLVMValueRef lane = LLVMGetAggregateElement(value, i);
        LLVMBool loses;
        double number = lane && LLVMIsAConstantFP(lane) ? LLVMConstRealGetDouble(lane, &loses) : NAN;
        if (number != number)
            return any();
        all.low = fmin(all.low, number);
        all.high = fmax(all.high, number);
    }
    return all;
}

/* Of integers, which may be narrower ones widened. */
static bounds of_integers(LLVMValueRef value, int is_signed)
{
    LLVMOpcode op = LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : 0;
    if (op == LLVMZExt || (op == LLVMSExt && is_signed)) {
        is_signed = op == LLVMSExt;
        value = LLVMGetOperand(value, 0);
    }
    int bits = (int)LLVMGetIntTypeWidth(LLVMGetElementType(LLVMTypeOf(value)));
    return (bounds){is_signed ? -ldexp(1, bits - 1) : 0, ldexp(1, bits - is_signed), 1};
}

static bounds bounds_of(const dlc_cpu *cpu, LLVMValueRef value, uint32_t lanes, int deep);

/* The sum or product of the instruction's first two operands. */
static bounds of_both(const dlc_cpu *cpu, LLVMValueRef value, bounds (*combined)(bounds a, bounds b), uint32_t lanes, int deep)
{
    bounds a = bounds_of(cpu, LLVMGetOperand(value, 0), lanes, deep);
    return is_moderate(a) ? combined(a, bounds_of(cpu, LLVMGetOperand(value, 1), lanes, deep)) : any();
}

static bounds difference_of(bounds a, bounds b)
{
    return sum_of(a, (bounds){-b.high, -b.low, b.is_number});
}

/* a < b ? a : b or a < b ? b : a, which take b where one of them is NaN; the first is the less, the other the greater. */
static bounds of_select(const dlc_cpu *cpu, LLVMValueRef select, uint32_t lanes, int deep)
{
    LLVMValueRef condition = LLVMGetOperand(select, 0), yes = LLVMGetOperand(select, 1), no = LLVMGetOperand(select, 2);
    if (!LLVMIsAFCmpInst(condition))
        return any();
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(condition);
    LLVMValueRef less = LLVMGetOperand(condition, predicate == LLVMRealOGT), more = LLVMGetOperand(condition, predicate != LLVMRealOGT);
    if ((predicate != LLVMRealOLT && predicate != LLVMRealOGT) || !((yes == less && no == more) || (yes == more && no == less)))
        return any();
    bounds a = bounds_of(cpu, yes, lanes, deep), b = bounds_of(cpu, no, lanes, deep);
    if (!b.is_number)
        return any();
    return yes == less ? (bounds){fmin(a.low, b.low), b.high, 1} : (bounds){b.low, fmax(a.high, b.high), 1};
}

static bounds of_call(const dlc_cpu *cpu, LLVMValueRef call, uint32_t lanes, int deep)
{
    unsigned called = LLVMGetIntrinsicID(LLVMGetCalledValue(call));
    if (called == LLVMLookupIntrinsicID("llvm.fma", strlen("llvm.fma"))) {
        bounds product = of_both(cpu, call, product_of, lanes, deep);
        return is_moderate(product) ? sum_of(product, bounds_of(cpu, LLVMGetOperand(call, 2), lanes, deep)) : any();
    }
    if (called != LLVMLookupIntrinsicID("llvm.roundeven", strlen("llvm.roundeven")))
        return any();
    bounds a = bounds_of(cpu, LLVMGetOperand(call, 0), lanes, deep);
    return (bounds){a.low - 1, a.high + 1, a.is_number};
}

static bounds bounds_of(const dlc_cpu *cpu, LLVMValueRef value, uint32_t lanes, int deep)
{
    if (LLVMIsConstant(value))
        return of_constant(value, lanes);
    for (uint32_t i = 0; i < cpu->limited.n; i++)
        if (cpu->limited.data[i].value == value)
            return (bounds){-cpu->limited.data[i].most, cpu->limited.data[i].most, 1};
    if (!LLVMIsAInstruction(value) || deep == MOST_DEEP)
        return any();
    deep++;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMSIToFP:
    case LLVMUIToFP:
        return of_integers(LLVMGetOperand(value, 0), LLVMGetInstructionOpcode(value) == LLVMSIToFP);
    case LLVMFAdd:
        return of_both(cpu, value, sum_of, lanes, deep);
    case LLVMFSub:
        return of_both(cpu, value, difference_of, lanes, deep);
    case LLVMFMul:
        return of_both(cpu, value, product_of, lanes, deep);
    case LLVMSelect:
        return of_select(cpu, value, lanes, deep);
    case LLVMCall:
        return of_call(cpu, value, lanes, deep);
    default:
        return any();
    }
}

int dlc_cpu_is_within(const dlc_cpu *cpu, LLVMValueRef value, uint32_t lanes, double most)
{
    bounds all = bounds_of(cpu, value, lanes, 0);
    return all.is_number && all.low >= -most && all.high <= most;
}

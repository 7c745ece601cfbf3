/*
 * The size program: one forward pass over SSA instructions. A cell holds an integer of its dtype or
 * the bits of a float64 rounded to it; arithmetic is expr.def's. lost[] follows 64-bit overflow: a
 * cell is lost when its own sum or product passed 64 bits, or an operand it depends on was lost, so
 * that no size is ever taken from a wrapped number.
 */
#include "runtime/internal.h"

#include <string.h>

typedef union {
    int64_t i;
    double f;
} cell;

static int64_t wrap(int64_t value, dlc_dtype dtype)
{
    switch (dtype) {
    case DLC_BOOL:
        return value != 0;
    case DLC_I8:
        return (int8_t)value;
    case DLC_I16:
        return (int16_t)value;
    case DLC_I32:
        return (int32_t)value;
    case DLC_U8:
        return (uint8_t)value;
    case DLC_U16:
        return (uint16_t)value;
    case DLC_U32:
        return (uint32_t)value;
    default:
        return value;
    }
}

/* Only u64 has values that a cell holds as negative numbers. */
static int is_less(dlc_dtype dtype, int64_t a, int64_t b)
{
    return dtype == DLC_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static int rounds_down(int64_t a, int64_t b)
{
    return a % b != 0 && (a < 0) != (b < 0);
}

/* Division by 0 gives 0, and MIN / -1 is MIN without a trap. */
static int64_t divide(dlc_size_op op, dlc_dtype dtype, int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (dtype == DLC_U64)
        return (int64_t)(op == DLC_SIZE_DIV || op == DLC_SIZE_FLOORDIV ? (uint64_t)a / (uint64_t)b
                                                                       : (uint64_t)a % (uint64_t)b);
    if (b == -1)
        return op == DLC_SIZE_DIV || op == DLC_SIZE_FLOORDIV ? (int64_t)(0 - (uint64_t)a) : 0;
    switch (op) {
    case DLC_SIZE_DIV:
        return a / b;
    case DLC_SIZE_REM:
        return a % b;
    case DLC_SIZE_FLOORDIV:
        return a / b - rounds_down(a, b);
    default:
        return a % b + (rounds_down(a, b) ? b : 0);
    }
}

static int64_t shift(dlc_size_op op, dlc_dtype dtype, int64_t a, int64_t by)
{
    int64_t width = dlc_dtype_kinds[dtype].bits;
    int is_past = by < 0 || by >= width;
    if (op == DLC_SIZE_SHL)
        return is_past ? 0 : (int64_t)((uint64_t)a << by);
    if (dtype == DLC_U64)
        return is_past ? 0 : (int64_t)((uint64_t)a >> by);
    return a >> (is_past ? 63 : by);
}

static int64_t integer(const dlc_size_inst *inst, int64_t a, int64_t b, uint8_t *lost)
{
    int64_t result = 0;
    dlc_dtype dtype = (dlc_dtype)inst->dtype;
    int passed = 0;
    switch ((dlc_size_op)inst->op) {
    case DLC_SIZE_ADD:
        passed = __builtin_add_overflow(a, b, &result);
        break;
    case DLC_SIZE_SUB:
        passed = __builtin_sub_overflow(a, b, &result);
        break;
    case DLC_SIZE_MUL:
        passed = __builtin_mul_overflow(a, b, &result);
        break;
    case DLC_SIZE_NEG:
        passed = __builtin_sub_overflow((int64_t)0, a, &result);
        break;
    case DLC_SIZE_ABS:
        result = a;
        passed = is_less(dtype, a, 0) && __builtin_sub_overflow((int64_t)0, a, &result);
        break;
    case DLC_SIZE_MIN:
        result = is_less(dtype, a, b) ? a : b;
        break;
    case DLC_SIZE_MAX:
        result = is_less(dtype, b, a) ? a : b;
        break;
    case DLC_SIZE_DIV:
    case DLC_SIZE_REM:
    case DLC_SIZE_FLOORDIV:
    case DLC_SIZE_MOD:
        result = divide((dlc_size_op)inst->op, dtype, a, b);
        break;
    case DLC_SIZE_SHL:
        result = shift(DLC_SIZE_SHL, dtype, a, b);
        passed = a && shift(DLC_SIZE_SHR, dtype, result, b) != a;
        break;
    case DLC_SIZE_SHR:
        result = shift(DLC_SIZE_SHR, dtype, a, b);
        break;
    case DLC_SIZE_AND:
        result = a & b;
        break;
    case DLC_SIZE_OR:
        result = a | b;
        break;
    case DLC_SIZE_XOR:
        result = a ^ b;
        break;
    case DLC_SIZE_NOT:
        result = dtype == DLC_BOOL ? !a : ~a;
        break;
    case DLC_SIZE_LT:
        return is_less(dtype, a, b);
    case DLC_SIZE_LE:
        return !is_less(dtype, b, a);
    case DLC_SIZE_EQ:
        return a == b;
    case DLC_SIZE_NE:
        return a != b;
    default:
        break;
    }
    *lost |= (uint8_t)(passed && dtype == DLC_I64);
    return wrap(result, dtype);
}

/* Without libm: values of 2^52 and more are integers already. */
static double truncated(double x)
{
    double magnitude = x < 0 ? -x : x;
    if (!(magnitude < 4503599627370496.0))
        return x;
    return __builtin_copysign((double)(int64_t)x, x);
}

static double rounded(dlc_size_op op, double x)
{
    double whole = truncated(x);
    if (op == DLC_SIZE_FLOOR)
        return whole > x ? whole - 1 : whole;
    if (op == DLC_SIZE_CEIL)
        return whole < x ? __builtin_copysign(whole + 1, x) : whole;
    if (op == DLC_SIZE_TRUNC)
        return whole;
    double part = x - whole, up = whole + (x < 0 ? -1 : 1);
    double distance = part < 0 ? -part : part;
    if (distance == 0.5)
        return (int64_t)whole % 2 ? up : whole;
    return distance > 0.5 ? up : whole;
}

static cell floating(const dlc_size_inst *inst, double a, double b)
{
    cell result = {0};
    switch ((dlc_size_op)inst->op) {
    case DLC_SIZE_ADD:
        result.f = a + b;
        break;
    case DLC_SIZE_SUB:
        result.f = a - b;
        break;
    case DLC_SIZE_MUL:
        result.f = a * b;
        break;
    case DLC_SIZE_DIV:
        result.f = a / b;
        break;
    case DLC_SIZE_NEG:
        result.f = -a;
        break;
    case DLC_SIZE_ABS:
        result.f = __builtin_fabs(a);
        break;
    case DLC_SIZE_MIN:
        result.f = a < b || a != a ? a : b;
        break;
    case DLC_SIZE_MAX:
        result.f = a > b || a != a ? a : b;
        break;
    case DLC_SIZE_LT:
        result.i = a < b;
        return result;
    case DLC_SIZE_LE:
        result.i = a <= b;
        return result;
    case DLC_SIZE_EQ:
        result.i = a == b;
        return result;
    case DLC_SIZE_NE:
        result.i = a != b;
        return result;
    case DLC_SIZE_FLOOR:
    case DLC_SIZE_CEIL:
    case DLC_SIZE_RINT:
    case DLC_SIZE_TRUNC:
        result.f = rounded((dlc_size_op)inst->op, a);
        break;
    default:
        break;
    }
    if (inst->dtype == DLC_F32)
        result.f = (float)result.f;
    return result;
}

static void limits(dlc_dtype dtype, int64_t *lo, int64_t *hi)
{
    uint32_t bits = dlc_dtype_kinds[dtype].bits;
    *lo = INT64_MIN;
    *hi = INT64_MAX;
    if (dtype == DLC_BOOL || bits >= 64)
        return;
    *lo = dlc_is_unsigned(dtype) ? 0 : -(INT64_C(1) << (bits - 1));
    *hi = dlc_is_unsigned(dtype) ? (INT64_C(1) << bits) - 1 : (INT64_C(1) << (bits - 1)) - 1;
}

static int64_t clamp(int64_t value, dlc_dtype dtype)
{
    int64_t lo, hi;
    limits(dtype, &lo, &hi);
    return value < lo ? lo : value > hi ? hi : value;
}

/* Between integer types. */
static int64_t saturated(int64_t value, dlc_dtype from, dlc_dtype to)
{
    if (from == DLC_U64 && value < 0) /* 2^63 or more */
        return to == DLC_U64 ? value : clamp(INT64_MAX, to);
    if (to == DLC_U64)
        return value < 0 ? 0 : value;
    return clamp(value, to);
}

/* Truncates, saturates, NaN to 0. */
static int64_t from_float(double x, dlc_dtype dtype)
{
    if (dtype == DLC_BOOL)
        return x != 0;
    if (x != x)
        return 0;
    if (dtype == DLC_U64)
        return x <= 0 ? 0 : x >= 18446744073709551616.0 ? -1 : (int64_t)(uint64_t)x;
    if (x >= 9223372036854775808.0)
        return clamp(INT64_MAX, dtype);
    if (x <= -9223372036854775808.0)
        return clamp(INT64_MIN, dtype);
    return clamp((int64_t)x, dtype);
}

static cell converted(const dlc_size_inst *inst, cell a)
{
    dlc_dtype from = (dlc_dtype)inst->imm, to = (dlc_dtype)inst->dtype;
    cell result;
    if (dlc_is_float(to)) {
        result.f = dlc_is_float(from) ? a.f : from == DLC_U64 ? (double)(uint64_t)a.i : (double)a.i;
        if (to == DLC_F32)
            result.f = dlc_is_float(from) ? (float)a.f
                       : from == DLC_U64  ? (float)(uint64_t)a.i
                                          : (float)a.i;
    } else if (dlc_is_float(from)) {
        result.i = from_float(a.f, to);
    } else {
        result.i = wrap(inst->op == DLC_SIZE_CAST_SAT ? saturated(a.i, from, to) : a.i, to);
    }
    return result;
}

static cell evaluate(const dlc_size_inst *inst, const int64_t *symbols, const cell *cells,
                     uint8_t *lost, uint8_t *result_lost)
{
    static const uint8_t nargs[DLC_SIZE_COUNT] = {
#define DLC_SIZE(id, text, n) n,
#include "dlc/size.def"
#undef DLC_SIZE
    };
    cell zero = {0}, arg[3] = {zero, zero, zero};
    for (uint32_t i = 0; i < nargs[inst->op]; i++) {
        arg[i] = cells[inst->args[i]];
        *result_lost |= lost[inst->args[i]];
    }
    switch ((dlc_size_op)inst->op) {
    case DLC_SIZE_CONST:
        return (cell){inst->imm};
    case DLC_SIZE_SYM:
        return (cell){symbols[inst->args[0]]};
    case DLC_SIZE_SELECT: {
        uint32_t chosen = arg[0].i ? 1 : 2;
        *result_lost = lost[inst->args[0]] | lost[inst->args[chosen]];
        return arg[chosen];
    }
    case DLC_SIZE_CAST:
    case DLC_SIZE_CAST_SAT:
        return converted(inst, arg[0]);
    default:
        break;
    }
    if (dlc_is_float((dlc_dtype)inst->dtype))
        return floating(inst, arg[0].f, arg[1].f);
    return (cell){integer(inst, arg[0].i, arg[1].i, result_lost)};
}

void dlcrt_size_run(const dlc_plan *plan, dlc_plan_rows insts, const int64_t *symbols,
                    int64_t *cells, uint8_t *lost)
{
    const dlc_size_inst *inst = dlcrt_rows(plan, plan->insts);
    uint32_t state = dlcrt_float_enter(); /* sizes may be rounded floats */
    for (uint32_t i = insts.first; i < insts.first + insts.count; i++) {
        uint8_t is_lost = 0;
        cell result = evaluate(&inst[i], symbols, (const cell *)cells, lost, &is_lost);
        memcpy(&cells[i], &result, sizeof result);
        lost[i] = is_lost;
    }
    dlcrt_float_leave(state);
}

int dlcrt_tensor_takes(const dlcrt_context *context, const dlc_plan_tensor *tensor, int64_t size_bytes)
{
    const uint32_t *cells = (const uint32_t *)dlcrt_rows(context->plan, context->plan->cells) + tensor->dims;
    int64_t shape_bytes = dlc_dtype_bytes((dlc_dtype)tensor->dtype);
    int is_empty = 0, is_over = 0;
    for (uint32_t k = 0; k < tensor->rank; k++) {
        is_empty |= context->cells[cells[k]] == 0;
        is_over |= __builtin_mul_overflow(shape_bytes, context->cells[cells[k]], &shape_bytes);
    }
    return is_empty ? size_bytes == 0 : !is_over && size_bytes == shape_bytes;
}

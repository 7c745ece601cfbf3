/*
 * expr.def as CUDA C that is also C. Operations are written out one per variable, so that what NVRTC (with -fmad=false) and a C
 * compiler (with -ffp-contract=off -fwrapv) compute is the same, bit for bit. f16 and bf16 are floats holding rounded values.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "codegen/ptx/text.h"

static dlc_cuda *cuda_of(dlc_emitter *e)
{
    return (dlc_cuda *)e;
}

static const char *text(dlc_val value)
{
    return (const char *)value;
}

static int is_half(dlc_dtype dtype)
{
    return dtype == DLC_F16 || dtype == DLC_BF16;
}

const char *dlc_cuda_memory_type(dlc_dtype dtype)
{
    static const char *const names[DLC_DTYPE_COUNT] = {
        [DLC_BOOL] = "dlc_u8", [DLC_I8] = "signed char", [DLC_I16] = "short",     [DLC_I32] = "int",
        [DLC_I64] = "long long", [DLC_U8] = "dlc_u8",    [DLC_U16] = "dlc_u16",   [DLC_U32] = "dlc_u32",
        [DLC_U64] = "dlc_u64", [DLC_F16] = "dlc_u16",    [DLC_BF16] = "dlc_u16",  [DLC_F32] = "float",
        [DLC_F64] = "double"};
    return dlc_is_code(dtype) ? "dlc_u8" : names[dtype];
}

const char *dlc_cuda_type(const dlc_cuda *cuda, dlc_dtype dtype)
{
    if (dtype == DLC_BOOL)
        return "int";
    if (is_half(dtype))
        return "float";
    if (dtype == DLC_I64 && cuda->small_index)
        return "int";
    return dlc_cuda_memory_type(dtype);
}

/* Indices alone never overflow, and a compiler that knows it simplifies more. Narrow types are computed as int. */
const char *dlc_cuda_wrapping(const dlc_cuda *cuda, dlc_dtype dtype)
{
    if (dtype == DLC_I32 || dtype == DLC_U16)
        return "(dlc_u32)";
    return dtype == DLC_I64 && cuda->has_long_data ? "(dlc_u64)" : "";
}

const char *dlc_cuda_to_memory(dlc_cuda *cuda, dlc_dtype dtype, dlc_val value)
{
    if (is_half(dtype))
        return dlc_arena_printf(cuda->arena, "dlc_%s_bits(%s)", dlc_dtypes[dtype].text, text(value));
    return dlc_arena_printf(cuda->arena, "(%s)%s", dlc_cuda_memory_type(dtype), text(value));
}

const char *dlc_cuda_from_memory(dlc_cuda *cuda, dlc_dtype dtype, const char *element)
{
    if (is_half(dtype))
        return dlc_arena_printf(cuda->arena, "dlc_%s_float(%s)", dlc_dtypes[dtype].text, element);
    if (dtype == DLC_BOOL)
        return dlc_arena_printf(cuda->arena, "(%s != 0)", element);
    return element;
}

static const char *float_literal(dlc_arena *arena, dlc_dtype dtype, double value)
{
    if (dtype == DLC_F64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return isfinite(value) ? dlc_arena_printf(arena, signbit(value) ? "(%a)" : "%a", value)
                               : dlc_arena_printf(arena, "dlc_bits_f64(0x%" PRIx64 "ull)", bits);
    }
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return isfinite(single) ? dlc_arena_printf(arena, signbit(single) ? "(%af)" : "%af", (double)single)
                            : dlc_arena_printf(arena, "dlc_bits_f32(0x%xu)", bits);
}

dlc_val dlc_cuda_konst(dlc_emitter *e, dlc_dtype dtype, dlc_scalar value, uint32_t width)
{
    dlc_cuda *cuda = cuda_of(e);
    const char *result;
    (void)width;
    if (dlc_is_float(dtype))
        result = float_literal(cuda->arena, dtype, value.f);
    else if (dtype == DLC_I64 && !cuda->small_index)
        result = value.i == INT64_MIN ? "(-9223372036854775807LL - 1)"
                                      : dlc_arena_printf(cuda->arena, value.i < 0 ? "(%" PRId64 "LL)" : "%" PRId64 "LL", value.i);
    else if (dtype == DLC_U64)
        result = dlc_arena_printf(cuda->arena, "%" PRIu64 "ull", (uint64_t)value.i);
    else if (dtype == DLC_U32)
        result = dlc_arena_printf(cuda->arena, "%" PRIu32 "u", (uint32_t)value.i);
    else if (value.i == INT32_MIN)
        result = "(-2147483647 - 1)";
    else
        result = dlc_arena_printf(cuda->arena, value.i < 0 ? "(%" PRId64 ")" : "%" PRId64, value.i);
    return (dlc_val)result;
}

dlc_val dlc_cuda_value(dlc_cuda *cuda, dlc_dtype dtype, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *value = dlc_arena_vprintf(cuda->arena, format, args);
    va_end(args);
    const char *name = dlc_arena_printf(cuda->arena, "v%u", cuda->nvalues++);
    dlc_cuda_line(cuda, "const %s %s = %s;", dlc_cuda_type(cuda, dtype), name, value);
    return (dlc_val)name;
}

/* The rounding that an operation on f16 or bf16 ends with; what wraps returns to its type by a cast. */
static dlc_val finished(dlc_cuda *cuda, dlc_dtype dtype, const char *value)
{
    if (is_half(dtype))
        return dlc_cuda_value(cuda, dtype, "dlc_%s_float(dlc_%s_bits(%s))", dlc_dtypes[dtype].text,
                              dlc_dtypes[dtype].text, value);
    if (dlc_is_int(dtype) && (dlc_dtypes[dtype].bits < 32 || *dlc_cuda_wrapping(cuda, dtype)))
        return dlc_cuda_value(cuda, dtype, "(%s)(%s)", dlc_cuda_type(cuda, dtype), value);
    return dlc_cuda_value(cuda, dtype, "%s", value);
}

static const char *infix(dlc_expr_op op, dlc_dtype dtype)
{
    switch (op) {
    case DLC_EXPR_ADD:
        return "+";
    case DLC_EXPR_SUB:
        return "-";
    case DLC_EXPR_MUL:
        return "*";
    case DLC_EXPR_DIV:
        return dlc_is_float(dtype) ? "/" : NULL;
    case DLC_EXPR_AND:
        return "&";
    case DLC_EXPR_OR:
        return "|";
    case DLC_EXPR_XOR:
        return "^";
    case DLC_EXPR_LT:
        return "<";
    case DLC_EXPR_LE:
        return "<=";
    case DLC_EXPR_EQ:
        return "==";
    case DLC_EXPR_NE:
        return "!=";
    default:
        return NULL;
    }
}

/* C's function for a float operation, without the f of float. */
static const char *function_of(dlc_expr_op op)
{
    switch (op) {
    case DLC_EXPR_ABS:
        return "fabs";
    case DLC_EXPR_FLOOR:
        return "floor";
    case DLC_EXPR_CEIL:
        return "ceil";
    case DLC_EXPR_RINT:
        return "rint";
    case DLC_EXPR_TRUNC:
        return "trunc";
    case DLC_EXPR_SQRT:
        return "sqrt";
    case DLC_EXPR_FMA:
    case DLC_EXPR_MULADD:
        return "fma";
    default:
        return NULL;
    }
}

static const char *integer_suffix(const dlc_cuda *cuda, dlc_dtype dtype)
{
    return dtype == DLC_I64 && cuda->small_index ? "i32" : dlc_dtypes[dtype].text;
}

static int is_literal(const char *value)
{
    return *value >= '0' && *value <= '9';
}

static dlc_val divide(dlc_cuda *cuda, dlc_expr_op op, dlc_dtype dtype, const char *a, const char *b)
{
    static const char *const names[] = {[DLC_EXPR_DIV] = "div", [DLC_EXPR_REM] = "rem", [DLC_EXPR_FLOORDIV] = "floordiv",
                                        [DLC_EXPR_MOD] = "mod", [DLC_EXPR_SHL] = "shl", [DLC_EXPR_SHR] = "shr"};
    if (is_literal(b) && strcmp(b, "0") && strcmp(b, "0LL") && (op == DLC_EXPR_DIV || op == DLC_EXPR_REM))
        return dlc_cuda_value(cuda, dtype, "(%s)(%s %s %s)", dlc_cuda_type(cuda, dtype), a, op == DLC_EXPR_DIV ? "/" : "%",
                              b);
    return dlc_cuda_value(cuda, dtype, "dlc_%s_%s(%s, %s)", names[op], integer_suffix(cuda, dtype), a, b);
}

static dlc_val extremum(dlc_cuda *cuda, dlc_expr_op op, dlc_dtype dtype, const char *a, const char *b)
{
    const char *order = op == DLC_EXPR_MIN ? "<" : ">";
    if (!dlc_is_float(dtype))
        return dlc_cuda_value(cuda, dtype, "%s %s %s ? %s : %s", a, order, b, a, b);
    return dlc_cuda_value(cuda, dtype, "%s %s %s || %s != %s ? %s : %s", a, order, b, a, a, a, b);
}

static int is_wide_int(dlc_dtype dtype)
{
    return dlc_is_int(dtype) && dlc_dtypes[dtype].bits > 16;
}

static dlc_val to_half(dlc_cuda *cuda, dlc_dtype from, dlc_dtype to, const char *value)
{
    const char *name = dlc_dtypes[to].text;
    if (from == DLC_F64 || is_wide_int(from)) /* by way of f64: one rounding shows */
        return dlc_cuda_value(cuda, to, "dlc_%s_float(dlc_%s_bits(dlc_odd_f32((double)%s)))", name, name, value);
    return dlc_cuda_value(cuda, to, "dlc_%s_float(dlc_%s_bits((float)%s))", name, name, value);
}

/* Limits of an integer type as doubles of text; clamps between integer types compare in the wider of both. */
static dlc_val clamp_int(dlc_cuda *cuda, dlc_dtype from, dlc_dtype to, const char *value)
{
    uint32_t have = dlc_dtypes[from].bits, want = dlc_dtypes[to].bits;
    int from_unsigned = dlc_is_unsigned(from), to_unsigned = dlc_is_unsigned(to);
    const char *type = dlc_cuda_type(cuda, to);
    uint64_t most = UINT64_MAX >> (64 - want + (to_unsigned ? 0 : 1));
    const char *high = "", *low = "";
    if (have > want || (have == want && from_unsigned && !to_unsigned))
        high = dlc_arena_printf(cuda->arena, "%s > (%s)%" PRIu64 "ull ? (%s)%" PRIu64 "ull : ", value,
                                dlc_cuda_type(cuda, from), most, type, most);
    if (!from_unsigned && to_unsigned)
        low = dlc_arena_printf(cuda->arena, "%s < 0 ? (%s)0 : ", value, type);
    else if (!from_unsigned && have > want)
        low = dlc_arena_printf(cuda->arena, "%s < -%" PRIu64 "LL - 1 ? (%s)(-%" PRIu64 "LL - 1) : ", value, most, type, most);
    return dlc_cuda_value(cuda, to, "%s%s(%s)%s", high, low, type, value);
}

/* Subnormals of f32 are zeros of their sign. */
static const char *flushed(dlc_cuda *cuda, dlc_dtype from, const char *value)
{
    const char *suffix = from == DLC_F64 ? "" : "f";
    return text(dlc_cuda_value(cuda, from, "fabs%s(%s) < 0x1p-126%s ? %s * 0%s : %s", suffix, value, suffix, value, *suffix ? ".0f" : ".0", value));
}

static dlc_val cast(dlc_cuda *cuda, dlc_expr_op op, dlc_dtype from, dlc_dtype to, const char *value)
{
    const char *type = dlc_cuda_type(cuda, to);
    if (from == to)
        return (dlc_val)value;
    if (to == DLC_BOOL)
        return dlc_cuda_value(cuda, to, "%s != 0", value);
    if (op == DLC_EXPR_CAST_FTZ && dlc_is_float(from))
        value = flushed(cuda, from, value);
    if (is_half(to))
        return to_half(cuda, from, to, value);
    if (dlc_is_int(from) && !strcmp(dlc_cuda_type(cuda, from), type)) /* i64 that fits int */
        return (dlc_val)value;
    if (dlc_is_float(from) && dlc_is_int(to))
        return dlc_cuda_value(cuda, to, "dlc_%s_of_%s(%s)", dlc_dtypes[to].text, from == DLC_F64 ? "f64" : "f32", value);
    if (op == DLC_EXPR_CAST_SAT && dlc_is_int(from) && dlc_is_int(to))
        return clamp_int(cuda, from, to, value);
    return dlc_cuda_value(cuda, to, "(%s)%s", type, value);
}

static dlc_val bitcast(dlc_cuda *cuda, dlc_dtype from, dlc_dtype to, const char *value)
{
    const char *bits = dlc_is_float(from) ? dlc_arena_printf(cuda->arena, "dlc_%s_bits(%s)", dlc_dtypes[from].text, value)
                                          : value;
    if (!dlc_is_float(to))
        return dlc_cuda_value(cuda, to, "(%s)%s", dlc_cuda_type(cuda, to), bits);
    if (is_half(to))
        return dlc_cuda_value(cuda, to, "dlc_%s_float((dlc_u16)%s)", dlc_dtypes[to].text, bits);
    return dlc_cuda_value(cuda, to, "dlc_bits_%s((%s)%s)", dlc_dtypes[to].text, to == DLC_F64 ? "dlc_u64" : "dlc_u32", bits);
}

static dlc_val float_function(dlc_cuda *cuda, dlc_expr_op op, dlc_dtype dtype, const dlc_val *args)
{
    const char *suffix = dtype == DLC_F64 ? "" : "f", *name = function_of(op);
    if (dlc_exprs[op].nargs == 3)
        return finished(cuda, dtype, dlc_arena_printf(cuda->arena, "%s%s(%s, %s, %s)", name, suffix, text(args[0]),
                                                      text(args[1]), text(args[2])));
    return finished(cuda, dtype, dlc_arena_printf(cuda->arena, "%s%s(%s)", name, suffix, text(args[0])));
}

static dlc_val unary(dlc_cuda *cuda, dlc_expr_op op, dlc_dtype dtype, const dlc_val *args)
{
    const char *a = text(args[0]), *wrapping = dlc_cuda_wrapping(cuda, dtype);
    if (op == DLC_EXPR_NEG)
        return finished(cuda, dtype, dlc_arena_printf(cuda->arena, "-%s%s", wrapping, a));
    if (op == DLC_EXPR_NOT)
        return finished(cuda, dtype, dlc_arena_printf(cuda->arena, dtype == DLC_BOOL ? "!%s" : "~%s", a));
    assert(op == DLC_EXPR_ABS);
    if (dlc_is_unsigned(dtype) || dtype == DLC_BOOL)
        return args[0];
    return finished(cuda, dtype, dlc_arena_printf(cuda->arena, "%s < 0 ? -%s%s : %s%s", a, wrapping, a, wrapping, a));
}

dlc_val dlc_cuda_arith(dlc_emitter *e, dlc_expr_op op, dlc_dtype from, dlc_dtype to, uint32_t width, const dlc_val *args)
{
    dlc_cuda *cuda = cuda_of(e);
    const char *a = text(args[0]), *b = dlc_exprs[op].nargs > 1 ? text(args[1]) : "";
    (void)width;
    if (infix(op, from) && to == DLC_BOOL)
        return dlc_cuda_value(cuda, to, "%s %s %s", a, infix(op, from), b);
    if (infix(op, from))
        return finished(cuda, to, dlc_arena_printf(cuda->arena, "%s%s %s %s%s", dlc_cuda_wrapping(cuda, to), a,
                                                   infix(op, from), dlc_cuda_wrapping(cuda, to), b));
    if (op == DLC_EXPR_SELECT)
        return dlc_cuda_value(cuda, to, "%s ? %s : %s", a, b, text(args[2]));
    if (op == DLC_EXPR_MIN || op == DLC_EXPR_MAX)
        return extremum(cuda, op, from, a, b);
    if (op == DLC_EXPR_CAST || op == DLC_EXPR_CAST_SAT || op == DLC_EXPR_CAST_FTZ)
        return cast(cuda, op, from, to, a);
    if (op == DLC_EXPR_BITCAST)
        return bitcast(cuda, from, to, a);
    if (function_of(op) && dlc_is_float(from))
        return float_function(cuda, op, from, args);
    if (op == DLC_EXPR_MULADD)
        return finished(cuda, to, dlc_arena_printf(cuda->arena, "%s%s * %s + %s", dlc_cuda_wrapping(cuda, to), a, b,
                                                   text(args[2])));
    if (dlc_exprs[op].nargs == 1)
        return unary(cuda, op, from, args);
    return divide(cuda, op, from, a, b);
}

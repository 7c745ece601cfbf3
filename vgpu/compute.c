/*
 * Arithmetic of PTX, one thread's. Integers are 64 bits, extended by their type and cut at the end;
 * floats are IEEE rounded to nearest, subnormals kept; a NaN that an f32 operation makes is the
 * device's 0x7fffffff.
 */
#include "vgpu/compute.h"

#include <math.h>
#include <string.h>

uint64_t ptx_masked(ptx_type type, uint64_t bits)
{
    return type.bits >= 64 ? bits : bits & ((UINT64_C(1) << type.bits) - 1);
}

uint64_t ptx_extended(ptx_type type, uint64_t bits)
{
    bits = ptx_masked(type, bits);
    if (type.kind == 's' && type.bits < 64 && bits >> (type.bits - 1))
        bits |= ~UINT64_C(0) << type.bits;
    return bits;
}

/* --- floats --- */

static double to_double(ptx_type type, uint64_t bits)
{
    if (type.bits == 64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (type.bits == 16) {
        _Float16 half;
        uint16_t low = (uint16_t)bits;
        memcpy(&half, &low, sizeof half);
        return (double)half;
    }
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return (double)value;
}

static uint64_t of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? 0x7fffffffu : bits;
}

static uint64_t of_double(ptx_type type, double value)
{
    if (type.bits == 64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    if (type.bits == 16) {
        _Float16 half = (_Float16)value;
        uint16_t bits;
        memcpy(&bits, &half, sizeof bits);
        return isnan(value) ? 0x7fffu : bits;
    }
    return of_f32((float)value);
}

static uint64_t f32_arithmetic(const ptx_insn *insn, const uint64_t *args)
{
    float a = (float)to_double(insn->type, args[0]), b = (float)to_double(insn->type, args[1]);
    switch (insn->op) {
    case PTX_ADD:
        return of_f32(a + b);
    case PTX_SUB:
        return of_f32(a - b);
    case PTX_MUL:
        return of_f32(a * b);
    case PTX_DIV:
        return of_f32(a / b);
    case PTX_SQRT:
        return of_f32(sqrtf(a));
    case PTX_RCP:
        return of_f32(1.0f / a);
    default: /* FMA, MAD */
        return of_f32(fmaf(a, b, (float)to_double(insn->type, args[2])));
    }
}

static double f64_arithmetic(const ptx_insn *insn, const uint64_t *args)
{
    double a = to_double(insn->type, args[0]), b = to_double(insn->type, args[1]);
    switch (insn->op) {
    case PTX_ADD:
        return a + b;
    case PTX_SUB:
        return a - b;
    case PTX_MUL:
        return a * b;
    case PTX_DIV:
        return a / b;
    case PTX_SQRT:
        return sqrt(a);
    case PTX_RCP:
        return 1.0 / a;
    default:
        return fma(a, b, to_double(insn->type, args[2]));
    }
}

static uint64_t float_result(const ptx_insn *insn, const uint64_t *args)
{
    uint64_t sign = UINT64_C(1) << (insn->type.bits - 1), a = ptx_masked(insn->type, args[0]);
    double x = to_double(insn->type, args[0]), y = to_double(insn->type, args[1]);
    switch (insn->op) {
    case PTX_ABS:
        return a & ~sign;
    case PTX_NEG:
        return a ^ sign;
    case PTX_MIN: /* a NaN gives the other; -0 is less than +0 */
        return isnan(x) && isnan(y)                          ? of_double(insn->type, NAN)
               : isnan(y) || x < y || (x == y && signbit(x)) ? a
                                                             : ptx_masked(insn->type, args[1]);
    case PTX_MAX:
        return isnan(x) && isnan(y)                           ? of_double(insn->type, NAN)
               : isnan(y) || x > y || (x == y && !signbit(x)) ? a
                                                              : ptx_masked(insn->type, args[1]);
    default:
        return insn->type.bits == 32 ? f32_arithmetic(insn, args)
                                     : of_double(insn->type, f64_arithmetic(insn, args));
    }
}

/* --- comparison --- */

static int ordered(ptx_compare compare, int less, int equal)
{
    static const uint8_t truths[] = {
        [PTX_EQ] = 2, [PTX_NE] = 5, [PTX_LT] = 1, [PTX_LE] = 3, [PTX_GT] = 4, [PTX_GE] = 6};
    return truths[compare] >> (less ? 0 : equal ? 1 : 2) & 1;
}

static int compared(const ptx_insn *insn, const uint64_t *args)
{
    ptx_compare compare = (ptx_compare)insn->compare;
    if (insn->type.kind == 'f') {
        double a = to_double(insn->type, args[0]), b = to_double(insn->type, args[1]);
        if (isnan(a) || isnan(b))
            return compare >= PTX_EQU && compare != PTX_NUM;
        if (compare >= PTX_NUM)
            return compare == PTX_NUM;
        return ordered(compare >= PTX_EQU ? compare - PTX_EQU : compare, a < b, a == b);
    }
    uint64_t a = ptx_extended(insn->type, args[0]), b = ptx_extended(insn->type, args[1]);
    int less = insn->type.kind == 's' ? (int64_t)a < (int64_t)b : a < b;
    return ordered(compare, less, a == b);
}

static uint64_t set_predicate(const ptx_insn *insn, const uint64_t *args)
{
    int result = compared(insn, args), third = (int)(args[2] & 1) ^ insn->has_not_third;
    return (uint64_t)(insn->combine == 'a'   ? result & third
                      : insn->combine == 'o' ? result | third
                      : insn->combine == 'x' ? result ^ third
                                             : result);
}

/* --- conversions --- */

static double rounded(ptx_rounding rounding, double value)
{
    switch (rounding) {
    case PTX_RNI:
        return rint(value);
    case PTX_RZI:
        return trunc(value);
    case PTX_RMI:
        return floor(value);
    case PTX_RPI:
        return ceil(value);
    default:
        return value;
    }
}

static uint64_t float_to_int(ptx_type to, double value)
{
    double below = ldexp(1, to.bits - (to.kind == 's')), least = to.kind == 's' ? -below : 0;
    uint64_t most = UINT64_MAX >> (64 - to.bits + (to.kind == 's'));
    if (isnan(value)) /* 64 bits: the device's indefinite value */
        return to.bits == 64 ? UINT64_C(1) << 63 : 0;
    if (value >= below)
        return most;
    if (value <= least)
        return to.kind == 's' ? ptx_masked(to, ~most) : 0;
    return to.kind == 's' ? ptx_masked(to, (uint64_t)(int64_t)value) : (uint64_t)value;
}

static uint64_t int_to_float(const ptx_insn *insn, uint64_t value)
{
    int is_signed = insn->from.kind == 's';
    if (insn->type.bits == 64)
        return of_double(insn->type, is_signed ? (double)(int64_t)value : (double)value);
    return of_f32(is_signed ? (float)(int64_t)value : (float)value);
}

static uint64_t converted(const ptx_insn *insn, uint64_t arg, const char **error)
{
    int from_float = insn->from.kind == 'f', to_float = insn->type.kind == 'f';
    uint64_t value = ptx_extended(insn->from, arg);
    if (insn->is_saturating || (to_float && insn->type.bits == 16 && !from_float) ||
        insn->rounding == PTX_RZ)
        *error = "a conversion the interpreter does not know";
    if (to_float && (insn->type.bits < insn->from.bits || !from_float) && insn->rounding != PTX_RN)
        *error = "a conversion without .rn";
    if (!from_float && !to_float)
        return ptx_masked(insn->type, value);
    if (!from_float)
        return int_to_float(insn, value);
    double number = rounded((ptx_rounding)insn->rounding, to_double(insn->from, arg));
    return to_float ? of_double(insn->type, number) : float_to_int(insn->type, number);
}

/* --- integers --- */

static uint64_t high_half(ptx_type type, uint64_t a, uint64_t b)
{
    if (type.bits < 64)
        return (a * b) >> type.bits;
    return type.kind == 's' ? (uint64_t)(((__int128)(int64_t)a * (int64_t)b) >> 64)
                            : (uint64_t)(((unsigned __int128)a * b) >> 64);
}

static uint64_t product(const ptx_insn *insn, uint64_t a, uint64_t b)
{
    return insn->half == PTX_HI ? high_half(insn->type, a, b) : a * b;
}

static uint64_t divided(const ptx_insn *insn, uint64_t a, uint64_t b, const char **error)
{
    int is_signed = insn->type.kind == 's', is_rem = insn->op == PTX_REM;
    if (b == 0) {
        *error = "division by zero";
        return 0;
    }
    if (is_signed && b == UINT64_MAX)
        return is_rem ? 0 : 0 - a;
    if (is_signed)
        return (uint64_t)(is_rem ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
    return is_rem ? a % b : a / b;
}

static uint64_t shifted(const ptx_insn *insn, uint64_t a, uint64_t by)
{
    by &= 0xffffffffu;
    if (insn->op == PTX_SHL)
        return by >= insn->type.bits ? 0 : a << by;
    if (insn->type.kind == 's')
        return (uint64_t)((int64_t)a >> (by >= insn->type.bits ? 63 : by));
    return by >= insn->type.bits ? 0 : a >> by;
}

/* shf.wrap: 32 bits of the 64 of b:a */
static uint64_t funnel(const ptx_insn *insn, const uint64_t *args)
{
    uint64_t both = (args[1] << 32) | (args[0] & 0xffffffffu);
    uint32_t by = (uint32_t)args[2] & 31;
    return insn->is_right ? both >> by : both << by >> 32;
}

static uint64_t logic3(const uint64_t *args)
{
    uint32_t a = (uint32_t)args[0], b = (uint32_t)args[1], c = (uint32_t)args[2], result = 0;
    for (uint32_t i = 0; i < 8; i++)
        if (args[3] >> i & 1)
            result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

static uint64_t permuted(const uint64_t *args)
{
    uint64_t both = (args[1] << 32) | (args[0] & 0xffffffffu), result = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t select = args[2] >> (4 * i) & 0xf, byte = both >> (8 * (select & 7)) & 0xff;
        if (select & 8)
            byte = byte >> 7 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}

static uint64_t extracted(ptx_type type, uint64_t a, const uint64_t *args)
{
    uint32_t at = (uint32_t)args[1] & 0xff, n = (uint32_t)args[2] & 0xff;
    if (n == 0)
        return 0;
    if (at + n > type.bits)
        n = at >= type.bits ? 1 : type.bits - at;
    ptx_type field = {type.kind, (uint8_t)n};
    return ptx_extended(field, at >= 64 ? (type.kind == 's' && (int64_t)a < 0 ? ~UINT64_C(0) : 0)
                                        : a >> at);
}

/* bfi: the low bits of a put into b. */
static uint64_t inserted(ptx_type type, uint64_t a, uint64_t b, const uint64_t *args)
{
    uint32_t at = (uint32_t)args[2] & 0xff, n = (uint32_t)args[3] & 0xff;
    if (n == 0 || at >= type.bits)
        return b;
    uint64_t field = (n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1) << at;
    return (b & ~field) | (a << at & field);
}

/* dp2a, dp4a: halves or bytes of a times bytes of b, added to c. */
static uint64_t dotted(const ptx_insn *insn, const uint64_t *args)
{
    uint32_t n = insn->op == PTX_DP2A ? 2 : 4, width = 32 / n;
    uint64_t b = insn->op == PTX_DP2A && insn->half == PTX_HI ? args[1] >> 16 : args[1],
             sum = args[2];
    for (uint32_t i = 0; i < n; i++)
        sum += ptx_extended((ptx_type){insn->type.kind, (uint8_t)width}, args[0] >> (i * width)) *
               ptx_extended((ptx_type){insn->from.kind, 8}, b >> (i * 8));
    return sum;
}

static uint64_t integer_result(const ptx_insn *insn, const uint64_t *args, const char **error)
{
    uint64_t a = ptx_extended(insn->type, args[0]), b = ptx_extended(insn->type, args[1]);
    int is_less = insn->type.kind == 's' ? (int64_t)a < (int64_t)b : a < b;
    switch (insn->op) {
    case PTX_ADD:
        return a + b;
    case PTX_SUB:
        return a - b;
    case PTX_MUL:
        return product(insn, a, b);
    case PTX_MAD:
        return product(insn, a, b) +
               (insn->half == PTX_WIDE ? args[2] : ptx_extended(insn->type, args[2]));
    case PTX_DIV:
    case PTX_REM:
        return divided(insn, a, b, error);
    case PTX_MIN:
        return is_less ? a : b;
    case PTX_MAX:
        return is_less ? b : a;
    case PTX_ABS:
        return (int64_t)a < 0 ? 0 - a : a;
    case PTX_NEG:
        return 0 - a;
    case PTX_AND:
        return a & b;
    case PTX_OR:
        return a | b;
    case PTX_XOR:
        return a ^ b;
    case PTX_NOT:
        return ~a;
    case PTX_SHL:
    case PTX_SHR:
        return shifted(insn, a, args[1]);
    case PTX_SHF:
        return funnel(insn, args);
    case PTX_LOP3:
        return logic3(args);
    case PTX_PRMT:
        return permuted(args);
    case PTX_DP2A:
    case PTX_DP4A:
        return dotted(insn, args);
    case PTX_BFI:
        return inserted(insn->type, a, b, args);
    case PTX_POPC:
        return (uint64_t)__builtin_popcountll(ptx_masked(insn->type, args[0]));
    case PTX_CLZ:
        return a == 0 ? insn->type.bits
                      : (uint64_t)__builtin_clzll(ptx_masked(insn->type, a)) + insn->type.bits - 64;
    case PTX_BFE:
        return extracted(insn->type, a, args);
    default:
        *error = "an instruction that computes nothing";
        return 0;
    }
}

uint64_t ptx_compute(const ptx_insn *insn, const uint64_t *args, const char **error)
{
    ptx_type result = insn->type;
    switch (insn->op) {
    case PTX_SETP:
        return set_predicate(insn, args);
    case PTX_SELP:
        return ptx_masked(insn->type, args[2] & 1 ? args[0] : args[1]);
    case PTX_CVT:
        return converted(insn, args[0], error);
    case PTX_MOV:
        return ptx_masked(insn->type, args[0]);
    case PTX_CVTA:
        return args[0];
    default:
        break;
    }
    if (insn->type.kind == 'f')
        return float_result(insn, args);
    if (insn->half == PTX_WIDE)
        result.bits = (uint8_t)(2 * result.bits);
    return ptx_masked(result, integer_result(insn, args, error));
}

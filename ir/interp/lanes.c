/*
 * Typed loops over strips. The common rows of expr.def are written out, once per lane and with the
 * four ways two operands can be uniform, so that the compiler vectorises them; everything else goes
 * point by point through dlc_scalar_apply, which is what all of them must equal. Built without
 * contraction: a product and a sum stay two roundings.
 */
#include "ir/interp/lanes.h"

#include <math.h>
#include <string.h>

dlc_lane_type dlc_lane_of(dlc_dtype dtype, int is_wide)
{
    if (!dlc_is_float(dtype))
        return (dlc_lane_type){DLC_LANE_INT, (uint8_t)dtype};
    if (is_wide)
        return (dlc_lane_type){DLC_LANE_DOUBLE, DLC_F64};
    return (dlc_lane_type){dtype == DLC_F32 ? DLC_LANE_FLOAT : DLC_LANE_DOUBLE, (uint8_t)dtype};
}

dlc_scalar dlc_strip_get(uint8_t lane, dlc_strip value, uint32_t i)
{
    i *= value.step;
    if (lane == DLC_LANE_INT)
        return (dlc_scalar){.i = ((const int64_t *)value.at)[i]};
    return (dlc_scalar){.f = lane == DLC_LANE_FLOAT ? (double)((const float *)value.at)[i]
                                                    : ((const double *)value.at)[i]};
}

void dlc_strip_put(uint8_t lane, void *to, uint32_t i, dlc_scalar value)
{
    if (lane == DLC_LANE_INT)
        ((int64_t *)to)[i] = value.i;
    else if (lane == DLC_LANE_FLOAT)
        ((float *)to)[i] = (float)value.f;
    else
        ((double *)to)[i] = value.f;
}

/* --- loops --- */

/* `body` with x, y the operands of point i. Steps are constants in each loop, or the compiler does not vectorise it. */
#define LOOP1_STEPS(type, result, sa, body)                                                        \
    for (uint32_t i = 0; i < n; i++) {                                                             \
        type x = a_[i * (sa)];                                                                     \
        to_[i] = (result)(body);                                                                   \
    }
#define LOOP1(type, result, body)                                                                  \
    do {                                                                                           \
        const type *a_ = args[0].at;                                                               \
        result *to_ = to;                                                                          \
        if (args[0].step)                                                                          \
            LOOP1_STEPS(type, result, 1, body)                                                     \
        else                                                                                       \
            LOOP1_STEPS(type, result, 0, body)                                                     \
    } while (0)
#define LOOP2_STEPS(type, result, sa, sb, body)                                                    \
    for (uint32_t i = 0; i < n; i++) {                                                             \
        type x = a_[i * (sa)], y = b_[i * (sb)];                                                   \
        to_[i] = (result)(body);                                                                   \
    }
#define LOOP2(type, result, body)                                                                  \
    do {                                                                                           \
        const type *a_ = args[0].at, *b_ = args[1].at;                                             \
        result *to_ = to;                                                                          \
        if (args[0].step && args[1].step)                                                          \
            LOOP2_STEPS(type, result, 1, 1, body)                                                  \
        else if (args[0].step)                                                                     \
            LOOP2_STEPS(type, result, 1, 0, body)                                                  \
        else if (args[1].step)                                                                     \
            LOOP2_STEPS(type, result, 0, 1, body)                                                  \
        else                                                                                       \
            LOOP2_STEPS(type, result, 0, 0, body)                                                  \
    } while (0)

#define MIN_FLOAT(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))
#define MAX_FLOAT(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))

/* Rows on floats of the lane's own type; false for what dlc_scalar_apply does. */
#define FLOAT_ROWS(name, type, suffix)                                                             \
    static int name(dlc_expr_op op, const dlc_strip *args, uint32_t n, void *to)                   \
    {                                                                                              \
        switch (op) {                                                                              \
        case DLC_EXPR_ADD:                                                                         \
            LOOP2(type, type, x + y);                                                              \
            return 1;                                                                              \
        case DLC_EXPR_SUB:                                                                         \
            LOOP2(type, type, x - y);                                                              \
            return 1;                                                                              \
        case DLC_EXPR_MUL:                                                                         \
            LOOP2(type, type, (x) * (y));                                                          \
            return 1;                                                                              \
        case DLC_EXPR_DIV:                                                                         \
            LOOP2(type, type, x / y);                                                              \
            return 1;                                                                              \
        case DLC_EXPR_MIN:                                                                         \
            LOOP2(type, type, MIN_FLOAT(x, y));                                                    \
            return 1;                                                                              \
        case DLC_EXPR_MAX:                                                                         \
            LOOP2(type, type, MAX_FLOAT(x, y));                                                    \
            return 1;                                                                              \
        case DLC_EXPR_NEG:                                                                         \
            LOOP1(type, type, -x);                                                                 \
            return 1;                                                                              \
        case DLC_EXPR_ABS:                                                                         \
            LOOP1(type, type, fabs##suffix(x));                                                    \
            return 1;                                                                              \
        case DLC_EXPR_SQRT:                                                                        \
            LOOP1(type, type, sqrt##suffix(x));                                                    \
            return 1;                                                                              \
        case DLC_EXPR_FLOOR:                                                                       \
            LOOP1(type, type, floor##suffix(x));                                                   \
            return 1;                                                                              \
        case DLC_EXPR_CEIL:                                                                        \
            LOOP1(type, type, ceil##suffix(x));                                                    \
            return 1;                                                                              \
        case DLC_EXPR_RINT:                                                                        \
            LOOP1(type, type, rint##suffix(x));                                                    \
            return 1;                                                                              \
        case DLC_EXPR_TRUNC:                                                                       \
            LOOP1(type, type, trunc##suffix(x));                                                   \
            return 1;                                                                              \
        case DLC_EXPR_LT:                                                                          \
            LOOP2(type, int64_t, x < y);                                                           \
            return 1;                                                                              \
        case DLC_EXPR_LE:                                                                          \
            LOOP2(type, int64_t, x <= y);                                                          \
            return 1;                                                                              \
        case DLC_EXPR_EQ:                                                                          \
            LOOP2(type, int64_t, x == y);                                                          \
            return 1;                                                                              \
        case DLC_EXPR_NE:                                                                          \
            LOOP2(type, int64_t, x != y);                                                          \
            return 1;                                                                              \
        default:                                                                                   \
            return 0;                                                                              \
        }                                                                                          \
    }
FLOAT_ROWS(float_rows, float, f)
FLOAT_ROWS(double_rows, double, )

/* i64 itself; narrower types are wrapped afterwards, and unsigned 64-bit ones are left to
 * dlc_scalar_apply. */
static int int_rows(dlc_expr_op op, const dlc_strip *args, uint32_t n, void *to)
{
    switch (op) {
    case DLC_EXPR_ADD:
        LOOP2(uint64_t, uint64_t, x + y);
        return 1;
    case DLC_EXPR_SUB:
        LOOP2(uint64_t, uint64_t, x - y);
        return 1;
    case DLC_EXPR_MUL:
        LOOP2(uint64_t, uint64_t, x * y);
        return 1;
    case DLC_EXPR_NEG:
        LOOP1(uint64_t, uint64_t, -x);
        return 1;
    case DLC_EXPR_AND:
        LOOP2(int64_t, int64_t, x & y);
        return 1;
    case DLC_EXPR_OR:
        LOOP2(int64_t, int64_t, x | y);
        return 1;
    case DLC_EXPR_XOR:
        LOOP2(int64_t, int64_t, x ^ y);
        return 1;
    case DLC_EXPR_NOT:
        LOOP1(int64_t, int64_t, ~x);
        return 1;
    case DLC_EXPR_MIN:
        LOOP2(int64_t, int64_t, x < y ? x : y);
        return 1;
    case DLC_EXPR_MAX:
        LOOP2(int64_t, int64_t, x > y ? x : y);
        return 1;
    case DLC_EXPR_LT:
        LOOP2(int64_t, int64_t, x < y);
        return 1;
    case DLC_EXPR_LE:
        LOOP2(int64_t, int64_t, x <= y);
        return 1;
    case DLC_EXPR_EQ:
        LOOP2(int64_t, int64_t, x == y);
        return 1;
    case DLC_EXPR_NE:
        LOOP2(int64_t, int64_t, x != y);
        return 1;
    default:
        return 0;
    }
}

/* Shifts by one amount for all points, of signed types quotients and remainders, too. */
static int int_rows_by_one(dlc_expr_op op, dlc_dtype dtype, const dlc_strip *args, uint32_t n,
                           void *to)
{
    if (args[1].step || (dlc_is_unsigned(dtype) && op != DLC_EXPR_SHL && op != DLC_EXPR_SHR))
        return 0;
    int64_t by = *(const int64_t *)args[1].at;
    int is_shift = by >= 0 && by < dlc_dtypes[dtype].bits;
    switch (op) {
    case DLC_EXPR_SHL:
        if (is_shift)
            LOOP1(uint64_t, uint64_t, x << by);
        return is_shift;
    case DLC_EXPR_SHR:
        if (is_shift)
            LOOP1(int64_t, int64_t, x >> by);
        return is_shift;
    case DLC_EXPR_FLOORDIV:
        if (by > 0)
            LOOP1(int64_t, int64_t, x / by - (x % by < 0));
        return by > 0;
    case DLC_EXPR_MOD:
        if (by > 0)
            LOOP1(int64_t, int64_t, x % by + (x % by < 0 ? by : 0));
        return by > 0;
    default:
        return 0;
    }
}

static void wrap(dlc_dtype dtype, uint32_t n, int64_t *at)
{
    unsigned drop = 64 - dlc_dtypes[dtype].bits;
    if (dtype == DLC_BOOL)
        for (uint32_t i = 0; i < n; i++)
            at[i] &= 1;
    else if (drop && dlc_is_unsigned(dtype))
        for (uint32_t i = 0; i < n; i++)
            at[i] = (int64_t)((uint64_t)at[i] << drop >> drop);
    else if (drop)
        for (uint32_t i = 0; i < n; i++)
            at[i] = (int64_t)((uint64_t)at[i] << drop) >> drop;
}

/* --- fused multiply-add: hardware where the machine has it, since libm's call costs ten times as
 * much --- */

#define FUSED_STEPS(type, call, sa, sb, sc)                                                        \
    for (uint32_t i = 0; i < n; i++)                                                               \
        to_[i] = call(a_[i * (sa)], b_[i * (sb)], c_[i * (sc)]);
#define FUSED(name, type, call, attribute)                                                         \
    attribute static void name(const dlc_strip *args, uint32_t n, void *to)                        \
    {                                                                                              \
        const type *a_ = args[0].at, *b_ = args[1].at, *c_ = args[2].at;                           \
        type *to_ = to;                                                                            \
        uint32_t sa = args[0].step, sb = args[1].step, sc = args[2].step;                          \
        if (sa && sb && !sc)                                                                       \
            FUSED_STEPS(type, call, 1, 1, 0)                                                       \
        else if (sa && sb)                                                                         \
            FUSED_STEPS(type, call, 1, 1, 1)                                                       \
        else if (sa && sc)                                                                         \
            FUSED_STEPS(type, call, 1, 0, 1)                                                       \
        else                                                                                       \
            FUSED_STEPS(type, call, sa, sb, sc)                                                    \
    }
FUSED(fused_float, float, fmaf, )
FUSED(fused_double, double, fma, )
#if defined(__x86_64__) && !defined(__FMA__)
#define DLC_HAS_FAST
FUSED(fused_float_fast, float, __builtin_fmaf, __attribute__((target("avx2,fma"))))
FUSED(fused_double_fast, double, __builtin_fma, __attribute__((target("avx2,fma"))))
static int has_fma(void)
{
    return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
}
#else
#define fused_float_fast fused_float
#define fused_double_fast fused_double
static int has_fma(void)
{
    return 0;
}
#endif

static void fused(uint8_t lane, const dlc_strip *args, uint32_t n, void *to)
{
    int is_fast = has_fma();
    if (lane == DLC_LANE_FLOAT)
        (is_fast ? fused_float_fast : fused_float)(args, n, to);
    else
        (is_fast ? fused_double_fast : fused_double)(args, n, to);
}

/* --- select, casts --- */

#define SELECT(type)                                                                               \
    do {                                                                                           \
        const int64_t *c_ = args[0].at;                                                            \
        const type *a_ = args[1].at, *b_ = args[2].at;                                             \
        type *to_ = to;                                                                            \
        if (args[0].step && args[1].step && args[2].step)                                          \
            for (uint32_t i = 0; i < n; i++)                                                       \
                to_[i] = c_[i] ? a_[i] : b_[i];                                                    \
        else                                                                                       \
            for (uint32_t i = 0; i < n; i++)                                                       \
                to_[i] = c_[i * args[0].step] ? a_[i * args[1].step] : b_[i * args[2].step];       \
    } while (0)

static void select_rows(uint8_t lane, const dlc_strip *args, uint32_t n, void *to)
{
    if (lane == DLC_LANE_FLOAT)
        SELECT(float);
    else if (lane == DLC_LANE_DOUBLE)
        SELECT(double);
    else
        SELECT(int64_t);
}

/* Casts between floats in strict or wide mode. Wide: only a cast to a narrower type rounds, since
 * that is what was asked. */
static int cast_floats(const dlc_strip_op *op, uint8_t from, uint8_t lane, const dlc_strip *args,
                       uint32_t n, void *to)
{
    if (op->dtype == DLC_F16 || op->dtype == DLC_BF16)
        return 0;
    int is_kept = op->is_wide && dlc_dtypes[op->dtype].bits >= dlc_dtypes[op->from].bits;
    if (from == DLC_LANE_FLOAT && lane == DLC_LANE_DOUBLE)
        LOOP1(float, double, x);
    else if (from == DLC_LANE_DOUBLE && lane == DLC_LANE_FLOAT)
        LOOP1(double, float, x);
    else if (from == DLC_LANE_DOUBLE && (is_kept || op->dtype == DLC_F64))
        LOOP1(double, double, x);
    else if (from == DLC_LANE_DOUBLE)
        LOOP1(double, double, (float)x);
    else
        return 0;
    return 1;
}

static int cast_ints(const dlc_strip_op *op, const dlc_strip *args, uint32_t n, void *to)
{
    if (op->dtype == DLC_BOOL)
        LOOP1(int64_t, int64_t, x != 0);
    else if (op->op != DLC_EXPR_CAST)
        return 0;
    else
        LOOP1(int64_t, int64_t, x);
    if (op->dtype != DLC_BOOL)
        wrap((dlc_dtype)op->dtype, n, to);
    return 1;
}

static int cast_rows(const dlc_strip_op *op, const dlc_strip *args, uint32_t n, void *to)
{
    uint8_t from = dlc_lane_of((dlc_dtype)op->from, op->is_wide).lane;
    uint8_t lane = dlc_lane_of((dlc_dtype)op->dtype, op->is_wide).lane;
    if (from == DLC_LANE_INT && lane == DLC_LANE_INT)
        return cast_ints(op, args, n, to);
    if (from != DLC_LANE_INT && lane != DLC_LANE_INT)
        return cast_floats(op, from, lane, args, n, to);
    if (from == DLC_LANE_INT && op->from != DLC_U64 &&
        (op->dtype == DLC_F32 || op->dtype == DLC_F64)) {
        if (lane == DLC_LANE_FLOAT)
            LOOP1(int64_t, float, x);
        else if (op->dtype == DLC_F64)
            LOOP1(int64_t, double, x);
        else
            LOOP1(int64_t, double, (float)x);
        return 1;
    }
    return 0;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The bits of a number that is a bf16, which most are; of others there are more, or it is none. */
static uint32_t bits_of(double value, int *is_bf16)
{
    const uint32_t lower = 0xffff;
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    *is_bf16 = (double)narrow == value && !(bits & lower);
    return bits >> 16;
}

static int bitcast_rows(const dlc_strip_op *op, const dlc_strip *args, uint32_t n, void *to)
{
    if (op->from == DLC_F32 && op->dtype == DLC_U32 && !op->is_wide) {
        const uint32_t *a = args[0].at;
        for (uint32_t i = 0; i < n; i++)
            ((int64_t *)to)[i] = a[i * args[0].step];
        return 1;
    }
    if (op->from == DLC_U32 && op->dtype == DLC_F32 && !op->is_wide) {
        const int64_t *a = args[0].at;
        for (uint32_t i = 0; i < n; i++)
            ((uint32_t *)to)[i] = (uint32_t)a[i * args[0].step];
        return 1;
    }
    if (op->from == DLC_U16 && op->dtype == DLC_BF16) {
        LOOP1(int64_t, double, float_of((uint32_t)x << 16));
        return 1;
    }
    if (op->from == DLC_F32 && op->dtype == DLC_I32 && !op->is_wide) {
        const int32_t *a = args[0].at;
        for (uint32_t i = 0; i < n; i++)
            ((int64_t *)to)[i] = a[i * args[0].step];
        return 1;
    }
    if (op->from == DLC_I32 && op->dtype == DLC_F32 && !op->is_wide) {
        const int64_t *a = args[0].at;
        for (uint32_t i = 0; i < n; i++)
            ((int32_t *)to)[i] = (int32_t)a[i * args[0].step];
        return 1;
    }
    if ((op->from == DLC_F64 && op->dtype == DLC_I64) ||
        (op->from == DLC_I64 && op->dtype == DLC_F64)) {
        LOOP1(int64_t, int64_t, x);
        return 1;
    }
    return 0;
}

/* --- one operator --- */

/* Point by point. In wide mode a bitcast goes through the type the expression names, arithmetic
 * through f64. */
static void apply_each(const dlc_strip_op *op, const dlc_strip *args, uint32_t n, void *to)
{
    dlc_lane_type from = dlc_lane_of((dlc_dtype)op->from, op->is_wide);
    dlc_lane_type result = dlc_lane_of((dlc_dtype)op->dtype, op->is_wide);
    int is_conversion =
        op->op == DLC_EXPR_CAST || op->op == DLC_EXPR_CAST_SAT || op->op == DLC_EXPR_CAST_FTZ || op->op == DLC_EXPR_BITCAST;
    dlc_dtype in = (dlc_dtype)(is_conversion && op->op != DLC_EXPR_BITCAST ? op->from : from.dtype);
    if (op->op == DLC_EXPR_BITCAST)
        in = (dlc_dtype)op->from;
    dlc_dtype out = (dlc_dtype)(is_conversion ? op->dtype : result.dtype);
    uint32_t nargs = (uint32_t)dlc_exprs[op->op].nargs;
    dlc_scalar values[3];
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < nargs; k++)
            values[k] = dlc_strip_get(from.lane, args[k], i);
        dlc_strip_put(result.lane, to, i, dlc_scalar_apply((dlc_expr_op)op->op, in, out, values));
    }
}

/* The written-out loop for the row, if there is one. */
static int apply_rows(const dlc_strip_op *op, const dlc_strip *args, uint32_t n, void *to)
{
    dlc_lane_type from = dlc_lane_of((dlc_dtype)op->from, op->is_wide);
    dlc_expr_op row = (dlc_expr_op)op->op;
    switch (row) {
    case DLC_EXPR_SELECT:
        select_rows(from.lane, args, n, to);
        return 1;
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_SAT:
        return cast_rows(op, args, n, to);
    case DLC_EXPR_BITCAST:
        return bitcast_rows(op, args, n, to);
    default:
        break;
    }
    if (from.dtype == DLC_F16 || from.dtype == DLC_BF16 || from.dtype == DLC_U64)
        return 0;
    if (from.lane != DLC_LANE_INT && (row == DLC_EXPR_MULADD || row == DLC_EXPR_FMA)) {
        fused(from.lane, args, n, to);
        return 1;
    }
    if (from.lane == DLC_LANE_FLOAT)
        return float_rows(row, args, n, to);
    if (from.lane == DLC_LANE_DOUBLE)
        return double_rows(row, args, n, to);
    if (!int_rows(row, args, n, to) &&
        !(dlc_exprs[row].nargs == 2 && int_rows_by_one(row, from.dtype, args, n, to)))
        return 0;
    wrap((dlc_dtype)op->dtype, n, to);
    return 1;
}

void dlc_strip_apply(const dlc_strip_op *op, const dlc_strip *args, uint32_t n, void *to)
{
    if (!apply_rows(op, args, n, to))
        apply_each(op, args, n, to);
}

/* --- reductions --- */

#define MAC_STEPS(x, y)                                                                            \
    for (uint32_t i = 0; i < n; i++)                                                               \
        acc_[i] += (x) * (y);
#define MAC(name, type, attribute)                                                                 \
    attribute static void name(dlc_strip a, dlc_strip b, uint32_t n, void *acc)                    \
    {                                                                                              \
        const type *a_ = a.at, *b_ = b.at;                                                         \
        type *restrict acc_ = acc;                                                                 \
        type x = *a_, y = *b_; /* read once where uniform */                                       \
        if (a.step && b.step)                                                                      \
            MAC_STEPS(a_[i], b_[i])                                                                \
        else if (a.step)                                                                           \
            MAC_STEPS(a_[i], y)                                                                    \
        else if (b.step)                                                                           \
            MAC_STEPS(x, b_[i])                                                                    \
        else                                                                                       \
            MAC_STEPS(x, y)                                                                        \
    }
MAC(mac_float, float, )
MAC(mac_double, double, )
#ifdef DLC_HAS_FAST
MAC(mac_float_fast, float, __attribute__((target("avx2"))))
MAC(mac_double_fast, double, __attribute__((target("avx2"))))
#else
#define mac_float_fast mac_float
#define mac_double_fast mac_double
#endif

void dlc_strip_mac(uint8_t lane, dlc_strip a, dlc_strip b, uint32_t n, void *acc)
{
    int is_fast = has_fma();
    if (lane == DLC_LANE_FLOAT)
        (is_fast ? mac_float_fast : mac_float)(a, b, n, acc);
    else
        (is_fast ? mac_double_fast : mac_double)(a, b, n, acc);
}

#define FOLD(type, body)                                                                           \
    do {                                                                                           \
        const type *v_ = v.at;                                                                     \
        type x = *(type *)acc;                                                                     \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            type y = v_[i * v.step];                                                               \
            x = (body);                                                                            \
        }                                                                                          \
        *(type *)acc = x;                                                                          \
    } while (0)
#define FOLD_ROWS(type)                                                                            \
    switch (row) {                                                                                 \
    case DLC_EXPR_ADD:                                                                             \
        FOLD(type, x + y);                                                                         \
        return;                                                                                    \
    case DLC_EXPR_MUL:                                                                             \
        FOLD(type, (x) * (y));                                                                     \
        return;                                                                                    \
    case DLC_EXPR_MIN:                                                                             \
        FOLD(type, MIN_FLOAT(x, y));                                                               \
        return;                                                                                    \
    case DLC_EXPR_MAX:                                                                             \
        FOLD(type, MAX_FLOAT(x, y));                                                               \
        return;                                                                                    \
    default:                                                                                       \
        break;                                                                                     \
    }

void dlc_strip_fold(const dlc_strip_op *op, dlc_strip v, uint32_t n, void *acc)
{
    dlc_lane_type type = dlc_lane_of((dlc_dtype)op->dtype, op->is_wide);
    dlc_expr_op row = (dlc_expr_op)op->op;
    if (type.dtype == DLC_F32 && type.lane == DLC_LANE_FLOAT)
        FOLD_ROWS(float)
    if (type.dtype == DLC_F64)
        FOLD_ROWS(double)
    if (type.dtype == DLC_I64 && row == DLC_EXPR_ADD) {
        FOLD(uint64_t, x + y);
        return;
    }
    uint32_t bytes = dlc_lane_bytes(type.lane);
    for (uint32_t i = 0; i < n; i++) {
        dlc_strip args[2] = {{acc, 0}, {(const char *)v.at + (size_t)i * v.step * bytes, 0}};
        dlc_strip_apply(op, args, 1, acc);
    }
}

void dlc_strip_fill(uint8_t lane, const void *value, uint32_t n, void *to)
{
    dlc_strip args[1] = {{value, 0}};
    if (lane == DLC_LANE_FLOAT)
        LOOP1(float, float, x);
    else
        LOOP1(int64_t, int64_t, x);
}

void dlc_strip_ramp(int64_t start, int64_t step, uint32_t n, int64_t *to)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = (int64_t)((uint64_t)start + i * (uint64_t)step);
}

/* --- memory --- */

/* Weights lie in the mapped model at any address: packed makes the access right wherever it is. */
#define LOAD(memory, type, convert)                                                                \
    do {                                                                                           \
        const struct {                                                                             \
            memory at;                                                                             \
        } __attribute__((packed)) *base = from->base;                                              \
        type *to_ = to;                                                                            \
        if (from->offsets)                                                                         \
            for (uint32_t i = 0; i < n; i++) {                                                     \
                memory x = base[from->offsets[i]].at;                                              \
                to_[i] = (type)(convert);                                                          \
            }                                                                                      \
        else if (from->stride == 1)                                                                \
            for (uint32_t i = 0; i < n; i++) {                                                     \
                memory x = base[from->start + i].at;                                               \
                to_[i] = (type)(convert);                                                          \
            }                                                                                      \
        else                                                                                       \
            for (uint32_t i = 0; i < n; i++) {                                                     \
                memory x = base[from->start + i * from->stride].at;                                \
                to_[i] = (type)(convert);                                                          \
            }                                                                                      \
    } while (0)

static int64_t offset_of(const dlc_elements *elements, uint32_t i)
{
    return elements->offsets ? elements->offsets[i] : elements->start + i * elements->stride;
}

void dlc_strip_load(const dlc_elements *from, uint8_t lane, uint32_t n, void *to)
{
    switch (from->dtype) {
    case DLC_F32:
        if (lane == DLC_LANE_FLOAT)
            LOAD(float, float, x);
        else
            LOAD(float, double, x);
        return;
    case DLC_F64:
        LOAD(double, double, x);
        return;
    case DLC_BOOL:
        LOAD(uint8_t, int64_t, x != 0);
        return;
    case DLC_I8:
        LOAD(int8_t, int64_t, x);
        return;
    case DLC_I16:
        LOAD(int16_t, int64_t, x);
        return;
    case DLC_I32:
        LOAD(int32_t, int64_t, x);
        return;
    case DLC_I64:
        LOAD(int64_t, int64_t, x);
        return;
    case DLC_U8:
        LOAD(uint8_t, int64_t, x);
        return;
    case DLC_U16:
        LOAD(uint16_t, int64_t, x);
        return;
    case DLC_U32:
        LOAD(uint32_t, int64_t, x);
        return;
    case DLC_U64:
        LOAD(uint64_t, int64_t, x);
        return;
    case DLC_BF16:
        LOAD(uint16_t, double, float_of((uint32_t)x << 16));
        return;
    default:
        break;
    }
    const char *base = from->base;
    uint32_t bytes = dlc_dtype_bytes((dlc_dtype)from->dtype);
    for (uint32_t i = 0; i < n; i++)
        dlc_strip_put(lane, to, i,
                      dlc_scalar_read((dlc_dtype)from->dtype, base + offset_of(from, i) * bytes));
}

/* A strip may be a view of weights, which lie at any address. */
#define STORE(memory, type)                                                                        \
    do {                                                                                           \
        memory *base = into->base;                                                                 \
        const struct {                                                                             \
            type at;                                                                               \
        } __attribute__((packed)) *v_ = value.at;                                                  \
        if (into->offsets)                                                                         \
            for (uint32_t i = 0; i < n; i++)                                                       \
                base[into->offsets[i]] = (memory)v_[i * value.step].at;                            \
        else if (into->stride == 1 && value.step == 1)                                             \
            for (uint32_t i = 0; i < n; i++)                                                       \
                base[into->start + i] = (memory)v_[i].at;                                          \
        else                                                                                       \
            for (uint32_t i = 0; i < n; i++)                                                       \
                base[into->start + i * into->stride] = (memory)v_[i * value.step].at;              \
    } while (0)

static void store_bf16(const dlc_elements *into, dlc_strip value, uint32_t n)
{
    uint16_t *base = into->base;
    for (uint32_t i = 0; i < n; i++) {
        int is_bf16;
        dlc_scalar v = dlc_strip_get(DLC_LANE_DOUBLE, value, i);
        uint32_t bits = bits_of(v.f, &is_bf16);
        if (is_bf16)
            base[offset_of(into, i)] = (uint16_t)bits;
        else
            dlc_scalar_write(DLC_BF16, &base[offset_of(into, i)], v);
    }
}

void dlc_strip_store(const dlc_elements *into, uint8_t lane, dlc_strip value, uint32_t n)
{
    switch (into->dtype) {
    case DLC_F32:
        if (lane == DLC_LANE_FLOAT)
            STORE(float, float);
        else
            STORE(float, double);
        return;
    case DLC_F64:
        STORE(double, double);
        return;
    case DLC_BOOL:
    case DLC_I8:
    case DLC_U8:
        STORE(uint8_t, int64_t);
        return;
    case DLC_I16:
    case DLC_U16:
        STORE(uint16_t, int64_t);
        return;
    case DLC_I32:
    case DLC_U32:
        STORE(uint32_t, int64_t);
        return;
    case DLC_I64:
    case DLC_U64:
        STORE(int64_t, int64_t);
        return;
    case DLC_BF16:
        store_bf16(into, value, n);
        return;
    default:
        break;
    }
    char *base = into->base;
    uint32_t bytes = dlc_dtype_bytes((dlc_dtype)into->dtype);
    for (uint32_t i = 0; i < n; i++)
        dlc_scalar_write((dlc_dtype)into->dtype, base + offset_of(into, i) * bytes,
                         dlc_strip_get(lane, value, i));
}

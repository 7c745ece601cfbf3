/*
 * Building a node: constants fold, i64 goes to its sums, quotients and comparisons, and what
 * remains passes the identities of its operator. An identity holds for every value: x * 0 = 0 for
 * integers, never for floats, where x may be NaN or infinite.
 */
#include "ir/expr/build.h"

#include <assert.h>
#include <math.h>

/* --- constants --- */

static int is_const(const dlc_pool *pool, dlc_expr expr)
{
    return dlc_op_of(pool, expr) == DLC_EXPR_CONST;
}

/* Elementary functions are not folded here: their value is that of their expansion. */
static int is_folded(const dlc_pool *pool, dlc_expr_op op, const dlc_expr *args, uint32_t nargs)
{
    for (uint32_t i = 0; i < nargs; i++)
        if (!is_const(pool, args[i]))
            return 0;
    return op < DLC_EXPR_EXP && nargs > 0;
}

static dlc_expr fold(dlc_pool *pool, dlc_expr_op op, dlc_dtype dtype, const dlc_expr *args,
                     uint32_t nargs)
{
    dlc_scalar values[3];
    for (uint32_t i = 0; i < nargs; i++)
        values[i] = dlc_const_scalar(pool, args[i]);
    return dlc_expr_scalar(
        pool, dtype, dlc_scalar_apply(op, dlc_dtype_of(pool, args[nargs > 2]), dtype, values));
}

static int is_int(const dlc_pool *pool, dlc_expr expr, int64_t wanted)
{
    int64_t value;
    return dlc_expr_is_int(pool, expr, &value) && value == wanted;
}

/* Tells -0 from 0. */
static int is_float(const dlc_pool *pool, dlc_expr expr, double wanted)
{
    double value;
    return dlc_expr_is_float(pool, expr, &value) && value == wanted &&
           signbit(value) == signbit(wanted);
}

static int is_all_ones(const dlc_pool *pool, dlc_expr expr)
{
    dlc_dtype dtype = dlc_dtype_of(pool, expr);
    return is_int(pool, expr, dlc_is_unsigned(dtype) ? (int64_t)dlc_dtype_highest(dtype) : -1);
}

/* --- integers that are not i64 sums --- */

static dlc_expr int_const(dlc_pool *pool, dlc_expr like, int64_t value)
{
    return dlc_expr_const_i(pool, dlc_dtype_of(pool, like), value);
}

static int commutes(dlc_expr_op op)
{
    return op == DLC_EXPR_ADD || op == DLC_EXPR_MUL || op == DLC_EXPR_AND || op == DLC_EXPR_OR ||
           op == DLC_EXPR_XOR || op == DLC_EXPR_EQ || op == DLC_EXPR_NE;
}

static int is_comparison(dlc_expr_op op)
{
    return op == DLC_EXPR_LT || op == DLC_EXPR_LE || op == DLC_EXPR_EQ || op == DLC_EXPR_NE;
}

/* (x op c) op d = x op (c op d), for operators that are associative on integers; constants stand
 * right. */
static dlc_expr reassociate(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    if (op == DLC_EXPR_SUB || !commutes(op) || dlc_op_of(pool, a) != op || !is_const(pool, b) ||
        !is_const(pool, dlc_arg(pool, a, 1)))
        return 0;
    dlc_expr x = dlc_arg(pool, a, 0);
    return dlc_expr2(pool, op, x, dlc_expr2(pool, op, dlc_arg(pool, a, 1), b));
}

static dlc_expr int_binary(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    int is_zero = is_int(pool, b, 0), is_one = is_int(pool, b, 1);
    switch (op) {
    case DLC_EXPR_ADD:
    case DLC_EXPR_SHL:
    case DLC_EXPR_SHR:
        return is_zero ? a : 0;
    case DLC_EXPR_SUB:
        return is_zero ? a : a == b ? int_const(pool, a, 0) : 0;
    case DLC_EXPR_XOR:
        return is_zero ? a : a == b ? int_const(pool, a, 0) : 0;
    case DLC_EXPR_MUL:
        return is_zero ? b : is_one ? a : 0;
    case DLC_EXPR_DIV:
    case DLC_EXPR_FLOORDIV:
        return is_zero ? b : is_one ? a : is_int(pool, a, 0) ? a : 0;
    case DLC_EXPR_REM:
    case DLC_EXPR_MOD:
        return is_zero ? b : is_one ? int_const(pool, a, 0) : is_int(pool, a, 0) ? a : 0;
    case DLC_EXPR_AND:
        return is_zero ? b : is_all_ones(pool, b) || a == b ? a : 0;
    case DLC_EXPR_OR:
        return is_zero || a == b ? a : is_all_ones(pool, b) ? b : 0;
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
        return a == b ? a : 0;
    default:
        return 0;
    }
}

static dlc_expr i64_extreme(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    int64_t difference;
    if (dlc_compare_const(pool, a, b, &difference))
        return (difference < 0) == (op == DLC_EXPR_MIN) ? a : b;
    return 0;
}

static dlc_expr i64_binary(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    int64_t shift;
    switch (op) {
    case DLC_EXPR_ADD:
        return dlc_sum_add(pool, a, b, 1);
    case DLC_EXPR_SUB:
        return dlc_sum_add(pool, a, b, -1);
    case DLC_EXPR_MUL:
        return dlc_sum_mul(pool, a, b);
    case DLC_EXPR_FLOORDIV:
        return dlc_div_floor(pool, a, b);
    case DLC_EXPR_MOD:
        return dlc_div_mod(pool, a, b);
    case DLC_EXPR_SHL:
        if (!dlc_expr_is_int(pool, b, &shift))
            return 0;
        return dlc_muli(pool, a, shift < 0 || shift > 63 ? 0 : (int64_t)(UINT64_C(1) << shift));
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
        return i64_extreme(pool, op, a, b);
    default:
        return 0;
    }
}

/* --- floats --- */

static int is_power_of_two(double value)
{
    int exponent;
    return isnormal(value) && fabs(frexp(value, &exponent)) == 0.5;
}

/* x / c = x * (1/c), exact when 1/c is: the same real number is rounded once. */
static dlc_expr float_division(dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    double divisor;
    dlc_dtype dtype = dlc_dtype_of(pool, a);
    if (!dlc_expr_is_float(pool, b, &divisor) || !is_power_of_two(divisor))
        return 0;
    double inverse = 1 / divisor;
    if (!isnormal(inverse) || dlc_round_to(dtype, inverse) != inverse)
        return 0;
    return dlc_mul(pool, a, dlc_expr_const(pool, dtype, inverse));
}

static dlc_expr float_binary(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    switch (op) {
    case DLC_EXPR_ADD: /* x + 0 is not x: -0 + 0 = 0 */
        return is_float(pool, b, -0.0) ? a : 0;
    case DLC_EXPR_SUB:
        return is_float(pool, b, 0.0) ? a : 0;
    case DLC_EXPR_MUL:
        if (is_float(pool, b, -1))
            return dlc_expr1(pool, DLC_EXPR_NEG, a);
        return is_float(pool, b, 1) ? a : 0;
    case DLC_EXPR_DIV:
        return float_division(pool, a, b);
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
        return a == b ? a : 0;
    default:
        return 0;
    }
}

/* --- one operand --- */

static int is_rounding(dlc_expr_op op)
{
    return op == DLC_EXPR_FLOOR || op == DLC_EXPR_CEIL || op == DLC_EXPR_RINT ||
           op == DLC_EXPR_TRUNC;
}

/* not (a < b) = b <= a for integers; not (a == b) = a != b for all */
static dlc_expr negation(dlc_pool *pool, dlc_expr a)
{
    dlc_expr_op op = dlc_op_of(pool, a);
    if (op == DLC_EXPR_NOT)
        return dlc_arg(pool, a, 0);
    if (op == DLC_EXPR_EQ || op == DLC_EXPR_NE)
        return dlc_expr2(pool, op == DLC_EXPR_EQ ? DLC_EXPR_NE : DLC_EXPR_EQ, dlc_arg(pool, a, 0),
                         dlc_arg(pool, a, 1));
    if ((op == DLC_EXPR_LT || op == DLC_EXPR_LE) &&
        !dlc_is_float(dlc_dtype_of(pool, dlc_arg(pool, a, 0))))
        return dlc_expr2(pool, op == DLC_EXPR_LT ? DLC_EXPR_LE : DLC_EXPR_LT, dlc_arg(pool, a, 1),
                         dlc_arg(pool, a, 0));
    return 0;
}

static dlc_expr unary(dlc_pool *pool, dlc_expr_op op, dlc_expr a)
{
    dlc_expr_op inner = dlc_op_of(pool, a);
    dlc_dtype dtype = dlc_dtype_of(pool, a);
    if (op == DLC_EXPR_NOT)
        return negation(pool, a);
    if (op == DLC_EXPR_NEG && dtype == DLC_I64)
        return dlc_muli(pool, a, -1);
    if (op == DLC_EXPR_NEG && inner == DLC_EXPR_NEG)
        return dlc_arg(pool, a, 0);
    if (op == DLC_EXPR_ABS && (inner == DLC_EXPR_ABS || dlc_is_unsigned(dtype)))
        return a;
    if (op == DLC_EXPR_ABS && inner == DLC_EXPR_NEG)
        return dlc_expr1(pool, DLC_EXPR_ABS, dlc_arg(pool, a, 0));
    if (is_rounding(op) && is_rounding(inner))
        return a;
    return 0;
}

/* --- conversions --- */

static uint32_t significant_bits(dlc_dtype dtype)
{
    switch (dtype) {
    case DLC_F16:
        return 11;
    case DLC_BF16:
        return 8;
    case DLC_F32:
        return 24;
    case DLC_F64:
        return 53;
    case DLC_BOOL:
        return 1;
    default:
        return dlc_dtypes[dtype].bits - !dlc_is_unsigned(dtype);
    }
}

/* Whether every value of `from` is one of `to`. */
static int is_lossless(dlc_dtype from, dlc_dtype to)
{
    if (from == to)
        return 1;
    if (to == DLC_BOOL)
        return 0;
    uint32_t bits = significant_bits(from);
    if (dlc_is_float(from)) /* bf16 has f32's exponents, f16 has not bf16's precision */
        return dlc_is_float(to) && dlc_dtypes[to].bits > dlc_dtypes[from].bits;
    if (dlc_is_float(to)) /* f16 ends at 65504, above every integer of 11 bits; a minimum is a power
                             of two */
        return bits <= significant_bits(to);
    int is_signed = dlc_is_int(from) && !dlc_is_unsigned(from);
    return bits <= significant_bits(to) && !(is_signed && dlc_is_unsigned(to));
}

static int is_narrowing_chain(dlc_dtype middle, dlc_dtype to, dlc_dtype from)
{
    return dlc_is_int(from) && dlc_is_int(middle) && dlc_is_int(to) &&
           dlc_dtypes[middle].bits >= dlc_dtypes[to].bits;
}

/* x of e = x + c (op ADD) or x - c (SUB), c whole and small enough for f32 to keep sums with bytes; else e itself, less 0. */
static dlc_expr without_shift(const dlc_pool *pool, dlc_expr_op op, dlc_expr e, double *shift)
{
    enum { MOST_SHIFT = 1 << 16 };
    int64_t whole;
    double found;
    *shift = 0;
    if (dlc_op_of(pool, e) != op)
        return e;
    if (dlc_expr_is_int(pool, dlc_arg(pool, e, 1), &whole))
        found = (double)whole;
    else if (!dlc_expr_is_float(pool, dlc_arg(pool, e, 1), &found))
        return e;
    if (!(fabs(found) <= MOST_SHIFT) || found != rint(found))
        return e;
    *shift = found;
    return dlc_arg(pool, e, 0);
}

/* The byte that e widens to 32 bits or more, where a difference with it cannot wrap; else e itself. */
static dlc_expr widened_byte(const dlc_pool *pool, dlc_expr e)
{
    while (dlc_op_of(pool, e) == DLC_EXPR_CAST && (dlc_dtype_of(pool, e) == DLC_I32 || dlc_dtype_of(pool, e) == DLC_I64) &&
           dlc_is_int(dlc_dtype_of(pool, dlc_arg(pool, e, 0))) &&
           is_lossless(dlc_dtype_of(pool, dlc_arg(pool, e, 0)), dlc_dtype_of(pool, e)))
        e = dlc_arg(pool, e, 0);
    return e;
}

/* What a byte holds of a rounded float, as a float again: f32(i32(u8(rint(x) + s)) - c) = limit(rint(x), -s, 255 - s) + (s - c). The
 * sum makes -0 the 0 that comes of an integer, also where s - c is 0. The result 0: e is nothing of the kind. */
static dlc_expr limited_float(dlc_pool *pool, dlc_expr e)
{
    double taken, shift;
    dlc_expr wide = without_shift(pool, DLC_EXPR_SUB, e, &taken), byte = widened_byte(pool, wide);
    dlc_dtype dtype = dlc_dtype_of(pool, byte);
    if ((wide != e && byte == wide) || dlc_op_of(pool, byte) != DLC_EXPR_CAST || (dtype != DLC_U8 && dtype != DLC_I8) ||
        dlc_dtype_of(pool, dlc_arg(pool, byte, 0)) != DLC_F32)
        return 0;
    dlc_expr x = without_shift(pool, DLC_EXPR_ADD, dlc_arg(pool, byte, 0), &shift);
    if (dlc_op_of(pool, x) != DLC_EXPR_RINT)
        return 0;
    double least = dtype == DLC_U8 ? 0 : -128, greatest = dtype == DLC_U8 ? 255 : 127;
    dlc_expr low = dlc_expr_const(pool, DLC_F32, least - shift), high = dlc_expr_const(pool, DLC_F32, greatest - shift);
    if (dtype == DLC_I8) /* of NaN comes 0 */
        x = dlc_select(pool, dlc_expr2(pool, DLC_EXPR_EQ, x, x), x, dlc_expr_const(pool, DLC_F32, -shift));
    x = dlc_select(pool, dlc_expr2(pool, DLC_EXPR_LT, low, x), x, low);
    x = dlc_select(pool, dlc_expr2(pool, DLC_EXPR_LT, x, high), x, high);
    return dlc_expr2(pool, DLC_EXPR_ADD, x, dlc_expr_const(pool, DLC_F32, shift - taken));
}

/* What e is limited to: select(bound < x, x, bound), or with x below. */
static dlc_expr bounded(const dlc_pool *pool, dlc_expr e, int is_below, double *bound)
{
    if (dlc_op_of(pool, e) != DLC_EXPR_SELECT || dlc_op_of(pool, dlc_arg(pool, e, 0)) != DLC_EXPR_LT)
        return 0;
    dlc_expr condition = dlc_arg(pool, e, 0), x = dlc_arg(pool, e, 1), limit = dlc_arg(pool, e, 2);
    int is_it = dlc_arg(pool, condition, 0) == (is_below ? x : limit) && dlc_arg(pool, condition, 1) == (is_below ? limit : x);
    return is_it && dlc_expr_is_float(pool, limit, bound) ? x : 0;
}

/* x of select(x == x, x, a whole number between); 0: it is another choice. */
static dlc_expr not_nan(const dlc_pool *pool, dlc_expr e, double low, double high)
{
    dlc_expr condition = dlc_arg(pool, e, 0), x = dlc_arg(pool, e, 1);
    double otherwise;
    int is_it = dlc_op_of(pool, condition) == DLC_EXPR_EQ && dlc_arg(pool, condition, 0) == x && dlc_arg(pool, condition, 1) == x &&
                dlc_expr_is_float(pool, dlc_arg(pool, e, 2), &otherwise) && otherwise == rint(otherwise) && otherwise >= low && otherwise <= high;
    return is_it ? x : 0;
}

int dlc_expr_is_limited(const dlc_pool *pool, dlc_expr e, double *least)
{
    double low, high, shift;
    if (dlc_dtype_of(pool, e) != DLC_F32 || dlc_op_of(pool, e) != DLC_EXPR_ADD || !dlc_expr_is_float(pool, dlc_arg(pool, e, 1), &shift))
        return 0;
    dlc_expr x = bounded(pool, dlc_arg(pool, e, 0), 1, &high);
    x = x ? bounded(pool, x, 0, &low) : 0;
    if (x && dlc_op_of(pool, x) == DLC_EXPR_SELECT)
        x = not_nan(pool, x, low, high);
    *least = x ? low + shift : 0;
    return x && dlc_op_of(pool, x) == DLC_EXPR_RINT && low == rint(low) && shift == rint(shift) && high - low == UINT8_MAX;
}

/* e, which is read where 0 and -0 are one, without the sums that only make 0 of -0: an integer that is made of it does not show them. What is
 * divided by, and what tells zeros apart, keeps its own. left: nodes that may still be visited. */
static dlc_expr without_zero_signs(dlc_pool *pool, dlc_expr e, uint32_t *left)
{
    dlc_expr_op op = dlc_op_of(pool, e);
    dlc_dtype dtype = dlc_dtype_of(pool, e);
    dlc_expr args[3];
    uint32_t nargs = dlc_node_of(pool, e)->nargs;
    int is_comparing = is_comparison(op), is_kept = 1;
    if (!*left || (!dlc_is_float(dtype) && !is_comparing))
        return e;
    --*left;
    switch (op) {
    case DLC_EXPR_ADD:
        if (is_float(pool, dlc_arg(pool, e, 1), 0.0))
            return without_zero_signs(pool, dlc_arg(pool, e, 0), left);
        break;
    case DLC_EXPR_SUB:
    case DLC_EXPR_MUL:
    case DLC_EXPR_FMA:
    case DLC_EXPR_MULADD:
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
    case DLC_EXPR_NEG:
    case DLC_EXPR_ABS:
    case DLC_EXPR_RINT:
    case DLC_EXPR_FLOOR:
    case DLC_EXPR_CEIL:
    case DLC_EXPR_TRUNC:
    case DLC_EXPR_SELECT:
        break;
    default:
        if (!is_comparing)
            return e;
    }
    for (uint32_t i = 0; i < nargs; i++) {
        args[i] = without_zero_signs(pool, dlc_arg(pool, e, i), left);
        is_kept &= args[i] == dlc_arg(pool, e, i);
    }
    return is_kept ? e : dlc_expr_make(pool, op, dtype, args, nargs);
}

static dlc_expr conversion(dlc_pool *pool, dlc_expr_op op, dlc_dtype to, dlc_expr a)
{
    dlc_dtype from = dlc_dtype_of(pool, a);
    if (from == to)
        return a;
    enum { MOST_SIGNS = 64 };
    dlc_expr_op inner = dlc_op_of(pool, a);
    uint32_t left = MOST_SIGNS;
    if (op != DLC_EXPR_BITCAST && dlc_is_float(from) && !dlc_is_float(to)) {
        dlc_expr plain = without_zero_signs(pool, a, &left);
        if (plain != a)
            return dlc_expr_make(pool, op, to, &plain, 1);
    }
    if (op == DLC_EXPR_BITCAST)
        return inner == op ? dlc_expr_bitcast(pool, to, dlc_arg(pool, a, 0)) : 0;
    int both_int = !dlc_is_float(from) && !dlc_is_float(to) && to != DLC_BOOL;
    int both_float = dlc_is_float(from) && dlc_is_float(to);
    if ((op == DLC_EXPR_CAST_SAT && (!both_int || is_lossless(from, to))) || (op == DLC_EXPR_CAST_FTZ && !both_float))
        return dlc_expr_cast(pool, to, a);
    if (op == DLC_EXPR_CAST_FTZ)
        return 0;
    dlc_expr limited = op == DLC_EXPR_CAST && to == DLC_F32 && dlc_is_int(from) ? limited_float(pool, a) : 0;
    if (limited || inner != DLC_EXPR_CAST)
        return limited;
    dlc_expr x = dlc_arg(pool, a, 0);
    dlc_dtype first = dlc_dtype_of(pool, x);
    if (dlc_is_float(from) &&
        !dlc_is_float(first)) /* on the way back from floats integers saturate */
        op = DLC_EXPR_CAST_SAT;
    if (is_lossless(first, from) || (op == DLC_EXPR_CAST && is_narrowing_chain(from, to, first)))
        return op == DLC_EXPR_CAST ? dlc_expr_cast(pool, to, x) : dlc_expr_cast_sat(pool, to, x);
    return 0;
}

/* --- select --- */

static dlc_expr choice(dlc_pool *pool, dlc_expr condition, dlc_expr yes, dlc_expr no)
{
    int64_t value;
    if (dlc_expr_is_int(pool, condition, &value))
        return value ? yes : no;
    if (yes == no)
        return yes;
    if (dlc_op_of(pool, condition) == DLC_EXPR_NOT)
        return dlc_select(pool, dlc_arg(pool, condition, 0), no, yes);
    if (dlc_dtype_of(pool, yes) != DLC_BOOL)
        return 0;
    if (is_int(pool, yes, 1) && is_int(pool, no, 0))
        return condition;
    if (is_int(pool, yes, 0) && is_int(pool, no, 1))
        return dlc_expr1(pool, DLC_EXPR_NOT, condition);
    return 0;
}

/* --- binary, all types --- */

/* x == x and the like; unordered operands spoil it for floats. */
static dlc_expr compare(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    dlc_dtype dtype = dlc_dtype_of(pool, a);
    if (dtype == DLC_I64)
        return dlc_compare_i64(pool, op, a, b);
    if (a == b && !dlc_is_float(dtype))
        return dlc_expr_bool(pool, op == DLC_EXPR_LE || op == DLC_EXPR_EQ);
    if (dtype == DLC_BOOL && op == DLC_EXPR_EQ && is_const(pool, b))
        return is_int(pool, b, 1) ? a : dlc_expr1(pool, DLC_EXPR_NOT, a);
    if (dtype == DLC_BOOL && op == DLC_EXPR_NE && is_const(pool, b))
        return is_int(pool, b, 0) ? a : dlc_expr1(pool, DLC_EXPR_NOT, a);
    return 0;
}

static dlc_expr binary(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    dlc_dtype dtype = dlc_dtype_of(pool, a);
    if (dtype == DLC_BOOL && (op == DLC_EXPR_AND || op == DLC_EXPR_OR))
        return dlc_logic_make(pool, op, a, b);
    int is_i64_sum = dtype == DLC_I64 && (op == DLC_EXPR_ADD || op == DLC_EXPR_MUL);
    int is_int_extreme = (op == DLC_EXPR_MIN || op == DLC_EXPR_MAX) && !dlc_is_float(dtype);
    if ((commutes(op) || is_int_extreme) && !is_i64_sum &&
        dlc_expr_order(pool, b, a) < 0) { /* constants stand right */
        dlc_expr first = b;
        b = a;
        a = first;
    }
    dlc_expr result;
    if (is_comparison(op))
        result = compare(pool, op, a, b);
    else if (dlc_is_float(dtype))
        result = float_binary(pool, op, a, b);
    else {
        result = dtype == DLC_I64 ? i64_binary(pool, op, a, b) : 0;
        result = result ? result : int_binary(pool, op, a, b);
        result = result ? result : reassociate(pool, op, a, b);
    }
    if (result)
        return result;
    dlc_dtype type = is_comparison(op) ? DLC_BOOL : dtype;
    return dlc_pool_op2(pool, op, type, a, b);
}

/* --- the door --- */

static dlc_dtype check_types(const dlc_pool *pool, dlc_expr_op op, dlc_dtype dtype,
                             const dlc_expr *args, uint32_t nargs)
{
    const dlc_expr_info *info = &dlc_exprs[op];
    assert((int)nargs == info->nargs && nargs > 0);
    dlc_dtype first = dlc_dtype_of(pool, args[0]);
    switch (info->result) {
    case DLC_RESULT_SAME:
    case DLC_RESULT_BOOL:
        for (uint32_t i = 1; i < nargs; i++)
            assert(dlc_dtype_of(pool, args[i]) == first);
        assert(dlc_expr_admits(op, first));
        return info->result == DLC_RESULT_BOOL ? DLC_BOOL : first;
    case DLC_RESULT_SEL:
        assert(first == DLC_BOOL && dlc_dtype_of(pool, args[1]) == dlc_dtype_of(pool, args[2]));
        return dlc_dtype_of(pool, args[1]);
    default:
        assert(dtype != DLC_NONE);
        assert(op != DLC_EXPR_BITCAST || dlc_dtypes[dtype].bits == dlc_dtypes[first].bits);
        return dtype;
    }
}

dlc_expr dlc_expr_make(dlc_pool *pool, dlc_expr_op op, dlc_dtype dtype, const dlc_expr *args,
                       uint32_t nargs)
{
    dlc_dtype type = check_types(pool, op, dtype, args, nargs);
    if (is_folded(pool, op, args, nargs))
        return fold(pool, op, type, args, nargs);
    dlc_expr result = 0;
    switch (op) {
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_SAT:
    case DLC_EXPR_CAST_FTZ:
    case DLC_EXPR_BITCAST:
        result = conversion(pool, op, type, args[0]);
        break;
    case DLC_EXPR_SELECT:
        result = choice(pool, args[0], args[1], args[2]);
        break;
    default:
        if (nargs == 1)
            result = unary(pool, op, args[0]);
        else if (nargs == 2)
            return binary(pool, op, args[0], args[1]);
    }
    return result ? result : dlc_pool_op(pool, op, type, args, nargs);
}

dlc_expr dlc_expr1(dlc_pool *pool, dlc_expr_op op, dlc_expr a)
{
    return dlc_expr_make(pool, op, DLC_NONE, &a, 1);
}

dlc_expr dlc_expr2(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b)
{
    return dlc_expr_make(pool, op, DLC_NONE, (dlc_expr[]){a, b}, 2);
}

dlc_expr dlc_expr3(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b, dlc_expr c)
{
    return dlc_expr_make(pool, op, DLC_NONE, (dlc_expr[]){a, b, c}, 3);
}

/* --- short forms --- */

#define CONVERSION(name, op)                                                                       \
    dlc_expr name(dlc_pool *pool, dlc_dtype dtype, dlc_expr a)                                     \
    {                                                                                              \
        return dlc_expr_make(pool, DLC_EXPR_##op, dtype, &a, 1);                                   \
    }
CONVERSION(dlc_expr_cast, CAST)
CONVERSION(dlc_expr_cast_sat, CAST_SAT)
CONVERSION(dlc_expr_cast_ftz, CAST_FTZ)
CONVERSION(dlc_expr_bitcast, BITCAST)

#define ROW_2(name, op)                                                                            \
    dlc_expr name(dlc_pool *pool, dlc_expr a, dlc_expr b)                                          \
    {                                                                                              \
        return dlc_expr2(pool, DLC_EXPR_##op, a, b);                                               \
    }
ROW_2(dlc_add, ADD)
ROW_2(dlc_sub, SUB)
ROW_2(dlc_mul, MUL)
ROW_2(dlc_lt, LT)
ROW_2(dlc_le, LE)
ROW_2(dlc_eq, EQ)
ROW_2(dlc_floordiv, FLOORDIV)
ROW_2(dlc_mod, MOD)
ROW_2(dlc_min, MIN)
ROW_2(dlc_max, MAX)

dlc_expr dlc_select(dlc_pool *pool, dlc_expr condition, dlc_expr yes, dlc_expr no)
{
    return dlc_expr3(pool, DLC_EXPR_SELECT, condition, yes, no);
}

dlc_expr dlc_and(dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    if (!a || !b)
        return a ? a : b;
    return dlc_expr2(pool, DLC_EXPR_AND, a, b);
}

dlc_expr dlc_addi(dlc_pool *pool, dlc_expr a, int64_t b)
{
    return dlc_add(pool, a, dlc_expr_i64(pool, b));
}

dlc_expr dlc_muli(dlc_pool *pool, dlc_expr a, int64_t b)
{
    return dlc_mul(pool, a, dlc_expr_i64(pool, b));
}

dlc_expr dlc_in_range(dlc_pool *pool, dlc_expr index, dlc_expr extent)
{
    return dlc_and(pool, dlc_le(pool, dlc_expr_i64(pool, 0), index), dlc_lt(pool, index, extent));
}

/*
 * Intervals of integer expressions, one forward pass. Index arithmetic does not overflow, so its
 * bounds saturate; arithmetic on loaded data wraps, so a bound that overflows there becomes the
 * whole type.
 */
#include "ir/expr/range.h"

static const dlc_interval whole = {INT64_MIN, INT64_MAX};

static dlc_interval type_range(dlc_dtype dtype)
{
    if (dtype == DLC_NONE || dlc_is_float(dtype) || dtype == DLC_U64)
        return whole; /* u64 as bit patterns: nothing is known */
    return (dlc_interval){dlc_dtype_lowest(dtype), (int64_t)dlc_dtype_highest(dtype)};
}

static int is_within(dlc_interval inner, dlc_interval outer)
{
    return inner.lo >= outer.lo && inner.hi <= outer.hi;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t saturating_add(int64_t a, int64_t b, int *overflow)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    *overflow = 1;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t saturating_mul(int64_t a, int64_t b, int *overflow)
{
    int64_t product;
    if (!__builtin_mul_overflow(a, b, &product))
        return product;
    *overflow = 1;
    return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

static dlc_interval hull4(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (dlc_interval){least(least(a, b), least(c, d)), most(most(a, b), most(c, d))};
}

static dlc_interval product(dlc_interval a, dlc_interval b, int *overflow)
{
    return hull4(saturating_mul(a.lo, b.lo, overflow), saturating_mul(a.lo, b.hi, overflow),
                 saturating_mul(a.hi, b.lo, overflow), saturating_mul(a.hi, b.hi, overflow));
}

/* b >= 1 */
static dlc_interval quotient(dlc_interval a, dlc_interval b)
{
    return hull4(dlc_floor_ratio(a.lo, b.lo), dlc_floor_ratio(a.lo, b.hi),
                 dlc_floor_ratio(a.hi, b.lo), dlc_floor_ratio(a.hi, b.hi));
}

static dlc_interval remainder_range(dlc_interval a, dlc_interval b)
{
    if (a.lo >= 0 && a.hi < b.lo)
        return a;
    return (dlc_interval){0, a.lo >= 0 ? least(a.hi, b.hi - 1) : b.hi - 1};
}

static dlc_interval absolute(dlc_interval a)
{
    if (a.lo == INT64_MIN)
        return whole;
    if (a.lo >= 0)
        return a;
    return a.hi <= 0 ? (dlc_interval){-a.hi, -a.lo} : (dlc_interval){0, most(-a.lo, a.hi)};
}

/* floordiv, mod, div, rem. A load-free divisor is a size. */
static dlc_interval division(const dlc_pool *pool, dlc_expr id, dlc_interval a, dlc_interval b)
{
    dlc_expr_op op = dlc_op_of(pool, id);
    int floors = op == DLC_EXPR_FLOORDIV || op == DLC_EXPR_MOD;
    if (b.lo < 1 && b.hi >= 1 && floors && dlc_is_data_free(pool, dlc_arg(pool, id, 1)))
        b.lo = 1;
    if (b.lo < 1 || (!floors && a.lo < 0))
        return whole;
    return op == DLC_EXPR_FLOORDIV || op == DLC_EXPR_DIV ? quotient(a, b) : remainder_range(a, b);
}

static dlc_interval truth(int is_true, int is_false)
{
    return (dlc_interval){is_true, !is_false};
}

static dlc_interval comparison(dlc_expr_op op, dlc_interval a, dlc_interval b)
{
    int is_point = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo,
        is_apart = a.hi < b.lo || b.hi < a.lo;
    switch (op) {
    case DLC_EXPR_LT:
        return truth(a.hi < b.lo, a.lo >= b.hi);
    case DLC_EXPR_LE:
        return truth(a.hi <= b.lo, a.lo > b.hi);
    case DLC_EXPR_EQ:
        return truth(is_point, is_apart);
    default:
        return truth(is_apart, is_point);
    }
}

static dlc_interval leaf(const dlc_expr_node *node, const dlc_ranges *ranges)
{
    const dlc_interval *known = node->op == DLC_EXPR_AXIS ? ranges->axes : ranges->symbols;
    uint32_t n = node->op == DLC_EXPR_AXIS ? ranges->naxes : ranges->nsymbols;
    return known && node->imm.id < n ? known[node->imm.id] : (dlc_interval){0, INT64_MAX};
}

static dlc_interval conversion(const dlc_pool *pool, dlc_expr id, dlc_interval a)
{
    dlc_dtype from = dlc_dtype_of(pool, dlc_arg(pool, id, 0)), to = dlc_dtype_of(pool, id);
    dlc_interval target = type_range(to);
    if (dlc_is_float(from) || from == DLC_U64 || to == DLC_U64)
        return target;
    if (to == DLC_BOOL)
        return truth(a.lo > 0 || a.hi < 0, a.lo == 0 && a.hi == 0);
    if (dlc_op_of(pool, id) == DLC_EXPR_CAST_SAT)
        return (dlc_interval){least(most(a.lo, target.lo), target.hi),
                              most(least(a.hi, target.hi), target.lo)};
    return is_within(a, target) ? a : target;
}

static dlc_interval arithmetic(const dlc_pool *pool, dlc_expr id, const dlc_interval *args,
                               int *overflow)
{
    dlc_interval a = args[0], b = args[1];
    switch (dlc_op_of(pool, id)) {
    case DLC_EXPR_ADD:
        return (dlc_interval){saturating_add(a.lo, b.lo, overflow),
                              saturating_add(a.hi, b.hi, overflow)};
    case DLC_EXPR_NEG:
        return product(a, (dlc_interval){-1, -1}, overflow);
    case DLC_EXPR_SUB:
        b = product(b, (dlc_interval){-1, -1}, overflow);
        return (dlc_interval){saturating_add(a.lo, b.lo, overflow),
                              saturating_add(a.hi, b.hi, overflow)};
    case DLC_EXPR_MUL:
        return product(a, b, overflow);
    case DLC_EXPR_ABS:
        return absolute(a);
    case DLC_EXPR_MIN:
        return (dlc_interval){least(a.lo, b.lo), least(a.hi, b.hi)};
    case DLC_EXPR_MAX:
        return (dlc_interval){most(a.lo, b.lo), most(a.hi, b.hi)};
    case DLC_EXPR_DIV:
    case DLC_EXPR_REM:
    case DLC_EXPR_FLOORDIV:
    case DLC_EXPR_MOD:
        return division(pool, id, a, b);
    case DLC_EXPR_AND:
        if (dlc_dtype_of(pool, id) == DLC_BOOL)
            return (dlc_interval){a.lo & b.lo, a.hi & b.hi};
        return a.lo >= 0 || b.lo >= 0 ? (dlc_interval){0, a.lo < 0   ? b.hi
                                                          : b.lo < 0 ? a.hi
                                                                     : least(a.hi, b.hi)}
                                      : whole;
    case DLC_EXPR_OR:
        return dlc_dtype_of(pool, id) == DLC_BOOL ? (dlc_interval){a.lo | b.lo, a.hi | b.hi}
                                                  : whole;
    case DLC_EXPR_NOT:
        return dlc_dtype_of(pool, id) == DLC_BOOL ? (dlc_interval){1 - a.hi, 1 - a.lo} : whole;
    default:
        return whole;
    }
}

dlc_interval dlc_node_range(const dlc_pool *pool, dlc_expr id, const dlc_interval *args,
                            const dlc_ranges *ranges)
{
    const dlc_expr_node *node = dlc_node_of(pool, id);
    dlc_dtype dtype = (dlc_dtype)node->dtype;
    dlc_interval all = type_range(dtype), result;
    if (dlc_is_float(dtype) || node->op == DLC_EXPR_LOAD || node->op == DLC_EXPR_NONE)
        return all;
    int overflow = 0;
    switch (node->op) {
    case DLC_EXPR_CONST:
        return dtype == DLC_U64 && node->imm.i < 0 ? whole
                                                   : (dlc_interval){node->imm.i, node->imm.i};
    case DLC_EXPR_AXIS:
    case DLC_EXPR_SYM:
        return leaf(node, ranges);
    case DLC_EXPR_LT:
    case DLC_EXPR_LE:
    case DLC_EXPR_EQ:
    case DLC_EXPR_NE: {
        dlc_dtype operand = dlc_dtype_of(pool, dlc_arg(pool, id, 0));
        return dlc_is_float(operand) || operand == DLC_U64
                   ? all
                   : comparison((dlc_expr_op)node->op, args[0], args[1]);
    }
    case DLC_EXPR_SELECT:
        return (dlc_interval){least(args[1].lo, args[2].lo), most(args[1].hi, args[2].hi)};
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_SAT:
        return conversion(pool, id, args[0]);
    case DLC_EXPR_BITCAST:
        return all;
    default:
        result = dtype == DLC_U64 ? all : arithmetic(pool, id, args, &overflow);
    }
    if (overflow && !dlc_is_data_free(pool, id))
        return all;
    return is_within(result, all) ? result : all;
}

static const dlc_interval *args_of(const dlc_pool *pool, dlc_expr id, const dlc_interval *known,
                                   dlc_interval *args)
{
    uint32_t nargs = dlc_op_of(pool, id) == DLC_EXPR_LOAD ? 0 : dlc_node_of(pool, id)->nargs;
    for (uint32_t i = 0; i < nargs; i++)
        args[i] = known[dlc_arg(pool, id, i)];
    return args;
}

dlc_interval dlc_expr_range(const dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges)
{
    dlc_mark mark = dlc_arena_mark(pool->arena);
    uint8_t *marks = dlc_new_array(pool->arena, uint8_t, (size_t)expr + 1);
    dlc_interval *known = dlc_new_array(pool->arena, dlc_interval, (size_t)expr + 1);
    dlc_interval args[3] = {{0, 0}};
    dlc_expr_reach(pool, expr, marks);
    for (dlc_expr id = 1; id <= expr; id++)
        if (marks[id])
            known[id] = dlc_node_range(pool, id, args_of(pool, id, known, args), ranges);
    dlc_interval result = known[expr];
    dlc_arena_release(pool->arena, mark);
    return result;
}

/* --- multiples --- */

enum { DEEPEST = 24, MOST_MULTIPLE = 1 << 20 };

static int64_t limited(uint64_t multiple)
{
    while (multiple > MOST_MULTIPLE) /* a divisor will do */
        multiple = multiple % 2 ? 1 : multiple / 2;
    return (int64_t)multiple;
}

static int64_t multiple_of(const dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges, uint32_t depth)
{
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    if (node->op == DLC_EXPR_CONST)
        return limited(dlc_magnitude(node->imm.i));
    if (node->op == DLC_EXPR_AXIS && ranges->multiples && node->imm.id < ranges->naxes)
        return ranges->multiples[node->imm.id];
    if (depth == DEEPEST || (node->op != DLC_EXPR_ADD && node->op != DLC_EXPR_MUL && node->op != DLC_EXPR_MIN &&
                             node->op != DLC_EXPR_MAX && node->op != DLC_EXPR_MOD))
        return 1;
    uint64_t a = (uint64_t)multiple_of(pool, dlc_arg(pool, expr, 0), ranges, depth + 1);
    uint64_t b = (uint64_t)multiple_of(pool, dlc_arg(pool, expr, 1), ranges, depth + 1);
    return limited(node->op == DLC_EXPR_MUL ? a * b : dlc_gcd(a, b));
}

int64_t dlc_expr_multiple(const dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges)
{
    return multiple_of(pool, expr, ranges, 0);
}

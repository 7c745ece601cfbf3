/*
 * Scalar expressions, hash-consed in a pool. An operand's id is below its user's, so every analysis is one forward loop over
 * ids with a side array: no recursion, no visitor. Building canonicalises: constants are folded (with the strict semantics of
 * expr.def), i64 sums become sum(coefficient * term) + constant with terms in a structural order (axes, symbols, the rest; it
 * does not depend on the pool's history), and equal nodes share one id, so comparing ids compares expressions. Rules hold for
 * all values, with two licences on expressions free of data (indices and sizes): they do not overflow, and what they divide
 * by is a size, at least 1 wherever the quotient is used. SUB and NEG of i64 do not occur: they are sums.
 *
 * A pool belongs to a graph (dimensions: i64 over symbols) or to a kernel (values and indices). One thread per pool.
 */
#ifndef DLC_IR_EXPR_EXPR_H
#define DLC_IR_EXPR_EXPR_H

#include "base/vec.h"
#include "dlc/dtype.h"

typedef uint32_t dlc_expr; /* id in its pool; 0 = none */

typedef enum dlc_expr_op {
#define DLC_EXPR(id, text, nargs, type, class_, cost) DLC_EXPR_##id,
#include "ir/expr/expr.def"
#undef DLC_EXPR
    DLC_EXPR_COUNT
} dlc_expr_op;

typedef enum { DLC_RESULT_SAME, DLC_RESULT_BOOL, DLC_RESULT_SEL, DLC_RESULT_GIVEN } dlc_expr_result;
typedef enum {
    DLC_EXPR_CLASS_LEAF, DLC_EXPR_CLASS_INT, DLC_EXPR_CLASS_FLOAT, DLC_EXPR_CLASS_NUM, DLC_EXPR_CLASS_BITS,
    DLC_EXPR_CLASS_OTHER
} dlc_expr_class;

typedef struct {
    const char *text;
    int8_t nargs;
    uint8_t result; /* dlc_expr_result */
    uint8_t class_; /* dlc_expr_class */
    uint8_t cost;
} dlc_expr_info;
extern const dlc_expr_info dlc_exprs[DLC_EXPR_COUNT];
/* Whether the row's class admits operands of that type (a select's: its last two). */
int dlc_expr_admits(dlc_expr_op op, dlc_dtype dtype);

/*
 * What a load reads: a buffer of the kernel (its index) or a stage above (DLC_STAGE_SOURCE(index)).
 * A load of a stage gives one index per axis of the stage (stage->axes, in order); of a buffer one per dimension.
 */
typedef uint32_t dlc_source;
#define DLC_STAGE_SOURCE(stage) (0x80000000u | (uint32_t)(stage))
#define DLC_SOURCE_IS_STAGE(source) (((source) >> 31) != 0)
#define DLC_SOURCE_INDEX(source) ((source) & 0x7fffffffu)

enum {
    DLC_LOAD_SECOND = 1,  /* the second accumulator of a pair stage (argmin, argmax: the index) */
    DLC_LOAD_CHECKED = 2, /* indices depend on data: outside the source's dimensions the load gives its else value (0 when
                             none) and the run reports DLC_INVALID "index out of range" with the stage's origin */
    DLC_LOAD_GRANULE = 4, /* while code is made: neighbours in memory, from this element on, as the bits of one i32 */
};

typedef struct {
    uint8_t op;    /* dlc_expr_op */
    uint8_t dtype; /* dlc_dtype of the result */
    uint8_t nargs;
    uint8_t flags; /* loads: DLC_LOAD_*; 0 otherwise */
    uint32_t args; /* first of nargs ids in pool->args */
    union {
        int64_t i;   /* CONST of bool and integer types (unsigned: the bit pattern, zero-extended) */
        double f;    /* CONST of float types, already rounded to the type */
        uint32_t id; /* AXIS, SYM, LOAD */
    } imm;
} dlc_expr_node;

/* What is known of a node from its making, beside it: its structural hash, the axes it uses (bit A modulo 64: it may use A), its
 * place in sums, whether it loads, whether it holds data (loads, and integers that were floats, which no rule may take for an
 * index), and a remainder. */
typedef struct {
    uint64_t hash, axes;
    uint32_t lead;
    uint8_t has_load, has_data, has_mod;
} dlc_expr_fact;

/* coefficient * monomial; a monomial is a product of atoms (not constants, not sums), 0 for 1 */
typedef struct {
    int64_t coef;
    dlc_expr mono;
} dlc_term;

typedef struct dlc_pool {
    dlc_arena *arena;
    dlc_vec(dlc_expr_node) nodes; /* nodes.data[0] is the NONE row */
    dlc_ids args;
    uint32_t *table; /* open addressing, ids */
    uint32_t table_size;
    dlc_vec(dlc_expr_fact) facts; /* by id */
    dlc_vec(dlc_term) work;       /* stack of the builders */
} dlc_pool;

dlc_pool *dlc_pool_create(dlc_arena *arena);

static inline const dlc_expr_node *dlc_node_of(const dlc_pool *pool, dlc_expr expr)
{
    return &pool->nodes.data[expr];
}
static inline dlc_expr dlc_arg(const dlc_pool *pool, dlc_expr expr, uint32_t i)
{
    return pool->args.data[pool->nodes.data[expr].args + i];
}
/* Of a LOAD: the number of indices, the guard and the else value (0: none). */
static inline uint32_t dlc_load_rank(const dlc_pool *pool, dlc_expr load)
{
    return pool->nodes.data[load].nargs - 2u;
}
static inline dlc_expr dlc_load_guard(const dlc_pool *pool, dlc_expr load)
{
    return dlc_arg(pool, load, dlc_load_rank(pool, load));
}
static inline dlc_expr dlc_load_else(const dlc_pool *pool, dlc_expr load)
{
    return dlc_arg(pool, load, dlc_load_rank(pool, load) + 1);
}

/* Leaves. */
dlc_expr dlc_expr_i64(dlc_pool *pool, int64_t value);
dlc_expr dlc_expr_bool(dlc_pool *pool, int value);
dlc_expr dlc_expr_const(dlc_pool *pool, dlc_dtype dtype, double value);    /* converted as `cast` converts */
dlc_expr dlc_expr_const_i(dlc_pool *pool, dlc_dtype dtype, int64_t value); /* exact for integers past 2^53 */
dlc_expr dlc_expr_axis(dlc_pool *pool, uint32_t axis);
dlc_expr dlc_expr_sym(dlc_pool *pool, uint32_t symbol);

/* guard and otherwise may be 0; without `otherwise` a guarded-off load gives zero of its type. */
dlc_expr dlc_expr_load(dlc_pool *pool, dlc_dtype dtype, dlc_source source, const dlc_expr *index, uint32_t rank,
                       dlc_expr guard, dlc_expr otherwise, uint8_t flags);

/* Any other node; operands' types must satisfy the row (asserted). dtype counts for GIVEN rows, else it is derived. */
dlc_expr dlc_expr_make(dlc_pool *pool, dlc_expr_op op, dlc_dtype dtype, const dlc_expr *args, uint32_t nargs);
dlc_expr dlc_expr1(dlc_pool *pool, dlc_expr_op op, dlc_expr a);
dlc_expr dlc_expr2(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b);
dlc_expr dlc_expr3(dlc_pool *pool, dlc_expr_op op, dlc_expr a, dlc_expr b, dlc_expr c);
dlc_expr dlc_expr_cast(dlc_pool *pool, dlc_dtype dtype, dlc_expr a); /* a itself when it has that type */
dlc_expr dlc_expr_cast_sat(dlc_pool *pool, dlc_dtype dtype, dlc_expr a);
dlc_expr dlc_expr_cast_ftz(dlc_pool *pool, dlc_dtype dtype, dlc_expr a);
dlc_expr dlc_expr_bitcast(dlc_pool *pool, dlc_dtype dtype, dlc_expr a);

/* Short forms; operands of one type. */
dlc_expr dlc_add(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_sub(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_mul(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_select(dlc_pool *pool, dlc_expr condition, dlc_expr yes, dlc_expr no);
dlc_expr dlc_lt(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_le(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_eq(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_and(dlc_pool *pool, dlc_expr a, dlc_expr b); /* 0 (no expression) counts as true for bools */
dlc_expr dlc_floordiv(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_mod(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_min(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_max(dlc_pool *pool, dlc_expr a, dlc_expr b);
dlc_expr dlc_addi(dlc_pool *pool, dlc_expr a, int64_t b); /* i64 */
dlc_expr dlc_muli(dlc_pool *pool, dlc_expr a, int64_t b); /* i64 */
/* 0 <= index < extent, as one bool */
dlc_expr dlc_in_range(dlc_pool *pool, dlc_expr index, dlc_expr extent);

/* True and *value set when expr is an integer or bool constant. */
int dlc_expr_is_int(const dlc_pool *pool, dlc_expr expr, int64_t *value);
/* True and *value set when expr is a float constant. */
int dlc_expr_is_float(const dlc_pool *pool, dlc_expr expr, double *value);
/* A float that is one of 256 whole numbers, *least the first: what is left of a byte between two floats. */
int dlc_expr_is_limited(const dlc_pool *pool, dlc_expr expr, double *least);
/* Constant value of an i64 expression that must be one (asserted). */
int64_t dlc_expr_value(const dlc_pool *pool, dlc_expr expr);

/* marks[id] = 1 for every node reachable from root (nodes.n bytes, caller's, zeroed before the first call). */
void dlc_expr_reach(const dlc_pool *pool, dlc_expr root, uint8_t *marks);
/* Bit set of axes: axes[a/64] |= 1 << a%64; naxes bits, caller's, zeroed. */
void dlc_expr_axes(const dlc_pool *pool, dlc_expr root, uint64_t *axes);
int dlc_expr_uses_axis(const dlc_pool *pool, dlc_expr root, uint32_t axis);
int dlc_expr_has_load(const dlc_pool *pool, dlc_expr root);
/* What a condition is the conjunction of, in order. */
void dlc_expr_conjuncts(const dlc_pool *pool, dlc_expr condition, dlc_arena *arena, dlc_ids *result);

/*
 * Rebuilds root in `to` (which may be `from`). For each node, operands first, `visit` may return a replacement built in `to`
 * or 0 for the default: the same node over the rewritten operands args[nargs]. visit may be NULL (plain copy).
 */
typedef dlc_expr (*dlc_rewrite_fn)(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args);
dlc_expr dlc_expr_rewrite(dlc_pool *to, const dlc_pool *from, dlc_expr root, dlc_rewrite_fn visit, void *ctx);
/* Takes expressions of a pool, which stays as it is meanwhile, to another one, under the new numbers of what they are made of. */
typedef struct {
    const uint32_t *axes, *symbols, *buffers, *stages; /* by old number */
} dlc_numbers;
typedef struct dlc_mover dlc_mover;
dlc_mover *dlc_mover_create(dlc_arena *arena, dlc_pool *to, const dlc_pool *from, const dlc_numbers *numbers);
dlc_expr dlc_expr_move(dlc_mover *mover, dlc_expr root); /* 0 of 0 */
/* < 0, 0, > 0: the structural order of terms, factors, conjuncts, whatever else the pool holds. */
int dlc_expr_order(const dlc_pool *pool, dlc_expr a, dlc_expr b);
/* axis i -> with[i] where with[i] != 0. */
dlc_expr dlc_expr_substitute(dlc_pool *pool, dlc_expr root, const dlc_expr *with, uint32_t naxes);

/*
 * Linear form of an i64 expression in one axis: expr = coefficient * axis + rest, neither depending on the axis.
 * False when the axis occurs otherwise (under floordiv, mod, a load, …).
 */
int dlc_expr_linear(dlc_pool *pool, dlc_expr expr, uint32_t axis, dlc_expr *coefficient, dlc_expr *rest);

/* Interval of an i64 expression from those of axes and symbols (either array may be NULL: [0, INT64_MAX]). Saturating. */
typedef struct {
    int64_t lo, hi;
} dlc_interval;
/* A symbol's value where it ranges from lo to hi: `wanted`, or the bound that is next to it. */
static inline int64_t dlc_symbol_value(int64_t wanted, int64_t lo, int64_t hi)
{
    return wanted < lo ? lo : wanted > hi ? hi : wanted;
}
typedef struct dlc_known dlc_known;
typedef struct {
    const dlc_interval *axes, *symbols;
    uint32_t naxes, nsymbols;
    const dlc_expr *extents; /* per axis, in the same pool: i < extent holds symbolically too; or NULL */
    const int64_t *multiples; /* per axis: what its values are multiples of; or NULL: 1 */
    dlc_known *known; /* what dlc_expr_simplify found under these very ranges in one pool, for all that is asked of them; or NULL */
} dlc_ranges;
/* Of nothing yet; lives as long as the arena, which it grows in. */
dlc_known *dlc_known_create(dlc_arena *arena);
dlc_interval dlc_expr_range(const dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges);
/* A number that all values of an index are multiples of, at least 1; 0 for the constant 0. */
int64_t dlc_expr_multiple(const dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges);
/* What is known of expressions of i64, beside ranges, wherever a guard holds. */
enum { DLC_MOST_BOUNDS = 16 };
typedef struct {
    dlc_expr of[DLC_MOST_BOUNDS];
    dlc_interval range[DLC_MOST_BOUNDS];
    uint32_t n;
} dlc_bounds;
void dlc_bounds_add(dlc_bounds *bounds, const dlc_pool *pool, dlc_expr guard, const dlc_ranges *ranges); /* guard may be 0 */
/*
 * The i64 expression computed in 32 bits, an i32 of the same value wherever the bounds hold (NULL: none are known); 0: it may not fit,
 * or nothing is gained. What depends on no data and not on `axis`, the lanes', stays as it is and is cut off. _operands: of a comparison
 * or a cast of i64, the same over operands of i32.
 */
dlc_expr dlc_expr_narrow(dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges, const dlc_bounds *bounds, uint32_t axis);
dlc_expr dlc_expr_narrow_operands(dlc_pool *pool, dlc_expr expr, const dlc_ranges *ranges, uint32_t axis);
/*
 * Rebuilds root using the ranges: x floordiv k = 0 and x mod k = x for 0 <= x < k, (a*k + b) floordiv k = a for such b,
 * comparisons decided by intervals become constants, min and max lose the side that cannot win, loads under a guard that
 * is always true lose it, k * (x floordiv k) + x mod k becomes x.
 */
dlc_expr dlc_expr_simplify(dlc_pool *pool, dlc_expr root, const dlc_ranges *ranges);

/* Value of an i64 or bool expression without loads or axes; symbols[i] by symbol id. Guarded arithmetic as in expr.def. */
int64_t dlc_expr_eval(const dlc_pool *pool, dlc_expr expr, const int64_t *symbols);

/*
 * Elementary functions as plain arithmetic of expr.def (ir/expr/expand.c): the one place where exp, tanh, erf, … are defined for
 * strict interpretation and for every target. Returns an expression without elementary functions. f16/bf16 are computed in
 * f32 and rounded; f64 has expansions of its own. Stated errors: docs/numerics.md.
 */
dlc_expr dlc_expr_expand(dlc_pool *pool, dlc_expr root);
/* The same bits, for a target that has these as instructions: powers of two by `scale`, and by `fma` x / c, which rint rounds, c a number. */
typedef enum { DLC_EXPAND_SCALE = 1, DLC_EXPAND_FMA = 2 } dlc_expand_has;
dlc_expr dlc_expr_expand_with(dlc_pool *pool, dlc_expr root, uint32_t has);

/*
 * Scalar semantics of one operator on constants, strict: the folder, the interpreter and the tests call this, and the code
 * generators are tested against it. Integers travel in i (wrapped to dtype), floats in f (rounded to dtype).
 */
typedef union {
    int64_t i;
    double f;
} dlc_scalar;
/* dtype: of the operands (for SELECT of the last two); to: of the result. */
dlc_scalar dlc_scalar_apply(dlc_expr_op op, dlc_dtype dtype, dlc_dtype to, const dlc_scalar *args);
dlc_scalar dlc_scalar_read(dlc_dtype dtype, const void *element);             /* from memory */
void dlc_scalar_write(dlc_dtype dtype, void *element, dlc_scalar value);
double dlc_round_to(dlc_dtype dtype, double value); /* to f16, bf16, f32, f64: one rounding, half to even */

/* i64 and bool expressions without loads, for their values at many points: axes[i] by axis id (NULL: they have none), else as
 * dlc_expr_eval. What depends on none of the axes that moved since the last point is not computed again. */
typedef struct {
    uint8_t op, dtype, to; /* as dlc_scalar_apply takes them */
    dlc_expr result, args[3];
    uint64_t axes; /* that it may use, as dlc_expr_fact has them */
} dlc_evaluation;
typedef struct {
    dlc_expr last;                 /* of those asked for */
    dlc_vec(dlc_evaluation) steps; /* what depends on axes, operands first */
    dlc_ids axes;                  /* pairs: the expression, its axis */
    dlc_scalar *values;            /* by expression, of the last point */
    uint64_t stale;                /* axes that have no value yet */
} dlc_evaluator;
dlc_evaluator dlc_evaluator_of(const dlc_pool *pool, const dlc_expr *exprs, uint32_t n, const int64_t *symbols, dlc_arena *arena);
/* Returns the last one's value; `values` has all of them. */
int64_t dlc_evaluate(dlc_evaluator *evaluator, const int64_t *axes);

#endif

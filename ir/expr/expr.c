/*
 * The pool: nodes in one array, shared by an open-addressing table over their operands' ids. A new
 * node gets a structural hash, made of its operands' hashes, never of their ids: orders derived from
 * it are the same in every pool that holds the expression.
 */
#include "base/str.h"
#include "ir/expr/build.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* --- the table --- */

dlc_pool *dlc_pool_create(dlc_arena *arena)
{
    dlc_pool *pool = dlc_new(arena, dlc_pool);
    pool->arena = arena;
    pool->table_size = 256;
    pool->table = dlc_new_array(arena, uint32_t, pool->table_size);
    dlc_vec_push(arena, &pool->nodes, ((dlc_expr_node){.op = DLC_EXPR_NONE}));
    dlc_vec_push(arena, &pool->facts, ((dlc_expr_fact){0}));
    return pool;
}

/* Where the search for a node begins: what is looked up is there far more often than not, so this costs less than its hash. */
static uint32_t place_of(const dlc_expr_node *node, const dlc_expr *args)
{
    const uint64_t m = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t word = ((uint64_t)node->imm.i ^ (uint64_t)node->op << 56 ^ (uint64_t)node->dtype << 48 ^ (uint64_t)node->flags << 40) * m;
    for (uint32_t i = 0; i < node->nargs; i++)
        word = ((word ^ word >> 29) + args[i]) * m;
    return (uint32_t)(word >> 32);
}

static void grow_table(dlc_pool *pool)
{
    pool->table_size *= 2;
    pool->table = dlc_new_array(pool->arena, uint32_t, pool->table_size);
    for (uint32_t id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = &pool->nodes.data[id];
        uint32_t at = place_of(node, node->nargs ? pool->args.data + node->args : NULL) & (pool->table_size - 1);
        while (pool->table[at])
            at = (at + 1) & (pool->table_size - 1);
        pool->table[at] = id;
    }
}

/* Axes first, by number, then symbols, loads, all else; a product stands where its first factor
 * does. */
static uint32_t lead_of(const dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    uint32_t number = node->imm.id & 0xffffff;
    switch (node->op) {
    case DLC_EXPR_AXIS:
        return number;
    case DLC_EXPR_SYM:
        return 0x1000000 | number;
    case DLC_EXPR_LOAD:
        return (DLC_SOURCE_IS_STAGE(node->imm.id) ? 0x3000000 : 0x2000000) | number;
    case DLC_EXPR_MUL:
        return pool->facts.data[args[0]].lead;
    case DLC_EXPR_CONST:
        return 0xffffffff;
    default:
        return 0x4000000;
    }
}

/* Whatever a float holds may come out, a NaN's arbitrary integer too. */
static int is_from_float(const dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    return node->nargs == 1 && !dlc_is_float((dlc_dtype)node->dtype) &&
           dlc_is_float(dlc_dtype_of(pool, args[0]));
}

static uint64_t hash_of(const dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    const struct {
        uint8_t op, dtype, nargs, flags;
        uint32_t zero;
        int64_t imm;
    } head = {node->op, node->dtype, node->nargs, node->flags, 0, node->imm.i};
    uint64_t hash = dlc_hash(&head, sizeof head, 1);
    for (uint32_t i = 0; i < node->nargs; i++) {
        const uint64_t *arg = &pool->facts.data[args[i]].hash;
        hash = dlc_hash(arg, sizeof *arg, hash);
    }
    return hash;
}

static uint64_t axis_bit(uint32_t axis)
{
    return UINT64_C(1) << axis % 64;
}

static dlc_expr_fact fact_of(const dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    dlc_expr_fact fact = {.hash = hash_of(pool, node, args),
                          .axes = node->op == DLC_EXPR_AXIS ? axis_bit(node->imm.id) : 0,
                          .has_load = node->op == DLC_EXPR_LOAD,
                          .has_data = node->op == DLC_EXPR_LOAD || is_from_float(pool, node, args),
                          .has_mod = node->op == DLC_EXPR_MOD};
    for (uint32_t i = 0; i < node->nargs; i++) {
        const dlc_expr_fact *arg = &pool->facts.data[args[i]];
        fact.axes |= arg->axes;
        fact.has_load |= arg->has_load;
        fact.has_data |= arg->has_data;
        fact.has_mod |= arg->has_mod;
    }
    fact.lead = lead_of(pool, node, args);
    return fact;
}

static int is_same(const dlc_pool *pool, dlc_expr id, const dlc_expr_node *node,
                   const dlc_expr *args)
{
    const dlc_expr_node *other = &pool->nodes.data[id];
    return other->op == node->op && other->dtype == node->dtype && other->nargs == node->nargs &&
           other->flags == node->flags && other->imm.i == node->imm.i &&
           (node->nargs == 0 ||
            memcmp(pool->args.data + other->args, args, node->nargs * sizeof *args) == 0);
}

dlc_expr dlc_pool_intern(dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    if (pool->nodes.n >= pool->table_size / 4 * 3)
        grow_table(pool);
    uint32_t at = place_of(node, args) & (pool->table_size - 1);
    for (; pool->table[at]; at = (at + 1) & (pool->table_size - 1))
        if (is_same(pool, pool->table[at], node, args))
            return pool->table[at];
    dlc_expr_fact fact = fact_of(pool, node, args);
    dlc_expr_node added = *node;
    added.args = pool->args.n;
    for (uint32_t i = 0; i < node->nargs; i++)
        dlc_vec_push(pool->arena, &pool->args, args[i]);
    pool->table[at] = pool->nodes.n;
    dlc_vec_push(pool->arena, &pool->nodes, added);
    dlc_vec_push(pool->arena, &pool->facts, fact);
    return pool->table[at];
}

dlc_expr dlc_pool_op(dlc_pool *pool, dlc_expr_op op, dlc_dtype dtype, const dlc_expr *args,
                     uint32_t nargs)
{
    return dlc_pool_intern(
        pool, &(dlc_expr_node){.op = (uint8_t)op, .dtype = (uint8_t)dtype, .nargs = (uint8_t)nargs},
        args);
}

dlc_expr dlc_pool_op2(dlc_pool *pool, dlc_expr_op op, dlc_dtype dtype, dlc_expr a, dlc_expr b)
{
    return dlc_pool_op(pool, op, dtype, (dlc_expr[]){a, b}, 2);
}

int dlc_expr_order(const dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    const dlc_expr_fact *x = &pool->facts.data[a], *y = &pool->facts.data[b];
    if (a == b)
        return 0;
    if (x->lead != y->lead)
        return x->lead < y->lead ? -1 : 1;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return a < b ? -1 : 1;
}

/* --- leaves --- */

dlc_expr dlc_expr_scalar(dlc_pool *pool, dlc_dtype dtype, dlc_scalar value)
{
    dlc_expr_node node = {.op = DLC_EXPR_CONST, .dtype = (uint8_t)dtype};
    if (dlc_is_float(dtype))
        node.imm.f =
            isnan(value.f) ? NAN : value.f; /* one NaN, so that equal constants are one node */
    else
        node.imm.i = value.i;
    return dlc_pool_intern(pool, &node, NULL);
}

dlc_scalar dlc_const_scalar(const dlc_pool *pool, dlc_expr expr)
{
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    if (dlc_is_float(node->dtype))
        return (dlc_scalar){.f = node->imm.f};
    return (dlc_scalar){.i = node->imm.i};
}

dlc_expr dlc_expr_i64(dlc_pool *pool, int64_t value)
{
    return dlc_expr_scalar(pool, DLC_I64, (dlc_scalar){.i = value});
}

dlc_expr dlc_expr_bool(dlc_pool *pool, int value)
{
    return dlc_expr_scalar(pool, DLC_BOOL, (dlc_scalar){.i = value != 0});
}

dlc_expr dlc_expr_const(dlc_pool *pool, dlc_dtype dtype, double value)
{
    dlc_scalar from = {.f = value};
    return dlc_expr_scalar(pool, dtype, dlc_scalar_apply(DLC_EXPR_CAST, DLC_F64, dtype, &from));
}

dlc_expr dlc_expr_const_i(dlc_pool *pool, dlc_dtype dtype, int64_t value)
{
    dlc_scalar from = {.i = value};
    return dlc_expr_scalar(pool, dtype, dlc_scalar_apply(DLC_EXPR_CAST, DLC_I64, dtype, &from));
}

static dlc_expr leaf(dlc_pool *pool, dlc_expr_op op, uint32_t id)
{
    dlc_expr_node node = {.op = (uint8_t)op, .dtype = DLC_I64};
    node.imm.i = id; /* the whole word: nodes are compared by it */
    return dlc_pool_intern(pool, &node, NULL);
}

dlc_expr dlc_expr_axis(dlc_pool *pool, uint32_t axis)
{
    return leaf(pool, DLC_EXPR_AXIS, axis);
}

dlc_expr dlc_expr_sym(dlc_pool *pool, uint32_t symbol)
{
    return leaf(pool, DLC_EXPR_SYM, symbol);
}

dlc_expr dlc_expr_load(dlc_pool *pool, dlc_dtype dtype, dlc_source source, const dlc_expr *index,
                       uint32_t rank, dlc_expr guard, dlc_expr otherwise, uint8_t flags)
{
    assert(rank <= UINT8_MAX - 2 && (!guard || dlc_dtype_of(pool, guard) == DLC_BOOL));
    assert(!otherwise || dlc_dtype_of(pool, otherwise) == dtype);
    int64_t is_guarded;
    if (guard && dlc_expr_is_int(pool, guard, &is_guarded)) {
        if (!is_guarded)
            return otherwise ? otherwise : dlc_expr_const_i(pool, dtype, 0);
        guard = 0;
    }
    if ((!guard && !(flags & DLC_LOAD_CHECKED)) || otherwise == dlc_expr_const_i(pool, dtype, 0))
        otherwise = 0;
    dlc_expr args[UINT8_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        assert(dlc_dtype_of(pool, index[i]) == DLC_I64);
        args[i] = index[i];
    }
    args[rank] = guard;
    args[rank + 1] = otherwise;
    dlc_expr_node node = {
        .op = DLC_EXPR_LOAD, .dtype = (uint8_t)dtype, .nargs = (uint8_t)(rank + 2), .flags = flags};
    node.imm.i = source;
    return dlc_pool_intern(pool, &node, args);
}

/* --- questions --- */

int dlc_expr_is_int(const dlc_pool *pool, dlc_expr expr, int64_t *value)
{
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    if (node->op != DLC_EXPR_CONST || dlc_is_float(node->dtype))
        return 0;
    *value = node->imm.i;
    return 1;
}

int dlc_expr_is_float(const dlc_pool *pool, dlc_expr expr, double *value)
{
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    if (node->op != DLC_EXPR_CONST || !dlc_is_float(node->dtype))
        return 0;
    *value = node->imm.f;
    return 1;
}

int64_t dlc_expr_value(const dlc_pool *pool, dlc_expr expr)
{
    int64_t value = 0;
    int is_int = dlc_expr_is_int(pool, expr, &value);
    assert(is_int);
    (void)is_int;
    return value;
}

void dlc_expr_reach(const dlc_pool *pool, dlc_expr root, uint8_t *marks)
{
    enum { WAITS = 2 }; /* its arguments, which all have smaller numbers, are not marked yet */
    uint32_t nwaiting = 1;
    if (!root || marks[root])
        return;
    marks[root] = WAITS;
    for (dlc_expr id = root; nwaiting; id--) {
        if (marks[id] != WAITS)
            continue;
        marks[id] = 1;
        nwaiting--;
        for (uint32_t i = 0; i < dlc_node_of(pool, id)->nargs; i++) {
            dlc_expr arg = dlc_arg(pool, id, i);
            if (!arg || marks[arg])
                continue;
            marks[arg] = dlc_node_of(pool, arg)->nargs ? WAITS : 1;
            nwaiting += marks[arg] == WAITS;
        }
    }
}

void dlc_expr_axes(const dlc_pool *pool, dlc_expr root, uint64_t *axes)
{
    dlc_mark mark = dlc_arena_mark(pool->arena);
    uint8_t *marks = dlc_new_array(pool->arena, uint8_t, (size_t)root + 1);
    dlc_expr_reach(pool, root, marks);
    for (dlc_expr id = 1; id <= root; id++)
        if (marks[id] && dlc_op_of(pool, id) == DLC_EXPR_AXIS) {
            uint32_t axis = dlc_node_of(pool, id)->imm.id;
            axes[axis / 64] |= UINT64_C(1) << axis % 64;
        }
    dlc_arena_release(pool->arena, mark);
}

/* A leaf that is or may stand for that axis, where root may use it. */
static dlc_expr leaf_like(const dlc_pool *pool, dlc_expr root, uint64_t bit)
{
    while (dlc_op_of(pool, root) != DLC_EXPR_AXIS) {
        uint32_t i = 0;
        while (!(pool->facts.data[dlc_arg(pool, root, i)].axes & bit))
            i++;
        root = dlc_arg(pool, root, i);
    }
    return root;
}

/* Asked most of all: only where axes share a bit is everything below looked at. */
int dlc_expr_uses_axis(const dlc_pool *pool, dlc_expr root, uint32_t axis)
{
    uint64_t bit = axis_bit(axis);
    if (!(pool->facts.data[root].axes & bit))
        return 0;
    if (dlc_node_of(pool, leaf_like(pool, root, bit))->imm.id == axis)
        return 1;
    dlc_mark mark = dlc_arena_mark(pool->arena);
    uint8_t *marks = dlc_new_array(pool->arena, uint8_t, (size_t)root + 1);
    dlc_expr_reach(pool, root, marks);
    int found = 0;
    for (dlc_expr id = 1; id <= root && !found; id++)
        found = marks[id] && dlc_op_of(pool, id) == DLC_EXPR_AXIS &&
                dlc_node_of(pool, id)->imm.id == axis;
    dlc_arena_release(pool->arena, mark);
    return found;
}

int dlc_expr_has_load(const dlc_pool *pool, dlc_expr root)
{
    return pool->facts.data[root].has_load;
}

void dlc_expr_conjuncts(const dlc_pool *pool, dlc_expr condition, dlc_arena *arena, dlc_ids *result)
{
    dlc_ids todo = {0};
    dlc_vec_push(arena, &todo, condition);
    while (todo.n) {
        dlc_expr expr = todo.data[--todo.n];
        if (dlc_node_of(pool, expr)->op != DLC_EXPR_AND) {
            dlc_vec_push(arena, result, expr);
            continue;
        }
        dlc_vec_push(arena, &todo, dlc_arg(pool, expr, 1));
        dlc_vec_push(arena, &todo, dlc_arg(pool, expr, 0));
    }
}

/* By scalars of its operands. */
static dlc_scalar value_of(const dlc_evaluation *step, const dlc_scalar *values)
{
    const dlc_scalar args[3] = {values[step->args[0]], values[step->args[1]], values[step->args[2]]};
    return dlc_scalar_apply((dlc_expr_op)step->op, (dlc_dtype)step->dtype, (dlc_dtype)step->to, args);
}

static dlc_evaluation evaluation_of(const dlc_pool *pool, dlc_expr id)
{
    const dlc_expr_node *node = dlc_node_of(pool, id);
    dlc_evaluation step = {.op = node->op, .to = node->dtype, .result = id, .axes = pool->facts.data[id].axes};
    assert(node->op != DLC_EXPR_LOAD && node->nargs && node->nargs <= 3);
    step.dtype = dlc_dtype_of(pool, dlc_arg(pool, id, node->nargs > 2)); /* a select's operands are of its own type, not the condition's */
    for (uint32_t i = 0; i < node->nargs; i++)
        step.args[i] = dlc_arg(pool, id, i);
    return step;
}

dlc_evaluator dlc_evaluator_of(const dlc_pool *pool, const dlc_expr *exprs, uint32_t n, const int64_t *symbols, dlc_arena *arena)
{
    dlc_evaluator e = {.last = n ? exprs[n - 1] : 0, .stale = UINT64_MAX};
    dlc_expr most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = exprs[i] > most ? exprs[i] : most;
    uint8_t *marks = dlc_new_array(arena, uint8_t, (size_t)most + 1);
    e.values = dlc_new_array(arena, dlc_scalar, (size_t)most + 1);
    for (uint32_t i = 0; i < n; i++)
        dlc_expr_reach(pool, exprs[i], marks);
    for (dlc_expr id = 1; id <= most; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id])
            continue;
        if (node->op == DLC_EXPR_CONST) {
            e.values[id] = dlc_const_scalar(pool, id);
        } else if (node->op == DLC_EXPR_SYM) {
            e.values[id].i = symbols[node->imm.id];
        } else if (node->op == DLC_EXPR_AXIS) {
            dlc_vec_push(arena, &e.axes, id);
            dlc_vec_push(arena, &e.axes, node->imm.id);
        } else {
            dlc_evaluation step = evaluation_of(pool, id);
            if (step.axes)
                dlc_vec_push(arena, &e.steps, step);
            else
                e.values[id] = value_of(&step, e.values);
        }
    }
    return e;
}

int64_t dlc_evaluate(dlc_evaluator *e, const int64_t *axes)
{
    uint64_t stale = e->stale;
    for (uint32_t i = 0; i < e->axes.n; i += 2) {
        int64_t at = axes[e->axes.data[i + 1]], *value = &e->values[e->axes.data[i]].i;
        if (*value != at)
            stale |= axis_bit(e->axes.data[i + 1]);
        *value = at;
    }
    for (const dlc_evaluation *step = e->steps.data, *end = step + e->steps.n; stale && step < end; step++)
        if (step->axes & stale)
            e->values[step->result] = value_of(step, e->values);
    e->stale = 0;
    return e->values[e->last].i;
}

int64_t dlc_expr_eval(const dlc_pool *pool, dlc_expr expr, const int64_t *symbols)
{
    dlc_mark mark = dlc_arena_mark(pool->arena);
    dlc_evaluator e = dlc_evaluator_of(pool, &expr, 1, symbols, pool->arena);
    int64_t value = dlc_evaluate(&e, NULL);
    dlc_arena_release(pool->arena, mark);
    return value;
}

/* --- rewriting --- */

dlc_expr dlc_pool_rebuild(dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    switch (node->op) {
    case DLC_EXPR_CONST:
    case DLC_EXPR_AXIS:
    case DLC_EXPR_SYM:
        return dlc_pool_intern(pool, node, NULL);
    case DLC_EXPR_LOAD:
        return dlc_expr_load(pool, (dlc_dtype)node->dtype, node->imm.id, args, node->nargs - 2u,
                             args[node->nargs - 2], args[node->nargs - 1], node->flags);
    default:
        return dlc_expr_make(pool, (dlc_expr_op)node->op, (dlc_dtype)node->dtype, args,
                             node->nargs);
    }
}

dlc_expr dlc_expr_rewrite(dlc_pool *to, const dlc_pool *from, dlc_expr root, dlc_rewrite_fn visit,
                          void *ctx)
{
    enum { FEW = 512 };
    uint8_t few_marks[FEW] = {0}, *marks = few_marks;
    dlc_expr few_mapped[FEW] = {0}, *map = few_mapped;
    dlc_arena *scratch = NULL; /* its own: the pool's grows meanwhile */
    if (root >= FEW) {
        scratch = dlc_arena_create(0);
        marks = dlc_new_array(scratch, uint8_t, (size_t)root + 1);
        map = dlc_new_array(scratch, dlc_expr, (size_t)root + 1);
    }
    dlc_expr_reach(from, root, marks);
    for (dlc_expr id = 1; id <= root; id++) {
        if (!marks[id])
            continue;
        const dlc_expr_node node = *dlc_node_of(from, id);
        dlc_expr args[UINT8_MAX];
        int is_same_args = from == to;
        for (uint32_t i = 0; i < node.nargs; i++) {
            args[i] = map[dlc_arg(from, id, i)];
            is_same_args &= args[i] == dlc_arg(from, id, i);
        }
        if (visit)
            map[id] = visit(ctx, to, &node, args);
        if (!map[id])
            map[id] = is_same_args ? id : dlc_pool_rebuild(to, &node, args);
    }
    dlc_expr result = map[root];
    dlc_arena_destroy(scratch);
    return result;
}

typedef struct {
    const dlc_expr *with;
    uint32_t naxes;
} substitution;

static dlc_expr substitute_axis(void *ctx, dlc_pool *to, const dlc_expr_node *node,
                                const dlc_expr *args)
{
    (void)to;
    (void)args;
    const substitution *s = ctx;
    return node->op == DLC_EXPR_AXIS && node->imm.id < s->naxes ? s->with[node->imm.id] : 0;
}

dlc_expr dlc_expr_substitute(dlc_pool *pool, dlc_expr root, const dlc_expr *with, uint32_t naxes)
{
    return dlc_expr_rewrite(pool, pool, root, substitute_axis, &(substitution){with, naxes});
}

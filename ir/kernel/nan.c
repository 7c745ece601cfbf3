/*
 * Where a NaN goes. A fold that gives the greatest of its terms must mind NaN, or lose one; but in
 *
 *     m[i] = max(r) x[i, r];  e[i,j] = exp(x[i, j] - m);  s[i] = sum(j) e;  y[i,j] = e / s
 *
 * the same NaN is a term of s, and all of row i of y is NaN whatever m is. So it is where each value made of m is NaN for sure in such a row
 * before it is stored: because it is made, by arithmetic that gives NaN of NaN, of a sum over all of m's own terms, or of another such value.
 */
#include "ir/kernel/nan.h"

#include "ir/kernel/algebra.h"

/* Of a stage, in a row with a NaN: POINT: NaN where the term is, any value elsewhere. ROW: NaN everywhere. */
enum { FREE, POINT, ROW };

typedef struct {
    const dlc_kernel *kernel;
    const dlc_stage *fold;
    uint8_t *state;    /* by stage */
    dlc_ids *points;   /* by stage, of POINT: the axes along the fold's own */
    uint8_t *is_made;  /* by expression: of the fold */
    uint8_t *known;    /* by expression: its state and 1; 0: not asked yet */
    dlc_ids *along;    /* by expression, of POINT */
    uint32_t left;     /* comparisons that may still be made: expressions share what they are made of */
    dlc_arena *arena;
} search;

enum { MOST_COMPARISONS = 100000 };

/* Gives NaN where an operand is. */
static int is_strict(const dlc_pool *pool, const dlc_expr_node *node)
{
    switch (node->op) {
    case DLC_EXPR_ADD:
    case DLC_EXPR_SUB:
    case DLC_EXPR_MUL:
    case DLC_EXPR_DIV:
    case DLC_EXPR_NEG:
    case DLC_EXPR_ABS:
    case DLC_EXPR_FMA:
    case DLC_EXPR_MULADD:
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
    case DLC_EXPR_SQRT:
    case DLC_EXPR_EXP:
    case DLC_EXPR_LOG:
    case DLC_EXPR_LOG1P:
    case DLC_EXPR_TANH:
        return dlc_is_float(node->dtype);
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_FTZ:
        return dlc_is_float(node->dtype) && dlc_is_float(dlc_node_of(pool, pool->args.data[node->args])->dtype);
    default:
        return 0;
    }
}

/* `term` with the fold's axes replaced; along[] says by which, DLC_NO_AXIS: by none yet. */
static int is_same(search *f, dlc_expr term, dlc_expr expr, uint32_t *along)
{
    const dlc_pool *pool = f->kernel->pool;
    const dlc_expr_node *a = dlc_node_of(pool, term), *b = dlc_node_of(pool, expr);
    uint32_t at;
    if (!f->left || !f->left--)
        return 0;
    if (a->op != b->op || a->dtype != b->dtype || a->nargs != b->nargs || a->flags != b->flags)
        return 0;
    if (a->op == DLC_EXPR_AXIS && dlc_ids_find(&f->fold->reduce, a->imm.id, &at)) {
        if (along[at] == DLC_NO_AXIS && f->kernel->axes.data[a->imm.id].extent == f->kernel->axes.data[b->imm.id].extent)
            along[at] = b->imm.id;
        return along[at] == b->imm.id;
    }
    if (a->nargs == 0)
        return term == expr;
    if (a->imm.i != b->imm.i)
        return 0;
    for (uint32_t i = 0; i < a->nargs; i++) {
        dlc_expr left = dlc_arg(pool, term, i), right = dlc_arg(pool, expr, i);
        if (!left || !right ? left != right : !is_same(f, left, right, along))
            return 0;
    }
    return 1;
}

/* It is a term of the fold, at points of the axes *along. */
static int is_term(search *f, dlc_expr expr, dlc_ids *along)
{
    uint32_t by[DLC_MAX_INDEX], n = f->fold->reduce.n;
    for (uint32_t i = 0; i < n; i++)
        by[i] = DLC_NO_AXIS;
    if (!is_same(f, f->fold->value[0], expr, by))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        if (by[i] == DLC_NO_AXIS || dlc_ids_find(along, by[i], NULL))
            return 0;
        dlc_vec_push(f->arena, along, by[i]);
    }
    return 1;
}

static uint8_t state_of(search *f, dlc_expr expr);

static uint8_t find_state(search *f, dlc_expr expr, dlc_ids *along)
{
    const dlc_pool *pool = f->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    uint8_t best = FREE;
    if (is_term(f, expr, along))
        return POINT;
    if (node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id) && dlc_reads_in_place(f->kernel, expr)) {
        *along = f->points[DLC_SOURCE_INDEX(node->imm.id)];
        return f->state[DLC_SOURCE_INDEX(node->imm.id)];
    }
    for (uint32_t i = 0; i < node->nargs && is_strict(pool, node) && best != ROW; i++) {
        dlc_expr operand = dlc_arg(pool, expr, i);
        if (state_of(f, operand) <= best)
            continue;
        best = state_of(f, operand);
        *along = f->along[operand];
    }
    return best;
}

/* What the expression is in such a row for sure. */
static uint8_t state_of(search *f, dlc_expr expr)
{
    if (!f->known[expr]) {
        dlc_ids along = {0};
        f->known[expr] = (uint8_t)(find_state(f, expr, &along) + 1);
        f->along[expr] = along;
    }
    return (uint8_t)(f->known[expr] - 1);
}

/* The stage sees what the fold gives, at other places of its own points' rows at most: marks what is made of it. False: elsewhere. */
static int sees_own_rows(search *f, uint32_t s, int *sees)
{
    const dlc_pool *pool = f->kernel->pool;
    const uint8_t *marks = dlc_stage_marks(f->kernel, &f->kernel->stages.data[s], f->arena);
    uint32_t fold = (uint32_t)(f->fold - f->kernel->stages.data);
    *sees = 0;
    for (dlc_expr e = 1; e < pool->nodes.n; e++) { /* operands have lower numbers */
        const dlc_expr_node *node = dlc_node_of(pool, e);
        int inside = 0;
        if (!marks[e])
            continue;
        for (uint32_t i = 0; i < node->nargs; i++)
            inside |= f->is_made[dlc_arg(pool, e, i)];
        f->is_made[e] = (uint8_t)inside;
        if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id)) {
            if (inside && node->op == DLC_EXPR_LOAD)
                return 0; /* where it reads depends on it */
            continue;
        }
        uint32_t from = DLC_SOURCE_INDEX(node->imm.id);
        int is_made = from == fold || f->state[from] != FREE;
        if (inside || from >= s || (is_made && !dlc_reads_in_place(f->kernel, e)))
            return 0;
        f->is_made[e] = (uint8_t)is_made;
        *sees |= is_made;
    }
    for (uint32_t d = 0; d < f->kernel->stages.data[s].store.n; d++)
        if (f->is_made[f->kernel->stages.data[s].store.data[d]])
            return 0;
    return 1;
}

static int all_in(const dlc_ids *some, const dlc_ids *all)
{
    for (uint32_t i = 0; i < some->n; i++)
        if (!dlc_ids_find(all, some->data[i], NULL))
            return 0;
    return 1;
}

/* What the stage is, which sees the fold. */
static uint8_t state_of_stage(search *f, uint32_t s)
{
    const dlc_stage *stage = &f->kernel->stages.data[s];
    int is_sum = stage->combine == DLC_REDUCE_SUM || stage->combine == DLC_REDUCE_PROD;
    if ((stage->combine != DLC_REDUCE_NONE && !is_sum) || stage->update != DLC_UPDATE_NONE || !all_in(&f->fold->axes, &stage->axes))
        return FREE;
    uint8_t state = state_of(f, stage->value[0]);
    f->points[s] = f->along[stage->value[0]];
    if (state != POINT || all_in(&f->points[s], &stage->axes))
        return state;
    return all_in(&f->points[s], &stage->reduce) ? ROW : FREE;
}

int dlc_nan_arrives_anyway(const dlc_kernel *kernel, uint32_t s, dlc_arena *arena)
{
    const dlc_stage *fold = &kernel->stages.data[s];
    search f = {.kernel = kernel, .fold = fold, .left = MOST_COMPARISONS, .arena = arena};
    if ((fold->combine != DLC_REDUCE_MAX && fold->combine != DLC_REDUCE_MIN) || !dlc_is_float(fold->dtype[0]) || fold->buffer != DLC_NO_BUFFER ||
        fold->reduce.n > DLC_MAX_INDEX)
        return 0;
    f.state = dlc_new_array(arena, uint8_t, kernel->stages.n);
    f.points = dlc_new_array(arena, dlc_ids, kernel->stages.n);
    f.is_made = dlc_new_array(arena, uint8_t, kernel->pool->nodes.n);
    f.known = dlc_new_array(arena, uint8_t, kernel->pool->nodes.n);
    f.along = dlc_new_array(arena, dlc_ids, kernel->pool->nodes.n);
    for (uint32_t t = s + 1; t < kernel->stages.n; t++) {
        int sees;
        if (!sees_own_rows(&f, t, &sees))
            return 0;
        if (!sees)
            continue;
        f.state[t] = state_of_stage(&f, t);
        if (f.state[t] == FREE || (f.state[t] == POINT && kernel->stages.data[t].buffer != DLC_NO_BUFFER))
            return 0;
    }
    return 1;
}

/*
 * Where a loop of vectors is cut: conditions over its axis have one answer in each piece then, and what they choose from costs nothing.
 */
#include "ir/kernel/algebra.h"
#include "ir/schedule/resolve.h"

#include <stdlib.h>

/* The point from which on a comparison of the axis with a constant has another answer; 0: none. */
static int64_t turn_of(const dlc_pool *pool, dlc_expr comparison, uint32_t axis)
{
    const dlc_expr_node *node = dlc_node_of(pool, comparison);
    int64_t value;
    if (node->op != DLC_EXPR_LT && node->op != DLC_EXPR_LE)
        return 0;
    for (uint32_t side = 0; side < 2; side++) { /* axis < value, value < axis */
        const dlc_expr_node *other = dlc_node_of(pool, dlc_arg(pool, comparison, side));
        if (other->op == DLC_EXPR_AXIS && other->imm.id == axis && dlc_expr_is_int(pool, dlc_arg(pool, comparison, !side), &value))
            return value + (side != (node->op == DLC_EXPR_LE));
    }
    return 0;
}

static int by_size(const void *a, const void *b)
{
    return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b);
}

static int is_among(int64_t turn, const int64_t *turns, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (turns[i] == turn)
            return 1;
    return 0;
}

/* Where an index of what the stage loads turns: what a vector on both sides reads does not lie together, so pieces may be short. */
static void find_index_turns(const dlc_pool *pool, const uint8_t *marks, uint32_t axis, uint8_t *within)
{
    for (dlc_expr id = 1; id < pool->nodes.n; id++)
        for (uint32_t d = 0; marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD && d < dlc_load_rank(pool, id); d++)
            if (!dlc_expr_has_load(pool, dlc_arg(pool, id, d)) && dlc_expr_uses_axis(pool, dlc_arg(pool, id, d), axis))
                dlc_expr_reach(pool, dlc_arg(pool, id, d), within);
}

/*
 * Where the lanes' loop is cut so that each piece has one source of what is concatenated, not a choice of all of them for each
 * element. Pieces are a vector at least, but for those of indices. What is summed along the lanes is not cut: its order is the
 * schedule's.
 */
uint32_t dlc_schedule_turns(const dlc_schedule *schedule, const dlc_kernel *kernel, uint32_t n, int64_t lo, int64_t hi, dlc_arena *arena,
                            int64_t *turns)
{
    const dlc_schedule_node *node = &schedule->nodes.data[n];
    uint8_t *within = dlc_new_array(arena, uint8_t, kernel->pool->nodes.n);
    uint32_t found = 0, kept = 0, nindices = 0;
    int64_t of_indices[DLC_MOST_TURNS];
    if (node->count > 1)
        return 0;
    for (uint32_t i = n + 1; i < node->end; i++) {
        if (schedule->nodes.data[i].kind != DLC_LOOP_LEAF)
            continue;
        const dlc_stage *stage = &kernel->stages.data[schedule->nodes.data[i].stage];
        if (dlc_ids_find(&stage->reduce, node->axis, NULL))
            return 0;
        const uint8_t *marks = dlc_stage_marks(kernel, stage, arena);
        if (schedule->target->kind == DLC_TARGET_CPU)
            find_index_turns(kernel->pool, marks, node->axis, within);
        for (dlc_expr id = 1; id < kernel->pool->nodes.n && found < DLC_MOST_TURNS; id++) {
            int64_t turn = marks[id] ? turn_of(kernel->pool, id, node->axis) : 0;
            if (turn > lo && turn < hi && within[id])
                of_indices[nindices++] = turn;
            if (turn > lo && turn < hi)
                turns[found++] = turn;
        }
    }
    qsort(turns, found, sizeof *turns, by_size);
    for (uint32_t i = 0; i < found; i++) {
        int64_t before = kept ? turns[kept - 1] : lo;
        int is_long = turns[i] - before >= node->tile && hi - turns[i] >= node->tile;
        if (is_long || (turns[i] > before && is_among(turns[i], of_indices, nindices)))
            turns[kept++] = turns[i];
    }
    return kept;
}

/* Of a condition in a piece [lo, hi) of the axis: 1 it holds, 0 it does not, -1 that depends on more. */
static int answer(const dlc_pool *pool, dlc_expr condition, uint32_t axis, int64_t lo, int64_t hi)
{
    const dlc_expr_node *node = dlc_node_of(pool, condition);
    int64_t value;
    if (dlc_expr_is_int(pool, condition, &value))
        return value != 0;
    if (node->op == DLC_EXPR_NOT) {
        int inner = answer(pool, dlc_arg(pool, condition, 0), axis, lo, hi);
        return inner < 0 ? inner : !inner;
    }
    if (node->op == DLC_EXPR_AND || node->op == DLC_EXPR_OR) {
        int a = answer(pool, dlc_arg(pool, condition, 0), axis, lo, hi), b = answer(pool, dlc_arg(pool, condition, 1), axis, lo, hi);
        int deciding = node->op == DLC_EXPR_OR;
        return a == deciding || b == deciding ? deciding : a < 0 || b < 0 ? -1 : !deciding;
    }
    int64_t turn = turn_of(pool, condition, axis);
    int is_below = dlc_node_of(pool, dlc_arg(pool, condition, 0))->op == DLC_EXPR_AXIS; /* axis < value */
    return turn == 0 || (turn > lo && turn < hi) ? -1 : (turn >= hi) == is_below;
}

uint8_t *dlc_stage_piece_marks(const dlc_kernel *kernel, const dlc_stage *stage, uint32_t axis, int64_t lo, int64_t hi, dlc_arena *arena)
{
    const dlc_pool *pool = kernel->pool;
    uint8_t *marks = dlc_new_array(arena, uint8_t, pool->nodes.n);
    dlc_stage copy = *stage;
    const dlc_expr *root;
    for (uint32_t i = 0; (root = dlc_stage_root(&copy, i)); i++)
        marks[*root] = 1;
    for (dlc_expr id = pool->nodes.n; id-- > 1;) { /* what an expression is made of has smaller numbers */
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id])
            continue;
        dlc_expr condition = node->op == DLC_EXPR_SELECT ? dlc_arg(pool, id, 0) : node->op == DLC_EXPR_LOAD ? dlc_load_guard(pool, id) : 0;
        int holds = condition ? answer(pool, condition, axis, lo, hi) : -1;
        if (holds >= 0 && node->op == DLC_EXPR_SELECT)
            marks[dlc_arg(pool, id, holds ? 1 : 2)] = 1, marks[id] = 0;
        else if (holds == 0)
            marks[dlc_load_else(pool, id)] = 1, marks[id] = 0;
        else
            for (uint32_t i = 0; i < node->nargs; i++)
                marks[dlc_arg(pool, id, i)] = 1;
    }
    marks[0] = 0;
    return marks;
}

/*
 * Where a loop of vectors is cut: conditions over its axis have one answer in each piece then, and what they choose from costs nothing.
 */
#include "codegen/nest.h"

#include <stdlib.h>

static const dlc_schedule_node *node_of(const dlc_nest *nest, uint32_t n)
{
    return &nest->schedule->nodes.data[n];
}

/* The point from which on a comparison of the axis with a constant has another answer; 0: none. */
static int64_t turn_of(const dlc_nest *nest, dlc_expr comparison, uint32_t axis)
{
    const dlc_pool *pool = nest->kernel->pool;
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
static void find_index_turns(const dlc_nest *nest, const uint8_t *marks, uint32_t axis, uint8_t *within)
{
    const dlc_pool *pool = nest->kernel->pool;
    for (dlc_expr id = 1; nest->schedule->target->kind == DLC_TARGET_CPU && id < pool->nodes.n; id++)
        for (uint32_t d = 0; marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD && d < dlc_load_rank(pool, id); d++)
            if (!dlc_expr_has_load(pool, dlc_arg(pool, id, d)) && dlc_expr_uses_axis(pool, dlc_arg(pool, id, d), axis))
                dlc_expr_reach(pool, dlc_arg(pool, id, d), within);
}

/*
 * Where the lanes' loop is cut so that each piece has one source of what is concatenated, not a choice of all of them for each
 * element. Pieces are a vector at least, but for those of indices. What is summed along the lanes is not cut: its order is the
 * schedule's.
 */
uint32_t dlc_cut_lanes(dlc_nest *nest, uint32_t n, const dlc_span *s, int64_t *turns)
{
    const dlc_schedule_node *node = node_of(nest, n);
    const dlc_kernel *kernel = nest->kernel;
    uint8_t *within = dlc_new_array(nest->arena, uint8_t, kernel->pool->nodes.n);
    uint32_t found = 0, kept = 0, nindices = 0;
    int64_t lo, hi, of_indices[DLC_MOST_TURNS];
    if (node->count > 1 || !dlc_expr_is_int(kernel->pool, s->lo, &lo) || !dlc_expr_is_int(kernel->pool, s->hi, &hi))
        return 0;
    for (uint32_t i = n + 1; i < node->end; i++) {
        if (node_of(nest, i)->kind != DLC_LOOP_LEAF)
            continue;
        const dlc_stage *stage = &kernel->stages.data[node_of(nest, i)->stage];
        if (dlc_ids_find(&stage->reduce, node->axis, NULL))
            return 0;
        const uint8_t *marks = dlc_stage_marks(kernel, stage, nest->arena);
        find_index_turns(nest, marks, node->axis, within);
        for (dlc_expr id = 1; id < kernel->pool->nodes.n && found < DLC_MOST_TURNS; id++) {
            int64_t turn = marks[id] ? turn_of(nest, id, node->axis) : 0;
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

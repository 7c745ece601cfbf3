/*
 * Pieces: an index that goes along an axis by straight pieces, as those of reflected, repeated and wrapped borders do, becomes a choice
 * of them:
 *
 *     x[max(min(i - 3, 55), 0)]     becomes     x[select(i < 4, 0, select(i < 59, i - 3, 55))]
 *
 * Loops of vectors are cut where such a choice turns (ir/schedule/turns.c), and what one piece reads lies together. What rounds, as the index
 * of a resized image does, is often a single piece. Pieces are found by the index's value at every point of the axis.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

enum {
    MOST_POINTS = 4096, /* of the axis: each is looked at */
    MOST_PIECES = 8,    /* a choice of more is slower than what it replaces */
    LEAST_POINTS = 4,   /* of a piece, on average */
    WORTH_PERCENT = 90  /* of the time before: estimates are not finer */
};

/* From the end of the one before to the point before `end` the index is first + step * axis. */
typedef struct {
    int64_t end, first, step;
} piece;

typedef struct {
    dlc_expr index, choice;
} choice;

typedef struct {
    const dlc_rewriting *in;
    dlc_kernel *kernel;
    uint32_t most; /* pieces */
    dlc_vec(choice) choices;
} site;

/* --- finding them --- */

/* The one thing that the expression depends on is an axis of known size, which is returned; else DLC_NO_AXIS. */
static uint32_t only_axis(const site *at, dlc_expr expr, int64_t *extent)
{
    const dlc_pool *pool = at->kernel->pool;
    uint8_t *marks = dlc_new_array(at->in->scratch, uint8_t, (size_t)expr + 1);
    uint32_t axis = DLC_NO_AXIS;
    dlc_expr_reach(pool, expr, marks);
    for (dlc_expr id = 1; id <= expr; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (marks[id] && (node->op == DLC_EXPR_SYM || node->op == DLC_EXPR_LOAD || (node->op == DLC_EXPR_AXIS && axis != DLC_NO_AXIS)))
            return DLC_NO_AXIS;
        if (marks[id] && node->op == DLC_EXPR_AXIS)
            axis = node->imm.id;
    }
    return axis != DLC_NO_AXIS && dlc_const_extent(at->kernel, axis, extent) && *extent > 0 && *extent <= MOST_POINTS ? axis : DLC_NO_AXIS;
}

/* How many pieces; 0: too many. */
static uint32_t find_pieces(const site *at, dlc_expr index, uint32_t axis, int64_t extent, piece pieces[MOST_PIECES])
{
    dlc_evaluator evaluator = dlc_evaluator_of(at->kernel->pool, &index, 1, NULL, at->in->scratch);
    int64_t *axes = dlc_new_array(at->in->scratch, int64_t, at->kernel->axes.n);
    int64_t *values = dlc_new_array(at->in->scratch, int64_t, extent);
    uint32_t n = 0;
    for (int64_t i = 0; i < extent; i++) {
        axes[axis] = i;
        values[i] = dlc_evaluate(&evaluator, axes);
    }
    for (int64_t from = 0, end; from < extent; from = end) {
        int64_t step = from + 1 < extent ? values[from + 1] - values[from] : 0;
        for (end = from + 1; end < extent && values[end] - values[end - 1] == step; end++)
            ;
        if (n == at->most || extent < (int64_t)(n + 1) * LEAST_POINTS)
            return 0;
        pieces[n++] = (piece){end, values[from] - step * from, step};
    }
    return n;
}

static dlc_expr choice_of(dlc_pool *pool, uint32_t axis, const piece *pieces, uint32_t n)
{
    dlc_expr result = 0, at = dlc_expr_axis(pool, axis);
    for (uint32_t i = n; i-- > 0;) {
        dlc_expr value = dlc_addi(pool, dlc_muli(pool, at, pieces[i].step), pieces[i].first);
        result = result ? dlc_select(pool, dlc_lt(pool, at, dlc_expr_i64(pool, pieces[i].end)), value, result) : value;
    }
    return result;
}

static void add_index(site *at, dlc_expr index)
{
    dlc_pool *pool = at->kernel->pool;
    dlc_expr coefficient, rest;
    piece pieces[MOST_PIECES];
    int64_t extent;
    uint32_t axis = only_axis(at, index, &extent);
    if (axis == DLC_NO_AXIS || dlc_expr_linear(pool, index, axis, &coefficient, &rest) || dlc_node_of(pool, index)->op == DLC_EXPR_SELECT)
        return;
    for (uint32_t i = 0; i < at->choices.n; i++)
        if (at->choices.data[i].index == index)
            return;
    uint32_t n = find_pieces(at, index, axis, extent, pieces);
    if (n)
        dlc_vec_push(at->in->scratch, &at->choices, ((choice){index, choice_of(pool, axis, pieces, n)}));
}

static void find_indices(site *at)
{
    const dlc_pool *pool = at->kernel->pool;
    const uint8_t *marks = dlc_kernel_marks(at->kernel, at->in->scratch);
    for (dlc_expr id = 1, n = pool->nodes.n; id < n; id++)
        for (uint32_t d = 0; marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD && d < dlc_load_rank(pool, id); d++)
            add_index(at, dlc_arg(pool, id, d));
}

/* --- the kernel --- */

static uint32_t chosen_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const site *at = user;
    (void)source;
    for (uint32_t d = 0; d < rank; d++) {
        result[d] = index[d];
        for (uint32_t i = 0; i < at->choices.n; i++)
            if (at->choices.data[i].index == index[d])
                result[d] = at->choices.data[i].choice;
    }
    return rank;
}

static int rewrite(const dlc_rewriting *in, uint32_t most, dlc_rewritten *out)
{
    site at = {.in = in, .kernel = dlc_kernel_clone(in->kernel, in->arena), .most = most};
    *out = (dlc_rewritten){0};
    find_indices(&at);
    if (!at.choices.n)
        return 0;
    dlc_kernel_reindex(at.kernel, &(dlc_reindex){.index = chosen_index, .user = &at});
    dlc_rewrite_add_part(at.kernel, at.kernel->buffers.n, 0, out);
    return 1;
}

static int pays(const dlc_rewriting *in)
{
    dlc_rewriting trial = *in;
    dlc_rewritten out;
    double share;
    trial.arena = in->scratch;
    if (!rewrite(&trial, MOST_PIECES, &out))
        return 0;
    double before = dlc_rewrite_time(in, in->kernel, &share), after = dlc_rewrite_time(in, out.parts.data[0].kernel, &share);
    return before >= 0 && after >= 0 && after <= before * WORTH_PERCENT / 100;
}

int dlc_rewrite_pieces(const dlc_rewriting *in, dlc_rewritten *out)
{
    if (!in->wanted && !pays(in))
        return 0;
    return rewrite(in, in->wanted && in->wanted < MOST_PIECES ? (uint32_t)in->wanted : MOST_PIECES, out);
}

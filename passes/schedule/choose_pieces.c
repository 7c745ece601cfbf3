/*
 * Indices that go along the lanes by straight pieces, as a choice of them (passes/rewrite/pieces.c): loops of vectors are cut where the
 * choice turns, so each piece is read as what it is, and short ones point by point.
 */
#include "passes/schedule/choose.h"

#include <math.h>

enum { MOST_TURNS = 16 };
#define PIECE_CYCLES 4.0 /* each of the loops */
#define GATHERED 2.4     /* an element */
#define BY_POINTS 2.0    /* an element */

/* Points at which a choice by the axis turns, in order, up to its end. */
static uint32_t find_turns(const dlc_chooser *c, dlc_expr offset, uint32_t lane, int64_t turns[MOST_TURNS + 1])
{
    const dlc_pool *pool = c->kernel->pool;
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, (size_t)offset + 1);
    uint32_t n = 0, at;
    int64_t turn;
    dlc_expr_reach(pool, offset, marks);
    for (dlc_expr id = 1; id <= offset && n < MOST_TURNS; id++) {
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LT || dlc_bare_axis(pool, dlc_arg(pool, id, 0)) != lane ||
            !dlc_expr_is_int(pool, dlc_arg(pool, id, 1), &turn))
            continue;
        for (at = n++; at && turns[at - 1] > turn; at--)
            turns[at] = turns[at - 1];
        turns[at] = turn;
    }
    turns[n] = c->extent[lane];
    return n;
}

double dlc_choose_pieces(const dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, uint32_t width)
{
    dlc_pool *pool = c->kernel->pool;
    dlc_ranges ranges = dlc_kernel_ranges(c->kernel);
    dlc_interval *axes = dlc_arena_copy(c->arena, ranges.axes, ranges.naxes * sizeof *axes);
    int64_t turns[MOST_TURNS + 1], lo = 0;
    double cycles = 0;
    uint32_t n = c->target->kind == DLC_TARGET_CPU && dlc_choose_is_known(c, lane) && !dlc_expr_has_load(pool, access->offset)
                     ? find_turns(c, access->offset, lane, turns)
                     : 0;
    ranges.axes = axes;
    for (uint32_t i = 0; n && i <= n; lo = turns[i++]) {
        double length = (double)(turns[i] - lo);
        axes[lane] = (dlc_interval){lo, turns[i] - 1};
        if (length <= 0)
            continue;
        int64_t stride = dlc_choose_stride(c, dlc_expr_simplify(pool, access->offset, &ranges), lane);
        if (stride == DLC_ODD_STRIDE)
            return -1;
        cycles += PIECE_CYCLES;
        if (length * DLC_BORDER <= width)
            cycles += BY_POINTS * length;
        else
            cycles += stride == 0 || stride == 1 ? ceil(length / width) : GATHERED * length;
    }
    return n ? cycles / (double)c->extent[lane] : -1;
}

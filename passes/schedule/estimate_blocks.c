/*
 * Blocks of an axis that loops over other axes leave to a loop inside of them: what their iterations need of it (ir/schedule/home.c). They end
 * where the axis does (codegen/walk.c), so the last ones may have fewer points: of seven rows of tiles, two for each unit, the fourth unit has
 * one. The firsts of all blocks are gone through. (Zen 4, Winograd's convolutions of 14x14 results by four rows: estimates were 1.19 times what
 * was measured where those seven rows counted as eight.)
 */
#include "ir/schedule/resolve.h"
#include "passes/schedule/choose.h"

enum { MOST_FIRSTS = 256, MOST_BLOCKS = 1024 }; /* more are as many whole ones */

typedef dlc_vec(int64_t) points;

/* The first points of iterations of loop n, which those around it over its axis cut; 0: of what, or how many there are, is not known. */
static int find_firsts(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t n, points *firsts)
{
    const dlc_schedule_node *loop = &schedule->nodes.data[n];
    uint32_t outer = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, n), loop->axis);
    points blocks = {0};
    if (outer == DLC_ROOT_NODE && schedule->ranges[n].size != c->kernel->axes.data[loop->axis].extent)
        return 0;
    if (outer == DLC_ROOT_NODE)
        dlc_vec_push(c->arena, &blocks, 0);
    else if (!find_firsts(c, schedule, outer, &blocks))
        return 0;
    int64_t length = outer == DLC_ROOT_NODE ? c->extent[loop->axis] : schedule->nodes.data[outer].tile;
    for (uint32_t i = 0; i < blocks.n; i++)
        for (int64_t at = 0; at < length && blocks.data[i] + at < c->extent[loop->axis]; at += loop->tile) {
            if (firsts->n == MOST_FIRSTS)
                return 0;
            dlc_vec_push(c->arena, firsts, blocks.data[i] + at);
        }
    return firsts->n > 0;
}

static void add(const dlc_chooser *c, dlc_blocks *blocks, double size, double count)
{
    for (uint32_t i = 0; i < blocks->n; i++)
        if (blocks->data[i].size == size) {
            blocks->data[i].count += count;
            return;
        }
    dlc_vec_push(c->arena, blocks, ((dlc_block){size, count}));
}

/* By axis, the firsts of the innermost loop around n over it, of those axes that say where n begins; how many blocks there are, 0: not known. */
static int64_t find_outer(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t n, points *firsts)
{
    int64_t nblocks = 1;
    for (uint32_t a = 0; a < c->naxes; a++) {
        if (!dlc_expr_uses_axis(c->kernel->pool, schedule->ranges[n].first, a))
            continue;
        uint32_t loop = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, n), a);
        if (loop == DLC_ROOT_NODE || !find_firsts(c, schedule, loop, &firsts[a]))
            return 0;
        nblocks *= firsts[a].n;
        if (nblocks > MOST_BLOCKS)
            return 0;
    }
    return nblocks;
}

dlc_blocks dlc_estimate_blocks(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t n)
{
    const dlc_schedule_range *range = &schedule->ranges[n];
    int64_t extent = c->extent[schedule->nodes.data[n].axis], size = dlc_expr_eval(c->kernel->pool, range->size, c->symbols);
    points *firsts = dlc_new_array(c->arena, points, c->naxes + 1);
    int64_t *at = dlc_new_array(c->arena, int64_t, c->naxes + 1), nblocks = size < extent ? find_outer(c, schedule, n, firsts) : 0;
    dlc_blocks blocks = {0};
    size = size < 1 ? 1 : size > extent ? extent : size;
    if (!nblocks) {
        add(c, &blocks, (double)size, 1);
        return blocks;
    }
    dlc_evaluator first = dlc_evaluator_of(c->kernel->pool, &range->first, 1, c->symbols, c->arena);
    for (int64_t i = 0; i < nblocks; i++) {
        int64_t rest = i;
        for (uint32_t a = 0; a < c->naxes; a++)
            if (firsts[a].n) {
                at[a] = firsts[a].data[rest % firsts[a].n];
                rest /= firsts[a].n;
            }
        int64_t from = dlc_evaluate(&first, at), to = from + size < extent ? from + size : extent;
        from = from > 0 ? from : 0;
        add(c, &blocks, to > from ? (double)(to - from) : 0, 1);
    }
    return blocks;
}

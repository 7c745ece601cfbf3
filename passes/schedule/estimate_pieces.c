/*
 * What lanes compute where their loop is cut (ir/schedule/turns.c): in each piece one side of a choice over their axis. So a copy of what is
 * concatenated is one of a part after the other, however many there are. (Zen 4, 196 x 672 of fourteen parts, scaled, beside a product with
 * 128 columns: 300 us by vectors of 8, 16 and 32, 360 where two vectors a step choose from all parts.)
 */
#include "ir/schedule/resolve.h"
#include "passes/schedule/choose.h"

/* The loop goes over all of its axis, of a known size. */
static int is_whole(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t lanes)
{
    uint32_t axis = schedule->nodes.data[lanes].axis;
    return schedule->target->kind == DLC_TARGET_CPU && schedule->ranges && axis < c->naxes && dlc_choose_is_known(c, axis) &&
           schedule->ranges[lanes].size == c->kernel->axes.data[axis].extent &&
           dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, lanes), axis) == DLC_ROOT_NODE;
}

double dlc_estimate_pieces(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t lanes, uint32_t s)
{
    int64_t turns[DLC_MOST_TURNS + 1], from = 0;
    uint32_t axis = schedule->nodes.data[lanes].axis, nnodes = c->kernel->pool->nodes.n;
    const dlc_stage *stage = &c->kernel->stages.data[s];
    uint32_t n = is_whole(c, schedule, lanes) ? dlc_schedule_turns(schedule, c->kernel, lanes, 0, c->extent[axis], c->arena, turns) : 0;
    if (n == 0)
        return c->work[s];
    const uint8_t *all = dlc_stage_marks(c->kernel, stage, c->arena);
    double *share = dlc_new_array(c->arena, double, nnodes);
    turns[n++] = c->extent[axis];
    for (uint32_t i = 0; i < n; from = turns[i++]) {
        const uint8_t *marks = dlc_stage_piece_marks(c->kernel, stage, axis, from, turns[i], c->arena);
        for (dlc_expr id = 1; id < nnodes; id++)
            share[id] += marks[id] ? (double)(turns[i] - from) / (double)c->extent[axis] : 0;
    }
    return c->work[s] + dlc_choose_work(c, all, share) - dlc_choose_work(c, all, NULL);
}

/*
 * Loops within lanes: what a map computes along its lanes alone is the same at all points of another axis, whose loop stands within the
 * lanes' then, so that a vector of it is computed once for all of them (codegen/nest.c). Sampling an image at places that are data is so:
 * places and weights are those of all channels.
 *
 *     par channels:T, lane points { for channels { sample } }
 *
 * Lines of T rows are met in turn, so T is what caches and what looks ahead for the processor follow at once.
 */
#include "passes/schedule/choose.h"

enum {
    LEAST_SHARED = 32, /* operations of a vector that all points of the axis share: fewer cost less than rows far apart */
    LEAST_WITHIN = 4,  /* points */
    MOST_WITHIN = 16
};

/* Operations of the stage at a point of the lanes that are the same along the axis. Indices count: vectors of them take as long. */
static double shared_along(const dlc_chooser *c, uint32_t s, uint32_t lane, uint32_t axis)
{
    const dlc_pool *pool = c->kernel->pool;
    const uint8_t *marks = dlc_stage_marks(c->kernel, &c->kernel->stages.data[s], c->arena);
    double shared = 0;
    for (dlc_expr id = 1; id < pool->nodes.n; id++)
        if (marks[id] && dlc_expr_uses_axis(pool, id, lane) && !dlc_expr_uses_axis(pool, id, axis))
            shared += dlc_exprs[dlc_node_of(pool, id)->op].cost;
    return shared;
}

uint32_t dlc_choose_within(const dlc_chooser *c, uint32_t lane, const dlc_ids *outer, int64_t *tile)
{
    const dlc_stage *stage = &c->kernel->stages.data[0];
    uint32_t best = DLC_NO_AXIS;
    double most = LEAST_SHARED;
    if (c->target->kind != DLC_TARGET_CPU || c->target->plugin || c->nstages != 1 || c->serial.n || lane == DLC_NO_AXIS ||
        stage->combine != DLC_REDUCE_NONE || stage->update != DLC_UPDATE_NONE)
        return DLC_NO_AXIS;
    for (uint32_t i = 0; i < outer->n; i++) {
        uint32_t axis = outer->data[i];
        if (!dlc_choose_is_known(c, axis) || c->extent[axis] < LEAST_WITHIN || !dlc_ids_find(&stage->axes, axis, NULL))
            continue;
        double shared = shared_along(c, 0, lane, axis);
        if (shared >= most) { /* of equal ones the innermost, whose rows are nearest */
            most = shared;
            best = axis;
        }
    }
    *tile = best != DLC_NO_AXIS && c->extent[best] < MOST_WITHIN ? c->extent[best] : MOST_WITHIN;
    return best;
}

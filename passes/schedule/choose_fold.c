/* The loops of what a stage folds along other axes than its lanes: which are written out, and which are each lane's own sum. */
#include "passes/schedule/choose.h"

enum {
    UNROLL = 32,        /* reduced points written out: windows become straight code with constant offsets */
    LARGE_WINDOW = 1024 /* points of one of which the inner axes are */
};

const dlc_own_dot dlc_no_own_dot = {DLC_DOT_NONE, DLC_NO_AXIS};

/* All of a small window, on a CPU the inner axes of a larger one. */
uint32_t dlc_choose_first_unrolled(const dlc_chooser *c, const dlc_ids *reduce)
{
    int64_t points = 1, extent;
    uint32_t first = reduce->n;
    for (uint32_t i = reduce->n; i-- > 0;) {
        if (!dlc_const_extent(c->kernel, reduce->data[i], &extent) || extent > UNROLL)
            return reduce->n;
        points *= extent;
        if (points <= UNROLL)
            first = i;
    }
    return first == 0 || (c->target->kind == DLC_TARGET_CPU && points <= LARGE_WINDOW) ? first : reduce->n;
}

dlc_ids dlc_choose_reduced(const dlc_chooser *c, uint32_t s, uint32_t inner)
{
    const dlc_ids *reduce = &c->kernel->stages.data[s].reduce;
    dlc_ids order = {0};
    for (uint32_t i = 0; i < reduce->n; i++)
        if (reduce->data[i] != inner)
            dlc_vec_push(c->arena, &order, reduce->data[i]);
    if (dlc_ids_find(reduce, inner, NULL))
        dlc_vec_push(c->arena, &order, inner);
    return order;
}

/* Steps of the window that are written out from the axis on, by granules of the row along it; innermost: the axis inside of it, if any. */
static int64_t steps_of(const dlc_chooser *c, dlc_dot row, uint32_t axis, uint32_t innermost)
{
    int64_t granule = dlc_dots[row].granule, granules = (c->extent[axis] + granule - 1) / granule;
    return innermost == axis ? granules : granules * c->extent[innermost];
}

/*
 * Of a window of bytes, or of bf16 where its instruction is faster than widening and multiplying each: granules along the axis around the
 * innermost one, along which neighbours share what they read, so that these share granules, too.
 */
dlc_own_dot dlc_choose_own_dot(const dlc_chooser *c, uint32_t s, uint32_t lane, uint32_t width, uint32_t inner)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    const dlc_ids reduce = dlc_choose_reduced(c, s, inner);
    dlc_dot_operands operands;
    if (lane == DLC_NO_AXIS || c->target->kind != DLC_TARGET_CPU || c->target->plugin || !reduce.n || dlc_ids_find(&reduce, lane, NULL) ||
        width * dlc_dtype_bytes(stage->dtype[0]) > c->target->vector_bytes || dlc_choose_first_unrolled(c, &reduce) == reduce.n)
        return dlc_no_own_dot;
    uint32_t innermost = reduce.data[reduce.n - 1], axis = reduce.n > 1 ? reduce.data[reduce.n - 2] : innermost;
    for (dlc_dot row = DLC_DOT_NONE + 1; row < DLC_DOT_COUNT && c->extent[axis] > 1; row++)
        if (dlc_dot_pays(c->target, row) && dlc_dot_takes_own(row, c->kernel->pool, stage, stage->value[0], &operands) &&
            steps_of(c, row, axis, innermost) <= UNROLL)
            return (dlc_own_dot){row, axis};
    return dlc_no_own_dot;
}

dlc_own_dot dlc_choose_lanes_own_dot(const dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s)
{
    return dlc_choose_own_dot(c, s, choice->lane == DLC_NO_AXIS ? choice->lanes[s] : choice->lane, choice->width, choice->inner);
}

uint32_t dlc_choose_open_reduced(dlc_chooser *c, uint32_t s, uint32_t lane, uint32_t inner, int by_rows, const dlc_own_dot *own)
{
    const dlc_ids reduce = dlc_choose_reduced(c, s, inner);
    uint32_t first = dlc_ids_find(&reduce, lane, NULL) ? reduce.n : dlc_choose_first_unrolled(c, &reduce), n = 0;
    if (by_rows && first + 1 < reduce.n)
        first = reduce.n - 1;
    for (uint32_t i = 0; i < reduce.n; i++)
        if (reduce.data[i] != lane) {
            int is_own = own->row != DLC_DOT_NONE && reduce.data[i] == own->axis;
            dlc_schedule_open(c->schedule, i >= first || is_own ? DLC_LOOP_UNROLL : DLC_LOOP_FOR, reduce.data[i],
                              is_own ? dlc_dots[own->row].granule : 1);
            n++;
        }
    return n;
}

void dlc_choose_fold_leaf(dlc_chooser *c, uint32_t s, const dlc_own_dot *own)
{
    if (own->row == DLC_DOT_NONE)
        dlc_schedule_leaf(c->schedule, s, c->place[s]);
    else
        dlc_schedule_own_dot(c->schedule, s, own->row, own->axis, c->place[s]);
}

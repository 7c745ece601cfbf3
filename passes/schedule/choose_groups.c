/*
 * Grouped convolutions of few channels to a group: no group fills a vector, so lanes run along groups and their channels together, one
 * axis of the result.
 *
 *     groups[g,oc,ow] = sum(ic,kw) x[ow + kw, g * 4 + ic] * w[g * 4 + oc, ic, kw]      lane (g, oc):16
 *
 * Lanes of one group read one element of x, neighbouring groups neighbouring blocks, so a vector and a permutation of it serve all
 * (dlc_nest_is_spread). What follows is what lanes along any axis do: neighbours side by side, weights laid out by lanes.
 */
#include "passes/schedule/choose.h"

/* Neighbours in memory are channels of a group, and then those of the next, wherever the kernel stores. */
static int is_stored_by_groups(const dlc_chooser *c, uint32_t group, uint32_t channel)
{
    for (uint32_t s = 0; s < c->nstages; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if (!access->load && (dlc_choose_stride(c, access->offset, channel) != 1 ||
                                  dlc_choose_stride(c, access->offset, group) != c->extent[channel]))
                return 0;
        }
    return 1;
}

/* Of what a sum reads something is the same for all channels of a group, and the rest is each channel's own. */
static int is_read_by_groups(const dlc_chooser *c, uint32_t group, uint32_t channel)
{
    uint32_t nshared = 0;
    for (uint32_t s = 0; s < c->nstages; s++)
        for (uint32_t i = 0; i < c->accesses[s].n && c->kernel->stages.data[s].reduce.n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if (!access->load)
                continue;
            if (dlc_choose_stride(c, access->offset, group) == 0)
                return 0;
            nshared += dlc_choose_stride(c, access->offset, channel) == 0;
        }
    return nshared > 0;
}

static int are_groups(const dlc_chooser *c, uint32_t group, uint32_t channel, int64_t width)
{
    int64_t channels = c->extent[channel];
    return group != channel && dlc_choose_is_known(c, group) && dlc_choose_is_known(c, channel) && channels > 1 && channels < width &&
           width % channels == 0 && channels * c->extent[group] >= width && is_stored_by_groups(c, group, channel) &&
           is_read_by_groups(c, group, channel);
}

/* The axes of groups and of a group's channels, or none. */
static dlc_ids find_groups(const dlc_chooser *c)
{
    dlc_ids pair = {0};
    for (uint32_t g = 0; g < c->roots.n && !pair.n; g++)
        for (uint32_t o = 0; o < c->roots.n && !pair.n; o++)
            if (are_groups(c, c->roots.data[g], c->roots.data[o], dlc_choose_width(c, sizeof(float)))) {
                dlc_vec_push(c->arena, &pair, c->roots.data[g]);
                dlc_vec_push(c->arena, &pair, c->roots.data[o]);
            }
    return pair;
}

/* The reduced axis goes along the dimension that lanes go along. */
static int is_along(const dlc_chooser *c, uint32_t s, uint32_t axis, uint32_t lane)
{
    const dlc_pool *pool = c->kernel->pool;
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        dlc_expr load = c->accesses[s].data[i].load;
        for (uint32_t d = 0; load && d < dlc_load_rank(pool, load); d++)
            if (dlc_expr_uses_axis(pool, dlc_arg(pool, load, d), axis) && dlc_expr_uses_axis(pool, dlc_arg(pool, load, d), lane))
                return 1;
    }
    return 0;
}

/* Channels of a group are added up just around the innermost axis of the window: its taps share what each of them has read. */
static void order_reduction(dlc_chooser *c, uint32_t lane)
{
    for (uint32_t s = 0; s < c->nstages; s++) {
        dlc_ids *reduce = &c->kernel->stages.data[s].reduce, order = {0};
        int is_sum = c->kernel->stages.data[s].combine == DLC_REDUCE_SUM && reduce->n;
        for (uint32_t along = 0; along < 2 && is_sum; along++)
            for (uint32_t i = 0; i + 1 < reduce->n; i++)
                if (is_along(c, s, reduce->data[i], lane) == (int)along)
                    dlc_vec_push(c->arena, &order, reduce->data[i]);
        for (uint32_t i = 0; i < order.n; i++)
            reduce->data[i] = order.data[i];
    }
}

/* Constants of all groups' channels lie along the lanes; they are laid out before those are one axis. */
static void lay_out_constants(dlc_chooser *c, uint32_t s, uint32_t channel)
{
    const dlc_pool *pool = c->kernel->pool;
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        if (!access->load || DLC_SOURCE_IS_STAGE(access->source) || c->kernel->buffers.data[access->source].role != DLC_ROLE_CONST)
            continue;
        for (uint32_t d = 0; d < dlc_load_rank(pool, access->load); d++)
            if (dlc_expr_uses_axis(pool, dlc_arg(pool, access->load, d), channel)) {
                dlc_choose_lay_out_constant(c, s, access->load, d, &dlc_no_own_dot);
                break;
            }
    }
}

/* Where lanes along another axis take less time, the schedule begun here is dropped by who asked. */
int dlc_choose_groups(dlc_chooser *c)
{
    dlc_ids pair = find_groups(c);
    if (!pair.n)
        return 0;
    dlc_chooser flat;
    for (uint32_t s = 0; s < c->nstages; s++)
        lay_out_constants(c, s, pair.data[1]);
    uint32_t lane = dlc_schedule_flatten(c->schedule, &pair);
    dlc_choose_start(&flat, c->schedule->kernel, c->target, c->arena);
    flat.schedule = c->schedule;
    order_reduction(&flat, lane);
    return dlc_choose_lanes(&flat) == lane;
}

/*
 * What units that follow each other begin with alike, `kept for t { … }`: loops right inside of the parallel ones that fill scratch and meet
 * nothing of the innermost of these, such as tiles of an image before a panel of columns. A thread that has filled its scratch for one unit
 * leaves it as it is for the next, until the parallel loops around change. The first bytes of scratch say what it was filled for (codegen/kept.c).
 */
#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/verifier.h"

static uint32_t count_pars(const dlc_schedule *schedule)
{
    uint32_t n = 0;
    while (n < schedule->nodes.n && schedule->nodes.data[n].kind == DLC_LOOP_PAR)
        n++;
    return n;
}

static int uses(const dlc_schedule *schedule, dlc_expr expr, uint32_t axis)
{
    return expr && dlc_expr_uses_axis(schedule->kernel->pool, expr, axis);
}

static int leaf_meets(const dlc_schedule *schedule, uint32_t s, uint32_t axis)
{
    const dlc_stage *stage = &schedule->kernel->stages.data[s];
    const dlc_home *home = &schedule->homes[s];
    if (dlc_ids_find(&stage->axes, axis, NULL) || dlc_ids_find(&stage->reduce, axis, NULL))
        return 1;
    for (uint32_t i = 0; home->first && i < stage->axes.n; i++)
        if (uses(schedule, home->first[i], axis) || uses(schedule, home->size[i], axis))
            return 1;
    return 0;
}

/* What the loop does, or over which points, depends on the axis. */
static int meets(const dlc_schedule *schedule, uint32_t loop, uint32_t axis)
{
    for (uint32_t n = loop; n < schedule->nodes.data[loop].end; n++) {
        const dlc_schedule_node *node = &schedule->nodes.data[n];
        if (node->axis == axis && node->kind != DLC_LOOP_LEAF && node->kind != DLC_LOOP_AS)
            return 1;
        if (node->kind == DLC_LOOP_LEAF ? leaf_meets(schedule, node->stage, axis)
                                        : uses(schedule, schedule->ranges[n].first, axis) || uses(schedule, schedule->ranges[n].size, axis))
            return 1;
    }
    return 0;
}

/* All that the loop leaves behind is in scratch; what lies in registers ends with it. */
static int fills_scratch(const dlc_schedule *schedule, uint32_t loop)
{
    for (uint32_t n = loop; n < schedule->nodes.data[loop].end; n++) {
        const dlc_schedule_node *node = &schedule->nodes.data[n];
        if (node->kind != DLC_LOOP_LEAF)
            continue;
        const dlc_stage *stage = &schedule->kernel->stages.data[node->stage];
        const dlc_home *home = &schedule->homes[node->stage];
        int is_within = home->place == DLC_PLACE_REG && home->at >= loop && home->at < schedule->nodes.data[loop].end;
        if (stage->buffer != DLC_NO_BUFFER || stage->update != DLC_UPDATE_NONE || (home->place != DLC_PLACE_SCRATCH && !is_within))
            return 0;
    }
    return schedule->nodes.data[loop].kind != DLC_LOOP_LEAF && schedule->nodes.data[loop].kind != DLC_LOOP_AS;
}

/* Nobody behind it writes to what it has filled. */
static int is_overwritten(const dlc_schedule *schedule, uint32_t first, uint32_t end)
{
    for (uint32_t s = 0; s < schedule->kernel->stages.n; s++) {
        uint32_t of = schedule->homes[s].takes;
        int is_behind = !(schedule->homes[s].leaf >= first && schedule->homes[s].leaf < end);
        if (is_behind && of != DLC_NO_STAGE && schedule->homes[of].leaf >= first && schedule->homes[of].leaf < end)
            return 1;
    }
    return 0;
}

static int is_kept(const dlc_schedule *schedule, uint32_t loop, uint32_t npars, uint32_t nkept)
{
    for (uint32_t i = 0; i < nkept; i++)
        if (meets(schedule, loop, schedule->nodes.data[npars - 1 - i].axis))
            return 0;
    return fills_scratch(schedule, loop);
}

/* From the first loop inside of the parallel ones on; of those that are to be kept, or of all. */
static dlc_kept find_kept(const dlc_schedule *schedule)
{
    uint32_t npars = count_pars(schedule), n = npars;
    dlc_kept kept = {.first = npars, .end = npars};
    if (schedule->threads || schedule->target->kind != DLC_TARGET_CPU || !npars || npars == schedule->nodes.n)
        return kept;
    while (kept.npars < npars && is_kept(schedule, npars, npars, kept.npars + 1))
        kept.npars++;
    for (; kept.npars && n < schedule->nodes.n && (schedule->keeps || schedule->nodes.data[n].kept) && is_kept(schedule, n, npars, kept.npars);
         n = schedule->nodes.data[n].end)
        kept.end = schedule->nodes.data[n].end;
    if (kept.end == schedule->nodes.n || is_overwritten(schedule, kept.first, kept.end))
        kept.end = kept.first;
    return kept;
}

/* The loop is one of those right inside of the parallel ones that were found. */
static int was_found(const dlc_schedule *schedule, uint32_t n)
{
    const dlc_kept *kept = &schedule->kept;
    return n >= kept->first && n < kept->end && dlc_schedule_parent(schedule, n) + 1 == kept->first;
}

dlc_status dlc_schedule_keep(dlc_schedule *schedule, dlc_diag *diag)
{
    dlc_verifier v = {.schedule = schedule, .kernel = schedule->kernel, .diag = diag};
    dlc_pool *pool = schedule->kernel->pool;
    schedule->kept = find_kept(schedule);
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        int is_found = was_found(schedule, n);
        if (schedule->keeps)
            schedule->nodes.data[n].kept = (uint8_t)is_found;
        else if (schedule->nodes.data[n].kept && !is_found)
            return dlc_verifier_fail(&v, "%s cannot be kept: such loops stand first inside of the parallel ones, on CPUs, fill scratch that nobody "
                                         "overwrites, and meet nothing of the innermost of those", dlc_verifier_loop(&v, n));
    }
    if (schedule->kept.first == schedule->kept.end)
        return DLC_OK;
    schedule->scratch = dlc_addi(pool, schedule->scratch, DLC_TAG_BYTES);
    for (uint32_t s = 0; s < schedule->kernel->stages.n; s++)
        if (schedule->homes[s].place == DLC_PLACE_SCRATCH)
            schedule->homes[s].offset = dlc_addi(pool, schedule->homes[s].offset, DLC_TAG_BYTES);
    return DLC_OK;
}

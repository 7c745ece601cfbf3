/*
 * Lanes: which axis vectors run along, by counting cycles. Either a root axis serves every stage, or each stage of a row has
 * the axis that is best for it, a reduced one included. What counts is how the stage's loads and stores move along that axis:
 * neighbours in memory cost one access a vector, anything else one an element.
 */
#include "passes/schedule/choose.h"

#include <string.h>

enum {
    FOLD_CYCLES = 12, /* folding a vector's lanes into one value */
    UNROLL = 32       /* reduced points written out: windows become straight code with constant offsets */
};

/* A constant's dimension that only this axis indexes may be laid out innermost. */
static int can_lay_out(const dlc_chooser *c, dlc_source source, uint32_t axis, uint32_t *dim)
{
    const dlc_kernel *kernel = c->kernel;
    if (DLC_SOURCE_IS_STAGE(source) || kernel->buffers.data[source].role != DLC_ROLE_CONST)
        return 0;
    if (kernel->buffers.data[source].layout.nparts || kernel->buffers.data[source].type.rank < 2)
        return 0;
    int64_t found = -1;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if (access->source != source)
                continue;
            int64_t here = -1;
            for (uint32_t d = 0; d < dlc_load_rank(kernel->pool, access->load); d++)
                if (dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, access->load, d)) == axis)
                    here = d;
                else if (dlc_expr_uses_axis(kernel->pool, dlc_arg(kernel->pool, access->load, d), axis))
                    return 0;
            if (here < 0 || (found >= 0 && here != found))
                return 0;
            found = here;
        }
    *dim = (uint32_t)found;
    return found >= 0;
}

/* Cycles of one point's memory access when vectors of `width` run along `lane` (none: one point at a time). */
static double access_cycles(const dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, uint32_t width)
{
    uint32_t dim;
    if (DLC_SOURCE_IS_STAGE(access->source) &&
        c->schedule->plans[DLC_SOURCE_INDEX(access->source)].place == DLC_PLACE_REG)
        return 0;
    if (lane == DLC_NO_AXIS)
        return 1;
    if (DLC_SOURCE_IS_STAGE(access->source) &&
        (lane == c->schedule->lane || dlc_ids_find(&c->roots, lane, NULL)))
        return 1.0 / width; /* scratch keeps a vector per point */
    int64_t stride = dlc_choose_stride(c, access->offset, lane);
    if (stride == 0)
        return 0.25 / width; /* the same for all lanes, often hoisted */
    if (stride == 1 || can_lay_out(c, access->source, lane, &dim))
        return 1.0 / width;
    return 2.4; /* gathered: an access an element, and the inserting */
}

static double rounded(int64_t extent, uint32_t width)
{
    return (double)((extent + width - 1) / width * width);
}

double dlc_choose_stage_cycles(const dlc_chooser *c, uint32_t s, uint32_t lane, uint32_t width)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    double points = dlc_choose_points(c, &stage->axes) * dlc_choose_points(c, &stage->reduce);
    double cycles = lane == DLC_NO_AXIS ? c->work[s] : c->work[s] / width;
    for (uint32_t i = 0; i < c->accesses[s].n; i++)
        cycles += points * access_cycles(c, &c->accesses[s].data[i], lane, width);
    if (lane != DLC_NO_AXIS)
        cycles *= rounded(c->extent[lane], width) / (double)c->extent[lane];
    cycles /= 2; /* two operations a cycle */
    if (lane != DLC_NO_AXIS && dlc_ids_find(&stage->reduce, lane, NULL))
        cycles += FOLD_CYCLES * dlc_choose_points(c, &stage->axes);
    return cycles;
}

/* The stage's best axis among its own and its reduced ones; none when nothing beats one point at a time. */
static uint32_t best_own_lane(const dlc_chooser *c, uint32_t s, uint32_t width, double *cycles)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    uint32_t best = DLC_NO_AXIS;
    *cycles = dlc_choose_stage_cycles(c, s, DLC_NO_AXIS, 1);
    if (stage->update != DLC_UPDATE_NONE)
        return best;
    for (uint32_t i = 0; i < stage->axes.n + stage->reduce.n; i++) {
        uint32_t axis = i < stage->axes.n ? stage->axes.data[i] : stage->reduce.data[i - stage->axes.n];
        if (dlc_ids_find(&c->roots, axis, NULL) || dlc_ids_find(&c->serial, axis, NULL))
            continue;
        double own = dlc_choose_stage_cycles(c, s, axis, width);
        if (own < *cycles) {
            *cycles = own;
            best = axis;
        }
    }
    return best;
}

/* A stage that reads itself at earlier points along an axis steps along it one point at a time. */
static int is_serial(const dlc_chooser *c, uint32_t s, uint32_t axis)
{
    uint32_t at;
    if (!dlc_ids_find(&c->kernel->stages.data[s].axes, axis, &at))
        return 0;
    for (uint32_t t = 0; t < c->kernel->stages.n; t++)
        for (uint32_t i = 0; i < c->accesses[t].n; i++) {
            const dlc_access_fact *access = &c->accesses[t].data[i];
            if (access->load && access->source == DLC_STAGE_SOURCE(s) && t <= s &&
                dlc_bare_axis(c->kernel->pool, dlc_arg(c->kernel->pool, access->load, at)) != axis)
                return 1;
        }
    return 0;
}

static double rows_cycles(const dlc_chooser *c, uint32_t width, uint32_t *lanes)
{
    double total = 0;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++) {
        double cycles;
        lanes[s] = best_own_lane(c, s, width, &cycles);
        if (lanes[s] != DLC_NO_AXIS && is_serial(c, s, lanes[s])) {
            lanes[s] = DLC_NO_AXIS;
            cycles = dlc_choose_stage_cycles(c, s, DLC_NO_AXIS, 1);
        }
        total += cycles;
    }
    return total;
}

static uint32_t best_root_lane(const dlc_chooser *c, uint32_t width, double *best_cycles)
{
    uint32_t best = DLC_NO_AXIS;
    for (uint32_t r = 0; r < c->roots.n; r++) {
        double total = 0;
        for (uint32_t s = 0; s < c->kernel->stages.n; s++)
            total += dlc_choose_stage_cycles(c, s, c->roots.data[r], width);
        if (best == DLC_NO_AXIS || total < *best_cycles) {
            *best_cycles = total;
            best = c->roots.data[r];
        }
    }
    return best;
}

/* Constants read along the lanes lie that way: the filters of a depthwise convolution. */
static void lay_out_constants(dlc_chooser *c, uint32_t lane)
{
    for (uint32_t b = 0; b < c->kernel->buffers.n; b++) {
        dlc_buffer *buffer = &c->kernel->buffers.data[b];
        uint32_t dim, n = 0;
        uint8_t order[DLC_MAX_RANK];
        if (!can_lay_out(c, b, lane, &dim) || dim + 1u == buffer->type.rank)
            continue;
        for (uint8_t d = 0; d < buffer->type.rank; d++)
            if (d != dim)
                order[n++] = d;
        order[n] = (uint8_t)dim;
        buffer->layout = dlc_layout_permuted(buffer->type.rank, order);
    }
}

/* --- loops --- */

static int has_own_temporaries(const dlc_chooser *c)
{
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        if (c->schedule->plans[s].place == DLC_PLACE_SCRATCH)
            return 1;
    return 0;
}

/* The lane loop takes part in the parallel work: pieces of it, whole vectors, each worth a unit. */
static int64_t lane_tile(const dlc_chooser *c, uint32_t lane, double cycles_per_lane_point)
{
    int64_t width = c->schedule->width, tile = c->extent[lane] / DLC_MIN_UNITS;
    int64_t worth = (int64_t)(DLC_UNIT_CYCLES / (cycles_per_lane_point > 1e-3 ? cycles_per_lane_point : 1e-3));
    if (tile > 4 * worth)
        tile = 4 * worth;
    if (tile < worth)
        tile = worth;
    tile = (tile + width - 1) / width * width;
    int64_t all = (c->extent[lane] + width - 1) / width * width;
    return tile < width ? width : tile > all ? all : tile;
}

static void flatten_units(dlc_chooser *c, double cycles)
{
    dlc_schedule *schedule = c->schedule;
    double units = 1, sure = 1, unit_cycles = cycles;
    uint32_t outer = schedule->loops.n - (schedule->lane != DLC_NO_AXIS) - c->serial.n;
    while (schedule->npar < outer && sure < DLC_MIN_UNITS && unit_cycles > DLC_UNIT_CYCLES) {
        const dlc_ids *axes = &schedule->loops.data[schedule->npar++].axes;
        units *= dlc_choose_points(c, axes);
        sure *= dlc_choose_least(c, axes);
        unit_cycles = cycles / units;
    }
    if (schedule->npar == outer && outer + 1 == schedule->loops.n && !c->serial.n && sure < DLC_MIN_UNITS / 2 &&
        unit_cycles > DLC_GRAIN_CYCLES / 4) {
        double extent = (double)c->extent[schedule->lane];
        int64_t tile = has_own_temporaries(c) ? schedule->width : lane_tile(c, schedule->lane, unit_cycles / extent);
        schedule->loops.data[outer].tile = tile;
        schedule->npar++;
        unit_cycles /= extent / (double)tile;
    }
    schedule->grain = (int64_t)(DLC_GRAIN_CYCLES / (unit_cycles > 1 ? unit_cycles : 1)) + 1;
}

static void make_loops(dlc_chooser *c, uint32_t lane)
{
    dlc_ids outer = {0};
    for (uint32_t r = 0; r < c->roots.n; r++)
        if (c->roots.data[r] != lane)
            dlc_vec_push(c->arena, &outer, c->roots.data[r]);
    dlc_choose_sort(c, &outer);
    for (uint32_t i = 0; i < outer.n; i++)
        dlc_choose_loop(c, &outer.data[i], 1, 1);
    for (uint32_t i = 0; i < c->serial.n; i++) {
        dlc_choose_loop(c, &c->serial.data[i], 1, 1);
        c->schedule->loops.data[c->schedule->loops.n - 1].serial = 1;
    }
    if (lane != DLC_NO_AXIS)
        dlc_choose_loop(c, &lane, 1, c->schedule->width);
}

/* One point at a time is a whole warp's work on CUDA: lanes along any axis do more of it, gathered accesses or not. */
static int wastes_warps(const dlc_chooser *c, const uint32_t *lanes)
{
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        if (lanes[s] != DLC_NO_AXIS)
            return 0;
    return c->target->kind == DLC_TARGET_CUDA;
}

void dlc_choose_lanes(dlc_chooser *c)
{
    dlc_schedule *schedule = c->schedule;
    uint32_t width = dlc_choose_width(c, 4), *lanes = dlc_new_array(c->arena, uint32_t, c->kernel->stages.n);
    double root_cycles = 0, cycles = rows_cycles(c, width, lanes);
    uint32_t lane = best_root_lane(c, width, &root_cycles);
    schedule->width = (uint8_t)width;
    if (lane != DLC_NO_AXIS && (root_cycles <= cycles || wastes_warps(c, lanes))) {
        schedule->lane = lane;
        cycles = root_cycles;
    }
    for (uint32_t s = 0; s < c->kernel->stages.n; s++) {
        dlc_stage_plan *plan = &schedule->plans[s];
        plan->method = DLC_METHOD_LANES;
        plan->unroll = UNROLL;
        plan->partials = 4;
        plan->lane = schedule->lane == DLC_NO_AXIS ? lanes[s] : DLC_NO_AXIS;
        if (plan->lane != DLC_NO_AXIS)
            lay_out_constants(c, plan->lane);
    }
    if (schedule->lane != DLC_NO_AXIS)
        lay_out_constants(c, schedule->lane);
    make_loops(c, schedule->lane);
    flatten_units(c, cycles);
}

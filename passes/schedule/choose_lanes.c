/*
 * Lanes: which axis vectors run along, by counting cycles (choose_cycles.c). Either a root axis serves every stage, or each stage of a
 * row has the axis that is best for it, a reduced one included.
 */
#include "passes/schedule/choose.h"

#include <math.h>

#define SHORT_AXIS 2.0    /* an axis of unknown size by an axis of known size: what vectors along it cost more */

enum {
    LEAST_FITTED = 4, /* lanes of a vector as short as its axis */
    MOST_TURNED_WORK = 32, /* operations at a point of a square */
    MOST_TURNED_LOADS = 8, /* and accesses */
    PARTIALS = 4,     /* vectors a step of a fold along the lanes: an addition takes as many cycles */
    LONG_CHAIN = 4,   /* loads of which each waits for the one before: */
    CHAINS = 2,       /* vectors a step then */
    MOST_DOWN = 8,    /* vectors down rows: lines of a row that follow each other */
    SHORT_BESIDE = 8  /* neighbours side by side of a map of short rows */
};

/* The stage's best axis among its own and its reduced ones; none when nothing beats one point at a time. */
static uint32_t best_own_lane(const dlc_chooser *c, uint32_t s, uint32_t width, double *cycles)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    uint32_t best = DLC_NO_AXIS;
    *cycles = dlc_choose_stage_cycles(c, s, DLC_NO_AXIS, 1);
    for (uint32_t i = 0; i < stage->axes.n + stage->reduce.n; i++) {
        uint32_t axis = i < stage->axes.n ? stage->axes.data[i] : stage->reduce.data[i - stage->axes.n];
        if (dlc_ids_find(&c->roots, axis, NULL) || dlc_ids_find(&c->serial, axis, NULL) || !dlc_goes_by_lanes(c->target, c->kernel, stage, axis))
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
    for (uint32_t t = 0; t < c->nstages; t++)
        for (uint32_t i = 0; i < c->accesses[t].n; i++) {
            const dlc_access_fact *access = &c->accesses[t].data[i];
            if (access->load && access->source == DLC_STAGE_SOURCE(s) && t <= s &&
                dlc_bare_axis(c->kernel->pool, dlc_arg(c->kernel->pool, access->load, at)) != axis)
                return 1;
        }
    return 0;
}

double dlc_choose_own_lanes(const dlc_chooser *c, uint32_t width, uint32_t *lanes)
{
    double total = 0;
    for (uint32_t s = 0; s < c->nstages; s++) {
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

/* Of an axis whose size only the run knows the last vector is seldom full, and the only one may have a single point. */
static double maybe_short(const dlc_chooser *c, uint32_t axis)
{
    return c->target->kind == DLC_TARGET_CPU && !dlc_choose_is_known(c, axis) ? SHORT_AXIS : 1;
}

static uint32_t best_root_lane(const dlc_chooser *c, uint32_t width, double *best_cycles)
{
    uint32_t best = DLC_NO_AXIS;
    for (uint32_t r = 0; r < c->roots.n; r++) {
        double total = 0;
        for (uint32_t s = 0; s < c->nstages; s++)
            total += dlc_choose_stage_cycles(c, s, c->roots.data[r], width) * maybe_short(c, c->roots.data[r]);
        if (best == DLC_NO_AXIS || total < *best_cycles) {
            *best_cycles = total;
            best = c->roots.data[r];
        }
    }
    return best;
}

/* --- loops --- */

static int has_own_temporaries(const dlc_chooser *c)
{
    for (uint32_t s = 0; s < c->nstages; s++)
        if (c->place[s] == DLC_PLACE_SCRATCH)
            return 1;
    return 0;
}

static int is_root(const dlc_lanes_choice *choice, uint32_t axis)
{
    for (uint32_t l = 0; l < choice->loops.n; l++)
        if (choice->loops.data[l].axis == axis)
            return 1;
    return axis == choice->across;
}

/* The most loads in a row each of which says where the next one reads. */
static uint32_t longest_chain(const dlc_chooser *c, uint32_t s)
{
    const dlc_pool *pool = c->kernel->pool;
    const uint8_t *marks = dlc_stage_marks(c->kernel, &c->kernel->stages.data[s], c->arena);
    uint32_t *length = dlc_new_array(c->arena, uint32_t, pool->nodes.n), most = 0;
    for (dlc_expr id = 1; id < pool->nodes.n; id++) { /* operands have lower numbers */
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id])
            continue;
        for (uint32_t i = 0; i < node->nargs; i++)
            if (length[dlc_arg(pool, id, i)] > length[id])
                length[id] = length[dlc_arg(pool, id, i)];
        length[id] += node->op == DLC_EXPR_LOAD;
        most = length[id] > most ? length[id] : most;
    }
    return most;
}

/* Vectors a step of a map along the lane: a chain of loads leaves the processor idle, several side by side do not. */
static uint32_t vectors_of(const dlc_chooser *c, uint32_t s, uint32_t lane, uint32_t width)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    int64_t extent;
    return c->target->kind == DLC_TARGET_CPU && stage->update == DLC_UPDATE_NONE && !stage->reduce.n &&
                   dlc_const_extent(c->kernel, lane, &extent) && extent >= (int64_t)width * CHAINS && longest_chain(c, s) >= LONG_CHAIN
               ? CHAINS
               : 1;
}

/* Folds down rows, and maps of what they give: all there is in the lanes, and all of it in registers. */
static int goes_down(const dlc_chooser *c)
{
    int nlong = 0;
    for (uint32_t s = 0; s < c->nstages; s++) {
        const dlc_stage *stage = &c->kernel->stages.data[s];
        for (uint32_t i = 0; i < stage->axes.n; i++)
            if (!dlc_ids_find(&c->roots, stage->axes.data[i], NULL))
                return 0;
        if (stage->update != DLC_UPDATE_NONE || c->place[s] == DLC_PLACE_SCRATCH || dlc_reduces[stage->combine].naccs > 1)
            return 0;
        for (uint32_t i = 0; stage->reduce.n && i < c->accesses[s].n; i++)
            if (c->accesses[s].data[i].load && DLC_SOURCE_IS_STAGE(c->accesses[s].data[i].source))
                return 0;
        nlong += stage->reduce.n && dlc_choose_first_unrolled(c, &stage->reduce) > 0;
    }
    return nlong > 0;
}

/*
 * Vectors that go down rows side by side: by one at a time each line of a row is met in a pass of its own, rows far apart in memory. As many
 * as leave registers, and units for all workers; what is left over goes one at a time.
 */
static uint32_t vectors_down(const dlc_chooser *c, const dlc_lanes_choice *choice)
{
    int64_t extent;
    if (c->target->kind != DLC_TARGET_CPU || c->target->plugin || choice->lane == DLC_NO_AXIS || choice->across != DLC_NO_AXIS || c->serial.n ||
        !dlc_const_extent(c->kernel, choice->lane, &extent) || !goes_down(c))
        return 1;
    int64_t vectors = extent / choice->width, best = 1, passes = vectors, registers = 1;
    for (uint32_t s = 0; s < c->nstages; s++) {
        int64_t bytes = (int64_t)choice->width * dlc_dtype_bytes(c->kernel->stages.data[s].dtype[0]);
        int64_t own = (bytes + c->target->vector_bytes - 1) / c->target->vector_bytes;
        registers = own > registers ? own : registers;
    }
    double others = dlc_choose_least(c, &c->roots) / (double)extent, workers = c->target->machine->workers;
    for (int64_t n = 2; n <= MOST_DOWN && n * registers * 2 <= c->target->vector_registers; n *= 2)
        if (vectors / n + vectors % n < passes && others * (double)(vectors / n) >= workers) {
            best = n;
            passes = vectors / n + vectors % n;
        }
    return (uint32_t)best;
}

/* The same of a lane loop around all stages, which are all there is in it. */
static uint32_t vectors_of_all(const dlc_chooser *c, const dlc_lanes_choice *choice)
{
    uint32_t down = vectors_down(c, choice);
    if (down > 1)
        return down;
    for (uint32_t s = 0; s < c->nstages; s++) {
        const dlc_stage *stage = &c->kernel->stages.data[s];
        for (uint32_t i = 0; i < stage->axes.n; i++)
            if (!is_root(choice, stage->axes.data[i]))
                return 1;
        if (stage->reduce.n || stage->update != DLC_UPDATE_NONE)
            return 1;
    }
    return choice->across == DLC_NO_AXIS && choice->within == DLC_NO_AXIS ? vectors_of(c, 0, choice->lane, choice->width) : 1;
}

/* An inner loop takes part in the parallel work: pieces of it, whole vectors of `width`, each worth a unit. */
static int64_t piece_of(const dlc_chooser *c, uint32_t axis, int64_t width, double cycles_per_point)
{
    int64_t tile = c->extent[axis] / DLC_MIN_UNITS;
    int64_t worth = (int64_t)(DLC_UNIT_CYCLES / (cycles_per_point > 1e-3 ? cycles_per_point : 1e-3));
    if (tile > 4 * worth)
        tile = 4 * worth;
    if (tile < worth)
        tile = worth;
    tile = (tile + width - 1) / width * width;
    int64_t all = (c->extent[axis] + width - 1) / width * width;
    return tile < width ? width : tile > all ? all : tile;
}

/* What is inside all loops has no lanes and no loops of its own. */
static int is_one_point(const dlc_chooser *c, const dlc_lanes_choice *choice)
{
    for (uint32_t s = 0; s < c->nstages; s++)
        if (choice->lanes[s] != DLC_NO_AXIS || c->kernel->stages.data[s].axes.n > c->roots.n || c->kernel->stages.data[s].reduce.n)
            return 0;
    return choice->lane == DLC_NO_AXIS;
}

/* The map is written out for every point of a square, with lanes masked once more. */
static int is_small(const dlc_chooser *c)
{
    return c->work[0] <= MOST_TURNED_WORK * dlc_choose_points(c, &c->kernel->stages.data[0].axes) && c->accesses[0].n <= MOST_TURNED_LOADS;
}

/* The map's innermost loop has so few points that it is written out: channels of an image, say. */
static int ends_short(const dlc_chooser *c, const dlc_lanes_choice *choice)
{
    if (c->target->kind != DLC_TARGET_CPU || c->target->plugin || c->nstages != 1 || choice->loops.n < 2 || c->serial.n ||
        choice->across != DLC_NO_AXIS || !is_one_point(c, choice) || !is_small(c))
        return 0;
    uint32_t axis = choice->loops.data[choice->loops.n - 1].axis;
    int64_t extent; /* a number: bounds of one that the run makes may meet */
    return c->kernel->stages.data[0].update == DLC_UPDATE_NONE && dlc_expr_is_int(c->kernel->pool, c->kernel->axes.data[axis].extent, &extent) &&
           extent <= SHORT_BESIDE;
}

/* There is usually so little along the axis, and may be more, which threads are to share then: a loop of units costs no more than another. */
static int may_be_more(const dlc_chooser *c, uint32_t axis)
{
    return c->target->kind == DLC_TARGET_CPU && c->is_expected[axis] && !c->is_known[axis];
}

static void flatten_units(dlc_chooser *c, dlc_lanes_choice *choice)
{
    double units = 1, sure = 1, unit_cycles = choice->cycles;
    uint32_t outer = choice->loops.n - (choice->lane != DLC_NO_AXIS) - c->serial.n, written = (uint32_t)ends_short(c, choice);
    while (choice->npar + written < outer && sure < DLC_MIN_UNITS &&
           (unit_cycles > DLC_UNIT_CYCLES || may_be_more(c, choice->loops.data[choice->npar].axis))) {
        const dlc_root_choice *loop = &choice->loops.data[choice->npar++];
        units *= ceil((double)c->extent[loop->axis] / (double)loop->tile);
        sure *= ceil((double)c->least[loop->axis] / (double)loop->tile);
        unit_cycles = choice->cycles / units;
    }
    if (choice->npar == outer && outer + 1 == choice->loops.n && !c->serial.n && sure < DLC_MIN_UNITS / 2 &&
        unit_cycles > DLC_SPLIT_CYCLES) {
        double extent = (double)c->extent[choice->lane];
        int64_t tile = has_own_temporaries(c) ? (int64_t)choice->width : piece_of(c, choice->lane, choice->width, unit_cycles / extent);
        int64_t step = (int64_t)choice->width * vectors_of_all(c, choice);
        choice->loops.data[outer].tile = tile > choice->width ? (tile + step - 1) / step * step : tile;
        choice->npar++;
    }
    dlc_choose_split_scan(c, choice, sure, unit_cycles);
    if (choice->npar && choice->npar + written == choice->loops.n && is_one_point(c, choice)) { /* which is all overhead */
        dlc_root_choice *last = &choice->loops.data[choice->npar - 1];
        last->tile = piece_of(c, last->axis, 1, unit_cycles);
    }
}

/* One point at a time takes all lanes that a unit occupies: lanes along any axis do more of it, gathered accesses or not. */
static int wastes_lanes(const dlc_chooser *c, const uint32_t *lanes)
{
    for (uint32_t s = 0; s < c->nstages; s++)
        if (lanes[s] != DLC_NO_AXIS)
            return 0;
    return c->target->machine->unit_lanes > 1;
}

static double rounded(int64_t extent, uint32_t width)
{
    return (double)((extent + width - 1) / width * width);
}

/* Cycles that pass: few warps leave most of a GPU idle. */
static double passing(const dlc_chooser *c, double cycles, uint32_t lane, uint32_t width)
{
    double units = dlc_choose_points(c, &c->roots), most = c->target->machine->workers;
    if (lane != DLC_NO_AXIS)
        units *= rounded(c->extent[lane], width) / width / (double)c->extent[lane];
    return cycles / (units < 1 ? 1 : units > most ? most : units);
}

/* The kernel is one map, of few operations. */
static int is_small_map(const dlc_chooser *c)
{
    const dlc_stage *stage = &c->kernel->stages.data[0];
    return c->nstages == 1 && stage->combine == DLC_REDUCE_NONE && stage->update == DLC_UPDATE_NONE && is_small(c);
}

/* Of a map, some of whose loads lie along another axis than what it stores. */
static void try_across(dlc_chooser *c, dlc_lanes_choice *choice)
{
    if (!is_small_map(c) || c->serial.n)
        return;
    for (uint32_t r = 0; r < c->roots.n; r++) {
        uint32_t lane = c->roots.data[r];
        c->across = dlc_choose_across(c, 0, 0, &c->roots, lane, choice->width);
        if (c->across == DLC_NO_AXIS)
            continue;
        double cycles = dlc_choose_stage_cycles(c, 0, lane, choice->width);
        if (cycles < choice->cycles) {
            choice->cycles = cycles;
            choice->lane = lane;
            choice->across = c->across;
            choice->tile = choice->width;
        }
    }
    c->across = DLC_NO_AXIS;
}

/* The stage stores in turns what it loads by vectors. */
static int weaves(const dlc_chooser *c, uint32_t s, uint32_t lane, uint32_t woven, uint32_t width)
{
    int is_woven = 0;
    for (uint32_t a = 0; a < c->accesses[s].n; a++) {
        const dlc_access_fact *access = &c->accesses[s].data[a];
        int64_t stride = dlc_choose_stride(c, access->offset, lane);
        if (access->load && stride != 0 && stride != 1)
            return 0;
        is_woven |= dlc_choose_weaves(c, access, lane, woven, width);
    }
    return is_woven;
}

/* Lanes along `lane` of a map whose neighbours in memory are the points of `woven`, a short axis. */
static void try_woven_along(dlc_chooser *c, dlc_lanes_choice *choice, uint32_t lane, uint32_t woven)
{
    if (lane == woven || !weaves(c, 0, lane, woven, choice->width))
        return;
    c->woven = woven;
    double cycles = dlc_choose_stage_cycles(c, 0, lane, choice->width);
    c->woven = DLC_NO_AXIS;
    if (cycles >= choice->cycles)
        return;
    choice->cycles = cycles;
    choice->lane = lane;
    choice->across = woven;
    choice->tile = 0;
}

static void try_woven(dlc_chooser *c, dlc_lanes_choice *choice)
{
    for (uint32_t l = 0; is_small_map(c) && !c->serial.n && l < c->roots.n; l++)
        for (uint32_t w = 0; w < c->roots.n; w++)
            try_woven_along(c, choice, c->roots.data[l], c->roots.data[w]);
}

enum { USUAL_BYTES = 4 }; /* of the elements that vectors are counted in */

/* The widest type that the kernel computes with, besides indices. */
static uint32_t computed_bytes(const dlc_chooser *c)
{
    const dlc_pool *pool = c->kernel->pool;
    dlc_mark mark = dlc_arena_mark(c->arena);
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, pool->nodes.n);
    uint32_t bytes = 1;
    for (uint32_t s = 0; s < c->nstages; s++)
        for (uint32_t i = 0; i < 2; i++)
            marks[c->kernel->stages.data[s].value[i]] = 1;
    for (dlc_expr id = pool->nodes.n - 1; id > 0; id--) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id])
            continue;
        bytes = dlc_dtype_bytes(node->dtype) > bytes ? dlc_dtype_bytes(node->dtype) : bytes;
        for (uint32_t i = 0; i < node->nargs && node->op != DLC_EXPR_LOAD; i++)
            marks[dlc_arg(pool, id, i)] = 1;
    }
    dlc_arena_release(c->arena, mark);
    return bytes < USUAL_BYTES ? bytes : USUAL_BYTES;
}

/* --- neighbours side by side --- */

/* A map of fewer elements in a row than a vector has: loops and guards would take longer than what it computes. */
static int is_short_map(const dlc_chooser *c, const dlc_lanes_choice *choice)
{
    return is_small_map(c) && choice->width * computed_bytes(c) < c->target->vector_bytes;
}

/* What the lanes of a fold read is the same at all of them, or in its buffer: no border is tested. */
static int is_unbordered(const dlc_chooser *c, uint32_t lane)
{
    for (uint32_t s = 0; s < c->nstages; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            dlc_expr load = c->accesses[s].data[i].load, guard = load ? dlc_load_guard(c->kernel->pool, load) : 0;
            if (guard && dlc_expr_uses_axis(c->kernel->pool, guard, lane))
                return 0;
        }
    return 1;
}

/* Windows that neighbours along the axis share; where lanes go along rows and neighbours down them, by taps down the rows innermost. */
static int find_shared(const dlc_chooser *c, dlc_lanes_choice *choice, uint32_t axis, dlc_windows *w)
{
    if (dlc_windows_find(c, choice, axis, w))
        return 1;
    for (uint32_t s = 0; s < c->nstages && is_unbordered(c, choice->lane); s++)
        for (uint32_t i = 0; i + 1 < c->kernel->stages.data[s].reduce.n; i++) {
            choice->inner = c->kernel->stages.data[s].reduce.data[i];
            if (dlc_windows_find(c, choice, axis, w))
                return 1;
        }
    choice->inner = DLC_NO_AXIS;
    return 0;
}

/* Those along the innermost of the loops around everything, but the lanes'. */
static void try_beside(const dlc_chooser *c, dlc_lanes_choice *choice, uint32_t axis)
{
    dlc_windows w;
    if (c->target->kind != DLC_TARGET_CPU || choice->lane == DLC_NO_AXIS || choice->across != DLC_NO_AXIS || c->serial.n)
        return;
    choice->tile = 1;
    if (find_shared(c, choice, axis, &w))
        choice->tile = dlc_windows_tile(c, &w, axis);
    else if (dlc_choose_is_known(c, axis) && c->extent[choice->lane] == choice->width && c->extent[axis] >= SHORT_BESIDE && is_short_map(c, choice))
        choice->tile = SHORT_BESIDE;
    choice->across = choice->tile > 1 ? axis : DLC_NO_AXIS;
}

/* Windows overlap from row to row: the next row of a tile finds in L1 what the one before has read of it, that of a whole row does not. */
static void put_tile_around(const dlc_chooser *c, const dlc_lanes_choice *choice, dlc_ids *outer)
{
    uint32_t last = outer->n - 1, axis = outer->data[last];
    dlc_windows w;
    if (last && axis == choice->across && choice->inner == DLC_NO_AXIS && dlc_windows_find(c, choice, axis, &w) && !dlc_windows_are_far(c, &w)) {
        outer->data[last] = outer->data[last - 1];
        outer->data[last - 1] = axis;
    }
}

static void find_loops(dlc_chooser *c, dlc_lanes_choice *choice)
{
    dlc_ids outer = {0};
    for (uint32_t r = 0; r < c->roots.n; r++)
        if (c->roots.data[r] != choice->lane)
            dlc_vec_push(c->arena, &outer, c->roots.data[r]);
    dlc_choose_sort(c, &outer);
    if (outer.n)
        try_beside(c, choice, outer.data[outer.n - 1]);
    if (outer.n)
        put_tile_around(c, choice, &outer);
    int64_t within = 1;
    if (choice->across == DLC_NO_AXIS)
        choice->within = dlc_choose_within(c, choice->lane, &outer, &within);
    for (uint32_t i = 0; i < outer.n; i++) {
        if (outer.data[i] == choice->across && !choice->tile)
            continue;
        int64_t tile = outer.data[i] == choice->across ? choice->tile : outer.data[i] == choice->within ? within : 1;
        dlc_vec_push(c->arena, &choice->loops, ((dlc_root_choice){outer.data[i], tile, 0}));
    }
    for (uint32_t i = 0; i < c->serial.n; i++)
        dlc_vec_push(c->arena, &choice->loops, ((dlc_root_choice){c->serial.data[i], 1, 1}));
    if (choice->lane != DLC_NO_AXIS)
        dlc_vec_push(c->arena, &choice->loops, ((dlc_root_choice){choice->lane, choice->width, 0}));
}

/* Many lanes of few bytes: nothing is an index or a condition for each of them, which would be of 8 bytes, and few are empty. */
static int suits_narrow(const dlc_chooser *c, const dlc_lanes_choice *choice)
{
    const dlc_pool *pool = c->kernel->pool;
    if (choice->lane == DLC_NO_AXIS || !dlc_choose_is_known(c, choice->lane) || c->extent[choice->lane] < (int64_t)choice->width)
        return 0;
    for (uint32_t s = 0; s < c->nstages; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            int64_t stride = dlc_choose_stride(c, access->offset, choice->lane);
            dlc_expr guard = access->load ? dlc_load_guard(pool, access->load) : 0;
            int is_table = access->load && dlc_looked_up(c->target, c->kernel, access->load);
            if ((stride != 0 && stride != 1 && !is_table) || (guard && dlc_expr_uses_axis(pool, guard, choice->lane)))
                return 0;
        }
    return 1;
}

/* A vector as long as its axis, where that is a power of two: stores under a mask take longer, and of neighbours they meet. */
static void fit_width(const dlc_chooser *c, dlc_lanes_choice *choice)
{
    int64_t extent = choice->lane == DLC_NO_AXIS ? 0 : c->extent[choice->lane];
    if (c->target->kind == DLC_TARGET_CPU && c->nstages == 1 && extent >= LEAST_FITTED && extent < choice->width &&
        !(extent & (extent - 1)) && dlc_choose_is_known(c, choice->lane))
        choice->width = (uint32_t)extent;
}

static void choose_lanes(dlc_chooser *c, dlc_lanes_choice *choice, uint32_t bytes)
{
    double root_cycles = 0;
    *choice = (dlc_lanes_choice){.lane = DLC_NO_AXIS,
                                 .inner = DLC_NO_AXIS,
                                 .across = DLC_NO_AXIS,
                                 .within = DLC_NO_AXIS,
                                 .width = dlc_choose_width(c, bytes)};
    choice->lanes = dlc_new_array(c->arena, uint32_t, c->nstages);
    c->lane = DLC_NO_AXIS;
    choice->cycles = dlc_choose_own_lanes(c, choice->width, choice->lanes);
    uint32_t lane = best_root_lane(c, choice->width, &root_cycles);
    if (lane != DLC_NO_AXIS && (passing(c, root_cycles, lane, choice->width) <=
                                    passing(c, choice->cycles, DLC_NO_AXIS, choice->width) ||
                                wastes_lanes(c, choice->lanes))) {
        choice->lane = lane;
        choice->cycles = root_cycles;
    }
    try_across(c, choice);
    try_woven(c, choice);
    if (choice->across == DLC_NO_AXIS)
        fit_width(c, choice);
    find_loops(c, choice);
}

void dlc_choose_lanes_facts(dlc_chooser *c, dlc_lanes_choice *choice)
{
    uint32_t bytes = c->target->kind == DLC_TARGET_CPU ? computed_bytes(c) : USUAL_BYTES;
    choose_lanes(c, choice, bytes);
    if (bytes < USUAL_BYTES && !suits_narrow(c, choice))
        choose_lanes(c, choice, USUAL_BYTES);
}

/* --- the tree --- */

uint32_t dlc_choose_open_across(dlc_chooser *c, uint32_t across)
{
    if (across != DLC_NO_AXIS)
        dlc_schedule_open(c->schedule, DLC_LOOP_UNROLL, across, 1);
    return across != DLC_NO_AXIS;
}

/* Of the stage's own loops the innermost but the lanes' goes by tiles of neighbours side by side: its axis, or DLC_NO_AXIS. */
static uint32_t beside_in(const dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s, uint32_t lane, int64_t *tile)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    uint32_t axis = DLC_NO_AXIS;
    dlc_windows w = {.inner = DLC_NO_AXIS};
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!is_root(choice, stage->axes.data[i]) && stage->axes.data[i] != lane)
            axis = stage->axes.data[i];
    if (c->target->kind != DLC_TARGET_CPU || axis == DLC_NO_AXIS || !dlc_choose_is_known(c, axis) || !stage->reduce.n ||
        (choice->lane == DLC_NO_AXIS && lane == DLC_NO_AXIS) || dlc_ids_find(&stage->reduce, lane, NULL) ||
        is_serial(c, s, axis) || !dlc_windows_add(c, s, axis, lane, choice->width, &w))
        return DLC_NO_AXIS;
    *tile = dlc_windows_tile(c, &w, axis);
    return *tile > 1 ? axis : DLC_NO_AXIS;
}

uint32_t dlc_choose_partials(const dlc_chooser *c, uint32_t lane, uint32_t width)
{
    int64_t extent;
    return dlc_const_extent(c->kernel, lane, &extent) && extent < (int64_t)width * PARTIALS ? 1 : PARTIALS;
}

/*
 * The next stage folds a row that this one computes and keeps: it takes each vector where it is computed, and the row is not read once
 * more for it. On a CPU; what a condition along the row guards is computed by a loop of its own, which is cut where the condition changes.
 */
static int folds_at_once(const dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s)
{
    const dlc_stage *map = &c->kernel->stages.data[s], *fold = map + 1;
    uint32_t lane = choice->lanes[s];
    if (c->target->kind != DLC_TARGET_CPU || choice->lane != DLC_NO_AXIS || s + 1 >= c->nstages || lane == DLC_NO_AXIS ||
        choice->lanes[s + 1] != lane || c->place[s] != DLC_PLACE_SCRATCH || map->combine != DLC_REDUCE_NONE || map->update != DLC_UPDATE_NONE ||
        fold->update != DLC_UPDATE_NONE || fold->reduce.n != 1 || fold->reduce.data[0] != lane)
        return 0;
    for (uint32_t i = 0; i < map->axes.n; i++)
        if (map->axes.data[i] != lane && !is_root(choice, map->axes.data[i]))
            return 0;
    for (uint32_t i = 0; i < fold->axes.n; i++)
        if (!is_root(choice, fold->axes.data[i]))
            return 0;
    int reads_it = 0;
    for (uint32_t t = s; t < s + 2; t++)
        for (uint32_t i = 0; i < c->accesses[t].n; i++) {
            const dlc_access_fact *access = &c->accesses[t].data[i];
            dlc_expr guard = access->load ? dlc_load_guard(c->kernel->pool, access->load) : 0;
            if (guard && dlc_expr_uses_axis(c->kernel->pool, guard, lane))
                return 0;
            if (!access->load || access->source != DLC_STAGE_SOURCE(s))
                continue;
            reads_it = 1;
            for (uint32_t d = 0; d < map->axes.n; d++) /* at the point itself */
                if (dlc_bare_axis(c->kernel->pool, dlc_arg(c->kernel->pool, access->load, d)) != map->axes.data[d])
                    return 0;
        }
    return reads_it;
}

/* Two folds of the same elements, which are read once for both. */
static int folds_beside(const dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s)
{
    const dlc_stage *fold = &c->kernel->stages.data[s], *next = fold + 1;
    uint32_t lane = choice->lanes[s];
    if (c->target->kind != DLC_TARGET_CPU || choice->lane != DLC_NO_AXIS || s + 1 >= c->nstages || lane == DLC_NO_AXIS ||
        choice->lanes[s + 1] != lane || fold->update != DLC_UPDATE_NONE || next->update != DLC_UPDATE_NONE || fold->reduce.n != 1 ||
        next->reduce.n != 1 || fold->reduce.data[0] != lane || next->reduce.data[0] != lane)
        return 0;
    for (uint32_t t = s; t < s + 2; t++) {
        for (uint32_t i = 0; i < c->kernel->stages.data[t].axes.n; i++)
            if (!is_root(choice, c->kernel->stages.data[t].axes.data[i]))
                return 0;
        for (uint32_t i = 0; i < c->accesses[t].n; i++)
            if (c->accesses[t].data[i].load && DLC_SOURCE_IS_STAGE(c->accesses[t].data[i].source))
                return 0;
    }
    return 1;
}

static void build_both(dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s)
{
    uint32_t lane = choice->lanes[s];
    dlc_schedule_open_lane(c->schedule, lane, choice->width, dlc_choose_partials(c, lane, choice->width));
    dlc_schedule_leaf(c->schedule, s, c->place[s]);
    dlc_schedule_leaf(c->schedule, s + 1, c->place[s + 1]);
    dlc_schedule_close(c->schedule, 1);
}

static void build_stage(dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s, int is_alone)
{
    dlc_schedule *schedule = c->schedule;
    const dlc_stage *stage = &c->kernel->stages.data[s];
    uint32_t lane = choice->lane == DLC_NO_AXIS ? choice->lanes[s] : DLC_NO_AXIS, n = 0;
    dlc_own_dot own = dlc_choose_lanes_own_dot(c, choice, s);
    int folds_lanes = dlc_ids_find(&stage->reduce, lane, NULL);
    int64_t tile = 1;
    uint32_t beside = is_alone ? beside_in(c, choice, s, lane, &tile) : DLC_NO_AXIS;
    if (beside != DLC_NO_AXIS) { /* by strips: rows of one that windows share are still in L1 for the next row of results */
        dlc_schedule_open(schedule, DLC_LOOP_FOR, beside, tile);
        n++;
    }
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!is_root(choice, stage->axes.data[i]) && stage->axes.data[i] != lane && stage->axes.data[i] != beside) {
            dlc_schedule_open(schedule, DLC_LOOP_FOR, stage->axes.data[i], 1);
            n++;
        }
    if (lane != DLC_NO_AXIS && !folds_lanes) {
        dlc_schedule_open_lane(schedule, lane, choice->width, vectors_of(c, s, lane, choice->width));
        n++;
    }
    n += dlc_choose_open_across(c, beside);
    if (beside == DLC_NO_AXIS) /* they may be around all stages */
        tile = choice->tile;
    int by_rows = own.row == DLC_DOT_NONE && dlc_windows_are_crowded(c, choice, s, beside == DLC_NO_AXIS ? choice->across : beside, tile);
    n += dlc_choose_open_reduced(c, s, lane, choice->inner, by_rows, &own);
    if (folds_lanes) {
        dlc_schedule_open_lane(schedule, lane, choice->width, dlc_choose_partials(c, lane, choice->width));
        n++;
    }
    dlc_choose_fold_leaf(c, s, &own);
    dlc_schedule_close(schedule, n);
}

void dlc_choose_lanes_stage(dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s)
{
    build_stage(c, choice, s, 0);
}

void dlc_choose_lanes_build(dlc_chooser *c, const dlc_lanes_choice *choice)
{
    dlc_schedule *schedule = c->schedule;
    uint32_t n = 0, down = vectors_down(c, choice);
    if (down > 1) /* a step's, or a unit's where it has fewer */
        c->lanes_block = choice->npar == choice->loops.n && choice->loops.data[choice->npar - 1].tile < (int64_t)down * choice->width
                             ? choice->loops.data[choice->npar - 1].tile
                             : (int64_t)down * choice->width;
    for (uint32_t s = 0; s < c->nstages; s++) {
        uint32_t lane = choice->lane == DLC_NO_AXIS ? choice->lanes[s] : choice->lane;
        dlc_own_dot own = dlc_choose_lanes_own_dot(c, choice, s);
        if (lane != DLC_NO_AXIS)
            dlc_choose_lay_out_constants(c, s, lane, &own);
    }
    c->lanes_block = 0;
    for (uint32_t l = 0; l < choice->loops.n; l++) {
        const dlc_root_choice *loop = &choice->loops.data[l];
        int is_lane = loop->axis == choice->lane && l + 1 == choice->loops.n;
        int is_written = l + 1 == choice->loops.n && ends_short(c, choice);
        if (l < choice->npar || !is_lane) {
            dlc_schedule_open(schedule, l < choice->npar ? DLC_LOOP_PAR : is_written ? DLC_LOOP_UNROLL : DLC_LOOP_FOR, loop->axis, loop->tile);
            n++;
        }
        if (is_lane) {
            dlc_schedule_open_lane(schedule, loop->axis, choice->width, vectors_of_all(c, choice));
            n++;
        } else if (loop->tile > 1 && is_one_point(c, choice)) {
            dlc_schedule_open(schedule, DLC_LOOP_FOR, loop->axis, 1);
            n++;
        }
    }
    n += dlc_choose_open_across(c, choice->across);
    if (choice->within != DLC_NO_AXIS) {
        dlc_schedule_open(schedule, DLC_LOOP_FOR, choice->within, 1);
        n++;
    }
    for (uint32_t s = 0; s < c->nstages; s++)
        if (folds_at_once(c, choice, s) || folds_beside(c, choice, s)) {
            build_both(c, choice, s);
            s++;
        } else {
            build_stage(c, choice, s, choice->across == DLC_NO_AXIS);
        }
    dlc_schedule_close(schedule, n);
}

uint32_t dlc_choose_lanes(dlc_chooser *c)
{
    dlc_lanes_choice choice;
    dlc_choose_lanes_facts(c, &choice);
    flatten_units(c, &choice);
    dlc_choose_lanes_build(c, &choice);
    return choice.lane;
}

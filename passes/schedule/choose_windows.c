/*
 * Windows of neighbours along an axis (codegen/jam.c): how many are computed side by side, and how their folds are written out.
 */
#include "passes/schedule/choose.h"

#define NOT_HIDDEN 0.1    /* of loads beside multiplications */
#define FEWER_WORTH 0.9   /* of the time of more neighbours side by side */

enum {
    LEAST_FAR = 4,       /* neighbours side by side, whatever they span */
    FAR_SPAN = 4096,     /* bytes of a row that a tile spans at most of what lies in L3: L2's prefetcher stays within a page */
    MOST_BESIDE = 16, /* neighbours side by side: their sums hide each other's latency, and weights are read once for all of them */
    PARTS_AT_ONCE = 4, /* of columns, by which neighbours multiply: 56x56 in groups of 8, stride 2, 7 side by side take .86 of the time of 10 */
    MOST_WRITTEN = 1024 /* operations of them all that are written out */
};

/* The load's window moves by *step along the axis and lies along the reduced one: neighbours read alike. */
static int is_shared(const dlc_chooser *c, dlc_expr load, uint32_t axis, uint32_t reduced, int64_t *step)
{
    const dlc_kernel *kernel = c->kernel;
    dlc_expr coefficient, rest;
    int64_t tap;
    for (uint32_t d = 0; d < dlc_load_rank(kernel->pool, load); d++) {
        dlc_expr index = dlc_arg(kernel->pool, load, d);
        if (dlc_expr_uses_axis(kernel->pool, index, axis) && dlc_expr_linear(kernel->pool, index, axis, &coefficient, &rest) &&
            dlc_expr_is_int(kernel->pool, coefficient, step) && dlc_expr_linear(kernel->pool, rest, reduced, &coefficient, &rest) &&
            dlc_expr_is_int(kernel->pool, coefficient, &tap) && tap > 0 && *step > 0 && *step % tap == 0 &&
            *step < tap * c->extent[reduced]) {
            *step /= tap;
            return 1;
        }
    }
    return 0;
}

/* Lanes in turns of a few read the same element, which is another one at each step of a reduced axis that is written out, too. */
static int reads_parts(const dlc_chooser *c, dlc_expr load, uint32_t lane, const dlc_ids *reduce, uint32_t first)
{
    dlc_pool *pool = c->kernel->pool;
    dlc_expr coefficient, rest;
    for (uint32_t d = 0; lane != DLC_NO_AXIS && d < dlc_load_rank(pool, load); d++)
        for (uint32_t i = first; i + 1 < reduce->n && !dlc_expr_linear(pool, dlc_arg(pool, load, d), lane, &coefficient, &rest); i++)
            if (dlc_expr_uses_axis(pool, dlc_arg(pool, load, d), reduce->data[i]))
                return 1;
    return 0;
}

/* All that the buffer of the load has; 0: a stage makes it, or its size is not known. */
static int64_t bytes_behind(const dlc_chooser *c, dlc_expr load)
{
    dlc_source source = dlc_node_of(c->kernel->pool, load)->imm.id;
    int64_t n;
    if (DLC_SOURCE_IS_STAGE(source) || !dlc_type_elems(c->kernel->pool, &c->kernel->buffers.data[source].type, &n))
        return 0;
    return n * dlc_dtype_bytes(c->kernel->buffers.data[source].type.dtype);
}

int dlc_windows_are_far(const dlc_chooser *c, const dlc_windows *w)
{
    return w->image_bytes > c->target->l2_bytes && dlc_has_slow_l3(c->target);
}

/* A fold over windows that neighbours along the axis share: it adds to what a point takes. */
int dlc_windows_add(const dlc_chooser *c, uint32_t s, uint32_t axis, uint32_t lane, uint32_t width, dlc_windows *w)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    const dlc_ids reduce = dlc_choose_reduced(c, s, w->inner);
    uint32_t last = reduce.n - 1, first = dlc_choose_first_unrolled(c, &reduce);
    int64_t step = 0, taps = 1, size = (int64_t)width * dlc_dtype_bytes(stage->dtype[0]);
    dlc_expr shared = 0;
    if (first > last)
        return 0;
    for (uint32_t i = 0; i < c->accesses[s].n; i++)
        if (c->accesses[s].data[i].load && is_shared(c, c->accesses[s].data[i].load, axis, reduce.data[last], &step))
            shared = c->accesses[s].data[i].load;
    if (!shared)
        return 0;
    for (uint32_t i = first; i <= last; i++)
        taps *= c->extent[reduce.data[i]];
    int64_t vectors = (size + c->target->vector_bytes - 1) / c->target->vector_bytes;
    w->step = step;
    w->has_parts |= reads_parts(c, shared, lane, &reduce, first);
    w->rows = 1;
    for (uint32_t i = 0; i < last; i++)
        w->rows *= c->extent[reduce.data[i]];
    w->bytes = (int64_t)width * dlc_dtype_bytes((dlc_dtype)dlc_node_of(c->kernel->pool, shared)->dtype);
    w->column_bytes = lane == DLC_NO_AXIS ? w->bytes : w->bytes / width * c->extent[lane];
    w->image_bytes = bytes_behind(c, shared);
    w->taps = c->extent[reduce.data[last]] > w->taps ? c->extent[reduce.data[last]] : w->taps;
    w->vectors = vectors > w->vectors ? vectors : w->vectors;
    w->sums += dlc_reduces[stage->combine].naccs;
    w->written += taps;
    return 1;
}

/* Folds over such windows, and maps of them: all there is in the kernel. */
int dlc_windows_find(const dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t axis, dlc_windows *w)
{
    *w = (dlc_windows){.inner = choice->inner};
    for (uint32_t s = 0; s < c->nstages; s++) {
        const dlc_stage *stage = &c->kernel->stages.data[s];
        double points = dlc_choose_points(c, &stage->axes);
        for (uint32_t i = 0; i < stage->axes.n; i++)
            if (!dlc_ids_find(&c->roots, stage->axes.data[i], NULL))
                return 0;
        if (stage->update != DLC_UPDATE_NONE || (c->is_read[s] && c->place[s] != DLC_PLACE_REG))
            return 0;
        if (stage->reduce.n && !dlc_windows_add(c, s, axis, choice->lane, choice->width, w))
            return 0;
        w->written += stage->reduce.n ? 0 : (int64_t)(c->work[s] / (points > 0 ? points : 1));
    }
    return w->sums > 0;
}

/* Vectors that tiles of `tile` points read of a row of taps and weights, what is left over included. */
static int64_t reads_of_tiles(const dlc_windows *w, int64_t extent, int64_t tile)
{
    int64_t rest = extent % tile;
    return extent / tile * ((tile - 1) * w->step + 2 * w->taps) + (rest ? (rest - 1) * w->step + 2 * w->taps + 1 : 0);
}

/* Cycles of a point: it multiplies, reads L1, and waits for the rows that L1 has not: all of a window's, or where those of a tile stay
 * there for the next row of results, a step of them. */
static double cycles_beside(const dlc_chooser *c, const dlc_windows *w, int64_t extent, int64_t tile)
{
    const dlc_machine *machine = c->target->machine;
    double rows = (double)w->rows, columns = (double)((tile - 1) * w->step + w->taps), vectors = (double)w->vectors;
    double multiplying = rows * (double)w->taps * vectors / 2;
    double reading = rows * (double)reads_of_tiles(w, extent, tile) / (double)extent * vectors / 2;
    double stay = rows * columns * (double)w->column_bytes <= c->target->l1_bytes * 3 / 4 && w->step < w->rows ? (double)w->step : rows;
    double waiting = stay * columns / (double)tile * (double)w->bytes * machine->cycles_per_us / machine->near_bytes_per_us;
    return dlc_estimate_beside(dlc_estimate_beside(multiplying, reading), waiting) + reading * NOT_HIDDEN;
}

/* Whether the accumulators leave registers for the taps of one window and what they multiply: one column, or parts of those that stay. */
static int fits_registers(const dlc_chooser *c, const dlc_windows *w, int64_t tile)
{
    int64_t columns = w->has_parts ? (tile - 1) * w->step + w->taps + PARTS_AT_ONCE : 1;
    return tile * w->sums + w->taps + columns <= c->target->vector_registers / w->vectors;
}

/* Neighbours along the axis that are computed side by side (codegen/jam.c): as many as registers are there for; of a window's weights
 * some come from L1 then (7x7 on 16 registers: 7 side by side take 0.75 of the time of 4). Fewer, where their rows stay in L1 and
 * that of more would not. Where only the run knows how many there are, few: what a tile leaves over goes by points. 1: none. */
int64_t dlc_windows_tile(const dlc_chooser *c, const dlc_windows *w, uint32_t axis)
{
    enum { MOST_OF_UNKNOWN = 8 };
    int64_t extent = c->extent[axis], most = 1, limit = dlc_choose_is_known(c, axis) ? MOST_BESIDE : MOST_OF_UNKNOWN;
    if (dlc_windows_are_far(c, w)) {
        int64_t span = (FAR_SPAN / w->column_bytes - w->taps) / w->step + 1;
        limit = limit < span ? limit : span < LEAST_FAR ? LEAST_FAR : span;
    }
    for (int64_t tile = 2; tile <= limit && tile <= extent; tile++)
        if (fits_registers(c, w, tile) && tile * w->written <= MOST_WRITTEN &&
            reads_of_tiles(w, extent, tile) <= reads_of_tiles(w, extent, most))
            most = tile;
    int64_t best = most;
    for (int64_t tile = most; tile > 1; tile--)
        if (cycles_beside(c, w, extent, tile) < FEWER_WORTH * cycles_beside(c, w, extent, best))
            best = tile;
    return best;
}

/* Weights, which do not move along the axis, are the same in each iteration of the loop around: other rows, or lanes that they do not vary along. */
static int stay_weights(const dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s, uint32_t axis)
{
    for (uint32_t i = 0; i < c->accesses[s].n && axis == choice->across; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        if (access->load && dlc_choose_stride(c, access->offset, axis) == 0 && dlc_choose_stride(c, access->offset, choice->lane) != 0)
            return 0;
    }
    return 1;
}

/*
 * Sums of neighbours, the columns that they share and a row's weights do not fit the registers, and weights stay the same in the loop around: LLVM
 * loads all of a window that is written out before it, and has no registers for them. By rows it does not. (5x5 windows by 14 of 32 registers on
 * Emerald Rapids, with all rows of an image inside of the lanes: in steps of 2 .75 of the time, of 1 .85; on its AVX2 .88 and .95; where lanes bring
 * other weights 1.13. Of three taps the loop takes more than it saves.)
 */
int dlc_windows_are_crowded(const dlc_chooser *c, const dlc_lanes_choice *choice, uint32_t s, uint32_t axis, int64_t tile)
{
    enum { LEFT_OVER = 3, SHORT = 3 };
    dlc_windows w = {.inner = choice->inner};
    uint32_t lane = choice->lane == DLC_NO_AXIS ? choice->lanes[s] : choice->lane;
    if (axis == DLC_NO_AXIS || tile < 2 || !c->kernel->stages.data[s].reduce.n || !dlc_windows_add(c, s, axis, lane, choice->width, &w))
        return 0;
    if (w.taps <= SHORT || w.has_parts || !stay_weights(c, choice, s, axis))
        return 0;
    int64_t columns = (tile - 1) * w.step + w.taps, all = c->extent[axis] * w.step;
    return (tile * w.sums + (columns < all ? columns : all) + w.taps) * w.vectors > c->target->vector_registers + LEFT_OVER;
}

/*
 * Schedules for CUDA. A contraction is a tile per block of 256 threads, and so is a map whose
 * loads cross its store (choose_transpose.c); everything else is lanes of a warp, chosen by the
 * same count of cycles as on CPUs, with every independent loop parallel: a GPU wants thousands of
 * units where a CPU wants dozens.
 */
#include "passes/schedule/choose.h"

enum {
    LEAST_WORK = 8192,    /* multiply-adds below which a warp's lanes do as well */
    LEAST_SIDE = 8,       /* rows or columns below which half of the smallest tile is wasted */
    MULTIPROCESSORS = 64, /* of a card of medium size: tiles are made small enough to occupy them */
    SLICE_CYCLES = 2, /* of a step along K besides multiplying: addresses, waiting for the others */
    MANY_UNITS = 16384, /* units from which a warp takes several vectors */
    VECTORS = 4,
    ACCESS_BYTES = 16, /* the widest access of a thread */
    MOST_PACK = 4,
    PACKED_UNITS = 1024 /* warps that keep a card busy: fewer get no more work each */
};

typedef struct {
    dlc_chooser *c;
    dlc_contraction form;
    double rows, columns, depth, batches;
    int64_t m, n;
    uint8_t swap;
} dot;

/* --- contractions --- */

static void exchange(dot *d)
{
    dlc_contraction before = d->form;
    d->form.a = before.b, d->form.b = before.a;
    d->form.m = before.n, d->form.n = before.m;
    d->swap = !d->swap;
}

static int is_stored_along(const dot *d, const dlc_ids *axes)
{
    const dlc_chooser *c = d->c;
    for (uint32_t s = 0; axes->n && s < c->kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++)
            if (!c->accesses[s].data[i].load &&
                dlc_choose_stride(c, c->accesses[s].data[i].offset, axes->data[axes->n - 1]) == 1)
                return 1;
    return 0;
}

/* Neighbouring threads are neighbouring columns: n is what is contiguous in the result. */
static void choose_roles(dot *d)
{
    dlc_choose_sort(d->c, &d->form.m);
    dlc_choose_sort(d->c, &d->form.n);
    dlc_choose_sort(d->c, &d->form.batch);
    if (!is_stored_along(d, &d->form.n) && is_stored_along(d, &d->form.m))
        exchange(d);
    d->rows = dlc_choose_points(d->c, &d->form.m);
    d->columns = dlc_choose_points(d->c, &d->form.n);
    d->depth = dlc_choose_points(d->c, &d->form.k);
    d->batches = dlc_choose_points(d->c, &d->form.batch);
}

static double tiles(double size, int64_t tile)
{
    return (double)(((int64_t)size + tile - 1) / tile);
}

/* Rounds of blocks, times a step of a thread: its products, and what it reads of the slices for
 * them. */
static double tile_cycles(const dot *d, int64_t m, int64_t n)
{
    double blocks = tiles(d->rows, m) * tiles(d->columns, n) * d->batches;
    double a = (double)(m / DLC_CUDA_SIDE), b = (double)(n / DLC_CUDA_SIDE);
    return tiles(blocks, MULTIPROCESSORS) * (a * b + (a + b) / 2 + SLICE_CYCLES);
}

static void choose_tile(dot *d)
{
    static const int64_t sides[] = {DLC_CUDA_SIDE, 2 * DLC_CUDA_SIDE, 4 * DLC_CUDA_SIDE};
    double least = 0;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t j = 0; j < 3; j++) {
            double cycles = tile_cycles(d, sides[i], sides[j]);
            if (i + j && cycles > least)
                continue;
            least = cycles;
            d->m = sides[i];
            d->n = sides[j];
        }
}

static void fill_plan(dot *d)
{
    dlc_chooser *c = d->c;
    dlc_schedule *schedule = c->schedule;
    dlc_stage_plan *plan = &schedule->plans[0];
    schedule->width = (uint8_t)dlc_choose_width(c, 4);
    plan->method = DLC_METHOD_DOT;
    plan->dot = DLC_DOT_FMA;
    plan->m = (uint16_t)d->m;
    plan->n = (uint16_t)d->n;
    plan->swap = d->swap;
    for (uint32_t i = 0; i < d->form.batch.n; i++)
        dlc_choose_loop(c, &d->form.batch.data[i], 1, 1);
    dlc_choose_loop(c, d->form.m.data, d->form.m.n, d->m);
    dlc_choose_loop(c, d->form.n.data, d->form.n.n, d->n);
    schedule->npar = (uint8_t)schedule->loops.n;
}

static int choose_dot(dlc_chooser *c)
{
    dot d = {.c = c};
    if (!dlc_choose_contraction(c, &d.form) || !d.form.m.n || !d.form.n.n)
        return 0;
    choose_roles(&d);
    if (d.rows < LEAST_SIDE || d.columns < LEAST_SIDE || d.rows * d.columns * d.depth < LEAST_WORK)
        return 0;
    dlc_choose_order_reduction(c, &c->kernel->stages.data[0], d.form.a);
    choose_tile(&d);
    fill_plan(&d);
    return 1;
}

/* --- lanes --- */

static int has_temporaries(const dlc_chooser *c)
{
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        if (c->schedule->plans[s].place == DLC_PLACE_SCRATCH)
            return 1;
    return 0;
}

/* Lane l of a pack has elements pack * l …: an access is one if neighbours lie together and the pack starts at its own
 * multiple. Anything else would be scattered further than without packs. */
static int is_packed(dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, int64_t pack)
{
    dlc_pool *pool = c->kernel->pool;
    dlc_ranges ranges = dlc_kernel_ranges(c->kernel);
    dlc_expr coefficient, rest, guard = access->load ? dlc_load_guard(pool, access->load) : 0;
    if (guard && dlc_expr_uses_axis(pool, guard, lane))
        return 0;
    if (access->load && (dlc_node_of(pool, access->load)->flags & DLC_LOAD_CHECKED) &&
        dlc_expr_uses_axis(pool, access->offset, lane))
        return 0;
    int64_t stride = dlc_choose_stride(c, access->offset, lane);
    if (stride == 0 || DLC_SOURCE_IS_STAGE(access->source))
        return stride != DLC_ODD_STRIDE;
    return stride == 1 && dlc_expr_linear(pool, access->offset, lane, &coefficient, &rest) &&
           dlc_expr_multiple(pool, rest, &ranges) % pack == 0;
}

/* The widest pack that the stage's accesses allow. */
static int64_t stage_pack(dlc_chooser *c, uint32_t s, uint32_t lane, int64_t pack)
{
    int64_t extent;
    if (lane == DLC_NO_AXIS)
        return pack;
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        dlc_source source = access->source;
        int64_t bytes = dlc_dtype_bytes(DLC_SOURCE_IS_STAGE(source)
                                            ? c->kernel->stages.data[DLC_SOURCE_INDEX(source)].dtype[0]
                                            : c->kernel->buffers.data[source].type.dtype);
        while (pack > 1 && (pack * bytes > ACCESS_BYTES || !is_packed(c, access, lane, pack)))
            pack /= 2;
    }
    int is_known = dlc_expr_is_int(c->kernel->pool, c->kernel->axes.data[lane].extent, &extent);
    while (pack > 1 && (!is_known || extent % pack || extent < pack * c->schedule->width))
        pack /= 2;
    return pack;
}

static double units_of(const dlc_chooser *c)
{
    const dlc_schedule *schedule = c->schedule;
    double units = 1;
    for (uint32_t l = 0; l < schedule->loops.n; l++)
        units *= dlc_choose_points(c, &schedule->loops.data[l].axes);
    return units;
}

/* Vectors become several to a thread where all of them can, and enough threads are left. */
static void choose_pack(dlc_chooser *c)
{
    dlc_schedule *schedule = c->schedule;
    int64_t pack = 1;
    int has_lane = schedule->lane != DLC_NO_AXIS;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        if (has_lane || schedule->plans[s].lane != DLC_NO_AXIS)
            pack = MOST_PACK;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        pack = stage_pack(c, s, has_lane ? schedule->lane : schedule->plans[s].lane, pack);
    while (pack > 1 && has_lane && units_of(c) < (double)(PACKED_UNITS * schedule->width * pack))
        pack /= 2;
    if (c->serial.n || pack == 1)
        return;
    schedule->pack = (uint8_t)pack;
    schedule->width = (uint8_t)(schedule->width * pack);
    if (has_lane)
        schedule->loops.data[schedule->loops.n - 1].tile = schedule->width;
}

/* All loops are parallel, the pieces of the lane axis too; what recurs stays in order within its
 * unit. */
static void spread(dlc_chooser *c)
{
    dlc_schedule *schedule = c->schedule;
    double units = 1;
    schedule->npar = 0;
    while (schedule->npar < schedule->loops.n && !schedule->loops.data[schedule->npar].serial) {
        dlc_loop *loop = &schedule->loops.data[schedule->npar++];
        if (schedule->lane != DLC_NO_AXIS && schedule->npar == schedule->loops.n) {
            double vectors = tiles((double)c->extent[schedule->lane], schedule->width);
            int is_many =
                units * vectors >= MANY_UNITS && vectors >= 2 * VECTORS && !has_temporaries(c);
            loop->tile = schedule->width * (is_many ? VECTORS : 1);
        }
        units *= dlc_choose_points(c, &loop->axes);
    }
}

void dlc_choose_cuda(dlc_chooser *c)
{
    if (choose_dot(c))
        return;
    dlc_choose_lanes(c);
    if (dlc_choose_transpose(c))
        return;
    choose_pack(c);
    spread(c);
}

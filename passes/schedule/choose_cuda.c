/*
 * Schedules for CUDA of what is no tile of a block (choose_block.c, choose_transpose.c): lanes of
 * a warp, chosen by the same count of cycles as on CPUs, with every independent loop parallel: a
 * GPU wants thousands of units where a CPU wants dozens.
 */
#include "passes/schedule/choose.h"

enum {
    MANY_UNITS = 16384, /* units from which a warp takes several vectors */
    VECTORS = 4,
    ACCESS_BYTES = 16, /* the widest access of a thread */
    MOST_PACK = 4,
    PACKED_UNITS = 1024 /* warps that keep a card busy: fewer get no more work each */
};

static double tiles(double size, int64_t tile)
{
    return (double)(((int64_t)size + tile - 1) / tile);
}

static int has_temporaries(const dlc_chooser *c)
{
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        if (c->place[s] == DLC_PLACE_SCRATCH)
            return 1;
    return 0;
}

/* Lane l of a pack has elements pack * l …: an access is one if neighbours lie together and the pack starts at its own
 * multiple. Anything else would be scattered further than without packs. */
int dlc_choose_is_packed(dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, int64_t pack)
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
static int64_t stage_pack(dlc_chooser *c, uint32_t s, uint32_t lane, uint32_t width, int64_t pack)
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
        while (pack > 1 && (pack * bytes > ACCESS_BYTES ||
                            (!dlc_choose_lays_out(c, access, lane) && !dlc_choose_is_packed(c, access, lane, pack))))
            pack /= 2;
    }
    int is_known = dlc_expr_is_int(c->kernel->pool, c->kernel->axes.data[lane].extent, &extent);
    while (pack > 1 && (!is_known || extent % pack || extent < pack * width))
        pack /= 2;
    return pack;
}

static double units_of(const dlc_chooser *c, const dlc_lanes_choice *choice)
{
    double units = 1;
    for (uint32_t l = 0; l < choice->loops.n; l++)
        units *= (double)c->extent[choice->loops.data[l].axis];
    return units;
}

/* Vectors become several to a thread where all of them can, and enough threads are left. */
static void choose_pack(dlc_chooser *c, dlc_lanes_choice *choice)
{
    int64_t pack = 1;
    int has_lane = choice->lane != DLC_NO_AXIS;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        if (has_lane || choice->lanes[s] != DLC_NO_AXIS)
            pack = MOST_PACK;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        pack = stage_pack(c, s, has_lane ? choice->lane : choice->lanes[s], choice->width, pack);
    while (pack > 1 && has_lane && units_of(c, choice) < (double)(PACKED_UNITS * choice->width * pack))
        pack /= 2;
    if (c->serial.n || pack == 1)
        return;
    choice->width *= (uint32_t)pack;
    if (has_lane)
        choice->loops.data[choice->loops.n - 1].tile = choice->width;
}

/* All loops are parallel, the pieces of the lane axis too; what recurs stays in order within its
 * unit. */
static void spread(dlc_chooser *c, dlc_lanes_choice *choice)
{
    double units = 1;
    while (choice->npar < choice->loops.n && !choice->loops.data[choice->npar].is_serial) {
        dlc_root_choice *loop = &choice->loops.data[choice->npar++];
        if (loop->axis == choice->lane) {
            double vectors = tiles((double)c->extent[choice->lane], choice->width);
            int is_many =
                units * vectors >= MANY_UNITS && vectors >= 2 * VECTORS && !has_temporaries(c);
            loop->tile = choice->width * (is_many ? VECTORS : 1);
        }
        units *= (double)c->extent[loop->axis];
    }
}

void dlc_choose_cuda(dlc_chooser *c)
{
    dlc_lanes_choice choice;
    dlc_choose_lanes_facts(c, &choice);
    choose_pack(c, &choice);
    spread(c, &choice);
    dlc_choose_lanes_build(c, &choice);
}

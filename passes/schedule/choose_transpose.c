/*
 * Maps that transpose, for CUDA: along the axis in which the result is contiguous some load is
 * strided, and it is contiguous along another. By lanes that load would fetch a sector of memory
 * for every element; by tiles of both axes in shared memory it fetches neighbours, as the store
 * does. What lies where in memory decides, never the operator.
 */
#include "passes/schedule/choose.h"

enum { LEAST_EXTENT = 16 }; /* of both axes: below it most of a tile is empty */

/* Neighbours in memory are points of the axis, in what the stage stores. */
static int is_stored_along(const dlc_chooser *c, uint32_t axis)
{
    for (uint32_t i = 0; i < c->accesses[0].n; i++)
        if (!c->accesses[0].data[i].load &&
            dlc_choose_stride(c, c->accesses[0].data[i].offset, axis) == 1)
            return 1;
    return 0;
}

/* A map whose points are independent, big enough along some axis of its result; that axis. */
static uint32_t find_out(const dlc_chooser *c)
{
    const dlc_stage *stage = &c->kernel->stages.data[0];
    if (c->kernel->stages.n != 1 || stage->combine != DLC_REDUCE_NONE || stage->update ||
        stage->buffer == DLC_NO_BUFFER || c->roots.n != stage->axes.n)
        return DLC_NO_AXIS;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (c->extent[stage->axes.data[i]] >= LEAST_EXTENT &&
            is_stored_along(c, stage->axes.data[i]))
            return stage->axes.data[i];
    return DLC_NO_AXIS;
}

/* The axis along which most loads are contiguous that `out` makes strided. */
static uint32_t find_in(const dlc_chooser *c, uint32_t out)
{
    const dlc_ids *axes = &c->kernel->stages.data[0].axes;
    uint32_t in = DLC_NO_AXIS, most = 0;
    for (uint32_t i = 0; i < axes->n; i++) {
        dlc_crossing crossing;
        if (axes->data[i] == out || c->extent[axes->data[i]] < LEAST_EXTENT)
            continue;
        dlc_schedule_crossing(c->kernel, c->target, axes->data[i], out, &crossing);
        if (crossing.loads.n <= most)
            continue;
        most = crossing.loads.n;
        in = axes->data[i];
    }
    return in;
}

static void add_loop(dlc_chooser *c, uint32_t axis, int64_t tile)
{
    dlc_root_loop loop = {.tile = tile};
    dlc_vec_push(c->arena, &loop.axes, axis);
    dlc_vec_push(c->arena, &c->schedule->block.loops, loop);
}

static void fill_loops(dlc_chooser *c, uint32_t in, uint32_t out)
{
    dlc_ids others = {0};
    for (uint32_t r = 0; r < c->roots.n; r++)
        if (c->roots.data[r] != in && c->roots.data[r] != out)
            dlc_vec_push(c->arena, &others, c->roots.data[r]);
    dlc_choose_sort(c, &others);
    for (uint32_t i = 0; i < others.n; i++)
        add_loop(c, others.data[i], 1);
    add_loop(c, in, DLC_CUDA_TILE);
    add_loop(c, out, DLC_CUDA_TILE);
}

int dlc_choose_transpose(dlc_chooser *c)
{
    uint32_t out = find_out(c), in = out == DLC_NO_AXIS ? DLC_NO_AXIS : find_in(c, out);
    if (in == DLC_NO_AXIS)
        return 0;
    fill_loops(c, in, out);
    c->schedule->block.method = DLC_METHOD_TRANSPOSE;
    return 1;
}

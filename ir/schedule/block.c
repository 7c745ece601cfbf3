/* CUDA's forms of a whole block: what follows from them, and their verifier. */
#include "ir/kernel/algebra.h"
#include "ir/schedule/resolve.h"

static int same_axes(const dlc_ids *a, const dlc_ids *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (!dlc_ids_find(b, a->data[i], NULL))
            return 0;
    return a->n == b->n;
}

int dlc_schedule_dot_loops(dlc_kernel *kernel, const dlc_schedule *schedule, dlc_dot_loops *loops)
{
    const dlc_block_form *block = &schedule->block;
    dlc_contraction *c = &loops->contraction;
    loops->m = loops->n = UINT32_MAX;
    if (!dlc_contraction_of(kernel, &kernel->stages.data[0], kernel->arena, c))
        return 0;
    if (block->swap) {
        dlc_contraction before = *c;
        c->m = before.n, c->n = before.m;
        c->a = before.b, c->b = before.a;
    }
    for (uint32_t l = 0; l < block->loops.n; l++) {
        if (c->m.n && same_axes(&block->loops.data[l].axes, &c->m))
            loops->m = l;
        else if (c->n.n && same_axes(&block->loops.data[l].axes, &c->n))
            loops->n = l;
    }
    return (loops->m != UINT32_MAX || !c->m.n) && loops->n != UINT32_MAX;
}

static dlc_status fail(const dlc_schedule *schedule, dlc_diag *diag, const char *what)
{
    return dlc_diag_fail(diag, DLC_INVALID, schedule->kernel->name, "schedule: block: %s", what);
}

/* The axis stands in one loop, and in no other. */
static uint32_t loop_count(const dlc_schedule *schedule, uint32_t axis)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < schedule->block.loops.n; l++)
        n += (uint32_t)dlc_ids_find(&schedule->block.loops.data[l].axes, axis, NULL);
    return n;
}

/* One map over loops of one axis each, of which the last two are the tile. */
static dlc_status verify_transpose(const dlc_schedule *schedule, dlc_diag *diag)
{
    const dlc_stage *stage = &schedule->kernel->stages.data[0];
    uint32_t n = schedule->block.loops.n;
    if (schedule->kernel->stages.n != 1 || stage->combine != DLC_REDUCE_NONE || stage->update || stage->buffer == DLC_NO_BUFFER)
        return fail(schedule, diag, "what is transposed is not one map");
    if (n < 2)
        return fail(schedule, diag, "a transpose has loops over both axes of its tile");
    for (uint32_t l = 0; l < n; l++)
        if (schedule->block.loops.data[l].axes.n != 1 ||
            schedule->block.loops.data[l].tile != (l + 2 < n ? 1 : DLC_CUDA_TILE))
            return fail(schedule, diag, "the last two loops of a transpose are not its tile");
    return DLC_OK;
}

static dlc_status verify_dot(const dlc_schedule *schedule, dlc_diag *diag)
{
    const dlc_kernel *kernel = schedule->kernel;
    const dlc_block_form *block = &schedule->block;
    dlc_dot_loops at;
    if (!block->m || !block->n || block->m % DLC_CUDA_SIDE || block->n % DLC_CUDA_SIDE)
        return fail(schedule, diag, "the tile is not 16 x 16 threads");
    if (!dlc_schedule_dot_loops(schedule->kernel, schedule, &at) || at.m == UINT32_MAX || block->loops.data[at.m].tile != block->m ||
        block->loops.data[at.n].tile != block->n)
        return fail(schedule, diag, "the loops do not fit the contraction");
    for (uint32_t s = 1; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].combine != DLC_REDUCE_NONE || kernel->stages.data[s].update)
            return fail(schedule, diag, "what follows the contraction is no map");
    return DLC_OK;
}

dlc_status dlc_block_verify(const dlc_schedule *schedule, dlc_diag *diag)
{
    const dlc_kernel *kernel = schedule->kernel;
    if (schedule->target->kind != DLC_TARGET_CUDA)
        return fail(schedule, diag, "the target has no blocks");
    if (!kernel->stages.n)
        return fail(schedule, diag, "there is no stage");
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_ids *axes = &kernel->stages.data[s].axes;
        uint32_t n = 0;
        for (uint32_t i = 0; i < axes->n; i++)
            if (loop_count(schedule, axes->data[i]) != 1)
                return fail(schedule, diag, "an axis of a stage does not have one loop");
        for (uint32_t l = 0; l < schedule->block.loops.n; l++)
            n += schedule->block.loops.data[l].axes.n;
        if (n != axes->n)
            return fail(schedule, diag, "a loop's axis is not one of each stage's");
    }
    return schedule->block.method == DLC_METHOD_DOT ? verify_dot(schedule, diag) : verify_transpose(schedule, diag);
}

/*
 * Which buffer that a kernel reads may be the memory that it writes: each element is loaded where the same element is stored, by the one map
 * that stores it, once. So a residual is overwritten by the sum: its lines are in the caches already, and there are half as many.
 */
#include "ir/kernel/algebra.h"
#include "ir/schedule/resolve.h"

typedef struct {
    const dlc_schedule *schedule;
    const dlc_kernel *kernel;
    dlc_ranges ranges;
    uint32_t stage; /* that stores */
} place;

static dlc_expr offset_in(const place *p, uint32_t b, uint32_t rank, const dlc_expr *index)
{
    const dlc_buffer *buffer = &p->kernel->buffers.data[b];
    dlc_expr offset = dlc_layout_offset(p->kernel->pool, &buffer->layout, (uint8_t)rank, buffer->type.dims, index);
    return dlc_expr_simplify(p->kernel->pool, offset, &p->ranges);
}

/* The map that stores all of the buffer, an element at each of its points, at once and in no order; DLC_NO_STAGE: it is stored otherwise. */
static uint32_t stored_by(const dlc_schedule *schedule, uint32_t buffer)
{
    const dlc_kernel *kernel = schedule->kernel;
    uint32_t found = DLC_NO_STAGE;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (stage->buffer != buffer)
            continue;
        if (found != DLC_NO_STAGE || stage->combine != DLC_REDUCE_NONE || stage->update != DLC_UPDATE_NONE ||
            schedule->nodes.data[schedule->homes[s].leaf].nontemporal)
            return DLC_NO_STAGE;
        found = s;
    }
    for (uint32_t s = 0; s < kernel->stages.n && found != DLC_NO_STAGE; s++)
        if (schedule->homes[s].place == DLC_PLACE_OUTPUT && schedule->homes[s].stored == found)
            return DLC_NO_STAGE; /* something else waits there */
    return found;
}

/* Rows of a register tile whose number is no constant where its loop begins: those past the end are the last one, once more. */
static int has_rows_twice(const dlc_schedule *schedule, uint32_t tile)
{
    const dlc_schedule_node *leaf = &schedule->nodes.data[tile];
    int64_t extent, inner = 0;
    if (leaf->rows == DLC_NO_AXIS || dlc_dots[leaf->row].family == DLC_FAMILY_TILE)
        return 0;
    if (!dlc_expr_is_int(schedule->kernel->pool, schedule->kernel->axes.data[leaf->rows].extent, &extent))
        return 1;
    uint32_t n = dlc_schedule_rows(schedule, tile);
    while ((n = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, n), leaf->rows)) != DLC_ROOT_NODE) {
        int64_t outer = schedule->nodes.data[n].tile;
        if ((extent > outer && extent % outer) || (inner && outer % inner))
            return 1;
        inner = outer;
    }
    return 0;
}

/* Loops over the stage's axes alone around it, or a register tile's elements. */
static int is_computed_once(const dlc_schedule *schedule, uint32_t s)
{
    const dlc_ids *axes = &schedule->kernel->stages.data[s].axes;
    for (uint32_t n = dlc_schedule_parent(schedule, schedule->homes[s].leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n)) {
        const dlc_schedule_node *node = &schedule->nodes.data[n];
        if (node->kind == DLC_LOOP_AS ? has_rows_twice(schedule, schedule->homes[node->stage].leaf) : !dlc_ids_find(axes, node->axis, NULL))
            return 0;
    }
    return 1;
}

/* What the stage loads of buffers that may still be read in place: elsewhere than at the element stored, or by a stage that stores another. */
static void drop_others(const place *p, uint32_t s, const uint8_t *marks, dlc_expr stored, uint8_t *is_read, uint8_t *may)
{
    const dlc_pool *pool = p->kernel->pool;
    uint32_t nnodes = pool->nodes.n; /* the pool grows */
    for (dlc_expr id = 1; id < nnodes; id++) {
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(dlc_node_of(pool, id)->imm.id))
            continue;
        dlc_expr index[DLC_MAX_INDEX];
        uint32_t rank = dlc_load_rank(pool, id), b = DLC_SOURCE_INDEX(dlc_node_of(pool, id)->imm.id);
        for (uint32_t d = 0; d < rank; d++)
            index[d] = dlc_arg(pool, id, d);
        is_read[b] = 1;
        may[b] = may[b] && s == p->stage && offset_in(p, b, rank, index) == stored;
    }
}

static int may_be(const dlc_buffer *from, const dlc_buffer *to)
{
    enum { BYTE = 8 };
    return from->role == DLC_ROLE_IN && dlc_dtypes[from->type.dtype].bits == dlc_dtypes[to->type.dtype].bits &&
           dlc_dtypes[to->type.dtype].bits >= BYTE;
}

void dlc_schedule_find_in_place(const dlc_schedule *schedule, uint32_t written, uint8_t *may)
{
    const dlc_kernel *kernel = schedule->kernel;
    const dlc_buffer *to = &kernel->buffers.data[written];
    place p = {schedule, kernel, dlc_kernel_ranges(schedule->kernel), stored_by(schedule, written)};
    int is_possible = schedule->target->kind == DLC_TARGET_CPU && !schedule->target->plugin && to->role == DLC_ROLE_OUT && !to->is_part &&
                      p.stage != DLC_NO_STAGE && is_computed_once(schedule, p.stage);
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        may[b] = (uint8_t)(is_possible && may_be(&kernel->buffers.data[b], to));
    if (!is_possible)
        return;
    dlc_arena *scratch = dlc_arena_create(0);
    uint8_t *is_read = dlc_new_array(scratch, uint8_t, kernel->buffers.n + 1);
    const dlc_stage *stage = &kernel->stages.data[p.stage];
    dlc_expr stored = offset_in(&p, written, stage->store.n, stage->store.data);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        drop_others(&p, s, dlc_stage_marks(kernel, &kernel->stages.data[s], scratch), stored, is_read, may);
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        may[b] = may[b] && is_read[b];
    dlc_arena_destroy(scratch);
}

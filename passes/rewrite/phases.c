/*
 * Phases: points of an axis that are `step` apart become neighbours. Axis a becomes step * a + phase, with axes of their own for both,
 * so a window whose taps are step points apart has taps of neighbouring points within each phase.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

typedef struct {
    const dlc_kernel *kernel;
    uint32_t axis, phase;
    dlc_expr point;   /* step * axis + phase */
    int is_elsewhere; /* some stage is read at other points of the axis than the reader's own */
} splitting;

/* A stage has both axes now; buffers keep their dimensions. */
static uint32_t split_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    splitting *s = user;
    const dlc_ids *axes = DLC_SOURCE_IS_STAGE(source) ? &s->kernel->stages.data[DLC_SOURCE_INDEX(source)].axes : NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (!axes || axes->data[i] != s->axis) {
            result[n++] = index[i];
            continue;
        }
        s->is_elsewhere |= index[i] != s->point;
        result[n++] = dlc_expr_axis(s->kernel->pool, s->phase);
        result[n++] = dlc_expr_axis(s->kernel->pool, s->axis);
    }
    return n;
}

static void insert_phase(dlc_arena *arena, dlc_ids *axes, uint32_t axis, uint32_t phase)
{
    uint32_t position;
    if (!dlc_ids_find(axes, axis, &position))
        return;
    dlc_vec_push(arena, axes, phase);
    for (uint32_t i = axes->n - 1; i > position; i--)
        axes->data[i] = axes->data[i - 1];
    axes->data[position] = phase;
}

uint32_t dlc_rewrite_phases(dlc_kernel *kernel, uint32_t axis, int64_t step)
{
    dlc_pool *pool = kernel->pool;
    splitting s = {.kernel = kernel, .axis = axis};
    s.phase = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%s_phase", kernel->axes.data[axis].name),
                              dlc_expr_i64(pool, step));
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n), *extent = &kernel->axes.data[axis].extent;
    s.point = dlc_add(pool, dlc_muli(pool, dlc_expr_axis(pool, axis), step), dlc_expr_axis(pool, s.phase));
    with[axis] = s.point;
    dlc_kernel_reindex(kernel, &(dlc_reindex){with, split_index, &s});
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        insert_phase(kernel->arena, &kernel->stages.data[i].axes, axis, s.phase);
    *extent = dlc_floordiv(pool, dlc_addi(pool, *extent, step - 1), dlc_expr_i64(pool, step));
    return s.is_elsewhere ? DLC_NO_AXIS : s.phase;
}

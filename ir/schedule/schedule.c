/*
 * Schedules: what follows from one (units of work, scratch and its offsets). Scratch holds, in stage order, each temporary's
 * region within one root tile and each dot stage's copies, every one rounded up to 64 bytes.
 */
#include "ir/schedule/schedule.h"

#include <assert.h>

dlc_expr dlc_loop_count(dlc_kernel *kernel, const dlc_loop *loop)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr extent = dlc_expr_i64(pool, 1);
    for (uint32_t i = 0; i < loop->axes.n; i++)
        extent = dlc_mul(pool, extent, kernel->axes.data[loop->axes.data[i]].extent);
    if (loop->tile == 1)
        return extent;
    return dlc_floordiv(pool, dlc_addi(pool, extent, loop->tile - 1), dlc_expr_i64(pool, loop->tile));
}

dlc_expr dlc_schedule_units(dlc_kernel *kernel, const dlc_schedule *schedule)
{
    dlc_expr units = dlc_expr_i64(kernel->pool, 1);
    for (uint32_t l = 0; l < schedule->npar; l++)
        units = dlc_mul(kernel->pool, units, dlc_loop_count(kernel, &schedule->loops.data[l]));
    return units;
}

dlc_method dlc_schedule_method(const dlc_kernel *kernel, const dlc_schedule *schedule)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (schedule->plans[s].method != DLC_METHOD_LANES)
            return (dlc_method)schedule->plans[s].method;
    return DLC_METHOD_LANES;
}

const dlc_loop *dlc_schedule_loop(const dlc_schedule *schedule, uint32_t axis)
{
    for (uint32_t l = 0; l < schedule->loops.n; l++)
        for (uint32_t i = 0; i < schedule->loops.data[l].axes.n; i++)
            if (schedule->loops.data[l].axes.data[i] == axis)
                return &schedule->loops.data[l];
    return NULL;
}

int dlc_schedule_shares(const dlc_schedule *schedule, uint32_t axis)
{
    const dlc_loop *loop = dlc_schedule_loop(schedule, axis);
    return loop && !loop->serial;
}

static dlc_expr round_up(dlc_pool *pool, dlc_expr value, int64_t multiple)
{
    return dlc_muli(pool, dlc_floordiv(pool, dlc_addi(pool, value, multiple - 1), dlc_expr_i64(pool, multiple)), multiple);
}

static dlc_expr temporary_bytes(dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t s)
{
    const dlc_stage *stage = &kernel->stages.data[s];
    dlc_pool *pool = kernel->pool;
    dlc_expr elems = dlc_expr_i64(pool, schedule->lane == DLC_NO_AXIS ? 1 : schedule->width);
    for (uint32_t a = 0; a < stage->axes.n; a++)
        if (!dlc_schedule_shares(schedule, stage->axes.data[a]))
            elems = dlc_mul(pool, elems, kernel->axes.data[stage->axes.data[a]].extent);
    return round_up(pool, dlc_muli(pool, elems, dlc_dtype_bytes(stage->dtype[0])), 64);
}

dlc_expr dlc_schedule_depth(dlc_kernel *kernel, uint32_t s)
{
    const dlc_stage *stage = &kernel->stages.data[s];
    dlc_expr depth = dlc_expr_i64(kernel->pool, 1);
    for (uint32_t k = 0; k < stage->reduce.n; k++)
        depth = dlc_mul(kernel->pool, depth, kernel->axes.data[stage->reduce.data[k]].extent);
    return depth;
}

dlc_expr dlc_schedule_row(dlc_kernel *kernel, uint32_t s)
{
    dlc_expr row = round_up(kernel->pool, dlc_schedule_depth(kernel, s), 16);
    int64_t known;
    if (dlc_expr_is_int(kernel->pool, row, &known) && known % 1024 == 0)
        row = dlc_addi(kernel->pool, row, 16); /* rows 4096 bytes apart would share an L1 set */
    return row;
}

/* Columns of the tile that copy_b holds: the n loop's tile, or all of n when that loop comes after the rows'. */
static dlc_expr copied_columns(dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t s)
{
    dlc_dot_loops at;
    dlc_schedule_dot_loops(kernel, schedule, s, &at);
    dlc_pool *pool = kernel->pool;
    dlc_expr columns = dlc_expr_i64(pool, 1);
    if (at.n != UINT32_MAX && at.n < at.m)
        columns = dlc_expr_i64(pool, schedule->loops.data[at.n].tile);
    else if (at.n != UINT32_MAX)
        for (uint32_t i = 0; i < schedule->loops.data[at.n].axes.n; i++)
            columns = dlc_mul(pool, columns, kernel->axes.data[schedule->loops.data[at.n].axes.data[i]].extent);
    return round_up(pool, columns, schedule->plans[s].n);
}

static dlc_expr copy_bytes(dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t s, int copy)
{
    const dlc_stage_plan *plan = &schedule->plans[s];
    dlc_pool *pool = kernel->pool;
    int64_t elem = dlc_dtype_bytes(kernel->stages.data[s].dtype[0]);
    if (copy == 'a')
        return plan->copy_a ? round_up(pool, dlc_muli(pool, dlc_schedule_row(kernel, s), plan->m * elem), 64)
                            : dlc_expr_i64(pool, 0);
    if (!plan->copy_b)
        return dlc_expr_i64(pool, 0);
    dlc_expr elems = dlc_mul(pool, copied_columns(kernel, schedule, s), dlc_schedule_depth(kernel, s));
    return round_up(pool, dlc_muli(pool, elems, elem), 64);
}

/* Bytes before (stage, copy); with stage = nstages the whole. copies come in the order 0, 'a', 'b'. */
static dlc_expr bytes_before(dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t stage, int copy)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr total = dlc_expr_i64(pool, 0);
    for (uint32_t s = 0; s < kernel->stages.n && s <= stage; s++) {
        const dlc_stage_plan *plan = &schedule->plans[s];
        if (plan->method == DLC_METHOD_DOT) {
            if (s == stage && copy == 'a')
                break;
            total = dlc_add(pool, total, copy_bytes(kernel, schedule, s, 'a'));
            if (s == stage)
                break;
            total = dlc_add(pool, total, copy_bytes(kernel, schedule, s, 'b'));
        } else if (s < stage && plan->place == DLC_PLACE_SCRATCH) {
            total = dlc_add(pool, total, temporary_bytes(kernel, schedule, s));
        }
    }
    return total;
}

dlc_expr dlc_schedule_scratch(dlc_kernel *kernel, const dlc_schedule *schedule)
{
    return bytes_before(kernel, schedule, kernel->stages.n, 0);
}

dlc_expr dlc_schedule_offset(dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t stage, int copy)
{
    return bytes_before(kernel, schedule, stage, copy);
}

static int same_axes(const dlc_ids *a, const dlc_ids *b)
{
    if (a->n != b->n)
        return 0;
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t found = 0;
        for (uint32_t j = 0; j < b->n; j++)
            found |= a->data[i] == b->data[j];
        if (!found)
            return 0;
    }
    return 1;
}

int dlc_schedule_dot_loops(dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t s, dlc_dot_loops *loops)
{
    dlc_contraction *c = &loops->contraction;
    loops->m = loops->n = UINT32_MAX;
    if (!dlc_contraction_of(kernel, &kernel->stages.data[s], kernel->arena, c))
        return 0;
    if (schedule->plans[s].swap) {
        dlc_ids axes = c->m;
        dlc_expr factor = c->a;
        c->m = c->n;
        c->n = axes;
        c->a = c->b;
        c->b = factor;
    }
    for (uint32_t l = 0; l < schedule->loops.n; l++) {
        if (c->m.n && same_axes(&schedule->loops.data[l].axes, &c->m))
            loops->m = l;
        else if (c->n.n && same_axes(&schedule->loops.data[l].axes, &c->n))
            loops->n = l;
    }
    return (loops->m != UINT32_MAX || !c->m.n) && loops->n != UINT32_MAX;
}

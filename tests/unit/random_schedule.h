/*
 * Random schedules of a kernel: trees that are mostly right, since what opens all axes around each stage is drawn, with tiles,
 * lanes, register tiles, copies, flattened axes and places at random, and now and then something out of order.
 */
#ifndef DLC_TESTS_RANDOM_SCHEDULE_H
#define DLC_TESTS_RANDOM_SCHEDULE_H

#include <string.h>

#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"
#include "tests/unit/random.h"

typedef struct {
    dlc_schedule *schedule;
    dlc_kernel *kernel;
    int64_t *open; /* by axis: 0 no loop, 1 a point, else the tile left open */
    uint32_t nloops;
    int in_lane, is_leading; /* is_leading: nothing but par is around, and all is inside */
    uint32_t folded;         /* stages whose sum a loop around has begun: bits */
} schedule_plan;

static inline const dlc_stage *plan_stage(const schedule_plan *p, uint32_t s)
{
    return &p->kernel->stages.data[s];
}

static inline int plan_needs(const schedule_plan *p, uint32_t s, uint32_t axis)
{
    return p->open[axis] != 1 && (dlc_ids_find(&plan_stage(p, s)->axes, axis, NULL) ||
                                  dlc_ids_find(&plan_stage(p, s)->reduce, axis, NULL));
}

/* An axis that all stages (or one of them) still need, or DLC_NO_AXIS. */
static inline uint32_t draw_needed(const schedule_plan *p, const uint32_t *list, uint32_t n, int all)
{
    uint32_t found = DLC_NO_AXIS, nfound = 0;
    for (uint32_t a = 0; a < p->kernel->axes.n; a++) {
        uint32_t needs = 0;
        for (uint32_t i = 0; i < n; i++)
            needs += (uint32_t)plan_needs(p, list[i], a);
        if (needs && (!all || needs == n) && draw(++nfound) == 0)
            found = a;
    }
    return found;
}

static inline dlc_place draw_place(const schedule_plan *p, uint32_t s)
{
    if (plan_stage(p, s)->buffer != DLC_NO_BUFFER)
        return draw(3) ? DLC_PLACE_BUFFER : draw(2) ? DLC_PLACE_SCRATCH : DLC_PLACE_REG;
    return draw(3) ? DLC_PLACE_SCRATCH : DLC_PLACE_REG;
}

static inline void draw_nodes(schedule_plan *p, const uint32_t *list, uint32_t n);

static inline int64_t draw_lanes(const schedule_plan *p)
{
    int64_t lanes = (int64_t)4 << draw(4);
    return p->schedule->target->kind == DLC_TARGET_CUDA ? (int64_t)32 << draw(3) : lanes;
}

/* A loop over the axis, with the stages inside. */
static inline void draw_loop(schedule_plan *p, uint32_t axis, const uint32_t *list, uint32_t n)
{
    int64_t before = p->open[axis], tile = before || draw(4) ? 1 : 2 + draw(15);
    int was_leading = p->is_leading, was_lane = p->in_lane;
    dlc_loop_kind kind = p->is_leading && draw(2) ? DLC_LOOP_PAR : draw(6) ? DLC_LOOP_FOR : DLC_LOOP_UNROLL;
    if (before > 2 && draw(4) == 0)
        tile = 1 + draw((uint32_t)before - 1);
    if (!p->in_lane && draw(n > 2 ? 6 : 3) == 0)
        kind = DLC_LOOP_LANE;
    p->is_leading &= kind == DLC_LOOP_PAR;
    if (kind == DLC_LOOP_LANE) {
        p->in_lane = 1;
        tile = draw_lanes(p);
        if (before > 1)
            while (tile > before)
                tile /= 2;
        dlc_schedule_open_lane(p->schedule, axis, tile, draw(3) ? 1 : 2 + 2 * draw(2));
        tile = 1;
    } else {
        tile = kind == DLC_LOOP_UNROLL ? 1 : tile;
        dlc_schedule_open(p->schedule, kind, axis, tile);
    }
    p->open[axis] = tile;
    p->nloops++;
    draw_nodes(p, list, n);
    dlc_schedule_close(p->schedule, 1);
    p->open[axis] = before;
    p->is_leading = was_leading;
    p->in_lane = was_lane;
}

/* --- register tiles --- */

typedef struct {
    uint32_t rows, columns;
} tile_axes;

static inline int draw_tile_axes(schedule_plan *p, uint32_t s, tile_axes *axes)
{
    dlc_contraction form;
    if (p->in_lane || !plan_stage(p, s)->reduce.n ||
        !dlc_contraction_of(p->kernel, plan_stage(p, s), p->schedule->arena, &form))
        return 0;
    int swap = (int)draw(2);
    const dlc_ids *m = swap ? &form.n : &form.m, *n = swap ? &form.m : &form.n;
    if (!n->n)
        return 0;
    axes->columns = n->data[draw(n->n)];
    axes->rows = m->n && draw(8) ? m->data[draw(m->n)] : DLC_NO_AXIS;
    return !p->open[axes->columns] && (axes->rows == DLC_NO_AXIS || !p->open[axes->rows]);
}

static inline int has_same_axes(const schedule_plan *p, uint32_t s, uint32_t t)
{
    const dlc_stage *a = plan_stage(p, s), *b = plan_stage(p, t);
    if (a->axes.n != b->axes.n || b->reduce.n)
        return 0;
    for (uint32_t i = 0; i < a->axes.n; i++)
        if (!dlc_ids_find(&b->axes, a->axes.data[i], NULL))
            return 0;
    return 1;
}

static inline void draw_dot_leaf(schedule_plan *p, uint32_t s, const tile_axes *axes, const uint32_t *rest, uint32_t n, int is_cut)
{
    const dlc_stage *stage = plan_stage(p, s);
    dlc_ids over = {0};
    uint32_t follow = 0;
    for (uint32_t i = 0; i < stage->reduce.n; i++)
        if (p->open[stage->reduce.data[i]] != 1)
            dlc_vec_push(p->schedule->arena, &over, stage->reduce.data[i]);
    while (follow < n && has_same_axes(p, s, rest[follow]))
        follow++;
    int is_reg = follow && !is_cut && draw(5);
    dlc_schedule_dot(p->schedule, s, DLC_DOT_FMA, axes->rows, axes->columns, &over,
                     is_reg ? DLC_PLACE_REG : stage->buffer != DLC_NO_BUFFER && draw(3) ? DLC_PLACE_BUFFER : DLC_PLACE_SCRATCH);
    if (!is_reg) {
        draw_nodes(p, rest, n);
        return;
    }
    dlc_schedule_open_as(p->schedule, s);
    for (uint32_t i = 0; i < follow; i++)
        dlc_schedule_leaf(p->schedule, rest[i], i + 1 < n || plan_stage(p, rest[i])->buffer == DLC_NO_BUFFER ? draw_place(p, rest[i]) : DLC_PLACE_BUFFER);
    dlc_schedule_close(p->schedule, 1);
    draw_nodes(p, rest + follow, n - follow);
}

/* Loops to points over what is neither rows, columns nor (mostly) summed; then the tile. What follows stands inside. */
static inline void draw_dot(schedule_plan *p, uint32_t s, const tile_axes *axes, const uint32_t *rest, uint32_t n)
{
    const dlc_stage *stage = plan_stage(p, s);
    int64_t lanes = p->schedule->target->vector_bytes / dlc_dtype_bytes(stage->dtype[0]);
    int64_t *before = dlc_arena_copy(p->schedule->arena, p->open, p->kernel->axes.n * sizeof *p->open);
    uint32_t nloops = 0;
    int is_cut = 0, was_leading = p->is_leading;
    dlc_loop_kind kind = DLC_LOOP_FOR;
    for (uint32_t i = 0; i < stage->axes.n; i++) {
        uint32_t axis = stage->axes.data[i];
        if (axis == axes->rows || axis == axes->columns || p->open[axis] == 1)
            continue;
        kind = p->is_leading && draw(2) ? DLC_LOOP_PAR : DLC_LOOP_FOR;
        p->is_leading &= kind == DLC_LOOP_PAR;
        dlc_schedule_open(p->schedule, kind, axis, 1);
        p->open[axis] = 1;
        nloops++;
    }
    if (draw(6) == 0) {
        uint32_t axis = stage->reduce.data[draw(stage->reduce.n)];
        if (!p->open[axis]) {
            p->is_leading = 0;
            dlc_schedule_open(p->schedule, DLC_LOOP_FOR, axis, p->open[axis] = 1 + draw(8));
            is_cut = 1;
            nloops++;
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t axis = (i ^ (draw(2))) ? axes->columns : axes->rows;
        if (axis == DLC_NO_AXIS || p->open[axis])
            axis = axis == axes->columns ? axes->rows : axes->columns;
        if (axis == DLC_NO_AXIS || p->open[axis])
            continue;
        kind = p->is_leading && draw(2) ? DLC_LOOP_PAR : DLC_LOOP_FOR;
        p->is_leading &= kind == DLC_LOOP_PAR;
        int64_t tile = axis == axes->columns ? lanes * (1 + draw(2)) : 2 + draw(5);
        dlc_schedule_open(p->schedule, kind, axis, p->open[axis] = tile);
        nloops++;
    }
    draw_dot_leaf(p, s, axes, rest, n, is_cut);
    dlc_schedule_close(p->schedule, nloops);
    memcpy(p->open, before, p->kernel->axes.n * sizeof *p->open);
    p->is_leading = was_leading;
}

/* --- the tree --- */

static inline void draw_nodes(schedule_plan *p, const uint32_t *list, uint32_t n)
{
    tile_axes axes;
    if (!n)
        return;
    if (draw_tile_axes(p, list[0], &axes) && draw(4)) {
        uint32_t with = 1 + draw(n); /* the others, or some of them, in its loops or behind */
        if (with < n)
            p->is_leading = 0;
        draw_dot(p, list[0], &axes, list + 1, with - 1);
        draw_nodes(p, list + with, n - with);
        return;
    }
    uint32_t axis = draw_needed(p, list, n, n == 1 || draw(10) != 0);
    if (axis != DLC_NO_AXIS && (n == 1 || draw(4)) && p->nloops < 24) {
        draw_loop(p, axis, list, n);
        return;
    }
    if (n > 1) {
        uint32_t first = 1 + draw(n - 1);
        p->is_leading = 0;
        draw_nodes(p, list, first);
        draw_nodes(p, list + first, n - first);
        return;
    }
    dlc_schedule_leaf(p->schedule, list[0], draw_place(p, list[0]));
}

static inline void draw_flat(dlc_schedule *schedule)
{
    const dlc_stage *stage = &schedule->kernel->stages.data[draw(schedule->kernel->stages.n)];
    dlc_ids axes = {0};
    if (stage->axes.n < 2)
        return;
    uint32_t at = draw(stage->axes.n - 1);
    dlc_vec_push(schedule->arena, &axes, stage->axes.data[at]);
    dlc_vec_push(schedule->arena, &axes, stage->axes.data[at + 1]);
    dlc_schedule_flatten(schedule, &axes);
}

/* A load of a stage as a stage of its own, before it in the list. */
static inline uint32_t draw_copy(dlc_schedule *schedule, uint32_t *list, uint32_t n)
{
    uint32_t at = draw(n), s = list[at];
    const dlc_kernel *kernel = schedule->kernel;
    const dlc_stage *stage = &kernel->stages.data[s];
    const char *operand = kernel->buffers.data[draw(kernel->buffers.n)].name;
    dlc_expr value = draw(3) ? dlc_schedule_operand(schedule, s, operand)
                             : dlc_schedule_operand(schedule, s, operand = draw(2) ? "left" : "right");
    dlc_ids axes = {0};
    if (!value || stage->update != DLC_UPDATE_NONE)
        return n;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        dlc_vec_push(schedule->arena, &axes, stage->axes.data[i]);
    for (uint32_t i = 0; i < stage->reduce.n; i++)
        dlc_vec_push(schedule->arena, &axes, stage->reduce.data[i]);
    operand = dlc_schedule_operand_name(schedule, s, value);
    uint32_t copy = dlc_schedule_copy_add(schedule, "cp", s, operand, value, &axes);
    memmove(list + at + 1, list + at, (n - at) * sizeof *list);
    list[at] = copy;
    return n + 1;
}

static inline void disturb(dlc_schedule *schedule)
{
    dlc_schedule_node *node = &schedule->nodes.data[draw(schedule->nodes.n)];
    if (node->kind == DLC_LOOP_LEAF)
        node->place = (uint8_t)draw(3);
    else if (node->kind == DLC_LOOP_FOR || node->kind == DLC_LOOP_PAR)
        node->kind = (uint8_t)draw(3);
}

/* Not resolved. */
static inline dlc_schedule *draw_schedule(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena)
{
    dlc_schedule *schedule = dlc_schedule_create(kernel, target, arena);
    uint32_t list[16], n = kernel->stages.n;
    for (uint32_t s = 0; s < n; s++)
        list[s] = s;
    if (draw(4) == 0)
        draw_flat(schedule);
    if (draw(5) == 0)
        n = draw_copy(schedule, list, n);
    if (n > 1 && draw(16) == 0) {
        uint32_t at = draw(n - 1), s = list[at];
        list[at] = list[at + 1];
        list[at + 1] = s;
    }
    schedule_plan p = {.schedule = schedule, .kernel = schedule->kernel, .is_leading = 1};
    p.open = dlc_new_array(arena, int64_t, schedule->kernel->axes.n + 1);
    draw_nodes(&p, list, n);
    if (draw(12) == 0)
        disturb(schedule);
    return schedule;
}

#endif

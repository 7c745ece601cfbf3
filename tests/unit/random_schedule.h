/*
 * Random schedules of a kernel: trees that are mostly right, since what opens all axes around each stage is drawn by the rules,
 * with tiles, lanes, register tiles, copies, packed constants, flattened axes and places at random; or steps away from what the
 * chooser makes. Now and then a rule is broken.
 */
#ifndef DLC_TESTS_RANDOM_SCHEDULE_H
#define DLC_TESTS_RANDOM_SCHEDULE_H

#include <string.h>

#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"
#include "passes/schedule/candidates.h"
#include "tests/unit/random.h"

enum { MOST_PLANNED = 16, MOST_WRITTEN_OUT = 64 };

typedef struct {
    uint32_t reads[MOST_PLANNED];               /* by stage: the stages it reads, bits */
    uint32_t apart[MOST_PLANNED][MOST_PLANNED]; /* axes of the second at whose other points the first reads it, bits */
    dlc_schedule *schedule;
    dlc_kernel *kernel;
    int64_t *open; /* by axis: 0 no loop, 1 a point, else the tile left open */
    uint32_t nloops;
    int in_lane, is_leading; /* is_leading: nothing but par is around, and all is inside */
    int64_t warp;            /* CUDA: lanes of every vector */
} schedule_plan;

static inline int breaks_rule(void)
{
    return draw(48) == 0;
}

static inline const dlc_stage *plan_stage(const schedule_plan *p, uint32_t s)
{
    return &p->kernel->stages.data[s];
}

static inline int plan_needs(const schedule_plan *p, uint32_t s, uint32_t axis)
{
    return p->open[axis] != 1 && (dlc_ids_find(&plan_stage(p, s)->axes, axis, NULL) ||
                                  dlc_ids_find(&plan_stage(p, s)->reduce, axis, NULL));
}

static inline void find_reads(schedule_plan *p)
{
    const dlc_pool *pool = p->kernel->pool;
    for (uint32_t s = 0; s < p->kernel->stages.n && s < MOST_PLANNED; s++) {
        const uint8_t *marks = dlc_stage_marks(p->kernel, plan_stage(p, s), p->schedule->arena);
        for (dlc_expr id = 1; id < pool->nodes.n; id++) {
            const dlc_expr_node *node = dlc_node_of(pool, id);
            if (!marks[id] || node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
                continue;
            uint32_t source = DLC_SOURCE_INDEX(node->imm.id);
            p->reads[s] |= 1u << source;
            for (uint32_t i = 0; i < plan_stage(p, source)->axes.n; i++)
                if (dlc_bare_axis(pool, dlc_arg(pool, id, i)) != plan_stage(p, source)->axes.data[i])
                    p->apart[s][source] |= 1u << plan_stage(p, source)->axes.data[i];
        }
    }
}

static inline int keeps(const schedule_plan *p, uint32_t s, uint32_t axis)
{
    return dlc_ids_find(&plan_stage(p, s)->axes, axis, NULL);
}

static inline int sums(const schedule_plan *p, uint32_t s, uint32_t axis)
{
    return dlc_ids_find(&plan_stage(p, s)->reduce, axis, NULL);
}

/* One of the stages reads one of them at other points of the axis; self: itself, which steps in order allow. */
static inline int is_crossed(const schedule_plan *p, const uint32_t *list, uint32_t n, uint32_t axis, int self)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if ((i == j) == self && p->apart[list[i]][list[j]] >> axis & 1)
                return 1;
    return 0;
}

/* A stage that sums over the axis is read beside, or has kept axes that are not open yet. */
static inline int sums_too_early(const schedule_plan *p, const uint32_t *list, uint32_t n, uint32_t axis)
{
    for (uint32_t i = 0; i < n; i++) {
        const dlc_stage *stage = plan_stage(p, list[i]);
        if (!sums(p, list[i], axis))
            continue;
        for (uint32_t a = 0; a < stage->axes.n; a++)
            if (p->open[stage->axes.data[a]] != 1)
                return 1;
        for (uint32_t j = 0; j < n; j++)
            if (p->reads[list[j]] >> list[i] & 1)
                return 1;
    }
    return 0;
}

static inline int may_loop(const schedule_plan *p, const uint32_t *list, uint32_t n, uint32_t axis)
{
    return (!is_crossed(p, list, n, axis, 0) && !sums_too_early(p, list, n, axis)) || breaks_rule();
}

static inline int may_be_parallel(const schedule_plan *p, const uint32_t *list, uint32_t n, uint32_t axis)
{
    int may = !is_crossed(p, list, n, axis, 1);
    for (uint32_t i = 0; i < n; i++)
        may = may && keeps(p, list[i], axis) && plan_stage(p, list[i])->update == DLC_UPDATE_NONE;
    return may || breaks_rule();
}

static inline int may_be_lane(const schedule_plan *p, const uint32_t *list, uint32_t n, uint32_t axis)
{
    int may = !is_crossed(p, list, n, axis, 1) && (!p->warp || !p->open[axis] || p->open[axis] >= p->warp);
    for (uint32_t i = 0; i < n; i++) {
        may = may && (keeps(p, list[i], axis) || sums(p, list[i], axis)) && plan_stage(p, list[i])->update == DLC_UPDATE_NONE;
        for (uint32_t a = 0; a < plan_stage(p, list[i])->axes.n; a++) /* kept axes are opened outside of a fold */
            may = may && (!sums(p, list[i], axis) || p->open[plan_stage(p, list[i])->axes.data[a]] == 1);
    }
    return may || breaks_rule();
}

/* Nothing but this axis is left to open. */
static inline int is_last_axis(const schedule_plan *p, const uint32_t *list, uint32_t n, uint32_t axis)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < p->kernel->axes.n; a++)
            if (a != axis && plan_needs(p, list[i], a))
                return 0;
    return 1;
}

static inline int may_be_written_out(const schedule_plan *p, uint32_t axis)
{
    int64_t extent;
    return (dlc_expr_is_int(p->kernel->pool, p->kernel->axes.data[axis].extent, &extent) && extent <= MOST_WRITTEN_OUT) ||
           breaks_rule();
}

/* An axis that all stages (or one of them) still need, or DLC_NO_AXIS. */
static inline uint32_t draw_needed(const schedule_plan *p, const uint32_t *list, uint32_t n, int all)
{
    uint32_t found = DLC_NO_AXIS, nfound = 0;
    for (uint32_t a = 0; a < p->kernel->axes.n; a++) {
        uint32_t needs = 0;
        for (uint32_t i = 0; i < n; i++)
            needs += (uint32_t)plan_needs(p, list[i], a);
        if (needs && (!all || needs == n) && may_loop(p, list, n, a) && draw(++nfound) == 0)
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
    return p->schedule->target->kind != DLC_TARGET_CUDA ? lanes : breaks_rule() ? (int64_t)32 << draw(3) : p->warp;
}

/* A loop over the axis, with the stages inside. */
static inline void draw_loop(schedule_plan *p, uint32_t axis, const uint32_t *list, uint32_t n)
{
    int64_t before = p->open[axis], tile = before || draw(4) ? 1 : 2 + draw(15);
    int was_leading = p->is_leading, was_lane = p->in_lane;
    dlc_loop_kind kind = draw(6) || !may_be_written_out(p, axis) ? DLC_LOOP_FOR : DLC_LOOP_UNROLL;
    if (before > 2 && draw(4) == 0)
        tile = 1 + draw((uint32_t)before - 1);
    if (p->is_leading && draw(2) && may_be_parallel(p, list, n, axis))
        kind = DLC_LOOP_PAR;
    else if (!p->in_lane && draw(n > 2 ? 4 : 2) == 0 && may_be_lane(p, list, n, axis))
        kind = DLC_LOOP_LANE;
    else if (is_crossed(p, list, n, axis, 1) || plan_stage(p, list[n - 1])->update != DLC_UPDATE_NONE)
        kind = DLC_LOOP_FOR, tile = 1; /* in order */
    p->is_leading &= kind == DLC_LOOP_PAR;
    if (kind == DLC_LOOP_LANE) {
        p->in_lane = 1;
        tile = draw_lanes(p);
        if (before > 1)
            while (tile > before)
                tile /= 2;
        int may_step = is_last_axis(p, list, n, axis) || breaks_rule();
        dlc_schedule_open_lane(p->schedule, axis, tile, draw(3) && may_step ? 2 + 2 * draw(2) : 1);
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
    dlc_dot_operands any;
    int is_known = !p->warp && dlc_dot_takes(DLC_DOT_FMA, NULL, 0, 0, plan_stage(p, s)->dtype[0], &any);
    if ((!is_known && !breaks_rule()) || p->in_lane || !plan_stage(p, s)->reduce.n ||
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

/* Hints of the leaf just added: where they mean something, and now and then where they do not. */
static inline void draw_hints(schedule_plan *p, uint32_t s)
{
    uint32_t n = p->schedule->nodes.n - 1;
    if (p->schedule->target->kind == DLC_TARGET_CUDA)
        return;
    if (!draw(3) && dlc_schedule_ahead_loop(p->schedule, n) != DLC_ROOT_NODE)
        p->schedule->nodes.data[n].ahead = (uint8_t)(1 + draw(8));
    if (!draw(3) && ((plan_stage(p, s)->buffer != DLC_NO_BUFFER && !dlc_is_updated(p->schedule->kernel, plan_stage(p, s)->buffer)) || breaks_rule()))
        p->schedule->nodes.data[n].nontemporal = 1;
}

/* Now and then padding is left out, where rows are padded. */
static inline void draw_skipped(schedule_plan *p, dlc_schedule_node *leaf)
{
    if (!leaf->over.n || draw(2))
        return;
    leaf->nskipped = (uint32_t)draw(leaf->over.n);
    if (!dlc_dot_inside(p->kernel, p->schedule, leaf, p->schedule->arena) && !breaks_rule())
        leaf->nskipped = 0;
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
                     is_reg                                                    ? DLC_PLACE_REG
                     : stage->buffer != DLC_NO_BUFFER && draw(3) && !is_cut ? DLC_PLACE_BUFFER
                                                                               : DLC_PLACE_SCRATCH);
    if (over.n && !draw(3))
        dlc_schedule_dot_cut(p->schedule, over.data[draw(over.n)], 1 + draw(12));
    draw_skipped(p, &p->schedule->nodes.data[p->schedule->nodes.n - 1]);
    p->schedule->nodes.data[p->schedule->nodes.n - 1].ahead = (uint8_t)(p->schedule->target->kind != DLC_TARGET_CUDA && !draw(3));
    if (!is_reg) {
        draw_nodes(p, rest, n);
        return;
    }
    dlc_schedule_open_as(p->schedule, s);
    for (uint32_t i = 0; i < follow; i++) {
        dlc_schedule_leaf(p->schedule, rest[i], i + 1 < n || plan_stage(p, rest[i])->buffer == DLC_NO_BUFFER ? draw_place(p, rest[i]) : DLC_PLACE_BUFFER);
        draw_hints(p, rest[i]);
    }
    dlc_schedule_close(p->schedule, 1);
    draw_nodes(p, rest + follow, n - follow);
}

/* Loops to points over what is neither rows, columns nor (mostly) summed; then the tile. What follows stands inside; `rest` lies
 * behind the stage in the list. */
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
        kind = p->is_leading && draw(2) && may_be_parallel(p, rest - 1, n + 1, axis) ? DLC_LOOP_PAR : DLC_LOOP_FOR;
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
        kind = p->is_leading && draw(2) && may_be_parallel(p, rest - 1, n + 1, axis) ? DLC_LOOP_PAR : DLC_LOOP_FOR;
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
    const dlc_stage *last = plan_stage(p, list[n - 1]);
    uint32_t axis = draw_needed(p, list, n, n == 1 || draw(10) != 0);
    if (n == 1 && last->update != DLC_UPDATE_NONE && !breaks_rule())
        for (uint32_t i = last->axes.n; i-- > 0;)
            axis = p->open[last->axes.data[i]] == 1 ? axis : last->axes.data[i]; /* the outermost first */
    if (axis != DLC_NO_AXIS && (n == 1 || draw(4)) && p->nloops < 24) {
        draw_loop(p, axis, list, n);
        return;
    }
    if (n > 1) {
        uint32_t first = last->update != DLC_UPDATE_NONE ? n - 1 : 1 + draw(n - 1);
        p->is_leading = 0;
        draw_nodes(p, list, first);
        draw_nodes(p, list + first, n - first);
        return;
    }
    dlc_schedule_leaf(p->schedule, list[0], draw_place(p, list[0]));
    draw_hints(p, list[0]);
}

/* --- blocks of threads --- */

/* The stage under loops dealt to threads, or to warps with lanes inside. */
static inline void draw_deal(schedule_plan *p, uint32_t s)
{
    const dlc_stage *stage = plan_stage(p, s);
    dlc_loop_kind kind = draw(3) ? DLC_LOOP_THREAD : DLC_LOOP_WARP;
    uint32_t lane = DLC_NO_AXIS, nloops = 0;
    for (uint32_t i = 0; i < stage->axes.n + stage->reduce.n; i++) {
        int is_kept = i < stage->axes.n;
        uint32_t axis = is_kept ? stage->axes.data[i] : stage->reduce.data[i - stage->axes.n];
        if (p->open[axis] == 1)
            continue;
        if (kind == DLC_LOOP_WARP && lane == DLC_NO_AXIS && nloops && draw(2)) {
            lane = axis;
            continue;
        }
        dlc_schedule_open(p->schedule, is_kept && draw(8) ? kind : DLC_LOOP_FOR, axis, 1);
        nloops++;
    }
    if (lane != DLC_NO_AXIS)
        dlc_schedule_open_lane(p->schedule, lane, draw_lanes(p), draw(3) ? 1 : 2);
    dlc_schedule_leaf(p->schedule, s, draw_place(p, s));
    dlc_schedule_close(p->schedule, nloops + (lane != DLC_NO_AXIS));
}

static inline void draw_block(schedule_plan *p, const uint32_t *list, uint32_t n)
{
    uint32_t nloops = 0, axis;
    p->schedule->threads = 32u << draw(3);
    while (draw(3) && nloops < 3 && (axis = draw_needed(p, list, n, 1)) != DLC_NO_AXIS) {
        p->open[axis] = draw(2) ? 1 : 2 + draw(7);
        dlc_schedule_open(p->schedule, p->is_leading && draw(3) ? DLC_LOOP_PAR : DLC_LOOP_FOR, axis, p->open[axis]);
        p->is_leading &= p->schedule->nodes.data[p->schedule->nodes.n - 1].kind == DLC_LOOP_PAR;
        nloops++;
        if (p->open[axis] > 1)
            break;
    }
    for (uint32_t i = 0; i < n; i++)
        draw_deal(p, list[i]);
    dlc_schedule_close(p->schedule, nloops);
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

/* A load of a constant in another layout: one of its axes in blocks. */
static inline void draw_pack(dlc_schedule *schedule)
{
    const dlc_kernel *kernel = schedule->kernel;
    uint32_t s = draw(kernel->stages.n), b = draw(kernel->buffers.n);
    dlc_expr load = kernel->buffers.data[b].role == DLC_ROLE_CONST ? dlc_schedule_operand(schedule, s, kernel->buffers.data[b].name) : 0;
    dlc_copy_part parts[DLC_MAX_PARTS];
    uint32_t rank = load ? kernel->buffers.data[b].type.rank : 0, at = rank ? draw(rank) : 0, n = 0;
    int32_t block = 4 << draw(3);
    if (!rank || rank + 1 > DLC_MAX_PARTS)
        return;
    for (uint32_t d = 0; d <= rank; d++) {
        uint32_t axis = dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, load, d < rank ? d : at));
        if (axis == DLC_NO_AXIS)
            return;
        parts[n] = (dlc_copy_part){.block = d == at || d == rank ? block : 1, .inner = d == rank};
        dlc_vec_push(schedule->arena, &parts[n].axes, axis);
        n++;
    }
    dlc_schedule_pack(schedule, "packed", s, load, parts, n);
}

static inline uint32_t leaf_of(const dlc_schedule *schedule, uint32_t stage)
{
    uint32_t n = 0;
    while (n < schedule->nodes.n && (schedule->nodes.data[n].kind != DLC_LOOP_LEAF || schedule->nodes.data[n].stage != stage))
        n++;
    return n;
}

/* The loop in whose iteration the stage's value is whole. */
static inline uint32_t whole_at(const schedule_plan *p, uint32_t stage)
{
    uint32_t whole = dlc_schedule_parent(p->schedule, leaf_of(p->schedule, stage));
    for (uint32_t n = whole; n != DLC_ROOT_NODE; n = dlc_schedule_parent(p->schedule, n))
        if (p->schedule->nodes.data[n].axis != DLC_NO_AXIS && sums(p, stage, p->schedule->nodes.data[n].axis))
            whole = dlc_schedule_parent(p->schedule, n);
    return whole;
}

/* Values in registers are read in the same iteration. */
static inline void mend_places(schedule_plan *p)
{
    for (uint32_t n = 0; n < p->schedule->nodes.n; n++) {
        dlc_schedule_node *leaf = &p->schedule->nodes.data[n];
        if (leaf->kind != DLC_LOOP_LEAF || leaf->place != DLC_PLACE_REG || leaf->row != DLC_DOT_NONE || breaks_rule())
            continue;
        uint32_t whole = whole_at(p, leaf->stage);
        for (uint32_t r = 0; r < p->kernel->stages.n; r++) {
            uint32_t reader = leaf_of(p->schedule, r);
            if (!(p->reads[r] >> leaf->stage & 1) || reader == p->schedule->nodes.n)
                continue;
            if (p->apart[r][leaf->stage] || !dlc_schedule_is_inside(p->schedule, reader, whole))
                leaf->place = plan_stage(p, leaf->stage)->buffer == DLC_NO_BUFFER ? DLC_PLACE_SCRATCH : DLC_PLACE_BUFFER;
        }
    }
}

static inline void disturb(dlc_schedule *schedule)
{
    dlc_schedule_node *node = &schedule->nodes.data[draw(schedule->nodes.n)];
    if (node->kind == DLC_LOOP_LEAF)
        node->place = (uint8_t)draw(3);
    else if (node->kind == DLC_LOOP_FOR || node->kind == DLC_LOOP_PAR)
        node->kind = (uint8_t)draw(3);
}

/* Steps away from one of the chooser's; NULL: it has none. */
static inline dlc_schedule *draw_walk(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena)
{
    dlc_candidates near;
    dlc_choose_candidates(kernel, target, arena, &near);
    if (!near.n)
        return NULL;
    dlc_schedule *at = near.data[draw(near.n)].schedule;
    for (uint32_t steps = draw(4); steps; steps--) {
        dlc_choose_neighbours(kernel, at, arena, &near);
        at = near.n ? near.data[draw(near.n)].schedule : at;
    }
    return at;
}

/* Not resolved. */
static inline dlc_schedule *draw_schedule(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena)
{
    dlc_schedule *schedule = draw(4) ? NULL : draw_walk(kernel, target, arena);
    if (schedule)
        return schedule;
    schedule = dlc_schedule_create(kernel, target, arena);
    schedule->keeps = 1;
    uint32_t list[MOST_PLANNED], n = kernel->stages.n;
    for (uint32_t s = 0; s < n; s++)
        list[s] = s;
    if (draw(3) == 0)
        draw_pack(schedule);
    if (draw(4) == 0)
        draw_flat(schedule);
    if (draw(5) == 0)
        n = draw_copy(schedule, list, n);
    if (n > 1 && breaks_rule()) {
        uint32_t at = draw(n - 1), s = list[at];
        list[at] = list[at + 1];
        list[at + 1] = s;
    }
    schedule_plan p = {.schedule = schedule, .kernel = schedule->kernel, .is_leading = 1};
    p.open = dlc_new_array(arena, int64_t, schedule->kernel->axes.n + 1);
    p.warp = target->kind == DLC_TARGET_CUDA ? (int64_t)32 << draw(3) : 0;
    find_reads(&p);
    if (target->kind == DLC_TARGET_CUDA && draw(2))
        draw_block(&p, list, n);
    else
        draw_nodes(&p, list, n);
    mend_places(&p);
    if (breaks_rule())
        disturb(schedule);
    return schedule;
}

#endif

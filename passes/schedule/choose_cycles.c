/*
 * What a stage costs where vectors run along an axis, by counting cycles: how its loads and stores move along that axis. Neighbours in
 * memory cost one access a vector, anything else one an element; constants may be laid out so that they are neighbours.
 */
#include "passes/schedule/choose.h"

#include <string.h>

#define LOOKUP_CYCLES 6.0 /* of a vector: four loads of the table, two permutations, a choice */
#define TURNED_CYCLES 0.4 /* of an element of a square: two shuffles of each vector for each power of two */
#define TURNED_ROW 0.7    /* of an element of a register tile's rows, fewer than lanes */
#define WOVEN_CYCLES 0.5  /* of a vector for each of the others, two of which a cycle takes */
#define MISSED_ROW 2.4    /* the same where lanes lie a way of L1 apart: none of their lines is there any more when the next tile goes on in it */

enum {
    LEAST_TURNED = 4, /* lanes of a square */
    FOLD_CYCLES = 12  /* folding a vector's lanes into one value */
};

typedef struct {
    dlc_copy_part part[DLC_MAX_RANK];
    uint32_t n;
} layout_parts;

static int add_part(const dlc_chooser *c, layout_parts *parts, uint32_t axis)
{
    if (axis == DLC_NO_AXIS || parts->n == DLC_MAX_RANK)
        return 0;
    dlc_copy_part *part = &parts->part[parts->n++];
    *part = (dlc_copy_part){.block = 1};
    dlc_vec_push(c->arena, &part->axes, axis);
    return 1;
}

/* The axis with the largest step in the index, and what is left of it. */
static uint32_t leading_axis(const dlc_kernel *kernel, dlc_expr *index)
{
    uint32_t best = DLC_NO_AXIS;
    dlc_expr coefficient, rest, left = *index;
    int64_t most = 0, step;
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        if (!dlc_expr_uses_axis(kernel->pool, *index, a) || !dlc_expr_linear(kernel->pool, *index, a, &coefficient, &rest) ||
            !dlc_expr_is_int(kernel->pool, coefficient, &step) || step <= most)
            continue;
        best = a;
        most = step;
        left = rest;
    }
    *index = left;
    return best;
}

/* The axes of an index i*B + j, outer to inner; 0: it is something else. */
static int add_digits(const dlc_chooser *c, dlc_expr index, layout_parts *parts)
{
    while (dlc_bare_axis(c->kernel->pool, index) == DLC_NO_AXIS)
        if (!add_part(c, parts, leading_axis(c->kernel, &index)))
            return 0;
    return add_part(c, parts, dlc_bare_axis(c->kernel->pool, index));
}

/* The constant's dimensions with `dim` innermost; 0: there is no such layout. */
static int lanes_layout(const dlc_chooser *c, dlc_expr load, uint32_t dim, layout_parts *parts)
{
    uint32_t rank = dlc_load_rank(c->kernel->pool, load);
    *parts = (layout_parts){.n = 0};
    for (uint32_t d = 0; d <= rank; d++)
        if (d != dim && !add_digits(c, dlc_arg(c->kernel->pool, load, d == rank ? dim : d), parts))
            return 0;
    return 1;
}

/* A constant that is read once, in a dimension by this axis alone, may be laid out with it innermost. */
static int can_lay_out(const dlc_chooser *c, dlc_source source, uint32_t axis, uint32_t *dim)
{
    const dlc_kernel *kernel = c->kernel;
    layout_parts parts;
    dlc_expr load = 0;
    int64_t found = -1;
    if (DLC_SOURCE_IS_STAGE(source) || kernel->buffers.data[source].role != DLC_ROLE_CONST)
        return 0;
    if (kernel->buffers.data[source].layout.nparts || kernel->buffers.data[source].type.rank < 2)
        return 0;
    for (uint32_t s = 0; s < c->nstages; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if (access->source != source)
                continue;
            if (load && access->load != load)
                return 0;
            load = access->load;
        }
    for (uint32_t d = 0; load && d < dlc_load_rank(kernel->pool, load); d++)
        if (dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, load, d)) == axis)
            found = d;
        else if (dlc_expr_uses_axis(kernel->pool, dlc_arg(kernel->pool, load, d), axis))
            return 0;
    *dim = (uint32_t)found;
    return found >= 0 && lanes_layout(c, load, *dim, &parts);
}

int dlc_choose_lays_out(const dlc_chooser *c, const dlc_access_fact *access, uint32_t axis)
{
    uint32_t dim;
    return access->load && !dlc_load_guard(c->kernel->pool, access->load) && can_lay_out(c, access->source, axis, &dim) &&
           dim + 1u < dlc_load_rank(c->kernel->pool, access->load);
}

/* How a load at windows of a stage moves along the lane where its scratch lies together along an axis that is known: 0 not at
 * all, 1 from neighbour to neighbour, DLC_ODD_STRIDE otherwise; -1: another load, or not known. */
static int64_t window_stride(const dlc_chooser *c, const dlc_access_fact *access, uint32_t lane)
{
    const dlc_pool *pool = c->kernel->pool;
    uint32_t source = DLC_SOURCE_INDEX(access->source), at;
    int is_window = 0;
    if (!access->load || !DLC_SOURCE_IS_STAGE(access->source) || !c->together ||
        !dlc_ids_find(&c->kernel->stages.data[source].axes, c->together[source], &at))
        return -1;
    for (uint32_t d = 0; d < dlc_load_rank(pool, access->load); d++)
        is_window |= dlc_lower_overlaps(c->kernel, dlc_arg(pool, access->load, d));
    for (uint32_t d = 0; is_window && d < dlc_load_rank(pool, access->load); d++)
        if (d != at && dlc_expr_uses_axis(pool, dlc_arg(pool, access->load, d), lane))
            return DLC_ODD_STRIDE;
    return is_window ? dlc_choose_stride(c, dlc_arg(pool, access->load, at), lane) : -1;
}

/* Vectors are registers of the processor, and it is this tree that emits their code. */
static int can_turn(const dlc_target *target, uint32_t width)
{
    return target->kind == DLC_TARGET_CPU && !target->plugin && width >= LEAST_TURNED && width * 4 == target->vector_bytes;
}

int dlc_choose_is_turned(const dlc_chooser *c, const dlc_access_fact *access, uint32_t rows, uint32_t width)
{
    return can_turn(c->target, width) && dlc_turns_rows(c->target, (dlc_dtype)c->kernel->buffers.data[access->source].type.dtype) &&
           dlc_choose_stride(c, access->offset, rows) == 1;
}

int dlc_choose_crosses(const dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, uint32_t across, uint32_t width)
{
    const dlc_pool *pool = c->kernel->pool;
    return access->load && !DLC_SOURCE_IS_STAGE(access->source) && can_turn(c->target, width) &&
           dlc_is_turnable((dlc_dtype)dlc_node_of(pool, access->load)->dtype) && !dlc_node_of(pool, access->load)->flags &&
           dlc_choose_stride(c, access->offset, across) == 1 &&
           dlc_choose_stride(c, access->offset, lane) != 0 && dlc_choose_stride(c, access->offset, lane) != 1;
}

int dlc_choose_weaves(const dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, uint32_t woven, uint32_t width)
{
    int64_t points;
    return !access->load && !DLC_SOURCE_IS_STAGE(access->source) && c->target->kind == DLC_TARGET_CPU && !c->target->plugin && width > 1 &&
           dlc_const_extent(c->kernel, woven, &points) && points > 1 && points <= DLC_MOST_WOVEN &&
           dlc_choose_stride(c, access->offset, woven) == 1 && dlc_choose_stride(c, access->offset, lane) == points;
}

uint32_t dlc_choose_across(const dlc_chooser *c, uint32_t s, dlc_expr load, const dlc_ids *axes, uint32_t lane, uint32_t width)
{
    for (uint32_t i = 0; i < axes->n; i++) {
        if (axes->data[i] == lane || c->extent[axes->data[i]] < width)
            continue;
        for (uint32_t a = 0; a < c->accesses[s].n; a++)
            if ((!load || c->accesses[s].data[a].load == load) &&
                dlc_choose_crosses(c, &c->accesses[s].data[a], lane, axes->data[i], width))
                return axes->data[i];
    }
    return DLC_NO_AXIS;
}

int64_t dlc_choose_granules(const dlc_chooser *c, uint32_t s, dlc_expr load, uint32_t axis, uint32_t lane, uint32_t width, int64_t granule)
{
    const dlc_pool *pool = c->kernel->pool;
    for (uint32_t a = 0; a < c->accesses[s].n && granule > 1; a++) {
        const dlc_access_fact *access = &c->accesses[s].data[a];
        if (!access->load || access->load != load || dlc_node_of(pool, load)->flags || dlc_load_guard(pool, load) || !can_turn(c->target, width))
            continue;
        if (dlc_choose_stride(c, access->offset, axis) == 1 && c->extent[axis] >= granule * (int64_t)width)
            return granule * (int64_t)width;
        return dlc_choose_stride(c, access->offset, lane) == 1 ? granule : 0;
    }
    return 0;
}

/* Lanes take what they want of a short row that a register or two hold (codegen/nest.c). */
static int is_row(const dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, uint32_t width)
{
    const dlc_pool *pool = c->kernel->pool;
    int64_t length;
    if (!access->load || DLC_SOURCE_IS_STAGE(access->source) || dlc_dtype_bytes(dlc_node_of(pool, access->load)->dtype) != 4 ||
        dlc_node_of(pool, access->load)->flags || dlc_load_guard(pool, access->load))
        return 0;
    const dlc_buffer *buffer = &c->kernel->buffers.data[access->source];
    uint32_t last = buffer->type.rank - 1u;
    for (uint32_t d = 0; d < last; d++)
        if (dlc_expr_uses_axis(pool, dlc_arg(pool, access->load, d), lane))
            return 0;
    return !buffer->layout.nparts && dlc_expr_is_int(pool, buffer->type.dims[last], &length) &&
           length <= dlc_longest_row(c->target, width);
}

/* Lanes share a vector's elements, in every vector the same way (dlc_nest_is_spread). */
static int is_spread(const dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, uint32_t width)
{
    dlc_pool *pool = c->kernel->pool;
    dlc_ranges ranges = dlc_kernel_ranges(c->kernel);
    dlc_expr *with = dlc_new_array(c->arena, dlc_expr, c->kernel->axes.n);
    int64_t least = INT64_MAX, most = INT64_MIN;
    if (!access->load || DLC_SOURCE_IS_STAGE(access->source) || c->target->kind != DLC_TARGET_CPU || c->extent[lane] < (int64_t)width ||
        !dlc_choose_is_known(c, lane) || dlc_expr_has_load(pool, access->offset) || dlc_choose_stride(c, access->offset, lane) != DLC_ODD_STRIDE)
        return 0;
    dlc_expr first = 0;
    for (uint32_t l = 0; l < width; l++) {
        int64_t at;
        with[lane] = dlc_addi(pool, dlc_muli(pool, dlc_expr_axis(pool, lane), width), l); /* of any vector */
        dlc_expr offset = dlc_expr_simplify(pool, dlc_expr_substitute(pool, access->offset, with, c->kernel->axes.n), &ranges);
        first = l ? first : offset;
        if (!dlc_expr_is_int(pool, dlc_expr_simplify(pool, dlc_sub(pool, offset, first), &ranges), &at))
            return 0;
        least = at < least ? at : least;
        most = at > most ? at : most;
    }
    return most - least < (int64_t)width;
}

/* Cycles of one point's memory access when vectors of `width` run along `lane` (none: one point at a time). */
static double access_cycles(const dlc_chooser *c, const dlc_access_fact *access, uint32_t lane, uint32_t width)
{
    uint32_t dim;
    if (DLC_SOURCE_IS_STAGE(access->source) && c->place[DLC_SOURCE_INDEX(access->source)] == DLC_PLACE_REG)
        return 0;
    if (lane == DLC_NO_AXIS)
        return 1;
    if (DLC_SOURCE_IS_STAGE(access->source) &&
        (lane == c->lane || dlc_ids_find(&c->roots, lane, NULL)))
        return 1.0 / width; /* scratch keeps a vector per point */
    int64_t stride = window_stride(c, access, lane);
    if (stride < 0)
        stride = dlc_choose_stride(c, access->offset, lane);
    if (stride == 0)
        return 0.25 / width; /* the same for all lanes, often hoisted */
    if (stride == 1 || can_lay_out(c, access->source, lane, &dim) || is_row(c, access, lane, width))
        return 1.0 / width;
    if (c->across != DLC_NO_AXIS && dlc_choose_crosses(c, access, lane, c->across, width))
        return TURNED_CYCLES;
    if (!access->load && !DLC_SOURCE_IS_STAGE(access->source) && c->rows != DLC_NO_AXIS && dlc_choose_is_turned(c, access, c->rows, width))
        return dlc_choose_stride(c, access->offset, lane) * 4 % DLC_WAY_BYTES ? TURNED_ROW : MISSED_ROW;
    if (c->woven != DLC_NO_AXIS && dlc_choose_weaves(c, access, lane, c->woven, width))
        return (1 + WOVEN_CYCLES * (double)(c->extent[c->woven] - 1)) / width;
    if (access->load && dlc_looked_up(c->target, c->kernel, access->load))
        return LOOKUP_CYCLES / width;
    if (access->load && stride >= 2 && stride <= DLC_MOST_STRIDE && c->target->kind == DLC_TARGET_CPU)
        return 1.5 * (double)stride / width; /* whole vectors, and a permutation of each */
    if (is_spread(c, access, lane, width))
        return 1.5 / width; /* a vector, and a permutation of it */
    double by_pieces = access->load && stride == DLC_ODD_STRIDE ? dlc_choose_pieces(c, access, lane, width) : -1;
    if (by_pieces >= 0)
        return by_pieces;
    return 2.4; /* gathered: an access an element, and the inserting */
}

static double rounded(int64_t extent, uint32_t width)
{
    return (double)((extent + width - 1) / width * width);
}

double dlc_choose_stage_cycles(const dlc_chooser *c, uint32_t s, uint32_t lane, uint32_t width)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    double points = dlc_choose_points(c, &stage->axes) * dlc_choose_points(c, &stage->reduce);
    double cycles = lane == DLC_NO_AXIS ? c->work[s] : c->work[s] / width;
    for (uint32_t i = 0; i < c->accesses[s].n; i++)
        cycles += points * access_cycles(c, &c->accesses[s].data[i], lane, width);
    if (lane != DLC_NO_AXIS)
        cycles *= rounded(c->extent[lane], width) / (double)c->extent[lane];
    cycles /= DLC_LANE_OPS;
    if (lane != DLC_NO_AXIS && dlc_ids_find(&stage->reduce, lane, NULL))
        cycles += FOLD_CYCLES * dlc_choose_points(c, &stage->axes);
    return cycles;
}

/* The innermost dimension, the lanes', by blocks: what a step goes down lies together, so it is read as it comes from memory. */
static void cut_lanes(const dlc_chooser *c, layout_parts *parts)
{
    dlc_copy_part *last = &parts->part[parts->n - 1];
    int64_t extent, block = c->lanes_block;
    if (block <= 1 || parts->n == DLC_MAX_RANK || !dlc_const_extent(c->kernel, last->axes.data[0], &extent) || extent == block ||
        extent % block)
        return;
    dlc_copy_part outer = *last;
    outer.block = (int32_t)block;
    last->block = (int32_t)block;
    last->inner = 1;
    memmove(parts->part + 1, parts->part, parts->n++ * sizeof *parts->part);
    parts->part[0] = outer;
}

/* What a lane adds up by granules along an axis lies by them. */
static void cut_granules(const dlc_own_dot *own, layout_parts *parts)
{
    uint32_t at = 0;
    while (at < parts->n && (parts->part[at].axes.n != 1 || parts->part[at].axes.data[0] != own->axis))
        at++;
    if (own->row == DLC_DOT_NONE || at == parts->n || parts->n == DLC_MAX_RANK)
        return;
    parts->part[at].block = dlc_dots[own->row].granule;
    parts->part[parts->n] = parts->part[at];
    parts->part[parts->n++].inner = 1;
}

/* Constants read along the lanes lie that way: the filters of a depthwise convolution. */
void dlc_choose_lay_out_constant(dlc_chooser *c, uint32_t s, dlc_expr load, uint32_t dim, const dlc_own_dot *own)
{
    const dlc_buffer *buffer = &c->kernel->buffers.data[dlc_node_of(c->kernel->pool, load)->imm.id];
    layout_parts parts;
    if (dim + 1u >= buffer->type.rank || !lanes_layout(c, load, dim, &parts))
        return;
    cut_lanes(c, &parts);
    cut_granules(own, &parts);
    dlc_schedule_pack(c->schedule, dlc_arena_printf(c->arena, "%s_by_lanes", buffer->name), s, load, parts.part, parts.n);
}

void dlc_choose_lay_out_constants(dlc_chooser *c, uint32_t s, uint32_t lane, const dlc_own_dot *own)
{
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        uint32_t dim;
        if (access->load && can_lay_out(c, access->source, lane, &dim))
            dlc_choose_lay_out_constant(c, s, access->load, dim, own);
    }
}

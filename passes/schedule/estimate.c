/*
 * Estimates: bytes, operations and a time bound of a kernel under its schedule. They rank alternatives (fuse or not, which
 * merge first) and are printed by `dlc explain`; nobody takes them for measurements.
 */
#include "passes/schedule/choose.h"

#include <math.h>

enum {
    DOT_LOSS_PERCENT = 10, /* distance from peak of matrices, of warps or in tile registers */
    WINDOW_VECTORS = 160,  /* in as many steps of lanes the processor looks ahead: about three operations each */
    THREAD_LANES = 32,     /* of a warp */
    MANY_THREADS = 8
};
#define LOOP_CYCLES 1.0    /* an iteration of lanes: address, comparison */
#define HALVING_CYCLES 3.0 /* folding one half of a vector's lanes into the other */
#define SPREAD_STORE 2.0   /* loads in whose time a vector is stored */
#define FOR_NOTHING 0.05   /* of a stage: vectors beside one another where none waits for another */
#define BEGUN_EARLY 0.15   /* of what a fold's chain takes where it is begun while the row before is still worked on */
#define GUARD_CYCLES 5.0   /* a mask, and a choice between what it lets through: */
#define MASKED_CYCLES 0.5  /* where vectors of 64 bytes are loaded under one */
#define HIDING 4.0         /* of what takes as long, a fifth is waited for; of half of it, a sixtieth */
#define PANEL_CYCLES 1.3   /* an element copied into a panel */
#define TURNED_PANEL_CYCLES 0.6 /* the same where squares of what is read are turned */
#define PLAIN_RUN_CYCLES 3.0 /* starting a run of elements to copy that lie where additions say */
#define PAST_CACHES 0.3    /* of what is stored so that what is read does not wait for: both ways are used */
#define GRAIN_US 1.5       /* a thread of its own is worth this: fork, join and what goes from cache to cache take a third of it */
#define LEAST_US 1e-6      /* of a unit */
#define UNHIDDEN_MOVES 0.3 /* of computing or moving, whichever is shorter: stores that miss hold up what is computed */
#define STREWN 0.4         /* of the time in which that comes which no prefetcher follows */
#define STORED_ACROSS 0.5  /* of what lines take from another's cache: stores wait for it only where many follow one another */
#define HELD_FROM 0.5      /* of what a kernel moves: caches of all threads that hold so much still have none of it, */
#define HELD_TO 2.0        /* and all of it where they hold so much */
#define UNIT_HOLDS 0.67    /* of L2, of what one unit goes through: the rest is what else comes by */
#define OWN_L3 0.5         /* of an L3: the rest is others'; and of what fits that, so much is still there when it is read */

double dlc_estimate_hiding(double a, double b, double exponent)
{
    return pow(pow(a, exponent) + pow(b, exponent), 1 / exponent);
}

double dlc_estimate_beside(double a, double b)
{
    return dlc_estimate_hiding(a, b, HIDING);
}

double dlc_choose_elems(const dlc_chooser *c, uint32_t b)
{
    const dlc_buffer *buffer = &c->kernel->buffers.data[b];
    double elems = 1;
    for (uint8_t d = 0; d < buffer->type.rank; d++)
        elems *= (double)dlc_expr_eval(c->kernel->pool, buffer->type.dims[d], c->symbols);
    return elems;
}

/* What a kernel moves: weights, which a model has more of than caches hold, and what other kernels wrote or will read. */
typedef struct {
    double weights, others;
    double whole; /* the others' buffers: what is read of one lies among what is not */
    double past;  /* of the others, stored past the caches */
    double dealt_weights, dealt_near, dealt_others; /* of which each thread moves its share; near: of weights that L2 holds */
    double across, stored_across; /* of dealt_others, not in the order of memory */
} moved;

double dlc_estimate_kept_bytes(const dlc_target *target)
{
    double l3 = target->machine->l3_bytes * OWN_L3;
    return l3 > target->l2_bytes ? l3 : target->l2_bytes;
}

/* What bytes take that other kernels wrote or will read; *far_us: of that, what memory takes. */
static double others_us(const dlc_target *target, const moved *m, double bytes, double *far_us)
{
    const dlc_machine *machine = target->machine;
    *far_us = 0;
    if (m->whole + m->weights <= target->l2_bytes)
        return bytes / machine->near_bytes_per_us;
    double far = machine->l3_bytes_per_us <= 0 || m->whole > machine->l3_bytes * OWN_L3 ? 1 : 1 - OWN_L3;
    *far_us = bytes * far / machine->far_bytes_per_us;
    return *far_us + (far < 1 ? bytes * (1 - far) / machine->l3_bytes_per_us : 0);
}

/* The share of what comes by that L2 has not kept from the time before: of little more than it holds most is still there. */
static double beyond_l2(const dlc_target *target, const moved *m)
{
    double beyond = (m->whole + m->weights) / target->l2_bytes - 1;
    return beyond < 0 ? 0 : beyond > 1 ? 1 : beyond;
}

/* moving_us, far_us and dealt_us of the estimate. */
static void find_moving(const dlc_target *target, const moved *m, dlc_estimate *result)
{
    const dlc_machine *machine = target->machine;
    double bytes = m->weights + m->others, far;
    if (target->kind == DLC_TARGET_CUDA) {
        result->moving_us = bytes / (bytes > target->l2_bytes ? machine->far_bytes_per_us : machine->near_bytes_per_us);
        return;
    }
    double weights = m->weights / machine->far_bytes_per_us, others = others_us(target, m, m->others - m->past * (1 - PAST_CACHES), &far);
    result->moving_us = others + weights;
    result->far_us = far + weights;
    result->dealt_us = others_us(target, m, m->dealt_others, &far) + m->dealt_weights / machine->far_bytes_per_us;
    result->dealt_us += machine->l3_bytes_per_us > 0 ? m->dealt_near / machine->l3_bytes_per_us : 0;
    result->dealt_us = result->dealt_us < result->moving_us ? result->dealt_us : result->moving_us;
    if (m->dealt_others <= 0 || machine->l3_bytes_per_us <= 0)
        return;
    result->held = m->whole + m->weights > 0 ? target->l2_bytes / (m->whole + m->weights) : 1;
    if (m->whole + m->weights <= target->l2_bytes) {
        result->crossed_us = (m->others - m->dealt_others) / machine->l3_bytes_per_us;
        result->across_us = m->stored_across / machine->l3_bytes_per_us;
    } else {
        double in_order = m->dealt_others - m->across;
        result->near_us = others_us(target, m, in_order, &result->near_far_us) - in_order / machine->near_bytes_per_us;
    }
}

/* Which elements of the buffer are met depends on the axes, for all that is read and stored of it. */
static int meets_axes(const dlc_chooser *c, uint32_t b, const dlc_ids *axes)
{
    int meets = 0;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if ((access->load ? access->source : c->kernel->stages.data[s].buffer) != b)
                continue;
            meets = 0;
            for (uint32_t a = 0; a < axes->n; a++)
                meets |= dlc_expr_uses_axis(c->kernel->pool, access->offset, axes->data[a]);
            if (!meets)
                return 0;
        }
    return meets;
}

/* The index of the load's last dimension depends on one of the axes. */
static int deals_columns(const dlc_pool *pool, dlc_expr load, const dlc_ids *axes)
{
    uint32_t rank = dlc_load_rank(pool, load);
    for (uint32_t a = 0; a < axes->n && rank > 0; a++)
        if (dlc_expr_uses_axis(pool, dlc_arg(pool, load, rank - 1), axes->data[a]))
            return 1;
    return 0;
}

/* What threads that share the points of axes have of the buffer lies between each other's: another axis goes further in memory. Columns that are
 * read may have been made by columns, too. */
static int is_across(const dlc_chooser *c, const dlc_access_fact *access, const dlc_ids *axes)
{
    int64_t dealt = 0, furthest = 0;
    for (uint32_t a = 0; a < c->naxes; a++) {
        int64_t stride = c->extent[a] > 1 ? dlc_choose_stride(c, access->offset, a) : 0;
        if (stride == DLC_ODD_STRIDE)
            return 0; /* nobody knows */
        stride = stride < 0 ? -stride : stride;
        int64_t *most = dlc_ids_find(axes, a, NULL) ? &dealt : &furthest;
        *most = stride > *most ? stride : *most;
    }
    return dealt > 0 && dealt < furthest && !(access->load && deals_columns(c->kernel->pool, access->load, axes));
}

static int is_dealt_across(const dlc_chooser *c, uint32_t b, const dlc_ids *axes)
{
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if ((access->load ? access->source : c->kernel->stages.data[s].buffer) == b && is_across(c, access, axes))
                return 1;
        }
    return 0;
}

/* What threads that share the points of axes move by parts; all of them read the rest. Of weights that L2 holds, the first thread to read one
 * brings it to L3. */
static void find_dealt(const dlc_chooser *c, const dlc_ids *axes, const double *bytes, moved *sum)
{
    for (uint32_t b = 0; b < c->kernel->buffers.n; b++) {
        if (!meets_axes(c, b, axes))
            continue;
        double across = c->kernel->buffers.data[b].role != DLC_ROLE_CONST && is_dealt_across(c, b, axes) ? bytes[b] : 0;
        sum->across += across;
        sum->stored_across += c->kernel->buffers.data[b].role == DLC_ROLE_OUT ? across : 0;
        if (c->kernel->buffers.data[b].role != DLC_ROLE_CONST)
            sum->dealt_others += bytes[b];
        else
            *(bytes[b] >= c->target->l2_bytes ? &sum->dealt_weights : &sum->dealt_near) += bytes[b];
    }
}

/* A table that is gathered from is touched where it is read only. Threads share the points of the axes. */
static moved moved_of(const dlc_chooser *c, const dlc_ids *axes)
{
    double *touched = dlc_new_array(c->arena, double, c->kernel->buffers.n + 1);
    moved sum = {0};
    for (uint32_t s = 0; s < c->kernel->stages.n; s++) {
        const dlc_stage *stage = &c->kernel->stages.data[s];
        double points = dlc_choose_points(c, &stage->axes) * dlc_choose_points(c, &stage->reduce);
        for (uint32_t i = 0; i < c->accesses[s].n; i++)
            if (!DLC_SOURCE_IS_STAGE(c->accesses[s].data[i].source))
                touched[c->accesses[s].data[i].source] += points;
    }
    for (uint32_t b = 0; b < c->kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &c->kernel->buffers.data[b];
        double elems = dlc_choose_elems(c, b), size = dlc_dtype_bytes(buffer->type.dtype);
        double bytes = touched[b] = (elems < touched[b] ? elems : touched[b]) * size;
        sum.weights += buffer->role == DLC_ROLE_CONST ? bytes : 0;
        sum.others += buffer->role == DLC_ROLE_CONST ? 0 : bytes;
        sum.whole += buffer->role == DLC_ROLE_CONST ? 0 : elems * size;
    }
    find_dealt(c, axes, touched, &sum);
    return sum;
}

double dlc_choose_moved(const dlc_chooser *c)
{
    dlc_ids none = {0};
    moved sum = moved_of(c, &none);
    return sum.weights + sum.others;
}

/* --- the tree --- */

typedef struct {
    dlc_chooser c;
    const dlc_schedule *schedule;
} estimator;

static const dlc_schedule_node *node_at(const estimator *e, uint32_t n)
{
    return &e->schedule->nodes.data[n];
}

/* Lanes are those of a CPU's vectors, not a warp's. */
static int has_vectors(const estimator *e)
{
    return e->schedule->target->kind == DLC_TARGET_CPU;
}

/* What operations of vectors take of the time that multiply-adds would. */
static double lane_share(const estimator *e)
{
    return has_vectors(e) ? DLC_LANE_OPS / dlc_lane_ops(e->schedule->target) : 1;
}

/* How often what a loop holds runs through its axis: the region where it is not open yet, of which some are smaller. */
static double points_of_loop(const estimator *e, uint32_t n)
{
    double points = 0, count = 0;
    if (dlc_schedule_loop_over(e->schedule, dlc_schedule_parent(e->schedule, n), node_at(e, n)->axis) != DLC_ROOT_NODE)
        return 1; /* counted there */
    dlc_blocks blocks = dlc_estimate_blocks(&e->c, e->schedule, n);
    for (uint32_t i = 0; i < blocks.n; i++) {
        points += blocks.data[i].size * blocks.data[i].count;
        count += blocks.data[i].count;
    }
    return points / count;
}

/* Of an axis that the stage has not, loops go by whole tiles: the innermost around the leaf says how many points make one. */
static double points_at_once(const estimator *e, uint32_t leaf, uint32_t axis)
{
    const dlc_stage *stage = &e->c.kernel->stages.data[node_at(e, leaf)->stage];
    if (dlc_ids_find(&stage->axes, axis, NULL) || dlc_ids_find(&stage->reduce, axis, NULL))
        return 1;
    return (double)node_at(e, dlc_schedule_loop_over(e->schedule, leaf, axis))->tile;
}

static double tiles_of(double points, double tile)
{
    return tile > 1 ? ceil(points / tile) : points;
}

/* Iterations of the parallel loop: of those around what is kept, inside of it or not. */
static double pars_of(const estimator *e, int is_kept)
{
    const dlc_kept *kept = &e->schedule->kept;
    uint32_t from = is_kept ? kept->first - kept->npars : 0, to = is_kept ? kept->first : kept->first - kept->npars;
    double n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= ceil((double)e->c.extent[node_at(e, i)->axis] / (double)node_at(e, i)->tile);
    return n;
}

/* The axes whose points threads share: that of the outermost loop with several units, and those of which copies have what these need. */
static dlc_ids dealt_axes(const estimator *e)
{
    const dlc_schedule *schedule = e->schedule;
    dlc_ids axes = {0};
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        uint32_t axis = node_at(e, n)->axis;
        int is_dealt = !axes.n && n < schedule->kept.first && e->c.extent[axis] > node_at(e, n)->tile;
        for (uint32_t a = 0; a < axes.n && axis != DLC_NO_AXIS && schedule->ranges; a++)
            is_dealt |= dlc_expr_uses_axis(e->c.kernel->pool, schedule->ranges[n].first, axes.data[a]);
        if (is_dealt && !dlc_ids_find(&axes, axis, NULL))
            dlc_vec_push(e->c.arena, &axes, axis);
    }
    return axes;
}

static int is_kept(const estimator *e, uint32_t n)
{
    return n >= e->schedule->kept.first && n < e->schedule->kept.end;
}

/* How often many threads compute what units begin with alike: each of those that share them. */
static double times_shared(const estimator *e)
{
    double alike = pars_of(e, 1), sharing = MANY_THREADS / pars_of(e, 0);
    return sharing < 1 ? 1 : sharing < alike ? sharing : alike;
}

/* Points at which the leaf is computed by one thread, over those it has: recomputation counts. */
static double repeats(const estimator *e, uint32_t leaf)
{
    const dlc_stage *stage = &e->c.kernel->stages.data[node_at(e, leaf)->stage];
    double points = 1, own = dlc_choose_points(&e->c, &stage->axes) * dlc_choose_points(&e->c, &stage->reduce);
    if (node_at(e, leaf)->ahead && e->schedule->threads) /* a tile's loss has it */
        return 1;
    uint32_t alike = is_kept(e, leaf) ? e->schedule->kept.first - e->schedule->kept.npars : DLC_ROOT_NODE;
    for (uint32_t n = dlc_schedule_parent(e->schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(e->schedule, n))
        if (node_at(e, n)->kind != DLC_LOOP_AS && (n < alike || n >= e->schedule->kept.first))
            points *= tiles_of(points_of_loop(e, n), points_at_once(e, leaf, node_at(e, n)->axis));
    if (node_at(e, leaf)->row != DLC_DOT_NONE)
        for (uint32_t i = 0; i < node_at(e, leaf)->over.n; i++)
            if (dlc_schedule_loop_over(e->schedule, leaf, node_at(e, leaf)->over.data[i]) == DLC_ROOT_NODE)
                points *= (double)e->c.extent[node_at(e, leaf)->over.data[i]];
    return own > 0 && points > own ? points / own : 1;
}

static uint32_t around(const estimator *e, uint32_t leaf, dlc_loop_kind kind)
{
    uint32_t n = leaf;
    do
        n = dlc_schedule_parent(e->schedule, n);
    while (n != DLC_ROOT_NODE && node_at(e, n)->kind != kind);
    return n;
}

/* Loads of neighbours along the axis, or of one element. */
static int is_together(const estimator *e, uint32_t s, uint32_t lane)
{
    for (uint32_t i = 0; i < e->c.accesses[s].n; i++) {
        int64_t stride = dlc_choose_stride(&e->c, e->c.accesses[s].data[i].offset, lane);
        if (e->c.accesses[s].data[i].load && stride != 0 && stride != 1)
            return 0;
    }
    return 1;
}

/* Neighbours along the lane lie at uneven distances, or it takes divisions to tell which of them are inside a border. */
static int is_uneven(const estimator *e, const dlc_access_fact *access, uint32_t lane)
{
    const dlc_pool *pool = e->c.kernel->pool;
    if (!access->load)
        return 0;
    int is_odd = dlc_choose_stride(&e->c, access->offset, lane) == DLC_ODD_STRIDE;
    for (uint32_t i = 0; dlc_load_guard(pool, access->load) && i < dlc_load_rank(pool, access->load); i++)
        is_odd |= dlc_choose_stride(&e->c, dlc_arg(pool, access->load, i), lane) == DLC_ODD_STRIDE;
    return is_odd;
}

/* What it reads along the lanes are constants that lie by panels of them. */
static int is_of_panels(const estimator *e, uint32_t s, uint32_t lane)
{
    int found = 0;
    for (uint32_t i = 0; i < e->c.accesses[s].n; i++) {
        const dlc_access_fact *access = &e->c.accesses[s].data[i];
        if (!access->load || !dlc_expr_uses_axis(e->c.kernel->pool, access->load, lane))
            continue;
        if (DLC_SOURCE_IS_STAGE(access->source) || e->c.kernel->buffers.data[access->source].role != DLC_ROLE_CONST ||
            !e->c.kernel->buffers.data[access->source].layout.nparts)
            return 0;
        found = 1;
    }
    return found;
}

/* Lanes of one vector of the stage's values, and no more. */
static uint32_t least_width(const estimator *e, uint32_t s, uint32_t width)
{
    uint32_t whole = e->schedule->target->vector_bytes / dlc_dtype_bytes(e->c.kernel->stages.data[s].dtype[0]);
    return whole && width > whole ? whole : width;
}

/* Lanes whose work takes as long as the vector's: where a vector takes several steps, a part of it takes as few as it has. */
static uint32_t paid_width(const estimator *e, uint32_t s, uint32_t width)
{
    uint32_t whole = e->schedule->target->vector_bytes, step = (uint32_t)e->schedule->target->machine->step_bytes;
    uint32_t bytes = width * (uint32_t)dlc_dtype_bytes(e->c.kernel->stages.data[s].dtype[0]);
    if (!step || step >= whole || bytes >= whole)
        return width;
    return width * whole / (bytes > step ? bytes : step);
}

/* Of a panel, an element. */
static double panel_cycles(const estimator *e, uint32_t s, uint32_t lane, uint32_t width)
{
    if (is_of_panels(e, s, lane))
        return (double)DLC_VECTOR_CYCLES / width;
    for (uint32_t i = 0; i < e->c.accesses[s].n; i++)
        if (is_uneven(e, &e->c.accesses[s].data[i], lane))
            return DLC_UNEVEN_CYCLES;
    double by_itself = e->schedule->target->machine->panel_cycles;
    return e->c.across != DLC_NO_AXIS ? TURNED_PANEL_CYCLES : by_itself > 0 ? by_itself : PANEL_CYCLES;
}

/* Where a run of the copy begins takes no test and no division: tests along its lanes cut them (estimate_pieces.c). */
static int begins_plainly(const estimator *e, uint32_t s, uint32_t lane)
{
    const dlc_pool *pool = e->c.kernel->pool;
    for (uint32_t i = 0; i < e->c.accesses[s].n; i++) {
        const dlc_access_fact *access = &e->c.accesses[s].data[i];
        if (!access->load)
            continue;
        dlc_expr guard = dlc_load_guard(pool, access->load);
        for (uint32_t a = 0; a < e->c.naxes; a++)
            if (a != lane && ((guard && dlc_expr_uses_axis(pool, guard, a)) || dlc_choose_stride(&e->c, access->offset, a) == DLC_ODD_STRIDE))
                return 0;
    }
    return 1;
}

/* A copy goes by runs along its lanes, each with an address and a border test to start with. */
static double copy_cycles(const estimator *e, uint32_t s, uint32_t lane, uint32_t width)
{
    const dlc_stage *stage = &e->c.kernel->stages.data[s];
    double points = dlc_choose_points(&e->c, &stage->axes), run = (double)e->c.extent[lane];
    double computing = e->c.work[s] / (has_vectors(e) ? paid_width(e, s, width) : width) * lane_share(e);
    if (e->schedule->homes[s].layout.nparts)
        return points * panel_cycles(e, s, lane, width) + computing;
    double vectors = (double)(((int64_t)run + width - 1) / width), paid = (double)width / paid_width(e, s, width);
    double begin = begins_plainly(e, s, lane) ? PLAIN_RUN_CYCLES : DLC_RUN_CYCLES;
    return points / run * (begin + vectors * DLC_VECTOR_CYCLES * (is_together(e, s, lane) ? paid : width)) + computing;
}

static double products_per_cycle(const dlc_target *target, dlc_dot row, double width)
{
    double in_tiles = dlc_dot_products_in_tiles(target, row);
    return in_tiles > 0 ? in_tiles : (target->facts & DLC_HAS_FMA ? 2.0 : 1.0) * width * dlc_dots[row].granule / dlc_dot_pairs(row);
}

/* Cycles in which tile registers are loaded from L2: each product of them takes one of either factor. */
static double tile_loads(const estimator *e, uint32_t leaf, double products)
{
    const dlc_machine *machine = e->schedule->target->machine;
    const dlc_dot_info *row = &dlc_dots[node_at(e, leaf)->row];
    double rows = (double)node_at(e, dlc_schedule_rows(e->schedule, leaf))->tile;
    double columns = (double)node_at(e, dlc_schedule_columns(e->schedule, leaf))->tile;
    double bytes = products * (1 / rows + 1 / columns) * row->parts * dlc_dtype_bytes((dlc_dtype)row->a);
    return bytes * machine->cycles_per_us / machine->near_bytes_per_us;
}

static double dot_cycles(const estimator *e, uint32_t leaf)
{
    uint32_t s = node_at(e, leaf)->stage;
    const dlc_stage *stage = &e->c.kernel->stages.data[s];
    const dlc_dot_info *row = &dlc_dots[node_at(e, leaf)->row];
    double width = (double)e->schedule->target->vector_bytes / dlc_dtype_bytes(stage->dtype[0]);
    double products = dlc_choose_points(&e->c, &stage->axes) * dlc_choose_points(&e->c, &stage->reduce), cycles;
    double further = row->granule > 1 ? 0 : e->c.work[s] - 2 * products; /* to compute factors; granules are loads */
    if (has_vectors(e) && row->family == DLC_FAMILY_LANES) {
        cycles = dlc_estimate_tiles(&e->c, e->schedule, leaf);
    } else {
        double per_cycle = products_per_cycle(e->schedule->target, (dlc_dot)node_at(e, leaf)->row, width);
        int is_of_threads = e->schedule->threads && row->family == DLC_FAMILY_LANES;
        double loss = is_of_threads ? dlc_estimate_thread_loss(e->schedule, leaf) : (100 + DOT_LOSS_PERCENT) / 100.0;
        cycles = products / per_cycle * loss;
        if (dlc_dot_products_in_tiles(e->schedule->target, (dlc_dot)node_at(e, leaf)->row) > 0)
            cycles = dlc_estimate_beside(cycles, tile_loads(e, leaf, products));
    }
    return further > 0 ? cycles + further / width * lane_share(e) : cycles;
}

/* What threads of a block do point by point: every access is of neighbours, two operations a cycle. */
static double thread_cycles(const estimator *e, uint32_t s)
{
    const dlc_stage *stage = &e->c.kernel->stages.data[s];
    double points = dlc_choose_points(&e->c, &stage->axes) * dlc_choose_points(&e->c, &stage->reduce);
    double accesses = e->c.accesses[s].n + (e->schedule->homes[s].place == DLC_PLACE_SCRATCH);
    return (e->c.work[s] + points * accesses) / THREAD_LANES / 2;
}

/* The axis that is unrolled right inside of the lanes of a map, over so many points; or DLC_NO_AXIS. */
static uint32_t axis_inside(const estimator *e, uint32_t leaf, uint32_t lanes, int64_t *points)
{
    uint32_t inner = dlc_schedule_parent(e->schedule, leaf);
    *points = 0;
    if (inner != lanes + 1 || node_at(e, inner)->kind != DLC_LOOP_UNROLL ||
        e->c.kernel->stages.data[node_at(e, leaf)->stage].combine != DLC_REDUCE_NONE)
        return DLC_NO_AXIS;
    *points = dlc_schedule_most_points(e->schedule, inner);
    return node_at(e, inner)->axis;
}

/* The unrolled loop over neighbours whose windows share elements, around loops over those; or DLC_ROOT_NODE. */
static uint32_t beside_of(const estimator *e, uint32_t leaf)
{
    const dlc_stage *stage = &e->c.kernel->stages.data[node_at(e, leaf)->stage];
    uint32_t n = dlc_schedule_parent(e->schedule, leaf);
    if (n == DLC_ROOT_NODE || node_at(e, n)->kind != DLC_LOOP_UNROLL)
        return DLC_ROOT_NODE;
    for (uint32_t nreduced = 0; n != DLC_ROOT_NODE; n = dlc_schedule_parent(e->schedule, n), nreduced++)
        if (!dlc_ids_find(&stage->reduce, node_at(e, n)->axis, NULL))
            return nreduced && node_at(e, n)->kind == DLC_LOOP_UNROLL && node_at(e, n)->tile == 1 ? n : DLC_ROOT_NODE;
    return n;
}

/* Multiplications for each point that the leaf adds up: of its own sum one for a granule. */
static double own_steps(const estimator *e, uint32_t leaf)
{
    const dlc_schedule_node *node = node_at(e, leaf);
    if (node->own == DLC_DOT_NONE)
        return 1;
    double extent = (double)e->c.extent[node->over.data[0]];
    return ceil(extent / dlc_dots[node->own].granule) / extent;
}

/* Steps of the fold that are written out around the leaf, its innermost taps among them. */
static double written_steps(const estimator *e, uint32_t leaf, uint32_t beside)
{
    double steps = 1;
    for (uint32_t n = dlc_schedule_parent(e->schedule, leaf); n != beside && node_at(e, n)->kind == DLC_LOOP_UNROLL;
         n = dlc_schedule_parent(e->schedule, n))
        steps *= (double)e->c.extent[node_at(e, n)->axis];
    return steps;
}

/* Points along the lanes that are computed, over those that there are: a step of several vectors is one where some of it is left over, too. */
static double lanes_paid(const estimator *e, uint32_t lanes)
{
    double extent = (double)e->c.extent[node_at(e, lanes)->axis], tile = (double)node_at(e, lanes)->tile;
    return ceil(extent / tile) * tile / extent;
}

/* Folds over windows that neighbours share, side by side (codegen/jam.c): a row of a tile's windows and its weights are loaded once. */
static double window_cycles(estimator *e, uint32_t leaf, uint32_t lanes, uint32_t width)
{
    const dlc_stage *stage = &e->c.kernel->stages.data[node_at(e, leaf)->stage];
    uint32_t beside = lanes == DLC_ROOT_NODE ? lanes : beside_of(e, leaf), taps = dlc_schedule_parent(e->schedule, leaf);
    if (beside == DLC_ROOT_NODE)
        return 0;
    double points = dlc_choose_points(&e->c, &stage->axes) * dlc_choose_points(&e->c, &stage->reduce) / width;
    double further = e->c.work[node_at(e, leaf)->stage] / width - 2 * points; /* to compute what is folded, of neighbours once */
    double n = (double)dlc_schedule_most_points(e->schedule, beside), k = (double)e->c.extent[node_at(e, taps)->axis], loads = 0, most = 0;
    double vectors = (double)node_at(e, lanes)->tile / width, registers = e->schedule->target->vector_registers;
    double wanted = (n + k) * vectors + 1, written = written_steps(e, leaf, beside);
    double trips = ceil((double)e->c.extent[node_at(e, lanes)->axis] / (double)node_at(e, lanes)->tile);
    if (wanted > registers) /* sums that do not fit are loaded and stored at each step */
        loads += 2 * (wanted - registers) / (n * vectors);
    for (uint32_t i = 0; i < e->c.accesses[node_at(e, leaf)->stage].n; i++) {
        const dlc_access_fact *access = &e->c.accesses[node_at(e, leaf)->stage].data[i];
        int64_t along = dlc_choose_stride(&e->c, access->offset, node_at(e, beside)->axis);
        int64_t tap = dlc_choose_stride(&e->c, access->offset, node_at(e, taps)->axis);
        int is_shared = along != DLC_ODD_STRIDE && tap != DLC_ODD_STRIDE && tap > 0 && along % tap == 0 && along / tap < k;
        double step = is_shared ? (double)(along / tap) : k;
        double share = !access->load ? 0 : along == 0 ? 1 / n : ((n - 1) * step + k) / (n * k);
        loads += share;
        most = share > most ? share : most;
        double ahead = share * n * written; /* elements that no lane differs in are spread before the lanes, where registers end in memory */
        if (access->load && trips > 1 && ahead + n * vectors > registers && dlc_choose_stride(&e->c, access->offset, node_at(e, lanes)->axis) == 0)
            loads += 1 - share + SPREAD_STORE * share / (vectors * trips);
    }
    double steps = own_steps(e, leaf);
    points *= lanes_paid(e, lanes);
    return (points * dlc_estimate_beside(loads, steps) + (further > 0 ? further * most * lane_share(e) : 0)) / 2;
}

/* Loads that a condition over the axis guards: a loop of one vector a step is cut where such a condition changes (codegen/walk.c), with
 * several of them each asks. */
static double guarded_loads(const estimator *e, uint32_t s, uint32_t axis)
{
    const dlc_pool *pool = e->c.kernel->pool;
    double n = 0;
    for (uint32_t i = 0; i < e->c.accesses[s].n; i++) {
        dlc_expr load = e->c.accesses[s].data[i].load, guard = load ? dlc_load_guard(pool, load) : 0;
        n += guard && dlc_expr_uses_axis(pool, guard, axis);
    }
    return n;
}

/* The loop around the leaf that is not written out, the lanes' at the latest, and the points that an iteration of it has. */
static uint32_t loop_around(const estimator *e, uint32_t leaf, uint32_t lanes, double *points)
{
    uint32_t n = dlc_schedule_parent(e->schedule, leaf);
    for (*points = 1; n != lanes && node_at(e, n)->kind == DLC_LOOP_UNROLL; n = dlc_schedule_parent(e->schedule, n))
        *points *= (double)dlc_schedule_most_points(e->schedule, n);
    return n;
}

/* What it takes more to make one value of a fold's sums than of one whole vector's: several are added up, and shorter ones are halved less often.
 * (Zen 4, two threads, sums and squares of 3136 rows of 96: by 16 lanes four at once 39.7 us, two 37.2, by 8 lanes four at once 35.5.) */
static double ending_cycles(const estimator *e, uint32_t s, const dlc_schedule_node *loop, uint32_t width)
{
    const dlc_stage *stage = &e->c.kernel->stages.data[s];
    double whole = (double)e->schedule->target->vector_bytes / dlc_dtype_bytes(stage->dtype[0]);
    double halvings = whole > width ? log2(whole / width) : 0;
    return dlc_choose_points(&e->c, &stage->axes) *
           (log2(loop->count) * e->schedule->target->machine->sum_latency - halvings * HALVING_CYCLES);
}

static int reads_buffers_only(const estimator *e, uint32_t s)
{
    for (uint32_t i = 0; i < e->c.accesses[s].n; i++)
        if (e->c.accesses[s].data[i].load && DLC_SOURCE_IS_STAGE(e->c.accesses[s].data[i].source))
            return 0;
    return 1;
}

/* A fold that takes nothing from other stages, of a row short enough that the processor sees the next one meanwhile: its chain runs beside what
 * is done behind it of the row before. (Emerald Rapids, norms of 128 rows of 384: the first sum in one vector takes 1.05 times as long as in four,
 * the sum of squares behind it 1.17 times.) */
static int is_begun_early(const estimator *e, uint32_t leaf, uint32_t lanes, uint32_t width)
{
    const dlc_schedule_node *row = node_at(e, dlc_schedule_parent(e->schedule, lanes));
    double leaves = 0;
    if (dlc_schedule_parent(e->schedule, lanes) == DLC_ROOT_NODE || !reads_buffers_only(e, node_at(e, leaf)->stage))
        return 0;
    for (uint32_t n = dlc_schedule_parent(e->schedule, lanes) + 1; n < row->end; n++)
        leaves += node_at(e, n)->kind == DLC_LOOP_LEAF;
    return leaves > 1 && (double)e->c.extent[node_at(e, lanes)->axis] / width * leaves <= WINDOW_VECTORS;
}

/* Vectors of a step. Of a row that has fewer, what is folded goes vector by vector (codegen/walk.c). */
static double vectors_of_step(const estimator *e, uint32_t lanes)
{
    const dlc_schedule_node *loop = node_at(e, lanes);
    int is_short = dlc_choose_is_known(&e->c, loop->axis) && e->c.extent[loop->axis] < loop->tile * loop->count;
    for (uint32_t n = lanes + 1; is_short && n < loop->end; n++)
        if (node_at(e, n)->kind != DLC_LOOP_LEAF || e->c.kernel->stages.data[node_at(e, n)->stage].combine != DLC_REDUCE_NONE)
            return 1;
    return loop->count;
}

/* What loops add to a stage: iterations, and what a fold along lanes waits for with few sums side by side. */
static double loop_cycles(const estimator *e, uint32_t leaf, uint32_t lanes, uint32_t width, double cycles)
{
    const dlc_schedule_node *loop = node_at(e, lanes);
    const dlc_stage *stage = &e->c.kernel->stages.data[node_at(e, leaf)->stage];
    double points = dlc_choose_points(&e->c, &stage->axes) * dlc_choose_points(&e->c, &stage->reduce);
    double vectors = points / width, count = vectors_of_step(e, lanes), beside = (double)loop->tile / width * count;
    double added = 0;
    int is_fold = dlc_ids_find(&stage->reduce, loop->axis, NULL);
    double waiting = vectors * e->schedule->target->machine->sum_latency / beside;
    uint32_t inside = dlc_schedule_parent(e->schedule, leaf);
    int is_chain = stage->reduce.n && node_at(e, inside)->kind == DLC_LOOP_FOR && node_at(e, inside)->end == inside + 2; /* nothing else is there to do */
    double chained = is_fold && is_begun_early(e, leaf, lanes, width) ? BEGUN_EARLY : 1;
    if ((is_fold || is_chain) && waiting > cycles)
        added = (waiting - cycles) * chained;
    double guard = e->schedule->target->vector_bytes == 64 ? MASKED_CYCLES : GUARD_CYCLES;
    if (is_fold && count > 1) { /* what is left goes vector by vector, into one sum */
        double step = (double)loop->tile * count, extent = (double)e->c.extent[loop->axis];
        added += points / extent * ceil(fmod(extent, step) / (double)loop->tile) * e->schedule->target->machine->sum_latency;
    }
    added += is_fold ? ending_cycles(e, node_at(e, leaf)->stage, loop, width) : 0;
    int goes_down = !is_fold && stage->reduce.n && count > 1; /* sums of all vectors in one loop */
    if (!is_fold && !goes_down && count > 1) /* nothing waits, and the rest is longer */
        added += cycles * FOR_NOTHING + vectors * guarded_loads(e, node_at(e, leaf)->stage, loop->axis) * guard;
    double written;
    uint32_t around = loop_around(e, leaf, lanes, &written);
    if (around == lanes)
        added += vectors / beside / written * LOOP_CYCLES;
    else if (node_at(e, around)->kind == DLC_LOOP_FOR)
        added += vectors / written * LOOP_CYCLES / 2 / (goes_down ? count : 1);
    return added;
}

static double leaf_cycles(estimator *e, uint32_t leaf)
{
    const dlc_schedule_node *node = node_at(e, leaf);
    uint32_t loop = around(e, leaf, DLC_LOOP_LANE), as = around(e, leaf, DLC_LOOP_AS), lane = DLC_NO_AXIS, width = 1;
    if (node->row != DLC_DOT_NONE)
        return dot_cycles(e, leaf);
    if (as == DLC_ROOT_NODE && dlc_schedule_thread_of(e->schedule, leaf) != DLC_ROOT_NODE)
        return node->ahead ? e->c.work[node->stage] / THREAD_LANES : thread_cycles(e, node->stage);
    e->c.lane = e->c.across = e->c.woven = e->c.rows = DLC_NO_AXIS;
    if (loop != DLC_ROOT_NODE) {
        int64_t points;
        uint32_t inside = axis_inside(e, leaf, loop, &points);
        e->c.across = inside != DLC_NO_AXIS && points == node_at(e, loop)->tile ? inside : DLC_NO_AXIS;
        e->c.woven = inside != DLC_NO_AXIS && points == e->c.extent[inside] ? inside : DLC_NO_AXIS;
        lane = node_at(e, loop)->axis;
        width = (uint32_t)node_at(e, loop)->tile / dlc_schedule_pack_of(e->schedule);
        if (has_vectors(e)) /* what is wider than a vector is several */
            width = least_width(e, node->stage, width);
        e->c.lane = node_at(e, loop)->end > loop + 2 ? lane : DLC_NO_AXIS; /* what several share lies by lanes */
    } else if (as != DLC_ROOT_NODE) {
        const dlc_schedule_node *tile = node_at(e, e->schedule->homes[node_at(e, as)->stage].leaf);
        lane = tile->columns;
        e->c.rows = tile->rows;
        width = e->schedule->target->vector_bytes / dlc_dtype_bytes(e->c.kernel->stages.data[node->stage].dtype[0]);
        uint32_t lanes = e->schedule->target->vector_bytes / dlc_dtype_bytes(e->c.kernel->stages.data[tile->stage].dtype[0]);
        width = width > lanes && has_vectors(e) ? lanes : width; /* bytes are made of a vector of sums */
        width = width < 1 ? 1 : width;
    }
    if (node->stage >= e->schedule->nstages && loop != DLC_ROOT_NODE) {
        e->c.work[node->stage] = dlc_estimate_pieces(&e->c, e->schedule, loop, node->stage); /* maps wait for memory, whatever they choose */
        double copying = copy_cycles(e, node->stage, lane, width);
        return has_vectors(e) ? copying + loop_cycles(e, leaf, loop, width, copying) : copying;
    }
    double shared = has_vectors(e) ? window_cycles(e, leaf, loop, width) : 0;
    if (shared > 0)
        return shared;
    uint32_t paid = loop != DLC_ROOT_NODE && has_vectors(e) ? paid_width(e, node->stage, width) : width;
    double cycles = dlc_choose_stage_cycles(&e->c, node->stage, lane, paid);
    cycles *= width > 1 ? lane_share(e) : 1;
    return loop != DLC_ROOT_NODE && has_vectors(e) ? cycles + loop_cycles(e, leaf, loop, width, cycles) : cycles;
}

static double cycles_of(estimator *e, dlc_estimate *result)
{
    double cycles = 0;
    uint32_t nothers = 0;
    for (uint32_t n = 0; n < e->schedule->nodes.n; n++)
        if (node_at(e, n)->kind == DLC_LOOP_LEAF) {
            int is_dot = node_at(e, n)->row != DLC_DOT_NONE, is_blind = 0;
            dlc_estimate_early(&e->c, e->schedule, n, result);
            double again = is_dot && !e->schedule->threads ? dlc_estimate_again(&e->c, e->schedule, n, dot_cycles(e, n), &is_blind) : 0;
            double own = leaf_cycles(e, n) * repeats(e, n);
            cycles += own + again;
            result->shared_us += is_kept(e, n) ? own * (times_shared(e) - 1) / e->schedule->target->machine->cycles_per_us : 0;
            result->kept_cycles += is_kept(e, n) ? own : 0;
            result->again_cycles += again;
            result->again_blindly += is_blind ? again : 0;
            result->ndots += (uint32_t)is_dot;
            nothers += !is_dot && around(e, n, DLC_LOOP_AS) == DLC_ROOT_NODE && node_at(e, n)->stage < e->schedule->nstages;
        }
    result->nmixed = result->ndots + nothers > 1 ? result->ndots : 0;
    return cycles;
}

double dlc_estimate_hidden(double computing_us, double moving_us)
{
    double longer = computing_us > moving_us ? computing_us : moving_us;
    return longer + (computing_us + moving_us - longer) * UNHIDDEN_MOVES;
}

/* What is waited for in the beginning where weights do not come all the time. */
static double early_us(const dlc_estimate *e, const dlc_target *target, double workers)
{
    double first = e->cycles * e->early_share / target->machine->cycles_per_us / (e->is_early_for_each ? 1 : workers);
    return e->early_us > 0 ? (dlc_estimate_beside(first, e->early_us) - first) * (1 - UNHIDDEN_MOVES) : 0;
}

/* Of what several threads go through in the order of memory, the share that each finds in its own L2, where it wrote or read it before. (Emerald
 * Rapids, 3x3 windows in steps of two of 112x112x64, 4 MB with their results: one thread 148 us, two 60 by rows and 76 by columns of windows.) */
static double kept_of(const dlc_estimate *e, double workers)
{
    double kept = (e->held * workers - HELD_FROM) / (HELD_TO - HELD_FROM);
    return workers <= 1 || kept < 0 ? 0 : kept > 1 ? 1 : kept;
}

/* Of so many workers, without the cost of the step itself. */
static double time_of(const dlc_estimate *e, const dlc_target *target, double workers)
{
    const dlc_machine *machine = target->machine;
    double computing = hypot(e->cycles / workers / machine->cycles_per_us, e->waiting_us);
    double moving = e->moving_us - e->dealt_us + e->dealt_us / workers; /* of each worker; memory is all of theirs */
    double kept = kept_of(e, workers), far_us = e->far_us - e->near_far_us * kept;
    moving += (e->crossed_us + e->across_us / workers * STORED_ACROSS) * (1 - 1 / workers); /* the rest of it the thread made itself */
    moving -= e->near_us / workers * kept;
    computing += e->evicted_us / workers; /* nothing fetches it ahead */
    double longest = moving > far_us ? moving : far_us, hidden = computing < longest ? computing : moving;
    return (computing < longest ? longest : computing) + hidden * UNHIDDEN_MOVES + e->strewn_us / workers * STREWN + early_us(e, target, workers);
}

/* Workers wait for nobody but for want of work or of memory: where many could work, few units are slow units. */
static double workers_of(double wanted, double most)
{
    return wanted < 1 ? 1 : wanted > most ? most : wanted;
}

static double stored_past_caches(const estimator *e)
{
    double bytes = 0;
    for (uint32_t n = 0; n < e->schedule->nodes.n; n++) {
        if (!node_at(e, n)->nontemporal)
            continue;
        uint32_t buffer = e->c.kernel->stages.data[node_at(e, n)->stage].buffer;
        bytes += dlc_choose_elems(&e->c, buffer) * dlc_dtype_bytes(e->c.kernel->buffers.data[buffer].type.dtype);
    }
    return bytes;
}

/* What a unit keeps in scratch is written and read once more from L3 as far as L2 has no room for it beside what the unit moves. (Emerald Rapids,
 * expansion and windows in steps of two of 112x112x64: by 7 rows of windows 329 us, by 14, which recompute less in 1 MB of scratch, 347.) */
static double evicted_us(const dlc_estimate *e, const dlc_target *target, double moved_bytes)
{
    double units = e->units > 1 ? e->units : 1, beyond = (e->scratch_bytes + moved_bytes / units) / target->l2_bytes - UNIT_HOLDS;
    if (beyond <= 0 || target->machine->l3_bytes_per_us <= 0)
        return 0;
    return 2 * units * e->scratch_bytes * (beyond < 1 ? beyond : 1) / target->machine->l3_bytes_per_us;
}

/* The axis along which the scratch of the stage lies together. */
static uint32_t axis_together(const dlc_schedule *schedule, uint32_t s)
{
    const dlc_pool *pool = schedule->kernel->pool;
    const dlc_home *home = &schedule->homes[s];
    int64_t stride, size;
    for (uint32_t i = 0; home->stride && i < schedule->kernel->stages.data[s].axes.n; i++)
        if (dlc_expr_is_int(pool, home->stride[i], &stride) && stride == 1 &&
            !(dlc_expr_is_int(pool, home->size[i], &size) && size == 1))
            return schedule->kernel->stages.data[s].axes.data[i];
    return DLC_NO_AXIS;
}

void dlc_estimate_kernel(const dlc_schedule *schedule, dlc_arena *scratch, dlc_estimate *result)
{
    estimator e = {.schedule = schedule};
    dlc_kernel *kernel = dlc_kernel_clone(schedule->kernel, scratch); /* facts grow its pool */
    *result = (dlc_estimate){0};
    dlc_choose_facts(&e.c, kernel, schedule->target, scratch);
    e.c.place = dlc_new_array(scratch, uint8_t, kernel->stages.n + 1);
    e.c.lane = e.c.across = e.c.woven = e.c.rows = DLC_NO_AXIS;
    e.c.together = dlc_new_array(scratch, uint32_t, kernel->stages.n + 1);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        e.c.together[s] = DLC_NO_AXIS;
    for (uint32_t s = 0; s < kernel->stages.n && schedule->homes; s++) {
        e.c.place[s] = schedule->homes[s].place;
        e.c.together[s] = axis_together(schedule, s);
    }
    dlc_ids dealt = dealt_axes(&e);
    moved moves = moved_of(&e.c, &dealt);
    double beyond = beyond_l2(schedule->target, &moves), far;
    moves.past = stored_past_caches(&e);
    result->bytes = moves.weights + moves.others;
    find_moving(schedule->target, &moves, result);
    if (beyond > 0 && dlc_has_slow_l3(schedule->target))
        result->strewn_us = others_us(schedule->target, &moves, moves.others, &far) * beyond * dlc_estimate_strewn(&e.c, schedule);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        result->flops += e.c.work[s];
    result->cycles = cycles_of(&e, result);
    result->units = (double)dlc_expr_eval(kernel->pool, dlc_schedule_units(kernel, schedule), e.c.symbols);
    result->scratch_bytes = (double)dlc_expr_eval(kernel->pool, dlc_schedule_scratch(schedule), e.c.symbols);
    const dlc_machine *machine = schedule->target->machine;
    result->evicted_us = has_vectors(&e) ? evicted_us(result, schedule->target, moves.others) : 0;
    double workers = workers_of(result->units * (schedule->threads ? machine->block_workers : 1), machine->workers);
    if (schedule->threads) {
        workers *= dlc_estimate_filled(schedule->target, result->units);
        result->waiting_us = dlc_estimate_waiting(&e.c, schedule, result->units);
    }
    result->time_us = time_of(result, schedule->target, workers) + machine->step_us;
}

double dlc_estimate_time_us(const dlc_estimate *estimate, const dlc_schedule *schedule, double threads)
{
    double workers = 1 / dlc_estimate_share(estimate, schedule, (int64_t)threads);
    return time_of(estimate, schedule->target, workers) + schedule->target->machine->step_us;
}

void dlc_estimate_grain(dlc_schedule *schedule, dlc_arena *scratch)
{
    dlc_estimate e;
    schedule->grain = 1;
    if (schedule->target->kind == DLC_TARGET_CUDA)
        return;
    dlc_estimate_kernel(schedule, scratch, &e);
    double unit_us = time_of(&e, schedule->target, 1) / (e.units > 1 ? e.units : 1);
    double grain = ceil(GRAIN_US / (unit_us > LEAST_US ? unit_us : LEAST_US));
    schedule->grain = grain > 1 ? (int64_t)grain : 1;
}

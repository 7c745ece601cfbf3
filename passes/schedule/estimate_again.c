/*
 * What contractions read again. A factor that a loop is not over comes by once for each of its iterations: beyond the first time from the
 * nearest cache that holds what one of them goes through. Columns lie by panels, which are asked for ahead or fetched as one stream, so they
 * hide behind the products. Rows of a tile are as many streams: from beyond L2 they are waited for. (A product of 3136 rows of 256 with 128
 * columns on a Zen 4: 1.83 ms by rows, 2.54 where all rows come by for each panel; of rows of 16 or 64 the same.)
 * And when weights come for the first time: from memory, while each panel's rows are multiplied where those are inside of the panels. Where blocks of
 * rows are outside, all weights come in the time of the first block. (49 rows of 512 with 2048 columns in bf16, one thread: 470 us by panels, 507
 * by blocks of 12 rows, 518 of 5, 553 of 4.)
 */
#include "passes/schedule/choose.h"

#include <math.h>

enum {
    INNER_BYTES = 40, /* a cycle, from L2, where nothing else was found */
    OUTER_BYTES = 10  /* a cycle, from beyond */
};
#define HIDING 4.0       /* of what tile registers wait for, and of panels that came to L2 just now; */
#define AGAIN_HIDING 8.0 /* of panels that come by again from L2 while lanes multiply: they are asked for ahead */
#define STAYS 0.75       /* of L2: the rest is what else comes by */
#define LOOKED_FOR 1.0   /* cycles of L2, where a line that is asked for once more is looked for and does not come: of 4, 5 and 6 rows of a product by
                          * four vectors, whose next tile has the next panel, 1.28, 1.06 and 1.01 times what they compute (Emerald Rapids) */

typedef struct {
    const dlc_chooser *c;
    const dlc_schedule *schedule;
    uint32_t leaf;
} reader;

static const dlc_schedule_node *node_at(const reader *r, uint32_t n)
{
    return &r->schedule->nodes.data[n];
}

static int is_loop(const reader *r, uint32_t n)
{
    return node_at(r, n)->kind != DLC_LOOP_AS && node_at(r, n)->axis != DLC_NO_AXIS;
}

double dlc_estimate_points_inside(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf, uint32_t n, uint32_t axis)
{
    reader r = {c, schedule, leaf};
    double extent = (double)c->extent[axis], size;
    uint32_t around = dlc_schedule_loop_over(schedule, n, axis), first = DLC_ROOT_NODE;
    if (around != DLC_ROOT_NODE)
        return (double)node_at(&r, around)->tile;
    for (uint32_t i = dlc_schedule_parent(schedule, leaf); i != n && i != DLC_ROOT_NODE; i = dlc_schedule_parent(schedule, i))
        first = is_loop(&r, i) && node_at(&r, i)->axis == axis ? i : first;
    if (first == DLC_ROOT_NODE)
        return extent;
    size = (double)dlc_expr_eval(c->kernel->pool, schedule->ranges[first].size, c->symbols);
    return size < 1 ? 1 : size > extent ? extent : size;
}

static double points_inside(const reader *r, uint32_t n, uint32_t axis)
{
    return dlc_estimate_points_inside(r->c, r->schedule, r->leaf, n, axis);
}

/* Iterations of loop n, each time it is met. */
static double trips_of(const reader *r, uint32_t n)
{
    if (!is_loop(r, n))
        return 1;
    double trips = ceil(points_inside(r, dlc_schedule_parent(r->schedule, n), node_at(r, n)->axis) / (double)node_at(r, n)->tile);
    return trips > 1 ? trips : 1;
}

/* Bytes that the factor is made of, as they lie in memory, in an iteration of loop n. What conversions make of them stays in registers. */
static double factor_bytes(const reader *r, dlc_expr factor, uint32_t n)
{
    const dlc_pool *pool = r->c->kernel->pool;
    uint8_t *marks = dlc_new_array(r->c->arena, uint8_t, pool->nodes.n);
    double sum = 0;
    dlc_expr_reach(pool, factor, marks);
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LOAD)
            continue;
        double bytes = dlc_dtype_bytes((dlc_dtype)dlc_node_of(pool, id)->dtype), elems = 1;
        for (uint32_t a = 0; a < r->c->kernel->axes.n; a++)
            elems *= dlc_expr_uses_axis(pool, id, a) ? points_inside(r, n, a) : 1;
        if (!DLC_SOURCE_IS_STAGE(dlc_node_of(pool, id)->imm.id)) { /* windows share what they read */
            double all = dlc_choose_elems(r->c, dlc_node_of(pool, id)->imm.id);
            elems = elems < all ? elems : all;
        }
        sum += elems * bytes;
    }
    return sum;
}

/* The factors of the contraction, columns' first; 0: the leaf is none. */
static int factors_of(const dlc_chooser *c, const dlc_schedule_node *leaf, dlc_expr factors[2])
{
    dlc_contraction form;
    if (leaf->kind != DLC_LOOP_LEAF || leaf->row == DLC_DOT_NONE ||
        !dlc_contraction_of(c->kernel, &c->kernel->stages.data[leaf->stage], c->arena, &form))
        return 0;
    int is_first = dlc_ids_find(&form.m, leaf->columns, NULL);
    factors[0] = is_first ? form.a : form.b;
    factors[1] = is_first ? form.b : form.a;
    return 1;
}

/* What an iteration of the loop goes through: the factors of all its contractions, each once. */
static double bytes_inside(const reader *r, uint32_t loop)
{
    double sum = 0;
    dlc_expr factors[2];
    dlc_ids seen = {0};
    for (uint32_t leaf = loop + 1; leaf < node_at(r, loop)->end; leaf++) {
        reader other = {r->c, r->schedule, leaf};
        for (int i = 0; i < 2 && factors_of(r->c, node_at(r, leaf), factors); i++) {
            if (dlc_ids_find(&seen, factors[i], NULL))
                continue;
            dlc_vec_push(r->c->arena, &seen, factors[i]);
            sum += factor_bytes(&other, factors[i], loop);
        }
    }
    return sum;
}

/* Bytes a cycle of what so much comes by in between. */
static double rate_of(const dlc_target *target, double bytes)
{
    const dlc_machine *machine = target->machine;
    if (bytes <= target->l2_bytes * STAYS)
        return machine->again_bytes > 0 ? machine->again_bytes : INNER_BYTES;
    return machine->l3_bytes_per_us > 0 ? machine->l3_bytes_per_us / machine->cycles_per_us : OUTER_BYTES;
}

/* Rows of a tile that lie in several pages are as many streams, which nothing fetches ahead. Nobody knows how long they take where the rate
 * of L3 is not known. */
static int are_waited_for(const reader *r, dlc_expr rows, double inside)
{
    const dlc_target *target = r->c->target;
    return target->machine->l3_bytes_per_us > 0 && inside > target->l2_bytes * STAYS &&
           factor_bytes(r, rows, dlc_schedule_parent(r->schedule, r->leaf)) > DLC_WAY_BYTES;
}

/* Tiles of rows that meet a panel one after the other, each of which asks for its share of the next one (codegen/ahead.c). */
static double tiles_of_panel(const reader *r, dlc_expr factor)
{
    uint32_t columns = dlc_schedule_columns(r->schedule, r->leaf);
    double tiles = 1;
    for (uint32_t n = dlc_schedule_parent(r->schedule, r->leaf); n != columns && n != DLC_ROOT_NODE; n = dlc_schedule_parent(r->schedule, n)) {
        if (is_loop(r, n) && dlc_expr_uses_axis(r->c->kernel->pool, factor, node_at(r, n)->axis))
            break;
        if (is_loop(r, n) && !dlc_choose_is_known(r->c, node_at(r, n)->axis))
            return 1; /* each step has lines for all */
        tiles *= trips_of(r, n);
    }
    return columns == DLC_ROOT_NODE ? 1 : tiles;
}

double dlc_estimate_asked(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf)
{
    reader r = {c, schedule, leaf};
    dlc_expr factors[2];
    uint32_t columns = dlc_schedule_columns(schedule, leaf);
    if (!node_at(&r, leaf)->ahead || columns == DLC_ROOT_NODE || !factors_of(c, node_at(&r, leaf), factors))
        return 0;
    double lanes = (double)c->target->vector_bytes / dlc_dtype_bytes(c->kernel->stages.data[node_at(&r, leaf)->stage].dtype[0]);
    double bytes = ceil((double)node_at(&r, columns)->tile / lanes) * c->target->vector_bytes;
    return ceil(bytes / tiles_of_panel(&r, factors[0]) / DLC_LINE_BYTES);
}

/* Lines that all steps of the tile ask for. */
static double asked_lines(const reader *r, double iterations)
{
    const dlc_schedule_node *leaf = node_at(r, r->leaf);
    double steps = 1.0 / dlc_dots[leaf->row].granule;
    for (uint32_t i = 0; i < leaf->over.n; i++)
        steps *= points_inside(r, dlc_schedule_parent(r->schedule, r->leaf), leaf->over.data[i]);
    return iterations * steps * dlc_estimate_asked(r->c, r->schedule, r->leaf);
}

/* Bytes of weights that the factor is made of. */
static double weight_bytes(const dlc_chooser *c, dlc_expr factor)
{
    const dlc_pool *pool = c->kernel->pool;
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, pool->nodes.n);
    double sum = 0;
    dlc_expr_reach(pool, factor, marks);
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        dlc_source source = marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD ? dlc_node_of(pool, id)->imm.id : DLC_NO_BUFFER;
        if (source == DLC_NO_BUFFER || DLC_SOURCE_IS_STAGE(source) || c->kernel->buffers.data[source].role != DLC_ROLE_CONST)
            continue;
        sum += dlc_choose_elems(c, source) * dlc_dtype_bytes((dlc_dtype)dlc_node_of(pool, id)->dtype);
    }
    return sum;
}

/* Weights that L2 does not hold, and L3 is slow: while one panel of them is multiplied the next comes from there, some of it late, through L2.
 * (Emerald Rapids, two products of 196 rows by weights of 2.4 MB, 28 or 56 rows at a time: on tiles of 14 rows by 32 columns 3.07 ms, where one of
 * the two has 8 by 48, which read a panel twice as fast, 1.04 to 1.1 times.) */
static int is_just_here(const dlc_chooser *c, dlc_expr columns)
{
    return dlc_has_slow_l3(c->target) && weight_bytes(c, columns) > c->target->l2_bytes;
}

double dlc_estimate_again(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf, double computing, int *is_blind)
{
    reader r = {c, schedule, leaf};
    dlc_expr factors[2];
    double columns = 0, rows = 0, iterations = 1;
    *is_blind = 0;
    if (!factors_of(c, node_at(&r, leaf), factors))
        return 0;
    int is_of_lanes = dlc_dots[node_at(&r, leaf)->row].family == DLC_FAMILY_LANES;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n))
        iterations *= trips_of(&r, n);
    double asked = is_of_lanes ? asked_lines(&r, iterations) * LOOKED_FOR : 0;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n)) {
        double trips = trips_of(&r, n), further = iterations - iterations / trips, inside = trips > 1 ? bytes_inside(&r, n) : 0;
        uint32_t axis = node_at(&r, n)->axis;
        iterations /= trips;
        if (inside <= c->target->l1_bytes / 2)
            continue;
        if (!dlc_expr_uses_axis(c->kernel->pool, factors[0], axis)) {
            columns += factor_bytes(&r, factors[0], n) * further / rate_of(c->target, inside);
            *is_blind |= inside > c->target->l2_bytes * STAYS && !dlc_choose_is_known(c, axis);
        }
        if (is_of_lanes && !dlc_expr_uses_axis(c->kernel->pool, factors[1], axis) && are_waited_for(&r, factors[1], inside))
            rows += factor_bytes(&r, factors[1], n) * further / rate_of(c->target, inside);
    }
    if (columns <= 0)
        return rows;
    return rows + dlc_estimate_hiding(columns + asked, computing, is_of_lanes && !is_just_here(c, factors[0]) ? AGAIN_HIDING : HIDING) - computing;
}

void dlc_estimate_early(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf, dlc_estimate *result)
{
    reader r = {c, schedule, leaf};
    dlc_expr factors[2];
    double passes = 1;
    uint32_t outermost = DLC_ROOT_NODE;
    if (schedule->target->kind != DLC_TARGET_CPU || !factors_of(c, node_at(&r, leaf), factors))
        return;
    double bytes = weight_bytes(c, factors[0]), us = bytes / schedule->target->machine->far_bytes_per_us;
    uint32_t columns = dlc_schedule_columns(schedule, leaf);
    if (bytes < c->target->l2_bytes || us <= result->early_us || columns == DLC_ROOT_NODE)
        return;
    for (uint32_t n = dlc_schedule_parent(schedule, columns); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n)) {
        double trips = trips_of(&r, n);
        outermost = trips > 1 ? n : outermost;
        passes *= trips > 1 && !dlc_expr_uses_axis(c->kernel->pool, factors[0], node_at(&r, n)->axis) ? trips : 1;
    }
    if (passes <= 1)
        return;
    result->early_us = us;
    result->early_share = 1 / passes;
    result->is_early_for_each = !dlc_expr_uses_axis(c->kernel->pool, factors[0], node_at(&r, outermost)->axis);
}

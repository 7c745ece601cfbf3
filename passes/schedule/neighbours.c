/*
 * Schedules a step away from one: other tiles, blocks of them, loops in another order, other lanes. A step changes the tree alone, is printed and
 * read back for the kernel, and what the verifier refuses is no neighbour.
 */
#include <string.h>

#include "passes/schedule/candidates.h"
#include "passes/schedule/choose.h"

enum { MOST_HEIGHT = 14, MOST_PARTIALS = 8, MOST_UNROLLED = 32 };

typedef struct {
    const dlc_kernel *kernel;
    const dlc_schedule *from;
    dlc_schedule step; /* from, of which nodes and copies may change */
    dlc_arena *arena;
    dlc_candidates *result;
    uint8_t fills_anew; /* nothing is kept from unit to unit */
} stepper;

static dlc_schedule_node *node_at(const stepper *t, uint32_t n)
{
    return &t->step.nodes.data[n];
}

static int is_loop(const dlc_schedule_node *node)
{
    return node->kind != DLC_LOOP_LEAF && node->kind != DLC_LOOP_AS;
}

/* Back to where steps begin. */
static void begin(stepper *t)
{
    const dlc_schedule *from = t->from;
    t->step = *from;
    t->step.nodes.data = dlc_arena_copy(t->arena, from->nodes.data, from->nodes.n * sizeof *from->nodes.data);
    t->step.nodes.cap = from->nodes.n;
    t->step.copies.data = dlc_arena_copy(t->arena, from->copies.data, from->copies.n * sizeof *from->copies.data);
    for (uint32_t c = 0; c < from->copies.n; c++) {
        dlc_schedule_copy *copy = &t->step.copies.data[c];
        copy->parts.data = dlc_arena_copy(t->arena, copy->parts.data, copy->parts.n * sizeof *copy->parts.data);
    }
}

/* A block that holds all of what it would cut: the same loops without it are the same work. */
static int has_vain_block(const dlc_schedule *schedule)
{
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        const dlc_schedule_node *block = &schedule->nodes.data[n];
        for (uint32_t i = n + 1; is_loop(block) && i < block->end; i++)
            if (is_loop(&schedule->nodes.data[i]) && schedule->nodes.data[i].axis == block->axis && dlc_schedule_trips(schedule, n) == 1)
                return 1;
    }
    return 0;
}

/* What is fetched ahead or stored past the caches goes vector by vector. */
static int is_too_wide(const dlc_schedule *schedule)
{
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        const dlc_schedule_node *lane = &schedule->nodes.data[n];
        for (uint32_t i = n + 1; lane->kind == DLC_LOOP_LANE && i < lane->end; i++) {
            const dlc_schedule_node *leaf = &schedule->nodes.data[i];
            if (leaf->kind == DLC_LOOP_LEAF && (leaf->ahead || leaf->nontemporal) &&
                lane->tile * (int64_t)dlc_dtype_bytes(schedule->kernel->stages.data[leaf->stage].dtype[0]) > schedule->target->vector_bytes)
                return 1;
        }
    }
    return 0;
}

/* What can be kept is, unless it is to be filled anew. */
static int keeps(dlc_schedule *schedule, int is_wanted, dlc_diag *diag)
{
    schedule->keeps = (uint8_t)is_wanted;
    return !is_wanted || dlc_schedule_resolve(schedule, diag) == DLC_OK;
}

static void end(stepper *t)
{
    dlc_candidate candidate = {0};
    dlc_str text = {0};
    dlc_diag diag;
    dlc_diag_init(&diag, t->arena);
    for (uint32_t n = 0; n < t->step.nodes.n; n++)
        node_at(t, n)->kept = 0; /* a step may end that, or make it so */
    dlc_schedule_print(&t->step, &text);
    if (dlc_schedule_parse(dlc_str_text(&text), t->kernel, t->from->target, t->arena, &diag, &candidate.schedule) == DLC_OK &&
        keeps(candidate.schedule, !t->fills_anew, &diag)) {
        dlc_estimate_grain(candidate.schedule, t->arena);
        if (!has_vain_block(candidate.schedule) && !is_too_wide(candidate.schedule) && dlc_candidate_judge(&candidate, t->arena))
            dlc_vec_push(t->arena, t->result, candidate);
    }
    dlc_str_deinit(&text);
}

/* What units begin with alike is done by each of them. */
static void vary_kept(stepper *t)
{
    if (t->from->kept.first == t->from->kept.end)
        return;
    begin(t);
    t->fills_anew = 1;
    end(t);
    t->fills_anew = 0;
}

/* --- tiles --- */

/* Columns of a register tile are the block of their factor's layout, too. */
static void set_columns(stepper *t, uint32_t loop, int64_t tile)
{
    int64_t before = node_at(t, loop)->tile;
    node_at(t, loop)->tile = tile;
    for (uint32_t c = 0; c < t->step.copies.n; c++)
        for (uint32_t p = 0; p < t->step.copies.data[c].parts.n; p++)
            if (t->step.copies.data[c].parts.data[p].block == before && before > 1)
                t->step.copies.data[c].parts.data[p].block = (int32_t)tile;
    for (uint32_t n = 0; n < t->step.nodes.n; n++) /* loops of the copy */
        if (n != loop && is_loop(node_at(t, n)) && node_at(t, n)->axis == node_at(t, loop)->axis && node_at(t, n)->tile == before)
            node_at(t, n)->tile = tile;
}

/* Each number of vectors a row with the most rows that fit into the registers, and a few less. */
static void vary_dot(stepper *t, uint32_t leaf)
{
    uint32_t rows = dlc_schedule_rows(t->from, leaf), columns = dlc_schedule_columns(t->from, leaf);
    const dlc_stage *stage = &t->from->kernel->stages.data[t->from->nodes.data[leaf].stage];
    int64_t width = t->from->target->vector_bytes / dlc_dtype_bytes(stage->dtype[0]);
    int64_t registers = t->from->target->vector_registers ? t->from->target->vector_registers : 16;
    if (columns == DLC_ROOT_NODE || width < 1)
        return;
    for (int64_t vectors = 1; vectors <= DLC_MOST_VECTORS; vectors++) {
        int64_t most = rows == DLC_ROOT_NODE ? 1 : (registers - vectors - 1) / vectors;
        most = most > MOST_HEIGHT ? MOST_HEIGHT : most;
        for (int64_t height = most; height > 0 && height > most - 3; height--) {
            begin(t);
            set_columns(t, columns, vectors * width);
            if (rows != DLC_ROOT_NODE)
                node_at(t, rows)->tile = height;
            end(t);
        }
    }
}

/* Points at which all rows are padding are left out, or not. */
static void vary_skipped(stepper *t, uint32_t leaf)
{
    const dlc_schedule_node *node = &t->from->nodes.data[leaf];
    for (uint32_t n = 0; n < node->over.n; n++) {
        if (n == node->nskipped)
            continue;
        begin(t);
        node_at(t, leaf)->nskipped = n;
        end(t);
    }
}

static void vary_tile(stepper *t, uint32_t n)
{
    int64_t tile = t->from->nodes.data[n].tile;
    for (int64_t to = tile * 2; to >= tile / 2 && to > 0; to = to == tile * 2 ? tile / 2 : 0) {
        begin(t);
        node_at(t, n)->tile = to;
        end(t);
    }
}

/* --- loops --- */

/* Two loops of which one holds the other alone: kinds stay where they are. */
static void exchange(stepper *t, uint32_t n)
{
    begin(t);
    dlc_schedule_node *outer = node_at(t, n), *inner = node_at(t, n + 1), before = *outer;
    outer->axis = inner->axis, outer->tile = inner->tile;
    inner->axis = before.axis, inner->tile = before.tile;
    end(t);
}

/* A loop over the axis of loop n by tiles `times` as large, around loop `at`, which holds it: a block of work that stays in a cache. */
static void add_block(stepper *t, uint32_t n, uint32_t at, int64_t times)
{
    begin(t);
    dlc_schedule_node block = *node_at(t, at);
    block.axis = node_at(t, n)->axis;
    block.tile = node_at(t, n)->tile * times;
    block.count = 1;
    dlc_vec_push(t->arena, &t->step.nodes, block);
    for (uint32_t i = t->step.nodes.n - 1; i > at; i--)
        *node_at(t, i) = *node_at(t, i - 1);
    *node_at(t, at) = block;
    if (block.kind == DLC_LOOP_PAR) /* the block is shared out; its tiles are one unit's */
        node_at(t, n + 1)->kind = DLC_LOOP_FOR;
    for (uint32_t i = 0; i < t->step.nodes.n; i++)
        node_at(t, i)->end += i >= at || node_at(t, i)->end > at;
    end(t);
}

static void add_blocks(stepper *t, uint32_t n)
{
    uint32_t at = n;
    while (dlc_schedule_parent(t->from, at) != DLC_ROOT_NODE)
        at = dlc_schedule_parent(t->from, at);
    if (at == n || t->from->nodes.data[at].kind == DLC_LOOP_LANE ||
        dlc_schedule_loop_over(t->from, dlc_schedule_parent(t->from, n), t->from->nodes.data[n].axis) != DLC_ROOT_NODE)
        return;
    for (int64_t times = 2; times <= 16; times *= 2)
        add_block(t, n, at, times);
}

static void change_kind(stepper *t, uint32_t n, dlc_loop_kind kind)
{
    begin(t);
    node_at(t, n)->kind = (uint8_t)kind;
    end(t);
}

static void vary_lane(stepper *t, uint32_t n)
{
    const dlc_schedule_node *lane = &t->from->nodes.data[n];
    vary_tile(t, n);
    for (uint32_t count = 1; count <= MOST_PARTIALS; count *= 2) {
        begin(t);
        node_at(t, n)->count = count;
        if (count != lane->count)
            end(t);
    }
}

static void vary_loop(stepper *t, uint32_t n)
{
    const dlc_schedule_node *node = &t->from->nodes.data[n], *inner = node + 1;
    int64_t extent;
    int is_short = dlc_expr_is_int(t->from->kernel->pool, t->from->kernel->axes.data[node->axis].extent, &extent) &&
                   extent <= MOST_UNROLLED && node->tile == 1;
    if (n + 1 < node->end && inner->end == node->end && is_loop(inner) && inner->kind != DLC_LOOP_LANE && inner->axis != node->axis)
        exchange(t, n);
    if (node->kind == DLC_LOOP_FOR)
        change_kind(t, n, DLC_LOOP_PAR);
    if (node->kind == DLC_LOOP_UNROLL || (node->kind == DLC_LOOP_FOR && is_short))
        change_kind(t, n, node->kind == DLC_LOOP_FOR ? DLC_LOOP_UNROLL : DLC_LOOP_FOR);
    if (node->tile > 1) {
        vary_tile(t, n);
        add_blocks(t, n);
    }
}

void dlc_choose_neighbours(const dlc_kernel *kernel, const dlc_schedule *from, dlc_arena *arena, dlc_candidates *result)
{
    stepper t = {.kernel = kernel, .from = from, .arena = arena, .result = result};
    *result = (dlc_candidates){0};
    vary_kept(&t);
    for (uint32_t n = 0; n < from->nodes.n; n++) {
        const dlc_schedule_node *node = &from->nodes.data[n];
        if (node->kind == DLC_LOOP_LANE)
            vary_lane(&t, n);
        else if (is_loop(node))
            vary_loop(&t, n);
        if (node->kind != DLC_LOOP_LEAF || node->row == DLC_DOT_NONE)
            continue;
        vary_dot(&t, n);
        vary_skipped(&t, n);
    }
}

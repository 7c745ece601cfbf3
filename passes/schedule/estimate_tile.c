/*
 * What a contraction takes on register tiles. At a step along K a tile of r rows and c vectors of columns does r * c fused
 * multiplications, loads c vectors and r elements and, where the next panel is fetched, asks for c lines: the ports that have most to do
 * decide, or the latency of a sum that nobody else's steps fill, and what comes near to that costs, too (a tile of 3 rows and 2 vectors
 * takes 1.34 times as long for its sums as one of 6, on Zen 3). Sizes that tiles do not divide leave lower and narrower ones
 * (codegen/walk.c: heights are near equal).
 */
#include "passes/schedule/choose.h"

#include <math.h>

enum {
    FMA_A_CYCLE = 2,
    LOADS_A_CYCLE = 2,
    TILE_CYCLES = 8,   /* addresses and zeros */
    PART_CYCLES = 12,  /* a part begins and ends */
    LATENCY_HIDDEN = 64 /* cycles of a chain of sums in which the tile behind is begun */
};
#define OF_INTEGERS 3 /* vpmulld is two multiplications or takes their time */
#define MISSED_LOAD 1.5 /* loads' time of an element that neighbours have pushed out of L1 */
#define PART_SUM 1.0    /* a vector's total: loaded, added to, stored */
#define SPILLED 2       /* stored and loaded again at each step */

typedef struct {
    double size, count;
} piece;
typedef struct {
    piece data[64];
    uint32_t n;
    double covered; /* points of the axis, each once */
} pieces;

static void add(pieces *list, double size, double count)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (list->data[i].size == size) {
            list->data[i].count += count;
            return;
        }
    if (count > 0 && size > 0 && list->n < sizeof list->data / sizeof *list->data)
        list->data[list->n++] = (piece){size, count};
}

/* Tiles of columns begin at multiples of their width. Of a block that is none, what two blocks share of one is computed by both. */
static double tiles_touched(double block, double tile)
{
    double divisor = tile, rest = fmod(block, tile);
    while (rest > 0) {
        double next = fmod(divisor, rest);
        divisor = rest, rest = next;
    }
    return (block + tile - divisor) / tile;
}

/* Loop n and those over its axis around it cut the axis into these; its own pieces are near equal, or whole but for the last. */
static pieces pieces_of(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t n, uint32_t axis, int is_even)
{
    pieces from = {0}, to = {0};
    if (n == DLC_ROOT_NODE) {
        to.covered = axis == DLC_NO_AXIS ? 1 : (double)c->extent[axis];
        add(&to, to.covered, 1);
        return to;
    }
    uint32_t outer = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, n), axis);
    double tile = (double)schedule->nodes.data[n].tile;
    from = pieces_of(c, schedule, outer, axis, 0);
    to.covered = from.covered;
    for (uint32_t i = 0; i < from.n; i++) {
        double size = from.data[i].size, count = from.data[i].count, times = ceil(size / tile);
        double height = is_even ? ceil(size / times) : tile, whole = is_even ? size - times * (height - 1) : floor(size / tile);
        if (!is_even && outer != DLC_ROOT_NODE && size > tile && fmod(size, tile) > 0) {
            add(&to, tile, count * tiles_touched(size, tile));
            continue;
        }
        add(&to, height, count * whole);
        if (is_even)
            add(&to, height - 1, count * (times - whole));
        else
            add(&to, size - whole * tile, count);
    }
    return to;
}

/* More rows than L1 has ways, each beginning where the one before does in it. */
static int conflicts(const dlc_chooser *c, uint32_t s, const dlc_contraction *form, dlc_expr rows, double height)
{
    const dlc_ids *axes = rows == form->a ? &form->m : &form->n;
    if (height <= dlc_target_l1_ways(c->target) || !axes->n)
        return 0;
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, c->kernel->pool->nodes.n);
    dlc_expr_reach(c->kernel->pool, rows, marks);
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        if (access->load && marks[access->load] && !DLC_SOURCE_IS_STAGE(access->source) &&
            dlc_choose_stride(c, access->offset, axes->data[axes->n - 1]) *
                    dlc_dtype_bytes((dlc_dtype)dlc_node_of(c->kernel->pool, access->load)->dtype) % DLC_WAY_BYTES == 0)
            return 1;
    }
    return 0;
}

typedef struct {
    double width, registers, fma; /* fma: multiplications' time that a product takes */
    double apart;                 /* registers of a product that is yet to be added */
    int is_ahead, in_conflict;
} tile_facts;

static double step_cycles(const tile_facts *t, double rows, double columns)
{
    double vectors = ceil(columns / t->width), wanted = rows * vectors + vectors + 1 + t->apart;
    double multiplying = rows * vectors * t->fma / FMA_A_CYCLE;
    double misses = t->in_conflict ? rows * MISSED_LOAD : rows;
    double loading = (misses + vectors * (1 + t->is_ahead)) / LOADS_A_CYCLE;
    double cycles = dlc_estimate_beside(multiplying, loading);
    if (wanted > t->registers)
        cycles += (wanted - t->registers) * SPILLED / LOADS_A_CYCLE;
    return cycles;
}

/* Without what follows the sums. */
static double tile_cycles(const tile_facts *t, double rows, double columns, double steps)
{
    double busy = steps * step_cycles(t, rows, columns), chain = steps * DLC_SUM_LATENCY - LATENCY_HIDDEN;
    return dlc_estimate_beside(busy, chain > 0 ? chain : 0) + TILE_CYCLES;
}

/* Points of K that a leaf sums, and those of a part. */
static double terms_of(const dlc_chooser *c, const dlc_schedule_node *node, double *part)
{
    double terms = 1, behind = 1;
    int is_behind = 0;
    for (uint32_t i = 0; i < node->over.n; i++) {
        double extent = (double)c->extent[node->over.data[i]];
        terms *= extent;
        if (is_behind)
            behind *= extent;
        is_behind |= node->over.data[i] == node->cut;
    }
    *part = node->part ? (double)node->part * behind : 0;
    return terms;
}

static double product_time(const dlc_target *target, dlc_dot row, dlc_dtype acc)
{
    if (dlc_dots[row].takes > 1)
        return DLC_ADDED_APART;
    if (dlc_dots[row].granule == 1 && dlc_is_int(acc) && target->facts & DLC_HAS_PMADDWD) /* x86-64 */
        return OF_INTEGERS;
    return target->facts & DLC_HAS_FMA || dlc_dots[row].granule > 1 ? 1 : 2;
}

double dlc_estimate_tiles(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf)
{
    const dlc_schedule_node *node = &schedule->nodes.data[leaf];
    const dlc_stage *stage = &c->kernel->stages.data[node->stage];
    const dlc_target *target = schedule->target;
    dlc_contraction form;
    pieces rows = pieces_of(c, schedule, dlc_schedule_rows(schedule, leaf), node->rows, 1);
    pieces columns = pieces_of(c, schedule, dlc_schedule_columns(schedule, leaf), node->columns, 0);
    tile_facts t = {.width = (double)target->vector_bytes / dlc_dtype_bytes(stage->dtype[0]),
                    .registers = target->vector_registers ? target->vector_registers : 16,
                    .apart = dlc_dots[node->row].takes - 1,
                    .fma = product_time(target, (dlc_dot)node->row, stage->dtype[0]),
                    .is_ahead = node->ahead};
    double part, terms = terms_of(c, node, &part), read = node->nskipped ? dlc_choose_read(c, schedule, leaf) : 1;
    double steps = terms * read / dlc_dots[node->row].granule, cycles = 0;
    int is_known = dlc_contraction_of(c->kernel, stage, c->arena, &form);
    dlc_expr factor = !is_known ? 0 : dlc_ids_find(&form.m, node->columns, NULL) ? form.b : form.a;
    for (uint32_t r = 0; r < rows.n; r++) {
        t.in_conflict = factor && conflicts(c, node->stage, &form, factor, rows.data[r].size);
        for (uint32_t i = 0; i < columns.n; i++) {
            double height = rows.data[r].size, wide = columns.data[i].size, count = rows.data[r].count * columns.data[i].count;
            double sums = height * ceil(wide / t.width), tile = tile_cycles(&t, height, wide, steps);
            if (part > 0 && part < terms)
                tile += ceil(terms * read / part) * (sums * PART_SUM + PART_CYCLES);
            cycles += count * tile;
        }
    }
    double all = dlc_choose_points(c, &stage->axes) * dlc_choose_points(c, &stage->reduce);
    double products = rows.covered * columns.covered * terms;
    return products > 0 ? cycles / products * all : 0;
}

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
    LINE_ELEMENTS = 3,  /* elements in a cycle that lie in a line or two, which ports for shorter loads spread, too */
    BURST = 16,         /* sums that are stored without waiting; */
    FAR_BURST = 7,      /* of parts of lines that L2 does not hold */
    FEW_OPS = 12,       /* of a sum until it is stored */
    LATENCY_HIDDEN = 8 /* cycles of a chain of sums in which the tile behind is begun */
};
#define LOAD_HIDING 6.0  /* loads as long as the multiplications make them an eighth longer */
#define CHAIN_HIDING 8.0 /* a chain as long as the multiplications makes them a tenth longer: nothing else waits for it */
#define TOLD_APART 0.97 /* of the time that a product takes on the rule's tiles: others that take no less are no better; */
#define FITTED_APART 0.995 /* on a machine to which estimates were fitted */
#define STAYS 0.7        /* of L2: results that are there when the kernel behind reads them */
#define OF_INTEGERS 3 /* vpmulld is two multiplications or takes their time */
#define PUSHED_OUT 0.06  /* of a sum's latency at each step, by the square of the rows that L1 has no way for: they push each other out */
#define NEAR_PART_SUM 0.2 /* a vector's total in a register, where additions have ports of their own */
#define SPILLED 2       /* stored and loaded again at each step */

typedef struct {
    double size, count;
} piece;
typedef struct {
    piece data[64];
    uint32_t n;
    double covered; /* points of the axis, each once */
    int is_uneven;  /* loops left something over, so pieces have several lengths; */
    int is_region;  /* which code does not know, being those of what other axes' blocks need */
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

/* Rows that the last tile of a block is made for, whose length differs from block to block (codegen/walk.c): the next of a few. */
static double height_of_rest(double rest, double tile)
{
    double heights[] = {1, floor((tile + 2) / 3), floor((2 * tile + 2) / 3)};
    for (int i = 0; i < 3; i++)
        if (rest <= heights[i])
            return heights[i];
    return tile;
}

/* What the loops around n leave of its axis, none of which is over it: all of it, or blocks of the points that are needed there, once that is
 * known. */
static pieces blocks_of(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t n, uint32_t axis)
{
    pieces all = {.covered = axis == DLC_NO_AXIS ? 1 : (double)c->extent[axis]};
    int64_t size;
    if (n == DLC_ROOT_NODE || !schedule->ranges || !dlc_expr_is_int(c->kernel->pool, schedule->ranges[n].size, &size)) {
        add(&all, all.covered, 1);
        return all;
    }
    dlc_blocks blocks = dlc_estimate_blocks(c, schedule, n);
    all.covered = 0;
    for (uint32_t i = 0; i < blocks.n; i++) {
        add(&all, blocks.data[i].size, blocks.data[i].count);
        all.covered += blocks.data[i].size * blocks.data[i].count;
    }
    all.is_uneven = all.is_region = blocks.n > 1;
    return all;
}

/* How a loop cuts what it runs over: a plain one into whole pieces but for the last; rows of register tiles into near-equal ones, where it is known
 * how much that is; columns at multiples of their width (codegen/walk.c). */
typedef enum { CUTS_PLAINLY, CUTS_ROWS, CUTS_COLUMNS } cutting;

/* Loop n and those over its axis around it cut the axis into these. */
static pieces pieces_of(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t n, uint32_t axis, cutting how)
{
    pieces from = {0}, to = {0};
    if (n == DLC_ROOT_NODE)
        return blocks_of(c, schedule, n, axis);
    uint32_t outer = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, n), axis);
    double tile = (double)schedule->nodes.data[n].tile;
    from = outer == DLC_ROOT_NODE ? blocks_of(c, schedule, n, axis) : pieces_of(c, schedule, outer, axis, CUTS_PLAINLY);
    to.covered = from.covered;
    to.is_uneven = from.is_uneven;
    to.is_region = from.is_region;
    int is_balanced = how == CUTS_ROWS && !from.is_uneven;
    for (uint32_t i = 0; i < from.n; i++) {
        double size = from.data[i].size, count = from.data[i].count, times = ceil(size / tile);
        to.is_uneven |= size > tile && fmod(size, tile) > 0;
        double height = is_balanced ? ceil(size / times) : tile;
        double whole = is_balanced ? size - times * (height - 1) : floor(size / tile), rest = size - whole * tile;
        if (how == CUTS_COLUMNS && fmod(size, tile) > 0 && (from.n > 1 || count > 1)) {
            add(&to, tile, count * (size > tile ? tiles_touched(size, tile) : 1));
            continue;
        }
        add(&to, height, count * whole);
        if (is_balanced)
            add(&to, height - 1, count * (times - whole));
        else if (rest > 0)
            add(&to, how == CUTS_ROWS && from.is_region ? height_of_rest(rest, tile) : rest, count);
    }
    return to;
}

/* From the axis's first point to its second, where points lie at no fixed distance. */
static int64_t first_distance(const dlc_chooser *c, dlc_expr offset, uint32_t axis)
{
    dlc_pool *pool = c->kernel->pool;
    dlc_expr *with = dlc_new_array(c->arena, dlc_expr, c->kernel->axes.n);
    for (uint32_t a = 0; a < c->kernel->axes.n; a++)
        with[a] = dlc_expr_i64(pool, 0);
    int64_t first = dlc_expr_eval(pool, dlc_expr_substitute(pool, offset, with, c->kernel->axes.n), c->symbols);
    with[axis] = dlc_expr_i64(pool, 1);
    return dlc_expr_eval(pool, dlc_expr_substitute(pool, offset, with, c->kernel->axes.n), c->symbols) - first;
}

/* The places in a way of L1 at which rows so many bytes apart begin. */
static double places_of(int64_t bytes)
{
    double apart = fmod(fabs((double)bytes), DLC_WAY_BYTES), places = 1;
    while (fmod(apart * places, DLC_WAY_BYTES) > 0)
        places *= 2;
    return places;
}

/* The square of the rows that L1 has no way for, of those that begin at one place in it, for all such places. */
static double crowding(const dlc_chooser *c, uint32_t s, const dlc_contraction *form, dlc_expr rows, double height)
{
    const dlc_ids *axes = rows == form->a ? &form->m : &form->n;
    double ways = dlc_target_l1_ways(c->target), worst = 0;
    if (height <= ways || !axes->n)
        return 0;
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, c->kernel->pool->nodes.n);
    dlc_expr_reach(c->kernel->pool, rows, marks);
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        if (!access->load || !marks[access->load])
            continue;
        int64_t stride = dlc_choose_stride(c, access->offset, axes->data[axes->n - 1]);
        if (stride == DLC_ODD_STRIDE && !dlc_expr_has_load(c->kernel->pool, access->offset))
            stride = first_distance(c, access->offset, axes->data[axes->n - 1]);
        double places = places_of(stride * (int64_t)dlc_dtype_bytes((dlc_dtype)dlc_node_of(c->kernel->pool, access->load)->dtype));
        double beyond = height / places - ways;
        if (beyond > 0 && beyond * beyond * places > worst)
            worst = beyond * beyond * places;
    }
    return worst;
}

/* Rows' elements lie at no fixed distance: each row begins where divisions say. */
static int begins_anywhere(const dlc_chooser *c, uint32_t s, dlc_expr rows, uint32_t axis)
{
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, c->kernel->pool->nodes.n);
    dlc_expr_reach(c->kernel->pool, rows, marks);
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        if (access->load && marks[access->load] && dlc_choose_stride(c, access->offset, axis) == DLC_ODD_STRIDE)
            return 1;
    }
    return 0;
}

/* The elements of a tile's rows lie side by side in scratch: all that a step spreads comes from a line or two. (Emerald Rapids, attention of 12 heads
 * by 128 x 128 x 32: the second product on tiles of 13 rows by 16 columns takes as long as on 12 by 32, 105 us; of rows apart a tenth more.) */
static int are_side_by_side(const dlc_chooser *c, dlc_expr rows, uint32_t axis)
{
    const dlc_pool *pool = c->kernel->pool;
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, pool->nodes.n);
    int found = 0;
    dlc_expr_reach(pool, rows, marks);
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LOAD || !dlc_expr_uses_axis(pool, id, axis))
            continue;
        dlc_source source = dlc_node_of(pool, id)->imm.id;
        if (!DLC_SOURCE_IS_STAGE(source) || !c->together || c->together[DLC_SOURCE_INDEX(source)] != axis)
            return 0;
        found = 1;
    }
    return found;
}

typedef struct {
    const dlc_machine *machine;
    double width, registers, fma; /* fma: multiplications' time that a product takes */
    double apart;                 /* registers of a product that is yet to be added */
    double crowding;
    double granule;
    double burst;                 /* sums that are stored without waiting */
    double parts;                 /* that a sum is made of: 1 or more */
    double entries;               /* of the innermost loop along K */
    double least;                 /* of a vector: the part that takes a step of the processor */
    double elements; /* that are read and spread in a cycle */
    double asked; /* lines that a step asks for ahead */
    double widening; /* cycles of a step's vector of columns, beside its multiplications */
    int begins_anywhere;
} tile_facts;

/* Vectors that multiplications of a tile so wide take the time of: one vector is as short as its columns let it be
 * (dlc_schedule_rest_lanes). */
static double vectors_paid(const tile_facts *t, double columns)
{
    double part = 1;
    if (columns > t->width)
        return ceil(columns / t->width);
    while (part / 2 >= t->least && columns <= part / 2 * t->width)
        part /= 2;
    return part;
}

static double step_cycles(const tile_facts *t, double rows, double columns)
{
    double vectors = ceil(columns / t->width), wanted = rows * vectors + vectors + 1 + t->apart;
    double multiplying = rows * vectors_paid(t, columns) * t->fma / FMA_A_CYCLE + vectors * t->widening;
    double loading = rows / t->elements + t->asked / t->machine->element_loads + vectors / LOADS_A_CYCLE;
    double cycles = dlc_estimate_hiding(multiplying, loading, LOAD_HIDING) + (vectors > 1 ? t->machine->spread_cycles : t->machine->narrow_cycles);
    cycles += t->crowding * t->machine->sum_latency * PUSHED_OUT;
    if (wanted > t->registers)
        cycles += (wanted - t->registers) * SPILLED / LOADS_A_CYCLE;
    return cycles;
}

/* Multiplications that spread elements by themselves, each for one vector, are next to all that the processor's window holds: the next tile is
 * under way while this one's sums are put together and its rows are found. Those of pairs (vdpbf16ps) are more than one each. (Zen 4, 12544
 * windows of 27 by 32: on tiles of 7 rows and a vector as long as its multiplications, of two vectors 1.12 times.) */
static int is_begun_early(const tile_facts *t, double columns)
{
    return t->machine->fitted && t->granule == 1 && t->machine->element_loads > LOADS_A_CYCLE && columns <= t->width;
}

/* Totals of parts stay in the registers that sums leave; those in memory are added to from the second part on. (There, by 14 rows of two vectors
 * 1.35 times.) */
static double part_cycles(const tile_facts *t, double sums, double vectors)
{
    double room = t->registers - sums - vectors - 1, near = !t->machine->fitted || room < 0 ? 0 : room < sums ? room : sums;
    return t->parts > 1 ? t->parts * near * NEAR_PART_SUM + (t->parts - 1) * (sums - near) * t->machine->part_cycles : 0;
}

static double tile_cycles(const tile_facts *t, double rows, double columns, double steps)
{
    double busy = steps * step_cycles(t, rows, columns), chain = steps * t->machine->sum_latency - LATENCY_HIDDEN;
    double vectors = ceil(columns / t->width), sums = rows * vectors, cycles = t->machine->tile_cycles + part_cycles(t, sums, vectors);
    busy = dlc_estimate_hiding(busy, chain > 0 ? chain : 0, CHAIN_HIDING);
    if (t->begins_anywhere)
        cycles += rows * t->machine->row_cycles;
    if (t->begins_anywhere && t->machine->fitted && rows > DLC_ROW_POINTERS)
        busy += (rows - DLC_ROW_POINTERS) * t->entries;
    busy = is_begun_early(t, columns) ? dlc_estimate_beside(busy, cycles) : busy + cycles;
    return sums > t->burst ? busy + (sums - t->burst) * t->machine->burst_cycles : busy;
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

/* Results narrower than the sums: a vector of them is part of a line, for which stores wait where the kernel's results leave L2; but where much is
 * computed of each sum (an exponential), there is time enough. */
static int is_stored_far(const dlc_chooser *c, dlc_dtype acc)
{
    double bytes = 0;
    int is_narrow = 0;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++) {
        uint32_t buffer = c->kernel->stages.data[s].buffer;
        if (buffer == DLC_NO_BUFFER)
            continue;
        size_t size = dlc_dtype_bytes(c->kernel->buffers.data[buffer].type.dtype);
        is_narrow |= size < dlc_dtype_bytes(acc) && c->work[s] <= FEW_OPS * dlc_choose_points(c, &c->kernel->stages.data[s].axes);
        bytes += dlc_choose_elems(c, buffer) * (double)size;
    }
    return is_narrow && bytes > c->target->l2_bytes * STAYS;
}

/* Constants of f16 become floats at each step: two operations, which the units take that multiply; of half the bytes one of them has others. */
static double widening_of(const dlc_chooser *c, uint32_t s)
{
    const dlc_pool *pool = c->kernel->pool;
    dlc_contraction form;
    if (!dlc_scales(c->target) || !dlc_contraction_of(c->kernel, &c->kernel->stages.data[s], c->arena, &form))
        return 0;
    for (uint32_t i = 0; i < 2; i++) {
        dlc_expr factor = i ? form.a : form.b, load = dlc_node_of(pool, factor)->op == DLC_EXPR_CAST ? dlc_arg(pool, factor, 0) : 0;
        const dlc_expr_node *node = load ? dlc_node_of(pool, load) : NULL;
        if (node && node->op == DLC_EXPR_LOAD && node->dtype == DLC_F16 && !DLC_SOURCE_IS_STAGE(node->imm.id) &&
            c->kernel->buffers.data[node->imm.id].role == DLC_ROLE_CONST)
            return 2.0 / FMA_A_CYCLE;
    }
    return 0;
}

static tile_facts facts_of(const dlc_chooser *c, uint32_t s, dlc_dot row, dlc_dtype acc)
{
    const dlc_target *target = c->target;
    double step = (double)target->machine->step_bytes;
    return (tile_facts){.machine = target->machine,
                        .width = (double)target->vector_bytes / dlc_dtype_bytes(acc),
                        .burst = target->machine->fitted && is_stored_far(c, acc) ? FAR_BURST : BURST,
                        .least = step && step < target->vector_bytes ? step / target->vector_bytes : 1,
                        .registers = target->vector_registers ? target->vector_registers : 16,
                        .apart = dlc_dots[row].takes - 1,
                        .granule = dlc_dots[row].granule,
                        .widening = dlc_dots[row].granule == 1 ? widening_of(c, s) : 0,
                        .elements = target->machine->element_loads,
                        .fma = product_time(target, row, acc)};
}

/* Cycles of a product on tiles of `height` rows, near equal, and so many vectors. */
static double product_cycles(const dlc_chooser *c, uint32_t s, dlc_dot row, dlc_dtype acc, const double size[3], int64_t height, int64_t vectors)
{
    tile_facts t = facts_of(c, s, row, acc);
    double tiles = ceil(size[0] / (double)height), high = ceil(size[0] / tiles), whole = size[0] - tiles * (high - 1);
    double wide = (double)vectors * t.width, rest = fmod(size[1], wide), steps = size[2] / dlc_dots[row].granule, cycles = 0;
    for (int is_rest = 0; is_rest < 2; is_rest++) {
        double count = is_rest ? rest > 0 : floor(size[1] / wide), columns = is_rest ? rest : wide;
        if (count > 0)
            cycles += count * (whole * tile_cycles(&t, high, columns, steps) + (tiles - whole) * tile_cycles(&t, high - 1, columns, steps));
    }
    return cycles;
}

int64_t dlc_choose_vectors(const dlc_chooser *c, uint32_t s, dlc_dot row, dlc_dtype acc, const double size[3],
                           const int64_t heights[DLC_MOST_VECTORS + 1], int64_t rule)
{
    int64_t columns = (int64_t)ceil(size[1] / ((double)c->target->vector_bytes / dlc_dtype_bytes(acc))), best = rule;
    if (rule > DLC_MOST_VECTORS || heights[rule] < 1)
        return rule;
    double least = product_cycles(c, s, row, acc, size, heights[rule], rule) * (c->target->machine->fitted ? FITTED_APART : TOLD_APART);
    for (int64_t v = 1; v <= DLC_MOST_VECTORS && v <= columns; v++) {
        double cycles = heights[v] > 0 ? product_cycles(c, s, row, acc, size, heights[v], v) : least;
        if (cycles < least)
            least = cycles, best = v;
    }
    return best;
}

int64_t dlc_choose_height(const dlc_chooser *c, uint32_t s, dlc_dot row, dlc_dtype acc, const double size[3], int64_t height, int64_t vectors)
{
    enum { LEAST_HEIGHT = 3, MOST_PARTS = 4 };
    double least = c->target->machine->fitted ? product_cycles(c, s, row, acc, size, height, vectors) * FITTED_APART : 0;
    int64_t best = height;
    for (int64_t parts = 2; parts <= MOST_PARTS && (height + parts - 1) / parts >= LEAST_HEIGHT; parts++) {
        double cycles = product_cycles(c, s, row, acc, size, (height + parts - 1) / parts, vectors);
        if (cycles < least)
            least = cycles * FITTED_APART, best = (height + parts - 1) / parts;
    }
    return best;
}

double dlc_estimate_tiles(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf)
{
    const dlc_schedule_node *node = &schedule->nodes.data[leaf];
    const dlc_stage *stage = &c->kernel->stages.data[node->stage];
    dlc_contraction form;
    pieces rows = pieces_of(c, schedule, dlc_schedule_rows(schedule, leaf), node->rows, CUTS_ROWS);
    pieces columns = pieces_of(c, schedule, dlc_schedule_columns(schedule, leaf), node->columns, CUTS_COLUMNS);
    tile_facts t = facts_of(c, node->stage, (dlc_dot)node->row, stage->dtype[0]);
    double part, terms = terms_of(c, node, &part), read = node->nskipped ? dlc_choose_read(c, schedule, leaf) : 1;
    double steps = terms * read / dlc_dots[node->row].granule, cycles = 0;
    t.asked = dlc_estimate_asked(c, schedule, leaf);
    t.parts = part > 0 && part < terms ? ceil(terms * read / part) : 1;
    t.entries = node->over.n ? terms * read / (double)c->extent[node->over.data[node->over.n - 1]] : 1;
    int is_known = dlc_contraction_of(c->kernel, stage, c->arena, &form);
    dlc_expr factor = !is_known ? 0 : dlc_ids_find(&form.m, node->columns, NULL) ? form.b : form.a;
    if (t.machine->fitted && t.elements < LINE_ELEMENTS && factor && are_side_by_side(c, factor, node->rows))
        t.elements = LINE_ELEMENTS;
    t.begins_anywhere = factor && node->rows != DLC_NO_AXIS && begins_anywhere(c, node->stage, factor, node->rows);
    for (uint32_t r = 0; r < rows.n; r++) {
        t.crowding = factor ? crowding(c, node->stage, &form, factor, rows.data[r].size) : 0;
        for (uint32_t i = 0; i < columns.n; i++) {
            double height = rows.data[r].size, wide = columns.data[i].size, count = rows.data[r].count * columns.data[i].count;
            cycles += count * tile_cycles(&t, height, wide, steps);
        }
    }
    double all = dlc_choose_points(c, &stage->axes) * dlc_choose_points(c, &stage->reduce);
    double products = rows.covered * columns.covered * terms;
    return products > 0 ? cycles / products * all : 0;
}

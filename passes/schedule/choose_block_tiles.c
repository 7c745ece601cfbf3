/*
 * Products in a row for CUDA, attention above all: a block of threads has the rows of a tile, and what lies between products
 * stays in its shared memory.
 *
 *     par points, rows:32 {
 *       for columns:128 {
 *         for k:16 { thread … { slices of the factors }  thread rows:2, columns:8 { product in reg } }
 *         thread rows:2, columns:8 { as product { maps behind it } } }
 *       warp rows { sums, maxima and maps by lanes }
 *       for columns:64 { … the next product } }
 */
#include "ir/schedule/resolve.h"
#include "passes/schedule/choose_tiles.h"

enum {
    SIDE = 16,          /* threads of a block, squared */
    SLICE = 16,         /* steps along K */
    PAD = 4,
    PACK = 4,           /* neighbours that a thread moves as one access */
    MOST_ROWS = 64,     /* of a block's tile */
    MOST_COLUMNS = 256,
    MOST_SIDE = 8,      /* of a thread's tile */
    MOST_IN_TURN_PERCENT = 125 /* slices that a block goes through, of those that a kernel of each product would */
};

typedef struct {
    int64_t n;             /* columns of the block's tile */
    int64_t rows, columns; /* a thread's of them */
} shape;

/* A factor's slice. */
typedef struct {
    uint32_t copy;     /* its stage, or DLC_NO_STAGE: it is in shared memory as it is */
    uint8_t along_k;   /* neighbouring threads have neighbours in K, else in its own axis */
    uint8_t is_packed; /* PACK elements to an access */
} slice;

typedef struct {
    slice left, right;
    shape tile;
} block_product;

/* A stage in shared memory, element by element. */
static int is_shared(const dlc_tiles *t, dlc_expr factor)
{
    const dlc_pool *pool = t->c->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, factor);
    return node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id) && !dlc_load_guard(pool, factor) && !node->flags &&
           t->c->place[DLC_SOURCE_INDEX(node->imm.id)] == DLC_PLACE_SCRATCH;
}

static int64_t tiles_of(int64_t size, int64_t tile)
{
    return (size + tile - 1) / tile;
}

/* A tile's time: what a thread multiplies and what it reads for that, as often as tiles follow each other. */
static double cycles_of(int64_t extent, const shape *tile)
{
    return (double)tiles_of(extent, tile->n) * dlc_choose_thread_cycles((double)tile->rows, (double)tile->columns);
}

/* Tiles of n columns by `rows`: the best share of a thread. */
static void try_columns(int64_t extent, int64_t rows, int64_t n, shape *best)
{
    for (int64_t a = 1; a <= MOST_SIDE && a <= rows; a *= 2)
        for (int64_t b = 1; b <= MOST_SIDE; b *= 2) {
            shape tile = {n, a, b};
            if (rows % a || n % b || rows / a * (n / b) > SIDE * SIDE)
                continue;
            if (!best->n || cycles_of(extent, &tile) < cycles_of(extent, best))
                *best = tile;
        }
}

/* Columns of any number are few tiles of nearly one width, in fours: a thread's neighbours are one access. */
static shape shape_of(const dlc_tiles *t, uint32_t s, int64_t rows)
{
    enum { MOST_TILES = 4 };
    uint32_t axis = t->products[s].columns;
    int64_t extent = t->c->extent[axis], n = MOST_COLUMNS / 2;
    shape best = {0};
    while (n > SIDE && n / 2 >= extent)
        n /= 2;
    try_columns(extent, rows, n, &best);
    for (int64_t tiles = 1; dlc_choose_is_known(t->c, axis) && tiles <= MOST_TILES; tiles++) {
        n = tiles_of(tiles_of(extent, tiles), PACK) * PACK;
        if (n <= MOST_COLUMNS && n >= SIDE)
            try_columns(extent, rows, n, &best);
    }
    return best;
}

/* Of a row's bytes, those of maps that overwrite what they read (ir/schedule/home.c). */
static double taken_bytes(const dlc_tiles *t)
{
    const dlc_chooser *c = t->c;
    dlc_reads reads = {0};
    double bytes = 0;
    dlc_reads_find(c->schedule, c->arena, &reads);
    for (uint32_t s = 1; s < c->kernel->stages.n; s++)
        for (uint32_t from = 0; from < s && c->place[s] == DLC_PLACE_SCRATCH; from++) {
            if (c->place[from] != DLC_PLACE_SCRATCH || !dlc_reads_may_take(c->kernel, &reads, s, from))
                continue;
            dlc_ids own = {0};
            for (uint32_t i = 0; i < dlc_tiles_stage(t, s)->axes.n; i++)
                if (!dlc_ids_find(&c->roots, dlc_tiles_stage(t, s)->axes.data[i], NULL))
                    dlc_vec_push(c->arena, &own, dlc_tiles_stage(t, s)->axes.data[i]);
            bytes += dlc_choose_points(c, &own) * dlc_dtype_bytes(dlc_tiles_stage(t, s)->dtype[0]);
            break;
        }
    return bytes;
}

/* Bytes of shared memory with so many rows to a block. */
static double bytes_of(const dlc_tiles *t, int64_t rows)
{
    double bytes = (dlc_tiles_row_bytes(t) - taken_bytes(t)) * (double)rows;
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++)
        if (t->products[s].is_dot) {
            int64_t points = is_shared(t, t->products[s].left) ? 0 : rows + PAD;
            points += shape_of(t, s, rows).n + PAD;
            bytes += (double)(points * SLICE * (int64_t)dlc_dtype_bytes(dlc_tiles_stage(t, s)->dtype[0]));
        }
    return bytes;
}

/* As many rows as fit, but blocks for all multiprocessors. */
static int choose_rows(dlc_tiles *t)
{
    const dlc_machine *machine = t->c->target->machine;
    double rows = dlc_choose_points(t->c, &t->rows), points = dlc_choose_points(t->c, &t->points);
    t->t = 0;
    for (int64_t m = SIDE; m <= MOST_ROWS && bytes_of(t, m) <= t->c->target->scratch_bytes; m *= 2) {
        if (m > SIDE && points * rows / (double)m * machine->block_workers < machine->workers)
            break;
        t->t = m;
    }
    return t->t != 0;
}

static void add_part(const dlc_tiles *t, dlc_schedule_copy *copy, uint32_t axis, int32_t pad)
{
    dlc_copy_part part = {.block = 1, .pad = pad};
    dlc_vec_push(t->c->arena, &part.axes, axis);
    dlc_vec_push(t->c->arena, &copy->parts, part);
}

/* [others, k, own + PAD], of axes that the factor depends on. */
static uint32_t add_slice(const dlc_tiles *t, const char *name, uint32_t s, dlc_expr factor, const dlc_ids *own)
{
    dlc_schedule *schedule = t->c->schedule;
    const dlc_stage *stage = dlc_tiles_stage(t, s);
    dlc_ids axes = {0};
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!dlc_ids_find(own, stage->axes.data[i], NULL) && dlc_expr_uses_axis(t->c->kernel->pool, factor, stage->axes.data[i]))
            dlc_vec_push(t->c->arena, &axes, stage->axes.data[i]);
    dlc_vec_push(t->c->arena, &axes, t->products[s].order.data[0]);
    uint32_t nouter = axes.n;
    for (uint32_t i = 0; i < own->n; i++)
        dlc_vec_push(t->c->arena, &axes, own->data[i]);
    uint32_t copy = dlc_schedule_copy_add(schedule, dlc_arena_printf(t->c->arena, "%s%u", name, s), s,
                                          dlc_schedule_operand_name(schedule, s, factor), factor, &axes);
    dlc_schedule_copy *row = &schedule->copies.data[schedule->copies.n - 1];
    for (uint32_t i = 0; i < nouter; i++)
        add_part(t, row, axes.data[i], 0);
    add_part(t, row, own->data[0], PAD);
    for (uint32_t i = 1; i < own->n; i++)
        dlc_vec_push(t->c->arena, &row->parts.data[nouter].axes, own->data[i]);
    return copy;
}

static void judge_slice(const dlc_tiles *t, uint32_t s, dlc_expr factor, const dlc_ids *own, slice *result)
{
    dlc_chooser *c = t->c;
    uint32_t k = t->products[s].order.data[0];
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        if (access->load != factor)
            continue;
        result->along_k = dlc_choose_stride(c, access->offset, k) == 1;
        uint32_t lane = result->along_k ? k : own->data[own->n - 1];
        result->is_packed = (result->along_k || own->n == 1) && dlc_choose_is_known(c, lane) && c->extent[lane] % PACK == 0 &&
                            dlc_choose_stride(c, access->offset, lane) == 1 && dlc_choose_is_packed(c, access, lane, PACK) &&
                            dlc_dtype_bytes(dlc_node_of(c->kernel->pool, factor)->dtype) <= 4;
    }
}

/* --- the tree --- */

static void build_slice(const dlc_tiles *t, const slice *s, uint32_t k, uint32_t own)
{
    dlc_schedule *schedule = t->c->schedule;
    uint32_t inner = s->along_k ? k : own;
    if (s->copy == DLC_NO_STAGE)
        return;
    dlc_schedule_open(schedule, DLC_LOOP_THREAD, s->along_k ? own : k, 1);
    dlc_schedule_open(schedule, DLC_LOOP_THREAD, inner, s->is_packed ? PACK : 1);
    if (s->is_packed)
        dlc_schedule_open_lane(schedule, inner, PACK, 1);
    dlc_schedule_leaf(schedule, s->copy, DLC_PLACE_SCRATCH);
    schedule->nodes.data[schedule->nodes.n - 1].ahead = 1;
    dlc_schedule_close(schedule, 2u + s->is_packed);
}

static void open_deal(const dlc_tiles *t, uint32_t columns, const shape *tile)
{
    dlc_schedule_open(t->c->schedule, DLC_LOOP_THREAD, t->row_axis, tile->rows);
    dlc_schedule_open(t->c->schedule, DLC_LOOP_THREAD, columns, tile->columns);
}

static void build_product(const dlc_tiles *t, uint32_t s, const block_product *b)
{
    dlc_schedule *schedule = t->c->schedule;
    const dlc_tiles_product *p = &t->products[s];
    uint32_t k = p->order.data[0];
    for (uint32_t i = 0; i < p->others.n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, p->others.data[i], 1);
    dlc_schedule_open(schedule, DLC_LOOP_FOR, p->columns, b->tile.n);
    dlc_schedule_open(schedule, DLC_LOOP_FOR, k, SLICE);
    build_slice(t, &b->left, k, t->row_axis);
    build_slice(t, &b->right, k, p->columns);
    open_deal(t, p->columns, &b->tile);
    dlc_schedule_dot(schedule, s, DLC_DOT_FMA, t->row_axis, p->columns, &p->order, t->c->place[s]);
    dlc_schedule_close(schedule, 3);
    if (p->as_end > s + 1) {
        open_deal(t, p->columns, &b->tile);
        dlc_schedule_open_as(schedule, s);
        for (uint32_t e = s + 1; e < p->as_end; e++)
            dlc_schedule_leaf(schedule, e, t->c->place[e]);
        dlc_schedule_close(schedule, 3);
    }
    dlc_schedule_close(schedule, p->others.n + 1);
}

static void build_lanes(dlc_tiles *t, uint32_t *s)
{
    uint32_t item = t->item[*s];
    dlc_schedule_open(t->c->schedule, DLC_LOOP_WARP, t->row_axis, 1);
    for (; *s < t->c->schedule->nstages && t->item[*s] == item && !t->products[*s].is_dot; (*s)++)
        dlc_choose_lanes_stage(t->c, &t->lanes, *s);
    dlc_schedule_close(t->c->schedule, 1);
}

static void build(dlc_tiles *t)
{
    dlc_schedule *schedule = t->c->schedule;
    uint32_t nstages = schedule->nstages;
    block_product *products = dlc_new_array(t->c->arena, block_product, nstages);
    for (uint32_t s = 0; s < nstages; s++) {
        const dlc_tiles_product *p = &t->products[s];
        dlc_ids columns = {0};
        if (!p->is_dot)
            continue;
        dlc_vec_push(t->c->arena, &columns, p->columns);
        products[s] = (block_product){{.copy = DLC_NO_STAGE}, {.copy = DLC_NO_STAGE}, shape_of(t, s, t->t)};
        judge_slice(t, s, p->left, &t->rows, &products[s].left);
        judge_slice(t, s, p->right, &columns, &products[s].right);
        if (!is_shared(t, p->left))
            products[s].left.copy = add_slice(t, "rows", s, p->left, &t->rows);
        products[s].right.copy = add_slice(t, "columns", s, p->right, &columns);
    }
    dlc_tiles_flatten(t);
    schedule->threads = SIDE * SIDE;
    for (uint32_t i = 0; i < t->points.n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, t->points.data[i], 1);
    dlc_schedule_open(schedule, DLC_LOOP_PAR, t->row_axis, t->t);
    for (uint32_t s = 0; s < nstages;) {
        if (!t->products[s].is_dot) {
            build_lanes(t, &s);
            continue;
        }
        build_product(t, s, &products[s]);
        s = t->products[s].as_end;
    }
    dlc_schedule_close(schedule, t->points.n + 1);
}

/* Slices are of all rows, all columns and one reduced axis. */
static int has_slices(const dlc_tiles *t, uint32_t s)
{
    const dlc_tiles_product *p = &t->products[s];
    const dlc_pool *pool = t->c->kernel->pool;
    if (p->order.n != 1 || !dlc_expr_uses_axis(pool, p->left, p->order.data[0]) ||
        !dlc_expr_uses_axis(pool, p->right, p->order.data[0]) || !dlc_expr_uses_axis(pool, p->right, p->columns))
        return 0;
    for (uint32_t i = 0; i < t->rows.n; i++)
        if (!dlc_expr_uses_axis(pool, p->left, t->rows.data[i]))
            return 0;
    return 1;
}

/* Columns are tiles of one block, one after the other, where a kernel of the product alone has a block for each: no waiting for
 * memory is hidden behind others then. */
static int is_worth(const dlc_tiles *t)
{
    int64_t in_turn = 0, alone = 0;
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++) {
        const dlc_tiles_product *p = &t->products[s];
        if (!p->is_dot)
            continue;
        int64_t slices = tiles_of(t->c->extent[p->order.data[0]], SLICE);
        alone += slices;
        in_turn += slices * tiles_of(t->c->extent[p->columns], shape_of(t, s, t->t).n) * (int64_t)dlc_choose_points(t->c, &p->others);
    }
    return in_turn * 100 <= MOST_IN_TURN_PERCENT * alone;
}

int dlc_choose_block_tiles(dlc_chooser *c)
{
    dlc_tiles t = {.c = c}; /* blocks copy rows by threads of their own: no product feeds the next */
    if (!dlc_tiles_find(&t))
        return 0;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        if (t.products[s].is_dot && !has_slices(&t, s))
            return 0;
    if (!choose_rows(&t) || !is_worth(&t))
        return 0;
    build(&t);
    return 1;
}

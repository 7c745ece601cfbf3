/*
 * A contraction by blocks of CUDA threads: slices of both factors along K go through shared memory, the next loaded into
 * registers while the present one is multiplied; each thread keeps a register tile.
 *
 *     par batches, rows:64, columns:64 {
 *       for k:16 {
 *         thread k, rows { a's slice in scratch ahead 1 via reg }
 *         thread k, columns { b's }
 *         thread rows:4, columns:4 { the dot } }
 *       thread rows:4, columns:4 { as the dot { maps behind it } } }
 */
#include "passes/schedule/choose.h"

enum {
    LEAST_WORK = 8192,    /* multiply-adds below which a warp's lanes do as well */
    LEAST_SIDE = 8,       /* rows or columns below which half of the smallest tile is wasted */
    MULTIPROCESSORS = 64, /* of a card of medium size: tiles are made small enough to occupy them */
    SLICE_CYCLES = 2,     /* of a step along K besides multiplying: addresses, waiting for the others */
    SIDE = 16,            /* threads of a block, squared */
    SLICE = 16,           /* steps along K */
    PAD = 4,              /* elements: rows of a slice begin in other banks, and stay aligned for accesses of 4 */
    PACK = 4
};

typedef struct {
    dlc_chooser *c;
    dlc_contraction form; /* a gives rows, b columns */
    dlc_ids order;        /* of the reduced axes */
    double rows, columns, depth, batches;
    int64_t m, n;         /* tile of the block */
    uint32_t rows_axis, columns_axis, k_axis;
} dot;

/* A factor's slice. */
typedef struct {
    uint32_t copy;       /* its stage */
    uint8_t along_k;     /* neighbouring threads have neighbours in K, else in its own axis */
    uint8_t is_packed;   /* PACK elements to an access */
} slice;

static void exchange(dot *d)
{
    dlc_contraction before = d->form;
    d->form.a = before.b, d->form.b = before.a;
    d->form.m = before.n, d->form.n = before.m;
}

static int is_stored_along(const dot *d, const dlc_ids *axes)
{
    const dlc_chooser *c = d->c;
    for (uint32_t s = 0; axes->n && s < c->kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++)
            if (!c->accesses[s].data[i].load &&
                dlc_choose_stride(c, c->accesses[s].data[i].offset, axes->data[axes->n - 1]) == 1)
                return 1;
    return 0;
}

/* Neighbouring threads are neighbouring columns: n is what is contiguous in the result. */
static void choose_roles(dot *d)
{
    dlc_choose_sort(d->c, &d->form.m);
    dlc_choose_sort(d->c, &d->form.n);
    dlc_choose_sort(d->c, &d->form.batch);
    if (!is_stored_along(d, &d->form.n) && is_stored_along(d, &d->form.m))
        exchange(d);
    d->rows = dlc_choose_points(d->c, &d->form.m);
    d->columns = dlc_choose_points(d->c, &d->form.n);
    d->depth = dlc_choose_points(d->c, &d->form.k);
    d->batches = dlc_choose_points(d->c, &d->form.batch);
}

static double tiles(double size, int64_t tile)
{
    return (double)(((int64_t)size + tile - 1) / tile);
}

/* Rounds of blocks, times a step of a thread: its products, and what it reads of the slices for them. */
static double tile_cycles(const dot *d, int64_t m, int64_t n)
{
    double blocks = tiles(d->rows, m) * tiles(d->columns, n) * d->batches;
    double a = (double)(m / SIDE), b = (double)(n / SIDE);
    return tiles(blocks, MULTIPROCESSORS) * (a * b + (a + b) / 2 + SLICE_CYCLES);
}

static void choose_tile(dot *d)
{
    static const int64_t sides[] = {SIDE, 2 * SIDE, 4 * SIDE};
    double least = 0;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t j = 0; j < 3; j++) {
            double cycles = tile_cycles(d, sides[i], sides[j]);
            if (i + j && cycles > least)
                continue;
            least = cycles;
            d->m = sides[i];
            d->n = sides[j];
        }
}

/* --- slices --- */

static const dlc_access_fact *access_of(const dot *d, dlc_expr load)
{
    for (uint32_t i = 0; i < d->c->accesses[0].n; i++)
        if (d->c->accesses[0].data[i].load == load)
            return &d->c->accesses[0].data[i];
    return NULL;
}

static void judge_slice(const dot *d, dlc_expr factor, const dlc_ids *own, slice *s)
{
    const dlc_access_fact *access = access_of(d, factor);
    uint32_t last = d->order.data[d->order.n - 1];
    if (!access)
        return;
    s->along_k = dlc_choose_stride(d->c, access->offset, last) == 1;
    uint32_t lane = s->along_k ? last : own->data[own->n - 1];
    s->is_packed = (s->along_k ? d->order.n : own->n) == 1 && dlc_choose_is_known(d->c, lane) && d->c->extent[lane] % PACK == 0 &&
                   dlc_choose_stride(d->c, access->offset, lane) == 1 && dlc_choose_is_packed(d->c, access, lane, PACK) &&
                   dlc_dtype_bytes(dlc_node_of(d->c->kernel->pool, factor)->dtype) <= 4;
}

static void add_part(const dot *d, dlc_schedule_copy *copy, const uint32_t *axes, uint32_t n, int32_t pad)
{
    dlc_copy_part part = {.block = 1, .pad = pad};
    for (uint32_t i = 0; i < n; i++)
        dlc_vec_push(d->c->arena, &part.axes, axes[i]);
    if (n)
        dlc_vec_push(d->c->arena, &copy->parts, part);
}

static int uses_all(const dot *d, dlc_expr factor, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++)
        if (!dlc_expr_uses_axis(d->c->kernel->pool, factor, axes->data[i]))
            return 0;
    return 1;
}

static void add_slice(const dot *d, const char *name, dlc_expr factor, const dlc_ids *own, slice *s)
{
    dlc_schedule *schedule = d->c->schedule;
    const dlc_ids *lists[] = {&d->form.batch, &d->order, own};
    dlc_ids axes = {0};
    for (uint32_t l = 0; l < 3; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++)
            dlc_vec_push(d->c->arena, &axes, lists[l]->data[i]);
    s->copy = dlc_schedule_copy_add(schedule, name, 0, dlc_schedule_operand_name(schedule, 0, factor), factor, &axes);
    dlc_schedule_copy *copy = &schedule->copies.data[schedule->copies.n - 1];
    for (uint32_t i = 0; i < d->form.batch.n; i++)
        add_part(d, copy, &d->form.batch.data[i], 1, 0);
    add_part(d, copy, d->order.data, d->order.n, 0);
    add_part(d, copy, own->data, own->n, PAD);
}

/* --- the tree --- */

static void build_slice(const dot *d, const slice *s, uint32_t own_axis)
{
    dlc_schedule *schedule = d->c->schedule;
    uint32_t inner = s->along_k ? d->k_axis : own_axis;
    dlc_schedule_open(schedule, DLC_LOOP_THREAD, s->along_k ? own_axis : d->k_axis, 1);
    dlc_schedule_open(schedule, DLC_LOOP_THREAD, inner, s->is_packed ? PACK : 1);
    if (s->is_packed)
        dlc_schedule_open_lane(schedule, inner, PACK, 1);
    dlc_schedule_leaf(schedule, s->copy, DLC_PLACE_SCRATCH);
    schedule->nodes.data[schedule->nodes.n - 1].ahead = 1;
    dlc_schedule_close(schedule, 2u + s->is_packed);
}

static void open_deal(const dot *d)
{
    dlc_schedule_open(d->c->schedule, DLC_LOOP_THREAD, d->rows_axis, d->m / SIDE);
    dlc_schedule_open(d->c->schedule, DLC_LOOP_THREAD, d->columns_axis, d->n / SIDE);
}

static void build_maps(const dot *d)
{
    dlc_schedule *schedule = d->c->schedule;
    open_deal(d);
    dlc_schedule_open_as(schedule, 0);
    for (uint32_t s = 1; s < schedule->nstages; s++)
        dlc_schedule_leaf(schedule, s, d->c->kernel->stages.data[s].buffer == DLC_NO_BUFFER || d->c->is_read[s]
                                           ? DLC_PLACE_REG
                                           : DLC_PLACE_BUFFER);
    dlc_schedule_close(schedule, 3);
}

static void build(dot *d)
{
    dlc_schedule *schedule = d->c->schedule;
    dlc_ids over = {0};
    slice a = {0}, b = {0};
    int is_alone = schedule->nstages == 1;
    judge_slice(d, d->form.a, &d->form.m, &a);
    judge_slice(d, d->form.b, &d->form.n, &b);
    add_slice(d, "rows", d->form.a, &d->form.m, &a);
    add_slice(d, "columns", d->form.b, &d->form.n, &b);
    d->rows_axis = dlc_schedule_flatten(schedule, &d->form.m);
    d->columns_axis = dlc_schedule_flatten(schedule, &d->form.n);
    d->k_axis = dlc_schedule_flatten(schedule, &d->order);
    dlc_vec_push(d->c->arena, &over, d->k_axis);
    schedule->threads = SIDE * SIDE;
    for (uint32_t i = 0; i < d->form.batch.n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, d->form.batch.data[i], 1);
    dlc_schedule_open(schedule, DLC_LOOP_PAR, d->rows_axis, d->m);
    dlc_schedule_open(schedule, DLC_LOOP_PAR, d->columns_axis, d->n);
    dlc_schedule_open(schedule, DLC_LOOP_FOR, d->k_axis, SLICE);
    build_slice(d, &a, d->rows_axis);
    build_slice(d, &b, d->columns_axis);
    open_deal(d);
    dlc_schedule_dot(schedule, 0, DLC_DOT_FMA, d->rows_axis, d->columns_axis, &over, is_alone ? DLC_PLACE_BUFFER : DLC_PLACE_REG);
    dlc_schedule_close(schedule, 3);
    if (!is_alone)
        build_maps(d);
    dlc_schedule_close(schedule, d->form.batch.n + 2);
}

int dlc_choose_block(dlc_chooser *c)
{
    dot d = {.c = c};
    if (!dlc_choose_contraction(c, &d.form) || !d.form.m.n || !d.form.n.n)
        return 0;
    choose_roles(&d);
    if (d.rows < LEAST_SIDE || d.columns < LEAST_SIDE || d.rows * d.columns * d.depth < LEAST_WORK ||
        !uses_all(&d, d.form.a, &d.form.k) || !uses_all(&d, d.form.b, &d.form.k))
        return 0;
    dlc_choose_order_reduction(c, 0, d.form.a, &d.order);
    choose_tile(&d);
    build(&d);
    return 1;
}

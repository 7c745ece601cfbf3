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
 *
 * Where a row of dot.def takes the factors' own types by matrices of a warp, slices keep these types and are deeper, and warps have
 * the place of threads.
 */
#include "passes/schedule/choose.h"

enum {
    LEAST_WORK = 8192,    /* multiply-adds below which a warp's lanes do as well */
    LEAST_SIDE = 8,       /* rows or columns below which half of the smallest tile is wasted */
    WARP_SLICE_CYCLES = 2, /* of a step along K of a warp's, besides multiplying: addresses, waiting for the others */
    MOST_SIDE = 8,        /* of a thread's tile */
    SIDE = 16,            /* threads of a block, squared */
    SLICE = 32,           /* steps along K: memory is waited for between two slices; half where a thread copies more than */
    MOST_SINGLE = 8,      /* elements one by one, with an address and a guard each; */
    LEAST_SLICE = 8,      /* or of the largest tiles, whose registers leave no room for more */
    PAD = 4,              /* elements: rows of a slice begin in other banks, and stay aligned for accesses of 4 */
    PACK = 4,
    BANKS = 32,           /* of shared memory, of 4 bytes each */
    BYTES_EITHER_WAY = 2, /* of elements whose matrices are loaded as they lie, or turned over; of others neighbours lie along K */
    MATRIX_PAD = 16,      /* bytes: rows of a slice begin at accesses of as many, and in other banks */
    PRODUCT_CYCLES = 8,   /* of two matrices whose elements have PRODUCT_BYTES */
    PRODUCT_BYTES = 2,
    PACKED_CYCLES = 4,    /* of an element that a thread copies among neighbours */
    ELEMENT_CYCLES = 24   /* of one that it copies alone */
};

typedef struct {
    dlc_chooser *c;
    dlc_contraction form; /* a gives rows, b columns */
    dlc_ids order;        /* of the reduced axes */
    double rows, columns, depth, batches;
    int64_t m, n;         /* tile of the block */
    int64_t own_m, own_n; /* a thread's of it, or a warp's */
    int64_t slice;        /* steps along K */
    uint8_t is_ahead;     /* the next is loaded while one is multiplied */
    dlc_dot row;
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

/* Rounds of blocks, times a step of a thread. */
static double tile_cycles(const dot *d, int64_t m, int64_t n)
{
    double blocks = tiles(d->rows, m) * tiles(d->columns, n) * d->batches;
    return dlc_choose_rounds(d->c->target, blocks) * dlc_choose_thread_cycles((double)(m / SIDE), (double)(n / SIDE));
}

static void judge_slice(const dot *d, dlc_expr factor, const dlc_ids *own, slice *s);

static void choose_tile(dot *d)
{
    double least = 0;
    for (int64_t m = SIDE; m <= MOST_SIDE * SIDE; m *= 2)
        for (int64_t n = SIDE; n <= MOST_SIDE * SIDE; n *= 2) {
            double cycles = tile_cycles(d, m, n);
            if (least > 0 && cycles > least)
                continue;
            least = cycles;
            d->m = m;
            d->n = n;
        }
    d->own_m = d->m / SIDE;
    d->own_n = d->n / SIDE;
    slice a = {0}, b = {0};
    judge_slice(d, d->form.a, &d->form.m, &a);
    judge_slice(d, d->form.b, &d->form.n, &b);
    int64_t single = ((a.is_packed ? 0 : d->m) + (b.is_packed ? 0 : d->n)) * SLICE / (SIDE * SIDE);
    d->slice = d->own_m * d->own_n == MOST_SIDE * MOST_SIDE ? LEAST_SLICE : single > MOST_SINGLE ? SLICE / 2 : SLICE;
    d->is_ahead = 1;
    d->row = DLC_DOT_FMA;
}

static int is_matrix(const dot *d)
{
    return dlc_dots[d->row].family == DLC_FAMILY_WARP;
}

static int32_t factor_bytes(const dot *d)
{
    return (int32_t)dlc_dtype_bytes((dlc_dtype)dlc_dots[d->row].a);
}

/* --- slices --- */

/* Of what the factor is or is computed from, the access that has most to say of how it lies: one that varies along the last axis. */
static const dlc_access_fact *access_of(const dot *d, dlc_expr factor)
{
    const dlc_pool *pool = d->c->kernel->pool;
    uint32_t last = d->order.data[d->order.n - 1];
    const dlc_access_fact *found = NULL;
    uint8_t *marks = dlc_new_array(d->c->arena, uint8_t, pool->nodes.n);
    dlc_expr_reach(pool, factor, marks);
    for (uint32_t i = 0; i < d->c->accesses[0].n; i++) {
        const dlc_access_fact *access = &d->c->accesses[0].data[i];
        if (access->load && marks[access->load] && (!found || dlc_expr_uses_axis(pool, access->load, last)))
            found = access;
    }
    return found;
}

/* All that the factor reads is PACK neighbours along the axis, or the same for all of them. */
static int is_packed_along(const dot *d, dlc_expr factor, uint32_t lane)
{
    const dlc_pool *pool = d->c->kernel->pool;
    uint8_t *marks = dlc_new_array(d->c->arena, uint8_t, pool->nodes.n);
    dlc_expr_reach(pool, factor, marks);
    for (uint32_t i = 0; i < d->c->accesses[0].n; i++) {
        const dlc_access_fact *access = &d->c->accesses[0].data[i];
        int64_t stride = access->load ? dlc_choose_stride(d->c, access->offset, lane) : 0;
        if (access->load && marks[access->load] && stride != 0 && (stride != 1 || !dlc_choose_is_packed(d->c, access, lane, PACK)))
            return 0;
    }
    return 1;
}

static void judge_slice(const dot *d, dlc_expr factor, const dlc_ids *own, slice *s)
{
    const dlc_access_fact *access = access_of(d, factor);
    uint32_t last = d->order.data[d->order.n - 1];
    if (!access)
        return;
    s->along_k = dlc_choose_stride(d->c, access->offset, last) == 1;
    uint32_t lane = s->along_k ? last : own->data[own->n - 1];
    s->is_packed = (s->along_k || own->n == 1) && dlc_choose_is_known(d->c, lane) && d->c->extent[lane] % PACK == 0 &&
                   dlc_choose_stride(d->c, access->offset, lane) == 1 && is_packed_along(d, factor, lane) &&
                   dlc_dtype_bytes(dlc_node_of(d->c->kernel->pool, factor)->dtype) <= 4;
}

static void add_part(const dot *d, dlc_schedule_copy *copy, const uint32_t *axes, uint32_t n, dlc_copy_part part)
{
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
        if (dlc_expr_uses_axis(d->c->kernel->pool, factor, d->form.batch.data[i])) /* else each batch has the same elements */
            add_part(d, copy, &d->form.batch.data[i], 1, (dlc_copy_part){.block = 1});
    int32_t bytes = factor_bytes(d);
    int is_wide = own == &d->form.n && !is_matrix(d) && d->own_n > PACK && bytes == 4;
    int is_deep = is_matrix(d) && (s->along_k || bytes != BYTES_EITHER_WAY); /* else rows are the axis that memory has */
    const dlc_ids *outer = is_deep ? own : &d->order, *inner = is_deep ? &d->order : own;
    add_part(d, copy, outer->data, outer->n, (dlc_copy_part){.block = 1});
    if (is_wide) { /* else a warp's threads read every second access of a row: two from each bank */
        add_part(d, copy, inner->data, inner->n, (dlc_copy_part){.block = BANKS});
        add_part(d, copy, inner->data, inner->n, (dlc_copy_part){.block = BANKS, .inner = 1, .pad = PAD});
    } else {
        add_part(d, copy, inner->data, inner->n, (dlc_copy_part){.block = 1, .pad = is_matrix(d) ? MATRIX_PAD / bytes : PAD});
    }
}

/* --- matrices --- */

/* The factor without a cast, as a copy can name it: an element of a buffer, or what is computed of elements where they are copied. */
static int can_be_copied(const dot *d, dlc_expr factor)
{
    const dlc_pool *pool = d->c->kernel->pool;
    uint8_t *marks = dlc_new_array(d->c->arena, uint8_t, pool->nodes.n);
    uint32_t nloads = 0;
    dlc_expr_reach(pool, factor, marks);
    for (dlc_expr e = 1; e <= factor; e++) {
        const dlc_expr_node *node = dlc_node_of(pool, e);
        if (!marks[e] || node->op != DLC_EXPR_LOAD)
            continue;
        if (DLC_SOURCE_IS_STAGE(node->imm.id) || (node->flags & DLC_LOAD_CHECKED))
            return 0;
        nloads++;
    }
    return nloads && dlc_schedule_operand(d->c->schedule, 0, dlc_schedule_operand_name(d->c->schedule, 0, factor)) == factor;
}

/* The row of the target's that takes the factors as matrices, and the factors in its types. */
static int find_matrices(dot *d)
{
    dlc_dot_operands operands;
    const dlc_dtype acc = (dlc_dtype)d->c->kernel->stages.data[0].dtype[0];
    for (uint32_t row = DLC_DOT_NONE + 1; row < DLC_DOT_COUNT; row++)
        if (dlc_dots[row].family == DLC_FAMILY_WARP && dlc_dots[row].a != DLC_F32 &&
            dlc_dot_fact(d->c->target, (dlc_dot)row) && d->depth >= dlc_dots[row].granule &&
            dlc_dot_takes((dlc_dot)row, d->c->kernel->pool, d->form.a, d->form.b, acc, &operands) &&
            can_be_copied(d, operands.rows) && can_be_copied(d, operands.columns)) {
            d->row = (dlc_dot)row;
            d->form.a = operands.rows;
            d->form.b = operands.columns;
            return 1;
        }
    return 0;
}

/* What a thread copies of a slice for a step along K of a matrix's depth. */
static double copy_cycles(const dot *d, dlc_expr factor, const dlc_ids *own, int64_t side)
{
    slice s = {0};
    judge_slice(d, factor, own, &s);
    return (double)(side * DLC_MATRIX) / (SIDE * SIDE) * (s.is_packed ? PACKED_CYCLES : ELEMENT_CYCLES);
}

/* Rounds of blocks, times such a step: products of a warp, loads of its matrices, copies, and what a slice costs besides. Elements of
 * half the bytes take half the cycles. */
static double matrix_cycles(const dot *d, int64_t m, int64_t n, int64_t own_m, int64_t own_n)
{
    double blocks = tiles(d->rows, m) * tiles(d->columns, n) * d->batches;
    double a = (double)(own_m / DLC_MATRIX), b = (double)(own_n / DLC_MATRIX);
    double copying = copy_cycles(d, d->form.a, &d->form.m, m) + copy_cycles(d, d->form.b, &d->form.n, n);
    double cycles = (2 * a * b + a + b + WARP_SLICE_CYCLES) * PRODUCT_CYCLES * factor_bytes(d) / PRODUCT_BYTES;
    return dlc_choose_rounds(d->c->target, blocks) * (cycles + copying);
}

/* False: threads are faster with single elements. What a large tile would load ahead takes registers from a second block, which hides
 * more (H200, 4096 x 4096 x 4096 of f16: 1144 us ahead, 700 not, 639 with the largest). */
static int choose_matrix_tile(dot *d)
{
    static const struct {
        uint8_t m, n, own_m, own_n;
        uint8_t slice_bytes; /* of a row along K that matrices take between two waits */
        uint8_t is_ahead;
    } shapes[] = {{32, 32, 16, 16, 128, 1}, {64, 32, 16, 16, 128, 1}, {32, 64, 16, 16, 128, 1}, {64, 64, 16, 32, 128, 1},
                  {128, 64, 32, 32, 128, 0}, {64, 128, 32, 32, 128, 0}, {128, 128, 64, 32, 64, 0}};
    const dlc_dot row = d->row;
    int is_better = 0;
    choose_tile(d);
    d->row = row;
    double least = DLC_MATRIX * tile_cycles(d, d->m, d->n) +
                   dlc_choose_rounds(d->c->target, tiles(d->rows, d->m) * tiles(d->columns, d->n) * d->batches) *
                       (copy_cycles(d, d->form.a, &d->form.m, d->m) + copy_cycles(d, d->form.b, &d->form.n, d->n));
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double cycles = matrix_cycles(d, shapes[i].m, shapes[i].n, shapes[i].own_m, shapes[i].own_n);
        if (cycles >= least)
            continue;
        least = cycles;
        is_better = 1;
        d->slice = shapes[i].slice_bytes / factor_bytes(d);
        d->is_ahead = shapes[i].is_ahead;
        d->m = shapes[i].m, d->n = shapes[i].n;
        d->own_m = shapes[i].own_m, d->own_n = shapes[i].own_n;
    }
    return is_better;
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
    schedule->nodes.data[schedule->nodes.n - 1].ahead = d->is_ahead;
    dlc_schedule_close(schedule, 2u + s->is_packed);
}

static void open_deal(const dot *d)
{
    dlc_loop_kind kind = is_matrix(d) ? DLC_LOOP_WARP : DLC_LOOP_THREAD;
    dlc_schedule_open(d->c->schedule, kind, d->rows_axis, d->own_m);
    dlc_schedule_open(d->c->schedule, kind, d->columns_axis, d->own_n);
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
    dlc_schedule_open(schedule, DLC_LOOP_FOR, d->k_axis, d->slice);
    build_slice(d, &a, d->rows_axis);
    build_slice(d, &b, d->columns_axis);
    open_deal(d);
    dlc_schedule_dot(schedule, 0, d->row, d->rows_axis, d->columns_axis, &over, is_alone ? DLC_PLACE_BUFFER : DLC_PLACE_REG);
    dlc_schedule_close(schedule, 3);
    if (!is_alone)
        build_maps(d);
    dlc_schedule_close(schedule, d->form.batch.n + 2);
}

/* --- constants --- */

static void add_axes(const dot *d, const dlc_ids *axes, dlc_copy_part *parts, uint32_t *n)
{
    for (uint32_t i = 0; i < axes->n && *n < DLC_MAX_PARTS; i++) {
        dlc_copy_part *part = &parts[(*n)++];
        *part = (dlc_copy_part){.block = 1};
        dlc_vec_push(d->c->arena, &part->axes, axes->data[i]);
    }
}

/* A constant whose neighbours are none of a thread's is turned at compile time: along its own axes for each step of K. */
static int lay_out(const dot *d, dlc_expr factor, const dlc_ids *own, const char *name)
{
    const dlc_chooser *c = d->c;
    dlc_copy_part parts[DLC_MAX_PARTS];
    uint32_t n = 0;
    slice s = {0};
    judge_slice(d, factor, own, &s);
    if (s.is_packed || c->extent[own->data[own->n - 1]] % PACK)
        return 0;
    add_axes(d, &d->form.batch, parts, &n);
    add_axes(d, &d->order, parts, &n);
    add_axes(d, own, parts, &n);
    return n == d->form.batch.n + d->order.n + own->n && dlc_schedule_pack(c->schedule, name, 0, factor, parts, n);
}

/* The contraction, and which of its factors gives rows. */
static int find(dot *d)
{
    if (!dlc_choose_contraction(d->c, &d->form) || !d->form.m.n || !d->form.n.n)
        return 0;
    choose_roles(d);
    if (d->rows < LEAST_SIDE || d->columns < LEAST_SIDE || d->rows * d->columns * d->depth < LEAST_WORK ||
        !uses_all(d, d->form.a, &d->form.k) || !uses_all(d, d->form.b, &d->form.k))
        return 0;
    d->order = (dlc_ids){0};
    dlc_choose_order_reduction(d->c, 0, d->form.a, &d->order);
    return 1;
}

static int lay_out_constants(const dot *d)
{
    int is_any = lay_out(d, d->form.a, &d->form.m, "rows_by_k");
    return lay_out(d, d->form.b, &d->form.n, "columns_by_k") || is_any;
}

/* No deeper than the whole of K: the rest of a slice is multiplied like the others. */
static void trim_slice(dot *d)
{
    int64_t least = is_matrix(d) ? dlc_dots[d->row].granule : LEAST_SLICE;
    while (d->slice / 2 >= least && (double)(d->slice / 2) >= d->depth)
        d->slice /= 2;
}

int dlc_choose_block(dlc_chooser *c)
{
    dot d = {.c = c};
    if (!find(&d))
        return 0;
    if (lay_out_constants(&d)) { /* its accesses are others now */
        dlc_chooser facts;
        dlc_choose_facts(&facts, c->kernel, c->target, c->arena);
        c->accesses = facts.accesses;
        c->work = facts.work;
        if (!find(&d))
            return 0;
    }
    dot single = d;
    if (!find_matrices(&d) || !choose_matrix_tile(&d)) {
        d = single;
        choose_tile(&d);
    }
    trim_slice(&d);
    build(&d);
    return 1;
}

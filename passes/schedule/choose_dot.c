/*
 * A contraction as a register tile: which factor is broadcast (A, rows m) and which is loaded as vectors (B, columns n), the
 * tile by the rule m*nv + nv + 1 <= registers, how A and B reach it (in place, copied, packed at compile time), and the order of
 * the loops over tiles. Measurements behind the numbers: a 12x32 tile runs at 96 to 102 % of an AVX-512 core's peak whatever
 * feeds it, as long as rows are not 4096 bytes apart with more than 12 of them (the ways of L1).
 */
#include "passes/schedule/choose.h"

#include <string.h>

enum {
    LEAST_WORK = 4096,  /* multiply-adds below which lanes do as well */
    FEW_ROWS = 4,       /* rows below which copying B cannot pay */
    L1_WAYS = 12
};

typedef struct {
    dlc_chooser *c;
    uint32_t s;
    dlc_stage *stage;
    dlc_contraction form; /* swapped already */
    uint8_t swap, copy_a, copy_b;
    int64_t m, n;         /* the tile */
    uint32_t width;
    double rows, columns, depth; /* assumed sizes of m, n, k */
} dot;

/* --- the shape of the kernel --- */

static int is_epilogue(const dlc_chooser *c, const dlc_stage *first, uint32_t s)
{
    const dlc_kernel *kernel = c->kernel;
    const dlc_stage *stage = &kernel->stages.data[s];
    if (stage->combine != DLC_REDUCE_NONE || stage->update != DLC_UPDATE_NONE || stage->axes.n != first->axes.n)
        return 0;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!dlc_ids_find(&first->axes, stage->axes.data[i], NULL) ||
            !dlc_ids_find(&c->roots, stage->axes.data[i], NULL))
            return 0;
    return 1;
}

static int is_dot_type(dlc_dtype dtype)
{
    return dtype == DLC_F32 || dtype == DLC_F64 || ((dlc_is_int(dtype)) && dlc_dtype_bytes(dtype) >= 4);
}

int dlc_choose_contraction(const dlc_chooser *c, dlc_contraction *form)
{
    const dlc_stage *stage = &c->kernel->stages.data[0];
    if (!stage->reduce.n || !is_dot_type(stage->dtype[0]))
        return 0;
    for (uint32_t s = 1; s < c->kernel->stages.n; s++)
        if (!is_epilogue(c, stage, s))
            return 0;
    return dlc_contraction_of(c->kernel, stage, c->arena, form);
}

/* --- factors --- */

static const dlc_access_fact *access_of(const dlc_chooser *c, uint32_t s, dlc_expr load)
{
    for (uint32_t i = 0; i < c->accesses[s].n; i++)
        if (c->accesses[s].data[i].load == load)
            return &c->accesses[s].data[i];
    return NULL;
}

/* The factor itself is an element of a buffer, always in bounds. */
static const dlc_access_fact *plain_load(const dot *d, dlc_expr factor)
{
    const dlc_pool *pool = d->c->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, factor);
    if (node->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(node->imm.id) || node->flags || dlc_load_guard(pool, factor))
        return NULL;
    return access_of(d->c, d->s, factor);
}

/* --- how A and B reach the tile --- */

static int is_affine_in(const dot *d, const dlc_access_fact *access, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++)
        if (dlc_choose_stride(d->c, access->offset, axes->data[i]) == DLC_ODD_STRIDE)
            return 0;
    return 1;
}

/* Read where it lies: an affine element. (A guarded one is copied: testing the border per element costs registers.) */
static int is_direct(const dot *d, dlc_expr factor, const dlc_ids *own)
{
    const dlc_access_fact *access = plain_load(d, factor);
    return access && is_affine_in(d, access, own) && is_affine_in(d, access, &d->form.k) &&
           is_affine_in(d, access, &d->form.batch);
}

/* B's rows of n elements are contiguous where they lie. */
static int is_in_place(const dot *d)
{
    if (d->form.n.n != 1 || !is_direct(d, d->form.b, &d->form.n))
        return 0;
    return dlc_choose_stride(d->c, plain_load(d, d->form.b)->offset, d->form.n.data[0]) == 1;
}

/* --- roles --- */

enum {
    SCATTER_CYCLES = 18, /* storing a vector whose elements are apart */
    COPY_CYCLES = 2      /* copying an element that is not next to the one before */
};

static int is_constant_load(const dot *d, dlc_expr factor)
{
    const dlc_access_fact *access = plain_load(d, factor);
    return access && d->c->kernel->buffers.data[access->source].role == DLC_ROLE_CONST;
}

/* Cycles spent besides multiplying: on stores that are not contiguous along n's innermost axis, and on copies. */
static double role_cycles(const dot *d)
{
    const dlc_chooser *c = d->c;
    uint32_t inner = d->form.n.data[d->form.n.n - 1];
    double cycles = 0, batches = dlc_choose_points(c, &d->form.batch);
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++)
            if (!c->accesses[s].data[i].load && dlc_choose_stride(c, c->accesses[s].data[i].offset, inner) != 1)
                cycles += SCATTER_CYCLES * batches * d->rows * d->columns / d->width;
    if (!is_constant_load(d, d->form.b) && !is_in_place(d))
        cycles += COPY_CYCLES * batches * d->columns * d->depth;
    if (!is_direct(d, d->form.a, &d->form.m))
        cycles += COPY_CYCLES * batches * d->rows * d->depth;
    return cycles;
}

static void exchange(dot *d)
{
    dlc_contraction before = d->form;
    d->form.a = before.b, d->form.b = before.a;
    d->form.m = before.n, d->form.n = before.m;
    d->swap = !d->swap;
    d->rows = dlc_choose_points(d->c, &d->form.m);
    d->columns = dlc_choose_points(d->c, &d->form.n);
}

static int choose_roles(dot *d)
{
    dlc_choose_sort(d->c, &d->form.m);
    dlc_choose_sort(d->c, &d->form.n);
    dlc_choose_sort(d->c, &d->form.batch);
    d->depth = dlc_choose_points(d->c, &d->form.k);
    exchange(d);
    exchange(d);
    if (!d->form.n.n) {
        exchange(d);
    } else if (d->form.m.n) {
        double cycles = role_cycles(d);
        exchange(d);
        if (role_cycles(d) >= cycles)
            exchange(d);
    }
    return d->form.n.n && d->columns * 2 >= d->width && d->rows * d->columns * d->depth >= LEAST_WORK;
}

/* --- packing a constant B --- */

typedef struct {
    uint32_t ndims;
    uint32_t axis[DLC_MAX_RANK];  /* what indexes the dimension; DLC_NO_AXIS: all of n, flattened */
    dlc_expr index[DLC_MAX_RANK];
    dlc_expr dims[DLC_MAX_RANK];
} panel_dims;

static int add_dim(panel_dims *p, uint32_t axis, dlc_expr index, dlc_expr extent)
{
    if (p->ndims == DLC_MAX_RANK)
        return 0;
    p->axis[p->ndims] = axis;
    p->index[p->ndims] = index;
    p->dims[p->ndims++] = extent;
    return 1;
}

/* The index is the number of the column: n's axes in the order of the loop, each counting the whole of the next. */
static int is_column_number(const dot *d, dlc_expr index, dlc_expr extent)
{
    dlc_pool *pool = d->c->kernel->pool;
    dlc_expr number = dlc_expr_i64(pool, 0), all = dlc_expr_i64(pool, 1);
    for (uint32_t i = 0; i < d->form.n.n; i++) {
        uint32_t axis = d->form.n.data[i];
        number = dlc_add(pool, dlc_mul(pool, number, d->c->kernel->axes.data[axis].extent), dlc_expr_axis(pool, axis));
        all = dlc_mul(pool, all, d->c->kernel->axes.data[axis].extent);
    }
    return number == index && all == extent;
}

/* index = x0*e1*e2… + x1*e2… + x2 over bare axes with extents e: one dimension becomes several. */
static int add_digits(const dot *d, panel_dims *p, dlc_expr index, dlc_expr extent)
{
    dlc_pool *pool = d->c->kernel->pool;
    dlc_expr rest = index, count = extent;
    while (1) {
        uint32_t axis = dlc_bare_axis(pool, rest);
        if (axis != DLC_NO_AXIS)
            return count == d->c->kernel->axes.data[axis].extent && add_dim(p, axis, rest, count);
        uint32_t leading = DLC_NO_AXIS;
        dlc_expr below = 0, tail = 0;
        for (uint32_t a = 0; a < d->c->kernel->axes.n && leading == DLC_NO_AXIS; a++) {
            dlc_expr coefficient, others;
            if (!dlc_expr_uses_axis(pool, rest, a) || !dlc_expr_linear(pool, rest, a, &coefficient, &others))
                continue;
            if (dlc_mul(pool, coefficient, d->c->kernel->axes.data[a].extent) == count)
                leading = a, below = coefficient, tail = others;
        }
        if (leading == DLC_NO_AXIS ||
            !add_dim(p, leading, dlc_expr_axis(pool, leading), d->c->kernel->axes.data[leading].extent))
            return 0;
        rest = tail;
        count = below;
    }
}

static int find_panel_dims(const dot *d, const dlc_access_fact *access, panel_dims *p)
{
    const dlc_buffer *buffer = &d->c->kernel->buffers.data[access->source];
    p->ndims = 0;
    for (uint8_t i = 0; i < buffer->type.rank; i++) {
        dlc_expr index = dlc_arg(d->c->kernel->pool, access->load, i), extent = buffer->type.dims[i];
        if (is_column_number(d, index, extent)) {
            if (!add_dim(p, DLC_NO_AXIS, index, extent))
                return 0;
        } else if (!add_digits(d, p, index, extent)) {
            return 0;
        }
    }
    return 1;
}

static int dim_of(const panel_dims *p, uint32_t axis)
{
    for (uint32_t i = 0; i < p->ndims; i++)
        if (p->axis[i] == axis)
            return (int)i;
    return -1;
}

static int add_part(dlc_layout *layout, int dim, uint8_t inner, int64_t block)
{
    if (dim < 0 || layout->nparts == DLC_MAX_PARTS)
        return 0;
    layout->part[layout->nparts].dim = (uint8_t)dim;
    layout->part[layout->nparts].inner = inner;
    layout->part[layout->nparts++].block = (int32_t)block;
    return 1;
}

static int add_axes(dlc_layout *layout, const panel_dims *p, const dlc_ids *axes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!add_part(layout, dim_of(p, axes->data[i]), 0, 1))
            return 0;
    return 1;
}

/* batch, panels of n, K in the order of the reduction, n within the panel. */
static int panel_layout(const dot *d, const panel_dims *p, dlc_layout *layout)
{
    int column = dim_of(p, DLC_NO_AXIS);
    uint32_t outer = column < 0 ? d->form.n.n - 1 : 0, last = d->form.n.data[d->form.n.n - 1];
    memset(layout, 0, sizeof *layout);
    if (column < 0 && outer > 0 && d->c->extent[last] % d->n)
        return 0; /* panels would cross the end of the inner axis */
    if (column < 0)
        column = dim_of(p, last);
    uint32_t parts = d->form.batch.n + outer + 1 + d->stage->reduce.n + 1;
    return parts <= DLC_MAX_PARTS && add_axes(layout, p, &d->form.batch, d->form.batch.n) &&
           add_axes(layout, p, &d->form.n, outer) && add_part(layout, column, 0, d->n) &&
           add_axes(layout, p, &d->stage->reduce, d->stage->reduce.n) && add_part(layout, column, 1, d->n) &&
           p->ndims == d->form.batch.n + outer + 1 + d->stage->reduce.n;
}

static int is_read_once(const dlc_chooser *c, dlc_source source)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++)
            n += c->accesses[s].data[i].source == source;
    return n == 1;
}

typedef struct {
    dlc_source source;
    const panel_dims *dims;
} repack;

static uint32_t panel_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const repack *r = user;
    if (source != r->source) {
        memcpy(result, index, rank * sizeof *index);
        return rank;
    }
    memcpy(result, r->dims->index, r->dims->ndims * sizeof *result);
    return r->dims->ndims;
}

static int pack_b(dot *d)
{
    const dlc_access_fact *access = plain_load(d, d->form.b);
    dlc_kernel *kernel = d->c->kernel;
    panel_dims dims;
    dlc_layout layout;
    if (!access || !is_constant_load(d, d->form.b) || kernel->buffers.data[access->source].layout.nparts ||
        !is_read_once(d->c, access->source))
        return 0;
    if (!find_panel_dims(d, access, &dims) || !panel_layout(d, &dims, &layout))
        return 0;
    dlc_buffer *buffer = &kernel->buffers.data[access->source];
    dlc_kernel_reindex(kernel, &(dlc_reindex){.index = panel_index, .user = &(repack){access->source, &dims}});
    buffer->type.rank = (uint8_t)dims.ndims;
    memcpy(buffer->type.dims, dims.dims, sizeof dims.dims);
    buffer->layout = layout;
    return 1;
}

/* --- the tile --- */

static int64_t rows_that_fit(const dot *d, int64_t nv)
{
    int64_t registers = d->c->target->vector_registers ? d->c->target->vector_registers : 16;
    return (registers - nv - 1) / nv;
}

static int64_t vectors_of(const dot *d)
{
    int64_t registers = d->c->target->vector_registers;
    int64_t columns = ((int64_t)d->columns + d->width - 1) / d->width;
    int64_t nv = d->width == 4 && registers >= 32 ? 4 : 2;
    int64_t rows = dlc_choose_least(d->c, &d->form.m) == d->rows ? (int64_t)d->rows : INT32_MAX;
    for (int64_t wide = 4; wide > nv; wide--)
        if (rows <= rows_that_fit(d, wide))
            nv = wide; /* few rows: more columns at a time */
    if (rows == 1)
        nv = 4;
    return nv < columns ? nv : columns;
}

static int has_conflicting_rows(const dot *d)
{
    const dlc_access_fact *access = d->copy_a ? NULL : plain_load(d, d->form.a);
    int64_t bytes = dlc_dtype_bytes(d->stage->dtype[0]);
    if (!access || !d->form.m.n)
        return 0;
    return dlc_choose_stride(d->c, access->offset, d->form.m.data[d->form.m.n - 1]) * bytes % 4096 == 0;
}

/* Rows are cut into near-equal heights: as few tiles as fit, as low as that allows. */
static int64_t height_of(const dot *d, int64_t nv)
{
    int64_t most = rows_that_fit(d, nv), rows = (int64_t)d->rows;
    int is_known = dlc_choose_least(d->c, &d->form.m) == d->rows;
    if (most > L1_WAYS && has_conflicting_rows(d))
        most = L1_WAYS;
    most = most > 14 ? 14 : most;
    if (!is_known)
        return most > 12 ? 12 : most;
    int64_t tiles = (rows + most - 1) / most;
    return (rows + tiles - 1) / tiles;
}

/* --- loops --- */

static int64_t round_to(double value, int64_t multiple)
{
    int64_t n = (int64_t)value;
    n = (n + multiple - 1) / multiple * multiple;
    return n < multiple ? multiple : n;
}

static double count_of(double size, int64_t tile)
{
    return (double)(((int64_t)size + tile - 1) / tile);
}

/* Columns per root tile so that there are enough units, `units` of them coming from the other loops. */
static int64_t split_columns(const dot *d, double units)
{
    int64_t all = round_to(d->columns, d->n);
    if (units >= DLC_MIN_UNITS)
        return all;
    int64_t pieces = (int64_t)(DLC_MIN_UNITS / (units < 1 ? 1 : units));
    int64_t tile = round_to(d->columns / (double)pieces, d->n);
    return tile < all ? tile : all;
}

static void n_loop(dot *d, int64_t tile)
{
    dlc_choose_loop(d->c, d->form.n.data, d->form.n.n, tile);
}

static void m_loop(dot *d)
{
    if (d->form.m.n)
        dlc_choose_loop(d->c, d->form.m.data, d->form.m.n, d->m);
}

/* B's copy is shared by the rows of one batch: columns outermost, and only they and the batches are distributed. */
static void loops_copy_b(dot *d, double batches)
{
    double bytes = (double)dlc_dtype_bytes(d->stage->dtype[0]) * d->depth;
    int64_t tile = split_columns(d, batches), most = (int64_t)(d->c->target->scratch_bytes / 2 / bytes) / d->n * d->n;
    if (most < d->n)
        most = d->n;
    n_loop(d, tile < most ? tile : most);
    m_loop(d);
    d->c->schedule->npar = (uint8_t)(d->form.batch.n + 1);
}

/* A's copy is shared by the columns: rows outermost. */
static void loops_rows_first(dot *d, double batches)
{
    double units = batches * (dlc_choose_least(d->c, &d->form.m) == d->rows
                                  ? count_of(d->rows, d->m)
                                  : count_of(dlc_choose_least(d->c, &d->form.m), d->m));
    int64_t tile = split_columns(d, units);
    m_loop(d);
    n_loop(d, tile);
    d->c->schedule->npar = (uint8_t)d->c->schedule->loops.n;
}

static void loops_columns_first(dot *d, int64_t tile)
{
    n_loop(d, tile);
    m_loop(d);
    d->c->schedule->npar = (uint8_t)d->c->schedule->loops.n;
}

static void set_grain(dot *d)
{
    double cycles = d->rows * d->columns * d->depth / d->width / 2 * dlc_choose_points(d->c, &d->form.batch), units = 1;
    for (uint32_t l = 0; l < d->c->schedule->npar; l++) {
        const dlc_loop *loop = &d->c->schedule->loops.data[l];
        units *= count_of(dlc_choose_points(d->c, &loop->axes), loop->tile);
    }
    double unit_cycles = cycles / units;
    d->c->schedule->grain = (int64_t)(DLC_GRAIN_CYCLES / (unit_cycles > 1 ? unit_cycles : 1)) + 1;
}

/*
 * Direct A: what stays in L2 while the other streams. All of A and a panel of B; else all of B and a tile of A's rows; else
 * a block of columns for which A streams by, or B for each tile of rows, whichever moves less.
 */
static void loops_direct(dot *d, double batches)
{
    double elem = dlc_dtype_bytes(d->stage->dtype[0]), half = d->c->target->l2_bytes / 2;
    double a = d->rows * d->depth * elem, b = d->columns * d->depth * elem;
    int64_t block = (int64_t)(half / (d->depth * elem)) / d->n * d->n;
    if (a <= half || !d->form.m.n)
        loops_columns_first(d, d->n);
    else if (b <= half || block < d->n || a * d->columns / (double)block > b * d->rows / (double)d->m)
        loops_rows_first(d, batches);
    else
        loops_columns_first(d, block);
}

static void make_loops(dot *d)
{
    double batches = dlc_choose_least(d->c, &d->form.batch);
    for (uint32_t i = 0; i < d->form.batch.n; i++)
        dlc_choose_loop(d->c, &d->form.batch.data[i], 1, 1);
    if (d->copy_b)
        loops_copy_b(d, batches);
    else if (d->copy_a)
        loops_rows_first(d, batches);
    else
        loops_direct(d, batches);
    set_grain(d);
}

/* --- order of the reduction --- */

void dlc_choose_order_reduction(const dlc_chooser *c, dlc_stage *stage, dlc_expr factor)
{
    uint32_t s = (uint32_t)(stage - c->kernel->stages.data);
    uint8_t *reach = dlc_new_array(c->arena, uint8_t, c->kernel->pool->nodes.n);
    const dlc_access_fact *lead = NULL;
    dlc_expr_reach(c->kernel->pool, factor, reach);
    for (uint32_t i = 0; i < c->accesses[s].n && !lead; i++)
        if (c->accesses[s].data[i].load && reach[c->accesses[s].data[i].load])
            lead = &c->accesses[s].data[i];
    dlc_ids *order = &stage->reduce;
    for (uint32_t i = 1; lead && i < order->n; i++) {
        uint32_t axis = order->data[i], at = i;
        int64_t step = dlc_choose_stride(c, lead->offset, axis);
        for (; at > 0 && dlc_choose_stride(c, lead->offset, order->data[at - 1]) < step; at--)
            order->data[at] = order->data[at - 1];
        order->data[at] = axis;
    }
}

static void fill_plans(dot *d)
{
    dlc_schedule *schedule = d->c->schedule;
    dlc_stage_plan *plan = &schedule->plans[d->s];
    schedule->width = (uint8_t)d->width;
    schedule->lane = DLC_NO_AXIS;
    plan->method = DLC_METHOD_DOT;
    plan->dot = DLC_DOT_FMA;
    plan->m = (uint16_t)d->m;
    plan->n = (uint16_t)d->n;
    plan->copy_a = d->copy_a;
    plan->copy_b = d->copy_b;
    plan->swap = d->swap;
}

int dlc_choose_dot(dlc_chooser *c)
{
    dot d = {.c = c};
    if (!dlc_choose_contraction(c, &d.form))
        return 0;
    d.stage = &c->kernel->stages.data[0];
    d.width = dlc_choose_width(c, dlc_dtype_bytes(d.stage->dtype[0]));
    if (d.width < 2 || !choose_roles(&d))
        return 0;
    int64_t nv = vectors_of(&d);
    dlc_ids order = {0};
    for (uint32_t i = 0; i < d.stage->reduce.n; i++)
        dlc_vec_push(c->arena, &order, d.stage->reduce.data[i]);
    dlc_choose_order_reduction(c, d.stage, d.form.a);
    d.copy_a = !is_direct(&d, d.form.a, &d.form.m);
    d.n = nv * d.width;
    d.m = d.form.m.n ? height_of(&d, nv) : 1;
    if (!pack_b(&d)) {
        d.copy_b = !is_in_place(&d);
        if (d.copy_b && d.rows <= FEW_ROWS) { /* a row that is dotted with rows: the reduced axis along the lanes is better */
            d.stage->reduce = order;
            return 0;
        }
    }
    make_loops(&d);
    fill_plans(&d);
    return 1;
}

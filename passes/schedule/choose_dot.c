/*
 * A contraction as a register tile: which factor is broadcast (A, rows m) and which is loaded as vectors (B, columns n), the
 * tile by the rule m*nv + nv + 1 <= registers, how A and B reach it (in place, copied, packed at compile time), and the order of
 * the loops over tiles. Measurements behind the numbers: a 12x32 tile runs at 96 to 102 % of an AVX-512 core's peak whatever
 * feeds it, as long as no more rows are 4096 bytes apart than L1 has ways (12 of 48 KB, 8 of 32).
 */
#include "ir/kernel/algebra.h"
#include "passes/schedule/choose_dot.h"

#include <math.h>

enum {
    LEAST_WORK = 4096,  /* multiply-adds below which lanes do as well */
    FEW_ROWS = 4        /* rows below which copying B cannot pay */
};

typedef dlc_dot_choice dot;

int dlc_dot_expects_rows(const dot *d)
{
    return dlc_choose_are_known(d->c, &d->form.m) || (d->rows > FEW_ROWS && dlc_choose_are_expected(d->c, &d->form.m));
}

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
    dlc_dot_operands any;
    return dlc_dot_takes(DLC_DOT_FMA, NULL, 0, 0, dtype, &any);
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

/*
 * A sum by blocks: the stage behind the product adds up what it makes of the product at all points of some batches, such as blocks of a
 * row of weights with a scale each. What follows are maps of that.
 */
static int is_sum_by_blocks(const dlc_chooser *c, dlc_contraction *form, dlc_ids *summed)
{
    const dlc_kernel *kernel = c->kernel;
    const dlc_stage *product = &kernel->stages.data[0], *sum = &kernel->stages.data[1];
    if (kernel->stages.n < 2 || !product->reduce.n || !is_dot_type(product->dtype[0]) || product->buffer != DLC_NO_BUFFER ||
        sum->combine != DLC_REDUCE_SUM || sum->axes.n + sum->reduce.n != product->axes.n ||
        !dlc_contraction_of(c->kernel, product, c->arena, form))
        return 0;
    for (uint32_t i = 0; i < sum->reduce.n; i++)
        if (!dlc_ids_find(&form->batch, sum->reduce.data[i], NULL) || !dlc_choose_is_known(c, sum->reduce.data[i]))
            return 0;
    for (uint32_t s = 1; s < kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) { /* the product is read at its own point, once */
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if (access->load && access->source == DLC_STAGE_SOURCE(0) && (s > 1 || !dlc_reads_in_place(kernel, access->load)))
                return 0;
        }
    for (uint32_t s = 2; s < kernel->stages.n; s++)
        if (!is_epilogue(c, sum, s))
            return 0;
    *summed = sum->reduce;
    return 1;
}

/* --- phases --- */

int dlc_choose_is_phase(const dlc_chooser *c, dlc_expr value, uint32_t axis, const dlc_ids *others)
{
    const dlc_pool *pool = c->kernel->pool;
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, pool->nodes.n);
    dlc_expr_reach(pool, value, marks);
    for (dlc_expr id = 1; id <= value; id++)
        if (marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_MOD && dlc_expr_uses_axis(pool, id, axis))
            for (uint32_t i = 0; i < others->n; i++)
                if (dlc_expr_uses_axis(pool, id, others->data[i]))
                    return 1;
    return 0;
}

/*
 * Of a transposed convolution whose window is no multiple of the stride a tap is of use to some points of the image alone, and they all
 * have the same expression (lower_phases.c has the others). Tiles of points of one phase each leave all other taps out (choose_padding.c).
 */
static void part_phases(const dlc_chooser *c, dlc_contraction *form)
{
    dlc_ids rows = {0};
    for (uint32_t i = 0; i < form->m.n; i++)
        if (dlc_choose_is_known(c, form->m.data[i]) && dlc_choose_is_phase(c, form->a, form->m.data[i], &form->k))
            dlc_vec_push(c->arena, &form->batch, form->m.data[i]);
        else
            dlc_vec_push(c->arena, &rows, form->m.data[i]);
    form->m = rows;
}

/* --- factors --- */

/* --- how A and B reach the tile --- */

/* A step's elements of A lie together. */
static int has_granules(const dot *d)
{
    const dlc_access_fact *access = dlc_dot_plain_load(d, d->form.a);
    return d->granule == 1 || (access && dlc_choose_stride(d->c, access->offset, d->order.data[d->order.n - 1]) == 1);
}

/* Rows of A, of whatever axes, are one after the other at one distance. */
static int are_equally_apart(const dot *d)
{
    const dlc_access_fact *access = dlc_dot_plain_load(d, d->form.a);
    for (uint32_t i = 0; access && i + 1 < d->form.m.n; i++) {
        int64_t inner = dlc_choose_stride(d->c, access->offset, d->form.m.data[i + 1]);
        if (!dlc_choose_is_known(d->c, d->form.m.data[i + 1]) ||
            dlc_choose_stride(d->c, access->offset, d->form.m.data[i]) != inner * d->c->extent[d->form.m.data[i + 1]])
            return 0;
    }
    return access != NULL;
}

/* B's rows of n elements are contiguous where they lie, wherever the phase of a transposed window has them begin. */
static int is_in_place(const dot *d)
{
    const dlc_access_fact *access = dlc_dot_plain_load(d, d->form.b);
    if (!access || d->form.n.n != 1 || !dlc_dot_is_affine_in(d, access, &d->form.n) || !dlc_dot_is_affine_in(d, access, &d->form.k) ||
        (!dlc_dot_is_affine_in(d, access, &d->form.batch) && dlc_expr_has_load(d->c->kernel->pool, access->offset)))
        return 0;
    return dlc_choose_stride(d->c, dlc_dot_plain_load(d, d->form.b)->offset, d->form.n.data[0]) == 1;
}

/* --- roles --- */

enum {
    SCATTER_CYCLES = 18, /* storing a vector whose elements are apart */
    TURNED_CYCLES = 5,   /* the same as one of a tile's rows, which are turned */
    COPY_CYCLES = 2      /* copying an element that is not next to the one before */
};

/* Copying an element of B: where columns are of several axes, as an image's, each asks whether it is inside a border. */
static double copy_cycles(const dot *d)
{
    const dlc_pool *pool = d->c->kernel->pool;
    int is_guarded = 0;
    for (uint32_t i = 0; i < d->c->accesses[d->s].n; i++) {
        dlc_expr load = d->c->accesses[d->s].data[i].load, guard = load ? dlc_load_guard(pool, load) : 0;
        for (uint32_t a = 0; guard && a < d->form.n.n; a++)
            is_guarded |= dlc_expr_uses_axis(pool, guard, d->form.n.data[a]);
    }
    return is_guarded && d->form.n.n > 1 ? DLC_UNEVEN_CYCLES : COPY_CYCLES;
}

/* Cycles spent besides multiplying: on stores that are not contiguous along n's innermost axis, and on copies. */
static double role_cycles(const dot *d)
{
    const dlc_chooser *c = d->c;
    uint32_t inner = d->form.n.data[d->form.n.n - 1];
    double cycles = 0, batches = dlc_choose_points(c, &d->form.batch);
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if (access->load || dlc_choose_stride(c, access->offset, inner) == 1)
                continue;
            int is_turned = d->form.m.n && dlc_choose_is_turned(c, access, d->form.m.data[d->form.m.n - 1], d->width);
            cycles += (is_turned ? TURNED_CYCLES : SCATTER_CYCLES) * batches * d->rows * d->columns / d->width;
        }
    if (!dlc_dot_constant_of(d, d->form.b) && !is_in_place(d))
        cycles += copy_cycles(d) * batches * d->columns * d->depth;
    if (!dlc_dot_is_direct(d, d->form.a, &d->form.m))
        cycles += COPY_CYCLES * batches * d->rows * d->depth;
    return cycles;
}

static void exchange(dot *d)
{
    dlc_contraction before = d->form;
    d->form.a = before.b, d->form.b = before.a;
    d->form.m = before.n, d->form.n = before.m;
    uint8_t part = d->rows_part;
    d->rows_part = d->columns_part, d->columns_part = part;
    d->swap = !d->swap;
    d->rows = dlc_choose_points(d->c, &d->form.m);
    d->columns = dlc_choose_points(d->c, &d->form.n);
}

/* Cycles of multiplying: a vector of columns at a time, which few rows do not hide the loads of; those of rows in place begin anywhere. */
static double product_cycles(const dot *d)
{
    enum { ACROSS_LINES = 2 }; /* loading a vector that does */
    double vectors = ceil(d->columns / d->width) * d->rows * dlc_choose_points(d->c, &d->form.batch) * d->depth;
    double loads = (dlc_dot_constant_of(d, d->form.b) ? 1 : ACROSS_LINES) / d->rows;
    return vectors * (loads > 1 ? loads : 1);
}

/*
 * A row of the image along the lanes, the others beside the batches: where an image lies by planes channels are no columns that are stored
 * in one piece, and few of them fill no vector.
 */
static void take_image_rows(dot *d)
{
    dot before = *d;
    dlc_ids images = {0};
    double cycles = role_cycles(d) + product_cycles(d);
    if (!dlc_dot_constant_of(d, d->form.b) || d->form.m.n < 2 || !dlc_dot_expects_rows(d))
        return;
    exchange(d);
    for (uint32_t i = 0; i < d->form.batch.n + d->form.n.n - 1; i++)
        dlc_vec_push(d->c->arena, &images, i < d->form.batch.n ? d->form.batch.data[i] : d->form.n.data[i - d->form.batch.n]);
    d->form.n = (dlc_ids){0};
    dlc_vec_push(d->c->arena, &d->form.n, before.form.m.data[before.form.m.n - 1]);
    d->form.batch = images;
    dlc_choose_sort(d->c, &d->form.batch);
    d->columns = dlc_choose_points(d->c, &d->form.n);
    if (!is_in_place(d) || role_cycles(d) + product_cycles(d) >= cycles)
        *d = before;
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
        if (d->row == DLC_DOT_FMA)
            take_image_rows(d);
    }
    return d->form.n.n && d->columns * 2 >= d->width && d->rows * d->columns * d->depth >= LEAST_WORK;
}

/* --- the row --- */

static void use_row(dot *d, dlc_dot row, const dlc_dot_operands *operands)
{
    d->row = row;
    d->granule = dlc_dots[row].granule;
    d->is_flipped = operands->is_flipped;
    d->is_widened = dlc_dot_widens(row, (dlc_dtype)dlc_node_of(d->c->kernel->pool, operands->rows)->dtype);
    d->part = dlc_dots[row].parts > 1 ? dlc_schedule_part_axis(d->c->schedule) : DLC_NO_AXIS;
    d->rows_part = operands->rows_part;
    d->columns_part = operands->columns_part;
    d->form.a = operands->rows;
    d->form.b = operands->columns;
}

/* An element, whose copies rows enough read where it is no constant, which is packed once. */
static int is_worth_packing(const dot *d, dlc_expr columns)
{
    return dlc_dot_is_constant_load(d, columns) || (dlc_node_of(d->c->kernel->pool, columns)->op == DLC_EXPR_LOAD &&
                                            dlc_choose_points(d->c, &d->form.m) >= DLC_LEAST_COPIED_FOR);
}

enum { LEAST_TILED = 8, LEAST_CHUNK = DLC_TILE_BYTES / 2 }; /* rows, and bytes of a sum's factors, that are worth registers */

/* A product large enough for tile registers: what is left of a chunk of K has another shape, which costs as much as some chunks. Sums by blocks
 * have as many rows as their scratch allows, and few terms each. */
static int fills_tiles(const dot *d, dlc_dot row)
{
    uint32_t bytes = dlc_dtype_bytes((dlc_dtype)dlc_dots[row].a);
    return !d->summed.n && dlc_dot_pays(d->c->target, row) && d->form.m.n && d->form.n.n && dlc_choose_are_known(d->c, &d->form.k) &&
           dlc_choose_points(d->c, &d->form.m) >= LEAST_TILED && dlc_choose_points(d->c, &d->form.k) * bytes >= LEAST_CHUNK;
}

/* What was measured decides about rows of bf16, which may be multiplied as floats; bytes have no faster way than their row. */
static int is_worth_row(const dot *d, dlc_dot row)
{
    const dlc_dot_info *info = &dlc_dots[row];
    if (info->granule == 1)
        return 0;
    if (info->family == DLC_FAMILY_TILE)
        return fills_tiles(d, row);
    return info->family == DLC_FAMILY_LANES &&
           ((info->order == DLC_ORDER_EXACT && dlc_dot_fact(d->c->target, row)) ||
            (info->order == DLC_ORDER_PAIRS && dlc_dot_pays(d->c->target, row)));
}

/* Codes of few bits that all columns, and all of a granule, have in the same part of a byte; what are none is so. */
static int are_alike(const dot *d, const dlc_dot_operands *operands)
{
    uint32_t within = d->order.n ? d->order.data[d->order.n - 1] : DLC_NO_AXIS;
    for (uint32_t i = 0; i < d->form.n.n && operands->mask; i++)
        if (!dlc_dot_unpacks(d->c->kernel, operands, d->form.n.data[i], within))
            return 0;
    return 1;
}

static int takes_row(dot *d, dlc_dot row)
{
    const dlc_pool *pool = d->c->kernel->pool;
    dlc_dot_operands operands;
    if (d->part != DLC_NO_AXIS) /* the form has first parts already */
        return row == d->row && is_worth_row(d, row) && is_worth_packing(d, d->form.b);
    if (!is_worth_row(d, row) || !dlc_dot_takes(row, pool, d->form.a, d->form.b, d->stage->dtype[0], &operands) ||
        dlc_node_of(pool, operands.rows)->op != DLC_EXPR_LOAD || !are_alike(d, &operands) || !is_worth_packing(d, operands.columns))
        return 0;
    use_row(d, row, &operands);
    return 1;
}

/* A row that takes the operands' own types, and whose instruction there is: first of those that multiply most at once. */
static int find_row(dot *d)
{
    static const dlc_dot_family families[] = {DLC_FAMILY_TILE, DLC_FAMILY_LANES};
    for (uint32_t f = 0; f < 2; f++)
        for (uint32_t row = DLC_DOT_NONE + 1; row < DLC_DOT_COUNT; row++)
            if (dlc_dots[row].family == families[f] && takes_row(d, (dlc_dot)row))
                return 1;
    return 0;
}

/* What is left of the innermost axis behind its granules goes point by point, at many times the cost. */
static int is_worth_granules(const dot *d)
{
    enum { GRANULES_PER_REST = 16 };
    int64_t extent = d->c->extent[d->order.data[d->order.n - 1]];
    return extent % d->granule == 0 || extent >= GRANULES_PER_REST * d->granule;
}

/* The row, who gives rows and who columns, and the order of the sum; false: lanes do as well. */
static int choose_row(dot *d)
{
    dlc_contraction form = d->form;
    if (find_row(d) && choose_roles(d)) {
        dlc_choose_order_reduction(d->c, d->s, d->form.a, &d->order);
        if (find_row(d) && is_worth_granules(d))
            return 1;
    }
    d->form = form;
    d->swap = 0;
    d->part = DLC_NO_AXIS;
    use_row(d, DLC_DOT_FMA, &(dlc_dot_operands){.rows = form.a, .columns = form.b});
    if (!choose_roles(d))
        return 0;
    dlc_choose_order_reduction(d->c, d->s, d->form.a, &d->order);
    return 1;
}

/* --- the tile --- */

static int64_t rows_that_fit(const dot *d, int64_t nv)
{
    enum { COMPUTING = 3 };
    int64_t registers = d->c->target->vector_registers ? d->c->target->vector_registers : 16;
    int64_t made = dlc_dot_is_in_tile(d) ? nv + COMPUTING : 0; /* scales of the columns, and what else their numbers are made of */
    return (registers - nv - dlc_dots[d->row].takes - (d->is_flipped ? nv + 2 : 0) - made) / nv;
}

/* Weights larger than L2 by far, which a tile reads by as many streams as it has lines (dlc_dot_panel_of_rows). */
static int comes_from_memory(const dot *d)
{
    dlc_expr load = dlc_dot_is_computed(d) ? 0 : dlc_dot_constant_of(d, d->form.b);
    double bytes = load ? dlc_dtype_bytes(dlc_node_of(d->c->kernel->pool, load)->dtype) : 0;
    return dlc_goes_by_rows(d->c->target, d->columns * d->depth * dlc_choose_points(d->c, &d->form.batch) * bytes);
}

/* Of a product of one row. Weights in one stream come two vectors at a time, whose sums hide each other's latency. Panels side by side, from
 * memory, are 3 to 5 % faster by 8 vectors than by 4 (Emerald Rapids, 64 MB and more). A matrix that lies as it came is read by pieces of its
 * rows, each in a page of its own: longer ones are faster (Zen 4, 16 MB: 20 GB/s by 4 vectors, 47 by 16), as long as there are pieces for the
 * threads. */
static int64_t vectors_of_row(const dot *d, int64_t columns)
{
    enum { TOGETHER = 2, PACKED = 4, LINE = 4, LEAST_UNITS = 8, MANY_UNITS = 16 };
    int64_t most = d->c->target->vector_registers / 2 / LINE * LINE;
    double pieces = LEAST_UNITS / dlc_choose_least(d->c, &d->form.batch); /* of one matrix */
    int64_t wide = (int64_t)((double)columns / (pieces > 1 ? pieces : 1)) / LINE * LINE;
    if (!dlc_dot_is_computed(d) && dlc_dot_constant_of(d, d->form.b) && d->c->target->machine->streams == 1)
        return TOGETHER;
    if (comes_from_memory(d) && columns >= 2 * PACKED * MANY_UNITS)
        return 2 * PACKED;
    if (dlc_dot_constant_of(d, d->form.b) || !is_in_place(d) || wide <= PACKED)
        return PACKED;
    return wide < most ? wide : most;
}

static int64_t vectors_of(const dot *d)
{
    int64_t registers = d->c->target->vector_registers;
    int64_t columns = ((int64_t)d->columns + d->width - 1) / d->width;
    int64_t nv = d->width == 4 && registers >= 32 ? 4 : 2;
    int64_t rows = dlc_dot_expects_rows(d) ? (int64_t)d->rows : INT32_MAX;
    for (int64_t wide = 4; wide > nv; wide--)
        if (rows <= rows_that_fit(d, wide))
            nv = wide; /* few rows: more columns at a time */
    if (rows == 1)
        nv = vectors_of_row(d, columns);
    if (columns == 3 && nv == 2) /* none is left over, which would be a tile of sums too few to hide each other's latency */
        nv = 3;
    return nv < columns ? nv : columns;
}

static uint32_t operand_bytes(const dot *d)
{
    return dlc_dtype_bytes(dlc_node_of(d->c->kernel->pool, d->form.a)->dtype);
}

static int has_conflicting_rows(const dot *d)
{
    const dlc_access_fact *access = d->copy_a ? NULL : dlc_dot_plain_load(d, d->form.a);
    int64_t bytes = operand_bytes(d);
    if (!access || !d->form.m.n)
        return 0;
    return dlc_choose_stride(d->c, access->offset, d->form.m.data[d->form.m.n - 1]) * bytes % DLC_WAY_BYTES == 0;
}

enum { MOST_ROWS = 14, MOST_UNKNOWN = 12, MOST_PAIRED = 12 }; /* by 14 of pairs LLVM 19 moves every sum at each step: a third of the speed */

static int64_t most_rows(const dot *d, int64_t nv)
{
    int64_t most = rows_that_fit(d, nv), ways = dlc_target_l1_ways(d->c->target);
    int64_t usual = dlc_dots[d->row].order == DLC_ORDER_PAIRS ? MOST_PAIRED : MOST_ROWS;
    if (most > ways && has_conflicting_rows(d))
        most = ways;
    return most > usual ? usual : most;
}

/* Rows are cut into near-equal heights: as few tiles as fit, as low as that allows, or more of them where estimates tell. */
static int64_t height_of(const dot *d, int64_t nv, int is_of_line)
{
    int64_t most = most_rows(d, nv), rows = (int64_t)d->rows;
    if (!dlc_dot_expects_rows(d))
        return most > MOST_UNKNOWN ? MOST_UNKNOWN : most;
    int64_t tiles = (rows + most - 1) / most, height = (rows + tiles - 1) / tiles;
    const double size[] = {d->rows, d->columns, d->depth};
    int is_sure = !is_of_line && rows > FEW_ROWS && dlc_choose_are_known(d->c, &d->form.n);
    return is_sure ? dlc_choose_height(d->c, d->s, d->row, d->stage->dtype[0], size, height, nv) : height;
}

/* The other axes are loops around. */
static dot by_line(const dot *d, int64_t nv)
{
    dot line = *d;
    line.form.batch = (dlc_ids){0};
    line.form.m = (dlc_ids){0};
    for (uint32_t i = 0; i < d->form.batch.n; i++)
        dlc_vec_push(d->c->arena, &line.form.batch, d->form.batch.data[i]);
    for (uint32_t i = 0; i < d->form.m.n; i++)
        dlc_vec_push(d->c->arena, i + 1 < d->form.m.n ? &line.form.batch : &line.form.m, d->form.m.data[i]);
    line.rows = dlc_choose_points(d->c, &line.form.m);
    line.m = height_of(&line, nv, 1);
    return line;
}

/*
 * Rows that are read in place from lines of an image: where a tile has pixels of two lines each row has an address of its own, and those of one
 * line have one together, be they more than general registers hold addresses (Emerald Rapids, 14 rows, 4x4 in steps of 4, 3 to 96 channels: .72
 * of the time; 3x3 in steps of 2, 3 to 16 channels: .67; to 32, which went by 7 rows, .90). Lines of unknown length that are a few tiles long
 * leave little of the last one empty. Those of known length are cut equally; weights, which come by for each line, do so from L2. Of bytes, whose
 * steps are few, a line's tiles wait for each other (7x7 in steps of 2: 1.08).
 */
static void take_lines(dot *d, int64_t nv)
{
    enum { LEAST_TILES = 4 };
    uint32_t n = d->form.m.n, line = n ? d->form.m.data[n - 1] : 0;
    if (n < 2 || d->copy_a || !dlc_dot_expects_rows(d) || are_equally_apart(d) || !dlc_dot_constant_of(d, d->form.b) || d->summed.n)
        return;
    dot by = by_line(d, nv);
    int is_known = dlc_choose_is_known(d->c, line), is_near = d->columns * d->depth * operand_bytes(d) <= d->c->target->l2_bytes / 2;
    int is_higher = by.m > DLC_ROW_POINTERS || (by.m == DLC_ROW_POINTERS && d->m > by.m);
    if (d->granule > 1 && (is_known || d->m <= DLC_ROW_POINTERS))
        return;
    if (is_higher && (is_known ? is_near : d->c->extent[line] >= LEAST_TILES * d->m))
        *d = by;
}

/* Registers of sums, and one for each factor's part of them: two by two, or three in a column where there is one of them. */
static void choose_registers(dot *d, int64_t *nv)
{
    enum { LONE = 3 };
    int64_t wide = d->columns > DLC_TILE_COLUMNS ? 2 : 1, high = wide == 1 ? LONE : 2;
    int64_t rows = ((int64_t)d->rows + DLC_TILE_ROWS - 1) / DLC_TILE_ROWS;
    if (dlc_dot_expects_rows(d) && rows < high)
        high = rows;
    d->m = high * DLC_TILE_ROWS;
    d->n = wide * DLC_TILE_COLUMNS;
    *nv = d->n / d->width;
}

/* Three vectors of sums that become bytes are stored apart, two and four together (held.c), which sums of few terms do not hide: Emerald Rapids,
 * 784 x 128 by 512, on tiles of three 1.08 to 1.1 times as long. Not where only three leave no columns over. */
static int stores_apart(const dot *d, int64_t vectors)
{
    enum { APART = 3, MOST_TERMS = 512 };
    const dlc_kernel *kernel = d->c->kernel;
    int64_t columns = (int64_t)d->columns, wide = APART * d->width;
    int has_bytes = 0, is_exact = columns % wide == 0 && columns % (2 * d->width) != 0;
    for (uint32_t s = 0; s < d->c->nstages; s++)
        if (kernel->stages.data[s].buffer != DLC_NO_BUFFER)
            has_bytes |= dlc_dtype_bytes(kernel->buffers.data[kernel->stages.data[s].buffer].type.dtype) == 1;
    return has_bytes && d->granule > 1 && vectors == APART && d->depth <= MOST_TERMS && !is_exact;
}

/* The rule's vectors, or others on which estimates say that the product takes less: of floats, or of pairs and bytes where estimates were fitted,
 * along one axis, as they were measured; of pairs in small windows, too. */
static int64_t better_vectors(const dot *d, int64_t rule)
{
    enum { SMALL_WINDOW = 256 };
    const double size[] = {d->rows, d->columns, d->depth};
    int64_t heights[DLC_MOST_VECTORS + 1] = {0};
    int is_window = d->form.k.n != 1 && !(d->row == DLC_DOT_VDPBF16PS && d->depth <= SMALL_WINDOW);
    int is_fitted = d->row == DLC_DOT_VDPBF16PS || d->row == DLC_DOT_VPDPBUSD;
    int is_measured = d->row == DLC_DOT_FMA || (is_fitted && d->c->target->machine->fitted);
    if (!is_measured || is_window || d->rows <= FEW_ROWS || !dlc_dot_expects_rows(d) ||
        !dlc_choose_are_known(d->c, &d->form.n))
        return rule;
    for (int64_t v = 1; v <= DLC_MOST_VECTORS; v++)
        heights[v] = rows_that_fit(d, v) > 0 && !stores_apart(d, v) ? height_of(d, v, 0) : 0;
    return dlc_choose_vectors(d->c, d->s, d->row, d->stage->dtype[0], size, heights, rule);
}

/* What a tile reads of the factor in place, `span` elements from a multiple of `tile` on at each point of K, is more lines of L1 than these
 * percent of the sets that they fall into hold: the next tile that reads the same finds nothing of it. */
static int is_crowded(const dot *d, dlc_expr factor, int64_t span, int64_t tile, int64_t percent)
{
    const dlc_access_fact *access = dlc_dot_plain_load(d, factor);
    if (!access || d->order.n != 1)
        return 0;
    int64_t bytes = dlc_dtype_bytes(dlc_node_of(d->c->kernel->pool, factor)->dtype);
    int64_t stride = dlc_choose_stride(d->c, access->offset, d->order.data[0]) * bytes;
    int64_t spread = DLC_WAY_BYTES, lines = (span * bytes + DLC_LINE_BYTES - 1) / DLC_LINE_BYTES;
    while (stride % spread) /* points lie multiples of it apart */
        spread /= 2;
    if (spread < DLC_LINE_BYTES || tile * bytes % DLC_LINE_BYTES)
        lines++; /* it begins within one */
    if (stride < lines * DLC_LINE_BYTES) /* points share lines */
        return 0;
    int64_t sets = spread < DLC_LINE_BYTES ? DLC_WAY_BYTES : DLC_WAY_BYTES / spread * lines, most = DLC_WAY_BYTES / DLC_LINE_BYTES;
    return lines * d->c->extent[d->order.data[0]] * 100 > (sets < most ? sets : most) * dlc_target_l1_ways(d->c->target) * percent;
}

/* B in place, which rows of A enough read again for a copy to pay. */
static int wants_columns(const dot *d)
{
    enum { MANY_ROWS = 84, PERCENT = 75 };
    return d->m > 1 && dlc_choose_least(d->c, &d->form.m) >= MANY_ROWS && is_crowded(d, d->form.b, d->n, d->n, PERCENT);
}

/* A in place, its elements all over memory, which columns enough read again. */
static int wants_rows(const dot *d)
{
    enum { MANY_TILES = 8, PERCENT = 40, PERCENT_SHARED = 60 }; /* beside panels of B, which come by; where two tiles or more share a line */
    const dlc_access_fact *access = dlc_dot_plain_load(d, d->form.a);
    int64_t stride = access && d->form.m.n ? dlc_choose_stride(d->c, access->offset, d->form.m.data[d->form.m.n - 1]) : 0;
    return stride > 0 && stride != DLC_ODD_STRIDE && dlc_choose_least(d->c, &d->form.n) >= (double)(MANY_TILES * d->n) &&
           dlc_choose_stride(d->c, access->offset, d->order.data[d->order.n - 1]) > stride &&
           is_crowded(d, d->form.a, (d->m - 1) * stride + 1, d->m * stride,
                      d->m * stride * operand_bytes(d) * 2 <= DLC_LINE_BYTES ? PERCENT_SHARED : PERCENT);
}

/* --- the tree --- */

/* Maps from stage `first` on, one value at a time. */
static void build_maps(const dot *d, uint32_t first)
{
    for (uint32_t s = first; s < d->c->schedule->nstages; s++)
        dlc_schedule_leaf(d->c->schedule, s, d->c->kernel->stages.data[s].buffer == DLC_NO_BUFFER || d->c->is_read[s] ? DLC_PLACE_REG
                                                                                                                 : DLC_PLACE_BUFFER);
}

/* Columns that are computed are no load; a tile that reads several panels at once has streams of its own. */
static void choose_ahead(const dot *d)
{
    if (!dlc_dot_is_computed(d) && (d->panel >= d->n || d->c->target->panel_bytes))
        dlc_choose_ahead(d->c);
}

static void build_tile(const dot *d)
{
    dlc_schedule *schedule = d->c->schedule;
    int is_alone = schedule->nstages == 1, has_panels = d->block > d->n, has_tiles = d->row_block > 0;
    if (has_panels)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, d->columns_axis, d->n);
    if (has_tiles)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, d->rows_axis, d->m);
    dlc_schedule_dot(schedule, d->s, d->row, d->m > 1 ? d->rows_axis : DLC_NO_AXIS, d->columns_axis, &d->order,
                     is_alone ? DLC_PLACE_BUFFER : DLC_PLACE_REG);
    dlc_choose_parts(d->c);
    choose_ahead(d);
    uint32_t leaf = schedule->nodes.n - 1;
    if (!is_alone)
        dlc_schedule_open_as(schedule, d->s);
    build_maps(d, d->s + 1);
    dlc_choose_maps_ahead(d->c, leaf);
    dlc_schedule_close(schedule, (uint32_t)!is_alone + (uint32_t)has_panels + (uint32_t)has_tiles);
}

/* --- by blocks of K --- */

/*
 * Columns that are computed, and of which scratch does not hold a panel: a block of K at a time is, for as many tiles of rows as make that
 * little beside their products. Sums wait in scratch (Zen 4, 4 bits and f32, 128 x 11008 by 4096: .85 of the time that tiles take which each
 * compute their columns).
 */
enum { TILES = 16, SHARE_OF_L2 = 16 };

static int64_t points_at_once(const dot *d)
{
    uint32_t k = d->order.data[0];
    double bytes = (double)d->n * dlc_dtype_bytes(d->stage->dtype[0]), most = d->c->target->l2_bytes / SHARE_OF_L2;
    int64_t points = 1;
    while ((double)points * 2 * d->depth / (double)d->c->extent[k] * bytes <= most)
        points *= 2;
    return points;
}

static int goes_by_copied_blocks(const dot *d)
{
    double bytes = (double)d->n * d->depth * dlc_dtype_bytes(d->stage->dtype[0]);
    return d->copy_b && !d->copy_a && d->m > 1 && dlc_dot_is_computed(d) && bytes > d->c->target->scratch_bytes / 2 &&
           points_at_once(d) < d->c->extent[d->order.data[0]];
}

static void build_by_blocks_of_k(dot *d, int64_t points)
{
    dlc_schedule *schedule = d->c->schedule;
    uint32_t n = d->form.batch.n, has_panels = d->block > d->n;
    uint32_t copy_a = d->copy_a ? dlc_dot_add_copy_a(d) : DLC_NO_STAGE, copy_b = d->copy_b ? dlc_dot_add_copy_b(d) : DLC_NO_STAGE;
    dlc_ids inside = d->order;
    if (points == 1) /* the block leaves nothing of its axis */
        inside.data++, inside.n--;
    d->rows_axis = dlc_schedule_flatten(schedule, &d->form.m);
    d->columns_axis = dlc_schedule_flatten(schedule, &d->form.n);
    for (uint32_t i = 0; i < n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, d->form.batch.data[i], 1);
    if (d->copy_a) /* for all columns of a thread */
        dlc_schedule_open(schedule, DLC_LOOP_PAR, d->rows_axis, d->row_block);
    dlc_schedule_open(schedule, DLC_LOOP_PAR, d->columns_axis, d->block);
    if (!d->copy_a)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, d->rows_axis, d->row_block);
    if (d->copy_a)
        dlc_dot_build_copy_a(d, copy_a);
    dlc_schedule_open(schedule, DLC_LOOP_FOR, d->order.data[0], points);
    if (d->copy_b)
        dlc_dot_build_copy_b(d, copy_b);
    if (has_panels)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, d->columns_axis, d->n);
    dlc_schedule_open(schedule, DLC_LOOP_FOR, d->rows_axis, d->m);
    dlc_schedule_dot(schedule, d->s, d->row, d->rows_axis, d->columns_axis, &inside, DLC_PLACE_SCRATCH);
    dlc_choose_parts(d->c);
    choose_ahead(d);
    dlc_schedule_close(schedule, 2 + has_panels);
    if (d->c->nstages > 1) {
        dlc_schedule_open(schedule, DLC_LOOP_FOR, d->rows_axis, 1);
        dlc_schedule_open_lane(schedule, d->columns_axis, d->width, 1);
        build_maps(d, d->s + 1);
        dlc_schedule_close(schedule, 2);
    }
    dlc_schedule_close(schedule, n + 2);
}

/* For a panel of computed columns as many rows as make that little. */
static void build_by_copied_blocks(dot *d)
{
    double blocks = dlc_dot_expects_rows(d) ? ceil(d->rows / (double)(TILES * d->m)) : 0;
    d->block = d->n;
    d->row_block = blocks > 0 ? dlc_dot_round_to(ceil(d->rows / blocks), d->m) : TILES * d->m;
    build_by_blocks_of_k(d, points_at_once(d));
}

/* --- all of K --- */

/* The columns' loop, unless one unit has them all. */
static uint32_t open_columns(const dot *d)
{
    if (dlc_dot_count_of(d->columns, d->block) <= 1 && d->block > d->n)
        return 0;
    dlc_schedule_open(d->c->schedule, DLC_LOOP_PAR, d->columns_axis, d->block);
    return 1;
}

static uint32_t open_rows(const dot *d, dlc_loop_kind kind)
{
    if (!d->form.m.n)
        return 0;
    dlc_schedule_open(d->c->schedule, kind, d->rows_axis, d->row_block ? d->row_block : d->m);
    return 1;
}

static void build(dot *d, dlc_dot_loops order)
{
    dlc_schedule *schedule = d->c->schedule;
    uint32_t n = d->form.batch.n, copy_a = DLC_NO_STAGE, copy_b = DLC_NO_STAGE;
    if (d->copy_a)
        copy_a = dlc_dot_add_copy_a(d);
    if (d->copy_b)
        copy_b = dlc_dot_add_copy_b(d);
    d->rows_axis = d->form.m.n ? dlc_schedule_flatten(schedule, &d->form.m) : DLC_NO_AXIS;
    d->columns_axis = dlc_schedule_flatten(schedule, &d->form.n);
    for (uint32_t i = 0; i < n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, d->form.batch.data[i], 1);
    if (order != DLC_ROWS_COLUMNS)
        n += open_columns(d);
    if (d->copy_b)
        dlc_dot_build_copy_b(d, copy_b);
    n += open_rows(d, order == DLC_COLUMNS_COPY_ROWS ? DLC_LOOP_FOR : DLC_LOOP_PAR);
    if (order == DLC_ROWS_COLUMNS)
        n += open_columns(d);
    if (d->copy_a)
        dlc_dot_build_copy_a(d, copy_a);
    build_tile(d);
    dlc_schedule_close(schedule, n);
    if (!d->copy_b) /* products with padding are 0 where no factor is infinite, as is taken for granted of constants */
        dlc_choose_skipped(d->c);
}

/* --- one row by a matrix in place --- */

/*
 * A matrix that lies as it came, and is larger than L2 by far, is read by a few of its rows at a time, along all of them or long pieces, as hardware
 * fetches it early; sums wait in scratch for the next few. By narrow columns all along K each row is a page of its own (Zen 4, 36 MB: 17 GB/s
 * so, 35 by eight rows). A part of the sum is those few points of K: no more terms follow one another than parts of other products have.
 */
static int64_t streams_of(const dot *d)
{
    enum { FEW = 8 };
    int64_t n = FEW, terms = d->c->extent[d->order.data[0]];
    while (n < DLC_PART_TERMS && n + terms / n > DLC_PART_MOST_TERMS)
        n *= 2;
    return n;
}

static int goes_along_rows(dot *d)
{
    const dlc_target *target = d->c->target;
    double elem = dlc_dtype_bytes(dlc_node_of(d->c->kernel->pool, d->form.b)->dtype), batches = dlc_choose_least(d->c, &d->form.batch);
    int64_t n = target->vector_registers / 4 * d->width; /* sums of parts, and as many of all before */
    if (d->form.m.n || d->copy_a || d->copy_b || d->order.n != 1 || dlc_dot_constant_of(d, d->form.b) || n < d->width || d->columns <= 2 * n ||
        !dlc_choose_is_known(d->c, d->order.data[0]) || !dlc_choose_are_known(d->c, &d->form.n) ||
        !dlc_goes_by_rows(target, batches * d->columns * d->depth * elem))
        return 0;
    d->block = dlc_dot_round_to(batches < DLC_ROW_PIECES ? d->columns * batches / DLC_ROW_PIECES : d->columns, n);
    if ((d->block < d->columns && d->block * elem < DLC_LONG_PIECE) || d->depth < 2 * streams_of(d))
        return 0;
    d->n = n;
    return 1;
}

static void build_along_rows(dot *d)
{
    dlc_schedule *schedule = d->c->schedule;
    uint32_t n = d->form.batch.n, k = d->order.data[0];
    d->rows_axis = DLC_NO_AXIS;
    d->columns_axis = dlc_schedule_flatten(schedule, &d->form.n);
    for (uint32_t i = 0; i < n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, d->form.batch.data[i], 1);
    dlc_schedule_open(schedule, DLC_LOOP_PAR, d->columns_axis, d->block);
    dlc_schedule_open(schedule, DLC_LOOP_FOR, k, streams_of(d));
    dlc_schedule_open(schedule, DLC_LOOP_FOR, d->columns_axis, d->n);
    dlc_schedule_dot(schedule, d->s, d->row, DLC_NO_AXIS, d->columns_axis, &d->order, DLC_PLACE_SCRATCH);
    if (dlc_is_float(d->stage->dtype[0]))
        dlc_schedule_dot_cut(schedule, k, streams_of(d));
    dlc_schedule_close(schedule, 2);
    if (schedule->nstages > 1) {
        dlc_schedule_open_lane(schedule, d->columns_axis, d->width, 1);
        build_maps(d, d->s + 1);
        dlc_schedule_close(schedule, 1);
    }
    dlc_schedule_close(schedule, n + 1);
}

/* --- sums by blocks --- */

/* Products of all blocks wait in scratch, for as many rows as leave it in the caches. */
static void build_by_blocks(dot *d)
{
    enum { SHARE = 8 }; /* of L2 */
    dlc_schedule *schedule = d->c->schedule;
    uint32_t n = 0, nsummed = d->summed.n;
    double bytes = dlc_choose_points(d->c, &d->summed) * (double)d->n * dlc_dtype_bytes(d->stage->dtype[0]);
    while (d->m > 1 && bytes * (double)d->m > d->c->target->l2_bytes / SHARE)
        d->m--;
    if (d->form.m.n && dlc_dot_expects_rows(d)) {
        int64_t tiles = ((int64_t)d->rows + d->m - 1) / d->m;
        d->m = ((int64_t)d->rows + tiles - 1) / tiles;
    }
    dlc_dot_pack_behind(d, 1);
    d->rows_axis = d->form.m.n ? dlc_schedule_flatten(schedule, &d->form.m) : DLC_NO_AXIS;
    d->columns_axis = dlc_schedule_flatten(schedule, &d->form.n);
    for (uint32_t i = 0; i < d->form.batch.n; i++)
        if (!dlc_ids_find(&d->summed, d->form.batch.data[i], NULL)) {
            dlc_schedule_open(schedule, DLC_LOOP_PAR, d->form.batch.data[i], 1);
            n++;
        }
    dlc_schedule_open(schedule, DLC_LOOP_PAR, d->columns_axis, d->n);
    n += 1 + open_rows(d, DLC_LOOP_PAR);
    for (uint32_t i = 0; i < nsummed; i++)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, d->summed.data[i], 1);
    dlc_schedule_dot(schedule, d->s, d->row, d->m > 1 ? d->rows_axis : DLC_NO_AXIS, d->columns_axis, &d->order, DLC_PLACE_SCRATCH);
    dlc_choose_parts(d->c);
    dlc_schedule_close(schedule, nsummed);
    if (d->m > 1)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, d->rows_axis, 1);
    dlc_schedule_open_lane(schedule, d->columns_axis, d->width, (uint32_t)(d->n / d->width));
    for (uint32_t i = 0; i < nsummed; i++)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, d->summed.data[i], 1);
    dlc_schedule_leaf(schedule, 1, DLC_PLACE_REG);
    dlc_schedule_close(schedule, nsummed);
    build_maps(d, 2);
    dlc_schedule_close(schedule, n + 1 + (d->m > 1));
}

/* The row and the factors' roles; false: the kernel is no product, or lanes do as well. */
static int begin(dot *d)
{
    dlc_chooser *c = d->c;
    if (!dlc_choose_contraction(c, &d->form) && !is_sum_by_blocks(c, &d->form, &d->summed))
        return 0;
    part_phases(c, &d->form);
    d->stage = &c->kernel->stages.data[0];
    d->width = dlc_choose_width(c, dlc_dtype_bytes(d->stage->dtype[0]));
    return d->width >= 2 && choose_row(d);
}

int dlc_choose_is_for_tiles(dlc_chooser *c, dlc_ids *rows)
{
    dot d = {.c = c, .part = DLC_NO_AXIS};
    if (!begin(&d) || d.summed.n || dlc_choose_are_known(c, &d.form.m) || !dlc_dot_is_in_tile(&d))
        return 0;
    *rows = d.form.m;
    return 1;
}

int dlc_choose_dot(dlc_chooser *c)
{
    dot d = {.c = c, .part = DLC_NO_AXIS, .a_name = "rows", .b_name = "columns"};
    if (!begin(&d))
        return 0;
    int is_tile = dlc_dots[d.row].family == DLC_FAMILY_TILE;
    int64_t nv = 0, points;
    if (is_tile)
        choose_registers(&d, &nv);
    else
        nv = better_vectors(&d, vectors_of(&d));
    d.panel = nv * d.width;
    if (dlc_dot_constant_of(&d, d.form.b)) {
        dlc_dot_order_computed(&d, &d.order);
        d.panel = dlc_choose_panel(c, dlc_dtype_bytes(d.stage->dtype[0]), &nv);
    }
    d.copy_a = d.is_widened || !dlc_dot_is_direct(&d, d.form.a, &d.form.m) || !has_granules(&d) || (is_tile && !are_equally_apart(&d));
    d.n = nv * d.width;
    if (is_tile && d.copy_a && dlc_dot_takes_lines(&d))
        d.copy_a = !dlc_dot_is_direct(&d, d.form.a, &d.form.m) || !has_granules(&d);
    if (!is_tile)
        d.m = d.form.m.n ? height_of(&d, nv, 0) : 1;
    if (!is_tile && (!d.copy_a || d.granule == 1 || !dlc_dot_shares_lines(&d, most_rows(&d, nv))))
        take_lines(&d, nv);
    d.copy_a |= wants_rows(&d);
    if (!is_tile)
        d.panel = dlc_dot_panel_of_rows(&d);
    int is_packed = dlc_dot_pack(&d);
    if (d.summed.n && (!is_packed || d.copy_a))
        return 0;
    if (!is_packed) {
        d.panel = d.n;
        d.copy_b = d.granule > 1 || !is_in_place(&d) || wants_columns(&d);
        if (d.copy_b && d.rows <= FEW_ROWS) /* a row that is dotted with rows: the reduced axis along the lanes is better */
            return 0;
    }
    if (d.summed.n)
        build_by_blocks(&d);
    else if (d.form.scale) /* a factor outside of the sum, which loops may not cut then */
        build(&d, dlc_dot_choose_order(&d));
    else if (goes_along_rows(&d))
        build_along_rows(&d);
    else if (goes_by_copied_blocks(&d))
        build_by_copied_blocks(&d);
    else if ((points = dlc_dot_points_of_rows(&d)) > 0 || (points = dlc_dot_points_of_copies(&d)) > 0 ||
             (points = dlc_dot_points_of_windows(&d)) > 0)
        build_by_blocks_of_k(&d, points);
    else
        build(&d, dlc_dot_choose_order(&d));
    return 1;
}

/*
 * The order of a register tile's loops: what stays in a cache while the rest streams by, and how many units that leaves for threads.
 */
#include "passes/schedule/choose_dot.h"

#include <math.h>

typedef dlc_dot_choice dot;

int64_t dlc_dot_round_to(double value, int64_t multiple)
{
    int64_t n = (int64_t)value;
    n = (n + multiple - 1) / multiple * multiple;
    return n < multiple ? multiple : n;
}

double dlc_dot_count_of(double size, int64_t tile)
{
    return (double)(((int64_t)size + tile - 1) / tile);
}

/* Bytes of a point of K in a row of A, or in a column of B. */
static double point_bytes(const dot *d, dlc_expr factor)
{
    return (double)dlc_dtype_bytes(dlc_node_of(d->c->kernel->pool, factor)->dtype) * dlc_dots[d->row].parts;
}

/* Bytes that a row of A has to itself: of lines of an image, whose taps read the same ones, a pixel. */
static double row_bytes(const dot *d)
{
    double bytes = d->depth * point_bytes(d, d->form.a);
    for (uint32_t i = 0; i + 1 < d->order.n && d->has_lines; i++)
        bytes /= (double)d->c->extent[d->order.data[i]];
    return bytes;
}

/* Bytes of A that rows read: windows of an image share its pixels. */
static double rows_bytes(const dot *d)
{
    const dlc_access_fact *access = d->copy_a ? NULL : dlc_dot_plain_load(d, d->form.a);
    double bytes = d->rows * d->depth * point_bytes(d, d->form.a);
    size_t image = 0;
    int is_known = access && !DLC_SOURCE_IS_STAGE(access->source) &&
                   dlc_type_bytes(d->c->kernel->pool, &d->c->kernel->buffers.data[access->source].type, &image);
    return is_known && (double)image < bytes ? (double)image : bytes;
}

/* Columns per root tile so that there are enough units, `units` of them coming from the other loops. */
static int64_t split_columns(const dot *d, double units, double wanted)
{
    int64_t all = dlc_dot_round_to(d->columns, d->n);
    if (units >= wanted)
        return all;
    int64_t pieces = (int64_t)(wanted / (units < 1 ? 1 : units));
    int64_t tile = dlc_dot_round_to(d->columns / (double)pieces, d->n);
    return tile < all ? tile : all;
}

/* Columns for which A comes by once where L2 holds neither all of it nor all of B. */
static int64_t block_of_columns(const dot *d)
{
    double half = d->c->target->l2_bytes / 2;
    return (int64_t)(half / (d->depth * point_bytes(d, d->form.a))) / d->n * d->n;
}

/*
 * Rows of a block whose tiles all meet a panel of columns before the next one comes: where L1 holds a panel and not all of them, it comes from
 * L2 once for the block. Tiles of few terms do not hide it. (Emerald Rapids, bytes, 196 x 256 by 1024 and 784 x 128 by 512: .95 of the time,
 * with two threads, too, where blocks are a thread's own; all rows behind each panel is the same alone and 1.2 to 1.5 with two.) Of few rows
 * all are one block, and units are of columns.
 */
static int64_t rows_of_a_panel(const dot *d, double columns_bytes)
{
    enum { BLOCKS = 8, LEAST_TILES = 4 };
    double l1 = d->c->target->l1_bytes, panel = (double)d->n * d->depth * point_bytes(d, d->form.b);
    if (d->m < 2 || columns_bytes <= l1 / 2 || panel > l1 || !dlc_dot_expects_rows(d))
        return 0;
    int64_t blocks = 1; /* two, four and eight threads share equally */
    while (blocks < BLOCKS && d->rows >= (double)(2 * blocks * LEAST_TILES * d->m))
        blocks *= 2;
    double units = (double)blocks * dlc_dot_count_of(d->columns, d->n);
    return units < DLC_MIN_UNITS ? 0 : dlc_dot_round_to(ceil(d->rows / (double)blocks), d->m);
}

/* Bytes of what the kernel writes for a batch. */
static double written_bytes(const dot *d)
{
    double bytes = 0;
    for (uint32_t s = 0; s < d->c->nstages; s++) {
        uint32_t buffer = d->c->kernel->stages.data[s].buffer;
        if (buffer != DLC_NO_BUFFER)
            bytes += dlc_choose_elems(d->c, buffer) * dlc_dtype_bytes(d->c->kernel->buffers.data[buffer].type.dtype);
    }
    return bytes / dlc_choose_points(d->c, &d->form.batch);
}

/*
 * Whether threads have rows of A each, where L2 holds B: what a thread makes of its rows it reads again in the next kernel, and nothing of it
 * lies in another's cache (Zen 4, two threads, what is between two products with 196 x 384: 20 us by columns, 7.4 by rows). Each reads all of B
 * then, which takes longer where it is much more than rows and results, and bytes are multiplied so fast that nothing hides it (Emerald Rapids,
 * two threads, by columns: 49 x 2048 by 512 .71 of the time, 49 x 160 by 960 .93; 196 x 64 by 384 1.05, and what reads it 1.24).
 */
static int has_own_rows(const dot *d, double units, double a, double b)
{
    enum { LEAST_UNITS = 8,             /* fewer are hard to share equally */
           LEAST_SHARED = 192 << 10,    /* bytes: less has come from another cache in a microsecond or two */
           MUCH_MORE = 3 };
    double results = d->rows * d->columns * point_bytes(d, d->form.a);
    if (d->granule > 1)
        return b <= d->c->target->l2_bytes && b < MUCH_MORE * (a + written_bytes(d));
    int is_shared = units >= LEAST_UNITS && dlc_dot_constant_of(d, d->form.b) && a + results >= LEAST_SHARED;
    return is_shared && b <= d->c->target->l2_bytes / 2;
}

/*
 * Direct A: what stays in L2 while the other streams. Where all of both fits: B, if threads are to have their own rows (has_own_rows). Else all
 * of A and a panel of B; else all of B and a tile of A's rows, or a block of them behind each panel; else a block of columns for which A streams
 * by, or B for each tile of rows, whichever moves less.
 */
static dlc_dot_loops order_direct(dot *d, double units)
{
    double elem = point_bytes(d, d->form.a), half = d->c->target->l2_bytes / 2;
    double a = rows_bytes(d), b = d->columns * d->depth * elem, stays = d->granule > 1 ? 2 * half : half;
    int64_t block = block_of_columns(d);
    d->block = d->panel > d->n ? d->panel : d->n;
    if (!d->form.m.n || (a <= half && !has_own_rows(d, units, a, b)))
        return DLC_COLUMNS_ROWS;
    if (a <= half && d->granule == 1) { /* pieces of columns too, for more threads than rows are shared equally by */
        d->block = split_columns(d, units, 4 * DLC_MIN_UNITS);
        return DLC_ROWS_COLUMNS;
    }
    if (b <= stays || block < d->n || a * d->columns / (double)block > b * d->rows / (double)d->m) {
        d->row_block = b <= stays && d->granule > 1 ? rows_of_a_panel(d, b) : 0;
        if (d->row_block)
            units = dlc_choose_least(d->c, &d->form.batch) * dlc_dot_count_of(d->rows, d->row_block);
        d->block = split_columns(d, units, DLC_MIN_UNITS);
        return DLC_ROWS_COLUMNS;
    }
    d->block = dlc_dot_round_to(ceil(d->columns / dlc_dot_count_of(d->columns, block)), d->n); /* blocks as equal as panels allow: threads share them */
    return DLC_COLUMNS_ROWS;
}

static const double COPIED = 0.7; /* of L2: columns that stay beside a few rows' copies, which blocks of rows would be copied for each piece of */
enum { UNITS = 4, LEAST_POINTS = 256 }; /* rows are copied for each; points of a sum beside which it is little to keep it in scratch meanwhile */

static double products_us(const dot *d, double rows)
{
    return rows * d->columns * d->depth / (double)(d->width * d->granule) / 2 / d->c->target->machine->cycles_per_us;
}

/* Sums of a known number of points and columns in lanes, of rows enough that several tiles meet a panel. */
static int is_for_blocks(const dot *d)
{
    return !d->copy_b && d->m > 1 && d->rows > (double)d->m && !d->summed.n && dlc_dots[d->row].family == DLC_FAMILY_LANES &&
           dlc_dot_expects_rows(d) && d->c->target->machine->l3_bytes_per_us > 0 && dlc_choose_are_known(d->c, &d->form.k) &&
           dlc_choose_are_known(d->c, &d->form.n);
}

static const double ROWS_SHARE = 0.3; /* of L2: rows that wait there for the next columns */

/* Rows of a block, of which all sums by `columns` have room, in at least so many blocks. */
static int64_t rows_beside_sums(const dot *d, int64_t columns, double blocks)
{
    const double SUMS = 0.25; /* of L2 */
    double l2 = d->c->target->l2_bytes, most = floor(ROWS_SHARE * l2 / (LEAST_POINTS * point_bytes(d, d->form.a)));
    most = fmin(most, floor(SUMS * l2 / ((double)columns * dlc_dtype_bytes(d->stage->dtype[0]))));
    blocks = fmax(blocks, ceil(d->rows / fmax(most, (double)d->m)));
    return dlc_dot_round_to(ceil(d->rows / blocks), d->m);
}

/*
 * The block of rows and of columns for which the fewest bytes come from beyond L2: rows once for each block of columns, as they lie, which takes
 * AS_THEY_LIE times as long as columns, packed and asked for ahead, that come once for each block of rows.
 */
static void choose_block(dot *d, double a, double b)
{
    enum { AS_THEY_LIE = 3, LEAST_ROWS = 128, FEW = 3 /* times what comes: few rows share a panel */ };
    double batches = dlc_choose_least(d->c, &d->form.batch), least = 0;
    int64_t columns = 0;
    for (int64_t pieces = 1; columns != d->n; pieces++) {
        columns = dlc_dot_round_to(ceil(d->columns / (double)pieces), d->n);
        double blocks = ceil(UNITS / (batches * dlc_dot_count_of(d->columns, columns)));
        int64_t rows = rows_beside_sums(d, columns, blocks);
        double bytes = AS_THEY_LIE * a * dlc_dot_count_of(d->columns, columns) + b * dlc_dot_count_of(d->rows, rows);
        if (rows < LEAST_ROWS && (double)rows < d->rows)
            bytes *= FEW;
        if (!least || bytes < least)
            least = bytes, d->row_block = rows, d->block = columns;
    }
}

/*
 * Rows that leave L2 before the next columns meet them come from L3 once for each block of columns. Where that takes long beside the
 * products, sums go by blocks of K, of which L2 holds a block of rows beside the sums of a unit's columns, which wait in scratch
 * (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008, section 4). Emerald Rapids, 197 x 3072 by 768: .91 of the
 * time, with 512, 768 and 1024 points at once within a tenth of each other. Of more rows, blocks of few of them and all columns rather than of
 * half of them and 96 columns: 384 and 1024 x 3072 by 768 and 512 x 4096 by 512 take .88 to .95.
 */
int64_t dlc_dot_points_of_rows(dot *d)
{
    const double WORTH = 0.125; /* of the products' time */
    double elem = point_bytes(d, d->form.a), l2 = d->c->target->l2_bytes, far = d->granule > 1 ? l2 : l2 / 2;
    double a = d->rows * d->depth * elem, b = d->columns * d->depth * elem;
    int64_t block = block_of_columns(d);
    if (!is_for_blocks(d) || d->copy_a || d->order.n != 1 || a <= l2 / 2 || b <= far)
        return 0;
    double again = a * dlc_dot_count_of(d->columns, block < d->n ? d->n : block);
    if (again / d->c->target->machine->l3_bytes_per_us < WORTH * products_us(d, d->rows))
        return 0;
    int64_t rows = d->row_block, columns = d->block;
    choose_block(d, a, b);
    double parts = ceil(d->depth * (double)d->row_block * elem / (ROWS_SHARE * l2));
    if (parts >= 2)
        return dlc_dot_round_to(ceil(d->depth / parts), DLC_PART_TERMS);
    d->row_block = rows, d->block = columns;
    return 0;
}

/*
 * Rows in tile registers are multiplied faster than L3 gives columns. So all rows stay in L2, if they fit, while columns come by once, a panel
 * at a time; or all columns do; else blocks of rows as large as L2 lets them be. Weights that few rows meet come from memory each run, and
 * rows that share a panel share fetching the next one (resnet50's 196 x 1024 by 256, Emerald Rapids: 140 us by rows, 101 by columns).
 */
static dlc_dot_loops order_tiles(dot *d)
{
    const double ALL = 0.7, BLOCK = 0.5; /* of L2; a block has columns beside it that are to come again */
    double row = row_bytes(d), b = d->columns * d->depth * point_bytes(d, d->form.b), l2 = d->c->target->l2_bytes;
    double units = dlc_choose_least(d->c, &d->form.batch), rows = dlc_choose_least(d->c, &d->form.m);
    int is_known = dlc_dot_expects_rows(d);
    d->block = d->panel > d->n ? d->panel : d->n;
    int is_far = is_known && d->rows <= DLC_FEW_TILED_ROWS && b > d->c->target->l1_bytes && dlc_dot_constant_of(d, d->form.b);
    if (!d->copy_a && d->rows * row <= ALL * l2 && (b > l2 || is_far))
        return DLC_COLUMNS_ROWS;
    if (b > (d->copy_a ? COPIED : BLOCK) * l2 && is_known) {
        double most = floor(BLOCK * l2 / row / (double)d->m) * (double)d->m;
        double blocks = most > (double)d->m ? ceil(d->rows / most) : 0;
        d->row_block = blocks > 0 ? dlc_dot_round_to(ceil(d->rows / blocks), d->m) : 0;
    }
    if (d->row_block <= d->m)
        d->row_block = 0;
    units *= dlc_dot_count_of(rows, d->row_block ? d->row_block : d->m);
    d->block = split_columns(d, units, d->copy_a ? UNITS : DLC_MIN_UNITS);
    return DLC_ROWS_COLUMNS;
}

/* The largest share of `threads`, by what it would be if all were equal. */
static double share_of(double rows, int64_t block, int threads)
{
    double most = ceil(dlc_dot_count_of(rows, block) / threads) * (double)block;
    return (most < rows ? most : rows) * threads / rows;
}

/*
 * Rows of whole lines of an image that a unit copies, with those that its windows reach beyond them: few enough that threads have equal
 * shares. Columns that L2 does not hold come by once for as many lines as it does.
 */
static int64_t block_of_lines(const dot *d, int is_by_columns)
{
    enum { SHARE = 4, THREADS = 4 }; /* of L2; threads that are to share */
    const dlc_target *target = d->c->target;
    const dlc_dot_lines image = dlc_dot_lines_of(d);
    double byte = target->machine->cycles_per_us / target->machine->near_bytes_per_us; /* cycles */
    int64_t line = d->form.m.n > 1 ? d->c->extent[d->form.m.data[d->form.m.n - 1]] : 1, least = line, best = 0;
    double product = (double)line * d->depth * d->columns * dlc_dot_pairs(d->row) / dlc_dot_products_in_tiles(target, d->row); /* cycles of a line */
    double most = (double)target->l2_bytes / (is_by_columns ? 2 : SHARE), cost = 0;
    while (least % d->m)
        least += line;
    for (int64_t rows = least; !best || rows < (int64_t)d->rows + least; rows += least) {
        double lines = (double)(rows / line * image.step), shares = 0;
        if (best && (lines + image.halo) * image.bytes > most)
            break;
        for (int threads = 1; threads <= THREADS && !is_by_columns; threads *= 2)
            shares += share_of(d->rows, rows, threads);
        double copying = (lines + image.halo) / lines * (double)image.step * image.bytes * byte, all = shares * (product + copying);
        if (!best || all < cost || is_by_columns)
            best = rows, cost = all;
    }
    return best;
}

/*
 * In lanes, of an image that L2 holds a part of beside columns: halves, whose lines all meet a panel of columns before the next one comes, or more
 * blocks, where the panels are too few to be shared by threads; or as much as may be where columns are more than L2 holds, for which they come
 * again. (Emerald Rapids, 14x14, 590 KB of weights: units of one line take 1.06 times as long, of four lines 1.03.)
 */
static int64_t block_of_shared_lines(const dot *d, double batches, int is_by_columns)
{
    enum { BLOCKS = 2 };
    const dlc_dot_lines image = dlc_dot_lines_of(d);
    int64_t line = d->c->extent[d->form.m.data[1]], lines = (int64_t)d->rows / line;
    double blocks = DLC_MIN_UNITS / batches / dlc_dot_count_of(d->columns, d->n);
    if (blocks < BLOCKS)
        blocks = is_by_columns ? 1 : BLOCKS;
    int64_t most = (int64_t)ceil((double)lines / blocks);
    while (most > 1 && ((double)(most * image.step) + image.halo) * image.bytes > d->c->target->l2_bytes / DLC_LINES_SHARE)
        most--;
    int64_t equal = (int64_t)dlc_dot_count_of((double)lines, most);
    return (lines + equal - 1) / equal * line;
}

static dlc_dot_loops order_windows(dot *d)
{
    double units = dlc_choose_least(d->c, &d->form.batch);
    int is_by_columns = d->columns * d->depth * point_bytes(d, d->form.b) > COPIED * d->c->target->l2_bytes;
    int is_in_lanes = dlc_dots[d->row].family == DLC_FAMILY_LANES;
    d->row_block = is_in_lanes ? block_of_shared_lines(d, units, is_by_columns) : block_of_lines(d, is_by_columns);
    units *= dlc_dot_count_of(d->rows, d->row_block);
    if (d->row_block <= d->m)
        d->row_block = 0;
    d->block = split_columns(d, units, is_in_lanes ? DLC_MIN_UNITS : UNITS);
    return DLC_ROWS_COLUMNS;
}

/* Copied rows meet columns that L2 does not hold, and L3 takes long to bring them for a tile of rows. */
static int has_far_columns(const dot *d)
{
    const double WORTH = 0.25; /* of the tile's products (by the figures of hosts.def .2 on Zen 4, 1.3 on Emerald Rapids) */
    double bytes = d->columns * d->depth * point_bytes(d, d->form.b);
    return d->copy_a && is_for_blocks(d) && bytes > COPIED * d->c->target->l2_bytes &&
           bytes / d->c->target->machine->l3_bytes_per_us > WORTH * products_us(d, (double)d->m);
}

/*
 * Copied rows of a unit: those of a tile, or where columns are far, which would come for each tile, of as many tiles as leave L2 room for what
 * comes by (Emerald Rapids, 3x3 of 512 channels at 7x7, bytes: .67 of the time). 0: a tile's.
 */
static int64_t block_of_copies(const dot *d)
{
    const double ROWS = 0.25; /* of L2 */
    double row = d->depth * point_bytes(d, d->form.a), most = floor(ROWS * d->c->target->l2_bytes / row / (double)d->m) * (double)d->m;
    int64_t block = has_far_columns(d) && most > (double)d->m ? dlc_dot_round_to(ceil(d->rows / ceil(d->rows / most)), d->m) : 0;
    return block > d->m ? block : 0;
}

/* One point of the outermost axis after the other, for all rows, whose sums wait in scratch; 0: there are too many points, or they are too short. */
static int64_t by_taps(dot *d)
{
    enum { MOST_TAPS = 8 };
    const double SUMS = 0.125; /* of L2 */
    int64_t taps = d->order.n > 1 ? d->c->extent[d->order.data[0]] : 1, rows = dlc_dot_round_to(d->rows, d->m);
    int64_t columns = (int64_t)(SUMS * d->c->target->l2_bytes / (double)rows / dlc_dtype_bytes(d->stage->dtype[0])) / d->n * d->n;
    if (taps < 2 || taps > MOST_TAPS || d->depth / (double)taps < LEAST_POINTS || columns < d->n)
        return 0;
    d->row_block = rows;
    d->block = split_columns(d, dlc_choose_least(d->c, &d->form.batch), UNITS);
    d->block = d->block < columns ? d->block : columns;
    return 1;
}

/*
 * All copied rows beside a panel of far columns are much of L2: one tap of the outermost axis goes after the other, of which both are little (Emerald
 * Rapids, 3x3 of 512 channels at 7x7, f32: 1700 us, 2200 by two blocks of rows, 1910 by one, 1920 by Winograd's tiles).
 */
int64_t dlc_dot_points_of_copies(dot *d)
{
    const double ROWS = 0.5, PANEL = 0.125; /* of L2 */
    double l2 = d->c->target->l2_bytes, panel = (double)d->n * d->depth * point_bytes(d, d->form.b);
    double copies = (double)dlc_dot_round_to(d->rows, d->m) * d->depth * point_bytes(d, d->form.a);
    int is_long = has_far_columns(d) && !d->has_lines && d->granule == 1 && panel > PANEL * l2 && copies <= ROWS * l2;
    return is_long ? by_taps(d) : 0;
}

/* The same of windows that are read in place, from an image that L2 holds beside much of a panel: it would come from L3 again for each tile of
 * rows. */
int64_t dlc_dot_points_of_windows(dot *d)
{
    const double IMAGE = 0.5, PANEL = 0.4; /* of L2 */
    double l2 = d->c->target->l2_bytes, panel = (double)d->n * d->depth * point_bytes(d, d->form.b);
    int is_near = is_for_blocks(d) && !d->copy_a && d->granule == 1 && panel > PANEL * l2 && rows_bytes(d) <= IMAGE * l2;
    return is_near && dlc_dot_constant_of(d, d->form.b) ? by_taps(d) : 0;
}

/* B's copy is shared by the rows of one batch: columns outermost, and only they and the batches are distributed. A's copy is
 * shared by the columns: rows outermost. */
dlc_dot_loops dlc_dot_choose_order(dot *d)
{
    double batches = dlc_choose_least(d->c, &d->form.batch), rows = dlc_choose_least(d->c, &d->form.m);
    double units = batches * dlc_dot_count_of(rows, d->m);
    if (d->copy_b) {
        double bytes = point_bytes(d, d->form.b) * d->depth;
        int64_t tile = split_columns(d, batches, DLC_MIN_UNITS), most = (int64_t)(d->c->target->scratch_bytes / 2 / bytes) / d->n * d->n;
        if (most < d->n)
            most = d->n;
        d->block = tile < most ? tile : most;
        return DLC_COLUMNS_COPY_ROWS;
    }
    if (d->has_lines && d->copy_a)
        return order_windows(d);
    if (dlc_dots[d->row].family == DLC_FAMILY_TILE)
        return order_tiles(d);
    if (!d->copy_a)
        return order_direct(d, units);
    d->row_block = block_of_copies(d);
    if (d->row_block)
        units = batches * dlc_dot_count_of(rows, d->row_block);
    d->block = split_columns(d, units, d->row_block ? UNITS : DLC_MIN_UNITS);
    return DLC_ROWS_COLUMNS;
}

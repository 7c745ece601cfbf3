/*
 * Kernels whose stages follow one another by rows of an image, as expansion, depthwise convolution and projection do: what is read
 * at a window has rows of its own. A unit takes a block of rows of what is stored, and of every stage before it the rows that the
 * windows cover, which stay in scratch:
 *
 *     par images, rows:T {
 *       for columns:N, its rows, across:M { product in reg  as product { maps behind it } }
 *       for its rows, across { lanes of channels { unroll window { sum in reg }  maps behind it } }
 *       for columns:N, rows, across:M { product in reg  as product { maps behind it, stored } }
 *     }
 *
 * Rows that two blocks cover (the halo: ir/schedule/home.c finds the regions) are computed by both, so T is a matter of cost: they
 * against scratch that leaves L2 and units for the threads. (Overlapped tiles: Ragan-Kelley et al., "Halide", PLDI 2013, section
 * 3.1; of inverted residuals: Sandler et al., "MobileNetV2", CVPR 2018, section 5.)
 */
#include "passes/schedule/choose_tiles.h"

/* A block of T rows of what is stored needs the rows from `lo` to step * (T - 1) + hi of the axis. */
typedef struct {
    uint32_t row; /* an axis of the stage; DLC_NO_AXIS: no reader was seen yet */
    int64_t step, lo, hi;
} span;

typedef struct {
    dlc_tiles t;
    span *spans;   /* by stage */
    double *cycles, *reading; /* by stage: of an image; of a unit, for a product's columns, which come from L2 */
    int64_t block; /* T */
} halo;

static const dlc_stage *stage_at(const halo *h, uint32_t s)
{
    return &h->t.c->kernel->stages.data[s];
}

static int has(const dlc_ids *ids, uint32_t id)
{
    return dlc_ids_find(ids, id, NULL);
}

static int64_t extent_of(const halo *h, uint32_t axis)
{
    return h->t.c->extent[axis];
}

/* --- rows --- */

/* The stage reads something at windows along the axis. */
static int reads_window(const halo *h, uint32_t s, uint32_t axis)
{
    const dlc_chooser *c = h->t.c;
    const dlc_pool *pool = c->kernel->pool;
    for (uint32_t i = 0; i < c->accesses[s].n; i++)
        for (uint32_t d = 0; c->accesses[s].data[i].load && d < dlc_load_rank(pool, c->accesses[s].data[i].load); d++) {
            dlc_expr index = dlc_arg(pool, c->accesses[s].data[i].load, d);
            if ((axis == DLC_NO_AXIS || dlc_expr_uses_axis(pool, index, axis)) && dlc_lower_overlaps(c->kernel, index))
                return 1;
        }
    return 0;
}

static int has_window(const halo *h, uint32_t axis)
{
    for (uint32_t s = 0; s < h->t.c->nstages; s++)
        if (reads_window(h, s, axis))
            return 1;
    return 0;
}

/* Rows of what is stored last: the outermost of its axes that some stage reads at windows along. */
static int find_last(halo *h)
{
    dlc_chooser *c = h->t.c;
    uint32_t last = c->nstages - 1;
    dlc_ids axes = {0};
    for (uint32_t i = 0; i < stage_at(h, last)->axes.n; i++)
        if (has_window(h, stage_at(h, last)->axes.data[i]))
            dlc_vec_push(c->arena, &axes, stage_at(h, last)->axes.data[i]);
    dlc_choose_sort(c, &axes);
    if (!axes.n || stage_at(h, last)->buffer == DLC_NO_BUFFER)
        return 0;
    h->spans[last] = (span){axes.data[0], 1, 0, 0};
    return 1;
}

/* The one index of the load that follows the rows of its reader, or DLC_MAX_INDEX. */
static uint32_t index_along(const halo *h, dlc_expr load, uint32_t row)
{
    const dlc_pool *pool = h->t.c->kernel->pool;
    uint32_t found = DLC_MAX_INDEX;
    for (uint32_t d = 0; d < dlc_load_rank(pool, load); d++)
        if (dlc_expr_uses_axis(pool, dlc_arg(pool, load, d), row)) {
            if (found != DLC_MAX_INDEX)
                return DLC_MAX_INDEX;
            found = d;
        }
    return found;
}

/* What the reader's rows ask of the stage it loads. False: another part than rows, or rows at another step than before. */
static int note_load(halo *h, uint32_t reader, const dlc_access_fact *access, const dlc_ranges *ranges)
{
    dlc_pool *pool = h->t.c->kernel->pool;
    const span *by = &h->spans[reader];
    uint32_t d = index_along(h, access->load, by->row);
    dlc_expr coefficient, rest;
    int64_t step;
    if (d == DLC_MAX_INDEX || !dlc_expr_linear(pool, dlc_arg(pool, access->load, d), by->row, &coefficient, &rest) ||
        !dlc_expr_is_int(pool, coefficient, &step) || step < 1)
        return 0;
    dlc_interval window = dlc_expr_range(pool, rest, ranges);
    if (window.lo < -INT32_MAX || window.hi > INT32_MAX || step > INT32_MAX)
        return 0;
    span *of = &h->spans[DLC_SOURCE_INDEX(access->source)];
    span found = {stage_at(h, DLC_SOURCE_INDEX(access->source))->axes.data[d], by->step * step, by->lo * step + window.lo,
                  by->hi * step + window.hi};
    if (found.step > INT32_MAX || found.lo < -INT32_MAX || found.hi > INT32_MAX)
        return 0;
    if (of->row == DLC_NO_AXIS) {
        *of = found;
        return 1;
    }
    of->lo = found.lo < of->lo ? found.lo : of->lo;
    of->hi = found.hi > of->hi ? found.hi : of->hi;
    return of->row == found.row && of->step == found.step;
}

/* A unit needs of the stage the rows that are its own, so it may store them. */
static int is_own(const halo *h, uint32_t s)
{
    const span *of = &h->spans[s];
    return of->row == h->spans[h->t.c->nstages - 1].row && of->step == 1 && !of->lo && !of->hi;
}

/* From readers to what they read. */
static int find_spans(halo *h)
{
    dlc_chooser *c = h->t.c;
    uint32_t nstages = c->nstages;
    dlc_ranges ranges = dlc_kernel_ranges(c->kernel);
    h->spans = dlc_new_array(c->arena, span, nstages);
    for (uint32_t s = 0; s < nstages; s++)
        h->spans[s].row = DLC_NO_AXIS;
    if (!find_last(h))
        return 0;
    for (uint32_t s = nstages; s-- > 0;) {
        if (h->spans[s].row == DLC_NO_AXIS || (stage_at(h, s)->buffer != DLC_NO_BUFFER && !is_own(h, s)))
            return 0;
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if (access->load && DLC_SOURCE_IS_STAGE(access->source) &&
                (DLC_SOURCE_INDEX(access->source) >= s || !note_load(h, s, access, &ranges)))
                return 0;
        }
    }
    return 1;
}

static int64_t rows_of(const halo *h, uint32_t s, int64_t block)
{
    const span *of = &h->spans[s];
    int64_t rows = of->step * (block - 1) + of->hi - of->lo + 1, all = extent_of(h, of->row);
    return rows < all ? rows : all;
}

/* --- nests of stages that are no products --- */

/* One past the maps that are computed where the stage is, at its point. */
static uint32_t nest_end(const halo *h, uint32_t s)
{
    uint32_t end = s + 1;
    while (end < h->t.c->nstages && !h->t.products[end].is_dot && dlc_products_is_map_at(&h->t, end, s, s))
        end++;
    return end;
}

static uint32_t lane_of(const halo *h, uint32_t s)
{
    uint32_t lane = h->t.lanes.lanes[s];
    return lane == h->spans[s].row || has(&stage_at(h, s)->reduce, lane) ? DLC_NO_AXIS : lane;
}

/* The axis at which the stage reads what lies together in scratch, or DLC_NO_AXIS. */
static uint32_t lane_of_sources(const halo *h, uint32_t s)
{
    const dlc_chooser *c = h->t.c;
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        uint32_t at, source = DLC_SOURCE_INDEX(access->source);
        if (!access->load || !DLC_SOURCE_IS_STAGE(access->source) ||
            !dlc_ids_find(&stage_at(h, source)->axes, c->together[source], &at))
            continue;
        uint32_t lane = dlc_bare_axis(c->kernel->pool, dlc_arg(c->kernel->pool, access->load, at));
        if (lane != DLC_NO_AXIS && lane != h->spans[s].row && has(&stage_at(h, s)->axes, lane))
            return lane;
    }
    return DLC_NO_AXIS;
}

/* Scratch lies along the vectors that store it; those who read it have their lanes there too. */
static void find_lanes(halo *h)
{
    dlc_chooser *c = h->t.c;
    uint32_t columns = DLC_NO_AXIS, as_end = 0;
    c->together = dlc_new_array(c->arena, uint32_t, c->nstages);
    for (uint32_t s = 0; s < c->nstages; s++) {
        if (h->t.products[s].is_dot) {
            columns = h->t.products[s].columns;
            as_end = h->t.products[s].as_end;
        }
        uint32_t lane = s < as_end ? columns : lane_of_sources(h, s);
        if (lane != DLC_NO_AXIS)
            h->t.lanes.lanes[s] = lane;
        c->together[s] = s < as_end ? columns : lane_of(h, s);
    }
}

/* Values that nobody reads beyond the nest are in registers. */
static void place_nest(const halo *h, uint32_t s, uint32_t end)
{
    const dlc_chooser *c = h->t.c;
    uint32_t nstages = c->nstages;
    uint8_t *is_far = dlc_new_array(c->arena, uint8_t, nstages);
    for (uint32_t r = end; r < nstages; r++)
        for (uint32_t i = 0; i < c->accesses[r].n; i++)
            if (c->accesses[r].data[i].load && DLC_SOURCE_IS_STAGE(c->accesses[r].data[i].source))
                is_far[DLC_SOURCE_INDEX(c->accesses[r].data[i].source)] = 1;
    for (; s < end; s++)
        if (stage_at(h, s)->buffer == DLC_NO_BUFFER)
            c->place[s] = is_far[s] ? DLC_PLACE_SCRATCH : DLC_PLACE_REG;
}

static void place_nests(const halo *h)
{
    for (uint32_t s = 0; s < h->t.c->nstages;) {
        uint32_t end = h->t.products[s].is_dot ? h->t.products[s].as_end : nest_end(h, s);
        if (!h->t.products[s].is_dot && lane_of(h, s) != DLC_NO_AXIS)
            place_nest(h, s, end);
        s = end;
    }
}

/* --- the block --- */

/* The longest of the product's axes beside its rows, columns and images: tiles run along it; rows where there is none. */
static uint32_t across_of(const halo *h, uint32_t s)
{
    const dlc_tiles_product *p = &h->t.products[s];
    uint32_t across = DLC_NO_AXIS;
    for (uint32_t i = 0; i < p->others.n; i++) {
        uint32_t axis = p->others.data[i];
        if (axis != h->spans[s].row && !dlc_expr_uses_axis(h->t.c->kernel->pool, p->right, axis) &&
            (across == DLC_NO_AXIS || extent_of(h, axis) > extent_of(h, across)))
            across = axis;
    }
    return across == DLC_NO_AXIS ? h->spans[s].row : across;
}

static double scratch_bytes(const halo *h, int64_t block)
{
    double bytes = 0;
    for (uint32_t s = 0; s < h->t.c->nstages; s++) {
        double points = dlc_choose_points(h->t.c, &stage_at(h, s)->axes);
        if (h->t.c->place[s] == DLC_PLACE_SCRATCH)
            bytes += points / (double)extent_of(h, h->spans[s].row) * (double)rows_of(h, s, block) *
                     dlc_dtype_bytes(stage_at(h, s)->dtype[0]);
    }
    return bytes / dlc_choose_points(h->t.c, &h->t.points);
}

static void find_cycles(halo *h)
{
    enum { NEAR_BYTES = 32, OPERATIONS = 4 /* of a vector, a cycle */ };
    const dlc_chooser *c = h->t.c;
    double images = dlc_choose_points(c, &h->t.points);
    h->cycles = dlc_new_array(c->arena, double, c->nstages);
    h->reading = dlc_new_array(c->arena, double, c->nstages);
    for (uint32_t s = 0; s < c->nstages; s++) {
        double bytes = dlc_dtype_bytes(stage_at(h, s)->dtype[0]), width = dlc_choose_width(c, (uint32_t)bytes);
        if (h->t.products[s].is_dot) {
            double columns = (double)extent_of(h, h->t.products[s].columns);
            h->reading[s] = dlc_choose_points(c, &stage_at(h, s)->reduce) * columns * bytes / NEAR_BYTES;
            h->cycles[s] = c->work[s] / OPERATIONS / width / images;
        } else {
            h->cycles[s] = dlc_choose_stage_cycles(c, s, h->t.lanes.lanes[s], h->t.lanes.width) / images;
        }
    }
}

static double unit_cycles(const halo *h, int64_t block)
{
    double cycles = 0;
    for (uint32_t s = 0; s < h->t.c->nstages; s++)
        cycles += h->cycles[s] * (double)rows_of(h, s, block) / (double)extent_of(h, h->spans[s].row) + h->reading[s];
    return cycles;
}

/* A line has no columns of pixels: tiles run along its rows, of which a block has enough for one. */
static int64_t least_block(const halo *h)
{
    int64_t least = 1, rows = extent_of(h, h->spans[h->t.c->nstages - 1].row);
    for (uint32_t s = 0; s < h->t.c->nstages; s++)
        if (h->t.products[s].is_dot && across_of(h, s) == h->spans[s].row && dlc_products_height(&h->t, s) > least)
            least = dlc_products_height(&h->t, s);
    return least < rows ? least : rows;
}

static int choose_block(halo *h)
{
    const dlc_chooser *c = h->t.c;
    double least = 0, images = dlc_choose_points(c, &h->t.points);
    int64_t rows = extent_of(h, h->spans[c->nstages - 1].row);
    find_cycles(h);
    for (int64_t block = least_block(h); block <= rows && scratch_bytes(h, block) <= (double)c->target->scratch_bytes; block++) {
        double cycles = dlc_choose_over_threads(&(dlc_unit_costs){.cycles = unit_cycles(h, block),
                                                                  .last_cycles = unit_cycles(h, rows % block),
                                                                  .samples = images,
                                                                  .blocks = (double)rows / (double)block,
                                                                  .panels = 1});
        if (least > 0 && cycles >= least)
            continue;
        least = cycles;
        h->block = block;
    }
    return h->block > 0;
}

/* --- the tree --- */

static uint32_t open_for(const halo *h, uint32_t axis, int64_t tile)
{
    uint32_t last = h->t.c->nstages - 1;
    if (tile == 1 && h->block == 1 && axis == h->spans[last].row && extent_of(h, axis) > 1)
        return 0; /* a unit is one row of them */
    dlc_schedule_open(h->t.c->schedule, DLC_LOOP_FOR, axis, tile);
    return 1;
}

/* Tiles of nearly one height. */
static int64_t height_of(const halo *h, uint32_t s, uint32_t across)
{
    int64_t most = dlc_products_height(&h->t, s);
    int64_t extent = across == h->spans[s].row ? rows_of(h, s, h->block) : extent_of(h, across);
    int64_t tiles = (extent + most - 1) / most;
    return (extent + tiles - 1) / tiles;
}

static void build_product(const halo *h, uint32_t s, const uint32_t *left, const uint32_t *right)
{
    dlc_schedule *schedule = h->t.c->schedule;
    const dlc_tiles_product *p = &h->t.products[s];
    uint32_t across = across_of(h, s), row = h->spans[s].row, n = 0;
    uint32_t width = dlc_choose_width(h->t.c, dlc_dtype_bytes(stage_at(h, s)->dtype[0]));
    int64_t height = height_of(h, s, across);
    if (p->copies_right)
        dlc_products_build_copy(&h->t, right[s], p->columns, width, extent_of(h, p->columns) > p->n ? p->n : 0);
    for (uint32_t i = 0; i < p->others.n; i++)
        if (p->others.data[i] != across && p->others.data[i] != row)
            n += open_for(h, p->others.data[i], 1);
    if (!p->copies_left)
        n += open_for(h, p->columns, p->n);
    if (across != row)
        n += open_for(h, row, 1);
    n += open_for(h, across, height);
    if (p->copies_left) {
        uint32_t nrow = open_for(h, across, 1);
        dlc_products_build_copy(&h->t, left[s], p->order.data[p->order.n - 1], width, 0);
        dlc_schedule_close(schedule, nrow);
        n += open_for(h, p->columns, p->n);
    }
    dlc_schedule_dot(schedule, s, DLC_DOT_FMA, across, p->columns, &p->order, h->t.c->place[s]);
    dlc_choose_parts(h->t.c);
    dlc_choose_ahead(h->t.c);
    if (p->as_end > s + 1) {
        dlc_schedule_open_as(schedule, s);
        for (uint32_t e = s + 1; e < p->as_end; e++)
            dlc_schedule_leaf(schedule, e, h->t.c->place[e]);
        dlc_schedule_close(schedule, 1);
    }
    dlc_schedule_close(schedule, n);
}

static dlc_own_dot own_dot_of(const halo *h, uint32_t s)
{
    return dlc_choose_own_dot(h->t.c, s, lane_of(h, s), h->t.lanes.width, DLC_NO_AXIS);
}

static void build_nest(halo *h, uint32_t s, uint32_t end)
{
    dlc_chooser *c = h->t.c;
    dlc_ids axes = {0};
    dlc_own_dot own = own_dot_of(h, s);
    uint32_t n = 0, nwindow, lane = lane_of(h, s);
    for (uint32_t i = 0; i < stage_at(h, s)->axes.n; i++)
        if (stage_at(h, s)->axes.data[i] != lane && !has(&h->t.points, stage_at(h, s)->axes.data[i]))
            dlc_vec_push(c->arena, &axes, stage_at(h, s)->axes.data[i]);
    dlc_choose_sort(c, &axes);
    for (uint32_t i = 0; i < axes.n; i++)
        n += open_for(h, axes.data[i], 1);
    dlc_schedule_open_lane(c->schedule, lane, h->t.lanes.width, 1);
    nwindow = dlc_choose_open_reduced(c, s, DLC_NO_AXIS, DLC_NO_AXIS, 0, &own);
    dlc_choose_fold_leaf(c, s, &own);
    dlc_schedule_close(c->schedule, nwindow);
    for (uint32_t e = s + 1; e < end; e++)
        dlc_schedule_leaf(c->schedule, e, c->place[e]);
    dlc_schedule_close(c->schedule, n + 1);
}

static uint32_t build_stages(halo *h, uint32_t s, const uint32_t *left, const uint32_t *right)
{
    if (h->t.products[s].is_dot) {
        build_product(h, s, left, right);
        return h->t.products[s].as_end;
    }
    if (lane_of(h, s) == DLC_NO_AXIS) {
        dlc_choose_lanes_stage(h->t.c, &h->t.lanes, s);
        return s + 1;
    }
    uint32_t end = nest_end(h, s);
    build_nest(h, s, end);
    return end;
}

static void build(halo *h)
{
    dlc_chooser *c = h->t.c;
    dlc_schedule *schedule = c->schedule;
    uint32_t nstages = c->nstages, n = 0, row = h->spans[nstages - 1].row;
    uint32_t *left = dlc_new_array(c->arena, uint32_t, nstages), *right = dlc_new_array(c->arena, uint32_t, nstages);
    dlc_products_add_copies(&h->t, left, right);
    for (uint32_t s = 0; s < nstages; s++)
        if (!h->t.products[s].is_dot && lane_of(h, s) != DLC_NO_AXIS) {
            dlc_own_dot own = own_dot_of(h, s);
            dlc_choose_lay_out_constants(c, s, lane_of(h, s), &own);
        }
    for (uint32_t i = 0; i < h->t.points.n; i++, n++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, h->t.points.data[i], 1);
    if (h->block < extent_of(h, row) || !dlc_choose_is_known(c, row)) {
        dlc_schedule_open(schedule, DLC_LOOP_PAR, row, h->block);
        n++;
    }
    for (uint32_t s = 0; s < nstages;)
        s = build_stages(h, s, left, right);
    dlc_schedule_close(schedule, n);
}

/* Roots are images, but for columns of a product and what windows run along, which all stages may have too. */
static void find_images(halo *h)
{
    dlc_chooser *c = h->t.c;
    dlc_ids images = {0};
    for (uint32_t r = 0; r < c->roots.n; r++) {
        int is_image = !has_window(h, c->roots.data[r]);
        for (uint32_t s = 0; s < c->nstages; s++)
            is_image &= !h->t.products[s].is_dot || h->t.products[s].columns != c->roots.data[r];
        if (is_image)
            dlc_vec_push(c->arena, &images, c->roots.data[r]);
    }
    c->roots = h->t.points = images;
    for (uint32_t i = 0; i < images.n; i++)
        dlc_vec_push(c->arena, &h->t.lanes.loops, ((dlc_root_choice){images.data[i], 1, 0}));
}

/* Windows of what is no product: a convolution by itself has taller tiles, shares them out better, or goes by Winograd's. */
static int has_only_small_windows(const halo *h)
{
    int found = 0;
    for (uint32_t s = 0; s < h->t.c->nstages; s++) {
        int at_window = reads_window(h, s, DLC_NO_AXIS);
        if (at_window && h->t.products[s].is_dot)
            return 0;
        found |= at_window;
    }
    return found;
}

static int find_products(halo *h)
{
    uint32_t nstages = h->t.c->nstages;
    dlc_ids *rows = dlc_new_array(h->t.c->arena, dlc_ids, nstages);
    for (uint32_t s = 0; s < nstages; s++)
        dlc_vec_push(h->t.c->arena, &rows[s], h->spans[s].row);
    h->t.rows_of = rows;
    return dlc_products_find(&h->t) && has_only_small_windows(h);
}

int dlc_choose_halo(dlc_chooser *c)
{
    halo h = {.t = {.c = c}};
    if (c->serial.n || c->nstages < 2 || !find_spans(&h) || !find_products(&h))
        return 0;
    find_images(&h);
    dlc_products_place(&h.t);
    find_lanes(&h);
    place_nests(&h);
    if (!choose_block(&h))
        return 0;
    build(&h);
    return 1;
}

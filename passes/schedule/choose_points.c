/*
 * A product at several points between transforms of tiles, as Winograd's convolutions are: maps make tiles t at points p, q of what
 * is read, a contraction multiplies them by a constant at each point, maps make results of the products, and what is stored reads
 * these at t = quotients of its own axes. For CPUs alone, whose units these are, of tiles of m0 x m1 results:
 *
 *     par images, rows:m0*R, columns of the constant:C {
 *       for t:1 { each map before: loops over the points but one direction of them, lanes of the reduced axis, that direction written out }
 *       for columns:N {
 *         for p, q, t:M { product = dot t x columns over [reduced] in scratch }
 *         for phases, rows:m0, across:m1 {
 *           for t:1 { each map behind it, likewise, by lanes of columns }
 *           for rows:1 { lanes of columns { across written out { what is stored } } } } } }
 *
 * Where one direction alone has points, what is stored reads the products themselves: there is no map behind them, results of a tile are
 * written out along that direction, and along the other, if there is one, each has a tile of its own.
 *
 * Phases, where there are any, are an axis of the results, each of whose points has tiles of its own in every row: a dilated
 * convolution's. Of the loops over rows and columns those are left out that have one turn: rows:m0 within a unit of one row of tiles, a
 * par of all rows or columns, columns:N of a unit of N. The tiles of a unit follow from its rows of results (ir/schedule/home.c). What
 * lies between is scratch, so R and C are chosen by what they cost: tiles made again by each thread, the constant read again for each R,
 * and threads that wait.
 *
 * Where rows of tiles are an axis of their own, since only the run knows how many tiles a row has, units are of across:m1*W results too,
 * and each loop over tiles stands in one over their rows.
 */
#include "passes/schedule/choose.h"

enum { MOST_POINTS = 8, MOST_HEIGHT = 14 };

typedef struct {
    dlc_chooser *c;
    uint32_t product, results; /* stages: of the contraction; the first that reads tiles by quotients */
    uint32_t tile, columns, reduced; /* the innermost of `over` */
    dlc_ids over;              /* what the product sums, in the order of the tiles' elements */
    uint32_t tile_rows;        /* their axis; DLC_NO_AXIS: rows are in the tile's number */
    dlc_ids points;            /* of the product: its axes that both factors have */
    dlc_expr right;            /* the constant */
    dlc_dot row;
    uint32_t rows, across;     /* axes of the results; across: DLC_NO_AXIS, where there is one direction alone */
    uint32_t written;          /* the one of them that is written out */
    uint32_t phases;           /* an axis of theirs, each of whose points has a run of tiles in every row; DLC_NO_AXIS: there is none */
    int64_t m[2], ntiles[2];   /* results of a tile in each direction; tiles */
    int64_t height, width, n;  /* of the register tile: rows; lanes; columns */
    int64_t packed;            /* columns that the constant is packed by */
    int64_t block, span, panel; /* rows of tiles, tiles of a row and columns of a unit */
} points;

static const dlc_stage *stage_at(const points *p, uint32_t s)
{
    return &p->c->kernel->stages.data[s];
}

static int has(const dlc_ids *ids, uint32_t id)
{
    return dlc_ids_find(ids, id, NULL);
}

/* --- finding it --- */

/* The axes that a unit goes through. */
static dlc_ids within_roots(const points *p, const dlc_ids *axes)
{
    dlc_ids within = {0};
    for (uint32_t i = 0; i < axes->n; i++)
        if (!has(&p->c->roots, axes->data[i]))
            dlc_vec_push(p->c->arena, &within, axes->data[i]);
    return within;
}

/* The load that the factor is, or that it widens; else the factor. */
static dlc_expr load_in(const points *p, dlc_expr factor)
{
    const dlc_pool *pool = p->c->kernel->pool;
    int is_wide = p->row != DLC_DOT_FMA && dlc_node_of(pool, factor)->op == DLC_EXPR_CAST;
    return is_wide ? dlc_arg(pool, factor, 0) : factor;
}

static int takes(const points *p, const dlc_contraction *form, dlc_dot row)
{
    dlc_dot_operands operands;
    return p->c->extent[p->reduced] % dlc_dots[row].granule == 0 &&
           dlc_dot_takes(row, p->c->kernel->pool, form->a, form->b, (dlc_dtype)stage_at(p, p->product)->dtype[0], &operands);
}

static int find_row(points *p, const dlc_contraction *form)
{
    const dlc_target *target = p->c->target;
    if (stage_at(p, p->product)->dtype[0] != DLC_F32) {
        p->row = dlc_dot_of_words(target);
        return p->row != DLC_DOT_NONE && takes(p, form, p->row);
    }
    p->row = dlc_dot_pays(target, DLC_DOT_VDPBF16PS) && takes(p, form, DLC_DOT_VDPBF16PS) ? DLC_DOT_VDPBF16PS : DLC_DOT_FMA;
    return 1;
}

/* The reduced axes, as the tiles that are made here have them. */
static int find_reduced(points *p, const dlc_contraction *form)
{
    const dlc_pool *pool = p->c->kernel->pool;
    dlc_expr factors[] = {form->a, form->b};
    p->over = (dlc_ids){0};
    for (uint32_t f = 0; f < 2; f++) {
        dlc_expr load = dlc_node_of(pool, factors[f])->op == DLC_EXPR_CAST ? dlc_arg(pool, factors[f], 0) : factors[f];
        if (dlc_node_of(pool, load)->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(dlc_node_of(pool, load)->imm.id))
            continue;
        for (uint32_t i = 0; i < dlc_load_rank(pool, load); i++) {
            uint32_t axis = dlc_bare_axis(pool, dlc_arg(pool, load, i));
            if (axis != DLC_NO_AXIS && has(&form->k, axis) && !has(&p->over, axis))
                dlc_vec_push(p->c->arena, &p->over, axis);
        }
    }
    if (!form->k.n || p->over.n != form->k.n)
        return 0;
    p->reduced = p->over.data[p->over.n - 1];
    return 1;
}

static int find_product(points *p)
{
    dlc_contraction form;
    const dlc_pool *pool = p->c->kernel->pool;
    uint32_t nfound = 0;
    for (uint32_t s = 0; s < p->c->kernel->stages.n; s++)
        if (stage_at(p, s)->reduce.n && ++nfound)
            p->product = s;
    if (nfound != 1 || !dlc_contraction_of(p->c->kernel, stage_at(p, p->product), p->c->arena, &form) || form.scale || !find_reduced(p, &form) ||
        !find_row(p, &form))
        return 0;
    form.a = load_in(p, form.a);
    form.b = load_in(p, form.b);
    const dlc_expr_node *a = dlc_node_of(pool, form.a), *b = dlc_node_of(pool, form.b);
    int is_swapped = a->op == DLC_EXPR_LOAD && !DLC_SOURCE_IS_STAGE(a->imm.id);
    const dlc_expr_node *tiles = is_swapped ? b : a, *constant = is_swapped ? a : b;
    if (tiles->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(tiles->imm.id) || constant->op != DLC_EXPR_LOAD ||
        DLC_SOURCE_IS_STAGE(constant->imm.id) || p->c->kernel->buffers.data[constant->imm.id].role != DLC_ROLE_CONST)
        return 0;
    dlc_ids numbers = within_roots(p, is_swapped ? &form.n : &form.m), columns = within_roots(p, is_swapped ? &form.m : &form.n);
    if (columns.n != 1 || numbers.n < 1 || numbers.n > 2)
        return 0;
    p->right = is_swapped ? form.a : form.b;
    p->tile = numbers.data[numbers.n - 1];
    p->tile_rows = numbers.n > 1 ? numbers.data[0] : DLC_NO_AXIS;
    p->columns = columns.data[0];
    p->points = within_roots(p, &form.batch);
    for (uint32_t i = 0; i < p->points.n; i++)
        if (p->c->extent[p->points.data[i]] > MOST_POINTS)
            return 0;
    return p->points.n > 0;
}

/* The axis whose value (or remainder) the stage asks for: a row of a transform, to be written out. DLC_NO_AXIS: none, or several. */
static uint32_t asked_axis(const points *p, uint32_t s)
{
    const dlc_pool *pool = p->c->kernel->pool;
    const uint8_t *marks = dlc_stage_marks(p->c->kernel, stage_at(p, s), p->c->arena);
    uint32_t axis = DLC_NO_AXIS;
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        int64_t number;
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_EQ || (!dlc_expr_is_int(pool, dlc_arg(pool, id, 0), &number) &&
                                                                      !dlc_expr_is_int(pool, dlc_arg(pool, id, 1), &number)))
            continue;
        dlc_expr of = dlc_expr_is_int(pool, dlc_arg(pool, id, 0), &number) ? dlc_arg(pool, id, 1) : dlc_arg(pool, id, 0);
        if (dlc_node_of(pool, of)->op == DLC_EXPR_MOD)
            of = dlc_arg(pool, of, 0);
        uint32_t found = dlc_bare_axis(pool, of);
        if (found == DLC_NO_AXIS || (axis != DLC_NO_AXIS && axis != found))
            return DLC_NO_AXIS;
        axis = found;
    }
    return axis;
}

/* A map that makes or takes tiles, by lanes of `lane`. */
static int is_transform(const points *p, uint32_t s, uint32_t lane)
{
    const dlc_stage *stage = stage_at(p, s);
    return stage->combine == DLC_REDUCE_NONE && stage->buffer == DLC_NO_BUFFER && has(&stage->axes, p->tile) &&
           has(&stage->axes, lane) && asked_axis(p, s) != DLC_NO_AXIS;
}

/* What the expression is where all axes are 0 but this one; -1: not known. */
static int64_t value_along(const points *p, dlc_expr expr, uint32_t axis, int64_t at)
{
    dlc_pool *pool = p->c->kernel->pool;
    dlc_expr *with = dlc_new_array(p->c->arena, dlc_expr, p->c->kernel->axes.n);
    int64_t value;
    for (uint32_t a = 0; a < p->c->kernel->axes.n; a++)
        with[a] = dlc_expr_i64(pool, a == axis ? at : 0);
    return dlc_expr_is_int(pool, dlc_expr_substitute(pool, expr, with, p->c->kernel->axes.n), &value) ? value : -1;
}

/* Tiles have so many results along the axis; 0: it is none of theirs. */
static int64_t results_along(const points *p, dlc_expr number, uint32_t axis)
{
    if (!dlc_expr_uses_axis(p->c->kernel->pool, number, axis))
        return dlc_choose_is_known(p->c, axis) && p->c->extent[axis] <= MOST_POINTS ? p->c->extent[axis] : 0;
    for (int64_t m = 1; m <= MOST_POINTS; m++)
        if (value_along(p, number, axis, m) != 0)
            return m;
    return 0;
}

/* Of tiles in both directions: m points of rows are of a tile, as the map behind the product says, and each of phases has tiles of its own. */
static int find_rows(points *p, dlc_expr number, const dlc_ids *others)
{
    uint32_t result = asked_axis(p, p->results - 1);
    if (!dlc_choose_is_known(p->c, result) || p->c->extent[result] > MOST_POINTS)
        return 0;
    for (uint32_t i = 0; i < others->n; i++) {
        uint32_t *role = value_along(p, number, others->data[i], 1) > 0 ? &p->phases : &p->rows;
        if (*role != DLC_NO_AXIS)
            return 0;
        *role = others->data[i];
    }
    p->across = p->written;
    p->m[0] = p->c->extent[result];
    return p->rows != DLC_NO_AXIS;
}

/* Of tiles in one direction: each point of the others has tiles of its own, and those of phases are fewer apart than those of rows. */
static int find_rows_of_one(points *p, dlc_expr number, dlc_expr row, const dlc_ids *others)
{
    uint32_t first = others->n ? others->data[0] : DLC_NO_AXIS, second = others->n > 1 ? others->data[1] : DLC_NO_AXIS;
    if (others->n > (row ? 1 : 2))
        return 0;
    int is_across = row ? !dlc_expr_uses_axis(p->c->kernel->pool, row, p->written) : others->n > 0 && value_along(p, number, first, 1) != 1;
    if (second != DLC_NO_AXIS && value_along(p, number, first, 1) < value_along(p, number, second, 1)) {
        first = second;
        second = others->data[0];
    }
    p->rows = is_across ? first : p->written;
    p->across = is_across ? p->written : first;
    p->phases = second;
    p->m[is_across] = results_along(p, row && !is_across ? row : number, p->written);
    p->m[!is_across] = 1;
    return is_across || second == DLC_NO_AXIS;
}

/* Axes of the results besides columns. The results ask for one remainder of an axis, which is written out. `row`: of tiles, or 0. */
static int find_axes(points *p, dlc_expr number, dlc_expr row)
{
    dlc_ids axes = within_roots(p, &stage_at(p, p->results)->axes), others = {0};
    int has_maps = p->results > p->product + 1;
    p->rows = p->across = p->phases = DLC_NO_AXIS;
    p->written = asked_axis(p, p->results);
    if (p->written == DLC_NO_AXIS || !has(&axes, p->written))
        return 0;
    for (uint32_t i = 0; i < axes.n; i++)
        if (axes.data[i] != p->written && axes.data[i] != p->columns)
            dlc_vec_push(p->c->arena, &others, axes.data[i]);
    if (!(has_maps ? find_rows(p, row ? row : number, &others) : find_rows_of_one(p, number, row, &others)))
        return 0;
    if (has_maps)
        p->m[1] = results_along(p, number, p->across);
    return p->m[0] && p->m[1];
}

/* Tiles are of m points of the axis, and `step` apart. */
static int is_by_tiles(const points *p, dlc_expr number, uint32_t axis, int64_t m, int64_t step)
{
    if (dlc_choose_is_known(p->c, axis) && p->c->extent[axis] <= m)
        return !dlc_expr_uses_axis(p->c->kernel->pool, number, axis);
    return value_along(p, number, axis, m - 1) == 0 && value_along(p, number, axis, m) == step;
}

static int64_t tiles_along(const points *p, uint32_t axis, int64_t m)
{
    return axis == DLC_NO_AXIS ? 1 : (p->c->extent[axis] + m - 1) / m;
}

/* The tile's number goes by these axes. */
static int find_image(points *p, dlc_expr number, dlc_expr row)
{
    if (!find_axes(p, number, row))
        return 0;
    int has_across = p->across != DLC_NO_AXIS;
    p->ntiles[0] = tiles_along(p, p->rows, p->m[0]);
    p->ntiles[1] = tiles_along(p, p->across, p->m[1]);
    if (has_across && !is_by_tiles(p, number, p->across, p->m[1], 1))
        return 0;
    if (p->phases != DLC_NO_AXIS) {
        if (row || value_along(p, number, p->phases, 1) != p->ntiles[1])
            return 0;
        p->ntiles[1] *= p->c->extent[p->phases];
    }
    if (row)
        return is_by_tiles(p, row, p->rows, p->m[0], 1) && p->c->extent[p->tile_rows] == p->ntiles[0] && p->c->extent[p->tile] == p->ntiles[1];
    return (!has_across || (dlc_choose_is_known(p->c, p->rows) && dlc_choose_is_known(p->c, p->across))) &&
           is_by_tiles(p, number, p->rows, p->m[0], p->ntiles[1]) && p->c->extent[p->tile] == p->ntiles[0] * p->ntiles[1];
}

/* The axis of tiles as the stage reads it, or 0. */
static dlc_expr tile_number(const points *p, uint32_t s, uint32_t axis)
{
    const dlc_pool *pool = p->c->kernel->pool;
    uint32_t position;
    for (uint32_t i = 0; i < p->c->accesses[s].n; i++) {
        const dlc_access_fact *access = &p->c->accesses[s].data[i];
        if (access->load && DLC_SOURCE_IS_STAGE(access->source) &&
            dlc_ids_find(&stage_at(p, DLC_SOURCE_INDEX(access->source))->axes, axis, &position))
            return dlc_arg(pool, access->load, position);
    }
    return 0;
}

static int is_result(const points *p, uint32_t s)
{
    const dlc_stage *first = stage_at(p, p->results), *stage = stage_at(p, s);
    if (stage->combine != DLC_REDUCE_NONE || stage->update != DLC_UPDATE_NONE || stage->axes.n != first->axes.n)
        return 0;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!has(&first->axes, stage->axes.data[i]))
            return 0;
    return 1;
}

static int find_stages(points *p)
{
    uint32_t n = p->c->kernel->stages.n;
    for (uint32_t s = 0; s < p->product; s++)
        if (!is_transform(p, s, p->reduced))
            return 0;
    for (p->results = p->product + 1; p->results < n && is_transform(p, p->results, p->columns);)
        p->results++;
    if (p->results == n || !p->product)
        return 0;
    int has_rows = p->tile_rows != DLC_NO_AXIS;
    dlc_expr number = tile_number(p, p->results, p->tile), row = has_rows ? tile_number(p, p->results, p->tile_rows) : 0;
    for (uint32_t s = p->results; s < n; s++)
        if (!is_result(p, s))
            return 0;
    return number && (row || !has_rows) && has(&stage_at(p, p->results)->axes, p->columns) && find_image(p, number, row);
}

/* --- the unit --- */

/* Bytes of the constant for so many columns. */
static double constant_bytes(const points *p, double columns)
{
    return dlc_choose_points(p->c, &p->points) * dlc_choose_points(p->c, &p->over) * columns * dlc_dtype_bytes(dlc_dots[p->row].a);
}

/* Cycles in which that of so many tiles is written or read that does not stay in L2, beside their products and the constant for one panel. */
static double spilled_cycles(const points *p, double tiles)
{
    enum { FAR_BYTES = 16 };
    double bytes = dlc_choose_points(p->c, &p->over) * dlc_dtype_bytes(dlc_dots[p->row].a) + (double)p->n * sizeof(float);
    double left = dlc_choose_points(p->c, &p->points) * tiles * bytes + constant_bytes(p, (double)p->n) - p->c->target->l2_bytes * 3.0 / 4;
    return left > 0 ? left / FAR_BYTES : 0;
}

/* Cycles of a unit of so many tiles, but for making them. The constant is read for each unit, from memory unless all of it stays in L2. */
static double unit_cycles(const points *p, double tiles, int64_t panel)
{
    enum { NEAR_BYTES = 64, MEMORY_BYTES = 8, OUTPUT_CYCLES = 2 };
    double vectors = dlc_choose_points(p->c, &p->points) * tiles * (double)panel / (double)p->width;
    double products = vectors * dlc_choose_points(p->c, &p->over) / (2 * dlc_dot_products(p->row)), results = vectors * OUTPUT_CYCLES;
    int is_near = constant_bytes(p, (double)p->c->extent[p->columns]) <= p->c->target->l2_bytes;
    double reading = constant_bytes(p, (double)panel) / (is_near ? NEAR_BYTES : MEMORY_BYTES);
    return products + results + reading + spilled_cycles(p, tiles) * (double)panel / (double)p->n;
}

/* Cycles of all units; a thread's tiles are made once for all panels. */
static double cycles_of(const points *p, int64_t block, int64_t span, int64_t panel)
{
    enum { INPUT_CYCLES = 3 };
    double panels = (double)p->c->extent[p->columns] / (double)panel, spans = (double)((p->ntiles[1] + span - 1) / span);
    double tiles = (double)(block * span), elems = dlc_choose_points(p->c, &p->points) * tiles * dlc_choose_points(p->c, &p->over);
    double made = elems / (double)p->width * INPUT_CYCLES * dlc_dtype_bytes((dlc_dtype)stage_at(p, 0)->dtype[0]) / sizeof(float);
    return dlc_choose_over_threads(&(dlc_unit_costs){.cycles = unit_cycles(p, tiles, panel),
                                                     .last_cycles = unit_cycles(p, (double)(p->ntiles[0] % block * span), panel),
                                                     .begun_cycles = made + spilled_cycles(p, tiles),
                                                     .samples = dlc_choose_points(p->c, &p->c->roots) * spans,
                                                     .blocks = (double)p->ntiles[0] / (double)block,
                                                     .panels = panels < 1 ? 1 : panels});
}

static void choose_unit(points *p, int64_t span)
{
    double least = 0;
    int64_t columns = p->c->extent[p->columns], limit = (columns + p->n - 1) / p->n * p->n;
    for (int64_t panel = p->n; panel <= limit; panel += p->n)
        for (int64_t block = 1; block <= p->ntiles[0] && (limit % panel == 0); block++) {
            double cycles = cycles_of(p, block, span, panel);
            if (least > 0 && cycles >= least)
                continue;
            least = cycles;
            p->block = block;
            p->panel = panel;
        }
    p->span = span;
}

/* What only the run knows, and nobody says is usual, is taken to be large: where it is small, little is lost. */
static void choose_unit_unknown(points *p)
{
    const uint32_t axes[] = {p->rows, p->across};
    for (uint32_t d = 0; d < 2; d++)
        if (axes[d] != DLC_NO_AXIS && (p->c->is_known[axes[d]] || !p->c->is_expected[axes[d]]) &&
            p->ntiles[d] < DLC_NOMINAL_SYMBOL / p->m[d])
            p->ntiles[d] = DLC_NOMINAL_SYMBOL / p->m[d];
    choose_unit(p, p->across == DLC_NO_AXIS ? 1 : p->height);
}

static int find_tile(points *p)
{
    enum { TOTALS_REGISTERS = 32 }; /* with fewer, sums that are left would wait for one another */
    int64_t registers = p->c->target->vector_registers, nv;
    p->width = p->c->target->vector_bytes / (int64_t)sizeof(float);
    nv = p->width == 4 && registers >= 32 ? 4 : 2;
    p->packed = dlc_choose_panel(p->c, sizeof(float), &nv);
    p->n = nv * p->width;
    p->height = (registers - nv - dlc_dots[p->row].takes) / nv;
    if (p->height > MOST_HEIGHT)
        p->height = MOST_HEIGHT;
    if (registers >= TOTALS_REGISTERS && dlc_dots[p->row].granule == 1 && dlc_choose_has_parts_of_points(p->c, p->product, &p->over))
        while (p->height > 2 && !dlc_dot_keeps_totals(p->c->target, (uint32_t)p->height, (uint32_t)nv))
            p->height--;
    return p->width > 1 && p->c->extent[p->columns] >= p->n && p->height > 1 &&
           (p->c->extent[p->tile] > 1 || !dlc_choose_is_known(p->c, p->tile));
}

/* --- the tree --- */

static void open_for(const points *p, uint32_t axis, int64_t tile)
{
    dlc_schedule_open(p->c->schedule, DLC_LOOP_FOR, axis, tile);
}

/* Loops over tiles, `step` of a row at a time; how many. */
static uint32_t open_tiles(const points *p, int64_t step)
{
    int has_rows = p->tile_rows != DLC_NO_AXIS;
    if (has_rows)
        open_for(p, p->tile_rows, 1);
    open_for(p, p->tile, step);
    return has_rows ? 2 : 1;
}

/* A transform inside loops over tiles: other axes, the axis asked for written out; lanes outside of all, or of that one alone. */
static void build_transform(const points *p, uint32_t s, uint32_t lane)
{
    dlc_schedule *schedule = p->c->schedule;
    const dlc_ids *axes = &stage_at(p, s)->axes;
    uint32_t asked = asked_axis(p, s), n = 0;
    for (uint32_t i = 0; i < axes->n; i++) {
        uint32_t axis = axes->data[i];
        if (axis == p->tile || axis == p->tile_rows || axis == lane || axis == asked || has(&p->c->roots, axis))
            continue;
        open_for(p, axis, 1);
        n++;
    }
    uint32_t width = dlc_choose_width(p->c, dlc_dtype_bytes((dlc_dtype)stage_at(p, s)->dtype[0]));
    if (dlc_is_float(stage_at(p, s)->dtype[0]) && p->c->extent[lane] % width) /* narrow floats are wide ones until they are stored */
        width = dlc_choose_width(p->c, sizeof(float));
    dlc_schedule_open_lane(schedule, lane, width, 1);
    dlc_schedule_open(schedule, DLC_LOOP_UNROLL, asked, 1);
    dlc_schedule_leaf(schedule, s, DLC_PLACE_SCRATCH);
    dlc_schedule_close(schedule, n + 2);
}

static void build_product(const points *p)
{
    dlc_schedule *schedule = p->c->schedule;
    for (uint32_t i = 0; i < p->points.n; i++)
        open_for(p, p->points.data[i], 1);
    uint32_t n = open_tiles(p, p->height);
    dlc_schedule_dot(schedule, p->product, p->row, p->tile, p->columns, &p->over, DLC_PLACE_SCRATCH);
    dlc_choose_parts_of_points(p->c);
    dlc_choose_ahead(p->c);
    dlc_schedule_close(schedule, p->points.n + n);
}

/* Rows of tiles are a unit each, so there is no loop over them within it. */
static int has_one_row(const points *p)
{
    return p->block == 1 && (p->ntiles[0] > 1 || p->tile_rows != DLC_NO_AXIS);
}

/* Of one tile. */
static void build_results(const points *p)
{
    dlc_schedule *schedule = p->c->schedule;
    int has_maps = p->results > p->product + 1;
    uint32_t n = 2;
    if (p->phases != DLC_NO_AXIS && ++n)
        open_for(p, p->phases, 1);
    if (!has_one_row(p) && ++n)
        open_for(p, p->rows, p->m[0]);
    if (p->across != DLC_NO_AXIS && ++n)
        open_for(p, p->across, p->m[1]);
    for (uint32_t s = p->product + 1; s < p->results; s++) {
        uint32_t ntiles = open_tiles(p, 1);
        build_transform(p, s, p->columns);
        dlc_schedule_close(schedule, ntiles);
    }
    if (has_maps && ++n)
        open_for(p, p->rows, 1);
    dlc_schedule_open_lane(schedule, p->columns, p->width, 1);
    dlc_schedule_open(schedule, DLC_LOOP_UNROLL, p->written, 1);
    for (uint32_t s = p->results; s < p->c->kernel->stages.n; s++) {
        int is_stored = stage_at(p, s)->buffer != DLC_NO_BUFFER;
        dlc_schedule_leaf(schedule, s, is_stored && !p->c->is_read[s] ? DLC_PLACE_BUFFER : DLC_PLACE_REG);
    }
    dlc_schedule_close(schedule, n);
}

static void add_part(const points *p, dlc_copy_part *parts, uint32_t *n, uint32_t axis, int32_t block, uint8_t inner)
{
    dlc_copy_part *part = &parts[(*n)++];
    *part = (dlc_copy_part){.block = block, .inner = inner};
    dlc_vec_push(p->c->arena, &part->axes, axis);
}

/* By points, panels of columns, the reduced axes, columns of the panel, then the granule, if there is one. */
static int pack_constant(const points *p)
{
    dlc_copy_part parts[DLC_MAX_PARTS];
    int32_t granule = dlc_dots[p->row].granule, panel = (int32_t)p->packed;
    uint32_t n = 0;
    if (p->points.n + p->over.n + (granule > 1 ? 3 : 2) > DLC_MAX_PARTS)
        return 0;
    for (uint32_t i = 0; i < p->points.n; i++)
        add_part(p, parts, &n, p->points.data[i], 1, 0);
    add_part(p, parts, &n, p->columns, panel, 0);
    for (uint32_t i = 0; i < p->over.n; i++)
        add_part(p, parts, &n, p->over.data[i], p->over.data[i] == p->reduced ? granule : 1, 0);
    add_part(p, parts, &n, p->columns, panel, 1);
    if (granule > 1)
        add_part(p, parts, &n, p->reduced, granule, 1);
    return dlc_schedule_pack(p->c->schedule, "columns", p->product, p->right, parts, n);
}

static int build(const points *p)
{
    dlc_schedule *schedule = p->c->schedule;
    uint32_t n = p->c->roots.n;
    int has_rows = p->tile_rows != DLC_NO_AXIS;
    int64_t columns = p->c->extent[p->columns];
    if (!pack_constant(p))
        return 0;
    for (uint32_t i = 0; i < p->c->roots.n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, p->c->roots.data[i], 1);
    if ((p->block < p->ntiles[0] || has_rows) && ++n)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, p->rows, p->block * p->m[0]);
    if (has_rows && ++n)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, p->across, p->span * p->m[1]);
    if (p->panel < columns && ++n)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, p->columns, p->panel);
    uint32_t ntiles = open_tiles(p, 1);
    for (uint32_t s = 0; s < p->product; s++)
        build_transform(p, s, p->reduced);
    dlc_schedule_close(schedule, ntiles);
    if ((p->panel > p->n || p->panel >= columns) && ++n)
        open_for(p, p->columns, p->n);
    build_product(p);
    build_results(p);
    dlc_schedule_close(schedule, n);
    return 1;
}

int dlc_choose_at_points(dlc_chooser *c)
{
    points p = {.c = c};
    if (c->kernel->stages.n < 3 || c->serial.n || !find_product(&p) || !find_stages(&p) || !find_tile(&p))
        return 0;
    if (p.tile_rows == DLC_NO_AXIS && dlc_choose_is_known(c, p.rows))
        choose_unit(&p, p.ntiles[1]);
    else
        choose_unit_unknown(&p);
    return build(&p);
}

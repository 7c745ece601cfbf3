/*
 * What follows from a schedule's tree.
 *
 * The home of a stage's value is the innermost loop that holds the stage and all its readers, moved out of every loop the stage
 * is reduced over and of every loop over one of its axes along which it is read at another point. Memory is taken there.
 *
 * The region that is kept there: of an axis that is open at the home, the open tile; of another, the hull of what the readers'
 * indices cover, by their affine forms; the whole axis where that says nothing. Loops over an axis that is not open yet run
 * over the region, clamped to the axis: halos and recomputation follow. (Regions inferred from readers: Ragan-Kelley et al.,
 * "Halide", PLDI 2013, section 4.)
 */
#include <assert.h>
#include <stdlib.h>

#include "ir/kernel/algebra.h"
#include "ir/schedule/resolve.h"

/* --- walking the tree --- */

uint32_t dlc_schedule_parent(const dlc_schedule *schedule, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;)
        if (schedule->nodes.data[i].end > n)
            return i;
    return DLC_ROOT_NODE;
}

/* The loop that cuts the rows of the tile whose elements `as` visits. */
static uint32_t rows_of_tile(const dlc_schedule *schedule, uint32_t as)
{
    for (uint32_t n = 0; n < as; n++)
        if (schedule->nodes.data[n].kind == DLC_LOOP_LEAF && schedule->nodes.data[n].stage == schedule->nodes.data[as].stage)
            return dlc_schedule_rows(schedule, n);
    return DLC_ROOT_NODE;
}

uint32_t dlc_schedule_ahead_loop(const dlc_schedule *schedule, uint32_t leaf)
{
    int has_lanes = 0;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n)) {
        uint8_t kind = schedule->nodes.data[n].kind;
        if (kind == DLC_LOOP_AS)
            return rows_of_tile(schedule, n);
        has_lanes |= kind == DLC_LOOP_LANE;
        if (has_lanes && (kind == DLC_LOOP_FOR || kind == DLC_LOOP_PAR))
            return n;
    }
    return DLC_ROOT_NODE;
}

int dlc_schedule_is_inside(const dlc_schedule *schedule, uint32_t n, uint32_t around)
{
    return around == DLC_ROOT_NODE || (n != DLC_ROOT_NODE && n >= around && n < schedule->nodes.data[around].end);
}

static int is_loop(const dlc_schedule_node *node)
{
    return node->kind != DLC_LOOP_LEAF && node->kind != DLC_LOOP_AS;
}

uint32_t dlc_schedule_loop_over(const dlc_schedule *schedule, uint32_t from, uint32_t axis)
{
    for (uint32_t n = from; n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n))
        if (is_loop(&schedule->nodes.data[n]) && schedule->nodes.data[n].axis == axis)
            return n;
    return DLC_ROOT_NODE;
}

int64_t dlc_schedule_most_points(const dlc_schedule *schedule, uint32_t loop)
{
    uint32_t axis = schedule->nodes.data[loop].axis, outer = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, loop), axis);
    int64_t extent = -1, tile = outer == DLC_ROOT_NODE ? -1 : schedule->nodes.data[outer].tile;
    if (!dlc_expr_is_int(schedule->kernel->pool, schedule->kernel->axes.data[axis].extent, &extent))
        return tile;
    return tile >= 0 && tile < extent ? tile : extent;
}

uint32_t dlc_schedule_rows(const dlc_schedule *schedule, uint32_t leaf)
{
    uint32_t axis = schedule->nodes.data[leaf].rows;
    return axis == DLC_NO_AXIS ? DLC_ROOT_NODE : dlc_schedule_loop_over(schedule, leaf, axis);
}

uint32_t dlc_schedule_columns(const dlc_schedule *schedule, uint32_t leaf)
{
    return dlc_schedule_loop_over(schedule, leaf, schedule->nodes.data[leaf].columns);
}

/* --- work --- */

dlc_expr dlc_loop_count(dlc_kernel *kernel, uint32_t axis, int64_t tile)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr extent = kernel->axes.data[axis].extent;
    if (tile == 1)
        return extent;
    return dlc_floordiv(pool, dlc_addi(pool, extent, tile - 1), dlc_expr_i64(pool, tile));
}

dlc_expr dlc_schedule_units(dlc_kernel *kernel, const dlc_schedule *schedule)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr units = dlc_expr_i64(pool, 1);
    for (uint32_t n = 0; n < schedule->nodes.n && schedule->nodes.data[n].kind == DLC_LOOP_PAR; n++)
        units = dlc_mul(pool, units, dlc_loop_count(kernel, schedule->nodes.data[n].axis,
                                                    schedule->nodes.data[n].tile));
    return units;
}

dlc_expr dlc_schedule_scratch(const dlc_schedule *schedule)
{
    return schedule->scratch;
}

uint32_t dlc_schedule_pack_of(const dlc_schedule *schedule)
{
    enum { WARP = 32 };
    uint32_t pack = 1;
    for (uint32_t n = 0; n < schedule->nodes.n && schedule->target->kind == DLC_TARGET_CUDA; n++)
        if (schedule->nodes.data[n].kind == DLC_LOOP_LANE && schedule->nodes.data[n].tile / WARP > pack)
            pack = (uint32_t)(schedule->nodes.data[n].tile / WARP);
    return pack;
}

/* --- who reads whom --- */

void dlc_reads_find(const dlc_schedule *schedule, dlc_arena *arena, dlc_reads *reads)
{
    const dlc_kernel *kernel = schedule->kernel;
    reads->n = 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const uint8_t *marks = dlc_stage_marks(kernel, &kernel->stages.data[s], arena);
        for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
            const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
            if (marks[id] && node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id))
                dlc_vec_push(arena, reads, ((dlc_read){s, DLC_SOURCE_INDEX(node->imm.id), id}));
        }
    }
}

int dlc_read_is_own(const dlc_kernel *kernel, const dlc_read *read, uint32_t position)
{
    return dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, read->load, position)) ==
           kernel->stages.data[read->source].axes.data[position];
}

int64_t dlc_read_distance(const dlc_kernel *kernel, const dlc_read *read, uint32_t position)
{
    dlc_pool *pool = kernel->pool;
    int64_t distance;
    dlc_expr axis = dlc_expr_axis(pool, kernel->stages.data[read->source].axes.data[position]);
    dlc_expr index = dlc_arg(pool, read->load, position);
    return dlc_expr_is_int(pool, dlc_sub(pool, axis, index), &distance) ? distance : -1;
}

/* --- regions --- */

typedef struct {
    dlc_expr first, size;
} region;

typedef struct {
    uint32_t stage, position, from;
    region region;
} known_region;

typedef struct {
    dlc_schedule *schedule;
    dlc_kernel *kernel;
    dlc_pool *pool;
    dlc_arena *arena;
    dlc_ranges ranges;
    const dlc_reads *reads;
    dlc_vec(known_region) known;
} regions;

static region region_of(regions *r, uint32_t stage, uint32_t position, uint32_t from);

static region whole_axis(const regions *r, uint32_t axis)
{
    return (region){dlc_expr_i64(r->pool, 0), r->kernel->axes.data[axis].extent};
}

/* No more than the axis has. */
static region limited(const regions *r, uint32_t axis, region of)
{
    int64_t size, extent;
    if (dlc_expr_is_int(r->pool, of.size, &size) && dlc_expr_is_int(r->pool, r->kernel->axes.data[axis].extent, &extent) &&
        size >= extent)
        return whole_axis(r, axis);
    return of;
}

/* What an axis of the reading stage runs through, seen from the innermost loop around both it and `from`: loops that do not hold
 * the reader may run over the same axis, but at other points. */
static region reader_range(regions *r, uint32_t reader, uint32_t axis, uint32_t from)
{
    const dlc_stage *stage = &r->kernel->stages.data[reader];
    while (!dlc_schedule_is_inside(r->schedule, r->schedule->homes[reader].leaf, from))
        from = dlc_schedule_parent(r->schedule, from);
    uint32_t position, loop = dlc_schedule_loop_over(r->schedule, from, axis);
    if (loop != DLC_ROOT_NODE)
        return (region){dlc_expr_axis(r->pool, axis), dlc_expr_i64(r->pool, r->schedule->nodes.data[loop].tile)};
    if (dlc_ids_find(&stage->axes, axis, &position))
        return region_of(r, reader, position, from);
    return whole_axis(r, axis);
}

/* False: it is not affine. */
static int affine_range(regions *r, uint32_t reader, dlc_expr index, uint32_t from, region *result)
{
    dlc_expr *with = dlc_new_array(r->arena, dlc_expr, r->kernel->axes.n), size = dlc_expr_i64(r->pool, 1);
    for (uint32_t a = 0; a < r->kernel->axes.n; a++) {
        dlc_expr coefficient, rest;
        int64_t step;
        if (!dlc_expr_uses_axis(r->pool, index, a))
            continue;
        if (!dlc_expr_linear(r->pool, index, a, &coefficient, &rest) || !dlc_expr_is_int(r->pool, coefficient, &step))
            return 0;
        region range = reader_range(r, reader, a, from);
        dlc_expr further = dlc_addi(r->pool, range.size, -1);
        with[a] = step >= 0 ? range.first : dlc_add(r->pool, range.first, further);
        size = dlc_add(r->pool, size, dlc_muli(r->pool, further, llabs(step)));
    }
    if (dlc_expr_has_load(r->pool, index))
        return 0;
    result->first = dlc_expr_simplify(r->pool, dlc_expr_substitute(r->pool, index, with, r->kernel->axes.n), &r->ranges);
    result->size = size;
    return 1;
}

static int is_rows_loop(const regions *r, uint32_t loop)
{
    for (uint32_t n = loop + 1; n < r->schedule->nodes.data[loop].end; n++)
        if (r->schedule->nodes.data[n].kind == DLC_LOOP_LEAF && r->schedule->nodes.data[n].row != DLC_DOT_NONE &&
            dlc_schedule_rows(r->schedule, n) == loop)
            return 1;
    return 0;
}

/* The loop runs over its whole axis: some stage in it is stored. */
static int is_from_zero(const regions *r, uint32_t loop)
{
    for (uint32_t n = loop + 1; n < r->schedule->nodes.data[loop].end; n++) {
        const dlc_schedule_node *leaf = &r->schedule->nodes.data[n];
        const dlc_stage *stage = leaf->kind == DLC_LOOP_LEAF ? &r->kernel->stages.data[leaf->stage] : NULL;
        if (stage && stage->buffer != DLC_NO_BUFFER && dlc_ids_find(&stage->axes, r->schedule->nodes.data[loop].axis, NULL))
            return 1;
    }
    return 0;
}

/* The open tile of the axis begins at a multiple of `by`: rows of register tiles are balanced and begin anywhere. */
static int begins_at_multiple(const regions *r, uint32_t reader, uint32_t axis, uint32_t from, int64_t by)
{
    while (!dlc_schedule_is_inside(r->schedule, r->schedule->homes[reader].leaf, from))
        from = dlc_schedule_parent(r->schedule, from);
    uint32_t loop = dlc_schedule_loop_over(r->schedule, from, axis);
    while (loop != DLC_ROOT_NODE) {
        uint32_t outer = dlc_schedule_loop_over(r->schedule, dlc_schedule_parent(r->schedule, loop), axis);
        if (r->schedule->nodes.data[loop].tile % by || is_rows_loop(r, loop) ||
            (outer == DLC_ROOT_NODE && !is_from_zero(r, loop)))
            return 0;
        loop = outer;
    }
    return 1;
}

/* Of floordiv(axis + a multiple of c, c), where tiles are of whole quotients; else one more may be touched: the axis backwards
 * begins at its last point. */
static void divide(regions *r, uint32_t reader, dlc_expr index, uint32_t from, int64_t by, region *of)
{
    int64_t multiple = dlc_expr_multiple(r->pool, index, &r->ranges);
    int is_exact = multiple % by == 0;
    for (uint32_t a = 0; a < r->kernel->axes.n && !is_exact; a++) {
        dlc_expr rest = dlc_sub(r->pool, index, dlc_expr_axis(r->pool, a));
        is_exact = dlc_expr_uses_axis(r->pool, index, a) && !dlc_expr_uses_axis(r->pool, rest, a) &&
                   dlc_expr_multiple(r->pool, rest, &r->ranges) % by == 0 && begins_at_multiple(r, reader, a, from, by);
    }
    dlc_expr c = dlc_expr_i64(r->pool, by);
    of->first = dlc_expr_simplify(r->pool, dlc_floordiv(r->pool, of->first, c), &r->ranges);
    of->size = is_exact ? dlc_floordiv(r->pool, dlc_addi(r->pool, of->size, by - 1), c)
                        : dlc_addi(r->pool, dlc_floordiv(r->pool, dlc_addi(r->pool, of->size, 2 * by - 2), c), 0);
}

/* What an index covers when each of its axes runs through its range: affine, or with quotients and remainders of such by
 * constants. False: it is neither. */
static int index_range(regions *r, uint32_t reader, dlc_expr index, uint32_t from, region *result)
{
    const dlc_expr_node node = *dlc_node_of(r->pool, index);
    region other;
    int64_t by;
    if (affine_range(r, reader, index, from, result))
        return 1;
    if (node.nargs != 2 || node.op == DLC_EXPR_LOAD)
        return 0;
    dlc_expr a = dlc_arg(r->pool, index, 0), b = dlc_arg(r->pool, index, 1);
    int is_by = dlc_expr_is_int(r->pool, b, &by) && by > 0;
    if ((node.op == DLC_EXPR_MOD && !is_by) || !index_range(r, reader, a, from, result))
        return 0;
    switch (node.op) {
    case DLC_EXPR_ADD:
        if (!index_range(r, reader, b, from, &other))
            return 0;
        result->first = dlc_add(r->pool, result->first, other.first);
        result->size = dlc_addi(r->pool, dlc_add(r->pool, result->size, other.size), -1);
        return 1;
    case DLC_EXPR_MUL:
        if (!is_by)
            return 0;
        result->first = dlc_muli(r->pool, result->first, by);
        result->size = dlc_addi(r->pool, dlc_muli(r->pool, dlc_addi(r->pool, result->size, -1), by), 1);
        return 1;
    case DLC_EXPR_FLOORDIV:
        if (is_by)
            divide(r, reader, a, from, by, result);
        return is_by;
    case DLC_EXPR_MOD:
        *result = (region){dlc_expr_i64(r->pool, 0), b};
        return 1;
    default:
        return 0;
    }
}

static int hull(const regions *r, region *all, const region *one)
{
    int64_t apart, a, b;
    if (all->first == one->first && all->size == one->size)
        return 1;
    if (!dlc_expr_is_int(r->pool, dlc_sub(r->pool, one->first, all->first), &apart) ||
        !dlc_expr_is_int(r->pool, all->size, &a) || !dlc_expr_is_int(r->pool, one->size, &b))
        return 0;
    if (apart < 0) {
        all->first = one->first;
        a -= apart;
        apart = 0;
    }
    all->size = dlc_expr_i64(r->pool, a > apart + b ? a : apart + b);
    return 1;
}

/* What all readers cover along the axis; the whole axis where that cannot be told. */
static region readers_hull(regions *r, uint32_t s, uint32_t position, uint32_t from)
{
    uint32_t axis = r->kernel->stages.data[s].axes.data[position];
    region all = {0};
    for (uint32_t i = 0; i < r->reads->n; i++) {
        const dlc_read *read = &r->reads->data[i];
        region one;
        if (read->source != s)
            continue;
        if (read->reader == s || dlc_read_distance(r->kernel, read, position) > 0 ||
            !index_range(r, read->reader, dlc_arg(r->pool, read->load, position), from, &one) ||
            (all.size && !hull(r, &all, &one)))
            return whole_axis(r, axis);
        if (!all.size)
            all = one;
    }
    return all.size ? limited(r, axis, all) : whole_axis(r, axis);
}

/* The outermost loop over the axis, inside `from`, in which the stage is computed. */
static uint32_t own_loop(const regions *r, uint32_t s, uint32_t axis, uint32_t from)
{
    uint32_t loop = DLC_ROOT_NODE;
    for (uint32_t n = r->schedule->homes[s].leaf; n != from && n != DLC_ROOT_NODE; n = dlc_schedule_parent(r->schedule, n))
        if (is_loop(&r->schedule->nodes.data[n]) && r->schedule->nodes.data[n].axis == axis)
            loop = n;
    return loop;
}

/* A loop that computes several stages into memory that lasts longer than an iteration, or folds one along it, runs over all that
 * any of them needs: each has the whole axis then. */
static int is_shared(const regions *r, uint32_t s, uint32_t axis, uint32_t from)
{
    uint32_t loop = own_loop(r, s, axis, from), n = 0;
    if (loop == DLC_ROOT_NODE)
        return 0;
    for (uint32_t i = loop + 1; i < r->schedule->nodes.data[loop].end; i++) {
        const dlc_schedule_node *leaf = &r->schedule->nodes.data[i];
        if (leaf->kind != DLC_LOOP_LEAF)
            continue;
        const dlc_stage *stage = &r->kernel->stages.data[leaf->stage];
        if (dlc_ids_find(&stage->reduce, axis, NULL))
            return 1;
        int is_kept = leaf->place != DLC_PLACE_REG && !dlc_schedule_is_inside(r->schedule, r->schedule->homes[leaf->stage].at, loop);
        n += (is_kept || stage->buffer != DLC_NO_BUFFER) && dlc_ids_find(&stage->axes, axis, NULL);
    }
    return n > 1;
}

static int has_columns(const regions *r, uint32_t n, uint32_t axis)
{
    const dlc_schedule_node *leaf = &r->schedule->nodes.data[n];
    return leaf->kind == DLC_LOOP_LEAF && leaf->row != DLC_DOT_NONE && leaf->columns == axis;
}

/* Columns of a register tile go by panels that begin at multiples of the tile, and so does what is computed of them in their loop. */
static region whole_panels(regions *r, uint32_t s, uint32_t axis, uint32_t from, region of)
{
    uint32_t leaf = r->schedule->homes[s].leaf, loop = own_loop(r, s, axis, from);
    int64_t first;
    for (uint32_t n = loop; loop != DLC_ROOT_NODE && n < r->schedule->nodes.data[loop].end && !has_columns(r, leaf, axis); n++)
        leaf = has_columns(r, n, axis) ? n : leaf;
    if (!has_columns(r, leaf, axis))
        return of;
    int64_t tile = r->schedule->nodes.data[dlc_schedule_columns(r->schedule, leaf)].tile;
    if (dlc_expr_multiple(r->pool, of.first, &r->ranges) % tile == 0)
        return of;
    if (!dlc_expr_is_int(r->pool, of.first, &first) || first < 0)
        return whole_axis(r, axis);
    of.first = dlc_expr_i64(r->pool, first / tile * tile);
    of.size = dlc_addi(r->pool, of.size, first % tile);
    return limited(r, axis, of);
}

static region region_of(regions *r, uint32_t s, uint32_t position, uint32_t from)
{
    const dlc_stage *stage = &r->kernel->stages.data[s];
    uint32_t axis = stage->axes.data[position], loop = dlc_schedule_loop_over(r->schedule, from, axis);
    if (loop != DLC_ROOT_NODE)
        return (region){dlc_expr_axis(r->pool, axis), dlc_expr_i64(r->pool, r->schedule->nodes.data[loop].tile)};
    if (stage->buffer != DLC_NO_BUFFER || is_shared(r, s, axis, from))
        return whole_axis(r, axis);
    for (uint32_t i = 0; i < r->known.n; i++) {
        const known_region *known = &r->known.data[i];
        if (known->stage == s && known->position == position && known->from == from)
            return known->region;
    }
    known_region found = {s, position, from, whole_axis(r, axis)}; /* for recurrences through other stages */
    uint32_t at = r->known.n;
    dlc_vec_push(r->arena, &r->known, found);
    found.region = whole_panels(r, s, axis, from, readers_hull(r, s, position, from)); /* which may move the list */
    r->known.data[at].region = found.region;
    return found.region;
}

static regions regions_begin(dlc_schedule *schedule, const dlc_reads *reads)
{
    regions r = {.schedule = schedule, .kernel = schedule->kernel, .pool = schedule->kernel->pool,
                 .arena = schedule->arena, .reads = reads};
    r.ranges = dlc_kernel_ranges(schedule->kernel);
    return r;
}

/* All stages in the loop that have its axis, together. */
static void find_range(regions *r, uint32_t node)
{
    const dlc_schedule *schedule = r->schedule;
    uint32_t axis = schedule->nodes.data[node].axis, parent = dlc_schedule_parent(schedule, node), position;
    region all = {0}, whole = whole_axis(r, axis);
    for (uint32_t n = node + 1; n < schedule->nodes.data[node].end; n++) {
        const dlc_schedule_node *leaf = &schedule->nodes.data[n];
        if (leaf->kind != DLC_LOOP_LEAF)
            continue;
        const dlc_stage *stage = &schedule->kernel->stages.data[leaf->stage];
        if (dlc_ids_find(&stage->reduce, axis, NULL))
            all = whole;
        if (!dlc_ids_find(&stage->axes, axis, &position))
            continue;
        region one = region_of(r, leaf->stage, position, parent);
        if (!all.size)
            all = one;
        else if (!hull(r, &all, &one))
            all = whole;
    }
    schedule->ranges[node].first = all.size ? all.first : whole.first;
    schedule->ranges[node].size = all.size ? all.size : whole.size;
}

/* --- homes --- */

static uint32_t outside(const dlc_schedule *schedule, uint32_t at, uint32_t loop)
{
    return dlc_schedule_is_inside(schedule, at, loop) && at != DLC_ROOT_NODE ? dlc_schedule_parent(schedule, loop) : at;
}

static void move_out(const dlc_schedule *schedule, const dlc_read *read, dlc_home *home)
{
    const dlc_ids *axes = &schedule->kernel->stages.data[read->source].axes;
    while (!dlc_schedule_is_inside(schedule, schedule->homes[read->reader].leaf, home->at))
        home->at = dlc_schedule_parent(schedule, home->at);
    for (uint32_t i = 0; i < axes->n; i++) {
        uint32_t loop;
        if (dlc_read_is_own(schedule->kernel, read, i))
            continue;
        while ((loop = dlc_schedule_loop_over(schedule, home->at, axes->data[i])) != DLC_ROOT_NODE)
            home->at = dlc_schedule_parent(schedule, loop);
    }
}

static uint32_t outermost_fold(const dlc_schedule *schedule, uint32_t leaf)
{
    const dlc_stage *stage = &schedule->kernel->stages.data[schedule->nodes.data[leaf].stage];
    uint32_t fold = DLC_ROOT_NODE;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n))
        if (is_loop(&schedule->nodes.data[n]) && dlc_ids_find(&stage->reduce, schedule->nodes.data[n].axis, NULL))
            fold = n;
    return fold;
}

static void find_homes(dlc_schedule *schedule, const dlc_reads *reads)
{
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        const dlc_schedule_node *leaf = &schedule->nodes.data[n];
        if (leaf->kind != DLC_LOOP_LEAF)
            continue;
        dlc_home *home = &schedule->homes[leaf->stage];
        home->leaf = n;
        home->place = leaf->place;
        home->stored = home->place == DLC_PLACE_BUFFER ? leaf->stage : DLC_NO_STAGE;
        home->at = dlc_schedule_parent(schedule, n);
        home->fold = outermost_fold(schedule, n);
    }
    for (uint32_t i = 0; i < reads->n; i++) {
        dlc_home *home = &schedule->homes[reads->data[i].source];
        home->is_read = 1;
        move_out(schedule, &reads->data[i], home);
    }
    for (uint32_t s = 0; s < schedule->kernel->stages.n; s++) {
        dlc_home *home = &schedule->homes[s];
        if (home->fold != DLC_ROOT_NODE)
            home->at = outside(schedule, home->at, home->fold);
        while (home->at != DLC_ROOT_NODE && schedule->nodes.data[home->at].kind == DLC_LOOP_AS)
            home->at = dlc_schedule_parent(schedule, home->at);
    }
}

/* --- memory --- */

/* The axis along which vectors of the stage are stored, or DLC_NO_AXIS. */
static uint32_t vector_axis(const dlc_schedule *schedule, uint32_t s)
{
    uint32_t leaf = schedule->homes[s].leaf;
    const dlc_schedule_node *node = &schedule->nodes.data[leaf];
    if (node->row != DLC_DOT_NONE)
        return node->columns;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n)) {
        node = &schedule->nodes.data[n];
        if (node->kind == DLC_LOOP_LANE && dlc_ids_find(&schedule->kernel->stages.data[s].axes, node->axis, NULL))
            return node->axis;
        if (node->kind == DLC_LOOP_AS)
            return schedule->nodes.data[schedule->homes[node->stage].leaf].columns;
    }
    return DLC_NO_AXIS;
}

static dlc_expr round_up(dlc_pool *pool, dlc_expr value, int64_t multiple)
{
    return dlc_muli(pool, dlc_floordiv(pool, dlc_addi(pool, value, multiple - 1), dlc_expr_i64(pool, multiple)), multiple);
}

/* Rows of a copy begin at a multiple of 64 bytes, and never 4096 apart: they would share a set of L1. */
static dlc_expr padded_row(dlc_pool *pool, dlc_expr elems, int64_t elem_bytes)
{
    int64_t line = 64 / elem_bytes, known;
    elems = round_up(pool, elems, line);
    if (dlc_expr_is_int(pool, elems, &known) && known * elem_bytes % 4096 == 0)
        elems = dlc_addi(pool, elems, line);
    return elems;
}

static const dlc_schedule_copy *copy_of(const dlc_schedule *schedule, uint32_t s)
{
    for (uint32_t i = 0; i < schedule->copies.n; i++)
        if (schedule->copies.data[i].copy == s)
            return &schedule->copies.data[i];
    return NULL;
}

/* The axis that a part's axes are by now: flattened ones are one. */
static uint32_t part_axis(const dlc_schedule *schedule, const dlc_copy_part *part)
{
    for (uint32_t f = 0; f < schedule->flats.n; f++) {
        const dlc_ids *flat = &schedule->flats.data[f];
        int is_same = flat->n == part->axes.n + 1;
        for (uint32_t i = 0; is_same && i < part->axes.n; i++)
            is_same = flat->data[i] == part->axes.data[i];
        if (is_same)
            return flat->data[flat->n - 1];
    }
    return part->axes.n == 1 ? part->axes.data[0] : DLC_NO_AXIS;
}

/* Of a dealt copy: in the order of its layout, each axis followed by its pad. */
static dlc_expr find_dealt_strides(dlc_schedule *schedule, uint32_t s, dlc_home *home)
{
    dlc_pool *pool = schedule->kernel->pool;
    const dlc_ids *axes = &schedule->kernel->stages.data[s].axes;
    const dlc_schedule_copy *copy = copy_of(schedule, s);
    dlc_expr elems = dlc_expr_i64(pool, 1);
    home->stride = dlc_new_array(schedule->arena, dlc_expr, axes->n + 1);
    for (uint32_t i = axes->n; i-- > 0;) {
        uint32_t at = i, pad = 0;
        if (copy->parts.n == axes->n && dlc_ids_find(axes, part_axis(schedule, &copy->parts.data[i]), &at))
            pad = (uint32_t)copy->parts.data[i].pad;
        home->stride[at] = elems;
        elems = dlc_mul(pool, elems, dlc_addi(pool, home->size[at], pad));
    }
    return elems;
}

/* Row-major over the stage's axes, but with the vectors' axis innermost; returns the number of elements. */
static dlc_expr find_strides(dlc_schedule *schedule, uint32_t s, dlc_home *home)
{
    dlc_pool *pool = schedule->kernel->pool;
    const dlc_stage *stage = &schedule->kernel->stages.data[s];
    uint32_t lanes = vector_axis(schedule, s), outermost = 0;
    dlc_expr elems = dlc_expr_i64(pool, 1);
    home->stride = dlc_new_array(schedule->arena, dlc_expr, stage->axes.n + 1);
    while (outermost < stage->axes.n &&
           (home->size[outermost] == dlc_expr_i64(pool, 1) || stage->axes.data[outermost] == lanes))
        outermost++;
    for (uint32_t i = stage->axes.n; i-- > 0;)
        if (stage->axes.data[i] == lanes) {
            home->stride[i] = elems;
            elems = home->size[i];
        }
    for (uint32_t i = stage->axes.n; i-- > 0;) {
        if (stage->axes.data[i] == lanes)
            continue;
        if (i == outermost && s >= schedule->nstages && elems != dlc_expr_i64(pool, 1))
            elems = padded_row(pool, elems, dlc_dtype_bytes(stage->dtype[0]));
        home->stride[i] = elems;
        elems = dlc_mul(pool, elems, home->size[i]);
    }
    return elems;
}

/* The blocked layout that a copy was given, by positions of the stage's axes. Without blocks the order of the axes says all. */
static dlc_status find_layout(dlc_schedule *schedule, uint32_t s, int is_dealt, dlc_home *home, dlc_diag *diag)
{
    const dlc_schedule_copy *copy = copy_of(schedule, s);
    const dlc_stage *stage = &schedule->kernel->stages.data[s];
    int is_blocked = 0;
    home->layout = (dlc_layout){0};
    for (uint32_t p = 0; copy && p < copy->parts.n; p++)
        is_blocked |= copy->parts.data[p].block > 1;
    for (uint32_t p = 0; is_blocked && p < copy->parts.n; p++) {
        const dlc_copy_part *part = &copy->parts.data[p];
        uint32_t position;
        if (!dlc_ids_find(&stage->axes, part_axis(schedule, part), &position))
            return dlc_diag_fail(diag, DLC_INVALID, schedule->kernel->name,
                                 "schedule: the layout of %s does not name axes as they are flattened", stage->name);
        home->layout.part[home->layout.nparts].dim = (uint8_t)position;
        home->layout.part[home->layout.nparts].block = part->block;
        home->layout.part[home->layout.nparts].pad = is_dealt ? part->pad : 0;
        home->layout.part[home->layout.nparts++].inner = part->inner;
    }
    return DLC_OK;
}

enum { WARP = 32 };

static dlc_status find_memory(regions *r, uint32_t s, dlc_diag *diag)
{
    dlc_schedule *schedule = r->schedule;
    const dlc_stage *stage = &r->kernel->stages.data[s];
    dlc_home *home = &schedule->homes[s];
    home->first = dlc_new_array(r->arena, dlc_expr, stage->axes.n + 1);
    home->size = dlc_new_array(r->arena, dlc_expr, stage->axes.n + 1);
    home->bytes = dlc_expr_i64(r->pool, 0);
    for (uint32_t i = 0; i < stage->axes.n; i++) {
        region of = region_of(r, s, i, home->at);
        home->first[i] = of.first;
        home->size[i] = of.size;
    }
    if (home->place != DLC_PLACE_SCRATCH && home->place != DLC_PLACE_OUTPUT)
        return DLC_OK;
    int is_dealt = s >= schedule->nstages && dlc_schedule_thread_of(schedule, home->leaf) != DLC_ROOT_NODE;
    DLC_TRY(find_layout(schedule, s, is_dealt, home, diag));
    dlc_expr elems = is_dealt ? find_dealt_strides(schedule, s, home) : find_strides(schedule, s, home);
    if (home->layout.nparts)
        elems = dlc_layout_elems(r->pool, &home->layout, (uint8_t)stage->axes.n, home->size);
    if (home->place == DLC_PLACE_OUTPUT)
        return DLC_OK;
    home->bytes = round_up(r->pool, dlc_muli(r->pool, elems, dlc_dtype_bytes(stage->dtype[0])), 64);
    if (dlc_schedule_is_of_warp(schedule, s))
        home->bytes = dlc_muli(r->pool, home->bytes, schedule->threads / WARP);
    return DLC_OK;
}

static int reads_own_points(const dlc_kernel *kernel, const dlc_read *read)
{
    const dlc_ids *axes = &kernel->stages.data[read->source].axes;
    for (uint32_t i = 0; i < axes->n; i++)
        if (!dlc_read_is_own(kernel, read, i))
            return 0;
    return !dlc_load_guard(kernel->pool, read->load) && !dlc_node_of(kernel->pool, read->load)->flags;
}

int dlc_reads_may_take(const dlc_kernel *kernel, const dlc_reads *reads, uint32_t s, uint32_t from)
{
    const dlc_stage *stage = &kernel->stages.data[s], *before = &kernel->stages.data[from];
    int is_read = 0, is_same = stage->axes.n == before->axes.n && stage->update == DLC_UPDATE_NONE &&
                               dlc_dtype_bytes(stage->dtype[0]) == dlc_dtype_bytes(before->dtype[0]);
    for (uint32_t i = 0; is_same && i < stage->axes.n; i++)
        is_same = stage->axes.data[i] == before->axes.data[i];
    for (uint32_t i = 0; is_same && i < reads->n; i++) {
        const dlc_read *read = &reads->data[i];
        if (read->source != from)
            continue;
        is_same = read->reader <= s && reads_own_points(kernel, read);
        is_read |= read->reader == s;
    }
    return is_same && is_read && stage->combine == DLC_REDUCE_NONE;
}

/* Each element of the stage's region is computed once. */
static int is_computed_once(const regions *r, uint32_t s)
{
    const dlc_schedule *schedule = r->schedule;
    const dlc_home *home = &schedule->homes[s];
    for (uint32_t n = dlc_schedule_parent(schedule, home->leaf); n != home->at && n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n))
        if (schedule->nodes.data[n].axis != DLC_NO_AXIS && !dlc_ids_find(&r->kernel->stages.data[s].axes, schedule->nodes.data[n].axis, NULL))
            return 0;
    return 1;
}

/* A map that is the last to read another stage may overwrite it, element by element. */
static uint32_t taken_by(const regions *r, uint32_t s)
{
    const dlc_home *homes = r->schedule->homes, *home = &homes[s];
    if (home->place != DLC_PLACE_SCRATCH || s >= r->schedule->nstages || home->layout.nparts ||
        !is_computed_once(r, s))
        return DLC_NO_STAGE;
    for (uint32_t from = 0; from < s; from++) {
        int is_free = homes[from].place == DLC_PLACE_SCRATCH && homes[from].at == home->at && !homes[from].layout.nparts &&
                      dlc_reads_may_take(r->kernel, r->reads, s, from);
        for (uint32_t i = 0; is_free && i < r->kernel->stages.data[s].axes.n; i++)
            is_free = homes[from].first[i] == home->first[i] && homes[from].size[i] == home->size[i] &&
                      homes[from].stride[i] == home->stride[i];
        for (uint32_t i = 0; is_free && i < r->reads->n; i++)
            is_free = r->reads->data[i].source != from || homes[r->reads->data[i].reader].leaf <= home->leaf;
        for (uint32_t other = from + 1; is_free && other < s; other++)
            is_free = homes[other].takes != from;
        if (is_free)
            return from;
    }
    return DLC_NO_STAGE;
}

/* Nothing but loops over the stage's axes around the leaf: each element is computed once a run. */
static int is_at_own_axes(const dlc_schedule *schedule, uint32_t leaf)
{
    const dlc_schedule_node *nodes = schedule->nodes.data;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n))
        if (!is_loop(&nodes[n]) || !dlc_ids_find(&schedule->kernel->stages.data[nodes[leaf].stage].axes, nodes[n].axis, NULL))
            return 0;
    return 1;
}

uint32_t dlc_schedule_output_for(const dlc_schedule *schedule, const dlc_reads *reads, uint32_t s)
{
    const dlc_kernel *kernel = schedule->kernel;
    const dlc_stage *stage = &kernel->stages.data[s];
    const dlc_home *homes = schedule->homes;
    if (schedule->target->kind != DLC_TARGET_CPU || stage->combine != DLC_REDUCE_NONE || stage->buffer != DLC_NO_BUFFER ||
        s >= schedule->nstages || !is_at_own_axes(schedule, homes[s].leaf))
        return DLC_NO_STAGE;
    for (uint32_t t = s + 1; t < kernel->stages.n; t++) {
        const dlc_stage *map = &kernel->stages.data[t];
        int is_free = map->buffer != DLC_NO_BUFFER && kernel->buffers.data[map->buffer].type.dtype == stage->dtype[0] &&
                      !dlc_is_updated(kernel, map->buffer) && !schedule->nodes.data[homes[t].leaf].nontemporal &&
                      is_at_own_axes(schedule, homes[t].leaf) && dlc_reads_may_take(kernel, reads, t, s);
        for (uint32_t i = 0; is_free && i < reads->n; i++)
            is_free = reads->data[i].source != s || homes[reads->data[i].reader].leaf <= homes[t].leaf;
        for (uint32_t other = 0; is_free && other < kernel->stages.n; other++)
            is_free = other == s || homes[other].place != DLC_PLACE_OUTPUT || homes[other].stored != t;
        if (is_free)
            return t;
    }
    return DLC_NO_STAGE;
}

static void place_in_scratch(const regions *r, uint32_t s)
{
    dlc_schedule *schedule = r->schedule;
    dlc_home *home = &schedule->homes[s];
    home->takes = taken_by(r, s);
    if (home->takes != DLC_NO_STAGE) {
        home->offset = schedule->homes[home->takes].offset;
        return;
    }
    home->offset = schedule->scratch;
    schedule->scratch = dlc_add(r->pool, schedule->scratch, home->bytes);
}

dlc_status dlc_schedule_resolve(dlc_schedule *schedule, dlc_diag *diag)
{
    dlc_kernel *kernel = schedule->kernel;
    dlc_reads reads = {0};
    schedule->scratch = dlc_expr_i64(kernel->pool, 0);
    DLC_TRY(dlc_schedule_verify_tree(schedule, diag));
    DLC_TRY(dlc_deals_verify_tree(schedule, diag));
    dlc_reads_find(schedule, schedule->arena, &reads);
    schedule->homes = dlc_new_array(schedule->arena, dlc_home, kernel->stages.n + 1);
    find_homes(schedule, &reads);
    DLC_TRY(dlc_schedule_verify_reads(schedule, &reads, diag));
    regions r = regions_begin(schedule, &reads);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        if (schedule->homes[s].place == DLC_PLACE_OUTPUT)
            schedule->homes[s].stored = dlc_schedule_output_for(schedule, &reads, s);
        DLC_TRY(find_memory(&r, s, diag));
        place_in_scratch(&r, s);
    }
    schedule->ranges = dlc_new_array(schedule->arena, dlc_schedule_range, schedule->nodes.n + 1);
    for (uint32_t n = 0; n < schedule->nodes.n; n++)
        if (is_loop(&schedule->nodes.data[n]))
            find_range(&r, n);
    DLC_TRY(dlc_schedule_keep(schedule, diag));
    DLC_TRY(dlc_schedule_verify_places(schedule, &reads, diag));
    return dlc_deals_verify_places(schedule, &reads, diag);
}

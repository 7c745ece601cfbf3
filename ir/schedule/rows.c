/* Rows of dot.def: which factors a row takes, and whether they lie as it wants them. */
#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"

#include <string.h>

const dlc_dot_info dlc_dots[DLC_DOT_COUNT] = {
    [DLC_DOT_NONE] = {.text = ""},
#define DLC_DOT(id, text, a, b, acc, granule, parts, takes, fact, narrow, order, family) \
    [DLC_DOT_##id] = {text, DLC_##a, DLC_##b, DLC_##acc, granule, parts, takes, DLC_ORDER_##order, DLC_FAMILY_##family, fact, narrow},
#include "ir/schedule/dot.def"
#undef DLC_DOT
};

uint32_t dlc_dot_fact(const dlc_target *target, dlc_dot row)
{
    enum { NARROW_BYTES = 32 };
    return target->facts & (target->vector_bytes > NARROW_BYTES ? dlc_dots[row].fact : dlc_dots[row].narrow);
}

uint32_t dlc_dot_pairs(dlc_dot row)
{
    return dlc_dots[row].parts * (dlc_dots[row].parts + 1u) / 2;
}

double dlc_dot_rate(const dlc_target *target, dlc_dot row)
{
    uint32_t fact = dlc_dot_fact(target, row);
    double rate = 0;
    uint32_t most = dlc_dots[row].granule; /* of lanes measured by the row of the fact that takes most at once */
    for (uint32_t i = 0; i < DLC_NFACTS; i++)
        if (fact >> i & 1)
            rate = target->machine->ops_per_us[i];
    for (dlc_dot other = DLC_DOT_NONE + 1; other < DLC_DOT_COUNT; other++)
        if (fact && dlc_dot_fact(target, other) == fact && dlc_dots[row].family == DLC_FAMILY_LANES && dlc_dots[other].granule > most)
            most = dlc_dots[other].granule;
    return rate * dlc_dots[row].granule / most / dlc_dot_pairs(row);
}

double dlc_dot_products_in_tiles(const dlc_target *target, dlc_dot row)
{
    double rate = dlc_dot_rate(target, row);
    if (dlc_dots[row].family != DLC_FAMILY_TILE || !dlc_dot_fact(target, row))
        return 0;
    return rate > 0 ? rate / 2 / target->machine->cycles_per_us
                    : (double)DLC_TILE_ROWS * DLC_TILE_COLUMNS * dlc_dots[row].granule / dlc_dot_pairs(row);
}

int dlc_dot_pays(const dlc_target *target, dlc_dot row)
{
    enum { WORTH_PERCENT = 120 }; /* of the rate of floats: cuts cost something */
    double rate = dlc_dot_rate(target, row), floats = target->machine->ops_per_us[DLC_IS_FMA];
    return dlc_dot_fact(target, row) && (rate == 0 || floats == 0 || rate * 100 >= floats * WORTH_PERCENT);
}

/* --- types --- */

/* The factor without a cast to the accumulator's type. */
static dlc_expr uncast(const dlc_pool *pool, dlc_expr factor)
{
    return dlc_node_of(pool, factor)->op == DLC_EXPR_CAST ? dlc_arg(pool, factor, 0) : factor;
}

/* x of f32.bits(and(u32.bits(x), 0xffffe000)), or 0. */
static dlc_expr uncut(const dlc_pool *pool, dlc_expr factor)
{
    const uint32_t kept = 0xffffe000u;
    const dlc_expr_node *node = dlc_node_of(pool, factor);
    dlc_expr masked = node->op == DLC_EXPR_BITCAST && node->dtype == DLC_F32 ? dlc_arg(pool, factor, 0) : 0;
    for (uint32_t i = 0; masked && dlc_node_of(pool, masked)->op == DLC_EXPR_AND && i < 2; i++) {
        dlc_expr bits = dlc_arg(pool, masked, i);
        const dlc_expr_node *mask = dlc_node_of(pool, dlc_arg(pool, masked, 1 - i));
        if (dlc_node_of(pool, bits)->op == DLC_EXPR_BITCAST && mask->op == DLC_EXPR_CONST && (uint32_t)mask->imm.i == kept &&
            dlc_node_of(pool, dlc_arg(pool, bits, 0))->dtype == DLC_F32)
            return dlc_arg(pool, bits, 0);
    }
    return 0;
}

/* The loads under the casts of a sum. */
static int find_loads(const dlc_pool *pool, dlc_expr sum, dlc_expr loads[DLC_PARTS], uint32_t *n)
{
    const dlc_expr_node *node = dlc_node_of(pool, sum);
    if (node->op == DLC_EXPR_ADD)
        return find_loads(pool, dlc_arg(pool, sum, 0), loads, n) && find_loads(pool, dlc_arg(pool, sum, 1), loads, n);
    if (node->op != DLC_EXPR_CAST || *n == DLC_PARTS)
        return 0;
    loads[*n] = dlc_arg(pool, sum, 0);
    return dlc_node_of(pool, loads[(*n)++])->op == DLC_EXPR_LOAD;
}

/* Both load the same but for one index at most. */
static int is_other_part(const dlc_pool *pool, dlc_expr a, dlc_expr b, uint8_t dim)
{
    const dlc_expr_node *first = dlc_node_of(pool, a), *second = dlc_node_of(pool, b);
    if (first->imm.id != second->imm.id || first->nargs != second->nargs || first->flags != second->flags)
        return 0;
    for (uint32_t i = 0; i < first->nargs; i++)
        if (i != dim && dlc_arg(pool, a, i) != dlc_arg(pool, b, i))
            return 0;
    return 1;
}

int dlc_dot_parts(const dlc_pool *pool, dlc_expr factor, dlc_expr parts[DLC_PARTS], uint8_t *dim)
{
    dlc_expr loads[DLC_PARTS];
    uint32_t n = 0, found = 0;
    if (!find_loads(pool, factor, loads, &n) || n != DLC_PARTS)
        return 0;
    uint32_t rank = dlc_load_rank(pool, loads[0]);
    for (*dim = 0; *dim < rank && dlc_arg(pool, loads[0], *dim) == dlc_arg(pool, loads[1], *dim);)
        ++*dim;
    for (uint32_t i = 0; i < DLC_PARTS; i++) {
        int64_t part;
        if (*dim == rank || !is_other_part(pool, loads[0], loads[i], *dim) ||
            !dlc_expr_is_int(pool, dlc_arg(pool, loads[i], *dim), &part) || part < 0 || part >= DLC_PARTS)
            return 0;
        found |= 1u << part;
        parts[part] = loads[i];
    }
    return found == (1u << DLC_PARTS) - 1;
}

dlc_expr dlc_dot_part(dlc_pool *pool, dlc_expr load, uint8_t dim, dlc_expr part)
{
    const dlc_expr_node node = *dlc_node_of(pool, load);
    uint32_t rank = dlc_load_rank(pool, load);
    dlc_expr index[DLC_MAX_INDEX];
    for (uint32_t i = 0; i < rank; i++)
        index[i] = i == dim ? part : dlc_arg(pool, load, i);
    return dlc_expr_load(pool, (dlc_dtype)node.dtype, node.imm.id, index, rank, dlc_load_guard(pool, load), dlc_load_else(pool, load),
                         node.flags);
}

/* The first part, or 0. */
static dlc_expr first_part(const dlc_pool *pool, dlc_expr factor, uint8_t *dim)
{
    dlc_expr parts[DLC_PARTS];
    return dlc_dot_parts(pool, factor, parts, dim) ? parts[0] : 0;
}

dlc_expr dlc_dot_factor(dlc_dot row, const dlc_pool *pool, dlc_expr factor)
{
    uint8_t dim;
    if (dlc_dots[row].granule == 1)
        return factor;
    if (dlc_dots[row].parts > 1)
        return first_part(pool, factor, &dim);
    return dlc_dots[row].a == DLC_F32 ? uncut(pool, factor) : uncast(pool, factor);
}

/* Codes of few bits are taken apart where a granule of bytes is loaded. */
static void find_packed(const dlc_pool *pool, dlc_dot_operands *operands)
{
    const dlc_expr_node *node = dlc_node_of(pool, operands->columns);
    if (node->op != DLC_EXPR_AND || node->dtype != DLC_U8)
        return;
    for (uint32_t i = 0; i < 2; i++) {
        dlc_expr shifted = dlc_arg(pool, operands->columns, i), mask = dlc_arg(pool, operands->columns, 1 - i);
        if (dlc_node_of(pool, mask)->op != DLC_EXPR_CONST || dlc_node_of(pool, shifted)->op != DLC_EXPR_SHR)
            continue;
        operands->mask = (uint32_t)dlc_node_of(pool, mask)->imm.i;
        operands->shift = dlc_arg(pool, shifted, 1);
        operands->columns = dlc_arg(pool, shifted, 0);
        return;
    }
}

int dlc_dot_unpacks(dlc_kernel *kernel, const dlc_dot_operands *operands, uint32_t columns, uint32_t within)
{
    const dlc_pool *pool = kernel->pool;
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    dlc_expr shift = dlc_node_of(pool, operands->shift)->op == DLC_EXPR_CAST ? dlc_arg(pool, operands->shift, 0) : 0;
    if (!shift || dlc_node_of(pool, shift)->dtype != DLC_I64 || dlc_expr_has_load(pool, shift) ||
        dlc_expr_uses_axis(pool, shift, columns) || dlc_expr_uses_axis(pool, shift, within))
        return 0;
    dlc_interval range = dlc_expr_range(pool, shift, &ranges);
    return range.lo >= 0 && range.hi < 8 && operands->mask << range.hi <= UINT8_MAX;
}

static int is_other_sign(dlc_dtype dtype, dlc_dtype wanted)
{
    return (dtype == DLC_U8 && wanted == DLC_I8) || (dtype == DLC_I8 && wanted == DLC_U8);
}

int dlc_dot_widens(dlc_dot row, dlc_dtype dtype)
{
    return dlc_dots[row].a == DLC_I16 && dlc_is_int(dtype) && dlc_dtypes[dtype].bits == 8;
}

static int is_own_type(dlc_dtype dtype)
{
    return dtype == DLC_F32 || dtype == DLC_F64 || (dlc_is_int(dtype) && dlc_dtype_bytes(dtype) >= 4);
}

int dlc_dot_takes(dlc_dot row, const dlc_pool *pool, dlc_expr rows, dlc_expr columns, dlc_dtype acc, dlc_dot_operands *result)
{
    const dlc_dot_info *info = &dlc_dots[row];
    *result = (dlc_dot_operands){.rows = rows, .columns = columns};
    if (info->granule == 1)
        return is_own_type(acc);
    dlc_expr left = dlc_dot_factor(row, pool, rows), right = dlc_dot_factor(row, pool, columns);
    if (!left || !right)
        return 0;
    result->rows = left;
    result->columns = right;
    if (info->parts > 1 && !(first_part(pool, rows, &result->rows_part) && first_part(pool, columns, &result->columns_part)))
        return 0;
    if (info->family == DLC_FAMILY_LANES)
        find_packed(pool, result);
    dlc_dtype a = dlc_node_of(pool, result->rows)->dtype, b = dlc_node_of(pool, result->columns)->dtype;
    uint8_t nways = info->family == DLC_FAMILY_LANES ? 4 : 1;
    for (uint8_t i = 0; i < nways && acc == info->acc; i++) { /* a changed sign only where it must be */
        dlc_dtype first = i % 2 ? info->b : info->a, second = i % 2 ? info->a : info->b;
        result->is_swapped = i % 2;
        result->is_flipped = i / 2;
        int is_a = a == first || dlc_dot_widens(row, a), is_b = b == second || dlc_dot_widens(row, b);
        if (is_b && (result->is_flipped ? is_other_sign(a, first) : is_a))
            return 1;
    }
    return 0;
}

int dlc_dot_takes_own(dlc_dot row, const dlc_pool *pool, const dlc_stage *stage, dlc_expr value, dlc_dot_operands *operands)
{
    const dlc_expr_node *node = dlc_node_of(pool, value);
    if (stage->combine != DLC_REDUCE_SUM || node->op != DLC_EXPR_MUL || dlc_dots[row].granule == 1 || dlc_dots[row].family != DLC_FAMILY_LANES)
        return 0;
    dlc_expr a = dlc_arg(pool, value, 0), b = dlc_arg(pool, value, 1);
    return dlc_node_of(pool, a)->op == DLC_EXPR_CAST && dlc_node_of(pool, b)->op == DLC_EXPR_CAST &&
           dlc_dot_takes(row, pool, a, b, stage->dtype[0], operands) && !operands->is_flipped && !operands->mask;
}

dlc_dot dlc_dot_of_bytes(const dlc_target *target, const dlc_pool *pool, const dlc_stage *stage, dlc_expr value, dlc_dot_operands *operands)
{
    for (dlc_dot row = DLC_DOT_NONE + 1; row < DLC_DOT_COUNT; row++)
        if (dlc_dots[row].order == DLC_ORDER_EXACT && dlc_dots[row].a == DLC_U8 && dlc_dot_fact(target, row) &&
            dlc_dot_takes_own(row, pool, stage, value, operands))
            return row;
    return DLC_DOT_NONE;
}

int dlc_dot_factors_of(dlc_kernel *kernel, const dlc_schedule_node *leaf, dlc_arena *arena, dlc_dot_factors *result)
{
    const dlc_stage *stage = &kernel->stages.data[leaf->stage];
    dlc_contraction form;
    if (!dlc_contraction_of(kernel, stage, arena, &form))
        return 0;
    int is_swapped = dlc_ids_find(&form.m, leaf->columns, NULL);
    *result = (dlc_dot_factors){.rows = is_swapped ? form.b : form.a, .columns = is_swapped ? form.a : form.b, .scale = form.scale};
    return dlc_dot_takes((dlc_dot)leaf->row, kernel->pool, result->rows, result->columns, stage->dtype[0], &result->operands);
}

/* --- padding --- */

static int is_zero(const dlc_pool *pool, dlc_expr expr)
{
    return dlc_node_of(pool, expr)->op == DLC_EXPR_CONST && dlc_node_of(pool, expr)->imm.i == 0;
}

/* The load that the stage copies and that gives 0 where its guard is false, or 0. */
static dlc_expr padded_load(const dlc_kernel *kernel, uint32_t stage)
{
    dlc_expr value = kernel->stages.data[stage].value[0];
    while (dlc_node_of(kernel->pool, value)->op == DLC_EXPR_CAST)
        value = dlc_arg(kernel->pool, value, 0);
    int is_padded = dlc_node_of(kernel->pool, value)->op == DLC_EXPR_LOAD && dlc_load_guard(kernel->pool, value) &&
                    (!dlc_load_else(kernel->pool, value) || is_zero(kernel->pool, dlc_load_else(kernel->pool, value)));
    return is_padded ? value : 0;
}

/* The copy that the rows' factor reads, or 0. */
static dlc_expr copied_rows(dlc_kernel *kernel, const dlc_schedule *schedule, const dlc_schedule_node *leaf, dlc_arena *arena)
{
    dlc_dot_factors factors;
    if (!dlc_dot_factors_of(kernel, leaf, arena, &factors))
        return 0;
    const dlc_expr_node *node = dlc_node_of(kernel->pool, factors.operands.rows);
    int is_copy = node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id) && DLC_SOURCE_INDEX(node->imm.id) >= schedule->nstages;
    return is_copy ? factors.operands.rows : 0;
}

static int is_skipped(const dlc_kernel *kernel, const dlc_schedule_node *leaf, dlc_expr condition)
{
    const dlc_ids *reduce = &kernel->stages.data[leaf->stage].reduce;
    for (uint32_t i = 0; i < reduce->n; i++) {
        uint32_t at = UINT32_MAX;
        dlc_ids_find(&leaf->over, reduce->data[i], &at);
        if (at >= leaf->nskipped && dlc_expr_uses_axis(kernel->pool, condition, reduce->data[i]))
            return 0;
    }
    return !dlc_expr_has_load(kernel->pool, condition);
}

dlc_expr dlc_dot_inside(dlc_kernel *kernel, const dlc_schedule *schedule, const dlc_schedule_node *leaf, dlc_arena *arena)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr rows = leaf->nskipped ? copied_rows(kernel, schedule, leaf, arena) : 0, inside = 0;
    uint32_t copy = rows ? DLC_SOURCE_INDEX(dlc_node_of(pool, rows)->imm.id) : 0;
    dlc_expr load = rows ? padded_load(kernel, copy) : 0;
    if (!load)
        return 0;
    const dlc_ids *axes = &kernel->stages.data[copy].axes;
    dlc_expr *at = dlc_new_array(arena, dlc_expr, kernel->axes.n);
    for (uint32_t i = 0; i < axes->n; i++)
        at[axes->data[i]] = dlc_arg(pool, rows, i);
    dlc_ids conditions = {0};
    dlc_expr_conjuncts(pool, dlc_expr_substitute(pool, dlc_load_guard(pool, load), at, kernel->axes.n), arena, &conditions);
    for (uint32_t i = 0; i < conditions.n; i++)
        if (is_skipped(kernel, leaf, conditions.data[i]))
            inside = dlc_and(pool, inside, conditions.data[i]);
    return inside;
}

/* --- layout --- */

typedef struct {
    dlc_schedule *schedule;
    dlc_pool *pool;
    dlc_ranges ranges;
    dlc_vec(dlc_interval) intervals;
    dlc_ids extents;
    dlc_vec(int64_t) multiples;
} places;

static places places_begin(dlc_schedule *schedule)
{
    places p = {.schedule = schedule, .pool = schedule->kernel->pool};
    p.ranges = dlc_kernel_ranges(schedule->kernel);
    for (uint32_t a = 0; a < schedule->kernel->axes.n; a++) {
        dlc_vec_push(schedule->arena, &p.intervals, p.ranges.axes[a]);
        dlc_vec_push(schedule->arena, &p.extents, schedule->kernel->axes.data[a].extent);
        dlc_vec_push(schedule->arena, &p.multiples, 1);
    }
    return p;
}

/* A number from 0 to most, besides the kernel's axes. */
static uint32_t number(places *p, int64_t most)
{
    dlc_vec_push(p->schedule->arena, &p->intervals, ((dlc_interval){0, most}));
    dlc_vec_push(p->schedule->arena, &p->extents, dlc_expr_i64(p->pool, most + 1));
    dlc_vec_push(p->schedule->arena, &p->multiples, 1);
    p->ranges.axes = p->intervals.data;
    p->ranges.extents = p->extents.data;
    p->ranges.multiples = p->multiples.data;
    p->ranges.naxes = p->intervals.n;
    return p->intervals.n - 1;
}

/* The offset of a load at the points `at`; tiles that are open where its stage's memory is taken begin at `first`. */
static dlc_expr offset_of(places *p, dlc_expr load, const dlc_expr *at, const dlc_expr *first)
{
    const dlc_kernel *kernel = p->schedule->kernel;
    dlc_source source = dlc_node_of(p->pool, load)->imm.id;
    uint32_t rank = dlc_load_rank(p->pool, load), s = DLC_SOURCE_INDEX(source);
    dlc_expr index[DLC_MAX_INDEX], offset = dlc_expr_i64(p->pool, 0);
    for (uint32_t d = 0; d < rank; d++)
        index[d] = dlc_expr_substitute(p->pool, dlc_arg(p->pool, load, d), at, kernel->axes.n);
    if (!DLC_SOURCE_IS_STAGE(source)) {
        const dlc_buffer *buffer = &kernel->buffers.data[s];
        return dlc_layout_offset(p->pool, &buffer->layout, (uint8_t)rank, buffer->type.dims, index);
    }
    const dlc_home *home = &p->schedule->homes[s];
    if (home->place != DLC_PLACE_SCRATCH)
        return 0;
    for (uint32_t i = 0; i < rank; i++) {
        index[i] = dlc_sub(p->pool, index[i], dlc_expr_substitute(p->pool, home->first[i], first, kernel->axes.n));
        if (!home->layout.nparts)
            offset = dlc_add(p->pool, offset, dlc_mul(p->pool, index[i], home->stride[i]));
    }
    return home->layout.nparts ? dlc_layout_offset(p->pool, &home->layout, (uint8_t)rank, home->size, index) : offset;
}

/* axis = T·q + step·p + inner, T the tile that is open at `at` (0: none is): for the point, and for the tile's beginning. */
static void cut_axis(places *p, uint32_t axis, uint32_t at, int64_t step, dlc_expr inner, dlc_expr *point, dlc_expr *first)
{
    enum { MANY = 1 << 20 };
    uint32_t loop = dlc_schedule_loop_over(p->schedule, at, axis);
    point[axis] = dlc_add(p->pool, dlc_muli(p->pool, dlc_expr_axis(p->pool, number(p, MANY)), step), inner);
    if (loop == DLC_ROOT_NODE)
        return;
    first[axis] = dlc_muli(p->pool, dlc_expr_axis(p->pool, number(p, MANY)), p->schedule->nodes.data[loop].tile);
    point[axis] = dlc_add(p->pool, first[axis], point[axis]);
}

static int64_t stride_along(places *p, dlc_expr offset, uint32_t axis)
{
    dlc_expr coefficient, rest;
    int64_t stride;
    return dlc_expr_linear(p->pool, offset, axis, &coefficient, &rest) && dlc_expr_is_int(p->pool, coefficient, &stride) ? stride
                                                                                                                        : -1;
}

uint32_t dlc_schedule_register_rows(const dlc_schedule *schedule, uint32_t leaf)
{
    int64_t tile = schedule->nodes.data[dlc_schedule_rows(schedule, leaf)].tile;
    return (uint32_t)(tile / ((tile + DLC_TILE_ROWS - 1) / DLC_TILE_ROWS));
}

int dlc_schedule_has_whole_tiles(const dlc_schedule *schedule, uint32_t loop)
{
    int64_t tile = schedule->nodes.data[loop].tile, extent;
    uint32_t axis = schedule->nodes.data[loop].axis;
    if (!dlc_expr_is_int(schedule->kernel->pool, schedule->kernel->axes.data[axis].extent, &extent) || extent % tile)
        return 0;
    for (uint32_t n = loop; n != DLC_ROOT_NODE; n = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, n), axis))
        if (schedule->nodes.data[n].tile % tile)
            return 0;
    return 1;
}

/* A row of family TILE loads 16 granules at once: they follow each other in the rows, and lie at equal distances in the columns. */
static int has_tile_strides(places *p, dlc_expr offset, uint32_t granules, uint32_t rows, int64_t granule, int is_columns)
{
    int64_t along_k = stride_along(p, offset, granules);
    return is_columns ? along_k >= 0 : along_k == granule && stride_along(p, offset, rows) >= 0;
}

int dlc_dot_has_granules(dlc_schedule *schedule, uint32_t leaf, dlc_expr load, int is_columns)
{
    const dlc_schedule_node *node = &schedule->nodes.data[leaf];
    int64_t granule = dlc_dots[node->row].granule, panel = schedule->nodes.data[dlc_schedule_columns(schedule, leaf)].tile;
    int is_tile = dlc_schedule_is_tile(schedule, leaf);
    places p = places_begin(schedule);
    dlc_source source = dlc_node_of(p.pool, load)->imm.id;
    uint32_t at = DLC_SOURCE_IS_STAGE(source) ? schedule->homes[DLC_SOURCE_INDEX(source)].at : DLC_ROOT_NODE;
    dlc_expr *point = dlc_new_array(schedule->arena, dlc_expr, schedule->kernel->axes.n);
    dlc_expr *first = dlc_new_array(schedule->arena, dlc_expr, schedule->kernel->axes.n);
    int64_t lanes = is_tile ? DLC_TILE_COLUMNS : schedule->target->vector_bytes / dlc_dtype_bytes(dlc_dots[node->row].acc);
    uint32_t within = number(&p, granule - 1), vector = number(&p, panel / lanes - 1), lane = number(&p, lanes - 1);
    int is_whole = is_tile && dlc_schedule_has_whole_tiles(schedule, dlc_schedule_rows(schedule, leaf));
    uint32_t height = is_tile ? dlc_schedule_register_rows(schedule, leaf) : 1, row = number(&p, height - 1), granules = p.intervals.n;
    dlc_expr column = dlc_add(p.pool, dlc_muli(p.pool, dlc_expr_axis(p.pool, vector), lanes), dlc_expr_axis(p.pool, lane));
    cut_axis(&p, node->over.data[node->over.n - 1], at, granule, dlc_expr_axis(p.pool, within), point, first);
    if (is_columns)
        cut_axis(&p, node->columns, at, panel, column, point, first);
    else if (is_tile)
        cut_axis(&p, node->rows, at, is_whole ? height : 1, dlc_expr_axis(p.pool, row), point, first);
    dlc_expr offset = offset_of(&p, load, point, first);
    offset = offset ? dlc_expr_simplify(p.pool, offset, &p.ranges) : 0;
    return offset && stride_along(&p, offset, within) == 1 && (!is_columns || stride_along(&p, offset, lane) == granule) &&
           (!is_tile || has_tile_strides(&p, offset, granules, row, granule, is_columns));
}

/* --- tables and short rows --- */

dlc_expr dlc_looked_up(const dlc_target *target, const dlc_kernel *kernel, dlc_expr load)
{
    const dlc_pool *pool = kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, load);
    if (!(target->facts & DLC_HAS_VBMI) || node->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(node->imm.id) || node->flags ||
        dlc_load_guard(pool, load) || dlc_load_rank(pool, load) != 1 || !dlc_is_int(node->dtype) || dlc_dtypes[node->dtype].bits != 8)
        return 0;
    int64_t elements;
    dlc_expr index = dlc_arg(pool, load, 0), byte = dlc_node_of(pool, index)->op == DLC_EXPR_CAST ? dlc_arg(pool, index, 0) : 0;
    int is_table = dlc_expr_is_int(pool, kernel->buffers.data[node->imm.id].type.dims[0], &elements) && elements == DLC_LOOKUP;
    return is_table && byte && dlc_node_of(pool, byte)->dtype == DLC_U8 ? byte : 0;
}

/* Registers of x86-64 have so many bytes: AVX, AVX-512. */
static int has_registers(const dlc_target *target, uint32_t bytes)
{
    return target->kind == DLC_TARGET_CPU && !target->plugin && target->vector_bytes >= bytes && !strncmp(target->triple, "x86_64", 6);
}

/* A lane picks from two registers of its own width: vpermps, and vpermi2ps or a choice between two. SSE has no such instruction. */
uint32_t dlc_longest_row(const dlc_target *target, uint32_t width)
{
    enum { AVX = 32 };
    return has_registers(target, AVX) && width * 4 == target->vector_bytes ? 2 * width : 0;
}

/* --- what code of a schedule needs --- */

static int looks_up(const dlc_schedule *schedule, dlc_arena *scratch)
{
    const dlc_kernel *kernel = schedule->kernel;
    const uint8_t *marks = dlc_kernel_marks(kernel, scratch);
    for (dlc_expr id = 0; id < kernel->pool->nodes.n; id++)
        if (marks[id] && dlc_node_of(kernel->pool, id)->op == DLC_EXPR_LOAD && dlc_looked_up(schedule->target, kernel, id))
            return 1;
    return 0;
}

dlc_dot dlc_dot_of_words(const dlc_target *target)
{
    return dlc_dot_fact(target, DLC_DOT_VPDPWSSD) ? DLC_DOT_VPDPWSSD : dlc_dot_fact(target, DLC_DOT_PMADDWD) ? DLC_DOT_PMADDWD : DLC_DOT_NONE;
}

double dlc_dot_products(dlc_dot row)
{
    return dlc_dots[row].granule / (dlc_dots[row].takes > 1 ? DLC_ADDED_APART : 1);
}

int dlc_rounds_bf16(const dlc_target *target)
{
    enum { LEAST_BYTES = 64 };
    return target->facts & DLC_HAS_BF16 && target->vector_bytes >= LEAST_BYTES;
}

int dlc_goes_by_lanes(const dlc_target *target, const dlc_kernel *kernel, const dlc_stage *stage, uint32_t axis)
{
    return stage->update == DLC_UPDATE_NONE || (target->kind == DLC_TARGET_CPU && dlc_scatters_rows(kernel, stage, axis));
}

int dlc_is_turnable(dlc_dtype dtype)
{
    enum { LANE_BYTES = 4 };
    return dtype != DLC_BOOL && dlc_dtype_bytes(dtype) <= LANE_BYTES;
}

enum { AVX_512 = 64 };

int dlc_turns_rows(const dlc_target *target, dlc_dtype dtype)
{
    enum { LANE_BYTES = 4, HALF = 2 };
    uint32_t bytes = dlc_dtype_bytes(dtype);
    return bytes == LANE_BYTES || (bytes == HALF && dlc_is_float(dtype) && has_registers(target, AVX_512));
}

int dlc_scales(const dlc_target *target)
{
    return has_registers(target, AVX_512);
}

static int makes_bf16(const dlc_kernel *kernel)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (stage->dtype[0] == DLC_BF16 || (stage->buffer != DLC_NO_BUFFER && kernel->buffers.data[stage->buffer].type.dtype == DLC_BF16))
            return 1;
    }
    return 0;
}

/* Of rows, and of products of bytes. */
static uint32_t facts_of_products(const dlc_schedule *schedule)
{
    const dlc_target *target = schedule->target;
    uint32_t facts = 0;
    dlc_dot_operands operands;
    for (uint32_t n = 0; n < schedule->nodes.n; n++)
        if (schedule->nodes.data[n].kind == DLC_LOOP_LEAF)
            facts |= dlc_dot_fact(target, (dlc_dot)schedule->nodes.data[n].row) | dlc_dot_fact(target, (dlc_dot)schedule->nodes.data[n].own);
    for (uint32_t s = 0; s < schedule->kernel->stages.n; s++) {
        const dlc_stage *stage = &schedule->kernel->stages.data[s];
        facts |= dlc_dot_fact(target, dlc_dot_of_bytes(target, schedule->kernel->pool, stage, stage->value[0], &operands));
    }
    return facts;
}

int dlc_interleaves_at_once(const dlc_target *target)
{
    return dlc_scales(target) && target->facts & DLC_HAS_VBMI;
}

/* Granules of four bytes are put together of neighbours' vectors. */
static int interleaves(const dlc_schedule *schedule)
{
    enum { BYTES = 4 };
    int result = 0;
    for (uint32_t n = 0; n < schedule->nodes.n; n++)
        result |= schedule->nodes.data[n].kind == DLC_LOOP_LEAF && dlc_dots[schedule->nodes.data[n].own].granule == BYTES;
    return result && dlc_interleaves_at_once(schedule->target);
}

uint32_t dlc_schedule_facts(const dlc_schedule *schedule, dlc_arena *scratch)
{
    int rounds = dlc_rounds_bf16(schedule->target) && makes_bf16(schedule->kernel);
    int permutes = interleaves(schedule) || looks_up(schedule, scratch);
    return facts_of_products(schedule) | (rounds ? DLC_HAS_BF16 : 0) | (permutes ? DLC_HAS_VBMI : 0);
}

const char *dlc_schedule_peak(const dlc_schedule *schedule)
{
    const uint32_t of_tiles = DLC_HAS_AMX_INT8 | DLC_HAS_AMX_BF16;
    uint32_t facts = facts_of_products(schedule);
    if (schedule->target->kind != DLC_TARGET_CPU)
        return "";
    if (facts & of_tiles) /* what else multiplies is little beside them */
        facts &= of_tiles;
    return dlc_target_facts[facts ? __builtin_ctz(facts) : DLC_IS_FMA].text;
}

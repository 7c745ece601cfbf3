/*
 * The axes of a nest: the kernel's and pseudo-axes, and how offsets go along them. Layouts in blocks have j / 32 and j % 32: vectors that
 * begin at multiples of their width do not cross the end of a block, and with j = width * q + l both are simple in l.
 */
#include "codegen/nest.h"
#include "ir/kernel/nan.h"

#include <string.h>

static void update_ranges(dlc_nest *nest)
{
    nest->ranges.axes = nest->axis_ranges.data;
    nest->ranges.extents = nest->axis_extents.data;
    nest->ranges.multiples = nest->axis_multiples.data;
    nest->ranges.naxes = nest->axis_ranges.n;
}

void dlc_nest_init(dlc_nest *nest, dlc_kernel *kernel, const dlc_schedule *schedule, dlc_emitter *emit,
                   dlc_arena *arena, dlc_diag *diag)
{
    memset(nest, 0, sizeof *nest);
    nest->kernel = kernel;
    nest->schedule = schedule;
    nest->emit = emit;
    nest->arena = arena;
    nest->diag = diag;
    nest->lane = DLC_NO_AXIS;
    nest->width = 1;
    nest->deal = DLC_LOOP_LEAF;
    nest->tiles = dlc_new_array(arena, dlc_tile, kernel->axes.n + 1);
    nest->with = dlc_new_array(arena, dlc_expr, kernel->axes.n + 1);
    nest->registers = dlc_new_array(arena, dlc_register_axis *, kernel->axes.n + 1);
    nest->states = dlc_new_array(arena, dlc_stage_state, kernel->stages.n + 1);
    nest->held = dlc_new_array(arena, dlc_held, kernel->stages.n + 1);
    for (uint32_t s = 0; s < kernel->stages.n; s++) /* of the schedule's kernel, where elementary functions are still that */
        nest->states[s].drops_nan = emit->selects && dlc_nan_arrives_anyway(schedule->kernel, s, arena);
    nest->par = dlc_new_array(arena, uint32_t, schedule->nodes.n + 1);
    nest->firsts = dlc_new_array(arena, dlc_expr, schedule->nodes.n + 1);
    nest->numbers = dlc_new_array(arena, dlc_expr, schedule->nodes.n + 1);
    nest->tallest = dlc_new_array(arena, uint32_t, schedule->nodes.n + 1);
    nest->ranges = dlc_kernel_ranges(kernel);
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        dlc_vec_push(arena, &nest->axis_ranges, nest->ranges.axes[a]);
        dlc_vec_push(arena, &nest->axis_extents, kernel->axes.data[a].extent);
        dlc_vec_push(arena, &nest->axis_multiples, 1);
        dlc_vec_push(arena, &nest->axes, (dlc_memo){0});
    }
    update_ranges(nest);
}

uint32_t dlc_nest_stepped_axis(dlc_nest *nest, dlc_expr extent, int64_t step)
{
    int64_t hi = dlc_expr_range(nest->kernel->pool, extent, &nest->ranges).hi;
    dlc_vec_push(nest->arena, &nest->axis_ranges, ((dlc_interval){0, hi > 0 ? (hi - 1) / step * step : 0}));
    dlc_vec_push(nest->arena, &nest->axis_extents, extent);
    dlc_vec_push(nest->arena, &nest->axis_multiples, step);
    dlc_vec_push(nest->arena, &nest->axes, (dlc_memo){0});
    update_ranges(nest);
    return nest->axes.n - 1;
}

uint32_t dlc_nest_axis(dlc_nest *nest, dlc_expr extent)
{
    return dlc_nest_stepped_axis(nest, extent, 1);
}

static dlc_expr simplified(dlc_nest *nest, dlc_expr expr)
{
    return dlc_expr_simplify(nest->kernel->pool, expr, &nest->ranges);
}

int dlc_nest_is_strided(const dlc_nest *nest, dlc_expr offset, uint32_t axis, int64_t *stride, dlc_expr *rest)
{
    dlc_expr coefficient;
    return dlc_expr_linear(nest->kernel->pool, offset, axis, &coefficient, rest) &&
           dlc_expr_is_int(nest->kernel->pool, coefficient, stride);
}

/* The terms of an i64 sum, ADD nodes flattened; constants apart in *constant. */
void dlc_nest_terms(const dlc_nest *nest, dlc_expr sum, dlc_ids *terms, int64_t *constant)
{
    const dlc_pool *pool = nest->kernel->pool;
    dlc_ids todo = {0};
    *constant = 0;
    dlc_vec_push(nest->arena, &todo, sum);
    while (todo.n) {
        dlc_expr expr = todo.data[--todo.n];
        const dlc_expr_node *node = dlc_node_of(pool, expr);
        int64_t value;
        if (node->op == DLC_EXPR_ADD) {
            dlc_vec_push(nest->arena, &todo, dlc_arg(pool, expr, 1));
            dlc_vec_push(nest->arena, &todo, dlc_arg(pool, expr, 0));
        } else if (dlc_expr_is_int(pool, expr, &value)) {
            *constant = (int64_t)((uint64_t)*constant + (uint64_t)value);
        } else {
            dlc_vec_push(nest->arena, terms, expr);
        }
    }
}

static dlc_expr with_axis(dlc_nest *nest, dlc_expr expr, uint32_t axis, dlc_expr instead)
{
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    with[axis] = instead;
    return dlc_expr_substitute(nest->kernel->pool, expr, with, nest->axes.n);
}

/* The expression by block of lanes and lane in it, axes of their own, where lanes begin at multiples of their number; else 0. */
static dlc_expr in_blocks(dlc_nest *nest, dlc_expr expr)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr base = dlc_expr_axis(pool, nest->lane_base), width = dlc_expr_i64(pool, nest->width);
    if (dlc_expr_multiple(pool, base, &nest->ranges) % nest->width)
        return 0;
    if (nest->blocks.base != nest->lane_base) {
        nest->blocks.base = nest->lane_base;
        nest->blocks.lane = dlc_nest_axis(nest, width);
        dlc_expr last = dlc_addi(pool, nest->axis_extents.data[nest->lane_base], nest->width - 1);
        nest->blocks.block = dlc_nest_axis(nest, dlc_floordiv(pool, last, width));
    }
    dlc_expr lane = dlc_expr_axis(pool, nest->blocks.lane), block = dlc_expr_axis(pool, nest->blocks.block);
    return simplified(nest, with_axis(nest, expr, nest->lane, dlc_add(pool, dlc_muli(pool, block, nest->width), lane)));
}

/* What is left of it in the block that is computed, where nothing of the lane is. */
static dlc_expr in_this_block(dlc_nest *nest, dlc_expr expr)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr base = dlc_expr_axis(pool, nest->lane_base), width = dlc_expr_i64(pool, nest->width);
    return simplified(nest, with_axis(nest, expr, nest->blocks.block, dlc_floordiv(pool, base, width)));
}

dlc_expr dlc_nest_first_in_block(dlc_nest *nest, dlc_expr offset, int64_t *stride)
{
    dlc_expr rest, by_blocks = in_blocks(nest, offset);
    return by_blocks && dlc_nest_is_strided(nest, by_blocks, nest->blocks.lane, stride, &rest) ? in_this_block(nest, rest) : 0;
}

/* Of a condition that is the same for all lanes, though each has its own point, that of any; else 0: neighbours that lie within one row. */
static dlc_expr shared_by_block(dlc_nest *nest, dlc_expr condition)
{
    dlc_expr by_blocks = in_blocks(nest, condition);
    return by_blocks && !dlc_expr_uses_axis(nest->kernel->pool, by_blocks, nest->blocks.lane) ? in_this_block(nest, by_blocks) : 0;
}

dlc_expr dlc_nest_first_of_stride(dlc_nest *nest, dlc_expr offset, uint32_t *stride)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr rest;
    int64_t apart;
    if (!nest->emit->shuffles || !dlc_nest_is_strided(nest, offset, nest->lane, &apart, &rest) || apart < 2 || apart > DLC_MOST_STRIDE)
        return 0;
    *stride = (uint32_t)apart;
    return simplified(nest, dlc_add(pool, rest, dlc_muli(pool, dlc_expr_axis(pool, nest->lane_base), apart)));
}

/* What lane `lane` of a block adds to the offset: the sum of terms in which the lane is. False: something else is in them, too. */
static int find_number(dlc_nest *nest, const dlc_ids *terms, uint32_t lane, int64_t *number)
{
    dlc_expr sum = dlc_expr_i64(nest->kernel->pool, 0);
    for (uint32_t i = 0; i < terms->n; i++)
        sum = dlc_add(nest->kernel->pool, sum,
                      with_axis(nest, terms->data[i], nest->blocks.lane, dlc_expr_i64(nest->kernel->pool, lane)));
    return dlc_expr_is_int(nest->kernel->pool, simplified(nest, sum), number);
}

uint32_t dlc_nest_lanes_on(const dlc_nest *nest)
{
    return !nest->mask ? nest->width : nest->mask == nest->first_mask ? nest->nfirst : 0;
}

/* Of lanes that are off it is that of the first. */
static int find_numbers(dlc_nest *nest, const dlc_ids *terms, uint8_t *numbers, int64_t *least, int64_t *span)
{
    int64_t *all = dlc_new_array(nest->arena, int64_t, nest->width), most = 0;
    uint32_t on = dlc_nest_lanes_on(nest) ? dlc_nest_lanes_on(nest) : nest->width;
    *least = 0;
    for (uint32_t l = 0; l < nest->width; l++) {
        if (l >= on)
            all[l] = all[0];
        else if (!find_number(nest, terms, l, &all[l]))
            return 0;
        *least = l && *least < all[l] ? *least : all[l];
        most = l && most > all[l] ? most : all[l];
    }
    *span = most - *least + 1;
    for (uint32_t l = 0; l < nest->width; l++)
        numbers[l] = (uint8_t)(all[l] - *least);
    return *span <= nest->width;
}

/* A load of whole aligned vectors serves several of such reads, and needs no mask. */
static void widen_spread(dlc_nest *nest, dlc_spread *spread, uint8_t *numbers)
{
    int64_t width = nest->width, before = ((spread->disp % width) + width) % width;
    if (dlc_expr_multiple(nest->kernel->pool, spread->first, &nest->ranges) % width || before + spread->row > width)
        return;
    spread->disp -= before;
    spread->row = nest->width;
    spread->is_whole = 1;
    for (uint32_t l = 0; l < nest->width; l++)
        numbers[l] = (uint8_t)(numbers[l] + before);
}

int dlc_nest_is_spread(dlc_nest *nest, dlc_expr offset, int has_vectors, dlc_spread *spread)
{
    enum { MOST = 64 };
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr by_blocks = nest->emit->shuffles && nest->width <= MOST ? in_blocks(nest, offset) : 0, shared = dlc_expr_i64(pool, 0);
    uint8_t *numbers = dlc_new_array(nest->arena, uint8_t, nest->width);
    dlc_ids terms = {0}, own = {0};
    int64_t constant, least, span;
    if (!by_blocks || dlc_expr_has_load(pool, by_blocks))
        return 0;
    dlc_nest_terms(nest, by_blocks, &terms, &constant);
    for (uint32_t i = 0; i < terms.n; i++)
        if (dlc_expr_uses_axis(pool, terms.data[i], nest->blocks.lane))
            dlc_vec_push(nest->arena, &own, terms.data[i]);
        else
            shared = dlc_add(pool, shared, terms.data[i]);
    if (!find_numbers(nest, &own, numbers, &least, &span))
        return 0;
    *spread = (dlc_spread){in_this_block(nest, shared), constant + least, (uint32_t)span, numbers, 0};
    if (has_vectors)
        widen_spread(nest, spread, numbers);
    return 1;
}

dlc_expr dlc_nest_split_guard(dlc_nest *nest, dlc_expr *guard)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr shared = dlc_expr_bool(pool, 1), own = shared;
    dlc_ids conjuncts = {0};
    uint32_t nshared = 0, nown = 0;
    if (nest->lane == DLC_NO_AXIS || nest->width == 1)
        return 0;
    dlc_expr_conjuncts(pool, *guard, nest->arena, &conjuncts);
    for (uint32_t i = 0; i < conjuncts.n; i++) {
        dlc_expr expr = conjuncts.data[i], same = expr;
        if (dlc_expr_has_load(pool, expr))
            same = 0;
        else if (dlc_expr_uses_axis(pool, expr, nest->lane))
            same = shared_by_block(nest, expr);
        if (same)
            shared = dlc_and(pool, shared, same);
        else
            own = dlc_and(pool, own, expr);
        nshared += same != 0;
        nown += same == 0;
    }
    if (!nshared)
        return 0;
    *guard = nown ? own : shared;
    return nown ? shared : 0;
}

/* Compared as 32 bits: processors without registers for masks compare anew at each use, in a loop too, and 64 bits would take two vectors. */
dlc_val dlc_lanes_below(dlc_nest *nest, dlc_val count, uint32_t width)
{
    dlc_emitter *emit = nest->emit;
    dlc_val lanes = emit->iota(emit, width), end = emit->arith(emit, DLC_EXPR_CAST, DLC_I64, DLC_I32, 1, &count);
    dlc_val operands[] = {emit->arith(emit, DLC_EXPR_CAST, DLC_I64, DLC_I32, width, &lanes), emit->splat(emit, DLC_I32, end, width)};
    return emit->arith(emit, DLC_EXPR_LT, DLC_I32, DLC_BOOL, width, operands);
}

/* --- what axes are replaced by --- */

void dlc_nest_replace(dlc_nest *nest, uint32_t axis, dlc_expr with)
{
    if (axis == DLC_NO_AXIS)
        return;
    nest->nwith += (with != 0) - (nest->with[axis] != 0);
    nest->with[axis] = with;
}

dlc_expr dlc_nest_substitute(dlc_nest *nest, dlc_expr expr, const dlc_expr *with)
{
    dlc_pool *pool = nest->kernel->pool;
    return dlc_expr_simplify(pool, dlc_expr_substitute(pool, expr, with, nest->kernel->axes.n), &nest->ranges);
}

dlc_expr dlc_nest_here(dlc_nest *nest, dlc_expr expr)
{
    return nest->nwith ? dlc_nest_substitute(nest, expr, nest->with) : expr;
}

dlc_expr dlc_nest_slack(dlc_pool *pool, dlc_expr comparison)
{
    const dlc_expr_node *node = dlc_node_of(pool, comparison);
    int is_less = node->op == DLC_EXPR_LT;
    if ((!is_less && node->op != DLC_EXPR_LE) || dlc_node_of(pool, dlc_arg(pool, comparison, 0))->dtype != DLC_I64)
        return 0;
    return dlc_addi(pool, dlc_sub(pool, dlc_arg(pool, comparison, 1), dlc_arg(pool, comparison, 0)), -is_less);
}

static int is_known(dlc_nest *nest, dlc_expr comparison)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr slack = dlc_nest_slack(pool, comparison);
    for (uint32_t i = 0; slack && i < nest->known.n; i++) {
        dlc_expr more = dlc_expr_simplify(pool, dlc_sub(pool, slack, nest->known.data[i]), &nest->ranges);
        if (dlc_expr_range(pool, more, &nest->ranges).lo >= 0)
            return 1;
    }
    return 0;
}

dlc_expr dlc_nest_not_known(dlc_nest *nest, dlc_expr guard)
{
    dlc_pool *pool = nest->kernel->pool;
    if (!guard || !nest->known.n)
        return guard;
    if (dlc_node_of(pool, guard)->op != DLC_EXPR_AND)
        return is_known(nest, guard) ? 0 : guard;
    dlc_expr right = dlc_arg(pool, guard, 1), left = dlc_nest_not_known(nest, dlc_arg(pool, guard, 0));
    right = dlc_nest_not_known(nest, right);
    return left && right ? dlc_and(pool, left, right) : left ? left : right;
}

int dlc_nest_is_narrowed(const dlc_nest *nest)
{
    return nest->width > 1 && nest->emit->target->kind == DLC_TARGET_CPU && !nest->emit->target->plugin;
}

dlc_expr dlc_nest_narrow(dlc_nest *nest, dlc_expr offset, dlc_expr guard, dlc_expr in_range)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_bounds bounds = {.n = 0};
    if (!dlc_nest_is_narrowed(nest))
        return offset;
    dlc_bounds_add(&bounds, pool, guard, &nest->ranges);
    dlc_bounds_add(&bounds, pool, in_range, &nest->ranges);
    dlc_expr small = dlc_expr_narrow(pool, offset, &nest->ranges, &bounds, nest->lane);
    return small ? dlc_expr_cast(pool, DLC_I64, small) : offset;
}

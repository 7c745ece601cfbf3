/*
 * The expression walker: an expression is computed once, at the innermost level among its operands' levels, and remembered
 * for as long as that level's loop iteration lives. Offsets are sums; their terms are added level by level from the outside,
 * so what an inner loop adds is only what changes in it.
 */
#include "codegen/nest.h"

#include "ir/kernel/algebra.h"

#include <assert.h>
#include <string.h>

dlc_kernel *dlc_nest_private_kernel(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena)
{
    uint32_t has = (target && dlc_scales(target) ? DLC_EXPAND_SCALE : 0) | (target && target->facts & DLC_HAS_FMA ? DLC_EXPAND_FMA : 0);
    dlc_kernel *copy = dlc_kernel_clone(kernel, arena);
    for (uint32_t s = 0; s < copy->stages.n; s++)
        for (uint32_t i = 0; i < 2; i++)
            if (copy->stages.data[s].value[i])
                copy->stages.data[s].value[i] = dlc_expr_expand_with(copy->pool, copy->stages.data[s].value[i], has);
    return copy;
}

/* --- levels --- */

void dlc_nest_enter(dlc_nest *nest)
{
    assert(nest->level + 1 < DLC_MAX_LEVELS);
    nest->levels[++nest->level].instance = ++nest->instances;
    nest->at = nest->level;
}

void dlc_nest_leave(dlc_nest *nest)
{
    nest->levels[nest->level].instance = ++nest->instances; /* nothing computed inside is valid any more */
    nest->at = --nest->level;
}

/* Code goes to the end of that level's part in front of its inner loops; returns where it went before. */
static uint32_t go_to(dlc_nest *nest, uint32_t level)
{
    uint32_t before = nest->at;
    nest->emit->position(nest->emit, level);
    nest->at = level;
    return before;
}

static int is_valid(const dlc_nest *nest, const dlc_memo *memo)
{
    return memo->set && memo->level <= nest->level && nest->levels[memo->level].instance == memo->instance;
}

static dlc_memo remember(const dlc_nest *nest, dlc_val value, uint32_t width, uint32_t level)
{
    return (dlc_memo){.value = value, .level = level, .instance = nest->levels[level].instance, .width = (uint16_t)width,
                      .set = 1};
}

dlc_memo dlc_nest_remember(const dlc_nest *nest, dlc_val value, uint32_t width)
{
    return remember(nest, value, width, nest->level);
}

void dlc_nest_bind(dlc_nest *nest, uint32_t axis, dlc_val value, uint32_t width)
{
    nest->axes.data[axis] = remember(nest, value, width, nest->level);
}

dlc_val dlc_nest_loop(dlc_nest *nest, uint32_t axis, dlc_val lo, dlc_val hi, int64_t step)
{
    dlc_val index = nest->emit->loop_begin(nest->emit, lo, hi, step);
    dlc_nest_enter(nest);
    if (axis != DLC_NO_AXIS)
        dlc_nest_bind(nest, axis, index, 1);
    return index;
}

void dlc_nest_loop_end(dlc_nest *nest)
{
    dlc_nest_leave(nest);
    nest->emit->loop_end(nest->emit);
}

dlc_expr dlc_nest_pseudo(dlc_nest *nest, dlc_dtype dtype, dlc_val value, uint32_t width)
{
    dlc_vec_push(nest->arena, &nest->pseudo, remember(nest, value, width, nest->level));
    dlc_source source = DLC_STAGE_SOURCE(DLC_FIRST_PSEUDO + nest->pseudo.n - 1);
    return dlc_expr_load(nest->kernel->pool, dtype, source, NULL, 0, 0, 0, 0);
}

/* --- memo --- */

static dlc_memo *memo_of(dlc_nest *nest, dlc_expr expr)
{
    uint32_t need = nest->kernel->pool->nodes.n;
    if (need > nest->nmemo) {
        dlc_memo *grown = dlc_new_array(nest->arena, dlc_memo, need * 2);
        if (nest->nmemo)
            memcpy(grown, nest->memo, nest->nmemo * sizeof *grown);
        nest->memo = grown;
        nest->nmemo = need * 2;
    }
    return &nest->memo[expr];
}

int dlc_nest_is_known(dlc_nest *nest, dlc_expr expr)
{
    return is_valid(nest, memo_of(nest, expr));
}

/* The memo's value at nest->width, splat once a width at the level where it was made. */
static dlc_val widened(dlc_nest *nest, dlc_memo *memo, dlc_dtype dtype)
{
    if (memo->width == nest->width || nest->width == 1)
        return memo->value;
    if (!memo->splat || memo->splat_width != nest->width) {
        uint32_t before = go_to(nest, memo->level); /* maybe in the midst of something further out than nest->level */
        memo->splat = nest->emit->splat(nest->emit, dtype, memo->value, nest->width);
        memo->splat_width = (uint16_t)nest->width;
        go_to(nest, before);
    }
    return memo->splat;
}

/* --- sums --- */

static int is_sum(const dlc_expr_node *node)
{
    return node->op == DLC_EXPR_ADD && node->dtype == DLC_I64;
}

dlc_val dlc_nest_i64(dlc_nest *nest, int64_t value)
{
    return nest->emit->konst(nest->emit, DLC_I64, (dlc_scalar){.i = value}, 1);
}

static dlc_val add_i64(dlc_nest *nest, dlc_val a, dlc_val b, uint32_t width)
{
    return a ? nest->emit->arith(nest->emit, DLC_EXPR_ADD, DLC_I64, DLC_I64, width, (dlc_val[]){a, b}) : b;
}

static void emit_sum(dlc_nest *nest, dlc_expr expr)
{
    dlc_ids terms = {0};
    int64_t constant;
    dlc_nest_terms(nest, expr, &terms, &constant);
    dlc_memo sum = {0};
    for (uint32_t level = 0; level <= nest->level; level++) {
        for (uint32_t vector = 0; vector < 2; vector++) { /* uniform terms first: fewer vector additions */
            for (uint32_t i = 0; i < terms.n; i++) {
                dlc_memo *term = memo_of(nest, terms.data[i]);
                if (term->level != level || (term->width > 1) != (vector == 1))
                    continue;
                uint32_t width = term->width > 1 || sum.width > 1 ? nest->width : 1;
                dlc_val a = sum.set && sum.width < width ? widened(nest, &sum, DLC_I64) : sum.value;
                dlc_val b = term->width < width ? widened(nest, term, DLC_I64) : term->value;
                uint32_t before = go_to(nest, level);
                sum = remember(nest, add_i64(nest, sum.set ? a : NULL, b, width), width, level);
                go_to(nest, before);
            }
        }
    }
    if (constant || !sum.set) {
        dlc_val value = nest->emit->konst(nest->emit, DLC_I64, (dlc_scalar){.i = constant}, sum.set ? sum.width : 1);
        uint32_t before = go_to(nest, sum.level);
        value = add_i64(nest, sum.set ? sum.value : NULL, value, sum.set ? sum.width : 1);
        go_to(nest, before);
        sum = remember(nest, value, sum.set ? sum.width : 1, sum.level);
    }
    *memo_of(nest, expr) = sum;
}

/* --- loads --- */

/* How a load will be done in the present lane context; offsets and guards are expressions of their own. */
typedef struct {
    dlc_access access;
    dlc_expr offset;   /* uniform modes: at lane 0; gather: per lane, or of a row */
    dlc_expr pick;     /* per lane: the number in that row */
    dlc_expr first;    /* gather: the offset at lane 0 where lanes lie access.stride apart */
    dlc_expr bytes;    /* of scratch */
    dlc_expr guard, otherwise;
    dlc_expr inside;   /* what all lanes share of the guard, or 0 */
    dlc_expr in_range; /* of a checked load */
    const dlc_memo *value; /* of a stage: no memory is read */
    uint32_t pseudo;   /* a value, no memory; UINT32_MAX otherwise */
} load_plan;

static dlc_expr simplified(dlc_nest *nest, dlc_expr expr)
{
    return expr ? dlc_expr_simplify(nest->kernel->pool, expr, &nest->ranges) : 0;
}

/* The constant term goes into the displacement, so that neighbours share an address. */
static void split_constant(dlc_nest *nest, load_plan *plan)
{
    dlc_ids terms = {0};
    dlc_nest_terms(nest, plan->offset, &terms, &plan->access.disp);
    plan->offset = dlc_addi(nest->kernel->pool, plan->offset, -plan->access.disp);
}

/* Decides UNIFORM, VECTOR or GATHER from how `offset` depends on the lane axis. */
static void decide_mode(dlc_nest *nest, load_plan *plan, dlc_expr offset)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr rest;
    int64_t stride;
    plan->offset = offset;
    plan->access.mode = DLC_ACCESS_UNIFORM;
    if (nest->lane == DLC_NO_AXIS || nest->width == 1 || !dlc_expr_uses_axis(pool, offset, nest->lane))
        return;
    plan->access.mode = DLC_ACCESS_GATHER;
    if (dlc_nest_is_strided(nest, offset, nest->lane, &stride, &rest))
        rest = simplified(nest, dlc_add(pool, rest, dlc_muli(pool, dlc_expr_axis(pool, nest->lane_base), stride)));
    else
        rest = dlc_nest_first_in_block(nest, offset, &stride);
    if (!rest || stride != (plan->access.granule ? plan->access.granule : 1))
        return;
    plan->access.mode = DLC_ACCESS_VECTOR;
    plan->offset = rest;
}

/* What a vector's offset, constant and all, is a multiple of. */
static void find_multiple(dlc_nest *nest, load_plan *plan)
{
    enum { MOST = 256 };
    dlc_expr offset = dlc_addi(nest->kernel->pool, plan->offset, plan->access.disp);
    int64_t multiple = dlc_expr_multiple(nest->kernel->pool, offset, &nest->ranges);
    plan->access.multiple = multiple == 0 || multiple > MOST ? MOST : (uint32_t)multiple;
}

static void plan_mode(dlc_nest *nest, load_plan *plan, dlc_expr offset)
{
    decide_mode(nest, plan, offset);
    split_constant(nest, plan);
    if (plan->access.mode == DLC_ACCESS_GATHER && !plan->access.granule)
        plan->first = dlc_nest_first_of_stride(nest, dlc_addi(nest->kernel->pool, offset, -plan->access.disp), &plan->access.stride);
    if (plan->access.mode == DLC_ACCESS_VECTOR)
        find_multiple(nest, plan);
}

dlc_expr dlc_nest_first(dlc_nest *nest, uint32_t at, dlc_expr first)
{
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    for (uint32_t a = 0; a < nest->kernel->axes.n; a++) {
        uint32_t loop = dlc_schedule_loop_over(nest->schedule, at, a);
        with[a] = loop != DLC_ROOT_NODE && nest->firsts[loop] ? nest->firsts[loop] : nest->with[a];
    }
    return simplified(nest, dlc_expr_substitute(nest->kernel->pool, first, with, nest->kernel->axes.n));
}

/* The element of a stage's region in scratch, by one index per axis of the stage. */
static dlc_expr home_offset(dlc_nest *nest, uint32_t s, const dlc_expr *index)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_home *home = &nest->schedule->homes[s];
    uint32_t rank = nest->kernel->stages.data[s].axes.n;
    dlc_expr offset = dlc_expr_i64(pool, 0), at[DLC_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        at[i] = dlc_sub(pool, index[i], dlc_nest_first(nest, home->at, home->first[i]));
        if (!home->layout.nparts)
            offset = dlc_add(pool, offset, dlc_mul(pool, at[i], home->stride[i]));
    }
    if (home->layout.nparts)
        offset = dlc_layout_offset(pool, &home->layout, (uint8_t)rank, home->size, at);
    return offset;
}

/* Each cell of the region is a vector of the lanes that are being walked: all of it is there, lanes that are off too. */
static int is_per_lane(const dlc_nest *nest, uint32_t s)
{
    uint32_t at = nest->schedule->homes[s].at;
    return nest->lane != DLC_NO_AXIS && nest->lane < nest->kernel->axes.n &&
           dlc_schedule_loop_over(nest->schedule, at, nest->lane) != DLC_ROOT_NODE &&
           nest->schedule->nodes.data[dlc_schedule_loop_over(nest->schedule, at, nest->lane)].kind == DLC_LOOP_LANE;
}

enum { WARP = 32 };

static void plan_scratch(dlc_nest *nest, load_plan *plan, uint32_t s, const dlc_expr *index)
{
    plan->access.mem = DLC_MEM_SCRATCH;
    plan->bytes = nest->schedule->homes[s].offset;
    if (dlc_schedule_is_of_warp(nest->schedule, s)) {
        dlc_pool *pool = nest->kernel->pool;
        dlc_expr own = dlc_floordiv(pool, nest->schedule->homes[s].bytes, dlc_expr_i64(pool, nest->schedule->threads / WARP));
        plan->bytes = dlc_add(pool, plan->bytes, dlc_mul(pool, own, dlc_expr_axis(pool, nest->worker[1])));
    }
    plan_mode(nest, plan, simplified(nest, home_offset(nest, s, index)));
    if (plan->access.mode != DLC_ACCESS_VECTOR || !is_per_lane(nest, s))
        return;
    plan->access.aligned = 1;
    plan->access.multiple = nest->width;
}

static void plan_stored(dlc_nest *nest, load_plan *plan, uint32_t s, const dlc_expr *index)
{
    dlc_pool *pool = nest->kernel->pool; /* read back through the store's index */
    const dlc_stage *stage = &nest->kernel->stages.data[s];
    const dlc_buffer *buffer = &nest->kernel->buffers.data[stage->buffer];
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n), at[DLC_MAX_RANK];
    for (uint32_t a = 0; a < stage->axes.n; a++)
        with[stage->axes.data[a]] = index[a];
    for (uint32_t d = 0; d < buffer->type.rank; d++)
        at[d] = dlc_expr_substitute(pool, stage->store.data[d], with, nest->axes.n);
    plan->access.mem = DLC_MEM_BUFFER;
    plan->access.buffer = stage->buffer;
    plan_mode(nest, plan, simplified(nest, dlc_layout_offset(pool, &buffer->layout, buffer->type.rank, buffer->type.dims, at)));
}

/* The point being computed is the one that is read. */
static int is_here(const dlc_nest *nest, uint32_t s, const dlc_expr *index)
{
    const dlc_ids *axes = &nest->kernel->stages.data[s].axes;
    for (uint32_t i = 0; i < axes->n; i++) {
        uint32_t axis = axes->data[i];
        if (index[i] != (nest->with[axis] ? nest->with[axis] : dlc_expr_axis(nest->kernel->pool, axis)))
            return 0;
    }
    return 1;
}

static void plan_stage_load(dlc_nest *nest, load_plan *plan, uint32_t s, const dlc_expr *index)
{
    dlc_stage_state *state = &nest->states[s];
    if (nest->schedule->homes[s].place == DLC_PLACE_REG)
        plan->value = state->value;
    else if (!plan->guard && is_valid(nest, &state->value[0]) && is_here(nest, s, index))
        plan->value = state->value;
    else if (nest->schedule->homes[s].place >= DLC_PLACE_OUTPUT)
        plan_stored(nest, plan, nest->schedule->homes[s].stored, index); /* a stage of the same axes */
    else
        plan_scratch(nest, plan, s, index);
}

/*
 * Lanes that read one short row, each where its own index says, take what they want from a register that has all of it: there is no
 * gather. `at` is the load's index. The row is there as a whole where nothing asks whether it is.
 */
static void plan_row(dlc_nest *nest, load_plan *plan, const dlc_buffer *buffer, const dlc_expr *at)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr first[DLC_MAX_RANK];
    uint32_t rank = buffer->type.rank;
    int64_t length;
    if (plan->access.mode != DLC_ACCESS_GATHER || buffer->layout.nparts || plan->access.granule ||
        dlc_dtype_bytes(plan->access.dtype) != 4 || plan->guard || (plan->in_range && rank > 1) ||
        !dlc_expr_is_int(pool, buffer->type.dims[rank - 1], &length) || length < 2 ||
        length > dlc_longest_row(nest->emit->target, nest->width))
        return;
    memcpy(first, at, rank * sizeof *first);
    first[rank - 1] = dlc_expr_i64(pool, 0);
    dlc_expr row = simplified(nest, dlc_layout_offset(pool, &buffer->layout, (uint8_t)rank, buffer->type.dims, first));
    if (dlc_expr_uses_axis(pool, row, nest->lane))
        return;
    plan->access.row = (uint32_t)length;
    plan->access.disp = 0;
    plan->offset = row;
    plan->pick = simplified(nest, at[rank - 1]);
}

static int fill_of(const dlc_nest *nest, dlc_expr otherwise, dlc_scalar *fill)
{
    *fill = (dlc_scalar){0};
    if (!otherwise)
        return 1;
    const dlc_expr_node *node = dlc_node_of(nest->kernel->pool, otherwise);
    if (node->op != DLC_EXPR_CONST)
        return 0;
    if (dlc_is_float(node->dtype))
        fill->f = node->imm.f;
    else
        fill->i = node->imm.i;
    return 1;
}

/* Lanes that share elements load them once, where all of those are there. */
static void plan_spread(dlc_nest *nest, load_plan *plan, const dlc_buffer *buffer)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr guard = plan->guard, size = dlc_expr_i64(pool, 1), own = guard ? dlc_nest_split_guard(nest, &guard) : 0;
    dlc_spread spread;
    for (uint32_t d = 0; d < buffer->type.rank; d++)
        size = dlc_mul(pool, size, buffer->type.dims[d]);
    int has_vectors = !buffer->layout.nparts && dlc_expr_multiple(pool, size, &nest->ranges) % nest->width == 0;
    int is_guarded_by_lanes = guard && (own || dlc_expr_uses_axis(pool, guard, nest->lane) || dlc_expr_has_load(pool, guard) ||
                               !fill_of(nest, plan->otherwise, &plan->access.fill));
    if (plan->access.row || plan->access.granule || plan->access.stride || plan->in_range || is_guarded_by_lanes ||
        !dlc_nest_is_spread(nest, dlc_addi(pool, plan->offset, plan->access.disp), has_vectors, &spread) ||
        (!dlc_nest_lanes_on(nest) && !spread.is_whole))
        return;
    plan->guard = guard;
    plan->offset = spread.first;
    plan->access.mode = DLC_ACCESS_SPREAD;
    plan->access.disp = spread.disp;
    plan->access.row = spread.row;
    plan->access.numbers = spread.numbers;
}

/* The elements are of the source's type. */
static void plan_granule(const dlc_nest *nest, load_plan *plan, dlc_dtype value, dlc_source source)
{
    uint32_t s = DLC_SOURCE_INDEX(source);
    plan->access.dtype = DLC_SOURCE_IS_STAGE(source) ? nest->kernel->stages.data[s].dtype[0]
                                                     : nest->kernel->buffers.data[s].type.dtype;
    plan->access.granule = dlc_dtype_bytes(value) / dlc_dtype_bytes(plan->access.dtype);
}

static load_plan plan_load(dlc_nest *nest, dlc_expr load)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr_node node = *dlc_node_of(pool, load);
    uint32_t rank = dlc_load_rank(pool, load);
    load_plan plan = {.pseudo = UINT32_MAX, .guard = dlc_nest_not_known(nest, dlc_load_guard(pool, load)), .otherwise = dlc_load_else(pool, load)};
    dlc_expr index[DLC_MAX_RANK * 4];
    plan.access.dtype = node.dtype;
    for (uint32_t d = 0; d < rank; d++)
        index[d] = dlc_arg(pool, load, d);
    uint32_t s = DLC_SOURCE_INDEX(node.imm.id);
    if (node.flags & DLC_LOAD_GRANULE)
        plan_granule(nest, &plan, (dlc_dtype)node.dtype, node.imm.id);
    if (DLC_SOURCE_IS_STAGE(node.imm.id)) {
        if (s >= DLC_FIRST_PSEUDO)
            plan.pseudo = s - DLC_FIRST_PSEUDO;
        else
            plan_stage_load(nest, &plan, s, index);
        if (plan.value && (node.flags & DLC_LOAD_SECOND))
            plan.value++;
        return plan;
    }
    const dlc_buffer *buffer = &nest->kernel->buffers.data[s];
    plan.access.mem = DLC_MEM_BUFFER;
    plan.access.buffer = s;
    if (node.flags & DLC_LOAD_CHECKED) {
        for (uint32_t d = 0; d < rank; d++)
            plan.in_range = dlc_and(pool, plan.in_range, dlc_in_range(pool, index[d], buffer->type.dims[d]));
        plan.in_range = simplified(nest, plan.in_range);
    }
    plan_mode(nest, &plan, simplified(nest, dlc_layout_offset(pool, &buffer->layout, rank, buffer->type.dims, index)));
    dlc_expr byte = plan.access.mode == DLC_ACCESS_GATHER ? dlc_looked_up(nest->emit->target, nest->kernel, load) : 0;
    if (byte) {
        plan.access.mode = DLC_ACCESS_LOOKUP;
        plan.offset = byte;
        return plan;
    }
    plan_row(nest, &plan, buffer, index);
    if (plan.access.mode == DLC_ACCESS_GATHER)
        plan_spread(nest, &plan, buffer);
    if (plan.access.mode == DLC_ACCESS_VECTOR && plan.guard && !plan.in_range && fill_of(nest, plan.otherwise, &plan.access.fill))
        plan.inside = dlc_nest_split_guard(nest, &plan.guard);
    if (plan.access.mode == DLC_ACCESS_GATHER && !plan.access.row && !plan.access.stride && !plan.access.granule)
        plan.offset = dlc_nest_narrow(nest, plan.offset, plan.guard, plan.in_range);
    return plan;
}

static int is_memory(const load_plan *plan)
{
    return plan->pseudo == UINT32_MAX && !plan->value;
}

/* The plain offset of a load and its coefficient of `axis`; false when it has none. */
static int coefficient_of(dlc_nest *nest, dlc_expr load, uint32_t axis, load_plan *plan, dlc_expr *coefficient)
{
    dlc_expr rest;
    if (dlc_node_of(nest->kernel->pool, load)->op != DLC_EXPR_LOAD)
        return 0;
    uint32_t width = nest->width;
    nest->width = 1;
    *plan = plan_load(nest, load);
    nest->width = width;
    return is_memory(plan) && dlc_expr_linear(nest->kernel->pool, plan->offset, axis, coefficient, &rest);
}

int dlc_nest_is_linear(dlc_nest *nest, dlc_expr load, uint32_t axis)
{
    load_plan plan;
    dlc_expr coefficient;
    return coefficient_of(nest, load, axis, &plan, &coefficient) && !plan.guard && !plan.in_range;
}

int64_t dlc_nest_stride(dlc_nest *nest, dlc_expr load, uint32_t axis)
{
    load_plan plan;
    dlc_expr coefficient;
    int64_t stride;
    if (!coefficient_of(nest, load, axis, &plan, &coefficient) ||
        !dlc_expr_is_int(nest->kernel->pool, coefficient, &stride))
        return INT64_MIN;
    return stride;
}

int dlc_nest_crosses(dlc_nest *nest, dlc_expr load, uint32_t axis)
{
    const dlc_expr_node *node = dlc_node_of(nest->kernel->pool, load);
    if (node->op != DLC_EXPR_LOAD || node->flags || !dlc_is_turnable((dlc_dtype)node->dtype) || dlc_nest_stride(nest, load, axis) != 1)
        return 0;
    dlc_expr here = dlc_nest_here(nest, load);
    if (dlc_node_of(nest->kernel->pool, here)->op != DLC_EXPR_LOAD)
        return 0; /* its guard is known to be false */
    load_plan plan = plan_load(nest, here);
    return is_memory(&plan) && plan.access.mode == DLC_ACCESS_GATHER && !(nest->mask && plan.access.mem == DLC_MEM_SCRATCH);
}

int dlc_nest_is_vector(dlc_nest *nest, dlc_expr load)
{
    load_plan plan = plan_load(nest, load);
    return is_memory(&plan) && plan.access.mode == DLC_ACCESS_VECTOR && !plan.guard && !plan.in_range;
}

void dlc_nest_know(dlc_nest *nest, dlc_expr expr, dlc_val value)
{
    *memo_of(nest, expr) = remember(nest, value, nest->width, nest->level);
}

/* Expressions that must be known before the load is emitted; returns how many. */
static uint32_t plan_operands(const load_plan *plan, dlc_expr *operands)
{
    uint32_t n = 0;
    if (is_memory(plan))
        operands[n++] = plan->offset;
    if (plan->pick)
        operands[n++] = plan->pick;
    if (plan->first)
        operands[n++] = plan->first;
    if (plan->bytes)
        operands[n++] = plan->bytes;
    if (plan->guard)
        operands[n++] = plan->guard;
    if (plan->inside)
        operands[n++] = plan->inside;
    if (plan->otherwise)
        operands[n++] = plan->otherwise;
    if (plan->in_range)
        operands[n++] = plan->in_range;
    return n;
}

static dlc_val both(dlc_nest *nest, dlc_val a, dlc_val b, uint32_t width)
{
    if (!a || !b)
        return a ? a : b;
    return nest->emit->arith(nest->emit, DLC_EXPR_AND, DLC_BOOL, DLC_BOOL, width, (dlc_val[]){a, b});
}

static dlc_val at_width(dlc_nest *nest, dlc_expr expr, uint32_t width)
{
    dlc_memo *memo = memo_of(nest, expr);
    return width > 1 ? widened(nest, memo, dlc_node_of(nest->kernel->pool, expr)->dtype) : memo->value;
}

/* Reports indices out of range and returns the guard that keeps the load inside. */
static dlc_val check_range(dlc_nest *nest, const load_plan *plan, dlc_val guard, uint32_t width)
{
    dlc_val in_range = at_width(nest, plan->in_range, width);
    dlc_val bad = nest->emit->arith(nest->emit, DLC_EXPR_NOT, DLC_BOOL, DLC_BOOL, width, &in_range);
    bad = both(nest, bad, guard, width);
    if (width > 1)
        bad = both(nest, bad, nest->mask, width);
    nest->emit->fault(nest->emit, bad, width);
    return both(nest, guard, in_range, width);
}

static dlc_val emit_access(dlc_nest *nest, load_plan *plan, uint32_t *width)
{
    dlc_access *access = &plan->access;
    uint32_t guard_width = plan->guard ? memo_of(nest, plan->guard)->width : 1;
    if (plan->in_range && memo_of(nest, plan->in_range)->width > guard_width)
        guard_width = memo_of(nest, plan->in_range)->width;
    if (guard_width > 1 && access->mode == DLC_ACCESS_UNIFORM)
        access->mode = DLC_ACCESS_GATHER;
    access->width = *width = access->mode == DLC_ACCESS_UNIFORM ? 1 : nest->width;
    access->offset = at_width(nest, plan->offset, access->mode >= DLC_ACCESS_GATHER && !plan->pick ? nest->width : 1);
    access->pick = plan->pick ? at_width(nest, plan->pick, nest->width) : NULL;
    access->first = plan->first ? at_width(nest, plan->first, 1) : NULL;
    access->bytes = plan->bytes ? at_width(nest, plan->bytes, 1) : NULL;
    dlc_val guard = plan->guard ? at_width(nest, plan->guard, guard_width) : NULL;
    if (plan->in_range)
        guard = check_range(nest, plan, guard, guard_width);
    int has_fill = fill_of(nest, plan->otherwise, &access->fill);
    if (plan->inside || (guard && guard_width == 1))
        access->inside = plan->inside ? at_width(nest, plan->inside, 1) : guard;
    if (access->mode != DLC_ACCESS_UNIFORM && access->mode != DLC_ACCESS_LOOKUP) {
        /* a cell of scratch has all lanes, those that are off too */
        access->mask = both(nest, guard_width > 1 ? guard : NULL, access->aligned ? NULL : nest->mask, nest->width);
        if (guard_width > 1 && plan->otherwise)
            access->passthru = at_width(nest, plan->otherwise, nest->width);
    }
    dlc_val value = nest->emit->load(nest->emit, access);
    if (!access->inside || has_fill)
        return value;
    uint32_t other = memo_of(nest, plan->otherwise)->width; /* a computed else value: choose between the two */
    if (other > *width) {
        value = nest->emit->splat(nest->emit, access->dtype, value, nest->width);
        *width = nest->width;
    }
    dlc_val condition = *width > 1 ? nest->emit->splat(nest->emit, DLC_BOOL, access->inside, *width) : access->inside;
    return nest->emit->arith(nest->emit, DLC_EXPR_SELECT, access->dtype, access->dtype, *width,
                             (dlc_val[]){condition, value, at_width(nest, plan->otherwise, *width)});
}

static uint32_t level_of(dlc_nest *nest, const dlc_expr *operands, uint32_t n)
{
    uint32_t level = 0;
    for (uint32_t i = 0; i < n; i++)
        if (memo_of(nest, operands[i])->level > level)
            level = memo_of(nest, operands[i])->level;
    return level;
}

/* The level of the innermost loop around both a stage and what reads it: further out the value is not there yet. */
static uint32_t meeting_level(const dlc_nest *nest, uint32_t s)
{
    for (uint32_t i = nest->nopen; i-- > 0;)
        if (dlc_schedule_is_inside(nest->schedule, nest->schedule->homes[s].leaf, nest->open[i].node))
            return nest->open[i].level;
    return 1; /* the loop over units */
}

/* Where a run may find no points along a dimension that no axis indexes: in front of a loop that then has no points there is nothing to load. */
static int may_be_empty(const dlc_nest *nest, dlc_expr load)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_source source = dlc_node_of(pool, load)->imm.id;
    if (DLC_SOURCE_IS_STAGE(source))
        return 0;
    const dlc_type *type = &nest->kernel->buffers.data[source].type;
    for (uint32_t d = 0; d < type->rank; d++)
        if (!pool->facts.data[dlc_arg(pool, load, d)].axes && dlc_expr_range(pool, type->dims[d], &nest->ranges).lo < 1)
            return 1;
    return 0;
}

static void emit_load(dlc_nest *nest, dlc_expr load, load_plan *plan, const dlc_expr *operands, uint32_t n)
{
    if (!is_memory(plan)) {
        const dlc_memo *value = plan->value ? plan->value : &nest->pseudo.data[plan->pseudo];
        assert(is_valid(nest, value) && !plan->guard); /* lowering made selects of such guards */
        *memo_of(nest, load) = *value;
        return;
    }
    uint32_t level = level_of(nest, operands, n), width;
    dlc_source source = dlc_node_of(nest->kernel->pool, load)->imm.id;
    if (DLC_SOURCE_IS_STAGE(source) && level < meeting_level(nest, DLC_SOURCE_INDEX(source)))
        level = meeting_level(nest, DLC_SOURCE_INDEX(source));
    if ((plan->access.mode != DLC_ACCESS_UNIFORM && nest->mask) || may_be_empty(nest, load))
        level = nest->level; /* that of the mask; where there is something to load */
    else if (plan->access.mode == DLC_ACCESS_VECTOR && nest->axes.data[nest->lane_base].level > level &&
             !plan->access.aligned)
        level = nest->axes.data[nest->lane_base].level;
    uint32_t before = go_to(nest, level);
    dlc_val value = emit_access(nest, plan, &width);
    go_to(nest, before);
    *memo_of(nest, load) = remember(nest, value, width, level);
}

/* --- the walker --- */

static int is_lanes(const dlc_nest *nest, const dlc_expr_node *node)
{
    return node->op == DLC_EXPR_AXIS && node->imm.id == nest->lane && nest->width > 1;
}

/* The axis along the lanes: of i64, or its cast to i32. */
static void emit_lanes(dlc_nest *nest, dlc_expr expr, dlc_dtype dtype)
{
    dlc_emitter *emit = nest->emit;
    dlc_memo base = nest->axes.data[nest->lane_base];
    assert(is_valid(nest, &base));
    uint32_t before = go_to(nest, base.level), width = nest->width;
    dlc_val first = base.value, lanes = emit->iota(emit, width);
    if (dtype != DLC_I64) {
        first = emit->arith(emit, DLC_EXPR_CAST, DLC_I64, dtype, 1, &first);
        lanes = emit->arith(emit, DLC_EXPR_CAST, DLC_I64, dtype, width, &lanes);
    }
    lanes = emit->arith(emit, DLC_EXPR_ADD, dtype, dtype, width, (dlc_val[]){emit->splat(emit, dtype, first, width), lanes});
    go_to(nest, before);
    *memo_of(nest, expr) = remember(nest, lanes, width, base.level);
}

static void emit_leaf(dlc_nest *nest, dlc_expr expr, const dlc_expr_node *node)
{
    dlc_memo *memo = memo_of(nest, expr);
    dlc_scalar value = {0};
    uint32_t before;
    switch (node->op) {
    case DLC_EXPR_CONST:
        if (dlc_is_float(node->dtype))
            value.f = node->imm.f;
        else
            value.i = node->imm.i;
        *memo = remember(nest, nest->emit->konst(nest->emit, node->dtype, value, 1), 1, 0);
        break;
    case DLC_EXPR_SYM:
        before = go_to(nest, 0);
        *memo = remember(nest, nest->emit->symbol(nest->emit, node->imm.id), 1, 0);
        go_to(nest, before);
        break;
    default: /* AXIS */
        if (is_lanes(nest, node)) {
            emit_lanes(nest, expr, DLC_I64);
        } else { /* of a vector of one, the base is the point */
            uint32_t axis = node->imm.id == nest->lane ? nest->lane_base : node->imm.id;
            assert(is_valid(nest, &nest->axes.data[axis]));
            *memo = nest->axes.data[axis];
        }
    }
}

static void emit_arith(dlc_nest *nest, dlc_expr expr, const dlc_expr_node *node, const dlc_expr *operands, uint32_t n)
{
    dlc_val args[4];
    uint32_t width = 1, level = level_of(nest, operands, n);
    dlc_pool *pool = nest->kernel->pool;
    for (uint32_t i = 0; i < n; i++)
        if (memo_of(nest, operands[i])->width > width)
            width = memo_of(nest, operands[i])->width;
    for (uint32_t i = 0; i < n; i++)
        args[i] = at_width(nest, operands[i], width);
    dlc_dtype from = dlc_node_of(pool, operands[n - 1])->dtype;
    uint32_t before = go_to(nest, level);
    dlc_val value = nest->emit->arith(nest->emit, node->op, from, node->dtype, width, args);
    go_to(nest, before);
    *memo_of(nest, expr) = remember(nest, value, width, level);
}

/* Pushes the operands not yet known; true when there were any. */
static int push_unknown(dlc_nest *nest, const dlc_expr *operands, uint32_t n)
{
    uint32_t before = nest->stack.n;
    for (uint32_t i = 0; i < n; i++)
        if (!dlc_nest_is_known(nest, operands[i]))
            dlc_vec_push(nest->arena, &nest->stack, operands[i]);
    return nest->stack.n > before;
}

static void visit(dlc_nest *nest, dlc_expr expr)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr_node node = *dlc_node_of(pool, expr);
    dlc_expr operands[8];
    if (node.op == DLC_EXPR_LOAD) {
        load_plan plan = plan_load(nest, expr);
        uint32_t n = plan_operands(&plan, operands);
        if (!push_unknown(nest, operands, n))
            emit_load(nest, expr, &plan, operands, n);
    } else if (is_sum(&node)) {
        dlc_ids terms = {0};
        int64_t constant;
        dlc_nest_terms(nest, expr, &terms, &constant);
        if (!push_unknown(nest, terms.data, terms.n))
            emit_sum(nest, expr);
    } else if (node.nargs == 0) {
        emit_leaf(nest, expr, &node);
    } else if (node.op == DLC_EXPR_CAST && node.dtype == DLC_I32 && is_lanes(nest, dlc_node_of(pool, dlc_arg(pool, expr, 0))) &&
               dlc_nest_is_narrowed(nest)) {
        emit_lanes(nest, expr, DLC_I32);
    } else if ((operands[0] = dlc_nest_next_quotient(nest, expr)) != 0 ||
               (dlc_nest_is_narrowed(nest) && (operands[0] = dlc_expr_narrow_operands(pool, expr, &nest->ranges, nest->lane)) != 0)) {
        if (!push_unknown(nest, operands, 1))
            *memo_of(nest, expr) = *memo_of(nest, operands[0]);
    } else {
        for (uint32_t i = 0; i < node.nargs; i++)
            operands[i] = dlc_arg(pool, expr, i);
        if (!push_unknown(nest, operands, node.nargs))
            emit_arith(nest, expr, &node, operands, node.nargs);
    }
}

dlc_val dlc_nest_value(dlc_nest *nest, dlc_expr expr, uint32_t *width)
{
    uint32_t bottom = nest->stack.n;
    dlc_vec_push(nest->arena, &nest->stack, expr);
    while (nest->stack.n > bottom) {
        dlc_expr top = nest->stack.data[nest->stack.n - 1];
        if (dlc_nest_is_known(nest, top))
            nest->stack.n--;
        else
            visit(nest, top);
    }
    dlc_memo *memo = memo_of(nest, expr);
    if (width)
        *width = memo->width;
    return memo->value;
}

dlc_val dlc_nest_value_at(dlc_nest *nest, dlc_expr expr)
{
    dlc_nest_value(nest, expr, NULL);
    return at_width(nest, expr, nest->width);
}

dlc_val dlc_nest_uniform(dlc_nest *nest, dlc_expr expr)
{
    uint32_t width;
    dlc_val value = dlc_nest_value(nest, expr, &width);
    assert(width == 1);
    return value;
}

void dlc_nest_fetch(dlc_nest *nest, dlc_expr load, dlc_expr distance)
{
    if (!nest->emit->fetch || dlc_node_of(nest->kernel->pool, load)->op != DLC_EXPR_LOAD)
        return;
    load_plan plan = plan_load(nest, load);
    if (!is_memory(&plan) || plan.access.mode > DLC_ACCESS_VECTOR || (plan.access.mode == DLC_ACCESS_UNIFORM && nest->width > 1) ||
        dlc_expr_has_load(nest->kernel->pool, plan.offset)) /* an index behind the end is not there */
        return;
    plan.access.width = plan.access.mode == DLC_ACCESS_UNIFORM ? 1 : nest->width;
    if (distance)
        plan.offset = dlc_expr_simplify(nest->kernel->pool, dlc_add(nest->kernel->pool, plan.offset, distance), &nest->ranges);
    plan.access.offset = dlc_nest_uniform(nest, plan.offset);
    plan.access.bytes = plan.bytes ? dlc_nest_uniform(nest, plan.bytes) : NULL;
    nest->emit->fetch(nest->emit, &plan.access);
}

/* --- stores --- */

static dlc_val store_offset(dlc_nest *nest, load_plan *plan)
{
    if (plan->access.mode == DLC_ACCESS_GATHER)
        return dlc_nest_value_at(nest, plan->offset);
    return dlc_nest_uniform(nest, plan->offset);
}

/* As its leaf says, where no stage waits for it: such stores may come late. */
static uint8_t is_stored_past_caches(const dlc_nest *nest, uint32_t s)
{
    const dlc_home *home = &nest->schedule->homes[s];
    return nest->schedule->nodes.data[home->leaf].nontemporal && !(home->is_read && home->place == DLC_PLACE_BUFFER);
}

void dlc_nest_store(dlc_nest *nest, uint32_t s, const dlc_expr *index, dlc_val value, uint32_t width)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_stage *stage = &nest->kernel->stages.data[s];
    const dlc_buffer *buffer = &nest->kernel->buffers.data[stage->buffer];
    load_plan plan = {.pseudo = UINT32_MAX};
    plan.access.mem = DLC_MEM_BUFFER;
    plan.access.buffer = stage->buffer;
    plan.access.nontemporal = is_stored_past_caches(nest, s);
    plan.access.dtype = buffer->type.dtype;
    plan_mode(nest, &plan, simplified(nest, dlc_layout_offset(pool, &buffer->layout, buffer->type.rank,
                                                              buffer->type.dims, index)));
    plan.access.offset = store_offset(nest, &plan);
    plan.access.first = plan.first ? dlc_nest_uniform(nest, plan.first) : NULL;
    plan.access.width = plan.access.mode == DLC_ACCESS_UNIFORM ? 1 : nest->width;
    plan.access.mask = plan.access.mode == DLC_ACCESS_UNIFORM ? NULL : nest->mask;
    if (plan.access.width > width)
        value = nest->emit->splat(nest->emit, buffer->type.dtype, value, plan.access.width);
    else if (plan.access.width < width) /* all lanes agree on one place: any of them will do */
        value = nest->emit->lane(nest->emit, buffer->type.dtype, value, width, 0);
    if (stage->update != DLC_UPDATE_NONE)
        dlc_nest_update(nest, &plan.access, index, value, (dlc_update)stage->update);
    else if (!dlc_held_store(nest, s, &plan.access, plan.offset, value))
        nest->emit->store(nest->emit, &plan.access, value);
}

void dlc_nest_store_scratch(dlc_nest *nest, uint32_t s, const dlc_expr *index, dlc_val value, uint32_t width, uint32_t granule)
{
    load_plan plan = {.pseudo = UINT32_MAX, .access.granule = granule};
    dlc_dtype dtype = nest->kernel->stages.data[s].dtype[0];
    plan_scratch(nest, &plan, s, index);
    plan.access.dtype = dtype;
    plan.access.bytes = dlc_nest_uniform(nest, plan.bytes);
    plan.access.offset = store_offset(nest, &plan);
    plan.access.width = plan.access.mode == DLC_ACCESS_UNIFORM ? 1 : nest->width;
    plan.access.mask = plan.access.mode == DLC_ACCESS_UNIFORM || plan.access.aligned ? NULL : nest->mask;
    if (plan.access.width > width)
        value = nest->emit->splat(nest->emit, dtype, value, plan.access.width);
    else if (plan.access.width < width)
        value = nest->emit->lane(nest->emit, dtype, value, width, 0);
    nest->emit->store(nest->emit, &plan.access, value);
}

void dlc_nest_matrices(dlc_nest *nest, dlc_expr load, int is_transposed, dlc_val *result)
{
    load_plan plan = plan_load(nest, load);
    assert(plan.access.mem == DLC_MEM_SCRATCH && plan.access.mode == DLC_ACCESS_UNIFORM);
    plan.access.width = 1;
    plan.access.offset = dlc_nest_uniform(nest, plan.offset);
    plan.access.bytes = dlc_nest_uniform(nest, plan.bytes);
    nest->emit->matrices(nest->emit, &plan.access, is_transposed, result);
}

void dlc_nest_tile(dlc_nest *nest, dlc_expr load, uint32_t tile, int64_t row_bytes)
{
    load_plan plan = plan_load(nest, load);
    assert(plan.access.mode == DLC_ACCESS_UNIFORM && is_memory(&plan) && !plan.guard);
    plan.access.width = 1;
    plan.access.offset = dlc_nest_uniform(nest, plan.offset);
    plan.access.bytes = plan.bytes ? dlc_nest_uniform(nest, plan.bytes) : NULL;
    nest->emit->tiles->load(nest->emit, tile, &plan.access, row_bytes);
}

dlc_expr dlc_nest_reload(dlc_nest *nest, uint32_t s, const dlc_expr *index)
{
    const dlc_stage *stage = &nest->kernel->stages.data[s];
    return dlc_expr_load(nest->kernel->pool, stage->dtype[0], DLC_STAGE_SOURCE(s), index, stage->axes.n, 0, 0, 0);
}

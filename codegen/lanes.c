/*
 * The lanes method: stages computed by vector loops. Either the schedule's lane is a root axis, and a tile is one vector of
 * independent points that every stage computes; or each stage of a row has a lane axis of its own:
 *
 *     for root tile:                       for root tile:
 *       for c = 0, width, …   (root lane)    stage 1: for j = 0, width, … : acc += value     (folded across lanes after)
 *         stage 1: for j: acc += value       stage 2: for j = 0, width, … : store value
 *         stage 2: for j: store value
 */
#include "codegen/nest.h"

#include <assert.h>
#include <string.h>

/* --- reductions --- */

static dlc_scalar extreme(dlc_dtype dtype, int lowest)
{
    dlc_scalar value = {0};
    if (dlc_is_float(dtype)) {
        value.f = lowest ? -__builtin_inf() : __builtin_inf();
    } else if (dlc_is_unsigned(dtype) || dtype == DLC_BOOL) {
        uint32_t bits = dtype == DLC_BOOL ? 1 : dlc_dtypes[dtype].bits;
        value.i = lowest ? 0 : (int64_t)(UINT64_MAX >> (64 - bits));
    } else {
        int64_t max = (int64_t)(UINT64_MAX >> (65 - dlc_dtypes[dtype].bits));
        value.i = lowest ? -max - 1 : max;
    }
    return value;
}

dlc_val dlc_nest_identity(dlc_nest *nest, dlc_reduce reduce, dlc_dtype dtype, uint32_t which, uint32_t width)
{
    dlc_scalar value = {0};
    switch (reduce) {
    case DLC_REDUCE_PROD:
        if (dlc_is_float(dtype))
            value.f = 1;
        else
            value.i = 1;
        break;
    case DLC_REDUCE_ALL:
        value.i = 1;
        break;
    case DLC_REDUCE_MIN:
        value = extreme(dtype, 0);
        break;
    case DLC_REDUCE_MAX:
        value = extreme(dtype, 1);
        break;
    case DLC_REDUCE_ARGMIN:
    case DLC_REDUCE_ARGMIN_LAST:
        value = which ? (dlc_scalar){.i = -1} : extreme(dtype, 0);
        break;
    case DLC_REDUCE_ARGMAX:
    case DLC_REDUCE_ARGMAX_LAST:
        value = which ? (dlc_scalar){.i = -1} : extreme(dtype, 1);
        break;
    default:
        break;
    }
    return nest->emit->konst(nest->emit, dtype, value, width);
}

static dlc_val arith2(dlc_nest *nest, dlc_expr_op op, dlc_dtype dtype, uint32_t width, dlc_val a, dlc_val b)
{
    dlc_dtype to = dlc_exprs[op].result == DLC_RESULT_BOOL ? DLC_BOOL : dtype;
    return nest->emit->arith(nest->emit, op, dtype, to, width, (dlc_val[]){a, b});
}

/* The new pair wins when its key is better, or a first NaN, or equal with the index preferred, or nothing was there yet. */
static void combine_pair(dlc_nest *nest, dlc_reduce reduce, const dlc_dtype *dtypes, uint32_t width, dlc_val *acc,
                         const dlc_val *value)
{
    int max = reduce == DLC_REDUCE_ARGMAX || reduce == DLC_REDUCE_ARGMAX_LAST;
    int last = reduce == DLC_REDUCE_ARGMIN_LAST || reduce == DLC_REDUCE_ARGMAX_LAST;
    dlc_val better = max ? arith2(nest, DLC_EXPR_LT, dtypes[0], width, acc[0], value[0])
                         : arith2(nest, DLC_EXPR_LT, dtypes[0], width, value[0], acc[0]);
    dlc_val same = arith2(nest, DLC_EXPR_EQ, dtypes[0], width, acc[0], value[0]);
    if (dlc_is_float(dtypes[0])) {
        dlc_val new_nan = arith2(nest, DLC_EXPR_NE, dtypes[0], width, value[0], value[0]);
        dlc_val old_nan = arith2(nest, DLC_EXPR_NE, dtypes[0], width, acc[0], acc[0]);
        dlc_val old_number = nest->emit->arith(nest->emit, DLC_EXPR_NOT, DLC_BOOL, DLC_BOOL, width, &old_nan);
        better = arith2(nest, DLC_EXPR_OR, DLC_BOOL, width, better,
                        arith2(nest, DLC_EXPR_AND, DLC_BOOL, width, new_nan, old_number));
        same = arith2(nest, DLC_EXPR_OR, DLC_BOOL, width, same,
                      arith2(nest, DLC_EXPR_AND, DLC_BOOL, width, new_nan, old_nan));
    }
    dlc_val zero = nest->emit->konst(nest->emit, dtypes[1], (dlc_scalar){0}, width);
    dlc_val preferred = last ? arith2(nest, DLC_EXPR_LT, dtypes[1], width, acc[1], value[1])
                             : arith2(nest, DLC_EXPR_LT, dtypes[1], width, value[1], acc[1]);
    preferred = arith2(nest, DLC_EXPR_OR, DLC_BOOL, width, preferred, /* an index of -1 is no candidate */
                       arith2(nest, DLC_EXPR_LT, dtypes[1], width, acc[1], zero));
    dlc_val wins = arith2(nest, DLC_EXPR_OR, DLC_BOOL, width, better,
                          arith2(nest, DLC_EXPR_AND, DLC_BOOL, width, same, preferred));
    wins = arith2(nest, DLC_EXPR_AND, DLC_BOOL, width, wins,
                  arith2(nest, DLC_EXPR_LE, dtypes[1], width, zero, value[1]));
    for (uint32_t i = 0; i < 2; i++)
        acc[i] = nest->emit->arith(nest->emit, DLC_EXPR_SELECT, dtypes[i], dtypes[i], width,
                                   (dlc_val[]){wins, value[i], acc[i]});
}

void dlc_nest_combine(dlc_nest *nest, dlc_reduce reduce, const dlc_dtype *dtypes, uint32_t width, dlc_val *acc,
                      const dlc_val *value)
{
    static const dlc_expr_op ops[DLC_REDUCE_COUNT] = {
        [DLC_REDUCE_SUM] = DLC_EXPR_ADD, [DLC_REDUCE_PROD] = DLC_EXPR_MUL, [DLC_REDUCE_MIN] = DLC_EXPR_MIN,
        [DLC_REDUCE_MAX] = DLC_EXPR_MAX, [DLC_REDUCE_ANY] = DLC_EXPR_OR,   [DLC_REDUCE_ALL] = DLC_EXPR_AND};
    dlc_expr_op op = ops[reduce];
    if (dlc_reduces[reduce].naccs == 2) {
        combine_pair(nest, reduce, dtypes, width, acc, value);
        return;
    }
    if (dtypes[0] == DLC_BOOL && (op == DLC_EXPR_ADD || op == DLC_EXPR_MAX))
        op = DLC_EXPR_OR;
    if (dtypes[0] == DLC_BOOL && (op == DLC_EXPR_MUL || op == DLC_EXPR_MIN))
        op = DLC_EXPR_AND;
    acc[0] = arith2(nest, op, dtypes[0], width, acc[0], value[0]);
}

/* One stage being computed. */
typedef struct {
    uint32_t s;
    const dlc_stage *stage;
    const dlc_stage_plan *plan;
    uint32_t naccs;
    dlc_var acc[2];
    dlc_var partial[8][2]; /* further accumulators of a lane that is folded; [0] is acc */
    uint32_t npartials;
    dlc_ids loops;         /* reduced axes with loops of their own, outer to inner (the lane apart) */
    uint32_t lane;         /* reduced lane axis, or DLC_NO_AXIS */
} fold;

/* acc (op)= value at the current point, all lanes of the present width; lanes off give the identity. */
static void accumulate(dlc_nest *nest, const fold *f, const dlc_var *acc, const dlc_expr *values)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_stage *stage = f->stage;
    uint32_t width = nest->width;
    dlc_val old[2], value[2];
    const dlc_expr_node *node = dlc_node_of(pool, values[0]);
    int is_product = stage->combine == DLC_REDUCE_SUM && node->op == DLC_EXPR_MUL && dlc_is_float(node->dtype);
    if (is_product && (!nest->mask || f->lane == DLC_NO_AXIS)) { /* the step of a sum of products */
        dlc_expr a = dlc_arg(pool, values[0], 0), b = dlc_arg(pool, values[0], 1);
        value[0] = dlc_nest_value_at(nest, a);
        value[1] = dlc_nest_value_at(nest, b);
        old[0] = nest->emit->var_get(nest->emit, acc[0]);
        nest->emit->var_set(nest->emit, acc[0],
                            nest->emit->arith(nest->emit, DLC_EXPR_MULADD, stage->dtype[0], stage->dtype[0], width,
                                              (dlc_val[]){value[0], value[1], old[0]}));
        return;
    }
    for (uint32_t i = 0; i < f->naccs; i++) {
        value[i] = dlc_nest_value_at(nest, values[i]);
        if (nest->mask && f->lane != DLC_NO_AXIS)
            value[i] = nest->emit->arith(
                nest->emit, DLC_EXPR_SELECT, stage->dtype[i], stage->dtype[i], width,
                (dlc_val[]){nest->mask, value[i],
                            dlc_nest_identity(nest, stage->combine, stage->dtype[i], i, width)});
        old[i] = nest->emit->var_get(nest->emit, acc[i]);
    }
    dlc_nest_combine(nest, stage->combine, stage->dtype, width, old, value);
    for (uint32_t i = 0; i < f->naccs; i++)
        nest->emit->var_set(nest->emit, acc[i], old[i]);
}

static void var_init(dlc_nest *nest, const fold *f, dlc_var *acc, uint32_t width)
{
    for (uint32_t i = 0; i < f->naccs; i++) {
        acc[i] = nest->emit->var_new(nest->emit, f->stage->dtype[i], width);
        nest->emit->var_set(nest->emit, acc[i],
                            dlc_nest_identity(nest, f->stage->combine, f->stage->dtype[i], i, width));
    }
}

static int64_t constant_extent(const dlc_nest *nest, uint32_t axis)
{
    int64_t extent;
    return dlc_expr_is_int(nest->kernel->pool, nest->kernel->axes.data[axis].extent, &extent) ? extent : -1;
}

/* All combinations of the reduced axes' values, written out: guards and offsets become constants. */
static void fold_unrolled(dlc_nest *nest, const fold *f)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    int64_t total = 1;
    for (uint32_t i = 0; i < f->loops.n; i++)
        total *= constant_extent(nest, f->loops.data[i]);
    for (int64_t point = 0; point < total; point++) {
        int64_t rest = point;
        dlc_expr values[2] = {0};
        for (uint32_t i = f->loops.n; i-- > 0;) {
            int64_t extent = constant_extent(nest, f->loops.data[i]);
            with[f->loops.data[i]] = dlc_expr_i64(pool, rest % extent);
            rest /= extent;
        }
        for (uint32_t i = 0; i < f->naccs; i++)
            values[i] = dlc_expr_simplify(pool, dlc_expr_substitute(pool, f->stage->value[i], with, nest->axes.n),
                                          &nest->ranges);
        accumulate(nest, f, f->acc, values);
    }
}

static int is_unrolled(const dlc_nest *nest, const fold *f)
{
    int64_t total = 1;
    for (uint32_t i = 0; i < f->loops.n; i++) {
        int64_t extent = constant_extent(nest, f->loops.data[i]);
        if (extent < 0 || extent > f->plan->unroll)
            return 0;
        total *= extent;
    }
    return total <= f->plan->unroll;
}

static void fold_body(dlc_nest *nest, void *ctx)
{
    const fold *f = ctx;
    accumulate(nest, f, f->acc, f->stage->value);
}

static dlc_expr zero_of(dlc_nest *nest)
{
    return dlc_expr_i64(nest->kernel->pool, 0);
}

/* `npartials` vectors a step into accumulators of their own: the latency of one addition is hidden behind the others. */
static void fold_partials(dlc_nest *nest, fold *f, dlc_val *done)
{
    dlc_pool *pool = nest->kernel->pool;
    uint32_t width = nest->schedule->width;
    int64_t step = (int64_t)width * f->npartials;
    dlc_expr extent = nest->kernel->axes.data[f->lane].extent;
    dlc_expr whole = dlc_muli(pool, dlc_floordiv(pool, extent, dlc_expr_i64(pool, step)), step);
    dlc_val hi = dlc_nest_uniform(nest, whole);
    *done = hi;
    uint32_t base = dlc_nest_stepped_axis(nest, extent, width);
    dlc_nest_loop(nest, base, dlc_nest_i64(nest, 0), hi, step);
    nest->lane = f->lane;
    nest->lane_base = base;
    nest->width = width;
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    for (uint32_t p = 0; p < f->npartials; p++) {
        dlc_expr values[2] = {0};
        with[f->lane] = dlc_addi(pool, dlc_expr_axis(pool, f->lane), (int64_t)p * width);
        for (uint32_t i = 0; i < f->naccs; i++)
            values[i] = dlc_expr_substitute(pool, f->stage->value[i], with, nest->axes.n);
        accumulate(nest, f, f->partial[p], values);
    }
    nest->lane = DLC_NO_AXIS;
    nest->width = 1;
    dlc_nest_loop_end(nest);
}

/* What each thread has of acc folded into one: a vector of width / pack. */
static void fold_packs(dlc_nest *nest, const fold *f, dlc_val *acc)
{
    uint32_t pack = nest->schedule->pack, width = nest->schedule->width / pack;
    dlc_val all[2] = {acc[0], acc[1]};
    for (uint32_t p = 0; p < pack; p++) {
        dlc_val other[2];
        for (uint32_t i = 0; i < f->naccs; i++)
            other[i] = nest->emit->part(nest->emit, all[i], p);
        if (p == 0)
            memcpy(acc, other, f->naccs * sizeof *acc);
        else
            dlc_nest_combine(nest, f->stage->combine, f->stage->dtype, width, acc, other);
    }
}

/* Lanes of acc folded into one value, by halves: the same tree for every kind of reduction. */
static void fold_lanes(dlc_nest *nest, const fold *f, dlc_val *acc)
{
    uint32_t width = nest->schedule->width / nest->schedule->pack;
    if (nest->schedule->pack > 1)
        fold_packs(nest, f, acc);
    for (uint32_t half = width / 2; half; half /= 2) {
        dlc_val other[2];
        for (uint32_t i = 0; i < f->naccs; i++)
            other[i] = nest->emit->rotate(nest->emit, f->stage->dtype[i], acc[i], width, half);
        dlc_nest_combine(nest, f->stage->combine, f->stage->dtype, width, acc, other);
    }
    for (uint32_t i = 0; i < f->naccs; i++)
        acc[i] = nest->emit->lane(nest->emit, f->stage->dtype[i], acc[i], width, 0);
}

static void merge_partials(dlc_nest *nest, const fold *f)
{
    for (uint32_t p = 1; p < f->npartials; p++) {
        dlc_val acc[2], other[2];
        for (uint32_t i = 0; i < f->naccs; i++) {
            acc[i] = nest->emit->var_get(nest->emit, f->acc[i]);
            other[i] = nest->emit->var_get(nest->emit, f->partial[p][i]);
        }
        dlc_nest_combine(nest, f->stage->combine, f->stage->dtype, nest->schedule->width, acc, other);
        for (uint32_t i = 0; i < f->naccs; i++)
            nest->emit->var_set(nest->emit, f->acc[i], acc[i]);
    }
}

/* The innermost reduced axis along the lanes, the others in loops around it. */
static void fold_rows(dlc_nest *nest, fold *f, dlc_val *result)
{
    dlc_pool *pool = nest->kernel->pool;
    uint32_t width = nest->schedule->width;
    dlc_expr extent = nest->kernel->axes.data[f->lane].extent, from = zero_of(nest);
    int64_t length = constant_extent(nest, f->lane);
    f->npartials = f->plan->partials > 8 ? 8 : f->plan->partials ? f->plan->partials : 1;
    if (length >= 0 && length < (int64_t)width * f->npartials)
        f->npartials = 1;
    for (uint32_t p = 0; p < f->npartials; p++)
        var_init(nest, f, f->partial[p], width);
    memcpy(f->acc, f->partial[0], sizeof f->acc);
    for (uint32_t i = 0; i < f->loops.n; i++)
        dlc_nest_loop(nest, f->loops.data[i], dlc_nest_i64(nest, 0),
                      dlc_nest_uniform(nest, nest->kernel->axes.data[f->loops.data[i]].extent), 1);
    if (f->npartials > 1) {
        dlc_val done;
        fold_partials(nest, f, &done);
        from = dlc_nest_pseudo(nest, DLC_I64, done, 1);
        if (length >= 0)
            from = dlc_expr_i64(pool, length - length % ((int64_t)width * f->npartials));
    }
    dlc_lanes_loop(nest, f->lane, from, extent, width, fold_body, f);
    for (uint32_t i = f->loops.n; i-- > 0;)
        dlc_nest_loop_end(nest);
    merge_partials(nest, f);
    for (uint32_t i = 0; i < f->naccs; i++)
        result[i] = nest->emit->var_get(nest->emit, f->acc[i]);
    fold_lanes(nest, f, result);
}

/* All reduced axes in loops (or written out); lanes, if any, are independent points. */
static void fold_points(dlc_nest *nest, fold *f, dlc_val *result)
{
    var_init(nest, f, f->acc, nest->width);
    if (is_unrolled(nest, f)) {
        fold_unrolled(nest, f);
    } else {
        for (uint32_t i = 0; i < f->loops.n; i++)
            dlc_nest_loop(nest, f->loops.data[i], dlc_nest_i64(nest, 0),
                          dlc_nest_uniform(nest, nest->kernel->axes.data[f->loops.data[i]].extent), 1);
        accumulate(nest, f, f->acc, f->stage->value);
        for (uint32_t i = f->loops.n; i-- > 0;)
            dlc_nest_loop_end(nest);
    }
    for (uint32_t i = 0; i < f->naccs; i++)
        result[i] = nest->emit->var_get(nest->emit, f->acc[i]);
}

/* The stage's values at the current point of its own axes. */
static uint32_t compute(dlc_nest *nest, fold *f, dlc_val *result)
{
    uint32_t width = nest->width;
    if (f->stage->combine == DLC_REDUCE_NONE)
        result[0] = dlc_nest_value(nest, f->stage->value[0], &width);
    else if (f->lane != DLC_NO_AXIS)
        fold_rows(nest, f, result);
    else
        fold_points(nest, f, result);
    return f->lane != DLC_NO_AXIS ? 1 : width;
}

/* --- stages --- */

static dlc_expr own_offset(dlc_nest *nest, const dlc_home *home, const dlc_stage *stage)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr offset = zero_of(nest);
    for (uint32_t o = 0; o < home->nown; o++) {
        uint32_t axis = stage->axes.data[home->own[o]];
        offset = dlc_add(pool, dlc_mul(pool, offset, nest->kernel->axes.data[axis].extent),
                         dlc_expr_axis(pool, axis));
    }
    return offset;
}

static void keep_in_scratch(dlc_nest *nest, const fold *f, dlc_val value, uint32_t width)
{
    const dlc_home *home = &nest->homes[f->s];
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr offset = own_offset(nest, home, f->stage);
    dlc_dtype dtype = f->stage->dtype[0];
    if (!home->per_lane) {
        dlc_nest_store_scratch(nest, home->bytes, offset, dtype, value, width);
        return;
    }
    dlc_access access = {.mem = DLC_MEM_SCRATCH, .mode = DLC_ACCESS_VECTOR, .aligned = 1, .dtype = dtype,
                         .width = nest->width, .multiple = nest->width};
    access.bytes = dlc_nest_uniform(nest, home->bytes);
    access.offset = dlc_nest_uniform(nest, dlc_expr_simplify(pool, dlc_muli(pool, offset, nest->width), &nest->ranges));
    if (width < nest->width)
        value = nest->emit->splat(nest->emit, dtype, value, nest->width);
    nest->emit->store(nest->emit, &access, value);
}

static void keep(dlc_nest *nest, const fold *f, const dlc_val *result, uint32_t width)
{
    const dlc_stage *stage = f->stage;
    dlc_home *home = &nest->homes[f->s];
    if (stage->buffer != DLC_NO_BUFFER)
        dlc_nest_store(nest, stage->buffer, stage->store.data, result[stage->second], width, stage->update);
    if (home->kind == DLC_HOME_SCRATCH)
        keep_in_scratch(nest, f, result[0], width);
    if (home->kind == DLC_HOME_PSEUDO)
        for (uint32_t i = 0; i < f->naccs; i++)
            dlc_nest_pseudo_set(nest, home->pseudo + i, result[i], width);
}

static void point_body(dlc_nest *nest, void *ctx)
{
    fold *f = ctx;
    dlc_val result[2];
    uint32_t width = compute(nest, f, result);
    keep(nest, f, result, width);
}

static int has(const dlc_ids *ids, uint32_t id)
{
    for (uint32_t i = 0; i < ids->n; i++)
        if (ids->data[i] == id)
            return 1;
    return 0;
}

static void prepare_home(dlc_nest *nest, uint32_t s)
{
    dlc_home *home = &nest->homes[s];
    const dlc_stage *stage = &nest->kernel->stages.data[s];
    const dlc_stage_plan *plan = &nest->schedule->plans[s];
    uint32_t *positions = dlc_new_array(nest->arena, uint32_t, stage->axes.n + 1);
    home->nown = 0;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!dlc_schedule_shares(nest->schedule, stage->axes.data[i]))
            positions[home->nown++] = i;
    home->own = positions;
    home->per_lane = nest->schedule->lane != DLC_NO_AXIS;
    if (plan->place == DLC_PLACE_SCRATCH) {
        home->kind = DLC_HOME_SCRATCH;
        home->bytes = dlc_schedule_offset(nest->kernel, nest->schedule, s, 0);
    } else if (plan->place == DLC_PLACE_BUFFER) {
        home->kind = DLC_HOME_BUFFER;
    } else if (home->kind != DLC_HOME_PSEUDO) {
        home->kind = DLC_HOME_PSEUDO;
        dlc_nest_pseudo(nest, stage->dtype[0], NULL, 1); /* two places: a pair's index follows its key */
        home->pseudo = nest->pseudo.n - 1;
        dlc_nest_pseudo(nest, stage->dtype[0], NULL, 1);
    }
}

static void stage_by_lanes(dlc_nest *nest, uint32_t s)
{
    fold f = {.s = s, .stage = &nest->kernel->stages.data[s], .plan = &nest->schedule->plans[s]};
    uint32_t lane = nest->schedule->lane == DLC_NO_AXIS ? f.plan->lane : DLC_NO_AXIS;
    dlc_ids own = {0};
    f.naccs = dlc_reduces[f.stage->combine].naccs;
    f.lane = DLC_NO_AXIS;
    for (uint32_t i = 0; i < f.stage->axes.n; i++)
        if (!dlc_schedule_loop(nest->schedule, f.stage->axes.data[i]))
            dlc_vec_push(nest->arena, &own, f.stage->axes.data[i]);
    for (uint32_t i = 0; i < f.stage->reduce.n; i++) {
        if (f.stage->reduce.data[i] == lane)
            f.lane = lane;
        else
            dlc_vec_push(nest->arena, &f.loops, f.stage->reduce.data[i]);
    }
    int own_lane = lane != DLC_NO_AXIS && has(&own, lane);
    uint32_t nloops = 0;
    for (uint32_t i = 0; i < own.n; i++) {
        if (own.data[i] == lane)
            continue;
        dlc_nest_loop(nest, own.data[i], dlc_nest_i64(nest, 0),
                      dlc_nest_uniform(nest, nest->kernel->axes.data[own.data[i]].extent), 1);
        nloops++;
    }
    if (own_lane)
        dlc_lanes_loop(nest, lane, zero_of(nest), nest->kernel->axes.data[lane].extent, nest->schedule->width, point_body,
                       &f);
    else
        point_body(nest, &f);
    if (nloops && nest->homes[s].is_met_within)
        nest->emit->sync(nest->emit);
    while (nloops--)
        dlc_nest_loop_end(nest);
    if (nest->homes[s].is_met)
        nest->emit->sync(nest->emit);
}

static int loads(const dlc_nest *nest, const uint8_t *marks, uint32_t s)
{
    const dlc_pool *pool = nest->kernel->pool;
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (node->op == DLC_EXPR_LOAD && node->imm.id == DLC_STAGE_SOURCE(s) && (!marks || marks[id]))
            return 1;
    }
    return 0;
}

static int loads_itself(const dlc_nest *nest, uint32_t s)
{
    const dlc_stage *stage = &nest->kernel->stages.data[s];
    uint8_t *marks = dlc_new_array(nest->arena, uint8_t, nest->kernel->pool->nodes.n);
    for (uint32_t i = 0; i < dlc_reduces[stage->combine].naccs; i++)
        if (stage->value[i])
            dlc_expr_reach(nest->kernel->pool, stage->value[i], marks);
    return loads(nest, marks, s);
}

/* Along a root axis every lane keeps to its own points; else what is in memory passes between lanes. */
static void find_meetings(dlc_nest *nest, uint32_t s)
{
    dlc_home *home = &nest->homes[s];
    int is_update = nest->kernel->stages.data[s].update != DLC_UPDATE_NONE;
    if (nest->schedule->lane != DLC_NO_AXIS || home->kind == DLC_HOME_PSEUDO)
        return;
    home->is_met = is_update || nest->kernel->stages.data[s].buffer == DLC_NO_BUFFER || loads(nest, NULL, s);
    for (uint32_t t = s + 1; t < nest->kernel->stages.n; t++) /* a later stage changes what this one stored */
        home->is_met |= nest->kernel->stages.data[t].update != DLC_UPDATE_NONE;
    home->is_met_within = home->is_met && (is_update || loads_itself(nest, s));
}

void dlc_lanes_stages(dlc_nest *nest)
{
    nest->home_level = nest->level;
    for (uint32_t s = 0; s < nest->kernel->stages.n; s++) /* all first: a recurrence loads later stages */
        prepare_home(nest, s);
    for (uint32_t s = 0; s < nest->kernel->stages.n; s++)
        find_meetings(nest, s);
    for (uint32_t s = 0; s < nest->kernel->stages.n; s++)
        stage_by_lanes(nest, s);
}

/* --- the lane loop --- */

typedef struct {
    uint32_t lane, lane_base, width;
    dlc_val mask;
} lane_context;

static lane_context enter_lanes(dlc_nest *nest, uint32_t axis, uint32_t base, uint32_t width, dlc_val mask)
{
    lane_context before = {nest->lane, nest->lane_base, nest->width, nest->mask};
    nest->lane = axis;
    nest->lane_base = base;
    nest->width = width;
    nest->mask = mask;
    return before;
}

static void leave_lanes(dlc_nest *nest, const lane_context *before)
{
    nest->lane = before->lane;
    nest->lane_base = before->lane_base;
    nest->width = before->width;
    nest->mask = before->mask;
}

static void lanes_rest(dlc_nest *nest, uint32_t axis, uint32_t base, dlc_val from, dlc_val hi, uint32_t width,
                       dlc_lane_body body, void *ctx)
{
    dlc_emitter *emit = nest->emit;
    emit->if_begin(emit, arith2(nest, DLC_EXPR_LT, DLC_I64, 1, from, hi));
    dlc_nest_enter(nest);
    dlc_nest_bind(nest, base, from, 1);
    dlc_val left = arith2(nest, DLC_EXPR_SUB, DLC_I64, 1, hi, from);
    dlc_val mask = arith2(nest, DLC_EXPR_LT, DLC_I64, width, emit->iota(emit, width),
                          emit->splat(emit, DLC_I64, left, width));
    lane_context before = enter_lanes(nest, axis, base, width, mask);
    body(nest, ctx);
    leave_lanes(nest, &before);
    dlc_nest_leave(nest);
    emit->if_end(emit);
}

void dlc_lanes_loop(dlc_nest *nest, uint32_t axis, dlc_expr lo, dlc_expr hi, uint32_t width, dlc_lane_body body,
                    void *ctx)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr length = dlc_expr_simplify(pool, dlc_sub(pool, hi, lo), &nest->ranges);
    uint32_t base = dlc_nest_stepped_axis(nest, nest->kernel->axes.n > axis ? nest->kernel->axes.data[axis].extent : hi,
                                          dlc_expr_multiple(pool, lo, &nest->ranges) % width ? 1 : width);
    int64_t known = -1;
    if (!dlc_expr_is_int(pool, length, &known))
        known = -1;
    dlc_expr whole = dlc_muli(pool, dlc_floordiv(pool, length, dlc_expr_i64(pool, width)), width);
    dlc_val from = dlc_nest_uniform(nest, dlc_expr_simplify(pool, dlc_add(pool, lo, whole), &nest->ranges));
    if (known < 0 || known >= width) {
        dlc_nest_loop(nest, base, dlc_nest_uniform(nest, lo), from, width);
        lane_context before = enter_lanes(nest, axis, base, width, NULL);
        body(nest, ctx);
        leave_lanes(nest, &before);
        dlc_nest_loop_end(nest);
    }
    if (known < 0 || known % width)
        lanes_rest(nest, axis, base, from, dlc_nest_uniform(nest, hi), width, body, ctx);
}

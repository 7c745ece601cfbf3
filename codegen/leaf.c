/*
 * Leaves: a stage's value at the point that the loops around it bind, or a step of its fold. Accumulators live from before the
 * outermost loop that the stage is reduced over to behind it:
 *
 *     acc = identity                      (dlc_leaf_begin_folds)
 *     for …: acc = combine(acc, value)    (dlc_leaf_emit)
 *     merge partials, fold lanes, keep    (dlc_leaf_end_folds)
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

/*
 * The new pair wins when its key is better, or a first NaN, or equal with the index preferred. Where nothing was there yet the index is -1,
 * behind all others, as a number without sign where the first one is preferred; its key is the identity, which is better than none.
 */
static void combine_pair(dlc_nest *nest, dlc_reduce reduce, const dlc_dtype *dtypes, uint32_t width, dlc_val *acc,
                         const dlc_val *value)
{
    int max = reduce == DLC_REDUCE_ARGMAX || reduce == DLC_REDUCE_ARGMAX_LAST;
    int last = reduce == DLC_REDUCE_ARGMIN_LAST || reduce == DLC_REDUCE_ARGMAX_LAST;
    dlc_val low = max ? acc[0] : value[0], high = max ? value[0] : acc[0], better;
    dlc_val same = arith2(nest, DLC_EXPR_EQ, dtypes[0], width, acc[0], value[0]);
    if (dlc_is_float(dtypes[0])) {
        dlc_val new_nan = arith2(nest, DLC_EXPR_NE, dtypes[0], width, value[0], value[0]);
        dlc_val old_nan = arith2(nest, DLC_EXPR_NE, dtypes[0], width, acc[0], acc[0]);
        dlc_val is_number = arith2(nest, DLC_EXPR_EQ, dtypes[0], width, acc[0], acc[0]);
        dlc_val not_better = arith2(nest, DLC_EXPR_LE, dtypes[0], width, high, low); /* nor a NaN */
        better = nest->emit->arith(nest->emit, DLC_EXPR_NOT, DLC_BOOL, DLC_BOOL, width, &not_better);
        better = arith2(nest, DLC_EXPR_AND, DLC_BOOL, width, better, is_number);
        same = arith2(nest, DLC_EXPR_OR, DLC_BOOL, width, same,
                      arith2(nest, DLC_EXPR_AND, DLC_BOOL, width, new_nan, old_nan));
    } else {
        better = arith2(nest, DLC_EXPR_LT, dtypes[0], width, low, high);
    }
    dlc_val index[] = {acc[1], value[1]};
    dlc_dtype bare = dtypes[1] == DLC_I32 ? DLC_U32 : DLC_U64;
    for (uint32_t i = 0; i < 2 && !last; i++)
        index[i] = nest->emit->arith(nest->emit, DLC_EXPR_CAST, dtypes[1], bare, width, &index[i]);
    dlc_val preferred = last ? arith2(nest, DLC_EXPR_LT, dtypes[1], width, index[0], index[1])
                             : arith2(nest, DLC_EXPR_LT, bare, width, index[1], index[0]);
    dlc_val wins = arith2(nest, DLC_EXPR_OR, DLC_BOOL, width, better,
                          arith2(nest, DLC_EXPR_AND, DLC_BOOL, width, same, preferred));
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

static const dlc_stage *stage_of(const dlc_nest *nest, uint32_t s)
{
    return &nest->kernel->stages.data[s];
}

static uint32_t naccs_of(const dlc_nest *nest, uint32_t s)
{
    return dlc_reduces[stage_of(nest, s)->combine].naccs;
}

/*
 * acc + a * b of bytes that are widened lane by lane: a row of dot.def that adds up granules of bytes adds each lane's lowest ones, the
 * others of the factor without sign being zeros. NULL: there is no such row, or value.
 */
static dlc_val add_bytes(dlc_nest *nest, const dlc_stage *stage, dlc_expr value, const dlc_var acc)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_dot_operands operands;
    dlc_dot row = DLC_DOT_NONE;
    if (nest->width > 1 && nest->emit->dot_step)
        row = dlc_dot_of_bytes(nest->emit->target, pool, stage, value, &operands);
    if (row == DLC_DOT_NONE)
        return NULL;
    dlc_val left = dlc_nest_value_at(nest, dlc_arg(pool, value, operands.is_swapped ? 1 : 0));
    dlc_val right = dlc_nest_value_at(nest, dlc_arg(pool, value, operands.is_swapped ? 0 : 1));
    return nest->emit->dot_step(nest->emit, row, nest->width, left, right, nest->emit->var_get(nest->emit, acc));
}

/* acc (op)= value; where a NaN may be lost, by a comparison and a choice, as expr.def has it for numbers. */
static void combine(dlc_nest *nest, uint32_t s, uint32_t width, dlc_val *acc, const dlc_val *value)
{
    const dlc_stage *stage = stage_of(nest, s);
    dlc_dtype dtype = nest->states[s].dtype[0];
    if (!nest->states[s].drops_nan) {
        dlc_nest_combine(nest, stage->combine, nest->states[s].dtype, width, acc, value);
        return;
    }
    dlc_val wins = stage->combine == DLC_REDUCE_MAX ? arith2(nest, DLC_EXPR_LT, dtype, width, value[0], acc[0])
                                                    : arith2(nest, DLC_EXPR_LT, dtype, width, acc[0], value[0]);
    acc[0] = nest->emit->arith(nest->emit, DLC_EXPR_SELECT, dtype, dtype, width, (dlc_val[]){wins, acc[0], value[0]});
}

/* Of accumulators: an index goes along lanes in 32 bits where all of them fit. */
static void find_dtypes(dlc_nest *nest, uint32_t s)
{
    dlc_stage_state *state = &nest->states[s];
    const dlc_stage *stage = stage_of(nest, s);
    memcpy(state->dtype, stage->dtype, sizeof state->dtype);
    if (naccs_of(nest, s) < 2 || state->width < 2 || nest->emit->target->kind != DLC_TARGET_CPU || nest->emit->target->plugin)
        return;
    dlc_interval range = dlc_expr_range(nest->kernel->pool, stage->value[1], &nest->ranges);
    if (range.lo >= INT32_MIN && range.hi <= INT32_MAX)
        state->dtype[1] = DLC_I32;
}

/* A pair whose index is below 0 is no candidate: the identity. */
static void drop_none(dlc_nest *nest, uint32_t s, dlc_val *value)
{
    const dlc_stage *stage = stage_of(nest, s);
    const dlc_dtype *dtype = nest->states[s].dtype;
    if (dlc_expr_range(nest->kernel->pool, stage->value[1], &nest->ranges).lo >= 0)
        return;
    dlc_val zero = nest->emit->konst(nest->emit, dtype[1], (dlc_scalar){0}, nest->width);
    dlc_val is_one = arith2(nest, DLC_EXPR_LE, dtype[1], nest->width, zero, value[1]);
    for (uint32_t i = 0; i < 2; i++)
        value[i] = nest->emit->arith(nest->emit, DLC_EXPR_SELECT, dtype[i], dtype[i], nest->width,
                                     (dlc_val[]){is_one, value[i], dlc_nest_identity(nest, stage->combine, dtype[i], i, nest->width)});
}

/* acc (op)= value at the current point, all lanes of the present width; lanes off give the identity. */
static void accumulate(dlc_nest *nest, uint32_t s, const dlc_var *acc, const dlc_expr *values)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_stage *stage = stage_of(nest, s);
    const dlc_dtype *dtype = nest->states[s].dtype;
    uint32_t width = nest->width;
    int folds_lanes = nest->states[s].lane != DLC_NO_AXIS;
    dlc_val old[2], value[2];
    const dlc_expr_node *node = dlc_node_of(pool, values[0]);
    int is_product = stage->combine == DLC_REDUCE_SUM && node->op == DLC_EXPR_MUL && dlc_is_float(node->dtype);
    if (is_product && (!nest->mask || !folds_lanes)) { /* the step of a sum of products */
        dlc_expr a = dlc_arg(pool, values[0], 0), b = dlc_arg(pool, values[0], 1);
        value[0] = dlc_nest_value_at(nest, a);
        value[1] = dlc_nest_value_at(nest, b);
        old[0] = nest->emit->var_get(nest->emit, acc[0]);
        nest->emit->var_set(nest->emit, acc[0],
                            nest->emit->arith(nest->emit, DLC_EXPR_MULADD, stage->dtype[0], stage->dtype[0], width,
                                              (dlc_val[]){value[0], value[1], old[0]}));
        return;
    }
    dlc_val sum = nest->mask && folds_lanes ? NULL : add_bytes(nest, stage, values[0], acc[0]);
    if (sum) {
        nest->emit->var_set(nest->emit, acc[0], sum);
        return;
    }
    for (uint32_t i = 0; i < naccs_of(nest, s); i++) {
        value[i] = dlc_nest_value_at(nest, i ? dlc_expr_cast(pool, dtype[i], values[i]) : values[i]);
        if (nest->mask && folds_lanes)
            value[i] = nest->emit->arith(
                nest->emit, DLC_EXPR_SELECT, dtype[i], dtype[i], width,
                (dlc_val[]){nest->mask, value[i], dlc_nest_identity(nest, stage->combine, dtype[i], i, width)});
        old[i] = nest->emit->var_get(nest->emit, acc[i]);
    }
    if (naccs_of(nest, s) > 1)
        drop_none(nest, s, value);
    combine(nest, s, width, old, value);
    for (uint32_t i = 0; i < naccs_of(nest, s); i++)
        nest->emit->var_set(nest->emit, acc[i], old[i]);
}

/* --- folds --- */

static int folds_in(const dlc_nest *nest, uint32_t n, uint32_t loop)
{
    const dlc_schedule_node *leaf = &nest->schedule->nodes.data[n];
    return leaf->kind == DLC_LOOP_LEAF && leaf->row == DLC_DOT_NONE && nest->schedule->homes[leaf->stage].fold == loop;
}

/* The same of a thread's register tile. */
static int cuts_tile(const dlc_nest *nest, uint32_t n, uint32_t loop)
{
    const dlc_schedule_node *leaf = &nest->schedule->nodes.data[n];
    return nest->schedule->threads && leaf->kind == DLC_LOOP_LEAF && leaf->row != DLC_DOT_NONE &&
           nest->schedule->homes[leaf->stage].fold == loop;
}

/* The loop around the leaf that folds the stage's lanes, or DLC_ROOT_NODE. */
static uint32_t lane_loop(const dlc_nest *nest, uint32_t leaf, uint32_t fold)
{
    const dlc_schedule *schedule = nest->schedule;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE && n >= fold; n = dlc_schedule_parent(schedule, n))
        if (schedule->nodes.data[n].kind == DLC_LOOP_LANE)
            return n;
    return DLC_ROOT_NODE;
}

/* --- long sums --- */
/*
 * Of 10^7 terms added one by one the last ones lose most of their bits. A sum of floats of more than MOST_TERMS an accumulator, or
 * of as many as only the run knows, is made of parts of PART, and the parts are added with what rounding took away from each sum:
 *
 *     part = acc - lost; next = total + part; lost = (next - total) - part; total = next     (Kahan, 1965)
 *
 * where `lost` is 0 unless that is finite.
 */
enum { PART = 32, MOST_TERMS = 64 };

/* Iterations of a loop; -1: only the run knows. */
static int64_t turns_of(const dlc_nest *nest, uint32_t n)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[n];
    int64_t size, step = node->tile * (node->kind == DLC_LOOP_LANE && node->count ? node->count : 1);
    if (!dlc_expr_is_int(nest->kernel->pool, nest->schedule->ranges[n].size, &size))
        return -1;
    return step > 0 ? (size + step - 1) / step : size;
}

/* Terms that an accumulator of the leaf takes in the loops around it, up to `loop`, which counts if `inclusive`; -1: unknown. */
static int64_t terms_in(const dlc_nest *nest, uint32_t leaf, uint32_t loop, int inclusive)
{
    const dlc_stage *stage = stage_of(nest, nest->schedule->nodes.data[leaf].stage);
    uint8_t own = nest->schedule->nodes.data[leaf].own;
    int64_t terms = own != DLC_DOT_NONE ? dlc_dots[own].granule : 1;
    for (uint32_t n = dlc_schedule_parent(nest->schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(nest->schedule, n)) {
        if (n == loop && !inclusive)
            return terms;
        int64_t turns = dlc_ids_find(&stage->reduce, nest->schedule->nodes.data[n].axis, NULL) ? turns_of(nest, n) : 1;
        if (turns < 0 || __builtin_mul_overflow(terms, turns, &terms))
            return -1;
        if (n == loop)
            return terms;
    }
    return terms;
}

static int is_long(const dlc_nest *nest, uint32_t leaf, uint32_t fold)
{
    const dlc_stage *stage = stage_of(nest, nest->schedule->nodes.data[leaf].stage);
    if (stage->combine != DLC_REDUCE_SUM || !dlc_is_float(stage->dtype[0]) || nest->deal != DLC_LOOP_LEAF)
        return 0;
    int64_t terms = terms_in(nest, leaf, fold, 1);
    return terms < 0 || terms > MOST_TERMS;
}

int dlc_leaf_is_long(const dlc_nest *nest, uint32_t leaf)
{
    return is_long(nest, leaf, nest->schedule->homes[nest->schedule->nodes.data[leaf].stage].fold);
}

/* A leaf whose long sum goes on over the loop's iterations. */
static int is_cut_by(const dlc_nest *nest, uint32_t n, uint32_t loop)
{
    const dlc_schedule_node *leaf = &nest->schedule->nodes.data[n];
    return leaf->kind == DLC_LOOP_LEAF && leaf->row == DLC_DOT_NONE && nest->states[leaf->stage].total &&
           dlc_ids_find(&stage_of(nest, leaf->stage)->reduce, nest->schedule->nodes.data[loop].axis, NULL);
}

int64_t dlc_leaf_part(const dlc_nest *nest, uint32_t node)
{
    int64_t part = 0, turns = turns_of(nest, node);
    for (uint32_t n = node + 1; n < nest->schedule->nodes.data[node].end; n++) {
        if (!is_cut_by(nest, n, node))
            continue;
        int64_t inner = terms_in(nest, n, node, 0), these = inner < 1 || inner >= PART ? 1 : PART / inner;
        part = part && part < these ? part : these;
    }
    return turns >= 0 && turns <= part ? 0 : part;
}

/* A total that is infinite, or has just become so, has lost nothing: what is not finite less itself is no number. */
static dlc_val finite_or_zero(dlc_nest *nest, dlc_dtype dtype, uint32_t width, dlc_val x)
{
    dlc_val zero = dlc_nest_identity(nest, DLC_REDUCE_SUM, dtype, 0, width), none = arith2(nest, DLC_EXPR_SUB, dtype, width, x, x);
    dlc_val is_finite = arith2(nest, DLC_EXPR_EQ, dtype, width, none, none);
    return nest->emit->arith(nest->emit, DLC_EXPR_SELECT, dtype, dtype, width, (dlc_val[]){is_finite, x, zero});
}

void dlc_leaf_end_part(dlc_nest *nest, uint32_t node)
{
    dlc_emitter *emit = nest->emit;
    for (uint32_t n = node + 1; n < nest->schedule->nodes.data[node].end; n++) {
        uint32_t s = nest->schedule->nodes.data[n].stage;
        if (!is_cut_by(nest, n, node))
            continue;
        dlc_stage_state *state = &nest->states[s];
        dlc_dtype dtype = stage_of(nest, s)->dtype[0];
        for (uint32_t p = 0; p < state->npartials; p++) {
            dlc_val total = emit->var_get(emit, state->total[p][0]), lost = emit->var_get(emit, state->total[p][1]);
            dlc_val part = arith2(nest, DLC_EXPR_SUB, dtype, state->width, emit->var_get(emit, state->acc[p][0]), lost);
            dlc_val next = arith2(nest, DLC_EXPR_ADD, dtype, state->width, total, part);
            dlc_val taken = arith2(nest, DLC_EXPR_SUB, dtype, state->width, next, total);
            dlc_val rest = arith2(nest, DLC_EXPR_SUB, dtype, state->width, taken, part);
            emit->var_set(emit, state->total[p][1], finite_or_zero(nest, dtype, state->width, rest));
            emit->var_set(emit, state->total[p][0], next);
            emit->var_set(emit, state->acc[p][0], dlc_nest_identity(nest, DLC_REDUCE_SUM, dtype, 0, state->width));
        }
    }
}

static void begin_totals(dlc_nest *nest, uint32_t s)
{
    dlc_stage_state *state = &nest->states[s];
    dlc_dtype dtype = stage_of(nest, s)->dtype[0];
    state->total = dlc_arena_array(nest->arena, state->npartials, sizeof *state->total, sizeof(void *));
    for (uint32_t p = 0; p < state->npartials; p++)
        for (uint32_t i = 0; i < 2; i++) {
            state->total[p][i] = nest->emit->var_new(nest->emit, dtype, state->width);
            nest->emit->var_set(nest->emit, state->total[p][i], dlc_nest_identity(nest, DLC_REDUCE_SUM, dtype, 0, state->width));
        }
}

/* The last part and all before it. */
static dlc_val whole_sum(dlc_nest *nest, uint32_t s, uint32_t partial, dlc_val part)
{
    const dlc_stage_state *state = &nest->states[s];
    dlc_dtype dtype = stage_of(nest, s)->dtype[0];
    dlc_val lost = nest->emit->var_get(nest->emit, state->total[partial][1]);
    return arith2(nest, DLC_EXPR_ADD, dtype, state->width, nest->emit->var_get(nest->emit, state->total[partial][0]),
                  arith2(nest, DLC_EXPR_SUB, dtype, state->width, part, lost));
}

/* --- accumulators --- */

static void begin_fold(dlc_nest *nest, uint32_t leaf, uint32_t fold)
{
    uint32_t s = nest->schedule->nodes.data[leaf].stage, loop = lane_loop(nest, leaf, fold);
    dlc_stage_state *state = &nest->states[s];
    const dlc_stage *stage = stage_of(nest, s);
    state->npartials = 1;
    state->width = nest->width;
    state->lane = DLC_NO_AXIS;
    if (loop != DLC_ROOT_NODE) {
        const dlc_schedule_node *lane = &nest->schedule->nodes.data[loop];
        state->lane = lane->axis;
        state->width = (uint32_t)lane->tile;
        state->npartials = lane->count;
    }
    find_dtypes(nest, s);
    state->acc = dlc_arena_array(nest->arena, state->npartials, sizeof *state->acc, sizeof(void *));
    for (uint32_t p = 0; p < state->npartials; p++)
        for (uint32_t i = 0; i < naccs_of(nest, s); i++) {
            state->acc[p][i] = nest->emit->var_new(nest->emit, state->dtype[i], state->width);
            nest->emit->var_set(nest->emit, state->acc[p][i],
                                dlc_nest_identity(nest, stage->combine, state->dtype[i], i, state->width));
        }
    state->total = NULL;
    if (is_long(nest, leaf, fold))
        begin_totals(nest, s);
}

void dlc_leaf_begin_folds(dlc_nest *nest, uint32_t node)
{
    for (uint32_t n = node + 1; n < nest->schedule->nodes.data[node].end; n++)
        if (folds_in(nest, n, node))
            begin_fold(nest, n, node);
        else if (cuts_tile(nest, n, node))
            dlc_dot_begin(nest, n);
}

/* What each thread has of acc folded into one: a vector of width / pack. */
static void fold_packs(dlc_nest *nest, uint32_t s, uint32_t pack, dlc_val *acc)
{
    uint32_t width = nest->states[s].width / pack;
    dlc_val all[2] = {acc[0], acc[1]};
    for (uint32_t p = 0; p < pack; p++) {
        dlc_val other[2];
        for (uint32_t i = 0; i < naccs_of(nest, s); i++)
            other[i] = nest->emit->part(nest->emit, all[i], p);
        if (p == 0)
            memcpy(acc, other, naccs_of(nest, s) * sizeof *acc);
        else
            combine(nest, s, width, acc, other);
    }
}

/* Lanes of acc folded into one value, by halves: the same tree for every kind of reduction. */
static void fold_lanes(dlc_nest *nest, uint32_t s, dlc_val *acc)
{
    uint32_t pack = dlc_schedule_pack_of(nest->schedule), width = nest->states[s].width / pack;
    if (pack > 1)
        fold_packs(nest, s, pack, acc);
    for (uint32_t half = width / 2; half; half /= 2) {
        dlc_val other[2];
        for (uint32_t i = 0; i < naccs_of(nest, s); i++)
            other[i] = nest->emit->rotate(nest->emit, nest->states[s].dtype[i], acc[i], width, half);
        combine(nest, s, width, acc, other);
    }
    for (uint32_t i = 0; i < naccs_of(nest, s); i++)
        acc[i] = nest->emit->lane(nest->emit, nest->states[s].dtype[i], acc[i], width, 0);
}

static void end_fold(dlc_nest *nest, uint32_t s)
{
    const dlc_stage *stage = stage_of(nest, s);
    const dlc_stage_state *state = &nest->states[s];
    dlc_val acc[2], other[2];
    for (uint32_t p = 0; p < state->npartials; p++) {
        for (uint32_t i = 0; i < naccs_of(nest, s); i++)
            (p ? other : acc)[i] = nest->emit->var_get(nest->emit, state->acc[p][i]);
        if (state->total)
            *(p ? other : acc) = whole_sum(nest, s, p, *(p ? other : acc));
        if (p)
            combine(nest, s, state->width, acc, other);
    }
    if (state->lane != DLC_NO_AXIS)
        fold_lanes(nest, s, acc);
    uint32_t width = state->lane != DLC_NO_AXIS ? 1 : state->width;
    if (naccs_of(nest, s) > 1 && state->dtype[1] != stage->dtype[1])
        acc[1] = nest->emit->arith(nest->emit, DLC_EXPR_CAST, (dlc_dtype)state->dtype[1], (dlc_dtype)stage->dtype[1], width, &acc[1]);
    dlc_leaf_keep(nest, s, acc, width);
}

void dlc_leaf_end_folds(dlc_nest *nest, uint32_t node)
{
    for (uint32_t n = node + 1; n < nest->schedule->nodes.data[node].end; n++)
        if (folds_in(nest, n, node))
            end_fold(nest, nest->schedule->nodes.data[n].stage);
        else if (cuts_tile(nest, n, node))
            dlc_dot_end(nest, n);
}

/* --- values --- */

/* What is read back from memory has been rounded to the type, which halves are not in registers. */
static int is_forwarded(const dlc_nest *nest, uint32_t s)
{
    const dlc_stage *stage = stage_of(nest, s);
    int is_half = stage->dtype[0] == DLC_F16 || stage->dtype[0] == DLC_BF16;
    return nest->schedule->homes[s].place == DLC_PLACE_REG ||
           (!is_half && stage->update == DLC_UPDATE_NONE && naccs_of(nest, s) == 1);
}

void dlc_leaf_keep(dlc_nest *nest, uint32_t s, const dlc_val *result, uint32_t width)
{
    const dlc_stage *stage = stage_of(nest, s);
    dlc_stage_state *state = &nest->states[s];
    dlc_expr index[DLC_MAX_INDEX];
    if (stage->buffer != DLC_NO_BUFFER) {
        for (uint32_t i = 0; i < stage->store.n; i++)
            index[i] = dlc_nest_here(nest, stage->store.data[i]);
        if (!dlc_turn_waits(nest, s, index, result[stage->second], width))
            dlc_nest_store(nest, s, index, result[stage->second], width);
    }
    if (nest->schedule->homes[s].place == DLC_PLACE_OUTPUT) {
        uint32_t stored = nest->schedule->homes[s].stored;
        for (uint32_t i = 0; i < stage_of(nest, stored)->store.n; i++)
            index[i] = dlc_nest_here(nest, stage_of(nest, stored)->store.data[i]);
        dlc_nest_store(nest, stored, index, result[0], width);
    }
    if (nest->schedule->homes[s].place == DLC_PLACE_SCRATCH) {
        for (uint32_t i = 0; i < stage->axes.n; i++)
            index[i] = dlc_nest_here(nest, dlc_expr_axis(nest->kernel->pool, stage->axes.data[i]));
        dlc_nest_store_scratch(nest, s, index, result[0], width, 0);
    }
    for (uint32_t i = 0; i < naccs_of(nest, s) && is_forwarded(nest, s); i++)
        state->value[i] = dlc_nest_remember(nest, result[i], width);
}

/* What the values read of buffers some iterations of the loop around the lanes later; of a register tile's row, a line at a time. */
static void fetch_ahead(dlc_nest *nest, uint32_t node, const dlc_stage *stage, uint32_t nvalues)
{
    const dlc_schedule_node *loop = &nest->schedule->nodes.data[dlc_schedule_ahead_loop(nest->schedule, node)];
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr last = 0, before = nest->with[loop->axis], here = dlc_nest_here(nest, dlc_expr_axis(pool, loop->axis));
    uint8_t *marks = dlc_new_array(nest->arena, uint8_t, pool->nodes.n);
    for (uint32_t i = 0; i < nvalues; i++) {
        dlc_expr_reach(pool, stage->value[i], marks);
        last = stage->value[i] > last ? stage->value[i] : last;
    }
    dlc_nest_replace(nest, loop->axis, dlc_addi(pool, here, nest->schedule->nodes.data[node].ahead * loop->tile));
    for (dlc_expr e = 1; e <= last; e++) {
        const dlc_expr_node *load = dlc_node_of(pool, e);
        if (marks[e] && load->op == DLC_EXPR_LOAD && !DLC_SOURCE_IS_STAGE(load->imm.id) && dlc_expr_uses_axis(pool, e, loop->axis) &&
            nest->vector * nest->width * dlc_dtype_bytes(load->dtype) % DLC_LINE_BYTES == 0)
            dlc_nest_fetch(nest, dlc_nest_here(nest, e), 0);
    }
    dlc_nest_replace(nest, loop->axis, before);
}

void dlc_leaf_emit(dlc_nest *nest, uint32_t node)
{
    const dlc_schedule_node *leaf = &nest->schedule->nodes.data[node];
    uint32_t s = leaf->stage, width = nest->width;
    const dlc_stage *stage = stage_of(nest, s);
    const dlc_stage_state *state = &nest->states[s];
    dlc_expr values[2] = {0};
    for (uint32_t i = 0; i < naccs_of(nest, s); i++)
        values[i] = dlc_nest_here(nest, stage->value[i]);
    if (leaf->ahead && leaf->row == DLC_DOT_NONE && !nest->schedule->threads)
        fetch_ahead(nest, node, stage, naccs_of(nest, s));
    if (leaf->row != DLC_DOT_NONE) {
        dlc_dot_emit(nest, node);
    } else if (leaf->own != DLC_DOT_NONE) {
        const dlc_var acc = state->acc[nest->partial < state->npartials ? nest->partial : 0][0];
        nest->emit->var_set(nest->emit, acc, dlc_own_dot(nest, node, nest->emit->var_get(nest->emit, acc)));
    } else if (stage->combine != DLC_REDUCE_NONE && nest->schedule->homes[s].fold != DLC_ROOT_NODE) {
        accumulate(nest, s, state->acc[nest->partial < state->npartials ? nest->partial : 0], values);
    } else {
        dlc_val result[2] = {0};
        for (uint32_t i = 0; i < naccs_of(nest, s); i++)
            result[i] = naccs_of(nest, s) > 1 ? dlc_nest_value_at(nest, values[i]) : dlc_nest_value(nest, values[i], &width);
        dlc_late_store(nest, s);
        dlc_leaf_keep(nest, s, result, width);
    }
}

/* --- several vectors a step --- */

/* Does an index of the load come from memory itself? */
static int follows(const dlc_pool *pool, dlc_expr load)
{
    for (uint32_t d = 0; d < dlc_load_rank(pool, load); d++)
        if (dlc_expr_has_load(pool, dlc_arg(pool, load, d)))
            return 1;
    return 0;
}

/* The loads of an expression, each behind those that it waits for; none where one of them is of a stage, which may not be there yet, or
 * where none waits. */
static dlc_ids waiting_loads(const dlc_nest *nest, dlc_expr root)
{
    const dlc_pool *pool = nest->kernel->pool;
    uint8_t *marks = dlc_new_array(nest->arena, uint8_t, pool->nodes.n);
    dlc_ids loads = {0};
    int waits = 0;
    dlc_expr_reach(pool, root, marks);
    for (dlc_expr id = 1; id <= root; id++) { /* operands have lower numbers */
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id] || node->op != DLC_EXPR_LOAD)
            continue;
        if (DLC_SOURCE_IS_STAGE(node->imm.id))
            return (dlc_ids){0};
        waits |= follows(pool, id);
        dlc_vec_push(nest->arena, &loads, id);
    }
    return waits ? loads : (dlc_ids){0};
}

void dlc_leaf_read_together(dlc_nest *nest, uint32_t node, uint32_t nvectors, dlc_val mask)
{
    const dlc_schedule_node *lane = &nest->schedule->nodes.data[node], *leaf = lane + 1;
    dlc_expr axis = dlc_expr_axis(nest->kernel->pool, lane->axis);
    dlc_ids *loads = dlc_new_array(nest->arena, dlc_ids, nvectors);
    uint32_t n = 0;
    if (leaf->kind != DLC_LOOP_LEAF || stage_of(nest, leaf->stage)->update != DLC_UPDATE_NONE || naccs_of(nest, leaf->stage) > 1)
        return;
    for (uint32_t p = 0; p < nvectors; p++) {
        dlc_nest_replace(nest, lane->axis, p ? dlc_addi(nest->kernel->pool, axis, p * lane->tile) : 0);
        loads[p] = waiting_loads(nest, dlc_nest_here(nest, stage_of(nest, leaf->stage)->value[0]));
        n = p && n < loads[p].n ? n : loads[p].n;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < nvectors; p++) {
            dlc_nest_replace(nest, lane->axis, p ? dlc_addi(nest->kernel->pool, axis, p * lane->tile) : 0);
            nest->mask = p + 1 == nvectors ? mask : NULL;
            dlc_nest_value(nest, loads[p].data[i], NULL);
        }
    nest->mask = NULL;
    dlc_nest_replace(nest, lane->axis, 0);
}

/* --- the lane loop --- */

typedef struct {
    uint32_t lane, lane_base, width;
    dlc_val mask, first_mask;
    uint32_t nfirst;
    dlc_tile tile;
} lane_context;

static lane_context enter_lanes(dlc_nest *nest, uint32_t axis, uint32_t base, uint32_t width, dlc_val mask)
{
    lane_context before = {nest->lane, nest->lane_base, nest->width, nest->mask, nest->first_mask, nest->nfirst, {0}};
    if (axis < nest->kernel->axes.n) {
        before.tile = nest->tiles[axis];
        nest->tiles[axis] = (dlc_tile){dlc_expr_axis(nest->kernel->pool, base), dlc_expr_axis(nest->kernel->pool, base)};
    }
    nest->lane = axis;
    nest->lane_base = base;
    nest->width = width;
    nest->mask = mask;
    nest->first_mask = NULL;
    return before;
}

static void leave_lanes(dlc_nest *nest, const lane_context *before)
{
    if (nest->lane < nest->kernel->axes.n)
        nest->tiles[nest->lane] = before->tile;
    nest->lane = before->lane;
    nest->lane_base = before->lane_base;
    nest->width = before->width;
    nest->mask = before->mask;
    nest->first_mask = before->first_mask;
    nest->nfirst = before->nfirst;
}

/* `known`: how many lanes there are, or 0 where only the run knows. */
static void lanes_rest(dlc_nest *nest, uint32_t axis, uint32_t base, dlc_val from, dlc_val hi, uint32_t width, uint32_t known,
                       dlc_lane_body body, void *ctx)
{
    dlc_emitter *emit = nest->emit;
    emit->if_begin(emit, arith2(nest, DLC_EXPR_LT, DLC_I64, 1, from, hi));
    dlc_nest_enter(nest);
    dlc_nest_bind(nest, base, from, 1);
    dlc_val left = arith2(nest, DLC_EXPR_SUB, DLC_I64, 1, hi, from);
    lane_context before = enter_lanes(nest, axis, base, width, dlc_lanes_below(nest, left, width));
    nest->first_mask = known ? nest->mask : NULL;
    nest->nfirst = known;
    body(nest, ctx);
    leave_lanes(nest, &before);
    dlc_nest_leave(nest);
    emit->if_end(emit);
}

/* Lanes that are left where [lo, hi) is whole vectors or ends with the axis: a block of those; 0: only the run knows. */
static int64_t rest_of_blocks(const dlc_nest *nest, dlc_expr lo, dlc_expr hi, uint32_t width)
{
    const dlc_pool *pool = nest->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, hi);
    int64_t end;
    if (node->op != DLC_EXPR_MIN || dlc_expr_multiple(pool, lo, &nest->ranges) % width)
        return 0;
    for (uint32_t i = 0; i < 2; i++)
        if (dlc_expr_is_int(pool, dlc_arg(pool, hi, i), &end) && dlc_expr_multiple(pool, dlc_arg(pool, hi, 1 - i), &nest->ranges) % width == 0)
            return end % width;
    return 0;
}

void dlc_lanes_loop(dlc_nest *nest, uint32_t axis, dlc_expr lo, dlc_expr hi, uint32_t width, dlc_lane_body body,
                    void *ctx)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr length = dlc_expr_simplify(pool, dlc_sub(pool, hi, lo), &nest->ranges);
    uint32_t base = dlc_nest_stepped_axis(nest, nest->kernel->axes.n > axis ? nest->kernel->axes.data[axis].extent : hi,
                                          dlc_expr_multiple(pool, lo, &nest->ranges) % width ? 1 : width);
    int64_t known = -1, rest;
    if (!dlc_expr_is_int(pool, length, &known))
        known = -1;
    rest = known < 0 ? rest_of_blocks(nest, lo, hi, width) : known % width;
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
        lanes_rest(nest, axis, base, from, dlc_nest_uniform(nest, hi), width, (uint32_t)rest, body, ctx);
}

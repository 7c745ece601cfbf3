/*
 * Rows that are stored while the next one is computed. What goes past the caches waits for memory, line by line; a loop that does little but
 * store lets everything else wait too. So where a loop of units ends with it, and an earlier loop along the same lanes makes what it stores,
 * each vector of the row before is stored right before that loop overwrites what it is made of:
 *
 *     par i { …, lane j { e in scratch ahead 3 }, lane j { y nontemporal } }
 *     ->  for i { …, lane j { y of the unit before; e }, keep what y needs besides e }, lane j { y of the last unit }
 *
 * Each element has the same value as without, and is stored once.
 */
#include "codegen/nest.h"

#include <assert.h>

enum { MOST_KEPT = 4 };

struct dlc_late {
    uint32_t loop, leaf, stage; /* of what is stored late */
    uint32_t source;            /* the stage it is made of */
    uint32_t npar, nkept;
    dlc_expr kept[MOST_KEPT];   /* what it needs of its unit besides: the same for all lanes */
    dlc_var values[MOST_KEPT];  /* of the unit before, by lanes */
    dlc_var at[DLC_MAX_RANK];   /* by loop of units: where that was */
    dlc_var is_some;            /* 1: there was one */
};

static const dlc_schedule_node *node_of(const dlc_nest *nest, uint32_t n)
{
    return &nest->schedule->nodes.data[n];
}

static const dlc_stage *stage_of(const dlc_nest *nest, uint32_t s)
{
    return &nest->kernel->stages.data[s];
}

/* --- which --- */

/* Finds what the expression is made of: one stage by lanes, buffers, and what is the same for all lanes. False: of more. */
static int take_apart(const dlc_nest *nest, dlc_expr expr, struct dlc_late *late)
{
    const dlc_pool *pool = nest->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    if (!dlc_expr_has_load(pool, expr))
        return 1;
    if (!dlc_expr_uses_axis(pool, expr, node_of(nest, late->loop)->axis)) {
        for (uint32_t k = 0; k < late->nkept; k++)
            if (late->kept[k] == expr)
                return 1;
        if (late->nkept == MOST_KEPT)
            return 0;
        late->kept[late->nkept++] = expr;
        return 1;
    }
    if (node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id)) {
        uint32_t s = DLC_SOURCE_INDEX(node->imm.id), before = late->source;
        late->source = s;
        return (before == DLC_NO_STAGE || before == s) && dlc_reads_in_place(nest->kernel, expr);
    }
    for (uint32_t i = 0; i < node->nargs; i++)
        if (dlc_arg(pool, expr, i) && !take_apart(nest, dlc_arg(pool, expr, i), late))
            return 0;
    return 1;
}

/* Lanes that hold nothing but leaves. */
static int is_plain_lanes(const dlc_nest *nest, uint32_t n)
{
    if (node_of(nest, n)->kind != DLC_LOOP_LANE)
        return 0;
    for (uint32_t i = n + 1; i < node_of(nest, n)->end; i++)
        if (node_of(nest, i)->kind != DLC_LOOP_LEAF || node_of(nest, i)->row != DLC_DOT_NONE)
            return 0;
    return 1;
}

/* The loop makes the source along the same lanes, reads ahead meanwhile, and nothing else has memory that may be the same. */
static int overwrites(const dlc_nest *nest, const struct dlc_late *late)
{
    const dlc_home *home = &nest->schedule->homes[late->source];
    const dlc_stage *source = stage_of(nest, late->source);
    uint32_t loop = dlc_schedule_parent(nest->schedule, home->leaf);
    for (uint32_t s = 0; s < nest->kernel->stages.n; s++)
        if (s != late->source && nest->schedule->homes[s].place == DLC_PLACE_SCRATCH)
            return 0;
    return home->place == DLC_PLACE_SCRATCH && home->at == late->npar - 1 && source->combine == DLC_REDUCE_NONE &&
           source->update == DLC_UPDATE_NONE && node_of(nest, home->leaf)->ahead && is_plain_lanes(nest, loop) && loop < late->loop &&
           dlc_schedule_parent(nest->schedule, loop) == late->npar - 1 && node_of(nest, loop)->axis == node_of(nest, late->loop)->axis &&
           node_of(nest, loop)->tile == node_of(nest, late->loop)->tile;
}

/* The last loop of a unit stores one stage past the caches. */
static int find_loop(const dlc_nest *nest, struct dlc_late *late)
{
    const dlc_schedule *schedule = nest->schedule;
    while (late->npar < schedule->nodes.n && node_of(nest, late->npar)->kind == DLC_LOOP_PAR) {
        if (node_of(nest, late->npar)->tile != 1 || node_of(nest, late->npar)->end != schedule->nodes.n || late->npar == DLC_MAX_RANK)
            return 0;
        late->npar++;
    }
    if (!late->npar || late->npar == schedule->nodes.n)
        return 0;
    for (uint32_t n = late->npar; n < schedule->nodes.n; n = node_of(nest, n)->end)
        late->loop = n;
    if (!is_plain_lanes(nest, late->loop) || node_of(nest, late->loop)->end != late->loop + 2)
        return 0;
    late->leaf = late->loop + 1;
    late->stage = node_of(nest, late->leaf)->stage;
    const dlc_stage *stage = stage_of(nest, late->stage);
    return node_of(nest, late->leaf)->nontemporal && !schedule->homes[late->stage].is_read && stage->buffer != DLC_NO_BUFFER &&
           stage->combine == DLC_REDUCE_NONE && stage->update == DLC_UPDATE_NONE;
}

void dlc_late_begin(dlc_nest *nest)
{
    dlc_emitter *emit = nest->emit;
    struct dlc_late *late = dlc_new(nest->arena, struct dlc_late);
    late->source = DLC_NO_STAGE;
    nest->late = NULL;
    if (!emit->passes_caches || !find_loop(nest, late) ||
        !take_apart(nest, stage_of(nest, late->stage)->value[0], late) || late->source == DLC_NO_STAGE || !overwrites(nest, late))
        return;
    for (uint32_t d = 0; d < stage_of(nest, late->stage)->store.n; d++)
        if (dlc_expr_has_load(nest->kernel->pool, stage_of(nest, late->stage)->store.data[d]))
            return;
    nest->late = late;
    for (uint32_t k = 0; k < late->nkept; k++)
        late->values[k] = emit->var_new(emit, dlc_node_of(nest->kernel->pool, late->kept[k])->dtype, (uint32_t)node_of(nest, late->loop)->tile);
    for (uint32_t n = 0; n < late->npar; n++) {
        late->at[n] = emit->var_new(emit, DLC_I64, 1);
        emit->var_set(emit, late->at[n], dlc_nest_i64(nest, 0));
    }
    late->is_some = emit->var_new(emit, DLC_I64, 1);
    emit->var_set(emit, late->is_some, dlc_nest_i64(nest, 0));
    for (uint32_t k = 0; k < late->nkept; k++) {
        dlc_dtype dtype = dlc_node_of(nest->kernel->pool, late->kept[k])->dtype;
        emit->var_set(emit, late->values[k], emit->konst(emit, dtype, (dlc_scalar){0}, (uint32_t)node_of(nest, late->loop)->tile));
    }
}

/* --- how --- */

int dlc_late_keep(dlc_nest *nest, uint32_t loop)
{
    const struct dlc_late *late = nest->late;
    dlc_emitter *emit = nest->emit;
    if (!late || late->loop != loop)
        return 0;
    for (uint32_t k = 0; k < late->nkept; k++) {
        dlc_dtype dtype = dlc_node_of(nest->kernel->pool, late->kept[k])->dtype;
        dlc_val value = dlc_nest_uniform(nest, dlc_nest_here(nest, late->kept[k]));
        emit->var_set(emit, late->values[k], emit->splat(emit, dtype, value, (uint32_t)node_of(nest, loop)->tile));
    }
    for (uint32_t n = 0; n < late->npar; n++)
        emit->var_set(emit, late->at[n], dlc_nest_uniform(nest, dlc_expr_axis(nest->kernel->pool, node_of(nest, n)->axis)));
    emit->var_set(emit, late->is_some, dlc_nest_i64(nest, 1));
    return 1;
}

/* Inside: the unit is the one before, if there was one. */
static void enter_before(dlc_nest *nest, const struct dlc_late *late, int by_lanes)
{
    dlc_emitter *emit = nest->emit;
    dlc_pool *pool = nest->kernel->pool;
    uint32_t width = nest->width;
    dlc_val is_some = emit->arith(emit, DLC_EXPR_LT, DLC_I64, DLC_BOOL, 1, (dlc_val[]){dlc_nest_i64(nest, 0), emit->var_get(emit, late->is_some)});
    emit->if_begin(emit, is_some);
    dlc_nest_enter(nest);
    for (uint32_t n = 0; n < late->npar; n++) {
        uint32_t axis = node_of(nest, n)->axis, before = dlc_nest_axis(nest, nest->kernel->axes.data[axis].extent);
        dlc_nest_bind(nest, before, emit->var_get(emit, late->at[n]), 1);
        dlc_nest_replace(nest, axis, dlc_expr_axis(pool, before));
    }
    for (uint32_t k = 0; k < late->nkept; k++) {
        dlc_val value = emit->var_get(emit, late->values[k]);
        if (!by_lanes)
            value = emit->lane(emit, dlc_node_of(pool, late->kept[k])->dtype, value, (uint32_t)node_of(nest, late->loop)->tile, 0);
        nest->width = by_lanes ? width : 1;
        dlc_nest_know(nest, dlc_nest_here(nest, late->kept[k]), value);
    }
    nest->width = width;
}

static void leave_before(dlc_nest *nest, const struct dlc_late *late)
{
    for (uint32_t n = 0; n < late->npar; n++)
        dlc_nest_replace(nest, node_of(nest, n)->axis, 0);
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
}

void dlc_late_store(dlc_nest *nest, uint32_t s)
{
    const struct dlc_late *late = nest->late;
    if (!late || late->source != s)
        return;
    int by_lanes = nest->width == (uint32_t)node_of(nest, late->loop)->tile;
    uint32_t width = nest->width;
    dlc_memo *now = &nest->states[s].value[0], kept = *now;
    enter_before(nest, late, by_lanes);
    now->set = 0; /* what memory has is asked for */
    dlc_val value = dlc_nest_value(nest, dlc_nest_here(nest, stage_of(nest, late->stage)->value[0]), &width);
    dlc_leaf_keep(nest, late->stage, &value, width);
    nest->states[late->stage].value[0].set = 0;
    leave_before(nest, late);
    *now = kept;
}

void dlc_late_end(dlc_nest *nest)
{
    const struct dlc_late *late = nest->late;
    if (!late)
        return;
    nest->late = NULL; /* the loop is walked as it stands */
    enter_before(nest, late, 0);
    nest->states[late->source].value[0].set = 0;
    dlc_walk_node(nest, late->loop);
    leave_before(nest, late);
}

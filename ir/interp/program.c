/*
 * Two passes over ids make the program: backward, which values are needed as one number and which
 * as a strip; forward, loop level by loop level, one instruction each. Operands have lower ids and
 * no deeper level, so the order is right by itself.
 */
#include "ir/interp/program.h"

#include <assert.h>
#include <string.h>

enum { NEED_ONE = 1, NEED_STRIP = 2 };

typedef struct {
    uint8_t need, varies, linear; /* linear: 0 unknown, 1 no, 2 yes */
    uint32_t level;
    uint64_t loops; /* it depends on */
    int64_t stride;
    uint32_t one, strip; /* instructions */
} node_facts;

typedef struct {
    dlc_interp *interp;
    dlc_interp_program *program;
    const dlc_pool *pool;
    node_facts *facts;
    uint32_t nids;
    uint32_t *loop_of;            /* by axis: index of its loop + 1 */
    const dlc_interp_loop *strip; /* NULL: none */
    int is_stepped;               /* the stage runs step by step */
} compiler;

/* --- facts --- */

/* Strides of the strip's axes agree with one step along the flattened axes. */
static int is_linear_uncached(compiler *c, dlc_expr id, int64_t *stride)
{
    const dlc_ids *axes = &c->strip->axes;
    int64_t expected = 0, elems = 1;
    int is_known = 0;
    for (uint32_t k = axes->n; k-- > 0;) {
        int64_t extent = c->interp->extents[axes->data[k]], value;
        dlc_expr coefficient, rest;
        if (extent == 1)
            continue;
        if (!dlc_expr_linear(c->interp->pool, id, axes->data[k], &coefficient, &rest) ||
            !dlc_expr_is_int(c->interp->pool, coefficient, &value))
            return 0;
        if (!is_known)
            expected = value;
        is_known = 1;
        if (value != expected * elems)
            return 0;
        elems *= extent;
    }
    *stride = expected;
    return 1;
}

/* i64, and base + stride * (point of the strip); what does not vary has stride 0. */
static int is_linear(compiler *c, dlc_expr id, int64_t *stride)
{
    node_facts *facts = &c->facts[id];
    if (!facts->varies) {
        *stride = 0;
        return 1;
    }
    if (dlc_node_of(c->pool, id)->dtype != DLC_I64)
        return 0;
    if (!facts->linear)
        facts->linear = is_linear_uncached(c, id, &facts->stride) ? 2 : 1;
    *stride = facts->stride;
    return facts->linear == 2;
}

static void find_facts(compiler *c, const uint8_t *marks)
{
    for (dlc_expr id = 1; id < c->nids; id++) {
        const dlc_expr_node *node = dlc_node_of(c->pool, id);
        node_facts *facts = &c->facts[id];
        facts->one = facts->strip = DLC_NO_INSTR;
        if (!marks[id])
            continue;
        if (node->op == DLC_EXPR_AXIS) {
            facts->level = c->loop_of[node->imm.id];
            assert(facts->level > 0);
            facts->varies = c->strip && c->program->loops.data[facts->level - 1].is_strip;
            facts->loops = UINT64_C(1) << (facts->level - 1);
        }
        for (uint32_t k = 0; k < node->nargs; k++) {
            dlc_expr arg = dlc_arg(c->pool, id, k);
            if (!arg)
                continue;
            if (c->facts[arg].level > facts->level)
                facts->level = c->facts[arg].level;
            facts->varies |= c->facts[arg].varies;
            facts->loops |= c->facts[arg].loops;
        }
    }
}

/* --- what is needed --- */

static void need(compiler *c, dlc_expr id, uint8_t form)
{
    if (id)
        c->facts[id].need |= form == NEED_STRIP && !c->facts[id].varies ? NEED_ONE : form;
}

static int is_comparison(const dlc_expr_node *node)
{
    return node->op == DLC_EXPR_LT || node->op == DLC_EXPR_LE;
}

/*
 * The conjuncts of a guard, if all are uniform bools or comparisons linear along the strip. bounds
 * may be NULL: count only. Returns UINT32_MAX when one is neither.
 */
static uint32_t guard_conjuncts(compiler *c, dlc_expr guard, dlc_expr *conjuncts)
{
    enum { MAX_DEPTH = 64 };
    dlc_expr stack[MAX_DEPTH];
    uint32_t depth = 0, n = 0;
    stack[depth++] = guard;
    while (depth) {
        dlc_expr id = stack[--depth];
        const dlc_expr_node *node = dlc_node_of(c->pool, id);
        int64_t stride;
        if (c->facts[id].varies && node->op == DLC_EXPR_AND && depth + 2 <= MAX_DEPTH) {
            stack[depth++] = dlc_arg(c->pool, id, 0);
            stack[depth++] = dlc_arg(c->pool, id, 1);
            continue;
        }
        if (c->facts[id].varies &&
            (!is_comparison(node) || !is_linear(c, dlc_arg(c->pool, id, 0), &stride) ||
             !is_linear(c, dlc_arg(c->pool, id, 1), &stride) ||
             dlc_node_of(c->pool, dlc_arg(c->pool, id, 0))->dtype != DLC_I64))
            return UINT32_MAX;
        if (n == MAX_DEPTH)
            return UINT32_MAX;
        conjuncts[n++] = id;
    }
    return n;
}

static void need_guard(compiler *c, dlc_expr guard)
{
    dlc_expr conjuncts[64];
    uint32_t n = guard_conjuncts(c, guard, conjuncts);
    if (n == UINT32_MAX) {
        need(c, guard, NEED_STRIP);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!c->facts[conjuncts[i]].varies) {
            need(c, conjuncts[i], NEED_ONE);
            continue;
        }
        need(c, dlc_arg(c->pool, conjuncts[i], 0), NEED_ONE);
        need(c, dlc_arg(c->pool, conjuncts[i], 1), NEED_ONE);
    }
}

static void need_offset(compiler *c, dlc_expr offset)
{
    int64_t stride;
    need(c, offset, is_linear(c, offset, &stride) ? NEED_ONE : NEED_STRIP);
}

static void need_operands(compiler *c, dlc_expr id, uint8_t form)
{
    const dlc_expr_node *node = dlc_node_of(c->pool, id);
    if (node->op != DLC_EXPR_LOAD || form == NEED_ONE) {
        for (uint32_t k = 0; k < node->nargs; k++)
            need(c, dlc_arg(c->pool, id, k), form);
        return;
    }
    need_offset(c, dlc_arg(c->pool, id, 0));
    if (dlc_load_rank(c->pool, id) > 1)
        need(c, dlc_arg(c->pool, id, 1), NEED_STRIP);
    if (dlc_load_guard(c->pool, id))
        need_guard(c, dlc_load_guard(c->pool, id));
    need(c, dlc_load_else(c->pool, id), NEED_STRIP);
}

static void find_needs(compiler *c)
{
    int64_t stride;
    for (dlc_expr id = c->nids; id-- > 1;) {
        node_facts *facts = &c->facts[id];
        if (facts->need & NEED_STRIP) {
            if (is_linear(c, id, &stride)) /* a ramp from its first value */
                facts->need |= NEED_ONE;
            else
                need_operands(c, id, NEED_STRIP);
        }
        if (facts->need & NEED_ONE)
            need_operands(c, id, NEED_ONE);
    }
}

/* --- instructions --- */

static uint32_t form_of(const compiler *c, dlc_expr id, uint8_t form)
{
    if (!id)
        return DLC_NO_INSTR;
    const node_facts *facts = &c->facts[id];
    return form == NEED_STRIP && facts->varies ? facts->strip : facts->one;
}

static uint32_t append(compiler *c, const dlc_interp_instr *instr)
{
    dlc_vec_push(c->interp->arena, &c->program->instrs, *instr);
    return c->program->instrs.n - 1;
}

static dlc_interp_instr instr_of(const compiler *c, dlc_expr id)
{
    const dlc_expr_node *node = dlc_node_of(c->pool, id);
    dlc_dtype dtype = (dlc_dtype)node->dtype;
    dlc_interp_instr instr = {
        .op = {.op = node->op,
               .from = node->dtype,
               .dtype = node->dtype,
               .is_wide = (uint8_t)c->interp->is_wide},
        .lane = dlc_lane_of(dtype, c->interp->is_wide).lane,
        .level = c->facts[id].level,
        .args = {DLC_NO_INSTR, DLC_NO_INSTR, DLC_NO_INSTR},
    };
    if (node->op != DLC_EXPR_LOAD && node->nargs) /* SELECT: the type of the last two */
        instr.op.from = dlc_node_of(c->pool, dlc_arg(c->pool, id, node->nargs - 1u))->dtype;
    return instr;
}

static uint32_t emit_const(compiler *c, dlc_expr id)
{
    const dlc_expr_node *node = dlc_node_of(c->pool, id);
    dlc_interp_instr instr = instr_of(c, id);
    instr.is_const = 1;
    dlc_scalar value =
        dlc_is_float(node->dtype) ? (dlc_scalar){.f = node->imm.f} : (dlc_scalar){.i = node->imm.i};
    dlc_strip_put(instr.lane, &instr.value, 0, value);
    return append(c, &instr);
}

static void fill_guard(compiler *c, dlc_interp_load *load, dlc_expr guard, uint8_t form)
{
    dlc_expr conjuncts[64];
    uint32_t n = form == NEED_STRIP ? guard_conjuncts(c, guard, conjuncts) : UINT32_MAX;
    if (n == UINT32_MAX) {
        load->guard = form_of(c, guard, form);
        return;
    }
    load->bounds = dlc_new_array(c->interp->arena, dlc_interp_bound, n);
    load->nbounds = n;
    for (uint32_t i = 0; i < n; i++) {
        dlc_interp_bound *bound = &load->bounds[i];
        if (!c->facts[conjuncts[i]].varies) {
            *bound = (dlc_interp_bound){.a = c->facts[conjuncts[i]].one, .b = DLC_NO_INSTR};
            continue;
        }
        dlc_expr a = dlc_arg(c->pool, conjuncts[i], 0), b = dlc_arg(c->pool, conjuncts[i], 1);
        int64_t slope_a = 0, slope_b = 0;
        is_linear(c, a, &slope_a);
        is_linear(c, b, &slope_b);
        *bound =
            (dlc_interp_bound){.a = c->facts[a].one,
                               .b = c->facts[b].one,
                               .slope = slope_b - slope_a,
                               .or_equal = dlc_node_of(c->pool, conjuncts[i])->op == DLC_EXPR_LE};
    }
}

/* Memory of a type as its lane has it: a strip of consecutive elements needs no copy. */
static int is_lane_format(dlc_dtype dtype, uint8_t lane)
{
    switch (dtype) {
    case DLC_F32:
        return lane == DLC_LANE_FLOAT;
    case DLC_F64:
        return lane == DLC_LANE_DOUBLE;
    case DLC_I64:
    case DLC_U64:
        return lane == DLC_LANE_INT;
    default:
        return 0;
    }
}

enum { KEEP_BYTES = 64 << 20, WORTH_KEEPING = 4 };

/* Points of a loop as memory that is kept counts them: of a long strip loop, whole strips. */
static int64_t kept_points(const dlc_interp_loop *loop)
{
    if (!loop->is_strip || loop->trip <= DLC_STRIP)
        return loop->trip;
    return (loop->trip + DLC_STRIP - 1) / DLC_STRIP * DLC_STRIP;
}

/* How often a strip is loaded anew: by loops outside its own level that it does not depend on. */
static double times_loaded(const compiler *c, dlc_expr id)
{
    double times = 1;
    for (uint32_t l = 0; l < c->facts[id].level; l++)
        if (!(c->facts[id].loops >> l & 1))
            times *= (double)c->program->loops.data[l].trip;
    return times;
}

/* Only memory that does not change during the run is kept: inputs and constants, and temporaries
 * outside recurrences. */
static void keep_strips(compiler *c, dlc_expr id, dlc_interp_load *load, uint8_t lane)
{
    const dlc_interp_loops *loops = &c->program->loops;
    dlc_source source = dlc_node_of(c->pool, id)->imm.id;
    if (load->is_in_place || times_loaded(c, id) < WORTH_KEEPING || loops->n > 64 ||
        (c->is_stepped && DLC_SOURCE_IS_STAGE(source)) || c->strip->trip == 0)
        return;
    int64_t *strides = dlc_new_array(c->interp->arena, int64_t, loops->n), size = 1;
    int64_t most = KEEP_BYTES / dlc_lane_bytes(lane);
    size_t budget = c->interp->args->budget_bytes;
    if (budget && budget / 4 / dlc_lane_bytes(lane) < (size_t)most)
        most = (int64_t)(budget / 4 / dlc_lane_bytes(lane));
    for (int pass = 0; pass < 2; pass++) /* the strip innermost, then the loops it depends on */
        for (uint32_t l = loops->n; l-- > 0;) {
            if (!(c->facts[id].loops >> l & 1) || loops->data[l].is_strip != (pass == 0))
                continue;
            strides[l] = size;
            if (!dlc_mul_i64(size, kept_points(&loops->data[l]), &size) || size > most)
                return;
        }
    load->strides = strides;
    load->nkept = size;
    load->kept_strip = c->strip->trip < DLC_STRIP ? c->strip->trip : DLC_STRIP;
}

static uint32_t emit_load(compiler *c, dlc_expr id, uint8_t form)
{
    const dlc_expr_node *node = dlc_node_of(c->pool, id);
    dlc_interp_instr instr = instr_of(c, id);
    dlc_interp_load *load = dlc_new(c->interp->arena, dlc_interp_load);
    dlc_expr offset = dlc_arg(c->pool, id, 0);
    instr.load = load;
    instr.is_strip = form == NEED_STRIP;
    load->memory =
        dlc_interp_source(c->interp, node->imm.id, node->flags & DLC_LOAD_SECOND ? 1 : 0);
    load->is_linear = form == NEED_ONE || is_linear(c, offset, &load->stride);
    load->offset = form_of(c, offset, load->is_linear ? NEED_ONE : NEED_STRIP);
    load->is_in_place =
        load->is_linear && load->stride == 1 && is_lane_format(load->memory->dtype, instr.lane);
    load->guard = load->check = DLC_NO_INSTR;
    if (dlc_load_rank(c->pool, id) > 1)
        load->check = form_of(c, dlc_arg(c->pool, id, 1), form);
    if (dlc_load_guard(c->pool, id))
        fill_guard(c, load, dlc_load_guard(c->pool, id), form);
    load->otherwise = form_of(c, dlc_load_else(c->pool, id), form);
    if (form == NEED_STRIP)
        keep_strips(c, id, load, instr.lane);
    return append(c, &instr);
}

static uint32_t emit_node(compiler *c, dlc_expr id, uint8_t form)
{
    const dlc_expr_node *node = dlc_node_of(c->pool, id);
    int64_t stride;
    if (node->op == DLC_EXPR_CONST)
        return emit_const(c, id);
    dlc_interp_instr instr = instr_of(c, id);
    instr.is_strip = form == NEED_STRIP;
    if (form == NEED_STRIP && is_linear(c, id, &stride)) {
        instr.is_ramp = 1;
        instr.slope = stride;
        instr.args[0] = c->facts[id].one;
        return append(c, &instr);
    }
    if (node->op == DLC_EXPR_LOAD)
        return emit_load(c, id, form);
    if (node->op == DLC_EXPR_AXIS)
        instr.axis = node->imm.id;
    instr.nargs = node->nargs;
    for (uint32_t k = 0; k < node->nargs; k++)
        instr.args[k] = form_of(c, dlc_arg(c->pool, id, k), form);
    return append(c, &instr);
}

static void emit(compiler *c)
{
    dlc_interp_program *program = c->program;
    uint32_t nlevels = program->loops.n + 1;
    program->first_of_level = dlc_new_array(c->interp->arena, uint32_t, (size_t)nlevels + 1);
    for (uint32_t level = 0; level < nlevels; level++) {
        program->first_of_level[level] = program->instrs.n;
        for (dlc_expr id = 1; id < c->nids; id++) {
            node_facts *facts = &c->facts[id];
            if (!facts->need || facts->level != level)
                continue;
            if (facts->need & NEED_ONE)
                facts->one = emit_node(c, id, NEED_ONE);
            if (facts->need & NEED_STRIP)
                facts->strip = emit_node(c, id, NEED_STRIP);
        }
    }
    program->first_of_level[nlevels] = program->instrs.n;
}

/* --- strip buffers --- */

static void use(dlc_interp_program *program, uint32_t *last, uint32_t instr, uint32_t user)
{
    if (instr == DLC_NO_INSTR)
        return;
    int is_deeper =
        user == UINT32_MAX || program->instrs.data[user].level != program->instrs.data[instr].level;
    if (is_deeper)
        last[instr] = UINT32_MAX; /* for as long as its own loop stands still */
    else if (last[instr] != UINT32_MAX)
        last[instr] = user;
}

static void find_last_uses(dlc_interp_program *program, uint32_t *last)
{
    for (uint32_t i = 0; i < program->instrs.n; i++) {
        const dlc_interp_instr *instr = &program->instrs.data[i];
        last[i] = i;
        for (uint32_t k = 0; k < 3; k++)
            use(program, last, instr->args[k], i);
        const dlc_interp_load *load = instr->load;
        if (!load)
            continue;
        use(program, last, load->offset, i);
        use(program, last, load->guard, i);
        use(program, last, load->otherwise, i);
        use(program, last, load->check, i);
    }
    const uint32_t roots[] = {program->value[0],  program->value[1], program->factor[0],
                              program->factor[1], program->store,    program->temp,
                              program->check};
    for (uint32_t r = 0; r < sizeof roots / sizeof *roots; r++)
        use(program, last, roots[r], UINT32_MAX);
}

/* A strip's buffer is free again after its last use, if that is in its own loop. */
static void assign_rooms(compiler *c)
{
    dlc_interp_program *program = c->program;
    dlc_arena *arena = c->interp->arena;
    uint32_t *last = dlc_new_array(arena, uint32_t, program->instrs.n);
    dlc_ids *ending = dlc_new_array(arena, dlc_ids, program->instrs.n);
    dlc_ids free_rooms = {0};
    find_last_uses(program, last);
    for (uint32_t i = 0; i < program->instrs.n; i++) {
        dlc_interp_instr *instr = &program->instrs.data[i];
        if (instr->is_strip) {
            instr->room = free_rooms.n ? free_rooms.data[--free_rooms.n] : program->nrooms++;
            if (last[i] != UINT32_MAX)
                dlc_vec_push(arena, &ending[last[i]], instr->room);
        }
        for (uint32_t k = 0; k < ending[i].n; k++)
            dlc_vec_push(arena, &free_rooms, ending[i].data[k]);
    }
}

/* --- cost --- */

enum { CACHED_ELEMS = 1 << 17 }; /* what stays in a core's own cache, roughly */

/* Nanoseconds a point; from bench runs of the rows on one core, good enough to choose loops by. */
static double point_cost(const dlc_interp_instr *instr)
{
    const dlc_interp_load *load = instr->load;
    if (load && load->strides)
        return load->nkept > CACHED_ELEMS ? 1.0 : 0.1;
    if (load && load->is_in_place && load->guard == DLC_NO_INSTR && load->check == DLC_NO_INSTR)
        return load->nbounds ? 0.2 : 0;
    if (load)
        return (load->is_linear ? 0.4 : 1.5) + (load->stride >= 16 || load->stride <= -16) * 3.0 +
               (load->guard != DLC_NO_INSTR) * 1.5 + (load->check != DLC_NO_INSTR) * 1.5;
    if (instr->op.op >= DLC_EXPR_EXP)
        return 12;
    if (instr->op.op == DLC_EXPR_DIV || instr->op.op == DLC_EXPR_FLOORDIV ||
        instr->op.op == DLC_EXPR_MOD)
        return 2;
    return 0.35;
}

static void estimate(dlc_interp_program *program, int is_reduced, const dlc_stage *stage)
{
    enum { CALL = 12 };
    double times = 1, length = 1, total = 0;
    for (uint32_t level = 0; level <= program->loops.n; level++) {
        if (level > 0) {
            const dlc_interp_loop *loop = &program->loops.data[level - 1];
            double trip = (double)loop->trip;
            if (loop->is_strip) {
                double strips = trip <= DLC_STRIP ? 1 : (trip + DLC_STRIP - 1) / DLC_STRIP;
                length = trip / strips;
                trip = strips;
            }
            times *= trip;
        }
        for (uint32_t i = program->first_of_level[level]; i < program->first_of_level[level + 1];
             i++) {
            const dlc_interp_instr *instr = &program->instrs.data[i];
            if (!instr->is_const)
                total += times * (instr->is_strip ? CALL + length * point_cost(instr) : CALL);
        }
    }
    int is_fold = program->strip_loop < program->loops.n &&
                  program->loops.data[program->strip_loop].is_reduced;
    double each = is_fold ? 1.3 : is_reduced ? 0.35 : 0.4;
    if (stage->combine >= DLC_REDUCE_ARGMIN)
        each = 10;
    program->cost = total + times * (CALL + length * each);
}

/* --- the stage --- */

static void set_loops(compiler *c, const dlc_interp_loops *loops)
{
    dlc_interp_program *program = c->program;
    program->strip_loop = loops->n;
    for (uint32_t l = 0; l < loops->n; l++) {
        dlc_vec_push(c->interp->arena, &program->loops, loops->data[l]);
        for (uint32_t k = 0; k < loops->data[l].axes.n; k++)
            c->loop_of[loops->data[l].axes.data[k]] = l + 1;
        if (loops->data[l].is_strip)
            program->strip_loop = l;
    }
    c->strip = program->strip_loop < loops->n ? &program->loops.data[program->strip_loop] : NULL;
}

/* A sum of products adds each product as it is made. */
static int is_product_sum(const compiler *c, const dlc_stage *stage, dlc_expr value)
{
    const dlc_expr_node *node = dlc_node_of(c->pool, value);
    uint8_t dtype = dlc_lane_of((dlc_dtype)node->dtype, c->interp->is_wide).dtype;
    return stage->combine == DLC_REDUCE_SUM && c->strip && !c->strip->is_reduced &&
           node->op == DLC_EXPR_MUL && c->facts[value].varies &&
           (dtype == DLC_F32 || dtype == DLC_F64);
}

static void need_roots(compiler *c, const dlc_interp_exprs *exprs, int is_product)
{
    if (is_product) {
        need(c, dlc_arg(c->pool, exprs->value[0], 0), NEED_STRIP);
        need(c, dlc_arg(c->pool, exprs->value[0], 1), NEED_STRIP);
    } else {
        need(c, exprs->value[0], NEED_STRIP);
    }
    need(c, exprs->value[1], NEED_STRIP);
    need(c, exprs->check, NEED_STRIP);
    if (exprs->store)
        need_offset(c, exprs->store);
    if (exprs->temp)
        need_offset(c, exprs->temp);
}

static void find_roots(compiler *c, const dlc_interp_exprs *exprs, int is_product)
{
    dlc_interp_program *program = c->program;
    program->factor[0] = program->factor[1] = program->value[0] = DLC_NO_INSTR;
    if (is_product) {
        program->factor[0] = form_of(c, dlc_arg(c->pool, exprs->value[0], 0), NEED_STRIP);
        program->factor[1] = form_of(c, dlc_arg(c->pool, exprs->value[0], 1), NEED_STRIP);
    } else {
        program->value[0] = form_of(c, exprs->value[0], NEED_STRIP);
    }
    program->value[1] = form_of(c, exprs->value[1], NEED_STRIP);
    program->check = form_of(c, exprs->check, NEED_STRIP);
    program->store = program->temp = DLC_NO_INSTR;
    if (exprs->store) {
        program->is_store_linear = (uint8_t)is_linear(c, exprs->store, &program->store_stride);
        program->store = form_of(c, exprs->store, program->is_store_linear ? NEED_ONE : NEED_STRIP);
    }
    if (exprs->temp) {
        program->is_temp_linear = (uint8_t)is_linear(c, exprs->temp, &program->temp_stride);
        program->temp = form_of(c, exprs->temp, program->is_temp_linear ? NEED_ONE : NEED_STRIP);
    }
}

dlc_interp_program *dlc_interp_compile(dlc_interp *interp, uint32_t index,
                                       const dlc_interp_loops *loops, int is_stepped)
{
    const dlc_stage *stage = &interp->kernel->stages.data[index];
    const dlc_interp_exprs *exprs = &interp->stages[index];
    compiler c = {.interp = interp,
                  .program = dlc_new(interp->arena, dlc_interp_program),
                  .pool = interp->pool,
                  .is_stepped = is_stepped};
    c.nids = interp->pool->nodes.n;
    c.facts = dlc_new_array(interp->arena, node_facts, c.nids);
    c.loop_of = dlc_new_array(interp->arena, uint32_t, interp->kernel->axes.n);
    set_loops(&c, loops);
    uint8_t *marks = dlc_new_array(interp->arena, uint8_t, c.nids);
    const dlc_expr roots[] = {exprs->value[0], exprs->value[1], exprs->store, exprs->temp,
                              exprs->check};
    for (uint32_t r = 0; r < sizeof roots / sizeof *roots; r++)
        if (roots[r])
            dlc_expr_reach(interp->pool, roots[r], marks);
    find_facts(&c, marks);
    int is_product = is_product_sum(&c, stage, exprs->value[0]);
    need_roots(&c, exprs, is_product);
    find_needs(&c);
    emit(&c);
    find_roots(&c, exprs, is_product);
    assign_rooms(&c);
    estimate(c.program, stage->combine != DLC_REDUCE_NONE, stage);
    return c.program;
}

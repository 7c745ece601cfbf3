/*
 * Phases: of a window whose taps are of use at every s-th point alone, as a transposed convolution's are, each point has taps of its own:
 *
 *     y[s*p + q] = sum(k) x[p + (q + c - k) floordiv s if (q + c - k) mod s = 0] * w[k]
 *                = sum(t) x[p + (q + c) floordiv s - t] * w[s*t + r]      r = (q + c) mod s
 *
 * r takes q's place as an axis, so both factors are affine: a product for each phase of the points, of a part of the taps. What a
 * remainder leaves out is no product with 0, so it goes where its factor makes the whole value 0.
 */
#include "passes/lower/lower.h"

typedef struct {
    dlc_kernel *kernel;
    uint32_t stage;
    uint32_t tap, point, phase; /* axes: k, q and r */
    int64_t stride, ntaps, shift; /* s; of the window; c */
    dlc_expr distance;    /* q + c - k */
    uint32_t own_tap;     /* t, or DLC_NO_AXIS: a phase has one */
} phases;

/* --- what is one --- */

/* The value is 0 where this load is. */
static int vanishes_with(const dlc_pool *pool, dlc_expr value, dlc_expr load)
{
    const dlc_expr_node *node = dlc_node_of(pool, value);
    if (value == load)
        return 1;
    if (node->op == DLC_EXPR_MUL)
        return vanishes_with(pool, dlc_arg(pool, value, 0), load) || vanishes_with(pool, dlc_arg(pool, value, 1), load);
    return node->op == DLC_EXPR_CAST && vanishes_with(pool, dlc_arg(pool, value, 0), load);
}

/* The condition says that the stride divides a tap's distance: which, of which tap and point. */
static int find_division(phases *p, dlc_expr condition)
{
    dlc_pool *pool = p->kernel->pool;
    const dlc_stage *stage = &p->kernel->stages.data[p->stage];
    dlc_expr coefficient, rest, shift, remainder = dlc_node_of(pool, condition)->op == DLC_EXPR_EQ ? dlc_arg(pool, condition, 0) : 0;
    int64_t zero, step, extent;
    if (!remainder || !dlc_expr_is_int(pool, dlc_arg(pool, condition, 1), &zero) || zero || dlc_node_of(pool, remainder)->op != DLC_EXPR_MOD ||
        !dlc_expr_is_int(pool, dlc_arg(pool, remainder, 1), &p->stride) || p->stride < 2)
        return 0;
    p->distance = dlc_arg(pool, remainder, 0);
    for (uint32_t k = 0; k < stage->reduce.n; k++) {
        p->tap = stage->reduce.data[k];
        if (!dlc_expr_linear(pool, p->distance, p->tap, &coefficient, &rest) || !dlc_expr_is_int(pool, coefficient, &step) || step != -1 ||
            !dlc_const_extent(p->kernel, p->tap, &p->ntaps) || p->ntaps % p->stride)
            continue;
        for (uint32_t q = 0; q < stage->axes.n; q++) {
            p->point = stage->axes.data[q];
            if (dlc_const_extent(p->kernel, p->point, &extent) && extent == p->stride &&
                dlc_expr_linear(pool, rest, p->point, &coefficient, &shift) && dlc_expr_is_int(pool, coefficient, &step) && step == 1 &&
                dlc_expr_is_int(pool, shift, &p->shift))
                return 1;
        }
    }
    return 0;
}

/* No stage minds the order of points, and stages are read at their own alone. */
static int is_own(const phases *p)
{
    const dlc_kernel *kernel = p->kernel;
    const uint8_t *marks = dlc_kernel_marks(kernel, kernel->arena);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (stage->update != DLC_UPDATE_NONE || (dlc_reduces[stage->combine].naccs > 1 && dlc_ids_find(&stage->reduce, p->point, NULL)))
            return 0;
    }
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        uint32_t at;
        if (marks[id] && node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id) &&
            dlc_ids_find(&kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)].axes, p->point, &at) &&
            dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, id, at)) != p->point)
            return 0;
    }
    return 1;
}

static int find_in(phases *p, dlc_expr value)
{
    dlc_pool *pool = p->kernel->pool;
    uint8_t *marks = dlc_new_array(p->kernel->arena, uint8_t, pool->nodes.n);
    dlc_expr_reach(pool, value, marks);
    for (dlc_expr id = 1; id <= value; id++) {
        dlc_ids conjuncts = {0};
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LOAD || !dlc_load_guard(pool, id) || dlc_load_else(pool, id) ||
            !vanishes_with(pool, value, id))
            continue;
        dlc_expr_conjuncts(pool, dlc_load_guard(pool, id), p->kernel->arena, &conjuncts);
        for (uint32_t i = 0; i < conjuncts.n; i++)
            if (find_division(p, conjuncts.data[i]) && is_own(p))
                return 1;
    }
    return 0;
}

static int find(phases *p)
{
    for (p->stage = 0; p->stage < p->kernel->stages.n; p->stage++) {
        const dlc_stage *stage = &p->kernel->stages.data[p->stage];
        if (stage->combine == DLC_REDUCE_SUM && stage->update == DLC_UPDATE_NONE && find_in(p, stage->value[0]))
            return 1;
    }
    return 0;
}

/* --- the same by phases --- */

static dlc_expr own_tap(const phases *p)
{
    return p->own_tap == DLC_NO_AXIS ? dlc_expr_i64(p->kernel->pool, 0) : dlc_expr_axis(p->kernel->pool, p->own_tap);
}

/* q by r. */
static dlc_expr point_of(const phases *p)
{
    dlc_pool *pool = p->kernel->pool;
    int64_t back = ((-p->shift % p->stride) + p->stride) % p->stride;
    return dlc_mod(pool, dlc_addi(pool, dlc_expr_axis(pool, p->phase), back), dlc_expr_i64(pool, p->stride));
}

/* The remainder is 0 for the taps that are left, and the quotient is affine in them. */
static dlc_expr by_phases(void *user, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const phases *p = user;
    int64_t divisor;
    if ((node->op != DLC_EXPR_MOD && node->op != DLC_EXPR_FLOORDIV) || args[0] != p->distance || !dlc_expr_is_int(to, args[1], &divisor) ||
        divisor != p->stride)
        return 0;
    if (node->op == DLC_EXPR_MOD)
        return dlc_expr_i64(to, 0);
    dlc_expr at = dlc_floordiv(to, dlc_addi(to, point_of(p), p->shift), args[1]);
    return dlc_sub(to, at, own_tap(p));
}

/* The axis goes from the list where it becomes none. */
static void replace_axis(dlc_arena *arena, dlc_ids *axes, uint32_t axis, uint32_t with)
{
    dlc_ids list = {0};
    for (uint32_t i = 0; i < axes->n; i++)
        if (axes->data[i] != axis || with != DLC_NO_AXIS)
            dlc_vec_push(arena, &list, axes->data[i] == axis ? with : axes->data[i]);
    *axes = list;
}

/* Stages that have points of the axis have phases instead, and are read at the reader's own. */
static uint32_t own_phase(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const phases *p = user;
    for (uint32_t d = 0; d < rank; d++) {
        int is_point = DLC_SOURCE_IS_STAGE(source) && p->kernel->stages.data[DLC_SOURCE_INDEX(source)].axes.data[d] == p->point;
        result[d] = is_point ? dlc_expr_axis(p->kernel->pool, p->phase) : index[d];
    }
    return rank;
}

static void replace_points(phases *p)
{
    dlc_kernel *kernel = p->kernel;
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    with[p->point] = point_of(p);
    dlc_kernel_reindex(kernel, &(dlc_reindex){with, own_phase, p});
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        replace_axis(kernel->arena, &kernel->stages.data[s].axes, p->point, p->phase);
        replace_axis(kernel->arena, &kernel->stages.data[s].reduce, p->point, p->phase);
    }
}

static void replace_taps(phases *p)
{
    dlc_kernel *kernel = p->kernel;
    dlc_pool *pool = kernel->pool;
    dlc_stage *stage = &kernel->stages.data[p->stage];
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    with[p->tap] = dlc_add(pool, dlc_muli(pool, own_tap(p), p->stride), dlc_expr_axis(pool, p->phase));
    stage->value[0] = dlc_expr_rewrite(pool, pool, stage->value[0], by_phases, p);
    stage->value[0] = dlc_expr_substitute(pool, stage->value[0], with, kernel->axes.n);
    replace_axis(kernel->arena, &stage->reduce, p->tap, p->own_tap);
}

static void apply(phases *p)
{
    dlc_kernel *kernel = p->kernel;
    const char *tap = kernel->axes.data[p->tap].name, *point = kernel->axes.data[p->point].name;
    int64_t own = p->ntaps / p->stride;
    p->phase = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%s_phase", point), dlc_expr_i64(kernel->pool, p->stride));
    p->own_tap = DLC_NO_AXIS;
    if (own > 1 || kernel->stages.data[p->stage].reduce.n == 1)
        p->own_tap = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%s_own", tap), dlc_expr_i64(kernel->pool, own));
    replace_taps(p);
    replace_points(p);
}

void dlc_lower_phases(dlc_kernel *kernel)
{
    phases p = {.kernel = kernel};
    while (find(&p)) {
        apply(&p);
        dlc_kernel_simplify(kernel);
    }
}

/*
 * Phases: of a window whose taps are of use at every s-th point alone, as a transposed convolution's are, each point has taps of its own:
 *
 *     y[s*p + q] = sum(k) x[p + (q + c - k) floordiv s if (q + c - k) mod s = 0] * w[k]
 *                = sum(t) x[p + (q + c) floordiv s - t] * w[s*t + r]      r = (q + c) mod s
 *
 * r takes q's place as an axis, so both factors are affine: a product for each phase of the points, of a part of the taps. What a
 * remainder leaves out is no product with 0, so it goes where its factor makes the whole value 0.
 */
#include "ir/kernel/algebra.h"
#include "ir/kernel/phases.h"
#include "passes/lower/lower.h"

typedef struct {
    dlc_phases found;
    uint32_t phase;   /* axis: r */
    uint32_t own_tap; /* t, or DLC_NO_AXIS: a phase has one */
} phases;

/* The stride divides window and points. */
static int is_equal(const dlc_phases *found)
{
    int64_t extent;
    return found->ntaps % found->stride == 0 && dlc_const_extent(found->kernel, found->point, &extent) && extent == found->stride;
}

/* --- the same by phases --- */

static dlc_expr own_tap(const phases *p)
{
    return p->own_tap == DLC_NO_AXIS ? dlc_expr_i64(p->found.kernel->pool, 0) : dlc_expr_axis(p->found.kernel->pool, p->own_tap);
}

/* q by r. */
static dlc_expr point_of(const phases *p)
{
    dlc_pool *pool = p->found.kernel->pool;
    int64_t back = ((-p->found.shift % p->found.stride) + p->found.stride) % p->found.stride;
    return dlc_mod(pool, dlc_addi(pool, dlc_expr_axis(pool, p->phase), back), dlc_expr_i64(pool, p->found.stride));
}

/* The remainder is 0 for the taps that are left, and the quotient is affine in them. */
static dlc_expr by_phases(void *user, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const phases *p = user;
    int64_t divisor;
    if ((node->op != DLC_EXPR_MOD && node->op != DLC_EXPR_FLOORDIV) || args[0] != p->found.distance ||
        !dlc_expr_is_int(to, args[1], &divisor) || divisor != p->found.stride)
        return 0;
    if (node->op == DLC_EXPR_MOD)
        return dlc_expr_i64(to, 0);
    dlc_expr at = dlc_floordiv(to, dlc_addi(to, point_of(p), p->found.shift), args[1]);
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
        int is_point = DLC_SOURCE_IS_STAGE(source) && p->found.kernel->stages.data[DLC_SOURCE_INDEX(source)].axes.data[d] == p->found.point;
        result[d] = is_point ? dlc_expr_axis(p->found.kernel->pool, p->phase) : index[d];
    }
    return rank;
}

static void replace_points(phases *p)
{
    dlc_kernel *kernel = p->found.kernel;
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    with[p->found.point] = point_of(p);
    dlc_kernel_reindex(kernel, &(dlc_reindex){with, own_phase, p});
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        replace_axis(kernel->arena, &kernel->stages.data[s].axes, p->found.point, p->phase);
        replace_axis(kernel->arena, &kernel->stages.data[s].reduce, p->found.point, p->phase);
    }
}

static void replace_taps(phases *p)
{
    dlc_kernel *kernel = p->found.kernel;
    dlc_pool *pool = kernel->pool;
    dlc_stage *stage = &kernel->stages.data[p->found.stage];
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    with[p->found.tap] = dlc_add(pool, dlc_muli(pool, own_tap(p), p->found.stride), dlc_expr_axis(pool, p->phase));
    stage->value[0] = dlc_expr_rewrite(pool, pool, stage->value[0], by_phases, p);
    stage->value[0] = dlc_expr_substitute(pool, stage->value[0], with, kernel->axes.n);
    replace_axis(kernel->arena, &stage->reduce, p->found.tap, p->own_tap);
}

static void apply(phases *p)
{
    dlc_kernel *kernel = p->found.kernel;
    const char *tap = kernel->axes.data[p->found.tap].name, *point = kernel->axes.data[p->found.point].name;
    int64_t own = p->found.ntaps / p->found.stride;
    p->phase = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%s_phase", point), dlc_expr_i64(kernel->pool, p->found.stride));
    p->own_tap = DLC_NO_AXIS;
    if (own > 1 || kernel->stages.data[p->found.stage].reduce.n == 1)
        p->own_tap = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%s_own", tap), dlc_expr_i64(kernel->pool, own));
    replace_taps(p);
    replace_points(p);
}

void dlc_lower_phases(dlc_kernel *kernel)
{
    phases p = {.phase = DLC_NO_AXIS};
    while (dlc_phases_find(kernel, is_equal, &p.found)) {
        apply(&p);
        dlc_kernel_simplify(kernel);
    }
}

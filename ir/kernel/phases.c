/* Windows whose taps are of use at every s-th point alone: see phases.h. */
#include "ir/kernel/phases.h"

#include "ir/kernel/algebra.h"

typedef int (*taking)(const dlc_phases *phases);

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
static int find_division(dlc_phases *p, dlc_expr condition, taking takes)
{
    dlc_pool *pool = p->kernel->pool;
    const dlc_stage *stage = &p->kernel->stages.data[p->stage];
    dlc_expr coefficient, rest, shift, remainder = dlc_node_of(pool, condition)->op == DLC_EXPR_EQ ? dlc_arg(pool, condition, 0) : 0;
    int64_t zero, step;
    if (!remainder || !dlc_expr_is_int(pool, dlc_arg(pool, condition, 1), &zero) || zero || dlc_node_of(pool, remainder)->op != DLC_EXPR_MOD ||
        !dlc_expr_is_int(pool, dlc_arg(pool, remainder, 1), &p->stride) || p->stride < 2)
        return 0;
    p->distance = dlc_arg(pool, remainder, 0);
    for (uint32_t k = 0; k < stage->reduce.n; k++) {
        p->tap = stage->reduce.data[k];
        if (!dlc_expr_linear(pool, p->distance, p->tap, &coefficient, &rest) || !dlc_expr_is_int(pool, coefficient, &step) || step != -1 ||
            !dlc_const_extent(p->kernel, p->tap, &p->ntaps))
            continue;
        for (uint32_t q = 0; q < stage->axes.n; q++) {
            p->point = stage->axes.data[q];
            if (dlc_expr_linear(pool, rest, p->point, &coefficient, &shift) && dlc_expr_is_int(pool, coefficient, &step) && step == 1 &&
                dlc_expr_is_int(pool, shift, &p->shift) && takes(p))
                return 1;
        }
    }
    return 0;
}

/* No stage minds the order of points, and stages are read at their own alone. */
static int is_own(const dlc_phases *p)
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

static int find_in(dlc_phases *p, dlc_expr value, taking takes)
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
            if (find_division(p, conjuncts.data[i], takes) && is_own(p))
                return 1;
    }
    return 0;
}

int dlc_phases_find(dlc_kernel *kernel, taking takes, dlc_phases *p)
{
    *p = (dlc_phases){.kernel = kernel};
    for (; p->stage < kernel->stages.n; p->stage++) {
        const dlc_stage *stage = &kernel->stages.data[p->stage];
        if (stage->combine == DLC_REDUCE_SUM && stage->update == DLC_UPDATE_NONE && find_in(p, stage->value[0], takes))
            return 1;
    }
    return 0;
}

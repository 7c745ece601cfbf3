/*
 * Windows: what is folded over windows along several axes is folded along one of them first, for all windows that share it:
 *
 *     a[oh,ow] = max(kh,kw) v(s * oh + d * kh, ow, kw)     becomes     rows[h,ow] = max(kw) v(h, ow, kw)
 *                                                                      a[oh,ow]   = max(kh) rows[s * oh + d * kh, ow]
 *
 * so a 5x5 window takes 10 steps, not 25. It holds for whatever folds its terms in any order, and for every value that depends on oh and kh
 * by that sum alone, its border test included: h goes through the border as well, so that rows are read without any test. Sums of floats
 * change by the order of their terms, which is the same in every run; as the terms of one sum are fewer, errors are smaller.
 *
 * Both are stages of one kernel: rows are scratch of a unit, as many as its windows cover.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

enum {
    LEAST_TAPS = 2,    /* of the axis that is folded last */
    WORTH_PERCENT = 75 /* of the time before: of small strided windows estimates are rough (3x3, stride 2, Zen 4: 77 %, measured 220 %) */
};

/* A place to cut: the stage's index of a load is step * kept + dilation * reduced + what has neither. */
typedef struct {
    uint32_t stage, kept, reduced;
    int64_t step, dilation;
} site;

/* --- where windows can be cut --- */

static int is_int(const dlc_pool *pool, dlc_expr expr, int64_t *value)
{
    enum { MOST = 1 << 20 }; /* steps beyond are nobody's, and products of them might not fit */
    return dlc_expr_is_int(pool, expr, value) && *value > 0 && *value < MOST;
}

/* Windows overlap, and all that lies between the first and the last of them is in one. */
static int overlaps(const dlc_kernel *kernel, const site *at)
{
    int64_t taps, windows;
    if (!dlc_const_extent(kernel, at->reduced, &taps) || at->step > at->dilation * (taps - 1))
        return 0;
    return at->dilation == 1 || (at->step == 1 && dlc_const_extent(kernel, at->kept, &windows) && windows >= at->dilation);
}

/* The value at point h of the windows' axis; 0: it depends on window and tap in another way than by their sum. */
static dlc_expr value_at(dlc_kernel *kernel, const site *at, dlc_expr h, dlc_arena *scratch)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr *with = dlc_new_array(scratch, dlc_expr, kernel->axes.n);
    if (at->dilation == 1)
        with[at->reduced] = dlc_sub(pool, h, dlc_muli(pool, dlc_expr_axis(pool, at->kept), at->step));
    else
        with[at->kept] = dlc_sub(pool, h, dlc_muli(pool, dlc_expr_axis(pool, at->reduced), at->dilation));
    dlc_expr value = dlc_expr_substitute(pool, kernel->stages.data[at->stage].value[0], with, kernel->axes.n);
    return dlc_expr_uses_axis(pool, value, at->kept) || dlc_expr_uses_axis(pool, value, at->reduced) ? 0 : value;
}

/* Every value is computed where and as it was: no recurrence, and no index that a run has to check. */
static int is_plain(const dlc_kernel *kernel, uint32_t s, dlc_arena *scratch)
{
    const dlc_stage *stage = &kernel->stages.data[s];
    const uint8_t *marks = dlc_stage_marks(kernel, stage, scratch);
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->op == DLC_EXPR_LOAD &&
            (node->flags || (DLC_SOURCE_IS_STAGE(node->imm.id) && DLC_SOURCE_INDEX(node->imm.id) >= s)))
            return 0;
    }
    return stage->combine != DLC_REDUCE_NONE && dlc_reduces[stage->combine].commutes && dlc_reduces[stage->combine].naccs == 1 &&
           stage->update == DLC_UPDATE_NONE && stage->reduce.n > 1 && stage->axes.n <= DLC_MAX_RANK;
}

typedef dlc_vec(site) sites;

/* The kernel's last axis is none of its own. */
static void add_site(dlc_kernel *kernel, site at, dlc_expr index, dlc_arena *scratch, sites *found)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr coefficient, rest;
    for (uint32_t i = 0; i < found->n; i++)
        if (found->data[i].stage == at.stage && found->data[i].kept == at.kept && found->data[i].reduced == at.reduced)
            return;
    if (dlc_expr_linear(pool, index, at.reduced, &coefficient, &rest) && is_int(pool, coefficient, &at.dilation) &&
        dlc_expr_linear(pool, rest, at.kept, &coefficient, &rest) && is_int(pool, coefficient, &at.step) && overlaps(kernel, &at) &&
        value_at(kernel, &at, dlc_expr_axis(pool, kernel->axes.n - 1), scratch))
        dlc_vec_push(scratch, found, at);
}

static void find_in_stage(dlc_kernel *kernel, uint32_t s, dlc_arena *scratch, sites *found)
{
    const dlc_pool *pool = kernel->pool;
    const dlc_stage *stage = &kernel->stages.data[s];
    const uint8_t *marks = dlc_stage_marks(kernel, stage, scratch);
    for (dlc_expr id = 1, n = pool->nodes.n; id < n; id++) {
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LOAD)
            continue;
        for (uint32_t d = 0; d < dlc_load_rank(pool, id); d++)
            for (uint32_t r = 0; r < stage->reduce.n; r++)
                for (uint32_t a = 0; a < stage->axes.n; a++)
                    add_site(kernel, (site){.stage = s, .kept = stage->axes.data[a], .reduced = stage->reduce.data[r]},
                             dlc_arg(pool, id, d), scratch, found);
    }
}

static sites find_sites(const dlc_rewriting *in, const dlc_kernel *kernel)
{
    dlc_kernel *copy = dlc_kernel_clone(kernel, in->scratch); /* looking adds to its pool */
    sites found = {0};
    (void)dlc_kernel_axis(copy, "h", dlc_expr_i64(copy->pool, 1));
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (is_plain(kernel, s, in->scratch))
            find_in_stage(copy, s, in->scratch, &found);
    return found;
}

/* --- the two stages --- */

/* step * (windows - 1) + dilation * (taps - 1) + 1 */
static dlc_expr covered(const dlc_kernel *kernel, const site *at)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr windows = dlc_muli(pool, dlc_addi(pool, kernel->axes.data[at->kept].extent, -1), at->step);
    dlc_expr taps = dlc_muli(pool, dlc_addi(pool, kernel->axes.data[at->reduced].extent, -1), at->dilation);
    return dlc_addi(pool, dlc_add(pool, windows, taps), 1);
}

static dlc_ids with_in_place_of(dlc_arena *arena, const dlc_ids *ids, uint32_t old, uint32_t new)
{
    dlc_ids result = {0};
    for (uint32_t i = 0; i < ids->n; i++)
        if (ids->data[i] != old || new != DLC_NO_AXIS)
            dlc_vec_push(arena, &result, ids->data[i] == old ? new : ids->data[i]);
    return result;
}

static void cut(dlc_kernel *kernel, const site *at, dlc_arena *scratch)
{
    dlc_pool *pool = kernel->pool;
    const char *name = dlc_arena_printf(kernel->arena, "%s_in", kernel->axes.data[at->kept].name);
    uint32_t h = dlc_kernel_axis(kernel, name, covered(kernel, at));
    dlc_expr index[DLC_MAX_RANK], value = value_at(kernel, at, dlc_expr_axis(pool, h), scratch);
    dlc_stage *rows = dlc_rewrite_insert_stage(kernel, at->stage), *stage = rows + 1;
    rows->name = dlc_arena_printf(kernel->arena, "%s.%s", stage->name, name);
    rows->axes = with_in_place_of(kernel->arena, &stage->axes, at->kept, h);
    rows->reduce = with_in_place_of(kernel->arena, &stage->reduce, at->reduced, DLC_NO_AXIS);
    rows->combine = stage->combine;
    rows->value[0] = value;
    rows->dtype[0] = stage->dtype[0];
    rows->origin = stage->origin;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        index[i] = dlc_expr_axis(pool, stage->axes.data[i]);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (stage->axes.data[i] == at->kept)
            index[i] = dlc_add(pool, dlc_muli(pool, index[i], at->step), dlc_muli(pool, dlc_expr_axis(pool, at->reduced), at->dilation));
    stage->value[0] = dlc_expr_load(pool, stage->dtype[0], DLC_STAGE_SOURCE(at->stage), index, stage->axes.n, 0, 0, 0);
    stage->reduce = (dlc_ids){0};
    dlc_vec_push(kernel->arena, &stage->reduce, at->reduced);
}

/* --- whether it pays --- */

static dlc_kernel *cut_copy(const dlc_rewriting *in, const dlc_kernel *kernel, const site *at)
{
    dlc_kernel *copy = dlc_kernel_clone(kernel, in->arena);
    cut(copy, at, in->scratch);
    dlc_kernel_simplify(copy);
    return copy;
}

/* The kernel with one window more cut, the one that takes least time of all then; NULL: none pays. */
static dlc_kernel *cut_one(const dlc_rewriting *in, const dlc_kernel *kernel, double *time)
{
    dlc_kernel *best = NULL;
    sites found = find_sites(in, kernel);
    for (uint32_t i = 0; i < found.n; i++) {
        int64_t taps = dlc_expr_value(kernel->pool, kernel->axes.data[found.data[i].reduced].extent);
        if (taps < (in->wanted ? in->wanted : LEAST_TAPS))
            continue;
        dlc_kernel *tried = cut_copy(in, kernel, &found.data[i]);
        double after = in->wanted ? 0 : dlc_rewrite_time_of_fitting(in, tried);
        if (after >= 0 && (in->wanted ? !best : after <= *time)) {
            *time = after;
            best = tried;
        }
    }
    return best;
}

int dlc_rewrite_windows(const dlc_rewriting *in, dlc_rewritten *out)
{
    dlc_kernel *best = NULL, *next;
    if (!find_sites(in, in->kernel).n)
        return 0;
    double before = in->wanted ? 0 : dlc_rewrite_time_of_fitting(in, in->kernel), time = before * WORTH_PERCENT / 100;
    if (before < 0)
        return 0;
    while ((next = cut_one(in, best ? best : in->kernel, &time)))
        best = next;
    if (best)
        dlc_rewrite_add_part(best, best->buffers.n, 0, out);
    return best != NULL;
}

/*
 * Partial sums of register tiles. The error of a sum grows with the terms that are added to one another in a row (Higham, "Accuracy and
 * Stability of Numerical Algorithms", 4.2), so as many of the innermost axes as a part holds are summed apart, and of the next one a tile,
 * tiles being near equal; of taps that are not all of use to a point, each. What a part is follows from the stage alone, so it is the same
 * in every tree, whatever else is fused.
 */
#include "passes/schedule/choose.h"

#include <math.h>

/* The axis is one of taps that are of use to some points alone: the copy of the stage's factor, if there is one, says so. */
static int is_tap_of_phase(const dlc_chooser *c, uint32_t s, uint32_t axis)
{
    const dlc_kernel *kernel = c->kernel;
    int found = dlc_choose_is_phase(c, kernel->stages.data[s].value[0], axis, &kernel->stages.data[s].axes);
    for (uint32_t i = 0; i < c->schedule->copies.n && !found; i++) {
        const dlc_schedule_copy *copy = &c->schedule->copies.data[i];
        found = copy->stage == s && copy->copy != DLC_NO_STAGE &&
                dlc_choose_is_phase(c, kernel->stages.data[copy->copy].value[0], axis, &kernel->stages.data[s].axes);
    }
    return found;
}

static int64_t extent_of(const dlc_chooser *c, const dlc_schedule_node *leaf, uint32_t i)
{
    return c->extent[leaf->over.data[i]];
}

/* How many points of the i-th reduced axis a part has where the axes inside it have so many terms. */
static int64_t part_of(const dlc_chooser *c, const dlc_schedule_node *leaf, uint32_t i, int64_t terms, int64_t part)
{
    uint32_t axis = leaf->over.data[i];
    int64_t most = terms < part && !is_tap_of_phase(c, leaf->stage, axis) ? part / terms : 1;
    int64_t parts = (extent_of(c, leaf, i) + most - 1) / most;
    return dlc_choose_is_known(c, axis) ? (extent_of(c, leaf, i) + parts - 1) / parts : most;
}

/* Terms of the sum; 0: the run alone knows. */
static int64_t terms_of(const dlc_chooser *c, const dlc_ids *over)
{
    int64_t terms = 1;
    for (uint32_t i = 0; i < over->n; i++)
        if (!dlc_choose_is_known(c, over->data[i]) || __builtin_mul_overflow(terms, c->extent[over->data[i]], &terms))
            return 0;
    return terms;
}

static const dlc_schedule_node *last_leaf(const dlc_chooser *c)
{
    return &c->schedule->nodes.data[c->schedule->nodes.n - 1];
}

/* A sum is cut into parts of at most `part` terms where it has more than `most`. */
static void choose_parts(dlc_chooser *c, int64_t part, int64_t most)
{
    const dlc_schedule_node *leaf = last_leaf(c);
    int64_t terms = 1;
    uint32_t i = leaf->over.n;
    if (!dlc_is_float(c->kernel->stages.data[leaf->stage].dtype[0]) || dlc_dots[leaf->row].granule > 1)
        return;
    while (i && dlc_choose_is_known(c, leaf->over.data[i - 1]) && terms * extent_of(c, leaf, i - 1) <= most)
        terms *= extent_of(c, leaf, --i);
    if (i)
        dlc_schedule_dot_cut(c->schedule, leaf->over.data[i - 1], part_of(c, leaf, i - 1, terms, part));
}

/* The stage is a copy for a leaf: of a factor as the kernel has it. */
static int is_copy(const dlc_chooser *c, uint32_t s)
{
    for (uint32_t i = 0; i < c->schedule->copies.n; i++)
        if (c->schedule->copies.data[i].copy == s)
            return 1;
    return 0;
}

/* What the value's loads, through copies, do by an axis: go along one of the stage's own, too; or go by it alone. */
typedef struct {
    int is_along, is_alone;
} use;

static void find_uses(const dlc_chooser *c, const dlc_stage *stage, dlc_expr value, uint32_t axis, use *of)
{
    const dlc_pool *pool = c->kernel->pool;
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, pool->nodes.n);
    dlc_expr_reach(pool, value, marks);
    for (dlc_expr id = 1; id <= value; id++) {
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LOAD)
            continue;
        uint32_t source = dlc_node_of(pool, id)->imm.id;
        if (DLC_SOURCE_IS_STAGE(source) && is_copy(c, DLC_SOURCE_INDEX(source)))
            find_uses(c, stage, c->kernel->stages.data[DLC_SOURCE_INDEX(source)].value[0], axis, of);
        for (uint32_t i = 0; i < dlc_load_rank(pool, id) && !DLC_SOURCE_IS_STAGE(source); i++) {
            dlc_expr index = dlc_arg(pool, id, i);
            of->is_alone |= dlc_bare_axis(pool, index) == axis;
            for (uint32_t k = 0; dlc_expr_uses_axis(pool, index, axis) && k < stage->axes.n; k++)
                of->is_along |= dlc_expr_uses_axis(pool, index, stage->axes.data[k]);
        }
    }
}

/* The image's load goes by it along an axis of the results, and the filter's by it alone. Heads, as b * 64 + k, are in both loads of a
 * product. */
static int is_tap(const dlc_chooser *c, uint32_t s, uint32_t axis)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    use of = {0};
    find_uses(c, stage, stage->value[0], axis, &of);
    return of.is_along && of.is_alone;
}

/*
 * Windows of few channels are a network's first convolution, and what is lost there goes through all of it: parts are of twice as many terms
 * as make errors least, so that there are half as many. Of other windows whose channels are innermost no more than a part's terms follow one
 * another.
 */
void dlc_choose_parts(dlc_chooser *c)
{
    enum { FEW_CHANNELS = 4, PART_OF_WINDOW = 64 };
    const dlc_schedule_node *leaf = last_leaf(c);
    int64_t terms = terms_of(c, &leaf->over), channels = terms, part = DLC_PART_TERMS, most = DLC_PART_MOST_TERMS;
    uint32_t ntaps = 0;
    for (uint32_t i = 0; i < leaf->over.n && terms > 1; i++) {
        if (!is_tap(c, leaf->stage, leaf->over.data[i]))
            continue;
        channels /= extent_of(c, leaf, i);
        ntaps++;
    }
    if (ntaps && channels <= FEW_CHANNELS)
        part = most = (int64_t)(2 * sqrt((double)terms));
    else if (ntaps && ntaps < leaf->over.n && !is_tap(c, leaf->stage, leaf->over.data[leaf->over.n - 1]))
        part = most = PART_OF_WINDOW;
    choose_parts(c, part, most);
}

enum { POINT_TERMS = 24 }; /* errors are then those of plain sums by parts of 128 */

int dlc_choose_has_parts_of_points(const dlc_chooser *c, uint32_t stage, const dlc_ids *over)
{
    int64_t terms = terms_of(c, over);
    return dlc_is_float(c->kernel->stages.data[stage].dtype[0]) && (terms == 0 || terms > POINT_TERMS);
}

void dlc_choose_parts_of_points(dlc_chooser *c)
{
    choose_parts(c, POINT_TERMS, POINT_TERMS);
}

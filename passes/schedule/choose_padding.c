/*
 * Points of the reduced axes at which all rows of a register tile are padding. Of 3x3 taps 12 apart on an image of 33 rows two fifths
 * are; they are left out where that pays for the test.
 */
#include "passes/schedule/choose.h"

#define WORTH_TESTS 0.95 /* of the time that all points take: each is asked for */
#define WORTH_LOWER 0.97 /* of the time that higher tiles take: others that take no less are no better */

typedef struct {
    const dlc_kernel *kernel;
    const dlc_schedule_node *leaf;
    int64_t height; /* rows of a tile */
    dlc_evaluator inside;
    int64_t *extent, *at; /* by axis */
} tiles;

static int is_inside(tiles *t)
{
    return dlc_evaluate(&t->inside, t->at) != 0;
}

/* Some row of the tile is no padding at this point. */
static int is_read(tiles *t)
{
    uint32_t rows = t->leaf->rows;
    if (rows == DLC_NO_AXIS)
        return is_inside(t);
    int64_t first = t->at[rows], end = t->extent[rows];
    int found = 0;
    for (t->at[rows] = first; t->at[rows] < first + t->height && t->at[rows] < end && !found; t->at[rows]++)
        found = is_inside(t);
    t->at[rows] = first;
    return found;
}

/* The tile of that number: its first row, and where the axes lie that it has one point of. Returns how many tiles there are. */
static int64_t go_to(const tiles *t, int64_t number)
{
    const dlc_ids *axes = &t->kernel->stages.data[t->leaf->stage].axes;
    int64_t all = 1;
    for (uint32_t i = axes->n; i-- > 0;) {
        uint32_t axis = axes->data[i];
        int64_t step = axis == t->leaf->rows ? t->height : 1, count = (t->extent[axis] + step - 1) / step;
        if (axis == t->leaf->columns)
            continue;
        t->at[axis] = number / all % count * step;
        all *= count;
    }
    return all;
}

/* The point of that number; returns how many there are. */
static int64_t go_to_point(const tiles *t, int64_t number)
{
    int64_t all = 1;
    for (uint32_t i = t->leaf->nskipped; i-- > 0;) {
        uint32_t axis = t->leaf->over.data[i];
        t->at[axis] = number / all % t->extent[axis];
        all *= t->extent[axis];
    }
    return all;
}

double dlc_choose_read(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf)
{
    enum { SAMPLES = 128, QUESTIONS = 1 << 14, /* tiles asked of many, and all questions but for one tile's */
           SPREAD = 7919 }; /* a prime: samples meet all places of a tile in an image's row */
    tiles t = {.kernel = c->kernel, .leaf = &schedule->nodes.data[leaf], .height = 1};
    dlc_expr inside = dlc_dot_inside(c->kernel, schedule, t.leaf, c->arena);
    uint32_t rows = dlc_schedule_rows(schedule, leaf);
    if (!inside)
        return 1;
    if (rows != DLC_ROOT_NODE)
        t.height = schedule->nodes.data[rows].tile;
    t.inside = dlc_evaluator_of(c->kernel->pool, &inside, 1, c->symbols, c->arena);
    t.at = dlc_new_array(c->arena, int64_t, c->kernel->axes.n);
    t.extent = dlc_new_array(c->arena, int64_t, c->kernel->axes.n);
    for (uint32_t a = 0; a < c->kernel->axes.n; a++) {
        t.extent[a] = dlc_expr_eval(c->kernel->pool, c->kernel->axes.data[a].extent, c->symbols);
        t.extent[a] = t.extent[a] < 1 ? 1 : t.extent[a];
    }
    int64_t all = go_to(&t, 0), points = go_to_point(&t, 0), n = QUESTIONS / points, nread = 0;
    n = n < 1 ? 1 : n > SAMPLES ? SAMPLES : n;
    n = n > all ? all : n;
    for (int64_t s = 0; s < n; s++) {
        go_to(&t, n == all ? s : s * SPREAD % all);
        for (int64_t p = 0; p < points; p++) {
            go_to_point(&t, p);
            nread += is_read(&t);
        }
    }
    return (double)nread / (double)(n * points);
}

/* A lower tile where that takes less time: tiles that end where an image's row does have more points at which all of their rows are
 * padding. Returns the time. */
static double fit_height(const dlc_chooser *c, dlc_schedule *schedule, uint32_t leaf)
{
    uint32_t rows = dlc_schedule_rows(schedule, leaf);
    double least = dlc_estimate_tiles(c, schedule, leaf);
    if (rows == DLC_ROOT_NODE ||
        dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, rows), schedule->nodes.data[rows].axis) != DLC_ROOT_NODE)
        return least;
    int64_t *tile = &schedule->nodes.data[rows].tile, rule = *tile, best = rule;
    for (*tile = rule - 1; *tile * 3 >= rule * 2; --*tile) {
        double cycles = dlc_estimate_tiles(c, schedule, leaf);
        if (cycles < least * WORTH_LOWER)
            least = cycles, best = *tile;
    }
    *tile = best;
    return least;
}

static void choose_skipped(dlc_chooser *from, uint32_t n)
{
    dlc_schedule *schedule = from->schedule;
    dlc_chooser facts = {0}, *c = &facts; /* of the schedule's kernel, whose rows' axes are one */
    dlc_schedule_node *leaf = &schedule->nodes.data[n];
    if (schedule->threads || dlc_dots[leaf->row].family != DLC_FAMILY_LANES || !leaf->over.n)
        return;
    uint32_t nskipped = leaf->over.n - 1;
    for (uint32_t i = 0; i < nskipped; i++)
        if (leaf->part > 1 && leaf->over.data[i] == leaf->cut)
            nskipped = i;
    leaf->nskipped = nskipped;
    dlc_expr inside = dlc_dot_inside(schedule->kernel, schedule, leaf, from->arena);
    while (inside && nskipped && !dlc_expr_uses_axis(schedule->kernel->pool, inside, leaf->over.data[nskipped - 1]))
        nskipped--;
    leaf->nskipped = 0;
    if (!inside || !nskipped)
        return;
    dlc_choose_facts(c, dlc_kernel_clone(schedule->kernel, from->arena), from->target, from->arena);
    uint32_t rows = dlc_schedule_rows(schedule, n);
    int64_t rule = rows == DLC_ROOT_NODE ? 1 : schedule->nodes.data[rows].tile;
    double all = dlc_estimate_tiles(c, schedule, n);
    leaf->nskipped = nskipped;
    if (fit_height(c, schedule, n) <= all * WORTH_TESTS)
        return;
    leaf->nskipped = 0;
    if (rows != DLC_ROOT_NODE)
        schedule->nodes.data[rows].tile = rule;
}

void dlc_choose_skipped(dlc_chooser *c)
{
    for (uint32_t n = 0; n < c->schedule->nodes.n; n++)
        if (c->schedule->nodes.data[n].row != DLC_DOT_NONE)
            choose_skipped(c, n);
}

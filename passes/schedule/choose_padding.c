/*
 * Points of the reduced axes at which all rows of a register tile are padding. Of 3x3 taps 12 apart on an image of 33 rows two fifths
 * are; they are left out where that pays for the test.
 */
#include "passes/schedule/choose.h"

typedef struct {
    const dlc_chooser *c;
    const dlc_kernel *kernel;
    const dlc_schedule_node *leaf;
    int64_t height; /* rows of a tile */
    dlc_evaluator inside;
    int64_t *extent, *at; /* by axis */
} tiles;

static int is_inside(const tiles *t)
{
    return dlc_evaluate(&t->inside, t->c->symbols, t->at) != 0;
}

/* Some row of the tile is no padding at this point. */
static int is_read(const tiles *t)
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
    tiles t = {.c = c, .kernel = c->kernel, .leaf = &schedule->nodes.data[leaf], .height = 1};
    dlc_expr inside = dlc_dot_inside(c->kernel, schedule, t.leaf);
    uint32_t rows = dlc_schedule_rows(schedule, leaf);
    if (!inside)
        return 1;
    if (rows != DLC_ROOT_NODE)
        t.height = schedule->nodes.data[rows].tile;
    t.inside = dlc_evaluator_of(c->kernel->pool, inside, c->arena);
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

void dlc_choose_skipped(dlc_chooser *c)
{
    enum { WORTH_PERCENT = 80 }; /* of the points: at 88 (7 taps on 17 points) the tests cost as much as they save */
    dlc_schedule *schedule = c->schedule;
    uint32_t n = schedule->nodes.n - 1;
    dlc_schedule_node *leaf = &schedule->nodes.data[n];
    if (schedule->threads || dlc_dots[leaf->row].family != DLC_FAMILY_LANES || !leaf->over.n)
        return;
    leaf->nskipped = leaf->over.n - 1;
    for (uint32_t i = 0; i < leaf->nskipped; i++)
        if (leaf->part > 1 && leaf->over.data[i] == leaf->cut)
            leaf->nskipped = i;
    dlc_expr inside = dlc_dot_inside(c->kernel, schedule, leaf);
    while (inside && leaf->nskipped && !dlc_expr_uses_axis(c->kernel->pool, inside, leaf->over.data[leaf->nskipped - 1]))
        leaf->nskipped--;
    if (!inside || dlc_choose_read(c, schedule, n) * 100 > WORTH_PERCENT)
        leaf->nskipped = 0;
}

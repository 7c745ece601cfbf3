/*
 * Points of the reduced axes at which all rows of a register tile are padding. Of 3x3 taps 12 apart on an image of 33 rows two fifths
 * are; they are left out where that pays for the test.
 */
#include "passes/schedule/choose.h"

#define WORTH_SKIPPING 0.98 /* of the time that all points take; less, as tests take time: */
#define TEST_CYCLES 10      /* of one: most answers are foreseen */
#define WORTH_LOWER 0.97 /* of the time that higher tiles take: others that take no less are no better */

/* Which of 64 points are inside, wherever the condition takes the same of a tile's row: most rows of an image are like others. */
typedef struct {
    uint64_t known, inside; /* bit i: of point first + i */
    int64_t first;
} answers;
enum { MOST_ANSWERS = 256, POINTS = 64 };

typedef struct {
    const dlc_kernel *kernel;
    const dlc_schedule_node *leaf;
    int64_t height; /* rows of a tile */
    dlc_evaluator inside, place;
    dlc_ids places; /* what the condition takes of a row: the largest parts of it that are the same at all points */
    answers *answers;
    int64_t *answered;    /* MOST_ANSWERS of `places` */
    int64_t *extent, *at; /* by axis */
} tiles;

static int is_of_point(const tiles *t, dlc_expr expr)
{
    for (uint32_t i = 0; i < t->leaf->nskipped; i++)
        if (dlc_expr_uses_axis(t->kernel->pool, expr, t->leaf->over.data[i]))
            return 1;
    return 0;
}

static void find_places(tiles *t, dlc_expr inside, const int64_t *symbols, dlc_arena *arena)
{
    const dlc_pool *pool = t->kernel->pool;
    uint8_t *marks = dlc_new_array(arena, uint8_t, (size_t)inside + 1);
    dlc_expr_reach(pool, inside, marks);
    if (!is_of_point(t, inside))
        dlc_vec_push(arena, &t->places, inside);
    for (dlc_expr id = 1; id <= inside; id++)
        for (uint32_t i = 0; marks[id] && i < dlc_node_of(pool, id)->nargs && is_of_point(t, id); i++) {
            dlc_expr part = dlc_arg(pool, id, i);
            if (!is_of_point(t, part) && !dlc_ids_find(&t->places, part, NULL))
                dlc_vec_push(arena, &t->places, part);
        }
    t->place = dlc_evaluator_of(pool, t->places.data, t->places.n, symbols, arena);
}

/* What is known of points from `first` on at the present row. */
static answers *answers_of(tiles *t, int64_t first)
{
    uint64_t hash = (uint64_t)first;
    dlc_evaluate(&t->place, t->at);
    for (uint32_t i = 0; i < t->places.n; i++)
        hash = dlc_hash(&t->place.values[t->places.data[i]].i, sizeof(int64_t), hash);
    answers *a = &t->answers[hash % MOST_ANSWERS];
    int64_t *values = &t->answered[hash % MOST_ANSWERS * t->places.n];
    int is_same = a->first == first;
    for (uint32_t i = 0; i < t->places.n; i++) {
        is_same &= values[i] == t->place.values[t->places.data[i]].i;
        values[i] = t->place.values[t->places.data[i]].i;
    }
    if (!is_same)
        *a = (answers){.first = first};
    return a;
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

/* Those of the points asked for from `first` on that are inside at the present row; points move. */
static uint64_t inside_of(tiles *t, int64_t first, uint64_t asked)
{
    answers *a = answers_of(t, first);
    for (uint64_t left = asked & ~a->known; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        go_to_point(t, first + i);
        a->inside |= (uint64_t)(dlc_evaluate(&t->inside, t->at) != 0) << i;
    }
    a->known |= asked;
    return a->inside;
}

/* Of n points from `first` on those at which some row of the tile is no padding. */
static int64_t count_read(tiles *t, int64_t first, int64_t n)
{
    uint64_t all = UINT64_MAX >> (POINTS - n), left = all;
    int64_t one = 0, *row = t->leaf->rows == DLC_NO_AXIS ? &one : &t->at[t->leaf->rows], begin = *row;
    int64_t end = t->leaf->rows == DLC_NO_AXIS ? 1 : t->extent[t->leaf->rows];
    for (; *row < begin + t->height && *row < end && left; ++*row)
        left &= ~inside_of(t, first, left);
    *row = begin;
    return __builtin_popcountll(all & ~left);
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
    find_places(&t, inside, c->symbols, c->arena);
    t.answers = dlc_new_array(c->arena, answers, MOST_ANSWERS);
    t.answered = dlc_new_array(c->arena, int64_t, MOST_ANSWERS * t.places.n + 1);
    t.at = dlc_new_array(c->arena, int64_t, c->kernel->axes.n);
    t.extent = dlc_new_array(c->arena, int64_t, c->kernel->axes.n);
    for (uint32_t a = 0; a < c->kernel->axes.n; a++) {
        t.extent[a] = dlc_expr_eval(c->kernel->pool, c->kernel->axes.data[a].extent, c->symbols);
        t.extent[a] = t.extent[a] < 1 ? 1 : t.extent[a];
    }
    int64_t all = go_to(&t, 0), points = go_to_point(&t, 0), n = QUESTIONS / points, nread = 0, nrows = 0;
    n = n < 1 ? 1 : n > SAMPLES ? SAMPLES : n;
    n = n > all ? all : n;
    for (int64_t s = 0; s < n; s++) {
        go_to(&t, n == all ? s : s * SPREAD % all);
        int64_t left = t.leaf->rows == DLC_NO_AXIS ? 1 : t.extent[t.leaf->rows] - t.at[t.leaf->rows], high = left < t.height ? left : t.height;
        for (int64_t p = 0; p < points; p += POINTS) /* a low tile at an end is as much less to do */
            nread += high * count_read(&t, p, points - p < POINTS ? points - p : POINTS);
        nrows += high;
    }
    return (double)nread / (double)(nrows * points);
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

/* The share of the products' time that skipping has to leave: each point of each tile is asked for. */
static double share_to_leave(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf)
{
    const dlc_schedule_node *node = &schedule->nodes.data[leaf];
    uint32_t rows = dlc_schedule_rows(schedule, leaf), columns = dlc_schedule_columns(schedule, leaf);
    double products = rows == DLC_ROOT_NODE ? 1 : (double)schedule->nodes.data[rows].tile; /* of a tile at a point */
    products *= columns == DLC_ROOT_NODE ? 1 : (double)schedule->nodes.data[columns].tile;
    for (uint32_t i = node->nskipped; i < node->over.n; i++)
        products *= (double)c->extent[node->over.data[i]];
    double lanes = dlc_choose_width(c, dlc_dtype_bytes(schedule->kernel->stages.data[node->stage].dtype[0]));
    return WORTH_SKIPPING - TEST_CYCLES / (products / lanes / dlc_dots[node->row].granule / 2);
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
    double skipping = fit_height(c, schedule, n), read = dlc_choose_read(c, schedule, n);
    while (leaf->nskipped > 1) { /* tiles of one line have all rows in a tap's border, or none */
        leaf->nskipped--;
        if (dlc_choose_read(c, schedule, n) > read) {
            leaf->nskipped++;
            break;
        }
    }
    if (skipping <= all * share_to_leave(c, schedule, n))
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

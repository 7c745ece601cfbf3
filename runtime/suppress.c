/*
 * Boxes that are kept, greedily, best score first: a box goes where a kept one overlaps it too much. Few are kept of many, so scores are never
 * sorted: some of the best are selected at a time. Where many are kept, most are far from each other (those of other classes, that an offset
 * moved apart, too): candidates lie in groups of neighbours, and a kept box is compared with a group's bounds first.
 */
#include <math.h>
#include <string.h>

#include "runtime/order.h"
#include "runtime/steps.h"

typedef struct {
    float low[2], high[2];
} box;

static float float_at(const void *data, int64_t i)
{
    float value;
    memcpy(&value, (const unsigned char *)data + i * (int64_t)sizeof value, sizeof value);
    return value;
}

/* Two opposite corners in either order, or the centre (x, y) with width and height. */
static void read_box(const void *data, int64_t i, int is_center, box *b)
{
    for (int d = 0; d < 2; d++) {
        float p = float_at(data, 4 * i + d), q = float_at(data, 4 * i + 2 + d);
        b->low[d] = is_center ? p - q / 2 : p < q ? p : q;
        b->high[d] = is_center ? p + q / 2 : p < q ? q : p;
    }
}

static float area_of(const box *b)
{
    return (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]);
}

/* One class of one batch: the numbers of the boxes kept, then -1. */
typedef struct {
    const void *boxes;
    dlcrt_row scores;
    unsigned char *kept;
    int64_t nboxes, most;
    float threshold;
    int32_t least_key; /* scores have to be above it */
    int is_center;
} contest;

enum { CANDIDATES = DLCRT_MOST_WANTED, FEW = 256, GROUP = 16, AT_ONCE = 4, NGROUPS = CANDIDATES / GROUP };

/* The next candidates, in places by where they lie, and the bounds of their groups: corners side by side, as they are compared. */
typedef struct {
    float low[2][CANDIDATES], high[2][CANDIDATES], area[CANDIDATES];
    float group_low[2][NGROUPS], group_high[2][NGROUPS];
    int32_t is_left[CANDIDATES];
    uint16_t place[CANDIDATES]; /* of the candidate by its rank */
    int64_t n;
} candidates;

static const box nowhere = {{HUGE_VALF, HUGE_VALF}, {-HUGE_VALF, -HUGE_VALF}};

static void set_candidate(candidates *all, int64_t i, const box *b, int is_left)
{
    for (int d = 0; d < 2; d++) {
        all->low[d][i] = b->low[d];
        all->high[d][i] = b->high[d];
    }
    all->area[i] = area_of(b);
    all->is_left[i] = is_left;
}

static void set_group(candidates *all, int64_t g, const box *bounds)
{
    for (int d = 0; d < 2; d++) {
        all->group_low[d][g] = bounds->low[d];
        all->group_high[d][g] = bounds->high[d];
    }
}

/* NaN is outside: it overlaps nothing. */
static void widen(box *bounds, const box *b)
{
    for (int d = 0; d < 2; d++) {
        bounds->low[d] = b->low[d] < bounds->low[d] ? b->low[d] : bounds->low[d];
        bounds->high[d] = b->high[d] > bounds->high[d] ? b->high[d] : bounds->high[d];
    }
}

static box candidate_at(const candidates *all, int64_t i)
{
    return (box){{all->low[0][i], all->low[1][i]}, {all->high[0][i], all->high[1][i]}};
}

/* --- places: by columns of a grid, and down each column --- */
enum { COLUMNS = 16, MOST_CELLS = CANDIDATES };

typedef struct {
    float least[2], scale[2];
    int cells[2]; /* along each dimension */
} grid;

static grid grid_of(const contest *c, const uint64_t *numbers, int64_t n)
{
    grid g;
    box bounds = nowhere;
    for (int64_t i = 0; i < n; i++) {
        box own;
        read_box(c->boxes, dlcrt_number_element(numbers[i]), c->is_center, &own);
        widen(&bounds, &own);
    }
    for (int d = 0; d < 2; d++) {
        g.cells[d] = d ? (int)(n / COLUMNS) : COLUMNS;
        g.least[d] = bounds.low[d];
        g.scale[d] = (float)g.cells[d] / (bounds.high[d] - bounds.low[d]);
    }
    return g;
}

/* Any cell will do, NaN and infinities included: it says how soon a box is found to be far. */
static int cell_of(const grid *g, const box *b)
{
    int cell = 0;
    for (int d = 0; d < 2; d++) {
        float at = (b->low[d] - g->least[d]) * g->scale[d];
        cell = cell * g->cells[d] + (at >= (float)g->cells[d] ? g->cells[d] - 1 : at > 0 ? (int)at : 0);
    }
    return cell;
}

static void sort_places(const contest *c, const uint64_t *numbers, candidates *all)
{
    grid g = grid_of(c, numbers, all->n);
    uint16_t next[MOST_CELLS + 1], cells[CANDIDATES];
    int ncells = g.cells[0] * g.cells[1];
    memset(next, 0, sizeof *next * (size_t)(ncells + 1));
    for (int64_t i = 0; i < all->n; i++) {
        box own;
        read_box(c->boxes, dlcrt_number_element(numbers[i]), c->is_center, &own);
        cells[i] = (uint16_t)cell_of(&g, &own);
        next[cells[i] + 1]++;
    }
    for (int cell = 0; cell < ncells; cell++)
        next[cell + 1] = (uint16_t)(next[cell + 1] + next[cell]);
    for (int64_t i = 0; i < all->n; i++)
        all->place[i] = next[cells[i]]++;
}

/* Few are all compared, in their order. */
static int is_sorted(int64_t n)
{
    return n > FEW;
}

static int64_t whole_groups(int64_t n)
{
    return (n + GROUP - 1) / GROUP * GROUP;
}

static void bound_groups(candidates *all)
{
    int64_t ngroups = whole_groups(all->n) / GROUP;
    for (int64_t g = 0; g < ngroups; g++) {
        box bounds = nowhere;
        for (int64_t i = g * GROUP; i < (g + 1) * GROUP; i++) {
            box own = candidate_at(all, i);
            widen(&bounds, &own);
        }
        set_group(all, g, &bounds);
    }
    for (int64_t g = ngroups; g < whole_groups(ngroups); g++)
        set_group(all, g, &nowhere);
}

static void take_candidates(const contest *c, const uint64_t *numbers, int64_t n, candidates *all)
{
    all->n = n;
    for (int64_t i = 0; i < n; i++)
        all->place[i] = (uint16_t)i;
    if (is_sorted(n))
        sort_places(c, numbers, all);
    for (int64_t i = 0; i < n; i++) {
        box own;
        read_box(c->boxes, dlcrt_number_element(numbers[i]), c->is_center, &own);
        set_candidate(all, all->place[i], &own, 1);
    }
    for (int64_t i = n; i < whole_groups(n); i++)
        set_candidate(all, i, &nowhere, 0);
    if (is_sorted(n))
        bound_groups(all);
}

/* --- strikes --- */

/* Whether some of `n` boxes reach into one, their corners side by side from `low` and `high` on, `pitch` further along the second dimension:
 * comparisons alone. */
static inline int reach_some(const float *low, const float *high, int64_t pitch, int64_t n, const box *b)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++)
        found |= (low[i] < b->high[0]) & (high[i] > b->low[0]) & (low[pitch + i] < b->high[1]) & (high[pitch + i] > b->low[1]);
    return found;
}

static inline int groups_reach(const candidates *all, int64_t first, int64_t n, const box *b)
{
    return reach_some(all->group_low[0] + first, all->group_high[0] + first, NGROUPS, n, b);
}

static inline int candidates_reach(const candidates *all, int64_t first, int64_t n, const box *b)
{
    return reach_some(all->low[0] + first, all->high[0] + first, CANDIDATES, n, b);
}

/* Sets share[2] to how far both reach together along each dimension. */
static inline void shared_extent(const candidates *all, int64_t i, const box *kept, float share[2])
{
    for (int d = 0; d < 2; d++) {
        float low = all->low[d][i] > kept->low[d] ? all->low[d][i] : kept->low[d];
        share[d] = (all->high[d][i] < kept->high[d] ? all->high[d][i] : kept->high[d]) - low;
    }
}

/* An area of 0 overlaps nothing. */
static inline void strike_some(candidates *all, int64_t first, const box *kept, float area, float threshold)
{
    for (int64_t i = first; i < first + AT_ONCE; i++) {
        float share[2];
        shared_extent(all, i, kept, share);
        float shared = share[0] * share[1], whole = all->area[i] + area - shared;
        int is_out = (share[0] > 0) & (share[1] > 0) & (all->area[i] > 0) & (whole > 0) & (shared / whole > threshold);
        all->is_left[i] &= !is_out;
    }
}

static inline void strike_range(candidates *all, int64_t first, int64_t end, const box *kept, float area, float threshold)
{
    for (int64_t i = first; i < end; i += AT_ONCE)
        if (candidates_reach(all, i, AT_ONCE, kept))
            strike_some(all, i, kept, area, threshold);
}

static void strike_groups(candidates *all, const box *kept, float area, float threshold)
{
    int64_t ngroups = whole_groups(all->n) / GROUP;
    for (int64_t some = 0; some < ngroups; some += GROUP) {
        if (!groups_reach(all, some, GROUP, kept))
            continue;
        for (int64_t g = some; g < some + GROUP; g++)
            if (groups_reach(all, g, 1, kept))
                strike_range(all, g * GROUP, (g + 1) * GROUP, kept, area, threshold);
    }
}

/* Those of rank `first` and worse that the box overlaps too much are out. */
static void strike(candidates *all, int64_t first, const box *kept, float threshold)
{
    float area = area_of(kept);
    if (!(area > 0))
        return;
    if (is_sorted(all->n))
        strike_groups(all, kept, area, threshold);
    else
        strike_range(all, first / AT_ONCE * AT_ONCE, all->n, kept, area, threshold);
}

static int64_t kept_at(const contest *c, int64_t i)
{
    int64_t number;
    memcpy(&number, c->kept + i * (int64_t)sizeof number, sizeof number);
    return number;
}

static void set_kept(const contest *c, int64_t i, int64_t number)
{
    memcpy(c->kept + i * (int64_t)sizeof number, &number, sizeof number);
}

/* First all boxes kept so far strike, then each that is left is kept and strikes. Returns how many are kept. */
static int64_t keep_some(const contest *c, const uint64_t *numbers, candidates *all, int64_t nkept)
{
    for (int64_t k = 0; k < nkept; k++) {
        box kept;
        read_box(c->boxes, kept_at(c, k), c->is_center, &kept);
        strike(all, 0, &kept, c->threshold);
    }
    for (int64_t i = 0; i < all->n && nkept < c->most; i++) {
        if (!all->is_left[all->place[i]])
            continue;
        set_kept(c, nkept++, dlcrt_number_element(numbers[i]));
        box own = candidate_at(all, all->place[i]);
        strike(all, i + 1, &own, c->threshold);
    }
    return nkept;
}

/* Of n candidates, those to go on with when `wanted` more boxes are: all may be kept. */
static int64_t enough(int64_t wanted, int64_t n)
{
    int64_t few = wanted > DLCRT_BLOCK ? wanted : DLCRT_BLOCK;
    return few < n ? few : n;
}

/* The best are selected, then the next best, more each time. */
static void suppress(const contest *c)
{
    candidates all;
    dlcrt_selection best;
    int64_t nkept = 0;
    int is_over = 0;
    best.most = UINT64_MAX;
    best.wanted = DLCRT_BLOCK;
    while (nkept < c->most && !is_over) {
        best.above_key = c->least_key;
        dlcrt_select(&best, &c->scores, c->nboxes);
        is_over = best.n < best.wanted;
        if (best.n && dlcrt_number_key(best.numbers[0]) == INT32_MAX) /* NaN comes first and is above nothing: with it the class ends */
            break;
        for (int64_t at = 0; at < best.n && nkept < c->most; at += all.n) {
            take_candidates(c, best.numbers + at, enough(c->most - nkept, best.n - at), &all);
            nkept = keep_some(c, best.numbers + at, &all, nkept);
        }
        if (!is_over)
            best.most = best.numbers[best.n - 1] - 1;
        best.wanted = best.wanted < DLCRT_MOST_WANTED / 2 ? 2 * best.wanted : DLCRT_MOST_WANTED;
    }
    for (int64_t i = nkept; i < c->most; i++)
        set_kept(c, i, -1);
}

typedef struct {
    const dlcrt_operand *boxes, *scores, *kept;
    float threshold;
    int32_t least_key;
    int is_center;
} contests;

static void suppress_classes(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    const contests *all = args->buffers[0];
    int64_t n = all->scores->dims[2], most = all->kept->dims[2];
    for (int64_t i = begin; i < end; i++)
        suppress(&(contest){
            .boxes = (const unsigned char *)all->boxes->data + i / all->scores->dims[1] * n * 4 * (int64_t)sizeof(float),
            .scores = {dlcrt_keys_of(DLC_F32, 0), (const unsigned char *)all->scores->data + i * n * (int64_t)sizeof(float), sizeof(float)},
            .kept = (unsigned char *)all->kept->data + i * most * (int64_t)sizeof(int64_t),
            .nboxes = n,
            .most = most,
            .threshold = all->threshold,
            .least_key = all->least_key,
            .is_center = all->is_center});
}

/* inputs boxes f32[b,n,4], scores f32[b,c,n], threshold and least f32; output i64[b,c,most]; attrs center */
dlc_status dlcrt_run_suppress(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *boxes = &args->operands[0], *scores = &args->operands[1], *least = &args->operands[3], *kept = &args->operands[4];
    int is_shaped = boxes->rank == 3 && boxes->dims[2] == 4 && scores->rank == 3 && kept->rank == 3 && scores->dims[0] == boxes->dims[0] &&
                    scores->dims[2] == boxes->dims[1] && boxes->dims[1] <= UINT32_MAX && kept->dims[0] == scores->dims[0] &&
                    kept->dims[1] == scores->dims[1];
    for (uint32_t i = 0; is_shaped && i < 5; i++) /* the limits are single numbers */
        is_shaped = args->operands[i].dtype == (i < 4 ? DLC_F32 : DLC_I64) && !dlcrt_is_missing(&args->operands[i]) &&
                    ((i != 2 && i != 3) || dlcrt_operand_elems(&args->operands[i]) == 1);
    if (!is_shaped)
        return dlcrt_fail(DLC_INVALID, "node '%s': boxes and scores do not belong together", args->name);
    int32_t keys[DLCRT_BLOCK];
    dlcrt_keys_read(&(dlcrt_row){dlcrt_keys_of(DLC_F32, 0), least->data, sizeof(float)}, 0, 1, keys);
    contests all = {boxes, scores, kept, float_at(args->operands[2].data, 0), keys[0], args->attrs[0] != 0};
    dlcrt_pool_run_units(args->pool, suppress_classes, &all, scores->dims[0] * scores->dims[1], scores->dims[2]);
    return DLC_OK;
}

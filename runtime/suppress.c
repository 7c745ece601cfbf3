/*
 * Boxes that are kept, greedily, best score first: a box goes where a kept one overlaps it too much. Few are kept of many, so scores are never
 * sorted: some of the best are selected at a time.
 */
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

/* The next candidates, as they are compared: corners and areas side by side, 4 at once. */
enum { CANDIDATES = 64, AT_ONCE = 4 };
typedef struct {
    float low[2][CANDIDATES], high[2][CANDIDATES], area[CANDIDATES];
    int32_t is_left[CANDIDATES];
    int64_t number[CANDIDATES], n;
} candidates;

static void set_candidate(candidates *all, int64_t i, const box *b)
{
    for (int d = 0; d < 2; d++) {
        all->low[d][i] = b->low[d];
        all->high[d][i] = b->high[d];
    }
    all->area[i] = area_of(b);
}

static void take_candidates(const contest *c, const uint64_t *numbers, int64_t n, candidates *all)
{
    all->n = n < CANDIDATES ? n : CANDIDATES;
    for (int64_t i = 0; i < all->n; i++) {
        all->number[i] = dlcrt_number_element(numbers[i]);
        box own;
        read_box(c->boxes, all->number[i], c->is_center, &own);
        set_candidate(all, i, &own);
        all->is_left[i] = 1;
    }
    for (int64_t i = all->n; i % AT_ONCE; i++) {
        set_candidate(all, i, &(box){{0, 0}, {0, 0}});
        all->is_left[i] = 0;
    }
}

/* Sets share[2] to how far both reach together along each dimension. */
static inline void shared_extent(const candidates *all, int64_t i, const box *kept, float share[2])
{
    for (int d = 0; d < 2; d++) {
        float low = all->low[d][i] > kept->low[d] ? all->low[d][i] : kept->low[d];
        share[d] = (all->high[d][i] < kept->high[d] ? all->high[d][i] : kept->high[d]) - low;
    }
}

static int touches_some(const candidates *all, int64_t first, const box *kept)
{
    int found = 0;
    for (int64_t i = first; i < first + AT_ONCE; i++) {
        float share[2];
        shared_extent(all, i, kept, share);
        found |= (share[0] > 0) & (share[1] > 0) & all->is_left[i];
    }
    return found;
}

/* Those from `first` on that the box overlaps too much are out. An area of 0 overlaps nothing. */
static void strike(candidates *all, int64_t first, const box *kept, float threshold)
{
    float area = area_of(kept);
    for (int64_t g = first / AT_ONCE * AT_ONCE; area > 0 && g < all->n; g += AT_ONCE) {
        if (!touches_some(all, g, kept))
            continue;
        for (int64_t i = g; i < g + AT_ONCE; i++) {
            float share[2];
            shared_extent(all, i, kept, share);
            float shared = share[0] * share[1], whole = all->area[i] + area - shared;
            int is_out = (share[0] > 0) & (share[1] > 0) & (all->area[i] > 0) & (whole > 0) & (shared / whole > threshold);
            all->is_left[i] &= !is_out;
        }
    }
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

/* First all boxes kept so far strike out of the candidates, then each that is left is kept and strikes. Returns how many are kept. */
static int64_t keep_some(const contest *c, candidates *all, int64_t nkept)
{
    for (int64_t k = 0; k < nkept; k++) {
        box kept;
        read_box(c->boxes, kept_at(c, k), c->is_center, &kept);
        strike(all, 0, &kept, c->threshold);
    }
    for (int64_t i = 0; i < all->n && nkept < c->most; i++) {
        if (!all->is_left[i])
            continue;
        set_kept(c, nkept++, all->number[i]);
        box own = {{all->low[0][i], all->low[1][i]}, {all->high[0][i], all->high[1][i]}};
        strike(all, i + 1, &own, c->threshold);
    }
    return nkept;
}

/* The best are selected, then the next best, more each time. */
static void suppress(const contest *c)
{
    candidates all;
    dlcrt_selection best;
    int64_t nkept = 0;
    int is_over = 0;
    best.most = UINT64_MAX;
    best.wanted = CANDIDATES;
    while (nkept < c->most && !is_over) {
        best.above_key = c->least_key;
        dlcrt_select(&best, &c->scores, c->nboxes);
        is_over = best.n < best.wanted;
        if (best.n && dlcrt_number_key(best.numbers[0]) == INT32_MAX) /* NaN comes first and is above nothing: with it the class ends */
            break;
        for (int64_t at = 0; at < best.n && nkept < c->most; at += CANDIDATES) {
            take_candidates(c, best.numbers + at, best.n - at, &all);
            nkept = keep_some(c, &all, nkept);
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

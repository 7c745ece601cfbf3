/*
 * Attention: scores of rows by keys, a softmax of each row, values weighed by it. The first product goes with its sides turned: keys are
 * the rows of its tile, read as they lie, and the block's queries are its columns, a small panel that is copied once. So scores lie with
 * queries side by side, sums and maxima go along the lanes without folding them, and the second product finds its rows' elements together:
 *
 *     par points, i:T {
 *       queries as panels
 *       for i:N, j:M { scores in scratch }
 *       lane i { for j { maximum }  for j { exp in scratch; sum } }
 *       for columns:N, i:M { values } }
 *
 * Scores take T rows of scratch, however many there are: nothing of their size goes through memory. (Rabe and Staats, Self-attention Does
 * Not Need O(n^2) Memory, 2021, and Dao et al., FlashAttention, 2022, keep less of a row, and scale what they have as they go.)
 */
#include "passes/schedule/choose_attention.h"

#define MOST_SCORES 0.4 /* of the scratch there may be: keys and values want room, too */

enum { LEAST_BLOCK = 32 }; /* queries of a block: keys and values are read once for all of them */

typedef dlc_tiles tiles;
typedef dlc_tiles_product product;
typedef dlc_attention attention;

static const dlc_stage *stage_at(const attention *a, uint32_t s)
{
    return dlc_attention_stage(a, s);
}

/* --- what is one --- */

static int find_products(attention *a)
{
    uint32_t nstages = a->t.c->kernel->stages.n, n = 0;
    for (uint32_t s = 0; s < nstages; s++) {
        if (!a->t.products[s].is_dot)
            continue;
        a->scores = n ? a->scores : s;
        a->values = s;
        n++;
    }
    return n == 2 && a->scores == 0 && a->t.products[a->values].as_end == nstages;
}

/* Keys would have to be copied by every block, and can be read as they lie. */
static int turns(const attention *a)
{
    const product *p = &a->t.products[a->scores];
    const dlc_pool *pool = a->t.c->kernel->pool;
    const dlc_expr_node *keys = dlc_node_of(pool, p->right);
    return p->copies_right && !p->is_packed && !p->others.n && keys->op == DLC_EXPR_LOAD && !keys->flags &&
           !DLC_SOURCE_IS_STAGE(keys->imm.id) && !dlc_load_guard(pool, p->right) && !a->t.products[a->values].copies_left &&
           !a->t.products[a->values].copies_right;
}

/* What lanes along the queries read of memory lies side by side, or is one element, or a constant that can be laid out so. */
static int reads_by_lanes(const attention *a, uint32_t s)
{
    const dlc_chooser *c = a->t.c;
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        int64_t stride = dlc_choose_stride(c, access->offset, a->query);
        if (!access->load)
            return 0;
        if (!DLC_SOURCE_IS_STAGE(access->source) && stride != 0 && stride != 1 && !dlc_choose_lays_out(c, access, a->query))
            return 0;
    }
    return 1;
}

/* Of points, queries and keys, at one point of each. */
static int is_of_rows(const attention *a, uint32_t s)
{
    const dlc_stage *stage = stage_at(a, s);
    uint32_t nkeys = stage->reduce.n;
    for (uint32_t i = 0; i < stage->axes.n; i++) {
        uint32_t axis = stage->axes.data[i];
        nkeys += axis == a->key;
        if (axis != a->key && !dlc_ids_find(&a->t.c->roots, axis, NULL))
            return 0;
    }
    return nkeys <= 1 && (!stage->reduce.n || stage->reduce.data[0] == a->key) && dlc_ids_find(&stage->axes, a->query, NULL) &&
           stage->update == DLC_UPDATE_NONE && dlc_reduces[stage->combine].naccs <= 1;
}

int dlc_attention_find(attention *a)
{
    if (!dlc_tiles_find(&a->t) || a->t.rows.n != 1 || !find_products(a))
        return 0;
    a->query = a->t.rows.data[0];
    a->key = a->t.products[a->scores].columns;
    for (uint32_t s = a->scores + 1; s < a->values; s++)
        if (!is_of_rows(a, s))
            return 0;
    return dlc_ids_find(&stage_at(a, a->values)->reduce, a->key, NULL);
}

static int goes_by_lanes(const attention *a)
{
    for (uint32_t s = a->scores + 1; s < a->values; s++)
        if (!reads_by_lanes(a, s))
            return 0;
    return turns(a) && a->t.c->extent[a->query] >= (int64_t)dlc_tiles_width(&a->t, a->scores);
}

/* The keys' factor gives rows, the queries' one columns. */
static void turn_scores(attention *a)
{
    product *p = &a->t.products[a->scores];
    dlc_expr keys = p->right;
    p->right = p->left;
    p->left = keys;
    p->columns = a->query;
    p->copies_left = p->copies_block = 0;
    p->panel = p->n;
    p->order.n = 0;
    dlc_choose_order_reduction(a->t.c, a->scores, p->left, &p->order);
}

/* As few queries as there are panels' columns, or one vector of them where more keys' scores do not fit. The first map of scores takes
 * their memory; what does not fit after all is refused by who asked. */
static void choose_block(attention *a)
{
    product *p = &a->t.products[a->scores];
    double row = dlc_tiles_row_bytes(&a->t), scores = (double)a->t.c->extent[a->key] * dlc_dtype_bytes(stage_at(a, a->scores)->dtype[0]);
    row = row > scores * 2 ? row - scores : scores;
    a->t.t = (LEAST_BLOCK + p->n - 1) / p->n * p->n;
    if ((double)a->t.t * row > (double)a->t.c->target->scratch_bytes * MOST_SCORES)
        a->t.t = p->n = p->panel = dlc_tiles_width(&a->t, a->scores);
}

/* --- the tree --- */

static void build_scores(const attention *a, uint32_t queries)
{
    dlc_schedule *schedule = a->t.c->schedule;
    const product *p = &a->t.products[a->scores];
    int is_wide = a->t.t > p->n;
    dlc_products_build_copy(&a->t, queries, a->query, dlc_tiles_width(&a->t, a->scores), is_wide ? p->n : 0);
    if (is_wide)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, a->query, p->n);
    dlc_schedule_open(schedule, DLC_LOOP_FOR, a->key, dlc_products_height(&a->t, a->scores));
    dlc_schedule_dot(schedule, a->scores, DLC_DOT_FMA, a->key, a->query, &p->order, a->t.c->place[a->scores]);
    dlc_choose_parts(a->t.c);
    if (p->as_end > a->scores + 1) {
        dlc_schedule_open_as(schedule, a->scores);
        for (uint32_t e = a->scores + 1; e < p->as_end; e++)
            dlc_schedule_leaf(schedule, e, a->t.c->place[e]);
        dlc_schedule_close(schedule, 1);
    }
    dlc_schedule_close(schedule, 1u + (uint32_t)is_wide);
}

int dlc_attention_is_by_keys(const attention *a, uint32_t s)
{
    return dlc_ids_find(&stage_at(a, s)->axes, a->key, NULL) || stage_at(a, s)->reduce.n;
}

/* Some stage of [first, s) is a sum that s reads: it is there behind the loop over its keys. */
static int waits(const attention *a, uint32_t first, uint32_t s)
{
    for (uint32_t i = 0; i < a->t.c->accesses[s].n; i++) {
        dlc_source source = a->t.c->accesses[s].data[i].source;
        if (a->t.c->accesses[s].data[i].load && DLC_SOURCE_IS_STAGE(source) && DLC_SOURCE_INDEX(source) >= first &&
            stage_at(a, DLC_SOURCE_INDEX(source))->reduce.n)
            return 1;
    }
    return 0;
}

uint32_t dlc_attention_group_end(const attention *a, uint32_t first, uint32_t end)
{
    uint32_t s = first + 1;
    while (dlc_attention_is_by_keys(a, first) && s < end && dlc_attention_is_by_keys(a, s) && !waits(a, first, s))
        s++;
    return s;
}

/* Vectors of a panel go side by side: a maximum waits for the one before it, and nothing else is there to do meanwhile. (Emerald Rapids, 12
 * heads of 128 keys of 32: two .955 of the time of one, four .935.) */
static uint32_t width_of_rows(const attention *a)
{
    uint32_t width = a->t.lanes.width, columns = a->t.products[a->scores].n;
    return columns % width ? width : columns;
}

static void build_rows(const attention *a)
{
    dlc_schedule *schedule = a->t.c->schedule;
    uint32_t s = a->t.products[a->scores].as_end;
    dlc_schedule_open_lane(schedule, a->query, width_of_rows(a), 1);
    while (s < a->values) {
        uint32_t by_keys = (uint32_t)dlc_attention_is_by_keys(a, s), end = dlc_attention_group_end(a, s, a->values);
        if (by_keys)
            dlc_schedule_open(schedule, DLC_LOOP_FOR, a->key, 1);
        for (; s < end; s++)
            dlc_schedule_leaf(schedule, s, a->t.c->place[s]);
        dlc_schedule_close(schedule, by_keys);
    }
    dlc_schedule_close(schedule, 1);
}

static void build(attention *a)
{
    tiles *t = &a->t;
    uint32_t nstages = t->c->schedule->nstages;
    uint32_t *left = dlc_new_array(t->c->arena, uint32_t, nstages), *right = dlc_new_array(t->c->arena, uint32_t, nstages);
    dlc_products_add_copies(t, left, right);
    for (uint32_t s = a->scores + 1; s < a->values; s++)
        dlc_choose_lay_out_constants(t->c, s, a->query, &dlc_no_own_dot);
    dlc_tiles_flatten(t);
    for (uint32_t i = 0; i < t->points.n; i++)
        dlc_schedule_open(t->c->schedule, DLC_LOOP_PAR, t->points.data[i], 1);
    dlc_schedule_open(t->c->schedule, DLC_LOOP_PAR, a->query, t->t);
    build_scores(a, right[a->scores]);
    build_rows(a);
    t->m = dlc_products_height(t, a->values);
    dlc_tiles_build_product(t, a->values, left, right[a->values]);
    dlc_schedule_close(t->c->schedule, t->points.n + 1);
}

int dlc_choose_attention(dlc_chooser *c)
{
    attention a = {.t = {.c = c}};
    if (c->target->kind != DLC_TARGET_CPU || !dlc_attention_find(&a) || !goes_by_lanes(&a))
        return 0;
    turn_scores(&a);
    choose_block(&a);
    build(&a);
    return 1;
}

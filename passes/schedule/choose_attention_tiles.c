/*
 * Attention whose products go by tile registers: keys and values are copied into granules once for a block of queries, scores and what they
 * become lie as rows of keys, as the second product reads them:
 *
 *     par points, i:T {
 *       keys, values as panels of granules
 *       for j:N, i:M { scores in scratch }
 *       for i:R { for i, lane j { maximum }  for i, lane j { exp in scratch; sum }  for i, lane j { weights in scratch } }
 *       for columns:N, i:M { values } }
 *
 * Loops over a few rows each, so that the folds of one row hide behind those of the next, and what they read is still in L1 (Emerald Rapids,
 * 128 keys: .88 of the time of one loop with all of it).
 */
#include "passes/schedule/choose_attention.h"

#include <math.h>

enum {
    LEAST_DEPTH = 16, /* of either product */
    MOST_ROWS = 16    /* of what goes along rows at once */
};

#define FOR_SCORES 0.9 /* of the scratch, with keys and values: what lies between has a few rows */

typedef dlc_attention attention;
typedef dlc_tiles_product product;

/* A product by tile registers. */
typedef struct {
    uint32_t stage, columns;
    dlc_dot row;
    dlc_expr left, right;    /* factors of rows and of columns, in the row's type */
    int64_t m, n;
    int copies_left;
    uint32_t left_copy, right_copy;
} matrix;

typedef struct {
    attention a;
    matrix scores, values;
    int64_t block; /* queries */
} plan;

/* --- what is one --- */

static int64_t tile_of(int64_t extent, int64_t of_register)
{
    enum { REGISTERS = 2 };
    return extent > of_register ? REGISTERS * of_register : of_register;
}

static int find_matrix(const plan *p, uint32_t s, matrix *m)
{
    const dlc_chooser *c = p->a.t.c;
    const product *of = &p->a.t.products[s];
    uint32_t inner = of->order.data[of->order.n - 1];
    *m = (matrix){.stage = s, .columns = of->columns};
    if (of->others.n || of->order.n != 1 || !dlc_choose_is_known(c, inner) || !dlc_choose_is_known(c, of->columns))
        return 0;
    for (uint32_t row = DLC_DOT_NONE + 1; row < DLC_DOT_COUNT && m->row == DLC_DOT_NONE; row++) {
        dlc_dot_operands operands;
        if (dlc_dots[row].family != DLC_FAMILY_TILE || dlc_dots[row].parts > 1 || !dlc_dot_pays(c->target, (dlc_dot)row) ||
            !dlc_dot_takes((dlc_dot)row, c->kernel->pool, of->left, of->right, (dlc_dtype)dlc_attention_stage(&p->a, s)->dtype[0], &operands))
            continue;
        m->row = (dlc_dot)row;
        m->left = operands.rows;
        m->right = operands.columns;
    }
    const dlc_access_fact *left = m->row == DLC_DOT_NONE ? NULL : dlc_products_plain_load(&p->a.t, s, m->left);
    m->copies_left = !left || dlc_choose_stride(c, left->offset, inner) != 1;
    m->m = tile_of(c->extent[p->a.query], DLC_TILE_ROWS);
    m->n = tile_of(c->extent[of->columns], DLC_TILE_COLUMNS);
    return m->row != DLC_DOT_NONE && dlc_products_plain_load(&p->a.t, s, m->right) && c->extent[inner] >= LEAST_DEPTH;
}

static int find(plan *p)
{
    const dlc_chooser *c = p->a.t.c;
    return c->target->kind == DLC_TARGET_CPU && dlc_attention_find(&p->a) && find_matrix(p, p->a.scores, &p->scores) &&
           find_matrix(p, p->a.values, &p->values) &&
           c->extent[p->a.key] >= DLC_LEAST_COPIED_FOR && c->extent[p->a.query] >= DLC_LEAST_COPIED_FOR;
}

/* Near-equal blocks of whole register tiles, whose scores and weights fit; where units are few, less than all rows. */
static void choose_block(plan *p)
{
    const dlc_chooser *c = p->a.t.c;
    double rows = (double)c->extent[p->a.query], keys = (double)c->extent[p->a.key], units = dlc_choose_points(c, &p->a.t.points);
    double row = keys * (dlc_dtype_bytes(dlc_attention_stage(&p->a, p->a.scores)->dtype[0]) +
                         dlc_dtype_bytes(dlc_node_of(c->kernel->pool, p->values.left)->dtype));
    double copies = keys * (double)(c->extent[p->a.t.products[p->a.scores].order.data[0]] + c->extent[p->values.columns]) *
                    dlc_dtype_bytes(dlc_node_of(c->kernel->pool, p->values.right)->dtype);
    double fits = ((double)c->target->scratch_bytes * FOR_SCORES - copies) / row;
    double wanted = units >= DLC_MIN_UNITS / 2 ? rows : rows * units / (DLC_MIN_UNITS / 2);
    double blocks = ceil(rows / (wanted < fits ? wanted : fits > 1 ? fits : 1));
    p->block = (int64_t)ceil(ceil(rows / blocks) / (double)p->scores.m) * p->scores.m;
    if (p->block > p->scores.m && (double)p->block > fits)
        p->block -= p->scores.m;
}

/* --- copies --- */

static void add_part(const plan *p, dlc_schedule_copy *copy, uint32_t axis, int64_t block, uint8_t inner)
{
    dlc_copy_part part = {.block = (int32_t)block, .inner = inner};
    dlc_vec_push(p->a.t.c->arena, &part.axes, axis);
    dlc_vec_push(p->a.t.c->arena, &copy->parts, part);
}

/* Axes that the factor depends on: points first, then these two. */
static dlc_ids axes_of(const plan *p, dlc_expr factor, uint32_t outer, uint32_t inner)
{
    const dlc_ids *points = &p->a.t.points;
    dlc_ids axes = {0};
    for (uint32_t i = 0; i < points->n; i++)
        if (dlc_expr_uses_axis(p->a.t.c->kernel->pool, factor, points->data[i]))
            dlc_vec_push(p->a.t.c->arena, &axes, points->data[i]);
    dlc_vec_push(p->a.t.c->arena, &axes, outer);
    dlc_vec_push(p->a.t.c->arena, &axes, inner);
    return axes;
}

static uint32_t add_copy(const plan *p, const matrix *m, const char *name, dlc_expr factor, const dlc_ids *axes)
{
    dlc_schedule *schedule = p->a.t.c->schedule;
    return dlc_schedule_copy_add(schedule, dlc_arena_printf(p->a.t.c->arena, "%s%u", name, m->stage), m->stage,
                                 dlc_schedule_operand_name(schedule, m->stage, factor), factor, axes);
}

static void add_copies(const plan *p, matrix *m)
{
    dlc_schedule *schedule = p->a.t.c->schedule;
    uint32_t k = p->a.t.products[m->stage].order.data[0];
    dlc_ids axes = axes_of(p, m->right, m->columns, k);
    m->right_copy = add_copy(p, m, "columns", m->right, &axes);
    dlc_schedule_copy *copy = &schedule->copies.data[schedule->copies.n - 1];
    for (uint32_t i = 0; i + 2 < axes.n; i++)
        add_part(p, copy, axes.data[i], 1, 0);
    for (uint8_t inner = 0; inner < 2; inner++) {
        add_part(p, copy, m->columns, m->n, inner);
        add_part(p, copy, k, dlc_dots[m->row].granule, inner);
    }
    if (!m->copies_left)
        return;
    axes = axes_of(p, m->left, p->a.query, k);
    m->left_copy = add_copy(p, m, "rows", m->left, &axes);
}

static void build_columns(const plan *p, const matrix *m)
{
    dlc_chooser *c = p->a.t.c;
    uint32_t width = dlc_tiles_width(&p->a.t, m->stage), k = p->a.t.products[m->stage].order.data[0];
    int64_t square = dlc_choose_granules(c, m->stage, m->right, k, m->columns, width, dlc_dots[m->row].granule);
    dlc_schedule_open(c->schedule, DLC_LOOP_FOR, m->columns, m->n);
    dlc_schedule_open(c->schedule, DLC_LOOP_FOR, k, square ? square : 1);
    dlc_schedule_open_lane(c->schedule, m->columns, width, 1);
    uint32_t n = 3 + dlc_choose_open_across(c, square ? k : DLC_NO_AXIS);
    dlc_schedule_leaf(c->schedule, m->right_copy, DLC_PLACE_SCRATCH);
    dlc_schedule_close(c->schedule, n);
}

static void build_rows_copy(const plan *p, const matrix *m)
{
    dlc_schedule *schedule = p->a.t.c->schedule;
    dlc_schedule_open(schedule, DLC_LOOP_FOR, p->a.query, 1);
    dlc_schedule_open_lane(schedule, p->a.t.products[m->stage].order.data[0], p->a.t.lanes.width, 1);
    dlc_schedule_leaf(schedule, m->left_copy, DLC_PLACE_SCRATCH);
    dlc_schedule_close(schedule, 2);
}

/* --- the tree --- */

static int is_in_blocks(const plan *p)
{
    return !dlc_choose_is_known(p->a.t.c, p->a.query) || p->block < p->a.t.c->extent[p->a.query];
}

static void build_product(const plan *p, const matrix *m)
{
    dlc_chooser *c = p->a.t.c;
    const product *of = &p->a.t.products[m->stage];
    uint32_t as_end = of->as_end, has_maps = as_end > m->stage + 1, has_tiles = !is_in_blocks(p) || p->block > m->m;
    dlc_schedule_open(c->schedule, DLC_LOOP_FOR, m->columns, m->n);
    if (has_tiles)
        dlc_schedule_open(c->schedule, DLC_LOOP_FOR, p->a.query, m->m);
    dlc_schedule_dot(c->schedule, m->stage, m->row, p->a.query, m->columns, &of->order, c->place[m->stage]);
    dlc_choose_parts(c);
    if (has_maps)
        dlc_schedule_open_as(c->schedule, m->stage);
    for (uint32_t s = m->stage + 1; s < as_end; s++)
        dlc_schedule_leaf(c->schedule, s, c->place[s]);
    dlc_schedule_close(c->schedule, 1 + has_tiles + has_maps);
}

static int is_read_from(const plan *p, uint32_t s, uint32_t first)
{
    const dlc_chooser *c = p->a.t.c;
    for (uint32_t r = first; r < c->kernel->stages.n; r++)
        for (uint32_t i = 0; i < c->accesses[r].n; i++)
            if (c->accesses[r].data[i].load && c->accesses[r].data[i].source == DLC_STAGE_SOURCE(s))
                return 1;
    return 0;
}

/* Stages [s, end) of one row. */
static void build_group(const plan *p, uint32_t s, uint32_t end)
{
    const dlc_chooser *c = p->a.t.c;
    uint32_t by_keys = (uint32_t)dlc_attention_is_by_keys(&p->a, s), width = p->a.t.lanes.width, folds = 0;
    for (uint32_t i = s; i < end; i++)
        folds |= dlc_attention_stage(&p->a, i)->reduce.n;
    dlc_schedule_open(c->schedule, DLC_LOOP_FOR, p->a.query, 1);
    if (by_keys)
        dlc_schedule_open_lane(c->schedule, p->a.key, width, folds ? dlc_choose_partials(c, p->a.key, width) : 1);
    for (uint32_t i = s; i < end; i++)
        dlc_schedule_leaf(c->schedule, i, c->place[i] == DLC_PLACE_REG && is_read_from(p, i, end) ? DLC_PLACE_SCRATCH : c->place[i]);
    dlc_schedule_close(c->schedule, 1 + by_keys);
}

static void build_rows(const plan *p)
{
    const dlc_chooser *c = p->a.t.c;
    double bytes = (double)c->extent[p->a.key] * dlc_dtype_bytes(dlc_attention_stage(&p->a, p->a.scores)->dtype[0]);
    int64_t most = (int64_t)(dlc_target_l1_ways(c->target) * DLC_WAY_BYTES / 2 / bytes);
    dlc_schedule_open(c->schedule, DLC_LOOP_FOR, p->a.query, most < 1 ? 1 : most > MOST_ROWS ? MOST_ROWS : most);
    for (uint32_t s = p->a.t.products[p->a.scores].as_end, end; s < p->a.values; s = end) {
        end = dlc_attention_group_end(&p->a, s, p->a.values);
        build_group(p, s, end);
    }
    if (p->values.copies_left)
        build_rows_copy(p, &p->values);
    dlc_schedule_close(c->schedule, 1);
}

static void build(plan *p)
{
    dlc_schedule *schedule = p->a.t.c->schedule;
    const dlc_ids *points = &p->a.t.points;
    uint32_t n = points->n;
    add_copies(p, &p->scores);
    add_copies(p, &p->values);
    for (uint32_t i = 0; i < n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, points->data[i], 1);
    if (is_in_blocks(p)) {
        dlc_schedule_open(schedule, DLC_LOOP_PAR, p->a.query, p->block);
        n++;
    }
    build_columns(p, &p->scores);
    build_columns(p, &p->values);
    if (p->scores.copies_left)
        build_rows_copy(p, &p->scores);
    build_product(p, &p->scores);
    build_rows(p);
    build_product(p, &p->values);
    dlc_schedule_close(schedule, n);
}

int dlc_choose_attention_tiles(dlc_chooser *c)
{
    plan p = {.a.t.c = c};
    if (!find(&p))
        return 0;
    choose_block(&p);
    build(&p);
    return 1;
}

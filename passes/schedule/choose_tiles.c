/*
 * Kernels of several stages among which are contractions: attention, a product into a row's softmax or norm, two products in a
 * row. All stages share the root axes; those that index rows of every product are one axis, of which a unit takes a block:
 *
 *     par points, rows:T {
 *       copies of right factors that do not lie as panels
 *       for columns:N, rows:M { product in reg  as product { maps behind it, or the next product's rows } }
 *       for rows { sums, maxima and maps by lanes }
 *       for columns:N, rows:M { the next product … } }
 *
 * What lies between them is scratch of the block, so T is as much as half of L2 and the wish for units allow.
 */
#include "passes/schedule/choose_tiles.h"

#include <math.h>

enum {
    LEAST_WORK = 4096, /* multiply-adds of a product, below which lanes do as well */
    LEAST_ROWS = 4,
    MOST_HEIGHT = 14,  /* of a register tile */
    MOST_UNKNOWN = 32  /* rows of a unit where their number is not known: 128 rows go to four threads */
};

typedef dlc_tiles tiles;
typedef dlc_tiles_product product;

static const dlc_stage *stage_at(const tiles *t, uint32_t s)
{
    return &t->c->kernel->stages.data[s];
}

static int has(const dlc_ids *ids, uint32_t id)
{
    return dlc_ids_find(ids, id, NULL);
}

static uint32_t width_of(const tiles *t, uint32_t s)
{
    return dlc_choose_width(t->c, dlc_dtype_bytes(stage_at(t, s)->dtype[0]));
}

/* --- products --- */

static int is_dot_type(dlc_dtype dtype)
{
    return dtype == DLC_F32 || dtype == DLC_F64;
}

static int contraction_at(const tiles *t, uint32_t s, dlc_contraction *form)
{
    const dlc_stage *stage = stage_at(t, s);
    return stage->reduce.n && is_dot_type(stage->dtype[0]) && width_of(t, s) > 1 &&
           dlc_contraction_of(t->c->kernel, stage, t->c->arena, form) && form->m.n && form->n.n &&
           dlc_choose_points(t->c, &stage->axes) * dlc_choose_points(t->c, &stage->reduce) >= LEAST_WORK;
}

/* Roots are rows where every product has them in one factor alone; else points. */
static int find_rows(tiles *t)
{
    dlc_contraction form;
    uint32_t nproducts = 0;
    for (uint32_t r = 0; r < t->c->roots.n; r++) {
        uint32_t axis = t->c->roots.data[r];
        int is_row = 1;
        for (uint32_t s = 0; s < t->c->kernel->stages.n; s++)
            if (contraction_at(t, s, &form))
                is_row &= has(&form.m, axis) || has(&form.n, axis);
        dlc_vec_push(t->c->arena, is_row ? &t->rows : &t->points, axis);
    }
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++)
        nproducts += (uint32_t)contraction_at(t, s, &form);
    dlc_choose_sort(t->c, &t->rows);
    dlc_choose_sort(t->c, &t->points);
    return nproducts && t->rows.n && dlc_choose_points(t->c, &t->rows) >= LEAST_ROWS;
}

static const dlc_access_fact *access_of(const tiles *t, uint32_t s, dlc_expr load)
{
    for (uint32_t i = 0; i < t->c->accesses[s].n; i++)
        if (t->c->accesses[s].data[i].load == load)
            return &t->c->accesses[s].data[i];
    return NULL;
}

/* An element of a buffer or of a stage of this kernel, always in bounds, its place affine. */
static const dlc_access_fact *plain_load(const tiles *t, uint32_t s, dlc_expr factor)
{
    const dlc_pool *pool = t->c->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, factor);
    const dlc_access_fact *access = node->op == DLC_EXPR_LOAD ? access_of(t, s, factor) : NULL;
    if (!access || node->flags || dlc_load_guard(pool, factor))
        return NULL;
    for (uint32_t a = 0; a < t->c->kernel->axes.n; a++)
        if (dlc_choose_stride(t->c, access->offset, a) == DLC_ODD_STRIDE)
            return NULL;
    return access;
}

static int is_constant(const tiles *t, const dlc_access_fact *access)
{
    return access && !DLC_SOURCE_IS_STAGE(access->source) &&
           t->c->kernel->buffers.data[access->source].role == DLC_ROLE_CONST;
}

/* All rows lie in one factor; the other's innermost kept axis are the columns. */
static void find_product(tiles *t, uint32_t s)
{
    dlc_contraction form;
    product *p = &t->products[s];
    if (!contraction_at(t, s, &form))
        return;
    int is_swapped = has(&form.n, t->rows.data[0]);
    dlc_ids *own = is_swapped ? &form.n : &form.m, *columns = is_swapped ? &form.m : &form.n;
    for (uint32_t r = 0; r < t->rows.n; r++)
        if (!has(own, t->rows.data[r]))
            return;
    dlc_choose_sort(t->c, columns);
    if (!columns->n)
        return;
    p->left = is_swapped ? form.b : form.a;
    p->right = is_swapped ? form.a : form.b;
    p->columns = columns->data[columns->n - 1];
    for (uint32_t i = 0; i < stage_at(t, s)->axes.n; i++) {
        uint32_t axis = stage_at(t, s)->axes.data[i];
        if (axis != p->columns && !has(&t->c->roots, axis))
            dlc_vec_push(t->c->arena, &p->others, axis);
    }
    p->is_dot = t->c->extent[p->columns] * 2 >= width_of(t, s);
}

/* --- heights --- */

static int64_t vectors_of(const tiles *t, uint32_t s)
{
    int64_t width = width_of(t, s), columns = (t->c->extent[t->products[s].columns] + width - 1) / width;
    int64_t nv = width == 4 && t->c->target->vector_registers >= 32 ? 4 : 2;
    return nv < columns ? nv : columns;
}

static int64_t rows_that_fit(const tiles *t, int64_t nv)
{
    int64_t registers = t->c->target->vector_registers;
    return (registers - nv - 1) / nv;
}

/* Bytes of scratch that a row of the block takes, and what copies take once. */
static void scratch_of(const tiles *t, double *per_row, double *once)
{
    *per_row = *once = 0;
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++) {
        const dlc_stage *stage = stage_at(t, s);
        const product *p = &t->products[s];
        double elems = 1, bytes = dlc_dtype_bytes(stage->dtype[0]), reduced = dlc_choose_points(t->c, &stage->reduce);
        for (uint32_t i = 0; i < stage->axes.n; i++)
            elems *= has(&t->c->roots, stage->axes.data[i]) ? 1 : (double)t->c->extent[stage->axes.data[i]];
        if (t->c->place[s] == DLC_PLACE_SCRATCH)
            *per_row += elems * bytes;
        if (p->is_fed || p->copies_block)
            *per_row += reduced * bytes;
        else if (p->copies_left)
            *once += (double)t->m * reduced * bytes;
        if (p->copies_right)
            *once += (double)t->c->extent[p->columns] * reduced * bytes;
    }
}

static int64_t tile_height(const tiles *t)
{
    int64_t most = MOST_HEIGHT;
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++)
        if (t->products[s].is_dot && rows_that_fit(t, t->products[s].n / width_of(t, s)) < most)
            most = rows_that_fit(t, t->products[s].n / width_of(t, s));
    return most < 1 ? 1 : most;
}

/* As many rows as leave units enough and fit the scratch, in blocks of nearly one height that are multiples of the tile's. */
static void choose_heights(tiles *t)
{
    double rows = dlc_choose_points(t->c, &t->rows), units = dlc_choose_points(t->c, &t->points), per_row, once;
    t->m = tile_height(t);
    scratch_of(t, &per_row, &once);
    double left = (double)t->c->target->scratch_bytes - once, fits = left < 0 ? 1 : per_row > 0 ? left / per_row : rows;
    double wanted = units >= DLC_MIN_UNITS / 2 ? rows : rows * units / (DLC_MIN_UNITS / 2);
    double block = wanted < fits ? wanted : fits;
    block = block < (double)t->m ? (double)t->m : block > rows ? rows : block;
    if (dlc_choose_are_known(t->c, &t->rows)) {
        int64_t blocks = (int64_t)ceil(rows / block);
        t->t = ((int64_t)rows + blocks - 1) / blocks;
        t->t = (t->t + t->m - 1) / t->m * t->m;
        if (t->t > t->m && (double)t->t > fits)
            t->t -= t->m;
    } else { /* sizes that people feed are multiples of powers of two: such blocks leave no short last one, and of few rows several */
        for (t->t = 16; t->t * 2 <= block && t->t < MOST_UNKNOWN; t->t *= 2)
            ;
        int64_t tiles_of_block = (t->t + t->m - 1) / t->m;
        t->m = (t->t + tiles_of_block - 1) / tiles_of_block;
    }
}

/* --- what follows a product on its tile --- */

static int reads_at_other_points(const tiles *t, uint32_t reader, uint32_t source)
{
    const dlc_pool *pool = t->c->kernel->pool;
    const dlc_ids *axes = &stage_at(t, source)->axes;
    for (uint32_t i = 0; i < t->c->accesses[reader].n; i++) {
        const dlc_access_fact *access = &t->c->accesses[reader].data[i];
        if (!access->load || access->source != DLC_STAGE_SOURCE(source))
            continue;
        for (uint32_t a = 0; a < axes->n; a++)
            if (dlc_bare_axis(pool, dlc_arg(pool, access->load, a)) != axes->data[a])
                return 1;
        if (dlc_load_guard(pool, access->load))
            return 1;
    }
    return 0;
}

static int reads(const tiles *t, uint32_t reader, uint32_t source)
{
    for (uint32_t i = 0; i < t->c->accesses[reader].n; i++)
        if (t->c->accesses[reader].data[i].load && t->c->accesses[reader].data[i].source == DLC_STAGE_SOURCE(source))
            return 1;
    return 0;
}

static int is_map_at(const tiles *t, uint32_t s, uint32_t at)
{
    const dlc_stage *map = stage_at(t, s), *tile = stage_at(t, at);
    if (map->combine != DLC_REDUCE_NONE || map->update != DLC_UPDATE_NONE || map->axes.n != tile->axes.n)
        return 0;
    for (uint32_t i = 0; i < map->axes.n; i++)
        if (!has(&tile->axes, map->axes.data[i]))
            return 0;
    return 1;
}

/* Stage `reader` is a product whose rows' factor is computed of elements of s, and of its maps before `end`, at one point. */
static int is_fed_by(const tiles *t, uint32_t reader, uint32_t s, uint32_t end)
{
    const dlc_pool *pool = t->c->kernel->pool;
    const product *p = &t->products[reader];
    if (!t->feeds_products || !p->is_dot || !p->copies_left || p->is_fed || reads_at_other_points(t, reader, s))
        return 0;
    for (uint32_t i = 0; i < stage_at(t, s)->axes.n; i++)
        if (!dlc_expr_uses_axis(pool, p->left, stage_at(t, s)->axes.data[i]))
            return 0;
    for (uint32_t a = 0; a < t->c->kernel->axes.n; a++)
        if (dlc_expr_uses_axis(pool, p->left, a) && !has(&stage_at(t, s)->axes, a))
            return 0;
    for (uint32_t i = 0; i < t->c->accesses[reader].n; i++) {
        const dlc_access_fact *access = &t->c->accesses[reader].data[i];
        if (access->load && DLC_SOURCE_IS_STAGE(access->source) && DLC_SOURCE_INDEX(access->source) >= s &&
            (DLC_SOURCE_INDEX(access->source) >= end || reads_at_other_points(t, reader, DLC_SOURCE_INDEX(access->source))))
            return 0;
    }
    return 1;
}

/* The maps behind it run over the tile when nobody else reads the product, but a product that is fed from there. */
static void find_elements(tiles *t, uint32_t s)
{
    product *p = &t->products[s];
    uint32_t end = s + 1, nstages = t->c->kernel->stages.n;
    p->feeds = DLC_NO_STAGE;
    while (end < nstages && is_map_at(t, end, s) && !reads_at_other_points(t, end, s))
        end++;
    p->as_end = end;
    for (uint32_t r = end; r < nstages; r++) {
        if (!reads(t, r, s))
            continue;
        p->feeds = p->feeds == DLC_NO_STAGE && is_fed_by(t, r, s, end) ? r : s;
    }
    if (p->feeds == s) { /* read from elsewhere */
        p->feeds = DLC_NO_STAGE;
        p->as_end = s + 1;
    } else if (p->feeds != DLC_NO_STAGE) {
        t->products[p->feeds].is_fed = 1;
    }
}

/* --- places --- */

static int is_read_beyond(const tiles *t, uint32_t s, uint32_t item)
{
    for (uint32_t r = 0; r < t->c->kernel->stages.n; r++)
        if (t->item[r] != item && reads(t, r, s))
            return 1;
    return 0;
}

static int is_one_value(const tiles *t, uint32_t s)
{
    for (uint32_t i = 0; i < stage_at(t, s)->axes.n; i++)
        if (!has(&t->c->roots, stage_at(t, s)->axes.data[i]))
            return 0;
    return 1;
}

static void find_items(tiles *t)
{
    uint32_t item = 0, nstages = t->c->kernel->stages.n;
    for (uint32_t s = 0; s < nstages; s++) {
        if (t->products[s].is_dot) {
            item++;
            for (; s + 1 < t->products[s].as_end; s++)
                t->item[s] = item;
            t->item[s] = item;
            item++;
            continue;
        }
        t->item[s] = item;
    }
}

/* A product with maps on its tile is in registers; what only its own nest reads too, when it is one value or an element. */
static void place(tiles *t)
{
    uint32_t tile = DLC_NO_STAGE;
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++) {
        uint8_t *where = &t->c->place[s];
        int is_stored = stage_at(t, s)->buffer != DLC_NO_BUFFER;
        if (t->products[s].is_dot) {
            tile = s;
            *where = t->products[s].as_end > s + 1 || t->products[s].feeds != DLC_NO_STAGE ? DLC_PLACE_REG
                     : is_stored                                                           ? DLC_PLACE_BUFFER
                                                                                           : DLC_PLACE_SCRATCH;
            continue;
        }
        int on_tile = tile != DLC_NO_STAGE && s < t->products[tile].as_end;
        int is_far = is_read_beyond(t, s, t->item[s]);
        if (is_stored)
            *where = !is_far && t->c->is_read[s] && (on_tile || is_one_value(t, s)) ? DLC_PLACE_REG : DLC_PLACE_BUFFER;
        else
            *where = !is_far && (on_tile || is_one_value(t, s)) ? DLC_PLACE_REG : DLC_PLACE_SCRATCH;
    }
}

/* --- factors --- */

static int add_part(const tiles *t, dlc_copy_part *part, uint32_t axis, int64_t block, uint8_t inner)
{
    *part = (dlc_copy_part){.block = (int32_t)block, .inner = inner};
    dlc_vec_push(t->c->arena, &part->axes, axis);
    return 1;
}

/* The axes of the right factor in the order of a panel: all but the columns, with those in blocks around the reduced ones. */
static uint32_t panel_parts(const tiles *t, uint32_t s, dlc_copy_part *parts)
{
    const product *p = &t->products[s];
    const dlc_stage *stage = stage_at(t, s);
    const dlc_pool *pool = t->c->kernel->pool;
    uint32_t n = 0;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (stage->axes.data[i] != p->columns && dlc_expr_uses_axis(pool, p->right, stage->axes.data[i]))
            n += (uint32_t)add_part(t, &parts[n], stage->axes.data[i], 1, 0);
    n += (uint32_t)add_part(t, &parts[n], p->columns, p->panel, 0);
    for (uint32_t i = 0; i < p->order.n; i++)
        if (dlc_expr_uses_axis(pool, p->right, p->order.data[i]))
            n += (uint32_t)add_part(t, &parts[n], p->order.data[i], 1, 0);
    n += (uint32_t)add_part(t, &parts[n], p->columns, p->panel, 1);
    return n;
}

static double factor_bytes(const tiles *t, uint32_t s, dlc_expr factor)
{
    double bytes = dlc_dtype_bytes(stage_at(t, s)->dtype[0]);
    for (uint32_t a = 0; a < t->c->kernel->axes.n; a++)
        bytes *= dlc_expr_uses_axis(t->c->kernel->pool, factor, a) ? (double)t->c->extent[a] : 1;
    return bytes;
}

static void judge_factors(tiles *t, uint32_t s)
{
    product *p = &t->products[s];
    const dlc_access_fact *right = plain_load(t, s, p->right);
    int64_t nv = vectors_of(t, s);
    p->is_packed = (uint8_t)is_constant(t, right);
    p->panel = p->is_packed ? dlc_choose_panel(t->c, dlc_dtype_bytes(stage_at(t, s)->dtype[0]), &nv) : nv * width_of(t, s);
    p->n = nv * width_of(t, s);
    dlc_choose_order_reduction(t->c, s, p->left, &p->order);
    p->copies_left = !plain_load(t, s, p->left);
    p->copies_block = (uint8_t)(p->copies_left && factor_bytes(t, s, p->right) > t->c->target->l2_bytes * 3 / 4);
    p->copies_right = !p->is_packed && !(right && dlc_choose_stride(t->c, right->offset, p->columns) == 1);
}

/* Rows gathered past borders, of a convolution: by itself it has taller tiles and shares them out better. */
static int gathers_rows(const tiles *t, uint32_t s)
{
    const dlc_pool *pool = t->c->kernel->pool;
    uint8_t *marks = dlc_new_array(t->c->arena, uint8_t, pool->nodes.n);
    if (!t->products[s].copies_left)
        return 0;
    dlc_expr_reach(pool, t->products[s].left, marks);
    for (dlc_expr id = 1; id < pool->nodes.n; id++)
        if (marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(dlc_node_of(pool, id)->imm.id))
            return 0;
    return 1;
}

static int too_many_parts(const tiles *t, uint32_t s)
{
    return stage_at(t, s)->axes.n + t->products[s].order.n + 1 > DLC_MAX_PARTS || stage_at(t, s)->axes.n > DLC_MAX_RANK;
}

/* --- the tree --- */

static void open_all(const tiles *t, const dlc_ids *axes, dlc_loop_kind kind)
{
    for (uint32_t i = 0; i < axes->n; i++)
        dlc_schedule_open(t->c->schedule, kind, axes->data[i], 1);
}

static uint32_t copy_right(const tiles *t, uint32_t s)
{
    dlc_schedule *schedule = t->c->schedule;
    dlc_copy_part parts[DLC_MAX_PARTS];
    dlc_ids axes = {0};
    uint32_t n = panel_parts(t, s, parts);
    for (uint32_t i = 0; i + 1 < n; i++)
        dlc_vec_push(t->c->arena, &axes, parts[i].axes.data[0]);
    const char *name = dlc_arena_printf(t->c->arena, "columns%u", s);
    uint32_t copy = dlc_schedule_copy_add(schedule, name, s, dlc_schedule_operand_name(schedule, s, t->products[s].right),
                                          t->products[s].right, &axes);
    dlc_schedule_copy *row = &schedule->copies.data[schedule->copies.n - 1];
    for (uint32_t i = 0; i < n; i++)
        dlc_vec_push(t->c->arena, &row->parts, parts[i]);
    return copy;
}

static uint32_t copy_left(const tiles *t, uint32_t s)
{
    dlc_schedule *schedule = t->c->schedule;
    const product *p = &t->products[s];
    dlc_ids axes = {0};
    for (uint32_t i = 0; i < stage_at(t, s)->axes.n; i++)
        dlc_vec_push(t->c->arena, &axes, stage_at(t, s)->axes.data[i]);
    for (uint32_t i = 0; i < p->order.n; i++)
        dlc_vec_push(t->c->arena, &axes, p->order.data[i]);
    const char *name = dlc_arena_printf(t->c->arena, "rows%u", s);
    return dlc_schedule_copy_add(schedule, name, s, dlc_schedule_operand_name(schedule, s, p->left), p->left, &axes);
}

/* A loop that is being built runs over the axis. */
static int is_open(const dlc_schedule *schedule, uint32_t axis)
{
    for (uint32_t i = 0; i < schedule->open.n; i++)
        if (schedule->nodes.data[schedule->open.data[i]].axis == axis)
            return 1;
    return 0;
}

static void build_copy(const tiles *t, uint32_t copy, uint32_t lane, uint32_t width, int64_t panel)
{
    dlc_schedule *schedule = t->c->schedule;
    const dlc_ids *axes = &schedule->kernel->stages.data[copy].axes;
    uint32_t n = 0;
    if (panel) {
        dlc_schedule_open(schedule, DLC_LOOP_FOR, lane, panel);
        n++;
    }
    for (uint32_t i = 0; i < axes->n; i++)
        if (axes->data[i] != lane && !is_open(schedule, axes->data[i])) {
            dlc_schedule_open(schedule, DLC_LOOP_FOR, axes->data[i], 1);
            n++;
        }
    dlc_schedule_open_lane(schedule, lane, width, 1);
    dlc_schedule_leaf(schedule, copy, DLC_PLACE_SCRATCH);
    dlc_schedule_close(schedule, n + 1);
}

static void build_product(const tiles *t, uint32_t s, const uint32_t *left, uint32_t right)
{
    dlc_schedule *schedule = t->c->schedule;
    const product *p = &t->products[s];
    uint32_t width = width_of(t, s), n = p->others.n;
    int is_wide = t->c->extent[p->columns] > p->n || !dlc_choose_is_known(t->c, p->columns);
    if (p->copies_right)
        build_copy(t, right, p->columns, width, is_wide ? p->n : 0);
    open_all(t, &p->others, DLC_LOOP_FOR);
    if (p->copies_left && !p->is_fed) {
        if (!p->copies_block)
            dlc_schedule_open(schedule, DLC_LOOP_FOR, t->row_axis, t->m);
        dlc_schedule_open(schedule, DLC_LOOP_FOR, t->row_axis, 1);
        build_copy(t, left[s], p->order.data[p->order.n - 1], width, 0);
        dlc_schedule_close(schedule, 1);
    }
    if (p->copies_left && !p->is_fed && !p->copies_block) {
        dlc_schedule_open(schedule, DLC_LOOP_FOR, p->columns, p->n);
    } else {
        dlc_schedule_open(schedule, DLC_LOOP_FOR, p->columns, p->n);
        dlc_schedule_open(schedule, DLC_LOOP_FOR, t->row_axis, t->m);
    }
    dlc_schedule_dot(schedule, s, DLC_DOT_FMA, t->row_axis, p->columns, &p->order, t->c->place[s]);
    dlc_choose_parts(t->c);
    if (p->as_end > s + 1 || p->feeds != DLC_NO_STAGE) {
        dlc_schedule_open_as(schedule, s);
        for (uint32_t e = s + 1; e < p->as_end; e++)
            dlc_schedule_leaf(schedule, e, t->c->place[e]);
        if (p->feeds != DLC_NO_STAGE)
            dlc_schedule_leaf(schedule, left[p->feeds], DLC_PLACE_SCRATCH);
        dlc_schedule_close(schedule, 1);
    }
    dlc_schedule_close(schedule, n + 2);
}

static void build_items(tiles *t, const uint32_t *left, const uint32_t *right)
{
    dlc_schedule *schedule = t->c->schedule;
    for (uint32_t s = 0; s < schedule->nstages;) {
        if (t->products[s].is_dot) {
            build_product(t, s, left, right[s]);
            s = t->products[s].as_end;
            continue;
        }
        uint32_t item = t->item[s];
        dlc_schedule_open(schedule, DLC_LOOP_FOR, t->row_axis, 1);
        for (; s < schedule->nstages && t->item[s] == item && !t->products[s].is_dot; s++)
            dlc_choose_lanes_stage(t->c, &t->lanes, s);
        dlc_schedule_close(schedule, 1);
    }
}

static void build(tiles *t)
{
    dlc_schedule *schedule = t->c->schedule;
    uint32_t nstages = schedule->nstages, n = t->points.n;
    uint32_t *left = dlc_new_array(t->c->arena, uint32_t, nstages), *right = dlc_new_array(t->c->arena, uint32_t, nstages);
    for (uint32_t s = 0; s < nstages; s++) {
        product *p = &t->products[s];
        dlc_copy_part parts[DLC_MAX_PARTS];
        if (!p->is_dot)
            continue;
        const char *name = dlc_arena_printf(t->c->arena, "columns%u", s);
        if (p->is_packed && !dlc_schedule_pack(schedule, name, s, p->right, parts, panel_parts(t, s, parts))) {
            p->panel = p->n;
            p->copies_right = dlc_choose_stride(t->c, access_of(t, s, p->right)->offset, p->columns) != 1;
        }
        if (p->copies_left)
            left[s] = copy_left(t, s);
        if (p->copies_right)
            right[s] = copy_right(t, s);
    }
    dlc_tiles_flatten(t);
    open_all(t, &t->points, DLC_LOOP_PAR);
    if (dlc_choose_points(t->c, &t->rows) > (double)t->t || !dlc_choose_are_known(t->c, &t->rows)) {
        dlc_schedule_open(schedule, DLC_LOOP_PAR, t->row_axis, t->t);
        n++;
    }
    build_items(t, left, right);
    dlc_schedule_close(schedule, n);
}

/* Of stages [0, nstages), which are products, and the order of their sums. */
static uint32_t find_products(tiles *t)
{
    uint32_t ndots = 0;
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++) {
        find_product(t, s);
        if (!t->products[s].is_dot)
            continue;
        judge_factors(t, s);
        ndots++;
    }
    for (uint32_t s = 0; s < t->c->kernel->stages.n; s++)
        if (t->products[s].is_dot)
            find_elements(t, s);
    return ndots;
}

int dlc_tiles_find(tiles *t)
{
    dlc_chooser *c = t->c;
    uint32_t nstages = c->kernel->stages.n;
    if (c->serial.n || nstages < 2 || !find_rows(t))
        return 0;
    t->products = dlc_new_array(c->arena, product, nstages);
    t->item = dlc_new_array(c->arena, uint32_t, nstages);
    if (!find_products(t))
        return 0;
    for (uint32_t s = 0; s < nstages; s++)
        if (t->products[s].is_dot && (too_many_parts(t, s) || gathers_rows(t, s)))
            return 0;
    find_items(t);
    place(t);
    t->lanes = (dlc_lanes_choice){.lane = DLC_NO_AXIS, .width = dlc_choose_width(c, 4)};
    t->lanes.lanes = dlc_new_array(c->arena, uint32_t, nstages);
    dlc_choose_own_lanes(c, t->lanes.width, t->lanes.lanes);
    return 1;
}

void dlc_tiles_flatten(tiles *t)
{
    t->row_axis = dlc_schedule_flatten(t->c->schedule, &t->rows);
    dlc_vec_push(t->c->arena, &t->lanes.loops, ((dlc_root_choice){t->row_axis, 1, 0}));
    for (uint32_t i = 0; i < t->points.n; i++)
        dlc_vec_push(t->c->arena, &t->lanes.loops, ((dlc_root_choice){t->points.data[i], 1, 0}));
}

double dlc_tiles_row_bytes(const tiles *t)
{
    double per_row, once;
    scratch_of(t, &per_row, &once);
    return per_row;
}

int dlc_choose_tiles(dlc_chooser *c)
{
    tiles t = {.c = c, .feeds_products = 1};
    if (!dlc_tiles_find(&t))
        return 0;
    choose_heights(&t);
    if (t.m < 2 || t.t <= t.m)
        t.t = 2 * t.m;
    build(&t);
    return 1;
}

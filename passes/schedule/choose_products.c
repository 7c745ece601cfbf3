/*
 * Products among the stages of one kernel: which stages are products by rows of their own, how their factors reach them, which
 * maps run over their tiles, and where values between them live. What rows are, and the tree around, is the business of those who
 * ask (choose_tiles.c, choose_halo.c, choose_block_tiles.c).
 */
#include "passes/schedule/choose_tiles.h"

enum {
    LEAST_WORK = 4096, /* multiply-adds of a product, below which lanes do as well */
    MOST_HEIGHT = 14   /* of a register tile */
};

typedef dlc_tiles tiles;
typedef dlc_tiles_product product;

static int has(const dlc_ids *ids, uint32_t id)
{
    return dlc_ids_find(ids, id, NULL);
}

/* --- products --- */

static int is_dot_type(dlc_dtype dtype)
{
    return dtype == DLC_F32 || dtype == DLC_F64;
}

int dlc_products_contraction(const tiles *t, uint32_t s, dlc_contraction *form)
{
    const dlc_stage *stage = dlc_tiles_stage(t, s);
    return stage->reduce.n && is_dot_type(stage->dtype[0]) && dlc_tiles_width(t, s) > 1 &&
           dlc_contraction_of(t->c->kernel, stage, t->c->arena, form) && form->m.n && form->n.n &&
           dlc_choose_points(t->c, &stage->axes) * dlc_choose_points(t->c, &stage->reduce) >= LEAST_WORK;
}

static const dlc_access_fact *access_of(const tiles *t, uint32_t s, dlc_expr load)
{
    for (uint32_t i = 0; i < t->c->accesses[s].n; i++)
        if (t->c->accesses[s].data[i].load == load)
            return &t->c->accesses[s].data[i];
    return NULL;
}

const dlc_access_fact *dlc_products_plain_load(const tiles *t, uint32_t s, dlc_expr factor)
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
    const dlc_ids *rows = &t->rows_of[s];
    if (!rows->n || !dlc_products_contraction(t, s, &form))
        return;
    int is_swapped = has(&form.n, rows->data[0]);
    dlc_ids *own = is_swapped ? &form.n : &form.m, *columns = is_swapped ? &form.m : &form.n;
    for (uint32_t r = 0; r < rows->n; r++)
        if (!has(own, rows->data[r]))
            return;
    dlc_choose_sort(t->c, columns);
    if (!columns->n)
        return;
    p->left = is_swapped ? form.b : form.a;
    p->right = is_swapped ? form.a : form.b;
    p->columns = columns->data[columns->n - 1];
    for (uint32_t i = 0; i < dlc_tiles_stage(t, s)->axes.n; i++) {
        uint32_t axis = dlc_tiles_stage(t, s)->axes.data[i];
        if (axis != p->columns && !has(&t->c->roots, axis))
            dlc_vec_push(t->c->arena, &p->others, axis);
    }
    p->is_dot = t->c->extent[p->columns] * 2 >= dlc_tiles_width(t, s);
}

/* --- what follows a product on its tile --- */

static int reads_at_other_points(const tiles *t, uint32_t reader, uint32_t source)
{
    const dlc_pool *pool = t->c->kernel->pool;
    const dlc_ids *axes = &dlc_tiles_stage(t, source)->axes;
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
    const dlc_stage *map = dlc_tiles_stage(t, s), *tile = dlc_tiles_stage(t, at);
    if (map->combine != DLC_REDUCE_NONE || map->update != DLC_UPDATE_NONE || map->axes.n != tile->axes.n)
        return 0;
    for (uint32_t i = 0; i < map->axes.n; i++)
        if (!has(&tile->axes, map->axes.data[i]))
            return 0;
    return 1;
}

int dlc_products_is_map_at(const tiles *t, uint32_t s, uint32_t at, uint32_t first)
{
    if (!is_map_at(t, s, at))
        return 0;
    for (; first < s; first++)
        if (reads_at_other_points(t, s, first))
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
    for (uint32_t i = 0; i < dlc_tiles_stage(t, s)->axes.n; i++)
        if (!dlc_expr_uses_axis(pool, p->left, dlc_tiles_stage(t, s)->axes.data[i]))
            return 0;
    for (uint32_t a = 0; a < t->c->kernel->axes.n; a++)
        if (dlc_expr_uses_axis(pool, p->left, a) && !has(&dlc_tiles_stage(t, s)->axes, a))
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
    for (uint32_t i = 0; i < dlc_tiles_stage(t, s)->axes.n; i++)
        if (!has(&t->c->roots, dlc_tiles_stage(t, s)->axes.data[i]))
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
        int is_stored = dlc_tiles_stage(t, s)->buffer != DLC_NO_BUFFER;
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

static int64_t vectors_of(const tiles *t, uint32_t s)
{
    int64_t width = dlc_tiles_width(t, s), columns = (t->c->extent[t->products[s].columns] + width - 1) / width;
    int64_t nv = width == 4 && t->c->target->vector_registers >= 32 ? 4 : 2;
    return nv < columns ? nv : columns;
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
    const dlc_stage *stage = dlc_tiles_stage(t, s);
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
    double bytes = dlc_dtype_bytes(dlc_tiles_stage(t, s)->dtype[0]);
    for (uint32_t a = 0; a < t->c->kernel->axes.n; a++)
        bytes *= dlc_expr_uses_axis(t->c->kernel->pool, factor, a) ? (double)t->c->extent[a] : 1;
    return bytes;
}

static void judge_factors(tiles *t, uint32_t s)
{
    product *p = &t->products[s];
    const dlc_access_fact *right = dlc_products_plain_load(t, s, p->right);
    int64_t nv = vectors_of(t, s);
    p->is_packed = (uint8_t)is_constant(t, right);
    p->panel = p->is_packed ? dlc_choose_panel(t->c, dlc_dtype_bytes(dlc_tiles_stage(t, s)->dtype[0]), &nv) : nv * dlc_tiles_width(t, s);
    p->n = nv * dlc_tiles_width(t, s);
    dlc_choose_order_reduction(t->c, s, p->left, &p->order);
    p->copies_left = !dlc_products_plain_load(t, s, p->left);
    p->copies_block = (uint8_t)(p->copies_left && factor_bytes(t, s, p->right) > t->c->target->l2_bytes * 3 / 4);
    p->copies_right = !p->is_packed && !(right && dlc_choose_stride(t->c, right->offset, p->columns) == 1);
}

static int too_many_parts(const tiles *t, uint32_t s)
{
    return dlc_tiles_stage(t, s)->axes.n + t->products[s].order.n + 1 > DLC_MAX_PARTS || dlc_tiles_stage(t, s)->axes.n > DLC_MAX_RANK;
}

/* --- copies --- */

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
    for (uint32_t i = 0; i < dlc_tiles_stage(t, s)->axes.n; i++)
        dlc_vec_push(t->c->arena, &axes, dlc_tiles_stage(t, s)->axes.data[i]);
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

static uint32_t reader_of(const dlc_schedule *schedule, uint32_t copy)
{
    uint32_t i = 0;
    while (schedule->copies.data[i].copy != copy)
        i++;
    return schedule->copies.data[i].stage;
}

void dlc_products_build_copy(const tiles *t, uint32_t copy, uint32_t lane, uint32_t width, int64_t panel)
{
    dlc_schedule *schedule = t->c->schedule;
    const dlc_ids *axes = &schedule->kernel->stages.data[copy].axes;
    uint32_t n = 0, across = dlc_choose_across(t->c, reader_of(schedule, copy), schedule->kernel->stages.data[copy].value[0], axes, lane, width);
    if (across != DLC_NO_AXIS && is_open(schedule, across))
        across = DLC_NO_AXIS;
    if (panel) {
        dlc_schedule_open(schedule, DLC_LOOP_FOR, lane, panel);
        n++;
    }
    for (uint32_t i = 0; i < axes->n; i++)
        if (axes->data[i] != lane && !is_open(schedule, axes->data[i])) {
            dlc_schedule_open(schedule, DLC_LOOP_FOR, axes->data[i], axes->data[i] == across ? width : 1);
            n++;
        }
    dlc_schedule_open_lane(schedule, lane, width, 1);
    n += dlc_choose_open_across(t->c, across);
    dlc_schedule_leaf(schedule, copy, DLC_PLACE_SCRATCH);
    dlc_schedule_close(schedule, n + 1);
}

/* Constants are packed; what cannot be, and factors that do not lie as the tile reads them, are copied by the stages this adds. */
void dlc_products_add_copies(tiles *t, uint32_t *left, uint32_t *right)
{
    dlc_schedule *schedule = t->c->schedule;
    for (uint32_t s = 0; s < schedule->nstages; s++) {
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
}

/* --- all of it --- */

int64_t dlc_products_height(const tiles *t, uint32_t s)
{
    int64_t registers = t->c->target->vector_registers, nv = t->products[s].n / dlc_tiles_width(t, s);
    int64_t most = (registers - nv - 1) / nv;
    return most < 1 ? 1 : most > MOST_HEIGHT ? MOST_HEIGHT : most;
}

uint32_t dlc_products_find(tiles *t)
{
    uint32_t nstages = t->c->kernel->stages.n, ndots = 0;
    t->products = dlc_new_array(t->c->arena, product, nstages);
    for (uint32_t s = 0; s < nstages; s++) {
        find_product(t, s);
        if (!t->products[s].is_dot)
            continue;
        judge_factors(t, s);
        if (too_many_parts(t, s))
            return 0;
        ndots++;
    }
    for (uint32_t s = 0; s < nstages; s++)
        if (t->products[s].is_dot)
            find_elements(t, s);
    return ndots;
}

void dlc_products_place(tiles *t)
{
    uint32_t nstages = t->c->kernel->stages.n;
    t->item = dlc_new_array(t->c->arena, uint32_t, nstages);
    find_items(t);
    place(t);
    t->lanes = (dlc_lanes_choice){
        .lane = DLC_NO_AXIS, .inner = DLC_NO_AXIS, .across = DLC_NO_AXIS, .within = DLC_NO_AXIS, .width = dlc_choose_width(t->c, 4)};
    t->lanes.lanes = dlc_new_array(t->c->arena, uint32_t, nstages);
    dlc_choose_own_lanes(t->c, t->lanes.width, t->lanes.lanes);
}

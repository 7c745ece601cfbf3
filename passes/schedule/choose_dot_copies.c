/*
 * Copies of a register tile's factors: what is guarded, computed or lies otherwise is laid out as the tile reads it, once for all tiles of rows,
 * or of columns.
 */
#include "passes/schedule/choose_dot.h"

typedef dlc_dot_choice dot;
typedef dlc_part_list part_list;

static void name_copy(const dot *d, part_list *list)
{
    dlc_schedule_copy *copy = &d->c->schedule->copies.data[d->c->schedule->copies.n - 1];
    for (uint32_t i = 0; i < list->n; i++)
        dlc_vec_push(d->c->arena, &copy->parts, list->parts[i]);
}

/* What a factor depends on: batches, its own axes, the number of its part, the reduced ones in their order. */
static void factor_axes(const dot *d, const dlc_ids *own, dlc_expr factor, dlc_ids *axes)
{
    dlc_ids part = {0};
    const dlc_ids *lists[] = {&d->form.batch, own, &part, &d->order};
    if (d->part != DLC_NO_AXIS)
        dlc_vec_push(d->c->arena, &part, d->part);
    for (uint32_t l = 0; l < 4; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++)
            if (dlc_expr_uses_axis(d->c->kernel->pool, factor, lists[l]->data[i]))
                dlc_vec_push(d->c->arena, axes, lists[l]->data[i]);
}

static uint32_t add_copy(const dot *d, const char *name, dlc_expr factor, const dlc_ids *axes, part_list *list)
{
    dlc_schedule *schedule = d->c->schedule;
    uint32_t copy = dlc_schedule_copy_add(schedule, name, d->s, dlc_schedule_operand_name(schedule, d->s, factor), factor, axes);
    name_copy(d, list);
    return copy;
}

/* The factor, all parts of it. */
static dlc_expr in_parts(const dot *d, dlc_expr factor, uint8_t dim)
{
    dlc_pool *pool = d->c->kernel->pool;
    return d->part == DLC_NO_AXIS ? factor : dlc_dot_part(pool, factor, dim, dlc_expr_axis(pool, d->part));
}

uint32_t dlc_dot_add_copy_a(const dot *d)
{
    dlc_ids axes = {0};
    part_list list = {.n = 0};
    dlc_expr factor = d->is_widened ? dlc_schedule_widened(d->c->kernel->pool, d->form.a) : in_parts(d, d->form.a, d->rows_part);
    factor_axes(d, &d->form.m, factor, &axes);
    dlc_dot_in_windows(d, &axes);
    dlc_dot_add_axes(d, &list, dlc_schedule_windowed(d->c->schedule, factor, &axes), axes.data, axes.n);
    return add_copy(d, d->a_name, factor, &axes, &list);
}

uint32_t dlc_dot_add_copy_b(const dot *d)
{
    dlc_ids axes = {0};
    part_list list;
    dlc_expr factor = in_parts(d, d->form.b, d->columns_part);
    factor_axes(d, &d->form.n, factor, &axes);
    (void)dlc_dot_panel_parts(d, factor, 1, &list);
    return add_copy(d, d->b_name, factor, &axes, &list);
}

/* Elements of a row that are copied at once: a register of them as they are; where the axis is shorter or not known, fewer. */
static uint32_t copy_width(const dot *d, uint32_t copy, uint32_t axis)
{
    dlc_dtype dtype = (dlc_dtype)d->c->schedule->kernel->stages.data[copy].dtype[0];
    int is_moved = dlc_is_int(dtype) || dlc_dots[d->row].family == DLC_FAMILY_TILE; /* as it is: nothing is computed in a wider type */
    uint32_t width = is_moved ? dlc_choose_width(d->c, dlc_dtype_bytes(dtype)) : d->width;
    while (width > d->width && (!dlc_choose_is_known(d->c, axis) || dlc_choose_extent(d->c, axis) < width))
        width /= 2;
    return width;
}

/* Whether a row's vectors are few enough to be written out, which makes offsets and half of the guards constants. */
static int is_short_row(const dot *d, const dlc_ids *axes, uint32_t width)
{
    enum { UNROLL = 32 };
    double vectors = 1;
    for (uint32_t i = 0; i < axes->n; i++)
        if (dlc_ids_find(&d->form.k, axes->data[i], NULL)) {
            if (!dlc_choose_is_known(d->c, axes->data[i]))
                return 0;
            vectors *= dlc_dot_count_of((double)d->c->extent[axes->data[i]], i + 1 == axes->n ? width : 1);
        }
    return vectors <= UNROLL;
}

/* Rows of A, along the innermost reduced axis: guards, casts and gathers happen once per element here. */
void dlc_dot_build_copy_a(const dot *d, uint32_t copy)
{
    dlc_schedule *schedule = d->c->schedule;
    const dlc_ids *axes = &schedule->kernel->stages.data[copy].axes;
    uint32_t n = 0, last = axes->data[axes->n - 1], width = copy_width(d, copy, last);
    int is_short = is_short_row(d, axes, width);
    for (uint32_t i = 0; i + 1 < axes->n; i++)
        if (!dlc_ids_find(&d->form.batch, axes->data[i], NULL) && !(d->m == 1 && axes->data[i] == d->rows_axis)) {
            int is_reduced = dlc_ids_find(&d->form.k, axes->data[i], NULL);
            dlc_schedule_open(schedule, is_short && is_reduced ? DLC_LOOP_UNROLL : DLC_LOOP_FOR, axes->data[i], 1);
            n++;
        }
    dlc_schedule_open_lane(schedule, last, width, 1);
    dlc_schedule_leaf(schedule, copy, DLC_PLACE_SCRATCH);
    dlc_schedule_close(schedule, n + 1);
}

/* Panels of B. */
void dlc_dot_build_copy_b(const dot *d, uint32_t copy)
{
    dlc_schedule *schedule = d->c->schedule;
    int has_panels = d->block > d->n;
    if (has_panels)
        dlc_schedule_open(schedule, DLC_LOOP_FOR, d->columns_axis, d->n);
    uint32_t n, across = DLC_NO_AXIS, last = d->order.data[d->order.n - 1];
    int64_t square = d->width, granules = dlc_choose_granules(d->c, d->s, d->form.b, last, d->columns_axis, d->width, d->granule);
    if (granules)
        across = last, square = granules;
    else if (!dlc_dot_is_computed(d)) /* whose constants lie by panels */
        across = dlc_choose_across(d->c, d->s, d->form.b, &d->order, d->columns_axis, d->width);
    dlc_ids order = {0};
    for (uint32_t i = 0; i < d->order.n; i++)
        if (dlc_ids_find(&schedule->kernel->stages.data[copy].axes, d->order.data[i], NULL))
            dlc_vec_push(d->c->arena, &order, d->order.data[i]);
    uint32_t nouter = dlc_dot_order_copied(d, &order);
    for (uint32_t i = 0; i < order.n; i++) {
        dlc_loop_kind kind = dlc_dot_is_written_out(d, order.data[i]) ? DLC_LOOP_UNROLL : DLC_LOOP_FOR;
        if (i == nouter)
            dlc_schedule_open_lane(schedule, d->columns_axis, d->width, 1);
        dlc_schedule_open(schedule, kind, order.data[i], order.data[i] == across ? square : 1);
    }
    if (nouter == order.n)
        dlc_schedule_open_lane(schedule, d->columns_axis, d->width, 1);
    n = order.n + dlc_choose_open_across(d->c, across);
    dlc_schedule_leaf(schedule, copy, DLC_PLACE_SCRATCH);
    dlc_schedule_close(schedule, n + 1u + (uint32_t)has_panels);
}

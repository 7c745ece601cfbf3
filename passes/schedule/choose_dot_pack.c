/*
 * Constants as the columns' factor of a register tile: how they are laid out at compile time. A factor may be computed of several of
 * them, as numbers are of codes of few bits, scales and zero points: where few rows share a column it is computed in the tile, a vector
 * at a time, and memory is read as narrow as it is stored.
 */
#include "passes/schedule/choose_dot.h"

typedef dlc_dot_choice dot;
typedef dlc_part_list part_list;

enum { MOST_WRITTEN = 8 }; /* points of an axis that is written out */

static const dlc_access_fact *access_of(const dlc_chooser *c, uint32_t s, dlc_expr load)
{
    for (uint32_t i = 0; i < c->accesses[s].n; i++)
        if (c->accesses[s].data[i].load == load)
            return &c->accesses[s].data[i];
    return NULL;
}

const dlc_access_fact *dlc_dot_plain_load(const dot *d, dlc_expr factor)
{
    const dlc_pool *pool = d->c->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, factor);
    if (node->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(node->imm.id) || node->flags || dlc_load_guard(pool, factor))
        return NULL;
    return access_of(d->c, d->s, factor);
}

int dlc_dot_is_constant_load(const dot *d, dlc_expr factor)
{
    const dlc_access_fact *access = dlc_dot_plain_load(d, factor);
    return access && d->c->kernel->buffers.data[access->source].role == DLC_ROLE_CONST;
}

int dlc_dot_is_affine_in(const dot *d, const dlc_access_fact *access, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++)
        if (dlc_choose_stride(d->c, access->offset, axes->data[i]) == DLC_ODD_STRIDE)
            return 0;
    return 1;
}

int dlc_dot_is_direct(const dot *d, dlc_expr factor, const dlc_ids *own)
{
    const dlc_access_fact *access = dlc_dot_plain_load(d, factor);
    return access && dlc_dot_is_affine_in(d, access, own) && dlc_dot_is_affine_in(d, access, &d->form.k) &&
           dlc_dot_is_affine_in(d, access, &d->form.batch);
}

/* --- what is computed of constants --- */

static double elements_of(const dot *d, dlc_expr load)
{
    const dlc_ids *lists[] = {&d->form.batch, &d->form.m, &d->form.n, &d->form.k};
    double elements = 1;
    for (uint32_t l = 0; l < 4; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++)
            if (dlc_expr_uses_axis(d->c->kernel->pool, load, lists[l]->data[i]))
                elements *= (double)d->c->extent[lists[l]->data[i]];
    return elements;
}

/* Of so many as only the run knows the fewest may matter most: a decoder's step has one. */
static int is_for_few_rows(const dot *d)
{
    return dlc_choose_least(d->c, &d->form.m) <= DLC_FEW_COMPUTED_FOR;
}

/* All that the factor loads, if these are elements of constants; false: others are among them, or none. */
static int constants_of(const dot *d, dlc_expr factor, dlc_ids *loads)
{
    const dlc_pool *pool = d->c->kernel->pool;
    uint8_t *marks = dlc_new_array(d->c->arena, uint8_t, (size_t)factor + 1);
    dlc_expr_reach(pool, factor, marks);
    for (dlc_expr id = 1; id <= factor; id++) {
        if (!marks[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LOAD)
            continue;
        if (!dlc_dot_is_constant_load(d, id) || !dlc_dot_is_direct(d, id, &d->form.n))
            return 0;
        dlc_vec_push(d->c->arena, loads, id);
    }
    return loads->n > 0;
}

/* The largest one of several constants. */
static dlc_expr largest_of(const dot *d, const dlc_ids *loads)
{
    dlc_expr largest = loads->data[0];
    for (uint32_t i = 1; i < loads->n; i++)
        if (elements_of(d, loads->data[i]) > elements_of(d, largest))
            largest = loads->data[i];
    return largest;
}

static int is_computed(const dot *d, dlc_expr factor, dlc_ids *loads)
{
    const dlc_pool *pool = d->c->kernel->pool;
    dlc_expr number = dlc_node_of(pool, factor)->op == DLC_EXPR_CAST ? dlc_arg(pool, factor, 0) : factor; /* that a tile widens by itself */
    return dlc_node_of(pool, number)->op != DLC_EXPR_LOAD && d->row == DLC_DOT_FMA && d->c->target->kind == DLC_TARGET_CPU &&
           dlc_choose_are_known(d->c, &d->form.n) && dlc_choose_are_known(d->c, &d->form.k) && constants_of(d, factor, loads);
}

int dlc_dot_is_computed(const dot *d)
{
    dlc_ids loads = {0};
    return is_computed(d, d->form.b, &loads);
}

int dlc_dot_is_in_tile(const dot *d)
{
    return is_for_few_rows(d) && dlc_dot_is_computed(d);
}

dlc_expr dlc_dot_constant_of(const dot *d, dlc_expr factor)
{
    const dlc_pool *pool = d->c->kernel->pool;
    dlc_expr load = dlc_node_of(pool, factor)->op == DLC_EXPR_CAST ? dlc_arg(pool, factor, 0) : factor;
    dlc_ids loads = {0};
    if (dlc_dot_is_constant_load(d, load))
        return load;
    return is_for_few_rows(d) && is_computed(d, factor, &loads) ? largest_of(d, &loads) : 0;
}

/*
 * Weights of which one tile has all rows come from memory, each once: panels of a line of the cache, one for each line that the tile is
 * wide, are as many streams, and what fetches in hardware follows several at a time (Emerald Rapids, one row by 2048 x 1000 of bf16: 385 us
 * by one, 202 by four; 4 rows by 4096 x 4096 of f32 .83 of the time). Where it follows one best, the whole panel lies together (Zen 4: a step
 * of gpt2 small .88 of the time by panels of two lines).
 */
int64_t dlc_dot_panel_of_rows(const dot *d)
{
    const dlc_kernel *kernel = d->c->kernel;
    dlc_expr load = dlc_dot_is_computed(d) ? 0 : dlc_dot_constant_of(d, d->form.b);
    const dlc_access_fact *access = load ? dlc_dot_plain_load(d, load) : NULL;
    int is_one_tile = !d->form.m.n || (dlc_choose_are_known(d->c, &d->form.m) && d->rows <= (double)d->m);
    if (d->c->target->machine->streams == 1)
        return d->panel;
    if (!is_one_tile || d->summed.n || !access || d->c->target->panel_bytes || !dlc_choose_exceeds_l1(d->c, access->source))
        return d->panel;
    int64_t line = DLC_LINE_BYTES / (int64_t)dlc_dtype_bytes(kernel->buffers.data[access->source].type.dtype) / d->granule;
    return line >= d->width && d->n % line == 0 ? line : d->panel;
}

/* By more than where it loads. */
static int depends_on(const dot *d, dlc_expr factor, uint32_t axis)
{
    const dlc_pool *pool = d->c->kernel->pool;
    uint8_t *depends = dlc_new_array(d->c->arena, uint8_t, (size_t)factor + 1);
    for (dlc_expr id = 1; id <= factor; id++) { /* operands come first */
        const dlc_expr_node *node = dlc_node_of(pool, id);
        depends[id] = node->op == DLC_EXPR_AXIS && node->imm.id == axis;
        for (uint32_t i = 0; i < node->nargs && node->op != DLC_EXPR_LOAD; i++)
            depends[id] |= dlc_arg(pool, id, i) && depends[dlc_arg(pool, id, i)];
    }
    return depends[factor];
}

int dlc_dot_is_written_out(const dot *d, uint32_t axis)
{
    return dlc_dot_is_computed(d) && d->c->extent[axis] <= MOST_WRITTEN && depends_on(d, d->form.b, axis);
}

void dlc_dot_order_computed(const dot *d, dlc_ids *order)
{
    dlc_ids sorted = {0};
    for (int is_written = 0; is_written < 2; is_written++)
        for (uint32_t i = 0; i < order->n; i++)
            if (dlc_dot_is_written_out(d, order->data[i]) == is_written)
                dlc_vec_push(d->c->arena, &sorted, order->data[i]);
    *order = sorted;
}

/* Each of the loads depends on the axis. */
static int are_of(const dot *d, const dlc_ids *loads, uint32_t axis)
{
    for (uint32_t i = 0; i < loads->n; i++)
        if (!dlc_expr_uses_axis(d->c->kernel->pool, loads->data[i], axis))
            return 0;
    return 1;
}

uint32_t dlc_dot_order_copied(const dot *d, dlc_ids *order)
{
    dlc_ids loads = {0}, sorted = {0};
    uint32_t nouter = 0;
    double bytes = (double)d->n * dlc_dtype_bytes(d->stage->dtype[0]);
    if (!is_computed(d, d->form.b, &loads))
        return order->n;
    dlc_dot_order_computed(d, order);
    for (int is_inner = 0; is_inner < 2; is_inner++)
        for (uint32_t i = 0; i < order->n; i++) {
            if (are_of(d, &loads, order->data[i]) == is_inner)
                continue;
            dlc_vec_push(d->c->arena, &sorted, order->data[i]);
            nouter += !is_inner;
            bytes *= is_inner ? (double)d->c->extent[order->data[i]] : 1;
        }
    if (bytes > d->c->target->l1_bytes / 2) /* which each vector of columns would pass once more */
        return order->n;
    *order = sorted;
    return nouter;
}

/* --- packing --- */

static int add_part(const dot *d, part_list *list, const uint32_t *axes, uint32_t n, int64_t block, uint8_t inner)
{
    if (list->n == DLC_MAX_PARTS)
        return 0;
    list->parts[list->n] = (dlc_copy_part){.block = (int32_t)block, .inner = inner};
    for (uint32_t i = 0; i < n; i++)
        dlc_vec_push(d->c->arena, &list->parts[list->n].axes, axes[i]);
    list->n++;
    return 1;
}

int dlc_dot_add_axes(const dot *d, part_list *list, dlc_expr factor, const uint32_t *axes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (dlc_expr_uses_axis(d->c->kernel->pool, factor, axes[i]) && !add_part(d, list, &axes[i], 1, 1, 0))
            return 0;
    return 1;
}

int dlc_dot_panel_parts(const dot *d, dlc_expr element, int is_number, part_list *list)
{
    const dlc_ids *n = &d->form.n, *batch = &d->form.batch;
    uint32_t outer = is_number ? 0 : n->n - 1, *last = &d->order.data[d->order.n - 1];
    int is_inner = d->summed.n > 0; /* a unit goes through its batches */
    list->n = 0;
    return (is_inner || dlc_dot_add_axes(d, list, element, batch->data, batch->n)) && dlc_dot_add_axes(d, list, element, n->data, outer) &&
           add_part(d, list, n->data + outer, n->n - outer, d->panel, 0) &&
           (!is_inner || dlc_dot_add_axes(d, list, element, batch->data, batch->n)) &&
           (d->part == DLC_NO_AXIS || add_part(d, list, &d->part, 1, 1, 0)) &&
           dlc_dot_add_axes(d, list, element, d->order.data, d->order.n - 1) &&
           (d->granule == 1 ? dlc_dot_add_axes(d, list, element, last, 1) : add_part(d, list, last, 1, d->granule, 0)) &&
           add_part(d, list, n->data + outer, n->n - outer, d->panel, 1) &&
           (d->granule == 1 || add_part(d, list, last, 1, d->granule, 1));
}

static int pack(dot *d, const char *name, dlc_expr element)
{
    dlc_schedule *schedule = d->c->schedule;
    part_list list;
    if (dlc_dot_panel_parts(d, element, 1, &list) && dlc_schedule_pack(schedule, name, d->s, element, list.parts, list.n))
        return 1;
    if (d->c->extent[d->form.n.data[d->form.n.n - 1]] % d->panel) /* panels would cross the end of the inner axis */
        return 0;
    return d->form.n.n > 1 && dlc_dot_panel_parts(d, element, 0, &list) &&
           dlc_schedule_pack(schedule, name, d->s, element, list.parts, list.n);
}

static int uses_any(const dot *d, dlc_expr load, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++)
        if (dlc_expr_uses_axis(d->c->kernel->pool, load, axes->data[i]))
            return 1;
    return 0;
}

int dlc_dot_pack(dot *d)
{
    dlc_ids loads = {0};
    int is_made = is_computed(d, d->form.b, &loads);
    dlc_expr element = is_made ? largest_of(d, &loads) : dlc_dot_constant_of(d, d->form.b);
    if (element && d->part != DLC_NO_AXIS)
        element = dlc_dot_part(d->c->kernel->pool, element, d->columns_part, dlc_expr_axis(d->c->kernel->pool, d->part));
    if (!element || !pack(d, is_made ? "packed" : d->b_name, element))
        return 0;
    for (uint32_t i = 0; i < loads.n; i++)
        if (uses_any(d, loads.data[i], &d->form.n) && loads.data[i] != element)
            (void)pack(d, dlc_arena_printf(d->c->arena, "packed_%u", i), loads.data[i]);
    return !is_made || is_for_few_rows(d);
}

/* What stage s has of constants for each column, by panels; others stay as they lie. */
void dlc_dot_pack_behind(dot *d, uint32_t s)
{
    const dlc_schedule *schedule = d->c->schedule;
    for (uint32_t i = 0; i < d->c->accesses[s].n; i++) {
        const dlc_access_fact *access = &d->c->accesses[s].data[i];
        part_list list = {.n = 0};
        if (!access->load || DLC_SOURCE_IS_STAGE(access->source) || d->c->kernel->buffers.data[access->source].role != DLC_ROLE_CONST ||
            dlc_node_of(d->c->kernel->pool, access->load)->flags || dlc_load_guard(d->c->kernel->pool, access->load) ||
            !uses_any(d, access->load, &d->form.n) || !uses_any(d, access->load, &d->summed))
            continue;
        if (add_part(d, &list, d->form.n.data, d->form.n.n, d->panel, 0) &&
            dlc_dot_add_axes(d, &list, access->load, d->form.batch.data, d->form.batch.n) &&
            add_part(d, &list, d->form.n.data, d->form.n.n, d->panel, 1))
            (void)dlc_schedule_pack(d->c->schedule, dlc_arena_printf(d->c->arena, "%s_%u", d->b_name, schedule->copies.n), s, access->load,
                                    list.parts, list.n);
    }
}

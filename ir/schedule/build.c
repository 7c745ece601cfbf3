/*
 * Making a schedule: its own kernel with flattened axes, copies and packed constants, and the tree, node by node. Nothing is
 * checked here: ir/schedule/verify.c judges the whole.
 */
#include <string.h>

#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"

dlc_schedule *dlc_schedule_create(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena)
{
    dlc_schedule *schedule = dlc_new(arena, dlc_schedule);
    schedule->arena = arena;
    schedule->target = target;
    schedule->kernel = dlc_kernel_clone(kernel, arena);
    schedule->nstages = kernel->stages.n;
    schedule->grain = 1;
    schedule->part = DLC_NO_AXIS;
    return schedule;
}

/* --- flattened axes --- */

typedef struct {
    dlc_schedule *schedule;
    const dlc_ids *axes; /* that become one */
    uint32_t flat;
    dlc_expr *with;      /* by axis: what each of them is, in terms of the flat one */
    uint8_t *is_flat;    /* by stage: it had all of them */
    dlc_ids *before;     /* by stage: its axes as they were */
    uint8_t in_flat;     /* the stage being rewritten has them all, kept or reduced */
} flattening;

static int has_all(const dlc_ids *own, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++)
        if (!dlc_ids_find(own, axes->data[i], NULL))
            return 0;
    return 1;
}

/* The number of a point among the flattened axes, whose indices (in the order of the stage's axes) are given. */
static dlc_expr flat_index(const flattening *f, const dlc_ids *own, const dlc_expr *index)
{
    dlc_pool *pool = f->schedule->kernel->pool;
    dlc_expr number = dlc_expr_i64(pool, 0);
    int is_same = f->in_flat;
    for (uint32_t i = 0; i < f->axes->n; i++) {
        uint32_t at = 0, axis = f->axes->data[i];
        dlc_ids_find(own, axis, &at);
        is_same &= index[at] == f->with[axis];
        number = dlc_add(pool, dlc_mul(pool, number, f->schedule->kernel->axes.data[axis].extent), index[at]);
    }
    return is_same ? dlc_expr_axis(pool, f->flat) : number;
}

static uint32_t flat_load(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const flattening *f = user;
    uint32_t s = DLC_SOURCE_INDEX(source), n = 0;
    if (!DLC_SOURCE_IS_STAGE(source) || !f->is_flat[s]) {
        memcpy(result, index, rank * sizeof *index);
        return rank;
    }
    int is_done = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (!dlc_ids_find(f->axes, f->before[s].data[i], NULL))
            result[n++] = index[i];
        else if (!is_done++)
            result[n++] = flat_index(f, &f->before[s], index);
    }
    return n;
}

static void replace_axes(const flattening *f, dlc_ids *own)
{
    uint32_t n = 0;
    int is_done = 0;
    for (uint32_t i = 0; i < own->n; i++) {
        if (!dlc_ids_find(f->axes, own->data[i], NULL))
            own->data[n++] = own->data[i];
        else if (!is_done++)
            own->data[n++] = f->flat;
    }
    own->n = n;
}

static void find_digits(flattening *f)
{
    dlc_kernel *kernel = f->schedule->kernel;
    dlc_expr inner = dlc_expr_i64(kernel->pool, 1);
    for (uint32_t i = f->axes->n; i-- > 0;) {
        uint32_t axis = f->axes->data[i];
        dlc_expr value = dlc_floordiv(kernel->pool, dlc_expr_axis(kernel->pool, f->flat), inner);
        f->with[axis] = i ? dlc_mod(kernel->pool, value, kernel->axes.data[axis].extent) : value;
        inner = dlc_mul(kernel->pool, inner, kernel->axes.data[axis].extent);
    }
}

uint32_t dlc_schedule_flatten(dlc_schedule *schedule, const dlc_ids *axes)
{
    dlc_kernel *kernel = schedule->kernel;
    dlc_ids flat = {0};
    if (axes->n == 1)
        return axes->data[0];
    dlc_expr extent = dlc_expr_i64(kernel->pool, 1);
    for (uint32_t i = 0; i < axes->n; i++) {
        extent = dlc_mul(kernel->pool, extent, kernel->axes.data[axes->data[i]].extent);
        dlc_vec_push(schedule->arena, &flat, axes->data[i]);
    }
    flattening f = {.schedule = schedule, .axes = axes};
    f.flat = dlc_kernel_axis(kernel, dlc_schedule_joined_name(schedule, axes), extent);
    f.with = dlc_new_array(schedule->arena, dlc_expr, kernel->axes.n);
    f.is_flat = dlc_new_array(schedule->arena, uint8_t, kernel->stages.n);
    f.before = dlc_new_array(schedule->arena, dlc_ids, kernel->stages.n);
    find_digits(&f);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        dlc_stage *stage = &kernel->stages.data[s];
        for (uint32_t i = 0; i < stage->axes.n; i++)
            dlc_vec_push(schedule->arena, &f.before[s], stage->axes.data[i]);
        f.is_flat[s] = (uint8_t)has_all(&stage->axes, axes);
    }
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        dlc_stage *stage = &kernel->stages.data[s];
        int is_reduced = has_all(&stage->reduce, axes);
        f.in_flat = (uint8_t)(f.is_flat[s] || is_reduced);
        dlc_reindex reindex = {.axes = f.in_flat ? f.with : NULL, .index = flat_load, .user = &f};
        if (f.in_flat)
            replace_axes(&f, is_reduced ? &stage->reduce : &stage->axes);
        dlc_stage_reindex(kernel, stage, &reindex);
    }
    dlc_kernel_simplify(kernel);
    dlc_vec_push(schedule->arena, &flat, f.flat);
    dlc_vec_push(schedule->arena, &schedule->flats, flat);
    return f.flat;
}

/* --- copies --- */

typedef struct {
    const dlc_pool *pool;
    dlc_expr value, with;
} exchange;

/* Nodes are shared, so the node whose operands lie where the value's do is the value. */
static dlc_expr exchange_visit(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const exchange *e = ctx;
    const dlc_expr_node *value = dlc_node_of(e->pool, e->value);
    (void)to, (void)args;
    return node->op == value->op && node->nargs && node->args == value->args ? e->with : 0;
}

static dlc_expr replaced(dlc_pool *pool, dlc_expr root, dlc_expr value, dlc_expr with)
{
    return dlc_expr_rewrite(pool, pool, root, exchange_visit, &(exchange){pool, value, with});
}

/* --- parts of factors --- */

uint32_t dlc_schedule_part_axis(dlc_schedule *schedule)
{
    dlc_kernel *kernel = schedule->kernel;
    if (schedule->part == DLC_NO_AXIS)
        schedule->part = dlc_kernel_axis(kernel, "part", dlc_expr_i64(kernel->pool, DLC_PARTS));
    return schedule->part;
}

dlc_expr dlc_schedule_parts(const dlc_schedule *schedule, dlc_expr factor)
{
    dlc_pool *pool = schedule->kernel->pool;
    dlc_expr parts[DLC_PARTS];
    uint8_t dim;
    if (schedule->part == DLC_NO_AXIS || !dlc_dot_parts(pool, factor, parts, &dim))
        return 0;
    return dlc_dot_part(pool, parts[0], dim, dlc_expr_axis(pool, schedule->part));
}

/* The index that counts parts in a load by their axis; rank: none does. */
static uint32_t part_index(const dlc_schedule *schedule, dlc_expr load)
{
    const dlc_pool *pool = schedule->kernel->pool;
    uint32_t dim = 0, rank = dlc_load_rank(pool, load);
    while (dim < rank && (schedule->part == DLC_NO_AXIS || dlc_bare_axis(pool, dlc_arg(pool, load, dim)) != schedule->part))
        dim++;
    return dim;
}

/* The value with the loads that differ from `value`, which counts parts, in these alone, made from the copy. */
static dlc_expr with_parts(const dlc_schedule *schedule, dlc_expr root, dlc_expr value, dlc_expr load)
{
    dlc_pool *pool = schedule->kernel->pool;
    uint8_t from = (uint8_t)part_index(schedule, value), to = (uint8_t)part_index(schedule, load);
    for (uint32_t i = 0; i < DLC_PARTS; i++) {
        dlc_expr part = dlc_expr_i64(pool, i);
        root = replaced(pool, root, dlc_dot_part(pool, value, from, part), dlc_dot_part(pool, load, to, part));
    }
    return root;
}

static dlc_expr of_product(dlc_pool *pool, const dlc_contraction *form, dlc_expr copied, dlc_expr other)
{
    dlc_expr product = dlc_mul(pool, copied, other);
    return form->scale ? dlc_mul(pool, form->scale, product) : product;
}

/* The stage's value, reading the copy. A factor of several terms need not stand together in the product: then it is written anew. */
static dlc_expr with_copy(const dlc_schedule *schedule, const dlc_stage *stage, dlc_expr value, dlc_expr load)
{
    dlc_pool *pool = schedule->kernel->pool;
    dlc_expr result = replaced(pool, stage->value[0], value, load);
    dlc_contraction form;
    if (dlc_node_of(pool, value)->op == DLC_EXPR_LOAD && part_index(schedule, value) < dlc_load_rank(pool, value))
        return with_parts(schedule, stage->value[0], value, load);
    if (result != stage->value[0] || !dlc_contraction_of(schedule->kernel, stage, schedule->arena, &form))
        return result;
    if (dlc_schedule_widened(pool, form.a) == value)
        return of_product(pool, &form, dlc_expr_cast(pool, stage->dtype[0], load), form.b);
    if (dlc_schedule_widened(pool, form.b) == value)
        return of_product(pool, &form, dlc_expr_cast(pool, stage->dtype[0], load), form.a);
    return value == form.a ? of_product(pool, &form, load, form.b) : value == form.b ? of_product(pool, &form, load, form.a) : result;
}

uint32_t dlc_schedule_copy_add(dlc_schedule *schedule, const char *name, uint32_t s, const char *operand, dlc_expr value,
                               const dlc_ids *axes)
{
    dlc_kernel *kernel = schedule->kernel;
    dlc_dtype dtype = dlc_node_of(kernel->pool, value)->dtype;
    dlc_stage *copy = dlc_kernel_stage(kernel, name);
    dlc_expr index[DLC_MAX_INDEX];
    uint32_t c = kernel->stages.n - 1;
    copy->value[0] = dlc_schedule_windowed(schedule, value, axes);
    copy->dtype[0] = dtype;
    for (uint32_t i = 0; i < axes->n; i++)
        if (dlc_expr_uses_axis(kernel->pool, copy->value[0], axes->data[i])) {
            index[copy->axes.n] = dlc_schedule_point_of(schedule, axes->data[i]);
            dlc_vec_push(schedule->arena, &copy->axes, axes->data[i]);
        }
    dlc_expr load = dlc_expr_load(kernel->pool, dtype, DLC_STAGE_SOURCE(c), index, copy->axes.n, 0, 0, 0);
    dlc_stage *stage = &kernel->stages.data[s];
    stage->value[0] = with_copy(schedule, stage, value, load);
    dlc_schedule_copy row = {.name = copy->name, .stage = s, .operand = operand, .copy = c};
    dlc_vec_push(schedule->arena, &schedule->copies, row);
    return c;
}

/* --- constants laid out at compile time --- */

/* The constant's elements, row-major, in another shape: each dimension is what one axis, or several as one number, count. */
typedef struct {
    dlc_schedule *schedule;
    const dlc_copy_part *parts;
    uint32_t nparts, ndims;
    uint32_t axis[DLC_MAX_RANK];  /* or DLC_NO_AXIS: the number of the part's axes together */
    dlc_expr index[DLC_MAX_RANK], dims[DLC_MAX_RANK];
    dlc_source source;
    uint32_t part; /* the index that counts parts, or the rank */
} repack;

static int add_dim(repack *r, uint32_t axis, dlc_expr index, dlc_expr extent)
{
    if (r->ndims == DLC_MAX_RANK)
        return 0;
    r->axis[r->ndims] = axis;
    r->index[r->ndims] = index;
    r->dims[r->ndims++] = extent;
    return 1;
}

/* The index is the number of a point among the part's axes, each counting the whole of the next. */
static int is_number_of(const repack *r, const dlc_copy_part *part, dlc_expr index, dlc_expr extent)
{
    const dlc_kernel *kernel = r->schedule->kernel;
    dlc_expr number = dlc_expr_i64(kernel->pool, 0), all = dlc_expr_i64(kernel->pool, 1);
    for (uint32_t i = 0; i < part->axes.n; i++) {
        uint32_t axis = part->axes.data[i];
        number = dlc_add(kernel->pool, dlc_mul(kernel->pool, number, kernel->axes.data[axis].extent),
                         dlc_expr_axis(kernel->pool, axis));
        all = dlc_mul(kernel->pool, all, kernel->axes.data[axis].extent);
    }
    return part->axes.n > 1 && number == index && all == extent;
}

static int is_any_number(const repack *r, dlc_expr index, dlc_expr extent)
{
    for (uint32_t p = 0; p < r->nparts; p++)
        if (is_number_of(r, &r->parts[p], index, extent))
            return 1;
    return 0;
}

/* The axis that counts the most in index = x0*e1*e2… + x1*e2… + x2, of `count` points; what is left of both. */
static uint32_t leading_digit(const dlc_kernel *kernel, dlc_expr *index, dlc_expr *count)
{
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        dlc_expr coefficient, others;
        if (!dlc_expr_uses_axis(kernel->pool, *index, a) ||
            !dlc_expr_linear(kernel->pool, *index, a, &coefficient, &others) ||
            dlc_mul(kernel->pool, coefficient, kernel->axes.data[a].extent) != *count)
            continue;
        *index = others;
        *count = coefficient;
        return a;
    }
    return DLC_NO_AXIS;
}

static int add_digits(repack *r, dlc_expr index, dlc_expr count)
{
    const dlc_kernel *kernel = r->schedule->kernel;
    uint32_t axis;
    while ((axis = dlc_bare_axis(kernel->pool, index)) == DLC_NO_AXIS) {
        axis = leading_digit(kernel, &index, &count);
        if (axis == DLC_NO_AXIS ||
            !add_dim(r, axis, dlc_expr_axis(kernel->pool, axis), kernel->axes.data[axis].extent))
            return 0;
    }
    return count == kernel->axes.data[axis].extent && add_dim(r, axis, index, count);
}

static int find_dims(repack *r, dlc_expr load)
{
    const dlc_kernel *kernel = r->schedule->kernel;
    const dlc_buffer *buffer = &kernel->buffers.data[r->source];
    for (uint8_t d = 0; d < buffer->type.rank; d++) {
        dlc_expr index = dlc_arg(kernel->pool, load, d), extent = buffer->type.dims[d];
        if (is_any_number(r, index, extent) ? !add_dim(r, DLC_NO_AXIS, index, extent) : !add_digits(r, index, extent))
            return 0;
    }
    return 1;
}

static int dim_of(const repack *r, const dlc_copy_part *part)
{
    for (uint32_t i = 0; i < r->ndims; i++)
        if (part->axes.n == 1 ? r->axis[i] == part->axes.data[0]
                              : r->axis[i] == DLC_NO_AXIS && is_number_of(r, part, r->index[i], r->dims[i]))
            return (int)i;
    return -1;
}

static int find_layout(const repack *r, dlc_layout *layout)
{
    uint32_t outer = 0;
    *layout = (dlc_layout){0};
    for (uint32_t p = 0; p < r->nparts; p++) {
        int dim = dim_of(r, &r->parts[p]);
        if (dim < 0 || layout->nparts == DLC_MAX_PARTS)
            return 0;
        layout->part[layout->nparts].dim = (uint8_t)dim;
        layout->part[layout->nparts].inner = r->parts[p].inner;
        layout->part[layout->nparts++].block = r->parts[p].block;
        outer += !r->parts[p].inner;
    }
    return outer == r->ndims;
}

static uint32_t panel_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const repack *r = user;
    int is_it = source == r->source;
    memcpy(result, is_it ? r->index : index, (is_it ? r->ndims : rank) * sizeof *index);
    for (uint32_t i = 0; i < r->ndims && is_it && r->part < rank; i++)
        if (r->axis[i] == r->schedule->part)
            result[i] = index[r->part];
    return is_it ? r->ndims : rank;
}

/* Once, or part by part. */
static int is_read_so_often(const dlc_schedule *schedule, dlc_source source, uint32_t times)
{
    const uint8_t *marks = dlc_kernel_marks(schedule->kernel, schedule->arena);
    uint32_t n = 0;
    for (dlc_expr id = 1; id < schedule->kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(schedule->kernel->pool, id);
        n += marks[id] && node->op == DLC_EXPR_LOAD && node->imm.id == source;
    }
    return n == times;
}

int dlc_schedule_pack(dlc_schedule *schedule, const char *name, uint32_t stage, dlc_expr load, const dlc_copy_part *parts,
                      uint32_t nparts)
{
    dlc_kernel *kernel = schedule->kernel;
    const dlc_expr_node node = *dlc_node_of(kernel->pool, load);
    dlc_layout layout;
    if (node.op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(node.imm.id) || dlc_load_guard(kernel->pool, load) || node.flags)
        return 0;
    repack r = {.schedule = schedule, .parts = parts, .nparts = nparts, .source = node.imm.id, .part = part_index(schedule, load)};
    uint32_t times = r.part < dlc_load_rank(kernel->pool, load) ? DLC_PARTS : 1;
    dlc_buffer *buffer = &kernel->buffers.data[r.source];
    if (buffer->role != DLC_ROLE_CONST || buffer->layout.nparts || !is_read_so_often(schedule, r.source, times) ||
        !find_dims(&r, load) || !find_layout(&r, &layout))
        return 0;
    dlc_schedule_copy row = {.name = name, .stage = stage, .copy = DLC_NO_STAGE,
                             .operand = dlc_schedule_operand_name(schedule, stage, load)};
    for (uint32_t p = 0; p < nparts; p++)
        dlc_vec_push(schedule->arena, &row.parts, parts[p]);
    dlc_kernel_reindex(kernel, &(dlc_reindex){.index = panel_index, .user = &r});
    buffer->type.rank = (uint8_t)r.ndims;
    memcpy(buffer->type.dims, r.dims, sizeof r.dims);
    buffer->layout = layout;
    dlc_vec_push(schedule->arena, &schedule->copies, row);
    return 1;
}

/* --- operands --- */

static dlc_source source_named(const dlc_kernel *kernel, const char *name, int *found)
{
    *found = 1;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (strcmp(kernel->buffers.data[b].name, name) == 0)
            return b;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (strcmp(kernel->stages.data[s].name, name) == 0)
            return DLC_STAGE_SOURCE(s);
    *found = 0;
    return 0;
}

static dlc_expr only_load(const dlc_schedule *schedule, uint32_t s, dlc_source source)
{
    const dlc_kernel *kernel = schedule->kernel;
    const uint8_t *marks = dlc_stage_marks(kernel, &kernel->stages.data[s], schedule->arena);
    dlc_expr found = 0;
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (!marks[id] || node->op != DLC_EXPR_LOAD || node->imm.id != source)
            continue;
        if (found)
            return 0;
        found = id;
    }
    return found;
}

dlc_expr dlc_schedule_widened(dlc_pool *pool, dlc_expr factor)
{
    dlc_expr byte = dlc_node_of(pool, factor)->op == DLC_EXPR_CAST ? dlc_arg(pool, factor, 0) : factor;
    dlc_dtype dtype = dlc_node_of(pool, byte)->dtype;
    return dlc_is_int(dtype) && dlc_dtypes[dtype].bits == 8 ? dlc_expr_cast(pool, DLC_I16, byte) : 0;
}

dlc_expr dlc_schedule_operand(dlc_schedule *schedule, uint32_t s, const char *operand)
{
    static const char *const names[] = {"left",      "right",      "uncast_left", "uncast_right",
                                        "wide_left", "wide_right", "parts_left",  "parts_right"};
    enum { NNAMES = sizeof names / sizeof *names };
    dlc_pool *pool = schedule->kernel->pool;
    dlc_contraction form;
    int found, which = 0;
    dlc_source source = source_named(schedule->kernel, operand, &found);
    if (found)
        return only_load(schedule, s, source);
    while (which < NNAMES && strcmp(operand, names[which]) != 0)
        which++;
    if (which == NNAMES || !dlc_contraction_of(schedule->kernel, &schedule->kernel->stages.data[s], schedule->arena, &form))
        return 0;
    dlc_expr factor = which % 2 ? form.b : form.a;
    if (which < 2)
        return factor;
    if (which >= 6)
        return dlc_schedule_parts(schedule, factor);
    if (which >= 4)
        return dlc_schedule_widened(pool, factor);
    return dlc_node_of(pool, factor)->op == DLC_EXPR_CAST ? dlc_arg(pool, factor, 0) : 0;
}

const char *dlc_schedule_operand_name(dlc_schedule *schedule, uint32_t s, dlc_expr value)
{
    const dlc_kernel *kernel = schedule->kernel;
    const dlc_expr_node *node = dlc_node_of(kernel->pool, value);
    if (node->op == DLC_EXPR_LOAD) {
        uint32_t at = DLC_SOURCE_INDEX(node->imm.id);
        const char *name = DLC_SOURCE_IS_STAGE(node->imm.id) ? kernel->stages.data[at].name : kernel->buffers.data[at].name;
        if (dlc_schedule_operand(schedule, s, name) == value)
            return name;
    }
    return dlc_schedule_operand(schedule, s, "left") == value           ? "left"
           : dlc_schedule_operand(schedule, s, "uncast_left") == value  ? "uncast_left"
           : dlc_schedule_operand(schedule, s, "uncast_right") == value ? "uncast_right"
           : dlc_schedule_operand(schedule, s, "wide_left") == value    ? "wide_left"
           : dlc_schedule_operand(schedule, s, "wide_right") == value   ? "wide_right"
           : dlc_schedule_operand(schedule, s, "parts_left") == value   ? "parts_left"
           : dlc_schedule_operand(schedule, s, "parts_right") == value  ? "parts_right"
                                                                        : "right";
}

/* --- the tree --- */

static dlc_schedule_node *node_add(dlc_schedule *schedule, dlc_loop_kind kind)
{
    dlc_schedule_node node = {.kind = (uint8_t)kind, .axis = DLC_NO_AXIS, .stage = DLC_NO_STAGE, .rows = DLC_NO_AXIS,
                              .columns = DLC_NO_AXIS, .tile = 1, .count = 1, .end = schedule->nodes.n + 1};
    dlc_vec_push(schedule->arena, &schedule->nodes, node);
    if (kind != DLC_LOOP_LEAF)
        dlc_vec_push(schedule->arena, &schedule->open, schedule->nodes.n - 1);
    return &schedule->nodes.data[schedule->nodes.n - 1];
}

void dlc_schedule_open(dlc_schedule *schedule, dlc_loop_kind kind, uint32_t axis, int64_t tile)
{
    dlc_schedule_node *node = node_add(schedule, kind);
    node->axis = axis;
    node->tile = tile;
}

void dlc_schedule_open_lane(dlc_schedule *schedule, uint32_t axis, int64_t width, uint32_t count)
{
    dlc_schedule_node *node = node_add(schedule, DLC_LOOP_LANE);
    node->axis = axis;
    node->tile = width;
    node->count = count;
}

void dlc_schedule_open_as(dlc_schedule *schedule, uint32_t stage)
{
    node_add(schedule, DLC_LOOP_AS)->stage = stage;
}

void dlc_schedule_leaf(dlc_schedule *schedule, uint32_t stage, dlc_place place)
{
    dlc_schedule_node *node = node_add(schedule, DLC_LOOP_LEAF);
    node->stage = stage;
    node->place = (uint8_t)place;
}

void dlc_schedule_dot(dlc_schedule *schedule, uint32_t stage, dlc_dot row, uint32_t rows, uint32_t columns,
                      const dlc_ids *over, dlc_place place)
{
    dlc_schedule_leaf(schedule, stage, place);
    dlc_schedule_node *node = &schedule->nodes.data[schedule->nodes.n - 1];
    node->row = (uint8_t)row;
    node->rows = rows;
    node->columns = columns;
    for (uint32_t i = 0; i < over->n; i++)
        dlc_vec_push(schedule->arena, &node->over, over->data[i]);
}

void dlc_schedule_own_dot(dlc_schedule *schedule, uint32_t stage, dlc_dot row, uint32_t over, dlc_place place)
{
    dlc_schedule_leaf(schedule, stage, place);
    dlc_schedule_node *node = &schedule->nodes.data[schedule->nodes.n - 1];
    node->own = (uint8_t)row;
    dlc_vec_push(schedule->arena, &node->over, over);
}

void dlc_schedule_dot_cut(dlc_schedule *schedule, uint32_t axis, int64_t part)
{
    dlc_schedule_node *node = &schedule->nodes.data[schedule->nodes.n - 1];
    node->cut = axis;
    node->part = part;
}

void dlc_schedule_close(dlc_schedule *schedule, uint32_t n)
{
    while (n--)
        schedule->nodes.data[schedule->open.data[--schedule->open.n]].end = schedule->nodes.n;
}

/*
 * Maps that transpose, for CUDA: along the axis in which the result is contiguous some load is
 * strided, and it is contiguous along another. By lanes that load would fetch a sector of memory
 * for every element; by tiles of both axes in shared memory it fetches neighbours, as the store
 * does. What lies where in memory decides, never the operator.
 */
#include "passes/schedule/choose.h"

enum {
    LEAST_EXTENT = 16, /* of both axes: below it most of a tile is empty */
    TILE = 32,         /* points of both */
    PAD = 1,           /* rows begin in other banks, so that a column lies in different ones */
    THREADS = 256
};

/* The coefficient of the axis in an offset; 0 when it is not in it, INT64_MIN when it is no
 * constant. */
static int64_t stride_of(dlc_pool *pool, dlc_expr offset, uint32_t axis)
{
    dlc_expr coefficient, rest;
    int64_t stride;
    return dlc_expr_linear(pool, offset, axis, &coefficient, &rest) &&
                   dlc_expr_is_int(pool, coefficient, &stride)
               ? stride
               : INT64_MIN;
}

static int is_across(dlc_kernel *kernel, const dlc_ranges *ranges, dlc_expr load, uint32_t in,
                     uint32_t out)
{
    dlc_pool *pool = kernel->pool;
    dlc_source source = dlc_node_of(pool, load)->imm.id;
    uint8_t rank = (uint8_t)dlc_load_rank(pool, load);
    dlc_expr index[DLC_MAX_RANK];
    if (DLC_SOURCE_IS_STAGE(source))
        return 0;
    const dlc_buffer *buffer = &kernel->buffers.data[source];
    for (uint8_t d = 0; d < rank; d++)
        index[d] = dlc_arg(pool, load, d);
    dlc_expr offset = dlc_layout_offset(pool, &buffer->layout, rank, buffer->type.dims, index);
    offset = dlc_expr_simplify(pool, offset, ranges);
    int64_t along_out = stride_of(pool, offset, out);
    return stride_of(pool, offset, in) == 1 && along_out != 0 && along_out != 1;
}

/* What the text of a schedule can name. */
static int is_the_only_load(const dlc_chooser *c, dlc_expr load)
{
    return dlc_schedule_operand(c->schedule, 0, dlc_schedule_operand_name(c->schedule, 0, load)) == load;
}

/* Loads of the map that are contiguous along `in` and strided along `out`: as many as have room for their tiles in shared
 * memory. From the value down: loads within what a load through a tile needs are none of the map's own. */
static dlc_ids find_crossing(const dlc_chooser *c, uint32_t in, uint32_t out)
{
    dlc_kernel *kernel = c->kernel;
    dlc_pool *pool = kernel->pool;
    dlc_expr root = kernel->stages.data[0].value[0];
    dlc_ids loads = {0};
    uint32_t all = 0;
    uint8_t *marks = dlc_new_array(kernel->arena, uint8_t, (size_t)root + 1);
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    marks[root] = 1;
    for (dlc_expr id = root; id > 0; id--) {
        const dlc_expr_node node = *dlc_node_of(pool, id);
        uint32_t bytes = TILE * (TILE + PAD) * dlc_dtype_bytes((dlc_dtype)node.dtype);
        if (!marks[id])
            continue;
        if (node.op == DLC_EXPR_LOAD && all + bytes <= c->target->scratch_bytes &&
            is_across(kernel, &ranges, id, in, out) && is_the_only_load(c, id)) {
            dlc_vec_push(kernel->arena, &loads, id);
            all += bytes;
            continue;
        }
        for (uint32_t i = 0; i < node.nargs; i++)
            marks[dlc_arg(pool, id, i)] = 1;
    }
    return loads;
}

/* Neighbours in memory are points of the axis, in what the stage stores. */
static int is_stored_along(const dlc_chooser *c, uint32_t axis)
{
    for (uint32_t i = 0; i < c->accesses[0].n; i++)
        if (!c->accesses[0].data[i].load &&
            dlc_choose_stride(c, c->accesses[0].data[i].offset, axis) == 1)
            return 1;
    return 0;
}

/* A map whose points are independent, big enough along some axis of its result; that axis. */
static uint32_t find_out(const dlc_chooser *c)
{
    const dlc_stage *stage = &c->kernel->stages.data[0];
    if (c->kernel->stages.n != 1 || stage->combine != DLC_REDUCE_NONE || stage->update ||
        stage->buffer == DLC_NO_BUFFER || c->roots.n != stage->axes.n)
        return DLC_NO_AXIS;
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (c->extent[stage->axes.data[i]] >= LEAST_EXTENT &&
            is_stored_along(c, stage->axes.data[i]))
            return stage->axes.data[i];
    return DLC_NO_AXIS;
}

/* The axis along which most loads are contiguous that `out` makes strided. */
static uint32_t find_in(const dlc_chooser *c, uint32_t out)
{
    const dlc_ids *axes = &c->kernel->stages.data[0].axes;
    uint32_t in = DLC_NO_AXIS, most = 0;
    for (uint32_t i = 0; i < axes->n; i++) {
        if (axes->data[i] == out || c->extent[axes->data[i]] < LEAST_EXTENT)
            continue;
        uint32_t n = find_crossing(c, axes->data[i], out).n;
        if (n <= most)
            continue;
        most = n;
        in = axes->data[i];
    }
    return in;
}

static void add_part(const dlc_chooser *c, dlc_schedule_copy *copy, uint32_t axis, int32_t pad)
{
    dlc_copy_part part = {.block = 1, .pad = pad};
    dlc_vec_push(c->arena, &part.axes, axis);
    dlc_vec_push(c->arena, &copy->parts, part);
}

/* The load as a tile whose rows lie along `in`. */
static void add_copy(const dlc_chooser *c, dlc_expr load, uint32_t number, const dlc_ids *others, uint32_t in, uint32_t out)
{
    dlc_schedule *schedule = c->schedule;
    dlc_ids axes = {0};
    for (uint32_t i = 0; i < others->n; i++)
        if (dlc_expr_uses_axis(c->kernel->pool, load, others->data[i]))
            dlc_vec_push(c->arena, &axes, others->data[i]);
    dlc_vec_push(c->arena, &axes, out);
    dlc_vec_push(c->arena, &axes, in);
    const char *name = dlc_arena_printf(c->arena, "tile%u", number);
    dlc_schedule_copy_add(schedule, name, 0, dlc_schedule_operand_name(schedule, 0, load), load, &axes);
    for (uint32_t i = 0; i < axes.n; i++)
        add_part(c, &schedule->copies.data[schedule->copies.n - 1], axes.data[i], i + 1 < axes.n ? 0 : PAD);
}

static void open_deal(const dlc_chooser *c, uint32_t outer, uint32_t inner)
{
    dlc_schedule_open(c->schedule, DLC_LOOP_THREAD, outer, 1);
    dlc_schedule_open(c->schedule, DLC_LOOP_THREAD, inner, 1);
}

static void build(const dlc_chooser *c, uint32_t in, uint32_t out)
{
    dlc_schedule *schedule = c->schedule;
    dlc_ids others = {0}, loads = find_crossing(c, in, out);
    for (uint32_t r = 0; r < c->roots.n; r++)
        if (c->roots.data[r] != in && c->roots.data[r] != out)
            dlc_vec_push(c->arena, &others, c->roots.data[r]);
    dlc_choose_sort(c, &others);
    for (uint32_t i = 0; i < loads.n; i++)
        add_copy(c, loads.data[i], i, &others, in, out);
    schedule->threads = THREADS;
    for (uint32_t i = 0; i < others.n; i++)
        dlc_schedule_open(schedule, DLC_LOOP_PAR, others.data[i], 1);
    dlc_schedule_open(schedule, DLC_LOOP_PAR, in, TILE);
    dlc_schedule_open(schedule, DLC_LOOP_PAR, out, TILE);
    open_deal(c, out, in);
    for (uint32_t s = schedule->nstages; s < schedule->kernel->stages.n; s++)
        dlc_schedule_leaf(schedule, s, DLC_PLACE_SCRATCH);
    dlc_schedule_close(schedule, 2);
    open_deal(c, in, out);
    dlc_schedule_leaf(schedule, 0, DLC_PLACE_BUFFER);
    dlc_schedule_close(schedule, 4 + others.n);
}

int dlc_choose_transpose(dlc_chooser *c)
{
    uint32_t out = find_out(c), in = out == DLC_NO_AXIS ? DLC_NO_AXIS : find_in(c, out);
    if (in == DLC_NO_AXIS)
        return 0;
    build(c, in, out);
    return 1;
}

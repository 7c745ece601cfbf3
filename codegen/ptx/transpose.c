/*
 * A map whose loads cross its store, on CUDA: a block of 32 x 8 threads computes a tile of 32 x 32
 * points. Neighbouring threads are neighbours along the axis in which those loads are contiguous
 * when they load, along that of the store when they compute and store; between the two the loaded
 * values lie in shared memory. Threads are points of their own here (width 1), as in dot.c.
 *
 *     registers = loads at (in = thread % 32, out = thread / 32 + 0, 8, 16, 24)
 *     tiles = registers; sync
 *     for (out = thread % 32, in = thread / 32 + 0, 8, 16, 24): store the value, tiles for those
 * loads
 *
 * All loads of a thread come before its stores to shared memory: they are under way together.
 */
#include "codegen/ptx/text.h"

enum { TILE = DLC_CUDA_TILE, THREADS = 256, ROWS = THREADS / TILE, STEPS = TILE / ROWS };

typedef struct {
    dlc_cuda *cuda;
    dlc_nest *nest;
    dlc_pool *pool;
    const dlc_stage *stage;
    uint32_t in, out; /* root loops */
    dlc_crossing crossing;
    dlc_expr *values; /* by tile: the value read from it */
    dlc_expr *with;
} transpose;

typedef void (*tile_body)(const transpose *t, uint32_t step);

static uint32_t axis_of(const dlc_schedule *schedule, uint32_t loop)
{
    return schedule->block.loops.data[loop].axes.data[0];
}

static dlc_crossing crossing_of(dlc_kernel *kernel, const dlc_schedule *schedule)
{
    dlc_crossing crossing = {0};
    uint32_t n = schedule->block.loops.n;
    if (n >= 2)
        dlc_schedule_crossing(kernel, schedule->target, axis_of(schedule, n - 2),
                              axis_of(schedule, n - 1), &crossing);
    return crossing;
}

static const char *text_of(const transpose *t, dlc_expr expr)
{
    return (const char *)dlc_nest_uniform(t->nest,
                                          dlc_expr_simplify(t->pool, expr, &t->nest->ranges));
}

static dlc_dtype dtype_of(const transpose *t, uint32_t tile)
{
    return (dlc_dtype)dlc_node_of(t->pool, t->crossing.loads.data[tile])->dtype;
}

/* --- points --- */

/* This thread's point of the loop's tile becomes its axis; true when that opened a guard, which
 * extents of whole tiles do not need. */
static int point_open(const transpose *t, uint32_t loop, const char *place)
{
    dlc_nest *nest = t->nest;
    dlc_expr extent = dlc_root_extent(nest, loop);
    int64_t known;
    int is_guarded = !dlc_expr_is_int(t->pool, extent, &known) || known % TILE != 0;
    const char *first = text_of(t, nest->roots[loop].first), *end = text_of(t, extent);
    dlc_val point = dlc_cuda_value(t->cuda, DLC_I64, "%s + (%s)(%s)", first,
                                   dlc_cuda_type(t->cuda, DLC_I64), place);
    if (is_guarded) {
        nest->emit->if_begin(nest->emit, (dlc_val)dlc_arena_printf(t->cuda->arena, "%s < %s",
                                                                   (const char *)point, end));
        dlc_nest_enter(nest); /* bound in here: what depends on the point is not computed outside */
    }
    uint32_t axis = dlc_nest_axis(nest, extent);
    dlc_nest_bind(nest, axis, point, 1);
    t->with[axis_of(nest->schedule, loop)] = dlc_expr_axis(t->pool, axis);
    return is_guarded;
}

static void point_close(const transpose *t, int is_guarded)
{
    if (!is_guarded)
        return;
    dlc_nest_leave(t->nest);
    t->nest->emit->if_end(t->nest->emit);
}

static const char *row_text(const transpose *t, uint32_t step)
{
    return dlc_arena_printf(t->cuda->arena, "thread / %d + %u", TILE, step * ROWS);
}

/* Neighbouring threads along `across`, this thread's points along `down`. */
static void over_tile(const transpose *t, uint32_t across, uint32_t down, tile_body body)
{
    const char *column = dlc_arena_printf(t->cuda->arena, "thread %% %d", TILE);
    int is_guarded = point_open(t, across, column);
    for (uint32_t step = 0; step < STEPS; step++) {
        int is_row_guarded = point_open(t, down, row_text(t, step));
        body(t, step);
        point_close(t, is_row_guarded);
    }
    point_close(t, is_guarded);
}

/* --- loads --- */

static void declare(const transpose *t)
{
    for (uint32_t i = 0; i < t->crossing.loads.n; i++) {
        const char *type = dlc_cuda_memory_type(dtype_of(t, i));
        dlc_cuda_line(t->cuda, "%s *tile_%u = (%s *)(dlc_shared + %u), reg_%u[%d] = {0};", type, i,
                      type, t->crossing.places.data[i], i, STEPS);
    }
}

static void load(const transpose *t, uint32_t step)
{
    for (uint32_t i = 0; i < t->crossing.loads.n; i++) {
        dlc_expr value = dlc_nest_substitute(t->nest, t->crossing.loads.data[i], t->with);
        dlc_cuda_line(
            t->cuda, "reg_%u[%u] = %s;", i, step,
            dlc_cuda_to_memory(t->cuda, dtype_of(t, i), dlc_nest_uniform(t->nest, value)));
    }
}

static void share(const transpose *t)
{
    for (uint32_t i = 0; i < t->crossing.loads.n; i++)
        for (uint32_t step = 0; step < STEPS; step++)
            dlc_cuda_line(t->cuda, "tile_%u[(%s) * %d + thread %% %d] = reg_%u[%u];", i,
                          row_text(t, step), DLC_CUDA_PITCH, TILE, i, step);
    dlc_cuda_line(t->cuda, "dlc_block_sync();");
}

/* --- the store --- */

static dlc_expr shared_value(const transpose *t, uint32_t tile, uint32_t step)
{
    dlc_dtype dtype = dtype_of(t, tile);
    const char *element = dlc_arena_printf(t->cuda->arena, "tile_%u[thread %% %d * %d + %s]", tile,
                                           TILE, DLC_CUDA_PITCH, row_text(t, step));
    dlc_val value =
        dlc_cuda_value(t->cuda, dtype, "%s", dlc_cuda_from_memory(t->cuda, dtype, element));
    return dlc_nest_pseudo(t->nest, dtype, value, 1);
}

/* The operands of a node are its own: they tell which load it is. */
static dlc_expr replace_load(void *ctx, dlc_pool *to, const dlc_expr_node *node,
                             const dlc_expr *args)
{
    const transpose *t = ctx;
    (void)args;
    for (uint32_t i = 0; node->op == DLC_EXPR_LOAD && i < t->crossing.loads.n; i++)
        if (dlc_node_of(to, t->crossing.loads.data[i])->args == node->args)
            return t->values[i];
    return 0;
}

static void store(const transpose *t, uint32_t step)
{
    dlc_expr index[DLC_MAX_RANK];
    for (uint32_t i = 0; i < t->crossing.loads.n; i++)
        t->values[i] = shared_value(t, i, step);
    dlc_expr value =
        dlc_expr_rewrite(t->pool, t->pool, t->stage->value[0], replace_load, (void *)(uintptr_t)t);
    for (uint32_t i = 0; i < t->stage->store.n; i++)
        index[i] = dlc_nest_substitute(t->nest, t->stage->store.data[i], t->with);
    dlc_val result = dlc_nest_uniform(t->nest, dlc_nest_substitute(t->nest, value, t->with));
    dlc_nest_store(t->nest, t->stage->buffer, index, result, 1, DLC_UPDATE_NONE);
}

/* --- the kernel --- */

uint32_t dlc_cuda_transpose_bytes(dlc_kernel *kernel, const dlc_schedule *schedule)
{
    return crossing_of(kernel, schedule).bytes;
}

dlc_status dlc_cuda_transpose(dlc_emitter *e, dlc_nest *nest)
{
    const dlc_schedule *schedule = nest->schedule;
    uint32_t n = schedule->block.loops.n;
    transpose t = {.cuda = (dlc_cuda *)e, .nest = nest, .pool = nest->kernel->pool};
    t.stage = &nest->kernel->stages.data[0];
    t.in = n - 2;
    t.out = n - 1;
    t.crossing = crossing_of(nest->kernel, schedule);
    t.values = dlc_new_array(nest->arena, dlc_expr, t.crossing.loads.n + 1u);
    t.with = dlc_new_array(nest->arena, dlc_expr, nest->kernel->axes.n + 1u);
    if (!t.crossing.loads.n)
        return dlc_diag_fail(nest->diag, DLC_INTERNAL, nest->kernel->name,
                             "the schedule's loops do not fit a transpose by stage '%s'",
                             t.stage->name);
    for (uint32_t l = 0; l < n; l++)
        dlc_root_open(nest, l);
    declare(&t);
    over_tile(&t, t.in, t.out, load);
    share(&t);
    over_tile(&t, t.out, t.in, store);
    return DLC_OK;
}

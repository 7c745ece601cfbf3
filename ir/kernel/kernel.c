/*
 * Building kernels, and what is asked of them everywhere: types of sources, ranges, who loads whom;
 * simplify and compact. Compacting is a mark phase over stages, buffers, axes and symbols, then one
 * rebuild of the pool under the new numbers.
 */
#include "ir/kernel/kernel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const dlc_reduce_info dlc_reduces[DLC_REDUCE_COUNT] = {
#define DLC_REDUCE(id, text, naccs, commutes) [DLC_REDUCE_##id] = {text, naccs, commutes},
#include "ir/kernel/reduce.def"
#undef DLC_REDUCE
};

dlc_kernel *dlc_kernel_create(dlc_arena *arena, const char *name)
{
    dlc_kernel *kernel = dlc_new(arena, dlc_kernel);
    kernel->arena = arena;
    kernel->name = name ? dlc_arena_strdup(arena, name) : "";
    kernel->pool = dlc_pool_create(arena);
    return kernel;
}

uint32_t dlc_kernel_axis(dlc_kernel *kernel, const char *name, dlc_expr extent)
{
    dlc_axis axis = {dlc_arena_strdup(kernel->arena, name), extent};
    dlc_vec_push(kernel->arena, &kernel->axes, axis);
    return kernel->axes.n - 1;
}

uint32_t dlc_kernel_buffer(dlc_kernel *kernel, const char *name, const dlc_type *type,
                           const dlc_layout *layout, dlc_role role)
{
    dlc_buffer buffer = {
        .name = dlc_arena_strdup(kernel->arena, name), .type = *type, .role = (uint8_t)role};
    if (layout)
        buffer.layout = *layout;
    dlc_vec_push(kernel->arena, &kernel->buffers, buffer);
    return kernel->buffers.n - 1;
}

uint32_t dlc_kernel_symbol_add(dlc_kernel *kernel, const char *name, int64_t lo, int64_t hi,
                               dlc_expr outer)
{
    dlc_kernel_symbol symbol = {.name = dlc_arena_strdup(kernel->arena, name), .lo = lo, .hi = hi, .outer = outer};
    dlc_vec_push(kernel->arena, &kernel->symbols, symbol);
    return kernel->symbols.n - 1;
}

dlc_stage *dlc_kernel_stage(dlc_kernel *kernel, const char *name)
{
    dlc_stage stage = {.name = dlc_arena_strdup(kernel->arena, name), .buffer = DLC_NO_BUFFER};
    dlc_vec_push(kernel->arena, &kernel->stages, stage);
    return &kernel->stages.data[kernel->stages.n - 1];
}

dlc_type dlc_source_type(const dlc_kernel *kernel, dlc_source source, int second)
{
    if (!DLC_SOURCE_IS_STAGE(source))
        return kernel->buffers.data[source].type;
    const dlc_stage *stage = &kernel->stages.data[DLC_SOURCE_INDEX(source)];
    dlc_type type = {.dtype = stage->dtype[second != 0]};
    assert(stage->axes.n <= DLC_MAX_RANK);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        type.dims[type.rank++] = kernel->axes.data[stage->axes.data[i]].extent;
    return type;
}

int64_t *dlc_kernel_symbol_values(const dlc_kernel *kernel, int64_t wanted, dlc_arena *arena)
{
    int64_t *values = dlc_new_array(arena, int64_t, kernel->symbols.n + 1);
    for (uint32_t s = 0; s < kernel->symbols.n; s++) {
        const dlc_kernel_symbol *symbol = &kernel->symbols.data[s];
        values[s] = dlc_symbol_value(wanted, symbol->lo, symbol->hi);
    }
    return values;
}

int64_t *dlc_kernel_usual_values(const dlc_kernel *kernel, int64_t otherwise, dlc_arena *arena)
{
    int64_t *values = dlc_new_array(arena, int64_t, kernel->symbols.n + 1);
    for (uint32_t s = 0; s < kernel->symbols.n; s++) {
        const dlc_kernel_symbol *symbol = &kernel->symbols.data[s];
        values[s] = dlc_symbol_value(symbol->usual ? symbol->usual : otherwise, symbol->lo, symbol->hi);
    }
    return values;
}

dlc_ranges dlc_kernel_ranges(dlc_kernel *kernel)
{
    dlc_interval *symbols = dlc_new_array(kernel->arena, dlc_interval, kernel->symbols.n);
    dlc_interval *axes = dlc_new_array(kernel->arena, dlc_interval, kernel->axes.n);
    dlc_expr *extents = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    for (uint32_t i = 0; i < kernel->symbols.n; i++)
        symbols[i] = (dlc_interval){kernel->symbols.data[i].lo, kernel->symbols.data[i].hi};
    dlc_ranges ranges = {.symbols = symbols, .nsymbols = kernel->symbols.n};
    for (uint32_t i = 0; i < kernel->axes.n; i++) {
        extents[i] = kernel->axes.data[i].extent;
        int64_t most = dlc_expr_range(kernel->pool, extents[i], &ranges).hi;
        axes[i] = (dlc_interval){0, most > 0 ? most - 1 : 0};
    }
    ranges.axes = axes;
    ranges.extents = extents;
    ranges.naxes = kernel->axes.n;
    return ranges;
}

static uint32_t naccs(const dlc_stage *stage)
{
    return dlc_reduces[stage->combine].naccs;
}

typedef struct {
    const dlc_kernel *kernel;
    const dlc_ranges *ranges;
} checking;

/* What cannot be outside needs no check; what depends on data keeps it, whatever is made of it. */
static dlc_expr drop_check(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const checking *c = ctx;
    if (node->op != DLC_EXPR_LOAD || !(node->flags & DLC_LOAD_CHECKED))
        return 0;
    dlc_type type = dlc_source_type(c->kernel, node->imm.id, 0);
    for (uint32_t d = 0; d < type.rank; d++) {
        int64_t is_in = 0;
        dlc_expr in = dlc_expr_simplify(to, dlc_in_range(to, args[d], type.dims[d]), c->ranges);
        if (dlc_expr_has_load(to, args[d]) || !dlc_expr_is_int(to, in, &is_in) || !is_in)
            return 0;
    }
    return dlc_expr_load(to, (dlc_dtype)node->dtype, node->imm.id, args, type.rank, args[type.rank], args[type.rank + 1],
                         node->flags & (uint8_t)~DLC_LOAD_CHECKED);
}

static int has_checks(const dlc_pool *pool)
{
    for (dlc_expr id = 1; id < pool->nodes.n; id++)
        if (dlc_node_of(pool, id)->op == DLC_EXPR_LOAD && dlc_node_of(pool, id)->flags & DLC_LOAD_CHECKED)
            return 1;
    return 0;
}

void dlc_kernel_simplify(dlc_kernel *kernel)
{
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    dlc_arena *scratch = dlc_arena_create(0);
    checking c = {kernel, &ranges};
    int is_checked = has_checks(kernel->pool);
    ranges.known = dlc_known_create(scratch);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        dlc_stage *stage = &kernel->stages.data[s];
        for (uint32_t a = 0; a < naccs(stage); a++) {
            stage->value[a] = dlc_expr_simplify(kernel->pool, stage->value[a], &ranges);
            if (is_checked)
                stage->value[a] = dlc_expr_rewrite(kernel->pool, kernel->pool, stage->value[a], drop_check, &c);
        }
        for (uint32_t d = 0; d < stage->store.n; d++)
            stage->store.data[d] = dlc_expr_simplify(kernel->pool, stage->store.data[d], &ranges);
    }
    dlc_arena_destroy(scratch);
}

/* --- who loads whom --- */

/* marks (pool->nodes.n bytes, zeroed) of every node a stage's values and store indices are made of
 */
static void reach_stage(const dlc_kernel *kernel, const dlc_stage *stage, uint8_t *marks)
{
    for (uint32_t a = 0; a < naccs(stage); a++)
        dlc_expr_reach(kernel->pool, stage->value[a], marks);
    for (uint32_t d = 0; d < stage->store.n; d++)
        dlc_expr_reach(kernel->pool, stage->store.data[d], marks);
}

uint64_t *dlc_kernel_uses(const dlc_kernel *kernel, dlc_arena *scratch)
{
    uint32_t n = kernel->stages.n, words = (n + 63) / 64;
    uint64_t *uses = dlc_new_array(scratch, uint64_t, (size_t)n * words);
    uint8_t *marks = dlc_new_array(scratch, uint8_t, kernel->pool->nodes.n);
    for (uint32_t s = 0; s < n; s++) {
        memset(marks, 0, kernel->pool->nodes.n);
        reach_stage(kernel, &kernel->stages.data[s], marks);
        for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
            const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
            if (!marks[id] || node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
                continue;
            uint32_t used = DLC_SOURCE_INDEX(node->imm.id);
            uses[(size_t)s * words + used / 64] |= UINT64_C(1) << used % 64;
        }
    }
    return uses;
}

/* --- compact --- */

/* New numbers by old ones; DLC_GONE until something needs it. */
enum { DLC_GONE = 0xffffffffu, DLC_NEEDED = 0 };

typedef struct {
    uint32_t *stages, *buffers, *axes, *symbols;
} renumbering;

static uint32_t *all_gone(dlc_arena *scratch, uint32_t n)
{
    uint32_t *map = dlc_new_array(scratch, uint32_t, n);
    memset(map, 0xff, n * sizeof *map);
    return map;
}

/* Stages that are stored, and all they load; a recurrence may load a later stage, so to a fixed
 * point. */
static void mark_stages(const dlc_kernel *kernel, dlc_arena *scratch, uint32_t *stages)
{
    uint32_t n = kernel->stages.n, words = (n + 63) / 64;
    const uint64_t *uses = dlc_kernel_uses(kernel, scratch);
    dlc_ids pending = {0};
    for (uint32_t s = 0; s < n; s++)
        if (kernel->stages.data[s].buffer != DLC_NO_BUFFER) {
            stages[s] = DLC_NEEDED;
            dlc_vec_push(scratch, &pending, s);
        }
    while (pending.n) {
        const uint64_t *row = uses + (size_t)pending.data[--pending.n] * words;
        for (uint32_t s = 0; s < n; s++)
            if (stages[s] == DLC_GONE && row[s / 64] >> s % 64 & 1) {
                stages[s] = DLC_NEEDED;
                dlc_vec_push(scratch, &pending, s);
            }
    }
}

static void mark_nodes(const dlc_pool *pool, const uint8_t *marks, renumbering *to)
{
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id])
            continue;
        if (node->op == DLC_EXPR_AXIS)
            to->axes[node->imm.id] = DLC_NEEDED;
        else if (node->op == DLC_EXPR_SYM)
            to->symbols[node->imm.id] = DLC_NEEDED;
        else if (node->op == DLC_EXPR_LOAD && !DLC_SOURCE_IS_STAGE(node->imm.id))
            to->buffers[node->imm.id] = DLC_NEEDED;
    }
}

/* Axes first: their extents need symbols. */
static void mark_parts(const dlc_kernel *kernel, dlc_arena *scratch, renumbering *to)
{
    uint8_t *marks = dlc_new_array(scratch, uint8_t, kernel->pool->nodes.n);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (to->stages[s] == DLC_GONE)
            continue;
        reach_stage(kernel, stage, marks);
        for (uint32_t i = 0; i < stage->axes.n; i++)
            to->axes[stage->axes.data[i]] = DLC_NEEDED;
        for (uint32_t i = 0; i < stage->reduce.n; i++)
            to->axes[stage->reduce.data[i]] = DLC_NEEDED;
    }
    mark_nodes(kernel->pool, marks, to);
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT)
            to->buffers[b] = DLC_NEEDED;
    for (uint32_t a = 0; a < kernel->axes.n; a++)
        if (to->axes[a] != DLC_GONE)
            dlc_expr_reach(kernel->pool, kernel->axes.data[a].extent, marks);
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        for (uint32_t d = 0; to->buffers[b] != DLC_GONE && d < kernel->buffers.data[b].type.rank;
             d++)
            dlc_expr_reach(kernel->pool, kernel->buffers.data[b].type.dims[d], marks);
    mark_nodes(kernel->pool, marks, to);
}

static void number(uint32_t *map, uint32_t n)
{
    for (uint32_t i = 0, next = 0; i < n; i++)
        if (map[i] != DLC_GONE)
            map[i] = next++;
}

typedef struct {
    dlc_kernel *kernel;
    dlc_mover *mover; /* to the new pool */
    renumbering to;
} compaction;

static dlc_expr moved(compaction *c, dlc_expr expr)
{
    return dlc_expr_move(c->mover, expr);
}

static void move_stage(compaction *c, dlc_stage *stage)
{
    for (uint32_t a = 0; a < naccs(stage); a++)
        stage->value[a] = moved(c, stage->value[a]);
    for (uint32_t d = 0; d < stage->store.n; d++)
        stage->store.data[d] = moved(c, stage->store.data[d]);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        stage->axes.data[i] = c->to.axes[stage->axes.data[i]];
    for (uint32_t i = 0; i < stage->reduce.n; i++)
        stage->reduce.data[i] = c->to.axes[stage->reduce.data[i]];
    if (stage->buffer != DLC_NO_BUFFER)
        stage->buffer = c->to.buffers[stage->buffer];
}

static void move_all(compaction *c)
{
    dlc_kernel *kernel = c->kernel;
    uint32_t n = 0;
    for (uint32_t i = 0; i < kernel->symbols.n; i++)
        if (c->to.symbols[i] != DLC_GONE)
            kernel->symbols.data[n++] = kernel->symbols.data[i];
    kernel->symbols.n = n;
    n = 0;
    for (uint32_t i = 0; i < kernel->axes.n; i++)
        if (c->to.axes[i] != DLC_GONE) {
            kernel->axes.data[n] = kernel->axes.data[i];
            kernel->axes.data[n].extent = moved(c, kernel->axes.data[n].extent);
            n++;
        }
    kernel->axes.n = n;
    n = 0;
    for (uint32_t i = 0; i < kernel->buffers.n; i++)
        if (c->to.buffers[i] != DLC_GONE) {
            dlc_buffer *buffer = &kernel->buffers.data[n++];
            *buffer = kernel->buffers.data[i];
            for (uint32_t d = 0; d < buffer->type.rank; d++)
                buffer->type.dims[d] = moved(c, buffer->type.dims[d]);
        }
    kernel->buffers.n = n;
    n = 0;
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        if (c->to.stages[i] != DLC_GONE) {
            kernel->stages.data[n] = kernel->stages.data[i];
            move_stage(c, &kernel->stages.data[n++]);
        }
    kernel->stages.n = n;
}

static void list_left(dlc_arena *arena, const uint32_t *map, uint32_t n, dlc_ids *left)
{
    for (uint32_t i = 0; i < n; i++)
        if (map[i] != DLC_GONE)
            dlc_vec_push(arena, left, i);
}

void dlc_kernel_compact(dlc_kernel *kernel)
{
    (void)dlc_kernel_compact_left(kernel);
}

dlc_kernel_left dlc_kernel_compact_left(dlc_kernel *kernel)
{
    dlc_kernel_left left = {0};
    dlc_arena *scratch = dlc_arena_create(0);
    compaction c = {.kernel = kernel};
    dlc_pool *pool = dlc_pool_create(kernel->arena);
    c.to.stages = all_gone(scratch, kernel->stages.n);
    c.to.buffers = all_gone(scratch, kernel->buffers.n);
    c.to.axes = all_gone(scratch, kernel->axes.n);
    c.to.symbols = all_gone(scratch, kernel->symbols.n);
    mark_stages(kernel, scratch, c.to.stages);
    mark_parts(kernel, scratch, &c.to);
    number(c.to.stages, kernel->stages.n);
    number(c.to.buffers, kernel->buffers.n);
    number(c.to.axes, kernel->axes.n);
    number(c.to.symbols, kernel->symbols.n);
    list_left(kernel->arena, c.to.buffers, kernel->buffers.n, &left.buffers);
    list_left(kernel->arena, c.to.symbols, kernel->symbols.n, &left.symbols);
    c.mover = dlc_mover_create(scratch, pool, kernel->pool, &(dlc_numbers){c.to.axes, c.to.symbols, c.to.buffers, c.to.stages});
    move_all(&c);
    kernel->pool = pool;
    dlc_arena_destroy(scratch);
    return left;
}

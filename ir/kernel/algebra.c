/* Walking and rewriting the expressions of a kernel, and copying it. */
#include "ir/kernel/algebra.h"

#include <string.h>

dlc_expr *dlc_stage_root(dlc_stage *stage, uint32_t i)
{
    uint32_t nvalues = dlc_reduces[stage->combine].naccs;
    if (i < nvalues)
        return &stage->value[i];
    return i - nvalues < stage->store.n ? &stage->store.data[i - nvalues] : NULL;
}

int dlc_is_updated(const dlc_kernel *kernel, uint32_t buffer)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].buffer == buffer && kernel->stages.data[s].update != DLC_UPDATE_NONE)
            return 1;
    return 0;
}

int dlc_scatters_rows(const dlc_kernel *kernel, const dlc_stage *stage, uint32_t axis)
{
    if (stage->update == DLC_UPDATE_NONE || stage->reduce.n || !stage->axes.n || stage->axes.data[stage->axes.n - 1] != axis)
        return 0;
    const dlc_buffer *buffer = &kernel->buffers.data[stage->buffer];
    uint32_t last = buffer->type.rank - 1u;
    if (!buffer->type.rank || buffer->layout.nparts || dlc_bare_axis(kernel->pool, stage->store.data[last]) != axis ||
        kernel->axes.data[axis].extent != buffer->type.dims[last])
        return 0;
    for (uint32_t d = 0; d < last; d++)
        if (dlc_expr_uses_axis(kernel->pool, stage->store.data[d], axis))
            return 0;
    return 1;
}

uint8_t *dlc_stage_marks(const dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *arena)
{
    uint8_t *marks = dlc_new_array(arena, uint8_t, kernel->pool->nodes.n);
    dlc_stage copy = *stage;
    const dlc_expr *root;
    for (uint32_t i = 0; (root = dlc_stage_root(&copy, i)); i++)
        dlc_expr_reach(kernel->pool, *root, marks);
    return marks;
}

uint8_t *dlc_kernel_marks(const dlc_kernel *kernel, dlc_arena *arena)
{
    uint8_t *marks = dlc_new_array(arena, uint8_t, kernel->pool->nodes.n);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        dlc_stage copy = kernel->stages.data[s];
        const dlc_expr *root;
        for (uint32_t i = 0; (root = dlc_stage_root(&copy, i)); i++)
            dlc_expr_reach(kernel->pool, *root, marks);
    }
    return marks;
}

uint64_t *dlc_kernel_axes_of(const dlc_kernel *kernel, const uint8_t *marks, dlc_arena *arena, uint32_t *words)
{
    const dlc_pool *pool = kernel->pool;
    uint32_t n = kernel->axes.n / 64 + 1;
    uint64_t *axes = dlc_arena_array(arena, (size_t)pool->nodes.n * n, sizeof *axes, sizeof *axes);
    *words = n;
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        uint64_t *own = axes + (size_t)id * n;
        if (!marks[id])
            continue;
        if (node->op == DLC_EXPR_AXIS)
            own[node->imm.id / 64] |= 1ull << node->imm.id % 64;
        for (uint32_t i = 0; i < node->nargs; i++)
            for (uint32_t w = 0; w < n; w++)
                own[w] |= axes[(size_t)dlc_arg(pool, id, i) * n + w];
    }
    return axes;
}

int dlc_ids_find(const dlc_ids *ids, uint32_t id, uint32_t *position)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        if (ids->data[i] != id)
            continue;
        if (position)
            *position = i;
        return 1;
    }
    return 0;
}

void dlc_ids_remove(dlc_ids *ids, uint32_t position)
{
    for (uint32_t i = position; i + 1 < ids->n; i++)
        ids->data[i] = ids->data[i + 1];
    ids->n--;
}

uint32_t dlc_bare_axis(const dlc_pool *pool, dlc_expr expr)
{
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    return node->op == DLC_EXPR_AXIS ? node->imm.id : DLC_NO_AXIS;
}

int dlc_reads_in_place(const dlc_kernel *kernel, dlc_expr load)
{
    const dlc_pool *pool = kernel->pool;
    const dlc_ids *axes = &kernel->stages.data[DLC_SOURCE_INDEX(dlc_node_of(pool, load)->imm.id)].axes;
    if (dlc_load_guard(pool, load) || dlc_load_rank(pool, load) != axes->n)
        return 0;
    for (uint32_t d = 0; d < axes->n; d++)
        if (dlc_bare_axis(pool, dlc_arg(pool, load, d)) != axes->data[d])
            return 0;
    return 1;
}

int dlc_const_extent(const dlc_kernel *kernel, uint32_t axis, int64_t *extent)
{
    return dlc_expr_is_int(kernel->pool, kernel->axes.data[axis].extent, extent);
}

static dlc_expr reindex_visit(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const dlc_reindex *reindex = ctx;
    if (node->op == DLC_EXPR_AXIS)
        return reindex->axes ? reindex->axes[node->imm.id] : 0;
    if (node->op != DLC_EXPR_LOAD || !reindex->index)
        return 0;
    dlc_expr index[DLC_MAX_INDEX];
    dlc_dtype dtype = node->dtype;
    dlc_source source = node->imm.id;
    uint8_t flags = node->flags;
    uint32_t rank = node->nargs - 2u;
    dlc_expr guard = args[rank], otherwise = args[rank + 1];
    uint32_t n = reindex->index(reindex->user, source, args, rank, index);
    return dlc_expr_load(to, dtype, source, index, n, guard, otherwise, flags);
}

static void reindex_store(dlc_kernel *kernel, dlc_stage *stage, const dlc_reindex *reindex)
{
    dlc_expr index[DLC_MAX_INDEX];
    if (stage->buffer == DLC_NO_BUFFER || !reindex->index)
        return;
    uint32_t n = reindex->index(reindex->user, stage->buffer, stage->store.data, stage->store.n, index);
    stage->store.n = 0;
    for (uint32_t i = 0; i < n; i++)
        dlc_vec_push(kernel->arena, &stage->store, index[i]);
}

void dlc_stage_reindex(dlc_kernel *kernel, dlc_stage *stage, const dlc_reindex *reindex)
{
    dlc_expr *root;
    for (uint32_t i = 0; (root = dlc_stage_root(stage, i)); i++)
        *root = dlc_expr_rewrite(kernel->pool, kernel->pool, *root, reindex_visit, (void *)reindex);
    reindex_store(kernel, stage, reindex);
}

void dlc_kernel_reindex(dlc_kernel *kernel, const dlc_reindex *reindex)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        dlc_stage_reindex(kernel, &kernel->stages.data[s], reindex);
}

static void clone_pool(dlc_kernel *copy, const dlc_pool *from)
{
    dlc_arena *arena = copy->arena;
    dlc_pool *pool = dlc_arena_copy(arena, from, sizeof *from);
    pool->arena = arena;
    pool->nodes.data = dlc_arena_copy(arena, from->nodes.data, from->nodes.n * sizeof *from->nodes.data);
    pool->nodes.cap = pool->nodes.n;
    pool->args.data = dlc_arena_copy(arena, from->args.data, from->args.n * sizeof *from->args.data);
    pool->args.cap = pool->args.n;
    pool->facts.data = dlc_arena_copy(arena, from->facts.data, from->facts.n * sizeof *from->facts.data);
    pool->facts.cap = pool->facts.n;
    pool->table = dlc_arena_copy(arena, from->table, from->table_size * sizeof *from->table);
    memset(&pool->work, 0, sizeof pool->work);
    copy->pool = pool;
}

static void clone_ids(dlc_arena *arena, dlc_ids *ids)
{
    ids->data = dlc_arena_copy(arena, ids->data, ids->n * sizeof *ids->data);
    ids->cap = ids->n;
}

dlc_kernel *dlc_kernel_clone(const dlc_kernel *kernel, dlc_arena *arena)
{
    dlc_kernel *copy = dlc_arena_copy(arena, kernel, sizeof *kernel);
    copy->arena = arena;
    clone_pool(copy, kernel->pool);
    copy->stages.data = dlc_arena_copy(arena, kernel->stages.data, kernel->stages.n * sizeof *kernel->stages.data);
    copy->stages.cap = copy->stages.n;
    copy->buffers.data = dlc_arena_copy(arena, kernel->buffers.data, kernel->buffers.n * sizeof *kernel->buffers.data);
    copy->buffers.cap = copy->buffers.n;
    copy->axes.data = dlc_arena_copy(arena, kernel->axes.data, kernel->axes.n * sizeof *kernel->axes.data);
    copy->axes.cap = copy->axes.n;
    copy->symbols.data = dlc_arena_copy(arena, kernel->symbols.data, kernel->symbols.n * sizeof *kernel->symbols.data);
    copy->symbols.cap = copy->symbols.n;
    for (uint32_t s = 0; s < copy->stages.n; s++) {
        clone_ids(arena, &copy->stages.data[s].axes);
        clone_ids(arena, &copy->stages.data[s].reduce);
        clone_ids(arena, &copy->stages.data[s].store);
    }
    return copy;
}

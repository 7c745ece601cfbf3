/* What rewrites share: buffers and stages put into kernels, and kernels that are parts of what replaces one. */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

uint32_t dlc_rewrite_insert(dlc_kernel *kernel, dlc_buffer buffer)
{
    uint32_t at = kernel->buffers.n;
    dlc_vec_push(kernel->arena, &kernel->buffers, buffer);
    for (; at && kernel->buffers.data[at - 1].role == DLC_ROLE_OUT; at--)
        kernel->buffers.data[at] = kernel->buffers.data[at - 1];
    kernel->buffers.data[at] = buffer;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].buffer != DLC_NO_BUFFER && kernel->stages.data[s].buffer >= at)
            kernel->stages.data[s].buffer++;
    return at;
}

/* Stages from `*ctx` on have numbers that are higher by one. */
static dlc_expr moved_stage(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    uint32_t rank = node->nargs - 2u;
    if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id) || DLC_SOURCE_INDEX(node->imm.id) < *(const uint32_t *)ctx)
        return 0;
    return dlc_expr_load(to, (dlc_dtype)node->dtype, DLC_STAGE_SOURCE(DLC_SOURCE_INDEX(node->imm.id) + 1), args, rank, args[rank],
                         args[rank + 1], node->flags);
}

dlc_stage *dlc_rewrite_insert_stage(dlc_kernel *kernel, uint32_t at)
{
    dlc_expr *root;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; (root = dlc_stage_root(&kernel->stages.data[s], i)); i++)
            *root = dlc_expr_rewrite(kernel->pool, kernel->pool, *root, moved_stage, &at);
    dlc_stage stage = {.buffer = DLC_NO_BUFFER};
    dlc_vec_push(kernel->arena, &kernel->stages, stage);
    for (uint32_t s = kernel->stages.n - 1; s > at; s--)
        kernel->stages.data[s] = kernel->stages.data[s - 1];
    kernel->stages.data[at] = stage;
    return &kernel->stages.data[at];
}

void dlc_rewrite_add_part(dlc_kernel *kernel, uint32_t made, uint32_t nmade, dlc_rewritten *out)
{
    dlc_rewrite_part part = {.kernel = kernel};
    dlc_kernel_simplify(kernel);
    dlc_kernel_left left = dlc_kernel_compact_left(kernel);
    for (uint32_t b = 0; b < left.buffers.n; b++) {
        uint32_t from = left.buffers.data[b];
        uint32_t was = from < made ? from : from < made + nmade ? DLC_REWRITE_MADE | (from - made) : from - nmade;
        dlc_vec_push(kernel->arena, &part.buffers, was);
    }
    part.symbols = left.symbols;
    dlc_vec_push(kernel->arena, &out->parts, part);
}

void dlc_rewrite_add_table(const dlc_rewriting *in, dlc_kernel *kernel, dlc_expr value, const char *kind, dlc_rewritten *out)
{
    uint32_t number = out->made.n;
    dlc_buffer table = {.name = dlc_arena_printf(kernel->arena, "%s.%s%u", in->kernel->name, kind, number), .role = DLC_ROLE_OUT};
    dlc_stage *stage = dlc_kernel_stage(kernel, "table");
    table.type = (dlc_type){.dtype = dlc_node_of(kernel->pool, value)->dtype, .rank = 1, .dims = {kernel->axes.data[0].extent}};
    dlc_vec_push(kernel->arena, &kernel->buffers, table);
    stage->dtype[0] = (dlc_dtype)table.type.dtype;
    stage->value[0] = value;
    stage->buffer = 0;
    dlc_vec_push(kernel->arena, &stage->axes, 0);
    dlc_vec_push(kernel->arena, &stage->store, dlc_expr_axis(kernel->pool, 0));
    dlc_vec_push(in->arena, &out->made, table.name);
    dlc_rewrite_add_part(kernel, 0, 1, out);
    out->parts.data[number].buffers.data[0] = DLC_REWRITE_MADE | number;
}

uint32_t dlc_rewrite_insert_tables(dlc_kernel *kernel, const dlc_rewritten *tables)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < tables->parts.n; i++) {
        const dlc_kernel *maker = tables->parts.data[i].kernel;
        dlc_buffer table = maker->buffers.data[0];
        table.role = DLC_ROLE_CONST;
        table.type.dims[0] = dlc_expr_i64(kernel->pool, dlc_expr_value(maker->pool, table.type.dims[0]));
        uint32_t at = dlc_rewrite_insert(kernel, table);
        first = i ? first : at;
    }
    return first;
}

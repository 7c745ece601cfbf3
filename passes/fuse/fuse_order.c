/*
 * Groups in the order they run: Kahn's algorithm; among groups that are ready the one whose last node comes first in the graph, so that
 * steps follow the model's order: a binary heap by that node.
 */
#include "passes/fuse/fuse_engine.h"

#include <string.h>

typedef struct {
    uint32_t *heap, n;
    const dlc_fusion *f;
} ready_heap;

static uint32_t rank_of(const ready_heap *h, uint32_t i)
{
    const dlc_ids *nodes = &h->f->groups[h->heap[i]].nodes;
    return nodes->data[nodes->n - 1];
}

static void swap_heap(ready_heap *h, uint32_t i, uint32_t j)
{
    uint32_t group = h->heap[i];
    h->heap[i] = h->heap[j];
    h->heap[j] = group;
}

static void push_ready(ready_heap *h, uint32_t group)
{
    uint32_t i = h->n++;
    h->heap[i] = group;
    for (; i && rank_of(h, i) < rank_of(h, (i - 1) / 2); i = (i - 1) / 2)
        swap_heap(h, i, (i - 1) / 2);
}

static uint32_t pop_ready(ready_heap *h)
{
    uint32_t top = h->heap[0], i = 0;
    h->heap[0] = h->heap[--h->n];
    while (2 * i + 1 < h->n) {
        uint32_t least = 2 * i + 1;
        if (least + 1 < h->n && rank_of(h, least + 1) < rank_of(h, least))
            least++;
        if (rank_of(h, i) <= rank_of(h, least))
            break;
        swap_heap(h, i, least);
        i = least;
    }
    return top;
}

static void count_waits(const dlc_fusion *f, uint32_t *waits)
{
    for (uint32_t e = 0; e < f->first_edge[f->nnodes]; e++)
        if (f->group[f->edges[e].from] != f->group[f->edges[e].to])
            waits[f->group[f->edges[e].to]]++;
}

static void release_readers(const dlc_fusion *f, uint32_t g, uint32_t *waits, ready_heap *h)
{
    for (uint32_t m = 0; m < f->groups[g].nodes.n; m++) {
        const dlc_ids *out = &f->out_edges[f->groups[g].nodes.data[m]];
        for (uint32_t i = 0; i < out->n; i++) {
            uint32_t reader_group = f->group[f->edges[out->data[i]].to];
            if (reader_group != g && --waits[reader_group] == 0)
                push_ready(h, reader_group);
        }
    }
}

static uint32_t add_group(dlc_groups *groups, dlc_arena *arena, const dlc_fusion *f, uint32_t g)
{
    uint32_t index = groups->ngroups++, n = f->groups[g].nodes.n;
    groups->members[index].data = dlc_new_array(arena, dlc_node *, n);
    groups->members[index].cap = n;
    for (uint32_t m = 0; m < f->groups[g].nodes.n; m++) {
        dlc_node *node = f->nodes[f->groups[g].nodes.data[m]];
        dlc_vec_push(arena, &groups->members[index], node);
        groups->of_node[node->id] = index;
    }
    return index;
}

dlc_status dlc_fuse_order(dlc_pass_ctx *ctx, const dlc_fusion *f)
{
    dlc_arena *arena = ctx->graph->arena;
    dlc_groups *groups = ctx->groups = dlc_new(arena, dlc_groups);
    uint32_t *waits = dlc_new_array(f->arena, uint32_t, f->nnodes + 1), ngroups = 0;
    ready_heap heap = {dlc_new_array(f->arena, uint32_t, f->nnodes + 1), 0, f};
    groups->of_node = dlc_new_array(arena, uint32_t, ctx->graph->nnodes + 1);
    memset(groups->of_node, 0xff, (ctx->graph->nnodes + 1) * sizeof *groups->of_node);
    count_waits(f, waits);
    for (uint32_t g = 0; g < f->nnodes; g++) {
        ngroups += f->groups[g].nodes.n > 0;
        if (f->groups[g].nodes.n && !waits[g])
            push_ready(&heap, g);
    }
    groups->members = dlc_arena_array(arena, ngroups + 1, sizeof *groups->members, _Alignof(void *));
    groups->order = dlc_new_array(arena, uint32_t, ngroups + 1);
    while (heap.n) {
        uint32_t g = pop_ready(&heap), index = add_group(groups, arena, f, g);
        groups->order[index] = index;
        release_readers(f, g, waits, &heap);
    }
    if (groups->ngroups != ngroups)
        return dlc_diag_fail(ctx->diag, DLC_INTERNAL, ctx->graph->file, "fusion made a cycle of groups");
    return DLC_OK;
}

/* The fusion engine between its files: fuse_graph.c (nodes, edges), fuse.c (groups, legality), fuse_order.c (groups in order),
 * fuse_prepare.c (the graph before), fuse_strategy.c (who asks). */
#ifndef DLC_PASSES_FUSE_FUSE_ENGINE_H
#define DLC_PASSES_FUSE_FUSE_ENGINE_H

#include "dlc/fusion.h"
#include "passes/fuse/fuse.h"

/* A use of one node's value by another, and what became of it. */
typedef struct {
    uint32_t from, to; /* handles */
    dlc_value *value;
    uint8_t is_size;   /* no data: `to` needs a dimension that `from` computes */
    uint8_t reason;    /* dlc_reason of the last refusal; NOT_CHOSEN before any */
    const char *text;
} dlc_fusion_edge;

/* What is kept of a node's form (ir/graph/form.h). A view belongs to its reader; a concat, which chooses between loads, is none. */
typedef struct {
    uint8_t is_pointwise, is_view, is_contraction, has_update;
} dlc_fusion_form;

typedef struct {
    dlc_ids nodes;            /* handles, ascending: graph order; empty: merged into another */
    uint32_t first_level, last_level; /* longest paths from the graph's start to its nodes */
    uint8_t is_opaque, is_flat, has_update;
    uint32_t tried_work;              /* of trials: expressions that were lowered */
    const dlc_estimate *estimate;     /* NULL: not known yet */
} dlc_fusion_group;

/* What the engine found about a merge. */
typedef struct {
    dlc_reason reason;
    uint8_t is_legal;   /* whatever it costs */
    const char *detail; /* numbers, or NULL */
    dlc_estimate before, after;
} dlc_fusion_verdict;

struct dlc_fusion {
    const dlc_fusion_api *api; /* what strategies see of it */
    /* Makes one group of those that the nodes are in, if that is legal as a whole, as plans ask for it; must_pay: and if no cost speaks
     * against it, for a few groups. */
    int (*merge_set)(dlc_fusion *f, const dlc_ids *nodes, int must_pay);
    dlc_graph *graph;
    const dlc_target *target;
    dlc_diag *diag;
    dlc_arena *arena;         /* as long as the fusion */
    dlc_arena *trial;         /* of one trial */
    dlc_status status;        /* of the first node that has no meaning for us */
    const int64_t *sizes;     /* that symbols are taken to have */
    dlc_node **nodes;         /* by handle */
    uint32_t *handle_of;      /* by node id; DLC_FUSION_NONE */
    dlc_fusion_form *forms;   /* by handle */
    uint32_t nnodes;
    uint32_t *level;          /* by handle */
    uint32_t *ends, nlevels;  /* of groups, by their first level: a tree of the greatest last levels (fuse.c) */
    uint32_t *group;          /* by handle */
    dlc_fusion_group *groups; /* by the handle of the first node */
    dlc_fusion_edge *edges;   /* by consumer: first_edge[to] … first_edge[to + 1] */
    uint32_t *first_edge;
    dlc_ids *out_edges;       /* by producer */
    uint32_t *seen;           /* by group, for searches */
    uint32_t search;
    uint32_t work;            /* of the set lowered last: its expressions */
    dlc_fusion_verdict tried; /* the last, of groups tried_p and tried_c as they are; DLC_FUSION_NONE: none */
    uint32_t tried_p, tried_c;
};

/* Nodes, edges and groups of one node each. */
void dlc_fuse_read_graph(dlc_fusion *f);
static inline uint32_t dlc_fuse_handle(const dlc_fusion *f, const dlc_node *node)
{
    return node ? f->handle_of[node->id] : DLC_FUSION_NONE;
}
/* Before any group: outputs that need a copy, the reciprocal licence, padded copies, one view per reader. Counts changes. */
DLC_NODISCARD dlc_status dlc_fuse_prepare(dlc_pass_ctx *ctx);
/* A cheap map, or the last of a few, that widens one value (fuse_unpack.c); whether a reader would rather have the narrow one. */
int dlc_fuse_is_unpacking(dlc_graph *graph, dlc_node *node, dlc_arena *arena);
int dlc_fuse_takes_unpacking(dlc_graph *graph, const dlc_value *wide, dlc_node *reader, dlc_arena *arena);
/* A node of the group sums products. */
int dlc_fuse_has_contraction(const dlc_fusion *f, uint32_t group);
/* Unpackings join their readers where that pays. */
void dlc_fuse_place_unpackings(dlc_fusion *f);
/* The pass's result: what was merged, in the order it runs. */
DLC_NODISCARD dlc_status dlc_fuse_order(dlc_pass_ctx *ctx, const dlc_fusion *f);
/* The first of the node's outputs that is there: its name is the node's. */
static inline const dlc_value *dlc_fuse_result(const dlc_node *node)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o])
            return node->outputs[o];
    return NULL;
}
/* The strategy called `name`: a row of fusion.def, a .so or a .json plan. Runs it. */
DLC_NODISCARD dlc_status dlc_fusion_run(dlc_fusion *fusion, const char *name);
/* A shared library's. DLC_USAGE names it when it crashes, exits, takes too long or gives up. */
DLC_NODISCARD dlc_status dlc_fusion_run_plugin(dlc_fusion *fusion, const char *path);

#define DLC_FUSION(name, help) int dlc_fusion_run_##name(const dlc_fusion_api *api, dlc_fusion *fusion);
#include "passes/fuse/fusion.def"
#undef DLC_FUSION

#endif

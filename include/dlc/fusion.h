/*
 * Fusion strategies as plug-ins. A strategy decides which nodes of a graph run as one kernel; the compiler's engine decides
 * what is legal, so nothing a strategy does can produce a wrong program. A plug-in is a shared library that exports
 *
 *     const dlc_fusion_strategy *dlc_fusion_strategy_get(void);
 *
 * and is used as `dlc compile model.onnx --fusion ./mine.so`. It links against nothing of dlc: all it may call comes in the
 * table it is handed. Built-in strategies are written against the same table. docs/fusion-strategy.md has an example.
 *
 * Nodes are numbered from 0 in topological order (a node's producers have lower numbers). At the start every node is a
 * group of its own, except views (reshape, transpose, slice, …), which already belong to a neighbour. A number that is no
 * node's has the name "", no producers and no readers, and merges with nothing.
 */
#ifndef DLC_FUSION_H
#define DLC_FUSION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLC_FUSION_VERSION 1
#define DLC_FUSION_NONE UINT32_MAX /* no node: a graph input or constant */

typedef struct dlc_fusion dlc_fusion; /* the engine's state of one graph */

/* What merging two groups would mean. Estimates count bytes and time of the kernels concerned, before and after. */
typedef struct {
    int legal;          /* merge would do it */
    int pays;           /* and no cost code speaks against it */
    const char *reason; /* "fused", or the code: "cycle", "scratch", "lost dot", … (see `dlc explain`) */
    const char *text;   /* its sentence, with numbers */
    double bytes_before, bytes_after;
    double time_before_us, time_after_us;
} dlc_fusion_trial;

typedef struct {
    uint32_t version; /* DLC_FUSION_VERSION of the compiler; functions are only added at the end */

    /* The graph. Names and operators are as in `dlc opt`'s text form. */
    uint32_t (*node_count)(const dlc_fusion *fusion);
    const char *(*node_name)(const dlc_fusion *fusion, uint32_t node);
    const char *(*node_op)(const dlc_fusion *fusion, uint32_t node);
    uint32_t (*producer_count)(const dlc_fusion *fusion, uint32_t node);
    uint32_t (*producer)(const dlc_fusion *fusion, uint32_t node, uint32_t i); /* DLC_FUSION_NONE: no node */
    uint32_t (*reader_count)(const dlc_fusion *fusion, uint32_t node);
    uint32_t (*reader)(const dlc_fusion *fusion, uint32_t node, uint32_t i);
    int (*is_map)(const dlc_fusion *fusion, uint32_t node); /* element i of the result needs element i of the inputs only */

    /* Groups. */
    uint32_t (*group_of)(const dlc_fusion *fusion, uint32_t node); /* equal for nodes of one group */
    uint32_t (*group_size)(const dlc_fusion *fusion, uint32_t node);

    /* What merging the groups of `producer` and `consumer` would mean. The trial's texts live as long as the fusion. */
    void (*try_merge)(dlc_fusion *fusion, uint32_t producer, uint32_t consumer, dlc_fusion_trial *trial);
    /* Merges them if that is legal, even if it does not pay; returns whether they are one group now. */
    int (*merge)(dlc_fusion *fusion, uint32_t producer, uint32_t consumer);
} dlc_fusion_api;

typedef struct {
    uint32_t version; /* DLC_FUSION_VERSION the plug-in was built with */
    const char *name; /* shown in messages */
    /* Makes the merges it wants, in the order it wants. 0: done; anything else: the compilation ends with that number. */
    int (*run)(const dlc_fusion_api *api, dlc_fusion *fusion);
} dlc_fusion_strategy;

/* What a plug-in defines. */
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
const dlc_fusion_strategy *dlc_fusion_strategy_get(void);

#ifdef __cplusplus
}
#endif

#endif

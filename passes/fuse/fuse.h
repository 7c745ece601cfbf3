/*
 * Fusion groups, and the one engine that owns legality. A strategy (include/dlc/fusion.h) only says which legal merges to
 * make and in which order; whatever it does, the program stays right.
 */
#ifndef DLC_PASSES_FUSE_FUSE_H
#define DLC_PASSES_FUSE_FUSE_H

#include "passes/pass.h"

typedef enum dlc_reason {
#define DLC_REASON(id, text, cost, sentence) DLC_REASON_##id,
#include "passes/fuse/reason.def"
#undef DLC_REASON
    DLC_REASON_COUNT
} dlc_reason;

/* Groups partition the graph's nodes; constants and symbols belong to none (UINT32_MAX). Lowered in topological order. */
struct dlc_groups {
    uint32_t *of_node;  /* by node id */
    uint32_t ngroups;
    dlc_vec(dlc_node *) *members; /* per group, in graph order */
    uint32_t *order;    /* groups in topological order */
};

/*
 * The kernel of a set of nodes: stages collected in graph order, views and cheap maps inlined, temporaries left as stages,
 * outer results stored (kernel-ir.md section 2, steps 1 to 4). values: the graph value of each buffer. The engine calls it
 * to try a merge, `lower` to make the final kernel; both get the same answer.
 */
typedef struct {
    dlc_kernel *kernel;
    dlc_vec(dlc_value *) values;
} dlc_group_kernel;
DLC_NODISCARD dlc_status dlc_group_lower(dlc_graph *graph, dlc_node *const *nodes, uint32_t nnodes, dlc_arena *arena,
                                         dlc_group_kernel *result);
/*
 * Chooses a schedule, or says (as a dlc_reason, with numbers in *detail, which may be NULL) why the target should not run this
 * kernel as one. *result is NULL only when no right code is possible; a kernel that is merely too large has a schedule.
 */
dlc_reason dlc_choose(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena, dlc_schedule **result,
                      const char **detail);

/* What a kernel costs under its schedule, from the expressions alone; symbols count as the sizes choices assume. */
typedef struct {
    double bytes;         /* moved: buffers' elements that are touched, once */
    double moving_us;     /* what that takes, from and to where they are likely to lie */
    double far_us;        /* of moving_us: in memory, which threads share */
    double dealt_us;      /* of moving_us: for what each thread moves a part of */
    double crossed_us;    /* for what all threads read, were all of it in another thread's cache */
    double across_us;     /* the same for what each has a part of, but not as it lies in memory */
    double near_us;       /* what moving_us and far_us are longer by because one L2 does not hold what those of several threads might */
    double near_far_us;   /* of far_us */
    double evicted_us;    /* for scratch of all units that other bytes push out of L2 */
    double held;          /* of what a kernel moves, so much one L2 holds */
    double strewn_us;     /* of moving_us: in an order that no prefetcher follows */
    double early_us;      /* of far_us: for weights that all come in the time of */
    double early_share;   /* so much of `cycles` */
    double flops;
    double cycles;        /* of one core, without waiting for memory */
    double kept_cycles;   /* of `cycles`: what units that follow one another begin with alike */
    double waiting_us;    /* for slices that a GPU's blocks load, one after the other */
    double time_us;       /* computing and moving, as far as they overlap, plus the step's overhead */
    double shared_us;     /* what eight threads take beyond that, together: each computes what its units begin with alike */
    double units;         /* of parallel work */
    double scratch_bytes;
    double again_cycles;  /* of `cycles`: operands of contractions that are read again for each block of rows */
    double again_blindly; /* of them: from beyond L2, for a number of rows that is not known: few rows would not hide it */
    uint32_t ndots;       /* contractions that run as register tiles */
    uint32_t is_early_for_each; /* each thread has a share of `cycles` in which they come, and not all together */
    uint32_t nmixed;      /* of them: with loops of other stages beside theirs */
} dlc_estimate;
void dlc_estimate_kernel(const dlc_schedule *schedule, dlc_arena *scratch, dlc_estimate *result);
/* Its time where a run has so many threads; an estimate has those of the machine's `workers`. */
double dlc_estimate_time_us(const dlc_estimate *estimate, const dlc_schedule *schedule, double threads);
/* What computing and moving take together, of which the longer hides most of the shorter. */
double dlc_estimate_hidden(double computing_us, double moving_us);
/* Bytes that are still near when the next kernel reads them: what of the largest cache stays this program's. */
double dlc_estimate_kept_bytes(const dlc_target *target);
/* Fewest units worth a thread of their own, by the estimate; of a GPU, which has all its threads anyway, 1. */
void dlc_estimate_grain(dlc_schedule *schedule, dlc_arena *scratch);

/* The sentence of a reason, and its name. */
const char *dlc_reason_text(dlc_reason reason);
const char *dlc_reason_sentence(dlc_reason reason);
int dlc_reason_is_cost(dlc_reason reason);

#endif

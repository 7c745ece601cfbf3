/*
 * The pass manager. A pass is a row of passes.def and one file; its contract (needs, breaks) is data that pipeline.c
 * enforces. Passes keep no globals, print nothing, read no environment.
 */
#ifndef DLC_PASSES_PASS_H
#define DLC_PASSES_PASS_H

#include "ir/graph/graph.h"
#include "ir/graph/op.h"
#include "ir/module/module.h"
#include "ir/schedule/target.h"

typedef enum { DLC_PASS_GRAPH, DLC_PASS_MODULE } dlc_pass_stage;
typedef enum {
    DLC_FACT_NONE = 0,
    DLC_FACT_LAYOUT = 1,   /* physical layouts are chosen */
    DLC_FACT_GROUPS = 2,   /* fusion groups exist */
    DLC_FACT_KERNELS = 4,  /* the module's kernels and steps exist */
    DLC_FACT_SCHEDULES = 8, /* every kernel has a schedule */
    DLC_FACT_PLACED = 16,  /* every value has its place */
    /* Facts build on one another, so whoever changes an early one breaks all later ones. */
    DLC_FACT_ALL = 31,
    DLC_FACT_FROM_GROUPS = 30,
    DLC_FACT_FROM_KERNELS = 28,
    DLC_FACT_FROM_SCHEDULES = 24
} dlc_fact;

/* One verdict of fusion per graph edge (producer value -> consumer node); what `dlc explain` prints. */
typedef struct {
    dlc_node *from, *to;
    dlc_value *value;
    uint8_t fused;
    uint8_t reason;      /* dlc_reason when not fused */
    const char *text;    /* the reason's sentence with its numbers */
    double bytes_saved;  /* bytes of traffic that fusing saved (fused) or would save */
} dlc_edge;

typedef struct dlc_groups dlc_groups; /* passes/fuse/fuse.h */

/* A rewrite rule that fired, for `dlc explain`. */
typedef struct {
    const char *rule; /* its row in simplify_rules.def */
    const char *node; /* name of the value it replaced */
} dlc_rule_hit;

typedef struct dlc_pass_ctx {
    dlc_graph *graph;
    dlc_module *module;       /* from `lower` on */
    dlc_arena *scratch;       /* released after the pass */
    const dlc_target *target;
    dlc_diag *diag;
    dlc_groups *groups;       /* from `fuse` on */
    const char *rewrite;      /* NULL: where estimates say so; "none", or NAME=N: that row of rewrites.def wherever it can be */
    const char *winograd;     /* "off", "2", "4": the largest tile that convolutions may be rewritten to; NULL: "auto" */
    const char *matrix;       /* products of f32 taken apart for matrix units: "off", "on", or "auto" (NULL) where the machine was measured */
    const char *precision;    /* "bf16": what f32 contractions of weights multiply; NULL or "f32": as they are */
    uint8_t is_verifying;     /* what passes make is checked as they go: --verify-each, or base/verify.h says so */
    uint8_t is_emulated;      /* kernels of a CUDA target run on this processor: there is one memory */
    struct {
        const char *file, *text; /* schedules by kernel (passes/schedule/replay.h); text NULL: none are given */
        uint8_t keeps;           /* kernels that have a schedule keep it where the text has none */
        uint8_t is_read;         /* by a pass */
    } schedules;
    struct {
        const char *file, *text; /* the same, measured before on this machine: what of it is wrong is passed over */
    } tuned;
    const char *fusion;       /* strategy: a row of fusion.def, a path to a .so or a plan .json */
    size_t fold_node_bytes, fold_total_bytes; /* budgets of const_fold; 0: 64 MiB, max(64 MiB, the model's constants) */
    size_t folded_bytes, folded_weight_bytes; /* spent of them so far, over all runs of const_fold and simplify */
    double fold_total_work;   /* scalar evaluations; 0: 4e9, or 4 for each byte of the model's constants if that is more */
    double folded_work;       /* spent of them */
    uint32_t changes;         /* counted by the pass */
    uint32_t facts;           /* dlc_fact set that holds now */
    dlc_vec(dlc_edge) edges;
    dlc_vec(dlc_rule_hit) rules;
} dlc_pass_ctx;

/* Contractions of weights are asked for in bf16. */
int dlc_is_bf16_asked(const dlc_pass_ctx *ctx);
/* Whether kernels run in other memory than steps in C do. */
static inline int dlc_pass_has_device_memory(const dlc_pass_ctx *ctx)
{
    return ctx->target->kind == DLC_TARGET_CUDA && !ctx->is_emulated;
}

typedef dlc_status (*dlc_pass_fn)(dlc_pass_ctx *ctx);

#define DLC_PASS(name, needs, makes, breaks, in_default, help)                                     \
    DLC_NODISCARD dlc_status dlc_pass_##name(dlc_pass_ctx *ctx);
#include "passes/passes.def"
#undef DLC_PASS

typedef struct {
    const char *name;
    dlc_pass_fn run;
    uint32_t needs, makes, breaks; /* dlc_fact sets */
    uint8_t in_default;            /* part of the default pipeline */
    const char *help;
} dlc_pass_info;
extern const dlc_pass_info dlc_passes[];
extern const uint32_t dlc_npasses;

typedef struct {
    const char *passes;     /* comma separated; NULL: the default pipeline */
    const char *dump_after; /* pass name, "all", or NULL */
    void (*dump)(void *user, const char *pass, const char *text);
    void (*timing)(void *user, const char *pass, double seconds, uint32_t changes);
    void *user;
    int verify_each;
} dlc_pipeline_options;

/* The default pipeline, as `--passes` would spell it. */
extern const char *const dlc_pipeline_default;
/*
 * Runs the passes in order. DLC_USAGE: an unknown name (the message lists all), or a pass whose needs do not hold in this
 * order. DLC_INTERNAL names a pass that broke the verifier.
 */
DLC_NODISCARD dlc_status dlc_pipeline_run(dlc_pass_ctx *ctx, const dlc_pipeline_options *options);

/*
 * Takes up a module read from text where the pass named in it left off: ctx->module and ctx->facts. *passes: those that the
 * default pipeline has behind it.
 */
DLC_NODISCARD dlc_status dlc_pipeline_resume(dlc_pass_ctx *ctx, dlc_module *module, const char **passes);

#endif

/* Facts about what code is made for. Decisions (schedules, fusion, layouts) come from here, so codegen/ only emits. */
#ifndef DLC_IR_SCHEDULE_TARGET_H
#define DLC_IR_SCHEDULE_TARGET_H

#include <stdint.h>

typedef enum { DLC_TARGET_CPU, DLC_TARGET_CUDA } dlc_target_kind;

/* Sets of facts.def's rows: target->facts & DLC_HAS_VNNI. */
typedef enum {
#define DLC_TARGET_FACT(id, text, arch, features) DLC_IS_##id,
#include "ir/schedule/facts.def"
#undef DLC_TARGET_FACT
    DLC_NFACTS
} dlc_target_fact;
enum {
#define DLC_TARGET_FACT(id, text, arch, features) DLC_HAS_##id = 1 << DLC_IS_##id,
#include "ir/schedule/facts.def"
#undef DLC_TARGET_FACT
};
typedef struct {
    const char *text, *arch, *features; /* features: of LLVM and cpu.def, separated by commas */
} dlc_target_fact_info;
extern const dlc_target_fact_info dlc_target_facts[DLC_NFACTS];

/* A rough machine of a kind, by which estimates rank alternatives; every target of the kind has the same. */
typedef struct {
    double cycles_per_us;
    double far_bytes_per_us, near_bytes_per_us; /* from memory; from the caches, for what fits l2_bytes */
    double workers;     /* threads or warps that an estimate lets compute at the same time */
    double block_workers; /* of them, those that one unit employs that is not lanes: a contraction's, a transpose's */
    double step_us;     /* what one more kernel costs by itself */
} dlc_machine;

typedef struct {
    const char *name;     /* as the user wrote it, "native" included */
    uint8_t kind;         /* dlc_target_kind */
    const char *triple, *cpu; /* for LLVM */
    uint32_t facts;           /* set of DLC_HAS_… */
    uint32_t vector_bytes;
    uint32_t vector_registers;
    uint32_t l1_bytes, l2_bytes;
    uint32_t scratch_bytes; /* most scratch a schedule may take per thread before it costs too much: half of L2 on CPUs,
                             the shared memory of a block on CUDA */
    const dlc_machine *machine;
    const void *plugin; /* a target outside the tree: what it is made by (package/plugin.h); else NULL */
} dlc_target;

/* The row called `name`, with the facts that follow it (x86-64-v4+vnni+bf16); "native": the best row this machine can run,
 * with the facts and cache sizes it has. NULL when there is no such target, or no such fact for it. Static storage; any thread. */
const dlc_target *dlc_target_find(const char *name);
/* What code that uses these facts needs of a processor beyond its target's row: bits of dlc/cpu.def, for the plan. */
uint64_t dlc_target_features(uint32_t facts);
/* Names of all rows, for messages and `dlc targets`; NULL-terminated. */
const char *const *dlc_target_names(void);

#endif

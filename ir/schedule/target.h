/* Facts about what code is made for. Decisions (schedules, fusion, layouts) come from here, so codegen/ only emits. */
#ifndef DLC_IR_SCHEDULE_TARGET_H
#define DLC_IR_SCHEDULE_TARGET_H

#include <stdint.h>

typedef enum { DLC_TARGET_CPU, DLC_TARGET_CUDA } dlc_target_kind;

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
    const char *triple, *cpu, *features; /* for LLVM; features "" or "+avx512f,…" */
    uint32_t vector_bytes;
    uint32_t vector_registers;
    uint8_t fma;
    uint32_t l1_bytes, l2_bytes;
    uint32_t scratch_bytes; /* most scratch a schedule may take per thread before it costs too much: half of L2 on CPUs,
                             the shared memory of a block on CUDA */
    const dlc_machine *machine;
} dlc_target;

/* The row called `name`; "native": the best row this machine can run (by cpuid / hwcap), with native cache sizes but no
 * tuning that would change bits. NULL when there is no such target. Static storage. */
const dlc_target *dlc_target_find(const char *name);
/* Names of all rows, for messages and `dlc targets`; NULL-terminated. */
const char *const *dlc_target_names(void);

#endif

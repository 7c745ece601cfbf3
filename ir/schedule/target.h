/* Facts about what code is made for. Decisions (schedules, fusion, layouts) come from here, so codegen/ only emits. */
#ifndef DLC_IR_SCHEDULE_TARGET_H
#define DLC_IR_SCHEDULE_TARGET_H

#include <stdint.h>

typedef enum { DLC_TARGET_CPU, DLC_TARGET_CUDA } dlc_target_kind;

enum {
    DLC_LINE_BYTES = 64, /* of the caches of all CPUs here */
    DLC_WAY_BYTES = 4096, /* of a way of x86-64's L1, and taken for that of others */
    DLC_MOST_STRIDE = 4, /* elements from lane to lane that CPUs read by whole vectors */
    DLC_MOST_WOVEN = 8   /* vectors whose lanes CPUs store in turns */
};

/* A product whose sum is an instruction of its own, in time of one that adds as well: there are ports that only add, but other work has
 * them, too (6 rows of 2 vectors of pmaddwd take 7.7 cycles on Zen 3). */
#define DLC_ADDED_APART 1.25

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

/* A rough machine, by which estimates rank alternatives. */
typedef struct {
#define DLC_MACHINE(field, probed, help) double field;
#include "ir/schedule/machine.def"
#undef DLC_MACHINE
    double ops_per_us[DLC_NFACTS]; /* peak of one thread by fact, multiplications and additions; 0: not measured */
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
    uint32_t panel_bytes;     /* of a row of a packed constant's panels, which targets of one file agree on; 0: as it likes */
    const void *plugin; /* a target outside the tree: what it is made by (package/plugin.h); else NULL */
} dlc_target;

/* The row called `name`, with the facts that follow it (x86-64-v4+vnni+bf16); "native": the best row this machine can run,
 * with the facts and cache sizes it has. NULL when there is no such target, or no such fact for it. Static storage; any thread. */
const dlc_target *dlc_target_find(const char *name);
/* What code that uses these facts needs of a processor beyond its target's row: bits of dlc/cpu.def, for the plan. */
uint64_t dlc_target_features(uint32_t facts);
/* Ways of L1: so many lines that lie DLC_WAY_BYTES apart stay in it. */
uint32_t dlc_target_l1_ways(const dlc_target *target);
/* Bytes of the L3 that the host's first processor reaches; 0: none is known. */
uint32_t dlc_host_l3_bytes(void);
/* The host's processor is of this vendor (of CPUID), family and one of these models, as /proc/cpuinfo numbers them; models end with 0: none
 * before it means all. */
int dlc_host_is(const char *vendor, unsigned family, const unsigned *models);
#define DLC_MODELS(...) (const unsigned[]){__VA_ARGS__, 0}
#define DLC_ANY_MODEL (const unsigned[]){0}
uint32_t dlc_host_threads(void); /* that may run at the same time, as far as this process may use them */
/* `base` on a machine that was measured. One for each base and machine: targets are compared by address. */
const dlc_target *dlc_target_on(const dlc_target *base, const dlc_machine *machine);
/* `base` beside others in one file, whose widest vectors have so many bytes: constants are packed in panels of one such vector, so
 * that they stand there once. One for each two. */
const dlc_target *dlc_target_beside(const dlc_target *base, uint32_t panel_bytes);
/* Names of all rows, for messages and `dlc targets`; NULL-terminated. */
const char *const *dlc_target_names(void);

#endif

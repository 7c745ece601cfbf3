/*
 * A trial: one kernel on given data, run as PTX by the interpreter or as emulated C with or without
 * sanitizers, and compared with the kernel interpreter. Mutation tests change the generated text
 * before it is compiled.
 */
#ifndef DLC_TESTS_PTX_TRIAL_H
#define DLC_TESTS_PTX_TRIAL_H

#include "ir/module/module.h"

typedef struct {
    const dlc_kernel *kernel;
    const dlc_schedule *schedule;
    const int64_t *symbols;
    void *const
        *buffers; /* outputs are set to what the kernel interpreter computes by trial_expect */
    void **wide;  /* by trial_expect: outputs by its wide mode, NULL for kernels that sum nothing */
    int faults;   /* the kernel must report a fault */
    int is_unfused; /* made for x86-64-v2: a multiply-add rounds twice, so elementary functions differ in their last bits */
    uint32_t stride; /* of a grid's blocks run the last and every stride-th; 0: all */
} trial;

typedef struct {
    const char *from,
        *to; /* from NULL: no change. All places change, or only the nth when nth is not 0. */
    uint32_t nth;
} trial_mutation;

typedef enum {
    WAY_PTX,
    WAY_PTX_BACKWARDS,
    WAY_PLAIN,
    WAY_SEED,
    WAY_ASAN,
    WAY_TSAN,
    NWAYS
} trial_way;
extern const char *const trial_ways[NWAYS];

/* NULL, or why the way is not there on this machine (NVRTC, a compiler with that sanitizer). */
const char *trial_unavailable(trial_way way, dlc_arena *arena);
/* Bytes of a buffer in its layout. */
size_t trial_buffer_bytes(const trial *t, uint32_t buffer);
/* Interprets: fills outputs, wide and faults. NULL, or why the interpreter failed. */
const char *trial_expect(trial *t, dlc_arena *arena);
/* Runs them; NULL when all went well and agreed with what was expected, else what did not. */
const char *trial_run(const trial *trials, uint32_t n, trial_way way,
                      const trial_mutation *mutation, dlc_arena *arena);

/* Of a step that launches; `memory` as below. */
trial trial_of_step(const dlc_module *module, const dlc_step *step, const int64_t *symbols,
                    void **memory, dlc_arena *arena);
int64_t trial_units(const trial *t);
int64_t trial_scratch(const trial *t); /* bytes, of one unit */
/* Memory of a value, which is there from then on. */
void *trial_memory(const dlc_module *module, uint32_t value, const int64_t *symbols, void **memory,
                   dlc_arena *arena);

/* The trials of a module's steps in order, each kernel once, with data as it flows. `memory` by
 * value id: inputs are filled, others are allocated. symbols: of the graph. */
uint32_t trial_walk(const dlc_module *module, const int64_t *symbols, void **memory,
                    dlc_arena *arena, trial **trials, const char **problem);

#endif

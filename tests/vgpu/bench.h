/*
 * A bench for the runtime on the virtual GPU: a graph of one line (tests/unit/small_graph.h)
 * becomes an executable of PTX alone, its text or launches changed on the way, and runs through the
 * runtime: launched, recorded, replayed, and again in launches of one block each.
 */
#ifndef DLC_TESTS_VGPU_BENCH_H
#define DLC_TESTS_VGPU_BENCH_H

#include "codegen/ptx/object.h"
#include "vgpu/control.h"

typedef struct {
    const char *from, *to; /* of the text with its prelude; from NULL: no change */
    uint32_t nth;          /* 0: everywhere */
    const char *also;      /* text between prelude and kernel, or NULL */
    void (*change)(dlc_cuda_launch *launches, uint32_t n); /* or NULL */
    int runs_once; /* and nobody looks at the results: for its counts */
} bench_change;

/* Of a launch, from the next run on. */
extern int64_t bench_most_blocks;

/* The driver that the loader finds, as tests see it; ends the test when it is another. */
const vgpu_control *bench_driver(void);
/* NULL: all runs, some with NaN, infinities, subnormal numbers and ±100 among their inputs, with equal numbers, with integers
 * that overflow, gave what the interpreter computes and faults when it does; else what did not. Memory of the arena. */
const char *bench_run(const char *graph, int arch, const bench_change *change, dlc_arena *arena);

#endif

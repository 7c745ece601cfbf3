/* The runtime's steps for the bench: a launch has at most so many blocks as the bench says. */
#include "tests/vgpu/bench.h"

int64_t bench_most_blocks = INT32_MAX;
#define DLCRT_MAX_BLOCKS bench_most_blocks
#include "runtime/cuda_steps.c"

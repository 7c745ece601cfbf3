/* What was launched, and how long it would take on real GPUs. */
#ifndef DLC_VGPU_PREDICT_H
#define DLC_VGPU_PREDICT_H

#include <stdio.h>

#include "vgpu/machine.h"

typedef enum {
#define VGPU_BOUND(id, text) VGPU_BY_##id,
#include "vgpu/bounds.def"
#undef VGPU_BOUND
    VGPU_BOUND_COUNT
} vgpu_bound;
extern const char *const vgpu_bounds[VGPU_BOUND_COUNT];

typedef struct {
    const char *name;
    int capability, sms;
    double ghz;
    int lanes, sectors, shared_kib, block_kib, threads, blocks;
    double memory_gbs, l2_gbs, load_cycles, node_us, products;
    double scale[VGPU_BOUND_COUNT]; /* what was measured of kernels so bound, over the prediction; 0: nothing was */
} vgpu_gpu;
enum {
#define VGPU_GPU(id, ...) VGPU_##id##_,
#include "vgpu/gpus.def"
#undef VGPU_GPU
    VGPU_GPU_COUNT
};
extern vgpu_gpu vgpu_gpus[VGPU_GPU_COUNT];
/* Lines "NAME NUMBER" of what was measured of a GPU, as `dlc targets --calibrate` prints them: the row that has its
 * name, else its capability, has these figures from then on. False: the file cannot be read, or is about no GPU that is known. */
int vgpu_calibrate(const char *path);
const vgpu_gpu *vgpu_gpu_find(int capability); /* or the newest one below */

/* Launches of one kernel in one shape, added up. */
typedef struct {
    char name[96];
    uint64_t key; /* of the code: names may be alike */
    uint32_t grid[3], block[3], shared_bytes, registers;
    uint64_t launches;
    vgpu_counts counts;
} vgpu_record_row;
typedef struct {
    vgpu_record_row *rows;
    uint32_t n, capacity;
} vgpu_record_table;
/* The row of such launches, made when it is the first. */
vgpu_record_row *vgpu_record_find(vgpu_record_table *table, uint64_t key, const vgpu_code *code,
                                  const vgpu_launch *launch);

void vgpu_counts_add(vgpu_counts *sum, const vgpu_counts *counts);

/* Blocks that a multiprocessor holds at once. */
uint32_t vgpu_resident(const vgpu_gpu *gpu, const vgpu_record_row *row);
/* Microseconds of one launch, and what bounds it. */
double vgpu_predict(const vgpu_gpu *gpu, const vgpu_record_row *row, vgpu_bound *bound);
/* A table as text: a line per row, longest on the first GPU first. */
void vgpu_report(const vgpu_record_table *table, FILE *to);

#endif

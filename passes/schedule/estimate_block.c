/*
 * What a contraction takes by blocks of CUDA threads, beyond its multiplications, from 251 schedules of 15 products on an H200 (docs/gpu.md;
 * with these figures the root of the mean squared logarithm of measured over estimated is 0.14). A thread's products wait for what it
 * reads of the slices; blocks come in rounds, of which the last takes as long as the others; and slices of a block follow each other: the
 * next is loaded while one is multiplied, but where that is short, memory is waited for.
 */
#include "ir/schedule/resolve.h"
#include "passes/schedule/choose.h"

#include <math.h>

enum {
    SLICE_CYCLES = 2,     /* of a thread's step along K besides multiplying: addresses, waiting for the others */
    FEW_ROUNDS = 4,       /* of blocks: that the last one takes as long as the others shows */
    REGISTERS = 65536,    /* of a multiprocessor */
    MOST_RESIDENT = 8,    /* blocks of 256 threads that it has at once */
    LEAST_REGISTERS = 32  /* of a thread */
};
#define THREAD_LOSS 1.7 /* of a thread's step: what it takes over what its multiplications would */
#define SLICE_US 0.5    /* from the request for a slice to its use: 0.35 where it comes from L2, 0.8 from memory */

double dlc_choose_thread_cycles(double rows, double columns)
{
    return rows * columns + (rows + columns) / 2 + SLICE_CYCLES;
}

double dlc_choose_rounds(const dlc_target *target, double blocks)
{
    return ceil(blocks * target->machine->block_workers / target->machine->workers);
}

/* The register tile of the contraction's leaf. */
static double tile_of(const dlc_schedule *schedule, uint32_t loop)
{
    return loop == DLC_ROOT_NODE ? 1 : (double)schedule->nodes.data[loop].tile;
}

double dlc_estimate_thread_loss(const dlc_schedule *schedule, uint32_t leaf)
{
    double m = tile_of(schedule, dlc_schedule_rows(schedule, leaf)), n = tile_of(schedule, dlc_schedule_columns(schedule, leaf));
    return THREAD_LOSS * dlc_choose_thread_cycles(m, n) / (m * n);
}

double dlc_estimate_filled(const dlc_target *target, double blocks)
{
    double rounds = blocks * target->machine->block_workers / target->machine->workers;
    return rounds > 1 && rounds < FEW_ROUNDS ? rounds / ceil(rounds) : 1;
}

/* How often loops in order go around the leaf. */
static double turns_of(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf)
{
    double turns = 1;
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n)) {
        const dlc_schedule_node *node = &schedule->nodes.data[n];
        if (node->kind != DLC_LOOP_FOR)
            continue;
        int64_t trips = dlc_schedule_trips(schedule, n);
        turns *= trips > 0 ? (double)trips : ceil((double)c->extent[node->axis] / (double)node->tile);
    }
    return turns;
}

double dlc_estimate_waiting(const dlc_chooser *c, const dlc_schedule *schedule, double blocks)
{
    double slices = 0, registers = LEAST_REGISTERS;
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        if (schedule->nodes.data[n].row == DLC_DOT_NONE || schedule->nodes.data[n].kind != DLC_LOOP_LEAF)
            continue;
        double m = tile_of(schedule, dlc_schedule_rows(schedule, n)), columns = tile_of(schedule, dlc_schedule_columns(schedule, n));
        int is_matrix = dlc_schedule_is_matrix(schedule, n);
        double own = (double)(is_matrix ? dlc_matrix_registers((int64_t)m, (int64_t)columns)
                                        : dlc_deals_registers((int64_t)m, (int64_t)columns));
        registers = own > registers ? own : registers;
        slices += turns_of(c, schedule, n);
    }
    double resident = floor(REGISTERS / registers / schedule->threads);
    resident = resident < 1 ? 1 : resident > MOST_RESIDENT ? MOST_RESIDENT : resident;
    return slices * SLICE_US * dlc_choose_rounds(schedule->target, blocks / resident);
}

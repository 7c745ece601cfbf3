/* Between the files that work out what follows from a schedule's tree. */
#ifndef DLC_IR_SCHEDULE_RESOLVE_H
#define DLC_IR_SCHEDULE_RESOLVE_H

#include "ir/schedule/schedule.h"

/* A stage loads another, or itself. */
typedef struct {
    uint32_t reader, source; /* stages */
    dlc_expr load;
} dlc_read;
typedef dlc_vec(dlc_read) dlc_reads;
void dlc_reads_find(const dlc_schedule *schedule, dlc_arena *arena, dlc_reads *reads);
/* The index at that position is the source's own axis; or lies so many points before it (-1: neither, or behind it). */
int dlc_read_is_own(const dlc_kernel *kernel, const dlc_read *read, uint32_t position);
int64_t dlc_read_distance(const dlc_kernel *kernel, const dlc_read *read, uint32_t position);
/* Stage s is a map that reads each element of `from` at its own point, and no stage behind s reads it. */
int dlc_reads_may_take(const dlc_kernel *kernel, const dlc_reads *reads, uint32_t s, uint32_t from);
/* The map that stores where the stage may lie until then, being the last to read it; DLC_NO_STAGE: there is none. Homes are known. */
uint32_t dlc_schedule_output_for(const dlc_schedule *schedule, const dlc_reads *reads, uint32_t s);

/* ir/schedule/turns.c: the points at which the loop of lanes n over [lo, hi) of its axis is cut, in order; returns how many, at most
 * DLC_MOST_TURNS. `kernel` is the schedule's or a copy of it. */
enum { DLC_MOST_TURNS = 64 };
uint32_t dlc_schedule_turns(const dlc_schedule *schedule, const dlc_kernel *kernel, uint32_t n, int64_t lo, int64_t hi, dlc_arena *arena,
                            int64_t *turns);
/* marks[id] = 1 for every expression that the stage computes in the piece [lo, hi) of the axis: of choices that the piece decides one side. */
uint8_t *dlc_stage_piece_marks(const dlc_kernel *kernel, const dlc_stage *stage, uint32_t axis, int64_t lo, int64_t hi, dlc_arena *arena);

/* ir/schedule/verify.c, in this order: the tree by itself, before homes are known; order and places; memory. */
DLC_NODISCARD dlc_status dlc_schedule_verify_tree(dlc_schedule *schedule, dlc_diag *diag);
DLC_NODISCARD dlc_status dlc_schedule_verify_reads(dlc_schedule *schedule, const dlc_reads *reads, dlc_diag *diag);
DLC_NODISCARD dlc_status dlc_schedule_verify_places(dlc_schedule *schedule, const dlc_reads *reads, dlc_diag *diag);
/* ir/schedule/verify_deal.c: the same of dealt loops, after each of these. */
DLC_NODISCARD dlc_status dlc_deals_verify_tree(dlc_schedule *schedule, dlc_diag *diag);
DLC_NODISCARD dlc_status dlc_deals_verify_places(dlc_schedule *schedule, const dlc_reads *reads, dlc_diag *diag);
/* What a thread's register tile takes. */
int64_t dlc_deals_registers(int64_t rows, int64_t columns);
/* The same of each thread whose warp has the tile as matrices. */
int64_t dlc_matrix_registers(int64_t rows, int64_t columns);
/* What runs over a dealt register tile is dealt as the tile is, in the same loop. */
int dlc_deals_are_equal(const dlc_schedule *schedule, uint32_t tile, uint32_t as);

#endif

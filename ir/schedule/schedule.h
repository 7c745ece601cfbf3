/*
 * A schedule: data that says how a target runs a kernel and cannot change what it computes. Filled in by passes/schedule/choose.c,
 * printed and verified like the kernel, emitted by codegen/nest.c. The first `npar` root loops are flattened into the
 * units of parallel work; the runtime gives each thread a range [begin, end) of units.
 *
 * Root loops run over the root axes: for each of their iterations (a tile), every stage is computed over its region, in
 * order. Forms of a kernel follow from the plans (more combine later), the first two on every target, the last on CUDA alone:
 *   lanes  every stage has method LANES. `lane` of the schedule is a root axis (vectors of independent points: maps, pooling,
 *          softmax over a middle axis), or DLC_NO_AXIS and each stage has a lane axis of its own (rows: the reduced axis is
 *          folded across lanes).
 *   dot    one stage is a contraction with method DOT; the stages after it are maps at its own axes, computed on the register
 *          tile before it is stored (epilogue). Root loops: batch axes, M tiles, N tiles, in an order of the chooser's.
 *   transpose  the only stage is a map with method TRANSPOSE. The last two root loops, tiles of one axis each, run along what
 *          some of its loads and along what its store is contiguous in: those loads go through tiles in shared memory.
 */
#ifndef DLC_IR_SCHEDULE_SCHEDULE_H
#define DLC_IR_SCHEDULE_SCHEDULE_H

#include "ir/kernel/kernel.h"
#include "ir/schedule/target.h"

enum { DLC_CUDA_SIDE = 16 }; /* a dot's block on CUDA is so many threads square; tiles are multiples of it */
enum { DLC_CUDA_TILE = 32, DLC_CUDA_PITCH = DLC_CUDA_TILE + 1 }; /* a transpose's tile is so many points square; elements from
                                                                    row to row of it: a column lies in different banks */

/* A loop over one axis, or over several flattened into one (outer to inner) as the rows of a contraction are. */
typedef struct {
    dlc_ids axes;
    int64_t tile;   /* elements of the flattened range per iteration, >= 1 */
    uint8_t serial; /* the axis of recurrences: in order within a unit (never parallel), and temporaries keep all its points,
                       so that a stage may load any stage, later ones too, at earlier points */
} dlc_loop;

typedef enum { DLC_PLACE_REG, DLC_PLACE_SCRATCH, DLC_PLACE_BUFFER } dlc_place;
typedef enum { DLC_METHOD_LANES, DLC_METHOD_DOT, DLC_METHOD_TRANSPOSE, DLC_METHOD_COUNT } dlc_method;

/* Rows of dot.def: which multiply-accumulate a register tile uses. */
typedef enum dlc_dot {
#define DLC_DOT(id, text, a, b, acc, granule) DLC_DOT_##id,
#include "ir/schedule/dot.def"
#undef DLC_DOT
    DLC_DOT_COUNT
} dlc_dot;

typedef struct {
    uint8_t place;    /* dlc_place: where a temporary lives within one root tile; BUFFER for stored stages */
    uint8_t method;   /* dlc_method */
    uint32_t lane;    /* LANES, when schedule->lane is none: own or reduced axis vectorised, or DLC_NO_AXIS: scalar */
    uint16_t unroll;  /* LANES: reduced axes whose product of extents is <= unroll are unrolled */
    uint8_t partials; /* LANES, lane is reduced: independent vector accumulators */
    /* DOT only: */
    uint8_t dot;      /* dlc_dot */
    uint16_t m, n;    /* register tile: m rows by n columns (n a multiple of the vector's elements) */
    uint8_t copy_a;   /* A's tile is evaluated into scratch [m][K] first (guards, gathers, 4 KiB strides) */
    uint8_t copy_b;   /* B is evaluated into scratch panels [n/panel][K][panel] for each batch; else read in place: rows of
                         n contiguous elements (a constant repacked to panels at compile time has a layout that says so) */
    uint8_t swap;     /* the roles of m and n as recognised are exchanged */
} dlc_stage_plan;

typedef struct {
    const dlc_target *target;
    dlc_vec(dlc_loop) loops; /* root loops, outer to inner */
    uint8_t npar;
    uint32_t lane;           /* root axis that vectors run along (it is the axis of the last loop), or DLC_NO_AXIS */
    uint8_t width;           /* elements per vector step */
    uint8_t pack;            /* of them, neighbours that one thread of a warp has (CUDA; else 1): one access of 128 bits */
    dlc_stage_plan *plans;   /* one per stage */
    int64_t grain;           /* fewest units worth a thread of their own */
} dlc_schedule;

/* How the kernel as a whole runs: the method of its one stage that has another than LANES, else LANES. */
dlc_method dlc_schedule_method(const dlc_kernel *kernel, const dlc_schedule *schedule);
/* The root loop over the axis, or NULL; and whether one place of a temporary serves all points of the axis. */
const dlc_loop *dlc_schedule_loop(const dlc_schedule *schedule, uint32_t axis);
int dlc_schedule_shares(const dlc_schedule *schedule, uint32_t axis);
/* Units of parallel work and scratch bytes per thread: i64 expressions over the kernel's symbols. */
dlc_expr dlc_schedule_units(dlc_kernel *kernel, const dlc_schedule *schedule);
dlc_expr dlc_schedule_scratch(dlc_kernel *kernel, const dlc_schedule *schedule);
/* Byte offset of stage `stage`'s scratch (over symbols), or of A's and B's copies of a dot stage. */
dlc_expr dlc_schedule_offset(dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t stage, int copy /* 0 'a' 'b' */);
/* Elements of K of a dot stage, and of one row of A's copy (rounded up, never a multiple of 4096 bytes). */
dlc_expr dlc_schedule_depth(dlc_kernel *kernel, uint32_t stage);
dlc_expr dlc_schedule_row(dlc_kernel *kernel, uint32_t stage);
/*
 * The root loops of a dot stage: which one runs over its rows (m; UINT32_MAX when the contraction has none: a vector times a
 * matrix) and which over its columns; its factors with `swap` applied. False when the loops do not fit the contraction.
 */
typedef struct {
    dlc_contraction contraction;
    uint32_t m, n;
} dlc_dot_loops;
int dlc_schedule_dot_loops(dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t stage, dlc_dot_loops *loops);
/*
 * Loads of a kernel's first stage that are contiguous along `in` and strided along `out`: as many as have room for their tiles
 * in the target's scratch. Loads that only the index or the guard of such a load needs are not among them.
 */
typedef struct {
    dlc_ids loads, places; /* expressions; by load, the byte at which its tile begins */
    uint32_t bytes;        /* of all tiles */
} dlc_crossing;
void dlc_schedule_crossing(dlc_kernel *kernel, const dlc_target *target, uint32_t in, uint32_t out, dlc_crossing *crossing);
/* Iterations of one root loop: ceil(product of extents / tile). */
dlc_expr dlc_loop_count(dlc_kernel *kernel, const dlc_loop *loop);

void dlc_schedule_print(const dlc_kernel *kernel, const dlc_schedule *schedule, dlc_str *out);
DLC_NODISCARD dlc_status dlc_schedule_verify(const dlc_kernel *kernel, const dlc_schedule *schedule, dlc_diag *diag);
#endif

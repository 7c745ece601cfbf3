/* Between choose.c, choose_lanes.c and choose_dot.c: facts of one kernel that every choice rests on. */
#ifndef DLC_PASSES_SCHEDULE_CHOOSE_H
#define DLC_PASSES_SCHEDULE_CHOOSE_H

#include "passes/lower/lower.h"

enum { DLC_ODD_STRIDE = INT32_MAX }; /* not affine in the axis */

/* One load or store of a stage. */
typedef struct {
    dlc_source source;
    dlc_expr load;    /* 0: the store */
    dlc_expr offset;  /* elements */
} dlc_access_fact;
typedef dlc_vec(dlc_access_fact) dlc_access_facts;

typedef struct {
    dlc_kernel *kernel;
    const dlc_target *target;
    dlc_arena *arena;
    dlc_schedule *schedule; /* its kernel is `kernel` */
    int64_t *extent;  /* per axis: constant, or what it is assumed to be */
    int64_t *least;   /* per axis: constant, or the least it may be (at least 1) */
    uint8_t *is_known; /* per axis: constant */
    uint8_t *is_expected; /* per axis: constant, or what it mostly is */
    int64_t *symbols; /* assumed value per symbol */
    uint32_t naxes;   /* that `extent` and `least` are of: those that a schedule adds to its kernel come behind them */
    uint32_t nstages; /* that there are facts of: copies that a schedule adds to its kernel come behind them */
    dlc_access_facts *accesses; /* per stage */
    double *work;     /* per stage: flops of all its points, each expression once per point of the axes it depends on */
    uint8_t *is_read; /* per stage: some stage loads it */
    dlc_ids roots;    /* axes of independent iterations */
    dlc_ids serial;   /* axes of recurrences that several stages share, or that go from row to row: root loops in order */
    uint8_t *place;   /* per stage: dlc_place */
    uint32_t *together;  /* per stage: the axis along which its scratch lies together; DLC_NO_AXIS, or NULL: its last one */
    uint32_t lane, width; /* while lanes are chosen: the root axis along them, or DLC_NO_AXIS; how many */
    uint32_t across;  /* the axis unrolled in them, as many points as lanes: see dlc_choose_crosses; or DLC_NO_AXIS */
    uint32_t woven;   /* the axis of few points unrolled in them: see dlc_choose_weaves; or DLC_NO_AXIS */
    uint32_t rows;    /* of a register tile whose elements are asked for; or DLC_NO_AXIS */
    int64_t lanes_block; /* of lanes that constants lie by, see dlc_choose_lay_out_constant; 0: all of them */
} dlc_chooser;

/* Lanes along one axis stride where the load's neighbours in memory lie along another: a square of both is read by rows and turned in
 * registers (codegen/turn.c). */
int dlc_choose_crosses(const dlc_chooser *chooser, const dlc_access_fact *access, uint32_t lane, uint32_t across, uint32_t width);
/* Neighbours in memory are the points of such an axis, and those of the next lane come behind them: vectors are stored with their lanes in turns. */
int dlc_choose_weaves(const dlc_chooser *chooser, const dlc_access_fact *access, uint32_t lane, uint32_t woven, uint32_t width);
/* The rows of a register tile are turned, in registers, where they store this way: neighbours in memory are neighbouring rows. */
int dlc_choose_is_turned(const dlc_chooser *chooser, const dlc_access_fact *access, uint32_t rows, uint32_t width);
/* The first such axis of these for this load of the stage, or for any of them (0); DLC_NO_AXIS: there is none. */
uint32_t dlc_choose_across(const dlc_chooser *chooser, uint32_t stage, dlc_expr load, const dlc_ids *axes, uint32_t lane, uint32_t width);
/* Points of `axis` that a copy of the load into granules along it takes at once, by lanes along `lane`: those of a square that is turned, or of
 * one granule. 0: they are stored one by one. */
int64_t dlc_choose_granules(const dlc_chooser *chooser, uint32_t stage, dlc_expr load, uint32_t axis, uint32_t lane, uint32_t width,
                            int64_t granule);
int64_t dlc_choose_stride(const dlc_chooser *chooser, dlc_expr offset, uint32_t axis);
/* Of an axis of the kernel, or one that the schedule added. */
int64_t dlc_choose_extent(const dlc_chooser *chooser, uint32_t axis);
/* Product of the extents; the empty product is 1. */
double dlc_choose_points(const dlc_chooser *chooser, const dlc_ids *axes);
double dlc_choose_least(const dlc_chooser *chooser, const dlc_ids *axes);
/* Largest stride of the axis in what the kernel stores (then loads): outer loops first. */
int64_t dlc_choose_rank(const dlc_chooser *chooser, uint32_t axis);
void dlc_choose_sort(const dlc_chooser *chooser, dlc_ids *axes); /* outer to inner */
uint32_t dlc_choose_width(const dlc_chooser *chooser, uint32_t least_bytes);
/* Columns of a constant's panels where a register tile is of *nv vectors: the tile's; or the target's own, of which a tile is a
 * part or several, by fewer vectors if need be. */
int64_t dlc_choose_panel(const dlc_chooser *chooser, uint32_t elem_bytes, int64_t *nv);

/* Flops of what is marked, each expression once per point of the axes that it depends on; share (or NULL): of these points, by expression. */
double dlc_choose_work(const dlc_chooser *chooser, const uint8_t *marks, const double *share);
/* Facts, roots and places: all that choices of trees rest on. */
void dlc_choose_start(dlc_chooser *chooser, dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena);
/* Facts only: extents, accesses, work; no schedule. */
void dlc_choose_facts(dlc_chooser *chooser, dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena);
/* The kernel's schedules, by each form that can run it: first the one that dlc_choose takes. The kernel does not change. */
typedef dlc_vec(dlc_schedule *) dlc_schedules;
void dlc_choose_forms(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena, dlc_schedules *result);
/* True when the kernel runs as a register tile; the schedule is filled in. */
int dlc_choose_dot(dlc_chooser *chooser);
/* True when it would be one whose columns are computed of constants anew for each tile of rows, as these may be few: their axes. Rows from two
 * tiles on read a copy (Zen 4, 4 bits and f32, 28 million weights: .96 of the time with 16 rows, .83 with 128; 1.05 with 12). */
enum { DLC_FEW_COMPUTED_FOR = 14 };
int dlc_choose_is_for_tiles(dlc_chooser *chooser, dlc_ids *rows);
/* Returns the root axis along the lanes, or DLC_NO_AXIS. */
uint32_t dlc_choose_lanes(dlc_chooser *chooser);
/* True when groups of few channels go along the lanes together: the tree is built (choose_groups.c). */
int dlc_choose_groups(dlc_chooser *chooser);
/* True when stages follow one another by rows, some at windows, some products: the tree is built (choose_halo.c). */
int dlc_choose_halo(dlc_chooser *chooser);
/* True when rows' scores become the factor of a second product: the tree is built (choose_attention.c). */
int dlc_choose_attention(dlc_chooser *chooser);
/* The same where both products go by tile registers (choose_attention_tiles.c). */
int dlc_choose_attention_tiles(dlc_chooser *chooser);
/* True when stages share rows and some are products: the tree is built (choose_tiles.c). */
int dlc_choose_tiles(dlc_chooser *chooser);
/* True when the kernel is a product at several points between transforms of tiles: the tree is built (choose_points.c). */
int dlc_choose_at_points(dlc_chooser *chooser);
/* The axes' sizes are constants. */
int dlc_choose_is_known(const dlc_chooser *chooser, uint32_t axis);
int dlc_choose_are_known(const dlc_chooser *chooser, const dlc_ids *axes);
/* They are, or what they mostly are is known (`usual`): what is chosen for that may be slower at others, never wrong. */
int dlc_choose_are_expected(const dlc_chooser *chooser, const dlc_ids *axes);
/* What lanes were chosen: a tree is made of it when the loops around are known. */
/* By which row, and by granules along which axis, each lane adds up products for itself; NONE: one after the other. */
typedef struct {
    dlc_dot row;
    uint32_t axis;
} dlc_own_dot;
extern const dlc_own_dot dlc_no_own_dot;
typedef struct {
    uint32_t axis;
    int64_t tile;
    uint8_t is_serial; /* the axis of recurrences: in order, never parallel */
} dlc_root_choice;
typedef struct {
    dlc_vec(dlc_root_choice) loops; /* outer to inner; of a root lane the last is the lane's */
    uint32_t npar;
    uint32_t lane;   /* root axis that vectors run along, or DLC_NO_AXIS */
    uint32_t *lanes; /* by stage, without a root lane: own or reduced axis along the vectors, or DLC_NO_AXIS: scalar */
    uint32_t width;
    uint32_t inner;  /* the reduced axis that stands innermost, along which neighbours share what they read; DLC_NO_AXIS: the last one */
    uint32_t across; /* a root axis in tiles, unrolled inside the lanes: of the width, to be turned, of all its points, to be woven, or of
                        neighbours whose folds run side by side; or DLC_NO_AXIS */
    int64_t tile;    /* of `across`; 0: it has no loop around the lanes */
    uint32_t within; /* a root axis in tiles whose points are visited inside the lanes, or DLC_NO_AXIS */
    double cycles;
} dlc_lanes_choice;
/* choose_windows.c: windows of neighbours along an axis: those of `beside` points read (beside - 1) * step + taps elements of a row, not beside * taps. */
typedef struct {
    int64_t step, taps; /* taps of the innermost reduced axis, which is written out */
    int64_t rows;       /* of a window: points of the other reduced axes */
    int64_t column_bytes, bytes; /* of a column of the image, all its lanes; of a vector of it */
    int64_t vectors;    /* of an element of the widest accumulator, by lanes */
    int64_t sums;       /* such accumulators of a point */
    int64_t written;    /* operations of a point that are written out */
    int64_t image_bytes; /* all that windows read; 0: not known */
    int has_parts;      /* columns are vectors of which each step takes some lanes (grouped channels): they stay in registers */
    uint32_t inner;     /* see dlc_lanes_choice */
} dlc_windows;
/* The stage's fold adds to what a point takes, where it is one over windows that neighbours along the axis share; find: all the kernel's folds are
 * such, and the rest are maps of them. */
int dlc_windows_add(const dlc_chooser *chooser, uint32_t stage, uint32_t axis, uint32_t lane, uint32_t width, dlc_windows *w);
int dlc_windows_find(const dlc_chooser *chooser, const dlc_lanes_choice *choice, uint32_t axis, dlc_windows *w);
/* They read an image that L2 does not hold, and L3 is slow: L2's prefetcher is to find their rows, which go by whole, and not by strips down
 * the rows. (Emerald Rapids, 3x3 in steps of 2 at 112x112: 7 neighbours row by row .79 of the time of 14 down a strip.) */
int dlc_windows_are_far(const dlc_chooser *chooser, const dlc_windows *w);
/* How many neighbours go side by side; 1: none. Whether so many crowd the registers, so that their folds go row by row. */
int64_t dlc_windows_tile(const dlc_chooser *chooser, const dlc_windows *w, uint32_t axis);
int dlc_windows_are_crowded(const dlc_chooser *chooser, const dlc_lanes_choice *choice, uint32_t stage, uint32_t axis, int64_t tile);
/* choose_within.c: an axis of the loops around the lanes that goes within them by tiles; DLC_NO_AXIS: none. */
uint32_t dlc_choose_within(const dlc_chooser *chooser, uint32_t lane, const dlc_ids *outer, int64_t *tile);
/* Of a recurrence that goes from row to row, which is done in so many units. */
void dlc_choose_split_scan(const dlc_chooser *chooser, dlc_lanes_choice *choice, double units, double unit_cycles);
void dlc_choose_lanes_facts(dlc_chooser *chooser, dlc_lanes_choice *choice);
void dlc_choose_lanes_build(dlc_chooser *chooser, const dlc_lanes_choice *choice);
/* One stage inside the choice's loops, which are open. */
void dlc_choose_lanes_stage(dlc_chooser *chooser, const dlc_lanes_choice *choice, uint32_t stage);
/* choose_fold.c: the first of the reduced axes from which on they are written out; none: their number. */
uint32_t dlc_choose_first_unrolled(const dlc_chooser *chooser, const dlc_ids *reduce);
/* The stage's reduced axes, `inner` behind the others. */
dlc_ids dlc_choose_reduced(const dlc_chooser *chooser, uint32_t stage, uint32_t inner);
/* Of the stage in lanes, `width` at once, along `lane`; and in those of the choice. */
dlc_own_dot dlc_choose_lanes_own_dot(const dlc_chooser *chooser, const dlc_lanes_choice *choice, uint32_t stage);
dlc_own_dot dlc_choose_own_dot(const dlc_chooser *chooser, uint32_t stage, uint32_t lane, uint32_t width, uint32_t inner);
/* Opens loops over what the stage is reduced over but the lane, and says how many: small windows are written out, or by_rows each row of one. */
uint32_t dlc_choose_open_reduced(dlc_chooser *chooser, uint32_t stage, uint32_t lane, uint32_t inner, int by_rows, const dlc_own_dot *own);
/* The stage in such loops. */
void dlc_choose_fold_leaf(dlc_chooser *chooser, uint32_t stage, const dlc_own_dot *own);
/* Opens the loop over the points of a square, inside its lanes, and says how many loops that is: none where there is no such axis. */
uint32_t dlc_choose_open_across(dlc_chooser *chooser, uint32_t across);
/* Vectors a step of a fold along the lane. */
uint32_t dlc_choose_partials(const dlc_chooser *chooser, uint32_t lane, uint32_t width);
/* Constants that the stage reads along the lanes lie that way, and by granules of its own sum. */
void dlc_choose_lay_out_constants(dlc_chooser *chooser, uint32_t stage, uint32_t lane, const dlc_own_dot *own);
/* A constant's load by a stage: it lies with this dimension innermost, where there is such a layout. */
void dlc_choose_lay_out_constant(dlc_chooser *chooser, uint32_t stage, dlc_expr load, uint32_t dim, const dlc_own_dot *own);
/* By stage, the best lane among its own and its reduced axes, when the roots have loops around it; returns all cycles. */
double dlc_choose_own_lanes(const dlc_chooser *chooser, uint32_t width, uint32_t *lanes);
/* The same for CUDA: lanes of a warp. */
void dlc_choose_cuda(dlc_chooser *chooser);
/* It reads a constant that is laid out anew where lanes run along the axis: neighbours lie together, rows begin at once. */
int dlc_choose_lays_out(const dlc_chooser *chooser, const dlc_access_fact *access, uint32_t axis);
/* Accesses of a pack of neighbours along the axis are one each. */
int dlc_choose_is_packed(dlc_chooser *chooser, const dlc_access_fact *access, uint32_t lane, int64_t pack);
/* The same as dlc_choose_tiles, by blocks of CUDA threads. */
int dlc_choose_block_tiles(dlc_chooser *chooser);
/* True when the kernel is a contraction by blocks of CUDA threads: the tree is built. */
int dlc_choose_block(dlc_chooser *chooser);
/* True when it is a map whose loads and store are contiguous along different axes: the schedule is filled in anew. */
int dlc_choose_transpose(dlc_chooser *chooser);
/* passes/schedule/estimate_block.c, of blocks of CUDA threads. */
/* A step along K of a thread's register tile: its products, and what it reads of the slices for them. */
double dlc_choose_thread_cycles(double rows, double columns);
/* How often a GPU's multiprocessors are filled by so many blocks. */
double dlc_choose_rounds(const dlc_target *target, double blocks);
/* The time of a contraction's threads over that of their multiplications. */
double dlc_estimate_thread_loss(const dlc_schedule *schedule, uint32_t leaf);
/* The share of multiprocessors that so many blocks keep busy, the last round included; 1 where they are fewer. */
double dlc_estimate_filled(const dlc_target *target, double blocks);
/* Microseconds in which slices of contractions are waited for, one after the other. */
double dlc_estimate_waiting(const dlc_chooser *chooser, const dlc_schedule *schedule, double blocks);
/* True when the kernel is one contraction, its first stage, and all that follows is done on its tile. */
int dlc_choose_contraction(const dlc_chooser *chooser, dlc_contraction *form);
/* The factor is read along its rows: reduced axes of the stage with the largest steps outermost. */
void dlc_choose_order_reduction(const dlc_chooser *chooser, uint32_t stage, dlc_expr factor, dlc_ids *order);
enum {
    DLC_PART_TERMS = 128,     /* a hundredth of a large product's time, and errors no larger than those of the peers measured */
    DLC_PART_MOST_TERMS = 192 /* of axes that need not be cut then */
};
/* Some remainder in the value is of the axis and of one of the others. */
int dlc_choose_is_phase(const dlc_chooser *chooser, dlc_expr value, uint32_t axis, const dlc_ids *others);
/* The register tile just added to the schedule sums its floats by parts where it has many terms (choose_parts.c). */
void dlc_choose_parts(dlc_chooser *chooser);
/* The same of one that multiplies points of tiles, which are sums themselves and of which results are sums: parts are shorter. */
void dlc_choose_parts_of_points(dlc_chooser *chooser);
/* Such a sum has parts. */
int dlc_choose_has_parts_of_points(const dlc_chooser *chooser, uint32_t stage, const dlc_ids *over);
/* Register tiles of the schedule, which is built, leave out points at which all their rows are padding, where estimates say that it pays. */
void dlc_choose_skipped(dlc_chooser *chooser);
/* The share of points of the axes skipped that rows of the dot's tiles do not leave out: by samples where there are many tiles. */
double dlc_choose_read(const dlc_chooser *chooser, const dlc_schedule *schedule, uint32_t leaf);
/* L1 does not hold the buffer; nobody knows that of one whose size only the run knows. */
int dlc_choose_exceeds_l1(const dlc_chooser *chooser, uint32_t buffer);
enum { DLC_ROW_POINTERS = 10 }; /* rows of a tile whose addresses general registers hold beside counters; a loop fetches each further one, and puts
                                 * it back */
enum { DLC_FEW_TILED_ROWS = 256 }; /* of tile registers: weights that meet so many are read from memory more than they are multiplied */
/* It brings the constant that its columns read nearer, a panel ahead, where that is too large to be near already. */
void dlc_choose_ahead(dlc_chooser *chooser);
/* What is computed of the tile in tile registers brings what it reads nearer, a tile of rows ahead: multiplying leaves time for little else. */
void dlc_choose_maps_ahead(dlc_chooser *chooser, uint32_t dot);
/* Maps and rows larger than the caches read ahead and store past them. */
void dlc_choose_far(dlc_schedule *schedule, dlc_arena *arena);
/* What waits in scratch for a map that stores along the same lanes waits where it stores. Homes are known; true: they have to be found anew. */
int dlc_choose_outputs(dlc_schedule *schedule, dlc_arena *arena);
/* Of a buffer. */
double dlc_choose_elems(const dlc_chooser *chooser, uint32_t buffer);
/* Bytes that the kernel moves between caches and memory, each that it touches once. */
double dlc_choose_moved(const dlc_chooser *chooser);
/* What units cost where it is not known which threads a run has: one, two and more count by what they have, one most. A sample's units are
 * blocks of rows, the last of them smaller where `blocks` is no whole number, of so many panels each; a thread has begun_cycles to do before the
 * first panel that it takes of a whole block. */
typedef struct {
    double cycles, last_cycles; /* of a unit; of one in the last block */
    double begun_cycles;
    double samples, blocks, panels;
} dlc_unit_costs;
double dlc_choose_over_threads(const dlc_unit_costs *costs);
/* What takes place at the same time, each at its best: the nearer the shorter comes to the longer, the more often that waits for it. */
double dlc_estimate_beside(double a, double b);
/* The same by another exponent: the larger, the less of the shorter is waited for. */
double dlc_estimate_hiding(double a, double b, double exponent);
/* Blocks of an axis (estimate_blocks.c): those that loop n goes through, one for each iteration of the loops around that say where it begins; no
 * loop around is over its own axis. Alike ones are counted. */
typedef struct {
    double size, count;
} dlc_block;
typedef dlc_vec(dlc_block) dlc_blocks;
dlc_blocks dlc_estimate_blocks(const dlc_chooser *chooser, const dlc_schedule *schedule, uint32_t n);
/* The stage's work in a loop of lanes that is cut where conditions over its axis change (estimate_pieces.c). */
double dlc_estimate_pieces(const dlc_chooser *chooser, const dlc_schedule *schedule, uint32_t lanes, uint32_t stage);
/* Cycles of the contraction at this leaf on its register tiles, without waiting for memory (estimate_tile.c). */
double dlc_estimate_tiles(const dlc_chooser *chooser, const dlc_schedule *schedule, uint32_t leaf);
/* Cycles that the contraction at this leaf, which computes for so many, waits for factors that come by again (estimate_again.c). is_blind: from
 * beyond L2, for a number of rows that is not known. */
double dlc_estimate_again(const dlc_chooser *chooser, const dlc_schedule *schedule, uint32_t leaf, double computing, int *is_blind);
/* The points of the axis that an iteration of loop n around the leaf goes through: where no loop around n is over it, the region of the outermost
 * one inside. */
double dlc_estimate_points_inside(const dlc_chooser *chooser, const dlc_schedule *schedule, uint32_t leaf, uint32_t n, uint32_t axis);
/* The share of what lies beyond L2 that comes and goes by pieces of more pages at a time than prefetchers follow (estimate_pages.c). */
double dlc_estimate_strewn(const dlc_chooser *chooser, const dlc_schedule *schedule);
/* Lines that a step of the contraction at this leaf asks for ahead (estimate_again.c). */
double dlc_estimate_asked(const dlc_chooser *chooser, const dlc_schedule *schedule, uint32_t leaf);
/* When the weights of the contraction at this leaf come: its early_us, early_share (estimate_again.c). */
void dlc_estimate_early(const dlc_chooser *chooser, const dlc_schedule *schedule, uint32_t leaf, dlc_estimate *result);
/* What the busiest of so many threads does of the kernel's work (estimate_threads.c). */
double dlc_estimate_share(const dlc_estimate *estimate, const dlc_schedule *schedule, int64_t nthreads);
enum { DLC_MOST_VECTORS = 4 }; /* of a row of a register tile */
/* Vectors of a register tile's rows for a product of size[0] rows, size[1] columns and size[2] points of one reduced axis: the rule's, or
 * others on which it takes so much less that estimates can tell. stage: that sums it; heights: rows of a tile of so many vectors, 0: none fits. */
int64_t dlc_choose_vectors(const dlc_chooser *chooser, uint32_t stage, dlc_dot row, dlc_dtype acc, const double size[3],
                           const int64_t heights[DLC_MOST_VECTORS + 1], int64_t rule);
/* The height of tiles of so many vectors, or a half, a third or a quarter of it on which the product takes less: of a long tile's sums the last
 * wait to be stored, and nothing behind them begins meanwhile. For machines to which estimates were fitted. */
int64_t dlc_choose_height(const dlc_chooser *chooser, uint32_t stage, dlc_dot row, dlc_dtype acc, const double size[3], int64_t height,
                          int64_t vectors);
/* Cycles of a point of an access by lanes along an axis along which its index goes by straight pieces; negative: it goes in another way. */
double dlc_choose_pieces(const dlc_chooser *chooser, const dlc_access_fact *access, uint32_t lane, uint32_t width);
/* Cycles of a stage by lanes along an axis (DLC_NO_AXIS: one point at a time), without waiting for memory. */
double dlc_choose_stage_cycles(const dlc_chooser *chooser, uint32_t stage, uint32_t lane, uint32_t width);

enum {
    DLC_UNIT_CYCLES = 2000,  /* a unit of work is worth at least this, about half a microsecond */
    DLC_SPLIT_CYCLES = 5000, /* a loop along the lanes is cut into units from this on */
    DLC_MIN_UNITS = 16,      /* units wanted, so that 8 threads balance */
    DLC_RUN_CYCLES = 25,     /* starting a run of elements to copy: address, border test */
    DLC_VECTOR_CYCLES = 2,   /* copying a vector of it */
    DLC_UNEVEN_CYCLES = 9    /* copying an element that has an address or a border test of its own (Zen 3) */
};
#define DLC_LANE_OPS 2.0 /* of vectors, in a cycle, where the machine does not say (machine.def, lane_ops) */

/* Operations of vectors in a cycle, multiply-adds aside. */
static inline double dlc_lane_ops(const dlc_target *target)
{
    return target->machine->lane_ops > 0 ? target->machine->lane_ops : DLC_LANE_OPS;
}

/* L3 gives so much less than L2 that what it holds is waited for unless L2's prefetcher finds it. */
#define DLC_SLOW_L3 0.5 /* of what L2 gives */
static inline int dlc_has_slow_l3(const dlc_target *target)
{
    const dlc_machine *machine = target->machine;
    return machine->l3_bytes_per_us > 0 && machine->l3_bytes_per_us < machine->near_bytes_per_us * DLC_SLOW_L3;
}

/* One row by a matrix that lies as it came and is larger than L2 by far goes along whole rows (choose_dot.c), which threads share by
 * pieces that are long enough to be fetched early; where rows are too short for that, parts of K are (passes/rewrite/split.c). */
enum { DLC_ROW_PIECES = 4, DLC_LONG_PIECE = 16384 /* bytes */ };
static inline int dlc_goes_by_rows(const dlc_target *target, double matrix_bytes)
{
    return target->kind == DLC_TARGET_CPU && matrix_bytes > 2.0 * target->l2_bytes;
}

#endif

/*
 * A schedule: the outline of the loops that run a kernel on a target. It says how and cannot change what. It is a tree; its
 * inner nodes are loops, its leaves are stages. Where a stage stands is where it is computed, the order of the text is the
 * order of execution, and what lies between a stage and its readers says where its value must live (ir/schedule/home.c):
 *
 *     schedule x86-64-v4 grain 2 {
 *       copy wp = a.w [j/32, k, j%32]                  the constant w as panels of 32 columns, at compile time
 *       const { wp }
 *       par j:32, i:12 {                               units of parallel work: 32 columns by 12 rows
 *         a = dot fma i x j over [k] in reg ahead 1 via L2   a register tile of the contraction; w's next panel is fetched meanwhile
 *         as a { y }                                   the map behind it, on the tile's elements
 *       }
 *     }
 *
 *     schedule x86-64-v4 grain 4 {
 *       par i {
 *         lane k:16 { exp in scratch ahead 2 via L2 }  x of the row after the next is fetched meanwhile
 *         lane k:16 x 4 { total in reg }
 *         lane k:16 { y nontemporal }                  stores that take no place in caches
 *       }
 *     }
 *
 *     schedule sm_80 grain 1 threads 256 {             a unit is a block of 256 threads: scratch is its shared memory
 *       copy xs = a.x [k, i+4]                         rows 4 elements longer than the tile: other banks
 *       par i:64, j:64 {
 *         for k:16 {
 *           thread i, k { xs in scratch ahead 1 via reg }   iterations are dealt; the next slice is loaded ahead
 *           thread i:4, j:4 { a = dot fma i x j over [k] in reg }
 *         }
 *         thread i:4, j:4 { as a { y } }
 *       }
 *     }
 *
 * Nothing is implied: what is printed is all there is, and reads back (ir/schedule/parse.c). The first `par` loops are
 * flattened into units, numbered with the outermost slowest; the runtime gives each thread a range of them.
 *
 * A schedule owns a copy of its kernel, in which flattened axes and copies of operands are applied: nodes name the axes and
 * stages of that one. Stages of the kernel given keep their numbers, copies follow.
 */
#ifndef DLC_IR_SCHEDULE_SCHEDULE_H
#define DLC_IR_SCHEDULE_SCHEDULE_H

#include "ir/expr/lexer.h"
#include "ir/kernel/kernel.h"
#include "ir/schedule/target.h"

typedef enum dlc_loop_kind {
#define DLC_LOOP(id, text) DLC_LOOP_##id,
#include "ir/schedule/loops.def"
#undef DLC_LOOP
    DLC_LOOP_COUNT
} dlc_loop_kind;

/* OUTPUT: of a stage that is not stored, in the place of what a map behind it stores; BUFFER: of one that is, where it is stored. */
typedef enum { DLC_PLACE_REG, DLC_PLACE_SCRATCH, DLC_PLACE_OUTPUT, DLC_PLACE_BUFFER } dlc_place;

/* Rows of dot.def: which multiply-accumulate a register tile uses. */
typedef enum dlc_dot {
    DLC_DOT_NONE,
#define DLC_DOT(id, text, a, b, acc, granule, parts, takes, fact, narrow, order, family) DLC_DOT_##id,
#include "ir/schedule/dot.def"
#undef DLC_DOT
    DLC_DOT_COUNT
} dlc_dot;
typedef enum { DLC_ORDER_ASCENDING, DLC_ORDER_PAIRS, DLC_ORDER_CHUNKS, DLC_ORDER_EXACT, DLC_ORDER_DEVICE } dlc_dot_order;
typedef enum { DLC_FAMILY_LANES, DLC_FAMILY_WARP, DLC_FAMILY_TILE } dlc_dot_family;
enum { DLC_MATRIX = 16, DLC_FRAGMENT = 8 }; /* WARP: sides of a matrix; rows and columns of what is spread over the lanes once */
enum { DLC_PARTS = 3 }; /* most parts of a factor */
enum { DLC_TILES = 8, DLC_TILE_ROWS = 16, DLC_TILE_BYTES = 64, DLC_TILE_COLUMNS = 16 }; /* TILE: registers; bytes of a row; columns of sums */
typedef struct {
    const char *text;
    uint8_t a, b, acc; /* dlc_dtype */
    uint8_t granule, parts, takes, order, family;
    uint32_t fact, narrow;
} dlc_dot_info;
extern const dlc_dot_info dlc_dots[DLC_DOT_COUNT];

/* Nodes in preorder: what lies inside node i are the nodes i + 1 … end - 1. */
typedef struct {
    uint8_t kind;      /* dlc_loop_kind; LEAF: a stage */
    uint8_t place;     /* LEAF: dlc_place: where readers find the value */
    uint8_t row;       /* LEAF: dlc_dot: a register tile; NONE: a value, or a step of a fold, at one point */
    uint8_t own;       /* LEAF, `row` NONE: dlc_dot: in lanes, each lane's own sum over the axis of `over`, by the row's granules */
    uint8_t ahead;     /* LEAF, a dealt copy: iterations of the loop around it that it is loaded early, into registers: 0 or 1.
                          A dot: tiles of the columns that their factor comes to L2 before it is multiplied: 0 or 1.
                          Else: iterations of the loop around its lanes that what it reads of buffers comes to L2 early */
    uint8_t kept;      /* loops right inside of the parallel ones: once for units that follow each other and are alike in it (ir/schedule/kept.c) */
    uint8_t nontemporal; /* LEAF: what it stores goes to memory and leaves the caches to others */
    uint32_t end;
    uint32_t axis;     /* loops; AS: DLC_NO_AXIS */
    uint32_t stage;    /* LEAF; AS: the stage whose tile's elements it runs over */
    int64_t tile;      /* loops: points per iteration; LANE: lanes of a vector */
    uint32_t count;    /* LANE: vectors a step, each with accumulators of its own where a stage is folded along it */
    uint32_t rows, columns; /* dot: the axes left open as tiles by the loops around; rows may be DLC_NO_AXIS: one row */
    dlc_ids over;      /* dot: reduced axes it runs over itself, outer to inner; `own`: one */
    uint32_t cut;      /* dot: the one of them whose tiles of `part` points, with all axes behind, are summed apart */
    int64_t part;      /* 0: one sum, term by term */
    uint32_t nskipped; /* dot: so many of `over`, from the outermost, go by points at which some row of the tile is no padding */
} dlc_schedule_node;

enum { DLC_ROOT_NODE = 0xffffffffu, DLC_NO_STAGE = 0xffffffffu, DLC_MOST_AHEAD = 64 };

/* A part of a copy's layout, outer to inner: axes that are one number, the quotient or (inner) remainder of it by block. */
typedef struct {
    dlc_ids axes;
    int32_t block; /* >= 1 */
    int32_t pad;   /* elements between the end of the axis and its next beginning; of dealt copies */
    uint8_t inner;
} dlc_copy_part;

/* An operand that is stored before it is read. */
typedef struct {
    const char *name;
    uint32_t stage;      /* its reader */
    const char *operand; /* how it is written: the name of a buffer or stage, "left" or "right" */
    uint32_t copy;       /* the stage that stores it, or DLC_NO_STAGE: a constant, laid out at compile time */
    dlc_vec(dlc_copy_part) parts; /* none: as the axes come */
} dlc_schedule_copy;

/* An axis of copies that counts the points of a sum of other axes, such as the pixels that a window's taps meet: 2*oh + kh. */
typedef struct {
    uint32_t axis;
    dlc_ids axes;
    dlc_vec(int64_t) steps; /* >= 1, by axis; some are 1 */
} dlc_schedule_window;

/* Where a stage's value is (ir/schedule/home.c), by stage of the schedule's kernel. */
typedef struct {
    uint32_t leaf;   /* its node */
    uint32_t fold;   /* the outermost loop over an axis it reduces, or DLC_ROOT_NODE: none */
    uint32_t at;     /* the loop in each of whose iterations the memory is taken, or DLC_ROOT_NODE: once per unit */
    uint8_t place;   /* dlc_place */
    uint8_t is_read;
    dlc_layout layout; /* SCRATCH: of the region, dimensions in the order of the stage's axes; no parts: `stride` */
    dlc_expr *stride;  /* SCRATCH: elements from point to point, by axis of the stage */
    dlc_expr *first, *size; /* by axis of the stage: the region that is kept; in `first` an axis stands for the first point
                               of its open tile */
    dlc_expr bytes;  /* SCRATCH: how many */
    dlc_expr offset; /* SCRATCH: where in the unit's scratch */
    uint32_t takes;  /* SCRATCH: the stage whose elements are overwritten by its own, or DLC_NO_STAGE: it has memory to itself */
    uint32_t stored; /* OUTPUT: the stage in whose place in a buffer it lies; BUFFER: itself */
} dlc_home;

/* What a loop runs over that does not lie inside another over its axis: `first` as in dlc_home. */
typedef struct {
    dlc_expr first, size;
} dlc_schedule_range;

/* Nodes [first, end), right inside of the parallel loops, that fill scratch for units which differ in the innermost `npars` of these alone;
 * first == end: there are none. */
typedef struct {
    uint32_t first, end, npars;
} dlc_kept;

typedef struct dlc_schedule {
    dlc_arena *arena;
    const dlc_target *target;
    dlc_kernel *kernel; /* the schedule's own */
    uint32_t nstages;   /* of the kernel given */
    dlc_vec(dlc_ids) flats; /* axes that became one, and that one behind them */
    dlc_vec(dlc_schedule_window) windows;
    dlc_vec(dlc_schedule_copy) copies;
    dlc_vec(dlc_schedule_node) nodes;
    dlc_ids open;       /* while it is built: nodes not closed */
    uint8_t keeps;      /* while it is chosen: whatever can be kept is */
    uint32_t part;      /* the axis of copies that counts the parts of a factor, or DLC_NO_AXIS: none has been asked for */
    int64_t grain;      /* fewest units worth a thread of their own */
    uint32_t threads;   /* CUDA: of the block that a unit is; 0: a unit is a warp */
    dlc_home *homes;    /* by stage; this and what follows after dlc_schedule_resolve */
    dlc_schedule_range *ranges; /* by node */
    dlc_expr scratch;   /* bytes per thread; with `kept` the first DLC_TAG_BYTES say what it was filled for */
    dlc_kept kept;
} dlc_schedule;

/* --- building (ir/schedule/build.c) --- */

dlc_schedule *dlc_schedule_create(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena);
/* Neighbouring axes, outer to inner, become one for good, wherever a stage has all of them. One axis: itself. */
uint32_t dlc_schedule_flatten(dlc_schedule *schedule, const dlc_ids *axes);
/* The axis `part` of copies of a factor in parts (operands parts_left and parts_right, which name nothing before): made once. */
uint32_t dlc_schedule_part_axis(dlc_schedule *schedule);
/* The axis that counts the points of steps[0]*axes[0] + steps[1]*axes[1] + … (ir/schedule/window.c): made once. Steps are 1 or more, and some are 1. */
uint32_t dlc_schedule_window_axis(dlc_schedule *schedule, const dlc_ids *axes, const int64_t *steps);
/* The value depends on the axes through that sum alone. */
int dlc_schedule_counts(dlc_schedule *schedule, dlc_expr value, const dlc_ids *axes, const int64_t *steps);
/* What an axis made of several is called, by the names that texts use: there an axis may be told apart from a symbol of its name, and the text
 * is to give the same. */
const char *dlc_schedule_joined_name(const dlc_schedule *schedule, const dlc_ids *axes);
/* The window that the axis counts, or NULL. */
const dlc_schedule_window *dlc_schedule_window_of(const dlc_schedule *schedule, uint32_t axis);
/* The value with those of the axes that count windows in place of the sums they count; 0: it depends on what is added up in other ways, too. */
dlc_expr dlc_schedule_windowed(dlc_schedule *schedule, dlc_expr value, const dlc_ids *axes);
/* The point of such an axis, or of any other, in the reader's axes. */
dlc_expr dlc_schedule_point_of(const dlc_schedule *schedule, uint32_t axis);
/* The expression `operand`, a part of the stage's value, becomes a stage of its own over those of the axes (kept and reduced
 * ones of the reader, and windows of such that it can be written in) that it depends on, in this order. Returns the stage. */
uint32_t dlc_schedule_copy_add(dlc_schedule *schedule, const char *name, uint32_t stage, const char *operand, dlc_expr value,
                               const dlc_ids *axes);
/* A load of a constant in `stage`, or that of an operand's parts, is laid out at compile time. False when the layout is none of the constant's elements:
 * nothing has changed. */
int dlc_schedule_pack(dlc_schedule *schedule, const char *name, uint32_t stage, dlc_expr load, const dlc_copy_part *parts,
                      uint32_t nparts);
void dlc_schedule_open(dlc_schedule *schedule, dlc_loop_kind kind, uint32_t axis, int64_t tile); /* a loop; see close */
void dlc_schedule_open_lane(dlc_schedule *schedule, uint32_t axis, int64_t width, uint32_t count);
void dlc_schedule_open_as(dlc_schedule *schedule, uint32_t stage);
void dlc_schedule_leaf(dlc_schedule *schedule, uint32_t stage, dlc_place place);
void dlc_schedule_dot(dlc_schedule *schedule, uint32_t stage, dlc_dot row, uint32_t rows, uint32_t columns,
                      const dlc_ids *over, dlc_place place);
/* In lanes: each lane's own sum of products over the axis, by the row's granules: `sum = dot vdpbf16ps over [kw]`. */
void dlc_schedule_own_dot(dlc_schedule *schedule, uint32_t stage, dlc_dot row, uint32_t over, dlc_place place);
/* The sum of the dot just added is one of partial sums: of `part` points of the axis and all axes behind it each. */
void dlc_schedule_dot_cut(dlc_schedule *schedule, uint32_t axis, int64_t part);
void dlc_schedule_close(dlc_schedule *schedule, uint32_t n); /* the n innermost loops */
/* The operand of the stage by that name: the one load of a buffer or stage, or a factor of its contraction. 0: none, or not
 * one alone. */
dlc_expr dlc_schedule_operand(dlc_schedule *schedule, uint32_t stage, const char *operand);
/* How that operand is written. */
const char *dlc_schedule_operand_name(dlc_schedule *schedule, uint32_t stage, dlc_expr value);
/* A factor that is made of a byte, as an i16: operands wide_left and wide_right. 0: it is made of another type. */
dlc_expr dlc_schedule_widened(dlc_pool *pool, dlc_expr factor);
/* The load of a factor's parts by the axis `part`: operands parts_left and parts_right. 0: it has none, or there is no such axis. */
dlc_expr dlc_schedule_parts(const dlc_schedule *schedule, dlc_expr factor);

/* --- what follows from the tree (ir/schedule/home.c) --- */

/*
 * Verifies the tree (ir/schedule/verify.c) and finds homes, regions and scratch. DLC_INVALID with a sentence that names stage
 * and loop; the schedule cannot be used then.
 */
DLC_NODISCARD dlc_status dlc_schedule_resolve(dlc_schedule *schedule, dlc_diag *diag);
/* The loop around node n, or DLC_ROOT_NODE. */
uint32_t dlc_schedule_parent(const dlc_schedule *schedule, uint32_t n);
/* The loop over whose iterations a leaf can read ahead: the one around its lanes; in `as` the one that cuts the tile's rows. DLC_ROOT_NODE: none. */
uint32_t dlc_schedule_ahead_loop(const dlc_schedule *schedule, uint32_t leaf);
/* True when node n is `around` or lies inside it; everything lies inside DLC_ROOT_NODE. */
int dlc_schedule_is_inside(const dlc_schedule *schedule, uint32_t n, uint32_t around);
/* The innermost loop over the axis among `from` and the loops around it, or DLC_ROOT_NODE. */
uint32_t dlc_schedule_loop_over(const dlc_schedule *schedule, uint32_t from, uint32_t axis);
/* Points of a loop that leaves no tile open: its axis' constant extent, or the tile that a loop around leaves; -1: only a run knows. */
int64_t dlc_schedule_most_points(const dlc_schedule *schedule, uint32_t loop);
/* The loop that cuts the dot leaf's rows (columns) into tiles, or DLC_ROOT_NODE: one row. */
uint32_t dlc_schedule_rows(const dlc_schedule *schedule, uint32_t leaf);
uint32_t dlc_schedule_columns(const dlc_schedule *schedule, uint32_t leaf);
/* Units of parallel work and scratch bytes per thread: i64 expressions over the schedule's kernel's symbols. */
/* `kernel`: the schedule's, or a copy of it; its pool grows. */
dlc_expr dlc_schedule_units(dlc_kernel *kernel, const dlc_schedule *schedule);
dlc_expr dlc_schedule_scratch(const dlc_schedule *schedule);
enum { DLC_TAG_BYTES = 64 };
/* Finds what is kept (ir/schedule/kept.c), or makes it so; of a schedule whose homes and ranges are found. DLC_INVALID: what is to be kept
 * cannot be. */
DLC_NODISCARD dlc_status dlc_schedule_keep(dlc_schedule *schedule, dlc_diag *diag);
dlc_expr dlc_loop_count(dlc_kernel *kernel, uint32_t axis, int64_t tile); /* ceil(extent / tile) */
/* Neighbours that one thread of a warp has in a vector (CUDA; else 1). */
uint32_t dlc_schedule_pack_of(const dlc_schedule *schedule);

/* may: by buffer of the kernel, whether its memory may be that of buffer `written`, when nobody reads it afterwards
 * (ir/schedule/in_place.c). Homes are known; the kernel's pool grows. */
void dlc_schedule_find_in_place(const dlc_schedule *schedule, uint32_t written, uint8_t *may);

/* --- dealt loops (ir/schedule/deal.c) --- */

/* The outermost of the loops of n's kind, WARP or THREAD, of which each holds the next alone, down to n; n if it is no such. */
uint32_t dlc_schedule_deal(const dlc_schedule *schedule, uint32_t n);
/* The innermost of them, from the outermost on. */
uint32_t dlc_schedule_deal_end(const dlc_schedule *schedule, uint32_t outer);
/* The innermost WARP or THREAD loop among n and those around it, or DLC_ROOT_NODE. */
uint32_t dlc_schedule_deal_around(const dlc_schedule *schedule, uint32_t n);
/* The stage's memory is a warp's own: each of the block's warps has as much. */
int dlc_schedule_is_of_warp(const dlc_schedule *schedule, uint32_t stage);
/* The thread loop right around the leaf, or around the lanes or `as` that hold it, or DLC_ROOT_NODE. */
uint32_t dlc_schedule_thread_of(const dlc_schedule *schedule, uint32_t n);
/* Iterations of a dealt loop over whole tiles, or -1: not known. Ranges are. */
int64_t dlc_schedule_trips(const dlc_schedule *schedule, uint32_t n);
/* The thread loops from `outer` on hold copies into shared memory alone, few enough to write out. Ranges are known. */
int dlc_schedule_is_copying(const dlc_schedule *schedule, uint32_t outer);
/* The stage is one of such copies: all of it is there, 0 where its axes end. */
int dlc_schedule_is_filled(const dlc_schedule *schedule, uint32_t stage);
/* The node is a register tile of a warp's, or runs over one. */
int dlc_schedule_is_matrix(const dlc_schedule *schedule, uint32_t n);
/* The leaf's row is of family TILE. */
int dlc_schedule_is_tile(const dlc_schedule *schedule, uint32_t leaf);
/* Rows that a tile register of the leaf's has: the fewest registers that hold the tile share it equally. */
uint32_t dlc_schedule_register_rows(const dlc_schedule *schedule, uint32_t leaf);
/* The axis of the loop is known, and it and the loops around it are whole tiles of it: each begins at a multiple. */
int dlc_schedule_has_whole_tiles(const dlc_schedule *schedule, uint32_t loop);
/* Neighbouring columns that a vector of the register tile has. */
uint32_t dlc_schedule_dot_lanes(const dlc_schedule *schedule, uint32_t leaf);
/* The same of the tile's last panel, which has `left` columns: half of a vector's where they fill no more, half of that again. */
uint32_t dlc_schedule_rest_lanes(const dlc_schedule *schedule, uint32_t leaf, int64_t left);
enum { DLC_MOST_PIECES = 16 }; /* iterations of a deal that one thread runs written out */

/* --- rows of dot.def (ir/schedule/rows.c) --- */

/* The fact for which the target has the row's instruction; 0: it has none. */
uint32_t dlc_dot_fact(const dlc_target *target, dlc_dot row);
/* Multiplications and additions that it does by the instruction in a microsecond, those of all parts counting as one; 0: not measured. */
double dlc_dot_rate(const dlc_target *target, dlc_dot row);
/* Products in a cycle, by the instruction on tile registers: as measured, or 16 granules of 16 rows and 16 columns in 16 cycles; 0: the row has
 * none there. */
double dlc_dot_products_in_tiles(const dlc_target *target, dlc_dot row);
/* Products that one of two factors takes: of their parts, where they have such. */
uint32_t dlc_dot_pairs(dlc_dot row);
/* Rows that a product of two activations has at least where copying its columns into granules pays. */
enum { DLC_LEAST_COPIED_FOR = 32 };
/* It has, and multiplies faster by it than by floats as far as its machine was measured: there are processors whose vdpbf16ps is slower. */
int dlc_dot_pays(const dlc_target *target, dlc_dot row);
/* The row by which the target multiplies 16 bits by pairs: of one instruction, or of two; NONE: it has neither. */
dlc_dot dlc_dot_of_words(const dlc_target *target);
/* Products of a lane in the time of one multiply-add. */
double dlc_dot_products(dlc_dot row);
/* Registers hold a tile's sums twice, as parts and as totals, beside a point's columns and one of its rows' elements. All in registers. */
static inline int dlc_dot_keeps_totals(const dlc_target *target, uint32_t rows, uint32_t vectors)
{
    return 2 * rows * vectors + vectors + 1 < target->vector_registers;
}
typedef struct {
    dlc_expr rows, columns; /* the factors in the row's own types, or narrower ones, without casts */
    dlc_expr shift;         /* columns that are codes of few bits: `columns` are bytes, the codes and(shr(columns, shift), mask) */
    uint32_t mask;          /* 0: they are none */
    uint8_t is_swapped;     /* the columns' factor is the row's a */
    uint8_t is_flipped;     /* the rows' factor has the other signedness */
    uint8_t rows_part, columns_part; /* of a row with parts: `rows` and `columns` load the first part; the index that counts them */
} dlc_dot_operands;
/* The row that adds up products of bytes lane by lane, where the stage is a sum, the value such a product, and the target has one; or
 * DLC_DOT_NONE. */
dlc_dot dlc_dot_of_bytes(const dlc_target *target, const dlc_pool *pool, const dlc_stage *stage, dlc_expr value, dlc_dot_operands *operands);
/* The loads x[…, 0, …], x[…, 1, …], x[…, 2, …] of the sum of their casts, in whatever order it adds them, which differ in the index
 * *dim alone. False: the factor is no such sum. */
int dlc_dot_parts(const dlc_pool *pool, dlc_expr factor, dlc_expr parts[DLC_PARTS], uint8_t *dim);
/* The load of another part: a number of it, or an axis. */
dlc_expr dlc_dot_part(dlc_pool *pool, dlc_expr load, uint8_t dim, dlc_expr part);
/* The factor in the row's own type, of several parts the first; 0: it is not one that the row takes. */
dlc_expr dlc_dot_factor(dlc_dot row, const dlc_pool *pool, dlc_expr factor);
/* The row takes bytes of the type, as 16 bits. */
int dlc_dot_widens(dlc_dot row, dlc_dtype dtype);
/* The codes of each byte are in it, and all columns and all of a granule have the same part of theirs. */
int dlc_dot_unpacks(dlc_kernel *kernel, const dlc_dot_operands *operands, uint32_t columns, uint32_t within);
/* The stage's value, as given, is a product that lanes may add up by granules of the row, each for itself: operands without casts. */
int dlc_dot_takes_own(dlc_dot row, const dlc_pool *pool, const dlc_stage *stage, dlc_expr value, dlc_dot_operands *operands);
/* False: the row takes no factors of these types. */
int dlc_dot_takes(dlc_dot row, const dlc_pool *pool, dlc_expr rows, dlc_expr columns, dlc_dtype acc, dlc_dot_operands *result);
/* The contraction of a dot leaf: the factors of its rows and columns, as they stand and as the leaf's row takes them, and what is free of
 * both, or 0. False: it is none, or the row does not take it. */
typedef struct {
    dlc_expr rows, columns, scale;
    dlc_dot_operands operands;
} dlc_dot_factors;
int dlc_dot_factors_of(dlc_kernel *kernel, const dlc_schedule_node *leaf, dlc_arena *arena, dlc_dot_factors *result);
/* What is true wherever the rows' factor, which is a copy of what is padded with zeros, is no padding: of axes of the leaf's stage, and of
 * reduced ones those which nskipped counts. 0: the factor is no such copy, or the leaf skips nothing. arena: of the caller, since threads
 * that compile kernels of one module share the schedules'. */
dlc_expr dlc_dot_inside(dlc_kernel *kernel, const dlc_schedule *schedule, const dlc_schedule_node *leaf, dlc_arena *arena);
/* A load, of the leaf's rows or columns: a granule along the innermost axis the leaf runs over is together, and granules of
 * neighbouring columns follow each other. Homes are known. */
int dlc_dot_has_granules(dlc_schedule *schedule, uint32_t leaf, dlc_expr load, int is_columns);

/* --- tables and short rows --- */

enum { DLC_LOOKUP = 256 }; /* elements of a table that bytes are looked up in */
/* The byte (u8) at which the load reads a table of as many bytes, where the target looks up lanes of them at once; or 0. */
dlc_expr dlc_looked_up(const dlc_target *target, const dlc_kernel *kernel, dlc_expr load);
/* How long a row of elements of 32 bits may be for `width` lanes to pick theirs from registers that hold all of it; 0: they cannot. */
uint32_t dlc_longest_row(const dlc_target *target, uint32_t width);

/* A loop of vectors is cut where an index turns (ir/schedule/turns.c). A piece of this share of a vector or less goes by points, if a map is all
 * there is in the loop. */
enum { DLC_BORDER = 4 };

/* --- what code of a schedule needs --- */

/* Vectors of 16 floats are rounded to bf16 by an instruction of DLC_HAS_BF16. */
int dlc_rounds_bf16(const dlc_target *target);
/* Whether the stage may go by lanes along the axis: of a scatter only rows do, and on CPUs; else it stores one element after the other. */
int dlc_goes_by_lanes(const dlc_target *target, const dlc_kernel *kernel, const dlc_stage *stage, uint32_t axis);
/* Elements of which squares are turned in registers: no wider than the lanes, and no masks. */
int dlc_is_turnable(dlc_dtype dtype);
/* Elements of which rows of a register tile are turned as they are stored: as wide as lanes are, or made of these at last, where masks of so
 * narrow ones are registers. */
int dlc_turns_rows(const dlc_target *target, dlc_dtype dtype);
/* It has the row `scale` of expr.def: vscalefps. */
int dlc_scales(const dlc_target *target);
/* Four vectors of 16 bytes become lanes of four by one instruction. */
int dlc_interleaves_at_once(const dlc_target *target);
/* Facts whose instructions code of the schedule may have: those of its rows, of products of bytes, of granules that are put together, of
 * tables and of rounding. What the target has besides is not asked of the machine that runs it. */
uint32_t dlc_schedule_facts(const dlc_schedule *schedule, dlc_arena *scratch);
/* The fact whose rate (dlc_machine's ops_per_us) bounds the schedule's arithmetic, by its name: that of its rows, or "fma"; "" on a
 * device, whose rates are not a processor's. */
const char *dlc_schedule_peak(const dlc_schedule *schedule);

/* --- text --- */

void dlc_schedule_print(const dlc_schedule *schedule, dlc_str *out);
/*
 * Reads `schedule TARGET … { … }` for this kernel, resolved. Its target must be `target`, unless that is NULL.
 * DLC_INVALID with the line of what is wrong.
 */
DLC_NODISCARD dlc_status dlc_schedule_parse(const char *text, const dlc_kernel *kernel, const dlc_target *target,
                                            dlc_arena *arena, dlc_diag *diag, dlc_schedule **result);
/* The same within a larger text, whose present token is `schedule`; NULL after a failure, which the lexer has. */
dlc_schedule *dlc_schedule_parse_inside(dlc_lexer *lex, const dlc_kernel *kernel, const dlc_target *target,
                                        dlc_arena *arena);
#endif

/*
 * The loop nest and expression walker shared by all targets. A target is a table of a dozen functions (dlc_emitter); the nest
 * decides where each expression is computed: once, in the outermost open loop on whose axes it depends, so hoisting and
 * address arithmetic need no later pass.
 *
 * Values are elements at a width: 1 (uniform: the same for all lanes) or the schedule's width (one per lane). A lane context
 * says which axis runs along the lanes: lane l of a vector is the point axis = base + l.
 */
#ifndef DLC_CODEGEN_NEST_H
#define DLC_CODEGEN_NEST_H

#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"

typedef struct dlc_val_opaque *dlc_val; /* a target's value; NULL: none */
typedef struct dlc_var_opaque *dlc_var; /* a target's mutable variable */

typedef struct dlc_nest dlc_nest;
typedef struct dlc_turned_rows dlc_turned_rows;
struct dlc_late;
typedef struct dlc_emitter dlc_emitter;
typedef struct dlc_waiting dlc_waiting; /* a store that its neighbour's may join */

/* Memory a kernel touches: its buffers, its scratch, or a target's constant filled with one value (for guarded loads). */
typedef enum { DLC_MEM_BUFFER, DLC_MEM_SCRATCH, DLC_MEM_FILL } dlc_mem;

typedef enum { DLC_ACCESS_UNIFORM, DLC_ACCESS_VECTOR, DLC_ACCESS_SPREAD, DLC_ACCESS_GATHER, DLC_ACCESS_LOOKUP } dlc_access_mode;

typedef struct {
    uint8_t mem;       /* dlc_mem: BUFFER or SCRATCH */
    uint8_t mode;      /* UNIFORM: one element; VECTOR: `width` contiguous ones; SPREAD: lanes share a few contiguous ones; GATHER: one
                          offset per lane; LOOKUP: the same, of a table of DLC_LOOKUP elements of a byte, where the target has VBMI */
    uint8_t aligned;   /* VECTOR: the address is a multiple of the vector's size */
    uint8_t nontemporal; /* stores: what is written need not stay in caches */
    uint32_t multiple; /* VECTOR: offset + disp is a multiple of so many elements */
    uint32_t granule;  /* elements that are one value, the bits of an i32, of an i16 where they are two bytes; 0: each is one */
    uint32_t buffer;   /* BUFFER */
    dlc_val bytes;     /* SCRATCH: byte offset of the region (i64, uniform) */
    dlc_dtype dtype;
    uint32_t width;
    dlc_val offset;    /* elements; i64, uniform, or per lane for GATHER; may be NULL (0); LOOKUP: u8 per lane */
    uint32_t stride;   /* GATHER: lanes lie so many elements apart, from `first` (uniform) on; 0: anywhere */
    dlc_val first;
    uint32_t row;      /* GATHER, SPREAD: `offset` is uniform, and so many elements from there on are there */
    dlc_val pick;      /* GATHER: which of the row each lane takes */
    const uint8_t *numbers; /* SPREAD: the same; the row has at most `width` */
    int64_t disp;      /* further elements, constant */
    dlc_val inside;    /* uniform bool: false reads a fill of `fill` instead; NULL: always true */
    dlc_scalar fill;
    dlc_val mask;      /* per lane bool: lanes off touch nothing (loads: give `passthru` or 0); NULL: all on */
    dlc_val passthru;
} dlc_access;

/* Registers of tiles, by number: their rows and bytes of a row; i64, uniform. */
typedef struct {
    uint32_t n;
    dlc_val rows[DLC_TILES], bytes[DLC_TILES];
} dlc_tile_shape;

/* Of CPUs: rows of dot.def whose family is TILE. */
typedef struct {
    /* Memory of the function, at a multiple of 64 bytes, and a vector in it from an element on. */
    dlc_var (*block_new)(dlc_emitter *e, dlc_dtype dtype, uint32_t elements);
    dlc_val (*block_get)(dlc_emitter *e, dlc_var block, dlc_dtype dtype, uint32_t width, dlc_val index);
    void (*block_set)(dlc_emitter *e, dlc_var block, dlc_val index, dlc_val value);
    int (*has)(const dlc_emitter *e, dlc_dot row); /* the row's instruction; what follows is there then */
    /* From here on registers are of this shape, and lose what they had; end: of the kernel's. */
    void (*shape)(dlc_emitter *e, dlc_dot row, const dlc_tile_shape *shape);
    void (*end)(dlc_emitter *e);
    void (*zero)(dlc_emitter *e, uint32_t tile);
    void (*load)(dlc_emitter *e, uint32_t tile, const dlc_access *access, int64_t row_bytes); /* access: of one element */
    void (*move)(dlc_emitter *e, uint32_t tile, dlc_var block, int64_t at_byte, int64_t row_bytes, int is_store);
    void (*multiply)(dlc_emitter *e, dlc_dot row, uint32_t sums, uint32_t a, uint32_t b);
} dlc_tile_emitter;

/*
 * What a target provides. Every function emits at the current position; `position` moves it to the end of an outer level
 * (0: function entry; level k: inside the k-th open loop or branch) and back. All operands of arith are at `width`.
 */
struct dlc_emitter {
    const dlc_target *target;
    uint8_t passes_caches; /* nontemporal stores do, and wait for memory */
    uint8_t selects; /* a comparison and a choice are one instruction, max and min, which mind NaN, are several */
    uint8_t shuffles; /* loads of lanes at equal, small distances, or of few elements for many lanes, want to know which */
    dlc_val (*konst)(dlc_emitter *e, dlc_dtype dtype, dlc_scalar value, uint32_t width);
    dlc_val (*arith)(dlc_emitter *e, dlc_expr_op op, dlc_dtype from, dlc_dtype to, uint32_t width, const dlc_val *args);
    dlc_val (*splat)(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width);
    dlc_val (*iota)(dlc_emitter *e, uint32_t width);              /* i64 0, 1, … */
    /* lane l gets lane (l + by) mod width */
    dlc_val (*rotate)(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width, uint32_t by);
    /* one lane of a vector as a uniform value */
    dlc_val (*lane)(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width, uint32_t lane);
    /* a square of elements of 32 bits: lane l of columns[c] is lane c of rows[l]; width is a power of two. The function may be absent. */
    void (*turn)(dlc_emitter *e, uint32_t width, const dlc_val *rows, dlc_val *columns);
    /* where schedules have a pack: the vector, of width / pack, of every thread's element `part` */
    dlc_val (*part)(dlc_emitter *e, dlc_val value, uint32_t part);
    dlc_val (*symbol)(dlc_emitter *e, uint32_t symbol);           /* i64 */
    dlc_val (*load)(dlc_emitter *e, const dlc_access *access);
    /* What a load there will read soon comes nearer, to L2; an address behind the end does no harm. The function may be absent. */
    void (*fetch)(dlc_emitter *e, const dlc_access *access);
    void (*store)(dlc_emitter *e, const dlc_access *access, dlc_val value);
    /* A vector that is stored by store_held, with the one right behind it in memory or, where `next` is NULL, alone; or by store_woven, with
     * others whose lanes lie in turns with its own: lane l of held[k] at l * n + k behind where held[0] begins. All may be absent. */
    dlc_waiting *(*hold)(dlc_emitter *e, const dlc_access *access, dlc_val value);
    void (*store_held)(dlc_emitter *e, dlc_waiting *held, const dlc_access *next, dlc_val value);
    void (*store_woven)(dlc_emitter *e, uint32_t n, dlc_waiting *const *held);
    /* A vector of bytes that rounding makes, for which several together take fewer instructions; NULL: it is none. store_packed: up to
     * DLC_MOST_PACKED of one stage; joins[k]: held[k + 1] is right behind held[k] in memory. They may be absent. */
    dlc_waiting *(*hold_byte)(dlc_emitter *e, const dlc_access *access, dlc_val value);
    void (*store_packed)(dlc_emitter *e, uint32_t n, dlc_waiting *const *held, const uint8_t *joins);
    dlc_var (*var_new)(dlc_emitter *e, dlc_dtype dtype, uint32_t width);
    /* the same where it is seldom needed: it lies in memory and leaves the registers to others. The function may be absent. */
    dlc_var (*var_aside)(dlc_emitter *e, dlc_dtype dtype, uint32_t width);
    dlc_val (*var_get)(dlc_emitter *e, dlc_var var);
    void (*var_set)(dlc_emitter *e, dlc_var var, dlc_val value);
    /* for (i = lo; i < hi; i += step); returns i. Values are i64 and uniform. */
    dlc_val (*loop_begin)(dlc_emitter *e, dlc_val lo, dlc_val hi, int64_t step);
    void (*loop_end)(dlc_emitter *e);
    void (*if_begin)(dlc_emitter *e, dlc_val condition);
    void (*if_end)(dlc_emitter *e);
    void (*position)(dlc_emitter *e, uint32_t level);
    /* acc and, to each lane, its granule of a times that of b, by the instruction of a row of dot.def; a, b: i32. NULL: the
     * target has none. The function may be absent. */
    dlc_val (*dot_step)(dlc_emitter *e, dlc_dot row, uint32_t width, dlc_val a, dlc_val b, dlc_val acc);
    /* Of n vectors of elements of a row's factor those of each lane together, as the bits of one i32; NULL stands for zeros. The
     * function may be absent. */
    dlc_val (*interleave)(dlc_emitter *e, dlc_dtype dtype, uint32_t width, uint32_t n, const dlc_val *elements);
    /* Two bytes of dtype, the bits of an i16, as two elements of 16 bits, those of an i32: for rows that take such granules. */
    dlc_val (*widen)(dlc_emitter *e, dlc_dtype dtype, uint32_t width, dlc_val bytes);
    const dlc_tile_emitter *tiles;
    /* Four matrices of 8 x 8 elements of 16 bits, whose rows lie where the lanes of a warp say, spread over its lanes; and sums of a
     * matrix of 16 x 8, two of its rows to a lane, and the product of two such, by a row of dot.def whose family is WARP. */
    void (*matrices)(dlc_emitter *e, const dlc_access *access, int is_transposed, dlc_val *result);
    void (*multiply)(dlc_emitter *e, dlc_dot row, const dlc_val *a, const dlc_val *b, dlc_var top, dlc_var bottom);
    /* What lanes stored so far is visible to all of them: of a warp, or threads of a whole block. */
    void (*sync)(dlc_emitter *e, int is_block);
    /* Where schedules have thread loops: the number of the thread (kind THREAD) in its block, or of its warp (WARP): i64. */
    dlc_val (*worker)(dlc_emitter *e, dlc_loop_kind kind);
    /* From here on each thread is a point of its own (THREAD), or each warp (any other kind). */
    void (*deal)(dlc_emitter *e, dlc_loop_kind kind);
    /* Records that an index was out of range when any lane of `bad` (bool) is true. */
    void (*fault)(dlc_emitter *e, dlc_val bad, uint32_t width);
};

typedef struct {
    dlc_val value, splat;     /* splat: the value at splat_width, once asked for */
    uint32_t level, instance; /* valid while that level's loop instance is open */
    uint16_t width, splat_width;
    uint8_t set;
} dlc_memo;

typedef struct {
    uint32_t instance;
} dlc_level;

enum { DLC_MAX_LEVELS = 64 };

/* An axis of the kernel whose loop has left a tile open: points [first, last). last 0: none is, or the axis is bound. */
typedef struct {
    dlc_expr first, last;
} dlc_tile;

enum { DLC_MAX_ROWS = 64, DLC_MAX_VECTORS = 32 };

/* The tile that a loop leaves open for register tiles, as rows or as columns. */
typedef struct {
    uint32_t n;                    /* rows, or vectors */
    uint32_t lanes;                /* columns: of each vector; 0: those that the schedule has */
    dlc_expr points[DLC_MAX_ROWS]; /* rows: each one's point */
    dlc_expr first;                /* columns: the first one */
    int64_t count;                 /* columns: how many there are; 0: only the run knows */
    dlc_expr end;                  /* of a thread's tile: where the axis ends within it, or 0: behind it */
    dlc_val masks[DLC_MAX_VECTORS]; /* columns: lanes that exist, by vector; NULL: all */
} dlc_register_axis;

/* x floordiv `by` and what is left (codegen/quotient.c), computed of those of x - 1, whose quotient is `before`, or 0: by a division. */
typedef struct {
    dlc_expr x, by, quotient, rest, before;
} dlc_quotient;

/* Vectors that are stored together (codegen/held.c). */
enum { DLC_MOST_PACKED = 4, DLC_MOST_HELD = 32 };
typedef struct {
    uint32_t n; /* that wait: of one, for its neighbour, or of packed ones */
    uint32_t width; /* of each */
    uint8_t are_packed;
    dlc_waiting *store[DLC_MOST_HELD];
    dlc_expr offset[DLC_MOST_HELD]; /* of the first element */
} dlc_held;

/* What may wait: nothing; bytes that are made together; all bytes of a tile, whose rows come vector by vector, each in a register that its sum
 * leaves; or, where neighbours are stored one after the other, these and bytes. */
typedef enum { DLC_HOLD_NONE, DLC_HOLD_BYTES, DLC_HOLD_TILE, DLC_HOLD_NEIGHBOURS } dlc_hold;

/* A stage while it is computed, and where its value is found in registers. */
typedef struct {
    dlc_memo value[2];  /* REG, or what was just stored: valid as memos are */
    dlc_var (*acc)[2];  /* a fold's accumulators, by partial */
    dlc_var (*total)[2]; /* of a long sum, by partial: its parts so far, and what rounding has put too much into it; or NULL */
    dlc_dtype dtype[2]; /* of these */
    uint32_t npartials, width;
    uint8_t drops_nan;  /* a fold that may lose one (ir/kernel/nan.h) */
    uint32_t lane;      /* the reduced axis along the lanes, or DLC_NO_AXIS */
    dlc_var *tile;      /* a register tile: [row][vector] */
    dlc_var block;      /* one in tile registers: where they leave it, `pitch` elements from row to row */
    uint32_t pitch;
    uint8_t is_padded;  /* registers have columns behind the last, which nobody reads */
    dlc_expr row, row_before; /* of it: the row within it that is being visited; what its axis was replaced by before */
    uint32_t nrows, nvectors;
    uint32_t lanes, zero; /* of a register tile: pseudo-axes: the lane within a vector; 0 */
    dlc_var pieces[DLC_MOST_PIECES]; /* of a dealt copy: what this thread has loaded, by iteration of its deal */
    uint8_t is_met;        /* lanes read what other lanes stored */
    uint8_t is_met_within; /* in the stage itself: at earlier points, or of what it updates */
} dlc_stage_state;

struct dlc_nest {
    dlc_kernel *kernel;     /* its pool grows by address arithmetic */
    const dlc_schedule *schedule;
    dlc_emitter *emit;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_ranges ranges;
    uint32_t level;         /* innermost open level */
    uint32_t at;            /* the level that code goes to */
    dlc_level levels[DLC_MAX_LEVELS];
    uint32_t instances;
    dlc_memo *memo;         /* by expression id */
    uint32_t nmemo;
    dlc_vec(dlc_memo) axes;   /* value of each axis, pseudo-axes included */
    dlc_vec(dlc_memo) pseudo; /* values loads of pseudo-sources give (register stages, accumulators) */
    dlc_vec(dlc_interval) axis_ranges; /* by axis, pseudo-axes included: what `ranges` points to */
    dlc_ids axis_extents;
    dlc_vec(int64_t) axis_multiples;
    dlc_ids stack;            /* of the walker */
    dlc_vec(dlc_quotient) quotients; /* that were asked for */
    dlc_ids known;            /* i64 expressions that are not negative in the branch that is open (codegen/jam.c) */
    /* The lane context. */
    uint32_t lane;          /* axis along the lanes, or DLC_NO_AXIS */
    uint32_t lane_base;     /* pseudo-axis: its value at lane 0, uniform */
    uint32_t width;
    dlc_val mask;           /* lanes on, or NULL: all */
    dlc_val first_mask;     /* the mask that has the first `nfirst` lanes on, a number known here; else NULL */
    uint32_t nfirst;
    struct {
        uint32_t base, lane, block;
    } blocks;               /* pseudo-axes for the lane axis as width * block + lane, of lanes with this base */
    /* The tree: by axis of the kernel, by stage. */
    dlc_tile *tiles;
    dlc_expr *with;         /* what an axis is replaced by, or 0 */
    uint32_t nwith;         /* how many are replaced */
    dlc_register_axis **registers;
    dlc_stage_state *states;
    uint32_t node;          /* that is being walked */
    struct {
        uint32_t node, level;
    } open[DLC_MAX_LEVELS]; /* nodes being walked, outer to inner, and the level their present body is at */
    uint32_t nopen;
    uint32_t partial;       /* which of a step's vectors is being computed */
    uint32_t worker[2];     /* where there are thread loops: pseudo-axes: the thread in its block, the warp */
    dlc_turned_rows *rows;  /* stores of the rows of a register tile's vector that wait, or NULL: none does */
    uint8_t holds;          /* dlc_hold: which stores may wait, those at level `held_level` */
    uint32_t held_level;
    dlc_held *held;         /* by stage: what waits */
    uint8_t deal;           /* dlc_loop_kind of the deal being walked, WARP or THREAD; LEAF: none */
    uint32_t *par;          /* by node: pseudo-axis, the number of a parallel loop's tile */
    uint32_t unit;          /* pseudo-axis: the unit's number */
    dlc_expr *firsts;       /* by node: the first point of the tile that the loop has open */
    uint32_t vector;        /* of a register tile whose elements are visited: the one of its row */
    dlc_expr *numbers;      /* by node, of plain loops and those that cut rows: the open tile's number, from 0 in each of its loops */
    uint32_t *tallest;      /* by node that cuts rows: how many its tallest tile has, or 0: the run knows */
    struct dlc_late *late;  /* what is stored a unit later (codegen/late.c), or NULL: nothing is */
};

/* Pseudo-sources: stage sources from here on name entries of nest->pseudo. */
enum { DLC_FIRST_PSEUDO = 0x100000 };

/* A copy whose pool may grow, elementary functions expanded for the target (NULL: for any): what a nest is made for; several threads may
 * copy one kernel. */
dlc_kernel *dlc_nest_private_kernel(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena);
void dlc_nest_init(dlc_nest *nest, dlc_kernel *kernel, const dlc_schedule *schedule, dlc_emitter *emit,
                   dlc_arena *arena, dlc_diag *diag);
/* Stores of vectors between these may wait for others, those that are at this level; end: at it or the one around it. begin: whether it did,
 * so that there is an end to call: not where others wait already. store: true, and this one is stored or waits; false: it may not wait.
 * offset: of its first element, without the access's displacement. */
int dlc_held_begin(dlc_nest *nest, dlc_hold holds, uint32_t level);
int dlc_held_store(dlc_nest *nest, uint32_t stage, const dlc_access *access, dlc_expr offset, dlc_val value);
void dlc_held_end(dlc_nest *nest);
/* Levels. enter: after the target opened a loop or branch. leave: closes it. */
void dlc_nest_enter(dlc_nest *nest);
void dlc_nest_leave(dlc_nest *nest);
dlc_val dlc_nest_loop(dlc_nest *nest, uint32_t axis, dlc_val lo, dlc_val hi, int64_t step); /* binds axis */
void dlc_nest_loop_end(dlc_nest *nest);

uint32_t dlc_nest_axis(dlc_nest *nest, dlc_expr extent);                  /* a pseudo-axis */
uint32_t dlc_nest_stepped_axis(dlc_nest *nest, dlc_expr extent, int64_t step); /* one whose values are multiples of step */
void dlc_nest_bind(dlc_nest *nest, uint32_t axis, dlc_val value, uint32_t width); /* at the current level */
dlc_memo dlc_nest_remember(const dlc_nest *nest, dlc_val value, uint32_t width); /* at the current level */
dlc_expr dlc_nest_pseudo(dlc_nest *nest, dlc_dtype dtype, dlc_val value, uint32_t width); /* a leaf with this value */

/* True when `load` is an unguarded load whose element offset is linear in `axis`. */
int dlc_nest_is_linear(dlc_nest *nest, dlc_expr load, uint32_t axis);

/* Elements between neighbours along `axis` of a load (guarded or not); INT64_MIN: not a load, not constant or not linear. */
int64_t dlc_nest_stride(dlc_nest *nest, dlc_expr load, uint32_t axis);

/* codegen/axes.c: the offset as *stride * axis + *rest, the stride a constant; and the offset at lane 0 where that is so of the lanes of a
 * layout in blocks, or 0. */
int dlc_nest_is_strided(const dlc_nest *nest, dlc_expr offset, uint32_t axis, int64_t *stride, dlc_expr *rest);
/* The offset at lane 0 where lanes lie *stride elements apart, a few, and the target has them by whole vectors; else 0. */
dlc_expr dlc_nest_first_of_stride(dlc_nest *nest, dlc_expr offset, uint32_t *stride);
dlc_expr dlc_nest_first_in_block(dlc_nest *nest, dlc_expr offset, int64_t *stride);
/*
 * Lanes whose elements lie within a vector's length, at the same places in every block of lanes, as those of grouped channels do: lane l
 * reads element numbers[l] of `row` ones that begin at first + disp. has_vectors: the buffer is a number of whole vectors. False: they do
 * not, or the target does not ask.
 */
typedef struct {
    dlc_expr first;
    int64_t disp;
    uint32_t row;
    const uint8_t *numbers;
    int is_whole; /* the row is one of the buffer's vectors: it is there, whichever lanes are off */
} dlc_spread;
/* How many lanes are on, the first ones; 0: only the run knows. */
uint32_t dlc_nest_lanes_on(const dlc_nest *nest);
int dlc_nest_is_spread(dlc_nest *nest, dlc_expr offset, int has_vectors, dlc_spread *spread);
void dlc_nest_terms(const dlc_nest *nest, dlc_expr sum, dlc_ids *terms, int64_t *constant); /* of a sum of i64 */
/* A mask of the lanes below `count`, an i64 whose value fits 32 bits. */
dlc_val dlc_lanes_below(dlc_nest *nest, dlc_val count, uint32_t width);
/* What lanes compute in i64 is computed in 32 bits where it fits (ir/expr/narrow.c): in a CPU's vectors, which have twice as many lanes
 * then. Of CUDA's kernels one type serves all indices. _narrow: what is gathered from, where guards, which may be 0, hold. */
int dlc_nest_is_narrowed(const dlc_nest *nest);
/* By how much an i64 comparison's greater side is greater, not negative exactly where it holds; 0: it is no such comparison. */
dlc_expr dlc_nest_slack(dlc_pool *pool, dlc_expr comparison);
/* The guard without what the open branch knows to hold; 0: nothing is left, or there was none. */
dlc_expr dlc_nest_not_known(dlc_nest *nest, dlc_expr guard);
int dlc_nest_is_known(dlc_nest *nest, dlc_expr expr); /* it is computed, and holds here */
/* What a quotient or remainder is, by those of the number before it, where these are known; 0: it takes a division. */
dlc_expr dlc_nest_next_quotient(dlc_nest *nest, dlc_expr expr);
dlc_expr dlc_nest_narrow(dlc_nest *nest, dlc_expr offset, dlc_expr guard, dlc_expr in_range);
/* What all lanes share of a guard is taken out of it; 0: nothing, or all. Where that is false another address is read: masks cost more,
 * and nothing is touched where no memory may be. */
dlc_expr dlc_nest_split_guard(dlc_nest *nest, dlc_expr *guard);

/* Fetches what the load reads, of memory of which nothing but axes says where: else nothing is done. */
void dlc_nest_fetch(dlc_nest *nest, dlc_expr load, dlc_expr distance); /* so many elements behind the load's, or 0 */

/* The lanes gather what the load reads, elements of 32 bits that are always there, and its neighbours in memory lie along `axis`. */
int dlc_nest_crosses(dlc_nest *nest, dlc_expr load, uint32_t axis);
/* It is read of memory, of neighbours that are there for certain. */
int dlc_nest_is_vector(dlc_nest *nest, dlc_expr load);
/* From here on this is the expression's value, one for each lane. */
void dlc_nest_know(dlc_nest *nest, dlc_expr expr, dlc_val value);

/* The value of an expression; *width is 1 or nest->width. _at: splat to nest->width. _uniform: asserted width 1. */
dlc_val dlc_nest_value(dlc_nest *nest, dlc_expr expr, uint32_t *width);
dlc_val dlc_nest_value_at(dlc_nest *nest, dlc_expr expr);
dlc_val dlc_nest_uniform(dlc_nest *nest, dlc_expr expr);
dlc_val dlc_nest_i64(dlc_nest *nest, int64_t value);

/* Stores the stage's value at an index of its buffer, or at a point of it in scratch, in the current lane context. granule: elements from there
 * on whose bits each lane's value is, an i32; 0: it is one element. */
void dlc_nest_store(dlc_nest *nest, uint32_t stage, const dlc_expr *index, dlc_val value, uint32_t width);
void dlc_nest_store_scratch(dlc_nest *nest, uint32_t stage, const dlc_expr *index, dlc_val value, uint32_t width, uint32_t granule);
/* codegen/update.c: the same of a scatter, whose index may lie outside; access: where it is stored. */
void dlc_nest_update(dlc_nest *nest, const dlc_access *access, const dlc_expr *index, dlc_val value, dlc_update update);
/* A stage's value at a point, in memory: what dlc_nest_store_scratch wrote. */
dlc_expr dlc_nest_reload(dlc_nest *nest, uint32_t stage, const dlc_expr *index);

/* Four matrices: the load, of a stage in scratch, is of the row that the lane names. */
void dlc_nest_matrices(dlc_nest *nest, dlc_expr load, int is_transposed, dlc_val *result);
/* The rows of a tile register from the load's element on, `row_bytes` apart. */
void dlc_nest_tile(dlc_nest *nest, dlc_expr load, uint32_t tile, int64_t row_bytes);
/* What the axis is replaced by from here on; 0: nothing. */
void dlc_nest_replace(dlc_nest *nest, uint32_t axis, dlc_expr with);
/* Expression with each axis of the kernel replaced by with[axis] (0: kept), simplified. */
dlc_expr dlc_nest_substitute(dlc_nest *nest, dlc_expr expr, const dlc_expr *with);
/* The same with nest->with; as it is when nothing is replaced. */
dlc_expr dlc_nest_here(dlc_nest *nest, dlc_expr expr);
/* A region's `first` (see dlc_home), seen from the loop `at`, as an expression over what is bound now. */
dlc_expr dlc_nest_first(dlc_nest *nest, uint32_t at, dlc_expr first);

/* Reductions: identity and combination of accumulators. */
dlc_val dlc_nest_identity(dlc_nest *nest, dlc_reduce reduce, dlc_dtype dtype, uint32_t which, uint32_t width);
void dlc_nest_combine(dlc_nest *nest, dlc_reduce reduce, const dlc_dtype *dtypes, uint32_t width, dlc_val *acc,
                      const dlc_val *value);

/* The whole kernel: units [begin, end) in a loop, in it the tree (codegen/walk.c). */
void dlc_nest_kernel(dlc_nest *nest, dlc_val begin, dlc_val end);
void dlc_walk_children(dlc_nest *nest, uint32_t node);
void dlc_walk_node(dlc_nest *nest, uint32_t node);
/* What a loop runs over: the open tile of its axis, or the region that its stages need. */
typedef struct {
    dlc_expr lo, hi;
    int64_t length; /* or -1: not known */
} dlc_span;
dlc_span dlc_walk_span(dlc_nest *nest, uint32_t node);
/* codegen/written.c: a loop that is written out; and what was computed last in a loop is no value behind it. */
void dlc_walk_written(dlc_nest *nest, uint32_t node);
void dlc_walk_forget(dlc_nest *nest, uint32_t node);
/* Iteration i of it: a point, or what a leaf's own sum takes at once. */
void dlc_walk_enter_written(dlc_nest *nest, uint32_t node, const dlc_span *span, int64_t i);
void dlc_walk_leave_written(dlc_nest *nest, uint32_t node);
/* Long sums are cut: opens a loop over parts of `step` points of the span. Behind a part, between the other two, its sums go to their
 * totals; the last part stays where it is. */
dlc_span dlc_walk_begin_part(dlc_nest *nest, uint32_t node, const dlc_span *span, int64_t step);
void dlc_walk_end_part_begin(dlc_nest *nest, const dlc_span *part, dlc_expr hi);
void dlc_walk_end_part_end(dlc_nest *nest);
/* The children [from, end) of a loop, at the present level. */
void dlc_walk_body(dlc_nest *nest, uint32_t loop, uint32_t from, uint32_t end);
void dlc_walk_sync(dlc_nest *nest);

/* codegen/deal.c: loops dealt to warps or threads, the outermost of a deal; a serial loop whose first copies are loaded ahead. */
void dlc_deal_walk(dlc_nest *nest, uint32_t outer);
int dlc_deal_is_ahead(const dlc_nest *nest, uint32_t loop);
void dlc_deal_walk_ahead(dlc_nest *nest, uint32_t loop);
void dlc_deal_lanes(dlc_nest *nest, uint32_t lane); /* of one thread */
/* What a body does for its thread's iteration of the deal, under the deal's guard. */
typedef void (*dlc_deal_body)(dlc_nest *nest, uint32_t node);
void dlc_deal_open(dlc_nest *nest, uint32_t outer, dlc_deal_body body, uint32_t node);

/* codegen/leaf.c: a stage at the point that is bound; accumulators before and after the outermost loop it is reduced over. */
void dlc_leaf_emit(dlc_nest *nest, uint32_t node);
void dlc_leaf_begin_folds(dlc_nest *nest, uint32_t node);
void dlc_leaf_end_folds(dlc_nest *nest, uint32_t node);
/* How many iterations of the loop are a part of the long sums in it, 0: none are cut here; and where such a part ends. */
int64_t dlc_leaf_part(const dlc_nest *nest, uint32_t node);
void dlc_leaf_end_part(dlc_nest *nest, uint32_t node);
/*
 * Of a lane loop of several vectors a step whose first stage reads where what it has read says: each read for all vectors before the
 * next, so that one does not wait behind the other's chain, which is longer than a processor looks ahead. mask: of the last one, or NULL.
 */
void dlc_leaf_read_together(dlc_nest *nest, uint32_t node, uint32_t nvectors, dlc_val mask);
/* Stores a stage's values where its readers and its buffer are; index: per axis, or NULL: the present point. */
void dlc_leaf_keep(dlc_nest *nest, uint32_t stage, const dlc_val *result, uint32_t width);

/* codegen/late.c: rows past the caches that are stored a unit later. begin, end: before the loop over units and behind it. */
void dlc_late_begin(dlc_nest *nest);
void dlc_late_end(dlc_nest *nest);
/* In place of the loop: what it needs of its unit is kept. False: the loop stores its row itself. */
int dlc_late_keep(dlc_nest *nest, uint32_t loop);
/* The stage is about to overwrite its lanes: what is made of those of the unit before is stored. */
void dlc_late_store(dlc_nest *nest, uint32_t stage);
/* A sum of floats of so many terms that it is made of parts, by the leaf. */
/* acc and a step of the leaf's own sum (codegen/own.c): the points that the loop around it leaves open. */
dlc_val dlc_own_dot(dlc_nest *nest, uint32_t leaf, dlc_val acc);
int dlc_leaf_is_long(const dlc_nest *nest, uint32_t leaf);
/* codegen/jam.c: a loop written out over `count` points around folds that run side by side: behind the last of them (the node behind the
 * loop: there are none), and the walk, from the point lo on. */
uint32_t dlc_jam_end(const dlc_nest *nest, uint32_t loop, int64_t count);
void dlc_jam_walk(dlc_nest *nest, uint32_t loop, dlc_expr lo, int64_t count, uint32_t rest);
/* The same of several vectors of a lane loop that is open; false: nothing in it goes side by side. */
int dlc_jam_vectors(dlc_nest *nest, uint32_t loop, uint32_t nvectors);
/* A loop by tiles that are written out inside, of points that need be no multiple of them: whole tiles, then what is left over. False: it is
 * none. */
int dlc_jam_cut(dlc_nest *nest, uint32_t loop, const dlc_span *span);
/* codegen/kept.c: whether the node is of what units begin with alike; around all of it, a branch where it is not there yet. */
int dlc_kept_has(const dlc_nest *nest, uint32_t node);
void dlc_kept_begin(dlc_nest *nest);
void dlc_kept_end(dlc_nest *nest);
/* codegen/dot.c: a register tile, and what runs over its elements. */
void dlc_dot_emit(dlc_nest *nest, uint32_t node);
void dlc_dot_elements(dlc_nest *nest, uint32_t node);
/* A thread's tile whose sum loops outside cut: its accumulators before the outermost of them; what is kept of them behind it. */
void dlc_dot_begin(dlc_nest *nest, uint32_t node);
void dlc_dot_end(dlc_nest *nest, uint32_t node);
/* codegen/matrix.c: a register tile of a warp's: what of a loop's tile is a lane's; the products of the open tile of K. */
void dlc_matrix_open(dlc_nest *nest, dlc_expr first, int is_columns, dlc_register_axis *open);
void dlc_matrix_multiply(dlc_nest *nest, uint32_t leaf, dlc_expr rows, dlc_expr columns);
/* codegen/granule.c: a row of dot.def without its instruction. Words of so many lanes; element i of each granule, in the accumulator's
 * type, the first having the lowest bits; acc and the product of elements `at`. */
dlc_val dlc_granule_word(dlc_nest *nest, uint32_t width, uint32_t bits);
dlc_expr dlc_granule_load(dlc_pool *pool, dlc_expr load, uint32_t granule); /* by its first point; two bytes are an i16 */
/* Codes of a granule of bytes: and(shr(byte, shift), mask) of each; see dlc_dot_unpacks. */
dlc_expr dlc_granule_codes(dlc_pool *pool, dlc_expr granule, dlc_expr shift, uint32_t mask);
/* The granule that the load is, of the row's own type; operand: what the load was made of, in its type. */
dlc_val dlc_granule_value(dlc_nest *nest, dlc_dot row, dlc_expr load, dlc_expr operand);
dlc_val dlc_granule_element(dlc_nest *nest, uint32_t width, dlc_dtype dtype, dlc_val granule, uint32_t i);
dlc_val dlc_granule_multiply(dlc_nest *nest, dlc_dot row, uint32_t width, dlc_val a, dlc_val b, uint32_t at, dlc_val acc);
/* codegen/tile.c: a register tile in tile registers. open: its block is there. a, b: loads in the row's types, of several parts the first
 * ones, and the indices that count parts; left, right: the factors in the sum's. is_zero: the sum begins at 0, and where the instruction is
 * there (not is_plain) the block needs no beginning. */
typedef struct {
    dlc_expr a, b, left, right;
    uint8_t a_part, b_part;
} dlc_tile_factors;
void dlc_tile_open(dlc_nest *nest, uint32_t leaf, uint32_t width);
int dlc_tile_is_plain(const dlc_nest *nest, uint32_t leaf);
void dlc_tile_multiply(dlc_nest *nest, uint32_t leaf, const dlc_tile_factors *factors, int is_zero);
/* The products are not finite, some element of the block says: bool. And the same products added to the block point by point. */
dlc_val dlc_tile_is_infinite(dlc_nest *nest, uint32_t leaf);
void dlc_tile_multiply_points(dlc_nest *nest, uint32_t leaf, const dlc_tile_factors *factors);
/* A loop over its rows, which stand for the rows' axis in it, and vectors of the row that is visited. */
void dlc_tile_rows_begin(dlc_nest *nest, uint32_t leaf);
void dlc_tile_rows_end(dlc_nest *nest, uint32_t leaf);
dlc_val dlc_tile_get(dlc_nest *nest, uint32_t leaf, uint32_t v);
void dlc_tile_set(dlc_nest *nest, uint32_t leaf, uint32_t v, dlc_val value);
/* codegen/turn.c: loads of an unrolled loop over as many points, from lo on, as there are lanes, that are read at once and turned: how many
 * (of at most DLC_MOST_TURNED); and, in the loop, that their values at this point are known. Nothing is read from the point hi on; 0: there
 * are as many. */
enum { DLC_MOST_TURNED = 4 };
typedef struct {
    dlc_expr load;
    dlc_val *columns;
} dlc_turned;
int dlc_turn_fits(dlc_nest *nest, uint32_t loop); /* there are such loads, in the present lanes */
uint32_t dlc_turn_begin(dlc_nest *nest, uint32_t loop, dlc_expr lo, dlc_expr hi, dlc_turned *turned);
void dlc_turn_know(dlc_nest *nest, const dlc_turned *turned, uint32_t n, uint32_t point);
/* An unrolled loop over `count` points from lo on that does nothing but copy into granules of several, in the present lanes; emits all of it, where
 * it is one. */
int dlc_turn_fits_granules(dlc_nest *nest, uint32_t loop, dlc_expr lo, int64_t count);
int dlc_turn_granules(dlc_nest *nest, uint32_t loop, dlc_expr lo, int64_t count);
/* What is done for each row of a register tile's vector, or for each point of an unrolled loop over few, stands between one of these and the
 * end; what is stored there may wait for all of them, in their order, and is stored at the end. waits: true where it does. woven_begin: whether
 * it began, so that there is an end to call. */
void dlc_turn_rows_begin(dlc_nest *nest, uint32_t nrows);
int dlc_turn_woven_begin(dlc_nest *nest, uint32_t loop, int64_t count);
int dlc_turn_waits(dlc_nest *nest, uint32_t stage, const dlc_expr *index, dlc_val value, uint32_t width);
void dlc_turn_rows_end(dlc_nest *nest);
/* Lane loop over [lo, hi) of `axis`: body is called once in a loop over full vectors and once masked for the rest. */
typedef void (*dlc_lane_body)(dlc_nest *nest, void *ctx);
void dlc_lanes_loop(dlc_nest *nest, uint32_t axis, dlc_expr lo, dlc_expr hi, uint32_t width, dlc_lane_body body, void *ctx);

#endif

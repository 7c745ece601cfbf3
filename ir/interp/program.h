/*
 * From a stage to a program of strip operations. The stage's loops are, outer to inner: fixed axes
 * (a recurrence's), output loops, reduced loops; one of them is the strip loop, which walks several
 * axes flattened. Each instruction belongs to the innermost loop it depends on and runs when that
 * loop or one outside it has moved: what does not change is not recomputed.
 *
 * An instruction's value is uniform over the strip (for axes of the strip: at the strip's first
 * point) or a strip. Loads at an index that is linear along the strip step through memory, or are
 * read in place.
 */
#ifndef DLC_IR_INTERP_PROGRAM_H
#define DLC_IR_INTERP_PROGRAM_H

#include "ir/interp/interp.h"
#include "ir/interp/lanes.h"

enum { DLC_NO_INSTR = 0xffffffffu };

/* Memory a load or store refers to: a buffer, or the result of a stage. */
typedef struct {
    void *base;
    uint8_t dtype; /* as it lies in memory */
    int64_t nelems;
    const char *name;
} dlc_interp_memory;

/* A stage with symbols replaced by their values, elementary functions expanded (strict), loads at
 * linear offsets. */
typedef struct {
    dlc_expr value[2]; /* 0: none */
    dlc_expr store;    /* element offset in the buffer; 0: none */
    dlc_expr temp;     /* element offset in the temporary; 0: none */
    dlc_expr check;    /* of a scatter: the offset is inside; 0: always */
} dlc_interp_exprs;

typedef struct dlc_interp {
    const dlc_kernel *kernel;
    const dlc_interp_args *args;
    dlc_diag *diag;
    int is_wide;
    dlc_arena *arena;            /* released stage by stage */
    dlc_pool *pool;              /* has an arena of its own */
    int64_t *extents;            /* by kernel axis */
    dlc_interp_memory *buffers;  /* by kernel buffer */
    dlc_interp_memory *temps[2]; /* by stage and accumulator; base NULL: nobody loads it */
    dlc_interp_exprs *stages;
} dlc_interp;

/* An expression of the kernel in the private pool, symbols replaced by their values. */
dlc_expr dlc_interp_local(dlc_interp *interp, dlc_expr expr);
/* Fills in interp->stages[stage]. */
void dlc_interp_specialize(dlc_interp *interp, uint32_t stage);
const dlc_interp_memory *dlc_interp_source(const dlc_interp *interp, dlc_source source, int second);

/* One loop: an axis, or the strip's axes (outer to inner) flattened. */
typedef struct {
    dlc_ids axes;
    int64_t trip; /* points of the loop; of the strip loop: of all its axes together */
    uint8_t is_strip, is_reduced;
} dlc_interp_loop;
typedef dlc_vec(dlc_interp_loop) dlc_interp_loops;

/* A guard that is a conjunction of comparisons linear along the strip: the points it admits are an
 * interval. */
typedef struct {
    uint32_t a, b; /* a < b, or a <= b: uniform instructions; b DLC_NO_INSTR: a is a bool */
    int64_t slope; /* of b - a along the strip */
    uint8_t or_equal;
} dlc_interp_bound;

typedef struct {
    const dlc_interp_memory *memory;
    uint32_t offset; /* instruction; a strip unless is_linear */
    int64_t stride;
    uint8_t is_linear;   /* or uniform */
    uint8_t is_in_place; /* the strip may be read where it lies */
    uint32_t guard;      /* a strip of bools, or DLC_NO_INSTR */
    dlc_interp_bound *bounds;
    uint32_t nbounds;
    uint32_t otherwise; /* instruction or DLC_NO_INSTR: zero */
    uint32_t check;     /* instruction: 1 where the indices are inside; or DLC_NO_INSTR */
    /*
     * A strip that loops it does not depend on would load again and again is kept, in the order it
     * is read: what a packed operand is to a contraction. kept[sum(counter[l] * strides[l])],
     * filled per strip; NULL strides: not worth it.
     */
    int64_t *strides;
    int64_t nkept, kept_strip; /* elements: of all, of one strip */
    char *kept;
    uint8_t *is_filled;
} dlc_interp_load;

typedef struct {
    dlc_strip_op op;
    uint8_t lane;
    uint8_t is_strip; /* else one value */
    uint8_t is_ramp;  /* args[0] at the strip's start, growing by `slope` */
    uint8_t is_const;
    uint32_t level;
    uint32_t args[3];
    uint32_t nargs;
    int64_t slope;
    uint32_t axis; /* AXIS */
    dlc_interp_load *load;
    dlc_scalar value; /* constants, and where a uniform value lies */
    uint32_t room;    /* strip buffer */
    dlc_strip at;     /* while running */
} dlc_interp_instr;

typedef struct {
    dlc_interp_loops loops;
    dlc_vec(dlc_interp_instr) instrs;
    uint32_t *first_of_level; /* level 0: once; level l + 1: inside loop l; loops.n + 2 entries */
    uint32_t strip_loop;      /* index into loops, or loops.n: every point is a strip of one */
    uint32_t nrooms;
    void *rooms; /* from the first run on: strip buffers and the loops' counters */
    int64_t *counters;
    uint32_t value[2], factor[2], store, temp,
        check; /* root instructions or DLC_NO_INSTR; factor: value[0] is their product */
    int64_t store_stride, temp_stride;
    uint8_t is_store_linear, is_temp_linear;
    double cost; /* nanoseconds, roughly */
} dlc_interp_program;

/* The program of a stage for the given loops; memory of interp->arena. is_stepped: it runs once per
 * step of a recurrence. */
dlc_interp_program *dlc_interp_compile(dlc_interp *interp, uint32_t stage,
                                       const dlc_interp_loops *loops, int is_stepped);

#endif

/*
 * A kernel: equations over axes. It says what is computed and holds no loops; a schedule (ir/schedule/schedule.h) says how.
 * Stages are in order; a stage loads buffers, stages above it, and (a recurrence) itself or any stage at `axis - d`.
 */
#ifndef DLC_IR_KERNEL_KERNEL_H
#define DLC_IR_KERNEL_KERNEL_H

#include "base/diag.h"
#include "base/str.h"
#include "ir/expr/type.h"

typedef enum dlc_reduce {
#define DLC_REDUCE(id, text, naccs, commutes) DLC_REDUCE_##id,
#include "ir/kernel/reduce.def"
#undef DLC_REDUCE
    DLC_REDUCE_COUNT
} dlc_reduce;
typedef struct {
    const char *text;
    uint8_t naccs, commutes;
} dlc_reduce_info;
extern const dlc_reduce_info dlc_reduces[DLC_REDUCE_COUNT];

typedef struct {
    const char *name;
    dlc_expr extent; /* i64 over symbols; 0 is legal at run time */
} dlc_axis;

typedef enum { DLC_ROLE_IN, DLC_ROLE_OUT, DLC_ROLE_CONST } dlc_role;

typedef struct {
    const char *name;
    dlc_type type; /* dims in the kernel's pool */
    dlc_layout layout;
    uint8_t role; /* dlc_role */
    uint8_t is_part; /* OUT: some of its elements are stored here, the others by other kernels */
    uint8_t is_bounded; /* CONST, floats: none of its elements is farther from 0 than 2^bound_log2 */
    int8_t bound_log2;
} dlc_buffer;

/* A run-time i64: a dimension or scalar parameter. */
typedef struct {
    const char *name;
    int64_t lo, hi;   /* inclusive */
    int64_t usual;    /* what it mostly is, for choices and estimates alone; 0: nobody knows */
    dlc_expr outer;   /* the graph-pool expression passed for it, 0 in a kernel read from text */
} dlc_kernel_symbol;

enum { DLC_NOMINAL_SYMBOL = 64 }; /* its size where a choice or an estimate needs one, and nobody knows what is usual */

typedef enum { DLC_UPDATE_NONE, DLC_UPDATE_SET, DLC_UPDATE_SUM, DLC_UPDATE_PROD, DLC_UPDATE_MIN, DLC_UPDATE_MAX } dlc_update;

enum { DLC_NO_BUFFER = 0xffffffffu, DLC_NO_AXIS = 0xffffffffu };

/*
 * One equation: name[axes] = combine(reduce) value, with the axes given by kernel axis ids. The stage's own shape is the
 * extents of `axes` in order; a load of it gives one index per axis. With `buffer` the result is also written to that OUT
 * buffer at index store[] (one per dimension of the buffer; must hit each element exactly once unless `update` is set).
 */
typedef struct {
    const char *name;
    dlc_ids axes;
    dlc_ids reduce;   /* axes folded over, outermost first: the order of a strict sum */
    uint8_t combine;  /* dlc_reduce; NONE exactly when `reduce` is empty and it is a map */
    dlc_expr value[2];
    dlc_dtype dtype[2];
    uint32_t buffer;  /* DLC_NO_BUFFER: a temporary of the kernel */
    uint8_t second;   /* which accumulator is stored (pair stages) */
    dlc_ids store;
    uint8_t update;   /* dlc_update: scatter, `store` may depend on data; runs in index order of the axes */
    dlc_ids origin;   /* ids of graph nodes: names in messages, profiles, `explain` */
} dlc_stage;

typedef struct dlc_kernel {
    dlc_arena *arena;
    const char *name;
    dlc_pool *pool;
    dlc_vec(dlc_axis) axes;
    dlc_vec(dlc_buffer) buffers;
    dlc_vec(dlc_kernel_symbol) symbols;
    dlc_vec(dlc_stage) stages;
} dlc_kernel;

dlc_kernel *dlc_kernel_create(dlc_arena *arena, const char *name);
uint32_t dlc_kernel_axis(dlc_kernel *kernel, const char *name, dlc_expr extent);
uint32_t dlc_kernel_buffer(dlc_kernel *kernel, const char *name, const dlc_type *type, const dlc_layout *layout,
                           dlc_role role);
uint32_t dlc_kernel_symbol_add(dlc_kernel *kernel, const char *name, int64_t lo, int64_t hi, dlc_expr outer);
/* Values for the symbols: `wanted` where their ranges allow it, else what is next to it. */
int64_t *dlc_kernel_symbol_values(const dlc_kernel *kernel, int64_t wanted, dlc_arena *arena);
/* The usual ones; `otherwise` where nobody knows. */
int64_t *dlc_kernel_usual_values(const dlc_kernel *kernel, int64_t otherwise, dlc_arena *arena);
/* A zeroed stage with DLC_NO_BUFFER, appended; the pointer holds until the next append. */
dlc_stage *dlc_kernel_stage(dlc_kernel *kernel, const char *name);
dlc_type dlc_source_type(const dlc_kernel *kernel, dlc_source source, int second); /* dims of a stage: its axes' extents */
/* Ranges for dlc_expr_simplify/_range: axes [0, max extent - 1], symbols [lo, hi]; arrays from kernel->arena. */
dlc_ranges dlc_kernel_ranges(dlc_kernel *kernel);
/* Simplifies every value, guard and store index with the kernel's ranges; expressions only. Checks of what is always inside go. */
void dlc_kernel_simplify(dlc_kernel *kernel);
/* Removes unused stages, buffers (never OUT), axes and symbols, and rebuilds the pool without garbage; ids change. */
void dlc_kernel_compact(dlc_kernel *kernel);
/* The same; the result says, by new number, which ones are left. Memory of the kernel's arena. */
typedef struct {
    dlc_ids buffers, symbols;
} dlc_kernel_left;
dlc_kernel_left dlc_kernel_compact_left(dlc_kernel *kernel);
/* Identity up to names: equal hashes and equal texts (dlc_kernel_print with names = 0) mean equal code. */
uint64_t dlc_kernel_hash(const dlc_kernel *kernel);

/* --- analyses shared by fusion, choice of schedules and code generation --- */
/* Which stages each stage loads: uses[i] has bit j when stage i loads stage j; rows of (nstages+63)/64 words. */
uint64_t *dlc_kernel_uses(const dlc_kernel *kernel, dlc_arena *scratch);

/*
 * The recogniser: stage = sum over `reduce` of A * B (product of the factors free of B's own axes, and the rest).
 * Axes: m in A only, n in B only, batch in both and kept, k in both and reduced. False when the stage is no such sum. Factors of
 * several parts are multiplied in the kernel's pool, which grows.
 */
typedef struct {
    dlc_expr a, b;      /* the two factors, in the accumulator's type */
    dlc_expr scale;     /* factor free of reduced axes and of any axis in m and n together, or 0 */
    dlc_ids m, n, batch, k;
} dlc_contraction;
int dlc_contraction_of(dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *arena, dlc_contraction *result);

/* Text form, both ways (docs/ir.md). names = 0 prints axes, buffers and stages by number: the identity of the code. */
void dlc_kernel_print(const dlc_kernel *kernel, int names, dlc_str *out);
void dlc_expr_print(const dlc_kernel *kernel, dlc_expr expr, dlc_str *out); /* of its pool */
/* The names texts use: one for each thing. */
typedef struct {
    char **symbols, **buffers, **axes, **stages;
} dlc_kernel_names;
void dlc_kernel_names_make(const dlc_kernel *kernel, int names, dlc_arena *arena, dlc_kernel_names *result);
DLC_NODISCARD dlc_status dlc_kernel_parse(const char *text, dlc_arena *arena, dlc_diag *diag, dlc_kernel **result);
/* The kernel that begins at the lexer's token, which it moves behind it; NULL: the lexer has failed. */
struct dlc_lexer;
dlc_kernel *dlc_kernel_parse_inside(struct dlc_lexer *outer);
/* Types, axes, order of stages, accesses in bounds or guarded, each output element written once, nothing unused. */
DLC_NODISCARD dlc_status dlc_kernel_verify(const dlc_kernel *kernel, dlc_diag *diag);

#endif

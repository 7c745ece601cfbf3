/* The CUDA C side of the emitter: one kernel's text being written. A value is the name of a variable, or a literal. */
#ifndef DLC_CODEGEN_PTX_TEXT_H
#define DLC_CODEGEN_PTX_TEXT_H

#include "base/str.h"
#include "codegen/nest.h"

enum { DLC_CUDA_WARP = 32 };

typedef struct {
    dlc_emitter base; /* first: a dlc_emitter * is a dlc_cuda * */
    dlc_emitter single; /* with packs: what emits one element of a thread */
    dlc_arena *arena;
    const dlc_kernel *kernel;
    dlc_str declarations;               /* mutable variables, at the top of the function */
    dlc_str bodies[DLC_MAX_LEVELS];     /* text of each open level so far */
    const char *headers[DLC_MAX_LEVELS]; /* "for (…)" or "if (…)" that opened it */
    uint32_t level, at;                 /* innermost level; level being written to */
    uint32_t nvalues;
    uint8_t small_index;                /* every index fits 32 bits */
    uint8_t has_long_data;              /* i64 values are not only indices: they may overflow */
    uint8_t per_thread;                 /* threads are points of their own: no warp collectives */
    uint8_t is_block;                   /* a unit is a block */
} dlc_cuda;

/* How a kernel is launched. */
typedef struct {
    const char *source;     /* void NAME(void *b0…, long long s0…, long long *fault, long long first, long long units), without
                               the prelude: computes units [first, units), block i those from first + i * units_per_block on */
    uint32_t threads;       /* per block */
    uint32_t units_per_block;
    uint32_t fixed_bytes;   /* dynamic shared memory per block: this … */
    uint32_t scratches;     /* … and so many times the schedule's scratch (dlc_schedule_scratch) */
} dlc_cuda_kernel;

/* Appends a line at the present level. */
void dlc_cuda_line(dlc_cuda *cuda, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *dlc_cuda_type(const dlc_cuda *cuda, dlc_dtype dtype);        /* in registers */
const char *dlc_cuda_memory_type(dlc_dtype dtype);
/* A new constant variable of the type with this value. */
dlc_val dlc_cuda_value(dlc_cuda *cuda, dlc_dtype dtype, const char *format, ...) __attribute__((format(printf, 3, 4)));
dlc_val dlc_cuda_arith(dlc_emitter *e, dlc_expr_op op, dlc_dtype from, dlc_dtype to, uint32_t width, const dlc_val *args);
dlc_val dlc_cuda_konst(dlc_emitter *e, dlc_dtype dtype, dlc_scalar value, uint32_t width);
/* Where sums and products of the type may overflow: the unsigned type in which they wrap, as those of C's signed ones do not.
 * Else "". In parentheses, as a cast. */
const char *dlc_cuda_wrapping(const dlc_cuda *cuda, dlc_dtype dtype);
const char *dlc_cuda_to_memory(dlc_cuda *cuda, dlc_dtype dtype, dlc_val value);   /* expression texts */
const char *dlc_cuda_from_memory(dlc_cuda *cuda, dlc_dtype dtype, const char *element);
/* The element of an access as an lvalue's text: of this thread, or of all. */
const char *dlc_cuda_element(dlc_cuda *cuda, const dlc_access *access, int is_const);
/* From here on a vector of more than a warp's width is several neighbours of each thread, and one of 2 or 4 is one thread's own
 * (codegen/ptx/pack.c). */
void dlc_cuda_pack(dlc_cuda *cuda);

/* One kernel of a module as CUDA C (codegen/ptx/kernel.c). The kernel is copied first. */
DLC_NODISCARD dlc_status dlc_cuda_source(const dlc_schedule *schedule, const char *name, dlc_arena *arena, dlc_diag *diag, dlc_cuda_kernel *result);
/* The prelude all kernels start with, and what comes before it when they are compiled as C. */
extern const char dlc_cuda_prelude[], dlc_cuda_emulation[];
/* fibers.c as an object: what launches emulated kernels. */
extern const uint8_t dlc_cuda_fibers[];
extern const size_t dlc_cuda_fibers_bytes;
/* C for emulation: a begin, then kernels, each with its function dlc_k<number> of the CPU's kernel ABI. An end leaves out those rows of
 * the prelude's tables that no kernel names: to read all of them takes a C compiler as long as several small kernels. */
void dlc_cuda_emulation_begin(dlc_str *out);
DLC_NODISCARD dlc_status dlc_cuda_emulation_add(const dlc_schedule *schedule, uint32_t number,
                                                dlc_arena *arena, dlc_diag *diag, dlc_str *out);
void dlc_cuda_emulation_end(dlc_str *out);

#endif

/*
 * Rewrites from kernels to kernels (rewrites.def), between `lower` and `choose`. A row's function is given one kernel, which it
 * may not change, and says by which ones it is to be replaced; the pass does so in every step that launches it, and makes the
 * values that the new kernels hand to each other.
 */
#ifndef DLC_PASSES_REWRITE_REWRITE_H
#define DLC_PASSES_REWRITE_REWRITE_H

#include "passes/pass.h"

#define DLC_REWRITE_SAMPLES "samples" /* what the pass of that name is asked for by, N samples at least */
#define DLC_REWRITE_MADE 0x80000000u /* | number: a value between the new kernels */

typedef struct {
    dlc_kernel *kernel;
    dlc_ids buffers; /* by buffer of it: the old kernel's buffer, or DLC_REWRITE_MADE | number */
    dlc_ids symbols; /* by symbol of it: the old kernel's */
} dlc_rewrite_part;

typedef struct {
    dlc_vec(dlc_rewrite_part) parts;  /* in the order they run; one that reads constants alone runs at compile time */
    dlc_vec(const char *) made; /* names of the values between them; each is written by one part, whose buffer says its type */
    double left; /* of the kernel's time, by the row's estimates: it may be compared with other rows; 0: the row does not say */
} dlc_rewritten;

typedef struct {
    const dlc_kernel *kernel;
    const dlc_target *target;
    int64_t wanted;     /* the number asked for, whatever it costs; 0: where estimates say that it pays */
    int64_t winograd;   /* the largest tile of Winograd's that the numbers may take; 0: none */
    int64_t winograd_whole; /* the same of bytes, which lose nothing */
    int matrix;         /* products of f32 may be taken apart for the matrix unit */
    const dlc_module *module;
    uint32_t number;    /* of the kernel in it */
    int cuts_bf16;      /* what is made of factors of bf16 may be cut to bf16 again: it is the precision that was asked for */
    dlc_arena *arena;   /* of what is made */
    dlc_arena *scratch;
} dlc_rewriting;

#define DLC_REWRITE(id, name, function, round, by_itself, help) int dlc_rewrite_##function(const dlc_rewriting *in, dlc_rewritten *out);
#include "passes/rewrite/rewrites.def"
#undef DLC_REWRITE

enum { DLC_REWRITE_ROUNDS = 2 };
typedef enum { DLC_BY_ITSELF_ANY, DLC_BY_ITSELF_CPU } dlc_by_itself;
typedef struct {
    const char *name;
    int (*run)(const dlc_rewriting *in, dlc_rewritten *out); /* 0: it does not apply, or does not pay */
    int round;
    dlc_by_itself by_itself;
    const char *help;
} dlc_rewrite_info;
extern const dlc_rewrite_info dlc_rewrites[];
extern const uint32_t dlc_nrewrites;

/* A buffer in front of the kernel's outputs, which stand last. Returns its number. */
uint32_t dlc_rewrite_insert(dlc_kernel *kernel, dlc_buffer buffer);
/* A zeroed stage in front of stage `at`, whose readers read what they read before. The pointer holds until the next one. */
dlc_stage *dlc_rewrite_insert_stage(dlc_kernel *kernel, uint32_t at);
/* What is left of the kernel becomes the next part. Its buffers from `made` on are the first `nmade` values between the parts; those
 * behind them were as many less in the old kernel. */
void dlc_rewrite_add_part(dlc_kernel *kernel, uint32_t made, uint32_t nmade, dlc_rewritten *out);

/* A part that makes a table, the next value between the parts: of the kernel's one axis; nothing is in the kernel yet. It is called
 * after the kernel that is rewritten. */
void dlc_rewrite_add_table(const dlc_rewriting *in, dlc_kernel *kernel, dlc_expr value, const char *kind, dlc_rewritten *out);
/* Inserts all tables made so far, side by side; returns the first's buffer. */
uint32_t dlc_rewrite_insert_tables(dlc_kernel *kernel, const dlc_rewritten *tables);

/* Every stage's kept `axis` becomes step * axis + another axis, of `step` points, which is returned (phases.c). Where step does not divide
 * its extent, points behind the last are computed and stored, too. DLC_NO_AXIS: a stage is read at another point of the axis than
 * the reader's own, and the kernel is spoilt. */
uint32_t dlc_rewrite_phases(dlc_kernel *kernel, uint32_t axis, int64_t step);

/* A copy with elementary functions as what they are made of: rough counts of operations do for most ends, but not where they are saved. */
const dlc_kernel *dlc_rewrite_expanded(const dlc_rewriting *in, const dlc_kernel *kernel);
/* What the kernel takes under the schedule chosen for it, in microseconds, and how often its units occupy the machine;
 * negative: it has no schedule. The kernel stays as it is. */
double dlc_rewrite_time(const dlc_rewriting *in, const dlc_kernel *kernel, double *share);
/* The kernel's estimate alone, in microseconds; negative too where the target should not run it, as its scratch would leave the caches. */
double dlc_rewrite_time_of_fitting(const dlc_rewriting *in, const dlc_kernel *kernel);

#endif

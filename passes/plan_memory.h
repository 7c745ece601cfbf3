/* Placing buffers with lifetimes in one arena: the pass's planner by itself, for the pass and for
 * its tests. */
#ifndef DLC_PASSES_PLAN_MEMORY_H
#define DLC_PASSES_PLAN_MEMORY_H

#include "base/diag.h"
#include "ir/expr/expr.h"

/* A buffer that lives from step `first` to step `last`, both included. */
typedef struct {
    uint32_t first, last;
    uint32_t phase;  /* how many symbols must have been bound before its size is known; 0: known at
                        the start */
    dlc_expr size;   /* bytes */
    dlc_expr offset; /* result: bytes, a multiple of 64 */
} dlc_lifetime;

/*
 * Gives every lifetime an offset and returns the arena's bytes, as expressions over `pool`.
 * typical: values of the symbols that decide which of two sizes is the larger when the expressions
 * do not. An offset depends only on sizes of its phase and earlier ones: it never changes once its
 * buffer is alive.
 */
dlc_expr dlc_arena_plan(dlc_pool *pool, const dlc_ranges *ranges, const int64_t *typical,
                        dlc_lifetime *lifetimes, uint32_t n, dlc_arena *scratch);
/* True when two buffers alive in one step share a byte at these values of the symbols, or one
 * reaches past `arena_bytes`. */
int dlc_arena_clash(const dlc_pool *pool, const int64_t *symbols, const dlc_lifetime *lifetimes,
                    uint32_t n, dlc_expr arena_bytes, dlc_arena *scratch, uint32_t *a, uint32_t *b);

struct dlc_pass_ctx;
/* Places read from text: each known when its value is written, no two values alive together on one byte. */
dlc_status dlc_places_verify(struct dlc_pass_ctx *ctx);

#endif

/* Builds the size program of a plan (abi.h): expressions over symbols become cells. */
#ifndef DLC_PACKAGE_SIZE_H
#define DLC_PACKAGE_SIZE_H

#include "base/vec.h"
#include "dlc/abi.h"
#include "ir/expr/expr.h"

typedef dlc_vec(dlc_size_inst) dlc_size_insts;

typedef struct {
    dlc_arena *arena;
    const dlc_pool *module;       /* the pool whose expressions are cached */
    const uint32_t *symbol_phase; /* by its symbol; UINT32_MAX: nothing binds it */
    dlc_size_insts insts;
    dlc_ids phase;   /* by instruction: the least phase in which it can run */
    uint32_t *table; /* open addressing over insts, +1 */
    uint32_t table_size;
    uint32_t *of_module; /* by expression of the module: cell + 1 */
    uint32_t nmodule;
    const char *failure; /* the first thing that is no size; NULL: none */
} dlc_size_program;

void dlc_size_init(dlc_size_program *program, const dlc_pool *module, const uint32_t *symbol_phase,
                   dlc_arena *arena);
uint32_t dlc_size_const(dlc_size_program *program, int64_t value);
/* i64 operands. */
uint32_t dlc_size_op2(dlc_size_program *program, dlc_size_op op, uint32_t a, uint32_t b);
/* An expression of the module. */
uint32_t dlc_size_module(dlc_size_program *program, dlc_expr expr);
/* An expression of another pool, whose symbol i is the cell symbols[i]. */
uint32_t dlc_size_expr(dlc_size_program *program, const dlc_pool *pool, dlc_expr expr,
                       const uint32_t *symbols);
int dlc_size_is_const(const dlc_size_program *program, uint32_t cell, int64_t *value);

/*
 * Orders the instructions by phase, operands first. Returns the new number of each cell; counts[p]
 * (nphases of them) becomes the number of instructions of phase p.
 */
uint32_t *dlc_size_finish(dlc_size_program *program, uint32_t nphases, uint32_t *counts);

#endif

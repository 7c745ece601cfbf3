/* An expression pool for tests of expressions, made before each test (setup) and gone after it (teardown). */
#ifndef DLC_TESTS_SMALL_POOL_H
#define DLC_TESTS_SMALL_POOL_H

#include "ir/expr/expr.h"

static dlc_arena *arena;
static dlc_pool *p;

static inline void setup(void)
{
    arena = dlc_arena_create(0);
    p = dlc_pool_create(arena);
}

static inline void teardown(void)
{
    dlc_arena_destroy(arena);
}

static inline dlc_expr ax(uint32_t axis)
{
    return dlc_expr_axis(p, axis);
}

static inline dlc_expr sy(uint32_t symbol)
{
    return dlc_expr_sym(p, symbol);
}

static inline dlc_expr num(int64_t value)
{
    return dlc_expr_i64(p, value);
}

#endif

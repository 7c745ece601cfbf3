/* An arena and a diagnostic in it, made before each test (setup) and gone after it (teardown). */
#ifndef DLC_TESTS_SMALL_ARENA_H
#define DLC_TESTS_SMALL_ARENA_H

#include "base/diag.h"

static dlc_arena *arena;
static dlc_diag diag;

static inline void setup(void)
{
    arena = dlc_arena_create(0);
    dlc_diag_init(&diag, arena);
}

static inline void teardown(void)
{
    dlc_arena_destroy(arena);
}

#endif

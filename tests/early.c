/*
 * Linked into every program of tests: one that makes code for CPUs opens LLVM before main, so that its children, one for each test
 * and each compilation, find it relocated. Else each of them opened it anew, half the page faults of such a test.
 */
#include "codegen/codegen.h"

dlc_status dlc_cpu_preload(dlc_diag *diag) __attribute__((weak)); /* is not linked in by this: who makes code has it */

__attribute__((constructor)) static void open_early(void)
{
    if (!dlc_cpu_preload)
        return;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    (void)!dlc_cpu_preload(&diag); /* whoever needs it says why not */
    dlc_arena_destroy(arena);
}

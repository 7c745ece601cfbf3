/*
 * Linked into every program of tests: one that makes code for CPUs opens LLVM before main, so that its children, one for each test
 * and each compilation, find it relocated. Else each of them opened it anew, half the page faults of such a test.
 */
#include "codegen/codegen.h"

dlc_status dlc_cpu_preload(dlc_diag *diag) __attribute__((weak)); /* is not linked in by this: who makes code has it */

/* The search for leaks, by which each child ends, reads 9 MB of the sanitizers' own variables, most of which nobody ever wrote: pages
 * that are there once it has been done are there in children, too. Else they were half the page faults of a test. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

static void search_early(void)
{
    (void)__lsan_do_recoverable_leak_check();
}
#else
static void search_early(void)
{
}
#endif

static void open_llvm(void)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    (void)!dlc_cpu_preload(&diag); /* whoever needs it says why not */
    dlc_arena_destroy(arena);
}

__attribute__((constructor)) static void open_early(void)
{
    if (dlc_cpu_preload)
        open_llvm();
    search_early();
}

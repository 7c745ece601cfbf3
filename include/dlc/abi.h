/*
 * The executable's format: what the compiler writes (codegen/executable.c) and the runtime walks. Needs stdint.h alone.
 * Changing anything here raises DLC_ABI_VERSION in the same commit.
 */
#ifndef DLC_ABI_H
#define DLC_ABI_H

#include <stdint.h>

#define DLC_ABI_VERSION 1

/*
 * A CPU kernel computes units [begin, end) of its parallel work. buffers in the kernel's order; symbols by kernel symbol;
 * scratch is this thread's, 64-byte aligned. An index out of range stores 1 + the checked load's number to *fault (plain
 * store; any of several faults may win) and goes on with the else value.
 */
typedef struct dlc_kernel_args {
    void *const *buffers;
    const int64_t *symbols;
    void *scratch;
    int64_t *fault;
} dlc_kernel_args;
typedef void (*dlc_kernel_fn)(const dlc_kernel_args *args, int64_t begin, int64_t end);

#endif

/* What fuzz targets share: the entry, the way out when memory ends, and claims. */
#ifndef DLC_TESTS_FUZZ_ENTRY_H
#define DLC_TESTS_FUZZ_ENTRY_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static inline void leave(void *user, size_t size_bytes, int over_budget)
{
    (void)size_bytes;
    (void)over_budget;
    longjmp(*(jmp_buf *)user, 1);
}

static inline void must(int holds)
{
    if (!holds)
        abort();
}

#endif

/* The text of the last failure, one per thread, and allocation that fails with one. */
#include "runtime/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char last_error[1024];

const char *dlcrt_last_error(void)
{
    return last_error;
}

dlc_status dlcrt_fail(dlc_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return status;
}

dlc_status dlcrt_no_memory(size_t size_bytes)
{
    return dlcrt_fail(DLC_LIMIT, "%zu bytes of memory could not be had", size_bytes);
}

void *dlcrt_alloc(size_t count, size_t size_bytes)
{
    void *memory = calloc(count ? count : 1, size_bytes);
    if (!memory)
        (void)dlcrt_no_memory(count * size_bytes);
    return memory;
}

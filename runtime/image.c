/* Bytes of an executable that nobody has checked yet, and what is said of those that are wrong. */
#include "runtime/device.h"

#include <stdarg.h>
#include <stdio.h>

dlc_status dlcrt_damaged(const char *name, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return dlcrt_fail(DLC_INVALID, "%s: its plan is damaged: %s", name, text);
}

int dlcrt_image_has(const dlcrt_image *image, const void *at, uint64_t n)
{
    uint64_t offset = (uint64_t)((uintptr_t)at - (uintptr_t)image->base);
    if (!image->base || (!n && offset % 8 == 0 && offset <= image->size_bytes))
        return 1;
    for (uint32_t i = 0; i < image->nreadable; i++)
        if (offset % 8 == 0 && offset >= image->readable[i].begin && offset <= image->readable[i].end &&
            n <= image->readable[i].end - offset)
            return 1;
    return 0;
}

/* Text into a buffer of fixed size, as snprintf counts: what does not fit is counted and left out.
 */
#include "runtime/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void dlcrt_text_add(dlcrt_text *out, const char *format, ...)
{
    size_t room = out->n < out->size_bytes ? out->size_bytes - out->n : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room ? out->text + out->n : NULL, room, format, args);
    va_end(args);
    if (n > 0)
        out->n += (size_t)n;
}

void dlcrt_text_dims(dlcrt_text *out, uint32_t rank, const int64_t *dims)
{
    dlcrt_text_add(out, "[");
    for (uint32_t i = 0; i < rank; i++)
        dlcrt_text_add(out, "%s%" PRId64, i ? "," : "", dims[i]);
    dlcrt_text_add(out, "]");
}

/* Options of a caller, who may have been compiled against an older header, as they are today. */
#include "compiler/options.h"

#include <string.h>

void dlc_options_take(dlc_options *to, const dlc_options *from)
{
    size_t size_bytes = from && from->size_bytes ? from->size_bytes : sizeof *from;
    *to = (dlc_options){0};
    if (from)
        memcpy(to, from, size_bytes < sizeof *to ? size_bytes : sizeof *to);
    to->size_bytes = sizeof *to;
}

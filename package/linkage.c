/* What is being linked, as its readers fill it: sections and the chunks in them. */
#include "package/linkage.h"

#include <stdarg.h>
#include <string.h>

dlc_status dlc_linkage_fail(const dlc_linkage *linkage, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dlc_status status = dlc_diag_vfail(linkage->diag, DLC_INTERNAL, NULL, format, args);
    va_end(args);
    return status;
}

uint16_t dlc_linkage_machine(const dlc_linkage *linkage)
{
    return linkage->input->machine == DLC_LINK_X86_64 ? EM_X86_64 : EM_AARCH64;
}

uint32_t dlc_linkage_section(dlc_linkage *linkage, const char *name, dlc_segment segment)
{
    for (uint32_t i = 0; i < linkage->sections.n; i++)
        if (!strcmp(linkage->sections.data[i].name, name))
            return i;
    dlc_section section = {.name = name, .segment = segment, .align_bytes = 1};
    dlc_vec_push(linkage->arena, &linkage->sections, section);
    return linkage->sections.n - 1;
}

uint64_t dlc_linkage_add_chunk(dlc_linkage *linkage, uint32_t section, dlc_chunk chunk)
{
    dlc_section *s = &linkage->sections.data[section];
    chunk.at = dlc_linkage_round_up(s->size_bytes, chunk.align_bytes);
    s->size_bytes = chunk.at + chunk.size_bytes;
    if (s->align_bytes < chunk.align_bytes)
        s->align_bytes = chunk.align_bytes;
    dlc_vec_push(linkage->arena, &s->chunks, chunk);
    return chunk.at;
}

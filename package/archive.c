/* `ar` archives: a magic, a member "/" that maps symbols to members, the member itself; headers are
 * text, members even. */
#include "package/archive.h"

#include <ar.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static void add_header(dlc_str *out, const char *name, size_t size_bytes)
{
    dlc_str_printf(out, "%-16s%-12d%-6d%-6d%-8s%-10zu" ARFMAG, name, 0, 0, 0,
                   strcmp(name, "/") ? "644" : "0", size_bytes);
}

static void add_index(dlc_str *out, uint32_t member_at, const char *const *names, uint32_t nnames)
{
    uint32_t word = htobe32(nnames);
    dlc_str_addn(out, (const char *)&word, sizeof word);
    word = htobe32(member_at);
    for (uint32_t i = 0; i < nnames; i++)
        dlc_str_addn(out, (const char *)&word, sizeof word);
    for (uint32_t i = 0; i < nnames; i++)
        dlc_str_addn(out, names[i], strlen(names[i]) + 1);
}

/* A name of up to 15 characters: longer ones would need a table of names, and nobody reads them. */
static void short_name(char *text, size_t size_bytes, const char *member)
{
    snprintf(text, size_bytes, "%.12s.o/", member);
}

dlc_status dlc_archive_begin(dlc_output *output, const char *member, uint64_t size_bytes,
                             const char *const *names, uint32_t nnames, dlc_diag *diag)
{
    size_t index_bytes = 4 + 4 * (size_t)nnames;
    for (uint32_t i = 0; i < nnames; i++)
        index_bytes += strlen(names[i]) + 1;
    index_bytes += index_bytes % 2;
    size_t member_at = SARMAG + sizeof(struct ar_hdr) + index_bytes;
    if (member_at > UINT32_MAX || size_bytes > 9999999999u)
        return dlc_diag_fail(diag, DLC_LIMIT, output->path,
                             "the archive's format holds members below 10 GB");
    char name[32];
    short_name(name, sizeof name, member);
    dlc_str head = {0};
    dlc_str_addn(&head, ARMAG, SARMAG);
    add_header(&head, "/", index_bytes);
    add_index(&head, (uint32_t)member_at, names, nnames);
    dlc_str_addn(&head, "", member_at - head.n); /* the NUL that makes it even */
    add_header(&head, name, size_bytes);
    dlc_status status = dlc_output_write(output, head.data, head.n, diag);
    dlc_str_deinit(&head);
    return status;
}

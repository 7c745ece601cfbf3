/*
 * Collects what is linked: each input section becomes a chunk of the output section of its kind,
 * one behind another, and every name that an object left open the place of its definition. No
 * archives, no search, no options: what is left of linking is the two writers.
 */
#include "package/linkage.h"

#include "base/budget.h"

#include <stdlib.h>
#include <string.h>

uint32_t dlc_linkage_add_name(dlc_str *names, const char *name)
{
    uint32_t at = (uint32_t)names->n;
    dlc_str_addn(names, name, strlen(name) + 1);
    return at;
}

/* --- data --- */
static uint32_t data_section(dlc_linkage *linkage, const dlc_link_data *data)
{
    static const char relro[] = ".data.rel.ro";
    if (data->npointers || !strncmp(data->section, relro, sizeof relro - 1))
        return dlc_linkage_section(linkage, relro, DLC_SEGMENT_RELRO);
    return dlc_linkage_section(linkage, data->section,
                               data->is_bulk ? DLC_SEGMENT_BULK : DLC_SEGMENT_READ);
}

static void define(dlc_linkage *linkage, const char *name, const dlc_link_data *data,
                   uint32_t section, uint64_t at, uint64_t size_bytes)
{
    dlc_definition definition = {.name = name,
                                 .section = section,
                                 .type = STT_OBJECT,
                                 .is_exported = data->is_exported,
                                 .is_global = 1,
                                 .at = at,
                                 .size_bytes = size_bytes};
    dlc_vec_push(linkage->arena, &linkage->definitions, definition);
}

static void add_data(dlc_linkage *linkage, const dlc_link_data *data)
{
    dlc_chunk chunk = {
        .pieces = data->pieces, .npieces = data->npieces, .align_bytes = data->align_bytes};
    for (uint32_t i = 0; i < data->npieces; i++)
        chunk.size_bytes += dlc_linkage_round_up(data->pieces[i].size_bytes, data->align_bytes);
    uint32_t section = data_section(linkage, data);
    uint64_t at = dlc_linkage_add_chunk(linkage, section, chunk);
    define(linkage, data->name, data, section, at, chunk.size_bytes);
    if (data->alias)
        define(linkage, data->alias, data, section, at, chunk.size_bytes);
    uint32_t type = linkage->input->machine == DLC_LINK_X86_64 ? R_X86_64_64 : R_AARCH64_ABS64;
    for (uint32_t i = 0; i < data->npointers; i++) {
        dlc_fixup fixup = {.at = at + data->pointers[i].offset,
                           .row = (uint32_t)dlc_reloc_find(linkage->input->machine, type),
                           .name = data->pointers[i].target};
        dlc_vec_push(linkage->arena, &linkage->sections.data[section].fixups, fixup);
    }
}

/* --- names --- */
static int by_name(const void *a, const void *b)
{
    const dlc_definition *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order ? order : (*x)->is_weak - (*y)->is_weak;
}

static int by_name_alone(const void *a, const void *b)
{
    const dlc_definition *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

typedef struct {
    const dlc_definition **data;
    uint32_t n;
} name_index;

static dlc_status index_names(dlc_linkage *linkage, name_index *index)
{
    index->data =
        dlc_new_array(linkage->arena, const dlc_definition *, linkage->definitions.n + 1u);
    for (uint32_t i = 0; i < linkage->definitions.n; i++)
        if (linkage->definitions.data[i].is_global)
            index->data[index->n++] = &linkage->definitions.data[i];
    qsort(index->data, index->n, sizeof *index->data, by_name);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < index->n; i++) {
        const dlc_definition *d = index->data[i];
        int is_known = kept && !strcmp(d->name, index->data[kept - 1]->name);
        if (is_known && !d->is_weak)
            return dlc_linkage_fail(linkage, "the generated code defines '%s' twice", d->name);
        if (!is_known)
            index->data[kept++] = d;
    }
    index->n = kept;
    return DLC_OK;
}

static dlc_status resolve(dlc_linkage *linkage, const name_index *index, dlc_fixup *fixup)
{
    dlc_definition wanted = {.name = fixup->name};
    const dlc_definition *key = &wanted, **found;
    if (!fixup->name)
        return DLC_OK;
    found = bsearch(&key, index->data, index->n, sizeof *index->data, by_name_alone);
    if (!found)
        return dlc_linkage_fail(linkage, "the generated code needs '%s'", fixup->name);
    fixup->name = NULL;
    fixup->section = (*found)->section;
    fixup->addend += (int64_t)(*found)->at;
    return DLC_OK;
}

dlc_status dlc_link_open(const dlc_link_input *input, dlc_arena *arena, dlc_diag *diag,
                         dlc_linkage **result)
{
    dlc_linkage *linkage = *result = dlc_new(arena, dlc_linkage);
    name_index index = {0};
    *linkage = (dlc_linkage){.input = input, .arena = arena, .diag = diag};
    for (uint32_t i = 0; i < input->ndata; i++)
        add_data(linkage, &input->data[i]);
    for (uint32_t i = 0; i < input->nobjects; i++)
        DLC_TRY(dlc_linkage_add_object(linkage, &input->objects[i]));
    DLC_TRY(index_names(linkage, &index));
    for (uint32_t i = 0; i < linkage->sections.n; i++)
        for (uint32_t k = 0; k < linkage->sections.data[i].fixups.n; k++)
            DLC_TRY(resolve(linkage, &index, &linkage->sections.data[i].fixups.data[k]));
    return DLC_OK;
}

const char **dlc_link_exports(const dlc_linkage *linkage, uint32_t *nnames)
{
    const char **names = dlc_new_array(linkage->arena, const char *, linkage->definitions.n + 1u);
    *nnames = 0;
    for (uint32_t i = 0; i < linkage->definitions.n; i++)
        if (linkage->definitions.data[i].is_exported)
            names[(*nnames)++] = linkage->definitions.data[i].name;
    return names;
}

/* --- bytes --- */
dlc_status dlc_linkage_pad(const dlc_linkage *linkage, uint64_t n, int fill, dlc_output *output)
{
    char bytes[4096];
    memset(bytes, fill, sizeof bytes);
    for (; n; n -= n < sizeof bytes ? n : sizeof bytes)
        DLC_TRY(
            dlc_output_write(output, bytes, n < sizeof bytes ? n : sizeof bytes, linkage->diag));
    return DLC_OK;
}

/* What is packed on its way into the file is so in pieces of this size, a multiple of every element's. */
enum { PACKED_BYTES = 1 << 20 };

static dlc_status put_packed(const dlc_linkage *linkage, const dlc_blob *piece, dlc_output *output)
{
    dlc_mark mark = dlc_arena_mark(linkage->arena);
    void *bytes = dlc_arena_alloc(linkage->arena, PACKED_BYTES, 64);
    dlc_status status = DLC_OK;
    for (size_t at = 0; at < piece->size_bytes && status == DLC_OK; at += PACKED_BYTES) {
        size_t n = piece->size_bytes - at < PACKED_BYTES ? piece->size_bytes - at : PACKED_BYTES;
        dlc_packing_put(piece->packing, at, n, bytes);
        status = dlc_output_write(output, bytes, n, linkage->diag);
        dlc_budget_read(n);
    }
    dlc_arena_release(linkage->arena, mark);
    return status;
}

static dlc_status put_plain(const dlc_linkage *linkage, const dlc_blob *piece, dlc_output *output)
{
    for (size_t at = 0, n; at < piece->size_bytes; at += n) {
        n = piece->size_bytes - at < PACKED_BYTES ? piece->size_bytes - at : PACKED_BYTES;
        DLC_TRY(dlc_output_write(output, (const char *)piece->bytes + at, n, linkage->diag));
        dlc_budget_read(n);
    }
    return DLC_OK;
}

dlc_status dlc_linkage_put(const dlc_linkage *linkage, const dlc_section *section,
                           dlc_output *output)
{
    int is_x86 = linkage->input->machine == DLC_LINK_X86_64;
    int fill = section->segment == DLC_SEGMENT_CODE && is_x86 ? 0xcc : 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i < section->chunks.n; i++) {
        const dlc_chunk *chunk = &section->chunks.data[i];
        uint64_t left = chunk->size_bytes;
        DLC_TRY(dlc_linkage_pad(linkage, chunk->at - at, fill, output));
        for (uint32_t k = 0; k < chunk->npieces; k++) {
            const dlc_blob *piece = &chunk->pieces[k];
            uint64_t whole = dlc_linkage_round_up(piece->size_bytes, chunk->align_bytes);
            if (whole > left)
                whole = left;
            DLC_TRY(piece->packing ? put_packed(linkage, piece, output) : put_plain(linkage, piece, output));
            DLC_TRY(dlc_linkage_pad(linkage, whole - piece->size_bytes, 0, output));
            left -= whole;
        }
        at = chunk->at + chunk->size_bytes;
    }
    return DLC_OK;
}

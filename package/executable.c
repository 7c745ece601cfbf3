/*
 * Writes artifacts. Code comes from child processes (child.c), one per part; plans, constants and
 * the binaries of CUDA kernels are data beside it, the linker makes one file of all (link.c). It is
 * written beside the output and then renamed to its place, so the output is whole or absent and an
 * older one survives every failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/text.h"
#include "dlc/checksum.h"
#include "package/archive.h"
#include "package/backend.h"
#include "package/header.h"
#include "package/link.h"

typedef struct {
    dlc_part *pieces;
    uint32_t npieces;
    const dlc_executable_options *options;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_output output;
    dlc_pieces constants, binaries;
} writer;

/* --- data --- */
typedef dlc_vec(dlc_link_data) symbol_list;
typedef dlc_vec(dlc_link_pointer) pointer_list;

static void add_pointer(writer *w, pointer_list *list, uint64_t offset, const char *target)
{
    dlc_link_pointer pointer = {offset, target};
    dlc_vec_push(w->arena, list, pointer);
}

/* One symbol of bytes in a section of its own. */
static void add_symbol(writer *w, symbol_list *symbols, const char *name, const char *section,
                       const void *bytes, size_t size_bytes)
{
    dlc_blob *blob = dlc_new(w->arena, dlc_blob);
    *blob = (dlc_blob){bytes, size_bytes, NULL};
    dlc_link_data symbol = {
        .name = name, .section = section, .pieces = blob, .npieces = 1, .align_bytes = 64};
    dlc_vec_push(w->arena, symbols, symbol);
}

static void set_pointers(symbol_list *symbols, const pointer_list *list)
{
    symbols->data[symbols->n - 1].pointers = list->data;
    symbols->data[symbols->n - 1].npointers = list->n;
}

static void add_pool(writer *w, symbol_list *symbols, const char *name, const char *section,
                     const dlc_pieces *pool)
{
    dlc_link_data symbol = {.name = name,
                            .section = section,
                            .pieces = pool->pieces.data,
                            .npieces = pool->pieces.n,
                            .is_bulk = 1,
                            .align_bytes = 64};
    dlc_vec_push(w->arena, symbols, symbol);
}

/* A part's plan and, when its kernels are functions, the table of their addresses. */
static void add_plan(writer *w, symbol_list *symbols, uint32_t i)
{
    const dlc_part *p = &w->pieces[i];
    uint32_t nkernels = p->module->kernels.n;
    pointer_list pointers = {0};
    add_symbol(w, symbols, dlc_arena_printf(w->arena, "dlc_plan%u", i),
               dlc_arena_printf(w->arena, ".dlc.plan%u", i), p->plan.bytes, p->plan.size_bytes);
    if (!p->backend->is_function)
        return;
    add_symbol(w, symbols, dlc_arena_printf(w->arena, "dlc_kernels%u", i),
               dlc_arena_printf(w->arena, ".data.rel.ro.dlc_kernels%u", i),
               dlc_new_array(w->arena, dlc_kernel_fn, nkernels + 1u),
               (nkernels + 1u) * sizeof(dlc_kernel_fn));
    for (uint32_t k = 0; k < nkernels; k++)
        add_pointer(w, &pointers, k * sizeof(dlc_kernel_fn),
                    dlc_arena_printf(w->arena, "dlc_k%u", p->emit.first + k));
    set_pointers(symbols, &pointers);
}

static void add_entries(writer *w, symbol_list *symbols)
{
    dlc_plan_entry *entries = dlc_new_array(w->arena, dlc_plan_entry, w->npieces);
    pointer_list pointers = {0};
    for (uint32_t i = 0; i < w->npieces; i++) {
        const dlc_part *p = &w->pieces[i];
        uint64_t at = i * sizeof *entries;
        entries[i].checksum = dlc_checksum(p->plan.bytes, p->plan.size_bytes);
        add_pointer(w, &pointers, at + offsetof(dlc_plan_entry, plan),
                    dlc_arena_printf(w->arena, "dlc_plan%u", i));
        if (p->backend->is_function)
            add_pointer(w, &pointers, at + offsetof(dlc_plan_entry, kernels),
                        dlc_arena_printf(w->arena, "dlc_kernels%u", i));
    }
    add_symbol(w, symbols, "dlc_plans", ".data.rel.ro.dlc_plans", entries,
               w->npieces * sizeof *entries);
    set_pointers(symbols, &pointers);
}

static void add_executable(writer *w, symbol_list *symbols)
{
    dlc_executable *executable = dlc_new(w->arena, dlc_executable);
    pointer_list pointers = {0};
    *executable = (dlc_executable){.magic = DLC_EXECUTABLE_MAGIC,
                                   .abi_version = DLC_ABI_VERSION,
                                   .nplans = w->npieces,
                                   .constants_bytes = w->constants.size_bytes,
                                   .binaries_bytes = w->binaries.size_bytes};
    add_pointer(w, &pointers, offsetof(dlc_executable, constants), "dlc_constants");
    add_pointer(w, &pointers, offsetof(dlc_executable, plans), "dlc_plans");
    if (w->binaries.pieces.n)
        add_pointer(w, &pointers, offsetof(dlc_executable, binaries), "dlc_binaries");
    add_symbol(w, symbols, dlc_arena_printf(w->arena, "dlc_executable_%s", w->options->name),
               ".data.rel.ro.dlc_executable", executable, sizeof *executable);
    set_pointers(symbols, &pointers);
    dlc_link_data *symbol = &symbols->data[symbols->n - 1];
    symbol->alias = w->options->artifact == DLC_ARTIFACT_SO ? "dlc_executable" : NULL;
    symbol->is_exported = 1;
}

/* Of the parts' code; of the machine this runs on when none has functions. */
static dlc_status file_machine(const writer *w, dlc_link_machine *machine)
{
    static const dlc_link_machine machines[] = {DLC_LINK_X86_64, DLC_LINK_AARCH64};
    const dlc_part *first = NULL;
    *machine = machines[dlc_host_arch];
    for (uint32_t i = 0; i < w->npieces; i++) {
        const dlc_part *p = &w->pieces[i];
        int arch = p->backend->arch(p);
        if (arch < 0)
            continue;
        if (first && machines[arch] != *machine)
            return dlc_diag_fail(w->diag, DLC_USAGE, w->options->path,
                                 "the targets %s and %s are different processors; one file holds "
                                 "the code of one",
                                 first->module->target->name, p->module->target->name);
        *machine = machines[arch];
        first = p;
    }
    return DLC_OK;
}

static void list_data(writer *w, symbol_list *symbols)
{
    for (uint32_t i = 0; i < w->npieces; i++)
        add_plan(w, symbols, i);
    add_pool(w, symbols, "dlc_constants", ".dlc.weights", &w->constants);
    if (w->binaries.pieces.n)
        add_pool(w, symbols, "dlc_binaries", ".dlc.binaries", &w->binaries);
    add_entries(w, symbols);
    add_executable(w, symbols);
}

/* --- linking --- */
typedef struct {
    writer *w;
    const char **names;
    uint32_t nnames;
} archive;

static dlc_status begin_archive(void *user, uint64_t size_bytes)
{
    archive *a = user;
    return dlc_archive_begin(&a->w->output, a->w->options->name, size_bytes, a->names, a->nnames,
                             a->w->diag);
}

static dlc_status link_all(writer *w, const dlc_link_input *input)
{
    dlc_linkage *linkage;
    archive a = {.w = w};
    DLC_TRY(dlc_link_open(input, w->arena, w->diag, &linkage));
    if (w->options->artifact == DLC_ARTIFACT_SO)
        return dlc_link_write_shared(linkage, &w->output);
    if (w->options->artifact == DLC_ARTIFACT_O)
        return dlc_link_write_object(linkage, &w->output, NULL, NULL);
    a.names = dlc_link_exports(linkage, &a.nnames);
    return dlc_link_write_object(linkage, &w->output, begin_archive, &a);
}

/* --- code --- */
static dlc_status emit_code(writer *w, dlc_part *p)
{
    DLC_TRY(dlc_child_emit(p->backend->emit, p, w->arena, w->diag, &p->code));
    return p->backend->take ? p->backend->take(p, &w->binaries, w->arena, w->diag) : DLC_OK;
}

static dlc_status write_binary(writer *w)
{
    dlc_vec(dlc_blob) objects = {0};
    symbol_list symbols = {0};
    dlc_link_input input = {0};
    for (uint32_t i = 0; i < w->npieces; i++) {
        dlc_part *p = &w->pieces[i];
        DLC_TRY(emit_code(w, p));
        DLC_TRY(dlc_plan_build(p->module, &p->cuda, &w->constants, w->arena, w->diag, &p->plan));
        for (uint32_t k = 0; p->backend->is_function && k < p->code.nblobs; k++)
            dlc_vec_push(w->arena, &objects, p->code.blobs[k]);
    }
    DLC_TRY(file_machine(w, &input.machine));
    list_data(w, &symbols);
    input.data = symbols.data;
    input.ndata = symbols.n;
    input.objects = objects.data;
    input.nobjects = objects.n;
    return link_all(w, &input);
}

/* --- text --- */
static dlc_status refuse_text(writer *w, const dlc_part *p)
{
    dlc_str list = {0};
    dlc_artifact_list(p->backend, &list);
    dlc_status status = dlc_diag_fail(
        w->diag, DLC_USAGE, w->options->path, "'%s' is not made of kernels for %s%s; there are %s",
        dlc_artifact_text(w->options->artifact), p->module->target->name,
        p->backend->emulated ? " that are emulated" : "", dlc_str_text(&list));
    dlc_str_deinit(&list);
    return status;
}

static dlc_status write_text(writer *w, dlc_part *p)
{
    const dlc_text_form *texts = p->backend->texts;
    for (uint32_t i = 0; i < p->backend->ntexts; i++)
        if (texts[i].artifact == w->options->artifact)
            return texts[i].write(p, &w->output, w->arena, w->diag);
    return refuse_text(w, p);
}

static dlc_status write_header(writer *w)
{
    dlc_str text = {0};
    dlc_header_print(w->pieces[0].module, w->options->name, &text);
    dlc_status status = dlc_output_write(&w->output, text.data, text.n, w->diag);
    dlc_str_deinit(&text);
    return status;
}

static dlc_status write_artifact(writer *w)
{
    switch (w->options->artifact) {
    case DLC_ARTIFACT_H:
        return write_header(w);
    case DLC_ARTIFACT_SO:
    case DLC_ARTIFACT_O:
    case DLC_ARTIFACT_A:
        return write_binary(w);
    default:
        for (uint32_t i = 0; i < w->npieces; i++)
            DLC_TRY(write_text(w, &w->pieces[i]));
        return DLC_OK;
    }
}

static int is_identifier(const char *name)
{
    enum { MAX_CHARS = 200 };
    if (!name || !*name || dlc_is_digit(*name) || strlen(name) > MAX_CHARS)
        return 0;
    for (; *name; name++)
        if (!dlc_is_alnum(*name) && *name != '_')
            return 0;
    return 1;
}

/* --- parts --- */
static void add_arch(writer *w, dlc_part *p, int arch)
{
    uint32_t at = 0;
    while (at < p->archs.n && p->archs.data[at] < arch)
        at++;
    if (at < p->archs.n && p->archs.data[at] == arch)
        return;
    dlc_vec_push(w->arena, &p->archs, arch);
    memmove(&p->archs.data[at + 1], &p->archs.data[at], (p->archs.n - 1 - at) * sizeof(int));
    p->archs.data[at] = arch;
}

/* Its code's source, and its plan as it is without name and binaries. */
static dlc_status open_part(writer *w, const dlc_executable_part *part, dlc_part *p)
{
    *p = (dlc_part){.module = part->module,
                    .backend = dlc_backend_of(part->module->target, w->options->emulate),
                    .emit = {.kind = DLC_EMIT_OBJECT, .njobs = w->options->njobs}};
    if (!p->backend) /* what is for a CPU runs as it is */
        p->backend = dlc_backend_of(part->module->target, 0);
    for (uint32_t i = 0; i < part->narchs; i++)
        add_arch(w, p, part->archs[i]);
    if (!part->narchs)
        add_arch(w, p, atoi(p->module->target->cpu));
    return p->backend->prepare ? p->backend->prepare(p, w->arena, w->diag) : DLC_OK;
}

/* Parts that came to the same plan and kernels share them: their plans are compared without names
 * and binaries. */
static dlc_status find_same(writer *w, dlc_part *p, dlc_part **same)
{
    *same = NULL;
    if (!p->backend->is_same)
        return DLC_OK;
    p->cuda.name = "";
    DLC_TRY(dlc_plan_build(p->module, &p->cuda, &w->constants, w->arena, w->diag, &p->plan));
    p->cuda.name = NULL;
    for (uint32_t i = 0; i < w->npieces && !*same; i++) {
        dlc_part *other = &w->pieces[i];
        if (other->backend == p->backend && other->plan.size_bytes == p->plan.size_bytes &&
            !memcmp(other->plan.bytes, p->plan.bytes, p->plan.size_bytes) &&
            p->backend->is_same(other, p))
            *same = other;
    }
    return DLC_OK;
}

static dlc_status add_piece(writer *w, const dlc_executable_part *part)
{
    dlc_part p, *same;
    DLC_TRY(open_part(w, part, &p));
    DLC_TRY(find_same(w, &p, &same));
    if (same) {
        const char *name = same->cuda.name ? same->cuda.name : same->module->target->name;
        same->cuda.name = dlc_arena_printf(w->arena, "%s,%s", name, p.module->target->name);
        for (uint32_t k = 0; k < p.archs.n; k++)
            add_arch(w, same, p.archs.data[k]);
        return DLC_OK;
    }
    const dlc_part *last = w->npieces ? &w->pieces[w->npieces - 1] : NULL;
    p.emit.first = last ? last->emit.first + last->module->kernels.n : 0;
    w->pieces[w->npieces++] = p;
    return DLC_OK;
}

static dlc_status add_pieces(writer *w, const dlc_executable_part *parts, uint32_t nparts)
{
    w->pieces = dlc_new_array(w->arena, dlc_part, nparts + 1u);
    for (uint32_t i = 0; i < nparts; i++)
        DLC_TRY(add_piece(w, &parts[i]));
    return DLC_OK;
}

dlc_status dlc_executable_write_parts(const dlc_executable_part *parts, uint32_t nparts,
                                      const dlc_executable_options *options, dlc_diag *diag)
{
    if (!is_identifier(options->name))
        return dlc_diag_fail(diag, DLC_USAGE, options->path,
                             "its model is called '%s', wanted a C identifier of at most 200 "
                             "letters, digits and '_'",
                             options->name ? options->name : "");
    writer w = {.options = options, .arena = dlc_arena_create(0), .diag = diag};
    dlc_status status = options->path ? dlc_output_open(&w.output, options->path, diag)
                                      : dlc_output_take(&w.output, options->fd, diag);
    w.output.is_temporary = options->is_temporary;
    if (status == DLC_OK) {
        status = add_pieces(&w, parts, nparts);
        if (status == DLC_OK)
            status = write_artifact(&w);
        if (status == DLC_OK)
            status = dlc_output_commit(&w.output,
                                       options->artifact == DLC_ARTIFACT_SO ? 0777 : 0666, diag);
        dlc_output_abandon(&w.output);
    }
    for (uint32_t i = 0; i < w.npieces; i++)
        dlc_child_close(&w.pieces[i].code);
    dlc_arena_destroy(w.arena);
    return status;
}

dlc_status dlc_executable_write(const dlc_module *module, const dlc_executable_options *options,
                                dlc_diag *diag)
{
    return dlc_executable_write_parts(&(dlc_executable_part){.module = module}, 1, options, diag);
}

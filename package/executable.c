/*
 * Writes artifacts. Code comes from child processes (child.c), one per part; plans, constants and
 * the binaries of CUDA kernels go into an object of data (elf.c), the linker makes one of all
 * (link.c). Everything happens in a folder
 * of its own beside the output; the finished file is then renamed to its place, so the output is
 * whole or absent and an older one survives every failure.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/text.h"
#include "package/archive.h"
#include "package/child.h"
#include "codegen/codegen.h"
#include "package/elf.h"
#include "package/header.h"
#include "package/link.h"
#include "package/plan.h"
#include "codegen/ptx/object.h"
#include "codegen/ptx/text.h"
#include "dlc/checksum.h"

/* A part on its way into the file. */
typedef struct {
    const dlc_module *module;
    dlc_vec(int) archs; /* of CUDA, ascending */
    dlc_emit_options emit;
    int is_cuda;
    dlc_cuda_sources sources; /* of CUDA */
    dlc_child_code code;
    dlc_plan_cuda cuda;
    dlc_blob plan;
} piece;

typedef struct {
    piece *pieces;
    uint32_t npieces;
    const dlc_executable_options *options;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_output output;
    char *folder; /* of temporary files; NULL: none yet */
    dlc_pieces constants, binaries;
} writer;

static dlc_status io_failure(const writer *w, const char *what)
{
    return dlc_diag_fail(w->diag, DLC_IO, w->options->path, "%s: %s", what, strerror(errno));
}

/* --- the folder of temporary files --- */
static dlc_status make_folder(writer *w)
{
    const char *slash = strrchr(w->output.temporary, '/');
    int n = slash ? (int)(slash - w->output.temporary) : 1;
    /* "./" keeps a name that starts with '-' or '@' from being read as an option by the linker */
    const char *parent = slash ? w->output.temporary : ".";
    char *path = dlc_arena_printf(w->arena, "%s%.*s/.dlc-XXXXXX",
                                  *parent == '/' || *parent == '.' ? "" : "./", n, parent);
    if (!mkdtemp(path))
        return io_failure(w, "no folder for temporary files can be made beside it");
    w->folder = path;
    return DLC_OK;
}

static void remove_folder(writer *w)
{
    if (!w->folder)
        return;
    int fd = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(fd, entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(w->folder);
}

static const char *path_in(writer *w, const char *name)
{
    return dlc_arena_printf(w->arena, "%s/%s", w->folder, name);
}

static int create(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static dlc_status write_object(writer *w, const char *path, const dlc_blob *blob)
{
    int fd = create(path);
    const char *from = blob->bytes;
    size_t left = blob->size_bytes;
    while (fd >= 0 && left) {
        ssize_t n = write(fd, from, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        from += n;
        left -= (size_t)n;
    }
    dlc_status status =
        fd < 0 || left ? io_failure(w, "a temporary object cannot be written") : DLC_OK;
    if (fd >= 0)
        close(fd);
    return status;
}

/* --- the object of data --- */
typedef dlc_vec(dlc_elf_symbol) symbol_list;
typedef dlc_vec(dlc_elf_pointer) pointer_list;

static void add_pointer(writer *w, pointer_list *list, uint64_t offset, const char *target)
{
    dlc_elf_pointer pointer = {offset, target};
    dlc_vec_push(w->arena, list, pointer);
}

/* One symbol of bytes in a section of its own. */
static void add_symbol(writer *w, symbol_list *symbols, const char *name, const char *section,
                       const void *bytes, size_t size_bytes)
{
    dlc_blob *blob = dlc_new(w->arena, dlc_blob);
    *blob = (dlc_blob){bytes, size_bytes};
    dlc_elf_symbol symbol = {
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
    dlc_elf_symbol symbol = {.name = name,
                             .section = section,
                             .pieces = pool->pieces.data,
                             .npieces = pool->pieces.n,
                             .align_bytes = 64};
    dlc_vec_push(w->arena, symbols, symbol);
}

static int has_functions(const writer *w, const piece *p)
{
    return !p->is_cuda || w->options->emulate;
}

/* A part's plan and, when its kernels are functions, the table of their addresses. */
static void add_plan(writer *w, symbol_list *symbols, uint32_t i)
{
    const piece *p = &w->pieces[i];
    uint32_t nkernels = p->module->kernels.n;
    pointer_list pointers = {0};
    add_symbol(w, symbols, dlc_arena_printf(w->arena, "dlc_plan%u", i),
               dlc_arena_printf(w->arena, ".dlc.plan%u", i), p->plan.bytes, p->plan.size_bytes);
    if (!has_functions(w, p))
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
        const piece *p = &w->pieces[i];
        uint64_t at = i * sizeof *entries;
        entries[i].checksum = dlc_checksum(p->plan.bytes, p->plan.size_bytes);
        add_pointer(w, &pointers, at + offsetof(dlc_plan_entry, plan),
                    dlc_arena_printf(w->arena, "dlc_plan%u", i));
        if (has_functions(w, p))
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
    dlc_elf_symbol *symbol = &symbols->data[symbols->n - 1];
    symbol->alias = w->options->artifact == DLC_ARTIFACT_SO ? "dlc_executable" : NULL;
    symbol->is_exported = 1;
}

/* Of the parts' code; of the machine this runs on when all are of CUDA. */
static dlc_status file_machine(const writer *w, dlc_elf_machine *machine)
{
    static const dlc_elf_machine machines[] = {DLC_ELF_X86_64, DLC_ELF_AARCH64};
    const piece *first = NULL;
    *machine = machines[dlc_host_arch];
    for (uint32_t i = 0; i < w->npieces; i++) {
        const piece *p = &w->pieces[i];
        if (p->is_cuda)
            continue;
        dlc_elf_machine found = machines[!strncmp(p->module->target->triple, "aarch64", 7)];
        if (first && found != *machine)
            return dlc_diag_fail(w->diag, DLC_USAGE, w->options->path,
                                 "the targets %s and %s are different processors; one file holds "
                                 "the code of one",
                                 first->module->target->name, p->module->target->name);
        *machine = found;
        first = p;
    }
    return DLC_OK;
}

static dlc_status write_data(writer *w, const char *path)
{
    dlc_elf_machine machine;
    symbol_list symbols = {0};
    DLC_TRY(file_machine(w, &machine));
    for (uint32_t i = 0; i < w->npieces; i++)
        add_plan(w, &symbols, i);
    add_pool(w, &symbols, "dlc_constants", ".dlc.weights", &w->constants);
    if (w->binaries.pieces.n)
        add_pool(w, &symbols, "dlc_binaries", ".dlc.binaries", &w->binaries);
    add_entries(w, &symbols);
    add_executable(w, &symbols);
    int fd = create(path);
    if (fd < 0)
        return io_failure(w, "a temporary object cannot be written");
    dlc_status status = dlc_elf_write(fd, machine, symbols.data, symbols.n, w->arena, w->diag);
    close(fd);
    return status;
}

/* --- finishing --- */
/* Appends the trailer: what lets the runtime refuse a file that changed since. */
static dlc_status add_trailer(writer *w, int fd)
{
    struct stat info;
    dlc_trailer trailer = {.magic = DLC_TRAILER_MAGIC};
    size_t head = offsetof(dlc_trailer, checksum);
    if (fstat(fd, &info) || lseek(fd, 0, SEEK_END) < 0)
        return io_failure(w, "the linked file cannot be read");
    trailer.file_bytes = (uint64_t)info.st_size;
    if (write(fd, &trailer, head) != (ssize_t)head)
        return io_failure(w, "the trailer cannot be written");
    void *bytes = mmap(NULL, (size_t)info.st_size + head, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return io_failure(w, "the linked file cannot be mapped");
    trailer.checksum = dlc_checksum(bytes, (size_t)info.st_size + head);
    munmap(bytes, (size_t)info.st_size + head);
    if (write(fd, &trailer.checksum, sizeof trailer.checksum) != sizeof trailer.checksum)
        return io_failure(w, "the trailer cannot be written");
    return DLC_OK;
}

static dlc_status localize(writer *w, int fd, dlc_blob *object)
{
    struct stat info;
    if (fstat(fd, &info))
        return io_failure(w, "the linked object cannot be read");
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return io_failure(w, "the linked object cannot be mapped");
    *object = (dlc_blob){bytes, (size_t)info.st_size};
    return dlc_elf_localize(bytes, object->size_bytes, w->arena, w->diag);
}

static dlc_status write_archive(writer *w, const dlc_blob *object)
{
    const char **names;
    uint32_t nnames;
    DLC_TRY(dlc_elf_globals(object->bytes, object->size_bytes, w->arena, w->diag, &names, &nnames));
    return dlc_archive_write(&w->output, w->options->name, object->bytes, object->size_bytes, names,
                             nnames, w->diag);
}

/* The linked file takes the place of the output's temporary one. */
static dlc_status adopt(writer *w, const char *linked, int fd)
{
    if (rename(linked, w->output.temporary) || dup3(fd, w->output.fd, O_CLOEXEC) < 0)
        return io_failure(w, "the linked file cannot be renamed");
    return DLC_OK;
}

static dlc_status finish(writer *w, const char *linked, int fd)
{
    dlc_artifact artifact = w->options->artifact;
    dlc_blob object = {0};
    dlc_status status = artifact == DLC_ARTIFACT_SO ? add_trailer(w, fd) : localize(w, fd, &object);
    if (status == DLC_OK)
        status = artifact == DLC_ARTIFACT_A ? write_archive(w, &object) : adopt(w, linked, fd);
    if (object.bytes)
        munmap((void *)(uintptr_t)object.bytes, object.size_bytes);
    return status;
}

static dlc_status link_all(writer *w, const char *const *objects, uint32_t nobjects)
{
    dlc_link_kind kind =
        w->options->artifact == DLC_ARTIFACT_SO ? DLC_LINK_SHARED : DLC_LINK_RELOCATABLE;
    const char *linked = path_in(w, "linked");
    DLC_TRY(dlc_link(kind, objects, nobjects, linked, w->arena, w->diag));
    int fd = open(linked, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return io_failure(w, "the linked file cannot be opened");
    dlc_status status = finish(w, linked, fd);
    close(fd);
    return status;
}

/* --- code --- */
static dlc_status emit_cpu(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs,
                           uint32_t *nblobs)
{
    const piece *p = work;
    return dlc_cpu_emit(p->module, &p->emit, arena, diag, blobs, nblobs);
}

static dlc_status emit_emulated(const void *work, dlc_arena *arena, dlc_diag *diag,
                                dlc_blob **blobs, uint32_t *nblobs)
{
    const piece *p = work;
    return dlc_cuda_emulate(p->module, &p->emit, arena, diag, blobs, nblobs);
}

static dlc_status emit_cuda(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs,
                            uint32_t *nblobs)
{
    const piece *p = work;
    return dlc_cuda_emit(&p->sources, p->archs.data, p->archs.n, p->emit.njobs, arena, diag, blobs,
                         nblobs);
}

/* The binaries of a CUDA part's kernels join the executable's. */
static dlc_status take_binaries(writer *w, piece *p)
{
    size_t nrows = p->code.blobs[0].size_bytes / sizeof(dlc_cuda_row);
    const dlc_cuda_row *rows =
        dlc_arena_copy(w->arena, p->code.blobs[0].bytes, p->code.blobs[0].size_bytes);
    dlc_plan_binary *binaries = dlc_new_array(w->arena, dlc_plan_binary, nrows + 1);
    for (size_t i = 0; i < nrows; i++) {
        binaries[i] = rows[i].binary;
        if (!dlc_pieces_add(&w->binaries, &p->code.blobs[rows[i].blob], w->arena,
                            &binaries[i].offset))
            return dlc_diag_fail(w->diag, DLC_LIMIT, w->options->path,
                                 "the kernels are larger than memory");
    }
    p->cuda.binaries = binaries;
    p->cuda.nbinaries = p->archs.n + 1;
    return DLC_OK;
}

static dlc_status emit_code(writer *w, piece *p)
{
    dlc_child_body body = !p->is_cuda ? emit_cpu : w->options->emulate ? emit_emulated : emit_cuda;
    DLC_TRY(dlc_child_emit(body, p, w->arena, w->diag, &p->code));
    return body == emit_cuda ? take_binaries(w, p) : DLC_OK;
}

/* Objects of a part's functions. */
static dlc_status write_objects(writer *w, const piece *p, uint32_t number, const char **objects,
                                uint32_t *nobjects)
{
    for (uint32_t i = 0; i < p->code.nblobs; i++) {
        const char *path = path_in(w, dlc_arena_printf(w->arena, "code%u_%u.o", number, i));
        DLC_TRY(write_object(w, path, &p->code.blobs[i]));
        objects[(*nobjects)++] = path;
    }
    return DLC_OK;
}

static dlc_status write_binary(writer *w)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < w->npieces; i++) {
        piece *p = &w->pieces[i];
        DLC_TRY(emit_code(w, p));
        DLC_TRY(dlc_plan_build(p->module, &p->cuda, &w->constants, w->arena, w->diag, &p->plan));
        n += p->code.nblobs;
    }
    DLC_TRY(make_folder(w));
    const char **objects = dlc_new_array(w->arena, const char *, n);
    objects[0] = path_in(w, "data.o");
    DLC_TRY(write_data(w, objects[0]));
    n = 1;
    for (uint32_t i = 0; i < w->npieces; i++)
        if (has_functions(w, &w->pieces[i]))
            DLC_TRY(write_objects(w, &w->pieces[i], i, objects, &n));
    return link_all(w, objects, n);
}

/* --- text --- */
static dlc_status write_blob(writer *w, const dlc_blob *blob)
{
    return dlc_output_write(&w->output, blob->bytes, blob->size_bytes, w->diag);
}

static dlc_status write_code_text(writer *w, piece *p, dlc_emit_kind kind)
{
    if (p->is_cuda)
        return dlc_diag_fail(w->diag, DLC_USAGE, w->options->path,
                             "kernels for %s are CUDA C: there are cu and asm (PTX) of them",
                             p->module->target->name);
    p->emit.kind = kind;
    DLC_TRY(dlc_child_emit(emit_cpu, p, w->arena, w->diag, &p->code));
    for (uint32_t i = 0; i < p->code.nblobs; i++)
        DLC_TRY(write_blob(w, &p->code.blobs[i]));
    return DLC_OK;
}

/* Each distinct kernel under its name. */
static dlc_status write_ptx(writer *w, piece *p)
{
    DLC_TRY(emit_code(w, p));
    for (uint32_t i = 0; i < p->module->kernels.n; i++) {
        const dlc_plan_binary *ptx = &p->cuda.binaries[i * p->cuda.nbinaries + p->archs.n];
        const char *line =
            dlc_arena_printf(w->arena, "// %s\n", p->module->kernels.data[i].kernel->name);
        uint32_t at = 0;
        while (w->binaries.offsets.data[at] != ptx->offset)
            at++;
        dlc_blob text = w->binaries.pieces.data[at];
        text.size_bytes -= text.size_bytes > 0; /* the NUL */
        DLC_TRY(write_blob(w, &(dlc_blob){line, strlen(line)}));
        DLC_TRY(write_blob(w, &text));
    }
    return DLC_OK;
}

static dlc_status write_cuda_c(writer *w, piece *p)
{
    if (!p->is_cuda)
        return dlc_diag_fail(w->diag, DLC_USAGE, w->options->path,
                             "kernels for %s are no CUDA C: there are ll and asm of them",
                             p->module->target->name);
    const dlc_cuda_sources *sources = &p->sources;
    DLC_TRY(write_blob(w, &(dlc_blob){dlc_cuda_prelude, strlen(dlc_cuda_prelude)}));
    for (uint32_t i = 0; i < sources->n; i++) {
        const char *line =
            dlc_arena_printf(w->arena, "/* kernel %u: %s; %u threads, %u units per block */\n", i,
                             p->module->kernels.data[i].kernel->name, sources->launches[i].threads,
                             sources->launches[i].units_per_block);
        DLC_TRY(write_blob(w, &(dlc_blob){line, strlen(line)}));
        DLC_TRY(write_blob(w, &(dlc_blob){sources->texts[i], strlen(sources->texts[i])}));
    }
    return DLC_OK;
}

static dlc_status write_text(writer *w, piece *p)
{
    if (w->options->artifact == DLC_ARTIFACT_CU)
        return write_cuda_c(w, p);
    if (w->options->artifact == DLC_ARTIFACT_ASM && p->is_cuda)
        return write_ptx(w, p);
    return write_code_text(
        w, p, w->options->artifact == DLC_ARTIFACT_LL ? DLC_EMIT_LLVM_IR : DLC_EMIT_ASM);
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
    case DLC_ARTIFACT_LL:
    case DLC_ARTIFACT_ASM:
    case DLC_ARTIFACT_CU:
        for (uint32_t i = 0; i < w->npieces; i++)
            DLC_TRY(write_text(w, &w->pieces[i]));
        return DLC_OK;
    default:
        return write_binary(w);
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
static void add_arch(writer *w, piece *p, int arch)
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

static piece make_piece(writer *w, const dlc_executable_part *part)
{
    piece p = {.module = part->module,
               .is_cuda = part->module->target->kind == DLC_TARGET_CUDA,
               .emit = {.kind = DLC_EMIT_OBJECT, .njobs = w->options->njobs}};
    for (uint32_t i = 0; i < part->narchs; i++)
        add_arch(w, &p, part->archs[i]);
    if (p.is_cuda && !part->narchs)
        add_arch(w, &p, atoi(p.module->target->cpu));
    return p;
}

/* Its kernels' text, and its plan as it is without name and binaries. */
static dlc_status open_cuda(writer *w, piece *p)
{
    DLC_TRY(dlc_cuda_sources_make(p->module, w->arena, w->diag, &p->sources));
    p->cuda = (dlc_plan_cuda){
        .launches = p->sources.launches, .name = "", .emulate = w->options->emulate};
    DLC_TRY(dlc_plan_build(p->module, &p->cuda, &w->constants, w->arena, w->diag, &p->plan));
    p->cuda.name = NULL;
    return DLC_OK;
}

static int is_same(const piece *a, const piece *b)
{
    if (!a->is_cuda || !b->is_cuda || a->sources.n != b->sources.n ||
        a->plan.size_bytes != b->plan.size_bytes ||
        memcmp(a->plan.bytes, b->plan.bytes, a->plan.size_bytes) != 0)
        return 0;
    for (uint32_t i = 0; i < a->sources.n; i++)
        if (strcmp(a->sources.texts[i], b->sources.texts[i]) != 0)
            return 0;
    return 1;
}

/* CUDA targets that came to the same plan and kernels share them. */
static dlc_status add_piece(writer *w, const dlc_executable_part *part)
{
    piece p = make_piece(w, part);
    if (p.is_cuda)
        DLC_TRY(open_cuda(w, &p));
    for (uint32_t i = 0; p.is_cuda && !w->options->emulate && i < w->npieces; i++) {
        piece *other = &w->pieces[i];
        if (!is_same(other, &p))
            continue;
        const char *name = other->cuda.name ? other->cuda.name : other->module->target->name;
        other->cuda.name = dlc_arena_printf(w->arena, "%s,%s", name, p.module->target->name);
        for (uint32_t k = 0; k < p.archs.n; k++)
            add_arch(w, other, p.archs.data[k]);
        return DLC_OK;
    }
    p.emit.first = w->npieces ? w->pieces[w->npieces - 1].emit.first +
                                    w->pieces[w->npieces - 1].module->kernels.n
                              : 0;
    w->pieces[w->npieces++] = p;
    return DLC_OK;
}

static dlc_status add_pieces(writer *w, const dlc_executable_part *parts, uint32_t nparts)
{
    w->pieces = dlc_new_array(w->arena, piece, nparts + 1u);
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
    dlc_status status = dlc_output_open(&w.output, options->path, diag);
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
    remove_folder(&w);
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

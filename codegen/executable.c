/*
 * Writes artifacts. Code comes from a child process (child.c), the plan and the constants go into
 * an object of data (elf.c), the linker makes one of all (link.c). Everything happens in a folder
 * of its own beside the output; the finished file is then renamed to its place, so the output is
 * whole or absent and an older one survives every failure.
 */
#include <ctype.h>
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
#include "codegen/archive.h"
#include "codegen/child.h"
#include "codegen/codegen.h"
#include "codegen/elf.h"
#include "codegen/header.h"
#include "codegen/link.h"
#include "codegen/plan.h"
#include "dlc/checksum.h"

typedef struct {
    const dlc_module *module;
    const dlc_executable_options *options;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_output output;
    char *folder; /* of temporary files; NULL: none yet */
    dlc_child_code code;
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
static const dlc_elf_pointer *kernel_pointers(writer *w, uint32_t nkernels)
{
    dlc_elf_pointer *pointers = dlc_new_array(w->arena, dlc_elf_pointer, nkernels + 1u);
    for (uint32_t i = 0; i < nkernels; i++)
        pointers[i] =
            (dlc_elf_pointer){i * sizeof(dlc_kernel_fn), dlc_arena_printf(w->arena, "dlc_k%u", i)};
    return pointers;
}

/* The five symbols of an executable: plan, constants, kernels, plans, and the structure that points
 * to them. */
static dlc_status write_data(writer *w, const char *path, const dlc_plan_image *image)
{
    uint32_t nkernels = w->module->kernels.n;
    dlc_blob kernels = {dlc_new_array(w->arena, dlc_kernel_fn, nkernels + 1u),
                        (nkernels + 1u) * sizeof(dlc_kernel_fn)};
    dlc_plan_entry entry = {.checksum = dlc_checksum(image->bytes.bytes, image->bytes.size_bytes)};
    dlc_executable executable = {.magic = DLC_EXECUTABLE_MAGIC,
                                 .abi_version = DLC_ABI_VERSION,
                                 .nplans = 1,
                                 .constants_bytes = image->constants_bytes};
    const dlc_elf_pointer entry_pointers[] = {{offsetof(dlc_plan_entry, plan), "dlc_plan"},
                                              {offsetof(dlc_plan_entry, kernels), "dlc_kernels"}};
    const dlc_elf_pointer executable_pointers[] = {
        {offsetof(dlc_executable, constants), "dlc_constants"},
        {offsetof(dlc_executable, plans), "dlc_plans"}};
    const dlc_blob entry_blob = {&entry, sizeof entry},
                   executable_blob = {&executable, sizeof executable};
    const char *name = dlc_arena_printf(w->arena, "dlc_executable_%s", w->options->name);
    const dlc_elf_symbol symbols[] = {
        {.name = "dlc_plan",
         .section = ".dlc.plan",
         .pieces = &image->bytes,
         .npieces = 1,
         .align_bytes = 64},
        {.name = "dlc_constants",
         .section = ".dlc.weights",
         .pieces = image->constants.data,
         .npieces = image->constants.n,
         .align_bytes = 64},
        {.name = "dlc_kernels",
         .section = ".data.rel.ro.dlc_kernels",
         .pieces = &kernels,
         .npieces = 1,
         .align_bytes = 8,
         .pointers = kernel_pointers(w, nkernels),
         .npointers = nkernels},
        {.name = "dlc_plans",
         .section = ".data.rel.ro.dlc_plans",
         .pieces = &entry_blob,
         .npieces = 1,
         .align_bytes = 8,
         .pointers = entry_pointers,
         .npointers = 2},
        {.name = name,
         .alias = w->options->artifact == DLC_ARTIFACT_SO ? "dlc_executable" : NULL,
         .section = ".data.rel.ro.dlc_executable",
         .pieces = &executable_blob,
         .npieces = 1,
         .align_bytes = 8,
         .is_exported = 1,
         .pointers = executable_pointers,
         .npointers = 2},
    };
    int fd = create(path);
    if (fd < 0)
        return io_failure(w, "a temporary object cannot be written");
    dlc_elf_machine machine =
        strncmp(w->module->target->triple, "aarch64", 7) ? DLC_ELF_X86_64 : DLC_ELF_AARCH64;
    dlc_status status =
        dlc_elf_write(fd, machine, symbols, sizeof symbols / sizeof symbols[0], w->arena, w->diag);
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

static dlc_status write_binary(writer *w)
{
    dlc_plan_image image;
    DLC_TRY(dlc_plan_build(w->module, w->arena, w->diag, &image));
    DLC_TRY(
        dlc_child_emit(w->module, DLC_EMIT_OBJECT, w->options->njobs, w->arena, w->diag, &w->code));
    DLC_TRY(make_folder(w));
    const char **objects = dlc_new_array(w->arena, const char *, w->code.nblobs + 1u);
    objects[0] = path_in(w, "data.o");
    DLC_TRY(write_data(w, objects[0], &image));
    for (uint32_t i = 0; i < w->code.nblobs; i++) {
        objects[i + 1] = path_in(w, dlc_arena_printf(w->arena, "code%u.o", i));
        DLC_TRY(write_object(w, objects[i + 1], &w->code.blobs[i]));
    }
    return link_all(w, objects, w->code.nblobs + 1);
}

/* --- text --- */
static dlc_status write_code_text(writer *w, dlc_emit_kind kind)
{
    DLC_TRY(dlc_child_emit(w->module, kind, 1, w->arena, w->diag, &w->code));
    for (uint32_t i = 0; i < w->code.nblobs; i++)
        DLC_TRY(dlc_output_write(&w->output, w->code.blobs[i].bytes, w->code.blobs[i].size_bytes,
                                 w->diag));
    return DLC_OK;
}

static dlc_status write_header(writer *w)
{
    dlc_str text = {0};
    dlc_header_print(w->module, w->options->name, &text);
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
        return write_code_text(w, DLC_EMIT_LLVM_IR);
    case DLC_ARTIFACT_ASM:
        return write_code_text(w, DLC_EMIT_ASM);
    default:
        return write_binary(w);
    }
}

static int is_identifier(const char *name)
{
    enum { MAX_CHARS = 200 };
    if (!name || !*name || isdigit((unsigned char)*name) || strlen(name) > MAX_CHARS)
        return 0;
    for (; *name; name++)
        if (!(isalnum((unsigned char)*name) || *name == '_') || (unsigned char)*name > 127)
            return 0;
    return 1;
}

dlc_status dlc_executable_write(const dlc_module *module, const dlc_executable_options *options,
                                dlc_diag *diag)
{
    if (!is_identifier(options->name))
        return dlc_diag_fail(diag, DLC_USAGE, options->path,
                             "its model is called '%s', wanted a C identifier of at most 200 "
                             "letters, digits and '_'",
                             options->name ? options->name : "");
    writer w = {.module = module, .options = options, .arena = dlc_arena_create(0), .diag = diag};
    dlc_status status = dlc_output_open(&w.output, options->path, diag);
    w.output.is_temporary = options->is_temporary;
    if (status == DLC_OK) {
        status = write_artifact(&w);
        if (status == DLC_OK)
            status = dlc_output_commit(&w.output,
                                       options->artifact == DLC_ARTIFACT_SO ? 0777 : 0666, diag);
        dlc_output_abandon(&w.output);
    }
    remove_folder(&w);
    dlc_child_close(&w.code);
    dlc_arena_destroy(w.arena);
    return status;
}

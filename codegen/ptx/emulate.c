/*
 * CUDA kernels as code of this machine's processor: the very same text, behind emulate.h, compiled
 * by the system's C compiler. Kernels go in groups of a fixed number to one run of the compiler
 * each, several at a time, so the objects do not depend on how many run at once. An index of a
 * kernel's function is its number among all of the executable, as with code for CPUs. What launches
 * them (fibers.c) is an object that comes with dlc: compiling it anew took two thirds of the time.
 * A group that was compiled before is found again where code is kept (codegen/cache.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "codegen/cache.h"
#include "codegen/codegen.h"
#include "codegen/ptx/text.h"

extern char **environ;

enum { KERNELS_PER_FILE = 8, MOST_JOBS = 64 };

/* What decides numbers: no contraction, no reassociation, integers wrap. The rest keeps a C library
 * out. Of -Og, whose code is as fast as that of -O1 and takes two thirds of its time to make. */
static const char *const flags[] = {
    "cc",
    "-x",
    "c",
    "-std=gnu17",
    "-c",
    "-Og",
    "-w",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-march=native",
    "-fPIC",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
    "-fno-tree-loop-distribute-patterns",
};
enum { NFLAGS = sizeof flags / sizeof *flags };

/* --- the text --- */

static int meets(const char *source)
{
    return strstr(source, "_sync(") || strstr(source, "dlc_shuffle_");
}

static void add_entry(const dlc_kernel *kernel, const dlc_cuda_kernel *made, uint32_t number,
                      dlc_str *out)
{
    dlc_str_printf(out,
                   "static void run_k%u(dlc_thread *here)\n{\n    const dlc_kernel_args *args = "
                   "here->block->args;\n"
                   "    k%u(here, ",
                   number, number);
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        dlc_str_printf(out, "args->buffers[%u], ", b);
    for (uint32_t s = 0; s < kernel->symbols.n; s++)
        dlc_str_printf(out, "args->symbols[%u], ", s);
    dlc_str_add(out, "(long long *)args->fault, here->block->first, here->block->units);\n}\n");
    dlc_str_printf(out,
                   "__attribute__((visibility(\"hidden\"))) void dlc_k%u(const dlc_kernel_args "
                   "*args, long begin, long end)\n"
                   "{\n    static const dlc_launched kernel = {run_k%u, \"k%u\", %u, %u, %d};\n"
                   "    dlc_launch(&kernel, args, begin, end);\n}\n",
                   number, number, number, made->threads, made->units_per_block,
                   meets(made->source));
}

void dlc_cuda_emulation_begin(dlc_str *out)
{
    dlc_str_add(out, dlc_cuda_emulation);
    dlc_str_add(out, dlc_cuda_prelude);
}

/* The name in a line of the prelude that is a row of a table, DLC_TABLE(name, ...); its length, or 0. */
static size_t row_name(const char *line, const char **name)
{
    size_t n = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (!n || line[n] != '(')
        return 0;
    *name = line + n + 1;
    return strcspn(*name, ",)\n");
}

static int says(const char *kernels, const char *name, size_t n)
{
    char word[32];
    if (n > sizeof word - 2)
        return 1;
    word[0] = '_';
    memcpy(word + 1, name, n);
    word[n + 1] = 0;
    return strstr(kernels, word) != NULL;
}

void dlc_cuda_emulation_end(dlc_str *out)
{
    char *to = out->data + strlen(dlc_cuda_emulation), *from = to;
    char *const kernels = to + strlen(dlc_cuda_prelude);
    while (from < kernels) {
        const char *name;
        size_t line = strcspn(from, "\n") + 1, n = row_name(from, &name);
        if (!n || says(kernels, name, n)) {
            memmove(to, from, line);
            to += line;
        }
        from += line;
    }
    memmove(to, kernels, out->n - (size_t)(kernels - out->data) + 1);
    out->n -= (size_t)(kernels - to);
}

dlc_status dlc_cuda_emulation_add(const dlc_schedule *schedule,
                                  uint32_t number, dlc_arena *arena, dlc_diag *diag, dlc_str *out)
{
    dlc_cuda_kernel made;
    DLC_TRY(dlc_cuda_source(schedule, dlc_arena_printf(arena, "k%u", number), arena, diag,
                            &made));
    dlc_str_add(out, made.source);
    add_entry(schedule->kernel, &made, number, out);
    return DLC_OK;
}

/* --- files --- */

typedef struct {
    const dlc_module *module;
    const dlc_emit_options *options;
    dlc_arena *arena;
    dlc_diag *diag;
    const char *folder;
    uint32_t ngroups;
    pid_t *children; /* by group; 0: none, its object was kept */
    dlc_code_cache cache;
    char **keys;     /* by group, malloc'd: what its object is kept by while its child runs */
} job;

static const char *path_of(const job *work, uint32_t group, const char *ending)
{
    return dlc_arena_printf(work->arena, "%s/%u%s", work->folder, group, ending);
}

static dlc_status io_failure(const job *work, const char *path)
{
    return dlc_diag_fail(work->diag, DLC_IO, path, "a temporary file of the emulation: %s",
                         strerror(errno));
}

static dlc_status write_file(const job *work, const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return io_failure(work, path);
    while (n) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno != EINTR)
            break;
        bytes += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    dlc_status status = n ? io_failure(work, path) : DLC_OK;
    close(fd);
    return status;
}

/* What the compiler reads of a group. */
static dlc_status group_text(const job *work, uint32_t group, dlc_str *text)
{
    dlc_status status = DLC_OK;
    uint32_t end = (group + 1) * KERNELS_PER_FILE;
    dlc_cuda_emulation_begin(text);
    for (uint32_t k = group * KERNELS_PER_FILE;
         status == DLC_OK && k < end && k < work->module->kernels.n; k++) {
        const dlc_module_kernel *entry = &work->module->kernels.data[k];
        status = dlc_cuda_emulation_add(entry->schedule, work->options->first + k,
                                        work->arena, work->diag, text);
    }
    dlc_cuda_emulation_end(text);
    return status;
}

static void remove_files(const job *work)
{
    static const char *const endings[] = {".c", ".o", ".log"};
    for (uint32_t group = 0; group < work->ngroups; group++)
        for (uint32_t i = 0; i < sizeof endings / sizeof *endings; i++)
            unlink(path_of(work, group, endings[i]));
    rmdir(work->folder);
}

/* --- the compiler --- */

static dlc_status start(const job *work, uint32_t group)
{
    const char *args[NFLAGS + 4];
    posix_spawn_file_actions_t actions;
    memcpy(args, flags, sizeof flags);
    args[NFLAGS] = "-o";
    args[NFLAGS + 1] = path_of(work, group, ".o");
    args[NFLAGS + 2] = path_of(work, group, ".c");
    args[NFLAGS + 3] = NULL;
    int error = posix_spawn_file_actions_init(&actions);
    if (!error)
        error =
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, path_of(work, group, ".log"),
                                             O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error)
        error = posix_spawnp(&work->children[group], args[0], &actions, NULL,
                             (char *const *)(uintptr_t)args, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (!error)
        return DLC_OK;
    return dlc_diag_fail(work->diag, DLC_NO_DEVICE, NULL,
                         "the emulation compiles kernels with the C compiler `cc`, which cannot be "
                         "started: %s; install gcc or clang",
                         strerror(error));
}

static void add_log(const job *work, uint32_t group)
{
    enum { MAX_CHARS = 2000 };
    char *text = dlc_new_array(work->arena, char, MAX_CHARS + 1);
    int fd = open(path_of(work, group, ".log"), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, MAX_CHARS);
    if (fd >= 0)
        close(fd);
    if (n > 0)
        dlc_diag_detail(work->diag, "%s", text);
}

/* --- what was compiled before --- */

/* The compiler that PATH names first, by its file. */
static int find_compiler(char *path, size_t size_bytes, struct stat *file)
{
    const char *at = getenv("PATH");
    for (size_t n; at && *at; at += n + (at[n] == ':')) {
        n = strcspn(at, ":");
        if (snprintf(path, size_bytes, "%.*s%s/%s", (int)n, at, n ? "" : ".", flags[0]) < (int)size_bytes && !access(path, X_OK) &&
            !stat(path, file))
            return S_ISREG(file->st_mode);
    }
    return 0;
}

/* What it says of itself, a line: the file may be one that starts another. */
static int ask_compiler(char *line, int size_bytes)
{
    FILE *answer = popen("cc --version 2>/dev/null", "re");
    int is_there = answer && fgets(line, size_bytes, answer) && strchr(line, '\n');
    if (answer && pclose(answer))
        is_there = 0;
    return is_there;
}

/* The processor, as which -march=native compiles: a hash of its name and of what it can do. */
static uint64_t processor_hash(void)
{
    enum { MOST_CHARS = 8192 };
    char text[MOST_CHARS];
    int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, MOST_CHARS - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    uint64_t hash = n > 0;
    static const char *const lines[] = {"\ncpu family", "\nmodel", "\nmodel name", "\nflags"};
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines && hash; i++) {
        const char *line = strstr(text, lines[i]);
        hash = line ? dlc_hash(line, 1 + strcspn(line + 1, "\n"), hash) : 0;
    }
    return hash;
}

/* Nothing is kept where it cannot be told what the compiler's answer depends on. */
static dlc_status open_cache(job *work)
{
    char path[4096], version[160];
    struct stat file;
    DLC_TRY(dlc_code_cache_open(&work->cache, work->diag));
    if (work->cache.folder < 0)
        return DLC_OK;
    uint64_t processor = processor_hash();
    if (processor && find_compiler(path, sizeof path, &file) && ask_compiler(version, sizeof version)) {
        snprintf(work->cache.about, sizeof work->cache.about, "cc, %jd bytes of %jd.%09ld, file %ju of %ju, for %016" PRIx64 ", %s",
                 (intmax_t)file.st_size, (intmax_t)file.st_mtim.tv_sec, file.st_mtim.tv_nsec, (uintmax_t)file.st_ino,
                 (uintmax_t)file.st_dev, processor, version);
        return DLC_OK;
    }
    dlc_code_cache_close(&work->cache);
    return DLC_OK;
}

/* Flags, the group's number (the file's name, which an object has) and the text; the object's file where one was kept. */
static int find_kept(const job *work, uint32_t group, const dlc_str *text)
{
    dlc_str key = {0};
    size_t n;
    if (work->cache.folder < 0)
        return 0;
    for (uint32_t i = 0; i < NFLAGS; i++)
        dlc_str_printf(&key, "%s ", flags[i]);
    dlc_str_printf(&key, "%u\n%s", group, text->data);
    char *object = dlc_code_cache_find(&work->cache, key.data, key.n, &n);
    int is_there = object && write_file(work, path_of(work, group, ".o"), object, n) == DLC_OK;
    work->keys[group] = is_there ? NULL : strdup(key.data);
    free(object);
    dlc_str_deinit(&key);
    return is_there;
}

static void keep(const job *work, uint32_t group)
{
    dlc_map map;
    char *key = work->keys[group];
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag none; /* an object that cannot be read is not kept */
    dlc_diag_init(&none, arena);
    if (key && dlc_map_open(path_of(work, group, ".o"), &map, &none) == DLC_OK) {
        dlc_code_cache_add(&work->cache, key, strlen(key), map.bytes, map.size_bytes);
        dlc_map_close(&map);
    }
    dlc_arena_destroy(arena);
    free(key);
    work->keys[group] = NULL;
}

static dlc_status begin_group(const job *work, uint32_t group)
{
    dlc_str text = {0};
    dlc_status status = group_text(work, group, &text);
    int is_kept = status == DLC_OK && find_kept(work, group, &text);
    if (status == DLC_OK && !is_kept)
        status = write_file(work, path_of(work, group, ".c"), text.data, text.n);
    if (status == DLC_OK && !is_kept)
        status = start(work, group);
    dlc_str_deinit(&text);
    return status;
}

static dlc_status finish(const job *work, uint32_t group)
{
    int state;
    pid_t child = work->children[group];
    if (!child)
        return DLC_OK;
    work->children[group] = 0;
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return dlc_diag_fail(work->diag, DLC_INTERNAL, NULL,
                                 "the C compiler's end was not seen: %s", strerror(errno));
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) {
        keep(work, group);
        return DLC_OK;
    }
    if (WIFSIGNALED(state))
        return dlc_diag_fail(work->diag, WTERMSIG(state) == SIGKILL ? DLC_LIMIT : DLC_INTERNAL,
                             NULL, "the C compiler was ended by signal %d (%s)", WTERMSIG(state),
                             strsignal(WTERMSIG(state)));
    dlc_status status =
        dlc_diag_fail(work->diag, DLC_INTERNAL, NULL,
                      "the C compiler refused generated kernels (status %d)", WEXITSTATUS(state));
    add_log(work, group);
    return status;
}

/* Group `g` starts when group g - njobs has ended. */
static dlc_status compile_all(const job *work)
{
    uint32_t njobs = work->options->njobs ? work->options->njobs : 1, ended = 0;
    dlc_status status = DLC_OK;
    njobs = njobs > MOST_JOBS ? MOST_JOBS : njobs;
    for (uint32_t group = 0; status == DLC_OK && group < work->ngroups; group++) {
        if (group - ended == njobs)
            status = finish(work, ended++);
        if (status == DLC_OK)
            status = begin_group(work, group);
    }
    for (; ended < work->ngroups; ended++) {
        dlc_status last = finish(work, ended);
        status = status == DLC_OK ? last : status;
    }
    return status;
}

static dlc_status read_object(const job *work, uint32_t group, dlc_blob *blob)
{
    dlc_map map;
    DLC_TRY(dlc_map_open(path_of(work, group, ".o"), &map, work->diag));
    *blob = (dlc_blob){dlc_arena_copy(work->arena, map.bytes, map.size_bytes), map.size_bytes, NULL};
    dlc_map_close(&map);
    return DLC_OK;
}

static dlc_status emulate(job *work, dlc_blob *blobs)
{
    DLC_TRY(open_cache(work));
    DLC_TRY(compile_all(work));
    for (uint32_t group = 0; group < work->ngroups; group++)
        DLC_TRY(read_object(work, group, &blobs[group]));
    blobs[work->ngroups] = (dlc_blob){dlc_cuda_fibers, dlc_cuda_fibers_bytes, NULL};
    return DLC_OK;
}

static dlc_status check_host(dlc_diag *diag)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("sse4.1"))
        return DLC_OK;
#endif
    return dlc_diag_fail(diag, DLC_NO_DEVICE, NULL,
                         "CUDA kernels are emulated on x86-64 processors that have FMA");
}

dlc_status dlc_cuda_emulate(const dlc_module *module, const dlc_emit_options *options,
                            dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs)
{
    const char *base = getenv("TMPDIR");
    char *folder = dlc_arena_printf(arena, "%s/dlc-emulate.XXXXXX", base && *base ? base : "/tmp");
    job work = {
        .module = module, .options = options, .arena = arena, .diag = diag, .folder = folder, .cache.folder = -1};
    work.ngroups = (module->kernels.n + KERNELS_PER_FILE - 1) / KERNELS_PER_FILE;
    work.children = dlc_new_array(arena, pid_t, work.ngroups + 1u);
    work.keys = dlc_new_array(arena, char *, work.ngroups + 1u);
    DLC_TRY(check_host(diag));
    if (!mkdtemp(folder))
        return dlc_diag_fail(diag, DLC_IO, folder, "no folder for temporary files can be made: %s",
                             strerror(errno));
    *blobs = dlc_new_array(arena, dlc_blob, work.ngroups + 1u);
    *nblobs = work.ngroups + 1;
    dlc_status status = emulate(&work, *blobs);
    remove_files(&work);
    for (uint32_t group = 0; group < work.ngroups; group++)
        free(work.keys[group]);
    dlc_code_cache_close(&work.cache);
    return status;
}

/* Finding libdlc.so: its place is relative to the program's own file, so that an installation can
 * be moved. */
#include "cli/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libdlc.so." DLC_SOVERSION

static int program_folder(char *folder, size_t size_bytes)
{
    ssize_t n = readlink("/proc/self/exe", folder, size_bytes - 1);
    if (n <= 0)
        return 0;
    folder[n] = 0;
    char *slash = strrchr(folder, '/');
    if (!slash)
        return 0;
    *slash = 0;
    return 1;
}

/* LLVM registers its options as it is loaded, and calls abort where memory runs out there: that is a sentence and a status, too. */
static void loading_aborted(int signal)
{
    static const char text[] = "dlc: out of memory: the compiler (libdlc.so) could not be loaded\n";
    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(DLC_LIMIT);
}

static void *open_library(const char *path)
{
    struct sigaction aborted = {.sa_handler = loading_aborted}, before;
    sigaction(SIGABRT, &aborted, &before);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    sigaction(SIGABRT, &before, NULL);
    return handle;
}

static void *open_beside(const char *folder, char *problem, size_t problem_bytes)
{
    static const char *const places[] = {DLC_LIBRARIES "/" LIBRARY, "../lib/" LIBRARY, LIBRARY};
    char path[PATH_MAX + 32];
    for (uint32_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, places[i]);
        if (access(path, F_OK) != 0)
            continue;
        void *handle = open_library(path);
        if (handle)
            return handle;
        snprintf(problem, problem_bytes, "%s", dlerror());
        return NULL;
    }
    snprintf(problem, problem_bytes, "there is no " LIBRARY " in %s/" DLC_LIBRARIES, folder);
    return NULL;
}

static dlc_status resolve(void *handle, dlc_library *table, dlc_diag *diag)
{
#define DLC_LIBRARY(name)                                                                          \
    if (!(table->name = (__typeof__(table->name))dlsym(handle, "dlc_" #name)))                     \
        return dlc_diag_fail(diag, DLC_IO, NULL,                                                   \
                             "libdlc.so lacks dlc_" #name "; it is of another version");
#include "cli/library.def"
#undef DLC_LIBRARY
    return DLC_OK;
}

dlc_status dlc_library_load(const dlc_library **library, dlc_diag *diag)
{
    static dlc_library table; /* one per process, as the shared library is */
    static int is_loaded;
    *library = &table;
    if (is_loaded)
        return DLC_OK;
    char folder[PATH_MAX], problem[PATH_MAX + 64];
    if (!program_folder(folder, sizeof folder))
        return dlc_diag_fail(
            diag, DLC_IO, NULL,
            "the compiler (libdlc.so) was not found: /proc/self/exe cannot be read");
    void *handle = open_beside(folder, problem, sizeof problem);
    if (!handle)
        return dlc_diag_fail(diag, DLC_IO, NULL, "the compiler (libdlc.so) cannot be loaded: %s",
                             problem);
    DLC_TRY(resolve(handle, &table, diag));
    is_loaded = 1;
    return DLC_OK;
}

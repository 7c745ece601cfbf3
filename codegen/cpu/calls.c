/* LLVM's shared library, opened, and its functions found by name. */
#include "codegen/cpu/calls.h"

#include <stdint.h>

#ifdef DLC_LLVM_LIBRARY
#include <assert.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

dlc_llvm_table dlc_llvm_calls;

static const char *const names[] = {
#define DLC_LLVM(name) #name,
#include "codegen/cpu/llvm.def"
#undef DLC_LLVM
};
enum { NNAMES = sizeof names / sizeof *names };
static_assert(sizeof dlc_llvm_calls == NNAMES * sizeof(void *), "the table holds one address after the other");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_open;
static const char *file; /* that it was opened from: while it is open, so to the process's end */

static dlc_status cannot_be_loaded(dlc_diag *diag)
{
    const char *reason = dlerror();
    int is_memory = reason && strstr(reason, "annot allocate memory");
    return dlc_diag_fail(diag, is_memory ? DLC_LIMIT : DLC_IO, NULL, "LLVM, which makes the code, cannot be loaded: %s",
                         reason ? reason : "the reason is not known");
}

/* The tables by which it was relocated, 20 MiB that nothing reads again, need not stay in this process: they are the file's, as is all
 * that is never written, and come back when they are read. */
static int leave_tables(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size, (void)user;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (!strstr(info->dlpi_name, DLC_LLVM_LIBRARY))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t first = info->dlpi_addr + segment->p_vaddr, last = first + segment->p_filesz;
        if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
            (void)madvise((void *)(first / page * page), last - first / page * page, MADV_DONTNEED);
    }
    return 1;
}

static dlc_status open_library(dlc_diag *diag)
{
    void *library = dlopen(DLC_LLVM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return cannot_be_loaded(diag);
    for (uint32_t i = 0; i < NNAMES; i++) {
        void *address = dlsym(library, names[i]);
        if (!address)
            return cannot_be_loaded(diag);
        memcpy((char *)&dlc_llvm_calls + i * sizeof address, &address, sizeof address);
    }
    struct link_map *map;
    if (!dlinfo(library, RTLD_DI_LINKMAP, &map))
        file = map->l_name;
    (void)dl_iterate_phdr(leave_tables, NULL);
    is_open = 1;
    return DLC_OK;
}

dlc_status dlc_llvm_open(dlc_diag *diag)
{
    pthread_mutex_lock(&lock);
    dlc_status status = is_open ? DLC_OK : open_library(diag);
    pthread_mutex_unlock(&lock);
    return status;
}

const char *dlc_llvm_file(void)
{
    return file;
}
#else
#include <dlfcn.h>

dlc_status dlc_llvm_open(dlc_diag *diag)
{
    (void)diag;
    return DLC_OK;
}

const char *dlc_llvm_file(void)
{
    Dl_info here;
    return dladdr((void *)(uintptr_t)dlc_llvm_open, &here) ? here.dli_fname : NULL;
}
#endif

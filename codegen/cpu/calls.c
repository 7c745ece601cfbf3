/* LLVM's shared library, opened, and its functions found by name. */
#include "codegen/cpu/calls.h"

#ifdef DLC_LLVM_LIBRARY
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

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

static dlc_status cannot_be_loaded(dlc_diag *diag)
{
    const char *reason = dlerror();
    int is_memory = reason && strstr(reason, "annot allocate memory");
    return dlc_diag_fail(diag, is_memory ? DLC_LIMIT : DLC_IO, NULL, "LLVM, which makes the code, cannot be loaded: %s",
                         reason ? reason : "the reason is not known");
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
#else
dlc_status dlc_llvm_open(dlc_diag *diag)
{
    (void)diag;
    return DLC_OK;
}
#endif

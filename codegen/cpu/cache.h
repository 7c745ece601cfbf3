/* Objects of kernels that earlier compilations made: a folder of the user's, where DLC_KERNEL_CACHE names one. */
#ifndef DLC_CODEGEN_CPU_CACHE_H
#define DLC_CODEGEN_CPU_CACHE_H

#include "codegen/cpu/llvm.h"

typedef struct {
    int folder;      /* open; -1: nothing is kept */
    char about[320]; /* what LLVM's answer depends on beside the module */
} dlc_cpu_cache;

/* Makes the folder where there is none. DLC_USAGE: it cannot be opened, or others may write what this user would run. */
DLC_NODISCARD dlc_status dlc_cpu_cache_open(dlc_cpu_cache *cache, const dlc_target *target, dlc_diag *diag);
void dlc_cpu_cache_close(dlc_cpu_cache *cache);

/* The module as bitcode, before any pass, which is what objects are found by; NULL where nothing is kept. The caller disposes. */
LLVMMemoryBufferRef dlc_cpu_cache_key(const dlc_cpu_cache *cache, LLVMModuleRef llvm);
/* What was made of it, or NULL. The caller disposes. Any thread may ask and add at any time; key: not NULL. */
LLVMMemoryBufferRef dlc_cpu_cache_find(const dlc_cpu_cache *cache, LLVMMemoryBufferRef key);
/* What cannot be written is not kept. */
void dlc_cpu_cache_add(const dlc_cpu_cache *cache, LLVMMemoryBufferRef key, LLVMMemoryBufferRef object);

#endif

/* Objects of kernels that earlier compilations made: a folder of the user's, where DLC_KERNEL_CACHE names one. */
#ifndef DLC_CODEGEN_CACHE_H
#define DLC_CODEGEN_CACHE_H

#include <stddef.h>

#include "base/diag.h"

typedef struct {
    int folder;      /* open; -1: nothing is kept */
    char about[320]; /* what the answer depends on beside the key, a line: the caller's, once the folder is open */
} dlc_code_cache;

/* Makes the folder where there is none. DLC_USAGE: it cannot be opened, or others may write what this user would run. */
DLC_NODISCARD dlc_status dlc_code_cache_open(dlc_code_cache *cache, dlc_diag *diag);
void dlc_code_cache_close(dlc_code_cache *cache);

/* What was made of the key, all that a compiler reads: malloc'd, or NULL. Any thread may ask and add at any time. */
char *dlc_code_cache_find(const dlc_code_cache *cache, const void *key, size_t key_bytes, size_t *size_bytes);
/* What cannot be written is not kept. */
void dlc_code_cache_add(const dlc_code_cache *cache, const void *key, size_t key_bytes, const void *object, size_t object_bytes);

#endif

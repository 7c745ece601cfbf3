/*
 * The text of the last failure, one per thread, and allocation that fails with one. A thread's text is allocated at its first failure:
 * for a _Thread_local array of a library that is opened the dynamic linker does that, and ends the process where there is no memory.
 */
#include "runtime/internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_BYTES = 1024 };

static pthread_key_t key;
static int has_key;
static atomic_int is_lost; /* a thread had no memory for its text */

__attribute__((constructor)) static void make_key(void)
{
    has_key = !pthread_key_create(&key, free);
}

/* The library is closed: keys are few. */
__attribute__((destructor)) static void delete_key(void)
{
    if (has_key) {
        free(pthread_getspecific(key));
        has_key = pthread_key_delete(key);
    }
}

static char *text_here(void)
{
    return has_key ? pthread_getspecific(key) : NULL;
}

static char *new_text(void)
{
    char *text = has_key ? calloc(1, TEXT_BYTES) : NULL;
    if (!text || !pthread_setspecific(key, text))
        return text;
    free(text);
    return NULL;
}

const char *dlcrt_last_error(void)
{
    const char *text = text_here();
    return text ? text : is_lost ? "no memory, not even for a sentence that says what for" : "";
}

dlc_status dlcrt_fail(dlc_status status, const char *format, ...)
{
    char *text = text_here();
    va_list args;
    if (!text && !(text = new_text())) {
        is_lost = 1;
        return status;
    }
    va_start(args, format);
    vsnprintf(text, TEXT_BYTES, format, args);
    va_end(args);
    return status;
}

dlc_status dlcrt_no_memory(size_t size_bytes)
{
    return dlcrt_fail(DLC_LIMIT, "%zu bytes of memory could not be had", size_bytes);
}

void *dlcrt_alloc(size_t count, size_t size_bytes)
{
    void *memory = calloc(count ? count : 1, size_bytes);
    if (!memory)
        (void)dlcrt_no_memory(count * size_bytes);
    return memory;
}

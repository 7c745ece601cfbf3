/*
 * Allocated when a thread first asks, freed as it ends. They are no _Thread_local arrays: of a library that is opened, the dynamic linker
 * allocates such memory at its first use, and ends the process where there is none.
 */
#include "compiler/texts.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int has_key;

static void make_key(void)
{
    has_key = pthread_key_create(&key, free) == 0;
}

dlc_texts *dlc_thread_texts(void)
{
    pthread_once(&once, make_key);
    dlc_texts *texts = has_key ? pthread_getspecific(key) : NULL;
    if (texts || !has_key)
        return texts;
    texts = calloc(1, sizeof *texts);
    if (texts && pthread_setspecific(key, texts)) {
        free(texts);
        return NULL;
    }
    return texts;
}

/* The library is closed: keys are few. */
__attribute__((destructor)) static void delete_key(void)
{
    if (!has_key)
        return;
    free(pthread_getspecific(key));
    pthread_key_delete(key);
    has_key = 0;
}

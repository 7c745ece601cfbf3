/* What calls return as text, one of each for a thread, good until it makes the same call again. */
#ifndef DLC_COMPILER_TEXTS_H
#define DLC_COMPILER_TEXTS_H

#include <limits.h>

typedef struct {
    char about[4096], help[400], folder[PATH_MAX], tuned[PATH_MAX], probed_file[PATH_MAX], probed[8192], why[1024];
} dlc_texts;

/* NULL: memory has run out. */
dlc_texts *dlc_thread_texts(void);

#endif

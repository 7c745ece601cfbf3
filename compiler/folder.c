/* Where what may be thrown away is kept: executables of the cache, and what was measured of this machine. */
#include <stdio.h>
#include <stdlib.h>

#include "compiler/texts.h"
#include "dlc/dlc.h"

const char *dlc_cache_folder(void)
{
    dlc_texts *texts = dlc_thread_texts();
    const char *given = getenv("DLC_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    if (!texts)
        return NULL;
    if (given && *given)
        snprintf(texts->folder, sizeof texts->folder, "%s", given);
    else if (xdg && *xdg == '/')
        snprintf(texts->folder, sizeof texts->folder, "%s/dlc", xdg);
    else if (home && *home == '/')
        snprintf(texts->folder, sizeof texts->folder, "%s/.cache/dlc", home);
    else
        return NULL;
    return texts->folder;
}

/* Where what may be thrown away is kept: executables of the cache, and what was measured of this machine. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "dlc/dlc.h"

const char *dlc_cache_folder(void)
{
    static _Thread_local char folder[PATH_MAX];
    const char *given = getenv("DLC_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    if (given && *given)
        snprintf(folder, sizeof folder, "%s", given);
    else if (xdg && *xdg == '/')
        snprintf(folder, sizeof folder, "%s/dlc", xdg);
    else if (home && *home == '/')
        snprintf(folder, sizeof folder, "%s/.cache/dlc", home);
    else
        return NULL;
    return folder;
}

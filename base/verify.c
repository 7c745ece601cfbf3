/* Asked for each compilation: tests set it for some and not for others. */
#include "base/verify.h"

#include <stdlib.h>
#include <string.h>

int dlc_is_verifying(void)
{
#ifdef DLC_VERIFY
    return 1;
#else
    const char *set = getenv("DLC_VERIFY");
    return set && *set && strcmp(set, "0") != 0;
#endif
}

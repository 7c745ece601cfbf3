#include "base/verify.h"

#include <stdlib.h>

int dlc_is_verifying(void)
{
#ifdef DLC_VERIFY
    return 1;
#else
    const char *set = getenv("DLC_VERIFY");
    return set && *set;
#endif
}

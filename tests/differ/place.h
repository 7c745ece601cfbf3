/* Half a unit of the last place, of a number near 1: what rounding to the type may change of it, relatively. */
#ifndef DLC_TESTS_DIFFER_PLACE_H
#define DLC_TESTS_DIFFER_PLACE_H

#include "dlc/dtype.h"

static inline double last_place(dlc_dtype dtype)
{
    return dtype == DLC_F16 ? 0x1p-11 : dtype == DLC_BF16 ? 0x1p-8 : dtype == DLC_F64 ? 0x1p-53 : 0x1p-24;
}

#endif

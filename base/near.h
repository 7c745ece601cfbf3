/* What somebody who mistyped a name may have meant. */
#ifndef DLC_BASE_NEAR_H
#define DLC_BASE_NEAR_H

#include <stdint.h>

/* The candidate nearest to `word` by edits (insert, delete, replace), or NULL when none is near. */
const char *dlc_nearest(const char *word, const char *const *candidates, uint32_t n);

#endif

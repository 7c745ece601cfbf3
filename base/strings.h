/* The strings that tensors of strings hold: such a tensor's elements are numbers of strings, equal strings have one number, and 0
 * is the empty one. */
#ifndef DLC_BASE_STRINGS_H
#define DLC_BASE_STRINGS_H

#include "base/table.h"
#include "base/vec.h"

typedef struct {
    dlc_table numbers;         /* number + 1 */
    dlc_vec(const char *) all; /* by number; empty: only the empty string */
} dlc_strings;

/* The string's number; a string that is new is copied. */
int64_t dlc_strings_add(dlc_strings *strings, dlc_arena *arena, const char *text);
/* Numbers below it are strings. */
static inline int64_t dlc_strings_count(const dlc_strings *strings)
{
    return strings->all.n ? strings->all.n : 1;
}
/* number < dlc_strings_count */
static inline const char *dlc_strings_at(const dlc_strings *strings, int64_t number)
{
    return number ? strings->all.data[number] : "";
}

#endif

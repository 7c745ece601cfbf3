/* A hash table from names to pointers, in an arena; names are borrowed. */
#ifndef DLC_FRONTEND_LOOKUP_H
#define DLC_FRONTEND_LOOKUP_H

#include "base/arena.h"

typedef struct {
    const char *name; /* NULL: free */
    void *item;
} dlc_lookup_entry;

typedef struct {
    dlc_lookup_entry *entries;
    uint32_t n, cap; /* cap: a power of two, or 0 */
} dlc_lookup;

/* The item's place, or NULL when the name is not in the table. Valid until the next insertion. */
void **dlc_lookup_find(const dlc_lookup *table, const char *name);
/* The item's place; *is_new says whether it was made now (with a NULL item). */
void **dlc_lookup_insert(dlc_lookup *table, dlc_arena *arena, const char *name, int *is_new);

#endif

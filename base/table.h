/* A hash table from names to pointers, in an arena; names are borrowed. */
#ifndef DLC_BASE_TABLE_H
#define DLC_BASE_TABLE_H

#include "base/arena.h"

typedef struct {
    const char *name; /* NULL: free */
    uint64_t hash;    /* of the name */
    void *item;
} dlc_table_entry;

typedef struct {
    dlc_table_entry *entries;
    uint32_t n, cap; /* cap: a power of two, or 0 */
} dlc_table;

/* The item's place, or NULL when the name is not in the table. Valid until the next insertion. */
void **dlc_table_find(const dlc_table *table, const char *name);
/* The item's place; *is_new says whether it was made now (with a NULL item). */
void **dlc_table_insert(dlc_table *table, dlc_arena *arena, const char *name, int *is_new);

#endif

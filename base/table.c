/* Names to pointers: open addressing with linear probing, at most half full. */
#include "base/table.h"

#include "base/str.h"

#include <string.h>

/* Names are compared where their hashes are equal. */
static dlc_table_entry *slot_of(const dlc_table *table, const char *name, uint64_t hash)
{
    for (uint32_t i = (uint32_t)hash & (table->cap - 1);; i = (i + 1) & (table->cap - 1)) {
        dlc_table_entry *entry = &table->entries[i];
        if (!entry->name || (entry->hash == hash && strcmp(entry->name, name) == 0))
            return entry;
    }
}

void **dlc_table_find(const dlc_table *table, const char *name)
{
    if (!table->cap)
        return NULL;
    dlc_table_entry *entry = slot_of(table, name, dlc_hash(name, strlen(name), 0));
    return entry->name ? &entry->item : NULL;
}

static void grow(dlc_table *table, dlc_arena *arena)
{
    dlc_table old = *table;
    table->cap = old.cap ? old.cap * 2 : 16;
    table->entries = dlc_new_array(arena, dlc_table_entry, table->cap);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (old.entries[i].name)
            *slot_of(table, old.entries[i].name, old.entries[i].hash) = old.entries[i];
    }
}

void **dlc_table_insert(dlc_table *table, dlc_arena *arena, const char *name, int *is_new)
{
    uint64_t hash = dlc_hash(name, strlen(name), 0);
    if (2 * (table->n + 1) > table->cap)
        grow(table, arena);
    dlc_table_entry *entry = slot_of(table, name, hash);
    *is_new = !entry->name;
    if (*is_new) {
        entry->name = name;
        entry->hash = hash;
        table->n++;
    }
    return &entry->item;
}

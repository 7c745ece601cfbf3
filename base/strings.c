/* Strings and their numbers: a list one way, a hash table the other. */
#include "base/strings.h"

static int64_t insert(dlc_strings *strings, dlc_arena *arena, const char *text)
{
    int is_new;
    void **number = dlc_table_find(&strings->numbers, text);
    if (number)
        return (int64_t)(uintptr_t)*number - 1;
    text = dlc_arena_strdup(arena, text);
    dlc_vec_push(arena, &strings->all, text);
    *dlc_table_insert(&strings->numbers, arena, text, &is_new) = (void *)(uintptr_t)strings->all.n;
    return strings->all.n - 1;
}

int64_t dlc_strings_add(dlc_strings *strings, dlc_arena *arena, const char *text)
{
    if (!strings->all.n)
        (void)insert(strings, arena, "");
    return insert(strings, arena, text);
}

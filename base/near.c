/* Distances between short words; a name that is further away than a third of its letters is another
 * word. */
#include "base/near.h"

#include <stddef.h>
#include <string.h>

enum { MAX_WORD = 40 };

/* Edits (insert, delete, replace) from a to b: one row of the usual table at a time. */
static size_t distance(const char *a, const char *b)
{
    size_t row[MAX_WORD + 1], n = strlen(b);
    if (n > MAX_WORD)
        return n;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            size_t edited = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            row[j + 1] = replaced < edited ? replaced : edited;
        }
    }
    return row[n];
}

const char *dlc_nearest(const char *word, const char *const *candidates, uint32_t n)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 2; /* more edits than this are another word */
    for (uint32_t i = 0; i < n; i++) {
        size_t edits = distance(word, candidates[i]);
        if (edits < least) {
            least = edits;
            best = candidates[i];
        }
    }
    return best;
}

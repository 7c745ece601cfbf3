/* The strings of a run and their numbers (abi.h): those of the plan, which stay, then those that inputs and steps brought. */
#ifndef DLCRT_STRINGS_H
#define DLCRT_STRINGS_H

#include "dlc/runtime.h"

typedef struct {
    uint32_t *slots; /* open addressing: number + 1, or 0 */
    uint32_t n, cap; /* used; a power of two, or 0 */
} dlcrt_string_table;

typedef struct dlcrt_string_block dlcrt_string_block;

/* Zeroed: none but the empty string, which is 0. */
typedef struct dlcrt_strings {
    const char **all;
    uint32_t n, cap;
    uint32_t nfixed;
    dlcrt_string_table fixed, made;
    dlcrt_string_block *first, *current; /* the bytes of those that were made */
} dlcrt_strings;

/* The next number is `text`, for good; borrowed. Before any is made. */
DLC_NODISCARD dlc_status dlcrt_strings_fix(dlcrt_strings *strings, const char *text);
/* Forgets those that were made; their memory is used again. */
void dlcrt_strings_reset(dlcrt_strings *strings);
void dlcrt_strings_free(dlcrt_strings *strings);
size_t dlcrt_strings_bytes(const dlcrt_strings *strings);

/* The number of the string of these n bytes (none of them 0). */
DLC_NODISCARD dlc_status dlcrt_strings_add(dlcrt_strings *strings, const char *bytes, size_t n, int64_t *number);
/* NULL: there is no such number. Holds until the next reset. */
const char *dlcrt_strings_at(const dlcrt_strings *strings, int64_t number);

struct dlcrt_context;
/* Around a run: numbers for the pointers in its inputs, pointers for the numbers in its outputs. */
DLC_NODISCARD dlc_status dlcrt_strings_take(struct dlcrt_context *context);
DLC_NODISCARD dlc_status dlcrt_strings_give(struct dlcrt_context *context);
/* Once, when the context is made: the plan's strings. */
DLC_NODISCARD dlc_status dlcrt_strings_open(struct dlcrt_context *context);

#endif

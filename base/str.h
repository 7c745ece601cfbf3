/* A string builder on the heap, and the few string helpers of the project. */
#ifndef DLC_BASE_STR_H
#define DLC_BASE_STR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *data; /* NUL-terminated once anything was added; "" through dlc_str_text */
    size_t n, cap;
} dlc_str;

void dlc_str_add(dlc_str *str, const char *text);
void dlc_str_addn(dlc_str *str, const char *text, size_t nchars);
void dlc_str_printf(dlc_str *str, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dlc_str_vprintf(dlc_str *str, const char *format, va_list args)
    __attribute__((format(printf, 2, 0), nonnull(2)));
const char *dlc_str_text(const dlc_str *str);
void dlc_str_deinit(dlc_str *str);

/* Shortest decimal text that reads back as the same double; "inf", "-inf", "nan" for the rest. */
void dlc_str_add_double(dlc_str *str, double value);
/* `text` in double quotes with C escapes; bytes outside printable ASCII as \xNN. For messages and the text forms. */
void dlc_str_add_quoted(dlc_str *str, const char *text);

/* 64-bit hash (MurmurHash64A mixing, unaligned-safe); stable across runs and machines of one endianness. */
uint64_t dlc_hash(const void *bytes, size_t size_bytes, uint64_t seed);
/* Another hash, for weights: four lanes with one product a word, so no step waits for the one before it. Three times as fast. */
uint64_t dlc_hash_bulk(const void *bytes, size_t size_bytes, uint64_t seed);

#endif

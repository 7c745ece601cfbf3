/*
 * Numbers and characters of texts that are read again: by us, by a compiler, by other programs.
 * They are the same whatever locale the host program has set, whose decimal comma would spoil a
 * kernel's source and whose letters go beyond ASCII. Safe on any thread; the host's locale stays as
 * it is.
 */
#ifndef DLC_BASE_TEXT_H
#define DLC_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/* As snprintf, vsnprintf and strtod, with a decimal point. */
int dlc_text_print(char *text, size_t size_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int dlc_text_vprint(char *text, size_t size_bytes, const char *format, va_list args)
    __attribute__((format(printf, 3, 0), nonnull(3)));
double dlc_text_double(const char *text, char **end);

/* Equal but for the case of ASCII letters. */
int dlc_text_same_letters(const char *a, const char *b);

/* ASCII alone; `c` is a char, signed or not. */
static inline int dlc_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline int dlc_is_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline int dlc_is_alnum(int c)
{
    return dlc_is_alpha(c) || dlc_is_digit(c);
}

static inline int dlc_is_xdigit(int c)
{
    return dlc_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static inline int dlc_is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline int dlc_is_print(int c)
{
    return c >= ' ' && c <= '~';
}

#endif

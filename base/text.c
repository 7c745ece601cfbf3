/* What the C library prints and reads follows the calling thread's locale, so that is set to "C"
 * for the length of a call: uselocale touches no other thread.
 */
#include "base/text.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t plain; /* never freed: one for the process */

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* The locale to go back to. */
static locale_t enter_plain(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return uselocale(plain);
}

int dlc_text_vprint(char *text, size_t size_bytes, const char *format, va_list args)
{
    locale_t host = enter_plain();
    int n = vsnprintf(text, size_bytes, format, args);
    uselocale(host);
    return n;
}

int dlc_text_print(char *text, size_t size_bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = dlc_text_vprint(text, size_bytes, format, args);
    va_end(args);
    return n;
}

double dlc_text_double(const char *text, char **end)
{
    locale_t host = enter_plain();
    double value = strtod(text, end);
    uselocale(host);
    return value;
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

int dlc_text_same_letters(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return lower(*a) == lower(*b);
}

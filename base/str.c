/* Text that grows by doubling; numbers are printed with the fewest digits that read back exactly.
 */
#include "base/str.h"

#include "base/arena.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void reserve(dlc_str *str, size_t nchars)
{
    size_t need, cap = str->cap ? str->cap : 64;
    if (!dlc_add_size(str->n, nchars, &need) || !dlc_add_size(need, 1, &need))
        dlc_out_of_memory(SIZE_MAX, 0);
    if (need <= str->cap)
        return;
    while (cap < need)
        if (!dlc_mul_size(cap, 2, &cap))
            dlc_out_of_memory(SIZE_MAX, 0);
    char *grown = realloc(str->data, cap);
    if (!grown)
        dlc_out_of_memory(cap, 0);
    str->data = grown;
    str->cap = cap;
}

void dlc_str_addn(dlc_str *str, const char *text, size_t nchars)
{
    reserve(str, nchars);
    if (nchars)
        memcpy(str->data + str->n, text, nchars);
    str->n += nchars;
    str->data[str->n] = 0;
}

void dlc_str_add(dlc_str *str, const char *text)
{
    dlc_str_addn(str, text, strlen(text));
}

void dlc_str_vprintf(dlc_str *str, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = dlc_text_vprint(NULL, 0, format, args);
    if (n > 0) {
        reserve(str, (size_t)n);
        dlc_text_vprint(str->data + str->n, (size_t)n + 1, format, again);
        str->n += (size_t)n;
    }
    va_end(again);
}

void dlc_str_printf(dlc_str *str, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dlc_str_vprintf(str, format, args);
    va_end(args);
}

const char *dlc_str_text(const dlc_str *str)
{
    return str->data ? str->data : "";
}

void dlc_str_deinit(dlc_str *str)
{
    free(str->data);
    *str = (dlc_str){0};
}

void dlc_str_add_double(dlc_str *str, double value)
{
    if (isnan(value)) {
        dlc_str_add(str, "nan");
        return;
    }
    if (isinf(value)) {
        dlc_str_add(str, value < 0 ? "-inf" : "inf");
        return;
    }
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        dlc_text_print(text, sizeof text, "%.*g", digits, value);
        if (dlc_text_double(text, NULL) == value)
            break;
    }
    dlc_str_add(str, text);
}

void dlc_str_add_quoted(dlc_str *str, const char *text)
{
    dlc_str_add(str, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            dlc_str_printf(str, "\\%c", *c);
        else if (*c == '\n')
            dlc_str_add(str, "\\n");
        else if (*c == '\t')
            dlc_str_add(str, "\\t");
        else if (*c < 0x20 || *c > 0x7e)
            dlc_str_printf(str, "\\x%02x", *c);
        else
            dlc_str_addn(str, (const char *)c, 1);
    }
    dlc_str_add(str, "\"");
}

static uint64_t load64(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);

static uint64_t mix(uint64_t h, uint64_t word)
{
    word *= m;
    return (h ^ ((word ^ (word >> 47)) * m)) * m;
}

uint64_t dlc_hash(const void *bytes, size_t size_bytes, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t h = seed ^ (size_bytes * m);
    for (; size_bytes >= 8; at += 8, size_bytes -= 8)
        h = mix(h, load64(at));
    if (size_bytes) {
        unsigned char rest[8] = {0};
        memcpy(rest, at, size_bytes);
        h = (h ^ load64(rest)) * m;
    }
    h = (h ^ (h >> 47)) * m;
    return h ^ (h >> 47);
}

static uint64_t step(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * m;
    return lane << 31 | lane >> 33;
}

uint64_t dlc_hash_bulk(const void *bytes, size_t size_bytes, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t lanes[4] = {seed, seed + 1, seed + 2, seed + 3};
    for (; size_bytes >= sizeof lanes; at += sizeof lanes, size_bytes -= sizeof lanes)
        for (int i = 0; i < 4; i++)
            lanes[i] = step(lanes[i], load64(at + i * 8));
    return dlc_hash(at, size_bytes, mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]));
}

/*
 * Numbers as strings and back. A float is written with the fewest digits that read back as the same float of its type, as numpy
 * writes it: 0.1, 1.0, 1e-05, 1e+16, inf, nan. The caller's locale has no say: digits go to and from the C library without a
 * decimal point.
 */
#include "runtime/steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- floats of 16 bits --- */
static float half_to_float(uint16_t bits)
{
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff, wide;
    float value;
    if (exponent == 0) {
        value = (float)fraction / 16777216.0f;
        return bits >> 15 ? -value : value;
    }
    wide = (uint32_t)(bits >> 15) << 31 | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static double float_of(dlc_dtype dtype, const void *data, int64_t i)
{
    uint16_t half;
    uint32_t wide;
    float single;
    double value;
    if (dtype == DLC_F64) {
        memcpy(&value, (const char *)data + i * 8, sizeof value);
        return value;
    }
    if (dtype == DLC_F32) {
        memcpy(&single, (const char *)data + i * 4, sizeof single);
        return (double)single;
    }
    memcpy(&half, (const char *)data + i * 2, sizeof half);
    if (dtype == DLC_F16)
        return (double)half_to_float(half);
    wide = (uint32_t)half << 16;
    memcpy(&single, &wide, sizeof single);
    return (double)single;
}

/* --- writing --- */
typedef struct {
    char digits[20]; /* d1 d2 …: value = 0.d1d2… * 10^exponent */
    int n, exponent;
} decimal;

static decimal round_decimal(double size, int ndigits)
{
    char text[40];
    decimal d = {.n = ndigits};
    int at = 0;
    snprintf(text, sizeof text, "%.*e", ndigits - 1, size);
    for (const char *c = text; *c && *c != 'e'; c++)
        if (*c >= '0' && *c <= '9' && at < ndigits)
            d.digits[at++] = *c;
    d.exponent = atoi(strchr(text, 'e') + 1) + 1;
    while (d.n > 1 && d.digits[d.n - 1] == '0')
        d.n--;
    return d;
}

static double decimal_value(const decimal *d)
{
    char text[40];
    snprintf(text, sizeof text, "%.*se%d", d->n, d->digits, d->exponent - d->n);
    return strtod(text, NULL);
}

static float decimal_single(const decimal *d)
{
    char text[40];
    snprintf(text, sizeof text, "%.*se%d", d->n, d->digits, d->exponent - d->n);
    return strtof(text, NULL);
}

/* Whether the decimal reads back as `size`, a positive float of a type with so many bits of fraction. */
static int reads_back(const decimal *d, double size, dlc_dtype dtype)
{
    if (dtype == DLC_F64)
        return decimal_value(d) == size;
    if (dtype == DLC_F32)
        return decimal_single(d) == (float)size;
    double least = dtype == DLC_F16 ? 0x1p-14 : 0x1p-126, unit = dtype == DLC_F16 ? 0x1p-10 : 0x1p-7, step = least;
    while (step * 2 <= size)
        step *= 2;
    double error = decimal_value(d) - size, half = step * unit / 2;
    double below = size == step && step > least ? half / 2 : half; /* floats below a power of two lie closer */
    return error < half && -error < below;
}

static decimal shortest(double size, dlc_dtype dtype)
{
    int most = dtype == DLC_F64 ? 17 : dtype == DLC_F32 ? 9 : 6;
    decimal d = round_decimal(size, 1);
    for (int n = 2; n <= most && !reads_back(&d, size, dtype); n++)
        d = round_decimal(size, n);
    return d;
}

static int write_positional(const decimal *d, char *text, size_t size_bytes)
{
    static const char zeros[] = "0000000000000000000";
    if (d->exponent <= 0)
        return snprintf(text, size_bytes, "0.%.*s%.*s", -d->exponent, zeros, d->n, d->digits);
    if (d->n <= d->exponent)
        return snprintf(text, size_bytes, "%.*s%.*s.0", d->n, d->digits, d->exponent - d->n, zeros);
    return snprintf(text, size_bytes, "%.*s.%.*s", d->exponent, d->digits, d->n - d->exponent, d->digits + d->exponent);
}

static int write_float(double value, dlc_dtype dtype, char *text, size_t size_bytes)
{
    const char *sign = __builtin_signbit(value) ? "-" : "";
    if (__builtin_isnan(value))
        return snprintf(text, size_bytes, "nan");
    if (__builtin_isinf(value))
        return snprintf(text, size_bytes, "%sinf", sign);
    if (value == 0)
        return snprintf(text, size_bytes, "%s0.0", sign);
    decimal d = shortest(__builtin_fabs(value), dtype);
    int n = snprintf(text, size_bytes, "%s", sign), exponent = d.exponent - 1;
    if (exponent >= -4 && exponent < 16)
        return n + write_positional(&d, text + n, size_bytes - (size_t)n);
    return n + snprintf(text + n, size_bytes - (size_t)n, "%c%s%.*se%c%02d", d.digits[0], d.n > 1 ? "." : "", d.n - 1,
                        d.digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
}

static int64_t int_of(dlc_dtype dtype, const void *data, int64_t i)
{
    uint32_t n = dlc_dtype_bytes(dtype);
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + i * (int64_t)n, n);
    if (dlc_dtype_kinds[dtype].class_ == DLC_CLASS_INT)
        return (int64_t)(bits << (64 - 8 * n)) >> (64 - 8 * n);
    return (int64_t)bits;
}

static int write_element(const dlcrt_operand *x, int64_t i, char *text, size_t size_bytes)
{
    if (dlc_is_float(x->dtype))
        return write_float(float_of(x->dtype, x->data, i), x->dtype, text, size_bytes);
    int64_t value = int_of(x->dtype, x->data, i);
    if (x->dtype == DLC_BOOL)
        return snprintf(text, size_bytes, "%s", value ? "True" : "False");
    return dlc_is_unsigned(x->dtype) ? snprintf(text, size_bytes, "%" PRIu64, (uint64_t)value)
                                     : snprintf(text, size_bytes, "%" PRId64, value);
}

/* inputs x of numbers; output strings */
dlc_status dlcrt_run_text_write(const dlcrt_opaque_args *args)
{
    DLC_TRY(dlcrt_check_types(args, "*s"));
    DLC_TRY(dlcrt_same_elems(args, 1));
    for (int64_t i = 0, n = dlcrt_operand_elems(&args->operands[0]); i < n; i++) {
        char text[48];
        int64_t number;
        int length = write_element(&args->operands[0], i, text, sizeof text);
        DLC_TRY(dlcrt_strings_add(args->strings, text, (size_t)length, &number));
        dlcrt_number_set(&args->operands[1], i, number);
    }
    return DLC_OK;
}

/* --- reading --- */
static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_word(const char *text, size_t n, const char *word)
{
    if (n != strlen(word))
        return 0;
    for (size_t i = 0; i < n; i++)
        if ((text[i] | 32) != word[i])
            return 0;
    return 1;
}

/* "12.50e3" without its sign: its digits without the point, and the exponent that makes up for it. False: no number. */
static int read_digits(const char *at, const char *end, char *digits, size_t size_bytes, int64_t *exponent)
{
    size_t n = 0, nseen = 0;
    int64_t shift = 0, by = 0;
    int has_point = 0, is_negative = 0;
    for (; at < end && (is_digit(*at) || (*at == '.' && !has_point)); at++) {
        has_point |= *at == '.';
        if (*at == '.')
            continue;
        nseen++;
        shift -= has_point;
        if (n || *at != '0') {
            if (n + 1 < size_bytes)
                digits[n++] = *at;
            else
                shift++; /* digits this far behind change nothing but the exponent */
        }
    }
    if (!nseen)
        return 0;
    if (at < end && (*at | 32) == 'e') {
        at++;
        is_negative = at < end && *at == '-';
        at += at < end && (*at == '-' || *at == '+');
        if (at == end || !is_digit(*at))
            return 0;
        for (; at < end && is_digit(*at); at++)
            by = by < 100000 ? by * 10 + (*at - '0') : by;
    }
    if (!n)
        digits[n++] = '0';
    digits[n] = '\0';
    *exponent = shift + (is_negative ? -by : by);
    return at == end;
}

/* Blanks at both ends do not count. */
static void trim(const char **at, const char **end)
{
    while (**at == ' ' || (**at >= '\t' && **at <= '\r'))
        ++*at;
    *end = *at + strlen(*at);
    while (*end > *at && ((*end)[-1] == ' ' || ((*end)[-1] >= '\t' && (*end)[-1] <= '\r')))
        --*end;
}

static int read_float(const char *text, dlc_dtype dtype, void *result)
{
    enum { MOST_DIGITS = 800 }; /* what lies half way between two doubles has fewer */
    const char *end;
    char digits[MOST_DIGITS + 32];
    int64_t exponent = 0;
    trim(&text, &end);
    int is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    size_t n = (size_t)(end - text);
    if (is_word(text, n, "inf") || is_word(text, n, "infinity"))
        snprintf(digits, sizeof digits, "inf");
    else if (is_word(text, n, "nan"))
        snprintf(digits, sizeof digits, "nan");
    else if (read_digits(text, end, digits, MOST_DIGITS, &exponent))
        snprintf(digits + strlen(digits), 32, "e%" PRId64, exponent);
    else
        return 0;
    if (dtype == DLC_F32) {
        float value = strtof(digits, NULL);
        value = is_negative ? -value : value;
        memcpy(result, &value, sizeof value);
    } else {
        double value = strtod(digits, NULL);
        value = is_negative ? -value : value;
        memcpy(result, &value, sizeof value);
    }
    return 1;
}

static int read_int(const char *text, dlc_dtype dtype, void *result)
{
    const char *end;
    trim(&text, &end);
    int is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    uint64_t size = 0, most = is_negative ? -(uint64_t)dlc_dtype_lowest(dtype) : dlc_dtype_highest(dtype);
    if (text == end)
        return 0;
    for (; text < end; text++)
        if (!is_digit(*text) || __builtin_mul_overflow(size, 10u, &size) || __builtin_add_overflow(size, (uint64_t)(*text - '0'), &size))
            return 0;
    if (size > most)
        return 0;
    size = is_negative ? -size : size;
    memcpy(result, &size, dlc_dtype_bytes(dtype)); /* the low bytes come first */
    return 1;
}

/* inputs x of strings; output numbers: integers, f32 or f64 */
dlc_status dlcrt_run_text_read(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *y = &args->operands[1];
    DLC_TRY(dlcrt_check_types(args, "s*"));
    DLC_TRY(dlcrt_same_elems(args, 1));
    if (!dlc_is_int(y->dtype) && y->dtype != DLC_F32 && y->dtype != DLC_F64)
        return dlcrt_fail(DLC_INVALID, "node '%s': strings are read as integers, f32 and f64, not as %s", args->name,
                          dlc_dtypes[y->dtype].text);
    for (int64_t i = 0, n = dlcrt_operand_elems(y); i < n; i++) {
        const char *text;
        char *at = (char *)y->data + i * (int64_t)dlc_dtype_bytes(y->dtype);
        DLC_TRY(dlcrt_string_of(args, 0, i, &text));
        if (dlc_is_float(y->dtype) ? !read_float(text, y->dtype, at) : !read_int(text, y->dtype, at))
            return dlcrt_fail(DLC_INVALID, "node '%s': element %" PRId64 " is \"%.40s\", which is no %s", args->name, i, text,
                              dlc_dtypes[y->dtype].text);
    }
    return DLC_OK;
}

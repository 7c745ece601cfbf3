/*
 * Steps that make strings of strings: joining, splitting at a delimiter, and dropping stop words in one case. Letters beyond ASCII
 * change case as the C library's C.UTF-8 says: one letter for one letter.
 */
#include "runtime/steps.h"

#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

dlc_status dlcrt_string_of(const dlcrt_opaque_args *args, uint32_t operand, int64_t i, const char **text)
{
    int64_t number;
    memcpy(&number, (const char *)args->operands[operand].data + i * (int64_t)sizeof number, sizeof number);
    *text = dlcrt_strings_at(args->strings, number);
    return *text ? DLC_OK
                 : dlcrt_fail(DLC_INVALID, "node '%s': input %u: element %" PRId64 " is number %" PRId64 " of %u strings",
                              args->name, operand, i, number, args->strings->n);
}

void dlcrt_number_set(const dlcrt_operand *operand, int64_t i, int64_t number)
{
    memcpy((char *)operand->data + i * (int64_t)sizeof number, &number, sizeof number);
}

dlc_status dlcrt_check_types(const dlcrt_opaque_args *args, const char *types)
{
    for (uint32_t i = 0; types[i]; i++) {
        const dlcrt_operand *x = &args->operands[i];
        char type = types[i] | 0x20;
        dlc_dtype wanted = type == 's' ? DLC_STR : type == 'i' ? DLC_I64 : type == 'b' ? DLC_BOOL : x->dtype;
        if (x->dtype != wanted || (!x->data && type == types[i] && dlcrt_operand_elems(x)))
            return dlcrt_fail(DLC_INVALID, "node '%s': operand %u is not what it takes", args->name, i);
    }
    return DLC_OK;
}

dlc_status dlcrt_same_elems(const dlcrt_opaque_args *args, uint32_t operand)
{
    int64_t n = dlcrt_operand_elems(&args->operands[0]), found = dlcrt_operand_elems(&args->operands[operand]);
    return n == found ? DLC_OK
                      : dlcrt_fail(DLC_INVALID, "node '%s': operand %u has %" PRId64 " elements for %" PRId64, args->name,
                                   operand, found, n);
}

/* --- join --- */
/* Strings of a step's results, one after another. */
typedef struct {
    char *bytes;
    size_t n, cap;
} buffer;

static dlc_status put(buffer *b, const char *bytes, size_t n)
{
    if (b->cap - b->n < n) {
        size_t cap = (b->n + n) * 2 + 64;
        char *larger = realloc(b->bytes, cap);
        if (!larger)
            return dlcrt_no_memory(cap);
        b->bytes = larger;
        b->cap = cap;
    }
    if (n) /* b->bytes may be NULL still */
        memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    return DLC_OK;
}

static dlc_status join(const dlcrt_opaque_args *args, buffer *b)
{
    for (int64_t i = 0, n = dlcrt_operand_elems(&args->operands[0]); i < n; i++) {
        const char *left, *right;
        int64_t number;
        DLC_TRY(dlcrt_string_of(args, 0, i, &left));
        DLC_TRY(dlcrt_string_of(args, 1, i, &right));
        b->n = 0;
        DLC_TRY(put(b, left, strlen(left)));
        DLC_TRY(put(b, right, strlen(right)));
        DLC_TRY(dlcrt_strings_add(args->strings, b->bytes, b->n, &number));
        dlcrt_number_set(&args->operands[2], i, number);
    }
    return DLC_OK;
}

/* inputs x, y of one shape; output x and y of each element, one behind the other */
dlc_status dlcrt_run_text_join(const dlcrt_opaque_args *args)
{
    buffer b = {0};
    DLC_TRY(dlcrt_check_types(args, "sss"));
    DLC_TRY(dlcrt_same_elems(args, 1));
    DLC_TRY(dlcrt_same_elems(args, 2));
    dlc_status status = join(args, &b);
    free(b.bytes);
    return status;
}

/* --- split --- */
/* What is left of a string: the next part is cut off its front. An empty delimiter: runs of blanks, none at the ends. */
typedef struct {
    const char *at, *delimiter;
    size_t length;
    int64_t most; /* cuts that may follow; -1: any number */
} rest;

/* Bytes of the blank at `text`, as Unicode has them; 0: it is none. */
static size_t blank_at(const char *text)
{
    static const struct {
        uint32_t first, last;
    } blanks[] = {{0x9, 0xd}, {0x1c, 0x20}, {0x85, 0x85}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a},
                  {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
    const char *behind = text;
    uint32_t code = *text ? dlcrt_character(&behind) : 0;
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++)
        if (code >= blanks[i].first && code <= blanks[i].last)
            return (size_t)(behind - text);
    return 0;
}

/* The first place where the string may be cut, and how many bytes go there; NULL: none. */
static const char *find_cut(const rest *r, size_t *length)
{
    *length = r->length;
    if (r->length)
        return strstr(r->at, r->delimiter);
    for (const char *c = r->at; *c; c++)
        if ((*length = blank_at(c)))
            return c;
    return NULL;
}

/* False: there is none. */
static int next_part(rest *r, const char **part, size_t *n)
{
    size_t length = 0;
    if (!r->at)
        return 0;
    while (!r->length && (length = blank_at(r->at)))
        r->at += length;
    *part = r->at;
    if (!r->length && !*r->at)
        return 0;
    const char *end = r->most ? find_cut(r, &length) : NULL;
    *n = end ? (size_t)(end - r->at) : strlen(r->at);
    r->at = end ? end + length : NULL;
    r->most -= end && r->most > 0;
    return 1;
}

static dlc_status begin_parts(const dlcrt_opaque_args *args, int64_t i, rest *r)
{
    r->most = args->attrs[0];
    DLC_TRY(dlcrt_string_of(args, 1, 0, &r->delimiter));
    r->length = strlen(r->delimiter);
    return dlcrt_string_of(args, 0, i, &r->at);
}

dlc_status dlcrt_count_text_split(const dlcrt_opaque_args *args, int64_t *symbol)
{
    *symbol = 0;
    DLC_TRY(dlcrt_check_types(args, "ss"));
    if (!dlcrt_operand_elems(&args->operands[1]))
        return dlcrt_fail(DLC_INVALID, "node '%s': there is no delimiter", args->name);
    for (int64_t i = 0, n = dlcrt_operand_elems(&args->operands[0]); i < n; i++) {
        rest r;
        const char *part;
        size_t length;
        int64_t count = 0;
        DLC_TRY(begin_parts(args, i, &r));
        while (next_part(&r, &part, &length))
            count++;
        *symbol = count > *symbol ? count : *symbol;
    }
    return DLC_OK;
}

/* inputs x, delimiter (one); outputs parts [..., most], empty strings behind the last, and how many there are, i64; attrs most cuts */
dlc_status dlcrt_run_text_split(const dlcrt_opaque_args *args)
{
    const dlcrt_operand *parts = &args->operands[2], *counts = &args->operands[3];
    int64_t n = dlcrt_operand_elems(&args->operands[0]), width = n ? dlcrt_operand_elems(parts) / n : 0;
    DLC_TRY(dlcrt_check_types(args, "ssSI"));
    if (counts->data)
        DLC_TRY(dlcrt_same_elems(args, 3));
    for (int64_t i = 0; i < n; i++) {
        rest r;
        const char *part;
        size_t length;
        int64_t count = 0, number;
        DLC_TRY(begin_parts(args, i, &r));
        for (; next_part(&r, &part, &length); count++) {
            if (!parts->data || count >= width)
                continue;
            DLC_TRY(dlcrt_strings_add(args->strings, part, length, &number));
            dlcrt_number_set(parts, i * width + count, number);
        }
        for (int64_t k = count; parts->data && k < width; k++)
            dlcrt_number_set(parts, i * width + k, 0);
        if (counts->data)
            dlcrt_number_set(counts, i, count);
    }
    return DLC_OK;
}

/* --- characters --- */
uint32_t dlcrt_character(const char **text)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)*text;
    unsigned n = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = n == 1 ? at[0] : at[0] & (0xffu >> (n + 1));
    for (unsigned i = 1; i < n; i++) {
        if (at[i] >> 6 != 2) {
            n = 0;
            break;
        }
        code = code << 6 | (at[i] & 63u);
    }
    if (!n || code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        *text += 1;
        return 0xfffd;
    }
    *text += n;
    return code;
}

static size_t put_character(uint32_t code, char *bytes)
{
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    unsigned n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (unsigned i = n; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 63));
    bytes[0] = (char)((0xf00u >> n & 0xff) | code);
    return n;
}

/* --- normalize --- */
enum { KEEP_CASE, LOWER_CASE, UPPER_CASE };
typedef struct {
    const dlcrt_opaque_args *args;
    locale_t letters; /* 0 until a letter beyond ASCII is met */
    buffer text, word;
} normalizer;

static dlc_status open_letters(normalizer *z)
{
    if (!z->letters)
        z->letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return z->letters ? DLC_OK
                      : dlcrt_fail(DLC_NO_DEVICE,
                                   "node '%s': letters beyond ASCII change case by the locale C.UTF-8, which is not there",
                                   z->args->name);
}

static dlc_status put_in_case(normalizer *z, const char *text, int to, buffer *b)
{
    char bytes[4];
    b->n = 0;
    while (*text) {
        const char *from = text;
        uint32_t code = dlcrt_character(&text);
        if (code == 0xfffd || to == KEEP_CASE) { /* bytes that are no UTF-8 stay what they are */
            DLC_TRY(put(b, from, (size_t)(text - from)));
            continue;
        }
        if (code < 0x80)
            code += to == LOWER_CASE ? (code >= 'A' && code <= 'Z') * 32u : -(uint32_t)((code >= 'a' && code <= 'z') * 32u);
        else {
            DLC_TRY(open_letters(z));
            code = to == LOWER_CASE ? towlower_l(code, z->letters) : towupper_l(code, z->letters);
        }
        DLC_TRY(put(b, bytes, put_character(code, bytes)));
    }
    return put(b, "", 1);
}

/* Whether the string is one of the stop words; without regard to case both are compared in lower case. */
static dlc_status is_stop_word(normalizer *z, const char *text, int *result)
{
    int64_t nwords = dlcrt_operand_elems(&z->args->operands[1]);
    int is_exact = z->args->attrs[1] != 0;
    *result = 0;
    DLC_TRY(put_in_case(z, text, is_exact ? KEEP_CASE : LOWER_CASE, &z->text));
    for (int64_t k = 0; k < nwords && !*result; k++) {
        const char *word;
        DLC_TRY(dlcrt_string_of(z->args, 1, k, &word));
        DLC_TRY(put_in_case(z, word, is_exact ? KEEP_CASE : LOWER_CASE, &z->word));
        *result = strcmp(z->text.bytes, z->word.bytes) == 0;
    }
    return DLC_OK;
}

/* Those that are kept, in their case, to `result` if that is there; at least one, which is empty. */
static dlc_status normalize(normalizer *z, const dlcrt_operand *result, int64_t *count)
{
    int64_t room = result ? dlcrt_operand_elems(result) : 0, number;
    *count = 0;
    for (int64_t i = 0, n = dlcrt_operand_elems(&z->args->operands[0]); i < n; i++) {
        const char *text;
        int is_dropped;
        DLC_TRY(dlcrt_string_of(z->args, 0, i, &text));
        DLC_TRY(is_stop_word(z, text, &is_dropped));
        if (is_dropped)
            continue;
        if (*count < room) {
            DLC_TRY(put_in_case(z, text, (int)z->args->attrs[0], &z->text));
            DLC_TRY(dlcrt_strings_add(z->args->strings, z->text.bytes, z->text.n - 1, &number));
            dlcrt_number_set(result, *count, number);
        }
        ++*count;
    }
    if (!*count && room)
        dlcrt_number_set(result, 0, 0);
    *count += !*count;
    return DLC_OK;
}

static dlc_status run_normalizer(const dlcrt_opaque_args *args, const dlcrt_operand *result, int64_t *count)
{
    normalizer z = {.args = args};
    dlc_status status = normalize(&z, result, count);
    if (z.letters)
        freelocale(z.letters);
    free(z.text.bytes);
    free(z.word.bytes);
    return status;
}

dlc_status dlcrt_count_text_normalize(const dlcrt_opaque_args *args, int64_t *symbol)
{
    DLC_TRY(dlcrt_check_types(args, "ss"));
    return run_normalizer(args, NULL, symbol);
}

/* inputs x, stop words; output those of x that are none; attrs case (0 as it is, 1 lower, 2 upper), exact: stop words have a case */
dlc_status dlcrt_run_text_normalize(const dlcrt_opaque_args *args)
{
    int64_t count;
    DLC_TRY(dlcrt_check_types(args, "sss"));
    return run_normalizer(args, &args->operands[2], &count);
}

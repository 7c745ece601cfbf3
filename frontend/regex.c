/*
 * Regular expressions as programs of text_match steps. The syntax is RE2's, but for what is refused by name: flags, classes of
 * Unicode, and what no such engine has (look-around, back references). Greedy and lazy repetition are one: whether a whole string
 * matches does not depend on it.
 *
 *   e?   SPLIT e, end; e       e*   L: SPLIT e, end; e; SPLIT L, L
 *   e+   e; SPLIT e, end       e|f  SPLIT e, f; e; SPLIT end, end; f
 *
 * Ranges of sets stand behind the program.
 */
#include "frontend/import_string.h"

#include "base/text.h"
#include "dlc/abi.h"

#include <string.h>

enum { MOST_REPEATS = 1000, MOST_DEPTH = 200, LAST_CHARACTER = 0x10ffff };

typedef struct {
    int64_t op, a, b;
} row;

typedef struct {
    int64_t lo, hi;
} range;
typedef dlc_vec(range) ranges;

typedef struct {
    dlc_arena *arena;
    const char *at;
    const char *wrong; /* NULL: nothing */
    uint32_t depth;
    dlc_vec(row) rows; /* of a SET: `a` counts from the first of `sets` */
    ranges sets;
} parser;

static void refuse(parser *p, const char *why)
{
    if (!p->wrong)
        p->wrong = why;
}

static uint32_t add_row(parser *p, int64_t op, int64_t a, int64_t b)
{
    row r = {op, a, b};
    if (p->rows.n + p->sets.n >= DLC_MATCH_MOST)
        refuse(p, "it is too long: its repetitions written out make more than 4096 steps");
    else
        dlc_vec_push(p->arena, &p->rows, r);
    return p->rows.n - 1;
}

/* --- sets of characters --- */

static void add_range(dlc_arena *arena, ranges *set, int64_t lo, int64_t hi)
{
    range r = {lo, hi};
    if (lo <= hi)
        dlc_vec_push(arena, set, r);
}

static void sort(ranges *set)
{
    for (uint32_t i = 1; i < set->n; i++)
        for (uint32_t k = i; k && set->data[k].lo < set->data[k - 1].lo; k--) {
            range r = set->data[k];
            set->data[k] = set->data[k - 1];
            set->data[k - 1] = r;
        }
}

/* All characters but those of the set. */
static ranges complement(dlc_arena *arena, ranges *set)
{
    ranges result = {0};
    int64_t next = 1; /* no string holds a NUL */
    sort(set);
    for (uint32_t i = 0; i < set->n; i++) {
        add_range(arena, &result, next, set->data[i].lo - 1);
        next = set->data[i].hi + 1 > next ? set->data[i].hi + 1 : next;
    }
    add_range(arena, &result, next, LAST_CHARACTER);
    return result;
}

static void add_all(dlc_arena *arena, ranges *set, const ranges *more)
{
    for (uint32_t i = 0; i < more->n; i++)
        add_range(arena, set, more->data[i].lo, more->data[i].hi);
}

static void emit_set(parser *p, const ranges *set)
{
    add_row(p, DLC_MATCH_SET, p->sets.n, set->n);
    if (p->rows.n + p->sets.n + set->n > DLC_MATCH_MOST)
        refuse(p, "it is too long: its sets have more than 4096 ranges");
    else
        add_all(p->arena, &p->sets, set);
}

/* "a-zA-Z_" as a set. */
static void add_listed(dlc_arena *arena, ranges *set, const char *list)
{
    for (; *list; list += list[1] == '-' ? 3 : 1)
        add_range(arena, set, (unsigned char)list[0], (unsigned char)(list[1] == '-' ? list[2] : list[0]));
}

/* \d \w \s and their opposites: ASCII, as RE2 has them. False: c is none of these letters. */
static int add_letter_class(parser *p, ranges *set, char c)
{
    ranges named = {0};
    const char *list = (c | 32) == 'd' ? "0-9" : (c | 32) == 'w' ? "0-9A-Za-z_" : (c | 32) == 's' ? "\t\n\f\r " : NULL;
    if (!list)
        return 0;
    add_listed(p->arena, &named, list);
    if (c < 'a')
        named = complement(p->arena, &named);
    add_all(p->arena, set, &named);
    return 1;
}

/* "[:alpha:]" or "[:^alpha:]" at p->at */
static void add_posix_class(parser *p, ranges *set)
{
    static const struct {
        const char *name, *list;
    } classes[] = {{"alnum", "0-9A-Za-z"}, {"alpha", "A-Za-z"}, {"ascii", "\x01-\x7f"}, {"blank", "\t "},
                   {"cntrl", "\x01-\x1f\x7f"}, {"digit", "0-9"}, {"graph", "!-~"}, {"lower", "a-z"},
                   {"print", " -~"}, {"punct", "!-/:-@[-`{-~"}, {"space", "\t\n\v\f\r "}, {"upper", "A-Z"},
                   {"word", "0-9A-Za-z_"}, {"xdigit", "0-9A-Fa-f"}};
    int is_not = p->at[2] == '^';
    const char *name = p->at + 2 + is_not, *end = strstr(name, ":]");
    for (size_t i = 0; end && i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) != (size_t)(end - name) || strncmp(classes[i].name, name, (size_t)(end - name)) != 0)
            continue;
        ranges named = {0};
        add_listed(p->arena, &named, classes[i].list);
        if (is_not)
            named = complement(p->arena, &named);
        add_all(p->arena, set, &named);
        p->at = end + 2;
        return;
    }
    refuse(p, "a class [:…:] is unknown");
}

/* --- characters --- */

static int64_t read_character(parser *p)
{
    const unsigned char *at = (const unsigned char *)p->at;
    unsigned n = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
    int64_t code = n == 1 ? at[0] : at[0] & (0xff >> (n + 1));
    for (unsigned i = 1; i < n; i++) {
        if (at[i] >> 6 != 2)
            n = 0;
        code = n ? code << 6 | (at[i] & 63) : 0;
    }
    if (!n)
        refuse(p, "it is no UTF-8");
    p->at += n ? n : 1;
    return code;
}

static int hex_digit(char c)
{
    return dlc_is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* "\x41" or "\x{1F600}", behind the x */
static int64_t read_hex(parser *p)
{
    int is_long = *p->at == '{', n = 0;
    int64_t code = 0;
    p->at += is_long;
    for (; hex_digit(*p->at) >= 0 && n < (is_long ? 8 : 2); n++, p->at++)
        code = code * 16 + hex_digit(*p->at);
    if (!n || (!is_long && n < 2) || (is_long && *p->at != '}') || code > LAST_CHARACTER)
        refuse(p, "a character \\x… is written wrongly");
    p->at += is_long && *p->at == '}';
    return code;
}

/* Behind a backslash: the one character it stands for. */
static int64_t read_escaped(parser *p)
{
    static const char letters[] = "afnrtv", codes[] = "\a\f\n\r\t\v";
    const char *letter = *p->at ? strchr(letters, *p->at) : NULL;
    if (letter) {
        p->at++;
        return codes[letter - letters];
    }
    if (*p->at == 'x') {
        p->at++;
        return read_hex(p);
    }
    if (!*p->at || dlc_is_alnum(*p->at))
        refuse(p, "what stands behind a backslash is not supported; \\d \\w \\s \\b, their capitals, \\A \\z \\Q…\\E, \\x and signs are");
    return *p->at ? read_character(p) : 0;
}

/* "[…]", behind the bracket */
static void parse_set(parser *p)
{
    ranges set = {0};
    int is_not = *p->at == '^';
    p->at += is_not;
    for (int is_first = 1; *p->at && (is_first || *p->at != ']') && !p->wrong; is_first = 0) {
        if (p->at[0] == '[' && p->at[1] == ':') {
            add_posix_class(p, &set);
            continue;
        }
        if (p->at[0] == '\\' && add_letter_class(p, &set, p->at[1])) {
            p->at += 2;
            continue;
        }
        int64_t hi, lo = *p->at == '\\' ? (p->at++, read_escaped(p)) : read_character(p);
        hi = lo;
        if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
            p->at++;
            hi = *p->at == '\\' ? (p->at++, read_escaped(p)) : read_character(p);
        }
        if (hi < lo)
            refuse(p, "a range of characters ends before it begins");
        add_range(p->arena, &set, lo, hi);
    }
    if (*p->at != ']')
        refuse(p, "a set of characters does not end");
    p->at += *p->at == ']';
    if (is_not)
        set = complement(p->arena, &set);
    emit_set(p, &set);
}

static void emit_character(parser *p, int64_t code)
{
    ranges set = {0};
    add_range(p->arena, &set, code, code);
    emit_set(p, &set);
}

/* --- expressions --- */

static void parse_choice(parser *p);

static void parse_group(parser *p)
{
    if (p->at[0] == '?' && p->at[1] == ':') {
        p->at += 2;
    } else if (p->at[0] == '?') {
        p->at += p->at[1] == 'P';
        const char *end = p->at[1] == '<' && p->at[2] != '=' && p->at[2] != '!' ? strchr(p->at, '>') : NULL;
        if (!end)
            refuse(p, "flags and look-around, (?…), are not supported; (?:…) and names are");
        else
            p->at = end + 1;
    }
    if (!p->wrong)
        parse_choice(p);
    if (!p->wrong && *p->at != ')')
        refuse(p, "a group does not end");
    p->at += *p->at == ')';
}

/* Behind "\\Q", up to "\\E" or the end: as it is written. */
static void parse_quoted(parser *p)
{
    while (*p->at && strncmp(p->at, "\\E", 2) != 0 && !p->wrong)
        emit_character(p, read_character(p));
    p->at += *p->at ? 2 : 0;
}

static void parse_escape(parser *p)
{
    static const struct {
        char letter;
        int64_t condition;
    } conditions[] = {{'A', DLC_MATCH_BEGIN}, {'z', DLC_MATCH_END}, {'b', DLC_MATCH_EDGE}, {'B', DLC_MATCH_NO_EDGE}};
    ranges set = {0};
    if (*p->at == 'Q') {
        p->at++;
        parse_quoted(p);
        return;
    }
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (*p->at == conditions[i].letter) {
            p->at++;
            add_row(p, DLC_MATCH_ASSERT, conditions[i].condition, 0);
            return;
        }
    if (*p->at && add_letter_class(p, &set, *p->at)) {
        p->at++;
        emit_set(p, &set);
        return;
    }
    emit_character(p, read_escaped(p));
}

static void parse_atom(parser *p)
{
    ranges newline = {0}, others;
    char c = *p->at;
    if (c && strchr("*+?", c)) {
        refuse(p, "a repetition repeats nothing");
        return;
    }
    if (!strchr("(\\[.^$", c)) {
        emit_character(p, read_character(p));
        return;
    }
    p->at++;
    if (c == '(')
        parse_group(p);
    else if (c == '\\')
        parse_escape(p);
    else if (c == '[')
        parse_set(p);
    else if (c == '.') {
        add_range(p->arena, &newline, '\n', '\n');
        others = complement(p->arena, &newline);
        emit_set(p, &others);
    } else
        add_row(p, DLC_MATCH_ASSERT, c == '^' ? DLC_MATCH_BEGIN : DLC_MATCH_END, 0);
}

/* Rows [begin, end) once more, at the end; jumps inside go along. */
static void copy_rows(parser *p, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end && !p->wrong; i++) {
        row r = p->rows.data[i];
        int64_t by = (int64_t)p->rows.n - i;
        int is_split = r.op == DLC_MATCH_SPLIT;
        add_row(p, r.op, is_split ? r.a + by : r.a, is_split ? r.b + by : r.b);
    }
}

/* Room for one row at `begin`, what lies behind it moves along. */
static void insert_split(parser *p, uint32_t begin)
{
    uint32_t last = add_row(p, DLC_MATCH_SPLIT, 0, 0);
    if (p->wrong)
        return;
    for (uint32_t i = last; i > begin; i--) {
        row *r = &p->rows.data[i];
        *r = p->rows.data[i - 1];
        if (r->op == DLC_MATCH_SPLIT) {
            r->a++;
            r->b++;
        }
    }
    p->rows.data[begin] = (row){DLC_MATCH_SPLIT, begin + 1, last + 1};
}

/* The rows from `begin` on: at most once, or any number of times. */
static void make_optional(parser *p, uint32_t begin, int is_endless)
{
    insert_split(p, begin);
    if (!is_endless || p->wrong)
        return;
    add_row(p, DLC_MATCH_SPLIT, begin, begin);
    if (!p->wrong)
        p->rows.data[begin].b = p->rows.n;
}

/* {least, most} times, most -1: without end. */
static void repeat(parser *p, uint32_t begin, int64_t least, int64_t most)
{
    uint32_t end = p->rows.n, length = end - begin;
    if (!most) {
        p->rows.n = begin; /* its sets stay, unread */
        return;
    }
    for (int64_t i = 1; i < least && !p->wrong; i++)
        copy_rows(p, begin, end);
    if (most < 0 && least) { /* the last one, again and again */
        add_row(p, DLC_MATCH_SPLIT, p->rows.n - length, p->rows.n + 1);
        return;
    }
    int64_t more = most < 0 ? 1 : most - least;
    for (int64_t i = 0; i < more && !p->wrong; i++) {
        uint32_t at = p->rows.n;
        if (!least && !i)
            at = begin; /* the one that is there */
        else if (i || least)
            copy_rows(p, least ? begin : at - length, least ? end : at);
        make_optional(p, at, most < 0);
    }
}

/* "{2,5}" at p->at; false: a brace that is none of these is a character. */
static int read_counts(parser *p, int64_t *least, int64_t *most)
{
    const char *at = p->at + 1;
    int64_t counts[2] = {0, -1};
    int n = 0;
    for (; n < 2; n++) {
        if (n && *at == '}')
            break;
        if (!dlc_is_digit(*at))
            return 0;
        for (counts[n] = 0; dlc_is_digit(*at); at++)
            counts[n] = counts[n] > MOST_REPEATS ? counts[n] : counts[n] * 10 + (*at - '0');
        if (n || *at != ',')
            break;
        at++;
    }
    if (*at != '}')
        return 0;
    *least = counts[0];
    *most = at[-1] == ',' ? -1 : n ? counts[1] : counts[0];
    p->at = at + 1;
    return 1;
}

static void parse_repeated(parser *p)
{
    uint32_t begin = p->rows.n;
    parse_atom(p);
    for (int64_t least, most; !p->wrong && *p->at;) {
        char c = *p->at;
        least = c == '+', most = c == '?' ? 1 : -1;
        if (c == '{' ? !read_counts(p, &least, &most) : !strchr("*+?", c))
            break;
        p->at += c != '{';
        p->at += *p->at == '?'; /* lazy */
        if (least > MOST_REPEATS || most > MOST_REPEATS || (most >= 0 && least > most))
            refuse(p, "a repetition is of 0 to 1000 times, the lower number first");
        else
            repeat(p, begin, least, most);
        if (*p->at && strchr("*+?", *p->at))
            refuse(p, "a repetition repeats a repetition");
    }
}

static void parse_sequence(parser *p)
{
    while (*p->at && *p->at != '|' && *p->at != ')' && !p->wrong)
        parse_repeated(p);
}

static void parse_choice(parser *p)
{
    uint32_t begin = p->rows.n;
    if (p->depth++ == MOST_DEPTH)
        refuse(p, "its groups are nested deeper than 200");
    parse_sequence(p);
    dlc_ids ends = {0};
    while (*p->at == '|' && !p->wrong) {
        p->at++;
        insert_split(p, begin); /* the earlier ones, or what follows */
        for (uint32_t i = 0; i < ends.n; i++)
            ends.data[i]++;
        uint32_t end = add_row(p, DLC_MATCH_SPLIT, 0, 0);
        dlc_vec_push(p->arena, &ends, end);
        if (!p->wrong)
            p->rows.data[begin].b = p->rows.n;
        parse_sequence(p);
    }
    for (uint32_t i = 0; i < ends.n && !p->wrong; i++)
        p->rows.data[ends.data[i]] = (row){DLC_MATCH_SPLIT, p->rows.n, p->rows.n};
    p->depth--;
}

const int64_t *im_regex(dlc_arena *arena, const char *pattern, uint32_t *nrows, const char **wrong)
{
    parser p = {.arena = arena, .at = pattern};
    parse_choice(&p);
    if (*p.at)
        refuse(&p, "a group ends that does not begin");
    add_row(&p, DLC_MATCH_DONE, 0, 0);
    *wrong = p.wrong;
    if (p.wrong)
        return NULL;
    *nrows = p.rows.n + p.sets.n;
    int64_t *program = dlc_new_array(arena, int64_t, (size_t)*nrows * 3);
    for (uint32_t i = 0; i < p.rows.n; i++) {
        const row *r = &p.rows.data[i];
        program[3 * i] = r->op;
        program[3 * i + 1] = r->op == DLC_MATCH_SET ? r->a + p.rows.n : r->a;
        program[3 * i + 2] = r->b;
    }
    for (uint32_t i = 0; i < p.sets.n; i++) {
        int64_t *at = program + 3 * (p.rows.n + i);
        at[0] = DLC_MATCH_RANGE;
        at[1] = p.sets.data[i].lo;
        at[2] = p.sets.data[i].hi;
    }
    return program;
}

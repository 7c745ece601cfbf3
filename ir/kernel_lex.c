/* Words, operators and tokens of the kernel's text form. Newlines end statements, except within
 * brackets. */
#include "ir/kernel_lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const dlc_infix dlc_infixes[] = {
    {"or", DLC_EXPR_OR, DLC_STRENGTH_OR, 0, 1},
    {"and", DLC_EXPR_AND, DLC_STRENGTH_AND, 0, 1},
    {"<", DLC_EXPR_LT, DLC_STRENGTH_COMPARE, 0, 0},
    {"<=", DLC_EXPR_LE, DLC_STRENGTH_COMPARE, 0, 0},
    {">", DLC_EXPR_LT, DLC_STRENGTH_COMPARE, 1, 0},
    {">=", DLC_EXPR_LE, DLC_STRENGTH_COMPARE, 1, 0},
    {"==", DLC_EXPR_EQ, DLC_STRENGTH_COMPARE, 0, 0},
    {"!=", DLC_EXPR_NE, DLC_STRENGTH_COMPARE, 0, 0},
    {"+", DLC_EXPR_ADD, DLC_STRENGTH_SUM, 0, 0},
    {"-", DLC_EXPR_SUB, DLC_STRENGTH_SUM, 0, 0},
    {"*", DLC_EXPR_MUL, DLC_STRENGTH_PRODUCT, 0, 0},
    {"/", DLC_EXPR_DIV, DLC_STRENGTH_PRODUCT, 0, 0},
    {"//", DLC_EXPR_FLOORDIV, DLC_STRENGTH_PRODUCT, 0, 0},
    {"%", DLC_EXPR_MOD, DLC_STRENGTH_PRODUCT, 0, 0},
    {NULL, 0, 0, 0, 0},
};

const char *const dlc_update_names[] = {"none", "set", "sum", "prod", "min", "max", NULL};

/* The first ones follow a value. */
static const char *const reserved[] = {"and", "or",   "if",    "else", "update", "second",
                                       "not", "true", "false", "inf",  "nan",    "axis"};
enum { NRESERVED = sizeof reserved / sizeof *reserved, NFOLLOWING = 6 };

static int is_among(const char *word, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, reserved[i]) == 0)
            return 1;
    return 0;
}

int dlc_word_is_reserved(const char *word)
{
    return is_among(word, NRESERVED);
}

int dlc_word_follows_value(const char *word)
{
    return is_among(word, NFOLLOWING);
}

void dlc_lexer_fail(dlc_lexer *lexer, const char *format, ...)
{
    if (lexer->status != DLC_OK)
        return;
    va_list args;
    va_start(args, format);
    char *place = dlc_arena_printf(lexer->arena, "kernel text, line %u", lexer->line);
    lexer->status = dlc_diag_vfail(lexer->diag, DLC_INVALID, place, format, args);
    va_end(args);
    lexer->token = lexer->next = (dlc_token){.kind = DLC_TOKEN_END, .text = "the end"};
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character behind a backslash; 0 when it is no escape. */
static int escape(const char **at)
{
    const char *c = *at;
    *at += 1;
    if (*c == 'n' || *c == 't')
        return *c == 'n' ? '\n' : '\t';
    if (*c == '"' || *c == '\\')
        return *c;
    if (*c != 'x' || hex_digit(c[1]) < 0 || hex_digit(c[2]) < 0)
        return 0;
    *at += 2;
    return hex_digit(c[1]) * 16 + hex_digit(c[2]);
}

static dlc_token quoted(dlc_lexer *lexer)
{
    const char *at = lexer->at + 1;
    char *text = dlc_arena_alloc(lexer->arena, strcspn(lexer->at, "\n") + 1, 1), *to = text;
    while (*at && *at != '"' && *at != '\n') {
        int c = (unsigned char)*at++;
        if (c == '\\' && (c = escape(&at)) == 0) {
            dlc_lexer_fail(
                lexer, "a name holds a backslash that starts no escape (\\\\ \\\" \\n \\t \\xNN)");
            return lexer->token;
        }
        *to++ = (char)c;
    }
    if (*at != '"') {
        dlc_lexer_fail(lexer, "a quoted name does not end on its line");
        return lexer->token;
    }
    lexer->at = at + 1;
    return (dlc_token){.kind = DLC_TOKEN_WORD, .is_quoted = 1, .text = text};
}

static dlc_token number(dlc_lexer *lexer)
{
    const char *start = lexer->at, *at = start;
    while (isdigit((unsigned char)*at))
        at++;
    int is_float = 0;
    if (*at == '.' && isdigit((unsigned char)at[1])) {
        is_float = 1;
        for (at++; isdigit((unsigned char)*at);)
            at++;
    }
    const char *sign = at + (at[0] == 'e' && (at[1] == '-' || at[1] == '+'));
    if (*at == 'e' && isdigit((unsigned char)sign[1])) {
        is_float = 1;
        for (at = sign + 1; isdigit((unsigned char)*at);)
            at++;
    }
    lexer->at = at;
    char *text = dlc_arena_strndup(lexer->arena, start, (size_t)(at - start));
    if (is_float)
        return (dlc_token){.kind = DLC_TOKEN_FLOAT, .text = text, .real = strtod(text, NULL)};
    errno = 0;
    uint64_t value = strtoull(text, NULL, 10);
    if (errno) {
        dlc_lexer_fail(lexer, "%s does not fit in 64 bits", text);
        return lexer->token;
    }
    return (dlc_token){.kind = DLC_TOKEN_INT, .text = text, .integer = value};
}

static dlc_token mark(dlc_lexer *lexer)
{
    static const char *const pairs[] = {"->", "//", "<=", ">=", "==", "!=", ".."};
    size_t n = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strncmp(lexer->at, pairs[i], 2) == 0)
            n = 2;
    if (n == 1 && !strchr("()[]{}<>,=:@+-*/%.?$", *lexer->at)) {
        dlc_lexer_fail(lexer, "found the character '%c' (0x%02x), which starts nothing",
                       isprint((unsigned char)*lexer->at) ? *lexer->at : '?',
                       (unsigned char)*lexer->at);
        return lexer->token;
    }
    dlc_token token = {.kind = DLC_TOKEN_MARK,
                       .text = dlc_arena_strndup(lexer->arena, lexer->at, n)};
    if (*lexer->at == '(' || *lexer->at == '[')
        lexer->nesting++;
    if ((*lexer->at == ')' || *lexer->at == ']') && lexer->nesting)
        lexer->nesting--;
    lexer->at += n;
    return token;
}

/* Skips blanks and comments; true when a statement ended on the way. */
static int skip_blanks(dlc_lexer *lexer)
{
    int ended = 0;
    for (;; lexer->at++) {
        if (*lexer->at == '#')
            lexer->at += strcspn(lexer->at, "\n");
        if (*lexer->at == '\n')
            lexer->line++;
        ended |= (*lexer->at == '\n' || *lexer->at == ';') && lexer->nesting == 0;
        if (!*lexer->at || !strchr(" \t\r\n;", *lexer->at))
            return ended;
    }
}

static dlc_token scan(dlc_lexer *lexer)
{
    if (lexer->status != DLC_OK)
        return lexer->token;
    if (skip_blanks(lexer))
        return (dlc_token){.kind = DLC_TOKEN_LINE, .text = "the end of a line"};
    unsigned char c = (unsigned char)*lexer->at;
    if (!c)
        return (dlc_token){.kind = DLC_TOKEN_END, .text = "the end"};
    if (c == '"')
        return quoted(lexer);
    if (isdigit(c))
        return number(lexer);
    if (!isalpha(c) && c != '_')
        return mark(lexer);
    size_t n = 1;
    while (isalnum((unsigned char)lexer->at[n]) || lexer->at[n] == '_')
        n++;
    dlc_token token = {.kind = DLC_TOKEN_WORD,
                       .text = dlc_arena_strndup(lexer->arena, lexer->at, n)};
    lexer->at += n;
    return token;
}

void dlc_lexer_advance(dlc_lexer *lexer)
{
    lexer->token = lexer->next;
    dlc_token next = scan(lexer);
    lexer->next = next;
}

void dlc_lexer_init(dlc_lexer *lexer, const char *text, dlc_arena *arena, dlc_diag *diag)
{
    *lexer = (dlc_lexer){.at = text, .line = 1, .arena = arena, .diag = diag};
    lexer->next = scan(lexer);
    dlc_lexer_advance(lexer);
}

static int is_mark(const dlc_token *token, const char *text)
{
    return (token->kind == DLC_TOKEN_MARK ||
            (token->kind == DLC_TOKEN_WORD && !token->is_quoted)) &&
           strcmp(token->text, text) == 0;
}

int dlc_lexer_is(const dlc_lexer *lexer, const char *text)
{
    return is_mark(&lexer->token, text);
}

int dlc_lexer_next_is(const dlc_lexer *lexer, const char *text)
{
    return is_mark(&lexer->next, text);
}

int dlc_lexer_take(dlc_lexer *lexer, const char *text)
{
    if (!dlc_lexer_is(lexer, text))
        return 0;
    dlc_lexer_advance(lexer);
    return 1;
}

void dlc_lexer_expect(dlc_lexer *lexer, const char *text)
{
    if (!dlc_lexer_take(lexer, text))
        dlc_lexer_fail(lexer, "found '%s' where '%s' is due", lexer->token.text, text);
}

const char *dlc_lexer_name(dlc_lexer *lexer)
{
    if (lexer->token.kind != DLC_TOKEN_WORD) {
        dlc_lexer_fail(lexer, "found '%s' where a name is due", lexer->token.text);
        return "";
    }
    const char *name = lexer->token.text;
    dlc_lexer_advance(lexer);
    return name;
}

int64_t dlc_lexer_int(dlc_lexer *lexer)
{
    int is_negative = dlc_lexer_take(lexer, "-");
    uint64_t value = lexer->token.integer;
    if (lexer->token.kind != DLC_TOKEN_INT) {
        dlc_lexer_fail(lexer, "found '%s' where an integer is due", lexer->token.text);
        return 0;
    }
    dlc_lexer_advance(lexer);
    return (int64_t)(is_negative ? -value : value);
}

void dlc_lexer_skip_lines(dlc_lexer *lexer)
{
    while (lexer->token.kind == DLC_TOKEN_LINE)
        dlc_lexer_advance(lexer);
}

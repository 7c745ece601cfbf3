/* Words, operators and tokens of the text forms. Newlines end statements, except within brackets.
 */
#include "ir/expr/lexer.h"

#include "base/text.h"

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

int dlc_word_follows_value(const char *word)
{
    return is_among(word, NFOLLOWING);
}

size_t dlc_word_length(const char *at, int is_dotted)
{
    size_t n = 0;
    while (dlc_is_alnum(at[n]) || at[n] == '_' || (is_dotted && n && at[n] == '.'))
        n++;
    return n;
}

void dlc_name_print(const char *name, int is_dotted, dlc_str *out)
{
    int is_word = *name && !dlc_is_digit(*name) && !name[dlc_word_length(name, is_dotted)];
    if (is_word && !is_among(name, NRESERVED))
        dlc_str_add(out, name);
    else
        dlc_str_add_quoted(out, name);
}

void dlc_lexer_fail(dlc_lexer *lexer, const char *format, ...)
{
    if (lexer->status != DLC_OK)
        return;
    va_list args;
    va_start(args, format);
    if (!lexer->token.start) /* the first token is none */
        lexer->token = (dlc_token){
            .start = lexer->at, .line = lexer->line, .line_start = lexer->line_start};
    const char *start = lexer->token.start;
    char *place = lexer->file ? dlc_arena_printf(lexer->arena, "%.200s:%u:%d", lexer->file,
                                                 lexer->token.line,
                                                 (int)(start - lexer->token.line_start) + 1)
                              : dlc_arena_printf(lexer->arena, "kernel text, line %u", lexer->line);
    lexer->status = dlc_diag_vfail(lexer->diag, DLC_INVALID, place, format, args);
    va_end(args);
    lexer->token = lexer->next =
        (dlc_token){.kind = DLC_TOKEN_END,
                    .text = "the end",
                    .start = start,
                    .line = lexer->token.line,
                    .line_start = lexer->token.line_start};
}

/* The byte behind a backslash at *at, moved behind; 0: no escape. */
static int escaped_byte(const char **at)
{
    static const char names[] = "nt\"\\", bytes[] = "\n\t\"\\";
    const char *found = **at ? strchr(names, **at) : NULL;
    if (found) {
        ++*at;
        return (unsigned char)bytes[found - names];
    }
    if (**at != 'x' || !dlc_is_xdigit((*at)[1]) || !dlc_is_xdigit((*at)[2]))
        return 0;
    char digits[] = {(*at)[1], (*at)[2], 0};
    *at += 3;
    return (int)strtol(digits, NULL, 16);
}

const char *dlc_quoted_parse(dlc_arena *arena, const char **text, const char **wrong)
{
    const char *at = *text;
    *wrong = "a name or text in quotes is wanted";
    if (*at++ != '"')
        return NULL;
    char *result = dlc_arena_alloc(arena, strcspn(at, "\n") + 1, 1), *to = result;
    for (; *at && *at != '"' && *at != '\n'; to++) {
        int byte = (unsigned char)*at++;
        *wrong = "a name holds a backslash that starts no escape (\\\\ \\\" \\n \\t \\xNN)";
        if (byte == '\\' && (byte = escaped_byte(&at)) == 0)
            return NULL;
        *to = (char)byte;
    }
    *wrong = "a quoted name does not end on its line";
    if (*at != '"')
        return NULL;
    *text = at + 1;
    return result;
}

static dlc_token quoted(dlc_lexer *lexer)
{
    const char *wrong, *text = dlc_quoted_parse(lexer->arena, &lexer->at, &wrong);
    if (text)
        return (dlc_token){.kind = DLC_TOKEN_WORD, .is_quoted = 1, .text = text};
    dlc_lexer_fail(lexer, "%s", wrong);
    return lexer->token;
}

static dlc_token number(dlc_lexer *lexer)
{
    const char *start = lexer->at, *at = start;
    while (dlc_is_digit(*at))
        at++;
    int is_float = 0;
    if (*at == '.' && dlc_is_digit(at[1])) {
        is_float = 1;
        for (at++; dlc_is_digit(*at);)
            at++;
    }
    const char *sign = at + (at[0] == 'e' && (at[1] == '-' || at[1] == '+'));
    if (*at == 'e' && dlc_is_digit(sign[1])) {
        is_float = 1;
        for (at = sign + 1; dlc_is_digit(*at);)
            at++;
    }
    lexer->at = at;
    char *text = dlc_arena_strndup(lexer->arena, start, (size_t)(at - start));
    if (is_float)
        return (dlc_token){
            .kind = DLC_TOKEN_FLOAT, .text = text, .real = dlc_text_double(text, NULL)};
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
                       dlc_is_print(*lexer->at) ? *lexer->at : '?', (unsigned char)*lexer->at);
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
        if (*lexer->at == '\n') {
            lexer->line++;
            lexer->line_start = lexer->at + 1;
        }
        ended |= (*lexer->at == '\n' || *lexer->at == ';') && lexer->nesting == 0;
        if (!*lexer->at || !strchr(" \t\r\n;", *lexer->at))
            return ended;
    }
}

static dlc_token word(dlc_lexer *lexer)
{
    size_t n = dlc_word_length(lexer->at, lexer->is_dotted);
    dlc_token token = {.kind = DLC_TOKEN_WORD,
                       .text = dlc_arena_strndup(lexer->arena, lexer->at, n)};
    lexer->at += n;
    return token;
}

static dlc_token scan(dlc_lexer *lexer)
{
    if (lexer->status != DLC_OK)
        return lexer->token;
    dlc_token behind = {.start = lexer->at, .line = lexer->line, .line_start = lexer->line_start};
    if (skip_blanks(lexer)) {
        behind.kind = DLC_TOKEN_LINE;
        behind.text = "the end of a line";
        return behind;
    }
    dlc_token here = {.start = lexer->at, .line = lexer->line, .line_start = lexer->line_start};
    unsigned char c = (unsigned char)*here.start;
    if (!c) {
        behind.kind = DLC_TOKEN_END;
        behind.text = "the end";
        return behind;
    }
    dlc_token token = c == '"'                      ? quoted(lexer)
                      : dlc_is_digit(c)             ? number(lexer)
                      : dlc_is_alpha(c) || c == '_' ? word(lexer)
                                                    : mark(lexer);
    if (lexer->status == DLC_OK) {
        token.start = here.start;
        token.line = here.line;
        token.line_start = here.line_start;
    }
    return token;
}

void dlc_lexer_enter(const dlc_lexer *outer, dlc_lexer *inner)
{
    *inner = (dlc_lexer){.at = outer->token.start,
                         .file = outer->file,
                         .line_start = outer->token.line_start,
                         .line = outer->token.line,
                         .arena = outer->arena,
                         .diag = outer->diag,
                         .status = outer->status};
    dlc_lexer_start(inner);
}

void dlc_lexer_resume(dlc_lexer *outer, const char *at, dlc_status status)
{
    outer->line = outer->token.line;
    outer->line_start = outer->token.line_start;
    for (const char *c = outer->token.start; c < at && status == DLC_OK; c++)
        if (*c == '\n') {
            outer->line++;
            outer->line_start = c + 1;
        }
    outer->at = at;
    if (status == DLC_OK) {
        dlc_lexer_start(outer);
        return;
    }
    outer->status = status;
    outer->token.kind = DLC_TOKEN_END;
    outer->next = outer->token;
}

void dlc_lexer_advance(dlc_lexer *lexer)
{
    lexer->token = lexer->next;
    dlc_token next = scan(lexer);
    lexer->next = next;
}

void dlc_lexer_start(dlc_lexer *lexer)
{
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

/* Scanning takes the digits apart. */
uint64_t dlc_lexer_hash(dlc_lexer *lexer)
{
    char *end;
    dlc_lexer_expect(lexer, "(");
    if (lexer->status != DLC_OK)
        return 0;
    uint64_t hash = strtoull(lexer->token.start, &end, 16);
    if (end == lexer->token.start)
        dlc_lexer_fail(lexer, "found '%s' where a hexadecimal number is due", lexer->token.text);
    dlc_lexer_resume(lexer, end, lexer->status);
    dlc_lexer_expect(lexer, ")");
    return hash;
}

void dlc_lexer_skip_lines(dlc_lexer *lexer)
{
    while (lexer->status == DLC_OK && lexer->token.kind == DLC_TOKEN_LINE)
        dlc_lexer_advance(lexer);
}

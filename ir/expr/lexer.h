/* Words, operators and tokens of the text forms: what their printers and parsers share. */
#ifndef DLC_IR_EXPR_LEXER_H
#define DLC_IR_EXPR_LEXER_H

#include "base/diag.h"
#include "base/str.h"
#include "ir/expr/expr.h"

/* Binding strength, weakest first. */
enum {
    DLC_STRENGTH_ANY,
    DLC_STRENGTH_OR,
    DLC_STRENGTH_AND,
    DLC_STRENGTH_NOT,
    DLC_STRENGTH_COMPARE,
    DLC_STRENGTH_SUM,
    DLC_STRENGTH_PRODUCT,
    DLC_STRENGTH_UNARY
};

typedef struct {
    const char *text;
    uint8_t op, strength;
    uint8_t is_swapped; /* a > b is b < a; only read */
    uint8_t is_bool;    /* a call on integers */
} dlc_infix;
extern const dlc_infix dlc_infixes[];        /* ends with text NULL */
extern const char *const dlc_update_names[]; /* by dlc_update; NULL behind the last */
/* Words of the grammar that may follow a complete value. */
int dlc_word_follows_value(const char *word);
/* Characters of the word at `at`: letters, digits, _, and in graphs, where no number or conversion
 * can follow a name, dots. */
size_t dlc_word_length(const char *at, int is_dotted);
/* `name` as it is if it reads back as one word that the grammar does not need, else in quotes. */
void dlc_name_print(const char *name, int is_dotted, dlc_str *out);
/* A text in double quotes with C escapes at *text, as dlc_str_add_quoted writes it, moved behind;
 * NULL: it is none, and *wrong says why. */
const char *dlc_quoted_parse(dlc_arena *arena, const char **text, const char **wrong);

typedef enum {
    DLC_TOKEN_END,
    DLC_TOKEN_LINE,
    DLC_TOKEN_WORD,
    DLC_TOKEN_INT,
    DLC_TOKEN_FLOAT,
    DLC_TOKEN_MARK
} dlc_token_kind;

typedef struct {
    uint8_t kind; /* dlc_token_kind; LINE: a newline or ';' outside brackets */
    uint8_t is_quoted;
    const char *text; /* WORD: the name; MARK: the characters */
    const char *start; /* where it stands; of END and LINE: behind what came before */
    const char *line_start;
    uint32_t line;
    uint64_t integer;
    double real;
} dlc_token;

typedef struct dlc_lexer {
    const char *at;
    const char *file;       /* for messages; NULL: a kernel's text */
    const char *line_start; /* for columns in a file; of what is scanned next, as `line` */
    uint32_t line, nesting; /* nesting: of ( and [ */
    int is_dotted;          /* words may hold dots */
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_status status; /* of the first problem; from then on every token is END */
    dlc_token token, next;
} dlc_lexer;

/* Set: at, arena, diag and, for messages, file, line_start, line; is_dotted; the rest is zero. */
void dlc_lexer_start(dlc_lexer *lexer);
void dlc_lexer_advance(dlc_lexer *lexer);
/*
 * Texts inside texts: `inner` reads what begins at outer's token, by rules of its own; `outer` goes on at `at`, behind it, or
 * fails as `inner` did.
 */
void dlc_lexer_enter(const dlc_lexer *outer, dlc_lexer *inner);
void dlc_lexer_resume(dlc_lexer *outer, const char *at, dlc_status status);
/* Records the first problem with its line. */
void dlc_lexer_fail(dlc_lexer *lexer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

int dlc_lexer_is(const dlc_lexer *lexer,
                 const char *mark_or_word); /* a quoted name is no word of the grammar */
int dlc_lexer_next_is(const dlc_lexer *lexer, const char *mark);
int dlc_lexer_take(dlc_lexer *lexer, const char *mark_or_word); /* advances when it is */
void dlc_lexer_expect(dlc_lexer *lexer, const char *mark_or_word);
const char *dlc_lexer_name(dlc_lexer *lexer); /* a WORD, which is taken; "" after a failure */
int64_t dlc_lexer_int(dlc_lexer *lexer);      /* with a sign */
uint64_t dlc_lexer_hash(dlc_lexer *lexer);    /* (hexadecimal digits) */
void dlc_lexer_skip_lines(dlc_lexer *lexer);

#endif

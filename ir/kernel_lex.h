/* What kernel_print.c and kernel_parse.c share: words, operators, tokens. */
#ifndef DLC_IR_KERNEL_LEX_H
#define DLC_IR_KERNEL_LEX_H

#include "base/diag.h"
#include "ir/expr.h"

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
/* Words of the grammar where a name may stand: names equal to them are quoted. */
int dlc_word_is_reserved(const char *word);
/* Of those, the words that may follow a complete value. */
int dlc_word_follows_value(const char *word);

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
    uint64_t integer;
    double real;
} dlc_token;

typedef struct {
    const char *at;
    uint32_t line, nesting; /* nesting: of ( and [ */
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_status status; /* of the first problem; from then on every token is END */
    dlc_token token, next;
} dlc_lexer;

void dlc_lexer_init(dlc_lexer *lexer, const char *text, dlc_arena *arena, dlc_diag *diag);
void dlc_lexer_advance(dlc_lexer *lexer);
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
void dlc_lexer_skip_lines(dlc_lexer *lexer);

#endif

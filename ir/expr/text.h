/* Expressions as text, both ways; kernels and graphs (whose sizes are expressions) share it. */
#ifndef DLC_IR_EXPR_TEXT_H
#define DLC_IR_EXPR_TEXT_H

#include "ir/expr/lexer.h"
#include "ir/expr/type.h"

/* --- from text (ir/expr/parse.c) --- */

typedef struct dlc_expr_parser dlc_expr_parser;
struct dlc_expr_parser {
    dlc_lexer lex;
    dlc_pool *pool;
    dlc_expr (*leaf)(dlc_expr_parser *p); /* takes a name (or "$") and what belongs to it; 0 after a failure */
    void *ctx;                            /* the leaf's */
    uint32_t depth;                       /* starts at 0 */
    int is_size;                          /* only i64 and bool */
};
/* Up to what cannot continue it. A literal takes the type `like` (NONE: i64 or f32). 0 after a failure, which the lexer has. */
dlc_expr dlc_expr_parse(dlc_expr_parser *p, dlc_dtype like);
/* The same, refused unless it has that type. */
dlc_expr dlc_expr_parse_as(dlc_expr_parser *p, dlc_dtype dtype);
dlc_dtype dlc_dtype_find(const char *text); /* DLC_NONE: there is none */
/* Behind "@": {0/32,1,2,3,0%32}, or the name of a usual one. */
dlc_layout dlc_layout_lex(dlc_lexer *lexer, uint8_t rank);

/* --- to text (ir/expr/print.c) --- */

typedef struct {
    const char *text; /* or NULL: an expression */
    dlc_expr expr;
    uint8_t strength; /* of the place the expression stands in */
    uint8_t is_body;  /* the definition of a bound expression: not its name */
} dlc_print_task;

typedef struct dlc_expr_printer dlc_expr_printer;
struct dlc_expr_printer {
    const dlc_pool *pool;
    dlc_arena *scratch;
    dlc_str *out;
    const char *(*name)(const dlc_expr_printer *p, const dlc_expr_node *leaf); /* of an axis, symbol, or a load's source */
    const void *ctx;          /* the name's */
    int is_dotted;            /* names may hold dots */
    size_t most;              /* characters in `out` from which the rest is left out; 0: none */
    const dlc_ids *(*own_axes)(const dlc_expr_printer *p, dlc_source source); /* of a stage: a load at just these is a bare name;
                                                                                 NULL, or giving NULL: none is */
    const uint32_t *bound;    /* by node: 1 + number of the `$number` that stands for it, 0: none; or NULL */
    dlc_vec(dlc_print_task) tasks;
};
void dlc_expr_add(dlc_expr_printer *p, dlc_expr expr);
void dlc_expr_add_body(dlc_expr_printer *p, dlc_expr expr); /* of a bound expression */


/* Sizes of a graph or a module: expressions over symbols that have names. */
typedef struct {
    const dlc_pool *pool;
    const char *(*name)(const void *ctx, uint32_t symbol);
    const void *ctx;
    uint32_t nsymbols;
    size_t most; /* characters, behind which a size is cut off; 0: 65,536 */
} dlc_sizes_text;
void dlc_sizes_print(const dlc_sizes_text *sizes, dlc_expr size, dlc_str *out); /* n * 2 + 1 */
void dlc_sizes_type_print(const dlc_sizes_text *sizes, const dlc_type *type, dlc_str *out); /* f32[n,64] */

#endif

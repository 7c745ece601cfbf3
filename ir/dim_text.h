/* Reading dimensions from text (dlc_dim_print of ir/graph.h writes them). */
#ifndef DLC_IR_DIM_TEXT_H
#define DLC_IR_DIM_TEXT_H

#include "ir/graph.h"

/* The expression of a symbol, or 0 when there is none of that name. */
typedef dlc_expr (*dlc_symbol_fn)(void *ctx, const char *name);

/*
 * Reads an expression of i64 and bool at *text, up to what cannot continue it, and moves *text
 * there. 0: it is none, and *wrong says what was found.
 */
dlc_expr dlc_dim_parse(dlc_graph *graph, const char **text, dlc_symbol_fn symbol, void *ctx,
                       const char **wrong);

/* A text in double quotes with C escapes at *text, as dlc_str_add_quoted writes it, moved behind;
 * NULL: it is none. */
const char *dlc_quoted_parse(dlc_arena *arena, const char **text);
/* `name` if it reads back as one word, else in quotes. */
void dlc_word_print(const char *name, dlc_str *out);

#endif

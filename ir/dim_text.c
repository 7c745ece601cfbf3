/*
 * Dimensions as text, both ways: `2*batch + 1`, `(h + -3) floordiv 2`, `max(0, n)`. Sums and
 * products infix, the rest as calls by the names of expr.def. Neither direction recurses: printing
 * keeps a stack of pieces, parsing one of operators (Dijkstra's shunting yard), so depth is bounded
 * by memory alone.
 */
#include "ir/dim_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- words --- */

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '.')
        n++;
    return n;
}

void dlc_word_print(const char *name, dlc_str *out)
{
    static const char *const taken[] = {"true", "false", "floordiv", "mod"};
    int is_plain =
        *name && !isdigit((unsigned char)*name) && *name != '.' && !name[word_length(name)];
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        is_plain &= strcmp(name, taken[i]) != 0;
    if (is_plain)
        dlc_str_add(out, name);
    else
        dlc_str_add_quoted(out, name);
}

/* The byte behind a backslash at *at, moved behind; -1: no escape. */
static int escaped_byte(const char **at)
{
    static const char names[] = "nt\"\\", bytes[] = "\n\t\"\\";
    const char *found = **at ? strchr(names, **at) : NULL;
    if (found) {
        ++*at;
        return (unsigned char)bytes[found - names];
    }
    if (**at != 'x' || !isxdigit((unsigned char)(*at)[1]) || !isxdigit((unsigned char)(*at)[2]))
        return -1;
    char digits[] = {(*at)[1], (*at)[2], 0};
    *at += 3;
    return (int)strtol(digits, NULL, 16);
}

const char *dlc_quoted_parse(dlc_arena *arena, const char **text)
{
    const char *at = *text;
    if (*at++ != '"')
        return NULL;
    char *result = dlc_arena_alloc(arena, strcspn(at, "\n") + 1, 1);
    size_t n = 0;
    while (*at != '"') {
        int byte = (unsigned char)*at++;
        if (byte == '\\')
            byte = escaped_byte(&at);
        if (byte <= 0 || byte == '\n')
            return NULL;
        result[n++] = (char)byte;
    }
    *text = at + 1;
    return result;
}

/* --- printing --- */

typedef struct {
    const char *text; /* NULL: print `expr` */
    dlc_expr expr;
    int in_product; /* sums need brackets */
} piece;
typedef dlc_vec(piece) pieces;

typedef struct {
    const dlc_graph *graph;
    dlc_str *out;
    pieces stack;
} dim_printer;

static void push_text(dim_printer *printer, const char *text)
{
    piece item = {.text = text};
    dlc_vec_push(printer->graph->arena, &printer->stack, item);
}

static void push_expr(dim_printer *printer, dlc_expr expr, int in_product)
{
    piece item = {.expr = expr, .in_product = in_product};
    dlc_vec_push(printer->graph->arena, &printer->stack, item);
}

/* " op " between two operands; the stack is last in, first out. */
static void push_infix(dim_printer *printer, dlc_expr expr, const char *op, int tight, int brackets)
{
    const dlc_pool *pool = printer->graph->pool;
    if (brackets)
        push_text(printer, ")");
    push_expr(printer, dlc_arg(pool, expr, 1), tight ? 2 : 0);
    push_text(printer, op);
    push_expr(printer, dlc_arg(pool, expr, 0), tight);
    if (brackets)
        push_text(printer, "(");
}

static void push_call(dim_printer *printer, dlc_expr expr)
{
    const dlc_expr_node *node = dlc_node_of(printer->graph->pool, expr);
    push_text(printer, ")");
    for (uint32_t i = node->nargs; i-- > 0;) {
        push_expr(printer, dlc_arg(printer->graph->pool, expr, i), 0);
        push_text(printer, i ? ", " : "(");
    }
    if (node->op == DLC_EXPR_CAST) {
        push_text(printer, dlc_dtypes[node->dtype].text);
        push_text(printer, "cast.");
        return;
    }
    push_text(printer, dlc_exprs[node->op].text);
}

static void print_leaf(dim_printer *printer, const dlc_expr_node *node)
{
    const dlc_graph *graph = printer->graph;
    if (node->op == DLC_EXPR_SYM && node->imm.id < graph->symbols.n)
        dlc_word_print(graph->symbols.data[node->imm.id].name, printer->out);
    else if (node->op == DLC_EXPR_CONST && dlc_is_float((dlc_dtype)node->dtype))
        dlc_str_add_double(printer->out, node->imm.f);
    else if (node->op == DLC_EXPR_CONST && node->dtype == DLC_BOOL)
        dlc_str_add(printer->out, node->imm.i ? "true" : "false");
    else if (node->op == DLC_EXPR_CONST)
        dlc_str_printf(printer->out, "%" PRId64, node->imm.i);
    else
        dlc_str_add(printer->out, "?");
}

static void print_piece(dim_printer *printer, piece item)
{
    const dlc_expr_node *node = dlc_node_of(printer->graph->pool, item.expr);
    if (item.text)
        dlc_str_add(printer->out, item.text);
    else if (node->nargs == 0)
        print_leaf(printer, node);
    else if (node->op == DLC_EXPR_ADD)
        push_infix(printer, item.expr, " + ", 0, item.in_product > 0);
    else if (node->op == DLC_EXPR_MUL)
        push_infix(printer, item.expr, "*", 1, item.in_product > 1);
    else if (node->op == DLC_EXPR_FLOORDIV)
        push_infix(printer, item.expr, " floordiv ", 1, item.in_product > 1);
    else if (node->op == DLC_EXPR_MOD)
        push_infix(printer, item.expr, " mod ", 1, item.in_product > 1);
    else
        push_call(printer, item.expr);
}

void dlc_dim_print(const dlc_graph *graph, dlc_expr dim, dlc_str *out)
{
    dim_printer printer = {.graph = graph, .out = out};
    push_expr(&printer, dim, 0);
    while (printer.stack.n)
        print_piece(&printer, printer.stack.data[--printer.stack.n]);
}

/* --- parsing --- */

typedef enum { FRAME_INFIX, FRAME_BRACKET, FRAME_CALL } frame_kind;

typedef struct {
    uint8_t kind;       /* frame_kind */
    uint8_t op;         /* INFIX, CALL: dlc_expr_op */
    uint8_t dtype;      /* CALL of cast: to what */
    uint32_t noperands; /* CALL: operands below its own */
} frame;

typedef struct {
    dlc_graph *graph;
    const char *at;
    dlc_ids operands;
    dlc_vec(frame) frames;
    dlc_symbol_fn symbol;
    void *ctx;
    const char *wrong; /* what was found instead */
} dim_parser;

static int is_tight(const frame *f)
{
    return f->op != DLC_EXPR_ADD && f->op != DLC_EXPR_SUB;
}

static dlc_dtype operand_dtype(const dim_parser *p, uint32_t i)
{
    return (dlc_dtype)dlc_node_of(p->graph->pool, p->operands.data[i])->dtype;
}

/* Whether the operands from `first` have the types the row wants; dimensions know i64 and bool
 * only. */
static int fits_row(const dim_parser *p, dlc_expr_op op, uint32_t first)
{
    const dlc_expr_info *row = &dlc_exprs[op];
    uint32_t n = p->operands.n - first, same = row->result == DLC_RESULT_SEL ? first + 1 : first;
    if (row->nargs < 0 || n != (uint32_t)row->nargs || n == 0 ||
        row->class_ == DLC_EXPR_CLASS_FLOAT)
        return 0;
    if (row->result == DLC_RESULT_SEL && operand_dtype(p, first) != DLC_BOOL)
        return 0;
    for (uint32_t i = same; i < p->operands.n; i++)
        if (operand_dtype(p, i) != operand_dtype(p, same))
            return 0;
    int is_number = row->class_ == DLC_EXPR_CLASS_INT || row->class_ == DLC_EXPR_CLASS_NUM;
    return !is_number || operand_dtype(p, same) == DLC_I64;
}

/* Replaces the operands from `first` by the expression over them. */
static int reduce_operands(dim_parser *p, dlc_expr_op op, dlc_dtype dtype, uint32_t first)
{
    dlc_expr args[3];
    if (!fits_row(p, op, first)) {
        p->wrong = "operands that the operation does not take";
        return 0;
    }
    uint32_t n = p->operands.n - first;
    memcpy(args, p->operands.data + first, n * sizeof *args);
    p->operands.n = first;
    dlc_vec_push(p->graph->arena, &p->operands, dlc_expr_make(p->graph->pool, op, dtype, args, n));
    return 1;
}

static int reduce_infix(dim_parser *p, int only_tight)
{
    while (p->frames.n && p->frames.data[p->frames.n - 1].kind == FRAME_INFIX) {
        frame top = p->frames.data[p->frames.n - 1];
        if (only_tight && !is_tight(&top))
            break;
        p->frames.n--;
        if (!reduce_operands(p, (dlc_expr_op)top.op, DLC_I64, p->operands.n - 2))
            return 0;
    }
    return 1;
}

static void push_frame(dim_parser *p, frame f)
{
    dlc_vec_push(p->graph->arena, &p->frames, f);
}

/* "max(" or "cast.i64(": its frame. */
static int open_call(dim_parser *p, size_t length)
{
    frame call = {.kind = FRAME_CALL, .noperands = p->operands.n};
    static const char cast[] = "cast.";
    if (length > 5 && strncmp(p->at, cast, 5) == 0) {
        for (dlc_dtype d = DLC_BOOL; d < DLC_DTYPE_COUNT; d++)
            if (strlen(dlc_dtypes[d].text) == length - 5 &&
                strncmp(p->at + 5, dlc_dtypes[d].text, length - 5) == 0)
                call.dtype = (uint8_t)d;
        call.op = call.dtype == DLC_I64 || call.dtype == DLC_BOOL ? DLC_EXPR_CAST : 0;
    } else {
        for (int op = DLC_EXPR_ADD; op < DLC_EXPR_CAST; op++)
            if (strlen(dlc_exprs[op].text) == length &&
                strncmp(p->at, dlc_exprs[op].text, length) == 0)
                call.op = (uint8_t)op;
    }
    if (!call.op) {
        p->wrong = "an operation that dimensions do not have";
        return 0;
    }
    push_frame(p, call);
    p->at += length + 1;
    return 1;
}

static int is_word(const char *at, size_t length, const char *word)
{
    return strlen(word) == length && strncmp(at, word, length) == 0;
}

static int parse_word(dim_parser *p)
{
    size_t length = word_length(p->at);
    if (p->at[length] == '(')
        return open_call(p, length);
    dlc_expr value;
    if (is_word(p->at, length, "true") || is_word(p->at, length, "false"))
        value = dlc_expr_bool(p->graph->pool, p->at[0] == 't');
    else
        value = p->symbol(p->ctx, dlc_arena_strndup(p->graph->arena, p->at, length));
    if (!value) {
        p->wrong = "a symbol that is not declared";
        return 0;
    }
    dlc_vec_push(p->graph->arena, &p->operands, value);
    p->at += length;
    return 2;
}

static int parse_quoted(dim_parser *p)
{
    const char *name = dlc_quoted_parse(p->graph->arena, &p->at);
    dlc_expr value = name ? p->symbol(p->ctx, name) : 0;
    p->wrong = name ? "a symbol that is not declared" : "a name whose quotes do not close";
    if (value)
        dlc_vec_push(p->graph->arena, &p->operands, value);
    return value ? 2 : 0;
}

static int parse_number(dim_parser *p)
{
    char *end;
    errno = 0;
    long long value = strtoll(p->at, &end, 10);
    if (errno || end == p->at) {
        p->wrong = "a number that is no 64-bit integer";
        return 0;
    }
    dlc_vec_push(p->graph->arena, &p->operands, dlc_expr_i64(p->graph->pool, value));
    p->at = end;
    return 2;
}

/* Where an operand is due. 0: wrong, 1: still due, 2: an operator is due. */
static int parse_operand(dim_parser *p)
{
    if (*p->at == '(') {
        push_frame(p, (frame){.kind = FRAME_BRACKET});
        p->at++;
        return 1;
    }
    if (isdigit((unsigned char)*p->at) || (*p->at == '-' && isdigit((unsigned char)p->at[1])))
        return parse_number(p);
    if (*p->at == '"')
        return parse_quoted(p);
    if (isalpha((unsigned char)*p->at) || *p->at == '_')
        return parse_word(p);
    p->wrong = "no dimension";
    return 0;
}

static int infix_at(const char *at, size_t *length)
{
    static const struct {
        const char *text;
        uint8_t op;
    } infix[] = {
        {"+", DLC_EXPR_ADD},   {"-", DLC_EXPR_SUB},
        {"*", DLC_EXPR_MUL},   {"floordiv", DLC_EXPR_FLOORDIV},
        {"mod", DLC_EXPR_MOD},
    };
    for (size_t i = 0; i < sizeof infix / sizeof *infix; i++) {
        *length = strlen(infix[i].text);
        if (strncmp(at, infix[i].text, *length) == 0 &&
            (*length == 1 || word_length(at) == *length))
            return infix[i].op;
    }
    return 0;
}

/* A closing bracket or comma ends the operand; 3: it belongs to whoever called. */
static int close_operand(dim_parser *p, char c)
{
    if (!reduce_infix(p, 0))
        return 0;
    if (!p->frames.n)
        return 3;
    frame *top = &p->frames.data[p->frames.n - 1];
    if (c == ',' && top->kind == FRAME_CALL) {
        p->at++;
        return 1;
    }
    if (c != ')') {
        p->wrong = "a bracket that is not closed";
        return 0;
    }
    p->frames.n--;
    p->at++;
    if (top->kind == FRAME_CALL &&
        !reduce_operands(p, (dlc_expr_op)top->op, (dlc_dtype)top->dtype, top->noperands))
        return 0;
    return 2;
}

static int parse_operator(dim_parser *p)
{
    size_t length;
    int op = infix_at(p->at, &length);
    if (!op)
        return close_operand(p, *p->at);
    frame f = {.kind = FRAME_INFIX, .op = (uint8_t)op};
    if (!reduce_infix(p, is_tight(&f)))
        return 0;
    push_frame(p, f);
    p->at += length;
    return 1;
}

dlc_expr dlc_dim_parse(dlc_graph *graph, const char **text, dlc_symbol_fn symbol, void *ctx,
                       const char **wrong)
{
    dim_parser parser = {.graph = graph, .at = *text, .symbol = symbol, .ctx = ctx};
    int state = 1;
    while (state == 1 || state == 2) {
        parser.at += strspn(parser.at, " \t");
        state = state == 1 ? parse_operand(&parser) : parse_operator(&parser);
    }
    *text = parser.at;
    *wrong = parser.wrong;
    return state == 3 ? parser.operands.data[0] : 0;
}

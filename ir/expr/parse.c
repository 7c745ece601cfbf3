/*
 * Expressions from text (docs/ir.md): recursive descent over the text's own nesting, which is
 * limited. What a name stands for is known to whoever reads the text around the expression: a
 * kernel's axes, buffers and stages, a graph's symbols. Literals have no type until something
 * beside them has one.
 */
#include "ir/expr/text.h"

#include <math.h>
#include <string.h>

enum { MAX_NESTING = 1000 };

typedef dlc_expr_parser parser;

typedef enum { NOT_LITERAL, INT_LITERAL, FLOAT_LITERAL } literal_kind;

/* expr is 0 for a literal, and after a failure. */
typedef struct {
    dlc_expr expr;
    uint8_t literal; /* literal_kind */
    dlc_scalar value;
} operand;

static operand parse_expr(parser *p, int strength);

static int is_ok(const parser *p)
{
    return p->lex.status == DLC_OK;
}

dlc_dtype dlc_dtype_find(const char *name)
{
    for (int i = DLC_NONE + 1; i < DLC_DTYPE_COUNT; i++)
        if (strcmp(dlc_dtypes[i].text, name) == 0)
            return (dlc_dtype)i;
    return DLC_NONE;
}

/* --- types --- */

static dlc_dtype dtype_of(const parser *p, dlc_expr expr)
{
    return (dlc_dtype)dlc_node_of(p->pool, expr)->dtype;
}

static operand made(dlc_expr expr)
{
    return (operand){.expr = expr};
}

/* The operand as an expression; a literal takes `dtype` (NONE: i64 or f32). */
static dlc_expr settle(parser *p, operand o, dlc_dtype dtype)
{
    if (o.literal == NOT_LITERAL || !is_ok(p))
        return o.expr;
    if (dtype == DLC_NONE)
        dtype = o.literal == INT_LITERAL ? DLC_I64 : DLC_F32;
    if (o.literal == INT_LITERAL)
        return dlc_expr_const_i(p->pool, dtype, o.value.i);
    if (dlc_is_float(dtype))
        return dlc_expr_const(p->pool, dtype, o.value.f);
    dlc_lexer_fail(&p->lex, "a number with a fraction stands where %s is due",
                   dlc_dtypes[dtype].text);
    return 0;
}

static dlc_expr settle_to(parser *p, operand o, dlc_dtype dtype)
{
    dlc_expr expr = settle(p, o, dtype);
    if (is_ok(p) && dtype_of(p, expr) != dtype)
        dlc_lexer_fail(&p->lex, "found a value of type %s where %s is due",
                       dlc_dtypes[dtype_of(p, expr)].text, dlc_dtypes[dtype].text);
    return expr;
}

/* Operands [first, n) to one type: that of those that have one. */
static void unify(parser *p, operand *o, uint32_t first, uint32_t n, dlc_expr *exprs)
{
    dlc_dtype dtype = DLC_NONE;
    int has_float = 0;
    for (uint32_t i = first; i < n; i++) {
        if (o[i].literal == NOT_LITERAL && is_ok(p) && dtype == DLC_NONE)
            dtype = dtype_of(p, o[i].expr);
        has_float |= o[i].literal == FLOAT_LITERAL;
    }
    if (dtype == DLC_NONE)
        dtype = has_float ? DLC_F32 : DLC_I64;
    for (uint32_t i = first; i < n; i++)
        exprs[i] = settle_to(p, o[i], dtype);
}

/* Sizes are computed by the runtime: of i64 and bool alone. */
static int is_admitted(const parser *p, dlc_expr_op op, dlc_dtype dtype)
{
    return dlc_expr_admits(op, dtype) && (!p->is_size || dtype == DLC_I64 || dtype == DLC_BOOL);
}

static operand build(parser *p, dlc_expr_op op, operand *o)
{
    dlc_expr args[3] = {0, 0, 0};
    uint32_t n = (uint32_t)dlc_exprs[op].nargs, first = dlc_exprs[op].result == DLC_RESULT_SEL;
    if (first)
        args[0] = settle_to(p, o[0], DLC_BOOL);
    unify(p, o, first, n, args);
    if (is_ok(p) && !is_admitted(p, op, dtype_of(p, args[first])))
        dlc_lexer_fail(&p->lex, "'%s' takes no %s%s", dlc_exprs[op].text,
                       dlc_dtypes[dtype_of(p, args[first])].text,
                       dlc_expr_admits(op, dtype_of(p, args[first])) ? " in a size" : "");
    return is_ok(p) ? made(dlc_expr_make(p->pool, op, DLC_NONE, args, n)) : (operand){0};
}

static operand build2(parser *p, dlc_expr_op op, operand a, operand b)
{
    operand o[] = {a, b};
    return build(p, op, o);
}

/* --- atoms --- */

/* f32(x), u8.sat(x), bf16.ftz(x), f32.bits(x); f64(0.1) is the literal itself in that type */
static operand parse_conversion(parser *p, dlc_dtype dtype)
{
    dlc_expr_op op = DLC_EXPR_CAST;
    dlc_lexer_advance(&p->lex);
    if (dlc_lexer_take(&p->lex, ".")) {
        const char *kind = dlc_lexer_name(&p->lex);
        op = strcmp(kind, "sat") == 0 ? DLC_EXPR_CAST_SAT : strcmp(kind, "ftz") == 0 ? DLC_EXPR_CAST_FTZ : DLC_EXPR_BITCAST;
        if (op == DLC_EXPR_BITCAST && strcmp(kind, "bits") != 0)
            dlc_lexer_fail(&p->lex, "'%s.%s' is no conversion (.sat, .ftz or .bits)",
                           dlc_dtypes[dtype].text, kind);
    }
    dlc_lexer_expect(&p->lex, "(");
    operand o = parse_expr(p, 0);
    dlc_lexer_expect(&p->lex, ")");
    if (is_ok(p) && !is_admitted(p, op, dtype))
        dlc_lexer_fail(&p->lex, "found a conversion to %s; a size has i64 and bool",
                       dlc_dtypes[dtype].text);
    if (!is_ok(p))
        return (operand){0};
    if (o.literal != NOT_LITERAL && op == DLC_EXPR_CAST)
        return made(settle(p, o, dtype));
    dlc_expr expr = settle(p, o, DLC_NONE);
    if (op == DLC_EXPR_BITCAST && dlc_dtypes[dtype_of(p, expr)].bits != dlc_dtypes[dtype].bits) {
        dlc_lexer_fail(&p->lex, "%s and %s differ in width", dlc_dtypes[dtype_of(p, expr)].text,
                       dlc_dtypes[dtype].text);
        return (operand){0};
    }
    return made(dlc_expr_make(p->pool, op, dtype, &expr, 1));
}

static operand parse_call(parser *p)
{
    const char *name = dlc_lexer_name(&p->lex);
    dlc_expr_op op = DLC_EXPR_NONE;
    for (int i = DLC_EXPR_LOAD + 1; i < DLC_EXPR_COUNT; i++)
        if (strcmp(dlc_exprs[i].text, name) == 0 && dlc_exprs[i].result != DLC_RESULT_GIVEN)
            op = (dlc_expr_op)i;
    if (op == DLC_EXPR_NONE) {
        dlc_lexer_fail(&p->lex, "'%s' is no function", name);
        return (operand){0};
    }
    operand o[3] = {{0}};
    uint32_t n = (uint32_t)dlc_exprs[op].nargs;
    dlc_lexer_expect(&p->lex, "(");
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            dlc_lexer_expect(&p->lex, ",");
        o[i] = parse_expr(p, 0);
    }
    dlc_lexer_expect(&p->lex, ")");
    return is_ok(p) ? build(p, op, o) : (operand){0};
}

/* A conversion, a call, or what the text around knows by that name. */
static operand parse_name(parser *p)
{
    const dlc_token *token = &p->lex.token;
    dlc_dtype dtype = token->is_quoted ? DLC_NONE : dlc_dtype_find(token->text);
    int opens = dlc_lexer_next_is(&p->lex, "(");
    if (dtype != DLC_NONE && (opens || dlc_lexer_next_is(&p->lex, ".")))
        return parse_conversion(p, dtype);
    return opens ? parse_call(p) : made(p->leaf(p));
}

static operand literal_int(uint64_t value)
{
    return (operand){.literal = INT_LITERAL, .value = {.i = (int64_t)value}};
}

static operand literal_float(double value)
{
    return (operand){.literal = FLOAT_LITERAL, .value = {.f = value}};
}

static operand parse_atom(parser *p)
{
    dlc_token token = p->lex.token;
    operand o;
    if (token.kind == DLC_TOKEN_INT || token.kind == DLC_TOKEN_FLOAT) {
        dlc_lexer_advance(&p->lex);
        return token.kind == DLC_TOKEN_INT ? literal_int(token.integer) : literal_float(token.real);
    }
    if (dlc_lexer_take(&p->lex, "inf"))
        return literal_float(INFINITY);
    if (dlc_lexer_take(&p->lex, "nan"))
        return literal_float(NAN);
    if (dlc_lexer_is(&p->lex, "true") || dlc_lexer_is(&p->lex, "false")) {
        o = made(dlc_expr_bool(p->pool, dlc_lexer_is(&p->lex, "true")));
        dlc_lexer_advance(&p->lex);
        return o;
    }
    if (dlc_lexer_is(&p->lex, "$"))
        return made(p->leaf(p));
    if (dlc_lexer_take(&p->lex, "(")) {
        o = parse_expr(p, 0);
        dlc_lexer_expect(&p->lex, ")");
        return o;
    }
    if (token.kind == DLC_TOKEN_WORD)
        return parse_name(p);
    dlc_lexer_fail(&p->lex, "found '%s' where a value is due", token.text);
    return (operand){0};
}

/* --- operators --- */

static const dlc_infix *infix_at(const parser *p, int strength)
{
    for (const dlc_infix *infix = dlc_infixes; infix->text; infix++)
        if (infix->strength >= strength && dlc_lexer_is(&p->lex, infix->text))
            return infix;
    return NULL;
}

static operand negated(parser *p, operand o)
{
    if (o.literal == INT_LITERAL)
        return literal_int(-(uint64_t)o.value.i);
    if (o.literal == FLOAT_LITERAL)
        return literal_float(-o.value.f);
    return build(p, DLC_EXPR_NEG, &o);
}

static operand parse_prefix(parser *p)
{
    operand o = {0};
    if (p->depth == MAX_NESTING) {
        dlc_lexer_fail(&p->lex, "expressions nest deeper than %d", MAX_NESTING);
        return o;
    }
    p->depth++;
    if (dlc_lexer_take(&p->lex, "-")) {
        o = parse_prefix(p);
        o = is_ok(p) ? negated(p, o) : o;
    } else if (dlc_lexer_take(&p->lex, "not")) {
        o = parse_expr(p, DLC_STRENGTH_NOT);
        o = is_ok(p) ? build(p, DLC_EXPR_NOT, &o) : o;
    } else {
        o = parse_atom(p);
    }
    p->depth--;
    return is_ok(p) ? o : (operand){0};
}

/* a < b < c means a < b and b < c */
static operand compare_chain(parser *p, operand a, const dlc_infix *op)
{
    operand result = {0};
    for (int is_first = 1; op && op->strength == DLC_STRENGTH_COMPARE && is_ok(p); is_first = 0) {
        dlc_lexer_advance(&p->lex);
        operand b = parse_expr(p, DLC_STRENGTH_SUM);
        operand one = is_ok(p) ? build2(p, (dlc_expr_op)op->op, op->is_swapped ? b : a,
                                        op->is_swapped ? a : b)
                               : b;
        result = is_first || !is_ok(p) ? one : build2(p, DLC_EXPR_AND, result, one);
        a = b;
        op = infix_at(p, DLC_STRENGTH_COMPARE);
    }
    return result;
}

static operand parse_expr(parser *p, int strength)
{
    operand a = parse_prefix(p);
    for (const dlc_infix *op; is_ok(p) && (op = infix_at(p, strength));) {
        if (op->strength == DLC_STRENGTH_COMPARE) {
            a = compare_chain(p, a, op);
            continue;
        }
        dlc_lexer_advance(&p->lex);
        operand b = parse_expr(p, op->strength + 1);
        a = is_ok(p) ? build2(p, (dlc_expr_op)op->op, a, b) : (operand){0};
    }
    return is_ok(p) ? a : (operand){0};
}

/* --- the whole --- */

dlc_expr dlc_expr_parse(parser *p, dlc_dtype like)
{
    operand o = parse_expr(p, 0);
    return is_ok(p) ? settle(p, o, like) : 0;
}

dlc_expr dlc_expr_parse_as(parser *p, dlc_dtype dtype)
{
    operand o = parse_expr(p, 0);
    return is_ok(p) ? settle_to(p, o, dtype) : 0;
}

dlc_layout dlc_layout_lex(dlc_lexer *lex, uint8_t rank)
{
    dlc_str text = {0};
    dlc_layout layout = {0};
    int is_list = dlc_lexer_is(lex, "{"), is_last = 0;
    dlc_str_add(&text, "@");
    for (; lex->status == DLC_OK && lex->token.kind != DLC_TOKEN_END && !is_last; dlc_lexer_advance(lex)) {
        dlc_str_add(&text, lex->token.text);
        is_last = !is_list || dlc_lexer_is(lex, "}");
    }
    const char *at = dlc_str_text(&text);
    if (lex->status == DLC_OK && (!dlc_layout_parse(&at, rank, &layout) || *at))
        dlc_lexer_fail(lex, "'%s' is no layout of rank %u", dlc_str_text(&text), rank);
    dlc_str_deinit(&text);
    return layout;
}

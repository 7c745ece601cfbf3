/*
 * Kernels from text (docs/ir.md): recursive descent over the text's own nesting, which is limited.
 * Stages may be read before they are defined (recurrences), so a first walk over the statements
 * collects the stages with their axes and stated types, a second one their values. Literals have no
 * type until something beside them has one.
 */
#include "ir/kernel.h"
#include "ir/kernel_lex.h"

#include <math.h>
#include <string.h>

enum { MAX_NESTING = 1000 };

typedef enum { NOT_LITERAL, INT_LITERAL, FLOAT_LITERAL } literal_kind;

/* expr is 0 for a literal, and after a failure. */
typedef struct {
    dlc_expr expr;
    uint8_t literal; /* literal_kind */
    dlc_scalar value;
} operand;

typedef struct {
    dlc_lexer lex;
    dlc_kernel *kernel;
    dlc_pool *pool;
    uint32_t depth;
    int is_size;   /* within dimensions and extents: names are symbols, new ones are declared */
    dlc_ids bound; /* by number - 1 */
} parser;

static operand parse_expr(parser *p, int strength);

static int is_ok(const parser *p)
{
    return p->lex.status == DLC_OK;
}

/* --- names --- */

static uint32_t find_axis(const parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->kernel->axes.n; i++)
        if (strcmp(p->kernel->axes.data[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

static uint32_t find_symbol(const parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->kernel->symbols.n; i++)
        if (strcmp(p->kernel->symbols.data[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

static uint32_t find_buffer(const parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->kernel->buffers.n; i++)
        if (strcmp(p->kernel->buffers.data[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

static uint32_t find_stage(const parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->kernel->stages.n; i++)
        if (strcmp(p->kernel->stages.data[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

static dlc_dtype find_dtype(const char *name)
{
    for (int i = DLC_NONE + 1; i < DLC_DTYPE_COUNT; i++)
        if (strcmp(dlc_dtypes[i].text, name) == 0)
            return (dlc_dtype)i;
    return DLC_NONE;
}

static dlc_dtype parse_dtype(parser *p)
{
    const char *name = dlc_lexer_name(&p->lex);
    dlc_dtype dtype = find_dtype(name);
    if (dtype == DLC_NONE)
        dlc_lexer_fail(&p->lex, "'%s' is no element type", name);
    return dtype;
}

static uint32_t parse_axis(parser *p)
{
    const char *name = dlc_lexer_name(&p->lex);
    uint32_t axis = find_axis(p, name);
    if (axis == UINT32_MAX)
        dlc_lexer_fail(&p->lex, "'%s' is no axis of the kernel", name);
    return axis;
}

/* Names of axes up to `end`, which is taken. */
static void parse_axes_until(parser *p, const char *end, dlc_ids *ids)
{
    while (is_ok(p) && !dlc_lexer_is(&p->lex, end)) {
        if (ids->n)
            dlc_lexer_expect(&p->lex, ",");
        uint32_t axis = parse_axis(p);
        if (is_ok(p))
            dlc_vec_push(p->kernel->arena, ids, axis);
    }
    dlc_lexer_expect(&p->lex, end);
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

static operand build(parser *p, dlc_expr_op op, operand *o)
{
    dlc_expr args[3] = {0, 0, 0};
    uint32_t n = (uint32_t)dlc_exprs[op].nargs, first = dlc_exprs[op].result == DLC_RESULT_SEL;
    if (first)
        args[0] = settle_to(p, o[0], DLC_BOOL);
    unify(p, o, first, n, args);
    if (is_ok(p) && !dlc_expr_admits(op, dtype_of(p, args[first])))
        dlc_lexer_fail(&p->lex, "'%s' takes no %s", dlc_exprs[op].text,
                       dlc_dtypes[dtype_of(p, args[0])].text);
    return is_ok(p) ? made(dlc_expr_make(p->pool, op, DLC_NONE, args, n)) : (operand){0};
}

static operand build2(parser *p, dlc_expr_op op, operand a, operand b)
{
    operand o[] = {a, b};
    return build(p, op, o);
}

/* --- atoms --- */

/* f32(x), u8.sat(x), f32.bits(x); f64(0.1) is the literal itself in that type */
static operand parse_conversion(parser *p, dlc_dtype dtype)
{
    dlc_expr_op op = DLC_EXPR_CAST;
    dlc_lexer_advance(&p->lex);
    if (dlc_lexer_take(&p->lex, ".")) {
        const char *kind = dlc_lexer_name(&p->lex);
        op = strcmp(kind, "sat") == 0 ? DLC_EXPR_CAST_SAT : DLC_EXPR_BITCAST;
        if (strcmp(kind, "sat") != 0 && strcmp(kind, "bits") != 0)
            dlc_lexer_fail(&p->lex, "'%s.%s' is no conversion (.sat or .bits)",
                           dlc_dtypes[dtype].text, kind);
    }
    dlc_lexer_expect(&p->lex, "(");
    operand o = parse_expr(p, 0);
    dlc_lexer_expect(&p->lex, ")");
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

typedef struct {
    const char *name;
    dlc_source source;
    dlc_type type;
    uint8_t flags;
} loaded;

static int find_source(parser *p, loaded *l)
{
    uint32_t stage = find_stage(p, l->name), buffer = find_buffer(p, l->name);
    if (stage == UINT32_MAX && buffer == UINT32_MAX) {
        dlc_lexer_fail(&p->lex, "'%s' is no axis, symbol, buffer or stage", l->name);
        return 0;
    }
    l->source = stage != UINT32_MAX ? DLC_STAGE_SOURCE(stage) : buffer;
    if (stage != UINT32_MAX && p->kernel->stages.data[stage].axes.n > DLC_MAX_RANK) {
        dlc_lexer_fail(&p->lex, "'%s' has more than %d axes", l->name, DLC_MAX_RANK);
        return 0;
    }
    l->type = dlc_source_type(p->kernel, l->source, l->flags & DLC_LOAD_SECOND);
    if (l->type.dtype == DLC_NONE)
        dlc_lexer_fail(&p->lex,
                       "'%s' is read before it is defined: state its type, as in %s[…]: f32 = …",
                       l->name, l->name);
    return is_ok(p);
}

static dlc_expr all_in_range(parser *p, const loaded *l, const dlc_expr *index)
{
    dlc_expr guard = 0;
    for (uint32_t i = 0; i < l->type.rank; i++)
        guard = dlc_and(p->pool, guard, dlc_in_range(p->pool, index[i], l->type.dims[i]));
    return guard;
}

/* [i, j if guard else value]; an else alone means "where every index lies in its dimension" unless
 * the load is checked */
static operand parse_indices(parser *p, loaded *l)
{
    dlc_expr index[DLC_MAX_RANK], guard = 0, otherwise = 0;
    uint32_t n = 0;
    dlc_lexer_expect(&p->lex, "[");
    while (is_ok(p) && !dlc_lexer_is(&p->lex, "]") && !dlc_lexer_is(&p->lex, "if") &&
           !dlc_lexer_is(&p->lex, "else")) {
        if (n)
            dlc_lexer_expect(&p->lex, ",");
        dlc_expr at = settle_to(p, parse_expr(p, 0), DLC_I64);
        if (n == l->type.rank)
            dlc_lexer_fail(&p->lex, "'%s' takes %u indices", l->name, l->type.rank);
        else
            index[n++] = at;
    }
    if (is_ok(p) && n != l->type.rank)
        dlc_lexer_fail(&p->lex, "'%s' takes %u indices, not %u", l->name, l->type.rank, n);
    int is_guarded = dlc_lexer_take(&p->lex, "if");
    if (is_guarded)
        guard = settle_to(p, parse_expr(p, 0), DLC_BOOL);
    if (dlc_lexer_take(&p->lex, "else")) {
        otherwise = settle_to(p, parse_expr(p, 0), l->type.dtype);
        if (is_ok(p) && !is_guarded && !(l->flags & DLC_LOAD_CHECKED))
            guard = all_in_range(p, l, index);
    }
    dlc_lexer_expect(&p->lex, "]");
    if (!is_ok(p))
        return (operand){0};
    return made(
        dlc_expr_load(p->pool, l->type.dtype, l->source, index, n, guard, otherwise, l->flags));
}

static operand load_own_axes(parser *p, const loaded *l)
{
    if (!DLC_SOURCE_IS_STAGE(l->source)) {
        dlc_lexer_fail(&p->lex, "the buffer '%s' needs its indices, %s[…]", l->name, l->name);
        return (operand){0};
    }
    const dlc_ids *axes = &p->kernel->stages.data[DLC_SOURCE_INDEX(l->source)].axes;
    dlc_expr index[DLC_MAX_RANK];
    for (uint32_t i = 0; i < axes->n; i++)
        index[i] = dlc_expr_axis(p->pool, axes->data[i]);
    return made(dlc_expr_load(p->pool, l->type.dtype, l->source, index, axes->n, 0, 0, l->flags));
}

static operand parse_load(parser *p)
{
    loaded l = {.name = dlc_lexer_name(&p->lex)};
    if (dlc_lexer_take(&p->lex, ".")) {
        if (dlc_lexer_int(&p->lex) != 1)
            dlc_lexer_fail(&p->lex, "'%s.1' is the second result of a stage", l.name);
        l.flags |= DLC_LOAD_SECOND;
    }
    if (dlc_lexer_take(&p->lex, "?"))
        l.flags |= DLC_LOAD_CHECKED;
    int has_indices = dlc_lexer_is(&p->lex, "[");
    if (!is_ok(p) || !find_source(p, &l))
        return (operand){0};
    return has_indices ? parse_indices(p, &l) : load_own_axes(p, &l);
}

static operand parse_symbol(parser *p)
{
    const char *name = dlc_lexer_name(&p->lex);
    uint32_t symbol = find_symbol(p, name);
    if (symbol == UINT32_MAX)
        symbol = dlc_kernel_symbol_add(p->kernel, name, 0, INT32_MAX, 0);
    return made(dlc_expr_sym(p->pool, symbol));
}

static operand parse_name(parser *p)
{
    const char *name = p->lex.token.text;
    dlc_dtype dtype = p->lex.token.is_quoted ? DLC_NONE : find_dtype(name);
    if (dtype != DLC_NONE && (dlc_lexer_next_is(&p->lex, "(") || dlc_lexer_next_is(&p->lex, ".")))
        return parse_conversion(p, dtype);
    if (dlc_lexer_next_is(&p->lex, "("))
        return parse_call(p);
    if (p->is_size)
        return parse_symbol(p);
    int is_load = dlc_lexer_next_is(&p->lex, "[") || dlc_lexer_next_is(&p->lex, "?") ||
                  dlc_lexer_next_is(&p->lex, ".");
    uint32_t axis = find_axis(p, name), symbol = find_symbol(p, name);
    if (is_load || (axis == UINT32_MAX && symbol == UINT32_MAX))
        return parse_load(p);
    dlc_lexer_advance(&p->lex);
    return made(axis != UINT32_MAX ? dlc_expr_axis(p->pool, axis) : dlc_expr_sym(p->pool, symbol));
}

static operand parse_bound(parser *p)
{
    int64_t number = dlc_lexer_int(&p->lex);
    if (is_ok(p) && (number < 1 || (uint64_t)number > p->bound.n))
        dlc_lexer_fail(&p->lex, "$%lld is not defined above", (long long)number);
    return is_ok(p) ? made(p->bound.data[number - 1]) : (operand){0};
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
    if (dlc_lexer_take(&p->lex, "$"))
        return parse_bound(p);
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

/* --- the head --- */

static dlc_expr parse_size(parser *p)
{
    p->is_size = 1;
    dlc_expr size = settle_to(p, parse_expr(p, DLC_STRENGTH_SUM), DLC_I64);
    p->is_size = 0;
    return size;
}

static void parse_symbol_list(parser *p)
{
    if (!dlc_lexer_take(&p->lex, "<"))
        return;
    do {
        uint32_t i = dlc_kernel_symbol_add(p->kernel, dlc_lexer_name(&p->lex), 0, INT32_MAX, 0);
        dlc_kernel_symbol *symbol = &p->kernel->symbols.data[i];
        if (dlc_lexer_take(&p->lex, ":")) {
            symbol->lo = dlc_lexer_int(&p->lex);
            dlc_lexer_expect(&p->lex, "..");
            symbol->hi = dlc_lexer_int(&p->lex);
        }
        if (dlc_lexer_take(&p->lex, "%"))
            symbol->divisor = dlc_lexer_int(&p->lex);
        if (is_ok(p) && (symbol->lo > symbol->hi || symbol->divisor < 1))
            dlc_lexer_fail(&p->lex, "the symbol '%s' has no values", symbol->name);
    } while (dlc_lexer_take(&p->lex, ","));
    dlc_lexer_expect(&p->lex, ">");
}

/* {0/32,1,2,3,0%32}, or the name of a usual one */
static dlc_layout parse_layout(parser *p, uint8_t rank)
{
    dlc_layout layout = {0};
    if (dlc_lexer_take(&p->lex, "nhwc")) {
        if (rank >= 3)
            return dlc_layout_channels_last(rank);
        dlc_lexer_fail(&p->lex, "nhwc is a layout of rank 3 or more");
    }
    dlc_lexer_expect(&p->lex, "{");
    do {
        int64_t dim = dlc_lexer_int(&p->lex), block = 1;
        int is_inner = dlc_lexer_take(&p->lex, "%");
        if (is_inner || dlc_lexer_take(&p->lex, "/"))
            block = dlc_lexer_int(&p->lex);
        if (dim < 0 || dim >= rank || block < 1 || block > INT32_MAX ||
            layout.nparts == DLC_MAX_PARTS) {
            dlc_lexer_fail(&p->lex, "is no layout of rank %u", rank);
            return layout;
        }
        layout.part[layout.nparts].dim = (uint8_t)dim;
        layout.part[layout.nparts].inner = (uint8_t)is_inner;
        layout.part[layout.nparts++].block = (int32_t)block;
    } while (dlc_lexer_take(&p->lex, ","));
    dlc_lexer_expect(&p->lex, "}");
    return layout;
}

static void parse_buffer(parser *p, dlc_role role)
{
    const char *name = dlc_lexer_name(&p->lex);
    dlc_type type = {0};
    dlc_layout layout = {0};
    dlc_lexer_expect(&p->lex, ":");
    type.dtype = parse_dtype(p);
    dlc_lexer_expect(&p->lex, "[");
    while (is_ok(p) && !dlc_lexer_is(&p->lex, "]")) {
        if (type.rank)
            dlc_lexer_expect(&p->lex, ",");
        dlc_expr dim = parse_size(p);
        if (type.rank == DLC_MAX_RANK)
            dlc_lexer_fail(&p->lex, "'%s' has more than %d dimensions", name, DLC_MAX_RANK);
        else
            type.dims[type.rank++] = dim;
    }
    dlc_lexer_expect(&p->lex, "]");
    while (dlc_lexer_take(&p->lex, "@")) {
        if (dlc_lexer_take(&p->lex, "const"))
            role = DLC_ROLE_CONST;
        else if (dlc_lexer_take(&p->lex, "out"))
            role = DLC_ROLE_OUT;
        else
            layout = parse_layout(p, type.rank);
    }
    if (is_ok(p) && find_buffer(p, name) != UINT32_MAX)
        dlc_lexer_fail(&p->lex, "there are two buffers '%s'", name);
    if (is_ok(p))
        dlc_kernel_buffer(p->kernel, name, &type, &layout, role);
}

static void parse_buffers(parser *p, dlc_role role)
{
    dlc_lexer_expect(&p->lex, "(");
    for (int is_first = 1; is_ok(p) && !dlc_lexer_is(&p->lex, ")"); is_first = 0) {
        if (!is_first)
            dlc_lexer_expect(&p->lex, ",");
        parse_buffer(p, role);
    }
    dlc_lexer_expect(&p->lex, ")");
}

static void parse_axis_lines(parser *p)
{
    dlc_lexer_skip_lines(&p->lex);
    while (is_ok(p) && dlc_lexer_is(&p->lex, "axis") && !dlc_lexer_next_is(&p->lex, "[")) {
        dlc_lexer_advance(&p->lex);
        do {
            const char *name = dlc_lexer_name(&p->lex);
            dlc_lexer_expect(&p->lex, "=");
            dlc_expr extent = parse_size(p);
            if (is_ok(p) && find_axis(p, name) != UINT32_MAX)
                dlc_lexer_fail(&p->lex, "there are two axes '%s'", name);
            if (is_ok(p))
                dlc_kernel_axis(p->kernel, name, extent);
        } while (dlc_lexer_take(&p->lex, ","));
        dlc_lexer_skip_lines(&p->lex);
    }
}

/* --- statements --- */

static void skip_statement(parser *p)
{
    while (p->lex.token.kind != DLC_TOKEN_LINE && p->lex.token.kind != DLC_TOKEN_END &&
           !dlc_lexer_is(&p->lex, "}"))
        dlc_lexer_advance(&p->lex);
    dlc_lexer_skip_lines(&p->lex);
}

static int at_end(const parser *p)
{
    return !is_ok(p) || dlc_lexer_is(&p->lex, "}") || p->lex.token.kind == DLC_TOKEN_END;
}

/* Name, axes and type of a stage. Without a stated type, which is returned, it is taken to be that
 * of the output so called. */
static dlc_dtype parse_stage_head(parser *p, dlc_stage *stage)
{
    dlc_dtype stated = DLC_NONE;
    stage->name = dlc_lexer_name(&p->lex);
    dlc_lexer_expect(&p->lex, "[");
    parse_axes_until(p, "]", &stage->axes);
    uint32_t buffer = find_buffer(p, stage->name);
    if (buffer != UINT32_MAX)
        stage->dtype[0] = p->kernel->buffers.data[buffer].type.dtype;
    if (dlc_lexer_take(&p->lex, ":"))
        stage->dtype[0] = stated = parse_dtype(p);
    return stated;
}

/* The first walk: all stages, in order. */
static void declare_stages(parser *p)
{
    const dlc_lexer start = p->lex;
    while (!at_end(p)) {
        if (!dlc_lexer_is(&p->lex, "$")) {
            dlc_stage head = {0};
            parse_stage_head(p, &head);
            if (is_ok(p) && find_stage(p, head.name) != UINT32_MAX)
                dlc_lexer_fail(&p->lex, "there are two stages '%s'", head.name);
            dlc_stage *stage = dlc_kernel_stage(p->kernel, head.name);
            stage->axes = head.axes;
            stage->dtype[0] = head.dtype[0];
        }
        skip_statement(p);
    }
    if (is_ok(p))
        p->lex = start;
}

static int starts_value(const dlc_token *token)
{
    if (token->kind == DLC_TOKEN_WORD && !token->is_quoted && dlc_word_follows_value(token->text))
        return 0;
    return token->kind == DLC_TOKEN_WORD || token->kind == DLC_TOKEN_INT ||
           token->kind == DLC_TOKEN_FLOAT ||
           (token->kind == DLC_TOKEN_MARK && (*token->text == '(' || *token->text == '$'));
}

/* sum(k, …) in front of a value. `max(a, b)` is a call when nothing that is a value follows it. */
static int parse_reduce(parser *p, dlc_stage *stage)
{
    const dlc_lexer start = p->lex;
    int combine = DLC_REDUCE_NONE;
    for (int i = 1; i < DLC_REDUCE_COUNT; i++)
        if (dlc_lexer_is(&p->lex, dlc_reduces[i].text) && dlc_lexer_next_is(&p->lex, "("))
            combine = i;
    if (combine == DLC_REDUCE_NONE)
        return 0;
    dlc_lexer_advance(&p->lex);
    dlc_lexer_advance(&p->lex);
    dlc_ids axes = {0};
    int is_list = 1;
    while (is_list && !dlc_lexer_is(&p->lex, ")")) {
        if (axes.n && !dlc_lexer_take(&p->lex, ","))
            is_list = 0;
        uint32_t axis =
            p->lex.token.kind == DLC_TOKEN_WORD ? find_axis(p, p->lex.token.text) : UINT32_MAX;
        is_list &= axis != UINT32_MAX;
        dlc_vec_push(p->kernel->arena, &axes, axis);
        dlc_lexer_advance(&p->lex);
    }
    is_list = is_list && is_ok(p) && dlc_lexer_take(&p->lex, ")") && starts_value(&p->lex.token);
    if (!is_list) {
        p->lex = start;
        return 0;
    }
    stage->combine = (uint8_t)combine;
    stage->reduce = axes;
    return 1;
}

static uint8_t parse_update(parser *p)
{
    const char *name = dlc_lexer_name(&p->lex);
    for (uint8_t i = DLC_UPDATE_SET; dlc_update_names[i]; i++)
        if (strcmp(dlc_update_names[i], name) == 0)
            return i;
    dlc_lexer_fail(&p->lex, "'%s' is no update (set sum prod min max)", name);
    return DLC_UPDATE_NONE;
}

/* -> y[i, j] update sum second; without an arrow a stage called like an output is stored there at
 * its axes */
static void parse_store(parser *p, dlc_stage *stage)
{
    int is_said = dlc_lexer_take(&p->lex, "->");
    const char *name = is_said ? dlc_lexer_name(&p->lex) : stage->name;
    stage->buffer = find_buffer(p, name);
    if (stage->buffer == UINT32_MAX) {
        stage->buffer = DLC_NO_BUFFER;
        if (is_said)
            dlc_lexer_fail(&p->lex, "'%s' is no buffer", name);
        return;
    }
    if (!is_said)
        for (uint32_t i = 0; i < stage->axes.n; i++)
            dlc_vec_push(p->kernel->arena, &stage->store,
                         dlc_expr_axis(p->pool, stage->axes.data[i]));
    if (!is_said)
        return;
    dlc_lexer_expect(&p->lex, "[");
    while (is_ok(p) && !dlc_lexer_is(&p->lex, "]")) {
        if (stage->store.n)
            dlc_lexer_expect(&p->lex, ",");
        dlc_expr at = settle_to(p, parse_expr(p, 0), DLC_I64);
        dlc_vec_push(p->kernel->arena, &stage->store, at);
    }
    dlc_lexer_expect(&p->lex, "]");
    if (dlc_lexer_take(&p->lex, "update"))
        stage->update = parse_update(p);
    stage->second = (uint8_t)dlc_lexer_take(&p->lex, "second");
}

static void parse_stage(parser *p, dlc_stage *stage)
{
    dlc_stage head = {0};
    dlc_dtype stated = parse_stage_head(p, &head);
    dlc_lexer_expect(&p->lex, "=");
    if (!is_ok(p))
        return;
    parse_reduce(p, stage);
    operand value = parse_expr(p, 0);
    stage->value[0] = stated ? settle_to(p, value, stated) : settle(p, value, stage->dtype[0]);
    if (dlc_reduces[stage->combine].naccs > 1) {
        dlc_lexer_expect(&p->lex, ",");
        stage->value[1] = settle(p, parse_expr(p, 0), DLC_NONE);
    }
    if (!is_ok(p))
        return;
    for (uint32_t a = 0; a < dlc_reduces[stage->combine].naccs; a++)
        stage->dtype[a] = dtype_of(p, stage->value[a]);
    parse_store(p, stage);
}

static void parse_binding(parser *p)
{
    int64_t number = dlc_lexer_int(&p->lex);
    if (is_ok(p) && (uint64_t)number != p->bound.n + 1)
        dlc_lexer_fail(&p->lex, "$%lld is due, not $%lld", (long long)p->bound.n + 1,
                       (long long)number);
    dlc_lexer_expect(&p->lex, "=");
    dlc_expr value = settle(p, parse_expr(p, 0), DLC_NONE);
    if (is_ok(p))
        dlc_vec_push(p->kernel->arena, &p->bound, value);
}

static void parse_statements(parser *p)
{
    for (uint32_t next = 0; !at_end(p);) {
        if (dlc_lexer_take(&p->lex, "$"))
            parse_binding(p);
        else
            parse_stage(p, &p->kernel->stages.data[next++]);
        if (is_ok(p) && p->lex.token.kind != DLC_TOKEN_LINE && !dlc_lexer_is(&p->lex, "}"))
            dlc_lexer_fail(&p->lex, "found '%s' where a statement should end", p->lex.token.text);
        dlc_lexer_skip_lines(&p->lex);
    }
}

dlc_status dlc_kernel_parse(const char *text, dlc_arena *arena, dlc_diag *diag, dlc_kernel **result)
{
    parser p = {0};
    *result = NULL;
    dlc_lexer_init(&p.lex, text, arena, diag);
    dlc_lexer_skip_lines(&p.lex);
    dlc_lexer_expect(&p.lex, "kernel");
    dlc_lexer_expect(&p.lex, "@");
    p.kernel = dlc_kernel_create(arena, dlc_lexer_name(&p.lex));
    p.pool = p.kernel->pool;
    parse_symbol_list(&p);
    parse_buffers(&p, DLC_ROLE_IN);
    dlc_lexer_expect(&p.lex, "->");
    parse_buffers(&p, DLC_ROLE_OUT);
    dlc_lexer_expect(&p.lex, "{");
    parse_axis_lines(&p);
    declare_stages(&p);
    parse_statements(&p);
    dlc_lexer_expect(&p.lex, "}");
    dlc_lexer_skip_lines(&p.lex);
    if (is_ok(&p) && p.lex.token.kind != DLC_TOKEN_END)
        dlc_lexer_fail(&p.lex, "found '%s' behind the kernel", p.lex.token.text);
    if (is_ok(&p))
        *result = p.kernel;
    return p.lex.status;
}

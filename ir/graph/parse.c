/*
 * A graph from text (grammar in docs/ir.md). A line is a node: it is built by dlc_graph_node, so
 * everything is checked as for imported models, and the type written for a result must be the one
 * inferred, or one that conditions make equal to it. Constants given as `hash(H)` get numbers made
 * from H: the same ones each time, and they print as `hash(H)` again.
 */
#include "base/table.h"
#include "base/text.h"
#include "ir/expr/text.h"
#include "ir/graph/region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OUTPUTS = 8, MAX_LISTED = 1 << 20 };
#define MAX_CONSTANT_BYTES ((size_t)1 << 32) /* of data made from text */

/* A symbol line's `%value`, known once all nodes are read. */
typedef struct {
    uint32_t symbol;
    const char *value; /* NULL: "_" */
} late_bind;

typedef struct {
    dlc_graph *graph;
    dlc_arena *arena;
    const char *at, *line_start;
    uint32_t line;
    dlc_table values; /* by name */
    dlc_vec(late_bind) binds;
    dlc_value *input; /* whose type is being read: new symbols are its dimensions */
    uint32_t dim;
} parser;

typedef struct {
    const char *name;
    dlc_type type;
    dlc_layout layout;
} result;

/* --- errors and tokens --- */

static dlc_status fail(parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static dlc_status fail(parser *p, const char *format, ...)
{
    char place[300];
    snprintf(place, sizeof place, "%.200s:%" PRIu32 ":%d", p->graph->file, p->line,
             (int)(p->at - p->line_start) + 1);
    va_list args;
    va_start(args, format);
    dlc_diag_vfail(p->graph->diag, DLC_INVALID, place, format, args);
    va_end(args);
    return DLC_INVALID;
}

static void skip_blanks(parser *p)
{
    for (;; p->at++) {
        if (*p->at == '#')
            p->at += strcspn(p->at, "\n");
        if (*p->at == '\n') {
            p->line++;
            p->line_start = p->at + 1;
        } else if (!*p->at || !dlc_is_space(*p->at)) {
            return;
        }
    }
}

static int next_is(parser *p, const char *text)
{
    skip_blanks(p);
    return strncmp(p->at, text, strlen(text)) == 0;
}

static int take(parser *p, const char *text)
{
    if (!next_is(p, text))
        return 0;
    p->at += strlen(text);
    return 1;
}

static dlc_status expect(parser *p, const char *text)
{
    if (take(p, text))
        return DLC_OK;
    return fail(p, "found \"%.20s\"; \"%s\" is wanted", p->at, text);
}

/* A word of letters, digits and _ that ends where it ends: `take("in")` must not take "int". */
static int take_word(parser *p, const char *word)
{
    if (!next_is(p, word) || dlc_word_length(p->at, 0) != strlen(word))
        return 0;
    p->at += strlen(word);
    return 1;
}

static dlc_status parse_quoted(parser *p, const char **text)
{
    const char *wrong;
    skip_blanks(p);
    *text = dlc_quoted_parse(p->arena, &p->at, &wrong);
    return *text ? DLC_OK : fail(p, "found \"%.20s\": %s", p->at, wrong);
}

/* %name or @name */
static dlc_status parse_name(parser *p, char sign, const char **name)
{
    skip_blanks(p);
    if (*p->at != sign)
        return fail(p, "found \"%.20s\"; a name starting with %c is wanted", p->at, sign);
    p->at++;
    if (*p->at == '"') {
        return parse_quoted(p, name);
    }
    size_t n = 0;
    while (dlc_is_alnum(p->at[n]) || (p->at[n] && strchr("._/", p->at[n])))
        n++;
    if (!n)
        return fail(p, "found \"%.20s\"; letters, digits, . _ or / are wanted, or a name in quotes",
                    p->at);
    *name = dlc_arena_strndup(p->arena, p->at, n);
    p->at += n;
    return DLC_OK;
}

/* An integer of lo to hi; past INT64_MAX as a bit pattern. */
static dlc_status parse_int_in(parser *p, int64_t lo, uint64_t hi, int64_t *value)
{
    skip_blanks(p);
    char *end = NULL;
    int is_negative = *p->at == '-', is_inside = 0;
    errno = 0;
    if (is_negative)
        is_inside = (*value = strtoll(p->at, &end, 10)) >= lo;
    else if (dlc_is_digit(*p->at)) {
        uint64_t size = strtoull(p->at, &end, 10);
        is_inside = size <= hi && (lo < 0 || size >= (uint64_t)lo);
        *value = (int64_t)size;
    }
    if (!end || end == p->at)
        return fail(p, "found \"%.20s\"; an integer is wanted", p->at);
    if (errno || !is_inside)
        return fail(p, "found \"%.20s\"; %" PRId64 " to %" PRIu64 " is possible", p->at, lo, hi);
    p->at = end;
    return DLC_OK;
}

static dlc_status parse_int(parser *p, int64_t *value)
{
    return parse_int_in(p, INT64_MIN, INT64_MAX, value);
}

static dlc_status parse_double(parser *p, double *value)
{
    skip_blanks(p);
    char *end;
    *value = dlc_text_double(p->at, &end);
    if (end == p->at)
        return fail(p, "found \"%.20s\"; a number is wanted", p->at);
    p->at = end;
    return DLC_OK;
}

/* --- values by name --- */

static void add_value(parser *p, dlc_value *value)
{
    int is_new;
    *dlc_table_insert(&p->values, p->arena, value->name, &is_new) = value;
}

static dlc_value *value_called(const parser *p, const char *name)
{
    void **found = dlc_table_find(&p->values, name);
    return found ? *found : NULL;
}

static dlc_status find_value(parser *p, dlc_value **value)
{
    const char *name;
    DLC_TRY(parse_name(p, '%', &name));
    *value = value_called(p, name);
    return *value ? DLC_OK : fail(p, "value %%%s is not defined above", name);
}

/* --- types --- */

/* The symbol of that name; a new one of the input whose type is being read; or 0. */
static dlc_expr symbol_called(parser *p, const char *name)
{
    for (uint32_t s = 0; s < p->graph->symbols.n; s++)
        if (strcmp(p->graph->symbols.data[s].name, name) == 0)
            return dlc_expr_sym(p->graph->pool, s);
    if (!p->input)
        return 0;
    return dlc_expr_sym(p->graph->pool,
                        dlc_graph_symbol(p->graph, name, DLC_BIND_INPUT_DIM, p->input, p->dim));
}

static dlc_expr parse_symbol_name(dlc_expr_parser *text)
{
    const dlc_lexer before = text->lex;
    const char *name = dlc_lexer_name(&text->lex);
    dlc_expr symbol = text->lex.status == DLC_OK ? symbol_called(text->ctx, name) : 0;
    if (!symbol && text->lex.status == DLC_OK) {
        text->lex = before; /* the message's place */
        dlc_lexer_fail(&text->lex, "found '%.40s', a symbol that is not declared", name);
    }
    return symbol;
}

static dlc_status parse_dim(parser *p, dlc_dtype dtype, dlc_expr *dim)
{
    skip_blanks(p);
    dlc_expr_parser text = {.lex = {.at = p->at,
                                    .file = p->graph->file,
                                    .line_start = p->line_start,
                                    .line = p->line,
                                    .is_dotted = 1,
                                    .arena = p->arena,
                                    .diag = p->graph->diag},
                            .pool = p->graph->pool,
                            .leaf = parse_symbol_name,
                            .ctx = p,
                            .is_size = 1};
    dlc_lexer_start(&text.lex);
    *dim = dlc_expr_parse(&text, DLC_NONE);
    p->at = text.lex.token.start;
    DLC_TRY(text.lex.status);
    if (dlc_node_of(p->graph->pool, *dim)->dtype != dtype)
        return fail(p, "a%s expression is wanted before \"%.20s\"",
                    dtype == DLC_BOOL ? " bool" : "n integer", p->at);
    return DLC_OK;
}

static dlc_status parse_dtype(parser *p, dlc_dtype *dtype)
{
    skip_blanks(p);
    size_t n = dlc_word_length(p->at, 0);
    *dtype = dlc_dtype_find(dlc_arena_strndup(p->arena, p->at, n));
    if (*dtype == DLC_NONE)
        return fail(p, "found \"%.20s\"; an element type is wanted", p->at);
    p->at += n;
    return DLC_OK;
}

static dlc_status parse_type(parser *p, dlc_type *type)
{
    *type = (dlc_type){0};
    DLC_TRY(parse_dtype(p, &type->dtype));
    DLC_TRY(expect(p, "["));
    while (!take(p, "]")) {
        if (type->rank)
            DLC_TRY(expect(p, ","));
        if (type->rank == DLC_MAX_RANK)
            return fail(p, "more than %d dimensions", DLC_MAX_RANK);
        p->dim = type->rank;
        DLC_TRY(parse_dim(p, DLC_I64, &type->dims[type->rank]));
        type->rank++;
    }
    return DLC_OK;
}

/* "f32[2,n]@nwc" */
static dlc_status parse_full_type(parser *p, dlc_type *type, dlc_layout *layout)
{
    DLC_TRY(parse_type(p, type));
    if (!dlc_layout_parse(&p->at, type->rank, layout))
        return fail(p, "found \"%.20s\"; a layout of %d dimensions is wanted", p->at, type->rank);
    return DLC_OK;
}

/* --- constants --- */

static dlc_status parse_element(parser *p, dlc_dtype dtype, void *element)
{
    dlc_scalar scalar = {0};
    if (dlc_is_float(dtype)) {
        DLC_TRY(parse_double(p, &scalar.f));
        scalar.f = dlc_round_to(dtype, scalar.f);
    } else if (dtype == DLC_BOOL) {
        scalar.i = take_word(p, "true");
        if (!scalar.i && !take_word(p, "false"))
            return fail(p, "found \"%.20s\"; true or false is wanted", p->at);
    } else {
        DLC_TRY(parse_int_in(p, dlc_dtype_lowest(dtype), dlc_dtype_highest(dtype), &scalar.i));
        if (dlc_is_text(dtype) && (uint64_t)scalar.i >= (uint64_t)dlc_strings_count(&p->graph->strings))
            return fail(p, "there is no string %" PRId64, scalar.i);
    }
    dlc_scalar_write(dtype, element, scalar);
    return DLC_OK;
}

static dlc_status parse_elements(parser *p, dlc_dtype dtype, char *bytes, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (i)
            DLC_TRY(expect(p, ","));
        DLC_TRY(parse_element(p, dtype, bytes + i * dlc_dtype_bytes(dtype)));
    }
    return expect(p, "]");
}

/* After "const": [elements], fill(element), hash(H), or nothing for zeros. */
static dlc_status parse_constant(parser *p, const result *r, dlc_value **value)
{
    size_t size_bytes;
    int64_t n;
    uint64_t hash = 0;
    dlc_dtype dtype = r->type.dtype;
    if (!dlc_type_bytes(p->graph->pool, &r->type, &size_bytes) ||
        !dlc_type_elems(p->graph->pool, &r->type, &n))
        return fail(p, "a constant has constant dimensions and up to 2^40 elements");
    if (size_bytes > MAX_CONSTANT_BYTES)
        return fail(p, "a constant of %zu bytes; up to %zu are made from text", size_bytes,
                    MAX_CONSTANT_BYTES);
    char *bytes = dlc_arena_alloc(p->arena, size_bytes + 1, 16);
    if (take(p, "[")) {
        if (n > MAX_LISTED)
            return fail(p, "%" PRId64 " elements in a list; up to %d are possible", n, MAX_LISTED);
        DLC_TRY(parse_elements(p, dtype, bytes, n));
    } else if (take(p, "fill(")) {
        if (n)
            DLC_TRY(parse_element(p, dtype, bytes));
        dlc_tensor_fill(dtype, bytes, n);
        DLC_TRY(expect(p, ")"));
    } else if (take(p, "hash(")) {
        char *end;
        hash = strtoull(p->at, &end, 16);
        p->at = end;
        dlc_tensor_invent(dtype, hash, bytes, n);
        DLC_TRY(expect(p, ")"));
    }
    *value = dlc_graph_constant(p->graph, r->name, &r->type, bytes, size_bytes);
    ((dlc_tensor *)(uintptr_t)(*value)->data)->text_hash = hash;
    return DLC_OK;
}

/* --- attributes --- */

static dlc_status parse_list(parser *p, dlc_attr *attr)
{
    dlc_vec(dlc_expr) dims = {0};
    dlc_vec(double) floats = {0};
    int is_dims = dlc_attrs[attr->id].kind == DLC_ATTR_KIND_DIMS;
    DLC_TRY(expect(p, "["));
    for (uint32_t n = 0; !take(p, "]"); n++) {
        dlc_expr dim = 0;
        double number = 0;
        if (n)
            DLC_TRY(expect(p, ","));
        DLC_TRY(is_dims ? parse_dim(p, attr->id == DLC_ATTR_HOLDS ? DLC_BOOL : DLC_I64, &dim)
                        : parse_double(p, &number));
        dlc_vec_push(p->arena, &dims, dim);
        dlc_vec_push(p->arena, &floats, number);
    }
    attr->n = dims.n;
    if (is_dims)
        attr->as.dims = dims.data;
    else
        attr->as.floats = floats.data;
    return DLC_OK;
}

static dlc_status parse_int_attr(parser *p, dlc_attr *attr)
{
    dlc_dtype dtype = DLC_NONE;
    if (attr->id != DLC_ATTR_DTYPE)
        return parse_int(p, &attr->as.i);
    DLC_TRY(parse_dtype(p, &dtype));
    attr->as.i = dtype;
    return DLC_OK;
}

static dlc_status parse_attr_value(parser *p, dlc_attr *attr)
{
    switch ((dlc_attr_kind)dlc_attrs[attr->id].kind) {
    case DLC_ATTR_KIND_INT:
        return parse_int_attr(p, attr);
    case DLC_ATTR_KIND_FLOAT:
        return parse_double(p, &attr->as.f);
    case DLC_ATTR_KIND_TEXT:
        return parse_quoted(p, &attr->as.text);
    case DLC_ATTR_KIND_DIMS:
    case DLC_ATTR_KIND_FLOATS:
        break;
    }
    return parse_list(p, attr);
}

static dlc_status parse_attr(parser *p, dlc_attr *attr)
{
    skip_blanks(p);
    size_t n = dlc_word_length(p->at, 0);
    for (attr->id = 0; attr->id < DLC_ATTR_COUNT; attr->id++)
        if (strlen(dlc_attrs[attr->id].text) == n &&
            strncmp(p->at, dlc_attrs[attr->id].text, n) == 0)
            break;
    if (attr->id == DLC_ATTR_COUNT)
        return fail(p, "\"%.*s\" is no attribute", (int)(n ? n : 1), p->at);
    p->at += n;
    DLC_TRY(expect(p, "="));
    return parse_attr_value(p, attr);
}

static dlc_status parse_attrs(parser *p, dlc_node_spec *spec)
{
    dlc_vec(dlc_attr) attrs = {0};
    if (!take(p, "{"))
        return DLC_OK;
    while (!take(p, "}")) {
        dlc_attr attr = {0};
        if (attrs.n)
            DLC_TRY(expect(p, ","));
        DLC_TRY(parse_attr(p, &attr));
        dlc_vec_push(p->arena, &attrs, attr);
    }
    spec->attrs = attrs.data;
    spec->nattrs = attrs.n;
    return DLC_OK;
}

/* --- nodes --- */

static dlc_status parse_inputs(parser *p, dlc_node_spec *spec)
{
    dlc_vec(dlc_value *) inputs = {0};
    if (next_is(p, "%") || take_word(p, "_"))
        do {
            dlc_value *value = NULL;
            int is_absent = inputs.n ? take_word(p, "_") : !next_is(p, "%");
            if (!is_absent)
                DLC_TRY(find_value(p, &value));
            dlc_vec_push(p->arena, &inputs, value);
        } while (take(p, ","));
    spec->inputs = inputs.data;
    spec->ninputs = inputs.n;
    return DLC_OK;
}

static dlc_status parse_op(parser *p, dlc_node_spec *spec)
{
    skip_blanks(p);
    size_t n = dlc_word_length(p->at, 0);
    int op = dlc_op_find(dlc_arena_strndup(p->arena, p->at, n));
    if (op < 0)
        return fail(p, "\"%.*s\" is no operator", (int)(n ? n : 1), p->at);
    p->at += n;
    spec->op = (dlc_opcode)op;
    DLC_TRY(parse_inputs(p, spec));
    return parse_attrs(p, spec);
}

/* Of dimensions that conditions make equal, the line says which one is written. */
static void take_equals(parser *p, dlc_type *type, const dlc_type *stated)
{
    if (type->rank == stated->rank)
        for (uint8_t d = 0; d < type->rank; d++)
            if (type->dims[d] != stated->dims[d] &&
                dlc_graph_same(p->graph, type->dims[d]) == dlc_graph_same(p->graph, stated->dims[d]))
                type->dims[d] = stated->dims[d];
}

static dlc_status check_result(parser *p, dlc_value *value, const result *r)
{
    take_equals(p, &value->type, &r->type);
    dlc_str found = {0}, stated = {0};
    dlc_type_print(p->graph, &value->type, &found);
    dlc_type_print(p->graph, &r->type, &stated);
    int is_same = strcmp(dlc_str_text(&found), dlc_str_text(&stated)) == 0;
    dlc_status status = is_same ? DLC_OK
                                : fail(p, "%%%s is %s; the line says %s", value->name,
                                       dlc_str_text(&found), dlc_str_text(&stated));
    dlc_str_deinit(&found);
    dlc_str_deinit(&stated);
    dlc_value_lay(p->graph, value, &r->layout);
    return status;
}

static dlc_status name_result(parser *p, dlc_value *value, const result *r)
{
    if (value_called(p, r->name))
        return fail(p, "value %%%s is defined twice", r->name);
    if (strcmp(value->name, r->name) != 0)
        dlc_value_rename(p->graph, value, r->name); /* so that nothing made later is called so */
    value->name = r->name;
    DLC_TRY(check_result(p, value, r));
    add_value(p, value);
    return DLC_OK;
}

static dlc_status parse_result(parser *p, result *r)
{
    DLC_TRY(parse_name(p, '%', &r->name));
    DLC_TRY(expect(p, ":"));
    return parse_full_type(p, &r->type, &r->layout);
}

static dlc_status parse_node(parser *p)
{
    result results[MAX_OUTPUTS];
    dlc_node_spec spec = {0};
    do {
        if (spec.noutputs == MAX_OUTPUTS)
            return fail(p, "more than %d results", MAX_OUTPUTS);
        DLC_TRY(parse_result(p, &results[spec.noutputs++]));
    } while (take(p, ","));
    DLC_TRY(expect(p, "="));
    if (spec.noutputs == 1 && take_word(p, "const")) {
        dlc_value *value = NULL;
        DLC_TRY(parse_constant(p, &results[0], &value));
        return name_result(p, value, &results[0]);
    }
    DLC_TRY(parse_op(p, &spec));
    if (spec.op == DLC_OP_CONSTANT)
        return fail(p, "a constant is written \"= const\" and its elements");
    spec.name = results[0].name;
    dlc_node *node = dlc_graph_node(p->graph, &spec);
    if (!node)
        return p->graph->diag->status;
    for (uint32_t o = 0; o < spec.noutputs; o++)
        DLC_TRY(name_result(p, node->outputs[o], &results[o]));
    if (p->graph->region == node)
        dlc_graph_learn(p->graph);
    return DLC_OK;
}

/* --- symbols, conditions, the whole --- */

/* symbol n = dim(%x, 0) in 0..7 */
static dlc_status parse_symbol(parser *p)
{
    static const char *const binds[] = {"dim", "data", "opaque", "result"};
    enum { NBINDS = sizeof binds / sizeof *binds };
    int64_t index, lo, hi, usual = 0;
    uint8_t bind = 0;
    late_bind late = {.symbol = p->graph->symbols.n};
    skip_blanks(p);
    size_t n = dlc_word_length(p->at, 1);
    const char *name = dlc_arena_strndup(p->arena, p->at, n);
    p->at += n;
    if (*p->at == '"' && !n)
        DLC_TRY(parse_quoted(p, &name));
    if (!*name)
        return fail(p, "found \"%.20s\"; a symbol's name is wanted", p->at);
    DLC_TRY(expect(p, "="));
    while (bind < NBINDS && !take_word(p, binds[bind]))
        bind++;
    if (bind == NBINDS)
        return fail(p, "found \"%.20s\"; dim, data, opaque or result is wanted", p->at);
    DLC_TRY(expect(p, "("));
    if (!take_word(p, "_"))
        DLC_TRY(parse_name(p, '%', &late.value));
    DLC_TRY(expect(p, ","));
    DLC_TRY(parse_int(p, &index));
    DLC_TRY(expect(p, ")"));
    DLC_TRY(expect(p, "in"));
    DLC_TRY(parse_int(p, &lo));
    DLC_TRY(expect(p, ".."));
    DLC_TRY(parse_int(p, &hi));
    if (take_word(p, "usual"))
        DLC_TRY(parse_int(p, &usual));
    if (usual && dlc_symbol_value(usual, lo, hi) != usual)
        return fail(p, "symbol %s is never its usual %" PRId64, name, usual);
    if (index < 0 || index > UINT32_MAX || lo > hi)
        return fail(p,
                    "symbol %s: index %" PRId64 ", range %" PRId64 "..%" PRId64 " are not possible",
                    name, index, lo, hi);
    uint32_t id = dlc_graph_symbol(p->graph, name, (dlc_bind)bind, NULL, (uint32_t)index);
    dlc_symbol *symbol = &p->graph->symbols.data[id];
    symbol->lo = lo;
    symbol->hi = hi;
    symbol->usual = usual;
    dlc_vec_push(p->arena, &p->binds, late);
    return DLC_OK;
}

/* What the line says is there to be read: whoever binds the symbol relies on it. */
static dlc_status check_bind(parser *p, const dlc_symbol *symbol, const dlc_value *value)
{
    int64_t elems;
    int is_known = dlc_type_elems(p->graph->pool, &value->type, &elems);
    switch ((dlc_bind)symbol->bind) {
    case DLC_BIND_INPUT_DIM:
        if (value->def || symbol->index >= value->type.rank)
            return fail(p, "symbol %s: %%%s is no graph input with a dimension %" PRIu32,
                        symbol->name, value->name, symbol->index);
        return DLC_OK;
    case DLC_BIND_DATA:
        if ((!dlc_is_int(value->type.dtype) && value->type.dtype != DLC_BOOL) || (is_known && symbol->index >= elems))
            return fail(p, "symbol %s: %%%s is no integer value with an element %" PRIu32,
                        symbol->name, value->name, symbol->index);
        return DLC_OK;
    case DLC_BIND_RESULT:
        if (!value->def || value->def->op != DLC_OP_EITHER || symbol->index >= value->type.rank)
            return fail(p, "symbol %s: %%%s is given by no if, or has no dimension %" PRIu32, symbol->name, value->name,
                        symbol->index);
        return DLC_OK;
    case DLC_BIND_OPAQUE:
        return fail(p, "symbol %s: the node that makes %%%s does not name it", symbol->name,
                    value->name);
    }
    return DLC_OK;
}

static dlc_status bind_symbols(parser *p)
{
    for (uint32_t b = 0; b < p->binds.n; b++) {
        dlc_symbol *symbol = &p->graph->symbols.data[p->binds.data[b].symbol];
        const char *name = p->binds.data[b].value;
        dlc_value *value = name ? value_called(p, name) : NULL;
        if (name && !value)
            return fail(p, "value %%%s, which binds symbol %s, is not defined", name, symbol->name);
        if (symbol->value || !value)
            continue; /* bound by its node */
        DLC_TRY(check_bind(p, symbol, value));
        symbol->value = value;
        value->nbinds += symbol->bind != DLC_BIND_INPUT_DIM;
    }
    return DLC_OK;
}

static dlc_status parse_condition(parser *p)
{
    dlc_expr holds;
    DLC_TRY(parse_dim(p, DLC_BOOL, &holds));
    const char *text;
    DLC_TRY(parse_quoted(p, &text));
    dlc_graph_require(p->graph, holds, "%s", text);
    return DLC_OK;
}

/* Results are checked by inference; an input's constant dimensions here. */
static dlc_status check_input(parser *p, const result *r)
{
    int64_t elems = 1, dim;
    for (uint8_t d = 0; d < r->type.rank; d++) {
        if (!dlc_expr_is_int(p->graph->pool, r->type.dims[d], &dim))
            continue;
        if (dim < 0 || !dlc_mul_i64(elems, dim ? dim : 1, &elems) || elems > DLC_MAX_ELEMS)
            return fail(
                p, "input %%%s: dimensions are 0 or more, and a tensor has up to 2^40 elements",
                r->name);
    }
    return DLC_OK;
}

static dlc_status parse_inputs_of_graph(parser *p)
{
    DLC_TRY(expect(p, "("));
    for (int is_first = 1; !take(p, ")"); is_first = 0) {
        result r;
        if (!is_first)
            DLC_TRY(expect(p, ","));
        DLC_TRY(parse_name(p, '%', &r.name));
        DLC_TRY(expect(p, ":"));
        dlc_value *value = p->input = dlc_graph_input(p->graph, r.name, &(dlc_type){0});
        DLC_TRY(parse_full_type(p, &r.type, &r.layout));
        p->input = NULL;
        value->type = r.type;
        DLC_TRY(check_input(p, &r));
        DLC_TRY(name_result(p, value, &r));
    }
    return DLC_OK;
}

/* Outputs are named before their nodes are read: remembered, and listed at the end. */
typedef struct {
    const char *value, *name;
} output_name;
typedef dlc_vec(output_name) output_names;

static dlc_status parse_output_names(parser *p, output_names *names)
{
    if (!take(p, "->"))
        return DLC_OK;
    do {
        output_name output;
        DLC_TRY(parse_name(p, '%', &output.value));
        output.name = output.value;
        if (take_word(p, "as"))
            DLC_TRY(parse_name(p, '%', &output.name));
        dlc_vec_push(p->arena, names, output);
    } while (take(p, ","));
    return DLC_OK;
}

static dlc_status list_outputs(parser *p, const output_names *names)
{
    for (uint32_t o = 0; o < names->n; o++) {
        dlc_value *value = value_called(p, names->data[o].value);
        if (!value)
            return fail(p, "output %%%s is not defined", names->data[o].value);
        if (value->def && (dlc_op_is_mark(value->def->op) || dlc_value_region(value)))
            return fail(p, "output %%%s is of a region; what is seen behind one is a final, a stack or an either",
                        names->data[o].value);
        dlc_graph_output(p->graph, names->data[o].name, value);
    }
    return DLC_OK;
}

/* An input's sizes are there before anything is computed. */
static dlc_status check_input_sizes(parser *p)
{
    const dlc_pool *pool = p->graph->pool;
    uint8_t *marks = dlc_new_array(p->arena, uint8_t, pool->nodes.n + 1);
    for (uint32_t i = 0; i < p->graph->inputs.n; i++)
        for (uint8_t d = 0; d < p->graph->inputs.data[i]->type.rank; d++)
            dlc_expr_reach(pool, p->graph->inputs.data[i]->type.dims[d], marks);
    for (dlc_expr e = 1; e < pool->nodes.n; e++) {
        const dlc_expr_node *node = dlc_node_of(pool, e);
        if (marks[e] && node->op == DLC_EXPR_SYM && p->graph->symbols.data[node->imm.id].bind != DLC_BIND_INPUT_DIM)
            return fail(p, "symbol %s is a dimension of an input, and no dim(…)", p->graph->symbols.data[node->imm.id].name);
    }
    return DLC_OK;
}

/* The next number's. */
static dlc_status parse_string(parser *p)
{
    const char *text;
    int64_t number = dlc_strings_count(&p->graph->strings);
    DLC_TRY(parse_quoted(p, &text));
    return dlc_strings_add(&p->graph->strings, p->arena, text) == number ? DLC_OK : fail(p, "the string stands there twice");
}

static dlc_status parse_graph(parser *p)
{
    output_names outputs = {0};
    while (take_word(p, "string"))
        DLC_TRY(parse_string(p));
    while (take_word(p, "symbol"))
        DLC_TRY(parse_symbol(p));
    DLC_TRY(expect(p, "graph"));
    DLC_TRY(parse_name(p, '@', &p->graph->name));
    DLC_TRY(parse_inputs_of_graph(p));
    DLC_TRY(parse_output_names(p, &outputs));
    DLC_TRY(expect(p, "{"));
    while (take_word(p, "require"))
        DLC_TRY(parse_condition(p));
    dlc_graph_learn(p->graph);
    while (!take(p, "}"))
        DLC_TRY(parse_node(p));
    if (p->graph->region)
        return fail(p, "the region of %%%s is not closed", p->graph->region->outputs[0]->name);
    skip_blanks(p);
    if (*p->at)
        return fail(p, "found \"%.20s\" behind the graph", p->at);
    DLC_TRY(bind_symbols(p));
    DLC_TRY(check_input_sizes(p));
    return list_outputs(p, &outputs);
}

dlc_status dlc_graph_parse(const char *text, const char *file, dlc_arena *arena, dlc_diag *diag,
                           dlc_graph **graph)
{
    parser p = {.arena = arena, .at = text, .line_start = text, .line = 1};
    p.graph = dlc_graph_create(arena, diag, file);
    DLC_TRY(parse_graph(&p));
    *graph = p.graph;
    return DLC_OK;
}

/*
 * Modules from text (docs/ir.md). Symbols are used before the inputs that bind them are known, so their lines are settled when
 * all values are read; else everything is declared before it is used. What is read is verified as what passes make.
 */
#include "ir/module/text.h"

#include "dlc/abi.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LISTED = 1 << 20 };
#define MAX_CONSTANT_BYTES ((size_t)1 << 32) /* of data made from text */

/* A symbol line's `dim(%value, …)`. */
typedef struct {
    uint32_t symbol;
    const char *value;
} late_bind;

typedef struct {
    uint32_t value;
    const char *name;
} late_whole;

typedef struct {
    dlc_expr_parser text;
    dlc_module *module;
    dlc_vec(late_bind) binds;
    dlc_vec(late_whole) wholes;
} parser;

static int is_ok(const parser *p)
{
    return p->text.lex.status == DLC_OK;
}

static int take(parser *p, const char *text)
{
    return dlc_lexer_take(&p->text.lex, text);
}

static void expect(parser *p, const char *text)
{
    dlc_lexer_expect(&p->text.lex, text);
}

/* True in front of a further line of a block, which ends with `}`. */
static int next_line(parser *p)
{
    dlc_lexer *lex = &p->text.lex;
    if (is_ok(p) && lex->token.kind != DLC_TOKEN_LINE && !dlc_lexer_is(lex, "}"))
        dlc_lexer_fail(lex, "found '%s' where a line should end", lex->token.text);
    dlc_lexer_skip_lines(lex);
    return is_ok(p) && !take(p, "}");
}

static const char *parse_name(parser *p, const char *sign)
{
    expect(p, sign);
    return dlc_lexer_name(&p->text.lex);
}

/* "_" is DLC_NO_VALUE. */
static uint32_t parse_value(parser *p)
{
    if (take(p, "_"))
        return DLC_NO_VALUE;
    const char *name = parse_name(p, "%");
    uint32_t value = is_ok(p) ? dlc_module_find_value(p->module, name) : DLC_NO_VALUE;
    if (value == DLC_NO_VALUE)
        dlc_lexer_fail(&p->text.lex, "value %%%s is not declared", name);
    return value;
}

static uint32_t parse_symbol(parser *p)
{
    const char *name = dlc_lexer_name(&p->text.lex);
    for (uint32_t s = 0; s < p->module->symbols.n; s++)
        if (!strcmp(p->module->symbols.data[s].name, name))
            return s;
    dlc_lexer_fail(&p->text.lex, "'%.40s' is no symbol that is declared", name);
    return DLC_NO_SYMBOL;
}

static dlc_expr symbol_leaf(dlc_expr_parser *text)
{
    uint32_t symbol = parse_symbol(text->ctx);
    return symbol == DLC_NO_SYMBOL ? 0 : dlc_expr_sym(text->pool, symbol);
}

static dlc_expr parse_size(parser *p, dlc_dtype dtype)
{
    return dlc_expr_parse_as(&p->text, dtype);
}

/* --- values --- */

static void parse_type(parser *p, dlc_module_value *value)
{
    dlc_lexer *lex = &p->text.lex;
    dlc_type *type = &value->type;
    expect(p, ":");
    const char *name = dlc_lexer_name(lex);
    type->dtype = dlc_dtype_find(name);
    if (is_ok(p) && type->dtype == DLC_NONE)
        dlc_lexer_fail(lex, "'%s' is no element type", name);
    expect(p, "[");
    while (is_ok(p) && !dlc_lexer_is(lex, "]")) {
        if (type->rank == DLC_MAX_RANK)
            dlc_lexer_fail(lex, "more than %d dimensions", DLC_MAX_RANK);
        if (type->rank)
            expect(p, ",");
        dlc_expr dim = parse_size(p, DLC_I64);
        if (is_ok(p))
            type->dims[type->rank++] = dim;
    }
    expect(p, "]");
    if (take(p, "@"))
        value->layout = dlc_layout_lex(lex, type->rank);
}

static int is_in_range(dlc_dtype dtype, int is_negative, uint64_t magnitude)
{
    if (is_negative)
        return magnitude <= -(uint64_t)dlc_dtype_lowest(dtype);
    return magnitude <= dlc_dtype_highest(dtype);
}

static void parse_element(parser *p, dlc_dtype dtype, void *element)
{
    dlc_lexer *lex = &p->text.lex;
    int is_negative = take(p, "-");
    dlc_scalar scalar = {.i = (int64_t)lex->token.integer};
    int is_number = lex->token.kind == DLC_TOKEN_INT || (dlc_is_float(dtype) && lex->token.kind == DLC_TOKEN_FLOAT);
    if (dtype == DLC_BOOL) {
        is_number = dlc_lexer_is(lex, "true") || dlc_lexer_is(lex, "false");
        scalar.i = dlc_lexer_is(lex, "true");
    } else if (dlc_is_float(dtype)) {
        scalar.f = lex->token.kind == DLC_TOKEN_FLOAT ? lex->token.real : (double)lex->token.integer;
        if (dlc_lexer_is(lex, "inf") || dlc_lexer_is(lex, "nan")) {
            is_number = 1;
            scalar.f = dlc_lexer_is(lex, "inf") ? (double)__builtin_inff() : (double)__builtin_nanf("");
        }
        scalar.f = dlc_round_to(dtype, is_negative ? -scalar.f : scalar.f);
    } else {
        is_number &= is_in_range(dtype, is_negative, lex->token.integer) &&
                     (!dlc_is_text(dtype) || lex->token.integer < (uint64_t)dlc_strings_count(&p->module->strings));
        scalar.i = is_negative ? (int64_t)-lex->token.integer : scalar.i;
    }
    if (!is_number) {
        dlc_lexer_fail(lex, "found '%s%s' where an element of %s is due", is_negative ? "-" : "", lex->token.text,
                       dlc_dtypes[dtype].text);
        return;
    }
    dlc_lexer_advance(lex);
    dlc_scalar_write(dtype, element, scalar);
}

static void parse_list(parser *p, dlc_dtype dtype, char *bytes, int64_t n)
{
    if (n > MAX_LISTED)
        dlc_lexer_fail(&p->text.lex, "%lld elements in a list; up to %d are possible", (long long)n, MAX_LISTED);
    for (int64_t i = 0; is_ok(p) && i < n; i++) {
        if (i)
            expect(p, ",");
        parse_element(p, dtype, bytes + i * dlc_dtype_bytes(dtype));
    }
    expect(p, "]");
}

static void parse_data(parser *p, dlc_module_value *value)
{
    dlc_lexer *lex = &p->text.lex;
    dlc_pool *pool = p->module->pool;
    dlc_dtype dtype = value->type.dtype;
    size_t size_bytes;
    int64_t n;
    expect(p, "=");
    if (!is_ok(p))
        return;
    if (!dlc_type_bytes(pool, &value->type, &size_bytes) ||
        !dlc_expr_is_int(pool, dlc_layout_elems(pool, &value->layout, value->type.rank, value->type.dims), &n) ||
        !dlc_mul_size((size_t)n, dlc_dtype_bytes(dtype), &size_bytes) || size_bytes > MAX_CONSTANT_BYTES) {
        dlc_lexer_fail(lex, "a constant has constant dimensions and, made from text, up to %zu bytes", MAX_CONSTANT_BYTES);
        return;
    }
    char *bytes = dlc_arena_alloc(p->module->arena, size_bytes + 1, 64);
    value->data = (dlc_tensor){.bytes = bytes, .size_bytes = size_bytes};
    if (take(p, "[")) {
        parse_list(p, dtype, bytes, n);
    } else if (take(p, "fill")) {
        expect(p, "(");
        if (n)
            parse_element(p, dtype, bytes);
        dlc_tensor_fill(dtype, bytes, n);
        expect(p, ")");
    } else {
        expect(p, "hash");
        value->data.text_hash = dlc_lexer_hash(lex);
        if (!is_ok(p))
            return;
        dlc_tensor_invent(dtype, value->data.text_hash, bytes, n);
    }
}

/* Behind the role. */
static void parse_declaration(parser *p, dlc_value_role role)
{
    dlc_module_value value = {.role = (uint8_t)role, .origin = DLC_NO_VALUE};
    value.name = parse_name(p, "%");
    if (is_ok(p) && dlc_module_find_value(p->module, value.name) != DLC_NO_VALUE)
        dlc_lexer_fail(&p->text.lex, "value %%%s is declared twice", value.name);
    parse_type(p, &value);
    const char *output = role == DLC_VALUE_OUTPUT && take(p, "as") ? parse_name(p, "%") : value.name;
    late_whole late = {p->module->values.n, role == DLC_VALUE_TEMP && take(p, "in") ? parse_name(p, "%") : NULL};
    if (late.name) {
        expect(p, "at");
        value.skip = parse_size(p, DLC_I64);
        dlc_vec_push(p->module->arena, &p->wholes, late);
    }
    if (take(p, "of"))
        value.origin = parse_value(p);
    if (role == DLC_VALUE_CONST && value.origin == DLC_NO_VALUE)
        parse_data(p, &value);
    else if (role == DLC_VALUE_CONST && is_ok(p) && !dlc_module_lay_out(p->module, &value))
        dlc_lexer_fail(&p->text.lex, "value %%%s: %%%s is no row-major constant of as many elements of that type", value.name,
                       p->module->values.data[value.origin].name);
    if (!is_ok(p))
        return;
    uint32_t made = dlc_module_add_value(p->module, &value);
    if (role == DLC_VALUE_INPUT)
        dlc_module_input(p->module, made);
    if (role == DLC_VALUE_OUTPUT)
        dlc_module_output_add(p->module, output, made);
    if (role == DLC_VALUE_CONST && value.origin != DLC_NO_VALUE)
        dlc_module_add_form(p->module, made);
}

/* --- symbols and conditions --- */

static void parse_symbol_line(parser *p)
{
    dlc_lexer *lex = &p->text.lex;
    dlc_module_symbol symbol = {.name = dlc_lexer_name(lex), .bind = DLC_BIND_DATA};
    for (uint32_t s = 0; s < p->module->symbols.n; s++)
        if (is_ok(p) && !strcmp(p->module->symbols.data[s].name, symbol.name))
            dlc_lexer_fail(lex, "symbol '%s' is declared twice", symbol.name);
    if (take(p, "=")) {
        expect(p, "dim");
        expect(p, "(");
        late_bind late = {p->module->symbols.n, parse_name(p, "%")};
        expect(p, ",");
        symbol.bind = DLC_BIND_INPUT_DIM;
        symbol.index = (uint32_t)dlc_lexer_int(lex);
        expect(p, ")");
        dlc_vec_push(p->module->arena, &p->binds, late);
    }
    expect(p, "in");
    symbol.lo = dlc_lexer_int(lex);
    expect(p, "..");
    symbol.hi = dlc_lexer_int(lex);
    symbol.usual = take(p, "usual") ? dlc_lexer_int(lex) : 0;
    if (is_ok(p) && symbol.lo > symbol.hi)
        dlc_lexer_fail(lex, "symbol '%s' has no values", symbol.name);
    if (is_ok(p) && symbol.usual && dlc_symbol_value(symbol.usual, symbol.lo, symbol.hi) != symbol.usual)
        dlc_lexer_fail(lex, "symbol '%s' is never its usual %lld", symbol.name, (long long)symbol.usual);
    if (is_ok(p))
        dlc_vec_push(p->module->arena, &p->module->symbols, symbol);
}

static void parse_condition(parser *p)
{
    dlc_condition condition = {.holds = parse_size(p, DLC_BOOL)};
    condition.text = dlc_lexer_name(&p->text.lex);
    if (is_ok(p))
        dlc_vec_push(p->module->arena, &p->module->conditions, condition);
}

static void bind_symbols(parser *p)
{
    for (uint32_t b = 0; is_ok(p) && b < p->binds.n; b++) {
        dlc_module_symbol *symbol = &p->module->symbols.data[p->binds.data[b].symbol];
        uint32_t value = dlc_module_find_value(p->module, p->binds.data[b].value);
        const dlc_module_value *at = value == DLC_NO_VALUE ? NULL : &p->module->values.data[value];
        if (at && at->role == DLC_VALUE_INPUT && symbol->index < at->type.rank)
            symbol->input = at->index;
        else
            dlc_lexer_fail(&p->text.lex, "symbol '%s': %%%s is no input with a dimension %u", symbol->name,
                           p->binds.data[b].value, symbol->index);
    }
}

/* What values lie in may be declared behind them. */
static void find_wholes(parser *p)
{
    for (uint32_t i = 0; is_ok(p) && i < p->wholes.n; i++) {
        const late_whole *late = &p->wholes.data[i];
        uint32_t whole = dlc_module_find_value(p->module, late->name);
        p->module->values.data[late->value].whole = whole;
        if (whole == DLC_NO_VALUE)
            dlc_lexer_fail(&p->text.lex, "there is no value %%%s for %%%s to lie in", late->name,
                           p->module->values.data[late->value].name);
    }
}

/* The next number's. */
static void parse_string(parser *p)
{
    dlc_strings *strings = &p->module->strings;
    int64_t number = dlc_strings_count(strings);
    const char *text = dlc_lexer_name(&p->text.lex);
    if (is_ok(p) && dlc_strings_add(strings, p->module->arena, text) != number)
        dlc_lexer_fail(&p->text.lex, "the string stands there twice");
}

static void parse_line(parser *p)
{
    if (take(p, "string")) {
        parse_string(p);
        return;
    }
    if (take(p, "symbol")) {
        parse_symbol_line(p);
        return;
    }
    if (take(p, "require")) {
        parse_condition(p);
        return;
    }
    for (int role = 0; dlc_value_role_names[role]; role++)
        if (take(p, dlc_value_role_names[role])) {
            parse_declaration(p, (dlc_value_role)role);
            return;
        }
    dlc_lexer_fail(&p->text.lex, "found '%s'; string, symbol, require, input, output, const, temp or host is due",
                   p->text.lex.token.text);
}

/* --- kernels --- */

/* What is wrong with a kernel is the text's fault here, not the compiler's. */
static void verify_kernel(parser *p, const dlc_kernel *kernel)
{
    dlc_diag diag;
    dlc_diag_init(&diag, p->module->arena);
    if (dlc_kernel_verify(kernel, &diag) != DLC_OK)
        dlc_lexer_fail(&p->text.lex, "%s: %s", diag.messages[0].place, diag.messages[0].text);
}

static void parse_kernels(parser *p)
{
    dlc_lexer *lex = &p->text.lex;
    for (; is_ok(p) && dlc_lexer_is(lex, "kernel"); dlc_lexer_skip_lines(lex)) {
        dlc_module_kernel entry = {.kernel = dlc_kernel_parse_inside(lex)};
        dlc_lexer_skip_lines(lex);
        if (is_ok(p))
            verify_kernel(p, entry.kernel);
        if (is_ok(p) && dlc_lexer_is(lex, "schedule"))
            entry.schedule = dlc_schedule_parse_inside(lex, entry.kernel, p->module->target, p->module->arena);
        if (!is_ok(p))
            return;
        entry.hash = dlc_kernel_hash(entry.kernel);
        dlc_vec_push(p->module->arena, &p->module->kernels, entry);
    }
}

/* --- steps --- */

static void parse_values(parser *p, dlc_ids *values)
{
    expect(p, "(");
    for (int is_first = 1; is_ok(p) && !take(p, ")"); is_first = 0) {
        if (!is_first)
            expect(p, ",");
        uint32_t value = parse_value(p);
        dlc_vec_push(p->module->arena, values, value);
    }
}

static void parse_operands(parser *p, dlc_step *step)
{
    dlc_ids values = {0};
    parse_values(p, &values);
    expect(p, "->");
    parse_values(p, &values);
    step->values = values.data;
    step->nvalues = values.n;
}

static void parse_launch(parser *p, dlc_step *step)
{
    dlc_ids sizes = {0};
    step->kernel = (uint32_t)dlc_lexer_int(&p->text.lex);
    if (is_ok(p) && step->kernel >= p->module->kernels.n)
        dlc_lexer_fail(&p->text.lex, "kernel %u of %u", step->kernel, p->module->kernels.n);
    parse_operands(p, step);
    if (take(p, "sizes")) {
        expect(p, "(");
        do {
            dlc_expr size = parse_size(p, DLC_I64);
            dlc_vec_push(p->module->arena, &sizes, size);
        } while (take(p, ","));
        expect(p, ")");
    }
    step->symbols = sizes.data;
    step->nsymbols = sizes.n;
}

static void parse_attrs(parser *p, dlc_step *step)
{
    const dlc_opaque_row *row = &dlc_opaque_rows[step->opaque];
    const char *names = row->names;
    step->nattrs = row->nattrs;
    for (uint32_t i = 0; i < row->nattrs; i++) {
        size_t n = strcspn(names, " ");
        expect(p, i ? "," : "{");
        expect(p, dlc_arena_strndup(p->module->arena, names, n));
        expect(p, "=");
        step->attrs[i] = dlc_lexer_int(&p->text.lex);
        names += n + (names[n] == ' ');
    }
    if (row->nattrs)
        expect(p, "}");
}

static void parse_opaque(parser *p, dlc_step *step)
{
    const char *name = dlc_lexer_name(&p->text.lex);
    while (step->opaque < dlc_nopaque_rows && strcmp(dlc_opaque_rows[step->opaque].text, name) != 0)
        step->opaque++;
    if (step->opaque == dlc_nopaque_rows) {
        dlc_lexer_fail(&p->text.lex, "'%s' is no step in C", name);
        return;
    }
    parse_operands(p, step);
    parse_attrs(p, step);
    if (take(p, "binds"))
        step->symbol = parse_symbol(p);
    if (is_ok(p) && step->symbol != DLC_NO_SYMBOL)
        p->module->symbols.data[step->symbol].bind = DLC_BIND_OPAQUE;
}

static void parse_bind(parser *p, dlc_step *step)
{
    step->symbol = parse_symbol(p);
    step->name = is_ok(p) ? p->module->symbols.data[step->symbol].name : "";
    step->values = dlc_new_array(p->module->arena, uint32_t, 1);
    step->nvalues = step->nattrs = 1;
    expect(p, "=");
    step->values[0] = parse_value(p);
    expect(p, "[");
    step->attrs[0] = dlc_lexer_int(&p->text.lex);
    expect(p, "]");
}

static void parse_copy(parser *p, dlc_step *step)
{
    step->values = dlc_new_array(p->module->arena, uint32_t, 2);
    step->nvalues = 2;
    step->values[0] = parse_value(p);
    expect(p, "->");
    step->values[1] = parse_value(p);
    if (take(p, "at"))
        step->size = parse_size(p, DLC_I64);
}

static void parse_set(parser *p, dlc_step *step)
{
    step->symbol = parse_symbol(p);
    step->name = is_ok(p) ? p->module->symbols.data[step->symbol].name : "";
    expect(p, "=");
    step->size = parse_size(p, DLC_I64);
    if (is_ok(p))
        p->module->symbols.data[step->symbol].bind = DLC_BIND_OPAQUE;
}

static void parse_condition_of(parser *p, dlc_step *step)
{
    step->size = parse_size(p, DLC_BOOL);
}

static void parse_nothing(parser *p, dlc_step *step)
{
    (void)p, (void)step;
}

static void parse_nodes(parser *p, dlc_step *step)
{
    dlc_vec(const char *) nodes = {0};
    if (take(p, "from"))
        do {
            const char *name = dlc_lexer_name(&p->text.lex);
            dlc_vec_push(p->module->arena, &nodes, name);
        } while (take(p, ","));
    if (nodes.n || (step->kind != DLC_STEP_BIND && step->kind != DLC_STEP_SET))
        dlc_step_set_nodes(p->module, step, nodes.data, nodes.n);
}

static void parse_step(parser *p)
{
    static const struct {
        const char *text;
        void (*parse)(parser *p, dlc_step *step);
    } kinds[] = {{"launch", parse_launch}, {"opaque", parse_opaque}, {"bind", parse_bind},
                 {"copy", parse_copy},     {"set", parse_set},       {"if", parse_condition_of},
                 {"else", parse_nothing},  {"loop", parse_condition_of}, {"end", parse_nothing}};
    enum { NKINDS = sizeof kinds / sizeof *kinds };
    dlc_step step = {.symbol = DLC_NO_SYMBOL};
    while (step.kind < NKINDS && !take(p, kinds[step.kind].text))
        step.kind++;
    if (step.kind == NKINDS) {
        dlc_lexer_fail(&p->text.lex, "found '%s'; launch, opaque, bind, copy, set, if, else, loop or end is due", p->text.lex.token.text);
        return;
    }
    kinds[step.kind].parse(p, &step);
    parse_nodes(p, &step);
    if (is_ok(p))
        dlc_vec_push(p->module->arena, &p->module->steps, step);
}

static void parse_place(parser *p)
{
    if (take(p, "arena")) {
        p->module->arena_bytes = parse_size(p, DLC_I64);
    } else if (take(p, "host")) {
        p->module->host_bytes = parse_size(p, DLC_I64);
    } else {
        uint32_t value = parse_value(p);
        expect(p, "at");
        dlc_expr offset = parse_size(p, DLC_I64);
        if (is_ok(p) && value != DLC_NO_VALUE)
            p->module->values.data[value].offset = offset;
    }
}

static void parse_places(parser *p)
{
    expect(p, "{");
    while (next_line(p))
        parse_place(p);
    if (is_ok(p) && (!p->module->arena_bytes || !p->module->host_bytes))
        dlc_lexer_fail(&p->text.lex, "places without the sizes of arena and host memory");
    dlc_lexer_skip_lines(&p->text.lex);
}

/* --- the whole --- */

/* Names of targets have dashes. */
static void parse_target(parser *p)
{
    dlc_lexer *lex = &p->text.lex;
    if (!is_ok(p))
        return;
    size_t n = strcspn(lex->token.start, " \t\n{");
    const char *name = dlc_arena_strndup(p->module->arena, lex->token.start, n);
    p->module->target = dlc_target_find(name);
    if (!p->module->target)
        dlc_lexer_fail(lex, "there is no target '%s'", name);
    else
        dlc_lexer_resume(lex, lex->token.start + n, lex->status);
}

static void parse_module(parser *p)
{
    dlc_lexer *lex = &p->text.lex;
    dlc_lexer_skip_lines(lex);
    expect(p, "module");
    p->module->name = parse_name(p, "@");
    expect(p, "for");
    parse_target(p);
    expect(p, "after");
    p->module->after = dlc_lexer_name(lex);
    expect(p, "{");
    while (next_line(p))
        parse_line(p);
    bind_symbols(p);
    find_wholes(p);
    dlc_lexer_skip_lines(lex);
    parse_kernels(p);
    expect(p, "steps");
    expect(p, "{");
    while (next_line(p))
        parse_step(p);
    dlc_lexer_skip_lines(lex);
    if (take(p, "places"))
        parse_places(p);
    if (is_ok(p) && lex->token.kind != DLC_TOKEN_END)
        dlc_lexer_fail(lex, "found '%s' behind the module", lex->token.text);
}

/* Stand-in data are within [-1, 1): where a kernel states less of a constant they are made as much smaller, by a power of two. */
static void shrink_stand_ins(dlc_module *module)
{
    for (uint32_t s = 0; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        const dlc_kernel *kernel = step->kind == DLC_STEP_LAUNCH ? module->kernels.data[step->kernel].kernel : NULL;
        for (uint32_t i = 0; kernel && i < step->nvalues && i < kernel->buffers.n; i++) {
            if (step->values[i] == DLC_NO_VALUE || !kernel->buffers.data[i].is_bounded)
                continue;
            dlc_module_value *value = &module->values.data[step->values[i]];
            value = value->origin != DLC_NO_VALUE ? &module->values.data[value->origin] : value;
            if (value->data.text_hash)
                dlc_tensor_limit(value->type.dtype, (void *)(uintptr_t)value->data.bytes, value->data.size_bytes, kernel->buffers.data[i].bound_log2);
        }
    }
}

dlc_status dlc_module_parse(const char *text, const char *file, dlc_arena *arena, dlc_diag *diag, dlc_module **result)
{
    parser p = {.text = {.lex = {.at = text, .file = file, .line_start = text, .line = 1, .is_dotted = 1, .arena = arena,
                                 .diag = diag},
                         .leaf = symbol_leaf,
                         .is_size = 1}};
    p.module = dlc_module_create(arena, NULL, file, "");
    p.text.pool = p.module->pool;
    p.text.ctx = &p;
    dlc_lexer_start(&p.text.lex);
    parse_module(&p);
    DLC_TRY(p.text.lex.status);
    *result = p.module;
    shrink_stand_ins(p.module);
    return dlc_module_verify(p.module, DLC_INVALID, diag);
}

/*
 * Kernels from text (docs/ir.md). Stages may be read before they are defined (recurrences), so a
 * first walk over the statements collects the stages with their axes and stated types, a second one
 * their values.
 */
#include "base/table.h"
#include "ir/expr/text.h"
#include "ir/kernel/kernel.h"

#include <stddef.h>
#include <string.h>

/* Rows of a list of the kernel, each with a name somewhere in it. */
typedef struct {
    const void *at;
    size_t row_bytes, name_at;
    uint32_t n;
} named_rows;

typedef struct {
    dlc_table places;
    uint32_t n; /* rows entered so far */
} known_names;

typedef struct {
    dlc_expr_parser text;
    dlc_kernel *kernel;
    known_names axes, symbols, buffers, stages;
    dlc_ids bound; /* by number - 1 */
} parser;

static int is_ok(const parser *p)
{
    return p->text.lex.status == DLC_OK;
}

/* --- names --- */

/* The first row of that name; rows that came since the last search are entered first. */
static uint32_t find(parser *p, known_names *known, named_rows rows, const char *name)
{
    for (int is_new; known->n < rows.n; known->n++) {
        const char *each;
        memcpy(&each, (const char *)rows.at + rows.row_bytes * known->n + rows.name_at, sizeof each);
        void **place = dlc_table_insert(&known->places, p->text.lex.arena, each, &is_new);
        if (is_new)
            *place = (void *)(uintptr_t)known->n;
    }
    void **place = dlc_table_find(&known->places, name);
    return place ? (uint32_t)(uintptr_t)*place : UINT32_MAX;
}

#define FIND(p, list, wanted)                                                                      \
    find(p, &(p)->list,                                                                            \
         (named_rows){(p)->kernel->list.data, sizeof *(p)->kernel->list.data,                      \
                      offsetof(__typeof__(*(p)->kernel->list.data), name), (p)->kernel->list.n},   \
         wanted)

static uint32_t find_axis(parser *p, const char *name)
{
    return FIND(p, axes, name);
}

static uint32_t find_symbol(parser *p, const char *name)
{
    return FIND(p, symbols, name);
}

static uint32_t find_buffer(parser *p, const char *name)
{
    return FIND(p, buffers, name);
}

static uint32_t find_stage(parser *p, const char *name)
{
    return FIND(p, stages, name);
}

static dlc_dtype parse_dtype(parser *p)
{
    const char *name = dlc_lexer_name(&p->text.lex);
    dlc_dtype dtype = dlc_dtype_find(name);
    if (dtype == DLC_NONE)
        dlc_lexer_fail(&p->text.lex, "'%s' is no element type", name);
    return dtype;
}

static uint32_t parse_axis(parser *p)
{
    const char *name = dlc_lexer_name(&p->text.lex);
    uint32_t axis = find_axis(p, name);
    if (axis == UINT32_MAX)
        dlc_lexer_fail(&p->text.lex, "'%s' is no axis of the kernel", name);
    return axis;
}

/* Names of axes up to `end`, which is taken. */
static void parse_axes_until(parser *p, const char *end, dlc_ids *ids)
{
    while (is_ok(p) && !dlc_lexer_is(&p->text.lex, end)) {
        if (ids->n)
            dlc_lexer_expect(&p->text.lex, ",");
        uint32_t axis = parse_axis(p);
        if (is_ok(p))
            dlc_vec_push(p->kernel->arena, ids, axis);
    }
    dlc_lexer_expect(&p->text.lex, end);
}

/* --- types --- */

/* --- atoms --- */

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
        dlc_lexer_fail(&p->text.lex, "'%s' is no axis, symbol, buffer or stage", l->name);
        return 0;
    }
    l->source = stage != UINT32_MAX ? DLC_STAGE_SOURCE(stage) : buffer;
    if (stage != UINT32_MAX && p->kernel->stages.data[stage].axes.n > DLC_MAX_RANK) {
        dlc_lexer_fail(&p->text.lex, "'%s' has more than %d axes", l->name, DLC_MAX_RANK);
        return 0;
    }
    l->type = dlc_source_type(p->kernel, l->source, l->flags & DLC_LOAD_SECOND);
    if (l->type.dtype == DLC_NONE)
        dlc_lexer_fail(&p->text.lex,
                       "'%s' is read before it is defined: state its type, as in %s[…]: f32 = …",
                       l->name, l->name);
    return is_ok(p);
}

static dlc_expr all_in_range(parser *p, const loaded *l, const dlc_expr *index)
{
    dlc_expr guard = 0;
    for (uint32_t i = 0; i < l->type.rank; i++)
        guard = dlc_and(p->text.pool, guard, dlc_in_range(p->text.pool, index[i], l->type.dims[i]));
    return guard;
}

/* [i, j if guard else value]; an else alone means "where every index lies in its dimension" unless
 * the load is checked */
static dlc_expr parse_indices(parser *p, loaded *l)
{
    dlc_expr index[DLC_MAX_RANK], guard = 0, otherwise = 0;
    uint32_t n = 0;
    dlc_lexer_expect(&p->text.lex, "[");
    while (is_ok(p) && !dlc_lexer_is(&p->text.lex, "]") && !dlc_lexer_is(&p->text.lex, "if") &&
           !dlc_lexer_is(&p->text.lex, "else")) {
        if (n)
            dlc_lexer_expect(&p->text.lex, ",");
        dlc_expr at = dlc_expr_parse_as(&p->text, DLC_I64);
        if (n == l->type.rank)
            dlc_lexer_fail(&p->text.lex, "'%s' takes %u indices", l->name, l->type.rank);
        else
            index[n++] = at;
    }
    if (is_ok(p) && n != l->type.rank)
        dlc_lexer_fail(&p->text.lex, "'%s' takes %u indices, not %u", l->name, l->type.rank, n);
    int is_guarded = dlc_lexer_take(&p->text.lex, "if");
    if (is_guarded)
        guard = dlc_expr_parse_as(&p->text, DLC_BOOL);
    if (dlc_lexer_take(&p->text.lex, "else")) {
        otherwise = dlc_expr_parse_as(&p->text, l->type.dtype);
        if (is_ok(p) && !is_guarded && !(l->flags & DLC_LOAD_CHECKED))
            guard = all_in_range(p, l, index);
    }
    dlc_lexer_expect(&p->text.lex, "]");
    if (!is_ok(p))
        return 0;
    return dlc_expr_load(p->text.pool, l->type.dtype, l->source, index, n, guard, otherwise,
                         l->flags);
}

static dlc_expr load_own_axes(parser *p, const loaded *l)
{
    if (!DLC_SOURCE_IS_STAGE(l->source)) {
        dlc_lexer_fail(&p->text.lex, "the buffer '%s' needs its indices, %s[…]", l->name, l->name);
        return 0;
    }
    const dlc_ids *axes = &p->kernel->stages.data[DLC_SOURCE_INDEX(l->source)].axes;
    dlc_expr index[DLC_MAX_RANK];
    for (uint32_t i = 0; i < axes->n; i++)
        index[i] = dlc_expr_axis(p->text.pool, axes->data[i]);
    return dlc_expr_load(p->text.pool, l->type.dtype, l->source, index, axes->n, 0, 0, l->flags);
}

static dlc_expr parse_load(parser *p)
{
    loaded l = {.name = dlc_lexer_name(&p->text.lex)};
    if (dlc_lexer_take(&p->text.lex, ".")) {
        if (dlc_lexer_int(&p->text.lex) != 1)
            dlc_lexer_fail(&p->text.lex, "'%s.1' is the second result of a stage", l.name);
        l.flags |= DLC_LOAD_SECOND;
    }
    if (dlc_lexer_take(&p->text.lex, "?"))
        l.flags |= DLC_LOAD_CHECKED;
    int has_indices = dlc_lexer_is(&p->text.lex, "[");
    if (!is_ok(p) || !find_source(p, &l))
        return 0;
    return has_indices ? parse_indices(p, &l) : load_own_axes(p, &l);
}

static dlc_expr parse_symbol(parser *p)
{
    const char *name = dlc_lexer_name(&p->text.lex);
    uint32_t symbol = find_symbol(p, name);
    if (symbol == UINT32_MAX)
        symbol = dlc_kernel_symbol_add(p->kernel, name, 0, INT32_MAX, 0);
    return dlc_expr_sym(p->text.pool, symbol);
}

static dlc_expr parse_bound(parser *p)
{
    dlc_lexer_expect(&p->text.lex, "$");
    int64_t number = dlc_lexer_int(&p->text.lex);
    if (is_ok(p) && (number < 1 || (uint64_t)number > p->bound.n))
        dlc_lexer_fail(&p->text.lex, "$%lld is not defined above", (long long)number);
    return is_ok(p) ? p->bound.data[number - 1] : 0;
}

static dlc_expr parse_leaf(dlc_expr_parser *text)
{
    parser *p = text->ctx;
    const char *name = text->lex.token.text;
    if (dlc_lexer_is(&text->lex, "$"))
        return parse_bound(p);
    if (text->is_size)
        return parse_symbol(p);
    int is_load = dlc_lexer_next_is(&text->lex, "[") || dlc_lexer_next_is(&text->lex, "?") ||
                  dlc_lexer_next_is(&text->lex, ".");
    uint32_t axis = find_axis(p, name), symbol = find_symbol(p, name);
    if (is_load || (axis == UINT32_MAX && symbol == UINT32_MAX))
        return parse_load(p);
    dlc_lexer_advance(&text->lex);
    return axis != UINT32_MAX ? dlc_expr_axis(text->pool, axis) : dlc_expr_sym(text->pool, symbol);
}

/* --- the head --- */

static dlc_expr parse_size(parser *p)
{
    p->text.is_size = 1;
    dlc_expr size = dlc_expr_parse_as(&p->text, DLC_I64);
    p->text.is_size = 0;
    return size;
}

static void parse_symbol_list(parser *p)
{
    if (!dlc_lexer_take(&p->text.lex, "<"))
        return;
    do {
        uint32_t i =
            dlc_kernel_symbol_add(p->kernel, dlc_lexer_name(&p->text.lex), 0, INT32_MAX, 0);
        dlc_kernel_symbol *symbol = &p->kernel->symbols.data[i];
        if (dlc_lexer_take(&p->text.lex, ":")) {
            symbol->lo = dlc_lexer_int(&p->text.lex);
            dlc_lexer_expect(&p->text.lex, "..");
            symbol->hi = dlc_lexer_int(&p->text.lex);
        }
        symbol->usual = dlc_lexer_take(&p->text.lex, "usual") ? dlc_lexer_int(&p->text.lex) : 0;
        if (is_ok(p) && symbol->lo > symbol->hi)
            dlc_lexer_fail(&p->text.lex, "the symbol '%s' has no values", symbol->name);
        if (is_ok(p) && symbol->usual && dlc_symbol_value(symbol->usual, symbol->lo, symbol->hi) != symbol->usual)
            dlc_lexer_fail(&p->text.lex, "the symbol '%s' is never its usual %lld", symbol->name, (long long)symbol->usual);
    } while (dlc_lexer_take(&p->text.lex, ","));
    dlc_lexer_expect(&p->text.lex, ">");
}

/* (N): 2^N, a power that an f32 can be. */
static int8_t parse_within(parser *p, uint8_t *is_bounded)
{
    enum { LEAST = -126, MOST = 127 };
    dlc_lexer_expect(&p->text.lex, "(");
    int64_t log2 = dlc_lexer_int(&p->text.lex);
    dlc_lexer_expect(&p->text.lex, ")");
    if (is_ok(p) && (log2 < LEAST || log2 > MOST))
        dlc_lexer_fail(&p->text.lex, "within(%lld): a number from %d to %d", (long long)log2, LEAST, MOST);
    *is_bounded = 1;
    return (int8_t)log2;
}

static void parse_buffer(parser *p, dlc_role role)
{
    const char *name = dlc_lexer_name(&p->text.lex);
    dlc_type type = {0};
    dlc_layout layout = {0};
    uint8_t is_part = 0, is_bounded = 0;
    int8_t bound_log2 = 0;
    dlc_lexer_expect(&p->text.lex, ":");
    type.dtype = parse_dtype(p);
    dlc_lexer_expect(&p->text.lex, "[");
    while (is_ok(p) && !dlc_lexer_is(&p->text.lex, "]")) {
        if (type.rank)
            dlc_lexer_expect(&p->text.lex, ",");
        dlc_expr dim = parse_size(p);
        if (type.rank == DLC_MAX_RANK)
            dlc_lexer_fail(&p->text.lex, "'%s' has more than %d dimensions", name, DLC_MAX_RANK);
        else
            type.dims[type.rank++] = dim;
    }
    dlc_lexer_expect(&p->text.lex, "]");
    while (dlc_lexer_take(&p->text.lex, "@")) {
        if (dlc_lexer_take(&p->text.lex, "const"))
            role = DLC_ROLE_CONST;
        else if (dlc_lexer_take(&p->text.lex, "out"))
            role = DLC_ROLE_OUT;
        else if (role == DLC_ROLE_OUT && dlc_lexer_take(&p->text.lex, "part"))
            is_part = 1;
        else if (role == DLC_ROLE_CONST && dlc_lexer_take(&p->text.lex, "within"))
            bound_log2 = parse_within(p, &is_bounded);
        else
            layout = dlc_layout_lex(&p->text.lex, type.rank);
    }
    if (is_ok(p) && find_buffer(p, name) != UINT32_MAX)
        dlc_lexer_fail(&p->text.lex, "there are two buffers '%s'", name);
    if (!is_ok(p))
        return;
    uint32_t buffer = dlc_kernel_buffer(p->kernel, name, &type, &layout, role);
    p->kernel->buffers.data[buffer].is_part = is_part;
    p->kernel->buffers.data[buffer].is_bounded = is_bounded;
    p->kernel->buffers.data[buffer].bound_log2 = bound_log2;
}

static void parse_buffers(parser *p, dlc_role role)
{
    dlc_lexer_expect(&p->text.lex, "(");
    for (int is_first = 1; is_ok(p) && !dlc_lexer_is(&p->text.lex, ")"); is_first = 0) {
        if (!is_first)
            dlc_lexer_expect(&p->text.lex, ",");
        parse_buffer(p, role);
    }
    dlc_lexer_expect(&p->text.lex, ")");
}

static void parse_axis_lines(parser *p)
{
    dlc_lexer_skip_lines(&p->text.lex);
    while (is_ok(p) && dlc_lexer_is(&p->text.lex, "axis") &&
           !dlc_lexer_next_is(&p->text.lex, "[")) {
        dlc_lexer_advance(&p->text.lex);
        do {
            const char *name = dlc_lexer_name(&p->text.lex);
            dlc_lexer_expect(&p->text.lex, "=");
            dlc_expr extent = parse_size(p);
            if (is_ok(p) && find_axis(p, name) != UINT32_MAX)
                dlc_lexer_fail(&p->text.lex, "there are two axes '%s'", name);
            if (is_ok(p))
                dlc_kernel_axis(p->kernel, name, extent);
        } while (dlc_lexer_take(&p->text.lex, ","));
        dlc_lexer_skip_lines(&p->text.lex);
    }
}

/* --- statements --- */

static void skip_statement(parser *p)
{
    while (p->text.lex.token.kind != DLC_TOKEN_LINE && p->text.lex.token.kind != DLC_TOKEN_END &&
           !dlc_lexer_is(&p->text.lex, "}"))
        dlc_lexer_advance(&p->text.lex);
    dlc_lexer_skip_lines(&p->text.lex);
}

static int at_end(const parser *p)
{
    return !is_ok(p) || dlc_lexer_is(&p->text.lex, "}") || p->text.lex.token.kind == DLC_TOKEN_END;
}

/* Name, axes and type of a stage. Without a stated type, which is returned, it is taken to be that
 * of the output so called. */
static dlc_dtype parse_stage_head(parser *p, dlc_stage *stage)
{
    dlc_dtype stated = DLC_NONE;
    stage->name = dlc_lexer_name(&p->text.lex);
    dlc_lexer_expect(&p->text.lex, "[");
    parse_axes_until(p, "]", &stage->axes);
    uint32_t buffer = find_buffer(p, stage->name);
    if (buffer != UINT32_MAX)
        stage->dtype[0] = p->kernel->buffers.data[buffer].type.dtype;
    if (dlc_lexer_take(&p->text.lex, ":"))
        stage->dtype[0] = stated = parse_dtype(p);
    return stated;
}

/* The first walk: all stages, in order. */
static void declare_stages(parser *p)
{
    const dlc_lexer start = p->text.lex;
    while (!at_end(p)) {
        if (!dlc_lexer_is(&p->text.lex, "$")) {
            dlc_stage head = {0};
            parse_stage_head(p, &head);
            if (is_ok(p) && find_stage(p, head.name) != UINT32_MAX)
                dlc_lexer_fail(&p->text.lex, "there are two stages '%s'", head.name);
            dlc_stage *stage = dlc_kernel_stage(p->kernel, head.name);
            stage->axes = head.axes;
            stage->dtype[0] = head.dtype[0];
        }
        skip_statement(p);
    }
    if (is_ok(p))
        p->text.lex = start;
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
    const dlc_lexer start = p->text.lex;
    int combine = DLC_REDUCE_NONE;
    for (int i = 1; i < DLC_REDUCE_COUNT; i++)
        if (dlc_lexer_is(&p->text.lex, dlc_reduces[i].text) && dlc_lexer_next_is(&p->text.lex, "("))
            combine = i;
    if (combine == DLC_REDUCE_NONE)
        return 0;
    dlc_lexer_advance(&p->text.lex);
    dlc_lexer_advance(&p->text.lex);
    dlc_ids axes = {0};
    int is_list = 1;
    while (is_list && !dlc_lexer_is(&p->text.lex, ")")) {
        if (axes.n && !dlc_lexer_take(&p->text.lex, ","))
            is_list = 0;
        uint32_t axis = p->text.lex.token.kind == DLC_TOKEN_WORD
                            ? find_axis(p, p->text.lex.token.text)
                            : UINT32_MAX;
        is_list &= axis != UINT32_MAX;
        dlc_vec_push(p->kernel->arena, &axes, axis);
        dlc_lexer_advance(&p->text.lex);
    }
    is_list = is_list && is_ok(p) && dlc_lexer_take(&p->text.lex, ")") &&
              starts_value(&p->text.lex.token);
    if (!is_list) {
        p->text.lex = start;
        return 0;
    }
    stage->combine = (uint8_t)combine;
    stage->reduce = axes;
    return 1;
}

static uint8_t parse_update(parser *p)
{
    const char *name = dlc_lexer_name(&p->text.lex);
    for (uint8_t i = DLC_UPDATE_SET; dlc_update_names[i]; i++)
        if (strcmp(dlc_update_names[i], name) == 0)
            return i;
    dlc_lexer_fail(&p->text.lex, "'%s' is no update (set sum prod min max)", name);
    return DLC_UPDATE_NONE;
}

/* -> y[i, j] update sum second; without an arrow a stage called like an output is stored there at
 * its axes */
static void parse_store(parser *p, dlc_stage *stage)
{
    int is_said = dlc_lexer_take(&p->text.lex, "->");
    const char *name = is_said ? dlc_lexer_name(&p->text.lex) : stage->name;
    stage->buffer = find_buffer(p, name);
    if (stage->buffer == UINT32_MAX) {
        stage->buffer = DLC_NO_BUFFER;
        if (is_said)
            dlc_lexer_fail(&p->text.lex, "'%s' is no buffer", name);
        return;
    }
    if (!is_said)
        for (uint32_t i = 0; i < stage->axes.n; i++)
            dlc_vec_push(p->kernel->arena, &stage->store,
                         dlc_expr_axis(p->text.pool, stage->axes.data[i]));
    if (!is_said)
        return;
    dlc_lexer_expect(&p->text.lex, "[");
    while (is_ok(p) && !dlc_lexer_is(&p->text.lex, "]")) {
        if (stage->store.n)
            dlc_lexer_expect(&p->text.lex, ",");
        dlc_expr at = dlc_expr_parse_as(&p->text, DLC_I64);
        dlc_vec_push(p->kernel->arena, &stage->store, at);
    }
    dlc_lexer_expect(&p->text.lex, "]");
    if (dlc_lexer_take(&p->text.lex, "update"))
        stage->update = parse_update(p);
    stage->second = (uint8_t)dlc_lexer_take(&p->text.lex, "second");
}

static void parse_stage(parser *p, dlc_stage *stage)
{
    dlc_stage head = {0};
    dlc_dtype stated = parse_stage_head(p, &head);
    dlc_lexer_expect(&p->text.lex, "=");
    if (!is_ok(p))
        return;
    parse_reduce(p, stage);
    stage->value[0] =
        stated ? dlc_expr_parse_as(&p->text, stated) : dlc_expr_parse(&p->text, stage->dtype[0]);
    if (dlc_reduces[stage->combine].naccs > 1) {
        dlc_lexer_expect(&p->text.lex, ",");
        stage->value[1] = dlc_expr_parse(&p->text, DLC_NONE);
    }
    if (!is_ok(p))
        return;
    for (uint32_t a = 0; a < dlc_reduces[stage->combine].naccs; a++)
        stage->dtype[a] = (dlc_dtype)dlc_node_of(p->text.pool, stage->value[a])->dtype;
    parse_store(p, stage);
}

static void parse_binding(parser *p)
{
    int64_t number = dlc_lexer_int(&p->text.lex);
    if (is_ok(p) && (uint64_t)number != p->bound.n + 1)
        dlc_lexer_fail(&p->text.lex, "$%lld is due, not $%lld", (long long)p->bound.n + 1,
                       (long long)number);
    dlc_lexer_expect(&p->text.lex, "=");
    dlc_expr value = dlc_expr_parse(&p->text, DLC_NONE);
    if (is_ok(p))
        dlc_vec_push(p->kernel->arena, &p->bound, value);
}

static void parse_statements(parser *p)
{
    for (uint32_t next = 0; !at_end(p);) {
        if (dlc_lexer_take(&p->text.lex, "$"))
            parse_binding(p);
        else
            parse_stage(p, &p->kernel->stages.data[next++]);
        if (is_ok(p) && p->text.lex.token.kind != DLC_TOKEN_LINE &&
            !dlc_lexer_is(&p->text.lex, "}"))
            dlc_lexer_fail(&p->text.lex, "found '%s' where a statement should end",
                           p->text.lex.token.text);
        dlc_lexer_skip_lines(&p->text.lex);
    }
}

static void parse_kernel(parser *p)
{
    dlc_lexer *lex = &p->text.lex;
    dlc_lexer_expect(lex, "kernel");
    dlc_lexer_expect(lex, "@");
    p->kernel = dlc_kernel_create(lex->arena, dlc_lexer_name(lex));
    p->text.pool = p->kernel->pool;
    parse_symbol_list(p);
    parse_buffers(p, DLC_ROLE_IN);
    dlc_lexer_expect(lex, "->");
    parse_buffers(p, DLC_ROLE_OUT);
    dlc_lexer_expect(lex, "{");
    parse_axis_lines(p);
    declare_stages(p);
    parse_statements(p);
    dlc_lexer_expect(lex, "}");
}

dlc_status dlc_kernel_parse(const char *text, dlc_arena *arena, dlc_diag *diag, dlc_kernel **result)
{
    parser p = {
        .text = {.lex = {.at = text, .line = 1, .arena = arena, .diag = diag}, .leaf = parse_leaf}};
    *result = NULL;
    p.text.ctx = &p;
    dlc_lexer_start(&p.text.lex);
    dlc_lexer_skip_lines(&p.text.lex);
    parse_kernel(&p);
    dlc_lexer_skip_lines(&p.text.lex);
    if (is_ok(&p) && p.text.lex.token.kind != DLC_TOKEN_END)
        dlc_lexer_fail(&p.text.lex, "found '%s' behind the kernel", p.text.lex.token.text);
    if (is_ok(&p))
        *result = p.kernel;
    return p.text.lex.status;
}

dlc_kernel *dlc_kernel_parse_inside(dlc_lexer *outer)
{
    parser p = {.text = {.leaf = parse_leaf}};
    p.text.ctx = &p;
    dlc_lexer_enter(outer, &p.text.lex);
    parse_kernel(&p);
    dlc_lexer_resume(outer, p.text.lex.token.start, p.text.lex.status);
    return is_ok(&p) ? p.kernel : NULL;
}

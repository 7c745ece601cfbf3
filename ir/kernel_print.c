/*
 * Kernels as text (docs/ir.md). Two things make print(parse(print(k))) = print(k): the form of an
 * expression does not depend on its pool's history, and everything is numbered by its place in the
 * text. A node that is large and used twice, or deeply nested, is bound to a name `$1` in front of
 * its stage, in order of first use, so that text grows with nodes, not with paths.
 */
#include "ir/kernel.h"
#include "ir/kernel_lex.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shared expressions smaller than this are repeated; nesting beyond this depth is cut (the parser
 * has a limit). */
enum { MIN_BOUND_SIZE = 12, MAX_NESTING = 64 };

typedef struct {
    const char *text; /* or NULL: an expression */
    dlc_expr expr;
    uint8_t strength; /* of the place the expression stands in */
    uint8_t is_body;  /* the definition of a bound expression: not its name */
} task;

typedef struct {
    const dlc_kernel *kernel; /* NULL: leaves by number */
    const dlc_pool *pool;
    dlc_arena *scratch;
    dlc_str *out;
    char **symbols, **axes, **buffers, **stages; /* printed names */
    uint32_t *bound; /* by node: 1 to be bound, 1 + number once it has one; or NULL */
    uint32_t nbound;
    dlc_vec(task) tasks;
} printer;

/* --- names --- */

static int is_word(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return 0;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return 0;
    return 1;
}

static void add_name(dlc_str *out, const char *name)
{
    if (is_word(name) && !dlc_word_is_reserved(name))
        dlc_str_add(out, name);
    else
        dlc_str_add_quoted(out, name);
}

static int is_taken(const char *name, char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

/* One name for each thing; all[] is symbols, buffers, axes, stages, one behind the other. */
static void make_names(printer *p, int names)
{
    const dlc_kernel *k = p->kernel;
    uint32_t n = k->symbols.n + k->buffers.n + k->axes.n + k->stages.n, at = 0;
    char **all = dlc_new_array(p->scratch, char *, n);
    p->symbols = all;
    p->buffers = p->symbols + k->symbols.n;
    p->axes = p->buffers + k->buffers.n;
    p->stages = p->axes + k->axes.n;
    for (; at < n; at++) {
        char **in = all + at;
        uint32_t i;
        const char *given, *letter, *own = NULL;
        if (in < p->buffers)
            i = at, given = k->symbols.data[i].name, letter = "n";
        else if (in < p->axes)
            i = (uint32_t)(in - p->buffers), given = k->buffers.data[i].name, letter = "b";
        else if (in < p->stages)
            i = (uint32_t)(in - p->axes), given = k->axes.data[i].name, letter = "a";
        else {
            const dlc_stage *stage = &k->stages.data[i = (uint32_t)(in - p->stages)];
            given = stage->name, letter = "t";
            own = stage->buffer == DLC_NO_BUFFER ? NULL : p->buffers[stage->buffer];
        }
        if (!names)
            given = dlc_arena_printf(p->scratch, "%s%u", letter, i);
        char *name = dlc_arena_strdup(p->scratch, given && *given ? given : letter);
        int is_own =
            own && strcmp(own, name) == 0 && !is_taken(name, p->stages, (uint32_t)(in - p->stages));
        for (uint32_t next = 1; !is_own && is_taken(name, all, at); next++)
            name = dlc_arena_printf(p->scratch, "%s_%u", given && *given ? given : letter, next);
        *in = name;
    }
}

static void add_leaf(printer *p, char *const *names, const char *letter, uint32_t i)
{
    if (p->kernel)
        add_name(p->out, names[i]);
    else
        dlc_str_printf(p->out, "%s%u", letter, i);
}

/* --- constants --- */

static void add_float(dlc_str *out, dlc_dtype dtype, double value)
{
    char text[40];
    if (value != value || value - value != 0) {
        dlc_str_add_double(out, value);
        return;
    }
    int most = dtype == DLC_F64 ? 17 : 9;
    for (int digits = 1; digits <= most; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (dlc_round_to(dtype, strtod(text, NULL)) == value)
            break;
    }
    dlc_str_add(out, text);
    if (!strpbrk(text, ".e"))
        dlc_str_add(out, ".0");
}

static void add_const(dlc_str *out, const dlc_expr_node *node)
{
    dlc_dtype dtype = (dlc_dtype)node->dtype;
    if (dtype == DLC_BOOL) {
        dlc_str_add(out, node->imm.i ? "true" : "false");
        return;
    }
    int is_typed = dtype != DLC_I64 && dtype != DLC_F32;
    if (is_typed)
        dlc_str_printf(out, "%s(", dlc_dtypes[dtype].text);
    if (dlc_is_float(dtype))
        add_float(out, dtype, node->imm.f);
    else if (dlc_is_unsigned(dtype))
        dlc_str_printf(out, "%llu", (unsigned long long)node->imm.i);
    else
        dlc_str_printf(out, "%lld", (long long)node->imm.i);
    if (is_typed)
        dlc_str_add(out, ")");
}

/* --- expressions --- */

static void say(printer *p, const char *text)
{
    task t = {.text = text};
    dlc_vec_push(p->scratch, &p->tasks, t);
}

static void print_at(printer *p, dlc_expr expr, uint8_t strength)
{
    task t = {.expr = expr, .strength = strength};
    dlc_vec_push(p->scratch, &p->tasks, t);
}

/* Tasks are pushed in reading order, then turned round: the stack is taken from its end. */
static void reverse_from(printer *p, uint32_t first)
{
    for (uint32_t i = first, j = p->tasks.n; i + 1 < j; i++) {
        task t = p->tasks.data[i];
        p->tasks.data[i] = p->tasks.data[--j];
        p->tasks.data[j] = t;
    }
}

static int is_own_axes(const printer *p, dlc_expr load)
{
    const dlc_expr_node *node = dlc_node_of(p->pool, load);
    if (!p->kernel || !DLC_SOURCE_IS_STAGE(node->imm.id) || node->flags ||
        dlc_load_guard(p->pool, load))
        return 0;
    const dlc_ids *axes = &p->kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)].axes;
    for (uint32_t i = 0; i < axes->n; i++) {
        const dlc_expr_node *index = dlc_node_of(p->pool, dlc_arg(p->pool, load, i));
        if (index->op != DLC_EXPR_AXIS || index->imm.id != axes->data[i])
            return 0;
    }
    return 1;
}

static void print_load(printer *p, dlc_expr load)
{
    const dlc_expr_node *node = dlc_node_of(p->pool, load);
    uint32_t rank = dlc_load_rank(p->pool, load), first = p->tasks.n;
    int is_stage = DLC_SOURCE_IS_STAGE(node->imm.id);
    add_leaf(p, is_stage ? p->stages : p->buffers, is_stage ? "t" : "b",
             DLC_SOURCE_INDEX(node->imm.id));
    if (is_own_axes(p, load))
        return;
    dlc_str_add(p->out, node->flags & DLC_LOAD_SECOND ? ".1" : "");
    dlc_str_add(p->out, node->flags & DLC_LOAD_CHECKED ? "?[" : "[");
    for (uint32_t i = 0; i < rank; i++) {
        say(p, i ? ", " : "");
        print_at(p, dlc_arg(p->pool, load, i), DLC_STRENGTH_ANY);
    }
    if (dlc_load_guard(p->pool, load)) {
        say(p, rank ? " if " : "if ");
        print_at(p, dlc_load_guard(p->pool, load), DLC_STRENGTH_ANY);
    }
    if (dlc_load_else(p->pool, load)) {
        say(p, " else ");
        print_at(p, dlc_load_else(p->pool, load), DLC_STRENGTH_ANY);
    }
    say(p, "]");
    reverse_from(p, first);
}

static void print_call(printer *p, const char *name, dlc_expr expr)
{
    uint32_t first = p->tasks.n;
    dlc_str_printf(p->out, "%s(", name);
    for (uint32_t i = 0; i < dlc_node_of(p->pool, expr)->nargs; i++) {
        say(p, i ? ", " : "");
        print_at(p, dlc_arg(p->pool, expr, i), DLC_STRENGTH_ANY);
    }
    say(p, ")");
    reverse_from(p, first);
}

static void print_conversion(printer *p, dlc_expr expr)
{
    const dlc_expr_node *node = dlc_node_of(p->pool, expr);
    const char *suffix = node->op == DLC_EXPR_CAST_SAT  ? ".sat"
                         : node->op == DLC_EXPR_BITCAST ? ".bits"
                                                        : "";
    print_call(p, dlc_arena_printf(p->scratch, "%s%s", dlc_dtypes[node->dtype].text, suffix), expr);
}

/* NULL: the node is printed otherwise. */
static const dlc_infix *infix_of(const printer *p, dlc_expr expr)
{
    const dlc_expr_node *node = dlc_node_of(p->pool, expr);
    for (const dlc_infix *infix = dlc_infixes; infix->text; infix++)
        if (infix->op == node->op && !infix->is_swapped)
            return infix->is_bool && node->dtype != DLC_BOOL ? NULL : infix;
    return NULL;
}

/* Of x * c with a negative c, or a negative constant: what is subtracted instead. False for others.
 */
static int print_subtracted(printer *p, dlc_expr term)
{
    const dlc_expr_node *node = dlc_node_of(p->pool, term);
    int64_t value;
    if (node->dtype != DLC_I64 || (p->bound && p->bound[term]))
        return 0;
    int is_product =
        node->op == DLC_EXPR_MUL && dlc_expr_is_int(p->pool, dlc_arg(p->pool, term, 1), &value);
    if ((!is_product && !dlc_expr_is_int(p->pool, term, &value)) || value >= 0 ||
        value == INT64_MIN)
        return 0;
    say(p, " - ");
    if (is_product)
        print_at(p, dlc_arg(p->pool, term, 0), DLC_STRENGTH_PRODUCT);
    if (!is_product || value != -1)
        say(p, dlc_arena_printf(p->scratch, "%s%lld", is_product ? " * " : "", (long long)-value));
    return 1;
}

static void print_infix(printer *p, const dlc_infix *infix, dlc_expr expr, uint8_t strength)
{
    uint32_t first = p->tasks.n;
    dlc_expr a = dlc_arg(p->pool, expr, 0), b = dlc_arg(p->pool, expr, 1);
    say(p, strength > infix->strength ? "(" : "");
    print_at(p, a, infix->strength + (infix->strength == DLC_STRENGTH_COMPARE));
    if (dlc_node_of(p->pool, expr)->op != DLC_EXPR_ADD || !print_subtracted(p, b)) {
        say(p, " ");
        say(p, infix->text);
        say(p, " ");
        print_at(p, b, infix->strength + 1);
    }
    say(p, strength > infix->strength ? ")" : "");
    reverse_from(p, first);
}

static void print_prefix(printer *p, const char *text, uint8_t own, dlc_expr expr, uint8_t strength)
{
    uint32_t first = p->tasks.n;
    say(p, strength > own ? "(" : "");
    say(p, text);
    print_at(p, dlc_arg(p->pool, expr, 0), own);
    say(p, strength > own ? ")" : "");
    reverse_from(p, first);
}

static void print_node(printer *p, task t)
{
    const dlc_expr_node *node = dlc_node_of(p->pool, t.expr);
    const dlc_infix *infix = infix_of(p, t.expr);
    if (infix) {
        print_infix(p, infix, t.expr, t.strength);
        return;
    }
    switch (node->op) {
    case DLC_EXPR_CONST:
        add_const(p->out, node);
        return;
    case DLC_EXPR_AXIS:
        add_leaf(p, p->axes, "a", node->imm.id);
        return;
    case DLC_EXPR_SYM:
        add_leaf(p, p->symbols, "n", node->imm.id);
        return;
    case DLC_EXPR_LOAD:
        print_load(p, t.expr);
        return;
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_SAT:
    case DLC_EXPR_BITCAST:
        print_conversion(p, t.expr);
        return;
    case DLC_EXPR_NEG:
        print_prefix(p, "-", DLC_STRENGTH_UNARY, t.expr, t.strength);
        return;
    case DLC_EXPR_NOT:
        if (node->dtype == DLC_BOOL) {
            print_prefix(p, "not ", DLC_STRENGTH_NOT, t.expr, t.strength);
            return;
        }
        break;
    default:
        break;
    }
    print_call(p, dlc_exprs[node->op].text, t.expr);
}

static void run_tasks(printer *p)
{
    while (p->tasks.n) {
        task t = p->tasks.data[--p->tasks.n];
        if (t.text)
            dlc_str_add(p->out, t.text);
        else if (!t.is_body && p->bound && p->bound[t.expr])
            dlc_str_printf(p->out, "$%u", p->bound[t.expr] - 1);
        else
            print_node(p, t);
    }
}

static void add_expr(printer *p, dlc_expr expr)
{
    print_at(p, expr, DLC_STRENGTH_ANY);
    run_tasks(p);
}

/* --- bound expressions --- */

/* Chooses them, by number of uses, size and depth of the text. */
static void choose_bound(printer *p, const uint8_t *marks, const uint32_t *uses)
{
    uint32_t n = p->pool->nodes.n;
    uint32_t *size = dlc_new_array(p->scratch, uint32_t, n),
             *depth = dlc_new_array(p->scratch, uint32_t, n);
    p->bound = dlc_new_array(p->scratch, uint32_t, n);
    for (dlc_expr id = 1; id < n; id++) {
        if (!marks[id])
            continue;
        size[id] = depth[id] = 1;
        for (uint32_t i = 0; i < dlc_node_of(p->pool, id)->nargs; i++) {
            dlc_expr arg = dlc_arg(p->pool, id, i);
            size[id] += p->bound[arg] ? 1 : size[arg];
            if (!p->bound[arg] && depth[arg] >= depth[id])
                depth[id] = depth[arg] + 1;
        }
        p->bound[id] = (uses[id] > 1 && size[id] >= MIN_BOUND_SIZE) || depth[id] >= MAX_NESTING;
    }
}

static void count_uses(const printer *p, dlc_expr root, uint8_t *marks, uint32_t *uses)
{
    if (root) {
        uses[root]++;
        dlc_expr_reach(p->pool, root, marks);
    }
}

static void find_bound(printer *p)
{
    const dlc_kernel *k = p->kernel;
    uint8_t *marks = dlc_new_array(p->scratch, uint8_t, p->pool->nodes.n);
    uint32_t *uses = dlc_new_array(p->scratch, uint32_t, p->pool->nodes.n);
    for (uint32_t s = 0; s < k->stages.n; s++) {
        const dlc_stage *stage = &k->stages.data[s];
        for (uint32_t a = 0; a < dlc_reduces[stage->combine].naccs; a++)
            count_uses(p, stage->value[a], marks, uses);
        for (uint32_t d = 0; d < stage->store.n; d++)
            count_uses(p, stage->store.data[d], marks, uses);
    }
    for (dlc_expr id = 1; id < p->pool->nodes.n; id++)
        for (uint32_t i = 0; marks[id] && i < dlc_node_of(p->pool, id)->nargs; i++)
            uses[dlc_arg(p->pool, id, i)]++;
    choose_bound(p, marks, uses);
}

static void print_binding(printer *p, dlc_expr expr)
{
    p->bound[expr] = 1 + ++p->nbound;
    dlc_str_printf(p->out, "  $%u = ", p->nbound);
    task t = {.expr = expr, .is_body = 1};
    dlc_vec_push(p->scratch, &p->tasks, t);
    run_tasks(p);
    dlc_str_add(p->out, "\n");
}

/* Definitions of the bound nodes beneath root that have none yet, operands first, in reading order.
 */
static void print_bindings(printer *p, dlc_expr root, uint8_t *seen)
{
    typedef struct {
        dlc_expr expr;
        uint32_t next;
    } visit;
    dlc_vec(visit) path = {0};
    dlc_vec_push(p->scratch, &path, ((visit){root, 0}));
    while (path.n) {
        visit *top = &path.data[path.n - 1];
        if (top->next == 0 && seen[top->expr]) {
            path.n--;
        } else if (top->next < dlc_node_of(p->pool, top->expr)->nargs) {
            seen[top->expr] = 1;
            dlc_expr arg = dlc_arg(p->pool, top->expr, top->next++);
            if (arg && !seen[arg])
                dlc_vec_push(p->scratch, &path, ((visit){arg, 0}));
        } else {
            seen[top->expr] = 1;
            dlc_expr expr = top->expr;
            path.n--;
            if (p->bound[expr])
                print_binding(p, expr);
        }
    }
}

/* --- the kernel --- */

static void print_symbols(printer *p)
{
    const dlc_kernel *k = p->kernel;
    for (uint32_t i = 0; i < k->symbols.n; i++) {
        const dlc_kernel_symbol *symbol = &k->symbols.data[i];
        dlc_str_add(p->out, i ? ", " : "<");
        add_name(p->out, p->symbols[i]);
        if (symbol->lo != 0 || symbol->hi != INT32_MAX)
            dlc_str_printf(p->out, ": %lld..%lld", (long long)symbol->lo, (long long)symbol->hi);
        if (symbol->divisor > 1)
            dlc_str_printf(p->out, " %% %lld", (long long)symbol->divisor);
    }
    dlc_str_add(p->out, k->symbols.n ? ">" : "");
}

static void print_layout(printer *p, const dlc_layout *layout)
{
    for (uint32_t i = 0; i < layout->nparts; i++) {
        dlc_str_printf(p->out, "%s%u", i ? "," : "@{", layout->part[i].dim);
        if (layout->part[i].inner || layout->part[i].block > 1)
            dlc_str_printf(p->out, "%c%d", layout->part[i].inner ? '%' : '/',
                           layout->part[i].block);
    }
    dlc_str_add(p->out, layout->nparts ? "}" : "");
}

static void print_buffer(printer *p, uint32_t b, const char *role)
{
    const dlc_buffer *buffer = &p->kernel->buffers.data[b];
    add_name(p->out, p->buffers[b]);
    dlc_str_printf(p->out, ": %s[", dlc_dtypes[buffer->type.dtype].text);
    for (uint32_t d = 0; d < buffer->type.rank; d++) {
        dlc_str_add(p->out, d ? "," : "");
        add_expr(p, buffer->type.dims[d]);
    }
    dlc_str_add(p->out, "]");
    print_layout(p, &buffer->layout);
    dlc_str_add(p->out, role);
}

/* Outputs stand behind the arrow when they come last, as they do in kernels made by lowering. */
static void print_buffers(printer *p)
{
    const dlc_kernel *k = p->kernel;
    uint32_t arrow = k->buffers.n;
    while (arrow && k->buffers.data[arrow - 1].role == DLC_ROLE_OUT)
        arrow--;
    dlc_str_add(p->out, "(");
    for (uint32_t b = 0; b < k->buffers.n; b++) {
        uint8_t role = k->buffers.data[b].role;
        dlc_str_add(p->out, b == arrow ? ") -> (" : b ? ", " : "");
        print_buffer(p, b,
                     role == DLC_ROLE_CONST              ? "@const"
                     : role == DLC_ROLE_OUT && b < arrow ? "@out"
                                                         : "");
    }
    dlc_str_add(p->out, arrow == k->buffers.n ? ") -> ()" : ")");
}

static void print_axes(printer *p)
{
    for (uint32_t a = 0; a < p->kernel->axes.n; a++) {
        dlc_str_add(p->out, a ? ", " : "  axis ");
        add_name(p->out, p->axes[a]);
        dlc_str_add(p->out, "=");
        add_expr(p, p->kernel->axes.data[a].extent);
    }
    dlc_str_add(p->out, p->kernel->axes.n ? "\n" : "");
}

static void print_ids(printer *p, const dlc_ids *ids)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        dlc_str_add(p->out, i ? "," : "");
        add_name(p->out, p->axes[ids->data[i]]);
    }
}

/* A stage called like its output stores there at its own axes without saying so. */
static int is_plain_store(const printer *p, const dlc_stage *stage, uint32_t s)
{
    if (stage->second || stage->update || stage->store.n != stage->axes.n ||
        strcmp(p->stages[s], p->buffers[stage->buffer]) != 0)
        return 0;
    for (uint32_t i = 0; i < stage->store.n; i++) {
        const dlc_expr_node *index = dlc_node_of(p->pool, stage->store.data[i]);
        if (index->op != DLC_EXPR_AXIS || index->imm.id != stage->axes.data[i])
            return 0;
    }
    return 1;
}

static void print_store(printer *p, const dlc_stage *stage, uint32_t s)
{
    if (stage->buffer == DLC_NO_BUFFER || is_plain_store(p, stage, s))
        return;
    dlc_str_add(p->out, " -> ");
    add_name(p->out, p->buffers[stage->buffer]);
    dlc_str_add(p->out, "[");
    for (uint32_t d = 0; d < stage->store.n; d++) {
        dlc_str_add(p->out, d ? ", " : "");
        add_expr(p, stage->store.data[d]);
    }
    dlc_str_add(p->out, "]");
    if (stage->update)
        dlc_str_printf(p->out, " update %s", dlc_update_names[stage->update]);
    dlc_str_add(p->out, stage->second ? " second" : "");
}

/* Whether stages up to s load s: its type must be said before its value. */
static int is_read_early(const printer *p, const uint64_t *uses, uint32_t s)
{
    uint32_t words = (p->kernel->stages.n + 63) / 64;
    for (uint32_t i = 0; i <= s; i++)
        if (uses[(size_t)i * words + s / 64] >> s % 64 & 1)
            return 1;
    return 0;
}

static void print_value(printer *p, const dlc_stage *stage)
{
    if (stage->combine != DLC_REDUCE_NONE) {
        dlc_str_printf(p->out, "%s(", dlc_reduces[stage->combine].text);
        print_ids(p, &stage->reduce);
        dlc_str_add(p->out, ") ");
    }
    /* a sign behind the axes would read as an operator */
    print_at(p, stage->value[0], DLC_STRENGTH_ANY);
    if (stage->combine == DLC_REDUCE_NONE) {
        run_tasks(p);
        return;
    }
    size_t start = p->out->n;
    run_tasks(p);
    if (p->out->data[start] == '-') {
        char *text = dlc_arena_strdup(p->scratch, p->out->data + start);
        p->out->n = start;
        p->out->data[start] = 0;
        dlc_str_printf(p->out, "(%s)", text);
    }
    if (dlc_reduces[stage->combine].naccs > 1) {
        dlc_str_add(p->out, ", ");
        add_expr(p, stage->value[1]);
    }
}

static void print_stage(printer *p, const uint64_t *uses, uint32_t s, uint8_t *seen)
{
    const dlc_stage *stage = &p->kernel->stages.data[s];
    int is_pair = dlc_reduces[stage->combine].naccs > 1;
    for (int a = 0; a <= is_pair; a++)
        print_bindings(p, stage->value[a], seen);
    for (uint32_t d = 0; d < stage->store.n; d++)
        print_bindings(p, stage->store.data[d], seen);
    dlc_str_add(p->out, "  ");
    add_name(p->out, p->stages[s]);
    dlc_str_add(p->out, "[");
    print_ids(p, &stage->axes);
    dlc_str_add(p->out, "]");
    if (is_read_early(p, uses, s))
        dlc_str_printf(p->out, ": %s", dlc_dtypes[stage->dtype[0]].text);
    dlc_str_add(p->out, " = ");
    print_value(p, stage);
    print_store(p, stage, s);
    dlc_str_add(p->out, "\n");
}

void dlc_kernel_print(const dlc_kernel *kernel, int names, dlc_str *out)
{
    dlc_arena *scratch = dlc_arena_create(0);
    printer p = {.kernel = kernel, .pool = kernel->pool, .scratch = scratch, .out = out};
    make_names(&p, names);
    dlc_str_add(out, "kernel @");
    add_name(out, names && *kernel->name ? kernel->name : "k");
    print_symbols(&p);
    print_buffers(&p);
    dlc_str_add(out, " {\n");
    print_axes(&p);
    const uint64_t *uses = dlc_kernel_uses(kernel, scratch);
    uint8_t *seen = dlc_new_array(scratch, uint8_t, kernel->pool->nodes.n);
    find_bound(&p);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        print_stage(&p, uses, s, seen);
    dlc_str_add(out, "}\n");
    dlc_arena_destroy(scratch);
}

void dlc_expr_print(const dlc_kernel *kernel, const dlc_pool *pool, dlc_expr expr, dlc_str *out)
{
    dlc_arena *scratch = dlc_arena_create(0);
    printer p = {.kernel = kernel, .pool = pool, .scratch = scratch, .out = out};
    if (kernel)
        make_names(&p, 1);
    add_expr(&p, expr);
    dlc_arena_destroy(scratch);
}

/*
 * Kernels as text (docs/ir.md). Two things make print(parse(print(k))) = print(k): the form of an
 * expression does not depend on its pool's history, and everything is numbered by its place in the
 * text. A node that is large and used twice, or deeply nested, is bound to a name `$1` in front of
 * its stage, in order of first use, so that text grows with nodes, not with paths.
 */
#include "ir/expr/text.h"
#include "ir/kernel/kernel.h"

#include <string.h>

/* Shared expressions smaller than this are repeated; nesting beyond this depth is cut (the parser
 * has a limit). */
enum { MIN_BOUND_SIZE = 12, MAX_NESTING = 64 };

typedef struct {
    dlc_expr_printer text;
    const dlc_kernel *kernel;
    const dlc_pool *pool;
    dlc_arena *scratch;
    dlc_str *out;
    dlc_kernel_names names;
    uint32_t *bound; /* by node: 1 to be bound, 1 + number once it has one */
    uint32_t nbound;
} printer;

/* --- names --- */

static int is_taken(const char *name, char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

/* Behind symbols and buffers come axes and stages, each with one name that nothing before it has. */
void dlc_kernel_names_make(const dlc_kernel *k, int names, dlc_arena *arena, dlc_kernel_names *result)
{
    uint32_t n = k->symbols.n + k->buffers.n + k->axes.n + k->stages.n, at = 0;
    char **all = dlc_new_array(arena, char *, n + 1);
    dlc_kernel_names *p = result;
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
            given = dlc_arena_printf(arena, "%s%u", letter, i);
        char *name = dlc_arena_strdup(arena, given && *given ? given : letter);
        int is_own =
            own && strcmp(own, name) == 0 && !is_taken(name, p->stages, (uint32_t)(in - p->stages));
        for (uint32_t next = 1; !is_own && is_taken(name, all, at); next++)
            name = dlc_arena_printf(arena, "%s_%u", given && *given ? given : letter, next);
        *in = name;
    }
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
    dlc_expr_add_body(&p->text, expr);
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
        dlc_name_print(p->names.symbols[i], 0, p->out);
        if (symbol->lo != 0 || symbol->hi != INT32_MAX)
            dlc_str_printf(p->out, ": %lld..%lld", (long long)symbol->lo, (long long)symbol->hi);
        if (symbol->usual)
            dlc_str_printf(p->out, " usual %lld", (long long)symbol->usual);
    }
    dlc_str_add(p->out, k->symbols.n ? ">" : "");
}

static void print_buffer(printer *p, uint32_t b, const char *role)
{
    const dlc_buffer *buffer = &p->kernel->buffers.data[b];
    dlc_name_print(p->names.buffers[b], 0, p->out);
    dlc_str_printf(p->out, ": %s[", dlc_dtypes[buffer->type.dtype].text);
    for (uint32_t d = 0; d < buffer->type.rank; d++) {
        dlc_str_add(p->out, d ? "," : "");
        dlc_expr_add(&p->text, buffer->type.dims[d]);
    }
    dlc_str_add(p->out, "]");
    dlc_layout_print(&buffer->layout, buffer->type.rank, p->out);
    dlc_str_add(p->out, role);
    dlc_str_add(p->out, buffer->is_part ? "@part" : "");
    if (buffer->is_bounded)
        dlc_str_printf(p->out, "@within(%d)", buffer->bound_log2);
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
        dlc_name_print(p->names.axes[a], 0, p->out);
        dlc_str_add(p->out, "=");
        dlc_expr_add(&p->text, p->kernel->axes.data[a].extent);
    }
    dlc_str_add(p->out, p->kernel->axes.n ? "\n" : "");
}

static void print_ids(printer *p, const dlc_ids *ids)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        dlc_str_add(p->out, i ? "," : "");
        dlc_name_print(p->names.axes[ids->data[i]], 0, p->out);
    }
}

/* A stage called like its output stores there at its own axes without saying so. */
static int is_plain_store(const printer *p, const dlc_stage *stage, uint32_t s)
{
    if (stage->second || stage->update || stage->store.n != stage->axes.n ||
        strcmp(p->names.stages[s], p->names.buffers[stage->buffer]) != 0)
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
    dlc_name_print(p->names.buffers[stage->buffer], 0, p->out);
    dlc_str_add(p->out, "[");
    for (uint32_t d = 0; d < stage->store.n; d++) {
        dlc_str_add(p->out, d ? ", " : "");
        dlc_expr_add(&p->text, stage->store.data[d]);
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
    size_t start = p->out->n;
    dlc_expr_add(&p->text, stage->value[0]);
    if (stage->combine == DLC_REDUCE_NONE)
        return;
    if (p->out->data[start] == '-') { /* a sign behind the axes would read as an operator */
        char *text = dlc_arena_strdup(p->scratch, p->out->data + start);
        p->out->n = start;
        p->out->data[start] = 0;
        dlc_str_printf(p->out, "(%s)", text);
    }
    if (dlc_reduces[stage->combine].naccs > 1) {
        dlc_str_add(p->out, ", ");
        dlc_expr_add(&p->text, stage->value[1]);
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
    dlc_name_print(p->names.stages[s], 0, p->out);
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

static const char *name_of(const dlc_expr_printer *text, const dlc_expr_node *leaf)
{
    const printer *p = text->ctx;
    if (leaf->op == DLC_EXPR_AXIS)
        return p->names.axes[leaf->imm.id];
    if (leaf->op == DLC_EXPR_SYM)
        return p->names.symbols[leaf->imm.id];
    uint32_t index = DLC_SOURCE_INDEX(leaf->imm.id);
    return DLC_SOURCE_IS_STAGE(leaf->imm.id) ? p->names.stages[index] : p->names.buffers[index];
}

static const dlc_ids *own_axes(const dlc_expr_printer *text, dlc_source source)
{
    const printer *p = text->ctx;
    return DLC_SOURCE_IS_STAGE(source) ? &p->kernel->stages.data[DLC_SOURCE_INDEX(source)].axes : NULL;
}

static void start(printer *p, const dlc_kernel *kernel, int names, dlc_str *out)
{
    *p = (printer){
        .kernel = kernel, .pool = kernel->pool, .scratch = dlc_arena_create(0), .out = out};
    p->text = (dlc_expr_printer){.pool = p->pool,
                                 .scratch = p->scratch,
                                 .out = out,
                                 .name = name_of,
                                 .ctx = p,
                                 .own_axes = own_axes};
    dlc_kernel_names_make(kernel, names, p->scratch, &p->names);
}

void dlc_kernel_print(const dlc_kernel *kernel, int names, dlc_str *out)
{
    printer p;
    start(&p, kernel, names, out);
    dlc_str_add(out, "kernel @");
    dlc_name_print(names && *kernel->name ? kernel->name : "k", 0, out);
    print_symbols(&p);
    print_buffers(&p);
    dlc_str_add(out, " {\n");
    print_axes(&p);
    const uint64_t *uses = dlc_kernel_uses(kernel, p.scratch);
    uint8_t *seen = dlc_new_array(p.scratch, uint8_t, kernel->pool->nodes.n);
    find_bound(&p);
    p.text.bound = p.bound;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        print_stage(&p, uses, s, seen);
    dlc_str_add(out, "}\n");
    dlc_arena_destroy(p.scratch);
}

void dlc_expr_print(const dlc_kernel *kernel, dlc_expr expr, dlc_str *out)
{
    printer p;
    start(&p, kernel, 1, out);
    dlc_expr_add(&p.text, expr);
    dlc_arena_destroy(p.scratch);
}

uint64_t dlc_kernel_hash(const dlc_kernel *kernel)
{
    dlc_str text = {0};
    dlc_kernel_print(kernel, 0, &text);
    uint64_t hash = dlc_hash(dlc_str_text(&text), text.n, 0);
    dlc_str_deinit(&text);
    return hash;
}

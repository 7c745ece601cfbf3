/*
 * Expressions as text (docs/ir.md): infix where the grammar has it, calls by the names of expr.def
 * for the rest. A stack of pieces instead of recursion, so depth is bounded by memory alone. The
 * form does not depend on the pool's history.
 */
#include "base/text.h"
#include "ir/expr/text.h"

#include <inttypes.h>
#include <string.h>

typedef dlc_expr_printer printer;

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
        dlc_text_print(text, sizeof text, "%.*g", digits, value);
        if (dlc_round_to(dtype, dlc_text_double(text, NULL)) == value)
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
    dlc_print_task t = {.text = text};
    dlc_vec_push(p->scratch, &p->tasks, t);
}

static void print_at(printer *p, dlc_expr expr, uint8_t strength)
{
    dlc_print_task t = {.expr = expr, .strength = strength};
    dlc_vec_push(p->scratch, &p->tasks, t);
}

/* Tasks are pushed in reading order, then turned round: the stack is taken from its end. */
static void reverse_from(printer *p, uint32_t first)
{
    for (uint32_t i = first, j = p->tasks.n; i + 1 < j; i++) {
        dlc_print_task t = p->tasks.data[i];
        p->tasks.data[i] = p->tasks.data[--j];
        p->tasks.data[j] = t;
    }
}

static int is_own_axes(const printer *p, dlc_expr load)
{
    const dlc_expr_node *node = dlc_node_of(p->pool, load);
    const dlc_ids *axes = p->own_axes ? p->own_axes(p, node->imm.id) : NULL;
    if (!axes || node->flags || dlc_load_guard(p->pool, load))
        return 0;
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
    dlc_name_print(p->name(p, node), p->is_dotted, p->out);
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
    const char *suffix = node->op == DLC_EXPR_CAST_SAT   ? ".sat"
                         : node->op == DLC_EXPR_CAST_FTZ ? ".ftz"
                         : node->op == DLC_EXPR_BITCAST  ? ".bits"
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

static void print_node(printer *p, dlc_print_task t)
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
    case DLC_EXPR_SYM:
        dlc_name_print(p->name(p, node), p->is_dotted, p->out);
        return;
    case DLC_EXPR_LOAD:
        print_load(p, t.expr);
        return;
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_SAT:
    case DLC_EXPR_CAST_FTZ:
    case DLC_EXPR_BITCAST:
        print_conversion(p, t.expr);
        return;
    case DLC_EXPR_NEG:
        print_prefix(p, "-", DLC_STRENGTH_UNARY, t.expr, t.strength);
        return;
    case DLC_EXPR_NOT:
        if (node->dtype == DLC_BOOL || t.strength > DLC_STRENGTH_NOT) { /* "not(a) - b" reads as "not (a - b)" */
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
        dlc_print_task t = p->tasks.data[--p->tasks.n];
        if (p->most && p->out->n > p->most) {
            dlc_str_add(p->out, "…");
            p->tasks.n = 0;
        } else if (t.text)
            dlc_str_add(p->out, t.text);
        else if (!t.is_body && p->bound && p->bound[t.expr])
            dlc_str_printf(p->out, "$%u", p->bound[t.expr] - 1);
        else
            print_node(p, t);
    }
}

void dlc_expr_add(printer *p, dlc_expr expr)
{
    print_at(p, expr, DLC_STRENGTH_ANY);
    run_tasks(p);
}

void dlc_expr_add_body(printer *p, dlc_expr expr)
{
    dlc_print_task t = {.expr = expr, .is_body = 1};
    dlc_vec_push(p->scratch, &p->tasks, t);
    run_tasks(p);
}

/* --- sizes --- */

static const char *symbol_name(const dlc_expr_printer *p, const dlc_expr_node *leaf)
{
    const dlc_sizes_text *sizes = p->ctx;
    return leaf->op == DLC_EXPR_SYM && leaf->imm.id < sizes->nsymbols
               ? sizes->name(sizes->ctx, leaf->imm.id)
               : "?";
}

/* What has shared parts may be longer written out than anything can hold. */
void dlc_sizes_print(const dlc_sizes_text *sizes, dlc_expr size, dlc_str *out)
{
    enum { MOST = 1 << 16 };
    int64_t value;
    if (dlc_expr_is_int(sizes->pool, size, &value) &&
        dlc_node_of(sizes->pool, size)->dtype == DLC_I64) { /* most are */
        dlc_str_printf(out, "%" PRId64, value);
        return;
    }
    printer p = {.pool = sizes->pool,
                 .scratch = dlc_arena_create(0),
                 .out = out,
                 .name = symbol_name,
                 .is_dotted = 1,
                 .most = out->n + (sizes->most ? sizes->most : MOST),
                 .ctx = sizes};
    dlc_expr_add(&p, size);
    dlc_arena_destroy(p.scratch);
}

void dlc_sizes_type_print(const dlc_sizes_text *sizes, const dlc_type *type, dlc_str *out)
{
    dlc_str_printf(out, "%s[", dlc_dtypes[type->dtype].text);
    for (uint8_t d = 0; d < type->rank; d++) {
        dlc_str_add(out, d ? "," : "");
        dlc_sizes_print(sizes, type->dims[d], out);
    }
    dlc_str_add(out, "]");
}

/*
 * A graph as text (grammar in docs/ir.md). The one idea: everything a pass or a message can depend
 * on is printed, so equal texts are equal graphs; only the bytes of large constants are replaced by
 * their hash.
 */
#include "base/text.h"
#include "ir/expr/text.h"
#include "ir/graph/region.h"

#include <inttypes.h>
#include <string.h>

/* %name, quoted unless it is letters, digits and . _ / */
static void print_name(const char *name, char sign, dlc_str *out)
{
    size_t n = 0;
    while (dlc_is_alnum(name[n]) || (name[n] && strchr("._/", name[n])))
        n++;
    dlc_str_addn(out, &sign, 1);
    if (n && !name[n])
        dlc_str_add(out, name);
    else
        dlc_str_add_quoted(out, name);
}

static void print_value(const dlc_graph *graph, const dlc_value *value, dlc_str *out)
{
    print_name(value->name, '%', out);
    dlc_str_add(out, ": ");
    dlc_type_print(graph, &value->type, out);
    dlc_layout_print(value->layout, value->type.rank, out);
}

/* --- dimensions --- */

static const char *symbol_name(const void *graph, uint32_t symbol)
{
    return ((const dlc_graph *)graph)->symbols.data[symbol].name;
}

static dlc_sizes_text sizes_of(const dlc_graph *graph)
{
    return (dlc_sizes_text){.pool = graph->pool, .name = symbol_name, .ctx = graph, .nsymbols = graph->symbols.n};
}

void dlc_dim_print(const dlc_graph *graph, dlc_expr dim, dlc_str *out)
{
    dlc_sizes_text sizes = sizes_of(graph);
    dlc_sizes_print(&sizes, dim, out);
}

void dlc_dim_print_brief(const dlc_graph *graph, dlc_expr dim, dlc_str *out)
{
    enum { BRIEF = 1024 };
    dlc_sizes_text sizes = sizes_of(graph);
    sizes.most = BRIEF;
    dlc_sizes_print(&sizes, dim, out);
}

void dlc_type_print(const dlc_graph *graph, const dlc_type *type, dlc_str *out)
{
    dlc_sizes_text sizes = sizes_of(graph);
    dlc_sizes_type_print(&sizes, type, out);
}

/* --- symbols and conditions --- */

/* Symbols that reading the inputs' types declares: dimensions of inputs, in that order, without
 * stated ranges. */
static int are_implied(const dlc_graph *graph)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const dlc_type *type = &graph->inputs.data[i]->type;
        for (uint8_t d = 0; d < type->rank && next < graph->symbols.n; d++) {
            const dlc_expr_node *node = dlc_node_of(graph->pool, type->dims[d]);
            const dlc_symbol *symbol = &graph->symbols.data[next];
            if (node->op == DLC_EXPR_SYM && node->imm.id == next &&
                symbol->bind == DLC_BIND_INPUT_DIM && symbol->value == graph->inputs.data[i] &&
                symbol->index == d && symbol->lo == 0 && symbol->hi == INT32_MAX && !symbol->usual)
                next++;
        }
    }
    return next == graph->symbols.n;
}

static void print_symbols(const dlc_graph *graph, dlc_str *out)
{
    static const char *const binds[] = {"dim", "data", "opaque", "result"};
    for (uint32_t s = 0; s < graph->symbols.n && !are_implied(graph); s++) {
        const dlc_symbol *symbol = &graph->symbols.data[s];
        dlc_str_add(out, "symbol ");
        dlc_name_print(symbol->name, 1, out);
        dlc_str_printf(out, " = %s(", binds[symbol->bind]);
        if (symbol->value)
            print_name(symbol->value->name, '%', out);
        else
            dlc_str_add(out, "_");
        dlc_str_printf(out, ", %" PRIu32 ") in %" PRId64 "..%" PRId64, symbol->index, symbol->lo, symbol->hi);
        if (symbol->usual)
            dlc_str_printf(out, " usual %" PRId64, symbol->usual);
        dlc_str_add(out, "\n");
    }
}

static void print_conditions(const dlc_graph *graph, dlc_str *out)
{
    for (uint32_t c = 0; c < graph->conditions.n; c++) {
        dlc_str_add(out, "  require ");
        dlc_dim_print(graph, graph->conditions.data[c].holds, out);
        dlc_str_add(out, " ");
        dlc_str_add_quoted(out, graph->conditions.data[c].text);
        dlc_str_add(out, "\n");
    }
}

/* --- nodes --- */

static void print_list(const dlc_graph *graph, const dlc_attr *attr, dlc_str *out)
{
    dlc_str_add(out, "[");
    for (uint32_t i = 0; i < attr->n; i++) {
        dlc_str_add(out, i ? ", " : "");
        if (dlc_attrs[attr->id].kind == DLC_ATTR_KIND_DIMS)
            dlc_dim_print(graph, attr->as.dims[i], out);
        else
            dlc_str_add_double(out, attr->as.floats[i]);
    }
    dlc_str_add(out, "]");
}

static void print_attr(const dlc_graph *graph, const dlc_attr *attr, dlc_str *out)
{
    dlc_str_printf(out, "%s=", dlc_attrs[attr->id].text);
    switch ((dlc_attr_kind)dlc_attrs[attr->id].kind) {
    case DLC_ATTR_KIND_INT:
        if (attr->id == DLC_ATTR_DTYPE)
            dlc_str_add(out, dlc_dtypes[attr->as.i].text);
        else
            dlc_str_printf(out, "%" PRId64, attr->as.i);
        break;
    case DLC_ATTR_KIND_FLOAT:
        dlc_str_add_double(out, attr->as.f);
        break;
    case DLC_ATTR_KIND_TEXT:
        dlc_str_add_quoted(out, attr->as.text);
        break;
    case DLC_ATTR_KIND_DIMS:
    case DLC_ATTR_KIND_FLOATS:
        print_list(graph, attr, out);
        break;
    }
}

static void print_operands(const dlc_graph *graph, const dlc_node *node, dlc_str *out)
{
    dlc_str_add(out, dlc_ops[node->op].text);
    for (uint32_t i = 0; i < node->ninputs; i++) {
        dlc_str_add(out, i ? ", " : " ");
        if (node->inputs[i])
            print_name(node->inputs[i]->name, '%', out);
        else
            dlc_str_add(out, "_");
    }
    for (uint32_t a = 0; a < node->nattrs; a++) {
        dlc_str_add(out, a ? ", " : " {");
        print_attr(graph, &node->attrs[a], out);
    }
    dlc_str_add(out, node->nattrs ? "}" : "");
}

static void print_node(const dlc_graph *graph, const dlc_node *node, int is_whole, dlc_str *out)
{
    for (const dlc_node *region = node->region; region; region = region->region)
        dlc_str_add(out, "  ");
    for (uint32_t o = 0; o < node->noutputs; o++) {
        dlc_str_add(out, o ? ", " : "  ");
        print_value(graph, node->outputs[o], out);
    }
    dlc_str_add(out, " = ");
    if (node->op == DLC_OP_CONSTANT) {
        dlc_str_add(out, "const ");
        (is_whole ? dlc_tensor_print_whole : dlc_tensor_print)(node->outputs[0]->data, node->outputs[0]->type.dtype, out);
    } else {
        print_operands(graph, node, out);
    }
    dlc_str_add(out, "\n");
}

static void print_outputs(const dlc_graph *graph, dlc_str *out)
{
    for (uint32_t o = 0; o < graph->outputs.n; o++) {
        const dlc_output_value *output = &graph->outputs.data[o];
        dlc_str_add(out, o ? ", " : " -> ");
        print_name(output->value->name, '%', out);
        if (strcmp(output->name, output->value->name) != 0) {
            dlc_str_add(out, " as ");
            print_name(output->name, '%', out);
        }
    }
}

static void print_strings(const dlc_strings *strings, dlc_str *out)
{
    for (int64_t i = 1; i < dlc_strings_count(strings); i++) {
        dlc_str_add(out, "string ");
        dlc_str_add_quoted(out, dlc_strings_at(strings, i));
        dlc_str_add(out, "\n");
    }
}

static void print_graph(const dlc_graph *graph, int is_whole, dlc_str *out)
{
    print_strings(&graph->strings, out);
    print_symbols(graph, out);
    dlc_str_add(out, "graph ");
    print_name(graph->name, '@', out);
    dlc_str_add(out, "(");
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        dlc_str_add(out, i ? ", " : "");
        print_value(graph, graph->inputs.data[i], out);
    }
    dlc_str_add(out, ")");
    print_outputs(graph, out);
    dlc_str_add(out, " {\n");
    print_conditions(graph, out);
    for (const dlc_node *node = graph->first; node; node = node->next)
        print_node(graph, node, is_whole, out);
    dlc_str_add(out, "}\n");
}

void dlc_graph_print(const dlc_graph *graph, dlc_str *out)
{
    print_graph(graph, 0, out);
}

void dlc_graph_print_whole(const dlc_graph *graph, dlc_str *out)
{
    print_graph(graph, 1, out);
}

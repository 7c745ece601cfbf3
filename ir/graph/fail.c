/*
 * Messages that name nodes. The one idea: a message's place is written here and nowhere else, so
 * every complaint about a node has the same form and shows the inputs it is about.
 */
#include "ir/graph/op.h"

#include <inttypes.h>

enum { NAME_BYTES = 200, SHOWN_INPUTS = 16 };

/* --- places --- */

/* Names are data of the model: in quotes, control bytes as \xNN, cut when absurdly long. */
static void add_name(dlc_str *out, const char *name)
{
    dlc_str_add(out, "'");
    for (uint32_t i = 0; name[i]; i++) {
        unsigned char c = (unsigned char)name[i];
        if (i == NAME_BYTES) {
            dlc_str_add(out, "...");
            break;
        }
        if (c < 0x20 || c == 0x7f || c == '\\' || c == '\'')
            dlc_str_printf(out, "\\x%02x", c);
        else
            dlc_str_addn(out, name + i, 1);
    }
    dlc_str_add(out, "'");
}

static void add_origin(dlc_str *out, const dlc_origin *origin)
{
    dlc_str_add(out, "node ");
    add_name(out, origin->name ? origin->name : "");
    dlc_str_add(out, " (");
    if (origin->domain && *origin->domain)
        dlc_str_printf(out, "%.*s.", NAME_BYTES, origin->domain);
    dlc_str_printf(out, "%.*s, opset %" PRId64 ")", NAME_BYTES,
                   origin->op_type ? origin->op_type : "?", origin->opset);
}

static void add_node(dlc_str *out, const dlc_node *node)
{
    const dlc_value *named = node->noutputs ? node->outputs[0] : NULL;
    dlc_str_add(out, "node ");
    add_name(out, named && named->name ? named->name : "");
    dlc_str_printf(out, " (%s)", dlc_ops[node->op].text);
}

static void start_place(const dlc_graph *graph, dlc_str *out)
{
    if (graph->file && *graph->file)
        dlc_str_printf(out, "%s: ", graph->file);
}

/* "    input 0  'relu_4'        f32[1,64,56,56]", names padded to one column. */
static void add_inputs(dlc_graph *graph, const dlc_node *node)
{
    dlc_str name = {0}, text = {0};
    size_t column = 0;
    for (uint32_t i = 0; i < node->ninputs && i < SHOWN_INPUTS; i++) {
        name.n = 0;
        add_name(&name, node->inputs[i] ? node->inputs[i]->name : "");
        column = name.n > column && name.n <= 40 ? name.n : column;
    }
    for (uint32_t i = 0; i < node->ninputs && i < SHOWN_INPUTS; i++) {
        const dlc_value *input = node->inputs[i];
        name.n = text.n = 0;
        add_name(&name, input ? input->name : "");
        dlc_str_printf(&text, "    input %" PRIu32 "  %-*s  ", i, (int)column, dlc_str_text(&name));
        if (input)
            dlc_type_print(graph, &input->type, &text);
        else
            dlc_str_add(&text, "absent");
        dlc_diag_detail(graph->diag, "%s", dlc_str_text(&text));
    }
    if (node->ninputs > SHOWN_INPUTS)
        dlc_diag_detail(graph->diag, "    and %" PRIu32 " more", node->ninputs - SHOWN_INPUTS);
    dlc_str_deinit(&name);
    dlc_str_deinit(&text);
}

dlc_status dlc_fail(dlc_graph *graph, const dlc_node *node, dlc_status status, const char *format,
                    ...)
{
    dlc_str place = {0};
    start_place(graph, &place);
    if (node->origin)
        add_origin(&place, node->origin);
    else
        add_node(&place, node);
    va_list args;
    va_start(args, format);
    dlc_diag_vfail(graph->diag, status, dlc_str_text(&place), format, args);
    va_end(args);
    dlc_str_deinit(&place);
    add_inputs(graph, node);
    return status;
}

dlc_status dlc_fail_origin(dlc_graph *graph, const dlc_origin *origin, dlc_status status,
                           const char *format, ...)
{
    dlc_str place = {0};
    start_place(graph, &place);
    if (origin)
        add_origin(&place, origin);
    va_list args;
    va_start(args, format);
    dlc_diag_vfail(graph->diag, status, dlc_str_text(&place), format, args);
    va_end(args);
    dlc_str_deinit(&place);
    return status;
}

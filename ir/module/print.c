/*
 * Modules as text (docs/ir.md): a line per symbol, condition and value; then kernels, each with its schedule; then the steps and
 * places. Everything a later pass can depend on is printed, so equal texts are equal modules; only the bytes of large constants
 * are replaced by their hash.
 */
#include "ir/module/text.h"

#include "dlc/abi.h"

#include <inttypes.h>
#include <string.h>

const char *const dlc_value_role_names[] = {"temp", "input", "output", "const", "host", NULL};

static void print_name(char sign, const char *name, dlc_str *out)
{
    dlc_str_addn(out, &sign, 1);
    dlc_name_print(name, 1, out);
}

static void print_value(const dlc_module *module, uint32_t value, dlc_str *out)
{
    if (value == DLC_NO_VALUE)
        dlc_str_add(out, "_");
    else
        print_name('%', module->values.data[value].name, out);
}

/* --- the head --- */

static void print_symbols(const dlc_module *module, dlc_str *out)
{
    for (uint32_t s = 0; s < module->symbols.n; s++) {
        const dlc_module_symbol *symbol = &module->symbols.data[s];
        dlc_str_add(out, "  symbol ");
        dlc_name_print(symbol->name, 1, out);
        if (symbol->bind == DLC_BIND_INPUT_DIM) {
            dlc_str_add(out, " = dim(");
            print_value(module, module->inputs.data[symbol->input], out);
            dlc_str_printf(out, ", %" PRIu32 ")", symbol->index);
        }
        dlc_str_printf(out, " in %" PRId64 "..%" PRId64, symbol->lo, symbol->hi);
        if (symbol->usual)
            dlc_str_printf(out, " usual %" PRId64, symbol->usual);
        dlc_str_add(out, "\n");
    }
    for (uint32_t c = 0; c < module->conditions.n; c++) {
        dlc_str_add(out, "  require ");
        dlc_module_size_print(module, module->conditions.data[c].holds, out);
        dlc_str_add(out, " ");
        dlc_str_add_quoted(out, module->conditions.data[c].text);
        dlc_str_add(out, "\n");
    }
}

static void print_strings(const dlc_strings *strings, dlc_str *out)
{
    for (int64_t i = 1; i < dlc_strings_count(strings); i++) {
        dlc_str_add(out, "  string ");
        dlc_str_add_quoted(out, dlc_strings_at(strings, i));
        dlc_str_add(out, "\n");
    }
}

static void print_declaration(const dlc_module *module, uint32_t v, dlc_str *out)
{
    const dlc_module_value *value = &module->values.data[v];
    dlc_str_printf(out, "  %s ", dlc_value_role_names[value->role]);
    print_value(module, v, out);
    dlc_str_add(out, ": ");
    dlc_module_type_print(module, &value->type, out);
    dlc_layout_print(&value->layout, value->type.rank, out);
    if (value->role == DLC_VALUE_OUTPUT && strcmp(value->name, module->outputs.data[value->index].name) != 0) {
        dlc_str_add(out, " as ");
        print_name('%', module->outputs.data[value->index].name, out);
    }
    if (value->skip) {
        dlc_str_add(out, " in ");
        print_value(module, value->whole, out);
        dlc_str_add(out, " at ");
        dlc_module_size_print(module, value->skip, out);
    }
    if (value->origin != DLC_NO_VALUE) {
        dlc_str_add(out, " of ");
        print_value(module, value->origin, out);
    }
    if (value->role == DLC_VALUE_CONST && value->origin == DLC_NO_VALUE) { /* a form's bytes follow from its origin's */
        dlc_str_add(out, " = ");
        dlc_tensor_print(&value->data, value->type.dtype, out);
    }
    dlc_str_add(out, "\n");
}

/* --- steps --- */

/* Values [first, end) in parentheses. */
static void print_values(const dlc_module *module, const dlc_step *step, uint32_t first, uint32_t end, dlc_str *out)
{
    dlc_str_add(out, "(");
    for (uint32_t i = first; i < end; i++) {
        dlc_str_add(out, i > first ? ", " : "");
        print_value(module, step->values[i], out);
    }
    dlc_str_add(out, ")");
}

/* What is written stands behind the arrow when it comes last, as it does in steps made by lowering. */
static void print_operands(const dlc_module *module, const dlc_step *step, dlc_str *out)
{
    uint32_t arrow = step->nvalues;
    while (arrow && dlc_step_writes(module, step, arrow - 1))
        arrow--;
    dlc_str_add(out, " ");
    print_values(module, step, 0, arrow, out);
    dlc_str_add(out, " -> ");
    print_values(module, step, arrow, step->nvalues, out);
}

static void print_launch(const dlc_module *module, const dlc_step *step, dlc_str *out)
{
    dlc_str_printf(out, " %" PRIu32, step->kernel);
    print_operands(module, step, out);
    for (uint32_t s = 0; s < step->nsymbols; s++) {
        dlc_str_add(out, s ? ", " : " sizes (");
        dlc_module_size_print(module, step->symbols[s], out);
    }
    dlc_str_add(out, step->nsymbols ? ")" : "");
}

static void print_opaque(const dlc_module *module, const dlc_step *step, dlc_str *out)
{
    const char *names = dlc_opaque_rows[step->opaque].names;
    dlc_str_printf(out, " %s", dlc_opaque_rows[step->opaque].text);
    print_operands(module, step, out);
    for (uint32_t i = 0; i < step->nattrs; i++) {
        size_t n = strcspn(names, " ");
        dlc_str_printf(out, "%s%.*s=%" PRId64, i ? ", " : " {", (int)n, names, step->attrs[i]);
        names += n + (names[n] == ' ');
    }
    dlc_str_add(out, step->nattrs ? "}" : "");
    if (step->symbol == DLC_NO_SYMBOL)
        return;
    dlc_str_add(out, " binds ");
    dlc_name_print(module->symbols.data[step->symbol].name, 1, out);
}

static void print_step(const dlc_module *module, const dlc_step *step, dlc_str *out)
{
    static const char *const kinds[] = {"launch", "opaque", "bind", "copy", "set", "if", "else", "loop", "end"};
    dlc_str_printf(out, "  %s", kinds[step->kind]);
    switch ((dlc_step_kind)step->kind) {
    case DLC_STEP_LAUNCH:
        print_launch(module, step, out);
        break;
    case DLC_STEP_OPAQUE:
        print_opaque(module, step, out);
        break;
    case DLC_STEP_BIND:
        dlc_str_add(out, " ");
        dlc_name_print(module->symbols.data[step->symbol].name, 1, out);
        dlc_str_add(out, " = ");
        print_value(module, step->values[0], out);
        dlc_str_printf(out, "[%" PRId64 "]", step->attrs[0]);
        break;
    case DLC_STEP_COPY:
        dlc_str_add(out, " ");
        print_value(module, step->values[0], out);
        dlc_str_add(out, " -> ");
        print_value(module, step->values[1], out);
        if (step->size)
            dlc_str_add(out, " at ");
        break;
    case DLC_STEP_SET:
        dlc_str_add(out, " ");
        dlc_name_print(module->symbols.data[step->symbol].name, 1, out);
        dlc_str_add(out, " = ");
        break;
    case DLC_STEP_IF:
    case DLC_STEP_LOOP:
        dlc_str_add(out, " ");
        break;
    case DLC_STEP_ELSE:
    case DLC_STEP_END:
        break;
    }
    if (step->size)
        dlc_module_size_print(module, step->size, out);
    for (uint32_t n = 0; n < step->nnodes; n++) {
        dlc_str_add(out, n ? ", " : " from ");
        dlc_str_add_quoted(out, step->nodes[n]);
    }
    dlc_str_add(out, "\n");
}

static void print_places(const dlc_module *module, dlc_str *out)
{
    dlc_str_add(out, "\nplaces {\n  arena ");
    dlc_module_size_print(module, module->arena_bytes, out);
    dlc_str_add(out, "\n  host ");
    dlc_module_size_print(module, module->host_bytes, out);
    dlc_str_add(out, "\n");
    for (uint32_t v = 0; v < module->values.n; v++) {
        if (!module->values.data[v].offset)
            continue;
        dlc_str_add(out, "  ");
        print_value(module, v, out);
        dlc_str_add(out, " at ");
        dlc_module_size_print(module, module->values.data[v].offset, out);
        dlc_str_add(out, "\n");
    }
    dlc_str_add(out, "}\n");
}

void dlc_module_print(const dlc_module *module, dlc_str *out)
{
    dlc_str_add(out, "module ");
    print_name('@', module->name, out);
    dlc_str_printf(out, " for %s after %s {\n", module->target->name, module->after);
    print_strings(&module->strings, out);
    print_symbols(module, out);
    for (uint32_t v = 0; v < module->values.n; v++)
        print_declaration(module, v, out);
    dlc_str_add(out, "}\n");
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        dlc_str_printf(out, "\n# kernel %" PRIu32 "\n", k);
        dlc_kernel_print(module->kernels.data[k].kernel, 1, out);
        if (module->kernels.data[k].schedule)
            dlc_schedule_print(module->kernels.data[k].schedule, out);
    }
    dlc_str_add(out, "\nsteps {\n");
    for (uint32_t s = 0; s < module->steps.n; s++)
        print_step(module, &module->steps.data[s], out);
    dlc_str_add(out, "}\n");
    if (module->arena_bytes)
        print_places(module, out);
}

/*
 * The generated header: C types for one model's inputs and outputs over the generic runtime
 * interface. Names of the model are data: they appear as C identifiers of our own making (letters,
 * digits, '_', unique), and as comments without '*'.
 */
#include "package/header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

typedef struct {
    const dlc_module *module;
    const char *name;
    dlc_str *out;
    dlc_arena *arena;
    dlc_vec(const char *) taken;
    const char **inputs, **outputs, **symbols; /* identifiers */
} printer;

static const dlc_module_value *input_of(const printer *p, uint32_t i)
{
    return &p->module->values.data[p->module->inputs.data[i]];
}

static const dlc_module_value *output_of(const printer *p, uint32_t i)
{
    return &p->module->values.data[p->module->outputs.data[i].value];
}

/* Words of C and C++, macros of common headers, and what the functions below use. */
static const char reserved[] =
    " alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char class"
    " co_await co_return co_yield compl complex concept const const_cast consteval constexpr"
    " constinit context continue decltype default delete do double dynamic_cast else enum EOF"
    " errno explicit export extern false float for friend goto I i386 if in inline int linux"
    " long memset mutable namespace new noexcept not not_eq NULL nullptr operator or or_eq out"
    " private protected public register reinterpret_cast requires restrict return short signed"
    " sizeof static static_assert static_cast status stderr stdin stdout struct switch template"
    " this thread_local throw true try typedef typeid typename typeof typeof_unqual union unix"
    " unsigned using virtual void volatile while xor xor_eq"
    " ";

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static int is_reserved(const char *name)
{
    char word[64]; /* identifiers are shorter */
    snprintf(word, sizeof word, " %s ", name);
    return strstr(reserved, word) || ends_with(name, "_t") || ends_with(name, "_MIN") ||
           ends_with(name, "_MAX");
}

static int is_taken(const printer *p, const char *name)
{
    for (uint32_t i = 0; i < p->taken.n; i++)
        if (!strcmp(p->taken.data[i], name))
            return 1;
    return is_reserved(name);
}

/* `name` as an identifier nobody has yet. */
static const char *identifier(printer *p, const char *name)
{
    enum { MAX_CHARS = 40 };
    char *base =
        dlc_arena_strndup(p->arena, name, strlen(name) < MAX_CHARS ? strlen(name) : MAX_CHARS);
    for (char *c = base; *c; c++)
        if (!dlc_is_alnum(*c))
            *c = '_';
    int is_ours = !strncmp(base, "dlc", 3) || !strncmp(base, "DLC", 3);
    if (!*base || dlc_is_digit(*base) || *base == '_' || is_ours)
        base = dlc_arena_printf(p->arena, "v%s", base);
    const char *result = base;
    for (unsigned n = 2; is_taken(p, result); n++)
        result = dlc_arena_printf(p->arena, "%s_%u", base, n);
    dlc_vec_push(p->arena, &p->taken, result);
    return result;
}

static void add_comment(printer *p, const char *text)
{
    for (; *text; text++)
        dlc_str_printf(p->out, "%c",
                       dlc_is_print(*text) && *text != '*' && *text != '\\' ? *text : '?');
}

static void choose_names(printer *p)
{
    p->inputs = dlc_new_array(p->arena, const char *, p->module->inputs.n + 1u);
    p->outputs = dlc_new_array(p->arena, const char *, p->module->outputs.n + 1u);
    p->symbols = dlc_new_array(p->arena, const char *, p->module->symbols.n + 1u);
    for (uint32_t i = 0; i < p->module->inputs.n; i++)
        p->inputs[i] = identifier(p, input_of(p, i)->name);
    for (uint32_t i = 0; i < p->module->outputs.n; i++)
        p->outputs[i] = identifier(p, p->module->outputs.data[i].name);
    for (uint32_t i = 0; i < p->module->symbols.n; i++)
        if (p->module->symbols.data[i].bind == DLC_BIND_INPUT_DIM)
            p->symbols[i] = identifier(p, p->module->symbols.data[i].name);
}

/* A dimension that is a number or a symbol of the inputs. */
static int is_plain(const printer *p, dlc_expr dim)
{
    const dlc_expr_node *node = dlc_node_of(p->module->pool, dim);
    return node->op == DLC_EXPR_CONST || (node->op == DLC_EXPR_SYM && p->symbols[node->imm.id]);
}

static int can_run_typed(const printer *p)
{
    for (uint32_t i = 0; i < p->module->inputs.n; i++)
        for (uint32_t k = 0; k < input_of(p, i)->type.rank; k++)
            if (!is_plain(p, input_of(p, i)->type.dims[k]))
                return 0;
    return 1;
}

/* Whether a dimension is found out by the run itself. */
static int depends_on_data(const printer *p, const dlc_type *type)
{
    for (uint32_t k = 0; k < type->rank; k++) {
        uint8_t *marks = dlc_new_array(p->arena, uint8_t, p->module->pool->nodes.n);
        dlc_expr_reach(p->module->pool, type->dims[k], marks);
        for (dlc_expr id = 1; id <= type->dims[k]; id++)
            if (marks[id] && dlc_node_of(p->module->pool, id)->op == DLC_EXPR_SYM &&
                !p->symbols[dlc_node_of(p->module->pool, id)->imm.id])
                return 1;
    }
    return 0;
}

static void add_tensor_comment(printer *p, const char *what, uint32_t i, const char *name,
                               const dlc_type *type)
{
    dlc_str text = {0};
    dlc_module_type_print(p->module, type, &text);
    dlc_str_printf(p->out, " *   %-6s %u  ", what, i);
    add_comment(p, name);
    dlc_str_add(p->out, "  ");
    add_comment(p, dlc_str_text(&text));
    dlc_str_add(p->out, "\n");
    dlc_str_deinit(&text);
}

static void add_head(printer *p)
{
    dlc_str_printf(p->out, "/*\n * The model '%s', compiled by dlc for %s.\n", p->name,
                   p->module->target->name);
    for (uint32_t i = 0; i < p->module->inputs.n; i++)
        add_tensor_comment(p, "input", i, input_of(p, i)->name,
                           &input_of(p, i)->type);
    for (uint32_t i = 0; i < p->module->outputs.n; i++)
        add_tensor_comment(p, "output", i, p->module->outputs.data[i].name,
                           &output_of(p, i)->type);
    dlc_str_add(p->out, " * Link its object or archive with libdlcrt; dlc/runtime.h says how "
                        "contexts are used.\n */\n#ifndef DLC_MODEL_");
    dlc_str_printf(p->out, "%s_H\n#define DLC_MODEL_%s_H\n\n", p->name, p->name);
    dlc_str_add(p->out, "#include <stdbool.h>\n#include <stddef.h>\n#include "
                        "<stdint.h>\n#include <string.h>\n\n#include \"dlc/runtime.h\"\n\n"
                        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    dlc_str_printf(p->out, "extern const struct dlc_executable dlc_executable_%s;\n\n", p->name);
    dlc_str_printf(p->out, "enum { %s_ninputs = %u, %s_noutputs = %u };\n\n", p->name,
                   p->module->inputs.n, p->name, p->module->outputs.n);
    dlc_str_printf(p->out,
                   "static inline dlc_status %s_open(dlcrt_executable **result)\n{\n"
                   "    return dlcrt_executable_from(&dlc_executable_%s, result);\n}\n\n",
                   p->name, p->name);
}

static void add_parameters(printer *p)
{
    dlc_str_printf(p->out, "static inline dlc_status %s_run(dlcrt_context *context", p->name);
    for (uint32_t i = 0; i < p->module->symbols.n; i++)
        if (p->symbols[i])
            dlc_str_printf(p->out, ", int64_t %s", p->symbols[i]);
    for (uint32_t i = 0; i < p->module->inputs.n; i++)
        dlc_str_printf(p->out, ", const %s *%s",
                       dlc_dtypes[input_of(p, i)->type.dtype].ctype, p->inputs[i]);
    for (uint32_t i = 0; i < p->module->outputs.n; i++) {
        const dlc_type *type = &output_of(p, i)->type;
        dlc_str_printf(p->out, ", %s *%s",
                       depends_on_data(p, type) ? "dlcrt_tensor" : dlc_dtypes[type->dtype].ctype,
                       p->outputs[i]);
    }
    dlc_str_add(p->out, ")\n{\n");
}

static void add_input(printer *p, uint32_t i)
{
    const dlc_type *type = &input_of(p, i)->type;
    dlc_str_printf(p->out,
                   "    in[%u].data = (void *)(uintptr_t)%s;\n    in[%u].dtype = DLC_%s;\n    "
                   "in[%u].rank = %u;\n",
                   i, p->inputs[i], i,
                   (const char *[]){
#define DLC_DTYPE(id, text, bits, class_, onnx, numpy, served, ctype) #id,
#include "dlc/dtype.def"
#undef DLC_DTYPE
                   }[type->dtype],
                   i, type->rank);
    for (uint32_t k = 0; k < type->rank; k++) {
        const dlc_expr_node *node = dlc_node_of(p->module->pool, type->dims[k]);
        if (node->op == DLC_EXPR_CONST)
            dlc_str_printf(p->out, "    in[%u].dims[%u] = %" PRId64 ";\n", i, k, node->imm.i);
        else
            dlc_str_printf(p->out, "    in[%u].dims[%u] = %s;\n", i, k, p->symbols[node->imm.id]);
    }
}

static void add_output(printer *p, uint32_t i)
{
    if (depends_on_data(p, &output_of(p, i)->type))
        dlc_str_printf(p->out, "    out[%u] = *%s;\n", i, p->outputs[i]);
    else
        dlc_str_printf(p->out,
                       "    out[%u].data = %s;\n    out[%u].size_bytes = "
                       "dlcrt_context_output_bytes(context, %u);\n",
                       i, p->outputs[i], i, i);
}

static void add_body(printer *p)
{
    uint32_t nin = p->module->inputs.n, nout = p->module->outputs.n;
    dlc_str_printf(p->out,
                   "    dlcrt_tensor in[%u], out[%u];\n    memset(in, 0, sizeof in);\n    "
                   "memset(out, 0, sizeof out);\n",
                   nin ? nin : 1, nout ? nout : 1);
    for (uint32_t i = 0; i < nin; i++)
        add_input(p, i);
    dlc_str_printf(p->out,
                   "    dlc_status status = dlcrt_context_prepare(context, in, %u);\n    if "
                   "(status != DLC_OK)\n"
                   "        return status;\n",
                   nin);
    for (uint32_t i = 0; i < nout; i++)
        add_output(p, i);
    dlc_str_printf(p->out, "    status = dlcrt_context_run(context, in, %u, out, %u);\n", nin,
                   nout);
    for (uint32_t i = 0; i < nout; i++)
        if (depends_on_data(p, &output_of(p, i)->type))
            dlc_str_printf(p->out, "    *%s = out[%u];\n", p->outputs[i], i);
    dlc_str_add(p->out, "    return status;\n}\n");
}

void dlc_header_print(const dlc_module *module, const char *name, dlc_str *out)
{
    dlc_arena *arena = dlc_arena_create(0);
    printer p = {
        .module = module, .name = name, .out = out, .arena = arena};
    choose_names(&p);
    add_head(&p);
    if (can_run_typed(&p)) {
        dlc_str_add(out, "/* One run; buffers as large as the shapes above say. What can fail is "
                         "said at dlcrt_context_run. */\n");
        add_parameters(&p);
        add_body(&p);
    }
    dlc_str_add(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    dlc_arena_destroy(arena);
}

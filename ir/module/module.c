/*
 * Modules: tables that only grow. Values and kernels are found by hash, the one by name, the other by text, so that a module of
 * many thousand of them is built in time that grows with their number.
 */
#include "ir/module/text.h"

#include <string.h>

const dlc_opaque_row dlc_opaque_rows[] = {
#define DLC_OPAQUE(id, number, text, inputs, outputs, attrs, names, count, run) \
    [number] = {text, inputs, outputs, attrs, names},
#include "dlc/opaque.def"
#undef DLC_OPAQUE
};
const uint32_t dlc_nopaque_rows = sizeof dlc_opaque_rows / sizeof *dlc_opaque_rows;

dlc_module *dlc_module_create(dlc_arena *arena, const dlc_target *target, const char *file, const char *name)
{
    dlc_module *module = dlc_new(arena, dlc_module);
    module->arena = arena;
    module->target = target;
    module->file = file ? file : "";
    module->name = name;
    module->pool = dlc_pool_create(arena);
    return module;
}

/* --- values --- */

static uint32_t *name_slot(const dlc_module *module, const char *name)
{
    uint32_t mask = module->nnames - 1, at = (uint32_t)dlc_hash(name, strlen(name), 0) & mask;
    while (module->names[at] && strcmp(module->values.data[module->names[at] - 1].name, name) != 0)
        at = (at + 1) & mask;
    return &module->names[at];
}

static void grow_names(dlc_module *module)
{
    module->nnames = module->nnames ? module->nnames * 2 : 64;
    module->names = dlc_new_array(module->arena, uint32_t, module->nnames);
    for (uint32_t i = 0; i < module->values.n; i++)
        *name_slot(module, module->values.data[i].name) = i + 1;
}

uint32_t dlc_module_find_value(const dlc_module *module, const char *name)
{
    return module->nnames ? *name_slot(module, name) - 1 : DLC_NO_VALUE; /* none is 0 */
}

uint32_t dlc_module_add_value(dlc_module *module, const dlc_module_value *value)
{
    dlc_module_value made = *value;
    if (module->values.n * 2 >= module->nnames)
        grow_names(module);
    for (unsigned suffix = 2; *name_slot(module, made.name); suffix++)
        made.name = dlc_arena_printf(module->arena, "%s_%u", value->name, suffix);
    made.form = DLC_NO_VALUE;
    uint32_t *slot = name_slot(module, made.name);
    dlc_vec_push(module->arena, &module->values, made);
    return (*slot = module->values.n) - 1;
}

void dlc_module_input(dlc_module *module, uint32_t value)
{
    module->values.data[value].role = DLC_VALUE_INPUT;
    module->values.data[value].index = module->inputs.n;
    dlc_vec_push(module->arena, &module->inputs, value);
}

void dlc_module_output_add(dlc_module *module, const char *name, uint32_t value)
{
    module->values.data[value].role = DLC_VALUE_OUTPUT;
    module->values.data[value].index = module->outputs.n;
    dlc_vec_push(module->arena, &module->outputs, ((dlc_module_output){name, value}));
}

dlc_expr dlc_module_value_bytes(const dlc_module *module, uint32_t value)
{
    const dlc_module_value *v = &module->values.data[value];
    if (v->role == DLC_VALUE_CONST)
        return dlc_expr_i64(module->pool, (int64_t)v->data.size_bytes);
    dlc_expr elems = dlc_layout_elems(module->pool, &v->layout, v->type.rank, v->type.dims);
    return dlc_muli(module->pool, elems, dlc_dtype_bytes(v->type.dtype));
}

int dlc_module_is_row_major(const dlc_module_value *value)
{
    dlc_layout plain = {0};
    return dlc_layout_equal(&value->layout, &plain);
}

/* --- symbols --- */

dlc_ranges dlc_module_ranges(const dlc_module *module)
{
    dlc_interval *symbols = dlc_new_array(module->arena, dlc_interval, module->symbols.n + 1);
    for (uint32_t s = 0; s < module->symbols.n; s++)
        symbols[s] = (dlc_interval){module->symbols.data[s].lo, module->symbols.data[s].hi};
    return (dlc_ranges){.symbols = symbols, .nsymbols = module->symbols.n};
}

int64_t *dlc_module_symbol_values(const dlc_module *module, int64_t wanted, dlc_arena *arena)
{
    int64_t *values = dlc_new_array(arena, int64_t, module->symbols.n + 1);
    for (uint32_t s = 0; s < module->symbols.n; s++) {
        const dlc_module_symbol *symbol = &module->symbols.data[s];
        values[s] = dlc_symbol_value(wanted, symbol->lo, symbol->hi);
    }
    return values;
}

int64_t *dlc_module_usual_values(const dlc_module *module, int64_t otherwise, dlc_arena *arena)
{
    int64_t *values = dlc_new_array(arena, int64_t, module->symbols.n + 1);
    for (uint32_t s = 0; s < module->symbols.n; s++) {
        const dlc_module_symbol *symbol = &module->symbols.data[s];
        values[s] = dlc_symbol_value(symbol->usual ? symbol->usual : otherwise, symbol->lo, symbol->hi);
    }
    return values;
}

static const char *symbol_name(const void *module, uint32_t symbol)
{
    return ((const dlc_module *)module)->symbols.data[symbol].name;
}

void dlc_module_size_print(const dlc_module *module, dlc_expr size, dlc_str *out)
{
    dlc_sizes_text sizes = {.pool = module->pool, .name = symbol_name, .ctx = module, .nsymbols = module->symbols.n};
    dlc_sizes_print(&sizes, size, out);
}

void dlc_module_type_print(const dlc_module *module, const dlc_type *type, dlc_str *out)
{
    dlc_sizes_text sizes = {.pool = module->pool, .name = symbol_name, .ctx = module, .nsymbols = module->symbols.n};
    dlc_sizes_type_print(&sizes, type, out);
}

/* --- kernels --- */

static int texts_equal(const dlc_kernel *a, const dlc_kernel *b)
{
    dlc_str text_a = {0}, text_b = {0};
    dlc_kernel_print(a, 0, &text_a);
    dlc_kernel_print(b, 0, &text_b);
    int equal = !strcmp(dlc_str_text(&text_a), dlc_str_text(&text_b));
    dlc_str_deinit(&text_a);
    dlc_str_deinit(&text_b);
    return equal;
}

static uint32_t *kernel_slot(const dlc_module *module, uint64_t hash, const dlc_kernel *kernel)
{
    uint32_t at = (uint32_t)hash & (module->nshared - 1);
    for (; module->shared[at]; at = (at + 1) & (module->nshared - 1)) {
        const dlc_module_kernel *other = &module->kernels.data[module->shared[at] - 1];
        if (kernel && other->hash == hash && texts_equal(other->kernel, kernel))
            break;
    }
    return &module->shared[at];
}

static void grow_shared(dlc_module *module)
{
    for (module->nshared = 256; module->nshared <= module->kernels.n * 2; module->nshared *= 2)
        ;
    module->shared = dlc_new_array(module->arena, uint32_t, module->nshared);
    for (uint32_t i = 0; i < module->kernels.n; i++)
        *kernel_slot(module, module->kernels.data[i].hash, NULL) = i + 1;
}

uint32_t dlc_module_add_kernel(dlc_module *module, dlc_kernel *kernel)
{
    if (module->kernels.n * 2 >= module->nshared)
        grow_shared(module);
    uint64_t hash = dlc_kernel_hash(kernel);
    uint32_t *slot = kernel_slot(module, hash, kernel);
    if (!*slot) {
        dlc_vec_push(module->arena, &module->kernels, ((dlc_module_kernel){kernel, NULL, hash}));
        *slot = module->kernels.n;
    }
    return *slot - 1;
}

void dlc_module_drop_kernels(dlc_module *module)
{
    uint32_t *number = dlc_new_array(module->arena, uint32_t, module->kernels.n + 1), n = 0; /* + 1; 0: nobody's */
    for (uint32_t s = 0; s < module->steps.n; s++)
        if (module->steps.data[s].kind == DLC_STEP_LAUNCH)
            number[module->steps.data[s].kernel] = 1;
    for (uint32_t k = 0; k < module->kernels.n; k++)
        if (number[k]) {
            module->kernels.data[n++] = module->kernels.data[k];
            number[k] = n;
        }
    module->kernels.n = n;
    for (uint32_t s = 0; s < module->steps.n; s++)
        if (module->steps.data[s].kind == DLC_STEP_LAUNCH)
            module->steps.data[s].kernel = number[module->steps.data[s].kernel] - 1;
    grow_shared(module);
}

/* --- steps --- */

int dlc_step_writes(const dlc_module *module, const dlc_step *step, uint32_t i)
{
    switch ((dlc_step_kind)step->kind) {
    case DLC_STEP_LAUNCH:
        return module->kernels.data[step->kernel].kernel->buffers.data[i].role == DLC_ROLE_OUT;
    case DLC_STEP_OPAQUE:
        return i >= dlc_opaque_rows[step->opaque].ninputs;
    case DLC_STEP_BIND:
        return 0;
    case DLC_STEP_COPY:
        return i == 1;
    case DLC_STEP_SET:
    case DLC_STEP_IF:
    case DLC_STEP_ELSE:
    case DLC_STEP_LOOP:
    case DLC_STEP_END:
        return 0;
    }
    return 0;
}

/* Whether the symbol that step s sets is set in the other branch, too: the sizes of that branch then come before it. */
static int is_set_again(const dlc_module *module, uint32_t s)
{
    uint32_t symbol = module->steps.data[s].symbol, depth = 0, nelse = 0;
    for (uint32_t i = s + 1; i < module->steps.n; i++) {
        const dlc_step *step = &module->steps.data[i];
        if (step->symbol == symbol && !depth && nelse)
            return 1;
        if (step->kind == DLC_STEP_END && !depth--)
            return 0;
        nelse += step->kind == DLC_STEP_ELSE && !depth;
        depth += step->kind == DLC_STEP_IF || step->kind == DLC_STEP_LOOP;
    }
    return 0;
}

uint32_t *dlc_module_phases(const dlc_module *module, uint32_t *nphases, dlc_arena *arena)
{
    uint32_t *phases = dlc_new_array(arena, uint32_t, module->symbols.n + 1u);
    for (uint32_t i = 0; i < module->symbols.n; i++)
        phases[i] = module->symbols.data[i].bind == DLC_BIND_INPUT_DIM ? 0 : UINT32_MAX;
    *nphases = 1;
    for (uint32_t s = 0; s < module->steps.n; s++) {
        uint32_t symbol = module->steps.data[s].symbol;
        if (symbol < module->symbols.n && phases[symbol] == UINT32_MAX && !is_set_again(module, s))
            phases[symbol] = (*nphases)++;
    }
    return phases;
}

int dlc_step_is_on_host(const dlc_step *step)
{
    return step->kind == DLC_STEP_OPAQUE || step->kind == DLC_STEP_BIND;
}

/* The names joined by '+', cut where they would fill a line. */
static const char *joined(dlc_arena *arena, const char *const *names, uint32_t n)
{
    enum { MOST = 96 };
    dlc_str text = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (text.n + strlen(names[i]) > MOST && i) {
            dlc_str_printf(&text, "+…%u more", n - i);
            break;
        }
        dlc_str_printf(&text, "%s%s", i ? "+" : "", names[i]);
    }
    const char *copy = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

void dlc_step_set_nodes(dlc_module *module, dlc_step *step, const char *const *nodes, uint32_t n)
{
    step->nodes = dlc_new_array(module->arena, const char *, n + 1);
    step->nnodes = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!i || strcmp(nodes[i], nodes[i - 1]) != 0)
            step->nodes[step->nnodes++] = nodes[i];
    step->name = joined(module->arena, step->nodes, step->nnodes);
}

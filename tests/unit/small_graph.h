/*
 * Graphs for tests from one line of text, constants and inputs filled with numbers that depend on their names alone:
 *     in x 1,64,56,56 nhwc; const w 64,64,3,3; c = conv x w pads=1,1,1,1 nhwc; r = relu c nhwc; out r
 * A dimension that is a name is a symbol. A type other than f32 stands behind a colon: `in x:i64 4`.
 * run_strategy() takes the graph through fuse, lower and choose; run_nodes() and run_module() interpret it node by node and
 * kernel by kernel.
 */
#ifndef DLC_TESTS_SMALL_GRAPH_H
#define DLC_TESTS_SMALL_GRAPH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "passes/fuse/fuse.h"
#include "tests/unit/suite.h"

typedef struct {
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_graph *graph;
    dlc_pass_ctx ctx;
    int64_t size_of_symbols; /* every symbol's value at run time */
} small_graph;

static inline void small_fail(const small_graph *s, const char *what)
{
    ck_abort_msg("%s: %s", what, s->diag->nmessages ? s->diag->messages[s->diag->nmessages - 1].text : "no message");
}

static inline dlc_value *small_find(const small_graph *s, const char *name)
{
    for (uint32_t i = 0; i < s->graph->inputs.n; i++)
        if (!strcmp(s->graph->inputs.data[i]->name, name))
            return s->graph->inputs.data[i];
    for (const dlc_node *node = s->graph->first; node; node = node->next)
        for (uint32_t o = 0; o < node->noutputs; o++)
            if (node->outputs[o] && !strcmp(node->outputs[o]->name, name))
                return node->outputs[o];
    return NULL;
}

static inline dlc_expr small_dim(small_graph *s, const char *text)
{
    char *end;
    int64_t value = strtoll(text, &end, 10);
    if (end != text)
        return dlc_expr_i64(s->graph->pool, value);
    for (uint32_t i = 0; i < s->graph->symbols.n; i++)
        if (!strcmp(s->graph->symbols.data[i].name, text))
            return dlc_expr_sym(s->graph->pool, i);
    const char *name = dlc_arena_strdup(s->arena, text);
    return dlc_expr_sym(s->graph->pool, dlc_graph_symbol(s->graph, name, DLC_BIND_INPUT_DIM, NULL, 0));
}

static inline uint32_t small_dims(small_graph *s, char *list, dlc_expr *dims)
{
    uint32_t n = 0;
    char *rest = NULL;
    for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        dims[n++] = small_dim(s, item);
    return n;
}

/* Numbers in (-1, 1), small integers for integer types; the same for the same name. */
static inline void small_fill(dlc_dtype dtype, const char *name, size_t n, void *bytes)
{
    uint64_t state = dlc_hash(name, strlen(name), 7);
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        dlc_scalar value = {0};
        if (dlc_is_float(dtype))
            value.f = (double)(int64_t)(state >> 40) / (double)(1 << 23) - 1.0;
        else
            value.i = (int64_t)(state >> 60);
        if (dlc_is_float(dtype))
            value.f = dlc_round_to(dtype, value.f);
        dlc_scalar_write(dtype, (char *)bytes + i * dlc_dtype_bytes(dtype), value);
    }
}

static inline dlc_dtype small_dtype(char *name)
{
    char *colon = strchr(name, ':');
    if (!colon)
        return DLC_F32;
    *colon = 0;
    for (int t = 0; t < DLC_DTYPE_COUNT; t++)
        if (!strcmp(dlc_dtypes[t].text, colon + 1))
            return (dlc_dtype)t;
    ck_abort_msg("no type %s", colon + 1);
}

static inline void small_layout(small_graph *s, dlc_value *value, const char *word)
{
    if (!word || strcmp(word, "nhwc") != 0)
        return;
    const dlc_layout channels_last = dlc_layout_channels_last(value->type.rank);
    dlc_value_lay(s->graph, value, &channels_last);
}

static inline void small_source(small_graph *s, int is_const, char **words, uint32_t n)
{
    dlc_type type = {.dtype = small_dtype(words[1])};
    size_t size = dlc_dtype_bytes(type.dtype), count = 1;
    type.rank = n > 2 && strcmp(words[2], "scalar") ? (uint8_t)small_dims(s, words[2], type.dims) : 0;
    const char *name = dlc_arena_strdup(s->arena, words[1]);
    if (!is_const) {
        dlc_value *value = dlc_graph_input(s->graph, name, &type);
        small_layout(s, value, n > 3 ? words[3] : NULL);
        for (uint8_t d = 0; d < type.rank; d++) {
            const dlc_expr_node *node = dlc_node_of(s->graph->pool, type.dims[d]);
            if (node->op == DLC_EXPR_SYM && !s->graph->symbols.data[node->imm.id].value) {
                s->graph->symbols.data[node->imm.id].value = value;
                s->graph->symbols.data[node->imm.id].index = d;
            }
        }
        return;
    }
    for (uint8_t d = 0; d < type.rank; d++)
        count *= (size_t)dlc_expr_value(s->graph->pool, type.dims[d]);
    char *bytes = dlc_arena_array(s->arena, count, size, 16);
    if (n > 3) /* const NAME scalar 1e-5 */
        dlc_scalar_write(type.dtype, bytes, dlc_is_float(type.dtype) ? (dlc_scalar){.f = dlc_round_to(type.dtype, atof(words[3]))}
                                                                     : (dlc_scalar){.i = atoll(words[3])});
    else
        small_fill(type.dtype, name, count, bytes);
    dlc_graph_constant(s->graph, name, &type, bytes, count * size);
}

static inline dlc_attr small_attr(small_graph *s, char *word)
{
    char *equals = strchr(word, '=');
    *equals = 0;
    for (int a = 0; a < DLC_ATTR_COUNT; a++) {
        if (strcmp(dlc_attrs[a].text, word))
            continue;
        dlc_expr *dims = dlc_new_array(s->arena, dlc_expr, 32);
        switch (dlc_attrs[a].kind) {
        case DLC_ATTR_KIND_INT: return dlc_attr_int((dlc_attr_id)a, atoll(equals + 1));
        case DLC_ATTR_KIND_FLOAT: return dlc_attr_float((dlc_attr_id)a, atof(equals + 1));
        case DLC_ATTR_KIND_TEXT: return dlc_attr_text((dlc_attr_id)a, dlc_arena_strdup(s->arena, equals + 1));
        default: {
            uint32_t n = small_dims(s, equals + 1, dims);
            return dlc_attr_dims((dlc_attr_id)a, dims, n);
        }
        }
    }
    ck_abort_msg("no attribute %s", word);
}

static inline void small_node(small_graph *s, char **words, uint32_t n)
{
    dlc_value *inputs[16];
    dlc_attr attrs[16];
    dlc_node_spec spec = {.name = dlc_arena_strdup(s->arena, words[0]), .inputs = inputs, .attrs = attrs};
    int op = dlc_op_find(words[2]);
    const char *layout = NULL;
    ck_assert_msg(op >= 0, "no operator %s", words[2]);
    spec.op = (dlc_opcode)op;
    for (uint32_t i = 3; i < n; i++) {
        if (strchr(words[i], '='))
            attrs[spec.nattrs++] = small_attr(s, words[i]);
        else if (!strcmp(words[i], "nhwc"))
            layout = words[i];
        else
            ck_assert_msg((inputs[spec.ninputs++] = small_find(s, words[i])) != NULL, "no value %s", words[i]);
    }
    dlc_node *node = dlc_graph_node(s->graph, &spec);
    if (!node)
        small_fail(s, words[0]);
    small_layout(s, node->outputs[0], layout);
}

static inline small_graph small_begin(const char *text)
{
    small_graph s = {.arena = dlc_arena_create(0), .size_of_symbols = 5};
    s.diag = dlc_new(s.arena, dlc_diag);
    dlc_diag_init(s.diag, s.arena);
    s.graph = dlc_graph_create(s.arena, s.diag, "small");
    char *copy = dlc_arena_strdup(s.arena, text), *rest = NULL;
    for (char *line = strtok_r(copy, ";", &rest); line; line = strtok_r(NULL, ";", &rest)) {
        char *words[32], *in_line = NULL;
        uint32_t n = 0;
        for (char *word = strtok_r(line, " \n", &in_line); word; word = strtok_r(NULL, " \n", &in_line))
            words[n++] = word;
        if (n == 0)
            continue;
        if (!strcmp(words[0], "out"))
            for (uint32_t i = 1; i < n; i++)
                dlc_graph_output(s.graph, dlc_arena_strdup(s.arena, words[i]), small_find(&s, words[i]));
        else if (!strcmp(words[0], "in") || !strcmp(words[0], "const"))
            small_source(&s, words[0][0] == 'c', words, n);
        else
            small_node(&s, words, n);
    }
    return s;
}

static inline void small_end(small_graph *s)
{
    dlc_arena_destroy(s->arena);
}

static inline dlc_module *run_strategy(small_graph *s, const char *strategy, const char *target)
{
    s->ctx = (dlc_pass_ctx){.graph = s->graph, .scratch = dlc_arena_create(0), .target = dlc_target_find(target),
                            .diag = s->diag, .fusion = strategy};
    if (dlc_pass_fuse(&s->ctx) != DLC_OK || dlc_pass_lower(&s->ctx) != DLC_OK || dlc_pass_choose(&s->ctx) != DLC_OK)
        small_fail(s, strategy);
    dlc_arena_destroy(s->ctx.scratch);
    return s->ctx.module;
}

/* --- interpretation --- */

static inline int64_t *small_symbols(const small_graph *s)
{
    int64_t *symbols = dlc_new_array(s->arena, int64_t, s->graph->symbols.n + 1);
    for (uint32_t i = 0; i < s->graph->symbols.n; i++)
        symbols[i] = s->size_of_symbols;
    return symbols;
}

static inline size_t small_elems(const small_graph *s, const dlc_value *value)
{
    size_t n = 1;
    for (uint8_t d = 0; d < value->type.rank; d++)
        n *= (size_t)dlc_expr_eval(s->graph->pool, value->type.dims[d], small_symbols(s));
    return n;
}

/* Memory of every value by id; inputs are filled with their numbers, in the order they lie. */
static inline void **small_memory(const small_graph *s)
{
    void **memory = dlc_new_array(s->arena, void *, s->graph->nvalues + 1);
    for (uint32_t i = 0; i < s->graph->inputs.n; i++) {
        const dlc_value *value = s->graph->inputs.data[i];
        memory[value->id] = dlc_arena_array(s->arena, small_elems(s, value) + 1, dlc_dtype_bytes(value->type.dtype), 16);
        small_fill(value->type.dtype, value->name, small_elems(s, value), memory[value->id]);
    }
    for (const dlc_node *node = s->graph->first; node; node = node->next)
        for (uint32_t o = 0; o < node->noutputs; o++) {
            const dlc_value *value = node->outputs[o];
            if (value && value->data)
                memory[value->id] = (void *)value->data->bytes;
            else if (value)
                memory[value->id] = dlc_arena_array(s->arena, small_elems(s, value) + 1, 8, 16);
        }
    return memory;
}

static inline void small_interpret(const small_graph *s, const dlc_kernel *kernel, void **buffers)
{
    int64_t *symbols = dlc_new_array(s->arena, int64_t, kernel->symbols.n + 1);
    for (uint32_t i = 0; i < kernel->symbols.n; i++)
        symbols[i] = dlc_expr_eval(s->graph->pool, kernel->symbols.data[i].outer, small_symbols(s));
    if (dlc_interp_run(kernel, DLC_STRICT, &(dlc_interp_args){.buffers = buffers, .symbols = symbols}, s->diag) != DLC_OK)
        small_fail(s, "interpreter");
}

/* Every node by its own meaning. */
static inline void **run_nodes(const small_graph *s)
{
    void **memory = small_memory(s);
    for (dlc_node *node = s->graph->first; node; node = node->next) {
        dlc_node_kernel one;
        if (node->op == DLC_OP_CONSTANT)
            continue;
        if (dlc_node_kernel_of(s->graph, node, s->arena, &one) != DLC_OK)
            small_fail(s, "meaning");
        void **buffers = dlc_new_array(s->arena, void *, one.values.n + 1);
        for (uint32_t b = 0; b < one.values.n; b++)
            buffers[b] = memory[one.values.data[b]->id];
        small_interpret(s, one.kernel, buffers);
    }
    return memory;
}

/* Memory of the module's values: constants as kernels before schedules read them, others where the graph's value of that name has it. */
static inline void **small_values(const small_graph *s, const dlc_module *module, void **memory)
{
    void **values = dlc_new_array(s->arena, void *, module->values.n + 1);
    for (uint32_t v = 0; v < module->values.n; v++) {
        const dlc_module_value *value = &module->values.data[v];
        if (value->role == DLC_VALUE_CONST && value->origin != DLC_NO_VALUE)
            value = &module->values.data[value->origin];
        if (value->role == DLC_VALUE_CONST)
            values[v] = (void *)(uintptr_t)value->data.bytes;
    }
    for (uint32_t i = 0; i < s->graph->inputs.n; i++)
        values[module->inputs.data[i]] = memory[s->graph->inputs.data[i]->id];
    for (const dlc_node *node = s->graph->first; node; node = node->next)
        for (uint32_t o = 0; o < node->noutputs; o++) {
            uint32_t v = node->outputs[o] ? dlc_module_find_value(module, node->outputs[o]->name) : DLC_NO_VALUE;
            if (v != DLC_NO_VALUE && !values[v])
                values[v] = memory[node->outputs[o]->id];
        }
    for (uint32_t v = 0; v < module->values.n; v++) { /* what passes behind the graph made */
        const dlc_type *type = &module->values.data[v].type;
        size_t n = 1;
        for (uint8_t d = 0; d < type->rank; d++)
            n *= (size_t)dlc_expr_eval(module->pool, type->dims[d], small_symbols(s));
        if (!values[v] && !module->values.data[v].skip)
            values[v] = dlc_arena_array(s->arena, n + 1, 8, 16);
    }
    return values;
}

/* Where the value lies now. */
static inline void *small_place(const dlc_module *module, uint32_t v, void **values, const int64_t *symbols)
{
    const dlc_module_value *value = &module->values.data[v];
    return value->skip ? (char *)values[value->whole] + dlc_expr_eval(module->pool, value->skip, symbols) : values[v];
}

static inline void small_launch(const small_graph *s, const dlc_module *module, const dlc_step *step, void **values, const int64_t *symbols)
{
    void **buffers = dlc_new_array(s->arena, void *, step->nvalues + 1);
    int64_t *sizes = dlc_new_array(s->arena, int64_t, step->nsymbols + 1);
    for (uint32_t b = 0; b < step->nvalues; b++)
        buffers[b] = small_place(module, step->values[b], values, symbols);
    for (uint32_t n = 0; n < step->nsymbols; n++)
        sizes[n] = dlc_expr_eval(module->pool, step->symbols[n], symbols);
    if (dlc_interp_run(module->kernels.data[step->kernel].kernel, DLC_STRICT, &(dlc_interp_args){.buffers = buffers, .symbols = sizes}, s->diag) !=
        DLC_OK)
        small_fail(s, "interpreter");
}

/* Kernels, copies and loops that are in no other one. The result is by id of the graph's values. */
static inline void **run_module(const small_graph *s, const dlc_module *module)
{
    void **memory = small_memory(s), **values = small_values(s, module, memory);
    int64_t *symbols = dlc_new_array(s->arena, int64_t, module->symbols.n + 1);
    uint32_t loop = 0;
    for (uint32_t i = 0; i < module->symbols.n; i++)
        symbols[i] = s->size_of_symbols;
    for (uint32_t i = 0; i < module->steps.n; i++) {
        const dlc_step *step = &module->steps.data[i];
        int64_t size = step->size ? dlc_expr_eval(module->pool, step->size, symbols) : 0;
        if (step->kind == DLC_STEP_LAUNCH)
            small_launch(s, module, step, values, symbols);
        else if (step->kind == DLC_STEP_COPY)
            memcpy((char *)small_place(module, step->values[1], values, symbols) + size, small_place(module, step->values[0], values, symbols),
                   (size_t)dlc_expr_eval(module->pool, dlc_module_value_bytes(module, step->values[0]), symbols));
        else if (step->kind == DLC_STEP_SET)
            symbols[step->symbol] = size;
        else if (step->kind == DLC_STEP_END)
            i = loop - 1;
        else if (step->kind == DLC_STEP_LOOP)
            for (loop = i; !size && module->steps.data[i].kind != DLC_STEP_END;)
                i++;
    }
    return memory;
}

/* Largest difference between the graph's outputs by the two, relative to the largest value. */
static inline double small_difference(const small_graph *s, void **a, void **b)
{
    double most = 0, largest = 1e-30;
    for (uint32_t o = 0; o < s->graph->outputs.n; o++) {
        const dlc_value *value = s->graph->outputs.data[o].value;
        uint32_t size = dlc_dtype_bytes(value->type.dtype);
        for (size_t i = 0; i < small_elems(s, value); i++) {
            dlc_scalar x = dlc_scalar_read(value->type.dtype, (char *)a[value->id] + i * size);
            dlc_scalar y = dlc_scalar_read(value->type.dtype, (char *)b[value->id] + i * size);
            double p = dlc_is_float(value->type.dtype) ? x.f : (double)x.i;
            double q = dlc_is_float(value->type.dtype) ? y.f : (double)y.i;
            if (isnan(p) != isnan(q))
                return INFINITY;
            largest = fmax(largest, fabs(p));
            most = isnan(p) || p == q ? most : fmax(most, fabs(p - q));
        }
    }
    return most / largest;
}

#endif

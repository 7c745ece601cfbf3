/*
 * A whole graph through the kernel interpreter, node by node in wide mode: floats stay float64 from
 * kernel to kernel, so what comes out is the model's mathematics, and the distance of compiled code
 * to it is that code's error. No schedule, no fusion and no code generator takes part. A value's
 * memory goes when its last reader has run.
 */
#include "compiler/driver.h"

#include "ir/interp/interp.h"
#include "ir/graph/opaque.h"
#include "ir/graph/region.h"
#include "runtime/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Data of one value while the graph runs. */
typedef struct {
    void *bytes;      /* integers and bools */
    double *wide;     /* floats that were computed */
    uint32_t readers; /* uses not yet run, graph outputs included */
} cell;

typedef struct {
    dlc_model *model;
    dlc_graph *graph;
    cell *cells; /* by value id */
    int64_t *symbols;
    uint8_t *is_bound;
    uint8_t *is_checked; /* conditions */
    uint8_t *is_taken;   /* by node id: what an if's condition was */
    int has_regions;     /* then nothing goes before the end: a loop reads it again */
    dlc_arena *scratch;
} machine;

struct interpret_args {
    const dlcrt_tensor *inputs;
    uint32_t ninputs;
    dlcrt_tensor *outputs;
    uint32_t noutputs;
    machine machine;
};

static dlc_diag *diag_of(machine *m)
{
    return &m->model->diag;
}

/* ---- sizes ---- */

static dlc_status dims_of(machine *m, const dlc_value *value, int64_t *dims, size_t *nelems)
{
    *nelems = 1;
    for (uint32_t d = 0; d < value->type.rank; d++) {
        dims[d] = dlc_expr_eval(m->graph->pool, value->type.dims[d], m->symbols);
        if (dims[d] < 0 || !dlc_mul_size(*nelems, (size_t)dims[d], nelems))
            return dlc_diag_fail(diag_of(m), dims[d] < 0 ? DLC_INVALID : DLC_LIMIT, m->graph->file,
                                 "value '%s' would have %" PRId64 " elements in dimension %u",
                                 value->name, dims[d], d);
    }
    return DLC_OK;
}

static dlc_status allocate(machine *m, const dlc_value *value, size_t element_bytes, void **result)
{
    int64_t dims[DLC_MAX_RANK];
    size_t nelems, size_bytes;
    DLC_TRY(dims_of(m, value, dims, &nelems));
    if (!dlc_mul_size(nelems, element_bytes, &size_bytes) ||
        !(*result = calloc(1, size_bytes ? size_bytes : 1)))
        return dlc_diag_fail(diag_of(m), DLC_LIMIT, m->graph->file,
                             "value '%s' of %zu elements does not fit into memory", value->name,
                             nelems);
    return DLC_OK;
}

static dlc_status make_cell(machine *m, const dlc_value *value)
{
    cell *c = &m->cells[value->id];
    free(c->bytes); /* of the iteration before */
    free(c->wide);
    c->bytes = NULL;
    c->wide = NULL;
    if (dlc_is_float(value->type.dtype))
        return allocate(m, value, sizeof(double), (void **)&c->wide);
    return allocate(m, value, dlc_dtype_bytes(value->type.dtype), &c->bytes);
}

static void drop_cell(machine *m, const dlc_value *value)
{
    cell *c = &m->cells[value->id];
    if (c->readers && --c->readers)
        return;
    free(c->bytes);
    free(c->wide);
    *c = (cell){0};
}

/* Bytes of a value in its own dtype: its memory, or a rounded copy of the wide one in the scratch
 * arena. */
static dlc_status narrow(machine *m, const dlc_value *value, void **result, size_t *size_bytes)
{
    const cell *c = &m->cells[value->id];
    int64_t dims[DLC_MAX_RANK];
    size_t nelems, element_bytes = dlc_dtype_bytes(value->type.dtype);
    DLC_TRY(dims_of(m, value, dims, &nelems));
    *size_bytes = nelems * element_bytes;
    *result = c->bytes;
    if (!c->wide)
        return DLC_OK;
    char *bytes = dlc_arena_array(m->scratch, nelems, element_bytes, 16);
    for (size_t i = 0; i < nelems; i++)
        dlc_scalar_write(value->type.dtype, bytes + i * element_bytes,
                         (dlc_scalar){.f = dlc_round_to(value->type.dtype, c->wide[i])});
    *result = bytes;
    return DLC_OK;
}

static dlc_status widen(machine *m, const dlc_value *value, const void *bytes)
{
    cell *c = &m->cells[value->id];
    int64_t dims[DLC_MAX_RANK];
    size_t nelems, element_bytes = dlc_dtype_bytes(value->type.dtype);
    DLC_TRY(dims_of(m, value, dims, &nelems));
    for (size_t i = 0; c->wide && i < nelems; i++)
        c->wide[i] = dlc_scalar_read(value->type.dtype, (const char *)bytes + i * element_bytes).f;
    if (!c->wide && nelems)
        memcpy(c->bytes, bytes, nelems * element_bytes);
    return DLC_OK;
}

/* ---- symbols and conditions ---- */

static int is_known(const machine *m, dlc_expr expr)
{
    const dlc_pool *pool = m->graph->pool;
    dlc_mark mark = dlc_arena_mark(m->scratch);
    uint8_t *marks = dlc_new_array(m->scratch, uint8_t, pool->nodes.n);
    dlc_expr_reach(pool, expr, marks);
    int known = 1;
    for (uint32_t i = 1; i <= expr; i++)
        if (marks[i] && pool->nodes.data[i].op == DLC_EXPR_SYM)
            known &= m->is_bound[pool->nodes.data[i].imm.id];
    dlc_arena_release(m->scratch, mark);
    return known;
}

/* Every condition whose symbols are known by now, once. */
static dlc_status check_conditions(machine *m)
{
    for (uint32_t i = 0; i < m->graph->conditions.n; i++) {
        const dlc_condition *condition = &m->graph->conditions.data[i];
        if (m->is_checked[i] || !is_known(m, condition->holds))
            continue;
        m->is_checked[i] = 1;
        if (!dlc_expr_eval(m->graph->pool, condition->holds, m->symbols))
            return dlc_diag_fail(diag_of(m), DLC_INVALID, m->graph->file, "%s", condition->text);
    }
    return DLC_OK;
}

static dlc_status bind(machine *m, uint32_t symbol, int64_t value)
{
    const dlc_symbol *row = &m->graph->symbols.data[symbol];
    int64_t over = row->value && row->value->def && row->value->def->op == DLC_OP_LOOP; /* behind the last iteration */
    if (value < row->lo || value - over > row->hi)
        return dlc_diag_fail(diag_of(m), DLC_INVALID, m->graph->file,
                             "'%s' is %" PRId64 ", outside %" PRId64 "…%" PRId64, row->name, value,
                             row->lo, row->hi);
    if (m->is_bound[symbol]) /* another iteration */
        memset(m->is_checked, 0, m->graph->conditions.n);
    m->symbols[symbol] = value;
    m->is_bound[symbol] = 1;
    return DLC_OK;
}

/* Symbols that are elements of a value that `node` just computed, or of an input (NULL). */
static dlc_status bind_data(machine *m, const dlc_node *node)
{
    for (uint32_t s = 0; s < m->graph->symbols.n; s++) {
        const dlc_symbol *row = &m->graph->symbols.data[s];
        if (row->bind != DLC_BIND_DATA || !row->value || row->value->def != node)
            continue;
        const dlc_dtype dtype = row->value->type.dtype;
        const char *bytes = m->cells[row->value->id].bytes;
        int64_t dims[DLC_MAX_RANK];
        size_t nelems;
        DLC_TRY(dims_of(m, row->value, dims, &nelems));
        if (row->index >= nelems)
            return dlc_diag_fail(diag_of(m), DLC_INVALID, m->graph->file,
                                 "'%s' is element %" PRIu32 " of '%s', which has %zu", row->name,
                                 row->index, row->value->name, nelems);
        DLC_TRY(bind(
            m, s, dlc_scalar_read(dtype, bytes + (size_t)row->index * dlc_dtype_bytes(dtype)).i));
    }
    return check_conditions(m);
}

static dlc_status show(machine *m, const dlc_node *node, const dlc_value *value);

/* ---- inputs ---- */

static const dlcrt_tensor *find_input(const struct interpret_args *args, uint32_t i,
                                      const char *name)
{
    for (uint32_t k = 0; k < args->ninputs; k++)
        if (args->inputs[k].name && !strcmp(args->inputs[k].name, name))
            return &args->inputs[k];
    return i < args->ninputs && !args->inputs[i].name ? &args->inputs[i] : NULL;
}

static dlc_status refuse_input(machine *m, const dlc_value *value, const dlcrt_tensor *tensor)
{
    dlc_str text = {0};
    dlc_str_printf(&text, "input '%s' is %s[", value->name, dlc_dtypes[tensor->dtype].text);
    for (uint32_t d = 0; d < tensor->rank; d++)
        dlc_str_printf(&text, "%s%" PRId64, d ? "," : "", tensor->dims[d]);
    dlc_str_add(&text, "], where ");
    dlc_type_print(m->graph, &value->type, &text);
    dlc_status status =
        dlc_diag_fail(diag_of(m), DLC_INVALID, m->graph->file, "%s is wanted", dlc_str_text(&text));
    dlc_str_deinit(&text);
    return status;
}

static dlc_status bind_input_dims(machine *m, const dlc_value *value, const dlcrt_tensor *tensor)
{
    if (tensor->dtype != value->type.dtype || tensor->rank != value->type.rank)
        return refuse_input(m, value, tensor);
    for (uint32_t s = 0; s < m->graph->symbols.n; s++) {
        const dlc_symbol *row = &m->graph->symbols.data[s];
        if (row->bind == DLC_BIND_INPUT_DIM && row->value == value && !m->is_bound[s] &&
            row->index < tensor->rank)
            DLC_TRY(bind(m, s, tensor->dims[row->index]));
    }
    return DLC_OK;
}

static dlc_status check_input_dims(machine *m, const dlc_value *value, const dlcrt_tensor *tensor)
{
    for (uint32_t d = 0; d < tensor->rank; d++)
        if (dlc_expr_eval(m->graph->pool, value->type.dims[d], m->symbols) != tensor->dims[d])
            return refuse_input(m, value, tensor);
    return DLC_OK;
}

/* --- strings: numbers inside, pointers outside --- */

static dlc_status open_strings(machine *m)
{
    dlcrt_strings *strings = &m->model->strings;
    dlcrt_strings_free(strings); /* those of the run before */
    for (uint32_t i = 0; i < m->graph->strings.all.n; i++)
        if (dlcrt_strings_fix(strings, m->graph->strings.all.data[i]) != DLC_OK)
            return dlc_diag_fail(diag_of(m), DLC_LIMIT, m->graph->file, "%s", dlcrt_last_error());
    return DLC_OK;
}

static dlc_status take_strings(machine *m, const dlc_value *value, const void *data)
{
    int64_t dims[DLC_MAX_RANK], *numbers = m->cells[value->id].bytes;
    size_t nelems;
    DLC_TRY(dims_of(m, value, dims, &nelems));
    for (size_t i = 0; i < nelems; i++) {
        const char *text;
        memcpy(&text, (const char *)data + i * sizeof text, sizeof text);
        if (!text)
            return dlc_diag_fail(diag_of(m), DLC_INVALID, m->graph->file, "input '%s': element %zu is NULL, where a string is wanted",
                                 value->name, i);
        if (dlcrt_strings_add(&m->model->strings, text, strlen(text), &numbers[i]) != DLC_OK)
            return dlc_diag_fail(diag_of(m), DLC_LIMIT, m->graph->file, "%s", dlcrt_last_error());
    }
    return DLC_OK;
}

static dlc_status give_strings(machine *m, const dlcrt_tensor *output)
{
    for (size_t i = 0; i < output->size_bytes / sizeof(int64_t); i++) {
        int64_t number;
        memcpy(&number, (const char *)output->data + i * sizeof number, sizeof number);
        const char *text = dlcrt_strings_at(&m->model->strings, number);
        if (!text)
            return dlc_diag_fail(diag_of(m), DLC_INVALID, m->graph->file, "output '%s': there is no string %" PRId64, output->name,
                                 number);
        memcpy((char *)output->data + i * sizeof text, &text, sizeof text);
    }
    return DLC_OK;
}

static dlc_status load_inputs(machine *m, const struct interpret_args *args)
{
    dlc_graph *graph = m->graph;
    const dlcrt_tensor **found =
        dlc_new_array(m->scratch, const dlcrt_tensor *, graph->inputs.n + 1);
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const dlc_value *value = graph->inputs.data[i];
        found[i] = find_input(args, i, value->name);
        if (!found[i])
            return dlc_diag_fail(diag_of(m), DLC_INVALID, graph->file, "input '%s' is missing",
                                 value->name);
        DLC_TRY(bind_input_dims(m, value, found[i]));
    }
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const dlc_value *value = graph->inputs.data[i];
        DLC_TRY(check_input_dims(m, value, found[i]));
        DLC_TRY(make_cell(m, value));
        DLC_TRY(dlc_is_text(value->type.dtype) ? take_strings(m, value, found[i]->data)
                                               : widen(m, value, found[i]->data));
        if (m->model->see)
            DLC_TRY(show(m, NULL, value));
    }
    return bind_data(m, NULL);
}

/* ---- nodes ---- */

static void bind_buffers(machine *m, const dlc_node_kernel *nk, void **buffers, double **wide)
{
    for (uint32_t i = 0; i < nk->values.n; i++) {
        const dlc_value *value = nk->values.data[i];
        const cell *c = &m->cells[value->id];
        buffers[i] = value->data ? (void *)(uintptr_t)value->data->bytes : c->bytes;
        wide[i] = value->data ? NULL : c->wide;
    }
}

static dlc_status run_kernel(machine *m, dlc_node *node)
{
    dlc_node_kernel nk = {0};
    DLC_TRY(dlc_node_kernel_of(m->graph, node, m->scratch, &nk));
    const dlc_kernel *kernel = nk.kernel;
    void **buffers = dlc_new_array(m->scratch, void *, nk.values.n + 1);
    double **wide = dlc_new_array(m->scratch, double *, nk.values.n + 1);
    int64_t *symbols = dlc_new_array(m->scratch, int64_t, kernel->symbols.n + 1);
    bind_buffers(m, &nk, buffers, wide);
    for (uint32_t i = 0; i < kernel->symbols.n; i++)
        symbols[i] = dlc_expr_eval(m->graph->pool, kernel->symbols.data[i].outer, m->symbols);
    dlc_interp_args args = {.buffers = buffers, .wide = wide, .symbols = symbols};
    dlc_status status = dlc_interp_run(kernel, DLC_WIDE, &args, diag_of(m));
    return status == DLC_INVALID
               ? dlc_fail(m->graph, node, status, "its indices are out of range for these inputs")
               : status;
}

/* ---- opaque nodes: the runtime's own C, on narrow data ---- */

static dlc_status operand_of(machine *m, const dlc_value *value, dlcrt_operand *operand)
{
    size_t nelems, size_bytes;
    *operand = (dlcrt_operand){.dtype = value->type.dtype, .rank = value->type.rank};
    DLC_TRY(dims_of(m, value, operand->dims, &nelems));
    if (!value->data)
        return narrow(m, value, &operand->data, &size_bytes);
    operand->data = (void *)(uintptr_t)value->data->bytes;
    return DLC_OK;
}

/* An output nobody asked for has the shape of one that somebody did, and elements of at most 8
 * bytes. */
static void absent_operand(machine *m, const dlcrt_operand *like, dlcrt_operand *operand)
{
    size_t nelems = 1;
    *operand = *like;
    operand->dtype = DLC_I64;
    for (uint32_t d = 0; d < like->rank; d++)
        nelems *= (size_t)like->dims[d];
    operand->data = dlc_arena_array(m->scratch, nelems + 1, sizeof(int64_t), 16);
}

static dlc_status opaque_outputs(machine *m, const dlc_node *node, dlcrt_operand *operands)
{
    const dlcrt_operand *present = NULL;
    for (uint32_t i = 0; i < node->noutputs; i++) {
        if (!node->outputs[i])
            continue;
        DLC_TRY(make_cell(m, node->outputs[i]));
        DLC_TRY(operand_of(m, node->outputs[i], &operands[i]));
        present = &operands[i];
    }
    for (uint32_t i = 0; i < dlc_ops[node->op].nout && present; i++)
        if (i >= node->noutputs || !node->outputs[i])
            absent_operand(m, present, &operands[i]);
    return DLC_OK;
}

static dlc_status bind_opaque(machine *m, const dlc_node *node, const dlcrt_opaque_info *info,
                              const dlcrt_opaque_args *args)
{
    int64_t value = 0;
    if (!info->count)
        return DLC_OK;
    if (info->count(args, &value) != DLC_OK)
        return dlc_fail(m->graph, node, DLC_INVALID, "%s", dlcrt_last_error());
    DLC_TRY(bind(m, (uint32_t)dlc_node_int(node, DLC_ATTR_SYMBOL, 0), value));
    return check_conditions(m);
}

static dlc_status run_opaque(machine *m, dlc_node *node)
{
    dlc_opaque_call call;
    if (!dlc_opaque_call_of(node, &call))
        return dlc_fail(m->graph, node, DLC_UNSUPPORTED, "the interpreter has no '%s'",
                        dlc_ops[node->op].text);
    dlcrt_operand *operands =
        dlc_new_array(m->scratch, dlcrt_operand, node->ninputs + dlc_ops[node->op].nout + 1);
    for (uint32_t i = 0; i < node->ninputs; i++)
        DLC_TRY(operand_of(m, node->inputs[i], &operands[i]));
    dlcrt_opaque_args args = {.operands = operands,
                              .attrs = call.attrs,
                              .name = node->origin ? node->origin->name : dlc_ops[node->op].text,
                              .strings = &m->model->strings};
    DLC_TRY(bind_opaque(m, node, &dlcrt_opaques[call.kind], &args));
    DLC_TRY(opaque_outputs(m, node, operands + node->ninputs));
    if (dlcrt_opaques[call.kind].run(&args) != DLC_OK)
        return dlc_fail(m->graph, node, DLC_INVALID, "%s", dlcrt_last_error());
    for (uint32_t i = 0; i < node->noutputs; i++)
        if (node->outputs[i])
            DLC_TRY(widen(m, node->outputs[i], operands[node->ninputs + i].data));
    return bind_data(m, node);
}

/* ---- regions ---- */

/* A copy of the value's elements, in `copy`; its dimensions are those of `as`. */
static dlc_status fetch(machine *m, const dlc_value *from, const dlc_value *as, cell *copy)
{
    const cell *c = &m->cells[from->id];
    int64_t dims[DLC_MAX_RANK];
    size_t nelems, wanted, element_bytes = dlc_dtype_bytes(from->type.dtype);
    int is_wide = dlc_is_float(from->type.dtype);
    DLC_TRY(dims_of(m, from, dims, &nelems));
    DLC_TRY(dims_of(m, as, dims, &wanted));
    if (nelems != wanted)
        return dlc_diag_fail(diag_of(m), DLC_INVALID, m->graph->file, "'%s' has %zu elements, '%s' takes %zu", from->name, nelems,
                             as->name, wanted);
    void *bytes = NULL;
    DLC_TRY(allocate(m, from, is_wide ? sizeof(double) : element_bytes, &bytes));
    *copy = (cell){.bytes = is_wide ? NULL : bytes, .wide = is_wide ? bytes : NULL};
    for (size_t i = 0; is_wide && i < nelems; i++)
        copy->wide[i] = c->wide ? c->wide[i]
                                : dlc_scalar_read(from->type.dtype, (const char *)from->data->bytes + i * element_bytes).f;
    if (!is_wide && nelems)
        memcpy(bytes, from->data ? from->data->bytes : c->bytes, nelems * element_bytes);
    return DLC_OK;
}

static void put(machine *m, const dlc_value *value, const cell *made)
{
    cell *c = &m->cells[value->id];
    free(c->bytes);
    free(c->wide);
    c->bytes = made->bytes;
    c->wide = made->wide;
}

static dlc_status copy_value(machine *m, const dlc_value *from, const dlc_value *to)
{
    cell copy;
    DLC_TRY(fetch(m, from, to, &copy));
    put(m, to, &copy);
    return DLC_OK;
}

static int holds(const machine *m, const dlc_node *opener)
{
    return dlc_expr_eval(m->graph->pool, dlc_region_holds(opener), m->symbols) != 0;
}

/* The loop's counter, and what is read from its states; *next: its first node, or what comes behind it. */
static dlc_status count_to(machine *m, const dlc_node *loop, int64_t count, dlc_node **next)
{
    uint32_t n;
    dlc_node **states = dlc_region_nodes(loop, DLC_OP_STATE, m->scratch, &n);
    DLC_TRY(bind(m, (uint32_t)dlc_node_int(loop, DLC_ATTR_SYMBOL, 0), count));
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(bind_data(m, states[i]));
    DLC_TRY(check_conditions(m));
    *next = holds(m, loop) ? loop->next : dlc_region_closer(loop)->next;
    return DLC_OK;
}

static dlc_status begin_loop(machine *m, const dlc_node *loop, dlc_node **next)
{
    uint32_t n;
    dlc_node **states = dlc_region_nodes(loop, DLC_OP_STATE, m->scratch, &n);
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(copy_value(m, states[i]->inputs[1], states[i]->outputs[0]));
    return count_to(m, loop, 0, next);
}

static dlc_status stack_row(machine *m, const dlc_node *stack, int64_t iteration, int64_t row)
{
    const dlc_value *to = stack->outputs[0];
    cell *c = &m->cells[to->id], one;
    int64_t dims[DLC_MAX_RANK];
    size_t nelems, element_bytes = dlc_dtype_bytes(to->type.dtype);
    DLC_TRY(dims_of(m, stack->inputs[1], dims, &nelems));
    if (!iteration)
        DLC_TRY(make_cell(m, to));
    DLC_TRY(fetch(m, stack->inputs[1], stack->inputs[1], &one));
    if (nelems && one.wide)
        memcpy(c->wide + (size_t)row * nelems, one.wide, nelems * sizeof *one.wide);
    else if (nelems)
        memcpy((char *)c->bytes + (size_t)row * nelems * element_bytes, one.bytes, nelems * element_bytes);
    free(one.bytes);
    free(one.wide);
    return DLC_OK;
}

static dlc_status stack_rows(machine *m, const dlc_node *done, int64_t row)
{
    uint32_t n;
    dlc_node **stacks = dlc_region_nodes(done, DLC_OP_STACK, m->scratch, &n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t dims[DLC_MAX_RANK];
        size_t nelems;
        DLC_TRY(dims_of(m, stacks[i]->outputs[0], dims, &nelems));
        if (row >= dims[0])
            return dlc_fail(m->graph, stacks[i], DLC_INVALID, "iteration %" PRId64 " of %" PRId64, row, dims[0]);
        DLC_TRY(stack_row(m, stacks[i], row, dlc_node_int(stacks[i], DLC_ATTR_REVERSE, 0) ? dims[0] - 1 - row : row));
    }
    return DLC_OK;
}

/* All states change at once: each may be another's next. */
static dlc_status end_iteration(machine *m, const dlc_node *done, dlc_node **next)
{
    const dlc_node *loop = dlc_region_opener(done);
    int64_t count = m->symbols[dlc_node_int(loop, DLC_ATTR_SYMBOL, 0)];
    uint32_t n;
    dlc_node **finals = dlc_region_nodes(done, DLC_OP_FINAL, m->scratch, &n);
    cell *cells = dlc_new_array(m->scratch, cell, n + 1);
    DLC_TRY(stack_rows(m, done, count));
    for (uint32_t i = 0; i < n; i++)
        DLC_TRY(fetch(m, finals[i]->inputs[2], finals[i]->inputs[1], &cells[i]));
    for (uint32_t i = 0; i < n; i++)
        put(m, finals[i]->inputs[1], &cells[i]);
    return count_to(m, loop, count + 1, next);
}

static dlc_status run_mark(machine *m, dlc_node *node, dlc_node **next)
{
    if (node->op == DLC_OP_LOOP)
        return begin_loop(m, node, next);
    if (node->op == DLC_OP_IF) {
        m->is_taken[node->id] = (uint8_t)holds(m, node);
        *next = m->is_taken[node->id] ? node->next : dlc_region_closer(node)->next;
    }
    if (node->op == DLC_OP_ELSE) /* the other branch is done */
        *next = dlc_region_closer(node);
    if (node->op == DLC_OP_DONE && dlc_region_opener(node)->op == DLC_OP_LOOP)
        return end_iteration(m, node, next);
    return DLC_OK;
}

static dlc_status run_either(machine *m, const dlc_node *node)
{
    const dlc_node *otherwise = dlc_region_opener(node->inputs[0]->def);
    const dlc_value *from = node->inputs[m->is_taken[dlc_region_opener(otherwise)->id] ? 1 : 2];
    for (uint32_t s = 0; s < m->graph->symbols.n; s++) {
        const dlc_symbol *row = &m->graph->symbols.data[s];
        if (row->bind == DLC_BIND_RESULT && row->value == node->outputs[0])
            DLC_TRY(bind(m, s, dlc_expr_eval(m->graph->pool, from->type.dims[row->index], m->symbols)));
    }
    return copy_value(m, from, node->outputs[0]);
}

/* False: the node has nothing to do with regions. */
static int is_of_region(const dlc_node *node)
{
    return node->op == DLC_OP_STATE || node->op == DLC_OP_FINAL || node->op == DLC_OP_STACK || node->op == DLC_OP_EITHER;
}

static dlc_status run_of_region(machine *m, const dlc_node *node)
{
    if (node->op == DLC_OP_STATE)
        return DLC_OK; /* its mark has set it */
    if (node->op == DLC_OP_FINAL)
        DLC_TRY(copy_value(m, node->inputs[1], node->outputs[0]));
    if (node->op == DLC_OP_EITHER)
        DLC_TRY(run_either(m, node));
    const cell *c = &m->cells[node->outputs[0]->id];
    if (!c->bytes && !c->wide)
        DLC_TRY(make_cell(m, node->outputs[0])); /* of no iteration */
    return bind_data(m, node);
}

/* ---- watching ---- */

static dlc_status show(machine *m, const dlc_node *node, const dlc_value *value)
{
    const cell *c = &m->cells[value->id];
    const dlc_origin *origin = node ? node->origin : NULL;
    dlc_watched seen = {.value = value->name,
                     .node = origin ? origin->name : "",
                     .op = origin ? origin->op_type : node ? "" : "input",
                     .does = node ? dlc_ops[node->op].text : "input",
                     .dtype = value->type.dtype,
                     .rank = value->type.rank,
                     .wide = c->wide};
    void *rounded;
    size_t size_bytes;
    DLC_TRY(dims_of(m, value, seen.dims, &seen.nelems));
    DLC_TRY(narrow(m, value, &rounded, &size_bytes));
    if (dlc_is_text(value->type.dtype)) { /* pointers, as in outputs */
        dlcrt_tensor copy = {.name = value->name, .data = dlc_arena_alloc(m->scratch, size_bytes + 1, 16), .size_bytes = size_bytes};
        if (size_bytes)
            memcpy(copy.data, rounded, size_bytes);
        DLC_TRY(give_strings(m, &copy));
        rounded = copy.data;
    }
    seen.bytes = rounded;
    m->model->see(m->model->see_user, &seen);
    return DLC_OK;
}

static dlc_status show_outputs(machine *m, const dlc_node *node)
{
    for (uint32_t i = 0; m->model->see && i < node->noutputs; i++)
        if (node->outputs[i] && node->op != DLC_OP_CONSTANT)
            DLC_TRY(show(m, node, node->outputs[i]));
    return DLC_OK;
}

void dlc_model_watch(dlc_model *model, void (*see)(void *user, const dlc_watched *seen), void *user)
{
    model->see = see;
    model->see_user = user;
}

/* ---- the whole ---- */

static dlc_status run_node(machine *m, dlc_node *node)
{
    if (node->op == DLC_OP_CONSTANT)
        return DLC_OK;
    if (is_of_region(node))
        return run_of_region(m, node);
    if (dlc_op_is_opaque(node->op))
        return run_opaque(m, node);
    for (uint32_t i = 0; i < node->noutputs; i++)
        if (node->outputs[i])
            DLC_TRY(make_cell(m, node->outputs[i]));
    DLC_TRY(run_kernel(m, node));
    return bind_data(m, node);
}

static void release_node(machine *m, const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i])
            drop_cell(m, node->inputs[i]);
    for (uint32_t i = 0; i < node->noutputs; i++)
        if (node->outputs[i] && !dlc_value_is_used(node->outputs[i]))
            drop_cell(m, node->outputs[i]);
}

static dlc_status check_layout(machine *m, const dlc_value *value)
{
    if (!value || !value->layout->nparts)
        return DLC_OK;
    return dlc_diag_fail(diag_of(m), DLC_UNSUPPORTED, m->graph->file,
                         "value '%s' has a layout of its own; the interpreter runs graphs before "
                         "the pass 'layout'",
                         value->name);
}

static dlc_status check_layouts(machine *m)
{
    for (uint32_t i = 0; i < m->graph->inputs.n; i++)
        DLC_TRY(check_layout(m, m->graph->inputs.data[i]));
    for (const dlc_node *node = m->graph->first; node; node = node->next)
        for (uint32_t i = 0; i < node->noutputs; i++)
            DLC_TRY(check_layout(m, node->outputs[i]));
    return DLC_OK;
}

static dlc_status run_nodes(machine *m)
{
    for (dlc_node *node = m->graph->first, *next; node; node = next) {
        dlc_mark mark = dlc_arena_mark(m->scratch);
        next = node->next;
        DLC_TRY(dlc_op_is_mark(node->op) ? run_mark(m, node, &next) : run_node(m, node));
        if (!dlc_op_is_mark(node->op))
            DLC_TRY(show_outputs(m, node));
        if (!m->has_regions)
            release_node(m, node);
        dlc_arena_release(m->scratch, mark);
    }
    return DLC_OK;
}

/* ---- outputs ---- */

static dlc_status describe_output(machine *m, const dlc_output_value *output, dlcrt_tensor *tensor)
{
    const dlc_type *type = &output->value->type;
    size_t nelems;
    *tensor = (dlcrt_tensor){.name = output->name, .dtype = type->dtype, .rank = type->rank};
    DLC_TRY(dims_of(m, output->value, tensor->dims, &nelems));
    if (!dlc_mul_size(nelems, dlc_dtype_bytes(type->dtype), &tensor->size_bytes))
        return DLC_LIMIT;
    return DLC_OK;
}

static dlc_status copy_outputs(machine *m, dlcrt_tensor *outputs, uint32_t noutputs)
{
    const dlc_graph *graph = m->graph;
    size_t total = 64, at = 0;
    for (uint32_t i = 0; i < noutputs; i++) {
        DLC_TRY(describe_output(m, &graph->outputs.data[i], &outputs[i]));
        if (!dlc_add_size(total, outputs[i].size_bytes + 64, &total))
            return DLC_LIMIT;
    }
    free(m->model->output_block);
    char *block = m->model->output_block = malloc(total);
    if (!block)
        return dlc_diag_fail(diag_of(m), DLC_LIMIT, graph->file,
                             "%zu bytes of outputs do not fit into memory", total);
    for (uint32_t i = 0; i < noutputs; i++) {
        const dlc_value *value = graph->outputs.data[i].value;
        void *bytes = value->data ? (void *)(uintptr_t)value->data->bytes : NULL;
        size_t size_bytes = outputs[i].size_bytes;
        if (!bytes)
            DLC_TRY(narrow(m, value, &bytes, &size_bytes));
        outputs[i].data = block + at;
        if (size_bytes)
            memcpy(outputs[i].data, bytes, size_bytes);
        if (dlc_is_text(outputs[i].dtype))
            DLC_TRY(give_strings(m, &outputs[i]));
        at += (size_bytes + 63) / 64 * 64;
    }
    return DLC_OK;
}

static dlc_status interpret(dlc_model *model, void *opaque)
{
    struct interpret_args *args = opaque;
    machine *m = &args->machine;
    dlc_graph *graph = m->graph;
    m->scratch = model->scratch;
    m->symbols = dlc_new_array(m->scratch, int64_t, graph->symbols.n + 1);
    m->is_bound = dlc_new_array(m->scratch, uint8_t, graph->symbols.n + 1);
    m->is_checked = dlc_new_array(m->scratch, uint8_t, graph->conditions.n + 1);
    m->is_taken = dlc_new_array(m->scratch, uint8_t, graph->nnodes + 1);
    if (args->noutputs != graph->outputs.n || args->ninputs > graph->inputs.n)
        return dlc_diag_fail(&model->diag, DLC_USAGE, graph->file,
                             "%u inputs and %u outputs are given, where the model has %u and %u",
                             args->ninputs, args->noutputs, graph->inputs.n, graph->outputs.n);
    for (const dlc_node *node = graph->first; node; node = node->next) {
        m->has_regions |= dlc_op_is_mark(node->op);
        for (uint32_t i = 0; i < node->ninputs; i++)
            if (node->inputs[i])
                m->cells[node->inputs[i]->id].readers++;
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        m->cells[graph->outputs.data[i].value->id].readers++;
    DLC_TRY(check_layouts(m));
    DLC_TRY(open_strings(m));
    DLC_TRY(load_inputs(m, args));
    DLC_TRY(run_nodes(m));
    return copy_outputs(m, args->outputs, args->noutputs);
}

dlc_status dlc_model_interpret(dlc_model *model, const dlcrt_tensor *inputs, uint32_t ninputs,
                               dlcrt_tensor *outputs, uint32_t noutputs)
{
    dlc_graph *graph = model->graph;
    if (!graph)
        return model->ctx.module ? dlc_model_tell(model, dlc_model_needs_graph(model, "the interpreter runs graphs")) : DLC_USAGE;
    struct interpret_args args = {
        inputs, ninputs, outputs, noutputs, {.model = model, .graph = graph}};
    machine *m = &args.machine;
    m->cells = calloc(graph->nvalues + 1, sizeof *m->cells);
    if (!m->cells)
        return DLC_LIMIT;
    dlc_mark mark = dlc_arena_mark(model->scratch);
    if (!model->options.max_memory_bytes) /* running may take what the machine has */
        model->budget.most_bytes = (size_t)dlc_memory_budget(UINT64_MAX);
    dlc_status status = dlc_model_guard(model, interpret, &args);
    for (uint32_t i = 0; i < graph->nvalues; i++) {
        free(m->cells[i].bytes);
        free(m->cells[i].wide);
    }
    free(m->cells);
    dlc_arena_release(model->scratch, mark);
    return status;
}

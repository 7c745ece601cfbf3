/*
 * The plan: the module's tables, flattened. Tables grow side by side while the size program grows
 * with them; at the end the program is ordered by phase, every cell number is replaced by its new
 * one, and the tables are laid one after another.
 *
 * Phases: each BIND step, and each opaque step with a symbol, opens one. A symbol belongs to the
 * phase that binds it.
 */
#include "package/plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "package/size.h"
#include "ir/graph/opaque.h"

#define DLC_PRODUCER "dlc 0.1.0"

typedef struct {
    const dlc_module *module;
    const dlc_graph *graph;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_size_program size;
    uint32_t *symbol_phase;
    uint32_t nphases, phase; /* phase: where the steps are */
    const dlc_plan_cuda *cuda;
    dlc_pieces *constants;
    dlc_vec(uint64_t) module_constants; /* offsets of the module's, in its order */
    dlc_blob *result;
    dlc_vec(dlc_plan_tensor) inputs;
    dlc_vec(dlc_plan_tensor) outputs;
    dlc_vec(dlc_plan_tensor) tensors;
    dlc_vec(dlc_plan_symbol) symbols;
    dlc_vec(dlc_plan_phase) phases;
    dlc_vec(dlc_plan_condition) conditions;
    dlc_vec(dlc_plan_kernel) kernels;
    dlc_vec(dlc_plan_binary) binaries;
    dlc_vec(dlc_plan_step) steps;
    dlc_vec(dlc_plan_ref) refs;
    dlc_ids cells;
    dlc_vec(int64_t) attrs;
    dlc_str strings;
    uint32_t *host_bytes; /* by phase: cell of the host memory of steps on the CPU */
    uint32_t *arena_end;  /* by phase: cell of the end of all values whose place is known by then */
    uint32_t
        *extra_arena; /* by phase: cell of the end of what steps need past that, or UINT32_MAX */
} builder;

static dlc_status defect(const builder *b, const char *place, const char *text)
{
    return dlc_diag_fail(b->diag, DLC_INTERNAL, b->graph->file, "%s: %s", place, text);
}

static uint32_t add_string(builder *b, const char *text)
{
    uint32_t at = (uint32_t)b->strings.n;
    dlc_str_addn(&b->strings, text ? text : "", (text ? strlen(text) : 0) + 1);
    return at;
}

/* --- sizes --- */
static uint32_t mul(builder *b, uint32_t x, uint32_t y)
{
    return dlc_size_op2(&b->size, DLC_SIZE_MUL, x, y);
}

static uint32_t add(builder *b, uint32_t x, uint32_t y)
{
    return dlc_size_op2(&b->size, DLC_SIZE_ADD, x, y);
}

static uint32_t row_major_bytes(builder *b, const dlc_type *type)
{
    uint32_t bytes = dlc_size_const(&b->size, dlc_dtype_bytes(type->dtype));
    for (uint32_t i = 0; i < type->rank; i++)
        bytes = mul(b, bytes, dlc_size_graph(&b->size, type->dims[i]));
    return bytes;
}

static dlc_plan_tensor make_tensor(builder *b, const char *name, const dlc_type *type)
{
    dlc_str text = {0};
    dlc_type_print(b->graph, type, &text);
    dlc_plan_tensor tensor = {
        .name = add_string(b, name),
        .type_text = add_string(b, dlc_str_text(&text)),
        .dtype = (uint8_t)type->dtype,
        .rank = type->rank,
        .dims = b->cells.n,
        .size_bytes = row_major_bytes(b, type),
    };
    dlc_str_deinit(&text);
    for (uint32_t i = 0; i < type->rank; i++)
        dlc_vec_push(b->arena, &b->cells, dlc_size_graph(&b->size, type->dims[i]));
    return tensor;
}

/* --- inputs, outputs, symbols, conditions --- */
static int is_row_major(const dlc_value *value)
{
    dlc_layout plain = {0};
    if (value->layout.nparts == 0)
        return 1;
    uint8_t order[DLC_MAX_RANK];
    for (uint8_t i = 0; i < value->type.rank; i++)
        order[i] = i;
    plain = dlc_layout_permuted(value->type.rank, order);
    return dlc_layout_equal(&value->layout, &plain);
}

static dlc_status add_interface(builder *b)
{
    for (uint32_t i = 0; i < b->graph->inputs.n; i++) {
        const dlc_value *value = b->graph->inputs.data[i];
        if (!is_row_major(value))
            return defect(b, value->name, "an input of the model is not row-major");
        dlc_plan_tensor tensor = make_tensor(b, value->name, &value->type);
        dlc_vec_push(b->arena, &b->inputs, tensor);
    }
    for (uint32_t i = 0; i < b->graph->outputs.n; i++) {
        const dlc_output_value *output = &b->graph->outputs.data[i];
        if (!is_row_major(output->value))
            return defect(b, output->name, "an output of the model is not row-major");
        dlc_plan_tensor tensor = make_tensor(b, output->name, &output->value->type);
        dlc_vec_push(b->arena, &b->outputs, tensor);
    }
    return DLC_OK;
}

static uint32_t input_index(const builder *b, const dlc_value *value)
{
    for (uint32_t i = 0; i < b->graph->inputs.n; i++)
        if (b->graph->inputs.data[i] == value)
            return i;
    return UINT32_MAX;
}

/* The symbol an opaque node finds out, or UINT32_MAX. */
static uint32_t opaque_symbol(const dlc_step *step)
{
    const dlc_attr *attr =
        step->kind == DLC_STEP_OPAQUE ? dlc_node_attr(step->node, DLC_ATTR_SYMBOL) : NULL;
    return attr ? (uint32_t)attr->as.i : UINT32_MAX;
}

static uint32_t bound_symbol(const dlc_step *step)
{
    return step->kind == DLC_STEP_BIND ? step->symbol : opaque_symbol(step);
}

static void assign_phases(builder *b)
{
    b->symbol_phase = dlc_new_array(b->arena, uint32_t, b->graph->symbols.n + 1u);
    for (uint32_t i = 0; i < b->graph->symbols.n; i++)
        b->symbol_phase[i] = b->graph->symbols.data[i].bind == DLC_BIND_INPUT_DIM ? 0 : UINT32_MAX;
    b->nphases = 1;
    for (uint32_t i = 0; i < b->module->steps.n; i++) {
        uint32_t symbol = bound_symbol(&b->module->steps.data[i]);
        if (symbol < b->graph->symbols.n)
            b->symbol_phase[symbol] = b->nphases++;
    }
}

static dlc_status add_symbols(builder *b)
{
    for (uint32_t i = 0; i < b->graph->symbols.n; i++) {
        const dlc_symbol *symbol = &b->graph->symbols.data[i];
        dlc_plan_symbol row = {.name = add_string(b, symbol->name),
                               .lo = symbol->lo,
                               .hi = symbol->hi,
                               .bind = DLC_SYMBOL_DATA};
        if (symbol->bind == DLC_BIND_INPUT_DIM) {
            row.bind = DLC_SYMBOL_INPUT_DIM;
            row.input = input_index(b, symbol->value);
            row.index = symbol->index;
            if (row.input == UINT32_MAX)
                return defect(b, symbol->name, "the input that binds this symbol is not there");
        }
        dlc_vec_push(b->arena, &b->symbols, row);
    }
    return DLC_OK;
}

/* By phase: conditions are checked as soon as they can be. */
static void add_conditions(builder *b, uint32_t phase)
{
    b->phases.data[phase].conditions.first = b->conditions.n;
    for (uint32_t i = 0; i < b->graph->conditions.n; i++) {
        const dlc_condition *condition = &b->graph->conditions.data[i];
        uint32_t cell = dlc_size_graph(&b->size, condition->holds);
        if (b->size.phase.data[cell] != phase)
            continue;
        dlc_plan_condition row = {cell, add_string(b, condition->text)};
        dlc_vec_push(b->arena, &b->conditions, row);
        b->phases.data[phase].conditions.count++;
    }
}

/* --- constants --- */
int dlc_pieces_add(dlc_pieces *constants, const dlc_blob *piece, dlc_arena *arena, uint64_t *offset)
{
    size_t end;
    for (uint32_t i = 0; i < constants->pieces.n; i++) {
        const dlc_blob *other = &constants->pieces.data[i];
        *offset = constants->offsets.data[i];
        if (other->size_bytes == piece->size_bytes &&
            (other->bytes == piece->bytes ||
             !memcmp(other->bytes, piece->bytes, piece->size_bytes)))
            return 1;
    }
    *offset = constants->size_bytes;
    dlc_vec_push(arena, &constants->pieces, *piece);
    dlc_vec_push(arena, &constants->offsets, *offset);
    if (!dlc_add_size(constants->size_bytes, piece->size_bytes, &end) ||
        !dlc_add_size(end, 63, &end))
        return 0;
    constants->size_bytes = end / 64 * 64;
    return 1;
}

static dlc_status add_constant(builder *b, const void *bytes, size_t size_bytes, uint64_t *offset)
{
    dlc_blob piece = {bytes, size_bytes};
    return dlc_pieces_add(b->constants, &piece, b->arena, offset)
               ? DLC_OK
               : defect(b, b->graph->name, "the constants are larger than memory");
}

static dlc_status add_constants(builder *b)
{
    for (uint32_t i = 0; i < b->module->constants.n; i++) {
        const dlc_module_constant *constant = &b->module->constants.data[i];
        uint64_t offset;
        DLC_TRY(add_constant(b, constant->bytes, constant->size_bytes, &offset));
        dlc_vec_push(b->arena, &b->module_constants, offset);
    }
    return DLC_OK;
}

/* --- buffers --- */
/* Where the value lies; size_bytes: the cell of the bytes that this reader or writer may touch. */
static dlc_status value_ref(builder *b, const dlc_value *value, uint32_t size_bytes,
                            dlc_plan_ref *ref)
{
    const dlc_placement *placement = &b->module->placements[value->id];
    *ref = (dlc_plan_ref){.index = placement->index, .size_bytes = size_bytes};
    switch (placement->store) {
    case DLC_STORE_ARENA:
        ref->place = DLC_REF_ARENA;
        ref->index = dlc_size_graph(&b->size, placement->offset);
        return DLC_OK;
    case DLC_STORE_INPUT:
        ref->place = DLC_REF_INPUT;
        return DLC_OK;
    case DLC_STORE_OUTPUT:
        ref->place = DLC_REF_OUTPUT;
        return DLC_OK;
    case DLC_STORE_CONST:
        ref->place = DLC_REF_CONSTANT;
        ref->index = 0;
        ref->offset = b->module_constants.data[placement->index];
        return DLC_OK;
    default:
        return defect(b, value->name, "this value has no place in memory");
    }
}

/* Value i of a step: one of the module's constants, or where the planner put it. */
static dlc_status push_step_value(builder *b, const dlc_step *step, uint32_t i, uint32_t size_bytes)
{
    uint32_t constant = step->constants ? step->constants[i] : UINT32_MAX;
    int64_t known;
    dlc_plan_ref ref = {.place = DLC_REF_CONSTANT, .size_bytes = size_bytes};
    if (constant == UINT32_MAX) {
        DLC_TRY(value_ref(b, step->values[i], size_bytes, &ref));
    } else if (constant >= b->module->constants.n ||
               !dlc_size_is_const(&b->size, size_bytes, &known) ||
               (uint64_t)known > b->module->constants.data[constant].size_bytes) {
        return defect(b, step->name, "a constant is smaller than what this step reads");
    } else {
        ref.offset = b->module_constants.data[constant];
    }
    dlc_vec_push(b->arena, &b->refs, ref);
    return DLC_OK;
}

static dlc_status push_value(builder *b, const dlc_value *value, uint32_t size_bytes)
{
    dlc_plan_ref ref;
    DLC_TRY(value_ref(b, value, size_bytes, &ref));
    dlc_vec_push(b->arena, &b->refs, ref);
    return DLC_OK;
}

/* --- launches --- */
/* Where kernels run. */
static dlc_device device_of(const builder *b)
{
    return b->cuda->launches && !b->cuda->emulate ? DLC_DEVICE_CUDA : DLC_DEVICE_CPU;
}

static uint32_t buffer_bytes(builder *b, const dlc_kernel *kernel, const dlc_buffer *buffer,
                             const uint32_t *symbols)
{
    dlc_expr elems =
        dlc_layout_elems(kernel->pool, &buffer->layout, buffer->type.rank, buffer->type.dims);
    uint32_t cell = dlc_size_expr(&b->size, kernel->pool, elems, symbols);
    return mul(b, cell, dlc_size_const(&b->size, dlc_dtype_bytes(buffer->type.dtype)));
}

/* Scalar operations of a stage's value at one point; indices and guards of loads are not counted.
 */
static int64_t point_flops(const dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *arena)
{
    const dlc_pool *pool = kernel->pool;
    uint8_t *marks = dlc_new_array(arena, uint8_t, pool->nodes.n);
    int64_t flops = 0;
    for (uint32_t i = 0; i < dlc_reduces[stage->combine].naccs; i++) {
        marks[stage->value[i]] = 1;
        flops += stage->combine != DLC_REDUCE_NONE;
    }
    for (dlc_expr id = pool->nodes.n; id-- > 1;) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id] || node->op == DLC_EXPR_LOAD)
            continue;
        flops += dlc_exprs[node->op].cost;
        for (uint32_t i = 0; i < node->nargs; i++)
            marks[dlc_arg(pool, id, i)] = 1;
    }
    return flops;
}

static uint32_t kernel_flops(builder *b, const dlc_kernel *kernel, const uint32_t *symbols)
{
    uint32_t total = dlc_size_const(&b->size, 0);
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const dlc_stage *stage = &kernel->stages.data[i];
        uint32_t flops = dlc_size_const(&b->size, point_flops(kernel, stage, b->arena));
        for (uint32_t k = 0; k < stage->axes.n + stage->reduce.n; k++) {
            uint32_t axis =
                k < stage->axes.n ? stage->axes.data[k] : stage->reduce.data[k - stage->axes.n];
            flops =
                mul(b, flops,
                    dlc_size_expr(&b->size, kernel->pool, kernel->axes.data[axis].extent, symbols));
        }
        total = add(b, total, flops);
    }
    return total;
}

static dlc_status add_launch(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    const dlc_module_kernel *entry = &b->module->kernels.data[step->kernel];
    dlc_kernel *kernel = entry->kernel;
    uint32_t *symbols = dlc_new_array(b->arena, uint32_t, step->nsymbols + 1u);
    if (step->nvalues != kernel->buffers.n || step->nsymbols != kernel->symbols.n)
        return defect(b, step->name, "the step does not fit its kernel's buffers or symbols");
    row->kind = DLC_DO_LAUNCH;
    row->what = step->kernel;
    row->symbols.first = b->cells.n;
    row->symbols.count = step->nsymbols;
    for (uint32_t i = 0; i < step->nsymbols; i++) {
        symbols[i] = dlc_size_graph(&b->size, step->symbols[i]);
        dlc_vec_push(b->arena, &b->cells, symbols[i]);
    }
    for (uint32_t i = 0; i < kernel->buffers.n; i++)
        DLC_TRY(push_step_value(b, step, i,
                                buffer_bytes(b, kernel, &kernel->buffers.data[i], symbols)));
    row->units =
        dlc_size_expr(&b->size, kernel->pool, dlc_schedule_units(kernel, entry->schedule), symbols);
    row->scratch_bytes = dlc_size_expr(&b->size, kernel->pool,
                                       dlc_schedule_scratch(kernel, entry->schedule), symbols);
    if (b->cuda->emulate) { /* scratch is a block's shared memory */
        const dlc_cuda_launch *launch = &b->cuda->launches[step->kernel];
        uint32_t all = mul(b, row->scratch_bytes, dlc_size_const(&b->size, launch->scratches));
        row->scratch_bytes = add(b, all, dlc_size_const(&b->size, launch->fixed_bytes));
    }
    row->device = (uint8_t)device_of(b);
    row->grain = entry->schedule->grain > 0 ? entry->schedule->grain : 1;
    row->flops = kernel_flops(b, kernel, symbols);
    return DLC_OK;
}

/* --- other steps --- */
static const struct {
    const char *text;
    uint8_t ninputs, noutputs, nattrs;
} opaques[DLC_OPAQUE_COUNT] = {
#define DLC_OPAQUE(id, number, text, inputs, outputs, attrs, count, run)                           \
    [number] = {text, inputs, outputs, attrs},
#include "dlc/opaque.def"
#undef DLC_OPAQUE
};

static uint32_t rounded_up(builder *b, uint32_t size_bytes)
{
    uint32_t unit = dlc_size_const(&b->size, 64);
    uint32_t up = add(b, size_bytes, dlc_size_const(&b->size, 63));
    return mul(b, dlc_size_op2(&b->size, DLC_SIZE_FLOORDIV, up, unit), unit);
}

static void max_into(builder *b, uint32_t *cell, uint32_t other)
{
    *cell = *cell == UINT32_MAX ? other : dlc_size_op2(&b->size, DLC_SIZE_MAX, *cell, other);
}

/* Bytes past all values for a result that nobody reads but the step needs to work in. */
static dlc_plan_ref extra_ref(builder *b, uint32_t size_bytes)
{
    uint32_t base = rounded_up(b, b->arena_end[b->phase]);
    max_into(b, &b->extra_arena[b->phase], add(b, base, rounded_up(b, size_bytes)));
    return (dlc_plan_ref){.place = DLC_REF_ARENA, .index = base, .size_bytes = size_bytes};
}

/* An output nobody asked for; one that the step works in gets a place. */
static void push_absent(builder *b, const dlc_step *step, int is_needed)
{
    dlc_type type = {.dtype = DLC_I64};
    dlc_plan_ref ref = {.place = DLC_REF_NONE, .size_bytes = dlc_size_const(&b->size, 0)};
    if (is_needed) {
        type = step->node->outputs[0]->type;
        type.dtype = DLC_I64;
        ref = extra_ref(b, row_major_bytes(b, &type));
    }
    dlc_plan_tensor tensor = make_tensor(b, "", &type);
    dlc_vec_push(b->arena, &b->refs, ref);
    dlc_vec_push(b->arena, &b->tensors, tensor);
}

static dlc_status push_operand(builder *b, const dlc_step *step, uint32_t i)
{
    const dlc_value *value = step->values[i];
    dlc_plan_tensor tensor = make_tensor(b, value->name, &value->type);
    if (!is_row_major(value))
        return defect(b, value->name, "an operand of a step in C is not row-major");
    dlc_vec_push(b->arena, &b->tensors, tensor);
    return push_step_value(b, step, i, tensor.size_bytes);
}

static dlc_status add_opaque(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    const dlc_node *node = step->node;
    row->kind = DLC_DO_OPAQUE;
    dlc_opaque_call call;
    if (!dlc_opaque_call_of(node, &call))
        return defect(b, step->name, "the executable's format has no such step");
    row->what = call.kind;
    row->attrs = (dlc_plan_rows){b->attrs.n, call.nattrs};
    for (uint32_t i = 0; i < call.nattrs; i++)
        dlc_vec_push(b->arena, &b->attrs, call.attrs[i]);
    row->operands.first = b->tensors.n;
    for (uint32_t i = 0; i < opaques[row->what].ninputs; i++)
        DLC_TRY(push_operand(b, step, i));
    if (opaque_symbol(step) != UINT32_MAX)
        row->phase = ++b->phase;
    for (uint32_t i = 0; i < opaques[row->what].noutputs; i++) {
        const dlc_value *value = i < node->noutputs ? node->outputs[i] : NULL;
        if (value && b->module->placements[value->id].store != DLC_STORE_NONE)
            DLC_TRY(push_operand(b, step, node->ninputs + i));
        else
            push_absent(b, step, call.works_in >> i & 1);
    }
    row->operands.count = b->tensors.n - row->operands.first;
    row->symbol = opaque_symbol(step);
    return DLC_OK;
}

static dlc_status add_bind(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    const dlc_symbol *symbol = &b->graph->symbols.data[step->symbol];
    row->kind = DLC_DO_BIND;
    row->what = row->symbol = step->symbol;
    row->attrs = (dlc_plan_rows){b->attrs.n, 1};
    dlc_vec_push(b->arena, &b->attrs, symbol->index);
    row->operands = (dlc_plan_rows){b->tensors.n, 1};
    DLC_TRY(push_operand(b, step, 0));
    row->phase = ++b->phase;
    return DLC_OK;
}

/* Cells that a step uses must be known when it runs. */
static dlc_status check_phases(const builder *b, const dlc_plan_step *row, const char *name)
{
    for (uint32_t i = row->refs.first; i < row->refs.first + row->refs.count; i++) {
        const dlc_plan_ref *ref = &b->refs.data[i];
        uint32_t phase = b->size.phase.data[ref->size_bytes];
        int has_offset = ref->place == DLC_REF_ARENA || ref->place == DLC_REF_HOST;
        if (has_offset && b->size.phase.data[ref->index] > phase)
            phase = b->size.phase.data[ref->index];
        if (phase > b->phase)
            return defect(b, name, "the size of a buffer is known only after a later step");
    }
    for (uint32_t i = row->symbols.first; i < row->symbols.first + row->symbols.count; i++)
        if (b->size.phase.data[b->cells.data[i]] > b->phase)
            return defect(b, name, "a dimension is known only after a later step");
    return DLC_OK;
}

static void push_step(builder *b, dlc_plan_step *row)
{
    row->bytes = dlc_size_const(&b->size, 0);
    for (uint32_t i = row->refs.first; i < row->refs.first + row->refs.count; i++)
        row->bytes = add(b, row->bytes, b->refs.data[i].size_bytes);
    dlc_vec_push(b->arena, &b->steps, *row);
}

static void finish_step(builder *b, dlc_plan_step *row)
{
    row->refs.count = b->refs.n - row->refs.first;
    push_step(b, row);
}

static dlc_plan_step new_step(builder *b, const char *name)
{
    uint32_t zero = dlc_size_const(&b->size, 0);
    return (dlc_plan_step){
        .device = DLC_DEVICE_CPU,
        .name = add_string(b, name),
        .symbol = DLC_NO_CELL,
        .units = zero,
        .scratch_bytes = zero,
        .flops = zero,
        .refs = {b->refs.n, 0},
        .symbols = {b->cells.n, 0},
        .operands = {b->tensors.n, 0},
        .attrs = {b->attrs.n, 0},
        .grain = 1,
    };
}

/* --- steps on the CPU in a plan of a device --- */
typedef struct {
    builder *b;
    const char *name;
    uint32_t at; /* cell: where the next operand lies in host memory */
} staging;

static void copy_between(const staging *s, dlc_plan_ref to, dlc_plan_ref from)
{
    dlc_plan_step row = new_step(s->b, s->name);
    row.kind = DLC_DO_COPY;
    row.device = DLC_DEVICE_CUDA;
    dlc_vec_push(s->b->arena, &s->b->refs, from);
    dlc_vec_push(s->b->arena, &s->b->refs, to);
    finish_step(s->b, &row);
}

/* Host memory for an operand, known from phase `phase` on. */
static dlc_plan_ref host_ref(staging *s, uint32_t size_bytes, uint32_t phase)
{
    dlc_plan_ref ref = {.place = DLC_REF_HOST, .index = s->at, .size_bytes = size_bytes};
    s->at = add(s->b, s->at, rounded_up(s->b, size_bytes));
    max_into(s->b, &s->b->host_bytes[phase], s->at);
    return ref;
}

/* Operands [begin, end) of the row get a place in host memory; `from`: where they were. */
static void stage_operands(staging *s, const dlc_plan_step *row, uint32_t begin, uint32_t end,
                           uint32_t phase, dlc_plan_ref *from)
{
    for (uint32_t i = begin; i < end; i++) {
        dlc_plan_ref *ref = &s->b->refs.data[row->refs.first + i];
        from[i] = *ref;
        if (ref->place != DLC_REF_NONE && ref->place != DLC_REF_CONSTANT) {
            dlc_plan_ref host = host_ref(s, ref->size_bytes, phase);
            s->b->refs.data[row->refs.first + i] = host;
        }
    }
}

/* An output nobody asked for has no name. */
static int is_wanted(const builder *b, const dlc_plan_step *row, uint32_t i)
{
    return b->strings.data[b->tensors.data[row->operands.first + i].name] != '\0';
}

/* The step between copies of what it reads to host memory and of what it writes from there. */
static void finish_staged(builder *b, dlc_plan_step *row, const char *name)
{
    staging s = {.b = b, .name = name, .at = dlc_size_const(&b->size, 0)};
    uint32_t n = row->refs.count = b->refs.n - row->refs.first;
    uint32_t nread = row->kind == DLC_DO_OPAQUE ? opaques[row->what].ninputs : n;
    dlc_plan_ref *from = dlc_new_array(b->arena, dlc_plan_ref, n + 1u);
    stage_operands(&s, row, 0, nread, row->phase ? row->phase - 1 : b->phase, from);
    stage_operands(&s, row, nread, n, b->phase, from);
    for (uint32_t i = 0; i < nread; i++)
        if (b->refs.data[row->refs.first + i].place == DLC_REF_HOST)
            copy_between(&s, b->refs.data[row->refs.first + i], from[i]);
    push_step(b, row);
    for (uint32_t i = nread; i < n; i++)
        if (b->refs.data[row->refs.first + i].place == DLC_REF_HOST && is_wanted(b, row, i))
            copy_between(&s, from[i], b->refs.data[row->refs.first + i]);
}

static dlc_status add_step(builder *b, const dlc_step *step)
{
    dlc_plan_step row = new_step(b, step->name);
    if (step->kind == DLC_STEP_LAUNCH)
        DLC_TRY(add_launch(b, step, &row));
    else if (step->kind == DLC_STEP_OPAQUE)
        DLC_TRY(add_opaque(b, step, &row));
    else
        DLC_TRY(add_bind(b, step, &row));
    if (row.device == device_of(b))
        finish_step(b, &row);
    else
        finish_staged(b, &row, step->name);
    return check_phases(b, &row, step->name);
}

/* An output that is an input, a constant, or another output's value too is copied at the end. */
static dlc_status add_copies(builder *b)
{
    for (uint32_t i = 0; i < b->graph->outputs.n; i++) {
        const dlc_output_value *output = &b->graph->outputs.data[i];
        const dlc_placement *placement = &b->module->placements[output->value->id];
        if (placement->store == DLC_STORE_OUTPUT && placement->index == i)
            continue;
        dlc_plan_step row = new_step(b, output->name);
        row.kind = DLC_DO_COPY;
        row.device = (uint8_t)device_of(b);
        if (output->value
                ->data) { /* as the model has it: a packed copy may be all the module holds */
            dlc_plan_ref from = {.place = DLC_REF_CONSTANT,
                                 .size_bytes = b->outputs.data[i].size_bytes};
            DLC_TRY(add_constant(b, output->value->data->bytes, output->value->data->size_bytes,
                                 &from.offset));
            dlc_vec_push(b->arena, &b->refs, from);
        } else {
            DLC_TRY(push_value(b, output->value, b->outputs.data[i].size_bytes));
        }
        dlc_plan_ref to = {
            .place = DLC_REF_OUTPUT, .index = i, .size_bytes = b->outputs.data[i].size_bytes};
        dlc_vec_push(b->arena, &b->refs, to);
        finish_step(b, &row);
    }
    return DLC_OK;
}

/* --- memory --- */
/*
 * What each phase needs of the arena: the ends of the values whose place is known by then. With one
 * phase that is the planner's own number.
 */
static void measure_arena(builder *b)
{
    for (uint32_t p = 0; p < b->nphases; p++)
        b->arena_end[p] = dlc_size_const(&b->size, 0);
    if (b->nphases == 1)
        b->arena_end[0] = dlc_size_graph(&b->size, b->module->arena_bytes);
    for (uint32_t i = 0; b->nphases > 1 && i < b->graph->nvalues; i++) {
        const dlc_placement *placement = &b->module->placements[i];
        if (placement->store != DLC_STORE_ARENA)
            continue;
        uint32_t end = add(b, dlc_size_graph(&b->size, placement->offset),
                           dlc_size_graph(&b->size, placement->size_bytes));
        max_into(b, &b->arena_end[b->size.phase.data[end]], end);
    }
    for (uint32_t p = 1; p < b->nphases; p++)
        max_into(b, &b->arena_end[p], b->arena_end[p - 1]);
}

/* What one phase has, the next one has too. */
static void add_memory(builder *b)
{
    for (uint32_t p = 0; p < b->nphases; p++) {
        dlc_plan_phase *phase = &b->phases.data[p];
        phase->arena_bytes = b->arena_end[p];
        phase->host_bytes = b->host_bytes[p];
        if (b->extra_arena[p] != UINT32_MAX)
            max_into(b, &phase->arena_bytes, b->extra_arena[p]);
        if (p) {
            max_into(b, &phase->arena_bytes, phase[-1].arena_bytes);
            max_into(b, &phase->host_bytes, phase[-1].host_bytes);
        }
    }
}

/* --- the target --- */
/* What the code may use beyond the architecture's base: the level in `cpu`. */
static uint64_t required_features(const dlc_target *target)
{
    int level = !strncmp(target->cpu, "x86-64-v", 8) ? target->cpu[8] - '0' : 0;
    uint64_t bits = 0;
#define DLC_CPU(number, arch, needs, hwcap, text)                                                  \
    if ((needs) && (needs) <= level)                                                               \
        bits |= UINT64_C(1) << (number);
#include "dlc/cpu.def"
#undef DLC_CPU
    return bits;
}

static dlc_status describe_target(builder *b, dlc_plan *plan)
{
    const dlc_target *target = b->module->target;
    plan->device = (uint8_t)device_of(b);
    if (b->cuda->launches) { /* what is emulated runs where it was made */
        plan->arch = dlc_host_arch;
        return DLC_OK;
    }
    int is_arm = !strncmp(target->triple, "aarch64", 7),
        is_x86 = !strncmp(target->triple, "x86_64", 6);
    if (target->kind != DLC_TARGET_CPU || (!is_arm && !is_x86))
        return defect(b, target->name, "executables are written for x86-64 and aarch64 CPUs");
    plan->arch = is_arm ? DLC_ARCH_AARCH64 : DLC_ARCH_X86_64;
    if (is_x86 && strncmp(target->cpu, "x86-64", 6) != 0)
        return defect(b, target->name, "the features of this CPU's name are not in cpu.def");
    plan->cpu_features = required_features(target);
    return DLC_OK;
}

/* --- the end --- */
static void renumber(builder *b, const uint32_t *number)
{
    for (uint32_t i = 0; i < b->cells.n; i++)
        b->cells.data[i] = number[b->cells.data[i]];
    for (uint32_t i = 0; i < b->inputs.n; i++)
        b->inputs.data[i].size_bytes = number[b->inputs.data[i].size_bytes];
    for (uint32_t i = 0; i < b->outputs.n; i++)
        b->outputs.data[i].size_bytes = number[b->outputs.data[i].size_bytes];
    for (uint32_t i = 0; i < b->tensors.n; i++)
        b->tensors.data[i].size_bytes = number[b->tensors.data[i].size_bytes];
    for (uint32_t i = 0; i < b->conditions.n; i++)
        b->conditions.data[i].holds = number[b->conditions.data[i].holds];
    for (uint32_t i = 0; i < b->phases.n; i++) {
        b->phases.data[i].arena_bytes = number[b->phases.data[i].arena_bytes];
        b->phases.data[i].host_bytes = number[b->phases.data[i].host_bytes];
    }
    for (uint32_t i = 0; i < b->refs.n; i++) {
        dlc_plan_ref *ref = &b->refs.data[i];
        ref->size_bytes = number[ref->size_bytes];
        if (ref->place == DLC_REF_ARENA || ref->place == DLC_REF_HOST)
            ref->index = number[ref->index];
    }
    for (uint32_t i = 0; i < b->steps.n; i++) {
        dlc_plan_step *step = &b->steps.data[i];
        uint32_t *const cells[] = {&step->units, &step->scratch_bytes, &step->flops, &step->bytes};
        for (size_t k = 0; k < sizeof cells / sizeof cells[0]; k++)
            *cells[k] = number[*cells[k]];
    }
}

static void order_sizes(builder *b)
{
    uint32_t *counts = dlc_new_array(b->arena, uint32_t, b->nphases), first = 0;
    uint32_t *number = dlc_size_finish(&b->size, b->nphases, counts);
    for (uint32_t i = 0; i < b->nphases; i++) {
        b->phases.data[i].insts = (dlc_plan_rows){first, counts[i]};
        first += counts[i];
    }
    renumber(b, number);
}

static dlc_plan_rows append(dlc_str *out, const void *rows, uint32_t count, size_t row_bytes)
{
    static const char zeros[8];
    dlc_str_addn(out, zeros, (8 - out->n % 8) % 8);
    uint32_t first = (uint32_t)out->n;
    if (count)
        dlc_str_addn(out, rows, count * row_bytes);
    return (dlc_plan_rows){first, count};
}

#define APPEND(out, vec) append((out), (vec)->data, (vec)->n, sizeof *(vec)->data)

static dlc_status lay_out(builder *b, dlc_plan *plan, dlc_str *out)
{
    dlc_str_addn(out, (const char *)plan, sizeof *plan);
    plan->inputs = APPEND(out, &b->inputs);
    plan->outputs = APPEND(out, &b->outputs);
    plan->symbols = APPEND(out, &b->symbols);
    plan->insts = APPEND(out, &b->size.insts);
    plan->phases = APPEND(out, &b->phases);
    plan->conditions = APPEND(out, &b->conditions);
    plan->kernels = APPEND(out, &b->kernels);
    plan->steps = APPEND(out, &b->steps);
    plan->refs = APPEND(out, &b->refs);
    plan->tensors = APPEND(out, &b->tensors);
    plan->cells = APPEND(out, &b->cells);
    plan->attrs = APPEND(out, &b->attrs);
    plan->binaries = APPEND(out, &b->binaries);
    plan->strings = append(out, b->strings.data, (uint32_t)b->strings.n, 1);
    append(out, NULL, 0, 1);
    if (out->n > UINT32_MAX)
        return dlc_diag_fail(b->diag, DLC_LIMIT, b->graph->file,
                             "the plan has %zu bytes, the format holds 4 GiB", out->n);
    plan->size_bytes = (uint32_t)out->n;
    memcpy(out->data, plan, sizeof *plan);
    *b->result = (dlc_blob){dlc_arena_copy(b->arena, out->data, out->n), out->n};
    return DLC_OK;
}

static void add_kernel(builder *b, uint32_t i)
{
    const dlc_plan_cuda *cuda = b->cuda;
    dlc_plan_kernel row = {.name = add_string(b, b->module->kernels.data[i].kernel->name),
                           .binaries = {b->binaries.n, cuda->nbinaries}};
    if (device_of(b) == DLC_DEVICE_CUDA) {
        row.threads = cuda->launches[i].threads;
        row.units_per_block = cuda->launches[i].units_per_block;
        row.fixed_bytes = cuda->launches[i].fixed_bytes;
        row.scratches = cuda->launches[i].scratches;
    }
    for (uint32_t k = 0; k < cuda->nbinaries; k++)
        dlc_vec_push(b->arena, &b->binaries, cuda->binaries[(size_t)i * cuda->nbinaries + k]);
    dlc_vec_push(b->arena, &b->kernels, row);
}

static dlc_status add_all(builder *b)
{
    DLC_TRY(add_constants(b));
    DLC_TRY(add_interface(b));
    DLC_TRY(add_symbols(b));
    for (uint32_t i = 0; i < b->nphases; i++) {
        dlc_plan_phase phase = {0};
        dlc_vec_push(b->arena, &b->phases, phase);
        b->extra_arena[i] = UINT32_MAX;
        b->host_bytes[i] = dlc_size_const(&b->size, 0);
        add_conditions(b, i);
    }
    measure_arena(b);
    for (uint32_t i = 0; i < b->module->kernels.n; i++)
        add_kernel(b, i);
    for (uint32_t i = 0; i < b->module->steps.n; i++)
        DLC_TRY(add_step(b, &b->module->steps.data[i]));
    DLC_TRY(add_copies(b));
    add_memory(b);
    if (b->size.failure)
        return dlc_diag_fail(b->diag, DLC_INTERNAL, b->graph->file,
                             "a size cannot be computed by the runtime: %s", b->size.failure);
    return DLC_OK;
}

static dlc_status build(builder *b, dlc_str *out)
{
    dlc_plan plan = {.magic = DLC_PLAN_MAGIC, .abi_version = DLC_ABI_VERSION};
    DLC_TRY(add_all(b));
    order_sizes(b);
    DLC_TRY(describe_target(b, &plan));
    plan.target = add_string(b, b->cuda->name ? b->cuda->name : b->module->target->name);
    plan.model = add_string(b, b->graph->name);
    plan.producer = add_string(b, DLC_PRODUCER);
    return lay_out(b, &plan, out);
}

dlc_status dlc_plan_build(const dlc_module *module, const dlc_plan_cuda *cuda,
                          dlc_pieces *constants, dlc_arena *arena, dlc_diag *diag, dlc_blob *plan)
{
    builder b = {.module = module,
                 .graph = module->graph,
                 .arena = arena,
                 .diag = diag,
                 .cuda = cuda,
                 .constants = constants,
                 .result = plan};
    assign_phases(&b);
    b.host_bytes = dlc_new_array(arena, uint32_t, b.nphases);
    b.arena_end = dlc_new_array(arena, uint32_t, b.nphases);
    b.extra_arena = dlc_new_array(arena, uint32_t, b.nphases);
    dlc_size_init(&b.size, module->graph->pool, b.symbol_phase, arena);
    dlc_str out = {0};
    dlc_status status = build(&b, &out);
    dlc_str_deinit(&out);
    dlc_str_deinit(&b.strings);
    return status;
}

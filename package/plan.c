/*
 * The plan: the module's tables, flattened. Tables grow side by side while the size program grows
 * with them; at the end the program is ordered by phase, every cell number is replaced by its new
 * one, and the tables are laid one after another.
 *
 * Phases: each symbol that steps bind has one, in the order in which they first do.
 */
#include "package/plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "ir/kernel/algebra.h"
#include "package/size.h"

#define DLC_PRODUCER "dlc 0.1.0"

typedef struct {
    const dlc_module *module;
    dlc_arena *arena;
    dlc_diag *diag;
    dlc_size_program size;
    uint32_t *symbol_phase;
    uint32_t nphases, phase; /* phase: where the steps are */
    const dlc_plan_cuda *cuda;
    dlc_pieces *constants;
    uint64_t *constant_at; /* by value: where it lies in the executable, + 1; 0: not there yet */
    dlc_blob *result;
    dlc_vec(dlc_plan_tensor) inputs;
    dlc_vec(dlc_plan_tensor) outputs;
    dlc_vec(dlc_plan_tensor) tensors;
    dlc_vec(dlc_plan_symbol) symbols;
    dlc_vec(dlc_plan_phase) phases;
    dlc_vec(dlc_plan_condition) conditions;
    dlc_vec(dlc_plan_kernel) kernels;
    dlc_vec(dlc_plan_binary) binaries;
    dlc_vec(dlc_plan_property) properties;
    dlc_ids texts;
    dlc_vec(dlc_plan_step) steps;
    dlc_ids open; /* steps: branches and loops around the next one */
    dlc_vec(dlc_plan_ref) refs;
    dlc_ids cells;
    dlc_vec(int64_t) attrs;
    dlc_str strings;
    uint32_t *host_bytes; /* by phase: cell of the host memory of steps on the CPU */
    uint32_t *arena_end;  /* by phase: cell of the end of all values whose place is known by then */
} builder;

static dlc_status defect(const builder *b, const char *place, const char *text)
{
    return dlc_diag_fail(b->diag, DLC_INTERNAL, b->module->file, "%s: %s", place, text);
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
        bytes = mul(b, bytes, dlc_size_module(&b->size, type->dims[i]));
    return bytes;
}

static dlc_plan_tensor make_tensor(builder *b, const char *name, const dlc_type *type)
{
    dlc_str text = {0};
    dlc_module_type_print(b->module, type, &text);
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
        dlc_vec_push(b->arena, &b->cells, dlc_size_module(&b->size, type->dims[i]));
    return tensor;
}

/* --- inputs, outputs, symbols, conditions --- */
static dlc_status add_interface(builder *b)
{
    const dlc_module *module = b->module;
    for (uint32_t i = 0; i < module->inputs.n; i++) {
        const dlc_module_value *value = &module->values.data[module->inputs.data[i]];
        if (!dlc_module_is_row_major(value))
            return defect(b, value->name, "an input of the model is not row-major");
        dlc_plan_tensor tensor = make_tensor(b, value->name, &value->type);
        dlc_vec_push(b->arena, &b->inputs, tensor);
    }
    for (uint32_t i = 0; i < module->outputs.n; i++) {
        const dlc_module_output *output = &module->outputs.data[i];
        const dlc_module_value *value = &module->values.data[output->value];
        if (!dlc_module_is_row_major(value))
            return defect(b, output->name, "an output of the model is not row-major");
        dlc_plan_tensor tensor = make_tensor(b, output->name, &value->type);
        dlc_vec_push(b->arena, &b->outputs, tensor);
    }
    return DLC_OK;
}

static void add_symbols(builder *b)
{
    for (uint32_t i = 0; i < b->module->symbols.n; i++) {
        const dlc_module_symbol *symbol = &b->module->symbols.data[i];
        dlc_plan_symbol row = {.name = add_string(b, symbol->name),
                               .lo = symbol->lo,
                               .hi = symbol->hi,
                               .bind = DLC_SYMBOL_DATA};
        if (symbol->bind == DLC_BIND_INPUT_DIM) {
            row.bind = DLC_SYMBOL_INPUT_DIM;
            row.input = symbol->input;
            row.index = symbol->index;
        }
        dlc_vec_push(b->arena, &b->symbols, row);
    }
}

/* By phase: conditions are checked as soon as they can be. */
static void add_conditions(builder *b, uint32_t phase)
{
    b->phases.data[phase].conditions.first = b->conditions.n;
    for (uint32_t i = 0; i < b->module->conditions.n; i++) {
        const dlc_condition *condition = &b->module->conditions.data[i];
        uint32_t cell = dlc_size_module(&b->size, condition->holds);
        if (b->size.phase.data[cell] != phase)
            continue;
        dlc_plan_condition row = {cell, add_string(b, condition->text)};
        dlc_vec_push(b->arena, &b->conditions, row);
        b->phases.data[phase].conditions.count++;
    }
}

/* --- constants --- */
/* Of what equal pieces share: size, and bytes at both ends of what they are made from. */
static uint64_t hash_piece(const dlc_blob *piece)
{
    enum { SAMPLE = 64 };
    size_t n = piece->size_bytes < SAMPLE ? piece->size_bytes : SAMPLE;
    uint64_t hash = dlc_hash(&piece->size_bytes, sizeof piece->size_bytes, piece->packing != NULL);
    if (piece->packing)
        return dlc_packing_hash(piece->packing, hash);
    hash = dlc_hash(piece->bytes, n, hash);
    return dlc_hash((const char *)piece->bytes + piece->size_bytes - n, n, hash);
}

static int is_same_piece(const dlc_blob *a, const dlc_blob *b)
{
    if (a->size_bytes != b->size_bytes || !a->packing != !b->packing)
        return 0;
    if (a->packing)
        return a->packing == b->packing || dlc_packing_equal(a->packing, b->packing);
    return a->bytes == b->bytes || !memcmp(a->bytes, b->bytes, a->size_bytes);
}

static void grow_index(dlc_pieces *constants, dlc_arena *arena)
{
    uint32_t n = constants->nindex ? constants->nindex * 2 : 64;
    constants->index = dlc_new_array(arena, uint32_t, n);
    constants->nindex = n;
    for (uint32_t i = 0; i < constants->pieces.n; i++) {
        uint32_t at = (uint32_t)constants->hashes.data[i] & (n - 1);
        while (constants->index[at])
            at = (at + 1) & (n - 1);
        constants->index[at] = i + 1;
    }
}

int dlc_pieces_add(dlc_pieces *constants, const dlc_blob *piece, dlc_arena *arena, uint64_t *offset)
{
    size_t end;
    if (2 * (uint64_t)constants->pieces.n >= constants->nindex)
        grow_index(constants, arena);
    uint64_t hash = hash_piece(piece);
    uint32_t at = (uint32_t)hash & (constants->nindex - 1);
    for (; constants->index[at]; at = (at + 1) & (constants->nindex - 1)) {
        uint32_t i = constants->index[at] - 1;
        *offset = constants->offsets.data[i];
        if (constants->hashes.data[i] == hash && is_same_piece(&constants->pieces.data[i], piece))
            return 1;
    }
    *offset = constants->size_bytes;
    dlc_vec_push(arena, &constants->pieces, *piece);
    dlc_vec_push(arena, &constants->offsets, *offset);
    dlc_vec_push(arena, &constants->hashes, hash);
    constants->index[at] = constants->pieces.n;
    if (!dlc_add_size(constants->size_bytes, piece->size_bytes, &end) ||
        !dlc_add_size(end, 63, &end))
        return 0;
    constants->size_bytes = end / 64 * 64;
    return 1;
}

/* A constant goes into the executable where the first step reads it. */
static dlc_status constant_ref(builder *b, uint32_t value, dlc_plan_ref *ref)
{
    const dlc_tensor *data = &b->module->values.data[value].data;
    dlc_blob piece = {data->bytes, data->size_bytes, data->bytes ? NULL : b->module->values.data[value].packing};
    int64_t known;
    if (!dlc_size_is_const(&b->size, ref->size_bytes, &known) || (uint64_t)known > data->size_bytes)
        return defect(b, b->module->values.data[value].name, "a constant is smaller than what a step reads of it");
    ref->place = DLC_REF_CONSTANT;
    if (!b->constant_at[value]) {
        if (!dlc_pieces_add(b->constants, &piece, b->arena, &ref->offset))
            return defect(b, b->module->name, "the constants are larger than memory");
        b->constant_at[value] = ref->offset + 1;
    }
    ref->offset = b->constant_at[value] - 1;
    return DLC_OK;
}

/* --- buffers --- */
/* Where the value lies; size_bytes: the cell of the bytes that this reader or writer may touch. */
static dlc_status push_value(builder *b, uint32_t at, uint32_t size_bytes)
{
    dlc_plan_ref ref = {.place = DLC_REF_NONE, .size_bytes = size_bytes, .skip = DLC_NO_CELL};
    const dlc_module_value *value = at == DLC_NO_VALUE ? NULL : &b->module->values.data[at];
    if (value) {
        const dlc_module_value *place = &b->module->values.data[dlc_module_place_of(b->module, at)];
        if (value->skip)
            ref.skip = dlc_size_module(&b->size, value->skip);
        switch ((dlc_value_role)place->role) {
        case DLC_VALUE_TEMP:
        case DLC_VALUE_HOST:
            if (!place->offset)
                return defect(b, value->name, "this value has no place in memory");
            ref.place = place->role == DLC_VALUE_HOST ? DLC_REF_HOST : DLC_REF_ARENA;
            ref.index = dlc_size_module(&b->size, place->offset);
            break;
        case DLC_VALUE_INPUT:
        case DLC_VALUE_OUTPUT:
            ref.place = place->role == DLC_VALUE_INPUT ? DLC_REF_INPUT : DLC_REF_OUTPUT;
            ref.index = place->index;
            break;
        case DLC_VALUE_CONST:
            DLC_TRY(constant_ref(b, at, &ref));
            break;
        }
    }
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

static uint32_t points_of(builder *b, const dlc_kernel *kernel, const uint64_t *axes, const uint32_t *symbols)
{
    uint32_t points = dlc_size_const(&b->size, 1);
    for (uint32_t a = 0; a < kernel->axes.n; a++)
        if (axes[a / 64] >> a % 64 & 1)
            points = mul(b, points, dlc_size_expr(&b->size, kernel->pool, kernel->axes.data[a].extent, symbols));
    return points;
}

/*
 * Operations of a stage that are the same work: each is computed once for every point of the axes it depends on. A product of bytes
 * summed as integers is two operations, as the machine's roofs count it: what widens a loaded element is none, nor are indices and
 * guards of loads, nor the scale of a product, which is multiplied by behind the sum.
 */
static uint32_t stage_flops(builder *b, dlc_kernel *kernel, const dlc_stage *stage, const uint32_t *symbols, dlc_arena *scratch)
{
    dlc_contraction form;
    int has_scale = stage->reduce.n && dlc_contraction_of(kernel, stage, scratch, &form) && form.scale;
    const dlc_pool *pool = kernel->pool;
    uint32_t total = dlc_size_const(&b->size, 0), words;
    uint8_t *marks = dlc_new_array(scratch, uint8_t, pool->nodes.n);
    const uint64_t *axes = dlc_kernel_axes_of(kernel, dlc_stage_marks(kernel, stage, scratch), scratch, &words);
    uint64_t *all = dlc_new_array(scratch, uint64_t, words);
    int64_t nsums = 0;
    for (uint32_t i = 0; i < dlc_reduces[stage->combine].naccs; i++) {
        marks[stage->value[i]] = 1;
        nsums += stage->combine != DLC_REDUCE_NONE && !has_scale;
    }
    for (dlc_expr id = pool->nodes.n; id-- > 1;) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id] || node->op == DLC_EXPR_LOAD)
            continue;
        int widens = node->op == DLC_EXPR_CAST && dlc_node_of(pool, dlc_arg(pool, id, 0))->op == DLC_EXPR_LOAD;
        int64_t cost = widens ? 0 : dlc_exprs[node->op].cost;
        if (cost)
            total = add(b, total, mul(b, dlc_size_const(&b->size, cost), points_of(b, kernel, axes + (size_t)id * words, symbols)));
        for (uint32_t i = 0; i < node->nargs; i++)
            marks[dlc_arg(pool, id, i)] = 1;
    }
    for (uint32_t k = 0; k < stage->axes.n + stage->reduce.n; k++) {
        uint32_t axis = k < stage->axes.n ? stage->axes.data[k] : stage->reduce.data[k - stage->axes.n];
        all[axis / 64] |= UINT64_C(1) << axis % 64;
    }
    return nsums ? add(b, total, mul(b, dlc_size_const(&b->size, nsums), points_of(b, kernel, all, symbols))) : total;
}

static uint32_t kernel_flops(builder *b, dlc_kernel *kernel, const uint32_t *symbols)
{
    uint32_t total = dlc_size_const(&b->size, 0);
    dlc_arena *scratch = dlc_arena_create(0);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        total = add(b, total, stage_flops(b, kernel, &kernel->stages.data[i], symbols, scratch));
    dlc_arena_destroy(scratch);
    return total;
}

static dlc_status add_launch(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    const dlc_module_kernel *entry = &b->module->kernels.data[step->kernel];
    dlc_kernel *kernel = entry->schedule->kernel; /* its buffers lie as the schedule wants them */
    uint32_t *symbols = dlc_new_array(b->arena, uint32_t, step->nsymbols + 1u);
    if (step->nvalues != kernel->buffers.n || step->nsymbols != kernel->symbols.n)
        return defect(b, step->name, "the step does not fit its kernel's buffers or symbols");
    row->kind = DLC_DO_LAUNCH;
    row->what = step->kernel;
    row->symbols.first = b->cells.n;
    row->symbols.count = step->nsymbols;
    for (uint32_t i = 0; i < step->nsymbols; i++) {
        symbols[i] = dlc_size_module(&b->size, step->symbols[i]);
        dlc_vec_push(b->arena, &b->cells, symbols[i]);
    }
    for (uint32_t i = 0; i < kernel->buffers.n; i++)
        DLC_TRY(push_value(b, step->values[i],
                           buffer_bytes(b, kernel, &kernel->buffers.data[i], symbols)));
    row->units =
        dlc_size_expr(&b->size, kernel->pool, dlc_schedule_units(kernel, entry->schedule), symbols);
    row->scratch_bytes = dlc_size_expr(&b->size, kernel->pool,
                                       dlc_schedule_scratch(entry->schedule), symbols);
    if (b->cuda->emulate) { /* scratch is a block's shared memory */
        const dlc_cuda_launch *launch = &b->cuda->launches[step->kernel];
        uint32_t all = mul(b, row->scratch_bytes, dlc_size_const(&b->size, launch->scratches));
        row->scratch_bytes = add(b, all, dlc_size_const(&b->size, launch->fixed_bytes));
    }
    row->device = (uint8_t)device_of(b);
    row->grain = entry->schedule->grain > 0 ? entry->schedule->grain : 1;
    row->flops = kernel_flops(b, entry->kernel, symbols);
    return DLC_OK;
}

/* --- other steps --- */
static void max_into(builder *b, uint32_t *cell, uint32_t other)
{
    *cell = *cell == UINT32_MAX ? other : dlc_size_op2(&b->size, DLC_SIZE_MAX, *cell, other);
}

/* The phase of the symbol that the step binds: a loop enters it again and again. */
static uint32_t enter(builder *b, const dlc_step *step)
{
    uint32_t phase = b->symbol_phase[step->symbol];
    if (phase > b->phase)
        b->phase = phase;
    return phase;
}

/* An output that nobody asked for and that the step can do without is no tensor at all. */
static dlc_status push_operand(builder *b, uint32_t at)
{
    const dlc_module_value *value = at == DLC_NO_VALUE ? NULL : &b->module->values.data[at];
    dlc_type none = {.dtype = DLC_I64};
    dlc_plan_tensor tensor = make_tensor(b, value ? value->name : "", value ? &value->type : &none);
    if (value && !dlc_module_is_row_major(value))
        return defect(b, value->name, "an operand of a step in C is not row-major");
    dlc_vec_push(b->arena, &b->tensors, tensor);
    return push_value(b, at, value ? tensor.size_bytes : dlc_size_const(&b->size, 0));
}

static void push_attrs(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    row->attrs = (dlc_plan_rows){b->attrs.n, step->nattrs};
    for (uint32_t i = 0; i < step->nattrs; i++)
        dlc_vec_push(b->arena, &b->attrs, step->attrs[i]);
}

static dlc_status add_opaque(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    row->kind = DLC_DO_OPAQUE;
    row->what = step->opaque;
    row->symbol = step->symbol;
    push_attrs(b, step, row);
    row->operands.first = b->tensors.n;
    for (uint32_t i = 0; i < step->nvalues; i++) {
        if (step->symbol != DLC_NO_SYMBOL && !row->phase && dlc_step_writes(b->module, step, i))
            row->phase = enter(b, step);
        DLC_TRY(push_operand(b, step->values[i]));
    }
    row->operands.count = b->tensors.n - row->operands.first;
    return DLC_OK;
}

static dlc_status add_bind(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    row->kind = DLC_DO_BIND;
    row->what = row->symbol = step->symbol;
    push_attrs(b, step, row);
    row->operands = (dlc_plan_rows){b->tensors.n, 1};
    DLC_TRY(push_operand(b, step->values[0]));
    row->phase = enter(b, step);
    return DLC_OK;
}

static dlc_status add_copy(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    /* Of a constant its own size, which is known: a result that two branches give has it by then. */
    int is_by_source = step->size || b->module->values.data[step->values[0]].role == DLC_VALUE_CONST;
    uint32_t size_bytes = dlc_size_module(&b->size, dlc_module_value_bytes(b->module, step->values[is_by_source ? 0 : 1]));
    row->kind = DLC_DO_COPY;
    row->device = (uint8_t)device_of(b);
    DLC_TRY(push_value(b, step->values[0], size_bytes));
    DLC_TRY(push_value(b, step->values[1], size_bytes));
    if (step->size) {
        uint32_t *skip = &b->refs.data[b->refs.n - 1].skip, before = dlc_size_module(&b->size, step->size);
        *skip = *skip == DLC_NO_CELL ? before : add(b, *skip, before);
    }
    return DLC_OK;
}

/* --- branches and loops --- */

static void add_set(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    row->kind = DLC_DO_SET;
    row->what = row->symbol = step->symbol;
    row->units = dlc_size_module(&b->size, step->size);
    row->phase = enter(b, step);
}

static void add_mark(builder *b, const dlc_step *step, dlc_plan_step *row)
{
    static const uint8_t kinds[] = {[DLC_STEP_IF] = DLC_DO_IF, [DLC_STEP_ELSE] = DLC_DO_ELSE, [DLC_STEP_LOOP] = DLC_DO_LOOP,
                                    [DLC_STEP_END] = DLC_DO_END};
    uint32_t at = b->steps.n;
    row->kind = kinds[step->kind];
    row->what = at;
    if (step->size)
        row->units = dlc_size_module(&b->size, step->size);
    if (step->kind == DLC_STEP_ELSE || step->kind == DLC_STEP_END) {
        dlc_plan_step *opener = &b->steps.data[b->open.data[--b->open.n]];
        opener->what = at;
        if (opener->kind == DLC_DO_LOOP)
            row->what = b->open.data[b->open.n];
    }
    if (step->kind != DLC_STEP_END)
        dlc_vec_push(b->arena, &b->open, at);
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
        if (ref->skip != DLC_NO_CELL && b->size.phase.data[ref->skip] > phase)
            phase = b->size.phase.data[ref->skip];
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
    row->refs.count = b->refs.n - row->refs.first;
    row->bytes = dlc_size_const(&b->size, 0);
    for (uint32_t i = row->refs.first; i < row->refs.first + row->refs.count; i++)
        row->bytes = add(b, row->bytes, b->refs.data[i].size_bytes);
    dlc_vec_push(b->arena, &b->steps, *row);
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

static dlc_status add_step(builder *b, const dlc_step *step)
{
    dlc_plan_step row = new_step(b, step->name);
    switch ((dlc_step_kind)step->kind) {
    case DLC_STEP_LAUNCH:
        DLC_TRY(add_launch(b, step, &row));
        break;
    case DLC_STEP_OPAQUE:
        DLC_TRY(add_opaque(b, step, &row));
        break;
    case DLC_STEP_BIND:
        DLC_TRY(add_bind(b, step, &row));
        break;
    case DLC_STEP_COPY:
        DLC_TRY(add_copy(b, step, &row));
        break;
    case DLC_STEP_SET:
        add_set(b, step, &row);
        break;
    case DLC_STEP_IF:
    case DLC_STEP_ELSE:
    case DLC_STEP_LOOP:
    case DLC_STEP_END:
        add_mark(b, step, &row);
        break;
    }
    push_step(b, &row);
    return check_phases(b, &row, step->name);
}

/* --- memory --- */
/*
 * What each phase needs of the arena or of host memory: the ends of the values whose place is known by then. With one phase
 * that is the planner's own number.
 */
static void measure(builder *b, dlc_value_role role, dlc_expr all, uint32_t *ends)
{
    for (uint32_t p = 0; p < b->nphases; p++)
        ends[p] = dlc_size_const(&b->size, 0);
    if (b->nphases == 1)
        ends[0] = dlc_size_module(&b->size, all);
    for (uint32_t i = 0; b->nphases > 1 && i < b->module->values.n; i++) {
        const dlc_module_value *value = &b->module->values.data[i];
        if (value->role != role || !value->offset)
            continue;
        uint32_t end = add(b, dlc_size_module(&b->size, value->offset),
                           dlc_size_module(&b->size, dlc_module_value_bytes(b->module, i)));
        max_into(b, &ends[b->size.phase.data[end]], end);
    }
    for (uint32_t p = 1; p < b->nphases; p++)
        max_into(b, &ends[p], ends[p - 1]);
}

static void add_memory(builder *b)
{
    for (uint32_t p = 0; p < b->nphases; p++) {
        b->phases.data[p].arena_bytes = b->arena_end[p];
        b->phases.data[p].host_bytes = b->host_bytes[p];
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

/* What code of the schedules needs beyond that. */
static uint64_t schedule_features(const dlc_module *module, dlc_arena *scratch)
{
    uint32_t facts = 0;
    for (uint32_t k = 0; k < module->kernels.n; k++)
        facts |= dlc_schedule_facts(module->kernels.data[k].schedule, scratch);
    return dlc_target_features(facts);
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
    plan->cpu_features = required_features(target) | schedule_features(b->module, b->arena);
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
        if (ref->skip != DLC_NO_CELL)
            ref->skip = number[ref->skip];
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
    plan->properties = APPEND(out, &b->properties);
    plan->texts = APPEND(out, &b->texts);
    plan->strings = append(out, b->strings.data, (uint32_t)b->strings.n, 1);
    append(out, NULL, 0, 1);
    if (out->n > UINT32_MAX)
        return dlc_diag_fail(b->diag, DLC_LIMIT, b->module->file,
                             "the plan has %zu bytes, the format holds 4 GiB", out->n);
    plan->size_bytes = (uint32_t)out->n;
    memcpy(out->data, plan, sizeof *plan);
    *b->result = (dlc_blob){dlc_arena_copy(b->arena, out->data, out->n), out->n, NULL};
    return DLC_OK;
}

static void add_kernel(builder *b, uint32_t i)
{
    const dlc_plan_cuda *cuda = b->cuda;
    const dlc_module_kernel *entry = &b->module->kernels.data[i];
    dlc_plan_kernel row = {.name = add_string(b, entry->kernel->name),
                           .peak = add_string(b, dlc_schedule_peak(entry->schedule)),
                           .binaries = {b->binaries.n, cuda->nbinaries}};
    if (device_of(b) == DLC_DEVICE_CUDA) {
        row.function = add_string(b, cuda->functions[i]);
        row.threads = cuda->launches[i].threads;
        row.units_per_block = cuda->launches[i].units_per_block;
        row.fixed_bytes = cuda->launches[i].fixed_bytes;
        row.scratches = cuda->launches[i].scratches;
    }
    for (uint32_t k = 0; k < cuda->nbinaries; k++)
        dlc_vec_push(b->arena, &b->binaries, cuda->binaries[(size_t)i * cuda->nbinaries + k]);
    dlc_vec_push(b->arena, &b->kernels, row);
}

/* Copies to and from a device are made where the module was; the emulation has one memory. */
static dlc_status check_memory(const builder *b)
{
    for (uint32_t i = 0; i < b->module->values.n; i++)
        if (b->module->values.data[i].role == DLC_VALUE_HOST && device_of(b) == DLC_DEVICE_CPU)
            return dlc_diag_fail(b->diag, DLC_USAGE, b->module->file,
                                 "'%s' is a copy in host memory, for a device; where the CPU runs all there is one memory",
                                 b->module->values.data[i].name);
    return DLC_OK;
}

static dlc_status add_all(builder *b)
{
    DLC_TRY(check_memory(b));
    DLC_TRY(add_interface(b));
    add_symbols(b);
    for (uint32_t i = 0; i < b->nphases; i++) {
        dlc_plan_phase phase = {0};
        dlc_vec_push(b->arena, &b->phases, phase);
        add_conditions(b, i);
    }
    measure(b, DLC_VALUE_TEMP, b->module->arena_bytes, b->arena_end);
    measure(b, DLC_VALUE_HOST, b->module->host_bytes, b->host_bytes);
    for (uint32_t i = 0; i < b->module->kernels.n; i++)
        add_kernel(b, i);
    for (uint32_t i = 0; i < b->module->steps.n; i++)
        DLC_TRY(add_step(b, &b->module->steps.data[i]));
    add_memory(b);
    if (b->size.failure)
        return dlc_diag_fail(b->diag, DLC_INTERNAL, b->module->file,
                             "a size cannot be computed by the runtime: %s", b->size.failure);
    return DLC_OK;
}

static void add_properties(builder *b)
{
    for (uint32_t i = 0; i < b->module->properties.n; i++) {
        const dlc_property *property = &b->module->properties.data[i];
        dlc_plan_property row = {.is_field = (uint32_t)property->is_field};
        row.key = add_string(b, property->key);
        row.value = add_string(b, property->value);
        dlc_vec_push(b->arena, &b->properties, row);
    }
}

static void add_texts(builder *b)
{
    const dlc_strings *strings = &b->module->strings;
    for (uint32_t i = 0; i < strings->all.n; i++) {
        uint32_t text = add_string(b, strings->all.data[i]);
        dlc_vec_push(b->arena, &b->texts, text);
    }
}

static dlc_status build(builder *b, dlc_str *out)
{
    dlc_plan plan = {.magic = DLC_PLAN_MAGIC, .abi_version = DLC_ABI_VERSION};
    DLC_TRY(add_all(b));
    order_sizes(b);
    DLC_TRY(describe_target(b, &plan));
    plan.target = add_string(b, b->cuda->name ? b->cuda->name : b->module->target->name);
    plan.model = add_string(b, b->module->name);
    plan.producer = add_string(b, DLC_PRODUCER);
    add_properties(b);
    add_texts(b);
    return lay_out(b, &plan, out);
}

dlc_status dlc_plan_build(const dlc_module *module, const dlc_plan_cuda *cuda,
                          dlc_pieces *constants, dlc_arena *arena, dlc_diag *diag, dlc_blob *plan)
{
    builder b = {.module = module,
                 .arena = arena,
                 .diag = diag,
                 .cuda = cuda,
                 .constants = constants,
                 .result = plan};
    b.symbol_phase = dlc_module_phases(module, &b.nphases, arena);
    b.host_bytes = dlc_new_array(arena, uint32_t, b.nphases);
    b.arena_end = dlc_new_array(arena, uint32_t, b.nphases);
    b.constant_at = dlc_new_array(arena, uint64_t, module->values.n + 1);
    dlc_size_init(&b.size, module->pool, b.symbol_phase, arena);
    dlc_str out = {0};
    dlc_status status = build(&b, &out);
    dlc_str_deinit(&out);
    dlc_str_deinit(&b.strings);
    return status;
}

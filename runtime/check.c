/*
 * The executable's tables, before anything follows them: every row, cell, string and offset is in
 * bounds, operands of the size program precede their users, and a step uses only cells of phases
 * entered before it, whichever way branches and loops went; where memory lies may also depend on
 * what a branch that was not taken would have found. One forward pass per table; the first thing
 * found is named.
 */
#include "runtime/device.h"

#include <stdlib.h>
#include <string.h>

#include "dlc/checksum.h"

typedef struct {
    const char *name; /* for messages */
    const dlc_plan *plan;
    uint64_t constants_bytes, binaries_bytes;
    uint32_t last;     /* the last phase that a step enters, so far */
    uint8_t *entered;  /* by phase: where we are, on every way there */
    uint8_t *before, *behind; /* by region and phase: where it began, behind its first branch */
    uint32_t open[DLC_MOST_REGIONS], nopen; /* steps whose region we are in */
} check;

static int is_in(dlc_plan_rows rows, dlc_plan_rows table)
{
    return rows.first <= table.count && rows.count <= table.count - rows.first;
}

static int is_string(const check *c, uint32_t string)
{
    return string < c->plan->strings.count;
}

static dlc_status check_tables(const check *c)
{
    const dlc_plan *plan = c->plan;
    const struct {
        dlc_plan_rows rows;
        size_t row_bytes;
        const char *what;
    } tables[] = {
        {plan->inputs, sizeof(dlc_plan_tensor), "inputs"},
        {plan->outputs, sizeof(dlc_plan_tensor), "outputs"},
        {plan->symbols, sizeof(dlc_plan_symbol), "symbols"},
        {plan->insts, sizeof(dlc_size_inst), "instructions"},
        {plan->phases, sizeof(dlc_plan_phase), "phases"},
        {plan->conditions, sizeof(dlc_plan_condition), "conditions"},
        {plan->kernels, sizeof(dlc_plan_kernel), "kernels"},
        {plan->steps, sizeof(dlc_plan_step), "steps"},
        {plan->refs, sizeof(dlc_plan_ref), "buffer references"},
        {plan->tensors, sizeof(dlc_plan_tensor), "tensors"},
        {plan->cells, sizeof(uint32_t), "cells"},
        {plan->attrs, sizeof(int64_t), "attributes"},
        {plan->binaries, sizeof(dlc_plan_binary), "binaries"},
        {plan->properties, sizeof(dlc_plan_property), "properties"},
        {plan->texts, sizeof(uint32_t), "texts"},
        {plan->strings, 1, "strings"},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        uint64_t first = tables[i].rows.first,
                 size_bytes = (uint64_t)tables[i].rows.count * tables[i].row_bytes;
        if (first % 8 || first > plan->size_bytes || size_bytes > plan->size_bytes - first)
            return dlcrt_damaged(c->name, "the table of %s lies outside it", tables[i].what);
    }
    if (plan->strings.count == 0 || dlcrt_string(plan, plan->strings.count - 1)[0] != '\0')
        return dlcrt_damaged(c->name, "its strings do not end");
    if (plan->phases.count == 0)
        return dlcrt_damaged(c->name, "it has no phase");
    if (!is_string(c, plan->target) || !is_string(c, plan->model) || !is_string(c, plan->producer))
        return dlcrt_damaged(c->name, "a name of its head is outside the strings");
    const dlc_plan_property *property = dlcrt_rows(plan, plan->properties);
    for (uint32_t i = 0; i < plan->properties.count; i++)
        if (!is_string(c, property[i].key) || !is_string(c, property[i].value))
            return dlcrt_damaged(c->name, "property %u is outside the strings", i);
    const uint32_t *texts = dlcrt_rows(plan, plan->texts);
    for (uint32_t i = 0; i < plan->texts.count; i++)
        if (!is_string(c, texts[i]) || (!i && *dlcrt_string(plan, texts[i])))
            return dlcrt_damaged(c->name, "text %u is outside the strings, or the first is not empty", i);
    return DLC_OK;
}

static dlc_status check_insts(const check *c)
{
    static const uint8_t nargs[DLC_SIZE_COUNT] = {
#define DLC_SIZE(id, text, n) n,
#include "dlc/size.def"
#undef DLC_SIZE
    };
    const dlc_size_inst *inst = dlcrt_rows(c->plan, c->plan->insts);
    for (uint32_t i = 0; i < c->plan->insts.count; i++, inst++) {
        if (inst->op >= DLC_SIZE_COUNT || inst->dtype == DLC_NONE || inst->dtype >= DLC_DTYPE_COUNT)
            return dlcrt_damaged(c->name, "instruction %u is unknown", i);
        int is_cast = inst->op == DLC_SIZE_CAST || inst->op == DLC_SIZE_CAST_SAT;
        if (is_cast && (inst->imm <= DLC_NONE || inst->imm >= DLC_DTYPE_COUNT))
            return dlcrt_damaged(c->name, "instruction %u casts from an unknown type", i);
        if (inst->op == DLC_SIZE_SYM && inst->args[0] >= c->plan->symbols.count)
            return dlcrt_damaged(c->name, "instruction %u reads symbol %u of %u", i, inst->args[0],
                                 c->plan->symbols.count);
        for (uint32_t k = 0; k < nargs[inst->op]; k++)
            if (inst->args[k] >= i)
                return dlcrt_damaged(c->name, "instruction %u reads cell %u, which comes later", i,
                                     inst->args[k]);
    }
    return DLC_OK;
}

static dlc_status check_phases(const check *c)
{
    const dlc_plan_phase *phase = dlcrt_rows(c->plan, c->plan->phases);
    const dlc_plan_condition *condition = dlcrt_rows(c->plan, c->plan->conditions);
    uint32_t end = 0;
    for (uint32_t i = 0; i < c->plan->phases.count; i++, phase++) {
        if (phase->insts.first != end || !is_in(phase->insts, c->plan->insts))
            return dlcrt_damaged(c->name, "phase %u does not follow the one before", i);
        end += phase->insts.count;
        if (!is_in(phase->conditions, c->plan->conditions) || phase->arena_bytes >= end ||
            phase->host_bytes >= end)
            return dlcrt_damaged(c->name, "phase %u is out of bounds", i);
        for (uint32_t k = phase->conditions.first;
             k < phase->conditions.first + phase->conditions.count; k++)
            if (condition[k].holds >= end || !is_string(c, condition[k].text))
                return dlcrt_damaged(c->name, "condition %u is out of bounds", k);
    }
    return end == c->plan->insts.count
               ? DLC_OK
               : dlcrt_damaged(c->name, "instructions %u and on belong to no phase", end);
}

/* The phase that the cell is of has been entered; there is such a cell. */
static int is_known(const check *c, uint32_t cell)
{
    const dlc_plan_phase *phases = dlcrt_rows(c->plan, c->plan->phases);
    uint32_t low = 0, high = c->plan->phases.count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (phases[middle].insts.first <= cell)
            low = middle;
        else
            high = middle - 1;
    }
    return cell < c->plan->insts.count && c->entered[low];
}

static dlc_status check_cells(const check *c, dlc_plan_rows rows, const char *what)
{
    const uint32_t *cells = dlcrt_rows(c->plan, c->plan->cells);
    if (!is_in(rows, c->plan->cells))
        return dlcrt_damaged(c->name, "%s are out of bounds", what);
    for (uint32_t i = rows.first; i < rows.first + rows.count; i++)
        if (!is_known(c, cells[i]))
            return dlcrt_damaged(c->name, "%s use a cell that is not known yet", what);
    return DLC_OK;
}

static dlc_status check_tensor(const check *c, const dlc_plan_tensor *tensor, const char *what)
{
    if (tensor->rank > DLCRT_MAX_RANK || tensor->dtype == DLC_NONE ||
        tensor->dtype >= DLC_DTYPE_COUNT || !is_string(c, tensor->name) ||
        !is_string(c, tensor->type_text) || !is_known(c, tensor->size_bytes))
        return dlcrt_damaged(c->name, "%s is out of bounds", what);
    if (dlc_is_text((dlc_dtype)tensor->dtype) && c->plan->device != DLC_DEVICE_CPU)
        return dlcrt_damaged(c->name, "%s is of strings, which the CPU alone has", what);
    return check_cells(c, (dlc_plan_rows){tensor->dims, tensor->rank}, what);
}

static dlc_status check_tensors(const check *c)
{
    const dlc_plan_tensor *tensor = dlcrt_rows(c->plan, c->plan->inputs);
    for (uint32_t i = 0; i < c->plan->inputs.count; i++)
        DLC_TRY(check_tensor(c, &tensor[i], "an input"));
    tensor = dlcrt_rows(c->plan, c->plan->tensors); /* of those that no step has, too: all are asked whether they are strings */
    for (uint32_t i = 0; i < c->plan->tensors.count; i++)
        if (tensor[i].dtype >= DLC_DTYPE_COUNT)
            return dlcrt_damaged(c->name, "an operand is out of bounds");
    tensor = dlcrt_rows(c->plan, c->plan->outputs);
    for (uint32_t i = 0; i < c->plan->outputs.count; i++)
        if (tensor[i].size_bytes >= c->plan->insts.count)
            return dlcrt_damaged(c->name, "an output is out of bounds");
    const dlc_plan_symbol *symbol = dlcrt_rows(c->plan, c->plan->symbols);
    const dlc_plan_tensor *inputs = dlcrt_rows(c->plan, c->plan->inputs);
    for (uint32_t i = 0; i < c->plan->symbols.count; i++) {
        int is_bound = symbol[i].bind == DLC_SYMBOL_INPUT_DIM;
        if (!is_string(c, symbol[i].name) || symbol[i].bind > DLC_SYMBOL_DATA ||
            (is_bound && (symbol[i].input >= c->plan->inputs.count ||
                          symbol[i].index >= inputs[symbol[i].input].rank)))
            return dlcrt_damaged(c->name, "symbol %u is out of bounds", i);
    }
    return DLC_OK;
}

/* In a plan of a device host memory is for steps on the CPU and for copies alone. */
static int is_placed_well(const check *c, const dlc_plan_step *step, const dlc_plan_ref *ref)
{
    if (c->plan->device == DLC_DEVICE_CPU)
        return ref->place != DLC_REF_HOST;
    if (step->device == DLC_DEVICE_CPU)
        return ref->place >= DLC_REF_CONSTANT;
    return ref->place != DLC_REF_HOST || step->kind == DLC_DO_COPY;
}

static dlc_status check_ref(const check *c, const dlc_plan_ref *ref, uint32_t step)
{
    const dlc_plan_tensor *outputs = dlcrt_rows(c->plan, c->plan->outputs);
    int has_offset = ref->place == DLC_REF_ARENA || ref->place == DLC_REF_HOST;
    int is_callers = (ref->place == DLC_REF_INPUT || ref->place == DLC_REF_OUTPUT) && c->plan->device == DLC_DEVICE_CPU;
    uint32_t limit = has_offset                     ? c->plan->insts.count
                     : ref->place == DLC_REF_INPUT  ? c->plan->inputs.count
                     : ref->place == DLC_REF_OUTPUT ? c->plan->outputs.count
                                                    : 1;
    if (ref->place > DLC_REF_HOST || ref->index >= limit || !is_known(c, ref->size_bytes) ||
        (ref->skip != DLC_NO_CELL && ((ref->place != DLC_REF_ARENA && !is_callers) || !is_known(c, ref->skip))) ||
        (ref->place == DLC_REF_OUTPUT && !is_known(c, outputs[ref->index].size_bytes)))
        return dlcrt_damaged(c->name, "step %u reads or writes what is not there", step);
    if (ref->place == DLC_REF_CONSTANT && (ref->offset % 64 || ref->offset > c->constants_bytes))
        return dlcrt_damaged(c->name, "step %u reads past the constants", step);
    return DLC_OK;
}

/* Counts and kinds that the walk of the plan relies on. */
static dlc_status check_shape(const check *c, const dlc_plan_step *step, uint32_t i)
{
    const dlcrt_opaque_info *opaque;
    switch (step->kind) {
    case DLC_DO_LAUNCH:
        return step->what < c->plan->kernels.count
                   ? DLC_OK
                   : dlcrt_damaged(c->name, "step %u runs kernel %u, which is not there", i,
                                   step->what);
    case DLC_DO_OPAQUE:
        if (step->what >= DLC_OPAQUE_COUNT)
            return dlcrt_damaged(c->name, "step %u is of a kind this runtime does not know", i);
        opaque = &dlcrt_opaques[step->what];
        if (step->refs.count != opaque->ninputs + opaque->noutputs ||
            step->operands.count != step->refs.count || step->attrs.count != opaque->nattrs ||
            (step->phase != 0) != (opaque->count != NULL))
            return dlcrt_damaged(c->name, "step %u (%s) lacks operands or attributes", i,
                                 opaque->text);
        return DLC_OK;
    case DLC_DO_BIND:
        return step->refs.count == 1 && step->operands.count == 1 && step->attrs.count == 1 &&
                       step->phase
                   ? DLC_OK
                   : dlcrt_damaged(c->name, "step %u binds nothing", i);
    case DLC_DO_COPY:
        return step->refs.count == 2 ? DLC_OK : dlcrt_damaged(c->name, "step %u copies nothing", i);
    case DLC_DO_SET:
    case DLC_DO_IF:
    case DLC_DO_ELSE:
    case DLC_DO_LOOP:
    case DLC_DO_END:
        return !step->refs.count && !step->operands.count && !step->symbols.count &&
                       (step->phase != 0) == (step->kind == DLC_DO_SET)
                   ? DLC_OK
                   : dlcrt_damaged(c->name, "step %u has operands where it takes none", i);
    default:
        return dlcrt_damaged(c->name, "step %u is of a kind this runtime does not know", i);
    }
}

/* --- branches and loops --- */
static uint8_t *of_region(const check *c, uint8_t *phases, uint32_t depth)
{
    return phases + (size_t)depth * c->plan->phases.count;
}

static dlc_status open_region(check *c, const dlc_plan_step *step, uint32_t i)
{
    if (c->nopen == DLC_MOST_REGIONS || step->what <= i || step->what >= c->plan->steps.count)
        return dlcrt_damaged(c->name, "step %u begins what does not end", i);
    memcpy(of_region(c, c->before, c->nopen), c->entered, c->plan->phases.count);
    c->open[c->nopen++] = i;
    return DLC_OK;
}

/* What was entered before is entered here; of an if that has two branches, what both entered, too. */
static void leave_region(check *c, const dlc_plan_step *opener)
{
    const uint8_t *before = of_region(c, c->before, c->nopen), *behind = of_region(c, c->behind, c->nopen);
    for (uint32_t p = 0; p < c->plan->phases.count; p++)
        c->entered[p] = opener->kind == DLC_DO_ELSE ? c->entered[p] & behind[p] : before[p];
}

static dlc_status check_mark(check *c, const dlc_plan_step *step, uint32_t i)
{
    const dlc_plan_step *steps = dlcrt_rows(c->plan, c->plan->steps), *opener;
    uint32_t nphases = c->plan->phases.count;
    if (step->kind == DLC_DO_IF || step->kind == DLC_DO_LOOP)
        return open_region(c, step, i);
    opener = c->nopen ? &steps[c->open[c->nopen - 1]] : NULL;
    if (!opener || opener->what != i || (step->kind == DLC_DO_ELSE && opener->kind != DLC_DO_IF) ||
        (step->kind == DLC_DO_END && step->what != (opener->kind == DLC_DO_LOOP ? c->open[c->nopen - 1] : i)))
        return dlcrt_damaged(c->name, "step %u ends what does not begin", i);
    c->nopen--;
    if (step->kind == DLC_DO_END) {
        leave_region(c, opener);
        return DLC_OK;
    }
    memcpy(of_region(c, c->behind, c->nopen), c->entered, nphases);
    memcpy(c->entered, of_region(c, c->before, c->nopen), nphases);
    if (step->what <= i || step->what >= c->plan->steps.count)
        return dlcrt_damaged(c->name, "step %u begins what does not end", i);
    c->open[c->nopen++] = i;
    return DLC_OK;
}

/* --- steps --- */
static dlc_status enter_phase(check *c, const dlc_plan_step *step, uint32_t i)
{
    if (!step->phase)
        return DLC_OK;
    if (step->phase >= c->plan->phases.count || step->symbol >= c->plan->symbols.count)
        return dlcrt_damaged(c->name, "step %u enters phase %u, which is not there", i, step->phase);
    c->last = step->phase > c->last ? step->phase : c->last;
    c->entered[step->phase] = 1;
    return DLC_OK;
}

/* Operands [first, end) of the step. */
static dlc_status check_operands(const check *c, const dlc_plan_step *step, uint32_t i, uint32_t first, uint32_t end)
{
    const dlc_plan_ref *refs = dlcrt_rows(c->plan, c->plan->refs);
    const dlc_plan_tensor *operands = dlcrt_rows(c->plan, c->plan->tensors);
    for (uint32_t k = first; k < end && k < step->refs.count; k++) {
        const dlc_plan_ref *ref = &refs[step->refs.first + k];
        DLC_TRY(check_ref(c, ref, i));
        if (ref->place == DLC_REF_NONE && (step->kind != DLC_DO_OPAQUE || k < dlcrt_opaques[step->what].ninputs))
            return dlcrt_damaged(c->name, "step %u reads what is nowhere", i);
        if (!is_placed_well(c, step, ref))
            return dlcrt_damaged(c->name, "step %u reads or writes memory of another device", i);
    }
    for (uint32_t k = first; k < end && k < step->operands.count; k++)
        DLC_TRY(check_tensor(c, &operands[step->operands.first + k], "an operand"));
    return DLC_OK;
}

static dlc_status check_step(check *c, const dlc_plan_step *step, uint32_t i)
{
    const dlc_plan *plan = c->plan;
    int is_of_device = step->kind == DLC_DO_LAUNCH || step->kind == DLC_DO_COPY;
    if (!is_string(c, step->name) ||
        step->device != (is_of_device ? plan->device : DLC_DEVICE_CPU) ||
        !is_in(step->refs, plan->refs) || !is_in(step->operands, plan->tensors) ||
        !is_in(step->attrs, plan->attrs) || step->grain < 1)
        return dlcrt_damaged(c->name, "step %u is out of bounds", i);
    DLC_TRY(check_shape(c, step, i));
    if (!is_known(c, step->units) || !is_known(c, step->scratch_bytes))
        return dlcrt_damaged(c->name, "step %u uses a cell that is not known yet", i);
    if (step->kind >= DLC_DO_IF)
        DLC_TRY(check_mark(c, step, i));
    DLC_TRY(check_cells(c, step->symbols, "symbols of a kernel"));
    uint32_t nread = step->kind == DLC_DO_OPAQUE ? dlcrt_opaques[step->what].ninputs : step->refs.count;
    DLC_TRY(check_operands(c, step, i, 0, nread));
    DLC_TRY(enter_phase(c, step, i));
    if (!is_known(c, step->flops) || !is_known(c, step->bytes))
        return dlcrt_damaged(c->name, "step %u uses a cell that is not known yet", i);
    return check_operands(c, step, i, nread, UINT32_MAX);
}

static dlc_status check_outputs(const check *c)
{
    const dlc_plan_tensor *outputs = dlcrt_rows(c->plan, c->plan->outputs);
    for (uint32_t i = 0; i < c->plan->outputs.count; i++)
        DLC_TRY(check_tensor(c, &outputs[i], "an output"));
    return DLC_OK;
}

static dlc_status check_steps(check *c)
{
    const dlc_plan_step *step = dlcrt_rows(c->plan, c->plan->steps);
    const dlc_plan_kernel *kernel = dlcrt_rows(c->plan, c->plan->kernels);
    for (uint32_t i = 0; i < c->plan->steps.count; i++)
        DLC_TRY(check_step(c, &step[i], i));
    if (c->nopen)
        return dlcrt_damaged(c->name, "step %u begins what does not end", c->open[c->nopen - 1]);
    for (uint32_t i = 0; i < c->plan->kernels.count; i++)
        if (!is_string(c, kernel[i].name) || !is_string(c, kernel[i].peak) || !is_string(c, kernel[i].function))
            return dlcrt_damaged(c->name, "kernel %u is out of bounds", i);
    if (c->last + 1 != c->plan->phases.count)
        return dlcrt_damaged(c->name, "phase %u is never entered", c->last + 1);
    return check_outputs(c);
}

/* --- the file --- */
static dlc_status check_binaries(const check *c, const void *base)
{
    const dlc_plan_kernel *kernel = dlcrt_rows(c->plan, c->plan->kernels);
    const dlc_plan_binary *binary = dlcrt_rows(c->plan, c->plan->binaries);
    for (uint32_t i = 0; i < c->plan->kernels.count; i++)
        if (!is_in(kernel[i].binaries, c->plan->binaries))
            return dlcrt_damaged(c->name, "the binaries of kernel %u are out of bounds", i);
    for (uint32_t i = 0; i < c->plan->binaries.count; i++, binary++) {
        if (binary->kind > DLC_BINARY_PTX || binary->size_bytes == 0 ||
            binary->offset > c->binaries_bytes ||
            binary->size_bytes > c->binaries_bytes - binary->offset)
            return dlcrt_damaged(c->name, "binary %u lies outside the file", i);
        const char *last = (const char *)base + binary->offset + binary->size_bytes - 1;
        if (binary->kind == DLC_BINARY_PTX && *last != '\0')
            return dlcrt_damaged(c->name, "binary %u does not end", i);
    }
    return DLC_OK;
}

/* What choosing a plan looks at. */
static dlc_status check_head(check *c, const dlcrt_image *image, const dlc_plan_entry *entry)
{
    if (!dlcrt_image_has(image, entry->plan, sizeof *entry->plan))
        return dlcrt_fail(DLC_INVALID, "%s: its plan or constants lie outside the file", c->name);
    c->plan = entry->plan;
    if (memcmp(c->plan->magic, DLC_PLAN_MAGIC, sizeof c->plan->magic) != 0 ||
        c->plan->abi_version != DLC_ABI_VERSION || c->plan->size_bytes < sizeof *c->plan ||
        !dlcrt_image_has(image, c->plan, c->plan->size_bytes) ||
        dlc_checksum(c->plan, c->plan->size_bytes) != entry->checksum)
        return dlcrt_damaged(c->name, "its checksum does not match");
    if (c->plan->device >= DLC_DEVICE_COUNT)
        return dlcrt_damaged(c->name, "its device is unknown");
    DLC_TRY(check_tables(c));
    return check_binaries(c, image->entry->binaries);
}

/* Tables, then the steps, which need memory for what was entered. */
static dlc_status check_flow(check *c)
{
    size_t nphases = c->plan->phases.count;
    c->entered = dlcrt_alloc(1, nphases);
    c->before = dlcrt_alloc(DLC_MOST_REGIONS, nphases);
    c->behind = dlcrt_alloc(DLC_MOST_REGIONS, nphases);
    dlc_status status = c->entered && c->before && c->behind ? DLC_OK : DLC_LIMIT;
    if (status == DLC_OK) {
        c->entered[0] = 1;
        status = check_tensors(c);
    }
    if (status == DLC_OK)
        status = check_steps(c);
    free(c->entered);
    free(c->before);
    free(c->behind);
    return status;
}

static dlc_status check_plan(check *c, const dlcrt_image *image, const dlc_plan_entry *entry)
{
    c->plan = entry->plan;
    DLC_TRY(check_insts(c));
    DLC_TRY(check_phases(c));
    DLC_TRY(check_flow(c));
    return dlcrt_devices[c->plan->device]->check(&(dlcrt_candidate){c->name, image, entry});
}

static dlc_status check_executable(const check *c, const dlcrt_image *image)
{
    const dlc_executable *executable = image->entry;
    if (memcmp(executable->magic, DLC_EXECUTABLE_MAGIC, sizeof executable->magic) != 0)
        return dlcrt_fail(DLC_INVALID, "%s: not an executable made by dlc", c->name);
    if (executable->abi_version != DLC_ABI_VERSION)
        return dlcrt_fail(DLC_INVALID,
                          "%s: format version %u, this runtime reads %u; compile the model again",
                          c->name, executable->abi_version, DLC_ABI_VERSION);
    if (executable->nplans == 0 ||
        !dlcrt_image_has(image, executable->plans,
                         sizeof *executable->plans * (uint64_t)executable->nplans) ||
        !dlcrt_image_has(image, executable->constants, executable->constants_bytes) ||
        (executable->binaries_bytes &&
         !dlcrt_image_has(image, executable->binaries, executable->binaries_bytes)))
        return dlcrt_fail(DLC_INVALID, "%s: its plan or constants lie outside the file", c->name);
    return DLC_OK;
}

dlc_status dlcrt_check(const dlcrt_image *image, const char *name, const char *wanted,
                       uint32_t number, uint64_t passed, const dlc_plan_entry **result,
                       dlcrt_device *device)
{
    const dlc_executable *executable = image->entry;
    check c = {.name = name,
               .constants_bytes = executable->constants_bytes,
               .binaries_bytes = executable->binaries_bytes};
    dlcrt_wish wish;
    DLC_TRY(dlcrt_wish_read(wanted, &wish));
    DLC_TRY(check_executable(&c, image));
    for (uint32_t i = 0; i < executable->nplans; i++)
        DLC_TRY(check_head(&c, image, &executable->plans[i]));
    DLC_TRY(dlcrt_choose(image, name, &wish, number, passed, result, device));
    return check_plan(&c, image, *result);
}

/*
 * Contexts: everything a run needs, sized before it. Sizes come in phases (abi.h): phase 0 holds as
 * long as the inputs' shapes stay, so a model of fixed shapes is sized once, when its context is
 * created; later phases follow from data inside a run. Memory only grows, in whole pages from the
 * system.
 */
#include "runtime/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024 };
static const int64_t max_bytes = INT64_C(1) << 46;

/* A cell that is a number of bytes or units. */
static dlc_status size_of(const dlcrt_context *context, uint32_t cell, const char *what,
                          const char *name, int64_t *result)
{
    int64_t value = context->cells[cell];
    if (context->lost[cell] || value > max_bytes)
        return dlcrt_fail(DLC_LIMIT, "%s of '%s' is too large for these shapes", what, name);
    if (value < 0)
        return dlcrt_fail(DLC_INVALID, "%s of '%s' is %" PRId64 " for these shapes", what, name,
                          value);
    *result = value;
    return DLC_OK;
}

/* --- phases --- */
static uint32_t phase_end(const dlc_plan *plan, uint32_t phase)
{
    const dlc_plan_phase *phases = dlcrt_rows(plan, plan->phases);
    return phases[phase].insts.first + phases[phase].insts.count;
}

/* Where the constants, inputs and outputs of a step lie; the caller's are set by each run. In a
 * plan of a device the steps on the CPU see the constants where the file has them. */
static void *address_of(const dlcrt_context *context, const dlc_plan_step *step,
                        const dlc_plan_ref *ref)
{
    int is_of_device = step->device == context->plan->device;
    return (is_of_device ? context->device : &dlcrt_device_CPU)->address(context, ref);
}

static dlc_status place_ref(dlcrt_context *context, const dlc_plan_step *of, uint32_t row,
                            const char *step)
{
    const dlc_plan_ref *ref =
        (const dlc_plan_ref *)dlcrt_rows(context->plan, context->plan->refs) + row;
    int64_t size_bytes, offset = 0, skip = 0, limit = max_bytes;
    DLC_TRY(size_of(context, ref->size_bytes, "a buffer", step, &size_bytes));
    if (ref->skip != DLC_NO_CELL)
        DLC_TRY(size_of(context, ref->skip, "the start of a part", step, &skip));
    const dlc_plan_tensor *tensors = NULL;
    if (ref->place == DLC_REF_ARENA || ref->place == DLC_REF_HOST) {
        const dlcrt_memory *memory = ref->place == DLC_REF_ARENA ? &context->arena : &context->host;
        DLC_TRY(size_of(context, ref->index, "the arena", step, &offset));
        limit = offset % 64 ? -1 : (int64_t)memory->size_bytes;
        offset += skip;
        context->pointers[row] = (void *)((uintptr_t)memory->bytes + (uintptr_t)offset);
    } else if (ref->place == DLC_REF_CONSTANT) {
        offset = (int64_t)ref->offset;
        limit = (int64_t)context->executable->image.entry->constants_bytes;
        context->pointers[row] = address_of(context, of, ref);
    } else if (ref->place == DLC_REF_NONE) {
        context->pointers[row] = NULL;
    } else {
        tensors = dlcrt_rows(context->plan, ref->place == DLC_REF_INPUT ? context->plan->inputs
                                                                        : context->plan->outputs);
        limit = context->cells[tensors[ref->index].size_bytes];
        offset = skip;
        context->pointers[row] = address_of(context, of, ref);
    }
    if (offset > limit || size_bytes > limit - offset)
        return dlcrt_fail(DLC_INVALID,
                          "step '%s': a buffer of %" PRId64 " bytes at %" PRId64
                          " passes the end at %" PRId64,
                          step, size_bytes, offset, limit);
    return DLC_OK;
}

static dlc_status place_refs(dlcrt_context *context, const dlc_plan_step *step, uint32_t first,
                             uint32_t end)
{
    const char *name = dlcrt_string(context->plan, step->name);
    for (uint32_t i = first; i < end; i++)
        DLC_TRY(place_ref(context, step, step->refs.first + i, name));
    return DLC_OK;
}

/* Buffers that a step may have before the phase it enters. */
static uint32_t refs_before(const dlc_plan_step *step)
{
    return step->phase && step->kind == DLC_DO_OPAQUE ? dlcrt_opaques[step->what].ninputs
                                                      : step->refs.count;
}

/* Scratch of one step and the kernel's symbols. */
static dlc_status size_launch(dlcrt_context *context, const dlc_plan_step *step,
                              size_t *scratch_bytes)
{
    const char *name = dlcrt_string(context->plan, step->name);
    const uint32_t *cells = dlcrt_rows(context->plan, context->plan->cells);
    int64_t units, scratch;
    DLC_TRY(size_of(context, step->units, "the work", name, &units));
    DLC_TRY(size_of(context, step->scratch_bytes, "the scratch memory", name, &scratch));
    DLC_TRY(context->device->size_launch(context, step, scratch_bytes));
    if (units / step->grain >= 2)
        context->is_parallel = 1;
    for (uint32_t i = step->symbols.first; i < step->symbols.first + step->symbols.count; i++) {
        if (context->lost[cells[i]])
            return dlcrt_fail(DLC_LIMIT, "a size of '%s' passes 64 bits for these shapes", name);
        context->values[i] = context->cells[cells[i]];
    }
    return DLC_OK;
}

static dlc_status grow_scratch(dlcrt_context *context, size_t scratch_bytes)
{
    size_t stride = (scratch_bytes + 127) / 128 * 128, total;
    if (stride <= context->scratch_stride)
        return DLC_OK;
    if (__builtin_mul_overflow(stride, dlcrt_pool_threads(context->pool), &total))
        return dlcrt_no_memory(stride);
    DLC_TRY(dlcrt_context_grow(context, &context->scratch, total, 0));
    context->scratch_stride = stride;
    return DLC_OK;
}

/* All steps whose sizes are of the first phase; later ones when they run. */
static dlc_status size_first(dlcrt_context *context)
{
    const dlc_plan_step *step = dlcrt_rows(context->plan, context->plan->steps);
    size_t scratch_bytes = 0;
    for (uint32_t i = 0; i < context->plan->steps.count; i++, step++) {
        if (context->step_phase[i])
            continue;
        if (step->kind == DLC_DO_LAUNCH)
            DLC_TRY(size_launch(context, step, &scratch_bytes));
        DLC_TRY(place_refs(context, step, 0, step->refs.count));
    }
    return grow_scratch(context, scratch_bytes);
}

dlc_status dlcrt_step_size(dlcrt_context *context, uint32_t i)
{
    const dlc_plan_step *step = (const dlc_plan_step *)dlcrt_rows(context->plan, context->plan->steps) + i;
    size_t scratch_bytes = 0;
    if (!context->step_phase[i] || context->step_sized[i] == context->nentered)
        return DLC_OK;
    if (step->kind == DLC_DO_LAUNCH)
        DLC_TRY(size_launch(context, step, &scratch_bytes));
    DLC_TRY(place_refs(context, step, 0, refs_before(step)));
    DLC_TRY(grow_scratch(context, scratch_bytes));
    context->step_sized[i] = context->nentered;
    return DLC_OK;
}

dlc_status dlcrt_step_size_bound(dlcrt_context *context, const dlc_plan_step *step)
{
    return place_refs(context, step, 0, step->refs.count);
}

/* --- which phase a step waits for --- */
static uint32_t phase_of(const dlc_plan *plan, uint32_t cell)
{
    const dlc_plan_phase *phases = dlcrt_rows(plan, plan->phases);
    uint32_t low = 0, high = plan->phases.count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (phases[middle].insts.first <= cell)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void wait_for(const dlc_plan *plan, uint32_t cell, uint32_t *phase)
{
    uint32_t of = phase_of(plan, cell);
    *phase = of > *phase ? of : *phase;
}

static uint32_t phase_of_step(const dlc_plan *plan, const dlc_plan_step *step)
{
    const dlc_plan_ref *refs = (const dlc_plan_ref *)dlcrt_rows(plan, plan->refs) + step->refs.first;
    const dlc_plan_tensor *outputs = dlcrt_rows(plan, plan->outputs);
    const uint32_t *cells = (const uint32_t *)dlcrt_rows(plan, plan->cells) + step->symbols.first;
    uint32_t phase = step->kind == DLC_DO_OPAQUE ? step->phase : 0;
    wait_for(plan, step->units, &phase);
    wait_for(plan, step->scratch_bytes, &phase);
    for (uint32_t i = 0; i < step->symbols.count; i++)
        wait_for(plan, cells[i], &phase);
    for (uint32_t i = 0; i < step->refs.count; i++) {
        wait_for(plan, refs[i].size_bytes, &phase);
        if (refs[i].place == DLC_REF_ARENA || refs[i].place == DLC_REF_HOST)
            wait_for(plan, refs[i].index, &phase);
        if (refs[i].place == DLC_REF_OUTPUT)
            wait_for(plan, outputs[refs[i].index].size_bytes, &phase);
        if (refs[i].skip != DLC_NO_CELL)
            wait_for(plan, refs[i].skip, &phase);
    }
    return phase;
}

static dlc_status check_conditions(const dlcrt_context *context, const dlc_plan_phase *phase)
{
    const dlc_plan_condition *conditions = dlcrt_rows(context->plan, context->plan->conditions);
    for (uint32_t i = phase->conditions.first;
         i < phase->conditions.first + phase->conditions.count; i++)
        if (!context->cells[conditions[i].holds])
            return dlcrt_fail(DLC_INVALID, "%s", dlcrt_string(context->plan, conditions[i].text));
    return DLC_OK;
}

/* Outputs whose size this phase made known. */
static dlc_status size_outputs(dlcrt_context *context, uint32_t begin, uint32_t end)
{
    const dlc_plan_tensor *output = dlcrt_rows(context->plan, context->plan->outputs);
    const uint32_t *cells = dlcrt_rows(context->plan, context->plan->cells);
    for (uint32_t i = 0; i < context->plan->outputs.count; i++, output++) {
        const char *name = dlcrt_string(context->plan, output->name);
        int64_t size_bytes;
        for (uint32_t k = 0; k < output->rank; k++)
            if (cells[output->dims + k] >= begin && cells[output->dims + k] < end)
                DLC_TRY(
                    size_of(context, cells[output->dims + k], "a dimension", name, &size_bytes));
        if (output->size_bytes < begin || output->size_bytes >= end)
            continue;
        DLC_TRY(size_of(context, output->size_bytes, "the output", name, &size_bytes));
    }
    return DLC_OK;
}

dlc_status dlcrt_output_place(dlcrt_context *context, uint32_t i)
{
    const dlc_plan_tensor *output =
        (const dlc_plan_tensor *)dlcrt_rows(context->plan, context->plan->outputs) + i;
    const uint32_t *cells =
        (const uint32_t *)dlcrt_rows(context->plan, context->plan->cells) + output->dims;
    dlcrt_tensor *tensor = context->outputs[i];
    size_t need = (size_t)context->cells[output->size_bytes];
    if (tensor->on_device && context->device->is_host)
        return dlcrt_fail(DLC_USAGE, "output '%s' is memory of a device; this run is on the CPU",
                          dlcrt_string(context->plan, output->name));
    void *own = tensor->on_device ? context->device->own_output(context, i) : context->own[i].bytes;
    int is_own = !tensor->data || tensor->data == own; /* of an earlier run, too */
    if (!is_own && tensor->size_bytes < need)
        return dlcrt_fail(DLC_INVALID, "output '%s' needs %zu bytes, its buffer has %zu",
                          dlcrt_string(context->plan, output->name), need, tensor->size_bytes);
    if (is_own) {
        if (!tensor->on_device)
            DLC_TRY(dlcrt_context_grow(context, &context->own[i], need ? need : 1, 0));
        tensor->data = tensor->on_device ? own : context->own[i].bytes;
        tensor->size_bytes = need;
    }
    tensor->dtype = (dlc_dtype)output->dtype;
    tensor->rank = output->rank;
    for (uint32_t k = 0; k < output->rank; k++)
        tensor->dims[k] = context->cells[cells[k]];
    return DLC_OK;
}

static dlc_status place_outputs(dlcrt_context *context, uint32_t begin, uint32_t end)
{
    const dlc_plan_tensor *output = dlcrt_rows(context->plan, context->plan->outputs);
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        if (output[i].size_bytes >= begin && output[i].size_bytes < end)
            DLC_TRY(dlcrt_output_place(context, i));
    return DLC_OK;
}

/* What a branch that is not taken would find out counts as little as it can: where memory lies must not depend on it. */
static void forget_data(dlcrt_context *context)
{
    const dlc_plan_symbol *symbols = dlcrt_rows(context->plan, context->plan->symbols);
    for (uint32_t i = 0; i < context->plan->symbols.count; i++)
        if (symbols[i].bind == DLC_SYMBOL_DATA)
            context->symbols[i] = symbols[i].lo > 0 ? symbols[i].lo : symbols[i].hi < 0 ? symbols[i].hi : 0;
    context->reached = 0;
}

/* With the phases that were passed by on the way: what lies behind them has moved with what came before them. */
static void compute_up_to(dlcrt_context *context, uint32_t phase)
{
    const dlc_plan_phase *phases = dlcrt_rows(context->plan, context->plan->phases);
    for (uint32_t p = context->reached < phase ? context->reached + 1 : phase; p <= phase; p++)
        dlcrt_size_run(context->plan, phases[p].insts, context->symbols, context->cells, context->lost);
    context->reached = phase;
}

static void size_later(dlcrt_context *context)
{
    forget_data(context);
    if (context->plan->phases.count > 1)
        compute_up_to(context, context->plan->phases.count - 1);
    context->reached = 0;
}

/* Phases after the first are entered while a run has its outputs at hand. */
dlc_status dlcrt_phase_enter(dlcrt_context *context, uint32_t phase)
{
    const dlc_plan *plan = context->plan;
    const dlc_plan_phase *row = (const dlc_plan_phase *)dlcrt_rows(plan, plan->phases) + phase;
    int64_t arena_bytes, host_bytes;
    const void *arena = context->arena.bytes, *host = context->host.bytes;
    if (phase) {
        compute_up_to(context, phase);
        DLC_TRY(check_conditions(context, row));
    }
    DLC_TRY(size_outputs(context, row->insts.first, phase_end(plan, phase)));
    DLC_TRY(size_of(context, row->arena_bytes, "the memory", dlcrt_string(plan, plan->model),
                    &arena_bytes));
    DLC_TRY(size_of(context, row->host_bytes, "the memory", dlcrt_string(plan, plan->model),
                    &host_bytes));
    DLC_TRY(dlcrt_context_grow(context, &context->host, (size_t)host_bytes, phase ? context->host.size_bytes : 0));
    DLC_TRY(context->device->place(context, phase, (size_t)arena_bytes));
    context->nentered++;
    if (!phase)
        size_later(context);
    if (!phase || context->arena.bytes != arena || context->host.bytes != host)
        DLC_TRY(size_first(context)); /* or it has moved */
    if (context->sized <= phase)
        context->sized = phase + 1;
    return phase ? place_outputs(context, row->insts.first, phase_end(plan, phase)) : DLC_OK;
}

/* --- input shapes --- */
static dlc_status refuse_shape(const dlcrt_context *context, uint32_t i, const dlcrt_tensor *tensor)
{
    const dlc_plan_tensor *input =
        (const dlc_plan_tensor *)dlcrt_rows(context->plan, context->plan->inputs) + i;
    const uint32_t *cells =
        (const uint32_t *)dlcrt_rows(context->plan, context->plan->cells) + input->dims;
    char found[256] = "", here[256] = "";
    dlcrt_text text = {found, sizeof found, 0}, wanted = {here, sizeof here, 0};
    int64_t dims[DLCRT_MAX_RANK];
    dlcrt_text_dims(&text, tensor->rank < DLCRT_MAX_RANK ? tensor->rank : DLCRT_MAX_RANK,
                    tensor->dims);
    for (uint32_t k = 0; k < input->rank; k++)
        dims[k] = context->cells[cells[k]];
    dlcrt_text_dims(&wanted, input->rank, dims);
    int is_dynamic = context->plan->symbols.count && tensor->rank == input->rank;
    return dlcrt_fail(DLC_INVALID, "input '%s': shape %s, wanted %s%s%s%s",
                      dlcrt_string(context->plan, input->name), found,
                      dlcrt_string(context->plan, input->type_text),
                      is_dynamic ? ", with the other dimensions given " : "",
                      is_dynamic ? here : "", tensor->rank != input->rank ? " (another rank)" : "");
}

static dlc_status bind_symbols(dlcrt_context *context, const dlcrt_tensor *const *inputs)
{
    const dlc_plan_symbol *symbol = dlcrt_rows(context->plan, context->plan->symbols);
    const dlc_plan_tensor *tensors = dlcrt_rows(context->plan, context->plan->inputs);
    for (uint32_t i = 0; i < context->plan->symbols.count; i++, symbol++) {
        if (symbol->bind != DLC_SYMBOL_INPUT_DIM)
            continue;
        int64_t value = inputs[symbol->input]->dims[symbol->index];
        if (value < symbol->lo || value > symbol->hi)
            return dlcrt_fail(
                DLC_INVALID,
                "input '%s': dimension %u (%s) is %" PRId64 ", wanted %" PRId64 " to %" PRId64,
                dlcrt_string(context->plan, tensors[symbol->input].name), symbol->index,
                dlcrt_string(context->plan, symbol->name), value, symbol->lo, symbol->hi);
        context->symbols[i] = value;
    }
    return DLC_OK;
}

/* Steps read as much of an input as its size says, and callers have as much as its shape says: both are numbers of the file. */
static dlc_status check_input_size(const dlcrt_context *context, const dlc_plan_tensor *input)
{
    const char *name = dlcrt_string(context->plan, input->name);
    int64_t size_bytes = 0;
    DLC_TRY(size_of(context, input->size_bytes, "the input", name, &size_bytes));
    if (dlcrt_tensor_takes(context, input, size_bytes))
        return DLC_OK;
    return dlcrt_fail(DLC_INVALID, "input '%s': the executable has %" PRId64 " bytes for %s, which is damaged", name, size_bytes,
                      dlcrt_string(context->plan, input->type_text));
}

static dlc_status check_shapes(const dlcrt_context *context, const dlcrt_tensor *const *inputs)
{
    const dlc_plan_tensor *input = dlcrt_rows(context->plan, context->plan->inputs);
    const uint32_t *cells = dlcrt_rows(context->plan, context->plan->cells);
    for (uint32_t i = 0; i < context->plan->inputs.count; i++, input++) {
        for (uint32_t k = 0; k < input->rank; k++)
            if (inputs[i]->dims[k] != context->cells[cells[input->dims + k]] ||
                inputs[i]->dims[k] < 0)
                return refuse_shape(context, i, inputs[i]);
        DLC_TRY(check_input_size(context, input));
    }
    return DLC_OK;
}

/* inputs by position, names and dtypes checked. Does nothing when everything is sized for their
 * shapes already. */
dlc_status dlcrt_context_size(dlcrt_context *context, const dlcrt_tensor *const *inputs)
{
    const dlc_plan *plan = context->plan;
    const dlc_plan_tensor *tensors = dlcrt_rows(plan, plan->inputs);
    const dlc_plan_phase *phase = dlcrt_rows(plan, plan->phases);
    int is_same = context->sized > 0;
    for (uint32_t i = 0; i < plan->inputs.count; i++) {
        if (inputs[i]->rank != tensors[i].rank)
            return refuse_shape(context, i, inputs[i]);
        is_same &= !memcmp(&context->input_dims[i * DLCRT_MAX_RANK], inputs[i]->dims,
                           tensors[i].rank * sizeof(int64_t));
    }
    if (is_same) {
        if (plan->phases.count > 1)
            forget_data(context);
        return DLC_OK;
    }
    if (plan->symbols.count) {
        context->sized = 0;
        DLC_TRY(bind_symbols(context, inputs));
        dlcrt_size_run(plan, phase->insts, context->symbols, context->cells, context->lost);
    }
    DLC_TRY(check_shapes(context, inputs));
    DLC_TRY(check_conditions(context, phase));
    context->is_parallel = 0;
    DLC_TRY(dlcrt_phase_enter(context, 0));
    for (uint32_t i = 0; i < plan->inputs.count; i++)
        memcpy(&context->input_dims[i * DLCRT_MAX_RANK], inputs[i]->dims,
               tensors[i].rank * sizeof(int64_t));
    return DLC_OK;
}

/* --- life --- */
dlc_status dlcrt_wanted_threads(const dlcrt_context_options *options, uint32_t *nthreads)
{
    unsigned long wanted = options ? options->threads : 0;
    const char *text = wanted ? NULL : getenv("DLC_NUM_THREADS");
    if (text && *text) {
        char *end;
        wanted = (unsigned long)strtol(text, &end, 10);
        if (*text < '0' || *text > '9' || *end)
            return dlcrt_fail(DLC_USAGE, "DLC_NUM_THREADS is '%s', no number of threads", text);
    }
    if (!wanted)
        wanted = dlcrt_cpu_count();
    *nthreads = wanted < MAX_THREADS ? (uint32_t)wanted : MAX_THREADS;
    return DLC_OK;
}

static dlc_status allocate(dlcrt_context *context)
{
    const dlc_plan *plan = context->plan;
    context->symbols = dlcrt_alloc(plan->symbols.count, sizeof *context->symbols);
    context->cells = dlcrt_alloc(plan->insts.count, sizeof *context->cells);
    context->lost = dlcrt_alloc(plan->insts.count, sizeof *context->lost);
    context->values = dlcrt_alloc(plan->cells.count, sizeof *context->values);
    context->pointers = dlcrt_alloc(plan->refs.count, sizeof *context->pointers);
    context->step_phase = dlcrt_alloc(plan->steps.count, sizeof *context->step_phase);
    context->step_sized = dlcrt_alloc(plan->steps.count, sizeof *context->step_sized);
    context->input_dims =
        dlcrt_alloc(plan->inputs.count, DLCRT_MAX_RANK * sizeof *context->input_dims);
    context->inputs = dlcrt_alloc(plan->inputs.count, sizeof *context->inputs);
    context->outputs = dlcrt_alloc(plan->outputs.count, sizeof *context->outputs);
    context->own = dlcrt_alloc(plan->outputs.count, sizeof *context->own);
    context->numbers = dlcrt_alloc(plan->inputs.count, sizeof *context->numbers);
    if (!context->symbols || !context->cells || !context->lost || !context->values ||
        !context->pointers || !context->step_phase || !context->step_sized || !context->input_dims || !context->inputs || !context->outputs ||
        !context->own || !context->numbers)
        return DLC_LIMIT;
    return dlcrt_strings_open(context);
}

/* A model without symbols is sized for good. */
static dlc_status size_fixed(dlcrt_context *context)
{
    const dlc_plan *plan = context->plan;
    const dlc_plan_phase *phase = dlcrt_rows(plan, plan->phases);
    const dlc_plan_tensor *tensors = dlcrt_rows(plan, plan->inputs);
    const uint32_t *cells = dlcrt_rows(plan, plan->cells);
    dlcrt_size_run(plan, phase->insts, context->symbols, context->cells, context->lost);
    for (uint32_t i = 0; i < plan->inputs.count; i++)
        DLC_TRY(check_input_size(context, &tensors[i]));
    DLC_TRY(check_conditions(context, phase));
    DLC_TRY(dlcrt_phase_enter(context, 0));
    for (uint32_t i = 0; i < plan->inputs.count; i++)
        for (uint32_t k = 0; k < tensors[i].rank; k++)
            context->input_dims[i * DLCRT_MAX_RANK + k] =
                context->cells[cells[tensors[i].dims + k]];
    return DLC_OK;
}

static int has_input_symbols(const dlc_plan *plan)
{
    const dlc_plan_symbol *symbols = dlcrt_rows(plan, plan->symbols);
    for (uint32_t i = 0; i < plan->symbols.count; i++)
        if (symbols[i].bind == DLC_SYMBOL_INPUT_DIM)
            return 1;
    return 0;
}

static dlc_status make_profile(dlcrt_context *context)
{
    size_t nsteps = context->plan->steps.count, nthreads = dlcrt_pool_threads(context->pool);
    context->profile = dlcrt_alloc(nsteps, sizeof *context->profile);
    context->thread_times = dlcrt_alloc(nsteps * nthreads, sizeof *context->thread_times);
    return context->profile && context->thread_times ? DLC_OK : DLC_LIMIT;
}

static dlc_status set_up(dlcrt_context *context, const dlcrt_context_options *options)
{
    uint32_t nthreads = 1;
    DLC_TRY(allocate(context));
    for (uint32_t i = 0; i < context->plan->steps.count; i++)
        context->step_phase[i] =
            phase_of_step(context->plan, (const dlc_plan_step *)dlcrt_rows(context->plan, context->plan->steps) + i);
    if (context->device->is_host)
        DLC_TRY(dlcrt_wanted_threads(options, &nthreads));
    context->pool = dlcrt_pool_create(nthreads);
    if (!context->pool)
        return DLC_LIMIT;
    if (options && options->profile)
        DLC_TRY(make_profile(context));
    context->poison = options && options->poison;
    context->max_mebibytes = options ? options->max_mebibytes : 0;
    DLC_TRY(context->device->open(context, options));
    if (has_input_symbols(context->plan))
        return DLC_OK;
    DLC_TRY(context->device->enter(context));
    dlc_status status = size_fixed(context);
    context->device->leave(context);
    return status;
}

dlc_status dlcrt_context_create(dlcrt_executable *executable, const dlcrt_context_options *options,
                                dlcrt_context **result)
{
    if (!executable || !result)
        return dlcrt_fail(DLC_USAGE, "dlcrt_context_create: %s is NULL",
                          result ? "executable" : "result");
    *result = NULL;
    dlcrt_context *context = dlcrt_alloc(1, sizeof *context);
    if (!context)
        return DLC_LIMIT;
    context->executable = executable;
    context->plan = executable->plan;
    context->device = executable->device.row;
    dlcrt_executable_retain(executable);
    dlc_status status = set_up(context, options);
    if (status) {
        dlcrt_context_destroy(context);
        return status;
    }
    *result = context;
    return DLC_OK;
}

void dlcrt_context_destroy(dlcrt_context *context)
{
    if (!context)
        return;
    dlcrt_pool_destroy(context->pool);
    for (uint32_t i = 0; context->own && i < context->plan->outputs.count; i++)
        dlcrt_memory_free(&context->own[i]);
    for (uint32_t i = 0; context->numbers && i < context->plan->inputs.count; i++)
        dlcrt_memory_free(&context->numbers[i]);
    dlcrt_strings_free(&context->strings);
    context->device->close(context);
    dlcrt_memory_free(&context->host);
    dlcrt_memory_free(&context->scratch);
    void *const blocks[] = {context->step_phase,     context->step_sized, context->symbols,        context->cells,    context->lost,
                            context->values,         context->pointers, context->input_dims,
                            (void *)context->inputs, context->outputs,  context->own, context->numbers,
                            context->profile, context->thread_times};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        free(blocks[i]);
    dlcrt_executable_close(context->executable);
    free(context);
}

uint32_t dlcrt_context_threads(const dlcrt_context *context)
{
    return context ? dlcrt_pool_threads(context->pool) : 0;
}

size_t dlcrt_context_bytes(const dlcrt_context *context)
{
    if (!context)
        return 0;
    size_t total =
        context->scratch.size_bytes + context->host.size_bytes + context->device->bytes(context);
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        total += context->own[i].size_bytes;
    for (uint32_t i = 0; i < context->plan->inputs.count; i++)
        total += context->numbers[i].size_bytes;
    return total + dlcrt_strings_bytes(&context->strings);
}

int dlcrt_context_output(const dlcrt_context *context, uint32_t i, dlcrt_tensor_info *info)
{
    if (!context || !info || i >= context->plan->outputs.count)
        return 0;
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    uint32_t ncells = context->sized ? phase_end(context->plan, context->sized - 1) : 0;
    dlcrt_tensor_describe(context->plan, &outputs[i], context->cells, ncells, info);
    return 1;
}

size_t dlcrt_context_output_bytes(const dlcrt_context *context, uint32_t i)
{
    if (!context || i >= context->plan->outputs.count || !context->sized)
        return 0;
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    if (outputs[i].size_bytes >= phase_end(context->plan, context->sized - 1))
        return 0;
    return (size_t)context->cells[outputs[i].size_bytes];
}

int dlcrt_context_profile(const dlcrt_context *context, uint32_t i, dlcrt_step_profile *profile)
{
    if (!context || !profile || i >= context->plan->steps.count)
        return 0;
    *profile = context->profile ? context->profile[i] : (dlcrt_step_profile){0};
    const dlc_plan_step *step =
        (const dlc_plan_step *)dlcrt_rows(context->plan, context->plan->steps) + i;
    uint32_t ncells = context->sized ? phase_end(context->plan, context->sized - 1) : 0;
    profile->units = step->kind != DLC_DO_LAUNCH ? 1
                     : step->units < ncells      ? context->cells[step->units]
                                                 : 0;
    profile->flops = step->flops < ncells ? (double)context->cells[step->flops] : 0;
    profile->bytes = step->bytes < ncells ? (double)context->cells[step->bytes] : 0;
    return 1;
}

int dlcrt_context_thread_profile(const dlcrt_context *context, uint32_t i, uint32_t t, dlcrt_thread_profile *profile)
{
    if (!context || !profile || i >= context->plan->steps.count || t >= dlcrt_pool_threads(context->pool))
        return 0;
    *profile = context->thread_times ? context->thread_times[i * (size_t)dlcrt_pool_threads(context->pool) + t]
                                     : (dlcrt_thread_profile){0};
    return 1;
}

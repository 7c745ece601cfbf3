/*
 * One run: inputs and outputs are matched to the model's, then the steps are walked in order.
 * Nothing here allocates, locks or calls the system unless a shape is new, a worker sleeps or a
 * profile is taken.
 */
#include "runtime/device.h"

#include <inttypes.h>
#include <string.h>

/* --- matching --- */
/* Which tensor of the plan's table `name` is; by position without a name. */
static uint32_t find_tensor(const dlc_plan *plan, dlc_plan_rows rows, const char *name,
                            uint32_t position)
{
    const dlc_plan_tensor *tensors = dlcrt_rows(plan, rows);
    if (!name ||
        (position < rows.count && !strcmp(name, dlcrt_string(plan, tensors[position].name))))
        return position;
    for (uint32_t i = 0; i < rows.count; i++)
        if (!strcmp(name, dlcrt_string(plan, tensors[i].name)))
            return i;
    return UINT32_MAX;
}

static dlc_status refuse_name(const dlc_plan *plan, dlc_plan_rows rows, const char *what,
                              const char *name)
{
    const dlc_plan_tensor *tensors = dlcrt_rows(plan, rows);
    char names[512] = "";
    dlcrt_text text = {names, sizeof names, 0};
    for (uint32_t i = 0; i < rows.count; i++)
        dlcrt_text_add(&text, "%s'%s'", i ? ", " : "", dlcrt_string(plan, tensors[i].name));
    return dlcrt_fail(DLC_INVALID, "no %s is called '%s'; the model has %s", what, name, names);
}

static dlc_status check_input(const dlc_plan *plan, const dlc_plan_tensor *input,
                              const dlcrt_tensor *tensor)
{
    const char *name = dlcrt_string(plan, input->name);
    if (tensor->dtype != input->dtype)
        return dlcrt_fail(DLC_INVALID, "input '%s': dtype %s, wanted %s", name,
                          tensor->dtype < DLC_DTYPE_COUNT ? dlc_dtypes[tensor->dtype].text
                                                          : "unknown",
                          dlcrt_string(plan, input->type_text));
    if (tensor->rank > DLCRT_MAX_RANK)
        return dlcrt_fail(DLC_INVALID, "input '%s': rank %u, wanted %s", name, tensor->rank,
                          dlcrt_string(plan, input->type_text));
    return DLC_OK;
}

static dlc_status match_inputs(dlcrt_context *context, const dlcrt_tensor *inputs, uint32_t ninputs)
{
    const dlc_plan *plan = context->plan;
    const dlc_plan_tensor *wanted = dlcrt_rows(plan, plan->inputs);
    if (ninputs != plan->inputs.count)
        return dlcrt_fail(DLC_INVALID, "%u inputs given, the model has %u", ninputs,
                          plan->inputs.count);
    if (ninputs && !inputs)
        return dlcrt_fail(DLC_USAGE, "inputs is NULL");
    memset(context->inputs, 0, ninputs * sizeof *context->inputs);
    for (uint32_t i = 0; i < ninputs; i++) {
        uint32_t at = find_tensor(plan, plan->inputs, inputs[i].name, i);
        if (at == UINT32_MAX)
            return refuse_name(plan, plan->inputs, "input", inputs[i].name);
        if (context->inputs[at])
            return dlcrt_fail(DLC_INVALID, "input '%s' is given twice",
                              dlcrt_string(plan, wanted[at].name));
        DLC_TRY(check_input(plan, &wanted[at], &inputs[i]));
        context->inputs[at] = &inputs[i];
    }
    return DLC_OK;
}

static dlc_status check_input_bytes(const dlcrt_context *context)
{
    const dlc_plan_tensor *wanted = dlcrt_rows(context->plan, context->plan->inputs);
    for (uint32_t i = 0; i < context->plan->inputs.count; i++) {
        const dlcrt_tensor *tensor = context->inputs[i];
        size_t need = (size_t)context->cells[wanted[i].size_bytes];
        const char *name = dlcrt_string(context->plan, wanted[i].name);
        if (tensor->size_bytes && tensor->size_bytes != need)
            return dlcrt_fail(DLC_INVALID, "input '%s': %zu bytes, wanted %zu for %s", name,
                              tensor->size_bytes, need,
                              dlcrt_string(context->plan, wanted[i].type_text));
        if (tensor->on_device && context->device->is_host)
            return dlcrt_fail(DLC_USAGE, "input '%s' is memory of a device; this run is on the CPU",
                              name);
        if (!tensor->data && need)
            return dlcrt_fail(DLC_INVALID, "input '%s': data is NULL, wanted %zu bytes", name,
                              need);
    }
    return DLC_OK;
}

static dlc_status match_outputs(dlcrt_context *context, dlcrt_tensor *outputs, uint32_t noutputs)
{
    const dlc_plan *plan = context->plan;
    const dlc_plan_tensor *wanted = dlcrt_rows(plan, plan->outputs);
    if (noutputs != plan->outputs.count)
        return dlcrt_fail(DLC_INVALID, "%u outputs given, the model has %u", noutputs,
                          plan->outputs.count);
    if (noutputs && !outputs)
        return dlcrt_fail(DLC_USAGE, "outputs is NULL");
    memset(context->outputs, 0, noutputs * sizeof *context->outputs);
    for (uint32_t i = 0; i < noutputs; i++) {
        uint32_t at = find_tensor(plan, plan->outputs, outputs[i].name, i);
        if (at == UINT32_MAX)
            return refuse_name(plan, plan->outputs, "output", outputs[i].name);
        if (context->outputs[at])
            return dlcrt_fail(DLC_INVALID, "output '%s' is given twice",
                              dlcrt_string(plan, wanted[at].name));
        context->outputs[at] = &outputs[i];
    }
    return DLC_OK;
}

static int is_known(const dlcrt_context *context, uint32_t cell)
{
    const dlc_plan_phase *phase = dlcrt_rows(context->plan, context->plan->phases);
    return cell < phase->insts.count;
}

static int overlaps(dlcrt_memory a, const void *bytes, size_t size_bytes)
{
    uintptr_t x = (uintptr_t)a.bytes, y = (uintptr_t)bytes;
    return a.size_bytes && size_bytes && (x < y ? y - x < a.size_bytes : x - y < size_bytes);
}

/* What output i may be written to, or may give back to the system to have more: the caller's buffer
 * or the context's own, of an earlier run. */
static dlcrt_memory memory_of(const dlcrt_context *context, uint32_t i)
{
    const dlcrt_tensor *tensor = context->outputs[i];
    int is_own = !tensor->data || tensor->data == context->own[i].bytes;
    if (tensor->data && !is_own)
        return (dlcrt_memory){tensor->data, tensor->size_bytes};
    return tensor->on_device ? (dlcrt_memory){0} : context->own[i];
}

/* Kernels read inputs while they write outputs: sharing memory would depend on the order of steps.
 */
static dlc_status check_overlap(const dlcrt_context *context, uint32_t output)
{
    const dlc_plan_tensor *inputs = dlcrt_rows(context->plan, context->plan->inputs);
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    dlcrt_memory memory = memory_of(context, output);
    const char *name = dlcrt_string(context->plan, outputs[output].name);
    for (uint32_t i = 0; i < context->plan->inputs.count; i++)
        if (overlaps(memory, context->inputs[i]->data,
                     (size_t)context->cells[inputs[i].size_bytes]))
            return dlcrt_fail(
                DLC_INVALID,
                "output '%s' and input '%s' share memory; give them buffers of their own", name,
                dlcrt_string(context->plan, inputs[i].name));
    for (uint32_t i = 0; i < output; i++) {
        dlcrt_memory other = memory_of(context, i);
        if (overlaps(memory, other.bytes, other.size_bytes))
            return dlcrt_fail(DLC_INVALID,
                              "outputs '%s' and '%s' share memory; give them buffers of their own",
                              name, dlcrt_string(context->plan, outputs[i].name));
    }
    return DLC_OK;
}

static dlc_status place_known_outputs(dlcrt_context *context)
{
    const dlc_plan_tensor *outputs = dlcrt_rows(context->plan, context->plan->outputs);
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        DLC_TRY(check_overlap(context, i));
    for (uint32_t i = 0; i < context->plan->outputs.count; i++)
        if (is_known(context, outputs[i].size_bytes))
            DLC_TRY(dlcrt_output_place(context, i));
    return DLC_OK;
}

/* --- steps --- */
/* The caller's memory, or the numbers of its strings. */
static void *input_data(const dlcrt_context *context, uint32_t i)
{
    const dlc_plan_tensor *inputs = dlcrt_rows(context->plan, context->plan->inputs);
    return context->has_strings && dlc_is_text((dlc_dtype)inputs[i].dtype) ? context->numbers[i].bytes
                                                                           : context->inputs[i]->data;
}

/* A step's buffers; those of the caller are put in as this run has them. */
static void *const *step_buffers(dlcrt_context *context, const dlc_plan_step *step)
{
    const dlc_plan_ref *refs =
        (const dlc_plan_ref *)dlcrt_rows(context->plan, context->plan->refs) + step->refs.first;
    void **pointers = context->pointers + step->refs.first;
    for (uint32_t i = 0; context->device->is_host && i < step->refs.count; i++) {
        int is_input = refs[i].place == DLC_REF_INPUT;
        if (!is_input && refs[i].place != DLC_REF_OUTPUT)
            continue;
        pointers[i] = is_input ? input_data(context, refs[i].index) : context->outputs[refs[i].index]->data;
        if (refs[i].skip != DLC_NO_CELL)
            pointers[i] = (unsigned char *)pointers[i] + context->cells[refs[i].skip];
    }
    return pointers;
}

static void fill_operand(const dlcrt_context *context, const dlc_plan_tensor *tensor, void *data,
                         dlcrt_operand *operand)
{
    const uint32_t *cells =
        (const uint32_t *)dlcrt_rows(context->plan, context->plan->cells) + tensor->dims;
    operand->data = data;
    operand->dtype = (dlc_dtype)tensor->dtype;
    operand->rank = tensor->rank;
    for (uint32_t k = 0; k < tensor->rank; k++)
        operand->dims[k] = context->cells[cells[k]];
}

static dlc_status bind_symbol(dlcrt_context *context, const dlc_plan_step *step, int64_t value)
{
    const dlc_plan_symbol *symbol =
        (const dlc_plan_symbol *)dlcrt_rows(context->plan, context->plan->symbols) + step->symbol;
    int over = step->kind == DLC_DO_SET && symbol->hi < INT64_MAX; /* a loop counts to behind its last iteration */
    if (value < symbol->lo || value > symbol->hi + over)
        return dlcrt_fail(DLC_INVALID,
                          "node '%s': %s is %" PRId64 ", wanted %" PRId64 " to %" PRId64,
                          dlcrt_string(context->plan, step->name),
                          dlcrt_string(context->plan, symbol->name), value, symbol->lo, symbol->hi);
    context->symbols[step->symbol] = value;
    return dlcrt_phase_enter(context, step->phase);
}

/* The operand lies in its buffer: both are numbers of the file. */
static dlc_status check_operand(const dlcrt_context *context, const dlc_plan_step *step, uint32_t i, const dlcrt_operand *operand)
{
    const dlc_plan_ref *ref = (const dlc_plan_ref *)dlcrt_rows(context->plan, context->plan->refs) + step->refs.first + i;
    int64_t left = context->cells[ref->size_bytes] / dlc_dtype_bytes(operand->dtype);
    int is_empty = 0;
    for (uint32_t k = 0; k < operand->rank; k++)
        is_empty |= operand->dims[k] == 0;
    for (uint32_t k = 0; k < operand->rank && !is_empty && left >= 0; k++)
        left = operand->dims[k] > 0 ? left / operand->dims[k] : -1;
    if (ref->place == DLC_REF_NONE || is_empty || left > 0)
        return DLC_OK;
    return dlcrt_fail(DLC_INVALID, "node '%s': operand %u is larger than its buffer", dlcrt_string(context->plan, step->name), i);
}

enum { MAX_OPERANDS = 8 };
#define DLC_OPAQUE(id, number, text, inputs, outputs, attrs, names, count, run)                           \
    _Static_assert((inputs) + (outputs) <= MAX_OPERANDS, text);
#include "dlc/opaque.def"
#undef DLC_OPAQUE

static dlc_status run_opaque(dlcrt_context *context, const dlc_plan_step *step)
{
    const dlcrt_opaque_info *info = &dlcrt_opaques[step->what];
    const dlc_plan_tensor *tensors =
        (const dlc_plan_tensor *)dlcrt_rows(context->plan, context->plan->tensors) +
        step->operands.first;
    dlcrt_operand operands[MAX_OPERANDS];
    dlcrt_opaque_args args = {
        .operands = operands,
        .attrs =
            (const int64_t *)dlcrt_rows(context->plan, context->plan->attrs) + step->attrs.first,
        .name = dlcrt_string(context->plan, step->name),
        .strings = &context->strings,
        .pool = context->pool,
    };
    void *const *buffers = step_buffers(context, step);
    for (uint32_t i = 0; i < info->ninputs; i++) {
        fill_operand(context, &tensors[i], buffers[i], &operands[i]);
        DLC_TRY(check_operand(context, step, i, &operands[i]));
    }
    if (info->count) {
        int64_t value = 0;
        DLC_TRY(info->count(&args, &value));
        DLC_TRY(bind_symbol(context, step, value));
        DLC_TRY(dlcrt_step_size_bound(context, step));
        buffers = step_buffers(context, step);
    }
    for (uint32_t i = 0; i < step->operands.count; i++) { /* inputs again: memory may have moved */
        fill_operand(context, &tensors[i], buffers[i], &operands[i]);
        DLC_TRY(check_operand(context, step, i, &operands[i]));
    }
    return info->run(&args);
}

static int64_t element(dlc_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case DLC_I8:
        return ((const int8_t *)data)[i];
    case DLC_BOOL:
    case DLC_U8:
        return ((const uint8_t *)data)[i];
    default:
        break;
    }
    union {
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
    } value = {0};
    uint32_t size_bytes = dlc_dtype_bytes(dtype);
    memcpy(&value, (const unsigned char *)data + i * (int64_t)size_bytes, size_bytes);
    return dtype == DLC_I16   ? value.i16
           : dtype == DLC_U16 ? value.u16
           : dtype == DLC_I32 ? value.i32
           : dtype == DLC_U32 ? value.u32
                              : value.i64;
}

static dlc_status run_bind(dlcrt_context *context, const dlc_plan_step *step)
{
    const dlc_plan_tensor *tensor =
        (const dlc_plan_tensor *)dlcrt_rows(context->plan, context->plan->tensors) +
        step->operands.first;
    int64_t at =
        ((const int64_t *)dlcrt_rows(context->plan, context->plan->attrs))[step->attrs.first];
    const dlc_plan_ref *ref = (const dlc_plan_ref *)dlcrt_rows(context->plan, context->plan->refs) + step->refs.first;
    int64_t size_bytes = context->cells[ref->size_bytes], one = dlc_dtype_bytes((dlc_dtype)tensor->dtype);
    if (at < 0 || dlc_is_float((dlc_dtype)tensor->dtype) || at >= size_bytes / one)
        return dlcrt_fail(DLC_INVALID, "node '%s': element %" PRId64 " is not there",
                          dlcrt_string(context->plan, step->name), at);
    return bind_symbol(context, step,
                       element((dlc_dtype)tensor->dtype, step_buffers(context, step)[0], at));
}

static dlc_status run_step(dlcrt_context *context, const dlc_plan_step *step)
{
    switch ((dlc_plan_do)step->kind) {
    case DLC_DO_LAUNCH:
        (void)step_buffers(context, step);
        return context->device->launch(context, step);
    case DLC_DO_COPY:
        (void)step_buffers(context, step);
        return context->device->copy(context, step);
    default: /* on the CPU: what it reads must have come */
        DLC_TRY(context->device->wait(context));
        return step->kind == DLC_DO_OPAQUE ? run_opaque(context, step) : run_bind(context, step);
    }
}

/* Where to go on: the step behind this one, or where a branch or loop leads. */
static dlc_status run_mark(dlcrt_context *context, const dlc_plan_step *step, uint32_t i, uint32_t *next)
{
    int64_t cell = context->cells[step->units];
    switch ((dlc_plan_do)step->kind) {
    case DLC_DO_SET:
        if (context->lost[step->units])
            return dlcrt_fail(DLC_LIMIT, "'%s' passes 64 bits", dlcrt_string(context->plan, step->name));
        return bind_symbol(context, step, cell);
    case DLC_DO_IF:
    case DLC_DO_LOOP:
        *next = cell ? i + 1 : step->what + 1;
        return DLC_OK;
    case DLC_DO_ELSE:
        *next = step->what;
        return DLC_OK;
    default:
        *next = step->what == i ? i + 1 : step->what;
        context->nturns += *next < i;
        return DLC_OK;
    }
}

static void begin_profile(dlcrt_context *context)
{
    size_t nsteps = context->plan->steps.count;
    context->start_ns = dlcrt_clock_ns();
    memset(context->profile, 0, nsteps * sizeof *context->profile);
    memset(context->thread_times, 0, nsteps * dlcrt_pool_threads(context->pool) * sizeof *context->thread_times);
}

/* A step that runs more than once ends when it last did, and seems to have begun so much earlier that the time is all of them. */
static dlc_status run_profiled(dlcrt_context *context, const dlc_plan_step *step, uint32_t i)
{
    dlcrt_step_profile *profile = &context->profile[i];
    if (context->device->keeps_times && step->device == context->plan->device)
        return run_step(context, step);
    int64_t spent = profile->end_ns - profile->begin_ns;
    profile->begin_ns = dlcrt_clock_ns() - context->start_ns - spent;
    profile->runs++;
    dlc_status status = run_step(context, step);
    if (status == DLC_OK)
        status = context->device->wait(context);
    profile->end_ns = dlcrt_clock_ns() - context->start_ns;
    if (step->kind != DLC_DO_LAUNCH) /* a kernel's threads tell themselves */
        *dlcrt_thread_times(context, step) =
            (dlcrt_thread_profile){profile->end_ns - profile->begin_ns, profile->end_ns};
    return status;
}

void dlcrt_context_cancel(dlcrt_context *context, int is_cancelled)
{
    if (context)
        atomic_store_explicit(&context->is_cancelled, is_cancelled != 0, memory_order_relaxed);
}

void dlcrt_context_limit(dlcrt_context *context, double seconds)
{
    const double most = 1e9; /* 31 years */
    if (context)
        context->limit_ns = seconds > 0 ? (int64_t)((seconds < most ? seconds : most) * 1e9) + 1 : 0;
}

static dlc_status check_end(const dlcrt_context *context)
{
    if (atomic_load_explicit(&context->is_cancelled, memory_order_relaxed))
        return dlcrt_fail(DLC_CANCELLED, "the run was cancelled");
    if (context->limit_ns && dlcrt_clock_ns() >= context->end_ns)
        return dlcrt_fail(DLC_LIMIT, "the run takes longer than the %g s it may", (double)context->limit_ns / 1e9);
    return DLC_OK;
}

static dlc_status walk(dlcrt_context *context)
{
    const dlc_plan_step *steps = dlcrt_rows(context->plan, context->plan->steps), *step;
    uint32_t nsteps = context->plan->steps.count;
    context->nturns = 0;
    if (context->profile)
        begin_profile(context);
    for (uint32_t i = 0, next; i < nsteps; i = next) {
        step = &steps[i];
        next = i + 1;
        DLC_TRY(check_end(context));
        if (step->kind >= DLC_DO_SET) {
            DLC_TRY(run_mark(context, step, i, &next));
            continue;
        }
        DLC_TRY(dlcrt_step_size(context, i));
        DLC_TRY(context->profile ? run_profiled(context, step, i) : run_step(context, step));
    }
    return DLC_OK;
}

dlc_status dlcrt_context_wait(dlcrt_context *context)
{
    if (!context)
        return dlcrt_fail(DLC_USAGE, "dlcrt_context_wait: context is NULL");
    DLC_TRY(context->device->enter(context));
    dlc_status status = context->device->finish(context);
    context->device->leave(context);
    return status;
}

dlc_status dlcrt_context_prepare(dlcrt_context *context, const dlcrt_tensor *inputs,
                                 uint32_t ninputs)
{
    if (!context)
        return dlcrt_fail(DLC_USAGE, "dlcrt_context_prepare: context is NULL");
    DLC_TRY(match_inputs(context, inputs, ninputs));
    DLC_TRY(context->device->enter(context));
    dlc_status status = dlcrt_context_size(context, context->inputs);
    context->device->leave(context);
    return status;
}

static dlc_status size_and_run(dlcrt_context *context)
{
    if (context->limit_ns)
        context->end_ns = dlcrt_clock_ns() + context->limit_ns;
    DLC_TRY(check_end(context)); /* a recorded run has no steps of its own */
    DLC_TRY(dlcrt_context_size(context, context->inputs));
    DLC_TRY(check_input_bytes(context));
    DLC_TRY(place_known_outputs(context));
    DLC_TRY(dlcrt_strings_take(context));
    DLC_TRY(context->device->run(context, walk));
    return dlcrt_strings_give(context);
}

static dlc_status match_and_run(dlcrt_context *context, const dlcrt_tensor *inputs, uint32_t ninputs, dlcrt_tensor *outputs,
                                uint32_t noutputs)
{
    DLC_TRY(match_inputs(context, inputs, ninputs));
    DLC_TRY(match_outputs(context, outputs, noutputs));
    DLC_TRY(dlcrt_executable_check(context->executable, context->pool));
    DLC_TRY(context->device->enter(context));
    dlc_status status = size_and_run(context);
    context->device->leave(context);
    return status;
}

dlc_status dlcrt_context_run(dlcrt_context *context, const dlcrt_tensor *inputs, uint32_t ninputs,
                             dlcrt_tensor *outputs, uint32_t noutputs)
{
    if (!context)
        return dlcrt_fail(DLC_USAGE, "dlcrt_context_run: context is NULL");
    if (context->executable->is_inert)
        return dlcrt_fail(DLC_USAGE, "the executable was opened for device none: nothing runs it");
    int64_t begin_ns = dlcrt_count_begin(context->executable);
    dlc_status status = match_and_run(context, inputs, ninputs, outputs, noutputs);
    dlcrt_count_end(context->executable, begin_ns, status);
    return status;
}

/*
 * The rules of modules. A walk over the steps in order, as the runtime takes them, with what is there by then: values that
 * were written, symbols that are bound.
 */
#include "ir/kernel/algebra.h"
#include "ir/module/text.h"

#include "dlc/abi.h"

#include <math.h>
#include <string.h>

/* What was there where an if or a loop began, and behind its first branch. */
typedef struct {
    uint8_t kind; /* dlc_step_kind of the last of its steps */
    uint8_t *is_there, *is_bound, *there_then, *bound_then;
} frame;

typedef struct {
    const dlc_module *module;
    dlc_diag *diag;
    dlc_status wrong; /* what a broken rule is */
    dlc_arena *scratch;
    uint8_t *is_there; /* by value */
    uint8_t *is_bound; /* by symbol */
    int64_t *left;     /* by value that is written in parts: elements that no launch has stored yet; else 0 */
    dlc_vec(frame) frames;
    uint32_t nloops; /* among them */
} verifier;

#define FAIL(v, step, ...) dlc_diag_fail((v)->diag, (v)->wrong, place(v, step), __VA_ARGS__)

static const char *place(const verifier *v, const dlc_step *step)
{
    return dlc_arena_printf(v->diag->arena, "%s: step '%s'", v->module->file, step->name ? step->name : "");
}

static const char *name_of(const verifier *v, uint32_t value)
{
    return v->module->values.data[value].name;
}

/* The symbols of a size that no step has bound yet; *missing: one of them. */
static int is_known(const verifier *v, dlc_expr size, uint32_t *missing)
{
    const dlc_pool *pool = v->module->pool;
    int64_t value;
    if (dlc_expr_is_int(pool, size, &value))
        return 1;
    dlc_mark mark = dlc_arena_mark(v->scratch);
    uint8_t *marks = dlc_new_array(v->scratch, uint8_t, pool->nodes.n);
    int known = 1;
    dlc_expr_reach(pool, size, marks);
    for (dlc_expr e = 1; e <= size; e++)
        if (marks[e] && dlc_node_of(pool, e)->op == DLC_EXPR_SYM && !v->is_bound[dlc_node_of(pool, e)->imm.id]) {
            *missing = (uint32_t)dlc_node_of(pool, e)->imm.id;
            known = 0;
        }
    dlc_arena_release(v->scratch, mark);
    return known;
}

static dlc_status check_size(const verifier *v, const dlc_step *step, dlc_expr size)
{
    uint32_t missing;
    return is_known(v, size, &missing) ? DLC_OK
                                       : FAIL(v, step, "the size '%s' is bound by no step before this one",
                                              v->module->symbols.data[missing].name);
}

/* The points that the launch stores into a part of the value, where they are known; -1: it does not store parts. */
static int64_t stored_in_part(const verifier *v, const dlc_step *step, uint32_t i)
{
    if (step->kind != DLC_STEP_LAUNCH || !v->module->kernels.data[step->kernel].kernel->buffers.data[i].is_part)
        return -1;
    const dlc_kernel *kernel = v->module->kernels.data[step->kernel].kernel;
    int64_t all = 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        int64_t points = kernel->stages.data[s].buffer == i, extent;
        for (uint32_t a = 0; a < kernel->stages.data[s].axes.n; a++)
            points = dlc_const_extent(kernel, kernel->stages.data[s].axes.data[a], &extent) ? points * extent : 0;
        all += points;
    }
    return all;
}

/* Parts make a whole, of which nothing is stored twice; it is read when all of it is there. */
static dlc_status check_part(verifier *v, const dlc_step *step, uint32_t i, int64_t points)
{
    uint32_t value = step->values[i];
    int64_t elems;
    if (!dlc_type_elems(v->module->pool, &v->module->values.data[value].type, &elems))
        return DLC_OK;
    if (v->is_there[value] && points > v->left[value])
        return FAIL(v, step, "the parts of '%s' are more than it is", v->module->values.data[value].name);
    v->left[value] = (v->is_there[value] ? v->left[value] : elems) - points;
    return DLC_OK;
}

/* Written, or of what is, be it in parts. */
static int is_there(const verifier *v, uint32_t value)
{
    const dlc_module_value *at = &v->module->values.data[value];
    return v->is_there[value] || (at->skip && v->is_there[at->whole]);
}

static dlc_status check_value(verifier *v, const dlc_step *step, uint32_t i)
{
    uint32_t value = step->values[i];
    if (value == DLC_NO_VALUE)
        return step->kind == DLC_STEP_OPAQUE && dlc_step_writes(v->module, step, i)
                   ? DLC_OK
                   : FAIL(v, step, "operand %u is absent", i);
    if (value >= v->module->values.n)
        return FAIL(v, step, "operand %u is value %u of %u", i, value, v->module->values.n);
    const dlc_module_value *at = &v->module->values.data[value];
    for (uint32_t d = 0; d < at->type.rank; d++)
        DLC_TRY(check_size(v, step, at->type.dims[d]));
    if (at->skip)
        DLC_TRY(check_size(v, step, at->skip));
    if (!dlc_step_writes(v->module, step, i) && v->left[value])
        return FAIL(v, step, "'%s' is read, of which %lld elements are not written", at->name, (long long)v->left[value]);
    if (!dlc_step_writes(v->module, step, i))
        return is_there(v, value) ? DLC_OK : FAIL(v, step, "'%s' is read, which no step wrote", at->name);
    int64_t points = stored_in_part(v, step, i);
    if (points >= 0 && (at->role == DLC_VALUE_TEMP || at->role == DLC_VALUE_OUTPUT))
        return check_part(v, step, i, points);
    int may_again = at->role == DLC_VALUE_TEMP && v->nloops; /* for another iteration */
    int is_of_input = v->module->values.data[dlc_module_place_of(v->module, value)].role == DLC_VALUE_INPUT;
    if (is_of_input || at->role == DLC_VALUE_CONST || (v->is_there[value] && !may_again))
        return FAIL(v, step, "'%s' is written%s", at->name, v->is_there[value] ? " a second time" : "");
    return DLC_OK;
}

/* Elements of a buffer and of the value that the step gives for it, where both are known. */
static dlc_status check_elems(const verifier *v, const dlc_step *step, uint32_t i, const dlc_kernel *kernel)
{
    const dlc_buffer *buffer = &kernel->buffers.data[i];
    const dlc_module_value *value = &v->module->values.data[step->values[i]];
    int64_t inside, outside;
    if (buffer->type.dtype != value->type.dtype)
        return FAIL(v, step, "buffer '%s' is %s, '%s' is %s", buffer->name, dlc_dtypes[buffer->type.dtype].text, value->name,
                    dlc_dtypes[value->type.dtype].text);
    if ((buffer->role == DLC_ROLE_CONST) != (value->role == DLC_VALUE_CONST))
        return FAIL(v, step, "buffer '%s' is %s constant, '%s' is %s", buffer->name,
                    buffer->role == DLC_ROLE_CONST ? "a" : "no", value->name, value->role == DLC_VALUE_CONST ? "one" : "none");
    if (dlc_type_elems(kernel->pool, &buffer->type, &inside) && dlc_type_elems(v->module->pool, &value->type, &outside) &&
        inside != outside)
        return FAIL(v, step, "buffer '%s' has %lld elements, '%s' %lld", buffer->name, (long long)inside, value->name,
                    (long long)outside);
    return DLC_OK;
}

/* What a kernel states of a constant's elements, which are its origin's where it is packed. */
static dlc_status check_bound(const verifier *v, const dlc_step *step, uint32_t i, const dlc_buffer *buffer)
{
    const dlc_module_value *value = &v->module->values.data[step->values[i]];
    value = value->origin != DLC_NO_VALUE ? &v->module->values.data[value->origin] : value;
    uint32_t bytes = dlc_dtype_bytes(value->type.dtype);
    double most = buffer->is_bounded ? ldexp(1, buffer->bound_log2) : 0;
    for (size_t at = 0; buffer->is_bounded && value->data.bytes && at < value->data.size_bytes; at += bytes) {
        double element = dlc_scalar_read(value->type.dtype, (const char *)value->data.bytes + at).f;
        if (!(fabs(element) <= most))
            return FAIL(v, step, "buffer '%s' is within %g, an element of '%s' is %g", buffer->name, most, value->name, element);
    }
    return DLC_OK;
}

static dlc_status check_launch(const verifier *v, const dlc_step *step)
{
    if (step->kernel >= v->module->kernels.n)
        return FAIL(v, step, "kernel %u of %u", step->kernel, v->module->kernels.n);
    const dlc_kernel *kernel = v->module->kernels.data[step->kernel].kernel;
    if (step->nvalues != kernel->buffers.n || step->nsymbols != kernel->symbols.n)
        return FAIL(v, step, "kernel %u has %u buffers and %u symbols; %u and %u are given", step->kernel, kernel->buffers.n,
                    kernel->symbols.n, step->nvalues, step->nsymbols);
    for (uint32_t s = 0; s < step->nsymbols; s++)
        DLC_TRY(check_size(v, step, step->symbols[s]));
    return DLC_OK;
}

static dlc_status check_opaque(const verifier *v, const dlc_step *step)
{
    for (uint32_t i = 0; i < step->nvalues; i++)
        if (step->values[i] != DLC_NO_VALUE && !dlc_module_is_row_major(&v->module->values.data[step->values[i]]))
            return FAIL(v, step, "'%s', an operand of a step in C, is not row-major", name_of(v, step->values[i]));
    return DLC_OK;
}

static dlc_status check_bind(const verifier *v, const dlc_step *step)
{
    const dlc_module_value *value = &v->module->values.data[step->values[0]];
    int64_t elems;
    int is_known_size = dlc_type_elems(v->module->pool, &value->type, &elems);
    if ((!dlc_is_int(value->type.dtype) && value->type.dtype != DLC_BOOL) || step->attrs[0] < 0 ||
        (is_known_size && step->attrs[0] >= elems))
        return FAIL(v, step, "'%s' has no integer element %lld", value->name, (long long)step->attrs[0]);
    return DLC_OK;
}

static dlc_status check_copy(const verifier *v, const dlc_step *step)
{
    const dlc_module_value *from = &v->module->values.data[step->values[0]], *to = &v->module->values.data[step->values[1]];
    int64_t a, b;
    if (from->type.dtype != to->type.dtype || !dlc_layout_equal(&from->layout, &to->layout) ||
        (!step->size && dlc_type_elems(v->module->pool, &from->type, &a) && dlc_type_elems(v->module->pool, &to->type, &b) && a != b))
        return FAIL(v, step, "'%s' and '%s' are of different types", from->name, to->name);
    if (step->size && to->role != DLC_VALUE_TEMP)
        return FAIL(v, step, "'%s' is written in parts, and no temporary", to->name);
    return step->size ? check_size(v, step, step->size) : DLC_OK;
}

/* --- branches and loops --- */

static uint8_t *copy_of(const verifier *v, const uint8_t *flags, uint32_t n)
{
    return dlc_arena_copy(v->scratch, flags, n + 1);
}

static void restore(const verifier *v, const frame *f)
{
    memcpy(v->is_there, f->is_there, v->module->values.n);
    memcpy(v->is_bound, f->is_bound, v->module->symbols.n);
}

static void open_region(verifier *v, const dlc_step *step)
{
    frame f = {.kind = step->kind,
               .is_there = copy_of(v, v->is_there, v->module->values.n),
               .is_bound = copy_of(v, v->is_bound, v->module->symbols.n)};
    v->nloops += step->kind == DLC_STEP_LOOP;
    dlc_vec_push(v->scratch, &v->frames, f);
}

/* What both branches made is there behind them; of a loop, which may not have run, what it put together of parts. */
static void close_region(verifier *v)
{
    frame *f = &v->frames.data[--v->frames.n];
    v->nloops -= f->kind == DLC_STEP_LOOP;
    for (uint32_t i = 0; i < v->module->values.n; i++)
        v->is_there[i] = f->kind == DLC_STEP_ELSE ? v->is_there[i] & f->there_then[i]
                                                  : f->kind == DLC_STEP_LOOP && v->is_there[i] & 2 ? 3 : f->is_there[i];
    for (uint32_t s = 0; s < v->module->symbols.n; s++)
        v->is_bound[s] = f->kind == DLC_STEP_ELSE ? v->is_bound[s] & f->bound_then[s] : f->is_bound[s];
}

static dlc_status check_region(verifier *v, const dlc_step *step)
{
    frame *f = v->frames.n ? &v->frames.data[v->frames.n - 1] : NULL;
    if (step->kind == DLC_STEP_IF || step->kind == DLC_STEP_LOOP) {
        DLC_TRY(check_size(v, step, step->size));
        if (v->frames.n == DLC_MOST_REGIONS)
            return FAIL(v, step, "branches and loops lie in each other more than %d times", DLC_MOST_REGIONS);
        open_region(v, step);
        return DLC_OK;
    }
    if (!f || (step->kind == DLC_STEP_ELSE && f->kind != DLC_STEP_IF))
        return FAIL(v, step, "it belongs to no %s", step->kind == DLC_STEP_ELSE ? "if" : "if or loop");
    if (step->kind == DLC_STEP_END) {
        close_region(v);
        return DLC_OK;
    }
    f->kind = DLC_STEP_ELSE;
    f->there_then = copy_of(v, v->is_there, v->module->values.n);
    f->bound_then = copy_of(v, v->is_bound, v->module->symbols.n);
    restore(v, f);
    return DLC_OK;
}

static dlc_status bind(verifier *v, const dlc_step *step)
{
    if (step->symbol == DLC_NO_SYMBOL)
        return step->kind == DLC_STEP_BIND || step->kind == DLC_STEP_SET ? FAIL(v, step, "it binds no size") : DLC_OK;
    int may_again = v->nloops && step->kind != DLC_STEP_OPAQUE; /* for another iteration */
    if (step->symbol >= v->module->symbols.n || (v->is_bound[step->symbol] && !may_again))
        return FAIL(v, step, "the size it binds is %s", step->symbol >= v->module->symbols.n ? "not there" : "bound already");
    v->is_bound[step->symbol] = 1;
    return DLC_OK;
}

static int has_row(const dlc_step *step)
{
    const dlc_opaque_row *row = &dlc_opaque_rows[step->opaque];
    return step->opaque < dlc_nopaque_rows && step->nvalues == row->ninputs + row->noutputs && step->nattrs == row->nattrs;
}

/* What tells which values are read and which are written. */
static dlc_status check_counts(verifier *v, const dlc_step *step)
{
    switch ((dlc_step_kind)step->kind) {
    case DLC_STEP_LAUNCH:
        return check_launch(v, step);
    case DLC_STEP_OPAQUE:
        return has_row(step) ? DLC_OK : FAIL(v, step, "a step in C has not the operands and attributes of its row");
    case DLC_STEP_BIND:
        return step->nvalues == 1 && step->nattrs == 1 ? DLC_OK : FAIL(v, step, "a bind reads one value");
    case DLC_STEP_COPY:
        return step->nvalues == 2 ? DLC_OK : FAIL(v, step, "a copy has two values");
    case DLC_STEP_SET:
        return check_size(v, step, step->size);
    case DLC_STEP_IF:
    case DLC_STEP_ELSE:
    case DLC_STEP_LOOP:
    case DLC_STEP_END:
        return check_region(v, step);
    }
    return FAIL(v, step, "there is no such step");
}

/* Operands that are there, then what the step finds out, then what it writes. */
static dlc_status check_step(verifier *v, const dlc_step *step)
{
    DLC_TRY(check_counts(v, step));
    for (uint32_t i = 0; i < step->nvalues; i++)
        if (!dlc_step_writes(v->module, step, i))
            DLC_TRY(check_value(v, step, i));
    DLC_TRY(bind(v, step));
    for (uint32_t i = 0; i < step->nvalues; i++)
        if (dlc_step_writes(v->module, step, i))
            DLC_TRY(check_value(v, step, i));
    if (step->kind == DLC_STEP_OPAQUE)
        DLC_TRY(check_opaque(v, step));
    if (step->kind == DLC_STEP_BIND)
        DLC_TRY(check_bind(v, step));
    if (step->kind == DLC_STEP_COPY)
        DLC_TRY(check_copy(v, step));
    for (uint32_t i = 0; i < step->nvalues; i++) {
        if (step->kind == DLC_STEP_LAUNCH) {
            DLC_TRY(check_elems(v, step, i, v->module->kernels.data[step->kernel].kernel));
            DLC_TRY(check_bound(v, step, i, &v->module->kernels.data[step->kernel].kernel->buffers.data[i]));
        }
        if (step->values[i] == DLC_NO_VALUE)
            continue;
        v->is_there[step->values[i]] |= step->kind == DLC_STEP_COPY && step->size && i ? 3 : 1;
        if (v->module->values.data[step->values[i]].skip)
            v->is_there[v->module->values.data[step->values[i]].whole] |= 3;
    }
    return DLC_OK;
}

/* A value in another one is a temporary in one that lies in none: a temporary or, where they are the kernels' memory, too, an input or an
 * output. */
static dlc_status check_whole(const verifier *v, const dlc_module_value *value)
{
    const dlc_module *module = v->module;
    const dlc_module_value *whole = value->whole < module->values.n ? &module->values.data[value->whole] : value;
    int64_t bytes, before, all;
    int is_callers = (whole->role == DLC_VALUE_INPUT || whole->role == DLC_VALUE_OUTPUT) && module->target->kind == DLC_TARGET_CPU;
    if (value->role != DLC_VALUE_TEMP || (whole->role != DLC_VALUE_TEMP && !is_callers) || whole->skip)
        return dlc_diag_fail(v->diag, v->wrong, module->file, "'%s' lies in '%s', which is no memory of its own that kernels have",
                             value->name, whole->name);
    if (dlc_expr_is_int(module->pool, value->skip, &before) &&
        dlc_expr_is_int(module->pool, dlc_module_value_bytes(module, (uint32_t)(value - module->values.data)), &bytes) &&
        dlc_expr_is_int(module->pool, dlc_module_value_bytes(module, value->whole), &all) &&
        (before < 0 || bytes > all - before))
        return dlc_diag_fail(v->diag, v->wrong, module->file, "'%s' passes the end of '%s', in which it lies", value->name,
                             whole->name);
    return DLC_OK;
}

static dlc_status check_values(verifier *v)
{
    const dlc_module *module = v->module;
    for (uint32_t i = 0; i < module->values.n; i++) {
        const dlc_module_value *value = &module->values.data[i];
        if (value->skip)
            DLC_TRY(check_whole(v, value));
        v->is_there[i] = value->role == DLC_VALUE_INPUT || value->role == DLC_VALUE_CONST;
        if ((value->role == DLC_VALUE_INPUT || value->role == DLC_VALUE_OUTPUT) && !dlc_module_is_row_major(value))
            return dlc_diag_fail(v->diag, v->wrong, module->file, "'%s', an input or output of the model, is not row-major",
                                 value->name);
    }
    for (uint32_t s = 0; s < module->symbols.n; s++)
        v->is_bound[s] = module->symbols.data[s].bind == DLC_BIND_INPUT_DIM;
    return DLC_OK;
}

static dlc_status check_all(verifier *v)
{
    const dlc_module *module = v->module;
    DLC_TRY(check_values(v));
    for (uint32_t i = 0; i < module->steps.n; i++)
        DLC_TRY(check_step(v, &module->steps.data[i]));
    if (v->frames.n)
        return dlc_diag_fail(v->diag, v->wrong, module->file, "a branch or loop has no end");
    for (uint32_t o = 0; o < module->outputs.n; o++)
        if (!v->is_there[module->outputs.data[o].value])
            return dlc_diag_fail(v->diag, v->wrong, module->file, "output '%s' is written by no step",
                                 module->outputs.data[o].name);
        else if (v->left[module->outputs.data[o].value])
            return dlc_diag_fail(v->diag, v->wrong, module->file, "of output '%s' %lld elements are written by no step",
                                 module->outputs.data[o].name, (long long)v->left[module->outputs.data[o].value]);
    return DLC_OK;
}

dlc_status dlc_module_verify(const dlc_module *module, dlc_status wrong, dlc_diag *diag)
{
    verifier v = {.module = module, .diag = diag, .wrong = wrong, .scratch = dlc_arena_create(0)};
    v.is_there = dlc_new_array(v.scratch, uint8_t, module->values.n + 1);
    v.is_bound = dlc_new_array(v.scratch, uint8_t, module->symbols.n + 1);
    v.left = dlc_new_array(v.scratch, int64_t, module->values.n + 1);
    dlc_status status = check_all(&v);
    dlc_arena_destroy(v.scratch);
    return status;
}

/*
 * Kernels under given schedules as code of this machine, many in one executable, against the interpreter of kernels. A kernel's
 * symbols are `n` and `m`; its buffers are inputs and outputs of a module in text form, called k<number>_<buffer>.
 */
#ifndef DLC_TESTS_RUN_SCHEDULE_H
#define DLC_TESTS_RUN_SCHEDULE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlc/dlc.h"
#include "tests/ptx/emulated.h"

typedef struct {
    const dlc_kernel *kernel;
    const dlc_schedule *schedule;
    trial trial;
} scheduled;

static const int64_t scheduled_sizes[][2] = {{13, 5}, {1, 1}, {40, 33}};
enum { NSIZES = sizeof scheduled_sizes / sizeof *scheduled_sizes, MOST_SIZE = 64 };

/* --- the module --- */

static inline void scheduled_type(const dlc_kernel *kernel, const dlc_buffer *buffer, dlc_str *out)
{
    dlc_str_printf(out, "%s[", dlc_dtypes[buffer->type.dtype].text);
    for (uint8_t d = 0; d < buffer->type.rank; d++) {
        dlc_str_add(out, d ? "," : "");
        dlc_expr_print(kernel, buffer->type.dims[d], out);
    }
    dlc_str_add(out, "]");
}

static inline void scheduled_values(const scheduled *s, uint32_t k, const char *word, dlc_role role, dlc_str *out)
{
    for (uint32_t b = 0; b < s->kernel->buffers.n; b++)
        if (s->kernel->buffers.data[b].role == role) {
            dlc_str_printf(out, "  %s %%k%u_%s: ", word, k, s->kernel->buffers.data[b].name);
            scheduled_type(s->kernel, &s->kernel->buffers.data[b], out);
            if (role == DLC_ROLE_CONST)
                dlc_str_printf(out, " = hash(%016x)", b + 1);
            dlc_str_add(out, "\n");
        }
}

/* Neighbours of one kernel and schedule are one kernel of the module, launched for each. */
static inline int scheduled_is_again(const scheduled *all, uint32_t k)
{
    return k && all[k].kernel == all[k - 1].kernel && all[k].schedule && all[k].schedule == all[k - 1].schedule;
}

static inline void scheduled_launch(const scheduled *s, uint32_t k, uint32_t kernel, dlc_str *out)
{
    dlc_str_printf(out, "  launch %u", kernel);
    for (int is_out = 0; is_out < 2; is_out++) {
        const char *before = is_out ? " -> (" : " (";
        for (uint32_t b = 0; b < s->kernel->buffers.n; b++)
            if ((s->kernel->buffers.data[b].role == DLC_ROLE_OUT) == is_out) {
                dlc_str_printf(out, "%s%%k%u_%s", before, k, s->kernel->buffers.data[b].name);
                before = ", ";
            }
        dlc_str_add(out, ")");
    }
    for (uint32_t i = 0; i < s->kernel->symbols.n; i++)
        dlc_str_printf(out, "%s%s", i ? ", " : " sizes (", s->kernel->symbols.data[i].name);
    dlc_str_printf(out, "%s from \"k%u\"\n", s->kernel->symbols.n ? ")" : "", k);
}

static inline void scheduled_module(const scheduled *all, uint32_t n, const char *target, dlc_str *out)
{
    dlc_str_printf(out, "module @scheduled for %s after rewrite {\n", target);
    dlc_str_printf(out, "  symbol n = dim(%%sizes, 0) in 0..%d\n  symbol m = dim(%%sizes, 1) in 0..%d\n", MOST_SIZE, MOST_SIZE);
    dlc_str_add(out, "  input %sizes: f32[n,m]\n");
    for (uint32_t k = 0; k < n; k++)
        scheduled_values(&all[k], k, "input", DLC_ROLE_IN, out);
    for (uint32_t k = 0; k < n; k++)
        scheduled_values(&all[k], k, "const", DLC_ROLE_CONST, out);
    for (uint32_t k = 0; k < n; k++)
        scheduled_values(&all[k], k, "output", DLC_ROLE_OUT, out);
    dlc_str_add(out, "}\n");
    for (uint32_t k = 0; k < n; k++) {
        if (scheduled_is_again(all, k))
            continue;
        dlc_kernel_print(all[k].kernel, 1, out);
        if (all[k].schedule)
            dlc_schedule_print(all[k].schedule, out);
    }
    dlc_str_add(out, "steps {\n");
    for (uint32_t k = 0, kernel = 0; k < n; k++) {
        kernel += k && !scheduled_is_again(all, k);
        scheduled_launch(&all[k], k, kernel, out);
    }
    dlc_str_add(out, "}\n");
}

/* --- data --- */

static inline void scheduled_fill(dlc_dtype dtype, void *data, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(i + 1) * 2654435761u + seed * 40503u;
        double value = (double)(bits >> 8 & 0xffff) / 32768.0 - 1.0;
        dlc_scalar scalar = {0};
        if (dlc_is_float(dtype))
            scalar.f = value;
        else
            scalar.i = bits >> 11 & 3;
        dlc_scalar_write(dtype, (char *)data + i * dlc_dtype_bytes(dtype), scalar);
    }
}

/* Inputs and expected outputs of each kernel at these sizes: neighbours of one kernel share them. */
static inline const char *scheduled_expect(scheduled *all, uint32_t n, int is_unfused, const int64_t *sizes, dlc_arena *arena)
{
    for (uint32_t k = 0; k < n; k++) {
        const dlc_kernel *kernel = all[k].kernel;
        if (k && kernel == all[k - 1].kernel) {
            all[k].trial = all[k - 1].trial;
            all[k].trial.schedule = all[k].schedule;
            continue;
        }
        int64_t *symbols = dlc_new_array(arena, int64_t, kernel->symbols.n + 1);
        void **buffers = dlc_new_array(arena, void *, kernel->buffers.n + 1);
        for (uint32_t i = 0; i < kernel->symbols.n; i++)
            symbols[i] = sizes[kernel->symbols.data[i].name[0] == 'm'];
        all[k].trial = (trial){.kernel = kernel, .schedule = all[k].schedule, .symbols = symbols, .buffers = buffers,
                                .is_unfused = is_unfused};
        for (uint32_t b = 0; b < kernel->buffers.n; b++) {
            size_t bytes = trial_buffer_bytes(&all[k].trial, b);
            buffers[b] = dlc_arena_alloc(arena, bytes + 64, 64);
            dlc_dtype dtype = kernel->buffers.data[b].type.dtype;
            if (kernel->buffers.data[b].role == DLC_ROLE_CONST)
                dlc_tensor_invent(dtype, b + 1, buffers[b], (int64_t)(bytes / dlc_dtype_bytes(dtype)));
            if (kernel->buffers.data[b].is_bounded)
                dlc_tensor_limit(dtype, buffers[b], bytes, kernel->buffers.data[b].bound_log2);
            if (kernel->buffers.data[b].role != DLC_ROLE_CONST)
                scheduled_fill(dtype, buffers[b], bytes / dlc_dtype_bytes(dtype), b);
        }
        const char *problem = trial_expect(&all[k].trial, arena);
        if (problem)
            return dlc_arena_printf(arena, "kernel %u cannot be interpreted: %s", k, problem);
    }
    return NULL;
}

static inline dlcrt_tensor scheduled_tensor(const scheduled *s, uint32_t b, void *data)
{
    const dlc_type *type = &s->kernel->buffers.data[b].type;
    dlcrt_tensor tensor = {.dtype = type->dtype, .rank = type->rank, .data = data};
    for (uint8_t d = 0; d < type->rank; d++)
        tensor.dims[d] = dlc_expr_eval(s->kernel->pool, type->dims[d], s->trial.symbols);
    tensor.size_bytes = trial_buffer_bytes(&s->trial, b);
    return tensor;
}

/* --- running --- */

enum { POISONED = 0xcb, ROOM = 64, WORD = 4, NALIGNED = ROOM / WORD };

/* Memory of an output, poisoned all around, as callers' may lie: kernel by kernel at another multiple of 4, narrow elements now and then of 2. */
static inline unsigned char *scheduled_room(const scheduled *s, uint32_t b, uint32_t k, dlc_arena *arena)
{
    size_t bytes = trial_buffer_bytes(&s->trial, b) + 3 * ROOM;
    int is_narrow = dlc_dtype_bytes(s->kernel->buffers.data[b].type.dtype) == WORD / 2;
    unsigned char *room = dlc_arena_alloc(arena, bytes, ROOM);
    memset(room, POISONED, bytes);
    return room + ROOM + (size_t)WORD * (k % NALIGNED) + (is_narrow && k % 3 == 2 ? WORD / 2 : 0);
}

static inline int scheduled_is_inside(const dlcrt_tensor *output)
{
    const unsigned char *data = output->data, *behind = data + output->size_bytes;
    for (uint32_t i = 0; i < ROOM; i++)
        if (data[-1 - (int)i] != POISONED || behind[i] != POISONED)
            return 0;
    return 1;
}

static inline const char *scheduled_compare(const scheduled *all, uint32_t n, const dlcrt_tensor *outputs, dlc_arena *arena)
{
    uint32_t o = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t b = 0; b < all[k].kernel->buffers.n; b++) {
            if (all[k].kernel->buffers.data[b].role != DLC_ROLE_OUT)
                continue;
            if (!scheduled_is_inside(&outputs[o]))
                return dlc_arena_printf(arena, "kernel %u writes beside %s", k, all[k].kernel->buffers.data[b].name);
            const char *problem = trial_compare(&all[k].trial, b, outputs[o++].data, NULL, arena);
            if (problem)
                return dlc_arena_printf(arena, "kernel %u: %s", k, problem);
        }
    return NULL;
}

static inline const char *scheduled_run_at(dlcrt_executable *executable, scheduled *all, uint32_t n, int is_unfused,
                                           const int64_t *sizes, dlc_arena *arena)
{
    dlcrt_context *context;
    uint32_t most = 1, nin = 0, nout = 0;
    const char *problem = scheduled_expect(all, n, is_unfused, sizes, arena);
    for (uint32_t k = 0; k < n; k++)
        most += all[k].kernel->buffers.n;
    dlcrt_tensor *in = dlc_new_array(arena, dlcrt_tensor, most), *out = dlc_new_array(arena, dlcrt_tensor, most);
    in[nin++] = (dlcrt_tensor){.dtype = DLC_F32, .rank = 2, .dims = {sizes[0], sizes[1]},
                               .data = dlc_arena_alloc(arena, MOST_SIZE * MOST_SIZE * 4, 64)};
    for (uint32_t k = 0; k < n && !problem; k++)
        for (uint32_t b = 0; b < all[k].kernel->buffers.n; b++) {
            if (all[k].kernel->buffers.data[b].role == DLC_ROLE_CONST)
                continue;
            if (all[k].kernel->buffers.data[b].role == DLC_ROLE_IN) {
                in[nin++] = scheduled_tensor(&all[k], b, all[k].trial.buffers[b]);
                continue;
            }
            out[nout] = scheduled_tensor(&all[k], b, scheduled_room(&all[k], b, k, arena));
            nout++;
        }
    if (problem)
        return problem;
    if (dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 2}, &context) != DLC_OK)
        return dlcrt_last_error();
    if (dlcrt_context_run(context, in, nin, out, nout) != DLC_OK)
        problem = dlc_arena_printf(arena, "the run failed: %s", dlcrt_last_error());
    dlcrt_context_destroy(context);
    return problem ? problem : scheduled_compare(all, n, out, arena);
}

static inline const char *scheduled_message(dlc_model *model, dlc_arena *arena)
{
    dlc_model_note note;
    const char *last = "no message";
    for (uint32_t i = 0; dlc_model_message(model, i, &note); i++)
        if (note.status != DLC_OK)
            last = dlc_arena_printf(arena, "%s: %s", note.place, note.text);
    return last;
}

/* Sizes to run at: where no kernel asks for any, all are alike. */
static inline int scheduled_nsizes(const scheduled *all, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (all[k].kernel->symbols.n)
            return NSIZES;
    return 1;
}

/* NULL: all kernels give the right numbers at all sizes (or the machine cannot run the target). */
static inline const char *schedules_run(scheduled *all, uint32_t n, const char *target, dlc_arena *arena)
{
    char path[] = "/tmp/dlc_schedules_XXXXXX";
    dlc_str text = {0};
    dlc_model *model = NULL;
    dlcrt_executable *executable;
    const char *problem = NULL;
    int fd = mkstemp(path);
    scheduled_module(all, n, target, &text);
    dlc_options options = {.target = target, .jobs = 1, .is_temporary = 1, .size_bytes = sizeof options,
                           .emulate_gpu = !strncmp(target, "sm_", 3)};
    if (fd < 0 || dlc_model_open_bytes(dlc_str_text(&text), text.n, "scheduled", &options, &model) != DLC_OK)
        problem = dlc_arena_printf(arena, "the module is not read: %s", scheduled_message(model, arena));
    else if (dlc_model_write(model, "so", path, "scheduled") != DLC_OK)
        problem = dlc_arena_printf(arena, "no code: %s", scheduled_message(model, arena));
    dlc_model_close(model);
    dlc_str_deinit(&text);
    if (!problem) {
        dlc_status status = dlcrt_executable_open(path, &executable);
        if (status != DLC_OK && status != DLC_NO_DEVICE)
            problem = dlc_arena_printf(arena, "not loaded: %s", dlcrt_last_error());
        for (int i = 0; i < scheduled_nsizes(all, n) && status == DLC_OK && !problem; i++)
            problem = scheduled_run_at(executable, all, n, !strcmp(target, "x86-64-v2"), scheduled_sizes[i], arena);
        if (status == DLC_OK)
            dlcrt_executable_close(executable);
    }
    unlink(path);
    close(fd);
    return problem;
}

#endif

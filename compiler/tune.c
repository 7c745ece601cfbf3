/*
 * Schedules found by measuring. A kernel's search starts from the schedule it has and what other forms make of it; the fastest
 * becomes where the next steps start from (passes/schedule/neighbours.c), until none is faster or the kernel's share of the time
 * is used up. A batch of schedules is one executable, a module in text form with a launch for each, on made-up data; the first and
 * the last of every batch are the schedule the kernel came with, against which the others count, whatever else the machine does meanwhile.
 */
#include "compiler/driver.h"
#include "compiler/tuned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "passes/schedule/candidates.h"
#include "runtime/internal.h"

enum { MOST_BATCH = 16, DEFAULT_SECONDS = 60 };
#define LEAST_GAIN 0.97   /* of the time before: less is noise */
#define LEAST_SHARE 0.002 /* of all launches' estimated time, below which a kernel is not worth it */

/* A schedule that was measured. */
typedef struct {
    const char *text;
    double estimate_us, relative; /* relative: to the schedule the kernel came with */
} trial;

typedef struct {
    dlc_model *model;
    const dlc_tuning *tuning;
    dlc_tuned *result;
    dlc_arena *arena; /* of one kernel */
    const dlc_kernel *kernel;
    dlc_vec(trial) trials;
    double base_us, deadline;
    uint32_t nthreads; /* of what is measured */
    double pairs, agreeing; /* of trials of one kernel that measuring tells apart: ranked alike by estimates, less those that are not */
} tuner;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- a batch as a module --- */

static void add_type(const tuner *t, const dlc_buffer *buffer, dlc_str *out)
{
    dlc_str_printf(out, "%s[", dlc_dtypes[buffer->type.dtype].text);
    for (uint8_t d = 0; d < buffer->type.rank; d++) {
        dlc_str_add(out, d ? "," : "");
        dlc_expr_print(t->kernel, buffer->type.dims[d], out);
    }
    dlc_str_add(out, "]");
}

/* What launches write is nobody's, so it lies in the same memory for all of them and is near, as it is in a model. */
static void add_values(const tuner *t, uint32_t n, dlc_str *out)
{
    for (uint32_t b = 0; b < t->kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &t->kernel->buffers.data[b];
        int is_out = buffer->role == DLC_ROLE_OUT;
        for (uint32_t i = 0; i < (is_out ? n : 1); i++) {
            const char *role = is_out ? "temp" : buffer->role == DLC_ROLE_CONST ? "const" : "input";
            dlc_str_printf(out, "  %s %%b%u_%u: ", role, b, i);
            add_type(t, buffer, out);
            dlc_str_add(out, buffer->role == DLC_ROLE_CONST ? " = hash(0000000000000001)\n" : "\n");
        }
    }
}

static void add_launch(const tuner *t, uint32_t i, dlc_str *out)
{
    dlc_str_printf(out, "  launch %u", i);
    for (int is_out = 0; is_out < 2; is_out++) {
        const char *before = is_out ? " -> (" : " (";
        for (uint32_t b = 0; b < t->kernel->buffers.n; b++) {
            if ((t->kernel->buffers.data[b].role == DLC_ROLE_OUT) != is_out)
                continue;
            dlc_str_printf(out, "%s%%b%u_%u", before, b, is_out ? i : 0);
            before = ", ";
        }
        dlc_str_add(out, *before == ',' ? ")" : is_out ? " -> ()" : " ()");
    }
    dlc_str_printf(out, " from \"%u\"\n", i);
}

static void print_batch(const tuner *t, const dlc_candidate *batch, uint32_t n, dlc_str *out)
{
    dlc_str_printf(out, "module @batch for %s after rewrite {\n", t->model->ctx.target->name);
    add_values(t, n, out);
    dlc_str_add(out, "}\n");
    for (uint32_t i = 0; i < n; i++) {
        dlc_kernel_print(t->kernel, 1, out);
        dlc_str_add(out, batch[i].text);
    }
    dlc_str_add(out, "steps {\n");
    for (uint32_t i = 0; i < n; i++)
        add_launch(t, i, out);
    dlc_str_add(out, "}\n");
}

/* What each schedule of the batch takes; false: it could not be compiled, or its process ended. */
static int measure_once(const tuner *t, const dlc_candidate *batch, uint32_t n, double *us)
{
    dlc_options options = {.size_bytes = sizeof options, .target = t->model->options.target, .machine = t->model->options.machine,
                           .jobs = t->model->options.jobs, .is_temporary = 1, .tuned = ""};
    dlc_model *module = NULL;
    dlc_str text = {0};
    int fd = memfd_create("batch", MFD_CLOEXEC);
    print_batch(t, batch, n, &text);
    int is_well = fd >= 0 && dlc_model_open_bytes(text.data, text.n, "batch", &options, &module) == DLC_OK;
    is_well = is_well && dlc_model_write_fd(module, "so", fd, "batch") == DLC_OK;
    dlc_model_close(module);
    double share = (t->deadline - now_s()) / 4;
    is_well = is_well && t->tuning->measure(t->tuning->user, fd, share < 0.05 ? 0.05 : share > 0.5 ? 0.5 : share, us, n) == DLC_OK;
    for (uint32_t i = 0; i < n; i++)
        is_well = is_well && us[i] > 0;
    dlc_str_deinit(&text);
    if (fd >= 0)
        close(fd);
    return is_well;
}

/* The same of a batch that ends as it begins, in *own_us what that takes: once more where the two differ, since the machine changed its
 * pace meanwhile. */
static int measure(const tuner *t, const dlc_candidate *batch, uint32_t n, double *us, double *own_us)
{
    for (int turn = 0; turn < 2; turn++) {
        if (!measure_once(t, batch, n, us))
            return 0;
        if (us[0] >= LEAST_GAIN * us[n - 1] && us[n - 1] >= LEAST_GAIN * us[0])
            break;
    }
    *own_us = (us[0] + us[n - 1]) / 2;
    return 1;
}

/* --- the search --- */

static int is_tried(const tuner *t, const char *text)
{
    for (uint32_t i = 0; i < t->trials.n; i++)
        if (!strcmp(t->trials.data[i].text, text))
            return 1;
    return 0;
}

static int by_estimate(const void *a, const void *b)
{
    double x = ((const dlc_candidate *)a)->estimate.time_us, y = ((const dlc_candidate *)b)->estimate.time_us;
    return (x > y) - (x < y);
}

/* The candidates that are new, best first; the batch begins and ends with the kernel's own. */
static uint32_t fill_batch(const tuner *t, const dlc_candidate *own, dlc_candidates *from, dlc_candidate *batch)
{
    uint32_t n = 0;
    batch[n++] = *own;
    if (from->n)
        qsort(from->data, from->n, sizeof *from->data, by_estimate);
    for (uint32_t i = 0; i < from->n && n + 1 < MOST_BATCH; i++) {
        int is_new = !is_tried(t, from->data[i].text);
        for (uint32_t j = 0; j < n; j++)
            is_new = is_new && strcmp(batch[j].text, from->data[i].text) != 0;
        if (is_new)
            batch[n++] = from->data[i];
    }
    batch[n++] = *own;
    return n;
}

static void tell_trial(const tuner *t, const dlc_candidate *candidate, double us, double own_us)
{
    dlc_str kernel = {0};
    if (!t->tuning->trial)
        return;
    dlc_kernel_print(t->kernel, 1, &kernel);
    dlc_trial told = {dlc_str_text(&kernel), candidate->text, candidate->estimate.time_us, us, own_us};
    t->tuning->trial(t->tuning->user, &told);
    dlc_str_deinit(&kernel);
}

static void note_trial(tuner *t, const dlc_candidate *candidate, double relative)
{
    for (uint32_t i = 0; i < t->trials.n; i++) {
        double other = t->trials.data[i].relative, apart = (t->trials.data[i].estimate_us - candidate->estimate.time_us) * (other - relative);
        int is_told = other < LEAST_GAIN * relative || relative < LEAST_GAIN * other; /* else measuring does not tell */
        t->pairs += is_told;
        t->agreeing += !is_told || apart == 0 ? 0 : apart > 0 ? 1 : -1;
    }
    trial row = {candidate->text, candidate->estimate.time_us, relative};
    dlc_vec_push(t->arena, &t->trials, row);
    t->result->ncandidates++;
}

/* Measures the new ones; *best becomes the fastest. False: there was none that is faster. */
static int try_batch(tuner *t, const dlc_candidate *own, dlc_candidates *from, dlc_candidate *best, double *relative)
{
    dlc_candidate batch[MOST_BATCH];
    double us[MOST_BATCH] = {0}, own_us;
    uint32_t n = fill_batch(t, own, from, batch), first = t->trials.n ? 1 : 0;
    int is_better = 0;
    if (n < 3 || !measure(t, batch, n, us, &own_us))
        return 0;
    if (!t->trials.n)
        t->base_us = own_us;
    for (uint32_t i = first; i + 1 < n; i++) {
        double found = i ? us[i] : own_us;
        tell_trial(t, &batch[i], found, own_us);
        note_trial(t, &batch[i], found / own_us);
        if (i && found / own_us < *relative) {
            *relative = found / own_us;
            *best = batch[i];
            is_better = 1;
        }
    }
    return is_better;
}

static void add_all(dlc_candidates *to, const dlc_candidates *from, dlc_arena *arena)
{
    for (uint32_t i = 0; i < from->n; i++)
        dlc_vec_push(arena, to, from->data[i]);
}

/* Estimates are of the threads that measuring has. */
static void count_threads(const tuner *t, dlc_candidates *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        list->data[i].estimate.time_us = dlc_estimate_time_us(&list->data[i].estimate, list->data[i].schedule, t->nthreads);
}

/* Once more beside the kernel's own, alone: the fastest of many is so by luck, too. */
static double confirmed(tuner *t, const dlc_candidate *own, const dlc_candidate *best)
{
    dlc_candidate batch[] = {*own, *best, *own};
    double us[3], own_us;
    return measure(t, batch, 3, us, &own_us) ? us[1] / own_us : 1;
}

static int search(tuner *t, const dlc_candidate *own, dlc_candidate *best, double *relative)
{
    dlc_candidates next, near;
    *best = *own;
    *relative = 1;
    dlc_choose_candidates(t->kernel, own->schedule->target, t->arena, &next);
    do {
        dlc_choose_neighbours(t->kernel, best->schedule, t->arena, &near);
        add_all(&next, &near, t->arena);
        count_threads(t, &next);
        if (!try_batch(t, own, &next, best, relative))
            break;
        next.n = 0;
    } while (now_s() < t->deadline);
    if (best->text == own->text || *relative > LEAST_GAIN)
        return 0;
    *relative = confirmed(t, own, best);
    return *relative <= LEAST_GAIN;
}

/* --- kernels --- */

/* Sizes are numbers, and buffers lie row-major, so that data can be made up. */
static int can_measure(const dlc_kernel *kernel)
{
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (kernel->buffers.data[b].layout.nparts)
            return 0;
    return kernel->symbols.n == 0;
}

static dlc_status keep(tuner *t, uint32_t k, const dlc_candidate *best, double relative)
{
    dlc_str entry = {0};
    dlc_tuned_head(t->model->ctx.module->kernels.data[k].hash, t->model->ctx.target->name, &entry);
    dlc_str_printf(&entry, "%.2f us, %.2f before\n", t->base_us * relative, t->base_us);
    dlc_kernel_print(t->kernel, 1, &entry);
    dlc_str_add(&entry, best->text);
    dlc_status status = dlc_tuned_write(t->result->file, dlc_str_text(&entry), t->arena, &t->model->diag);
    dlc_str_deinit(&entry);
    return status;
}

static void say(const tuner *t, uint32_t k, double relative)
{
    if (t->tuning->progress)
        t->tuning->progress(t->tuning->user,
                            dlc_arena_printf(t->arena, "kernel %u of %u: %u schedules, %.1f us -> %.1f us", k + 1,
                                             t->model->ctx.module->kernels.n, t->trials.n, t->base_us, t->base_us * relative));
}

/* Kernel k, which is launched so often, for `seconds`. */
static dlc_status tune_kernel(tuner *t, uint32_t k, uint32_t nlaunches, double seconds)
{
    const dlc_module_kernel *kernel = &t->model->ctx.module->kernels.data[k];
    dlc_candidate own = {.schedule = kernel->schedule}, best;
    double relative = 1;
    t->arena = dlc_arena_create(0);
    t->kernel = kernel->kernel;
    memset(&t->trials, 0, sizeof t->trials);
    t->base_us = 0;
    t->deadline = now_s() + seconds;
    dlc_candidate_judge(&own, t->arena);
    own.estimate.time_us = dlc_estimate_time_us(&own.estimate, own.schedule, t->nthreads);
    int is_better = search(t, &own, &best, &relative);
    relative = is_better ? relative : 1;
    dlc_status status = is_better ? keep(t, k, &best, relative) : DLC_OK;
    t->result->nbetter += (uint32_t)is_better;
    t->result->nmeasured += t->base_us > 0;
    t->result->before_us += nlaunches * t->base_us;
    t->result->after_us += nlaunches * t->base_us * relative;
    say(t, k, relative);
    dlc_arena_destroy(t->arena);
    return status;
}

/* --- all of them --- */

typedef struct {
    uint32_t kernel, nlaunches;
    double weight; /* estimated time of its launches */
} work;

static int by_weight(const void *a, const void *b)
{
    double x = ((const work *)a)->weight, y = ((const work *)b)->weight;
    return (x < y) - (x > y);
}

/* Kernels that can be measured, those that take longest first; *total: the weights together. */
static uint32_t list_work(tuner *t, work *list, double *total)
{
    const dlc_module *module = t->model->ctx.module;
    uint32_t n = 0;
    *total = 0;
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        dlc_estimate estimate;
        work row = {.kernel = k};
        if (!can_measure(module->kernels.data[k].kernel))
            continue;
        for (uint32_t s = 0; s < module->steps.n; s++)
            row.nlaunches += module->steps.data[s].kind == DLC_STEP_LAUNCH && module->steps.data[s].kernel == k;
        dlc_estimate_kernel(module->kernels.data[k].schedule, t->model->scratch, &estimate);
        row.weight = estimate.time_us * row.nlaunches;
        *total += row.weight;
        list[n++] = row;
    }
    qsort(list, n, sizeof *list, by_weight);
    return n;
}

static dlc_status tune_all(tuner *t)
{
    const dlc_module *module = t->model->ctx.module;
    work *list = dlc_new_array(t->model->notes, work, module->kernels.n + 1);
    double total, left, end = now_s() + (t->tuning->seconds > 0 ? t->tuning->seconds : DEFAULT_SECONDS);
    uint32_t n = list_work(t, list, &total);
    t->result->nkernels = module->kernels.n;
    left = total;
    for (uint32_t i = 0; i < n && now_s() < end && list[i].weight > total * LEAST_SHARE; i++) {
        DLC_TRY(tune_kernel(t, list[i].kernel, list[i].nlaunches, (end - now_s()) * list[i].weight / left));
        left -= list[i].weight;
    }
    t->result->kendall = t->pairs > 0 ? t->agreeing / t->pairs : 0;
    return DLC_OK;
}

static dlc_status tune(dlc_model *model, void *args)
{
    tuner *t = args;
    DLC_TRY(dlc_model_run_passes(model));
    if (!(model->ctx.facts & DLC_FACT_SCHEDULES))
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "without the pass 'choose' there are no schedules to tune");
    return tune_all(t);
}

static dlc_status tune_guarded(dlc_model *model, const dlc_tuning *tuning, dlc_tuned *result)
{
    tuner t = {.model = model, .tuning = tuning, .result = result};
    *result = (dlc_tuned){0};
    result->file = dlc_arena_strdup(model->notes, dlc_tuned_file(tuning->file ? tuning->file : model->options.tuned,
                                                                 tuning->file ? NULL : model->options.target));
    if (model->nothers || model->ctx.target->kind == DLC_TARGET_CUDA)
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "schedules are tuned for one target, which this processor runs");
    if (!*result->file)
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "there is no file for the results: name one (--tuned FILE)");
    if (dlcrt_wanted_threads(NULL, &t.nthreads) != DLC_OK)
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "%s", dlcrt_last_error());
    DLC_TRY(dlc_model_check_apart(model, result->file));
    DLC_TRY(dlc_tuned_check(result->file, model->notes, &model->diag));
    return dlc_model_guard(model, tune, &t);
}

dlc_status dlc_model_tune(dlc_model *model, const dlc_tuning *tuning, dlc_tuned *result)
{
    dlc_tuning known = {0}; /* a caller of another version has fewer fields, or more */
    memcpy(&known, tuning, tuning->size_bytes && tuning->size_bytes < sizeof known ? tuning->size_bytes : sizeof known);
    return dlc_model_tell(model, tune_guarded(model, &known, result));
}

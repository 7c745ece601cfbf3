/*
 * Schedules found by measuring. A kernel's search starts from the schedule it has and what other forms make of it; the fastest
 * becomes where the next steps start from (passes/schedule/neighbours.c), until none is faster or the kernel's share of the time
 * is used up. A batch of schedules is an executable: a module in text form on made-up data, with a launch for each schedule in each of
 * several orders. The first and the last of every order are the schedule the kernel came with, against which the others count, whatever
 * else the machine does meanwhile. The fastest so far takes part once more: what is known of it says how the batch's times compare with
 * those before.
 */
#include "compiler/driver.h"
#include "compiler/tuned.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "passes/schedule/candidates.h"
#include "runtime/internal.h"

enum {
    MOST_BATCH = 16,
    LEAST_BATCH = 4,
    BATCH_BYTES = 256 << 20, /* of weights, packed for each schedule */
    BUILDS = 2,              /* executables of a batch, each of which runs its schedules in orders of its own, */
    ORDERS = 2,              /* one after the other */
    MODULUS = MOST_BATCH + 1,
    TURNS = 3, /* of each build, that count */
    MOST_TURNS = 6,
    DEFAULT_SECONDS = 60
};
#define LEAST_SECONDS 0.02  /* of a turn */
#define MOST_SECONDS 0.1   /* likewise */
#define LEAST_GAIN 0.97   /* of the time before: less is noise */
#define REPEATED 0.9      /* of a kernel's schedules: as near together as both builds of so many lie, two schedules are not told apart */
#define LEAST_SHARE 0.002 /* of all launches' estimated time, below which a kernel is not worth it */

/* A schedule that was measured. */
typedef struct {
    const char *text;
    uint32_t kernel;
    double estimate_us;
    double relative, spread; /* to the schedule the kernel came with; how far its two builds are apart: a logarithm */
} trial;

typedef struct {
    dlc_model *model;
    const dlc_tuning *tuning;
    dlc_tuned *result;
    dlc_arena *arena; /* of one kernel */
    const dlc_kernel *kernel;
    dlc_vec(trial) trials; /* of all kernels, each kernel's together */
    uint32_t k, first;     /* the kernel, and where its trials begin */
    double base_us, deadline;
    double quiet;      /* the least that its own schedule took in a turn: a logarithm */
    uint32_t nthreads; /* of what is measured */
} tuner;

/* What measuring found about the schedules of a batch. */
typedef struct {
    double relative[MOST_BATCH], spread[MOST_BATCH];
    double own_us;
} measured;

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

/* What launches write is nobody's, so it lies in the same memory for all of them and is near, as it is in a model. Weights are each launch's
 * own: those that lie alike for several would be one constant, and be near for all but the first. */
static void add_values(const tuner *t, uint32_t n, dlc_str *out)
{
    for (uint32_t b = 0; b < t->kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &t->kernel->buffers.data[b];
        int is_out = buffer->role == DLC_ROLE_OUT, is_const = buffer->role == DLC_ROLE_CONST;
        for (uint32_t i = 0; i < (is_out ? n * ORDERS : is_const ? n : 1); i++) {
            const char *role = is_out ? "temp" : is_const ? "const" : "input";
            dlc_str_printf(out, "  %s %%b%u_%u: ", role, b, i);
            add_type(t, buffer, out);
            if (is_const)
                dlc_str_printf(out, " = hash(%016x)", i + 1);
            dlc_str_add(out, "\n");
        }
    }
}

/* Launch `at`, of schedule i. */
static void add_launch(const tuner *t, uint32_t at, uint32_t i, dlc_str *out)
{
    dlc_str_printf(out, "  launch %u", i);
    for (int is_out = 0; is_out < 2; is_out++) {
        const char *before = is_out ? " -> (" : " (";
        for (uint32_t b = 0; b < t->kernel->buffers.n; b++) {
            dlc_role role = t->kernel->buffers.data[b].role;
            if ((role == DLC_ROLE_OUT) != is_out)
                continue;
            dlc_str_printf(out, "%s%%b%u_%u", before, b, is_out ? at : role == DLC_ROLE_CONST ? i : 0);
            before = ", ";
        }
        dlc_str_add(out, *before == ',' ? ")" : is_out ? " -> ()" : " ()");
    }
    dlc_str_printf(out, " from \"%u\"\n", i);
}

/* Of n schedules the one that runs as number `at` of an order: the kernel's own first and last, the others by steps of the order's own
 * modulo a prime, so that each runs behind another one in each order. What ran before decides in whose caches results lie, which one
 * thread or the other writes next. (Zen 4, two threads, 3136 x 256 by columns: 1.12 behind columns, 1.28 behind rows.) */
static uint32_t place_of(uint32_t at, uint32_t n, uint32_t build, uint32_t order)
{
    static const uint32_t steps[BUILDS][ORDERS] = {{1, 11}, {MODULUS - 1, MODULUS - 11}};
    uint32_t place = 0;
    if (at == 0 || at + 1 == n)
        return at;
    for (uint32_t i = 0; i < at; i++)
        do
            place = (place + steps[build][order]) % MODULUS;
        while (place + 1 >= n);
    return place;
}

static void print_batch(const tuner *t, const dlc_candidate *batch, uint32_t n, uint32_t build, dlc_str *out)
{
    dlc_str_printf(out, "module @batch for %s after rewrite {\n", t->model->ctx.target->name);
    add_values(t, n, out);
    dlc_str_add(out, "}\n");
    for (uint32_t i = 0; i < n; i++) { /* where code lies matters, too */
        dlc_kernel_print(t->kernel, 1, out);
        dlc_str_add(out, batch[build ? n - 1 - i : i].text);
    }
    dlc_str_add(out, "steps {\n");
    for (uint32_t at = 0; at < n * ORDERS; at++) {
        uint32_t i = place_of(at % n, n, build, at / n);
        add_launch(t, at, build ? n - 1 - i : i, out);
    }
    dlc_str_add(out, "}\n");
}

/* The batch as an executable; -1: it could not be compiled. */
static int build_batch(const tuner *t, const dlc_candidate *batch, uint32_t n, uint32_t build)
{
    dlc_options options = {.size_bytes = sizeof options, .target = t->model->options.target, .machine = t->model->options.machine,
                           .jobs = t->model->options.jobs, .is_temporary = 1, .tuned = ""};
    dlc_model *module = NULL;
    dlc_str text = {0};
    int fd = memfd_create("batch", MFD_CLOEXEC);
    print_batch(t, batch, n, build, &text);
    int is_well = fd >= 0 && dlc_model_open_bytes(text.data, text.n, "batch", &options, &module) == DLC_OK;
    is_well = is_well && dlc_model_write_fd(module, "so", fd, "batch") == DLC_OK;
    dlc_model_close(module);
    dlc_str_deinit(&text);
    if (!is_well && fd >= 0)
        close(fd);
    return is_well ? fd : -1;
}

/* What each launch takes in a process of its own; false: it ended otherwise. */
static int measure_once(const tuner *t, int fd, uint32_t nlaunches, double *us)
{
    double share = (t->deadline - now_s()) / (4 * BUILDS * TURNS);
    share = share < LEAST_SECONDS ? LEAST_SECONDS : share > MOST_SECONDS ? MOST_SECONDS : share;
    int is_well = t->tuning->measure(t->tuning->user, fd, share, us, nlaunches) == DLC_OK;
    for (uint32_t i = 0; i < nlaunches; i++)
        is_well = is_well && us[i] > 0;
    return is_well;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* A process that ran all schedules of a batch: logarithms of what launches took, and the median of those of the kernel's own schedule. */
typedef struct {
    double launches[MOST_BATCH * ORDERS], own;
} turn;

static int measure_turn(tuner *t, int fd, uint32_t n, turn *found)
{
    double us[MOST_BATCH * ORDERS], own[2 * ORDERS];
    if (!measure_once(t, fd, n * ORDERS, us))
        return 0;
    for (uint32_t at = 0; at < n * ORDERS; at++)
        found->launches[at] = log(us[at]);
    for (uint32_t order = 0; order < ORDERS; order++) {
        own[2 * order] = found->launches[order * n];
        own[2 * order + 1] = found->launches[order * n + n - 1];
    }
    found->own = median(own, 2 * ORDERS);
    t->quiet = found->own < t->quiet ? found->own : t->quiet;
    return 1;
}

/* An executable of a batch and how it ran. */
typedef struct {
    turn turns[MOST_TURNS];
    uint32_t nturns;
    int fd;
} build;

/* How many turns are next to undisturbed: a kernel's own schedule took what it took in the quietest turn so far. They come first. */
static uint32_t sort_turns(const tuner *t, build *b)
{
    uint32_t nquiet = 0;
    for (uint32_t i = 0; i < b->nturns; i++) {
        turn next = b->turns[i];
        uint32_t at = i;
        for (; at && next.own < b->turns[at - 1].own; at--)
            b->turns[at] = b->turns[at - 1];
        b->turns[at] = next;
    }
    while (nquiet < b->nturns && b->turns[nquiet].own - t->quiet <= -log(LEAST_GAIN))
        nquiet++;
    return nquiet;
}

/* The builds in turn, while one has too few turns that nothing disturbed: a process has its pages where it has them, and what they do to caches is as
 * much as schedules differ by. Disturbed ones count if there are none better, or no time is left to look for them. */
static int measure_builds(tuner *t, build *builds, uint32_t n)
{
    uint32_t wanting = BUILDS;
    for (int turns = 0; turns < MOST_TURNS && wanting && (turns < TURNS || now_s() < t->deadline); turns++) {
        for (uint32_t k = 0; k < BUILDS; k++)
            if (sort_turns(t, &builds[k]) < TURNS && !measure_turn(t, builds[k].fd, n, &builds[k].turns[builds[k].nturns++]))
                return 0;
        wanting = 0;
        for (int k = 0; k < BUILDS; k++)
            wanting += sort_turns(t, &builds[k]) < TURNS;
    }
    return 1;
}

/* How much slower than the others the turn was, by the median of its launches. */
static double slowness_of(const build *b, const turn *one, uint32_t nlaunches)
{
    double apart[MOST_BATCH * ORDERS] = {0};
    for (uint32_t at = 0; at < nlaunches; at++)
        for (uint32_t k = 0; k < TURNS; k++)
            apart[at] += (one->launches[at] - b->turns[k].launches[at]) / TURNS;
    return median(apart, nlaunches);
}

/* Logarithms of times, by schedule, the kernel's own first: of launches the least of all turns, less what each turn is slower than others.
 * What else the machine does slows single launches, too, by a tenth in one of twenty turns, and never makes one faster. */
static void find_least(const build *b, uint32_t n, uint32_t number, double *times)
{
    double least[MOST_BATCH * ORDERS];
    for (uint32_t k = 0; k < TURNS; k++) {
        double slowness = slowness_of(b, &b->turns[k], n * ORDERS);
        for (uint32_t at = 0; at < n * ORDERS; at++) {
            double time = b->turns[k].launches[at] - slowness;
            least[at] = k && least[at] < time ? least[at] : time;
        }
    }
    memset(times, 0, n * sizeof *times);
    for (uint32_t at = 0; at < n * ORDERS; at++)
        times[place_of(at % n, n, number, at / n)] += least[at] / ORDERS;
    times[0] = times[n - 1] = (times[0] + times[n - 1]) / 2;
}

/* Both builds: where code and weights lie, and what has run before, is as much again. */
static int measure(tuner *t, const dlc_candidate *batch, uint32_t n, measured *found)
{
    build builds[BUILDS] = {0};
    double times[BUILDS][MOST_BATCH] = {{0}};
    int is_well = 1;
    for (uint32_t k = 0; k < BUILDS; k++) {
        builds[k].fd = build_batch(t, batch, n, k);
        is_well &= builds[k].fd >= 0;
    }
    is_well = is_well && measure_builds(t, builds, n);
    for (uint32_t k = 0; k < BUILDS; k++) {
        if (is_well)
            find_least(&builds[k], n, k, times[k]);
        if (builds[k].fd >= 0)
            close(builds[k].fd);
    }
    for (uint32_t i = 0; i < n && is_well; i++) {
        double one = times[0][i] - times[0][0], other = times[1][i] - times[1][0];
        found->relative[i] = exp((one + other) / BUILDS);
        found->spread[i] = fabs(one - other);
    }
    found->own_us = exp((times[0][0] + times[1][0]) / BUILDS);
    return is_well;
}

/* --- the search --- */

static int is_tried(const tuner *t, const char *text)
{
    for (uint32_t i = t->first; i < t->trials.n; i++)
        if (!strcmp(t->trials.data[i].text, text))
            return 1;
    return 0;
}

static int by_estimate(const void *a, const void *b)
{
    double x = ((const dlc_candidate *)a)->estimate.time_us, y = ((const dlc_candidate *)b)->estimate.time_us;
    return (x > y) - (x < y);
}

static uint32_t most_in_batch(const tuner *t)
{
    double bytes = 1;
    int64_t extent;
    for (uint32_t b = 0; b < t->kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &t->kernel->buffers.data[b];
        double own = buffer->role == DLC_ROLE_CONST ? dlc_dtype_bytes(buffer->type.dtype) : 0;
        for (uint8_t d = 0; d < buffer->type.rank; d++)
            own *= dlc_expr_is_int(t->kernel->pool, buffer->type.dims[d], &extent) ? (double)extent : 1;
        bytes += own;
    }
    return bytes * MOST_BATCH <= BATCH_BYTES ? MOST_BATCH : bytes * LEAST_BATCH >= BATCH_BYTES ? LEAST_BATCH : (uint32_t)(BATCH_BYTES / bytes);
}

/* The candidates that are new, best first, behind the fastest so far; the batch begins and ends with the kernel's own. */
static uint32_t fill_batch(const tuner *t, const dlc_candidate *own, const dlc_candidate *best, dlc_candidates *from, dlc_candidate *batch)
{
    uint32_t n = 0, most = most_in_batch(t);
    batch[n++] = *own;
    if (best->text != own->text)
        batch[n++] = *best;
    if (from->n)
        qsort(from->data, from->n, sizeof *from->data, by_estimate);
    for (uint32_t i = 0; i < from->n && n + 1 < most; i++) {
        int is_new = !is_tried(t, from->data[i].text);
        for (uint32_t j = 0; j < n; j++)
            is_new = is_new && strcmp(batch[j].text, from->data[i].text) != 0;
        if (is_new)
            batch[n++] = from->data[i];
    }
    batch[n++] = *own;
    return n;
}

static void note_trial(tuner *t, const dlc_candidate *candidate, double relative, double spread, double own_us)
{
    dlc_str kernel = {0};
    trial row = {candidate->text, t->k, candidate->estimate.time_us, relative, spread};
    dlc_vec_push(t->model->notes, &t->trials, row);
    t->result->ncandidates++;
    if (!t->tuning->trial)
        return;
    dlc_kernel_print(t->kernel, 1, &kernel);
    dlc_trial told = {dlc_str_text(&kernel), candidate->text, candidate->estimate.time_us, relative * own_us, own_us, spread};
    t->tuning->trial(t->tuning->user, &told);
    dlc_str_deinit(&kernel);
}

/* The fastest so far was measured again, as batch[1], beside the kernel's own, which counts twice: times are put on the scale of all three, and
 * what is known of it is the mean. */
static void scale_to(uint32_t n, measured *found, uint32_t *times, double *relative)
{
    double apart = log(found->relative[1] / *relative), scale = exp(-apart / 3);
    for (uint32_t i = 0; i < n; i++)
        found->relative[i] *= scale;
    ++*times;
    *relative *= exp(log(found->relative[1] / *relative) / *times);
}

/* Measures the new ones; *best becomes the fastest, which was measured so often. False: there was none that is faster. */
static int try_batch(tuner *t, const dlc_candidate *own, dlc_candidates *from, dlc_candidate *best, uint32_t *times, double *relative)
{
    dlc_candidate batch[MOST_BATCH];
    measured found;
    uint32_t n = fill_batch(t, own, best, from, batch), first = best->text != own->text ? 2 : 1;
    int is_first = t->trials.n == t->first, is_better = 0;
    if (n < first + 2 || !measure(t, batch, n, &found))
        return 0;
    if (is_first) {
        t->base_us = found.own_us;
        note_trial(t, own, 1, 0, found.own_us);
    }
    if (first == 2)
        scale_to(n, &found, times, relative);
    for (uint32_t i = first; i + 1 < n; i++) {
        note_trial(t, &batch[i], found.relative[i], found.spread[i], found.own_us);
        if (found.relative[i] < *relative) {
            *relative = found.relative[i];
            *best = batch[i];
            *times = 1;
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
    measured found;
    return measure(t, batch, 3, &found) ? found.relative[1] : 1;
}

static int search(tuner *t, const dlc_candidate *own, dlc_candidate *best, double *relative)
{
    dlc_candidates next, near;
    uint32_t times = 1; /* that the best one was measured */
    *best = *own;
    *relative = 1;
    dlc_choose_candidates(t->kernel, own->schedule->target, t->arena, &next);
    do {
        dlc_choose_neighbours(t->kernel, best->schedule, t->arena, &near);
        add_all(&next, &near, t->arena);
        count_threads(t, &next);
        if (!try_batch(t, own, &next, best, &times, relative))
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
                                             t->model->ctx.module->kernels.n, t->trials.n - t->first, t->base_us, t->base_us * relative));
}

/* Kernel k, which is launched so often, for `seconds`. */
static dlc_status tune_kernel(tuner *t, uint32_t k, uint32_t nlaunches, double seconds)
{
    const dlc_module_kernel *kernel = &t->model->ctx.module->kernels.data[k];
    dlc_candidate own = {.schedule = kernel->schedule}, best;
    double relative = 1;
    t->arena = dlc_arena_create(0);
    t->kernel = kernel->kernel;
    t->k = k;
    t->first = t->trials.n;
    t->base_us = 0;
    t->quiet = HUGE_VAL;
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

/* How far apart two of the kernel's schedules must be, as a logarithm, to be told apart; trials [first, end) are the kernel's. */
static double least_distance(const tuner *t, uint32_t first, uint32_t end)
{
    uint32_t n = end - first;
    double least = -log(LEAST_GAIN), *spreads = dlc_new_array(t->model->notes, double, n);
    for (uint32_t i = 0; i < n; i++)
        spreads[i] = t->trials.data[first + i].spread;
    qsort(spreads, n, sizeof *spreads, by_size);
    double repeated = spreads[(uint32_t)(REPEATED * (n - 1))];
    return repeated > least ? repeated : least;
}

typedef struct {
    double npairs, nagreeing;
} ranking;

static void rank_pairs(const tuner *t, uint32_t first, uint32_t end, double least, ranking *sum)
{
    for (uint32_t i = first; i < end; i++)
        for (uint32_t j = first; j < i; j++) {
            const trial *a = &t->trials.data[i], *b = &t->trials.data[j];
            double apart = (a->estimate_us - b->estimate_us) * (a->relative - b->relative);
            if (fabs(log(a->relative / b->relative)) <= least)
                continue;
            sum->npairs++;
            sum->nagreeing += apart > 0 ? 1 : apart < 0 ? -1 : 0;
        }
}

/* Kendall's tau of estimates and measured times over pairs of one kernel's schedules: those ranked alike, less those that are not, of all. Of
 * pairs that measuring tells apart, or of any. */
static double rank_correlation(const tuner *t, int is_any)
{
    ranking sum = {0};
    for (uint32_t first = 0, end; first < t->trials.n; first = end) {
        for (end = first; end < t->trials.n && t->trials.data[end].kernel == t->trials.data[first].kernel;)
            end++;
        rank_pairs(t, first, end, is_any ? 0 : least_distance(t, first, end), &sum);
    }
    return sum.npairs > 0 ? sum.nagreeing / sum.npairs : 0;
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
    t->result->kendall = rank_correlation(t, 0);
    t->result->kendall_of_all = rank_correlation(t, 1);
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

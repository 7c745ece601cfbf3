/*
 * Emulated kernels in a process of their own: the generated C is compiled by `cc`, with a sanitizer
 * where the way asks for one, and linked to fibers.c and emulated_main.c; data goes through files. A
 * sanitizer's report, divergence of threads or a crash ends that process, and its first words are
 * the answer.
 */
#include "tests/ptx/emulated.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/ptx/text.h"

enum { POISON = 0xcb, LOG_BYTES = 1500 };

/* Of what is the same in all trials there are objects, which the build made with these flags. */
static const struct {
    const char *name, *flags;
} builds[NWAYS] = {
    [WAY_PLAIN] = {"plain", TRIAL_PLAIN},
    [WAY_SEED] = {"seed", TRIAL_SEED},
    [WAY_ASAN] = {"asan", TRIAL_ASAN},
    [WAY_TSAN] = {"tsan", TRIAL_TSAN},
};

typedef struct {
    const trial *trials;
    uint32_t n;
    trial_way way;
    dlc_arena *arena;
    char folder[256];
} job;

static const char *path_of(const job *j, const char *name)
{
    return dlc_arena_printf(j->arena, "%s/%s", j->folder, name);
}

static const char *begin(job *j)
{
    const char *base = getenv("TMPDIR");
    snprintf(j->folder, sizeof j->folder, "%s/dlc-trial.XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(j->folder) ? NULL : "no folder for temporary files can be made";
}

static void end(const job *j)
{
    static const char *const names[] = {"kernels.c", "trial", "in", "out", "log"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(j, names[i]));
    rmdir(j->folder);
}

static const char *log_text(const job *j, const char *what)
{
    char *text = dlc_new_array(j->arena, char, LOG_BYTES + 1);
    FILE *file = fopen(path_of(j, "log"), "r");
    size_t n = file ? fread(text, 1, LOG_BYTES, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
    return dlc_arena_printf(j->arena, "%s:\n%s", what, text);
}

static const char *object_of(const job *j, const char *name)
{
    return dlc_arena_printf(j->arena, "'" TRIAL_OBJECTS "/%s_%s.o'", builds[j->way].name, name);
}

static const char *build(const job *j)
{
    const char *command = dlc_arena_printf(
        j->arena, "cc " TRIAL_FLAGS " %s -march=native -o '%s' '%s' %s %s > '%s' 2>&1",
        builds[j->way].flags, path_of(j, "trial"), path_of(j, "kernels.c"),
        object_of(j, "emulated_main"), j->n ? object_of(j, "fibers") : "", path_of(j, "log"));
    return system(command) ? log_text(j, "cc") : NULL;
}

/* The thread sanitizer wants the addresses it expects: no randomisation. */
static const char *execute(const job *j)
{
    const char *options = j->way == WAY_ASAN
                              ? "ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0"
                              : "TSAN_OPTIONS=halt_on_error=1";
    const char *command =
        dlc_arena_printf(j->arena, "ulimit -c 0; %s timeout 150 %s '%s' '%s' '%s' > '%s' 2>&1",
                         options, j->way == WAY_TSAN ? "setarch -R" : "", path_of(j, "trial"),
                         path_of(j, "in"), path_of(j, "out"), path_of(j, "log"));
    return system(command) ? log_text(j, trial_ways[j->way]) : NULL;
}

/* --- files --- */

static const char *write_text(const job *j, const char *name, const char *text)
{
    FILE *file = fopen(path_of(j, name), "w");
    int ok = file && fputs(text, file) >= 0;
    return (file && fclose(file)) || !ok ? "a temporary file cannot be written" : NULL;
}

static void put(FILE *file, int64_t number)
{
    fwrite(&number, sizeof number, 1, file);
}

static void put_poison(FILE *file, size_t n)
{
    while (n--)
        fputc(POISON, file);
}

static void write_trial(const job *j, const trial *t, FILE *file)
{
    dlc_diag diag;
    dlc_cuda_kernel made;
    dlc_diag_init(&diag, j->arena);
    if (dlc_cuda_source(t->schedule, "k", j->arena, &diag, &made) != DLC_OK)
        return;
    put(file, t->kernel->buffers.n);
    put(file, t->kernel->symbols.n);
    put(file, trial_units(t));
    put(file, made.units_per_block);
    put(file, t->stride);
    put(file, made.fixed_bytes + made.scratches * trial_scratch(t));
    for (uint32_t s = 0; s < t->kernel->symbols.n; s++)
        put(file, t->symbols[s]);
    for (uint32_t b = 0; b < t->kernel->buffers.n; b++) {
        int is_output = t->kernel->buffers.data[b].role == DLC_ROLE_OUT;
        size_t bytes = trial_buffer_bytes(t, b);
        put(file, (int64_t)bytes);
        put(file, is_output);
        if (is_output)
            put_poison(file, bytes);
        else
            fwrite(t->buffers[b], 1, bytes, file);
    }
}

static const char *write_data(const job *j)
{
    FILE *file = fopen(path_of(j, "in"), "wb");
    if (!file)
        return "a temporary file cannot be written";
    put(file, j->n);
    for (uint32_t i = 0; i < j->n; i++)
        write_trial(j, &j->trials[i], file);
    return fclose(file) ? "a temporary file cannot be written" : NULL;
}

/* Where a trial left out blocks, or stores a part: a byte for each, 0 where no byte of its element was written. */
static const uint8_t *written_in(const job *j, const trial *t, uint32_t b, const uint8_t *got)
{
    size_t bytes = trial_buffer_bytes(t, b);
    size_t size = dlc_dtype_bytes(t->kernel->buffers.data[b].type.dtype);
    if (!t->stride && !t->kernel->buffers.data[b].is_part)
        return NULL;
    uint8_t *written = dlc_new_array(j->arena, uint8_t, bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != POISON)
            memset(written + i / size * size, 1, size);
    return written;
}

static const char *compare_trial(const job *j, const trial *t, FILE *file)
{
    int64_t fault;
    const char *problem = NULL;
    if (fread(&fault, sizeof fault, 1, file) != 1)
        return "an output is missing";
    if (t->faults != (fault != 0))
        return dlc_arena_printf(j->arena, "%s: fault %" PRId64, t->kernel->name, fault);
    for (uint32_t b = 0; b < t->kernel->buffers.n && !problem; b++) {
        size_t bytes = trial_buffer_bytes(t, b);
        if (t->kernel->buffers.data[b].role != DLC_ROLE_OUT)
            continue;
        void *got = dlc_arena_alloc(j->arena, bytes + 1, 64);
        if (bytes && fread(got, bytes, 1, file) != 1)
            return "an output is missing";
        problem = t->faults ? NULL : trial_compare(t, b, got, written_in(j, t, b, got), j->arena);
    }
    return problem;
}

static const char *compare_all(const job *j)
{
    const char *problem = NULL;
    FILE *file = fopen(path_of(j, "out"), "rb");
    for (uint32_t i = 0; file && !problem && i < j->n; i++)
        problem = compare_trial(j, &j->trials[i], file);
    if (file)
        fclose(file);
    return file ? problem : "there is no output";
}

/* --- text --- */

static const char *source_of(const job *j, const trial_mutation *mutation, const char **problem)
{
    dlc_str out = {0};
    dlc_diag diag;
    dlc_diag_init(&diag, j->arena);
    if (j->n)
        dlc_cuda_emulation_begin(&out);
    else
        dlc_str_add(
            &out,
            "typedef void dlc_kernel_args;\n"); /* only the compiler is asked: a broken emulation
                                                   must not look like a missing one */
    for (uint32_t i = 0; i < j->n && !*problem; i++)
        if (dlc_cuda_emulation_add(j->trials[i].schedule, i, j->arena, &diag,
                                   &out) != DLC_OK)
            *problem = diag.nmessages ? diag.messages[0].text : "no text";
    if (j->n)
        dlc_cuda_emulation_end(&out);
    dlc_str_add(
        &out,
        "\nvoid (*const trial_kernels[])(const dlc_kernel_args *args, long begin, long end) = {");
    for (uint32_t i = 0; i < j->n; i++)
        dlc_str_printf(&out, "dlc_k%u, ", i);
    dlc_str_add(&out, "};\n");
    const char *text = trial_mutate(dlc_str_text(&out), mutation, j->arena);
    text = text ? dlc_arena_strdup(j->arena, text) : NULL;
    dlc_str_deinit(&out);
    if (!text)
        *problem = dlc_arena_printf(j->arena, "'%s' is not in the text", mutation->from);
    return text;
}

static const char *run(job *j, const trial_mutation *mutation)
{
    const char *problem = NULL, *text = source_of(j, mutation, &problem);
    problem = problem ? problem : write_text(j, "kernels.c", text);
    problem = problem ? problem : write_data(j);
    problem = problem ? problem : build(j);
    problem = problem ? problem : execute(j);
    return problem ? problem : compare_all(j);
}

const char *emulated_run(const trial *trials, uint32_t n, trial_way way,
                         const trial_mutation *mutation, dlc_arena *arena)
{
    job j = {.trials = trials, .n = n, .way = way, .arena = dlc_arena_create(0)};
    const char *problem = begin(&j);
    if (!problem) {
        problem = run(&j, mutation);
        end(&j);
    }
    problem = problem ? dlc_arena_strdup(arena, problem) : NULL;
    dlc_arena_destroy(j.arena);
    return problem;
}

/* A program without kernels, with the sanitizer. */
const char *emulated_unavailable(trial_way way, dlc_arena *arena)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("fma") ? emulated_run(NULL, 0, way, NULL, arena)
                                         : "the processor has no FMA";
#else
    (void)way;
    (void)arena;
    return "kernels are emulated on x86-64 processors";
#endif
}

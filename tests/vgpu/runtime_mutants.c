/*
 * Bugs planted into the runtime: runtime_mutants SOURCE_DIR LIBDLCRT_A NET GATHER. Each changes
 * runtime/cuda.c, which is compiled and linked with scenario.c in place of the original; what the
 * program prints or how it ends must differ from the unchanged one's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ptx/emulated.h"
#include "tests/unit/suite.h"

static const char *source_dir, *library, *net, *gather;
static char folder[64];

static const struct {
    const char *bug, *from, *to;
    uint32_t nth; /* 0: everywhere */
} mutants[] = {
    {"weights that nobody waits for", "DLCRT_CUDA(driver, stream_wait, \"the weights\", stream);",
     "", 0},
    {"half the weights", "(size_t)(cuda->weights_end - cuda->weights_begin)",
     "(size_t)(cuda->weights_end - cuda->weights_begin) / 2", 0},
    {"weights a place too far", "cuda->weights + (ref->offset - cuda->weights_begin)",
     "cuda->weights + 4 + (ref->offset - cuda->weights_begin)", 0},
    {"regions that are not aligned",
     "(size_bytes + REGION_ALIGN - 1) / REGION_ALIGN * REGION_ALIGN", "size_bytes", 0},
    {"regions that lie in one place", "*at += region_up(size_bytes);", "", 0},
    {"fault words of 4 bytes", "step_number(context, step) * sizeof(int64_t)",
     "step_number(context, step) * 4", 0},
    {"the last step's fault word for all",
     "fault = run->faults + step_number(context, step) * sizeof(int64_t)", "fault = run->faults",
     0},
    {"a launch without its first unit", "run->parameters[n++] = &first;",
     "run->parameters[n++] = &units;", 0},
    {"a launch that begins at unit 1", "units = context->cells[step->units], first = 0,",
     "units = context->cells[step->units], first = 1,", 0},
    {"a launch of one unit more", "run->parameters[n++] = &units;",
     "units++; run->parameters[n++] = &units;", 0},
    {"parameters in another order", "&context->pointers[step->refs.first + i]",
     "&context->pointers[step->refs.first + step->refs.count - 1 - i]", 0},
    {"one pointer for all", "&context->pointers[step->refs.first + i]",
     "&context->pointers[step->refs.first]", 0},
    {"no size of the batch", "&context->values[step->symbols.first + i]", "&first", 0},
    {"blocks that are rounded down",
     "(left + kernel->units_per_block - 1) / kernel->units_per_block",
     "(left > kernel->units_per_block ? left / kernel->units_per_block : 1)", 0},
    {"half the threads", "kernel->threads, 1, 1,", "kernel->threads / 2, 1, 1,", 0},
    {"threads along y", "kernel->threads, 1, 1,", "1, kernel->threads, 1,", 0},
    {"no shared memory", "(unsigned)shared_bytes_of(context, step)", "0", 0},
    {"the first kernel's code for all", "bytes + binary->offset", "bytes", 0},
    {"inputs of the run before",
     "if (!size_bytes)\n            continue;\n        if (tensor->on_device)",
     "if (!size_bytes || run->exec)\n            continue;\n        if (tensor->on_device)", 0},
    {"inputs that are copied short", "run->inputs[i].at, tensor->data, size_bytes,",
     "run->inputs[i].at, tensor->data, size_bytes / 2,", 0},
    {"a graph in another stream", "run->exec, run->used);", "run->exec, NULL);", 0},
    {"a graph of other shapes", "    drop_graph(context);\n    if (total", "    if (total", 0},
    {"steps that are done twice", "    *done = 1;", "", 0},
    {"outputs copied the wrong way", "driver->copy_within(to, from, size_bytes",
     "driver->copy_within(from, to, size_bytes", 0},
    {"faults that are not looked at", "    run->is_pending = 1;\n    return run->is_async",
     "    return run->is_async", 0},
    {"a fault of another step", "dlcrt_string(context->plan, steps[i].name)",
     "dlcrt_string(context->plan, steps[0].name)", 0},
    {"fault words that nobody clears",
     "DLCRT_CUDA(driver, memory_set, \"the fault words\", run->faults, 0,\n               "
     "context->plan->steps.count * sizeof(int64_t) + 1, run->used);",
     "", 0},
    {"memory freed under work",
     "        if (run->is_pending)\n            driver_in(context)->stream_wait(run->used);", "",
     0},
    {"a context that stays current", "driver_in(context)->context_pop(&popped);", "(void)popped;",
     0},
    {"memory that is never freed", "driver->memory_free(region->at);", "", 0},
    {"a stream that is never destroyed", "driver_in(context)->stream_destroy(run->stream);", "", 0},
    {"an output's place taken twice",
     "cut(block, plan->steps.count * sizeof(int64_t) + 1, &at, &faults);",
     "faults = block ? run->inputs[0] : faults;", 0},
};

static int command(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int command(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The program of that number, compiled and run: what it printed, and how it ended. */
static char *outcome(int number, const char *text)
{
    char path[128], *result;
    size_t n;
    snprintf(path, sizeof path, "%s/%d.c", folder, number);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    ck_assert_msg(!command("cc -w -O0 -std=gnu17 -D_GNU_SOURCE -I%s -I%s/include %s "
                           "%s/tests/vgpu/scenario.c %s -o %s/%d -ldl "
                           "-lpthread -lm 2>%s/%d.log",
                           source_dir, source_dir, path, source_dir, library, folder, number,
                           folder, number),
                  "cc: %s/%d.log", folder, number);
    int status = command("timeout 60 %s/%d %s %s >%s/%d.out 2>%s/%d.err", folder, number, net,
                         gather, folder, number, folder, number);
    snprintf(path, sizeof path, "%s/%d.out", folder, number);
    file = fopen(path, "r");
    result = calloc(1, 1 << 16);
    n = fread(result, 1, (1 << 16) - 64, file);
    fclose(file);
    snprintf(result + n, 64, "ends with %d\n", status);
    unlink(path);
    snprintf(path, sizeof path, "%s/%d", folder, number);
    unlink(path);
    return result;
}

static char *read_source(dlc_arena *arena)
{
    char path[1024], *text = dlc_arena_alloc(arena, 1 << 18, 1);
    snprintf(path, sizeof path, "%s/runtime/cuda.c", source_dir);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_lt(fread(text, 1, 1 << 18, file), 1 << 18);
    fclose(file);
    return text;
}

static char *expected;

static void make_expected(void)
{
    dlc_arena *arena = dlc_arena_create(0);
    expected = outcome(1000, read_source(arena));
    ck_assert_msg(strstr(expected, "left: 0;") && strstr(expected, "ends with 0"), "%s", expected);
    dlc_arena_destroy(arena);
}

START_TEST(test_mutant)
{
    dlc_arena *arena = dlc_arena_create(0);
    const trial_mutation mutation = {mutants[_i].from, mutants[_i].to, mutants[_i].nth};
    const char *text = trial_mutate(read_source(arena), &mutation, arena);
    ck_assert_msg(text != NULL, "%s: '%s' is not in runtime/cuda.c", mutants[_i].bug,
                  mutants[_i].from);
    char *found = outcome(_i, text);
    ck_assert_msg(strcmp(found, expected) != 0, "%s: not seen", mutants[_i].bug);
    free(found);
    dlc_arena_destroy(arena);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    if (system("cc --version >/dev/null 2>&1")) {
        printf("skipped: it needs the C compiler cc\n");
        return 77;
    }
    source_dir = argv[1], library = argv[2], net = argv[3], gather = argv[4];
    snprintf(folder, sizeof folder, "/tmp/dlc_runtime_mutants_%d", (int)getpid());
    command("mkdir -p %s", folder);
    Suite *suite = suite_create("runtime mutants");
    TCase *cases = tcase_create("mutants");
    tcase_add_unchecked_fixture(cases, make_expected, NULL);
    tcase_add_loop_test(cases, test_mutant, 0, sizeof mutants / sizeof *mutants);
    tcase_set_timeout(cases, 200);
    suite_add_tcase(suite, cases);
    int failed = suite_run(suite);
    command("rm -rf %s", folder);
    return failed;
}

/*
 * Every distinct kernel of a model for CUDA, on data that flows through the model, against the
 * kernel interpreter: ptx_models WAY[,WAY…] MODEL [SIZE [STRIDE]]. WAY is ptx, ptx-backwards,
 * plain, seed, asan or tsan; SIZE the value of every symbol; of a kernel's blocks each STRIDE-th
 * runs, by plain all of them. Ends with 77 when none of the ways is there on this machine.
 */
#include "tests/ptx/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/driver.h"

static const char *const words[NWAYS] = {"ptx", "ptx-backwards", "plain", "seed", "asan", "tsan"};

/* Bits of the ways that a list of words names; 0 when it names another. */
static uint32_t find_ways(const char *list)
{
    uint32_t ways = 0;
    for (size_t n; *list; list += n + (list[n] == ',')) {
        int way = 0;
        n = strcspn(list, ",");
        while (way < NWAYS && (strlen(words[way]) != n || strncmp(words[way], list, n)))
            way++;
        if (way == NWAYS)
            return 0;
        ways |= 1u << way;
    }
    return ways;
}

/* Of the ways those that are there; why the others are not is told. */
static uint32_t available(uint32_t ways)
{
    dlc_arena *arena = dlc_arena_create(0);
    for (int way = 0; way < NWAYS; way++) {
        const char *reason = ways >> way & 1 ? trial_unavailable((trial_way)way, arena) : NULL;
        if (reason) {
            printf("skipped: %s: %s\n", trial_ways[way], reason);
            ways &= ~(1u << way);
        }
    }
    dlc_arena_destroy(arena);
    return ways;
}

/* Floats in [0, 1); integers 0 and 1: what a model takes for tokens and masks. */
static void fill(dlc_dtype dtype, void *bytes, size_t n)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        dlc_scalar value = {0};
        if (dlc_is_float(dtype))
            value.f = dlc_round_to(dtype, (double)(state >> 11) * 0x1p-53);
        else
            value.i = (int64_t)(state >> 63);
        dlc_scalar_write(dtype, (char *)bytes + i * dlc_dtype_bytes(dtype), value);
    }
}

static void **memory_of(const dlc_module *module, const int64_t *symbols, dlc_arena *arena)
{
    void **memory = dlc_new_array(arena, void *, module->values.n + 1);
    for (uint32_t i = 0; i < module->inputs.n; i++) {
        const dlc_module_value *value = &module->values.data[module->inputs.data[i]];
        size_t n = 1;
        for (uint8_t d = 0; d < value->type.rank; d++)
            n *= (size_t)dlc_expr_eval(module->pool, value->type.dims[d], symbols);
        memory[module->inputs.data[i]] = dlc_arena_array(arena, n + 1, 8, 64);
        fill(value->type.dtype, memory[module->inputs.data[i]], n);
    }
    return memory;
}

static const char *run_way(trial *trials, uint32_t n, trial_way way, uint32_t stride,
                           dlc_arena *arena)
{
    for (uint32_t i = 0; i < n; i++)
        trials[i].stride = way == WAY_PLAIN ? 0 : stride;
    const char *problem = trial_run(trials, n, way, NULL, arena);
    printf("%u kernels by %s: %s\n", n, trial_ways[way],
           problem ? problem : "agree with the interpreter");
    fflush(stdout);
    return problem;
}

static int run(const dlc_module *module, uint32_t ways, int64_t size, uint32_t stride)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *problem;
    trial *trials;
    int64_t *symbols = dlc_new_array(arena, int64_t, module->symbols.n + 1);
    for (uint32_t i = 0; i < module->symbols.n; i++)
        symbols[i] = size;
    uint32_t n =
        trial_walk(module, symbols, memory_of(module, symbols, arena), arena, &trials, &problem);
    int failed = problem != NULL;
    if (failed)
        printf("%s\n", problem);
    for (int way = 0; way < NWAYS && !problem; way++)
        if (ways >> way & 1)
            failed |= run_way(trials, n, (trial_way)way, stride, arena) != NULL;
    dlc_arena_destroy(arena);
    return failed;
}

static int complain(const dlc_model *model)
{
    dlc_model_note note;
    for (uint32_t i = 0; dlc_model_message(model, i, &note); i++)
        printf("%s: %s\n", note.place, note.text);
    return 1;
}

int main(int argc, char **argv)
{
    uint32_t ways = argc > 2 ? find_ways(argv[1]) : 0;
    if (!ways) {
        printf("usage: ptx_models WAY[,WAY…] MODEL [SIZE [STRIDE]]\n");
        return 2;
    }
    ways = available(ways);
    if (!ways)
        return 77;
    dlc_model *model;
    dlc_options options = {.target = "sm_75"};
    int failed = dlc_model_open(argv[2], &options, &model) != DLC_OK ||
                 dlc_model_run_passes(model) != DLC_OK;
    failed = failed ? complain(model)
                    : run(model->ctx.module, ways, argc > 3 ? atoll(argv[3]) : 3,
                          argc > 4 ? (uint32_t)atoi(argv[4]) : 0);
    dlc_model_close(model);
    return failed;
}

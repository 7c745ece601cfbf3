/*
 * Every distinct kernel of a model for CUDA, on data that flows through the model, against the
 * kernel interpreter: ptx_models WAY MODEL [SIZE [STRIDE]] WAY is ptx, ptx-backwards, plain, seed,
 * asan or tsan; SIZE the value of every symbol; of a kernel's blocks PTX runs each STRIDE-th. Ends
 * with 77 when the way is not there on this machine.
 */
#include "tests/ptx/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/driver.h"

static const char *const words[NWAYS] = {"ptx", "ptx-backwards", "plain", "seed", "asan", "tsan"};

static int find_way(const char *word)
{
    int way = 0;
    while (way < NWAYS && strcmp(words[way], word))
        way++;
    return way;
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
    const dlc_graph *graph = module->graph;
    void **memory = dlc_new_array(arena, void *, graph->nvalues + 1);
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const dlc_value *value = graph->inputs.data[i];
        size_t n = 1;
        for (uint8_t d = 0; d < value->type.rank; d++)
            n *= (size_t)dlc_expr_eval(graph->pool, value->type.dims[d], symbols);
        memory[value->id] = dlc_arena_array(arena, n + 1, 8, 64);
        fill(value->type.dtype, memory[value->id], n);
    }
    return memory;
}

static int run(const dlc_module *module, trial_way way, int64_t size, uint32_t stride)
{
    dlc_arena *arena = dlc_arena_create(0);
    const char *problem;
    trial *trials;
    int64_t *symbols = dlc_new_array(arena, int64_t, module->graph->symbols.n + 1);
    for (uint32_t i = 0; i < module->graph->symbols.n; i++)
        symbols[i] = size;
    uint32_t n =
        trial_walk(module, symbols, memory_of(module, symbols, arena), arena, &trials, &problem);
    for (uint32_t i = 0; i < n; i++)
        trials[i].stride = stride;
    problem = problem ? problem : trial_run(trials, n, way, NULL, arena);
    printf("%u kernels by %s: %s\n", n, trial_ways[way],
           problem ? problem : "agree with the interpreter");
    dlc_arena_destroy(arena);
    return problem != NULL;
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
    int way = argc > 2 ? find_way(argv[1]) : NWAYS;
    if (way == NWAYS) {
        printf("usage: ptx_models WAY MODEL [SIZE [STRIDE]]\n");
        return 2;
    }
    dlc_arena *arena = dlc_arena_create(0);
    const char *reason = trial_unavailable((trial_way)way, arena);
    if (reason)
        printf("skipped: %s: %s\n", trial_ways[way], reason);
    dlc_arena_destroy(arena);
    if (reason)
        return 77;
    dlc_model *model;
    dlc_options options = {.target = "sm_75"};
    int failed = dlc_model_open(argv[2], &options, &model) != DLC_OK ||
                 dlc_model_run_passes(model) != DLC_OK;
    failed = failed ? complain(model)
                    : run(model->ctx.module, (trial_way)way, argc > 3 ? atoll(argv[3]) : 3,
                          argc > 4 ? (uint32_t)atoi(argv[4]) : 0);
    dlc_model_close(model);
    return failed;
}

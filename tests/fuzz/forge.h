/*
 * Forged plans: a model's plan with some words changed, its checksum made right, kernels that do nothing, constants and tables in
 * blocks of just their size, so that whoever reads past one is seen. The loader refuses it, or sizing and running it end well.
 */
#ifndef DLC_TESTS_FUZZ_FORGE_H
#define DLC_TESTS_FUZZ_FORGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dlc/checksum.h"
#include "dlc/dlc.h"
#include "runtime/internal.h"

/* Every kind of step there is, and what may stand around it. */
static const char *const forge_models[] = {
    /* launch, bind, a count that data gives, conditions */
    "symbol n = dim(%x, 0) in 0..64\nsymbol c = opaque(%at, 0) in 0..64\n"
    "graph @f(%x: f32[n]) -> %y, %z {\n  require n < 33 \"n is above 32\"\n  %at: i64[1,c] = nonzero %x {symbol=1}\n"
    "  %y: i64[1,c] = neg %at\n  %z: f32[n] = exp %x\n}\n",
    /* branches in branches */
    "symbol c = data(%k, 0) in 0..1\nsymbol d = data(%l, 0) in 0..9\ngraph @f(%x: f32[4], %k: bool[], %l: i64[]) -> %y {\n"
    "  %h: f32[] = const [0.5]\n  %i: bool[] = if {holds=[1 <= c]}\n    %a: f32[4] = mul %x, %h\n"
    "    %j: bool[] = if {holds=[d < 3]}\n      %p: f32[4] = neg %a\n    %q: bool[] = else %j\n      %r: f32[4] = exp %a\n"
    "    %s: bool[] = done %q\n    %t: f32[4] = either %s, %p, %r\n  %e: bool[] = else %i\n    %b: f32[4] = abs %x\n"
    "  %o: bool[] = done %e\n  %y: f32[4] = either %o, %t, %b\n}\n",
    /* a loop, states, a stack of its rounds */
    "symbol t = data(%k, 0) in 0..5\nsymbol n = opaque(%l, 0) in 0..5\ngraph @f(%x: f32[4], %k: i64[]) -> %y, %all {\n"
    "  %l: bool[] = loop {symbol=1, holds=[n < t]}\n    %s: f32[4] = state %l, %x\n    %u: f32[4] = add %s, %x\n"
    "    %v: f32[4] = exp %u\n  %d: bool[] = done %l\n  %y: f32[4] = final %d, %s, %u\n"
    "  %all: f32[5,4] = stack %d, %v {dims=[5, 4]}\n}\n",
    /* the k largest, and boxes that are kept */
    "graph @f(%b: f32[1,4,4], %s: f32[1,2,4]) -> %y, %v {\n  %t: f32[] = const [0.5]\n"
    "  %z: f32[] = const [0.1]\n  %v: f32[1,2,4], %o: i64[1,2,4] = topk %s {axis=2, largest=1, dims=[4]}\n"
    "  %y: i64[1,2,4] = suppress %b, %v, %t, %z {center=0, dims=[4]}\n}\n",
    /* strings */
    "string \"cat\"\nstring \" \"\nsymbol m = opaque(%p, 1) in 0..16\nsymbol k = opaque(%w, 0) in 0..8\n"
    "graph @f(%x: str[4]) -> %j, %p, %w, %n {\n  %d: str[] = const [2]\n  %s: str[2] = const [1, 2]\n"
    "  %j: str[4] = text_join %x, %x\n"
    "  %p: str[4,m], %c: i64[4] = text_split %x, %d {symbol=0}\n  %w: str[k] = text_normalize %x, %s {symbol=1}\n"
    "  %f: f32[4] = cast %c {dtype=f32}\n  %n: str[4] = text_write %f\n}\n",
    "graph @f(%x: f32[3,8]) -> %v, %i {\n  %v: f32[3,4], %i: i64[3,4] = topk %x {axis=1, largest=1, dims=[4]}\n}\n",
};
enum { FORGE_NMODELS = sizeof forge_models / sizeof *forge_models, FORGE_MOST_INPUTS = 4, FORGE_MOST_OUTPUTS = 4 };

typedef struct {
    unsigned char *plan, *constants; /* as compiled */
    size_t plan_bytes, constants_bytes, nkernels;
    dlcrt_tensor inputs[FORGE_MOST_INPUTS];
    uint32_t ninputs, noutputs;
    _Alignas(8) int32_t data[FORGE_MOST_INPUTS][64];
} forge_base;

static void forge_kernel(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    (void)args;
    (void)begin;
    (void)end;
}

static inline void forge_need(int holds)
{
    if (!holds)
        abort();
}

/* Inputs small enough for every model: sizes that are open are 8. */
static inline void forge_inputs(forge_base *base, const dlcrt_executable *executable)
{
    dlcrt_tensor_info info;
    base->ninputs = dlcrt_executable_ninputs(executable);
    base->noutputs = dlcrt_executable_noutputs(executable);
    forge_need(base->ninputs <= FORGE_MOST_INPUTS && base->noutputs <= FORGE_MOST_OUTPUTS);
    for (uint32_t i = 0; i < base->ninputs; i++) {
        dlcrt_tensor *t = &base->inputs[i];
        dlcrt_executable_input(executable, i, &info);
        *t = (dlcrt_tensor){.dtype = info.dtype, .rank = info.rank, .data = base->data[i]};
        for (uint32_t d = 0; d < info.rank; d++)
            t->dims[d] = info.dims[d] < 0 ? 8 : info.dims[d];
        for (uint32_t k = 0; k < 64; k++)
            base->data[i][k] = k % 3 ? (info.dtype == DLC_F32 ? 0x3f800000 : 1) : 0;
        base->data[i][0] = info.rank ? base->data[i][0] : 1;
        for (uint32_t k = 0; info.dtype == DLC_STR && k < 8; k++)
            ((const char **)base->data[i])[k] = k % 2 ? "cat" : "a cat and 3 dogs";
    }
}

static inline void forge_open(uint32_t number, forge_base *base)
{
    dlc_model *model;
    dlcrt_executable *executable;
    const char *text = forge_models[number];
    int fd = memfd_create("forged", MFD_CLOEXEC);
    *base = (forge_base){0};
    dlc_options options = {.target = "native", .jobs = 1, .tuned = "", .is_temporary = 1};
    forge_need(dlc_model_open_bytes(text, strlen(text), "forged.dlc", &options, &model) == DLC_OK);
    forge_need(dlc_model_write_fd(model, "so", fd, "forged") == DLC_OK);
    dlc_model_close(model);
    forge_need(dlcrt_executable_open_fd(fd, &executable) == DLC_OK);
    base->plan_bytes = executable->plan->size_bytes;
    base->constants_bytes = executable->image.entry->constants_bytes;
    base->nkernels = executable->plan->kernels.count;
    base->plan = malloc(base->plan_bytes);
    base->constants = malloc(base->constants_bytes + 1);
    memcpy(base->plan, executable->plan, base->plan_bytes);
    memcpy(base->constants, executable->constants, base->constants_bytes);
    forge_inputs(base, executable);
    dlcrt_executable_close(executable);
    close(fd);
}

static inline void forge_close(forge_base *base)
{
    free(base->plan);
    free(base->constants);
}

static inline void forge_run(const forge_base *base, dlcrt_executable *executable)
{
    dlcrt_context *context;
    char text[4096];
    dlcrt_tensor outputs[FORGE_MOST_OUTPUTS] = {0};
    uint32_t noutputs = dlcrt_executable_noutputs(executable);
    (void)dlcrt_executable_print(executable, text, sizeof text);
    if (dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1, .max_mebibytes = 256}, &context) != DLC_OK)
        return;
    dlcrt_context_limit(context, 0.05);
    if (dlcrt_context_prepare(context, base->inputs, base->ninputs) == DLC_OK)
        (void)!dlcrt_context_run(context, base->inputs, base->ninputs, outputs, noutputs <= base->noutputs ? noutputs : 0);
    dlcrt_context_destroy(context);
}

/* One forged plan, used where the loader takes it: then the result is true. `bytes` are the plan's. */
static inline int forge_with(const forge_base *base, const unsigned char *bytes, void (*use)(const forge_base *, dlcrt_executable *))
{
    dlc_kernel_fn *kernels = malloc((base->nkernels + 1) * sizeof *kernels);
    unsigned char *plan = malloc(base->plan_bytes), *constants = aligned_alloc(64, (base->constants_bytes + 64) / 64 * 64);
    dlcrt_executable *executable;
    int is_taken = 0;
    memcpy(plan, bytes, base->plan_bytes);
    memcpy(constants, base->constants, base->constants_bytes);
    for (size_t k = 0; k <= base->nkernels; k++)
        kernels[k] = forge_kernel;
    dlc_plan *head = (dlc_plan *)plan;
    dlc_plan_entry entry = {0, head, kernels};
    dlc_executable forged = {.magic = DLC_EXECUTABLE_MAGIC, .abi_version = DLC_ABI_VERSION, .nplans = 1,
                             .constants_bytes = base->constants_bytes, .constants = constants, .plans = &entry};
    /* What is linked into a program has no end that could be checked: its size and its kernels are believed. */
    if (head->size_bytes == base->plan_bytes && head->kernels.count <= base->nkernels) {
        entry.checksum = dlc_checksum(plan, base->plan_bytes);
        is_taken = dlcrt_executable_from(&forged, &executable) == DLC_OK;
    }
    if (is_taken) {
        use(base, executable);
        dlcrt_executable_close(executable);
    }
    free(constants);
    free(plan);
    free(kernels);
    return is_taken;
}

static inline int forge_try(const forge_base *base, const unsigned char *bytes)
{
    return forge_with(base, bytes, forge_run);
}

#endif

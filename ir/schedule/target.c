/* Targets by name. "native" is the best row the host can run; its own cache sizes change tiles,
 * never bits. */
#include "ir/schedule/target.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { KIB = 1024 };

static const dlc_machine machines[] = {
    /* One thread: how many there will be is not known. A step costs its dispatch and tails. */
    [DLC_TARGET_CPU] = {.cycles_per_us = 3500,
                        .far_bytes_per_us = 30000,
                        .near_bytes_per_us = 110000,
                        .workers = 1,
                        .block_workers = 1,
                        .step_us = 0.3},
    /* A GPU of medium size. */
    [DLC_TARGET_CUDA] = {.cycles_per_us = 1500,
                         .far_bytes_per_us = 300000,
                         .near_bytes_per_us = 300000,
                         .workers = 256,
                         .block_workers = 8,
                         .step_us = 2},
};

static const dlc_target targets[] = {
#define DLC_TARGET(id, text, kind, triple, cpu, vec, regs, fma, l1, l2)                            \
    {text, DLC_TARGET_##kind,  triple,      cpu, "", vec, regs, fma, (l1)*KIB, (l2)*KIB,           \
     DLC_TARGET_##kind == DLC_TARGET_CUDA ? (l1)*KIB : (l2)*KIB / 2, &machines[DLC_TARGET_##kind]},
#include "ir/schedule/targets.def"
#undef DLC_TARGET
};
enum { NTARGETS = sizeof targets / sizeof *targets };

static const char *const names[] = {
    "native",
#define DLC_TARGET(id, text, kind, triple, cpu, vec, regs, fma, l1, l2) text,
#include "ir/schedule/targets.def"
#undef DLC_TARGET
    NULL,
};

const char *const *dlc_target_names(void)
{
    return names;
}

static const dlc_target *row(const char *name)
{
    for (int i = 0; i < NTARGETS; i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

static const char *host_row(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        return "x86-64-v4";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return "x86-64-v3";
    return "x86-64-v2";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "";
#endif
}

static dlc_target native;
static const dlc_target *native_target;

static uint32_t cache_bytes(int name, uint32_t otherwise)
{
    long size = sysconf(name);
    return size > 0 && size <= UINT32_MAX ? (uint32_t)size : otherwise;
}

static void find_native(void)
{
    const dlc_target *base = row(host_row());
    if (!base)
        return;
    native = *base;
    native.name = "native";
    native.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, base->l1_bytes);
    native.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, base->l2_bytes);
    native.scratch_bytes = native.l2_bytes / 2;
    native_target = &native;
}

const dlc_target *dlc_target_find(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (strcmp(name, "native") != 0)
        return row(name);
    pthread_once(&once, find_native);
    return native_target;
}

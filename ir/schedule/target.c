/* Targets by name. "native" is the best row the host can run, with the host's own caches and facts;
 * both change schedules, which say so, and never what a schedule computes. */
#include "ir/schedule/target.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "dlc/cpu.h"

enum { KIB = 1024 };

enum {
#define DLC_TARGET(id, text, kind, triple, cpu, vec, regs, facts, l1, l2) ROW_##id,
#include "ir/schedule/targets.def"
#undef DLC_TARGET
};

static const dlc_machine machines[] = {
#define DLC_TARGET_MACHINE(target, cycles, l1, l2, l3, size, memory, nthreads, nworkers, nblock, lanes, us) \
    [ROW_##target] = {.cycles_per_us = cycles,                                                     \
                      .l1_bytes_per_us = l1,                                                       \
                      .near_bytes_per_us = l2,                                                     \
                      .l3_bytes_per_us = l3,                                                       \
                      .l3_bytes = size,                                                            \
                      .far_bytes_per_us = memory,                                                  \
                      .sum_latency = 4,                                                            \
                      .element_loads = 2,                                                          \
                      .tile_cycles = 8,                                                            \
                      .part_cycles = 1,                                                            \
                      .threads = nthreads,                                                         \
                      .workers = nworkers,                                                         \
                      .block_workers = nblock,                                                     \
                      .unit_lanes = lanes,                                                         \
                      .step_us = us},
#include "ir/schedule/machines.def"
#undef DLC_TARGET_MACHINE
};

const dlc_target_fact_info dlc_target_facts[DLC_NFACTS] = {
#define DLC_TARGET_FACT(id, text, arch, features) {text, arch, features},
#include "ir/schedule/facts.def"
#undef DLC_TARGET_FACT
};

#define FMA DLC_HAS_FMA
#define PMADDWD DLC_HAS_PMADDWD
#define SM(n) (2 * DLC_HAS_SM_##n - DLC_HAS_SM_75)
static const dlc_target targets[] = {
#define DLC_TARGET(id, text, kind, triple, cpu, vec, regs, facts, l1, l2)                          \
    {text,                                                                                         \
     DLC_TARGET_##kind,                                                                            \
     triple,                                                                                       \
     cpu,                                                                                          \
     facts,                                                                                        \
     vec,                                                                                          \
     regs,                                                                                         \
     (l1)*KIB,                                                                                     \
     (l2)*KIB,                                                                                     \
     DLC_TARGET_##kind == DLC_TARGET_CUDA ? (l1)*KIB : (l2)*KIB / 2,                               \
     &machines[ROW_##id],                                                                          \
     0,                                                                                            \
     NULL},
#include "ir/schedule/targets.def"
#undef DLC_TARGET
};
enum { NTARGETS = sizeof targets / sizeof *targets };

static const char *const names[] = {
    "native",
#define DLC_TARGET(id, text, kind, triple, cpu, vec, regs, facts, l1, l2) text,
#include "ir/schedule/targets.def"
#undef DLC_TARGET
    NULL,
};

const char *const *dlc_target_names(void)
{
    return names;
}

static const dlc_target *row(const char *name, size_t n)
{
    for (int i = 0; i < NTARGETS; i++)
        if (strlen(targets[i].name) == n && !memcmp(targets[i].name, name, n))
            return &targets[i];
    return NULL;
}

/* --- the host --- */

static uint64_t feature_bits(const char *features)
{
    uint64_t bits = 0;
    while (*features) {
        size_t n = strcspn(features, ",");
#define DLC_CPU(number, arch, level, hwcap, text)                                                  \
    if (strlen(text) == n && !memcmp(text, features, n))                                           \
        bits |= UINT64_C(1) << (number);
#include "dlc/cpu.def"
#undef DLC_CPU
        features += n + (features[n] == ',');
    }
    return bits;
}

uint32_t dlc_target_l1_ways(const dlc_target *target)
{
    return target->l1_bytes / DLC_WAY_BYTES;
}

uint64_t dlc_target_features(uint32_t facts)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < DLC_NFACTS; i++)
        bits |= facts >> i & 1 ? feature_bits(dlc_target_facts[i].features) : 0;
    return bits;
}

static const char *host_row(uint64_t cpu)
{
#if defined(__x86_64__)
    uint64_t wanted[5] = {0};
#define DLC_CPU(number, arch, level, hwcap, text) wanted[level] |= UINT64_C(1) << (number);
#include "dlc/cpu.def"
#undef DLC_CPU
    if ((cpu & (wanted[3] | wanted[4])) == (wanted[3] | wanted[4]))
        return "x86-64-v4";
    return (cpu & wanted[3]) == wanted[3] ? "x86-64-v3" : "x86-64-v2";
#elif defined(__aarch64__)
    (void)cpu;
    return "aarch64";
#else
    (void)cpu;
    return "";
#endif
}

static int is_for(const dlc_target *target, const dlc_target_fact_info *fact)
{
    return *fact->arch && !strncmp(target->triple, fact->arch, strlen(fact->arch));
}

static uint32_t host_facts(const dlc_target *base, uint64_t cpu)
{
    uint32_t facts = base->facts;
    for (uint32_t i = 0; i < DLC_NFACTS; i++) {
        uint64_t needs = dlc_target_features(UINT32_C(1) << i);
        if (is_for(base, &dlc_target_facts[i]) && (cpu & needs) == needs)
            facts |= UINT32_C(1) << i;
    }
    return facts;
}

static dlc_target native;
static dlc_machine native_machine;
static const dlc_target *native_target;

static uint32_t cache_bytes(int name, uint32_t otherwise)
{
    long size = sysconf(name);
    return size > 0 && size <= UINT32_MAX ? (uint32_t)size : otherwise;
}

/* sysconf knows the sum over a package's, of which a processor reaches one. */
uint32_t dlc_host_l3_bytes(void)
{
    uint32_t kib = 0;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    int is_read = f && fscanf(f, "%uK", &kib) == 1;
    if (f)
        fclose(f);
    return is_read && kib < UINT32_MAX / KIB ? kib * KIB : cache_bytes(_SC_LEVEL3_CACHE_SIZE, 0);
}

uint32_t dlc_host_threads(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

int dlc_host_is(const char *vendor, unsigned family, const unsigned *models)
{
#if defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx))
        return 0;
    const unsigned name[] = {ebx, edx, ecx};
    if (strlen(vendor) != sizeof name || memcmp(name, vendor, sizeof name) != 0 || !__get_cpuid(1, &eax, &ebx, &ecx, &edx))
        return 0;
    unsigned base = eax >> 8 & 0xf, model = (eax >> 4 & 0xf) | (eax >> 16 & 0xf) << 4; /* with the extended bits: families 6 and 15 */
    if ((base == 0xf ? base + (eax >> 20 & 0xff) : base) != family)
        return 0;
    int is_any = !*models;
    while (*models && *models != model)
        models++;
    return is_any || *models;
#else
    (void)vendor, (void)family, (void)models;
    return 0;
#endif
}

/* What is known of the host's kind beyond its row. */
static void take_host(const char *base, dlc_machine *machine)
{
#define DLC_HOST(vendor, family, models, row, cycles, l1, l2, l3, memory, latency, loads, spread, narrow, tile, burst, part, rows, again, panel, \
                 step, ops, side_by_side, ...)                                                 \
    if (dlc_host_is(vendor, family, models) && !strcmp(base, row)) {                               \
        const double peaks[DLC_NFACTS] = {__VA_ARGS__};                                            \
        memcpy(machine->ops_per_us, peaks, sizeof peaks);                                          \
        machine->cycles_per_us = cycles;                                                           \
        machine->l1_bytes_per_us = l1;                                                             \
        machine->near_bytes_per_us = l2;                                                           \
        machine->l3_bytes_per_us = l3;                                                             \
        machine->far_bytes_per_us = memory;                                                        \
        machine->sum_latency = latency;                                                            \
        machine->element_loads = loads;                                                            \
        machine->spread_cycles = spread;                                                           \
        machine->narrow_cycles = narrow;                                                           \
        machine->tile_cycles = tile;                                                               \
        machine->burst_cycles = burst;                                                             \
        machine->part_cycles = part;                                                               \
        machine->row_cycles = rows;                                                                \
        machine->again_bytes = again;                                                              \
        machine->panel_cycles = panel;                                                             \
        machine->step_bytes = step;                                                                \
        machine->lane_ops = ops;                                                                   \
        machine->streams = side_by_side;                                                           \
        machine->fitted = 1;                                                                       \
    }
#include "ir/schedule/hosts.def"
#undef DLC_HOST
}

static void find_native(void)
{
    uint64_t cpu = dlc_cpu_detect();
    const char *name = host_row(cpu);
    const dlc_target *base = row(name, strlen(name));
    if (!base)
        return;
    native = *base;
    native.name = "native";
    native.facts = host_facts(base, cpu);
    native.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, base->l1_bytes);
    native.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, base->l2_bytes);
    native.scratch_bytes = native.l2_bytes / 2;
    native_machine = *base->machine;
    take_host(base->name, &native_machine);
    native_machine.l3_bytes = dlc_host_l3_bytes();
    native_machine.threads = dlc_host_threads();
    native.machine = &native_machine;
    native_target = &native;
}

static const dlc_target *find_row(const char *name, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (n != 6 || memcmp(name, "native", 6) != 0)
        return row(name, n);
    pthread_once(&once, find_native);
    return native_target;
}

/* --- rows with more facts, or on a machine that was measured --- */

/* The facts after the name, each behind a '+'; 0 when one is unknown or not for this target. */
static int read_facts(const dlc_target *target, const char *text, uint32_t *facts)
{
    while (*text) {
        size_t n = strcspn(++text, "+");
        uint32_t i = 0;
        while (i < DLC_NFACTS && (strlen(dlc_target_facts[i].text) != n ||
                                  memcmp(dlc_target_facts[i].text, text, n) != 0 ||
                                  !is_for(target, &dlc_target_facts[i])))
            i++;
        if (i == DLC_NFACTS)
            return 0;
        *facts |= UINT32_C(1) << i;
        text += n;
    }
    return 1;
}

typedef struct made {
    dlc_target target;
    dlc_machine machine;
    struct made *next;
    char name[];
} made;

/* One for each name, machine and width of panels: targets are compared by address. They live as long as the process. */
static const dlc_target *make(const dlc_target *base, const char *name, uint32_t facts, const dlc_machine *machine,
                              uint32_t panel_bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static made *list;
    pthread_mutex_lock(&lock);
    made *at = list;
    while (at && (strcmp(at->name, name) != 0 || memcmp(&at->machine, machine, sizeof *machine) != 0 ||
                  at->target.panel_bytes != panel_bytes))
        at = at->next;
    if (!at && (at = malloc(sizeof *at + strlen(name) + 1))) {
        memcpy(at->name, name, strlen(name) + 1);
        at->machine = *machine;
        at->target = *base;
        at->target.name = at->name;
        at->target.facts = facts;
        at->target.machine = &at->machine;
        at->target.panel_bytes = panel_bytes;
        at->next = list;
        list = at;
    }
    pthread_mutex_unlock(&lock);
    return at ? &at->target : NULL;
}

const dlc_target *dlc_target_on(const dlc_target *base, const dlc_machine *machine)
{
    return make(base, base->name, base->facts, machine, base->panel_bytes);
}

const dlc_target *dlc_target_beside(const dlc_target *base, uint32_t panel_bytes)
{
    return make(base, base->name, base->facts, base->machine, panel_bytes);
}

const dlc_target *dlc_target_find(const char *name)
{
    size_t n = strcspn(name, "+");
    const dlc_target *base = find_row(name, n);
    uint32_t facts = base ? base->facts : 0;
    if (!base || !name[n])
        return base;
    return read_facts(base, name + n, &facts) ? make(base, name, facts, base->machine, 0) : NULL;
}

/*
 * What the machine offers this process: instruction sets, processors, and the floating-point state
 * kernels are promised. Processors are counted as a container sees them: the affinity mask, then
 * the cgroup's quota (v2, else v1), rounded down.
 */
#include "dlc/cpu.h"
#include "runtime/internal.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    uint8_t number, level;
    const char *text;
} features[] = {
#define DLC_CPU(number, arch, level, hwcap, text) {number, level, text},
#include "dlc/cpu.def"
#undef DLC_CPU
};
enum { NFEATURES = sizeof features / sizeof features[0] };

dlc_arch dlcrt_cpu_arch(void)
{
#if defined(__x86_64__)
    return DLC_ARCH_X86_64;
#elif defined(__aarch64__)
    return DLC_ARCH_AARCH64;
#else
#error "dlcrt runs on x86-64 and aarch64"
#endif
}

const char *dlcrt_arch_name(unsigned arch)
{
    static const char *const names[] = {"x86-64", "aarch64"};
    return arch < sizeof names / sizeof names[0] ? names[arch] : "an unknown processor";
}

const char *dlcrt_cpu_feature_name(unsigned bit)
{
    for (unsigned i = 0; i < NFEATURES; i++)
        if (features[i].number == bit)
            return features[i].text;
    return "a feature this runtime does not know";
}

/* "x86-64-v3" or a name of cpu.def. */
static uint64_t features_named(const char *name, size_t n)
{
    uint64_t bits = 0;
    int level = n == 9 && !memcmp(name, "x86-64-v", 8) ? name[8] - '0' : 0;
    for (unsigned i = 0; i < NFEATURES; i++) {
        int is_in_level = features[i].level && features[i].level <= level;
        if (is_in_level || (strlen(features[i].text) == n && !memcmp(features[i].text, name, n)))
            bits |= UINT64_C(1) << features[i].number;
    }
    return bits;
}

/* Tile registers are used by leave of the system, which holds for threads started after it. */
static uint64_t permitted(uint64_t bits, uint64_t wanted)
{
#if defined(__x86_64__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    uint64_t tiles = features_named("amx-tile", 8) | features_named("amx-int8", 8) |
                     features_named("amx-bf16", 8);
    if (bits & wanted & tiles && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA))
        return bits & ~tiles;
#endif
    (void)wanted;
    return bits;
}

/* Those of DLC_CPU: named behind a '+', what is there whatever the processor says; else what may be, if any is. */
static uint64_t features_listed(const char *list, int is_added)
{
    uint64_t bits = 0;
    int names_any = 0;
    while (list && *list) {
        size_t n = strcspn(list, ",");
        int has_plus = *list == '+';
        names_any |= n && !has_plus;
        if (has_plus == is_added)
            bits |= features_named(list + has_plus, n - (size_t)has_plus);
        list += n + (list[n] == ',');
    }
    return names_any || is_added ? bits : UINT64_MAX;
}

uint64_t dlcrt_cpu_features(uint64_t wanted)
{
    const char *list = getenv("DLC_CPU");
    uint64_t added = features_listed(list, 1);
    return permitted(dlc_cpu_detect() & features_listed(list, 0), wanted & ~added) | added;
}

dlc_status dlcrt_cpu_check(void)
{
    for (const char *list = getenv("DLC_CPU"); list && *list;) {
        size_t n = strcspn(list, ","), plus = *list == '+';
        if (n && !features_named(list + plus, n - plus) && !(n == 9 && !memcmp(list, "x86-64-v1", 9)))
            return dlcrt_fail(DLC_USAGE,
                              "DLC_CPU has '%.*s', where x86-64-v2, -v3, -v4 and names of dlc/cpu.def "
                              "are possible",
                              (int)(n < 64 ? n : 64), list);
        list += n + (list[n] == ',');
    }
    return DLC_OK;
}

static int read_file(const char *path, char *text, size_t size_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, size_bytes - 1);
    close(fd);
    if (n < 0)
        return 0;
    text[n] = '\0';
    return 1;
}

static uint32_t fewer(uint32_t ncpus, long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return ncpus;
    long long share = quota / period;
    return share < 1 ? 1 : share < ncpus ? (uint32_t)share : ncpus;
}

/* cgroup v2: the quota of this group and of every group above it. */
static uint32_t quota_v2(uint32_t ncpus)
{
    char groups[1024], path[1200], text[64];
    if (!read_file("/proc/self/cgroup", groups, sizeof groups))
        return ncpus;
    char *group = strstr(groups, "0::/");
    if (!group)
        return ncpus;
    group += 3;
    group[strcspn(group, "\n")] = '\0';
    for (;;) {
        long long quota, period;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", strcmp(group, "/") ? group : "");
        if (read_file(path, text, sizeof text) && sscanf(text, "%lld %lld", &quota, &period) == 2)
            ncpus = fewer(ncpus, quota, period);
        char *slash = strrchr(group, '/');
        if (!slash || !group[1])
            return ncpus;
        slash[slash == group] = '\0';
    }
}

static uint32_t quota_v1(uint32_t ncpus)
{
    char quota[64], period[64];
    if (!read_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota) ||
        !read_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period))
        return ncpus;
    return fewer(ncpus, atoll(quota), atoll(period));
}

/* Of hardware threads that share a core only the first allowed one counts: they share its
 * multiply-add units too. */
static int is_first_of_core(unsigned cpu, const cpu_set_t *set, size_t set_bytes)
{
    char path[96], siblings[64];
    unsigned first;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    if (!read_file(path, siblings, sizeof siblings) || sscanf(siblings, "%u", &first) != 1)
        return 1;
    return first >= cpu || !CPU_ISSET_S(first, set_bytes, set);
}

static uint32_t count_cores(const cpu_set_t *set, size_t set_bytes, size_t ncpus)
{
    uint32_t n = 0;
    for (unsigned cpu = 0; cpu < ncpus; cpu++)
        if (CPU_ISSET_S(cpu, set_bytes, set))
            n += (uint32_t)is_first_of_core(cpu, set, set_bytes);
    return n ? n : 1;
}

static uint32_t affinity_count(void)
{
    /* The kernel's mask may be wider than cpu_set_t: grow until it fits. */
    for (size_t ncpus = 1024; ncpus <= 1u << 16; ncpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(ncpus);
        size_t set_bytes = CPU_ALLOC_SIZE(ncpus);
        if (!set)
            break;
        uint32_t n = sched_getaffinity(0, set_bytes, set) ? 0 : count_cores(set, set_bytes, ncpus);
        CPU_FREE(set);
        if (n > 0)
            return n;
    }
    return 1;
}

uint32_t dlcrt_cpu_count(void)
{
    uint32_t ncpus = affinity_count();
    return ncpus > 1 ? quota_v1(quota_v2(ncpus)) : ncpus;
}

/* Round to nearest, subnormals kept, no traps: what expr.def says, whatever the caller's program
 * has set. */
#if defined(__x86_64__)
uint32_t dlcrt_float_enter(void)
{
    uint32_t state = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80);
    return state;
}

void dlcrt_float_leave(uint32_t state)
{
    __builtin_ia32_ldmxcsr(state);
}
#else
uint32_t dlcrt_float_enter(void)
{
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
    return (uint32_t)state;
}

void dlcrt_float_leave(uint32_t state)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)state));
}
#endif

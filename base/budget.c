/* What one piece of work may take, and the machine's share of it by default. */
#include "base/budget.h"

#include <stdio.h>
#include <sys/resource.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static DLC_THREAD_LOCAL dlc_budget *in_use;

dlc_budget *dlc_budget_use(dlc_budget *budget)
{
    dlc_budget *before = in_use;
    in_use = budget;
    return before;
}

dlc_budget *dlc_budget_in_use(void)
{
    return in_use;
}

double dlc_budget_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void dlc_budget_at(const char *step, const char *node)
{
    if (!in_use)
        return;
    in_use->step = step;
    in_use->node = node;
    if (in_use->deadline > 0 && dlc_budget_clock() > in_use->deadline)
        dlc_out_of_memory(0, DLC_OUT_OF_TIME);
}

void dlc_budget_grant(size_t size_bytes)
{
    if (!in_use || in_use->ceiling_bytes <= in_use->most_bytes)
        return;
    size_t left = in_use->ceiling_bytes - in_use->most_bytes;
    in_use->most_bytes += size_bytes < left ? size_bytes : left;
}

void dlc_budget_take(dlc_budget *budget, size_t size_bytes)
{
    if (!budget)
        return;
    if (budget->most_bytes && size_bytes > budget->most_bytes - (budget->bytes < budget->most_bytes ? budget->bytes
                                                                                                    : budget->most_bytes))
        dlc_out_of_memory(size_bytes, DLC_OUT_OF_BUDGET);
    if (budget == in_use && budget->deadline > 0 && dlc_budget_clock() > budget->deadline)
        dlc_out_of_memory(size_bytes, DLC_OUT_OF_TIME);
    budget->bytes += size_bytes;
}

void dlc_budget_give(dlc_budget *budget, size_t size_bytes)
{
    if (budget)
        budget->bytes -= size_bytes;
}

/* --- files in memory --- */

struct dlc_file_span {
    const void *bytes;
    size_t size_bytes;
    dlc_file_span *next, **link; /* link: what points here */
};

dlc_file_span *dlc_budget_span(const void *bytes, size_t size_bytes)
{
    dlc_file_span *span = in_use && size_bytes ? malloc(sizeof *span) : NULL;
    if (!span)
        return NULL;
    *span = (dlc_file_span){bytes, size_bytes, in_use->spans, &in_use->spans};
    if (span->next)
        span->next->link = &span->next;
    in_use->spans = span;
    return span;
}

void dlc_budget_drop_span(dlc_file_span *span)
{
    if (!span)
        return;
    *span->link = span->next;
    if (span->next)
        span->next->link = span->link;
    free(span);
}

void dlc_budget_read(size_t size_bytes)
{
    const size_t most = (size_t)32 << 20;
    if (!in_use || (in_use->read_bytes += size_bytes) < most)
        return;
    in_use->read_bytes = 0;
    for (const dlc_file_span *span = in_use->spans; span; span = span->next)
        madvise((void *)(uintptr_t)span->bytes, span->size_bytes, MADV_DONTNEED);
}

/* --- the machine --- */

/* The number in a file; UINT64_MAX: none, as "max" of a cgroup. */
static uint64_t number_in(const char *path)
{
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    int is_number = fgets(text, sizeof text, file) && text[0] >= '0' && text[0] <= '9';
    fclose(file);
    return is_number ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Of the system, or of the container if that has less. */
static uint64_t machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (int i = 0; i < 2; i++) {
        uint64_t limit = number_in(limits[i]);
        bytes = limit < bytes ? limit : bytes;
    }
    return bytes;
}

uint64_t dlc_memory_most(void)
{
    return machine_bytes() / 4 * 3;
}

uint64_t dlc_memory_budget(uint64_t file_bytes)
{
    enum { PER_BYTE = 64 };
    const uint64_t least = (uint64_t)512 << 20, machine = dlc_memory_most();
    uint64_t bytes = file_bytes < (UINT64_MAX - least) / PER_BYTE ? least + PER_BYTE * file_bytes : UINT64_MAX;
    return bytes < machine ? bytes : machine;
}

void dlc_budget_limit_process(uint64_t most_bytes)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const uint64_t least = (uint64_t)2 << 30;
    unsigned long long pages = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) == 1 && getrlimit(RLIMIT_DATA, &limit) == 0) {
        uint64_t bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE) + (most_bytes > least ? most_bytes : least);
        if (bytes < limit.rlim_cur)
            limit.rlim_cur = bytes;
        setrlimit(RLIMIT_DATA, &limit);
    }
    if (file)
        fclose(file);
#else
    (void)most_bytes; /* their shadows count as data */
#endif
}

/*
 * What a profiled run took, step by step and thread by thread, beside what this processor could do: for `dlc run`, `dlc bench`
 * and `dlc report`. Times are microseconds since the run began.
 */
#ifndef DLC_CLI_PROFILE_H
#define DLC_CLI_PROFILE_H

#include "cli/cli.h"
#include "cli/tensors.h"

#include "base/str.h"
#include "base/vec.h"

/* A rate of the machine, all its threads together. */
typedef struct {
    const char *name; /* fma, vnni, …; memory, L3, L2, L1 */
    double per_us;    /* operations or bytes */
} dlc_roof;
typedef dlc_vec(dlc_roof) dlc_roof_list;
typedef struct {
    dlc_roof_list peaks, levels; /* of arithmetic; of memory, slowest first */
} dlc_roofs;

/* What holds a step back, and how much of that rate it reaches. */
typedef struct {
    const char *roof; /* NULL: not known */
    double share;
} dlc_bound;

/* Measures one thread of this processor, in some seconds, and reckons with so many of them, at most as many as there are. Where that
 * cannot be done a note says so, and there are no roofs. */
void dlc_roofs_measure(dlc_cli *cli, uint32_t nthreads, dlc_roofs *roofs);
/*
 * A step is bound by the larger of its arithmetic over its peak and its bytes over a level of memory. Which level that is is not
 * recorded, so the lowest is taken that it does not exceed: a step that runs faster than memory gives read a cache; of the peaks
 * likewise where the step names none (""). Winograd leaves products out, so its share of a peak may be above 1.
 */
dlc_bound dlc_roofs_bound(const dlc_roofs *roofs, const char *peak, double us, double flops, double bytes);

typedef struct {
    double busy_us, end_us;
} dlc_lane;

typedef struct {
    const char *name, *kernel, *peak;
    int64_t units, runs;               /* runs: more than 1 in a loop, of which the rest are sums */
    double begin_us, us, flops, bytes; /* flops and bytes: estimates of the compiler */
    dlc_lane *lanes;                   /* by thread; all 0 of a step on a device */
} dlc_timed_step;

typedef struct {
    const char *name; /* of the strategy; NULL: there is one */
    uint32_t nthreads, nsteps, nruns;
    int is_host; /* 0: the steps ran on a device */
    dlc_timed_step *steps;
    double total_us;
} dlc_profile;

/* The last run of a context with `profile`. Memory is of cli->arena. */
dlc_profile dlc_profile_read(dlc_cli *cli, const dlcrt_executable *executable, const dlcrt_context *context);
/* Runs for about so many seconds, then keeps the median run. The first run warms the caches and does not count. */
DLC_NODISCARD dlc_status dlc_profile_runs(dlc_cli *cli, const dlcrt_executable *executable, dlcrt_context *context,
                                          const dlc_tensors *inputs, const dlc_tensors *outputs, double seconds,
                                          dlc_profile *profile);

/* A table: slowest step first. */
void dlc_profile_show(dlc_cli *cli, const dlc_profile *profile, const dlc_roofs *roofs);
/* The same as rows in the order of the steps. */
cJSON *dlc_profile_json(const dlc_profile *profile, const dlc_roofs *roofs);
/* Trace events, as Perfetto and chrome://tracing read them: a process for each profile, a lane for each thread. */
DLC_NODISCARD dlc_status dlc_profile_write(dlc_cli *cli, const char *path, const dlc_profile *list, uint32_t n);

#endif

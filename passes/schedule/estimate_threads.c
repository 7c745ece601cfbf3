/*
 * How threads share a kernel's units (runtime/threads.c): each has a part of them, in order, cut into a few chunks, and who is done takes what
 * is left of another's. Units at an axis's end are smaller, a few are not dealt evenly, and what units begin with alike is made by each thread
 * that comes to them. The same is done here with units' sizes for time. (Zen 4, two threads, 3136 x 144 by blocks of 16 columns, which are
 * nine: 104 us where rows are dealt in 93.)
 */
#include "passes/schedule/choose.h"

#include <math.h>

#include "dlc/deal.h"

enum {
    MOST_THREADS = 64, /* beyond, or beyond so many parallel loops, units are equal and dealt evenly */
    MOST_PARS = 8
};

typedef struct {
    double extent, tile, units, points; /* units, points: of all loops inside of it */
} par;

typedef struct {
    par pars[MOST_PARS + 1];
    uint32_t npars;
    double alike; /* units that begin alike */
} units;

typedef struct {
    double share;   /* of the kernel's work that it did */
    int64_t filled; /* the units that begin alike for which it last made what they begin with, or -1 */
} thread;

/* Points of units before `unit`, in loops from n on. */
static double points_before(const units *all, uint32_t n, double unit)
{
    if (n == all->npars)
        return unit;
    const par *p = &all->pars[n];
    double i = floor(unit / p->units), from = i * p->tile, rest = p->extent - from;
    if (rest <= 0)
        return p->extent * p->points;
    return from * p->points + (rest < p->tile ? rest : p->tile) * points_before(all, n + 1, unit - i * p->units);
}

/* False: sizes are not known. */
static int find_units(const dlc_schedule *schedule, units *all)
{
    uint32_t n = schedule->kept.first;
    double nunits = 1, points = 1;
    int64_t extent;
    *all = (units){.npars = n, .alike = 1};
    if (!n || n > MOST_PARS)
        return 0;
    while (n-- > 0) {
        const dlc_schedule_node *node = &schedule->nodes.data[n];
        if (!dlc_expr_is_int(schedule->kernel->pool, schedule->kernel->axes.data[node->axis].extent, &extent) || extent < 1)
            return 0;
        all->pars[n] = (par){(double)extent, (double)node->tile, nunits, points};
        nunits *= ceil((double)extent / (double)node->tile);
        points *= (double)extent;
        if (n + schedule->kept.npars >= schedule->kept.first)
            all->alike = nunits;
    }
    return 1;
}

/* The thread takes units [from, to): its points, and how often it makes what they begin with. */
static void take(const units *all, thread *t, int64_t from, int64_t to, double points, double kept)
{
    int64_t first = (int64_t)floor((double)from / all->alike), last = (int64_t)floor((double)(to - 1) / all->alike);
    double fills = (double)(last - first + (first != t->filled)), nunits = all->pars[0].units * ceil(all->pars[0].extent / all->pars[0].tile);
    t->share += (1 - kept) * (points_before(all, 0, (double)to) - points_before(all, 0, (double)from)) / points;
    t->share += kept * fills / (nunits / all->alike);
    t->filled = last;
}

typedef struct {
    int64_t begin, end, next, nchunks;
} part;

/* The part whose chunk the thread takes next: its own first; -1: none is left. */
static int64_t part_of(const part *parts, int64_t nparts, int64_t own, int64_t nthreads)
{
    for (int64_t i = 0; i < nthreads; i++) {
        int64_t p = (own + i) % nthreads;
        if (p < nparts && parts[p].next < parts[p].nchunks)
            return p;
    }
    return -1;
}

static int64_t least_busy(const thread *threads, int64_t n)
{
    int64_t least = 0;
    for (int64_t i = 1; i < n; i++)
        least = threads[i].share < threads[least].share ? i : least;
    return least;
}

double dlc_estimate_share(const dlc_estimate *estimate, const dlc_schedule *schedule, int64_t nthreads)
{
    int64_t grain = schedule->grain > 1 ? schedule->grain : 1, nunits = (int64_t)estimate->units, nparts = dlc_deal_parts(nunits, grain, nthreads);
    double kept = estimate->cycles > 0 ? estimate->kept_cycles / estimate->cycles : 0, busiest = 0;
    thread threads[MOST_THREADS];
    part parts[MOST_THREADS];
    units all;
    if (nparts < 2 || nparts > MOST_THREADS || nthreads > MOST_THREADS || !find_units(schedule, &all))
        return 1 / (double)nparts;
    for (int64_t i = 0; i < nparts; i++)
        parts[i] = (part){dlc_deal_bound(0, nunits, i, nparts), dlc_deal_bound(0, nunits, i + 1, nparts), 0, dlc_deal_chunks(nunits, nparts, grain)};
    for (int64_t i = 0; i < nthreads; i++)
        threads[i] = (thread){0, -1};
    for (int64_t t, p; t = least_busy(threads, nthreads), (p = part_of(parts, nparts, t, nthreads)) >= 0; parts[p].next++) {
        int64_t n = parts[p].end - parts[p].begin, from = dlc_deal_chunk(n, parts[p].next, parts[p].nchunks);
        int64_t to = dlc_deal_chunk(n, parts[p].next + 1, parts[p].nchunks);
        take(&all, &threads[t], parts[p].begin + from, parts[p].begin + to, all.pars[0].extent * all.pars[0].points, kept);
    }
    for (int64_t i = 0; i < nthreads; i++)
        busiest = threads[i].share > busiest ? threads[i].share : busiest;
    return busiest;
}

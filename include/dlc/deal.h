/*
 * How threads share a job's units: each has a part of them, in order, a part is taken in a few chunks, and who has none left takes those of
 * others. The runtime deals so, and the compiler estimates by it what that takes.
 */
#ifndef DLC_DEAL_H
#define DLC_DEAL_H

#include <stdint.h>

enum { DLC_CHUNKS = 4, DLC_MOST_CHUNKS = 6 };

/* Bound i of n equal shares of [begin, end). */
static inline int64_t dlc_deal_bound(int64_t begin, int64_t end, int64_t i, int64_t n)
{
    int64_t units = end - begin, whole = units / n, rest = units % n;
    return begin + whole * i + (i < rest ? i : rest);
}

/* Parts of a job: each is worth a thread, or it is the only one. */
static inline int64_t dlc_deal_parts(int64_t units, int64_t grain, int64_t nthreads)
{
    int64_t n = units / grain < nthreads ? units / grain : nthreads;
    return n < 1 ? 1 : n;
}

/* Chunks of each of so many parts. */
static inline int64_t dlc_deal_chunks(int64_t units, int64_t nparts, int64_t grain)
{
    int64_t n = dlc_deal_parts(units / nparts, grain, DLC_CHUNKS);
    while (n >= DLC_CHUNKS && n < DLC_MOST_CHUNKS && units / nparts / grain >= DLC_CHUNKS << (n - DLC_CHUNKS + 1))
        n++;
    return n;
}

/* Bound i of the n chunks of a part, from where the first one is taken. Units may differ in their work, and then threads end apart by up to a
 * chunk: beyond DLC_CHUNKS the last one is halved, so the last ones taken are small. */
static inline int64_t dlc_deal_chunk(int64_t units, int64_t i, int64_t n)
{
    if (n <= DLC_CHUNKS || i < DLC_CHUNKS)
        return dlc_deal_bound(0, units, i, n < DLC_CHUNKS ? n : (int64_t)DLC_CHUNKS);
    return i == n ? units : units - units / (DLC_CHUNKS << (i - DLC_CHUNKS + 1));
}

#endif

/* Choices of a random test: from a seed, or from the bytes of a fuzzer until they end, and then always the first. */
#ifndef DLC_TESTS_DIFFER_DRAWS_H
#define DLC_TESTS_DIFFER_DRAWS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *bytes; /* NULL: a seed's */
    size_t nbytes, at;
    uint64_t state;
} draws;

static inline uint64_t draws_bits(draws *d) /* splitmix64 */
{
    uint64_t bits = d->state += 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

/* 0 to below - 1 */
static inline uint32_t one_of(draws *d, uint32_t below)
{
    if (!d->bytes)
        return (uint32_t)(draws_bits(d) >> 32) % below;
    return d->at < d->nbytes ? d->bytes[d->at++] % below : 0;
}

static inline int chance(draws *d, uint32_t percent)
{
    return one_of(d, 100) < percent;
}

#endif

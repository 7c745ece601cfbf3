/* Numbers for random tests: splitmix64, the same in every run, good for any seed. A test that has seeds assigns random_state. */
#ifndef DLC_TESTS_RANDOM_H
#define DLC_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state;

static inline uint64_t draw_bits(void)
{
    uint64_t bits = random_state += 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static inline uint32_t draw(uint32_t below)
{
    return (uint32_t)(draw_bits() >> 32) % below;
}

#endif

/* What the processor this runs on can do, as bits of cpu.def. The compiler asks for `native`, the
 * runtime before it runs code. */
#ifndef DLC_CPU_H
#define DLC_CPU_H

#include <stdint.h>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

enum { /* rows of cpu.def belong to one of them */
       DLC_CPU_X86,
       DLC_CPU_ARM
};

#if defined(__x86_64__)
#define DLC_CPU_HAS_X86(text, hwcap) __builtin_cpu_supports(text)
#define DLC_CPU_HAS_ARM(text, hwcap) 0
#elif defined(__aarch64__) && defined(__linux__)
/* hwcap: 100 * (0: AT_HWCAP, 1: AT_HWCAP2) + bit, which Linux promises to keep */
#define DLC_CPU_HAS_X86(text, hwcap) 0
#define DLC_CPU_HAS_ARM(text, hwcap)                                                               \
    (getauxval((hwcap) < 100 ? AT_HWCAP : AT_HWCAP2) >> (hwcap) % 100 & 1)
#else
#define DLC_CPU_HAS_X86(text, hwcap) 0
#define DLC_CPU_HAS_ARM(text, hwcap) 0
#endif

static inline uint64_t dlc_cpu_detect(void)
{
    uint64_t bits = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
#define DLC_CPU(number, arch, level, hwcap, text)                                                  \
    if (DLC_CPU_HAS_##arch(text, hwcap))                                                           \
        bits |= UINT64_C(1) << (number);
#include "dlc/cpu.def"
#undef DLC_CPU
    return bits;
}

#endif

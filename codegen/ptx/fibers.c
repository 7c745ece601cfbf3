/*
 * The emulation of kernels when they run: a launch, its threads as fibers, and what they do together. A barrier or a shuffle is
 * a rendezvous: a thread that comes there goes back to the scheduler, and when all of its warp (or block) are there, at the same
 * line, they go on. A thread that ended, or waits elsewhere, is divergence: the process ends with a message. Kernels that never
 * meet run thread by thread.
 *
 * Its object is embedded in the compiler and linked into what is emulated. Nothing of a C library is used, so it links like any
 * kernels; its functions are weak, as several plans of one executable each bring them. For tests: DLC_SEED other than 0 permutes
 * the order in which threads, warps and blocks run; the address and the thread sanitizer know the fibers (barriers order memory,
 * shuffles do not, as on the GPU).
 */
#ifdef __x86_64__
#include "codegen/ptx/emulate.h"

#ifndef DLC_SEED
#define DLC_SEED 0
#endif
#ifdef __has_feature
#define DLC_HAS_FEATURE(name) __has_feature(name)
#else
#define DLC_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || DLC_HAS_FEATURE(address_sanitizer)
#define DLC_ASAN 1
void __sanitizer_start_switch_fiber(void **save, const void *bottom, unsigned long size);
void __sanitizer_finish_switch_fiber(void *saved, const void **bottom, unsigned long *size);
void __asan_unpoison_memory_region(void const volatile *address, unsigned long size);
#endif
#if defined(__SANITIZE_THREAD__) || DLC_HAS_FEATURE(thread_sanitizer)
#define DLC_TSAN 1
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags); /* 1: orders nothing */
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define DLC_UNCHECKED __attribute__((no_sanitize("thread")))
#else
#define DLC_UNCHECKED
#endif
#ifdef __clang__
#define DLC_OPAQUE noinline
#else
#define DLC_OPAQUE noipa
#endif

enum { DLC_LANES = 32, DLC_MOST_THREADS = 1024, DLC_PAGE = 4096 };
#if defined(DLC_ASAN) || defined(DLC_TSAN)
enum { DLC_STACK = 1 << 20 };
#else
enum { DLC_STACK = 1 << 17 };
#endif

/* --- the system --- */

static long dlc_system(long number, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = -1, r9 __asm__("r9") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Compilers call these where they like. */
__attribute__((weak, visibility("hidden"))) void *memset(void *to, int byte, unsigned long n)
{
    void *at = to;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(byte) : "memory");
    return to;
}
__attribute__((weak, visibility("hidden"))) void *memcpy(void *to, const void *from, unsigned long n)
{
    void *at = to;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n)::"memory");
    return to;
}

static void dlc_tell(const char *text)
{
    long n = 0;
    while (text[n])
        n++;
    dlc_system(1, 2, (long)text, n, 0); /* write to standard error */
}

static void dlc_tell_number(long long number)
{
    char digits[24], *at = digits + sizeof digits - 1;
    *at = 0;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    dlc_tell(at);
}

static void dlc_stop(void)
{
    dlc_tell("\n");
    dlc_system(62, dlc_system(39, 0, 0, 0, 0), 6, 0, 0); /* kill(getpid(), SIGABRT) */
    __builtin_trap();
}

/* --- divergence --- */

static void dlc_tell_thread(const dlc_thread *thread)
{
    static const char *const places[] = {" runs", " ended", " waits at a warp's barrier", " waits at a block's barrier",
                                         " waits at a shuffle"};
    dlc_tell("thread ");
    dlc_tell_number(thread->number);
    dlc_tell(places[thread->place]);
    if (thread->place > DLC_ENDED) {
        dlc_tell(" of line ");
        dlc_tell_number(thread->line);
    }
}

static void dlc_diverged(const dlc_thread *a, const dlc_thread *b)
{
    dlc_tell("dlc: emulated kernel ");
    dlc_tell(a->block->kernel->name);
    dlc_tell(", block ");
    dlc_tell_number(a->block->number);
    dlc_tell(": threads diverge: ");
    dlc_tell_thread(a);
    dlc_tell(", ");
    dlc_tell_thread(b);
    dlc_stop();
}

/* --- switching --- */

/* Saves the callee's registers on this stack, its pointer in *from, and goes on where `to` was saved. */
__attribute__((naked, noinline, DLC_OPAQUE)) static void dlc_switch(void **from, void *to)
{
    __asm__("push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15;"
            "mov %rsp, (%rdi); mov %rsi, %rsp;"
            "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret");
}

/* Back to the scheduler until the others are there too. */
DLC_UNCHECKED static void dlc_wait(dlc_thread *here)
{
    dlc_block *block = here->block;
#ifdef DLC_TSAN
    __tsan_switch_to_fiber(block->fiber, 1);
#endif
#ifdef DLC_ASAN
    __sanitizer_start_switch_fiber(&here->fake, block->bottom, block->size);
#endif
    dlc_switch(&here->sp, block->sp);
#ifdef DLC_ASAN
    __sanitizer_finish_switch_fiber(here->fake, 0, 0);
#endif
}

/* A fiber lives as long as its launch: one round per block. */
DLC_UNCHECKED __attribute__((noinline, DLC_OPAQUE, noreturn, used)) static void dlc_fiber(dlc_thread *here)
{
#ifdef DLC_ASAN
    __sanitizer_finish_switch_fiber(0, &here->block->bottom, &here->block->size);
#endif
    for (;;) {
#ifdef DLC_TSAN
        __tsan_acquire(&here->block->begins);
#endif
        here->block->kernel->run(here);
#ifdef DLC_TSAN
        __tsan_release(&here->block->ends);
#endif
        here->place = DLC_ENDED;
        dlc_wait(here);
    }
}

__attribute__((naked, noinline, DLC_OPAQUE)) static void dlc_fiber_start(void)
{
    __asm__("mov %%rbx, %%rdi; call %P0; ud2" ::"i"(dlc_fiber));
}

DLC_UNCHECKED static void dlc_resume(dlc_thread *thread)
{
    dlc_block *block = thread->block;
    thread->place = DLC_RUNS;
#ifdef DLC_TSAN
    __tsan_switch_to_fiber(thread->fiber, 1);
#endif
#ifdef DLC_ASAN
    __sanitizer_start_switch_fiber(&block->fake, thread->stack, DLC_STACK);
#endif
    dlc_switch(&block->sp, thread->sp);
#ifdef DLC_ASAN
    __sanitizer_finish_switch_fiber(block->fake, 0, 0);
#endif
}

/* --- meeting --- */

__attribute__((weak)) DLC_UNCHECKED void dlc_barrier(dlc_thread *here, dlc_place place, int line)
{
#ifdef DLC_TSAN
    /* Two in turn: who comes late out of one barrier must not learn what others did before they came to the next. */
    int is_block = place == DLC_AT_BLOCK;
    dlc_u64 *meetings = is_block ? here->block->meetings : here[-(here->number % DLC_LANES)].meetings;
    dlc_u64 *meeting = &meetings[here->nmeetings[is_block]++ & 1];
    __tsan_release(meeting);
#endif
    here->place = place;
    here->line = line;
    dlc_wait(here);
#ifdef DLC_TSAN
    __tsan_acquire(meeting);
#endif
}

__attribute__((weak)) DLC_UNCHECKED dlc_u32 dlc_exchange(dlc_thread *here, dlc_u32 value, int lane, int line)
{
    here->place = DLC_AT_SHUFFLE;
    here->line = line;
    here->value = value;
    here->from = lane & (DLC_LANES - 1);
    dlc_wait(here);
    return here->result;
}

/* --- the scheduler --- */

DLC_UNCHECKED static dlc_u64 dlc_draw(dlc_block *block, dlc_u64 n)
{
    block->random ^= block->random << 13;
    block->random ^= block->random >> 7;
    block->random ^= block->random << 17;
    return block->random % n;
}

DLC_UNCHECKED static void dlc_order(dlc_block *block, int *order, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n; DLC_SEED && i > 1; i--) {
        int other = (int)dlc_draw(block, (dlc_u64)i), kept = order[other];
        order[other] = order[i - 1];
        order[i - 1] = kept;
    }
}

DLC_UNCHECKED static void dlc_compare(const dlc_thread *a, const dlc_thread *b)
{
    if (a->place != b->place || (a->place != DLC_ENDED && a->line != b->line))
        dlc_diverged(a, b);
}

/* Runs a warp until its threads ended or wait for the block. */
DLC_UNCHECKED static void dlc_run_warp(dlc_thread *warp)
{
    int order[DLC_LANES];
    do {
        dlc_order(warp->block, order, DLC_LANES);
        for (int i = 0; i < DLC_LANES; i++)
            dlc_resume(&warp[order[i]]);
        for (int i = 1; i < DLC_LANES; i++)
            dlc_compare(&warp[0], &warp[i]);
        for (int i = 0; warp->place == DLC_AT_SHUFFLE && i < DLC_LANES; i++)
            warp[i].result = warp[warp[i].from].value;
    } while (warp->place == DLC_AT_SHUFFLE || warp->place == DLC_AT_WARP);
}

DLC_UNCHECKED static void dlc_run_block(dlc_block *block)
{
    int order[DLC_MOST_THREADS / DLC_LANES], nwarps = block->kernel->threads / DLC_LANES;
    do {
        dlc_order(block, order, nwarps);
        for (int w = 0; w < nwarps; w++)
            dlc_run_warp(block->threads + order[w] * DLC_LANES);
        for (int w = 1; w < nwarps; w++)
            dlc_compare(&block->threads[0], &block->threads[w * DLC_LANES]);
    } while (block->threads->place != DLC_ENDED);
}

/* Without fibers. */
DLC_UNCHECKED static void dlc_run_threads(dlc_block *block)
{
    dlc_thread here = {.block = block};
    for (int t = 0; t < block->kernel->threads; t++) {
        here.number = DLC_SEED ? block->kernel->threads - 1 - t : t;
        block->kernel->run(&here);
    }
}

/* --- a launch --- */

DLC_UNCHECKED static void dlc_make_fibers(dlc_block *block, unsigned char *memory)
{
    for (int t = 0; t < block->kernel->threads; t++) {
        dlc_thread *thread = &block->threads[t];
        thread->stack = memory + (long)t * (DLC_STACK + DLC_PAGE) + DLC_PAGE;
        dlc_system(10, (long)thread->stack, DLC_STACK, 3, 0); /* mprotect: read and write; the page below stays a guard */
        void **sp = (void **)(thread->stack + DLC_STACK) - 2;
        *--sp = (void *)dlc_fiber_start;
        *--sp = 0;      /* rbp */
        *--sp = thread; /* rbx */
        thread->sp = sp - 4;
        thread->block = block;
        thread->number = t;
#ifdef DLC_ASAN
        __asan_unpoison_memory_region(thread->stack, DLC_STACK);
#endif
#ifdef DLC_TSAN
        thread->fiber = __tsan_create_fiber(0);
#endif
    }
}

DLC_UNCHECKED static void dlc_run_blocks(dlc_block *block, void (*run)(dlc_block *))
{
    int per = block->kernel->units_per_block;
    long long n = (block->units - block->first + per - 1) / per;
    for (long long i = 0; i < n; i++) {
        block->number = DLC_SEED ? n - 1 - (i + DLC_SEED) % n : i;
#ifdef DLC_TSAN
        __tsan_release(&block->begins); /* blocks share this shared memory: one after the other */
#endif
        run(block);
#ifdef DLC_TSAN
        __tsan_acquire(&block->ends);
#endif
    }
}

DLC_UNCHECKED static void dlc_run_fibers(dlc_block *block)
{
    dlc_thread threads[block->kernel->threads];
    long size = (long)block->kernel->threads * (DLC_STACK + DLC_PAGE);
    long memory = dlc_system(9, 0, size, 0, 0x4022); /* mmap: private, anonymous, nothing reserved, no access yet */
    if (memory < 0 && memory > -DLC_PAGE) {
        dlc_tell("dlc: no memory for the stacks of an emulated kernel's threads");
        dlc_stop();
    }
    __builtin_memset(threads, 0, sizeof threads);
    block->threads = threads;
#ifdef DLC_TSAN
    block->fiber = __tsan_get_current_fiber();
#endif
    dlc_make_fibers(block, (unsigned char *)memory);
    dlc_run_blocks(block, dlc_run_block);
#ifdef DLC_TSAN
    for (int t = 0; t < block->kernel->threads; t++)
        __tsan_destroy_fiber(threads[t].fiber);
#endif
    dlc_system(11, memory, size, 0, 0); /* munmap */
}

__attribute__((weak)) DLC_UNCHECKED void dlc_launch(const dlc_launched *kernel, const dlc_kernel_args *args, long begin, long end)
{
    dlc_block block = {.kernel = kernel, .args = args, .first = begin, .units = end,
                       .random = 0x9e3779b97f4a7c15ull * (2 * (dlc_u64)DLC_SEED + 1)};
    if (begin >= end)
        return;
    if (kernel->meets)
        dlc_run_fibers(&block);
    else
        dlc_run_blocks(&block, dlc_run_threads);
}

/* --- matrices that a warp holds --- */

/* Row r of matrix i lies where lane 8 i + r says; turned over, lane l has of column l / 4. */
__attribute__((weak)) dlc_matrices dlc_matrices_of(dlc_thread *here, const void *row, int is_turned, int line)
{
    dlc_matrices m;
    dlc_u64 at = (dlc_u64)row;
    int lane = here->number % DLC_LANES, side = 8;
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            int r = is_turned ? 2 * (lane % 4) + half : lane / 4, c = is_turned ? lane / 4 : 2 * (lane % 4) + half;
            dlc_u64 low = dlc_exchange(here, (dlc_u32)at, side * i + r, line);
            dlc_u64 high = dlc_exchange(here, (dlc_u32)(at >> 32), side * i + r, line);
            dlc_u32 element = ((const dlc_u16 *)(low | high << 32))[c];
            m.v[i] = half ? m.v[i] | element << 16 : element;
        }
    return m;
}

/* What lane l of the warp shows. */
#define dlc_shown(l) (here[(l) - here->number % DLC_LANES].shown)

static float dlc_element_of(dlc_u32 bits, int type)
{
    union { dlc_u32 u; float f; } wide = {type == DLC_OF_TF32 ? bits & 0xffffe000u : bits << 16};
    return type == DLC_OF_S8 ? (float)(signed char)bits : type == DLC_OF_U8 ? (float)(dlc_u8)bits
           : type == DLC_OF_F16 ? dlc_f16_float((dlc_u16)bits) : wide.f;
}

/* Element k of the row or column that lane l has in a register of each half of K. */
static float dlc_factor_of(dlc_thread *here, int lane, int first, int behind, int k, int type)
{
    int n = type == DLC_OF_TF32 ? 1 : type >= DLC_OF_S8 ? 4 : 2, half = 4 * n; /* elements of a register, of half of K */
    dlc_u32 word = dlc_shown(lane * 4 + k % half / n)[k < half ? first : behind];
    return dlc_element_of(word >> (n == 1 ? 0 : 32 / n * (k % n)), type);
}

/* Sums go on one after the other, K ascending; those of bytes are exact. */
__attribute__((weak, target("fma"))) DLC_UNCHECKED void dlc_multiply(dlc_thread *here, void **sums, const dlc_u32 *own, int a, int b, int line)
{
    int lane = here->number % DLC_LANES, depth = a == DLC_OF_TF32 ? 8 : a >= DLC_OF_S8 ? 32 : 16;
    here->shown = own;
    dlc_exchange(here, 0, 0, line);
    for (int i = 0; i < 4; i++) {
        int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
        for (int k = 0; k < depth; k++) {
            float left = dlc_factor_of(here, row % 8, row / 8, row / 8 + 2, k, a), right = dlc_factor_of(here, column, 4, 5, k, b);
            union { dlc_u32 u; float f; } sum, nan = {0x7fffffffu};
            if (a >= DLC_OF_S8) {
                *(dlc_u32 *)sums[i] += (dlc_u32)(int)(left * right);
                continue;
            }
            sum.f = fmaf(left, right, *(float *)sums[i]);
            *(float *)sums[i] = sum.f != sum.f ? nan.f : sum.f;
        }
    }
    dlc_exchange(here, 0, 0, line); /* others may still look */
}
#endif

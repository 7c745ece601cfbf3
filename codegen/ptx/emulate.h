/*
 * What CUDA provides, for generated kernels compiled as C on x86-64 Linux; embedded like prelude.cuh and put before it. Threads
 * of a block are fibers on guarded stacks of one system thread; fibers.c launches and switches them, and is compiled once, with
 * dlc, so that a model's kernels are all that the C compiler has to do for it.
 */
typedef unsigned char dlc_u8;
typedef unsigned short dlc_u16;
typedef unsigned int dlc_u32;
typedef unsigned long long dlc_u64;

/* The CPU's kernel ABI (dlc/abi.h). */
typedef struct {
    void *const *buffers;
    const long *symbols;
    void *scratch;
    long *fault;
} dlc_kernel_args;

typedef struct dlc_block dlc_block;
typedef enum { DLC_RUNS, DLC_ENDED, DLC_AT_WARP, DLC_AT_BLOCK, DLC_AT_SHUFFLE } dlc_place;
typedef struct {
    dlc_block *block;
    void *sp;
    unsigned char *stack;
    int number, place, line; /* where it waits: dlc_place and the line of the source */
    int from;                /* SHUFFLE: lane asked for */
    dlc_u32 value, result;
    const dlc_u32 *shown; /* registers that others of the warp look at */
    void *fake, *fiber; /* of the sanitizers */
    dlc_u64 nmeetings[2], meetings[2]; /* barriers passed: warp's, block's; what the thread sanitizer takes for a warp's */
} dlc_thread;

typedef struct {
    void (*run)(dlc_thread *here);
    const char *name;
    int threads, units_per_block, meets; /* meets: has barriers or shuffles */
} dlc_launched;

struct dlc_block {
    const dlc_launched *kernel;
    const dlc_kernel_args *args;
    long long number, first, units;
    dlc_thread *threads;
    void *sp; /* of the scheduler */
    void *fake, *fiber;
    const void *bottom; /* of the scheduler's stack */
    unsigned long size;
    dlc_u64 random;
    dlc_u64 begins, ends, meetings[2]; /* addresses that mean something to the thread sanitizer */
};

/* --- fibers.c --- */

#define DLC_HIDDEN __attribute__((visibility("hidden")))
DLC_HIDDEN void dlc_launch(const dlc_launched *kernel, const dlc_kernel_args *args, long begin, long end);
/* `line`: where in the source, so that threads that wait at different places are seen. */
DLC_HIDDEN void dlc_barrier(dlc_thread *here, dlc_place place, int line);
DLC_HIDDEN dlc_u32 dlc_exchange(dlc_thread *here, dlc_u32 value, int lane, int line);

/* --- what kernels are written in --- */

#define DLC_KERNEL static void
#define DLC_HERE dlc_thread *here,
#define DLC_RESTRICT __restrict
#define DLC_INLINE static inline __attribute__((always_inline, unused))
/* Neighbours at any address: a caller's memory on this side need not be aligned as a GPU's is. */
#define DLC_ALIGNED(bytes)
#define DLC_READ(type, from)                                                                       \
    __extension__({                                                                                \
        type value;                                                                                \
        __builtin_memcpy(&value, from, sizeof value);                                              \
        value;                                                                                     \
    })
#define DLC_WRITE(type, to, value) __builtin_memcpy(to, &(value), sizeof(type))
#define DLC_SHARED(name) unsigned char *const name = here->block->args->scratch
#define DLC_THREAD (here->number)
#define DLC_BLOCK (here->block->number)
#define dlc_block_sync() dlc_barrier(here, DLC_AT_BLOCK, __LINE__)
#define dlc_warp_sync() dlc_barrier(here, DLC_AT_WARP, __LINE__)
#define dlc_shuffle_u32(value, lane) dlc_exchange(here, value, lane, __LINE__)
#define fmaf __builtin_fmaf
#define fma __builtin_fma
#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt

/* One instruction: compilers may call a C library instead. */
#define DLC_ROUNDING(name, mode)                                                                    \
    DLC_INLINE float dlc_##name##f(float value)                                                     \
    {                                                                                               \
        float result;                                                                               \
        __asm__("vroundss %2, %1, %1, %0" : "=x"(result) : "x"(value), "i"(mode));                  \
        return result;                                                                              \
    }                                                                                               \
    DLC_INLINE double dlc_##name(double value)                                                      \
    {                                                                                               \
        double result;                                                                              \
        __asm__("vroundsd %2, %1, %1, %0" : "=x"(result) : "x"(value), "i"(mode));                  \
        return result;                                                                              \
    }
DLC_ROUNDING(rint, 8)
DLC_ROUNDING(floor, 9)
DLC_ROUNDING(ceil, 10)
DLC_ROUNDING(trunc, 11)
#define rintf dlc_rintf
#define rint dlc_rint
#define floorf dlc_floorf
#define floor dlc_floor
#define ceilf dlc_ceilf
#define ceil dlc_ceil
#define truncf dlc_truncf
#define trunc dlc_trunc

/* To nearest, ties to even; any NaN becomes the one that the GPU's conversion gives. */
DLC_INLINE dlc_u16 dlc_f16_bits(float value)
{
    union { float f; dlc_u32 u; } both = {value}, shifted;
    dlc_u32 sign = both.u >> 16 & 0x8000u, x = both.u & 0x7fffffffu;
    if (x > 0x7f800000u)
        return 0x7fff;
    if (x >= 0x477ff000u)
        return (dlc_u16)(sign | 0x7c00u);
    if (x >= 0x38800000u)
        return (dlc_u16)(sign | (x - (112u << 23) + 0xfffu + (x >> 13 & 1u)) >> 13);
    both.u = x;
    shifted.f = both.f + 0.5f; /* an ulp of 0.5 is the smallest half */
    return (dlc_u16)(sign | (shifted.u - 0x3f000000u));
}
DLC_INLINE float dlc_f16_float(dlc_u16 bits)
{
    union { float f; dlc_u32 u; } both;
    dlc_u32 sign = (dlc_u32)(bits & 0x8000u) << 16, x = bits & 0x7fffu;
    if (x > 0x7c00u)
        both.u = 0x7fffffffu;
    else if (x == 0x7c00u)
        both.u = sign | 0x7f800000u;
    else if (x >= 0x400u)
        both.u = sign | ((x << 13) + (112u << 23));
    else {
        both.f = (float)x * 0x1p-24f;
        both.u |= sign;
    }
    return both.f;
}

/* --- matrices that a warp holds --- */

typedef struct {
    dlc_u32 v[4];
} dlc_matrices;

/* Row r of matrix i lies where lane 8 i + r says; turned over, lane l has of column l / 4. */
DLC_HIDDEN dlc_matrices dlc_matrices_of(dlc_thread *here, const void *row, int is_turned, int line);
#define dlc_get_matrices(row) dlc_matrices_of(here, row, 0, __LINE__)
#define dlc_turn_matrices(row) dlc_matrices_of(here, row, 1, __LINE__)

/* What the elements of a product are: halves, bf16, tf32, or bytes that have a sign or have none. */
enum { DLC_OF_F16, DLC_OF_BF16, DLC_OF_TF32, DLC_OF_S8, DLC_OF_U8 };

/* Sums go on one after the other, K ascending; those of bytes are exact. */
DLC_HIDDEN void dlc_multiply(dlc_thread *here, void **sums, const dlc_u32 *own, int a, int b, int line);
#define DLC_PRODUCT(c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, a, b) \
    dlc_multiply(here, (void *[]){c0, c1, c2, c3}, (const dlc_u32[]){a0, a1, a2, a3, b0, b1}, DLC_OF_##a, DLC_OF_##b, __LINE__)
#define dlc_mma_f16(...) DLC_PRODUCT(__VA_ARGS__, F16, F16)
#define dlc_mma_bf16(...) DLC_PRODUCT(__VA_ARGS__, BF16, BF16)
#define dlc_mma_tf32(...) DLC_PRODUCT(__VA_ARGS__, TF32, TF32)
#define dlc_mma_s8s8(...) DLC_PRODUCT(__VA_ARGS__, S8, S8)
#define dlc_mma_s8u8(...) DLC_PRODUCT(__VA_ARGS__, S8, U8)
#define dlc_mma_u8s8(...) DLC_PRODUCT(__VA_ARGS__, U8, S8)
#define dlc_mma_u8u8(...) DLC_PRODUCT(__VA_ARGS__, U8, U8)

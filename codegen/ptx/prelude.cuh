/* What generated kernels are written in: CUDA C that is also C. No CUDA header is needed: what CUDA C lacks is PTX in line.
 * Compiled as C, emulate.h provides the same names for threads that are fibers. What meets others is a macro: it names `here`. */
#ifdef __CUDACC__
#define DLC_KERNEL extern "C" __global__ void
#define DLC_INLINE static __device__ __forceinline__
#define DLC_RESTRICT __restrict__ /* no step reads what it writes: buffers are apart */
#define DLC_HERE /* first parameter of a kernel: who runs it, in the emulation */
#define DLC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
typedef unsigned char dlc_u8;
typedef unsigned short dlc_u16;
typedef unsigned int dlc_u32;
typedef unsigned long long dlc_u64;
#define DLC_ALIGNED(bytes) __align__(bytes)
#define DLC_READ(type, from) (*(const type *)(from))
#define DLC_WRITE(type, to, value) (*(type *)(to) = (value))
#define DLC_THREAD ((int)threadIdx.x)
#define DLC_BLOCK ((long long)blockIdx.x)
DLC_INLINE void dlc_block_sync(void)
{
    asm volatile("bar.sync 0;" ::: "memory");
}
DLC_INLINE void dlc_warp_sync(void)
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}
DLC_INLINE dlc_u32 dlc_shuffle_u32(dlc_u32 value, int lane)
{
    dlc_u32 result;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(result) : "r"(value), "r"(lane));
    return result;
}
DLC_INLINE dlc_u16 dlc_f16_bits(float value)
{
    dlc_u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
DLC_INLINE float dlc_f16_float(dlc_u16 bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
/* Matrices that a warp's lanes hold: four of 8 x 8 elements of 16 bits, as they lie or turned over, or of 8 x 4 of 32 bits, 8 x 16 of 8;
 * a product of 16 x 32 bytes by 32 bytes x 8. */
typedef struct {
    dlc_u32 v[4];
} dlc_matrices;
#define DLC_MATRICES(name, how)                                                                                        \
    DLC_INLINE dlc_matrices dlc_##name##_matrices(const void *row)                                                     \
    {                                                                                                                  \
        dlc_matrices m;                                                                                                \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".b16 {%0, %1, %2, %3}, [%4];"                                \
                     : "=r"(m.v[0]), "=r"(m.v[1]), "=r"(m.v[2]), "=r"(m.v[3])                                          \
                     : "l"(row)                                                                                        \
                     : "memory");                                                                                      \
        return m;                                                                                                      \
    }
DLC_MATRICES(get, "")
DLC_MATRICES(turn, ".trans")
#define DLC_PRODUCT(name, sum, letter, form)                                                                           \
    DLC_INLINE void dlc_mma_##name(sum *c0, sum *c1, sum *c2, sum *c3, dlc_u32 a0, dlc_u32 a1, dlc_u32 a2, dlc_u32 a3, \
                                   dlc_u32 b0, dlc_u32 b1)                                                             \
    {                                                                                                                  \
        asm volatile("mma.sync.aligned." form " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"       \
                     : "+" letter(*c0), "+" letter(*c1), "+" letter(*c2), "+" letter(*c3)                              \
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                                          \
    }
DLC_PRODUCT(f16, float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
DLC_PRODUCT(bf16, float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32")
DLC_PRODUCT(tf32, float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
DLC_PRODUCT(s8s8, int, "r", "m16n8k32.row.col.s32.s8.s8.s32")
DLC_PRODUCT(s8u8, int, "r", "m16n8k32.row.col.s32.s8.u8.s32")
DLC_PRODUCT(u8s8, int, "r", "m16n8k32.row.col.s32.u8.s8.s32")
DLC_PRODUCT(u8u8, int, "r", "m16n8k32.row.col.s32.u8.u8.s32")
#endif

/* --- the same text for both --- */
DLC_INLINE float dlc_bits_f32(dlc_u32 bits)
{
    union { dlc_u32 u; float f; } both;
    both.u = bits;
    return both.f;
}
DLC_INLINE dlc_u32 dlc_f32_bits(float value)
{
    union { dlc_u32 u; float f; } both;
    both.f = value;
    return both.u;
}
DLC_INLINE double dlc_bits_f64(dlc_u64 bits)
{
    union { dlc_u64 u; double f; } both;
    both.u = bits;
    return both.f;
}
DLC_INLINE dlc_u64 dlc_f64_bits(double value)
{
    union { dlc_u64 u; double f; } both;
    both.f = value;
    return both.u;
}

DLC_INLINE dlc_u16 dlc_bf16_bits(float value)
{
    dlc_u32 bits = dlc_f32_bits(value);
    if (value != value)
        return (dlc_u16)((bits >> 16) | 0x40u);
    return (dlc_u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
DLC_INLINE float dlc_bf16_float(dlc_u16 bits)
{
    return dlc_bits_f32((dlc_u32)bits << 16);
}
/* f64 to f32 rounded to odd: a further rounding to 16 bits is then the only one that shows. */
DLC_INLINE float dlc_odd_f32(double value)
{
    float near = (float)value;
    dlc_u32 bits = dlc_f32_bits(near);
    if (fabs((double)near) > fabs(value))
        bits -= 1u;
    if ((double)near != value)
        bits |= 1u;
    return dlc_bits_f32(bits);
}

/* Neighbours that one access moves; the address is a multiple of the whole. */
#define DLC_PACK(name, type, n)                                                                                        \
    typedef struct DLC_ALIGNED(n * sizeof(type)) {                                                                     \
        type v[n];                                                                                                     \
    } dlc_##name##x##n;                                                                                                \
    DLC_INLINE dlc_##name##x##n dlc_get_##name##x##n(const type *from)                                                 \
    {                                                                                                                  \
        return DLC_READ(dlc_##name##x##n, from);                                                                       \
    }                                                                                                                  \
    DLC_INLINE dlc_##name##x##n dlc_all_##name##x##n(type value)                                                       \
    {                                                                                                                  \
        dlc_##name##x##n all;                                                                                          \
        for (int i = 0; i < n; i++)                                                                                    \
            all.v[i] = value;                                                                                          \
        return all;                                                                                                    \
    }
#define DLC_PACK2(name, type)                                                                                          \
    DLC_PACK(name, type, 2)                                                                                            \
    DLC_INLINE void dlc_put_##name##x2(type *to, type a, type b)                                                       \
    {                                                                                                                  \
        dlc_##name##x2 all;                                                                                            \
        all.v[0] = a, all.v[1] = b;                                                                                    \
        DLC_WRITE(dlc_##name##x2, to, all);                                                                            \
    }
#define DLC_PACK4(name, type)                                                                                          \
    DLC_PACK(name, type, 4)                                                                                            \
    DLC_INLINE void dlc_put_##name##x4(type *to, type a, type b, type c, type d)                                       \
    {                                                                                                                  \
        dlc_##name##x4 all;                                                                                            \
        all.v[0] = a, all.v[1] = b, all.v[2] = c, all.v[3] = d;                                                        \
        DLC_WRITE(dlc_##name##x4, to, all);                                                                            \
    }
#define DLC_PACKS(name, type) DLC_PACK2(name, type) DLC_PACK4(name, type)
DLC_PACKS(i8, signed char)
DLC_PACKS(i16, short)
DLC_PACKS(i32, int)
DLC_PACKS(u8, dlc_u8)
DLC_PACKS(u16, dlc_u16)
DLC_PACKS(u32, dlc_u32)
DLC_PACKS(f32, float)
DLC_PACK2(i64, long long)
DLC_PACK2(u64, dlc_u64)
DLC_PACK2(f64, double)

#define dlc_shuffle_f32(value, lane) dlc_bits_f32(dlc_shuffle_u32(dlc_f32_bits(value), lane))
#define dlc_shuffle_u64(value, lane)                                                                                   \
    (dlc_shuffle_u32((dlc_u32)(value), lane) | (dlc_u64)dlc_shuffle_u32((dlc_u32)((value) >> 32), lane) << 32)
#define dlc_shuffle_f64(value, lane) dlc_bits_f64(dlc_shuffle_u64(dlc_f64_bits(value), lane))

/* Integers as expr.def says: nothing traps. */
#define DLC_INTEGERS(name, type, utype, bits, lowest)                                                                  \
    DLC_INLINE type dlc_div_##name(type a, type b)                                                                     \
    {                                                                                                                  \
        return b == 0 ? (type)0 : lowest != 0 && a == (type)(lowest) && b == (type)-1 ? a : (type)(a / b);             \
    }                                                                                                                  \
    DLC_INLINE type dlc_rem_##name(type a, type b)                                                                     \
    {                                                                                                                  \
        return b == 0 || (lowest != 0 && b == (type)-1) ? (type)0 : (type)(a % b);                                     \
    }                                                                                                                  \
    DLC_INLINE type dlc_floordiv_##name(type a, type b)                                                                \
    {                                                                                                                  \
        type q = dlc_div_##name(a, b), r = dlc_rem_##name(a, b);                                                       \
        return r != 0 && lowest != 0 && (r < 0) != (b < 0) ? (type)(q - 1) : q;                                        \
    }                                                                                                                  \
    DLC_INLINE type dlc_mod_##name(type a, type b)                                                                     \
    {                                                                                                                  \
        type r = dlc_rem_##name(a, b);                                                                                 \
        return r != 0 && lowest != 0 && (r < 0) != (b < 0) ? (type)(r + b) : r;                                        \
    }                                                                                                                  \
    DLC_INLINE type dlc_shl_##name(type a, type b)                                                                     \
    {                                                                                                                  \
        return (utype)b < (utype)bits ? (type)((utype)a << (utype)b) : (type)0;                                        \
    }                                                                                                                  \
    DLC_INLINE type dlc_shr_##name(type a, type b)                                                                     \
    {                                                                                                                  \
        return (utype)b < (utype)bits ? (type)(a >> (utype)b) : lowest != 0 && a < 0 ? (type)-1 : (type)0;             \
    }
DLC_INTEGERS(i8, signed char, dlc_u8, 8, -128)
DLC_INTEGERS(i16, short, dlc_u16, 16, -32768)
DLC_INTEGERS(i32, int, dlc_u32, 32, (-2147483647 - 1))
DLC_INTEGERS(i64, long long, dlc_u64, 64, (-9223372036854775807LL - 1))
DLC_INTEGERS(u8, dlc_u8, dlc_u8, 8, 0)
DLC_INTEGERS(u16, dlc_u16, dlc_u16, 16, 0)
DLC_INTEGERS(u32, dlc_u32, dlc_u32, 32, 0)
DLC_INTEGERS(u64, dlc_u64, dlc_u64, 64, 0)

/* float to integer: truncates, saturates, NaN gives 0. `below` is the first value that does not fit, `least` the lowest. */
#define DLC_TO_INTEGER(name, type, least, most, below)                                                                 \
    DLC_INLINE type dlc_##name##_of_f32(float v)                                                                       \
    {                                                                                                                  \
        return v != v ? (type)0 : v >= below##f ? (type)(most) : v <= (float)(least) ? (type)(least) : (type)v;        \
    }                                                                                                                  \
    DLC_INLINE type dlc_##name##_of_f64(double v)                                                                      \
    {                                                                                                                  \
        return v != v ? (type)0 : v >= below ? (type)(most) : v <= (double)(least) ? (type)(least) : (type)v;          \
    }
DLC_TO_INTEGER(i8, signed char, -128, 127, 128.0)
DLC_TO_INTEGER(i16, short, -32768, 32767, 32768.0)
DLC_TO_INTEGER(i32, int, (-2147483647 - 1), 2147483647, 2147483648.0)
DLC_TO_INTEGER(i64, long long, (-9223372036854775807LL - 1), 9223372036854775807LL, 9223372036854775808.0)
DLC_TO_INTEGER(u8, dlc_u8, 0, 255, 256.0)
DLC_TO_INTEGER(u16, dlc_u16, 0, 65535, 65536.0)
DLC_TO_INTEGER(u32, dlc_u32, 0, 4294967295u, 4294967296.0)
DLC_TO_INTEGER(u64, dlc_u64, 0, 18446744073709551615ull, 18446744073709551616.0)

/*
 * Arithmetic of 32 lanes at once: the frequent instructions, each a loop that compilers make vector
 * code of. What is not here is computed lane by lane (compute.c), by the same rules. Compiled once
 * for any processor and, on x86-64, once more for those with AVX2 and FMA (VGPU_LANES_NAME).
 */
#include <math.h>
#include <string.h>

#include "vgpu/lanes.h"

#ifndef VGPU_LANES_NAME
#define VGPU_LANES_NAME vgpu_lanes_plain
#endif
#define N VGPU_LANES
#define FN(name) static const char *name(const vgpu_insn *insn, uint8_t *regs, uint32_t lanes)
#define ROW(T, row) ((const T *)(const void *)(regs + (row).at))
#define BITS(row) (*(const uint32_t *)(const void *)(regs + (row).at))

/* Results of the lanes that take part; the others keep what they had. */
static void put4(uint8_t *regs, vgpu_row row, const void *results, uint32_t lanes)
{
    uint32_t *to = (uint32_t *)(void *)(regs + row.at);
    const uint32_t *from = results;
    if (lanes == ~0u)
        memcpy(to, from, N * sizeof *to);
    else
        for (uint32_t l = 0; l < N; l++)
            to[l] = lanes >> l & 1 ? from[l] : to[l];
}

static void put8(uint8_t *regs, vgpu_row row, const void *results, uint32_t lanes)
{
    uint64_t *to = (uint64_t *)(void *)(regs + row.at);
    const uint64_t *from = results;
    if (lanes == ~0u)
        memcpy(to, from, N * sizeof *to);
    else
        for (uint32_t l = 0; l < N; l++)
            to[l] = lanes >> l & 1 ? from[l] : to[l];
}

static void put0(uint8_t *regs, vgpu_row row, uint32_t results, uint32_t lanes)
{
    uint32_t *to = (uint32_t *)(void *)(regs + row.at);
    *to = (*to & ~lanes) | (results & lanes);
}

/* --- integers: name, width of the result, its type, types of the operands, expression --- */
#define MAP1(name, W, R, A, expression)                                                            \
    FN(name)                                                                                       \
    {                                                                                              \
        const A *as = ROW(A, insn->src[0]);                                                        \
        R out[N];                                                                                  \
        for (uint32_t l = 0; l < N; l++) {                                                         \
            const A a = as[l];                                                                     \
            out[l] = (R)(expression);                                                              \
        }                                                                                          \
        put##W(regs, insn->dst[0], out, lanes);                                                    \
        return NULL;                                                                               \
    }
#define MAP2(name, W, R, A, B, expression)                                                         \
    FN(name)                                                                                       \
    {                                                                                              \
        const A *as = ROW(A, insn->src[0]);                                                        \
        const B *bs = ROW(B, insn->src[1]);                                                        \
        R out[N];                                                                                  \
        for (uint32_t l = 0; l < N; l++) {                                                         \
            const A a = as[l];                                                                     \
            const B b = bs[l];                                                                     \
            out[l] = (R)(expression);                                                              \
        }                                                                                          \
        put##W(regs, insn->dst[0], out, lanes);                                                    \
        return NULL;                                                                               \
    }
#define MAP3(name, W, R, A, B, C, expression)                                                      \
    FN(name)                                                                                       \
    {                                                                                              \
        const A *as = ROW(A, insn->src[0]);                                                        \
        const B *bs = ROW(B, insn->src[1]);                                                        \
        const C *cs = ROW(C, insn->src[2]);                                                        \
        R out[N];                                                                                  \
        for (uint32_t l = 0; l < N; l++) {                                                         \
            const A a = as[l];                                                                     \
            const B b = bs[l];                                                                     \
            const C c = cs[l];                                                                     \
            out[l] = (R)(expression);                                                              \
        }                                                                                          \
        put##W(regs, insn->dst[0], out, lanes);                                                    \
        return NULL;                                                                               \
    }
#define BOTH1(name, expression)                                                                    \
    MAP1(name##4, 4, uint32_t, uint32_t, expression)                                               \
    MAP1(name##8, 8, uint64_t, uint64_t, expression)
#define BOTH2(name, expression)                                                                    \
    MAP2(name##4, 4, uint32_t, uint32_t, uint32_t, expression)                                     \
    MAP2(name##8, 8, uint64_t, uint64_t, uint64_t, expression)
BOTH1(mov, a)
BOTH1(not, ~a)
BOTH2(add, a + b)
BOTH2(sub, a - b)
BOTH2(mul, a *b)
BOTH2(and, a &b)
BOTH2(or, a | b)
BOTH2(xor, a ^ b)
MAP3(mad4, 4, uint32_t, uint32_t, uint32_t, uint32_t, a *b + c)
MAP3(mad8, 8, uint64_t, uint64_t, uint64_t, uint64_t, a *b + c)
MAP2(wide_u, 8, uint64_t, uint32_t, uint32_t, (uint64_t)a *b)
MAP2(wide_s, 8, int64_t, int32_t, int32_t, (int64_t)a *b)
MAP3(mad_wide_u, 8, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)a *b + c)
MAP3(mad_wide_s, 8, uint64_t, int32_t, int32_t, uint64_t, (uint64_t)((int64_t)a *b) + c)
MAP2(min_s4, 4, int32_t, int32_t, int32_t, a < b ? a : b)
MAP2(max_s4, 4, int32_t, int32_t, int32_t, a > b ? a : b)
MAP2(shl4, 4, uint32_t, uint32_t, uint32_t, b > 31 ? 0 : a << (b & 31))
MAP2(shr_u4, 4, uint32_t, uint32_t, uint32_t, b > 31 ? 0 : a >> (b & 31))
MAP2(shr_s4, 4, int32_t, int32_t, uint32_t, a >> (b > 31 ? 31 : b))
MAP2(shl8, 8, uint64_t, uint64_t, uint32_t, b > 63 ? 0 : a << (b & 63))
MAP2(shr_u8, 8, uint64_t, uint64_t, uint32_t, b > 63 ? 0 : a >> (b & 63))
MAP2(shr_s8, 8, int64_t, int64_t, uint32_t, a >> (b > 63 ? 63 : b))
MAP2(hi_u4, 4, uint32_t, uint32_t, uint32_t, (uint64_t)a *b >> 32)
MAP2(hi_s4, 4, uint32_t, int32_t, int32_t, (uint64_t)((int64_t)a *b) >> 32)
MAP2(hi_u8, 8, uint64_t, uint64_t, uint64_t, (unsigned __int128)a *b >> 64)
MAP2(hi_s8, 8, uint64_t, int64_t, int64_t, (unsigned __int128)((__int128)a *b) >> 64)
MAP1(cut, 4, uint32_t, uint64_t, a)
MAP1(cut16, 4, uint32_t, uint32_t, a & 0xffff)
MAP1(extend_u, 8, uint64_t, uint32_t, a)
MAP1(extend_s, 8, int64_t, int32_t, a)
MAP1(byte_s, 4, int32_t, uint32_t, (int8_t)a)
MAP1(word_s, 4, int32_t, uint32_t, (int16_t)a)
MAP1(byte_u, 4, uint32_t, uint32_t, (uint8_t)a)
MAP2(add16, 4, uint32_t, uint32_t, uint32_t, (a + b) & 0xffff)
MAP2(sub16, 4, uint32_t, uint32_t, uint32_t, (a - b) & 0xffff)
MAP2(mul16, 4, uint32_t, uint32_t, uint32_t, (a * b) & 0xffff)
MAP2(wide_s16, 4, uint32_t, uint32_t, uint32_t, (int32_t)(int16_t)a *(int16_t)b)
MAP2(wide_u16, 4, uint32_t, uint32_t, uint32_t, (a & 0xffff) * (b & 0xffff))
MAP1(float_of_s, 4, float, int32_t, (float)a)
MAP1(neg_f, 4, uint32_t, uint32_t, a ^ 0x80000000u)
MAP1(abs_f, 4, uint32_t, uint32_t, a & 0x7fffffffu)
MAP1(double_of, 8, double, float, (double)a)

/* --- f32: a NaN that an operation makes is the device's 0x7fffffff --- */
static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7fffffffu : bits;
}

MAP2(add_f, 4, uint32_t, float, float, bits_of(a + b))
MAP2(sub_f, 4, uint32_t, float, float, bits_of(a - b))
MAP2(mul_f, 4, uint32_t, float, float, bits_of(a *b))
MAP2(div_f, 4, uint32_t, float, float, bits_of(a / b))
MAP1(sqrt_f, 4, uint32_t, float, bits_of(sqrtf(a)))
MAP3(fma_f, 4, uint32_t, float, float, float, bits_of(fmaf(a, b, c)))

MAP1(float_of_half, 4, uint32_t, uint32_t, ({
         const uint16_t low_ = (uint16_t)a;
         _Float16 half_;
         memcpy(&half_, &low_, sizeof half_);
         bits_of((float)half_);
     }))

/* --- predicates --- */
#define COMPARE(name, T, expression)                                                               \
    FN(name)                                                                                       \
    {                                                                                              \
        const T *as = ROW(T, insn->src[0]), *bs = ROW(T, insn->src[1]);                            \
        uint32_t truths = 0;                                                                       \
        for (uint32_t l = 0; l < N; l++) {                                                         \
            const T a = as[l], b = bs[l];                                                          \
            truths |= (uint32_t)(expression) << l;                                                 \
        }                                                                                          \
        put0(regs, insn->dst[0], combined(insn, regs, truths), lanes);                             \
        return NULL;                                                                               \
    }
static uint32_t combined(const vgpu_insn *insn, const uint8_t *regs, uint32_t truths)
{
    if (!insn->ptx->combine)
        return truths;
    uint32_t third = BITS(insn->src[2]) ^ (insn->ptx->has_not_third ? ~0u : 0);
    return insn->ptx->combine == 'a'   ? truths & third
           : insn->ptx->combine == 'o' ? truths | third
                                       : truths ^ third;
}

#define COMPARES(suffix, T)                                                                        \
    COMPARE(eq_##suffix, T, a == b)                                                                \
    COMPARE(ne_##suffix, T, a != b)                                                                \
    COMPARE(lt_##suffix, T, a < b)                                                                 \
    COMPARE(le_##suffix, T, a <= b)                                                                \
    COMPARE(gt_##suffix, T, a > b)                                                                 \
    COMPARE(ge_##suffix, T, a >= b)
COMPARES(s4, int32_t)
COMPARES(u4, uint32_t)
COMPARES(s8, int64_t)
COMPARES(u8, uint64_t)
COMPARES(f4, float)
COMPARE(nan_f4, float, a != a || b != b)
COMPARE(num_f4, float, a == a && b == b)
/* ne of floats is false for a NaN. */
COMPARE(ordered_ne_f4, float, a<b || a> b)

#define LOGIC(name, expression)                                                                    \
    FN(name)                                                                                       \
    {                                                                                              \
        const uint32_t a = BITS(insn->src[0]), b = BITS(insn->src[1]);                             \
        (void)b;                                                                                   \
        put0(regs, insn->dst[0], expression, lanes);                                               \
        return NULL;                                                                               \
    }
LOGIC(and0, a &b)
LOGIC(or0, a | b)
LOGIC(xor0, a ^ b)
LOGIC(not0, ~a)
LOGIC(mov0, a)

FN(select4)
{
    const uint32_t *as = ROW(uint32_t, insn->src[0]), *bs = ROW(uint32_t, insn->src[1]);
    uint32_t which = BITS(insn->src[2]), out[N];
    for (uint32_t l = 0; l < N; l++)
        out[l] = which >> l & 1 ? as[l] : bs[l];
    put4(regs, insn->dst[0], out, lanes);
    return NULL;
}

FN(select8)
{
    const uint64_t *as = ROW(uint64_t, insn->src[0]), *bs = ROW(uint64_t, insn->src[1]);
    uint32_t which = BITS(insn->src[2]);
    uint64_t out[N];
    for (uint32_t l = 0; l < N; l++)
        out[l] = which >> l & 1 ? as[l] : bs[l];
    put8(regs, insn->dst[0], out, lanes);
    return NULL;
}

/* --- which --- */
/* By operation, kind of type ('i' any integer or bits), bits, half; '0' as width: predicates. */
static const struct {
    uint8_t op;
    char kind;
    uint8_t bits, half;
    vgpu_compute compute;
    uint8_t dst, src[3]; /* widths that operands must have */
} table[] = {
    {PTX_MOV, 'i', 32, PTX_LO, mov4, 4, {4}},
    {PTX_MOV, 'f', 32, PTX_LO, mov4, 4, {4}},
    {PTX_MOV, 'i', 64, PTX_LO, mov8, 8, {8}},
    {PTX_MOV, 'f', 64, PTX_LO, mov8, 8, {8}},
    {PTX_MOV, 'i', 16, PTX_LO, cut16, 4, {4}},
    {PTX_CVTA, 'i', 64, PTX_LO, mov8, 8, {8}},
    {PTX_NOT, 'i', 32, PTX_LO, not4, 4, {4}},
    {PTX_NOT, 'i', 64, PTX_LO, not8, 8, {8}},
    {PTX_ADD, 'i', 32, PTX_LO, add4, 4, {4, 4}},
    {PTX_ADD, 'i', 64, PTX_LO, add8, 8, {8, 8}},
    {PTX_ADD, 'i', 16, PTX_LO, add16, 4, {4, 4}},
    {PTX_SUB, 'i', 32, PTX_LO, sub4, 4, {4, 4}},
    {PTX_SUB, 'i', 64, PTX_LO, sub8, 8, {8, 8}},
    {PTX_SUB, 'i', 16, PTX_LO, sub16, 4, {4, 4}},
    {PTX_MUL, 'i', 32, PTX_LO, mul4, 4, {4, 4}},
    {PTX_MUL, 'i', 64, PTX_LO, mul8, 8, {8, 8}},
    {PTX_MUL, 'i', 16, PTX_LO, mul16, 4, {4, 4}},
    {PTX_MUL, 'u', 32, PTX_WIDE, wide_u, 8, {4, 4}},
    {PTX_MUL, 's', 32, PTX_WIDE, wide_s, 8, {4, 4}},
    {PTX_MUL, 'u', 16, PTX_WIDE, wide_u16, 4, {4, 4}},
    {PTX_MUL, 's', 16, PTX_WIDE, wide_s16, 4, {4, 4}},
    {PTX_MUL, 'u', 32, PTX_HI, hi_u4, 4, {4, 4}},
    {PTX_MUL, 's', 32, PTX_HI, hi_s4, 4, {4, 4}},
    {PTX_MUL, 'u', 64, PTX_HI, hi_u8, 8, {8, 8}},
    {PTX_MUL, 's', 64, PTX_HI, hi_s8, 8, {8, 8}},
    {PTX_MAD, 'i', 32, PTX_LO, mad4, 4, {4, 4, 4}},
    {PTX_MAD, 'i', 64, PTX_LO, mad8, 8, {8, 8, 8}},
    {PTX_MAD, 'u', 32, PTX_WIDE, mad_wide_u, 8, {4, 4, 8}},
    {PTX_MAD, 's', 32, PTX_WIDE, mad_wide_s, 8, {4, 4, 8}},
    {PTX_AND, 'i', 32, PTX_LO, and4, 4, {4, 4}},
    {PTX_AND, 'i', 16, PTX_LO, and4, 4, {4, 4}},
    {PTX_AND, 'i', 64, PTX_LO, and8, 8, {8, 8}},
    {PTX_OR, 'i', 32, PTX_LO, or4, 4, {4, 4}},
    {PTX_OR, 'i', 16, PTX_LO, or4, 4, {4, 4}},
    {PTX_OR, 'i', 64, PTX_LO, or8, 8, {8, 8}},
    {PTX_XOR, 'i', 32, PTX_LO, xor4, 4, {4, 4}},
    {PTX_XOR, 'i', 16, PTX_LO, xor4, 4, {4, 4}},
    {PTX_XOR, 'i', 64, PTX_LO, xor8, 8, {8, 8}},
    {PTX_MIN, 's', 32, PTX_LO, min_s4, 4, {4, 4}},
    {PTX_MAX, 's', 32, PTX_LO, max_s4, 4, {4, 4}},
    {PTX_SHL, 'i', 32, PTX_LO, shl4, 4, {4, 4}},
    {PTX_SHL, 'i', 64, PTX_LO, shl8, 8, {8, 4}},
    {PTX_SHR, 's', 32, PTX_LO, shr_s4, 4, {4, 4}},
    {PTX_SHR, 's', 64, PTX_LO, shr_s8, 8, {8, 4}},
    {PTX_SHR, 'i', 32, PTX_LO, shr_u4, 4, {4, 4}},
    {PTX_SHR, 'i', 64, PTX_LO, shr_u8, 8, {8, 4}},
    {PTX_NEG, 'f', 32, PTX_LO, neg_f, 4, {4}},
    {PTX_ABS, 'f', 32, PTX_LO, abs_f, 4, {4}},
    {PTX_ADD, 'f', 32, PTX_LO, add_f, 4, {4, 4}},
    {PTX_SUB, 'f', 32, PTX_LO, sub_f, 4, {4, 4}},
    {PTX_MUL, 'f', 32, PTX_LO, mul_f, 4, {4, 4}},
    {PTX_DIV, 'f', 32, PTX_LO, div_f, 4, {4, 4}},
    {PTX_SQRT, 'f', 32, PTX_LO, sqrt_f, 4, {4}},
    {PTX_FMA, 'f', 32, PTX_LO, fma_f, 4, {4, 4, 4}},
    {PTX_SELP, 'i', 32, PTX_LO, select4, 4, {4, 4, 0}},
    {PTX_SELP, 'i', 16, PTX_LO, select4, 4, {4, 4, 0}},
    {PTX_SELP, 'f', 32, PTX_LO, select4, 4, {4, 4, 0}},
    {PTX_SELP, 'i', 64, PTX_LO, select8, 8, {8, 8, 0}},
    {PTX_SELP, 'f', 64, PTX_LO, select8, 8, {8, 8, 0}},
    {PTX_AND, 'p', 1, PTX_LO, and0, 0, {0, 0}},
    {PTX_OR, 'p', 1, PTX_LO, or0, 0, {0, 0}},
    {PTX_XOR, 'p', 1, PTX_LO, xor0, 0, {0, 0}},
    {PTX_NOT, 'p', 1, PTX_LO, not0, 0, {0}},
    {PTX_MOV, 'p', 1, PTX_LO, mov0, 0, {0}},
};

/* By the type of the operands: signed, unsigned (and bits), of 32 bits and 64; floats. */
static const vgpu_compute compares[5][PTX_COMPARE_COUNT] = {
    {eq_s4, ne_s4, lt_s4, le_s4, gt_s4, ge_s4},
    {eq_u4, ne_u4, lt_u4, le_u4, gt_u4, ge_u4},
    {eq_s8, ne_s8, lt_s8, le_s8, gt_s8, ge_s8},
    {eq_u8, ne_u8, lt_u8, le_u8, gt_u8, ge_u8},
    {[PTX_EQ] = eq_f4,
     [PTX_NE] = ordered_ne_f4,
     [PTX_LT] = lt_f4,
     [PTX_LE] = le_f4,
     [PTX_GT] = gt_f4,
     [PTX_GE] = ge_f4,
     [PTX_NEU] = ne_f4,
     [PTX_NUM] = num_f4,
     [PTX_NAN] = nan_f4},
};

static int has_widths(const vgpu_insn *insn, uint8_t dst, const uint8_t *src)
{
    int ok = insn->dst[0].width == dst;
    for (uint32_t i = 0; i < insn->ptx->nsrc && i < 3; i++)
        ok &= insn->src[i].width == src[i];
    return ok;
}

static vgpu_compute find_compare(const vgpu_insn *insn)
{
    ptx_type type = insn->ptx->type;
    uint8_t width = type.bits == 64 ? 8 : 4;
    int row = type.kind == 'f' ? 4 : (type.bits == 64) * 2 + (type.kind != 's');
    if ((type.bits != 32 && type.bits != 64) || (type.kind == 'f' && type.bits != 32) ||
        insn->src[0].width != width || insn->src[1].width != width)
        return NULL;
    return compares[row][insn->ptx->compare];
}

static vgpu_compute find_conversion(const vgpu_insn *insn)
{
    ptx_type to = insn->ptx->type, from = insn->ptx->from;
    uint8_t wide = insn->dst[0].width, narrow = insn->src[0].width;
    if (insn->ptx->is_saturating)
        return NULL;
    if (to.kind == 'f')
        return to.bits == 32 && from.kind == 'f' && from.bits == 16 && wide == 4 ? float_of_half
               : to.bits == 32 && from.kind == 's' && from.bits == 32 && narrow == 4 &&
                       insn->ptx->rounding == PTX_RN
                   ? float_of_s
               : to.bits == 64 && from.kind == 'f' && from.bits == 32 ? double_of
                                                                      : NULL;
    if (from.kind == 'f' || to.bits < 16)
        return NULL;
    if (wide == 8 && narrow == 4 && to.bits == 64 && from.bits == 32)
        return from.kind == 's' ? extend_s : extend_u;
    if (wide == 4 && narrow == 8 && to.bits == 32 && from.bits >= 32)
        return cut;
    if (wide != 4 || narrow != 4)
        return NULL;
    if (to.bits == 32)
        return from.bits == 8    ? (from.kind == 's' ? byte_s : byte_u)
               : from.bits == 16 ? (from.kind == 's' ? word_s : cut16)
               : from.bits == 32 ? mov4
                                 : NULL;
    return from.bits >= 16 ? cut16 : from.kind == 'u' && from.bits == 8 ? byte_u : NULL;
}

vgpu_compute VGPU_LANES_NAME(const vgpu_insn *insn)
{
    const ptx_insn *p = insn->ptx;
    if (p->op == PTX_SETP)
        return find_compare(insn);
    if (p->op == PTX_CVT)
        return find_conversion(insn);
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == p->op && table[i].bits == p->type.bits && table[i].half == p->half &&
            (table[i].kind == p->type.kind ||
             (table[i].kind == 'i' && strchr("bus", p->type.kind))) &&
            has_widths(insn, table[i].dst, table[i].src))
            return table[i].compute;
    return NULL;
}

/*
 * Products of matrices that a warp's registers hold, 16 x K times K x 8 added to 16 x 8, as PTX lays them over lanes and registers. With
 * e elements to a register: register i of A has row l / 4 + 8 (i mod 2) and e neighbours in K from e (l mod 4) + 4 e (i / 2) on, of B
 * column l / 4 and K from e (l mod 4) + 4 e i on; of the sums row l / 4 + 8 (i / 2), column 2 (l mod 4) + i mod 2.
 *
 * In which order a device adds is not said anywhere. Here products are added to the sum one after the other, K ascending, each step
 * rounded once: what a loop of fused multiply-adds gives.
 */
#include <math.h>
#include <string.h>

#include "vgpu/machine.h"

enum { ROWS = 16, COLUMNS = 8, MOST_DEPTH = 32, SUMS = 4 /* of a lane */ };

static float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A NaN is the one that the device makes. */
static uint32_t bits_of(float value)
{
    if (value != value)
        return 0x7fffffffu;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t width_of(ptx_element type)
{
    return type == PTX_TF32 ? 32 : type == PTX_F16 || type == PTX_BF16 ? 16 : 8;
}

/* An element of a factor; integers are exact in a float. tf32 has 10 bits behind the point: what lies below is cut off. */
float vgpu_element(ptx_element type, uint32_t bits)
{
    uint16_t low = (uint16_t)bits;
    _Float16 half;
    switch (type) {
    case PTX_F16:
        memcpy(&half, &low, sizeof half);
        return (float)half;
    case PTX_BF16:
        return f32_of(bits << 16);
    case PTX_TF32:
        return f32_of(bits & 0xffffe000u);
    case PTX_S8:
        return (float)(int8_t)bits;
    default:
        return (float)(uint8_t)bits;
    }
}

uint32_t vgpu_add_product(float a, float b, uint32_t sum)
{
    return bits_of(fmaf(a, b, f32_of(sum)));
}

static uint32_t element_bits(const uint8_t *regs, vgpu_row row, uint32_t lane, uint32_t j, uint32_t width)
{
    uint32_t all = (uint32_t)vgpu_get(regs, row, lane);
    return width == 32 ? all : all >> (j * width) & ((1u << width) - 1);
}

const char *vgpu_multiply(const vgpu_insn *insn, uint8_t *regs, uint32_t lanes)
{
    const ptx_insn *p = insn->ptx;
    uint32_t width = width_of((ptx_element)p->elements[1]), e = 32 / width, na = p->depth / e / 2, nb = na / 2;
    float a[ROWS][MOST_DEPTH], b[MOST_DEPTH][COLUMNS];
    if (lanes != UINT32_MAX)
        return "matrices are multiplied by a whole warp";
    if (p->nelems != SUMS || p->nsrc != na + nb + SUMS)
        return "a product of matrices in too few or too many registers";
    for (uint32_t lane = 0; lane < VGPU_LANES; lane++)
        for (uint32_t j = 0; j < e; j++) {
            uint32_t k = e * (lane % 4) + j;
            for (uint32_t i = 0; i < na; i++)
                a[lane / 4 + 8 * (i % 2)][k + 4 * e * (i / 2)] =
                    vgpu_element((ptx_element)p->elements[1], element_bits(regs, insn->src[i], lane, j, width));
            for (uint32_t i = 0; i < nb; i++)
                b[k + 4 * e * i][lane / 4] =
                    vgpu_element((ptx_element)p->elements[2], element_bits(regs, insn->src[na + i], lane, j, width));
        }
    for (uint32_t lane = 0; lane < VGPU_LANES; lane++)
        for (uint32_t i = 0; i < SUMS; i++) {
            uint32_t row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            uint32_t sum = (uint32_t)vgpu_get(regs, insn->src[na + nb + i], lane);
            for (uint32_t k = 0; k < p->depth; k++)
                sum = p->elements[0] == PTX_S32 ? sum + (uint32_t)(int32_t)(a[row][k] * b[k][column])
                                                : vgpu_add_product(a[row][k], b[k][column], sum);
            vgpu_set(regs, insn->dst[i], lane, sum);
        }
    return NULL;
}

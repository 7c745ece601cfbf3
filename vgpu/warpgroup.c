/*
 * Products that four warps make together (wgmma): 64 x 16 times 16 x N added to 64 x N, both factors read from shared memory while
 * the warps go on. Warp i of a group has rows 16 i to 16 i + 15 of the sums, as PTX lays them over lanes and registers: register i has row
 * l / 4 + 8 (i / 2 mod 2), column 8 (i / 4) + 2 (l mod 4) + i mod 2.
 *
 * A factor is described by 64 bits: where it begins, two distances, and how 16 bytes change places within 32, 64 or 128 of a row. It
 * is read when the product is waited for, which is as late as a device may: who overwrites it before that is in a race. Until then
 * nobody may touch the registers of the sums. What was stored is not there for a product before its warp has fenced
 * (fence.proxy.async), nor what is in the registers before wgmma.fence.
 */
#include <string.h>

#include "vgpu/warp.h"

enum { GROUP_WARPS = 4, DEPTH = 16, CHUNK = 8 /* elements of 16 bytes */, ROWS = 16 /* of a warp */, MOST_COLUMNS = 256 };

static void fail(vgpu_machine *m, const vgpu_warp *w, const vgpu_insn *insn, const char *what)
{
    vgpu_fail(m, w, insn, 0, VGPU_FAILED, what);
}

/* --- where factors lie --- */

/* width: bytes in which 16 bytes change places; 16: they do not. */
typedef struct {
    uint64_t begin, leading, stride;
    uint32_t width;
} factor;

static factor factor_of(uint64_t described)
{
    static const uint8_t widths[] = {16, 128, 64, 32};
    return (factor){.begin = (described & 0x3fff) << 4,
                    .leading = (described >> 16 & 0x3fff) << 4,
                    .stride = (described >> 32 & 0x3fff) << 4,
                    .width = widths[described >> 62]};
}

/* Of 8 elements along K, from row r and element 8 k8 on. */
static uint64_t along_k(const factor *f, uint32_t r, uint32_t k8)
{
    uint64_t of_step = f->width == 16 ? f->leading : 16;
    return r % 8 * f->width + r / 8 * f->stride + k8 * of_step;
}

/* Of 8 rows, from row 8 r8 on, of element k. */
static uint64_t along_rows(const factor *f, uint32_t r8, uint32_t k)
{
    uint32_t n = f->width / 16;
    if (n == 1)
        return r8 * f->stride + k % 8 * 16 + k / 8 * f->leading;
    return r8 % n * 16 + r8 / n * f->leading + k % 8 * f->width + k / 8 * f->stride;
}

/* The bits of the number of 16 bytes in a row, changed by those of the row among eight. */
static uint64_t swizzled(uint64_t at, uint32_t width)
{
    return at ^ ((at >> 7 & (width / 16 - 1)) << 4);
}

/* Descriptors hold 18 bits of an address: it is in dynamic shared memory, or in the other where there is none. */
static const uint8_t *read_chunk(vgpu_machine *m, const vgpu_warp *w, const vgpu_insn *insn, const factor *f, uint64_t at)
{
    const vgpu_region *region = m->shared.n ? &m->shared.regions[0] : NULL;
    uint64_t address = swizzled(f->begin + at, f->width);
    if (region)
        address = region->base + ((address - region->base) & 0x3ffff);
    return vgpu_read_factor(m, w, insn, address);
}

/* Rows [first, first + n) of a factor, into [row][DEPTH]; false: it failed. */
static int read_rows(vgpu_machine *m, const vgpu_warp *w, const vgpu_insn *insn, const factor *f, int is_transposed, uint32_t first,
                     uint32_t n, float *to)
{
    ptx_element type = (ptx_element)insn->ptx->elements[1];
    uint16_t bits[CHUNK];
    for (uint32_t i = 0; i < n * DEPTH / CHUNK; i++) {
        uint32_t r = is_transposed ? i / DEPTH * CHUNK : i / 2, k = is_transposed ? i % DEPTH : i % 2 * CHUNK;
        uint64_t at = is_transposed ? along_rows(f, (first + r) / CHUNK, k) : along_k(f, first + r, k / CHUNK);
        const uint8_t *chunk = read_chunk(m, w, insn, f, at);
        if (!chunk)
            return 0;
        memcpy(bits, chunk, sizeof bits);
        for (uint32_t j = 0; j < CHUNK; j++)
            to[is_transposed ? (r + j) * DEPTH + k : r * DEPTH + k + j] = vgpu_element(type, bits[j]);
    }
    return 1;
}

/* --- products --- */
static void land(vgpu_machine *m, vgpu_warp *w, const vgpu_product *product)
{
    const vgpu_insn *insn = product->insn;
    uint32_t columns = insn->ptx->nsums * 2u, first = w->number % GROUP_WARPS * ROWS;
    factor fa = factor_of(product->a), fb = factor_of(product->b);
    float a[ROWS * DEPTH], b[MOST_COLUMNS * DEPTH];
    if (!read_rows(m, w, insn, &fa, insn->ptx->src[5].value == 1, first, ROWS, a) ||
        !read_rows(m, w, insn, &fb, insn->ptx->src[6].value == 1, 0, columns, b))
        return;
    for (uint32_t i = 0; i < insn->ptx->nsums; i++)
        for (uint32_t lane = 0; lane < VGPU_LANES; lane++) {
            uint32_t row = lane / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
            uint32_t sum = product->adds ? (uint32_t)vgpu_get(w->regs, insn->sums[i], lane) : 0;
            for (uint32_t k = 0; k < DEPTH; k++)
                sum = vgpu_add_product(a[row * DEPTH + k], b[column * DEPTH + k], sum);
            vgpu_set(w->regs, insn->sums[i], lane, sum);
        }
}

/* One number for all lanes. */
static int is_uniform(const vgpu_warp *w, vgpu_row row)
{
    for (uint32_t lane = 1; lane < VGPU_LANES; lane++)
        if (vgpu_get(w->regs, row, lane) != vgpu_get(w->regs, row, 0))
            return 0;
    return 1;
}

/* What a device reads for it: 64 + N rows, once for the four warps. */
static void count_reads(vgpu_machine *m, const vgpu_warp *w, const vgpu_insn *insn)
{
    uint32_t wavefronts = (64 + insn->ptx->nsums * 2u) * DEPTH * 2 / 128;
    if (!m->launch->counts || w->number % GROUP_WARPS)
        return;
    m->launch->counts->shared_requests++;
    m->launch->counts->shared_wavefronts += wavefronts;
    m->launch->counts->shared_ideal += wavefronts;
}

static void begin(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn)
{
    vgpu_product product = {.insn = insn,
                            .a = vgpu_get(w->regs, insn->src[0], 0),
                            .b = vgpu_get(w->regs, insn->src[1], 0),
                            .adds = (int)vgpu_get(w->regs, insn->src[2], 0),
                            .group = w->nproduct_groups};
    if (!w->is_fenced)
        fail(m, w, insn, "a product adds to registers that were written after wgmma.fence");
    if (!is_uniform(w, insn->src[0]) || !is_uniform(w, insn->src[1]) || !is_uniform(w, insn->src[2]))
        fail(m, w, insn, "the threads of a warp describe different factors");
    if ((product.a | product.b) >> 49 & 7)
        fail(m, w, insn, "factors whose rows begin within a swizzle's pattern are not known");
    w->sequence = (w->sequence * 31 + (uint64_t)(insn - m->code->insns)) * 31 + product.a * 7 + product.b;
    dlc_vec_push(m->arena, &w->products, product);
    count_reads(m, w, insn);
}

static void wait_for(vgpu_machine *m, vgpu_warp *w, uint32_t open)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->products.n && m->status == DLC_OK; i++) {
        const vgpu_product product = w->products.data[i];
        if (product.group + open < w->nproduct_groups)
            land(m, w, &product);
        else
            w->products.data[kept++] = product;
    }
    w->products.n = kept;
}

void vgpu_warpgroup(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    if (lanes != UINT32_MAX || m->nwarps % GROUP_WARPS) {
        fail(m, w, insn, "products of a group need four whole warps");
        return;
    }
    switch (insn->ptx->mode) {
    case PTX_FENCES:
        w->is_fenced = 1;
        break;
    case PTX_COMMIT_GROUP:
        w->nproduct_groups++;
        break;
    case PTX_WAIT_GROUP:
        wait_for(m, w, (uint32_t)insn->ptx->src[0].value);
        break;
    default:
        begin(m, w, insn);
    }
}

/* --- who touches sums --- */
static int is_under_way(const vgpu_warp *w, const ptx_operand *operand)
{
    for (uint32_t i = 0; operand->kind == PTX_REG && i < w->products.n; i++) {
        const ptx_insn *p = w->products.data[i].insn->ptx;
        for (uint32_t k = 0; k < p->nsums; k++)
            if (p->sums[k].reg == operand->reg)
                return 1;
    }
    return 0;
}

void vgpu_watch(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn)
{
    const ptx_insn *p = insn->ptx;
    int is_touched = 0;
    for (uint32_t i = 0; i < PTX_MAX_ELEMS; i++) {
        is_touched |= is_under_way(w, &p->dst[i]) | is_under_way(w, &p->elems[i]);
        if (p->dst[i].kind == PTX_REG && m->code->is_sum[p->dst[i].reg])
            w->is_fenced = 0;
    }
    for (uint32_t i = 0; i < p->nsrc; i++)
        is_touched |= is_under_way(w, &p->src[i]);
    if (is_touched)
        fail(m, w, insn, "a register of a product that is under way");
}

/* The block has ended. */
void vgpu_warpgroup_end(vgpu_machine *m)
{
    for (uint32_t i = 0; i < m->nwarps && m->status == DLC_OK; i++) {
        const vgpu_warp *w = &m->warps[i];
        if (w->products.n)
            fail(m, w, w->products.data[0].insn, "a product that nobody waited for");
        else if (w->sequence != m->warps[i / GROUP_WARPS * GROUP_WARPS].sequence)
            fail(m, w, &m->code->insns[0], "the four warps of a group make different products");
    }
}

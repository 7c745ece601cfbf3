/*
 * An entry made ready to run: registers, special registers and constants become rows of 32 lanes in
 * one block per warp, and each instruction knows its function. What only says how long things take
 * is here as well: classes, and the registers that live at once, as an estimate of what ptxas
 * needs.
 */
#include <string.h>

#include "vgpu/compute.h"
#include "vgpu/lanes.h"

const vgpu_class_info vgpu_classes[VGPU_CLASS_COUNT] = {
#define VGPU_CLASS(id, text, slots, wide_slots, latency) {text, slots, wide_slots, latency},
#include "vgpu/classes.def"
#undef VGPU_CLASS
};

static const uint8_t kinds[] = {
#define PTX_OP(id, text, ndst, nsrc, kind) VGPU_##kind,
#include "vgpu/opcodes.def"
#undef PTX_OP
};

enum { ROW4 = 4 * VGPU_LANES, ROW8 = 8 * VGPU_LANES, HEAD = 64 /* a row at 0 is none */ };

typedef struct {
    vgpu_code *code;
    dlc_arena *arena;
    vgpu_row *registers;
} decoder;

/* --- rows --- */
static void place_registers(decoder *d)
{
    const ptx_function *f = d->code->function;
    uint32_t at = HEAD;
    d->registers = dlc_new_array(d->arena, vgpu_row, f->widths.n + 1);
    for (uint32_t i = 0; i < f->widths.n; i++)
        if (f->widths.data[i] == 0) {
            d->registers[i] = (vgpu_row){at, 0};
            at += 4;
        }
    at = (at + 63) / 64 * 64;
    for (uint32_t i = 0; i < f->widths.n; i++)
        if (f->widths.data[i]) {
            d->registers[i] = (vgpu_row){at, f->widths.data[i]};
            at += f->widths.data[i] == 8 ? ROW8 : ROW4;
        }
    d->code->first_constant = d->code->specials = at;
    d->code->registers_bytes = at + PTX_SPECIALS * ROW4;
}

static vgpu_row constant(decoder *d, uint64_t value, uint8_t width)
{
    vgpu_code *code = d->code;
    for (uint32_t i = 0; i < code->constants.n; i++)
        if (code->constants.data[i].value == value && code->constants.data[i].width == width)
            return (vgpu_row){code->constants.data[i].at, width};
    vgpu_constant made = {code->registers_bytes, value, width};
    code->registers_bytes += width == 8 ? ROW8 : ROW4;
    dlc_vec_push(d->arena, &code->constants, made);
    return (vgpu_row){made.at, width};
}

static vgpu_row row_of(decoder *d, const ptx_operand *operand, uint8_t width)
{
    switch (operand->kind) {
    case PTX_REG:
        return d->registers[operand->reg];
    case PTX_SPECIAL:
        return (vgpu_row){d->code->specials + operand->reg * ROW4, 4};
    case PTX_IMM:
        return constant(d, operand->value, width);
    default:
        return (vgpu_row){0, 0};
    }
}

/* The width a number in the text has as operand i. */
static uint8_t width_of(const ptx_insn *p, uint32_t i)
{
    int is_address = kinds[p->op] != VGPU_COMPUTE;
    if ((p->op == PTX_SHL || p->op == PTX_SHR) && i == 1)
        return 4;
    if (p->op == PTX_MAD && p->half == PTX_WIDE && i == 2)
        return p->type.bits == 32 ? 8 : 4;
    if (p->op == PTX_CVT)
        return p->from.bits > 32 ? 8 : 4;
    return (is_address && p->op != PTX_SHFL) || p->type.bits > 32 ? 8 : 4;
}

/* --- classes --- */
static vgpu_class class_of_memory(const ptx_insn *p)
{
    int is_load = p->op == PTX_LD || p->op == PTX_LDMATRIX;
    if (p->op == PTX_LDMATRIX)
        return VGPU_SHARED_LD;
    switch (p->space) {
    case PTX_PARAM:
        return VGPU_FREE;
    case PTX_SHARED:
        return is_load ? VGPU_SHARED_LD : VGPU_SHARED_ST;
    case PTX_LOCAL:
        return VGPU_LOCAL_MEM;
    default:
        return is_load ? VGPU_GLOBAL_LD : VGPU_GLOBAL_ST;
    }
}

static vgpu_class class_of_arithmetic(const ptx_insn *p)
{
    int is_float = p->type.kind == 'f';
    switch (p->op) {
    case PTX_MOV:
    case PTX_CVTA:
        return VGPU_FREE;
    case PTX_DIV:
    case PTX_REM:
    case PTX_SQRT:
    case PTX_RCP:
        return is_float ? VGPU_DIVISION : VGPU_QUOTIENT;
    case PTX_MMA:
        return VGPU_MATRICES;
    case PTX_MUL:
    case PTX_MAD:
    case PTX_DP2A:
    case PTX_DP4A:
        return is_float ? VGPU_FLOAT : VGPU_PRODUCT;
    case PTX_SETP:
        return VGPU_PREDICATE;
    case PTX_CVT: /* from one integer to another is a move */
        return is_float || p->from.kind == 'f' ? VGPU_CONVERT : VGPU_FREE;
    default:
        return p->type.kind == 'p' ? VGPU_PREDICATE : is_float ? VGPU_FLOAT : VGPU_INTEGER;
    }
}

static vgpu_class class_of(const ptx_insn *p)
{
    switch (kinds[p->op]) {
    case VGPU_COMPUTE:
        return class_of_arithmetic(p);
    case VGPU_LOAD:
    case VGPU_STORE:
        return class_of_memory(p);
    case VGPU_SHUFFLE:
        return VGPU_SHUFFLES;
    case VGPU_BARRIER:
    case VGPU_FENCE:
        return VGPU_MEETINGS;
    case VGPU_ATOMIC:
        return VGPU_ATOMICS;
    case VGPU_ASYNC:
        return VGPU_COPIES;
    case VGPU_WARPGROUP:
        return p->mode == PTX_MULTIPLIES ? VGPU_MATRICES : VGPU_MEETINGS;
    default:
        return VGPU_BRANCHES;
    }
}

/* --- instructions --- */
/* Lane by lane, for what lanes.c has not. */
static const char *compute_slowly(const vgpu_insn *insn, uint8_t *regs, uint32_t lanes)
{
    const char *error = NULL;
    for (; lanes; lanes &= lanes - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        uint64_t args[4] = {0};
        for (uint32_t i = 0; i < insn->ptx->nsrc && i < 4; i++)
            args[i] = vgpu_get(regs, insn->src[i], lane);
        vgpu_set(regs, insn->dst[0], lane, ptx_compute(insn->ptx, args, &error));
    }
    return error;
}

/* mov of several registers to one, or of one to several: the first are the lowest bits. */
static const char *pack(const vgpu_insn *insn, uint8_t *regs, uint32_t lanes)
{
    uint32_t n = insn->ptx->npacked, bits = insn->ptx->type.bits / n;
    for (; lanes; lanes &= lanes - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        uint64_t all = 0;
        for (uint32_t i = 0; i < n; i++)
            all |= (vgpu_get(regs, insn->elems[i], lane) & ((UINT64_C(1) << bits) - 1))
                   << (i * bits);
        vgpu_set(regs, insn->dst[0], lane, all);
    }
    return NULL;
}

static const char *unpack(const vgpu_insn *insn, uint8_t *regs, uint32_t lanes)
{
    uint32_t n = insn->ptx->nelems, bits = insn->ptx->type.bits / n;
    for (; lanes; lanes &= lanes - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        uint64_t all = vgpu_get(regs, insn->src[0], lane);
        for (uint32_t i = 0; i < n; i++)
            vgpu_set(regs, insn->dst[i], lane, all >> (i * bits) & ((UINT64_C(1) << bits) - 1));
    }
    return NULL;
}

vgpu_compute vgpu_find_compute(const vgpu_insn *insn)
{
    vgpu_compute found = NULL;
    if (insn->ptx->op == PTX_MOV && (insn->ptx->npacked || insn->ptx->nelems > 1))
        return insn->ptx->npacked ? pack : unpack;
    if (insn->ptx->op == PTX_MMA)
        return vgpu_multiply;
#ifdef VGPU_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found = vgpu_lanes_avx2(insn);
#endif
    found = found ? found : vgpu_lanes_plain(insn);
    return found ? found : compute_slowly;
}

/* A store of a number of the text: of a register that only `mov` of it sets. */
static int stores_constant(const ptx_function *f, const ptx_insn *p)
{
    int is_constant = 0;
    if (p->op != PTX_ST || p->nelems != 1 || p->elems[0].kind != PTX_REG)
        return p->op == PTX_ST && p->nelems == 1;
    for (uint32_t i = 0; i < f->insns.n; i++) {
        const ptx_insn *q = &f->insns.data[i];
        for (uint32_t k = 0; k < PTX_MAX_ELEMS; k++)
            if (q->dst[k].kind == PTX_REG && q->dst[k].reg == p->elems[0].reg) {
                is_constant = q->op == PTX_MOV && q->src[0].kind == PTX_IMM;
                if (!is_constant)
                    return 0;
            }
    }
    return is_constant;
}

/* What tensor cores do: tf32 takes them twice as long as f16, bytes half as long. Those of a group of warps are faster by 8/5 than
 * those of a warp, of which gpus.def speaks. */
static uint32_t count_products(const ptx_insn *p)
{
    enum { OF_WARP = 16 * 8, OF_GROUP = 16 * 2 * 16 /* a warp's part, by sums of a lane */ };
    uint32_t a = p->elements[1], of_warp = OF_WARP * p->depth;
    if (p->op == PTX_WGMMA)
        return OF_GROUP * p->nsums * 5 / 8;
    return p->op != PTX_MMA ? 0 : a == PTX_TF32 ? 2 * of_warp : a == PTX_S8 || a == PTX_U8 ? of_warp / 2 : of_warp;
}

/* A multiprocessor takes a cycle for two columns of 64 rows. */
static void decode_sums(decoder *d, const ptx_insn *p, vgpu_insn *insn)
{
    vgpu_code *code = d->code;
    insn->slots = p->nsums ? p->nsums : insn->slots;
    insn->sums = dlc_new_array(d->arena, vgpu_row, p->nsums + 1);
    if (!code->is_sum)
        code->is_sum = dlc_new_array(d->arena, uint8_t, code->function->widths.n + 1);
    for (uint32_t i = 0; i < p->nsums; i++) {
        insn->sums[i] = d->registers[p->sums[i].reg];
        code->is_sum[p->sums[i].reg] = 1;
    }
}

static int is_sum(const vgpu_code *code, const ptx_operand *operand)
{
    return operand->kind == PTX_REG && code->is_sum[operand->reg];
}

static void watch_sums(vgpu_code *code)
{
    for (uint32_t i = 0; code->is_sum && i < code->ninsns; i++) {
        const ptx_insn *p = code->insns[i].ptx;
        int is_watched = 0;
        for (uint32_t k = 0; k < PTX_MAX_ELEMS; k++)
            is_watched |= is_sum(code, &p->dst[k]) | is_sum(code, &p->elems[k]);
        for (uint32_t k = 0; k < p->nsrc; k++)
            is_watched |= is_sum(code, &p->src[k]);
        code->insns[i].is_watched = (uint8_t)is_watched;
    }
}

static void decode(decoder *d, const ptx_insn *p, vgpu_insn *insn)
{
    vgpu_class counts_as = class_of(p);
    const vgpu_class_info *info = &vgpu_classes[counts_as];
    *insn = (vgpu_insn){
        .ptx = p, .target = p->target, .kind = kinds[p->op], .counts_as = (uint8_t)counts_as};
    insn->slots = p->type.bits > 32 ? info->wide_slots : info->slots;
    insn->products = count_products(p);
    if (p->op == PTX_WGMMA)
        decode_sums(d, p, insn);
    if (p->guard != PTX_NO_REG)
        insn->guard = d->registers[p->guard];
    if (p->valid != PTX_NO_REG)
        insn->valid = d->registers[p->valid];
    for (uint32_t i = 0; i < PTX_MAX_ELEMS; i++) {
        insn->dst[i] = row_of(d, &p->dst[i], 4);
        insn->elems[i] = row_of(d, &p->elems[i], p->type.bits > 32 ? 8 : 4);
    }
    for (uint32_t i = 0; i < p->nsrc; i++)
        insn->src[i] = row_of(d, &p->src[i], width_of(p, i));
    insn->is_constant = (uint8_t)stores_constant(d->code->function, p);
    if (insn->kind == VGPU_COMPUTE)
        insn->compute = vgpu_find_compute(insn);
}

/* --- registers that live at once --- */
typedef struct {
    uint32_t first, last;
} span;

static void stretch(span *spans, const ptx_operand *operand, uint32_t at)
{
    if (operand->kind != PTX_REG)
        return;
    span *s = &spans[operand->reg];
    s->first = s->last == 0 ? at : s->first;
    s->last = at + 1;
}

static void find_spans(const ptx_function *f, span *spans)
{
    for (uint32_t i = 0; i < f->insns.n; i++) {
        const ptx_insn *p = &f->insns.data[i];
        for (uint32_t k = 0; k < PTX_MAX_ELEMS; k++) {
            stretch(spans, &p->dst[k], i);
            stretch(spans, &p->elems[k], i);
        }
        for (uint32_t k = 0; k < p->nsrc; k++)
            stretch(spans, &p->src[k], i);
        for (uint32_t k = 0; k < p->nsums; k++)
            if (p->sums)
                stretch(spans, &p->sums[k], i);
    }
    for (uint32_t i = 0; i < f->insns.n; i++) { /* what enters a loop alive lives to its end */
        const ptx_insn *p = &f->insns.data[i];
        for (uint32_t r = 0; p->op == PTX_BRA && p->target <= i && r < f->widths.n; r++)
            if (spans[r].first < p->target && spans[r].last > p->target && spans[r].last <= i)
                spans[r].last = i + 1;
    }
}

static uint32_t count_live(const ptx_function *f, dlc_arena *arena)
{
    span *spans = dlc_new_array(arena, span, f->widths.n + 1);
    int32_t *change = dlc_new_array(arena, int32_t, f->insns.n + 2), live = 0, most = 0;
    find_spans(f, spans);
    for (uint32_t r = 0; r < f->widths.n; r++) {
        change[spans[r].first] += f->widths.data[r] / 4;
        change[spans[r].last] -= f->widths.data[r] / 4;
    }
    for (uint32_t i = 0; i <= f->insns.n; i++) {
        live += change[i];
        most = live > most ? live : most;
    }
    return (uint32_t)most;
}

vgpu_code *vgpu_decode(const ptx_module *module, const ptx_function *function, dlc_arena *arena)
{
    decoder d = {dlc_new(arena, vgpu_code), arena, NULL};
    d.code->module = module;
    d.code->function = function;
    d.code->ninsns = function->insns.n;
    d.code->insns = dlc_new_array(arena, vgpu_insn, function->insns.n + 1);
    place_registers(&d);
    for (uint32_t i = 0; i < function->insns.n; i++)
        decode(&d, &function->insns.data[i], &d.code->insns[i]);
    watch_sums(d.code);
    d.code->live = count_live(function, arena);
    return d.code;
}

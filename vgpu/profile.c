/*
 * What a launch costs, counted while it runs: sectors of 32 bytes that a warp's access touches, how
 * often shared memory is looked into, instructions. And for some blocks a clock per warp: an
 * instruction begins when the one before has and its operands are there, as if the warp were alone.
 * It runs twice, with loads of global memory that take no time and that take VGPU_LOAD_CYCLES,
 * which tells how many loads follow one another.
 */
#include <string.h>

#include "vgpu/warp.h"

enum { BANKS = 32, BANK_BYTES = 4 };

/* How many of the values differ. */
static uint32_t count_distinct(const uint64_t *values, uint32_t n)
{
    uint64_t seen[2 * VGPU_LANES * 4];
    uint32_t ndistinct = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = ndistinct;
        while (k > 0 && seen[k - 1] != values[i])
            k--;
        if (k == 0)
            seen[ndistinct++] = values[i];
    }
    return ndistinct;
}

void vgpu_count_global(vgpu_counts *counts, const uint64_t *addresses, uint32_t lanes,
                       uint32_t bytes, int is_write)
{
    uint64_t sectors[VGPU_LANES];
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < VGPU_LANES; lane++)
        if (lanes >> lane & 1)
            sectors[n++] = addresses[lane] / VGPU_SECTOR;
    *(is_write ? &counts->store_requests : &counts->load_requests) += n > 0;
    *(is_write ? &counts->store_sectors : &counts->load_sectors) += count_distinct(sectors, n);
    *(is_write ? &counts->store_bytes : &counts->load_bytes) += n * bytes;
}

/* How often banks must be read for some lanes: by the bank with most different words. */
static uint32_t count_wavefronts(const uint64_t *addresses, uint32_t lanes, uint32_t bytes)
{
    uint64_t words[BANKS][VGPU_LANES];
    uint32_t n[BANKS] = {0}, most = 0;
    for (; lanes; lanes &= lanes - 1)
        for (uint32_t at = 0; at < bytes; at += BANK_BYTES) {
            uint64_t word = (addresses[__builtin_ctz(lanes)] + at) / BANK_BYTES;
            uint32_t bank = word % BANKS, k = n[bank];
            while (k > 0 && words[bank][k - 1] != word)
                k--;
            if (k == 0 && n[bank] < VGPU_LANES)
                words[bank][n[bank]++] = word;
            most = n[bank] > most ? n[bank] : most;
        }
    return most;
}

/* Accesses of 8 bytes are made by half a warp at a time, those of 16 by a quarter. */
void vgpu_count_shared(vgpu_counts *counts, const uint64_t *addresses, uint32_t lanes,
                       uint32_t bytes)
{
    uint32_t parts = bytes > BANK_BYTES ? bytes / BANK_BYTES : 1, width = VGPU_LANES / parts;
    uint32_t part = width == VGPU_LANES ? ~0u : (1u << width) - 1;
    if (!lanes)
        return;
    counts->shared_requests++;
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t of_part = lanes & (part << (i * width));
        counts->shared_wavefronts += of_part ? count_wavefronts(addresses, of_part, bytes) : 0;
        counts->shared_ideal += of_part != 0;
    }
}

/* --- clocks --- */
static void await(uint32_t *at, const uint32_t *ready, const ptx_operand *operand)
{
    if (operand->kind == PTX_REG && ready[operand->reg] > *at)
        *at = ready[operand->reg];
}

static uint32_t latency_of(const vgpu_insn *insn, int k)
{
    int is_load = insn->counts_as == VGPU_GLOBAL_LD || insn->counts_as == VGPU_ATOMICS;
    return is_load ? (k ? VGPU_LOAD_CYCLES : 0) : vgpu_classes[insn->counts_as].latency;
}

static void time_copies(vgpu_warp *w, const vgpu_insn *insn, int k)
{
    uint32_t open = (uint32_t)insn->ptx->src[0].value;
    switch (insn->ptx->mode) {
    case PTX_COMMIT_GROUP:
        w->copied[k][w->ngroups % VGPU_GROUPS] = w->newest[k];
        w->ngroups += (uint32_t)k;
        break;
    case PTX_WAIT_GROUP:
        if (open < w->ngroups && open < VGPU_GROUPS) {
            uint32_t group = (w->ngroups - 1 - open) % VGPU_GROUPS;
            w->now[k] = w->copied[k][group] > w->now[k] ? w->copied[k][group] : w->now[k];
        }
        break;
    case PTX_WAIT_ALL:
        w->now[k] = w->newest[k] > w->now[k] ? w->newest[k] : w->now[k];
        break;
    default:
        w->newest[k] = w->now[k] + (k ? VGPU_LOAD_CYCLES : 0);
    }
}

static uint32_t operands_at(const vgpu_insn *insn, const uint32_t *ready, uint32_t at)
{
    const ptx_insn *p = insn->ptx;
    for (uint32_t i = 0; i < p->nsrc; i++)
        await(&at, ready, &p->src[i]);
    for (uint32_t i = 0; i < PTX_MAX_ELEMS; i++)
        await(&at, ready, &p->elems[i]);
    return p->guard != PTX_NO_REG && ready[p->guard] > at ? ready[p->guard] : at;
}

/* Compilers move loads to the front of their straight piece of code: they wait for their addresses
 * alone, and for what may write where they read. */
static void time_load(vgpu_warp *w, const vgpu_insn *insn, int k)
{
    uint32_t at = operands_at(insn, w->ready[k], w->fence[k]);
    for (uint32_t i = 0; i < PTX_MAX_ELEMS && insn->ptx->dst[i].kind == PTX_REG; i++)
        w->ready[k][insn->ptx->dst[i].reg] = at + latency_of(insn, k);
    w->fence[k] += insn->slots;
    w->now[k] += insn->slots;
}

void vgpu_time(vgpu_warp *w, const vgpu_insn *insn)
{
    for (int k = 0; k < 2; k++) {
        if (insn->kind == VGPU_LOAD) {
            time_load(w, insn, k);
            continue;
        }
        uint32_t at = operands_at(insn, w->ready[k], w->now[k]);
        for (uint32_t i = 0; i < PTX_MAX_ELEMS && insn->ptx->dst[i].kind == PTX_REG; i++)
            w->ready[k][insn->ptx->dst[i].reg] = at + latency_of(insn, k);
        w->now[k] = at + insn->slots + (insn->kind == VGPU_BARRIER ? latency_of(insn, k) : 0);
        if (insn->kind == VGPU_ASYNC)
            time_copies(w, insn, k);
        if (insn->kind != VGPU_COMPUTE)
            w->fence[k] = w->now[k];
    }
}

/* Warps that met go on together. */
void vgpu_time_meeting(vgpu_machine *m, uint32_t warps)
{
    for (int k = 0; k < 2; k++) {
        uint32_t last = 0;
        for (uint32_t i = 0; i < m->nwarps; i++)
            if ((warps >> i & 1) && m->warps[i].now[k] > last)
                last = m->warps[i].now[k];
        for (uint32_t i = 0; i < m->nwarps; i++)
            if (warps >> i & 1)
                m->warps[i].now[k] = m->warps[i].fence[k] = last;
    }
}

void vgpu_count_block(vgpu_machine *m)
{
    uint32_t last[2] = {0, 0};
    for (uint32_t i = 0; i < m->nwarps; i++)
        for (int k = 0; k < 2; k++)
            last[k] = m->warps[i].now[k] > last[k] ? m->warps[i].now[k] : last[k];
    m->launch->counts->sampled++;
    m->launch->counts->chain += last[0];
    m->launch->counts->loads += (double)(last[1] - last[0]) / VGPU_LOAD_CYCLES;
}

/* What lies before the counts of samples is a row of whole numbers. Distinct bytes are at most what there is. */
static void count_for_all(vgpu_machine *m, uint64_t nrun)
{
    enum { NUMBERS = offsetof(vgpu_counts, sampled) / sizeof(uint64_t) };
    vgpu_counts *counts = m->launch->counts;
    uint64_t *numbers = &counts->blocks, all = 0;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (uint64_t)((double)numbers[i] * (double)m->nblocks / (double)nrun);
    for (uint32_t i = 0; i < m->launch->memory->n; i++)
        all += m->launch->memory->regions[i].size_bytes;
    counts->bytes_read = counts->bytes_read < all ? counts->bytes_read : all;
    counts->bytes_written = counts->bytes_written < all ? counts->bytes_written : all;
}

void vgpu_count_launch(vgpu_machine *m, uint64_t nrun)
{
    vgpu_counts *counts = m->launch->counts;
    counts->blocks += nrun;
    counts->warps += nrun * m->nwarps;
    for (uint32_t i = 0; i < m->code->ninsns; i++) {
        const vgpu_insn *insn = &m->code->insns[i];
        counts->instructions[insn->counts_as] += m->executed[i];
        counts->slots += m->executed[i] * insn->slots;
        counts->lanes += m->lanes[i];
        counts->products += m->executed[i] * insn->products;
    }
    if (nrun && nrun < m->nblocks)
        count_for_all(m, nrun);
}

/*
 * A launch: blocks one after another, their warps in turn until each is at a barrier. Barriers
 * count threads as PTX does; the barrier of the whole block is stricter than a device is: all warps
 * must come to it, and at the same instruction.
 */
#include <string.h>

#include "vgpu/warp.h"

/* --- barriers --- */
static uint32_t barrier_number(const vgpu_warp *w, const vgpu_insn *insn)
{
    return (uint32_t)vgpu_get(w->regs, insn->src[0], (uint32_t)__builtin_ctz(w->alive));
}

void vgpu_barrier_reach(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t pc)
{
    uint32_t lane = (uint32_t)__builtin_ctz(w->alive), number = barrier_number(w, insn);
    uint32_t wanted = insn->ptx->nsrc > 1 ? (uint32_t)vgpu_get(w->regs, insn->src[1], lane) : 0;
    vgpu_barrier *b = &m->barriers[number % VGPU_NBARRIERS];
    if (number >= VGPU_NBARRIERS || wanted % VGPU_LANES ||
        (insn->ptx->mode == PTX_ARRIVE && !wanted))
        vgpu_fail(m, w, insn, lane, VGPU_FAILED, "a barrier of a number or count that is none");
    if (b->threads && b->wanted != wanted)
        vgpu_fail(m, w, insn, lane, VGPU_FAILED, "warps disagree about how many come to a barrier");
    if (b->threads && !wanted && b->pc != pc)
        vgpu_fail(m, w, insn, lane, VGPU_FAILED, "warps of a block diverge at a barrier");
    w->met = ++w->epoch;
    w->seen[w->number] = w->epoch;
    for (uint32_t i = 0; i < m->nwarps; i++)
        b->seen[i] = w->seen[i] > b->seen[i] ? w->seen[i] : b->seen[i];
    b->threads += VGPU_LANES;
    b->wanted = wanted;
    b->pc = pc;
    if (insn->ptx->mode == PTX_ARRIVE)
        return;
    b->waiting |= 1u << w->number;
    w->place = WARP_WAITS;
    w->barrier = number;
    w->barrier_pc = pc;
}

static void open_barrier(vgpu_machine *m, vgpu_barrier *b)
{
    for (uint32_t i = 0; i < m->nwarps; i++) {
        if (!(b->waiting >> i & 1))
            continue;
        for (uint32_t k = 0; k < m->nwarps; k++)
            m->warps[i].seen[k] =
                b->seen[k] > m->warps[i].seen[k] ? b->seen[k] : m->warps[i].seen[k];
        m->warps[i].place = WARP_RUNS;
    }
    if (m->is_sampled)
        vgpu_time_meeting(m, b->waiting);
    *b = (vgpu_barrier){0};
}

/* Barriers to which all have come; false when there is none. */
static int open_barriers(vgpu_machine *m)
{
    int is_open = 0;
    for (uint32_t i = 0; i < VGPU_NBARRIERS; i++) {
        vgpu_barrier *b = &m->barriers[i];
        uint32_t wanted = b->wanted ? b->wanted : m->nwarps * VGPU_LANES;
        if (b->threads > wanted) {
            const vgpu_warp *w = &m->warps[b->waiting ? __builtin_ctz(b->waiting) : 0];
            vgpu_fail(m, w, &m->code->insns[w->barrier_pc], 0, VGPU_FAILED,
                      "more threads come to a barrier than it counts");
        } else if (b->threads == wanted) {
            open_barrier(m, b);
            is_open = 1;
        }
    }
    return is_open;
}

/* --- blocks --- */
static void begin_warp(vgpu_machine *m, vgpu_warp *w)
{
    uint32_t first = w->number * VGPU_LANES, left = m->nthreads - first;
    w->born = w->alive = left >= VGPU_LANES ? ~0u : (1u << left) - 1;
    w->nfronts = 1;
    w->fronts[0] = (vgpu_front){.lanes = w->alive};
    w->place = WARP_RUNS;
    w->epoch = w->met = 1;
    w->issued = 0;
    w->has_fenced = 0;
    w->copies.n = w->products.n = 0;
    w->nproduct_groups = w->proxied = 0;
    w->sequence = 0;
    w->is_fenced = 0;
    memset(w->seen, 0, sizeof w->seen);
    memset(w->ncommitted, 0, sizeof w->ncommitted);
    memset(w->regs, 0xd5, m->code->first_constant);
    uint32_t *special = (uint32_t *)(void *)(w->regs + m->code->specials);
    for (uint32_t lane = 0; lane < VGPU_LANES; lane++)
        for (uint32_t axis = 0; axis < 3; axis++)
            special[(6 + axis) * VGPU_LANES + lane] = m->coordinates[axis];
}

static void begin_block(vgpu_machine *m)
{
    const uint32_t *grid = m->launch->grid;
    m->coordinates[0] = (uint32_t)(m->block % grid[0]);
    m->coordinates[1] = (uint32_t)(m->block / grid[0] % grid[1]);
    m->coordinates[2] = (uint32_t)(m->block / grid[0] / grid[1]);
    m->has_acquired = 0;
    m->is_sampled = m->launch->counts && (m->block == 0 || m->block == m->nblocks / 2);
    vgpu_memory_forget(&m->shared, NULL, NULL);
    for (uint32_t i = 0; i < m->shared.n; i++) {
        memset(m->shared.regions[i].written, 0, m->shared.regions[i].size_bytes);
        memset(m->shared.regions[i].bytes, 0xff, m->shared.regions[i].size_bytes);
    }
    if (m->code->function->local_bytes)
        memset(m->local_written, 0,
               (size_t)m->nwarps * VGPU_LANES * m->code->function->local_bytes);
    memset(m->barriers, 0, sizeof m->barriers);
    for (uint32_t i = 0; i < m->nwarps; i++) {
        begin_warp(m, &m->warps[i]);
        for (int k = 0; k < 2 && m->is_sampled; k++) {
            memset(m->warps[i].ready[k], 0, (m->code->function->widths.n + 1) * sizeof(uint32_t));
            m->warps[i].now[k] = m->warps[i].fence[k] = m->warps[i].newest[k] = 0;
            memset(m->warps[i].copied[k], 0, sizeof m->warps[i].copied[k]);
        }
    }
}

static int all_ended(const vgpu_machine *m)
{
    for (uint32_t i = 0; i < m->nwarps; i++)
        if (m->warps[i].place != WARP_ENDED)
            return 0;
    return 1;
}

static void refuse_barriers(vgpu_machine *m)
{
    for (uint32_t i = 0; i < m->nwarps; i++)
        if (m->warps[i].place == WARP_WAITS)
            vgpu_fail(m, &m->warps[i], &m->code->insns[m->warps[i].barrier_pc], 0, VGPU_FAILED,
                      "warps of a block diverge at a barrier: not all of them come to it");
}

static void run_block(vgpu_machine *m)
{
    begin_block(m);
    while (m->status == DLC_OK && !all_ended(m)) {
        for (uint32_t i = 0; i < m->nwarps && m->status == DLC_OK; i++)
            vgpu_warp_run(m, &m->warps[m->launch->is_backwards ? m->nwarps - 1 - i : i]);
        if (m->status == DLC_OK && !open_barriers(m))
            refuse_barriers(m);
    }
    if (m->status == DLC_OK && m->code->is_sum)
        vgpu_warpgroup_end(m);
    if (m->is_sampled && m->status == DLC_OK)
        vgpu_count_block(m);
}

/* --- a launch --- */
static void add_shared(vgpu_machine *m, uint64_t base, uint32_t bytes)
{
    vgpu_region region = {.base = base, .size_bytes = bytes, .is_writable = 1};
    if (!bytes)
        return;
    region.bytes = dlc_arena_array(m->arena, bytes, 1, 16);
    region.written = dlc_arena_array(m->arena, bytes, 1, 16);
    vgpu_memory_add(&m->shared, &region);
}

static void fill_rows(vgpu_machine *m, vgpu_warp *w)
{
    const uint32_t *block = m->launch->block;
    uint32_t *special = (uint32_t *)(void *)(w->regs + m->code->specials);
    for (uint32_t lane = 0; lane < VGPU_LANES; lane++) {
        uint32_t thread = w->number * VGPU_LANES + lane;
        uint32_t values[PTX_SPECIALS] = {thread % block[0],
                                         thread / block[0] % block[1],
                                         thread / block[0] / block[1],
                                         block[0],
                                         block[1],
                                         block[2]};
        memcpy(&values[9], m->launch->grid, sizeof m->launch->grid);
        values[12] = lane;
        values[13] = w->number;
        for (uint32_t i = 0; i < PTX_SPECIALS; i++)
            special[i * VGPU_LANES + lane] = values[i];
        for (uint32_t i = 0; i < m->code->constants.n; i++) {
            const vgpu_constant *c = &m->code->constants.data[i];
            vgpu_set(w->regs, (vgpu_row){c->at, c->width}, lane, c->value);
        }
    }
}

static void set_up(vgpu_machine *m)
{
    const vgpu_launch *l = m->launch;
    m->nthreads = l->block[0] * l->block[1] * l->block[2];
    m->nblocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    m->nwarps = (m->nthreads + VGPU_LANES - 1) / VGPU_LANES;
    add_shared(m, PTX_SHARED_BASE, l->shared_bytes);
    add_shared(m, PTX_FIXED_SHARED_BASE, m->code->module->shared_bytes);
    size_t local = (size_t)m->nwarps * VGPU_LANES * m->code->function->local_bytes;
    m->local = dlc_arena_array(m->arena, local + 1, 1, 16);
    m->local_written = dlc_arena_array(m->arena, local + 1, 1, 16);
    m->executed = dlc_new_array(m->arena, uint64_t, m->code->ninsns + 1);
    m->lanes = dlc_new_array(m->arena, uint64_t, m->code->ninsns + 1);
    m->warps = dlc_new_array(m->arena, vgpu_warp, m->nwarps);
    for (uint32_t i = 0; i < m->nwarps; i++) {
        vgpu_warp *w = &m->warps[i];
        w->number = i;
        w->regs = dlc_arena_array(m->arena, m->code->registers_bytes, 1, 64);
        for (int k = 0; k < 2; k++)
            w->ready[k] = dlc_new_array(m->arena, uint32_t, m->code->function->widths.n + 1);
        fill_rows(m, w);
    }
}

dlc_status vgpu_run(const vgpu_code *code, vgpu_launch *launch, dlc_diag *diag)
{
    vgpu_machine m = {.code = code, .launch = launch, .diag = diag, .arena = dlc_arena_create(0)};
    vgpu_counts none = {0};
    launch->fault = VGPU_NO_FAULT;
    launch->limit = launch->limit ? launch->limit : UINT64_C(1) << 31;
    vgpu_memory_forget(launch->memory, NULL, NULL);
    set_up(&m);
    uint64_t nrun = 0;
    for (uint64_t i = 0; i < m.nblocks && m.status == DLC_OK; i++) {
        m.block = launch->is_backwards ? m.nblocks - 1 - i : i;
        if (launch->stride && m.block % launch->stride != 0 && m.block + 1 != m.nblocks)
            continue;
        run_block(&m);
        nrun++;
    }
    vgpu_counts *counts = launch->counts ? launch->counts : &none;
    vgpu_memory_forget(launch->memory, &counts->bytes_read, &counts->bytes_written);
    if (launch->counts)
        vgpu_count_launch(&m, nrun);
    vgpu_memory_deinit(&m.shared);
    dlc_arena_destroy(m.arena);
    return m.status;
}

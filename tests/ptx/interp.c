/*
 * Runs a PTX entry. A warp goes on at its least program counter with the threads that are there, so
 * branches come together again; threads wait at barriers and shuffles until all of their warp (or
 * block) are at the same instruction. Blocks run one after another.
 *
 * Races: every element remembers who wrote and who read it last, with the counts of barriers of
 * then. Two accesses are in order when one thread made both, or a block's barrier (for threads of
 * one warp: also a warp's) lies between.
 */
#include "tests/ptx/interp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/compute.h"

enum { LANES = 32, MAX_REGIONS = 40 };

typedef struct {
    uint32_t block, thread; /* block 0: nobody (blocks count from 1 here) */
    uint32_t block_epoch, warp_epoch;
} visit;

typedef struct {
    visit writer, reader, other; /* other: the last reader of another warp than the last */
} history;

typedef struct {
    const char *name;
    uint64_t base;
    uint8_t *bytes, *initialised; /* NULL: all is */
    history *histories; /* by first byte of an element; NULL: never written by kernels, or by one
                           thread only */
    size_t size_bytes;
    int is_writable;
} region;

typedef enum { RUNS, AT_SHUFFLE, AT_WARP, AT_BLOCK, ENDED } place;

typedef struct {
    uint64_t *regs; /* [register][lane] */
    uint32_t pc[LANES];
    uint8_t places[LANES];
    uint32_t epoch, number;
} warp;

typedef struct {
    const ptx_module *module;
    ptx_launch *launch;
    dlc_diag *diag;
    dlc_arena *arena;
    region regions[MAX_REGIONS];
    uint32_t nregions, shared, fault;
    uint8_t *local, *local_initialised; /* [thread][local_bytes] */
    warp *warps;
    uint32_t nwarps, block, block_epoch;
    dlc_status status;
} machine;

static void fail(machine *m, const ptx_insn *insn, uint32_t thread, const char *what)
{
    if (m->status == DLC_OK)
        m->status = dlc_diag_fail(m->diag, DLC_INVALID, "PTX", "line %u, block %u, thread %u: %s",
                                  insn->line, m->block, thread, what);
}

/* --- memory --- */

static region *find_region(machine *m, uint64_t address, uint32_t bytes)
{
    for (uint32_t r = 0; r < m->nregions; r++) {
        region *at = &m->regions[r];
        if (address >= at->base && address - at->base < at->size_bytes)
            return at->size_bytes - (address - at->base) >= bytes ? at : NULL;
    }
    return NULL;
}

static int is_ordered(const machine *m, const visit *before, uint32_t thread)
{
    if (before->block == 0 || (before->block == m->block + 1 && before->thread == thread))
        return 1;
    if (before->block != m->block + 1)
        return 0;
    return before->block_epoch != m->block_epoch ||
           (before->thread / LANES == thread / LANES &&
            before->warp_epoch != m->warps[thread / LANES].epoch);
}

static void note_access(machine *m, const ptx_insn *insn, history *h, uint32_t thread, int is_write)
{
    visit now = {m->block + 1, thread, m->block_epoch, m->warps[thread / LANES].epoch};
    int ok = is_ordered(m, &h->writer, thread);
    if (is_write) {
        ok = ok && is_ordered(m, &h->reader, thread) && is_ordered(m, &h->other, thread);
        *h = (history){.writer = now};
    } else {
        if (h->reader.block && h->reader.thread / LANES != thread / LANES)
            h->other = h->reader;
        h->reader = now;
    }
    if (!ok)
        fail(m, insn, thread,
             is_write ? "a race: writes what another thread accessed"
                      : "a race: reads what another thread wrote");
}

typedef struct {
    const ptx_insn *insn;
    uint64_t address;
    uint32_t bytes, thread;
    int is_write, is_unused; /* unused: only that there is memory is checked */
} access;

static uint8_t *local_bytes_of(machine *m, const access *a, uint8_t **initialised)
{
    uint64_t offset = a->address - PTX_LOCAL_BASE;
    size_t at = (size_t)a->thread * m->module->local_bytes + offset;
    if (a->address < PTX_LOCAL_BASE || offset + a->bytes > m->module->local_bytes)
        return NULL;
    *initialised = m->local_initialised + at;
    return m->local + at;
}

static uint8_t *region_bytes_of(machine *m, const access *a, uint8_t **initialised)
{
    region *r = find_region(m, a->address, a->bytes);
    int space = a->insn->space, is_shared = r == &m->regions[m->shared];
    if (!r || (space == PTX_SHARED && !is_shared) || (space == PTX_GLOBAL && is_shared) ||
        (a->is_write && !r->is_writable))
        return NULL;
    uint64_t offset = a->address - r->base;
    if (r->histories && !a->is_unused)
        note_access(m, a->insn, &r->histories[offset], a->thread, a->is_write);
    *initialised = r->initialised ? r->initialised + offset : NULL;
    return r->bytes + offset;
}

/* The bytes, checked; NULL when the access is wrong. */
static uint8_t *bytes_at(machine *m, const access *a)
{
    uint8_t *initialised = NULL;
    int is_local = a->insn->space == PTX_LOCAL ||
                   (a->address >= PTX_LOCAL_BASE && a->address < 2 * PTX_LOCAL_BASE);
    uint8_t *bytes =
        is_local ? local_bytes_of(m, a, &initialised) : region_bytes_of(m, a, &initialised);
    if (!bytes || a->address % a->bytes) {
        fail(m, a->insn, a->thread,
             bytes         ? "an access that is not aligned"
             : a->is_write ? "writes out of bounds"
                           : "reads out of bounds");
        return NULL;
    }
    for (uint32_t i = 0; initialised && !a->is_unused && i < a->bytes; i++) {
        if (!a->is_write && !initialised[i]) {
            fail(m, a->insn, a->thread, "reads what nobody has written");
            return NULL;
        }
        initialised[i] = 1;
    }
    return bytes;
}

/* --- operands --- */

static uint64_t value_of(const machine *m, const warp *w, const ptx_operand *operand, uint32_t lane)
{
    switch (operand->kind) {
    case PTX_REG:
        return w->regs[(size_t)operand->reg * LANES + lane];
    case PTX_TID:
        return w->number * LANES + lane;
    case PTX_CTAID:
        return m->block;
    case PTX_NTID:
        return m->launch->threads;
    case PTX_NCTAID:
        return m->launch->blocks;
    case PTX_LANEID:
        return lane;
    default:
        return operand->value;
    }
}

static void set(warp *w, const ptx_operand *operand, uint32_t lane, uint64_t value)
{
    w->regs[(size_t)operand->reg * LANES + lane] = value;
}

static uint64_t parameter(const machine *m, uint64_t offset)
{
    const ptx_launch *l = m->launch;
    uint64_t index = offset / 8;
    if (index < l->nbuffers)
        return m->regions[index].base;
    if ((index -= l->nbuffers) < l->nsymbols)
        return (uint64_t)l->symbols[index];
    index -= l->nsymbols;
    return index == 0 ? m->regions[m->fault].base : (uint64_t)(index == 1 ? l->first : l->units);
}

/* --- instructions --- */

static void load(machine *m, warp *w, const ptx_insn *insn, uint32_t lane)
{
    uint32_t bytes = insn->type.bits / 8u, thread = w->number * LANES + lane;
    uint64_t address = value_of(m, w, &insn->src[0], lane) + (uint64_t)insn->src[0].offset;
    if (insn->space == PTX_PARAM) { /* parameters are 64 bits; a 32-bit load takes half */
        uint64_t value = parameter(m, address) >> (8 * (address % 8));
        set(w, &insn->dst[0], lane, ptx_masked(insn->type, value));
        return;
    }
    if (insn->nelems > 1 && address % (bytes * insn->nelems))
        fail(m, insn, thread, "a vector that is not aligned");
    for (uint32_t i = 0; i < insn->nelems; i++) {
        int is_unused = (insn->unused >> (i * bytes) & 1) != 0;
        access a = {insn, address + i * bytes, bytes, thread, 0, is_unused};
        const uint8_t *at = bytes_at(m, &a);
        uint64_t value = 0;
        if (at)
            memcpy(&value, at, bytes);
        set(w, &insn->dst[i], lane, ptx_extended(insn->type, value));
    }
}

static void store(machine *m, warp *w, const ptx_insn *insn, uint32_t lane)
{
    uint32_t bytes = insn->type.bits / 8u, thread = w->number * LANES + lane;
    uint64_t address = value_of(m, w, &insn->src[0], lane) + (uint64_t)insn->src[0].offset;
    if (insn->nelems > 1 && address % (bytes * insn->nelems))
        fail(m, insn, thread, "a vector that is not aligned");
    for (uint32_t i = 0; i < insn->nelems; i++) {
        access a = {insn, address + i * bytes, bytes, thread, 1, 0};
        uint64_t value = value_of(m, w, &insn->elems[i], lane);
        uint8_t *at = bytes_at(m, &a);
        if (at)
            memcpy(at, &value, bytes);
    }
}

static void compute(machine *m, warp *w, const ptx_insn *insn, uint32_t lane)
{
    uint64_t args[4] = {value_of(m, w, &insn->src[0], lane), value_of(m, w, &insn->src[1], lane),
                        value_of(m, w, &insn->src[2], lane), value_of(m, w, &insn->src[3], lane)};
    const char *error = NULL;
    set(w, &insn->dst[0], lane, ptx_compute(insn, args, &error));
    if (error)
        fail(m, insn, w->number * LANES + lane, error);
}

static place place_of(const ptx_insn *insn)
{
    if (insn->op == PTX_SHFL)
        return AT_SHUFFLE;
    if (insn->op == PTX_BAR)
        return insn->is_warp ? AT_WARP : AT_BLOCK;
    return insn->op == PTX_RET || insn->op == PTX_EXIT ? ENDED : RUNS;
}

static void step_lane(machine *m, warp *w, const ptx_insn *insn, uint32_t lane)
{
    uint32_t guard = insn->guard;
    w->pc[lane]++;
    if (guard != PTX_NO_REG && (w->regs[(size_t)guard * LANES + lane] & 1) == insn->guard_not)
        return;
    switch (insn->op) {
    case PTX_LD:
        load(m, w, insn, lane);
        break;
    case PTX_ST:
        store(m, w, insn, lane);
        break;
    case PTX_BRA:
        w->pc[lane] = insn->target;
        break;
    case PTX_SHFL:
    case PTX_BAR:
    case PTX_RET:
    case PTX_EXIT:
        w->places[lane] = (uint8_t)place_of(insn);
        break;
    default:
        compute(m, w, insn, lane);
    }
}

/* --- warps --- */

/* The least program counter of threads that run, or UINT32_MAX. */
static uint32_t least_pc(const warp *w)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (w->places[lane] == RUNS && w->pc[lane] < least)
            least = w->pc[lane];
    return least;
}

static int together(const warp *w)
{
    for (uint32_t lane = 1; lane < LANES; lane++)
        if (w->places[lane] != w->places[0] || (w->places[0] != ENDED && w->pc[lane] != w->pc[0]))
            return 0;
    return 1;
}

static void shuffle(machine *m, warp *w)
{
    const ptx_insn *insn = &m->module->insns.data[w->pc[0] - 1];
    uint64_t values[LANES];
    for (uint32_t lane = 0; lane < LANES; lane++)
        values[lane] = value_of(m, w, &insn->src[0], lane);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint64_t from = value_of(m, w, &insn->src[1], lane) & 31;
        if (value_of(m, w, &insn->src[2], lane) != 0x1f ||
            (uint32_t)value_of(m, w, &insn->src[3], lane) != 0xffffffffu)
            fail(m, insn, w->number * LANES + lane, "a shuffle of part of a warp");
        set(w, &insn->dst[0], lane, ptx_masked(insn->type, values[from]));
    }
}

/* Until all threads ended or wait for the block. */
static void run_warp(machine *m, warp *w)
{
    while (m->status == DLC_OK) {
        uint32_t pc = least_pc(w);
        if (pc != UINT32_MAX) {
            const ptx_insn *insn = &m->module->insns.data[pc];
            if (pc >= m->module->insns.n)
                fail(m, &m->module->insns.data[m->module->insns.n - 1], w->number * LANES,
                     "runs past the end");
            for (uint32_t lane = 0; lane < LANES && m->status == DLC_OK; lane++)
                if (w->places[lane] == RUNS && w->pc[lane] == pc)
                    step_lane(m, w, insn, lane);
            continue;
        }
        if (!together(w)) {
            fail(m, &m->module->insns.data[w->pc[0] - 1], w->number * LANES,
                 "threads of a warp diverge at a barrier or shuffle");
            return;
        }
        if (w->places[0] == ENDED || w->places[0] == AT_BLOCK)
            return;
        if (w->places[0] == AT_SHUFFLE)
            shuffle(m, w);
        w->epoch += w->places[0] == AT_WARP;
        memset(w->places, RUNS, sizeof w->places);
    }
}

/* --- blocks --- */

static void begin_block(machine *m)
{
    region *shared = &m->regions[m->shared];
    memset(shared->initialised, 0, shared->size_bytes);
    memset(shared->histories, 0, shared->size_bytes * sizeof(history));
    if (m->module->local_bytes)
        memset(m->local_initialised, 0, (size_t)m->launch->threads * m->module->local_bytes);
    for (uint32_t i = 0; i < m->nwarps; i++) {
        warp *w = &m->warps[i];
        memset(w->regs, 0xd5, (size_t)m->module->nregs * LANES * sizeof *w->regs);
        memset(w->pc, 0, sizeof w->pc);
        memset(w->places, RUNS, sizeof w->places);
    }
}

static void run_block(machine *m)
{
    begin_block(m);
    while (m->status == DLC_OK) {
        for (uint32_t i = 0; i < m->nwarps && m->status == DLC_OK; i++)
            run_warp(m, &m->warps[m->launch->is_backwards ? m->nwarps - 1 - i : i]);
        for (uint32_t i = 1; i < m->nwarps && m->status == DLC_OK; i++)
            if (m->warps[i].places[0] != m->warps[0].places[0] ||
                (m->warps[0].places[0] == AT_BLOCK && m->warps[i].pc[0] != m->warps[0].pc[0]))
                fail(m, &m->module->insns.data[m->warps[i].pc[0] - 1], i * LANES,
                     "warps of a block diverge at a barrier");
        if (m->warps[0].places[0] == ENDED)
            return;
        m->block_epoch++;
        for (uint32_t i = 0; i < m->nwarps; i++) {
            m->warps[i].epoch++;
            memset(m->warps[i].places, RUNS, sizeof m->warps[i].places);
        }
    }
}

/* --- a launch --- */

static void add_region(machine *m, const region *r)
{
    region *at = &m->regions[m->nregions];
    *at = *r;
    if (!at->base)
        at->base = (UINT64_C(2) << 40) + ((uint64_t)m->nregions << 34);
    m->nregions++;
}

static void *zeroed(machine *m, size_t n, size_t bytes)
{
    return dlc_arena_array(m->arena, n + 1, bytes, 16);
}

static dlc_status set_up(machine *m)
{
    const ptx_launch *l = m->launch;
    if (l->nbuffers + l->nsymbols + 3 != m->module->nparams || l->nbuffers + 2 > MAX_REGIONS ||
        l->threads % LANES)
        return dlc_diag_fail(m->diag, DLC_INVALID, "PTX",
                             "%u parameters and %u threads do not fit the launch",
                             m->module->nparams, l->threads);
    for (uint32_t b = 0; b < l->nbuffers; b++) {
        const ptx_buffer *buffer = &l->buffers[b];
        region r = {.bytes = buffer->bytes,
                    .size_bytes = buffer->size_bytes,
                    .is_writable = buffer->is_output};
        if (r.is_writable) {
            r.initialised = buffer->written ? buffer->written : zeroed(m, r.size_bytes, 1);
            r.histories = zeroed(m, r.size_bytes, sizeof(history));
        }
        add_region(m, &r);
    }
    m->fault = m->nregions;
    add_region(m,
               &(region){.bytes = (uint8_t *)&m->launch->fault, .size_bytes = 8, .is_writable = 1});
    m->shared = m->nregions;
    size_t shared = l->shared_bytes;
    add_region(m, &(region){.base = PTX_SHARED_BASE,
                            .bytes = zeroed(m, shared, 1),
                            .initialised = zeroed(m, shared, 1),
                            .histories = zeroed(m, shared, sizeof(history)),
                            .size_bytes = shared,
                            .is_writable = 1});
    m->local = zeroed(m, (size_t)l->threads * m->module->local_bytes, 1);
    m->local_initialised = zeroed(m, (size_t)l->threads * m->module->local_bytes, 1);
    m->nwarps = l->threads / LANES;
    m->warps = dlc_new_array(m->arena, warp, m->nwarps);
    for (uint32_t i = 0; i < m->nwarps; i++) {
        m->warps[i].number = i;
        m->warps[i].regs = dlc_new_array(m->arena, uint64_t, (size_t)m->module->nregs * LANES);
    }
    return DLC_OK;
}

dlc_status ptx_run(const ptx_module *module, ptx_launch *launch, dlc_diag *diag)
{
    machine m = {.module = module, .launch = launch, .diag = diag, .arena = dlc_arena_create(0)};
    launch->fault = 0;
    m.status = set_up(&m);
    for (uint32_t i = 0; i < launch->blocks && m.status == DLC_OK; i++) {
        m.block = launch->is_backwards ? launch->blocks - 1 - i : i;
        if (!launch->stride || m.block % launch->stride == 0 || m.block + 1 == launch->blocks)
            run_block(&m);
    }
    dlc_arena_destroy(m.arena);
    return m.status;
}

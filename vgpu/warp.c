/*
 * A warp: lanes at the same instruction are a front and go in lock step. Fronts go on at the least
 * program counter, so branches come together again. At a shuffle, or a barrier of the warp, a front
 * waits until every lane that the mask names is at it. A device does not wait for lanes that have
 * ended; here naming them is an error, as waiting for a block that is not whole is.
 */
#include <string.h>

#include "vgpu/warp.h"

void vgpu_fail(vgpu_machine *m, const vgpu_warp *w, const vgpu_insn *insn, uint32_t lane,
               vgpu_fault fault, const char *what)
{
    if (m->status != DLC_OK)
        return;
    m->launch->fault = fault;
    m->status = dlc_diag_fail(m->diag, DLC_INVALID, m->code->function->name,
                              "PTX line %u, block %u,%u,%u, thread %u: %s", insn->ptx->line,
                              m->coordinates[0], m->coordinates[1], m->coordinates[2],
                              w->number * VGPU_LANES + lane, what);
}

static uint32_t first_of(uint32_t lanes)
{
    return lanes ? (uint32_t)__builtin_ctz(lanes) : 0;
}

/* Lanes of a front whose guard holds. */
static uint32_t guarded(const vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    if (!insn->guard.at)
        return lanes;
    uint32_t holds = *(const uint32_t *)(const void *)(w->regs + insn->guard.at);
    return lanes & (insn->ptx->guard_not ? ~holds : holds);
}

/* --- shuffles and barriers of a warp --- */
/* Which lanes the lanes of a front name as taking part. */
static uint32_t named(const vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    uint32_t all = 0;
    uint32_t operand = insn->kind == VGPU_SHUFFLE ? 3 : 0;
    for (; lanes; lanes &= lanes - 1)
        all |= (uint32_t)vgpu_get(w->regs, insn->src[operand], first_of(lanes));
    return all;
}

/* The lane that a lane reads from; *is_inside: it is there by the shuffle's own rules. */
static uint32_t source_of(const vgpu_warp *w, const vgpu_insn *insn, uint32_t lane, int *is_inside)
{
    uint32_t b = (uint32_t)vgpu_get(w->regs, insn->src[1], lane) & 31,
             c = (uint32_t)vgpu_get(w->regs, insn->src[2], lane);
    uint32_t segment = c >> 8 & 31, clamp = c & 31, low = lane & segment,
             high = low | (clamp & ~segment);
    int from = insn->ptx->mode == PTX_UP     ? (int)lane - (int)b
               : insn->ptx->mode == PTX_DOWN ? (int)(lane + b)
               : insn->ptx->mode == PTX_BFLY ? (int)(lane ^ b)
                                             : (int)(low | (b & ~segment));
    *is_inside = insn->ptx->mode == PTX_UP ? from >= (int)high : from <= (int)high;
    return *is_inside ? (uint32_t)from & 31 : lane;
}

static void shuffle(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    uint64_t values[VGPU_LANES];
    for (uint32_t lane = 0; lane < VGPU_LANES; lane++)
        values[lane] = vgpu_get(w->regs, insn->src[0], lane);
    for (uint32_t left = lanes; left; left &= left - 1) {
        int is_inside;
        uint32_t lane = first_of(left), from = source_of(w, insn, lane, &is_inside);
        uint32_t mask = (uint32_t)vgpu_get(w->regs, insn->src[3], lane);
        if (!(mask >> lane & 1))
            vgpu_fail(m, w, insn, lane, VGPU_FAILED,
                      "a shuffle whose mask does not name the thread itself");
        if (!(mask & lanes) || !((mask & lanes) >> from & 1))
            vgpu_fail(m, w, insn, lane, VGPU_FAILED,
                      "a shuffle reads a lane that does not take part");
        vgpu_set(w->regs, insn->dst[0], lane, values[from]);
        if (insn->valid.at)
            vgpu_set(w->regs, insn->valid, lane, (uint64_t)is_inside);
    }
}

/* All lanes that the front names are at it: it goes on. False: it must wait. */
static int meet(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    uint32_t mask = named(w, insn, lanes);
    if (mask & w->born & ~lanes)
        return 0;
    if (insn->kind == VGPU_SHUFFLE) {
        shuffle(m, w, insn, lanes);
        return 1;
    }
    for (uint32_t left = lanes; left; left &= left - 1)
        if (!(vgpu_get(w->regs, insn->src[0], first_of(left)) >> first_of(left) & 1))
            vgpu_fail(m, w, insn, first_of(left), VGPU_FAILED,
                      "a barrier of the warp whose mask does not name the thread itself");
    if (!(w->born & ~lanes))
        w->met = ++w->epoch;
    return 1;
}

/* --- fronts --- */
static void drop_front(vgpu_warp *w, uint32_t f)
{
    w->fronts[f] = w->fronts[--w->nfronts];
}

static void add_front(vgpu_warp *w, uint32_t pc, uint32_t lanes)
{
    w->fronts[w->nfronts++] = (vgpu_front){.pc = pc, .lanes = lanes};
}

/* Fronts at one instruction become one. */
static void join(vgpu_warp *w)
{
    for (uint32_t i = 0; i < w->nfronts; i++)
        for (uint32_t k = w->nfronts; k-- > i + 1;)
            if (w->fronts[k].pc == w->fronts[i].pc && w->fronts[k].waits == w->fronts[i].waits) {
                w->fronts[i].lanes |= w->fronts[k].lanes;
                drop_front(w, k);
            }
}

/* The front that runs at the least program counter, or NULL; *limit: where the next one is. */
static vgpu_front *next_front(vgpu_warp *w, uint32_t *limit)
{
    vgpu_front *least = NULL;
    *limit = UINT32_MAX;
    for (uint32_t i = 0; i < w->nfronts; i++) {
        vgpu_front *f = &w->fronts[i];
        if (f->waits)
            continue;
        if (!least || f->pc < least->pc) {
            *limit = least ? least->pc : *limit;
            least = f;
        } else if (f->pc < *limit) {
            *limit = f->pc;
        }
    }
    return least;
}

static void branch(vgpu_warp *w, vgpu_front *f, const vgpu_insn *insn, uint32_t lanes)
{
    if (lanes == f->lanes) {
        f->pc = insn->target;
        return;
    }
    f->pc++;
    if (lanes) {
        f->lanes &= ~lanes;
        add_front(w, insn->target, lanes);
    }
}

/* The front comes to where others are waited for; false: it waits, and another one must run. */
static int reach(vgpu_machine *m, vgpu_warp *w, vgpu_front *f, const vgpu_insn *insn,
                 uint32_t lanes)
{
    uint32_t pc = f->pc;
    int is_of_warp = insn->kind == VGPU_SHUFFLE || insn->ptx->is_warp;
    if (lanes != f->lanes) { /* the guard lets some of them by */
        f->lanes &= ~lanes;
        f->pc++;
        add_front(w, pc, lanes);
        w->fronts[w->nfronts - 1].waits = 1;
        return 0;
    }
    if (is_of_warp ? meet(m, w, insn, lanes) : lanes == w->born) {
        f->pc++;
        if (!is_of_warp)
            vgpu_barrier_reach(m, w, insn, pc);
        return is_of_warp;
    }
    f->waits = 1;
    return 0;
}

static void end_lanes(vgpu_warp *w, vgpu_front *f, uint32_t lanes)
{
    w->alive &= ~lanes;
    f->lanes &= ~lanes;
    f->pc++;
    if (!f->lanes)
        drop_front(w, (uint32_t)(f - w->fronts));
}

/* What a warp stored before a fence between proxies is there for products; its time goes on, so that what it stores later is not. Its
 * lanes do not meet there. */
static void fence(vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    if (!insn->ptx->is_of_proxies)
        w->has_fenced = 1;
    else if (lanes == w->born)
        w->proxied = ++w->epoch;
}

/* What is more than arithmetic. False: the front may have changed, choose again. */
static int step(vgpu_machine *m, vgpu_warp *w, vgpu_front *f, const vgpu_insn *insn, uint32_t lanes)
{
    switch (insn->kind) {
    case VGPU_BRANCH:
        branch(w, f, insn, lanes);
        return !lanes || f->pc == insn->target;
    case VGPU_SHUFFLE:
    case VGPU_BARRIER:
        if (!lanes) {
            f->pc++;
            return 1;
        }
        return reach(m, w, f, insn, lanes);
    case VGPU_END:
        end_lanes(w, f, lanes);
        return 0;
    case VGPU_LOAD:
        vgpu_load(m, w, insn, lanes);
        break;
    case VGPU_STORE:
        vgpu_store(m, w, insn, lanes);
        break;
    case VGPU_ATOMIC:
        if (lanes)
            vgpu_atomic(m, w, insn, lanes);
        break;
    case VGPU_ASYNC:
        vgpu_async(m, w, insn, lanes);
        break;
    case VGPU_WARPGROUP:
        vgpu_warpgroup(m, w, insn, lanes);
        break;
    default:
        fence(w, insn, lanes);
    }
    f->pc++;
    return 1;
}

static void run_front(vgpu_machine *m, vgpu_warp *w, vgpu_front *f, uint32_t limit)
{
    const vgpu_insn *insns = m->code->insns;
    while (f->pc < limit && m->status == DLC_OK) {
        const vgpu_insn *insn = &insns[f->pc];
        if (f->pc >= m->code->ninsns || w->issued > m->launch->limit) {
            insn = f->pc >= m->code->ninsns ? &insns[m->code->ninsns - 1] : insn;
            vgpu_fail(m, w, insn, first_of(f->lanes), VGPU_TIMEOUT,
                      w->issued > m->launch->limit ? "does not come to its end"
                                                   : "runs past the end");
            return;
        }
        uint32_t lanes = guarded(w, insn, f->lanes);
        w->issued++;
        m->executed[f->pc]++;
        m->lanes[f->pc] += (uint32_t)__builtin_popcount(lanes);
        if (m->is_sampled)
            vgpu_time(w, insn);
        if (insn->is_watched && lanes)
            vgpu_watch(m, w, insn);
        if (insn->compute) {
            const char *error = lanes ? insn->compute(insn, w->regs, lanes) : NULL;
            if (error)
                vgpu_fail(m, w, insn, first_of(lanes), VGPU_FAILED, error);
            f->pc++;
        } else if (!step(m, w, f, insn, lanes)) {
            return;
        }
    }
}

/* --- when no front runs --- */
/* All of the warp's lanes are at barriers of the warp with one mask, at different places. */
static int meet_apart(vgpu_machine *m, vgpu_warp *w)
{
    uint32_t all = 0, masks = 0;
    for (uint32_t i = 0; i < w->nfronts; i++) {
        const vgpu_insn *insn = &m->code->insns[w->fronts[i].pc];
        if (insn->kind != VGPU_BARRIER || !insn->ptx->is_warp)
            return 0;
        all |= w->fronts[i].lanes;
        masks |= named(w, insn, w->fronts[i].lanes);
    }
    if (all != w->born || masks & w->born & ~all)
        return 0;
    for (uint32_t i = 0; i < w->nfronts; i++) {
        w->fronts[i].waits = 0;
        w->fronts[i].pc++;
    }
    w->met = ++w->epoch;
    return 1;
}

/* Lets somebody go on; false when the warp is done, waits for other warps, or cannot go on at all.
 */
static int settle(vgpu_machine *m, vgpu_warp *w)
{
    join(w);
    if (!w->nfronts) {
        w->place = WARP_ENDED;
        return 0;
    }
    for (uint32_t i = 0; i < w->nfronts; i++) {
        vgpu_front *f = &w->fronts[i];
        const vgpu_insn *insn = &m->code->insns[f->pc];
        int is_of_warp = insn->kind == VGPU_SHUFFLE || insn->ptx->is_warp;
        if (is_of_warp ? !meet(m, w, insn, f->lanes) : f->lanes != w->born)
            continue;
        f->waits = 0;
        f->pc++;
        if (!is_of_warp)
            vgpu_barrier_reach(m, w, insn, f->pc - 1);
        return is_of_warp || w->place == WARP_RUNS;
    }
    if (meet_apart(m, w))
        return 1;
    vgpu_fail(m, w, &m->code->insns[w->fronts[0].pc], first_of(w->fronts[0].lanes), VGPU_FAILED,
              "threads of a warp diverge at a barrier or shuffle");
    return 0;
}

void vgpu_warp_run(vgpu_machine *m, vgpu_warp *w)
{
    while (m->status == DLC_OK && w->place == WARP_RUNS) {
        uint32_t limit;
        if (w->nfronts > 1)
            join(w);
        vgpu_front *f = next_front(w, &limit);
        if (f)
            run_front(m, w, f, limit);
        else if (!settle(m, w))
            return;
    }
}

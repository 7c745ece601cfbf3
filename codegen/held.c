/*
 * Stores of several vectors. Of bytes or 16-bit numbers a vector of sums fills a quarter or half of a register: where the elements of a
 * register tile are visited vector by vector along a row, one such store waits for its neighbour's, and both are one. Bytes that are rounded
 * floats take fewer instructions where several vectors become bytes together, be they neighbours or of different rows: they wait for so many.
 */
#include "codegen/nest.h"

/* Nothing in between reads what is stored. */
static int may_wait(const dlc_nest *nest, uint32_t s, const dlc_access *access)
{
    return nest->level == nest->held_level && access->mode == DLC_ACCESS_VECTOR && !access->mask && !access->nontemporal &&
           access->width == nest->width && !nest->schedule->homes[s].is_read;
}

/* Two fit a register. */
static int may_join(const dlc_nest *nest, const dlc_access *access)
{
    return nest->holds == DLC_HOLD_NEIGHBOURS && nest->emit->hold &&
           2 * access->width * dlc_dtype_bytes(access->dtype) <= nest->emit->target->vector_bytes;
}

/* The element at offset b is so many behind the one at a. */
static int is_behind(dlc_nest *nest, dlc_expr a, dlc_expr b, int64_t by)
{
    int64_t apart;
    dlc_expr distance = dlc_expr_simplify(nest->kernel->pool, dlc_sub(nest->kernel->pool, b, a), &nest->ranges);
    return dlc_expr_is_int(nest->kernel->pool, distance, &apart) && apart == by;
}

typedef struct {
    uint32_t n;
    dlc_waiting *store[DLC_MOST_HELD];
    uint8_t joins[DLC_MOST_HELD];
} runs;

/* Those that follow one another in memory one behind the other. All are as far from the next of their row as the first is. */
static runs find_runs(dlc_nest *nest, const dlc_held *held)
{
    uint8_t is_taken[DLC_MOST_HELD] = {0};
    uint32_t apart = 1;
    runs r = {0};
    while (apart < held->n && !is_behind(nest, held->offset[0], held->offset[apart], held->width))
        apart++;
    for (uint32_t first = 0; first < held->n; first++)
        for (uint32_t k = first; k < held->n && !is_taken[k]; k += apart) {
            uint32_t next = k + apart;
            is_taken[k] = 1;
            r.joins[r.n] = next < held->n && is_behind(nest, held->offset[k], held->offset[next], held->width);
            r.store[r.n] = held->store[k];
            if (!r.joins[r.n++])
                break;
        }
    return r;
}

static void let_go(dlc_nest *nest, dlc_held *held)
{
    dlc_emitter *emit = nest->emit;
    if (held->n && held->are_packed) {
        runs all = find_runs(nest, held);
        for (uint32_t k = 0; k < all.n; k += DLC_MOST_PACKED)
            emit->store_packed(emit, all.n - k < DLC_MOST_PACKED ? all.n - k : DLC_MOST_PACKED, all.store + k, all.joins + k);
    } else if (held->n) {
        emit->store_held(emit, held->store[0], NULL, NULL);
    }
    held->n = 0;
}

/* Waits, after those that wait with it. */
static void keep(dlc_nest *nest, dlc_held *held, dlc_waiting *store, dlc_expr offset, int is_packed)
{
    uint32_t most = nest->holds == DLC_HOLD_TILE ? DLC_MOST_HELD : DLC_MOST_PACKED;
    if (held->n && (!is_packed || !held->are_packed || held->n == most))
        let_go(nest, held);
    held->are_packed = (uint8_t)is_packed;
    held->width = nest->width;
    held->store[held->n] = store;
    held->offset[held->n++] = offset;
}

int dlc_held_store(dlc_nest *nest, uint32_t s, const dlc_access *access, dlc_expr offset, dlc_val value)
{
    dlc_held *held = &nest->held[s];
    int waits = nest->holds && may_wait(nest, s, access);
    dlc_waiting *byte = waits && nest->emit->hold_byte ? nest->emit->hold_byte(nest->emit, access, value) : NULL;
    offset = dlc_addi(nest->kernel->pool, offset, access->disp);
    if (byte) {
        keep(nest, held, byte, offset, 1);
    } else if (!waits || !may_join(nest, access)) {
        let_go(nest, held);
        return 0;
    } else if (held->n == 1 && !held->are_packed && is_behind(nest, held->offset[0], offset, access->width)) {
        nest->emit->store_held(nest->emit, held->store[0], access, value);
        held->n = 0;
    } else {
        keep(nest, held, nest->emit->hold(nest->emit, access, value), offset, 0);
    }
    return 1;
}

int dlc_held_begin(dlc_nest *nest, dlc_hold holds, uint32_t level)
{
    if (nest->holds)
        return 0;
    nest->holds = (uint8_t)holds;
    nest->held_level = level;
    return 1;
}

void dlc_held_end(dlc_nest *nest)
{
    for (uint32_t s = 0; s < nest->kernel->stages.n; s++)
        let_go(nest, &nest->held[s]);
    nest->holds = DLC_HOLD_NONE;
}

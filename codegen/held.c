/*
 * Stores of neighbours: of bytes or 16-bit numbers a vector of sums fills a quarter or half of a register. Where the elements of a register
 * tile are visited vector by vector along a row, one such store waits for its neighbour's, and both are one.
 */
#include "codegen/nest.h"

/* Nothing in between reads what is stored, and both fit a register. */
static int may_wait(const dlc_nest *nest, uint32_t s, const dlc_access *access)
{
    return nest->holds && nest->emit->hold && access->mode == DLC_ACCESS_VECTOR && !access->mask && !access->nontemporal &&
           access->width == nest->width && !nest->schedule->homes[s].is_read &&
           2 * access->width * dlc_dtype_bytes(access->dtype) <= nest->emit->target->vector_bytes;
}

static void let_go(dlc_nest *nest, dlc_held *held)
{
    if (held->store)
        nest->emit->store_held(nest->emit, held->store, NULL, NULL);
    held->store = NULL;
}

int dlc_held_store(dlc_nest *nest, uint32_t s, const dlc_access *access, dlc_expr offset, dlc_val value)
{
    dlc_held *held = &nest->states[s].held;
    int64_t apart;
    if (!may_wait(nest, s, access)) {
        let_go(nest, held);
        return 0;
    }
    offset = dlc_addi(nest->kernel->pool, offset, access->disp);
    dlc_expr distance = held->store ? dlc_expr_simplify(nest->kernel->pool, dlc_sub(nest->kernel->pool, offset, held->offset), &nest->ranges) : 0;
    if (distance && dlc_expr_is_int(nest->kernel->pool, distance, &apart) && apart == access->width) {
        nest->emit->store_held(nest->emit, held->store, access, value);
        held->store = NULL;
        return 1;
    }
    let_go(nest, held);
    held->store = nest->emit->hold(nest->emit, access, value);
    held->offset = offset;
    return 1;
}

void dlc_held_begin(dlc_nest *nest)
{
    nest->holds = 1;
}

void dlc_held_end(dlc_nest *nest)
{
    for (uint32_t s = 0; s < nest->kernel->stages.n; s++)
        let_go(nest, &nest->states[s].held);
    nest->holds = 0;
}

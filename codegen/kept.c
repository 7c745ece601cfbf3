/*
 * What units begin with alike (ir/schedule/kept.c): scratch that is filled in a branch, where it is not filled for this unit yet. Its first
 * 8 bytes are the tag of what it is filled for: which parallel iteration around, from 1, for a thread finds 0 when it begins a kernel.
 *
 *     if (scratch.tag != wanted) { loops that fill scratch; scratch.tag = wanted; }
 */
#include "codegen/nest.h"

static dlc_access tag_of(dlc_nest *nest)
{
    return (dlc_access){.mem = DLC_MEM_SCRATCH, .mode = DLC_ACCESS_UNIFORM, .bytes = dlc_nest_i64(nest, 0), .dtype = DLC_I64, .width = 1};
}

static dlc_val wanted_tag(dlc_nest *nest)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_kept *kept = &nest->schedule->kept;
    dlc_expr alike = dlc_expr_i64(pool, 1), unit = dlc_expr_axis(pool, nest->unit);
    for (uint32_t n = kept->first - kept->npars; n < kept->first; n++) {
        const dlc_schedule_node *par = &nest->schedule->nodes.data[n];
        alike = dlc_mul(pool, alike, dlc_loop_count(nest->kernel, par->axis, par->tile));
    }
    return dlc_nest_uniform(nest, dlc_expr_simplify(pool, dlc_addi(pool, dlc_floordiv(pool, unit, alike), 1), &nest->ranges));
}

int dlc_kept_has(const dlc_nest *nest, uint32_t node)
{
    const dlc_kept *kept = &nest->schedule->kept;
    return !nest->late && node >= kept->first && node < kept->end && dlc_schedule_parent(nest->schedule, node) + 1 == kept->first;
}

void dlc_kept_begin(dlc_nest *nest)
{
    dlc_emitter *emit = nest->emit;
    dlc_access tag = tag_of(nest);
    dlc_val args[] = {emit->load(emit, &tag), wanted_tag(nest)};
    dlc_val is_filled = emit->arith(emit, DLC_EXPR_EQ, DLC_BOOL, DLC_I64, 1, args);
    emit->if_begin(emit, emit->arith(emit, DLC_EXPR_NOT, DLC_BOOL, DLC_BOOL, 1, &is_filled));
    dlc_nest_enter(nest);
}

void dlc_kept_end(dlc_nest *nest)
{
    dlc_access tag = tag_of(nest);
    nest->emit->store(nest->emit, &tag, wanted_tag(nest));
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
}
